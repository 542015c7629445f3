//! Row changes as lines: counts by table, and each row's columns before and after.

use serde_json::Value;

use crate::change::plan::{Change, Counts, SHOWN};
use crate::console::core::NameBook;
use crate::console::core::change::columns;
use crate::console::core::columns::{json_name, title_column};
use crate::console::core::names::named_entity;
use crate::console::view::told::told;
use crate::console::view::words;
use crate::memory::{Entity, ValueKind};
use crate::ui::{Align, Look, NamedValue, SafeText, Section, StyleRole, TextLine, figures, key_values};

/// Columns of a heading reserved for the kind of change.
const NOTE: usize = 14;
/// Columns of a hash.
const DIGEST: usize = 13;
/// Most characters of one value.
const LONGEST: usize = 2_000;

/// `agent_feedback: 1 updated, episodes: 1 updated`, a pair for each table.
pub fn count_lines(counts: &Counts, width: usize, look: &Look) -> Vec<TextLine> {
    let pairs: Vec<NamedValue> = counts
        .iter()
        .map(|(table, verbs)| {
            let words: Vec<SafeText> = verbs.iter().map(|(verb, rows)| verb_words(verb, *rows)).collect();
            NamedValue::new(SafeText::limited(table, 40), SafeText::join(&words, ", "))
        })
        .collect();
    key_values(&pairs, width, look)
}

fn verb_words(verb: &str, rows: usize) -> SafeText {
    let past = match verb {
        "insert" => "new",
        "update" => "changed",
        "delete" => "removed",
        other => other,
    };
    let noun = if rows == 1 { " row " } else { " rows " };
    SafeText::join(&[figures::count(rows as u64), noun.into(), SafeText::limited(past, 20)], "")
}

/// Rows before and after; `total` is the number of all changes.
pub fn change_lines(changes: &[Change], total: usize, names: &NameBook, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for change in changes.iter().take(SHOWN) {
        lines.push(heading(change, names, width, look));
        let columns = columns(change);
        let widest = columns.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0).min(22);
        for (name, before, after) in columns {
            lines.extend(column_lines(change, &name, (&before, &after), (names, widest), width, look));
        }
    }
    if total > changes.len().min(SHOWN) {
        let more = figures::count((total - changes.len().min(SHOWN)) as u64);
        lines.push(TextLine::of(SafeText::join(&["and ".into(), more, " more rows".into()], ""), StyleRole::Muted));
    }
    lines
}

fn heading(change: &Change, names: &NameBook, width: usize, look: &Look) -> TextLine {
    let entity = Entity::parse(&change.entity).map_or_else(|| change.entity.clone(), Entity::title);
    // The word at the end for the kind of change keeps its room.
    let id = SafeText::limited(&change.id, width.saturating_sub(entity.len() + NOTE).min(60));
    let mut title = SafeText::join(&[SafeText::limited(&entity, 40), " ".into(), id], "");
    let name = named(change, names).map(|name| SafeText::limited(name, width.saturating_sub(title.width() + NOTE)));
    if let Some(name) = name.filter(|name| name.width() > 0) {
        title = SafeText::join(&[title, name], "  ");
    }
    let (word, role) = match (change.before.is_null(), change.after.is_null()) {
        (true, false) => ("new", StyleRole::Good),
        (false, true) => ("removed", StyleRole::Bad),
        _ => ("changed", StyleRole::Warn),
    };
    Section { note: TextLine::of(word, role), ..Section::new(title) }.line(width, look)
}

/// Names the row: from the change, else from the known names.
fn named<'c>(change: &'c Change, names: &'c NameBook) -> Option<&'c str> {
    let entity = Entity::parse(&change.entity)?;
    let side = |side: &'c Value| side.get(title_column(entity)).and_then(json_name).filter(|name| !name.is_empty());
    let whole = [&change.before, &change.after].into_iter().find(|side| !side.is_null());
    let is_whole = change.before.is_null() || change.after.is_null();
    let is_words = |name: &&str| !name.starts_with('{');
    whole.filter(|_| is_whole).and_then(|whole| side(whole)).filter(is_words).or_else(|| names.of(entity, &change.id))
}

