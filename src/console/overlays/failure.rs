//! Failure overlay: the failure, its cause, and a remedy.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, Code, CommandId, Context, Key, Layer, LayerStep, RequestFailure};
use crate::console::view::{Canvas, Drawn, told};
use crate::ui::{Card, CardTone, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole};

/// A failure over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureLayer {
    /// The failure.
    pub failure: RequestFailure,
}

impl Layer for FailureLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match key.code {
            Code::Esc | Code::Enter | Code::Char('q' | ' ') => LayerStep::Closes,
            Code::Char('r') => {
                cx.command(CommandId::Refresh);
                LayerStep::Closes
            }
            _ => LayerStep::Passes,
        }
    }

    fn draw(&self, _cx: &Context, canvas: &mut Canvas<'_>) {
        draw_failure(&self.failure, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

fn draw_failure(failure: &RequestFailure, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    // A missing part of the database is not a failure, and a retry does not help.
    let is_absence = failure.is_absence();
    let (tone, frame) = if is_absence { (CardTone::Plain, None) } else { (CardTone::Bad, Some(StyleRole::Bad)) };
    let mut card =
        Card::new(tone, SafeText::limited(&failure.what, 120)).line(SafeText::limited(&told(&failure.message), 600));
    if let Some(code) = failure.code.as_ref().filter(|_| !failure.is_final()) {
        card = card.line(SafeText::limited(code, 200));
    }
    if let Some(remedy) = &failure.remedy {
        card = card.line(SafeText::limited(&told(remedy), 400));
    }
    card = card.hint(KeyHint::new("enter", "close"));
    if !failure.is_final() {
        card = card.hint(KeyHint::new("r", "read again"));
    }
    let height = card.height(68, look) + 4;
    let modal = Modal { pane: PaneFrame { tone: frame, ..PaneFrame::new("") }, width: 76, height };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    card.render(inside, buf, look);
}
