//! Whether the terminal is light or dark: queried with an escape sequence, whose answer is separated from the keys
//! around it.
//!
//! The answer is read by the only reader of input: a second reader would swallow keys typed meanwhile.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Query for the background colour (OSC 11, in xterm's form).
pub const QUESTION: &str = "\x1b]11;?\x1b\\";

/// Beginning of an answer, after ESC and `]`.
const BEGINNING: &str = "11;rgb:";
/// The longest colour: three times four digits, two strokes, and some for an opacity.
const LONGEST: usize = BEGINNING.len() + 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// Filter for the answer. The input reader reports it as keys: alt and `]`, the text, then alt and `\` or ctrl and `g`.
#[derive(Debug, Default)]
pub struct Listener {
    /// The question was put and not answered.
    waits: bool,
    /// Events so far that may turn out to be the answer.
    held: Vec<Event>,
    text: String,
}

impl Listener {
    /// The question was put.
    pub fn expect(&mut self) {
        self.waits = true;
    }

    /// Takes an event. Returns the events that are not part of an answer, in order, and the complete answer.
    pub fn hear(&mut self, event: Event) -> (Vec<Event>, Option<Background>) {
        let Event::Key(key) = &event else { return (vec![event], None) };
        if !self.waits || key.kind == KeyEventKind::Release {
            return (vec![event], None);
        }
        let key = *key;
        if self.held.is_empty() {
            if is(key, ']', KeyModifiers::ALT) {
                self.held.push(event);
                return (Vec::new(), None);
            }
            return (vec![event], None);
        }
        self.held.push(event);
        if is(key, '\\', KeyModifiers::ALT) || is(key, 'g', KeyModifiers::CONTROL) {
            let held = std::mem::take(&mut self.held);
            let text = std::mem::take(&mut self.text);
            return match background(&text) {
                Some(background) => {
                    self.waits = false;
                    (Vec::new(), Some(background))
                }
                None => (held, None),
            };
        }
        match key.code {
            KeyCode::Char(c) if self.continues(c) => {
                self.text.push(c);
                (Vec::new(), None)
            }
            _ => {
                self.text.clear();
                (std::mem::take(&mut self.held), None)
            }
        }
    }

    /// Whether `c` can be the next character of an answer.
    fn continues(&self, c: char) -> bool {
        match BEGINNING.chars().nth(self.text.len()) {
            Some(wanted) => c == wanted,
            None => self.text.len() < LONGEST && (c.is_ascii_hexdigit() || c == '/'),
        }
    }
}

fn is(key: KeyEvent, c: char, held: KeyModifiers) -> bool {
    key.code == KeyCode::Char(c) && key.modifiers.contains(held)
}

/// Light when the luma of the colour (ITU-R BT.601) is in the upper half.
fn background(answer: &str) -> Option<Background> {
    let mut parts = answer.strip_prefix(BEGINNING)?.split('/').map(share);
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    let luma = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(if luma > 0.5 { Background::Light } else { Background::Dark })
}

/// A colour component of one to four hexadecimal digits, as a number from 0 to 1.
fn share(digits: &str) -> Option<f64> {
    let most = match digits.len() {
        length @ 1..=4 => f64::from((1_u32 << (4 * length)) - 1),
        _ => return None,
    };
    u32::from_str_radix(digits, 16).ok().map(|value| f64::from(value) / most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(c: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    fn plain(text: &str) -> Vec<Event> {
        text.chars().map(|c| key(c, KeyModifiers::NONE)).collect()
    }

    fn answer(text: &str) -> Vec<Event> {
        let mut events = vec![key(']', KeyModifiers::ALT)];
        events.extend(plain(text));
        events.push(key('\\', KeyModifiers::ALT));
        events
    }

    /// Returns the remaining events, and the reported background.
    fn heard(events: Vec<Event>) -> (Vec<Event>, Option<Background>) {
        let mut listener = Listener::default();
        listener.expect();
        let (mut left, mut said) = (Vec::new(), None);
        for event in events {
            let (more, background) = listener.hear(event);
            left.extend(more);
            said = said.or(background);
        }
        (left, said)
    }

    #[test]
    fn an_answer_is_told_from_the_keys_around_it() {
        for (text, wanted) in [
            ("11;rgb:ffff/ffff/ffff", Background::Light),
            ("11;rgb:1e1e/1e1e/2e2e", Background::Dark),
            ("11;rgb:fd/f6/e3", Background::Light),
            ("11;rgb:0/0/F", Background::Dark),
        ] {
            let events = [plain("2j"), answer(text), plain("k")].concat();
            assert_eq!(heard(events), (plain("2jk"), Some(wanted)), "{text}");
        }
    }

    #[test]
    fn keys_that_are_no_answer_are_kept() {
        for text in ["12;rgb:0/0/0", "11;rgb:", "11;rgb:0/0", "11;rgb:zz/0/0", "", "11;rgb:00000/0/0"] {
            assert_eq!(heard(answer(text)), (answer(text), None), "{text}");
        }
        let long = answer(&format!("11;rgb:{}", "f".repeat(40)));
        assert_eq!(heard(long.clone()), (long, None));
    }

    #[test]
    fn after_the_answer_every_key_is_a_key() {
        let (left, said) = heard([answer("11;rgb:0/0/0"), answer("11;rgb:f/f/f")].concat());
        assert_eq!((left, said), (answer("11;rgb:f/f/f"), Some(Background::Dark)));
    }
}
