//! Pages of rows: keyset walks over one or several sources, merged, in both directions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use serde_json::Value;

use super::codec;
use super::derive::DerivedPart;
use super::episode_of::EpisodeBelonging;
use super::fetched::{FetchedValue, RawRow, read_size, row_size};
use super::keyword::index_condition;
use super::order::{Edge, ListCursor, OrderedPart, RawKey, ScannedEdge, Sortable, SourceOrder};
use super::reading::{KeysAhead, ListReading};
use super::select::{Projection, SelectStatement, as_stored, narrow, narrow_any, narrow_search, narrow_server};
use super::stored_order::StoredOrder;
use super::{Store, StoreError, told_apart};
use crate::layout::{BoundSource, Derivation, Engine, EpisodeLink, LinkBy};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{Order, Page, PageStart, Query};
use crate::memory::search::{self, Search};
use crate::memory::{Entity, Problem, Row};

/// Most rows per fetch if filters or words let few through.
const BATCH: usize = 2_000;
/// Most rows of a page; more means all.
const LIMIT: usize = i32::MAX as usize;
/// Values per IN list.
const IN_LIST: usize = 400;

/// Most canvas events held for a filter on them.
const FEW: usize = 5_000;

/// A query with the facts determined beforehand.
#[derive(Clone, Copy)]
struct PreparedQuery<'a> {
    query: &'a Query,
    order: &'a Order,
    few: Option<&'a FewCanvasEvents>,
    reading: &'a ListReading,
}

/// Conditions that narrow the rows of a source, and their order.
#[derive(Clone, Copy)]
struct NarrowedSource<'a> {
    source: &'a BoundSource,
    walk: &'a SourceOrder,
    search: Option<&'a Search>,
    filters: &'a [Filter],
    belonging: Option<&'a EpisodeBelonging>,
}

impl NarrowedSource<'_> {
    /// The beginning of a statement that reads the source's rows.
    fn statement(&self, projection: &Projection) -> SelectStatement {
        let mut statement = begun(projection, self.source, self.walk, self.search);
        for filter in self.filters {
            narrow(self.source, filter, &mut statement);
        }
        if let Some(belonging) = self.belonging {
            belonging.narrow(self.source, &mut statement);
        }
        statement
    }
}

/// The canvas events that match a filter, by their ids and by the episodes they name.
#[derive(Default)]
struct FewCanvasEvents {
    ids: HashSet<String>,
    episodes: HashSet<String>,
}

impl FewCanvasEvents {
    fn take(&mut self, event: &Row) {
        self.ids.insert(event.id().to_owned());
        self.episodes.extend(event.text("episode_id").map(str::to_owned));
    }

    fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn hang_on(&self, episode: &Row, links: &[EpisodeLink]) -> bool {
        let back = links.iter().any(|l| l.to == Entity::CanvasEvent && l.by == LinkBy::Back);
        back && self.episodes.contains(episode.id())
            || named_ids(episode, links, Entity::CanvasEvent).iter().any(|id| self.ids.contains(&**id))
    }
}

/// A row with its position in its source.
struct Placed {
    row: Row,
    source: usize,
    edge: Edge,
    /// Size of its stored values, in bytes.
    size: usize,
    /// Whether the layout's full-text index found it.
    indexed: bool,
}

/// Rows of one source after an edge.
struct Chunk {
    placed: Vec<Placed>,
    /// Whether the rows were cut because they are large; there may be more.
    is_cut: bool,
}

impl Store {
    /// Reads one page of rows.
    ///
    /// # Errors
    /// An entity that the database does not hold, a cursor of another list, or the engine's refusal.
    pub async fn page(&self, query: &Query) -> Result<Page, StoreError> {
        self.page_of(query, &ListReading::default()).await
    }

