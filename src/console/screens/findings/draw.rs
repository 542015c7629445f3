//! The findings, the worst first, and beside them the selected one: what it means, examples to follow, the command that fixes it.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::health::Health;
use crate::console::screens::findings::FindingsScreen;
use crate::console::view::Drawn;
use crate::console::view::health::{progress, severity};
use crate::console::view::panel_list::PanelList;
use crate::console::view::panes::{failure_card, halves};
use crate::memory::findings::Finding;
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Card, CardTone, Look, NamedValue, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Total, Width,
    figures, key_values,
};

/// Draws the screen.
pub fn draw(health: &Health, findings: &FindingsScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (list, detail) = halves(body);
    draw_list(health, findings, look, list, buf, drawn);
    draw_detail(health, findings, look, detail, buf);
}

fn card(health: &Health) -> Option<Card> {
    if let Some(failure) = &health.failure {
        return Some(failure_card(failure));
    }
    if !health.found.is_empty() {
        return None;
    }
    Some(Card::new(CardTone::Plain, if health.done { "Nothing was found" } else { "Looking" }))
}

fn draw_list(health: &Health, findings: &FindingsScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = PaneFrame {
        focused: true,
        note: TextLine::of(progress(health), StyleRole::Muted),
        ..PaneFrame::new("findings")
    };
    let inside = pane.render(area, buf, look);
    let columns = [
        TableColumn::new("severity", Width::Fixed(8)),
        TableColumn::new("count", Width::Fixed(7)).right(),
        TableColumn::new("what", Width::Grow { min: 20, weight: 3 }),
        TableColumn::new("of", Width::Fixed(15)).priority(3),
    ];
    let row = |finding: &Finding| {
        let (word, role) = severity(finding.severity);
        let entity = finding.entity.unwrap_or("").replace('_', " ");
        let cells = vec![
            TextLine::of(word, role),
            TextLine::of(figures::count(finding.count), StyleRole::Number),
            TextLine::of(SafeText::limited(&finding.kind.replace('_', " "), 40), StyleRole::Text),
            TextLine::of(SafeText::limited(&entity, 20), StyleRole::Muted),
        ];
        TableRow { cells, marked: false, stale: false }
    };
    let card = card(health);
    let list = PanelList {
        columns: &columns,
        count: health.found.len(),
        more: false,
        total: Total::Unknown,
        selected: findings.selected,
        focused: true,
        card,
    };
    list.draw(|at| health.found.get(at).map(row), look, inside, buf, drawn);
}

fn draw_detail(health: &Health, findings: &FindingsScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    let inside = PaneFrame::new("finding").render(area, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    let width = usize::from(inside.width.saturating_sub(2));
    let (mut lines, mut first) = (Vec::new(), 0);
    if let Some(finding) = findings.current(health) {
        let (word, role) = severity(finding.severity);
        let pairs = [
            NamedValue::line("severity", TextLine::of(word, role)),
            NamedValue::new("what", SafeText::limited(&finding.message, 300)),
            NamedValue::line("remedy", TextLine::of(SafeText::limited(&finding.remedy, 300), StyleRole::Accent)),
        ];
        lines.extend(key_values(&pairs, width, look));
        lines.push(TextLine::default());
        let more = finding.count as usize > finding.examples.len();
        let title = if more { "examples, the first of them" } else { "examples" };
        lines.push(TextLine::of(title, StyleRole::Muted));
        for (at, example) in finding.examples.iter().enumerate() {
            let chosen = at == findings.example;
            let role = if chosen { StyleRole::Accent } else { StyleRole::Text };
            let mark = if chosen { "> " } else { "  " };
            if chosen && at > 0 {
                first = (lines.len() + 2).saturating_sub(usize::from(inside.height.max(1)));
            }
            lines.push(TextLine::of(mark, role).with(SafeText::limited(example, width.max(8)), role));
        }
    }
    if health.done && !health.skipped.is_empty() {
        lines.push(TextLine::default());
        lines.push(TextLine::of("not looked for here", StyleRole::Muted));
        for kind in &health.skipped {
            let words = format!("{}: {}", kind.kind.replace('_', " "), kind.reason);
            lines.push(TextLine::of(SafeText::limited(&words, width.max(8)), StyleRole::Muted));
        }
    }
    LineWindow::scrolled(&lines, first).render(inside, buf, look);
}
