//! Keys that contain the person's id, and references to a key that is renamed.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::column_words::place_of;
use super::effects::{KeptRow, KeptRows, NewValue};
use super::graph::Graph;
use super::hit::{ByteFind, Hit};
use super::key_parts::{PersonKeyPart, parts, renamed};
use super::mention::{self, MentionRefusals, Mentions, OUTSIDE};
use super::search::{FoundPlaces, PersonSearch};
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::layout::erase::EraseAction;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::shape::Comparison;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Columns that refer to those of another table, by a foreign key or by the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    from: TableName,
    columns: Vec<String>,
    to: TableName,
    to_columns: Vec<String>,
    when: Option<String>,
    /// The database enforces the reference.
    is_enforced: bool,
}

/// All references to a column of another row.
pub fn references(graph: &Graph) -> Vec<KeyReference> {
    let foreign = graph.relations.foreign.iter().map(|f| KeyReference {
        from: f.from.clone(),
        columns: f.columns.clone(),
        to: f.to.clone(),
        to_columns: f.to_columns.clone(),
        when: None,
        is_enforced: true,
    });
    let mut all: Vec<KeyReference> = foreign.collect();
    for rule in graph.rules.iter().filter(|r| r.inside.is_whole() && r.action != EraseAction::Remove) {
        let Some(of) = rule.of.as_ref().map(TableName::of) else { continue };
        let Some(to) = rule.to.clone().or_else(|| graph.relations.keys.get(&of)?.first().cloned()) else { continue };
        let reference = KeyReference {
            from: TableName::of(&rule.table),
            columns: rule.naming_columns(),
            to: of,
            to_columns: std::iter::once(to).chain(rule.also.iter().map(|(_, to)| to.clone())).collect(),
            // A condition about the person selects rows to delete; it does not limit what they refer to.
            when: rule.when.clone().filter(|when| !when.contains("$subject")),
            is_enforced: false,
        };
        // A reference for some rows says nothing about the others.
        let same = |other: &KeyReference| {
            (&other.from, &other.columns, &other.to) == (&reference.from, &reference.columns, &reference.to)
                && (other.when.is_none() || other.when == reference.when)
        };
        // If two columns name each other, the first in the layout is the key.
        let turned = |other: &KeyReference| {
            let mut pairs = other.columns.iter().zip(&other.to_columns);
            (&other.from, &other.to) == (&reference.to, &reference.from)
                && pairs
                    .any(|(own, to)| reference.columns.first() == Some(to) && reference.to_columns.first() == Some(own))
        };
        if !all.iter().any(|other| same(other) || turned(other)) {
            all.push(reference);
        }
    }
    all
}

/// Keys that contain the person's id, found before anything else is read.
#[derive(Debug, Default)]
pub struct Keys {
    /// Their values, by table and column.
    held: HashMap<(TableName, String), HashSet<String>>,
    /// The columns that a column refers to.
    refers: HashMap<(TableName, String), Vec<(TableName, String)>>,
    /// Key columns, whose values are unique.
    pub columns: HashSet<(TableName, String)>,
    /// Values that are renamed wherever they occur, and the parts of them that are.
    pub renamed: HashSet<String>,
    /// Values that rows have once each and no row is named by, such as tags: they are renamed where they are a whole value
    /// or an item of a list.
    pub labels: HashSet<String>,
    /// Values that are not renamed.
    pub kept: HashSet<String>,
}

impl Keys {
    /// Whether a value refers to a key that contains the person's id: it is renamed with the key.
    pub fn follows(&self, table: &TableName, column: &str, value: &str) -> bool {
        let to = self.refers.get(&(table.clone(), column.to_owned()));
        to.into_iter().flatten().any(|place| self.held.get(place).is_some_and(|held| held.contains(value)))
    }
}