    /// Reads one of several consecutive pages of a list, which share their findings in `reading`.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub async fn page_of(&self, query: &Query, reading: &ListReading) -> Result<Page, StoreError> {
        let sources = self.sources_of(query.entity)?;
        let query = &Query { limit: query.limit.clamp(1, LIMIT), ..query.clone() };
        let order = query.order.clone().unwrap_or(Order { column: query.entity.time_column(), descending: true });
        let list = format!("{} {} {}", query.entity, order.column, order.descending);
        // For a list from its top, greatest first, the first row shows whether the order is reliable.
        let tells = query.start == PageStart::First
            && order.descending
            && query.filters.is_empty()
            && query.search.is_none()
            && query.canvas.is_none();
        let cursor = match &query.start {
            PageStart::First | PageStart::Last => None,
            PageStart::After(text) | PageStart::Before(text) => {
                Some(ListCursor::decode(text, &list, sources.len()).ok_or(StoreError::Cursor)?)
            }
        };
        let (mut walks, mut sorted) = (Vec::new(), Vec::new());
        for (i, source) in sources.iter().enumerate() {
            let stored = StoredOrder { store: self, source, column: order.column };
            let hope = if tells { stored.hope().await? } else { None };
            let begun = cursor.as_ref().and_then(|cursor| cursor.sorted.get(i).cloned());
            let sortable = match (begun, &hope) {
                // Keeps the order of the first page despite later writes: otherwise rows would be repeated or skipped.
                (Some(begun), _) => begun,
                (None, Some(_)) => Sortable::AsStored,
                (None, None) => stored.sortable().await?,
            };
            let walk = SourceOrder::new(self.engine(), source, order.column, order.descending, &sortable);
            walks.push(walk.map(|walk| walk.hoping(hope)));
            sorted.push(sortable);
        }
        let few = self.few_canvas_events(query).await?;
        if few.as_ref().is_some_and(FewCanvasEvents::is_empty) {
            return Ok(Page::default());
        }
        let asked = PreparedQuery { query, order: &order, few: few.as_ref(), reading };
        match walks.into_iter().collect::<Option<Vec<_>>>() {
            Some(walks) if cursor.as_ref().is_none_or(|c| c.scanned.is_none()) => {
                match self.walked(asked, &sources, &walks, (list, sorted), cursor).await? {
                    Some(page) => Ok(page),
                    None => Box::pin(self.page_of(query, reading)).await,
                }
            }
            _ => self.scanned(asked, &sources, list, cursor, true).await,
        }
    }

    /// A page in the stored order; `None` if that turns out not to be the canonical one.
    async fn walked(
        &self,
        asked: PreparedQuery<'_>,
        sources: &[&BoundSource],
        walks: &[SourceOrder],
        (list, sorted): (String, Vec<Sortable>),
        cursor: Option<ListCursor>,
    ) -> Result<Option<Page>, StoreError> {
        let PreparedQuery { query, order, .. } = asked;
        let forward = matches!(query.start, PageStart::First | PageStart::After(_));
        let edges = match cursor {
            Some(cursor) => cursor.edges,
            None => vec![if forward { Edge::Begin } else { Edge::End }; sources.len()],
        };
        let mut chunks = Vec::new();
        let mut ahead = asked.reading.ahead();
        for (i, source) in sources.iter().enumerate() {
            let keys = ahead.as_mut().and_then(|ahead| ahead.get_mut(i)).filter(|_| forward);
            let chunk = self.chunk(asked, i, source, &walks[i], &edges[i], forward, keys).await?;
            let stored = StoredOrder { store: self, source, column: order.column };
            if let (Some(hope), Some(probe)) = (walks[i].hope(), stored.probe()) {
                let greatest = match chunk.placed.first().map(|placed| &placed.edge) {
                    Some(Edge::At { key, .. }) => key,
                    _ => &RawKey::Null,
                };
                if !hope.is_borne_out(greatest) {
                    self.sortable.doubt(probe);
                    return Ok(None);
                }
                self.sortable.keep(probe, Sortable::AsStored);
            }
            chunks.push(chunk);
        }
        asked.reading.keep(ahead.unwrap_or_else(|| sources.iter().map(|_| KeysAhead::default()).collect()));
        let cut: Vec<usize> = (0..chunks.len()).filter(|source| chunks[*source].is_cut).collect();
        let mut found = merged(chunks, order, forward);
        // The row after the last one of a cut source is unknown: other sources' rows may come first.
        let end = |source: &usize| Some(found.iter().rposition(|p| p.source == *source)? + 1);
        let known = cut.iter().filter_map(end).min();
        let more = known.is_some() || found.len() > query.limit;
        found.truncate(known.unwrap_or(usize::MAX).min(query.limit));
        // The far edge is after the last row taken from each source; for an untouched source it does not move.
        let mut far = edges.clone();
        let mut near: Vec<Edge> = edges.iter().map(flipped).collect();
        for (i, edge) in far.iter_mut().enumerate() {
            let mut of_source = found.iter().filter(|p| p.source == i);
            if let Some(first) = of_source.next() {
                near[i] = first.edge.clone();
                *edge = of_source.next_back().map_or_else(|| first.edge.clone(), |p| p.edge.clone());
            }
        }
        let encode = |edges| ListCursor { list: list.clone(), edges, sorted: sorted.clone(), scanned: None }.encode();
        let beyond = (!edges.iter().all(|e| *e == if forward { Edge::Begin } else { Edge::End })).then(|| encode(near));
        let onward = more.then(|| encode(far));
        if !forward {
            found.reverse();
        }
        let rows = found.into_iter().map(|p| p.row).collect();
        Ok(Some(if forward {
            Page { rows, next: onward, previous: beyond }
        } else {
            Page { rows, next: beyond, previous: onward }
        }))
    }

    /// Reads up to one row more than the limit from one source, after an edge; fewer if they reach the query's byte
    /// limit.
    #[allow(clippy::too_many_arguments, reason = "a source, and the edge that it continues from")]
    async fn chunk(
        &self,
        asked: PreparedQuery<'_>,
        index: usize,
        source: &BoundSource,
        walk: &SourceOrder,
        edge: &Edge,
        forward: bool,
        ahead: Option<&mut KeysAhead>,
    ) -> Result<Chunk, StoreError> {
        let PreparedQuery { query, order, .. } = asked;
        let engine = self.engine();
        let filters: Vec<Filter> = query.filters.iter().map(|f| spelled_as_stored(engine, source, f)).collect();
        let wanted = wanted_columns(query, order, source);
        let projection = Projection::new(engine, source, wanted.as_deref(), query.preview);
        let key_at = projection.len();
        let selective = !query.filters.is_empty() || query.canvas.is_some() || query.search.is_some();
        let belonging = self.contexts().belonging(source, &filters).await?;
        let (search, belonging) = (query.search.as_ref(), belonging.as_ref());
        let narrowed = NarrowedSource { source, walk, search, filters: &filters, belonging };
        // Rows at known positions are found by these alone; the filters are applied afterwards.
        let placed_only = NarrowedSource { filters: &[], ..narrowed };
        let (mut found, mut held) = (Vec::new(), 0);
        let bytes = query.bytes.unwrap_or(usize::MAX);
        let parts = walk.parts(edge, forward);
        let mut ahead = match (ahead, parts.first()) {
            (Some(ahead), Some(_)) if ahead.is_given() || walk.sorts() => Some(ahead),
            (Some(ahead), Some(part)) if self.sorts_all(&narrowed, *part, edge).await? => Some(ahead),
            _ => None,
        };
        for (number, part) in parts.iter().enumerate() {
            let mut edge = edge.clone();
            let open = query.limit + 1 - found.len();
            let mut batch = if selective { open.min(BATCH) } else { open };
            loop {
                let run = match &mut ahead {
                    Some(ahead) => Some(self.run(&narrowed, ahead, *part, &edge, batch).await?),
                    None => None,
                };
                let conditions = if run.is_some() { &placed_only } else { &narrowed };
                let mut statement = conditions.statement(&projection);
                if let Some((run, _)) = &run {
                    if run.is_empty() {
                        break;
                    }
                    if ahead.as_ref().is_some_and(|ahead| ahead.is_given()) {
                        walk.narrow_to_places(&mut statement, run);
                    } else {
                        walk.narrow_to(&mut statement, *part, run, forward);
                    }
                }
                walk.walk(&mut statement, *part, &edge, forward, batch);
                let (raw, is_broken_off) = self.fetch_within(&statement, bytes).await?;
                let (rows, mut is_broken_off) = (raw.len(), is_broken_off);
                let mut placed: Vec<Placed> = raw
                    .into_iter()
                    .map(|r| place(index, r, key_at..key_at + walk.reads().len(), source, &projection))
                    .collect();
                let part = DerivedPart { columns: wanted.as_deref(), preview: query.preview, bytes };
                if let Some(sizes) = self.complete(source, placed.iter_mut().map(|p| &mut p.row), part).await? {
                    is_broken_off |= sizes.len() < rows;
                    placed.truncate(sizes.len());
                    placed.iter_mut().zip(sizes).for_each(|(placed, size)| placed.size += size);
                }
                let read = placed.len();
                let short = !is_broken_off && run.as_ref().map_or(read < batch, |(_, is_last)| *is_last);
                // Some rows of a run read to its end may have been deleted since.
                let end = run.and_then(|(mut run, _)| run.pop()).filter(|_| !is_broken_off);
                if let Some(last) = end.or_else(|| placed.last().map(|last| last.edge.clone())) {
                    edge = last;
                }
                if wanted.as_ref().is_none_or(|w| w.contains(&"episode_id")) {
                    self.contexts()
                        .fill_episodes(
                            source,
                            placed.iter_mut().map(|p| &mut p.row).collect(),
                            Some(&asked.reading.episodes),
                        )
                        .await?;
                }
                placed.retain(|p| filters.iter().all(|f| f.matches(&p.row)));
                placed.retain(|p| query.search.as_ref().is_none_or(|search| p.indexed || search.hit(&p.row).is_some()));
                self.keep_with_canvas(asked, source, &mut placed).await?;
                held += placed.iter().map(|p| p.size).sum::<usize>();
                found.extend(placed);
                let is_last = short && number + 1 == parts.len();
                if found.len() > query.limit || is_last {
                    found.truncate(query.limit + 1);
                    return Ok(Chunk { placed: found, is_cut: false });
                }
                if held >= bytes {
                    return Ok(Chunk { placed: found, is_cut: true });
                }
                if short {
                    break;
                }
                batch = match (is_broken_off, selective) {
                    (true, _) => read,
                    (false, true) => (batch * 4).min(BATCH),
                    (false, false) => query.limit + 1 - found.len(),
                };
            }
        }
        Ok(Chunk { placed: found, is_cut: false })
    }

    /// Whether the engine sorts all matching rows for each page: it uses an index for the filters, although another
    /// index has the order.
    async fn sorts_all(
        &self,
        narrowed: &NarrowedSource<'_>,
        part: OrderedPart,
        edge: &Edge,
    ) -> Result<bool, StoreError> {
        if narrowed.filters.is_empty() {
            return Ok(false);
        }
        let engine = self.engine();
        let projection = Projection::new(engine, narrowed.source, Some(&[]), None);
        let mut statement = narrowed.statement(&projection);
        narrowed.walk.walk(&mut statement, part, edge, true, BATCH);
        let sort = match engine {
            Engine::Sqlite => "USE TEMP B-TREE FOR ORDER BY",
            Engine::Postgres => "Sort  (",
        };
        let is_sort = |step: &String| step.trim_start_matches([' ', '-', '>']).starts_with(sort);
        Ok(self.steps(&statement).await?.iter().any(is_sort))
    }

    /// The positions of the next `most` rows of a part after an edge, and whether these are its last.
    async fn run(
        &self,
        narrowed: &NarrowedSource<'_>,
        ahead: &mut KeysAhead,
        part: OrderedPart,
        edge: &Edge,
        most: usize,
    ) -> Result<(Vec<Edge>, bool), StoreError> {
        let continues = ahead.continues(part, edge);
        if !continues && ahead.is_given() {
            return Ok((Vec::new(), true));
        }
        if !continues {
            let engine = self.engine();
            let projection = Projection::new(engine, narrowed.source, Some(&[]), None);
            let mut statement = narrowed.statement(&projection);
            narrowed.walk.walk(&mut statement, part, edge, true, KeysAhead::MOST);
            let (rows, is_broken_off) = self.fetch_within(&statement, KeysAhead::BYTES).await?;
            let at = projection.len()..projection.len() + narrowed.walk.reads().len();
            let is_whole = rows.len() < KeysAhead::MOST && !is_broken_off;
            *ahead = KeysAhead::new(part, edge.clone(), rows.iter().map(|raw| edge_of(raw, at.clone())), is_whole);
        }
        Ok(ahead.run(most))
    }

    /// Keeps the episodes that have such a canvas event.
    async fn keep_with_canvas(
        &self,
        asked: PreparedQuery<'_>,
        source: &BoundSource,
        placed: &mut Vec<Placed>,
    ) -> Result<(), StoreError> {
        let Some(wanted) = asked.query.canvas.as_ref().filter(|_| !placed.is_empty()) else { return Ok(()) };
        if let Some(few) = asked.few {
            placed.retain(|p| few.hang_on(&p.row, &source.links));
            return Ok(());
        }
        let episodes: Vec<&Row> = placed.iter().map(|p| &p.row).collect();
        let columns = ["id", "episode_id", "canvas_type", "action", "created_at"];
        let events = self.linked_columns(&episodes, &source.links, Entity::CanvasEvent, Some(&columns)).await?;
        let mut keep =
            events.iter().map(|of_one| of_one.iter().any(|e| wanted.fits(e))).collect::<Vec<_>>().into_iter();
        placed.retain(|_| keep.next().unwrap_or(false));
        Ok(())
    }

    /// The canvas events that match a query's canvas filter, if they are few: then they are held, and the events of
    /// each episode need not be read. `None` if there are many, or no such filter.
    async fn few_canvas_events(&self, query: &Query) -> Result<Option<FewCanvasEvents>, StoreError> {
        let Some(wanted) = query.canvas.as_ref().filter(|_| query.entity == Entity::Episode) else { return Ok(None) };
        let equal = |column, value: &String| Filter::new(column, Operator::Equal, Operand::Text(value.clone()));
        let mut filters = vec![equal("canvas_type", &wanted.canvas_type)];
        filters.extend(wanted.action.as_ref().map(|action| equal("action", action)));
        let columns = ["id", "episode_id", "canvas_type", "action"];
        let mut few = FewCanvasEvents::default();
        for source in self.sources_of(Entity::CanvasEvent)? {
            let projection = Projection::new(self.engine(), source, Some(&columns), None);
            let mut statement = projection.select(source, &[]);
            for filter in &filters {
                narrow(source, filter, &mut statement);
            }
            self.scan(&statement, |mut raw| {
                let row = codec::decode(source, &projection, &mut raw);
                if wanted.fits(&row) {
                    few.take(&row);
                }
                if few.ids.len() > FEW { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .await?;
            if few.ids.len() > FEW {
                return Ok(None);
            }
        }
        Ok(Some(few))
    }

    /// A page in an order that only canonical values have: reads every row and keeps the page's rows. If each row has a
    /// unique position (`brief`), only the ordering columns are read first.
    async fn scanned(
        &self,
        asked: PreparedQuery<'_>,
        sources: &[&BoundSource],
        list: String,
        cursor: Option<ListCursor>,
        brief: bool,
    ) -> Result<Page, StoreError> {
        let PreparedQuery { query, order, .. } = asked;
        let forward = matches!(query.start, PageStart::First | PageStart::After(_));
        let after = cursor.as_ref().and_then(|c| c.scanned.clone());
        let mut heap: BinaryHeap<ScannedRow> = BinaryHeap::new();
        let (mut held, mut is_cut, bytes) = (0, false, query.bytes.unwrap_or(usize::MAX));
        // The first row left out: rows after it are not on the page.
        let mut bound: Option<ScannedRow> = None;
        let mut seen = 0_usize;
        for (index, source) in sources.iter().enumerate() {
            let mut twins = after.as_ref().map(|after| Twins::of(after, index));
            let walk = id_walk(self.engine(), source)?;
            let columns = if brief { Some(vec![id_column(query.entity)]) } else { query.columns.clone() };
            let all = Query { start: PageStart::First, columns, ..query.clone() }.in_parts();
            let mut edge = Edge::Begin;
            loop {
                let part = PreparedQuery { query: &all, ..asked };
                let Chunk { placed, is_cut: is_part } =
                    self.chunk(part, index, source, &walk, &edge, true, None).await?;
                let Some(last) = placed.last() else { break };
                let before = std::iter::once(&edge).chain(placed.iter().map(|placed| &placed.edge));
                if brief && before.zip(&placed).any(|(before, placed)| *before == placed.edge) {
                    return Box::pin(self.scanned(asked, sources, list, cursor, false)).await;
                }
                edge = last.edge.clone();
                let ended = placed.len() <= all.limit && !is_part;
                for Placed { row, size, edge, source, .. } in placed {
                    seen += 1;
                    let ranked = ScannedRow { order: order.clone(), forward, size, row, source, edge, seen };
                    if twins.as_mut().is_some_and(|twins| !ranked.lies_beyond(twins)) {
                        continue;
                    }
                    if bound.as_ref().is_some_and(|bound| ranked > *bound) {
                        continue;
                    }
                    held += size;
                    heap.push(ranked);
                    while heap.len() > query.limit + 1 || (heap.len() > 1 && held > bytes) {
                        is_cut |= heap.len() <= query.limit + 1;
                        bound = heap.pop();
                        held -= bound.as_ref().map_or(0, |gone| gone.size);
                    }
                }
                if ended {
                    break;
                }
            }
        }
        let mut places = heap.into_sorted_vec();
        let all = places.len();
        places.truncate(query.limit);
        let mut rows = if brief { Some(self.whole(asked, sources, &mut places).await?) } else { None };
        let more = is_cut || places.len() < all;
        if !forward {
            places.reverse();
            rows.iter_mut().for_each(|rows| rows.reverse());
        }
        let cursor_at = |row: Option<&ScannedRow>| {
            let scanned = row.map(|ScannedRow { row, source, edge, .. }| ScannedEdge {
                key: row.get(order.column).clone(),
                id: identity(row),
                source: *source,
                edge: edge.clone(),
            });
            ListCursor { list: list.clone(), edges: Vec::new(), sorted: Vec::new(), scanned }.encode()
        };
        let (ahead, behind) = if forward { (more, after.is_some()) } else { (after.is_some(), more) };
        let next = (ahead && !places.is_empty()).then(|| cursor_at(places.last()));
        let previous = (behind && !places.is_empty()).then(|| cursor_at(places.first()));
        let rows = rows.unwrap_or_else(|| places.into_iter().map(|place| place.row).collect());
        Ok(Page { rows, next, previous })
    }

    /// Reads the rows at some positions, in order, without those deleted since. Stops when they reach the query's byte
    /// limit.
    async fn whole(
        &self,
        asked: PreparedQuery<'_>,
        sources: &[&BoundSource],
        places: &mut Vec<ScannedRow>,
    ) -> Result<Vec<Row>, StoreError> {
        /// Rows per read.
        const RUN: usize = 256;
        let bytes = asked.query.bytes.unwrap_or(usize::MAX);
        let (mut rows, mut held, mut read, mut run) = (Vec::new(), 0, 0, RUN);
        while read < places.len() && (held < bytes || read == 0) {
            let wanted = &places[read..(read + run).min(places.len())];
            let (mut found, is_cut) = self.placed(asked, sources, wanted).await?;
            if is_cut && run > 1 {
                // Their order, not the order of reading, decides which of them fit.
                run = 1;
                continue;
            }
            read += wanted.len();
            for place in wanted {
                if let Some(placed) = found.remove(&place.seen) {
                    held += placed.size;
                    rows.push(placed.row);
                }
            }
        }
        places.truncate(read);
        Ok(rows)
    }

    /// The rows at some positions, by the number of the position, and whether some did not fit.
    async fn placed(
        &self,
        asked: PreparedQuery<'_>,
        sources: &[&BoundSource],
        places: &[ScannedRow],
    ) -> Result<(HashMap<usize, Placed>, bool), StoreError> {
        let (mut found, mut is_cut) = (HashMap::new(), false);
        let query = Query { start: PageStart::First, limit: places.len(), ..asked.query.clone() };
        for (index, source) in sources.iter().enumerate() {
            let walk = id_walk(self.engine(), source)?;
            for part in walk.parts(&Edge::Begin, true) {
                let of_part = |place: &&ScannedRow| {
                    place.source == index && is_unkeyed(&place.edge) == (part == OrderedPart::Unkeyed)
                };
                let mut of_part: Vec<&ScannedRow> = places.iter().filter(of_part).collect();
                of_part.sort_unstable_by_key(|place| place.seen);
                if of_part.is_empty() {
                    continue;
                }
                let mut keys = KeysAhead::given(part, of_part.iter().map(|place| place.edge.clone()));
                let asked = PreparedQuery { query: &query, ..asked };
                let chunk = self.chunk(asked, index, source, &walk, &Edge::Begin, true, Some(&mut keys)).await?;
                is_cut |= chunk.is_cut;
                for placed in chunk.placed {
                    if let Some(place) = of_part.iter().find(|place| place.edge == placed.edge) {
                        found.insert(place.seen, placed);
                    }
                }
            }
        }
        Ok((found, is_cut))
    }

    /// All rows of an entity whose column is one of the values, in order of time and id.
    ///
    /// # Errors
    /// The engine's refusal. For an entity that the database does not hold, the result is empty.
    pub async fn related(
        &self,
        entity: Entity,
        column: &str,
        values: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Row>, StoreError> {
        self.related_columns(entity, column, values, None).await
    }

    /// As [`Store::related`], with some columns only: `wanted` must include the compared column, the id and the time.
    ///
    /// # Errors
    /// As [`Store::related`].
    pub async fn related_columns(
        &self,
        entity: Entity,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        wanted: Option<&[&str]>,
    ) -> Result<Vec<Row>, StoreError> {
        self.related_among(entity, column, values, &[], wanted).await
    }

    /// As [`Store::related_columns`], if the filters match all of these rows: a server with tables distributed by owner
    /// gets the owner condition.
    ///
    /// # Errors
    /// As [`Store::related`].
    pub async fn related_among(
        &self,
        entity: Entity,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        filters: &[Filter],
        wanted: Option<&[&str]>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        if values.is_empty() {
            return Ok(rows);
        }
        let Ok(sources) = self.sources_of(entity) else { return Ok(rows) };
        for source in sources.into_iter().filter(|s| !s.column(column).is_empty()) {
            for values in values.chunks(IN_LIST) {
                rows.extend(self.related_in(source, column, values, filters, wanted).await?);
            }
        }
        let order = Order { column: entity.time_column(), descending: false };
        rows.sort_by(|a, b| compare(&order, a, b));
        Ok(rows)
    }

    /// As [`Store::related`], for one source, unordered.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn related_in(
        &self,
        source: &BoundSource,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        filters: &[Filter],
        wanted_columns: Option<&[&str]>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let take = |row, _| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        self.each_related_in(source, column, values, filters, wanted_columns, take).await?;
        let part = DerivedPart { columns: wanted_columns, preview: None, bytes: usize::MAX };
        self.complete(source, rows.iter_mut(), part).await?;
        Ok(rows)
    }

    /// Passes each row of a source whose column is one of the values to `each`, with its stored size in bytes,
    /// unordered, until it breaks.
    pub(super) async fn each_related_in(
        &self,
        source: &BoundSource,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        filters: &[Filter],
        wanted_columns: Option<&[&str]>,
        mut each: impl FnMut(Row, usize) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let values: Vec<String> =
            values.iter().map(|v| as_stored(self.engine(), source, column, v.as_ref()).into_owned()).collect();
        let projection = Projection::new(self.engine(), source, wanted_columns, None);
        let mut statement = projection.select(source, &[]);
        narrow_any(source, column, &values, &mut statement);
        narrow_server(source, filters, &mut statement);
        let values: HashSet<&str> = values.iter().map(String::as_str).collect();
        let wanted = |row: &Row| match row.get(column) {
            Value::String(text) => values.contains(text.as_str()),
            Value::Array(items) => items.iter().filter_map(Value::as_str).any(|item| values.contains(item)),
            _ => false,
        };
        self.scan(&statement, |mut raw| {
            let size = row_size(&raw);
            let row = codec::decode(source, &projection, &mut raw);
            if wanted(&row) { each(row, size) } else { ControlFlow::Continue(()) }
        })
        .await
    }

    /// Passes these columns of each row of an entity whose column is one of some values to `each`, with the stored size
    /// in bytes, unordered, until it breaks. Derived rows are not completed.
    ///
    /// # Errors
    /// As [`Store::related`].
    pub async fn each_related(
        &self,
        entity: Entity,
        column: &str,
        values: &[impl AsRef<str> + Sync],
        wanted: &[&str],
        mut each: impl FnMut(Row, usize) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let Ok(sources) = self.sources_of(entity) else { return Ok(()) };
        let mut flow = ControlFlow::Continue(());
        for source in sources.into_iter().filter(|s| !s.column(column).is_empty()) {
            for values in values.chunks(IN_LIST) {
                let take = |row, size| {
                    flow = each(row, size);
                    flow
                };
                self.each_related_in(source, column, values, &[], Some(wanted), take).await?;
                if flow.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads one row by its id. If several have it, returns the first and notes that; with several schemas, the
    /// earliest in the search path. If none has it, the part before a colon may be the table's name.
    ///
    /// # Errors
    /// An entity that the database does not hold, or the engine's refusal.
    pub async fn row(&self, entity: Entity, id: &str) -> Result<Option<Row>, StoreError> {
        let column = if entity == Entity::MemoryLink { "episode_id" } else { "id" };
        let mut found = Vec::new();
        for source in self.sources_of(entity)?.into_iter().filter(|s| !s.column(column).is_empty()) {
            let rows = self.related_in(source, column, &[id], &[], None).await?;
            found.extend(rows.into_iter().map(|row| (source, row)));
        }
        if let Some((source, id)) = self.in_table(entity, id).filter(|_| found.is_empty() && column == "id") {
            let rows = self.related_in(source, column, &[id], &[], None).await?;
            found.extend(rows.into_iter().map(|row| (source, row)));
        }
        let order = Order { column: entity.time_column(), descending: false };
        found.sort_by(|(a, row), (b, other)| {
            self.is_hidden(a).cmp(&self.is_hidden(b)).then_with(|| compare(&order, row, other))
        });
        let tables: Vec<&str> = found.iter().map(|(source, _)| &*source.label).collect();
        let alike = tables.len();
        let mut rows: Vec<Row> = found.into_iter().map(|(_, row)| row).take(1).collect();
        if let Some(row) = rows.first_mut().filter(|_| alike > 1 && column == "id") {
            let names = told_apart(&tables, row.id());
            let problem = format!("{alike} rows have this id, and this is one of them: {names}");
            row.problems.push(Problem { column: "id".to_owned(), problem, raw: row.id().to_owned() });
        }
        self.contexts().fill_all_episodes(entity, &mut rows).await?;
        Ok(rows.pop())
    }

    /// The message that no row has an id.
    pub fn none_found(&self, entity: Entity, id: &str) -> String {
        let bytes = if id.contains('\u{fffd}') { " (an id with bytes that are no text cannot be named)" } else { "" };
        format!("there is no {} `{id}` in {}{bytes}", entity.title(), self.location())
    }

    /// Whether programs must name the schema of a source's table to find it.
    fn is_hidden(&self, source: &BoundSource) -> bool {
        self.catalog.tables.iter().any(|t| !t.visible && (&t.schema, &t.name) == (&source.table.0, &source.table.1))
    }

    /// Completes episodes from their event logs, up to the byte limit of a part. Returns the size of each. `None` if
    /// the source or the wanted columns need no logs, so all are complete.
    pub(super) async fn complete<'r>(
        &self,
        source: &BoundSource,
        rows: impl Iterator<Item = &'r mut Row>,
        part: DerivedPart<'_>,
    ) -> Result<Option<Vec<usize>>, StoreError> {
        let needed = part.columns.is_none_or(|w| w.iter().any(|c| source.derives(c)));
        if source.derive != Some(Derivation::WorkflowEvents) || !needed {
            return Ok(None);
        }
        Ok(Some(Box::pin(self.contexts().derive_from_events(rows.collect(), part)).await?))
    }

    /// The rows of `to` that belong to each episode: by list, by back-link, by a path in JSON; each once, in time
    /// order.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn linked(
        &self,
        episodes: &[&Row],
        links: &[EpisodeLink],
        to: Entity,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        self.linked_columns(episodes, links, to, None).await
    }

    /// As [`Store::linked`], with some columns only: `wanted` must include the id, the episode and the time, and for
    /// feedback the source.
    ///
    /// # Errors
    /// As [`Store::linked`].
    pub async fn linked_columns(
        &self,
        episodes: &[&Row],
        links: &[EpisodeLink],
        to: Entity,
        wanted: Option<&[&str]>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let named: Vec<Vec<Cow<'_, str>>> = episodes.iter().map(|e| named_ids(e, links, to)).collect();
        let mut all: Vec<&str> = named.iter().flatten().map(|id| &**id).collect();
        all.sort_unstable();
        all.dedup();
        let mut rows = self.related_columns(to, "id", &all, wanted).await?;
        let has_back = links.iter().any(|l| l.to == to && l.by == LinkBy::Back);
        if has_back {
            let ids: Vec<&str> = episodes.iter().map(|e| e.id()).collect();
            let backs = self.related_columns(to, "episode_id", &ids, wanted).await?;
            let known: HashSet<(&str, Option<&str>)> = rows.iter().map(|row| (row.id(), row.text("source"))).collect();
            let more: Vec<Row> =
                backs.into_iter().filter(|row| !known.contains(&(row.id(), row.text("source")))).collect();
            rows.extend(more);
        }
        let order = Order { column: to.time_column(), descending: false };
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut pointing: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            by_id.entry(row.id()).or_default().push(at);
            if has_back {
                pointing.entry(row.text("episode_id").unwrap_or_default()).or_default().push(at);
            }
        }
        let places = episodes.iter().zip(&named).map(|(episode, named)| {
            let listed = named.iter().filter_map(|id| by_id.get(&**id)).flatten();
            let back = pointing.get(episode.id()).into_iter().flatten();
            let mut taken = HashSet::new();
            let is_new = |at: &usize| taken.insert((rows[*at].id(), rows[*at].text("source")));
            let mut places: Vec<usize> = listed.chain(back).copied().filter(is_new).collect();
            places.sort_by(|a, b| compare(&order, &rows[*a], &rows[*b]));
            places
        });
        let places: Vec<Vec<usize>> = places.collect();
        Ok(handed_out(rows, &places))
    }
}

/// Distributes rows to lists by index: each is moved to the last list that names it, and copied to the others.
fn handed_out(rows: Vec<Row>, lists: &[Vec<usize>]) -> Vec<Vec<Row>> {
    let mut uses = vec![0_usize; rows.len()];
    lists.iter().flatten().for_each(|at| uses[*at] += 1);
    let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
    let mut hand = |at: &usize| {
        uses[*at] -= 1;
        if uses[*at] == 0 { rows[*at].take() } else { rows[*at].clone() }
    };
    lists.iter().map(|list| list.iter().filter_map(&mut hand).collect()).collect()
}

/// A filter with its value in the source's spelling.
fn spelled_as_stored(engine: Engine, source: &BoundSource, filter: &Filter) -> Filter {
    let value = match (&filter.value, filter.op) {
        (Operand::Text(text), Operator::Equal | Operator::NotEqual | Operator::Has) => {
            Operand::Text(as_stored(engine, source, filter.column, text).into_owned())
        }
        (value, _) => value.clone(),
    };
    let or = filter.or.iter().map(|filter| spelled_as_stored(engine, source, filter)).collect();
    Filter { column: filter.column, op: filter.op, value, or }
}

/// The ids in an episode's lists and JSON paths, in order, without repeats.
pub fn named_ids<'e>(episode: &'e Row, links: &[EpisodeLink], to: Entity) -> Vec<Cow<'e, str>> {
    let mut ids: Vec<Cow<'_, str>> = Vec::new();
    for link in links.iter().filter(|l| l.to == to) {
        match &link.by {
            LinkBy::List(column) => ids.extend(episode.list(column).into_iter().map(Cow::Borrowed)),
            LinkBy::Path(column, path) => {
                let found = episode.within(column, path).unwrap_or_default();
                ids.extend(crate::memory::json::list_from(found).items.into_iter().map(Cow::Owned));
            }
            LinkBy::Back => {}
        }
    }
    // A list may have a million ids: sorting indexes needs less memory than a set.
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by(|a, b| ids[*a].cmp(&ids[*b]));
    let mut again = vec![false; ids.len()];
    for pair in order.windows(2).filter(|pair| ids[pair[0]] == ids[pair[1]]) {
        again[pair[1]] = true;
    }
    let mut again = again.into_iter();
    ids.retain(|_| !again.next().unwrap_or_default());
    ids
}

