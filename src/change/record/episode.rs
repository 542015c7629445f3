//! Records a curated episode: no duplicates, the parent given or none, every value stored.

use std::ops::ControlFlow;

use serde_json::Value;

use super::{event, memories, object, parent, read, refuse_known_id, refuse_what_has_no_place, vector};
use crate::change::batch::{self, NewRow};
use crate::change::draft::Draft;
use crate::change::import::message_hash;
use crate::change::plan::{ChangeDanger, Plan};
use crate::change::{ChangeError, given, uses};
use crate::layout::BoundSource;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row, time, utility};
use crate::store::Store;
use crate::store::encode::{keeps_whole, plain_column, table_of};
use crate::store::stored::Image;

/// Plans one new episode.
///
/// # Errors
/// As [`super::case`]; [`ChangeError::NotFound`] for a missing parent.
pub async fn episode(store: &Store, text: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "record.episode", ChangeDanger::Safe).await?;
    let mut object = object(text)?;
    let embedding = vector::take(&mut object)?;
    let links = memories::take(&mut object)?;
    let mut row = read(Entity::Episode, &object, &mut draft)?;
    check_following(&row)?;
    let source = batch::target(store, Entity::Episode)?;
    if let Some(kind) = source.write.as_ref().and_then(|write| write.event.as_deref()) {
        memories::refuse(&links)?;
        event::append(&mut draft, kind, &row, embedding.as_deref()).await?;
        return Ok(draft.seal());
    }
    let Some(started) = row.text("started_at").map(str::to_owned) else {
        return Err(ChangeError::Usage("an episode needs `started_at`".to_owned()));
    };
    refuse_known_id(&mut draft, &row).await?;
    settle_time(store, source, &mut row, &started).await?;
    if row.get("status").is_null() {
        row.set("status", Value::from(if row.get("ended_at").is_null() { "active" } else { "closed" }));
    }
    if row.get("utility").is_null() && plain_column(source, "utility").is_some() {
        row.set("utility", Value::from(utility::START));
    }
    let settled = settle_user(store, source, &row).await?;
    refuse_what_has_no_place(source, &row, settled)?;
    refuse_duplicate(&mut draft, source, &row, &started).await?;
    match row.text("parent_id").map(str::to_owned) {
        Some(parent) => {
            draft.locate(Entity::Episode, &parent).await?;
        }
        None => {
            if let Some(parent) = parent::detect(&mut draft, source, &row, embedding.as_deref()).await? {
                draft.locate(Entity::Episode, &parent).await?;
                row.set("parent_id", Value::from(parent));
            }
        }
    }
    let kin = kin(store, source, &row).await?;
    batch::add_beside(&mut draft, Entity::Episode, vec![NewRow::from(row.clone())], kin.as_ref()).await?;
    if let Some(numbers) = embedding {
        vector::store(&mut draft, source, row.id(), &numbers).await?;
    }
    let linked = memories::link(&mut draft, row.id(), links).await?;
    uses::follow(&mut draft, &row, &linked).await?;
    Ok(draft.seal())
}

/// Checks that no value is given that is computed from rows that do not exist yet, or that contradicts the times.
fn check_following(row: &Row) -> Result<(), ChangeError> {
    let is_given = |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
    for column in ["feedback_score", "feedback_ids", "canvas_ids", "canvas_action_count"] {
        if is_given(row.get(column)) {
            given::check_by_hand(Entity::Episode, column)?;
        }
    }
    let Some(given) = row.number("duration_seconds") else { return Ok(()) };
    let times = row.text("started_at").zip(row.text("ended_at"));
    let seconds = times.and_then(|(start, end)| time::seconds_between(start, end));
    if given < 0.0 || seconds.is_some_and(|seconds| (seconds - given).abs() > 1.0) {
        return Err(ChangeError::Usage("`duration_seconds` contradicts `started_at` and `ended_at`".to_owned()));
    }
    Ok(())
}

