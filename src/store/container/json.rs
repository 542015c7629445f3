//! JSON as a sequence of tokens with their positions, parsed leniently: `NaN`, lone surrogates, repeated keys, numbers
//! of any size, any depth, several documents in a row, trailing commas, and Python's single quotes and words.

use std::ops::Range;

use super::LeafKind;
use super::place::DocumentStep;

/// Levels whose path is kept.
const PATH: usize = 64;

/// Words that stand for values.
const WORDS: [&str; 9] = ["true", "false", "null", "NaN", "Infinity", "undefined", "None", "True", "False"];

/// A key, a text or a number; `range` includes its quotes.
#[derive(Debug)]
pub(super) struct JsonToken {
    pub kind: LeafKind,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    Key,
    Colon,
    Comma,
    Nothing,
}

/// Error for a text that is not JSON.
#[derive(Debug)]
pub(super) struct NotJson;

/// The tokens of a text, in order.
#[derive(Debug)]
pub(super) struct JsonTokens<'a> {
    bytes: &'a [u8],
    at: usize,
    /// For each open level, whether it is an object.
    open: Vec<bool>,
    expect: Expect,
    steps: Vec<DocumentStep>,
}

/// Whether a text is JSON with contents: an object, an array, several of them, or one quoted string.
pub(super) fn is_document(text: &str) -> bool {
    let begins = text.bytes().find(|b| !b.is_ascii_whitespace());
    if !matches!(begins, Some(b'{' | b'[' | b'"')) {
        return false;
    }
    let mut tokens = JsonTokens::new(text);
    loop {
        match tokens.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(NotJson) => return false,
        }
    }
}

impl<'a> JsonTokens<'a> {
    pub fn new(text: &'a str) -> Self {
        let expect = Expect::Value;
        JsonTokens { bytes: text.as_bytes(), at: 0, open: Vec::new(), expect, steps: Vec::new() }
    }

    /// Returns the path to the last token.
    pub fn steps(&self) -> &[DocumentStep] {
        &self.steps
    }

    /// The next token; `None` at the end.
    pub fn next(&mut self) -> Result<Option<JsonToken>, NotJson> {
        loop {
            while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
                self.at += 1;
            }
            let Some(byte) = self.peek() else {
                let ended = self.expect == Expect::Nothing;
                return if ended { Ok(None) } else { Err(NotJson) };
            };
            match (self.expect, byte) {
                (Expect::Value, b'{' | b'[') => self.enter(byte == b'{'),
                (Expect::Nothing, b'{' | b'[') => {
                    // Several objects and arrays, as in JSON Lines. A string is only a document on its own.
                    if self.bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'"') {
                        return Err(NotJson);
                    }
                    self.enter(byte == b'{');
                }
                (Expect::Value | Expect::Comma, b']') if self.open.last() == Some(&false) => self.leave(),
                (Expect::Key | Expect::Comma, b'}') if self.open.last() == Some(&true) => self.leave(),
                (Expect::Comma, b',') => self.comma(),
                (Expect::Colon, b':') => {
                    self.at += 1;
                    self.expect = Expect::Value;
                }
                (Expect::Value | Expect::Key, b'"' | b'\'') => {
                    let kind = if self.expect == Expect::Key { LeafKind::Key } else { LeafKind::Text };
                    let range = self.string(byte)?;
                    return Ok(Some(self.token(kind, range)));
                }
                (Expect::Value | Expect::Key, b'-' | b'+' | b'.' | b'0'..=b'9') => {
                    if self.bytes[self.at..].starts_with(b"-Infinity") {
                        self.at += 1;
                        continue;
                    }
                    let range = self.run(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'));
                    return Ok(Some(self.token(LeafKind::Number, range)));
                }
                (Expect::Value, b'a'..=b'z' | b'A'..=b'Z') => {
                    let word = self.run(|b| b.is_ascii_alphabetic());
                    if !WORDS.iter().any(|known| known.as_bytes() == &self.bytes[word.clone()]) {
                        return Err(NotJson);
                    }
                    self.after_value();
                }
                _ => return Err(NotJson),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn token(&mut self, kind: LeafKind, range: Range<usize>) -> JsonToken {
        if self.expect == Expect::Key {
            if self.open.len() <= PATH
                && let Some(step) = self.steps.last_mut()
            {
                *step = DocumentStep::Key(range.clone());
            }
            self.expect = Expect::Colon;
        } else {
            self.after_value();
        }
        JsonToken { kind, range }
    }

    fn after_value(&mut self) {
        self.expect = if self.open.is_empty() { Expect::Nothing } else { Expect::Comma };
    }

    fn enter(&mut self, object: bool) {
        self.at += 1;
        self.open.push(object);
        if self.open.len() <= PATH {
            self.steps.push(if object { DocumentStep::Key(0..0) } else { DocumentStep::At(0) });
        }
        self.expect = if object { Expect::Key } else { Expect::Value };
    }

    fn leave(&mut self) {
        self.at += 1;
        if self.open.len() <= PATH {
            self.steps.pop();
        }
        self.open.pop();
        self.after_value();
    }

    fn comma(&mut self) {
        self.at += 1;
        let object = self.open.last() == Some(&true);
        self.expect = if object { Expect::Key } else { Expect::Value };
        if let Some(DocumentStep::At(position)) = self.steps.last_mut()
            && self.open.len() <= PATH
        {
            *position += 1;
        }
    }

    fn string(&mut self, quote: u8) -> Result<Range<usize>, NotJson> {
        let start = self.at;
        self.at += 1;
        while let Some(skip) = self.bytes.get(self.at..).and_then(|b| b.iter().position(|b| *b == quote || *b == b'\\'))
        {
            self.at += skip;
            if self.bytes[self.at] == quote {
                self.at += 1;
                return Ok(start..self.at);
            }
            self.at += 2;
        }
        Err(NotJson)
    }

    fn run(&mut self, is_part: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        while self.peek().is_some_and(&is_part) {
            self.at += 1;
        }
        start..self.at
    }
}

/// Whether a text is a valid JSON number.
pub(super) fn is_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}
