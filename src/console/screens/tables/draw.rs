//! The tables at the left or above, the rows of the selected one beside or below, each column as wide as its values
//! need.

use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::Value;

use crate::console::core::{ClickTarget, CommandId, Context, ScreenKind};
use crate::console::screens::tables::TablesScreen;
use crate::console::screens::tables::messages::{TableEntry, TablePage};
use crate::console::view::{Canvas, Drawn, PanelList, drawn_key, failure_card, fetched_card, hint_of, words};
use crate::memory::agreeing;
use crate::memory::growth::{GrowthBars, TableGrowth};
use crate::ui::chart::{Histogram, meter};
use crate::ui::{
    Align, Card, CardTone, Look, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Width, figures,
    look as lay,
};

/// Most columns of a value; the selected row is shown in full below.
const WIDEST: usize = 40;
/// Least width of a column that is cut rather than dropped.
const READABLE: usize = 8;
/// Columns of the bar of a table.
const SHARE: usize = 12;

pub fn draw(cx: &Context, screen: &TablesScreen, canvas: &mut Canvas<'_>) {
    const BESIDE: u16 = 130;
    /// Least columns of the rows.
    const ROWS: u16 = 60;
    /// Below this height one of the panes takes the whole screen.
    const BOTH: u16 = 14;
    let body = canvas.area;
    let (list, rows) = if body.height < BOTH {
        let none = Rect { height: 0, ..body };
        if screen.in_rows { (none, body) } else { (body, none) }
    } else if canvas.look.is_beside(body.width, BESIDE.max(widest(screen) + ROWS)) {
        let width = (body.width * 2 / 5).max(widest(screen));
        lay::side_by_side(body, width)
    } else {
        let height = body.height * 2 / 5;
        lay::stacked(body, height)
    };
    if list.height > 0 {
        draw_tables(cx, screen, canvas.look, list, canvas.buf, canvas.drawn);
    }
    if rows.height > 0 {
        draw_rows(cx, screen, canvas.look, rows, canvas.buf, canvas.drawn);
    }
}

/// Columns of the longest name of a table.
fn longest(screen: &TablesScreen) -> u16 {
    let tables = screen.tables.value.as_deref().unwrap_or_default();
    tables.iter().map(|table| table.name.chars().count()).max().unwrap_or(0).clamp(12, 40) as u16
}

/// Columns that the list of tables needs to drop none.
fn widest(screen: &TablesScreen) -> u16 {
    const OTHERS: u16 = 45;
    longest(screen) + OTHERS
}

fn draw_tables(cx: &Context, screen: &TablesScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let inside = PaneFrame { focused: !screen.in_rows, ..PaneFrame::new("tables") }.render(area, buf, look);
    drawn.hits.add(inside, ClickTarget::List);
    let tables = screen.tables.value.as_deref().unwrap_or_default();
    let columns = [
        TableColumn::new("table", Width::Fixed(longest(screen))),
        TableColumn::new("rows", Width::Fixed(11)).right(),
        TableColumn::new("share", Width::Fixed(SHARE as u16)).priority(3),
        TableColumn::new("holds", Width::Grow { min: 10, weight: 1 }).priority(2),
    ];
    let card = fetched_card(cx, &screen.tables, "Reading");
    let card = card.or_else(|| tables.is_empty().then(|| no_tables(cx)));
    let list = PanelList::of(&columns, tables.len(), screen.selected, card);
    let list = PanelList { focused: !screen.in_rows, ..list };
    let most = tables.iter().filter_map(|table| table.rows).max().unwrap_or(0);
    list.draw(|at| tables.get(at).map(|table| table_row(table, most, look)), look, inside, buf, drawn);
}

/// Builds the card of a database without tables.
fn no_tables(cx: &Context) -> Card {
    let creates = hint_of(cx, CommandId::Panel(ScreenKind::Migrations), "creates the memory tables");
    Card::new(CardTone::Plain, "There are no tables here").hint(creates)
}

