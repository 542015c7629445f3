//! An agent: readiness by both formulas side by side, interventions, canvases, fading memories, misleading and helpful
//! ones.

use super::{cell, number};
use crate::console::core::Context;
use crate::console::screens::study::StudyScreen;
use crate::console::view::{Sheet, words};
use crate::memory::query::CountKind;
use crate::memory::{Entity, thousands};
use crate::recall::understand::WeightedMean;
use crate::recall::understand::canvas::Engagement;
use crate::recall::understand::forgetting::Curve;
use crate::recall::understand::report::{Graduation, Insights};
use crate::recall::understand::usefulness::{JudgedMemories, Usefulness};
use crate::ui::chart::{diverging, meter};
use crate::ui::{Align, Look, NamedValue, SafeText, StyleRole, TableColumn, TableRow, TextLine, Width, figures};

pub fn columns() -> Vec<TableColumn> {
    vec![
        TableColumn::new("agent", Width::Grow { min: 14, weight: 2 }),
        TableColumn::new("status", Width::Fixed(12)),
        TableColumn::new("episodes", Width::Fixed(9)).right(),
        TableColumn::new("last seen", Width::Fixed(11)).priority(2),
    ]
}

/// An agent of the list, or all of them together.
pub fn row(study: &StudyScreen, cx: &Context, at: usize, look: &Look) -> TableRow {
    let cells = match study.agents.get(at) {
        None => {
            let episodes = study.agents.iter().filter_map(|a| a.get("episodes").as_i64());
            let all = episodes.fold(0, i64::saturating_add);
            vec![
                TextLine::of("all agents", StyleRole::Accent),
                TextLine::default(),
                TextLine::of(figures::count(all_episodes(cx, all.unsigned_abs())), StyleRole::Number),
                TextLine::default(),
            ]
        }
        Some(agent) => {
            let name = agent.text("name").or(agent.text("id")).unwrap_or_default();
            let episodes = agent.get("episodes").as_i64().map(|n| figures::count(n.unsigned_abs()));
            vec![
                TextLine::of(SafeText::limited(name, 60), StyleRole::Text),
                agent.text("status").map_or_else(TextLine::default, |word| words::state(word, look)),
                TextLine::of(episodes.unwrap_or_default(), StyleRole::Number),
                TextLine::of(agent.text("last_seen").map(words::short_time).unwrap_or_default(), StyleRole::Muted),
            ]
        }
    };
    TableRow { cells, marked: false, stale: false }
}

/// Number of all episodes, also those without an agent; if they were not counted, of those of the `listed` agents.
fn all_episodes(cx: &Context, listed: u64) -> u64 {
    match cx.count(Entity::Episode) {
        Some((all, CountKind::Exact)) => all.max(listed),
        _ => listed,
    }
}

/// Draws the insights into an agent, or into all agents.
pub fn sheet(sheet: &mut Sheet<'_>, insights: &Insights, graduation: Option<&Result<Graduation, String>>) {
    match graduation {
        Some(Ok(found)) => graduated(sheet, found),
        Some(Err(why)) => {
            sheet.section("readiness");
            sheet.text(why, StyleRole::Warn);
        }
        None => {}
    }
    canvases(sheet, insights);
    if let Some(curve) = &insights.forgetting {
        forgetting(sheet, curve);
    }
    if let Some(judged) = &insights.memories {
        memories(sheet, judged);
    }
    for note in &insights.notes {
        sheet.text(note, StyleRole::Muted);
    }
}

