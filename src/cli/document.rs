//! A JSON object that is printed while it is read: the text is the same as if printed as a whole.

use std::io::{self, Write};
use std::mem;

use serde::Serialize;
use serde_json::ser::{Formatter as _, PrettyFormatter, Serializer};
use serde_json::value::{RawValue, Value};

use super::lines::PrintedLines;
use super::{CommandFailure, Format, output};
use crate::memory::Row;
use crate::memory::json::JsonPart;
use crate::ui::text::SafeText;

/// A JSON object on its way to standard output, in one of the formats of [`output::shape`].
#[derive(Debug)]
pub struct Document {
    format: Format,
    /// The open objects and lists, each with whether it is a list, and the number of its members.
    open: Vec<(bool, usize)>,
    lines: PrintedLines,
}

impl Document {
    /// Begins an object.
    ///
    /// # Errors
    /// Code 2 for CSV.
    pub fn new(format: Format) -> Result<Self, CommandFailure> {
        if format == Format::Csv {
            return Err(output::no_table());
        }
        Ok(Document::begun(format))
    }

    fn begun(format: Format) -> Self {
        let lines = PrintedLines::new(format != Format::Table && output::is_read_by_people());
        let mut document = Document { format, open: Vec::new(), lines };
        document.begin(false);
        document
    }

    /// Begins JSON lines, each of which is an item.
    pub fn lines() -> Self {
        let lines = PrintedLines::new(output::is_read_by_people());
        Document { format: Format::Jsonl, open: Vec::new(), lines }
    }

    /// Ends an item of JSON lines.
    ///
    /// # Errors
    /// As [`output::piped`].
    pub fn end_line(&mut self) -> Result<(), CommandFailure> {
        self.end();
        self.put("\n");
        self.lines.pass_on()
    }

    /// Whether the reader is still there.
    pub fn is_read(&self) -> bool {
        self.lines.is_read()
    }

    /// Prints a member of the open object.
    pub fn member(&mut self, name: &str, value: &impl Serialize) -> Result<(), CommandFailure> {
        if self.format == Format::Table {
            let (depth, name) = (self.depth(), Value::from(name));
            let member = raw(format!("{{{name}:{}}}", output::line(value)?))?;
            return Ok(output::fields(&mut self.lines, &member, depth)?);
        }
        self.name(name);
        self.value(value)
    }

    /// Prints the values of a row as members.
    pub fn row(&mut self, row: &Row) -> Result<(), CommandFailure> {
        for (at, column) in row.entity.columns().iter().enumerate() {
            match row.part(at) {
                // No second text is made for a long list.
                JsonPart::Value(Value::Array(items)) => {
                    self.list(column.name, items.len());
                    self.items(items)?;
                    self.end();
                }
                // Nor of a long text.
                JsonPart::Value(Value::String(text)) if self.format == Format::Table => {
                    let depth = self.depth();
                    output::text_field(&mut self.lines, &SafeText::new(column.name), text, depth)?;
                }
                part => self.member(column.name, &part)?,
            }
        }
        if row.problems.is_empty() { Ok(()) } else { self.member("problems", &row.problems) }
    }

    pub fn object(&mut self, name: &str) {
        self.title(name, "");
        self.begin(false);
    }

    /// Begins a list of `count` items as a member.
    pub fn list(&mut self, name: &str, count: usize) {
        if count > 0 || self.format != Format::Table {
            self.title(name, &format!(" ({count})"));
        }
        self.begin(true);
    }

    /// Prints items of the open list.
    pub fn items(&mut self, items: impl IntoIterator<Item = impl Serialize>) -> Result<(), CommandFailure> {
        for item in items {
            if self.format == Format::Table {
                let (depth, item) = (self.depth(), raw(output::line(&item)?)?);
                output::item(&mut self.lines, &item, depth)?;
            } else {
                self.part();
                self.value(&item)?;
            }
        }
        Ok(())
    }

    /// Begins an object as an item of the open list.
    pub fn item(&mut self) {
        if self.format == Format::Table {
            let line = format!("{}-\n", "  ".repeat(self.depth()));
            self.put(&line);
        } else {
            self.part();
        }
        self.begin(false);
    }

