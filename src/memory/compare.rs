//! Compares two rows of a kind: the columns that differ, and their texts word by word.

use std::io;

use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::entity::{Column, Personal, ValueKind};
use super::json::JsonPart;
use super::row::Row;

/// Most words, or lines of longer texts, for a comparison piece by piece: the work grows with the product.
const PIECES: usize = 4_000;

/// A column in which at least one of two rows has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldPair {
    /// Canonical column.
    pub column: &'static str,
    /// Whether both rows have the same value.
    pub same: bool,
    /// The changes from the first text to the second; `None` for values that are not texts, that are equal, or that
    /// have too many lines.
    pub words: Option<Vec<TextPiece>>,
}

/// A piece of one or both of two texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextPiece {
    /// Texts that contain the piece.
    pub how: PieceOf,
    /// The words, with the spaces between them.
    pub text: String,
}

/// Origin of a piece: both of two texts, or only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PieceOf {
    /// Both.
    Same,
    /// The first one only.
    Removed,
    /// The second one only.
    Added,
}

/// Compares two rows of one entity, column by column in the canonical order, without columns empty in both.
pub fn compare(first: &Row, second: &Row) -> Vec<FieldPair> {
    let columns = first.entity.columns();
    let pair = |(at, column): (usize, &Column)| {
        let parts = [first.part(at), second.part(at)];
        if parts.iter().all(JsonPart::is_null) {
            return None;
        }
        let same = parts[0].is_same(parts[1]);
        let differ = !same && !parts.iter().any(has_many_lines);
        let words = match differ.then(|| parts.map(|part| text_of(column, part))) {
            Some([Some(a), Some(b)]) => pieces(&a, &b),
            _ => None,
        };
        Some(FieldPair { column: column.name, same, words })
    };
    columns.iter().enumerate().filter_map(pair).collect()
}

/// Whether a long document would have too many lines in its indented form; it is then not built.
fn has_many_lines(part: &JsonPart<'_>) -> bool {
    struct LinesLeft(usize);

    impl io::Write for LinesLeft {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let ends = bytes.split(|byte| *byte == b'\n').count() - 1;
            self.0 = self.0.checked_sub(ends).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    matches!(part, JsonPart::Document(_)) && serde_json::to_writer_pretty(LinesLeft(PIECES - 1), part).is_err()
}

/// The text of a value that can be compared by words: free text, and JSON in its indented form.
fn text_of(column: &Column, part: JsonPart<'_>) -> Option<String> {
    match (column.kind, part) {
        (ValueKind::Text | ValueKind::Json, JsonPart::Value(Value::Null)) => Some(String::new()),
        (ValueKind::Text, JsonPart::Value(Value::String(text))) if column.personal == Personal::Content => {
            Some(text.clone())
        }
        (ValueKind::Json, JsonPart::Value(Value::String(text))) => Some(text.clone()),
        (ValueKind::Json, part) => serde_json::to_string_pretty(&part).ok(),
        _ => None,
    }
}

/// The differences between two texts, by words, or by lines if there are very many words; `None` if there are too many
/// lines as well.
fn pieces(a: &str, b: &str) -> Option<Vec<TextPiece>> {
    let few = |of: &dyn Fn(&str) -> usize| of(a).max(of(b)) <= PIECES;
    let diff = if few(&|text| text.split_whitespace().count()) {
        TextDiff::from_words(a, b)
    } else if few(&|text| text.lines().count()) {
        TextDiff::from_lines(a, b)
    } else {
        return None;
    };
    let mut told = Pieces::default();
    diff.iter_all_changes().for_each(|change| told.take(change.tag(), change.value()));
    Some(told.end())
}

/// Pieces under construction: changed words with only spaces between them form one change.
#[derive(Default)]
struct Pieces {
    done: Vec<TextPiece>,
    removed: String,
    added: String,
    /// Spaces that both texts have after a change.
    blank: String,
}

impl Pieces {
    fn take(&mut self, tag: ChangeTag, text: &str) {
        if tag != ChangeTag::Equal {
            let blank = std::mem::take(&mut self.blank);
            self.removed.push_str(&blank);
            self.added.push_str(&blank);
        }
        match tag {
            ChangeTag::Delete => self.removed.push_str(text),
            ChangeTag::Insert => self.added.push_str(text),
            ChangeTag::Equal if text.trim().is_empty() && !(self.removed.is_empty() && self.added.is_empty()) => {
                self.blank.push_str(text);
            }
            ChangeTag::Equal => {
                self.settle();
                self.push(PieceOf::Same, text);
            }
        }
    }

    fn settle(&mut self) {
        let (removed, added) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        self.push(PieceOf::Removed, &removed);
        self.push(PieceOf::Added, &added);
        let blank = std::mem::take(&mut self.blank);
        self.push(PieceOf::Same, &blank);
    }

    fn push(&mut self, how: PieceOf, text: &str) {
        match self.done.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.how == how => last.text.push_str(text),
            _ => self.done.push(TextPiece { how, text: text.to_owned() }),
        }
    }

    fn end(mut self) -> Vec<TextPiece> {
        self.settle();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;

    fn episode(title: &str, tags: &[&str]) -> Row {
        Row::with(Entity::Episode, [("title", json!(title)), ("tags", json!(tags))])
    }

    #[test]
    fn texts_differ_by_words_and_lists_as_a_whole() {
        let pairs = compare(&episode("late loads at Alder", &["a"]), &episode("late loads at Birch", &["b"]));
        let names: Vec<&str> = pairs.iter().map(|pair| pair.column).collect();
        assert_eq!(names, ["title", "tags"], "values that both leave empty are left out");
        let words = pairs[0].words.as_ref().expect("words");
        let shown: Vec<(PieceOf, &str)> = words.iter().map(|piece| (piece.how, piece.text.as_str())).collect();
        let expected = [(PieceOf::Same, "late loads at "), (PieceOf::Removed, "Alder"), (PieceOf::Added, "Birch")];
        assert_eq!(shown, expected);
        assert_eq!(pairs[1].words, None);
        assert!(compare(&episode("x", &[]), &episode("x", &[])).iter().all(|pair| pair.same));
    }

    #[test]
    fn very_long_texts_are_compared_by_lines_or_not_at_all() {
        let lines = |last: &str| "one two three four\n".repeat(2_000) + last;
        let pairs = compare(&episode(&lines("a"), &[]), &episode(&lines("b"), &[]));
        assert_eq!(pairs[0].words.as_ref().map(Vec::len), Some(3));
        let huge = "x\n".repeat(PIECES + 1);
        assert_eq!(compare(&episode(&huge, &[]), &episode("y", &[]))[0].words, None);
    }

    proptest! {
        #[test]
        fn pieces_give_both_texts_back(a in "[ab \n]{0,40}", b in "[ab \n]{0,40}") {
            let pieces = pieces(&a, &b).expect("short texts");
            let side = |not: PieceOf| pieces.iter().filter(|p| p.how != not).map(|p| p.text.as_str()).collect::<String>();
            prop_assert_eq!(side(PieceOf::Added), a);
            prop_assert_eq!(side(PieceOf::Removed), b);
        }
    }
}
