//! Recomputes utilities by replaying the signals of each episode in order; on request, first derives signals from
//! feedback for episodes without any.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::BackfillArguments as Told;
use super::rows::{self, RowBackfill, RowBench, RowPart, RowVerdict};
use super::sources::{ERASED, RevisedRows, SourcePlace, note, spare, with_owner, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::utility::{self, Signal, StoredSignal};
use crate::memory::{Entity, Row, feedback, score};
use crate::store::Store;
use crate::store::encode::{GivenValue, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{StoredRows, TableName};
use crate::store::walk::{RowWalk, WalkedPart, WalkedRow};

const REPLAYED: &str = "the signals are replayed from the value before the first one, 0.5 unless it says otherwise, clamped to 0..1 after \
     each: confirmed +0.2, corrected -0.1, rejected -0.3, undone -0.4, ignored -0.05";

const SPEC: RowBackfill = RowBackfill {
    name: "utility",
    operation: "backfill.utility",
    parts: &[RowPart {
        entity: Entity::Episode,
        reads: &["utility"],
        writes: &["utility"],
        needs: &["utility"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        REPLAYED,
        "an episode without signals keeps what it has, within 0..1; --from-feedback derives signals for those",
    ],
    disclosures: &[],
    undo_reason: None,
    takes_away: None,
};

/// The backfill, if utilities and signals are stored.
pub fn make(store: &Store, told: &Told) -> Result<Box<dyn Job>, ChangeError> {
    store.sources_of(Entity::UtilityEvent)?;
    let replay = rows::make(store, &SPEC)?;
    if !told.from_feedback {
        return Ok(replay);
    }
    signals(store)?;
    store.sources_of(Entity::Feedback)?;
    Ok(Box::new(FromFeedback(replay)))
}

fn signals(store: &Store) -> Result<&BoundSource, ChangeError> {
    let sources = writable(store, Entity::UtilityEvent, &["id", "episode_id", "signal"])?;
    sources.first().copied().ok_or_else(|| ChangeError::Refused("this database keeps no signals".to_owned()))
}

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    let replayed = replayed(bench.store, bench.found).await?;
    let outside = |row: &Row| row.number("utility").filter(|utility| !(0.0..=1.0).contains(utility));
    let verdict = |row: &Row| {
        let new = match replayed.get(row.id()) {
            Some(None) => return RowVerdict::Unread,
            Some(Some(new)) => moved(row, *new),
            None => outside(row).map(|utility| utility.clamp(0.0, 1.0)),
        };
        new.map_or(RowVerdict::Keep, |new| RowVerdict::Set(vec![("utility", json!(new))]))
    };
    Ok(bench.found.iter().map(|f| verdict(&f.row)).collect())
}

/// Episodes whose signals are read together.
const REPLAYED_TOGETHER: usize = 100;

/// Episodes whose feedback is read together: corrections may be long.
const JUDGED_TOGETHER: usize = 20;

/// The utilities resulting from stored signals, by episode: `None` if one of them has an unknown word. An episode
/// without signals is not listed.
async fn replayed(store: &Store, found: &[WalkedRow]) -> Result<HashMap<String, Option<f64>>, ChangeError> {
    let columns = ["id", "episode_id", "signal", "before", "created_at"];
    let mut utilities = HashMap::new();
    for some in found.chunks(REPLAYED_TOGETHER) {
        let ids: Vec<&str> = some.iter().map(|found| found.row.id()).collect();
        let mut histories: HashMap<String, Vec<StoredSignal>> = HashMap::new();
        let take = |event: Row, _| {
            if let Some(id) = event.text("episode_id") {
                histories.entry(id.to_owned()).or_default().push(StoredSignal::of(&event));
            }
            ControlFlow::Continue(())
        };
        store.each_related(Entity::UtilityEvent, "episode_id", &ids, &columns, take).await?;
        for (episode, mut history) in histories {
            utility::put_in_order(&mut history);
            let start = history.first().and_then(|signal| signal.before).unwrap_or(utility::START);
            let replay = utility::replay_signals(start, history.iter().map(|signal| signal.signal));
            utilities.insert(episode, replay.unknown().is_empty().then(|| replay.utility()));
        }
    }
    Ok(utilities)
}

/// The new utility of an episode; `None` if it has that already.
fn moved(row: &Row, new: f64) -> Option<f64> {
    row.number("utility").is_none_or(|stored| !score::is_same(stored, new)).then_some(new)
}

/// As the other, but first derives signals for episodes without any.
struct FromFeedback(Box<dyn Job>);

impl Job for FromFeedback {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn told(&self) -> Value {
        json!({ "from_feedback": true })
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        self.0.relies_on(store).into_iter().chain(signals(store).map(table_of)).collect()
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        self.0.total(store)
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(ask))
    }

    fn effects(&self) -> Vec<String> {
        vec![
            REPLAYED.to_owned(),
            "an episode without signals gets them from its feedback that counts, in order of time: thumbs_up and ratings of \
             4 and 5 are `confirmed`; of the others, what holds a correction is `corrected`, thumbs_down and ratings of 1 \
             and 2 are `rejected`, and a 3 says nothing. They start from the utility that it has, 0.5 where it has none"
                .to_owned(),
            "each derived signal names its feedback, and `signal retract` takes it back".to_owned(),
        ]
    }
}

/// Returns the signal of a feedback row; `None` if it gives none.
fn signal_of(said: &Row) -> Option<Signal> {
    let score = said.number("score");
    // Scores of a table that is only shown; a row without a score never counts as one.
    if score.is_some() && said.get("counts") == &Value::Bool(false) {
        return None;
    }
    if score.is_some_and(|score| score > 0.0) {
        return Some(Signal::Confirmed);
    }
    if feedback::correction(said).is_some() {
        return Some(Signal::Corrected);
    }
    score.filter(|score| *score < 0.0).map(|_| Signal::Rejected)
}

async fn batch(ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let sources = writable(store, Entity::Episode, &["utility"])?;
    let place = SourcePlace::read(ask.place);
    let mut draft = Draft::batch(store, ask.own, SPEC.operation, ChangeDanger::Guarded);
    let Some(source) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
    };
    let mut utilities = RevisedRows::new(store, source, &["utility"]).await?;
    let erased = Erased::of(store).await?;
    let columns = with_owner(&["id", "utility", "feedback_ids", "metadata"], erased.as_ref());
    let walk = RowWalk { source, columns: &columns, stored: &utilities.stored, narrow: Vec::new() };
    let WalkedPart { rows: found, is_full } = store.walks().walk(&walk, place.after.as_ref(), ask.size).await?;
    let next = place.behind(found.last().map(|f| &f.key), is_full, sources.len());
    let before = replayed(store, &found).await?;
    let silent: Vec<&WalkedRow> = found.iter().filter(|f| !before.contains_key(f.row.id())).collect();
    // If someone adds a signal from here on, the batch is planned again.
    let spoken = watch(&mut draft, &silent).await?;
    let rows: Vec<&Row> = silent.iter().map(|f| &f.row).filter(|row| !spoken.contains(row.id())).collect();
    let derived = derived(store, source, &rows).await?;
    let (mut fresh, mut spared) = (Vec::new(), 0);
    for found in &found {
        let row = &found.row;
        let history = derived.get(row.id()).map(Vec::as_slice).unwrap_or_default();
        let to = history.last().and_then(|event| event.number("after")).or(before.get(row.id()).copied().flatten());
        let Some(new) = to.map(|to| moved(row, to)) else { continue };
        if erased.as_ref().is_some_and(|erased| erased.owns(row)) {
            spared += usize::from(!history.is_empty() || new.is_some());
            continue;
        }
        history.iter().for_each(|event| draft.adds(event));
        fresh.extend_from_slice(history);
        let Some(new) = new else { continue };
        let values = vec![("utility", json!(new))];
        if utilities.row(&found.key, &found.stored, values.clone()).map_err(ChangeError::Refused)? {
            note(&mut draft, row, &values);
        }
    }
    insert(&mut draft, &fresh).await?;
    utilities.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(), next, seen: found.len(), bad: Vec::new() })
}

