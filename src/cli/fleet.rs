//! One person erased from several databases: each by itself, with its own status, and one receipt over all.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::context::Session;
use super::doing::{author, keep_anchor};
use super::failure::CommandFailure;
use super::input::read_input;
use super::options::Format;
use super::output;
use super::purge::{PurgeArgs, PurgeProgressLine, desk, group_mentions, hide_handles};
use crate::change::purge::{self, PurgeOptions, PurgePlan, Sink};
use crate::change::{Author, ChangeError, new_id, now};
use crate::config::fleet::{self, FleetMember};
use crate::config::{anchor_folder, companion, erasure_key, layouts};
use crate::memory::invocation::Invocation;
use crate::store::{OpenOptions, Store, Target};

/// Bytes that a fleet file or a receipt may have.
const FILE_BYTES: u64 = 16 << 20;
/// Kinds of handles by which a person may be found in another database: one person has each of them.
const TELLING: [&str; 3] = ["id", "e-mail", "phone"];

/// A database of the fleet as far as it was reached.
struct Reached {
    member: FleetMember,
    store: Result<Store, String>,
}

impl Reached {
    fn entry(&self, status: &str) -> Map<String, Value> {
        let location = Target::parse(&self.member.url).shown();
        let entry = json!({"label": self.member.label, "location": location, "status": status});
        entry.as_object().cloned().unwrap_or_default()
    }

    fn with(&self, status: &str, key: &str, value: Value) -> Value {
        let mut entry = self.entry(status);
        entry.insert(key.to_owned(), value);
        Value::Object(entry)
    }
}

/// Runs `purge … --fleet FILE`.
pub async fn run(session: &Session<'_>, args: &PurgeArgs, file: &Path) -> Result<(), CommandFailure> {
    let fleet = reach(file).await?;
    let options = args.options();
    purge::subject::check(args.subject())?;
    let name = name(args, file);
    let by = author(&args.doing.by);
    let silent = |_: &str, _: u64| {};
    if args.resume {
        let known = desk(&by, &silent)?.fleet(&name);
        let mut entries = Vec::new();
        for reached in &fleet {
            let given = known.get(&reached.member.label).map_or(args.subject(), String::as_str);
            entries.push(erase(session, args, &options, reached, given).await?);
        }
        return finish(session, args, file, &entries);
    }
    let plans = plan(session, args, &options, &fleet).await?;
    if plans.iter().all(|plan| matches!(plan, Planned::Absent)) {
        return Err(CommandFailure::not_found(format!(
            "nobody in any of {} databases is known as `{}`",
            fleet.len(),
            args.subject()
        )));
    }
    check_decisions(&options, &plans)?;
    if !args.doing.apply {
        return show(session, file, &fleet, &plans);
    }
    // A hold in one database holds everywhere: nothing is half erased.
    for (reached, planned) in fleet.iter().zip(&plans) {
        if let (Ok(store), Planned::Found { plan, .. }) = (&reached.store, planned) {
            purge::check_hold(store, &plan.subject).await.map_err(|error| {
                CommandFailure::refused(format!("{}: {error}; nothing was erased anywhere", reached.member.label))
            })?;
        }
    }
    let known = fleet.iter().zip(&plans).filter_map(|(reached, planned)| match planned {
        Planned::Found { by, .. } => Some((reached.member.label.clone(), by.clone())),
        _ => None,
    });
    desk(&by, &silent)?.keep_fleet(&name, &known.collect())?;
    let mut entries = Vec::new();
    for (reached, planned) in fleet.iter().zip(&plans) {
        entries.push(match planned {
            Planned::Found { plan, by } => erase(session, args, &of_one(&options, plan), reached, by).await?,
            Planned::Absent => Value::Object(reached.entry("not found")),
            Planned::Failed(status, words) => reached.with(status, "error", Value::from(words.clone())),
        });
    }
    finish(session, args, file, &entries)
}

/// Refuses decisions about mentions that no database has, and those that cannot be done where the mention is.
fn check_decisions(options: &PurgeOptions, plans: &[Planned]) -> Result<(), CommandFailure> {
    let found = || {
        plans.iter().filter_map(|planned| match planned {
            Planned::Found { plan, .. } => Some(plan),
            _ => None,
        })
    };
    let known = |name: &String| found().any(|plan| plan.met.names.contains(name));
    if let Some(name) = options.each.keys().find(|name| !known(name)) {
        return Err(CommandFailure::usage(format!(
            "no mention in any of the databases has the id `{name}`: the plan of each shows them"
        )));
    }
    found().try_for_each(|plan| purge::mention::check_possible(plan)).map_err(CommandFailure::from)
}

