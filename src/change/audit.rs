//! The audit trail: a hash chain over entries that contain only commitments to personal data, so that it reveals
//! tampering and still allows a person to be erased.

mod check;
pub mod lost;

use std::collections::{BTreeMap, HashMap};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use self::check::{RedactionClaims, TrailCheck};
use super::plan::canonical;
use super::plan::trail::{AuditFault, AuditVerdict, EntryFacts, ListedEntry};
use super::{ChangeError, FailedTransaction};
use crate::memory::text_check;
use crate::store::Store;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::own::{OwnTables, PrivateValue, STRIDE, TRAIL, TrailEntry};
use crate::store::scratch::scratch;
use crate::store::stored::{Cell, Mutation, StoredRows, TableName};
use crate::store::write::WriteTransaction;

/// Version of the entry format.
pub const SCHEMA: u32 = 1;

/// Action of the entry that claims redacted values.
pub const REDACT: &str = "audit.redact";

const ENTRY_TAG: &[u8] = b"mnemoscope audit entry 1\n";
const VALUE_TAG: &[u8] = b"mnemoscope audit value 1\n";

/// The hash before the first entry.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Readings of the trail if entries are appended meanwhile.
const TRIES: usize = 5;

/// An entry to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// Time of the entry, in the canonical spelling.
    pub at: String,
    /// Name of the actor.
    pub actor: String,
    /// Action that was done.
    pub action: String,
    /// Facts that are not personal.
    pub public: Value,
    /// JSON of the committed values, by field.
    pub private: BTreeMap<String, String>,
}

/// Hash of an entry: SHA-256(tag | number, 8 bytes big-endian | hash before | canonical JSON of the rest).
fn entry_hash(entry: &TrailEntry) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let mut hasher = Sha256::new();
    hasher.update(ENTRY_TAG);
    hasher.update(entry.seq.to_be_bytes());
    hasher.update(hex::decode(&entry.prev_hash).unwrap_or_else(|_| entry.prev_hash.clone().into_bytes()));
    // Public facts and commitments are stored as canonical JSON, so that exactly the stored bytes are hashed.
    let rest = format!(
        "[{},{},{},{},{},{}]",
        text(&entry.at),
        text(&entry.database_id),
        text(&entry.actor),
        text(&entry.action),
        entry.public,
        entry.commitments
    );
    hasher.update(rest.as_bytes());
    hex::encode(hasher.finalize())
}

