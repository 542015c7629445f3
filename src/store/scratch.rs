//! Scratch space for data that does not fit in memory: unnamed files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::ground::scratch_file::{no_room, scratch_file};
use crate::memory::packed::records::RecordSorter;
use crate::memory::packed::space::ScratchSpace;

impl ScratchSpace for File {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at).map_err(|error| io::Error::new(error.kind(), no_room(&error)))
    }

    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(into, at)
    }
}

/// Creates an unnamed file.
///
/// # Errors
/// The temporary folder cannot be written.
pub fn scratch() -> io::Result<Box<dyn ScratchSpace>> {
    Ok(Box::new(scratch_file()?))
}

/// A sorter of records that spills to such a file.
pub(crate) fn sorter<const N: usize>() -> RecordSorter<N> {
    RecordSorter::new(scratch)
}
