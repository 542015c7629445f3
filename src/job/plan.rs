//! What a job is, as plain data: its states and the moves between them, how far it is, and what a batch leaves behind.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use super::pace::{Pace, Sizing};
use crate::change::plan::Receipt;

/// Rows to be looked at up to which a job keeps what an undo needs: some hundred bytes for each row that changes, half a
/// hundred megabytes in all. Beyond that the trail would grow as large as what it is about.
pub const UNDO_ROWS: u64 = 200_000;

/// Why a job that looks at so many rows cannot be undone, when it has no reason of its own; none when it can.
#[must_use]
pub fn undo_reason(own: Option<String>, total: Option<u64>) -> Option<String> {
    let many = total.filter(|rows| *rows > UNDO_ROWS);
    own.or_else(|| {
        many.map(|rows| {
            format!(
                "it looks at {rows} rows, and beyond {UNDO_ROWS} what an undo needs is not kept, or the audit trail would \
                 become as large as the database; a copy of the database made before takes it back"
            )
        })
    })
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Nobody has begun it yet.
    Queued,
    /// Somebody works on it.
    Running,
    /// It stops after the batch that is being done.
    Pausing,
    /// It waits to be resumed, at a checkpoint.
    Paused,
    /// It ends after the batch that is being done.
    Cancelling,
    /// It was ended before its time; what it did stays.
    Cancelled,
    /// It is done.
    Succeeded,
    /// It broke off; resuming goes on from the last checkpoint.
    Failed,
}

/// What moves a job from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobMove {
    /// Somebody begins to work on it, or resumes it.
    Start,
    /// Somebody takes it over from a runner that is gone.
    TakeOver,
    /// Somebody asks it to pause.
    AskPause,
    /// Its runner stopped at a checkpoint.
    Stop,
    /// Somebody asks it to end.
    AskCancel,
    /// Everything is done.
    Finish,
    /// It broke off.
    Fail,
}

use JobMove::{AskCancel, AskPause, Fail, Finish, Start, Stop, TakeOver};
use JobState::{Cancelled, Cancelling, Failed, Paused, Pausing, Queued, Running, Succeeded};

/// Every move that is possible: from, by, to. What is not here is refused.
pub const MOVES: &[(JobState, JobMove, JobState)] = &[
    (Queued, Start, Running),
    (Queued, AskPause, Paused),
    (Queued, AskCancel, Cancelled),
    (Running, AskPause, Pausing),
    (Running, AskCancel, Cancelling),
    (Running, Stop, Paused),
    (Running, Finish, Succeeded),
    (Running, Fail, Failed),
    (Running, TakeOver, Running),
    (Pausing, Start, Running),
    (Pausing, Stop, Paused),
    (Pausing, AskCancel, Cancelling),
    (Pausing, Finish, Succeeded),
    (Pausing, Fail, Failed),
    (Pausing, TakeOver, Running),
    (Paused, Start, Running),
    (Paused, AskCancel, Cancelled),
    (Cancelling, Stop, Cancelled),
    (Cancelling, Finish, Succeeded),
    (Cancelling, Fail, Failed),
    (Cancelling, TakeOver, Cancelled),
    (Failed, Start, Running),
    (Failed, AskCancel, Cancelled),
];

impl JobState {
    /// Every state.
    pub const ALL: &'static [JobState] = &[Queued, Running, Pausing, Paused, Cancelling, Cancelled, Succeeded, Failed];

    /// The state after a move; none when it cannot be made from here.
    #[must_use]
    pub fn after(self, by: JobMove) -> Option<JobState> {
        MOVES.iter().find(|(from, with, _)| *from == self && *with == by).map(|(_, _, to)| *to)
    }

    /// Word for it, in the database too.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Queued => "queued",
            Running => "running",
            Pausing => "pausing",
            Paused => "paused",
            Cancelling => "cancelling",
            Cancelled => "cancelled",
            Succeeded => "succeeded",
            Failed => "failed",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<JobState> {
        JobState::ALL.iter().copied().find(|s| s.word() == word)
    }

    /// Nothing leads out of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Cancelled | Succeeded)
    }

    /// Somebody should be at work on it.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Running | Pausing | Cancelling)
    }
}

/// What the operator wants of a job that runs in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobWish {
    /// To go on.
    #[default]
    GoOn,
    /// To stop at the next checkpoint.
    Pause,
    /// To end at the next checkpoint.
    Cancel,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
    /// Identity of the run.
    pub id: String,
    /// Name of the job.
    pub name: String,
    /// Where it stands.
    pub state: JobState,
    /// Rows to be looked at, as counted at the start; none when that is not known.
    pub total: Option<u64>,
    /// Rows that were looked at.
    pub seen: u64,
    /// Rows that were changed.
    pub changed: u64,
    /// Rows that could not be handled.
    pub quarantined: u64,
    /// Batches that were done.
    pub batches: u64,
    /// Rows of the latest batch.
    pub batch: usize,
    /// Rows a second, as a moving average; none before three batches.
    pub rate: Option<f64>,
    /// Seconds that are left at that rate; none before three batches.
    pub eta_seconds: Option<f64>,
    /// Why it goes slower than it could; none when it does not.
    pub throttle: Option<String>,
    /// Who works on it, for people.
    pub owner: Option<String>,
    /// Whether that runner still gives signs of life.
    pub alive: bool,
    /// What failed; none when nothing did.
    pub problem: Option<String>,
    /// When it was last heard of, in the canonical spelling.
    pub updated_at: String,
}

