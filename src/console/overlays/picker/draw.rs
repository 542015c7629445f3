//! Choosing the parent of an episode.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, Context, row_name};
use crate::console::overlays::picker::Picker;
use crate::console::view::field::foot;
use crate::console::view::{Drawn, input_line, words};
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole, TextLine, look as lay};

pub fn draw(cx: &Context, picker: &Picker, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let foot = foot(&[KeyHint::new("enter", "plan the link"), KeyHint::new("esc", "close")], 60, cx);
    let title = SafeText::limited(&cx.in_title(&format!("Parent of {}", picker.child)), 80);
    let modal = Modal {
        pane: PaneFrame { foot, ..PaneFrame::new(title) },
        width: 108.min(area.width),
        height: 26.min(area.height),
    };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    let width = usize::from(inside.width);
    input_line(&picker.input, "search ", look, lay::row(inside, 0), buf);
    let told = match (&picker.problem, &picker.failure) {
        (Some(problem), _) => TextLine::of(SafeText::limited(problem, width), StyleRole::Bad),
        (None, Some(failure)) => TextLine::of(SafeText::limited(&failure.message, width), StyleRole::Bad),
        (None, None) if !picker.pending.is_empty() => TextLine::of("searching", StyleRole::Muted),
        (None, None) => TextLine::of("words of a title, part of an id, or outcome = failure", StyleRole::Muted),
    };
    told.render(lay::row(inside, 1), buf, look);
    let body = lay::below(inside, 3);
    let lines = usize::from(body.height);
    if picker.rows.is_empty() && picker.pending.is_empty() && picker.timer.is_none() {
        look.text(lay::row(body, 0), buf, &"no other episode matches".into(), StyleRole::Muted);
    }
    let first = (picker.selected + 1).saturating_sub(lines.max(1));
    for (index, row) in picker.rows.iter().enumerate().skip(first).take(lines) {
        let place = lay::row(body, (index - first) as u16);
        let mut line = TextLine::of(
            row.text("started_at").map(|at| words::time(at, false)).unwrap_or_default().pad(18, Align::Left),
            StyleRole::Muted,
        );
        let id = look.pad(&SafeText::limited(row.id(), 40), (width / 4).min(24), Align::Left);
        line.push(id, StyleRole::Number);
        line.push_apart(SafeText::limited(&row_name(row), width), StyleRole::Text);
        line.render(place, buf, look);
        drawn.hits.add(place, ClickTarget::MenuItem(index));
        if index == picker.selected {
            look.select(place, buf, StyleRole::Selection);
        }
    }
}
