//! Facts from the system about a file, without opening it: its identity, and whether it was written to.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Times that a deleted log must be found open, and the time between two checks.
const LOOKS: u32 = 25;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Time for which a log is taken to exist after it was seen, for reads only: listing all open files costs more than a
/// small statement.
const FRESH: Duration = Duration::from_millis(20);

/// State of a file. It changes if the file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: FileId,
    bytes: u64,
    /// Time of the last change to its bytes, in nanoseconds. Changes of owner or mode do not count, because SQLite
    /// makes some.
    modified: i128,
}

/// Identity of a file under any path: device and inode. On a system without these, all files are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u64, u64);

#[cfg(unix)]
mod system {
    use std::os::unix::fs::MetadataExt as _;

    use super::{FileId, Path, Stamp};

    pub fn stamp(path: &Path) -> Option<Stamp> {
        let about = std::fs::metadata(path).ok()?;
        let modified = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        Some(Stamp { file: FileId(about.dev(), about.ino()), bytes: about.len(), modified })
    }
}

#[cfg(not(unix))]
mod system {
    use super::{FileId, Path, Stamp};

    pub fn stamp(path: &Path) -> Option<Stamp> {
        let about = std::fs::metadata(path).ok()?;
        let modified = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos() as i128;
        Some(Stamp { file: FileId(0, 0), bytes: about.len(), modified })
    }
}

/// Reads the current state of a file, following links; `None` if there is no file, or the system does not say.
pub fn stamp(path: &Path) -> Option<Stamp> {
    system::stamp(path)
}

/// Reads the identity of the file at a path, following links; `None` if there is none, or the system does not say.
pub fn file_id(path: &Path) -> Option<FileId> {
    stamp(path).map(|stamp| stamp.file)
}

/// A file in its state when it was opened.
#[derive(Debug)]
pub struct OpenedFile {
    path: PathBuf,
    /// The path without links: SQLite uses it for the files next to the database.
    real: PathBuf,
    file: Option<FileId>,
    /// Time at which its log was last seen.
    seen: Mutex<Option<Instant>>,
}

impl OpenedFile {
    /// The file now at a path. Call it before opening, so that a replacement in between is noticed.
    pub fn at(path: PathBuf) -> Self {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        OpenedFile { file: file_id(&path), path, real, seen: Mutex::new(None) }
    }

    /// As [`OpenedFile::displaced`], but may miss a log deleted within the last 20 ms.
    pub fn displaced_lately(&self) -> Option<String> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if file_id(&self.path) == self.file && seen.is_some_and(|seen| seen.elapsed() < FRESH) {
            return None;
        }
        self.displaced()
    }

    /// Returns the reason why the path no longer leads to the opened file, or SQLite's files next to it were replaced;
    /// `None` if all is unchanged. Only Linux shows that a log was deleted under open connections.
    pub fn displaced(&self) -> Option<String> {
        let path = self.path.display();
        match file_id(&self.path) {
            now if now == self.file => self.log_deleted(),
            Some(_) => Some(format!("another file has replaced {path} since it was opened; open it again")),
            None => Some(format!(
                "{path} no longer exists: it was deleted, moved, or unmounted; put it back, or open it at its new \
                 location"
            )),
        }
    }

    /// Whether another file has replaced the path: the opened one may then be closed, and this one opened instead.
    pub fn is_replaced(&self) -> bool {
        file_id(&self.path).is_some_and(|now| Some(now) != self.file)
    }

    /// Detects that connections of this process write to a deleted `-wal` file, where nobody else would see their
    /// writes. The last connection to close also deletes the file and keeps it open for a moment, so one check proves
    /// nothing.
    fn log_deleted(&self) -> Option<String> {
        for _ in 0..LOOKS {
            if !self.holds_deleted_log() {
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                return None;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Some(format!(
            "the -wal or -shm file of {} was deleted while the database is open here: anything written now would be \
             lost; close every program that has it open, then open it again",
            self.path.display()
        ))
    }

    /// Whether this process has a deleted `-wal` or `-shm` file of the database open.
    fn holds_deleted_log(&self) -> bool {
        let deleted = |suffix: &str| {
            let mut name = self.real.clone().into_os_string();
            name.push(suffix);
            name.push(" (deleted)");
            PathBuf::from(name)
        };
        let (wal, shm) = (deleted("-wal"), deleted("-shm"));
        // Only reads links and opens nothing: closing a file would drop the locks of the database.
        let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return false };
        open.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|file| file == wal || file == shm)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_log_whose_last_connection_is_closing_is_not_a_deleted_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, log) = (folder.path().join("a.db"), folder.path().join("a.db-wal"));
        std::fs::write(&path, "").expect("a file");
        let closing = std::fs::File::create(&log).expect("a log");
        let opened = OpenedFile::at(path);
        std::fs::remove_file(&log).expect("it was there");
        let closes = std::thread::spawn(move || {
            std::thread::sleep(BETWEEN_LOOKS);
            drop(closing);
        });
        assert_eq!(opened.displaced(), None);
        closes.join().expect("closed");
        let _held = std::fs::File::create(&log).expect("a log");
        std::fs::remove_file(&log).expect("it was there");
        assert!(opened.displaced().is_some_and(|words| words.contains("was deleted while the database is open")));
    }
}
