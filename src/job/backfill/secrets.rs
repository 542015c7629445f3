//! Removes tokens, keys and passwords from stored text.

use super::rows::{RowBackfill, RowBench, RowVerdict};
use super::texts::{self, Cleaning};
use crate::memory::text_check::{self, TextOddities as Secrets};

/// The backfill, if any text can be written.
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
    let cleaning = Cleaning {
        what: "a secret",
        stays: text_check::holds_no_secret,
        clean: |value| {
            let mut secrets = Secrets::default();
            let clean = text_check::check_value(value, &mut secrets);
            (!secrets.secrets.is_empty()).then_some(clean)
        },
    };
    texts::judge(bench, &cleaning)
}
