//! Our companion database of a palace: a palace stores no episodes and no outcomes and is only read, so what is
//! recorded about it goes into a separate file, attached next to it.

use std::path::{Path, PathBuf};

use super::Store;
use super::bulk::{BulkError, ExistingTarget, Loader, NATIVE_SCHEMA};
use crate::memory::invocation::Invocation;

/// Name under which its tables are attached.
pub const SCHEMA: &str = "companion";

/// Reason why a palace itself is not written.
pub const PALACE: &str = "it is a palace, which only its own tools may write; our additions go into a companion \
 database";

/// Name of the step that makes it, as migrations are named.
pub const STEP: &str = "0000_companion";

/// A companion, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Path of the companion's file.
    pub path: PathBuf,
    /// Whether it was there when the palace was opened.
    pub exists: bool,
}

impl Companion {
    /// The companion at a path.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Companion { exists: path.is_file(), path }
    }

    /// Returns the path of the companion's file if it has yet to be made; `None` when it exists.
    #[must_use]
    pub fn missing(&self) -> Option<&Path> {
        (!self.exists).then_some(&self.path)
    }

    /// The command that makes it, where it is missing.
    pub(super) fn remedy(&self, invocation: &Invocation) -> Option<String> {
        self.missing().map(|_| invocation.line(["migrate", "--apply"]))
    }
}

/// Makes a companion with every table of the native layout, empty. Whole or not at all; one that is there stays.
///
/// # Errors
/// What the file system or SQLite says.
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
    /// The companion that goes with this palace, there or not; none when the database is not a palace.
    #[must_use]
    pub fn companion(&self) -> Option<&Companion> {
        self.companion.as_ref()
    }
}