fn text(change: &Change, column: &str, value: &Value, names: &NameBook) -> SafeText {
    let kind = Entity::parse(&change.entity).and_then(|entity| entity.column(column)).map(|c| c.kind);
    match (value, kind) {
        (Value::String(at), Some(ValueKind::Time)) => words::time(at, true),
        (Value::String(text), Some(ValueKind::Json)) => match serde_json::from_str(text) {
            Ok(json) => words::one_line(&json, LONGEST),
            Err(_) => SafeText::limited(text, LONGEST),
        },
        (Value::String(digits), _) if is_digest(digits) => SafeText::limited(digits, DIGEST),
        (Value::String(id), _) => match named_entity(column).and_then(|entity| names.of(entity, id)) {
            Some(name) => SafeText::limited(&format!("{name}  {id}"), LONGEST),
            None => SafeText::limited(id, LONGEST),
        },
        (value, _) => words::one_line(value, LONGEST),
    }
}

/// Whether a text is the digits of a hash: its beginning distinguishes it.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// One column: both sides on one line if they fit, else below each other.
fn column_lines(
    change: &Change,
    name: &str,
    (before, after): (&Value, &Value),
    (names, widest): (&NameBook, usize),
    width: usize,
    look: &Look,
) -> Vec<TextLine> {
    let g = look.glyphs;
    let label = look.pad(&SafeText::limited(name, widest), widest, Align::Left);
    let mut head = TextLine::of("  ", StyleRole::Text).with(label, StyleRole::Label).with("  ", StyleRole::Text);
    let room = width.saturating_sub(head.width());
    let (old, new) = (text(change, name, before, names), text(change, name, after, names));
    let alters = !change.before.is_null() && !change.after.is_null();
    if alters && old.width() + new.width() + 5 <= room {
        let old = if before.is_null() {
            TextLine::default().with_glyph(g.none, StyleRole::Muted)
        } else {
            TextLine::of(old, StyleRole::Bad)
        };
        let new = if after.is_null() {
            TextLine::default().with_glyph(g.none, StyleRole::Muted)
        } else {
            TextLine::of(new, StyleRole::Good)
        };
        head.append(old);
        head.append(TextLine::of(" ", StyleRole::Text).with(look.arrow(), StyleRole::Muted).with(" ", StyleRole::Text));
        head.append(new);
        return vec![head];
    }
    let indent = head.width();
    let mut lines = Vec::new();
    let mut side = |value: &Value, text: &SafeText, sign: &str, role: StyleRole| {
        if value.is_null() {
            return;
        }
        for (index, part) in look.spelled(text).wrap(room.saturating_sub(2).max(8)).enumerate() {
            let mut line = if lines.is_empty() { std::mem::take(&mut head) } else { TextLine::default() };
            if line.runs.is_empty() {
                line.push_blanks(indent);
            }
            line.push(if index == 0 { sign } else { " " }, role);
            line.push(" ", StyleRole::Text);
            lines.push(line.with(part, role));
        }
    };
    side(before, &old, "-", StyleRole::Bad);
    side(after, &new, "+", StyleRole::Good);
    lines
}

/// Sentences as a list, wrapped, each with a bullet.
pub fn sentences(texts: &[String], role: StyleRole, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    for text in texts {
        for (index, part) in
            look.spelled(&SafeText::limited(&told(text), LONGEST)).wrap(width.saturating_sub(4).max(8)).enumerate()
        {
            let mut line = TextLine::of("  ", StyleRole::Text);
            if index == 0 {
                line.push_glyphs(look.glyphs.bullet, 1, role);
                line.push(" ", StyleRole::Text);
            } else {
                line.push_blanks(2);
            }
            lines.push(line.with(part, StyleRole::Text));
        }
    }
    lines
}

/// Whether a line of a migration repeats what is shown above its statements.
pub fn is_told(line: &str) -> bool {
    line.starts_with("-- effect:") || line.starts_with("-- lock risk:")
}