/// The beginning of a statement that reads a source. Search words narrow it; with a full-text index, the last column
/// says whether that found the row.
fn begun(
    projection: &Projection,
    source: &BoundSource,
    walk: &SourceOrder,
    search: Option<&Search>,
) -> SelectStatement {
    let Some(search) = search else { return projection.select(source, &walk.reads()) };
    let mut bound = SelectStatement::new(projection.engine, String::new());
    let indexed = index_condition(source, search, &mut bound);
    let reads: Vec<String> = walk.reads().into_iter().chain(indexed.iter().map(|i| truth(i))).collect();
    let mut statement = SelectStatement { params: bound.params, ..projection.select(source, &reads) };
    narrow_search(source, search, indexed.as_deref(), &mut statement);
    statement
}

fn place(index: usize, mut raw: RawRow, at: Range<usize>, source: &BoundSource, projection: &Projection) -> Placed {
    let size = read_size(&raw);
    let row = codec::decode(source, projection, &mut raw);
    let indexed = matches!(raw.get(at.end), Some(FetchedValue::Integer(1)));
    Placed { row, source: index, size, edge: edge_of(&raw, at), indexed }
}

/// The edge of a row whose key and id are read at these columns.
fn edge_of(raw: &RawRow, Range { start, end }: Range<usize>) -> Edge {
    let at = |i: usize| raw.get(i).map_or(RawKey::Null, RawKey::of);
    Edge::At { key: at(start), id: (start + 1..end).map(at).collect(), inclusive: false }
}

