//! Keyword likeness, for queries without a vector: the share of the asked words in a text, with rare words counting
//! more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::Value;

use super::features::{all_text, asked_text, each_text, word_parts};
use super::rank::Ranking;
use crate::memory::json::JsonPart;
use crate::memory::{Entity, Row};

/// Text of a row that is compared with the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedText {
    /// All that it is found by: see [`text_of`].
    Whole,
    /// Situation and outcome of an episode, as `similar` compares them.
    SituationAndOutcome,
}

impl ComparedText {
    /// Selects the text that a ranking compares in rows of a kind.
    pub fn of_ranking(ranking: Ranking, kind: Entity) -> Self {
        if ranking == Ranking::Similar && kind == Entity::Episode {
            ComparedText::SituationAndOutcome
        } else {
            ComparedText::Whole
        }
    }

    /// The text.
    pub fn of(self, row: &Row) -> String {
        match self {
            ComparedText::Whole => text_of(row),
            ComparedText::SituationAndOutcome => situation_and_outcome(row),
        }
    }

    /// Passes the text to `each` in parts that end between words.
    pub fn each_part(self, row: &Row, each: &mut dyn FnMut(&str)) {
        match self {
            ComparedText::Whole => match columns_of(row.entity) {
                Some(columns) => columns.iter().for_each(|column| each_text(row.json(column), each)),
                None => each(&text_of(row)),
            },
            ComparedText::SituationAndOutcome => each(&situation_and_outcome(row)),
        }
    }
}

/// The columns searched for a row; `None` for cases, which are found by their question.
fn columns_of(entity: Entity) -> Option<&'static [&'static str]> {
    match entity {
        Entity::Case => None,
        Entity::Memory => Some(&["title", "text", "collection", "tags"]),
        _ => Some(&["title", "summary", "detail", "observation", "topic", "domain", "tags", "workflow_name"]),
    }
}

/// The columns that contain those words.
pub fn text_columns(entity: Entity) -> &'static [&'static str] {
    columns_of(entity).unwrap_or(&["prompt", "tags"])
}

/// The words by which a row is found.
pub fn text_of(row: &Row) -> String {
    let Some(columns) = columns_of(row.entity) else {
        return format!("{}\n{}", asked_text(row.json("prompt")), row.list("tags").join("\n"));
    };
    let parts: Vec<String> = columns.iter().map(|c| all_text(row.json(c))).filter(|t| !t.is_empty()).collect();
    parts.join("\n")
}

/// Situation and outcome of an episode, as `similar` compares them.
fn situation_and_outcome(episode: &Row) -> String {
    let told = |column: &str| all_text(episode.json(column));
    let situation = match told("observation") {
        text if text.is_empty() => format!("{}\n{}", told("title"), told("summary")),
        text => text,
    };
    let outcome = match episode.json("result") {
        JsonPart::Value(Value::Null) => told("summary"),
        JsonPart::Value(Value::Number(number)) => number.to_string(),
        other => all_text(other),
    };
    format!("{situation}\n{outcome}\n{}", told("workflow_name"))
}

/// Non-ASCII letters that become ASCII in lower case.
const BECOME_PLAIN: [char; 2] = ['\u{130}', '\u{212a}'];

/// Total bytes of words up to which any kind of search needs at most about 1 MB.
const FEW: usize = 4_096;

/// Asked words found in a text: one bit per word, in order.
pub type HeldWords = Vec<u64>;

/// Finds asked words in texts, without splitting every text into words.
#[derive(Debug)]
pub struct WordFinder {
    /// Sorted, without repeats.
    asked: Vec<String>,
    /// Finds the words within plain text; `None` if there are none.
    needles: Option<AhoCorasick>,
    /// Whether all consist of ASCII letters and digits.
    plain: bool,
}

