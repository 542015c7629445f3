//! What a run of a job did: the receipt.

use serde_json::{Value, json};

use super::plan::{JobCheck, JobProgress, JobState};
use crate::change::plan::{Counts, SHOWN};
use crate::change::{Change, new_id, now};
use crate::memory::invocation::Invocation;

/// What a run of a job did, from its start to where it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// What it does, as in the audit trail.
    pub operation: String,
    /// Where it stands.
    pub progress: JobProgress,
    /// Rows by table, over all its runners.
    pub counts: Counts,
    /// The first changes that this runner made.
    pub changes: Vec<Change>,
    /// What came of it, for people.
    pub effects: Vec<String>,
    /// What should be known, for people.
    pub disclosures: Vec<String>,
    /// What looking at the result gave; empty unless it is done.
    pub checks: Vec<JobCheck>,
    /// Rows that could not be handled: entity, id and problem.
    pub set_aside: Vec<[String; 3]>,
    /// Numbers of its first and last audit entry.
    pub entries: Option<(i64, i64)>,
    /// How the database is named in the commands it advises.
    pub invocation: Invocation,
    /// Why it cannot be undone.
    pub undo_reason: Option<String>,
}

impl JobOutcome {
    /// Everything is done, and looking at the result found nothing wrong.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.progress.state == JobState::Succeeded && self.checks.iter().all(|c| c.ok)
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

    /// The receipt that commands print.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().take(SHOWN).map(|c| json!(c)).collect();
        let mut receipt = json!({
            "receipt_id": new_id(),
            "plan_id": self.progress.id,
            "operation": self.operation,
            "status": self.status(),
            "counts": self.counts,
            "changes": changes,
            "changes_total": self.progress.changed,
            "effects": self.effects,
            "disclosures": self.disclosures,
            "applied_at": now(),
            "audit_seq": self.entries.map(|(_, last)| last),
            "job": self.progress,
            "verification": self.checks,
            "quarantine": self.set_aside.iter().map(|[entity, id, problem]| {
                json!({ "entity": entity, "id": id, "problem": problem })
            }).collect::<Vec<_>>(),
        });
        if let Some((first, last)) = self.entries {
            receipt["audit_entries"] = json!({ "first": first, "last": last });
        }
        match (&self.undo_reason, self.entries) {
            (Some(reason), _) => receipt["undo_reason"] = Value::from(reason.clone()),
            (None, None) => receipt["undo_reason"] = Value::from("nothing was changed"),
            (None, Some((first, last))) => receipt["undo"] = Value::from(undo_command(&self.invocation, first, last)),
        }
        receipt
    }
}

/// How to take a job back: its entries, the last one first.
fn undo_command(invocation: &Invocation, first: i64, last: i64) -> String {
    if first == last {
        return invocation.line(["undo", &last.to_string(), "--apply"]);
    }
    format!("for n in $(seq {last} -1 {first}); do {}; done", invocation.before("undo \"$n\" --apply"))
}
