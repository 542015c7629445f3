//! Tables for people. Ids are shown in full, because the next command takes them; free texts use the remaining width;
//! columns that do not fit are dropped and named.

use std::io::{self, Write};

use super::ink::OutputInk;
use crate::ui::text::{Align, SafeText};

/// Width of a free text, in terminal columns, below which another column is dropped for it.
const LEAST_TEXT: usize = 22;
/// The same in tenths of the width, if that is more.
const LEAST_TENTHS: usize = 3;

/// Blanks between two columns.
const GAP: usize = 2;

/// Sign for a missing value.
pub const NOTHING: &str = "·";

/// Form in which a column is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellShape {
    /// Never cut, left-aligned: ids, times, fixed words.
    Word,
    /// Whole, at the right.
    Number,
    /// Cut if there is no room.
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedColumn {
    pub title: String,
    /// Unit or time zone that follows the heading in brackets.
    pub unit: Option<String>,
    /// Form in which the column is printed.
    pub shape: CellShape,
    /// 0 is never dropped; the greatest number is dropped first.
    pub rank: u8,
}

impl PrintedColumn {
    pub fn new(title: &str, shape: CellShape, rank: u8) -> Self {
        PrintedColumn { title: title.to_owned(), unit: None, shape, rank }
    }

    pub fn with(self, unit: Option<String>) -> Self {
        PrintedColumn { unit, ..self }
    }

    fn heading(&self) -> SafeText {
        let unit = self.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
        SafeText::new(&format!("{}{unit}", self.title))
    }

    fn align(&self) -> Align {
        if self.shape == CellShape::Number { Align::Right } else { Align::Left }
    }
}

/// Columns that are never dropped, from their headings and shapes.
pub fn columns(all: &[(&str, CellShape)]) -> Vec<PrintedColumn> {
    all.iter().map(|(title, shape)| PrintedColumn::new(title, *shape, 0)).collect()
}

/// Columns and texts that the table leaves out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FittedTable {
    pub dropped: Vec<String>,
    pub cut: bool,
}

impl FittedTable {
    /// Describes the omissions of the table in one line; `None` if it shows everything.
    pub fn note(&self, width: Option<usize>) -> Option<String> {
        let dropped = (!self.dropped.is_empty()).then(|| format!("no room for {}", self.dropped.join(", ")));
        let cut = self.cut.then(|| "long texts are cut".to_owned());
        let parts: Vec<String> = dropped.into_iter().chain(cut).collect();
        let width = width.filter(|_| !parts.is_empty())?;
        Some(format!("at {width} columns: {}; --format json shows everything", parts.join("; ")))
    }
}

