//! Files that a command line names, read within limits.

use std::path::Path;

use super::failure::Failure;
use crate::ground::input_file::{self, InputError};

/// A file's text, or standard input's for `-`, up to a number of bytes.
pub(super) fn read_input(path: &Path, most: u64) -> Result<String, Failure> {
    input_file::read_text(path, most).map_err(|error| unread(path, &error))
}

/// Why a file was not read.
pub(super) fn unread(path: &Path, error: &InputError) -> Failure {
    let words = format!("{}: {error}", path.display());
    match error {
        InputError::NotFound => Failure::not_found(words),
        InputError::System(_) => Failure::failed(words),
        _ => Failure::usage(words),
    }
}
