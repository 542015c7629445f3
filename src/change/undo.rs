//! Undoes a change: the inverse of its mutations as a plan, refused if later changes build on it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{InverseMutation, KeptUndo, describe};
use super::as_of;
use super::audit::{self, OpenedEntry};
use super::chain;
use super::draft::Draft;
use super::plan::trail::EntryFacts;
use super::plan::{Change, ChangeDanger, Plan};
use super::purge::hanging::dependents_of;
use super::remove::{CHANGING, RowKeys, column_of, naming};
use super::{ChangeError, new_id, restored};
use crate::layout::Engine;
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::encode::plain_column;
use crate::store::fetched::FetchedValue;
use crate::store::own::TrailEntry;
use crate::store::row_number::is_row_number;
use crate::store::stored::{Cell, Image, Mutation, RowRevisions, RowWatch, StoredRows, TableName};

/// Later entries searched for those that changed a row.
pub(super) const LOOKED_THROUGH: usize = 1_000;

/// Rows that a conflict describes one by one.
const DESCRIBED: usize = 20;

/// Plans the inverse of the change with that number in the audit trail.
///
/// # Errors
/// [`ChangeError::NotFound`] without such an entry, [`ChangeError::Refused`] for one that cannot be undone,
/// [`ChangeError::Conflict`] if rows have changed since, [`ChangeError::Broken`] if the entry was tampered with.
pub async fn undo(store: &Store, seq: i64) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "undo", ChangeDanger::Guarded).await?;
    let opened = audit::open(store, seq).await?.ok_or_else(|| {
        let list = store.invocation().line(["audit", "list"]);
        ChangeError::NotFound(format!("the audit trail has no entry {seq}; `{list}` shows them"))
    })?;
    if let Some(reason) = opened.facts().undo_reason {
        return Err(ChangeError::Refused(format!("entry {seq} ({}) cannot be undone: {reason}", opened.entry.action)));
    }
    let Some(kept) = opened.private.get("undo") else {
        return Err(ChangeError::Refused(format!(
            "entry {seq} ({}) cannot be undone: what it would restore was not kept or has been redacted",
            opened.entry.action
        )));
    };
    let broken = |e: serde_json::Error| ChangeError::Broken(format!("entry {seq} cannot be read: {e}"));
    let kept: KeptUndo = serde_json::from_str(kept).map_err(broken)?;
    draft.trail = again(kept.trail);
    draft.undo_trail = kept.again;
    draft.facts.insert("undo_of".to_owned(), Value::from(seq));
    draft.facts.insert("undone".to_owned(), Value::from(opened.entry.action.clone()));
    let (mut moved, mut met) = (Vec::new(), Vec::new());
    for inverse in kept.inverses {
        if let Mutation::Revise(revise) = &inverse.mutation {
            match changed(store, revise).await? {
                None => draft.push(inverse.mutation),
                Some(rows) => met.push((describe(&rows, rows.keys.len(), rows.keys.len()), rows)),
            }
            continue;
        }
        let Some(rows) = inverse.mutation.rows() else { continue };
        let images = draft.watch_images(rows.clone()).await?;
        if matches!(inverse.mutation, Mutation::Update { .. })
            && rows.are_by_number()
            && !inverse.expect.columns.is_empty()
        {
            // Recorded before undo data included all columns of such a row.
            let words = "the row is known only by its number, which may belong to another row by now";
            moved.push(format!("{}: {words}", rows.table.title()));
        } else if let Some(column) = added_since(&inverse, &images) {
            moved.push(format!("{}: the column {column} was added since, and is not empty", rows.table.title()));
        } else if inverse.expect.holds(&images) {
            let mutation = fitted(store, inverse, &images).await?;
            draft.push(mutation);
        } else {
            met.push((describe(&rows, inverse.expect.count, images.len()), rows));
        }
    }
    let more = met.len().saturating_sub(DESCRIBED);
    met.truncate(DESCRIBED);
    let by = later(store, seq, met.iter().map(|(_, rows)| rows)).await?;
    moved.extend(met.iter().zip(by).map(|((words, _), by)| format!("{words}{by}")));
    moved.extend((more > 0).then(|| agreeing(more, "{#} more {row has|rows have} changed since")));
    moved.extend(leaning(&mut draft).await?);
    moved.extend(restored::lost(&mut draft, seq).await?);
    moved.extend(circles(&mut draft, &opened).await?);
    let why = if moved.is_empty() { "" } else { ": later changes depend on it" };
    moved.extend(unsupported(&mut draft).await?);
    if !moved.is_empty() {
        if let Some(by) = undone_by(store, seq).await? {
            return Err(ChangeError::Conflict {
                message: format!(
                    "entry {seq} ({}) is already undone, by entry {by}; `{}` makes the change again",
                    opened.entry.action,
                    store.invocation().line(["undo", &by.to_string(), "--apply"])
                ),
                rows: Vec::new(),
            });
        }
        let message = format!("entry {seq} ({}) cannot be undone{why}", opened.entry.action);
        return Err(ChangeError::Conflict { message, rows: moved });
    }
    for change in changes(&opened) {
        let entity = Entity::parse(&change.entity).unwrap_or(Entity::AuditEntry);
        draft.note(entity, &change.id, change.after, change.before);
    }
    Ok(draft.seal())
}

