//! A memory database at an earlier time: our own changes reverted by the trail's before-images, later rows left out,
//! utility and aggregates from their histories. What cannot be known is reported, never made up.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::ChangeError;
use super::apply::KeptUndo;
use super::audit::{self, OpenedEntry};
use super::draft::trail;
pub use super::plan::past::{AsOf, Moment};
use crate::memory::counted;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{Order, Query};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::context::RecalledContext;
use crate::store::encode::{GivenValue, plain_column};
use crate::store::stored::Mutation;

/// Entries read at a time.
const STRIDE: i64 = 50;
/// Most entries reverted.
const ENTRIES: i64 = 5_000;
/// Most megabytes of undo data reverted: it is held in memory several times.
const UNDO_MB: i64 = 8;
/// Most changed rows of a history that are followed.
const FOLLOWED: usize = 2_000;
/// Columns of such a row to read.
const FOLLOWING: &[&str] = &["id", "episode_id", "before", "created_at"];
/// Most irreversible entries listed.
const NAMED: usize = 20;
/// Actions that change no memory.
const HARMLESS: [&str; 3] = ["migrate", "hold", "unhold"];

/// Note on changes that no trail records.
const AGENTS: &str = "changes by agents that keep no history (texts, status, outcome) and rows that agents removed \
     leave no trace: such rows are shown as they are now";

/// Opens a view of the database at an earlier time.
///
/// # Errors
/// [`ChangeError::NotFound`] for a missing entry, [`ChangeError::Usage`] for a future time, [`ChangeError::Refused`] if
/// more was changed since than a view can revert.
pub async fn view(store: &Store, moment: &Moment) -> Result<(Store, AsOf), ChangeError> {
    let now = super::now();
    let mut as_of = AsOf { at: now.clone(), seq: None, taken_back: 0, unknown: Vec::new() };
    let mut mutations = Vec::new();
    match (trail(store).await, moment) {
        (Ok(_), _) => back(store, moment, &mut as_of, &mut mutations).await?,
        (Err(error), Moment::Entry(_)) => return Err(error),
        (Err(error), Moment::Time(at)) => {
            as_of.at.clone_from(at);
            as_of.unknown.push(format!("changes by mnemoscope cannot be reverted: {error}"));
        }
    }
    if matches!(moment, Moment::Time(_)) && as_of.at > now {
        return Err(ChangeError::Usage(format!("{} is in the future", as_of.at)));
    }
    if store.unread_trail().is_some() {
        as_of.unknown.push("entries of the trail cannot be read: what they changed is shown as it is now".to_owned());
    }
    as_of.unknown.push(AGENTS.to_owned());
    let timeless = store.ahead().timeless();
    if !timeless.is_empty() {
        let tables = Vec::from_iter(timeless).join(", ");
        as_of.unknown.push(format!(
            "it is unknown when rows of {tables} were created: all of them are shown, as they \
         are now"
        ));
    }
    let (taken_back, unseen) = store.ahead().foreseeing(&mutations, &as_of.at).await?;
    if unseen > 0 {
        let words = "too many rows were changed since then to revert them in one view: name a later moment";
        return Err(ChangeError::Refused(words.to_owned()));
    }
    let (view, _) = store.ahead().as_of(&mutations, &as_of.at).await?;
    let histories = Stores { now: store, whole: &taken_back, view: &view }.histories(&mut as_of).await?;
    if histories.is_empty() {
        return Ok((view, as_of));
    }
    drop((view, taken_back));
    mutations.extend(histories);
    let (view, unseen) = store.ahead().as_of(&mutations, &as_of.at).await?;
    as_of.unknown.extend(counted(
        unseen,
        "utility and aggregates of {#} {episode are shown as they are|episodes are shown as they are} now",
    ));
    Ok((view, as_of))
}

