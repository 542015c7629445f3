//! Deletes rows with what depends on them: dependents that make no sense alone are deleted too, references are removed,
//! aggregates are recomputed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::draft::{Draft, FULL};
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use super::prune::{UNDO_CASES, loosen};
use super::purge::hanging::{RowsGoing, dependents_of};
use super::reward::trail;
use super::{ChangeError, feedback, lineage, signal};
use crate::layout::BoundSource;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row, agreeing, thousands};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::hanging::HangingRows;
use crate::store::row_list::row_digest;
use crate::store::stored::{Mutation, StoredRows, TableName};

/// Most remaining rows that one removal changes: a plan takes several KB for each.
pub(super) const CHANGING: usize = 20_000;

/// Most rows with too many dependents that a plan for many skips.
const ASIDE: usize = 10;

/// Rows that one removal may name.
pub(super) const MOST: usize = 10_000;

/// Names of the operations that delete rows with their dependents.
const REMOVE: &str = "remove";
pub(super) const MERGE: &str = "merge";
pub(super) const RETAIN: &str = "retain";
pub(super) const PRUNE: &str = "prune";

/// Plans to delete rows.
///
/// # Errors
/// [`ChangeError::NotFound`], [`ChangeError::Usage`], or [`ChangeError::Refused`] if rows are read-only, history
/// depends on them, or their owner is under a legal hold.
pub async fn plan(store: &Store, entity: Entity, ids: &[String]) -> Result<Plan, ChangeError> {
    let ids: Vec<String> = ids.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    match (entity, &ids[..]) {
        (_, []) => return Err(ChangeError::Usage("name the rows to remove by their ids".to_owned())),
        (_, many) if many.len() > MOST => {
            return Err(ChangeError::Usage(format!("{} rows are named; the maximum is {MOST}", many.len())));
        }
        (Entity::Feedback, [id]) => return feedback::remove(store, id).await,
        (Entity::UtilityEvent, [id]) => return signal::retract(store, id).await,
        _ => allowed(store, entity)?,
    }
    let mut draft = Draft::new(store, REMOVE, ChangeDanger::Guarded).await?.limited();
    let located = draft.locate_all(entity, &ids).await?;
    for found in &located {
        writable(found.source)?;
    }
    take_whole(&mut draft, &located, None).await?;
    Ok(draft.seal())
}

