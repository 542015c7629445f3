//! An episode with everything that depends on it, its chain, and their problems.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::hanging::{HangingRows, LinkFacts, RowCollector, key_room};
use super::page::named_ids;
use super::{ContextReader, StoreError};
use crate::layout::{EpisodeLink, LinkBy};
use crate::memory::agreeing;
use crate::memory::chain::{Chain, ChainWalk};
use crate::memory::findings::rests_on;
use crate::memory::first_of::FirstOf;
use crate::memory::packed::pages::PageStore;
use crate::memory::query::{EpisodeContext, PART, ShownFinding};
use crate::memory::{Entity, Row, score};

/// Most ids that a finding names.
const IDS: usize = 100;

/// Findings about feedback of an episode's executions.
const NOT_LINKED: [&str; 2] = ["feedback_newer", "not_linked"];

/// Most links of a chain followed upwards; longer chains are cut and say so.
const CHAIN_LIMIT: usize = 10_000;

/// Ids per query.
const AT_ONCE: usize = 2_000;

/// Columns that name and date another episode of a chain, and its owner; a derived title or date also needs the status.
const NAMING: &[&str] = &[
    "id", "agent_id", "parent_id", "title", "summary", "observation", "topic", "status", "outcome", "started_at",
    "ended_at",
];

/// Characters of a text that stand for a missing title.
const NAME: usize = 200;

/// Rows of each kind that the console shows of an episode.
const FIRST: usize = 200;

/// Most generations below an episode's children that are read with its chain.
const DEPTH: usize = 16;

/// Columns that lead from an episode to others of its chain, and that findings use.
const LINKING: &[&str] = &["id", "agent_id", "parent_id", "started_at"];

/// Columns of a chain's other episodes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relatives {
    /// Ids only; of the parent, the columns that findings use.
    Ids,
    /// Names and dates; of long texts, the beginning.
    Named,
}

/// The chain of an episode.
#[derive(Debug)]
pub struct EpisodeChain {
    /// The ids.
    pub chain: Chain,
    /// Other episodes of it, by id, as far as they were read.
    pub relatives: BTreeMap<String, Row>,
    /// The children, in the order in which their rows are read.
    pub children: HangingRows,
    /// Not all episodes further below were read.
    pub is_cut: bool,
}

/// An episode with everything that depends on it; rows of large parts are read on demand.
#[derive(Debug)]
pub struct EpisodeOutline {
    /// The episode.
    pub episode: Row,
    /// Segments, in order.
    pub segments: HangingRows,
    /// Canvas events from lists, back-links and metadata, in time order.
    pub canvas: HangingRows,
    /// Feedback from lists and back-links, in time order.
    pub feedback: HangingRows,
    /// The chain it is in.
    pub chain: EpisodeChain,
    /// Signals in time order.
    pub utility: HangingRows,
    /// Links to memories, in order of rank.
    pub links: HangingRows,
    /// Workflow events of its runs in order.
    pub events: HangingRows,
    /// Accesses that recalled the episode.
    pub accesses: HangingRows,
    /// Findings about empty parts, dangling references and contradictions.
    pub findings: Vec<ShownFinding>,
}

/// Context that every recall shows next to an episode; rows of large parts are read on demand.
#[derive(Debug)]
pub struct RecalledContext {
    /// Canvas events, in time order.
    pub canvas: HangingRows,
    /// Feedback, in time order.
    pub feedback: HangingRows,
    /// Findings about empty parts, dangling references and contradictions.
    pub findings: Vec<ShownFinding>,
}