/// Cycles of parents that later changes closed, as text. A cycle that existed before the change is restored with it,
/// and listed in the plan.
async fn circles(draft: &mut Draft<'_>, opened: &OpenedEntry) -> Result<Vec<String>, ChangeError> {
    let parent = |change: Change| {
        let parent = change.before["parent_id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        Some((change.id, parent.filter(|_| change.entity == Entity::Episode.name())?))
    };
    let restored: BTreeMap<String, String> = changes(opened).into_iter().filter_map(parent).collect();
    let (mut paths, mut met) = (Vec::new(), HashSet::new());
    for child in restored.keys() {
        let path = chain::above(draft, child, &restored).await?;
        if path.len() > 1 && path.last() == Some(child) && !met.contains(child) {
            met.extend(path.iter().cloned());
            paths.push(path);
        }
    }
    let is_of_before = |path: &Vec<String>| path.iter().all(|id| restored.contains_key(id));
    let left =
        if paths.iter().all(is_of_before) { None } else { as_of::left_by(draft.store, opened.entry.seq).await? };
    let mut closed = Vec::new();
    for path in paths {
        // If the trail does not tell, it is taken to have existed, so that the stored state can be restored.
        let stood = match (&left, path.first()) {
            (Some(left), Some(child)) => {
                let mut then = Draft::batch(left, None, "undo", ChangeDanger::Guarded);
                chain::above(&mut then, child, &restored).await? == path
            }
            _ => true,
        };
        let words = format!("run in a circle: {}", path.join(" -> "));
        if stood {
            draft.disclosures.push(format!("its parents then {words}"));
        } else {
            closed.push(format!("its parents would {words}"));
        }
    }
    Ok(closed)
}

/// The later entry that undid one and is itself in effect; `None` if there is none among the next ones.
async fn undone_by(store: &Store, seq: i64) -> Result<Option<i64>, ChangeError> {
    let later = store.records().trail(seq, LOOKED_THROUGH).await?;
    let undo = |e: &TrailEntry| Some((e.seq, EntryFacts::parse(&e.public).undo_of?));
    let undos: Vec<(i64, i64)> = later.iter().filter_map(undo).collect();
    let stands = |by: i64| {
        let mut stands = true;
        let mut of = by;
        while let Some((next, _)) = undos.iter().rev().find(|(_, undone)| *undone == of) {
            (stands, of) = (!stands, *next);
        }
        stands
    };
    Ok(undos.iter().rev().find(|(by, undone)| *undone == seq && stands(*by)).map(|(by, _)| *by))
}

/// Trail rows with new keys: those written under the old ones stay.
fn again(trail: Vec<Mutation>) -> Vec<Mutation> {
    let renewed = |mutation| match mutation {
        Mutation::Insert { table, key, columns, mut rows } => {
            for row in &mut rows {
                for (_, cell) in columns.iter().zip(row).filter(|(name, _)| key.contains(name)) {
                    *cell = Cell::Is(FetchedValue::Text(new_id()));
                }
            }
            Mutation::Insert { table, key, columns, rows }
        }
        other => other,
    };
    trail.into_iter().map(renewed).collect()
}

/// The rows of a revision that no longer have the expected values; empty if all do.
async fn changed(store: &Store, revise: &RowRevisions) -> Result<Option<StoredRows>, ChangeError> {
    let still: HashSet<String> = store.still(revise).await?.iter().map(|key| json!(key).to_string()).collect();
    let keys = revise.rows.iter().map(|row| row.0.clone());
    let keys: Vec<Vec<FetchedValue>> = keys.filter(|key| !still.contains(&json!(key).to_string())).collect();
    Ok((!keys.is_empty()).then(|| StoredRows { table: revise.table.clone(), by: revise.key.clone(), keys }))
}

/// Rows that refer by a foreign key to rows which the undo deletes: they would be deleted too, or dangle. Rows that
/// refer by the layout's rules or in a list are not changed, as they may have done so before: the plan lists them.
async fn leaning(draft: &mut Draft<'_>) -> Result<Vec<String>, ChangeError> {
    let mut gone: Vec<StoredRows> = draft.deletions();
    // Nothing refers to a row identified only by its number.
    gone.retain(|rows| !rows.by.iter().any(|column| is_row_number(column)));
    let mut leaning = Vec::new();
    if gone.is_empty() {
        return Ok(leaning);
    }
    let store = draft.store;
    let going = dependents_of(store, &gone, draft.most_rows(), CHANGING).await?;
    if let Some(table) = going.over {
        leaning.push(format!("too many rows of {} depend on rows that would be removed", table.title()));
        return Ok(leaning);
    }
    let mut declared: HashSet<(TableName, String)> = HashSet::new();
    for rows in &gone {
        let references = store.shapes().column_keys_to(&rows.table).await?;
        declared.extend(references.into_iter().map(|reference| (reference.from, reference.column)));
    }
    let own = RowKeys::of(draft.mutations_mut().filter_map(|mutation| mutation.rows()).map(Cow::Owned));
    let mut left = Vec::new();
    for RowWatch { rows, .. } in going.referring {
        let images = draft.watch_images(rows.clone()).await?;
        let stays = |image: &&Image| !own.hold(&rows.table, |column| image.get(column).cloned());
        let told = told(images.iter().filter(stays).count(), &rows.table);
        let is_declared = rows.by.iter().any(|column| declared.contains(&(rows.table.clone(), column.clone())));
        if is_declared { &mut leaning } else { &mut left }.extend(told);
    }
    for (table, column, ids) in &going.lists {
        let Some((source, name)) = column_of(store, table, column) else { continue };
        let Some((key, _)) = plain_column(source, "id") else { continue };
        let naming = naming(store, source, name, &ids.iter().map(String::as_str).collect()).await?;
        let stays = |id: &&String| !own.hold(table, |by| (by == key).then(|| FetchedValue::Text((*id).clone())));
        left.extend(told(naming.iter().filter(stays).count(), table));
    }
    draft.disclosures.extend(left.into_iter().map(|told| format!("{told}, and will refer to missing rows")));
    Ok(leaning)
}

/// Sentence about the number of rows that refer to rows to be deleted; `None` for zero.
fn told(count: usize, table: &TableName) -> Option<String> {
    let words = format!("{{#}} {{row of {0} refers|rows of {0} refer}} to rows that would be removed", table.title());
    (count > 0).then(|| agreeing(count, &words))
}

/// Values that the undo would restore although PostgreSQL no longer accepts them, because the row they refer to is
/// missing. A foreign key added later ignores such values until they are written.
async fn unsupported(draft: &mut Draft<'_>) -> Result<Vec<String>, ChangeError> {
    let store = draft.store;
    if store.engine() != Engine::Postgres {
        return Ok(Vec::new());
    }
    let mut written = Values::new();
    let mut inserted: HashSet<(TableName, String, String)> = HashSet::new();
    for mutation in draft.mutations_mut() {
        let mut write = |table: &TableName, column: &str, cell: &Cell, new: bool| {
            let Cell::Is(value) = cell else { return };
            if new {
                inserted.insert((table.clone(), column.to_owned(), json!(value).to_string()));
            }
            if !matches!(value, FetchedValue::Null) {
                written.entry((table.clone(), column.to_owned())).or_default().push(value.clone());
            }
        };
        match mutation {
            Mutation::Update { table, set, .. } => {
                set.iter().for_each(|(column, cell)| write(table, column, cell, false));
            }
            Mutation::Insert { table, columns, rows, .. } => rows.iter().for_each(|row| {
                columns.iter().zip(row).for_each(|(column, cell)| write(table, column, cell, true));
            }),
            Mutation::Delete(_) | Mutation::Revise(_) => {}
        }
    }
    for ((table, column), values) in &mut written {
        for key in store.shapes().column_keys_of(table).await?.into_iter().filter(|key| key.column == *column) {
            values.retain(|v| !inserted.contains(&(key.to.clone(), key.to_column.clone(), json!(v).to_string())));
        }
    }
    hanging(store, &written).await
}

/// Returns the reason why undoing a planned change would be refused: a removed value refers to a missing row. `None` if
/// it would not be refused.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn refused_later(store: &Store, plan: &Plan) -> Result<Option<String>, ChangeError> {
    if store.engine() != Engine::Postgres || plan.undo_reason.is_some() {
        return Ok(None);
    }
    let mut taken = Values::new();
    for mutation in &plan.mutations {
        let Some(rows) = mutation.rows() else { continue };
        let goes = |column: &String| match mutation {
            Mutation::Update { set, .. } => set.iter().any(|(name, _)| name == column),
            Mutation::Revise(revise) => revise.columns.contains(column),
            Mutation::Delete(_) => true,
            Mutation::Insert { .. } => false,
        };
        let keys = store.shapes().column_keys_of(&rows.table).await?;
        let columns: BTreeSet<String> = keys.into_iter().map(|key| key.column).filter(goes).collect();
        let columns: Vec<String> = columns.into_iter().collect();
        if columns.is_empty() {
            continue;
        }
        for image in store.shapes().images_of(&rows, &columns).await? {
            for column in &columns {
                let value = image.get(column).filter(|value| **value != FetchedValue::Null).cloned();
                taken.entry((rows.table.clone(), column.clone())).or_default().extend(value);
            }
        }
    }
    let hanging = hanging(store, &taken).await?;
    Ok((!hanging.is_empty()).then(|| format!("an undo would be refused: {}", hanging.join("; "))))
}

