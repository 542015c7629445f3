//! Other owners of the deleted rows, and whether one of them is under a legal hold.

use std::collections::{BTreeSet, HashSet};

use super::graph::{Graph, names_owner, within};
use super::owners::called_after_people;
use super::plan::PurgePlan;
use super::planned_owners::{PlannedOwners, others, others_within};
use super::subject::PurgeSubject;
use super::taken::{TakenRows, listed, ranges};
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::agreeing;
use crate::memory::packed::digest_set::DigestSet;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::foreign_keys::ForeignKey;
use crate::store::row_list::{RowList, row_digest};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{StoredRows, TableName};

/// Adds to the plan how many deleted rows name another owner. They go because what they belong to goes, or for their
/// contents.
///
/// # Errors
/// The engine's refusal; [`ChangeError::Refused`] if such an owner is under a legal hold.
pub async fn disclose(snapshot: &mut Snapshot<'_>, plan: &mut PurgePlan, graph: &Graph) -> Result<(), ChangeError> {
    let chosen = plan.options.decisions().delete_any();
    let held = match snapshot.store.records().held().await {
        // A role that may not read the holds may plan, but not erase.
        Err(error) if error.is_denied() => HashSet::new(),
        people => people?,
    };
    for (table, taken) in graph.tables.iter().filter(|(_, taken)| !taken.is_empty() && !taken.key.is_empty()) {
        let goes = |rule: &&BoundRule| rule.action == EraseAction::Delete && TableName::of(&rule.table) == *table;
        let (owners, others): (Vec<&BoundRule>, Vec<&BoundRule>) =
            graph.rules.iter().filter(goes).partition(|rule| rule.of.is_none());
        let names_one = matches!(&owners[..], [rule] if rule.inside.is_whole());
        also_of_others(snapshot, plan, graph, (table, taken), &others).await?;
        also_listed(snapshot, plan, graph, (table, &held), &others).await?;
        let called = if held.is_empty() { Vec::new() } else { called_after_people(snapshot.store, table) };
        if owners.is_empty() && called.is_empty() {
            continue;
        }
        let mut there = DigestSet::new(graph.pages());
        let subject = (&plan.subject, &held);
        let rows = if names_one && called.is_empty() && taken.are_named() {
            0
        } else {
            of_others(snapshot, (table, taken), (&owners, &called), subject, &mut there).await?
        };
        if !names_one || !others.is_empty() || chosen {
            plan.notes.extend(report_other_owners(table, rows));
        }
        if !owners.is_empty() {
            plan.owners.insert(table.clone(), PlannedOwners::new(&owners, there));
        }
    }
    carried(snapshot, plan, graph, &held).await
}

/// Reports how many rows of a table are deleted although rows that they depend on stay, if rows of the table name
/// people.
async fn also_of_others(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    (table, taken): (&TableName, &TakenRows),
    parents: &[&BoundRule],
) -> Result<(), ChangeError> {
    let is_owned = |of: &TableKey| graph.rules.iter().any(|r| names_owner(r) && r.table == *of);
    for link in parents.iter().filter(|r| r.inside.is_whole() && r.also.is_empty() && r.when.is_none()) {
        let Some(of) = link.of.as_ref().filter(|of| is_owned(of) && TableName::of(of) != *table) else { continue };
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
                "{}: {{#}} {{row to be deleted also belongs|rows to be deleted also belong}} to rows of {} that stay",
                table.title(),
                TableName::of(of).title()
            );
            plan.effects.push(agreeing(rows, &what));
        }
    }
    Ok(())
}

/// Reports how many remaining rows name deleted rows of a table, such as other people's episodes in a shared run.
/// Refuses if one of them belongs to a held person.
async fn also_listed(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    (table, held): (&TableName, &HashSet<String>),
    parents: &[&BoundRule],
) -> Result<(), ChangeError> {
    for link in parents.iter().filter(|r| r.inside.is_whole() && r.also.is_empty() && r.when.is_none()) {
        let (Some(of), Some(to)) = (link.of.as_ref().map(TableName::of), &link.to) else { continue };
        let Some(key) = graph.relations.keys.get(&of).filter(|key| !key.is_empty() && !key.contains(to)) else {
            continue;
        };
        let going = graph.texts_by(link, &[], 0);
        let owners: Vec<&BoundRule> = graph.owner_rules(&of).collect();
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
                "a row of {} would be deleted that a row of {} also refers to, and the owner of that row, {person}, is \
                 under a legal hold: `unhold` them",
                table.title(),
                of.title()
            )));
        }
        if rows > 0 {
            let what = format!(
                "{}: {{#}} {{row|rows}} of {} that {{stays also refers|stay also refer}} to rows to be deleted",
                table.title(),
                of.title()
            );
            plan.effects.push(agreeing(rows, &what));
        }
    }
    Ok(())
}

