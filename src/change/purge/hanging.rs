//! Dependents of deleted rows, whoever owns them: rows deleted with them, and changes in rows that stay. Uses the rules
//! of an erasure without those that only apply to a person.

use std::collections::{BTreeMap, HashSet};

use super::effects::{self, ColumnUpdate, KeptRows, NewValue};
use super::graph::{self, Graph, key_of};
use super::recompute;
use super::scan_findings::ScanFindings;
use crate::change::{ChangeError, apply};
use crate::layout::BoundSource;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::Entity;
use crate::store::Store;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::foreign_keys::{ForeignKey, OnDelete};
use crate::store::relations::Relations;
use crate::store::row_list::row_digest;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{Cell, Mutation, RowWatch, StoredRows, TableName};

/// Effects of deleting some rows.
#[derive(Debug, Default)]
pub struct RowsGoing {
    /// Rows to delete, including the given ones, in an order that foreign keys allow.
    pub deletes: Vec<StoredRows>,
    /// Rows that stay and change: children get the next parent, references are emptied, aggregates are recomputed.
    pub updates: Vec<Mutation>,
    /// Ids of deleted rows to remove from lists, by table and column.
    pub lists: Vec<(TableName, String, Vec<String>)>,
    /// Rows that refer to deleted rows, with their number: a row added later would be left behind.
    pub referring: Vec<RowWatch>,
    /// The table with most deletions or changes, if there are more than the limits; nothing else is set then.
    pub over: Option<TableName>,
}

/// Follows the layout's rules and the foreign keys from some rows to everything that depends on them. Stops if more
/// than `most` rows are deleted, or more than `changing` rows change.
///
/// # Errors
/// [`ChangeError::Refused`] for rows without a key; otherwise the engine's refusal.
pub async fn dependents_of(
    store: &Store,
    going: &[StoredRows],
    most: usize,
    changing: usize,
) -> Result<RowsGoing, ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    // An audit trail of the application keeps entries about deleted rows: only an erasure removes them.
    let trails: Vec<TableKey> = store
        .sources_of(Entity::AuditEntry)
        .unwrap_or_default()
        .iter()
        .map(|source| key_of(&table_of(source)))
        .collect();
    let rules = &store.recognised().erasure.rules;
    let rules = rules.iter().filter(|rule| !trails.contains(&rule.table));
    let rules: Vec<BoundRule> = rules.filter_map(|rule| without_person(store, &relations, rule)).collect();
    let mut graph = Graph::new(store, &rules, relations, true).within(most);
    graph.reach(going.iter().map(|rows| key_of(&rows.table)).collect());
    for rows in going {
        let taken = graph.table(&rows.table);
        if taken.key.is_empty() {
            let title = rows.table.title();
            return Err(ChangeError::Refused(format!("{title} has no primary key that identifies its rows")));
        }
        let columns = taken.columns.clone();
        let wanted = WantedRows { table: &rows.table, columns: &columns, when: None, subject: &[] };
        snapshot.each_of_keys(wanted, &rows.by, &rows.keys, |row| taken.add(&row)).await?;
    }
    graph.close(&mut snapshot, &[]).await?;
    if graph.is_full() {
        let fullest = graph.tables.iter().max_by_key(|(_, taken)| taken.len());
        return Ok(RowsGoing { over: fullest.map(|(table, _)| table.clone()), ..RowsGoing::default() });
    }
    if let Some((unseen, table)) = unseen(store, &graph) {
        return Err(apply::not_seen(&unseen, &apply::along(&unseen, table)));
    }
    let mut updates = KeptRows::new(graph.pages()).within(changing);
    effects::find(&mut snapshot, &graph, &[], &mut updates).await?;
    updates.without(&graph);
    recompute::all(&mut snapshot, &graph, &ScanFindings::default(), &mut updates).await?;
    if updates.is_full() {
        let mut changed: BTreeMap<&TableName, usize> = BTreeMap::new();
        updates.rows.keys().for_each(|(table, _)| *changed.entry(table).or_default() += 1);
        let fullest = changed.into_iter().max_by_key(|(_, rows)| *rows);
        return Ok(RowsGoing { over: fullest.map(|(table, _)| table.clone()), ..RowsGoing::default() });
    }
    let referring = referring(&mut snapshot, &graph).await?;
    // The engine would delete or empty these by cascade, without a plan counting them or an undo restoring them.
    let is_keyless = |watch: &&RowWatch| graph.relations.keys.get(&watch.rows.table).is_none_or(Vec::is_empty);
    if let Some(lost) = referring.iter().filter(is_keyless).find(|watch| watch.state.count > 0) {
        return Err(ChangeError::Refused(format!(
            "rows of {} depend on rows to be deleted and have no primary key, which is needed to change and restore \
             them: add one to the table, or delete these rows first",
            lost.rows.table.title()
        )));
    }
    if let Some(table) = refused(store, &graph, &referring) {
        return Err(ChangeError::Refused(format!(
            "rows of {} refer to rows to be deleted, and their foreign key forbids that: delete these rows first, or \
             change its ON DELETE RESTRICT",
            table.title()
        )));
    }
    let follows = &store.recognised().erasure.follows;
    let followed = |table: &TableName| follows.iter().any(|other: &TableKey| *other == key_of(table));
    let mut out = RowsGoing { referring, ..RowsGoing::default() };
    for table in graph.order().into_iter().filter(|table| !followed(table)) {
        let Some(taken) = graph.taken(&table) else { continue };
        out.deletes.push(taken.going(table).stored(0..taken.len()));
    }
    for ((table, _), (key, kept)) in updates.rows {
        let by = graph.relations.keys.get(&table).cloned().unwrap_or_default();
        // No person is erased, so there is no pseudonym.
        let set =
            kept.set.into_iter().filter(|update| !matches!(update.new, NewValue::Pseudonym | NewValue::Around(_)));
        let cell = |update: ColumnUpdate| Ok((update.column.to_string(), Cell::Is(update.new.value("")?)));
        let set = set.map(cell).collect::<Result<_, ChangeError>>()?;
        out.updates.push(Mutation::Update { table, key: by.into_iter().zip(key).collect(), set });
    }
    let is_written = |rule: &BoundRule| {
        let mut sources = store.recognised().sources.iter().filter(|source| key_of(&table_of(source)) == rule.table);
        let mut said = rules.iter().filter(|said| said.table == rule.table && said.column == rule.column);
        sources.any(BoundSource::is_writable) || said.any(|said| said.action == EraseAction::Remove)
    };
    let removing =
        |rule: &&BoundRule| rule.action == EraseAction::Remove && rule.inside.path.is_none() && is_written(rule);
    for rule in graph.rules.iter().filter(removing) {
        let mut ids: Vec<String> = Vec::new();
        graph.each_unlisted(&mut snapshot, rule, |_| true, |id| ids.push(id.to_owned())).await?;
        if !ids.is_empty() {
            out.lists.push((TableName::of(&rule.table), rule.column.clone(), ids));
        }
    }
    let is_heired = |rows: &StoredRows| graph.relations.heired.contains(&rows.table);
    let hit =
        out.deletes.iter().cloned().chain(out.updates.iter().filter_map(Mutation::rows)).filter(is_heired).collect();
    graph::refuse_same_keys(&mut snapshot, &graph.relations, hit).await?;
    graph.check()?;
    Ok(out)
}

