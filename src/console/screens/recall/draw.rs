//! Recall: the question above, its results in one or two rankings, and the reasons.

mod against;
mod head;
mod list;
mod reasons;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, CommandId, Context};
use crate::console::screens::recall::{RecallCommand, RecallScreen};
use crate::console::view::Drawn;
use crate::ui::{Look, StyleRole, TextLine, look as lay};

pub fn draw(cx: &Context, recall: &RecallScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let used = head::draw(cx, recall, look, body, buf, drawn);
    let rest = lay::below(body, used);
    let places = places(recall, rest, look);
    for (right, area) in [(false, places.left), (true, places.right)] {
        let Some(area) = area else { continue };
        if recall.right.is_some() && recall.on_right != right {
            drawn.hits.add(area, ClickTarget::Command(CommandId::Recall(RecallCommand::Side(right))));
        }
        list::draw(cx, recall, right, look, area, buf, drawn);
    }
    if let Some(area) = places.reasons {
        reasons::draw(cx, recall, look, area, buf, drawn);
    }
}

/// The letter of a term, as its part of a bar begins with it; nothing where no bars are drawn.
fn letter_of(index: usize, letter: char, look: &Look) -> TextLine {
    if look.spoken {
        return TextLine::default();
    }
    TextLine::of(letter.to_string(), StyleRole::series(index)).with(" ", StyleRole::Text)
}

/// Areas of the two rankings and of the reasons.
struct Places {
    left: Option<Rect>,
    right: Option<Rect>,
    reasons: Option<Rect>,
}

/// Rankings and reasons: side by side on wide screens, above each other on high ones, else the focused one.
fn places(recall: &RecallScreen, area: Rect, look: &Look) -> Places {
    const WIDE: u16 = 120;
    const BESIDE: u16 = 96;
    const HIGH: u16 = 18;
    let rows = recall.left.rows().len().max(recall.right.as_ref().map_or(0, |side| side.rows().len())) as u16;
    if recall.reads && (recall.zoomed || area.height < HIGH && area.width < WIDE) {
        return Places { left: None, right: None, reasons: Some(area) };
    }
    if recall.zoomed {
        let (own, other) = (Some(area), None);
        let (left, right) = if recall.on_right { (other, own) } else { (own, other) };
        return Places { left, right, reasons: None };
    }
    if recall.right.is_none() {
        if look.is_beside(area.width, WIDE) {
            let width = area.width * 11 / 20;
            let left = Rect { width, ..area };
            return Places { left: Some(left), right: None, reasons: Some(lay::right_of(area, width)) };
        }
        let (list, reasons) = above(area, rows, HIGH);
        return Places { left: Some(list), right: None, reasons };
    }
    if look.is_beside(area.width, BESIDE) {
        let (lists, reasons) = above(area, rows, HIGH);
        let width = lists.width / 2;
        let (left, right) = (Rect { width, ..lists }, lay::right_of(lists, width));
        return Places { left: Some(left), right: Some(right), reasons };
    }
    let (lists, reasons) = above(area, 2 * rows + 4, HIGH + 6);
    let height = lists.height / 2;
    Places { left: Some(Rect { height, ..lists }), right: Some(lay::below(lists, height)), reasons }
}

/// Lists above, reasons below, if there is room for both.
fn above(area: Rect, rows: u16, high: u16) -> (Rect, Option<Rect>) {
    if area.height < high {
        return (area, None);
    }
    let height = (rows + 8).clamp(8, area.height / 2);
    (Rect { height, ..area }, Some(lay::below(area, height)))
}