impl ContextReader<'_> {
    /// Reads an episode with its context, limited to the first rows of each kind. `None` if there is no such episode.
    ///
    /// # Errors
    /// The engine's refusal, or a database without episodes.
    pub async fn episode(self, id: &str) -> Result<Option<EpisodeContext>, StoreError> {
        let Some(outline) = self.outline(id, Relatives::Named).await? else { return Ok(None) };
        let EpisodeOutline { episode, chain, findings, .. } = outline;
        let mut more = BTreeMap::new();
        let mut parts = Vec::new();
        for part in [
            outline.segments, outline.canvas, outline.feedback, outline.utility, outline.links, outline.events,
            outline.accesses,
        ] {
            let entity = part.entity();
            let (rows, others) = self.parts(part).first(FIRST).await?;
            more.extend((others > 0).then_some((entity, others)));
            parts.push(rows);
        }
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let (segments, canvas, feedback, utility) = (next(), next(), next(), next());
        let (mut links, events, accesses) = (next(), next(), next());
        let memories = self.first_memories(&mut links, &mut more).await?;
        let EpisodeChain { chain, relatives, is_cut, .. } = chain;
        Ok(Some(EpisodeContext {
            episode,
            segments,
            canvas,
            feedback,
            chain,
            relatives,
            is_cut,
            utility,
            links,
            memories,
            events,
            accesses,
            more,
            findings,
        }))
    }

    /// The memories that links name. If they are long, the links are cut to the memories that were read.
    async fn first_memories(
        self,
        links: &mut Vec<Row>,
        more: &mut BTreeMap<Entity, usize>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut memories = LinkedMemories::new(self);
        let (mut read, mut rows) = (0, Vec::new());
        while read < links.len() && memories.bytes < PART {
            let (count, found) = memories.of(&links[read..]).await?;
            read += count;
            rows.extend(found);
        }
        if read < links.len() {
            *more.entry(Entity::MemoryLink).or_default() += links.len() - read;
            links.truncate(read);
        }
        Ok(rows)
    }

    /// Reads an episode with the order of the rows that depend on it; `None` if there is no such episode.
    ///
    /// # Errors
    /// The engine's refusal, or a database without episodes.
    pub async fn outline(self, id: &str, relatives: Relatives) -> Result<Option<EpisodeOutline>, StoreError> {
        let Some(episode) = self.store.row(Entity::Episode, id).await? else { return Ok(None) };
        let id = &*episode.id().to_owned();
        let of_it = [id];
        let (links, room) = (self.episode_links(), key_room());
        let by = |column: &'static str| move |row: &Row| (0, row.get(column).as_i64());
        let (by_sequence, by_rank, by_time) = (by("sequence"), by("rank"), by(""));
        // These reads are independent: they overlap if the store has more than one connection.
        let (canvas, feedback, segments, links_found, chain, utility, events, accesses) = tokio::try_join!(
            self.linked_to(&episode, &links, Entity::CanvasEvent, &room),
            self.linked_to(&episode, &links, Entity::Feedback, &room),
            self.hanging_in_order(Entity::Segment, "episode_id", &of_it, &by_sequence, &room),
            self.hanging_in_order(Entity::MemoryLink, "episode_id", &of_it, &by_rank, &room),
            self.chain_of(&episode, relatives, &room),
            self.hanging_in_order(Entity::UtilityEvent, "episode_id", &of_it, &by_time, &room),
            self.events_of(&episode, &room),
            self.hanging_in_order(Entity::Access, "ids", &of_it, &by_time, &room),
        )?;
        let mut findings = self.findings(&episode, &canvas, &feedback, &links).await?;
        chain_findings(&episode, &chain.chain, &chain.relatives, &mut findings);
        findings.extend(self.missing_memories(&links_found).await?);
        let feedback = self.with_belonging(&episode, &links, feedback, &mut findings).await?;
        self.leave_out_unseen(&mut findings);
        Ok(Some(EpisodeOutline {
            episode,
            segments,
            canvas,
            feedback,
            chain,
            utility,
            links: links_found,
            events,
            accesses,
            findings,
        }))
    }

    /// Reads the context that every recall shows next to episodes: canvas and feedback, and why some of it is empty. As
    /// in lists, feedback without a stored link to its episode is included; the findings are about stored links.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn recalled(self, episodes: &[&Row]) -> Result<Vec<RecalledContext>, StoreError> {
        let (links, room) = (self.episode_links(), key_room());
        let (canvas, feedback) = tokio::try_join!(
            self.linked_to_each(episodes, &links, Entity::CanvasEvent, None, &room),
            self.linked_to_each(episodes, &links, Entity::Feedback, None, &room),
        )?;
        let mut contexts = Vec::with_capacity(episodes.len());
        for ((episode, canvas), feedback) in episodes.iter().zip(canvas).zip(feedback) {
            let mut findings = self.findings(episode, &canvas, &feedback, &links).await?;
            let feedback = self.with_belonging(episode, &links, feedback, &mut findings).await?;
            self.leave_out_unseen(&mut findings);
            contexts.push(RecalledContext { canvas, feedback, findings });
        }
        Ok(contexts)
    }

    /// The feedback of an episode, including feedback that belongs to it without a stored link.
    async fn with_belonging(
        self,
        episode: &Row,
        links: &[EpisodeLink],
        mut feedback: HangingRows,
        findings: &mut Vec<ShownFinding>,
    ) -> Result<HangingRows, StoreError> {
        let mut more: HashSet<(u16, String)> =
            self.by_execution_of(episode, Entity::Feedback).await?.into_iter().collect();
        if !more.is_empty() {
            feedback.ids().for_each(|(id, source)| {
                more.remove(&(source, id.into_owned()));
            });
        }
        if !more.is_empty() {
            say_by_execution(findings, more.iter().map(|(_, id)| id.as_str()).collect());
            let room = key_room();
            let mut rows = RowCollector::new(Entity::Feedback, episode.id(), &|_| (0, None), &room);
            if !rows.resume(feedback) {
                self.collect_linked(&mut rows, episode, links).await?;
            }
            self.collect_ids(&mut rows, &more.into_iter().collect::<Vec<_>>()).await?;
            feedback = rows.finish()?;
        }
        self.fill_all_episodes(Entity::Feedback, feedback.held()).await?;
        Ok(feedback)
    }

    /// Reads the chain of an episode; `None` if there is no such episode.
    ///
    /// # Errors
    /// The engine's refusal, or a database without episodes.
    pub async fn chain(self, id: &str, relatives: Relatives) -> Result<Option<EpisodeChain>, StoreError> {
        self.store.sources_of(Entity::Episode)?;
        let Some(episode) = self.relatives(&[id], relatives).await?.into_iter().next() else { return Ok(None) };
        let mut chain = self.chain_of(&episode, relatives, &key_room()).await?;
        chain.relatives.insert(episode.id().to_owned(), episode);
        Ok(Some(chain))
    }

    /// Reads the chain, with as much of the other episodes as requested.
    async fn chain_of(self, episode: &Row, relatives: Relatives, room: &PageStore) -> Result<EpisodeChain, StoreError> {
        let mut known: BTreeMap<String, Row> = BTreeMap::new();
        let mut walk = ChainWalk::from(episode.id());
        let (mut looked_up, is_named) = (0, relatives == Relatives::Named);
        while let Some(id) = walk.wanted().filter(|_| looked_up + 1 < CHAIN_LIMIT).map(str::to_owned) {
            if id == episode.id() {
                walk.found(episode.text("parent_id"));
                continue;
            }
            match self.relatives(&[&id], relatives).await?.into_iter().next() {
                Some(row) => {
                    walk.found(row.text("parent_id"));
                    looked_up += 1;
                    if is_named || episode.text("parent_id") == Some(&id) {
                        known.insert(id, row);
                    }
                }
                None => walk.not_found(),
            }
        }
        let of_it = [episode.id()];
        let rank = |_: &Row| (0, None);
        let mut children = RowCollector::new(Entity::Episode, episode.id(), &rank, room).by_keys();
        children = children.found_by("parent_id", &of_it);
        self.collect(&mut children, "parent_id", &of_it, Some(LINKING)).await?;
        let children = children.finish()?;
        let ids: Vec<String> = children.ids().map(|(id, _)| id.into_owned()).collect();
        let mut is_cut = false;
        if is_named {
            let first: Vec<&str> = ids.iter().take(FIRST).map(String::as_str).collect();
            let rows = self.relatives(&first, relatives).await?;
            known.extend(rows.into_iter().map(|row| (row.id().to_owned(), row)));
            is_cut = self.descendants(ids.iter().take(FIRST).cloned().collect(), &mut known).await?;
        }
        let alone =
            Chain { ids: vec![episode.id().to_owned()], children: Vec::new(), cycle: false, missing_parent: None };
        let chain = walk.finish(ids).unwrap_or(alone);
        Ok(EpisodeChain { chain, relatives: known, children, is_cut })
    }

    /// The descendants of these episodes, up to `FIRST` episodes and `DEPTH` generations, and whether there are more.
    async fn descendants(
        self,
        mut parents: Vec<String>,
        known: &mut BTreeMap<String, Row>,
    ) -> Result<bool, StoreError> {
        let mut found = 0;
        for _ in 0..DEPTH {
            let mut ids: Vec<String> = Vec::new();
            let take = |row: Row, _| {
                if !known.contains_key(row.id()) && row.text("parent_id") != Some(row.id()) {
                    ids.push(row.id().to_owned());
                }
                if found + ids.len() > FIRST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            self.store.each_related(Entity::Episode, "parent_id", &parents, LINKING, take).await?;
            let is_cut = found + ids.len() > FIRST;
            ids.truncate(FIRST - found);
            found += ids.len();
            let named: Vec<&str> = ids.iter().map(String::as_str).collect();
            let rows = self.relatives(&named, Relatives::Named).await?;
            known.extend(rows.into_iter().map(|row| (row.id().to_owned(), row)));
            if is_cut || ids.is_empty() {
                return Ok(is_cut);
            }
            parents = ids;
        }
        Ok(true)
    }

    /// The episodes with one of these values in a column.
    async fn relatives(self, ids: &[&str], relatives: Relatives) -> Result<Vec<Row>, StoreError> {
        let columns = if relatives == Relatives::Named { NAMING } else { LINKING };
        let mut rows = self.store.related_columns(Entity::Episode, "id", ids, Some(columns)).await?;
        if relatives == Relatives::Named {
            rows.iter_mut().for_each(shorten);
        }
        Ok(rows)
    }

    /// Lists the links of canvas events and feedback to episodes, over all sources of episodes.
    pub fn episode_links(self) -> Vec<EpisodeLink> {
        let mut links: Vec<EpisodeLink> = Vec::new();
        for source in self.store.recognised().sources.iter().filter(|s| s.entity == Entity::Episode) {
            for link in &source.links {
                if !links.contains(link) {
                    links.push(link.clone());
                }
            }
        }
        links
    }

    /// Reads memories by id. A case counts as one: it is shown as a memory of its own kind.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn memories(self, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        Ok(self.memories_within(ids, usize::MAX).await?.map_or_else(Vec::new, |(memories, _)| memories))
    }

    /// As `memories`, with their size in bytes; `None` if it exceeds `most`.
    async fn memories_within(self, ids: &[String], most: usize) -> Result<Option<(Vec<Row>, usize)>, StoreError> {
        let (mut memories, mut bytes): (Vec<Row>, usize) = (Vec::new(), 0);
        for entity in [Entity::Memory, Entity::Case] {
            let found: HashSet<&str> = memories.iter().map(Row::id).collect();
            let others: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !found.contains(id)).collect();
            let mut rows = Vec::new();
            let take = |row: Row, size: usize| {
                bytes += size;
                rows.push(if entity == Entity::Case { case_as_memory(&row) } else { row });
                if bytes > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let columns: Vec<&str> = entity.columns().iter().map(|column| column.name).collect();
            self.store.each_related(entity, "id", &others, &columns, take).await?;
            if bytes > most {
                return Ok(None);
            }
            memories.extend(rows);
        }
        Ok(Some((memories, bytes)))
    }

    /// The rows that lists and back-links lead to.
    async fn linked_to(
        self,
        episode: &Row,
        links: &[EpisodeLink],
        to: Entity,
        room: &PageStore,
    ) -> Result<HangingRows, StoreError> {
        let mut rows = RowCollector::new(to, episode.id(), &|_| (0, None), room);
        self.collect_linked(&mut rows, episode, links).await?;
        rows.finish()
    }

    async fn collect_linked(
        self,
        into: &mut RowCollector<'_>,
        episode: &Row,
        links: &[EpisodeLink],
    ) -> Result<(), StoreError> {
        let to = into.entity();
        self.collect(into, "id", &named_ids(episode, links, to), None).await?;
        if has_back_link(links, to) {
            self.collect(into, "episode_id", &[episode.id()], None).await?;
        }
        Ok(())
    }

    /// Reads the rows that lists and back-links of each episode lead to, in time order. If only some columns are
    /// `wanted`, they must include the id, the episode and the time, and for feedback the source.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn linked(
        self,
        episodes: &[&Row],
        links: &[EpisodeLink],
        to: Entity,
        wanted: Option<&[&str]>,
    ) -> Result<Vec<HangingRows>, StoreError> {
        self.linked_to_each(episodes, links, to, wanted, &key_room()).await
    }

    /// As [`ContextReader::linked_to`] for several episodes: if no index leads to their rows, the table is read once.
    async fn linked_to_each(
        self,
        episodes: &[&Row],
        links: &[EpisodeLink],
        to: Entity,
        wanted: Option<&[&str]>,
        room: &PageStore,
    ) -> Result<Vec<HangingRows>, StoreError> {
        let rank = |_: &Row| (0, None);
        let mut each: Vec<RowCollector<'_>> = Vec::new();
        let (mut named, mut back): (BTreeMap<_, Vec<usize>>, BTreeMap<_, Vec<usize>>) = Default::default();
        for (at, episode) in episodes.iter().enumerate() {
            each.push(RowCollector::new(to, episode.id(), &rank, room).beside(episodes.len()));
            named_ids(episode, links, to).into_iter().for_each(|id| named.entry(id).or_default().push(at));
            back.entry(Cow::Borrowed(episode.id())).or_default().push(at);
        }
        self.collect_each(&mut each, "id", &named, wanted).await?;
        if has_back_link(links, to) {
            self.collect_each(&mut each, "episode_id", &back, wanted).await?;
        }
        each.into_iter().map(RowCollector::finish).collect()
    }

    async fn events_of(self, episode: &Row, room: &PageStore) -> Result<HangingRows, StoreError> {
        let mut runs = episode.list("execution_ids");
        runs.push(episode.id());
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, run) in runs.iter().enumerate() {
            places.entry(run).or_insert(place);
        }
        let rank = |event: &Row| {
            let place = event.text("run_id").and_then(|run| places.get(run));
            (place.copied().unwrap_or_default(), event.get("sequence").as_i64())
        };
        self.hanging_in_order(Entity::WorkflowEvent, "run_id", &runs, &rank, room).await
    }

    async fn findings(
        self,
        episode: &Row,
        canvas: &HangingRows,
        feedback: &HangingRows,
        links: &[EpisodeLink],
    ) -> Result<Vec<ShownFinding>, StoreError> {
        let mut findings = Vec::new();
        link_findings(episode, links, canvas, "canvas_ids", &mut findings);
        link_findings(episode, links, feedback, "feedback_ids", &mut findings);
        if canvas.is_empty() {
            findings.push(self.why_no_canvas(episode).await?);
        }
        if feedback.is_empty() {
            findings.push(self.why_no_feedback(episode).await?);
        }
        stored_numbers(episode, canvas, feedback, &mut findings);
        Ok(findings)
    }

    /// Replaces findings about missing rows by a note, if our role may not see them.
    fn leave_out_unseen(self, findings: &mut Vec<ShownFinding>) {
        let mut reasons: Vec<String> = Vec::new();
        findings.retain(|finding| {
            let reason = rests_on(&finding.kind).find_map(|entity| self.store.report().unseen(entity));
            let is_told = reason.as_ref().is_none_or(|reason| reasons.contains(reason));
            reasons.extend(reason.clone().filter(|_| !is_told));
            reason.is_none()
        });
        findings.extend(reasons.into_iter().map(|reason| finding("hidden_rows", reason, &[])));
    }

    /// The finding about missing linked memories.
    async fn missing_memories(self, links: &HangingRows) -> Result<Option<ShownFinding>, StoreError> {
        let (mut gone, mut count) = (Vec::new(), 0);
        let mut named = links.ids().map(|(id, _)| id.into_owned()).filter(|id| !id.is_empty());
        loop {
            let part: Vec<String> = named.by_ref().take(AT_ONCE).collect();
            if part.is_empty() {
                break;
            }
            let mut there: HashSet<String> = HashSet::new();
            for entity in [Entity::Memory, Entity::Case] {
                let others: Vec<&str> = part.iter().map(String::as_str).filter(|id| !there.contains(*id)).collect();
                let mut found = Vec::new();
                let take = |row: Row, _| {
                    found.push(row.id().to_owned());
                    ControlFlow::Continue(())
                };
                self.store.each_related(entity, "id", &others, &["id"], take).await?;
                there.extend(found);
            }
            for id in part.into_iter().filter(|id| !there.contains(id)) {
                count += 1;
                gone.extend((gone.len() < IDS).then_some(id));
            }
        }
        let message = |n| agreeing(n, "{#} linked {memory is|memories are} missing");
        Ok((count > 0).then(|| some("missing_memory", message, gone.iter().map(String::as_str), count)))
    }

    async fn why_no_canvas(self, episode: &Row) -> Result<ShownFinding, StoreError> {
        if let Err(StoreError::Missing { reason, .. }) = self.store.sources_of(Entity::CanvasEvent) {
            return Ok(finding("canvas_absent", format!("no canvas context: {reason}"), &[]));
        }
        let Some(session) = episode.text("session_id") else {
            return Ok(finding("no_session", "no canvas context: the episode has no session", &[]));
        };
        let sessions = [session.to_owned()];
        let (ids, count) = self.first_related(Entity::CanvasEvent, "session_id", &sessions, |_| ()).await?;
        Ok(match count {
            0 => finding("no_session_rows", "no canvas context: its session has no canvas events", &ids),
            _ => some(
                "not_linked",
                |n| {
                    agreeing(
                        n,
                        "no canvas context: its session has {#} canvas {event that is|events that are} not linked to it",
                    )
                },
                ids.iter().map(String::as_str),
                count,
            ),
        })
    }

    /// The ids of the earliest rows with one of these values in a column, up to the number that a finding names, and
    /// the total; `look` gets the time of each.
    async fn first_related(
        self,
        entity: Entity,
        column: &str,
        values: &[String],
        mut look: impl FnMut(Option<&str>) + Send,
    ) -> Result<(Vec<String>, usize), StoreError> {
        let mut first = FirstOf::new(IDS);
        let take = |row: Row, _| {
            let at = row.text(entity.time_column());
            look(at);
            first.add((at.is_none(), at.map(str::to_owned), row.id().to_owned()));
            ControlFlow::Continue(())
        };
        self.store.each_related(entity, column, values, &["id", column, entity.time_column()], take).await?;
        let count = first.count() as usize;
        Ok((first.in_order().into_iter().map(|(_, _, id)| id).collect(), count))
    }

    async fn why_no_feedback(self, episode: &Row) -> Result<ShownFinding, StoreError> {
        if let Err(StoreError::Missing { reason, .. }) = self.store.sources_of(Entity::Feedback) {
            return Ok(finding("feedback_absent", format!("no feedback context: {reason}"), &[]));
        }
        let by_execution = self.store.recognised().sources.iter().any(|s| !s.column("execution_id").is_empty());
        if !by_execution {
            return Ok(finding("no_feedback", "no feedback context: nobody gave feedback on it", &[]));
        }
        let executions: Vec<String> = episode.list("execution_ids").into_iter().map(str::to_owned).collect();
        if executions.is_empty() {
            let words = "no feedback context: the episode has no execution, and feedback is linked by execution";
            return Ok(finding("execution_missing", words, &[]));
        }
        let made = episode.text("ended_at").or(episode.text("started_at"));
        let mut newer = true;
        let look = |at: Option<&str>| newer &= at > made;
        let (ids, count) = self.first_related(Entity::Feedback, "execution_id", &executions, look).await?;
        let of_rows = |kind: &str, how: &str| {
            let words = format!(
                "no feedback context: {{#}} feedback {{row of its execution is|rows of its execution are}} {how}"
            );
            let message = |n| agreeing(n, &words);
            some(kind, message, ids.iter().map(String::as_str), count)
        };
        Ok(match (count, newer) {
            (0, _) => {
                finding("no_execution_feedback", "no feedback context: nobody gave feedback on its execution", &ids)
            }
            (_, true) => of_rows("feedback_newer", "newer than the episode and not linked"),
            (_, false) => of_rows("not_linked", "not linked to it"),
        })
    }
}

