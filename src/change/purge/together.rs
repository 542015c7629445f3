//! Rows that lead to others by something other than one value of their own: rows grouped by a common value, such as the
//! states of a thread, and rows that a member of a document names.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::graph::{Graph, within};
use super::planned_owners::others_within;
use super::subject;
use super::taken::ranges;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::json;
use crate::store::container;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::row_list::row_digest;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;
use crate::store::within::texts_of;

impl Graph {
    /// Records that from now on rows may be deleted for their contents: other people's rows in the same group stay.
    pub fn spare(&mut self, person: &[String]) {
        self.sparing = Some(person.to_vec());
    }

    /// Removes keys that group other people's rows: in a thread without rows of the person, someone else's states stay,
    /// and so do their dependents.
    pub(super) async fn unshared(
        &self,
        snapshot: &mut Snapshot<'_>,
        rule: &BoundRule,
        mut keys: Vec<Vec<FetchedValue>>,
    ) -> Result<Vec<Vec<FetchedValue>>, ChangeError> {
        let (Some(person), Some((table, column))) = (&self.sparing, self.keeping(rule)) else { return Ok(keys) };
        if keys.is_empty() {
            return Ok(keys);
        }
        let by = self.relations.keys.get(&table).cloned().unwrap_or_default();
        let owners: Vec<&BoundRule> = self.owner_rules(&table).collect();
        let named = owners.iter().map(|rule| &rule.column);
        let columns: Vec<String> = std::iter::once(column).chain(&by).chain(named).cloned().collect();
        let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
        let (mut own, mut others) = (HashSet::new(), HashSet::new());
        let look = |row: RawRow| {
            let (kept, rest) = row.split_at(row.len().min(1));
            let (key, named) = rest.split_at(by.len().min(rest.len()));
            let named = || owners.iter().zip(named);
            if named().any(|(rule, raw)| within(raw, rule).iter().any(|id| person.contains(id))) {
                own.insert(row_digest(kept));
            } else if !self.has(&table, key) && named().any(|(rule, raw)| is_of_another(raw, rule, person)) {
                others.insert(row_digest(kept));
            }
        };
        snapshot.each_of_keys(wanted, std::slice::from_ref(column), &keys, look).await?;
        keys.retain(|key| own.contains(&row_digest(key)) || !others.contains(&row_digest(key)));
        Ok(keys)
    }

    /// Passes on the ids that a rule's lists lose, except those that a remaining row of another table for the same
    /// lists also has. `among` selects the ids.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn each_unlisted(
        &self,
        snapshot: &mut Snapshot<'_>,
        rule: &BoundRule,
        among: impl Fn(&str) -> bool,
        mut each: impl FnMut(&str),
    ) -> Result<(), ChangeError> {
        let Some(table) = rule.of.as_ref().map(TableName::of) else { return Ok(()) };
        let Some(taken) = self.taken(&table) else { return Ok(()) };
        let Some(to) = rule.to.as_ref().or(taken.key.first()) else { return Ok(()) };
        let is_alike = |other: &&BoundRule| {
            (other.action, &other.table, &other.column) == (rule.action, &rule.table, &rule.column)
                && other.of != rule.of
        };
        for range in ranges(0..taken.len()) {
            let is_asked = |value: &FetchedValue| as_text(value).is_some_and(|id| among(&id));
            let ids: Vec<FetchedValue> = taken.values(to, range).filter(is_asked).collect();
            let keys: Vec<Vec<FetchedValue>> = ids.iter().map(|id| vec![id.clone()]).collect();
            let mut staying: HashSet<String> = HashSet::new();
            for other in self.rules.iter().filter(is_alike).filter(|_| !keys.is_empty()) {
                let Some(of) = other.of.as_ref().map(TableName::of) else { continue };
                let Some(by) = self.relations.keys.get(&of).filter(|by| !by.is_empty()) else { continue };
                let Some(named) = other.to.as_ref().or(by.first()) else { continue };
                let columns: Vec<String> = by.iter().chain([named]).cloned().collect();
                let wanted = WantedRows { table: &of, columns: &columns, when: None, subject: &[] };
                let compared = [self.relations.comparison((&of, named), (&table, to))];
                let stays = |row: RawRow| {
                    let (key, id) = row.split_at(by.len().min(row.len()));
                    staying.extend(id.first().and_then(as_text).filter(|_| !self.has(&of, key)));
                };
                snapshot.each_compared(wanted, (std::slice::from_ref(named), &compared), &keys, stays).await?;
            }
            ids.iter().filter_map(as_text).filter(|id| !staying.contains(id)).for_each(|id| each(&id));
        }
        Ok(())
    }

    /// The table and column that a rule refers to, if that column groups rows of the table.
    fn keeping<'r>(&self, rule: &'r BoundRule) -> Option<(TableName, &'r String)> {
        let (of, to) = (rule.of.as_ref()?, rule.to.as_ref()?);
        let keeps = |other: &BoundRule| {
            (other.action, &other.table, other.of.as_ref()) == (EraseAction::Delete, of, Some(of))
                && other.column == *to
                && other.to.as_ref() == Some(to)
                && other.also.is_empty()
        };
        let is_kept = rule.also.is_empty() && rule.inside.is_whole() && self.rules.iter().any(keeps);
        is_kept.then(|| (TableName::of(of), to))
    }
}

