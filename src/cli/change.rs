//! The commands that change something: print a plan, or apply it and print the receipt.

mod lines;

use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::Value;

use super::change_args::{
    AuthorArgs, ChangeCommand, Doing, FeedbackArgs, FeedbackCommand, ProfileCommand, SignalArgs, SignalCommand,
};
use super::context::Session;
use super::failure::CommandFailure;
use super::{audit, output, policy};
use crate::change::operation::{FeedbackFields, ImportFormat};
use crate::change::purge::{ANCHOR_PROBLEM, KeptPlan};
use crate::change::{
    self, Author, ChangeError, Operation, Plan, Receipt, anchor, migrate::MigrationChoice, record, what_if,
};
use crate::ground::input_file::{self, InputError};
use crate::ground::private_file;
use crate::memory::nearest::unknown;
use crate::memory::utility::Signal;
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// Bytes that a plan file may have.
pub(super) const PLAN_BYTES: u64 = 64 << 20;

/// Bytes that one recorded memory may have.
const RECORD_BYTES: u64 = 4 << 20;

/// Runs a command that changes something.
pub async fn run(session: &Session<'_>, command: &ChangeCommand) -> Result<(), CommandFailure> {
    let (operation, doing) = match command {
        ChangeCommand::Feedback { command } => feedback(command)?,
        ChangeCommand::Signal(args) => signal(args)?,
        ChangeCommand::Link { child, parent, doing } => {
            (Operation::Link { child: child.clone(), parent: parent.clone() }, doing)
        }
        ChangeCommand::Unlink { child, doing } => (Operation::Unlink { child: child.clone() }, doing),
        ChangeCommand::Reward { case, value, outcome, doing } => {
            (Operation::Reward { case: case.clone(), reward: *value, outcome: outcome.clone() }, doing)
        }
        ChangeCommand::Profile { command: ProfileCommand::Set { id, window, doing } } => {
            (Operation::Window { profile: id.clone(), window: window_size(window)? }, doing)
        }
        ChangeCommand::Record { entity, file, doing } => {
            let known = Entity::parse(entity).filter(|entity| record::ENTITIES.contains(entity));
            let known = known.ok_or_else(|| {
                CommandFailure::usage(unknown("entity to record", entity, record::ENTITIES.map(Entity::name)))
            })?;
            (Operation::Record { entity: known, text: read_input(file, RECORD_BYTES)? }, doing)
        }
        ChangeCommand::Import { kind_of_file, file, skip_bad, doing } => {
            let name = file.display().to_string();
            match ImportFormat::parse(kind_of_file) {
                Some(ImportFormat::Jsonl) => return lines::import(session, file, *skip_bad, doing).await,
                Some(format) => {
                    let text = read_input(file, PLAN_BYTES)?;
                    (Operation::Import { format, name, text, skip_bad: *skip_bad }, doing)
                }
                None => {
                    let known = ImportFormat::ALL.map(ImportFormat::word);
                    return Err(CommandFailure::usage(unknown("format to import", kind_of_file, known)));
                }
            }
        }
        ChangeCommand::Prune(asked) => (Operation::Prune(asked.rules()), &asked.doing),
        ChangeCommand::Quarantine(asked) => (Operation::Quarantine { cases: asked.cases.clone() }, &asked.doing),
        ChangeCommand::Release(asked) => (Operation::Release { cases: asked.cases.clone() }, &asked.doing),
        ChangeCommand::Undo { seq, doing } => (Operation::Undo { seq: *seq }, doing),
        ChangeCommand::Hold { subject, doing } => {
            (Operation::Hold { person: subject.clone(), reason: doing.by.reason.clone() }, doing)
        }
        ChangeCommand::Unhold { subject, doing } => (Operation::Unhold { person: subject.clone() }, doing),
        ChangeCommand::Apply { file, by } => return apply_file(session, file, by).await,
        ChangeCommand::Migrate { apply, to, optional, by } => {
            let choice = MigrationChoice { to: *to, optional: optional.clone() };
            return super::migrate::run(session, *apply, &choice, &author(by)).await;
        }
        ChangeCommand::Policy { command } => return policy::run(session, command).await,
        ChangeCommand::Purge(args) => return super::purge::run(session, args).await,
        ChangeCommand::Audit { command } => return audit::run(session, command).await,
    };
    let store = session.store().await?;
    carry_out(session, &store, doing, &operation).await
}

