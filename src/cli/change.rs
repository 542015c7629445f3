//! The commands that change something: each states the change, and whether it is planned or applied.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::audit::AuditCommand;
use super::bank::{Cases, ProfileCommand, Prune};
use super::copy::CopyArgs;
use super::doing::{By, Doing, PLAN_BYTES, author, carry_out, print_receipt};
use super::edit::{EditArgs, MergeArgs, RemoveArgs, SupersedeArgs};
use super::feedback::FeedbackCommand;
use super::import::ImportArgs;
use super::input::read_input;
use super::jobs::JobsCommand;
use super::migrate::MigrateArgs;
use super::policy::PolicyCommand;
use super::purge::PurgeArgs;
use super::retain::RetainArgs;
use super::signal::SignalArgs;
use super::{CommandFailure, Session, audit, copy, import, jobs, look, migrate, policy, purge};
use crate::change::purge::KeptPlan;
use crate::change::{self, Operation, Plan, anchor};

/// Bytes that one recorded memory may have.
const RECORD_BYTES: u64 = 4 << 20;

/// The commands that change something.
#[derive(Debug, Subcommand)]
pub enum ChangeCommand {
    /// Add, edit or remove feedback, with id lists, back-links and aggregate.
    Feedback {
        #[command(subcommand)]
        command: FeedbackCommand,
    },
    /// Give an episode a utility signal, or retract one.
    Signal(SignalArgs),
    /// Make an episode follow another one in its chain.
    Link {
        /// The episode that follows.
        child: String,
        /// The episode it follows.
        parent: String,
        #[command(flatten)]
        doing: Doing,
    },
    /// Remove an episode's parent.
    Unlink {
        /// The episode.
        child: String,
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
        #[command(flatten)]
        doing: Doing,
    },
    /// Set columns of any row whose layout allows writing: edit memory ID text='window seats' importance=0.8
    Edit(EditArgs),
    /// Remove rows and what depends on them: remove memory ID ID
    Remove(RemoveArgs),
    /// Replace a memory with a new one; the old one stays, marked and linked: supersede ID --by 'he lives in Kiel'
    Supersede(SupersedeArgs),
    /// Merge copies into a memory: it gets their tags, sources and links, and they are removed: merge MEMORY COPY COPY
    Merge(MergeArgs),
    /// Add one row from JSON in canonical columns; an episode may include its vector as `embedding`, which finds its
    /// parent.
    Record {
        /// Kind of row, as in `list`.
        entity: String,
        /// The file; `-` for standard input.
        file: PathBuf,
        #[command(flatten)]
        doing: Doing,
    },
    /// Import trajectories, a case bank, or our own export. Rows that exist already stay as they are.
    Import(ImportArgs),
    /// Change a bank's settings.
    Profile {
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Copy rows of any layout into a native database: copy --from agent.db --to native.db --where 'user_id = ann'
    Copy(CopyArgs),
    /// Remove what retention rules no longer keep, for every kind of row: retain retention.toml --apply
    Retain(RetainArgs),
    /// Jobs without a console, for cron and systemd: jobs run --until-idle --metrics mnemoscope.prom
    Jobs {
        #[command(subcommand)]
        command: JobsCommand,
    },
    /// Remove cases from banks by window, age, reward and similarity, with what depends on them.
    Prune(Prune),
    /// Hold cases back from recall; nothing is deleted.
    Quarantine(Cases),
    /// Let cases be recalled again.
    Release(Cases),
    /// Undo the change of an audit entry.
    Undo {
        /// Number of the entry.
        seq: i64,
        #[command(flatten)]
        doing: Doing,
    },
    /// Apply a plan written with --plan-out, if nothing that it relies on has changed.
    Apply {
        /// The file; `-` for standard input.
        file: PathBuf,
        #[command(flatten)]
        by: By,
    },
    /// Show the migrations that this database lacks, or apply them.
    Migrate(MigrateArgs),
    /// Retrieval policies: list, train, activate, evaluate.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Erase a person: plan it, apply it with --apply, prove it; `purge verify RECEIPT` checks again later.
    Purge(Box<PurgeArgs>),
    /// Put a person under a legal hold: nothing of theirs is erased while it exists.
    Hold {
        /// The person: id, e-mail, name, session or profile.
        subject: String,
        #[command(flatten)]
        doing: Doing,
    },
    /// Lift a legal hold.
    Unhold {
        /// The person.
        subject: String,
        #[command(flatten)]
        doing: Doing,
    },
    /// The audit trail: list, verify, anchor, accept.
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
}

impl ChangeCommand {
    /// Whether it changes the database, or plans to; the others read.
    pub fn changes(&self) -> bool {
        !self.looks() && !matches!(self, ChangeCommand::Audit { .. })
    }