/// Reads the keys of every table in the layout, unless an earlier search did. Also returns the keys that contain the
/// person's id.
///
/// # Errors
/// The engine's refusal.
pub async fn find(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    before: Option<&FoundPlaces>,
) -> Result<(Keys, Vec<PersonKeyPart>), ChangeError> {
    let mut keys = Keys { columns: columns(search.graph, &search.about.unique), ..Keys::default() };
    for reference in references(search.graph) {
        for (from, to) in reference.columns.iter().zip(&reference.to_columns) {
            let (place, key) = ((reference.from.clone(), from.clone()), (reference.to.clone(), to.clone()));
            // Rows with the same value are found by it, and others do not refer to them by it.
            if place != key {
                keys.refers.entry(place).or_default().push(key);
            }
        }
    }
    let mut parts_found = before.map(|before| before.keys.clone()).unwrap_or_default();
    for table in search.graph.relations.tables.clone() {
        if before.is_none() && search.about.tables.contains(&table) && !search.about.is_ours(&table) {
            of_table(snapshot, search, &keys.columns, &table, &mut parts_found).await?;
        }
    }
    for part in &parts_found {
        if let FetchedValue::Text(text) = &part.raw {
            let place = (part.table.clone(), part.column.clone());
            keys.held.entry(place).or_default().insert(text.clone());
        }
    }
    let names_rows = naming(search.graph);
    for part in &parts_found {
        let FetchedValue::Text(text) = &part.raw else { continue };
        let follows = keys.follows(&part.table, &part.column, text);
        match decided(search, part, text) {
            Mentions::Delete => false,
            // A common word is the key only if the column refers to it.
            Mentions::Redact if follows || part.hits.iter().any(Hit::is_common) => false,
            Mentions::Redact if search.graph.relations.is_tied(&part.table, &part.column) => {
                keys.kept.insert(text.clone())
            }
            Mentions::Redact if names_rows.contains(&(part.table.clone(), part.column.clone())) => {
                keys.renamed.insert(text.clone())
            }
            Mentions::Redact => keys.labels.insert(text.clone()),
            Mentions::Leave => keys.kept.insert(text.clone()),
        };
    }
    Ok((keys, parts_found))
}

/// Key columns, which include those of unique indexes, and columns that others refer to.
pub fn columns(graph: &Graph, unique: &HashSet<(TableName, String)>) -> HashSet<(TableName, String)> {
    let mut columns = unique.clone();
    columns.extend(naming(graph));
    columns
}

/// Columns by which rows are named: those of the keys by which rows are found, and those that others refer to.
fn naming(graph: &Graph) -> HashSet<(TableName, String)> {
    let keys = graph.relations.keys.iter();
    let keys = keys.flat_map(|(table, by)| by.iter().map(|column| (table.clone(), column.clone())));
    let referred = references(graph).into_iter();
    let referred = referred
        .flat_map(|KeyReference { to, to_columns, .. }| to_columns.into_iter().map(move |column| (to.clone(), column)));
    keys.chain(referred).collect()
}

