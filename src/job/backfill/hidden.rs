//! Removes invisible characters and terminal controls from stored text.

use super::rows::{RowBackfill, RowBench, RowVerdict};
use super::texts::{self, Cleaning};
use crate::memory::text_check;

/// The backfill, if any text can be written.
pub const SPEC: RowBackfill = RowBackfill {
    name: "hidden-characters",
    operation: "backfill.hidden-characters",
    parts: &texts::PARTS,
    judge: |bench| Box::pin(async move { Ok(judge(bench)) }),
    rules: &[
        "control characters (but for line ends and tabs), direction marks, zero-width characters and tags are removed; \
         what an emoji or the script around it is written with stays",
        "ends of pages and other controls between lines become line ends",
        "text after an escape character stays, and becomes visible",
    ],
    disclosures: &[
        "JSON is written again without spaces where something was removed",
        "event logs, audit trails and ids are never rewritten: such characters there stay, and are counted at the end",
    ],
    undo_reason: None,
    takes_away: Some(|store| Box::pin(texts::kept(store, "hidden characters", false, |held| held.hidden))),
};

fn judge(bench: RowBench<'_>) -> Vec<RowVerdict> {
    let cleaning = Cleaning {
        what: "hidden characters",
        stays: |text| !text_check::hides(text.text()),
        clean: |value| {
            let clean = text_check::with_texts(value, &mut |text| text_check::visible(text));
            (clean != *value).then_some(clean)
        },
    };
    texts::judge(bench, &cleaning)
}
