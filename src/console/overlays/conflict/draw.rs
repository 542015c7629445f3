//! Yours, theirs and the original, column by column.

use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::Value;

use crate::console::core::{ClickTarget, Context};
use crate::console::overlays::conflict::{Conflict, MovedRow};
use crate::console::view::{Drawn, sentences, words};
use crate::memory::Entity;
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, Section, StyleRole, TextLine, look as lay};

pub fn draw(cx: &Context, conflict: &Conflict, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const WIDTH: u16 = 112;
    let width = usize::from(WIDTH.min(area.width)).saturating_sub(6);
    let height = (lines(cx, conflict, width, look).len() as u16).saturating_add(5).min(area.height);
    let pane = PaneFrame { tone: Some(StyleRole::Bad), ..PaneFrame::new("Someone else was here first") };
    let modal = Modal { pane, width: WIDTH.min(area.width), height };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    let body = Rect { height: inside.height.saturating_sub(2), ..inside };
    let lines = lines(cx, conflict, usize::from(body.width.saturating_sub(2)), look);
    drawn.measures.overlay_lines = lines.len();
    drawn.measures.overlay_rows = usize::from(body.height);
    let first = conflict.scroll.min(lines.len().saturating_sub(usize::from(body.height)));
    LineWindow::scrolled(&lines, first).render(body, buf, look);
    let hints = [
        KeyHint::new("t", "take theirs"),
        KeyHint::new("p", "plan mine again on top"),
        KeyHint::new("enter", "cancel"),
        KeyHint::new("y c", "copy command"),
    ];
    let foot = lay::row(inside, inside.height.saturating_sub(1));
    hint_line(&hints, usize::from(inside.width)).render(foot, buf, look);
}

fn lines(cx: &Context, conflict: &Conflict, width: usize, look: &Look) -> Vec<TextLine> {
    let mut told =
        vec![format!("nothing was written: {}", cx.in_title(&conflict.proposal.title())), conflict.message.clone()];
    told.extend(conflict.rows.iter().cloned());
    let mut lines = sentences(&told, StyleRole::Bad, width, look);
    for moved in &conflict.moved {
        lines.push(TextLine::default());
        lines.extend(sides(moved, width, look));
    }
    lines
}

/// The three sides of a column.
const SIDES: [(&str, StyleRole); 3] =
    [("before", StyleRole::Muted), ("yours", StyleRole::Good), ("theirs", StyleRole::Warn)];

/// A table of three sides if there is room, else the sides below each other.
fn sides(moved: &MovedRow, width: usize, look: &Look) -> Vec<TextLine> {
    const NAME: usize = 16;
    let entity = Entity::parse(&moved.entity).map_or_else(|| moved.entity.clone(), Entity::title);
    let title = SafeText::join(&[SafeText::limited(&entity, 40), " ".into(), SafeText::limited(&moved.id, 60)], "");
    let note = if moved.gone { TextLine::of("it is gone", StyleRole::Bad) } else { TextLine::default() };
    let mut lines = vec![Section { note, ..Section::new(title) }.line(width, look)];
    let wide = width >= 80;
    let room = if wide { (width - NAME - 2) / 3 } else { width.saturating_sub(NAME + 2) };
    if wide {
        let mut head =
            TextLine::of("  ", StyleRole::Text).with(look.pad(&"".into(), NAME, Align::Left), StyleRole::Header);
        for (name, _) in SIDES {
            head.push(look.pad(&name.into(), room, Align::Left), StyleRole::Header);
        }
        lines.push(head);
    }
    for column in &moved.columns {
        let gone = Value::from("gone");
        let theirs = column.theirs.as_ref().unwrap_or(&gone);
        let values = [&column.before, &column.yours, theirs];
        let name = look.pad(&SafeText::limited(&column.name, NAME), NAME, Align::Left);
        let name = TextLine::of("  ", StyleRole::Text)
            .with(name, if column.has_moved() { StyleRole::Warn } else { StyleRole::Label });
        let texts = values.map(|value| match value {
            Value::Null => SafeText::glyphs(look.glyphs.none, 1),
            value => words::one_line(value, 400),
        });
        lines.extend(if wide { beside(name, &texts, room, look) } else { below(name, &texts, room, look) });
    }
    lines
}

/// The sides next to each other, each wrapped: a difference may be at the end.
fn beside(name: TextLine, texts: &[SafeText; 3], room: usize, look: &Look) -> Vec<TextLine> {
    let sides = texts.each_ref().map(|text| text.wrap(room.saturating_sub(1)).collect::<Vec<_>>());
    let rows = sides.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let indent = name.width();
    let mut name = Some(name);
    let row = |at: usize| {
        let mut line = name.take().unwrap_or_default();
        line.push_blanks(indent - line.width());
        for ((_, role), side) in SIDES.into_iter().zip(&sides) {
            let text = side.get(at).cloned().unwrap_or_default();
            line.push(look.pad(&text, room, Align::Left), role);
        }
        line
    };
    (0..rows).map(row).collect()
}

/// The sides below each other, each wrapped.
fn below(name: TextLine, texts: &[SafeText; 3], room: usize, look: &Look) -> Vec<TextLine> {
    const SIDE: usize = 8;
    let indent = name.width();
    let mut lines = Vec::new();
    let mut line = name;
    for ((side, role), text) in SIDES.into_iter().zip(texts) {
        let mut label = side;
        for part in text.wrap(room.saturating_sub(SIDE)) {
            line.push_blanks(indent - line.width());
            line.push(look.pad(&std::mem::take(&mut label).into(), SIDE, Align::Left), StyleRole::Header);
            line.push(part, role);
            lines.push(std::mem::take(&mut line));
        }
    }
    lines
}
