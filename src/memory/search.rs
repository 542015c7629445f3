//! Full-text search: the query, the searched columns, and the matches in a row.

use std::borrow::Cow;

use serde_json::Value;

use super::entity::{Entity, Personal};
use super::json::{JsonPart, JsonText, each_text};
use super::row::Row;

/// Searched entities, in order.
pub const SEARCHED: &[Entity] = &[Entity::Episode, Entity::Segment, Entity::Feedback, Entity::Case, Entity::Memory];

/// Most words and phrases of a query.
const TERMS: usize = 32;
/// Most characters of a query.
const LENGTH: usize = 1_000;
/// Characters of a snippet before and after the first match.
const BEFORE: usize = 40;
const AFTER: usize = 120;
/// Last letters of a word that an index may have ignored.
const ENDING: usize = 3;

/// Terms to search for: every one must occur somewhere in the texts of a row, in any order and any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    terms: Vec<String>,
}

/// Best match of the search terms in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The canonical column with most terms; the first of several.
    pub column: &'static str,
    /// Text of that column around the first of those terms, on one line.
    pub snippet: String,
}

impl Search {
    /// Parses words; text in double quotes is one term.
    ///
    /// # Errors
    /// The query is empty or too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > LENGTH || text.contains('\0') {
            return Err(format!("a search has at most {LENGTH} characters, and no NUL"));
        }
        let mut terms: Vec<String> = Vec::new();
        for (part, piece) in text.split('"').enumerate() {
            if part % 2 == 1 {
                terms.push(piece.trim().to_owned());
            } else {
                terms.extend(piece.split_whitespace().map(str::to_owned));
            }
        }
        terms.retain(|term| !term.is_empty());
        match terms.len() {
            0 => Err("give one or more words to look for; double quotes keep words together".to_owned()),
            1..=TERMS => Ok(Search { terms }),
            many => Err(format!("{many} words are given; the maximum is {TERMS}")),
        }
    }

    /// The words and phrases.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// The single words of all terms, for an index.
    pub fn words(&self) -> Vec<String> {
        let words = self.terms.iter().flat_map(|term| term.split(|c: char| !c.is_alphanumeric()));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Finds the match in a row that contains every term; `None` if a term is missing.
    pub fn hit(&self, row: &Row) -> Option<SearchHit> {
        located(row, &self.terms).filter(|(found, _)| *found == self.terms.len()).map(|(_, hit)| hit)
    }

    /// Finds the words in a row that an index returned, possibly with other endings; falls back to the beginning of its
    /// first text.
    pub fn hit_by_index(&self, row: &Row) -> Option<SearchHit> {
        let stem = |word: String| {
            let letters = word.chars().count();
            word.chars().take(letters.saturating_sub(ENDING).max(ENDING.min(letters))).collect::<String>()
        };
        let stems: Vec<String> = self.words().into_iter().map(stem).collect();
        self.hit(row).or_else(|| located(row, &stems).map(|(_, hit)| hit)).or_else(|| {
            let column = columns(row.entity).find(|column| !row.get(column).is_null())?;
            Some(SearchHit { column, snippet: around(&texts(row, column).join(" · "), 0, 0) })
        })
    }
}

/// Counts the terms in the row's texts and finds the column with most of them.
fn located(row: &Row, terms: &[String]) -> Option<(usize, SearchHit)> {
    let mut found = vec![false; terms.len()];
    let mut best: Option<(usize, SearchHit)> = None;
    for column in columns(row.entity) {
        let texts = texts(row, column);
        let mut here = 0;
        let mut first: Option<(usize, usize, usize)> = None;
        for (term, found) in terms.iter().zip(&mut found) {
            let place = texts.iter().enumerate().find_map(|(i, text)| Some((i, place_of(text, term)?)));
            let Some((text, (at, length))) = place else { continue };
            *found = true;
            here += 1;
            first = Some(first.map_or((text, at, length), |known| known.min((text, at, length))));
        }
        if let Some((text, at, length)) = first.filter(|_| best.as_ref().is_none_or(|(most, _)| here > *most)) {
            best = Some((here, SearchHit { column, snippet: around(&texts[text], at, length) }));
        }
    }
    let all = found.iter().filter(|found| **found).count();
    best.map(|(_, hit)| (all, hit))
}

/// The columns of an entity with texts for people, as opposed to data such as metadata.
pub fn columns(entity: Entity) -> impl Iterator<Item = &'static str> {
    let holds_text = move |c: &&super::entity::Column| {
        c.personal == Personal::Content && !matches!(c.name, "metadata" | "context") && SEARCHED.contains(&entity)
    };
    entity.columns().iter().filter(holds_text).map(|c| c.name)
}

