//! The user's editor, for looking at a row as a whole.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use crate::app::Failure;
use crate::ui::SafeText;

/// What shows the text where no editor is named.
const DEFAULT: &str = "less";

/// Shows a text in `$VISUAL` or `$EDITOR`, else `less`; returns when that is closed. The terminal must be given back
/// first. Dropped before its end, it ends the editor.
pub async fn view(ending: &str, text: &str) -> Result<(), Failure> {
    let command = ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok().filter(|v| !v.trim().is_empty()));
    let command = command.unwrap_or_else(|| DEFAULT.to_owned());
    let failed = |e: io::Error| {
        let mut failure = Failure::new("The editor was not opened", e.to_string(), "set VISUAL or EDITOR to an editor");
        failure.code = Some(command.clone());
        failure
    };
    let shown = Shown::write(ending, &visible(text)).map_err(failed)?;
    let mut words = command.split_whitespace();
    let mut editor = tokio::process::Command::new(words.next().unwrap_or(DEFAULT));
    editor.args(words).arg(&shown.0).kill_on_drop(true).status().await.map_err(failed)?;
    Ok(())
}

/// JSON whose hidden and dangerous characters are written as escapes.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let harmless = c == '\n' || matches!(c, ' '..='~');
        if harmless || !SafeText::new(c.encode_utf8(&mut [0; 4])).has_marks() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// A file that only its owner may read, there as long as this is.
struct Shown(PathBuf);

impl Shown {
    fn write(ending: &str, text: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("mnemoscope-{:016x}.{ending}", rand::random::<u64>()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let shown = Shown(path);
        file.write_all(text.as_bytes())?;
        Ok(shown)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_json_stays_json() {
        let json = serde_json::to_string_pretty(&serde_json::json!({"a": "x\u{202e}y\u{9b}é\u{e0041}"})).unwrap();
        let shown = visible(&json);
        assert!(shown.is_ascii() || shown.chars().all(|c| c.is_ascii() || c == 'é'), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        );
    }
}
