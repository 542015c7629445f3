//! Operator's settings: profiles of databases, and the folders for settings and state.

mod book;
pub mod desk;
pub mod fleet;
mod kept;
mod keys;

pub use book::place_of;
pub use kept::{Kept, muted};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::console::core::key_map::KeyBinding;
use crate::ground::input_file::{self, InputError, SETTINGS_BYTES};
use crate::ground::{password_command, private_file};

/// A named database with its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseProfile {
    /// Path, folder, URL, or libpq's connection words; empty if the profile names none. A password is better kept in
    /// `.pgpass` or PGPASSWORD.
    #[serde(default)]
    pub database: String,
    /// Synonym of `database` beside `read`; after loading it is only set if both are given, which is an error.
    pub write: Option<String>,
    /// A standby of `database`: rows are read from it, while plans and changes use `database`.
    pub read: Option<String>,
    /// Shell command whose first line of output is the server's password: `pass show memory`, `secret-tool lookup …`.
    /// It runs when the database is opened, and again if the server no longer accepts its output.
    pub password_command: Option<String>,
    /// Seconds to wait for a server's login, unless `database` sets them; 0 waits without a limit.
    pub connect_timeout: Option<u64>,
    /// Name or file of a layout, or a list of them, instead of recognition.
    #[serde(default, deserialize_with = "one_or_several")]
    pub layout: Vec<String>,
    /// Mask personal values by default.
    #[serde(default)]
    pub mask: bool,
    /// The database is important: the console shows that on every screen.
    #[serde(default)]
    pub production: bool,
    /// Endpoint that makes the vector of a text; without it no network is used, and texts are compared by keywords.
    pub embedding: Option<Embedding>,
}

/// An OpenAI-compatible endpoint for embeddings, local or not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Address, such as `http://localhost:11434/v1/embeddings`.
    pub url: String,
    /// Model: the one that made the stored vectors.
    pub model: String,
    /// Environment variable with the key; `None` if no key is needed.
    pub key_env: Option<String>,
    /// Seconds for everything, all tries included.
    #[serde(default = "five")]
    pub timeout_seconds: u64,
    /// Further tries after a failure that may pass.
    #[serde(default = "two")]
    pub retries: u32,
}

/// A text, or a list of texts.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "must be a text or a list of texts")]
    enum Named {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Named::deserialize(deserializer)? {
        Named::One(name) => vec![name],
        Named::Several(names) => names,
    })
}

impl DatabaseProfile {
    /// The server's password, from the profile's command; `None` if it has none. The command may ask on the terminal.
    ///
    /// # Errors
    /// The command cannot be run, fails, or prints nothing; no error contains its output.
    pub fn password(&self) -> anyhow::Result<Option<String>> {
        self.password_command.as_deref().map(password_command::password).transpose().map_err(|why| anyhow!(why))
    }
}

fn five() -> u64 {
    5
}

fn two() -> u32 {
    2
}

/// The settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Profile that is opened by default.
    pub default: Option<String>,
    /// Theme of the console: dark, light, contrast, mono, or a file of that name in `themes/` next to the settings
    /// file.
    pub theme: Option<String>,
    /// Draw with ASCII only.
    #[serde(default)]
    pub ascii: bool,
    /// Leave the mouse to the terminal.
    #[serde(default)]
    pub no_mouse: bool,
    /// Megabytes of vectors that the console caches between recalls; 256 by default, 0 disables the cache.
    pub vector_cache_mb: Option<u32>,
    /// Keys of console commands that replace the default ones.
    #[serde(default, deserialize_with = "keys::bound")]
    pub keys: Vec<KeyBinding>,
    /// Databases by name.
    #[serde(default)]
    pub profile: BTreeMap<String, DatabaseProfile>,
}

/// Bytes of a key.
const KEY_BYTES: u64 = 32;

/// Returns the path of the settings file: `$MNEMOSCOPE_CONFIG`, else `mnemoscope/config.toml` in the user's settings
/// folder.
pub fn path() -> Option<PathBuf> {
    match std::env::var_os("MNEMOSCOPE_CONFIG") {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(dirs::config_dir()?.join("mnemoscope").join("config.toml")),
    }
}

/// The operator's own layout files: `layouts/*.toml` next to the settings file, as path and text, sorted by name. An
/// unreadable one is left out.
pub fn layouts() -> Vec<(String, String)> {
    files_in("layouts")
}

/// The operator's own themes: `themes/*.toml` next to the settings file, as [`layouts`].
pub fn themes() -> Vec<(String, String)> {
    files_in("themes")
}

fn files_in(folder: &str) -> Vec<(String, String)> {
    let Some(folder) = path().and_then(|file| Some(file.parent()?.join(folder))) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    files.sort_unstable();
    let read = |file: PathBuf| Some((file.display().to_string(), input_file::read_text(&file, SETTINGS_BYTES).ok()?));
    files.into_iter().filter_map(read).collect()
}

/// Folder of the program's own state: `$MNEMOSCOPE_STATE`, else `mnemoscope` in the user's state folder.
pub fn state_folder() -> Option<PathBuf> {
    match std::env::var_os("MNEMOSCOPE_STATE") {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(dirs::state_dir().or_else(dirs::data_local_dir)?.join("mnemoscope")),
    }
}

