//! Links episodes whose list of feedback is empty to the feedback that was given on their executions: the list, the
//! aggregate score, and the back-link where there is one. A list that holds anything is never touched.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::sources::{ERASED, RevisedRows, SourcePlace, note, spare, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::session_links::{CanvasEventTime, EpisodeSpan, SessionSpans};
use crate::memory::{Entity, Row, feedback};
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow};

const EPISODE: [&str; 6] = ["id", "execution_ids", "started_at", "ended_at", "feedback_ids", "feedback_score"];
const SAID: [&str; 7] = ["id", "execution_id", "episode_id", "kind", "rating", "counts", "created_at"];
const LISTED: [&str; 2] = ["feedback_ids", "feedback_score"];

struct FeedbackLinks;

/// The backfill, where the database has a place for the links.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    episodes(store)?;
    given(store)?;
    Ok(Box::new(FeedbackLinks))
}

fn episodes(store: &Store) -> Result<Vec<&BoundSource>, ChangeError> {
    let sources = writable(store, Entity::Episode, &["feedback_ids"])?;
    let sources: Vec<_> = sources.into_iter().filter(|s| !s.column("execution_ids").is_empty()).collect();
    if sources.is_empty() {
        return Err(ChangeError::Refused("episodes name no executions here, by which feedback is linked".to_owned()));
    }
    Ok(sources)
}

/// Feedback that names its execution. Its back-link is written where it has one.
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
        Box::pin(batch(ask))
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "feedback goes to the episode of its execution; where several episodes name that, to the one whose time span \
             holds it, else to the last that started before it"
                .to_owned(),
            "the score of an episode becomes the mean of its feedback that counts".to_owned(),
        ]
    }
}

fn candidates<'a>(source: &'a BoundSource, stored: &'a [String]) -> RowWalk<'a> {
    let narrow = vec![NarrowCondition::Present("execution_ids"), NarrowCondition::Short("feedback_ids")];
    RowWalk { source, columns: &EPISODE, stored, narrow }
}

fn is_open(row: &Row) -> bool {
    row.is_readable("feedback_ids") && row.list("feedback_ids").is_empty() && !row.list("execution_ids").is_empty()
}

async fn batch(ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let sources = episodes(store)?;
    let place = SourcePlace::read(ask.place);
    let mut draft = Draft::batch(store, ask.own, "backfill.feedback-links", ChangeDanger::Guarded);
    let Some(source) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(String::new()), next: None, seen: 0, bad: Vec::new() });
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
    let executions: HashSet<&str> = open.values().flat_map(|f| f.row.list("execution_ids")).collect();
    let mut executions: Vec<String> = executions.into_iter().map(str::to_owned).collect();
    executions.sort_unstable();
    let mut linked: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for of_said in given(store)? {
        let mut backs = RevisedRows::new(store, of_said, &["episode_id"]).await?;
        let columns = with_owner(&SAID, erased.as_ref());
        let said = said(store, of_said, &columns, &executions, &backs.stored).await?;
        let named: HashSet<&str> = said.iter().filter_map(|f| f.row.text("execution_id")).collect();
        let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
        let runs = Runs::read(store, source, &named).await?;
        let runs = runs.indexed();
        for found in said {
            let Some(episode) = runs.owner(&found.row).filter(|id| open.contains_key(id)).map(str::to_owned) else {
                continue;
            };
            if owned(&found.row) {
                spared += 1;
                continue;
            }
            let link = vec![("episode_id", Value::from(episode.clone()))];
            if backs.writes("episode_id")
                && found.row.get("episode_id").is_null()
                && backs.row(&found.key, &found.stored, link.clone()).map_err(ChangeError::Refused)?
            {
                note(&mut draft, &found.row, &link);
            }
            linked.entry(episode).or_default().push(found.row);
        }
        backs.push(&mut draft);
    }
    for (id, mut rows) in linked {
        let Some(episode) = open.get(id.as_str()) else { continue };
        rows.sort_by(|a, b| (a.text("created_at"), a.id()).cmp(&(b.text("created_at"), b.id())));
        rows.dedup_by(|a, b| a.id() == b.id());
        let counted = rows.iter().filter(|r| r.get("counts") == &Value::Bool(true));
        let score = feedback::aggregate(counted.filter_map(|r| r.number("score")));
        let ids: Vec<&Value> = rows.iter().map(|r| r.get("id")).collect();
        let values = vec![("feedback_ids", json!(ids)), ("feedback_score", json!(score))];
        if lists.row(&episode.key, &episode.stored, values.clone()).map_err(ChangeError::Refused)? {
            note(&mut draft, &episode.row, &values);
        }
    }
    lists.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(String::new()), next, seen: found.len(), bad: Vec::new() })
}

