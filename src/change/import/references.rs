//! References of a file's rows. A server refuses a row with a dangling foreign key, though its own tables may contain
//! some from before the key existed; such a reference is left out and reported. SQLite accepts the rows unchanged.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::ImportContents;
use crate::change::ChangeError;
use crate::change::batch::{self, NewRow, canonical};
use crate::change::feedback::addable;
use crate::layout::{BoundSource, Catalog, Engine};
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::stored::{StoredRows, TableName};

/// Greatest number of rows that wait for later parts of their file.
const WAITING: usize = 50_000;

/// Facts found in earlier parts of a file, for later parts.
#[derive(Debug, Default)]
pub struct ImportProgress(Mutex<KnownSoFar>);

#[derive(Debug, Default)]
struct KnownSoFar {
    /// Banks of the file, with the ids that they have in the database: cases of later parts go into those.
    banks: BTreeMap<String, String>,
    /// Digests of the rows that were left out because of a collision.
    left: HashSet<u64>,
    /// Keys that earlier parts put in, or would, as hashes.
    keys: HashSet<u64>,
    /// Rows that refer to rows not yet seen.
    waiting: Vec<NewRow>,
    /// Rows that wait after the current part.
    waiting_next: Vec<NewRow>,
    /// Ids of rows that stand for the whole file, in earlier parts.
    whole: BTreeSet<String>,
    /// The same for the current part.
    whole_next: BTreeSet<String>,
}

impl ImportProgress {
    fn with<T>(&self, act: impl FnOnce(&mut KnownSoFar) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn banks(&self) -> BTreeMap<String, String> {
        self.with(|known| known.banks.clone())
    }

    pub(super) fn add_banks(&self, more: BTreeMap<String, String>) {
        self.with(|known| known.banks.extend(more));
    }

    pub(super) fn left(&self) -> HashSet<u64> {
        self.with(|known| known.left.clone())
    }

    pub(super) fn add_left(&self, more: HashSet<u64>) {
        self.with(|known| known.left.extend(more));
    }

    /// Leaves out the rows without a place, which stand for the whole file, that an earlier part put in.
    pub(super) fn once(&self, rows: &mut Vec<NewRow>) {
        self.with(|known| {
            rows.retain(|new| new.place != 0 || !known.whole.contains(new.row.id()));
            known.whole_next = rows.iter().filter(|new| new.place == 0).map(|new| new.row.id().to_owned()).collect();
        });
    }

    /// Whether rows of earlier parts wait for their references.
    pub fn waits(&self) -> bool {
        self.with(|known| !known.waiting.is_empty())
    }

    /// Moves on after the current part is planned or applied; until then a part may be planned several times.
    pub fn advance(&self) {
        self.with(|known| {
            known.waiting = std::mem::take(&mut known.waiting_next);
            known.whole.append(&mut known.whole_next);
        });
    }
}

/// A single-column foreign key of a target table.
struct RowReference {
    from: TableName,
    column: String,
    to: ReferredKey,
    /// The column may not be empty.
    required: bool,
    /// Whether values that differ only in case are equal.
    folds: bool,
}

/// The column that a foreign key leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ReferredKey {
    table: TableName,
    column: String,
}

impl ReferredKey {
    fn digest(&self, value: &str) -> u64 {
        hashed((self, value))
    }
}

