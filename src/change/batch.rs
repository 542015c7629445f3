//! Many new rows in one plan: existing rows are left alone, the rest are inserted with few statements.

use std::borrow::Borrow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::{replace, take};
use std::ptr;

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::feedback::{addable, writable};
use super::record::vectors;
use crate::layout::{BoundOrigin, BoundSource, Derivation, Engine, Fill};
use crate::memory::{Entity, Row, feedback, same_row};
use crate::memory::{agreeing, counted};
use crate::store::embedding::{VectorShelf, spelled};
use crate::store::encode::{GivenValue, goes_within, key_columns, plain_column, table_of};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::shape::{ShapeColumn, TableShape};
use crate::store::stored::{Cell, Image, Mutation, StoredRows, TableName};
use crate::store::surplus::{StoredColumns, Surplus};
use crate::store::{Store, StoreError};

/// A row to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow {
    /// Canonical values of the row.
    pub row: Row,
    /// Columns set to the time of the change.
    pub now: Vec<&'static str>,
    /// Position in the file that the row comes from, from 1; 0 without a file.
    pub place: usize,
    /// Stored values from an export, in addition to the canonical ones.
    pub surplus: Option<Surplus>,
}

impl NewRow {
    /// A row with some columns set.
    pub fn new<const N: usize>(entity: Entity, values: [(&str, Value); N]) -> Self {
        NewRow::from(Row::with(entity, values))
    }

    /// Whether a canonical column is set; in an exported row, also to null.
    fn is_given(&self, column: &str) -> bool {
        self.surplus.is_some() || self.now.contains(&column) || !self.row.json(column).is_null()
    }

    /// Removes the value of a canonical column.
    fn take_given(&mut self, column: &str) -> GivenValue {
        if self.now.contains(&column) { GivenValue::Now } else { GivenValue::take(&mut self.row, column) }
    }

    /// The stored columns for a table of this engine.
    fn stored<'a>(
        &'a self,
        shape: &'a TableShape,
        table: &TableName,
    ) -> impl Iterator<Item = &'a (String, FetchedValue)> {
        let surplus = self.surplus.as_ref().filter(|s| s.table.as_deref() == Some(&table.title()));
        let columns = surplus.map(|s| s.hidden.iter().chain(&s.spelled));
        columns.into_iter().flatten().filter(|(name, _)| shape.column(name).is_some())
    }

    /// Removes the stored columns for a table of this engine, ordered by name.
    fn take_stored(&mut self, shape: &TableShape, table: &TableName) -> StoredColumns {
        let Some(surplus) = self.surplus.as_mut().filter(|s| s.table.as_deref() == Some(&table.title())) else {
            return StoredColumns::new();
        };
        let mut stored = take(&mut surplus.hidden);
        stored.append(&mut surplus.spelled);
        stored.retain(|(name, _)| shape.column(name).is_some());
        stored.sort_by(|a, b| a.0.cmp(&b.0));
        stored
    }

    /// Returns the value that the row stores in a column of its source's table, as text.
    pub(super) fn stored_text(&self, source: &BoundSource, column: &str) -> Option<String> {
        let surplus = self.surplus.as_ref().filter(|s| s.table.as_deref() == Some(&table_of(source).title()));
        let mut stored = surplus.into_iter().flat_map(|s| s.hidden.iter().chain(&s.spelled));
        if let Some((_, raw)) = stored.find(|(name, _)| name == column) {
            return as_text(raw);
        }
        match self.row.get(canonical(source, column)?) {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Sets a column to the time of the change.
    pub fn at_once(mut self, column: &'static str) -> Self {
        self.now.push(column);
        self
    }
}

/// The canonical column that a stored one of a source's table is.
pub(super) fn canonical(source: &BoundSource, column: &str) -> Option<&'static str> {
    let mut names = source.entity.columns().iter().map(|c| c.name);
    names.find(|name| plain_column(source, name).is_some_and(|(stored, _)| stored == column))
}