/// Both formulas: side by side if there is room, else one after the other.
fn graduated(sheet: &mut Sheet<'_>, found: &Graduation) {
    const BESIDE: u16 = 92;
    let look = sheet.look();
    let wide = look.is_beside(sheet.width() as u16, BESIDE) && found.coded.is_some();
    let width = if wide { (sheet.width() - 3) / 2 } else { sheet.width() };
    let documented = side("documented: quality", &found.quality, width, look);
    let coded = found.coded.as_ref().map(|coded| {
        let mut lines = side("as coded: readiness", &coded.readiness, width, look);
        lines.extend(wrapped(&format!("{} episodes at most: {}", coded.window, coded.note), width, StyleRole::Muted));
        if let Some(next) = &coded.next {
            let role = if next.ready { StyleRole::Good } else { StyleRole::Warn };
            let words = if next.ready { "ready".to_owned() } else { next.missing.join("; ") };
            lines.extend(wrapped(&format!("to {}: {words}", next.level), width, role));
        }
        lines
    });
    sheet.section("readiness");
    match coded {
        Some(coded) if wide => sheet.lines(beside(documented, coded, width)),
        Some(coded) => {
            sheet.lines(documented);
            sheet.line(TextLine::default());
            sheet.lines(coded);
        }
        None => {
            sheet.lines(documented);
            sheet.text(&format!("as coded: none; {}", found.coded_reason.unwrap_or_default()), StyleRole::Muted);
        }
    }
    let periods = &found.canvas_periods;
    let of = |value: Option<f64>, n: usize| SafeText::join(&[number(value), format!(" (n {n})").into()], "");
    let mut canvas = TextLine::of(of(periods.last, periods.last_n), StyleRole::Number);
    canvas.push(format!(" in the last {} days, ", periods.days), StyleRole::Muted);
    canvas.push(of(periods.previous, periods.previous_n), StyleRole::Number);
    canvas.push(" in those before", StyleRole::Muted);
    let by = &found.interventions;
    let count = |n: Option<usize>| n.map_or_else(|| "not kept".into(), |n| figures::count(n as u64));
    let mut rate = TextLine::of(number(by.rate), StyleRole::Number);
    rate.push(" an episode: chat ", StyleRole::Muted);
    // A comma does not begin a line.
    rate.push(SafeText::join(&[count(by.chat), ", ".into()], ""), StyleRole::Number);
    rate.push("canvas ", StyleRole::Muted);
    rate.push(SafeText::join(&[count(by.canvas), ", ".into()], ""), StyleRole::Number);
    rate.push("workflow ", StyleRole::Muted);
    rate.push(count(by.workflow), StyleRole::Number);
    sheet.line(TextLine::default());
    sheet.pairs(&[NamedValue::line("interventions", rate), NamedValue::line("canvas success", canvas)]);
    sheet.text(found.documented.note, StyleRole::Muted);
}

fn wrapped(text: &str, width: usize, role: StyleRole) -> Vec<TextLine> {
    SafeText::limited(text, 400).wrap(width.max(8)).map(|part| TextLine::of(part, role)).collect()
}

/// A weighted mean, term by term.
fn side(title: &str, mean: &WeightedMean, width: usize, look: &Look) -> Vec<TextLine> {
    let mut head = TextLine::of(
        SafeText::limited(title, width.saturating_sub(8)).pad(width.saturating_sub(8), Align::Left),
        StyleRole::Heading,
    );
    head.push(number(mean.score).pad(7, Align::Right), StyleRole::Accent);
    let mut lines = vec![head];
    let bar = width.saturating_sub(18 + 8 + 8 + 8 + 7).min(14);
    for term in &mean.terms {
        let name = SafeText::limited(&term.name.replace('_', " "), 40);
        let mut line = TextLine::of(cell(name, 18, Align::Left, look), StyleRole::Label);
        if let Some(value) = term.value {
            if bar >= 4 {
                line.append(meter(value, bar, StyleRole::Series1, look));
            }
            line.push(format!(" {value:.3}"), StyleRole::Number);
            line.push(format!(" x {:.2}", term.weight_used), StyleRole::Muted);
            line.push(format!(" = {:.3}", term.contribution), StyleRole::Text);
            line.push(format!("  n {}", term.n), StyleRole::Muted);
        } else {
            let why = SafeText::limited(term.missing.as_deref().unwrap_or("not known"), 200);
            line.push(look.fit(&why, width.saturating_sub(18)), StyleRole::Stale);
        }
        lines.push(line);
    }
    lines.extend(mean.note.iter().flat_map(|note| wrapped(note, width, StyleRole::Muted)));
    lines
}

/// Two columns of lines, the first padded to its width.
fn beside(left: Vec<TextLine>, right: Vec<TextLine>, width: usize) -> Vec<TextLine> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut lines = Vec::with_capacity(rows);
    for _ in 0..rows {
        let mut line = left.next().unwrap_or_default();
        line.push_blanks((width + 3).saturating_sub(line.width()));
        line.append(right.next().unwrap_or_default());
        lines.push(line);
    }
    lines
}

