//! Fixes links: lists name each linked row once, and only existing rows; links lead both ways; cases refer to existing
//! cases. An event belongs to the episode that lists it, whatever its back-link says; `canvas-links` fills empty lists.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::canvas_links;
use super::naming::{NamingEpisodes, ReadOnce, walk_named};
use super::sources::{CLAIMED, ERASED, RevisedRows, SourcePlace, note, note_taken, spare, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::{Entity, Row};
use crate::store::encode::{plain_column, table_of};
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow};
use crate::store::{Store, named_ids};

const EPISODE: [&str; 6] = ["id", "session_id", "canvas_ids", "canvas_action_count", "feedback_ids", "metadata"];
const LISTED: [&str; 2] = ["canvas_ids", "feedback_ids"];
/// Columns of an episode that are corrected.
const CORRECTED: [&str; 3] = ["canvas_ids", "canvas_action_count", "feedback_ids"];
const EVENT: [&str; 3] = ["id", "episode_id", "created_at"];
const REFERENCES: &str = "reference_case_ids";
const CASE: [&str; 2] = ["id", REFERENCES];

#[derive(Default)]
struct LinkBackfill {
    /// The events listed when the run began.
    listed: ReadOnce<NamingEpisodes>,
}

/// The backfill, if lists of links can be written.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    if sources(store).is_empty() {
        let none = "the layout has no list of canvas events, of feedback or of cases that could be written here";
        return Err(ChangeError::Refused(none.to_owned()));
    }
    Ok(Box::new(LinkBackfill::default()))
}

/// Episodes and cases with a list that can be written.
fn sources(store: &Store) -> Vec<&BoundSource> {
    let of = |entity, lists: &[&str]| {
        let sources = writable(store, entity, &[]).unwrap_or_default();
        sources.into_iter().filter(|s| lists.iter().any(|l| plain_column(s, l).is_some())).collect::<Vec<_>>()
    };
    [of(Entity::Episode, &LISTED), of(Entity::Case, &[REFERENCES])].concat()
}

impl Job for LinkBackfill {
    fn name(&self) -> &'static str {
        "links"
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let linked = writable(store, Entity::CanvasEvent, &["episode_id"]).unwrap_or_default();
        let mut tables: Vec<TableName> = sources(store).into_iter().chain(linked).map(table_of).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        let walk = |source| RowWalk { source, columns: &["id"], stored: &[], narrow: Vec::new() };
        Box::pin(async move { Ok(Some(store.walks().walk_count_all(sources(store).into_iter().map(walk)).await?)) })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(ask, &self.listed))
    }

    fn effects(&self) -> Vec<String> {
        [
            "ids of missing rows, and repetitions, are removed from the lists of episodes and cases",
            "a canvas event that points back to an episode is added to its list, if no episode lists it; an empty list of a \
             session with events is left to `backfill canvas-links`",
            "the stored count of canvas events follows each list that changes",
            "a canvas event that exactly one episode names, and that points back to none, gets a back-link to it",
            "back-links to other episodes stay, and so does a list that cannot be read",
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

async fn batch(ask: BatchAsk<'_>, listed: &ReadOnce<NamingEpisodes>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let sources = sources(store);
    let place = SourcePlace::read(ask.place);
    listed.begin(ask.place);
    let mut draft = Draft::batch(store, ask.own, "backfill.links", ChangeDanger::Guarded);
    let Some(source) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
    };
    let is_case = source.entity == Entity::Case;
    let mut lists = RevisedRows::new(store, source, if is_case { &[REFERENCES] } else { &CORRECTED }).await?;
    let erased = Erased::of(store).await?;
    let columns = with_owner(if is_case { &CASE } else { &EPISODE }, erased.as_ref());
    let walk = RowWalk { source, columns: &columns, stored: &lists.stored, narrow: Vec::new() };
    let WalkedPart { rows: found, is_full } = store.walks().walk(&walk, place.after.as_ref(), ask.size).await?;
    let next = place.behind(found.last().map(|f| &f.key), is_full, sources.len());
    let (seen, mut spared) = (found.len(), 0);
    let rows: Vec<&Row> = found.iter().map(|f| &f.row).collect();
    let mut right: Right = vec![Vec::new(); found.len()];
    if is_case {
        references(store, &rows, &mut right).await?;
    } else if let Some(linked) = Linked::read(store, source, Entity::CanvasEvent, &rows).await? {
        let (pointing, claimed) = linked.pointing((store, listed), source, &rows).await?;
        spare(&mut draft, CLAIMED, claimed);
        linked.lists(&rows, "canvas_ids", &pointing, &mut right);
        linked.counts(&rows, &mut right);
        spared += point_back((store, listed), &rows, &linked, erased.as_ref(), &mut draft).await?;
    }
    if !is_case && let Some(linked) = Linked::read(store, source, Entity::Feedback, &rows).await? {
        linked.lists(&rows, "feedback_ids", &PointingEvents::new(), &mut right);
    }
    for (mut found, values) in found.into_iter().zip(right).filter(|(_, values)| !values.is_empty()) {
        if erased.as_ref().is_some_and(|erased| erased.owns(&found.row)) {
            spared += 1;
        } else if lists.row(&found.key, &found.stored, values.clone()).map_err(ChangeError::Refused)? {
            note_taken(&mut draft, &mut found.row, &values);
        }
    }
    lists.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(), next, seen, bad: Vec::new() })
}