/// Memories that links name, read in portions of few bytes.
pub struct LinkedMemories<'a> {
    reader: ContextReader<'a>,
    /// Links per portion.
    together: usize,
    /// Bytes of the memories that were read.
    bytes: usize,
}

impl<'a> LinkedMemories<'a> {
    /// Creates a reader; nothing is read yet.
    pub fn new(reader: ContextReader<'a>) -> Self {
        LinkedMemories { reader, together: AT_ONCE, bytes: 0 }
    }

    /// Reads the memories of the first links, at least one. Returns the number of links covered.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(&mut self, links: &[Row]) -> Result<(usize, Vec<Row>), StoreError> {
        loop {
            let links = &links[..links.len().min(self.together)];
            let ids: Vec<String> = links.iter().filter_map(|l| l.text("memory_id")).map(str::to_owned).collect();
            let bytes = if links.len() > 1 { PART } else { usize::MAX };
            match self.reader.memories_within(&ids, bytes).await? {
                Some((memories, size)) => {
                    self.bytes += size;
                    return Ok((links.len(), memories));
                }
                None => self.together = links.len().div_ceil(4),
            }
        }
    }
}

/// Adds a finding for feedback that is shown although no link leads to it.
fn say_by_execution(findings: &mut Vec<ShownFinding>, mut ids: Vec<&str>) {
    let alone = |words: &str| format!("shown because of its execution only: {words}");
    let mut is_told = false;
    for finding in findings.iter_mut().filter(|f| NOT_LINKED.contains(&f.kind.as_str())) {
        if let Some(words) = finding.message.strip_prefix("no feedback context: ") {
            finding.message = alone(words);
            is_told = true;
        }
    }
    if !is_told {
        ids.sort_unstable();
        let count = ids.len();
        let words = |n| alone(&agreeing(n, "{#} feedback {row|rows} of its execution that {is|are} not linked to it"));
        findings.push(some("not_linked", words, ids.into_iter().take(IDS), count));
    }
}