fn feedback(command: &FeedbackCommand) -> Result<(Operation, &Doing), CommandFailure> {
    Ok(match command {
        FeedbackCommand::Add { episode, said, again, doing } => {
            let fields = FeedbackFields { again: *again, ..fields(said)? };
            (Operation::AddFeedback { episode: episode.clone(), fields }, doing)
        }
        FeedbackCommand::Edit { id, said, doing } => {
            (Operation::EditFeedback { id: id.clone(), fields: fields(said)? }, doing)
        }
        FeedbackCommand::Remove { id, doing } => (Operation::RemoveFeedback { id: id.clone() }, doing),
    })
}

fn fields(said: &FeedbackArgs) -> Result<FeedbackFields, CommandFailure> {
    let correction = match said.correction.as_deref() {
        Some("-") => Some(read_input(Path::new("-"), change::feedback::CORRECTION as u64)?),
        other => other.map(str::to_owned),
    };
    let (kind, user) = (said.kind.clone(), said.user.clone());
    Ok(FeedbackFields { kind, rating: said.rating, correction, user, ..FeedbackFields::default() })
}

fn signal(args: &SignalArgs) -> Result<(Operation, &Doing), CommandFailure> {
    if let Some(SignalCommand::Retract { id, doing }) = &args.command {
        if args.episode.is_some() || args.doing != Doing::default() {
            return Err(CommandFailure::usage("what `signal retract` is told follows it: `signal retract ID --apply`"));
        }
        return Ok((Operation::Retract { id: id.clone() }, doing));
    }
    let word = args.signal.as_deref().unwrap_or_default();
    let signal = Signal::parse(word).ok_or_else(|| {
        CommandFailure::usage(unknown("signal", word, Signal::ALL.iter().map(|signal| signal.word())))
    })?;
    let (episode, reason) = (args.episode.clone().unwrap_or_default(), args.doing.by.reason.clone());
    Ok((Operation::Signal { episode, signal, reason }, &args.doing))
}

/// Number of cases that a bank keeps; none for all.
fn window_size(text: &str) -> Result<Option<i64>, CommandFailure> {
    match text {
        "all" | "none" => Ok(None),
        number => number.parse().map(Some).map_err(|_| CommandFailure::usage("--window is a number, or `all`")),
    }
}

/// A file's text, or standard input's for `-`, up to a number of bytes.
pub(super) fn read_input(path: &Path, most: u64) -> Result<String, CommandFailure> {
    input_file::read_text(path, most).map_err(|error| unread(path, &error))
}

/// Why a file was not read.
fn unread(path: &Path, error: &InputError) -> CommandFailure {
    let words = format!("{}: {error}", path.display());
    match error {
        InputError::NotFound => CommandFailure::not_found(words),
        InputError::System(_) => CommandFailure::failed(words),
        _ => CommandFailure::usage(words),
    }
}

/// Who does it: as said, else from the environment.
pub(super) fn actor(by: &AuthorArgs) -> String {
    by.actor.clone().filter(|a| !a.trim().is_empty()).unwrap_or_else(login)
}

/// Who sits here, as the environment says.
pub(super) fn login() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let named = ["MNEMOSCOPE_ACTOR", "USER", "LOGNAME"].into_iter().find_map(variable);
    let account = || whoami::username().ok().filter(|name| !name.trim().is_empty());
    named.or_else(account).unwrap_or_else(|| "unknown".to_owned())
}

pub(super) fn author(by: &AuthorArgs) -> Author {
    Author { actor: actor(by), reason: by.reason.clone(), ticket: by.ticket.clone() }
}

