//! The list: a table of the rows on screen, with where they stand in the whole.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Drawn, cell, words};
use crate::app::columns::{ListColumn, Show, list_columns, plural};
use crate::app::place::{Browse, Pane as Keys};
use crate::app::window::row_key;
use crate::app::{Model, Target};
use crate::memory::Row;
use crate::memory::query::CountKind;
use crate::ui::{
    Align, Body, Card, Column, Extent, KeyHint, Look, Pane, Role, SafeText, Sort, Table, TableRow, TextLine, Tone,
    Total, Width, figures,
};

/// Blank columns between two columns, and those at the sides.
const GAP: u16 = 2;
const SIDES: u16 = 4;

/// Draws the list with its frame.
pub fn draw(model: &Model, browse: &Browse, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = Pane {
        title: plural(browse.entity).into(),
        note: note(model, browse),
        foot: position(model, browse),
        focused: browse.pane == Keys::List,
        tone: None,
    };
    drawn.hits.add(area, Target::List);
    let inside = pane.render(area, buf, look);
    let lines = Table::capacity(inside);
    drawn.measures.list_rows = lines;
    let wide = is_wide(list_columns(browse.entity), inside.width);
    let columns: Vec<Column> = list_columns(browse.entity).iter().map(|c| column(c, browse, wide)).collect();
    let card = message(model, browse);
    let (top, rows) = visible(browse, lines);
    let table_rows: Vec<TableRow> = rows.iter().map(|row| table_row(row, browse, inside.width, wide, look)).collect();
    let table = Table {
        columns: &columns,
        body: card.as_ref().map_or(Body::Rows(&table_rows), Body::Card),
        selected: browse.window.selected().checked_sub(top).filter(|at| *at < rows.len()),
        focused: browse.pane == Keys::List,
        marks: !browse.marks.is_empty(),
        extent: extent(model, browse, top, rows.len()),
    };
    table.render(inside, buf, look);
    hits(&table, inside, top, browse, drawn);
}

/// The rows on screen and the position of the first one among those held.
fn visible(browse: &Browse, lines: usize) -> (usize, Vec<&Row>) {
    let mut window = browse.window.top();
    // The height may have changed since the model scrolled.
    let (selected, held) = (browse.window.selected(), browse.window.len());
    window = window.clamp((selected + 1).saturating_sub(lines.max(1)), selected).min(held.saturating_sub(lines));
    (window, browse.window.rows().skip(window).take(lines).collect())
}

fn hits(table: &Table<'_>, inside: Rect, top: usize, browse: &Browse, drawn: &mut Drawn) {
    for y in inside.top()..inside.bottom() {
        if let Some(row) = table.row_at(inside, inside.x, y) {
            drawn.hits.add(Rect { y, height: 1, ..inside }, Target::ListRow(top + row));
        }
    }
    let columns = list_columns(browse.entity);
    for x in inside.left()..inside.right() {
        if let Some(column) = table.column_at(inside, x, inside.y).and_then(|at| columns.get(at)) {
            drawn.hits.add(Rect { x, width: 1, height: 1, ..inside }, Target::ListHead(column.column));
        }
    }
}

/// Whether every column can have its full width.
fn is_wide(columns: &[ListColumn], width: u16) -> bool {
    let wanted: u16 = columns.iter().map(|c| c.max.max(c.min) + GAP).sum();
    let important: u16 = columns.iter().filter(|c| c.priority <= 3).map(|c| c.max.max(c.min) + GAP).sum();
    width >= wanted.min(important + 12) + SIDES
}

fn column(spec: &ListColumn, browse: &Browse, wide: bool) -> Column {
    let width = match (spec.max, wide) {
        (0, _) => Width::Grow { min: spec.min, weight: 1 },
        (max, true) => Width::Fixed(max),
        (_, false) => Width::Fixed(spec.min),
    };
    let used = browse.order_used();
    let sort = (used.column == spec.column).then_some(if used.descending { Sort::Descending } else { Sort::Ascending });
    let mut column = Column::new(spec.title, width).priority(spec.priority).sorted(sort);
    if matches!(spec.show, Show::Count | Show::Number | Show::Score) {
        column.align = Align::Right;
    }
    column
}

