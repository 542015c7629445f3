//! Searches for data that must be gone: in every value, in references, in search indexes, and in the bytes of the
//! files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use super::desk::{Desk, KeptSession};
use super::receipt::{ByteHits, ControlFound, FileHits, IndexHits, PurgeVerification, ValueHits};
use super::remains;
use super::subject::PersonHandle;
use super::traces::{self, TraceSearch, TraceWatch};
use super::vectors;
use super::verdict::{PurgeStatus, Remain, RemainKind};
use crate::change::{ChangeError, now};
use crate::memory::{agreeing, counted, thousands};
use crate::store::Store;
use crate::store::proof::bytes::{ByteScan, UncheckedBytes};
use crate::store::proof::index::SideIndex;
use crate::store::proof::needles::{NeedleForm, Needles, SoughtBytes};
use crate::store::proof::pass::PassRequest;

/// Longest wait for locks at each step of the physical pass.
const PATIENCE: Duration = Duration::from_secs(3);

/// Findings of a verification.
#[derive(Debug, Default, Clone)]
pub struct Proof {
    /// Data that is left or was not checked. It decides the status.
    pub findings: Vec<Remain>,
    /// Disclosures that do not affect the status.
    pub notes: Vec<String>,
    /// Values and references that still name the person or deleted rows.
    pub logical: usize,
    /// Columns of these values, and of values that could not be read.
    pub places: BTreeSet<String>,
    /// Number of these that were left by choice.
    pub left: usize,
    /// Values of the kept account.
    pub account: usize,
    /// Entries of search indexes.
    pub index: u64,
    /// Old vectors whose nearest neighbours were queried.
    pub neighbours: usize,
    /// Files with hits in their bytes; empty if they were not searched.
    pub files: Vec<(String, u64)>,
    /// Hits in bytes that remaining rows explain.
    pub left_bytes: u64,
    /// Reason why bytes were not checked; `None` when they were.
    pub unchecked: Option<String>,
}

impl Proof {
    /// Records a finding.
    pub fn find(&mut self, kind: RemainKind, what: impl Into<String>) {
        self.findings.push(Remain::new(kind, what));
    }

    /// Returns the result of a step. If the server does not support or allow it, records that and returns an empty
    /// result.
    fn done<T: Default>(
        &mut self,
        outcome: Result<T, ChangeError>,
        kind: RemainKind,
        step: &str,
    ) -> Result<T, ChangeError> {
        match outcome {
            Err(ChangeError::Store(error)) => {
                let Some(words) = error.refusal() else { return Err(error.into()) };
                self.find(kind, format!("the server refused {step}: {words}"));
                Ok(T::default())
            }
            outcome => outcome,
        }
    }

    /// Whether another plan may remove something that is left.
    pub fn is_late(&self) -> bool {
        let may_go =
            |kind| matches!(kind, RemainKind::Rows | RemainKind::Mention | RemainKind::Reference | RemainKind::Private);
        self.findings.iter().any(|finding| may_go(finding.kind))
    }

    /// Returns the reasons why the verification is incomplete; empty if it is complete.
    pub fn incomplete(&self) -> Vec<String> {
        let weighs = |finding: &&Remain| finding.kind.allows() == PurgeStatus::Incomplete;
        self.findings.iter().filter(weighs).map(|finding| finding.what.clone()).collect()
    }

    /// Returns the searches and their findings, for the receipt.
    pub fn verification(&self, kept: &KeptSession) -> PurgeVerification {
        let files: Vec<FileHits> =
            self.files.iter().map(|(path, hits)| FileHits { path: path.clone(), hits: *hits }).collect();
        PurgeVerification {
            control: ControlFound { found: kept.control.0, of: kept.control.1 },
            logical: ValueHits { hits: self.logical, left: self.left, account: self.account },
            index: IndexHits { hits: self.index, neighbours_of: self.neighbours },
            bytes: ByteHits {
                hits: files.iter().map(|file| file.hits).sum(),
                files,
                left: self.left_bytes,
                checked: self.unchecked.is_none(),
                reason: self.unchecked.clone(),
            },
        }
    }

    /// Returns the scan. If there is none, records the reason, which affects the status.
    pub(super) fn looked_through(
        &mut self,
        kept: &KeptSession,
        scan: Result<ByteScan, UncheckedBytes>,
    ) -> Option<ByteScan> {
        let reason = match scan {
            Ok(scan) => return Some(scan),
            Err(reason) => reason,
        };
        self.unchecked = Some(reason.to_string());
        if reason == UncheckedBytes::Server {
            self.find(RemainKind::ServerBytes, traces::unchecked(kept.options.full));
        } else {
            self.find(RemainKind::BytesUnread, format!("the bytes of the files were not checked: {reason}"));
        }
        None
    }
}

