//! Handles a plan: shows it, writes it to a file, or applies it; and names the author of the change.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::{CommandFailure, Session, output, recall};
use crate::change::{self, Author, Change, ChangeError, Operation, Plan, Receipt, anchor, what_if};
use crate::ground::private_file;
use crate::store::{Store, StoreError};

/// Most bytes of a plan file.
pub(super) const PLAN_BYTES: u64 = 64 << 20;

/// Heading of the options of every command that plans a change.
pub const PLAN_OPTIONS: &str = "Plan";
/// Heading of the options of every command that names the author of a change.
pub const AUTHOR_OPTIONS: &str = "Author of a change";

/// Options for handling a plan, and its author.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Doing {
    /// Apply the plan and print the receipt; without this the plan is printed and nothing is written.
    #[arg(long, help_heading = PLAN_OPTIONS)]
    pub apply: bool,
    /// Write the plan to a file, for `apply FILE`.
    #[arg(long, value_name = "FILE", help_heading = PLAN_OPTIONS)]
    pub plan_out: Option<PathBuf>,
    /// Show with the plan which recalls would change: recent situations ranked before and after.
    #[arg(long, conflicts_with = "apply", help_heading = PLAN_OPTIONS)]
    pub what_if: bool,
    /// Author of the change, and the reason.
    #[command(flatten)]
    pub by: By,
}

/// Author of a change, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct By {
    /// Reason, stored among the private values of the audit entry.
    #[arg(long, value_name = "TEXT", help_heading = AUTHOR_OPTIONS)]
    pub reason: Option<String>,
    /// Ticket that requests it.
    #[arg(long, value_name = "ID", help_heading = AUTHOR_OPTIONS)]
    pub ticket: Option<String>,
    /// Name for the audit trail [default: MNEMOSCOPE_ACTOR or the login name].
    #[arg(long, value_name = "NAME", help_heading = AUTHOR_OPTIONS)]
    pub actor: Option<String>,
}

/// Returns the author's name: the given one, else that of the current user.
fn actor(by: &By) -> String {
    by.actor.clone().filter(|a| !a.trim().is_empty()).unwrap_or_else(login)
}

/// Returns the name of the current user: from the environment, else from the system, else `unknown`.
pub(super) fn login() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let named = ["MNEMOSCOPE_ACTOR", "USER", "LOGNAME"].into_iter().find_map(variable);
    let account = || whoami::username().ok().filter(|name| !name.trim().is_empty());
    named.or_else(account).unwrap_or_else(|| "unknown".to_owned())
}

/// Builds the author of a change from the options: name, reason and ticket.
pub(super) fn author(by: &By) -> Author {
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
        print_receipt(session, store, receipt)?;
        return match &doing.plan_out {
            Some(file) => keep(file, &planned),
            None => Ok(()),
        };
    }
    let mut planned = plan().await?;
    match change::suppress::check(store, &planned).await {
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
            planned
                .disclosures
                .push(format!("cannot tell whether it brings back an erased person: {reason}; {remedy}"));
        }
        checked => planned.disclosures.extend(checked?),
    }
    planned.reason.clone_from(&author.reason);
    planned.ticket.clone_from(&author.ticket);
    planned.plan_id = planned.digest();
    if let Some(file) = &doing.plan_out {
        keep(file, &planned)?;
    }
    let recall = if doing.what_if {
        let kept = recall::kept(session, store).await;
        Some(what_if::of_plan(store, &planned, &kept, what_if::PATIENCE, &|_| {}).await?)
    } else {
        None
    };
    mask_changes(session, &mut planned.changes);
    let mut shown = planned.into_shown();
    shown.more.extend(recall.map(|recall| ("recall".to_owned(), json!(recall))));
    output::shape(session.format(), &shown)?;
    output::tell_planned();
    Ok(())
}

/// Plans contain stored values: nobody else may read them.
fn keep(file: &Path, plan: &Plan) -> Result<(), CommandFailure> {
    keep_text(file, &plan.to_file())
}

/// Writes a plan's file, for its owner's eyes only.
pub(super) fn keep_text(file: &Path, text: &str) -> Result<(), CommandFailure> {
    if text.len() as u64 > PLAN_BYTES {
        return Err(CommandFailure::refused(format!(
            "{}: the plan exceeds the size of a plan file ({} MB); --apply works without one",
            file.display(),
            PLAN_BYTES >> 20
        )));
    }
    let written = private_file::replace(file, text.as_bytes());
    written.map_err(|e| CommandFailure::failed(format!("{}: the plan could not be kept: {e}", file.display())))
}

pub(super) fn print_receipt(session: &Session<'_>, store: &Store, mut receipt: Receipt) -> Result<(), CommandFailure> {
    mask_changes(session, &mut receipt.changes);
    let printed = output::shape(session.format(), &receipt);
    let Some(seq) = receipt.audit_seq else { return printed };
    printed.map_err(|failure| {
        let before = (seq + 1).to_string();
        let entry = store.invocation().line(["audit", "list", "--before", &before, "--limit", "1"]);
        let failure = standing(failure, Some(format!("the change of entry {seq} is kept")));
        CommandFailure { remedy: Some(format!("`{entry}` shows what the trail holds about it")), ..failure }
    })
}

/// Adds to a failure to print a result that the change is done.
pub(super) fn standing(failure: CommandFailure, stands: Option<String>) -> CommandFailure {
    let stands = stands.map(|words| words + ": ").unwrap_or_default();
    CommandFailure { message: format!("{stands}{}", failure.message), ..failure }
}

pub(super) fn mask_changes(session: &Session<'_>, changes: &mut [Change]) {
    let Some(mask) = session.mask() else { return };
    changes.iter_mut().for_each(|change| change.mask(|row| mask.row(row)));
}
