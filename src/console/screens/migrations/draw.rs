//! Migrations: the state of each, and beside the list the selected one with effect, locks, steps, statements and drift.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::migration::PendingMigration;
use crate::console::core::Context;
use crate::console::screens::migrations::{MigrationItem, MigrationStanding, MigrationsScreen};
use crate::console::view::changes::is_told;
use crate::console::view::{Drawn, PanelList, draw_detail_lines, fetched_card, halves};
use crate::ui::{
    Card, CardTone, Look, NamedValue, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Total, Width,
    key_values, look as lay,
};

pub fn draw(cx: &Context, migrations: &MigrationsScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (list, detail) = halves(body, look);
    draw_list(cx, migrations, look, list, buf, drawn);
    draw_detail(migrations, look, detail, buf, drawn);
}

fn role(standing: MigrationStanding) -> StyleRole {
    match standing {
        MigrationStanding::Drifted => StyleRole::Bad,
        MigrationStanding::Pending => StyleRole::Warn,
        MigrationStanding::Applied => StyleRole::Good,
        MigrationStanding::Optional | MigrationStanding::Present => StyleRole::Muted,
    }
}

fn draw_list(
    cx: &Context,
    migrations: &MigrationsScreen,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let layouts = migrations.listed.value.as_ref().map(|l| l.layouts.join(", ")).unwrap_or_default();
    let note = TextLine::of(SafeText::limited(&layouts, 60), StyleRole::Muted);
    let inside = PaneFrame { focused: true, note, ..PaneFrame::new("migrations") }.render(area, buf, look);
    let mut columns = vec![
        TableColumn::new("state", Width::Fixed(8)),
        TableColumn::new("migration", Width::Grow { min: 20, weight: 2 }),
    ];
    if migrations.items().iter().any(|item| !item.migration.steps.is_empty()) {
        columns.push(TableColumn::new("steps", Width::Fixed(5)).right().priority(3));
    }
    let row = |item: &MigrationItem| {
        let steps = &item.migration.steps;
        let done = steps.iter().filter(|step| step.done).count();
        let steps = if steps.is_empty() { String::new() } else { format!("{done}/{}", steps.len()) };
        let cells = vec![
            TextLine::of(item.standing.word(), role(item.standing)),
            TextLine::of(SafeText::limited(&item.migration.name, 60), StyleRole::Text),
            TextLine::of(steps, StyleRole::Number),
        ];
        TableRow { cells, marked: false, stale: migrations.listed.stale }
    };
    let none = || Card::new(CardTone::Plain, "There are no migrations for this database");
    let card = fetched_card(cx, &migrations.listed, "Reading");
    let card = card.or_else(|| migrations.items().is_empty().then(none));
    let list = PanelList::of(&columns, migrations.items().len(), migrations.cursor.selected, card);
    let list = PanelList { total: Total::Unknown, ..list };
    list.draw(|at| migrations.items().get(at).map(row), look, inside, buf, drawn);
}

fn draw_detail(migrations: &MigrationsScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let inside = lay::padded(PaneFrame::new("migration").render(area, buf, look));
    let width = usize::from(inside.width.saturating_sub(2));
    let mut lines = Vec::new();
    if let Some(item) = migrations.current() {
        let mut pairs = vec![NamedValue::line("state", TextLine::of(item.standing.word(), role(item.standing)))];
        let PendingMigration { effect, lock_risk, steps, sql, .. } = &item.migration;
        let said = [("note", item.note.as_deref().unwrap_or("")), ("effect", effect), ("locks", lock_risk)];
        let said = said.into_iter().filter(|(_, words)| !words.is_empty());
        pairs.extend(said.map(|(name, words)| NamedValue::new(name, SafeText::limited(words, 400))));
        lines.extend(key_values(&pairs, width, look));
        for step in steps {
            let (mark, role) = if step.done { ("done ", StyleRole::Good) } else { ("     ", StyleRole::Text) };
            lines.push(TextLine::of(mark, role).with(SafeText::limited(&step.name, 80), StyleRole::Text));
        }
        let text = if item.diff.is_empty() { sql } else { &item.diff };
        lines.push(TextLine::default());
        for line in text.lines().filter(|line| !is_told(line)) {
            let role = match line.as_bytes().first() {
                Some(b'+') => StyleRole::Good,
                Some(b'-') if line.starts_with("--") => StyleRole::Muted,
                Some(b'-') => StyleRole::Bad,
                _ => StyleRole::Text,
            };
            lines.extend(SafeText::rows(line, width.max(8)).map(|row| TextLine::of(row, role)));
        }
    }
    for (table, rows) in migrations.listed.value.iter().flat_map(|l| &l.foreign) {
        lines.push(TextLine::default());
        let words = SafeText::join(&["the system's own list, not changed: ".into(), SafeText::limited(table, 80)], "");
        lines.push(TextLine::of(words, StyleRole::Muted));
        lines.extend(rows.iter().map(|row| TextLine::of(SafeText::limited(row, width.max(8)), StyleRole::Muted)));
    }
    draw_detail_lines(&lines, migrations.cursor.scroll, inside, look, buf, drawn);
}
