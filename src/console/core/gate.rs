//! The gate before a dangerous action. The confirmation depends on the danger, and neither a held key nor a paste
//! passes.

use super::context::{Context, ToastTone};
use super::input::Input;
use super::key::{CONFIRM, Code, Key};
use super::message::Ticket;
use crate::change::plan::ChangeDanger;
use crate::ui::SafeText;

/// Milliseconds during which the key that opened a dialog may still repeat.
pub const REPEATS: u64 = 700;

/// Effect of a key at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatePassage {
    /// The action is confirmed.
    Open,
    /// The action is cancelled.
    Closed,
    /// A key that the gate leaves to its owner.
    Other,
    /// The key was typed into the word, or refused.
    Taken,
}

/// A gate that waits for a confirmation.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmGate {
    /// Danger that decides how to confirm: guarded by [`CONFIRM`], grave by typing the word.
    pub step: ChangeDanger,
    /// Word to type if the danger is grave.
    pub word: String,
    /// Text typed so far.
    pub input: Input,
    /// Number by which a drawing reports that it shows this gate's dialog.
    pub id: Ticket,
    /// Keys of the time when it was opened are past: it can be confirmed.
    pub armed: bool,
    /// Whether a key was refused because it came too early.
    pub early: bool,
    /// Timer that arms the gate; restarted by each key that comes too early.
    pub timer: Ticket,
    /// Reason why it can no longer be confirmed.
    pub shut: Option<String>,
}

impl ConfirmGate {
    /// Creates a gate. It is armed at once if `armed`, else when `timer` elapses.
    pub fn new(step: ChangeDanger, word: impl Into<String>, timer: Ticket, armed: bool) -> Self {
        let (input, id) = (Input::default(), timer);
        ConfirmGate { step, word: word.into(), input, id, armed, early: false, timer, shut: None }
    }

    /// Handles a key at the gate and returns its effect.
    pub fn press(&mut self, key: Key) -> GatePassage {
        if key.code == Code::Esc {
            return GatePassage::Closed;
        }
        if self.step == ChangeDanger::Grave {
            return match key.code {
                Code::Enter if !self.can_open() => GatePassage::Taken,
                Code::Enter if self.is_typed() => GatePassage::Open,
                Code::Enter => GatePassage::Taken,
                Code::Up | Code::Down | Code::PageUp | Code::PageDown => GatePassage::Other,
                _ if !self.can_open() => GatePassage::Taken,
                _ if self.input.press(key) => GatePassage::Taken,
                _ => GatePassage::Other,
            };
        }
        match key.code {
            // Cancel has the focus.
            Code::Enter | Code::Char('q') if !key.ctrl && !key.alt => GatePassage::Closed,
            Code::Char(CONFIRM) if !key.ctrl && !key.alt => {
                if self.can_open() {
                    GatePassage::Open
                } else {
                    GatePassage::Taken
                }
            }
            _ => GatePassage::Other,
        }
    }

    /// Handles a key at the gate; one that comes too early restarts the timer. No key confirms before the dialog has
    /// been drawn.
    pub fn press_in_time(&mut self, key: Key, cx: &mut Context) -> GatePassage {
        let (was_early, is_drawn) = (!self.armed, cx.measures.gate == Some(self.id));
        let passage = match self.press(key) {
            GatePassage::Open if !is_drawn => GatePassage::Taken,
            passage => passage,
        };
        let enters = passage == GatePassage::Taken && key.code == Code::Enter && self.can_open();
        if enters && !self.input.text().is_empty() {
            cx.say(ToastTone::Warn, format!("nothing was done: type exactly {}", as_typed(&self.word)));
        }
        if was_early && passage != GatePassage::Closed {
            self.early |= passage == GatePassage::Taken;
            self.timer = cx.wait_for_all(REPEATS);
        }
        passage
    }

    /// Whether a character is the next one of the word to type.
    pub fn expects(&self, next: char) -> bool {
        let typed = self.input.text();
        let word = as_typed(&self.word);
        self.step == ChangeDanger::Grave && word.strip_prefix(typed).is_some_and(|rest| rest.starts_with(next))
    }

