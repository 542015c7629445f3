//! Results of a run of a job: the receipt.

use super::plan::{BadRow, EntrySpan, JobCheck, JobProgress, JobReceipt, JobState};
use crate::change::plan::{Counts, Receipt, SHOWN};
use crate::change::{Change, new_id, now};
use crate::memory::invocation::Invocation;

/// Result of a run of a job so far.
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
    /// Audit entries of the job, in order; others may have written between them. Empty if they cannot be undone.
    pub own_entries: Vec<i64>,
    /// Audit entries that this runner wrote, in order.
    pub written: Vec<i64>,
    /// Way to name the database in the commands that it advises.
    pub invocation: Invocation,
    /// Reason why the run cannot be undone.
    pub undo_reason: Option<String>,
}

impl JobOutcome {
    /// Whether everything is done, and the check of the result found nothing wrong.
    pub fn is_complete(&self) -> bool {
        self.progress.state == JobState::Succeeded && self.checks.iter().all(|c| c.ok)
    }

    /// Describes what is not done, and how to continue; `None` if everything is done.
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

    /// `applied`, `nothing to do`, `incomplete`, or the state in which it stopped.
    pub fn status(&self) -> &'static str {
        match self.progress.state {
            JobState::Succeeded if !self.is_complete() => "incomplete",
            JobState::Succeeded if self.counts.is_empty() => "nothing to do",
            JobState::Succeeded => "applied",
            other => other.word(),
        }
    }

    /// The receipt.
    pub fn receipt(&self) -> JobReceipt {
        let (undo, undo_reason) = match (&self.undo_reason, &self.own_entries[..]) {
            (Some(reason), _) => (None, Some(reason.clone())),
            (None, []) => (None, Some("nothing was changed".to_owned())),
            (None, entries) => (Some(undo_command(&self.invocation, entries)), None),
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

/// Builds the command that undoes a job's own entries, the last one first. Consecutive numbers are given as ranges.
fn undo_command(invocation: &Invocation, entries: &[i64]) -> String {
    if let [only] = entries {
        return invocation.line(["undo", &only.to_string(), "--apply"]);
    }
    let ranges: Vec<String> = entries.chunk_by(|before, after| before + 1 == *after).rev().map(backwards).collect();
    format!("for n in {}; do {}; done", ranges.join(" "), invocation.before("undo \"$n\" --apply"))
}

/// Shell words for consecutive numbers, the last one first.
fn backwards(numbers: &[i64]) -> String {
    match numbers {
        [] => String::new(),
        [only] => only.to_string(),
        [first, .., last] => format!("$(seq {last} -1 {first})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_others_are_not_undone() {
        let line = |entries: &[i64]| undo_command(&Invocation::default(), entries);
        assert_eq!(line(&[7]), "mnemoscope undo 7 --apply");
        let undo = "do mnemoscope undo \"$n\" --apply; done";
        assert_eq!(line(&[2, 3, 4]), format!("for n in $(seq 4 -1 2); {undo}"));
        assert_eq!(line(&[2, 3, 5, 8, 9]), format!("for n in $(seq 9 -1 8) 5 $(seq 3 -1 2); {undo}"));
    }
}
