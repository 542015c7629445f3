//! Suggests the known name that was probably meant instead of an unknown one.

use strsim::{osa_distance, sorensen_dice};

/// Least share of common letter pairs for a suggestion, if too many letters differ.
const ALIKE: f64 = 0.5;

/// Most names listed in a message.
const LISTED: usize = 24;

/// Least letters of a prefix that identify a name.
const BEGINNING: usize = 3;

/// The shortest candidate with the prefix `word`, ignoring ASCII case, if that has at least `BEGINNING` letters;
/// otherwise the candidate with the fewest inserted, removed, replaced or swapped letters. If even that one differs by
/// more than half of the longer name, the candidate with most letter pairs in common: `sheets` for `spreadsheet`.
/// `None` if there is neither. The first of several equals.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let begun = candidates.iter().copied().filter(|name| name.to_ascii_lowercase().starts_with(&word));
    if let Some(name) = begun.min_by_key(|name| name.len()).filter(|_| word.chars().count() >= BEGINNING) {
        return Some(name);
    }
    let mut close: Option<(usize, &str)> = None;
    let mut alike: Option<(f64, &str)> = None;
    for candidate in candidates {
        let plain = candidate.to_ascii_lowercase();
        let edits = osa_distance(&word, &plain);
        let is_close = edits * 2 <= word.chars().count().max(plain.chars().count());
        if is_close && close.is_none_or(|(least, _)| edits < least) {
            close = Some((edits, candidate));
        }
        let share = sorensen_dice(&word, &plain);
        if share >= ALIKE && alike.is_none_or(|(most, _)| share > most) {
            alike = Some((share, candidate));
        }
    }
    close.map(|(_, name)| name).or(alike.map(|(_, name)| name))
}

/// The message for an unknown `what`, with a suggestion and a list of the known names.
pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    format!("there is no {what} `{word}`; {hint}{}", listed(&known))
}

/// `known are a, b and c`, limited to a line's length.
fn listed(known: &[&str]) -> String {
    if known.is_empty() {
        return "there are none yet".to_owned();
    }
    let more = known.len().saturating_sub(LISTED);
    let names = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { format!("known are {names}") } else { format!("known are {names} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_fewest_edits_is_meant() {
        let names = ["rating", "kind", "correction", "created_at", "user_id"];
        for (word, expected) in [
            ("raiting", Some("rating")),
            ("Rating", Some("rating")),
            ("kidn", Some("kind")),
            ("userid", Some("user_id")),
            ("create_at", Some("created_at")),
            ("corr", Some("correction")),
            ("user", Some("user_id")),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn a_name_that_holds_most_of_the_word_is_meant_where_none_is_close() {
        assert_eq!(nearest("spreadsheet", ["terminal", "sheets", "email"]), Some("sheets"));
        assert_eq!(nearest("spreadsheet", ["terminal", "email"]), None);
    }

    #[test]
    fn an_unknown_word_is_answered_with_what_there_is() {
        let known = ["home", "work"];
        assert_eq!(
            unknown("profile", "hoem", known),
            "there is no profile `hoem`; did you mean `home`? known are home, work"
        );
        assert_eq!(unknown("profile", "x", []), "there is no profile `x`; there are none yet");
    }
}
