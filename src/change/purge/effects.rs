//! Effects of an erasure on rows that stay: columns emptied, pseudonyms, children given to the next parent, policies
//! marked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::graph::{Graph, by_path_rows, naming};
use super::matcher::Matcher;
use super::rarity;
use super::row_ids::RowIds;
use super::subject::PersonHandle;
use super::taken::TakenRows;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction};
use crate::memory::mention::{Certainty, MentionText};
use crate::memory::packed::pages::PageStore;
use crate::store::container::{Leaf, Rewritten};
use crate::store::encode::constant;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::row_list::{RowList, row_digest};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{StoredRows, TableName};
use crate::store::within::stands_at;

/// Bytes from which a value counts as long.
const LONG: usize = 4 << 10;

/// New value of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NewValue {
    /// This value.
    Is(FetchedValue),
    /// A long value, stored in a scratch file if it does not fit in memory.
    #[serde(rename = "is", serialize_with = "long_value")]
    Long(LongValue),
    /// The pseudonym of this run.
    Pseudonym,
    /// These pieces, with the pseudonym of this run between each two of them.
    Around(Vec<String>),
}

impl NewValue {
    /// Moves a long value to a scratch file.
    fn kept(self, pages: &PageStore) -> Self {
        match self {
            NewValue::Is(value) if value.size() > LONG => NewValue::Long(LongValue::new(value, pages)),
            new => new,
        }
    }

    /// The value, unless it contains the pseudonym.
    pub fn known(&self) -> Option<FetchedValue> {
        match self {
            NewValue::Is(value) => Some(value.clone()),
            NewValue::Long(value) => value.read().ok(),
            NewValue::Pseudonym | NewValue::Around(_) => None,
        }
    }

    /// Whether the value contains the pseudonym among other text.
    pub fn is_around(&self) -> bool {
        matches!(self, NewValue::Around(_))
    }

    /// The value with a given pseudonym filled in.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] for a long value that cannot be read from the scratch file.
    pub fn value(&self, pseudonym: &str) -> Result<FetchedValue, ChangeError> {
        Ok(match self {
            NewValue::Is(value) => value.clone(),
            NewValue::Long(value) => value.read()?,
            NewValue::Pseudonym => FetchedValue::Text(pseudonym.to_owned()),
            NewValue::Around(pieces) => FetchedValue::Text(pieces.join(pseudonym)),
        })
    }
}

/// A value stored as a list of one row.
#[derive(Debug, Clone)]
pub struct LongValue(RowList);

impl LongValue {
    fn new(value: FetchedValue, pages: &PageStore) -> Self {
        let mut list = RowList::new(pages);
        list.push(&[value]);
        list.close();
        LongValue(list)
    }

    fn read(&self) -> Result<FetchedValue, ChangeError> {
        let value = self.0.iter().next().and_then(|row| row.into_iter().next());
        value.ok_or_else(|| ChangeError::Failed("a new value cannot be read from the scratch file".to_owned()))
    }
}

impl PartialEq for LongValue {
    fn eq(&self, other: &Self) -> bool {
        self.read().is_ok_and(|value| other.read().is_ok_and(|same| value == same))
    }
}

fn long_value<S: Serializer>(value: &LongValue, serializer: S) -> Result<S::Ok, S::Error> {
    // A plan with an unreadable value does not finish.
    value.read().unwrap_or(FetchedValue::Null).serialize(serializer)
}

/// A row that stays, with what changes in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeptRow {
    /// Changed columns.
    pub set: Vec<ColumnUpdate>,
    /// Reasons for the changes, one short sentence each.
    pub why: Vec<Arc<str>>,
    /// The row loses words of its own, not only the ids of deleted rows.
    pub loses: bool,
    /// Rows next to it deleted by the change: vectors of its earlier text.
    pub along: Vec<StoredRows>,
}

/// A change of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnUpdate {
    /// Column.
    pub column: Arc<str>,
    /// Digest of the old value, so that a concurrent write is not lost.
    pub was: ValueDigest,
    /// New value.
    pub new: NewValue,
}

/// SHA-256 of a stored value.
pub type ValueDigest = [u8; 32];

