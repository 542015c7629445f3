//! Effects of an erasure on rows that stay: columns emptied, pseudonyms, children given to the next parent, policies
//! marked.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::graph::{Graph, as_text, by_path_rows, name, naming, stands_at};
use super::matcher::Matcher;
use super::rarity;
use super::subject::PersonHandle;
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::mention::{Certainty, MentionText};
use crate::store::container::{Leaf, Rewritten};
use crate::store::fetched::FetchedValue;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// New value of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NewValue {
    /// This value.
    Is(FetchedValue),
    /// The pseudonym of this run.
    Pseudonym,
    /// These pieces, with the pseudonym of this run between them.
    Around(Vec<String>),
}

impl NewValue {
    /// Whether the pseudonym stands within it.
    #[must_use]
    pub fn is_around(&self) -> bool {
        matches!(self, NewValue::Around(_))
    }
}

/// A row that stays, with what changes in it.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct KeptRow {
    /// Columns and their new values.
    pub set: BTreeMap<String, NewValue>,
    /// Digest of what stood in each column, so that nothing written meanwhile is lost.
    pub was: BTreeMap<String, String>,
    /// Reasons for the changes, one short sentence each.
    pub why: Vec<String>,
}

/// Rows that stay and change, by table and key.
#[derive(Debug, Clone, Default)]
pub struct KeptRows {
    /// Rows by table and spelled key.
    pub rows: BTreeMap<(TableName, String), (Vec<FetchedValue>, KeptRow)>,
}

impl KeptRow {
    /// Whether a key gets another name, or something that refers to it.
    #[must_use]
    pub fn renames(&self) -> bool {
        self.set.values().any(NewValue::is_around)
    }
}

impl KeptRows {
    /// Rows in which a key, or what refers to it, gets another name.
    pub fn renamed(&self) -> impl Iterator<Item = (&(TableName, String), &KeptRow)> {
        self.rows.iter().map(|(place, (_, update))| (place, update)).filter(|(_, update)| update.renames())
    }

    /// Notes a new value of a column; the first one noted holds.
    pub fn set(
        &mut self,
        table: &TableName,
        key: &[FetchedValue],
        column: &str,
        old: &FetchedValue,
        new: NewValue,
        why: &str,
    ) {
        let spelled = serde_json::to_string(key).unwrap_or_default();
        let (_, update) =
            self.rows.entry((table.clone(), spelled)).or_insert_with(|| (key.to_vec(), KeptRow::default()));
        if update.set.contains_key(column) {
            return;
        }
        update.set.insert(column.to_owned(), new);
        update.was.insert(column.to_owned(), digest(old));
        if !update.why.iter().any(|w| w == why) {
            update.why.push(why.to_owned());
        }
    }

    /// Returns the value that a row's column is about to get.
    #[must_use]
    pub fn get(&self, table: &TableName, key: &[FetchedValue], column: &str) -> Option<&NewValue> {
        let spelled = serde_json::to_string(key).unwrap_or_default();
        self.rows.get(&(table.clone(), spelled))?.1.set.get(column)
    }

    /// Forgets what is about rows that go.
    pub fn without(&mut self, graph: &Graph) {
        self.rows.retain(|(table, _), (key, _)| !graph.has(table, key));
    }
}

