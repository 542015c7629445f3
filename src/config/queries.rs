//! Questions to recall that the operator kept under names: one readable file of the user's own, never the database.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::state_folder;
use crate::ground::input_file::{self, InputError};
use crate::ground::private_file;
use crate::recall::inquiry::SavedQuestion;

/// Bytes that the file may have.
const MOST: u64 = 4 << 20;

const HEADING: &str = "# Questions that were kept in mnemoscope; their texts may be personal.\n\n";

/// A question with the database that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct QuestionEntry {
    database: String,
    #[serde(flatten)]
    saved: SavedQuestion,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Book {
    #[serde(default)]
    query: Vec<QuestionEntry>,
}

/// Where kept questions are: `queries.toml` in the state folder.
#[must_use]
pub fn path() -> Option<PathBuf> {
    Some(state_folder()?.join("queries.toml"))
}

/// The questions kept for a database, which is named by its path or its URL without a password; by name.
///
/// # Errors
/// What is wrong with the file, with its name.
pub fn load(database: &str) -> Result<Vec<SavedQuestion>, String> {
    let Some(path) = path() else { return Ok(Vec::new()) };
    read(&path).map(|book| of(&book, &key(database)))
}

/// Keeps a question, in the place of one with the same name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn save(database: &str, saved: &SavedQuestion) -> Result<Vec<SavedQuestion>, String> {
    change(database, |book, database| {
        book.query.retain(|entry| entry.database != database || entry.saved.name != saved.name);
        book.query.push(QuestionEntry { database: database.to_owned(), saved: saved.clone() });
    })
}

/// Forgets the question of that name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn forget(database: &str, name: &str) -> Result<Vec<SavedQuestion>, String> {
    change(database, |book, database| {
        book.query.retain(|entry| entry.database != database || entry.saved.name != name);
    })
}

fn change(database: &str, edit: impl FnOnce(&mut Book, &str)) -> Result<Vec<SavedQuestion>, String> {
    let path = path().ok_or("there is no folder to keep questions in: set MNEMOSCOPE_STATE")?;
    let database = key(database);
    let mut book = read(&path)?;
    edit(&mut book, &database);
    book.query.sort_by(|a, b| (&a.database, &a.saved.name).cmp(&(&b.database, &b.saved.name)));
    let text = toml::to_string_pretty(&book).map_err(|e| format!("{}: {e}", path.display()))?;
    write(&path, &format!("{HEADING}{text}")).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(of(&book, &database))
}

fn of(book: &Book, database: &str) -> Vec<SavedQuestion> {
    let mut found: Vec<SavedQuestion> =
        book.query.iter().filter(|entry| entry.database == database).map(|entry| entry.saved.clone()).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// A file is the same however its path is written.
fn key(database: &str) -> String {
    let plain = database.strip_prefix("sqlite:").unwrap_or(database);
    Path::new(plain).canonicalize().map_or_else(|_| database.to_owned(), |path| path.display().to_string())
}

fn read(path: &Path) -> Result<Book, String> {
    let text = match input_file::read_text(path, MOST) {
        Ok(text) => text,
        Err(InputError::NotFound) => return Ok(Book::default()),
        Err(e) => return Err(format!("{}: {e}", path.display())),
    };
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        format!("{}:{line}: {}", path.display(), e.message())
    })
}

/// Replaces the file as a whole: whoever reads it meanwhile sees the old one or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    private_file::folder(path.parent().unwrap_or(Path::new(".")))?;
    private_file::replace(path, text.as_bytes())
}
