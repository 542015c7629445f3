//! `purge`: the plan, the deletion with its receipt, and a later look at what a receipt says.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::purge_args::{AccountArg, MentionsArg, PurgeArgs};
use super::{Failure, Session, look};
use crate::change::purge::{self, Mentions, Options};

/// How often progress is said.
const OFTEN: Duration = Duration::from_millis(250);

/// Runs `purge`.
pub async fn run(session: &Session<'_>, args: &PurgeArgs) -> Result<(), Failure> {
    let options = options(args);
    let store = session.store().await?;
    let progress = Progress::new(session);
    let plan = purge::plan(&store, &args.subject, &options, &|table, values| progress.say(table, values)).await?;
    progress.end();
    look::print_value(session, &plan.to_json())
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
