//! Drawing of search results: a line for each row with the words highlighted, and the full context of the selected row.

use std::ops::Range;

use crate::console::core::{CommandId, Context, row_name};
use crate::console::view::{Canvas, Drawn, PanelList, draw_detail_lines, hint_of, sentences};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::screens::find::FindScreen;
use crate::memory::Row;
use crate::memory::search::{Search, SearchHit};
use crate::ui::{
    Card, CardTone, Look, PaneFrame, SafeText, Section, StyleRole, TableColumn, TableRow, TextLine, Total, Width,
    figures, look as lay,
};

/// Draws the screen: the list above, the selected row below.
pub fn draw(cx: &Context, screen: &FindScreen, canvas: &mut Canvas<'_>) {
    const DETAIL: u16 = 9;
    let body = canvas.area;
    let detail = DETAIL.min(body.height * 2 / 5);
    let list = Rect { height: body.height - detail, ..body };
    draw_list(cx, screen, canvas.look, list, canvas.buf, canvas.drawn);
    draw_detail(screen, canvas.look, lay::below(body, list.height), canvas.buf, canvas.drawn);
}

fn note(screen: &FindScreen) -> TextLine {
    let count = SafeText::join(&[figures::count(screen.found.len() as u64), " found".into()], "");
    let mut line = TextLine::of(count, StyleRole::Muted);
    match &screen.pending {
        Some((_, entity)) => line.push(format!(", looking in {}", entity.plural()), StyleRole::Info),
        None if screen.has_more() => line.push(", more below", StyleRole::Muted),
        None => {}
    }
    line
}

fn card(cx: &Context, screen: &FindScreen) -> Card {
    if screen.search.is_none() {
        return Card::new(CardTone::Plain, "Say what to look for").hint(hint_of(
            cx,
            CommandId::FindHere,
            "write words",
        ));
    }
    if !screen.is_done() {
        return Card::new(CardTone::Plain, "Looking");
    }
    let where_: Vec<&str> = screen.kinds.iter().map(|kind| kind.entity.plural()).collect();
    Card::new(CardTone::Plain, "Nothing was found")
        .line(SafeText::limited(&format!("looked in {}", where_.join(", ")), 200))
        .line("Every word must occur somewhere in a row's texts; double quotes keep words together.")
        .hint(hint_of(cx, CommandId::FindHere, "other words"))
}

fn draw_list(cx: &Context, screen: &FindScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = PaneFrame { focused: true, note: note(screen), ..PaneFrame::new("find") };
    let inside = pane.render(area, buf, look);
    let columns = [
        TableColumn::new("kind", Width::Fixed(9)),
        TableColumn::new("row", Width::Grow { min: 14, weight: 2 }),
        TableColumn::new("in", Width::Fixed(11)).priority(4),
        TableColumn::new("words", Width::Grow { min: 20, weight: 3 }),
    ];
    let count = screen.found.len();
    let card = (count == 0).then(|| card(cx, screen));
    let list = PanelList::of(&columns, count, screen.cursor.selected, card);
    let list = PanelList { more: screen.has_more(), total: Total::Unknown, ..list };
    list.draw(|at| screen.found.get(at).map(|(row, hit)| table_row(screen, row, hit)), look, inside, buf, drawn);
}

fn table_row(screen: &FindScreen, row: &Row, hit: &SearchHit) -> TableRow {
    let cells = vec![
        TextLine::of(SafeText::limited(&row.entity.title(), 20), StyleRole::Muted),
        TextLine::of(SafeText::limited(&row_name(row), 120), StyleRole::Text),
        TextLine::of(SafeText::limited(&hit.column.replace('_', " "), 20), StyleRole::Muted),
        lit(screen.search.as_ref(), &near(screen.search.as_ref(), &hit.snippet)),
    ];
    TableRow { cells, marked: false, stale: false }
}

/// A text from shortly before its first match, so that a narrow column shows it.
fn near(search: Option<&Search>, text: &str) -> String {
    const BEFORE: usize = 12;
    let safe = SafeText::new(text);
    let starts = search.iter().flat_map(|search| search.terms()).flat_map(|term| safe.find(term));
    let shown = safe.as_str();
    let Some(before) = starts.map(|hit| hit.start).min().and_then(|start| shown.get(..start)) else {
        return text.to_owned();
    };
    let from = before.char_indices().rev().nth(BEFORE).map_or(0, |(at, _)| at);
    let cut = before[from..].find(' ').map_or(from, |blank| from + blank + 1);
    if from == 0 { text.to_owned() } else { format!("…{}", &shown[cut..]) }
}

/// A text with the matches highlighted.
fn lit(search: Option<&Search>, text: &str) -> TextLine {
    let mut line = TextLine::of(SafeText::new(text), StyleRole::Text);
    for run in &mut line.runs {
        let terms = search.map(Search::terms).unwrap_or_default();
        let mut hits: Vec<Range<usize>> = terms.iter().flat_map(|term| run.text.find(term)).collect();
        hits.sort_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end)));
        hits.dedup_by(|next, before| next.start < before.end);
        run.hits = hits;
    }
    line
}

fn draw_detail(screen: &FindScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let inside = lay::padded(PaneFrame::new("where it stands").render(area, buf, look));
    let width = usize::from(inside.width.saturating_sub(2)).max(8);
    let mut lines = Vec::new();
    if let Some((row, hit)) = screen.current() {
        let mut head = TextLine::of(SafeText::limited(&row_name(row), width * 2 / 3), StyleRole::Heading);
        head.push_apart(SafeText::limited(&format!("{} {}", row.entity.title(), row.id()), 80), StyleRole::Muted);
        lines.push(head);
        let text = SafeText::new(&hit.snippet);
        lines.extend(text.wrap(width).map(|part| lit(screen.search.as_ref(), part.as_str())));
    }
    let failed = screen.kinds.iter().filter_map(|kind| Some((kind.entity, kind.failure.as_ref()?)));
    let failed: Vec<String> =
        failed.map(|(entity, failure)| format!("{} were not searched: {}", entity.plural(), failure.message)).collect();
    if !failed.is_empty() {
        lines.push(Section::new("not searched").line(width, look));
        lines.extend(sentences(&failed, StyleRole::Warn, width, look));
    }
    draw_detail_lines(&lines, screen.cursor.scroll, inside, look, buf, drawn);
}
