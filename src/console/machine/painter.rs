//! Draws the whole console from the model. Nothing here changes the model.

use ratatui::style::Color;
use ratatui::{buffer::Buffer, layout::Rect};

use super::frame;
use super::model::Model;
use crate::console::core::Measures;
use crate::console::core::context::{LEAST, is_too_small};
use crate::console::overlays::Overlay;
use crate::console::view::keys::in_keys;
use crate::console::view::{Canvas, Drawn, document, words};
use crate::ui::linear::LinearMoment;
use crate::ui::{Card, CardTone, Look, SafeText, StyleRole, text};

/// Draws the console, and caches what is costly between frames.
#[derive(Debug, Default)]
pub struct Painter {
    /// Whether the drawing is output as lines: then an overlay is drawn alone, and messages are output separately.
    plain: bool,
    documents: document::DocumentCache,
}

impl Painter {
    /// Creates a painter of frames, or of line output if `plain`.
    pub fn of(plain: bool) -> Self {
        Painter { plain, ..Painter::default() }
    }

    /// Returns the state that triggers output for readers of line output.
    pub fn moment(model: &Model, pressed: bool) -> LinearMoment {
        const LONGEST: usize = 400;
        let context = &model.context;
        let said = context.toast.as_ref().map(|toast| {
            let safe = || SafeText::limited(&toast.text, LONGEST);
            text::hiding(context.masking.hiding(), safe).as_str().to_owned()
        });
        LinearMoment {
            pressed,
            // Keys that may follow are output alone too; no overlay has this number.
            layer: model.overlays.top().or((!model.pressed.is_empty()).then_some(0)),
            // Rows are output once, with their names.
            reading: model.screen().awaits_rows() || context.names.waiting.is_some(),
            busy: model.screen().shows_findings() && context.health.pending.is_some(),
            said,
        }
    }

    /// Draws the whole screen. The buffer must be empty. While values are masked, all texts pass the veil.
    pub fn draw(&mut self, model: &Model, look: &Look, buf: &mut Buffer) -> Drawn {
        let context = &model.context;
        words::in_zone(&context.settings.zone, context.now, || {
            let draw = || in_keys(&context.settings.keys, || self.draw_all(model, look, buf));
            text::hiding(model.context.masking.hiding(), draw)
        })
    }

    fn draw_all(&mut self, model: &Model, look: &Look, buf: &mut Buffer) -> Drawn {
        let drawn = self.draw_parts(model, look, buf);
        lay_page(look, buf);
        drawn
    }

    fn draw_parts(&mut self, model: &Model, look: &Look, buf: &mut Buffer) -> Drawn {
        let area = buf.area;
        let measures = Measures { gate: None, ..model.context.measures };
        let mut drawn = Drawn { measures, ..Drawn::default() };
        if is_too_small((area.width, area.height)) {
            let card = Card::new(CardTone::Info, "Too small")
                .line(format!("needs {} columns and {} rows;", LEAST.0, LEAST.1))
                .line(format!("has {} and {}", area.width, area.height));
            card.render(area, buf, look);
            return drawn;
        }
        let documents = &mut self.documents;
        let mut canvas = Canvas { look, area, buf, drawn: &mut drawn, documents };
        if !self.plain || model.overlays.is_empty() && model.pressed.is_empty() {
            canvas.area = frame::draw(model, look, area, canvas.buf, canvas.drawn);
            model.screen().draw(&model.context, &mut canvas);
            if model.context.unread.is_some() {
                canvas.buf.set_style(canvas.area, look.style(StyleRole::Stale));
            }
        }
        // The first line names the database and whether it may be changed, the last one the running work: no overlay
        // covers them.
        canvas.area = Rect { y: area.y + 1, height: area.height - 2, ..area };
        // A line input for a dialog is drawn over it.
        let top: Vec<_> = model.overlays.iter().collect();
        let shown = match &top[..] {
            [.., dialog, Overlay::Prompt(_)] if !self.plain && dialog.get().gate().is_some() => 2,
            _ => 1,
        };
        for overlay in &top[top.len().saturating_sub(shown)..] {
            overlay.get().draw(&model.context, &mut canvas);
        }
        if top.is_empty() {
            frame::may_follow(model, look, area, canvas.buf);
        }
        if !self.plain {
            frame::said(model, look, area, canvas.buf);
        }
        if look.glyphs.is_ascii() {
            spell_ellipses(look, buf);
        }
        drawn
    }
}

/// Fills the theme's background, if it has one, behind everything that keeps the terminal's.
fn lay_page(look: &Look, buf: &mut Buffer) {
    let page = look.style(StyleRole::Text);
    let (Some(ink), Some(ground)) = (page.fg, page.bg) else { return };
    for cell in &mut buf.content {
        if cell.bg == Color::Reset {
            cell.bg = ground;
        }
        if cell.fg == Color::Reset {
            cell.fg = ink;
        }
    }
}

/// Texts are cut before their look is known; the ellipsis is replaced by its ASCII form here.
fn spell_ellipses(look: &Look, buf: &mut Buffer) {
    let mut sign = [0; 4];
    let sign = text::ELLIPSIS.encode_utf8(&mut sign);
    for cell in buf.content.iter_mut().filter(|cell| cell.symbol() == sign) {
        cell.set_char(look.glyphs.ellipsis.get());
    }
}
