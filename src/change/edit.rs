//! Sets columns of any row, with the values derived from them: hashes, durations, times of change. A vector that no
//! longer fits its text is removed, so that a backfill recreates it. Also supersedes facts: the old one stays.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::feedback::{addable, writable};
use super::import::prompt_hash;
use super::operation::FeedbackFields;
use super::plan::{ChangeDanger, Plan};
use super::profile::{check_window, report_cases_outside};
use super::record::canonical_row;
use super::reward::trail;
use super::{ChangeError, batch, feedback, given, new_id, now, policy, referred};
use crate::layout::{BoundSource, StoredAs};
use crate::memory::text_check::TextOddities;
use crate::memory::{Entity, Row, findings, json, text_check, time};
use crate::recall::keyword;
use crate::store::Store;
use crate::store::embedding::VectorShelf;
use crate::store::encode::{
    GivenValue, LocatedRow, check_seconds, goes_within, keeps_whole, key_columns, plain_column, table_of, touched,
    with_members,
};
use crate::store::fetched::FetchedValue;
use crate::store::shape::TableShape;
use crate::store::stored::{Cell, Mutation, StoredRows};

/// Status of a memory that another one has replaced.
pub const SUPERSEDED: &str = "superseded";

/// Status of a memory in use.
pub(super) const ACTIVE: &str = "active";

/// Member of a superseded memory's metadata with its previous status, if that was none or not `active`.
pub(super) const STATUS_BEFORE: &str = "status_before";
/// Most bytes of a memory's text.
const TEXT: usize = 1_000_000;

/// Plans that columns of a row are set.
///
/// # Errors
/// [`ChangeError::Usage`] for an invalid value, [`ChangeError::NotFound`], [`ChangeError::Conflict`] if the current
/// values are not those of `instead_of`, or [`ChangeError::Refused`] for a column that is derived from others, or that
/// the layout cannot write.
pub async fn edit(
    store: &Store,
    entity: Entity,
    id: &str,
    set: &Map<String, Value>,
    instead_of: &Map<String, Value>,
) -> Result<Plan, ChangeError> {
    check(entity, set)?;
    if entity == Entity::Feedback {
        let seen = Some(instead_of).filter(|seen| !seen.is_empty());
        return feedback::edit(store, id, &feedback_fields(set)?, seen).await;
    }
    if set.is_empty() {
        return Err(ChangeError::Usage("say what to set: COLUMN=VALUE".to_owned()));
    }
    let mut found_secrets = TextOddities::default();
    let given = canonical_row(entity, set, &mut found_secrets).map_err(ChangeError::Usage)?;
    let mut draft = Draft::new(store, "edit", ChangeDanger::Guarded).await?;
    draft.disclosures.extend(found_secrets.sentences());
    let found = draft.locate(entity, id).await?;
    writable(found.source)?;
    check_seen(&found.row, instead_of)?;
    let mut row = found.row.clone();
    for name in set.keys() {
        row.set(name, given.get(name).clone());
    }
    settle(store, &found, &mut row).await?;
    set_to(&mut draft, &found, &row, Some("edit")).await?;
    Ok(draft.seal())
}

/// Adds to a draft that a row changes to another one, with derived values. `cause` is recorded in the memory's own
/// trail.
///
/// # Errors
/// As [`edit`].
pub(super) async fn set_to(
    draft: &mut Draft<'_>,
    found: &LocatedRow<'_>,
    row: &Row,
    cause: Option<&str>,
) -> Result<(), ChangeError> {
    let (store, entity) = (draft.store, row.entity);
    let changed = changed_columns(&found.row, row);
    if changed.is_empty() {
        return Ok(());
    }
    given::check(found.source, Some(&found.row), row)?;
    if entity == Entity::Profile && changed.iter().any(|column| matches!(*column, "user_id" | "agent_id")) {
        given::check_only_bank(store, row).await?;
        draft.relies_on_none(found.source, row, &["user_id", "agent_id"]);
    }
    let shape = store.shapes().shape(&found.table()).await?;
    for column in &changed {
        check_seconds(found.source, &shape, column, row.get(column)).map_err(ChangeError::Refused)?;
    }
    let update = becoming(store, found, row, &changed).await?;
    draft.push(update);
    check_whole(store, row, &changed).await?;
    refuse_unknown(draft, row, &changed).await;
    draft.alters(&found.row, row);
    follow_text(draft, found, row).await?;
    if entity == Entity::Case {
        report_case_values(draft, &found.row, row, cause).await?;
    }
    if changed.contains(&"window_size") {
        report_cases_outside(draft, row).await?;
    }
    Ok(())
}

