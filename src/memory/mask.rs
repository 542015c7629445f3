//! Replaces personal values: equal values get the same pseudonym, and none can be reversed.

use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use serde_json::{Map, Value};
use sha2::Sha256;

use super::entity::Personal;
use super::json::JsonPart;
use super::row::Row;

/// Bytes up to which each part of a JSON document is masked.
const WHOLE: usize = 1 << 20;

/// Prefix of a sealed cursor, which no plain one has. It forms one word with the rest, so that no handle is found in
/// it.
const SEALED: &str = "sealed";

/// Cursors are padded to a multiple of this many bytes before sealing, so that their length does not identify a row.
const FILLED: usize = 128;

/// Replaces personal values by stable pseudonyms.
#[derive(Clone, PartialEq, Eq)]
pub struct Mask {
    key: [u8; 32],
}

/// The key is a secret: it never reaches a log or a bug report.
impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").finish_non_exhaustive()
    }
}

impl Mask {
    /// Creates a mask with a secret key; the same key gives the same pseudonyms.
    pub fn new(key: [u8; 32]) -> Self {
        Mask { key }
    }

    /// Masks the personal values of a row, including its problems.
    pub fn row(&self, row: &mut Row) {
        for (at, column) in row.entity.columns().iter().enumerate() {
            if column.personal == Personal::No {
                continue;
            }
            // A longer document becomes one placeholder, without parsing it.
            if matches!(row.part(at), JsonPart::Document(text) if text.len() < WHOLE) {
                let value = row.take(column.name);
                row.set(column.name, value);
            }
            row.unparsed.retain(|it| it.at != at);
            match column.personal {
                Personal::Identity => self.identity(column.name, &mut row.values[at]),
                _ => self.content(&mut row.values[at]),
            }
        }
        for problem in &mut row.problems {
            problem.raw = self.stand_in(&problem.raw);
        }
    }

    /// Pseudonym of a name or id: `person-1a2b3c4d`, or `session-…` in a session column.
    pub fn pseudonym(&self, column: &str, text: &str) -> String {
        let kind = if column.starts_with("session") { "session" } else { "person" };
        format!("{kind}-{}", self.digest(text))
    }

    /// Encrypts a cursor, so that nobody without the key can tell its row; equal cursors give equal results. `None` if
    /// encryption fails.
    pub fn sealed(&self, cursor: &str) -> Option<String> {
        let mut bytes = cursor.as_bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(FILLED), b' ');
        let cipher = self.cipher()?;
        // Derived from the text, so that different texts have different nonces.
        let nonce: [u8; 12] = self.mac(&[b"nonce of a cursor ", &bytes])?[..12].try_into().ok()?;
        cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes).ok()?;
        Some(format!("{SEALED}{}{}", hex::encode(nonce), hex::encode(bytes)))
    }

    /// Whether a cursor was sealed, by any key.
    pub fn is_sealed(cursor: &str) -> bool {
        cursor.trim().starts_with(SEALED)
    }

    /// Decrypts a sealed cursor; `None` if it was changed, or sealed by another key.
    pub fn opened(&self, sealed: &str) -> Option<String> {
        let bytes = hex::decode(sealed.trim().strip_prefix(SEALED)?).ok()?;
        let (nonce, rest) = bytes.split_first_chunk()?;
        let mut rest = rest.to_vec();
        let text = self.cipher()?.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut rest).ok()?;
        Some(std::str::from_utf8(text).ok()?.trim_end().to_owned())
    }

    /// The cipher for cursors, with a key derived for it.
    fn cipher(&self) -> Option<LessSafeKey> {
        let key = self.mac(&[b"key of cursors"])?;
        UnboundKey::new(&CHACHA20_POLY1305, &key).ok().map(LessSafeKey::new)
    }

    /// Masks a value of unknown meaning.
    pub fn unknown(&self, value: &mut Value) {
        self.content(value);
    }

    fn identity(&self, column: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.pseudonym(column, text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.identity(column, item)),
            Value::Object(object) => object.values_mut().for_each(|item| self.identity(column, item)),
            _ => {}
        }
    }

    fn content(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.stand_in(text),
            // A number may be an income or a telephone number.
            Value::Number(number) => *value = Value::from(self.stand_in(&number.to_string())),
            Value::Array(items) => items.iter_mut().for_each(|item| self.content(item)),
            Value::Object(object) => {
                let mut masked = Map::new();
                for (key, mut item) in std::mem::take(object) {
                    self.content(&mut item);
                    masked.insert(if is_plain_key(&key) { key } else { self.digest(&key) }, item);
                }
                *object = masked;
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `‹83 characters 1a2b3c4d›`; an empty text stays empty.
    fn stand_in(&self, text: &str) -> String {
        match text.chars().count() {
            0 => String::new(),
            n => format!("‹{n} characters {}›", self.digest(text)),
        }
    }

    fn digest(&self, text: &str) -> String {
        self.mac(&[text.as_bytes()]).map_or_else(|| "masked".to_owned(), |mac| hex::encode(&mac[..4]))
    }

    fn mac(&self, parts: &[&[u8]]) -> Option<[u8; 32]> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        parts.iter().for_each(|part| mac.update(part));
        Some(mac.finalize().into_bytes().into())
    }
}

/// Whether a JSON key is a field's name rather than data.
fn is_plain_key(key: &str) -> bool {
    key.len() <= 40
        && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Entity;
    use serde_json::json;

    fn masked(key: u8) -> Row {
        let mut row = Row::empty(Entity::Episode);
        row.set("id", json!("ep-1"));
        row.set("user_id", json!("maria"));
        row.set("participants", json!(["maria", "ravi"]));
        row.set("title", json!("Call Maria on +49 30 123"));
        row.set("metadata", json!({"values": {"income": 96314, "maria@example.org": true}}));
        Mask::new([key; 32]).row(&mut row);
        row
    }

    #[test]
    fn the_same_person_has_the_same_pseudonym_in_every_column_and_none_is_readable() {
        let row = masked(1);
        assert_eq!(row.id(), "ep-1");
        assert_eq!(row.get("user_id"), &row.get("participants")[0]);
        assert_ne!(row.get("participants")[0], row.get("participants")[1]);
        let all = row.to_json().to_string();
        for secret in ["maria", "Maria", "ravi", "123", "96314"] {
            assert!(!all.contains(secret), "{secret} is still in {all}");
        }
    }

    #[test]
    fn another_key_gives_other_pseudonyms() {
        assert_ne!(masked(1).get("user_id"), masked(2).get("user_id"));
        assert_eq!(masked(1), masked(1));
    }

    #[test]
    fn a_sealed_cursor_is_opened_by_its_key_alone_and_has_no_length_of_its_own() {
        let (mask, other) = (Mask::new([1; 32]), Mask::new([2; 32]));
        let sealed = mask.sealed("eyJpZCI6Im1hcmlhIn0").unwrap();
        assert!(Mask::is_sealed(&sealed) && sealed.chars().all(char::is_alphanumeric), "{sealed}");
        assert_eq!(sealed.len(), mask.sealed("eyJpZCI6InJhdmkifQ").unwrap().len());
        assert_eq!(mask.sealed("eyJpZCI6Im1hcmlhIn0").as_ref(), Some(&sealed));
        assert_eq!(mask.opened(&sealed).as_deref(), Some("eyJpZCI6Im1hcmlhIn0"));
        let cut = &sealed[..sealed.len() - 2];
        for wrong in [other.opened(&sealed), mask.opened(cut), mask.opened("sealed"), mask.opened("sealed-by")] {
            assert_eq!(wrong, None);
        }
    }
}
