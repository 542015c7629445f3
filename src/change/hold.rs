//! Legal holds: while one is active, nobody can erase the person.

use serde_json::{Value, json};

use super::ChangeError;
use super::audit::without;
use super::draft::{Draft, writable};
use super::plan::{ChangeDanger, Plan};
use super::purge::subject;
use crate::layout::TimeSpelling;
use crate::memory::Entity;
use crate::store::Store;
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation, StoredRows};

async fn ready(store: &Store) -> Result<(), ChangeError> {
    let own = writable(store).await?;
    if store.records().can_erase() {
        return Ok(());
    }
    Err(without(store, Some(&own), "has no table for holds yet").await)
}

async fn id_of(store: &Store, given: &str) -> Result<String, ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let subject = subject::resolve(&mut snapshot, given, &[]).await?;
    Ok(subject.ids.first().cloned().unwrap_or_default())
}

/// Plans a hold.
///
/// # Errors
/// As resolving the person; [`ChangeError::Refused`] without our tables.
pub async fn hold(store: &Store, given: &str, reason: Option<&str>, actor: &str) -> Result<Plan, ChangeError> {
    subject::check(given)?;
    ready(store).await?;
    let id = id_of(store, given).await?;
    let mut draft = Draft::new(store, "hold", ChangeDanger::Guarded).await?;
    let own = writable(store).await?;
    if store.records().holds().await?.iter().any(|(held, _)| *held == id) {
        return Ok(draft.seal());
    }
    let text = |t: &str| Cell::Is(FetchedValue::Text(t.to_owned()));
    let reason_cell = reason.map_or(Cell::Is(FetchedValue::Null), text);
    let columns = ["subject", "reason", "actor", "created_at"].map(str::to_owned).to_vec();
    let row = vec![text(&id), reason_cell, text(actor), Cell::Now(TimeSpelling::Canonical)];
    draft.note(Entity::Subject, &id, Value::Null, json!({ "held": true, "reason": reason }));
    draft.effects.push("nothing of this person is erased while the hold exists".to_owned());
    let key = vec!["subject".to_owned()];
    draft.push(Mutation::Insert { table: own.table("memory_holds"), key, columns, rows: vec![row] });
    Ok(draft.seal())
}

/// Plans the end of a hold.
///
/// # Errors
/// [`ChangeError::NotFound`] if the person is not under a hold.
pub async fn unhold(store: &Store, given: &str) -> Result<Plan, ChangeError> {
    subject::check(given)?;
    ready(store).await?;
    let held = store.records().holds().await?;
    let id = match [given, given.trim()].into_iter().find(|given| held.iter().any(|(id, _)| id == given)) {
        Some(id) => id.to_owned(),
        None => id_of(store, given).await?,
    };
    if !held.iter().any(|(other, _)| *other == id) {
        return Err(ChangeError::NotFound(format!("there is no hold on `{given}`")));
    }
    let mut draft = Draft::new(store, "unhold", ChangeDanger::Guarded).await?;
    let own = writable(store).await?;
    let rows = StoredRows::with(&own.table("memory_holds"), "subject", FetchedValue::Text(id.clone()));
    draft.watch(rows.clone()).await?;
    draft.note(Entity::Subject, &id, json!({ "held": true }), Value::Null);
    draft.push(Mutation::Delete(rows));
    Ok(draft.seal())
}
