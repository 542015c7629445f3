//! The first changes of a job: as many as are shown and fit in little memory.

use std::borrow::Cow;

use crate::change::Change;
use crate::change::plan::{SHOWN, json_length};

/// Bytes of changes, as JSON, after which no more are stored.
const ROOM: usize = 2 << 20;

/// The first changes of a job.
#[derive(Debug, Default)]
pub struct FirstChanges {
    /// The changes.
    pub changes: Vec<Change>,
    size: usize,
}

impl FirstChanges {
    /// Adds the changes of a batch while there is room.
    pub fn take<'c>(&mut self, batch: impl Iterator<Item = Cow<'c, Change>>) {
        for change in batch {
            if self.changes.len() >= SHOWN || self.size >= ROOM {
                return;
            }
            self.size += json_length(&change.before) + json_length(&change.after);
            self.changes.push(change.into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ChangeSide;
    use serde_json::json;

    #[test]
    fn long_changes_are_shown_only_in_part() {
        let change = |length: usize| Change {
            entity: "episode".to_owned(),
            id: "ep-1".to_owned(),
            before: ChangeSide::default(),
            after: json!("x".repeat(length)).into(),
        };
        let kept = |length: usize| {
            let mut first = FirstChanges::default();
            for _ in 0..10 {
                first.take(vec![change(length); 10].into_iter().map(Cow::Owned));
            }
            first.changes.len()
        };
        assert_eq!([kept(100), kept(ROOM / 4), kept(ROOM)], [SHOWN, 4, 1]);
    }
}
