//! The stored vectors nearest to a query, among one owner's rows: by pgvector if the column has its type, otherwise
//! read and compared here. Never by an approximate index under a filter, which misses rows.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::dialect::{self, PgType};
use super::fetched::{FetchedValue, RawRow};
use super::select::{SelectStatement, from_clause, narrow, narrow_any, narrow_server};
use super::vector_cache;
use super::{StoreError, VectorReader};
use crate::layout::{BoundColumn, BoundOrigin, BoundSource, BoundVector, Engine};
use crate::memory::filter::Filter;
use crate::memory::findings::FindingTally;
use crate::memory::first_of::FirstOf;
use crate::memory::packed::preselect::{Bounds, Preselection};
use crate::memory::vector::{self, Likeness, NearRow, Nearest, VectorProbe};
use crate::memory::{Entity, ValueKind, json};

pub(crate) use super::vector_cache::KeptVectors;
pub use crate::memory::vector::{CONSOLE_BYTES, ComparedBy, VectorTally};

/// Error code of pgvector for a distance between vectors of different dimensions.
const DATA_EXCEPTION: &str = "22000";

/// Ids per statement.
const IN_LIST: usize = 400;

/// Most cached vectors to read again individually, before all are read.
pub(crate) const READ_AGAIN: usize = 16_384;

/// Vectors between two checks of the remaining cache space.
const STRIDE: usize = 4_096;

/// The nearest rows, and counts of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedVectors {
    /// Nearest first, ties by id.
    pub near: Vec<NearRow>,
    /// Counts of all rows by outcome.
    pub tally: VectorTally,
    /// Place of the comparison.
    pub by: ComparedBy,
}

/// Outcome of comparing vectors one by one.
pub(crate) struct EachCosine {
    /// Counts of all rows by outcome.
    pub tally: VectorTally,
    /// Place of the comparison.
    pub by: ComparedBy,
    /// The compared vectors in order, if they are cached.
    pub kept: Option<Arc<KeptVectors>>,
}

/// Result of reading a stored value as a vector.
enum ReadVector {
    Vector,
    Missing,
    Unreadable,
}

/// Vectors to compare, and the query vector.
struct AskedVectors<'a> {
    /// Key of the cached vectors.
    key: String,
    places: Vec<VectorSource<'a>>,
    filters: &'a [Filter],
    query: &'a [f32],
}

/// A source with the location of its vectors.
#[derive(Clone, Copy)]
pub(super) struct VectorSource<'s> {
    source: &'s BoundSource,
    vector: &'s BoundVector,
    id: &'s BoundColumn,
}

