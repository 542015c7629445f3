//! Looks for what must be gone: in every value, in references, in search indexes, among the bytes of the files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::desk::{Desk, Kept};
use super::effects::Updates;
use super::graph::{Graph, id_columns, people_columns};
use super::matcher::Matcher;
use super::scan::{self, Search, Tally};
use super::subject::Handle;
use super::vectors;
use crate::change::{ChangeError, now};
use crate::layout::Engine;
use crate::store::Store;
use crate::store::proof::bytes::{ByteScan, Unchecked};
use crate::store::proof::index::IndexHits;
use crate::store::proof::needles::{Form, Needles};
use crate::store::proof::pass::{Outcome, Wanted};
use crate::store::proof::values::Sighting;

/// How long the physical pass waits for others at each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a verification found.
#[derive(Debug, Default, Clone)]
pub struct Proof {
    /// Why the erasure is not complete.
    pub incomplete: Vec<String>,
    /// Disclosures that lower the result.
    pub particular: Vec<String>,
    /// Disclosures that do not.
    pub notes: Vec<String>,
    /// Values and references that still name the person or rows that are gone.
    pub logical: usize,
    /// Of these, what was left on purpose.
    pub left: usize,
    /// Values of the kept account.
    pub account: usize,
    /// Entries of search indexes.
    pub index: u64,
    /// Old vectors whose nearest neighbours were asked for.
    pub neighbours: usize,
    /// Bytes: files with hits; none when they were not looked at.
    pub files: Vec<(String, u64)>,
    /// Hits among bytes that rows account for which stay.
    pub left_bytes: u64,
    /// Why bytes were not looked at; none when they were.
    pub unchecked: Option<String>,
}

impl Proof {
    /// The word for how it ended.
    #[must_use]
    pub fn status(&self, kept: &Kept) -> &'static str {
        match () {
            () if !self.incomplete.is_empty() => "incomplete",
            () if self.particular.is_empty() && kept.particular.is_empty() => "verified",
            () => "verified with disclosures",
        }
    }

    /// The shape that a receipt has.
    #[must_use]
    pub fn to_json(&self, kept: &Kept) -> Value {
        let files: Vec<Value> = self.files.iter().map(|(path, hits)| json!({ "path": path, "hits": hits })).collect();
        json!({
            "control": { "found": kept.control.0, "of": kept.control.1 },
            "logical": { "hits": self.logical, "left": self.left, "account": self.account },
            "index": { "hits": self.index, "neighbours_of": self.neighbours },
            "bytes": { "hits": self.files.iter().map(|(_, hits)| hits).sum::<u64>(), "files": files,
                "left": self.left_bytes, "checked": self.unchecked.is_none(),
                "reason": self.unchecked },
        })
    }

    /// What a scan found; where there was none, that says why and decides the result.
    fn looked_through(&mut self, scan: Result<ByteScan, Unchecked>) -> Option<ByteScan> {
        let reason = match scan {
            Ok(scan) => return Some(scan),
            Err(reason) => reason,
        };
        self.unchecked = Some(reason.to_string());
        if reason != Unchecked::Server {
            self.incomplete.push(format!("the bytes of the files were not checked: {reason}"));
        }
        None
    }
}

/// Looks before anything is deleted, so that not finding it later means something.
///
/// # Errors
/// The engine's refusal.
pub async fn before(store: &Store, desk: &Desk<'_>, kept: &mut Kept) -> Result<(), ChangeError> {
    kept.broken_before = broken(store).await?;
    (desk.progress)("bytes", 0);
    kept.vectors = vectors::some(&mut store.snapshot().await?, &kept.deletes).await?;
    let handles = words(kept).len();
    let mut needles = Needles::new(&words(kept), &[]);
    vectors::add(&mut needles, &kept.vectors);
    let scan = store.scan_bytes(&needles, |_| {}).await.ok();
    if let Some(scan) = &scan {
        let unseen = scan.not_found(&needles).into_iter().filter(|n| *n >= handles).count();
        if unseen > 0 {
            kept.notes
                .push(format!("{unseen} of {} vectors were not found among the bytes before", kept.vectors.len()));
        }
    }
    kept.bytes_before = scan.map(|scan| by_handle(&scan.by_needle(), handles));
    let unseen = kept.bytes_before.iter().flatten().filter(|hits| **hits == 0).count();
    if unseen > 0 {
        kept.notes.push(format!(
            "{unseen} handles were not found among the bytes of the files before: packed, or not to be told there; that they \
             are not there afterwards proves nothing"
        ));
    }
    Ok(())
}