/// Commitment to a value: HMAC-SHA256 under its salt over tag, field and the value's JSON text.
fn commitment(salt: &[u8], field: &str, value: &str) -> String {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(salt) else { return String::new() };
    mac.update(VALUE_TAG);
    mac.update(field.as_bytes());
    mac.update(b"\n");
    mac.update(value.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// Appends an entry within a transaction and returns its number. The head is locked last, until the transaction ends,
/// so there are no gaps or forks.
///
/// # Errors
/// [`ChangeError::Broken`] if the head is missing; otherwise the engine's refusal.
pub(in crate::change) async fn append(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    new: NewEntry,
) -> Result<i64, FailedTransaction> {
    let head = StoredRows::with(&own.table("memory_audit_head"), "id", writer.number(1));
    let images = writer.images(&head).await?;
    let gone = || ChangeError::Broken("the head of the audit trail is missing".to_owned());
    let Some((last, prev_hash)) =
        images.first().and_then(|i| Some((as_text(i.get("seq")?)?.parse::<i64>().ok()?, as_text(i.get("hash")?)?)))
    else {
        return Err(gone().into());
    };
    let seq = last.checked_add(1).ok_or_else(gone)?;
    let mut commitments = Map::new();
    let mut values = Vec::new();
    for (field, value) in new.private {
        let salt: [u8; 32] = rand::random();
        commitments.insert(field.clone(), Value::from(commitment(&salt, &field, &value)));
        values.push([hex::encode(salt), value, field]);
    }
    let mut entry = TrailEntry {
        seq,
        at: new.at,
        database_id: own.database_id.clone(),
        actor: new.actor,
        action: new.action,
        public: canonical(&new.public),
        commitments: canonical(&Value::Object(commitments)),
        prev_hash,
        hash: String::new(),
    };
    entry.hash = entry_hash(&entry);
    let seq_cell = writer.number(seq);
    writer.run(&insert_entry(own.table("memory_audit"), &entry, seq_cell.clone())).await?;
    if !values.is_empty() {
        let row = |[salt, value, field]: [String; 3]| {
            vec![seq_cell.clone().into(), cell(&field), cell(&salt), Cell::Is(FetchedValue::Text(value))]
        };
        let columns = ["seq", "field", "salt", "value"].map(str::to_owned).to_vec();
        let rows = values.into_iter().map(row).collect();
        let table = own.table("memory_audit_private");
        writer.run(&Mutation::Insert { table, key: Vec::new(), columns, rows }).await?;
    }
    let key = vec![("id".to_owned(), writer.number(1))];
    let set = vec![("seq".to_owned(), seq_cell.into()), ("hash".to_owned(), cell(&entry.hash))];
    writer.run(&Mutation::Update { table: head.table, key, set }).await?;
    Ok(seq)
}

fn insert_entry(table: TableName, entry: &TrailEntry, seq: FetchedValue) -> Mutation {
    let columns = ["seq", "at", "database_id", "actor", "action", "public", "commitments", "prev_hash", "hash"];
    let texts = [
        &entry.at, &entry.database_id, &entry.actor, &entry.action, &entry.public, &entry.commitments,
        &entry.prev_hash, &entry.hash,
    ];
    let row = std::iter::once(Cell::Is(seq)).chain(texts.into_iter().map(|t| cell(t))).collect();
    Mutation::Insert { table, key: Vec::new(), columns: columns.map(str::to_owned).to_vec(), rows: vec![row] }
}

fn cell(text: &str) -> Cell {
    Cell::Is(FetchedValue::Text(text.to_owned()))
}

/// Deletes private values and appends the entry that records this, in one transaction. The entry contains number and
/// field, never the person.
///
/// # Errors
/// As `append`; a missing value is an error too.
pub async fn redact(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    at: &str,
    actor: &str,
    values: &[(i64, String)],
    facts: &Map<String, Value>,
) -> Result<i64, FailedTransaction> {
    let keys = values.iter().map(|(seq, field)| vec![writer.number(*seq), FetchedValue::Text(field.clone())]).collect();
    let by = vec!["seq".to_owned(), "field".to_owned()];
    writer.run(&Mutation::Delete(StoredRows { table: own.table("memory_audit_private"), by, keys })).await?;
    let mut public = facts.clone();
    public.insert("operation".to_owned(), Value::from(REDACT));
    public.insert("schema".to_owned(), Value::from(SCHEMA));
    public.insert("redacts".to_owned(), json!(values));
    let entry = NewEntry {
        at: at.to_owned(),
        actor: actor.to_owned(),
        action: REDACT.to_owned(),
        public: Value::Object(public),
        private: BTreeMap::new(),
    };
    append(writer, own, entry).await
}

/// A point of the chain that was written down outside the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The database.
    pub database_id: String,
    /// Number of the last entry.
    pub seq: i64,
    /// Hash of the last entry.
    pub hash: String,
    /// Time when the anchor was written down.
    pub at: String,
}

/// The anchor for the current chain.
///
/// # Errors
/// [`ChangeError::Refused`] without a trail, [`ChangeError::Broken`] without its head.
pub async fn anchor(store: &Store) -> Result<Anchor, ChangeError> {
    let own = trail_of(store).await?;
    let Some((seq, hash)) = store.records().trail_head().await? else {
        return Err(ChangeError::Broken("the head of the audit trail is missing".to_owned()));
    };
    Ok(Anchor { database_id: own.database_id, seq, hash, at: super::now() })
}

/// Message if there is no audit trail yet; the console recognizes it and offers to create one.
pub const NO_TRAIL: &str = "has no audit trail yet";

async fn trail_of(store: &Store) -> Result<OwnTables, ChangeError> {
    let missing = missing_tables(store).await?;
    if !missing.is_empty() {
        return Err(ChangeError::Broken(lacking(&missing)));
    }
    match store.records().own().await?.map(OwnTables::read).transpose()? {
        Some(own) => Ok(own),
        None => Err(without(store, None, NO_TRAIL).await),
    }
}

/// The ticket of a change as a public fact of its entry. Public facts are never redacted, so secrets are refused.
pub fn told_ticket(ticket: &str) -> (String, Value) {
    ("ticket".to_owned(), Value::from(text_check::check(ticket).0))
}

/// The reason of a change among the private values of its entry.
pub fn told_reason(reason: &str) -> (String, String) {
    ("reason".to_owned(), Value::from(text_check::check(reason).0).to_string())
}

/// Refuses a database whose memory is outside PostgreSQL's search path.
///
/// # Errors
/// [`ChangeError::Refused`].
pub fn shown(store: &Store) -> Result<(), ChangeError> {
    let refused = |(reason, remedy)| ChangeError::Refused(format!("{}: {reason}: {remedy}", store.location()));
    store.left_out().map(refused).map_or(Ok(()), Err)
}

/// The error if some of our tables are missing: with the command that adds them, or the reason why they cannot be
/// added.
pub async fn without(store: &Store, own: Option<&OwnTables>, lacking: &str) -> ChangeError {
    if let Err(refused) = shown(store) {
        return refused;
    }
    match store.records().taken(own).await {
        Ok(None) => ChangeError::Refused(format!(
            "{} {lacking}; `{}` adds what is missing, and without --apply shows it",
            store.location(),
            store.invocation().line(["migrate", "--apply"])
        )),
        Ok(Some(taken)) => ChangeError::Refused(format!("{} cannot be changed: {taken}", store.location())),
        Err(error) => error.into(),
    }
}

/// Missing tables of the trail, if others exist.
///
/// # Errors
/// The engine's refusal.
pub async fn missing_tables(store: &Store) -> Result<Vec<&'static str>, ChangeError> {
    let there = store.records().trail_tables().await?;
    if !there.contains(&"memory_migrations") {
        // Other objects with such names are someone else's, as far as can be told.
        return Ok(Vec::new());
    }
    Ok(TRAIL.iter().copied().filter(|name| !there.contains(name)).collect())
}

