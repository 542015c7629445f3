//! A recall question without its time and vector: it can be saved under a name and asked again.

use serde::{Deserialize, Serialize};

use super::answer::{self, PolicyChoice, RecallRequest};
use super::rank::{self, MOST_ROWS, Ranking};

/// Question for a recall, in a form that can be saved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Ranking to use.
    pub ranking: Ranking,
    /// Policy by its id, or `none` (cases); the active one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Situation as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Id of a stored episode, case or memory used as the situation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Agent that recalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// User to recall for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Number of rows; `None` means the ranking's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<usize>,
    /// Domain to match (proven).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Topic to match (proven).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Workflow of the episodes (similar).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Failures too (similar).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_outcomes: bool,
    /// Whether cases that look like poison are weighed down (cases).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downweight: bool,
}

impl Inquiry {
    /// An empty question.
    pub fn new(ranking: Ranking) -> Self {
        Inquiry { ranking, ..Self::default() }
    }

    /// Whether a situation is named.
    pub fn has_situation(&self) -> bool {
        self.like.is_some() || self.text.as_deref().is_some_and(|text| !text.trim().is_empty())
    }

    /// Whether it can be asked: a ranking by likeness alone needs a situation.
    pub fn is_enough(&self) -> bool {
        self.has_situation() || !matches!(self.ranking, Ranking::Cases | Ranking::Similar)
    }

    /// Most rows, unless the bank sets another number.
    pub fn rows(&self) -> usize {
        self.k.unwrap_or_else(|| self.ranking.default_k()).min(MOST_ROWS)
    }

    /// Note that fewer rows are returned than requested.
    pub fn limited(&self) -> Option<String> {
        self.k.filter(|k| *k > MOST_ROWS).map(|_| rank::limited())
    }

    /// Returns the requested policy.
    pub fn choice(&self) -> PolicyChoice<'_> {
        answer::choice(self.policy.as_deref())
    }

    /// The text to embed, if its vector is useful: a stored row has its own, and proven relevance uses none.
    pub fn text_to_embed(&self) -> Option<&str> {
        let text = self.text.as_deref().filter(|text| !text.trim().is_empty())?;
        (self.ranking != Ranking::Proven && self.like.is_none()).then_some(text)
    }

    /// The request at a moment.
    pub fn request(&self, at: &str) -> RecallRequest {
        let mut inquiry = self.clone();
        inquiry.text.take_if(|text| text.trim().is_empty());
        RecallRequest { inquiry, at: at.to_owned(), ..RecallRequest::default() }
    }

    /// The command-line arguments for the same question, in order.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let text = self.text.as_ref().filter(|text| !text.trim().is_empty());
        // A text that looks like an option goes after `--`.
        let behind = text.is_some_and(|text| text.starts_with('-'));
        words.extend(text.filter(|_| !behind).cloned());
        let options = [
            ("--like", &self.like),
            ("--policy", &self.policy),
            ("--agent", &self.agent),
            ("--user", &self.user),
            ("--domain", &self.domain),
            ("--topic", &self.topic),
            ("--workflow", &self.workflow),
        ];
        words.extend(["--ranking".to_owned(), self.ranking.name().to_owned()]);
        for (name, value) in options {
            words.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        }
        words.extend(self.k.iter().flat_map(|k| ["-k".to_owned(), k.to_string()]));
        words.extend(self.all_outcomes.then(|| "--all-outcomes".to_owned()));
        words.extend(self.downweight.then(|| "--downweight".to_owned()));
        if behind {
            words.push("--".to_owned());
            words.extend(text.cloned());
        }
        words
    }
}

/// A saved question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedQuestion {
    /// Name of the question, unique within a database.
    pub name: String,
    /// The saved question.
    #[serde(flatten)]
    pub inquiry: Inquiry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_everything_that_is_asked() {
        let asked = Inquiry {
            text: Some("--help me".into()),
            agent: Some("a 1".into()),
            k: Some(7),
            all_outcomes: true,
            ..Inquiry::new(Ranking::Similar)
        };
        let words = asked.words();
        assert_eq!(
            words.iter().map(String::as_str).collect::<Vec<_>>(),
            ["--ranking", "similar", "--agent", "a 1", "-k", "7", "--all-outcomes", "--", "--help me"]
        );
        assert!(asked.is_enough() && !Inquiry::new(Ranking::Cases).is_enough());
    }

    #[test]
    fn only_a_text_that_is_compared_needs_a_vector() {
        let text = |ranking| Inquiry { text: Some("visa".into()), ..Inquiry::new(ranking) };
        assert_eq!(text(Ranking::Boosted).text_to_embed(), Some("visa"));
        assert_eq!(text(Ranking::Proven).text_to_embed(), None);
        assert_eq!(Inquiry { like: Some("e".into()), ..text(Ranking::Boosted) }.text_to_embed(), None);
    }
}