/// Requires that episodes have no signals, and returns those that have some by now.
async fn watch(draft: &mut Draft<'_>, silent: &[&WalkedRow]) -> Result<HashSet<String>, ChangeError> {
    let source = signals(draft.store)?;
    let Some((column, _)) = plain_column(source, "episode_id").filter(|_| !silent.is_empty()) else {
        return Ok(HashSet::new());
    };
    let keys = silent.iter().map(|f| vec![FetchedValue::Text(f.row.id().to_owned())]).collect();
    let images = draft.watch_images(StoredRows { table: table_of(source), by: vec![column.to_owned()], keys }).await?;
    let named = images.iter().filter_map(|image| match image.get(column) {
        Some(FetchedValue::Text(id)) => Some(id.clone()),
        _ => None,
    });
    Ok(named.collect())
}

/// The signals derived from the feedback on episodes, by episode.
async fn derived<'r>(
    store: &Store,
    source: &BoundSource,
    episodes: &[&'r Row],
) -> Result<HashMap<&'r str, Vec<Row>>, ChangeError> {
    let columns = ["id", "episode_id", "kind", "rating", "correction", "score", "counts", "source", "created_at"];
    let mut derived = HashMap::new();
    for some in episodes.chunks(JUDGED_TOGETHER) {
        let said = store.linked_columns(some, &source.links, Entity::Feedback, Some(&columns)).await?;
        derived.extend(some.iter().zip(&said).map(|(row, said)| (row.id(), events(row, said))));
    }
    Ok(derived)
}

