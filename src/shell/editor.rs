//! The user's editor, for looking at a row as a whole.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::console::core::RequestFailure;
use crate::ground::private_file;
use crate::ui::escaped;

/// Program that shows the text when no editor is named.
const DEFAULT: &str = "less";

/// Shows a text in `$VISUAL` or `$EDITOR`, else `less`; returns when that is closed. The terminal must be given back
/// first. Dropped before its end, it ends the editor.
pub async fn view(ending: &str, text: &str) -> Result<(), RequestFailure> {
    let command = ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok().filter(|v| !v.trim().is_empty()));
    let command = command.unwrap_or_else(|| DEFAULT.to_owned());
    let failed = |e: io::Error| {
        let mut failure =
            RequestFailure::new("The editor was not opened", e.to_string(), "set VISUAL or EDITOR to an editor");
        failure.code = Some(command.clone());
        failure
    };
    let shown = EditedFile::write(ending, &escaped(text)).map_err(failed)?;
    let mut words = command.split_whitespace();
    let mut editor = tokio::process::Command::new(words.next().unwrap_or(DEFAULT));
    editor.args(words).arg(&shown.0).kill_on_drop(true).status().await.map_err(failed)?;
    Ok(())
}

/// A file that only its owner may read, there as long as this is.
struct EditedFile(PathBuf);

impl EditedFile {
    fn write(ending: &str, text: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("mnemoscope-{:016x}.{ending}", rand::random::<u64>()));
        private_file::create(&path, text.as_bytes())?;
        Ok(EditedFile(path))
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
