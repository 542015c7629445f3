//! Details as lines: built once from the loaded data, then drawn from a scroll position on.

use std::collections::BTreeSet;

use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::Value;

use crate::console::core::columns::{ValueStyle, list_columns};
use crate::console::core::names::named_entity;
use crate::console::core::{ClickTarget, Destination, NameBook};
use crate::console::view::Drawn;
use crate::console::view::words;
use crate::memory::{Entity, Row, ValueKind};
use crate::ui::{JsonView, Look, NamedValue, SafeText, Section, StyleRole, TextLine, key_values};

/// Most bytes of one text in a document; the rest is for the editor.
const TEXT_LIMIT: usize = 20_000;
/// Most lines of one JSON value in a document.
const JSON_LINES: usize = 3_000;

#[derive(Debug, Clone)]
enum DocumentLine {
    Line(TextLine),
    /// A row of the picture with that number.
    Picture(usize, u16),
}

/// Lines, charts and links.
#[derive(Debug, Clone, Default)]
pub struct DocumentView {
    pieces: Vec<DocumentLine>,
    pictures: Vec<Buffer>,
    links: Vec<(usize, Destination)>,
    /// Lines that one steps to.
    stops: Vec<usize>,
}

impl DocumentView {
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The lines that contain a text, regardless of case.
    pub fn holding(&self, text: &str) -> Vec<usize> {
        let holds = |piece: &DocumentLine| match piece {
            DocumentLine::Line(line) => line.runs.iter().any(|run| !run.text.find(text).is_empty()),
            DocumentLine::Picture(..) => false,
        };
        if text.is_empty() {
            return Vec::new();
        }
        self.pieces.iter().enumerate().filter(|(_, piece)| holds(piece)).map(|(at, _)| at).collect()
    }

    /// The line of a stop, numbered from the first.
    pub fn stop(&self, number: usize) -> Option<usize> {
        self.stops.get(number).copied()
    }

    /// The first line that leads there.
    pub fn leading_to(&self, destination: &Destination) -> Option<usize> {
        self.links.iter().find(|(_, to)| to == destination).map(|(line, _)| *line)
    }

    /// Marks a line as the one that the cursor is on.
    pub fn mark(&self, line: usize, first: usize, area: Rect, buf: &mut Buffer, look: &Look) {
        let first = first.min(self.len().saturating_sub(usize::from(area.height)));
        if (first..first + usize::from(area.height)).contains(&line) {
            let place = Rect { y: area.y + (line - first) as u16, height: 1, ..area };
            look.select(place, buf, StyleRole::Selection);
        }
    }

    /// Draws from line `first` on, with matches highlighted.
    pub fn draw(&self, (first, sought): (usize, &str), area: Rect, buf: &mut Buffer, look: &Look, drawn: &mut Drawn) {
        let first = first.min(self.len().saturating_sub(usize::from(area.height)));
        for (index, piece) in self.pieces.iter().enumerate().skip(first).take(usize::from(area.height)) {
            let place = Rect { y: area.y + (index - first) as u16, height: 1, ..area };
            match piece {
                DocumentLine::Line(line) if !sought.is_empty() => {
                    line.clone().with_hits(sought).render(place, buf, look);
                }
                DocumentLine::Line(line) => {
                    line.render(place, buf, look);
                }
                DocumentLine::Picture(picture, row) => {
                    if let Some(picture) = self.pictures.get(*picture) {
                        copy_row(picture, *row, place, buf);
                    }
                }
            }
        }
        for (line, destination) in &self.links {
            if (first..first + usize::from(area.height)).contains(line) {
                let place = Rect { y: area.y + (line - first) as u16, height: 1, ..area };
                drawn.hits.add(place, ClickTarget::Link(destination.clone()));
            }
        }
    }
}

fn copy_row(picture: &Buffer, row: u16, place: Rect, buf: &mut Buffer) {
    for x in 0..place.width.min(picture.area.width) {
        if let (Some(from), Some(to)) = (picture.cell((x, row)), buf.cell_mut((place.x + x, place.y))) {
            *to = from.clone();
        }
    }
}

/// Writes a document of a given width.
pub struct DocumentWriter<'l> {
    /// Theme and glyphs in use.
    pub look: &'l Look,
    /// Available columns.
    pub width: usize,
    /// Long texts are wrapped.
    pub wrap: bool,
    /// Names of rows that other rows refer to.
    pub names: &'l NameBook,
    document: DocumentView,
}

