//! The list that detects an erased person's return: HMACs of handles, with a key stored outside the database.

use std::collections::HashSet;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use unicode_normalization::UnicodeNormalization as _;

use super::{ChangeError, Plan};
use crate::memory::Row;
use crate::memory::agreeing;
use crate::memory::json::{JsonPart, each_text};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation, TableName};
use crate::store::{Store, StoreError};

const TAG: &[u8] = b"mnemoscope suppression 1\n";

/// The key for the HMACs of handles.
pub type Key = [u8; 32];

/// Computes HMACs of many handles, with the key prepared once.
pub struct HandleHashes(Option<Hmac<Sha256>>);

impl HandleHashes {
    /// Those with a key.
    pub fn new(key: &Key) -> Self {
        // HMAC takes keys of any length.
        HandleHashes(Hmac::new_from_slice(key).ok().map(|mac| mac.chain_update(TAG)))
    }

    /// HMAC-SHA256 of a handle, in any case and composition of its letters, in hexadecimal digits.
    pub fn of(&self, handle: &str) -> String {
        let Some(mac) = self.0.clone() else { return String::new() };
        let letters = handle.trim().nfc().collect::<String>().to_lowercase();
        hex::encode(mac.chain_update(letters).finalize().into_bytes())
    }
}

/// As [`HandleHashes::of`], for one handle.
pub fn hmac(key: &Key, handle: &str) -> String {
    HandleHashes::new(key).of(handle)
}

/// The words of a text that may be handles: all of it, its parts between blanks and quotes, and what these are made of next to
/// `=` and `&`. What is next to `:` or `/` may be part of an id of someone else, such as `telegram:ann`.
pub fn candidates(text: &str) -> HashSet<&str> {
    let mut words: HashSet<&str> = HashSet::new();
    if text.len() <= 320 {
        words.insert(text.trim());
    }
    let parting = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | '\\')
    };
    let joining = |c: char| matches!(c, '=' | '&');
    let parts = text.split(parting).flat_map(|word| std::iter::once(word).chain(word.split(joining)));
    for word in parts.filter(|w| (3..=320).contains(&w.len())) {
        words.insert(word);
        words.insert(word.trim_matches(|c: char| matches!(c, '.' | ':' | '!' | '?')));
    }
    words
}

/// The erased people that a database lists, to be noticed by their handles.
#[derive(Debug)]
pub struct Erased<'s> {
    key: &'s Key,
    listed: HashSet<String>,
}

impl<'s> Erased<'s> {
    /// The erased people of a database; `None` if nobody is listed, or the key to recognize them is missing.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(store: &'s Store) -> Result<Option<Erased<'s>>, ChangeError> {
        let Some(key) = store.records().secret() else { return Ok(None) };
        let listed = store.records().suppressions().await?;
        Ok((!listed.is_empty()).then_some(Erased { key, listed }))
    }

    /// Whether a handle is one of theirs.
    pub fn lists(&self, handle: &str) -> bool {
        self.listed.contains(&hmac(self.key, handle))
    }

    /// Returns those of the given people whose erasure kept their account with the application.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn left_accounts(&self, store: &Store, ids: &[String]) -> Result<HashSet<String>, StoreError> {
        let erasure = &store.recognised().erasure;
        let accounts: Vec<String> =
            erasure.accounts.iter().map(|a| TableName::new(&a.table.0, &a.table.1).title()).collect();
        let mut left = HashSet::new();
        for id in ids.iter().filter(|id| !accounts.is_empty() && self.lists(id)) {
            let purge = store.records().purge_of(&hmac(self.key, id)).await?;
            if purge.is_some_and(|purge| !accounts.iter().any(|table| purge.took_from(table))) {
                left.insert(id.clone());
            }
        }
        Ok(left)
    }

    /// Whether the erasure of a person is unfinished because a hold keeps the rest.
    async fn waits(&self, store: &Store, person: Option<String>) -> Result<bool, StoreError> {
        let Some(person) = person else { return Ok(false) };
        let purge = store.records().purge_of(&hmac(self.key, &person)).await?;
        Ok(purge.is_some_and(|purge| purge.is_open()))
    }

    /// Whether a text names one of them.
    pub fn is_in(&self, text: &str) -> bool {
        candidates(text).into_iter().any(|word| self.listed.contains(&hmac(self.key, word)))
    }

    /// Whether a text within a part of a row does.
    pub fn is_within(&self, part: JsonPart<'_>) -> bool {
        match part {
            JsonPart::Value(value) => self.is_within_value(value),
            JsonPart::Document(text) => {
                let mut is_named = false;
                let read = each_text(text, &mut |part| is_named |= self.is_in(part.text()));
                is_named || read.is_err()
            }
        }
    }

    fn is_within_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_in(text),
            Value::Array(items) => items.iter().any(|item| self.is_within_value(item)),
            Value::Object(object) => object.iter().any(|(key, item)| self.is_in(key) || self.is_within_value(item)),
            _ => false,
        }
    }

    /// Whether a row belongs to one of them, by its user.
    pub fn owns(&self, row: &Row) -> bool {
        row.text("user_id").is_some_and(|user| self.is_in(user))
    }
}

