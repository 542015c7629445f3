//! Rows that depend on another one. A few are held in full; for more, only their order and keys are held, and full rows
//! are read in parts.

mod keys;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::ops::{ControlFlow, Range};

use serde_json::Value;

use keys::{Once, RowKeys, SortedKeys};

pub(super) use keys::key_room;

use super::derive::DerivedPart;
use super::fetched::{RawRow, row_size};
use super::page::compare;
use super::select::{Projection, narrow_any};
use super::{ContextReader, StoreError, codec};
use crate::layout::BoundSource;
use crate::memory::packed::pages::PageStore;
use crate::memory::query::{Order, PART};
use crate::memory::{Entity, Row, feedback, time};

/// Most rows and bytes held in full.
const FEW: (usize, usize) = (2_000, 4 << 20);

/// Rows per read: at first, and at most.
const TOGETHER: (usize, usize) = (16, 400);

/// Values per IN list.
const IN_LIST: usize = 400;

/// Position of a row among others, before time and id: its group, and its number within it. Rows without a number come
/// last in their group.
pub(super) type RowRank = (usize, Option<i64>);

/// Rows of one entity that depend on another row, in display order.
#[derive(Debug)]
pub struct HangingRows {
    found: FoundRows,
    kept: Kept,
}

/// Kind of the rows, and how they were found.
#[derive(Debug)]
struct FoundRows {
    entity: Entity,
    /// The column and the values by which they were found; `None` if their ids suffice.
    by: Option<(&'static str, HashSet<String>)>,
}

#[derive(Debug)]
enum Kept {
    Whole(Vec<(u16, Row)>),
    Keys(Box<SortedKeys>),
}

/// Facts about a row that depends on an episode, for findings.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkFacts {
    /// Whether the row's own back-link names the episode; `None` if it names no episode.
    pub back: Option<bool>,
    /// Whether it counts in the aggregate.
    pub counts: Option<bool>,
    /// The score.
    pub score: Option<f64>,
}

impl LinkFacts {
    fn of(row: &Row, episode: &str) -> Self {
        LinkFacts {
            back: row.text("episode_id").map(|named| named == episode),
            counts: row.get("counts").as_bool(),
            score: row.number("score"),
        }
    }
}

impl FoundRows {
    /// The column that identifies one of these rows: for a link, the id of its other end.
    fn identity(&self) -> &'static str {
        match (self.entity, &self.by) {
            (Entity::MemoryLink, Some(("memory_id", _))) => "episode_id",
            (Entity::MemoryLink, _) => "memory_id",
            _ => "id",
        }
    }

    fn id<'r>(&self, row: &'r Row) -> &'r str {
        row.text(self.identity()).unwrap_or_default()
    }

    /// Whether a row was found by its contents.
    fn holds(&self, row: &Row) -> bool {
        let Some((column, values)) = &self.by else { return true };
        match row.get(column) {
            Value::String(text) => values.contains(text),
            Value::Array(items) => items.iter().filter_map(Value::as_str).any(|item| values.contains(item)),
            _ => false,
        }
    }
}

