//! Draws a comparison of two rows: their names, the differing columns, dependent rows, and their chains.

use serde_json::Value;

use crate::console::core::{Content, Context, row_name};
use crate::console::screens::compare::{CompareScreen, ComparedRow};
use crate::console::view::{Canvas, draw_detail_lines, failure_card, words};
use crate::memory::compare::{FieldPair, PieceOf, TextPiece};
use crate::memory::query::EpisodeContext;
use crate::memory::{Entity, Row, ValueKind};
use crate::ui::{Align, Card, CardTone, Look, PaneFrame, SafeText, Section, StyleRole, TextLine, figures, look as lay};

/// Most characters of common text shown on either side of a difference.
const COMMON: usize = 60;
/// Most rows of one text.
const LINES: usize = 60;
/// Columns of a label.
const LABEL: usize = 16;
/// The same if there is room for all names.
const LABEL_WIDE: usize = 22;
/// Least columns for that.
const WIDE: usize = 100;

pub fn draw(screen: &CompareScreen, cx: &Context, canvas: &mut Canvas<'_>) {
    let look = canvas.look;
    let pane = PaneFrame { focused: true, ..PaneFrame::new(screen.title_of_pane()) };
    let inside = lay::padded(pane.render(canvas.area, canvas.buf, look));
    if let Some(card) = card(cx, screen) {
        return card.render(inside, canvas.buf, look);
    }
    let width = usize::from(inside.width.saturating_sub(2)).max(8);
    let lines = lines(screen, cx, width, look);
    draw_detail_lines(&lines, screen.scroll, inside, look, canvas.buf, canvas.drawn);
}

impl CompareScreen {
    fn title_of_pane(&self) -> String {
        let different = self.fields.iter().filter(|field| !field.same && field.column != "id").count();
        match (self.both().is_some(), different) {
            (false, _) => self.entity.plural().to_owned(),
            (true, 0) => "nothing differs".to_owned(),
            (true, 1) => "one column differs".to_owned(),
            (true, n) => format!("{n} columns differ"),
        }
    }
}

fn card(cx: &Context, screen: &CompareScreen) -> Option<Card> {
    if let Some(failure) = &screen.failure {
        return Some(failure_card(cx, failure));
    }
    if let Some(gone) = screen.rows.iter().find(|row| row.gone) {
        let words = format!("There is no {} {}", screen.entity.title(), gone.id);
        return Some(Card::new(CardTone::Warn, SafeText::limited(&words, 60)));
    }
    screen.both().is_none().then(|| Card::new(CardTone::Plain, "Reading"))
}

fn lines(screen: &CompareScreen, cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = heads(&screen.rows, width, look);
    let (different, same): (Vec<&FieldPair>, Vec<&FieldPair>) = screen.fields.iter().partition(|field| !field.same);
    let different: Vec<&FieldPair> = different.into_iter().filter(|field| field.column != "id").collect();
    if !different.is_empty() {
        Section { count: Some(different.len() as u64), ..Section::new("differs") }.add_to(&mut lines, width, look);
        for field in different {
            lines.extend(field_lines(field, &screen.rows, cx, width, look));
        }
    }
    if let Some([Content::Episode(first), Content::Episode(second)]) = screen.both() {
        Section::new("what depends on them").add_to(&mut lines, width, look);
        lines.extend(contexts([first, second], width, look));
        Section::new("chains").add_to(&mut lines, width, look);
        lines.extend(chains([first, second], width, look));
    }
    let names: Vec<String> = same.iter().map(|field| field.column.replace('_', " ")).collect();
    if !names.is_empty() {
        Section { count: Some(names.len() as u64), ..Section::new("the same") }.add_to(&mut lines, width, look);
        let text = SafeText::limited(&names.join(", "), 2_000);
        lines.extend(text.wrap(width).map(|part| TextLine::of(part, StyleRole::Muted)));
    }
    lines
}

/// Builds the heads of both rows: their times, outcomes, names and ids.
fn heads(rows: &[ComparedRow; 2], width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for (number, (row, side)) in rows.iter().filter_map(|row| Some((row.row()?, row))).enumerate() {
        let mut line = side_mark(number);
        if let Some(at) = row.text(row.entity.time_column()) {
            line.push(words::time(at, false), StyleRole::Muted);
            line.push("  ", StyleRole::Text);
        }
        if let Some(outcome) = row.text("outcome") {
            line.append(words::state(outcome, look));
            line.push("  ", StyleRole::Text);
        }
        let id = SafeText::limited(&side.id, 40);
        let room = width.saturating_sub(line.width() + id.width() + 2).max(12);
        line.push(SafeText::limited(&row_name(row), room), StyleRole::Heading);
        line.push("  ", StyleRole::Text);
        lines.push(line.with(id, StyleRole::Muted));
    }
    lines
}