/// Reports how many rows without a key the engine deletes by cascade, and how many of these name another owner.
async fn carried(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    held: &HashSet<String>,
) -> Result<(), ChangeError> {
    let leads = |key: &&ForeignKey| graph.taken(&key.to).is_some_and(|taken| !taken.is_empty());
    let tables: BTreeSet<&TableName> = graph.relations.carrying().filter(leads).map(|key| &key.from).collect();
    for table in tables {
        refuse_referred(snapshot, graph, table).await?;
        let owners: Vec<&BoundRule> = graph.owner_rules(table).collect();
        let called = if held.is_empty() { Vec::new() } else { called_after_people(snapshot.store, table) };
        let columns: Vec<String> = owners.iter().map(|rule| &rule.column).chain(&called).cloned().collect();
        let (mut rows, mut others) = (0, OtherOwners::new(&owners, &plan.subject, held));
        let look = |row: &[FetchedValue]| {
            rows += 1;
            others.look(row);
        };
        graph.each_carried(snapshot, table, &columns, look).await?;
        let of_others = others.count(table)?;
        if rows > 0 {
            let what = "{#} {row that nothing distinguishes is deleted with what it refers|rows that nothing \
             distinguishes are deleted with what they refer} to";
            let words = format!(
                "{}: {what}: the database deletes {{it|them}}, and no count includes {{it|them}}",
                table.title()
            );
            plan.effects.push(agreeing(rows, &words));
        }
        plan.notes.extend(report_other_owners(table, of_others));
    }
    Ok(())
}

/// Refuses an erasure if rows refer to rows without a key that the engine deletes by cascade: it would delete or change
/// the referring rows too, and they could not be counted.
async fn refuse_referred(snapshot: &mut Snapshot<'_>, graph: &Graph, table: &TableName) -> Result<(), ChangeError> {
    for key in graph.relations.foreign.iter().filter(|key| key.to == *table && key.from != *table) {
        let mut named = RowList::new(graph.pages());
        graph.each_carried(snapshot, table, &key.to_columns, |row| named.push(row)).await?;
        for range in ranges(0..named.len()) {
            let keys = named.rows(range).filter(|key| !key.contains(&FetchedValue::Null)).collect();
            let rows = StoredRows { table: key.from.clone(), by: key.columns.clone(), keys };
            if snapshot.number(rows).await?.is_some_and(|watch| watch.state.count > 0) {
                return Err(ChangeError::Refused(format!(
                    "rows of {} refer to rows of {} that would be deleted with what they refer to, and nothing \
                     distinguishes these: give {} a primary key, or delete those rows first",
                    key.from.title(),
                    table.title(),
                    table.title()
                )));
            }
        }
    }
    Ok(())
}

/// Message for deleted rows of a table that name another owner.
fn report_other_owners(table: &TableName, rows: usize) -> Option<String> {
    let what = "{#} {row to be deleted names|rows to be deleted name} another owner. {It is|They are} deleted \
                because {it names|they name} the person too, {belongs|belong} to a deleted row, or {was|were} chosen";
    (rows > 0).then(|| agreeing(rows, &format!("{}: {what}", table.title())))
}

/// Counts the deleted rows of a table that name another owner, and adds their keys to `there`.
async fn of_others(
    snapshot: &mut Snapshot<'_>,
    (table, taken): (&TableName, &TakenRows),
    (owners, called): (&[&BoundRule], &[String]),
    (subject, held): (&PurgeSubject, &HashSet<String>),
    there: &mut DigestSet,
) -> Result<usize, ChangeError> {
    let named = owners.iter().map(|rule| &rule.column).chain(called);
    let columns: Vec<String> = taken.key.iter().chain(named).cloned().collect();
    let mut others = OtherOwners::new(owners, subject, held);
    for range in ranges(0..taken.len()) {
        let keys: Vec<_> = taken.keys(range).collect();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        let look = |row: RawRow| {
            let (key, rest) = row.split_at(taken.key.len().min(row.len()));
            if others.look(rest) {
                there.insert(row_digest(key));
            }
        };
        snapshot.each_of_keys(wanted, &taken.key, &keys, look).await?;
    }
    others.count(table)
}

/// Owners that deleted rows name besides the person.
struct OtherOwners<'a> {
    owners: &'a [&'a BoundRule],
    subject: &'a PurgeSubject,
    /// Everything that the person is called.
    handles: HashSet<&'a str>,
    held: &'a HashSet<String>,
    rows: usize,
    kept: Option<String>,
}

impl<'a> OtherOwners<'a> {
    fn new(owners: &'a [&'a BoundRule], subject: &'a PurgeSubject, held: &'a HashSet<String>) -> Self {
        let handles = subject.handles.iter().map(|handle| &*handle.value).collect();
        OtherOwners { owners, subject, handles, held, rows: 0, kept: None }
    }

    /// Examines the owner columns of a row, then the columns named after people. Returns whether the row names an owner
    /// by an id that is not the person's. A row that calls the person by another handle is not counted.
    fn look(&mut self, row: &[FetchedValue]) -> bool {
        let (owners, called) = row.split_at(self.owners.len().min(row.len()));
        let ids = &self.subject.ids;
        let named = self.owners.iter().zip(owners).flat_map(|(rule, raw)| others_within(raw, rule, ids));
        let mut people = named.chain(called.iter().filter_map(as_text));
        self.kept = self.kept.take().or_else(|| people.find(|person| self.held.contains(person)));
        let owners = others(self.owners.iter().copied(), owners, ids).collect::<Vec<_>>();
        self.rows += usize::from(owners.iter().any(|owner| !self.handles.contains(&**owner)));
        !owners.is_empty()
    }

    /// Returns the number of rows that name someone else.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if one of these people is under a legal hold.
    fn count(self, table: &TableName) -> Result<usize, ChangeError> {
        match self.kept {
            None => Ok(self.rows),
            Some(person) => Err(ChangeError::Refused(format!(
                "a row of {} would be deleted with what it belongs to, or because of what it says, and its owner \
                 {person} is under a legal hold: `unhold` them, or choose to leave what takes it along",
                table.title()
            ))),
        }
    }
}
