//! Links episodes with an empty list of canvas events to the canvas events of their session: the list, the count and
//! the back-link. A non-empty list is never changed, and no event is linked to two episodes, also of other sessions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::naming::{NamingEpisodes, ReadOnce};
use super::sources::{ERASED, RevisedRows, SourcePlace, note, spare, unusual, usual_or, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::digest::{Digest, wide_digest};
use crate::memory::session_links::{CanvasEventTime, SessionSpans, SpannedEpisode, user_of};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow};

const EPISODE: [&str; 7] =
    ["id", "session_id", "user_id", "started_at", "ended_at", "canvas_ids", "canvas_action_count"];
const EVENT: [&str; 5] = ["id", "session_id", "user_id", "episode_id", "created_at"];
const LISTED: [&str; 2] = ["canvas_ids", "canvas_action_count"];

#[derive(Default)]
struct CanvasLinks {
    kept: Mutex<Kept>,
    /// The events listed when the run began, also by episodes of other sessions. Those that episodes of a session list
    /// meanwhile are looked up again with the session.
    listed: ReadOnce<NamingEpisodes>,
}

/// Most events of several sessions in memory, and most back-links to several episodes that a batch sets.
const EVENTS: usize = 50_000;

/// Back-links per batch to an episode with more events than that.
const LINKED: usize = 10_000;

/// Unfinished sessions read by the last batch. The next one needs most of them again, and a session may have more
/// events than many batches have episodes.
#[derive(Default)]
struct Kept {
    /// Position of the batch they are kept for: a batch that is planned again reads them again.
    next: Option<Value>,
    sessions: BTreeMap<String, EventSession>,
}

/// A session as read.
#[derive(Default)]
struct EventSession {
    /// A batch before read it.
    is_kept: bool,
    /// Number of its episodes, followed by that of its events in all sources.
    episodes: u64,
    events: u64,
    /// The unlisted events of each episode, in time order.
    given: HashMap<String, Vec<Event>>,
}

/// A canvas event of a session, which may have very many.
struct Event {
    /// Position of its source.
    source: u32,
    /// True when the event is about an erased person.
    is_erased: bool,
    id: Box<str>,
    at: Option<Box<str>>,
    names: Option<Box<str>>,
    /// Stands for its user.
    user: u64,
    /// Stored key, and stored link to the episode, where these are not the id and nothing.
    stored: Option<Box<(FetchedValue, Vec<FetchedValue>)>>,
}

impl Event {
    fn new(source: usize, found: WalkedRow, is_erased: bool) -> Self {
        let text = |column: &str| found.row.text(column).map(Box::from);
        let (id, at, names) = (found.row.id().into(), text("created_at"), text("episode_id"));
        let user = user_of(&found.row);
        Event { source: source as u32, is_erased, id, at, names, user, stored: unusual(found) }
    }

    /// Place of the event in the order of time.
    fn place(&self) -> (Option<&str>, &str, u32) {
        (self.at.as_deref(), &self.id, self.source)
    }
}

/// The last event of an episode that points back to it already: of very many, several batches link a part each.
#[derive(Serialize, Deserialize)]
struct LinkedUpTo {
    episode: String,
    at: Option<String>,
    event: String,
    source: u32,
}

impl LinkedUpTo {
    fn new(episode: &str, event: &Event) -> Self {
        let (at, event, source) = event.place();
        LinkedUpTo { episode: episode.to_owned(), at: at.map(str::to_owned), event: event.to_owned(), source }
    }

    fn place(&self) -> (Option<&str>, &str, u32) {
        (self.at.as_deref(), &self.event, self.source)
    }
}

/// Links that earlier batches made for an episode.
struct LinkedPart {
    up_to: Option<LinkedUpTo>,
    /// Whether it is a preview: events do not show earlier links.
    is_dry: bool,
}

