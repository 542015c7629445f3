//! Read-only by default: unlocking is confirmed. In a database without our tables, adding them is offered first. Other
//! migrations are confirmed in the same way.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::WriteState;

use crate::change::plan::ChangeDanger;
use crate::console::core::context::UnlockStep;
use crate::console::core::layer::{scroll_key, scrolled};
use crate::console::core::twin::migrate_line;
use crate::console::core::{
    Code, ConfirmGate, Context, Effect, GatePassage, Key, Layer, LayerStep, ScreenAction, ToastTone,
};
use crate::console::view::Canvas;

/// Step that must be confirmed before the database can be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Unlock {
    /// Gate that confirms the step.
    pub gate: ConfirmGate,
    /// Step that must be confirmed.
    pub asked: UnlockStep,
    /// First line shown.
    pub scroll: usize,
    /// `y` was pressed: `c` copies.
    pub copying: bool,
}

impl Unlock {
    /// Creates the question whether to unlock, or to apply migrations. A production database is named as such.
    pub fn new(asked: UnlockStep, cx: &mut Context) -> Self {
        let is_safe = asked.migrations.is_empty() && !cx.opened.production;
        let danger = if is_safe { ChangeDanger::Safe } else { ChangeDanger::Guarded };
        let name = cx.database_name().to_owned();
        let mut gate = cx.gate(danger, &name);
        // Unlocking is always confirmed.
        gate.step = gate.step.max(ChangeDanger::Guarded);
        Unlock { gate, asked, scroll: 0, copying: false }
    }

    fn confirmed(&self, cx: &mut Context) {
        if self.asked.migrations.is_empty() {
            cx.act(ScreenAction::Unlock);
        } else {
            cx.act(ScreenAction::Migrate(self.asked.optional.clone(), self.asked.unlocks));
        }
    }
}

impl Layer for Unlock {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        let copies = std::mem::take(&mut self.copying) && key.code == Code::Char('c');
        if (copies || key.ctrl && key.code == Code::Char('y')) && !self.asked.migrations.is_empty() {
            let line = migrate_line(cx, &self.asked.optional);
            cx.perform(Effect::Copy("command".to_owned(), line));
            return LayerStep::Stays;
        }
        match self.gate.press_in_time(key, cx) {
            GatePassage::Open => self.confirmed(cx),
            GatePassage::Closed => {
                let unlocked = cx.changing.unlocked;
                cx.changing.then = None;
                cx.say(ToastTone::Info, if unlocked { "nothing was applied" } else { "still read-only" });
            }
            GatePassage::Taken | GatePassage::Other => {
                self.copying = key.code == Code::Char('y');
                self.scroll_by(scroll_key(key, cx).unwrap_or_default(), cx);
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
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
