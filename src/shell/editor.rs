//! The user's editor, for viewing a copy of a whole row, and for editing a draft.

use std::env;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::console::core::{EditorEnd, RequestFailure};
use crate::ground::private_file;
use crate::ui::escaped;

/// Program that shows the text when no editor is named.
const DEFAULT: &str = "less";
/// The owner reads a copy, and does not mistake it for the row.
const READ_ONLY: u32 = 0o400;
/// The owner reads and writes.
const WRITABLE: u32 = 0o600;

/// Shows a copy of a text in `$VISUAL` or `$EDITOR`, else `less`, and waits until that is closed. The terminal must be
/// restored first. Dropping the future ends the editor.
pub async fn view(ending: &str, text: &str) -> Result<EditorEnd, RequestFailure> {
    let copy = EditedFile::write(ending, &escaped(text), READ_ONLY).map_err(|error| not_opened(&error))?;
    let written = || fs::metadata(&copy.path).and_then(|about| about.modified()).ok();
    let before = written();
    open(&copy.path).await?;
    Ok(if written() == before { EditorEnd::Read } else { EditorEnd::Changed })
}

/// Opens a text to be edited, as [`view`] does; its file stays.
pub async fn edit(ending: &str, text: &str) -> Result<EditorEnd, RequestFailure> {
    let mut made = EditedFile::write(ending, &escaped(text), WRITABLE).map_err(|error| not_opened(&error))?;
    made.stays = true;
    let opened = open(&made.path).await;
    made.stays = opened.is_ok();
    opened.map(|()| EditorEnd::Kept(made.path.display().to_string()))
}

/// Opens a file in the user's editor, and waits until that is closed.
async fn open(path: &Path) -> Result<(), RequestFailure> {
    let command = command();
    let mut words = command.split_whitespace();
    let mut editor = tokio::process::Command::new(words.next().unwrap_or(DEFAULT));
    let ended = editor.args(words).arg(path).kill_on_drop(true).status().await;
    ended.map(drop).map_err(|error| not_opened(&error))
}

fn command() -> String {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok().filter(|v| !v.trim().is_empty()));
    named.unwrap_or_else(|| DEFAULT.to_owned())
}

fn not_opened(error: &io::Error) -> RequestFailure {
    let remedy = "set VISUAL or EDITOR to an editor";
    RequestFailure {
        code: Some(command()),
        ..RequestFailure::new("The editor was not opened", error.to_string(), remedy)
    }
}

/// A file that only its owner may read. It is deleted on drop, unless it is to be kept.
struct EditedFile {
    path: PathBuf,
    stays: bool,
}

impl EditedFile {
    fn write(ending: &str, text: &str, mode: u32) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("mnemoscope-{:016x}.{ending}", rand::random::<u64>()));
        private_file::create(&path, text.as_bytes())?;
        let made = EditedFile { path, stays: false };
        fs::set_permissions(&made.path, Permissions::from_mode(mode))?;
        Ok(made)
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        if !self.stays {
            let _ = fs::remove_file(&self.path);
        }
    }
}
