//! What can be told of an episode from its own texts by plain rules: who took part, which tools were used, what was
//! spoken of, tags and outcome. Pure; the same texts always give the same answer, and nothing leaves the machine.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Tags that are given at most.
const TAGS: usize = 5;
/// Things of one kind that are kept at most.
const KEPT: usize = 20;
/// Characters of a text that are read; the rest says nothing new.
const READ: usize = 100_000;

/// The rules in words, for people.
pub const RULES: &[&str] = &[
    "participants: speakers (`name:` at the start of a line), @names, mail addresses",
    "tools: names after tool, tool_name, function and used, calls such as get_order(, and the sources of segments of the \
     kind tool",
    "entities: codes such as INV-204, numbers such as #17, quoted names, two or more capitalised words in a row",
    "tags: the three to five most frequent words of at least four letters that are no filler; of the first mentioned \
     among equals",
    "outcome: the last word of success (done, resolved, completed, approved …), partial success (partly, partially) or \
     failure (failed, error, unable, rejected …) that no `not` stands before",
];

/// A piece of an episode, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its kind, such as `message` or `tool`.
    pub kind: Option<&'a str>,
    /// Where it comes from, such as the name of a tool.
    pub source: Option<&'a str>,
    /// What it says.
    pub text: &'a str,
}

/// What was found in an episode's texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extract {
    /// Who took part.
    pub participants: Vec<String>,
    /// Tools that were used.
    pub tools: Vec<String>,
    /// What was spoken of.
    pub entities: Vec<String>,
    /// At most five words.
    pub tags: Vec<String>,
    /// `success`, `partial` or `failure`.
    pub outcome: Option<&'static str>,
}

impl Extract {
    /// As it is stored: only what was found, `{}` when nothing was.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let lists = [
            ("participants", &self.participants),
            ("tools_used", &self.tools),
            ("entities", &self.entities),
            ("tags", &self.tags),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            object.insert(key.to_owned(), json!(list));
        }
        if let Some(outcome) = self.outcome {
            object.insert("outcome".to_owned(), json!(outcome));
        }
        Value::Object(object)
    }
}

/// Reads the pieces of an episode.
#[must_use]
pub fn extract(pieces: &[Piece<'_>]) -> Extract {
    let mut found = Extract::default();
    let mut words: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut place = 0;
    for piece in pieces {
        let end = piece.text.char_indices().nth(READ).map_or(piece.text.len(), |(at, _)| at);
        let text = &piece.text[..end];
        if piece.kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("tool")) {
            add(&mut found.tools, piece.source.filter(|s| is_name(s)));
        }
        participants(text, &mut found.participants);
        tools(text, &mut found.tools);
        entities(text, &mut found.entities);
        for word in spoken(text) {
            place += 1;
            words.entry(word).or_insert((0, place)).0 += 1;
        }
        found.outcome = outcome(text).or(found.outcome);
    }
    found.tags = tags(words);
    found
}

fn add(list: &mut Vec<String>, item: Option<&str>) {
    if let Some(item) = item.map(str::trim).filter(|item| !item.is_empty())
        && list.len() < KEPT
        && !list.iter().any(|known| known == item)
    {
        list.push(item.to_owned());
    }
}

fn is_name(word: &str) -> bool {
    (2..=60).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn participants(text: &str, found: &mut Vec<String>) {
    for line in text.lines() {
        let speaker = line.split_once(':').map(|(before, _)| before.trim());
        add(found, speaker.filter(|s| s.len() <= 30 && s.split(' ').count() <= 2 && s.split(' ').all(is_speaker)));
    }
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | ',' | ';' | '"')) {
        let word = word.trim_end_matches(['.', ':', '!', '?']);
        match word.split_once('@') {
            Some(("", name)) if is_name(name) => add(found, Some(name)),
            Some((name, host)) if host.contains('.') && is_mail_part(name) && is_mail_part(host) => {
                add(found, Some(word));
            }
            _ => {}
        }
    }
}

