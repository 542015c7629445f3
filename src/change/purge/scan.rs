//! Reads every text of the database once, row by row: what names the person elsewhere, and what names rows that go.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use serde::Serialize;

use super::effects::{KeptRows, is_required};
use super::graph::{Graph, as_text, id_columns, people_columns};
use super::keys::{self, Keys};
use super::matcher::{ID_LENGTH, Matcher, place_of, words};
use super::mention::{Decisions, Mention, Met};
use super::place::TablePlace;
use super::plan::known_tables;
use super::subject::PersonHandle;
use super::vectors;
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::layout::erase::Recompute;
use crate::memory::mention;
use crate::store::Store;
use crate::store::fetched::FetchedValue;
use crate::store::own;
use crate::store::relations::Relations;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Mentions that are kept with their sample; all are counted.
pub(super) const KEPT: usize = 10_000;

/// What becomes of the mentions of one place, and how sure they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PlaceTally {
    /// They mean the person.
    pub certain: usize,
    /// They may.
    pub possible: usize,
    /// Left by choice.
    pub left: usize,
    /// Left because the table is outside the layout.
    pub outside: usize,
    /// Left although something else was asked for: it cannot be done.
    pub undone: usize,
    /// Redacted, or gone with their row.
    pub done: usize,
    /// Of those that are left or outside, how many were decided one by one.
    #[serde(skip)]
    pub singled: usize,
}

impl PlaceTally {
    /// Those that a decision for all, or for all of a column, leaves.
    #[must_use]
    pub fn left_together(&self) -> usize {
        (self.left + self.outside).saturating_sub(self.singled)
    }

    /// The sum over several places.
    #[must_use]
    pub fn all<'t>(tallies: impl IntoIterator<Item = &'t PlaceTally>) -> PlaceTally {
        tallies.into_iter().fold(PlaceTally::default(), |sum, one| PlaceTally {
            certain: sum.certain + one.certain,
            possible: sum.possible + one.possible,
            left: sum.left + one.left,
            outside: sum.outside + one.outside,
            undone: sum.undone + one.undone,
            done: sum.done + one.done,
            singled: sum.singled + one.singled,
        })
    }
}

/// Values of a column that could not be looked into, or not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadColumn {
    /// Why, of the first one.
    pub why: &'static str,
    /// How many.
    pub count: usize,
}

/// What the pass over everything found.
#[derive(Debug, Default)]
pub struct ScanFindings {
    /// Mentions in rows that stay.
    pub mentions: Vec<Mention>,
    /// How many there are, by table and column; also those that are not kept.
    pub counted: BTreeMap<String, usize>,
    /// What becomes of them, by table and column; also of those that are not kept.
    pub tally: BTreeMap<String, PlaceTally>,
    /// Which decisions were about mentions that are there.
    pub met: Met,
    /// Rows that go because they mention the person.
    pub doomed: Vec<(TableName, Vec<FetchedValue>)>,
    /// Hits of each handle anywhere, also in the person's own rows: the positive control.
    pub control: Vec<usize>,
    /// References to rows that go which cannot be taken out, by table and column.
    pub stuck: BTreeMap<String, usize>,
    /// References that go, by table and column.
    pub loosened: BTreeMap<String, usize>,
    /// Rows whose aggregate is to be made again.
    pub recompute: Vec<(Recompute, TableName, Vec<FetchedValue>)>,
    /// Elements taken out of a canvas list, by row.
    pub removed: BTreeMap<String, usize>,
    /// Tables, views and the like whose definition names the person.
    pub structure: Vec<String>,
    /// Values that could not be read, and why, by table and column.
    pub unread: BTreeMap<String, UnreadColumn>,
    /// Rows of our own records of jobs that name the person or a row that goes: they go too.
    pub forgotten: Vec<(TableName, Vec<FetchedValue>)>,
    /// Private values of our own audit trail that name the person or a row that goes.
    pub redacts: Vec<(i64, String)>,
    /// Entries of our own audit trail that kept what a row that goes was: all their private values go.
    pub undone: BTreeSet<i64>,
    /// Hits in other tables of ours, which hold no personal values.
    pub ours: BTreeMap<String, usize>,
    /// Hits in the account that is kept.
    pub account: usize,
    /// Values read.
    pub values: u64,
}

impl ScanFindings {
    /// Notes a private value of our own audit trail that goes.
    pub fn redact(&mut self, seq: i64, field: &str) {
        if !self.redacts.iter().any(|(known, other)| *known == seq && other == field) {
            self.redacts.push((seq, field.to_owned()));
        }
    }

    /// Notes a value that could not be looked into, or not be changed.
    pub fn not_looked_into(&mut self, place: String, why: &'static str) {
        self.unread.entry(place).or_insert(UnreadColumn { why, count: 0 }).count += 1;
    }