impl VectorSource<'_> {
    /// Schema prefix for a function, type or operator of the extension, if needed.
    fn extension(&self) -> Option<&str> {
        let bare = self.vector.declared.split('(').next().unwrap_or_default();
        let (schema, name) = bare.split_at(bare.rfind('.').map_or(0, |dot| dot + 1));
        matches!(name, "vector" | "halfvec").then_some(schema)
    }

    fn column(&self) -> String {
        format!("{}.{}", dialect::quote(&self.vector.alias), dialect::quote(&self.vector.column))
    }

    /// The stored value as SQL in a form that [`VectorSource::read`] accepts.
    fn value(&self, engine: Engine) -> String {
        let column = self.column();
        match (engine, self.extension()) {
            (Engine::Sqlite, _) => column,
            (_, Some(schema)) => format!("{schema}vector_send({column}::{schema}vector)"),
            _ => match PgType::of(&self.vector.declared) {
                PgType::Bytes => column,
                PgType::Array => format!("array_to_json({column})::text"),
                _ => format!("({column})::text"),
            },
        }
    }

    /// Parses a stored value into `into`, which is emptied first.
    fn read(&self, engine: Engine, raw: &FetchedValue, into: &mut Vec<f32>) -> ReadVector {
        into.clear();
        let sent = engine == Engine::Postgres && self.extension().is_some();
        let found = match raw {
            FetchedValue::Null => return ReadVector::Missing,
            FetchedValue::Bytes(bytes) if sent => {
                let (numbers, _) = bytes.get(4..).unwrap_or_default().as_chunks::<4>();
                into.extend(numbers.iter().map(|n| f32::from_be_bytes(*n)));
                !into.is_empty()
            }
            FetchedValue::Bytes(bytes) => self.read_bytes(bytes, into),
            FetchedValue::Text(text) => return self.read_text(text, into),
            _ => false,
        };
        if found { ReadVector::Vector } else { ReadVector::Unreadable }
    }

    fn read_bytes(&self, bytes: &[u8], into: &mut Vec<f32>) -> bool {
        if bytes.first() == Some(&b'[')
            && let Ok(text) = std::str::from_utf8(bytes)
            && let ReadVector::Vector = self.read_text(text, into)
        {
            return true;
        }
        into.clear();
        vector::read_floats(bytes, into)
    }

    fn read_text(&self, text: &str, into: &mut Vec<f32>) -> ReadVector {
        if matches!(text.trim(), "" | "null" | "[]") {
            return ReadVector::Missing;
        }
        let Some(path) = &self.vector.path else {
            let is_read = match text.trim_start().bytes().next() {
                Some(b'{') => vector::read_braced(text, into),
                _ if self.vector.declared.starts_with("bit") => vector::read_bits(text, into),
                _ => vector::read_list(text, into),
            };
            return if is_read { ReadVector::Vector } else { ReadVector::Unreadable };
        };
        match json::path_in(text, path).0 {
            None | Some(serde_json::Value::Null) => ReadVector::Missing,
            Some(found) => match vector::of_json(&found) {
                Some(numbers) => {
                    into.extend(numbers);
                    ReadVector::Vector
                }
                None => ReadVector::Unreadable,
            },
        }
    }

    /// Begins the statement that reads ids and `value` of all rows of the source.
    fn select(&self, engine: Engine, value: &str) -> Option<SelectStatement> {
        let id = dialect::project(engine, self.id, ValueKind::Text, None)?;
        let mut sql = format!("SELECT {id} AS id, {value} AS value FROM {}", from_clause(self.source));
        if let Some(beside) = &self.vector.beside {
            let table = match (&beside.table, &beside.query) {
                (Some((schema, name)), _) => dialect::table(schema, name),
                (None, Some(query)) => format!("({query})"),
                (None, None) => return None,
            };
            let parts = match &self.id.origin {
                BoundOrigin::Key { parts, .. } => &parts[..],
                origin => std::slice::from_ref(origin),
            };
            if parts.len() != beside.key.len() {
                return None;
            }
            let mut on = Vec::new();
            for (origin, (key, declared)) in parts.iter().zip(&beside.key) {
                let bare = dialect::expression(origin)?;
                let key = format!("vec.{}", dialect::quote(key));
                let same = engine == Engine::Sqlite || dialect::declared(origin) == declared;
                on.push(if same { format!("{key} = {bare}") } else { format!("({key})::text = ({bare})::text") });
            }
            let _ = write!(sql, " LEFT JOIN {table} AS vec ON {}", on.join(" AND "));
            if let Some(keep) = &self.vector.keep {
                let _ = write!(sql, " AND ({keep})");
            }
        }
        let _ = write!(sql, " WHERE {}", self.source.keep.as_deref().unwrap_or("1 = 1"));
        Some(SelectStatement::new(engine, sql))
    }
}

