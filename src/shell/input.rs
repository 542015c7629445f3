//! Events of the terminal, as messages of the core.

use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::console::Hits;
use crate::console::core::{ClickTarget, Code, Key, Message};

/// Two clicks within this time at one place are a double click.
const TWICE: Duration = Duration::from_millis(400);

/// Reads events; remembers the last click.
#[derive(Debug, Default)]
pub struct Pointer {
    last: Option<(Instant, u16, u16)>,
    /// The last key pressed and not released yet, if the terminal reports releases.
    down: Option<KeyCode>,
    /// Whether the terminal reports key releases.
    releases: bool,
}

impl Pointer {
    /// The messages for an event; empty if it has no meaning here.
    pub fn messages(&mut self, event: Event, hits: &Hits) -> Vec<Message> {
        if let Event::Key(key) = event {
            return self.key(key);
        }
        self.message(event, hits).into_iter().collect()
    }

    fn message(&mut self, event: Event, hits: &Hits) -> Option<Message> {
        match event {
            Event::Paste(text) => Some(Message::Paste(text)),
            Event::Resize(width, height) => Some(Message::Resize(width, height)),
            Event::Mouse(mouse) => self.mouse(mouse, hits),
            Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
        }
    }

    /// Handles a key. A key that repeats without a release is held down. Terminals that report releases send a held
    /// letter as repeated presses, or as repeats.
    fn key(&mut self, event: KeyEvent) -> Vec<Message> {
        let event = KeyEvent { code: shifted(event), ..event };
        let mut messages = Vec::new();
        if event.kind != KeyEventKind::Press && !self.releases {
            self.releases = true;
            messages.push(Message::Releases);
        }
        if event.kind == KeyEventKind::Release {
            self.down = None;
            return messages;
        }
        let again = self.down.replace(event.code) == Some(event.code);
        let silent = matches!(event.code, KeyCode::Enter | KeyCode::Tab | KeyCode::Backspace);
        let held = event.kind == KeyEventKind::Repeat || self.releases && again && !silent;
        let message = if held { Message::Held } else { Message::Key };
        messages.extend(key_of(event).map(message));
        messages
    }

    fn mouse(&mut self, event: MouseEvent, hits: &Hits) -> Option<Message> {
        let (x, y) = (event.column, event.row);
        let target = || hits.at(x, y).cloned().unwrap_or(ClickTarget::List);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let now = Instant::now();
                let twice = self.last.is_some_and(|(at, a, b)| (a, b) == (x, y) && now.duration_since(at) < TWICE);
                self.last = (!twice).then_some((now, x, y));
                hits.at(x, y).cloned().map(|target| Message::Click(target, twice))
            }
            MouseEventKind::ScrollUp => Some(Message::Wheel(target(), true)),
            MouseEventKind::ScrollDown => Some(Message::Wheel(target(), false)),
            _ => None,
        }
    }
}

/// The key as typed: some terminals report a letter and the shift key separately.
fn shifted(event: KeyEvent) -> KeyCode {
    match event.code {
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::Char(c.to_ascii_uppercase()),
        code => code,
    }
}

fn key_of(event: KeyEvent) -> Option<Key> {
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
