//! Log of the program: warnings to standard error, more with `-v`, and all of it to a file with `--log`. Lines contain
//! no passwords, no masked handles, and no control characters.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Level, Metadata};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;

use super::failure::{harmless, say};
use super::options::Global;
use super::{CommandFailure, output};
use crate::ground::private_file;
use crate::ui::text::SafeText;

/// Variable that sets the log level of parts of the program, such as `mnemoscope=debug` or `mnemoscope::store=trace`.
const VARIABLE: &str = "RUST_LOG";

/// Most lines kept for the time after the console.
const HELD: usize = 100;

/// Lines waiting until the screen has been restored; `None` while nobody draws on it.
static WAITING: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Starts telling.
///
/// # Errors
/// A filter that cannot be read (code 2), or a file that cannot be written.
pub fn start(global: &Global) -> Result<(), CommandFailure> {
    let asked = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let asked = asked.map(|text| {
        Targets::from_str(&text).map_err(|e| {
            CommandFailure::usage(format!(
                "{VARIABLE}={text}: {e}; write a level or TARGET=LEVEL, such as mnemoscope=debug"
            ))
        })
    });
    let asked = asked.transpose()?;
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (_, 0) => LevelFilter::WARN,
        (_, 1) => LevelFilter::INFO,
        (_, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Libraries log statements and connections, which must be requested by name.
    let ours = |level: LevelFilter| asked.clone().unwrap_or_else(|| Targets::new().with_target("mnemoscope", level));
    let words = fmt::layer().without_time().with_target(global.verbose > 1).with_ansi(false).with_writer(LogWriter);
    let file = global.log.as_deref().map(kept_in).transpose()?;
    let file = file
        .map(|file| fmt::layer().with_ansi(false).with_writer(file).with_filter(ours(level.max(LevelFilter::INFO))));
    let subscriber = tracing_subscriber::registry().with(words.with_filter(ours(level))).with(file);
    // A program that uses this library may have set its own subscriber, which is kept.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

fn kept_in(path: &Path) -> Result<LogFile, CommandFailure> {
    let file = private_file::appending(path);
    let file =
        file.map_err(|e| CommandFailure::failed(format!("{}: cannot write the log there: {e}", path.display())))?;
    Ok(LogFile(Arc::new(file)))
}

/// Holds back lines for standard error until dropped, while someone draws on the screen.
pub struct HeldLines;

impl HeldLines {
    /// Begins to wait.
    pub fn begin() -> Self {
        *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
        HeldLines
    }
}

impl Drop for HeldLines {
    fn drop(&mut self) {
        let lines = WAITING.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        lines.iter().for_each(|line| say("mnemoscope: ", line));
    }
}

/// Writes lines to standard error, or holds them back.
struct LogWriter;

/// Appends lines to the file of `--log`.
struct LogFile(Arc<File>);

/// One event as text, passed on when complete.
struct LogLine<W: FnMut(&str)> {
    bytes: Vec<u8>,
    to: W,
}

impl<W: FnMut(&str)> Write for LogLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: FnMut(&str)> Drop for LogLine<W> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        (self.to)(text.trim());
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = LogLine<fn(&str)>;

    fn make_writer(&'w self) -> Self::Writer {
        LogLine { bytes: Vec::new(), to: |line| tell(line, |line| say("mnemoscope: ", line)) }
    }

    /// A warning becomes a note in the answer for a program; lower levels are printed at once.
    fn make_writer_for(&'w self, about: &Metadata<'_>) -> Self::Writer {
        if *about.level() > Level::WARN {
            return self.make_writer();
        }
        LogLine { bytes: Vec::new(), to: |line| tell(line, output::warn) }
    }
}

/// Prints a line, or holds it back.
fn tell(line: &str, say: fn(&str)) {
    match &mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(waiting) if waiting.len() < HELD => waiting.push(line.to_owned()),
        Some(_) => {}
        None => say(line),
    }
}

impl<'w> MakeWriter<'w> for LogFile {
    type Writer = LogLine<Box<dyn FnMut(&str) + 'w>>;

    fn make_writer(&'w self) -> Self::Writer {
        // One write for a line: several processes may append to one file.
        let to = |line: &str| drop((&*self.0).write_all(format!("{}\n", SafeText::new(&harmless(line))).as_bytes()));
        LogLine { bytes: Vec::new(), to: Box::new(to) }
    }
}
