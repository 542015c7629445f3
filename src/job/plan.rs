//! A job as plain data: its states and transitions, its progress, and the results of a batch.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use super::pace::{Pace, Sizing};
use crate::change::plan::Receipt;

/// Most rows to process for which a job stores undo data: some hundred bytes per changed row, about fifty megabytes in
/// all. Beyond that the trail would become as large as the data.
pub const UNDO_ROWS: u64 = 200_000;

/// Returns the reason why a job that processes `total` rows cannot be undone, its own or their number; `None` if it
/// can.
pub fn undo_reason(own: Option<String>, total: Option<u64>) -> Option<String> {
    let many = total.filter(|rows| *rows > UNDO_ROWS);
    own.or_else(|| {
        many.map(|rows| {
            format!(
                "it processes {rows} rows, and beyond {UNDO_ROWS} rows undo data is not kept, because the audit trail \
                 would become as large as the database; to be able to go back, copy the database first"
            )
        })
    })
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No runner works on it; the next one continues.
    Queued,
    /// A runner works on it.
    Running,
    /// The job pauses after the current batch.
    Pausing,
    /// The job waits at a checkpoint to be resumed.
    Paused,
    /// The job is cancelled after the current batch.
    Cancelling,
    /// The job was cancelled; its changes stay.
    Cancelled,
    /// The job is done.
    Succeeded,
    /// The job failed; resuming continues from the last checkpoint.
    Failed,
}

/// Event that moves a job from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobMove {
    /// A runner begins to work on the job, or resumes it.
    Start,
    /// A runner takes the job over from a dead one.
    TakeOver,
    /// A user asks the job to pause.
    AskPause,
    /// The runner stopped at a checkpoint.
    Stop,
    /// The runner stopped at a checkpoint, and leaves the rest to the next one.
    Leave,
    /// A user asks to cancel the job.
    AskCancel,
    /// Everything is done.
    Finish,
    /// The job failed.
    Fail,
}

use JobMove::{AskCancel, AskPause, Fail, Finish, Leave, Start, Stop, TakeOver};
use JobState::{Cancelled, Cancelling, Failed, Paused, Pausing, Queued, Running, Succeeded};

/// Every possible transition: from, by, to. Others are refused.
pub const MOVES: &[(JobState, JobMove, JobState)] = &[
    (Queued, Start, Running),
    (Queued, AskPause, Paused),
    (Queued, AskCancel, Cancelled),
    (Running, AskPause, Pausing),
    (Running, AskCancel, Cancelling),
    (Running, Stop, Paused),
    (Running, Leave, Queued),
    (Running, Finish, Succeeded),
    (Running, Fail, Failed),
    (Running, TakeOver, Running),
    (Pausing, Start, Running),
    (Pausing, Stop, Paused),
    (Pausing, Leave, Paused),
    (Pausing, AskCancel, Cancelling),
    (Pausing, Finish, Succeeded),
    (Pausing, Fail, Failed),
    (Pausing, TakeOver, Running),
    (Paused, Start, Running),
    (Paused, AskCancel, Cancelled),
    (Cancelling, Stop, Cancelled),
    (Cancelling, Leave, Cancelled),
    (Cancelling, Finish, Succeeded),
    (Cancelling, Fail, Failed),
    (Cancelling, TakeOver, Cancelled),
    (Failed, Start, Running),
    (Failed, AskCancel, Cancelled),
];

impl JobState {
    /// Every state.
    pub const ALL: &'static [JobState] = &[Queued, Running, Pausing, Paused, Cancelling, Cancelled, Succeeded, Failed];

    /// The state after a move; `None` if it is not possible in this state.
    pub fn after(self, by: JobMove) -> Option<JobState> {
        MOVES.iter().find(|(from, with, _)| *from == self && *with == by).map(|(_, _, to)| *to)
    }

    /// The state's word, also in the database.
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

    /// Parses a state's word.
    pub fn parse(word: &str) -> Option<JobState> {
        JobState::ALL.iter().copied().find(|s| s.word() == word)
    }

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        matches!(self, Cancelled | Succeeded)
    }

    /// Returns true when a runner should be at work on the job.
    pub fn is_active(self) -> bool {
        matches!(self, Running | Pausing | Cancelling)
    }
}

/// Operator's wish for a job that runs in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobWish {
    /// To continue.
    #[default]
    GoOn,
    /// To stop at the next checkpoint, and to be paused.
    Pause,
    /// To stop at the next checkpoint; the next runner continues.
    Leave,
    /// To end at the next checkpoint.
    Cancel,
}

