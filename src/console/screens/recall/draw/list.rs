//! One ranking: its rows with their scores as bars of terms, and the rows left out.

use std::collections::BTreeSet;

use super::letter_of;
use crate::console::core::{ClickTarget, CommandId, Context, row_name};
use crate::console::screens::recall::messages::RecallCommand;
use crate::console::view::{Drawn, failure_card, hint_of, words};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::screens::recall::{RankingSide, RecallScreen};
use crate::console::screens::recall::{can_rank, recalled_kinds};
use crate::memory::Row;
use crate::recall::Score;
use crate::recall::answer::{RecallAnswer, RecalledItem};
use crate::recall::features::words as words_of;
use crate::recall::rank::Ranking;
use crate::recall::why::letters;
use crate::ui::chart::lettered;
use crate::ui::{
    Align, Card, CardTone, Extent, KeyHint, Look, PaneFrame, SafeText, Section, StyleRole, TableBody, TableColumn,
    TableRow, TableView, TextLine, Total, Width, figures, look as lay,
};

/// The reason of rows ranked below the first K.
const BELOW_K: &str = "below_k";
/// Most characters of a title that are considered.
const SHOWN: usize = 200;
/// Least difference of two scores that is shown as a number.
const LEAST_SHOWN: f64 = 0.001;

/// Draws the ranking; `right` if it is the right one.
pub fn draw(
    cx: &Context,
    recall: &RecallScreen,
    right: bool,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let side = recall.right.as_ref().filter(|_| right).unwrap_or(&recall.left);
    let has_keys = recall.right.is_none() || recall.on_right == right;
    let focused = has_keys && !recall.reads;
    let pane = PaneFrame {
        focused,
        note: note(side),
        foot: foot(side),
        ..PaneFrame::new(SafeText::limited(&side.way.name(), 60))
    };
    let inside = pane.render(area, buf, look);
    let legend = legend(side, usize::from(padded(inside).width), look);
    let room = Rect { height: inside.height.saturating_sub(u16::from(legend.width() > 0)), ..inside };
    let other = match (&recall.right, right) {
        (None, _) => None,
        (Some(_), true) => Some((&recall.left, true)),
        (Some(other), false) => Some((other, false)),
    };
    let share = if other.is_some() { 9 } else { 13 };
    let widest = side.rows().iter().map(|item| numbers(&item.ranked.score).width()).max();
    let bars = if look.spoken { widest.unwrap_or(0) as u16 } else { (inside.width * share / 44).clamp(8, 44) };
    let mixed = side.way.ranking == Ranking::Proven;
    let columns = columns(bars, other.is_some().then_some(right), mixed, look);
    let lines = TableView::capacity(room);
    let top = (side.selected + 1).saturating_sub(lines.max(1));
    let scale = scale(side.rows());
    let asked = side.found.as_ref().and_then(|found| found.answer.request.inquiry.text.as_deref());
    let mut sought = asked.map(words_of).unwrap_or_default();
    // Words such as `of` would highlight everything.
    sought.retain(|word| word.chars().count() > 2 || !word.is_ascii());
    let rows: Vec<TableRow> = (side.rows().iter().enumerate().skip(top).take(lines))
        .map(|(at, item)| TableRow {
            marked: recall.recorded.holds(item.ranked.row.id()),
            ..row(side, at, item, other, (scale, usize::from(bars)), &sought, look)
        })
        .collect();
    let card = side.rows().is_empty().then(|| card(cx, recall, side));
    let selected = if has_keys { Some(side.selected) } else { twin(recall, side) };
    let table = TableView {
        columns: &columns,
        body: card.as_ref().map_or(TableBody::Rows(&rows), TableBody::Card),
        selected: selected.and_then(|at| at.checked_sub(top)).filter(|at| *at < rows.len()),
        focused,
        marks: !recall.recorded.ids.is_empty(),
        extent: Extent {
            first: Some(top as u64),
            total: Total::Exact(side.rows().len() as u64),
            above: top > 0,
            below: top + rows.len() < side.rows().len(),
        },
    };
    table.render(room, buf, look);
    if has_keys {
        drawn.measures.list_rows = lines;
        for y in room.top()..room.bottom() {
            if let Some(at) = table.row_at(room, room.x, y) {
                drawn.hits.add(Rect { y, height: 1, ..room }, ClickTarget::PanelRow(top + at));
            }
        }
    }
    // Below the bars that it explains.
    let below_rows = (rows.len() as u16 + 1).min(inside.height.saturating_sub(1));
    legend.render(padded(lay::row(inside, below_rows)), buf, look);
    if let Some(found) = &side.found {
        let used = if rows.is_empty() { room.height } else { rows.len() as u16 + 2 };
        left_out(cx, &found.answer, side.way.ranking, look, padded(lay::below(room, used)), buf);
    }
}