impl<'l> DocumentWriter<'l> {
    pub fn new(look: &'l Look, width: usize, wrap: bool, names: &'l NameBook) -> Self {
        DocumentWriter { look, width, wrap, names, document: DocumentView::default() }
    }

    /// A value as shown: an id, or a list of ids, is preceded by the names.
    pub fn value(&self, row: &Row, column: &str) -> TextLine {
        let named = |id: &str| self.names.of(named_entity(column)?, id);
        match self.names.named_by(row, column) {
            None if row.list(column).into_iter().any(|id| named(id).is_some()) => {
                let names = row.list(column).into_iter().map(|id| SafeText::limited(named(id).unwrap_or(id), 80));
                TextLine::of(SafeText::join(&names.collect::<Vec<_>>(), "; "), StyleRole::Text)
            }
            None => value_line(row, column, self.look),
            Some(name) => {
                let mut line = TextLine::of(SafeText::limited(name, 80), StyleRole::Text).with("  ", StyleRole::Text);
                line.push(words::one_line(row.get(column), 80), StyleRole::Muted);
                line
            }
        }
    }

    /// Mark of a person under a legal hold.
    pub fn hold(&self, person: &str) -> TextLine {
        match self.names.is_held(person) {
            Some(true) => TextLine::default()
                .with_glyph(self.look.glyphs.warning, StyleRole::Warn)
                .with(" held: an erasure is refused until the hold ends", StyleRole::Warn),
            Some(false) => TextLine::of("none", StyleRole::Text),
            None => TextLine::of("not known", StyleRole::Muted),
        }
    }

    pub fn finish(self) -> DocumentView {
        self.document
    }

    pub fn line(&mut self, line: TextLine) {
        self.document.pieces.push(DocumentLine::Line(line));
    }

    pub fn text(&mut self, text: impl Into<SafeText>, role: StyleRole) {
        self.line(TextLine::of(text, role));
    }

    pub fn blank(&mut self) {
        if self.document.len() > 0 {
            self.line(TextLine::default());
        }
    }

    /// The next line is a stop.
    pub fn stop(&mut self) {
        self.document.stops.push(self.document.len());
    }

    /// The last line leads there.
    pub fn link(&mut self, to: Destination) {
        if let Some(last) = self.document.len().checked_sub(1) {
            self.document.links.push((last, to));
        }
    }

    /// The last lines lead to these episodes, one each.
    pub fn link_rows(&mut self, ids: &[String], rows: usize) {
        let first = self.document.len().saturating_sub(rows);
        for (index, id) in ids.iter().enumerate() {
            let to = Destination::Row(crate::memory::Entity::Episode, id.clone());
            self.document.links.push((first + index, to));
        }
    }

    /// A heading after a blank line.
    pub fn section(&mut self, title: &str, count: Option<usize>) {
        self.blank();
        let section = Section { count: count.map(|n| n as u64), ..Section::new(title) };
        self.line(section.line(self.width, self.look));
    }

    pub fn pairs(&mut self, pairs: &[NamedValue]) {
        for line in key_values(pairs, self.width, self.look) {
            self.line(line);
        }
    }

    /// Adds a long text, indented; wrapped or cut, up to the limit.
    pub fn long(&mut self, raw: &str, indent: usize, role: StyleRole) {
        let width = self.width.saturating_sub(indent).max(8);
        let head = &raw[..raw.floor_char_boundary(TEXT_LIMIT)];
        if self.wrap {
            for row in SafeText::rows(head, width) {
                self.indented(row, indent, role);
            }
        } else {
            for line in head.lines() {
                self.indented(SafeText::limited(line, width), indent, role);
            }
        }
        if head.len() < raw.len() {
            let size = crate::ui::figures::bytes(raw.len() as u64);
            let more = SafeText::join(&["the text has ".into(), size, "; o shows all of it".into()], "");
            self.indented(more, indent, StyleRole::Muted);
        }
    }

    /// A text after something short; wrapped rows are under its beginning.
    pub fn hanging(&mut self, mut head: TextLine, text: &SafeText, role: StyleRole) {
        const INDENT: usize = 4;
        let mut indent = head.width();
        if indent * 2 > self.width && indent + text.width() > self.width {
            self.line(std::mem::take(&mut head));
            indent = INDENT;
            head.push_blanks(indent);
        }
        for (index, part) in text.wrap(self.width.saturating_sub(indent).max(12)).enumerate() {
            if index > 0 {
                head.push_blanks(indent);
            }
            head.push(part, role);
            self.line(std::mem::take(&mut head));
        }
    }

