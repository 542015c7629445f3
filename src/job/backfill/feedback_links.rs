//! Links episodes to the feedback that was given on their executions and that they do not list: the list, the aggregate
//! score, and the back-link where there is one. What a list holds stays.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::naming::{NamingEpisodes, ReadOnce, walk_named};
use super::sources::{ERASED, RevisedRows, SourcePlace, note, spare, unusual, usual_or, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::session_links::{CanvasEventTime, SessionSpans, SpannedEpisode, user_of};
use crate::memory::{Entity, Row, feedback, score};
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::hanging::HangingRows;
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow};

const EPISODE: [&str; 7] =
    ["id", "execution_ids", "user_id", "started_at", "ended_at", "feedback_ids", "feedback_score"];
const SAID: [&str; 8] = ["id", "execution_id", "user_id", "episode_id", "kind", "rating", "counts", "created_at"];
/// Episodes whose linked rows are read together.
const TOGETHER: usize = 100;
const LISTED: [&str; 2] = ["feedback_ids", "feedback_score"];

#[derive(Default)]
struct FeedbackLinks {
    /// The episodes of each execution when the run reached their source.
    naming: ReadOnce<NamingEpisodes>,
}

/// The backfill, if the database can store the links.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    episodes(store)?;
    given(store)?;
    Ok(Box::new(FeedbackLinks::default()))
}

fn episodes(store: &Store) -> Result<Vec<&BoundSource>, ChangeError> {
    let sources = writable(store, Entity::Episode, &["feedback_ids"])?;
    let sources: Vec<_> = sources.into_iter().filter(|s| !s.column("execution_ids").is_empty()).collect();
    if sources.is_empty() {
        return Err(ChangeError::Refused(
            "episodes name no executions here, and feedback is linked by execution".to_owned(),
        ));
    }
    Ok(sources)
}

/// Sources of feedback with an execution. Their back-link is written if they have one.
fn given(store: &Store) -> Result<Vec<&BoundSource>, ChangeError> {
    writable(store, Entity::Feedback, &["execution_id"])
}

impl Job for FeedbackLinks {
    fn name(&self) -> &'static str {
        "feedback-links"
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let sources = [episodes(store), given(store)];
        sources.iter().flatten().flatten().map(|s| table_of(s)).collect()
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async move {
            let walks = episodes(store)?.into_iter().map(|source| candidates(source, &[]));
            Ok(Some(store.walks().walk_count_all(walks).await?))
        })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(ask, &self.naming))
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "feedback goes to the episode of its execution; where several episodes name it, to the one whose time span \
             holds it, else to the last that started before it, among those of its user if there are any"
                .to_owned(),
            "the score of an episode becomes the mean of its feedback that counts".to_owned(),
        ]
    }
}

fn candidates<'a>(source: &'a BoundSource, stored: &'a [String]) -> RowWalk<'a> {
    let narrow = vec![NarrowCondition::Present("execution_ids")];
    RowWalk { source, columns: &EPISODE, stored, narrow }
}

fn is_open(row: &Row) -> bool {
    row.is_readable("feedback_ids") && executions_of(row).next().is_some()
}

/// The executions of an episode, without empty ids.
fn executions_of(row: &Row) -> impl Iterator<Item = &str> {
    row.list("execution_ids").into_iter().filter(|id| !id.trim().is_empty())
}