/// Progress of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
    /// Identity of the run.
    pub id: String,
    /// Name of the job.
    pub name: String,
    /// State of the job.
    pub state: JobState,
    /// Rows to process, counted at the start; `None` if unknown.
    pub total: Option<u64>,
    /// Number of rows processed.
    pub seen: u64,
    /// Rows that were changed.
    pub changed: u64,
    /// Rows that could not be handled.
    pub quarantined: u64,
    /// Batches that were done.
    pub batches: u64,
    /// Rows of the latest batch.
    pub batch: usize,
    /// Rows per second, as a moving average; `None` before three batches.
    pub rate: Option<f64>,
    /// Remaining seconds at that rate; `None` before three batches.
    pub eta_seconds: Option<f64>,
    /// Reason why the job is slowed down; `None` if it is not.
    pub throttle: Option<String>,
    /// Runner that works on the job, for users.
    pub owner: Option<String>,
    /// Whether that runner still sends heartbeats.
    pub alive: bool,
    /// Description of the failure; `None` if there was none.
    pub problem: Option<String>,
    /// Time of the last update, in the canonical spelling.
    pub updated_at: String,
}

impl JobProgress {
    /// Completed part in 0..1; `None` if the total is unknown.
    pub fn part(&self) -> Option<f64> {
        match (self.state, self.total) {
            (JobState::Succeeded, _) => Some(1.0),
            (_, Some(0) | None) => None,
            (_, Some(total)) => Some((self.seen as f64 / total as f64).min(1.0)),
        }
    }
}

/// A row that a job could not handle, and skips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// Entity of the row.
    pub entity: String,
    /// Id of the row.
    pub id: String,
    /// Description of the row's problem, without quoting it.
    pub problem: String,
}

/// Check at the end of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCheck {
    /// Subject of the check.
    pub what: String,
    /// Whether the check passed.
    pub ok: bool,
    /// Result of the check, as text.
    pub found: String,
}

/// Numbers of the first and last audit entry of a run; others may have written between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySpan {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

/// Receipt for a run of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReceipt {
    /// Fields shared with a change's receipt: the run is its plan, its counts cover all runners, its changes are the
    /// first of the last runner, and its status may also be `incomplete` or the state in which the run stopped.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Progress of the run.
    pub job: JobProgress,
    /// Results of the final checks; empty unless the job is done.
    pub verification: Vec<JobCheck>,
    /// Rows that could not be handled.
    pub quarantine: Vec<BadRow>,
    /// Audit entries of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_entries: Option<EntrySpan>,
    /// Reason why no anchor of the run could be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_problem: Option<String>,
    /// Audit entries written by this runner, in order; others may have written between them.
    #[serde(skip)]
    pub written: Vec<i64>,
}

/// Progress event of a running job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobBeat {
    /// Progress so far.
    Progress(Box<JobProgress>),
    /// A line for the log.
    Said(String),
}

/// An available job, and its state here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobOffer {
    /// Name of the job.
    pub name: String,
    /// Description of the job, in a sentence.
    pub does: String,
    /// True when the job can be done here.
    pub available: bool,
    /// Reason why the job cannot run here; `None` if it can.
    pub reason: Option<String>,
    /// Rows that it would process; `None` if unknown.
    pub looks_at: Option<u64>,
    /// Latest run of the job; `None` if it never ran.
    pub run: Option<JobProgress>,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct JobSettings {
    /// Rows per batch; `None` lets the job choose by the duration of batches.
    pub batch: Option<usize>,
    /// Most rows per second.
    pub rate: Option<f64>,
    /// Further arguments of the job, as JSON.
    pub told: Value,
}

impl JobSettings {
    /// The settings as they are stored.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL_MOVES: [JobMove; 8] = [Start, TakeOver, AskPause, Stop, Leave, AskCancel, Finish, Fail];

    fn any_move() -> impl Strategy<Value = JobMove> {
        proptest::sample::select(&ALL_MOVES[..])
    }

    #[test]
    fn a_move_leads_to_one_state_only() {
        for (i, (from, by, _)) in MOVES.iter().enumerate() {
            assert!(!MOVES[..i].iter().any(|(f, b, _)| f == from && b == by), "{from:?} {by:?} is twice");
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
            // A runner asked to cancel never continues, unless it failed and someone starts it again.
            let mut state = JobState::Cancelling;
            for by in moves.into_iter().filter(|m| *m != Start) {
                state = state.after(by).unwrap_or(state);
                prop_assert!(matches!(state, JobState::Cancelling | JobState::Cancelled | JobState::Succeeded | JobState::Failed));
            }
        }
    }
}
