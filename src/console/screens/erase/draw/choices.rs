//! Choices made for an erasure, and the words of the last question.

use crate::change::plan::Counts;
use crate::change::plan::erasure::{ErasureChoice, Mentions, Preview};
use crate::console::core::CommandId;
use crate::console::screens::erase::{EraseChoice, EraseScreen, STEPS};
use crate::console::view::person::state;
use crate::console::view::{drawn_key, sentences};
use crate::memory::{agreeing, counted};
use crate::ui::{Align, Look, SafeText, Section, StyleRole, TextLine, figures};

/// A choice: its subject, also in one word, the chosen value, and its meaning.
#[derive(Clone, Copy)]
struct Chosen {
    turn: EraseChoice,
    /// It can still be chosen otherwise.
    open: bool,
    about: &'static str,
    short: &'static str,
    word: &'static str,
    means: &'static str,
}

fn chosen(choice: &ErasureChoice, locks: bool) -> Vec<Chosen> {
    let pick =
        |on: bool, yes: (&'static str, &'static str), no: (&'static str, &'static str)| if on { yes } else { no };
    let (word, means) = mentions(choice.mentions);
    let turn = EraseChoice::Mentions;
    let mut all = vec![Chosen { turn, open: true, about: "mentions", short: "mentions", word, means }];
    let (word, means) = pick(
        choice.account,
        ("erase", "the application's own row of the person is deleted too"),
        ("keep", "the application's own row of the person stays"),
    );
    let turn = EraseChoice::Account;
    all.push(Chosen { turn, open: true, about: "account", short: "account", word, means });
    let (word, means) = pick(
        choice.export,
        ("yes", "everything stored about the person is exported to a folder first"),
        ("no", "nothing is exported first"),
    );
    let turn = EraseChoice::Export;
    all.push(Chosen { turn, open: true, about: "export first", short: "export", word, means });
    if locks {
        let (word, means) = pick(
            choice.full,
            ("yes", "no old page stays, but tables are locked in the meantime"),
            ("no", "nothing is locked; the server keeps old pages for a while"),
        );
        let turn = EraseChoice::Full;
        all.push(Chosen { turn, open: true, about: "rewrite tables", short: "rewrite", word, means });
    }
    all
}

/// All choices on one line, so that none changes unseen.
pub(in crate::console) fn line_of_all(erasure: &EraseScreen, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    for (position, chosen) in chosen(&erasure.choice, locks(erasure)).iter().enumerate() {
        if position > 0 {
            line = line
                .with(" ", StyleRole::Text)
                .with_glyph(look.glyphs.separator, StyleRole::Muted)
                .with(" ", StyleRole::Text);
        }
        line = line.with(chosen.short, StyleRole::Label).with(format!(" {}", chosen.word), StyleRole::Warn);
    }
    line
}

/// Describes a choice that was just made; `None` for a key that chooses nothing.
pub(in crate::console) fn chosen_words(choice: &ErasureChoice, turn: EraseChoice) -> Option<String> {
    let chosen = chosen(choice, true).into_iter().find(|chosen| chosen.turn == turn)?;
    Some(format!("{} {}: {}", chosen.about, chosen.word, chosen.means))
}

/// Returns the name of a choice, and its meaning.
fn mentions(choice: Mentions) -> (&'static str, &'static str) {
    match choice {
        Mentions::Leave => ("leave", "the words stay, and the receipt says so"),
        Mentions::Redact => ("redact", "the words are removed, the rows stay"),
        Mentions::Delete => ("delete", "the rows are deleted, whoever owns them"),
    }
}

/// The choices with their meanings, below each other.
pub(in crate::console) fn explained(
    erasure: &EraseScreen,
    preview: &Preview,
    width: usize,
    look: &Look,
) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for chosen in chosen(&erasure.choice, preview.locks) {
        let chosen = if erasure.is_settled() { keyless(chosen) } else { chosen };
        let mut line = line(&chosen, look);
        let means = SafeText::from(chosen.means);
        if line.width() + 2 + means.width() <= width {
            line.push_blanks(2);
            lines.push(line.with(means, StyleRole::Muted));
        } else {
            lines.push(line);
            for part in means.wrap(width.saturating_sub(7).max(12)) {
                lines.push(TextLine::of("       ", StyleRole::Text).with(part, StyleRole::Muted));
            }
        }
    }
    lines
}

/// A choice that can no longer be changed.
fn keyless(chosen: Chosen) -> Chosen {
    Chosen { open: false, ..chosen }
}

fn line(chosen: &Chosen, look: &Look) -> TextLine {
    let key = if chosen.open { drawn_key(CommandId::Turn(chosen.turn)) } else { String::new() };
    TextLine::of("  ", StyleRole::Text)
        .with(look.pad(&SafeText::from(key), 3, Align::Left), StyleRole::Key)
        .with("  ", StyleRole::Text)
        .with(look.pad(&SafeText::from(chosen.about), 16, Align::Left), StyleRole::Label)
        .with(look.pad(&SafeText::from(chosen.word), 6, Align::Left), StyleRole::Warn)
}

