//! Output formats, and standard output that tolerates a closed pipe.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserializer as _, Serialize};
use serde_json::Value;
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

use super::failure::{CommandFailure, say};
use super::ink::{ColourSurroundings, OutputInk};
use super::options::{Format, Global};
use super::progress;
use super::table::{self, PrintedColumn};
use crate::memory::Row;
use crate::memory::json::{JsonPart, members};
use crate::memory::veil::Veil;
use crate::ui::escaped;
use crate::ui::text::SafeText;

/// Veils that hide people's handles in all output when values are masked: one for each database that was opened.
static VEILS: RwLock<Vec<Arc<Veil>>> = RwLock::new(Vec::new());

/// Hides handles in everything that this run says from now on.
pub fn veil(veil: Veil) {
    VEILS.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(veil));
}

/// Whether handles are hidden so far.
#[must_use]
pub fn is_veiled() -> bool {
    !veils().is_empty()
}

fn veils() -> Vec<Arc<Veil>> {
    VEILS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn over(veils: &[Arc<Veil>], words: &str) -> String {
    veils.iter().fold(words.to_owned(), |words, veil| veil.change(&words).unwrap_or(words))
}

/// Words as they may be said.
#[must_use]
pub fn veiled(words: &str) -> String {
    over(&veils(), words)
}

/// A writer of lines in which handles are hidden. A handle does not run over the end of a line.
struct Veiled<W: Write> {
    veils: Vec<Arc<Veil>>,
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Veiled<W> {
    fn end(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) => self.out.write_all(over(&self.veils, text).as_bytes()),
            Err(_) => self.out.write_all(&line),
        }
    }
}

impl<W: Write> Write for Veiled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.line.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        self.line.extend_from_slice(&bytes[..=end]);
        self.end()?;
        self.line.extend_from_slice(&bytes[end + 1..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end()?;
        self.out.flush()
    }
}

/// Writes to standard output through a buffer; a reader that has gone away is not an error.
///
/// # Errors
/// Anything else that keeps the output from being written.
pub fn piped(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandFailure> {
    piped_open(write).map(|_| ())
}

/// As [`piped`]; whether the reader is still there.
///
/// # Errors
/// As [`piped`].
pub fn piped_open(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, CommandFailure> {
    if is_read_by_people() {
        progress::end();
    }
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let veils = veils();
    let written = if veils.is_empty() {
        write(&mut out)
    } else {
        let mut lines = Veiled { veils, out: &mut out, line: Vec::new() };
        write(&mut lines).and_then(|()| lines.end())
    };
    let written = written.and_then(|()| out.flush());
    drop(out);
    say_afterwards();
    is_read(written)
}

/// Whether the reader of what was written to standard output is still there.
///
/// # Errors
/// As [`piped`].
pub fn is_read(written: io::Result<()>) -> Result<bool, CommandFailure> {
    match written {
        Err(e) if broken_pipe(&e) => Ok(false),
        Err(e) => Err(CommandFailure::failed(format!("the output could not be written: {e}"))),
        Ok(()) => Ok(true),
    }
}

/// Whether the reader has gone, also where the writer of CSV tells it.
fn broken_pipe(error: &io::Error) -> bool {
    let within = error.get_ref().and_then(|inner| inner.downcast_ref::<csv::Error>()).map(csv::Error::kind);
    match within {
        Some(csv::ErrorKind::Io(error)) => error.kind() == io::ErrorKind::BrokenPipe,
        _ => error.kind() == io::ErrorKind::BrokenPipe,
    }
}

/// Whether standard output is a terminal, where stored text must do no harm; a program gets it as it is.
pub(super) fn is_read_by_people() -> bool {
    io::stdout().is_terminal()
}

/// One JSON document, indented. On a terminal what would act on it is escaped: it is the same JSON.
///
/// # Errors
/// As [`piped`].
pub fn json(value: &impl Serialize) -> Result<(), CommandFailure> {
    piped(|out| {
        if is_read_by_people() {
            return writeln!(out, "{}", escaped(&indented(value)?));
        }
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Indented JSON. All JSON is printed to one kind of writer: what prints a type is built once for each.
pub(super) fn indented(value: &impl Serialize) -> io::Result<String> {
    let mut text = Vec::new();
    serde_json::to_writer_pretty(&mut text as &mut dyn Write, value)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// One JSON document on one line; on a terminal as [`json`]. Characters that many readers take for the end of a line,
/// the Unicode ones too, are escaped: it is the same JSON.
///
/// # Errors
/// The writer's.
pub fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    if is_read_by_people() {
        return writeln!(out, "{}", escaped(&line(value)?));
    }
    on_one_line(out, value)?;
    out.write_all(b"\n")
}

/// The text of [`on_one_line`].
pub(super) fn line(value: &impl Serialize) -> io::Result<String> {
    let mut text = Vec::new();
    on_one_line(&mut text, value)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// JSON on one line, without its end.
pub(super) fn on_one_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut serde_json::Serializer::with_formatter(out, OneLine))?)
}

/// Compact JSON without a character that ends a line.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, end) in fragment.match_indices(['\u{85}', '\u{2028}', '\u{2029}']) {
            out.write_all(&fragment.as_bytes()[written..at])?;
            end.chars().try_for_each(|c| write!(out, "\\u{:04x}", u32::from(c)))?;
            written = at + end.len();
        }
        out.write_all(&fragment.as_bytes()[written..])
    }
}

