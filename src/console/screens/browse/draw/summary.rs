//! Below a high list: a chart of the loaded rows.

use std::collections::BTreeMap;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::Context;
use crate::console::screens::browse::ListScreen;
use crate::console::screens::browse::draw::list::total;
use crate::console::view::words;
use crate::memory::query::CountKind;
use crate::memory::{Entity, agreeing};
use crate::ui::chart::Histogram;
use crate::ui::{Look, SafeText, Section, StyleRole, TextLine, Total, figures, look as lay};

/// Rows of the picture with its heading.
const HEIGHT: u16 = 7;
/// Lists lower than this need all their rows.
const LEAST: u16 = 32;
/// Bars of a histogram.
const BUCKETS: usize = 11;

/// Returns the measured column of an entity: the column, its name for users, and its least and greatest value.
fn measured(entity: Entity) -> Option<(&'static str, &'static str, (f64, f64))> {
    match entity {
        Entity::Case => Some(("reward", "rewards", (0.0, 1.0))),
        Entity::Feedback => Some(("score", "scores", (-1.0, 1.0))),
        Entity::UtilityEvent => Some(("after", "utilities after a signal", (0.0, 1.0))),
        _ => None,
    }
}

/// Draws the chart at the foot of `area`, if there is one and room for it. Returns the remaining area.
pub fn draw(cx: &Context, browse: &ListScreen, look: &Look, area: Rect, buf: &mut Buffer) -> Rect {
    if area.height < LEAST || browse.window.is_empty() {
        return area;
    }
    if browse.entity == Entity::Episode {
        return outcomes(cx, browse, look, area, buf);
    }
    let Some((column, name, ends)) = measured(browse.entity) else { return area };
    let values: Vec<f64> = browse.window.rows().filter_map(|row| row.number(column)).collect();
    if values.is_empty() {
        return area;
    }
    let foot = Rect { y: area.bottom() - HEIGHT, height: HEIGHT, ..area };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let all = counted(cx, browse);
    let some = if values.len() < browse.window.len() { format!("{} among ", values.len()) } else { String::new() };
    let title = format!("{name} of {some}{all}, mean {mean:.2}");
    heading(&title, look, foot, buf);
    let buckets = buckets(&values, ends);
    let (least, greatest) = ends;
    let ends = (SafeText::new(&format!("{least:.0}")), SafeText::new(&format!("{greatest:.0}")));
    let histogram = Histogram { buckets: &buckets, ends, role: StyleRole::Accent };
    let body = lay::below(foot, 1);
    histogram.render(Rect { x: body.x + 2, width: body.width.saturating_sub(4).min(88), ..body }, buf, look);
    Rect { height: area.height - HEIGHT, ..area }
}

/// The rows that the picture is of, and of how many: `the newest 100 of 400 rows`.
fn counted(cx: &Context, browse: &ListScreen) -> String {
    let shown = browse.window.len();
    let is_newest = browse.order.is_none()
        && browse.live.fresh == 0
        && browse.window.number() == Some(browse.window.selected() + 1);
    let lead = if is_newest { "the newest " } else { "" };
    let total = match total(cx, browse) {
        Total::Exact(total) if total as usize <= shown => return agreeing(shown, "{#} {row|rows}"),
        Total::Exact(total) => figures::count(total),
        Total::About(total) => words::count(total, CountKind::About),
        Total::Unknown => return agreeing(shown, &format!("{lead}{{#}} {{row|rows}}")),
    };
    format!("{lead}{shown} of {} rows", total.as_str())
}

fn heading(title: &str, look: &Look, area: Rect, buf: &mut Buffer) {
    let inside = lay::padded(area);
    let line = Section::new(title).line(usize::from(inside.width), look);
    line.render(lay::row(inside, 0), buf, look);
}

/// Counts the values that fall into each of the buckets; values outside fall into the nearest.
fn buckets(values: &[f64], (least, greatest): (f64, f64)) -> [u64; BUCKETS] {
    let mut counts = [0; BUCKETS];
    for value in values.iter().filter(|value| value.is_finite()) {
        let share = ((value - least) / (greatest - least)).clamp(0.0, 1.0);
        counts[(share * (BUCKETS - 1) as f64).round() as usize] += 1;
    }
    counts
}

/// One line with the frequency of each outcome.
fn outcomes(cx: &Context, browse: &ListScreen, look: &Look, area: Rect, buf: &mut Buffer) -> Rect {
    const ROWS: u16 = 2;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in browse.window.rows() {
        *counts.entry(row.text("outcome").unwrap_or("unknown")).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if matches!(counts.as_slice(), [("unknown", _)]) {
        return area;
    }
    let foot = Rect { y: area.bottom() - ROWS, height: ROWS, ..area };
    heading(&format!("outcomes of {}", counted(cx, browse)), look, foot, buf);
    let mut line = TextLine::default();
    for (word, count) in counts {
        line.append(words::state(word, look));
        line.push(format!(" {count}"), StyleRole::Number);
        line.push("   ", StyleRole::Text);
    }
    line.render(Rect { x: foot.x + 2, width: foot.width.saturating_sub(3), ..lay::row(foot, 1) }, buf, look);
    Rect { height: area.height - ROWS, ..area }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_a_bucket() {
        let counts = buckets(&[-1.0, -1.0, 0.0, 1.0, 7.0, f64::NAN], (-1.0, 1.0));
        assert_eq!((counts[0], counts[5], counts[10]), (2, 1, 2));
    }
}
