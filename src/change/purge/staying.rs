//! Rows that an erasure keeps although they name the person, or lose contents with the person's rows; and the part of
//! each that is the person's.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::{empties_content, is_common};
use super::graph::{Graph, by_path_rows, names_owner, naming, naming_columns};
use super::id_set::IdSet;
use super::planned_owners::others_within;
use super::taken::{GoingRows, listed};
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::packed::digest_set::DigestSet;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::row_list::row_digest;
use crate::store::snapshot::Snapshot;
use crate::store::stored::{Image, TableName};
use crate::store::within::texts_of;

/// The rows of a table that stay.
#[derive(Debug)]
pub struct StayingRows {
    /// The rows, each once.
    pub rows: GoingRows,
    known: DigestSet,
    /// The rules that lead to them, each with the rows that it leads to.
    reached: Vec<(BoundRule, DigestSet)>,
    others: OtherPeople,
}

/// Columns by which a row belongs to other people, or depends on rows of theirs.
#[derive(Debug, Default)]
struct OtherPeople {
    /// Columns that hold ids of people.
    people: Vec<String>,
    /// Rules by which a value names the owners.
    owners: Vec<BoundRule>,
    /// Columns that refer to rows that have owners, with the ids of the person's rows there.
    links: Vec<(String, IdSet)>,
}

/// All rows that stay, and the tables with such rows that nothing identifies.
#[derive(Debug, Default)]
pub struct Staying {
    /// Rows by table.
    pub tables: BTreeMap<TableName, StayingRows>,
    /// Tables whose rows name the person and have no key.
    pub keyless: BTreeSet<TableName>,
}

impl Staying {
    /// Finds the rows that stay and name the person, or lose contents.
    ///
    /// # Errors
    /// The engine's refusal, or no room for data that does not fit in memory.
    pub async fn find(snapshot: &mut Snapshot<'_>, graph: &Graph, subject: &[String]) -> Result<Self, ChangeError> {
        let mut staying = Staying::default();
        for rule in graph.rules.iter().filter(|rule| tells_of_person(rule) && !is_common(rule, subject)) {
            staying.follow(snapshot, graph, rule, subject).await?;
        }
        for (table, rows) in &mut staying.tables {
            rows.others = OtherPeople::of(snapshot, graph, table);
        }
        graph.check()?;
        Ok(staying)
    }

    async fn follow(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        graph: &Graph,
        rule: &BoundRule,
        subject: &[String],
    ) -> Result<(), ChangeError> {
        let table = TableName::of(&rule.table);
        let key = graph.relations.keys.get(&table).cloned().unwrap_or_default();
        let read = if key.is_empty() { vec![rule.column.clone()] } else { key.clone() };
        let (mut found, mut is_named) = (GoingRows::new(table.clone(), key, graph.pages()), false);
        let take = |row: RawRow| {
            is_named = true;
            if !found.by.is_empty() && !graph.has(&table, &row) {
                found.push(&row);
            }
        };
        if rule.inside.is_whole() {
            let (compared, mut take) = (graph.compared(rule), take);
            for part in graph.parts(rule, 0) {
                let keys = graph.named_by(rule, subject, part);
                naming(snapshot, (rule, &compared), &read, &keys, subject, &mut take).await?;
            }
        } else {
            let texts = graph.texts_by(rule, subject, 0);
            by_path_rows(snapshot, rule, &read, &texts, subject, take).await?;
        }
        if !found.is_empty() {
            self.tables.entry(table).or_insert_with(|| StayingRows::new(&found, graph)).add(rule, &found, graph);
        } else if found.by.is_empty() && is_named {
            self.keyless.insert(table);
        }
        Ok(())
    }
}

/// Whether the rows of a rule that stay name the person, or lose contents with rows of the person's. A reference alone
/// holds nothing but the id of a row.
fn tells_of_person(rule: &BoundRule) -> bool {
    match rule.action {
        EraseAction::Delete | EraseAction::Stale => false,
        _ if rule.of.is_none() => true,
        _ => rule.inside.is_whole() && empties_content(rule),
    }
}

impl StayingRows {
    fn new(like: &GoingRows, graph: &Graph) -> Self {
        let (rows, known) = (like.emptied(graph.pages()), DigestSet::new(graph.pages()));
        StayingRows { rows, known, reached: Vec::new(), others: OtherPeople::default() }
    }