impl WordFinder {
    /// Searches for these words, in the form of [`super::features::words`].
    pub fn new(asked: &BTreeSet<String>) -> WordFinder {
        let asked: Vec<String> = asked.iter().cloned().collect();
        let mut builder = AhoCorasick::builder();
        // The fastest automaton needs most memory per letter.
        let kind = (asked.iter().map(String::len).sum::<usize>() <= FEW).then_some(AhoCorasickKind::DFA);
        let needles = builder.ascii_case_insensitive(true).kind(kind).build(&asked).ok().filter(|_| !asked.is_empty());
        let plain = asked.iter().all(|word| word.is_ascii());
        WordFinder { asked, needles, plain }
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Finds the words in a row's compared text.
    pub fn held_by(&self, row: &Row, text: ComparedText) -> HeldWords {
        let mut held = self.none();
        text.each_part(row, &mut |part| self.find(part, &mut held));
        held
    }

    /// Finds the words in a text.
    pub fn held(&self, text: &str) -> HeldWords {
        let mut held = self.none();
        self.find(text, &mut held);
        held
    }

    fn none(&self) -> HeldWords {
        vec![0; self.asked.len().div_ceil(64)]
    }

    fn find(&self, text: &str, held: &mut HeldWords) {
        let Some(needles) = &self.needles else { return };
        if text.is_ascii() {
            for found in needles.find_overlapping_iter(text) {
                let at = found.pattern().as_usize();
                let bit = 1 << (at % 64);
                if held[at / 64] & bit == 0 && stands_alone(text.as_bytes(), found.range()) {
                    held[at / 64] |= bit;
                }
            }
        } else if !self.plain || text.contains(BECOME_PLAIN) || needles.is_match(text) {
            // Other letters are parted by other rules.
            for word in word_parts(text).map(str::to_lowercase) {
                if let Ok(at) = self.asked.binary_search(&word) {
                    held[at / 64] |= 1 << (at % 64);
                }
            }
        }
    }
}

/// Whether [`word_parts`] would separate a range of plain text from its surroundings. The range begins and ends with a
/// letter or a digit.
fn stands_alone(text: &[u8], range: Range<usize>) -> bool {
    let alike = |a: u8, b: u8| a.is_ascii_digit() == b.is_ascii_digit() && b.is_ascii_alphanumeric();
    // An apostrophe joins letters, and digits as commas do.
    let joined = |own: u8, next: Option<u8>, after: Option<u8>| match (next, after) {
        (Some(next), _) if next.is_ascii_alphanumeric() => true,
        (Some(b'\''), Some(after)) => alike(own, after),
        (Some(b',' | b';'), Some(after)) => own.is_ascii_digit() && after.is_ascii_digit(),
        _ => false,
    };
    let (Some(first), Some(last)) = (text.get(range.start), range.end.checked_sub(1).and_then(|at| text.get(at)))
    else {
        return false;
    };
    let before = |steps: usize| range.start.checked_sub(steps).and_then(|at| text.get(at)).copied();
    let behind = |steps: usize| text.get(range.end + steps).copied();
    !joined(*first, before(1), before(2)) && !joined(*last, behind(0), behind(1))
}

/// Number of texts with each asked word, which determines its weight.
#[derive(Debug, Clone, Default)]
pub struct WordTally {
    counts: Vec<usize>,
    texts: usize,
}

impl WordTally {
    /// Counts a text with these of the `asked` words.
    pub fn add(&mut self, asked: &WordFinder, held: &HeldWords) {
        self.texts += 1;
        self.counts.resize(asked.asked.len(), 0);
        for (at, count) in self.counts.iter_mut().enumerate() {
            *count += usize::from(holds(held, at));
        }
    }

    /// The share of the asked words in a text, in 0..1, weighted by rarity: ln(1 + texts / texts with the word). 0 if
    /// nothing is asked.
    pub fn share(&self, held: &HeldWords) -> f64 {
        let rarity = |count: usize| (1.0 + self.texts as f64 / count.max(1) as f64).ln();
        let all: f64 = self.counts.iter().map(|count| rarity(*count)).sum();
        let found = self.counts.iter().enumerate().filter(|(at, _)| holds(held, *at));
        if all > 0.0 { (found.map(|(_, count)| rarity(*count)).sum::<f64>() / all).min(1.0) } else { 0.0 }
    }
}

fn holds(held: &HeldWords, at: usize) -> bool {
    held.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
}

/// The [`WordTally::share`] of each text among all of them, given the texts' distinct words.
pub fn shares_told(asked: &BTreeSet<String>, told: &[&BTreeSet<String>]) -> Vec<f64> {
    let held: Vec<Vec<&str>> =
        told.iter().map(|words| asked.iter().filter(|w| words.contains(*w)).map(String::as_str).collect()).collect();
    let mut counts: BTreeMap<&str, usize> = asked.iter().map(|w| (w.as_str(), 0)).collect();
    for word in held.iter().flatten() {
        if let Some(count) = counts.get_mut(word) {
            *count += 1;
        }
    }
    let rarity = |word: &str| match counts.get(word) {
        Some(0) | None => (1.0 + told.len() as f64).ln(),
        Some(count) => (1.0 + told.len() as f64 / *count as f64).ln(),
    };
    let all: f64 = asked.iter().map(|w| rarity(w)).sum();
    held.iter()
        .map(|found| if all > 0.0 { (found.iter().map(|w| rarity(w)).sum::<f64>() / all).min(1.0) } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::features::words;
    use super::*;

    fn shares(asked: &str, texts: &[&str]) -> Vec<f64> {
        let finder = WordFinder::new(&words(asked));
        let held: Vec<HeldWords> = texts.iter().map(|text| finder.held(text)).collect();
        let mut tally = WordTally::default();
        held.iter().for_each(|held| tally.add(&finder, held));
        held.iter().map(|held| tally.share(held)).collect()
    }

    #[test]
    fn rare_words_count_more_and_nonsense_counts_nothing() {
        let texts = ["tax form for spring", "the form", "the form again"];
        let found = shares("Tax form", &texts);
        assert!((found[0] - 1.0).abs() < 1e-12 && found[1] < 0.5 && (found[1] - found[2]).abs() < 1e-12);
        assert_eq!(shares("qwxyz", &texts), [0.0; 3]);
        assert_eq!(shares("", &texts), [0.0; 3]);
    }

    proptest! {
        #[test]
        fn words_are_found_as_if_the_text_were_parted(
            text in "[aAbB1,;.':_ \\-]{0,24}|[abK\u{212A}\u{130}iIß1' ]{0,16}", asked in "[ab1',;._ ik]{0,12}"
        ) {
            let (asked, told) = (words(&asked), words(&text));
            let held = WordFinder::new(&asked).held(&text);
            for (at, word) in asked.iter().enumerate() {
                prop_assert_eq!(holds(&held, at), told.contains(word), "{:?} in {:?}", word, text);
            }
        }

        #[test]
        fn shares_are_those_of_known_words(texts in prop::collection::vec("[abc ]{0,8}", 1..12), asked in "[abcd ]{0,8}") {
            let told: Vec<BTreeSet<String>> = texts.iter().map(|text| words(text)).collect();
            let known = shares_told(&words(&asked), &told.iter().collect::<Vec<_>>());
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(shares(&asked, &texts), known);
        }
    }
}