/// Prints the plan, or applies it and prints the receipt.
pub(super) async fn carry_out(
    session: &Session<'_>,
    store: &Store,
    doing: &Doing,
    operation: &Operation,
) -> Result<(), CommandFailure> {
    let author = author(&doing.by);
    let plan = || change::plan(store, operation, &author);
    if doing.apply {
        let (planned, mut receipt) = change::plan_and_apply(store, &author, plan).await?;
        receipt.disclosures.extend(anchor::missed(store).await);
        if let Some(file) = &doing.plan_out {
            keep(file, &planned)?;
        }
        return print_receipt(session, &receipt);
    }
    let mut planned = plan().await?;
    match change::suppress::check(store, &planned).await {
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => planned
            .disclosures
            .push(format!("whether it brings back a person who was erased is not known: {reason}; {remedy}")),
        checked => checked?,
    }
    planned.reason.clone_from(&author.reason);
    planned.ticket.clone_from(&author.ticket);
    planned.plan_id = planned.digest();
    if let Some(file) = &doing.plan_out {
        keep(file, &planned)?;
    }
    let mut shown = planned.to_json();
    if doing.what_if {
        let kept = super::recall::kept(session, store).await;
        let found = what_if::of_plan(store, &planned, &kept, what_if::PATIENCE, &|_| {}).await?;
        shown["recall"] = serde_json::json!(found);
    }
    mask_changes(session, &mut shown);
    output::value(session.format(), &shown)?;
    if std::io::stderr().is_terminal() {
        output::tell("this is a plan, nothing was written; --apply does it");
    }
    Ok(())
}

/// Plans hold stored values: nobody else may read them.
fn keep(file: &Path, plan: &Plan) -> Result<(), CommandFailure> {
    keep_text(file, &plan.to_file())
}

/// Writes a plan's file, for its owner's eyes only.
pub(super) fn keep_text(file: &Path, text: &str) -> Result<(), CommandFailure> {
    if text.len() as u64 > PLAN_BYTES {
        return Err(CommandFailure::refused(format!(
            "{}: the plan is larger than a plan file may be ({} MB); --apply does it without one",
            file.display(),
            PLAN_BYTES >> 20
        )));
    }
    let written = private_file::replace(file, text.as_bytes());
    written.map_err(|e| CommandFailure::failed(format!("{}: the plan could not be kept: {e}", file.display())))
}

/// Keeps an anchor of the audit trail outside the database, as at the end of every session that wrote. What was done is
/// done, whether or not that works: why not stands in the receipt.
pub(super) async fn keep_anchor(store: &Store, receipt: &mut Value) {
    if let Some(words) = anchor::missed(store).await {
        receipt[ANCHOR_PROBLEM] = Value::from(words);
    }
}

async fn apply_file(session: &Session<'_>, file: &Path, by: &AuthorArgs) -> Result<(), CommandFailure> {
    let text = read_input(file, PLAN_BYTES)?;
    if let Some(kept) = KeptPlan::from_file(&text) {
        return super::purge::apply_kept(session, &kept?, &author(by)).await;
    }
    let plan = Plan::from_file(&text)?;
    let store = session.store().await?;
    let mut receipt = change::apply(&store, &plan, &author(by)).await?;
    receipt.disclosures.extend(anchor::missed(&store).await);
    print_receipt(session, &receipt)
}

fn print_receipt(session: &Session<'_>, receipt: &Receipt) -> Result<(), CommandFailure> {
    let mut shown = serde_json::to_value(receipt).unwrap_or_default();
    mask_changes(session, &mut shown);
    output::value(session.format(), &shown)
}

pub(super) fn mask_changes(session: &Session<'_>, shown: &mut Value) {
    let Some(mask) = session.mask() else { return };
    for change in shown["changes"].as_array_mut().into_iter().flatten() {
        let Some(entity) = change["entity"].as_str().and_then(Entity::parse) else { continue };
        for side in ["before", "after"] {
            let Some(object) = change[side].as_object_mut() else { continue };
            let mut row = Row::empty(entity);
            object.iter().for_each(|(column, value)| row.set(column, value.clone()));
            mask.row(&mut row);
            object.iter_mut().for_each(|(column, value)| *value = row.get(column).clone());
        }
    }
}
