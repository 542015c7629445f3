//! Drawing of the audit trail: the verdict on it at the top, below it its faults, entry by entry.

use ratatui::{buffer::Buffer, layout::Rect};

use super::TrailScreen;
use crate::change::plan::trail::{AuditFault, AuditVerdict};
use crate::console::core::Context;
use crate::console::view::{Drawn, PanelList, failure_card, sentences, told};
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Card, CardTone, Look, NamedValue, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Width, figures,
    key_values, look as lay,
};

pub fn draw(cx: &Context, trail: &TrailScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let width = usize::from(body.width.saturating_sub(4));
    let lines = trail.verdict.value.as_ref().map(|verdict| verdict_lines(verdict, width, look)).unwrap_or_default();
    let height = (lines.len() as u16 + 2).min(body.height);
    let note = if trail.verdict.pending.is_some() { progress(trail.walked) } else { SafeText::default() };
    let pane = PaneFrame { note: TextLine::of(note, StyleRole::Muted), ..PaneFrame::new("audit trail") };
    let Some(verdict) = &trail.verdict.value else {
        let inside = pane.render(body, buf, look);
        let card = match &trail.verdict.failure {
            Some(failure) => failure_card(cx, failure),
            None => Card::new(CardTone::Plain, "Walking the chain").line(progress(trail.walked)),
        };
        card.render(inside, buf, look);
        return;
    };
    let above = Rect { height, ..body };
    let inside = pane.render(above, buf, look);
    LineWindow::scrolled(&lines, 0).render(lay::padded(inside), buf, look);
    draw_faults(trail, verdict, look, lay::below(body, height), buf, drawn);
}

fn progress(walked: u64) -> SafeText {
    SafeText::join(&[figures::count(walked), " entries read".into()], "")
}

fn verdict_lines(verdict: &AuditVerdict, width: usize, look: &Look) -> Vec<TextLine> {
    let g = look.glyphs;
    let state = match verdict.faults.first() {
        None => TextLine::default().with_glyph(g.check, StyleRole::Good).with(" the chain is whole", StyleRole::Good),
        Some(first) => TextLine::default()
            .with_glyph(g.warning, StyleRole::Bad)
            .with(format!(" the chain is broken at entry {}", first.seq), StyleRole::Bad),
    };
    let number = |seq: Option<i64>| seq.map_or_else(|| "none".to_owned(), |seq| format!("entry {seq}"));
    let pairs = [
        NamedValue::line("trail", state),
        NamedValue::new("entries", figures::count(verdict.entries as u64)),
        NamedValue::new("head", SafeText::from(number(verdict.head))),
        NamedValue::new("last anchor", SafeText::from(number(verdict.anchored))),
        NamedValue::new("redacted", figures::count(verdict.redacted as u64)),
        NamedValue::new("database", SafeText::limited(&verdict.database_id, 60)),
    ];
    let mut lines = key_values(&pairs, width, look);
    lines.extend(sentences(&verdict.notes, StyleRole::Muted, width, look));
    lines
}

fn draw_faults(
    trail: &TrailScreen,
    verdict: &AuditVerdict,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    if verdict.faults.is_empty() || area.height < 4 {
        return;
    }
    let inside = PaneFrame { focused: true, ..PaneFrame::new("what is wrong") }.render(area, buf, look);
    let columns = [
        TableColumn::new("entry", Width::Fixed(8)).right(),
        TableColumn::new("kind", Width::Fixed(18)).priority(1),
        TableColumn::new("what", Width::Grow { min: 20, weight: 1 }),
    ];
    let row = |fault: &AuditFault| TableRow {
        cells: vec![
            TextLine::of(fault.seq.to_string(), StyleRole::Number),
            TextLine::of(SafeText::limited(&fault.kind.replace('_', " "), 30), StyleRole::Bad),
            TextLine::of(SafeText::limited(&told(&fault.message), 300), StyleRole::Text),
        ],
        marked: false,
        stale: trail.verdict.pending.is_some(),
    };
    let list = PanelList::of(&columns, verdict.faults.len(), trail.cursor.selected, None);
    list.draw(|at| verdict.faults.get(at).map(row), look, inside, buf, drawn);
}