    fn add(&mut self, rule: &BoundRule, found: &GoingRows, graph: &Graph) {
        let mut reached = DigestSet::new(graph.pages());
        for key in found.all_keys() {
            reached.insert(key_digest(key.iter()));
            if self.known.insert(key_digest(key.iter())) {
                self.rows.push(&key);
            }
        }
        self.reached.push((rule.clone(), reached));
    }

    /// Reduces a row to the part that is the person's, unless it leads to nobody else: its key, the columns that name
    /// the person, and what it loses. Returns whether it was reduced.
    pub fn reduce(&self, image: &mut Image, subject: &[String]) -> bool {
        if !self.others.have(image, subject) {
            return false;
        }
        let key: Option<Vec<&FetchedValue>> = self.rows.by.iter().map(|column| image.get(column)).collect();
        let key = key.map(|key| key_digest(key.into_iter()));
        let is_reached = |rows: &DigestSet| key.is_none_or(|key| rows.contains(key));
        let mut columns: BTreeSet<&str> = self.rows.by.iter().map(String::as_str).collect();
        let mut within: Vec<(String, FetchedValue)> = Vec::new();
        for (rule, _) in self.reached.iter().filter(|(_, rows)| is_reached(rows)) {
            if rule.inside.is_whole() {
                columns
                    .extend(rule.columns.iter().chain(rule.of.is_none().then_some(&rule.column)).map(String::as_str));
            } else if let Some(raw) = image.get(&rule.column) {
                let own = texts_of(raw, &rule.inside).into_iter().find(|text| subject.contains(text));
                let path = rule.inside.path.as_ref().map(|path| format!("{}.{path}", rule.column));
                let name = path.unwrap_or_else(|| rule.column.clone());
                within.extend(own.map(|own| (name, FetchedValue::Text(own))));
            }
        }
        let people = |name: &str| self.others.people.iter().any(|column| column == name);
        image.0.retain(|(name, raw)| columns.contains(&**name) && !(people(name) && is_another(raw, subject)));
        image.0.extend(within.into_iter().map(|(name, value)| (name.into(), value)));
        true
    }
}

impl OtherPeople {
    fn of(snapshot: &Snapshot<'_>, graph: &Graph, table: &TableName) -> Self {
        let rules = || graph.rules.iter().filter(|rule| TableName::of(&rule.table) == *table);
        let people = naming_columns(snapshot.store, &graph.relations).people.into_iter();
        let people = people.filter(|(of, _)| of == table).map(|(_, column)| column).collect();
        let is_owned = |of: &TableKey| graph.owner_rules(&TableName::of(of)).next().is_some();
        let links = rules().filter(|rule| rule.of.as_ref().is_some_and(is_owned) && rule.inside.is_whole());
        let links = links.map(|rule| (rule.column.clone(), graph.texts_by(rule, &[], 0))).collect();
        OtherPeople { people, owners: rules().filter(|rule| names_owner(rule)).cloned().collect(), links }
    }

    /// Whether a row names someone else, or depends on a row that is not the person's.
    fn have(&self, image: &Image, subject: &[String]) -> bool {
        let of_others = |(column, own): &(String, IdSet)| {
            let items = image.get(column).map(|raw| listed(raw.clone(), false)).unwrap_or_default();
            let mut ids = items.iter().filter_map(as_text).filter(|id| !id.is_empty());
            ids.any(|id| !own.contains(&id) && !subject.contains(&id))
        };
        let names = |rule: &BoundRule| {
            let raw = image.get(&rule.column);
            raw.is_some_and(|raw| others_within(raw, rule, subject).next().is_some())
        };
        self.people.iter().filter_map(|column| image.get(column)).any(|raw| is_another(raw, subject))
            || self.owners.iter().any(names)
            || self.links.iter().any(of_others)
    }
}

/// Whether a value of a column for people is the id of someone else.
fn is_another(raw: &FetchedValue, subject: &[String]) -> bool {
    as_text(raw).is_some_and(|id| !id.is_empty() && !subject.contains(&id))
}

/// Digest of a key, the same whether it was read alone or within the image of its row.
fn key_digest<'v>(key: impl Iterator<Item = &'v FetchedValue>) -> [u64; 2] {
    let spelled = |value: &FetchedValue| match value {
        FetchedValue::Bytes(bytes) => FetchedValue::Text(format!("\\x{}", hex::encode(bytes))),
        value => value.clone(),
    };
    row_digest(&key.map(spelled).collect::<Vec<_>>())
}
