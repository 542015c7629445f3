//! Everything about one episode in one place, its chain, and what is odd about them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::page::named_ids;
use super::{ContextReader, StoreError};
use crate::layout::EpisodeLink;
use crate::memory::agreeing;
use crate::memory::chain::{Chain, ChainWalk};
use crate::memory::first_of::FirstOf;
use crate::memory::query::{EpisodeContext, ShownFinding};
use crate::memory::{Entity, Row, feedback};

/// Ids that a finding names at most.
const IDS: usize = 100;

/// Findings about feedback of an episode's executions.
const NOT_LINKED: [&str; 2] = ["feedback_newer", "not_linked"];

/// Links of a chain that are followed upwards at most; longer chains are cut and say so.
const CHAIN_LIMIT: usize = 10_000;

/// Columns that name and date another episode of a chain, and say whose it is; where it is derived, its end needs the status.
const NAMING: &[&str] = &[
    "id",
    "agent_id",
    "parent_id",
    "title",
    "summary",
    "observation",
    "topic",
    "status",
    "outcome",
    "started_at",
    "ended_at",
];

/// Characters of a text that name an episode where it has no title.
const NAME: usize = 200;

/// Extent to which the other episodes of a chain are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relatives {
    /// Whole rows.
    Whole,
    /// Names and dates; of long texts the beginning.
    Named,
}