/// Stored values by table and column.
type Values = BTreeMap<(TableName, String), Vec<FetchedValue>>;

/// Describes the values that refer to missing rows, as text.
async fn hanging(store: &Store, values: &Values) -> Result<Vec<String>, ChangeError> {
    let tables: BTreeSet<&TableName> = values.keys().map(|(table, _)| table).collect();
    let mut lost = Vec::new();
    for table in tables {
        for key in store.shapes().column_keys_of(table).await? {
            let Some(values) = values.get(&(table.clone(), key.column.clone())) else { continue };
            let keys: Vec<Vec<FetchedValue>> = values.iter().map(|value| vec![value.clone()]).collect();
            let rows = StoredRows { table: key.to.clone(), by: vec![key.to_column.clone()], keys };
            let there = store.shapes().images_of(&rows, &rows.by).await?;
            let there: HashSet<String> =
                there.iter().filter_map(|image| Some(json!([image.get(&key.to_column)?]).to_string())).collect();
            let gone = |key: &&Vec<FetchedValue>| !there.contains(&json!(key).to_string());
            let missing = rows.keys.iter().filter(gone).count();
            // If the column treats other spellings as equal, only the server can tell.
            if missing > 0 && !store.snapshot().await?.relations().await?.is_compared_apart(&key.to, &key.to_column) {
                lost.push(agreeing(
                    missing,
                    &format!(
                        "{{#}} {{value|values}} of {}.{} would refer to rows of {} that \
                 do not exist, which its foreign key forbids",
                        table.title(),
                        key.column,
                        key.to.title()
                    ),
                ));
            }
        }
    }
    Ok(lost)
}