/// As [`take`], but refuses rows with more dependents than one change can hold.
///
/// # Errors
/// As [`plan`].
pub(super) async fn take_whole(
    draft: &mut Draft<'_>,
    located: &[LocatedRow<'_>],
    heir: Option<&str>,
) -> Result<(), ChangeError> {
    let over = take(draft, located, heir).await?;
    if !draft.is_full() {
        return Ok(());
    }
    let of = over.map_or_else(String::new, |table| format!(", most of them rows of {}", table.title()));
    Err(ChangeError::Refused(match located {
        [one] => too_much(&format!("{} {}", one.row.entity.title(), one.row.id()), &of, NEXT),
        many => too_much(&format!("these {} rows", thousands(many.len())), &of, "remove fewer of them at a time"),
    }))
}

/// Advice for one row with too many dependents.
const NEXT: &str =
    "first remove rows that depend on it, a few thousand at a time, or erase the person who owns them with `purge`";

fn too_much(what: &str, of: &str, next: &str) -> String {
    format!(
        "more depends on {what} than one change can hold ({} MB of deleted rows, or {} rows that stay and change){of}: \
         {next}",
        FULL >> 20,
        thousands(CHANGING)
    )
}

/// Reports that a row stays because too much depends on it; refuses if there are very many such rows.
///
/// # Errors
/// [`ChangeError::Refused`].
pub(super) fn set_aside(aside: &mut Vec<String>, entity: Entity, id: &str) -> Result<(), ChangeError> {
    let what = format!("{} {id}", entity.title());
    if aside.len() == ASIDE {
        return Err(ChangeError::Refused(too_much(&what, &format!(", and on {ASIDE} other rows"), NEXT)));
    }
    aside.push(format!("{what} stays: {}", too_much("it", "", NEXT)));
    Ok(())
}

/// Refuses entities whose rows are not deleted individually.
fn allowed(store: &Store, entity: Entity) -> Result<(), ChangeError> {
    let why = match entity {
        Entity::UtilityEvent => "signals are retracted one at a time: each one replays its episode's history",
        Entity::AuditEntry => "an audit trail is append-only",
        Entity::Subject => "a person is removed with all of their data: `purge` erases it and proves that",
        _ => return store.sources_of(entity).map(|_| ()).map_err(ChangeError::from),
    };
    Err(ChangeError::Refused(why.to_owned()))
}

/// Removes rows whose layout keeps the stored row: it is marked, or loses the values of this entity.
async fn leave(draft: &mut Draft<'_>, found: &LocatedRow<'_>) -> Result<(), ChangeError> {
    let store = draft.store;
    let shape = store.shapes().shape(&found.table()).await?;
    if found.is_removed(&shape).map_err(ChangeError::Refused)? {
        return Ok(());
    }
    if found.row.entity == Entity::Feedback && !feedback::hanging(draft, found).await?.is_empty() {
        let again = store.invocation().line(["feedback", "remove", found.row.id()]);
        return Err(ChangeError::Refused(format!("an episode counts feedback {}: `{again}`", found.row.id())));
    }
    draft.removes(&found.row);
    draft.push(found.removal(&shape).map_err(ChangeError::Refused)?);
    Ok(())
}

/// Adds to a plan that rows are deleted, with all consequences. Lists that name one get `heir` instead. Returns the
/// table with most affected rows if that fills the plan.
///
/// # Errors
/// As [`plan`].
pub(super) async fn take(
    draft: &mut Draft<'_>,
    located: &[LocatedRow<'_>],
    heir: Option<&str>,
) -> Result<Option<TableName>, ChangeError> {
    let store = draft.store;
    // Memories superseded by a copy are already linked to the remaining memory.
    if heir.is_none() {
        lineage::restore_current(draft, located).await?;
    }
    let (located, staying): (Vec<&LocatedRow<'_>>, Vec<&LocatedRow<'_>>) =
        located.iter().partition(|found| found.goes());
    for found in &staying {
        leave(draft, found).await?;
    }
    if !staying.is_empty() {
        draft
            .effects
            .push(agreeing(staying.len(), "{#} stored {row stays|rows stay}, marked or emptied as the layout says"));
    }
    if located.is_empty() {
        return Ok(None);
    }
    let mut seeds: BTreeMap<String, StoredRows> = BTreeMap::new();
    for found in &located {
        let rows = found.rows();
        let seed = seeds.entry(json!([rows.table, rows.by]).to_string());
        let keys = rows.keys.clone();
        seed.and_modify(|seed| seed.keys.extend(keys)).or_insert(rows);
        draft.removes(&found.row);
    }
    let seeds: Vec<StoredRows> = seeds.into_values().collect();
    let going = reached(draft, &seeds).await?;
    if going.over.is_some() {
        return Ok(going.over);
    }
    let of = |entity: Entity| located.iter().copied().filter(move |found| found.row.entity == entity);
    let doomed: HashSet<&str> = of(Entity::Case).map(|found| found.row.id()).collect();
    if !doomed.is_empty() {
        for source in store.sources_of(Entity::Case)? {
            loosen::references(draft, source, &doomed).await?;
        }
        for found in of(Entity::Case) {
            log_removal(draft, found).await?;
        }
    }
    let asks_keys = !going.lists.is_empty() || of(Entity::CanvasEvent).next().is_some();
    let asked = if asks_keys { &going.deletes[..] } else { &[] };
    let gone = RowKeys::of(asked.iter().map(Cow::Borrowed));
    for (table, column, ids) in &going.lists {
        let own = !doomed.is_empty() && column_of(store, table, column).is_some_and(|(s, _)| s.entity == Entity::Case);
        if !own {
            let ids = ids.iter().map(String::as_str).collect();
            leave_lists(draft, table, column, &ids, &gone, heir).await?;
        }
    }
    let events: Vec<&LocatedRow<'_>> = of(Entity::CanvasEvent).collect();
    recount(draft, &events, &gone).await?;
    change(draft, going.updates).await?;
    delete(draft, going.deletes, &seeds).await?;
    Ok(None)
}

/// Adds to a plan that stored rows are deleted, with everything that depends on them. Returns the table with most
/// affected rows if that fills the plan.
///
/// # Errors
/// As [`dependents_of`].
pub(super) async fn take_dependents(
    draft: &mut Draft<'_>,
    rows: &[StoredRows],
) -> Result<Option<TableName>, ChangeError> {
    let going = reached(draft, rows).await?;
    if going.over.is_some() {
        return Ok(going.over);
    }
    let asked = if going.lists.is_empty() { &[][..] } else { &going.deletes };
    let gone = RowKeys::of(asked.iter().map(Cow::Borrowed));
    for (table, column, ids) in &going.lists {
        leave_lists(draft, table, column, &ids.iter().map(String::as_str).collect(), &gone, None).await?;
    }
    change(draft, going.updates).await?;
    delete(draft, going.deletes, rows).await?;
    Ok(None)
}

/// Everything that depends on some rows; if that exceeds the plan's limit, the plan is full.
async fn reached(draft: &mut Draft<'_>, rows: &[StoredRows]) -> Result<RowsGoing, ChangeError> {
    let changing = if draft.is_bounded() { CHANGING } else { usize::MAX };
    let mut going = dependents_of(draft.store, rows, draft.most_rows(), changing).await?;
    going.referring.drain(..).for_each(|watch| draft.rely(watch));
    if going.over.is_none() {
        going.over = going.deletes.iter().find(|rows| draft.fills_with(rows)).map(|rows| rows.table.clone());
    }
    if going.over.is_some() {
        draft.overfill();
    }
    Ok(going)
}

/// Watches and changes rows that stay, until the plan is full.
async fn change(draft: &mut Draft<'_>, updates: Vec<Mutation>) -> Result<(), ChangeError> {
    for update in updates {
        if draft.is_full() {
            break;
        }
        if let Some(rows) = update.rows() {
            draft.watch(rows).await?;
        }
        draft.count(1);
        draft.push(update);
    }
    Ok(())
}

/// Records in the application's own trail that a case is deleted, and that undoing restores it.
async fn log_removal(draft: &mut Draft<'_>, found: &LocatedRow<'_>) -> Result<(), ChangeError> {
    let store = draft.store;
    let payload = json!({"caseId": found.row.id(), "profileId": found.row.get("profile_id"), "cause": "removed"});
    let gone = trail(store, "prune", &found.row, &payload).await?;
    let undone = trail(store, "record.case", &found.row, &payload).await?;
    draft.trail.extend(gone);
    draft.undo_trail.extend(undone);
    Ok(())
}

/// Deletes rows, the `seeds` and their dependents; reports if they are too many for an undo.
async fn delete(draft: &mut Draft<'_>, deletes: Vec<StoredRows>, seeds: &[StoredRows]) -> Result<(), ChangeError> {
    let total: usize = deletes.iter().map(|rows| rows.keys.len()).sum();
    if total > 10 * UNDO_CASES {
        draft.undo_reason = Some(agreeing(total, "{#} {row is|rows are} removed: too much to keep for an undo"));
    }
    for rows in deletes {
        let is_named = seeds.iter().any(|seed| seed.table == rows.table);
        if !is_named {
            draft.effects.push(removed_along(&rows));
        }
        draft.take_away(&rows, &[]).await?;
    }
    Ok(())
}

/// Message that rows are deleted with others.
pub(super) fn removed_along(rows: &StoredRows) -> String {
    let words = format!("{{#}} {{row of|rows of}} {} {{is|are}} removed with them", rows.table.title());
    agreeing(rows.keys.len(), &words)
}

/// The source and the canonical column of a stored one.
pub(super) fn column_of<'s>(
    store: &'s Store,
    table: &TableName,
    stored: &str,
) -> Option<(&'s BoundSource, &'static str)> {
    let sources = store.recognised().sources.iter().filter(|source| table_of(source) == *table);
    sources.into_iter().find_map(|source| {
        let is_it = |name: &&str| plain_column(source, name).is_some_and(|(column, _)| column == stored);
        let name = source.entity.columns().iter().map(|c| c.name).find(is_it)?;
        Some((source, name))
    })
}

/// Rows by table and key columns, for look-ups.
pub(super) struct RowKeys(HashMap<(TableName, Vec<String>), HashSet<[u64; 2]>>);

impl RowKeys {
    pub(super) fn of<'r>(all: impl IntoIterator<Item = Cow<'r, StoredRows>>) -> Self {
        let mut known: HashMap<_, HashSet<[u64; 2]>> = HashMap::new();
        for rows in all {
            let keys = rows.keys.iter().map(|key| row_digest(key));
            known.entry((rows.table.clone(), rows.by.clone())).or_default().extend(keys);
        }
        RowKeys(known)
    }

    /// A table with rows in `others` that are missing here, and their number.
    pub(super) fn lack<'o>(&self, others: &'o RowKeys) -> Option<(&'o TableName, usize)> {
        others.0.iter().find_map(|(place, keys)| {
            let known = self.0.get(place);
            let missing = keys.iter().filter(|key| known.is_none_or(|known| !known.contains(*key))).count();
            (missing > 0).then_some((&place.0, missing))
        })
    }

    /// Whether a row is included, given its columns.
    pub(super) fn hold(&self, table: &TableName, column: impl Fn(&str) -> Option<FetchedValue>) -> bool {
        self.0.iter().filter(|((of, _), _)| of == table).any(|((_, by), keys)| {
            let key: Option<Vec<FetchedValue>> = by.iter().map(|name| column(name)).collect();
            key.is_some_and(|key| keys.contains(&row_digest(&key)))
        })
    }

    fn hold_located(&self, row: &LocatedRow<'_>) -> bool {
        self.hold(&row.table(), |column| row.image.get(column).cloned())
    }
}

