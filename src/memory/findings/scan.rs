//! Looks through all text of a row for secrets, instructions to an agent, and characters that hide.

use aho_corasick::AhoCorasick;
use serde_json::Value;

use crate::memory::text_check::{self, INSTRUCTIONS, NAMES, TOKENS};
use crate::memory::{Row, entity::Personal};

/// What the text of a row holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// A secret or token.
    pub secret: bool,
    /// Words that address a model.
    pub instruction: bool,
    /// Control characters, or ones that nobody sees.
    pub hidden: bool,
}

/// Searches texts. Nearly all are harmless: those are told by one pass, the others are looked at closely.
#[derive(Debug)]
pub struct Scanner {
    secrets: Option<AhoCorasick>,
    phrases: Option<AhoCorasick>,
    flat: String,
}

impl Default for Scanner {
    fn default() -> Self {
        let tokens = TOKENS.iter().map(|(prefix, ..)| *prefix).chain(["-----BEGIN ", "eyJ", "bearer ", "://"]);
        let build = |words: Vec<&str>| AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok();
        Scanner {
            secrets: build(tokens.chain(NAMES.iter().copied()).collect()),
            phrases: build(INSTRUCTIONS.to_vec()),
            flat: String::new(),
        }
    }
}

impl Scanner {
    /// What the free text of a row holds.
    pub fn row(&mut self, row: &Row) -> Held {
        let mut held = Held::default();
        for (column, value) in row.entity.columns().iter().zip(&row.values) {
            if column.personal == Personal::Content {
                self.value(value, &mut held);
            }
        }
        held
    }

    fn value(&mut self, value: &Value, held: &mut Held) {
        match value {
            Value::String(text) => self.text(text, held),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, held)),
            Value::Object(object) => object.values().for_each(|item| self.value(item, held)),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, held: &mut Held) {
        let odd = text.bytes().any(|b| !b.is_ascii() || (b < b' ' && !matches!(b, b'\n' | b'\r' | b'\t')) || b == 0x7f);
        if odd && text_check::hides(text) {
            held.hidden = true;
        }
        let close = |search: &Option<AhoCorasick>, text: &str| search.as_ref().is_none_or(|s| s.is_match(text));
        if !held.secret && close(&self.secrets, text) {
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
        held.instruction = close(&self.phrases, &self.flat);
    }
}
