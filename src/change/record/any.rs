//! Records a row of any other kind from JSON: checks its references, sets its times, and updates lists and counts of
//! its episode.

use serde_json::{Value, json};

use super::{object, read, refuse_known_id, refuse_what_has_no_place};
use crate::change::batch::{self, NewRow};
use crate::change::draft::Draft;
use crate::change::feedback::{addable, writable};
use crate::change::operation::FeedbackFields;
use crate::change::plan::{ChangeDanger, Plan};
use crate::change::profile::check_window;
use crate::change::remove::COUNTED;
use crate::change::{ChangeError, feedback, given, now, uses};
use crate::layout::{BoundSource, LinkBy};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::encode::{GivenValue, goes_within, plain_column};

/// Plans one new row.
///
/// # Errors
/// [`ChangeError::Usage`] for invalid input, [`ChangeError::NotFound`] for a missing episode, [`ChangeError::Refused`]
/// for a duplicate, for an entity that is not recorded individually, or if it cannot be stored.
pub async fn any(store: &Store, entity: Entity, text: &str) -> Result<Plan, ChangeError> {
    let refused = |words: &str| Err(ChangeError::Refused(words.to_owned()));
    match entity {
        Entity::Feedback => return of_feedback(store, text).await,
        Entity::UtilityEvent => return refused("a signal moves a utility: `signal EPISODE …` adds one"),
        Entity::Policy => return refused("a policy is learned: `policy train BANK` trains a version"),
        Entity::AuditEntry => return refused("an audit trail is written by the changes that it records"),
        _ => {}
    }
    let mut draft = Draft::new(store, "record", ChangeDanger::Safe).await?;
    let source = batch::target(store, entity)?;
    addable(source)?;
    let object = object(text)?;
    if let Some(window) = object.get("window_size") {
        check_window(window)?;
    }
    let row = if entity == Entity::MemoryLink {
        let row = super::canonical_row(entity, &object, &mut crate::memory::text_check::TextOddities::default())
            .map_err(ChangeError::Usage)?;
        given::check(source, None, &row)?;
        row
    } else {
        let row = read(entity, &object, &mut draft)?;
        refuse_known_id(&mut draft, &row).await?;
        row
    };
    if entity == Entity::Profile {
        given::check_only_bank(store, &row).await?;
        draft.relies_on_none(source, &row, &["user_id", "agent_id"]);
    }
    refuse_what_has_no_place(source, &row, &[])?;
    if entity == Entity::Memory {
        refuse_same_text(&mut draft, source, &row).await?;
    }
    let mut row = row;
    for name in ["created_at", "updated_at"] {
        let is_time = entity.column(name).is_some_and(|column| column.kind == crate::memory::ValueKind::Time);
        if is_time && row.get(name).is_null() && plain_column(source, name).is_none() && goes_within(source, name) {
            row.set(name, Value::from(now()));
        }
    }
    let mut new = NewRow::from(row.clone());
    for name in [entity.time_column(), "created_at", "updated_at"] {
        if let Some(column) = entity.column(name)
            && row.get(name).is_null()
            && column.kind == crate::memory::ValueKind::Time
            && plain_column(source, name).is_some()
            && !new.now.contains(&column.name)
        {
            new.now.push(column.name);
        }
    }
    let tally = batch::add(&mut draft, entity, vec![new]).await?;
    if tally.present > 0 {
        return Err(ChangeError::Refused(format!("this {} already exists", entity.title())));
    }
    match (entity, row.text("episode_id")) {
        (Entity::MemoryLink, Some(episode)) => {
            let found = draft.locate(Entity::Episode, episode).await?;
            let memory = row.text("memory_id").unwrap_or_default().to_owned();
            if store.contexts().memories(std::slice::from_ref(&memory)).await?.is_empty() {
                return Err(ChangeError::NotFound(format!("there is no memory `{memory}` in {}", store.location())));
            }
            uses::follow(&mut draft, &found.row, &[memory]).await?;
        }
        (Entity::CanvasEvent, Some(episode)) => follow_canvas(&mut draft, episode, row.id()).await?,
        (Entity::Segment, Some(episode)) => {
            draft.locate(Entity::Episode, episode).await?;
        }
        _ => {}
    }
    Ok(draft.seal())
}

