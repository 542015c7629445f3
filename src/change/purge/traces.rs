//! Searches the bytes of the files after the deletion, and reports which places remaining rows explain.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::desk::KeptSession;
use super::graph::id_columns;
use super::live_traces::LiveTraces;
use super::prove::{Proof, by_handle, telling};
use super::vectors;
use super::verdict::RemainKind;
use crate::change::ChangeError;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::fetched::FetchedValue;
use crate::store::proof::bytes::{FilesWatch, UncheckedBytes};
use crate::store::proof::made::MadeValue;
use crate::store::proof::needles::SoughtBytes;
use crate::store::proof::values::{StoredSighting, ValueWatch};
use crate::store::snapshot::WantedRows;

/// Inputs of the search among the bytes.
pub struct TraceSearch<'a> {
    /// Handles.
    pub handles: &'a [String],
    /// Number of matches of each handle in values.
    pub named: &'a [usize],
    /// Whether to search for the ends of handles too.
    pub tails: bool,
}

/// Message for a server, whose files cannot be searched.
pub fn unchecked(full: bool) -> &'static str {
    if full {
        "the bytes of the server's files were not checked: the tables were rewritten, and only the server has access \
         to their old files"
    } else {
        "the bytes of the server's files were not checked: old versions of rows may stay in them until their space is \
         reused; --full rewrites the tables, which locks them in the meantime"
    }
}

/// Searches values for the same terms as the bytes while they are read for another reason, and detects whether the
/// files have changed since.
pub struct TraceWatch {
    /// Searches values.
    pub values: ValueWatch,
    files: FilesWatch,
}

impl TraceWatch {
    /// Begins to watch, before any value is read; `None` if there are no bytes to search.
    ///
    /// # Errors
    /// More terms than can be searched for at once.
    pub async fn begin(store: &Store, kept: &KeptSession, handles: &[String]) -> Result<Option<Self>, ChangeError> {
        let Some(files) = store.proof().watch_files().await else { return Ok(None) };
        let values =
            ValueWatch::new(handles, &vectors::stored(&kept.vectors)).stored_as(store.proof().text_form().await?);
        Ok(Some(TraceWatch { values, files }))
    }
}

impl LiveTraces {
    /// Reads every value again. The columns of judged values are already known.
    async fn again(self, store: &Store, kept: &KeptSession, watch: &ValueWatch) -> Result<Self, ChangeError> {
        let mut live = LiveTraces { judged: self.judged, ..LiveTraces::default() };
        let mut snapshot = store.snapshot().await?;
        for (table, column, _) in vectors::places(store) {
            if !kept.vectors.iter().any(|vector| (&vector.table, &vector.column) == (&table, &column)) {
                continue;
            }
            let columns = [column];
            let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
            let each = |row: Vec<FetchedValue>| {
                let bytes = row.first().and_then(FetchedValue::bytes).unwrap_or_default();
                live.vectors.extend(watch.needles().contexts(bytes).iter().map(|context| context.needle));
                ControlFlow::Continue(())
            };
            snapshot.stream(wanted, each).await?;
        }
        drop(snapshot);
        live.read(store, watch, true).await?;
        Ok(live)
    }

    /// Reads data outside the tables of a layout: the structure, and SQLite's internal tables; with `all`, every table.
    async fn read(&mut self, store: &Store, watch: &ValueWatch, all: bool) -> Result<(), ChangeError> {
        let mut snapshot = store.snapshot().await?;
        let ids_only = id_columns(store, &snapshot.relations().await?);
        let mut contexts = std::mem::take(&mut self.contexts);
        let each = |sighting: StoredSighting| {
            let is_part = !sighting.entire && ids_only.contains(&(sighting.table.clone(), sighting.column.clone()));
            let place = (sighting.handle, format!("{}.{}", sighting.table.title(), sighting.column));
            let is_told = is_part || self.judged.contains(&place);
            self.add_places(&sighting.table, &sighting.column, (sighting.handle, sighting.count), is_told);
        };
        store.proof().search_values(watch, all, &mut contexts, each).await?;
        for object in snapshot.definitions().await? {
            contexts.add([&object.name, &object.text].into_iter().flat_map(|text| watch.contexts(text)));
        }
        let made = |made: MadeValue<'_>| {
            let bytes = made.value.bytes().unwrap_or_default();
            contexts.add(match std::str::from_utf8(bytes) {
                Ok(text) => watch.contexts(text),
                Err(_) => watch.needles().contexts(bytes),
            });
            let seen = if made.is_indexed { watch.seen(made.value, false) } else { None };
            for (handle, count) in seen.into_iter().flat_map(|value| value.seen) {
                *self.made.entry((handle, made.table.to_owned())).or_default() += count.whole;
            }
        };
        store.proof().made_values(made).await?;
        self.contexts = contexts;
        Ok(())
    }
}