/// Lets the engine go of old pages, and looks.
///
/// # Errors
/// The engine's refusal.
pub async fn after(store: &Store, desk: &Desk<'_>, kept: &mut Kept) -> Result<Proof, ChangeError> {
    let mut proof = Proof::default();
    let timed = |kept: &mut Kept, phase: &str, began: Instant| {
        *kept.phases.entry(phase.to_owned()).or_default() += began.elapsed().as_secs_f64();
    };
    let began = Instant::now();
    (desk.progress)("physical pass", 0);
    physical(store, kept, &mut proof).await?;
    timed(kept, "physical", began);
    let began = Instant::now();
    let named = logical(store, desk, kept, &mut proof).await?;
    let handles = words(kept);
    let indexes = store.search_indexes(&handles).await?;
    proof.index = indexes.iter().map(IndexHits::total).sum();
    let (asked, near) = vectors::neighbours(store, &kept.vectors, &kept.deletes).await?;
    proof.neighbours = asked;
    if near > 0 {
        proof.incomplete.push(format!("{near} of the nearest neighbours of old vectors are rows that are gone"));
    }
    proof.index += near;
    if proof.index > 0 && kept.particular.is_empty() {
        proof.incomplete.push(format!("{} entries of full-text indexes still name the person", proof.index));
    }
    for (key, rows) in broken(store).await? {
        if rows > kept.broken_before.get(&key).copied().unwrap_or_default() {
            proof.incomplete.push(format!("{rows} rows refer to rows that are not there: {key}"));
        }
    }
    timed(kept, "verify", began);
    let began = Instant::now();
    let looked = Looked { handles: &handles, named: &named, tails: !indexes.is_empty() };
    bytes(store, kept, &looked, &mut proof).await?;
    timed(kept, "bytes", began);
    Ok(proof)
}

/// What is looked for among bytes: what names the person, not what names a conversation or a bank.
fn telling(kept: &Kept) -> impl Iterator<Item = &Handle> {
    kept.subject.searched().filter(|handle| !matches!(handle.kind.as_str(), "session" | "profile"))
}

fn words(kept: &Kept) -> Vec<String> {
    telling(kept).map(|handle| handle.value.clone()).collect()
}

fn by_handle(found: &BTreeMap<(usize, Form), u64>, handles: usize) -> Vec<u64> {
    let mut all = vec![0; handles];
    for ((handle, _), count) in found {
        if let Some(hits) = all.get_mut(*handle) {
            *hits += count;
        }
    }
    all
}

async fn broken(store: &Store) -> Result<BTreeMap<String, u64>, ChangeError> {
    let problems = store.key_problems().await?;
    Ok(problems.into_iter().map(|((table, parent, key), rows)| (format!("{table} -> {parent} #{key}"), rows)).collect())
}

async fn physical(store: &Store, kept: &Kept, proof: &mut Proof) -> Result<(), ChangeError> {
    let at = now().chars().take(10).collect();
    let wanted = Wanted { touched: kept.touched.clone(), full: kept.options.full, at, patience: PATIENCE };
    let pass = store.physical_pass(&wanted).await?;
    let refused: Vec<&str> = pass
        .steps
        .iter()
        .filter(|step| step.outcome == Outcome::NotAllowed)
        .filter_map(|step| step.note.as_deref())
        .collect();
    for words in pass.disclosures {
        // What may not be done here lowers the result; what no one can do from here does not.
        if refused.iter().any(|note| words.starts_with(note)) {
            proof.particular.push(words);
        } else {
            proof.notes.push(words);
        }
    }
    if store.engine() == Engine::Postgres && !kept.options.full && !kept.touched.is_empty() {
        proof.particular.push(
            "the tables were cleaned but not rewritten: old versions of rows may stay in the server's files until their \
             place is used again; --full rewrites them, which locks them meanwhile"
                .to_owned(),
        );
    }
    proof.incomplete.extend(pass.incomplete);
    Ok(())
}