/// Prints what has a JSON shape in a format; as a table its fields line by line. There is no second tree of it: a row may
/// have a list of a million ids.
///
/// # Errors
/// Code 2 for CSV; else as [`piped`].
pub fn shape(format: Format, shape: &impl Serialize) -> Result<(), CommandFailure> {
    match format {
        Format::Json => json(shape),
        Format::Jsonl => piped(|out| json_line(out, shape)),
        Format::Csv => Err(no_table()),
        Format::Table => piped(|out| fields(out, &RawValue::from_string(line(shape)?)?, 0)),
    }
}

/// The failure of what is to be printed as CSV and has no rows.
pub(super) fn no_table() -> CommandFailure {
    CommandFailure::usage("this is not a table of rows: use --format json, jsonl or table")
}

/// A JSON object as indented lines `name: value`, empty ones left out; a list as its items.
pub(super) fn fields(out: &mut dyn Write, value: &RawValue, depth: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    let Some(members) = members(value.get()) else { return items(out, value, depth) };
    for (name, value) in members {
        let name = SafeText::new(&name);
        match value.get().as_bytes() {
            b"null" | b"[]" => {}
            [b'{', ..] => {
                writeln!(out, "{indent}{name}:")?;
                fields(out, value, depth + 1)?;
            }
            [b'[', ..] => {
                let count = serde_json::from_str::<Vec<IgnoredAny>>(value.get())?.len();
                writeln!(out, "{indent}{name} ({count}):")?;
                items(out, value, depth + 1)?;
            }
            [b'"', ..] => text_field(out, &name, &serde_json::from_str::<String>(value.get())?, depth)?,
            _ => writeln!(out, "{indent}{name}: {}", value.get())?,
        }
    }
    Ok(())
}

/// A text as an indented line `name: text`, with a line for each of its own.
pub(super) fn text_field(out: &mut dyn Write, name: &SafeText, text: &str, depth: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    let mut lines = text.split('\n').map(SafeText::new);
    writeln!(out, "{indent}{name}: {}", lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| writeln!(out, "{indent}    {line}"))
}

/// The items of a JSON list, one after the other: there may be millions.
fn items(out: &mut dyn Write, list: &RawValue, depth: usize) -> io::Result<()> {
    let mut printed = Ok(());
    let read =
        serde_json::Deserializer::from_str(list.get()).deserialize_seq(ListItems { out, depth, printed: &mut printed });
    printed.and(read.map_err(io::Error::from))
}

/// Prints each item of a list as it is read.
struct ListItems<'o, 'p> {
    out: &'o mut dyn Write,
    depth: usize,
    /// The writer's error, which ends the reading.
    printed: &'p mut io::Result<()>,
}

impl<'de> Visitor<'de> for ListItems<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(next) = items.next_element()? {
            *self.printed = item(self.out, next, self.depth);
            if self.printed.is_err() {
                return Err(A::Error::custom("it cannot be written"));
            }
        }
        Ok(())
    }
}

/// An item of a JSON list, on one line or several.
pub(super) fn item(out: &mut dyn Write, item: &RawValue, depth: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    match item.get().as_bytes() {
        [b'{' | b'[', ..] => {
            writeln!(out, "{indent}-")?;
            fields(out, item, depth + 1)
        }
        [b'"', ..] => writeln!(out, "{indent}- {}", SafeText::new(&serde_json::from_str::<String>(item.get())?)),
        _ => writeln!(out, "{indent}- {}", item.get()),
    }
}

/// One row as CSV fields: see `csv_field`.
pub fn csv_fields(row: &Row) -> impl Iterator<Item = String> {
    (0..row.values.len()).map(|at| csv_field(row.part(at)))
}