/// Whether it is to be chosen if tables are rewritten under lock.
fn locks(erasure: &EraseScreen) -> bool {
    erasure.preview.as_ref().is_some_and(|preview| preview.locks)
}

/// Numbers of deleted and of changed rows.
fn rows(counts: &Counts) -> (usize, usize) {
    let of = |verb: &str| counts.values().filter_map(|verbs| verbs.get(verb)).sum();
    (of("delete"), of("update"))
}

/// Describes the rows to be deleted and changed, and whose rows are deleted with them.
pub(in crate::console) fn extent_words(preview: &Preview) -> Vec<String> {
    let (gone, changed) = rows(&preview.counts);
    let rows = |count: usize| agreeing(count as u64, "{#} {row|rows}");
    let mut words = vec![format!("{} removed, {} changed.", rows(gone), rows(changed))];
    words.extend(counted(
        preview.gone_for_mentions as u64,
        "{#} of the removed rows {is another person's: it names|are other people's: they name} this person, or \
             {belongs|belong} to a row that does.",
    ));
    words
}

/// Beside every step: the rows to be deleted, obstacles, and the choices.
pub(in crate::console) fn side(erasure: &EraseScreen, width: usize, look: &Look) -> Vec<TextLine> {
    let preview = erasure.preview.as_deref();
    let mut lines = Vec::new();
    if let Some(preview) = preview {
        let (gone, changed) = rows(&preview.counts);
        let fact = |label: &str, rows: usize, word: &str| {
            let label = look.pad(&SafeText::from(label), 10, Align::Left);
            TextLine::of(label, StyleRole::Label)
                .with(figures::count(rows as u64), StyleRole::Number)
                .with(format!(" {}{word}", if rows == 1 { "row" } else { "rows" }), StyleRole::Text)
        };
        lines.push(fact("removed", gone, ""));
        if preview.gone_for_mentions > 0 {
            lines.push(fact("of them", preview.gone_for_mentions, " of other people"));
        }
        lines.push(fact("changed", changed, " of other people"));
        if erasure.stale {
            lines.push(TextLine::of("counted again after this step", StyleRole::Muted));
        }
        let others = preview.mentions.iter().map(|(_, count)| count).sum::<usize>();
        lines.push(
            TextLine::of(look.pad(&SafeText::from("named in"), 10, Align::Left), StyleRole::Label)
                .with(figures::count(others as u64), StyleRole::Number)
                .with(if others == 1 { " value of other people" } else { " values of other people" }, StyleRole::Text),
        );
        lines.push(TextLine::default());
        lines.extend(state(preview, width, look));
        lines.push(TextLine::default());
    }
    let is_over = erasure.running.is_some() || erasure.outcome.is_some() || erasure.is_settled();
    if is_over || erasure.step < STEPS.len() - 2 || preview.is_none() {
        let locks = locks(erasure);
        lines.push(Section::new("choices").line(width, look));
        let as_shown = |chosen| if is_over { keyless(chosen) } else { chosen };
        lines.extend(chosen(&erasure.choice, locks).into_iter().map(|chosen| line(&as_shown(chosen), look)));
        lines.push(TextLine::default());
    }
    if !is_over {
        let told = ["Nothing is written before you type the person's id.".to_owned()];
        lines.extend(sentences(&told, StyleRole::Muted, width, look));
    }
    lines
}

/// Returns the sentences shown before the id is typed.
pub(in crate::console) fn last_words(erasure: &EraseScreen) -> Vec<String> {
    let mut words = Vec::new();
    if erasure.is_incomplete() || erasure.is_settled() {
        words.push("The earlier run is resumed with its original choices.".to_owned());
    } else if let Some(preview) = &erasure.preview {
        words.extend(extent_words(preview));
        words.push(format!(
            "Mentions: {}{}. Account: {}. {}",
            erasure.choice.mentions.word(),
            otherwise(erasure.choice.each.len()),
            if erasure.choice.account { "erase" } else { "keep" },
            if erasure.choice.export { "An export is written first." } else { "Nothing is exported first." },
        ));
        let named = preview.mentions.iter().map(|(_, count)| count).sum::<usize>();
        if named > 0 && erasure.choice.mentions == Mentions::Leave {
            let except = if erasure.choice.each.is_empty() { "" } else { ", except those decided one by one" };
            let stay = "{#} {value|values} of other people {names|name} this person and {stays|stay}";
            words.push(agreeing(named as u64, &format!("{stay}{except}; the receipt counts them.")));
        }
    }
    words.push("What is erased cannot be brought back. Backups keep it until they expire.".to_owned());
    words
}

/// Formats the number of mentions, or columns of them, that were decided separately.
fn otherwise(decisions: usize) -> String {
    if decisions == 0 { String::new() } else { format!(", {decisions} decided one by one") }
}
