//! The findings by kind, worst first, and beside them the selected kind: its meaning, the rows with the offending
//! words, and the fix.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::health::FindingGroup;
use crate::console::core::{ClickTarget, CommandId, Context, Health};
use crate::console::screens::findings::{FindingsScreen, ShownExample};
use crate::console::view::health::{self, progress, severity};
use crate::console::view::{Canvas, Drawn, PanelList, failure_card, halves, hint_of, key_of, sentences, told, words};
use crate::memory::Entity;
use crate::memory::findings::{EarlierLook, KINDS, Mute, OffendingQuote};
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Card, CardTone, Look, PaneFrame, SafeText, Section, StyleRole, TableColumn, TableRow, TextLine, Total, Width,
    figures,
    look::{padded, side_by_side, stacked},
};

/// Position of the column of changes.
const CHANGE: usize = 2;
/// Lines of a quoted text.
const QUOTED: usize = 8;

pub fn draw(findings: &FindingsScreen, cx: &Context, canvas: &mut Canvas<'_>) {
    let (list, detail) = panes(canvas.area, findings.in_examples, canvas.look);
    draw_list(findings, cx, canvas.look, list, canvas.buf, canvas.drawn);
    draw_detail(findings, cx, canvas.look, detail, canvas.buf, canvas.drawn);
}

/// Side by side, else above each other with more room for the focused one.
fn panes(body: Rect, in_examples: bool, look: &Look) -> (Rect, Rect) {
    let (list, _) = halves(body, look);
    if list.width < body.width {
        let width = if in_examples { body.width / 2 } else { body.width * 3 / 5 };
        return side_by_side(body, width);
    }
    let height = if in_examples { body.height / 3 } else { body.height * 3 / 5 };
    stacked(body, height)
}

fn card(cx: &Context, health: &Health) -> Card {
    match &health.failure {
        Some(failure) => failure_card(cx, failure),
        None if !health.done => Card::new(CardTone::Plain, "Looking"),
        None if health.skipped.len() >= KINDS.len() || cx.held().all(Entity::is_of_trail) => {
            Card::new(CardTone::Warn, "Nothing could be judged")
        }
        None => Card::new(CardTone::Plain, "Nothing was found"),
    }
}

fn draw_list(findings: &FindingsScreen, cx: &Context, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let health = &cx.health;
    let focused = !findings.in_examples;
    let groups = health.groups();
    let count = groups.len() + findings.mutes.len();
    let foot = match count {
        0 => TextLine::default(),
        _ => TextLine::of(format!("row {} of {count}", findings.selected.min(count - 1) + 1), StyleRole::Muted),
    };
    let note = TextLine::of(progress(health), StyleRole::Muted);
    let pane = PaneFrame { note, foot, focused, ..PaneFrame::new("findings") };
    let inside = pane.render(area, buf, look);
    drawn.hits.add(inside, ClickTarget::List);
    let before = cx.opened.found_before.as_ref();
    // If nothing has changed, the room is used for words.
    let has_changes = groups.iter().any(|group| change(health, group, before).is_some());
    let mut columns = vec![
        TableColumn::new("severity", Width::Fixed(8)),
        TableColumn::new("count", Width::Fixed(7)).right(),
        TableColumn::new("what", Width::Grow { min: 20, weight: 3 }),
    ];
    if has_changes {
        columns.insert(CHANGE, TableColumn::new("change", Width::Fixed(6)).right().priority(2));
    }
    let row = |at: usize| {
        let mut row = match groups.get(at) {
            Some(group) => group_row(health, group),
            None => muted_row(findings.mutes.get(at - groups.len())?),
        };
        if has_changes {
            row.cells
                .insert(CHANGE, groups.get(at).and_then(|group| change(health, group, before)).unwrap_or_default());
        }
        Some(row)
    };
    let card = (count == 0).then(|| card(cx, health));
    let list = PanelList::of(&columns, count, findings.selected, card);
    let list = PanelList { total: Total::Unknown, focused, ..list };
    list.draw(row, look, inside, buf, drawn);
}

fn group_row(health: &Health, group: &FindingGroup<'_>) -> TableRow {
    let (word, role) = severity(group.severity);
    let cells = vec![
        TextLine::of(word, role),
        TextLine::of(health::count(health, group.kind, group.count), StyleRole::Number),
        TextLine::of(SafeText::limited(&told(&group.what()), 300), StyleRole::Text),
    ];
    TableRow { cells, marked: false, stale: false }
}