impl From<Row> for NewRow {
    fn from(row: Row) -> Self {
        NewRow { row, now: Vec::new(), place: 0, surplus: None }
    }
}

/// Counts of rows that were added and of rows that were already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportTally {
    /// New ones.
    pub added: usize,
    /// Rows whose key exists already, or is repeated among the new ones.
    pub present: usize,
}

/// Adds rows of one entity to a plan. Rows whose key exists already, or is repeated, are left out.
///
/// # Errors
/// [`ChangeError::Refused`] if the entity cannot be written.
pub async fn add(draft: &mut Draft<'_>, entity: Entity, rows: Vec<NewRow>) -> Result<ImportTally, ChangeError> {
    add_beside(draft, entity, rows, None).await
}

/// As [`add`], with the stored row that the new ones depend on, from which the layout may copy columns.
///
/// # Errors
/// As [`add`].
pub async fn add_beside(
    draft: &mut Draft<'_>,
    entity: Entity,
    rows: Vec<NewRow>,
    owner: Option<&Image>,
) -> Result<ImportTally, ChangeError> {
    match target(draft.store, entity) {
        _ if rows.is_empty() => Ok(ImportTally::default()),
        Ok(source) => add_to(draft, source, rows, owner).await,
        Err(why) => Err(why),
    }
}

/// As [`add_beside`], into a named source of the entity.
///
/// # Errors
/// As [`add`].
pub async fn add_to(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    rows: Vec<NewRow>,
    owner: Option<&Image>,
) -> Result<ImportTally, ChangeError> {
    let (store, entity) = (draft.store, source.entity);
    check_addable(source, &rows)?;
    let key = SourceKey::of(source);
    if let Some(odd) = rows.iter().find(|new| !key.is_whole(&key.of_row(&new.row))) {
        let (table, id) = (table_of(source).title(), odd.row.id());
        return Err(ChangeError::Usage(format!(
            "{table}: the id `{id}` is not a JSON list of {}",
            key.parts.join(", ")
        )));
    }
    // Position of the first new row with a key; `None` if it is stored already.
    let stored = key.stored(store, rows.iter().map(|new| key.of_row(&new.row)).collect()).await?;
    let mut seen: BTreeMap<Vec<String>, Option<usize>> = stored.into_iter().map(|key| (key, None)).collect();
    let (mut new, mut present, mut contradicting): (Vec<NewRow>, usize, usize) = (Vec::new(), 0, 0);
    for row in rows {
        match seen.entry(key.of_row(&row.row)) {
            Entry::Vacant(place) => {
                place.insert(Some(new.len()));
                new.push(row);
            }
            Entry::Occupied(first) => {
                present += 1;
                contradicting += usize::from(first.get().is_some_and(|first| new[first].row != row.row));
            }
        }
    }
    let mut rows = new;
    let tally = ImportTally { added: rows.len(), present };
    draft.disclosures.extend(counted(
        contradicting,
        &format!(
            "{{#}} {} {{row has the id of an earlier one and says|rows have the ids of earlier ones and say}} \
                 something else: the first one is used",
            entity.title()
        ),
    ));
    if rows.is_empty() {
        return Ok(tally);
    }
    let shape = store.shapes().shape(&table_of(source)).await?;
    tell_numbering(draft, source, &rows).await?;
    lost_columns(draft, source, &shape, &mut rows);
    let used = |c: &&str| rows.iter().any(|r| r.is_given(c));
    let used: Vec<&str> = entity.columns().iter().map(|c| c.name).filter(used).collect();
    let (columns, lost): (Vec<&str>, Vec<&str>) = used.into_iter().partition(|c| has_place(source, c));
    let lost: Vec<&str> = lost
        .into_iter()
        .filter(|c| !DERIVED.contains(c) && (source.derive != Some(Derivation::EpisodeLinks) || !source.derives(c)))
        .filter(|c| rows.iter().any(|r| !r.row.json(c).is_null() && !is_kept(source, &r.row, c)))
        .collect();
    if !lost.is_empty() {
        let table = table_of(source).title();
        draft.disclosures.push(format!("{table} has no place for `{}`: it is left out", lost.join("`, `")));
    }
    rows.iter().for_each(|r| draft.adds(&r.row));
    // One statement sets the same columns of all its rows, after the rows they refer to.
    let never_empty = never_empty(store, source);
    let table = table_of(source);
    let mut alike: BTreeMap<AlikeKey<'_>, Vec<usize>> = BTreeMap::new();
    for (place, generation) in generations(store, source, &rows).await?.into_iter().enumerate() {
        let new = &rows[place];
        let mut names: Vec<String> = new.stored(&shape, &table).map(|(name, _)| name.clone()).collect();
        names.sort();
        let filled = |c: &&str| !never_empty.contains(c) || new.now.contains(c) || !new.row.json(c).is_null();
        let columns: Vec<&str> = columns.iter().copied().filter(filled).collect();
        alike.entry((generation, names, columns)).or_default().push(place);
    }
    // For a part of a file, both forms of a row are in memory only for one row at a time.
    let mut statements: BTreeMap<(Generation, Vec<String>), Mutation> = BTreeMap::new();
    let mut rows: Vec<Option<NewRow>> = rows.into_iter().map(Some).collect();
    let mut vectors: BTreeMap<usize, (String, Surplus)> = BTreeMap::new();
    for ((generation, _, columns), places) in alike {
        for place in places {
            let Some(mut new) = rows[place].take() else { continue };
            let mut stored = needed(store.engine(), source, &shape, &new);
            stored.append(&mut new.take_stored(&shape, &table));
            if let Some(surplus) = new.surplus.take_if(|surplus| surplus.has_vector()) {
                vectors.insert(place, (new.row.id().to_owned(), surplus));
            }
            let given: Vec<GivenValue> = columns.iter().map(|column| new.take_given(column)).collect();
            let row = [(given.as_slice(), &stored)];
            let insertion = in_order(store.encoder().insertions_as_stored(source, &columns, &row, owner).await?);
            let Mutation::Insert { columns, .. } = &insertion else { continue };
            match statements.entry((generation, columns.clone())) {
                Entry::Occupied(known) => join(known.into_mut(), insertion),
                Entry::Vacant(free) => _ = free.insert(insertion),
            }
        }
    }
    statements.into_values().for_each(|insertion| draft.push(insertion));
    vectors::add(draft, source, vectors.into_values().collect()).await?;
    Ok(tally)
}