fn text(raw: Option<&FetchedValue>) -> String {
    match raw {
        // A composite id, which the engines format differently.
        Some(FetchedValue::Text(text)) if text.starts_with('[') => super::fetched::key_text(text),
        Some(FetchedValue::Text(text)) => text.clone(),
        Some(FetchedValue::Integer(i)) => i.to_string(),
        Some(FetchedValue::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// An operator of the extension with its schema prefix.
fn operator(schema: &str, name: &str) -> String {
    if schema.is_empty() { name.to_owned() } else { format!("OPERATOR({schema}{name})") }
}

/// Compares vectors number by number.
fn in_order(a: &[f32], b: &[f32]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

impl<'a> VectorReader<'a> {
    fn places(self, entity: Entity) -> Vec<VectorSource<'a>> {
        let sources = self.store.recognised().sources.iter().filter(|s| s.entity == entity);
        sources
            .filter_map(|source| {
                let [id] = source.column("id") else { return None };
                Some(VectorSource { source, vector: source.vector.as_ref()?, id })
            })
            .collect()
    }

    /// Passes on the readable vectors of a source's rows, unordered, until told to stop.
    pub(super) async fn each_stored_vector(
        self,
        source: &BoundSource,
        mut each: impl FnMut(&[f32]) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let engine = self.store.engine();
        let ([id], Some(vector)) = (source.column("id"), source.vector.as_ref()) else { return Ok(()) };
        let place = VectorSource { source, vector, id };
        let Some(mut statement) = place.select(engine, &place.value(engine)) else { return Ok(()) };
        let _ = write!(statement.sql, " AND {} IS NOT NULL", place.column());
        let mut numbers = Vec::new();
        self.store
            .scan(&statement, |row| match place.read(engine, row.get(1).unwrap_or(&FetchedValue::Null), &mut numbers) {
                ReadVector::Vector => each(&numbers),
                ReadVector::Missing | ReadVector::Unreadable => ControlFlow::Continue(()),
            })
            .await
    }

    /// Whether the layout stores vectors of an entity in this database (there may be none yet).
    pub fn has_vectors(self, entity: Entity) -> bool {
        !self.places(entity).is_empty()
    }

    /// Rows of an entity whose vector cannot be compared, because of its values. Reads every vector, but where pgvector
    /// keeps them: it refuses NaN and infinity, and finds those that may be all zeros.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_without_direction(self, entity: Entity, most: usize) -> Result<FindingTally, StoreError> {
        let engine = self.store.engine();
        let (mut found, mut numbers) = (FirstOf::new(most), Vec::new());
        for place in self.places(entity) {
            let Some(mut statement) = place.select(engine, &place.value(engine)) else { continue };
            let column = place.column();
            let _ = match place.extension().filter(|_| engine == Engine::Postgres) {
                Some(schema) => {
                    let (own, product) = (format!("{column}::{schema}vector"), operator(schema, "<#>"));
                    write!(statement.sql, " AND {own} {product} {own} = 0")
                }
                None => write!(statement.sql, " AND {column} IS NOT NULL"),
            };
            let each = |row: RawRow| {
                let raw = row.get(1).unwrap_or(&FetchedValue::Null);
                if matches!(place.read(engine, raw, &mut numbers), ReadVector::Vector)
                    && !vector::has_direction(&numbers)
                {
                    found.add(text(row.first()));
                }
                ControlFlow::Continue(())
            };
            self.store.scan(&statement, each).await?;
        }
        Ok(FindingTally::of_first(found, Some))
    }

    /// The stored vectors of some rows, by id, without rows that have no readable one. If a row has several, the first
    /// in the order of their numbers counts, wherever they are stored.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors(self, entity: Entity, ids: &[String]) -> Result<HashMap<String, Vec<f32>>, StoreError> {
        self.vectors_among(entity, ids, &[]).await
    }

    /// As [`VectorReader::vectors`], if the filters match all of these rows: a server with tables distributed by owner
    /// gets the owner condition.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_among(
        self,
        entity: Entity,
        ids: &[String],
        filters: &[Filter],
    ) -> Result<HashMap<String, Vec<f32>>, StoreError> {
        let mut found: HashMap<String, Vec<f32>> = HashMap::new();
        self.each_among(entity, ids, filters, |id, numbers| match found.entry(id) {
            Entry::Occupied(mut first) => {
                if in_order(numbers, first.get()).is_lt() {
                    first.insert(numbers.to_vec());
                }
            }
            Entry::Vacant(free) => {
                free.insert(numbers.to_vec());
            }
        })
        .await?;
        Ok(found)
    }

    /// All stored vectors of a row, without repeats, in the order of their numbers.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn all_of(self, entity: Entity, id: &str) -> Result<Vec<Vec<f32>>, StoreError> {
        let mut found: Vec<Vec<f32>> = Vec::new();
        self.each_among(entity, &[id.to_owned()], &[], |_, numbers| found.push(numbers.to_vec())).await?;
        found.sort_by(|a, b| in_order(a, b));
        found.dedup();
        Ok(found)
    }

    /// Passes each readable vector of some rows to `each`, unordered.
    async fn each_among(
        self,
        entity: Entity,
        ids: &[String],
        filters: &[Filter],
        mut each: impl FnMut(String, &[f32]) + Send,
    ) -> Result<(), StoreError> {
        let engine = self.store.engine();
        for place in self.places(entity) {
            for ids in ids.chunks(IN_LIST) {
                let Some(mut statement) = place.select(engine, &place.value(engine)) else { continue };
                narrow_any(place.source, "id", ids, &mut statement);
                narrow_server(place.source, filters, &mut statement);
                let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
                let mut numbers = Vec::new();
                self.store
                    .scan(&statement, |row| {
                        let id = text(row.first());
                        if let ReadVector::Vector =
                            place.read(engine, row.get(1).unwrap_or(&FetchedValue::Null), &mut numbers)
                            && ids.contains(id.as_str())
                        {
                            each(id, &numbers);
                        }
                        ControlFlow::Continue(())
                    })
                    .await?;
            }
        }
        Ok(())
    }

    /// The `most` rows nearest to a vector by cosine, among rows that pass the filters as far as the database can
    /// evaluate them: the caller must check the canonical rows.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn nearest(
        self,
        entity: Entity,
        filters: &[Filter],
        query: &[f32],
        most: usize,
    ) -> Result<ComparedVectors, StoreError> {
        let places = self.places(entity);
        let own = match places[..] {
            [place] if self.store.engine() == Engine::Postgres && place.extension().is_some() => Some(place),
            _ => None,
        };
        let asked = AskedVectors { key: vector_cache::key(entity, filters), places, filters, query };
        if let Some(found) = self.nearest_kept(&asked, entity, most).await? {
            return Ok(found);
        }
        if let Some(place) = own.filter(|_| !self.cache().knows(&asked.key) && !self.cache().may_keep(&asked.key)) {
            return self.nearest_there(place, filters, query, most).await;
        }
        let mut nearest = Nearest::new(most);
        // If the database compares, only as many are read as may be kept.
        let offer = |id: &str, cosine| nearest.offer(cosine, || id.to_owned());
        match (self.compare(&asked, own.is_some(), offer).await?, own) {
            (Some(EachCosine { tally, by, .. }), _) => Ok(ComparedVectors { near: nearest.into_sorted(), tally, by }),
            (None, Some(place)) => self.nearest_there(place, filters, query, most).await,
            (None, None) => {
                Ok(ComparedVectors { near: Vec::new(), tally: VectorTally::default(), by: ComparedBy::Streamed })
            }
        }
    }

    /// As [`VectorReader::nearest`], from rounded cached vectors: those that may be among the nearest are read again.
    /// `None` if the cache cannot tell.
    async fn nearest_kept(
        self,
        asked: &AskedVectors<'_>,
        entity: Entity,
        most: usize,
    ) -> Result<Option<ComparedVectors>, StoreError> {
        let Some(kept) = self.cache().get(&asked.key).filter(|kept| kept.packed().is_rounded()) else {
            return Ok(None);
        };
        let Some(compared) = kept.packed().compared(asked.query) else { return Ok(None) };
        let mut selection = Preselection::new(most);
        for at in 0..compared.len() {
            if let Some(bounds) = compared.cosine(at) {
                selection.offer(at, bounds);
            }
        }
        let first: Vec<(String, Bounds)> = selection
            .close()
            .into_iter()
            .filter_map(|at| Some((compared.id(at)?.into_owned(), compared.cosine(at)?)))
            .collect();
        let Some(cosines) = self.cosines_again((entity, asked.filters), asked.query, &first).await? else {
            self.cache().forget(&asked.key);
            return Ok(None);
        };
        let mut nearest = Nearest::new(most);
        for ((id, _), cosine) in first.into_iter().zip(cosines) {
            nearest.offer(cosine, || id);
        }
        let (near, tally) = (nearest.into_sorted(), kept.tally(asked.query));
        Ok(Some(ComparedVectors { near, tally, by: ComparedBy::Memory }))
    }

    /// The cosines of rows by their stored vectors, in order. `None` if there are too many, or if one is gone or
    /// outside its bounds because it was changed.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) async fn cosines_again(
        self,
        (entity, filters): (Entity, &[Filter]),
        query: &[f32],
        rows: &[(String, Bounds)],
    ) -> Result<Option<Vec<f64>>, StoreError> {
        if rows.len() > READ_AGAIN {
            return Ok(None);
        }
        let probe = VectorProbe::new(query);
        let mut cosines = Vec::with_capacity(rows.len());
        for rows in rows.chunks(IN_LIST) {
            let ids: Vec<String> = rows.iter().map(|(id, _)| id.clone()).collect();
            let vectors = self.vectors_among(entity, &ids, filters).await?;
            for (id, bounds) in rows {
                match vectors.get(id).map(|vector| probe.compare(vector)) {
                    Some(Likeness::Cosine(cosine)) if bounds.hold(cosine) => cosines.push(cosine),
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(cosines))
    }

    /// Passes the id and cosine of every row with a vector to `each`, unordered; a row may have several vectors. As
    /// [`VectorReader::nearest`], without keeping them.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) async fn each_cosine(
        self,
        entity: Entity,
        filters: &[Filter],
        query: &[f32],
        each: impl FnMut(&str, f64) + Send,
    ) -> Result<EachCosine, StoreError> {
        let key = vector_cache::key(entity, filters);
        let asked = AskedVectors { key, places: self.places(entity), filters, query };
        let compared = self.compare(&asked, false, each).await?;
        Ok(compared.unwrap_or(EachCosine { tally: VectorTally::default(), by: ComparedBy::Streamed, kept: None }))
    }

    /// Compares cached vectors, or else stored ones while reading, and caches these if allowed. `None` if it stopped
    /// because there are more than may be cached, as `or_stop` asks.
    async fn compare(
        self,
        asked: &AskedVectors<'_>,
        or_stop: bool,
        mut each: impl FnMut(&str, f64) + Send,
    ) -> Result<Option<EachCosine>, StoreError> {
        let AskedVectors { key, places, filters, query } = asked;
        let kept = self.cache().get(key);
        if let Some((tally, kept)) = kept.and_then(|kept| Some((kept.compare(query, &mut each)?, kept))) {
            return Ok(Some(EachCosine { tally, by: ComparedBy::Memory, kept: Some(kept) }));
        }
        let probe = VectorProbe::new(query);
        let mut tally = VectorTally::default();
        let mut bank = self.cache().may_keep(key).then(KeptVectors::default);
        let keeps = bank.is_some();
        self.each_vector(places, filters, |row| {
            tally.rows += 1;
            match row {
                StoredVector::Vector(id, numbers) => {
                    tally.count(probe.compare(numbers), |cosine| each(&id, cosine));
                    bank = bank.take().and_then(|mut bank| {
                        let looks = tally.rows.is_multiple_of(STRIDE);
                        (bank.push(&id, numbers) && (!looks || self.has_room(key, &mut bank))).then_some(bank)
                    });
                }
                StoredVector::Missing => tally.missing += 1,
                StoredVector::Unreadable => tally.unreadable += 1,
            }
            if or_stop && keeps && bank.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await?;
        let mut kept = None;
        if let Some(mut bank) = bank
            && self.has_room(key, &mut bank)
            && !(bank.packed().is_rounded() && bank.packed().has_twins())
        {
            // Rounded vectors are read again by row id, so each row must have exactly one.
            bank.set_others(tally.missing, tally.unreadable);
            kept = Some(self.cache().put(key, bank));
        }
        if keeps && kept.is_none() {
            self.cache().refuse(key);
            if or_stop {
                return Ok(None);
            }
        }
        Ok(Some(EachCosine { tally, by: ComparedBy::Streamed, kept }))
    }

    /// Whether there is room for the vectors being read; other cached ones are dropped for them.
    fn has_room(self, key: &str, bank: &mut KeptVectors) -> bool {
        let mut cache = self.cache();
        let fits = bank.fit(cache.limit());
        cache.forget(key);
        cache.make_room(key, bank.packed().bytes());
        fits
    }

    async fn each_vector(
        self,
        places: &[VectorSource<'_>],
        filters: &[Filter],
        mut each: impl FnMut(StoredVector<'_>) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let engine = self.store.engine();
        for place in places {
            let Some(mut statement) = place.select(engine, &place.value(engine)) else { continue };
            for filter in filters {
                narrow(place.source, filter, &mut statement);
            }
            let mut numbers = Vec::new();
            self.store
                .scan(&statement, |row: RawRow| {
                    let id = text(row.first());
                    match place.read(engine, row.get(1).unwrap_or(&FetchedValue::Null), &mut numbers) {
                        ReadVector::Vector => each(StoredVector::Vector(id, &numbers)),
                        ReadVector::Missing => each(StoredVector::Missing),
                        ReadVector::Unreadable => each(StoredVector::Unreadable),
                    }
                })
                .await?;
        }
        Ok(())
    }

    /// Compares in the database. Checking each vector's dimensions costs as much as the distance, so it is done only if
    /// they differ.
    async fn nearest_there(
        self,
        place: VectorSource<'_>,
        filters: &[Filter],
        query: &[f32],
        most: usize,
    ) -> Result<ComparedVectors, StoreError> {
        match self.nearest_by_pgvector(place, filters, query, most, false).await {
            Err(StoreError::Engine(sqlx::Error::Database(e))) if e.code().is_some_and(|c| c == DATA_EXCEPTION) => {
                self.nearest_by_pgvector(place, filters, query, most, true).await
            }
            outcome => outcome,
        }
    }

    /// Filters by owner first, materialized, then orders exactly: the index over all owners is not used.
    async fn nearest_by_pgvector(
        self,
        place: VectorSource<'_>,
        filters: &[Filter],
        query: &[f32],
        most: usize,
        checked: bool,
    ) -> Result<ComparedVectors, StoreError> {
        let engine = Engine::Postgres;
        let schema = place.extension().unwrap_or_default().to_owned();
        let Some(mut statement) = place.select(engine, &format!("{}::{schema}vector", place.column())) else {
            let near = Vec::new();
            return Ok(ComparedVectors { near, tally: VectorTally::default(), by: ComparedBy::Pgvector });
        };
        for filter in filters {
            narrow(place.source, filter, &mut statement);
        }
        let numbers: Vec<String> = query.iter().map(f32::to_string).collect();
        statement.params.push(FetchedValue::Text(format!("[{}]", numbers.join(","))));
        let (mark, dimensions) = (statement.params.len(), query.len());
        let operator = operator(&schema, "<=>");
        let same = if checked { format!("{schema}vector_dims(value) = {dimensions}") } else { "true".to_owned() };
        statement.sql = format!(
            "WITH owned AS MATERIALIZED ({}), scored AS MATERIALIZED (SELECT id, value IS NULL AS missing, \
             CASE WHEN value IS NOT NULL AND {same} THEN value {operator} (${mark}::text)::{schema}vector END AS distance \
             FROM owned) \
             SELECT id, distance, (SELECT count(*) FROM scored), (SELECT count(*) FROM scored WHERE missing), \
             (SELECT count(*) FROM scored WHERE distance IS NULL AND NOT missing), \
             (SELECT count(*) FROM scored WHERE distance = 'NaN') \
             FROM scored ORDER BY distance = 'NaN', distance NULLS LAST, id COLLATE \"C\" LIMIT {most}",
            statement.sql
        );
        let mut tally = VectorTally::default();
        let mut near = Vec::new();
        for row in self.store.fetch(&statement).await? {
            let count = |at: usize| match row.get(at) {
                Some(FetchedValue::Integer(i)) => usize::try_from(*i).unwrap_or_default(),
                _ => 0,
            };
            tally = VectorTally {
                rows: count(2),
                missing: count(3),
                other_dimensions: count(4),
                no_direction: count(5),
                compared: count(2).saturating_sub(count(3) + count(4) + count(5)),
                unreadable: 0,
            };
            if let Some(FetchedValue::Real(distance)) = row.get(1)
                && distance.is_finite()
            {
                near.push(NearRow { id: text(row.first()), cosine: (1.0 - distance).clamp(-1.0, 1.0) });
            }
        }
        Ok(ComparedVectors { near, tally, by: ComparedBy::Pgvector })
    }
}

/// A row of [`VectorReader::each_vector`].
enum StoredVector<'v> {
    Vector(String, &'v [f32]),
    Missing,
    Unreadable,
}