/// Loads the settings; a missing file counts as an empty one.
///
/// # Errors
/// The error in the file, with its name.
pub fn load() -> anyhow::Result<Config> {
    let Some(path) = path() else { return Ok(Config::default()) };
    let Some(text) = read_text(&path, SETTINGS_BYTES)? else { return Ok(Config::default()) };
    let mut config: Config = parse_toml(&path, &text)?;
    config.keys.iter_mut().for_each(|bound| bound.line = line_at(&text, bound.line));
    for profile in config.profile.values_mut() {
        if profile.database.is_empty() {
            profile.database = profile.write.take().unwrap_or_default();
        }
    }
    Ok(config)
}

/// A TOML file of limited size; `None` if it does not exist.
///
/// # Errors
/// The error in the file, after its name and the line.
fn read_toml<T: DeserializeOwned>(path: &Path, most: u64) -> anyhow::Result<Option<T>> {
    read_text(path, most)?.map(|text| parse_toml(path, &text)).transpose()
}

fn read_text(path: &Path, most: u64) -> anyhow::Result<Option<String>> {
    match input_file::read_text(path, most) {
        Err(InputError::NotFound) => Ok(None),
        read => read.map(Some).with_context(|| path.display().to_string()),
    }
}

fn parse_toml<T: DeserializeOwned>(path: &Path, text: &str) -> anyhow::Result<T> {
    // The parser quotes the line, which may hold a password in a URL.
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |s| line_at(text, s.start));
        anyhow!("{}:{line}: {}", path.display(), e.message())
    })
}

/// The line, from 1, that a byte is in.
fn line_at(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count() + 1
}

/// Our own database for a palace folder.
pub fn companion(palace: &Path) -> Option<PathBuf> {
    use sha2::{Digest as _, Sha256};
    let real = palace.canonicalize().ok()?;
    let name = hex::encode(&Sha256::digest(real.as_os_str().as_encoded_bytes())[..8]);
    Some(state_folder()?.join("palaces").join(format!("{name}.db")))
}

/// Folder with the anchors of audit trails: outside every database.
pub fn anchor_folder() -> Option<PathBuf> {
    Some(state_folder()?.join("anchors"))
}

/// The key of the pseudonyms shown by `--mask`: created once and kept in the state folder, so that pseudonyms are
/// stable across runs and cannot be guessed from the values. If it cannot be saved, it is used for this run only.
pub fn mask_key() -> [u8; 32] {
    let path = state_folder().map(|f| f.join("mask.key"));
    let kept = path.as_ref().and_then(|p| input_file::read(p, KEY_BYTES).ok()).and_then(|bytes| bytes.try_into().ok());
    if let Some(key) = kept {
        return key;
    }
    let key: [u8; 32] = rand::random();
    if let Some(path) = path {
        let _ = keep_secret(&path, &key);
    }
    key
}

/// The key under which the handles of erased people are listed: created once, and kept only in the state folder, so
/// that the list in the database reveals nothing. `None` if it does not exist and `make` is false.
///
/// # Errors
/// It cannot be saved: without it the list would be useless.
pub fn erasure_key(make: bool) -> std::io::Result<Option<[u8; 32]>> {
    let Some(path) = state_folder().map(|f| f.join("erasure.key")) else {
        return Err(std::io::Error::other("there is no folder for it: set MNEMOSCOPE_STATE"));
    };
    key_at(&path, make)
}

fn key_at(path: &Path, make: bool) -> std::io::Result<Option<[u8; 32]>> {
    let damaged = || std::io::Error::other(format!("{} is damaged", path.display()));
    match input_file::read(path, KEY_BYTES) {
        // A run that was killed before it wrote a key: nothing was ever listed under it.
        Ok(bytes) if bytes.is_empty() && make => fill(path).map(Some),
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => bytes.try_into().map(Some).map_err(|_| damaged()),
        Err(InputError::TooLong(_)) => Err(damaged()),
        Err(InputError::NotFound) if !make => Ok(None),
        Err(InputError::NotFound) => {
            let key: [u8; 32] = rand::random();
            match keep_secret(path, &key) {
                Ok(()) => Ok(Some(key)),
                // Another run created it meanwhile.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => key_at(path, false),
                Err(e) => Err(e),
            }
        }
        Err(e) => Err(std::io::Error::other(format!("{}: {e}", path.display()))),
    }
}

/// Writes a key to an empty file. Concurrent runs wait for one another and agree on one key.
fn fill(path: &Path) -> std::io::Result<[u8; 32]> {
    let _turn = private_file::lock(&path.with_extension("lock"))?;
    let there = input_file::read(path, KEY_BYTES).unwrap_or_default();
    if !there.is_empty() {
        return there.try_into().map_err(|_| std::io::Error::other(format!("{} is damaged", path.display())));
    }
    let key: [u8; 32] = rand::random();
    private_file::replace(path, &key)?;
    Ok(key)
}

fn keep_secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        private_file::folder(folder)?;
    }
    private_file::create(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_key_file_gets_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("erasure.key");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(key_at(&path, false).unwrap(), None);
        let key = key_at(&path, true).unwrap().expect("a key");
        assert_eq!(key_at(&path, true).unwrap(), Some(key));
        assert_eq!(fill(&path).unwrap(), key, "a run that saw the empty file too");
        std::fs::write(&path, b"half").unwrap();
        assert!(key_at(&path, true).is_err());
    }
}