/// Ids of the rows whose list in that column names one of these, found in one walk.
pub(super) async fn naming(
    store: &Store,
    source: &BoundSource,
    name: &'static str,
    ids: &HashSet<&str>,
) -> Result<BTreeSet<String>, ChangeError> {
    let mut query = Query { columns: Some(vec!["id", name]), ..Query::new(source.entity) };
    if let (1, Some(id)) = (ids.len(), ids.iter().next()) {
        query.filters.push(Filter::new(name, Operator::Has, Operand::Text((*id).to_owned())));
    }
    let mut naming = BTreeSet::new();
    let take = |row: Row| {
        if row.list(name).iter().any(|id| ids.contains(id)) {
            naming.insert(row.id().to_owned());
        }
        ControlFlow::Continue(())
    };
    store.walks().each_row(&query, take).await?;
    Ok(naming)
}

/// A remaining row whose list names a row that a plan deletes, although the plan does not update it; as text. There was
/// none when the plan was made.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn named_since(store: &Store, plan: &Plan) -> Result<Option<String>, ChangeError> {
    let deleted = plan.mutations.iter().filter_map(|mutation| match mutation {
        Mutation::Delete(rows) => Some(rows.clone()),
        _ => None,
    });
    let deleted: Vec<StoredRows> = deleted.collect();
    if deleted.is_empty() {
        return Ok(None);
    }
    let lists = match plan.operation.as_str() {
        REMOVE | MERGE | RETAIN => match dependents_of(store, &deleted, usize::MAX, usize::MAX).await {
            // New rows refer to these, which the plan's watches report.
            Err(ChangeError::Refused(_)) => return Ok(None),
            going => going?.lists,
        },
        PRUNE => loosen::lists(store, &deleted),
        _ => return Ok(None),
    };
    let taken = RowKeys::of(plan.mutations.iter().filter_map(Mutation::rows).map(Cow::Owned));
    for (table, column, ids) in lists {
        let of = column_of(store, &table, &column).filter(|(source, _)| plain_column(source, "id").is_some());
        let Some((source, name)) = of else { continue };
        for id in naming(store, source, name, &ids.iter().map(String::as_str).collect()).await? {
            let Some(found) = store.encoder().locate_in(source, &id).await? else { continue };
            if !taken.hold_located(&found) {
                return Ok(Some(format!("{} {id}", source.entity.title())));
            }
        }
    }
    Ok(None)
}

