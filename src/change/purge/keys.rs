//! Ids inside keys, such as `prefs:ann` or `memories.ann.s1`: which parts of a key are the person, and what refers to a
//! key that gets another name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use super::effects::{KeptRows, NewValue};
use super::graph::{Graph, name};
use super::matcher::{ByteFind, Hit};
use super::mention::{self, Certainty, MentionRefusals, Mentions};
use super::place::OUTSIDE;
use super::plan::{AlteredRow, PurgePlan};
use super::scan::PersonSearch;
use super::subject::PersonHandle;
use crate::change::ChangeError;
use crate::layout::erase::EraseAction;
use crate::store::fetched::FetchedValue;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// What parts the pieces of a key.
const MARKS: &[u8] = b":/|#";
/// What may part them, or be part of a longer id.
const LOOSE: &[u8] = b"._-@";
/// Columns whose values are paths with a dot between the parts.
const PATHS: [&str; 2] = ["prefix", "namespace"];
/// Characters of a pseudonym, and of the number that may follow it.
const PSEUDONYM: usize = 48;
/// Characters below which an id in a key may be anything.
const TELLING: usize = 5;

/// The hits that are a key, or a part of one between marks. What is part of a word in a key is another id.
#[must_use]
pub fn parts(value: &[u8], mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.retain(|hit| {
        let parted = |beside: Option<&u8>| beside.is_none_or(|b| MARKS.contains(b) || LOOSE.contains(b));
        let (before, after) = beside(value, hit);
        let whole = before.is_none() && after.is_none();
        whole || matches!(hit.what, ByteFind::Handle(_)) && parted(before) && parted(after)
    });
    hits
}

fn beside<'v>(value: &'v [u8], hit: &Hit) -> (Option<&'v u8>, Option<&'v u8>) {
    (hit.start.checked_sub(1).and_then(|at| value.get(at)), value.get(hit.end))
}

/// How sure it is that a part of a key is the person. A dot may be part of an id: `ann.k` is somebody else.
#[must_use]
pub fn certainty(column: &str, value: &[u8], hits: &[Hit]) -> Certainty {
    let path = PATHS.contains(&column);
    let sure = |hit: &Hit| {
        let (before, after) = beside(value, hit);
        let id = value.get(hit.start..hit.end).unwrap_or_default();
        if id.len() < TELLING || id.iter().all(u8::is_ascii_digit) || hit.is_common() {
            return before.is_none() && after.is_none();
        }
        let ends = |beside: Option<&u8>| beside.is_none_or(|b| MARKS.contains(b) || path && *b == b'.');
        ends(before) && ends(after) || before == Some(&b'.') && after == Some(&b'.')
    };
    if hits.iter().any(sure) { Certainty::Certain } else { Certainty::Possible("it may be part of another id") }
}

/// The key with another name for the person in it: what stands before, between and after the names.
///
/// # Errors
/// Why it cannot have another name.
pub fn renamed(
    declared: &str,
    raw: &FetchedValue,
    value: &[u8],
    hits: &[Hit],
    handles: &[&PersonHandle],
) -> Result<Vec<String>, &'static str> {
    let FetchedValue::Text(text) = raw else { return Err("a key that is no text gets no other name") };
    let lower = declared.to_ascii_lowercase();
    if !lower.is_empty() && !["char", "text", "clob", "string", "json"].iter().any(|t| lower.contains(t)) {
        return Err("the type of the key takes no pseudonym");
    }
    let left = value.len() - hits.iter().map(|hit| hit.end - hit.start).sum::<usize>();
    let room = lower.split_once('(').and_then(|(_, rest)| rest.trim_end_matches(')').parse::<usize>().ok());
    if room.is_some_and(|room| left + hits.len() * PSEUDONYM > room) {
        return Err("the key has no room for a pseudonym");
    }
    let mut pieces = Vec::new();
    let (mut at, mut number) = (0, String::new());
    for hit in hits {
        pieces.push(number + text.get(at..hit.start).unwrap_or_default());
        number = numbered(hit, value, handles);
        at = hit.end;
    }
    pieces.push(number + text.get(at..).unwrap_or_default());
    Ok(pieces)
}

/// Columns that refer to those of another table: foreign keys, and what the layout says of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    from: TableName,
    columns: Vec<String>,
    to: TableName,
    to_columns: Vec<String>,
    when: Option<String>,
}