/// Cuts the texts of an episode that serve only as its name.
fn shorten(row: &mut Row) {
    for column in ["summary", "observation"] {
        if let Some(name) = row.text(column).map(|text| text.chars().take(NAME).collect::<String>()) {
            row.set(column, Value::from(name));
        }
    }
}

fn case_as_memory(case: &Row) -> Row {
    let mut memory = Row::empty(Entity::Memory);
    let prompt = case.get("prompt");
    let words = ["query", "message", "text"].iter().find_map(|key| prompt.get(key)?.as_str());
    memory.set("id", case.get("id").clone());
    memory.set("kind", Value::from("case"));
    memory.set("collection", case.get("profile_id").clone());
    memory.set("title", words.or(prompt.as_str()).map_or(Value::Null, Value::from));
    memory.set("text", if prompt.is_null() { Value::Null } else { Value::from(prompt.to_string()) });
    memory.set("metadata", json!({ "outcome": case.get("outcome"), "reward": case.get("reward") }));
    memory.set("created_at", case.get("created_at").clone());
    memory.problems.clone_from(&case.problems);
    memory
}

/// A finding; it names only the first of many ids, and says so.
fn finding(kind: &str, message: impl Into<String>, ids: &[String]) -> ShownFinding {
    let (count, message) = (ids.len(), message.into());
    some(kind, |_| message, ids.iter().take(IDS).map(String::as_str), count)
}

