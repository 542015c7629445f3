//! Owners of rows, as the layout says: the value of a column, a value at a path in it, or a part of it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::column_words::names_person;
use super::graph::within;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::digest::wide_digest;
use crate::store::Store;
use crate::store::fetched::FetchedValue;
use crate::store::own;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Most owners remembered to avoid repeats.
const REMEMBERED: usize = 100_000;

/// Rules for columns that must not name the person after an erasure, except in a kept account. A part of a value that
/// is only removed, such as a word of a search column, does not own the row.
pub fn rules(store: &Store) -> impl Iterator<Item = &BoundRule> {
    let rules = store.recognised().erasure.rules.iter().filter(|rule| rule.of.is_none() && !rule.account);
    rules.filter(|rule| rule.inside.is_whole() || rule.action == EraseAction::Delete)
}

/// The rules by which rows of a table name their owner.
pub fn of_table<'s>(store: &'s Store, table: &'s TableName) -> impl Iterator<Item = &'s BoundRule> {
    rules(store).filter(move |rule| TableName::of(&rule.table) == *table)
}

/// Tables in the layout, whose rows may be changed.
pub fn known_tables(store: &Store) -> HashSet<TableName> {
    let recognised = store.recognised();
    let sources = recognised.sources.iter().map(|s| TableName::of(&s.table));
    sources.chain(recognised.erasure.rules.iter().map(|r| TableName::of(&r.table))).collect()
}

/// Columns named after people, in a table outside the layout.
pub fn called_after_people(store: &Store, table: &TableName) -> Vec<String> {
    let found = store.catalog().exactly(&table.schema, &table.name);
    let is_stranger = || !own::TABLES.contains(&table.name.as_str()) && !known_tables(store).contains(table);
    let found = found.filter(|_| is_stranger());
    let names = found.into_iter().flat_map(|t| &t.columns).filter(|column| !column.denied).map(|column| &column.name);
    names.filter(|name| names_person(name)).cloned().collect()
}

/// Passes on every owner of rows; one may repeat if there are very many. Unreadable columns are skipped.
///
/// # Errors
/// The engine's refusal.
pub async fn each(snapshot: &mut Snapshot<'_>, mut each: impl FnMut(String) + Send) -> Result<(), ChangeError> {
    let store = snapshot.store;
    let mut seen: HashSet<[u64; 2]> = HashSet::new();
    let may_read = |rule: &&BoundRule| {
        let table = store.catalog().exactly(&rule.table.0, &rule.table.1);
        table.and_then(|table| table.column(&rule.column)).is_none_or(|column| !column.denied)
    };
    for rule in rules(store).filter(may_read) {
        let table = TableName::of(&rule.table);
        let columns = [rule.column.clone()];
        let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
        let take = |row: Vec<FetchedValue>| {
            for owner in row.first().map(|raw| within(raw, rule)).unwrap_or_default() {
                let digest = wide_digest(&owner);
                if !seen.contains(&digest) {
                    if seen.len() < REMEMBERED {
                        seen.insert(digest);
                    }
                    each(owner);
                }
            }
            ControlFlow::Continue(())
        };
        // Documents are nearly all different.
        if rule.inside.path.is_some() || !rule.inside.decode.is_empty() {
            snapshot.stream(wanted, take).await?;
        } else {
            snapshot.distinct(wanted, take).await?;
        }
    }
    Ok(())
}