impl ContextReader<'_> {
    /// An episode with its context; none when there is no such episode.
    ///
    /// # Errors
    /// The engine's refusal, or a database without episodes.
    pub async fn episode(self, id: &str) -> Result<Option<EpisodeContext>, StoreError> {
        self.episode_with(id, Relatives::Whole).await
    }

    /// As [`ContextReader::episode`], with so much of the other episodes of its chain.
    ///
    /// # Errors
    /// As [`ContextReader::episode`].
    pub async fn episode_with(self, id: &str, relatives: Relatives) -> Result<Option<EpisodeContext>, StoreError> {
        let Some(episode) = self.store.row(Entity::Episode, id).await? else { return Ok(None) };
        let id = &*episode.id().to_owned();
        let links = self.episode_links();
        // Independent reads: they overlap where the store has more than one connection.
        let (canvas, feedback, segments, links_found, (chain, relatives), utility, events, accesses) = tokio::try_join!(
            self.linked_to(&episode, &links, Entity::CanvasEvent),
            self.linked_to(&episode, &links, Entity::Feedback),
            self.of_episode(Entity::Segment, id, "sequence"),
            self.of_episode(Entity::MemoryLink, id, "rank"),
            self.chain_of(&episode, relatives),
            self.of_episode(Entity::UtilityEvent, id, ""),
            self.events_of(&episode),
            self.accesses_of(id),
        )?;
        let memory_ids: Vec<String> =
            links_found.iter().filter_map(|l| l.text("memory_id")).map(str::to_owned).collect();
        let memories = self.memories(&memory_ids).await?;
        let mut context = EpisodeContext {
            episode,
            segments,
            utility,
            memories,
            links: links_found,
            events,
            accesses,
            canvas,
            feedback,
            chain,
            relatives,
            findings: Vec::new(),
        };
        context.findings = self.findings(&context, &links).await?;
        self.show_belonging(std::slice::from_mut(&mut context)).await?;
        Ok(Some(context))
    }

    /// Episodes as every recall shows them: with canvas and feedback context, and why some of it is empty. Of the rest of
    /// their context nothing is read.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn recalled(self, episodes: Vec<Row>) -> Result<Vec<EpisodeContext>, StoreError> {
        let links = self.episode_links();
        let rows: Vec<&Row> = episodes.iter().collect();
        let (canvas, feedback) = tokio::try_join!(
            self.store.linked(&rows, &links, Entity::CanvasEvent),
            self.store.linked(&rows, &links, Entity::Feedback),
        )?;
        let mut contexts = Vec::with_capacity(episodes.len());
        for ((episode, canvas), feedback) in episodes.into_iter().zip(canvas).zip(feedback) {
            let chain =
                Chain { ids: vec![episode.id().to_owned()], children: vec![], cycle: false, missing_parent: None };
            let mut context = EpisodeContext {
                segments: Vec::new(),
                utility: Vec::new(),
                memories: Vec::new(),
                links: Vec::new(),
                events: Vec::new(),
                accesses: Vec::new(),
                canvas,
                feedback,
                chain,
                relatives: BTreeMap::new(),
                findings: Vec::new(),
                episode,
            };
            context.findings = self.findings(&context, &links).await?;
            contexts.push(context);
        }
        self.show_belonging(&mut contexts).await?;
        Ok(contexts)
    }

    /// Shows the feedback that belongs to an episode although no stored link says so, as lists show it too. The findings
    /// were made before: they are about what is stored.
    async fn show_belonging(self, contexts: &mut [EpisodeContext]) -> Result<(), StoreError> {
        let episodes: Vec<&Row> = contexts.iter().map(|c| &c.episode).collect();
        let found = self.by_execution(&episodes, Entity::Feedback).await?;
        for context in contexts {
            self.fill_all_episodes(Entity::Feedback, &mut context.feedback).await?;
            let id = context.episode.id().to_owned();
            let known =
                |row: &Row| context.feedback.iter().any(|r| r.id() == row.id() && r.get("source") == row.get("source"));
            let of_it = |row: &&Row| row.text("episode_id") == Some(&id) && !known(row);
            let more: Vec<Row> = found.iter().filter(of_it).cloned().collect();
            if more.is_empty() {
                continue;
            }
            for finding in context.findings.iter_mut().filter(|f| NOT_LINKED.contains(&f.kind.as_str())) {
                if let Some(words) = finding.message.strip_prefix("no feedback context: ") {
                    finding.message = format!("shown by its execution alone: {words}");
                }
            }
            context.feedback.extend(more);
            context.feedback.sort_by(|a, b| (a.text("created_at"), a.id()).cmp(&(b.text("created_at"), b.id())));
        }
        Ok(())
    }

    /// The chain an episode stands in, with its rows; none when there is no such episode.
    ///
    /// # Errors
    /// The engine's refusal, or a database without episodes.
    pub async fn chain(
        self,
        id: &str,
        relatives: Relatives,
    ) -> Result<Option<(Chain, BTreeMap<String, Row>)>, StoreError> {
        self.store.sources_of(Entity::Episode)?;
        let Some(episode) = self.relatives("id", id, relatives).await?.into_iter().next() else { return Ok(None) };
        let (chain, mut rows) = self.chain_of(&episode, relatives).await?;
        rows.insert(episode.id().to_owned(), episode);
        Ok(Some((chain, rows)))
    }

    /// The chain with the rows of all others in it.
    async fn chain_of(self, episode: &Row, relatives: Relatives) -> Result<(Chain, BTreeMap<String, Row>), StoreError> {
        let mut known: BTreeMap<String, Row> = BTreeMap::new();
        let mut walk = ChainWalk::from(episode.id());
        while let Some(id) = walk.wanted().filter(|_| known.len() + 1 < CHAIN_LIMIT).map(str::to_owned) {
            if id == episode.id() {
                walk.found(episode.text("parent_id"));
                continue;
            }
            match self.relatives("id", &id, relatives).await?.into_iter().next() {
                Some(row) => {
                    walk.found(row.text("parent_id"));
                    known.insert(id, row);
                }
                None => walk.not_found(),
            }
        }
        let children = self.relatives("parent_id", episode.id(), relatives).await?;
        let child_ids = children.iter().map(|c| c.id().to_owned()).collect();
        let alone =
            Chain { ids: vec![episode.id().to_owned()], children: Vec::new(), cycle: false, missing_parent: None };
        let chain = walk.finish(child_ids).unwrap_or(alone);
        known.extend(children.into_iter().map(|c| (c.id().to_owned(), c)));
        Ok((chain, known))
    }

    /// The episodes with this value in a column.
    async fn relatives(self, column: &str, value: &str, relatives: Relatives) -> Result<Vec<Row>, StoreError> {
        let columns = (relatives == Relatives::Named).then_some(NAMING);
        let mut rows = self.store.related_columns(Entity::Episode, column, &[value], columns).await?;
        if relatives == Relatives::Named {
            rows.iter_mut().for_each(shorten);
        }
        Ok(rows)
    }

    /// Lists the links of canvas events and feedback to episodes, over all sources of episodes.
    #[must_use]
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

    /// The memories of these ids. A case is one too: it is shown as a memory of its own kind.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn memories(self, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        let mut memories = self.store.related(Entity::Memory, "id", ids).await?;
        let found: HashSet<&str> = memories.iter().map(Row::id).collect();
        let others: Vec<String> = ids.iter().filter(|id| !found.contains(id.as_str())).cloned().collect();
        memories.extend(self.store.related(Entity::Case, "id", &others).await?.iter().map(case_as_memory));
        Ok(memories)
    }

    async fn linked_to(self, episode: &Row, links: &[EpisodeLink], to: Entity) -> Result<Vec<Row>, StoreError> {
        Ok(self.store.linked(&[episode], links, to).await?.pop().unwrap_or_default())
    }

    async fn accesses_of(self, id: &str) -> Result<Vec<Row>, StoreError> {
        self.store.related(Entity::Access, "ids", &[id.to_owned()]).await
    }

    /// Rows that name the episode, by a column of whole numbers where one is given, else by time.
    async fn of_episode(self, entity: Entity, id: &str, order: &str) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.store.related(entity, "episode_id", &[id.to_owned()]).await?;
        rows.sort_by_key(|row| row.get(order).as_i64());
        Ok(rows)
    }

    async fn events_of(self, episode: &Row) -> Result<Vec<Row>, StoreError> {
        let mut runs = episode.list("execution_ids");
        runs.push(episode.id());
        let mut events = self.store.related(Entity::WorkflowEvent, "run_id", &runs).await?;
        let mut places: HashMap<String, usize> =
            events.iter().filter_map(|e| Some((e.text("run_id")?.to_owned(), usize::MAX))).collect();
        for (place, run) in runs.iter().enumerate().rev() {
            if let Some(first) = places.get_mut(*run) {
                *first = place;
            }
        }
        events.sort_by_key(|e| (e.text("run_id").and_then(|run| places.get(run)), e.get("sequence").as_i64()));
        Ok(events)
    }

    async fn findings(self, context: &EpisodeContext, links: &[EpisodeLink]) -> Result<Vec<ShownFinding>, StoreError> {
        let mut findings = Vec::new();
        link_findings(context, links, Entity::CanvasEvent, &context.canvas, "canvas_ids", &mut findings);
        link_findings(context, links, Entity::Feedback, &context.feedback, "feedback_ids", &mut findings);
        if context.canvas.is_empty() {
            findings.push(self.why_no_canvas(&context.episode).await?);
        }
        if context.feedback.is_empty() {
            findings.push(self.why_no_feedback(&context.episode).await?);
        }
        stored_numbers(context, &mut findings);
        chain_findings(context, &mut findings);
        missing_memories(context, &mut findings);
        Ok(findings)
    }

    async fn why_no_canvas(self, episode: &Row) -> Result<ShownFinding, StoreError> {
        if let Err(StoreError::Missing { reason, .. }) = self.store.sources_of(Entity::CanvasEvent) {
            return Ok(finding("canvas_absent", format!("no canvas context: {reason}"), &[]));
        }
        let Some(session) = episode.text("session_id") else {
            return Ok(finding("no_session", "no canvas context: the episode names no session", &[]));
        };
        let sessions = [session.to_owned()];
        let (ids, count) = self.first_related(Entity::CanvasEvent, "session_id", &sessions, |_| ()).await?;
        Ok(match count {
            0 => finding("no_session_rows", "no canvas context: its session has no canvas events", &ids),
            _ => some(
                "not_linked",
                |n| format!("no canvas context: its session has {n} canvas events that are not linked to it"),
                ids.iter().map(String::as_str),
                count,
            ),
        })
    }

    /// The ids of the earliest rows with one of these values in a column, no more than a finding names, and how many rows
    /// there are; `look` sees the time of each.
    async fn first_related(
        self,
        entity: Entity,
        column: &str,
        values: &[String],
        mut look: impl FnMut(Option<&str>),
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
            let words = "no feedback context: the episode names no execution, by which feedback is linked";
            return Ok(finding("execution_missing", words, &[]));
        }
        let made = episode.text("ended_at").or(episode.text("started_at"));
        let mut newer = true;
        let look = |at: Option<&str>| newer &= at > made;
        let (ids, count) = self.first_related(Entity::Feedback, "execution_id", &executions, look).await?;
        let of_rows = |kind: &str, how: &str| {
            let message = |n| format!("no feedback context: {n} feedback rows of its execution are {how}");
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

/// Cuts the texts of an episode that only name it.
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

/// A finding; of many ids it names the first, and says so.
fn finding(kind: &str, message: impl Into<String>, ids: &[String]) -> ShownFinding {
    let (count, message) = (ids.len(), message.into());
    some(kind, |_| message, ids.iter().take(IDS).map(String::as_str), count)
}

/// A finding about some rows, if there are any: no more of them are kept than it names.
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

/// Dangling, repeated and one-way links of one kind.
fn link_findings(
    context: &EpisodeContext,
    links: &[EpisodeLink],
    to: Entity,
    rows: &[Row],
    list: &str,
    findings: &mut Vec<ShownFinding>,
) {
    let named = named_ids(&context.episode, links, to);
    let there: HashSet<&str> = rows.iter().map(Row::id).collect();
    let what = to.title();
    let dangling = named.iter().map(|id| &**id).filter(|id| !there.contains(id));
    findings.extend(finding_of(
        "dangling_id",
        |n| agreeing(n, &format!("{{#}} {{id of a {what} row that is|ids of {what} rows that are}} not there")),
        dangling,
    ));
    // Only those of rows that are there matter from here on.
    let named: HashSet<&str> = named.iter().filter_map(|id| there.get(&**id).copied()).collect();
    let mut repeated: Vec<&str> = context.episode.list(list);
    repeated.sort_unstable();
    let repeated: Vec<&str> =
        repeated.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).map(|same| same[0]).collect();
    let words = |n| agreeing(n, &format!("{list} names {{#}} {{row|rows}} more than once"));
    findings.extend(finding_of("repeated_id", words, repeated.iter().copied()));
    if !links.iter().any(|l| l.to == to && l.by == crate::layout::LinkBy::Back) {
        return;
    }
    let own = Some(context.episode.id());
    let elsewhere: Vec<String> = rows
        .iter()
        .filter(|r| r.text("episode_id").is_some() && r.text("episode_id") != own)
        .map(|r| r.id().to_owned())
        .collect();
    if !elsewhere.is_empty() {
        let n = elsewhere.len();
        let words = format!(
            "{n} {what} {{row that the episode names points|rows that the episode names point}} back to another"
        );
        let words = agreeing(n, &words);
        findings.push(finding("wrong_back_link", words, &elsewhere));
    }
    let no_back: Vec<String> = rows
        .iter()
        .filter(|r| named.contains(r.id()) && r.text("episode_id").is_none() && has_back(r))
        .map(|r| r.id().to_owned())
        .collect();
    if !no_back.is_empty() {
        let n = no_back.len();
        let words =
            format!("{n} {what} {{row that the episode names does|rows that the episode names do}} not point back");
        let words = agreeing(n, &words);
        findings.push(finding("one_way_link", words, &no_back));
    }
    let not_named: Vec<String> = rows
        .iter()
        .filter(|r| r.text("episode_id") == own && !named.contains(r.id()) && in_lists(r))
        .map(|r| r.id().to_owned())
        .collect();
    if !not_named.is_empty() && !context.episode.get(list).is_null() {
        let n = not_named.len();
        let words = format!(
            "{n} {what} {{row points to the episode and is|rows point to the episode and are}} not in its {list}"
        );
        let words = agreeing(n, &words);
        findings.push(finding("one_way_link", words, &not_named));
    }
}