fn muted_row(mute: &Mute) -> TableRow {
    let what = format!("{}: {}", mute.what.replace('_', " "), mute.reason);
    let cells = vec![
        TextLine::of("muted", StyleRole::Muted),
        TextLine::default(),
        TextLine::of(SafeText::limited(&what, 300), StyleRole::Muted),
    ];
    TableRow { cells, marked: false, stale: true }
}

/// Returns the difference to the last look, or `new` for a kind not found then; `None` if nothing changed, there was no
/// earlier look, or a decrease is uncertain.
fn change(health: &Health, group: &FindingGroup<'_>, before: Option<&EarlierLook>) -> Option<TextLine> {
    let signed = |sign: &str, by: u64| SafeText::join(&[sign.into(), figures::count(by)], "");
    match before?.counts.get(group.kind) {
        None => Some(TextLine::of("new", StyleRole::Warn)),
        Some(before) if *before < group.count => Some(TextLine::of(signed("+", group.count - before), StyleRole::Warn)),
        Some(before) if *before > group.count && !health.may_grow(group.kind) => {
            Some(TextLine::of(signed("-", before - group.count), StyleRole::Good))
        }
        Some(_) => None,
    }
}

fn draw_detail(findings: &FindingsScreen, cx: &Context, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let health = &cx.health;
    let title = findings.group(health).map_or_else(|| "finding".to_owned(), |group| group.kind.replace('_', " "));
    let pane = PaneFrame { focused: findings.in_examples, ..PaneFrame::new(title) };
    let inside = pane.render(area, buf, look);
    drawn.hits.add(inside, ClickTarget::Detail);
    let inside = padded(inside);
    let width = usize::from(inside.width.saturating_sub(2)).max(8);
    let (mut lines, mut end, mut is_last) = (Vec::new(), 0, false);
    if let Some(group) = findings.group(health) {
        lines.extend(meaning(&group, cx, width, look));
        let (examples, selected) = examples(findings, &group, cx, width, look);
        if findings.in_examples {
            end = lines.len() + selected;
            is_last = findings.example + 1 == findings.examples(health).len();
        }
        lines.extend(examples);
    } else if let Some(mute) = findings.muted(health) {
        lines.extend(muted(cx, mute, width, look));
    }
    if health.done && !health.skipped.is_empty() {
        lines.extend(skipped(health, width, look));
    }
    (drawn.measures.detail_rows, drawn.measures.detail_lines) = (usize::from(inside.height), lines.len());
    // The lines after the last example are shown with it, as far as the example stays visible.
    let reach = if is_last { (end + usize::from(inside.height / 2)).min(lines.len()) } else { end };
    LineWindow::scrolled(&lines, reach.saturating_sub(usize::from(inside.height.max(1)))).render(inside, buf, look);
}

/// Describes the meaning of the finding, its change, and its fix.
fn meaning(group: &FindingGroup<'_>, cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let (word, role) = severity(group.severity);
    let sentence = SafeText::join(
        &[health::count(&cx.health, group.kind, group.count), SafeText::limited(&told(&group.what()), 400)],
        " ",
    );
    let mut lines: Vec<TextLine> =
        look.spelled(&sentence).wrap(width).map(|part| TextLine::of(part, StyleRole::Heading)).collect();
    let mut line = TextLine::of(word, role);
    if let Some(before) = &cx.opened.found_before {
        let since = words::age(&before.at, cx.now);
        match change(&cx.health, group, Some(before)) {
            None if cx.health.may_grow(group.kind) => {}
            None => line.push(", as at the last look", StyleRole::Muted),
            Some(change) if group_is_new(group, before) => {
                line.push(", ", StyleRole::Muted);
                line.append(change);
            }
            Some(change) => {
                line.push(", ", StyleRole::Muted);
                line.append(change);
                line.push(" since the last look (", StyleRole::Muted);
                line.push(since, StyleRole::Muted);
                line.push(")", StyleRole::Muted);
            }
        }
    }
    lines.push(line);
    let remedy = group.remedy();
    let (id, does) = match (group.fixes(), group.looks()) {
        (false, _) => (CommandId::Open, " shows it: "),
        (true, true) => (CommandId::Fix, " looks into it: "),
        (true, false) => (CommandId::Fix, " fixes: "),
    };
    let fix = TextLine::of(key_of(cx, id), StyleRole::Key)
        .with(does, StyleRole::Muted)
        .with(SafeText::limited(remedy, 300), StyleRole::Accent);
    let mute = TextLine::of(key_of(cx, CommandId::Mute), StyleRole::Key).with(" mutes", StyleRole::Muted);
    // A key and its word are not separated.
    if fix.width() + mute.width() + 3 <= width {
        let mut both = fix.with("   ", StyleRole::Text);
        both.append(mute);
        lines.push(both);
    } else {
        lines.extend(fix.flow(width, look));
        lines.push(mute);
    }
    lines
}

