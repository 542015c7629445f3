//! The steps before the erasure: the person, where they occur, who names them, the effects, and the choices.

use super::choices::{explained, extent_words};
use crate::change::plan::erasure::Preview;
use crate::console::core::Context;
use crate::console::screens::erase::EraseScreen;
use crate::console::view::person::{changed, none, state, who};
use crate::console::view::sentences;
use crate::console::view::tally::tree;
use crate::ui::{Look, SafeText, Section, StyleRole, TextLine};

/// Most handles shown of a kind: more are counted, and listed by `show subject`.
const HANDLES: usize = 400;

/// The current step, except for the one about mentions.
pub fn lines((cx, erasure): (&Context, &EraseScreen), preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = said(erasure.step, width);
    match erasure.step {
        0 => {
            lines.extend(who(preview, HANDLES, width, look));
            if preview.refused.is_some() || preview.unfinished {
                lines.push(TextLine::default());
                lines.extend(state(preview, width, look));
            }
        }
        1 => lines.extend(place(preview, width, look)),
        3 => lines.extend(effects(preview, width, look)),
        4 => lines.extend(recall(erasure, width, look)),
        _ => lines.extend(decide((cx, erasure), preview, width, look)),
    }
    lines
}

fn said(step: usize, width: usize) -> Vec<TextLine> {
    let words = match step {
        0 => "Everything that this person is known by here; every table is searched for each handle.",
        1 => "What belongs to the person. Rows of a lower table are deleted with those of the one above it.",
        3 => "Other effects, and what an erasure here cannot reach.",
        4 => "How agents would recall differently once it is done.",
        _ => "How the person is erased. Enter asks for the person's id; nothing is written before.",
    };
    let mut lines: Vec<TextLine> =
        SafeText::from(words).wrap(width).map(|part| TextLine::of(part, StyleRole::Muted)).collect();
    lines.push(TextLine::default());
    lines
}

fn place(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = vec![Section::new("rows that go").line(width, look)];
    if preview.tree.is_empty() {
        lines.push(none());
    } else {
        lines.extend(tree(&preview.id, &preview.tree, width, look));
    }
    Section::new("rows that stay and change").add_to(&mut lines, width, look);
    lines.extend(changed(&preview.counts, width, look));
    lines
}

fn effects(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for (title, texts, role) in
        [("other effects", &preview.effects, StyleRole::Text), ("note", &preview.disclosures, StyleRole::Warn)]
    {
        lines.push(Section::new(title).line(width, look));
        if texts.is_empty() {
            lines.push(none());
        }
        lines.extend(sentences(texts, role, width, look));
        lines.push(TextLine::default());
    }
    lines
}

fn recall(erasure: &EraseScreen, width: usize, look: &Look) -> Vec<TextLine> {
    match &erasure.ahead {
        Some(ahead) => crate::console::view::what_if::lines(ahead, width, look).split_off(1),
        None => vec![TextLine::of("Not known: what is left to do was planned earlier.", StyleRole::Muted)],
    }
}

fn decide((cx, erasure): (&Context, &EraseScreen), preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = vec![Section::new("is it allowed").line(width, look)];
    lines.extend(state(preview, width, look));
    if let Err((reason, remedy)) = cx.may_change() {
        let words = [Some(format!(" {reason}")), remedy].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let line = TextLine::default().with_glyph(look.glyphs.warning, StyleRole::Warn);
        lines.push(line.with(SafeText::limited(&words, width), StyleRole::Warn));
    }
    if !preview.unfinished {
        lines.extend(sentences(&extent_words(preview), StyleRole::Text, width, look));
    }
    Section::new("choices").add_to(&mut lines, width, look);
    lines.extend(explained(erasure, preview, width, look));
    lines.push(TextLine::default());
    let told = ["In several databases at once: `mnemoscope purge PERSON --fleet FILE`.".to_owned()];
    lines.extend(sentences(&told, StyleRole::Muted, width, look));
    lines
}