/// Writes a table, at most as wide as `width` if its uncut columns allow that; without a width nothing is cut or
/// dropped.
pub fn write(
    out: &mut dyn Write,
    columns: &[PrintedColumn],
    rows: &[Vec<SafeText>],
    width: Option<usize>,
    ink: OutputInk,
) -> io::Result<FittedTable> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let title = column.heading().width();
            rows.iter().filter_map(|row| row.get(at)).map(SafeText::width).fold(title, usize::max)
        })
        .collect();
    let is_empty = |at: usize| !rows.is_empty() && rows.iter().all(|row| row.get(at).is_none_or(is_nothing));
    let places = places(columns, &natural, &is_empty, width);
    let mut fitted = FittedTable::default();
    let is_kept = |at: usize| places.iter().any(|place| place.0 == at);
    fitted.dropped.extend((0..columns.len()).filter(|at| !is_kept(*at)).map(|at| columns[at].title.clone()));
    let last = places.last().map(|place| place.0);
    let padded = |cell: &SafeText, at: usize, width: usize| {
        let is_open = Some(at) == last && columns[at].align() == Align::Left;
        if is_open { cell.cut(width) } else { cell.pad(width, columns[at].align()) }
    };
    let titles: Vec<String> =
        places.iter().map(|(at, width)| ink.heading(padded(&columns[*at].heading(), *at, *width).as_str())).collect();
    writeln!(out, "{}", titles.join("  ").trim_end())?;
    for row in rows {
        let mut line = String::new();
        for (number, (at, width)) in places.iter().enumerate() {
            let Some(cell) = row.get(*at) else { continue };
            fitted.cut |= cell.width() > *width;
            let shown = padded(cell, *at, *width);
            line.push_str(if number > 0 { "  " } else { "" });
            line.push_str(&ink.cell(cell.as_str(), shown.as_str()));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(fitted)
}

fn is_nothing(cell: &SafeText) -> bool {
    cell.as_str().is_empty() || cell.as_str() == NOTHING
}

/// The columns shown, each with its width.
fn places(
    columns: &[PrintedColumn],
    natural: &[usize],
    is_empty: &dyn Fn(usize) -> bool,
    width: Option<usize>,
) -> Vec<(usize, usize)> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let Some(room) = width else { return kept.into_iter().map(|at| (at, natural[at])).collect() };
    let is_text = |at: &usize| columns[*at].shape == CellShape::Text;
    let least_text = LEAST_TEXT.max(room * LEAST_TENTHS / 10);
    let least = |at: &usize| if is_text(at) { natural[*at].min(least_text) } else { natural[*at] };
    let gaps = |kept: &[usize]| GAP * kept.len().saturating_sub(1);
    let needs = |kept: &[usize]| kept.iter().map(least).sum::<usize>() + gaps(kept);
    let cuts = |kept: &[usize]| kept.iter().map(|at| natural[*at]).sum::<usize>() + gaps(kept) > room;
    // An empty column is dropped before one with values; among equals, the last one.
    let order = |at: &usize| (is_empty(*at), columns[*at].rank, *at);
    let mut dropped = Vec::new();
    while cuts(&kept) {
        let Some(gone) = kept.iter().copied().filter(|at| columns[*at].rank > 0).max_by_key(order) else { break };
        if needs(&kept) <= room && !is_empty(gone) {
            break;
        }
        kept.retain(|at| *at != gone);
        dropped.push(gone);
    }
    // A column dropped before a wide one may fit now.
    for at in dropped.into_iter().rev().filter(|at| !is_empty(*at)) {
        let mut more = kept.clone();
        more.push(at);
        more.sort_unstable();
        if needs(&more) <= room {
            kept = more;
        }
    }
    let whole: usize = kept.iter().filter(|at| !is_text(at)).map(|at| natural[*at]).sum();
    let mut left = room.saturating_sub(whole + GAP * kept.len().saturating_sub(1));
    let mut texts: Vec<usize> = kept.iter().copied().filter(|at| is_text(at)).collect();
    texts.sort_by_key(|at| natural[*at]);
    // Short columns come first: the room they do not need goes to the long ones.
    let mut widths = natural.to_vec();
    for (number, at) in texts.iter().enumerate() {
        let share = left / (texts.len() - number);
        // Some of a text is shown even if the ids alone are too wide.
        widths[*at] = natural[*at].min(share.max(8));
        left = left.saturating_sub(widths[*at]);
    }
    kept.into_iter().map(|at| (at, widths[at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: Option<usize>) -> (String, FittedTable) {
        let columns = [
            PrintedColumn::new("Episode", CellShape::Word, 0),
            PrintedColumn::new("Score", CellShape::Number, 1),
            PrintedColumn::new("Agent", CellShape::Word, 2),
            PrintedColumn::new("Title", CellShape::Text, 0),
        ];
        let row = |cells: [&str; 4]| cells.map(SafeText::new).to_vec();
        let rows = [
            row(["ep_0123456789abcdef", "-0.5", "agent-books", "報告書を更新する Friday, before the meeting begins"]),
            row(["ep_1", "12", NOTHING, "🦊 short"]),
        ];
        let mut out = Vec::new();
        let fitted = write(&mut out, &columns, &rows, width, OutputInk::none()).unwrap();
        (String::from_utf8(out).unwrap(), fitted)
    }

    #[test]
    fn without_a_width_everything_is_shown() {
        let (text, fitted) = drawn(None);
        assert!(text.contains("meeting begins") && text.contains("agent-books"), "{text}");
        assert_eq!(fitted, FittedTable::default());
    }

    #[test]
    fn ids_stay_whole_and_what_is_dropped_is_named() {
        let (text, fitted) = drawn(Some(60));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("ep_0123456789abcdef   -0.5  報告書を更新する"), "{text}");
        assert!(lines[2].starts_with("ep_1                    12  🦊 short"), "{text}");
        assert!(text.lines().all(|line| SafeText::new(line).width() <= 60), "{text}");
        assert_eq!((fitted.dropped, fitted.cut), (vec!["Agent".to_owned()], true));
    }

    #[test]
    fn a_narrow_column_stays_where_a_wide_one_goes() {
        let columns = [
            PrintedColumn::new("Feedback", CellShape::Word, 0),
            PrintedColumn::new("Episode", CellShape::Word, 1),
            PrintedColumn::new("Kind", CellShape::Word, 2),
        ];
        let uuid = "51a179a2-961e-4a71-a819-8ad40273ae08";
        let mut out = Vec::new();
        let fitted = write(
            &mut out,
            &columns,
            &[[uuid, uuid, "rating"].map(SafeText::new).to_vec()],
            Some(60),
            OutputInk::none(),
        );
        assert_eq!(fitted.unwrap().dropped, ["Episode"]);
    }

    #[test]
    fn a_column_that_says_nothing_goes_before_a_text_is_cut() {
        let columns = [
            PrintedColumn::new("Episode", CellShape::Word, 0),
            PrintedColumn::new("Utility", CellShape::Number, 2),
            PrintedColumn::new("Status", CellShape::Word, 3),
            PrintedColumn::new("Title", CellShape::Text, 0),
        ];
        let rows = [["ep_1", NOTHING, "closed", "Roll back the deployment of Friday"].map(SafeText::new).to_vec()];
        let dropped = |width| write(&mut Vec::new(), &columns, &rows, Some(width), OutputInk::none()).unwrap().dropped;
        assert!(dropped(80).is_empty());
        assert_eq!(dropped(50), ["Utility"]);
        assert_eq!(dropped(36), ["Utility", "Status"]);
    }

    #[test]
    fn an_id_is_whole_where_nothing_else_has_room() {
        let (text, fitted) = drawn(Some(20));
        assert!(text.contains("ep_0123456789abcdef"), "{text}");
        assert_eq!(fitted.dropped, ["Score", "Agent"]);
    }
}
