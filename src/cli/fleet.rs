//! `purge --fleet FILE` and `purge verify --fleet FILE`: one person in several databases.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::doing::author;
use super::input::read_input;
use super::purge::{PurgeArgs, printed_text, say};
use super::{CommandFailure, Session, output, progress};
use crate::change::plan::Counts;
use crate::change::purge::fleet::{self, Fleet, FleetErasure, FleetMember, FleetPlan};
use crate::change::purge::subject;
use crate::change::{Author, not_yet_for, now};
use crate::config::{self, anchor_folder, companion, erasure_key};
use crate::memory::invocation::Invocation;
use crate::memory::json::JsonPart;
use crate::shell::erasure_desk as desk;
use crate::store::{OpenOptions, Target};

/// Most bytes of a fleet file or a receipt.
const FILE_BYTES: u64 = 16 << 20;

/// Runs `purge … --fleet FILE`.
pub async fn run(session: &Session<'_>, args: &PurgeArgs, file: &Path) -> Result<(), CommandFailure> {
    let fleet = read(session, file)?;
    let options = args.options();
    subject::check(args.subject())?;
    let export = args.export.as_ref().map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    let (given, name) = (args.subject(), name(args, file));
    let erasure = FleetErasure { given, options: &options, export: export.as_deref(), file, name };
    let by = author(&args.doing.by);
    progress::begin(session);
    if !args.doing.apply && !args.resume {
        let print = |plan| printed_text(session, plan).map(Some);
        let plans = fleet::plan_fleet(&fleet, &erasure, &print, &say).await;
        return show(session, file, &fleet, &plans?);
    }
    let decisions = args.decisions_on_resume();
    let receipt = fleet::erase_fleet(&fleet, &erasure, decisions.as_ref(), &desk(&by, &say)?).await;
    let receipt = receipt?;
    output::shape(session.format(), &receipt)?;
    let file = file.display().to_string();
    let again = Invocation::default().about(&["purge"], &[given], &["--fleet", &file, "--resume"]);
    incomplete(&receipt.incomplete, &format!("; `{again}` resumes it"))
}

/// A name for state kept between runs that does not reveal the person.
fn name(args: &PurgeArgs, file: &Path) -> String {
    let place = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    hex::encode(Sha256::digest(format!("{}\0{}", place.display(), args.subject())))
}

fn read(session: &Session<'_>, file: &Path) -> Result<Fleet, CommandFailure> {
    let global = session.global;
    if session.database.is_some() || global.profile.is_some() || !global.layout.is_empty() {
        return Err(CommandFailure::usage(
            "the file after --fleet names the databases and their layouts: leave out -d, --profile and --layout",
        ));
    }
    let text = read_input(file, FILE_BYTES)?;
    let members = config::fleet::parse(file, &text).map_err(|faults| CommandFailure::usage(faults.join("\n")))?;
    let members = members.into_iter().map(|member| {
        let target = Target::parse(&member.url);
        let companion = match &target {
            Target::File(path) if path.is_dir() => companion(path),
            _ => None,
        };
        FleetMember { label: member.label, location: target.shown(), layout: member.layout, target, companion }
    });
    let (own_layouts, anchors, secret) = (config::layouts(), anchor_folder(), erasure_key(false).ok().flatten());
    let options = OpenOptions { own_layouts, anchors, secret, ..OpenOptions::default() };
    Ok(Fleet { members: members.collect(), options })
}

/// Printed answer of one database about the person.
#[derive(Serialize)]
struct ShownMember<'a> {
    label: &'a str,
    location: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<JsonPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
}

/// The plans of all databases, as they are printed.
#[derive(Serialize)]
struct ShownFleet<'a> {
    operation: &'a str,
    danger: &'a str,
    fleet: String,
    status: &'a str,
    counts: Counts,
    databases: Vec<ShownMember<'a>>,
    created_at: String,
}

/// Prints every plan, and a total.
fn show(session: &Session<'_>, file: &Path, fleet: &Fleet, plans: &[FleetPlan]) -> Result<(), CommandFailure> {
    let (mut counts, mut missing) = (Counts::new(), Vec::new());
    let mut databases = Vec::new();
    for (member, planned) in fleet.members.iter().zip(plans) {
        let (status, plan, error) = match planned {
            FleetPlan::Found { plan, .. } => {
                fleet::add_counts(&mut counts, &member.label, &plan.counts);
                let not_yet = plan.obstacle.as_deref().map(|why| Cow::Owned(not_yet_for(why)));
                ("planned", plan.printed.as_deref().map(JsonPart::Document), not_yet)
            }
            FleetPlan::Absent(named) => ("not found", None, named.as_ref().map(|named| Cow::Borrowed(&*named.words))),
            FleetPlan::Begun(_) => ("begun", None, None),
            FleetPlan::Failed(status, words) => {
                missing.push(format!("{} is {status}: {words}", member.label));
                (*status, None, Some(Cow::Borrowed(&**words)))
            }
        };
        databases.push(ShownMember { label: &member.label, location: &member.location, status, plan, error });
    }
    let shown = ShownFleet {
        operation: "purge",
        danger: "grave",
        fleet: file.display().to_string(),
        status: if missing.is_empty() { "planned" } else { "incomplete" },
        counts,
        databases,
        created_at: now(),
    };
    output::shape(session.format(), &shown)?;
    incomplete(&missing, "")
}

fn incomplete(missing: &[String], next: &str) -> Result<(), CommandFailure> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::incomplete(format!("incomplete: {}{next}", missing.join("\n"))))
}

/// `purge verify RECEIPT --fleet FILE`: verifies the erasure in every database that the receipt names.
pub async fn verify(session: &Session<'_>, named: &str, file: &Path) -> Result<(), CommandFailure> {
    let fleet = read(session, file)?;
    let author = Author::default();
    progress::begin(session);
    let desk = desk(&author, &say)?;
    let kept = desk.receipts().join(format!("{named}.json"));
    let path = if Path::new(named).is_file() { Path::new(named) } else { &kept };
    let answer = fleet::recheck_fleet(&fleet, named, &read_input(path, FILE_BYTES)?, &desk).await;
    let answer = answer?;
    output::shape(session.format(), &answer)?;
    incomplete(&answer.incomplete, "")
}
