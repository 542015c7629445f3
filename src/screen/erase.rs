//! Erasing a person: the step that is being looked at, and where it stands among the others.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Drawn;
use super::changes::{count_lines, sentences};
use super::confirm::Dialog;
use crate::app::erase::{Erasure, STEPS};
use crate::app::gate::Gate;
use crate::app::{Failure, Model};
use crate::change::plan::erasure::{Branch, Outcome, Preview};
use crate::ui::scroll::Lines;
use crate::ui::{
    Card, KeyHint, Look, Pair, Pane, Role, SafeText, Section, TextLine, Tone, figures, key_values, look as lay,
};

/// Draws the screen.
pub fn draw(erasure: &Erasure, look: &Look, body: Rect, buf: &mut Buffer) {
    let title = SafeText::join(&["erase ".into(), SafeText::limited(&erasure.given, 60)], "");
    let pane = Pane { focused: true, tone: Some(Role::Danger), ..Pane::new(title) };
    let inside = pane.render(body, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    steps(erasure, usize::from(inside.width), look).render(lay::row(inside, 0), buf, look);
    let area = lay::below(inside, 2);
    let width = usize::from(area.width.saturating_sub(2));
    if let Some((_, what, count)) = &erasure.running {
        let card = Card::new(Tone::Info, "Erasing").line(SafeText::limited(what, 60)).line(figures::count(*count));
        card.line("It can be stopped at any moment, and gone on with.").render(area, buf, look);
        return;
    }
    if let Some(failure) = &erasure.failure {
        failed(failure).render(area, buf, look);
        return;
    }
    let lines = match (&erasure.outcome, &erasure.preview) {
        (Some(outcome), _) => result(outcome, width, look),
        (None, Some(preview)) => step(erasure, preview, width, look),
        (None, None) => {
            Card::new(Tone::Plain, "Looking everywhere").render(area, buf, look);
            return;
        }
    };
    let last = lines.len().saturating_sub(usize::from(area.height));
    Lines::scrolled(&lines, erasure.scroll.min(last)).render(area, buf, look);
}

fn failed(failure: &Failure) -> Card {
    let card =
        Card::new(Tone::Bad, SafeText::limited(&failure.what, 60)).line(SafeText::limited(&failure.message, 400));
    let card = failure.remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(remedy, 300)));
    card.hint(KeyHint::new("r", "try again"))
}

/// The last question.
pub fn ask(model: &Model, gate: &Gate, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let note = TextLine::of(SafeText::limited(model.database_name(), 60), Role::Muted);
    let dialog = Dialog { title: "Erase a person".into(), note, verb: "erase", gate, hints: Vec::new(), scroll: 0 };
    let words = ["What is erased cannot be brought back. Backups keep it until they expire.".to_owned()];
    dialog.draw(|width| sentences(&words, Role::Text, width, look), look, area, buf, drawn);
}

/// All steps, this one in its place; where there is no room only this one.
fn steps(erasure: &Erasure, width: usize, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    for (position, name) in STEPS.iter().enumerate() {
        let role = match position.cmp(&erasure.step) {
            std::cmp::Ordering::Less => Role::Good,
            std::cmp::Ordering::Equal => Role::Heading,
            std::cmp::Ordering::Greater => Role::Muted,
        };
        if position > 0 {
            line = line.with(" ", Role::Text).with_glyph(look.glyphs.separator, Role::Border).with(" ", Role::Text);
        }
        line = line.with(format!("{} {name}", position + 1), role);
    }
    if line.width() <= width {
        return line;
    }
    let name = STEPS.get(erasure.step).copied().unwrap_or_default();
    TextLine::of(format!("step {} of {}  ", erasure.step + 1, STEPS.len()), Role::Muted).with(name, Role::Heading)
}

fn step(erasure: &Erasure, preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    match erasure.step {
        0 => who(preview, width, look),
        1 => place(preview, width, look),
        2 => mentions(erasure, preview, width, look),
        3 => effects(preview, width, look),
        4 => recall(erasure, width, look),
        _ => ready(erasure, preview, width, look),
    }
}

fn who(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let known = preview.known.iter().map(|known| {
        let value = SafeText::limited(&known.value, 120);
        let line = TextLine::of(value, Role::Text);
        let line = match &known.unsearched {
            Some(why) => {
                line.with("  not looked for in texts: ", Role::Muted).with(SafeText::limited(why, 80), Role::Muted)
            }
            None => line,
        };
        Pair::line(SafeText::limited(&known.kind, 20), line)
    });
    let mut lines = vec![Section::new("Known as").line(width, look)];
    lines.extend(key_values(&known.collect::<Vec<_>>(), width, look));
    if !preview.near.is_empty() {
        lines.push(TextLine::default());
        lines.push(Section::new("Somebody else, of a like name").line(width, look));
        let near =
            preview.near.iter().map(|(id, name)| Pair::new(SafeText::limited(id, 30), SafeText::limited(name, 80)));
        lines.extend(key_values(&near.collect::<Vec<_>>(), width, look));
    }
    lines
}