    pub fn indented(&mut self, text: SafeText, indent: usize, role: StyleRole) {
        let mut line = TextLine::default();
        line.push_blanks(indent);
        self.line(line.with(text, role));
    }

    /// A JSON value as a tree; long strings are wrapped, or cut to one line. Its numbers are as stored when `exact`.
    pub fn json(&mut self, value: &Value, exact: bool) {
        let folded = BTreeSet::new();
        let view = JsonView { value, open_depth: 64, toggled: &folded, width: self.width, exact };
        let lines = view.lines(0, JSON_LINES + 1, self.look);
        let is_text = |pointer: &str| value.pointer(pointer).is_some_and(Value::is_string);
        let open: BTreeSet<String> = lines
            .iter()
            .filter(|line| self.wrap && line.folds && is_text(&line.pointer))
            .map(|line| line.pointer.clone())
            .collect();
        let opened = JsonView { toggled: &open, ..view };
        let mut lines = if open.is_empty() { lines } else { opened.lines(0, JSON_LINES + 1, self.look) };
        let more = lines.len() > JSON_LINES;
        lines.truncate(JSON_LINES);
        for line in lines {
            self.line(line.line);
        }
        if more {
            self.text("there is more; o shows all of it", StyleRole::Muted);
        }
    }

    /// Adds a chart of this many rows.
    pub fn picture(&mut self, height: u16, draw: impl FnOnce(Rect, &mut Buffer)) {
        let area = Rect { x: 0, y: 0, width: self.width as u16, height };
        let mut picture = Buffer::empty(area);
        draw(area, &mut picture);
        let number = self.document.pictures.len();
        self.document.pictures.push(picture);
        self.document.pieces.extend((0..height).map(|row| DocumentLine::Picture(number, row)));
    }

    /// Writes the problems of a row, values that could not be read, with the raw text.
    pub fn problems(&mut self, row: &Row) {
        if row.problems.is_empty() {
            return;
        }
        self.section("could not be read properly", Some(row.problems.len()));
        for problem in &row.problems {
            let mut line = TextLine::default().with_glyph(self.look.glyphs.warning, StyleRole::Warn);
            line.push(" ", StyleRole::Text);
            line.push(SafeText::limited(&problem.column, 40), StyleRole::Warn);
            line.push("  ", StyleRole::Text);
            self.hanging(line, &SafeText::limited(&problem.problem, 300), StyleRole::Text);
            self.long(&problem.raw, 2, StyleRole::Muted);
        }
    }
}

fn is_state(entity: Entity, column: &str) -> bool {
    list_columns(entity).iter().any(|c| c.column == column && c.show == ValueStyle::State)
}

/// A value beside its name, formatted for its kind.
pub fn value_line(row: &Row, column: &str, look: &Look) -> TextLine {
    const ROOM: usize = 2_000;
    let value = row.get(column);
    let kind = row.entity.column(column).map(|c| c.kind);
    match (value, kind) {
        (Value::Null, _) => TextLine::default(),
        (Value::String(at), Some(ValueKind::Time)) => TextLine::of(words::time(at, true), StyleRole::Text),
        (Value::String(word), _) if is_state(row.entity, column) => words::state(word, look),
        (Value::Bool(true), _) => {
            TextLine::default().with_glyph(look.glyphs.check, StyleRole::Good).with(" yes", StyleRole::Text)
        }
        (Value::Bool(false), _) => TextLine::of("no", StyleRole::Text),
        (Value::Number(_), _) => TextLine::of(words::amount(value), StyleRole::Text),
        (Value::Array(items), _) if items.iter().all(Value::is_string) => {
            let texts: Vec<SafeText> = items.iter().take(100).map(|item| words::one_line(item, 200)).collect();
            TextLine::of(SafeText::join(&texts, ", "), StyleRole::Text)
        }
        (value, _) => TextLine::of(words::one_line(value, ROOM), StyleRole::Text),
    }
}

/// Cached documents, by what they were built from.
#[derive(Debug, Default)]
pub struct DocumentCache(Vec<(String, DocumentView)>);

impl DocumentCache {
    /// Returns the document of this name, built if it is missing.
    pub fn get(&mut self, name: String, make: impl FnOnce() -> DocumentView) -> &DocumentView {
        const KEPT: usize = 3;
        if let Some(at) = self.0.iter().position(|(kept, _)| *kept == name) {
            let found = self.0.remove(at);
            self.0.push(found);
        } else {
            if self.0.len() >= KEPT {
                self.0.remove(0);
            }
            self.0.push((name, make()));
        }
        &self.0[self.0.len() - 1].1
    }
}