/// The parts of a composite id, as texts.
fn key_texts(id: &str, parts: usize) -> Option<Vec<String>> {
    let values: Vec<Value> = serde_json::from_str(id).ok().filter(|values: &Vec<Value>| values.len() == parts)?;
    Some(values.into_iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect())
}

/// Orders the columns of new rows by name. Rows of a circle refer to each other, and a server accepts them only in one
/// statement: those that set the same columns are combined, whichever of these are stored values.
fn in_order(insertion: Mutation) -> Mutation {
    let Mutation::Insert { table, key, mut columns, mut rows } = insertion else { return insertion };
    let mut places: Vec<usize> = (0..columns.len()).collect();
    places.sort_by(|a, b| columns[*a].cmp(&columns[*b]));
    let empty = || Cell::Is(FetchedValue::Null);
    for row in &mut rows {
        *row = places.iter().filter_map(|place| Some(replace(row.get_mut(*place)?, empty()))).collect();
    }
    columns.sort();
    Mutation::Insert { table, key, columns, rows }
}

/// Combines the rows of two insertions that set the same columns.
fn join(known: &mut Mutation, more: Mutation) {
    if let (Mutation::Insert { rows: known, .. }, Mutation::Insert { rows, .. }) = (known, more) {
        known.extend(rows);
    }
}

/// Key for combining rows into one INSERT: their generation, their stored columns, and the canonical ones.
type AlikeKey<'c> = (Generation, Vec<String>, Vec<&'c str>);