fn lacking(tables: &[&str]) -> String {
    format!("tables of the audit trail are missing: {}", tables.join(", "))
}

/// Reads the whole trail and verifies it, against anchors if there are any.
///
/// # Errors
/// [`ChangeError::Refused`] without a trail; otherwise the engine's refusal.
pub async fn verify(store: &Store, anchors: &[Anchor]) -> Result<AuditVerdict, ChangeError> {
    walk(store, anchors, &|_| ()).await
}

/// As [`verify`]; `told` gets the number of entries read so far.
///
/// # Errors
/// As [`verify`].
pub async fn walk(
    store: &Store,
    anchors: &[Anchor],
    told: &(dyn Fn(usize) + Sync),
) -> Result<AuditVerdict, ChangeError> {
    let own = trail_of(store).await?;
    let mut head = store.records().trail_head().await?;
    for _ in 0..TRIES {
        let claims = claims(store).await?;
        let mut check = TrailCheck::new(&own.database_id, anchors, claims)?;
        read_through(store, &mut check, told).await?;
        let lost = lost::faults(store).await?;
        let after = store.records().trail_head().await?;
        if after == head {
            let mut verdict = check.end(head.as_ref())?;
            verdict.ok &= lost.is_empty();
            verdict.faults.extend(lost);
            verdict.faults.sort_by_key(|fault| fault.seq);
            return Ok(verdict);
        }
        head = after;
    }
    Err(ChangeError::Failed("the trail grows faster than it can be read; try again at a quieter time".to_owned()))
}

/// Private values that entries declare redacted.
async fn claims(store: &Store) -> Result<RedactionClaims, ChangeError> {
    let mut claims = RedactionClaims::new(scratch);
    let mut after = None;
    loop {
        let entries = store.records().trail_of(REDACT, after, STRIDE).await?;
        entries.iter().for_each(|entry| claims.entry(entry));
        match entries.last() {
            Some(last) if entries.len() == STRIDE => after = Some(last.seq),
            _ => return Ok(claims),
        }
    }
}

/// Passes the trail to a check, some entries at a time, each with its private values.
async fn read_through(
    store: &Store,
    check: &mut TrailCheck<'_>,
    told: &(dyn Fn(usize) + Sync),
) -> Result<(), ChangeError> {
    // Numbers below 1 are not ours, but they must not hide either.
    let (mut after, mut read) = (None, 0);
    loop {
        let entries = store.records().trail(after, STRIDE).await?;
        entries.iter().for_each(|entry| check.entry(entry));
        read += entries.len();
        told(read);
        let next = entries.last().map(|last| last.seq).filter(|_| entries.len() == STRIDE);
        store.records().each_private(after, next, |value| check.value(&value)).await?;
        check.part_ends();
        if next.is_none() {
            return Ok(());
        }
        after = next;
    }
}

/// The verdict on a database whose trail cannot be read.
pub fn unreadable(database_id: String, faults: Vec<AuditFault>) -> AuditVerdict {
    AuditVerdict {
        ok: false,
        entries: 0,
        database_id,
        head: None,
        anchored: None,
        redacted: 0,
        faults,
        notes: Vec::new(),
    }
}

/// The fault for missing tables.
pub fn missing(tables: &[&str]) -> AuditFault {
    fault("missing_table", 0, lacking(tables))
}

/// The fault for a missing trail with an existing anchor.
pub fn gone(anchor: &Anchor) -> AuditFault {
    let words = format!(
        "there is no audit trail; an anchor of {} saw entry {} of the trail {} here",
        anchor.at, anchor.seq, anchor.database_id
    );
    fault("missing_trail", 0, words)
}

fn fault(kind: &'static str, seq: i64, message: impl Into<String>) -> AuditFault {
    AuditFault { kind, seq, message: message.into() }
}

/// An entry with its private values, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedEntry {
    /// The entry.
    pub entry: TrailEntry,
    /// Public facts of the entry.
    pub public: Value,
    /// Private values of the entry, as JSON text by field: undo data may be large.
    pub private: BTreeMap<String, String>,
}

