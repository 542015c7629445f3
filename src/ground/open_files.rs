//! Files that this process has open. They are not opened a second time: closing a file drops every lock that the
//! process holds on it, and SQLite would lose those of its database.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags};

/// Descriptors needed besides those open at the start: for the database, SQLite's files beside it, and signals.
const ROOM: usize = 24;

/// Checks that this process may open as many further files as a command needs.
///
/// # Errors
/// It may not.
pub fn check_room() -> io::Result<()> {
    (0..ROOM)
        .map(|_| rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()).map_err(io::Error::from))
        .collect::<io::Result<Vec<OwnedFd>>>()
        .map(drop)
}

/// Whether this process has this file open, under any name.
pub(super) fn is_open_here(file: &Metadata) -> bool {
    let descriptors = fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let mut open = descriptors.filter_map(|entry| fs::metadata(entry.path()).ok());
    open.any(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
}