/// The decisions that are about mentions of one database.
fn of_one(options: &PurgeOptions, plan: &PurgePlan) -> PurgeOptions {
    let each = options.each.iter().filter(|(name, _)| plan.met.names.contains(*name));
    PurgeOptions { each: each.map(|(name, decision)| (name.clone(), *decision)).collect(), ..options.clone() }
}

/// A name for what is kept between runs, which does not say who it is about.
fn name(args: &PurgeArgs, file: &Path) -> String {
    let place = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    hex::encode(Sha256::digest(format!("{}\0{}", place.display(), args.subject())))
}

/// Opens every database; one that cannot be opened is kept with the reason.
async fn reach(file: &Path) -> Result<Vec<Reached>, CommandFailure> {
    let text = read_input(file, FILE_BYTES)?;
    let members = fleet::parse(file, &text).map_err(|faults| CommandFailure::usage(faults.join("\n")))?;
    let mut fleet = Vec::new();
    for member in members {
        let target = Target::parse(&member.url);
        let companion = match &target {
            Target::File(path) if path.is_dir() => companion(path),
            _ => None,
        };
        let secret = erasure_key(false).ok().flatten();
        let (layout, anchors) = (member.layout.clone(), anchor_folder());
        let options =
            OpenOptions { layout, own_layouts: layouts(), companion, anchors, secret, ..OpenOptions::default() };
        let store = Store::open(&target, &options).await.map_err(|error| error.to_string());
        fleet.push(Reached { member, store });
    }
    Ok(fleet)
}

/// What a database says of the person.
enum Planned {
    /// What would be done, and the handle by which the person was found there.
    Found { plan: Box<PurgePlan>, by: String },
    /// Nobody is known by it there.
    Absent,
    /// A word for the status, and why.
    Failed(&'static str, String),
}

async fn plan(
    session: &Session<'_>,
    args: &PurgeArgs,
    options: &PurgeOptions,
    fleet: &[Reached],
) -> Result<Vec<Planned>, CommandFailure> {
    let mut plans = Vec::new();
    for reached in fleet {
        plans.push(plan_one(session, reached, args.subject(), options).await);
    }
    // Ids differ from database to database: what one knows of the person finds the person in the next.
    let known: BTreeSet<String> = plans
        .iter()
        .filter_map(|planned| match planned {
            Planned::Found { plan, .. } => Some(&plan.subject.handles),
            _ => None,
        })
        .flatten()
        .filter(|handle| TELLING.contains(&handle.kind.as_str()))
        .map(|handle| handle.value.clone())
        .chain(args.alias.iter().cloned())
        .collect();
    for (reached, planned) in fleet.iter().zip(&mut plans) {
        for handle in &known {
            if !matches!(planned, Planned::Absent) {
                break;
            }
            let other = plan_one(session, reached, handle, options).await;
            if matches!(other, Planned::Found { .. }) {
                *planned = other;
            }
        }
    }
    Ok(plans)
}

async fn plan_one(session: &Session<'_>, reached: &Reached, given: &str, options: &PurgeOptions) -> Planned {
    let store = match &reached.store {
        Ok(store) => store,
        Err(words) => return Planned::Failed("unreachable", words.clone()),
    };
    let progress = PurgeProgressLine::new(session);
    let label = &reached.member.label;
    let say = |table: &str, values: u64| progress.say(&format!("{label}: {table}"), values);
    let planned = purge::plan_any(store, given, options, &say).await;
    progress.end();
    match planned {
        Ok(plan) => Planned::Found { plan: Box::new(plan), by: given.to_owned() },
        Err(ChangeError::NotFound(_)) => Planned::Absent,
        Err(error) => Planned::Failed(status_of(&error), error.to_string()),
    }
}

fn status_of(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(_) | ChangeError::Usage(_) => "refused",
        ChangeError::Conflict { .. } => "conflict",
        _ => "failed",
    }
}

