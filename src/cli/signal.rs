//! `signal`: gives an episode a utility signal, or retracts one.

use clap::{Args, Subcommand};

use super::doing::Doing;
use super::failure::CommandFailure;
use crate::change::Operation;
use crate::memory::nearest::unknown;
use crate::memory::utility::Signal;

/// A signal that is given, unless one is taken back.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct SignalArgs {
    /// The episode's id; one called `retract` must follow `--`.
    #[arg(required = true)]
    pub episode: Option<String>,
    /// confirmed, corrected, rejected, undone or ignored.
    #[arg(required = true)]
    pub signal: Option<String>,
    #[command(flatten)]
    pub doing: Doing,
    #[command(subcommand)]
    pub command: Option<SignalCommand>,
}

/// Actions on signals that exist already.
#[derive(Debug, Subcommand)]
pub enum SignalCommand {
    /// Retract a signal: the utility is replayed without it.
    Retract {
        /// The signal's id.
        id: String,
        #[command(flatten)]
        doing: Doing,
    },
}

impl SignalArgs {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        if let Some(SignalCommand::Retract { id, doing }) = &self.command {
            if self.episode.is_some() || self.doing != Doing::default() {
                return Err(CommandFailure::usage(
                    "options of `signal retract` go after it: `signal retract ID --apply`",
                ));
            }
            return Ok((Operation::Retract { id: id.clone() }, doing));
        }
        let word = self.signal.as_deref().unwrap_or_default();
        let signal = Signal::parse(word).ok_or_else(|| {
            CommandFailure::usage(unknown("signal", word, Signal::ALL.iter().map(|signal| signal.word())))
        })?;
        let (episode, reason) = (self.episode.clone().unwrap_or_default(), self.doing.by.reason.clone());
        Ok((Operation::Signal { episode, signal, reason, feedback: None }, &self.doing))
    }
}