fn changes(opened: &OpenedEntry) -> Vec<Change> {
    let changes = opened.private.get("changes");
    changes.and_then(|changes| serde_json::from_str(changes).ok()).unwrap_or_default()
}

/// A column added since the deleted rows were written, in which one of them has a value; `None` if their original
/// columns are unknown.
fn added_since<'i>(inverse: &InverseMutation, images: &'i [Image]) -> Option<&'i str> {
    let known = &inverse.expect.columns;
    if known.is_empty() || !matches!(inverse.mutation, Mutation::Delete(_)) {
        return None;
    }
    let is_added = |(name, value): &&(Arc<str>, FetchedValue)| {
        !is_row_number(name) && *value != FetchedValue::Null && !known.iter().any(|column| **column == **name)
    };
    images.iter().flat_map(|image| &image.0).find(is_added).map(|(name, _)| &**name)
}

/// The restoring change adapted to the current state: later times are kept, a row number in use is left out.
async fn fitted(store: &Store, inverse: InverseMutation, images: &[Image]) -> Result<Mutation, ChangeError> {
    Ok(match inverse.mutation {
        Mutation::Update { table, key, mut set } => {
            let current = |name: &str| images.first().and_then(|image| image.get(name));
            let moved_on = |name: &String| {
                inverse.stamps.iter().any(|(stamp, written)| stamp == name && current(name) != Some(written))
            };
            set.retain(|(name, _)| !moved_on(name));
            Mutation::Update { table, key, set }
        }
        Mutation::Insert { table, key, mut columns, mut rows } if columns.first().is_some_and(|c| is_row_number(c)) => {
            let numbers: Vec<Vec<FetchedValue>> =
                rows.iter().filter_map(|row| Some(vec![row.first()?.at("")])).collect();
            let wanted = StoredRows { table: table.clone(), by: vec![columns[0].clone()], keys: numbers };
            if !store.shapes().images(&wanted).await?.is_empty() {
                columns.remove(0);
                rows.iter_mut().for_each(|row: &mut Vec<Cell>| drop(row.remove(0)));
            }
            Mutation::Insert { table, key, columns, rows }
        }
        other => other,
    })
}