/// Whether rows of this kind carry a back-link at all: an unlinked one is then worth a word.
fn has_back(row: &Row) -> bool {
    row.entity == Entity::CanvasEvent
}

/// Feedback of a second table is linked by its back-link only.
fn in_lists(row: &Row) -> bool {
    row.entity != Entity::Feedback || row.get("counts") != &Value::Bool(false)
}

/// Stored counts and aggregates against the rows themselves.
fn stored_numbers(context: &EpisodeContext, findings: &mut Vec<ShownFinding>) {
    let count = context.episode.get("canvas_action_count").as_i64();
    let listed = context.canvas.len() as i64;
    if let Some(count) = count.filter(|c| *c != listed) {
        let words = format!("canvas_action_count says {count}, {listed} canvas events are linked");
        findings.push(finding("count_differs", words, &[]));
    }
    if context.episode.get("feedback_score").is_null() && context.feedback.is_empty() {
        return;
    }
    let counted = context.feedback.iter().filter(|f| f.get("counts") == &Value::Bool(true));
    let mean = feedback::aggregate(counted.filter_map(|f| f.number("score")));
    let stored = context.episode.number("feedback_score");
    let same = match (stored, mean) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-6,
        (None, None) => true,
        _ => false,
    };
    let unmapped = context.episode.entity == Entity::Episode && context.episode.get("feedback_ids").is_null();
    let cannot_hold = unmapped && stored.is_none();
    if !same && !cannot_hold {
        let word = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
        let words = format!("the stored feedback score is {}, its rows give {}", word(stored), word(mean));
        findings.push(finding("aggregate_differs", words, &[]));
    }
}