fn canvases(sheet: &mut Sheet<'_>, insights: &Insights) {
    if insights.types.is_empty() {
        return;
    }
    let look = sheet.look();
    sheet.section("what people do with canvases");
    for pattern in &insights.user_interaction_patterns {
        let mut line = TextLine::of(
            cell(SafeText::new(&pattern.pattern.replace('_', " ")), 17, Align::Left, look),
            StyleRole::Label,
        );
        let types = if pattern.canvas_types.is_empty() { "none".to_owned() } else { pattern.canvas_types.join(", ") };
        line.push(look.fit(&SafeText::limited(&types, 300), sheet.width().saturating_sub(17)), StyleRole::Text);
        sheet.line(line);
    }
    sheet.line(TextLine::default());
    let columns = EngagementColumns::of(sheet.width());
    let head = format!(
        "{:<name$}{:>7}{:>7}{:>7}{:>8}{:>9}{:>7}  {:<bar$}{:>feedback$}",
        if columns.name > "type, component".len() { "type, component" } else { "type" },
        "shown",
        "quick",
        "slow",
        "submit",
        "dwell",
        "n",
        if columns.bar > 0 { "feedback" } else { "" },
        if columns.bar == 0 && columns.feedback > 0 { "fb" } else { "" },
        name = columns.name,
        bar = columns.bar,
        feedback = columns.feedback.saturating_sub(1),
    );
    sheet.line(TextLine::of(look.fit(&SafeText::new(head.trim_end()), sheet.width()), StyleRole::Header));
    for kind in &insights.types {
        sheet.line(engagement(kind, false, &columns, look));
        let parts: Vec<&Engagement> =
            insights.components.iter().filter(|c| c.canvas_type == kind.canvas_type).collect();
        if parts.len() > 1 {
            sheet.lines(parts.into_iter().map(|part| engagement(part, true, &columns, look)));
        }
    }
    sheet.line(TextLine::default());
    for seen in insights.observations.iter().filter(|o| o.n > 0) {
        let name = SafeText::new(&seen.observation.replace('_', " "));
        let mut line = TextLine::of(cell(name, 24, Align::Left, look), StyleRole::Label);
        line.push(figures::column(seen.n as u64, 9), StyleRole::Number);
        let reward = seen.reward.map_or("no stated reward".to_owned(), |r| format!("reward {r:+.1} each"));
        line.push(format!("  {reward}"), StyleRole::Muted);
        sheet.line(line);
    }
    for rule in &insights.rules {
        sheet.text(&format!("{}: {}", rule.name.replace('_', " "), rule.rule), StyleRole::Muted);
    }
}

/// Widths of the columns that depend on the room.
struct EngagementColumns {
    name: usize,
    /// 0 if there is no room for bars.
    bar: usize,
    /// 0 if there is no room for the number.
    feedback: usize,
}

impl EngagementColumns {
    fn of(width: usize) -> Self {
        const COUNTS: usize = 47;
        const FEEDBACK: usize = 7;
        const NAME: usize = 24;
        let room = width.saturating_sub(COUNTS);
        let bar = if room >= NAME + FEEDBACK + 6 { 11 } else { 0 };
        let feedback = if room >= NAME / 2 + FEEDBACK { FEEDBACK } else { 0 };
        EngagementColumns { name: room.saturating_sub(bar + feedback).clamp(NAME / 2, NAME), bar, feedback }
    }
}

fn engagement(group: &Engagement, part: bool, columns: &EngagementColumns, look: &Look) -> TextLine {
    let stored = |text: &str| if text.is_empty() { SafeText::new("(none)") } else { SafeText::limited(text, 60) };
    let name =
        if part { stored(group.component_type.as_deref().unwrap_or_default()) } else { stored(&group.canvas_type) };
    let mut line = TextLine::default();
    line.push_blanks(if part { 2 } else { 0 });
    line.push(
        cell(name, columns.name - if part { 2 } else { 0 }, Align::Left, look),
        if part { StyleRole::Muted } else { StyleRole::Text },
    );
    let count = |n: usize, width| figures::column(n as u64, width);
    line.push(count(group.presented, 7), StyleRole::Number);
    line.push(
        count(group.closed_quickly, 7),
        if group.closed_quickly > group.closed_slowly { StyleRole::Bad } else { StyleRole::Number },
    );
    line.push(count(group.closed_slowly, 7), StyleRole::Number);
    line.push(count(group.submitted, 8), StyleRole::Number);
    let dwell = group.dwell_seconds.map_or_else(|| SafeText::new("-"), |s| SafeText::new(&format!("{s:.1} s")));
    line.push(dwell.pad(9, Align::Right), StyleRole::Number);
    line.push(count(group.dwell_n, 7), StyleRole::Muted);
    line.push_blanks(2);
    if let Some(feedback) = group.feedback.filter(|_| columns.feedback > 0) {
        if columns.bar > 0 {
            line.append(diverging(feedback, columns.bar, look));
        }
        line.push(format!(" {feedback:+.2}"), StyleRole::Number);
    }
    line
}