/// Position of a row in the order of insertion: the number of rows above it. Rows of a circle are inserted together,
/// and separately from others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Generation {
    depth: usize,
    /// Number of the circle; 0 for none.
    circle: usize,
}

/// Canonical columns that are NOT NULL in the table: if a row does not set one, it gets the table's default.
pub fn never_empty(store: &Store, source: &BoundSource) -> HashSet<&'static str> {
    let name = table_of(source);
    let table = store.catalog().exactly(&name.schema, &name.name);
    let is_never = |stored: &str| table.and_then(|t| t.column(stored)).is_some_and(|c| c.not_null);
    let names = source.entity.columns().iter().map(|c| c.name);
    names.filter(|c| plain_column(source, c).is_some_and(|(stored, _)| is_never(stored))).collect()
}

/// Counts for each row the rows it depends on by the table's foreign keys to itself: the server accepts a row only
/// after the one it refers to. Rows of a circle come together.
async fn generations(store: &Store, source: &BoundSource, rows: &[NewRow]) -> Result<Vec<Generation>, ChangeError> {
    let mut generations = vec![Generation::default(); rows.len()];
    if store.engine() != Engine::Postgres || rows.len() < 2 {
        return Ok(generations);
    }
    let table = table_of(source);
    let shape = store.shapes().shape(&table).await?;
    for key in store.shapes().column_keys_of(&table).await?.into_iter().filter(|key| key.to == table) {
        let folds = shape.column(&key.column).is_some_and(ShapeColumn::folds_case);
        let value = |row: usize, column: &str| {
            let text = rows[row].stored_text(source, column)?;
            Some(if folds { text.to_lowercase() } else { text })
        };
        let places: HashMap<String, usize> =
            (0..rows.len()).filter_map(|row| Some((value(row, &key.to_column)?, row))).collect();
        let parents: Vec<Option<usize>> =
            (0..rows.len()).map(|row| places.get(&value(row, &key.column)?).copied()).collect();
        for (generation, depth) in generations.iter_mut().zip(depths(&parents)) {
            *generation = depth.max(*generation);
        }
    }
    Ok(generations)
}

/// Counts the rows above each one; 0 for rows of a circle.
fn depths(parents: &[Option<usize>]) -> Vec<Generation> {
    let mut depths: Vec<Option<Generation>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        let (mut path, mut at) = (Vec::new(), Some(start));
        let mut on_path = HashMap::new();
        while let Some(row) = at.filter(|row| depths[*row].is_none() && !on_path.contains_key(row)) {
            on_path.insert(row, path.len());
            path.push(row);
            at = parents[row];
        }
        let circle = at.and_then(|row| on_path.get(&row).copied()).unwrap_or(path.len());
        let of_circle = Generation { depth: 0, circle: start + 1 };
        path.drain(circle..).for_each(|row| depths[row] = Some(of_circle));
        let first = at.and_then(|row| depths[row]).map_or(0, |above| above.depth + 1);
        for (depth, row) in (first..).zip(path.into_iter().rev()) {
            depths[row] = Some(Generation { depth, circle: 0 });
        }
    }
    depths.into_iter().map(Option::unwrap_or_default).collect()
}

/// Removes stored columns that have no place here, and reports that.
fn lost_columns(draft: &mut Draft<'_>, source: &BoundSource, shape: &TableShape, rows: &mut [NewRow]) {
    let (table, engine) = (table_of(source).title(), draft.store.engine());
    let mut lost: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for surplus in rows.iter_mut().filter_map(|new| new.surplus.as_mut()) {
        let same = surplus.table.as_deref() == Some(&table);
        // A server can cast its own text form back to the original value.
        let is_own = engine == Engine::Postgres && surplus.engine.as_deref() == Some(engine.name());
        let takes = |name: &str, raw: &FetchedValue| {
            shape.column(name).is_some_and(|column| is_own || column.takes(engine, raw))
        };
        let from = surplus.table.as_deref().unwrap_or_default();
        surplus.hidden.retain(|(name, raw)| {
            let is_kept = same && takes(name, raw);
            if !is_kept && *raw != FetchedValue::Null {
                *lost.entry((format!("{from}.{name}"), surplus.shown.contains(name))).or_default() += 1;
            }
            is_kept
        });
    }
    for ((name, is_shown), count) in lost {
        let rest = if is_shown { "what is shown of {it|them} is copied" } else { "left out" };
        let words = format!("{table} has no place for {{#}} {{value|values}} of `{name}`: {rest}");
        draft.disclosures.push(agreeing(count, &words));
    }
}

