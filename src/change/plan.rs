//! Plan and receipt of a change: its expected and actual effects as plain data, the same for console, commands and
//! files.

pub mod erasure;
pub mod migration;
pub mod past;
pub mod trail;

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::operation::Operation;
use super::{ChangeError, ChangeSide};
use crate::memory::{Entity, Row};
use crate::store::fetched::FetchedValue;
use crate::store::own::TRAIL;
use crate::store::row_list::row_digest;
use crate::store::stored::{Mutation, RowWatch};
use trail::EntryFacts;

/// Most changes in a printed plan.
pub const SHOWN: usize = 50;

/// Prefix of the disclosure that no anchor of a change could be stored.
pub const NO_ANCHOR: &str = "its anchor could not be stored outside the database";

/// Degree of care that a change requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeDanger {
    /// The change only adds, or can easily be undone.
    Safe,
    /// The change alters or deletes data that someone wrote.
    Guarded,
    /// The change cannot be undone, or affects very much.
    Grave,
}

/// Number of inserted, updated and deleted rows, by table.
pub type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// One row before and after, in canonical columns; null if it does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Entity of the row.
    pub entity: String,
    /// Id of the row.
    pub id: String,
    /// Columns that change, before.
    pub before: ChangeSide,
    /// The row after the change.
    pub after: ChangeSide,
}

impl Change {
    /// Masks the id and both sides. `masked` masks a row of the change's entity.
    pub fn mask(&mut self, mut masked: impl FnMut(&mut Row)) {
        // Plan files may name any entity; an unknown one is not shown.
        let Some(entity) = Entity::parse(&self.entity) else {
            (self.before, self.after) = (ChangeSide::default(), ChangeSide::default());
            return;
        };
        let mut named = Row::with(entity, [("id", Value::from(self.id.as_str()))]);
        masked(&mut named);
        if let Some(id) = named.get("id").as_str() {
            id.clone_into(&mut self.id);
        }
        for side in [&mut self.before, &mut self.after] {
            side.mask(entity, &mut masked);
        }
    }
}