fn forgetting(sheet: &mut Sheet<'_>, curve: &Curve) {
    /// Least columns for bars.
    const BESIDE: usize = 80;
    sheet.section("forgetting");
    let mut line = TextLine::of(figures::count(curve.stale as u64), StyleRole::Number);
    line.push(" stale (90 days and more) still in place, ", StyleRole::Muted);
    line.push(figures::count(curve.overdue as u64), StyleRole::Number);
    line.push(" overdue for archiving", StyleRole::Muted);
    sheet.line(line);
    sheet.text(curve.rule, StyleRole::Muted);
    let stored = curve.points.iter().any(|p| p.stored.is_some());
    let shown = if stored { "stored, as bars" } else { "by rule, as bars" };
    let look = sheet.look();
    let bar = if sheet.width() >= BESIDE { 20 } else { 0 };
    let head =
        format!("days        episodes  put away  by rule  stored  recalls  {}", if bar > 0 { shown } else { "" });
    sheet.line(TextLine::of(SafeText::new(head.trim_end()), StyleRole::Header));
    for point in &curve.points {
        let age =
            point.to_days.map_or(format!("{:.0}+", point.from_days), |to| format!("{:.0}-{to:.0}", point.from_days));
        let mut line = TextLine::of(cell(SafeText::new(&age), 10, Align::Left, look), StyleRole::Label);
        line.push(figures::column(point.episodes as u64, 10), StyleRole::Number);
        line.push(figures::column(point.put_away as u64, 10), StyleRole::Muted);
        let small = |x: Option<f64>| SafeText::new(&x.map_or("-".to_owned(), |x| format!("{x:.2}")));
        line.push(small(point.by_rule).pad(9, Align::Right), StyleRole::Number);
        line.push(small(point.stored).pad(8, Align::Right), StyleRole::Number);
        line.push(small(point.accesses).pad(9, Align::Right), StyleRole::Number);
        if let Some(value) = if stored { point.stored } else { point.by_rule } {
            line.push_blanks(2);
            line.append(meter(value, bar, StyleRole::Series1, look));
        }
        sheet.line(line);
    }
}

fn memories(sheet: &mut Sheet<'_>, judged: &JudgedMemories) {
    sheet.section("memories that mislead, and that help");
    sheet.text(
        &format!(
            "{} of {} used memories can be judged: {}",
            thousands(judged.judged),
            thousands(judged.used),
            judged.rule
        ),
        StyleRole::Muted,
    );
    for (word, role, total, found) in [
        ("mislead", StyleRole::Bad, judged.mislead_total, &judged.mislead),
        ("help", StyleRole::Good, judged.help_total, &judged.help),
    ] {
        let mut line = TextLine::of(figures::count(total as u64), StyleRole::Number);
        line.push(format!(" {word}"), role);
        sheet.line(line);
        let look = sheet.look();
        let width = sheet.width();
        sheet.lines(found.iter().map(|memory| memory_line(memory, role, width, look)));
    }
}

fn memory_line(memory: &Usefulness, role: StyleRole, width: usize, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    line.push_blanks(2);
    line.append(meter(memory.utility, 8, role, look));
    line.push(format!(" {:.2}", memory.utility), StyleRole::Number);
    line.push(SafeText::new(&format!(" n {}", memory.n)).pad(6, Align::Left), StyleRole::Muted);
    let title =
        memory.title.as_deref().map_or_else(|| SafeText::limited(&memory.id, 80), |t| SafeText::limited(t, 200));
    line.push(look.fit(&title, width.saturating_sub(22)), StyleRole::Text);
    line
}
