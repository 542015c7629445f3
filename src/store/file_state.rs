//! What the system says of a file without opening it: which one it is, and whether it was written to.

use std::path::Path;

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
