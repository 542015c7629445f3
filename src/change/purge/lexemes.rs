//! The words of a text-search vector (`'call':1 'dmitri':2 'malley':4,9`) in the order of the text that they come from:
//! the vector sorts them, and a name of several words would not be found in it.

/// The words by their first to last places; those without a place come at the end, as the vector has them.
#[must_use]
pub fn in_order(vector: &str) -> String {
    let mut words: Vec<(u32, String)> = Vec::new();
    let mut rest = vector.trim_start();
    while let Some((word, behind)) = lexeme(rest) {
        let (places, next) = behind.split_once(' ').unwrap_or((behind, ""));
        // A place may have a weight: `3A`.
        let place = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok();
        let found: Vec<u32> = places.trim_start_matches(':').split(',').filter_map(place).collect();
        if found.is_empty() {
            words.push((u32::MAX, word));
        } else {
            words.extend(found.into_iter().map(|place| (place, word.clone())));
        }
        rest = next.trim_start();
    }
    words.sort_by_key(|(place, _)| *place);
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    words.join(" ")
}

/// A quoted word at the start, without its quotes, and what follows it.
fn lexeme(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('\'')?;
    let mut word = String::new();
    let mut letters = inner.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            // Both are doubled within.
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