/// The area in line with the rows of a table.
fn padded(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area }
}

fn note(side: &RankingSide) -> TextLine {
    match (&side.pending, &side.failure) {
        (Some((_, doing)), _) => TextLine::of(*doing, StyleRole::Warn),
        (None, Some(failure)) if side.found.is_some() => {
            TextLine::of(SafeText::limited(&failure.what, 40), StyleRole::Bad)
        }
        _ => TextLine::default(),
    }
}

fn foot(side: &RankingSide) -> TextLine {
    let Some(found) = &side.found else { return TextLine::default() };
    let rows = figures::count(found.answer.rows.len() as u64);
    let all = figures::count(found.answer.candidates as u64);
    let stages = &found.stages;
    let millis = stages.embedding + stages.situation + stages.ranking + stages.context;
    let parts = [rows, " of ".into(), all, " in ".into(), figures::took(millis)];
    TextLine::of(SafeText::join(&parts, ""), StyleRole::Muted)
}

/// The terms by their letters.
fn legend(side: &RankingSide, width: usize, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    let Some(first) = side.rows().first().filter(|_| !look.spoken) else { return line };
    let score = &first.ranked.score;
    for (index, (term, letter)) in score.terms.iter().zip(letters(score)).enumerate() {
        let name = term.name.replace('_', " ");
        if line.width() + name.len() + 4 > width {
            line.push_glyphs(look.glyphs.ellipsis, 1, StyleRole::Muted);
            break;
        }
        line.append(letter_of(index, letter, look));
        line.push(SafeText::from(name), StyleRole::Muted);
        line.push("  ", StyleRole::Text);
    }
    line
}

/// `compared` is the side, if two are compared; `mixed` is true if rows are of several kinds.
fn columns(bars: u16, compared: Option<bool>, mixed: bool, look: &Look) -> Vec<TableColumn> {
    let mut columns =
        vec![TableColumn::new("#", Width::Fixed(2)).right(), TableColumn::new("score", Width::Fixed(6)).right()];
    if let Some(right) = compared {
        columns.push(TableColumn::new(if right { "was" } else { "goes" }, Width::Fixed(5)));
    }
    // Numbers that are cut would mislead.
    columns.push(TableColumn::new("terms", Width::Fixed(bars)).priority(u8::from(look.spoken)));
    columns.push(TableColumn::new("what", Width::Grow { min: 14, weight: 1 }));
    if mixed {
        columns.push(TableColumn::new("kind", Width::Fixed(7)).priority(2));
    }
    columns.push(TableColumn::new("time", Width::Fixed(11)).priority(3));
    columns
}

/// The greatest sums of negative and of positive terms: all bars of a ranking are on one scale.
fn scale(rows: &[RecalledItem]) -> (f64, f64) {
    let sum = |item: &RecalledItem, sign: f64| -> f64 {
        let parts = item.ranked.score.terms.iter().map(|term| term.contribution * sign);
        parts.filter(|part| part.is_finite() && *part > 0.0).sum()
    };
    let most = |sign: f64| rows.iter().map(|item| sum(item, sign)).fold(0.0, f64::max);
    (most(-1.0), most(1.0))
}

