//! A note: a title, and sentences. Any key closes it, and then has its usual effect.

use crate::console::core::layer::{scroll_key, scrolled};
use crate::console::core::{ClickTarget, Code, Context, Key, Layer, LayerStep};
use crate::console::view::{Canvas, sentences};
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{KeyHint, Modal, PaneFrame, SafeText, StyleRole};

/// Most columns of a note.
const WIDTH: u16 = 84;

/// The note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteLayer {
    /// Subject of the note.
    pub title: String,
    /// Sentences of the note.
    pub sentences: Vec<String>,
    /// First line shown.
    pub scroll: usize,
}

impl Layer for NoteLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match scroll_key(key, cx) {
            Some(by) if cx.measures.overlay_lines > cx.measures.overlay_rows => {
                self.scroll = scrolled(self.scroll, by, cx);
                LayerStep::Stays
            }
            _ if matches!(key.code, Code::Esc | Code::Enter | Code::Char(' ' | 'q')) => LayerStep::Closes,
            _ => LayerStep::Passes,
        }
    }

    fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = scrolled(self.scroll, by, cx);
    }

    fn draw(&self, _cx: &Context, canvas: &mut Canvas<'_>) {
        let look = canvas.look;
        let width = usize::from(WIDTH.min(canvas.area.width)).saturating_sub(6).max(20);
        let lines = sentences(&self.sentences, StyleRole::Muted, width, look);
        let height = u16::try_from(lines.len() + 4).unwrap_or(u16::MAX).min(canvas.area.height);
        let foot = hint_line(&[KeyHint::new("esc", "close")], 30);
        let pane = PaneFrame { foot, focused: true, ..PaneFrame::new(SafeText::limited(&self.title, 80)) };
        let modal = Modal { pane, width: WIDTH, height };
        canvas.drawn.hits.add(modal.area(canvas.area), ClickTarget::Overlay);
        let inside = modal.render(canvas.area, canvas.buf, look);
        (canvas.drawn.measures.overlay_lines, canvas.drawn.measures.overlay_rows) =
            (lines.len(), usize::from(inside.height));
        LineWindow::scrolled(&lines, self.scroll).render(inside, canvas.buf, look);
    }
}
