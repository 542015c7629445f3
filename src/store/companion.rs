//! Our companion database of a palace. A palace stores no episodes and no outcomes and is only read, so our additions
//! go to a separate file, attached next to it.

use std::path::{Path, PathBuf};

use super::Store;
use super::bulk::{BulkError, ExistingTarget, Loader, NATIVE_SCHEMA};
use crate::memory::invocation::Invocation;

/// Schema name under which it is attached.
pub const SCHEMA: &str = "companion";

/// Reason why the palace itself is not written.
pub const PALACE: &str = "it is a palace, which only its own tools may write; our additions go into a companion \
 database";

/// Name of the step that creates it, in the form of a migration name.
pub const STEP: &str = "0000_companion";

/// A companion, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Path of the companion's file.
    pub path: PathBuf,
    /// Whether it existed when the palace was opened.
    pub exists: bool,
}

impl Companion {
    /// The companion at a path.
    pub fn at(path: PathBuf) -> Self {
        Companion { exists: path.is_file(), path }
    }

    /// Returns the path of the companion's file if it does not exist yet; `None` if it does.
    pub fn missing(&self) -> Option<&Path> {
        (!self.exists).then_some(&self.path)
    }

    /// The command that creates it, if it is missing.
    pub(super) fn remedy(&self, invocation: &Invocation) -> Option<String> {
        self.missing().map(|_| invocation.line(["migrate", "--apply"]))
    }
}

/// Creates an empty companion with every table of the native layout, atomically. An existing one stays.
///
/// # Errors
/// The error of the file system or SQLite.
pub async fn make(path: &Path) -> Result<(), BulkError> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|source| BulkError::File { path: folder.to_owned(), source })?;
    }
    match Loader::create(path, &NATIVE_SCHEMA, ExistingTarget::Refuse).await?.finish(|_, _| {}).await {
        Ok(_) | Err(BulkError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Store {
    /// The companion of this palace, existing or not; `None` if the database is not a palace.
    pub fn companion(&self) -> Option<&Companion> {
        self.companion.as_ref()
    }
}