/// A finding about some rows, if there are any. No more ids are kept than it names.
fn finding_of<'i>(
    kind: &str,
    message: impl FnOnce(usize) -> String,
    ids: impl Iterator<Item = &'i str> + Clone,
) -> Option<ShownFinding> {
    let count = ids.clone().count();
    (count > 0).then(|| some(kind, message, ids.take(IDS), count))
}

fn some<'i>(
    kind: &str,
    message: impl FnOnce(usize) -> String,
    ids: impl Iterator<Item = &'i str>,
    count: usize,
) -> ShownFinding {
    let mut message = message(count);
    if count > IDS {
        message = format!("{message} (showing {IDS} of {count})");
    }
    ShownFinding { kind: kind.to_owned(), message, ids: ids.map(str::to_owned).collect() }
}

/// Findings about dangling, repeated and one-way links of one kind.
fn link_findings(
    episode: &Row,
    links: &[EpisodeLink],
    rows: &HangingRows,
    list: &str,
    findings: &mut Vec<ShownFinding>,
) {
    let to = rows.entity();
    let named = named_ids(episode, links, to);
    let mut there: HashSet<&str> = HashSet::with_capacity(named.len());
    let mut named_ids: HashSet<&str> = named.iter().map(|id| &**id).collect();
    there.extend(rows.ids().filter_map(|(id, _)| named_ids.take(&*id)));
    let what = to.title();
    let dangling = named.iter().map(|id| &**id).filter(|id| !there.contains(id));
    findings.extend(finding_of(
        "dangling_id",
        |n| agreeing(n, &format!("{{#}} {{id of a {what} row that is|ids of {what} rows that are}} missing")),
        dangling,
    ));
    // From here on only existing rows matter.
    let named = &there;
    let mut repeated: Vec<&str> = episode.list(list);
    repeated.sort_unstable();
    let repeated: Vec<&str> =
        repeated.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).map(|same| same[0]).collect();
    let words = |n| agreeing(n, &format!("{list} names {{#}} {{row|rows}} more than once"));
    findings.extend(finding_of("repeated_id", words, repeated.iter().copied()));
    if !links.iter().any(|l| l.to == to && l.by == LinkBy::Back) {
        return;
    }
    let mut of_rows = |kind: &str, words: String, is_so: &dyn Fn(&str, LinkFacts) -> bool| {
        let (mut ids, mut count) = (Vec::new(), 0);
        for (id, _) in rows.facts(episode.id()).filter(|(id, facts)| is_so(id, *facts)) {
            count += 1;
            ids.extend((count <= IDS).then(|| id.into_owned()));
        }
        let ids = ids.iter().map(String::as_str);
        findings.extend((count > 0).then(|| some(kind, |n| agreeing(n, &words), ids, count)));
    };
    let words =
        format!("{{#}} {what} {{row that the episode names points|rows that the episode names point}} back to another");
    of_rows("wrong_back_link", words, &|_, facts| facts.back == Some(false));
    let words =
        format!("{{#}} {what} {{row that the episode names does|rows that the episode names do}} not point back");
    of_rows("one_way_link", words, &|id, facts| facts.back.is_none() && named.contains(id) && has_back(to));
    if !episode.get(list).is_null() {
        let words = format!(
            "{{#}} {what} {{row points to the episode and is|rows point to the episode and are}} not in its {list}"
        );
        of_rows("one_way_link", words, &|id, facts| {
            facts.back == Some(true) && !named.contains(id) && in_lists(to, facts)
        });
    }
}