/// The backfill, if the database can store the links.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    episodes(store)?;
    events(store)?;
    Ok(Box::new(CanvasLinks::default()))
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
            Ok(Some(store.walks().walk_count_all(walks).await?))
        })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(self.plan(ask))
    }

    /// Returns true: the spans of all episodes of a session, linked or not, determine an event's episode, so links made
    /// by the previous batch do not affect this one.
    fn plans_ahead(&self) -> bool {
        true
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "the only episode of a session gets all events that name no other episode".to_owned(),
            "in a session with several episodes, each event goes to the episode whose time span holds it, otherwise to \
             the last episode that started before it"
                .to_owned(),
            "an event of another user than the episode's, from before the episode, or listed by any episode, is not linked"
                .to_owned(),
        ]
    }
}

/// Episodes with a session and perhaps an empty list.
fn candidates<'a>(source: &'a BoundSource, stored: &'a [String]) -> RowWalk<'a> {
    let narrow = vec![NarrowCondition::Present("session_id"), NarrowCondition::Short("canvas_ids")];
    RowWalk { source, columns: &EPISODE, stored, narrow }
}

/// Whether this backfill can fill the empty lists of a source.
pub fn fills(store: &Store, source: &BoundSource) -> bool {
    let is_source = |of: Vec<&BoundSource>| of.into_iter().any(|other| std::ptr::eq(other, source));
    episodes(store).is_ok_and(is_source) && events(store).is_ok()
}

/// Whether an episode belongs to a session.
pub fn has_session(row: &Row) -> bool {
    row.text("session_id").is_some_and(|s| !s.trim().is_empty())
}

/// Whether a list can be filled: it is empty, and completely readable.
fn is_open(row: &Row) -> bool {
    has_session(row) && row.list("canvas_ids").is_empty() && row.is_readable("canvas_ids")
}

impl CanvasLinks {
    async fn plan(&self, ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
        let store = ask.store;
        let sources = episodes(store)?;
        let place = SourcePlace::read(ask.place);
        let mut draft = Draft::batch(store, ask.own, "backfill.canvas-links", ChangeDanger::Guarded);
        let Some(source) = sources.get(place.source).copied() else {
            return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
        };
        let mut lists = RevisedRows::new(store, source, &LISTED).await?;
        let mut backs = Vec::new();
        for of_events in events(store)? {
            backs.push((of_events, RevisedRows::new(store, of_events, &["episode_id"]).await?));
        }
        let erased = Erased::of(store).await?;
        let columns = with_owner(&EPISODE, erased.as_ref());
        let wanted = RowWalk { columns: &columns, ..candidates(source, &lists.stored) };
        let WalkedPart { rows: mut found, mut is_full } =
            store.walks().walk(&wanted, place.after.as_ref(), ask.size).await?;
        let of_events: Vec<(&BoundSource, &[String])> = backs.iter().map(|(s, b)| (*s, &b.stored[..])).collect();
        self.listed.begin(ask.place);
        let listed = self.listed.get(NamingEpisodes::of_events(store)).await?;
        let reading = Reading { store, source, events: &of_events, erased: erased.as_ref(), listed: &listed };
        let up_to = serde_json::from_value(ask.place["linked"].clone()).ok();
        let part = LinkedPart { up_to, is_dry: ask.dry };
        let mut sessions = self.kept(ask.place);
        while let Some(most) = reading.too_many(&mut sessions, &found, &part).await? {
            found.truncate(most);
            is_full = true;
        }
        let mut next = place.behind(found.last().map(|f| &f.key), is_full, sources.len());
        let mut spared = found.iter().filter(|f| is_open(&f.row) && reading.is_erased(&f.row)).count();
        let mut open = reading.open(&found);
        open.sort_unstable_by(|a, b| a.row.id().cmp(b.row.id()));
        let mut seen = found.len();
        let most = if open.len() > 1 { EVENTS } else { LINKED };
        for episode in open {
            let id = episode.row.id();
            let session = episode.row.text("session_id").and_then(|session| sessions.get_mut(session));
            let Some(session) = session else { continue };
            let link = vec![("episode_id", episode.row.get("id").clone())];
            let loose = session.loose(id, &part);
            for event in loose.iter().take(most) {
                let (_, backs) = &mut backs[event.source as usize];
                let (key, stored) = usual_or(&event.id, event.stored.as_deref());
                if backs.row(&key, &stored, link.clone()).map_err(ChangeError::Refused)? {
                    let before = Row::with(Entity::CanvasEvent, [("id", Value::from(&*event.id))]);
                    note(&mut draft, &before, &link);
                }
            }
            // It is alone: its list is set once all back-links are set.
            if let Some(last) = loose.get(most).and(loose.get(most - 1)) {
                let linked = LinkedUpTo::new(id, last);
                next = Some(json!({ "source": place.source, "after": place.after, "linked": linked }));
                (seen, spared) = (0, 0);
                break;
            }
            drop(loose);
            let mut given = session.given.remove(id).unwrap_or_default();
            let all = given.len();
            given.retain(|event| !event.is_erased);
            spared += all - given.len();
            let ids: Vec<Value> = given.into_iter().map(|event| Value::from(String::from(event.id))).collect();
            if ids.is_empty() {
                continue;
            }
            let values = vec![("canvas_action_count", Value::from(ids.len())), ("canvas_ids", Value::from(ids))];
            let shown = if draft.wants_more() { values.clone() } else { Vec::new() };
            if lists.row(&episode.key, &episode.stored, values).map_err(ChangeError::Refused)? {
                note(&mut draft, &episode.row, &shown);
            }
        }
        backs.into_iter().for_each(|(_, backs)| backs.push(&mut draft));
        lists.push(&mut draft);
        spare(&mut draft, ERASED, spared);
        self.keep(next.clone(), sessions);
        Ok(JobBatch { plan: draft.seal_batch(), next, seen, bad: Vec::new() })
    }

