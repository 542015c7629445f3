//! Looks through the bytes of the files after deleting, and tells what rows that stay account for.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::desk::Kept;
use super::graph::id_columns;
use super::prove::{Proof, by_handle, telling};
use super::vectors;
use super::verdict::Kind;
use crate::change::ChangeError;
use crate::store::Store;
use crate::store::proof::needles::{Form, Needles};
use crate::store::proof::values::Sighting;

/// What is looked for among the bytes.
pub struct Looked<'a> {
    /// Handles.
    pub handles: &'a [String],
    /// How often each of these was found in values.
    pub named: &'a [usize],
    /// Their tails too.
    pub tails: bool,
}

/// Words for what a server does not show.
fn unchecked(full: bool) -> &'static str {
    if full {
        "the bytes of the server's files were not checked: the tables were written anew, their old files are the server's"
    } else {
        "the bytes of the server's files were not checked: old versions of rows may stay in them until their place is used \
         again; --full writes the tables anew, which locks them meanwhile"
    }
}

/// Looks through the files. What live rows share with a handle, or were left to say, is told apart.
/// The tail of a handle is what a full-text index may keep of it: looked for where there is one.
pub async fn bytes(store: &Store, kept: &Kept, looked: &Looked<'_>, proof: &mut Proof) -> Result<(), ChangeError> {
    let handles = looked.handles;
    let mut needles = Needles::new(handles, &[]);
    if !looked.tails {
        needles.needles.retain(|needle| needle.form != Form::Tail);
    }
    vectors::add(&mut needles, &kept.vectors);
    let Some(mut scan) = store.scan_bytes(&needles, |_| {}).await? else {
        proof.find(Kind::ServerBytes, unchecked(kept.options.full));
        return Ok(());
    };
    proof.bytes_checked = true;
    if scan.hits() > 0 {
        explained(store, kept, looked, &mut needles, proof).await?;
        proof.left_bytes = scan.hits();
        scan = store.scan_bytes(&needles, |_| {}).await?.unwrap_or_default();
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
        let what = format!("{hits} places among the bytes of the files still hold handles ({})", kinds.join(", "));
        proof.find(Kind::Bytes, what);
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
        let what = format!("{place} names the person {count} times in a spelling that is not taken out");
        proof.find(Kind::Mention, what);
    }
    vectors::without_shared(&mut snapshot, needles, &kept.vectors).await
}
