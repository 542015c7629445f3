//! Values computed from texts of rows that stay: if such a text changes, hashes are recomputed and vectors removed, as
//! in an edit; if that is impossible, it is reported.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::effects::{KeptRow, KeptRows, NewValue};
use super::graph::Graph;
use super::keys::{self, spelled};
use super::own_hashes;
use crate::change::ChangeError;
use crate::change::import::prompt_hash;
use crate::layout::write::StoredCopy;
use crate::layout::{BoundOrigin, BoundSource};
use crate::memory::{Entity, Row, agreeing};
use crate::recall::keyword;
use crate::store::Store;
use crate::store::embedding::VectorShelf;
use crate::store::encode::{
    GivenValue, copies_again, encode, key_columns, own_column, plain_column, table_of, told_by,
};
use crate::store::fetched::{FetchedValue, RawRow, as_text, composite_id};
use crate::store::shape::TableShape;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{Cell, Image, StoredRows, TableName};
use crate::store::within::texts_of;

/// Rows per read.
const AT_ONCE: usize = 400;
/// Placeholder for the pseudonym when texts are compared.
const SOMEBODY: &str = "[pseudonym]";

/// Columns of unique keys, and columns that others refer to.
type KeyedColumns = HashSet<(TableName, String)>;

/// Messages about derived values that stay although their text changes.
#[derive(Debug, Default)]
pub struct OldDerived {
    /// About hashes.
    pub hashes: Vec<String>,
    /// About vectors.
    pub vectors: Vec<String>,
}

/// Counts of what stays, by place; for vectors by reason too.
#[derive(Default)]
struct Counts {
    hashes: BTreeMap<String, usize>,
    vectors: BTreeMap<(String, String), usize>,
}

impl Counts {
    fn vector(&mut self, place: String, why: impl Into<String>) {
        *self.vectors.entry((place, why.into())).or_default() += 1;
    }

    fn words(self) -> OldDerived {
        let hash = "{#} {hash|hashes} of {a text that is|texts that are} redacted {stays: it confirms|stay: they \
         confirm} the old text to anyone who guesses it";
        let vector = "{#} {vector|vectors} of {a text that is|texts that are} redacted {stays|stay}";
        OldDerived {
            hashes: self.hashes.iter().map(|(place, rows)| agreeing(*rows, &format!("{place}: {hash}"))).collect(),
            vectors: self
                .vectors
                .iter()
                .map(|((place, why), rows)| format!("{}: {why}", agreeing(*rows, &format!("{place}: {vector}"))))
                .collect(),
        }
    }
}

/// Finds the hashes to recompute and the vectors to delete; `unique` are the columns of unique indexes. Returns messages
/// about those that stay.
///
/// # Errors
/// The engine's refusal.
pub async fn follow(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    unique: &HashSet<(TableName, String)>,
    updates: &mut KeptRows,
) -> Result<OldDerived, ChangeError> {
    let (store, mut left, keyed) = (snapshot.store, Counts::default(), keys::columns(graph, unique));
    let mut known: HashSet<(TableName, String)> = HashSet::new();
    for source in &store.recognised().sources {
        let Some(derived) = DerivedColumns::of(source, graph) else { continue };
        let own = derived.copies.iter().map(|copy| &*copy.column).chain(derived.hash);
        known.extend(own.map(|column| (derived.table.clone(), column.to_owned())));
        if derived.next(updates, "").is_empty() {
            continue;
        }
        match derived.follow(snapshot, graph, updates, &keyed, &mut left).await {
            Err(ChangeError::Store(error)) if error.is_denied() => {
                left.vector(derived.table.title(), "your role may not read what is computed from its texts");
            }
            done => done?,
        }
    }
    own_hashes::each(snapshot, graph, updates, &known, |place| *left.hashes.entry(place).or_default() += 1).await?;
    Ok(left.words())
}

