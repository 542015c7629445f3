//! Watches the newest rows of a list for the core, without a transaction and at a price that nobody notices.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use crate::memory::Row;
use crate::memory::query::Query;
use crate::store::Store;

/// Longest interval between two looks at the rows.
const BEAT: Duration = Duration::from_secs(1);
/// Share of the elapsed time that looking may take: one part in this many.
const SHARE: u32 = 20;

/// Reports the newest rows whenever they differ from the last ones, until nobody waits for them any more.
pub async fn watch(store: &Store, query: &Query, tell: impl Fn(Vec<Row>)) -> Infallible {
    let mut pulse = store.pulse().await;
    let mut told: Option<Vec<Row>> = None;
    let mut mark = None;
    loop {
        let begun = Instant::now();
        let beat = pulse.beat().await;
        // Where the engine does not say whether something was written, the rows say it. What cannot be read now may be
        // read at the next beat: the list itself tells of failures.
        if (beat.is_none() || beat != mark)
            && let Ok(page) = store.page(query).await
        {
            mark = beat;
            if told.as_ref() != Some(&page.rows) {
                told = Some(page.rows.clone());
                tell(page.rows);
            }
        }
        tokio::time::sleep(BEAT.max(begun.elapsed() * SHARE)).await;
    }
}
