//! Row images in the audit trail: whether one belongs to the person, whose id may be too short to find in a text.

use serde_json::Value;

use super::graph::within;
use super::search::PersonSearch;
use crate::change::apply::KeptUndo;
use crate::change::plan::Change;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::Entity;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::stored::{Cell, Mutation, Revision, TableName};

/// Whether a private value of an entry records a deleted row, or a row that belongs or belonged to the person. Rows are
/// named by table and key and owners by column, so this is exact even for the shortest id.
pub(super) fn are_of_person(search: &PersonSearch<'_>, field: &str, raw: &FetchedValue) -> bool {
    let FetchedValue::Text(text) = raw else { return false };
    match field {
        "undo" => serde_json::from_str::<KeptUndo>(text).is_ok_and(|kept| {
            kept.touches(|rows| search.graph.has_one_of(rows))
                || kept.mutations().any(|mutation| names_owner(search, mutation))
        }),
        "changes" if may_hold(search.subject, text) => {
            let changes: Vec<Change> = serde_json::from_str(text).unwrap_or_default();
            changes.iter().any(|change| is_of_person(search.subject, change))
        }
        _ => false,
    }
}

/// Whether a JSON text may contain an id: cheaper than parsing it.
fn may_hold(subject: &[String], text: &str) -> bool {
    let spelled = |id: &String| Value::from(id.as_str()).to_string();
    subject.iter().any(|id| text.contains(spelled(id).get(1..).unwrap_or_default().trim_end_matches('"')))
}

/// Whether a recorded change is of a row of the person, or of the person's own record.
fn is_of_person(subject: &[String], change: &Change) -> bool {
    let is_person = |id: &str| subject.iter().any(|known| known == id);
    let owner = |value: &Value| match value {
        Value::String(id) => is_person(id),
        Value::Number(number) => is_person(&number.to_string()),
        _ => false,
    };
    change.entity == Entity::Subject.name() && is_person(&change.id)
        || [&change.before, &change.after].iter().any(|side| owner(&side["user_id"]))
}

/// Whether a change of stored rows has the person in an owner column.
fn names_owner(search: &PersonSearch<'_>, mutation: &Mutation) -> bool {
    let table = mutation.table();
    let is_person = |id: &String| search.subject.contains(id);
    let by_rule = owner_rules(search, table)
        .any(|rule| values_of(mutation, &rule.column).iter().any(|raw| within(raw, rule).iter().any(is_person)));
    let is_hold = table.name == "memory_holds" && search.about.is_ours(table);
    by_rule || is_hold && values_of(mutation, "subject").iter().filter_map(as_text).any(|id| is_person(&id))
}

/// The rules by which columns of a table name the person. A word that is only removed from a value does not own the
/// row.
fn owner_rules<'s>(search: &'s PersonSearch<'_>, table: &'s TableName) -> impl Iterator<Item = &'s BoundRule> {
    let of_person =
        |rule: &&BoundRule| rule.of.is_none() && (rule.inside.is_whole() || rule.action == EraseAction::Delete);
    search.graph.rules.iter().filter(of_person).filter(move |rule| TableName::of(&rule.table) == *table)
}

/// The values of a column that a change uses as key, expects or writes.
fn values_of(mutation: &Mutation, column: &str) -> Vec<FetchedValue> {
    let place = |columns: &[String]| columns.iter().position(|name| name == column);
    let value = |cell: &Cell| cell.at("");
    match mutation {
        Mutation::Insert { columns, rows, .. } => {
            let Some(at) = place(columns) else { return Vec::new() };
            rows.iter().filter_map(|row| row.get(at)).map(value).collect()
        }
        Mutation::Update { key, set, .. } => {
            let key = key.iter().filter(|(name, _)| name == column).map(|(_, raw)| raw.clone());
            key.chain(set.iter().filter(|(name, _)| name == column).map(|(_, cell)| value(cell))).collect()
        }
        Mutation::Delete(rows) => {
            let Some(at) = place(&rows.by) else { return Vec::new() };
            rows.keys.iter().filter_map(|key| key.get(at).cloned()).collect()
        }
        Mutation::Revise(revise) => {
            let (key, own) = (place(&revise.key), place(&revise.columns));
            let values = |Revision(keys, before, after): &Revision| {
                let known = |values: &[FetchedValue], at: Option<usize>| at.and_then(|at| values.get(at)).cloned();
                [known(keys, key), known(before, own), known(after, own)]
            };
            revise.rows.iter().flat_map(values).flatten().collect()
        }
    }
}
