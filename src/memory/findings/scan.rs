//! Searches all text of a row for secrets, instructions to an agent, and hidden characters.

use serde_json::Value;

use crate::memory::Row;
use crate::memory::entity::{Column, ValueKind};
use crate::memory::json::{self, JsonPart, JsonText};
use crate::memory::text_check::{self, PHRASE, SECRET, SUSPICIOUS, glance};

/// Kinds of suspicious text found in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldText {
    /// A secret or token.
    pub secret: bool,
    /// Words that address a model.
    pub instruction: bool,
    /// Control characters, or invisible ones.
    pub hidden: bool,
}

/// Searches texts. Nearly all are harmless, which a single pass shows; the others are examined closely.
#[derive(Debug, Default)]
pub struct TextScanner {
    flat: String,
}

impl TextScanner {
    /// Scans the texts and lists of a row, including lists of ids. JSON may be unparsed ([`Query::unparsed`]).
    ///
    /// [`Query::unparsed`]: crate::memory::query::Query
    pub fn row(&mut self, row: &Row) -> HeldText {
        self.those(row, |column| column.holds_words() || column.kind == ValueKind::List)
    }

    /// Scans the readable ones of some columns of a row.
    pub fn columns(&mut self, row: &Row, names: &[&str]) -> HeldText {
        self.those(row, |column| names.contains(&column.name) && row.is_readable(column.name))
    }

    fn those(&mut self, row: &Row, is_looked_at: impl Fn(&Column) -> bool) -> HeldText {
        let mut held = HeldText::default();
        for (at, column) in row.entity.columns().iter().enumerate() {
            match row.part(at) {
                _ if !is_looked_at(column) => {}
                JsonPart::Document(text) => self.document(text, &mut held),
                JsonPart::Value(value) => self.value(value, &mut held),
            }
        }
        held
    }

    /// Scans every text of a row: also names, lists, ids.
    pub fn whole(&mut self, row: &Row) -> HeldText {
        self.those(row, |_| true)
    }

    /// Scans a JSON text: its strings are examined one by one only if it contains anything suspicious.
    fn document(&mut self, text: &str, held: &mut HeldText) {
        let seen = glance(text);
        if !seen.odd && seen.flat && !text.contains('\\') && !SUSPICIOUS.may_match(text) {
            return;
        }
        let strings = json::each_text(text, &mut |text| match text {
            JsonText::Key(text) | JsonText::Item(text) => self.text(text, held),
            JsonText::Member(key, text) => {
                held.secret |= text_check::is_secret_under(key, text);
                self.text(text, held);
            }
        });
        if strings.is_err() {
            self.text(text, held);
        }
    }

    fn value(&mut self, value: &Value, held: &mut HeldText) {
        match value {
            Value::String(text) => self.text(text, held),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, held)),
            Value::Object(object) => object.iter().for_each(|(key, item)| {
                held.secret |= item.as_str().is_some_and(|text| text_check::is_secret_under(key, text));
                self.text(key, held);
                self.value(item, held);
            }),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, held: &mut HeldText) {
        let seen = glance(text);
        if seen.odd && text_check::hides(text) {
            held.hidden = true;
        }
        if seen.flat && !held.hidden && !SUSPICIOUS.may_match(text) {
            return;
        }
        if !held.secret && SECRET.may_match(text) {
            held.secret = !text_check::check(text).1.secrets.is_empty();
        }
        if held.instruction {
            return;
        }
        if held.hidden {
            held.instruction = text_check::check(text).1.flags.contains_key(text_check::INSTRUCTION);
            return;
        }
        self.flat.clear();
        for (i, word) in text.split_ascii_whitespace().enumerate() {
            if i > 0 {
                self.flat.push(' ');
            }
            self.flat.push_str(word);
        }
        held.instruction = PHRASE.may_match(&self.flat);
    }
}
