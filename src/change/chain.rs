//! Chains: sets or removes the parent of an episode. A cycle is refused, and shown.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use crate::layout::BoundOrigin;
use crate::memory::Entity;
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column};

/// Most ancestors examined.
const FAR: usize = 10_000;

/// Plans that `child` follows `parent`.
///
/// # Errors
/// [`ChangeError::NotFound`], or [`ChangeError::Refused`] for a cycle, or if no parent can be stored.
pub async fn link(store: &Store, child: &str, parent: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "link", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Episode, child).await?;
    writable(found.source)?;
    let mother = draft.locate(Entity::Episode, parent).await?;
    let path = above(&mut draft, child, &BTreeMap::from([(found.row.id().to_owned(), parent.to_owned())])).await?;
    if let Some((last, before)) = path.split_last() {
        if path.len() > FAR {
            return Err(ChangeError::Refused(format!("the chain above {parent} is longer than {FAR} episodes")));
        }
        if before.first() == Some(last) {
            return Err(ChangeError::Refused(format!("this would create a cycle: {}", path.join(" -> "))));
        }
        if before.contains(last) {
            draft.disclosures.push(format!("the chain above already contains a cycle, at {last}"));
        } else if let Some(reason) = store.report().unseen(Entity::Episode)
            && draft.seek(Entity::Episode, last).await?.is_none()
        {
            return Err(ChangeError::Refused(format!(
                "the chain above {parent} leads to episode {last}, which your role cannot see, and a cycle could be \
                 created beyond it: {reason}. Link them with a role that sees every row"
            )));
        }
    }
    if mother.row.text("agent_id") != found.row.text("agent_id") {
        draft
            .disclosures
            .push("the parent belongs to another agent: a chain across agents is rarely one story".to_owned());
    }
    if let (Some(before), Some(own)) = (mother.row.text("started_at"), found.row.text("started_at"))
        && before > own
    {
        draft.disclosures.push("the parent started after its child".to_owned());
    }
    set_parent(&mut draft, &found, Value::from(parent)).await?;
    Ok(draft.seal())
}

/// The ids of an episode and its ancestors, up to the root, [`FAR`] ids, or a repeated id, which then ends the list.
/// Parents in `given` replace those of the rows. A parent may be named in another spelling than its id.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn above(
    draft: &mut Draft<'_>,
    child: &str,
    given: &BTreeMap<String, String>,
) -> Result<Vec<String>, ChangeError> {
    let (mut path, mut met) = (Vec::new(), HashSet::new());
    let mut next = Some(child.to_owned());
    while let Some(named) = next.take() {
        let row = draft.seek(Entity::Episode, &named).await?.map(|located| located.row);
        let id = row.as_ref().map_or(named, |row| row.id().to_owned());
        if met.insert(id.clone()) && path.len() < FAR {
            let stored = || row.and_then(|row| row.text("parent_id").filter(|id| !id.is_empty()).map(str::to_owned));
            next = given.get(&id).cloned().or_else(stored);
        }
        path.push(id);
    }
    Ok(path)
}

/// Plans to remove the parent of `child`.
///
/// # Errors
/// As [`link`].
pub async fn unlink(store: &Store, child: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "unlink", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Episode, child).await?;
    writable(found.source)?;
    set_parent(&mut draft, &found, Value::Null).await?;
    Ok(draft.seal())
}

async fn set_parent(draft: &mut Draft<'_>, found: &LocatedRow<'_>, parent: Value) -> Result<(), ChangeError> {
    let store = draft.store;
    let Some((column, _)) = plain_column(found.source, "parent_id") else {
        return Err(ChangeError::Refused(format!(
            "{} stores no parent: chains are {} here",
            found.table().title(),
            if found.source.column("parent_id").is_empty() { "not kept" } else { "derived from other rows" }
        )));
    };
    if *found.row.get("parent_id") == parent {
        return Ok(());
    }
    if parent.is_null()
        && let Some(other) = named_by_others(store, found).await?
    {
        let link = store.invocation().line(["link", found.row.id(), "PARENT"]);
        return Err(ChangeError::Refused(format!(
            "without a parent in {}.{column}, the parent {other} is derived from other rows, which stay: `{link}` sets \
             another one",
            found.table().title()
        )));
    }
    let values = [("parent_id", GivenValue::Is(parent.clone()))];
    let mut shown = found.row.clone();
    shown.set("parent_id", parent);
    draft.sets(found, &values, &shown).await
}

/// The parent that an episode has by other rows if its own row names none.
async fn named_by_others(store: &Store, found: &LocatedRow<'_>) -> Result<Option<String>, ChangeError> {
    let mut source = found.source.clone();
    for (column, ways) in Entity::Episode.columns().iter().zip(&mut source.columns) {
        ways.retain(|way| column.name != "parent_id" || matches!(way.origin, BoundOrigin::Sql(_)));
    }
    let rows = store.related_in(&source, "id", &[found.row.id().to_owned()], &[], Some(&["id", "parent_id"])).await?;
    Ok(rows.first().and_then(|row| row.text("parent_id")).map(str::to_owned))
}