    /// The sessions kept by the previous batch for one that begins at a position.
    fn kept(&self, place: &Value) -> BTreeMap<String, EventSession> {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if kept.next.as_ref() == Some(place) { kept.sessions } else { BTreeMap::new() }
    }

    fn keep(&self, next: Option<Value>, mut sessions: BTreeMap<String, EventSession>) {
        sessions.retain(|_, session| session.episodes > 1 || !session.given.is_empty());
        sessions.values_mut().for_each(|session| session.is_kept = true);
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Kept { next, sessions };
    }
}

/// Access to everything that sessions are read from.
struct Reading<'r> {
    store: &'r Store,
    source: &'r BoundSource,
    /// The sources of events, each with the stored columns to read.
    events: &'r [(&'r BoundSource, &'r [String])],
    erased: Option<&'r Erased<'r>>,
    /// The events that any episode listed when the run began.
    listed: &'r NamingEpisodes,
}

impl Reading<'_> {
    fn is_erased(&self, row: &Row) -> bool {
        self.erased.is_some_and(|erased| erased.owns(row))
    }

    /// The episodes among some that need links.
    fn open<'f>(&self, found: &'f [WalkedRow]) -> Vec<&'f WalkedRow> {
        found.iter().filter(|f| is_open(&f.row) && !self.is_erased(&f.row)).collect()
    }

    /// Reads the sessions of some episodes. If these have more events than a batch takes, returns how many episodes to
    /// try instead; a single one never has too many.
    async fn too_many(
        &self,
        sessions: &mut BTreeMap<String, EventSession>,
        found: &[WalkedRow],
        part: &LinkedPart,
    ) -> Result<Option<usize>, ChangeError> {
        let open = self.open(found);
        let is_amid =
            |up_to: &LinkedUpTo| sessions.values().any(|session| session.loose(&up_to.episode, part).len() > LINKED);
        let is_amid = part.up_to.as_ref().is_some_and(is_amid);
        if self.sessions(sessions, &open, is_amid).await? {
            let of = |f: &&WalkedRow| Some((f.row.id().to_owned(), sessions.get(f.row.text("session_id")?)?));
            let links = open.iter().filter_map(of).map(|(id, session)| session.loose(&id, part).len());
            if open.len() < 2 || links.sum::<usize>() <= EVENTS {
                return Ok(None);
            }
        }
        let first = open.get(open.len().div_ceil(4));
        Ok(first.and_then(|first| found.iter().position(|f| std::ptr::eq(f, *first))))
    }

    /// Reads the sessions of some open episodes: the kept ones if nothing was added or deleted in them, otherwise their
    /// current state. Returns false if several have too many events for memory. While the events of one session are
    /// processed, changes are only checked by the last batch.
    async fn sessions(
        &self,
        kept: &mut BTreeMap<String, EventSession>,
        open: &[&WalkedRow],
        is_amid: bool,
    ) -> Result<bool, ChangeError> {
        let named: HashSet<&str> = open.iter().filter_map(|f| f.row.text("session_id")).collect();
        kept.retain(|session, _| named.contains(session.as_str()));
        if !is_amid && !self.still(kept).await? {
            kept.clear();
        }
        let missing = named.into_iter().filter(|session| !kept.contains_key(*session));
        let mut missing: Vec<String> = missing.map(str::to_owned).collect();
        missing.sort_unstable();
        if missing.is_empty() {
            return Ok(true);
        }
        let read = self.read(&missing, open).await?;
        let is_read = read.is_some();
        kept.extend(read.into_iter().flatten());
        Ok(is_read)
    }

    fn walk<'w>(&'w self, sessions: &'w [String]) -> RowWalk<'w> {
        let narrow = vec![NarrowCondition::OneOf("session_id", sessions)];
        RowWalk { source: self.source, columns: &EPISODE, stored: &[], narrow }
    }

    /// Whether some sessions have as many episodes and events as before.
    async fn still(&self, kept: &BTreeMap<String, EventSession>) -> Result<bool, ChangeError> {
        if kept.is_empty() {
            return Ok(true);
        }
        let sessions: Vec<String> = kept.keys().cloned().collect();
        let walk = self.walk(&sessions);
        let episodes = self.store.walks().walk_count(&walk).await?;
        let events = self.events.iter().map(|(source, _)| RowWalk { source, ..walk.clone() });
        let events = self.store.walks().walk_count_all(events).await?;
        Ok(kept.values().map(|session| session.episodes).sum::<u64>() == episodes
            && kept.values().map(|session| session.events).sum::<u64>() == events)
    }

    /// Reads sessions: all events, and then all episodes of those with several, linked or not. In the episodes' lists,
    /// which may be long, only those events are searched for. `None` if several have too many events.
    async fn read(
        &self,
        sessions: &[String],
        open: &[&WalkedRow],
    ) -> Result<Option<BTreeMap<String, EventSession>>, ChangeError> {
        let mut events: HashMap<String, Vec<Event>> = HashMap::new();
        let mut held = 0;
        let columns = with_owner(&EVENT, self.erased);
        for (position, (source, stored)) in self.events.iter().enumerate() {
            let walk = RowWalk { source, columns: &columns, stored, ..self.walk(sessions) };
            self.store
                .walks()
                .walk_until(&walk, |found| {
                    let is_erased = self.is_erased(&found.row);
                    if let Some(session) = found.row.text("session_id").map(str::to_owned) {
                        events.entry(session).or_default().push(Event::new(position, found, is_erased));
                        held += 1;
                    }
                    if held > EVENTS && events.len() > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .await?;
            if held > EVENTS && events.len() > 1 {
                return Ok(None);
            }
        }
        let several = self.store.walks().walk_shared(&self.walk(sessions), "session_id").await?;
        let mut episodes: BTreeMap<&str, SessionEpisodes> =
            sessions.iter().map(|name| (name.as_str(), SessionEpisodes::with(events.get(name), self.listed))).collect();
        let mut add = |row: &Row| {
            if let Some(of_session) = row.text("session_id").and_then(|name| episodes.get_mut(name)) {
                of_session.add(row);
            }
        };
        if !several.is_empty() {
            self.store.walks().walk_each(&self.walk(&several), |found| add(&found.row)).await?;
        }
        self.listed.check()?;
        let several: HashSet<&str> = several.iter().map(String::as_str).collect();
        let alone = open.iter().filter(|f| f.row.text("session_id").is_none_or(|name| !several.contains(name)));
        alone.for_each(|found| add(&found.row));
        let shared_out = |(name, episodes): (&str, SessionEpisodes)| {
            (name.to_owned(), EventSession::new(&episodes, events.remove(name).unwrap_or_default()))
        };
        Ok(Some(episodes.into_iter().map(shared_out).collect()))
    }
}

/// The episodes of a session, and its events that no episode lists.
struct SessionEpisodes {
    episodes: Vec<SpannedEpisode>,
    unlisted: HashSet<[Digest; 2]>,
}

impl SessionEpisodes {
    /// No episode yet.
    fn with(events: Option<&Vec<Event>>, listed: &NamingEpisodes) -> Self {
        let unlisted = events.into_iter().flatten().filter(|event| !listed.has(&event.id));
        let unlisted = unlisted.map(|event| wide_digest(&event.id)).collect();
        SessionEpisodes { episodes: Vec::new(), unlisted }
    }

    fn add(&mut self, row: &Row) {
        if !self.unlisted.is_empty() {
            for id in row.list("canvas_ids") {
                self.unlisted.remove(&wide_digest(id));
            }
        }
        self.episodes.push(SpannedEpisode::of(row));
    }
}

impl EventSession {
    /// Assigns each event to its episode. Events that an episode already lists stay with it.
    fn new(SessionEpisodes { episodes, unlisted }: &SessionEpisodes, mut events: Vec<Event>) -> Self {
        let spans = SessionSpans::new(&episodes.iter().map(SpannedEpisode::span).collect::<Vec<_>>());
        let owner = |event: &Event| {
            let moment = CanvasEventTime { at: event.at.as_deref(), names: event.names.as_deref(), user: event.user };
            let owner = spans.owner(moment).filter(|_| unlisted.contains(&wide_digest(&event.id)));
            owner.map(|position| &episodes[position].id)
        };
        let (all, mut given) = (events.len() as u64, HashMap::<String, Vec<Event>>::new());
        if let [only] = &episodes[..] {
            events.retain(|event| owner(event).is_some());
            given.insert(only.id.clone(), std::mem::take(&mut events));
        }
        for event in events {
            if let Some(episode) = owner(&event) {
                match given.get_mut(episode) {
                    Some(known) => known.push(event),
                    None => drop(given.insert(episode.clone(), vec![event])),
                }
            }
        }
        given.values_mut().for_each(|events| events.sort_unstable_by(|a, b| a.place().cmp(&b.place())));
        EventSession { is_kept: false, episodes: episodes.len() as u64, events: all, given }
    }

    /// The events that need a back-link to an episode, in order: as many as a batch takes, and one more. Events linked
    /// by earlier batches show it once they are read again.
    fn loose(&self, episode: &str, part: &LinkedPart) -> Vec<&Event> {
        let given = self.given.get(episode).map(Vec::as_slice).unwrap_or_default();
        let up_to = part.up_to.as_ref().filter(|up_to| up_to.episode == episode && (self.is_kept || part.is_dry));
        let linked = up_to.map_or(0, |up_to| given.partition_point(|event| event.place() <= up_to.place()));
        let is_loose = |event: &&Event| event.names.is_none() && !event.is_erased;
        given[linked..].iter().filter(is_loose).take(EVENTS + 1).collect()
    }
}
