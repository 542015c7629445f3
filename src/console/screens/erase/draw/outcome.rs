//! A running erasure, and its outcome.

use crate::change::plan::erasure::{ErasureCheck, ErasureOutcome, Preview};
use crate::console::screens::erase::{ErasureRun, Phase};
use crate::console::view::{count_lines, sentences};
use crate::ui::chart::meter;
use crate::ui::{Align, Look, NamedValue, SafeText, Section, StyleRole, TextLine, figures, key_values};

/// Lists the phases of a running erasure, and its progress.
pub fn under_way(run: &ErasureRun, preview: Option<&Preview>, width: usize, look: &Look) -> Vec<TextLine> {
    const NAME: usize = 24;
    let g = look.glyphs;
    let mut lines = Vec::new();
    for (phase, name) in [
        (Phase::Looking, "finding everything again"),
        (Phase::Deleting, "erasing"),
        (Phase::Overwriting, "overwriting old pages"),
        (Phase::Checking, "proving that it is gone"),
    ] {
        let (glyph, role) = match phase.cmp(&run.phase) {
            std::cmp::Ordering::Less => (g.check, StyleRole::Good),
            std::cmp::Ordering::Equal => (g.dot, StyleRole::Accent),
            std::cmp::Ordering::Greater => (g.ring, StyleRole::Muted),
        };
        let line = TextLine::default().with_glyph(glyph, role).with(" ", StyleRole::Text);
        let mut line = line.with(look.pad(&SafeText::from(name), NAME, Align::Left), role);
        if phase == run.phase {
            line.push("  ", StyleRole::Text);
            line.append(how_far(run, preview, width.saturating_sub(NAME + 4), look));
        }
        lines.push(line);
    }
    lines.push(TextLine::default());
    let told = [
        "Each batch is complete in itself: esc stops after it, and what is done stays done.".to_owned(),
        "Open this person here again to resume it, even after the console ended.".to_owned(),
    ];
    lines.extend(sentences(&told, StyleRole::Muted, width, look));
    lines
}

fn how_far(run: &ErasureRun, preview: Option<&Preview>, width: usize, look: &Look) -> TextLine {
    if run.phase == Phase::Deleting {
        let total = preview.map_or(0, |p| p.counts.values().flat_map(|verbs| verbs.values()).sum::<usize>()) as u64;
        let done = if total > 0 { run.count.min(total) } else { run.count };
        let figures = SafeText::join(&[figures::count(done), " of ".into(), figures::count(total), " rows".into()], "");
        let mut line = TextLine::of(figures, StyleRole::Number).with("  ", StyleRole::Text);
        line.append(meter(
            done as f64 / total.max(1) as f64,
            width.saturating_sub(line.width()).min(30),
            StyleRole::Accent,
            look,
        ));
        return line;
    }
    if run.table.is_empty() {
        return TextLine::default();
    }
    let words = [SafeText::limited(&run.table, 40), ": ".into(), figures::count(run.count), " values".into()];
    TextLine::of(SafeText::join(&words, "").cut(width), StyleRole::Muted)
}

pub fn lines(outcome: &ErasureOutcome, width: usize, look: &Look) -> Vec<TextLine> {
    let g = look.glyphs;
    let (glyph, role, means) = match outcome.status.as_str() {
        "verified" => (g.check, StyleRole::Good, "everything searched for was found before, and nothing of it is left"),
        "incomplete" => (g.cross, StyleRole::Bad, "something still has to be done: see below"),
        _ => (g.info, StyleRole::Warn, "what had to be deleted is gone; what stays is listed below"),
    };
    let verdict = TextLine::default().with_glyph(glyph, role).with(" ", StyleRole::Text);
    let verdict = verdict.with(SafeText::limited(&outcome.status, 40), role);
    let mut lines = vec![verdict];
    lines.extend(
        SafeText::from(means)
            .wrap(width.saturating_sub(2))
            .map(|p| TextLine::of("  ", StyleRole::Text).with(p, StyleRole::Text)),
    );
    if outcome.status == "incomplete" {
        Section::new("why it is incomplete").add_to(&mut lines, width, look);
        lines.extend(sentences(&outcome.incomplete, StyleRole::Bad, width, look));
        lines.push(
            TextLine::of("enter", StyleRole::Key).with(" resumes once that is fixed, now or later", StyleRole::Text),
        );
    }
    Section::new("looked for afterwards").add_to(&mut lines, width, look);
    lines.extend(outcome.verification.iter().flat_map(|check| check_lines(check, width, look)));
    Section::new("receipt").add_to(&mut lines, width, look);
    let mut pairs = vec![
        NamedValue::new("file", SafeText::limited(&outcome.kept_in, 400)),
        NamedValue::new("audit entry", outcome.audit_seq.to_string()),
    ];
    if let Some(folder) = &outcome.exported_to {
        pairs.push(NamedValue::new("export", SafeText::limited(folder, 400)));
    }
    lines.extend(key_values(&pairs, width, look));
    let told = ["`mnemoscope purge verify FILE` checks again at any later time.".to_owned()];
    lines.extend(sentences(&told, StyleRole::Muted, width, look));
    Section::new("what was done").add_to(&mut lines, width, look);
    lines.extend(count_lines(&outcome.counts, width, look));
    if !outcome.disclosures.is_empty() {
        Section::new("note").add_to(&mut lines, width, look);
        lines.extend(sentences(&grouped(&outcome.disclosures), StyleRole::Muted, width, look));
    }
    lines
}

/// Describes a check: its subject, its result, and the remains found.
fn check_lines(check: &ErasureCheck, width: usize, look: &Look) -> Vec<TextLine> {
    const NAME: usize = 16;
    let g = look.glyphs;
    let (glyph, role) = match check.good {
        Some(true) => (g.check, StyleRole::Good),
        Some(false) => (g.warning, StyleRole::Warn),
        None => (g.ring, StyleRole::Muted),
    };
    let name = look.pad(&SafeText::limited(&check.name, NAME - 1), NAME, Align::Left);
    let mut head = TextLine::default().with_glyph(glyph, role).with(" ", StyleRole::Text).with(name, StyleRole::Label);
    let indent = head.width();
    let mut lines = Vec::new();
    for part in SafeText::limited(&check.found, 200).wrap(width.saturating_sub(indent).max(12)) {
        if head.runs.is_empty() {
            head.push_blanks(indent);
        }
        lines.push(std::mem::take(&mut head).with(part, StyleRole::Text));
    }
    lines
}

/// Sentences that differ only in their first word, such as a table, become one that names them all.
fn grouped(sentences: &[String]) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
    for sentence in sentences {
        let (first, rest) = sentence.split_once(' ').unwrap_or((sentence, ""));
        match groups.iter_mut().find(|(_, known)| *known == rest && !rest.is_empty()) {
            Some((names, _)) => names.push(first),
            None => groups.push((vec![first], rest)),
        }
    }
    let told = |(names, rest): (Vec<&str>, &str)| match names[..] {
        [one] => format!("{one} {rest}").trim_end().to_owned(),
        _ => format!("{}: each {rest}", names.join(", ")),
    };
    groups.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_about_many_tables_is_said_once() {
        let said = ["runs was cleaned (as of today)", "A copy stays.", "steps was cleaned (as of today)"];
        let told = grouped(&said.map(str::to_owned));
        assert_eq!(told, ["runs, steps: each was cleaned (as of today)", "A copy stays."]);
    }
}
