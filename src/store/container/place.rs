//! Position of a text in a value: the steps through nested documents to it.

use std::ops::Range;

use super::escape::EscapedReading;

/// A step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DocumentStep {
    /// To the value of the key at these bytes, including its quotes.
    Key(Range<usize>),
    /// To the value of a numeric key.
    Number(i128),
    /// To an element, from 0.
    At(usize),
}

/// Place of a text in a value.
#[derive(Debug, Clone, Copy)]
pub struct TextPlace<'a> {
    pub(super) up: Option<&'a TextPlace<'a>>,
    pub(super) source: &'a [u8],
    pub(super) steps: &'a [DocumentStep],
}

impl TextPlace<'_> {
    pub(super) const ROOT: TextPlace<'static> = TextPlace { up: None, source: &[], steps: &[] };

    /// The position one step up.
    pub(super) fn parent(&self) -> TextPlace<'_> {
        TextPlace { steps: self.steps.split_last().map_or(&[][..], |(_, before)| before), ..*self }
    }

    /// Keys and indexes joined by dots.
    pub(super) fn path(&self) -> String {
        let mut path = self.up.map(TextPlace::path).unwrap_or_default();
        for step in self.steps {
            let part = match step {
                DocumentStep::At(position) => position.to_string(),
                DocumentStep::Number(number) => number.to_string(),
                DocumentStep::Key(range) => {
                    let key = String::from_utf8_lossy(self.source.get(range.clone()).unwrap_or_default());
                    let quotes = ['"', '\''];
                    let inner = key.strip_prefix(quotes).and_then(|k| k.strip_suffix(quotes)).unwrap_or(&key);
                    EscapedReading::of_literal(inner).map_or_else(|| inner.to_owned(), |reading| reading.text)
                }
            };
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
        path
    }
}
