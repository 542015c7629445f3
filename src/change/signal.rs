//! Utility signals and their retraction: the whole history is replayed, never a delta added.

use std::ops::ControlFlow;

use serde_json::Value;

use super::draft::Draft;
use super::edit::check_seen;
use super::feedback::{addable, writable};
use super::operation::SeenFeedback;
use super::plan::{ChangeDanger, Plan};
use super::remove::CHANGING;
use super::{ChangeError, new_id, now, uses};
use crate::layout::BoundSource;
use crate::memory::utility::{self, Signal, StoredSignal, UtilityStep};
use crate::memory::{Entity, Row, agreeing, score, text_check, thousands, time};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::StoredRows;

/// Origin of a signal.
#[derive(Debug, Clone, Copy)]
pub struct SignalNote<'a> {
    /// Person who gives it.
    pub actor: &'a str,
    /// Reason for those who read the history of signals.
    pub reason: Option<&'a str>,
    /// Feedback that it follows from.
    pub feedback: Option<&'a SeenFeedback>,
}

/// Plans a new signal about an episode.
///
/// # Errors
/// [`ChangeError::NotFound`], [`ChangeError::Refused`] if no utility is stored, or [`ChangeError::Conflict`] if the
/// feedback that the signal follows from was changed.
pub async fn add(store: &Store, episode: &str, signal: Signal, note: SignalNote<'_>) -> Result<Plan, ChangeError> {
    let SignalNote { actor, reason, feedback } = note;
    let mut draft = Draft::new(store, "signal", ChangeDanger::Safe).await?;
    if let Some(seen) = feedback {
        check_seen(&draft.locate(Entity::Feedback, &seen.id).await?.row, &seen.values)?;
    }
    let source = target(store)?;
    addable(source)?;
    let found = draft.locate(Entity::Episode, episode).await?;
    let history = history(&mut draft, source, &found).await?;
    let start = start(&history, &found.row);
    // A replay puts signals without a time last.
    let place = history.iter().take_while(|stored| stored.at().is_some()).count();
    let mut signals: Vec<Option<Signal>> = history.iter().map(|stored| stored.signal).collect();
    signals.insert(place, Some(signal));
    let mut replay = utility::replay_signals(start, signals);
    let step = replay.steps[place];
    if place < history.len() {
        replay.steps.remove(place);
    }
    let mut row = Row::empty(Entity::UtilityEvent);
    row.set("id", Value::from(new_id()));
    row.set("episode_id", Value::from(episode));
    row.set("signal", Value::from(signal.word()));
    row.set("delta", Value::from(signal.delta()));
    row.set("before", Value::from(step.before));
    row.set("after", Value::from(step.after));
    row.set("actor", Value::from(actor));
    let reason = reason.map(|text| {
        let (clean, odd) = text_check::check(text);
        draft.disclosures.extend(odd.sentences().into_iter().map(|words| format!("reason: {words}")));
        clean
    });
    row.set("reason", reason.map_or(Value::Null, Value::from));
    let columns = ["id", "episode_id", "signal", "delta", "before", "after", "actor", "reason"];
    let mut values: Vec<(&str, GivenValue)> = columns
        .into_iter()
        .filter(|c| plain_column(source, c).is_some())
        .map(|c| (c, GivenValue::Is(row.get(c).clone())))
        .collect();
    values.push(("created_at", moment_after(&history)));
    let insertion = store.encoder().insertion(source, &values, Some(&found.image)).await?;
    draft.adds(&row);
    draft.push(insertion);
    settle(&mut draft, &found, &history, &replay).await?;
    Ok(draft.seal())
}

/// Plans to retract a signal.
///
/// # Errors
/// As [`add`].
pub async fn retract(store: &Store, id: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "signal.retract", ChangeDanger::Guarded).await?;
    let gone = draft.locate(Entity::UtilityEvent, id).await?;
    writable(gone.source)?;
    let Some(episode) = gone.row.text("episode_id") else {
        return Err(ChangeError::Refused(format!("the signal {id} names no episode: there is no history to replay")));
    };
    draft.removes(&gone.row);
    draft.push(gone.delete());
    let Some(found) = draft.seek(Entity::Episode, episode).await? else {
        draft.disclosures.push(format!("the episode {episode} does not exist: only the signal itself is removed"));
        return Ok(draft.seal());
    };
    let mut history = history(&mut draft, gone.source, &found).await?;
    let start = start(&history, &found.row);
    history.retain(|stored| &*stored.id != id);
    let replay = utility::replay_signals(start, history.iter().map(|stored| stored.signal));
    settle(&mut draft, &found, &history, &replay).await?;
    Ok(draft.seal())
}

fn target(store: &Store) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(Entity::UtilityEvent)?;
    let source = sources.iter().copied().find(|s| writable(s).is_ok()).or(sources.first().copied());
    let source = source.ok_or_else(|| ChangeError::Refused("this database keeps no signals".to_owned()))?;
    writable(source).map(|_| source)
}

/// Columns of the signals to replay.
const REPLAYED: &[&str] = &["id", "episode_id", "signal", "before", "after", "created_at"];

