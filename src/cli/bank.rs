//! Banks of cases: their windows, pruning, and cases held back from recall.

use clap::{Args, Subcommand};

use super::doing::Doing;
use super::failure::CommandFailure;
use crate::change::Operation;
use crate::change::operation::Pruning;
use crate::memory::prune::PruneWindow;

/// Cases to prune, and the rules to prune by. Without a rule, each bank's own window counts; a named rule applies
/// alone.
#[derive(Debug, Clone, Args)]
pub struct Prune {
    /// Only banks of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Only banks of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Newest cases that each bank keeps, or `own` for each bank's own window next to the other rules.
    #[arg(long, value_name = "N|own", allow_negative_numbers = true, value_parser = window)]
    pub window: Option<PruneWindow>,
    /// Cases older than this: an age such as 90d, or a time.
    #[arg(long, value_name = "AGE")]
    pub older_than: Option<String>,
    /// Cases with a reward below this, 0 to 1.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub below_reward: Option<f64>,
    /// Cases whose message a newer case of the same bank has.
    #[arg(long)]
    pub duplicates: bool,
    /// Fill a window with cases that differ first.
    #[arg(long)]
    pub keep_diverse: bool,
    #[command(flatten)]
    pub doing: Doing,
}

/// Cases by their ids.
#[derive(Debug, Clone, Args)]
pub struct Cases {
    /// Their ids.
    #[arg(required = true, value_name = "CASE")]
    pub cases: Vec<String>,
    #[command(flatten)]
    pub doing: Doing,
}

fn window(text: &str) -> Result<PruneWindow, String> {
    match text {
        "own" => Ok(PruneWindow::Own),
        number => number.parse().map(PruneWindow::Newest).map_err(|_| "give a number of cases, or `own`".to_owned()),
    }
}

impl Prune {
    pub fn rules(&self) -> Pruning {
        Pruning {
            user: self.user.clone(),
            agent: self.agent.clone(),
            window: self.window.unwrap_or_default(),
            older_than: self.older_than.clone(),
            below_reward: self.below_reward,
            duplicates: self.duplicates,
            keep_diverse: self.keep_diverse,
        }
    }
}

/// Commands on profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Set how many of its newest cases a bank keeps.
    Set {
        /// Id of the case bank.
        id: String,
        /// Number of cases; `all` keeps every one.
        #[arg(long, allow_negative_numbers = true)]
        window: String,
        #[command(flatten)]
        doing: Doing,
    },
}

impl ProfileCommand {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        let ProfileCommand::Set { id, window, doing } = self;
        let window = match window.as_str() {
            "all" | "none" => None,
            number => Some(number.parse().map_err(|_| CommandFailure::usage("--window is a number, or `all`"))?),
        };
        Ok((Operation::Window { profile: id.clone(), window }, doing))
    }
}