    /// What could not be looked into, in words, by column.
    pub fn unread_words(&self) -> impl Iterator<Item = String> + '_ {
        let words = |(place, unread): (&String, &UnreadColumn)| {
            format!("{place}: {} values were left as they are: {}", unread.count, unread.why)
        };
        self.unread.iter().map(words)
    }
}

/// What is known of a database's tables and columns.
#[derive(Debug)]
pub struct KnownTables {
    /// Schema of our own tables.
    pub own: Option<String>,
    /// Tables that the layout knows.
    pub tables: HashSet<TableName>,
    /// Columns that hold ids and nothing else.
    pub ids_only: HashSet<(TableName, String)>,
    /// Of these, columns that hold ids of people.
    pub of_people: HashSet<(TableName, String)>,
    /// The engine holds columns to their types.
    pub postgres: bool,
}

impl KnownTables {
    /// What the layouts and the database itself say.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(store: &Store, relations: &Relations) -> Result<Self, ChangeError> {
        Ok(KnownTables {
            own: store.records().own().await?.map(|own| own.schema),
            tables: known_tables(store),
            ids_only: id_columns(store, relations),
            of_people: people_columns(store, relations),
            postgres: store.engine() == Engine::Postgres,
        })
    }

    /// Whether a table is one of ours.
    #[must_use]
    pub fn is_ours(&self, table: &TableName) -> bool {
        self.own.as_ref() == Some(&table.schema) && own::TABLES.contains(&table.name.as_str())
    }
}

/// What the pass needs to know.
pub struct PersonSearch<'a> {
    /// Rows that go.
    pub graph: &'a Graph,
    /// Rows of the person's account that are kept, by table.
    pub account: &'a Graph,
    /// Handles, in the order of the matcher.
    pub handles: &'a [&'a PersonHandle],
    /// What to look for.
    pub matcher: &'a Matcher,
    /// Ids of rows that go, as far as they can be told in texts.
    pub ids: &'a HashSet<String>,
    /// The ids that lists of the layout may lose, by table and column: short ones too.
    pub listed: &'a HashMap<(TableName, String), HashSet<String>>,
    /// What becomes of each mention.
    pub decisions: Decisions<'a>,
    /// What is known of tables and columns.
    pub about: &'a KnownTables,
    /// Tables that triggers keep in step.
    pub follows: &'a HashSet<TableName>,
    /// Told how many values have been read, now and then.
    pub progress: &'a (dyn Fn(&str, u64) + Sync),
}

/// Reads everything.
///
/// # Errors
/// The engine's refusal.
pub async fn everything(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    updates: &mut KeptRows,
) -> Result<ScanFindings, ChangeError> {
    let numeric = search.handles.iter().any(|h| h.kind == "id" && h.value.parse::<i64>().is_ok());
    let keys = keys::find(snapshot, search).await?;
    let mut found = ScanFindings { control: vec![0; search.handles.len()], ..ScanFindings::default() };
    let vectors: HashSet<(TableName, String)> =
        vectors::places(snapshot.store).into_iter().map(|p| (p.0, p.1)).collect();
    let indexes = snapshot.store.proof().index_tables().await?;
    for table in search.graph.relations.tables.clone() {
        let key = search.graph.relations.keys.get(&table).cloned().unwrap_or_default();
        let shape = snapshot.store.shapes().shape(&table).await?;
        let texts: Vec<(String, String)> = shape
            .columns
            .iter()
            .filter(|c| search.graph.relations.holds_words(&table, &c.name) || numeric && looks_personal(&c.name))
            .map(|c| (c.name.clone(), c.base.clone()))
            .collect();
        if texts.is_empty() {
            continue;
        }
        let mut read = key.clone();
        read.extend(texts.iter().map(|(name, _)| name.clone()));
        let required: Vec<bool> = texts.iter().map(|(c, _)| is_required(snapshot, &table, c)).collect();
        let ids_only: Vec<bool> =
            texts.iter().map(|(c, _)| search.about.ids_only.contains(&(table.clone(), c.clone()))).collect();
        let keyed: Vec<bool> = texts.iter().map(|(c, _)| keys.columns.contains(&(table.clone(), c.clone()))).collect();
        let about: Vec<mention::MentionText> =
            texts.iter().map(|(c, _)| place_of(&table, c, &search.about.of_people)).collect();
        // Vectors are bytes that hold no words, and so is most of what an index keeps.
        let opaque = |column: &String| !indexes.contains(&table) && !vectors.contains(&(table.clone(), column.clone()));
        let opaque: Vec<bool> = texts.iter().map(|(c, _)| opaque(c)).collect();
        let place = TablePlace {
            search,
            table: &table,
            texts: &texts,
            required: &required,
            ids_only: &ids_only,
            keyed: &keyed,
            keys: &keys,
            about: &about,
            opaque: &opaque,
            key: &key,
        };
        let wanted = WantedRows { table: &table, columns: &read, when: None, subject: &[] };
        let title = table.title();
        snapshot
            .stream(wanted, |row| {
                place.row(&row, &mut found, updates);
                if found.values % 8_192 < texts.len() as u64 {
                    (search.progress)(&title, found.values);
                }
                ControlFlow::Continue(())
            })
            .await?;
    }
    private_values(snapshot, search, &mut found).await?;
    large_objects(snapshot, search, &keys, &mut found, updates).await?;
    found.structure = structure(snapshot, search).await?;
    Ok(found)
}