/// Corrected lists of some rows, row by row; only the lists that differ from the stored ones.
type Right = Vec<Vec<(&'static str, Value)>>;

/// Returns the corrected list with its name; `None` if it equals the stored one, or that is unreadable.
fn changed(row: &Row, list: &'static str, right: &[&str]) -> Option<(&'static str, Value)> {
    (row.is_readable(list) && row.list(list) != right).then(|| (list, json!(right)))
}

/// Removes missing cases, and repeats, from the references of cases.
async fn references(store: &Store, rows: &[&Row], right: &mut Right) -> Result<(), ChangeError> {
    let named = distinct(rows.iter().flat_map(|row| row.list(REFERENCES)));
    let mut there: HashSet<String> = HashSet::new();
    for source in store.sources_of(Entity::Case)? {
        let take = |f: WalkedRow| there.extend([f.row.id().to_owned()]);
        walk_named(store, (source, &["id"]), "id", &named, take).await?;
    }
    for (row, right) in rows.iter().zip(right) {
        let kept = once(row.list(REFERENCES).into_iter().filter(|id| there.contains(*id)));
        right.extend(changed(row, REFERENCES, &kept));
    }
    Ok(())
}

fn distinct<'i>(ids: impl Iterator<Item = &'i str>) -> Vec<&'i str> {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn once<'i>(ids: impl Iterator<Item = &'i str>) -> Vec<&'i str> {
    let mut seen = HashSet::new();
    ids.filter(|id| seen.insert(*id)).collect()
}

/// A linked row: there may be very many.
struct LinkedRow {
    /// Episode that it points back to.
    back: Option<Box<str>>,
    at: Option<Box<str>>,
}

/// Rows of one entity that some episodes name, or that have back-links to them.
struct Linked<'r> {
    /// The rows by their ids.
    rows: BTreeMap<String, LinkedRow>,
    /// Ids that each episode names in any way.
    named: HashMap<&'r str, Vec<Cow<'r, str>>>,
}

impl LinkedRow {
    fn of(row: &Row) -> Self {
        let text = |column: &str| row.text(column).filter(|text| !text.is_empty()).map(Into::into);
        LinkedRow { back: text("episode_id"), at: text("created_at") }
    }
}