/// Plan of a change: its expected effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// SHA-256 over everything else, in hexadecimal.
    pub plan_id: String,
    /// Name of the operation, such as `feedback.edit`.
    pub operation: String,
    /// Degree of care that the change requires.
    pub danger: ChangeDanger,
    /// Rows by table.
    pub counts: Counts,
    /// The first rows before and after.
    pub changes: Vec<Change>,
    /// Total number of rows that change.
    pub changes_total: usize,
    /// Further effects of the change, for users.
    pub effects: Vec<String>,
    /// Facts to know before the change is made, for users.
    pub disclosures: Vec<String>,
    /// Time when the plan was made.
    pub created_at: String,
    /// Database that it is for.
    pub database_id: String,
    /// Facts for the public part of the audit entry.
    pub facts: Value,
    /// Reason why the change cannot be undone; `None` if it can.
    pub undo_reason: Option<String>,
    /// The reason given with the plan.
    pub reason: Option<String>,
    /// The ticket given with the plan.
    pub ticket: Option<String>,
    /// Rows that were read to make the plan.
    pub watches: Vec<RowWatch>,
    /// The changes themselves.
    pub mutations: Vec<Mutation>,
    /// Rows for the memory's own audit trail, which stay if the change is undone.
    pub trail: Vec<Mutation>,
    /// Rows for that trail should the change be undone.
    pub undo_trail: Vec<Mutation>,
    /// The rules that select the rows, if remaining rows matter too: a stored plan checks them again before it is
    /// applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Operation>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Counts of all mutations. A row that changes twice is one row.
    pub fn count<'m>(mutations: impl IntoIterator<Item = &'m Mutation>) -> Counts {
        let (mut counts, mut updated) = (Counts::new(), HashSet::new());
        for mutation in mutations {
            if let Mutation::Update { table, key, .. } = mutation {
                let key: Vec<FetchedValue> = key.iter().map(|(_, value)| value.clone()).collect();
                if !updated.insert((table, row_digest(&key))) {
                    continue;
                }
            }
            let (verb, rows) = mutation.count();
            *counts.entry(mutation.table().title()).or_default().entry(verb.to_owned()).or_default() += rows;
        }
        counts
    }

    /// The id that belongs to the rest of the plan.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        self.each_part(false, |part| hash.update(part));
        hex::encode(hash.finalize())
    }

    /// The file form of the plan: canonical JSON, on one line.
    pub fn to_file(&self) -> String {
        let mut text = String::new();
        self.each_part(true, |part| text.push_str(part));
        text + "\n"
    }

    /// Passes on the canonical JSON of the plan, with or without its id, part by part: its lists may be very long.
    fn each_part(&self, with_id: bool, mut take: impl FnMut(&str)) {
        let mut short = json!({
            "operation": self.operation, "danger": self.danger, "counts": self.counts,
            "changes_total": self.changes_total, "effects": self.effects, "disclosures": self.disclosures,
            "created_at": self.created_at, "database_id": self.database_id, "facts": self.facts,
            "undo_reason": self.undo_reason, "reason": self.reason, "ticket": self.ticket,
        });
        if let Some(rules) = &self.rules {
            short["rules"] = json!(rules);
        }
        if with_id {
            short["plan_id"] = json!(self.plan_id);
        }
        let long = ["changes", "mutations", "trail", "undo_trail", "watches"];
        let mut names: Vec<&str> =
            short.as_object().into_iter().flat_map(|short| short.keys()).map(String::as_str).collect();
        names.extend(long);
        names.sort_unstable();
        for (i, name) in names.into_iter().enumerate() {
            take(if i == 0 { "{\"" } else { ",\"" });
            take(name);
            take("\":");
            match name {
                "changes" => each_item(&self.changes, &mut take),
                "mutations" => each_item(&self.mutations, &mut take),
                "trail" => each_item(&self.trail, &mut take),
                "undo_trail" => each_item(&self.undo_trail, &mut take),
                "watches" => each_item(&self.watches, &mut take),
                _ => take(&canonical(&short[name])),
            }
        }
        take("}");
    }

    /// Reads a stored plan.
    ///
    /// # Errors
    /// [`ChangeError::Usage`] if it is not a plan, was changed, or writes something it does not list.
    pub fn from_file(text: &str) -> Result<Plan, ChangeError> {
        let plan: Plan = serde_json::from_str(text)
            .map_err(|e| ChangeError::Usage(format!("this is not a plan written by --plan-out: {e}")))?;
        if plan.digest() != plan.plan_id {
            return Err(ChangeError::Usage(format!(
                "the plan was changed after it was made: its contents do not match its id {}; make a new one",
                plan.plan_id
            )));
        }
        plan.tells_what_it_does()?;
        Ok(plan)
    }

    /// Checks that a stored plan lists all its changes, since its reader may have seen nothing else, and that it does
    /// not write the audit trail.
    fn tells_what_it_does(&self) -> Result<(), ChangeError> {
        let mut writes = self.mutations.iter().chain(&self.trail);
        let why = if Plan::count(writes.clone()) != self.counts {
            "its counts do not match the rows that it writes"
        } else if writes.any(|write| TRAIL.iter().any(|own| write.table().name.eq_ignore_ascii_case(own))) {
            "it writes into the audit trail"
        } else if self.forges() {
            "it claims to be something that only the trail's own entries are"
        } else {
            return Ok(());
        };
        Err(ChangeError::Usage(format!("this is not a plan written by --plan-out: {why}; make a new one")))
    }

    /// Whether its entry would be read as one that redacts, erases or migrates, or as the undo of another.
    fn forges(&self) -> bool {
        let facts = EntryFacts::of(&self.facts);
        let name = self.operation.as_str();
        name == "migrate"
            || name.starts_with("audit.")
            || name.starts_with("purge")
            || !facts.redacts.is_empty()
            || !facts.migrations.is_empty()
            || facts.receipt_sha256.is_some()
            || facts.undo_of.is_some() && name != "undo"
    }

    /// SHA-256 of what was read, in hexadecimal.
    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        each_item(&self.watches, &mut |part| hash.update(part));
        hex::encode(hash.finalize())
    }

    /// The shape that commands print.
    pub fn into_shown(mut self) -> ShownPlan {
        let fingerprint = self.fingerprint();
        self.changes.truncate(SHOWN);
        ShownPlan {
            plan_id: self.plan_id,
            operation: self.operation,
            danger: self.danger,
            counts: self.counts,
            changes_shown: self.changes.len(),
            changes: self.changes,
            changes_total: self.changes_total,
            effects: self.effects,
            disclosures: self.disclosures,
            created_at: self.created_at,
            database_id: self.database_id,
            fingerprint,
            more: Map::new(),
        }
    }
}

