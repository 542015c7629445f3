//! Splits the names of tables, columns and keys into words, and finds words in texts.

/// Whether a text contains a whole word, by what counts as part of a word.
pub fn is_word_in(text: &str, word: &str, is_of_words: impl Fn(char) -> bool) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !is_of_words(c));
    text.match_indices(word)
        .any(|(at, _)| is_edge(text[..at].chars().next_back()) && is_edge(text[at + word.len()..].chars().next()))
}

/// Splits a name into its lower-case words: at characters other than letters and digits, and before a capital after a
/// small letter or a digit. `userId` and `user_id` are both `user`, `id`.
pub fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut fresh = true;
    let mut before_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            fresh = true;
            continue;
        }
        if fresh || (letter.is_uppercase() && before_lower) {
            words.push(String::new());
        }
        fresh = false;
        before_lower = letter.is_lowercase() || letter.is_ascii_digit();
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words
}
