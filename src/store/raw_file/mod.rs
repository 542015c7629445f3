//! The only access to the raw bytes of database files: a child process, running this program, that reads them.
//!
//! POSIX record locks belong to a process: closing any descriptor of a file drops all its locks on it, and another
//! program may then delete the log under SQLite or write next to it. So no code in a process that may hold a connection
//! opens a database file, `-wal`, `-shm` or `-journal`. Where SQLite itself can answer, it is asked.
//!
//! Parent and child exchange a line of JSON each. The child gets one request on standard input, which then stays open: when
//! it is closed, nobody waits for the child any more, and it exits.

mod child;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use super::proof::bytes::ByteScan;
use super::proof::needles::SoughtBytes;

pub use child::serve;

/// The argument that starts the program as such a child. It is not a command, and not in the help.
pub const ARGUMENT: &str = "read-raw-bytes-for-parent";

/// Largest request in bytes.
const REQUEST: u64 = 256 << 20;
/// Longest line of an answer in bytes.
const LINE: u64 = 64 << 20;

/// Task for the child process.
#[derive(Debug, Serialize, Deserialize)]
enum ChildRequest<'a> {
    /// Search files; a missing one contains nothing.
    Search { files: Vec<PathBuf>, sought: Cow<'a, SoughtBytes> },
    /// Read the first bytes of a file.
    Head { file: PathBuf, bytes: u64 },
    /// Copy files, each to a path that must not exist; missing ones are skipped.
    Copy { files: Vec<(PathBuf, PathBuf)> },
}

/// The child's answer.
#[derive(Debug, Serialize, Deserialize)]
enum ChildReply {
    /// Findings of a search.
    Found(ByteScan),
    /// The first bytes of a file.
    Head(Vec<u8>),
    /// The files were copied.
    Copied,
    /// Reason why the task was not done.
    Failed(String),
}

/// Reason why raw bytes were not read, for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadBytes(String);

impl UnreadBytes {
    pub(super) fn of(what: &str, error: impl std::fmt::Display) -> Self {
        UnreadBytes(format!("{what}: {error}"))
    }
}

/// Starts children that read raw bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFiles {
    program: PathBuf,
}

impl RawFiles {
    /// Uses a given program of ours for reading, as tests do, or this one.
    pub fn through(program: Option<PathBuf>) -> Self {
        RawFiles { program: program.unwrap_or_else(this_program) }
    }

    /// Searches files; a missing one contains nothing.
    ///
    /// # Errors
    /// The child could not be started, or could not read an existing file.
    pub async fn search(&self, files: &[PathBuf], sought: &SoughtBytes) -> Result<ByteScan, UnreadBytes> {
        match self.ask(&ChildRequest::Search { files: files.to_vec(), sought: Cow::Borrowed(sought) }).await? {
            ChildReply::Found(scan) => Ok(scan),
            _ => Err(stray()),
        }
    }

    /// Reads the first bytes of a file; fewer if it is shorter.
    ///
    /// # Errors
    /// As [`RawFiles::search`].
    pub async fn head(&self, file: &Path, bytes: u64) -> Result<Vec<u8>, UnreadBytes> {
        match self.ask(&ChildRequest::Head { file: file.to_owned(), bytes }).await? {
            ChildReply::Head(head) => Ok(head),
            _ => Err(stray()),
        }
    }

    /// Copies files, each to a path that must not exist; missing ones are skipped.
    ///
    /// # Errors
    /// As [`RawFiles::search`]; or a copy could not be written.
    pub async fn copy(&self, files: Vec<(PathBuf, PathBuf)>) -> Result<(), UnreadBytes> {
        match self.ask(&ChildRequest::Copy { files }).await? {
            ChildReply::Copied => Ok(()),
            _ => Err(stray()),
        }
    }

    /// Sends a request to a new child and reads the answer. If dropped, it kills the child.
    async fn ask(&self, request: &ChildRequest<'_>) -> Result<ChildReply, UnreadBytes> {
        let mut line = serde_json::to_vec(request).map_err(|e| UnreadBytes::of("the request cannot be sent", e))?;
        line.push(b'\n');
        let started = |e| UnreadBytes::of("could not start a process to read the files", e);
        let mut child = self.start().map_err(started)?;
        let answer = converse(&mut child, &line).await;
        let _ = child.start_kill();
        let _ = child.wait().await;
        match answer? {
            ChildReply::Failed(words) => Err(UnreadBytes(words)),
            reply => Ok(reply),
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        // Ctrl-C at the terminal is handled by the parent, which stops the child.
        #[cfg(unix)]
        command.arg0("mnemoscope").process_group(0);
        command.spawn()
    }
}

async fn converse(child: &mut Child, request: &[u8]) -> Result<ChildReply, UnreadBytes> {
    let broken = |e| UnreadBytes::of("the process that reads the files does not answer", e);
    let ended = || UnreadBytes("the process that reads the files ended before it answered".to_owned());
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err(ended()) };
    // A program that is not ours may exit without reading the request; its answer, or lack of one, is handled below.
    let sent = async {
        input.write_all(request).await?;
        input.flush().await
    };
    if sent.await.is_err() {
        return Err(ended());
    }
    let mut line = Vec::new();
    let read = BufReader::new(output.take(LINE)).read_until(b'\n', &mut line).await.map_err(broken)?;
    if read == 0 {
        return Err(ended());
    }
    serde_json::from_slice(&line).map_err(|_| stray())
}

fn stray() -> UnreadBytes {
    UnreadBytes("the process that reads the files gave an unexpected answer; is it this program?".to_owned())
}

/// This program. Linux finds it even if its file was replaced meanwhile.
fn this_program() -> PathBuf {
    let linux = Path::new("/proc/self/exe");
    if linux.exists() {
        return linux.to_owned();
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("mnemoscope"))
}

/// Whether the program was started to read raw bytes for its parent, by its arguments.
pub fn is_asked_for(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    arguments.next().is_some_and(|first| first.as_ref() == ARGUMENT) && arguments.next().is_none()
}
