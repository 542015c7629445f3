//! The words of a text-search vector (`'call':1 'dmitri':2 'malley':4,9`) in the order of their text: the vector is
//! sorted, so a name of several words would not be found in it.

/// The words ordered by position; words without a position come last, in the vector's order.
pub fn in_order(vector: &str) -> String {
    let mut words: Vec<(u32, String)> = Vec::new();
    for (word, places, _) in lexemes(vector) {
        // A position may have a weight: `3A`.
        let place = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok();
        let found: Vec<u32> = places.trim_start_matches(':').split(',').filter_map(place).collect();
        if found.is_empty() {
            words.push((u32::MAX, word));
        } else {
            words.extend(found.into_iter().map(|place| (place, word.clone())));
        }
    }
    words.sort_by_key(|(place, _)| *place);
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    words.join(" ")
}

/// Removes handles from a vector: whole, their words, and the stems of these.
pub fn without(vector: &str, handles: &[&str]) -> String {
    let words: Vec<String> = handles
        .iter()
        .map(|handle| handle.to_lowercase())
        .flat_map(|handle| {
            let parts: Vec<String> = handle
                .split(|c: char| !c.is_alphanumeric())
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            parts.into_iter().chain([handle])
        })
        .collect();
    let goes = |lexeme: &str| words.iter().any(|word| word == lexeme || is_stem(lexeme, word));
    let kept = lexemes(vector).filter(|(word, ..)| !goes(&word.to_lowercase())).map(|(_, _, whole)| whole);
    kept.collect::<Vec<_>>().join(" ")
}

/// Whether a dictionary may have made the lexeme from a word: it removes a short ending, and turns `y` into `i`.
fn is_stem(lexeme: &str, word: &str) -> bool {
    const LEAST: usize = 3;
    const CUT: usize = 2;
    let begins = |stem: &str| word.strip_prefix(stem).is_some_and(|end| end.chars().count() <= CUT);
    let of_y = lexeme.strip_suffix('i').is_some_and(|stem| word.strip_prefix(stem) == Some("y"));
    lexeme.chars().count() >= LEAST && (begins(lexeme) || of_y)
}

/// The lexemes of a vector: the word, its positions, and its text in the vector.
fn lexemes(vector: &str) -> impl Iterator<Item = (String, &str, &str)> {
    let mut rest = vector.trim_start();
    std::iter::from_fn(move || {
        let (word, behind) = lexeme(rest)?;
        let (places, next) = behind.split_once(' ').unwrap_or((behind, ""));
        let whole = &rest[..rest.len() - behind.len() + places.len()];
        rest = next.trim_start();
        Some((word, places, whole))
    })
}

/// The quoted word at the start, without its quotes, and the rest.
fn lexeme(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('\'')?;
    let mut word = String::new();
    let mut letters = inner.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            // Quotes and backslashes are doubled within the word.
            '\'' | '\\' if letters.next_if(|(_, next)| *next == letter).is_some() => word.push(letter),
            '\'' => return Some((word, &inner[at + 1..])),
            _ => word.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handle_is_in_a_vector_is_taken_out() {
        for (vector, handle, left) in [
            ("'call':1 'joao':3 'joao-silva':2A 'now':5 'silva':4", "joao-silva", "'call':1 'now':5"),
            ("'ask':1 'curi':3 'mari':2 'market':4 'silk':5", "Marie Curie-Silva", "'ask':1 'market':4 'silk':5"),
            ("'ask':1 'mari':2", "Mary", "'ask':1"),
            ("'ana@x.example':2 'b\\\\c':1 'it''s'", "ana@x.example", "'b\\\\c':1 'it''s'"),
            ("'a':1", "a", ""),
        ] {
            assert_eq!(without(vector, &[handle]), left, "{vector}");
        }
    }

    #[test]
    fn words_come_in_the_order_of_their_text() {
        for (vector, text) in [
            ("'call':1 'dmitri':2 'malley':4 'now':5A 'o':3B", "call dmitri o malley now"),
            ("'a':2,4 'b':1,3C", "b a b a"),
            ("'it''s' 'b\\\\c':1", "b\\c it's"),
            ("'x' 'y'", "x y"),
            ("", ""),
            ("'cut", ""),
            ("not one", ""),
        ] {
            assert_eq!(in_order(vector), text, "{vector}");
        }
    }
}