fn place(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = vec![Section::new("Rows that go").line(width, look)];
    if preview.tree.is_empty() {
        lines.push(TextLine::of("none", Role::Muted));
    }
    lines.extend(preview.tree.iter().map(|branch| branch_line(branch, look)));
    lines.push(TextLine::default());
    lines.push(Section::new("By table").line(width, look));
    lines.extend(count_lines(&preview.counts, width, look));
    lines
}

fn branch_line(branch: &Branch, look: &Look) -> TextLine {
    let indent = "  ".repeat(branch.depth);
    let line = TextLine::of(indent, Role::Text);
    let line = if branch.depth > 0 {
        line.with_glyph(look.glyphs.separator, Role::Border).with(" ", Role::Text)
    } else {
        line
    };
    line.with(SafeText::limited(&branch.table, 50), Role::Text)
        .with("  ", Role::Text)
        .with(figures::count(branch.rows as u64), Role::Number)
}

fn mentions(erasure: &Erasure, preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let chosen = TextLine::of(erasure.choice.mentions.word(), Role::Warn).with("  (c m: another)", Role::Muted);
    let mut lines = key_values(&[Pair::line("mentions", chosen)], width, look);
    lines.push(TextLine::default());
    lines.push(Section::new("Rows of others that name the person").line(width, look));
    if preview.mentions.is_empty() {
        lines.push(TextLine::of("none", Role::Muted));
    }
    let pairs = preview
        .mentions
        .iter()
        .map(|(place, count)| Pair::new(SafeText::limited(place, 60), figures::count(*count as u64)));
    lines.extend(key_values(&pairs.collect::<Vec<_>>(), width, look));
    lines.push(TextLine::default());
    let samples: Vec<String> = preview.samples.iter().map(|(place, text)| format!("{place}: {text}")).collect();
    lines.extend(sentences(&samples, Role::Muted, width, look));
    lines
}

fn effects(preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for (title, texts, role) in
        [("What else comes of it", &preview.effects, Role::Text), ("To be known", &preview.disclosures, Role::Warn)]
    {
        lines.push(Section::new(title).line(width, look));
        lines.extend(sentences(texts, role, width, look));
        lines.push(TextLine::default());
    }
    lines
}

fn recall(erasure: &Erasure, width: usize, look: &Look) -> Vec<TextLine> {
    match &erasure.ahead {
        Some(ahead) => super::what_if::lines(ahead, "w", width, look).split_off(1),
        None => vec![TextLine::of("r looks at it again", Role::Muted)],
    }
}

fn ready(erasure: &Erasure, preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    let yes = |on: bool, yes: &'static str, no: &'static str, key: &'static str| {
        TextLine::of(if on { yes } else { no }, Role::Warn).with(key, Role::Muted)
    };
    let choice = &erasure.choice;
    let hold = match &preview.refused {
        Some(reason) => TextLine::of(SafeText::limited(reason, 300), Role::Bad),
        None => TextLine::of("none", Role::Good),
    };
    let mut pairs = vec![
        Pair::line("hold", hold),
        Pair::line("mentions", TextLine::of(choice.mentions.word(), Role::Warn).with("  (c m)", Role::Muted)),
        Pair::line("account", yes(choice.account, "erased", "kept", "  (c a)")),
        Pair::line("bundle first", yes(choice.export, "yes", "no", "  (c x)")),
        Pair::line("rewrite", yes(choice.full, "tables are rewritten under lock", "no", "  (c f)")),
    ];
    if preview.unfinished {
        pairs.push(Pair::line("earlier run", TextLine::of("unfinished: this one goes on with it", Role::Warn)));
    }
    let mut lines = key_values(&pairs, width, look);
    lines.push(TextLine::default());
    lines.push(TextLine::of("enter asks for the person's id, then erases", Role::Text));
    lines
}

fn result(outcome: &Outcome, width: usize, look: &Look) -> Vec<TextLine> {
    let role = match outcome.status.as_str() {
        "verified" => Role::Good,
        "incomplete" => Role::Bad,
        _ => Role::Warn,
    };
    let mut pairs = vec![Pair::line("result", TextLine::of(SafeText::limited(&outcome.status, 40), role))];
    let found = outcome
        .verification
        .iter()
        .map(|(name, text)| Pair::new(SafeText::limited(name, 20), SafeText::limited(text, 120)));
    pairs.extend(found);
    pairs.push(Pair::new("receipt", SafeText::limited(&outcome.kept_in, 200)));
    pairs.push(Pair::new("audit entry", outcome.audit_seq.to_string()));
    let mut lines = key_values(&pairs, width, look);
    lines.push(TextLine::default());
    lines.extend(count_lines(&outcome.counts, width, look));
    for (title, texts, role) in
        [("Why it is incomplete", &outcome.incomplete, Role::Bad), ("Disclosures", &outcome.disclosures, Role::Muted)]
    {
        if !texts.is_empty() {
            lines.push(TextLine::default());
            lines.push(Section::new(title).line(width, look));
            lines.extend(sentences(texts, role, width, look));
        }
    }
    lines
}
