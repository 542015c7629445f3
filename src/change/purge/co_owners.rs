//! Owners of the rows that go: whose they are beside the person, and whether somebody among them is under a legal hold.

use std::collections::HashSet;

use super::graph::{Graph, as_text, name, names_owner, within};
use super::owners::called_after_people;
use super::plan::PurgePlan;
use super::taken::{TakenRows, listed, ranges};
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::agreeing;
use crate::store::fetched::RawRow;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Says how many rows go that name another owner: what they belong to goes, or they were chosen for what they say.
///
/// # Errors
/// The engine's refusal; [`ChangeError::Refused`] where such an owner is under a legal hold.
pub async fn disclose(snapshot: &mut Snapshot<'_>, plan: &mut PurgePlan, graph: &Graph) -> Result<(), ChangeError> {
    let chosen = plan.options.decisions().delete_any();
    let held = match snapshot.store.records().held().await {
        // Whoever may not read them may plan, and erases nothing.
        Err(error) if error.is_denied() => HashSet::new(),
        people => people?,
    };
    for (table, taken) in graph.tables.iter().filter(|(_, taken)| !taken.is_empty() && !taken.key.is_empty()) {
        let goes = |rule: &&BoundRule| rule.action == EraseAction::Delete && name(&rule.table) == *table;
        let (owners, others): (Vec<&BoundRule>, Vec<&BoundRule>) =
            graph.rules.iter().filter(goes).partition(|rule| rule.of.is_none());
        let names_one = matches!(&owners[..], [rule] if rule.inside.is_whole());
        also_of_others(snapshot, plan, graph, (table, taken), &others).await?;
        also_listed(snapshot, plan, graph, (table, &held), &others).await?;
        let called = if held.is_empty() { Vec::new() } else { called_after_people(snapshot.store, table) };
        if owners.is_empty() && called.is_empty() || names_one && others.is_empty() && !chosen {
            continue;
        }
        let rows = of_others(snapshot, (table, taken), (&owners, &called), (&plan.subject.ids, &held)).await?;
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

/// Says how many rows of a table go although they hang on rows that stay, of a table whose rows name people.
async fn also_of_others(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    (table, taken): (&TableName, &TakenRows),
    parents: &[&BoundRule],
) -> Result<(), ChangeError> {
    let is_owned = |of: &TableKey| graph.rules.iter().any(|r| names_owner(r) && r.table == *of);
    for link in parents.iter().filter(|r| r.inside.is_whole() && r.also.is_empty() && r.when.is_none()) {
        let Some(of) = link.of.as_ref().filter(|of| is_owned(of) && name(of) != *table) else { continue };
        if parents.iter().all(|other| other.of.as_ref() == Some(of)) {
            continue;
        }
        let going = graph.texts_by(link, &[], 0);
        let stays = |row: RawRow| row.first().and_then(as_text).is_some_and(|id| !going.contains(&id));
        let mut rows = 0;
        let columns = [link.column.clone()];
        for range in ranges(0..taken.len()) {
            let keys: Vec<_> = taken.keys(range).collect();
            let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
            snapshot.each_of_keys(wanted, &taken.key, &keys, |row| rows += usize::from(stays(row))).await?;
        }
        if rows > 0 {
            let what = format!(
                "{}: {{#}} {{row that goes hangs|rows that go hang}} on rows of {} that stay, too",
                table.title(),
                name(of).title()
            );
            plan.effects.push(agreeing(rows, &what));
        }
    }
    Ok(())
}

/// Says how many rows that stay name rows of a table that go, such as episodes of others the runs that they share. Refuses
/// where one of them is a held person's.
async fn also_listed(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    (table, held): (&TableName, &HashSet<String>),
    parents: &[&BoundRule],
) -> Result<(), ChangeError> {
    for link in parents.iter().filter(|r| r.inside.is_whole() && r.also.is_empty() && r.when.is_none()) {
        let (Some(of), Some(to)) = (link.of.as_ref().map(name), &link.to) else { continue };
        let Some(key) = graph.relations.keys.get(&of).filter(|key| !key.is_empty() && !key.contains(to)) else {
            continue;
        };
        let going = graph.texts_by(link, &[], 0);
        let owners: Vec<&BoundRule> =
            graph.rules.iter().filter(|rule| names_owner(rule) && name(&rule.table) == of).collect();
        let owned = owners.iter().map(|rule| &rule.column);
        let columns: Vec<String> = key.iter().chain(owned).chain([to]).cloned().collect();
        let wanted = WantedRows { table: &of, columns: &columns, when: None, subject: &[] };
        let names = |row: &RawRow| {
            let (raw, rest) = row.split_last()?;
            let (key, owned) = rest.split_at(key.len());
            let named = listed(raw.clone(), false).iter().filter_map(as_text).any(|id| going.contains(&id));
            let mut people = owners.iter().zip(owned).flat_map(|(rule, raw)| within(raw, rule));
            (named && !graph.has(&of, key)).then(|| people.find(|person| held.contains(person)))
        };
        let (mut rows, mut kept) = (0, None);
        let each = |_, person: Option<String>| {
            rows += 1;
            kept = kept.take().or(person);
        };
        snapshot.stream_looked(wanted, names, each).await?;
        if let Some(person) = kept {
            return Err(ChangeError::Refused(format!(
                "a row of {} would go that a row of {} names, too, and its owner {person} is under a legal hold: `unhold` them",
                table.title(),
                of.title()
            )));
        }
        if rows > 0 {
            let what = format!(
                "{}: {{#}} {{row|rows}} of {} that {{stays names|stay name}} rows that go, too",
                table.title(),
                of.title()
            );
            plan.effects.push(agreeing(rows, &what));
        }
    }
    Ok(())
}

/// Counts the rows of a table that go and name an owner who is not the person.
async fn of_others(
    snapshot: &mut Snapshot<'_>,
    (table, taken): (&TableName, &TakenRows),
    (owners, called): (&[&BoundRule], &[String]),
    (subject, held): (&[String], &HashSet<String>),
) -> Result<usize, ChangeError> {
    let columns: Vec<String> = owners.iter().map(|rule| &rule.column).chain(called).cloned().collect();
    let (mut rows, mut kept) = (0, None);
    for range in ranges(0..taken.len()) {
        let keys: Vec<_> = taken.keys(range).collect();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        snapshot
            .each_of_keys(wanted, &taken.key, &keys, |row| {
                let mut is_others = false;
                for (rule, raw) in owners.iter().zip(&row) {
                    for owner in within(raw, rule).iter().filter(|id| !id.is_empty() && !subject.contains(id)) {
                        kept = kept.take().or_else(|| held.get(owner).cloned());
                        is_others |= rule.owner.as_ref().is_none_or(|owner| owner.is_read);
                    }
                }
                let mut called = row[owners.len()..].iter().filter_map(as_text);
                kept = kept.take().or_else(|| called.find(|owner| held.contains(owner)));
                rows += usize::from(is_others);
            })
            .await?;
    }
    if let Some(person) = kept {
        return Err(ChangeError::Refused(format!(
            "a row of {} would go with what it belongs to, or for what it says, and its owner {person} is under a \
             legal hold: `unhold` them, or choose to leave what takes it along",
            table.title()
        )));
    }
    Ok(rows)
}