async fn of_table(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    columns: &HashSet<(TableName, String)>,
    table: &TableName,
    found: &mut Vec<PersonKeyPart>,
) -> Result<(), ChangeError> {
    let by = search.graph.relations.keys.get(table).cloned().unwrap_or_default();
    let shape = snapshot.store.shapes().shape(table).await?;
    let texts: Vec<(String, String)> = shape
        .columns
        .iter()
        .filter(|c| columns.contains(&(table.clone(), c.name.clone())))
        .filter(|c| search.graph.relations.holds_words(table, &c.name))
        .map(|c| (c.name.clone(), c.declared.clone()))
        .collect();
    if texts.is_empty() || by.is_empty() {
        return Ok(());
    }
    let is_agent = |column: &String| search.about.naming.agents.contains(&(table.clone(), column.clone()));
    let agents: HashSet<&String> = texts.iter().map(|(column, _)| column).filter(|column| is_agent(column)).collect();
    let mut read = by.clone();
    read.extend(texts.iter().map(|(column, _)| column.clone()));
    let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
    let look = |row: &RawRow| {
        let (key, values) = row.split_at(by.len());
        let parts = texts.iter().zip(values).filter_map(|((column, declared), raw)| {
            let FetchedValue::Text(text) = raw else { return None };
            let mut hits = parts(text.as_bytes(), search.matcher.find(text));
            let whole = |hit: &Hit| (hit.start, hit.end) == (0, text.len());
            if agents.contains(column) {
                hits.retain(|hit| !whole(hit));
            }
            hits.retain(|hit| hit.what != ByteFind::Row);
            (!hits.is_empty()).then(|| PersonKeyPart {
                table: table.clone(),
                by: by.clone(),
                key: key.to_vec(),
                column: column.clone(),
                raw: raw.clone(),
                hits,
                declared: declared.clone(),
            })
        });
        let parts = parts.collect::<Vec<_>>();
        let stays = || !search.graph.has(table, key) && !search.account.has(table, key);
        (!parts.is_empty() && stays()).then_some(parts)
    };
    snapshot.stream_looked(wanted, look, |_, parts| found.extend(parts)).await?;
    Ok(())
}

/// Returns the decision about a part of a key, as the main search will make it.
fn decided(search: &PersonSearch<'_>, part: &PersonKeyPart, text: &str) -> Mentions {
    let place = format!("{}.{}", part.table.title(), part.column);
    let id = mention::id(&part.table, &part.by, &part.key, &part.column, &part.raw);
    let about = place_of(&part.table, &part.column, &search.about.naming);
    let asked = search.decisions.of(&id, &place, search.matcher.key_certainty(text, &part.column, about, &part.hits));
    let redact = renamed(&part.declared, &part.raw, text.as_bytes(), &part.hits, search.handles).err();
    let outside = !search.about.tables.contains(&part.table);
    let refusals = if outside { MentionRefusals::both(OUTSIDE) } else { MentionRefusals { redact, delete: None } };
    if refusals.of(asked).is_some() { Mentions::Leave } else { asked }
}

/// Rows to delete that refer to renamed keys: until they are deleted, a foreign key applies to them too.
#[derive(Debug)]
pub struct GoingReferences {
    /// Rows to rename with the key.
    pub rows: KeptRows,
    /// Tables whose rows refer by their own key, which also identifies them: they are deleted first.
    pub first: BTreeSet<TableName>,
}

/// Renames all references to renamed keys, over every hop.
///
/// # Errors
/// The engine's refusal.
pub async fn follow(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    updates: &mut KeptRows,
    going: &mut GoingReferences,
) -> Result<(), ChangeError> {
    let references = references(graph);
    let mut work: BTreeSet<(TableName, String)> = updates.renamed().map(|(place, _)| place.clone()).collect();
    while !work.is_empty() {
        let mut next = BTreeSet::new();
        for reference in &references {
            let rows: Vec<(TableName, String)> =
                work.iter().filter(|(table, _)| *table == reference.to).cloned().collect();
            if !rows.is_empty() {
                next.extend(of_reference(snapshot, graph, reference, &rows, (updates, going)).await?);
            }
        }
        work = next;
    }
    Ok(())
}