/// The signals of an episode, oldest first, read after they were noted down.
async fn history(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    episode: &LocatedRow<'_>,
) -> Result<Vec<StoredSignal>, ChangeError> {
    if let Some((column, _)) = plain_column(source, "episode_id") {
        draft
            .watch(StoredRows::with(&table_of(source), column, FetchedValue::Text(episode.row.id().to_owned())))
            .await?;
    }
    let id = [episode.row.id().to_owned()];
    let mut history = Vec::new();
    let take = |event: Row, _| {
        history.push(StoredSignal::of(&event));
        ControlFlow::Continue(())
    };
    draft.store.each_related(Entity::UtilityEvent, "episode_id", &id, REPLAYED, take).await?;
    utility::put_in_order(&mut history);
    is_whole(draft, &history, &episode.row)?;
    Ok(history)
}

/// Checks that no signal is missing if our role may not see them all: each begins where the previous one ended, and the
/// last one ends at the episode's utility.
fn is_whole(draft: &mut Draft<'_>, history: &[StoredSignal], episode: &Row) -> Result<(), ChangeError> {
    let Some(reason) = draft.store.report().unseen(Entity::UtilityEvent) else { return Ok(()) };
    let replay = utility::replay_signals(start(history, episode), history.iter().map(|stored| stored.signal));
    let is_same = |(stored, step): (&StoredSignal, &UtilityStep)| {
        score::is_same_or_unknown(stored.before, Some(step.before))
            && score::is_same_or_unknown(stored.after, Some(step.after))
    };
    let ends = history.is_empty() || score::is_same_or_unknown(episode.number("utility"), Some(replay.utility()));
    if !ends || !history.iter().zip(&replay.steps).all(is_same) {
        return Err(ChangeError::Refused(format!(
            "the visible signals of episode {} do not lead to its utility, which is computed from all of them: \
             {reason}. Change it with a role that sees every row",
            episode.id()
        )));
    }
    let told = format!("the utility is computed from the visible signals only: {reason}");
    if !draft.disclosures.contains(&told) {
        draft.disclosures.push(told);
    }
    Ok(())
}

/// Utility before the first signal: from the first signal, otherwise from the episode, otherwise the default.
fn start(history: &[StoredSignal], episode: &Row) -> f64 {
    let said = match history.first() {
        Some(first) => first.before,
        None => episode.number("utility"),
    };
    said.unwrap_or(utility::START)
}

/// The time of a new signal: now, or just after the latest one if a clock was ahead, so that it comes last.
fn moment_after(history: &[StoredSignal]) -> GivenValue {
    let latest = history.iter().filter_map(StoredSignal::at).max();
    match latest.filter(|latest| *latest >= now().as_str()).and_then(time::epoch_micros) {
        Some(micros) => match time::from_epoch(micros + 1, time::EpochUnit::Microseconds) {
            Some(moment) => GivenValue::from(moment),
            None => GivenValue::Now,
        },
        None => GivenValue::Now,
    }
}

/// Writes replayed steps back.
async fn replayed(draft: &mut Draft<'_>, moved: &[(&StoredSignal, &UtilityStep)]) -> Result<(), ChangeError> {
    let ids: Vec<String> = moved.iter().map(|(stored, _)| stored.id.to_string()).collect();
    let found = draft.locate_all(Entity::UtilityEvent, &ids).await?;
    for (found, (_, step)) in found.iter().zip(moved) {
        let values = [("before", GivenValue::from(step.before)), ("after", GivenValue::from(step.after))];
        let mut after = found.row.clone();
        after.set("before", Value::from(step.before));
        after.set("after", Value::from(step.after));
        draft.sets(found, &values, &after).await?;
    }
    Ok(())
}

/// Writes back the replayed steps that differ, and the resulting utility.
async fn settle(
    draft: &mut Draft<'_>,
    episode: &LocatedRow<'_>,
    history: &[StoredSignal],
    replay: &utility::UtilityReplay,
) -> Result<(), ChangeError> {
    let differs = |(stored, step): &(&StoredSignal, &UtilityStep)| {
        let is_kept = |stored: Option<f64>, replayed| score::is_same_or_unknown(stored, Some(replayed));
        !is_kept(stored.before, step.before) || !is_kept(stored.after, step.after)
    };
    let moved: Vec<(&StoredSignal, &UtilityStep)> = history.iter().zip(&replay.steps).filter(differs).collect();
    if moved.len() > CHANGING {
        return Err(ChangeError::Refused(format!(
            "{} signals of the episode have another before and after when replayed, and one change can hold at most \
             {}: first set these columns in the database, each to the utility before and after its signal",
            thousands(moved.len()),
            thousands(CHANGING)
        )));
    }
    replayed(draft, &moved).await?;
    if !moved.is_empty() {
        let count = moved.len();
        draft.effects.push(agreeing(
            count,
            "{#} other {signal of the episode has|signals of the episode have} another before and after when replayed",
        ));
    }
    let unknown = replay.unknown().len();
    if unknown > 0 {
        let words = "{#} stored {signal has an unknown word and leaves|signals have an unknown word and leave} the utility as it is";
        draft.disclosures.push(agreeing(unknown, words));
    }
    let (stored, new) = (episode.row.number("utility"), replay.utility());
    if score::is_same_or_unknown(stored, Some(new)) {
        return Ok(());
    }
    writable(episode.source)?;
    let mut shown = episode.row.clone();
    shown.set("utility", Value::from(new));
    let word = stored.map_or("unknown".to_owned(), |x| format!("{x:.2}"));
    draft.effects.push(format!("episode {}: its utility changes from {word} to {new:.2}", episode.row.id()));
    draft.sets(episode, &[("utility", GivenValue::from(new))], &shown).await?;
    uses::follow(draft, &shown, &[]).await
}
