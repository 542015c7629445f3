//! A plan that waits for confirmation: its changes, other effects, and the way to confirm it.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::{ChangeDanger, Plan};
use crate::console::core::{Context, RecallAhead};
use crate::console::overlays::confirm::Confirmation;
use crate::console::view::{Dialog, Drawn, change_lines, count_lines, sentences};
use crate::ui::{KeyHint, Look, SafeText, Section, StyleRole, TextLine};

pub fn draw(cx: &Context, confirmation: &Confirmation, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let title = SafeText::limited(&cx.in_title(&confirmation.proposal.title()), 80);
    let note = danger_words(cx, confirmation.gate.step, look);
    let lines = |width: usize| plan_lines(cx, confirmation, width, look);
    let mut hints = if confirmation.gate.step == ChangeDanger::Grave {
        vec![KeyHint::new("ctrl-r", "reason"), KeyHint::new("ctrl-y", "copy command")]
    } else {
        vec![KeyHint::new("r", "reason"), KeyHint::new("y c", "copy command")]
    };
    if confirmation.ahead.as_ref().is_some_and(RecallAhead::could_tell_more) {
        hints.push(KeyHint::new("+", "look longer"));
    }
    let dialog = Dialog { title, note, verb: "apply", gate: &confirmation.gate, hints, scroll: confirmation.scroll };
    dialog.draw(lines, look, area, buf, drawn);
}

/// Builds the line with the danger of a change, and the mark of a production database.
fn danger_words(cx: &Context, danger: ChangeDanger, look: &Look) -> TextLine {
    let (word, role) = match danger {
        ChangeDanger::Safe => ("safe", StyleRole::Good),
        ChangeDanger::Guarded => ("guarded", StyleRole::Warn),
        ChangeDanger::Grave => ("grave", StyleRole::Danger),
    };
    let line = TextLine::default()
        .with_glyph(look.glyphs.separator, StyleRole::Border)
        .with(" ", StyleRole::Text)
        .with(word, role);
    if cx.opened.production {
        line.with(" on ", StyleRole::Muted).with(" PRODUCTION ", StyleRole::Production)
    } else {
        line
    }
}

fn plan_lines(cx: &Context, confirmation: &Confirmation, width: usize, look: &Look) -> Vec<TextLine> {
    let plan: &Plan = &confirmation.plan;
    let mut lines = count_lines(&plan.counts, width, look);
    // Disclosures are placed where nobody has to scroll to see them.
    lines.extend(told("Note", &plan.disclosures, StyleRole::Warn, width, look));
    lines.push(TextLine::default());
    lines.extend(change_lines(&plan.changes, plan.changes_total, &cx.names, width, look));
    lines.extend(told("Other effects", &cx.in_titles(&plan.effects), StyleRole::Muted, width, look));
    if let Some(ahead) = &confirmation.ahead {
        lines.extend(crate::console::view::what_if::lines(ahead, width, look));
    }
    lines.push(TextLine::default());
    match &plan.undo_reason {
        None => lines.push(TextLine::of("It can be undone.", StyleRole::Muted)),
        Some(reason) => {
            lines.extend(sentences(&[format!("It cannot be undone: {reason}")], StyleRole::Danger, width, look));
        }
    }
    if !confirmation.reason.is_empty() {
        let reason = SafeText::limited(&confirmation.reason, 200);
        lines.push(TextLine::of("reason  ", StyleRole::Label).with(reason, StyleRole::Text));
    }
    lines
}

/// Sentences under a heading; nothing if there are none.
fn told(title: &str, texts: &[String], role: StyleRole, width: usize, look: &Look) -> Vec<TextLine> {
    if texts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![TextLine::default(), Section::new(title).line(width, look)];
    lines.extend(sentences(texts, role, width, look));
    lines
}