/// Everything that refers to a column of another row.
#[must_use]
pub fn references(graph: &Graph) -> Vec<KeyReference> {
    let foreign = graph.relations.foreign.iter().map(|f| KeyReference {
        from: f.from.clone(),
        columns: f.columns.clone(),
        to: f.to.clone(),
        to_columns: f.to_columns.clone(),
        when: None,
    });
    let mut all: Vec<KeyReference> = foreign.collect();
    for rule in graph.rules.iter().filter(|r| r.inside.is_whole() && r.action != EraseAction::Remove) {
        let Some(of) = rule.of.as_ref().map(name) else { continue };
        let Some(to) = rule.to.clone().or_else(|| graph.relations.keys.get(&of)?.first().cloned()) else { continue };
        let reference = KeyReference {
            from: name(&rule.table),
            columns: std::iter::once(&rule.column).chain(rule.also.iter().map(|(own, _)| own)).cloned().collect(),
            to: of,
            to_columns: std::iter::once(to).chain(rule.also.iter().map(|(_, to)| to.clone())).collect(),
            when: rule.when.clone(),
        };
        let same = |other: &KeyReference| {
            (&other.from, &other.columns, &other.to) == (&reference.from, &reference.columns, &reference.to)
        };
        if !all.iter().any(same) {
            all.push(reference);
        }
    }
    all
}

/// Keys that hold the person's id, found before anything else is read.
#[derive(Debug, Default)]
pub struct Keys {
    /// Their values, by table and column.
    held: HashMap<(TableName, String), HashSet<String>>,
    /// For each column that refers to others: to which.
    refers: HashMap<(TableName, String), Vec<(TableName, String)>>,
    /// Columns of keys: a value in them is the only one of its kind.
    pub columns: HashSet<(TableName, String)>,
    /// Values that get another name, wherever they stand, and the parts of them that do.
    pub renamed: HashSet<String>,
}

impl Keys {
    /// Whether a value is that of a key which holds the person's id: what becomes of the key becomes of the value.
    #[must_use]
    pub fn follows(&self, table: &TableName, column: &str, value: &str) -> bool {
        let to = self.refers.get(&(table.clone(), column.to_owned()));
        to.into_iter().flatten().any(|place| self.held.get(place).is_some_and(|held| held.contains(value)))
    }
}

/// A part of a key that is the person.
struct PersonKeyPart {
    table: TableName,
    by: Vec<String>,
    key: Vec<FetchedValue>,
    column: String,
    raw: FetchedValue,
    hits: Vec<Hit>,
    declared: String,
}

/// Reads the keys of every table that the layout knows.
///
/// # Errors
/// The engine's refusal.
pub async fn find(snapshot: &mut Snapshot<'_>, search: &PersonSearch<'_>) -> Result<Keys, ChangeError> {
    let mut keys = Keys { columns: columns(snapshot, search).await?, ..Keys::default() };
    for reference in references(search.graph) {
        for (from, to) in reference.columns.iter().zip(&reference.to_columns) {
            let place = (reference.from.clone(), from.clone());
            keys.refers.entry(place).or_default().push((reference.to.clone(), to.clone()));
        }
    }
    let mut parts_found = Vec::new();
    for table in search.graph.relations.tables.clone() {
        if search.about.tables.contains(&table) && !search.about.is_ours(&table) {
            of_table(snapshot, search, &keys.columns, &table, &mut parts_found).await?;
        }
    }
    for part in &parts_found {
        if let FetchedValue::Text(text) = &part.raw {
            let place = (part.table.clone(), part.column.clone());
            keys.held.entry(place).or_default().insert(text.clone());
        }
    }
    for part in &parts_found {
        let FetchedValue::Text(text) = &part.raw else { continue };
        if decided(search, part, text) == Mentions::Redact && !keys.follows(&part.table, &part.column, text) {
            keys.renamed.insert(text.clone());
        }
    }
    Ok(keys)
}

/// Columns of keys, and those that others refer to.
async fn columns(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
) -> Result<HashSet<(TableName, String)>, ChangeError> {
    let mut columns = snapshot.unique_columns().await?;
    let keys = &search.graph.relations.keys;
    columns.extend(keys.iter().flat_map(|(table, by)| by.iter().map(|column| (table.clone(), column.clone()))));
    for reference in references(search.graph) {
        columns.extend(reference.to_columns.into_iter().map(|column| (reference.to.clone(), column)));
    }
    Ok(columns)
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
    let mut read = by.clone();
    read.extend(texts.iter().map(|(column, _)| column.clone()));
    let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
    snapshot
        .stream(wanted, |row| {
            let (key, values) = row.split_at(by.len());
            for ((column, declared), raw) in texts.iter().zip(values) {
                let FetchedValue::Text(text) = raw else { continue };
                let mut hits = parts(text.as_bytes(), search.matcher.find(text));
                hits.retain(|hit| hit.what != ByteFind::Row);
                if hits.is_empty() || search.graph.has(table, key) || search.account.has(table, key) {
                    continue;
                }
                found.push(PersonKeyPart {
                    table: table.clone(),
                    by: by.clone(),
                    key: key.to_vec(),
                    column: column.clone(),
                    raw: raw.clone(),
                    hits,
                    declared: declared.clone(),
                });
            }
            ControlFlow::Continue(())
        })
        .await?;
    Ok(())
}