    /// Whether it only reads.
    pub fn looks(&self) -> bool {
        matches!(
            self,
            ChangeCommand::Audit { command: AuditCommand::List { .. } | AuditCommand::Verify { .. } }
                | ChangeCommand::Policy { command: PolicyCommand::List { .. } | PolicyCommand::Evaluate { .. } }
        )
    }
}

pub async fn run(session: &Session<'_>, command: &ChangeCommand) -> Result<(), CommandFailure> {
    let (operation, doing) = match command {
        ChangeCommand::Feedback { command } => command.operation()?,
        ChangeCommand::Signal(args) => args.operation()?,
        ChangeCommand::Link { child, parent, doing } => {
            (Operation::Link { child: child.clone(), parent: parent.clone() }, doing)
        }
        ChangeCommand::Unlink { child, doing } => (Operation::Unlink { child: child.clone() }, doing),
        ChangeCommand::Reward { case, value, outcome, doing } => {
            (Operation::Reward { case: case.clone(), reward: *value, outcome: outcome.clone() }, doing)
        }
        ChangeCommand::Profile { command } => command.operation()?,
        ChangeCommand::Record { entity, file, doing } => {
            (Operation::Record { entity: look::entity(entity)?, text: read_input(file, RECORD_BYTES)? }, doing)
        }
        ChangeCommand::Import(args) => return import::run(session, args).await,
        ChangeCommand::Edit(args) => args.operation()?,
        ChangeCommand::Remove(args) => args.operation()?,
        ChangeCommand::Supersede(args) => args.operation()?,
        ChangeCommand::Merge(args) => args.operation(),
        ChangeCommand::Copy(args) => return copy::run(session, args).await,
        ChangeCommand::Retain(args) => args.operation()?,
        ChangeCommand::Jobs { command } => return jobs::run(session, command).await,
        ChangeCommand::Prune(asked) => (Operation::Prune(asked.rules()), &asked.doing),
        ChangeCommand::Quarantine(asked) => (Operation::Quarantine { cases: asked.cases.clone() }, &asked.doing),
        ChangeCommand::Release(asked) => (Operation::Release { cases: asked.cases.clone() }, &asked.doing),
        ChangeCommand::Undo { seq, doing } => (Operation::Undo { seq: *seq }, doing),
        ChangeCommand::Hold { subject, doing } => {
            (Operation::Hold { person: subject.clone(), reason: doing.by.reason.clone() }, doing)
        }
        ChangeCommand::Unhold { subject, doing } => (Operation::Unhold { person: subject.clone() }, doing),
        ChangeCommand::Apply { file, by } => return apply_file(session, file, by).await,
        ChangeCommand::Migrate(args) => return migrate::run(session, args).await,
        ChangeCommand::Policy { command } => return policy::run(session, command).await,
        ChangeCommand::Purge(args) => return purge::run(session, args).await,
        ChangeCommand::Audit { command } => return audit::run(session, command).await,
    };
    let store = session.store().await?;
    carry_out(session, &store, doing, &operation).await
}

async fn apply_file(session: &Session<'_>, file: &Path, by: &By) -> Result<(), CommandFailure> {
    let text = read_input(file, PLAN_BYTES)?;
    if let Some(kept) = KeptPlan::from_file(&text) {
        return purge::apply_kept(session, &kept?, &author(by)).await;
    }
    let plan = Plan::from_file(&text)?;
    // It may be long.
    drop(text);
    let store = session.store().await?;
    let mut receipt = change::apply(&store, &plan, &author(by)).await?;
    receipt.disclosures.extend(anchor::missed(&store).await);
    print_receipt(session, &store, receipt)
}