/// The hash of a key, for as long as the process runs.
pub(super) fn hashed(key: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl RowReference {
    /// Returns the value by which a row refers to another through this key.
    fn value(&self, source: &BoundSource, new: &NewRow) -> Option<String> {
        self.text(source, new, &self.from, &self.column)
    }

    /// Returns the digest of the value by which other rows can refer to this row through this key.
    fn offered(&self, source: &BoundSource, new: &NewRow) -> Option<u64> {
        self.text(source, new, &self.to.table, &self.to.column).map(|value| self.to.digest(&value))
    }

    /// Returns the text that a row stores in a column of a table, as this key compares it.
    fn text(&self, source: &BoundSource, new: &NewRow, table: &TableName, column: &str) -> Option<String> {
        let value = (table_of(source) == *table).then(|| new.stored_text(source, column))??;
        Some(if self.folds { value.to_lowercase() } else { value })
    }
}

/// Resolves the references of rows. Until the last part, rows with an unknown reference wait for later parts; then the
/// reference is dropped, or the row is bad if the column is NOT NULL.
///
/// # Errors
/// [`ChangeError::Refused`] if too many rows wait; the engine's refusal.
pub(super) async fn settle(
    store: &Store,
    contents: &mut ImportContents,
    progress: &ImportProgress,
    is_last: bool,
) -> Result<(), ChangeError> {
    if store.engine() != Engine::Postgres {
        return Ok(());
    }
    contents.rows.extend(progress.with(|known| known.waiting.clone()));
    let references = references(store, targets(store, &contents.rows)?).await?;
    let absent = absent(store, &references, &contents.rows, progress).await?;
    let mut lookup = ReferenceLookup { store, references, absent };
    let mut waiting = lookup.take_lacking(&mut contents.rows, is_last);
    if is_last {
        contents.bad.extend(waiting.drain(..).map(|new| {
            (
                new.place,
                "it refers to a row that is neither in the database nor in the file, and the reference is \
             required"
                    .to_owned(),
            )
        }));
        contents.notes.extend(lookup.clear_lacking(&mut contents.rows));
    }
    if waiting.len() > WAITING {
        return Err(ChangeError::Refused(format!(
            "more than {WAITING} rows refer to rows later in the file: move those rows up"
        )));
    }
    let offered: Vec<u64> = contents.rows.iter().flat_map(|new| lookup.offered(new)).collect();
    progress.with(|known| {
        known.keys.extend(offered);
        known.waiting_next = waiting;
    });
    Ok(())
}

/// The references of new rows, and their missing targets.
struct ReferenceLookup<'s> {
    store: &'s Store,
    references: Vec<RowReference>,
    /// Digests of keys that are neither in the database nor in the file so far.
    absent: HashSet<u64>,
}

impl ReferenceLookup<'_> {
    /// The references of a row that lead to absent rows.
    fn lacking<'a>(&'a self, new: &NewRow) -> Vec<&'a RowReference> {
        let Ok(source) = batch::place(self.store, new) else { return Vec::new() };
        let lacks = |reference: &&RowReference| {
            reference.value(source, new).is_some_and(|value| self.absent.contains(&reference.to.digest(&value)))
        };
        self.references.iter().filter(lacks).collect()
    }

    /// Digests of the keys by which others may refer to a row.
    fn offered(&self, new: &NewRow) -> Vec<u64> {
        let Ok(source) = batch::place(self.store, new) else { return Vec::new() };
        self.references.iter().filter_map(|reference| reference.offered(source, new)).collect()
    }

    /// Removes the rows that cannot be written yet; in the last part, those that never can. Other rows cannot refer to
    /// them then either.
    fn take_lacking(&mut self, rows: &mut Vec<NewRow>, is_last: bool) -> Vec<NewRow> {
        let mut taken = Vec::new();
        while !self.absent.is_empty() {
            let stays = |new: &NewRow| {
                let lacking = self.lacking(new);
                if is_last { lacking.iter().all(|reference| !reference.required) } else { lacking.is_empty() }
            };
            let (stay, go): (Vec<NewRow>, Vec<NewRow>) = rows.drain(..).partition(stays);
            *rows = stay;
            if go.is_empty() {
                break;
            }
            let offered: Vec<u64> = go.iter().flat_map(|new| self.offered(new)).collect();
            self.absent.extend(offered);
            taken.extend(go);
        }
        taken
    }

    /// Empties the references to missing rows, and returns a note with the count for each.
    fn clear_lacking(&self, rows: &mut [NewRow]) -> Vec<String> {
        let mut without: BTreeMap<(String, &str, String), usize> = BTreeMap::new();
        for new in rows {
            for reference in self.lacking(new) {
                let names = (reference.from.title(), reference.column.as_str(), reference.to.table.title());
                *without.entry(names).or_default() += 1;
                if let Ok(source) = batch::place(self.store, new) {
                    clear(source, new, &reference.column);
                }
            }
        }
        let note = |((from, column, to), count)| {
            agreeing(
                count,
                &format!(
                    "{{#}} {{value of|values of}} {from}.{column} {{is left out: it refers to a row of {to} that \
                 is|are left out: they refer to rows of {to} that are}} neither in the database nor in the file, which \
                 its foreign key forbids"
                ),
            )
        };
        without.into_iter().map(note).collect()
    }
}