/// What is done about a part of a key, as the pass over everything will decide it.
fn decided(search: &PersonSearch<'_>, part: &PersonKeyPart, text: &str) -> Mentions {
    let place = format!("{}.{}", part.table.title(), part.column);
    let id = mention::id(&part.table, &part.by, &part.key, &part.column, &part.raw);
    let asked = search.decisions.of(&id, &place, certainty(&part.column, text.as_bytes(), &part.hits));
    let redact = renamed(&part.declared, &part.raw, text.as_bytes(), &part.hits, search.handles).err();
    let outside = !search.about.tables.contains(&part.table);
    let refusals = if outside { MentionRefusals::both(OUTSIDE) } else { MentionRefusals { redact, delete: None } };
    if refusals.of(asked).is_some() { Mentions::Leave } else { asked }
}

/// Gives everything that refers to a key the name that the key gets, over every hop.
///
/// # Errors
/// The engine's refusal.
pub async fn follow(snapshot: &mut Snapshot<'_>, graph: &Graph, updates: &mut KeptRows) -> Result<(), ChangeError> {
    let references = references(graph);
    let mut work: BTreeSet<(TableName, String)> = updates.renamed().map(|(place, _)| place.clone()).collect();
    while !work.is_empty() {
        let mut next = BTreeSet::new();
        for reference in &references {
            let rows: Vec<(TableName, String)> =
                work.iter().filter(|(table, _)| *table == reference.to).cloned().collect();
            if !rows.is_empty() {
                next.extend(of_reference(snapshot, graph, reference, &rows, updates).await?);
            }
        }
        work = next;
    }
    Ok(())
}

/// Renames what one kind of reference holds. Gives the rows that got another name by it.
async fn of_reference(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    reference: &KeyReference,
    rows: &[(TableName, String)],
    updates: &mut KeptRows,
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
    // What the columns that are referred to hold now, and what they get.
    let mut named: HashMap<String, Vec<Option<NewValue>>> = HashMap::new();
    let mut tuples = Vec::new();
    for row in snapshot.select_keys(wanted, &parent_key, &keys).await? {
        let (key, tuple) = row.split_at(parent_key.len());
        let new = |column: &String| updates.get(&reference.to, key, column).filter(|new| new.is_around()).cloned();
        let news: Vec<Option<NewValue>> = reference.to_columns.iter().map(new).collect();
        if news.iter().any(Option::is_some) {
            named.insert(spelled(tuple), news);
            tuples.push(tuple.to_vec());
        }
    }
    if tuples.is_empty() {
        return Ok(Vec::new());
    }
    let mut read = own_key.clone();
    read.extend(reference.columns.iter().cloned());
    let wanted = WantedRows { table: &reference.from, columns: &read, when: reference.when.as_deref(), subject: &[] };
    let mut reached = Vec::new();
    for row in snapshot.select_keys(wanted, &reference.columns, &tuples).await? {
        let (key, tuple) = row.split_at(own_key.len());
        if graph.has(&reference.from, key) {
            continue;
        }
        let Some(news) = named.get(&spelled(tuple)) else { continue };
        for ((column, old), new) in reference.columns.iter().zip(tuple).zip(news) {
            let Some(new) = new else { continue };
            if updates.get(&reference.from, key, column).is_none() {
                let why = format!("{}.{column} follows the key that it refers to", reference.from.title());
                updates.set(&reference.from, key, column, old, new.clone(), &why);
                reached.push((reference.from.clone(), spelled(key)));
            }
        }
    }
    Ok(reached)
}

/// A key as one word, to compare it.
pub fn spelled(values: &[FetchedValue]) -> String {
    serde_json::to_string(values).unwrap_or_default()
}

/// What takes the place of a name until the pseudonym is known; no text has it.
pub const BLANK: &[u8] = b"\x7f";

/// The parts of a text around its blanks, which stand where these hits were.
#[must_use]
pub fn pieces(text: &[u8], hits: &[Hit], old: &[u8], handles: &[&PersonHandle]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut pieces = Vec::new();
    let mut rest = text.as_ref();
    let mut number = String::new();
    for hit in hits {
        let Some((before, after)) = rest.split_once('\u{7f}') else { break };
        pieces.push(number + before);
        number = numbered(hit, old, handles);
        rest = after.trim_start_matches('\u{7f}');
    }
    pieces.push(number + rest);
    pieces
}