/// Digest of a stored value, the same for a value as read and as an image of its row holds it.
#[must_use]
pub fn digest(raw: &FetchedValue) -> String {
    let text = match raw {
        FetchedValue::Bytes(bytes) => json!(format!("\\x{}", hex::encode(bytes))).to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Finds what the rules do to rows that stay.
///
/// # Errors
/// The engine's refusal, or a column that cannot be emptied and has no other value.
pub async fn find(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    subject: &[String],
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    for rule in graph.rules.iter().filter(|r| !matches!(r.action, EraseAction::Delete | EraseAction::Remove)) {
        let keys = graph.named_by(rule, subject, 0);
        if !rule.inside.is_whole() {
            let values: Vec<FetchedValue> = keys.into_iter().flatten().collect();
            by_path(snapshot, graph, rule, &values, subject, updates).await?;
        } else if !keys.is_empty() {
            one(snapshot, graph, rule, &keys, subject, updates).await?;
        }
    }
    Ok(())
}

/// Takes the name out of JSON that holds it at a path: the row is somebody else's.
async fn by_path(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    rule: &BoundRule,
    values: &[FetchedValue],
    subject: &[String],
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = name(&rule.table);
    let texts: Vec<String> = values.iter().filter_map(as_text).collect();
    let handles: Vec<PersonHandle> = texts
        .iter()
        .map(|value| PersonHandle {
            kind: "id".to_owned(),
            value: value.clone(),
            source: String::new(),
            unsearched: None,
            common: rarity::by_looks("id", value).map(str::to_owned),
        })
        .collect();
    let matcher = Matcher::new(&handles, [], &[])?;
    let key = graph.relations.keys.get(&table).cloned().unwrap_or_default();
    let mut read = key.clone();
    read.push(rule.column.clone());
    let why = format!("{}.{} loses the name", table.title(), rule.column);
    for row in by_path_rows(snapshot, rule, &read, &texts, subject).await? {
        let (id, values) = row.split_at(key.len());
        let Some(old) = values.first().filter(|_| !graph.has(&table, id)) else { continue };
        let path = rule.inside.path.as_deref().unwrap_or_default();
        let named = |leaf: &Leaf<'_>| {
            texts.iter().any(|text| rule.inside.parts(leaf.text).contains(&text.as_str()))
                && stands_at(&leaf.path(), path)
        };
        if let Rewritten::New(new) = matcher.redacted(old, MentionText::default(), named, Certainty::is_certain) {
            updates.set(&table, id, &rule.column, old, NewValue::Is(new), &why);
        }
    }
    Ok(())
}

async fn one(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    rule: &BoundRule,
    keys: &[Vec<FetchedValue>],
    subject: &[String],
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = name(&rule.table);
    let key = graph.relations.keys.get(&table).cloned().unwrap_or_default();
    let mut read = key.clone();
    read.extend(rule.columns.iter().cloned());
    read.push(rule.column.clone());
    let rows = naming(snapshot, rule, &read, keys, subject).await?;
    let stay = rows.into_iter().filter(|row| !graph.has(&table, &row[..key.len()]));
    let stay: Vec<Vec<FetchedValue>> = stay.collect();
    if stay.is_empty() {
        return Ok(());
    }
    if key.is_empty() {
        return Err(ChangeError::Refused(format!("{} has no primary key that identifies its rows", table.title())));
    }
    let parents =
        if rule.action == EraseAction::Reparent { parents(snapshot, graph, rule).await? } else { HashMap::new() };
    let why = words(rule, &table);
    for row in &stay {
        let id = &row[..key.len()];
        let named = row.last().cloned().unwrap_or(FetchedValue::Null);
        for (column, old) in rule.columns.iter().zip(&row[key.len()..]) {
            let new = match rule.action {
                EraseAction::Pseudonym => NewValue::Pseudonym,
                EraseAction::Reparent => {
                    let parent = parents.get(&spelled(&named)).cloned().unwrap_or(FetchedValue::Null);
                    // Its own parent it cannot be.
                    NewValue::Is(if Some(&parent) == id.first() { FetchedValue::Null } else { parent })
                }
                _ => NewValue::Is(
                    rule.value.as_ref().map_or(FetchedValue::Null, |value| constant(snapshot.store.engine(), value)),
                ),
            };
            let nothing_there = matches!(old, FetchedValue::Null) && new == NewValue::Is(FetchedValue::Null);
            if nothing_there || NewValue::Is(old.clone()) == new {
                continue;
            }
            if new == NewValue::Is(FetchedValue::Null) && is_required(snapshot, &table, column) {
                let empty = NewValue::Is(FetchedValue::Text(String::new()));
                updates.set(&table, id, column, old, empty, &why);
                continue;
            }
            updates.set(&table, id, column, old, new, &why);
        }
    }
    Ok(())
}

/// Whether a column cannot be emptied: the database forbids it, or the layout.
#[must_use]
pub fn is_required(snapshot: &Snapshot<'_>, table: &TableName, column: &str) -> bool {
    let never = &snapshot.store.recognised().erasure.never_empty;
    if never.iter().any(|(of, kept)| name(of) == *table && kept == column) {
        return true;
    }
    let mut tables = snapshot.store.catalog().tables.iter();
    let found = tables.find(|t| t.schema == table.schema && t.name == table.name);
    found.and_then(|t| t.column(column)).is_some_and(|c| c.not_null)
}

fn words(rule: &BoundRule, table: &TableName) -> String {
    let columns = rule.columns.join(", ");
    let title = table.title();
    match rule.action {
        EraseAction::Pseudonym => format!("{title}.{columns} gets a pseudonym"),
        EraseAction::Reparent => format!("{title}.{columns} follows the parent of the row that goes"),
        EraseAction::Stale => {
            format!("{title}: learned from rows that go, marked as out of date; `policy train` trains it again")
        }
        _ => format!("{title}.{columns} is emptied"),
    }
}

fn spelled(raw: &FetchedValue) -> String {
    serde_json::to_string(raw).unwrap_or_default()
}

/// For each row of a chain that goes, the nearest one above it that stays and is there.
async fn parents(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    rule: &BoundRule,
) -> Result<HashMap<String, FetchedValue>, ChangeError> {
    let table = name(&rule.table);
    let Some(taken) = graph.taken(&table) else { return Ok(HashMap::new()) };
    let Some(at) = taken.columns.iter().position(|c| *c == rule.column) else { return Ok(HashMap::new()) };
    let to = rule.to.as_ref().or(taken.key.first()).cloned().unwrap_or_default();
    let Some(own) = taken.columns.iter().position(|c| *c == to) else { return Ok(HashMap::new()) };
    let step: HashMap<String, FetchedValue> =
        taken.rows.iter().filter_map(|row| Some((spelled(row.get(own)?), row.get(at)?.clone()))).collect();
    let mut found: HashMap<String, FetchedValue> = HashMap::new();
    for start in step.keys() {
        let (mut at, mut seen) = (start.clone(), HashSet::new());
        let end = loop {
            match step.get(&at) {
                None | Some(FetchedValue::Null) => break FetchedValue::Null,
                Some(next) if step.contains_key(&spelled(next)) && seen.insert(spelled(next)) => at = spelled(next),
                // Round in a circle of rows that all go.
                Some(next) if step.contains_key(&spelled(next)) => break FetchedValue::Null,
                Some(next) => break next.clone(),
            }
        };
        found.insert(start.clone(), end);
    }
    let mut ends: Vec<FetchedValue> =
        found.values().filter(|raw| !matches!(raw, FetchedValue::Null)).cloned().collect();
    ends.dedup();
    let columns = [to.clone()];
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    let there: HashSet<String> =
        snapshot.select(wanted, &to, &ends).await?.iter().filter_map(|row| row.first().map(spelled)).collect();
    found.values_mut().filter(|raw| !there.contains(&spelled(raw))).for_each(|raw| *raw = FetchedValue::Null);
    Ok(found)
}

/// A layout's constant as it is stored.
#[must_use]
pub fn constant(engine: Engine, value: &Value) -> FetchedValue {
    match (engine, value) {
        (_, Value::Null) => FetchedValue::Null,
        (_, Value::String(text)) => FetchedValue::Text(text.clone()),
        (Engine::Sqlite, Value::Bool(b)) => FetchedValue::Integer(i64::from(*b)),
        (Engine::Sqlite, Value::Number(n)) => {
            n.as_i64().map_or(FetchedValue::Real(n.as_f64().unwrap_or_default()), FetchedValue::Integer)
        }
        (_, other) => FetchedValue::Text(other.to_string()),
    }
}
