//! The list: a table of the rows on screen, with their position in the whole.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::columns::ValueStyle;
use crate::console::core::live::COUNTED;
use crate::console::core::{ClickTarget, CommandId, Context, RowKey};
use crate::console::screens::browse::draw::columns::{FittedColumn, fitted};
use crate::console::screens::browse::draw::summary;
use crate::console::screens::browse::listing::told;
use crate::console::screens::browse::{BrowsePane as Keys, ListScreen};
use crate::console::view::live::news;
use crate::console::view::{Drawn, cell, failure_card, hint_of, words};
use crate::memory::query::CountKind;
use crate::memory::{Entity, Row};
use crate::ui::{
    Align, Card, CardTone, Extent, Look, PaneFrame, SafeText, SortMark, StyleRole, TableBody, TableColumn, TableRow,
    TableView, TextLine, Total, Width, figures,
};

pub fn draw(cx: &Context, browse: &ListScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let sorted = browse.order_used().column;
    let has_marks = !browse.marks.is_empty();
    let room = PaneFrame::inner(area).width.saturating_sub(u16::from(has_marks));
    let fitted = fitted(&cx.list_columns(browse.entity), &browse.widths, sorted, room);
    let pane = PaneFrame {
        title: title(cx, browse, &fitted),
        note: note(cx, browse, look),
        foot: position(cx, browse),
        focused: browse.pane == Keys::List,
        tone: None,
    };
    drawn.hits.add(area, ClickTarget::List);
    let inside = pane.render(area, buf, look);
    let inside = summary::draw(cx, browse, look, inside, buf);
    let lines = TableView::capacity(inside);
    drawn.measures.list_rows = lines;
    let columns: Vec<TableColumn> = fitted.iter().map(|c| column(c, browse)).collect();
    let card = message(cx, browse);
    let (top, rows) = visible(browse, lines);
    let table_rows: Vec<TableRow> = rows.iter().map(|row| table_row(row, cx, browse, &fitted, look)).collect();
    let table = TableView {
        columns: &columns,
        body: card.as_ref().map_or(TableBody::Rows(&table_rows), TableBody::Card),
        selected: browse.window.selected().checked_sub(top).filter(|at| *at < rows.len()),
        focused: browse.pane == Keys::List,
        marks: has_marks,
        extent: extent(cx, browse, top, rows.len()),
    };
    table.render(inside, buf, look);
    hits(&table, inside, top, &fitted, drawn);
}

/// The rows on screen and the position of the first one among those held.
fn visible(browse: &ListScreen, lines: usize) -> (usize, Vec<&Row>) {
    let mut window = browse.window.top();
    // The height may have changed since the model scrolled.
    let (selected, held) = (browse.window.selected(), browse.window.len());
    window = window.clamp((selected + 1).saturating_sub(lines.max(1)), selected).min(held.saturating_sub(lines));
    (window, browse.window.rows().skip(window).take(lines).collect())
}

fn hits(table: &TableView<'_>, inside: Rect, top: usize, fitted: &[FittedColumn], drawn: &mut Drawn) {
    for y in inside.top()..inside.bottom() {
        if let Some(row) = table.row_at(inside, inside.x, y) {
            drawn.hits.add(Rect { y, height: 1, ..inside }, ClickTarget::ListRow(top + row));
        }
    }
    for x in inside.left()..inside.right() {
        if let Some(column) = table.column_at(inside, x, inside.y).and_then(|at| fitted.get(at)) {
            drawn.hits.add(Rect { x, width: 1, height: 1, ..inside }, ClickTarget::ListHead(column.spec.column));
        }
    }
}

fn column(fitted: &FittedColumn, browse: &ListScreen) -> TableColumn {
    let spec = fitted.spec;
    let used = browse.order_used();
    let sort = (used.column == spec.column).then_some(if used.descending {
        SortMark::Descending
    } else {
        SortMark::Ascending
    });
    let mut column = TableColumn::new(spec.title, Width::Exact(fitted.width)).sorted(sort);
    if matches!(spec.show, ValueStyle::Count | ValueStyle::Number | ValueStyle::Score) {
        column.align = Align::Right;
    }
    column
}