fn chain_findings(context: &EpisodeContext, findings: &mut Vec<ShownFinding>) {
    let chain = &context.chain;
    if chain.cycle {
        findings.push(finding("chain_cycle", "its chain of parents runs in a circle", &chain.ids));
    }
    if let Some(missing) = &chain.missing_parent {
        findings.push(finding(
            "missing_parent",
            format!("the parent {missing} is not there"),
            std::slice::from_ref(missing),
        ));
    }
    let Some(parent) = context.episode.text("parent_id").and_then(|id| context.relatives.get(id)) else { return };
    if parent.text("agent_id") != context.episode.text("agent_id") {
        findings.push(finding("cross_agent_parent", "its parent is of another agent", &[parent.id().to_owned()]));
    }
    if let (Some(child), Some(mother)) = (context.episode.text("started_at"), parent.text("started_at"))
        && mother > child
    {
        findings.push(finding("parent_younger", "its parent started after it", &[parent.id().to_owned()]));
    }
}

fn missing_memories(context: &EpisodeContext, findings: &mut Vec<ShownFinding>) {
    let there: HashSet<&str> = context.memories.iter().map(Row::id).collect();
    let named = context.links.iter().filter_map(|l| l.text("memory_id"));
    let gone: Vec<String> = named.filter(|id| !there.contains(id)).map(str::to_owned).collect();
    if !gone.is_empty() {
        findings.push(finding("missing_memory", format!("{} linked memories are not there", gone.len()), &gone));
    }
}