/// The feedback that was given on some executions.
async fn said(
    store: &Store,
    source: &BoundSource,
    columns: &[&str],
    executions: &[String],
    stored: &[String],
) -> Result<Vec<WalkedRow>, ChangeError> {
    if executions.is_empty() {
        return Ok(Vec::new());
    }
    let narrow = vec![NarrowCondition::OneOf("execution_id", executions)];
    let mut all = store.walks().walk_all(&RowWalk { source, columns, stored, narrow }).await?;
    let wanted: HashSet<&str> = executions.iter().map(String::as_str).collect();
    all.retain(|f| f.row.text("execution_id").is_some_and(|e| wanted.contains(e)) && f.key != FetchedValue::Null);
    Ok(all)
}

/// The episodes that name some executions, linked or not, by execution.
struct Runs(HashMap<String, Vec<Row>>);

impl Runs {
    async fn read(store: &Store, source: &BoundSource, executions: &[String]) -> Result<Runs, ChangeError> {
        let mut runs = Runs(HashMap::new());
        if executions.is_empty() {
            return Ok(runs);
        }
        let wanted: HashSet<&str> = executions.iter().map(String::as_str).collect();
        let narrow = vec![NarrowCondition::Names("execution_ids", executions)];
        for found in store.walks().walk_all(&RowWalk { source, columns: &EPISODE, stored: &[], narrow }).await? {
            let named: HashSet<String> =
                found.row.list("execution_ids").into_iter().filter(|e| wanted.contains(e)).map(str::to_owned).collect();
            for execution in named {
                runs.0.entry(execution).or_default().push(found.row.clone());
            }
        }
        Ok(runs)
    }

    fn indexed(&self) -> Indexed<'_> {
        Indexed(self.0.iter().map(|(execution, episodes)| (execution.as_str(), ExecutionRun::of(episodes))).collect())
    }
}

/// The episodes of one execution, and the feedback that they list.
struct ExecutionRun<'r> {
    episodes: &'r [Row],
    listed: HashSet<&'r str>,
    spans: SessionSpans<'r>,
}

impl<'r> ExecutionRun<'r> {
    fn of(episodes: &'r [Row]) -> Self {
        let span = |e: &'r Row| EpisodeSpan { id: e.id(), started: e.text("started_at"), ended: e.text("ended_at") };
        let listed = episodes.iter().flat_map(|e| e.list("feedback_ids")).collect();
        ExecutionRun { episodes, listed, spans: SessionSpans::new(&episodes.iter().map(span).collect::<Vec<_>>()) }
    }
}

/// Executions, ready to be asked whose feedback is.
struct Indexed<'r>(HashMap<&'r str, ExecutionRun<'r>>);

impl<'r> Indexed<'r> {
    /// The episode that feedback belongs to; none when one of its execution lists it already. What episodes of other
    /// executions list is no matter: who reads them would not find it here, and another batch would not see them.
    fn owner(&self, said: &Row) -> Option<&'r str> {
        let run = self.0.get(said.text("execution_id")?).filter(|run| !run.listed.contains(said.id()))?;
        let moment = CanvasEventTime { at: said.text("created_at"), names: said.text("episode_id") };
        run.spans.owner(moment).map(|i| run.episodes[i].id())
    }
}
