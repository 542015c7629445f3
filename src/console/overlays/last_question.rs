//! The last question before a person is erased: the id is typed.

use crate::console::core::context::{Context, ScreenAction, ToastTone};
use crate::console::core::gate::{ConfirmGate, GatePassage};
use crate::console::core::key::Key;
use crate::console::core::layer::{Layer, LayerStep};
use crate::console::view::Canvas;
use crate::console::view::changes::sentences;
use crate::console::view::dialog::Dialog;
use crate::ui::{SafeText, StyleRole, TextLine};

/// The question.
#[derive(Debug, Clone, PartialEq)]
pub struct LastQuestion {
    /// Gate that confirms the question.
    pub gate: ConfirmGate,
    /// Text of the question.
    pub words: Vec<String>,
}

impl Layer for LastQuestion {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match self.gate.press_in_time(key, cx) {
            GatePassage::Open => cx.act(ScreenAction::Erase),
            GatePassage::Closed => cx.say(ToastTone::Info, "nothing was changed"),
            GatePassage::Taken | GatePassage::Other => return LayerStep::Stays,
        }
        LayerStep::Closes
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
        let dialog = Dialog { title: "Erase a person".into(), note, verb: "erase", gate, hints: Vec::new(), scroll: 0 };
        let lines = |width| sentences(&self.words, StyleRole::Text, width, look);
        dialog.draw(lines, look, canvas.area, canvas.buf, canvas.drawn);
    }
}
