//! What the system says of a file without opening it: which one it is, and whether it was written to.

use std::path::{Path, PathBuf};

/// How a file stands: a write to it, or another file in its place, shows in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: FileId,
    bytes: u64,
    /// When its bytes were last changed, in nanoseconds. Not when its owner or mode were: SQLite sets those by the way.
    modified: i128,
}

/// Which file it is, by whatever path: device and inode. Where the system has no such numbers, all files look alike.
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

/// How a file stands now, whatever links lead to it; none where there is none, or the system does not say.
#[must_use]
pub fn stamp(path: &Path) -> Option<Stamp> {
    system::stamp(path)
}

/// Which file stands at a path now, whatever links lead to it; none where there is none.
#[must_use]
pub fn file_id(path: &Path) -> Option<FileId> {
    stamp(path).map(|stamp| stamp.file)
}

/// A file as it was when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedFile {
    path: PathBuf,
    file: Option<FileId>,
}

impl OpenedFile {
    /// The file that stands at a path now. To be asked before it is opened: one that takes its place meanwhile then shows.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        OpenedFile { file: file_id(&path), path }
    }

    /// Why it is not the file at its path any more; none while it is.
    #[must_use]
    pub fn displaced(&self) -> Option<String> {
        let path = self.path.display();
        match file_id(&self.path) {
            now if now == self.file => None,
            Some(_) => Some(format!("another file stands at {path} since it was opened; open it again")),
            None => Some(format!(
                "{path} is not there any more: deleted, moved or unmounted; put it back, or open it where it is now"
            )),
        }
    }
}