impl Serialize for KeptRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let set: BTreeMap<&str, &NewValue> = self.set.iter().map(|update| (&*update.column, &update.new)).collect();
        let was: BTreeMap<&str, String> =
            self.set.iter().map(|update| (&*update.column, hex::encode(update.was))).collect();
        let why: Vec<&str> = self.why.iter().map(|why| &**why).collect();
        let mut row = serializer.serialize_struct("KeptRow", 3 + usize::from(!self.along.is_empty()))?;
        row.serialize_field("set", &set)?;
        row.serialize_field("was", &was)?;
        row.serialize_field("why", &why)?;
        if !self.along.is_empty() {
            row.serialize_field("along", &self.along)?;
        }
        row.end()
    }
}

/// Rows that stay and change, by table and key.
#[derive(Debug, Clone)]
pub struct KeptRows {
    /// Rows by table and spelled key.
    pub rows: BTreeMap<(TableName, String), (Vec<FetchedValue>, KeptRow)>,
    /// Names of columns, and reasons, shared between rows.
    words: HashSet<Arc<str>>,
    /// Room for long values.
    pages: PageStore,
    /// Number of rows after which no more are recorded.
    most: usize,
}

impl KeptRow {
    /// Whether a key, or a reference to one, is renamed.
    pub fn renames(&self) -> bool {
        self.set.iter().any(|update| update.new.is_around())
    }

    /// Returns the value that a column gets.
    pub fn get(&self, column: &str) -> Option<&NewValue> {
        self.set.iter().find(|update| *update.column == *column).map(|update| &update.new)
    }
}

impl KeptRows {
    /// Creates an empty collection.
    pub(super) fn new(pages: &PageStore) -> Self {
        KeptRows { rows: BTreeMap::new(), words: HashSet::new(), pages: pages.clone(), most: usize::MAX }
    }

    /// Sets the number of rows after which no more are recorded.
    pub(super) fn within(self, most: usize) -> Self {
        KeptRows { most, ..self }
    }

    /// Whether there are more changed rows than may be recorded.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() > self.most
    }

    /// Rows in which a key, or a reference to one, is renamed.
    pub fn renamed(&self) -> impl Iterator<Item = (&(TableName, String), &KeptRow)> {
        self.rows.iter().map(|(place, (_, update))| (place, update)).filter(|(_, update)| update.renames())
    }

    /// Records the new value of a column, unless one is recorded already.
    pub fn set(
        &mut self,
        table: &TableName,
        key: &[FetchedValue],
        column: &str,
        old: &FetchedValue,
        new: NewValue,
        why: &str,
    ) {
        if self.is_full() {
            return;
        }
        let spelled = spelled(key);
        let (column, why) = (self.word(column), self.word(why));
        let (_, update) =
            self.rows.entry((table.clone(), spelled)).or_insert_with(|| (key.to_vec(), KeptRow::default()));
        if update.get(&column).is_some() {
            return;
        }
        let new = new.kept(&self.pages);
        // Most rows change in one column for one reason, and there may be very many rows.
        update.set.reserve_exact(1);
        update.set.push(ColumnUpdate { column, was: digest(old), new });
        if !update.why.contains(&why) {
            update.why.reserve_exact(1);
            update.why.push(why);
        }
    }

    /// Replaces the recorded value of a column.
    pub fn replace(&mut self, table: &TableName, key: &[FetchedValue], column: &str, new: NewValue, why: &str) {
        let why = self.word(why);
        let new = new.kept(&self.pages);
        let Some((_, row)) = self.rows.get_mut(&(table.clone(), spelled(key))) else { return };
        if let Some(update) = row.set.iter_mut().find(|update| *update.column == *column) {
            update.new = new;
            if !row.why.contains(&why) {
                row.why.push(why);
            }
        }
    }

    /// Records rows to delete when a row changes.
    pub fn go_along(&mut self, table: &TableName, key: &[FetchedValue], rows: StoredRows, why: &str) {
        let why = self.word(why);
        let Some((_, row)) = self.rows.get_mut(&(table.clone(), spelled(key))) else { return };
        if !row.along.contains(&rows) {
            row.along.push(rows);
            if !row.why.contains(&why) {
                row.why.push(why);
            }
        }
    }

    /// Records that a row loses words of its own.
    pub fn lose(&mut self, table: &TableName, key: &[FetchedValue]) {
        if let Some((_, row)) = self.rows.get_mut(&(table.clone(), spelled(key))) {
            row.loses = true;
        }
    }

    /// The rows that lose words of their own.
    pub fn losing(&self) -> Vec<(TableName, Vec<FetchedValue>)> {
        let losing = self.rows.iter().filter(|(_, (_, row))| row.loses);
        losing.map(|((table, _), (key, _))| (table.clone(), key.clone())).collect()
    }

    /// Whether a row loses words of its own.
    pub fn loses(&self, table: &TableName, key: &[FetchedValue]) -> bool {
        self.rows.get(&(table.clone(), spelled(key))).is_some_and(|(_, row)| row.loses)
    }

    fn word(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        self.words.insert(word.clone());
        word
    }

    /// Returns the value that a row's column is about to get.
    pub fn get(&self, table: &TableName, key: &[FetchedValue], column: &str) -> Option<&NewValue> {
        let spelled = spelled(key);
        self.rows.get(&(table.clone(), spelled))?.1.get(column)
    }

    /// Drops the rows that are deleted.
    pub fn without(&mut self, graph: &Graph) {
        self.rows.retain(|(table, _), (key, _)| !graph.has(table, key));
    }
}