async fn batch(ask: BatchAsk<'_>, naming: &ReadOnce<NamingEpisodes>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let sources = episodes(store)?;
    let place = SourcePlace::read(ask.place);
    naming.begin(&ask.place["after"]);
    let mut draft = Draft::batch(store, ask.own, "backfill.feedback-links", ChangeDanger::Guarded);
    let Some(source) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
    };
    let mut lists = RevisedRows::new(store, source, &LISTED).await?;
    let erased = Erased::of(store).await?;
    let columns = with_owner(&EPISODE, erased.as_ref());
    let wanted = RowWalk { columns: &columns, ..candidates(source, &lists.stored) };
    let WalkedPart { rows: found, is_full } = store.walks().walk(&wanted, place.after.as_ref(), ask.size).await?;
    let next = place.behind(found.last().map(|f| &f.key), is_full, sources.len());
    let owned = |row: &Row| erased.as_ref().is_some_and(|erased| erased.owns(row));
    let (gone, open): (Vec<&WalkedRow>, Vec<&WalkedRow>) =
        found.iter().filter(|f| is_open(&f.row)).partition(|f| owned(&f.row));
    let mut spared = gone.len();
    let open: HashMap<&str, &WalkedRow> = open.into_iter().map(|f| (f.row.id(), f)).collect();
    let executions: HashSet<&str> = open.values().flat_map(|f| executions_of(&f.row)).collect();
    let mut executions: Vec<String> = executions.into_iter().map(str::to_owned).collect();
    executions.sort_unstable();
    let mut linked: BTreeMap<&str, Vec<LinkedFeedback>> = BTreeMap::new();
    for of_said in given(store)? {
        let mut backs = RevisedRows::new(store, of_said, &["episode_id"]).await?;
        let columns = with_owner(&SAID, erased.as_ref());
        let said = said(store, of_said, &columns, &executions, &backs.stored, &owned).await?;
        let owners = owners((store, naming), source, &executions, &said, &open).await?;
        for (said, owner) in said.into_iter().zip(owners) {
            let Some(episode) = owner else { continue };
            if said.is_erased {
                spared += 1;
                continue;
            }
            let link = vec![("episode_id", Value::from(episode))];
            let (key, stored) = usual_or(&said.id, said.stored.as_deref());
            if backs.writes("episode_id")
                && said.names.is_none()
                && backs.row(&key, &stored, link.clone()).map_err(ChangeError::Refused)?
            {
                let before = Row::with(Entity::Feedback, [("id", Value::from(&*said.id))]);
                note(&mut draft, &before, &link);
            }
            let Said { id, at, score, .. } = said;
            linked.entry(episode).or_default().push(LinkedFeedback { id, at, score });
        }
        backs.push(&mut draft);
    }
    let changed: Vec<&WalkedRow> = linked.keys().filter_map(|id| open.get(id).copied()).collect();
    for some in changed.chunks(TOGETHER) {
        let rows: Vec<&Row> = some.iter().map(|found| &found.row).collect();
        let contexts = store.contexts();
        let listed = contexts.linked(&rows, &source.links, Entity::Feedback, Some(feedback::SCORED)).await?;
        for (episode, listed) in some.iter().zip(&listed) {
            let new = linked.remove(episode.row.id()).unwrap_or_default();
            let values = with_feedback(&episode.row, listed, new);
            let shown = if draft.wants_more() { values.clone() } else { Vec::new() };
            if lists.row(&episode.key, &episode.stored, values).map_err(ChangeError::Refused)? {
                note(&mut draft, &episode.row, &shown);
            }
        }
    }
    lists.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(), next, seen: found.len(), bad: Vec::new() })
}

/// The list and the score of an episode that has some feedback already, with more of it. A score that is not the mean of what
/// it has stays: something is in it that nobody can read.
fn with_feedback(episode: &Row, listed: &HangingRows, mut new: Vec<LinkedFeedback>) -> Vec<(&'static str, Value)> {
    new.sort_by(|a, b| (&a.at, &a.id).cmp(&(&b.at, &b.id)));
    new.dedup_by(|a, b| a.id == b.id);
    let is_new: HashSet<&str> = new.iter().map(|row| &*row.id).collect();
    let old = listed.scores().filter(|(id, ..)| !is_new.contains(&**id)).filter_map(|(.., score)| score);
    let mean = feedback::aggregate(old.chain(new.iter().filter_map(|row| row.score)));
    let mut ids = episode.get("feedback_ids").as_array().cloned().unwrap_or_default();
    let is_told = ids.is_empty() || score::is_same_or_unknown(episode.number("feedback_score"), listed.score());
    ids.extend(new.into_iter().map(|row| Value::from(String::from(row.id))));
    let mut values = vec![("feedback_ids", Value::from(ids))];
    values.extend(is_told.then(|| ("feedback_score", json!(mean))));
    values
}

/// Feedback on an execution, without its texts: one execution may have very much of it.
struct Said {
    /// Index of the execution among the requested ones.
    execution: usize,
    id: Box<str>,
    at: Option<Box<str>>,
    names: Option<Box<str>>,
    /// Stands for its user.
    user: u64,
    /// The score, if it counts.
    score: Option<f64>,
    /// True when it is about an erased person.
    is_erased: bool,
    /// Stored key and back-link, unless they are the id and empty.
    stored: Option<Box<(FetchedValue, Vec<FetchedValue>)>>,
}

/// Feedback, reduced to what an episode's list and score need.
struct LinkedFeedback {
    id: Box<str>,
    at: Option<Box<str>>,
    score: Option<f64>,
}

impl Said {
    fn new(found: WalkedRow, execution: usize, is_erased: bool) -> Self {
        let text = |column: &str| found.row.text(column).map(Box::from);
        let (id, at, names) = (found.row.id().into(), text("created_at"), text("episode_id"));
        let score = found.row.number("score").filter(|_| found.row.get("counts") == &Value::Bool(true));
        let user = user_of(&found.row);
        Said { execution, id, at, names, user, score, is_erased, stored: unusual(found) }
    }
}

/// The feedback that was given on some executions, by execution.
async fn said(
    store: &Store,
    source: &BoundSource,
    columns: &[&str],
    executions: &[String],
    stored: &[String],
    owned: &(dyn Fn(&Row) -> bool + Sync),
) -> Result<Vec<Said>, ChangeError> {
    if executions.is_empty() {
        return Ok(Vec::new());
    }
    let narrow = vec![NarrowCondition::OneOf("execution_id", executions)];
    let mut all: Vec<Said> = Vec::new();
    let take = |found: WalkedRow| {
        let execution = found.row.text("execution_id");
        let place = execution.and_then(|named| executions.binary_search_by(|e| e.as_str().cmp(named)).ok());
        if let Some(execution) = place.filter(|_| found.key != FetchedValue::Null) {
            let is_erased = owned(&found.row);
            all.push(Said::new(found, execution, is_erased));
        }
    };
    store.walks().walk_each(&RowWalk { source, columns, stored, narrow }, take).await?;
    all.sort_by_key(|said| said.execution);
    Ok(all)
}

