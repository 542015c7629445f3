//! One curated memory added from JSON, retained as an agent would have: duplicates refused, the reward by its rule.

use serde_json::{Map, Value, json};

use super::batch::{self, NewRow};
use super::draft::{Draft, check_id};
use super::import::{bank, message_hash};
use super::plan::{Danger, Plan};
use super::reward::trail;
use super::{ChangeError, new_id};
use crate::memory::entity::Personal;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::nearest::nearest;
use crate::memory::query::Query;
use crate::memory::text_check::{self, Found};
use crate::memory::{Entity, Kind, Row, reward, time};
use crate::store::Store;

/// A canonical row from a JSON object, with every value checked by its column; texts pass the check for secrets.
///
/// # Errors
/// An unknown column with the nearest known one, or a value of the wrong kind.
pub fn canonical_row(entity: Entity, object: &Map<String, Value>, found: &mut Found) -> Result<Row, String> {
    let mut row = Row::empty(entity);
    for (name, value) in object {
        let Some(column) = entity.column(name) else {
            let near = nearest(name, entity.columns().iter().map(|c| c.name));
            let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(format!("{} has no column `{name}`{hint}", entity.title()));
        };
        let wrong = |what: &str| format!("`{name}` must be {what}");
        let value = match (column.kind, value) {
            (_, Value::Null) => Value::Null,
            (Kind::Text, Value::String(_)) | (Kind::Json, _) => value.clone(),
            (Kind::Text, _) => return Err(wrong("a text")),
            (Kind::Integer, value) => value.as_i64().map(Value::from).ok_or_else(|| wrong("a whole number"))?,
            (Kind::Real, value) => value.as_f64().map(Value::from).ok_or_else(|| wrong("a number"))?,
            (Kind::Boolean, value) => value.as_bool().map(Value::from).ok_or_else(|| wrong("true or false"))?,
            (Kind::Time, value) => {
                let moment = value.as_str().and_then(time::canonical);
                moment.map(Value::from).ok_or_else(|| wrong("a time such as 2026-02-04T10:00:00Z"))?
            }
            (Kind::List, Value::Array(items)) if items.iter().all(Value::is_string) => value.clone(),
            (Kind::List, _) => return Err(wrong("a list of texts")),
        };
        let checked = if column.personal == Personal::Content { text_check::check_value(&value, found) } else { value };
        row.set(name, checked);
    }
    Ok(row)
}

fn read(entity: Entity, text: &str, draft: &mut Draft<'_>) -> Result<Row, ChangeError> {
    let usage = |words: String| ChangeError::Usage(words);
    let value: Value = serde_json::from_str(text).map_err(|e| usage(format!("this is no JSON: {e}")))?;
    let object = value.as_object().ok_or_else(|| usage("one JSON object is expected".to_owned()))?;
    let mut found = Found::default();
    let mut row = canonical_row(entity, object, &mut found).map_err(usage)?;
    draft.disclosures.extend(found.sentences());
    match row.text("id") {
        Some(id) => check_id(entity, id)?,
        None => row.set("id", Value::from(new_id())),
    }
    Ok(row)
}

async fn refuse_known_id(draft: &mut Draft<'_>, row: &Row) -> Result<(), ChangeError> {
    match draft.store.locate(row.entity, row.id()).await? {
        None => Ok(()),
        Some(_) => Err(ChangeError::Refused(format!("there is a {} `{}` already", row.entity.title(), row.id()))),
    }
}

/// Plans one new case.
///
/// # Errors
/// [`ChangeError::Usage`] for what is no case, [`ChangeError::Refused`] for a duplicate or where it cannot be stored.
pub async fn case(store: &Store, text: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "record.case", Danger::Safe).await?;
    let mut row = read(Entity::Case, text, &mut draft)?;
    if row.get("prompt").is_null() {
        return Err(ChangeError::Usage("a case needs a `prompt`: what it was asked".to_owned()));
    }
    refuse_known_id(&mut draft, &row).await?;
    if row.text("message_hash").is_none() {
        let prompt = row.get("prompt");
        let message = prompt["message"].as_str().or(prompt.as_str()).map_or_else(|| prompt.to_string(), str::to_owned);
        row.set("message_hash", Value::from(message_hash(&message)));
    }
    let profile = place_in_bank(&mut draft, &mut row).await?;
    refuse_duplicate_case(&draft, &row).await?;
    settle_reward(&mut draft, &mut row)?;
    let mut new = NewRow { now: Vec::new(), row };
    if new.row.get("created_at").is_null() {
        new.now.push("created_at");
    }
    if let Some(profile) = profile {
        batch::add(&mut draft, Entity::Profile, &[profile]).await?;
    }
    let payload = json!({"caseId": new.row.id(), "profileId": new.row.get("profile_id"),
        "rewardScore": new.row.get("reward"), "outcome": new.row.get("outcome"), "tags": new.row.get("tags")});
    draft.trail = trail(store, "record.case", &new.row, &payload).await?;
    batch::add(&mut draft, Entity::Case, &[new]).await?;
    Ok(draft.seal())
}

