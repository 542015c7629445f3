//! Links episodes whose list of canvas events is empty to the canvas events of their session: the list, the count and
//! the back-link. A list that holds anything is never touched, and no event goes to two episodes.

use std::collections::{HashMap, HashSet};

use futures::future::BoxFuture;
use serde_json::Value;

use super::sources::{ERASED, RevisedRows, SourcePlace, note, spare, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::session_links::{CanvasEventTime, EpisodeSpan, SessionSpans};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedRow};

const EPISODE: [&str; 6] = ["id", "session_id", "started_at", "ended_at", "canvas_ids", "canvas_action_count"];
const EVENT: [&str; 4] = ["id", "session_id", "episode_id", "created_at"];
const LISTED: [&str; 2] = ["canvas_ids", "canvas_action_count"];

struct CanvasLinks;

/// The backfill, where the database has a place for the links.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    episodes(store)?;
    events(store)?;
    Ok(Box::new(CanvasLinks))
}

fn episodes(store: &Store) -> Result<Vec<&BoundSource>, ChangeError> {
    writable(store, Entity::Episode, &["session_id", "canvas_ids"])
}

fn events(store: &Store) -> Result<Vec<&BoundSource>, ChangeError> {
    writable(store, Entity::CanvasEvent, &["session_id", "episode_id"])
}

impl Job for CanvasLinks {
    fn name(&self) -> &'static str {
        "canvas-links"
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let sources = [episodes(store), events(store)];
        sources.iter().flatten().flatten().map(|s| table_of(s)).collect()
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async move {
            let walks = episodes(store)?.into_iter().map(|source| candidates(source, &[]));
            Ok(Some(store.walk_count_all(walks).await?))
        })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(ask))
    }

    /// Who an event belongs to is decided by the spans of all episodes of its session, linked or not: what the batch
    /// before links takes nothing from this one's.
    fn plans_ahead(&self) -> bool {
        true
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "in a session with one episode it gets all events that name no other; with several, each event goes to the \
             episode whose time span holds it, else to the last that started before it"
                .to_owned(),
        ]
    }
}

/// Episodes with a session and perhaps an empty list.
fn candidates<'a>(source: &'a BoundSource, stored: &'a [String]) -> RowWalk<'a> {
    let narrow = vec![NarrowCondition::Present("session_id"), NarrowCondition::Short("canvas_ids")];
    RowWalk { source, columns: &EPISODE, stored, narrow }
}

/// Whether a list is there to be filled: it holds nothing, and nothing of it is unreadable.
fn is_open(row: &Row) -> bool {
    let session = row.text("session_id").is_some_and(|s| !s.is_empty());
    session && row.list("canvas_ids").is_empty() && row.is_readable("canvas_ids")
}

