//! Reasons why the selected row is recalled: each term in words, the text for an agent, rows left out, and how the
//! answer was found.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{against, letter_of};
use crate::console::core::{ClickTarget, Context, row_name};
use crate::console::screens::recall::{FoundAnswer, RankingSide, RecallScreen};
use crate::console::screens::recall::{can_rank, levers, recalled_kinds};
use crate::console::view::{Drawn, Sheet, told, words};
use crate::memory::vector::ComparedBy;
use crate::memory::{Entity, agreeing, thousands};
use crate::recall::answer::{RecalledItem, WordsBy};
use crate::recall::context::TOKENS;
use crate::recall::rank::Ranking;
use crate::recall::why::{letters, why};
use crate::ui::chart::diverging;
use crate::ui::{Align, Look, NamedValue, PaneFrame, SafeText, StyleRole, TextLine, figures};

pub fn draw(cx: &Context, recall: &RecallScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let side = recall.side();
    let title = side.current().map_or_else(
        || SafeText::from("why"),
        |item| {
            let name = row_name(&item.ranked.row);
            SafeText::join(
                &["why ".into(), (side.selected + 1).to_string().into(), ": ".into(), SafeText::limited(&name, 60)],
                "",
            )
        },
    );
    let inside = PaneFrame { focused: recall.reads, ..PaneFrame::new(title) }.render(area, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(3), ..inside };
    drawn.hits.add(area, ClickTarget::Detail);
    let mut sheet = Sheet::new(usize::from(inside.width), look);
    if let Some(found) = &side.found {
        if let Some(item) = side.current() {
            terms(&mut sheet, found, item);
            against::draw(&mut sheet, side, item);
            beside(&mut sheet, recall, item);
            moves(&mut sheet, cx, side);
            context(&mut sheet, found, item);
            around(&mut sheet, item);
        }
        left_out(&mut sheet, cx, found);
        way(&mut sheet, found, cx.settings.vector_bytes);
        notes(&mut sheet, found);
    }
    rankings(&mut sheet, cx, side);
    sheet.show(inside, recall.scroll, recall.reads, buf, drawn);
}