/// Digest of a stored value, the same whether it was read alone or within the image of its row.
pub fn digest(raw: &FetchedValue) -> ValueDigest {
    let text = match raw {
        FetchedValue::Bytes(bytes) => json!(format!("\\x{}", hex::encode(bytes))).to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    Sha256::digest(text.as_bytes()).into()
}

/// Finds the changes that the rules require in rows that stay.
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
        if !rule.inside.is_whole() {
            by_path(snapshot, graph, rule, subject, updates).await?;
            continue;
        }
        let mut chain = None;
        for part in graph.parts(rule, 0) {
            let keys = graph.named_by(rule, subject, part);
            if !keys.is_empty() && !updates.is_full() {
                one(snapshot, (graph, &mut chain), rule, &keys, subject, updates).await?;
            }
        }
    }
    graph.check()
}

/// Removes the person's name from JSON that contains it at a path: the row is someone else's.
async fn by_path(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    rule: &BoundRule,
    subject: &[String],
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = TableName::of(&rule.table);
    let texts = graph.texts_by(rule, subject, 0);
    if texts.is_empty() || is_common(rule, subject) {
        return Ok(());
    }
    let handle = |value: &str| PersonHandle {
        kind: "id".into(),
        value: value.to_owned(),
        source: "".into(),
        unsearched: None,
        common: rarity::by_looks("id", value).map(str::to_owned),
    };
    // The id of a deleted row is compared exactly, and only at the path.
    let handles: Vec<PersonHandle> = match &rule.of {
        None => texts.iter().map(|value| handle(&value)).collect(),
        Some(_) => Vec::new(),
    };
    let matcher = Matcher::new(&handles, RowIds::default(), &[])?;
    let key = graph.relations.keys.get(&table).cloned().unwrap_or_default();
    let mut read = key.clone();
    read.push(rule.column.clone());
    let why = format!("{}.{} loses the name", table.title(), rule.column);
    let path = rule.inside.path.as_deref().unwrap_or_default();
    let named = |leaf: &Leaf<'_>| {
        rule.inside.parts(leaf.text).iter().any(|part| texts.contains(part)) && stands_at(&leaf.path(), path)
    };
    let take = |row: RawRow| {
        let (id, values) = row.split_at(key.len());
        let Some(old) = values.first().filter(|_| !graph.has(&table, id)) else { return };
        if let Rewritten::New(new) = matcher.redacted(old, MentionText::default(), named, Certainty::is_certain) {
            updates.set(&table, id, &rule.column, old, NewValue::Is(new), &why);
        }
    };
    by_path_rows(snapshot, rule, &read, &texts, subject, take).await
}