async fn erase(
    session: &Session<'_>,
    args: &PurgeArgs,
    options: &PurgeOptions,
    reached: &Reached,
    given: &str,
) -> Result<Value, CommandFailure> {
    let store = match &reached.store {
        Ok(store) => store,
        Err(words) => return Ok(reached.with("unreachable", "error", Value::from(words.clone()))),
    };
    let label = &reached.member.label;
    let author = author(&args.doing.by);
    let progress = PurgeProgressLine::new(session);
    let say = |what: &str, count: u64| progress.say(&format!("{label}: {what}"), count);
    let exported = match &args.export {
        Some(folder) => {
            let safe = |c: char| if c.is_alphanumeric() { c } else { '-' };
            let folder = folder.join(label.chars().map(safe).collect::<String>());
            match purge::bundle(store, given, &args.alias, Sink::Folder(&folder)).await {
                Ok((_, hash)) => Some(hash),
                Err(error) => return Ok(reached.with(status_of(&error), "error", Value::from(error.to_string()))),
            }
        }
        None => None,
    };
    let decisions = args.decisions_on_resume();
    let outcome = purge::run(store, given, options, decisions.as_ref(), &desk(&author, &say)?, exported).await;
    progress.end();
    Ok(match outcome {
        Ok(mut receipt) => {
            keep_anchor(store, &mut receipt).await;
            let status = receipt["status"].as_str().unwrap_or("incomplete").to_owned();
            reached.with(&status, "receipt", receipt)
        }
        Err(ChangeError::NotFound(_)) => Value::Object(reached.entry("not found")),
        // A receipt does not say who it is about.
        Err(error) => {
            let words = error.to_string().replace(given, "the person").replace(args.subject(), "the person");
            let words = words.replacen("--resume", "this command with --resume", 1);
            reached.with(status_of(&error), "error", Value::from(words))
        }
    })
}

/// Prints every plan, and one count over all.
fn show(session: &Session<'_>, file: &Path, fleet: &[Reached], plans: &[Planned]) -> Result<(), CommandFailure> {
    let mut counts = Map::new();
    let mut entries = Vec::new();
    for (reached, planned) in fleet.iter().zip(plans) {
        entries.push(match planned {
            Planned::Found { plan, .. } => {
                let mut shown = plan.to_json();
                add_counts(&mut counts, &reached.member.label, &shown["counts"]);
                if let Some(mask) = session.mask() {
                    hide_handles(&mask, &mut shown);
                }
                if session.format() == Format::Table {
                    group_mentions(&mut shown);
                }
                reached.with("planned", "plan", shown)
            }
            Planned::Absent => Value::Object(reached.entry("not found")),
            Planned::Failed(status, words) => reached.with(status, "error", Value::from(words.clone())),
        });
    }
    let missing = not_done(&entries);
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

fn add_counts(counts: &mut Map<String, Value>, label: &str, of_one: &Value) {
    for (table, count) in of_one.as_object().into_iter().flatten() {
        counts.insert(format!("{label}/{table}"), count.clone());
    }
}

/// Databases that did not get where they should have, each with why.
fn not_done(entries: &[Value]) -> Vec<String> {
    let fine = ["planned", "verified", "verified with disclosures", "not found"];
    let missing = entries.iter().filter(|entry| !fine.contains(&entry["status"].as_str().unwrap_or_default()));
    let words = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let why = match entry["receipt"]["incomplete"].as_array() {
            Some(reasons) => reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "),
            None => text("error"),
        };
        format!("{} is {}: {why}", text("label"), text("status"))
    };
    missing.map(words).collect()
}

fn incomplete(missing: &[String], next: &str) -> Result<(), CommandFailure> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::incomplete(format!("incomplete: {}{next}", missing.join("\n"))))
}

