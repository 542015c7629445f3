//! Checks that must hold after a history, whoever was killed where.

use std::collections::{BTreeMap, BTreeSet};

use mnemoscope::change::{self, Author, audit, undo};
use mnemoscope::store::{OpenOptions, Store};
use serde_json::Value;

use super::history::{History, Kind};
use super::place::{Bases, Dump, Place};
use super::run::{Acknowledged, Run};
use crate::support::block_on;

/// The memory's own trail, to which an undo adds rows.
const OWN_TRAIL: &str = "agent_memory_audit";

/// Rows that agents wrote have such ids, also where a trigger copies them.
const AGENTS_ROW: &str = "agent-row-";

/// State of a database before a history.
pub struct Start {
    pub dump: Dump,
    problems: BTreeSet<String>,
}

impl Start {
    pub fn of(place: &Place) -> Self {
        Start { dump: place.dump(), problems: place.problems() }
    }
}

/// Results of undisturbed jobs, by kind of history.
pub type References = BTreeMap<String, Dump>;

/// Everything that is wrong after a history.
pub fn check(
    bases: &Bases,
    references: &mut References,
    history: &History,
    place: &Place,
    start: &Start,
    run: &Run,
) -> Vec<String> {
    let mut wrong = sound(place, start);
    if !wrong.is_empty() {
        return wrong;
    }
    match place.marks() {
        Ok(found) => wrong.extend(run.model.compare(&found)),
        Err(error) => wrong.push(format!("the marks cannot be read: {error}")),
    }
    wrong.extend(acknowledged(place, &run.acknowledged));
    let end = without_agents(place.dump());
    match history.kind {
        Kind::Mixed => {}
        Kind::Backfill(_) | Kind::Erasure(_) => {
            let whole = reference(bases, references, history);
            wrong.extend(differences("the same job without kills", whole, &without_stamps(end)));
        }
    }
    if !matches!(history.kind, Kind::Erasure(_) | Kind::Backfill("secrets")) {
        wrong.extend(unwound(place, start));
        wrong.extend(sound(place, start));
    }
    wrong
}

/// The engine finds nothing wrong that was not so at the start, and our program finds the trail sound.
fn sound(place: &Place, start: &Start) -> Vec<String> {
    let mut wrong: Vec<String> = place.problems().difference(&start.problems).cloned().collect();
    let verified = place.run(&["audit", "verify"]);
    if !verified.status.success() {
        let said = [verified.stdout, verified.stderr].concat();
        wrong.push(format!("audit verify: {} {}", verified.status, String::from_utf8_lossy(&said)));
    }
    wrong
}

/// Each receipt has its entry.
fn acknowledged(place: &Place, receipts: &[Acknowledged]) -> Vec<String> {
    let sql = "SELECT CAST(seq AS TEXT) || ' ' || public FROM memory_audit";
    let entries: BTreeMap<i64, String> = match place.texts(sql) {
        Err(error) => return vec![format!("the trail cannot be read: {error}")],
        Ok(rows) => rows
            .iter()
            .filter_map(|row| {
                let (seq, public) = row.split_once(' ')?;
                let public: Value = serde_json::from_str(public).ok()?;
                Some((seq.parse().ok()?, public["receipt_id"].as_str().unwrap_or_default().to_owned()))
            })
            .collect(),
    };
    let lost = receipts.iter().filter(|receipt| entries.get(&receipt.seq) != Some(&receipt.receipt));
    lost.map(|receipt| format!("entry {} of the acknowledged change {} is lost", receipt.seq, receipt.receipt))
        .collect()
}

/// Runs a history's job undisturbed from the same start and returns its result.
fn reference<'r>(bases: &Bases, references: &'r mut References, history: &History) -> &'r Dump {
    references.entry(format!("{:?}", history.kind)).or_insert_with(|| {
        let place = bases.place(true, "WAL");
        let words: &[&str] = match history.kind {
            Kind::Mixed => &["status"],
            Kind::Backfill(name) => &["backfill", name, "--apply", "--batch", "4"],
            Kind::Erasure(person) => &["purge", person, "--apply", "--batch", "5"],
        };
        let done = place.run(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        place.quiet();
        without_stamps(without_agents(place.dump()))
    })
}

/// The rows without when a job wrote them, which differs from run to run.
fn without_stamps(mut dump: Dump) -> Dump {
    for row in dump.get_mut("memories").into_iter().flat_map(BTreeMap::values_mut) {
        row.retain(|(column, _)| column != "updated_at");
    }
    dump
}

/// Takes every change of ours back, the newest first. Then all rows must be what they were at the start, to the byte: a
/// change without an entry stays, an entry without its change cannot be taken back, a bystander that was touched shows.
fn unwound(place: &Place, start: &Start) -> Vec<String> {
    let undone: Result<(), String> = block_on(async {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let store = Store::open(&place.target, &OpenOptions::default()).await.map_err(|error| told(&error))?;
        let author = Author { actor: "tester".to_owned(), ..Author::default() };
        let head = audit::anchor(&store).await.map_err(|error| told(&error))?.seq;
        for seq in (1..=head).rev() {
            let entry = audit::open(&store, seq).await.map_err(|error| told(&error))?;
            let Some(entry) = entry.filter(|entry| entry.private.contains_key("undo")) else { continue };
            let what = format!("entry {seq} ({})", entry.entry.action);
            let plan = undo::undo(&store, seq).await.map_err(|error| format!("{what}: {error}"))?;
            change::apply(&store, &plan, &author).await.map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(())
    });
    let mut wrong: Vec<String> = undone.err().into_iter().collect();
    if wrong.is_empty() {
        place.quiet();
        let end = without_agents(place.dump());
        wrong.extend(differences("the start, after everything was undone", &without_agents(start.dump.clone()), &end));
    }
    wrong
}

/// Without the rows and the column that agents write.
fn without_agents(mut dump: Dump) -> Dump {
    for (table, rows) in &mut dump {
        rows.retain(|key, _| !key.contains(AGENTS_ROW));
        if table == "episodes" {
            rows.values_mut().for_each(|row| row.retain(|(column, _)| column != "summary"));
        }
    }
    dump.remove(OWN_TRAIL);
    dump.retain(|table, _| !table.starts_with("sqlite_"));
    dump
}

/// Lists the differences between two dumps, at most a few rows.
fn differences(wanted_is: &str, wanted: &Dump, found: &Dump) -> Vec<String> {
    let mut wrong = Vec::new();
    let empty = BTreeMap::new();
    for table in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (was, is) = (wanted.get(table).unwrap_or(&empty), found.get(table).unwrap_or(&empty));
        for key in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
            if was.get(key) != is.get(key) {
                let words = |row: Option<&Vec<(String, Vec<u8>)>>, other: Option<&Vec<(String, Vec<u8>)>>| match row {
                    None => "no row".to_owned(),
                    Some(row) => {
                        let differs = |cell: &&(String, Vec<u8>)| other.is_none_or(|other| !other.contains(cell));
                        let cells = row.iter().filter(differs);
                        let text = |(c, v): &(String, Vec<u8>)| format!("{c}={:.200}", String::from_utf8_lossy(v));
                        cells.map(text).collect::<Vec<_>>().join(" ")
                    }
                };
                let (was, is) = (was.get(key), is.get(key));
                wrong.push(format!("{table} {key} is not as in {wanted_is}: {} / {}", words(was, is), words(is, was)));
            }
        }
    }
    wrong.truncate(12);
    wrong
}