/// Every private value of the entries that kept what a row that goes was: what one of them tells, the others tell too. They
/// come in no order, so they are known only when all were read.
async fn private_values(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    found: &mut ScanFindings,
) -> Result<(), ChangeError> {
    let undone = std::mem::take(&mut found.undone);
    let Some(own) = search.about.own.as_ref().filter(|_| !undone.is_empty()) else { return Ok(()) };
    let table = TableName::new(own.clone(), "memory_audit_private");
    let columns = ["seq".to_owned(), "field".to_owned()];
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    snapshot
        .stream(wanted, |row| {
            let seq = row.first().and_then(as_text).and_then(|seq| seq.parse().ok());
            if let (Some(seq), Some(FetchedValue::Text(field))) = (seq, row.get(1))
                && undone.contains(&seq)
            {
                found.redact(seq, field);
            }
            ControlFlow::Continue(())
        })
        .await?;
    Ok(())
}

/// Looks into PostgreSQL's large objects, which no table holds.
async fn large_objects(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    keys: &Keys,
    found: &mut ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = TableName::new("pg_catalog", "pg_largeobject");
    let (texts, key) = ([("data".to_owned(), "bytea".to_owned())], ["loid".to_owned()]);
    let place = TablePlace {
        search,
        table: &table,
        texts: &texts,
        required: &[true],
        ids_only: &[false],
        keyed: &[false],
        keys,
        about: &[mention::MentionText::default()],
        opaque: &[false],
        key: &key,
    };
    for (id, _) in snapshot.large_objects().await?.into_iter().flatten().filter(|(_, readable)| *readable) {
        match snapshot.large_object(id).await? {
            Some(bytes) => place.row(&[FetchedValue::Integer(id), FetchedValue::Bytes(bytes)], found, updates),
            None => found.not_looked_into(format!("{}.data", table.title()), "too long to be looked into"),
        }
    }
    Ok(())
}

/// Parts of the structure that name the person, in words that do not: a name is part of a longer word there, so that a handle
/// long enough to tell counts within one too.
async fn structure(snapshot: &mut Snapshot<'_>, search: &PersonSearch<'_>) -> Result<Vec<String>, ChangeError> {
    let words = search.handles.iter().filter(|h| h.common.is_none()).map(|h| h.value.to_lowercase());
    let words: Vec<String> = words.filter(|w| w.len() >= ID_LENGTH).collect();
    let names = |text: &str| {
        let lower = text.to_lowercase();
        words.iter().any(|word| lower.contains(word.as_str())) || search.matcher.names(text)
    };
    let mut named = Vec::new();
    for object in snapshot.definitions().await? {
        if names(&object.name) {
            named.push(format!("a {} is called by a handle", object.kind));
        } else if names(&object.text) || names(&object.unquoted()) {
            named.push(format!("the definition of the {} {} names the person", object.kind, object.name));
        }
    }
    named.dedup();
    Ok(named)
}

/// Whether a column's name is that of something about people.
#[must_use]
pub fn looks_personal(column: &str) -> bool {
    let lower = column.to_lowercase();
    let words = words(column);
    // A key of JSON may be a whole sentence: its words say nothing of the value.
    if words.len() > 4 {
        return false;
    }
    let about = |word: &String| {
        let bare = word.strip_suffix("id").unwrap_or(word);
        // One `s` is a plural; two belong to the word, as in `address`.
        let plural = bare.strip_suffix('s').filter(|rest| !rest.ends_with('s'));
        let word = plural.unwrap_or(bare);
        matches!(
            word,
            "user"
                | "person"
                | "people"
                | "customer"
                | "owner"
                | "subject"
                | "account"
                | "author"
                | "member"
                | "contact"
                | "employee"
                | "client"
                | "patient"
                | "email"
                | "mail"
                | "phone"
                | "mobile"
                | "address"
                | "addresse"
                | "username"
                | "birthday"
                | "birthdate"
                | "firstname"
                | "lastname"
                | "surname"
                | "fullname"
                | "sub"
                | "ssn"
                | "participant"
                | "assignee"
                | "reviewer"
                | "approver"
                | "requester"
                | "reporter"
                | "sender"
                | "recipient"
                | "attendee"
                | "speaker"
        )
    };
    // What agents are called is not about people.
    !words.iter().any(|word| word == "agent")
        && (words.iter().any(about)
            || lower.ends_with("_by")
            || lower.contains("first_name")
            || lower.contains("last_name"))
}