/// `1` or `2`, the names of the sides.
fn side_mark(number: usize) -> TextLine {
    let role = if number == 0 { StyleRole::Bad } else { StyleRole::Good };
    TextLine::of(if number == 0 { "1 " } else { "2 " }, role)
}

fn field_lines(field: &FieldPair, rows: &[ComparedRow; 2], cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let longest = if width >= WIDE { LABEL_WIDE } else { LABEL };
    let label = look.pad(&SafeText::limited(&field.column.replace('_', " "), longest), longest, Align::Left);
    let head = TextLine::of(label, StyleRole::Label).with("  ", StyleRole::Text);
    let stored = |side: usize| rows[side].row().map_or(&Value::Null, |row| row.get(field.column));
    let are_texts = [0, 1].iter().all(|side| stored(*side).is_string());
    if let Some(pieces) = field.words.as_ref().filter(|_| are_texts) {
        return word_lines(head, pieces, width, look);
    }
    let sides = [0, 1].map(|side| value(stored(side), rows[side].row(), field.column, cx, look));
    let mut line = head.clone();
    if head.width() + sides.iter().map(TextLine::width).sum::<usize>() + 3 <= width {
        let [first, second] = sides;
        line.append(first);
        line.push(" ", StyleRole::Text);
        line.push(look.arrow(), StyleRole::Muted);
        line.push(" ", StyleRole::Text);
        line.append(second);
        return vec![line];
    }
    let mut lines = Vec::new();
    for (number, side) in sides.into_iter().enumerate() {
        let mut begun = if number == 0 { std::mem::take(&mut line) } else { blanks(head.width()) };
        begun.append(side_mark(number));
        for row in side.flow(width.saturating_sub(begun.width()).max(8), look).into_iter().take(LINES) {
            let indent = begun.width();
            begun.append(row);
            lines.push(std::mem::replace(&mut begun, blanks(indent)));
        }
    }
    lines
}

fn blanks(count: usize) -> TextLine {
    let mut line = TextLine::default();
    line.push_blanks(count);
    line
}

/// A value of one side: the name behind a key, a time in readable form, or a mark for null.
fn value(value: &Value, row: Option<&Row>, column: &str, cx: &Context, look: &Look) -> TextLine {
    const LONGEST: usize = 2_000;
    let kind = row.and_then(|row| row.entity.column(column)).map(|column| column.kind);
    match (value, kind) {
        (Value::Null, _) => TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted),
        (Value::String(at), Some(ValueKind::Time)) => TextLine::of(words::time(at, true), StyleRole::Text),
        (Value::Number(_), _) => TextLine::of(words::amount(value), StyleRole::Number),
        _ => match row.and_then(|row| cx.names.named_by(row, column)) {
            Some(name) => TextLine::of(SafeText::limited(name, 200), StyleRole::Text),
            None => match words::one_line(value, LONGEST) {
                empty if empty.is_empty() => TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted),
                text => TextLine::of(text, StyleRole::Text),
            },
        },
    }
}

/// A text with removed and added words in colour, or as `[-…-]` and `{+…+}` without colours; common text is shown
/// around the differences.
fn word_lines(head: TextLine, pieces: &[TextPiece], width: usize, look: &Look) -> Vec<TextLine> {
    let mut text = TextLine::default();
    let is_marked = look.theme.is_mono() || look.glyphs.is_ascii();
    for (at, piece) in pieces.iter().enumerate() {
        let flat = piece.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match piece.how {
            PieceOf::Same => {
                let around = around(&piece.text, at > 0, at + 1 < pieces.len());
                text.push(SafeText::new(&around), StyleRole::Muted);
            }
            PieceOf::Removed if is_marked => text.push(SafeText::new(&format!("[-{flat}-]")), StyleRole::Bad),
            PieceOf::Added if is_marked => text.push(SafeText::new(&format!("{{+{flat}+}}")), StyleRole::Good),
            PieceOf::Removed => {
                text.push_blanks(usize::from(begins_blank(piece)));
                text.push(SafeText::new(&flat), StyleRole::Bad);
                let replaced = pieces.get(at + 1).is_some_and(|next| next.how == PieceOf::Added);
                text.push_blanks(usize::from(replaced || ends_blank(piece)));
            }
            PieceOf::Added => {
                text.push_blanks(usize::from(begins_blank(piece)));
                text.push(SafeText::new(&flat), StyleRole::Added);
                text.push_blanks(usize::from(ends_blank(piece)));
            }
        }
    }
    let indent = head.width();
    let room = width.saturating_sub(indent).max(12);
    let mut lines = Vec::new();
    let mut line = head;
    for row in text.flow_words(room, look).into_iter().take(LINES) {
        line.append(row);
        lines.push(std::mem::replace(&mut line, blanks(indent)));
    }
    lines
}

