//! Merges copies of a memory into it: their tags, sources, uses and references move to the remaining one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::draft::Draft;
use super::edit::{is_superseded, out_of_use, set_again, with};
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use super::{ChangeError, remove, uses};
use crate::memory::agreeing;
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column};

/// Copies that one plan may name.
const MOST: usize = 1_000;

/// Plans to merge copies of a memory: it gets their tags, sources and links, references to them are redirected to it,
/// and they are deleted.
///
/// # Errors
/// [`ChangeError::Usage`], [`ChangeError::NotFound`], or [`ChangeError::Refused`] if a memory belongs to another person
/// or agent, is read-only, has been superseded, or its owner is under a legal hold.
pub async fn plan(store: &Store, id: &str, copies: &[String]) -> Result<Plan, ChangeError> {
    let ids: BTreeSet<&String> = copies.iter().collect();
    match ids.len() {
        0 => return Err(ChangeError::Usage("name the copies to merge into the memory".to_owned())),
        many if many > MOST => {
            return Err(ChangeError::Usage(format!("{many} copies are named; the maximum is {MOST}")));
        }
        _ if ids.iter().any(|copy| *copy == id) => {
            return Err(ChangeError::Usage(format!("memory {id} cannot be merged into itself")));
        }
        _ => {}
    }
    let mut draft = Draft::new(store, remove::MERGE, ChangeDanger::Guarded).await?.limited();
    let kept = draft.locate(Entity::Memory, id).await?;
    writable(kept.source)?;
    if is_superseded(&kept.row) {
        return Err(ChangeError::Refused(format!("memory {id} is superseded: merge into the one that followed it")));
    }
    let mut going = Vec::new();
    for copy in &ids {
        let found = draft.locate(Entity::Memory, copy).await?;
        writable(found.source)?;
        if found.row.get("user_id") != kept.row.get("user_id") {
            return Err(ChangeError::Refused(format!("memory {copy} and memory {id} belong to different people")));
        }
        if found.row.get("agent_id") != kept.row.get("agent_id") {
            return Err(ChangeError::Refused(format!("memory {copy} and memory {id} belong to different agents")));
        }
        going.push(found);
    }
    if let Some(state) = out_of_use(&kept.row).filter(|_| going.iter().any(|copy| out_of_use(&copy.row).is_none())) {
        return Err(ChangeError::Refused(format!("memory {id} is {state}: merge into one that is in use")));
    }
    disclose_lost(&mut draft, &kept.row, &going);
    follow(&mut draft, &kept, &going).await?;
    let mut gained = gained(&kept.row, &going);
    gained.extend(uses::gather(&mut draft, &kept, &going).await?);
    keep(&mut draft, &kept, gained).await?;
    draft.effects.push(agreeing(
        going.len(),
        &format!("{{#}} {{copy is|copies are}} removed: lists and links that named {{it|them}} will name memory {id}"),
    ));
    remove::take_whole(&mut draft, &going, Some(id)).await?;
    Ok(draft.seal())
}

/// Columns in which a memory keeps its own values.
const OWN: [&str; 6] = ["text", "title", "kind", "collection", "expires_at", "metadata"];

/// Reports contents of copies that the remaining memory lacks.
fn disclose_lost(draft: &mut Draft<'_>, kept: &Row, copies: &[LocatedRow<'_>]) {
    for column in OWN {
        let differs = |copy: &&LocatedRow<'_>| {
            let value = copy.row.get(column);
            !value.is_null() && value != kept.get(column)
        };
        let count = copies.iter().filter(differs).count();
        if count > 0 {
            let words =
                format!("{{#}} {{copy has another|copies have another}} `{column}`, which goes with {{it|them}}");
            draft.disclosures.push(agreeing(count, &words));
        }
    }
}