fn row(
    side: &RankingSide,
    at: usize,
    item: &RecalledItem,
    other: Option<(&RankingSide, bool)>,
    (scale, bars): ((f64, f64), usize),
    sought: &BTreeSet<String>,
    look: &Look,
) -> TableRow {
    let (row, score) = (&item.ranked.row, &item.ranked.score);
    let mut cells = vec![
        TextLine::of((at + 1).to_string(), StyleRole::Muted),
        TextLine::of(format!("{:.3}", score.total), StyleRole::Number),
    ];
    cells.extend(other.map(|(other, right)| moved(at, row, other, right, look)));
    cells.push(terms(score, scale, bars, look));
    cells.push(lit(&row_name(row), sought));
    if side.way.ranking == Ranking::Proven {
        cells.push(TextLine::of(row.entity.title(), StyleRole::Label));
    }
    let time = row.text(row.entity.time_column()).map(words::short_time).unwrap_or_default();
    cells.push(TextLine::of(time, StyleRole::Muted));
    TableRow { cells, marked: false, stale: side.is_stale() }
}

/// The terms of a score as a bar, or as numbers where no bars are drawn.
fn terms(score: &Score, scale: (f64, f64), bars: usize, look: &Look) -> TextLine {
    if look.spoken {
        return TextLine::of(numbers(score), StyleRole::Number);
    }
    let parts: Vec<f64> = score.terms.iter().map(|term| term.contribution).collect();
    lettered(&parts, &letters(score), scale, bars, look)
}

/// The terms of a score with their numbers.
fn numbers(score: &Score) -> SafeText {
    let told = score.terms.iter().map(|term| format!("{} {:.2}", term.name.replace('_', " "), term.contribution));
    told.collect::<Vec<_>>().join(", ").into()
}

/// Marks the place of a row in the other ranking: moved up, moved down or the same from left to right, or new or left
/// out.
fn moved(at: usize, row: &Row, other: &RankingSide, right: bool, look: &Look) -> TextLine {
    let g = look.glyphs;
    if other.found.is_none() {
        return TextLine::default();
    }
    let below = other.why_not(row.id()).is_some_and(|left| left.reason == "below_k");
    match other.place_of(row.entity, row.id()) {
        None if below => {
            let (glyph, role) = if right { (g.up, StyleRole::Good) } else { (g.down, StyleRole::Info) };
            TextLine::default().with_glyph(glyph, role).with(format!(" >{}", other.rows().len()), role)
        }
        None if right => TextLine::default().with_glyph(g.diamond, StyleRole::Good).with(" new", StyleRole::Good),
        None => TextLine::default().with_glyph(g.cross, StyleRole::Warn).with(" out", StyleRole::Warn),
        Some(place) if place == at => {
            TextLine::of("=", StyleRole::Muted).with(format!(" {}", place + 1), StyleRole::Muted)
        }
        Some(place) => {
            let rises = (place > at) == right;
            let (glyph, role) = if rises { (g.up, StyleRole::Good) } else { (g.down, StyleRole::Info) };
            TextLine::default().with_glyph(glyph, role).with(format!(" {}", place + 1), role)
        }
    }
}

/// The row of this ranking that is selected in the other one.
fn twin(recall: &RecallScreen, side: &RankingSide) -> Option<usize> {
    let row = recall.side().current().map(|item| &item.ranked.row)?;
    side.place_of(row.entity, row.id())
}

