//! Pruning banks, and holding cases back from recall.

use clap::Args;

use super::change::carry_out;
use super::change_args::Doing;
use super::{Failure, Session};
use crate::change::{prune, quarantine};
use crate::memory::prune::{Rules, Window};
use crate::memory::time;

/// What to prune, and by which rules. Without a rule, each bank's own window counts; a rule that is named applies alone.
#[derive(Debug, Clone, Args)]
pub struct Prune {
    /// Only banks of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Only banks of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Newest cases that each bank keeps, or `own` for each bank's own window beside the other rules.
    #[arg(long, value_name = "N|own", allow_negative_numbers = true, value_parser = window)]
    pub window: Option<Window>,
    /// Cases older than that: an age such as 90d, or a time.
    #[arg(long, value_name = "AGE")]
    pub older_than: Option<String>,
    /// Cases with a reward below that, 0 to 1.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub below_reward: Option<f64>,
    /// Cases whose message a newer case of the same bank has.
    #[arg(long)]
    pub duplicates: bool,
    /// Fill a window with cases that differ first.
    #[arg(long)]
    pub keep_diverse: bool,
    /// What to do.
    #[command(flatten)]
    pub doing: Doing,
}

/// Cases by their ids.
#[derive(Debug, Clone, Args)]
pub struct Cases {
    /// Their ids.
    #[arg(required = true, value_name = "CASE")]
    pub cases: Vec<String>,
    /// What to do.
    #[command(flatten)]
    pub doing: Doing,
}

fn window(text: &str) -> Result<Window, String> {
    match text {
        "own" => Ok(Window::Own),
        number => number.parse().map(Window::Newest).map_err(|_| "give a number of cases, or `own`".to_owned()),
    }
}

/// Prunes banks.
pub async fn run(session: &Session<'_>, asked: &Prune) -> Result<(), Failure> {
    let older_than = match &asked.older_than {
        Some(text) => Some(time::parse_moment(text, chrono::Utc::now()).ok_or_else(|| {
            Failure::usage(format!("--older-than {text}: give an age such as 90d or 12h, or a time such as 2026-02-04"))
        })?),
        None => None,
    };
    let ask = prune::Ask {
        user: asked.user.clone(),
        agent: asked.agent.clone(),
        window: asked.window.unwrap_or_default(),
        rules: Rules {
            older_than,
            below_reward: asked.below_reward,
            duplicates: asked.duplicates,
            keep_diverse: asked.keep_diverse,
        },
    };
    let store = session.store().await?;
    carry_out(session, &store, &asked.doing, || prune::plan(&store, &ask)).await
}

/// Holds cases back from recall, or lets them be recalled again.
pub async fn hold(session: &Session<'_>, asked: &Cases, held: bool) -> Result<(), Failure> {
    let store = session.store().await?;
    carry_out(session, &store, &asked.doing, || quarantine::hold(&store, &asked.cases, held)).await
}
