//! A standby that follows a database: rows are read there, but planned and changed in the database itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fetched::{FetchedValue, text};
use super::{Store, own};
use crate::memory::Entity;

/// Time that a standby gets to follow a change.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two questions whether it has.
const PAUSE: Duration = Duration::from_millis(20);

const WRITTEN: &str = "SELECT pg_current_wal_insert_lsn()::text";
const FOLLOWED: &str = "SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::int";

impl Store {
    /// The database as rows are looked at: the standby that was named for it, else the database itself. What is planned and
    /// changed, and the trail, are read from the database itself.
    #[must_use]
    pub fn looking(self: &Arc<Self>) -> Arc<Store> {
        Arc::clone(self.replica.as_ref().unwrap_or(self))
    }

    /// The database as rows of an entity are looked at: as [`Store::looking`], and the trail where it is written.
    #[must_use]
    pub fn looking_at(self: &Arc<Self>, entity: Entity) -> Arc<Store> {
        if entity.is_of_trail() { Arc::clone(self) } else { self.looking() }
    }

    /// As [`Store::looking_at`], of a table by its name.
    #[must_use]
    pub fn looking_into(self: &Arc<Self>, table: &str) -> Arc<Store> {
        if own::is_of_trail(table) { Arc::clone(self) } else { self.looking() }
    }

    /// Waits until the standby shows what was written to the database until now, 2 s at most. Without a standby it returns at
    /// once, as it does where a server does not say how far it is.
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
