//! Results of a run of a job: the receipt.

use super::plan::{BadRow, EntrySpan, JobCheck, JobProgress, JobReceipt, JobState};
use crate::change::plan::{Counts, Receipt, SHOWN};
use crate::change::{Change, new_id, now};
use crate::memory::invocation::Invocation;

/// Results of a run of a job, from its start to where it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// Name of the operation, as in the audit trail.
    pub operation: String,
    /// Progress of the run.
    pub progress: JobProgress,
    /// Rows by table, over all its runners.
    pub counts: Counts,
    /// The first changes that this runner made.
    pub changes: Vec<Change>,
    /// Effects of the run, for users.
    pub effects: Vec<String>,
    /// Facts that users should know about the run.
    pub disclosures: Vec<String>,
    /// Results of the final checks; empty unless the job is done.
    pub checks: Vec<JobCheck>,
    /// Rows that could not be handled: entity, id and problem.
    pub set_aside: Vec<[String; 3]>,
    /// Numbers of its first and last audit entry.
    pub entries: Option<(i64, i64)>,
    /// Audit entries that this runner wrote, in order.
    pub written: Vec<i64>,
    /// Way to name the database in the commands that it advises.
    pub invocation: Invocation,
    /// Reason why the run cannot be undone.
    pub undo_reason: Option<String>,
}

impl JobOutcome {
    /// Everything is done, and looking at the result found nothing wrong.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.progress.state == JobState::Succeeded && self.checks.iter().all(|c| c.ok)
    }

    /// Says what is not done, and how it is continued; none where everything is.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        if self.is_complete() {
            return None;
        }
        let (name, status) = (&self.progress.name, self.status());
        Some(match self.progress.state {
            JobState::Succeeded => {
                format!("{name} is done, but the check of the result failed: see `verification`")
            }
            JobState::Cancelled => {
                let again = self.invocation.line(["backfill", name, "--apply"]);
                format!("{name} is {status}, what was done stays: `{again}` starts it again")
            }
            _ => format!("{name} is {status}: `{}` resumes it", self.invocation.line(["backfill", "resume", name])),
        })
    }

    /// `applied`, `nothing to do`, `incomplete`, or the state that it stopped in.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.progress.state {
            JobState::Succeeded if !self.is_complete() => "incomplete",
            JobState::Succeeded if self.counts.is_empty() => "nothing to do",
            JobState::Succeeded => "applied",
            other => other.word(),
        }
    }

    /// The receipt.
    #[must_use]
    pub fn receipt(&self) -> JobReceipt {
        let (undo, undo_reason) = match (&self.undo_reason, self.entries) {
            (Some(reason), _) => (None, Some(reason.clone())),
            (None, None) => (None, Some("nothing was changed".to_owned())),
            (None, Some((first, last))) => (Some(undo_command(&self.invocation, first, last)), None),
        };
        let bad = |[entity, id, problem]: [String; 3]| BadRow { entity, id, problem };
        let receipt = Receipt {
            receipt_id: new_id(),
            plan_id: self.progress.id.clone(),
            operation: self.operation.clone(),
            status: self.status().to_owned(),
            counts: self.counts.clone(),
            changes: self.changes.iter().take(SHOWN).cloned().collect(),
            changes_total: usize::try_from(self.progress.changed).unwrap_or(usize::MAX),
            effects: self.effects.clone(),
            disclosures: self.disclosures.clone(),
            applied_at: now(),
            audit_seq: self.entries.map(|(_, last)| last),
            undo,
            undo_reason,
        };
        JobReceipt {
            receipt,
            job: self.progress.clone(),
            verification: self.checks.clone(),
            quarantine: self.set_aside.iter().cloned().map(bad).collect(),
            audit_entries: self.entries.map(|(first, last)| EntrySpan { first, last }),
            anchor_problem: None,
            written: self.written.clone(),
        }
    }
}

/// Builds the command that undoes a job: its entries, the last one first.
fn undo_command(invocation: &Invocation, first: i64, last: i64) -> String {
    if first == last {
        return invocation.line(["undo", &last.to_string(), "--apply"]);
    }
    format!("for n in $(seq {last} -1 {first}); do {}; done", invocation.before("undo \"$n\" --apply"))
}