/// Counts places of handles in the bytes of the files that no value explains, such as remains of rows deleted earlier.
/// The inner error is the reason why the bytes were not searched.
///
/// # Errors
/// The engine's refusal.
pub async fn unaccounted(store: &Store, handles: &[String]) -> Result<Result<u64, UncheckedBytes>, ChangeError> {
    let mut sought = SoughtBytes { tails: false, ..SoughtBytes::of(handles) };
    if store.proof().watch_files().await.is_some() {
        let mut live = LiveTraces::default();
        let watch = ValueWatch::new(handles, &[]).stored_as(store.proof().text_form().await?);
        live.read(store, &watch, true).await?;
        sought.known = live.contexts.all();
    }
    Ok(store.proof().scan_bytes(&sought).await.map(|scan| scan.hits()))
}

/// Searches the files. Places shared with remaining rows, or left by choice, are counted separately: `live` is the
/// finding of the search of all values, repeated if anybody has written since. A full-text index may store only the end
/// of a handle, so the ends are searched for if there is such an index.
pub async fn bytes(
    store: &Store,
    kept: &KeptSession,
    looked: &TraceSearch<'_>,
    live: Option<(TraceWatch, LiveTraces)>,
    proof: &mut Proof,
) -> Result<(), ChangeError> {
    let handles = looked.handles;
    let Some((mut watch, mut live)) = live else {
        let _ = proof.looked_through(kept, store.proof().scan_bytes(&SoughtBytes::default()).await);
        return Ok(());
    };
    live.read(store, &watch.values, false).await?;
    let is_current = watch.files.is_unchanged().await;
    if !is_current {
        live = live.again(store, kept, &watch.values).await?;
    }
    let sought = |live: &mut LiveTraces| {
        let mut known = std::mem::take(&mut live.contexts).all();
        known.extend(vectors::shared(watch.values.needles().needles(), &live.vectors));
        SoughtBytes { handles: handles.to_vec(), vectors: vectors::stored(&kept.vectors), tails: looked.tails, known }
    };
    let mut scan = store.proof().scan_bytes(&sought(&mut live)).await;
    if is_current && scan.is_ok() && !watch.files.is_unchanged().await {
        live = live.again(store, kept, &watch.values).await?;
        scan = store.proof().scan_bytes(&sought(&mut live)).await;
    }
    let Some(scan) = proof.looked_through(kept, scan) else { return Ok(()) };
    proof.left_bytes = scan.known();
    if scan.hits() + scan.known() > 0 {
        tell(kept, looked, &live, proof);
    }
    let hits = scan.hits();
    proof.files = scan.files.iter().map(|file| (file.path.clone(), file.hits())).collect();
    if hits > 0 {
        let kinds: Vec<&str> = by_handle(&scan.by_needle(), handles.len())
            .iter()
            .zip(telling(kept))
            .filter(|(hits, _)| **hits > 0)
            .map(|(_, handle)| &*handle.kind)
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

/// Reports an ambiguity of the bytes: a value equal to a handle, or left by choice, looks the same as a copy of a
/// deleted value.
fn tell(kept: &KeptSession, looked: &TraceSearch<'_>, live: &LiveTraces, proof: &mut Proof) {
    let mut untold: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, handle) in telling(kept).enumerate() {
        let hits = live.hits.get(&number).copied().unwrap_or_default();
        if hits > 0 && !kept.subject.shares(&handle.value) {
            *untold.entry(&*handle.kind).or_default() += hits;
        }
    }
    for (kind, places) in untold {
        let what = format!(
            "bytes cannot tell whether copies of a handle of the kind {kind} are left: rows that stay contain it in \
             {places} {}",
            if places == 1 { "place" } else { "places" }
        );
        proof.find(RemainKind::Untold, what);
    }
    for ((number, table), places) in &live.made {
        let Some(handle) = telling(kept).nth(*number).filter(|handle| !kept.subject.shares(&handle.value)) else {
            continue;
        };
        let what = format!(
            "an expression index of {table} contains a handle of the kind {} in {{#}} {{place|places}}: it follows the \
             columns that it is computed from",
            handle.kind
        );
        proof.find(RemainKind::Untold, agreeing(*places, &what));
    }
    let mut unnamed: BTreeMap<&str, u64> = BTreeMap::new();
    for ((number, place), count) in &live.named {
        let is_others = looked.handles.get(*number).is_some_and(|word| kept.subject.shares(word));
        if looked.named.get(*number) == Some(&0) && !is_others {
            *unnamed.entry(place).or_default() += count;
        }
    }
    for (place, count) in unnamed {
        let what = agreeing(
            count,
            &format!(
                "{place} names the person {{#}} {{time|times}} in a spelling that no decision removes: change that \
                 value, and resume"
            ),
        );
        proof.find(RemainKind::Mention, what);
    }
}
