//! Sets missing message hashes of cases to the SHA-256 of their message, which is used to find duplicates.

use serde_json::Value;

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::import::message_hash;
use crate::memory::prune::copies::{message_hash_of, message_of};
use crate::memory::{Entity, Row};

/// The backfill, if cases are stored.
pub const SPEC: RowBackfill = RowBackfill {
    name: "hashes",
    operation: "backfill.hashes",
    parts: &[RowPart {
        entity: Entity::Case,
        reads: &["message_hash", "prompt"],
        writes: &["message_hash"],
        needs: &["message_hash"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(async move { Ok(judge(bench)) }),
    rules: &[
        "the hash is the SHA-256 of the message: the prompt itself, or its message, query or text; a case whose prompt \
         holds none keeps no hash",
        "a stored hash is never replaced, unless it is blank or that of a message which holds nothing",
    ],
    disclosures: &["the hash is not salted: the same message gives the same hash for every user"],
    undo_reason: None,
    takes_away: None,
};

fn judge(bench: RowBench<'_>) -> Vec<RowVerdict> {
    let verdict = |row: &Row| {
        if message_hash_of(row).is_some() {
            return RowVerdict::Keep;
        }
        match message_of(row.get("prompt")).map(message_hash) {
            Some(hash) if row.text("message_hash") != Some(hash.as_str()) => {
                RowVerdict::Set(vec![("message_hash", Value::from(hash))])
            }
            _ => RowVerdict::Keep,
        }
    };
    bench.found.iter().map(|f| verdict(&f.row)).collect()
}