fn table_row(row: &Row, cx: &Context, browse: &ListScreen, fitted: &[FittedColumn], look: &Look) -> TableRow {
    let sorted = browse.order_used().column;
    let value = |c: &FittedColumn| {
        let value = cell::cell(row, c.spec, usize::from(c.width), &cx.names, look);
        // A substitute is not what the rows are in order by.
        if c.spec.column != sorted || !cell::is_untitled(row, c.spec) || value.width() < 2 {
            return value;
        }
        let mut marked = TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted).with(" ", StyleRole::Text);
        marked.append(value);
        marked
    };
    let mut cells: Vec<TextLine> = fitted.iter().map(value).collect();
    if let (Some(mut marked), Some(first)) = (cell::hold_mark(row, &cx.names, look), cells.first_mut()) {
        marked.append(std::mem::take(first));
        *first = marked;
    }
    let shown = |name: &str| fitted.iter().any(|c| c.spec.column == name);
    let is_quarantined = cell::is_quarantined(row) && !shown("quarantined");
    let has_problem = row.problems.iter().any(|problem| !shown(&problem.column));
    let free = fitted.iter().position(|c| c.spec.max == 0).and_then(|at| cells.get_mut(at));
    if let (true, Some(cell)) = (is_quarantined || has_problem, free) {
        let mut marked =
            TextLine::default().with_glyph(look.glyphs.warning, StyleRole::Warn).with(" ", StyleRole::Text);
        if is_quarantined {
            marked.push(cell::QUARANTINED, StyleRole::Warn);
        }
        marked.append(std::mem::take(cell));
        *cell = marked;
    }
    TableRow { cells, marked: browse.marks.contains(&RowKey::of(row)), stale: browse.is_stale() }
}

/// Builds the card shown in place of rows: still reading, nothing found, or a failure.
fn message(cx: &Context, browse: &ListScreen) -> Option<Card> {
    if !browse.window.is_empty() {
        return None;
    }
    if let Some(failure) = &browse.failure {
        return Some(failure_card(cx, failure));
    }
    if !browse.window.is_filled() || browse.is_stale() {
        return Some(Card::new(CardTone::Plain, "Reading"));
    }
    if browse.conditions.is_empty() {
        return Some(nothing(browse.entity));
    }
    let card = Card::new(CardTone::Plain, format!("No {} match", browse.entity.plural()))
        .line(SafeText::limited(&told(cx, &browse.conditions), 300));
    Some(card.hint(hint_of(cx, CommandId::Filter, "change the filter")).hint(hint_of(
        cx,
        CommandId::ClearFilter,
        "clear it",
    )))
}

/// Builds the card of a list without rows.
fn nothing(entity: Entity) -> Card {
    if entity == Entity::AuditEntry {
        return Card::new(CardTone::Plain, "There are no audit entries yet")
            .line("Every change that is made here adds one.");
    }
    let is_mass = matches!(entity, Entity::Feedback | Entity::UtilityEvent);
    let (are, them) = if is_mass { ("is", "it") } else { ("are", "them") };
    Card::new(CardTone::Plain, format!("There {are} no {} here", entity.plural()))
        .line(format!("Agents write {them}; on the command line `import`, `copy` and `record` do."))
}

/// The kind of the rows, and their order if no visible column is marked with it.
fn title(cx: &Context, browse: &ListScreen, fitted: &[FittedColumn]) -> SafeText {
    let (name, order) = (browse.entity.plural(), browse.order_used());
    let says_nothing = browse.window.is_empty() || cx.opened.unfilled.contains(&(browse.entity, order.column));
    if says_nothing || fitted.iter().any(|c| c.spec.column == order.column) {
        return name.into();
    }
    let way = if order.descending { "descending" } else { "ascending" };
    SafeText::new(&format!("{name} by {}, {way}", order.column.replace('_', " ")))
}

