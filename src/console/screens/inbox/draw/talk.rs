//! The conversation of a feedback row: the feedback itself, then the episode segment by segment, with a mark at the
//! time of the feedback.

use ratatui::layout::Rect;

use crate::console::core::{Content, Context, row_name};
use crate::console::screens::inbox::{InboxPane, InboxScreen, worth_a_look};
use crate::console::view::{Canvas, draw_detail_lines, words};
use crate::memory::{Row, agreeing};
use crate::ui::{Look, NamedValue, PaneFrame, SafeText, Section, StyleRole, TextLine, key_values, look as lay};

/// Most lines of one segment.
const LINES: usize = 30;
/// Pieces of the conversation.
const PIECES: usize = 200;

pub fn draw(inbox: &InboxScreen, cx: &Context, area: Rect, canvas: &mut Canvas<'_>) {
    let look = canvas.look;
    let inside = PaneFrame { focused: inbox.pane == InboxPane::Talk, ..PaneFrame::new("what it is about") }
        .render(area, canvas.buf, look);
    let Some(row) = inbox.current() else { return };
    let inside = lay::padded(inside);
    let width = usize::from(inside.width.saturating_sub(2)).max(8);
    let mut lines = said(inbox, row, cx, width, look);
    if let Some((_, content)) = &inbox.episode {
        lines.push(TextLine::default());
        match content {
            None => lines.push(TextLine::of("reading the episode", StyleRole::Muted)),
            Some(content) => lines.extend(episode(content, row, width, look)),
        }
    }
    draw_detail_lines(&lines, inbox.scroll, inside, look, canvas.buf, canvas.drawn);
}

fn wrapped(text: &str, most: usize, role: StyleRole, width: usize, look: &Look) -> Vec<TextLine> {
    let rows = SafeText::rows(text, width).take(most);
    rows.map(|part| TextLine::of(look.spelled(&part).into_owned(), role)).collect()
}

/// Draws the user's feedback with its author, its time and the reason why it waits here.
fn said(inbox: &InboxScreen, row: &Row, cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    if let Some(correction) = row.text("correction").filter(|text| !text.trim().is_empty()) {
        lines.extend(wrapped(correction, 8, StyleRole::Heading, width, look));
    }
    let mut head = words::state(row.text("kind").unwrap_or("no kind"), look);
    if let Some(rating) = row.get("rating").as_i64() {
        head.push(format!(" {rating}"), StyleRole::Number);
    }
    if let Some(who) = cx.names.named_by(row, "user_id").or(row.text("user_id")) {
        head.push("  by ", StyleRole::Muted);
        head.push(SafeText::limited(who, 60), StyleRole::Text);
    }
    if let Some(at) = row.text("created_at") {
        head.push_apart(words::time(at, false), StyleRole::Muted);
    }
    lines.extend(head.flow(width, look));
    let mut pairs =
        vec![NamedValue::line("why here", TextLine::of(worth_a_look(row).unwrap_or_default(), StyleRole::Warn))];
    if !inbox.note.is_empty() {
        pairs.push(NamedValue::line("note", TextLine::of(SafeText::limited(&inbox.note, 300), StyleRole::Accent)));
    }
    lines.extend(key_values(&pairs, width, look));
    lines
}

/// The episode: its name, its outcome, and its segments.
fn episode(content: &Content, feedback: &Row, width: usize, look: &Look) -> Vec<TextLine> {
    let episode = content.row();
    let mut lines = vec![Section::new(SafeText::limited(&row_name(episode), 200)).line(width, look)];
    let mut how = words::state(episode.text("outcome").unwrap_or("unknown"), look);
    if let Some(at) = episode.text("started_at") {
        how.push_apart(words::time(at, false), StyleRole::Muted);
    }
    if let Some(utility) = episode.number("utility") {
        how.push("  utility ", StyleRole::Muted);
        how.push(format!("{utility:.2}"), StyleRole::Number);
    }
    if let Some(score) = episode.number("feedback_score") {
        how.push("  feedback ", StyleRole::Muted);
        how.append(words::score(score));
    }
    lines.extend(how.flow(width, look));
    if let Some(summary) = episode.text("summary").filter(|text| !text.trim().is_empty()) {
        lines.extend(wrapped(summary, LINES, StyleRole::Text, width, look));
    }
    if let Content::Episode(context) = content {
        lines.extend(conversation(&context.segments, feedback, width, look));
    }
    lines
}

/// The segments in order, with a line at the time of the feedback.
fn conversation(segments: &[Row], feedback: &Row, width: usize, look: &Look) -> Vec<TextLine> {
    let given = feedback.text("created_at").unwrap_or_default();
    let mut lines = Vec::new();
    let mut told = given.is_empty() || segments.is_empty();
    let here = || {
        let glyph = look.glyphs.arrow_right;
        TextLine::default().with_glyph(glyph, StyleRole::Warn).with(" here the feedback was given", StyleRole::Warn)
    };
    for segment in segments.iter().take(PIECES) {
        let at = segment.text("created_at").unwrap_or_default();
        if !told && !at.is_empty() && at > given {
            (told, lines) = (true, with(lines, here()));
        }
        lines.push(TextLine::default());
        let mut head =
            TextLine::of(SafeText::limited(segment.text("kind").unwrap_or("segment"), 40), StyleRole::Accent);
        head.push_apart(words::time(at, true), StyleRole::Muted);
        lines.push(head);
        lines.extend(wrapped(segment.text("content").unwrap_or_default(), LINES, StyleRole::Text, width, look));
    }
    if segments.len() > PIECES {
        lines.push(TextLine::of(
            agreeing(segments.len() - PIECES, "and {#} more {piece|pieces}; enter leads there"),
            StyleRole::Muted,
        ));
    }
    if !told {
        lines = with(with(lines, TextLine::default()), here());
    }
    lines
}

fn with(mut lines: Vec<TextLine>, line: TextLine) -> Vec<TextLine> {
    lines.push(line);
    lines
}