/// Removes ids from the lists of remaining rows. An heir replaces them, but not in its own lists.
async fn leave_lists(
    draft: &mut Draft<'_>,
    table: &TableName,
    column: &str,
    ids: &HashSet<&str>,
    going: &RowKeys,
    heir: Option<&str>,
) -> Result<(), ChangeError> {
    let store = draft.store;
    let Some((source, name)) = column_of(store, table, column) else {
        draft.disclosures.push(format!("{}.{column} may still name removed rows", table.title()));
        return Ok(());
    };
    let naming = naming(store, source, name, ids).await?;
    let shape = store.shapes().shape(table).await?;
    for id in &naming {
        if draft.is_full() {
            break;
        }
        let Some(found) = draft.seek_in(source, id).await? else { continue };
        if going.hold_located(&found) {
            continue;
        }
        if source.entity == Entity::Memory && heir == Some(id) {
            continue;
        }
        let mut kept: Vec<&str> = Vec::new();
        for known in found.row.list(name) {
            let stays = if ids.contains(known) { heir } else { Some(known) };
            if let Some(id) = stays
                && !(heir == Some(id) && kept.contains(&id))
            {
                kept.push(id);
            }
        }
        let mut shown = found.row.clone();
        shown.set(name, json!(kept));
        let values = [(name, GivenValue::changed(&shown, name))];
        draft.push(found.update(&shape, &values).map_err(ChangeError::Refused)?);
        draft.alters(&found.row, &shown);
    }
    Ok(())
}

