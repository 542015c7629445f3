//! `demo`: makes the demo database.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Utc;
use clap::Args;

use super::failure::CommandFailure;
use super::options::Global;
use crate::change::anchor;
use crate::config;
use crate::demo::{self, DemoOptions, DemoProgress};
use crate::ground::server_words::is_server;
use crate::ground::unfinished::EndWithoutRemains;
use crate::memory::{agreeing, time};
use crate::store::bulk;
use crate::ui::text::SafeText;

/// Options of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// File to create [default: in the state folder].
    path: Option<PathBuf>,
    /// Number of episodes; everything else is in proportion.
    #[arg(long, default_value_t = DemoOptions::default().episodes)]
    episodes: u64,
    /// Number of episodes that have a vector, the newest ones; needs a file.
    #[arg(long, requires = "path", default_value_t = DemoOptions::default().vectors)]
    vectors: u64,
    /// Seed: the same seed gives the same database, as long before its end.
    #[arg(long, default_value_t = DemoOptions::default().seed)]
    seed: u64,
    /// Time at which the demo's story ends: RFC 3339 or an age [default: now].
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

impl Default for DemoArgs {
    /// The usual demo, in the state folder, up to now.
    fn default() -> DemoArgs {
        let DemoOptions { episodes, vectors, seed, .. } = DemoOptions::default();
        DemoArgs { path: None, episodes, vectors, seed, at: None }
    }
}

/// Age at which the demo in the state folder is made again, counted from its last change, so that its newest episode is
/// recent.
const FRESH: Duration = Duration::from_hours(24);

/// Makes the demo database and returns its path. The same seed tells the same story, relative to its end. Without a
/// path it is in the state folder, where it is made at most once a day.
pub async fn make(asked: &DemoArgs, global: &Global) -> Result<PathBuf, CommandFailure> {
    let DemoArgs { episodes, vectors, seed, .. } = *asked;
    let now = Utc::now();
    let anchor = match &asked.at {
        Some(text) => time::parse_moment(text, now).and_then(|at| at.parse().ok()).ok_or_else(|| {
            CommandFailure::usage(format!("--at: `{text}` is not a time; give RFC 3339 or an age such as 30d"))
        })?,
        None => now,
    };
    let mut options = DemoOptions { episodes, vectors, seed, anchor, ..DemoOptions::default() };
    let path = if let Some(path) = &asked.path {
        if path.to_str().is_some_and(is_server) {
            return Err(CommandFailure::usage(
                "`demo` creates an SQLite file, not a database on a server: name a file",
            ));
        }
        path.clone()
    } else {
        let path = default_path(episodes, seed)?;
        if is_recent(&path) && asked.at.is_none() {
            return Ok(path);
        }
        options.existing = bulk::ExistingTarget::Replace;
        path
    };
    let shows = std::io::stderr().is_terminal() && !global.no_progress && !global.quiet;
    let mut last = u64::MAX;
    let without_remains = EndWithoutRemains::begin();
    let made = demo::build(&path, &options, |progress| {
        let (words, percent) = match progress {
            DemoProgress::Rows { episodes, of } => ("writing episodes", episodes * 100 / of.max(1)),
            DemoProgress::Indexes { done, of } => ("building indexes", (done * 100 / of.max(1)) as u64),
        };
        if shows && percent != last {
            let _ = write!(io::stderr(), "\r{words} {percent:3} %");
            last = percent;
        }
    })
    .await;
    drop(without_remains);
    if shows {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let summary = made.map_err(|error| match error {
        bulk::BulkError::Exists(_) => {
            CommandFailure::failed(format!("{error} and is not overwritten: open it with `mnemoscope PATH`, name another file, or remove it and run this \
                 again, which ends the anchors of its trail and keeps them on record"))
        }
        other => CommandFailure::failed(other.to_string()),
    })?;
    if let Some(folder) = config::anchor_folder() {
        let made = anchor::made_again(&folder, &path, &super::doing::login(), "the demo was created again");
        made.map_err(|error| CommandFailure::failed(error.to_string()))?;
    }
    if !global.quiet {
        let rows: u64 = summary.rows.iter().map(|(_, n)| n).sum();
        let megabytes = summary.bytes as f64 / f64::from(1 << 20);
        let place = SafeText::new(&path.display().to_string());
        let episodes = agreeing(episodes, "{#} {episode|episodes}");
        let rows = agreeing(rows, "{#} {row|rows} in all");
        super::output::tell(&format!("{place}: {episodes}, {rows}, {megabytes:.1} MB"));
    }
    Ok(path)
}

/// Whether the demo was made or used within a day: its story ends at that time.
fn is_recent(path: &Path) -> bool {
    let changed = std::fs::metadata(path).and_then(|about| about.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH))
}

fn default_path(episodes: u64, seed: u64) -> Result<PathBuf, CommandFailure> {
    let folder = config::state_folder().ok_or_else(|| {
        CommandFailure::usage("there is no home folder to keep the demo in: name a file, `demo PATH`")
    })?;
    std::fs::create_dir_all(&folder).map_err(|e| CommandFailure::failed(format!("{}: {e}", folder.display())))?;
    Ok(folder.join(format!("demo-{episodes}-{seed}.db")))
}