/// What is looked for among the bytes.
struct Looked<'a> {
    handles: &'a [String],
    /// How often each of these was found in values.
    named: &'a [usize],
    /// Their tails too.
    tails: bool,
}

/// Looks through the files. What live rows share with a handle, or were left to say, is told apart.
/// The tail of a handle is what a full-text index may keep of it: looked for where there is one.
async fn bytes(store: &Store, kept: &Kept, looked: &Looked<'_>, proof: &mut Proof) -> Result<(), ChangeError> {
    let handles = looked.handles;
    let mut needles = Needles::new(handles, &[]);
    if !looked.tails {
        needles.needles.retain(|needle| needle.form != Form::Tail);
    }
    vectors::add(&mut needles, &kept.vectors);
    let scan = store.scan_bytes(&needles, |_| {}).await;
    let Some(mut scan) = proof.looked_through(scan) else { return Ok(()) };
    if scan.hits() > 0 {
        explained(store, kept, looked, &mut needles, proof).await?;
        proof.left_bytes = scan.hits();
        let again = store.scan_bytes(&needles, |_| {}).await;
        let Some(again) = proof.looked_through(again) else { return Ok(()) };
        scan = again;
        proof.left_bytes -= scan.hits().min(proof.left_bytes);
    }
    let hits = scan.hits();
    proof.files = scan.files.iter().map(|file| (file.path.clone(), file.hits())).collect();
    if hits > 0 && proof.incomplete.is_empty() {
        let kinds: Vec<&str> = by_handle(&scan.by_needle(), handles.len())
            .iter()
            .zip(telling(kept))
            .filter(|(hits, _)| **hits > 0)
            .map(|(_, handle)| handle.kind.as_str())
            .chain(scan.by_needle().keys().any(|(n, _)| *n >= handles.len()).then_some("vector"))
            .collect();
        proof
            .incomplete
            .push(format!("{hits} places among the bytes of the files still hold handles ({})", kinds.join(", ")));
    }
    Ok(())
}

/// Sets needles aside that rows which stay account for, and says which.
async fn explained(
    store: &Store,
    kept: &Kept,
    looked: &Looked<'_>,
    needles: &mut Needles,
    proof: &mut Proof,
) -> Result<(), ChangeError> {
    let mut unnamed: BTreeMap<String, u64> = BTreeMap::new();
    let mut snapshot = store.snapshot().await?;
    let ids_only = id_columns(store, &snapshot.relations().await?);
    let each = |sighting: Sighting| {
        let part = !sighting.entire && ids_only.contains(&(sighting.table.clone(), sighting.column.clone()));
        let others = looked.handles.get(sighting.handle).is_some_and(|word| kept.subject.shares(word));
        if looked.named.get(sighting.handle) == Some(&0) && !part && !others {
            *unnamed.entry(format!("{}.{}", sighting.table.title(), sighting.column)).or_default() += sighting.count;
        }
        ControlFlow::Continue(())
    };
    let live = store.search_values(looked.handles, &[], each, |_| {}).await?;
    let definitions: Vec<String> =
        snapshot.definitions().await?.into_iter().map(|(_, text)| text.to_lowercase()).collect();
    let at = |all: &[u64], handle: usize| all.get(handle).copied().unwrap_or_default();
    let mut shared = 0;
    for (handle, word) in looked.handles.iter().enumerate() {
        let word = word.to_lowercase();
        if at(&live.inside, handle) > 0 || at(&live.hits, handle) > 0 {
            needles.set_aside(handle, None, "rows that stay hold it");
            shared += usize::from(at(&live.hits, handle) == 0 || kept.subject.shares(&word));
        } else if definitions.iter().any(|text| text.contains(&word)) {
            needles.set_aside(handle, None, "the structure of the database holds it");
        } else if at(&live.tails, handle) > 0 {
            needles.set_aside(handle, Some(Form::Tail), "rows that stay end on the same bytes");
        }
    }
    if shared > 0 {
        proof
            .notes
            .push(format!("{shared} handles are part of longer words in rows that stay: not to be told among bytes"));
    }
    for (place, count) in unnamed {
        proof.particular.push(format!("{place} names the person {count} times in a spelling that is not taken out"));
    }
    vectors::without_shared(&mut snapshot, needles, &kept.vectors).await
}

