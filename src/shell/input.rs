//! What the terminal reports, as messages of the core.

use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::app::{Code, Key, Message, Target};
use crate::screen::Hits;

/// Two clicks within this time at one place are a double click.
const TWICE: Duration = Duration::from_millis(400);

/// How long after the beginning the terminal may still answer what it was asked.
const LATE: Duration = Duration::from_secs(10);

/// Reads events; remembers the last click, and what the terminal was asked.
#[derive(Debug)]
pub struct Reader {
    began: Instant,
    /// In the midst of a late answer.
    answer: bool,
    click: Option<(Instant, u16, u16)>,
}

impl Reader {
    /// Begins to read, soon after the terminal was asked for its colours.
    pub fn new() -> Self {
        Reader { began: Instant::now(), answer: false, click: None }
    }

    /// The message of an event; none for what means nothing here.
    pub fn message(&mut self, event: Event, hits: &Hits) -> Option<Message> {
        match event {
            Event::Key(event) => key_of(event).filter(|key| !self.is_answer(*key)).map(Message::Key),
            Event::Paste(text) => Some(Message::Paste(text)),
            Event::Resize(width, height) => Some(Message::Resize(width, height)),
            Event::Mouse(mouse) => self.mouse(mouse, hits),
            Event::FocusGained | Event::FocusLost => None,
        }
    }

    /// Whether a key is none but a piece of the terminal's late answer, `ESC ] 11 ; rgb:1e1e/1e1e/1e1e ESC \`, of which
    /// each letter would be a command.
    fn is_answer(&mut self, key: Key) -> bool {
        let alt = |c| key == Key { alt: true, ..Key::plain(Code::Char(c)) };
        if alt(']') && self.began.elapsed() < LATE {
            self.answer = true;
            return true;
        }
        if !self.answer {
            return false;
        }
        let ends = alt('\\') || key == Key { ctrl: true, ..Key::plain(Code::Char('g')) };
        self.answer = key.typed().is_some_and(|c| c.is_ascii_hexdigit() || ";:/rg?".contains(c));
        ends || self.answer
    }

    fn mouse(&mut self, event: MouseEvent, hits: &Hits) -> Option<Message> {
        let (x, y) = (event.column, event.row);
        let target = || hits.at(x, y).cloned().unwrap_or(Target::List);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let now = Instant::now();
                let twice = self.click.is_some_and(|(at, a, b)| (a, b) == (x, y) && now.duration_since(at) < TWICE);
                self.click = (!twice).then_some((now, x, y));
                hits.at(x, y).cloned().map(|target| Message::Click(target, twice))
            }
            MouseEventKind::ScrollUp => Some(Message::Wheel(target(), true)),
            MouseEventKind::ScrollDown => Some(Message::Wheel(target(), false)),
            _ => None,
        }
    }
}

fn key_of(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let code = match event.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::F(n) => Code::F(n),
        _ => return None,
    };
    let held = |modifier| event.modifiers.contains(modifier);
    Some(Key { code, ctrl: held(KeyModifiers::CONTROL), alt: held(KeyModifiers::ALT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(reader: &mut Reader, text: &str) -> String {
        let mut alt = false;
        let mut heard = String::new();
        for c in text.chars() {
            if c == '\u{1b}' {
                alt = true;
                continue;
            }
            let (code, modifiers) = match c {
                '\u{7}' => ('g', KeyModifiers::CONTROL),
                _ if std::mem::take(&mut alt) => (c, KeyModifiers::ALT),
                _ => (c, KeyModifiers::NONE),
            };
            let event = Event::Key(KeyEvent::new(KeyCode::Char(code), modifiers));
            if let Some(Message::Key(key)) = reader.message(event, &Hits::default()) {
                heard.push_str(&key.to_string());
            }
        }
        heard
    }

    #[test]
    fn what_the_terminal_answers_late_gives_no_commands() {
        for end in ["\u{1b}\\", "\u{7}"] {
            let mut reader = Reader::new();
            assert_eq!(keys(&mut reader, &format!("\u{1b}]11;rgb:1e1e/2f2f/ffff{end}11q")), "11q");
        }
    }

    #[test]
    fn a_key_that_looks_like_an_answer_swallows_no_others() {
        let mut reader = Reader::new();
        assert_eq!(keys(&mut reader, "\u{1b}]jq1"), "jq1");
        reader.began = Instant::now().checked_sub(LATE).unwrap();
        assert_eq!(keys(&mut reader, "\u{1b}]11"), "alt-]11");
    }
}
