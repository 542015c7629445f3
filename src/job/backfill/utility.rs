//! Computes utilities anew by replaying the signals of each episode in order.

use std::collections::HashMap;

use serde_json::json;

use super::rows::{self, Bench, Part, Spec, Verdict};
use crate::change::ChangeError;
use crate::job::Job;
use crate::memory::{Entity, Row, utility};
use crate::store::Store;

const SPEC: Spec = Spec {
    name: "utility",
    operation: "backfill.utility",
    parts: &[Part {
        entity: Entity::Episode,
        reads: &["id", "utility"],
        writes: &["utility"],
        needs: &["utility"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "the signals are replayed from the value before the first one, 0.5 unless it says otherwise, clamped to 0..1 after \
         each: confirmed +0.2, corrected -0.1, rejected -0.3, undone -0.4, ignored -0.05",
        "an episode without signals keeps what it has",
    ],
    disclosures: &[],
    undo_reason: None,
};

/// The backfill, where utilities and signals are kept.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    store.sources_of(Entity::UtilityEvent)?;
    rows::make(store, &SPEC)
}

async fn judge(bench: Bench<'_>) -> Result<Vec<Verdict>, ChangeError> {
    let ids: Vec<String> = bench.found.iter().map(|f| f.row.id().to_owned()).collect();
    let mut histories: HashMap<String, Vec<Row>> = HashMap::new();
    for event in bench.store.related(Entity::UtilityEvent, "episode_id", &ids).await? {
        if let Some(id) = event.text("episode_id") {
            histories.entry(id.to_owned()).or_default().push(event);
        }
    }
    let verdict = |row: &Row| {
        let Some(history) = histories.get(row.id()) else { return Verdict::Keep };
        let start = history.first().and_then(|e| e.number("before")).unwrap_or(utility::START);
        let replay = utility::replay(start, history.iter().map(|e| e.text("signal").unwrap_or_default()));
        match row.number("utility") {
            Some(stored) if (stored - replay.utility()).abs() < 1e-9 => Verdict::Keep,
            _ => Verdict::Set(vec![("utility", json!(replay.utility()))]),
        }
    };
    Ok(bench.found.iter().map(|f| verdict(&f.row)).collect())
}
