//! The last question before a person is erased: the id is typed.

use crate::console::core::layer::{scroll_key, scrolled};
use crate::console::core::{
    Code, ConfirmGate, Context, GatePassage, Key, Layer, LayerOpening, LayerStep, Purpose, ScreenAction, ToastTone,
};
use crate::console::view::{Canvas, Dialog, sentences};
use crate::ui::{KeyHint, SafeText, StyleRole, TextLine};

/// The question.
#[derive(Debug, Clone, PartialEq)]
pub struct LastQuestion {
    /// Gate that confirms the question.
    pub gate: ConfirmGate,
    /// Text of the question.
    pub words: Vec<String>,
    /// Reason for the erasure, for the audit trail.
    pub reason: String,
    /// First line shown.
    pub scroll: usize,
}

impl Layer for LastQuestion {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match self.gate.press_in_time(key, cx) {
            GatePassage::Open => {
                let reason = Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty());
                cx.act(ScreenAction::Erase(reason));
            }
            GatePassage::Closed => cx.say(ToastTone::Info, "nothing was changed"),
            GatePassage::Taken => return LayerStep::Stays,
            GatePassage::Other => {
                if key.code == Code::Char('r') {
                    cx.show(LayerOpening::Prompt(Purpose::Reason, String::new(), self.reason.clone()));
                } else {
                    self.scroll_by(scroll_key(key, cx).unwrap_or_default(), cx);
                }
                return LayerStep::Stays;
            }
        }
        LayerStep::Closes
    }

    fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = scrolled(self.scroll, by, cx);
    }

    fn gate(&self) -> Option<&ConfirmGate> {
        Some(&self.gate)
    }

    fn gate_mut(&mut self) -> Option<&mut ConfirmGate> {
        Some(&mut self.gate)
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        let note = TextLine::of(SafeText::limited(cx.database_name(), 60), StyleRole::Muted);
        let (gate, look) = (&self.gate, canvas.look);
        let hints = vec![KeyHint::new("ctrl-r", "reason")];
        let dialog = Dialog { title: "Erase a person".into(), note, verb: "erase", gate, hints, scroll: self.scroll };
        let told = (!self.reason.is_empty()).then(|| format!("Reason: {}", self.reason));
        let words: Vec<String> = self.words.iter().cloned().chain(told).collect();
        let lines = |width| sentences(&words, StyleRole::Text, width, look);
        dialog.draw(lines, look, canvas.area, canvas.buf, canvas.drawn);
    }
}