impl<'r> Linked<'r> {
    /// Reads them; `None` if the database does not have the entity, so that missing rows mean nothing.
    async fn read(
        store: &Store,
        source: &BoundSource,
        to: Entity,
        episodes: &[&'r Row],
    ) -> Result<Option<Linked<'r>>, ChangeError> {
        let Ok(sources) = store.sources_of(to) else { return Ok(None) };
        let named: HashMap<&str, Vec<Cow<'_, str>>> =
            episodes.iter().map(|row| (row.id(), named_ids(row, &source.links, to))).collect();
        let ids = distinct(named.values().flatten().map(AsRef::as_ref));
        let own = distinct(episodes.iter().map(|row| row.id()));
        let mut rows = BTreeMap::new();
        for of_rows in sources {
            let mut ways = vec![("id", &ids)];
            if to == Entity::CanvasEvent && plain_column(of_rows, "episode_id").is_some() {
                ways.push(("episode_id", &own));
            }
            for (column, texts) in ways {
                let take = |f: WalkedRow| drop(rows.insert(f.row.id().to_owned(), LinkedRow::of(&f.row)));
                walk_named(store, (of_rows, &EVENT), column, texts, take).await?;
            }
        }
        Ok(Some(Linked { rows, named }))
    }

    /// The events that point back to episodes which do not name them, by episode and in time order, without those of empty
    /// lists that `canvas-links` fills. Events that another episode lists are left out; returns their number too.
    async fn pointing<'l>(
        &'l self,
        (store, listed): (&Store, &ReadOnce<NamingEpisodes>),
        source: &BoundSource,
        episodes: &[&Row],
    ) -> Result<(PointingEvents<'l>, usize), ChangeError> {
        let mut more: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
        for (id, row) in &self.rows {
            if let Some(episode) = &row.back {
                more.entry(episode).or_default().push((row.at.as_deref().unwrap_or_default(), id));
            }
        }
        more.retain(|episode, more| {
            let named: HashSet<&str> = self.named.get(episode).into_iter().flatten().map(AsRef::as_ref).collect();
            more.retain(|(_, event)| !named.contains(event));
            !more.is_empty() && self.named.contains_key(episode)
        });
        if more.is_empty() {
            return Ok((PointingEvents::new(), 0));
        }
        let listed = listed.get(NamingEpisodes::of_events(store)).await?;
        let events = more.values().flatten().map(|(_, event)| *event);
        let claimed: HashSet<&str> = events.filter(|event| listed.has(event)).collect();
        listed.check()?;
        // A list of missing rows only is empty from now on.
        let keeps = |row: &Row| row.list("canvas_ids").iter().any(|id| self.rows.contains_key(*id));
        let is_empty = |row: &&Row| more.contains_key(row.id()) && canvas_links::has_session(row) && !keeps(row);
        let empty: Vec<&Row> = episodes.iter().copied().filter(is_empty).collect();
        let left = filled_by_session(store, source, &empty).await?;
        more.retain(|episode, _| !left.contains(*episode));
        let in_order = |mut more: Vec<(&'l str, &'l str)>| {
            more.sort_unstable();
            more.into_iter().map(|(_, event)| event).filter(|event| !claimed.contains(event)).collect()
        };
        let pointing = more.into_iter().map(|(episode, more)| (episode, in_order(more))).collect();
        Ok((pointing, claimed.len()))
    }

    /// Corrects a list of the episodes: it should contain its existing rows, and the canvas events that point back to it.
    fn lists(&self, episodes: &[&Row], list: &'static str, pointing: &PointingEvents<'_>, right: &mut Right) {
        for (row, right) in episodes.iter().zip(right) {
            let more = pointing.get(row.id()).into_iter().flatten().copied();
            let kept = row.list(list).into_iter().filter(|id| self.rows.contains_key(*id));
            right.extend(changed(row, list, &once(kept.chain(more))));
        }
    }

    /// Adds the number of linked canvas events to each changed list of them: the listed ones, and those that the episode names
    /// in another way.
    fn counts(&self, episodes: &[&Row], right: &mut Right) {
        for (episode, right) in episodes.iter().zip(right) {
            let Some((_, list)) = right.iter().find(|(column, _)| *column == "canvas_ids") else { continue };
            let named = self.named.get(episode.id()).into_iter().flatten().map(AsRef::as_ref);
            let listed = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            let events: HashSet<&str> = named.filter(|id| self.rows.contains_key(*id)).chain(listed).collect();
            let count = Value::from(events.len());
            right.extend((*episode.get("canvas_action_count") != count).then_some(("canvas_action_count", count)));
        }
    }
}

