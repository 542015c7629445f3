//! Written forms of an id that is binary: programs store the sixteen bytes of a UUID as digits with or without hyphens,
//! or in base64.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use uuid::Uuid;

/// The bytes of an id that is a UUID, with or without hyphens.
pub fn bytes_of_id(id: &str) -> Option<[u8; 16]> {
    Uuid::try_parse(id.trim()).ok().map(Uuid::into_bytes)
}

/// The other texts that programs store for the same binary id; none if the id is not a UUID. Digits are in lower and in
/// upper case, base64 in both alphabets, with and without padding.
pub fn binary_forms(id: &str) -> Vec<String> {
    let Some(bytes) = bytes_of_id(id) else { return Vec::new() };
    let uuid = Uuid::from_bytes(bytes);
    let (hyphenated, digits) = (uuid.hyphenated().to_string(), uuid.simple().to_string());
    let mut all = vec![hyphenated, digits.to_uppercase(), digits];
    all.extend([&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD].map(|way| way.encode(bytes)));
    let own = id.trim();
    all.retain(|form| form != own && (!form.contains('-') || !form.eq_ignore_ascii_case(own)));
    all.sort_unstable();
    all.dedup();
    all
}