/// Finds the bank of a case, or makes one.
async fn place_in_bank(draft: &mut Draft<'_>, row: &mut Row) -> Result<Option<NewRow>, ChangeError> {
    if let Some(id) = row.text("profile_id").map(str::to_owned) {
        let profile = draft.locate(Entity::Profile, &id).await?.row;
        for column in ["user_id", "agent_id"] {
            if !row.get(column).is_null() && row.get(column) != profile.get(column) {
                return Err(ChangeError::Usage(format!("the bank {id} is of another {}", column.replace("_id", ""))));
            }
            row.set(column, profile.get(column).clone());
        }
        return Ok(None);
    }
    let (Some(user), Some(agent)) = (row.text("user_id").map(str::to_owned), row.text("agent_id").map(str::to_owned))
    else {
        return Err(ChangeError::Usage("a case needs its `profile_id`, or `user_id` and `agent_id`".to_owned()));
    };
    if let Some(known) = bank(draft.store, Some(&user), Some(&agent)).await? {
        row.set("profile_id", known.get("id").clone());
        draft.locate(Entity::Profile, known.id()).await?;
        return Ok(None);
    }
    let id = new_id();
    row.set("profile_id", Value::from(id.clone()));
    draft.effects.push(format!("a bank for {user} and {agent} is made: there was none"));
    let values = [("id", Value::from(id)), ("user_id", Value::from(user)), ("agent_id", Value::from(agent))];
    Ok(Some(NewRow::new(Entity::Profile, values).at_once("created_at").at_once("updated_at")))
}

async fn refuse_duplicate_case(draft: &Draft<'_>, row: &Row) -> Result<(), ChangeError> {
    let Some(hash) = row.text("message_hash") else { return Ok(()) };
    let alike = draft.store.related(Entity::Case, "message_hash", &[hash.to_owned()]).await?;
    match alike.iter().find(|c| c.get("profile_id") == row.get("profile_id")) {
        None => Ok(()),
        Some(known) => Err(ChangeError::Refused(format!(
            "the bank holds a case with the same message already: `{}` (hash {hash})",
            known.id()
        ))),
    }
}

fn settle_reward(draft: &mut Draft<'_>, row: &mut Row) -> Result<(), ChangeError> {
    match row.number("reward") {
        Some(value) if (0.0..=1.0).contains(&value) => Ok(()),
        Some(value) => Err(ChangeError::Usage(format!("a reward is a number from 0 to 1, not {value}"))),
        None => {
            match row.text("outcome").and_then(|outcome| reward::reward(outcome, None)) {
                Some(value) => {
                    row.set("reward", Value::from(value));
                    draft.effects.push(format!("the reward is {value} by the rule for its outcome"));
                }
                None => draft.disclosures.push("no reward is given, and none follows from the outcome".to_owned()),
            }
            Ok(())
        }
    }
}

/// Plans one new episode.
///
/// # Errors
/// As [`case`]; [`ChangeError::NotFound`] for a parent that is not there.
pub async fn episode(store: &Store, text: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "record.episode", Danger::Safe).await?;
    let mut row = read(Entity::Episode, text, &mut draft)?;
    if ["title", "summary", "detail", "observation"].iter().all(|c| row.text(c).is_none_or(|t| t.trim().is_empty())) {
        return Err(ChangeError::Usage("an episode needs a title, summary, detail or observation".to_owned()));
    }
    let Some(started) = row.text("started_at").map(str::to_owned) else {
        return Err(ChangeError::Usage("an episode needs `started_at`".to_owned()));
    };
    refuse_known_id(&mut draft, &row).await?;
    refuse_duplicate_episode(store, &row, &started).await?;
    let ended = row.text("ended_at").map(str::to_owned);
    if let Some(seconds) = ended.as_deref().and_then(|end| time::seconds_between(&started, end)) {
        if seconds < 0.0 {
            return Err(ChangeError::Usage("the episode ends before it starts".to_owned()));
        }
        if row.get("duration_seconds").is_null() {
            row.set("duration_seconds", Value::from(seconds));
        }
    }
    if row.get("status").is_null() {
        row.set("status", Value::from(if ended.is_some() { "closed" } else { "active" }));
    }
    match row.text("parent_id").map(str::to_owned) {
        Some(parent) => {
            draft.locate(Entity::Episode, &parent).await?;
        }
        None => draft
            .disclosures
            .push("no parent is given; none is looked for, since the episode comes without a vector".to_owned()),
    }
    batch::add(&mut draft, Entity::Episode, &[NewRow { row, now: Vec::new() }]).await?;
    Ok(draft.seal())
}

/// An episode of the same agent and user that started at the same moment and says the same is the same episode.
async fn refuse_duplicate_episode(store: &Store, row: &Row, started: &str) -> Result<(), ChangeError> {
    let mut query = Query::new(Entity::Episode);
    let filter = |column: &str, value: Operand| {
        Entity::Episode.column(column).map(|c| Filter { column: c.name, op: Operator::Equal, value })
    };
    query.filters.extend(filter("started_at", Operand::Time(started.to_owned())));
    query.filters.extend(row.text("agent_id").and_then(|agent| filter("agent_id", Operand::Text(agent.to_owned()))));
    let said = |row: &Row| {
        let columns = ["agent_id", "user_id", "title", "summary", "detail", "observation"];
        message_hash(&columns.map(|c| row.get(c).to_string()).join("\n"))
    };
    let alike = store.page(&query).await?.rows;
    match alike.iter().find(|other| said(other) == said(row)) {
        None => Ok(()),
        Some(known) => Err(ChangeError::Refused(format!("the same episode is there already: `{}`", known.id()))),
    }
}