    /// Whether the word was typed; invisible differences are ignored.
    fn is_typed(&self) -> bool {
        as_typed(self.input.text()) == as_typed(&self.word)
    }

    /// Whether the word has blanks or tabs that need not be typed exactly.
    pub fn has_odd_blanks(&self) -> bool {
        self.word.split(' ').any(str::is_empty) || self.word.contains('\t')
    }

    /// Whether it accepts a confirmation: armed and not shut.
    pub fn can_open(&self) -> bool {
        self.armed && self.shut.is_none()
    }

    /// The message of a gate that cannot be passed now.
    pub fn waiting_words(&self) -> &str {
        match &self.shut {
            Some(why) => why,
            None if self.early => "too soon: press it again in a moment",
            None => "can be confirmed in a moment",
        }
    }

    /// Whether confirming would succeed now.
    pub fn is_ready(&self) -> bool {
        self.can_open() && (self.step != ChangeDanger::Grave || self.is_typed())
    }
}

impl Context {
    /// Returns the level of care that a danger needs in this database.
    pub fn care(&self, danger: ChangeDanger) -> ChangeDanger {
        if self.opened.production { raised(danger) } else { danger }
    }

    /// Creates a gate for a danger in this database, not armed until repeating keys have stopped.
    pub fn gate(&mut self, danger: ChangeDanger, subject: &str) -> ConfirmGate {
        let step = self.care(danger);
        let word = if self.opened.production && danger == ChangeDanger::Grave {
            format!("{} {subject}", self.database_name())
        } else {
            subject.to_owned()
        };
        let armed = self.changing.releases;
        let timer = if armed { self.ticket() } else { self.wait_for_all(REPEATS) };
        ConfirmGate::new(step, word, timer, armed)
    }
}

/// A text as seen: a tab or several blanks become one blank, and those at the ends are removed.
fn as_typed(text: &str) -> String {
    let shown = SafeText::new(text);
    shown.as_str().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The next higher danger, for databases that others depend on.
pub fn raised(danger: ChangeDanger) -> ChangeDanger {
    match danger {
        ChangeDanger::Safe => ChangeDanger::Guarded,
        ChangeDanger::Guarded | ChangeDanger::Grave => ChangeDanger::Grave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::core::command::COMMANDS;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn enter_never_confirms_what_is_guarded() {
        let mut gate = ConfirmGate::new(ChangeDanger::Guarded, "", Ticket(1), true);
        assert_eq!(gate.press(key("enter")), GatePassage::Closed);
        assert_eq!(gate.press(key("A")), GatePassage::Open);
        gate.armed = false;
        assert_eq!(gate.press(key("A")), GatePassage::Taken);
    }

    #[test]
    fn what_is_grave_needs_its_word() {
        let mut gate = ConfirmGate::new(ChangeDanger::Grave, "fb-1", Ticket(1), true);
        assert_eq!(gate.press(key("A")), GatePassage::Taken);
        assert_eq!(gate.press(key("enter")), GatePassage::Taken);
        gate.input = Input::default();
        for c in ["f", "b", "-", "1"] {
            assert_eq!(gate.press(key(c)), GatePassage::Taken);
        }
        assert_eq!(gate.press(key("enter")), GatePassage::Open);
    }

    #[test]
    fn blanks_at_the_ends_of_a_word_and_tabs_in_it_are_typed_as_they_are_seen() {
        for (word, typed) in [("alice ", "alice"), ("alice ", "alice "), ("tab\tid", "tab id")] {
            let mut gate = ConfirmGate::new(ChangeDanger::Grave, word, Ticket(1), true);
            assert!(gate.has_odd_blanks() && !gate.is_ready());
            gate.input = Input::holding(typed);
            assert_eq!(gate.press(key("enter")), GatePassage::Open, "{word:?}");
        }
    }

    #[test]
    fn no_command_is_given_by_the_key_that_confirms() {
        let confirms = key(&CONFIRM.to_string());
        let keys = COMMANDS.iter().flat_map(|command| command.keys).flat_map(|keys| keys.split(' '));
        assert!(keys.filter_map(Key::parse).all(|key| key != confirms));
    }
}
