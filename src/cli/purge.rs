//! `purge`: the plan, the deletion with its receipt, and a later look at what a receipt says.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::change::author;
use super::purge_args::{AccountArg, MentionsArg, PurgeArgs};
use super::{Failure, Session, look};
use crate::change::Author;
use crate::change::purge::{self, Desk, Mentions, Options, Progress as Say};
use crate::config;
use crate::store::Store;

/// How often progress is said.
const OFTEN: Duration = Duration::from_millis(250);

/// Runs `purge`.
pub async fn run(session: &Session<'_>, args: &PurgeArgs) -> Result<(), Failure> {
    if let Some(receipt) = &args.receipt {
        return Err(Failure::usage(format!("`purge {} {receipt}` means nothing; `purge verify RECEIPT` does", args.subject)));
    }
    let options = options(args);
    let store = session.store().await?;
    let progress = Progress::new(session);
    if args.doing.apply || args.resume {
        return carry_out(session, args, &store, &options, &progress).await;
    }
    let plan = purge::plan(&store, &args.subject, &options, &|table, values| progress.say(table, values)).await?;
    progress.end();
    look::print_value(session, &plan.to_json())
}

async fn carry_out(
    session: &Session<'_>,
    args: &PurgeArgs,
    store: &Store,
    options: &Options,
    progress: &Progress,
) -> Result<(), Failure> {
    let author = author(&args.doing.by);
    let say = |what: &str, count: u64| progress.say(what, count);
    let receipt = purge::run(store, &args.subject, options, args.resume, &desk(&author, &say)?, None).await?;
    progress.end();
    look::print_value(session, &receipt)?;
    if receipt["status"] == "incomplete" {
        let reasons: Vec<&str> = receipt["incomplete"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let message = format!("the purge is incomplete: {}; --resume goes on with it", reasons.join("; "));
        return Err(Failure { code: 6, message });
    }
    Ok(())
}

/// The key of the suppression list and the folder for sessions and receipts.
fn desk<'a>(author: &'a Author, progress: Say<'a>) -> Result<Desk<'a>, Failure> {
    let kept = |e: &dyn std::fmt::Display| Failure::refused(format!("the key of the suppression list cannot be kept: {e}"));
    let key = config::erasure_key(true).map_err(|e| kept(&e))?.ok_or_else(|| kept(&"it was not made"))?;
    let folder = config::state_folder().ok_or_else(|| kept(&"there is no state folder: set MNEMOSCOPE_STATE"))?;
    Ok(Desk { folder, key, author, progress })
}

fn options(args: &PurgeArgs) -> Options {
    Options {
        aliases: args.alias.clone(),
        mentions: match args.mentions {
            MentionsArg::Leave => Mentions::Leave,
            MentionsArg::Redact => Mentions::Redact,
            MentionsArg::Delete => Mentions::Delete,
        },
        account: args.account == AccountArg::Erase,
        full: args.full,
    }
}

/// Progress on a terminal's standard error.
pub struct Progress {
    shown: bool,
    last: Mutex<Option<Instant>>,
}

impl Progress {
    /// Progress, unless it is not wanted or nobody would see it.
    #[must_use]
    pub fn new(session: &Session<'_>) -> Self {
        let global = session.global();
        let shown = !global.no_progress && !global.quiet && std::io::stderr().is_terminal();
        Progress { shown, last: Mutex::new(None) }
    }

    /// Says where the work is.
    pub fn say(&self, what: &str, count: u64) {
        let Ok(mut last) = self.last.lock() else { return };
        if !self.shown || last.is_some_and(|at| at.elapsed() < OFTEN) {
            return;
        }
        *last = Some(Instant::now());
        let _ = write!(std::io::stderr(), "\r\x1b[K{} {count}", crate::ui::text::SafeText::new(what));
    }

    /// Takes the line away.
    pub fn end(&self) {
        if self.shown && self.last.lock().is_ok_and(|last| last.is_some()) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
