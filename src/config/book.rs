//! Records about databases that the operator keeps outside of them: one readable file for each kind, in the state
//! folder.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{read_toml, state_folder};
use crate::ground::private_file;
use crate::memory::name_words::is_word_in;

/// Bytes that such a file may have.
const MOST: u64 = 4 << 20;

/// A kind of thing that is kept, by its file's name and first lines.
#[derive(Debug, Clone, Copy)]
pub struct Book {
    /// File in the state folder, without its ending.
    pub name: &'static str,
    /// First lines of the file, which describe it.
    pub heading: &'static str,
}

/// Kept record, with the database that it belongs to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry<T> {
    database: String,
    #[serde(flatten)]
    kept: T,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new", rename = "kept")]
    entries: Vec<Entry<T>>,
}

impl Book {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(self) -> Option<PathBuf> {
        Some(state_folder()?.join(format!("{}.toml", self.name)))
    }

    /// Loads the records that are kept for a database, which is named by its path or its URL without a password; in
    /// the file's order.
    ///
    /// # Errors
    /// What is wrong with the file, with its name.
    pub fn load<T: DeserializeOwned>(self, database: &str) -> anyhow::Result<Vec<T>> {
        let Some(path) = self.path() else { return Ok(Vec::new()) };
        let database = place_of(database);
        let entries = read::<T>(&path)?.into_iter();
        Ok(entries.filter(|entry| entry.database == database).map(|entry| entry.kept).collect())
    }

    /// The one thing that is kept for a database; none when there is none, or where it cannot be read.
    #[must_use]
    pub fn only<T: DeserializeOwned>(self, database: &str) -> Option<T> {
        self.load(database).unwrap_or_default().into_iter().next()
    }

    /// Keeps one thing for a database in the place of the one before. Where that cannot be kept, it is not there the next
    /// time.
    pub fn keep_only<T: DeserializeOwned + Serialize + Clone>(self, database: &str, one: &T) {
        let _ = self.change(database, |kept: &mut Vec<T>| *kept = vec![one.clone()]);
    }

    /// Changes what is kept for a database; all that is kept for it then.
    ///
    /// # Errors
    /// The file is damaged or cannot be written.
    pub fn change<T: DeserializeOwned + Serialize + Clone>(
        self,
        database: &str,
        edit: impl FnOnce(&mut Vec<T>),
    ) -> anyhow::Result<Vec<T>> {
        let path = self.path().context("there is no folder to store this in: set MNEMOSCOPE_STATE")?;
        let named = || path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("."));
        private_file::folder(folder).with_context(named)?;
        // Two runs at the same time lose nothing of each other's.
        let _turn = private_file::lock(&path.with_extension("lock")).with_context(named)?;
        let database = place_of(database);
        let (own, mut others): (Vec<_>, Vec<_>) =
            read::<T>(&path)?.into_iter().partition(|entry| entry.database == database);
        let mut kept: Vec<T> = own.into_iter().map(|entry| entry.kept).collect();
        edit(&mut kept);
        others.extend(kept.iter().cloned().map(|kept| Entry { database: database.clone(), kept }));
        others.sort_by(|a, b| a.database.cmp(&b.database));
        let text = toml::to_string_pretty(&Page { entries: others }).with_context(named)?;
        write(&path, &format!("{}\n\n{text}", self.heading)).with_context(named)?;
        Ok(kept)
    }

    /// Forgets what is kept for a database and names someone by one of some handles, each with whether it tells also
    /// within a text.
    ///
    /// # Errors
    /// The file is damaged or cannot be written.
    pub fn forget_person<T: DeserializeOwned + Serialize + Clone>(
        self,
        database: &str,
        handles: &[(&str, bool)],
    ) -> anyhow::Result<()> {
        let is_about = |kept: &T| serde_json::to_value(kept).is_ok_and(|value| names(&value, handles));
        if self.load::<T>(database)?.iter().any(is_about) {
            self.change(database, |kept: &mut Vec<T>| kept.retain(|one| !is_about(one)))?;
        }
        Ok(())
    }
}

/// Characters from which a handle is looked for within words.
const LONG: usize = 4;

/// Whether a value names someone by one of some handles, in any case: as a text of its own, or where the handle says
/// so, within a text.
fn names(value: &Value, handles: &[(&str, bool)]) -> bool {
    match value {
        Value::String(text) => {
            let text = text.to_lowercase();
            handles.iter().any(|(handle, within)| {
                let handle = handle.to_lowercase();
                text == handle || *within && is_within(&text, &handle)
            })
        }
        Value::Array(items) => items.iter().any(|item| names(item, handles)),
        Value::Object(members) => members.values().any(|member| names(member, handles)),
        _ => false,
    }
}

/// Whether a text holds a handle; one that is short, or a number, as a word alone.
fn is_within(text: &str, handle: &str) -> bool {
    if handle.chars().count() >= LONG && !handle.bytes().all(|b| b.is_ascii_digit()) {
        return text.contains(handle);
    }
    is_word_in(text, handle, char::is_alphanumeric)
}

/// The name under which something is kept about a database: a file is the same however its path is written.
#[must_use]
pub fn place_of(database: &str) -> String {
    let plain = database.strip_prefix("sqlite://").or_else(|| database.strip_prefix("sqlite:")).unwrap_or(database);
    Path::new(plain).canonicalize().map_or_else(|_| database.to_owned(), |path| path.display().to_string())
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<Entry<T>>> {
    Ok(read_toml::<Page<T>>(path, MOST)?.map(|page| page.entries).unwrap_or_default())
}

/// Replaces the file as a whole: whoever reads it meanwhile sees the old one or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    private_file::replace(path, text.as_bytes())
}