async fn one<'g>(
    snapshot: &mut Snapshot<'_>,
    (graph, chain): (&'g Graph, &mut Option<GoingChain<'g>>),
    rule: &BoundRule,
    keys: &[Vec<FetchedValue>],
    subject: &[String],
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = TableName::of(&rule.table);
    let key = graph.relations.keys.get(&table).cloned().unwrap_or_default();
    let mut read = key.clone();
    read.extend(rule.columns.iter().cloned());
    read.push(rule.column.clone());
    let mut stay: Vec<RawRow> = Vec::new();
    naming(snapshot, (rule, &graph.compared(rule)), &read, keys, subject, |row| {
        if stay.len() <= updates.most && !graph.has(&table, &row[..key.len()]) {
            stay.push(row);
        }
    })
    .await?;
    if stay.is_empty() {
        return Ok(());
    }
    if key.is_empty() {
        return Err(ChangeError::Refused(format!("{} has no primary key that identifies its rows", table.title())));
    }
    if rule.action == EraseAction::Reparent && chain.is_none() {
        *chain = GoingChain::of(graph, rule);
    }
    let parents = match chain {
        Some(chain) => parents(snapshot, chain, rule, stay.iter().filter_map(|row| row.last())).await?,
        None => HashMap::new(),
    };
    let why = words(rule, &table);
    for row in &stay {
        let id = &row[..key.len()];
        let named = row.last().cloned().unwrap_or(FetchedValue::Null);
        for (column, old) in rule.columns.iter().zip(&row[key.len()..]) {
            let new = match rule.action {
                EraseAction::Pseudonym => NewValue::Pseudonym,
                EraseAction::Reparent => {
                    let parent = parents.get(&spelled(&named)).cloned().unwrap_or(FetchedValue::Null);
                    // A row cannot be its own parent.
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
            } else {
                updates.set(&table, id, column, old, new, &why);
            }
            if empties_content(rule) {
                updates.lose(&table, id);
            }
        }
    }
    Ok(())
}

/// Whether a rule looks for the person at any part of a value and all their ids are common words, which do not mean the
/// person in someone else's text.
pub fn is_common(rule: &BoundRule, subject: &[String]) -> bool {
    let is_word = |id: &String| rarity::by_looks("id", id).is_some();
    rule.of.is_none() && rule.inside.is_any_part() && subject.iter().all(is_word)
}

/// Whether a rule empties more than the columns that name deleted rows.
pub fn empties_content(rule: &BoundRule) -> bool {
    let naming = rule.naming_columns();
    rule.action == EraseAction::Empty && rule.columns.iter().any(|column| !naming.contains(column))
}

/// Whether the database or the layout forbids to empty a column.
pub fn is_required(snapshot: &Snapshot<'_>, table: &TableName, column: &str) -> bool {
    let never = &snapshot.store.recognised().erasure.never_empty;
    if never.iter().any(|(of, kept)| TableName::of(of) == *table && kept == column) {
        return true;
    }
    let found = snapshot.store.catalog().exactly(&table.schema, &table.name);
    found.and_then(|t| t.column(column)).is_some_and(|c| c.not_null)
}

fn words(rule: &BoundRule, table: &TableName) -> String {
    let columns = rule.columns.join(", ");
    let title = table.title();
    match rule.action {
        EraseAction::Pseudonym => format!("{title}.{columns} gets a pseudonym"),
        EraseAction::Reparent => format!("{title}.{columns} moves to the parent of the deleted row"),
        EraseAction::Stale => {
            format!("{title}: learned from deleted rows, marked as out of date; `policy train` trains it again")
        }
        _ => match rule.value.as_ref().and_then(Value::as_str).filter(|value| !value.is_empty()) {
            Some(value) => format!("{title}.{columns} becomes `{value}`"),
            None => format!("{title}.{columns} is emptied"),
        },
    }
}

/// A value, or the values of a key, as text that identifies it.
fn spelled(raw: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(raw).unwrap_or_default()
}

/// The deleted rows of a chain, to find the nearest remaining row above each.
struct GoingChain<'g> {
    graph: &'g Graph,
    table: TableName,
    taken: &'g TakenRows,
    /// The index of the column that children name, and of the one that names the parent.
    own: usize,
    above: usize,
    /// Row numbers by the hash of the value that children name.
    numbers: HashMap<[u64; 2], usize>,
    /// Results of earlier walks.
    ends: HashMap<usize, FetchedValue>,
}

