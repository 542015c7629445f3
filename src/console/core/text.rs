//! A text input of several lines: its content, and the effect of keys.

use tui_textarea::{CursorMove, Input, Key as Pressed, TextArea};

use crate::console::core::key::{Code, Key};

/// A field of several lines.
#[derive(Debug, Clone, Default)]
pub struct TextField(TextArea<'static>);

impl PartialEq for TextField {
    fn eq(&self, other: &Self) -> bool {
        self.0.lines() == other.0.lines() && self.cursor() == other.cursor()
    }
}

impl TextField {
    /// Creates a field with a text and the cursor at its end.
    pub fn holding(text: &str) -> Self {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        area.move_cursor(CursorMove::Bottom);
        area.move_cursor(CursorMove::End);
        TextField(area)
    }

    /// Returns the lines of the text.
    pub fn lines(&self) -> &[String] {
        self.0.lines()
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.0.lines().join("\n")
    }

    /// Line and character that the cursor is before, from 0.
    pub fn cursor(&self) -> (usize, usize) {
        let cursor = self.0.cursor();
        (cursor.0, cursor.1)
    }

    /// Puts a text at the cursor; control characters other than line breaks and tabs are left out.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let clean: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        self.0.insert_str(clean);
    }

    /// Applies a key to the text.
    pub fn press(&mut self, key: Key) {
        // As in a single line: removes the text before the cursor.
        if key.ctrl && key.code == Code::Char('u') {
            self.0.delete_line_by_head();
            return;
        }
        let pressed = match key.code {
            Code::Char(c) => Pressed::Char(c),
            Code::Enter => Pressed::Enter,
            Code::Backspace => Pressed::Backspace,
            Code::Delete => Pressed::Delete,
            Code::Up => Pressed::Up,
            Code::Down => Pressed::Down,
            Code::Left => Pressed::Left,
            Code::Right => Pressed::Right,
            Code::Home => Pressed::Home,
            Code::End => Pressed::End,
            Code::PageUp => Pressed::PageUp,
            Code::PageDown => Pressed::PageDown,
            Code::Esc | Code::Tab | Code::BackTab | Code::F(_) => return,
        };
        self.0.input(Input { key: pressed, ctrl: key.ctrl, alt: key.alt, shift: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_write_several_lines() {
        let mut text = TextField::holding("one");
        for key in ["enter", "t", "w", "o", "backspace", "up", "home", "x"] {
            text.press(Key::parse(key).unwrap());
        }
        assert_eq!((text.text(), text.cursor()), ("xone\ntw".to_owned(), (0, 1)));
    }

    #[test]
    fn pasted_control_characters_never_enter() {
        let mut text = TextField::default();
        text.insert("a\u{1b}[31m\r\nb\u{7}");
        assert_eq!(text.text(), "a[31m\nb");
    }
}