/// Rows of a file whose ids stored rows have.
#[derive(Debug, Default)]
pub struct KnownRows {
    /// Number of those that are stored already, by entity.
    pub present: BTreeMap<Entity, usize>,
    /// Those that have the id of another row, with the column by which the two differ.
    pub colliding: Vec<(NewRow, &'static str)>,
}

/// Removes the rows whose ids stored rows have. Where rows are `compared`, one that belongs to somebody else than the stored
/// row of its id is not that row.
///
/// # Errors
/// The engine's refusal.
pub async fn take_known(store: &Store, rows: &mut Vec<NewRow>, compared: bool) -> Result<KnownRows, ChangeError> {
    let mut known = KnownRows::default();
    for (source, of_source) in by_place(store, take(rows))? {
        let key = SourceKey::of(source);
        let sought = of_source.iter().map(|new| key.of_row(&new.row)).filter(|values| key.can_be(store, values));
        let stored = key.stored(store, sought.collect()).await?;
        let shown = shown_elsewhere(store, source, &of_source).await?;
        let is_known =
            |new: &NewRow| stored.contains(&key.of_row(&new.row)) || !names_table(new) && shown.contains(new.row.id());
        let (there, missing): (Vec<NewRow>, Vec<NewRow>) = of_source.into_iter().partition(is_known);
        rows.extend(missing);
        let others = if compared { others(store, source.entity, &there).await? } else { HashMap::new() };
        for new in there {
            match others.get(new.row.id()).copied() {
                Some(column) => known.colliding.push((new, column)),
                None => *known.present.entry(source.entity).or_default() += 1,
            }
        }
    }
    Ok(known)
}

/// Ids of rows under which only other rows are stored, with the column by which they differ.
async fn others(store: &Store, entity: Entity, there: &[NewRow]) -> Result<HashMap<String, &'static str>, ChangeError> {
    let mut stored: HashMap<String, Vec<Row>> = HashMap::new();
    let ids: Vec<&str> = there.iter().map(|new| new.row.id()).collect();
    let columns = same_row::columns(entity);
    for source in store.sources_of(entity)?.into_iter().filter(|source| !source.column("id").is_empty()) {
        // The time of the last change tells nothing, where no other is kept.
        let touched = |name: &str| source.write.iter().any(|write| write.touch.iter().any(|touch| touch == name));
        let is_fixed = |column: &&&str| plain_column(source, column).is_none_or(|(name, _)| !touched(name));
        let wanted: Vec<&str> = columns.iter().filter(is_fixed).copied().collect();
        for ids in ids.chunks(AT_ONCE) {
            for row in store.related_in(source, "id", ids, &[], Some(&wanted)).await? {
                stored.entry(row.id().to_owned()).or_default().push(row);
            }
        }
    }
    let differs = |new: &NewRow| {
        let alike = stored.get(new.row.id())?.iter().map(|row| same_row::difference(row, &new.row));
        Some((new.row.id().to_owned(), *alike.collect::<Option<Vec<_>>>()?.first()?))
    };
    Ok(there.iter().filter_map(differs).collect())
}

/// Whether a file says in which table a row stood.
fn names_table(new: &NewRow) -> bool {
    new.surplus.as_ref().is_some_and(|surplus| surplus.table.is_some())
}