/// Checks that it ends after it starts, and sets its duration if that is stored.
async fn settle_time(store: &Store, source: &BoundSource, row: &mut Row, started: &str) -> Result<(), ChangeError> {
    let Some(seconds) = row.text("ended_at").and_then(|end| time::seconds_between(started, end)) else { return Ok(()) };
    if seconds < 0.0 {
        return Err(ChangeError::Usage("the episode ends before it starts".to_owned()));
    }
    let Some((column, _)) = plain_column(source, "duration_seconds") else { return Ok(()) };
    if row.get("duration_seconds").is_null() {
        let shape = store.shapes().shape(&table_of(source)).await?;
        let whole = shape.column(column).is_some_and(|c| keeps_whole(&c.compared));
        row.set("duration_seconds", Value::from(if whole { seconds.round() } else { seconds }));
    }
    Ok(())
}

/// Checks that a given user is the session's, if the user follows from the session. Returns the columns settled by
/// that.
async fn settle_user(store: &Store, source: &BoundSource, row: &Row) -> Result<&'static [&'static str], ChangeError> {
    let Some(user) = row.text("user_id").filter(|_| plain_column(source, "user_id").is_none()) else { return Ok(&[]) };
    let table = table_of(source).title();
    let Some(session) = row.text("session_id").filter(|_| plain_column(source, "session_id").is_some()) else {
        return Err(ChangeError::Refused(format!(
            "{table} does not store the user, who is derived from the session. Give a `session_id` of {user}"
        )));
    };
    let mut owner = None;
    let take = |episode: Row, _| {
        owner = episode.text("user_id").map(str::to_owned);
        if owner.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.each_related(Entity::Episode, "session_id", &[session], &["id", "session_id", "user_id"], take).await?;
    match owner {
        Some(theirs) if theirs == user => Ok(&["user_id"]),
        Some(_) => Err(ChangeError::Usage(format!("the session {session} belongs to another user than {user}"))),
        None => Err(ChangeError::Refused(format!(
            "{table} does not store the user, and no episode of session {session} shows who owns it: leave out \
             `user_id`"
        ))),
    }
}

/// The stored row that a new episode depends on: its parent, otherwise the agent's latest episode.
async fn kin(store: &Store, source: &BoundSource, row: &Row) -> Result<Option<Image>, ChangeError> {
    let id = match (row.text("parent_id"), row.text("agent_id")) {
        (Some(parent), _) => Some(parent.to_owned()),
        (None, Some(agent)) => {
            let filters = equal("agent_id", Operand::Text(agent.to_owned())).into_iter().collect();
            let columns = Some(vec!["id", "started_at"]);
            let query = Query { filters, columns, limit: 1, ..Query::new(Entity::Episode) };
            store.page(&query).await?.rows.first().map(|found| found.id().to_owned())
        }
        (None, None) => None,
    };
    let Some(id) = id else { return Ok(None) };
    Ok(store.encoder().locate(Entity::Episode, &id).await?.filter(|l| l.table() == table_of(source)).map(|l| l.image))
}

fn equal(column: &str, value: Operand) -> Option<Filter> {
    Entity::Episode.column(column).map(|c| Filter::new(c.name, Operator::Equal, value))
}

/// Refuses an episode with the same agent, user, start and texts as an existing one.
async fn refuse_duplicate(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    row: &Row,
    started: &str,
) -> Result<(), ChangeError> {
    const SAID: [&str; 6] = ["agent_id", "user_id", "title", "summary", "detail", "observation"];
    draft.relies_on_no_more(source, row, &SAID).await?;
    let mut query = Query::new(Entity::Episode);
    query.filters.extend(equal("started_at", Operand::Time(started.to_owned())));
    query.filters.extend(row.text("agent_id").and_then(|agent| equal("agent_id", Operand::Text(agent.to_owned()))));
    let said = |row: &Row| {
        let stored = SAID.iter().filter(|c| plain_column(source, c).is_some());
        message_hash(&stored.map(|c| row.get(c).to_string()).collect::<Vec<_>>().join("\n"))
    };
    let alike = draft.store.page(&query).await?.rows;
    match alike.iter().find(|other| said(other) == said(row)) {
        None => Ok(()),
        Some(known) => Err(ChangeError::Refused(format!("the same episode already exists: `{}`", known.id()))),
    }
}