/// A condition as a readable number.
fn truth(condition: &str) -> String {
    format!("CASE WHEN {condition} THEN 1 ELSE 0 END")
}

/// Merges the rows of several sources. Within a source the database's order is kept: paging continues from its edges,
/// and it may be more exact than the canonical text, as for numeric ids.
fn merged(chunks: Vec<Chunk>, order: &Order, forward: bool) -> Vec<Placed> {
    let mut merged = Vec::with_capacity(chunks.iter().map(|chunk| chunk.placed.len()).sum());
    let mut queues: Vec<_> = chunks.into_iter().map(|chunk| chunk.placed.into_iter().peekable()).collect();
    loop {
        let mut first: Option<(usize, &Row)> = None;
        for (i, queue) in queues.iter_mut().enumerate() {
            let Some(Placed { row, .. }) = queue.peek() else { continue };
            let sooner = first.is_none_or(|(_, best)| {
                let natural = compare(order, row, best);
                if forward { natural.is_lt() } else { natural.is_gt() }
            });
            if sooner {
                first = Some((i, row));
            }
        }
        let Some((i, _)) = first else { return merged };
        merged.extend(queues[i].next());
    }
}

/// The same position in the other direction: the excluded row is included.
fn flipped(edge: &Edge) -> Edge {
    match edge {
        Edge::At { key, id, inclusive } => Edge::At { key: key.clone(), id: id.clone(), inclusive: !inclusive },
        other => other.clone(),
    }
}

