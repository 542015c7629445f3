//! An operator's command that prints a server's password in its first line.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Time limit of the command when it cannot ask questions.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the command, which may ask on the terminal.
///
/// # Errors
/// It cannot be run, fails, or prints nothing; no error contains its output.
pub fn password(command: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
    printed(&output.map_err(|error| format!("`password_command` cannot be run: {error}"))?)
}

/// Runs the command again while the terminal is in use; `None` if it gives no password.
pub async fn password_again(command: &str) -> Option<String> {
    let mut run = tokio::process::Command::new("sh");
    run.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, run.output()).await.ok()?.ok()?;
    printed(&output).ok()
}

fn printed(output: &Output) -> Result<String, String> {
    if !output.status.success() {
        return Err(format!("`password_command` failed: {}", output.status));
    }
    let text = std::str::from_utf8(&output.stdout).map_err(|_| "`password_command` did not print UTF-8")?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() { Err("`password_command` printed nothing".to_owned()) } else { Ok(password.to_owned()) }
}