/// The signals derived from an episode's feedback, oldest first.
fn events(episode: &Row, said: &[Row]) -> Vec<Row> {
    let mut said: Vec<(&Row, Signal)> = said.iter().filter_map(|row| Some((row, signal_of(row)?))).collect();
    said.sort_by(|(a, _), (b, _)| (a.text("created_at"), a.id()).cmp(&(b.text("created_at"), b.id())));
    let start = episode.number("utility").unwrap_or(utility::START);
    let replay = utility::replay(start, said.iter().map(|(_, signal)| signal.word()));
    let event = |((said, signal), step): (&(&Row, Signal), &utility::UtilityStep)| {
        let mut event = Row::empty(Entity::UtilityEvent);
        event.set("id", Value::from(id_of(episode.id(), said.id())));
        event.set("episode_id", episode.get("id").clone());
        event.set("signal", Value::from(signal.word()));
        event.set("delta", Value::from(signal.delta()));
        event.set("before", Value::from(step.before));
        event.set("after", Value::from(step.after));
        event.set("actor", Value::from(SPEC.operation));
        event.set("reason", Value::from(format!("derived from feedback {}", said.id())));
        event.set("created_at", said.get("created_at").clone());
        event
    };
    said.iter().zip(&replay.steps).map(event).collect()
}

/// The same feedback on the same episode always gives the same id, so a signal cannot be derived twice. It is a UUID,
/// which every column accepts.
fn id_of(episode: &str, feedback: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(format!("mnemoscope signal of {episode}\n{feedback}").as_bytes()).into();
    Uuid::from_slice(&digest[..16]).unwrap_or_default().to_string()
}

async fn insert(draft: &mut Draft<'_>, events: &[Row]) -> Result<(), ChangeError> {
    if events.is_empty() {
        return Ok(());
    }
    let source = signals(draft.store)?;
    let all = ["id", "episode_id", "signal", "delta", "before", "after", "actor", "reason", "created_at"];
    let columns: Vec<&str> = all.into_iter().filter(|c| plain_column(source, c).is_some()).collect();
    let values = |event: &Row| -> Vec<GivenValue> {
        let given = |c: &&str| match event.get(c) {
            Value::Null if *c == "created_at" => GivenValue::Now,
            value => GivenValue::Is(value.clone()),
        };
        columns.iter().map(given).collect()
    };
    let rows: Vec<Vec<GivenValue>> = events.iter().map(values).collect();
    let insertion = draft.store.encoder().insertions(source, &columns, &rows, None).await?;
    draft.push(insertion);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_says_what_the_rule_says() {
        for (score, correction, expected) in [
            (Some(1.0), None, Some(Signal::Confirmed)),
            (Some(0.5), Some("but"), Some(Signal::Confirmed)),
            (Some(0.0), None, None),
            (Some(0.0), Some("rather so"), Some(Signal::Corrected)),
            (None, Some("rather so"), Some(Signal::Corrected)),
            (Some(-1.0), Some(" "), Some(Signal::Rejected)),
            (Some(-0.5), None, Some(Signal::Rejected)),
            (None, None, None),
        ] {
            let row = Row::with(Entity::Feedback, [("score", json!(score)), ("correction", json!(correction))]);
            assert_eq!(signal_of(&row), expected, "{score:?} {correction:?}");
        }
    }

    #[test]
    fn a_signal_has_one_id_whoever_derives_it() {
        assert_eq!(id_of("e", "f"), id_of("e", "f"));
        assert_ne!(id_of("e", "f"), id_of("ef", ""));
        assert_eq!(id_of("e", "f").len(), 36);
    }
}
