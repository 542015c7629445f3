//! Owners of the rows to delete, as a plan recorded them: a row that has another owner since then stays.

use std::collections::HashSet;
use std::sync::Arc;

use super::graph::{Graph, names_owner, within};
use super::id_set::IdSet;
use super::taken::{GoingRows, room};
use crate::change::ChangeError;
use crate::layout::erase::BoundRule;
use crate::memory::packed::digest_set::DigestSet;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::row_list::row_digest;
use crate::store::row_number::is_numbered;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Owners of a table's rows to delete, as they were when the plan was made.
#[derive(Debug)]
pub struct PlannedOwners {
    /// The rules by which rows name their owners.
    rules: Vec<BoundRule>,
    /// Hashes of the keys of the rows that named someone else.
    of_others: DigestSet,
}

impl PlannedOwners {
    /// Creates the record from rules and the keys of other people's rows.
    pub(super) fn new(rules: &[&BoundRule], of_others: DigestSet) -> Self {
        PlannedOwners { rules: rules.iter().map(|rule| (*rule).clone()).collect(), of_others }
    }

    /// The columns that name owners.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        self.rules.iter().map(|rule| &rule.column)
    }

    /// Whether a row names an owner other than the person, and did not when the plan was made.
    pub fn is_handed_on(&self, key: &[FetchedValue], owners: &[FetchedValue], subject: &[String]) -> bool {
        names_another(self.rules.iter(), owners, subject) && !self.of_others.contains(row_digest(key))
    }
}

/// Removes rows from the deletions, and their ids, if they have another owner now, with the rows that depend on them.
/// Also removes remaining rows that were to be deleted for their contents: the next plan finds those again. Returns the
/// latter.
///
/// # Errors
/// The engine's refusal.
pub async fn drop_moved(
    snapshot: &mut Snapshot<'_>,
    (deletes, ids): (&mut [GoingRows], &mut Arc<IdSet>),
    (subject, account): (&[String], bool),
) -> Result<Vec<GoingRows>, ChangeError> {
    let rules = &snapshot.store.recognised().erasure.rules;
    let mut moved = Graph::new(snapshot.store, rules, snapshot.relations().await?, account);
    let mut chosen = Vec::new();
    for rows in deletes.iter().filter(|rows| !is_numbered(&rows.by)) {
        let is_owner = |rule: &&BoundRule| names_owner(rule) && TableName::of(&rule.table) == rows.table;
        let owners: Vec<&BoundRule> = rules.iter().filter(is_owner).collect();
        let handed = moved.table(&rows.table);
        let columns: Vec<String> =
            handed.columns.iter().chain(owners.iter().map(|rule| &rule.column)).cloned().collect();
        let wanted = WantedRows { table: &rows.table, columns: &columns, when: None, subject: &[] };
        for part in rows.parts().filter(|_| !owners.is_empty()) {
            let look = |row: RawRow| {
                let (row, named) = row.split_at(handed.columns.len().min(row.len()));
                if names_another(owners.iter().copied(), named, subject) {
                    handed.add(row);
                }
            };
            snapshot.each_of_keys(wanted, &part.by, &part.keys, look).await?;
        }
        let mut there = rows.emptied(&room());
        for part in rows.chosen_parts() {
            let key = WantedRows { columns: &rows.by, ..wanted };
            snapshot.each_of_keys(key, &part.by, &part.keys, |row| there.push(&row)).await?;
        }
        chosen.push(there);
    }
    moved.close(snapshot, &[]).await?;
    let (mut dropped, mut gone): (Vec<HashSet<[u64; 2]>>, HashSet<String>) = Default::default();
    for rows in deletes.iter() {
        let hanging = moved.taken(&rows.table).into_iter().flat_map(|taken| taken.keys(0..taken.len()));
        let said = chosen.iter().filter(|there| there.table == rows.table).flat_map(GoingRows::all_keys);
        let mut keys = HashSet::new();
        for key in hanging.chain(said) {
            keys.insert(row_digest(&key));
            gone.extend(key.iter().filter_map(as_text));
        }
        dropped.push(keys);
    }
    for (rows, mut keys) in deletes.iter_mut().zip(dropped) {
        if !gone.is_empty() {
            // A row that depended on one of them may be deleted already; an id that both share is then not the id of a
            // deleted row.
            let shares =
                |key: &Vec<FetchedValue>| matches!(&key[..], [id] if as_text(id).is_some_and(|id| gone.contains(&id)));
            keys.extend(rows.all_keys().filter(shares).map(|key| row_digest(&key)));
        }
        if !keys.is_empty() {
            *rows = rows.without(&keys);
        }
    }
    if !gone.is_empty() {
        let mut left = IdSet::new(&room());
        ids.iter().filter(|id| !gone.contains(&**id)).for_each(|id| left.insert(&id));
        *ids = Arc::new(left);
    }
    Ok(chosen)
}

/// Whether one of the owner columns of a row names someone other than the person.
pub fn names_another<'r>(
    rules: impl Iterator<Item = &'r BoundRule>,
    owners: &[FetchedValue],
    subject: &[String],
) -> bool {
    others(rules, owners, subject).next().is_some()
}

/// The owners that a row names besides the person. Owners that only the database can read out of a value are left out.
pub fn others<'r>(
    rules: impl Iterator<Item = &'r BoundRule>,
    owners: &[FetchedValue],
    subject: &[String],
) -> impl Iterator<Item = String> {
    let is_read = |rule: &BoundRule| rule.owner.as_ref().is_none_or(|owner| owner.is_read);
    let read = rules.zip(owners).filter(move |(rule, _)| is_read(rule));
    read.flat_map(move |(rule, raw)| others_within(raw, rule, subject))
}

/// The owners that a rule finds in a value, without the person.
pub fn others_within(raw: &FetchedValue, rule: &BoundRule, subject: &[String]) -> impl Iterator<Item = String> {
    within(raw, rule).into_iter().filter(|id| !id.is_empty() && !subject.contains(id))
}