/// The ids of rows without a named table that another, read-only source shows, such as a palace.
async fn shown_elsewhere(store: &Store, source: &BoundSource, rows: &[NewRow]) -> Result<HashSet<String>, ChangeError> {
    let mut shown = HashSet::new();
    let ids: Vec<&str> = rows.iter().filter(|new| !names_table(new)).map(|new| new.row.id()).collect();
    let is_other =
        |other: &&BoundSource| !ptr::eq(*other, source) && !other.is_writable() && !other.column("id").is_empty();
    for other in store.sources_of(source.entity)?.into_iter().filter(is_other) {
        for ids in ids.chunks(AT_ONCE) {
            let rows = store.related_in(other, "id", ids, &[], Some(&["id"])).await?;
            shown.extend(rows.into_iter().map(|row| row.id().to_owned()));
        }
    }
    Ok(shown)
}

/// Rows that the database cannot store, each with its position and the reason.
///
/// # Errors
/// As [`add`].
pub async fn unfit(store: &Store, rows: &[&NewRow]) -> Result<Vec<(usize, String)>, ChangeError> {
    let mut unfit = Vec::new();
    for (source, rows) in by_place(store, rows.iter().copied())? {
        check_addable(source, &rows)?;
        let (table, engine) = (table_of(source), store.engine());
        let shape = store.shapes().shape(&table).await?;
        let numbering = match numbered_column(source).filter(|_| engine == Engine::Postgres) {
            Some(column) => Some(store.shapes().numbering(&table, column).await?),
            None => None,
        };
        for new in rows {
            if numbering.is_some_and(|known| new.row.id().parse::<i64>().is_ok_and(|number| number > known.most)) {
                let why = "numbers its rows itself and has not reached this number yet: another row would get it later";
                unfit.push((new.place, format!("{} {why}", table.title())));
                continue;
            }
            let used = |c: &&str| has_place(source, c) && new.is_given(c);
            let columns: Vec<&str> = new.row.entity.columns().iter().map(|c| c.name).filter(used).collect();
            let (values, mut stored) = (given(new, &columns), needed(engine, source, &shape, new));
            stored.extend(new.stored(&shape, &table).cloned());
            match store.encoder().insertions_as_stored(source, &columns, &[(&values, &stored)], None).await {
                Ok(_) => {}
                Err(StoreError::CannotHold(why)) => unfit.push((new.place, why)),
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(unfit)
}

/// Checks that rows can be added to a source. If the engine numbers its rows, they must come with their original
/// numbers.
fn check_addable(source: &BoundSource, rows: &[impl Borrow<NewRow>]) -> Result<(), ChangeError> {
    let bring_numbers = rows.iter().all(|new| stood_in(source, new.borrow()));
    if bring_numbers { writable(source).map(drop) } else { addable(source).map(drop) }
}

/// The stored column for the engine's number of each row in a source.
fn numbered_column(source: &BoundSource) -> Option<&str> {
    source.write.as_ref().filter(|write| write.numbered)?;
    plain_column(source, "id").map(|(name, _)| name)
}

/// Reports where PostgreSQL continues numbering, if new rows have higher numbers than its sequence.
async fn tell_numbering(draft: &mut Draft<'_>, source: &BoundSource, rows: &[NewRow]) -> Result<(), ChangeError> {
    let Some(column) = numbered_column(source).filter(|_| draft.store.engine() == Engine::Postgres) else {
        return Ok(());
    };
    let brought = rows.iter().filter(|new| stood_in(source, new)).filter_map(|new| new.row.id().parse::<i64>().ok());
    let last = draft.store.shapes().numbering(&table_of(source), column).await?.last;
    if let Some(most) = brought.max().filter(|most| *most > last) {
        draft.effects.push(format!("{} numbers further rows after {most}", table_of(source).title()));
    }
    Ok(())
}

/// Stored values that an exported row needs besides its columns: its original number, and a vector that its table
/// requires.
fn needed(engine: Engine, source: &BoundSource, shape: &TableShape, new: &NewRow) -> StoredColumns {
    let mut needed = StoredColumns::new();
    if let Some(column) = numbered_column(source).filter(|_| stood_in(source, new)) {
        needed.push((column.to_owned(), FetchedValue::Text(new.row.id().to_owned())));
    }
    let Some(numbers) = new.surplus.as_ref().and_then(|surplus| surplus.vector.as_ref()) else { return needed };
    let Ok(shelf) = VectorShelf::of(source) else { return needed };
    let is_required = shape.column(&shelf.column).is_some_and(|column| column.required);
    if shelf.key.is_none() && is_required && shelf.fixed_size().is_none_or(|size| size == numbers.len()) {
        let vector = spelled(engine, &shelf.declared, numbers);
        needed.push((shelf.column, vector));
    }
    needed
}

/// Ids per statement.
const AT_ONCE: usize = 400;

/// Columns that identify the rows of a source.
struct SourceKey<'s> {
    source: &'s BoundSource,
    /// Canonical columns.
    columns: &'static [&'static str],
    /// Stored columns of a composite id; empty if each canonical column has its own.
    parts: Vec<&'s str>,
}

impl<'s> SourceKey<'s> {
    fn of(source: &'s BoundSource) -> Self {
        let columns: &'static [&'static str] =
            if source.entity.column("id").is_some() { &["id"] } else { &["episode_id", "memory_id"] };
        SourceKey { source, columns, parts: key_columns(source, "id").unwrap_or_default() }
    }

    /// The values of a row in these columns, as texts.
    fn of_row(&self, row: &Row) -> Vec<String> {
        match key_texts(row.id(), self.parts.len()) {
            Some(parts) => parts,
            None => self.columns.iter().map(|c| row.text(c).unwrap_or_default().to_owned()).collect(),
        }
    }

    /// Whether there are as many values as an id has parts.
    fn is_whole(&self, values: &[String]) -> bool {
        self.parts.is_empty() || values.len() == self.parts.len()
    }

    /// Whether the stored columns can contain some values: otherwise querying for them is an error.
    fn can_be(&self, store: &Store, values: &[String]) -> bool {
        let fits = |(column, value): (&&str, &String)| {
            plain_column(self.source, column).is_none_or(|(_, way)| store.encoder().can_be(way, value))
        };
        self.is_whole(values) && (!self.parts.is_empty() || self.columns.iter().zip(values).all(fits))
    }

    /// The keys that stored rows have.
    async fn stored(&self, store: &Store, keys: Vec<Vec<String>>) -> Result<HashSet<Vec<String>>, ChangeError> {
        let plain = self.columns.iter().filter_map(|column| plain_column(self.source, column)).map(|(name, _)| name);
        let by: Vec<&str> = if self.parts.is_empty() { plain.collect() } else { self.parts.clone() };
        let by = by.into_iter().map(str::to_owned).collect();
        let keys = keys.into_iter().map(|key| key.into_iter().map(FetchedValue::Text).collect()).collect();
        let rows = StoredRows { table: table_of(self.source), by, keys };
        let images = store.shapes().images_of(&rows, &rows.by).await?;
        Ok(images.iter().map(|image| rows.by.iter().map(|name| text(image, name)).collect()).collect())
    }
}

