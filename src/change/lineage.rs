//! Deleted memories that superseded others: the superseded ones are linked to the memory that superseded the deleted
//! one, or become current again.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::edit::{ACTIVE, STATUS_BEFORE, SUPERSEDED, set_again, with};
use crate::layout::BoundSource;
use crate::memory::{Entity, Row};
use crate::store::StoreError;
use crate::store::encode::{LocatedRow, plain_column};

/// Deleted memories by id.
type GoingMemories<'r> = HashMap<&'r str, &'r Row>;

/// The last of a line of deleted memories, each superseding the one before it, and the remaining one that superseded
/// it.
type LineEnd<'r> = (&'r Row, Option<&'r str>);

/// Adds to a draft that remaining memories are no longer linked to deleted ones.
///
/// # Errors
/// [`ChangeError::Refused`] for a value that cannot be stored; otherwise the engine's refusal.
pub(super) async fn restore_current(draft: &mut Draft<'_>, located: &[LocatedRow<'_>]) -> Result<(), ChangeError> {
    let memories = || located.iter().filter(|found| found.row.entity == Entity::Memory);
    let going: GoingMemories<'_> = memories().map(|found| (found.row.id(), &found.row)).collect();
    let ends = ends(memories().map(|found| &found.row), &going);
    let (mut heirs, mut followed) = (BTreeSet::new(), HashMap::new());
    for found in memories() {
        let Some(end) = ends.get(found.row.id()).copied() else { continue };
        heirs.extend(end.1);
        for id in superseded_by_it(found, &going) {
            if lead_on(draft, found, id, end).await? {
                followed.insert(found.row.id(), id);
            }
        }
    }
    for heir in heirs {
        name_earlier(draft, heir, &ends, |last| before(last, &going, &followed)).await?;
    }
    Ok(())
}

/// The end of the line of each deleted memory. A circle ends where it begins again.
fn ends<'r>(rows: impl Iterator<Item = &'r Row>, going: &GoingMemories<'r>) -> HashMap<&'r str, LineEnd<'r>> {
    let mut ends: HashMap<&str, LineEnd<'r>> = HashMap::new();
    for mut row in rows {
        let mut line = Vec::new();
        let end = loop {
            if let Some(end) = ends.get(row.id()) {
                break *end;
            }
            ends.insert(row.id(), (row, None));
            line.push(row.id());
            match link(row, "superseded_by") {
                None => break (row, None),
                Some(by) => match going.get(by) {
                    Some(next) => row = next,
                    None => break (row, Some(by)),
                },
            }
        };
        ends.extend(line.into_iter().map(|id| (id, end)));
    }
    ends
}

/// The remaining memory before a deleted one, or before the first of the deleted ones that lead to it.
fn before<'r>(mut id: &'r str, going: &GoingMemories<'r>, followed: &HashMap<&'r str, &'r str>) -> Option<&'r str> {
    for _ in going {
        if let Some(remaining) = followed.get(id) {
            return Some(remaining);
        }
        let earlier = *going.get(link(going.get(id)?, "supersedes")?)?;
        if link(earlier, "superseded_by") != Some(id) {
            return None;
        }
        id = earlier.id();
    }
    None
}

fn link<'r>(row: &'r Row, name: &str) -> Option<&'r str> {
    row.get("metadata")[name].as_str()
}

/// The ids of remaining memories that this one may have superseded.
fn superseded_by_it<'r>(found: &'r LocatedRow<'_>, going: &HashMap<&str, &Row>) -> BTreeSet<&'r str> {
    let named = link(&found.row, "supersedes");
    if named.is_none() && is_linked(found.source) {
        return BTreeSet::new();
    }
    let named = found.row.list("source_ids").into_iter().chain(named);
    named.filter(|id| !going.contains_key(id)).collect()
}

/// Whether links to successors are stored.
fn is_linked(source: &BoundSource) -> bool {
    plain_column(source, "metadata").is_some()
}

