//! Owners of rows: columns, and places within JSON, that name a person.

use std::cmp::Reverse;

use super::document::usable;
use super::evidence::ValueShape;
use super::names;
use super::source::KnownTable;
use super::{SampledReference, Sure};
use crate::memory::agreeing;

/// A guess at how rows belong to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerGuess {
    /// Table.
    pub table: String,
    /// Column.
    pub column: String,
    /// Path into its JSON.
    pub path: Option<String>,
    /// Separator of the column's texts, and the place of the person's part, from 0.
    pub part: Option<(char, usize)>,
    /// Reason for the guess.
    pub why: String,
    /// Certainty of the guess.
    pub sure: Sure,
    /// Sampled rows in which it names someone.
    pub rows: usize,
}

/// A table that lists people: its key, and columns with handles, each with its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct PeopleTable {
    /// Table.
    pub table: String,
    /// Key.
    pub id: String,
    /// Column and kind of handle.
    pub handles: Vec<(String, &'static str)>,
}

impl OwnerGuess {
    /// Rank among the guesses of a table: the first one determines the owner.
    pub fn rank(&self) -> impl Ord + use<> {
        let is_within = self.path.is_some() || self.part.is_some();
        (self.sure == Sure::Low, is_within, names::is_beside(&self.column), Reverse(self.sure))
    }
}

/// Most levels of JSON searched for a person.
const LEVELS: usize = 4;

/// All guesses at how rows belong to a person, table by table.
pub fn owners(known: &[KnownTable<'_>]) -> Vec<OwnerGuess> {
    known.iter().filter(|k| !k.words.people && !k.words.tenants).flat_map(of_table).collect()
}

/// All guesses for the rows of a table.
pub fn of_table(known: &KnownTable<'_>) -> Vec<OwnerGuess> {
    let mut owners = Vec::new();
    let mut parted = Vec::new();
    let mut add = |column: &str, path: Option<String>, why: String, sure, rows| {
        let (table, column) = (known.table.name.clone(), column.to_owned());
        owners.push(OwnerGuess { table, column, path, part: None, why, sure, rows });
    };
    for (column, evidence) in known.columns() {
        let name = column.name.as_str();
        let is_word =
            matches!(evidence.shape, ValueShape::Text | ValueShape::Whole | ValueShape::Empty) && !evidence.is_prose();
        // `uid` may be the row's own.
        let is_own_id = known.single_key() == Some(name) && names::words(name) == ["uid"];
        let is_tenant = known.has_people && names::is_tenant(name);
        let lists_people = |table: &str| {
            let words = names::of_table(table);
            words.people && !(known.has_people && words.tenants)
        };
        let to_people = |r: &&SampledReference| r.column == name && lists_people(&r.table);
        if let Some(to) = known.table.references.iter().find(to_people) {
            add(name, None, format!("a foreign key to {}, which lists people", to.table), Sure::High, evidence.filled);
        } else if is_tenant && is_word {
            let why = format!("named like a tenant, which may contain several people; {}", evidence.words());
            add(name, None, why, Sure::Low, evidence.filled);
        } else if names::is_person(name) && is_word && !is_own_id {
            let sure = if evidence.filled > 0 { Sure::High } else { Sure::Medium };
            add(name, None, format!("named as a person; {}", evidence.words()), sure, evidence.filled);
        } else if evidence.mails > 0 && is_word && names::is_external(name) {
            add(
                name,
                None,
                agreeing(
                    evidence.mails,
                    "named like an external id, and {#} {value is an e-mail address|values are e-mail addresses}",
                ),
                Sure::Medium,
                evidence.filled,
            );
        } else if names::is_speaker(name) && is_word && evidence.distinct > 1 && !evidence.roles {
            add(name, None, format!("named like a speaker; {}", evidence.words()), Sure::Medium, evidence.filled);
        } else if let Some(part) = evidence.led.filter(|_| names::is_scope(name) && is_word) {
            let why = format!("a person's word is before their part {} between `{}`", part.1, part.0);
            let (table, column, rows) = (known.table.name.clone(), name.to_owned(), evidence.filled);
            parted.push(OwnerGuess { table, column, path: None, part: Some(part), why, sure: Sure::Medium, rows });
        } else if let Some((apart, place)) = evidence.parted.filter(|_| names::is_scope(name) && is_word) {
            let why = format!("several values share their part {place} between `{apart}`");
            let (table, column) = (known.table.name.clone(), name.to_owned());
            let part = Some((apart, place));
            parted.push(OwnerGuess { table, column, path: None, part, why, sure: Sure::Low, rows: evidence.filled });
        } else if evidence.mails > 0 && is_word {
            add(
                name,
                None,
                agreeing(
                    evidence.mails,
                    &format!("{{#}} of {} values {{holds|hold}} an e-mail address", evidence.filled),
                ),
                Sure::Low,
                evidence.mails,
            );
        } else if let ValueShape::Document(document) = &evidence.shape {
            for (path, leaf) in &document.leaves {
                let deep = path.split('.').count() > LEVELS || path.contains("[]");
                let Some(path) = usable(path).filter(|_| names::is_person_at(path) && leaf.rows > 0) else { continue };
                let sure = if !deep && leaf.rows * 4 >= evidence.filled { Sure::Medium } else { Sure::Low };
                let why = format!("{} of {} sampled values name a person at {path}", leaf.rows, evidence.filled);
                add(name, Some(path), why, sure, leaf.rows);
            }
        }
    }
    owners.extend(parted);
    owners
}

/// The tables that list people.
pub fn people(known: &[KnownTable<'_>]) -> Vec<PeopleTable> {
    let listing = known.iter().filter(|k| k.lists_people());
    listing
        .filter_map(|k| {
            let id = k.single_key()?.to_owned();
            let is_there = |words: &[&str]| {
                let found =
                    k.columns().find(|(c, e)| names::has_all(&c.name, words) && matches!(e.shape, ValueShape::Text));
                found.map(|(c, _)| c.name.clone()).filter(|name| *name != id)
            };
            let found = [
                (is_there(&["email"]), "e-mail"),
                (is_there(&["identifier", "key"]), "id"),
                (is_there(&["username"]), "name"),
                (is_there(&["name"]), "name"),
            ];
            let handles: Vec<(String, &'static str)> =
                found.into_iter().filter_map(|(c, kind)| Some((c?, kind))).collect();
            (!handles.is_empty()).then(|| PeopleTable { table: k.table.name.clone(), id, handles })
        })
        .collect()
}
