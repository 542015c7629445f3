//! Rows with unknown owners: they name no owner, and refer to no row whose owner is known.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::graph::Graph;
use super::plan::PurgePlan;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::agreeing;
use crate::memory::packed::digest_set::DigestSet;
use crate::store::encode::table_of;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::row_list::{RowList, row_digest};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Reports rows whose owner cannot be determined. They lower the status only if the layout says that they may be
/// anybody's.
///
/// # Errors
/// The engine's refusal.
pub async fn disclose(snapshot: &mut Snapshot<'_>, plan: &mut PurgePlan, graph: &Graph) -> Result<(), ChangeError> {
    let recognised = snapshot.store.recognised();
    plan.particular.extend(anybodys(snapshot, graph).await?);
    let told = recognised.erasure.unowned.iter().filter(|(_, when)| when.is_none());
    let told: BTreeSet<TableName> = told.map(|(table, _)| TableName::of(table)).collect();
    let tables: BTreeSet<TableName> = recognised.sources.iter().map(table_of).collect();
    for table in tables.difference(&told) {
        plan.notes.extend(of_table(snapshot, graph, table).await?);
    }
    Ok(())
}

/// Messages about the rows that may be anybody's, as the layout says.
///
/// # Errors
/// The engine's refusal.
pub async fn anybodys(snapshot: &mut Snapshot<'_>, graph: &Graph) -> Result<Vec<String>, ChangeError> {
    let mut words = Vec::new();
    for (table, when) in snapshot.store.recognised().erasure.unowned.clone() {
        let table = TableName::of(&table);
        words.extend(match when {
            Some(when) => that_meet(snapshot, graph, &table, &when).await?,
            None => of_table(snapshot, graph, &table).await?,
        });
    }
    Ok(words)
}

/// Message about the rows of a table that stay and meet a condition; `None` if there are no such rows.
async fn that_meet(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    table: &TableName,
    when: &str,
) -> Result<Option<String>, ChangeError> {
    let mut by = graph.relations.keys.get(table).cloned().unwrap_or_default();
    if by.is_empty() {
        let known = snapshot.store.catalog().exactly(&table.schema, &table.name);
        by.extend(known.and_then(|known| known.columns.first()).map(|column| column.name.clone()));
    }
    let wanted = WantedRows { table, columns: &by, when: Some(when), subject: &[] };
    let mut rows = 0;
    let count = |row: RawRow| {
        rows += usize::from(!graph.has(table, &row));
        ControlFlow::Continue(())
    };
    snapshot.stream(wanted, count).await?;
    let what = format!(
        "{{#}} {{row of {0} leads|rows of {0} lead}} to no owner: the owner of {{it|them}} is unknown",
        table.title()
    );
    Ok((rows > 0).then(|| agreeing(rows, &what)))
}

/// Message about the rows of a table whose owner columns, and those of the rows they belong to, are all empty; `None`
/// if there are no such rows.
async fn of_table(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    table: &TableName,
) -> Result<Option<String>, ChangeError> {
    let of_table = || graph.rules.iter().filter(|rule| TableName::of(&rule.table) == *table);
    let deletes = || of_table().filter(|rule| rule.action == EraseAction::Delete && rule.inside.is_whole());
    // A row that belongs to others of its table has their owner.
    let (with_others, owners): (Vec<_>, Vec<_>) = deletes().partition(|rule| rule.of.as_ref() == Some(&rule.table));
    let owners: BTreeSet<&str> = owners.iter().map(|rule| &*rule.column).collect();
    if owners.is_empty() || of_table().any(|rule| !rule.inside.is_whole()) {
        return Ok(None);
    }
    let owners: Vec<&str> = owners.into_iter().collect();
    let hops: Vec<Hop> = with_others.iter().filter_map(|rule| Hop::of(graph, table, rule)).collect();
    let rows = if hops.is_empty() {
        snapshot.count_empty(table, &owners).await?
    } else {
        over_hops(snapshot, graph, table, &owners, &hops).await?
    };
    let what = format!(
        "{{#}} {{row of|rows of}} {} {{names no|name no}} owner: the owner of {{it|them}} is unknown",
        table.title()
    );
    Ok((rows > 0).then(|| agreeing(rows, &what)))
}

/// A rule by which rows belong to others of their table: the referring columns, and the columns referred to.
struct Hop {
    own: Vec<String>,
    to: Vec<String>,
}

impl Hop {
    /// The columns of a rule; the key if it does not say what it refers to.
    fn of(graph: &Graph, table: &TableName, rule: &BoundRule) -> Option<Hop> {
        let first = rule.to.as_ref().or_else(|| graph.relations.keys.get(table)?.first())?;
        let to = std::iter::once(first).chain(rule.also.iter().map(|(_, to)| to)).cloned().collect();
        Some(Hop { own: rule.naming_columns(), to })
    }
}

/// Counts the rows of a table without an owner, over any number of hops.
async fn over_hops(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    table: &TableName,
    owners: &[&str],
    hops: &[Hop],
) -> Result<usize, ChangeError> {
    let mut columns: Vec<String> = owners.iter().map(|owner| (*owner).to_owned()).collect();
    let mut places = |names: &[String]| -> Vec<usize> {
        columns.extend(names.iter().cloned());
        (columns.len() - names.len()..columns.len()).collect()
    };
    let going = hops;
    let hops: Vec<(Vec<usize>, Vec<usize>)> = hops.iter().map(|hop| (places(&hop.own), places(&hop.to))).collect();
    // Values that refer to rows with a known owner, for each hop; and the rows whose owner is not known yet.
    let mut known: Vec<DigestSet> = hops.iter().map(|_| DigestSet::new(graph.pages())).collect();
    let mut left = RowList::new(graph.pages());
    let learn = |known: &mut Vec<DigestSet>, row: &RawRow| {
        for (known, (_, to)) in known.iter_mut().zip(&hops) {
            if let Some(digest) = key_digest(row, to) {
                known.insert(digest);
            }
        }
    };
    // The owner of rows to delete is the person.
    for (known, hop) in known.iter_mut().zip(going) {
        let at: Option<Vec<usize>> = hop.to.iter().map(|to| graph.taken(table)?.place(to)).collect();
        let (Some(taken), Some(at)) = (graph.taken(table), at) else { continue };
        for digest in taken.rows(0..taken.len()).filter_map(|row| key_digest(&row, &at)) {
            known.insert(digest);
        }
    }
    let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
    let sort = |row: RawRow| {
        if row.iter().take(owners.len()).all(|owner| *owner == FetchedValue::Null) {
            left.push(&row);
        } else {
            learn(&mut known, &row);
        }
        ControlFlow::Continue(())
    };
    snapshot.stream(wanted, sort).await?;
    loop {
        let mut still = RowList::new(graph.pages());
        for row in left.iter() {
            let leads = |(known, (own, _)): (&DigestSet, &(Vec<usize>, Vec<usize>))| {
                key_digest(&row, own).is_some_and(|digest| known.contains(digest))
            };
            if known.iter().zip(&hops).any(leads) {
                learn(&mut known, &row);
            } else {
                still.push(&row);
            }
        }
        graph.pages().check()?;
        if still.len() == left.len() {
            return Ok(left.len());
        }
        left = still;
    }
}

/// A hash of the values at some indexes; `None` if one is NULL.
fn key_digest(row: &RawRow, places: &[usize]) -> Option<[u64; 2]> {
    let text = |at: &usize| Some(FetchedValue::Text(as_text(row.get(*at)?)?));
    Some(row_digest(&places.iter().map(text).collect::<Option<Vec<_>>>()?))
}