/// Breaks a formula into lines of at most `width` columns if possible: before a sign or after a comma, never within a
/// term.
fn formula_lines(formula: &str, width: usize) -> Vec<String> {
    let signs = formula.match_indices(" + ").map(|(at, _)| at);
    let commas = formula.match_indices(", ").map(|(at, _)| at + 1);
    let mut ends: Vec<usize> = signs.chain(commas).chain([formula.len()]).collect();
    ends.sort_unstable();
    let mut lines = vec![String::new()];
    let mut from = 0;
    for end in ends {
        let term = &formula[from..end];
        from = end;
        match lines.last_mut() {
            Some(line) if line.len() + term.len() <= width => line.push_str(term),
            _ => lines.push(term.trim_start().to_owned()),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The score, term by term.
fn terms(sheet: &mut Sheet<'_>, found: &FoundAnswer, item: &RecalledItem) {
    const BAR: usize = 17;
    let (ranked, look) = (&item.ranked, sheet.look());
    let request = &found.answer.request;
    for line in formula_lines(request.inquiry.ranking.formula(), sheet.width()) {
        sheet.text(&line, StyleRole::Muted);
    }
    let most = ranked.score.terms.iter().fold(1e-9_f64, |most, term| most.max(term.contribution.abs()));
    let bars = sheet.width() >= 64;
    for (index, (term, letter)) in ranked.score.terms.iter().zip(letters(&ranked.score)).enumerate() {
        let mut line = letter_of(index, letter, look);
        let name = SafeText::from(term.name.replace('_', " "));
        line.push(look.pad(&name, 13, Align::Left), StyleRole::Label);
        let product = format!("{:>6.3} x {:>6.3} = ", term.value, term.weight);
        line.push(product, StyleRole::Muted);
        line.push(format!("{:>+7.4} ", term.contribution), StyleRole::Number);
        if bars {
            line.append(diverging(term.contribution / most, BAR, look));
        }
        sheet.line(line);
        for part in SafeText::limited(&why(term, ranked, request, found.answer.like.as_ref()), 300)
            .wrap(sheet.width().saturating_sub(4).max(8))
        {
            sheet.line(TextLine::of("    ", StyleRole::Text).with(part, StyleRole::Muted));
        }
    }
    let sum: f64 = ranked.score.terms.iter().map(|term| term.contribution).sum();
    let mut line = TextLine::of(look.pad(&"  sum".into(), 15, Align::Left), StyleRole::Label);
    line.push(" ".repeat(18), StyleRole::Text);
    line.push(format!("{sum:>+7.4} "), StyleRole::Heading);
    sheet.line(line);
    if let Some(probability) = ranked.probability {
        let words =
            format!("chosen with probability {probability:.4} (softmax over the candidates; not part of the sum)");
        sheet.text(&words, StyleRole::Muted);
    }
}

/// Writes the levers that would move the selected row.
fn moves(sheet: &mut Sheet<'_>, cx: &Context, side: &RankingSide) {
    let told = levers::told(cx, side);
    if told.is_empty() {
        return;
    }
    sheet.section("what would move it");
    let look = sheet.look();
    for (_, name, outcome) in told {
        let label = TextLine::of(look.pad(&name.into(), 13, Align::Left), StyleRole::Label);
        sheet.line(label.with(SafeText::limited(&outcome, 120), StyleRole::Text));
    }
}

/// Writes the row's place in the other ranking.
fn beside(sheet: &mut Sheet<'_>, recall: &RecallScreen, item: &RecalledItem) {
    let Some(other) = recall.other().filter(|other| other.found.is_some()) else { return };
    let row = &item.ranked.row;
    let name = other.way.name();
    let words = match (other.place_of(row.entity, row.id()), other.why_not(row.id())) {
        (Some(place), _) => {
            let score = other.rows().get(place).map(|item| item.ranked.score.total).unwrap_or_default();
            format!("place {} in {name}, with {score:.4}", place + 1)
        }
        (None, Some(left)) => format!("not in {name}: {}", left.words),
        (None, None) if other.rows().iter().all(|item| item.ranked.row.entity != row.entity) => {
            format!("not in {name}, which ranks no {}", row.entity.plural())
        }
        (None, None) => format!("not in {name}: it is not a candidate there, or far below"),
    };
    sheet.section("in the other ranking");
    sheet.text(&words, StyleRole::Info);
}

/// Writes the text that an agent would get for this row.
fn context(sheet: &mut Sheet<'_>, found: &FoundAnswer, item: &RecalledItem) {
    let (made, id) = (&found.context, item.ranked.row.id());
    sheet.section("what an agent gets from it");
    let at = made.rows.iter().position(|row| row == id);
    match at.and_then(|at| made.parts.get(at)) {
        Some(part) => {
            for line in SafeText::block(part) {
                let parts: Vec<SafeText> = line.wrap(sheet.width().max(8)).collect();
                sheet.lines(parts.into_iter().map(|part| TextLine::of(part, StyleRole::Text)));
            }
        }
        None => sheet.text("nothing: no space is left for it", StyleRole::Warn),
    }
    let cut = if made.cut.iter().any(|row| row == id) { "cut to fit; " } else { "" };
    let takes =
        format!("{cut}all {{#}} {{row takes|rows take}} {} of {TOKENS} tokens (rough: 4 characters each)", made.tokens);
    let all = agreeing(found.answer.rows.len(), &takes);
    sheet.text(&all, StyleRole::Muted);
}

/// Canvas and feedback context of an episode, with their peculiarities.
fn around(sheet: &mut Sheet<'_>, item: &RecalledItem) {
    if item.ranked.row.entity != Entity::Episode {
        return;
    }
    sheet.section("canvas and feedback");
    let some = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let words = format!(
        "{} and {} are part of it",
        some(item.canvas.count, "canvas event", "canvas events"),
        some(item.feedback.count, "row of feedback", "rows of feedback")
    );
    sheet.text(&words, StyleRole::Text);
    item.findings.iter().for_each(|finding| sheet.text(&finding.message, StyleRole::Warn));
}

fn left_out(sheet: &mut Sheet<'_>, cx: &Context, found: &FoundAnswer) {
    if found.answer.left_out.is_empty() {
        return;
    }
    sheet.section("left out");
    for left in &found.answer.left_out {
        let score = left.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.3}"));
        let kinds = recalled_kinds(found.answer.request.inquiry.ranking);
        let name = kinds.iter().find_map(|kind| cx.names.of(*kind, &left.id)).unwrap_or(&left.id);
        sheet.text(&format!("{score}  {name}: {}", left.words), StyleRole::Muted);
    }
}

/// Writes how the answer was found, and how long each part took.
fn way(sheet: &mut Sheet<'_>, found: &FoundAnswer, vector_bytes: usize) {
    let answer = &found.answer;
    sheet.section("how it was found");
    let by = match (&answer.compared, answer.words_by) {
        (Some((_, ComparedBy::Pgvector)), _) => "by vectors, compared by pgvector over the owner's rows".to_owned(),
        (Some((_, ComparedBy::Streamed)), _) => "by vectors, read and compared here".to_owned(),
        (Some((_, ComparedBy::Memory)), _) => "by vectors kept in memory from an earlier recall".to_owned(),
        (None, Some(WordsBy::Index)) => "by words, looked up in the full-text index".to_owned(),
        (None, Some(WordsBy::Read)) => "by words, compared here in every text".to_owned(),
        (None, None) if answer.request.inquiry.ranking == Ranking::Proven => "by the formula alone".to_owned(),
        (None, None) => "by time alone: there is no question".to_owned(),
    };
    let ms = |value: f64| format!("{value:.1} ms");
    let mut pairs =
        vec![NamedValue::new("way", by), NamedValue::new("candidates", figures::count(answer.candidates as u64))];
    if let Some((tally, _)) = &answer.compared {
        let mut words = vec![format!("{} of {} rows", thousands(tally.compared), thousands(tally.rows))];
        let others = [
            (tally.missing, "{#} {has|have} none"),
            (tally.no_direction, "{#} {has|have} no direction"),
            (tally.other_dimensions, "{#} {has|have} other dimensions"),
            (tally.unreadable, "{#} {is|are} unreadable"),
        ];
        words.extend(others.iter().filter(|(n, _)| *n > 0).map(|(n, what)| agreeing(*n, what)));
        pairs.push(NamedValue::new("vectors", words.join(", ")));
        let kept = SafeText::join(
            &["at most ".into(), figures::bytes(vector_bytes as u64), " for 30 seconds; r reads again".into()],
            "",
        );
        pairs.push(NamedValue::new("kept", kept));
    }
    let stages = &found.stages;
    if stages.embedding >= 0.05 {
        pairs.push(NamedValue::new("embedding", ms(stages.embedding)));
    }
    pairs.push(NamedValue::new("situation", ms(stages.situation)));
    pairs.push(NamedValue::new("ranking", ms(stages.ranking)));
    pairs.push(NamedValue::new("context", ms(stages.context)));
    pairs.push(NamedValue::new("at", words::moment(&answer.request.at)));
    sheet.pairs(&pairs);
}

fn notes(sheet: &mut Sheet<'_>, found: &FoundAnswer) {
    if found.answer.notes.is_empty() {
        return;
    }
    sheet.section("note");
    found.answer.notes.iter().for_each(|note| sheet.text(&told(note), StyleRole::Warn));
}

/// The rankings that this database cannot do.
fn rankings(sheet: &mut Sheet<'_>, cx: &Context, side: &RankingSide) {
    let missing: Vec<(Ranking, String)> = Ranking::ALL
        .into_iter()
        .filter(|ranking| *ranking != side.way.ranking)
        .filter_map(|ranking| Some((ranking, can_rank(cx, ranking).err()?.0)))
        .collect();
    if missing.is_empty() {
        return;
    }
    sheet.section("not in this database");
    missing.iter().for_each(|(ranking, reason)| sheet.text(&format!("{}: {reason}", ranking.name()), StyleRole::Stale));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_broken_between_its_terms_only() {
        let formula = Ranking::Boosted.formula();
        for width in 30..formula.len() {
            let lines = formula_lines(formula, width);
            assert_eq!(lines.join(" "), formula);
            assert!(lines[1..].iter().all(|line| line.starts_with(['+', '-'])), "{lines:?}");
        }
        assert_eq!(formula_lines(formula, 200), [formula]);
    }
}
