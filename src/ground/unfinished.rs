//! Unfinished work at the end of the program: unfinished files are removed, and the state of a change is reported.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

/// Files and folders in the making.
static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file or folder that is useless before it is finished. Dropping this ends the supervision.
#[derive(Debug)]
pub struct UnfinishedPath(PathBuf);

impl UnfinishedPath {
    /// Registers a path that exists, or will in a moment.
    pub fn new(path: &Path) -> Self {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        UnfinishedPath(path.to_owned())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnfinishedPath {
    fn drop(&mut self) {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// A sentence about the state of a change made in parts, printed if a signal ends the program meanwhile.
static STANDING: Mutex<Option<&str>> = Mutex::new(None);

/// A change made in parts; over when dropped.
#[derive(Debug)]
pub struct UnfinishedChange(());

impl UnfinishedChange {
    /// Begins a change with a sentence about the finished parts, and how to continue.
    pub fn new(standing: &'static str) -> Self {
        *STANDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing);
        UnfinishedChange(())
    }
}

impl Drop for UnfinishedChange {
    fn drop(&mut self) {
        *STANDING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// While this exists, SIGINT, SIGTERM, SIGHUP and SIGQUIT end the program as usual, but only after unfinished files
/// were removed and the state of a change was printed.
#[derive(Debug)]
pub struct EndWithoutRemains(Option<Handle>);

impl EndWithoutRemains {
    /// Waits for these signals from now on.
    pub fn begin() -> Self {
        let ending = [SIGINT, SIGTERM].into_iter().chain([SIGHUP, SIGQUIT].into_iter().filter(|signal| ends(*signal)));
        let Ok(mut signals) = Signals::new(ending) else { return EndWithoutRemains(None) };
        let handle = signals.handle();
        thread::spawn(move || {
            for signal in signals.forever() {
                // The lock is kept: anything begun now waits for the end.
                let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
                for path in paths.iter() {
                    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                }
                if let Some(standing) = *STANDING.lock().unwrap_or_else(PoisonError::into_inner) {
                    let _ = writeln!(io::stderr(), "\nmnemoscope: stopped: {standing}");
                }
                // The signal itself does not end the first process of a container.
                if process::id() == 1 {
                    process::exit(128 + signal);
                }
                let _ = emulate_default_handler(signal);
            }
        });
        EndWithoutRemains(Some(handle))
    }
}

/// Whether a signal ends this process, according to the kernel: `nohup` makes SIGHUP ignored, and that is kept.
fn ends(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| (ignored >> (signal - 1)) & 1 == 0)
}

impl Drop for EndWithoutRemains {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}
