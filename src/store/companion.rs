//! The database of ours that goes with a palace: a palace keeps no episodes and no outcomes and is only read, so that
//! what is recorded about it goes into a file of its own, attached beside it.

use std::path::{Path, PathBuf};

use super::Store;
use super::bulk::{BulkError, ExistingTarget, Loader, NATIVE_SCHEMA};

/// Name under which its tables are attached.
pub const SCHEMA: &str = "companion";

/// Why a palace itself is not written.
pub const PALACE: &str = "it is a palace, which only its own tools write; what we add goes into a companion database";

/// Name of the step that makes it, as migrations are named.
pub const STEP: &str = "0000_companion";

/// A companion, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Its file.
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
}

/// A file as SQLite's URI, with parameters such as `mode=ro`.
#[must_use]
pub fn uri(path: &Path, parameters: &str) -> String {
    let escaped = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}?{parameters}")
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
    match Loader::create(path, NATIVE_SCHEMA, ExistingTarget::Refuse).await?.finish(|_, _| {}).await {
        Ok(_) | Err(BulkError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Store {
    /// The file of the companion that goes with this palace, there or not; none where the database is no palace.
    #[must_use]
    pub fn companion_path(&self) -> Option<&Path> {
        self.companion.as_ref().map(|c| c.path.as_path())
    }

    /// The companion that this palace still lacks; none where it is there, and where none is needed.
    #[must_use]
    pub fn missing_companion(&self) -> Option<&Path> {
        self.companion.as_ref().filter(|c| !c.exists).map(|c| c.path.as_path())
    }

    /// The command that makes the companion which is missing.
    pub(super) fn companion_remedy(&self) -> Option<String> {
        self.missing_companion().map(|_| self.invocation().line(["migrate", "--apply"]))
    }
}