/// Searches before the deletion, so that a later search without hits means something.
///
/// # Errors
/// The engine's refusal.
pub async fn before(store: &Store, desk: &Desk<'_>, kept: &mut KeptSession) -> Result<(), ChangeError> {
    kept.broken_before = broken(store).await?;
    (desk.progress)("bytes", 0);
    let mut snapshot = store.snapshot().await?;
    kept.vectors = vectors::some(&mut snapshot, &kept.deletes).await?;
    kept.side_indexes = store.proof().side_indexes(&snapshot.relations().await?.tables).await?;
    drop(snapshot);
    let handles = words(kept).len();
    let sought = SoughtBytes { vectors: vectors::stored(&kept.vectors), ..SoughtBytes::of(&words(kept)) };
    let scan = store.proof().scan_bytes(&sought).await.ok();
    if let Some(scan) = &scan {
        let found: HashSet<usize> = scan.by_needle().into_keys().map(|(number, _)| number).collect();
        let telling = Needles::new(&[], &sought.vectors, false).forms();
        let unseen = telling.into_keys().filter(|number| !found.contains(&(handles + number))).count();
        kept.notes.extend(counted(
            unseen,
            &format!(
                "{{#}} of {} vectors {{was not|were not}} found among the bytes before",
                thousands(kept.vectors.len())
            ),
        ));
    }
    kept.bytes_before = scan.map(|scan| by_handle(&scan.by_needle(), handles));
    let unseen = kept.bytes_before.iter().flatten().filter(|hits| **hits == 0).count();
    kept.notes.extend(counted(
        unseen,
        "{#} {handle was|handles were} not found in the bytes of the files before: \
             compressed, or not recognisable there; their absence afterwards proves nothing",
    ));
    Ok(())
}

/// Lets the engine release old pages, and searches again.
///
/// # Errors
/// The engine's refusal.
pub async fn after(store: &Store, desk: &Desk<'_>, kept: &mut KeptSession) -> Result<Proof, ChangeError> {
    let mut proof = Proof::default();
    if kept.is_anew {
        let what = "the file of the first run was lost: handles and ids that only deleted rows contained were not \
         searched for";
        proof.find(RemainKind::Forgotten, what);
    }
    let timed = |kept: &mut KeptSession, phase: &str, began: Instant| {
        *kept.phases.entry(phase.to_owned()).or_default() += began.elapsed().as_secs_f64();
    };
    let began = Instant::now();
    (desk.progress)("physical pass", 0);
    let cleaned = physical(store, kept, &mut proof).await;
    proof.done(cleaned, RemainKind::Unclean, "cleaning up old rows")?;
    timed(kept, "physical", began);
    let began = Instant::now();
    let handles = words(kept);
    let watch = TraceWatch::begin(store, kept, &handles).await?;
    let values = watch.as_ref().map(|watch| &watch.values);
    let (named, live) = remains::logical(store, desk, kept, values, &mut proof).await?;
    let copied = kept.copied.after(&mut store.snapshot().await?, &mut proof).await;
    proof.done(copied, RemainKind::Unread, "looking for copies that triggers made")?;
    let indexes = asked(store, kept, &mut proof).await;
    let indexes = proof.done(indexes, RemainKind::IndexUnread, "asking search indexes")?;
    let hanging = broken(store).await;
    for (key, rows) in proof.done(hanging, RemainKind::Unread, "searching for references to deleted rows")? {
        if rows > kept.broken_before.get(&key).copied().unwrap_or_default() {
            proof.find(
                RemainKind::Dangling,
                agreeing(
                    rows,
                    &format!("{{#}} {{row refers to a row that is|rows refer to rows that are}} missing: {key}"),
                ),
            );
        }
    }
    timed(kept, "verify", began);
    let began = Instant::now();
    let looked = TraceSearch { handles: &handles, named: &named, tails: indexes };
    let bytes = traces::bytes(store, kept, &looked, watch.map(|watch| (watch, live)), &mut proof).await;
    proof.done(bytes, RemainKind::BytesUnread, "looking at bytes")?;
    timed(kept, "bytes", began);
    Ok(proof)
}

