//! Rows of a file whose ids other rows of the database have. They are bad ones, and so is what belongs to them: it would hang
//! on the rows of someone else.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::references::{ImportProgress, forget_stored, hashed};
use super::{ImportContents, NewRow};
use crate::change::{ChangeError, batch};
use crate::memory::entity::named_in_list;
use crate::memory::{Entity, Row, counted, same_row};
use crate::store::Store;
use crate::store::encode::own_column;

/// Columns by which a row belongs to another one.
const BELONGS: [(&str, Entity); 5] = [
    ("user_id", Entity::Subject),
    ("episode_id", Entity::Episode),
    ("memory_id", Entity::Memory),
    ("memory_id", Entity::Case),
    ("profile_id", Entity::Profile),
];

/// Columns by which a row refers to another one that it does not belong to.
const REFERS: [(&str, Entity); 2] = [("parent_id", Entity::Episode), ("consolidated_into", Entity::Episode)];

/// Takes out the rows that have the id of another row, with what belongs to them, and the references to any of these.
/// `loose` are the banks of cases that the file does not bring.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn leave_out(
    store: &Store,
    contents: &mut ImportContents,
    progress: &ImportProgress,
    colliding: Vec<(NewRow, &'static str)>,
    loose: &BTreeSet<String>,
) -> Result<(), ChangeError> {
    let mut left = progress.left();
    let strangers = strangers(store, &mut contents.rows, loose).await?;
    let found = colliding.len() + strangers.len();
    for (new, column) in colliding {
        take(
            contents,
            &mut left,
            &new,
            &format!("has the id of another row in the database, whose `{column}` differs"),
        );
    }
    for new in strangers {
        take(contents, &mut left, &new, "is of another user or agent than its bank in the database");
    }
    if left.is_empty() {
        return Ok(());
    }
    loop {
        let rows = std::mem::take(&mut contents.rows);
        let (going, staying): (Vec<NewRow>, Vec<NewRow>) =
            rows.into_iter().partition(|new| BELONGS.iter().any(|to| leads(&new.row, *to, &left)));
        contents.rows = staying;
        if going.is_empty() {
            break;
        }
        for new in going {
            take(contents, &mut left, &new, "belongs to a row that is left out");
        }
    }
    let mut loosened = 0;
    for new in &mut contents.rows {
        loosened += usize::from(loosen(store, new, &left));
    }
    let told = [
        (
            found,
            "{#} {row has the id|rows have ids} of another row in the database: left out with what belongs to {it|them}",
        ),
        (loosened, "{#} {row refers|rows refer} to rows that are left out: these references are left out too"),
    ];
    contents.notes.extend(told.into_iter().filter_map(|(count, words)| counted(count, words)));
    progress.add_left(left);
    Ok(())
}

/// Removes the cases whose bank is in the database only, and is that of someone else.
async fn strangers(
    store: &Store,
    rows: &mut Vec<NewRow>,
    loose: &BTreeSet<String>,
) -> Result<Vec<NewRow>, ChangeError> {
    if loose.is_empty() {
        return Ok(Vec::new());
    }
    let loose: Vec<&String> = loose.iter().collect();
    let stored = store.related(Entity::Profile, "id", &loose).await?;
    let banks: HashMap<&str, &Row> = stored.iter().map(|bank| (bank.id(), bank)).collect();
    let is_stranger = |new: &NewRow| {
        let bank = new.row.text("profile_id").and_then(|id| banks.get(id));
        new.row.entity == Entity::Case && bank.is_some_and(|bank| same_row::owner_difference(bank, &new.row).is_some())
    };
    let (strangers, others) = std::mem::take(rows).into_iter().partition(is_stranger);
    *rows = others;
    Ok(strangers)
}

/// Counts a row among the bad ones, and among those that are left out.
fn take(contents: &mut ImportContents, left: &mut HashSet<u64>, new: &NewRow, why: &str) {
    let (entity, id) = (new.row.entity, new.row.id());
    let name = if id.is_empty() { entity.title() } else { format!("{} {id}", entity.title()) };
    left.insert(digest(entity, id));
    contents.bad.push((new.place, format!("{name} {why}")));
    contents.unfit.insert(new.place, name);
}

/// Whether a column of a row leads to a row that is left out.
fn leads(row: &Row, (column, entity): (&str, Entity), left: &HashSet<u64>) -> bool {
    row.text(column).is_some_and(|id| left.contains(&digest(entity, id)))
}

/// Takes the references to rows that are left out from a row. Whether it had any.
fn loosen(store: &Store, new: &mut NewRow, left: &HashSet<u64>) -> bool {
    let mut changed: Vec<(&str, Value)> = Vec::new();
    for (column, entity) in REFERS {
        changed.extend(leads(&new.row, (column, entity), left).then_some((column, Value::Null)));
    }
    for column in new.row.entity.columns() {
        let Some(entity) = named_in_list(column.name) else { continue };
        let ids = new.row.list(column.name);
        let stay: Vec<&str> = ids.iter().copied().filter(|id| !left.contains(&digest(entity, id))).collect();
        if stay.len() < ids.len() {
            changed.push((column.name, Value::from(stay)));
        }
    }
    for (column, value) in &changed {
        new.row.set(column, value.clone());
        let source = batch::place(store, new).ok();
        let stored: Vec<&str> = source.into_iter().flat_map(|s| s.column(column)).filter_map(own_column).collect();
        stored.into_iter().for_each(|name| forget_stored(new, name));
    }
    !changed.is_empty()
}

/// The hash by which an id of an entity is remembered.
fn digest(entity: Entity, id: &str) -> u64 {
    hashed((entity, id))
}
