//! Records about databases that the operator keeps outside of them: one readable file for each kind, in the state
//! folder.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{read_toml, state_folder};
use crate::ground::{database_url, private_file};
use crate::memory::name_words::is_word_in;

/// Most bytes of such a file.
const MOST: u64 = 4 << 20;

/// A kind of records, with its file's name and heading.
#[derive(Debug, Clone, Copy)]
pub struct Book {
    /// File in the state folder, without its ending.
    pub name: &'static str,
    /// First lines of the file, which describe it.
    pub heading: &'static str,
}

/// A record, with the database that it belongs to.
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
    pub fn path(self) -> Option<PathBuf> {
        Some(state_folder()?.join(format!("{}.toml", self.name)))
    }

    /// Loads the records of a database, which is named by its path or its URL without a password; in file order.
    ///
    /// # Errors
    /// The error in the file, with its name.
    pub fn load<T: DeserializeOwned>(self, database: &str) -> anyhow::Result<Vec<T>> {
        let Some(path) = self.path() else { return Ok(Vec::new()) };
        let database = place_of(database);
        let entries = read::<T>(&path)?.into_iter();
        Ok(entries.filter(|entry| entry.database == database).map(|entry| entry.kept).collect())
    }

    /// The single record of a database; `None` if there is none, or if it cannot be read.
    pub fn only<T: DeserializeOwned>(self, database: &str) -> Option<T> {
        self.load(database).unwrap_or_default().into_iter().next()
    }

    /// Saves a single record of a database in place of the old one. A failure is ignored: the record is then missing
    /// the next time.
    pub fn keep_only<T: DeserializeOwned + Serialize + Clone>(self, database: &str, one: &T) {
        let _ = self.change(database, |kept: &mut Vec<T>| *kept = vec![one.clone()]);
    }

    /// Changes the records of a database, and returns them.
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
        // Concurrent runs do not lose each other's changes.
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

    /// Deletes the records of a database that name someone by one of some handles. Each handle comes with whether it
    /// counts within a longer text.
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

/// Least characters of a handle that is found within words.
const LONG: usize = 4;

/// Whether a value names someone by one of some handles, in any case: as a whole text, or within a text for handles
/// that allow it.
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

/// Whether a text contains a handle; a short or numeric one only as a whole word.
fn is_within(text: &str, handle: &str) -> bool {
    if handle.chars().count() >= LONG && !handle.bytes().all(|b| b.is_ascii_digit()) {
        return text.contains(handle);
    }
    is_word_in(text, handle, char::is_alphanumeric)
}

/// The name of a database in records: a file has one name, however its path is written.
pub fn place_of(database: &str) -> String {
    let real = database_url::file(database, Path::new("")).ok().and_then(|path| path.canonicalize().ok());
    real.map_or_else(|| database.to_owned(), |path| path.display().to_string())
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<Entry<T>>> {
    Ok(read_toml::<Page<T>>(path, MOST)?.map(|page| page.entries).unwrap_or_default())
}

/// Replaces the file atomically: concurrent readers see the old one or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    private_file::replace(path, text.as_bytes())
}
