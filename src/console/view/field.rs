//! A text input of several lines.

use ratatui::{buffer::Buffer, layout::Rect};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::console::core::Context;
use crate::console::core::text::TextField;
use crate::ui::chrome::hint_line;
use crate::ui::table::scrollbar;
use crate::ui::{KeyHint, Look, SafeText, StyleRole, TextLine, look as lay};

/// Asked once before unsaved text is lost.
pub(in crate::console) const UNSAVED: &str = "esc again discards what you typed";
/// Tells that a plan comes first.
pub(in crate::console) const PLANS: &str = "ctrl-s shows what would change before anything does";

/// The last line of a form: its keys, or a note that it takes none while its operation runs.
pub(in crate::console) fn foot(hints: &[KeyHint], width: usize, cx: &Context) -> TextLine {
    match &cx.changing.pending {
        None => hint_line(hints, width),
        Some(pending) if pending.applying => {
            TextLine::of("being applied: keys are ignored until it is done", StyleRole::Warn)
        }
        Some(_) => {
            let mut line = TextLine::of("being planned   ", StyleRole::Warn);
            line.append(hint_line(&[KeyHint::new("esc", "stop")], width));
            line
        }
    }
}

/// A text with its cursor, as many lines of it as fit, always with that of the cursor.
pub(in crate::console) fn draw_text(text: &TextField, focused: bool, look: &Look, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width).saturating_sub(1).max(1);
    let (cursor_line, cursor_at) = text.cursor();
    let height = usize::from(area.height).max(1);
    // Lines far from the cursor cannot be seen.
    let first = cursor_line.saturating_sub(height);
    let mut rows: Vec<SafeText> = Vec::new();
    let mut cursor = (0, 0);
    for (number, line) in text.lines().iter().enumerate().skip(first).take(2 * height + 1) {
        let mut row = SafeText::default();
        let mut passed = 0;
        for symbol in line.graphemes(true) {
            if number == cursor_line && passed <= cursor_at {
                cursor = (rows.len(), row.width());
            }
            let safe = SafeText::new(symbol);
            if row.width() + safe.width() > width {
                // A word that fits into a row is not broken.
                let kept = word_start(&row);
                let (first, rest) = row.as_str().split_at(kept);
                let (first, rest) = (SafeText::new(first), SafeText::new(rest));
                if number == cursor_line && cursor.0 == rows.len() && cursor.1 >= first.width() {
                    cursor = (rows.len() + 1, cursor.1 - first.width());
                }
                rows.push(first);
                row = rest;
            }
            row.append(&safe);
            passed += symbol.chars().count();
        }
        if number == cursor_line && passed <= cursor_at {
            cursor = (rows.len(), row.width());
        }
        rows.push(row);
    }
    let top = (cursor.0 + 1).saturating_sub(height);
    for (index, row) in rows.iter().skip(top).take(height).enumerate() {
        look.text(lay::row(area, index as u16), buf, row, StyleRole::Text);
    }
    let all = text.lines().len().max(first + rows.len());
    if rows.len() > height || first > 0 {
        scrollbar((first + top) as u64, height as u64, all as u64, area, buf, look);
    }
    if focused {
        let place = Rect { x: area.x + cursor.1 as u16, y: area.y + (cursor.0 - top) as u16, width: 1, height: 1 };
        buf.set_style(place.intersection(area), look.style(StyleRole::Hit));
    }
}

/// Returns the start of the last word of a row, if there is a blank before it; else the end of the row.
fn word_start(row: &SafeText) -> usize {
    let text = row.as_str();
    if text.ends_with(' ') { text.len() } else { text.rfind(' ').map_or(text.len(), |blank| blank + 1) }
}