fn given(new: &NewRow, columns: &[&str]) -> Vec<GivenValue> {
    let value = |c: &&str| if new.now.contains(c) { GivenValue::Now } else { GivenValue::of(&new.row, c) };
    columns.iter().map(value).collect()
}

/// Columns derived from others unless they are stored.
const DERIVED: &[&str] = &["counts", "source", "has_vector", "episodes", "cases", "feedback"];

/// The source for new rows of an entity.
///
/// # Errors
/// [`ChangeError::Refused`] if there is none.
pub fn target(store: &Store, entity: Entity) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(entity)?;
    let source = sources.iter().copied().find(|s| writable(s).is_ok()).or(sources.first().copied());
    source.ok_or_else(|| ChangeError::Refused(format!("no {} is stored here", entity.title())))
}

/// The source for a new row: the one of its original table, if the layout is the same; otherwise [`target`].
///
/// # Errors
/// [`ChangeError::Refused`] if there is none.
pub fn place<'s>(store: &'s Store, new: &NewRow) -> Result<&'s BoundSource, ChangeError> {
    match store.sources_of(new.row.entity)?.into_iter().find(|source| stood_in(source, new)) {
        Some(source) => Ok(source),
        None => target(store, new.row.entity),
    }
}

/// Whether an exported row comes from a source's table, and was read by the same layout.
fn stood_in(source: &BoundSource, new: &NewRow) -> bool {
    let of = new.surplus.as_ref().and_then(|surplus| Some((surplus.table.as_deref()?, surplus.layout.as_deref()?)));
    of == Some((&*table_of(source).title(), &*source.layout))
}