    /// Ends the innermost object or list.
    pub fn end(&mut self) {
        let Some((is_list, members)) = self.open.pop() else { return };
        if self.format == Format::Table {
            return;
        }
        if members > 0 {
            self.new_line();
        }
        self.put(if is_list { "]" } else { "}" });
    }

    /// Ends the document, and flushes. False if the reader is gone.
    pub fn finish(mut self) -> Result<bool, CommandFailure> {
        while !self.open.is_empty() {
            self.end();
        }
        if self.format != Format::Table {
            self.put("\n");
        }
        self.print()?;
        Ok(self.is_read())
    }

    /// Flushes the waiting text.
    pub fn print(&mut self) -> Result<(), CommandFailure> {
        self.lines.print()
    }

    fn put(&mut self, text: &str) {
        self.lines.put(text);
    }

    /// Nesting depth of the next part.
    fn depth(&self) -> usize {
        self.open.len().saturating_sub(1)
    }

    fn begin(&mut self, is_list: bool) {
        if self.format != Format::Table {
            self.put(if is_list { "[" } else { "{" });
        }
        self.open.push((is_list, 0));
    }

    fn new_line(&mut self) {
        if self.format == Format::Json {
            let indent = "  ".repeat(self.open.len());
            self.put("\n");
            self.put(&indent);
        }
    }

    /// Separates the next part from the last one.
    fn part(&mut self) {
        let before = self.open.last_mut().map_or(0, |(_, members)| mem::replace(members, *members + 1));
        if before > 0 {
            self.put(",");
        }
        self.new_line();
    }

    fn name(&mut self, name: &str) {
        self.part();
        let name = Value::from(name).to_string();
        self.put(&name);
        self.put(if self.format == Format::Json { ": " } else { ":" });
    }

    /// The name of an object or a list; `count` is shown to people.
    fn title(&mut self, name: &str, count: &str) {
        if self.format == Format::Table {
            let line = format!("{}{}{count}:\n", "  ".repeat(self.depth()), SafeText::new(name));
            self.put(&line);
        } else {
            self.name(name);
        }
    }

    /// Prints a value in its place. A line does not end within a string.
    fn value(&mut self, value: &impl Serialize) -> Result<(), CommandFailure> {
        if self.format == Format::Json {
            let mut indented = PrettyFormatter::new();
            for _ in &self.open {
                indented.begin_array(&mut io::sink())?;
            }
            let out: &mut dyn Write = &mut self.lines;
            value.serialize(&mut Serializer::with_formatter(out, indented)).map_err(io::Error::from)?;
        } else {
            output::on_one_line(&mut self.lines, value)?;
        }
        self.lines.pass_on()
    }
}

fn raw(text: String) -> io::Result<Box<RawValue>> {
    Ok(RawValue::from_string(text)?)
}

/// A JSON document that begins with `rows`, printed while they are read.
#[derive(Debug)]
pub struct RowsDocument(Document);

impl RowsDocument {
    /// Begins the rows.
    pub fn begin() -> Self {
        let mut document = Document::begun(Format::Json);
        document.list("rows", 0);
        RowsDocument(document)
    }

    /// The document, for printing rows in parts.
    pub fn document(&mut self) -> &mut Document {
        &mut self.0
    }

    /// Prints the next rows; whether the reader is still there.
    pub fn rows(&mut self, rows: impl IntoIterator<Item = impl Serialize>) -> Result<bool, CommandFailure> {
        self.0.items(rows)?;
        self.0.print()?;
        Ok(self.0.is_read())
    }

    /// Prints the members of an object after the rows, if it has any.
    pub fn end(mut self, rest: &impl Serialize) -> Result<(), CommandFailure> {
        self.0.end();
        let rest = serde_json::to_value(rest).map_err(io::Error::from)?;
        rest.as_object().into_iter().flatten().try_for_each(|(name, value)| self.0.member(name, value))?;
        self.0.finish().map(|_| ())
    }
}
