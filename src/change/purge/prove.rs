//! Looks for what must be gone: in every value, in references, in search indexes, among the bytes of the files.

use std::collections::HashSet;
use std::time::Instant;

use serde_json::{Value, json};

use super::desk::{Desk, Kept};
use super::effects::Updates;
use super::graph::Graph;
use super::matcher::Matcher;
use super::scan::{self, Mentions, Search};
use super::subject::Handle;
use crate::change::ChangeError;
use crate::store::Store;

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
    /// Bytes: files with hits; none when they were not looked at.
    pub files: Vec<(String, u64)>,
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
            "index": { "hits": self.index },
            "bytes": { "hits": self.files.iter().map(|(_, hits)| hits).sum::<u64>(), "files": files },
        })
    }
}

/// Looks before anything is deleted, so that not finding it later means something.
///
/// # Errors
/// The engine's refusal.
pub async fn before(_store: &Store, _desk: &Desk<'_>, _kept: &mut Kept) -> Result<(), ChangeError> {
    Ok(())
}

/// Lets the engine go of old pages, and looks.
///
/// # Errors
/// The engine's refusal.
pub async fn after(store: &Store, desk: &Desk<'_>, kept: &mut Kept) -> Result<Proof, ChangeError> {
    let mut proof = Proof::default();
    let began = Instant::now();
    logical(store, desk, kept, &mut proof).await?;
    kept.phases.insert("verify".to_owned(), began.elapsed().as_secs_f64());
    Ok(proof)
}

async fn logical(store: &Store, desk: &Desk<'_>, kept: &Kept, proof: &mut Proof) -> Result<(), ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let erasure = &store.recognised().erasure;
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
    let matcher = Matcher::new(handles.iter().copied(), ids.iter().cloned())?;
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
        mentions: Mentions::Leave,
        own: own.as_ref().map(|o| o.schema.as_str()),
        known: &known,
        follows: &follows,
        progress: desk.progress,
    };
    let found = scan::everything(&mut snapshot, &search, &mut Updates::default()).await?;
    let named: usize = found.counted.values().sum();
    let unchangeable = found.mentions.iter().filter(|m| !m.known).count();
    let references: usize = found.loosened.values().sum();
    let stuck: usize = found.stuck.values().sum();
    proof.account = found.account;
    proof.logical = named + references + stuck;
    proof.left = if kept.options.mentions == Mentions::Leave { named + stuck } else { unchangeable + stuck };
    let places = |all: &std::collections::BTreeMap<String, usize>| all.keys().cloned().collect::<Vec<_>>().join(", ");
    if kept.options.mentions != Mentions::Leave && named > unchangeable {
        proof.incomplete.push(format!("{} values still name the person: {}", named - unchangeable, places(&found.counted)));
    }
    if references > 0 {
        proof.incomplete.push(format!("{references} values still refer to rows that are gone: {}", places(&found.loosened)));
    }
    if !found.redacts.is_empty() {
        proof.incomplete.push(format!("{} private values of the audit trail still name the person", found.redacts.len()));
    }
    Ok(())
}