/// Columns of canvas events to read for a count.
pub const COUNTED: &[&str] = &["id", "episode_id", "created_at"];

/// Updates the number of canvas actions of episodes whose canvas events are deleted.
async fn recount(draft: &mut Draft<'_>, located: &[&LocatedRow<'_>], going: &RowKeys) -> Result<(), ChangeError> {
    let store = draft.store;
    let gone: HashSet<&str> = located.iter().map(|found| found.row.id()).collect();
    let episodes: BTreeSet<&str> = located.iter().filter_map(|found| found.row.text("episode_id")).collect();
    for id in episodes {
        let Some(found) = draft.seek(Entity::Episode, id).await? else { continue };
        if going.hold_located(&found)
            || plain_column(found.source, "canvas_action_count").is_none()
            || writable(found.source).is_err()
        {
            continue;
        }
        let links = &found.source.links;
        let linked = store.contexts().linked(&[&found.row], links, Entity::CanvasEvent, Some(COUNTED)).await?.pop();
        let left = linked.iter().flat_map(HangingRows::ids).filter(|(id, _)| !gone.contains(&**id)).count();
        if found.row.get("canvas_action_count").as_u64() == Some(left as u64) {
            continue;
        }
        if let Some(linked) = &linked {
            draft.counts_seen(&found, linked)?;
        }
        let values = [("canvas_action_count", GivenValue::from(left as u64))];
        let mut shown = found.row.clone();
        shown.set("canvas_action_count", Value::from(left as u64));
        draft.sets(&found, &values, &shown).await?;
    }
    Ok(())
}