/// Builds the card shown in place of rows.
fn card(cx: &Context, recall: &RecallScreen, side: &RankingSide) -> Card {
    if let Err((reason, remedy)) = can_rank(cx, side.way.ranking) {
        let card =
            Card::new(CardTone::Plain, "This ranking is not possible here").line(SafeText::limited(&reason, 300));
        return remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(remedy, 300)));
    }
    if let Some(failure) = &side.failure {
        return failure_card(cx, failure);
    }
    if let Some((_, doing)) = side.pending {
        let mut title = SafeText::from(doing);
        title.append(&"...".into());
        return Card::new(CardTone::Plain, title).hint(KeyHint::new("esc", "stop"));
    }
    match &side.found {
        None => Card::new(CardTone::Plain, "What is the situation?")
            .line("This ranking compares: it needs something to compare with.")
            .hint(hint_of(cx, CommandId::Recall(RecallCommand::Write), "write one"))
            .hint(hint_of(cx, CommandId::Recall(RecallCommand::Saved), "kept ones")),
        Some(found) => {
            let answer = &found.answer;
            let owner = match (&recall.inquiry.agent, &recall.inquiry.user) {
                (Some(_), None) => "this agent",
                (None, Some(_)) => "this user",
                _ => "this agent and this user",
            };
            let of = [
                recall.inquiry.agent.as_ref().map(|_| (RecallCommand::Agent, "another agent, or all")),
                recall.inquiry.user.as_ref().map(|_| (RecallCommand::User, "another user, or all")),
            ];
            let narrowed: Vec<(RecallCommand, &'static str)> =
                of.into_iter().flatten().filter(|_| answer.candidates == 0).collect();
            let why = if !narrowed.is_empty() {
                &format!("No row here names {owner}; rows that name none are left out too.")
            } else if answer.candidates == 0 {
                "There are no rows to rank."
            } else if answer.candidates == 1 && answer.left_out.iter().any(|left| left.reason == "query_itself") {
                "There is no row to rank except the one you ask about."
            } else if answer.used == "keyword" {
                "No row contains a word of the situation."
            } else {
                "No row has a vector that can be compared with it."
            };
            let card = Card::new(CardTone::Plain, "Nothing is recalled").line(why);
            narrowed.into_iter().fold(card, |card, (ask, does)| card.hint(hint_of(cx, CommandId::Recall(ask), does)))
        }
    }
}

/// Draws the cut and the distance of the next row from it, then the rows left out, as far as there is room.
fn left_out(cx: &Context, answer: &RecallAnswer, ranking: Ranking, look: &Look, area: Rect, buf: &mut Buffer) {
    if answer.left_out.is_empty() || area.height < 2 {
        return;
    }
    let width = usize::from(area.width.saturating_sub(2));
    Section::new(cut(answer).as_str()).line(width, look).render(lay::row(area, 0), buf, look);
    let shown = usize::from(area.height - 1);
    // The row that ranked next comes first.
    let (next, others): (Vec<_>, Vec<_>) = answer.left_out.iter().partition(|left| left.reason == BELOW_K);
    for (at, left) in next.into_iter().chain(others).take(shown).enumerate() {
        let score = left.score.map_or_else(SafeText::default, |score| format!("{score:.3}").into());
        // A reason after the name needs room too.
        let room = if left.reason == BELOW_K { width.saturating_sub(13) } else { width / 2 };
        let name = recalled_kinds(ranking).iter().find_map(|kind| cx.names.of(*kind, &left.id));
        let mut line = match name {
            Some(name) => TextLine::of(SafeText::limited(name, room), StyleRole::Text),
            None => TextLine::of(SafeText::limited(&left.id, 60), StyleRole::Stale),
        };
        if left.reason != BELOW_K {
            line.push_apart(SafeText::limited(&left.words, 120), StyleRole::Muted);
        }
        let place = lay::row(area, 1 + at as u16);
        let used = TextLine::of(score.pad(11, Align::Right), StyleRole::Stale).render(place, buf, look);
        line.render(lay::right_of(place, used + 2), buf, look);
    }
}

fn cut(answer: &RecallAnswer) -> String {
    let next = answer.left_out.iter().find(|left| left.reason == BELOW_K).and_then(|left| left.score);
    match (answer.rows.last().map(|item| item.ranked.score.total), next) {
        (Some(last), Some(next)) => {
            let by = match last - next {
                0.0 => "has the same score".to_owned(),
                by if by < LEAST_SHOWN => format!("misses by less than {LEAST_SHOWN}"),
                by => format!("misses by {by:.3}"),
            };
            format!("cut after {}: the next {by}", answer.rows.len())
        }
        _ => "left out".to_owned(),
    }
}

/// A name, with the question's words highlighted.
fn lit(name: &str, sought: &BTreeSet<String>) -> TextLine {
    let mut line = TextLine::of(SafeText::limited(name, SHOWN), StyleRole::Text);
    for run in &mut line.runs {
        let mut hits: Vec<_> = sought.iter().flat_map(|word| run.text.find(word)).collect();
        hits.sort_by_key(|hit| hit.start);
        hits.dedup_by(|next, before| next.start < before.end);
        run.hits = hits;
    }
    line
}