impl<'g> GoingChain<'g> {
    fn of(graph: &'g Graph, rule: &BoundRule) -> Option<Self> {
        let table = TableName::of(&rule.table);
        let taken = graph.taken(&table)?;
        let (own, above) = (taken.place(rule.to.as_ref().or(taken.key.first())?)?, taken.place(&rule.column)?);
        let mut chain = GoingChain { graph, table, taken, own, above, numbers: HashMap::new(), ends: HashMap::new() };
        let number = |(number, row): (usize, RawRow)| Some((chain.digest(row.get(own)?)?, number));
        chain.numbers = taken.rows(0..taken.len()).enumerate().filter_map(number).collect();
        Some(chain)
    }

    /// The hash of a value that names a row; `None` for NULL.
    fn digest(&self, value: &FetchedValue) -> Option<[u64; 2]> {
        let value = match value {
            FetchedValue::Null => return None,
            FetchedValue::Text(text) => {
                FetchedValue::Text(self.graph.relations.folded(&self.table, &self.taken.columns[self.own], text))
            }
            value => value.clone(),
        };
        Some(row_digest(&[value]))
    }

    /// The nearest value above a deleted row that is not deleted itself; NULL if there is none. `None` if `start` is
    /// not a deleted row.
    fn end(&mut self, start: &FetchedValue) -> Option<FetchedValue> {
        let number = |of: &FetchedValue| self.numbers.get(&self.digest(of)?).copied();
        let (mut last, mut walked) = (number(start)?, HashSet::new());
        let end = loop {
            if let Some(end) = self.ends.get(&last) {
                break end.clone();
            }
            if !walked.insert(last) {
                // The chain is a circle of deleted rows.
                break FetchedValue::Null;
            }
            let above = self.taken.rows(last..last + 1).next().and_then(|row| row.get(self.above).cloned());
            let above = above.unwrap_or(FetchedValue::Null);
            match number(&above) {
                Some(next) => last = next,
                None => break above,
            }
        };
        walked.into_iter().for_each(|number| drop(self.ends.insert(number, end.clone())));
        Some(end)
    }
}

/// Finds, for each of some deleted rows of a chain, the nearest existing row above it that stays.
async fn parents<'r>(
    snapshot: &mut Snapshot<'_>,
    chain: &mut GoingChain<'_>,
    rule: &BoundRule,
    named: impl Iterator<Item = &'r FetchedValue>,
) -> Result<HashMap<String, FetchedValue>, ChangeError> {
    let mut found: HashMap<String, FetchedValue> = HashMap::new();
    for start in named {
        found.extend(chain.end(start).map(|end| (spelled(start), end)));
    }
    let ends: Vec<FetchedValue> = found.values().filter(|raw| !matches!(raw, FetchedValue::Null)).cloned().collect();
    let (table, columns) = (TableName::of(&rule.table), [chain.taken.columns[chain.own].clone()]);
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    let row = |mut row: RawRow| row.pop().and_then(|value| Some((chain.digest(&value)?, value)));
    let there: HashMap<[u64; 2], FetchedValue> =
        snapshot.select(wanted, &columns[0], &ends).await?.into_iter().filter_map(row).collect();
    let stored = |raw: &FetchedValue| there.get(&chain.digest(raw)?).cloned();
    found.values_mut().for_each(|raw| *raw = stored(raw).unwrap_or(FetchedValue::Null));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::space::tests::{no_space, space};

    #[test]
    fn a_long_value_comes_back_whole_or_is_an_error() {
        let (table, long) = (TableName::new("main", "notes"), FetchedValue::Text("said ".repeat(LONG)));
        for (room, space, is_there) in
            [(0, space as _, true), (1 << 20, no_space as _, true), (0, no_space as _, false)]
        {
            let mut rows = KeptRows::new(&PageStore::new(room, space));
            let key = [FetchedValue::Integer(1)];
            rows.set(&table, &key, "text", &FetchedValue::Null, NewValue::Is(long.clone()), "it loses the name");
            let new = rows.get(&table, &key, "text").unwrap();
            assert!(matches!(new, NewValue::Long(_)));
            assert_eq!(new.value("").ok(), is_there.then(|| long.clone()));
        }
    }
}