/// The texts within a column of a row, without field names.
fn texts<'r>(row: &'r Row, column: &str) -> Vec<Cow<'r, str>> {
    let mut found = Vec::new();
    match row.entity.position(column).map(|at| row.part(at)) {
        Some(JsonPart::Document(text)) => {
            let each = &mut |text: JsonText<'_>| match text {
                JsonText::Key(_) => {}
                JsonText::Item(text) | JsonText::Member(_, text) => found.push(Cow::Owned(text.to_owned())),
            };
            // If it ends early, the rest is not JSON and contains no texts.
            let _ = each_text(text, each);
        }
        Some(JsonPart::Value(value)) => within(value, &mut found),
        None => {}
    }
    found
}

fn within<'r>(value: &'r Value, found: &mut Vec<Cow<'r, str>>) {
    match value {
        Value::String(text) => found.push(Cow::Borrowed(text)),
        Value::Array(items) => items.iter().for_each(|item| within(item, found)),
        Value::Object(object) => object.values().for_each(|item| within(item, found)),
        _ => {}
    }
}

/// Finds the first occurrence of a term in a text: its byte offset and its length there. As in filters, case is
/// ignored for ASCII letters when the term is ASCII, otherwise for all letters.
fn place_of(text: &str, term: &str) -> Option<(usize, usize)> {
    if term.is_ascii() {
        let at = text.to_ascii_lowercase().find(&term.to_ascii_lowercase())?;
        return Some((at, term.len()));
    }
    // Lower case may have another length, so each position is compared letter by letter.
    let lower: String = term.chars().flat_map(char::to_lowercase).collect();
    text.char_indices().find_map(|(at, _)| {
        let mut rest = lower.as_str();
        for (offset, c) in text[at..].char_indices() {
            let small: String = c.to_lowercase().collect();
            rest = rest.strip_prefix(small.as_str())?;
            if rest.is_empty() {
                return Some((at, offset + c.len_utf8()));
            }
        }
        None
    })
}

/// The text around a match, on one line, with an ellipsis where it is cut.
fn around(text: &str, at: usize, length: usize) -> String {
    let start = text[..at].char_indices().rev().nth(BEFORE - 1).map_or(0, |(i, _)| i);
    let end = text[at + length..].char_indices().nth(AFTER).map_or(text.len(), |(i, _)| at + length + i);
    let piece = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{piece}{after}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn episode(title: &str, summary: &str) -> Row {
        Row::with(Entity::Episode, [("title", json!(title)), ("summary", json!(summary))])
    }

    fn search(text: &str) -> Search {
        Search::parse(text).expect("a search")
    }

    #[test]
    fn words_stand_in_any_order_and_case_and_phrases_as_they_are() {
        let row = episode("Late warehouse loads", "Alder & Sons asked again");
        assert_eq!(search("alder LATE").hit(&row).map(|h| h.column), Some("title"));
        assert_eq!(search("sons asked").hit(&row).map(|h| h.column), Some("summary"));
        assert!(search("\"warehouse loads\"").hit(&row).is_some());
        assert!(search("\"loads warehouse\"").hit(&row).is_none());
        assert!(search("late missing").hit(&row).is_none());
        assert_eq!(search("a \"b c\" d").terms().join("|"), "a|b c|d");
    }

    #[test]
    fn json_is_searched_by_its_texts_and_not_by_its_names() {
        let row = Row::with(Entity::Case, [("prompt", json!({"message": "the depot at Kiel", "n": 5}))]);
        assert_eq!(search("KIEL").hit(&row).map(|h| h.snippet), Some("the depot at Kiel".to_owned()));
        assert!(search("message").hit(&row).is_none());
    }

    #[test]
    fn a_snippet_is_one_line_around_the_first_word() {
        let text = format!("{} needle\nin a {}", "a ".repeat(100), "haystack ".repeat(50));
        let snippet = search("needle").hit(&episode("x", &text)).expect("a hit").snippet;
        assert!(snippet.starts_with('…') && snippet.ends_with('…') && snippet.contains("needle in a hay"), "{snippet}");
        assert!(snippet.chars().count() < BEFORE + AFTER + 10);
    }

    #[test]
    fn an_index_finds_other_endings() {
        let hit = search("running").hit_by_index(&episode("a title", "he runs daily")).expect("a hit");
        assert_eq!(hit.column, "title", "nothing alike is seen: how the row begins");
        let hit = search("visited").hit_by_index(&episode("a title", "she visits Kiel")).expect("a hit");
        assert_eq!(hit.column, "summary");
    }

    proptest! {
        #[test]
        fn a_text_holds_its_own_pieces(text in "\\PC{1,30}", from in 0_usize..30, length in 1_usize..10) {
            let piece: String = text.chars().skip(from).take(length).collect();
            prop_assume!(!piece.is_empty());
            prop_assert!(place_of(&text, &piece).is_some());
        }
    }
}