/// Queries search indexes. Returns whether there are any.
async fn asked(store: &Store, kept: &KeptSession, proof: &mut Proof) -> Result<bool, ChangeError> {
    // An index also returns other people's rows.
    let own = telling(kept).filter(|handle| !handle.is_shared());
    let handles: Vec<String> = own.map(|handle| handle.value.clone()).collect();
    let indexes = store.proof().search_indexes(&handles).await?;
    for index in &indexes {
        let (name, hits) = (&index.table, index.total());
        proof.index += hits;
        let sides: Vec<&SideIndex> = kept.side_indexes.iter().filter(|side| side.index == *name).collect();
        // Its entries belong to rows that are searched themselves, unless one of these was changed without the index.
        let changed =
            |side: &SideIndex| kept.planned.get(&side.table.title()).is_some_and(|n| n.contains_key("update"));
        let told = !sides.is_empty() && !sides.iter().any(|side| changed(side));
        if let Some(reason) = index.unread.as_ref().filter(|_| sides.is_empty()) {
            proof.find(RemainKind::IndexUnread, format!("the search index {name} could not be queried: {reason}"));
        } else if hits > 0 && !told && index.contentless {
            proof.find(
                RemainKind::Index,
                agreeing(
                    hits,
                    &format!("the search index {name} still returns {{#}} {{entry|entries}} for the person"),
                ),
            );
        } else if hits > 0 && !told && proof.logical + proof.account == 0 {
            // The index was rebuilt from rows that stay, none of which names the person.
            let what = format!(
                "the search index {name} returns {hits} {{entry|entries}} for the person's words: rows that stay \
                 contain them in other spellings or with characters in between"
            );
            proof.find(RemainKind::Untold, agreeing(hits, &what));
        }
    }
    for side in &kept.side_indexes {
        let orphans = store.proof().orphans_of(side).await?.saturating_sub(side.orphans);
        if orphans > 0 {
            proof.index += orphans;
            let (index, table) = (&side.index, side.table.title());
            let what = agreeing(
                orphans,
                &format!(
                    "the search index {index} keeps {{#}} {{entry about a row|entries about rows}} of {table} {{that \
                 is gone: remove it|that are gone: remove them}} with the program that maintains it, and resume"
                ),
            );
            proof.find(RemainKind::Index, what);
        }
    }
    let (asked, near) = vectors::neighbours(store, &kept.vectors, &kept.deletes).await?;
    proof.neighbours = asked;
    proof.index += near;
    if near > 0 {
        let what = format!("{near} of the nearest neighbours of old vectors are deleted rows");
        proof.find(RemainKind::Index, what);
    }
    Ok(!indexes.is_empty())
}

/// Returns the handles to search for in bytes: those that identify the person, without those of conversations or banks.
pub(super) fn telling(kept: &KeptSession) -> impl Iterator<Item = &PersonHandle> {
    kept.subject.searched().filter(|handle| !matches!(&*handle.kind, "session" | "profile"))
}

fn words(kept: &KeptSession) -> Vec<String> {
    telling(kept).map(|handle| handle.value.clone()).collect()
}

pub(super) fn by_handle(found: &BTreeMap<(usize, NeedleForm), u64>, handles: usize) -> Vec<u64> {
    let mut all = vec![0; handles];
    for ((handle, _), count) in found {
        if let Some(hits) = all.get_mut(*handle) {
            *hits += count;
        }
    }
    all
}

async fn broken(store: &Store) -> Result<BTreeMap<String, u64>, ChangeError> {
    let problems = store.proof().key_problems().await?;
    Ok(problems.into_iter().map(|((table, parent, key), rows)| (format!("{table} -> {parent} #{key}"), rows)).collect())
}

async fn physical(store: &Store, kept: &KeptSession, proof: &mut Proof) -> Result<(), ChangeError> {
    let at = now().chars().take(10).collect();
    let mut touched = kept.touched.clone();
    touched.extend(kept.named_in.iter().filter(|table| !kept.touched.contains(table)).cloned());
    let learned = remains::learned(store, kept).await?.into_iter().map(|statistics| statistics.table);
    let learned = learned.filter(|table| !touched.contains(table)).collect::<BTreeSet<_>>().into_iter().collect();
    let wanted = PassRequest { touched, learned, full: kept.options.full, at, patience: PATIENCE };
    let pass = store.proof().physical_pass(&wanted).await?;
    // A step that is refused here lowers the status; a step that nobody could take from here does not.
    pass.refused.into_iter().for_each(|words| proof.find(RemainKind::NotAllowed, words));
    proof.notes.extend(pass.disclosures);
    pass.incomplete.into_iter().for_each(|reason| proof.find(RemainKind::Unclean, reason));
    Ok(())
}