/// Lists the columns to read for a query: its own, the id, and those needed by filters, order and links; `None` means
/// all.
fn wanted_columns<'q>(query: &'q Query, order: &Order, source: &BoundSource) -> Option<Vec<&'q str>> {
    let mut wanted: Vec<&str> = query.columns.as_ref()?.clone();
    wanted.push("id");
    wanted.push(order.column);
    wanted.extend(query.filters.iter().flat_map(Filter::columns));
    if query.search.is_some() {
        wanted.extend(search::columns(query.entity));
    }
    if let Some(derive) = source.derive.filter(|_| wanted.iter().any(|c| source.derives(c))) {
        wanted.extend(derive.reads());
    }
    if query.canvas.is_some() {
        wanted.extend(["canvas_ids", "metadata"]);
    }
    Some(wanted)
}

/// The column that orders rows with equal keys.
pub(super) fn id_column(entity: Entity) -> &'static str {
    if entity == Entity::MemoryLink { "memory_id" } else { "id" }
}

/// Order of a source's rows by their identifying columns.
fn id_walk(engine: Engine, source: &BoundSource) -> Result<SourceOrder, StoreError> {
    let walk = SourceOrder::new(engine, source, id_column(source.entity), false, &Sortable::AsStored);
    walk.ok_or_else(|| StoreError::Unordered(source.label.clone()))
}

