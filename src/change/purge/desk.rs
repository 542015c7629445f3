//! What an erasure needs beside the database: the key of the suppression list, and a folder for sessions and receipts.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::Options;
use super::subject::Subject;
use super::vectors::OldVector;
use crate::change::plan::Counts;
use crate::change::plan::erasure::Choice;
use crate::change::suppress::Key;
use crate::change::{Author, ChangeError};
use crate::store::stored::{Rows, TableName};

/// Told what is being done and how far it is.
pub type Progress<'a> = &'a (dyn Fn(&str, u64) + Sync);

/// Where an erasure is worked on.
pub struct Desk<'a> {
    /// Folder that outlives the run; readable by nobody else.
    pub folder: PathBuf,
    /// Key of the suppression list.
    pub key: Key,
    /// Who does it.
    pub author: &'a Author,
    /// Told how far it is.
    pub progress: Progress<'a>,
}

/// A session as it is kept outside the database until it is verified: what is needed to go on, and to look for what must
/// be gone. It is the only place that still says who it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Id of the session.
    pub session: String,
    /// The database.
    pub database_id: String,
    /// Who.
    pub subject: Subject,
    /// How.
    pub options: Options,
    /// The plan it began with.
    pub plan_id: String,
    /// What that plan counted.
    pub planned: Counts,
    /// Handles that were found before, of how many.
    pub control: (usize, usize),
    /// Rows that were to go, so that none is lost when what led to it is gone already.
    pub deletes: Vec<Rows>,
    /// Ids of rows that go.
    pub ids: Vec<String>,
    /// Stands for the person where a column must name somebody.
    pub pseudonym: String,
    /// Effects on rows that stay.
    pub effects: Vec<String>,
    /// Disclosures that lower the result.
    pub particular: Vec<String>,
    /// Disclosures that do not.
    pub notes: Vec<String>,
    /// Foreign keys that led nowhere before, by table, parent and number.
    pub broken_before: BTreeMap<String, u64>,
    /// Tables whose rows go or change.
    pub touched: Vec<TableName>,
    /// Hits among the bytes of the files before, by handle; none for a server.
    pub bytes_before: Option<Vec<u64>>,
    /// Vectors of rows that go, a sample.
    #[serde(default)]
    pub vectors: Vec<OldVector>,
    /// Seconds that each phase took.
    pub phases: BTreeMap<String, f64>,
    /// SHA-256 of the bundle that was exported before.
    pub export_sha256: Option<String>,
    /// When it began.
    pub started_at: String,
}

impl Kept {
    /// How it is done.
    #[must_use]
    pub fn choice(&self) -> Choice {
        let Options { mentions, each, account, full, .. } = self.options.clone();
        Choice { mentions, each, account, full, export: self.export_sha256.is_some() }
    }
}

impl Desk<'_> {
    fn session_file(&self, session: &str) -> PathBuf {
        self.folder.join("purges").join(format!("{session}.json"))
    }

    /// Keeps a session; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep(&self, kept: &Kept) -> Result<(), ChangeError> {
        let text = serde_json::to_string(kept).map_err(|e| ChangeError::Failed(e.to_string()))?;
        write_private(&self.session_file(&kept.session), text.as_bytes())
    }

    /// A kept session; none when it is not there.
    #[must_use]
    pub fn kept(&self, session: &str) -> Option<Kept> {
        serde_json::from_slice(&std::fs::read(self.session_file(session)).ok()?).ok()
    }

    /// Every session that is kept in a folder and is not over, the oldest first; files that are none are passed over.
    #[must_use]
    pub fn all_kept(folder: &Path) -> Vec<Kept> {
        let files = std::fs::read_dir(folder.join("purges")).into_iter().flatten().flatten();
        let mut kept: Vec<Kept> =
            files.filter_map(|file| serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()).collect();
        kept.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        kept
    }

    /// Forgets a session that is over: it named the person.
    pub fn forget(&self, session: &str) {
        // Nothing can be done about a file that does not go.
        let _ = std::fs::remove_file(self.session_file(session));
    }

    fn fleet_file(&self, name: &str) -> PathBuf {
        self.folder.join("purges").join(format!("fleet-{name}.json"))
    }

    /// Keeps by which handle a person is known in each of several databases, until all of them are verified.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_fleet(&self, name: &str, handles: &BTreeMap<String, String>) -> Result<(), ChangeError> {
        write_private(&self.fleet_file(name), serde_json::to_string(handles).unwrap_or_default().as_bytes())
    }

    /// What [`Desk::keep_fleet`] kept; nothing when it is not there.
    #[must_use]
    pub fn fleet(&self, name: &str) -> BTreeMap<String, String> {
        let kept = std::fs::read(self.fleet_file(name)).ok();
        kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Forgets it: it named the person.
    pub fn forget_fleet(&self, name: &str) {
        let _ = std::fs::remove_file(self.fleet_file(name));
    }

    /// Where receipts are.
    #[must_use]
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    /// Keeps a receipt.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_receipt(&self, id: &str, receipt: &Value) -> Result<PathBuf, ChangeError> {
        let path = self.receipts().join(format!("{id}.json"));
        let text = serde_json::to_string_pretty(receipt).unwrap_or_default();
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Reads a receipt by its file or its id.
    ///
    /// # Errors
    /// [`ChangeError::NotFound`], or [`ChangeError::Usage`] for what is no receipt.
    pub fn receipt(&self, named: &str) -> Result<Value, ChangeError> {
        let file = Path::new(named);
        let kept = self.receipts().join(format!("{named}.json"));
        let path = if file.is_file() { file } else { &kept };
        let text = std::fs::read_to_string(path).map_err(|_| {
            ChangeError::NotFound(format!(
                "there is no receipt `{named}`; they are kept in {}",
                self.receipts().display()
            ))
        })?;
        let value: Value =
            serde_json::from_str(&text).map_err(|e| ChangeError::Usage(format!("{named} is no receipt: {e}")))?;
        if value["operation"] != "purge" || !value["verification"].is_object() {
            return Err(ChangeError::Usage(format!("{named} is no receipt of a purge")));
        }
        Ok(value)
    }
}

/// Writes a file that nobody else can read, whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ChangeError> {
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let partial = path.with_extension("partial");
        let mut file = options.open(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)
    };
    write().map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))
}