/// The database with our changes after an entry reverted, but with others' later writes; `None` if there are too many.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn left_by(store: &Store, seq: i64) -> Result<Option<Store>, ChangeError> {
    let mut as_of = AsOf { at: super::now(), seq: None, taken_back: 0, unknown: Vec::new() };
    let mut mutations = Vec::new();
    match back(store, &Moment::Entry(seq), &mut as_of, &mut mutations).await {
        Ok(()) => {
            let (left, unseen) = store.ahead().foreseeing(&mutations, &as_of.at).await?;
            Ok((unseen == 0).then_some(left))
        }
        Err(ChangeError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds the time in the trail, and the changes that revert everything after it, last first.
async fn back(
    store: &Store,
    moment: &Moment,
    as_of: &mut AsOf,
    mutations: &mut Vec<Mutation>,
) -> Result<(), ChangeError> {
    let head = store.records().trail_head().await?.map_or(0, |(seq, _)| seq);
    let first = store.records().trail(0, 1).await?.into_iter().next();
    let seq = match moment {
        Moment::Entry(seq) if *seq > head => {
            let list = store.invocation().line(["audit", "list"]);
            return Err(ChangeError::NotFound(format!("the trail has no entry {seq}; `{list}` shows them")));
        }
        Moment::Entry(seq) => {
            // Clocks differ: everything up to this entry had happened.
            let latest = store.records().latest_up_to(*seq).await?;
            // Before the first entry is as early as the trail reaches.
            let at = latest.or_else(|| first.as_ref().map(|entry| entry.at.clone()));
            as_of.at = at.unwrap_or_else(|| as_of.at.clone());
            *seq
        }
        Moment::Time(at) => {
            as_of.at.clone_from(at);
            last_before(store, head, at).await?
        }
    };
    as_of.seq = Some(seq);
    if let Some(first) = first.filter(|first| as_of.at < first.at) {
        as_of.unknown.push(format!("the trail begins at {}: changes before that are not known", first.at));
    }
    if head - seq > ENTRIES {
        let words =
            format!("{} changes were made since then; at most {ENTRIES} can be reverted in one view", head - seq);
        return Err(ChangeError::Refused(words));
    }
    if let Some(last) = beyond_reach(store, seq, head).await? {
        let words = format!(
            "the changes since then take more than {UNDO_MB} MB, too much to revert in one view: name entry {last} or \
             a later moment"
        );
        return Err(ChangeError::Refused(words));
    }
    let mut lost: Vec<String> = Vec::new();
    let mut last = head;
    while last > seq {
        let after = (last - STRIDE).max(seq);
        for opened in audit::opened_between(store, after, last).await?.into_iter().rev() {
            match inverses(&opened) {
                Some(inverses) => {
                    as_of.taken_back += 1;
                    mutations.extend(inverses);
                }
                None if is_harmless(&opened) => {}
                None => lost.push(format!("{} ({})", opened.entry.seq, opened.entry.action)),
            }
        }
        last = after;
    }
    if !lost.is_empty() {
        let more = lost.len().saturating_sub(NAMED);
        lost.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        as_of.unknown.push(format!(
            "what these entries changed cannot be reverted and is shown as it is now: {}{more}",
            lost.join(", ")
        ));
    }
    Ok(())
}

/// The latest entry that a view does not revert, because it or the later ones are too large.
async fn beyond_reach(store: &Store, seq: i64, head: i64) -> Result<Option<i64>, ChangeError> {
    let mut room = UNDO_MB << 20;
    let sizes = store.records().undo_sizes(seq, head).await?;
    let is_beyond = |(_, bytes): &(i64, i64)| {
        room -= bytes;
        room < 0
    };
    Ok(sizes.into_iter().find(is_beyond).map(|(seq, _)| seq))
}

/// Returns the changes that revert an entry, in order; `None` if they were not stored.
fn inverses(opened: &OpenedEntry) -> Option<Vec<Mutation>> {
    if opened.facts().undo_reason.is_some() {
        return None;
    }
    let kept: KeptUndo = serde_json::from_str(opened.private.get("undo")?).ok()?;
    Some(kept.inverses.into_iter().map(|inverse| inverse.mutation).collect())
}

/// Whether an entry changed no memory, such as one that redacts values of the trail.
fn is_harmless(opened: &OpenedEntry) -> bool {
    let action = opened.entry.action.as_str();
    HARMLESS.contains(&action)
        || action.starts_with("audit.")
        || opened.facts().counts.is_some_and(|counts| counts.is_empty())
}

/// The last entry up to a time. Entries follow one another in time; a clock that was set back gives an earlier entry,
/// so that more is reverted.
async fn last_before(store: &Store, head: i64, at: &str) -> Result<i64, ChangeError> {
    let (mut low, mut high) = (0, head);
    while low < high {
        let middle = high - (high - low) / 2;
        let entry = store.records().trail(middle - 1, 1).await?.into_iter().next();
        if entry.is_some_and(|entry| entry.at.as_str() <= at) { low = middle } else { high = middle - 1 }
    }
    Ok(low)
}

/// The same database in three states.
struct Stores<'a> {
    /// Current state.
    now: &'a Store,
    /// With our changes reverted.
    whole: &'a Store,
    /// The same without later rows.
    view: &'a Store,
}

impl Stores<'_> {
    /// The utility of an episode with later signals: the result of the last signal up to the time, otherwise the
    /// utility before the first later one.
    async fn utility(&self, episode: &str, later: &Row) -> Result<Value, ChangeError> {
        let of_it = Filter::new("episode_id", Operator::Equal, Operand::Text(episode.to_owned()));
        let columns = Some(vec!["created_at", "after"]);
        let query = Query { filters: vec![of_it], columns, ..Query::new(Entity::UtilityEvent) };
        // A signal without a time comes last.
        let place = |signal: &Row| {
            let at = signal.text("created_at").map(str::to_owned);
            (at.is_none(), at, signal.id().to_owned())
        };
        let mut last: Option<Row> = None;
        let earlier = |signal: Row| {
            if last.as_ref().is_none_or(|known| place(known) <= place(&signal)) {
                last = Some(signal);
            }
            ControlFlow::Continue(())
        };
        self.view.walks().each_row(&query, earlier).await?;
        Ok(last.map_or_else(|| later.get("before").clone(), |signal| signal.get("after").clone()))
    }

    /// Builds, from the histories, the changes that restore the values of episodes with later signals, feedback or
    /// canvas events.
    async fn histories(&self, as_of: &mut AsOf) -> Result<Vec<Mutation>, ChangeError> {
        let (whole, view) = (self.whole, self.view);
        let mut changed: BTreeMap<String, Vec<(&'static str, Value)>> = BTreeMap::new();
        let signals = later(self.now, Entity::UtilityEvent, as_of).await?;
        let told = as_of.unknown.len();
        let others = if signals.is_empty() { Vec::new() } else { later(whole, Entity::UtilityEvent, as_of).await? };
        as_of.unknown.truncate(told);
        let others: HashSet<&str> = others.iter().map(Row::id).collect();
        for signal in signals {
            let Some(episode) = signal.text("episode_id").filter(|id| !changed.contains_key(*id)) else { continue };
            let values = changed.entry(episode.to_owned()).or_default();
            // If our own change set it, the trail tells, whatever other signals say.
            if others.contains(signal.id()) {
                let utility = self.utility(episode, &signal).await?;
                values.extend(utility.is_number().then_some(("utility", utility)));
            }
        }
        for (entity, list) in [(Entity::Feedback, "feedback_ids"), (Entity::CanvasEvent, "canvas_ids")] {
            let mut newer: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for row in later(whole, entity, as_of).await? {
                if let Some(episode) = row.text("episode_id") {
                    newer.entry(episode.to_owned()).or_default().insert(row.id().to_owned());
                }
            }
            for (id, ids) in newer {
                let Some(episode) = view.row(Entity::Episode, &id).await? else { continue };
                let listed: Vec<String> = episode.list(list).into_iter().map(str::to_owned).collect();
                let Some(RecalledContext { canvas, feedback, .. }) = view.contexts().recalled(&[&episode]).await?.pop()
                else {
                    continue;
                };
                let value = if entity == Entity::Feedback {
                    ("feedback_score", json!(feedback.score()))
                } else {
                    ("canvas_action_count", json!(canvas.len()))
                };
                let values = changed.entry(id).or_default();
                values.push(value);
                if listed.iter().any(|id| ids.contains(id)) {
                    let kept: Vec<String> = listed.into_iter().filter(|id| !ids.contains(id)).collect();
                    values.push((list, json!(kept)));
                }
            }
        }
        let mut mutations = Vec::new();
        for (id, values) in changed {
            let Some(found) = whole.encoder().locate(Entity::Episode, &id).await? else { continue };
            let shape = whole.shapes().shape(&found.table()).await?;
            let stored = values.into_iter().filter(|(column, _)| plain_column(found.source, column).is_some());
            let values: Vec<(&str, GivenValue)> =
                stored.map(|(column, value)| (column, GivenValue::Is(value))).collect();
            match found.update(&shape, &values) {
                Ok(Mutation::Update { table, key, set }) if !set.is_empty() => {
                    mutations.push(Mutation::Update { table, key, set });
                }
                Ok(_) => {}
                Err(why) => {
                    as_of.unknown.push(format!("episode {id} is shown with its present utility and aggregates: {why}"));
                }
            }
        }
        Ok(mutations)
    }
}

/// The rows of an entity after the time, earliest first.
async fn later(store: &Store, entity: Entity, as_of: &mut AsOf) -> Result<Vec<Row>, ChangeError> {
    let Some(column) = entity.column(entity.time_column()) else { return Ok(Vec::new()) };
    if store.sources_of(entity).is_err() {
        return Ok(Vec::new());
    }
    let after = Filter::new(column.name, Operator::Greater, Operand::Time(as_of.at.clone()));
    let query = Query {
        filters: vec![after],
        order: Some(Order { column: column.name, descending: false }),
        limit: FOLLOWED,
        columns: Some(FOLLOWING.iter().copied().filter(|name| entity.column(name).is_some()).collect()),
        ..Query::new(entity)
    };
    let page = store.page(&query).await?;
    if page.next.is_some() {
        as_of.unknown.push(format!(
            "more than {FOLLOWED} rows of {} were added since then: their effect on episodes is reverted for the first \
             ones only",
            entity.title()
        ));
    }
    Ok(page.rows)
}
