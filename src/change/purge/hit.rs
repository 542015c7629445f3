//! A place in bytes with a handle, or with the id of a deleted row.

use crate::memory::mention::{self, Certainty};

/// Kind of a find in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteFind {
    /// The handle of that number.
    Handle(usize),
    /// The id of a row that goes.
    Row,
}

/// A place in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Handle or row id that was found at this place.
    pub what: ByteFind,
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
    /// Certainty that the find means the person.
    pub certainty: Certainty,
}

impl Hit {
    /// Whether it is an id that is also a usual word here.
    #[must_use]
    pub fn is_common(&self) -> bool {
        self.certainty == mention::A_COMMON_WORD
    }
}
