//! A person as an erasure finds them: identity, dependent changes, and mentions by others.

use crate::change::plan::Counts;
use crate::change::plan::erasure::{MentionWords, Preview};
use crate::console::core::{CommandAsk, CommandId};
use crate::console::view::changes::sentences;
use crate::console::view::keys::drawn_key;
use crate::console::view::tally::tally;
use crate::ui::{Align, Look, SafeText, Section, StyleRole, TextLine};

/// Most mentions shown of one column.
const SAMPLES: usize = 4;

/// Lines that say whether anything prevents erasing the person.
pub fn state(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    match (&preview.refused, preview.held) {
        (Some(reason), held) => {
            let word = if held { "a legal hold stands" } else { "cannot be erased here" };
            lines.push(
                TextLine::default()
                    .with_glyph(look.glyphs.warning, StyleRole::Bad)
                    .with(format!(" {word}"), StyleRole::Bad),
            );
            lines.extend(sentences(std::slice::from_ref(reason), StyleRole::Text, width, look));
            if held {
                lines.push(
                    TextLine::of(drawn_key(CommandId::Change(CommandAsk::LegalHold(false))), StyleRole::Key)
                        .with(" ends the hold", StyleRole::Muted),
                );
            }
        }
        (None, _) => {
            lines.push(
                TextLine::default()
                    .with_glyph(look.glyphs.check, StyleRole::Good)
                    .with(" no legal hold", StyleRole::Good),
            );
        }
    }
    if preview.unfinished {
        lines.push(
            TextLine::default()
                .with_glyph(look.glyphs.half, StyleRole::Warn)
                .with(" an earlier run is unfinished", StyleRole::Warn),
        );
        lines.extend(sentences(
            &["this one resumes it with its original choices".to_owned()],
            StyleRole::Text,
            width,
            look,
        ));
    }
    lines
}

/// Handles by kind, with their number; those of a kind flow next to each other.
pub fn who(preview: &Preview, most: usize, width: usize, look: &Look) -> Vec<TextLine> {
    const LABEL: usize = 12;
    let mut kinds: Vec<&str> = Vec::new();
    preview.known.iter().for_each(|known| {
        if !kinds.contains(&known.kind.as_str()) {
            kinds.push(&known.kind);
        }
    });
    let mut lines =
        vec![Section { count: Some(preview.known.len() as u64), ..Section::new("known as") }.line(width, look)];
    for kind in kinds {
        let of_kind: Vec<_> = preview.known.iter().filter(|known| known.kind == kind).collect();
        let mut values = TextLine::default();
        for (at, known) in of_kind.iter().take(most).enumerate() {
            let mut value = vec![SafeText::limited(&known.value, 120)];
            if let Some(why) = &known.unsearched {
                value.push(SafeText::from(" (not searched for in texts: "));
                value.push(SafeText::limited(why, 80));
                value.push(")".into());
            }
            if at + 1 < of_kind.len() {
                value.push("  ".into());
            }
            let role = if known.unsearched.is_some() { StyleRole::Muted } else { StyleRole::Text };
            values.push(SafeText::join(&value, ""), role);
        }
        if of_kind.len() > most {
            values.push(format!("and {} more", of_kind.len() - most), StyleRole::Muted);
        }
        let name = if of_kind.len() > 1 { format!("{kind} {}", of_kind.len()) } else { kind.to_owned() };
        let mut head = TextLine::of(look.pad(&SafeText::limited(&name, LABEL), LABEL, Align::Left), StyleRole::Label);
        for part in values.flow(width.saturating_sub(LABEL).max(12), look) {
            if head.runs.is_empty() {
                head.push_blanks(LABEL);
            }
            head.append(part);
            lines.push(std::mem::take(&mut head));
        }
    }
    if !preview.near.is_empty() {
        Section::new("other people with similar names: not erased").add_to(&mut lines, width, look);
        lines.extend(preview.near.iter().map(|(id, name)| {
            TextLine::of(look.pad(&SafeText::limited(id, 38), 40, Align::Left), StyleRole::Muted)
                .with(SafeText::limited(name, 80), StyleRole::Text)
        }));
    }
    lines
}

/// Rows that stay and change, by table.
pub fn changed(counts: &Counts, width: usize, look: &Look) -> Vec<TextLine> {
    let changed: Vec<_> = counts
        .iter()
        .flat_map(|(table, verbs)| verbs.iter().map(move |(verb, rows)| (table, verb.as_str(), *rows)))
        .filter(|(_, verb, _)| *verb != "delete")
        .map(|(table, verb, rows)| {
            let word = if verb == "insert" { "new" } else { "changed" };
            (
                TextLine::of(SafeText::limited(table, 50), StyleRole::Text),
                rows as u64,
                TextLine::of(word, StyleRole::Muted),
            )
        })
        .collect();
    if changed.is_empty() { vec![none()] } else { tally(&changed, width, look) }
}

/// Other people's values that name the person, by table and column, with some surrounding words.
pub fn mentioned(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    if preview.mentions.is_empty() {
        return vec![none()];
    }
    let mut lines = Vec::new();
    for (place, count) in &preview.mentions {
        let head = TextLine::of(SafeText::limited(place, 80), StyleRole::Text);
        lines.extend(tally(&[(head, *count as u64, TextLine::default())], width, look));
        for mention in preview.named.iter().filter(|mention| mention.place == *place).take(SAMPLES) {
            let line = TextLine::of("    ", StyleRole::Text);
            lines.push(around(&mention.words, line, width));
        }
    }
    lines
}

/// Adds the words around a name to a line, the name marked; the words before it are cut first.
pub fn around(words: &MentionWords, lead: TextLine, width: usize) -> TextLine {
    const LONGEST: usize = 200;
    let room = width.saturating_sub(lead.width());
    let flat = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let name = SafeText::limited(&flat(&words.name), LONGEST);
    let before = SafeText::limited(&flat(&words.before), LONGEST);
    let after = SafeText::limited(&flat(&words.after), LONGEST);
    // The words before get the rest of the line, and at least a third of it.
    let left = room.saturating_sub(name.width() + after.width());
    let before = before.cut_start(left.max(if name.is_empty() { room } else { room / 3 }));
    let mut line = lead.with(before, StyleRole::Muted);
    let mut named = TextLine::of(name.cut(width.saturating_sub(line.width())), StyleRole::Text);
    named = named.with_hits(&flat(&words.name));
    line.append(named);
    let room = width.saturating_sub(line.width());
    line.with(after.cut(room), StyleRole::Muted)
}

/// Returns the line for an empty list.
pub fn none() -> TextLine {
    TextLine::of("none", StyleRole::Muted)
}
