//! `purge`: the plan, the deletion with its receipt, and a later check of a receipt.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::doing::{Doing, author, keep_text, standing};
use super::{CommandFailure, Format, Session, output, progress};
use crate::change::purge::verdict::PurgeStatus;
use crate::change::purge::{self, KeptPlan, Mentions, NewDecisions, PurgeOptions, Sink};
use crate::change::purge::{PrintedPurgePlan, PurgePlan, PurgeReceipt};
use crate::change::{Author, ChangeError, anchor, not_yet, what_if};
use crate::memory::thousands;
use crate::recall::what_if::WhatIf;
use crate::shell::erasure_desk as desk;
use crate::store::{Store, StoreError};

/// A decision about one mention: `ID=leave`, `ID=redact` or `ID=delete`.
fn decision(text: &str) -> Result<(String, Mentions), String> {
    let (id, word) = text.rsplit_once('=').unwrap_or((text, ""));
    match Mentions::of_word(word) {
        Some(decision) if !id.is_empty() => Ok((id.to_owned(), decision)),
        _ => Err("a decision is ID=leave, ID=redact or ID=delete, with an id from the plan".to_owned()),
    }
}

impl ValueEnum for Mentions {
    fn value_variants<'a>() -> &'a [Self] {
        &Mentions::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Mentions::Leave => "They stay and are disclosed",
            Mentions::Redact => "The words are removed, the rows stay",
            Mentions::Delete => "The rows go",
        };
        Some(PossibleValue::new(self.word()).help(help))
    }
}

/// Treatment of the person's account with the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccountArg {
    /// The account stays and is disclosed.
    Keep,
    /// The account is erased.
    Erase,
}

/// Person to erase, and options for the erasure.
#[derive(Debug, Clone, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct PurgeArgs {
    /// The person: id, e-mail, name, session or profile; a person called `verify` must follow `--`.
    #[arg(required = true)]
    pub subject: Option<String>,
    /// A further handle of the person: an e-mail, a phone number, an earlier name.
    #[arg(long, value_name = "HANDLE")]
    pub alias: Vec<String>,
    /// Mentions in other people's rows that certainly mean the person. [default: leave]
    #[arg(long, value_enum)]
    pub mentions: Option<Mentions>,
    /// One mention, by the id that the plan shows, or all in a TABLE.COLUMN: leave, redact or delete. May be repeated. With
    /// --resume it overrides the earlier decision.
    #[arg(long, value_name = "ID=WHAT", value_parser = decision)]
    pub mention: Vec<(String, Mentions)>,
    /// The person's account with the application.
    #[arg(long, value_enum, default_value_t = AccountArg::Keep)]
    pub account: AccountArg,
    /// PostgreSQL: rewrite the tables, which locks them while it runs.
    #[arg(long)]
    pub full: bool,
    /// Resume, without --apply, a purge that was stopped or ended incomplete. --mentions and --mention may change earlier decisions.
    #[arg(long, conflicts_with_all = ["plan_out", "what_if"])]
    pub resume: bool,
    /// Write the person's data to this new folder first; its hash is in the receipt.
    #[arg(long, value_name = "FOLDER")]
    pub export: Option<PathBuf>,
    /// Erase in each database of this file instead of one: `[[database]]` with url, layout and label.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan_out", "what_if"])]
    pub fleet: Option<PathBuf>,
    /// Rows in one transaction.
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    pub batch: usize,
    #[command(flatten)]
    pub doing: Doing,
    #[command(subcommand)]
    pub command: Option<PurgeCommand>,
}

/// Actions on an erasure that is over.
#[derive(Debug, Clone, Subcommand)]
pub enum PurgeCommand {
    /// Check whether what a receipt says still holds. Writes nothing.
    Verify {
        /// The receipt's file, or its id.
        receipt: String,
        /// File of the databases that the receipt is about, if it covers several.
        #[arg(long, value_name = "FILE")]
        fleet: Option<PathBuf>,
    },
}

impl PurgeArgs {
    /// Returns the person to erase, as given; empty when none is given.
    pub fn subject(&self) -> &str {
        self.subject.as_deref().unwrap_or_default()
    }

