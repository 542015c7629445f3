//! Words of the names of tables, columns and keys.

/// Splits a name into its words, in small letters: at what is not a letter or digit, and before a capital after a small
/// letter or a digit. `userId` and `user_id` are both `user`, `id`.
#[must_use]
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
