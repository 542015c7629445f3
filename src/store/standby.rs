//! A standby of a database: rows are read there, but planned and changed in the database itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fetched::{FetchedValue, text};
use super::{Store, own};
use crate::memory::Entity;

/// Longest wait for a standby to apply a change.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(20);

const WRITTEN: &str = "SELECT pg_current_wal_insert_lsn()::text";
const FOLLOWED: &str = "SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::int";

impl Store {
    /// The store for viewing rows: the named standby, otherwise the database itself. Plans, changes and the trail use
    /// the database itself.
    pub fn looking(self: &Arc<Self>) -> Arc<Store> {
        Arc::clone(self.replica.as_ref().unwrap_or(self))
    }

    /// The store for viewing rows of an entity: as [`Store::looking`], but the trail is read where it is written.
    pub fn looking_at(self: &Arc<Self>, entity: Entity) -> Arc<Store> {
        if entity.is_of_trail() { Arc::clone(self) } else { self.looking() }
    }

    /// As [`Store::looking_at`], for a table by name.
    pub fn looking_into(self: &Arc<Self>, table: &str) -> Arc<Store> {
        if own::is_of_trail(table) { Arc::clone(self) } else { self.looking() }
    }

    /// Waits until the standby shows everything written to the database so far, at most 2 s. Returns at once without a
    /// standby, or if a server does not report its position.
    pub async fn wait_for_standby(&self) {
        let Some(standby) = &self.replica else { return };
        let Ok(written) = self.fetch_text(WRITTEN).await else { return };
        let written = [FetchedValue::Text(written.first().map(|row| text(row, 0)).unwrap_or_default())];
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let followed = standby.sessions.fetch(FOLLOWED, &written).await;
            if !followed.is_ok_and(|rows| rows == [[FetchedValue::Integer(0)]]) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