/// The open episode for each feedback row, if any.
async fn owners<'f>(
    (store, naming): (&Store, &ReadOnce<NamingEpisodes>),
    source: &BoundSource,
    executions: &[String],
    said: &[Said],
    open: &HashMap<&'f str, &WalkedRow>,
) -> Result<Vec<Option<&'f str>>, ChangeError> {
    if said.is_empty() {
        return Ok(Vec::new());
    }
    let with_feedback = said.chunk_by(|a, b| a.execution == b.execution);
    let executions_named: HashSet<&str> = with_feedback.map(|said| executions[said[0].execution].as_str()).collect();
    let naming = naming.get(NamingEpisodes::read(store, &[source], "execution_ids")).await?;
    let mut ids = naming.of(executions_named.iter().copied())?;
    let is_named = |f: &&&WalkedRow| executions_of(&f.row).any(|name| executions_named.contains(name));
    ids.extend(open.values().filter(is_named).map(|f| f.row.id().to_owned()));
    ids.sort_unstable();
    ids.dedup();
    let runs = Runs::read(store, source, &executions_named, &ids, said).await?;
    let mut owners = Vec::with_capacity(said.len());
    for said in said.chunk_by(|a, b| a.execution == b.execution) {
        let run = runs.of(&executions[said[0].execution]);
        let open = |id: &str| open.get_key_value(id).map(|(id, _)| *id);
        owners.extend(said.iter().map(|said| run.owner(said).and_then(open)));
    }
    Ok(owners)
}

/// The episodes that name some executions, linked or not, and which of them list the feedback. An episode may name very
/// many executions and list very much: it is held once, without its lists.
struct Runs<'s> {
    episodes: Vec<SpannedEpisode>,
    /// Indexes of the episodes of each execution.
    of: HashMap<&'s str, Vec<usize>>,
    /// Places of the episodes that list a feedback.
    listing: HashMap<&'s str, Vec<usize>>,
}

impl<'s> Runs<'s> {
    async fn read(
        store: &Store,
        source: &BoundSource,
        executions: &HashSet<&'s str>,
        ids: &[String],
        said: &'s [Said],
    ) -> Result<Runs<'s>, ChangeError> {
        let mut runs = Runs { episodes: Vec::new(), of: HashMap::new(), listing: HashMap::new() };
        let of_feedback: HashSet<&'s str> = said.iter().map(|said| &*said.id).collect();
        let add = |found: WalkedRow| runs.add(&found.row, executions, &of_feedback);
        walk_named(store, (source, &EPISODE), "id", ids, add).await?;
        Ok(runs)
    }

    fn add(&mut self, row: &Row, executions: &HashSet<&'s str>, of_feedback: &HashSet<&'s str>) {
        let place = self.episodes.len();
        for execution in row.list("execution_ids").into_iter().filter_map(|id| executions.get(id)) {
            let of = self.of.entry(execution).or_default();
            if of.last() != Some(&place) {
                of.push(place);
            }
        }
        for id in row.list("feedback_ids").into_iter().filter_map(|id| of_feedback.get(id)) {
            self.listing.entry(id).or_default().push(place);
        }
        self.episodes.push(SpannedEpisode::of(row));
    }

    fn of(&self, execution: &str) -> ExecutionRun<'_> {
        let places = self.of.get(execution).map_or(&[][..], Vec::as_slice);
        let spans = SessionSpans::new(&places.iter().map(|at| self.episodes[*at].span()).collect::<Vec<_>>());
        ExecutionRun { runs: self, places, spans }
    }
}

/// The episodes of one execution, prepared for look-ups of a feedback row's owner.
struct ExecutionRun<'r> {
    runs: &'r Runs<'r>,
    places: &'r [usize],
    spans: SessionSpans<'r>,
}

impl<'r> ExecutionRun<'r> {
    /// The episode of a feedback row; `None` if one of its execution lists it already. Lists of other executions'
    /// episodes do not count: their readers would not find it here, and another batch would not see them.
    fn owner(&self, said: &Said) -> Option<&'r str> {
        let listing = self.runs.listing.get(&*said.id);
        // Places are in order.
        if listing.into_iter().flatten().any(|place| self.places.binary_search(place).is_ok()) {
            return None;
        }
        let moment = CanvasEventTime { at: said.at.as_deref(), names: said.names.as_deref(), user: said.user };
        self.spans.feedback_owner(moment).map(|at| &*self.runs.episodes[self.places[at]].id)
    }
}