/// Effects of a changed text on what was derived from the old one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextRemains {
    /// The vector of the old text is deleted.
    pub loses_vector: bool,
    /// The vector of the earlier text stays.
    pub keeps_vector: bool,
    /// Copies that were computed of the earlier text stay.
    pub keeps_copies: bool,
    /// Search words of the old text stay.
    pub keeps_words: bool,
}

impl TextRemains {
    /// All that a source may compute of a text.
    pub fn of_all(source: &BoundSource) -> Self {
        let has_copies = source.write.as_ref().is_some_and(|write| !write.copies.is_empty());
        TextRemains {
            keeps_vector: source.vector.is_some(),
            keeps_copies: has_copies || source.entity == Entity::Case,
            ..TextRemains::default()
        }
    }
}

/// Adds to a draft that columns of a row are set, with derived values as in an edit. The caller records the change.
///
/// # Errors
/// [`ChangeError::Refused`] for a value that cannot be stored; otherwise the engine's refusal.
pub async fn rewrite(
    draft: &mut Draft<'_>,
    found: &LocatedRow<'_>,
    values: &[(&'static str, Value)],
) -> Result<TextRemains, ChangeError> {
    let mut row = found.row.clone();
    values.iter().for_each(|(column, value)| row.set(column, value.clone()));
    settle(draft.store, found, &mut row).await?;
    let changed = changed_columns(&found.row, &row);
    let mut update = becoming(draft.store, found, &row, &changed).await?;
    // Several canonical columns may be read from one stored value: its last version includes all of them.
    if let Mutation::Update { set, .. } = &mut update {
        let mut known = HashSet::new();
        set.reverse();
        set.retain(|(name, _)| known.insert(name.clone()));
        set.reverse();
    }
    draft.push(update);
    follow_text(draft, found, &row).await
}

/// The columns in which two states of a row differ.
fn changed_columns(before: &Row, after: &Row) -> Vec<&'static str> {
    let names = before.entity.columns().iter().map(|column| column.name);
    names.filter(|column| !after.json(column).is_same(before.json(column))).collect()
}

/// The update of a row that becomes another one in these columns, with the time of the change.
async fn becoming(
    store: &Store,
    found: &LocatedRow<'_>,
    row: &Row,
    changed: &[&'static str],
) -> Result<Mutation, ChangeError> {
    let mut values: Vec<(&str, GivenValue)> =
        changed.iter().map(|column| (*column, GivenValue::Is(row.get(column).clone()))).collect();
    let shape = store.shapes().shape(&found.table()).await?;
    if takes_time(found, &shape) && !changed.contains(&"updated_at") {
        values.push(("updated_at", GivenValue::Now));
    }
    let update = found.update(&shape, &values).map_err(ChangeError::Refused)?;
    referred::check(store, found, &update).await?;
    Ok(update)
}

/// Adds to a draft the effects of a changed text on its vector and search words.
async fn follow_text(draft: &mut Draft<'_>, found: &LocatedRow<'_>, row: &Row) -> Result<TextRemains, ChangeError> {
    let mut remains = TextRemains::default();
    if keyword::text_of(&found.row) != keyword::text_of(row) {
        drop_vector(draft, found, &mut remains).await?;
        report_search_words(draft, found, &mut remains).await?;
    }
    Ok(remains)
}

/// Checks that the whole that this row becomes a part of exists, and has the same owner and agent.
async fn check_whole(store: &Store, row: &Row, changed: &[&str]) -> Result<(), ChangeError> {
    for (column, entity) in [("episode_id", Entity::Episode), ("profile_id", Entity::Profile)] {
        let Some(id) = row.text(column).filter(|_| changed.contains(&column)) else { continue };
        // If such rows are not stored or not readable, this cannot be checked.
        if store.sources_of(entity).is_err() || store.report().unseen(entity).is_some() {
            continue;
        }
        let Some(whole) = store.row(entity, id).await? else {
            return Err(ChangeError::Refused(format!("`{column}` refers to a missing {}: {id}", entity.title())));
        };
        let differs = |of: &&str| matches!((row.text(of), whole.text(of)), (Some(own), Some(other)) if own != other);
        if let Some(of) = ["user_id", "agent_id"].iter().find(|of| differs(of)) {
            return Err(ChangeError::Refused(format!(
                "{} {id} has another `{of}` than this {}: set it too, or name another {}",
                entity.title(),
                row.entity.title(),
                entity.title()
            )));
        }
    }
    Ok(())
}

/// Adds to a draft which new values name unknown agents or people.
async fn refuse_unknown(draft: &mut Draft<'_>, row: &Row, changed: &[&str]) {
    let set = |column| row.text(column).filter(|_| changed.contains(&column));
    for (column, entity) in [("agent_id", Entity::Agent), ("user_id", Entity::Subject)] {
        // If agents or people are not readable, this cannot be checked.
        if let Some(id) = set(column)
            && matches!(draft.store.row(entity, id).await, Ok(None))
        {
            draft.disclosures.push(format!("`{column}` refers to a missing {}: {id}", entity.title()));
        }
    }
}

/// Whether the time of the change is set by us: the layout may set the column with every change already.
fn takes_time(found: &LocatedRow<'_>, shape: &TableShape) -> bool {
    let touched = touched(found.source, shape);
    plain_column(found.source, "updated_at").is_some_and(|(name, _)| !touched.iter().any(|(other, _)| other == name))
}

fn check(entity: Entity, set: &Map<String, Value>) -> Result<(), ChangeError> {
    let refused = |words: &str| Err(ChangeError::Refused(words.to_owned()));
    match entity {
        Entity::UtilityEvent => {
            return refused("signals are a history that is replayed: `signal retract ID` takes one back");
        }
        Entity::AuditEntry => return refused("an audit trail is append-only"),
        _ => {}
    }
    for name in set.keys() {
        if matches!(name.as_str(), "id") {
            return refused("`id` names the row: record a new one instead");
        }
        given::check_by_hand(entity, name)?;
    }
    if let Some(window) = set.get("window_size") {
        check_window(window)?;
    }
    match set.get("reward").and_then(Value::as_f64).filter(|r| !(0.0..=1.0).contains(r)) {
        Some(reward) => Err(ChangeError::Usage(format!("a reward is a number from 0 to 1, not {reward}"))),
        None => Ok(()),
    }
}

/// Checks that a row still has the values that the editor saw.
///
/// # Errors
/// [`ChangeError::Conflict`] with the columns that differ.
pub(super) fn check_seen(row: &Row, seen: &Map<String, Value>) -> Result<(), ChangeError> {
    let moved: Vec<String> =
        seen.iter().filter(|(name, value)| row.get(name) != *value).map(|(name, _)| format!("`{name}`")).collect();
    if moved.is_empty() {
        return Ok(());
    }
    let message = format!("someone else changed {} after it was read", moved.join(", "));
    Err(ChangeError::Conflict { message, rows: vec![format!("{} {} changed", row.entity.title(), row.id())] })
}

/// Converts the columns of a feedback edit to feedback fields; other columns are refused.
fn feedback_fields(set: &Map<String, Value>) -> Result<FeedbackFields, ChangeError> {
    let mut fields = FeedbackFields::default();
    for (name, value) in set {
        let text = || value.as_str().map(str::to_owned);
        match name.as_str() {
            "kind" => fields.kind = text(),
            "rating" => fields.rating = value.as_i64(),
            "correction" => fields.correction = Some(text().unwrap_or_default()),
            "user_id" => fields.user = text(),
            other => {
                return Err(ChangeError::Refused(format!(
                    "only `kind`, `rating`, `correction` and `user_id` of feedback can be set; `{other}` ties it to \
                     its episode: remove it and add it where it belongs"
                )));
            }
        }
    }
    Ok(fields)
}

/// Sets the values derived from other columns.
async fn settle(store: &Store, found: &LocatedRow<'_>, row: &mut Row) -> Result<(), ChangeError> {
    let differs = |row: &Row, column: &str| row.get(column) != found.row.get(column);
    let stored = |column: &str| plain_column(found.source, column);
    if row.entity == Entity::Case && differs(row, "prompt") && stored("message_hash").is_some() {
        row.set("message_hash", Value::from(prompt_hash(row.get("prompt"))));
    }
    if row.entity == Entity::Episode
        && (differs(row, "started_at") || differs(row, "ended_at"))
        && let Some((column, _)) = stored("duration_seconds")
    {
        let seconds = row.text("started_at").zip(row.text("ended_at")).and_then(|(a, b)| time::seconds_between(a, b));
        if seconds.is_some_and(|seconds| seconds < 0.0) {
            return Err(ChangeError::Usage("the episode would end before it starts".to_owned()));
        }
        let shape = store.shapes().shape(&found.table()).await?;
        let whole = shape.column(column).is_some_and(|c| keeps_whole(&c.compared));
        let seconds = seconds.map(|seconds| if whole { seconds.round() } else { seconds });
        row.set("duration_seconds", seconds.map_or(Value::Null, Value::from));
    }
    Ok(())
}

/// Reports search-word columns that still contain the old text's words. Columns that the engine computes follow the
/// text.
async fn report_search_words(
    draft: &mut Draft<'_>,
    found: &LocatedRow<'_>,
    remains: &mut TextRemains,
) -> Result<(), ChangeError> {
    let shape = draft.store.shapes().shape(&found.table()).await?;
    for column in shape.columns.iter().filter(|column| column.compared == "tsvector") {
        remains.keeps_words = true;
        draft.disclosures.push(format!(
            "{}.{} keeps the search words of the earlier text, until the application or a trigger updates them",
            found.table().title(),
            column.name
        ));
    }
    Ok(())
}

/// Deletes the vector of a changed text.
async fn drop_vector(
    draft: &mut Draft<'_>,
    found: &LocatedRow<'_>,
    remains: &mut TextRemains,
) -> Result<(), ChangeError> {
    let store = draft.store;
    if found.source.vector.is_none() {
        return Ok(());
    }
    let again = store.invocation().line(["backfill", "embeddings", "--apply"]);
    let shelf = match VectorShelf::of(found.source) {
        Ok(shelf) => shelf,
        Err(why) => {
            remains.keeps_vector = true;
            draft.disclosures.push(format!("the vector of the earlier text stays: {why}"));
            return Ok(());
        }
    };
    if let Some(key) = &shelf.key {
        let rows = StoredRows::with(&shelf.table, key, FetchedValue::Text(found.row.id().to_owned()));
        if draft.watch(rows.clone()).await? == 0 {
            return Ok(());
        }
        draft.push(Mutation::Delete(rows));
    } else {
        let stands = found.image.get(&shelf.column).is_some_and(|raw| *raw != FetchedValue::Null);
        let shape = store.shapes().shape(&shelf.table).await?;
        if !stands {
            return Ok(());
        }
        let keeps = found.source.write.as_ref().is_some_and(|write| write.keeps_vector);
        if keeps || shape.column(&shelf.column).is_some_and(|c| c.required) {
            remains.keeps_vector = true;
            draft.disclosures.push(format!(
                "{}.{} keeps the vector of the earlier text; `{again}` makes a new one",
                shelf.table.title(),
                shelf.column
            ));
            return Ok(());
        }
        let set = |m: &mut Mutation| match m {
            Mutation::Update { table, key, set } if *table == shelf.table && *key == found.key => {
                set.push((shelf.column.clone(), Cell::Is(FetchedValue::Null)));
                true
            }
            _ => false,
        };
        draft.mutations_mut().any(set);
    }
    remains.loses_vector = true;
    draft.effects.push(format!("its vector belongs to the earlier text and is removed; `{again}` makes a new one"));
    Ok(())
}

/// Adds to a draft the effects of a changed case on its bank, and on the memory's own trail.
async fn report_case_values(
    draft: &mut Draft<'_>,
    before: &Row,
    after: &Row,
    cause: Option<&str>,
) -> Result<(), ChangeError> {
    let store = draft.store;
    if let Some(profile) = after.text("profile_id") {
        policy::report_trained(draft, &[profile], "its profile").await?;
    }
    if before.get("reward") == after.get("reward") && before.get("outcome") == after.get("outcome") {
        return Ok(());
    }
    let payload = |row: &Row, cause: Option<&str>| {
        let mut said = json!({"caseId": row.id(), "rewardScore": row.get("reward"), "outcome": row.get("outcome")});
        cause.into_iter().for_each(|cause| said["cause"] = Value::from(cause));
        said
    };
    draft.trail = trail(store, "reward", after, &payload(after, cause)).await?;
    draft.undo_trail = trail(store, "reward", before, &payload(before, Some("undo"))).await?;
    Ok(())
}

/// Plans that a new memory replaces one, which stays, is marked, and is linked both ways. If `text` is the id of
/// another memory, that one replaces it.
///
/// # Errors
/// [`ChangeError::Usage`] for an empty text, [`ChangeError::NotFound`], [`ChangeError::Refused`] if memories are
/// read-only, or neither mark nor link can be stored.
pub async fn supersede(store: &Store, id: &str, text: &str) -> Result<Plan, ChangeError> {
    if text.trim().is_empty() || text.len() > TEXT {
        return Err(ChangeError::Usage(format!("give the text of the new memory: 1 to {TEXT} bytes")));
    }
    if text == id {
        return Err(ChangeError::Usage(format!("memory {id} cannot supersede itself")));
    }
    let mut draft = Draft::new(store, "supersede", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Memory, id).await?;
    writable(found.source)?;
    if is_superseded(&found.row) {
        return Err(ChangeError::Refused(format!(
            "memory {id} is already superseded: supersede the one that followed it"
        )));
    }
    if !marks_superseded(found.source) {
        return Err(ChangeError::Refused(format!(
            "{} cannot mark a memory as superseded and link the two: neither `metadata`, nor `status` with \
             `source_ids` as a list",
            table_of(found.source).title()
        )));
    }
    let (clean, odd) = text_check::check(text);
    draft.disclosures.extend(odd.sentences());
    if store.row(Entity::Memory, text).await?.is_some() {
        return superseded_by(draft, &found, text).await;
    }
    addable(found.source)?;
    let mut new = found.row.clone();
    let new_key = new_key(found.source, id);
    new.set("id", Value::from(new_key.clone()));
    new.set("text", Value::from(clean));
    for column in ["created_at", "updated_at", "uses", "utility", "problems"] {
        new.set(column, Value::Null);
    }
    follow_up(&found, &mut new, id);
    set_times_within(found.source, &mut new);
    if new.text("expires_at").is_some_and(|at| *at <= *now()) {
        without_member(found.source, &mut new, "expires_at");
        new.set("expires_at", Value::Null);
        draft
            .effects
            .push("the new memory does not expire, because the expiry of the earlier one has passed".to_owned());
    }
    mark(&mut draft, &found, &new_key).await?;
    let metadata = new.get("metadata").clone();
    let mut row = batch::NewRow::from(new);
    for column in ["created_at", "updated_at"] {
        if plain_column(found.source, column).is_some()
            && let Some(column) = Entity::Memory.column(column)
        {
            row = row.at_once(column.name);
        }
    }
    batch::add_to(&mut draft, found.source, vec![row], Some(&found.image)).await?;
    copy_metadata(&mut draft, &found, &metadata)?;
    draft.effects.push(format!("memory {id} stays, marked as superseded by {new_key}"));
    if found.source.vector.is_some() {
        let again = store.invocation().line(["backfill", "embeddings", "--apply"]);
        draft.effects.push(format!("the new memory has no vector yet: `{again}` makes one"));
    }
    Ok(draft.seal())
}

/// Copies the stored metadata of the earlier memory to the new one of a draft, except what differs.
fn copy_metadata(draft: &mut Draft<'_>, found: &LocatedRow<'_>, metadata: &Value) -> Result<(), ChangeError> {
    let Some((name, _)) = plain_column(found.source, "metadata") else { return Ok(()) };
    let Some(old) = found.image.get(name) else { return Ok(()) };
    let new = with_members(old, found.row.get("metadata"), metadata);
    let Some(new) = new.map_err(|why| ChangeError::Refused(format!("{}.{name} {why}", found.table().title())))? else {
        return Ok(());
    };
    for mutation in draft.mutations_mut() {
        let Mutation::Insert { table, columns, rows, .. } = mutation else { continue };
        let (true, Some(at)) = (*table == found.table(), columns.iter().position(|column| column == name)) else {
            continue;
        };
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            // Other columns of the new memory may be within it.
            let is_whole = |text: &String| json::read(text).value == *metadata;
            if matches!(cell, Cell::Is(FetchedValue::Text(text)) if is_whole(text)) {
                *cell = Cell::Is(new.clone());
            }
        }
    }
    Ok(())
}

/// Sets the times of a new memory that are within its metadata, which was copied from an older one.
fn set_times_within(source: &BoundSource, new: &mut Row) {
    for name in ["created_at", "updated_at"] {
        if plain_column(source, name).is_some() || !goes_within(source, name) {
            continue;
        }
        without_member(source, new, name);
        new.set(name, Value::from(now()));
    }
}

/// Removes the members of a row's metadata from which a column is read.
fn without_member(source: &BoundSource, row: &mut Row, column: &str) {
    if let Value::Object(mut metadata) = row.get("metadata").clone() {
        let paths = source.column(column).iter().filter_map(|way| way.inside.path.as_deref());
        let known = metadata.len();
        paths.for_each(|path| drop(metadata.shift_remove(path)));
        if metadata.len() < known {
            row.set("metadata", Value::Object(metadata));
        }
    }
}

/// Whether another memory has replaced one.
pub(super) fn is_superseded(row: &Row) -> bool {
    row.text("status") == Some(SUPERSEDED) || row.get("metadata")["superseded_by"].is_string()
}

/// Reason why a memory is no longer in use, as text: memories merged into it would be lost with it. `None` while it
/// is in use.
pub(super) fn out_of_use(row: &Row) -> Option<String> {
    let status = row.text("status").filter(|status| findings::OUT_OF_USE.contains(status));
    let is_over = row.text("expires_at").is_some_and(|at| *at <= *now());
    status.map(str::to_owned).or_else(|| is_over.then(|| "expired".to_owned()))
}

/// The key of a new row like another one: of a composite key, the last part is new.
fn new_key(source: &BoundSource, beside: &str) -> String {
    let parts = key_columns(source, "id").and_then(|_| serde_json::from_str::<Vec<Value>>(beside).ok());
    match parts.as_deref().and_then(<[Value]>::split_last) {
        Some((_, others)) => others.iter().cloned().chain([Value::from(new_id())]).collect::<Value>().to_string(),
        None => new_id(),
    }
}

/// Whether a source can mark a memory as superseded and link the two.
pub(super) fn marks_superseded(source: &BoundSource) -> bool {
    let stored = |column: &str| plain_column(source, column);
    let one = stored("source_ids").is_some_and(|(_, way)| way.stored == StoredAs::One);
    !one && (stored("metadata").is_some() || stored("status").is_some() && stored("source_ids").is_some())
}

/// Marks a memory as superseded by another one.
async fn mark(draft: &mut Draft<'_>, found: &LocatedRow<'_>, by: &str) -> Result<(), ChangeError> {
    let stored = |column: &str| plain_column(found.source, column).is_some();
    let mut old = found.row.clone();
    if stored("metadata") {
        old.set("metadata", with(found.row.get("metadata"), "superseded_by", by));
    }
    if stored("status") {
        if stored("metadata") && found.row.text("status") != Some(ACTIVE) {
            let metadata = with(old.get("metadata"), STATUS_BEFORE, found.row.get("status").clone());
            old.set("metadata", metadata);
        }
        old.set("status", Value::from(SUPERSEDED));
    }
    set_again(draft, found, &old, &["metadata", "status"]).await
}

/// Records in the following memory which one it follows.
fn follow_up(followed: &LocatedRow<'_>, by: &mut Row, id: &str) {
    let stored = |column: &str| plain_column(followed.source, column).is_some();
    if stored("metadata") {
        by.set("metadata", with(by.get("metadata"), "supersedes", id));
    }
    if stored("source_ids") {
        let sources: Vec<String> = by.list("source_ids").into_iter().map(str::to_owned).collect();
        by.set(
            "source_ids",
            json!(sources.into_iter().filter(|known| known != id).chain([id.to_owned()]).collect::<Vec<_>>()),
        );
    }
}

/// Sets columns of a row to their new values.
///
/// # Errors
/// [`ChangeError::Refused`] for a value that cannot be stored; otherwise the engine's refusal.
pub(super) async fn set_again(
    draft: &mut Draft<'_>,
    found: &LocatedRow<'_>,
    row: &Row,
    columns: &[&str],
) -> Result<(), ChangeError> {
    let store = draft.store;
    let changed = columns.iter().filter(|c| row.get(c) != found.row.get(c));
    let mut values: Vec<(&str, GivenValue)> = changed.map(|c| (*c, GivenValue::changed(row, c))).collect();
    let shape = store.shapes().shape(&found.table()).await?;
    if takes_time(found, &shape) {
        values.push(("updated_at", GivenValue::Now));
    }
    draft.push(found.update(&shape, &values).map_err(ChangeError::Refused)?);
    draft.alters(&found.row, row);
    Ok(())
}

/// Plans that an existing memory replaces one: both stay with all their links.
async fn superseded_by(mut draft: Draft<'_>, found: &LocatedRow<'_>, by: &str) -> Result<Plan, ChangeError> {
    let successor = draft.locate(Entity::Memory, by).await?;
    writable(successor.source)?;
    let owner = |row: &Row| row.get("user_id").clone();
    if owner(&successor.row) != owner(&found.row) {
        return Err(ChangeError::Refused(format!("memory {by} belongs to another person")));
    }
    if is_superseded(&successor.row) {
        return Err(ChangeError::Refused(format!(
            "memory {by} is itself superseded: name the one that followed it, or `undo` that first"
        )));
    }
    if let Some(state) = out_of_use(&successor.row).filter(|_| out_of_use(&found.row).is_none()) {
        return Err(ChangeError::Refused(format!("memory {by} is {state}: name one that is in use")));
    }
    mark(&mut draft, found, by).await?;
    let mut follower = successor.row.clone();
    follow_up(&successor, &mut follower, found.row.id());
    if follower != successor.row {
        set_again(&mut draft, &successor, &follower, &["metadata", "source_ids"]).await?;
    }
    draft.effects.push(format!("memory {} stays with its links, marked as superseded by {by}", found.row.id()));
    Ok(draft.seal())
}

/// Adds a member to a JSON object; another value is kept as a further member.
pub(super) fn with(value: &Value, name: &str, member: impl Into<Value>) -> Value {
    let mut object = match value {
        Value::Object(object) => object.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    object.insert(name.to_owned(), member.into());
    Value::Object(object)
}
