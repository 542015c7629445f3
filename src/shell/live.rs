//! Watches the database for the core, without a transaction and at a negligible cost.

use std::collections::HashMap;
use std::convert::Infallible;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::console::core::{Reply, Request};
use crate::memory::Row;
use crate::memory::query::Query;
use crate::store::Store;
use crate::store::pulse::PulseBeat;

/// Longest interval between two checks of the rows.
const BEAT: Duration = Duration::from_secs(1);
/// Greatest share of time for checks, and for rereading each kind of data: one part in this many.
const SHARE: u32 = 20;
/// Longest pause before data is read again, however long reading it took.
const LONGEST: Duration = Duration::from_secs(20);

/// Failures in a row before they are reported: a lock held for the time of a commit is no failure.
const FAILURES: u32 = 2;

/// Time limit for the check whether anything was written.
const SLOW: Duration = Duration::from_secs(2);

/// Reports the newest rows after every write, and when the database is readable again, and the reason when it is not,
/// until the rows are no longer awaited.
pub async fn watch(store: &Store, query: &Query, tell: impl Fn(Reply)) -> Infallible {
    let mut pulse = store.pulse();
    let mut told: Option<Vec<Row>> = None;
    let mut mark = None;
    let (mut failures, mut is_told) = (0, false);
    loop {
        let begun = Instant::now();
        let displaced = store.displaced();
        let mut asked = std::pin::pin!(pulse.beat());
        let beat = if let Ok(beat) = tokio::time::timeout(SLOW, &mut asked).await {
            beat
        } else {
            is_told = true;
            (mark, told) = (None, None);
            tell(Reply::Unread("it does not answer: another process may hold it locked".to_owned()));
            asked.await
        };
        let is_new = match &beat {
            Ok(Some(now)) => mark.as_ref() != Some(now),
            // If the engine does not report writes, the rows are compared.
            Ok(None) => true,
            Err(_) => false,
        };
        let is_locked = beat.is_err();
        let newest = match (&displaced, &beat) {
            (Some(words), _) => Err(words.clone()),
            (None, Err(error)) => Err(error.to_string()),
            (None, Ok(_)) if is_new => store.page(query).await.map(Some).map_err(|error| error.to_string()),
            (None, Ok(_)) => Ok(None),
        };
        match newest {
            Ok(page) => {
                (failures, is_told) = (0, false);
                let beat = beat.ok().flatten();
                let is_own = beat.as_ref().is_some_and(|now| is_own(mark.as_ref(), now));
                let rows = page.map(|page| page.rows).filter(|rows| is_own || told.as_ref() != Some(rows));
                if let Some(rows) = rows {
                    told = Some(rows.clone());
                    tell(Reply::News(rows));
                }
                mark = beat;
            }
            Err(why) => {
                // What cannot be read now is news once it can.
                (mark, told) = (None, None);
                failures += 1;
                if !is_told && (failures >= FAILURES || displaced.is_some()) {
                    is_told = true;
                    tell(Reply::Unread(why));
                }
            }
        }
        // Waiting for someone's lock costs nothing.
        let rest = if is_locked { BEAT } else { (begun.elapsed() * SHARE).clamp(BEAT, LONGEST) };
        tokio::time::sleep(rest).await;
    }
}

/// Whether something was written in this very database since the beat before, as far as the engine distinguishes them.
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