/// A table; its bar is its share of the rows of the largest one, `most`.
fn table_row(table: &TableEntry, most: u64, look: &Look) -> TableRow {
    let rows = match table.rows {
        Some(rows) if table.about => SafeText::join(&["about ".into(), figures::count(rows)], ""),
        Some(rows) => figures::count(rows),
        None => SafeText::default(),
    };
    let holds = match (&table.unread, &table.entities[..]) {
        (Some(why), _) => TextLine::of(SafeText::limited(why, 120), StyleRole::Warn),
        (None, []) => {
            let why = table.rows_reason.iter().filter(|_| table.rows.is_none());
            // That a table is a table says nothing about what it holds.
            let kind = [&table.kind].into_iter().filter(|kind| *kind != "table");
            let words: Vec<&str> = kind.chain(why).map(String::as_str).collect();
            match &words[..] {
                [] => TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted),
                words => TextLine::of(SafeText::limited(&words.join(", "), 120), StyleRole::Muted),
            }
        }
        (None, entities) => TextLine::of(SafeText::limited(&entities.join(", "), 120), StyleRole::Accent),
    };
    let name = TextLine::of(SafeText::limited(&table.name, 80), StyleRole::Text);
    let share = match table.rows {
        Some(rows) if most > 0 => meter(rows as f64 / most as f64, SHARE, StyleRole::Accent, look),
        _ => TextLine::default(),
    };
    TableRow { cells: vec![name, TextLine::of(rows, StyleRole::Number), share, holds], marked: false, stale: false }
}

fn draw_rows(cx: &Context, screen: &TablesScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let title = screen.current().map_or_else(|| "rows".to_owned(), |table| table.name.clone());
    let note = screen.current().map(told).unwrap_or_default();
    let note = TextLine::of(SafeText::limited(&note, 120), StyleRole::Muted);
    let pane = PaneFrame { focused: screen.in_rows, note, ..PaneFrame::new(SafeText::limited(&title, 60)) };
    let inside = pane.render(area, buf, look);
    drawn.hits.add(inside, ClickTarget::Detail);
    if screen.current().is_none() {
        // The list shows the reason.
        return;
    }
    if let Some(card) = rows_card(cx, screen) {
        return card.render(inside, buf, look);
    }
    let growth = growth_rows(screen, inside.height);
    let above = Rect { height: inside.height - growth, ..inside };
    // The selected row is shown below, as far as there is room.
    let wanted = screen.rows.page.columns.len() as u16 + 1;
    let below = (above.height / 2).min(wanted).max(4).min(above.height.saturating_sub(4));
    let grid = Rect { height: above.height - below, ..above };
    draw_grid(screen, look, grid, buf);
    draw_row(screen, look, Rect { height: below, ..lay::below(above, grid.height) }, buf);
    draw_growth(screen, look, lay::below(inside, above.height), buf);
}

/// Rows for the growth chart, out of `height`; a message in its place takes fewer.
fn growth_rows(screen: &TablesScreen, height: u16) -> u16 {
    let is_told = matches!(screen.rows.growth, Some(Err(_)));
    match height {
        0..=7 => 0,
        8..=17 => 2,
        _ if is_told => 2,
        18..=27 => 5,
        _ => 9,
    }
}

/// The growth of the table: rows per week or month, with the time range and the largest bar's value.
fn draw_growth(screen: &TablesScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let inside = lay::padded(area);
    let bars_at = lay::below(inside, 1);
    let width = usize::from(inside.width);
    let head = |title: &str, buf: &mut Buffer| {
        crate::ui::Section::new(SafeText::limited(title, width)).line(width, look).render(
            lay::row(inside, 0),
            buf,
            look,
        );
    };
    let bars = match &screen.rows.growth {
        None => Err("being counted"),
        Some(Err(why)) => Err(why.as_str()),
        Some(Ok(growth)) => {
            let bars = growth.bars(width / 2).ok_or("no row has a readable time");
            bars.map(|bars| (growth_title(growth, &bars), bars))
        }
    };
    match bars {
        Ok((title, bars)) => {
            head(&title, buf);
            let ends = (bars.ends.0.to_string().into(), bars.ends.1.to_string().into());
            Histogram { buckets: &bars.counts, ends, role: StyleRole::Series1 }.render(bars_at, buf, look);
        }
        Err(why) => {
            head("growth", buf);
            look.text(lay::row(bars_at, 0), buf, &SafeText::limited(why, width), StyleRole::Muted);
        }
    }
}

/// Heading of the chart: the unit of a bar, the maximum, and the first and last date.
fn growth_title(growth: &TableGrowth, bars: &GrowthBars) -> String {
    let most = figures::count(bars.counts.iter().copied().max().unwrap_or(0));
    let untimed = match growth.untimed {
        0 => String::new(),
        rows => format!(", {} without a time", figures::count(rows)),
    };
    let entity = growth.entity.plural();
    format!("{entity} a {}, {} to {}: at most {most}{untimed}", bars.unit.word(), bars.ends.0, bars.ends.1)
}

/// Describes a table: its key and its number of columns.
fn told(table: &TableEntry) -> String {
    let key = if table.key.is_empty() { "no key".to_owned() } else { format!("key {}", table.key.join(", ")) };
    format!("{}, {key}", agreeing(table.columns.len(), "{#} {column|columns}"))
}