/// Canvas events to be added to lists, by episode.
type PointingEvents<'l> = HashMap<&'l str, Vec<&'l str>>;

/// The episodes with an empty list that `canvas-links` fills: their session has an event that names them or none.
async fn filled_by_session(
    store: &Store,
    source: &BoundSource,
    episodes: &[&Row],
) -> Result<HashSet<String>, ChangeError> {
    let mut filled = HashSet::new();
    let mut of_session: HashMap<&str, Vec<&str>> = HashMap::new();
    for row in episodes.iter().filter(|_| canvas_links::fills(store, source)) {
        of_session.entry(row.text("session_id").unwrap_or_default()).or_default().push(row.id());
    }
    let sessions = distinct(of_session.keys().copied());
    for of_events in store.sources_of(Entity::CanvasEvent)? {
        let take = |found: WalkedRow| {
            let names = found.row.text("episode_id").filter(|names| !names.is_empty());
            let of = found.row.text("session_id").and_then(|session| of_session.get(session));
            let open = of.into_iter().flatten().filter(|id| names.is_none_or(|names| names == **id));
            filled.extend(open.map(|id| (*id).to_owned()));
        };
        walk_named(store, (of_events, &["id", "session_id", "episode_id"]), "session_id", &sessions, take).await?;
    }
    Ok(filled)
}

/// Sets the back-link of canvas events that exactly one episode names and that have none. Returns how many were left
/// out because of the person they are about.
async fn point_back(
    (store, listed): (&Store, &ReadOnce<NamingEpisodes>),
    episodes: &[&Row],
    linked: &Linked<'_>,
    erased: Option<&Erased<'_>>,
    draft: &mut Draft<'_>,
) -> Result<usize, ChangeError> {
    let mut by: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in episodes {
        let named = linked.named.get(row.id()).into_iter().flatten();
        for id in named.filter(|id| linked.rows.get(&***id).is_some_and(|event| event.back.is_none())) {
            by.entry(id).or_default().push(row);
        }
    }
    let loose: Vec<String> = by.keys().map(|id| (*id).to_owned()).collect();
    let mut spared = 0;
    if loose.is_empty() {
        return Ok(spared);
    }
    // Episodes of other batches may list them too.
    let mut shared: HashSet<&str> = HashSet::new();
    let listed = listed.get(NamingEpisodes::of_events(store)).await?;
    for id in by.keys() {
        let other = listed.of([*id])?.iter().any(|episode| !linked.named.contains_key(episode.as_str()));
        shared.extend(other.then_some(*id));
    }
    for of_rows in writable(store, Entity::CanvasEvent, &["episode_id"]).unwrap_or_default() {
        let mut backs = RevisedRows::new(store, of_rows, &["episode_id"]).await?;
        let columns = with_owner(&EVENT, erased);
        let narrow = vec![NarrowCondition::OneOf("id", &loose)];
        let stored = backs.stored.clone();
        let walk = RowWalk { source: of_rows, columns: &columns, stored: &stored, narrow };
        let mut refused = None;
        let point = |found: WalkedRow| {
            let Some([episode]) = by.get(found.row.id()).map(Vec::as_slice) else { return };
            if shared.contains(found.row.id()) {
                return;
            }
            if erased.is_some_and(|erased| erased.owns(&found.row) || erased.owns(episode)) {
                spared += 1;
                return;
            }
            let link = vec![("episode_id", episode.get("id").clone())];
            match backs.row(&found.key, &found.stored, link.clone()) {
                Ok(true) => note(draft, &found.row, &link),
                Ok(false) => {}
                Err(why) => refused = Some(why),
            }
        };
        store.walks().walk_each(&walk, point).await?;
        if let Some(why) = refused {
            return Err(ChangeError::Refused(why));
        }
        backs.push(draft);
    }
    Ok(spared)
}