impl JobProgress {
    /// Part that is done, in 0..1; none when the total is not known.
    #[must_use]
    pub fn part(&self) -> Option<f64> {
        match (self.state, self.total) {
            (JobState::Succeeded, _) => Some(1.0),
            (_, Some(0) | None) => None,
            (_, Some(total)) => Some((self.seen as f64 / total as f64).min(1.0)),
        }
    }
}

/// A row that a job could not handle, and passes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// What it is.
    pub entity: String,
    /// Its id.
    pub id: String,
    /// What is wrong with it, without quoting it.
    pub problem: String,
}

/// Something that is found out when a job has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCheck {
    /// What was looked at.
    pub what: String,
    /// It is as it should be.
    pub ok: bool,
    /// What was found, in words.
    pub found: String,
}

/// Numbers of the first and last audit entry of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySpan {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

/// What a run of a job did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReceipt {
    /// What a change's receipt says too: the run is its plan, its counts are over all runners, its changes the first of
    /// the last runner, its status may also be `incomplete` or the state that the run stopped in.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// How far it is.
    pub job: JobProgress,
    /// What looking at the result found; empty unless it is done.
    pub verification: Vec<JobCheck>,
    /// Rows that could not be handled.
    pub quarantine: Vec<BadRow>,
    /// Its audit entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_entries: Option<EntrySpan>,
    /// Why no anchor of it could be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_problem: Option<String>,
}

/// Something that happened while a job ran, for whoever watches.
#[derive(Debug, Clone, PartialEq)]
pub enum JobBeat {
    /// It is that far.
    Progress(Box<JobProgress>),
    /// A line for the log.
    Said(String),
}

/// A job that there is, and how it stands here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobOffer {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub does: String,
    /// It can be done here.
    pub available: bool,
    /// Why it cannot be done here; none when it can.
    pub reason: Option<String>,
    /// Rows that it would look at; none when that is not known.
    pub looks_at: Option<u64>,
    /// Its latest run; none when it never ran.
    pub run: Option<JobProgress>,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct JobSettings {
    /// Rows of each batch; `None` lets the job choose by how long batches take.
    #[serde(default)]
    pub batch: Option<usize>,
    /// Rows a second at most.
    #[serde(default)]
    pub rate: Option<f64>,
    /// What else the job was told, as JSON.
    #[serde(default)]
    pub told: Value,
}

impl JobSettings {
    /// The settings as they are stored.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL_MOVES: [JobMove; 7] = [Start, TakeOver, AskPause, Stop, AskCancel, Finish, Fail];

    fn any_move() -> impl Strategy<Value = JobMove> {
        proptest::sample::select(&ALL_MOVES[..])
    }

    #[test]
    fn a_move_leads_to_one_state_only() {
        for (i, (from, by, _)) in MOVES.iter().enumerate() {
            assert!(!MOVES[..i].iter().any(|(f, b, _)| f == from && b == by), "{from:?} {by:?} stands twice");
        }
    }

    #[test]
    fn whatever_is_not_over_can_be_ended_and_gone_on_with() {
        for state in JobState::ALL {
            let out = ALL_MOVES.iter().filter(|m| state.after(**m).is_some()).count();
            assert_eq!(out == 0, state.is_over(), "{state:?}");
            if state.is_active() {
                assert!(state.after(TakeOver).is_some(), "a dead runner must not block {state:?} for ever");
            } else if !state.is_over() {
                assert!(state.after(Start).is_some() && state.after(AskCancel).is_some(), "{state:?}");
            }
        }
    }

    #[test]
    fn words_are_read_back() {
        for state in JobState::ALL {
            assert_eq!(JobState::parse(state.word()), Some(*state));
            assert_eq!(json!(state), json!(state.word()));
        }
    }

    proptest! {
        #[test]
        fn no_row_of_moves_leaves_the_table_or_revives_what_is_over(moves in prop::collection::vec(any_move(), 0..40)) {
            let mut state = JobState::Queued;
            for by in moves {
                match state.after(by) {
                    Some(next) => {
                        prop_assert!(!state.is_over());
                        state = next;
                    }
                    None => prop_assert!(!MOVES.iter().any(|(f, b, _)| *f == state && *b == by)),
                }
            }
            prop_assert!(JobState::ALL.contains(&state));
        }

        #[test]
        fn asked_to_end_nothing_but_the_end_follows(moves in prop::collection::vec(any_move(), 0..10)) {
            // A runner that was asked to end never goes on working, unless it broke off and somebody starts it again.
            let mut state = JobState::Cancelling;
            for by in moves.into_iter().filter(|m| *m != Start) {
                state = state.after(by).unwrap_or(state);
                prop_assert!(matches!(state, JobState::Cancelling | JobState::Cancelled | JobState::Succeeded | JobState::Failed));
            }
        }
    }
}