    /// Whether something is asked of an erasure.
    pub fn asks_to_erase(&self) -> bool {
        self.subject.is_some()
            || self.fleet.is_some()
            || self.export.is_some()
            || self.resume
            || self.options() != PurgeOptions::default()
            || self.doing != Doing::default()
    }

    /// With `--resume`: what is decided otherwise than before.
    pub fn decisions_on_resume(&self) -> Option<NewDecisions> {
        let decided = || NewDecisions { all: self.mentions, each: self.mention.iter().cloned().collect() };
        self.resume.then(decided)
    }

    pub fn options(&self) -> PurgeOptions {
        PurgeOptions {
            aliases: self.alias.clone(),
            mentions: self.mentions.unwrap_or_default(),
            each: self.mention.iter().cloned().collect(),
            account: self.account == AccountArg::Erase,
            full: self.full,
            batch: self.batch,
            ..PurgeOptions::default()
        }
    }
}

pub async fn run(session: &Session<'_>, args: &PurgeArgs) -> Result<(), CommandFailure> {
    if let Some(PurgeCommand::Verify { receipt, fleet }) = &args.command {
        if args.asks_to_erase() {
            return Err(CommandFailure::usage(
                "options of `purge verify` go after it: `purge verify RECEIPT --fleet FILE`",
            ));
        }
        return match fleet {
            Some(file) => super::fleet::verify(session, receipt, file).await,
            None => verify(session, receipt).await,
        };
    }
    if let Some(file) = &args.fleet {
        return super::fleet::run(session, args, file).await;
    }
    if args.doing.apply && args.doing.plan_out.is_some() {
        return Err(CommandFailure::usage(
            "an erasure is planned or applied: keep the plan with --plan-out FILE, then `apply FILE`",
        ));
    }
    let options = args.options();
    let store = session.store().await?;
    if args.doing.apply || args.resume {
        return carry_out(session, args, &store, &options).await;
    }
    let (plan, unfinished) = planned(session, &store, args.subject(), &options).await?;
    let hold = match purge::check_hold(&store, &plan.subject).await {
        // A plan writes nothing: missing knowledge is reported, and does not prevent it.
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
            Some(format!("cannot check the person for a legal hold: {reason}; {remedy}"))
        }
        known => known.map(|()| None)?,
    };
    if let Some(file) = &args.doing.plan_out {
        let own = purge::ready(&store).await?;
        let kept = KeptPlan::new(&plan, &own, args.subject(), options, &author(&args.doing.by));
        keep_text(file, &format!("{}\n", json!(kept)))?;
    }
    let recall = if args.doing.what_if {
        let kept = super::recall::kept(session, &store).await;
        Some(what_if::of_purge(&store, &plan, &kept, what_if::PATIENCE, &|_| {}).await?)
    } else {
        None
    };
    let not_yet = not_yet(purge::ready_for(&store, &plan).await)?;
    let mut plan = printed(session, plan);
    plan.disclosures.splice(0..0, unfinished);
    plan.disclosures.extend(hold.into_iter().chain(not_yet));
    output::shape(session.format(), &PlanWithRecall { plan, recall })?;
    output::tell_planned();
    Ok(())
}

/// Plans an erasure; with a message that names the command to resume an unfinished one of the person, if any.
pub(super) async fn planned(
    session: &Session<'_>,
    store: &Store,
    given: &str,
    options: &PurgeOptions,
) -> Result<(PurgePlan, Option<String>), CommandFailure> {
    let plan = purge::plan(store, given, options, &say).await;
    let subject = plan.as_ref().ok().map(|plan| &plan.subject);
    if !purge::is_unfinished(store, given, subject).await? {
        return Ok((plan?, None));
    }
    let again = store.invocation().about(&["purge"], &[given], &["--resume"]);
    match plan {
        Ok(plan) => {
            let again = if session.mask().is_some() { "--resume" } else { &again };
            let words = "an earlier purge of this person did not end as verified";
            Ok((plan, Some(format!("{words}: `{again}` continues it"))))
        }
        Err(error) => Err(CommandFailure { remedy: Some(again), ..error.into() }),
    }
}

