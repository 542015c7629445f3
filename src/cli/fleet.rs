//! `purge --fleet FILE` and `purge verify --fleet FILE`: one person in several databases.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::context::Session;
use super::doing::author;
use super::failure::CommandFailure;
use super::input::read_input;
use super::output;
use super::purge::{PurgeArgs, desk, printed, say};
use crate::change::purge::fleet::{self, FleetErasure, FleetPlan, OpenedMember};
use crate::change::purge::subject;
use crate::change::{Author, now};
use crate::config::{self, anchor_folder, companion, erasure_key};
use crate::memory::invocation::Invocation;
use crate::store::{OpenError, OpenOptions, Store, Target};

/// Bytes that a fleet file or a receipt may have.
const FILE_BYTES: u64 = 16 << 20;

/// Runs `purge … --fleet FILE`.
pub async fn run(session: &Session<'_>, args: &PurgeArgs, file: &Path) -> Result<(), CommandFailure> {
    let members = reach(session, file).await?;
    let options = args.options();
    subject::check(args.subject())?;
    let export = args.export.as_ref().map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    let (given, name) = (args.subject(), name(args, file));
    let erasure = FleetErasure { given, options: &options, export: export.as_deref(), file, name };
    let by = author(&args.doing.by);
    if !args.doing.apply && !args.resume {
        let plans = fleet::plan_fleet(&members, &erasure, &say).await;
        return show(session, file, &members, plans?);
    }
    let decisions = args.decisions_on_resume();
    let receipt = fleet::erase_fleet(&members, &erasure, decisions.as_ref(), &desk(&by, &say)?).await;
    let receipt = receipt?;
    output::shape(session.format(), &receipt)?;
    let file = file.display().to_string();
    let again = Invocation::default().about(&["purge"], &[given], &["--fleet", &file, "--resume"]);
    incomplete(&receipt.incomplete, &format!("; `{again}` resumes it"))
}

/// A name for what is kept between runs, which does not say who it is about.
fn name(args: &PurgeArgs, file: &Path) -> String {
    let place = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    hex::encode(Sha256::digest(format!("{}\0{}", place.display(), args.subject())))
}

/// Opens every database; one that cannot be opened is kept with the reason.
async fn reach(session: &Session<'_>, file: &Path) -> Result<Vec<OpenedMember>, CommandFailure> {
    let global = session.global;
    if session.database.is_some() || global.profile.is_some() || !global.layout.is_empty() {
        return Err(CommandFailure::usage(
            "the file after --fleet names the databases and their layouts: leave -d, --profile and --layout out",
        ));
    }
    let text = read_input(file, FILE_BYTES)?;
    let members = config::fleet::parse(file, &text).map_err(|faults| CommandFailure::usage(faults.join("\n")))?;
    let mut fleet = Vec::new();
    for member in members {
        let target = Target::parse(&member.url);
        let companion = match &target {
            Target::File(path) if path.is_dir() => companion(path),
            _ => None,
        };
        let secret = erasure_key(false).ok().flatten();
        let (layouts, anchors) = (member.layout.into_iter().collect(), anchor_folder());
        let options = OpenOptions {
            layouts,
            own_layouts: config::layouts(),
            companion,
            anchors,
            secret,
            ..OpenOptions::default()
        };
        let store = Store::open(&target, &options).await.map_err(|error| match error {
            OpenError::NoFile(path) => format!("{path}: there is no such file; check its url in the fleet file"),
            other => other.to_string(),
        });
        fleet.push(OpenedMember { label: member.label, location: target.shown(), store });
    }
    Ok(fleet)
}

/// Prints every plan, and one count over all.
fn show(
    session: &Session<'_>,
    file: &Path,
    fleet: &[OpenedMember],
    plans: Vec<FleetPlan>,
) -> Result<(), CommandFailure> {
    let (mut counts, mut missing) = (crate::change::plan::Counts::new(), Vec::new());
    let mut entries: Vec<Value> = Vec::new();
    for (member, planned) in fleet.iter().zip(plans) {
        let entry = |status: &str| json!({"label": member.label, "location": member.location, "status": status});
        entries.push(match planned {
            FleetPlan::Found { plan, .. } => {
                fleet::add_counts(&mut counts, &member.label, &plan.counts);
                let mut entry = entry("planned");
                entry["plan"] = json!(printed(session, *plan));
                entry
            }
            FleetPlan::Absent(named) => {
                let mut entry = entry("not found");
                if let Some(named) = named {
                    entry["error"] = json!(named.words);
                }
                entry
            }
            FleetPlan::Begun(_) => entry("begun"),
            FleetPlan::Failed(status, words) => {
                missing.push(format!("{} is {status}: {words}", member.label));
                let mut entry = entry(status);
                entry["error"] = json!(words);
                entry
            }
        });
    }
    let shown = json!({
        "operation": "purge",
        "danger": "grave",
        "fleet": file.display().to_string(),
        "status": if missing.is_empty() { "planned" } else { "incomplete" },
        "counts": counts,
        "databases": entries,
        "created_at": now(),
    });
    output::shape(session.format(), &shown)?;
    incomplete(&missing, "")
}

fn incomplete(missing: &[String], next: &str) -> Result<(), CommandFailure> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::incomplete(format!("incomplete: {}{next}", missing.join("\n"))))
}

/// `purge verify RECEIPT --fleet FILE`: looks again in every database that the receipt names.
pub async fn verify(session: &Session<'_>, named: &str, file: &Path) -> Result<(), CommandFailure> {
    let members = reach(session, file).await?;
    let author = Author::default();
    let desk = desk(&author, &say)?;
    let kept = desk.receipts().join(format!("{named}.json"));
    let path = if Path::new(named).is_file() { Path::new(named) } else { &kept };
    let answer = fleet::recheck_fleet(&members, named, &read_input(path, FILE_BYTES)?, &desk).await;
    let answer = answer?;
    output::shape(session.format(), &answer)?;
    incomplete(&answer.incomplete, "")
}