/// A plan as commands print it.
#[derive(Debug, Serialize)]
pub struct ShownPlan {
    /// See [`Plan`].
    pub plan_id: String,
    /// See [`Plan`].
    pub operation: String,
    /// See [`Plan`].
    pub danger: ChangeDanger,
    /// See [`Plan`].
    pub counts: Counts,
    /// The first of [`SHOWN`].
    pub changes: Vec<Change>,
    /// Number of shown changes.
    pub changes_shown: usize,
    /// See [`Plan`].
    pub changes_total: usize,
    /// See [`Plan`].
    pub effects: Vec<String>,
    /// See [`Plan`].
    pub disclosures: Vec<String>,
    /// See [`Plan`].
    pub created_at: String,
    /// See [`Plan`].
    pub database_id: String,
    /// SHA-256 of what was read, in hexadecimal.
    pub fingerprint: String,
    /// Members that only some commands print.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Receipt of a change: its effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Identity of the receipt, also in the audit entry.
    pub receipt_id: String,
    /// The plan.
    pub plan_id: String,
    /// Name of the operation that was carried out.
    pub operation: String,
    /// `applied`, or `nothing to do`.
    pub status: String,
    /// Rows by table, as planned.
    pub counts: Counts,
    /// The rows before and after.
    pub changes: Vec<Change>,
    /// Total number of rows that changed.
    pub changes_total: usize,
    /// Further effects that the change had.
    pub effects: Vec<String>,
    /// Facts to know about the change.
    pub disclosures: Vec<String>,
    /// Time when the change was made.
    pub applied_at: String,
    /// Number of the audit entry.
    pub audit_seq: Option<i64>,
    /// The command that undoes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Reason why there is no command to undo the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_reason: Option<String>,
}

/// SHA-256 of a value's canonical JSON, in hexadecimal digits.
pub fn digest_of(value: &impl Serialize) -> String {
    let mut hash = Sha256::new();
    each_sorted(&plain(value), &mut |part| hash.update(part));
    hex::encode(hash.finalize())
}

/// Passes on the canonical JSON of a list, item by item.
fn each_item(items: impl IntoIterator<Item: Serialize>, take: &mut dyn FnMut(&str)) {
    take("[");
    for (i, item) in items.into_iter().enumerate() {
        take(if i == 0 { "" } else { "," });
        let text = plain(&item);
        // It may be long.
        drop(item);
        each_sorted(&text, take);
    }
    take("]");
}

/// As [`canonical`], for a list of which only one item is held in memory.
pub fn canonical_list(items: impl IntoIterator<Item: Serialize>) -> String {
    let mut text = String::new();
    each_item(items, &mut |part| text.push_str(part));
    text
}

/// SHA-256 of the canonical JSON of several values, one per line. Only one of them is held in memory.
pub fn digest_of_each(values: impl Iterator<Item = Value>) -> String {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(canonical(&value));
        hash.update("\n");
    }
    hex::encode(hash.finalize())
}

/// JSON with sorted keys and no whitespace: equal values always give the same text.
pub fn canonical(value: &impl Serialize) -> String {
    let text = plain(value);
    let mut sorted = String::with_capacity(text.len());
    each_sorted(&text, &mut |part| sorted.push_str(part));
    sorted
}

/// JSON without whitespace. For very many rows, a tree of values would take many times the memory.
fn plain(value: &impl Serialize) -> String {
    // The length is counted first: a growing text takes up to three times the memory for a while.
    let mut text = Vec::with_capacity(json_length(value));
    _ = serde_json::to_writer(&mut text, value);
    String::from_utf8(text).unwrap_or_default()
}

