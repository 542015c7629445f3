//! The step about mentions: each with its surrounding words and its decision; there is a key for each choice.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::erasure::{Mentions, Preview, ShownMention};
use crate::console::core::{CommandId, Context};
use crate::console::screens::erase::{EraseChoice, EraseScreen};
use crate::console::view::person::around;
use crate::console::view::{Drawn, key_of};
use crate::memory::Entity;
use crate::ui::scroll::LineWindow;
use crate::ui::{Align, Glyph, Look, SafeText, Section, StyleRole, TextLine, look as lay};

/// Columns of the word for the decision.
const WORD: usize = 7;
/// Least rows of the list for a description of the selected mention.
const LEAST: u16 = 6;
/// Columns before the words of a mention.
const INDENT: usize = 6 + WORD;

enum MentionRow<'p> {
    Blank,
    Place(&'p str, usize),
    Mention(usize, &'p ShownMention),
    Words(&'p ShownMention),
}

/// Lines of a mention, including the blank one.
const LINES: usize = 3;

pub fn draw(
    (cx, erasure): (&Context, &EraseScreen),
    preview: &Preview,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let width = usize::from(area.width.saturating_sub(2));
    let mut head = all(cx, erasure, width, look);
    head.extend(keys(cx, erasure, preview, width, look));
    let total: usize = preview.mentions.iter().map(|(_, count)| count).sum();
    if usize::from(area.height) < head.len() + 1 + LINES {
        // The mentions take precedence: the last line of the screen names the keys, too.
        head.clear();
    } else {
        let title = Section::new("named in other people's rows");
        head.push(Section { count: Some(total as u64), ..title }.line(width, look));
    }
    let mut below = area;
    for line in head.iter().take(usize::from(area.height)) {
        line.render(lay::row(below, 0), buf, look);
        below = lay::below(below, 1);
    }
    if preview.named.is_empty() {
        TextLine::of("none", StyleRole::Muted).render(lay::row(below, 0), buf, look);
        return;
    }
    let told = erasure.mention().map(|mention| about(cx, mention, width, look)).unwrap_or_default();
    let foot = if below.height >= LEAST + told.len() as u16 { told.len() as u16 } else { 0 };
    let list = Rect { height: below.height - foot, ..below };
    draw_list((cx, erasure), preview, look, list, buf, drawn);
    for (at, line) in told.iter().take(usize::from(foot)).enumerate() {
        line.render(lay::row(below, list.height + at as u16), buf, look);
    }
}

fn draw_list(
    (cx, erasure): (&Context, &EraseScreen),
    preview: &Preview,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let rows = rows(preview);
    let at = erasure.mention.min(preview.named.len().saturating_sub(1));
    let line = rows.iter().position(|row| matches!(row, MentionRow::Mention(number, _) if *number == at)).unwrap_or(0);
    let height = usize::from(area.height).max(1);
    let first = line.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let width = usize::from(area.width.saturating_sub(2));
    let window: Vec<TextLine> =
        rows.iter().skip(first).take(height).map(|row| row_line(cx, row, erasure, width, look)).collect();
    drawn.measures.list_rows = (height / LINES).max(1);
    LineWindow { lines: &window, first, total: rows.len(), selected: Some(line - first) }.render(area, buf, look);
}

/// Mentions below the column that they are in.
fn rows(preview: &Preview) -> Vec<MentionRow<'_>> {
    let mut rows = Vec::new();
    let mut place = "";
    for (number, mention) in preview.named.iter().enumerate() {
        if number > 0 {
            rows.push(MentionRow::Blank);
        }
        if mention.place != place {
            place = &mention.place;
            let count = preview.mentions.iter().find(|(of, _)| of == place).map_or(0, |(_, count)| *count);
            rows.push(MentionRow::Place(place, count));
        }
        rows.push(MentionRow::Mention(number, mention));
        rows.push(MentionRow::Words(mention));
    }
    rows
}

fn row_line(cx: &Context, row: &MentionRow<'_>, erasure: &EraseScreen, width: usize, look: &Look) -> TextLine {
    match row {
        MentionRow::Place(place, count) => {
            TextLine::of(SafeText::limited(place, 80).cut(width.saturating_sub(8)), StyleRole::Heading)
                .with(format!("  {count}"), StyleRole::Muted)
        }
        MentionRow::Mention(_, mention) => {
            let decision = erasure.choice.decision(mention);
            let own = erasure.choice.each.contains_key(&mention.id);
            let (glyph, role) = (mark(decision, look), role(decision));
            let mut line = TextLine::of("  ", StyleRole::Text).with_glyph(glyph, role).with(" ", StyleRole::Text);
            line = line.with(look.pad(&SafeText::from(decision.word()), WORD, Align::Left), role);
            line.push(if own { "* " } else { "  " }, StyleRole::Warn);
            if mention.doubt.is_some() {
                line.push("perhaps ", StyleRole::Warn);
            }
            let room = width.saturating_sub(line.width());
            let owner = cx.names.of(Entity::Subject, &mention.owner).unwrap_or(&mention.owner);
            let owner = if owner.is_empty() { String::new() } else { format!("  of {owner}") };
            let owner = SafeText::limited(&owner, room / 2);
            line.push(row_name(mention).cut(room - owner.width()), StyleRole::Label);
            line.with(owner, StyleRole::Muted)
        }
        MentionRow::Words(mention) => around(&mention.words, TextLine::of(" ".repeat(INDENT), StyleRole::Text), width),
        MentionRow::Blank => TextLine::default(),
    }
}

/// The title of a mention's row, else its key.
fn row_name(mention: &ShownMention) -> SafeText {
    let name = match mention.title.as_str() {
        "" if mention.key.starts_with("row-") => mention.key.clone(),
        "" => format!("row {}", mention.key),
        title => title.to_owned(),
    };
    SafeText::limited(&name, 160)
}

fn mark(decision: Mentions, look: &Look) -> Glyph {
    match decision {
        Mentions::Leave => look.glyphs.ring,
        Mentions::Redact => look.glyphs.half,
        Mentions::Delete => look.glyphs.cross,
    }
}

fn role(decision: Mentions) -> StyleRole {
    match decision {
        Mentions::Leave => StyleRole::Muted,
        Mentions::Redact => StyleRole::Warn,
        Mentions::Delete => StyleRole::Bad,
    }
}

fn all(cx: &Context, erasure: &EraseScreen, width: usize, look: &Look) -> Vec<TextLine> {
    let mut line = TextLine::of("all certain  ", StyleRole::Label);
    for decision in Mentions::ALL {
        let is = decision == erasure.choice.mentions;
        let glyph = if is { look.glyphs.dot } else { look.glyphs.ring };
        let role = if is { StyleRole::Warn } else { StyleRole::Muted };
        line = line.with_glyph(glyph, role).with(format!(" {}  ", decision.word()), role);
    }
    if !erasure.is_settled() {
        line = line.with(key_of(cx, CommandId::Turn(EraseChoice::Mentions)), StyleRole::Key);
    }
    line.flow(width, look)
}

fn keys(cx: &Context, erasure: &EraseScreen, preview: &Preview, width: usize, look: &Look) -> Vec<TextLine> {
    if erasure.is_settled() || preview.named.is_empty() {
        return Vec::new();
    }
    let decide = |label, whole_column| {
        let keys = Mentions::ALL.map(|decision| {
            let key = key_of(cx, CommandId::Turn(EraseChoice::Decide(decision, whole_column)));
            TextLine::of(key, StyleRole::Key).with(format!(" {}  ", decision.word()), StyleRole::Muted)
        });
        let mut line = TextLine::of(label, StyleRole::Label);
        keys.into_iter().for_each(|key| line.append(key));
        line.flow(width, look)
    };
    [decide("this one     ", false), decide("its column   ", true)].concat()
}

/// Describes the selected mention, apart from its words.
fn about(cx: &Context, mention: &ShownMention, width: usize, look: &Look) -> Vec<TextLine> {
    let certainty = match &mention.doubt {
        None if cx.masking.is_on() => {
            SafeText::new(&format!("certain; masking hides the words, {} shows them", cx.key_for(CommandId::Mask)))
        }
        None => SafeText::from("certain: these words mean the person"),
        Some(doubt) => {
            SafeText::join(&["possible, someone else may be meant: ".into(), SafeText::limited(doubt, 120)], "")
        }
    };
    let mut first = TextLine::of(SafeText::from(mention.id.as_str()), StyleRole::Muted);
    first = first.with("  row ", StyleRole::Label).with(SafeText::limited(&mention.key, 60), StyleRole::Text);
    let mut lines = vec![Section::new("selected").line(width, look)];
    lines.push(cut(first, width));
    lines.push(cut(
        TextLine::of(certainty, if mention.doubt.is_some() { StyleRole::Warn } else { StyleRole::Muted }),
        width,
    ));
    if let Some(refused) = &mention.refused {
        lines.push(cut(TextLine::of(SafeText::limited(refused, 200), StyleRole::Warn), width));
    }
    lines
}

fn cut(line: TextLine, width: usize) -> TextLine {
    let mut cut = TextLine::default();
    for run in line.runs {
        let room = width.saturating_sub(cut.width());
        cut.push(run.text.cut(room), run.role);
    }
    cut
}
