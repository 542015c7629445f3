//! Keys as the console knows them, apart from any terminal library, and how they are written.

use std::fmt;

/// The key that confirms. No command begins or ends with it, so that no key both opens a dialog and confirms it.
pub const CONFIRM: char = 'A';

/// Code of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// A character, shifted already.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key, from 1.
    F(u8),
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Code of the key.
    pub code: Code,
    /// Control was held.
    pub ctrl: bool,
    /// Alt was held.
    pub alt: bool,
}

/// Names of the keys that are not characters.
const NAMES: &[(&str, Code)] = &[
    ("enter", Code::Enter),
    ("esc", Code::Esc),
    ("tab", Code::Tab),
    ("backtab", Code::BackTab),
    ("backspace", Code::Backspace),
    ("delete", Code::Delete),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("home", Code::Home),
    ("end", Code::End),
    ("pgup", Code::PageUp),
    ("pgdn", Code::PageDown),
    ("space", Code::Char(' ')),
];

impl Key {
    /// A key alone.
    pub const fn plain(code: Code) -> Self {
        Key { code, ctrl: false, alt: false }
    }

    /// Parses a key as spelled in the command table: `j`, `G`, `enter`, `f5`, `ctrl-d`, `alt-left`.
    pub fn parse(text: &str) -> Option<Key> {
        if let Some(rest) = text.strip_prefix("ctrl-").filter(|r| !r.is_empty()) {
            return Key::parse(rest).map(|key| Key { ctrl: true, ..key });
        }
        if let Some(rest) = text.strip_prefix("alt-").filter(|r| !r.is_empty()) {
            return Key::parse(rest).map(|key| Key { alt: true, ..key });
        }
        if let Some((_, code)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Some(Key::plain(*code));
        }
        let mut chars = text.chars();
        match (chars.next()?, chars.as_str()) {
            (c, "") => Some(Key::plain(Code::Char(c))),
            ('f', digits) => digits.parse().ok().filter(|n| (1..=12).contains(n)).map(|n| Key::plain(Code::F(n))),
            _ => None,
        }
    }

    /// The character that this key types into a field.
    pub fn typed(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt && !c.is_control() => Some(c),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            Code::Char(c) => write!(f, "{c}"),
            Code::F(n) => write!(f, "f{n}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        for text in ["j", "G", "enter", "f5", "f12", "ctrl-d", "alt-left", "space", "?", "ctrl-alt-x", "-"] {
            assert_eq!(Key::parse(text).map(|k| k.to_string()).as_deref(), Some(text));
        }
        for text in ["", "f0", "f13", "entre", "ctrl-", "jj"] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_plain_characters_are_typed() {
        assert_eq!(Key::parse("é").and_then(Key::typed), Some('é'));
        assert_eq!(Key::parse("ctrl-a").and_then(Key::typed), None);
        assert_eq!(Key::plain(Code::Char('\u{1b}')).typed(), None);
    }
}
