//! Gives cases without a message hash the SHA-256 of their message, by which duplicates are found.

use serde_json::Value;

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::import::{message_hash, message_of};
use crate::memory::{Entity, Row};

/// The backfill, where cases are kept.
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
        "a stored hash is never replaced",
    ],
    disclosures: &["the hash is not salted: the same message gives the same hash for every user"],
    undo_reason: None,
    takes_away: None,
};

fn judge(bench: RowBench<'_>) -> Vec<RowVerdict> {
    let verdict = |row: &Row| {
        if row.text("message_hash").is_some_and(|hash| !hash.is_empty()) {
            return RowVerdict::Keep;
        }
        match message_of(row.get("prompt")) {
            None => RowVerdict::Keep,
            Some(message) => RowVerdict::Set(vec![("message_hash", Value::from(message_hash(message)))]),
        }
    };
    bench.found.iter().map(|f| verdict(&f.row)).collect()
}