/// Links a superseded memory to the heir of the deleted one, or makes it current again. Returns whether that one had
/// superseded it.
async fn lead_on(
    draft: &mut Draft<'_>,
    going: &LocatedRow<'_>,
    id: &str,
    (last, heir): (&Row, Option<&str>),
) -> Result<bool, ChangeError> {
    let Some(found) = seek(draft, id).await? else { return Ok(false) };
    let row = &going.row;
    let by = link(&found.row, "superseded_by");
    let is_marked = found.row.text("status") == Some(SUPERSEDED);
    let is_its = by == Some(row.id()) || by.is_none() && is_marked && !is_linked(going.source);
    if !is_its || heir.is_none() && last.text("status") == Some(SUPERSEDED) {
        return Ok(false);
    }
    let mut after = found.row.clone();
    if by.is_some() {
        after.set("metadata", with_link(found.row.get("metadata"), "superseded_by", heir));
    }
    if heir.is_none() && is_marked {
        after.set("status", status_before(&found));
        let metadata = with_link(after.get("metadata"), STATUS_BEFORE, None);
        after.set("metadata", metadata);
    }
    if after != found.row {
        set_again(draft, &found, &after, &["metadata", "status"]).await?;
    }
    draft.effects.push(match heir {
        Some(heir) => format!("memory {id} is superseded by {heir} from now on"),
        None if after.text("status") == Some(SUPERSEDED) => {
            format!(
                "the memory that superseded {id} is removed; the earlier status of {id} is unknown, so it keeps \
             its own"
            )
        }
        None => format!("memory {id} is current again: the memory that superseded it is removed"),
    });
    Ok(true)
}

/// The status of a superseded memory that becomes current again: its previous one, otherwise the word for an active
/// one. It keeps its status if the layout has no such word, or computes the status from other values.
fn status_before(found: &LocatedRow<'_>) -> Value {
    let Some((_, way)) = plain_column(found.source, "status") else { return found.row.get("status").clone() };
    let has_word = way.map.is_empty() || way.map.iter().any(|(_, word)| word == ACTIVE);
    match found.row.get("metadata").get(STATUS_BEFORE) {
        Some(status) => status.clone(),
        None if has_word => Value::from(ACTIVE),
        None => found.row.get("status").clone(),
    }
}

/// Makes the heir of deleted memories name the one before them, or none, if it names one of them.
async fn name_earlier<'r>(
    draft: &mut Draft<'_>,
    heir: &str,
    ends: &HashMap<&'r str, LineEnd<'r>>,
    before: impl Fn(&'r str) -> Option<&'r str>,
) -> Result<(), ChangeError> {
    let Some(found) = seek(draft, heir).await? else { return Ok(()) };
    let named = link(&found.row, "supersedes").and_then(|named| ends.get_key_value(named));
    let Some((named, _)) = named.filter(|(_, (_, of_line))| *of_line == Some(heir)) else { return Ok(()) };
    let mut after = found.row.clone();
    after.set("metadata", with_link(found.row.get("metadata"), "supersedes", before(named)));
    set_again(draft, &found, &after, &["metadata"]).await
}

/// A writable memory; `None` if no row, or more than one, has the id.
async fn seek<'s>(draft: &mut Draft<'s>, id: &str) -> Result<Option<LocatedRow<'s>>, ChangeError> {
    match draft.seek(Entity::Memory, id).await {
        Err(ChangeError::Store(StoreError::Ambiguous(..))) => Ok(None),
        found => Ok(found?.filter(|found| found.source.is_writable())),
    }
}

/// Metadata with another link, or without it.
fn with_link(metadata: &Value, name: &str, id: Option<&str>) -> Value {
    if let Some(id) = id {
        return with(metadata, name, id);
    }
    let mut metadata = metadata.clone();
    if let Some(object) = metadata.as_object_mut() {
        object.shift_remove(name);
    }
    metadata
}