/// Columns of a source that others are computed from, and the columns that hold the results.
struct DerivedColumns<'s> {
    source: &'s BoundSource,
    table: TableName,
    /// Key of the table.
    by: Vec<String>,
    /// Canonical columns that something is computed from.
    told: Vec<&'s str>,
    /// The stored columns of these.
    texts: HashSet<String>,
    /// Digests of texts.
    copies: Vec<&'s StoredCopy>,
    /// Stored column of the hash of a case's message.
    hash: Option<&'s str>,
    /// Stored column of the row's id.
    id: Option<&'s str>,
    /// Place of the vectors, or the reason why they cannot be written.
    shelf: Option<Result<VectorShelf, String>>,
    /// The vectors also depend on texts that the stored rows alone do not show.
    is_unclear: bool,
}

impl<'s> DerivedColumns<'s> {
    /// `None` if nothing is computed, or rows cannot be distinguished.
    fn of(source: &'s BoundSource, graph: &Graph) -> Option<Self> {
        let stored = |column: &str| plain_column(source, column).map(|(name, _)| name);
        let hash = if source.entity == Entity::Case { stored("message_hash") } else { None };
        let copies = source.write.iter().flat_map(|write| &write.copies).filter(|copy| copy.form.is_digest());
        let copies: Vec<&StoredCopy> = copies.collect();
        if source.vector.is_none() && hash.is_none() && copies.is_empty() {
            return None;
        }
        let table = table_of(source);
        let by = graph.relations.keys.get(&table).filter(|by| !by.is_empty())?.clone();
        let words = keyword::text_columns(source.entity);
        let is_elsewhere = |origin: &BoundOrigin| match origin {
            BoundOrigin::Column { alias, .. } => alias != "t",
            BoundOrigin::Value(_) => false,
            _ => true,
        };
        let mut told: Vec<&str> = words.to_vec();
        told.extend(copies.iter().flat_map(|copy| copy.of.iter().map(String::as_str)));
        told.sort_unstable();
        told.dedup();
        let texts = told.iter().flat_map(|column| source.column(column)).filter_map(own_column);
        // Keys do not count: a renamed key says the same.
        let texts: HashSet<String> =
            texts.filter(|name| !by.iter().any(|key| key == name)).map(str::to_owned).collect();
        let is_unclear = words.iter().flat_map(|column| source.column(column)).any(|way| is_elsewhere(&way.origin));
        let shelf = source.vector.as_ref().map(|_| VectorShelf::of(source));
        Some(DerivedColumns { source, table, by, told, texts, copies, hash, id: stored("id"), shelf, is_unclear })
    }

    /// The next rows whose texts change, after that spelled key.
    fn next(&self, updates: &KeptRows, after: &str) -> Vec<(String, Vec<FetchedValue>)> {
        let from = Bound::Excluded((self.table.clone(), after.to_owned()));
        let changes = |row: &KeptRow| {
            row.set.iter().any(|update| self.texts.contains(&*update.column)) || self.is_unclear && row.loses
        };
        let own = updates.rows.range((from, Bound::Unbounded)).take_while(|((table, _), _)| *table == self.table);
        let own = own.filter(|(_, (_, row))| changes(row)).take(AT_ONCE);
        own.map(|((_, spelled), (key, _))| (spelled.clone(), key.clone())).collect()
    }

    /// The columns to read of a row: its key, the texts, and the derived values.
    fn read(&self, shape: &TableShape) -> Vec<String> {
        let own = match &self.shelf {
            Some(Ok(VectorShelf { key: None, column, .. })) => Some(column.as_str()),
            _ => None,
        };
        let copies = self.copies.iter().map(|copy| copy.column.as_str());
        let copies = copies.filter(|name| shape.column(name).is_some());
        let more = copies.chain(self.hash).chain(self.id).chain(own).map(str::to_owned);
        let more: BTreeSet<String> = self.texts.iter().cloned().chain(more).collect();
        self.by.iter().cloned().chain(more.into_iter().filter(|name| !self.by.contains(name))).collect()
    }

