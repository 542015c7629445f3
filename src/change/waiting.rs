//! Waiting of a change for others: one time limit for all its attempts together, so that it gives up when announced.

use std::time::{Duration, Instant};

use super::ChangeError;
use crate::store::write::WriteError;

/// Longest wait of a change when a person is waiting for it.
pub const PERSON: Duration = Duration::from_secs(12);

/// Longest wait of a single attempt, after which others have their turn.
const ONE_TRY: Duration = Duration::from_secs(5);

/// Shortest wait of a single try.
const LEAST: Duration = Duration::from_millis(50);

/// The attempts of one change. Only time spent on blocked attempts counts: slow planning does not shorten the wait.
#[derive(Debug)]
pub struct WaitingTries {
    whole: Duration,
    spent: Duration,
    tries: u32,
    began: Instant,
}

impl WaitingTries {
    /// Begins with the time limit for a person.
    pub fn begin() -> Self {
        Self::up_to(PERSON)
    }

    /// Waits that long in all.
    pub fn up_to(whole: Duration) -> Self {
        WaitingTries { whole, spent: Duration::ZERO, tries: 0, began: Instant::now() }
    }

    /// Begins an attempt; returns how long it may wait for others.
    pub fn patience(&mut self) -> Duration {
        self.began = Instant::now();
        self.whole.saturating_sub(self.spent).clamp(LEAST, ONE_TRY)
    }

    /// Whether there was no retry yet.
    pub fn is_first(&self) -> bool {
        self.tries == 0
    }

    /// Pauses after a blocked attempt, with an increasing random delay, so that two writers do not collide again.
    /// Returns false when the time is over.
    pub async fn again(&mut self) -> bool {
        self.tries += 1;
        let most = 5_u64 << self.tries.min(6);
        let pause = Duration::from_millis(rand::random::<u64>() % most + 1);
        self.spent += self.began.elapsed() + pause;
        if self.spent >= self.whole {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// Prepares another attempt after one that found the database busy.
    ///
    /// # Errors
    /// The time is over.
    pub async fn again_after(&mut self, error: &WriteError) -> Result<(), ChangeError> {
        if self.again().await { Ok(()) } else { Err(self.gave_up(error)) }
    }

    /// The error when the time is over.
    pub fn gave_up(&self, error: &WriteError) -> ChangeError {
        let seconds = self.whole.as_secs();
        ChangeError::Failed(format!("{error}; gave up after {seconds} s. Try again when it has finished"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_tries_together_take_no_longer_than_said() {
        let mut waiting = WaitingTries::up_to(Duration::from_secs(12));
        assert_eq!(waiting.patience(), ONE_TRY);
        waiting.spent = Duration::from_secs(9);
        assert!((Duration::from_secs(2)..=Duration::from_secs(3)).contains(&waiting.patience()));
        assert!(waiting.again().await);
        waiting.spent = Duration::from_secs(12);
        assert!(!waiting.again().await);
        assert_eq!(waiting.patience(), LEAST);
    }
}