fn is_unkeyed(edge: &Edge) -> bool {
    matches!(edge, Edge::At { key: RawKey::Null, .. })
}

fn identity(row: &Row) -> String {
    row.text(id_column(row.entity)).unwrap_or_default().to_owned()
}

/// Order of two rows: absent keys last, ties by id in the same direction.
pub(super) fn compare(order: &Order, a: &Row, b: &Row) -> Ordering {
    compare_keys(order, a.get(order.column), &identity(a), b.get(order.column), &identity(b))
}

fn compare_keys(order: &Order, a: &Value, a_id: &str, b: &Value, b_id: &str) -> Ordering {
    let turned = |o: Ordering| if order.descending { o.reverse() } else { o };
    match (a.is_null(), b.is_null()) {
        (false, true) => Ordering::Less,
        (true, false) => Ordering::Greater,
        (true, true) => turned(a_id.cmp(b_id)),
        (false, false) => turned(compare_values(a, b)).then_with(|| turned(a_id.cmp(b_id))),
    }
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

/// A row in a scanned order; the greatest is the first to leave the page.
struct ScannedRow {
    order: Order,
    forward: bool,
    /// Size of its stored values, in bytes.
    size: usize,
    row: Row,
    source: usize,
    edge: Edge,
    /// Number of rows read before it: rows with the same key and id stay in that order.
    seen: usize,
}

/// The row after which a page begins, among the rows of its source with the same key and id.
struct Twins<'c> {
    last: &'c ScannedEdge,
    /// The side of it on which such a row is.
    side: Ordering,
}

impl<'c> Twins<'c> {
    fn of(last: &'c ScannedEdge, source: usize) -> Self {
        Twins { last, side: if source > last.source { Ordering::Greater } else { Ordering::Less } }
    }

    /// The side of a row with the same key and id; rows must be given in order.
    fn side_of(&mut self, row: &ScannedRow) -> Ordering {
        if row.source == self.last.source && row.edge == self.last.edge {
            self.side = Ordering::Greater;
            return Ordering::Equal;
        }
        self.side
    }
}

impl ScannedRow {
    fn lies_beyond(&self, twins: &mut Twins<'_>) -> bool {
        let ScannedEdge { key, id, .. } = twins.last;
        let natural = compare_keys(&self.order, self.row.get(self.order.column), &identity(&self.row), key, id)
            .then_with(|| twins.side_of(self));
        natural == if self.forward { Ordering::Greater } else { Ordering::Less }
    }
}

impl Ord for ScannedRow {
    fn cmp(&self, other: &Self) -> Ordering {
        let natural = compare(&self.order, &self.row, &other.row).then_with(|| self.seen.cmp(&other.seen));
        if self.forward { natural } else { natural.reverse() }
    }
}

impl PartialOrd for ScannedRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ScannedRow {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ScannedRow {}