/// Groups new rows by their source.
///
/// # Errors
/// As [`place`].
pub fn by_place<N: Borrow<NewRow>>(
    store: &Store,
    rows: impl IntoIterator<Item = N>,
) -> Result<Vec<(&BoundSource, Vec<N>)>, ChangeError> {
    let mut places: Vec<(&BoundSource, Vec<N>)> = Vec::new();
    for new in rows {
        let source = place(store, new.borrow())?;
        match places.iter_mut().find(|(known, _)| ptr::eq(*known, source)) {
            Some((_, rows)) => rows.push(new),
            None => places.push((source, vec![new])),
        }
    }
    Ok(places)
}

/// Whether a source stores a canonical column, directly or by words of its own.
pub fn has_place(source: &BoundSource, name: &str) -> bool {
    let by_word = |fill: &Fill| matches!(fill, Fill::Word { column, .. } if column == name);
    plain_column(source, name).is_some()
        || goes_within(source, name)
        || name == "id" && key_columns(source, "id").is_some()
        || source.write.as_ref().is_some_and(|w| w.insert.iter().any(|(_, fill)| by_word(fill)))
}

/// Whether a value is stored: in its own column, as a word, or as a part of another stored value.
pub fn is_kept(source: &BoundSource, row: &Row, column: &str) -> bool {
    if plain_column(source, column).is_some()
        || goes_within(source, column)
        || column == "id" && key_columns(source, "id").is_some()
    {
        return true;
    }
    if column == "score" && source.entity == Entity::Feedback && source.column(column).is_empty() {
        let follows = row.text("kind").and_then(|kind| feedback::score(kind, row.get("rating").as_i64()));
        return follows == row.number(column);
    }
    let fills = source.write.as_ref().map(|w| w.insert.as_slice()).unwrap_or_default();
    let by_word = |fill: &Fill| match fill {
        Fill::Word { column: by, words } => by == column && words.iter().any(|(w, _)| row.text(column) == Some(w)),
        _ => false,
    };
    if has_place(source, column) {
        return fills.iter().any(|(_, fill)| by_word(fill));
    }
    source.column(column).iter().any(|way| match (&way.origin, &way.inside.path) {
        (BoundOrigin::Value(value), _) => value == row.get(column),
        // It belongs to the row that this one depends on, such as a case's bank, which has the owner.
        (BoundOrigin::Column { alias, .. }, _) if alias != "t" => true,
        (BoundOrigin::Column { name, .. }, Some(path)) => row.entity.columns().iter().any(|whole| {
            plain_column(source, whole.name).is_some_and(|(stored, _)| stored == name)
                && row.within(whole.name, path).is_some_and(|part| part == *row.get(column))
        }),
        _ => false,
    })
}

fn text(image: &Image, column: &str) -> String {
    match image.get(column) {
        Some(FetchedValue::Text(text)) => text.clone(),
        Some(FetchedValue::Integer(number)) => number.to_string(),
        _ => String::new(),
    }
}