impl HangingRows {
    /// Entity of the rows.
    pub fn entity(&self) -> Entity {
        self.found.entity
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.kept {
            Kept::Whole(rows) => rows.len(),
            Kept::Keys(keys) => keys.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of the rows in order, each with its source number; for links the ids of the other end.
    pub fn ids(&self) -> impl Iterator<Item = (Cow<'_, str>, u16)> + Send + '_ {
        (0..self.len()).map(|at| match &self.kept {
            Kept::Whole(rows) => (Cow::Borrowed(self.found.id(&rows[at].1)), rows[at].0),
            Kept::Keys(keys) => (keys.id(at), keys.source(at)),
        })
    }

    /// The ids of the rows in order, with their facts.
    pub(super) fn facts<'r>(&'r self, episode: &'r str) -> impl Iterator<Item = (Cow<'r, str>, LinkFacts)> {
        self.ids().enumerate().map(move |(at, (id, _))| match &self.kept {
            Kept::Whole(rows) => (id, LinkFacts::of(&rows[at].1, episode)),
            Kept::Keys(keys) => (id, keys.facts(at)),
        })
    }

    /// The ids of feedback in order, each with its source number, and its score if it counts.
    pub fn scores(&self) -> impl Iterator<Item = (Cow<'_, str>, u16, Option<f64>)> {
        let counted = self.facts("").map(|(_, facts)| facts.score.filter(|_| facts.counts == Some(true)));
        self.ids().zip(counted).map(|((id, source), score)| (id, source, score))
    }

    /// The aggregate of feedback on an episode: the mean of the scores that count.
    pub fn score(&self) -> Option<f64> {
        feedback::aggregate(self.scores().filter_map(|(.., score)| score))
    }

    /// The rows held in full.
    pub(super) fn held(&mut self) -> impl Iterator<Item = &mut Row> {
        let rows = match &mut self.kept {
            Kept::Whole(rows) => &mut rows[..],
            Kept::Keys(_) => &mut [],
        };
        rows.iter_mut().map(|(_, row)| row)
    }
}

/// Rank of a row.
type RankOf<'r> = &'r (dyn Fn(&Row) -> RowRank + Send + Sync);

/// Collects rows that depend on another one, in any order.
pub(super) struct RowCollector<'r> {
    found: FoundRows,
    /// The row on which they depend.
    on: &'r str,
    rank: RankOf<'r>,
    room: &'r PageStore,
    /// Most bytes held in full.
    few: usize,
    bytes: usize,
    whole: Vec<(u16, Row)>,
    keys: Option<RowKeys>,
}

impl<'r> RowCollector<'r> {
    /// Creates an empty collector.
    pub fn new(entity: Entity, on: &'r str, rank: RankOf<'r>, room: &'r PageStore) -> Self {
        let found = FoundRows { entity, by: None };
        RowCollector { found, on, rank, room, few: FEW.1, bytes: 0, whole: Vec::new(), keys: None }
    }

    /// Entity of the rows.
    pub fn entity(&self) -> Entity {
        self.found.entity
    }

    /// Shares the memory limit with other collectors that are filled together.
    pub fn beside(mut self, others: usize) -> Self {
        self.few /= others.max(1);
        self
    }

    /// Resumes with rows collected earlier; returns whether they were held in full.
    pub fn resume(&mut self, rows: HangingRows) -> bool {
        let Kept::Whole(whole) = rows.kept else { return false };
        self.whole = whole;
        true
    }

    /// Sets the column and the values by which the rows are found.
    pub fn found_by(mut self, column: &'static str, values: &[impl AsRef<str>]) -> Self {
        self.found.by = Some((column, values.iter().map(|value| value.as_ref().to_owned()).collect()));
        self
    }

    /// Holds no rows in full.
    pub fn by_keys(mut self) -> Self {
        self.let_go();
        self
    }

    fn take(&mut self, source: u16, row: Row, size: usize) {
        // An episode cannot follow itself.
        if self.found.entity == Entity::Episode && row.id() == self.on {
            return;
        }
        if self.keys.is_some() {
            return self.take_key(source, row);
        }
        self.bytes += size;
        self.whole.push((source, row));
        if self.whole.len() > FEW.0 || self.bytes > self.few {
            self.let_go();
        }
    }

    fn take_key(&mut self, source: u16, row: Row) {
        let at = row.text(self.found.entity.time_column()).and_then(time::epoch_micros);
        let (id, rank) = (self.found.id(&row).to_owned(), (self.rank)(&row));
        let facts = LinkFacts::of(&row, self.on);
        if let Some(keys) = &mut self.keys {
            keys.push(source, row, &id, at, rank, facts);
        }
    }

    /// Reduces the rows to keys from now on.
    fn let_go(&mut self) {
        self.keys = Some(RowKeys::new(self.room));
        for (source, row) in mem::take(&mut self.whole) {
            self.take_key(source, row);
        }
    }

    /// The rows in order. A row reached by several links appears once: by id, for feedback by id and source.
    pub fn finish(self) -> Result<HangingRows, StoreError> {
        let RowCollector { found, rank, mut whole, keys, .. } = self;
        let by_source = found.entity == Entity::Feedback;
        let kept = if let Some(keys) = keys {
            let once = if by_source { Once::OfSource } else { Once::OfId };
            Kept::Keys(Box::new(keys.sorted(found.by.is_none().then_some(once))?))
        } else {
            if found.by.is_none() {
                let mut taken = HashSet::new();
                whole.retain(|(source, row)| taken.insert((row.id().to_owned(), by_source.then_some(*source))));
            }
            let order = Order { column: found.entity.time_column(), descending: false };
            whole.sort_by(|(_, a), (_, b)| compare(&order, a, b));
            whole.sort_by_key(|(_, row)| {
                let (group, number) = rank(row);
                (group, number.is_none(), number)
            });
            Kept::Whole(whole)
        };
        Ok(HangingRows { found, kept })
    }
}

impl<'a> ContextReader<'a> {
    /// Collects the rows whose column is one of some values.
    pub(super) async fn collect(
        self,
        into: &mut RowCollector<'_>,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        wanted: Option<&[&str]>,
    ) -> Result<(), StoreError> {
        let entity = into.found.entity;
        self.each_found(entity, column, values, wanted, |number, row, size| into.take(number, row, size)).await
    }

