//! Output formats, and standard output that tolerates a closed pipe.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Hides handles in all later output of this run.
pub fn veil(veil: Veil) {
    VEILS.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(veil));
}

/// Whether handles are hidden so far.
pub fn is_veiled() -> bool {
    !veils().is_empty()
}

fn veils() -> Vec<Arc<Veil>> {
    VEILS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn over(veils: &[Arc<Veil>], words: &str) -> String {
    veils.iter().fold(words.to_owned(), |words, veil| veil.change(&words).unwrap_or(words))
}

/// A text after hiding.
pub fn veiled(words: &str) -> String {
    over(&veils(), words)
}

/// A writer that hides handles line by line. A handle does not extend over a line end.
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

/// Whether a part of the answer was printed.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether a part of the answer was printed: it cannot begin again.
pub fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// Writes to standard output through a buffer; a reader that has gone away is not an error.
pub fn piped(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandFailure> {
    piped_open(write).map(|_| ())
}

/// As [`piped`]; whether the reader is still there.
pub fn piped_open(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, CommandFailure> {
    HAS_BEGUN.store(true, Ordering::Relaxed);
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

/// Whether the reader of standard output is still there.
pub fn is_read(written: io::Result<()>) -> Result<bool, CommandFailure> {
    match written {
        Err(e) if broken_pipe(&e) => Ok(false),
        Err(e) => Err(CommandFailure::failed(format!("the output could not be written: {e}"))),
        Ok(()) => Ok(true),
    }
}

/// Whether the reader is gone, also as reported by the CSV writer.
fn broken_pipe(error: &io::Error) -> bool {
    let within = error.get_ref().and_then(|inner| inner.downcast_ref::<csv::Error>()).map(csv::Error::kind);
    match within {
        Some(csv::ErrorKind::Io(error)) => error.kind() == io::ErrorKind::BrokenPipe,
        _ => error.kind() == io::ErrorKind::BrokenPipe,
    }
}

/// Whether standard output is a terminal, where stored text must be harmless; a program gets it unchanged.
pub(super) fn is_read_by_people() -> bool {
    io::stdout().is_terminal()
}

/// Prints one JSON document, indented. On a terminal, control characters are escaped: the JSON is equivalent.
pub fn json(value: &impl Serialize) -> Result<(), CommandFailure> {
    piped(|out| {
        if is_read_by_people() {
            return writeln!(out, "{}", escaped(&indented(value)?));
        }
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Writes indented JSON. All JSON goes to one type of writer, so that the code for each type is generated once.
pub(super) fn indented(value: &impl Serialize) -> io::Result<String> {
    let mut text = Vec::new();
    serde_json::to_writer_pretty(&mut text as &mut dyn Write, value)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// Writes one JSON document on one line; on a terminal as [`json`]. Characters that many readers take for a line end,
/// including the Unicode ones, are escaped: the JSON is equivalent.
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

/// Formatter for compact JSON without line ends.
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

/// Prints a value in a format; as a table, its fields line by line. There is no second tree of it: a row may have a
/// list of a million ids.
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

/// The failure for CSV output without rows.
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

/// A value as a CSV field, with JSON values as JSON text. A leading apostrophe keeps spreadsheets from taking it for a
/// formula. On a terminal, control characters are replaced by marks.
pub fn csv_field<'a>(part: impl Into<JsonPart<'a>>) -> String {
    let text = match part.into() {
        JsonPart::Value(Value::Null) => String::new(),
        JsonPart::Value(Value::String(text)) if is_formula(text) => format!("'{text}"),
        JsonPart::Value(Value::String(text)) => text.clone(),
        other => other.to_string(),
    };
    if is_read_by_people() { SafeText::new(&text).to_string() } else { text }
}

/// Whether a spreadsheet may take a cell for a formula, even one that normalizes full-width signs or drops line ends. A
/// negative number is not one.
fn is_formula(text: &str) -> bool {
    let is_number = || text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c)) && text.parse::<f64>().is_ok();
    match text.chars().next() {
        Some('-') => !is_number(),
        Some(first) => "=+@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(first),
        None => false,
    }
}

/// Prints JSON objects as CSV: a column for each key in any of them, in order of first occurrence.
pub fn csv_table(rows: &[Value]) -> Result<(), CommandFailure> {
    let mut columns: Vec<&str> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    let fields = rows.iter().map(|row| columns.iter().map(|c| csv_field(&row[*c])));
    piped(|out| csv(out, Some(&columns).filter(|columns| !columns.is_empty()), fields))
}

/// Writes CSV: the headings, if there are any, then the rows.
pub fn csv<F: AsRef<[u8]>, H: AsRef<[u8]>>(
    out: &mut dyn Write,
    headings: Option<impl IntoIterator<Item = H>>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = F>>,
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    headings.into_iter().try_for_each(|headings| csv.write_record(headings))?;
    rows.into_iter().try_for_each(|row| csv.write_record(row))?;
    csv.flush()
}

/// Prints rows: `whole` as one JSON document, or a line for each; for people as `table` writes them.
pub fn rows(
    format: Format,
    whole: &impl Serialize,
    rows: &[Value],
    table: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CommandFailure> {
    match format {
        Format::Json => json(whole),
        Format::Jsonl => piped(|out| rows.iter().try_for_each(|row| json_line(out, row))),
        Format::Csv => csv_table(rows),
        Format::Table => piped(table),
    }
}

/// Prints a table for people, as wide as the terminal; omissions are reported afterwards.
pub fn table(out: &mut dyn Write, columns: &[PrintedColumn], rows: &[Vec<SafeText>]) -> io::Result<()> {
    let width = width();
    let fitted = table::write(out, columns, rows, width, ink())?;
    fitted.note(width).into_iter().for_each(afterwards);
    Ok(())
}

/// Width of people's tables: `COLUMNS`, else the terminal's width. `None` if standard output is not a terminal, as its
/// reader has room.
pub fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|columns| *columns > 0);
    let of_terminal = || crossterm::terminal::size().map_or(0, |(columns, _)| usize::from(columns));
    // A terminal that does not know its size reports 0.
    let of_terminal = || Some(of_terminal()).filter(|columns| *columns > 0).or(Some(80));
    said.or_else(|| is_read_by_people().then(of_terminal).flatten())
}

/// Settings of the run's output, set once after the command line has been parsed.
#[derive(Debug, Clone, Copy)]
struct Manner {
    out: OutputInk,
    quiet: bool,
    /// Whether a program reads the failure: nothing else may be printed before it.
    is_json: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Sets how the run speaks.
pub fn speak(global: &Global) {
    let out = OutputInk::of(global.color, is_read_by_people(), ColourSurroundings::here());
    let is_json = global.format.is_some_and(Format::is_json);
    let _ = MANNER.set(Manner { out, quiet: global.quiet, is_json });
}

pub fn ink() -> OutputInk {
    MANNER.get().map_or(OutputInk::none(), |manner| manner.out)
}

/// Adds a line to those that wait, once: several tables of an answer lack room for the same columns, and an answer that met
/// a damaged page begins again.
fn add(waiting: &Mutex<Vec<String>>, line: String) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if !waiting.contains(&line) {
        waiting.push(line);
    }
}

/// Lines for standard error after the current output.
static AFTERWARDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a line to standard error after the current output.
pub fn afterwards(line: String) {
    add(&AFTERWARDS, line);
}

/// Prints the lines that wait for the end of the answer.
pub fn say_afterwards() {
    let lines = std::mem::take(&mut *AFTERWARDS.lock().unwrap_or_else(PoisonError::into_inner));
    lines.iter().for_each(|line| tell(line));
}

/// Words held back until it is known whether the command fails.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Tells people that what was printed is a plan.
pub fn tell_planned() {
    if io::stderr().is_terminal() {
        tell("this is a plan; nothing was written. --apply does it");
    }
}

/// Prints words to standard error, unless only failures are wanted; for a program, after the command has ended.
pub fn tell(words: &str) {
    match MANNER.get() {
        Some(manner) if manner.quiet => {}
        Some(manner) if manner.is_json => add(&HELD, words.to_owned()),
        _ => say("", words),
    }
}

/// Prints a log warning to standard error; for a program, after the command has ended.
pub fn warn(line: &str) {
    match MANNER.get() {
        Some(manner) if manner.is_json => add(&HELD, line.to_owned()),
        _ => say("mnemoscope: ", line),
    }
}

/// Takes the words held back.
pub fn held() -> Vec<String> {
    std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner))
}