/// Bytes of a value as JSON without blanks.
pub fn json_length(value: &impl Serialize) -> usize {
    let mut length = ByteCount(0);
    _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// Counts written bytes and discards them.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes on JSON without whitespace, with sorted keys.
fn each_sorted(text: &str, take: &mut dyn FnMut(&str)) {
    match text.as_bytes().first() {
        Some(b'{') => {
            let object: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
            take("{");
            for (i, (key, item)) in object.into_iter().enumerate() {
                take(if i == 0 { "" } else { "," });
                take(&Value::from(key).to_string());
                take(":");
                each_sorted(item.get(), take);
            }
            take("}");
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            take("[");
            for (i, item) in items.into_iter().enumerate() {
                take(if i == 0 { "" } else { "," });
                each_sorted(item.get(), take);
            }
            take("]");
        }
        _ => take(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fetched::FetchedValue;

    #[test]
    fn canonical_json_is_sorted_and_has_no_blanks() {
        let value: Value = serde_json::from_str(r#" { "b" : [ 1 , {"z":0.1, "a":null} ], "a" : "x y" } "#).unwrap();
        assert_eq!(canonical(&value), r#"{"a":"x y","b":[1,{"a":null,"z":0.1}]}"#);
    }

    #[test]
    fn a_kept_plan_is_its_canonical_json_and_comes_back() {
        let table = crate::store::stored::TableName::new("main", "cases");
        let rows = crate::store::stored::StoredRows::with(&table, "id", FetchedValue::Text("c \"1\"".to_owned()));
        let state = crate::store::stored::ReadState::of(&[], vec!["id".to_owned()]);
        let change = Change {
            entity: "case".into(),
            id: "c".into(),
            before: json!({"b": 1, "a": null}).into(),
            after: json!(2).into(),
        };
        let mut plan = Plan {
            plan_id: String::new(),
            operation: "prune".to_owned(),
            danger: ChangeDanger::Guarded,
            counts: Plan::count(&[Mutation::Delete(rows.clone())]),
            changes: vec![change.clone(), change],
            changes_total: 2,
            effects: vec!["one goes".to_owned()],
            disclosures: Vec::new(),
            created_at: "2026-02-04T10:00:00.000000Z".to_owned(),
            database_id: "d".to_owned(),
            facts: json!({"banks": 1}),
            undo_reason: None,
            reason: Some("because".to_owned()),
            ticket: None,
            rules: None,
            watches: vec![RowWatch { rows: rows.clone(), state }],
            mutations: vec![Mutation::Delete(rows)],
            trail: Vec::new(),
            undo_trail: Vec::new(),
        };
        let mut whole = json!(plan);
        assert_eq!(plan.to_file(), canonical(&whole) + "\n");
        whole.as_object_mut().unwrap().remove("plan_id");
        assert_eq!(plan.digest(), digest_of(&whole));
        assert_eq!(plan.fingerprint(), digest_of(&json!(plan.watches)));
        plan.plan_id = plan.digest();
        assert_eq!(Plan::from_file(&plan.to_file()).unwrap(), plan);
        assert!(Plan::from_file(&plan.to_file().replace("because", "for fun")).is_err());
    }

    #[test]
    fn a_masked_change_shows_nobody_even_when_its_entity_is_unknown() {
        let mask = crate::memory::mask::Mask::new([7; 32]);
        let change = |entity: &str| Change {
            entity: entity.to_owned(),
            id: "maria".to_owned(),
            before: json!({ "user_id": "maria", "title": "Call Maria" }).into(),
            after: ChangeSide::default(),
        };
        for (entity, id) in [("subject", None), ("episode", Some("maria")), ("ledger", Some("maria"))] {
            let mut masked = change(entity);
            masked.mask(|row| mask.row(row));
            assert_eq!(masked.id == "maria", id.is_some(), "{entity}");
            let shown = masked.before.to_string().to_lowercase();
            assert!(!shown.contains("maria"), "{entity}: {shown}");
        }
    }
}