/// Finds the target tables of the rows, and those of entities that only later parts may contain, which may refer to
/// these rows.
fn targets(store: &Store, rows: &[NewRow]) -> Result<BTreeSet<TableName>, ChangeError> {
    let taken = |entity: &Entity| batch::target(store, *entity).ok().filter(|source| addable(source).is_ok());
    let mut tables: BTreeSet<TableName> = Entity::ALL.iter().filter_map(taken).map(table_of).collect();
    for new in rows {
        tables.insert(table_of(batch::place(store, new)?));
    }
    Ok(tables)
}

/// The foreign keys of the target tables, except those to tables with hidden rows, which only the server can check.
async fn references(store: &Store, tables: BTreeSet<TableName>) -> Result<Vec<RowReference>, ChangeError> {
    let mut all = Vec::new();
    for from in tables {
        let shape = store.shapes().shape(&from).await?;
        for key in store.shapes().column_keys_of(&from).await? {
            let Some(column) = shape.column(&key.column).filter(|_| is_seen(store.catalog(), &key.to)) else {
                continue;
            };
            all.push(RowReference {
                from: from.clone(),
                required: column.required,
                folds: column.folds_case(),
                column: key.column,
                to: ReferredKey { table: key.to, column: key.to_column },
            });
        }
    }
    Ok(all)
}

fn is_seen(catalog: &Catalog, table: &TableName) -> bool {
    catalog.exactly(&table.schema, &table.name).is_none_or(|t| !t.hides_rows)
}

/// Finds the referenced keys, as digests, that are neither in the database nor among the rows nor in earlier parts.
async fn absent(
    store: &Store,
    references: &[RowReference],
    rows: &[NewRow],
    progress: &ImportProgress,
) -> Result<HashSet<u64>, ChangeError> {
    let pairs = || rows.iter().filter_map(|new| Some((batch::place(store, new).ok()?, new)));
    let offered: HashSet<u64> =
        pairs().flat_map(|(s, new)| references.iter().filter_map(move |r| r.offered(s, new))).collect();
    let mut wanted: BTreeMap<&ReferredKey, BTreeSet<String>> = BTreeMap::new();
    for reference in references {
        let values = pairs().filter_map(|(source, new)| reference.value(source, new));
        wanted.entry(&reference.to).or_default().extend(values);
    }
    let mut absent = HashSet::new();
    for (to, mut values) in wanted {
        progress.with(|known| {
            values.retain(|value| {
                let digest = to.digest(value);
                !offered.contains(&digest) && !known.keys.contains(&digest)
            });
        });
        let keys = values.iter().map(|value| vec![FetchedValue::Text(value.clone())]).collect();
        let asked = StoredRows { table: to.table.clone(), by: vec![to.column.clone()], keys };
        let images = match store.shapes().images_of(&asked, &asked.by).await {
            Ok(images) => images,
            // Only the server can check tables that we may not read.
            Err(error) if error.is_denied() => continue,
            Err(error) => return Err(error.into()),
        };
        for image in images {
            if let Some(FetchedValue::Text(there)) = image.get(&to.column) {
                values.remove(there);
                values.remove(&there.to_lowercase());
            }
        }
        absent.extend(values.iter().map(|value| to.digest(value)));
    }
    Ok(absent)
}

/// Leaves a stored column of a row empty.
fn clear(source: &BoundSource, new: &mut NewRow, column: &str) {
    if let Some(name) = canonical(source, column) {
        new.row.set(name, Value::Null);
    }
    forget_stored(new, column);
}

/// Forgets what an export tells of a stored column: the canonical value is written.
pub(super) fn forget_stored(new: &mut NewRow, column: &str) {
    if let Some(surplus) = new.surplus.as_mut() {
        surplus.hidden.retain(|(name, _)| name != column);
        surplus.spelled.retain(|(name, _)| name != column);
    }
}