async fn batch(ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let sources = episodes(store)?;
    let place = SourcePlace::read(ask.place);
    let mut draft = Draft::batch(store, ask.own, "backfill.canvas-links", ChangeDanger::Guarded);
    let Some(source) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(String::new()), next: None, seen: 0, bad: Vec::new() });
    };
    let mut lists = RevisedRows::new(store, source, &LISTED).await?;
    let erased = Erased::of(store).await?;
    let columns = with_owner(&EPISODE, erased.as_ref());
    let wanted = RowWalk { columns: &columns, ..candidates(source, &lists.stored) };
    let found = store.walk(&wanted, place.after.as_ref(), ask.size).await?;
    let next = place.behind(found.last().map(|f| &f.key), found.len() == ask.size, sources.len());
    let owned = |row: &Row| erased.as_ref().is_some_and(|erased| erased.owns(row));
    let (spared, open): (Vec<&WalkedRow>, Vec<&WalkedRow>) =
        found.iter().filter(|f| is_open(&f.row)).partition(|f| owned(&f.row));
    let mut spared = spared.len();
    let sessions: HashSet<&str> = open.iter().filter_map(|f| f.row.text("session_id")).collect();
    let mut sessions: Vec<String> = sessions.into_iter().map(str::to_owned).collect();
    sessions.sort_unstable();
    let siblings = siblings(store, source, &sessions).await?;
    let shared: HashMap<&str, Shared<'_>> =
        siblings.iter().map(|(session, several)| (session.as_str(), several.shared())).collect();
    let alone: HashMap<&str, &str> =
        open.iter().filter_map(|f| Some((f.row.text("session_id")?, f.row.id()))).collect();
    let open: HashMap<&str, &WalkedRow> = open.into_iter().map(|f| (f.row.id(), f)).collect();
    let mut given: HashMap<String, Vec<Row>> = HashMap::new();
    for of_events in events(store)? {
        let mut backs = RevisedRows::new(store, of_events, &["episode_id"]).await?;
        let narrow = vec![NarrowCondition::OneOf("session_id", &sessions)];
        let columns = with_owner(&EVENT, erased.as_ref());
        let walk = RowWalk { source: of_events, columns: &columns, stored: &backs.stored, narrow };
        let rows = if sessions.is_empty() { Vec::new() } else { store.walk_all(&walk).await? };
        for event in rows {
            let Some(session) = event.row.text("session_id") else { continue };
            let episode = match shared.get(session) {
                Some(several) => several.owner(&event.row),
                None => alone.get(session).copied().filter(|id| event.row.text("episode_id").is_none_or(|n| n == *id)),
            };
            let Some(episode) = episode else { continue };
            if !open.contains_key(episode) {
                continue;
            }
            if owned(&event.row) {
                spared += 1;
                continue;
            }
            let episode = episode.to_owned();
            let link = vec![("episode_id", Value::from(episode.clone()))];
            if event.row.get("episode_id").is_null()
                && backs.row(&event.key, &event.stored, link.clone()).map_err(ChangeError::Refused)?
            {
                note(&mut draft, &event.row, &link);
            }
            given.entry(episode).or_default().push(event.row);
        }
        backs.push(&mut draft);
    }
    let mut given: Vec<(String, Vec<Row>)> = given.into_iter().collect();
    given.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (id, mut rows) in given {
        let Some(episode) = open.get(id.as_str()) else { continue };
        rows.sort_by(|a, b| (a.text("created_at"), a.id()).cmp(&(b.text("created_at"), b.id())));
        let ids: Vec<Value> = rows.iter().map(|r| r.get("id").clone()).collect();
        let values = vec![("canvas_action_count", Value::from(ids.len())), ("canvas_ids", Value::from(ids))];
        if lists.row(&episode.key, &episode.stored, values.clone()).map_err(ChangeError::Refused)? {
            note(&mut draft, &episode.row, &values);
        }
    }
    lists.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(String::new()), next, seen: found.len(), bad: Vec::new() })
}

/// The episodes of a session, and the events that their lists name.
#[derive(Default)]
struct EventSession {
    episodes: Vec<Row>,
    listed: HashSet<String>,
}

impl EventSession {
    fn shared(&self) -> Shared<'_> {
        let spans: Vec<EpisodeSpan<'_>> = self
            .episodes
            .iter()
            .map(|e| EpisodeSpan { id: e.id(), started: e.text("started_at"), ended: e.text("ended_at") })
            .collect();
        Shared { session: self, spans: SessionSpans::new(&spans) }
    }
}

/// A session with several episodes, whose events are told apart.
struct Shared<'s> {
    session: &'s EventSession,
    spans: SessionSpans<'s>,
}

impl<'s> Shared<'s> {
    /// The episode that an event belongs to; none when it is listed by one of them already.
    fn owner(&self, event: &Row) -> Option<&'s str> {
        if self.session.listed.contains(event.id()) {
            return None;
        }
        let moment = CanvasEventTime { at: event.text("created_at"), names: event.text("episode_id") };
        self.spans.owner(moment).map(|i| self.session.episodes[i].id())
    }
}

/// All episodes, linked or not, of those sessions that have several.
async fn siblings(
    store: &Store,
    source: &BoundSource,
    sessions: &[String],
) -> Result<HashMap<String, EventSession>, ChangeError> {
    let mut all: HashMap<String, EventSession> = HashMap::new();
    if sessions.is_empty() {
        return Ok(all);
    }
    let of = |sessions| RowWalk {
        source,
        columns: &EPISODE,
        stored: &[],
        narrow: vec![NarrowCondition::OneOf("session_id", sessions)],
    };
    let several = store.walk_shared(&of(sessions), "session_id").await?;
    if several.is_empty() {
        return Ok(all);
    }
    for found in store.walk_all(&of(&several)).await? {
        let Some(session) = found.row.text("session_id") else { continue };
        let session = all.entry(session.to_owned()).or_default();
        session.listed.extend(found.row.list("canvas_ids").into_iter().map(str::to_owned));
        session.episodes.push(found.row);
    }
    Ok(all)
}
