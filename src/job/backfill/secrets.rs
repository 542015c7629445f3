//! Removes tokens, keys and passwords from stored text.

use super::rows::{RowBackfill, RowBench, RowVerdict};
use super::texts;
use crate::memory::text_check::{self, TextOddities as Secrets};

/// The backfill, where any text can be written.
pub const SPEC: RowBackfill = RowBackfill {
    name: "secrets",
    operation: "backfill.secrets",
    parts: &texts::PARTS,
    judge: |bench| Box::pin(async move { Ok(judge(bench)) }),
    rules: &[
        "tokens, keys and passwords that are known by their form are replaced by a word, also in lists and in the keys of JSON",
    ],
    disclosures: &[
        "JSON is written again without spaces where something was removed",
        "event logs, audit trails and ids are never rewritten: secrets there stay, and are counted at the end",
    ],
    undo_reason: Some("what was removed is not kept anywhere"),
    takes_away: Some(|store| Box::pin(texts::kept(store, "secrets", true, |held| held.secret))),
};

fn judge(bench: RowBench<'_>) -> Vec<RowVerdict> {
    texts::judge(bench, "a secret", |value| {
        let mut secrets = Secrets::default();
        let clean = text_check::check_value(value, &mut secrets);
        (!secrets.secrets.is_empty()).then_some(clean)
    })
}
