//! A line of text input: the text, the cursor and the effect of keys.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::console::core::context::Context;
use crate::console::core::key::{Code, Key};

/// Most bytes in a line; more are refused.
const LIMIT: usize = 4_096;

/// A line being written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    text: String,
    /// Byte offset, always between graphemes.
    cursor: usize,
}

impl Input {
    /// Creates a line with a text and the cursor at its end.
    pub fn holding(text: &str) -> Self {
        let mut input = Input::default();
        input.insert(text);
        input
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before and after the cursor.
    pub fn split(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Puts a text at the cursor; line breaks and tabs become blanks, other control characters are left out.
    pub fn insert(&mut self, text: &str) {
        let clean = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c });
        let clean: String = clean.filter(|c| !c.is_control()).collect();
        if self.text.len() + clean.len() <= LIMIT {
            self.text.insert_str(self.cursor, &clean);
            self.cursor += clean.len();
        }
    }

    /// Inserts a pasted text at the cursor, or reports that it is too long.
    pub fn paste(&mut self, text: &str, cx: &mut Context) {
        let before = self.text.len();
        self.insert(text);
        if self.text.len() == before && !text.is_empty() {
            cx.say_too_long(text.len());
        }
    }

    /// Replaces the `length` bytes before the cursor by `text`.
    pub fn complete(&mut self, length: usize, text: &str) {
        let start = self.text.floor_char_boundary(self.cursor.saturating_sub(length));
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
        self.insert(text);
    }

    /// Handles a key; returns true when the key meant something here.
    pub fn press(&mut self, key: Key) -> bool {
        let end = self.text.len();
        match (key.code, key.ctrl) {
            (Code::Left, false) => self.cursor = self.before(),
            (Code::Right, false) => self.cursor = self.after(),
            (Code::Home, _) | (Code::Char('a'), true) => self.cursor = 0,
            (Code::End, _) | (Code::Char('e'), true) => self.cursor = end,
            (Code::Backspace, false) | (Code::Char('h'), true) => self.cut(self.before(), self.cursor),
            (Code::Delete, false) => self.cut(self.cursor, self.after()),
            (Code::Char('w'), true) => self.cut(self.word_before(), self.cursor),
            (Code::Char('u'), true) => self.cut(0, self.cursor),
            (Code::Char('k'), true) => self.cut(self.cursor, end),
            _ => match key.typed() {
                Some(c) => self.insert(c.encode_utf8(&mut [0; 4])),
                None => return false,
            },
        }
        true
    }

    fn before(&self) -> usize {
        let mut at = GraphemeCursor::new(self.cursor, self.text.len(), true);
        at.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    fn after(&self) -> usize {
        let mut at = GraphemeCursor::new(self.cursor, self.text.len(), true);
        at.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    fn word_before(&self) -> usize {
        let head = self.text[..self.cursor].trim_end();
        head.split_word_bound_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input: &mut Input, keys: &str) {
        for key in keys.split(' ') {
            input.press(Key::parse(key).unwrap());
        }
    }

    #[test]
    fn keys_write_and_correct() {
        let mut input = Input::default();
        typed(&mut input, "a b space c left backspace x end d");
        assert_eq!(input.text(), "abxcd");
        typed(&mut input, "home delete ctrl-k");
        assert_eq!(input.text(), "");
    }

    #[test]
    fn the_cursor_walks_by_what_is_seen() {
        let mut input = Input::holding("ae\u{301}");
        typed(&mut input, "backspace");
        assert_eq!(input.text(), "a");
    }

    #[test]
    fn words_go_as_a_whole() {
        let mut input = Input::holding("outcome = failure");
        typed(&mut input, "ctrl-w");
        assert_eq!(input.text(), "outcome = ");
    }

    #[test]
    fn pasted_control_characters_never_enter() {
        assert_eq!(Input::holding("a\u{1b}[31m\nb\u{7}").text(), "a[31m b");
    }
}