/// Renames one kind of reference. Returns the rows that were renamed by it.
async fn of_reference(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    reference: &KeyReference,
    rows: &[(TableName, String)],
    (updates, going): (&mut KeptRows, &mut GoingReferences),
) -> Result<Vec<(TableName, String)>, ChangeError> {
    let keys_of = |table: &TableName| graph.relations.keys.get(table).cloned().unwrap_or_default();
    let (parent_key, own_key) = (keys_of(&reference.to), keys_of(&reference.from));
    if parent_key.is_empty() || own_key.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<Vec<FetchedValue>> =
        rows.iter().filter_map(|place| updates.rows.get(place).map(|(key, _)| key.clone())).collect();
    let mut read = parent_key.clone();
    read.extend(reference.to_columns.iter().cloned());
    let wanted = WantedRows { table: &reference.to, columns: &read, when: None, subject: &[] };
    // Current values of the referenced columns, and their new values.
    let mut named: HashMap<String, Vec<Option<NewValue>>> = HashMap::new();
    let mut tuples = Vec::new();
    for row in snapshot.select_keys(wanted, &parent_key, &keys).await? {
        let (key, tuple) = row.split_at(parent_key.len());
        let new = |column: &String| updates.get(&reference.to, key, column).filter(|new| new.is_around()).cloned();
        let news: Vec<Option<NewValue>> = reference.to_columns.iter().map(new).collect();
        if news.iter().any(Option::is_some) {
            named.insert(folded(graph, reference, tuple), news);
            tuples.push(tuple.to_vec());
        }
    }
    if tuples.is_empty() {
        return Ok(Vec::new());
    }
    let mut read = own_key.clone();
    read.extend(reference.columns.iter().cloned());
    let wanted = WantedRows { table: &reference.from, columns: &read, when: reference.when.as_deref(), subject: &[] };
    // SQLite checks these foreign keys at the end of the transaction.
    let is_held = reference.is_enforced && snapshot.store.engine() == Engine::Postgres;
    let mut reached = given(snapshot, &own_key, graph, reference, &named, updates).await?;
    let mut rows = Vec::new();
    let compared = compared(graph, reference);
    snapshot.each_compared(wanted, (&reference.columns, &compared), &tuples, |row| rows.push(row)).await?;
    for row in rows {
        let (key, tuple) = row.split_at(own_key.len());
        let goes = graph.has(&reference.from, key);
        let place = (reference.from.clone(), spelled(key));
        if goes && !is_held || updates.rows.get(&place).is_some_and(|(_, row)| moves(reference, row)) {
            continue;
        }
        let Some(news) = named.get(&folded(graph, reference, tuple)) else { continue };
        // A row to delete is found by its key, so the key stays.
        let is_key = reference.columns.iter().zip(news).any(|(column, new)| new.is_some() && own_key.contains(column));
        if goes && is_key {
            going.first.insert(reference.from.clone());
            continue;
        }
        for ((column, old), new) in reference.columns.iter().zip(tuple).zip(news) {
            let Some(new) = new else { continue };
            let why = follows_key(reference, column);
            if goes {
                going.rows.set(&reference.from, key, column, old, new.clone(), &why);
            } else if updates.get(&reference.from, key, column).is_none() {
                updates.set(&reference.from, key, column, old, new.clone(), &why);
                reached.push(place.clone());
            }
        }
    }
    Ok(reached)
}

/// Finds the rows of a table, by their spelled keys, that others refer to, or may refer to if the referring table
/// cannot be read. Returns each with the referring table.
///
/// # Errors
/// The engine's refusal.
pub async fn referred(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    table: &TableName,
    keys: &[Vec<FetchedValue>],
) -> Result<HashMap<String, TableName>, ChangeError> {
    let by = graph.relations.keys.get(table).cloned().unwrap_or_default();
    let mut found = HashMap::new();
    for reference in references(graph).iter().filter(|reference| reference.to == *table) {
        if graph.relations.unread.iter().any(|(unread, _)| *unread == reference.from) {
            found.extend(keys.iter().map(|key| (spelled(key), reference.from.clone())));
            continue;
        }
        let mut read = by.clone();
        read.extend(reference.to_columns.iter().cloned());
        let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
        let mut named: HashMap<String, Vec<String>> = HashMap::new();
        let mut tuples = Vec::new();
        for row in snapshot.select_keys(wanted, &by, keys).await? {
            let (key, tuple) = row.split_at(by.len());
            named.entry(folded(graph, reference, tuple)).or_default().push(spelled(key));
            tuples.push(tuple.to_vec());
        }
        let (columns, when) = (&reference.columns, reference.when.as_deref());
        let wanted = WantedRows { table: &reference.from, columns, when, subject: &[] };
        let take = |row: RawRow| {
            let keys = named.get(&folded(graph, reference, &row)).into_iter().flatten();
            found.extend(keys.map(|key| (key.clone(), reference.from.clone())));
        };
        snapshot.each_compared(wanted, (columns, &compared(graph, reference)), &tuples, take).await?;
    }
    Ok(found)
}