/// A value as a CSV field, JSON values as JSON text; what a spreadsheet would take for a formula is kept from being one
/// by a leading apostrophe. On a terminal what would act on it is shown by marks.
#[must_use]
pub fn csv_field<'a>(part: impl Into<JsonPart<'a>>) -> String {
    let text = match part.into() {
        JsonPart::Value(Value::Null) => String::new(),
        JsonPart::Value(Value::String(text)) if is_formula(text) => format!("'{text}"),
        JsonPart::Value(Value::String(text)) => text.clone(),
        other => other.to_string(),
    };
    if is_read_by_people() { SafeText::new(&text).to_string() } else { text }
}

/// Whether a spreadsheet may take a cell for a formula, also one that takes full-width signs for plain ones or drops what
/// ends a line. A number below zero is none.
fn is_formula(text: &str) -> bool {
    let is_number = || text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c)) && text.parse::<f64>().is_ok();
    match text.chars().next() {
        Some('-') => !is_number(),
        Some(first) => "=+@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(first),
        None => false,
    }
}

/// JSON objects as CSV: a column for each key that any of them has, in the order in which they first come.
///
/// # Errors
/// As [`piped`].
pub fn csv_table(rows: &[Value]) -> Result<(), CommandFailure> {
    let mut columns: Vec<&str> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    piped(|out| {
        let mut csv = csv::Writer::from_writer(out);
        if !columns.is_empty() {
            csv.write_record(&columns)?;
        }
        rows.iter().try_for_each(|row| csv.write_record(columns.iter().map(|c| csv_field(&row[*c]))))?;
        csv.flush()
    })
}

/// A table for people, as wide as the terminal; what it does not show is said afterwards.
///
/// # Errors
/// The writer's.
pub fn table(out: &mut dyn Write, columns: &[PrintedColumn], rows: &[Vec<SafeText>]) -> io::Result<()> {
    let width = width();
    let fitted = table::write(out, columns, rows, width, ink())?;
    fitted.note(width).into_iter().for_each(afterwards);
    Ok(())
}

/// Width that people's tables have: what `COLUMNS` says, else the terminal's. None when standard output is not a
/// terminal: whatever reads it has room.
#[must_use]
pub fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|columns| *columns > 0);
    let of_terminal = || crossterm::terminal::size().map_or(0, |(columns, _)| usize::from(columns));
    // A terminal that does not know its size says 0.
    let of_terminal = || Some(of_terminal()).filter(|columns| *columns > 0).or(Some(80));
    said.or_else(|| is_read_by_people().then(of_terminal).flatten())
}

/// Manner of the run's output: set once, when the command line has been read.
#[derive(Debug, Clone, Copy)]
struct Manner {
    out: OutputInk,
    quiet: bool,
    /// A program reads what fails: nothing else may be before it.
    is_json: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Sets how the run speaks.
pub fn speak(global: &Global) {
    let out = OutputInk::of(global.color, is_read_by_people(), ColourSurroundings::here());
    let is_json = global.format.is_some_and(Format::is_json);
    let _ = MANNER.set(Manner { out, quiet: global.quiet, is_json });
}

/// Colours of standard output.
#[must_use]
pub fn ink() -> OutputInk {
    MANNER.get().map_or(OutputInk::none(), |manner| manner.out)
}

/// Lines that follow on standard error when what is being printed is out.
static AFTERWARDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says a line on standard error once what is being printed is out.
pub fn afterwards(line: String) {
    AFTERWARDS.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// Says the lines that wait for the end of the answer.
pub fn say_afterwards() {
    let mut lines = std::mem::take(&mut *AFTERWARDS.lock().unwrap_or_else(PoisonError::into_inner));
    // Several tables of one answer lack room for the same columns.
    lines.dedup();
    lines.iter().for_each(|line| tell(line));
}

/// Words that wait until it is known whether the command fails.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says words on standard error, unless only failures are wanted; where a program reads these, once the command has ended.
pub fn tell(words: &str) {
    match MANNER.get() {
        Some(manner) if manner.quiet => {}
        Some(manner) if manner.is_json => HELD.lock().unwrap_or_else(PoisonError::into_inner).push(words.to_owned()),
        _ => say("", words),
    }
}

/// Says a warning of the log on standard error; where a program reads that, once the command has ended.
pub fn warn(line: &str) {
    match MANNER.get() {
        Some(manner) if manner.is_json => HELD.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned()),
        _ => say("mnemoscope: ", line),
    }
}

/// Takes the words that wait.
pub fn held() -> Vec<String> {
    std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner))
}
