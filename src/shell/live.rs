//! Watches the database for the core, without a transaction and at a price that nobody notices.

use std::collections::HashMap;
use std::convert::Infallible;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::console::core::Request;
use crate::memory::Row;
use crate::memory::query::Query;
use crate::store::Store;
use crate::store::pulse::PulseBeat;

/// Longest interval between two looks at the rows.
const BEAT: Duration = Duration::from_secs(1);
/// Share of the elapsed time that looking, and reading each kind of thing again, may take: one part in this many.
const SHARE: u32 = 20;
/// Longest time that something is not read again for, however long reading it took.
const LONGEST: Duration = Duration::from_secs(20);

/// Reports the newest rows whenever something was written, or the database can be read again, until nobody waits for them
/// any more.
pub async fn watch(store: &Store, query: &Query, tell: impl Fn(Vec<Row>)) -> Infallible {
    let mut pulse = store.pulse();
    let mut told: Option<Vec<Row>> = None;
    let mut mark = None;
    loop {
        let begun = Instant::now();
        let beat = pulse.beat().await;
        let is_locked = beat.is_err();
        let is_new = match &beat {
            Ok(Some(now)) => mark.as_ref() != Some(now),
            // Where the engine does not say whether something was written, the rows say it.
            Ok(None) => true,
            Err(_) => false,
        };
        if is_new && let Ok(page) = store.page(query).await {
            let beat = beat.ok().flatten();
            let is_own = beat.as_ref().is_some_and(|now| is_own(mark.as_ref(), now));
            if is_own || told.as_ref() != Some(&page.rows) {
                told = Some(page.rows.clone());
                tell(page.rows);
            }
            mark = beat;
        } else if is_new || is_locked {
            // The list itself tells of failures. What cannot be read now is news once it can.
            (mark, told) = (None, None);
        }
        // Waiting for somebody's lock costs nothing.
        let rest = if is_locked { BEAT } else { (begun.elapsed() * SHARE).clamp(BEAT, LONGEST) };
        tokio::time::sleep(rest).await;
    }
}

/// Whether something was written in this very database since the beat before, as far as the engine tells them apart.
fn is_own(before: Option<&PulseBeat>, now: &PulseBeat) -> bool {
    now.own.is_none() || before.is_none_or(|before| before.own != now.own)
}

/// The time from which on each kind of thing may be read again unasked.
#[derive(Debug, Clone, Default)]
pub struct RenewalPace(Arc<Mutex<HashMap<Discriminant<Request>, Instant>>>);

impl RenewalPace {
    /// Waits until it may be read again.
    pub async fn wait(&self, request: &Request) {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&discriminant(request)).copied();
        if let Some(free) = free {
            tokio::time::sleep_until(free.into()).await;
        }
    }

    /// Reading it took that long.
    pub fn took(&self, kind: Discriminant<Request>, time: Duration) {
        let rest = LONGEST.min(time * SHARE);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, Instant::now() + rest);
    }
}
