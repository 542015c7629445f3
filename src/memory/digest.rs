//! A short stand-in for an id, for very many rows: it takes 8 bytes, however long the id is.

/// Hash that replaces an id; never 0, which stands for none. Two ids among ten million have the same one once in 180,000
/// databases.
pub type Digest = u64;

/// Hashes an id.
#[must_use]
pub fn digest(id: &str) -> Digest {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish() | 1
}

/// Two hashes of an id, for where a mistake would change rows: no two ids of a database have both.
#[must_use]
pub fn wide_digest(id: &str) -> [Digest; 2] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (1_u8, id).hash(&mut hasher);
    [digest(id), hasher.finish() | 1]
}