/// Returns the reason why people who were erased here cannot all be recognized; `None` if they can, or if nobody was
/// erased.
///
/// # Errors
/// The engine's refusal.
pub async fn unknown(store: &Store) -> Result<Option<String>, StoreError> {
    let records = store.records();
    let unlisted = match records.unlisted_purges().await {
        Err(StoreError::Denied { reason, remedy }) => return Ok(Some(format!("{reason}; {remedy}"))),
        unlisted => unlisted?,
    };
    if unlisted > 0 {
        return Ok(Some(agreeing(
            unlisted,
            "the list of {#} {erasure is|erasures are} missing from memory_suppressions: the return of {its \
             person|their people} cannot be detected",
        )));
    }
    if let Some(key) = records.secret() {
        let hashes = HandleHashes::new(key);
        let purges = match records.keyed_purges().await {
            Err(StoreError::Denied { reason, remedy }) => return Ok(Some(format!("{reason}; {remedy}"))),
            purges => purges?,
        };
        let others = purges.iter().filter(|(session, hash)| hashes.of(session) != *hash).count();
        return Ok((others > 0).then(|| {
            agreeing(
                others,
                "{#} {erasure was|erasures were} listed here with another `erasure.key`: the return of {its \
                 person|their people} can be detected only with the state folder of whoever erased them",
            )
        }));
    }
    let listed = match records.suppressions().await {
        Err(StoreError::Denied { reason, remedy }) => return Ok(Some(format!("{reason}; {remedy}"))),
        listed => listed?,
    };
    Ok((!listed.is_empty()).then(|| {
        "people were erased here, but the key that recognises them is missing: copy `erasure.key` from the state \
         folder of whoever erased them"
            .to_owned()
    }))
}

/// Refuses a plan that brings back an erased person, by a text of a new row or by a changed value. Without the key this
/// cannot be checked: the plan passes with a note.
///
/// # Errors
/// [`ChangeError::Refused`], or the engine's refusal.
pub async fn check(store: &Store, plan: &Plan) -> Result<Option<String>, ChangeError> {
    if !plan.mutations.iter().any(|m| matches!(m, Mutation::Insert { .. } | Mutation::Update { .. })) {
        return Ok(None);
    }
    let unknown =
        unknown(store).await?.map(|why| format!("cannot tell whether it brings back an erased person: {why}"));
    let Some(erased) = Erased::of(store).await? else { return Ok(unknown) };
    let text = |cell: &Cell| match cell.at("") {
        FetchedValue::Text(text) => Some(text),
        _ => None,
    };
    let mut returning = 0;
    for mutation in &plan.mutations {
        returning += match mutation {
            Mutation::Insert { table, rows, .. } => {
                let is_back = |row: &&Vec<Cell>| row.iter().filter_map(text).any(|text| erased.is_in(&text));
                let held = rows.first().filter(|_| table.name == "memory_holds").and_then(|row| text(row.first()?));
                if erased.waits(store, held).await? { 0 } else { rows.iter().filter(is_back).count() }
            }
            // A longer text may name them since before.
            Mutation::Update { set, .. } => {
                usize::from(set.iter().filter_map(|(_, cell)| text(cell)).any(|text| erased.lists(&text)))
            }
            Mutation::Delete(_) | Mutation::Revise(_) => 0,
        };
    }
    if returning == 0 {
        return Ok(unknown);
    }
    Err(ChangeError::Refused(agreeing(
        returning,
        "{#} {row|rows} would bring back a person who was erased here: remove {it|them} from what you write, or ask \
         whoever requested the erasure",
    )))
}