fn begins_blank(piece: &TextPiece) -> bool {
    piece.text.starts_with(char::is_whitespace)
}

fn ends_blank(piece: &TextPiece) -> bool {
    piece.text.ends_with(char::is_whitespace)
}

/// The beginning and the end of a common text, on one line.
fn around(text: &str, after_change: bool, before_change: bool) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let count = text.chars().count();
    let shown = COMMON * (usize::from(after_change) + usize::from(before_change));
    if count <= shown + 3 {
        return text;
    }
    let start: String = if after_change { text.chars().take(COMMON).collect() } else { String::new() };
    let end: String = if before_change { text.chars().skip(count - COMMON).collect() } else { String::new() };
    format!("{start} … {end}")
}

/// Name of a count, and the function that counts it in a context.
type ContextCount = (&'static str, fn(&EpisodeContext) -> usize);

/// Compares how much is attached to each of the two episodes.
fn contexts(sides: [&EpisodeContext; 2], width: usize, look: &Look) -> Vec<TextLine> {
    let counts: [ContextCount; 6] = [
        ("segments", |context| context.total(Entity::Segment)),
        ("canvas events", |context| context.total(Entity::CanvasEvent)),
        ("feedback", |context| context.total(Entity::Feedback)),
        ("signals", |context| context.total(Entity::UtilityEvent)),
        ("memories", |context| context.total(Entity::MemoryLink)),
        ("children", |context| context.chain.children.len()),
    ];
    let line = |(name, count): &ContextCount| {
        let label = look.pad(&SafeText::new(name), LABEL, Align::Left);
        let [first, second] = sides.map(count);
        let role = if first == second { StyleRole::Muted } else { StyleRole::Number };
        TextLine::of(label, StyleRole::Label)
            .with("  ", StyleRole::Text)
            .with(figures::column(first as u64, 6), role)
            .with("  ", StyleRole::Text)
            .with(figures::column(second as u64, 6), role)
    };
    let mut lines: Vec<TextLine> = counts.iter().map(line).collect();
    let memories = |context: &EpisodeContext| -> Vec<String> {
        context.links.iter().filter_map(|link| link.text("memory_id").map(str::to_owned)).collect()
    };
    let (first, second) = (memories(sides[0]), memories(sides[1]));
    let both = first.iter().filter(|id| second.contains(id)).count();
    if both > 0 {
        let words = format!("{both} of the memories were retrieved by both");
        lines.push(TextLine::of(SafeText::limited(&words, width), StyleRole::Muted));
    }
    lines
}

/// The chains from their roots: one chain if both are in it, else one after the other.
fn chains(sides: [&EpisodeContext; 2], width: usize, look: &Look) -> Vec<TextLine> {
    let [first, second] = sides;
    let (longer, shorter) =
        if first.chain.ids.len() >= second.chain.ids.len() { (first, second) } else { (second, first) };
    if longer.chain.ids.starts_with(&shorter.chain.ids) {
        return chain(longer, sides, width, look);
    }
    let mut lines = chain(first, sides, width, look);
    lines.push(TextLine::default());
    lines.extend(chain(second, sides, width, look));
    lines
}

fn chain(context: &EpisodeContext, sides: [&EpisodeContext; 2], width: usize, look: &Look) -> Vec<TextLine> {
    let line = |(depth, id): (usize, &String)| {
        let side = sides.iter().position(|side| side.episode.id() == id);
        let mut line = side.map_or_else(|| TextLine::of("  ", StyleRole::Text), side_mark);
        line.push_blanks(depth.min(12) * 2);
        let Some(row) = context.relative(id) else { return line.with(SafeText::limited(id, 40), StyleRole::Muted) };
        line.append(words::state(row.text("outcome").unwrap_or("unknown"), look));
        line.push("  ", StyleRole::Text);
        let room = width.saturating_sub(line.width() + 18).max(12);
        line.push(
            SafeText::limited(&row_name(row), room),
            if side.is_some() { StyleRole::Heading } else { StyleRole::Text },
        );
        line.push("  ", StyleRole::Text);
        line.with(words::time(row.text("started_at").unwrap_or_default(), false), StyleRole::Muted)
    };
    context.chain.ids.iter().enumerate().map(line).collect()
}