/// Collects the values that the remaining memory gains from its copies.
fn gained(kept: &Row, copies: &[LocatedRow<'_>]) -> Vec<(&'static str, Value)> {
    let is_one = |id: &str| id == kept.id() || copies.iter().any(|copy| copy.row.id() == id);
    let mut gained = Vec::new();
    for column in ["tags", "source_ids"] {
        let mut all: Vec<&str> = Vec::new();
        for row in [kept].into_iter().chain(copies.iter().map(|copy| &copy.row)) {
            for item in row.list(column) {
                if !all.contains(&item) && (column == "tags" || !is_one(item)) {
                    all.push(item);
                }
            }
        }
        gained.push((column, json!(all)));
    }
    let most = copies.iter().map(|copy| &copy.row).chain([kept]).filter_map(|row| row.number("importance"));
    gained.extend(most.reduce(f64::max).map(|most| ("importance", Value::from(most))));
    // A link to a copy that it superseded now leads to that copy's own predecessor, or nowhere.
    let mut metadata = kept.get("metadata").clone();
    if let Some(object) = metadata.as_object_mut() {
        let earlier = |object: &Value| object["supersedes"].as_str().filter(|id| !is_one(id)).map(str::to_owned);
        let of_copies = copies.iter().find_map(|copy| earlier(copy.row.get("metadata")));
        if object.get("supersedes").and_then(Value::as_str).is_none_or(is_one) {
            object.remove("supersedes");
            object.extend(of_copies.map(|id| ("supersedes".to_owned(), Value::from(id))));
        }
        gained.push(("metadata", metadata));
    }
    gained
}

/// Sets the values that the memory gains, if its layout has a place for them.
async fn keep(
    draft: &mut Draft<'_>,
    kept: &LocatedRow<'_>,
    gained: Vec<(&'static str, Value)>,
) -> Result<(), ChangeError> {
    let shape = draft.store.shapes().shape(&kept.table()).await?;
    let mut row = kept.row.clone();
    let mut columns = Vec::new();
    for (column, value) in gained {
        let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if *row.get(column) == value || is_nothing && row.get(column).is_null() {
            continue;
        }
        if !kept.row.is_readable(column) {
            draft
                .disclosures
                .push(format!("`{column}` of the memory cannot be read and stays as it is: that of the copies goes"));
            continue;
        }
        let mut gaining = row.clone();
        gaining.set(column, value);
        match kept.update(&shape, &[(column, GivenValue::changed(&gaining, column))]) {
            Ok(_) => {
                row = gaining;
                columns.push(column);
            }
            Err(why) => draft.disclosures.push(format!("`{column}` of the copies is lost: {why}")),
        }
    }
    if columns.is_empty() { Ok(()) } else { set_again(draft, kept, &row, &columns).await }
}

/// Makes the remaining memory the successor of memories that a copy had superseded.
async fn follow(draft: &mut Draft<'_>, kept: &LocatedRow<'_>, copies: &[LocatedRow<'_>]) -> Result<(), ChangeError> {
    let is_one = |id: &str| id == kept.row.id() || copies.iter().any(|copy| copy.row.id() == id);
    let mut earlier: BTreeMap<&str, &str> = BTreeMap::new();
    for copy in copies {
        let followed = copy.row.get("metadata")["supersedes"].as_str();
        let named = copy.row.list("source_ids").into_iter().chain(followed).filter(|id| !is_one(id));
        earlier.extend(named.map(|id| (id, copy.row.id())));
    }
    for (id, copy) in earlier {
        let Some(found) = draft.seek(Entity::Memory, id).await? else { continue };
        if found.row.get("metadata")["superseded_by"].as_str() != Some(copy)
            || plain_column(found.source, "metadata").is_none()
        {
            continue;
        }
        let mut row = found.row.clone();
        row.set("metadata", with(found.row.get("metadata"), "superseded_by", kept.row.id()));
        set_again(draft, &found, &row, &["metadata"]).await?;
    }
    Ok(())
}