/// After the title: new rows, and the filter.
fn note(cx: &Context, browse: &ListScreen, look: &Look) -> TextLine {
    let mut line = news(&browse.live, cx, look);
    if browse.conditions.is_empty() {
        return line;
    }
    if !line.runs.is_empty() {
        line.push("  ", StyleRole::Text);
    }
    line.with("where ", StyleRole::Muted).with(SafeText::limited(&told(cx, &browse.conditions), 120), StyleRole::Accent)
}

/// Number of rows in the list, if known, without those that others added before its first row meanwhile.
pub fn total(cx: &Context, browse: &ListScreen) -> Total {
    let counted = browse.counted.count.filter(|count| !count.more);
    let (all, is_exact) = match (browse.window.total(), counted, cx.count(browse.entity)) {
        (Some(total), ..) => return Total::Exact(total as u64),
        (None, Some(count), _) => (count.rows, true),
        (None, None, Some((count, kind))) if browse.conditions.is_empty() => {
            (count, kind == CountKind::Exact && !browse.live.grown)
        }
        _ => return Total::Unknown,
    };
    let fresh = if browse.order.is_none() { browse.live.fresh } else { 0 };
    // An estimate contains them or not: it does not go up and down with them.
    if is_exact && fresh <= COUNTED { Total::Exact(all.saturating_sub(fresh as u64)) } else { Total::About(all) }
}

fn extent(cx: &Context, browse: &ListScreen, top: usize, shown: usize) -> Extent {
    let selected = browse.window.selected();
    let first = browse.window.number().map(|number| number.saturating_sub(1 + selected.saturating_sub(top)) as u64);
    let total = total(cx, browse);
    // From the end of the list, positions can be counted backwards if the total is known.
    let first = first.or_else(|| match (total, browse.window.to_end()) {
        (Total::Exact(all) | Total::About(all), Some(to_end)) => {
            all.checked_sub(1 + to_end as u64 + selected.saturating_sub(top) as u64)
        }
        _ => None,
    });
    Extent {
        first,
        total,
        above: first != Some(0) || top > 0,
        below: top + shown < browse.window.len() || !browse.window.is_at_end(),
    }
}

/// In the lower edge: the number of the selected row, the total, and the number of marked rows.
fn position(cx: &Context, browse: &ListScreen) -> TextLine {
    let mut line = TextLine::default();
    if !browse.marks.is_empty() {
        line.push(format!("{} marked", browse.marks.len()), StyleRole::Accent);
        let is_whole = browse.window.total() == Some(browse.window.len());
        let here = browse.window.rows().filter(|row| browse.marks.contains(&RowKey::of(row))).count();
        let away = browse.marks.len().saturating_sub(here);
        if is_whole && away > 0 {
            line.push(format!(", {away} not in this list"), StyleRole::Accent);
        }
        line.push("   ", StyleRole::Text);
    }
    if browse.pending.is_some() {
        line.push("reading   ", StyleRole::Muted);
    }
    let number = match (browse.window.number(), browse.window.to_end()) {
        (Some(number), _) => SafeText::join(&["row ".into(), figures::count(number as u64)], ""),
        (None, Some(0)) => "last row".into(),
        (None, Some(to_end)) => SafeText::join(&[figures::count(to_end as u64), " before the last".into()], ""),
        (None, None) => return line,
    };
    line.push(number, StyleRole::Text);
    match total(cx, browse) {
        Total::Exact(total) => line.push(SafeText::join(&[" of ".into(), figures::count(total)], ""), StyleRole::Muted),
        Total::About(total) => {
            line.push(SafeText::join(&[" of ".into(), words::count(total, CountKind::About)], ""), StyleRole::Muted);
        }
        Total::Unknown => match browse.counted.count {
            Some(count) => {
                let words = [" of more than ".into(), figures::count(count.rows)];
                line.push(SafeText::join(&words, ""), StyleRole::Muted);
            }
            None => line.push(", more follow", StyleRole::Muted),
        },
    }
    line
}