    /// Collects the rows whose column is one of some values, each for the collectors of its value.
    pub(super) async fn collect_each(
        self,
        into: &mut [RowCollector<'_>],
        column: &str,
        places: &BTreeMap<Cow<'_, str>, Vec<usize>>,
        wanted: Option<&[&str]>,
    ) -> Result<(), StoreError> {
        let Some(entity) = into.first().map(|rows| rows.found.entity) else { return Ok(()) };
        let values: Vec<&str> = places.keys().map(|value| &**value).collect();
        let take = |number, row: Row, size| {
            let Some((last, others)) = row.text(column).and_then(|value| places.get(value)?.split_last()) else {
                return;
            };
            others.iter().for_each(|at| into[*at].take(number, row.clone(), size));
            into[*last].take(number, row, size);
        };
        self.each_found(entity, column, &values, wanted, take).await
    }

    /// Passes on the rows whose column is one of some values, each with its source number and size in bytes.
    async fn each_found(
        self,
        entity: Entity,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        wanted: Option<&[&str]>,
        mut each: impl FnMut(u16, Row, usize) + Send,
    ) -> Result<(), StoreError> {
        let sources = self.store.sources_of(entity).unwrap_or_default();
        for (number, source) in sources.into_iter().enumerate().filter(|(_, source)| !source.column(column).is_empty())
        {
            for values in values.chunks(IN_LIST) {
                let take = |row, size| {
                    each(number as u16, row, size);
                    ControlFlow::Continue(())
                };
                self.store.each_related_in(source, column, values, &[], wanted, take).await?;
            }
        }
        Ok(())
    }

    /// Collects rows by their source numbers and ids.
    pub(super) async fn collect_ids(
        self,
        into: &mut RowCollector<'_>,
        wanted: &[(u16, String)],
    ) -> Result<(), StoreError> {
        let sources = self.store.sources_of(into.found.entity).unwrap_or_default();
        for (number, source) in sources.into_iter().enumerate().map(|(number, source)| (number as u16, source)) {
            let ids: Vec<&str> = wanted.iter().filter(|(of, _)| *of == number).map(|(_, id)| id.as_str()).collect();
            for ids in ids.chunks(IN_LIST) {
                let take = |row, size| {
                    into.take(number, row, size);
                    ControlFlow::Continue(())
                };
                self.store.each_related_in(source, "id", ids, &[], None, take).await?;
            }
        }
        Ok(())
    }

    /// The rows of an entity whose column is one of some values, in order of time and id.
    ///
    /// # Errors
    /// The engine's refusal. For an entity that the database does not hold, the result is empty.
    pub async fn hanging(
        self,
        entity: Entity,
        column: &'static str,
        values: &[impl AsRef<str> + Sync],
    ) -> Result<HangingRows, StoreError> {
        self.hanging_in_order(entity, column, values, &|_| (0, None), &key_room()).await
    }

    /// As [`ContextReader::hanging`], ordered by rank first.
    pub(super) async fn hanging_in_order(
        self,
        entity: Entity,
        column: &'static str,
        values: &[impl AsRef<str> + Sync],
        rank: RankOf<'_>,
        room: &PageStore,
    ) -> Result<HangingRows, StoreError> {
        let mut collector = RowCollector::new(entity, "", rank, room).found_by(column, values);
        self.collect(&mut collector, column, values, None).await?;
        collector.finish()
    }

    /// A reader for the full rows, in parts.
    pub fn parts(self, rows: HangingRows) -> RowParts<'a> {
        RowParts { reader: self, rows, at: 0, together: TOGETHER.0, bytes: 0 }
    }
}

/// Reads rows in parts.
pub struct RowParts<'a> {
    reader: ContextReader<'a>,
    rows: HangingRows,
    at: usize,
    /// Rows in the next read.
    together: usize,
    /// Bytes of the rows that were read.
    bytes: usize,
}

