//! Our own commands as processes: started, killed where it was asked, and what they said.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::history::End;
use super::place::Place;
use crate::support::signal;

/// Maximum duration of a command: the stated times for locks come to less.
const DEADLINE: Duration = Duration::from_mins(2);

/// A command under way.
pub struct Running {
    child: Child,
    words: Vec<String>,
    out: PathBuf,
    err: PathBuf,
    end: End,
    began: Instant,
}

/// Outcome of a command.
#[derive(Debug)]
pub struct Outcome {
    pub words: Vec<String>,
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Receipt, printed in full: the change is acknowledged whatever came after.
    pub receipt: Option<Value>,
    pub err: String,
    pub killed: bool,
}

impl Running {
    pub fn start(place: &Place, words: Vec<String>, end: End) -> Running {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = |what: &str| place.home.path().join(format!("{what}-{number}"));
        let (out, err) = (path("out"), path("err"));
        let mut command = place.command(&words);
        if let End::StoppedAt(statement) = end {
            command.env("MNEMOSCOPE_STOP_AT_WRITE", statement.to_string());
        }
        command.stdout(Stdio::from(File::create(&out).expect("a file")));
        command.stderr(Stdio::from(File::create(&err).expect("a file")));
        let child = command.spawn().expect("the program");
        Running { child, words, out, err, end, began: Instant::now() }
    }

    /// Waits for its end, or brings it about.
    pub fn finish(mut self) -> Outcome {
        let mut killed = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            match self.end {
                End::Signalled(name, after)
                    if self.began.elapsed() >= Duration::from_millis(after.into()) && !killed =>
                {
                    killed = true;
                    // It may be gone already.
                    let _ = signal(self.child.id(), name);
                }
                End::StoppedAt(_) if !killed && text(&self.err).contains("stopped at statement") => {
                    killed = true;
                    self.child.kill().expect("killed");
                }
                _ => {}
            }
            assert!(self.began.elapsed() < DEADLINE, "{:?} does not come to its end", self.words);
            std::thread::sleep(Duration::from_millis(1));
        };
        let out = text(&self.out);
        let receipt = serde_json::from_str(&out).ok().filter(|value: &Value| value.get("receipt_id").is_some());
        let code = status.code().filter(|_| status.signal().is_none());
        Outcome { words: std::mem::take(&mut self.words), code, receipt, err: text(&self.err), killed }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    /// Nothing was written: it ended on its own and says so.
    pub fn is_refused(&self) -> bool {
        !self.killed
            && self.code.is_some_and(|code| code != 0)
            && !self.err.contains(
                "it is unknown whether the \
            change was made",
            )
    }

    /// Describes an ending that no command may ever have; `None` when the command ended properly.
    pub fn fault(&self) -> Option<String> {
        const NEVER: &[&str] =
            &["malformed", "disk image", "disk I/O", "panicked", "corrupt", "no such table", "file is not a database"];
        let broken = !self.killed && self.code == Some(7);
        let panicked = self.code == Some(101) || self.code.is_none() && !self.killed;
        let word = NEVER.iter().find(|word| self.err.contains(**word));
        let is_fault = broken || panicked || word.is_some() || (!self.killed && self.code == Some(2));
        is_fault.then(|| format!("{:?} ended with {:?}: {}", self.words, self.code, self.err))
    }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("its words")).into_owned()
}
