//! Rows that lead to the person and stay, because other people have a share in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::graph::Graph;
use super::taken::TakenRows;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::agreeing;
use crate::store::snapshot::Snapshot;
use crate::store::stored::TableName;

/// Returns a message about each table with rows that would be deleted if the person were their only owner.
///
/// # Errors
/// As [`Graph::close`].
pub async fn told(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    subject: &[String],
) -> Result<Vec<(TableName, String)>, ChangeError> {
    let rows = rows(snapshot, graph, subject).await?;
    let words = |(table, rows): (TableName, usize)| {
        let title = table.title();
        let what = format!(
            "{{#}} {{row of {title} leads|rows of {title} lead}} to the person and to other people, or {{hangs|hang}} \
             on such a row: {{it stays|they stay}}"
        );
        (table, agreeing(rows, &what))
    };
    Ok(rows.into_iter().map(words).collect())
}

/// Counts, by table, the rows that conditions about people leave, and those that would be deleted with them.
async fn rows(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    subject: &[String],
) -> Result<BTreeMap<TableName, usize>, ChangeError> {
    let told = &snapshot.store.recognised().erasure.rules;
    let (sharing, others): (Vec<BoundRule>, Vec<BoundRule>) = followed(graph, told).partition(is_of_owners);
    let sharing: Vec<BoundRule> = sharing.into_iter().map(|rule| BoundRule { when: None, ..rule }).collect();
    // Usually nobody has a share: then nothing is followed further.
    let from: BTreeSet<TableName> = sharing.iter().filter_map(|rule| rule.of.as_ref()).map(TableName::of).collect();
    let mut first = with_rows(graph, |table| from.contains(table));
    for rule in &sharing {
        first.follow(snapshot, rule, subject, 0).await?;
    }
    first.check()?;
    if beyond(&first, graph).is_empty() {
        return Ok(BTreeMap::new());
    }
    drop(first);
    let mut all = with_rows(graph, |_| true);
    // The other rules were followed from the rows to delete.
    let mut done: HashMap<usize, usize> = others.iter().map(|rule| all.leading(rule)).enumerate().collect();
    let rules: Vec<BoundRule> = others.into_iter().chain(sharing).collect();
    all.follow_all(snapshot, &rules, subject, &mut done).await?;
    all.check()?;
    Ok(beyond(&all, graph))
}

/// Whether a condition compares the owners of a row with the person: it leaves rows of others, and not rows of another
/// kind.
fn is_of_owners(rule: &BoundRule) -> bool {
    rule.when.as_ref().is_some_and(|when| when.contains("$subject"))
}

/// The rules that delete rows that have a key. Where the layout says whose rows are, foreign keys add none: a row may
/// refer to a shared row and be someone else's.
fn followed<'g>(graph: &'g Graph, told: &'g [BoundRule]) -> impl Iterator<Item = BoundRule> + 'g {
    let deletes = |rule: &&BoundRule| rule.action == EraseAction::Delete && rule.owner.is_none();
    let spoken: BTreeSet<&TableKey> = told.iter().filter(deletes).map(|rule| &rule.table).collect();
    let is_told = |rule: &BoundRule| told.iter().any(|t| (&t.table, &t.column) == (&rule.table, &rule.column));
    let has_key =
        |rule: &BoundRule| graph.relations.keys.get(&TableName::of(&rule.table)).is_some_and(|k| !k.is_empty());
    let rules = graph.rules.iter().filter(deletes);
    rules.filter(move |rule| has_key(rule) && (is_told(rule) || !spoken.contains(&rule.table))).cloned()
}

/// A graph with the rows to delete of some tables.
fn with_rows(graph: &Graph, is_wanted: impl Fn(&TableName) -> bool) -> Graph {
    let mut copy = graph.emptied();
    for (table, taken) in graph.tables.iter().filter(|(table, _)| is_wanted(table)) {
        let mut rows = TakenRows::new(taken.key.clone(), taken.columns.clone(), copy.pages());
        taken.rows(0..taken.len()).for_each(|row| rows.add(&row));
        copy.tables.insert(table.clone(), rows);
    }
    copy
}

/// Counts the rows of a graph, by table, that are not to be deleted.
fn beyond(all: &Graph, graph: &Graph) -> BTreeMap<TableName, usize> {
    let stay = |(table, taken): (&TableName, &TakenRows)| {
        let rows = taken.keys(0..taken.len()).filter(|key| !graph.has(table, key)).count();
        (rows > 0).then(|| (table.clone(), rows))
    };
    all.tables.iter().filter_map(stay).collect()
}