impl RowParts<'_> {
    /// Reads the next rows; empty at the end. Rows deleted meanwhile are left out.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn next(&mut self) -> Result<Vec<Row>, StoreError> {
        let all = self.rows.len();
        if let Kept::Whole(rows) = &mut self.rows.kept {
            self.at = all;
            return Ok(mem::take(rows).into_iter().map(|(_, row)| row).collect());
        }
        while self.at < all {
            let until = all.min(self.at + self.together);
            let Some((mut rows, bytes)) = self.read(self.at..until).await? else {
                self.together = (until - self.at).div_ceil(4);
                continue;
            };
            self.at = until;
            self.bytes += bytes;
            if bytes < PART / 4 {
                self.together = (self.together * 2).min(TOGETHER.1);
            }
            if !rows.is_empty() {
                if self.rows.entity() == Entity::Feedback {
                    self.reader.fill_all_episodes(Entity::Feedback, &mut rows).await?;
                }
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    /// Reads the first rows, and returns how many more there are.
    pub(super) async fn first(mut self, most: usize) -> Result<(Vec<Row>, usize), StoreError> {
        let (all, mut first) = (self.rows.len(), Vec::new());
        while first.len() < most && self.bytes < FEW.1 {
            let rows = self.next().await?;
            if rows.is_empty() {
                return Ok((first, 0));
            }
            first.extend(rows);
        }
        Ok((first, all.saturating_sub(self.at)))
    }

    /// The rows of a range, with their size in bytes; `None` if they are too large.
    async fn read(&self, places: Range<usize>) -> Result<Option<(Vec<Row>, usize)>, StoreError> {
        let Kept::Keys(keys) = &self.rows.kept else { return Ok(Some((Vec::new(), 0))) };
        let ids: Vec<(u16, String)> = places.clone().map(|at| (keys.source(at), keys.id(at).into_owned())).collect();
        keys.check()?;
        let (mut found, mut bytes) = (HashMap::new(), 0);
        for (number, source) in self.reader.store.sources_of(self.rows.entity())?.into_iter().enumerate() {
            let number = number as u16;
            let of_source = ids.iter().filter(|(of, id)| *of == number && !id.is_empty());
            let of_source: Vec<String> = of_source.map(|(_, id)| id.clone()).collect();
            if of_source.is_empty() {
                continue;
            }
            let Some((rows, size)) = self.read_of(source, &of_source).await? else { return Ok(None) };
            bytes += size;
            if bytes > PART && ids.len() > 1 {
                return Ok(None);
            }
            for row in rows {
                let id = self.rows.found.id(&row).to_owned();
                found.entry((number, id)).or_insert_with(Vec::new).push(row);
            }
        }
        let mut rows = Vec::new();
        for (at, key) in places.zip(&ids) {
            rows.extend(keys.loose(at).cloned());
            rows.extend(found.remove(key).unwrap_or_default());
        }
        Ok(Some((rows, bytes)))
    }

    async fn read_of(&self, source: &BoundSource, ids: &[String]) -> Result<Option<(Vec<Row>, usize)>, StoreError> {
        let (store, identity) = (self.reader.store, self.rows.found.identity());
        let projection = Projection::new(store.engine(), source, None, None);
        let mut statement = projection.select(source, &[]);
        narrow_any(source, identity, ids, &mut statement);
        if let Some((column, values)) = self.rows.found.by.as_ref().filter(|_| self.rows.entity() == Entity::MemoryLink)
        {
            narrow_any(source, column, &values.iter().cloned().collect::<Vec<_>>(), &mut statement);
        }
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let is_full = |bytes| bytes > PART && ids.len() > 1;
        let take = |mut raw: RawRow| {
            let size = row_size(&raw);
            let row = codec::decode(source, &projection, &mut raw);
            if row.text(identity).is_some_and(|id| wanted.contains(id)) && self.rows.found.holds(&row) {
                bytes += size;
                rows.push(row);
            }
            if is_full(bytes) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.scan(&statement, take).await?;
        if is_full(bytes) {
            return Ok(None);
        }
        let part = DerivedPart { columns: None, preview: None, bytes: PART };
        if let Some(sizes) = store.complete(source, rows.iter_mut(), part).await? {
            if sizes.len() < rows.len() && ids.len() > 1 {
                return Ok(None);
            }
            bytes += sizes.iter().sum::<usize>();
        }
        Ok(Some((rows, bytes)))
    }
}
