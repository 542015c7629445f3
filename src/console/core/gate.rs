//! The gate before something dangerous: how it is confirmed depends on how dangerous it is, and neither a held key nor
//! a paste gets through.

use super::context::{Context, ToastTone};
use super::input::Input;
use super::key::{CONFIRM, Code, Key};
use super::message::Ticket;
use crate::change::plan::ChangeDanger;
use crate::ui::SafeText;

/// Milliseconds in which the key that opened a dialog may still be repeating.
pub const REPEATS: u64 = 700;

/// Effect of a key at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatePassage {
    /// The action is confirmed.
    Open,
    /// The action is cancelled.
    Closed,
    /// A key that means something to whoever put the gate up, or nothing.
    Other,
    /// The key went into the word, or was refused.
    Taken,
}

/// A gate that waits for a confirmation.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmGate {
    /// Danger that decides how to confirm: guarded by [`CONFIRM`], grave by typing the word.
    pub step: ChangeDanger,
    /// Word to be typed when the danger is grave.
    pub word: String,
    /// Text typed so far.
    pub input: Input,
    /// Number of the gate, by which a drawing says that it shows its dialog.
    pub id: Ticket,
    /// Keys of the time when it was opened are past: it can be confirmed.
    pub armed: bool,
    /// A key was refused because it came before that time.
    pub early: bool,
    /// The time that must pass before; counted again with each key that comes too early.
    pub timer: Ticket,
    /// Reason why it can never be confirmed any more.
    pub shut: Option<String>,
}

impl ConfirmGate {
    /// A gate of that danger; `timer` arms it when it elapses, at once when `armed`.
    #[must_use]
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

    /// Handles a key at the gate; one that comes too early restarts the waiting time. As long as the dialog is not drawn, no
    /// key confirms.
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

    /// Whether a character is the next one of the word that is typed.
    #[must_use]
    pub fn expects(&self, next: char) -> bool {
        let typed = self.input.text();
        let word = as_typed(&self.word);
        self.step == ChangeDanger::Grave && word.strip_prefix(typed).is_some_and(|rest| rest.starts_with(next))
    }

    /// Whether the word was typed, as far as it can be seen.
    fn is_typed(&self) -> bool {
        as_typed(self.input.text()) == as_typed(&self.word)
    }

    /// Whether the word has blanks or tabs that are not typed as they stand.
    #[must_use]
    pub fn has_odd_blanks(&self) -> bool {
        self.word.split(' ').any(str::is_empty) || self.word.contains('\t')
    }

    /// Whether it takes a confirmation: neither too early nor shut.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.armed && self.shut.is_none()
    }

    /// The words for a gate that cannot be passed now.
    #[must_use]
    pub fn waiting_words(&self) -> &str {
        match &self.shut {
            Some(why) => why,
            None if self.early => "too soon: press it again in a moment",
            None => "can be confirmed in a moment",
        }
    }

    /// Whether confirming would do it now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.can_open() && (self.step != ChangeDanger::Grave || self.is_typed())
    }
}

impl Context {
    /// Returns the level of care that a danger needs in this database.
    #[must_use]
    pub fn care(&self, danger: ChangeDanger) -> ChangeDanger {
        if self.opened.production { raised(danger) } else { danger }
    }

    /// A gate for that danger in this database, not armed before keys that repeat themselves have stopped.
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

/// A text as it is seen: a tab, or several blanks, as one blank, and none at its ends.
fn as_typed(text: &str) -> String {
    let shown = SafeText::new(text);
    shown.as_str().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One step more care, for databases that others depend on.
#[must_use]
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