/// Returns the form of a rule that applies when no person is erased. A rule that depends on the person, or that is for
/// erasures only, deletes no rows; nor does a rule that deletes memories with the episode they were learned from. Such
/// rows lose the reference if the column is nullable, and are deleted if it is not.
fn without_person(store: &Store, relations: &Relations, rule: &BoundRule) -> Option<BoundRule> {
    let sources = &store.recognised().sources;
    let is_of = |entity: Entity, table: &TableKey| {
        sources.iter().any(|source| source.entity == entity && key_of(&table_of(source)) == *table)
    };
    let is_learned = is_of(Entity::Memory, &rule.table)
        && rule.of.as_ref().is_some_and(|of| *of != rule.table && is_of(Entity::Episode, of));
    let asks_person = rule.when.as_ref().is_some_and(|when| when.contains("$subject"));
    if rule.action != EraseAction::Delete || !(rule.erasure_only || asks_person || is_learned) {
        return Some(rule.clone());
    }
    let names_alone = rule.inside.is_whole() && rule.also.is_empty() && (rule.to.is_none() || is_learned);
    if relations.required.contains(&(TableName::of(&rule.table), rule.column.clone())) {
        return Some(rule.clone()).filter(|_| names_alone);
    }
    names_alone.then(|| BoundRule { action: EraseAction::Empty, recompute: None, ..rule.clone() })
}

/// A table whose rows are deleted with those of another by a rule, although we may not see all of them.
fn unseen<'g>(store: &Store, graph: &'g Graph) -> Option<(TableName, &'g TableName)> {
    let goes = |rule: &&BoundRule| rule.action == EraseAction::Delete && !rule.account;
    graph.rules.iter().filter(goes).find_map(|rule| {
        let (schema, name) = &rule.table;
        let table = store.catalog().exactly(schema, name)?;
        let is_hidden = table.denied || table.hides_rows || table.readable(&rule.column).is_none();
        let (of, _) = graph.tables.iter().find(|(of, taken)| rule.of == Some(key_of(of)) && !taken.is_empty())?;
        is_hidden.then(|| (TableName::of(&rule.table), of))
    })
}

/// A table outside the layout with rows that would have to be deleted, although its foreign key refuses that.
fn refused<'g>(store: &Store, graph: &'g Graph, referring: &[RowWatch]) -> Option<&'g TableName> {
    let recognised = store.recognised();
    let is_known = |table: &TableName| {
        recognised.sources.iter().any(|source| table_of(source) == *table)
            || recognised.erasure.rules.iter().any(|rule| rule.table == key_of(table))
    };
    let is_required = |key: &ForeignKey| {
        key.columns.iter().all(|column| graph.relations.required.contains(&(key.from.clone(), column.clone())))
    };
    let refers = |key: &ForeignKey| {
        let is_it = |watch: &RowWatch| watch.rows.table == key.from && watch.rows.by == key.columns;
        referring.iter().any(|watch| is_it(watch) && watch.state.count > 0)
    };
    let refuses = |key: &&ForeignKey| {
        key.on_delete == OnDelete::Restrict && is_required(key) && !is_known(&key.from) && refers(key)
    };
    graph.relations.foreign.iter().find(refuses).map(|key| &key.from)
}

/// The rows whose columns refer to deleted rows, by the comparison of these columns.
async fn referring(snapshot: &mut Snapshot<'_>, graph: &Graph) -> Result<Vec<RowWatch>, ChangeError> {
    let mut all = Vec::new();
    for rule in graph.rules.iter().filter(|rule| rule.of.is_some() && rule.inside.is_whole()) {
        let mut once = HashSet::new();
        let keys = graph.parts(rule, 0).flat_map(|part| graph.named_by(rule, &[], part));
        let keys: Vec<Vec<FetchedValue>> = keys.filter(|key| once.insert(row_digest(key))).collect();
        if keys.is_empty() {
            continue;
        }
        let table = TableName::of(&rule.table);
        all.extend(snapshot.number(StoredRows { table, by: rule.naming_columns(), keys }).await?);
    }
    Ok(all)
}
