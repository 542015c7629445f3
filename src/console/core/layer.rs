//! Layers over a screen, and their interface to the core. The topmost one receives the keys.

use super::context::{Context, ToastTone};
use super::gate::ConfirmGate;
use super::key::{Code, Key};
use super::message::{ClickTarget, Ticket};
use super::request::Reply;
use crate::console::view::Canvas;

/// Fate of a layer after a key or a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStep {
    /// The layer stays.
    Stays,
    /// The layer is closed.
    Closes,
    /// The layer is closed, and the key goes to the layer or screen below.
    Passes,
}

/// A layer over a screen.
pub trait Layer {
    /// Handles being opened; may make requests.
    fn opened(&mut self, _cx: &mut Context) {}

    /// Handles a key.
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep;

    /// Handles a pasted text: ignored outside of a field, and refused at a gate.
    fn paste(&mut self, _text: &str, cx: &mut Context) {
        if self.gate().is_some() {
            cx.say(ToastTone::Warn, "confirmations must be typed, not pasted");
        }
    }

    /// Handles a click. A click beside the layer closes it, unless that would lose something.
    fn click(&mut self, target: &ClickTarget, _cx: &mut Context) -> LayerStep {
        let inside = matches!(target, ClickTarget::MenuItem(_) | ClickTarget::Overlay);
        if inside || self.gate().is_some() { LayerStep::Stays } else { LayerStep::Closes }
    }

    /// Scrolls, or moves the selection.
    fn scroll_by(&mut self, _by: isize, _cx: &Context) {}

    /// The gate that it puts up, if it does.
    fn gate(&self) -> Option<&ConfirmGate> {
        None
    }

    /// The gate that it puts up, if it does.
    fn gate_mut(&mut self) -> Option<&mut ConfirmGate> {
        None
    }

    /// Takes a reply to its own request.
    fn reply(&mut self, _ticket: Ticket, _reply: Reply, _cx: &mut Context) {}

    /// Handles that others wrote to the database, or may have.
    fn others_wrote(&mut self, _cx: &mut Context) {}

    /// Handles that its timer elapsed.
    fn elapsed(&mut self, _ticket: Ticket, _cx: &mut Context) {}

    /// Draws it.
    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>);
}

/// Number of lines that a key scrolls an overlay; `None` if it has another meaning.
pub fn scroll_key(key: Key, cx: &Context) -> Option<isize> {
    let page = cx.measures.overlay_rows.saturating_sub(1).max(1) as isize;
    match key.code {
        Code::Up | Code::Char('k') => Some(-1),
        Code::Down | Code::Char('j') => Some(1),
        Code::PageUp => Some(-page),
        Code::PageDown | Code::Char(' ') => Some(page),
        _ => None,
    }
}

/// The first line shown after scrolling by some lines.
pub fn scrolled(first: usize, by: isize, cx: &Context) -> usize {
    let last = cx.measures.overlay_lines.saturating_sub(cx.measures.overlay_rows);
    first.saturating_add_signed(by).min(last)
}
