//! JSON as a foldable tree; only the requested lines are built, however large the value is.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{figures, line::TextLine, look::Look, text::SafeText, theme::StyleRole};

/// Columns for each level of depth.
const INDENT: usize = 2;

/// A value and its open parts.
#[derive(Clone, Copy, Debug)]
pub struct JsonView<'a> {
    /// Value that is shown.
    pub value: &'a Value,
    /// Objects and lists above this depth are open, the others folded; the outermost has depth 0.
    pub open_depth: usize,
    /// Values in the opposite state, by JSON pointer (RFC 6901). Long strings begin folded at any depth.
    pub toggled: &'a BTreeSet<String>,
    /// Available columns.
    pub width: usize,
    /// Numbers are shown with all their digits.
    pub exact: bool,
}

/// A line of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonLine {
    /// Text to draw.
    pub line: TextLine,
    /// JSON pointer (RFC 6901) of the value that the line belongs to; an identity, not to be drawn.
    pub pointer: String,
    /// Whether the value can be folded and unfolded.
    pub folds: bool,
}

impl JsonView<'_> {
    /// Counts all lines.
    pub fn count(&self, look: &Look) -> usize {
        let mut walk = TreeWalk { view: self, look, skip: usize::MAX, take: 0, seen: 0, lines: Vec::new() };
        walk.visit(None, self.value, &mut String::new(), 0);
        walk.seen
    }

    /// Builds `take` lines after the first `skip`.
    pub fn lines(&self, skip: usize, take: usize, look: &Look) -> Vec<JsonLine> {
        let mut walk = TreeWalk { view: self, look, skip, take, seen: 0, lines: Vec::new() };
        walk.visit(None, self.value, &mut String::new(), 0);
        walk.lines
    }
}

/// Name of a value within its object or list.
#[derive(Clone, Copy)]
enum MemberName<'a> {
    Key(&'a str),
    Index(usize),
}

/// A traversal of the open part of the tree that builds the lines of a window.
struct TreeWalk<'v, 'a> {
    view: &'v JsonView<'a>,
    look: &'v Look,
    skip: usize,
    take: usize,
    seen: usize,
    lines: Vec<JsonLine>,
}

impl TreeWalk<'_, '_> {
    /// Counts a line and makes it if it is in the window.
    fn emit(&mut self, pointer: &str, folds: bool, make: impl FnOnce(&Self) -> TextLine) {
        if self.seen >= self.skip && self.lines.len() < self.take {
            let line = make(self);
            self.lines.push(JsonLine { line, pointer: pointer.to_owned(), folds });
        }
        self.seen += 1;
    }

    /// Whether the window is full and nothing needs to be counted.
    fn is_done(&self) -> bool {
        self.take > 0 && self.lines.len() >= self.take
    }

    fn visit(&mut self, name: Option<MemberName<'_>>, value: &Value, pointer: &mut String, depth: usize) {
        if self.is_done() {
            return;
        }
        let toggled = self.view.toggled.contains(pointer.as_str());
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let open = (depth < self.view.open_depth) != toggled;
                let size = format!("{{{}}}", fields.len());
                self.emit(pointer, true, |walk| walk.branch(name, open, &size, depth));
                for (key, value) in fields.iter().filter(|_| open) {
                    self.child(MemberName::Key(key), value, pointer, depth);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let open = (depth < self.view.open_depth) != toggled;
                let size = format!("[{}]", items.len());
                self.emit(pointer, true, |walk| walk.branch(name, open, &size, depth));
                for (index, value) in items.iter().enumerate().filter(|_| open) {
                    self.child(MemberName::Index(index), value, pointer, depth);
                }
            }
            Value::String(text) if self.is_long(name, text, depth) => {
                self.long_text(name, text, toggled, pointer, depth);
            }
            leaf => self.emit(pointer, false, |walk| {
                let mut line = walk.head(name, None, depth);
                line.append(walk.leaf(leaf, line.width()));
                line
            }),
        }
    }

    fn child(&mut self, name: MemberName<'_>, value: &Value, pointer: &mut String, depth: usize) {
        let length = pointer.len();
        pointer.push('/');
        match name {
            MemberName::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            MemberName::Index(index) => pointer.push_str(&index.to_string()),
        }
        self.visit(Some(name), value, pointer, depth + 1);
        pointer.truncate(length);
    }

    /// A string that does not fit on its line: its beginning, or all of it.
    fn long_text(&mut self, name: Option<MemberName<'_>>, text: &str, open: bool, pointer: &str, depth: usize) {
        self.emit(pointer, true, |walk| {
            let mut line = walk.head(name, Some(open), depth);
            let size = figures::bytes(text.len() as u64);
            if !open {
                let room = walk.view.width.saturating_sub(line.width() + size.width() + 2);
                line.push(SafeText::limited(text, room), StyleRole::String);
                line.push_blanks(1);
            }
            line.push(size, StyleRole::Muted);
            line
        });
        if open {
            let indent = (depth + 1) * INDENT + INDENT;
            for row in SafeText::rows(text, self.view.width.saturating_sub(indent).max(8)) {
                if self.is_done() {
                    return;
                }
                self.emit(pointer, true, |_| {
                    let mut line = TextLine::default();
                    line.push_blanks(indent);
                    line.with(row, StyleRole::String)
                });
            }
        }
    }

    fn is_long(&self, name: Option<MemberName<'_>>, text: &str, depth: usize) -> bool {
        let name = match name {
            Some(MemberName::Key(key)) => key.len() + 2,
            Some(MemberName::Index(_)) => 4,
            None => 0,
        };
        text.contains('\n') || depth * INDENT + INDENT + name + text.len() + 2 > self.view.width
    }

    /// Indent, fold sign and name.
    fn head(&self, name: Option<MemberName<'_>>, open: Option<bool>, depth: usize) -> TextLine {
        let g = self.look.glyphs;
        let mut line = TextLine::default();
        line.push_blanks(depth * INDENT);
        match open {
            Some(true) => line.push_glyphs(g.unfolded, 1, StyleRole::Muted),
            Some(false) => line.push_glyphs(g.folded, 1, StyleRole::Muted),
            None => line.push_blanks(1),
        }
        line.push_blanks(1);
        match name {
            Some(MemberName::Key(key)) => line.push(SafeText::limited(key, self.view.width / 2), StyleRole::Name),
            Some(MemberName::Index(index)) => line.push(index.to_string(), StyleRole::Muted),
            None => return line,
        }
        line.push_blanks(2);
        line
    }

    fn branch(&self, name: Option<MemberName<'_>>, open: bool, size: &str, depth: usize) -> TextLine {
        let mut line = self.head(name, Some(open), depth);
        line.push(size, StyleRole::Muted);
        line
    }

    fn leaf(&self, value: &Value, used: usize) -> TextLine {
        let (text, role) = match value {
            Value::String(text) => {
                (SafeText::limited(text, self.view.width.saturating_sub(used + 2)), StyleRole::String)
            }
            Value::Number(number) if number.is_f64() && !self.view.exact => {
                let real = figures::real(number.as_f64().unwrap_or_default());
                return TextLine::of(real, StyleRole::Number);
            }
            Value::Number(number) => return TextLine::of(number.to_string(), StyleRole::Number),
            other => return TextLine::of(other.to_string(), StyleRole::Word),
        };
        TextLine::of("\"", StyleRole::Muted).with(text, role).with("\"", StyleRole::Muted)
    }
}