fn table_row(row: &Row, browse: &Browse, width: u16, wide: bool, look: &Look) -> TableRow {
    let room = |spec: &ListColumn| match spec.max {
        0 => usize::from(width),
        max => usize::from(max),
    };
    let mut cells: Vec<TextLine> =
        list_columns(browse.entity).iter().map(|c| cell::cell(row, c, room(c), wide, look)).collect();
    let shown = |name: &str| list_columns(browse.entity).iter().any(|c| c.column == name);
    if row.problems.iter().any(|problem| !shown(&problem.column))
        && let Some(first) = list_columns(browse.entity).iter().position(|c| c.max == 0)
    {
        let mut marked = TextLine::default().with_glyph(look.glyphs.warning, Role::Warn).with(" ", Role::Text);
        marked.append(std::mem::take(&mut cells[first]));
        cells[first] = marked;
    }
    TableRow { cells, marked: browse.marks.contains(&row_key(row)), stale: browse.is_stale() }
}

/// What stands in the place of rows: nothing yet, nothing at all, or why not.
fn message(model: &Model, browse: &Browse) -> Option<Card> {
    if !browse.window.is_empty() {
        return None;
    }
    if let Some(failure) = &browse.failure {
        let card =
            Card::new(Tone::Bad, SafeText::limited(&failure.what, 60)).line(SafeText::limited(&failure.message, 400));
        let card = failure.remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(remedy, 200)));
        return Some(card.hint(KeyHint::new("r", "try again")));
    }
    if !browse.window.is_filled() || browse.is_stale() {
        return Some(Card::new(Tone::Plain, "Reading"));
    }
    if browse.conditions.is_empty() {
        return Some(Card::new(Tone::Plain, format!("There are no {} here", plural(browse.entity))));
    }
    let line = model.masking.shown(&browse.conditions).line();
    let card =
        Card::new(Tone::Plain, format!("No {} match", plural(browse.entity))).line(SafeText::limited(&line, 300));
    Some(card.hint(KeyHint::new("/", "change the filter")).hint(KeyHint::new("\\", "clear it")))
}

/// After the title: the filter.
fn note(model: &Model, browse: &Browse) -> TextLine {
    if browse.conditions.is_empty() {
        return TextLine::default();
    }
    let line = model.masking.shown(&browse.conditions).line();
    TextLine::of("where ", Role::Muted).with(SafeText::limited(&line, 120), Role::Accent)
}

fn total(model: &Model, browse: &Browse) -> Total {
    match (browse.window.total(), model.count(browse.entity)) {
        (Some(total), _) => Total::Exact(total as u64),
        (None, Some((count, CountKind::Exact))) if browse.conditions.is_empty() => Total::Exact(count),
        (None, Some((count, CountKind::About))) if browse.conditions.is_empty() => Total::About(count),
        _ => Total::Unknown,
    }
}

fn extent(model: &Model, browse: &Browse, top: usize, shown: usize) -> Extent {
    let selected = browse.window.selected();
    let first = browse.window.number().map(|number| number.saturating_sub(1 + selected.saturating_sub(top)) as u64);
    let total = total(model, browse);
    // From the end of the list one can count backwards where the whole was counted.
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

/// In the lower edge: which row of how many, and how many are marked.
fn position(model: &Model, browse: &Browse) -> TextLine {
    let mut line = TextLine::default();
    if !browse.marks.is_empty() {
        line.push(format!("{} marked", browse.marks.len()), Role::Accent);
        line.push("   ", Role::Text);
    }
    if browse.pending.is_some() {
        line.push("reading   ", Role::Muted);
    }
    let number = match (browse.window.number(), browse.window.to_end()) {
        (Some(number), _) => SafeText::join(&["row ".into(), figures::count(number as u64)], ""),
        (None, Some(0)) => "last row".into(),
        (None, Some(to_end)) => SafeText::join(&[figures::count(to_end as u64), " before the last".into()], ""),
        (None, None) => return line,
    };
    line.push(number, Role::Text);
    match total(model, browse) {
        Total::Exact(total) => line.push(SafeText::join(&[" of ".into(), figures::count(total)], ""), Role::Muted),
        Total::About(total) => {
            line.push(SafeText::join(&[" of ".into(), words::count(total, CountKind::About)], ""), Role::Muted);
        }
        Total::Unknown => line.push(" of more", Role::Muted),
    }
    line
}
