//! References of a file's rows. A server takes no row whose foreign key leads nowhere, though its own tables may hold
//! some from before the key existed; the reference of such a row is left out, and reported. SQLite takes the rows as
//! they are.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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

/// Facts that the parts of a file have found out for the parts after them.
#[derive(Debug, Default)]
pub struct ImportProgress(Mutex<KnownSoFar>);

#[derive(Debug, Default)]
struct KnownSoFar {
    /// Banks that are there under another id: cases of later parts go into those.
    banks: BTreeMap<String, String>,
    /// Keys that earlier parts put in, or would, as hashes.
    keys: HashSet<u64>,
    /// Rows that refer to what did not exist yet.
    waiting: Vec<NewRow>,
    /// Those that wait once the part at hand is in.
    waiting_next: Vec<NewRow>,
    /// Ids of rows that stand for the whole file, in earlier parts.
    whole: BTreeSet<String>,
    /// Those of the part at hand.
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

    /// Leaves out the rows without a place, which stand for the whole file, that an earlier part put in.
    pub(super) fn once(&self, rows: &mut Vec<NewRow>) {
        self.with(|known| {
            rows.retain(|new| new.place != 0 || !known.whole.contains(new.row.id()));
            known.whole_next = rows.iter().filter(|new| new.place == 0).map(|new| new.row.id().to_owned()).collect();
        });
    }

    /// Whether rows of earlier parts wait for what they refer to.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.with(|known| !known.waiting.is_empty())
    }

    /// The part at hand is planned or put in: a plan may be made several times before.
    pub fn advance(&self) {
        self.with(|known| {
            known.waiting = std::mem::take(&mut known.waiting_next);
            known.whole.append(&mut known.whole_next);
        });
    }
}

/// A foreign key of one column, as a table that rows go into has it.
struct RowReference {
    from: TableName,
    column: String,
    to: ReferredKey,
    /// The column may not be empty.
    required: bool,
    /// Values that differ in case alone are the same.
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
        let mut hasher = DefaultHasher::new();
        (self, value).hash(&mut hasher);
        hasher.finish()
    }
}

impl RowReference {
    /// Returns the value by which a row refers to another through this key.
    fn value(&self, source: &BoundSource, new: &NewRow) -> Option<String> {
        self.text(source, new, &self.from, &self.column)
    }

    /// Returns the digest of the value by which other rows can refer to a row through this key.
    fn offered(&self, source: &BoundSource, new: &NewRow) -> Option<u64> {
        self.text(source, new, &self.to.table, &self.to.column).map(|value| self.to.digest(&value))
    }

    /// Returns the text that a row stores in a column of a table, as this key compares it.
    fn text(&self, source: &BoundSource, new: &NewRow, table: &TableName, column: &str) -> Option<String> {
        let value = (table_of(source) == *table).then(|| new.stored_text(source, column))??;
        Some(if self.folds { value.to_lowercase() } else { value })
    }
}

/// Looks at what the rows refer to. Until the last part, rows whose reference does not exist yet wait for later parts;
/// then they come without it, or are bad where the column may not be empty.
///
/// # Errors
/// [`ChangeError::Refused`] where too many rows wait; the engine's refusal.
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

/// The references of new rows, and which of the rows that they lead to are absent.
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

    /// Empties the columns that lead to absent rows, and gives a note with the count for each.
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

/// Finds the tables into which the rows go, and those of each entity that only later parts may hold: these may refer to the
/// rows at hand.
fn targets(store: &Store, rows: &[NewRow]) -> Result<BTreeSet<TableName>, ChangeError> {
    let taken = |entity: &Entity| batch::target(store, *entity).ok().filter(|source| addable(source).is_ok());
    let mut tables: BTreeSet<TableName> = Entity::ALL.iter().filter_map(taken).map(table_of).collect();
    for new in rows {
        tables.insert(table_of(batch::place(store, new)?));
    }
    Ok(tables)
}

/// The foreign keys of the tables that rows go into. One that leads where rows are hidden from us is the server's to judge.
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
            // What may not be read is the server's to judge.
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
    if let Some(surplus) = new.surplus.as_mut() {
        surplus.hidden.retain(|(name, _)| name != column);
        surplus.spelled.retain(|(name, _)| name != column);
    }
}