fn rows_card(cx: &Context, screen: &TablesScreen) -> Option<Card> {
    if let Some(why) = screen.current().and_then(|table| table.unread.as_ref()) {
        return Some(Card::new(CardTone::Warn, "Its rows cannot be read").line(SafeText::limited(why, 300)));
    }
    if let Some(failure) = &screen.rows.failure {
        return Some(failure_card(cx, failure));
    }
    match (screen.rows.filled, screen.rows.page.rows.is_empty()) {
        (false, _) => Some(Card::new(CardTone::Plain, "Reading")),
        (true, true) => Some(Card::new(CardTone::Plain, "It has no rows")),
        (true, false) => None,
    }
}

fn cell(value: &Value) -> SafeText {
    words::as_stored(value, WIDEST)
}

/// The columns that fit from the first one shown, and their widths.
fn fitted(page: &TablePage, first: usize, width: usize) -> Vec<(usize, usize)> {
    let widest = |at: usize| {
        let values = page.rows.iter().take(200).filter_map(|row| row.get(at)).map(|value| cell(value).width());
        let name = page.columns.get(at).map_or(0, |name| name.chars().count());
        values.max().unwrap_or(0).max(name).clamp(1, WIDEST)
    };
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let mut left = width;
    for at in first..page.columns.len() {
        let wanted = widest(at);
        if !columns.is_empty() && wanted > left {
            // The last one is cut rather than dropped, if enough of it can be read.
            if left >= READABLE {
                columns.push((at, left));
            }
            break;
        }
        columns.push((at, wanted.min(left)));
        left = left.saturating_sub(wanted + 2);
    }
    columns
}

fn draw_grid(screen: &TablesScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    let page = &screen.rows.page;
    let width = usize::from(area.width).saturating_sub(2);
    let columns = fitted(page, screen.first_column, width);
    let line = |cells: &dyn Fn(usize) -> SafeText, role: StyleRole| {
        let mut line = TextLine::default();
        for (at, width) in &columns {
            line.push_blanks(if line.runs.is_empty() { 1 } else { 2 });
            line.push(look.pad(&cells(*at), *width, Align::Left), role);
        }
        line
    };
    let name = |at: usize| SafeText::limited(page.columns.get(at).map(String::as_str).unwrap_or_default(), WIDEST);
    line(&name, StyleRole::Header).render(lay::row(area, 0), buf, look);
    let rows = usize::from(area.height.saturating_sub(1)).max(1);
    let top = (screen.row + 1).saturating_sub(rows);
    for (place, (at, row)) in page.rows.iter().enumerate().skip(top).take(rows).enumerate() {
        let value = |column: usize| row.get(column).map(cell).unwrap_or_default();
        let chosen = at == screen.row;
        let role = if chosen && screen.in_rows { StyleRole::Accent } else { StyleRole::Text };
        let place = lay::row(area, place as u16 + 1);
        line(&value, role).render(place, buf, look);
        if chosen {
            look.text(Rect { width: 1, ..place }, buf, &SafeText::glyphs(look.glyphs.cursor, 1), StyleRole::Accent);
        }
    }
}

/// The selected row, a column a line.
fn draw_row(screen: &TablesScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    let Some(row) = screen.rows.page.rows.get(screen.row) else { return };
    let width = usize::from(area.width).saturating_sub(2);
    let (first, all) = (screen.first_column, row.len());
    let lines = usize::from(area.height.saturating_sub(1));
    let note = if all.saturating_sub(first) > lines {
        let right = drawn_key(CommandId::ShiftColumns(true));
        format!("columns {} to {} of {all}; {right} shows the ones further right", first + 1, first + lines)
    } else {
        String::new()
    };
    let section =
        crate::ui::Section { note: TextLine::of(note, StyleRole::Muted), ..crate::ui::Section::new("this row") };
    section.line(width, look).render(lay::row(area, 0), buf, look);
    let columns = screen.rows.page.columns.iter().zip(row).skip(screen.first_column);
    for (line, (name, value)) in columns.take(lines).enumerate() {
        let label = look.pad(&SafeText::limited(name, 22), 22, Align::Left);
        let room = width.saturating_sub(25);
        let text = match value {
            Value::Null => TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted),
            value => TextLine::of(words::as_stored(value, room), StyleRole::Text),
        };
        let mut shown = TextLine::of(" ", StyleRole::Text).with(label, StyleRole::Label).with("  ", StyleRole::Text);
        shown.append(text);
        shown.render(lay::row(area, line as u16 + 1), buf, look);
    }
}