/// Each handle has a name of its own, and each other spelling of it, so that two keys do not become one.
fn numbered(hit: &Hit, value: &[u8], handles: &[&PersonHandle]) -> String {
    let ByteFind::Handle(n) = hit.what else { return String::new() };
    let number = if n > 0 { format!("-{n}") } else { String::new() };
    let written = value.get(hit.start..hit.end).unwrap_or_default();
    if handles.get(n).is_none_or(|handle| handle.value.as_bytes() == written) {
        return number;
    }
    // Too few bits to tell the spelling by.
    let sum = written.iter().fold(0_u32, |sum, byte| (sum * 31 + u32::from(*byte)) % 997);
    format!("{number}v{sum}")
}

/// Decisions that are about rows whose key gets another name, under the ids that they have then.
#[must_use]
pub fn moved(plan: &PurgePlan, pseudonym: &str) -> Vec<(String, Mentions)> {
    let key_of = |row: &AlteredRow| -> Vec<FetchedValue> { row.key.iter().map(|(_, value)| value.clone()).collect() };
    let renamed: HashMap<(TableName, String), &AlteredRow> = plan
        .updates
        .iter()
        .filter(|row| row.key.iter().any(|(column, _)| row.update.set.get(column).is_some_and(NewValue::is_around)))
        .map(|row| ((row.table.clone(), spelled(&key_of(row))), row))
        .collect();
    let moved = plan.mentions.iter().filter_map(|mention| {
        let decision = *plan.options.each.get(&mention.id)?;
        let row = renamed.get(&(mention.table.clone(), spelled(&mention.key)))?;
        let by: Vec<String> = row.key.iter().map(|(column, _)| column.clone()).collect();
        let value = |(column, old): &(String, FetchedValue)| match row.update.set.get(column) {
            Some(NewValue::Around(pieces)) => FetchedValue::Text(pieces.join(pseudonym)),
            _ => old.clone(),
        };
        let key: Vec<FetchedValue> = row.key.iter().map(value).collect();
        Some((mention::id(&mention.table, &by, &key, &mention.column, &FetchedValue::Null), decision))
    });
    moved.collect()
}

/// What stands around a hit up to a blank, a quotation mark or a bracket: an item of a list, if it is one.
#[must_use]
pub fn token<'t>(text: &'t [u8], hit: &Hit) -> &'t [u8] {
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b',' | b'[' | b']' | b'{' | b'}' | b'\\');
    let start = text[..hit.start].iter().rposition(ends).map_or(0, |at| at + 1);
    let end = text[hit.end..].iter().position(ends).map_or(text.len(), |at| hit.end + at);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(column: &str, key: &str, id: &str) -> Option<bool> {
        let start = key.find(id).expect("it is there");
        let hit = Hit { what: ByteFind::Handle(0), start, end: start + id.len(), certainty: Certainty::Certain };
        let hits = parts(key.as_bytes(), vec![hit]);
        (!hits.is_empty()).then(|| certainty(column, key.as_bytes(), &hits) == Certainty::Certain)
    }

    #[test]
    fn a_part_of_a_key_is_the_person_and_a_part_of_a_longer_id_may_be() {
        for (column, key, id, expected) in [
            ("id", "prefs:dmitri.omalley", "dmitri.omalley", Some(true)),
            ("id", "mem:dmitri.omalley:7", "dmitri.omalley", Some(true)),
            ("id", "memories.johnsmith.s1", "johnsmith", Some(true)),
            ("prefix", "johnsmith.profile", "johnsmith", Some(true)),
            ("id", "johnsmith.k", "johnsmith", Some(false)),
            ("prefix", "memories.hiro-t.s1", "hiro", Some(false)),
            ("id", "user_johnsmith", "johnsmith", Some(false)),
            ("id", "xjohnsmith", "johnsmith", None),
            ("id", "johnsmith2", "johnsmith", None),
        ] {
            assert_eq!(of(column, key, id), expected, "{id} in {key}");
        }
    }

    #[test]
    fn a_key_is_renamed_in_its_place_each_handle_by_a_name_of_its_own() {
        let hit = |n, start, end| Hit { what: ByteFind::Handle(n), start, end, certainty: Certainty::Certain };
        let handle = |value: &str| PersonHandle {
            kind: "id".into(),
            value: value.into(),
            source: String::new(),
            unsearched: None,
            common: None,
        };
        let handles = ["ann", "x", "ann@x.org"].map(handle);
        let handles: Vec<&PersonHandle> = handles.iter().collect();
        let of = |value: &str, declared: &str| {
            renamed(
                declared,
                &FetchedValue::Text(value.into()),
                value.as_bytes(),
                &[hit(0, 2, 5), hit(2, 6, 15)],
                &handles,
            )
        };
        let pieces = of("a:ann:ann@x.org", "TEXT");
        assert_eq!(pieces, Ok(vec!["a:".to_owned(), ":".to_owned(), "-2".to_owned()]));
        assert_ne!(of("a:ANN:ann@x.org", "TEXT"), pieces);
        assert!(of("a:ann:ann@x.org", "varchar(20)").is_err());
    }
}
