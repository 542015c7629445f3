//! Draws the form for a row: its columns above, the full text of the edited one below.

use ratatui::layout::Rect;

use super::{RowField, RowForm};
use crate::console::core::{ClickTarget, Context};
use crate::console::view::Canvas;
use crate::console::view::field::{PLANS, UNSAVED, draw_text, foot};
use crate::ui::table::scrollbar;
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, Section, StyleRole, TextLine, look as lay};

/// Columns of a name.
const NAME: usize = 20;

pub fn draw(form: &RowForm, cx: &Context, canvas: &mut Canvas<'_>) {
    let look = canvas.look;
    let title = match &form.ids[..] {
        [id] => cx.in_title(&format!("Edit {} {id}", form.entity.title())),
        ids => format!("Edit {} marked {}", ids.len(), form.entity.plural()),
    };
    let foot = foot(
        &[KeyHint::new("ctrl-s", "plan"), KeyHint::new("tab", "next column"), KeyHint::new("esc", "close")],
        usize::from(canvas.area.width.saturating_sub(8)),
        cx,
    );
    let pane = PaneFrame { foot, focused: true, ..PaneFrame::new(SafeText::limited(&title, 80)) };
    let modal = Modal { pane, width: 100.min(canvas.area.width), height: 34.min(canvas.area.height) };
    canvas.drawn.hits.add(modal.area(canvas.area), ClickTarget::Overlay);
    let inside = modal.render(canvas.area, canvas.buf, look);
    // The text gets somewhat more than a third of the room.
    let below = (inside.height * 2 / 5).max(3);
    let list = Rect { height: inside.height.saturating_sub(below), ..inside };
    draw_fields(form, list, canvas);
    let Some(field) = form.fields.get(form.at) else { return };
    let part = lay::below(inside, list.height);
    let name = field.column.name.replace('_', " ");
    let mut heading = Section::new(SafeText::limited(&name, 40)).line(usize::from(part.width), look);
    if let Some(run) = heading.runs.first_mut() {
        run.role = StyleRole::Accent;
    }
    heading.render(lay::row(part, 0), canvas.buf, look);
    let text = lay::below(part, 1);
    let text = Rect { height: text.height.saturating_sub(1), ..text };
    draw_text(&field.text, true, look, text, canvas.buf);
    verdict(form, field, cx, usize::from(part.width)).render(
        lay::row(part, part.height.saturating_sub(1)),
        canvas.buf,
        look,
    );
}

fn draw_fields(form: &RowForm, area: Rect, canvas: &mut Canvas<'_>) {
    let look = canvas.look;
    let rows = usize::from(area.height).max(1);
    let top = (form.at + 1).saturating_sub(rows);
    let count = form.fields.len();
    let is_cut = count > rows;
    if is_cut {
        scrollbar(top as u64, rows as u64, count as u64, area, canvas.buf, look);
    }
    let area = Rect { width: area.width.saturating_sub(if is_cut { 2 } else { 0 }), ..area };
    for (row, (at, field)) in form.fields.iter().enumerate().skip(top).take(rows).enumerate() {
        let place = lay::row(area, row as u16);
        line(field, at == form.at, usize::from(area.width), look).render(place, canvas.buf, look);
        canvas.drawn.hits.add(place, ClickTarget::MenuItem(at));
    }
}

/// A column with the beginning of its text.
fn line(field: &RowField, chosen: bool, width: usize, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    if chosen {
        line.push_glyphs(look.glyphs.cursor, 1, StyleRole::Accent);
    } else {
        line.push_blanks(1);
    }
    let (name_role, role) = match (chosen, field.is_changed()) {
        (_, true) => (StyleRole::Warn, StyleRole::Good),
        (true, false) => (StyleRole::Accent, StyleRole::Text),
        (false, false) => (StyleRole::Label, StyleRole::Muted),
    };
    let name = field.column.name.replace('_', " ");
    line.push(look.pad(&SafeText::limited(&name, NAME), NAME, Align::Left), name_role);
    line.push(if field.is_changed() { "* " } else { "  " }, StyleRole::Warn);
    let room = width.saturating_sub(line.width());
    let first = field.text.lines().first().map(String::as_str).unwrap_or_default();
    let mut text = SafeText::limited(first, room);
    if field.text.lines().len() > 1 {
        text = SafeText::join(
            &[SafeText::limited(first, room.saturating_sub(2)), SafeText::glyphs(look.glyphs.ellipsis, 1)],
            " ",
        );
    }
    line.with(text, role)
}

/// Builds the line with the valid values of the column, or with the error in the text.
fn verdict(form: &RowForm, field: &RowField, cx: &Context, width: usize) -> TextLine {
    if form.closing {
        return TextLine::of(UNSAVED, StyleRole::Warn);
    }
    if let (true, Err(wrong)) = (field.is_changed(), field.value(cx)) {
        return TextLine::of(SafeText::limited(&wrong, width), StyleRole::Bad);
    }
    let unit = field.column.unit().map(|unit| format!(", {unit}")).unwrap_or_default();
    let words = match (field.is_changed(), form.masked) {
        (true, _) => format!("changed; {PLANS}"),
        (false, true) => {
            format!("{}{unit}; values that name people are masked and left out", field.column.kind.title())
        }
        // The values of several rows are unknown.
        (false, false) if field.before.is_none() => {
            format!("{}{unit}; leave empty to keep it, null for none", field.column.kind.title())
        }
        (false, false) => format!("{}{unit}; empty or null for none", field.column.kind.title()),
    };
    TextLine::of(SafeText::limited(&words, width), StyleRole::Muted)
}
