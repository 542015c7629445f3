//! Looks through the bytes of the files after deleting, and tells what rows that stay account for.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::desk::KeptSession;
use super::graph::id_columns;
use super::prove::{Proof, by_handle, telling};
use super::subject::PersonHandle;
use super::vectors;
use super::verdict::RemainKind;
use crate::change::ChangeError;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::proof::bytes::{ByteSearch, NeedleContexts};
use crate::store::proof::needles::{NeedleForm, Needles};
use crate::store::proof::values::StoredSighting;

/// Inputs of the search among the bytes.
pub struct TraceSearch<'a> {
    /// Handles.
    pub handles: &'a [String],
    /// Number of times that each of these handles was found in values.
    pub named: &'a [usize],
    /// Their tails too.
    pub tails: bool,
}

/// Words for what a server does not show.
pub fn unchecked(full: bool) -> &'static str {
    if full {
        "the bytes of the server's files were not checked: the tables were written again, their old files are the server's"
    } else {
        "the bytes of the server's files were not checked: old versions of rows may stay in them until their place is used \
         again; --full writes the tables again, which locks them meanwhile"
    }
}

/// Looks through the files. What live rows share with a handle, or were left to say, is distinguished.
/// The tail of a handle is what a full-text index may keep of it: looked for where there is one.
pub async fn bytes(
    store: &Store,
    kept: &KeptSession,
    looked: &TraceSearch<'_>,
    proof: &mut Proof,
) -> Result<(), ChangeError> {
    let handles = looked.handles;
    let mut needles = Needles::new(handles, &[]);
    if !looked.tails {
        needles.needles.retain(|needle| needle.form != NeedleForm::Tail);
    }
    vectors::add(&mut needles, &kept.vectors);
    let scan = store.proof().scan_bytes(&needles, |_| {}).await;
    let Some(mut scan) = proof.looked_through(kept, scan) else { return Ok(()) };
    if scan.hits() > 0 {
        explained(store, kept, looked, &mut needles, proof).await?;
        proof.left_bytes = scan.hits();
        let again = store.proof().scan_bytes(&needles, |_| {}).await;
        let Some(again) = proof.looked_through(kept, again) else { return Ok(()) };
        scan = again;
        proof.left_bytes -= scan.hits().min(proof.left_bytes);
    }
    let hits = scan.hits();
    proof.files = scan.files.iter().map(|file| (file.path.clone(), file.hits())).collect();
    if hits > 0 {
        let kinds: Vec<&str> = by_handle(&scan.by_needle(), handles.len())
            .iter()
            .zip(telling(kept))
            .filter(|(hits, _)| **hits > 0)
            .map(|(_, handle)| handle.kind.as_str())
            .chain(scan.by_needle().keys().any(|(n, _)| *n >= handles.len()).then_some("vector"))
            .collect();
        let what = agreeing(
            hits,
            &format!(
                "{{#}} {{place|places}} among the bytes of the files {{still holds|still hold}} handles ({})",
                kinds.join(", ")
            ),
        );
        proof.find(RemainKind::Bytes, what);
    }
    Ok(())
}

/// Finds what values that stay account for: each place in them with what stands around it. What a value is as a whole,
/// or what the operator left, cannot be told from a copy of what is gone.
async fn explained(
    store: &Store,
    kept: &KeptSession,
    looked: &TraceSearch<'_>,
    needles: &mut Needles,
    proof: &mut Proof,
) -> Result<(), ChangeError> {
    let mut unnamed: BTreeMap<String, u64> = BTreeMap::new();
    let mut snapshot = store.snapshot().await?;
    let ids_only = id_columns(store, &snapshot.relations().await?);
    let each = |sighting: StoredSighting| {
        let part = !sighting.entire && ids_only.contains(&(sighting.table.clone(), sighting.column.clone()));
        let others = looked.handles.get(sighting.handle).is_some_and(|word| kept.subject.shares(word));
        // What the structure holds is told as such.
        let structure = sighting.table.name == "sqlite_schema";
        if looked.named.get(sighting.handle) == Some(&0) && !part && !others && !structure {
            *unnamed.entry(format!("{}.{}", sighting.table.title(), sighting.column)).or_default() += sighting.count;
        }
        ControlFlow::Continue(())
    };
    vectors::without_shared(&mut snapshot, needles, &kept.vectors).await?;
    let search = ByteSearch::new(needles).map_err(|e| ChangeError::Failed(e.to_string()))?;
    let mut contexts = NeedleContexts::default();
    let live = store.proof().search_values(looked.handles, Some((&search, &mut contexts)), each, |_| {}).await?;
    for object in snapshot.definitions().await? {
        contexts.add([&object.name, &object.text].iter().flat_map(|text| search.contexts(text.as_bytes())));
    }
    needles.known = contexts.all();
    let mut untold: BTreeMap<&str, u64> = BTreeMap::new();
    let theirs = |handle: &PersonHandle| kept.subject.shares(&handle.value);
    for (handle, hits) in telling(kept).zip(&live.hits).filter(|(handle, hits)| **hits > 0 && !theirs(handle)) {
        *untold.entry(handle.kind.as_str()).or_default() += hits;
    }
    for (kind, places) in untold {
        let what = format!(
            "bytes cannot tell whether copies of a handle of the kind {kind} are left: rows that stay hold it in {places} {}",
            if places == 1 { "place" } else { "places" }
        );
        proof.find(RemainKind::Untold, what);
    }
    for (place, count) in unnamed {
        let what = agreeing(
            count,
            &format!("{place} names the person {{#}} {{time|times}} in a spelling that is not taken out"),
        );
        proof.find(RemainKind::Mention, what);
    }
    Ok(())
}