fn is_speaker(word: &str) -> bool {
    const NO_SPEAKERS: &[&str] = &["http", "https", "Note", "Error", "Warning", "Result", "Summary", "TODO"];
    let letters = word.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '_'));
    letters && !word.is_empty() && word.starts_with(char::is_uppercase) && !NO_SPEAKERS.contains(&word)
        || matches!(word, "user" | "assistant" | "agent" | "system")
}

fn is_mail_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
}

fn tools(text: &str, found: &mut Vec<String>) {
    const BEFORE: &[&str] = &["tool", "tool_name", "function", "used", "tools_used"];
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .filter(|w| !w.is_empty())
        .collect();
    for pair in words.windows(2) {
        // A name of several parts: plain words follow these ones too.
        let parts = |w: &str| w.trim_end_matches('.').contains(['_', '.']) && is_name(w);
        if BEFORE.contains(&pair[0].to_ascii_lowercase().as_str()) && parts(pair[1]) {
            add(found, Some(pair[1].trim_end_matches('.')));
        }
    }
    for (at, _) in text.match_indices('(') {
        let before = &text[..at];
        let start = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
        let name = &before[start..];
        add(found, Some(name).filter(|n| n.contains('_') && is_name(n) && n.chars().all(|c| !c.is_ascii_uppercase())));
    }
}

fn entities(text: &str, found: &mut Vec<String>) {
    let mut run: Vec<&str> = Vec::new();
    let mut starts = true;
    for raw in text.split_whitespace() {
        let word = raw.trim_matches(|c: char| !(c.is_alphanumeric() || c == '#'));
        let code = word.contains('-')
            && word.chars().any(|c| c.is_ascii_digit())
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
        let number = word.strip_prefix('#').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
        if code || number {
            add(found, Some(word));
        }
        let name = word.chars().count() > 1
            && word.starts_with(char::is_uppercase)
            && word.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-');
        if name && !(starts && run.is_empty() && is_filler(&word.to_lowercase())) {
            run.push(word);
        } else {
            close(&mut run, found);
        }
        starts = raw.ends_with(['.', '!', '?', ':']);
        if raw.ends_with(['.', '!', '?', ':', ',', ';']) {
            close(&mut run, found);
        }
    }
    close(&mut run, found);
    for quoted in text.split('"').skip(1).step_by(2) {
        let short = quoted.chars().count() <= 40 && quoted.starts_with(char::is_uppercase) && !quoted.contains('\n');
        add(found, Some(quoted).filter(|_| short));
    }
}

fn close(run: &mut Vec<&str>, found: &mut Vec<String>) {
    if run.len() > 1 {
        add(found, Some(&run.join(" ")));
    }
    run.clear();
}

/// Words of a text that may be tags.
fn spoken(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphabetic())
        .filter(|word| (4..=24).contains(&word.chars().count()))
        .map(str::to_lowercase)
        .filter(|word| !is_filler(word))
}

fn tags(words: BTreeMap<String, (usize, usize)>) -> Vec<String> {
    let mut words: Vec<(String, (usize, usize))> = words.into_iter().collect();
    words.sort_by_key(|(_, (count, place))| (std::cmp::Reverse(*count), *place));
    words.into_iter().take(TAGS).map(|(word, _)| word).collect()
}

fn outcome(text: &str) -> Option<&'static str> {
    const GOOD: &[&str] =
        &["done", "resolved", "completed", "succeeded", "successful", "successfully", "approved", "fixed", "solved"];
    const HALF: &[&str] = &["partly", "partially", "partial"];
    const BAD: &[&str] =
        &["failed", "failure", "error", "unable", "rejected", "aborted", "unresolved", "crashed", "denied"];
    let mut before = String::new();
    let mut last = None;
    for word in text.split(|c: char| !(c.is_alphabetic() || c == '\'')).filter(|w| !w.is_empty()) {
        let word = word.to_lowercase();
        let turned = matches!(before.as_str(), "not" | "no" | "never" | "without") || before.ends_with("n't");
        let half = HALF.contains(&before.as_str());
        if HALF.contains(&word.as_str()) || half && GOOD.contains(&word.as_str()) {
            last = Some("partial");
        } else if GOOD.contains(&word.as_str()) {
            last = Some(if turned { "failure" } else { "success" });
        } else if BAD.contains(&word.as_str()) && !turned {
            last = Some("failure");
        }
        before = word;
    }
    last
}

fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "about",
        "above",
        "after",
        "again",
        "agent",
        "also",
        "always",
        "another",
        "anything",
        "assistant",
        "because",
        "been",
        "before",
        "being",
        "below",
        "both",
        "cannot",
        "come",
        "could",
        "does",
        "doing",
        "done",
        "down",
        "during",
        "each",
        "else",
        "even",
        "ever",
        "every",
        "false",
        "from",
        "further",
        "give",
        "given",
        "goes",
        "going",
        "have",
        "having",
        "here",
        "hers",
        "into",
        "itself",
        "just",
        "know",
        "last",
        "less",
        "like",
        "made",
        "make",
        "many",
        "more",
        "most",
        "much",
        "must",
        "need",
        "next",
        "none",
        "null",
        "once",
        "only",
        "other",
        "ours",
        "over",
        "please",
        "same",
        "shall",
        "should",
        "since",
        "some",
        "such",
        "sure",
        "take",
        "than",
        "thank",
        "thanks",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "this",
        "those",
        "through",
        "true",
        "under",
        "until",
        "upon",
        "user",
        "very",
        "want",
        "was",
        "well",
        "went",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
        "without",
        "would",
        "your",
        "yours",
        "the",
        "and",
        "for",
        "but",
        "you",
        "are",
        "not",
    ];
    FILLERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(text: &str) -> Piece<'_> {
        Piece { kind: Some("message"), source: None, text }
    }

    #[test]
    fn each_rule_finds_what_it_says() {
        let said = "Ana: Please pay invoice INV-204 of Blue Harbour Trading, see #17. cc bo@example.org and @carla\n\
                    assistant: I called get_invoice(204) and used payments.transfer. The invoice is paid; the payment \
                    was approved.";
        let found = extract(&[piece(said), Piece { kind: Some("tool_call"), source: Some("ledger"), text: "" }]);
        assert_eq!(found.participants, ["Ana", "assistant", "bo@example.org", "carla"].map(str::to_owned).to_vec());
        assert_eq!(found.tools, ["payments.transfer", "get_invoice", "ledger"]);
        assert_eq!(found.entities, ["INV-204", "Blue Harbour Trading", "#17"]);
        assert_eq!(found.outcome, Some("success"));
        assert_eq!(found.tags.first().map(String::as_str), Some("invoice"));
        assert!((3..=5).contains(&found.tags.len()), "{:?}", found.tags);
    }

    #[test]
    fn nothing_to_read_gives_an_empty_object() {
        assert_eq!(extract(&[]).to_json(), json!({}));
        assert_eq!(extract(&[piece("  \n ")]).to_json(), json!({}));
    }

    #[test]
    fn the_last_word_on_the_outcome_counts() {
        for (text, wanted) in [
            ("it failed at first and was then resolved", Some("success")),
            ("not resolved", Some("failure")),
            ("partially completed", Some("partial")),
            ("no error", None),
            ("we spoke of the weather", None),
        ] {
            assert_eq!(extract(&[piece(text)]).outcome, wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_read_the_same_again(texts in prop::collection::vec(any::<String>(), 0..4)) {
            let pieces: Vec<Piece> = texts.iter().map(|t| piece(t)).collect();
            let found = extract(&pieces);
            prop_assert!(found.tags.len() <= TAGS && found.entities.len() <= KEPT);
            prop_assert_eq!(extract(&pieces), found);
        }
    }
}
