//! Text for standard output, printed in parts while it is produced: one value may be long.

use std::io::{self, Write};
use std::mem;

use super::{CommandFailure, output};
use crate::ui::escaped;

/// Bytes that wait to be printed.
const WAITING: usize = 64 << 10;

/// A buffer for lines that prints the first parts while the last ones are made.
#[derive(Debug)]
pub struct PrintedLines {
    is_escaped: bool,
    waiting: Vec<u8>,
    is_read: bool,
}

impl PrintedLines {
    /// Creates an empty buffer; `is_escaped` escapes control characters, for terminals.
    pub fn new(is_escaped: bool) -> Self {
        PrintedLines { is_escaped, waiting: Vec::new(), is_read: true }
    }

    /// Whether the reader is still there.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Adds text to print.
    pub fn put(&mut self, words: &str) {
        self.waiting.extend_from_slice(words.as_bytes());
    }

    /// Prints the waiting text if there is much of it.
    pub fn pass_on(&mut self) -> Result<(), CommandFailure> {
        if self.waiting.len() >= WAITING { self.print() } else { Ok(()) }
    }

    /// Prints the waiting text.
    pub fn print(&mut self) -> Result<(), CommandFailure> {
        let mut waiting = mem::take(&mut self.waiting);
        if self.is_escaped {
            waiting = escaped(&String::from_utf8_lossy(&waiting)).into_bytes();
        }
        if self.is_read {
            self.is_read = output::piped_open(|out| out.write_all(&waiting))?;
        }
        Ok(())
    }
}

/// Collects parts and prints them when many are waiting; whole lines only, if the text is changed when printed.
impl Write for PrintedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(WAITING)];
        // Only new bytes are searched: a value on one line arrives in very many parts.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| self.waiting.len() + at);
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < WAITING {
            return Ok(bytes.len());
        }
        let is_changed = self.is_escaped || output::is_veiled();
        let end = if is_changed { end } else { Some(self.waiting.len()) };
        if let Some(end) = end {
            let rest = self.waiting.split_off(end);
            self.print().map_err(|failure| io::Error::other(failure.message))?;
            self.waiting = rest;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.print().map_err(|failure| io::Error::other(failure.message))
    }
}
