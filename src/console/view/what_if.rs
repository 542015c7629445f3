//! Lines that show how recall would change: the situations with different answers, and the rows added, removed and
//! moved.

use std::collections::BTreeSet;

use crate::console::core::{RecallAhead, row_name};
use crate::console::view::changes::sentences;
use crate::memory::agreeing;
use crate::recall::what_if::{PlaceMove, WhatIf};
use crate::ui::{Align, Look, SafeText, Section, StyleRole, TextLine, figures};

/// Key for a longer preview.
pub const LONGER: char = '+';
/// Most moves shown.
const MOVES: usize = 60;
/// Most rows shown that only have another score.
const RESCORED: usize = 6;
/// Least columns for a row's name to be useful.
const NAME: usize = 16;

pub fn lines(ahead: &RecallAhead, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = vec![TextLine::default(), Section::new("Recall would change").line(width, look)];
    if ahead.waiting.is_some() {
        let so_far = match ahead.so_far {
            0 => "checking recent situations".to_owned(),
            n => agreeing(n, "{#} {situation|situations} checked so far"),
        };
        lines.extend(sentences(&[so_far], StyleRole::Info, width, look));
        return lines;
    }
    if let Some(failure) = &ahead.failure {
        lines.extend(sentences(&[format!("not known: {}", failure.message)], StyleRole::Warn, width, look));
    }
    if let Some(found) = &ahead.found {
        lines.extend(verdict(found, width, look));
        lines.extend(moved(found, width, look));
        lines.extend(rescored(found, width, look));
        lines.extend(sentences(&found.notes, StyleRole::Muted, width, look));
    }
    if ahead.could_tell_more() {
        let line = TextLine::of("  ", StyleRole::Text).with(LONGER.to_string(), StyleRole::Key);
        lines.push(line.with(" looks longer", StyleRole::Muted));
    }
    lines
}

/// States how many situations are answered differently.
fn verdict(found: &WhatIf, width: usize, look: &Look) -> Vec<TextLine> {
    let of = |n: usize| agreeing(n, "{#} sampled {situation|situations}");
    let (words, role) = match (found.situations, found.changed) {
        (0, _) if found.stopped => ("No situation could be checked in the time".to_owned(), StyleRole::Warn),
        (0, _) if !found.notes.is_empty() => ("No situation is left to check".to_owned(), StyleRole::Warn),
        (0, _) => ("Nothing that is recalled is affected".to_owned(), StyleRole::Good),
        (all, 0) => (format!("Nothing in {} changes", of(all)), StyleRole::Good),
        (all, changed) => {
            let verb = if changed == 1 { "is" } else { "are" };
            (format!("{changed} of {} {verb} answered differently", of(all)), StyleRole::Warn)
        }
    };
    // If it was stopped, the notes give the time.
    let took = if found.stopped { words } else { format!("{words} ({})", figures::took(found.took as f64).as_str()) };
    let mut lines = sentences(&[took], role, width, look);
    if let Some(last) = lines.last_mut().filter(|_| found.changed > 0) {
        last.push(":", StyleRole::Text);
    }
    lines
}

fn named(found: &WhatIf, id: &str) -> SafeText {
    let name = found.row(id).map(row_name).filter(|name| !name.is_empty() && name != id);
    SafeText::limited(&name.unwrap_or_else(|| id.to_owned()), 80)
}

/// Each changed situation with the rows added, removed and moved.
fn moved(found: &WhatIf, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let mut situation = None;
    for moved in found.moves.iter().take(MOVES) {
        if situation != Some(&moved.situation) {
            situation = Some(&moved.situation);
            let head = TextLine::of("  in ", StyleRole::Muted);
            let room = width.saturating_sub(head.width());
            let name = named(found, &moved.situation).cut(room);
            let mut line = head.with(name, StyleRole::Heading);
            if let Some(policy) = &moved.policy {
                let words = SafeText::limited(&format!("  by policy {policy}"), 80);
                line.push(words.cut(width.saturating_sub(line.width())), StyleRole::Muted);
            }
            lines.push(line);
        }
        lines.push(move_line(found, moved, width, look));
    }
    if found.moves.len() > MOVES {
        lines.push(TextLine::of(agreeing(found.moves.len() - MOVES, "  and {#} more {move|moves}"), StyleRole::Muted));
    }
    lines
}

/// `boosted  2 → 4  0.91 → 0.41  its name`.
fn move_line(found: &WhatIf, moved: &PlaceMove, width: usize, look: &Look) -> TextLine {
    let g = look.glyphs;
    let (sign, role) = match (moved.before, moved.after) {
        (None, _) => (g.marked, StyleRole::Good),
        (_, None) => (g.cross, StyleRole::Bad),
        (Some(before), Some(after)) if after < before => (g.up, StyleRole::Good),
        (Some(before), Some(after)) if after > before => (g.down, StyleRole::Warn),
        _ => (g.edit, StyleRole::Muted),
    };
    let place = |place: Option<usize>, none: &str| place.map_or_else(|| none.to_owned(), |place| place.to_string());
    let arrow = |line: TextLine| {
        line.with(" ", StyleRole::Text).with(look.arrow(), StyleRole::Muted).with(" ", StyleRole::Text)
    };
    let mut line = TextLine::of("    ", StyleRole::Text).with_glyph(sign, role).with(" ", StyleRole::Text);
    line.push(look.pad(&moved.ranking.name().into(), 8, Align::Left), StyleRole::Muted);
    let mut places = TextLine::of(place(moved.before, "new"), role);
    places = arrow(places).with(place(moved.after, "gone"), role);
    let blanks = 10_usize.saturating_sub(places.width());
    line.append(places);
    line.push_blanks(blanks);
    let score = |score: f64| format!("{score:.3}");
    let mut scores = match (moved.score_before, moved.score_after) {
        (Some(before), Some(after)) if score(before) != score(after) => {
            arrow(TextLine::of(score(before), StyleRole::Number)).with(score(after), StyleRole::Number)
        }
        (Some(before), None) => TextLine::of(score(before), StyleRole::Number),
        (_, Some(after)) => TextLine::of(score(after), StyleRole::Number),
        (None, None) => TextLine::default(),
    };
    scores.push_blanks(16_usize.saturating_sub(scores.width()));
    if line.width() + scores.width() + NAME <= width {
        line.append(scores);
    }
    let room = width.saturating_sub(line.width());
    line.with(named(found, &moved.id).cut(room), StyleRole::Text)
}

/// Rows that keep their place, with another score.
fn rescored(found: &WhatIf, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    if found.rescored.is_empty() {
        return lines;
    }
    // The same in several situations is shown once.
    let of = |moved: &PlaceMove| {
        let scores = [moved.score_before, moved.score_after].map(|score| score.map(f64::to_bits));
        (moved.id.clone(), moved.ranking.name(), moved.before, scores)
    };
    let mut known = BTreeSet::new();
    let rows: Vec<&PlaceMove> = found.rescored.iter().filter(|moved| known.insert(of(moved))).collect();
    let words =
        agreeing(rows.len(), "{#} {row keeps its place with another score|rows keep their places with other scores}");
    lines.extend(sentences(&[words], StyleRole::Muted, width, look));
    lines.extend(rows.into_iter().take(RESCORED).map(|moved| move_line(found, moved, width, look)));
    lines
}