    async fn follow(
        &self,
        snapshot: &mut Snapshot<'_>,
        graph: &Graph,
        updates: &mut KeptRows,
        keyed: &KeyedColumns,
        left: &mut Counts,
    ) -> Result<(), ChangeError> {
        let store = snapshot.store;
        let shape = store.shapes().shape(&self.table).await?;
        let (read, mut after) = (self.read(&shape), String::new());
        let names: Vec<Arc<str>> = read.iter().map(|name| name.as_str().into()).collect();
        loop {
            let some = self.next(updates, &after);
            let Some((last, _)) = some.last() else { return Ok(()) };
            after.clone_from(last);
            let keys: Vec<Vec<FetchedValue>> = some.into_iter().map(|(_, key)| key).collect();
            let wanted = WantedRows { table: &self.table, columns: &read, when: None, subject: &[] };
            let (mut stale, mut failed) = (Vec::new(), None);
            // One row at a time: their texts may be long.
            let take = |row: RawRow| {
                let key = row[..self.by.len().min(row.len())].to_vec();
                let image = Image(names.iter().cloned().zip(row).collect());
                match self.follow_row(&shape, (&key, &image), updates, keyed, left) {
                    Ok(true) => stale.push((key, self.without_texts(&image))),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            };
            snapshot.each_of_keys(wanted, &self.by, &keys, take).await?;
            if let Some(error) = failed {
                return Err(error);
            }
            match &self.shelf {
                Some(Ok(shelf)) if !stale.is_empty() => {
                    self.beside(snapshot, graph, updates, shelf, &stale, left).await?;
                }
                Some(Err(why)) => self.tell(store, why, &stale, left).await?,
                _ => {}
            }
        }
    }

    /// Recomputes the hashes of a row, and empties its own vector. Returns whether a vector elsewhere must be deleted.
    fn follow_row(
        &self,
        shape: &TableShape,
        (key, image): (&[FetchedValue], &Image),
        updates: &mut KeptRows,
        keyed: &KeyedColumns,
        left: &mut Counts,
    ) -> Result<bool, ChangeError> {
        let Some(update) = updates.rows.get(&(self.table.clone(), spelled(key))) else { return Ok(false) };
        let row = ChangedRow::of(self, &update.1, image)?;
        let cells = row.again(shape, keyed, left);
        let is_stale = row.has_other_text();
        for (name, new) in cells {
            self.set(updates, (key, image), &name, new, "is computed again from the remaining text");
        }
        Ok(is_stale && self.is_beside(updates, (key, image), shape, left))
    }

    /// The row without its texts: only the columns that identify it.
    fn without_texts(&self, image: &Image) -> Image {
        let parts = key_columns(self.source, "id").unwrap_or_default();
        let tells =
            |name: &str| self.by.iter().any(|key| key == name) || self.id == Some(name) || parts.contains(&name);
        Image(image.0.iter().filter(|(name, _)| tells(name)).cloned().collect())
    }

    fn set(
        &self,
        updates: &mut KeptRows,
        (key, image): (&[FetchedValue], &Image),
        name: &str,
        new: FetchedValue,
        what: &str,
    ) {
        let old = image.get(name).cloned().unwrap_or(FetchedValue::Null);
        let why = format!("{}.{name} {what}", self.table.title());
        if updates.get(&self.table, key, name).is_some() {
            updates.replace(&self.table, key, name, NewValue::Is(new), &why);
        } else if old != new {
            updates.set(&self.table, key, name, &old, NewValue::Is(new), &why);
        }
    }

    /// Empties the vector of a changing text if the row itself holds it. Returns whether the vector is elsewhere.
    fn is_beside(
        &self,
        updates: &mut KeptRows,
        row: (&[FetchedValue], &Image),
        shape: &TableShape,
        left: &mut Counts,
    ) -> bool {
        let shelf = match &self.shelf {
            None => return false,
            Some(Err(_)) => return true,
            Some(Ok(shelf)) if shelf.key.is_some() => return true,
            Some(Ok(shelf)) => shelf,
        };
        if row.1.get(&shelf.column).is_none_or(|raw| *raw == FetchedValue::Null) {
            return false;
        }
        let keeps = self.source.write.as_ref().is_some_and(|write| write.keeps_vector);
        if keeps || shape.column(&shelf.column).is_some_and(|column| column.required) {
            let place = format!("{}.{}", self.table.title(), shelf.column);
            left.vector(place, "it cannot be empty; `backfill embeddings` makes a new one");
        } else {
            let what = "belongs to a text that changes and is emptied; `backfill embeddings` makes a new one";
            self.set(updates, row, &shelf.column, FetchedValue::Null, what);
        }
        false
    }

    /// Counts the rows that have a vector which cannot be removed.
    async fn tell(
        &self,
        store: &Store,
        why: &str,
        stale: &[(Vec<FetchedValue>, Image)],
        left: &mut Counts,
    ) -> Result<(), ChangeError> {
        let ids: Option<Vec<String>> = stale.iter().map(|(_, image)| self.id_of(image)).collect();
        let rows = match ids {
            Some(ids) if !ids.is_empty() => store.embeddings().vectors(self.source.entity, &ids).await?.len(),
            Some(_) => 0,
            None => stale.len(),
        };
        (0..rows).for_each(|_| left.vector(self.table.title(), why));
        Ok(())
    }

    /// The id of a row, if its stored columns contain it.
    fn id_of(&self, image: &Image) -> Option<String> {
        if let Some(id) = self.id {
            return as_text(image.get(id)?);
        }
        composite_id(key_columns(self.source, "id")?.into_iter().map(|name| image.get(name)))
    }

    /// Removes the vectors of changing texts from the separate table that holds them.
    async fn beside(
        &self,
        snapshot: &mut Snapshot<'_>,
        graph: &Graph,
        updates: &mut KeptRows,
        shelf: &VectorShelf,
        stale: &[(Vec<FetchedValue>, Image)],
        left: &mut Counts,
    ) -> Result<(), ChangeError> {
        let Some(named) = &shelf.key else { return Ok(()) };
        let title = shelf.table.title();
        let own = graph.relations.keys.get(&shelf.table).filter(|own| !own.is_empty());
        let (Some(own), Some(id)) = (own, self.id) else {
            stale.iter().for_each(|_| left.vector(title.clone(), "it is unknown which row it belongs to"));
            return Ok(());
        };
        let named_by = |(key, image): &(Vec<FetchedValue>, Image)| Some((image.get(id)?.clone(), key.clone()));
        let ids: Vec<(FetchedValue, Vec<FetchedValue>)> = stale.iter().filter_map(named_by).collect();
        let wanted_ids: Vec<Vec<FetchedValue>> = ids.iter().map(|(id, _)| vec![id.clone()]).collect();
        let word = |id: &FetchedValue| as_text(id).unwrap_or_else(|| spelled(std::slice::from_ref(id)));
        let keys: HashMap<String, &Vec<FetchedValue>> = ids.iter().map(|(id, key)| (word(id), key)).collect();
        let mut read = own.clone();
        read.push(named.clone());
        let wanted = WantedRows { table: &shelf.table, columns: &read, when: None, subject: &[] };
        let why = format!(
            "{title}: the vector of a text that changes is removed; `backfill embeddings` makes a new \
         one"
        );
        let mut rows = snapshot.select_keys(wanted, std::slice::from_ref(named), &wanted_ids).await?;
        rows.retain(|row| !graph.has(&shelf.table, &row[..own.len().min(row.len())]));
        let vectors: Vec<Vec<FetchedValue>> = rows.iter().map(|row| row[..own.len().min(row.len())].to_vec()).collect();
        let referred = keys::referred(snapshot, graph, &shelf.table, &vectors).await?;
        for (vector, row) in vectors.into_iter().zip(&rows) {
            let Some(key) = row.last().and_then(|id| keys.get(&word(id))) else { continue };
            // Rows that refer to the vector would be deleted with it, whoever they are about.
            if let Some(from) = referred.get(&spelled(&vector)) {
                left.vector(title.clone(), format!("a row of {} refers to it", from.title()));
                continue;
            }
            updates.rows.remove(&(shelf.table.clone(), spelled(&vector)));
            let rows = StoredRows { table: shelf.table.clone(), by: own.clone(), keys: vec![vector] };
            updates.go_along(&self.table, key, rows, &why);
        }
        Ok(())
    }
}

/// A row before and after the change.
struct ChangedRow<'d> {
    derived: &'d DerivedColumns<'d>,
    image: &'d Image,
    /// Canonical texts before, and after.
    was: Row,
    then: Row,
    /// The stored values to set, as far as they are known.
    set: Vec<(String, Cell)>,
    /// All new texts are known.
    is_known: bool,
    /// It loses words that its own texts may not show.
    loses: bool,
}