/// A plan, with its effect on recall if requested.
#[derive(Serialize)]
struct PlanWithRecall {
    #[serde(flatten)]
    plan: PrintedPurgePlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall: Option<WhatIf>,
}

/// The plan as this session prints it: masked when masking is on, mentions as lines in tables.
fn printed(session: &Session<'_>, plan: PurgePlan) -> PrintedPurgePlan {
    let mut printed = plan.printed();
    if let Some(mask) = session.mask() {
        printed.mask(&mask);
    }
    if session.format() == Format::Table {
        printed.group_mentions();
    }
    printed
}

/// The same as JSON, in the form of a plan alone.
pub(super) fn printed_text(session: &Session<'_>, plan: PurgePlan) -> std::io::Result<String> {
    output::indented(&PlanWithRecall { plan: printed(session, plan), recall: None })
}

/// `purge verify RECEIPT`.
async fn verify(session: &Session<'_>, receipt: &str) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let author = Author::default();
    let answer = purge::recheck(&store, receipt, &desk(&author, &say)?).await?;
    output::shape(session.format(), &answer)?;
    if answer.status == PurgeStatus::Incomplete {
        return Err(CommandFailure::incomplete(answer.incomplete.join("; ")));
    }
    Ok(())
}

async fn carry_out(
    session: &Session<'_>,
    args: &PurgeArgs,
    store: &Store,
    options: &PurgeOptions,
) -> Result<(), CommandFailure> {
    let author = author(&args.doing.by);
    let exported = match &args.export {
        Some(folder) => Some(purge::bundle(store, args.subject(), options, Sink::Folder(folder)).await?.1),
        None => None,
    };
    let decisions = args.decisions_on_resume();
    let desk = desk(&author, &say)?;
    let again = store.invocation().about(&["purge"], &[args.subject()], &["--resume"]);
    let mut receipt = purge::run(store, args.subject(), options, decisions.as_ref(), &desk, exported)
        .await
        .map_err(|error| with_command(error, &again))?;
    receipt.anchor_problem = anchor::missed(store).await;
    print(session, &receipt, &again)
}

/// `apply FILE` of a kept plan.
pub async fn apply_kept(session: &Session<'_>, kept: &KeptPlan, author: &Author) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let again = store.invocation().about(&["purge"], &[&kept.given], &["--resume"]);
    let mut receipt =
        purge::run_kept(&store, kept, &desk(author, &say)?).await.map_err(|error| with_command(error, &again))?;
    receipt.anchor_problem = anchor::missed(&store).await;
    print(session, &receipt, &again)
}

/// Replaces `--resume` in the error that stopped an erasure with the whole command that resumes it.
fn with_command(error: ChangeError, again: &str) -> ChangeError {
    let whole = |message: String| message.replacen("--resume", &format!("`{again}`"), 1);
    match error {
        ChangeError::Refused(message) => ChangeError::Refused(whole(message)),
        ChangeError::Paused(message) => ChangeError::Paused(whole(message)),
        ChangeError::Failed(message) => ChangeError::Failed(whole(message)),
        ChangeError::Uncertain(message) => ChangeError::Uncertain(whole(message)),
        other => other,
    }
}

fn print(session: &Session<'_>, receipt: &PurgeReceipt, again: &str) -> Result<(), CommandFailure> {
    let kept = receipt.kept_in.as_deref().unwrap_or_default();
    let stands = format!("the purge ended {}, and its receipt is kept in {kept}", receipt.status.word());
    output::shape(session.format(), receipt).map_err(|failure| standing(failure, Some(stands)))?;
    if receipt.status == PurgeStatus::Incomplete {
        let message = format!("the purge is incomplete: {}; `{again}` continues it", receipt.incomplete.join("; "));
        return Err(CommandFailure::incomplete(message));
    }
    Ok(())
}

pub(super) fn say(what: &str, count: u64) {
    if what == "deleting" {
        return progress::doing(&format!("deleting, {} rows so far", thousands(count)));
    }
    progress::doing(what);
}
