//! Files that this process has open. They are not opened a second time: closing a file drops every lock that the process
//! holds on it, and SQLite would lose those of its database.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

/// Whether this process has that very file open, by whatever name.
pub(super) fn is_open_here(file: &Metadata) -> bool {
    let descriptors = fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let mut open = descriptors.filter_map(|entry| fs::metadata(entry.path()).ok());
    open.any(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
}
