//! Keys as shown, and a line input.

use std::cell::RefCell;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::command::command;
use crate::console::core::{CommandId, Context, Input, KeyMap};
use crate::ui::{KeyHint, Look, SafeText, StyleRole, look as lay};

/// A key as shown: arrows as signs.
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

pub fn key_of(cx: &Context, id: CommandId) -> SafeText {
    SafeText::from(cx.key(id).unwrap_or("by the palette"))
}

thread_local! {
    static KEYS: RefCell<KeyMap> = RefCell::new(KeyMap::default());
}

/// Draws with the given keys of commands.
pub fn in_keys<R>(keys: &KeyMap, draw: impl FnOnce() -> R) -> R {
    struct Restored(KeyMap);
    impl Drop for Restored {
        fn drop(&mut self) {
            KEYS.set(std::mem::take(&mut self.0));
        }
    }
    let _restored = Restored(KEYS.replace(keys.clone()));
    draw()
}

/// The first key of a command in the current drawing; the palette if it has none.
pub fn drawn_key(id: CommandId) -> String {
    let key = |keys: &KeyMap| command(id).and_then(|command| keys.keys(command).next().map(str::to_owned));
    KEYS.with_borrow(key).unwrap_or_else(|| "the palette".to_owned())
}

/// The key of a command, and its effect here.
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
