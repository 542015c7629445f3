//! The changes made here, newest first, with the effect of the selected one.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::Counts;
use crate::change::plan::trail::ListedEntry;
use crate::console::core::change::{many, rows_written};
use crate::console::core::{Context, NameBook};
use crate::console::screens::receipts::ReceiptsScreen;
use crate::console::view::{
    Drawn, PanelList, change_lines, count_lines, draw_detail_lines, failure_card, halves, sentences, words,
};
use crate::memory::Entity;
use crate::ui::{
    Card, CardTone, Look, NamedValue, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Total, Width,
    key_values, look as lay,
};

pub fn draw(cx: &Context, receipts: &ReceiptsScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (list, detail) = halves(body, look);
    draw_list(cx, receipts, look, list, buf, drawn);
    draw_detail(receipts, &cx.names, look, detail, buf, drawn);
}

fn card(cx: &Context, receipts: &ReceiptsScreen) -> Option<Card> {
    if let Some(failure) = &receipts.failure {
        return Some(failure_card(cx, failure));
    }
    if !receipts.entries.is_empty() {
        return None;
    }
    if !receipts.filled {
        return Some(Card::new(CardTone::Plain, "Reading"));
    }
    Some(Card::new(CardTone::Plain, "Nothing was changed here yet"))
}

fn draw_list(cx: &Context, receipts: &ReceiptsScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = PaneFrame { focused: true, ..PaneFrame::new("changes") };
    let inside = pane.render(area, buf, look);
    let columns = [
        TableColumn::new("no", Width::Fixed(5)).right(),
        TableColumn::new("time", Width::Fixed(11)).priority(2),
        TableColumn::new("change", Width::Grow { min: 16, weight: 4 }),
        TableColumn::new("by", Width::Grow { min: 6, weight: 1 }).priority(4),
        TableColumn::new("undo", Width::Fixed(12)),
    ];
    let card = card(cx, receipts);
    let list = PanelList {
        more: receipts.more,
        total: Total::Unknown,
        ..PanelList::of(&columns, receipts.entries.len(), receipts.cursor.selected, card)
    };
    list.draw(|at| receipts.entries.get(at).map(|entry| row(cx, receipts, entry, look)), look, inside, buf, drawn);
}

fn row(cx: &Context, receipts: &ReceiptsScreen, entry: &ListedEntry, look: &Look) -> TableRow {
    let g = look.glyphs;
    let undo = match receipts.undone_by(entry.seq) {
        Some(by) => {
            TextLine::default().with_glyph(g.undo, StyleRole::Muted).with(format!(" by {by}"), StyleRole::Muted)
        }
        None if entry.facts.undo_reason.is_some() => TextLine::default().with_glyph(g.none, StyleRole::Muted),
        None => TextLine::default().with_glyph(g.check, StyleRole::Good).with(" possible", StyleRole::Text),
    };
    let cells = vec![
        TextLine::of(entry.seq.to_string(), StyleRole::Number),
        TextLine::of(words::short_time(&entry.at), StyleRole::Muted),
        about(cx, entry).map_or_else(
            || TextLine::of(action(entry), StyleRole::Text),
            |about| {
                TextLine::of(action(entry), StyleRole::Text).with("  ", StyleRole::Text).with(about, StyleRole::Muted)
            },
        ),
        TextLine::of(SafeText::limited(&entry.actor, 40), StyleRole::Muted),
        undo,
    ];
    TableRow { cells, marked: false, stale: receipts.pending.as_ref().is_some_and(|(_, replaces)| *replaces) }
}

/// The applied migrations, else the changed row by kind and name, or the number of rows if there are several.
fn about(cx: &Context, entry: &ListedEntry) -> Option<SafeText> {
    if !entry.facts.migrations.is_empty() {
        return Some(SafeText::limited(&entry.facts.migrations.join(", "), 100));
    }
    let change = entry.rows().first()?;
    let none = Counts::new();
    let counts = entry.facts.counts.as_ref().unwrap_or(&none);
    if let Some(many) = many(entry.rows(), entry.facts.changes_total, counts, &cx.opened.tables) {
        let words: Vec<String> = [many].into_iter().chain(rows_written(counts)).collect();
        return Some(words.join(", ").into());
    }
    let entity = Entity::parse(&change.entity)?;
    let name = entry.rows().iter().find_map(|change| cx.names.of_change(change)).unwrap_or_else(|| change.id.clone());
    Some(SafeText::join(&[entity.title().into(), SafeText::limited(&name, 60)], " "))
}

fn action(entry: &ListedEntry) -> SafeText {
    let action = match entry.action.as_str() {
        "purge" => "erasure".into(),
        "purge.begin" => "erasure begun".into(),
        "purge.resume" => "erasure resumed".into(),
        "purge.batch" => "erasure, one batch".into(),
        action => SafeText::limited(&action.replace('_', " "), 40),
    };
    match entry.facts.undo_of {
        Some(seq) => SafeText::join(&[action, format!(" of {seq}").into()], ""),
        None => action,
    }
}

fn draw_detail(
    receipts: &ReceiptsScreen,
    names: &NameBook,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let Some(entry) = receipts.current() else {
        let inside = PaneFrame::new("change").render(area, buf, look);
        let lines = sentences(
            &["What the selected change did, row by row, and how to undo it.".to_owned()],
            StyleRole::Muted,
            usize::from(inside.width.saturating_sub(2)),
            look,
        );
        draw_detail_lines(&lines, 0, inside, look, buf, drawn);
        return;
    };
    let title = SafeText::join(&["change ".into(), entry.seq.to_string().into()], "");
    let pane = PaneFrame { note: TextLine::of(action(entry), StyleRole::Muted), ..PaneFrame::new(title) };
    let inside = lay::padded(pane.render(area, buf, look));
    let width = usize::from(inside.width.saturating_sub(2));
    let can = receipts.can_undo(entry);
    let mut pairs = vec![
        NamedValue::new("time", words::time(&entry.at, true)),
        NamedValue::new("by", SafeText::limited(&entry.actor, 80)),
        NamedValue::line(
            "undo",
            match &can {
                Ok(()) => TextLine::of("u takes it back", StyleRole::Good),
                Err(reason) => TextLine::of(SafeText::limited(reason, 300), StyleRole::Warn),
            },
        ),
    ];
    if !entry.facts.migrations.is_empty() {
        pairs.push(NamedValue::new("applied", SafeText::limited(&entry.facts.migrations.join(", "), 300)));
    }
    let said = [("reason", entry.reason.as_ref()), ("ticket", entry.facts.ticket.as_ref())];
    pairs
        .extend(said.into_iter().filter_map(|(name, text)| Some(NamedValue::new(name, SafeText::limited(text?, 300)))));
    let mut lines = key_values(&pairs, width, look);
    if let Some(counts) = entry.facts.counts.as_ref().filter(|counts| !counts.is_empty()) {
        lines.push(TextLine::default());
        lines.extend(count_lines(counts, width, look));
    }
    lines.push(TextLine::default());
    lines.extend(change_lines(entry.rows(), entry.rows().len(), names, width, look));
    draw_detail_lines(&lines, receipts.cursor.scroll, inside, look, buf, drawn);
}