/// Searches every value. Gives how often each handle that is looked for among bytes was found.
async fn logical(store: &Store, desk: &Desk<'_>, kept: &Kept, proof: &mut Proof) -> Result<Vec<usize>, ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let erasure = &store.recognised().erasure;
    let of_people = people_columns(store, &relations);
    let mut graph = Graph::new(&erasure.rules, relations.clone(), kept.options.account);
    graph.close(&mut snapshot, &kept.subject.ids).await?;
    let new: usize = graph.tables.values().map(|t| t.rows.len()).sum();
    if new > 0 {
        proof.incomplete.push(format!("{new} rows of the person are there: written while it was erased"));
    }
    graph.tables.clear();
    let mut account = Graph::new(&[], relations, true);
    account.rules = erasure.rules.iter().filter(|r| r.account && !kept.options.account).cloned().collect();
    account.close(&mut snapshot, &kept.subject.ids).await?;
    let handles: Vec<&Handle> = kept.subject.searched().collect();
    let ids: HashSet<String> = kept.ids.iter().cloned().collect();
    let matcher = Matcher::new(handles.iter().copied(), ids.iter().cloned(), &kept.subject.others)?;
    let own = store.own().await?;
    let known = super::plan::known_tables(store);
    // By now triggers have done their part.
    let follows = HashSet::new();
    let search = Search {
        graph: &graph,
        account: &account,
        handles: &handles,
        matcher: &matcher,
        ids: &ids,
        listed: &HashMap::new(),
        decisions: kept.options.decisions(),
        own: own.as_ref().map(|o| o.schema.as_str()),
        known: &known,
        of_people: &of_people,
        postgres: store.engine() == Engine::Postgres,
        follows: &follows,
        progress: desk.progress,
    };
    let found = scan::everything(&mut snapshot, &search, &mut Updates::default()).await?;
    let named: usize = found.counted.values().sum();
    let tally = Tally::all(found.tally.values());
    let references: usize = found.loosened.values().sum();
    let stuck: usize = found.stuck.values().sum();
    proof.account = found.account;
    proof.logical = named + references + stuck;
    proof.left = tally.left + tally.outside + tally.undone + stuck;
    let places = |all: &BTreeMap<String, usize>| all.keys().cloned().collect::<Vec<_>>().join(", ");
    if tally.done > 0 {
        let still: Vec<&str> =
            found.tally.iter().filter(|(_, t)| t.done > 0).map(|(place, _)| place.as_str()).collect();
        proof.incomplete.push(format!("{} values still name the person: {}", tally.done, still.join(", ")));
    }
    if references > 0 {
        proof
            .incomplete
            .push(format!("{references} values still refer to rows that are gone: {}", places(&found.loosened)));
    }
    if !found.redacts.is_empty() {
        proof
            .incomplete
            .push(format!("{} private values of the audit trail still name the person", found.redacts.len()));
    }
    let told = telling(kept).map(|h| handles.iter().position(|other| other.value == h.value));
    Ok(told.map(|at| at.and_then(|at| found.control.get(at)).copied().unwrap_or_default()).collect())
}