impl OpenedEntry {
    /// Reads the public facts.
    pub fn facts(&self) -> EntryFacts {
        EntryFacts::of(&self.public)
    }
}

/// Reads one entry; `None` if there is none with that number.
///
/// # Errors
/// [`ChangeError::Broken`] when it or one of its values was changed after it was written.
pub async fn open(store: &Store, seq: i64) -> Result<Option<OpenedEntry>, ChangeError> {
    trail_of(store).await?;
    let found = store.records().trail(seq.saturating_sub(1), 1).await?.into_iter().next();
    let Some(entry) = found.filter(|e| e.seq == seq) else { return Ok(None) };
    let values = store.records().trail_private(seq, seq, &[]).await?;
    if entry_hash(&entry) != entry.hash {
        return Err(changed_later(store, seq));
    }
    Ok(Some(opened(entry, values)?))
}

/// The entries after a number up to another one, in order, each with its undo data, verified.
///
/// # Errors
/// As [`open`].
pub async fn opened_between(store: &Store, after: i64, last: i64) -> Result<Vec<OpenedEntry>, ChangeError> {
    let most = usize::try_from(last - after).unwrap_or_default();
    let entries = store.records().trail(after, most).await?;
    let mut values: BTreeMap<i64, Vec<PrivateValue>> = BTreeMap::new();
    for value in store.records().trail_private(after + 1, last, &["undo"]).await? {
        values.entry(value.seq).or_default().push(value);
    }
    let open = |entry: TrailEntry| {
        if entry_hash(&entry) != entry.hash {
            return Err(changed_later(store, entry.seq));
        }
        let own = values.remove(&entry.seq).unwrap_or_default();
        opened(entry, own)
    };
    entries.into_iter().filter(|entry| entry.seq <= last).map(open).collect()
}

fn changed_later(store: &Store, seq: i64) -> ChangeError {
    ChangeError::Broken(format!(
        "entry {seq} was changed after it was written: do not rely on it. `{}` shows details",
        store.invocation().line(["audit", "verify"])
    ))
}

fn opened(entry: TrailEntry, values: Vec<PrivateValue>) -> Result<OpenedEntry, ChangeError> {
    let commitments: BTreeMap<String, String> = serde_json::from_str(&entry.commitments).unwrap_or_default();
    let mut private = BTreeMap::new();
    for value in values {
        let salt = hex::decode(&value.salt).unwrap_or_default();
        if commitments.get(&value.field) != Some(&commitment(&salt, &value.field, &value.value)) {
            return Err(ChangeError::Broken(format!(
                "the value `{}` of entry {} was changed after it was written; `audit verify` shows details",
                value.field, entry.seq
            )));
        }
        private.insert(value.field, value.value);
    }
    Ok(OpenedEntry { public: serde_json::from_str(&entry.public).unwrap_or_default(), entry, private })
}

/// The latest entries before a number, or of all, newest first.
///
/// # Errors
/// As [`list`]; [`ChangeError::Broken`] without a head.
pub async fn latest(store: &Store, before: Option<i64>, limit: usize) -> Result<Vec<ListedEntry>, ChangeError> {
    let head = anchor(store).await?.seq;
    let last = before.map_or(head, |before| before.saturating_sub(1).min(head));
    let after = last.saturating_sub(i64::try_from(limit).unwrap_or(i64::MAX)).max(0);
    let mut entries = list(store, after, limit).await?;
    entries.retain(|entry| entry.seq <= last);
    entries.reverse();
    Ok(entries)
}

/// Entries after a number with their displayable parts, in order.
///
/// # Errors
/// [`ChangeError::Refused`] without a trail; otherwise the engine's refusal.
pub async fn list(store: &Store, after: i64, limit: usize) -> Result<Vec<ListedEntry>, ChangeError> {
    trail_of(store).await?;
    let entries = store.records().trail(after, limit).await?;
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(Vec::new()) };
    // Undo data may be large, and is not shown.
    let values = store.records().trail_private(first.seq, last.seq, &["changes", "reason"]).await?;
    let values: HashMap<(i64, &str), &str> =
        values.iter().map(|v| ((v.seq, v.field.as_str()), v.value.as_str())).collect();
    let shown = |entry: &TrailEntry| {
        let of_entry = |field| values.get(&(entry.seq, field)).copied().unwrap_or("null");
        let public: Value = serde_json::from_str(&entry.public).unwrap_or_default();
        ListedEntry {
            seq: entry.seq,
            at: entry.at.clone(),
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            facts: EntryFacts::of(&public),
            public,
            reason: serde_json::from_str(of_entry("reason")).unwrap_or_default(),
            changes: serde_json::from_str(of_entry("changes")).ok(),
            hash: entry.hash.clone(),
        }
    };
    Ok(entries.iter().map(shown).collect())
}