fn group_is_new(group: &FindingGroup<'_>, before: &EarlierLook) -> bool {
    !before.counts.contains_key(group.kind)
}

/// The affected rows, with the words of the selected one; and the number of lines they take.
fn examples(
    findings: &FindingsScreen,
    group: &FindingGroup<'_>,
    cx: &Context,
    width: usize,
    look: &Look,
) -> (Vec<TextLine>, usize) {
    let shown = findings.examples(&cx.health);
    let (mut lines, mut selected) = (vec![TextLine::default()], 0);
    let section = if group.count as usize > shown.len() {
        Section::new(format!(
            "examples: the first {} of {}",
            shown.len(),
            health::count(&cx.health, group.kind, group.count)
        ))
    } else {
        Section { count: Some(shown.len() as u64), ..Section::new("examples") }
    };
    lines.push(section.line(width, look));
    let several = group.findings.len() > 1;
    for (at, example) in shown.iter().enumerate() {
        let chosen = at == findings.example;
        lines.push(example_line(example, chosen, several, width, cx, look));
        if chosen {
            if let Some(quote) = &findings.quoted.quote {
                lines.extend(quoted(quote, width, look));
            }
            selected = lines.len();
        }
    }
    (lines, selected)
}

/// Builds the line of an example: the name of the row, and its id.
fn example_line(
    example: &ShownExample<'_>,
    chosen: bool,
    several: bool,
    width: usize,
    cx: &Context,
    look: &Look,
) -> TextLine {
    let role = if chosen { StyleRole::Accent } else { StyleRole::Text };
    let mut line = TextLine::of(if chosen { "> " } else { "  " }, role);
    if let Some(entity) = example.entity.filter(|_| several) {
        line.push(look.pad(&entity.title().into(), 15, crate::ui::Align::Left), StyleRole::Muted);
    }
    let room = width.saturating_sub(line.width());
    let name = example.entity.and_then(|entity| cx.names.of(entity, example.id));
    let Some(name) = name.filter(|name| *name != example.id) else {
        return line.with(SafeText::limited(example.id, room), role);
    };
    let id = SafeText::limited(example.id, room / 3);
    line.push(SafeText::limited(name, room.saturating_sub(id.width() + 2)), role);
    line.with("  ", StyleRole::Text).with(id, StyleRole::Muted)
}

/// A text with the offending words highlighted, indented under its row.
fn quoted(quote: &OffendingQuote, width: usize, look: &Look) -> Vec<TextLine> {
    const INDENT: usize = 4;
    let mut text = TextLine::of(SafeText::limited(&quote.column.replace('_', " "), 40), StyleRole::Label);
    text.push("  ", StyleRole::Text);
    // A line can be wrapped after the sign for a line break.
    let one_line = |text: &str| SafeText::new(&text.replace('\n', "\n "));
    text.push(one_line(&quote.before), StyleRole::Muted);
    text.push(one_line(&quote.hit), StyleRole::Danger);
    text.push(one_line(&quote.after), StyleRole::Muted);
    let rows = text.flow_words(width.saturating_sub(INDENT).max(8), look);
    let indented = |row: TextLine| {
        let mut line = TextLine::default();
        line.push_blanks(INDENT);
        line.append(row);
        line
    };
    rows.into_iter().take(QUOTED).map(indented).collect()
}

fn muted(cx: &Context, mute: &Mute, width: usize, look: &Look) -> Vec<TextLine> {
    let heading = format!("{} is muted", mute.what.replace('_', " "));
    let mut lines = vec![TextLine::of(SafeText::limited(&heading, width), StyleRole::Heading)];
    lines.extend(sentences(std::slice::from_ref(&mute.reason), StyleRole::Text, width, look));
    let by = TextLine::of(SafeText::limited(&mute.actor, 40), StyleRole::Muted)
        .with(", ", StyleRole::Muted)
        .with(words::time(&mute.at, false), StyleRole::Muted);
    lines.push(by);
    let hint = hint_of(cx, CommandId::Mute, "show it again");
    lines.push(crate::ui::chrome::hint_line(&[hint], width));
    lines
}

fn skipped(health: &Health, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = vec![TextLine::default(), Section::new("not checked here").line(width, look)];
    for kind in &health.skipped {
        let words = format!("{}: {}", kind.kind.replace('_', " "), kind.reason);
        let rows = SafeText::limited(&words, 400);
        lines.extend(rows.wrap(width).map(|part| TextLine::of(part, StyleRole::Muted)));
    }
    lines
}
