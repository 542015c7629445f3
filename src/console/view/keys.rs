//! Keys as they are shown, and a line that is being written.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::command::{CommandId, command};
use crate::console::core::context::Context;
use crate::console::core::input::Input;
use crate::ui::{KeyHint, Look, SafeText, StyleRole, look as lay};

/// A key as it is shown: arrows.
pub fn key_name(key: &str, look: &Look) -> SafeText {
    let g = look.glyphs;
    match key {
        "right" => SafeText::glyphs(g.arrow_right, 1),
        "left" => SafeText::glyphs(g.arrow_left, 1),
        "up" => SafeText::glyphs(g.arrow_up, 1),
        "down" => SafeText::glyphs(g.arrow_down, 1),
        other => SafeText::new(other),
    }
}

/// The first key that gives a command.
pub fn key_of(cx: &Context, id: CommandId) -> SafeText {
    SafeText::from(command(id).and_then(|command| cx.settings.keys.keys(command).next()).unwrap_or("by the palette"))
}

/// The key that gives a command, and what that does here.
pub fn hint_of(cx: &Context, id: CommandId, does: &str) -> KeyHint {
    KeyHint::new(key_of(cx, id), does)
}

/// The text being written with its cursor.
pub fn input_line(input: &Input, lead: &str, look: &Look, place: Rect, buf: &mut Buffer) {
    let used = look.text(place, buf, &SafeText::new(lead), StyleRole::Accent);
    let place = lay::right_of(place, used);
    let (before, after) = input.split();
    let (before, after) = (SafeText::new(before), SafeText::new(after));
    let room = usize::from(place.width).saturating_sub(1);
    let before = if before.width() > room { before.cut_start(room) } else { before };
    let x = place.x + look.text(place, buf, &before, StyleRole::Text);
    look.text(Rect { x, width: place.right().saturating_sub(x), ..place }, buf, &after, StyleRole::Text);
    buf.set_style(Rect { x, width: 1, height: 1, ..place }.intersection(place), look.style(StyleRole::Hit));
}
