//! A short hash that replaces an id when there are very many rows: 8 bytes, whatever the id's length.

/// Hash of an id; never 0, which means no id. Among ten million ids, two have the same hash in one of 180,000
/// databases.
pub type Digest = u64;

/// Hashes an id.
pub fn digest(id: &str) -> Digest {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish() | 1
}

/// Two hashes of an id, for cases in which a mix-up would change rows: together they are unique in a database.
pub fn wide_digest(id: &str) -> [Digest; 2] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (1_u8, id).hash(&mut hasher);
    [digest(id), hasher.finish() | 1]
}
