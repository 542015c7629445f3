//! The commands that change something, with their options and help.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::prune::{Cases, Prune};

/// What to do with a plan, and who does it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Doing {
    /// Do it and print the receipt; without it the plan is printed and nothing is written.
    #[arg(long)]
    pub apply: bool,
    /// Keep the plan in a file, for `apply FILE`.
    #[arg(long, value_name = "FILE")]
    pub plan_out: Option<PathBuf>,
    /// Say with the plan which recalls would change: recent situations ranked before and after.
    #[arg(long)]
    pub what_if: bool,
    /// Who does it, and why.
    #[command(flatten)]
    pub by: AuthorArgs,
}

/// Who does it, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct AuthorArgs {
    /// Reason, kept among the private values of the audit entry.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Ticket that asks for it.
    #[arg(long, value_name = "ID")]
    pub ticket: Option<String>,
    /// Name for the audit trail; MNEMOSCOPE_ACTOR or the login name when not said.
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
}

/// What a feedback row says.
#[derive(Debug, Clone, Args)]
pub struct FeedbackArgs {
    /// thumbs_up, thumbs_down or rating.
    #[arg(long)]
    pub kind: Option<String>,
    /// 1 to 5, with --kind rating.
    #[arg(long, allow_negative_numbers = true)]
    pub rating: Option<i64>,
    /// What the user would have wanted; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub correction: Option<String>,
    /// Who said it; the episode's user when not said.
    #[arg(long)]
    pub user: Option<String>,
}