/// Whether the column of a rule names someone else and not the person. A text without parts is an id of its own.
fn is_of_another(raw: &FetchedValue, rule: &BoundRule, person: &[String]) -> bool {
    if let Some(by) = &rule.inside.by {
        let tells = |part: &String| person.contains(part) && subject::tells_anywhere(part);
        if as_text(raw).is_none_or(|text| !text.contains(by)) || texts_of(raw, &rule.inside).iter().any(tells) {
            return false;
        }
    }
    others_within(raw, rule, person).next().is_some()
}

/// The document members by which rows name some rows to delete.
pub(super) struct HeldMembers<'r> {
    /// Columns to read of a row: those that refer, and the document.
    pub columns: Vec<String>,
    path: &'r str,
    /// Hashes of these columns' values with the key and the value of the member.
    members: HashSet<[u64; 2]>,
}

impl<'r> HeldMembers<'r> {
    /// The members for the rows from which a rule leads; `None` if the rule needs no member.
    pub fn of(graph: &Graph, rule: &'r BoundRule, rows: Range<usize>) -> Option<Self> {
        let held = rule.holds.as_ref()?;
        let mut columns = rule.naming_columns();
        columns.push(held.column.clone());
        let mut members = HashSet::new();
        if let Some(taken) = rule.of.as_ref().and_then(|of| graph.taken(&TableName::of(of))) {
            let named = rule
                .to
                .as_ref()
                .or(taken.key.first())
                .into_iter()
                .chain(rule.also.iter().map(|(_, to)| to))
                .chain([&held.key, &held.value]);
            let places: Vec<usize> = named.filter_map(|column| taken.place(column)).collect();
            let texts = |row: RawRow| places.iter().map(|at| as_text(row.get(*at)?)).collect::<Option<Vec<String>>>();
            members.extend(taken.rows(rows).filter_map(texts).map(digest));
        }
        Some(HeldMembers { columns, path: &held.path, members })
    }

    /// Whether a row, read with these columns, contains one of them.
    pub fn are_in(&self, row: &[FetchedValue]) -> bool {
        let Some((document, named)) = row.split_last() else { return false };
        let Some(named) = named.iter().map(as_text).collect::<Option<Vec<String>>>() else { return false };
        let object = container::readable(document).and_then(|text| json::path_in(&text, self.path).0);
        let Some(Value::Object(members)) = object else { return false };
        members.into_iter().any(|(key, value)| {
            let value = if let Value::String(text) = value { text } else { value.to_string() };
            self.members.contains(&digest(named.iter().cloned().chain([key, value]).collect()))
        })
    }
}

fn digest(texts: Vec<String>) -> [u64; 2] {
    row_digest(&texts.into_iter().map(FetchedValue::Text).collect::<Vec<_>>())
}
