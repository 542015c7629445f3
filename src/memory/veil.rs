//! The last filter before display: replaces known handles of people that remain in a text, a key, a path or an error by
//! their pseudonyms.

use aho_corasick::{AhoCorasick, MatchKind};

use super::entity::Entity;
use super::mask::Mask;

/// Shortest handle in characters: shorter ones occur in other words.
const SHORTEST: usize = 4;

/// Replaces known handles of people in finished text.
pub struct Veil {
    finder: AhoCorasick,
    /// Pseudonym shown for each pattern.
    pseudonyms: Vec<String>,
}

impl std::fmt::Debug for Veil {
    /// Without the handles, which belong in no report.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Veil").field("handles", &self.pseudonyms.len()).finish_non_exhaustive()
    }
}

/// Equal pseudonyms belong to equal handles.
impl PartialEq for Veil {
    fn eq(&self, other: &Self) -> bool {
        self.pseudonyms == other.pseudonyms
    }
}

impl Veil {
    /// Creates a veil over some people's handles, in any case. Numbers, and words that name a column or a kind of row,
    /// are left out: replacing those would corrupt the output. `None` if nothing is left to hide.
    pub fn new(mask: &Mask, handles: impl IntoIterator<Item = String>) -> Option<Self> {
        let (mut patterns, mut pseudonyms) = (Vec::new(), Vec::new());
        for handle in handles.into_iter().filter(|handle| is_telling(handle)) {
            let escaped = serde_json::Value::from(handle.as_str()).to_string();
            let escaped = escaped[1..escaped.len() - 1].to_owned();
            let lower = handle.to_lowercase();
            let pseudonym = mask.pseudonym("user_id", &handle);
            let mut spellings = vec![handle, escaped, lower];
            spellings.dedup();
            pseudonyms.extend(spellings.iter().map(|_| pseudonym.clone()));
            patterns.append(&mut spellings);
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .ok()?;
        (!patterns.is_empty()).then_some(Veil { finder, pseudonyms })
    }

    /// Replaces handles that are whole words by their pseudonyms.
    pub fn over(&self, text: &str) -> String {
        self.change(text).unwrap_or_else(|| text.to_owned())
    }

    /// As [`Veil::over`]; `None` if the text contains no handle.
    pub fn change(&self, text: &str) -> Option<String> {
        let (mut out, mut from) = (String::new(), 0);
        for found in self.finder.find_iter(text) {
            let (before, after) = (&text[..found.start()], &text[found.end()..]);
            if !ends_word(before) || after.chars().next().is_some_and(char::is_alphanumeric) {
                continue;
            }
            out.push_str(&text[from..found.start()]);
            out.push_str(&self.pseudonyms[found.pattern().as_usize()]);
            from = found.end();
        }
        (from > 0).then(|| out + &text[from..])
    }
}

/// Whether a new word may begin after a text; the letter of a JSON escape is not part of a word.
fn ends_word(before: &str) -> bool {
    let escape = |letter: &char| before.ends_with(&format!("\\{letter}"));
    !before.chars().next_back().is_some_and(char::is_alphanumeric) || ['n', 'r', 't', 'b', 'f'].iter().any(escape)
}

fn is_telling(handle: &str) -> bool {
    let is_number = || handle.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let word = handle.to_lowercase();
    let is_ours = || {
        Entity::ALL.iter().any(|e| e.name() == word || e.column(&word).is_some())
            || matches!(word.as_str(), "true" | "false" | "null" | "rows" | "next" | "problems")
    };
    handle.chars().count() >= SHORTEST && !is_number() && !is_ours()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_hidden_wherever_they_stand_as_words() {
        let mask = Mask::new([1; 32]);
        let handles =
            ["maria.k", "Maria Ki\u{e9}", "maria.k@x.org", "4711", "episode", "a\"bc", "NULL", "Title", "rows"];
        let veil = Veil::new(&mask, handles.map(str::to_owned)).unwrap();
        let person = mask.pseudonym("user_id", "maria.k");
        assert_eq!(veil.over("prefs:maria.k/MARIA.K_x"), format!("prefs:{person}/{person}_x"));
        assert_eq!(veil.over("{\"maria.k\": \"\\tmaria.k\"}"), format!("{{\"{person}\": \"\\t{person}\"}}"));
        for told in ["mail maria.k@x.org now", "MARIA KI\u{e9} said", "\"a\\\"bc\"", "maria ki\u{e9}"] {
            assert!(veil.over(told).contains("person-"), "{told}");
        }
        for other in ["xmaria.k", "maria.kr", "4711", "an episode", "maria", "{\"rows\": [{\"title\": null}]}"] {
            assert_eq!(veil.over(other), other);
        }
        assert!(Veil::new(&mask, ["1".to_owned()]).is_none());
    }
}