/// Keeps and prints one receipt over all.
fn finish(session: &Session<'_>, args: &PurgeArgs, file: &Path, entries: &[Value]) -> Result<(), CommandFailure> {
    if entries.iter().all(|entry| entry["status"] == "not found") {
        let words = format!("nothing is left to do in any of {} databases about `{}`", entries.len(), args.subject());
        return Err(CommandFailure::not_found(words));
    }
    let missing = not_done(entries);
    let any = |status: &str| entries.iter().any(|entry| entry["status"] == status);
    let status = match (missing.is_empty(), any("verified with disclosures")) {
        (false, _) => "incomplete",
        (true, true) => "verified with disclosures",
        (true, false) => "verified",
    };
    let mut counts = Map::new();
    for entry in entries {
        add_counts(&mut counts, entry["label"].as_str().unwrap_or_default(), &entry["receipt"]["counts"]);
    }
    let by = author(&args.doing.by);
    let mut receipt = json!({
        "receipt_id": new_id(),
        "operation": "purge fleet",
        "status": status,
        "fleet": file.display().to_string(),
        "counts": counts,
        "verification": verification(entries),
        "incomplete": missing,
        "databases": entries,
        "applied_at": now(),
        "actor": by.actor,
        "ticket": by.ticket,
        "undo_reason": "an erasure is not undone",
    });
    let silent = |_: &str, _: u64| {};
    let desk = desk(&by, &silent)?;
    let kept = desk.keep_receipt(&receipt)?;
    if status != "incomplete" {
        desk.forget_fleet(&name(args, file));
    }
    receipt["kept_in"] = Value::from(kept.display().to_string());
    output::shape(session.format(), &receipt)?;
    let file = file.display().to_string();
    let again = Invocation::default().about(&["purge"], &[args.subject()], &["--fleet", &file, "--resume"]);
    incomplete(&missing, &format!("; `{again}` resumes it"))
}

/// What was found, summed over the databases.
fn verification(entries: &[Value]) -> Value {
    let sum = |path: [&str; 2]| -> u64 {
        entries.iter().filter_map(|entry| entry["receipt"]["verification"][path[0]][path[1]].as_u64()).sum()
    };
    let files: Vec<Value> = entries
        .iter()
        .flat_map(|entry| entry["receipt"]["verification"]["bytes"]["files"].as_array().cloned().unwrap_or_default())
        .collect();
    json!({
        "control": {"found": sum(["control", "found"]), "of": sum(["control", "of"])},
        "logical": {"hits": sum(["logical", "hits"])},
        "index": {"hits": sum(["index", "hits"])},
        "bytes": {"hits": sum(["bytes", "hits"]), "files": files},
    })
}

/// `purge verify RECEIPT --fleet FILE`: looks again in every database that the receipt names.
pub async fn verify(session: &Session<'_>, named: &str, file: &Path) -> Result<(), CommandFailure> {
    let fleet = reach(file).await?;
    let author = Author::default();
    let progress = PurgeProgressLine::new(session);
    let say = |what: &str, count: u64| progress.say(what, count);
    let desk = desk(&author, &say)?;
    let kept = desk.receipts().join(format!("{named}.json"));
    let path = if Path::new(named).is_file() { Path::new(named).to_path_buf() } else { kept };
    let receipt: Value = serde_json::from_str(&read_input(&path, FILE_BYTES)?)
        .map_err(|error| CommandFailure::usage(format!("{named} is no receipt: {error}")))?;
    if receipt["operation"] != "purge fleet" {
        return Err(CommandFailure::usage(format!("{named} is no receipt of a purge with --fleet")));
    }
    let mut entries = Vec::new();
    for erased in receipt["databases"].as_array().into_iter().flatten() {
        let Some(id) = erased["receipt"]["receipt_id"].as_str() else { continue };
        let Some(reached) = fleet.iter().find(|reached| erased["label"] == reached.member.label.as_str()) else {
            entries.push(
                json!({"label": erased["label"], "status": "unreachable", "error": "the fleet file does not name it"}),
            );
            continue;
        };
        entries.push(match &reached.store {
            Err(words) => reached.with("unreachable", "error", Value::from(words.clone())),
            Ok(store) => match purge::recheck(store, id, &desk).await {
                Ok(answer) => {
                    let status = answer["status"].as_str().unwrap_or("incomplete").to_owned();
                    reached.with(&status, "answer", answer)
                }
                Err(error) => reached.with(status_of(&error), "error", Value::from(error.to_string())),
            },
        });
    }
    progress.end();
    let missing = not_done(&entries);
    let disclosed = entries.iter().any(|entry| entry["status"] == "verified with disclosures");
    let status = match (missing.is_empty(), disclosed) {
        (false, _) => "incomplete",
        (true, true) => "verified with disclosures",
        (true, false) => "verified",
    };
    let shown = json!({"receipt_id": receipt["receipt_id"], "operation": "purge verify", "status": status,
        "databases": entries, "checked_at": now()});
    output::shape(session.format(), &shown)?;
    incomplete(&missing, "")
}