/// Commands on feedback.
#[derive(Debug, Subcommand)]
pub enum FeedbackCommand {
    /// Add feedback to an episode.
    Add {
        /// The episode's id.
        episode: String,
        /// What it says.
        #[command(flatten)]
        said: FeedbackArgs,
        /// Add it although the episode has the same feedback by the same person already.
        #[arg(long)]
        again: bool,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Change what a feedback row says.
    Edit {
        /// Its id.
        id: String,
        /// What it says instead.
        #[command(flatten)]
        said: FeedbackArgs,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Take a feedback row away.
    Remove {
        /// Its id.
        id: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
}

/// Commands on profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Set how many of its newest cases a bank keeps.
    Set {
        /// Its id.
        id: String,
        /// Number of cases; `all` keeps every one.
        #[arg(long, allow_negative_numbers = true)]
        window: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
}

/// Commands on retrieval policies that change something.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List versions with their weights, metrics and which one is in use.
    List {
        /// Of this bank only.
        #[arg(long, value_name = "ID")]
        bank: Option<String>,
    },
    /// Train a new version of a bank's policy; it is stored with the status `training` and never used by itself.
    #[command(after_help = PAIRS)]
    Train {
        /// The bank's id (`list profile`).
        bank: String,
        /// Pairs to learn from; what the bank's own cases recalled when not said. `-` is standard input.
        #[arg(long, value_name = "FILE")]
        pairs: Option<PathBuf>,
        /// Seed of the split into training and held-out queries: the same seed gives the same weights.
        #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
        seed: u64,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Put a version to use; the others stay.
    Activate {
        /// The version's id.
        id: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Measure a version on pairs: AUC, Brier score, calibration, loss, with intervals by drawing queries again.
    #[command(after_help = PAIRS)]
    Evaluate {
        /// The version's id. Without one: the versions in use on the banks' own pairs; on given pairs, what a policy
        /// trained on them is worth.
        id: Option<String>,
        /// Pairs to measure by; what the banks' own cases recalled when not said. `-` is standard input.
        #[arg(long, value_name = "FILE")]
        pairs: Option<PathBuf>,
        /// Seed of splits and intervals.
        #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
        seed: u64,
    },
}

const PAIRS: &str = "A file of pairs holds JSON lines with `query`, `case` and `truth_label` (or `label`: true, false, 1, 0), \
and, where known, `case_label` (positive, negative), `reward` and `plan`. Pairs of which nothing can be learned (none, or all \
of one kind) are refused with exit code 5, a line that is no pair with exit code 2.";

/// Commands on the audit trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first.
    List {
        /// Entries at most.
        #[arg(long, default_value_t = 50, value_parser = super::options::at_least_one())]
        limit: usize,
        /// Only entries before this number.
        #[arg(long, value_name = "SEQ")]
        before: Option<i64>,
    },
    /// Check the whole chain, and that it still holds what the anchors saw that were kept in the state folder.
    Verify {
        /// File that `audit anchor` wrote, looked at as well.
        #[arg(long, value_name = "FILE")]
        anchor: Option<PathBuf>,
    },
    /// Write down where the chain stands, in a file outside the database.
    Anchor {
        /// The file; a line is added.
        file: PathBuf,
    },
    /// Accept that the database was replaced, restored or copied on purpose: anchors that do not fit end, and stay on record.
    Accept {
        /// Why it is another one now; kept with the anchors that end and in the trail.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Name for the audit trail; MNEMOSCOPE_ACTOR or the login name when not said.
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
}

/// A signal that is given, unless one is taken back.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct SignalArgs {
    /// The episode's id; after `--` also one that is called `retract`.
    #[arg(required = true)]
    pub episode: Option<String>,
    /// confirmed, corrected, rejected, undone or ignored.
    #[arg(required = true)]
    pub signal: Option<String>,
    /// What to do.
    #[command(flatten)]
    pub doing: Doing,
    /// What else to do with signals.
    #[command(subcommand)]
    pub command: Option<SignalCommand>,
}

/// What is done with signals that are there.
#[derive(Debug, Subcommand)]
pub enum SignalCommand {
    /// Take a signal back: the utility is what the history without it gives.
    Retract {
        /// The signal's id.
        id: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
}

/// The commands that change something.
#[derive(Debug, Subcommand)]
pub enum ChangeCommand {
    /// Add, edit or remove feedback, with id lists, back-links and aggregate.
    Feedback {
        /// What to do.
        #[command(subcommand)]
        command: FeedbackCommand,
    },
    /// Give an episode a utility signal, or take one back.
    Signal(SignalArgs),
    /// Make an episode follow another one in its chain.
    Link {
        /// The episode that follows.
        child: String,
        /// The episode it follows.
        parent: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Take an episode's parent away.
    Unlink {
        /// The episode.
        child: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Set the reward of a case, and its outcome.
    Reward {
        /// The case's id.
        case: String,
        /// From 0 to 1.
        #[arg(allow_negative_numbers = true)]
        value: f64,
        /// success, partial, failure or aborted.
        #[arg(long)]
        outcome: Option<String>,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Add one curated memory from JSON in canonical columns; an episode may come with its vector as `embedding`, by
    /// which its parent is found.
    Record {
        /// episode or case.
        entity: String,
        /// The file; `-` for standard input.
        file: PathBuf,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Import trajectories, a case bank, or our own export. What is there already stays as it is.
    Import {
        /// tau-bench, memento or jsonl.
        #[arg(value_name = "FORMAT")]
        kind_of_file: String,
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Leave out what cannot be read.
        #[arg(long)]
        skip_bad: bool,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Change a bank's settings.
    Profile {
        /// What to do.
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Take cases out of banks by window, age, reward and likeness, with what hangs on them.
    Prune(Prune),
    /// Hold cases back from recall; nothing is deleted.
    Quarantine(Cases),
    /// Let cases be recalled again.
    Release(Cases),
    /// Take back the change of an audit entry.
    Undo {
        /// Number of the entry.
        seq: i64,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Execute a plan kept with --plan-out, if the world has not moved.
    Apply {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Who does it, and why.
        #[command(flatten)]
        by: AuthorArgs,
    },
    /// Show the migrations that this database lacks, or apply them.
    Migrate {
        /// Apply them.
        #[arg(long)]
        apply: bool,
        /// Only up to this number.
        #[arg(long, value_name = "N")]
        to: Option<i64>,
        /// An optional one by its name too; may be repeated.
        #[arg(long, value_name = "NAME")]
        optional: Vec<String>,
        /// Who does it, and why.
        #[command(flatten)]
        by: AuthorArgs,
    },
    /// Retrieval policies: list, train, activate, evaluate.
    Policy {
        /// What to do.
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Erase a person: plan it, do it with --apply, prove it; `purge verify RECEIPT` looks again later.
    Purge(Box<super::purge_args::PurgeArgs>),
    /// Put a person under a legal hold: nothing of theirs is erased while it stands.
    Hold {
        /// The person: id, e-mail, name, session or profile.
        subject: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// Take a legal hold away.
    Unhold {
        /// The person.
        subject: String,
        /// What to do.
        #[command(flatten)]
        doing: Doing,
    },
    /// The audit trail: list, verify, anchor, accept.
    Audit {
        /// What to do.
        #[command(subcommand)]
        command: AuditCommand,
    },
}

impl ChangeCommand {
    /// Whether it changes the database, or plans to; the others read.
    #[must_use]
    pub fn changes(&self) -> bool {
        !matches!(
            self,
            ChangeCommand::Audit { .. }
                | ChangeCommand::Policy { command: PolicyCommand::List { .. } | PolicyCommand::Evaluate { .. } }
        )
    }
}