/// Feedback is recorded with the episode's list and score.
async fn of_feedback(store: &Store, text: &str) -> Result<Plan, ChangeError> {
    let object = object(text)?;
    let mut fields = FeedbackFields::default();
    let mut episode = None;
    for (name, value) in &object {
        let text = value.as_str().map(str::to_owned);
        match name.as_str() {
            "episode_id" => episode = text,
            "kind" => fields.kind = text,
            "rating" => fields.rating = value.as_i64(),
            "correction" => fields.correction = text,
            "user_id" => fields.user = text,
            other => {
                return Err(ChangeError::Usage(format!(
                    "feedback is recorded with `episode_id`, `kind`, `rating`, `correction` and `user_id`; `{other}` \
                     is derived from them"
                )));
            }
        }
    }
    let episode =
        episode.ok_or_else(|| ChangeError::Usage("feedback needs the `episode_id` that it is about".to_owned()))?;
    feedback::add(store, &episode, &fields).await
}

/// The same text in the same collection by the same person is the same memory; an empty text does not count.
async fn refuse_same_text(draft: &mut Draft<'_>, source: &BoundSource, row: &Row) -> Result<(), ChangeError> {
    const OWNERS: [&str; 3] = ["collection", "user_id", "agent_id"];
    let said = row.text("text").filter(|text| !text.trim().is_empty());
    let (Some(text), Some(column)) = (said, Entity::Memory.column("text")) else { return Ok(()) };
    draft.relies_on_no_more(source, row, &[&OWNERS[..], &["text"]].concat()).await?;
    let same = Filter::new(column.name, Operator::Equal, Operand::Text(text.to_owned()));
    let owned = OWNERS.iter().filter_map(|name| {
        let column = Entity::Memory.column(name)?;
        Some(Filter::new(column.name, Operator::Equal, Operand::Text(row.text(name)?.to_owned())))
    });
    let filters = owned.chain([same]).collect();
    let found = draft.store.page(&Query { filters, ..Query::new(Entity::Memory) }).await?.rows;
    let alike = |other: &&Row| OWNERS.iter().all(|c| other.get(c) == row.get(c));
    match found.iter().find(alike) {
        Some(known) => Err(ChangeError::Refused(format!("the same memory already exists: `{}`", known.id()))),
        None => Ok(()),
    }
}

/// The episode's list and number of canvas events.
async fn follow_canvas(draft: &mut Draft<'_>, episode: &str, event: &str) -> Result<(), ChangeError> {
    let store = draft.store;
    let found = draft.locate(Entity::Episode, episode).await?;
    let mut shown = found.row.clone();
    let listed = found.source.links.iter().any(|link| {
        link.to == Entity::CanvasEvent && matches!(&link.by, LinkBy::List(column) if column == "canvas_ids")
    });
    if listed && plain_column(found.source, "canvas_ids").is_some() {
        let ids: Vec<&str> = found.row.list("canvas_ids").into_iter().chain([event]).collect();
        shown.set("canvas_ids", json!(ids));
    }
    if plain_column(found.source, "canvas_action_count").is_some() {
        let (contexts, links) = (store.contexts(), &found.source.links);
        let linked = contexts.linked(&[&found.row], links, Entity::CanvasEvent, Some(COUNTED)).await?.pop();
        if let Some(linked) = &linked {
            draft.counts_seen(&found, linked)?;
        }
        shown.set("canvas_action_count", Value::from(linked.map_or(0, |linked| linked.len()) as u64 + 1));
    }
    let changed = ["canvas_ids", "canvas_action_count"].into_iter().filter(|c| shown.get(c) != found.row.get(c));
    let values: Vec<(&str, GivenValue)> = changed.map(|c| (c, GivenValue::changed(&shown, c))).collect();
    if values.is_empty() {
        return Ok(());
    }
    writable(found.source)?;
    draft.sets(&found, &values, &shown).await
}