impl<'d> ChangedRow<'d> {
    fn of(derived: &'d DerivedColumns<'d>, update: &KeptRow, image: &'d Image) -> Result<Self, ChangeError> {
        let mut then = image.clone();
        let (mut set, mut is_known) = (Vec::new(), true);
        for update in update.set.iter().filter(|update| !derived.by.iter().any(|key| *key == *update.column)) {
            let new = update.new.value(SOMEBODY)?;
            if matches!(update.new, NewValue::Is(_) | NewValue::Long(_)) {
                set.push((update.column.to_string(), Cell::Is(new.clone())));
            } else if derived.texts.contains(&*update.column) {
                is_known = false;
            }
            then.0.iter_mut().filter(|(name, _)| **name == *update.column).for_each(|(_, value)| *value = new.clone());
        }
        let told = |image: &Image| told_by(derived.source, &derived.told, image);
        Ok(ChangedRow { derived, image, was: told(image), then: told(&then), set, is_known, loses: update.loses })
    }

    fn changes(&self, column: &str) -> bool {
        self.was.get(column) != self.then.get(column)
    }

    fn has_other_text(&self) -> bool {
        keyword::text_of(&self.was) != keyword::text_of(&self.then) || self.derived.is_unclear && self.loses
    }

    /// Recomputes the hashes from the remaining texts. Those that cannot be computed are counted in `left`.
    fn again(&self, shape: &TableShape, keyed: &KeyedColumns, left: &mut Counts) -> Vec<(String, FetchedValue)> {
        let DerivedColumns { source, table, told, copies, hash, .. } = self.derived;
        let may_change = |column: &str| self.is_known && !keyed.contains(&(table.clone(), column.to_owned()));
        let place = |column: &str| format!("{}.{column}", table.title());
        let changed: Vec<(&str, GivenValue)> = told
            .iter()
            .filter(|column| self.changes(column))
            .map(|column| (*column, GivenValue::of(&self.then, column)))
            .collect();
        let wanted = |copy: &StoredCopy| copy.form.is_digest() && may_change(&copy.column);
        let made = copies_again(source, shape, &changed, (&self.set, self.image), &self.was, wanted);
        let mut made = made.unwrap_or_default();
        let is_of_changed = |copy: &&&StoredCopy| copy.of.iter().any(|of| self.changes(of));
        let stands = |copy: &&&StoredCopy| {
            self.image.get(&copy.column).is_some_and(|raw| !texts_of(raw, &copy.inside).is_empty())
        };
        for copy in copies.iter().filter(is_of_changed).filter(stands) {
            if !made.iter().any(|(name, _)| *name == copy.column) {
                *left.hashes.entry(place(&copy.column)).or_default() += 1;
            }
        }
        let stands =
            |raw: &&FetchedValue| **raw != FetchedValue::Null && as_text(raw).is_none_or(|text| !text.is_empty());
        let stored = hash.and_then(|hash| Some((hash, self.image.get(hash).filter(stands)?)));
        if let Some((hash, stored)) = stored.filter(|_| self.changes("prompt")) {
            let value = GivenValue::Is(Value::from(prompt_hash(self.then.get("prompt"))));
            // The application may compute it by another rule.
            let is_ours = as_text(stored).is_some_and(|stored| stored == prompt_hash(self.was.get("prompt")));
            match encode(source, shape, "message_hash", &value) {
                Ok(cells) if is_ours && may_change(hash) => made.extend(cells),
                _ => *left.hashes.entry(place(hash)).or_default() += 1,
            }
        }
        let known = |(name, cell)| if let Cell::Is(new) = cell { Some((name, new)) } else { None };
        made.into_iter().filter_map(known).collect()
    }
}
