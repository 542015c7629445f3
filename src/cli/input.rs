//! Files that a command line names, read within limits.

use std::path::Path;

use super::failure::CommandFailure;
use crate::ground::input_file::{self, InputError};

/// A file's text, or standard input's for `-`, up to a number of bytes.
pub(super) fn read_input(path: &Path, most: u64) -> Result<String, CommandFailure> {
    input_file::read_text(path, most).map_err(|error| unread(path, &error))
}

/// Makes the failure for a file that could not be read.
pub(super) fn unread(path: &Path, error: &InputError) -> CommandFailure {
    let words = format!("{}: {error}", path.display());
    match error {
        InputError::NotFound => CommandFailure::not_found(words),
        InputError::System(_) => CommandFailure::failed(words),
        _ => CommandFailure::usage(words),
    }
}
