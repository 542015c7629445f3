//! The real program in a pseudo-terminal: how it lives and ends there, and that no stored text acts on the terminal.
#![cfg(target_os = "linux")]

#[path = "pty/bytes.rs"]
mod bytes;
#[path = "pty/harm.rs"]
mod harm;
#[path = "pty/hostile.rs"]
mod hostile;
#[path = "pty/life.rs"]
mod life;
#[path = "pty/terminal.rs"]
mod terminal;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use terminal::{Launch, Session};

/// A folder with a small demo database.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self::of(60)
    }

    fn of(episodes: u32) -> Self {
        let place = Place { folder: TempDir::new().unwrap() };
        let made = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
            .args(["demo", "--episodes", &episodes.to_string(), "--no-console", "--quiet"])
            .arg(place.database())
            .env("MNEMOSCOPE_CONFIG", place.folder().join("config.toml"))
            .status()
            .unwrap();
        assert!(made.success());
        place
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn database(&self) -> PathBuf {
        self.folder().join("demo.db")
    }

    fn launch(&self) -> Launch {
        Launch::mnemoscope(self.folder(), &["console", "demo.db", "--theme", "dark"])
    }

    /// The console, with the list of episodes and the details of its first row to be seen.
    fn opened(&self) -> Session {
        let session = self.launch().start();
        at_episodes(&session);
        session
    }
}

/// Goes to the list of episodes and waits for its rows and the first one's details.
fn at_episodes(session: &Session) {
    session.shows("newest");
    session.send("2");
    session.shows("row 1 of");
    session.shows("situation");
}

/// The console ended by itself or by a signal: with that code, the terminal as it was.
fn has_ended(session: &mut Session, code: u32) -> Vec<u8> {
    let (ended, raw) = session.end();
    assert_eq!(ended, code, "exit code; on the screen: {}", session.seen().text());
    session.is_given_back();
    raw
}