fn follows_key(reference: &KeyReference, column: &str) -> String {
    format!("{}.{column} follows the key that it refers to", reference.from.title())
}

/// Whether a row will refer to another row than before.
fn moves(reference: &KeyReference, row: &KeptRow) -> bool {
    reference.columns.iter().any(|column| row.get(column).is_some_and(|new| !new.is_around()))
}

/// Renames the new references of rows if they lead to a renamed key. Returns these rows.
async fn given(
    snapshot: &mut Snapshot<'_>,
    own_key: &[String],
    graph: &Graph,
    reference: &KeyReference,
    named: &HashMap<String, Vec<Option<NewValue>>>,
    updates: &mut KeptRows,
) -> Result<Vec<(TableName, String)>, ChangeError> {
    let moved = updates.rows.iter().filter(|((table, _), (_, row))| *table == reference.from && moves(reference, row));
    let keys: Vec<Vec<FetchedValue>> = moved.map(|(_, (key, _))| key.clone()).collect();
    let mut read = own_key.to_vec();
    read.extend(reference.columns.iter().cloned());
    // With several columns, the unchanged ones count too.
    let wanted = WantedRows { table: &reference.from, columns: &read, when: None, subject: &[] };
    let mut renamed = Vec::new();
    for row in snapshot.select_keys(wanted, own_key, &keys).await? {
        let (key, old) = row.split_at(own_key.len());
        let value = |(column, old): (&String, &FetchedValue)| match updates.get(&reference.from, key, column) {
            Some(new) => new.known(),
            None => Some(old.clone()),
        };
        let tuple: Option<Vec<FetchedValue>> = reference.columns.iter().zip(old).map(value).collect();
        let Some(tuple) = tuple.filter(|tuple| !tuple.contains(&FetchedValue::Null)) else { continue };
        let Some(news) = named.get(&folded(graph, reference, &tuple)) else { continue };
        for ((column, old), new) in reference.columns.iter().zip(old).zip(news) {
            let Some(new) = new else { continue };
            let why = follows_key(reference, column);
            if updates.get(&reference.from, key, column).is_some() {
                updates.replace(&reference.from, key, column, new.clone(), &why);
            } else {
                updates.set(&reference.from, key, column, old, new.clone(), &why);
            }
        }
        renamed.push((reference.from.clone(), spelled(key)));
    }
    Ok(renamed)
}

fn compared(graph: &Graph, reference: &KeyReference) -> Vec<Option<Comparison>> {
    let pairs = reference.columns.iter().zip(&reference.to_columns);
    pairs.map(|(own, to)| graph.relations.comparison((&reference.from, own), (&reference.to, to))).collect()
}

/// Values of the referenced columns as one string, equal for values that these columns treat as equal.
fn folded(graph: &Graph, reference: &KeyReference, values: &[FetchedValue]) -> String {
    let fold = |(column, value): (&String, &FetchedValue)| match value {
        FetchedValue::Text(text) => FetchedValue::Text(graph.relations.folded(&reference.to, column, text)),
        value => value.clone(),
    };
    spelled(&reference.to_columns.iter().zip(values).map(fold).collect::<Vec<_>>())
}

/// A key as one string, for comparison.
pub fn spelled(values: &[FetchedValue]) -> String {
    serde_json::to_string(values).unwrap_or_default()
}
