//! Owners of the rows that go: whose they are beside the person, and whether somebody among them is under a legal hold.

use std::collections::HashSet;

use super::graph::{Graph, name};
use super::owners::within;
use super::plan::PurgePlan;
use super::taken::{TakenRows, ranges};
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::agreeing;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Says how many rows go that name another owner: what they belong to goes, or they were chosen for what they say.
///
/// # Errors
/// The engine's refusal; [`ChangeError::Refused`] where such an owner is under a legal hold.
pub async fn disclose(snapshot: &mut Snapshot<'_>, plan: &mut PurgePlan, graph: &Graph) -> Result<(), ChangeError> {
    let chosen = plan.options.decisions().delete_any();
    let held: HashSet<String> = match snapshot.store.records().holds().await {
        // Whoever may not read them may plan, and erases nothing.
        Err(error) if error.is_denied() => HashSet::new(),
        holds => holds?.into_iter().map(|(id, _)| id).collect(),
    };
    for (table, taken) in graph.tables.iter().filter(|(_, taken)| !taken.is_empty() && !taken.key.is_empty()) {
        let goes = |rule: &&BoundRule| rule.action == EraseAction::Delete && name(&rule.table) == *table;
        let (owners, others): (Vec<&BoundRule>, Vec<&BoundRule>) =
            graph.rules.iter().filter(goes).partition(|rule| rule.of.is_none());
        let names_one = matches!(&owners[..], [rule] if rule.inside.is_whole());
        if owners.is_empty() || names_one && others.is_empty() && !chosen {
            continue;
        }
        let rows = of_others(snapshot, (table, taken), &owners, (&plan.subject.ids, &held)).await?;
        if rows > 0 {
            plan.notes.push(agreeing(
                rows,
                &format!(
                    "{}: {{#}} {{row that goes names|rows that go name}} another owner: {{it names|they name}} the person \
                     too, what {{it belongs|they belong}} to goes, or {{it was|they were}} chosen",
                    table.title()
                ),
            ));
        }
    }
    Ok(())
}

/// Counts the rows of a table that go and name an owner who is not the person.
async fn of_others(
    snapshot: &mut Snapshot<'_>,
    (table, taken): (&TableName, &TakenRows),
    owners: &[&BoundRule],
    (subject, held): (&[String], &HashSet<String>),
) -> Result<usize, ChangeError> {
    let columns: Vec<String> = owners.iter().map(|rule| rule.column.clone()).collect();
    let (mut rows, mut is_held) = (0, false);
    for range in ranges(0..taken.len()) {
        let keys: Vec<_> = taken.keys(range).collect();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        snapshot
            .each_of_keys(wanted, &taken.key, &keys, |row| {
                let mut is_others = false;
                for (rule, raw) in owners.iter().zip(&row) {
                    for owner in within(raw, rule).iter().filter(|id| !id.is_empty() && !subject.contains(id)) {
                        is_held |= held.contains(owner);
                        is_others |= rule.owner.as_ref().is_none_or(|owner| owner.is_read);
                    }
                }
                rows += usize::from(is_others);
            })
            .await?;
    }
    if is_held {
        return Err(ChangeError::Refused(format!(
            "a row of {} would go with what it belongs to, or for what it says, and its owner is under a legal hold: `unhold` \
             them, or choose to leave what takes it along",
            table.title()
        )));
    }
    Ok(rows)
}
