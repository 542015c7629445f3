//! Recomputes stored counts of canvas events and aggregate feedback scores from the linked rows.

use serde_json::json;

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::change::remove::COUNTED;
use crate::memory::{Entity, Row, feedback, score};
use crate::store::Store;
use crate::store::hanging::HangingRows;

/// The backfill, if counts are stored.
pub const SPEC: RowBackfill = RowBackfill {
    name: "aggregates",
    operation: "backfill.aggregates",
    parts: &[RowPart {
        entity: Entity::Episode,
        reads: &["metadata", "canvas_ids", "canvas_action_count", "feedback_ids", "feedback_score"],
        writes: &["canvas_action_count", "feedback_score"],
        needs: &["canvas_action_count"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "the count is the number of canvas events that are linked in any way",
        "the score is the mean of thumbs_up 1, thumbs_down -1, ratings 1..5 as -1..1 of the feedback that counts; \
         without feedback it is unknown, not 0",
    ],
    disclosures: &[],
    undo_reason: None,
    takes_away: None,
};

/// Episodes whose linked rows are read together.
const TOGETHER: usize = 100;

/// Rows of feedback per read.
const DOUBTED_TOGETHER: usize = 500;

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    let mut verdicts = Vec::with_capacity(bench.found.len());
    let links = &bench.source.links;
    for some in bench.found.chunks(TOGETHER) {
        let rows: Vec<&Row> = some.iter().map(|f| &f.row).collect();
        let contexts = bench.store.contexts();
        let canvas = contexts.linked(&rows, links, Entity::CanvasEvent, Some(COUNTED)).await?;
        let said = contexts.linked(&rows, links, Entity::Feedback, Some(feedback::SCORED)).await?;
        for ((row, canvas), said) in rows.into_iter().zip(&canvas).zip(&said) {
            let (stored, mean) = (row.number("feedback_score"), said.score());
            let is_same = score::is_same_or_unknown(stored, mean);
            let is_told = row.is_readable("feedback_ids") && (is_same || !is_doubtful(bench.store, said).await?);
            verdicts.push(verdict(row, canvas.len(), is_told, mean));
        }
    }
    Ok(verdicts)
}

/// Whether a row of feedback may mean more than its score.
async fn is_doubtful(store: &Store, said: &HangingRows) -> Result<bool, ChangeError> {
    let ids: Vec<String> = said.ids().map(|(id, _)| id.into_owned()).collect();
    for some in ids.chunks(DOUBTED_TOGETHER) {
        let rows = store.related_columns(Entity::Feedback, "id", some, Some(&["id", "kind", "rating"])).await?;
        if rows.iter().any(feedback::is_doubtful) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Compares the stored numbers with the number of canvas events and the mean of feedback, as far as the rows determine
/// them.
fn verdict(row: &Row, canvas: usize, is_told: bool, mean: Option<f64>) -> RowVerdict {
    let mut values = Vec::new();
    // An unreadable list is not an empty one.
    let lost = !row.is_readable("metadata") && row.get("metadata").is_null();
    let unlinked = !row.is_readable("canvas_ids") || lost;
    let count = row.get("canvas_action_count");
    if !unlinked && count.as_i64() != Some(canvas as i64) && !(count.is_null() && canvas == 0) {
        values.push(("canvas_action_count", json!(canvas)));
    }
    if is_told && !score::is_same_or_unknown(row.number("feedback_score"), mean) {
        values.push(("feedback_score", json!(mean)));
    }
    match values {
        none if none.is_empty() && (unlinked || !is_told) => RowVerdict::Unread,
        none if none.is_empty() => RowVerdict::Keep,
        values => RowVerdict::Set(values),
    }
}
