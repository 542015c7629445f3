//! Data that people under a legal hold would lose by another person's erasure.

use std::collections::HashSet;

use super::effects::{self, KeptRows};
use super::graph::{self, Graph};
use super::owners;
use crate::change::ChangeError;
use crate::layout::erase::EraseAction;
use crate::store::StoreError;
use crate::store::fetched::FetchedValue;
use crate::store::relations::Relations;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Refuses an erasure that would remove held people's data from rows, or delete rows for such contents: whatever would
/// be deleted or emptied if those people were erased. A row that names another owner belongs to that owner.
///
/// # Errors
/// [`ChangeError::Refused`], or the engine's refusal.
pub async fn refuse(
    snapshot: &mut Snapshot<'_>,
    relations: &Relations,
    rows: &[(TableName, Vec<FetchedValue>)],
) -> Result<(), ChangeError> {
    let store = snapshot.store;
    if rows.is_empty() {
        return Ok(());
    }
    let people = match store.records().held().await {
        // A role that may not read the holds may plan, but not erase.
        Err(error) if error.is_denied() => return Ok(()),
        people => people?,
    };
    if people.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<String> = people.iter().cloned().collect();
    ids.sort_unstable();
    let mut graph = Graph::new(store, &store.recognised().erasure.rules, relations.clone(), true);
    graph.rules.retain(|rule| rule.action == EraseAction::Delete || effects::empties_content(rule));
    graph.close(snapshot, &ids).await?;
    let mut emptied = KeptRows::new(graph.pages());
    effects::find(snapshot, &graph, &ids, &mut emptied).await?;
    for (table, key) in rows {
        if emptied.loses(table, key)
            || graph.has(table, key) && !is_anothers(snapshot, &graph, &people, (table, key)).await?
        {
            return Err(ChangeError::Refused(format!(
                "a row of {} would be deleted or lose words, and belongs to someone under a legal hold ({}): `unhold` \
                 them, or leave what names the person there (--mention ID=leave)",
                table.title(),
                ids.join(", ")
            )));
        }
    }
    Ok(())
}

/// Whether a row names owners and none of them is held.
async fn is_anothers(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    people: &HashSet<String>,
    (table, key): (&TableName, &[FetchedValue]),
) -> Result<bool, StoreError> {
    let rules: Vec<_> = owners::of_table(snapshot.store, table).collect();
    let columns: Vec<String> = rules.iter().map(|rule| rule.column.clone()).collect();
    let Some(by) = graph.relations.keys.get(table).filter(|_| !columns.is_empty()) else { return Ok(false) };
    let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
    let found = snapshot.select_keys(wanted, by, &[key.to_vec()]).await?;
    let named = found.iter().flat_map(|row| rules.iter().zip(row)).flat_map(|(rule, raw)| graph::within(raw, rule));
    let named: Vec<String> = named.filter(|id| !id.is_empty()).collect();
    Ok(!named.is_empty() && !named.iter().any(|id| people.contains(id)))
}
