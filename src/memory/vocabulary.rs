//! The stored words for the status and outcome of an episode, and their canonical equivalents.

/// Canonical words, each with its synonyms, in lower case.
#[derive(Debug, PartialEq, Eq)]
pub struct Vocabulary {
    words: &'static [(&'static str, &'static [&'static str])],
    /// Meaning of an unknown word; `None` if it is kept.
    other: Option<&'static str>,
}

static OUTCOMES: Vocabulary = Vocabulary {
    words: &[
        (
            "success",
            &["succeeded", "successful", "completed", "complete", "done", "passed", "ok", "resolved", "solved"],
        ),
        ("failure", &["failed", "fail", "error", "errored", "unresolved", "timeout", "timed_out"]),
        ("partial", &["partially", "partial_success", "partially_resolved", "incomplete"]),
        ("aborted", &["abort", "abandoned", "cancelled", "canceled", "interrupted", "stopped"]),
        ("ongoing", &["running", "in_progress", "active", "pending", "open"]),
        ("unknown", &[]),
    ],
    other: Some("unknown"),
};

static STATUSES: Vocabulary = Vocabulary {
    words: &[
        ("active", &["running", "in_progress", "ongoing", "pending", "open"]),
        ("summarized", &["summarised", "consolidated"]),
        ("archived", &["archive"]),
        ("closed", &["completed", "complete", "done", "finished", "ended", "failed", "succeeded"]),
        ("abandoned", &["cancelled", "canceled", "aborted"]),
    ],
    other: None,
};

/// The vocabulary of an episode's column; `None` for columns with arbitrary words.
pub fn of_episode(column: &str) -> Option<&'static Vocabulary> {
    match column {
        "outcome" => Some(&OUTCOMES),
        "status" => Some(&STATUSES),
        _ => None,
    }
}

/// The canonical word of an outcome, trimmed; `None` for an unknown word.
pub fn outcome(word: &str) -> Option<&'static str> {
    OUTCOMES.known(&word.trim().to_ascii_lowercase())
}

impl Vocabulary {
    /// Returns the meaning of a stored word: `failed`, `Failed` and `FAILED` are a failure. `None` if it is unknown and
    /// kept.
    pub fn canonical(&self, word: &str) -> Option<&'static str> {
        let lower = word.to_ascii_lowercase();
        self.known(&lower).filter(|_| spellings(&lower).iter().any(|s| s == word)).or(self.other)
    }

    /// The canonical word for one in lower case; `None` if unknown.
    fn known(&self, lower: &str) -> Option<&'static str> {
        let known = self.words.iter().find(|(canonical, others)| *canonical == lower || others.contains(&lower));
        known.map(|(canonical, _)| *canonical)
    }

    /// The meaning of unknown words; `None` if they are kept.
    pub fn other(&self) -> Option<&'static str> {
        self.other
    }

    /// The canonical words.
    pub fn canonical_words(&self) -> impl Iterator<Item = &'static str> {
        self.words.iter().map(|(word, _)| *word)
    }

    /// Every spelling with a canonical meaning. `None` if unknown words have it too.
    pub fn meaning(&self, canonical: &str) -> Option<Vec<String>> {
        if self.other == Some(canonical) {
            return None;
        }
        let others = self.words.iter().find(|(word, _)| *word == canonical).map_or(&[][..], |(_, others)| others);
        Some(std::iter::once(canonical).chain(others.iter().copied()).flat_map(spellings).collect())
    }
}

/// A word in the three cases that databases use; so few that an index can find them.
fn spellings(word: &str) -> [String; 3] {
    let mut first = word.to_owned();
    if let Some(letter) = first.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    [word.to_owned(), word.to_ascii_uppercase(), first]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_word_means_is_found_by_its_meaning() {
        for column in ["outcome", "status"] {
            let vocabulary = of_episode(column).expect("a vocabulary");
            for (canonical, others) in vocabulary.words {
                for word in std::iter::once(canonical).chain(*others).flat_map(|word| spellings(word)) {
                    assert_eq!(vocabulary.canonical(&word), Some(*canonical), "{column} {word}");
                    assert!(vocabulary.meaning(canonical).is_none_or(|all| all.contains(&word)), "{column} {word}");
                }
            }
        }
        assert_eq!(OUTCOMES.canonical("a draw"), Some("unknown"));
        assert_eq!(OUTCOMES.canonical("sUCCess"), Some("unknown"), "it is not found by an index either");
        assert_eq!(STATUSES.canonical("paused"), None);
    }
}
