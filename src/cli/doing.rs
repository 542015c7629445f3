//! What is done with a plan: it is shown, kept in a file, or applied; and who does it.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::context::Session;
use super::failure::CommandFailure;
use super::{output, recall};
use crate::change::{self, Author, ChangeError, Operation, Plan, Receipt, anchor, what_if};
use crate::ground::private_file;
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// Bytes that a plan file may have.
pub(super) const PLAN_BYTES: u64 = 64 << 20;

/// What to do with a plan, and who does it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Doing {
    /// Apply the plan and print the receipt; without this the plan is printed and nothing is written.
    #[arg(long)]
    pub apply: bool,
    /// Write the plan to a file, for `apply FILE`.
    #[arg(long, value_name = "FILE")]
    pub plan_out: Option<PathBuf>,
    /// Show with the plan which recalls would change: recent situations ranked before and after.
    #[arg(long)]
    pub what_if: bool,
    /// Who does it, and why.
    #[command(flatten)]
    pub by: By,
}

/// Who does it, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct By {
    /// Reason, kept among the private values of the audit entry.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Ticket that requests it.
    #[arg(long, value_name = "ID")]
    pub ticket: Option<String>,
    /// Name for the audit trail [default: MNEMOSCOPE_ACTOR or the login name].
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
}

/// Who does it: as said, else from the environment.
fn actor(by: &By) -> String {
    by.actor.clone().filter(|a| !a.trim().is_empty()).unwrap_or_else(login)
}

/// Who sits here, as the environment says.
pub(super) fn login() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let named = ["MNEMOSCOPE_ACTOR", "USER", "LOGNAME"].into_iter().find_map(variable);
    let account = || whoami::username().ok().filter(|name| !name.trim().is_empty());
    named.or_else(account).unwrap_or_else(|| "unknown".to_owned())
}

/// Who does it, and why.
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
        let kept = recall::kept(session, store).await;
        let found = what_if::of_plan(store, &planned, &kept, what_if::PATIENCE, &|_| {}).await?;
        shown["recall"] = json!(found);
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

/// Prints a receipt.
pub(super) fn print_receipt(session: &Session<'_>, receipt: &Receipt) -> Result<(), CommandFailure> {
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