/// Describes the later audit entries that changed each of some rows, as text, and reads each entry once. For an entry
/// whose values were removed from the trail, or never stored, as for an erasure, it is unknown which rows of a table it
/// changed.
async fn later(store: &Store, seq: i64, moved: impl Iterator<Item = &StoredRows>) -> Result<Vec<String>, ChangeError> {
    let mut by: Vec<ChangedBy<'_>> = moved.map(|rows| ChangedBy { rows, certain: vec![], possible: vec![] }).collect();
    if by.is_empty() {
        return Ok(Vec::new());
    }
    let entries = store.records().trail(seq, LOOKED_THROUGH).await?;
    for entry in &entries {
        // One at a time: each may be large.
        let kept = store.records().trail_private(entry.seq, entry.seq, &["undo"]).await?;
        let kept = kept.first().and_then(|kept| serde_json::from_str::<KeptUndo>(&kept.value).ok());
        let counts = EntryFacts::parse(&entry.public).counts;
        for ChangedBy { rows, certain, possible } in &mut by {
            let same =
                |other: &StoredRows| other.table == rows.table && other.keys.iter().any(|k| rows.keys.contains(k));
            match &kept {
                Some(kept) if kept.touches(same) => certain.push(entry.seq),
                None if counts.as_ref().is_some_and(|counts| counts.contains_key(&rows.table.title())) => {
                    possible.push(entry.seq);
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(by.iter().map(|by| by.told(entries.len())).collect())
}

/// Rows with the later audit entries that changed them, or may have.
struct ChangedBy<'r> {
    rows: &'r StoredRows,
    certain: Vec<i64>,
    possible: Vec<i64>,
}

impl ChangedBy<'_> {
    /// Says who changed them, after a search through a number of entries.
    fn told(&self, entries: usize) -> String {
        let listed = |seqs: &[i64]| {
            let words: Vec<String> = seqs.iter().map(i64::to_string).collect();
            words.join(", ")
        };
        match (&self.certain[..], &self.possible[..]) {
            ([], []) if entries < LOOKED_THROUGH => "; not by a change of this program: an agent wrote it".to_owned(),
            ([], []) => format!("; not by one of the next {LOOKED_THROUGH} changes of this program"),
            ([], possible) => {
                let which = "the trail does not say which rows that changed";
                format!("; by entry {} or by an agent: {which}", listed(possible))
            }
            (certain, _) => format!("; changed by entry {}", listed(certain)),
        }
    }
}