/// Whether rows of this kind have a back-link, so that an unlinked one is worth a finding.
fn has_back(entity: Entity) -> bool {
    entity == Entity::CanvasEvent
}

/// Feedback of a second table is linked only by its back-link.
fn in_lists(entity: Entity, facts: LinkFacts) -> bool {
    entity != Entity::Feedback || facts.counts != Some(false)
}

/// Whether rows of this kind can be linked by a back-link.
fn has_back_link(links: &[EpisodeLink], to: Entity) -> bool {
    links.iter().any(|link| link.to == to && link.by == LinkBy::Back)
}

fn stored_numbers(episode: &Row, canvas: &HangingRows, feedback: &HangingRows, findings: &mut Vec<ShownFinding>) {
    let count = episode.get("canvas_action_count").as_i64();
    let listed = canvas.len() as i64;
    if let Some(count) = count.filter(|c| *c != listed) {
        let words = format!("canvas_action_count is {count}, but {{#}} canvas {{event is|events are}} linked");
        let words = agreeing(listed, &words);
        findings.push(finding("count_differs", words, &[]));
    }
    if episode.get("feedback_score").is_null() && feedback.is_empty() {
        return;
    }
    let mean = feedback.score();
    let stored = episode.number("feedback_score");
    let same = score::is_same_or_unknown(stored, mean);
    let unmapped = episode.get("feedback_ids").is_null();
    let cannot_hold = unmapped && stored.is_none();
    if !same && !cannot_hold {
        let word = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
        let words = format!("the stored feedback score is {}, but its rows average {}", word(stored), word(mean));
        findings.push(finding("aggregate_differs", words, &[]));
    }
}

fn chain_findings(episode: &Row, chain: &Chain, relatives: &BTreeMap<String, Row>, findings: &mut Vec<ShownFinding>) {
    if chain.cycle {
        findings.push(finding("chain_cycle", "its chain of parents forms a cycle", &chain.ids));
    }
    if let Some(missing) = &chain.missing_parent {
        findings.push(finding(
            "missing_parent",
            format!("the parent {missing} does not exist"),
            std::slice::from_ref(missing),
        ));
    }
    let Some(parent) = episode.text("parent_id").and_then(|id| relatives.get(id)) else { return };
    if parent.text("agent_id") != episode.text("agent_id") {
        findings.push(finding("cross_agent_parent", "its parent belongs to another agent", &[parent.id().to_owned()]));
    }
    if let (Some(child), Some(mother)) = (episode.text("started_at"), parent.text("started_at"))
        && mother > child
    {
        findings.push(finding("parent_younger", "its parent started after it", &[parent.id().to_owned()]));
    }
}
