//! Records a curated case in the bank of its user and agent, which is created if missing.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{object, read, refuse_known_id, refuse_what_has_no_place};
use crate::change::batch::{self, NewRow};
use crate::change::draft::Draft;
use crate::change::import::{bank, prompt_hash};
use crate::change::plan::{ChangeDanger, Plan};
use crate::change::reward::trail;
use crate::change::{ChangeError, new_id};
use crate::memory::prune::copies::{CaseMessage, message_hash_of};
use crate::memory::{Entity, Row, reward};
use crate::store::Store;

/// Plans one new case.
///
/// # Errors
/// [`ChangeError::Usage`] for text that is not a case, [`ChangeError::Refused`] for a duplicate or if it cannot be
/// stored.
pub async fn case(store: &Store, text: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "record.case", ChangeDanger::Safe).await?;
    let mut row = read(Entity::Case, &object(text)?, &mut draft)?;
    refuse_known_id(&mut draft, &row).await?;
    if message_hash_of(&row).is_none() {
        row.set("message_hash", Value::from(prompt_hash(row.get("prompt"))));
    }
    let profile = place_in_bank(&mut draft, &mut row).await?;
    refuse_duplicate_case(&mut draft, &row).await?;
    settle_reward(&mut draft, &mut row)?;
    refuse_what_has_no_place(batch::target(store, Entity::Case)?, &row, &[])?;
    let mut new = NewRow::from(row);
    if new.row.get("created_at").is_null() {
        new.now.push("created_at");
    }
    if let Some(profile) = profile {
        batch::add(&mut draft, Entity::Profile, vec![profile]).await?;
    }
    let payload = json!({"caseId": new.row.id(), "profileId": new.row.get("profile_id"),
        "rewardScore": new.row.get("reward"), "outcome": new.row.get("outcome"), "tags": new.row.get("tags")});
    draft.trail = trail(store, "record.case", &new.row, &payload).await?;
    let gone = json!({"caseId": new.row.id(), "profileId": new.row.get("profile_id"), "cause": "undo"});
    draft.undo_trail = trail(store, "record.case.undo", &new.row, &gone).await?;
    batch::add(&mut draft, Entity::Case, vec![new]).await?;
    Ok(draft.seal())
}

/// Finds the bank of a case, or makes one.
async fn place_in_bank(draft: &mut Draft<'_>, row: &mut Row) -> Result<Option<NewRow>, ChangeError> {
    if let Some(id) = row.text("profile_id").map(str::to_owned) {
        let profile = draft.locate(Entity::Profile, &id).await?.row;
        for column in ["user_id", "agent_id"] {
            if !row.get(column).is_null() && row.get(column) != profile.get(column) {
                return Err(ChangeError::Usage(format!(
                    "the bank {id} belongs to another {}",
                    column.replace("_id", "")
                )));
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
    draft.relies_on_none(batch::target(draft.store, Entity::Profile)?, row, &["user_id", "agent_id"]);
    let id = new_id();
    row.set("profile_id", Value::from(id.clone()));
    draft.effects.push(format!("a bank for {user} and {agent} is created: there was none"));
    let values = [("id", Value::from(id)), ("user_id", Value::from(user)), ("agent_id", Value::from(agent))];
    Ok(Some(NewRow::new(Entity::Profile, values).at_once("created_at").at_once("updated_at")))
}

async fn refuse_duplicate_case(draft: &mut Draft<'_>, row: &Row) -> Result<(), ChangeError> {
    let Some((hash, message)) = message_hash_of(row).zip(CaseMessage::of(row)) else { return Ok(()) };
    let (mut hash_is_known, mut known) = (false, None);
    let take = |case: Row, _| {
        if case.get("profile_id") != row.get("profile_id") {
            return ControlFlow::Continue(());
        }
        hash_is_known = true;
        if CaseMessage::of(&case).is_none_or(|other| !message.repeats(&other)) {
            return ControlFlow::Continue(());
        }
        known = Some(case.id().to_owned());
        ControlFlow::Break(())
    };
    let columns = ["id", "profile_id", "prompt", "message_hash"];
    draft.store.each_related(Entity::Case, "message_hash", &[hash], &columns, take).await?;
    if !hash_is_known {
        draft.relies_on_none(batch::target(draft.store, Entity::Case)?, row, &["profile_id", "message_hash"]);
    }
    match known {
        None => Ok(()),
        Some(known) => Err(ChangeError::Refused(format!(
            "the bank already holds a case with the same message: `{known}` (hash {hash})"
        ))),
    }
}

fn settle_reward(draft: &mut Draft<'_>, row: &mut Row) -> Result<(), ChangeError> {
    match row.number("reward") {
        Some(value) if (0.0..=1.0).contains(&value) => Ok(()),
        Some(value) => Err(ChangeError::Usage(format!("a reward is a number from 0 to 1, not {value}"))),
        None => {
            match reward::by_rule(row.text("outcome"), row.get("traces"), None) {
                Some(value) => {
                    row.set("reward", Value::from(value));
                    let rule =
                        if row.text("outcome").is_some_and(reward::says_something) { "outcome" } else { "tool calls" };
                    draft.effects.push(format!("the reward is {value} by the rule for its {rule}"));
                }
                None => draft.disclosures.push("no reward is given, and the outcome implies none".to_owned()),
            }
            Ok(())
        }
    }
}
