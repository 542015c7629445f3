//! Work that is unfinished when the program must end: unfinished files are removed, and the state of a change is
//! reported.

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

/// A file or folder that is of no use before it is finished. Dropped, it is nobody's concern any more.
#[derive(Debug)]
pub struct UnfinishedPath(PathBuf);

impl UnfinishedPath {
    /// Registers a path that exists, or will in a moment.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        UnfinishedPath(path.to_owned())
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnfinishedPath {
    fn drop(&mut self) {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// A sentence about what stands of a change that is made in parts, should the program be told to end in the middle of it.
static STANDING: Mutex<Option<&str>> = Mutex::new(None);

/// A change that is made in parts. Dropped, it is over.
#[derive(Debug)]
pub struct UnfinishedChange(());

impl UnfinishedChange {
    /// Begins one with a sentence about what stands, and how to continue.
    #[must_use]
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

/// While this lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT end the program as they always do, after unfinished files were
/// removed and what stands of a change was said.
#[derive(Debug)]
pub struct EndWithoutRemains(Option<Handle>);

impl EndWithoutRemains {
    /// Waits for these signals from now on.
    #[must_use]
    pub fn begin() -> Self {
        let ending = [SIGINT, SIGTERM].into_iter().chain([SIGHUP, SIGQUIT].into_iter().filter(|signal| ends(*signal)));
        let Ok(mut signals) = Signals::new(ending) else { return EndWithoutRemains(None) };
        let handle = signals.handle();
        thread::spawn(move || {
            for signal in signals.forever() {
                // The lock stays: what would be begun now waits for the end.
                let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
                for path in paths.iter() {
                    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                }
                if let Some(standing) = *STANDING.lock().unwrap_or_else(PoisonError::into_inner) {
                    let _ = writeln!(io::stderr(), "\nmnemoscope: stopped: {standing}");
                }
                // The first process of a container is not ended by the signal itself.
                if process::id() == 1 {
                    process::exit(128 + signal);
                }
                let _ = emulate_default_handler(signal);
            }
        });
        EndWithoutRemains(Some(handle))
    }
}

/// Whether a signal ends this process, as far as the kernel says: `nohup` has SIGHUP ignored, and that stays so.
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
