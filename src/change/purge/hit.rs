//! A place in bytes that contains a handle, or the id of a deleted row.

use crate::memory::mention::{self, Certainty};

/// Kind of match in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteFind {
    /// The handle with that number.
    Handle(usize),
    /// The id of a deleted row.
    Row,
}

/// A place in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The match.
    pub what: ByteFind,
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
    /// Certainty that the match means the person.
    pub certainty: Certainty,
}

impl Hit {
    /// Whether the match is a row id that is also a common word here.
    pub fn is_common(&self) -> bool {
        self.certainty == mention::A_COMMON_WORD
    }
}
