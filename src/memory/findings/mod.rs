//! Findings: errors and suspicious facts in a memory, each with its severity, count, examples, and the command that
//! fixes it. Pure; rows are added one by one, in any number, and little of each is kept.

mod bank;
mod bursts;
mod facts;
mod links;
mod marks;
mod muted;
mod quote;
mod scan;
mod standing;
mod tally;
mod utility;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::invocation::{filled, needs_dashes};
use super::{Entity, agreeing};

pub use bank::{BankCase, COMPARED, CaseBank, CaseBanks, is_poison};
pub use links::{LinkedEpisodes, NamedLinks};
pub use muted::{Mute, Muted};
pub use quote::{OffendingQuote, quote};
pub use scan::{HeldText, TextScanner};
pub use standing::{MemoryGroups, OUT_OF_USE, StandingMemories, StandingMemory, copies};
pub use tally::FindingTally;
pub use utility::UtilityHistories;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Memory is wrong, lost or at risk.
    High,
    /// Recall is worse than it could be.
    Medium,
    /// Worth a look.
    Low,
}

impl Severity {
    /// The severity's word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// A kind of finding, with the command that fixes it; `$id` stands for the first example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// Stable name, as in `findings --kind`.
    pub name: &'static str,
    /// Severity of findings of this kind.
    pub severity: Severity,
    /// Text that follows the count: `{singular|plural}` where the number matters.
    message: &'static str,
    /// Command that fixes it, or shows it if no command can.
    pub remedy: &'static str,
}

impl FindingKind {
    /// The text for a given count, to be placed after it.
    pub fn what(&self, count: u64) -> String {
        agreeing(count, self.message)
    }

    /// The text for an unknown number of findings.
    pub fn meaning(&self) -> String {
        self.what(2)
    }
}

macro_rules! kinds {
    ($($severity:ident $name:literal, $remedy:literal: $message:literal;)*) => {
        /// Every kind, in the order of the search.
        pub const KINDS: &[FindingKind] = &[$(FindingKind {
            name: $name, severity: Severity::$severity, message: $message, remedy: $remedy,
        }),*];
    };
}

/// The kind that names tables with a damaged page.
pub const DAMAGED: &str = "damaged_table";

kinds! {
    High "audit_break", "audit verify":
        "{fault|faults} of the audit trail: it was changed after it was written, or restored from an older copy";
    High "migration_drift", "migrate":
        "{migration was|migrations were} applied with other statements than this version has: nothing is applied on \
         top of {it|them}";
    Medium "missing_table", "migrate --apply": "{table of the layout is|tables of the layout are} missing";
    Medium "missing_column", "migrate --apply": "{column of the layout is|columns of the layout are} missing";
    Medium "missing_index", "migrate --apply":
        "{index of the layout is|indexes of the layout are} missing: its queries read whole tables";
    Medium "unread_table", "status":
        "{table|tables} of the layout cannot be read by your role, fully or partly: what {it holds|they hold} is left \
         out";
    High "damaged_table", "status":
        "{table has|tables have} a damaged page: some of {its|their} rows cannot be read, and checks that need all of \
         them are skipped";
    Medium "hidden_rows", "status":
        "{table|tables} may hide rows from your role by row-level security: every count covers only the rows that it \
         sees";
    Medium "overdue", "retain": "{row is past its|rows are past their} retention rules";
    Medium "vector_missing", "backfill embeddings":
        "{row has no vector: it is|rows have no vector: they are} not found by meaning";
    High "vector_size", "backfill embeddings": "{vector has|vectors have} another size than most";
    Medium "vector_no_direction", "backfill embeddings":
        "{vector is|vectors are} all zeros or {holds|hold} NaN or infinity: {its row is|their rows are} not found by meaning";
    Medium "over_window", "prune": "{bank holds more cases than its|banks hold more cases than their} window";
    Medium "window_is_zero", "profile set $id --window 200":
        "{bank has|banks have} a window of 0, a mistake that pruning skips";
    Low "policy_without_cases", "policy list": "{policy of a bank|policies of banks} without a case";
    Medium "unusable_policy", "policy list":
        "{policy in use has weights that cannot be read: its bank is ranked without it|policies in use have weights that \
         cannot be read: their banks are ranked without them}";
    Medium "duplicate_case", "prune --duplicates":
        "{case repeats a newer one of its|cases repeat a newer one of their} bank (same message)";
    Low "unclear_hash", "show case $id":
        "{case has the message hash of another one of its bank|cases have the message hash of others of their bank} and another \
         prompt: the hash is no digest, and does not say what is a duplicate";
    Low "near_duplicate_case", "quarantine $id":
        "{case repeats another one of its|cases repeat another one of their} bank in other words (cosine above 0.95)";
    Low "vector_duplicates_left", "findings --kind near_duplicate_case":
        "{bank holds over 2,000 cases: its|banks hold over 2,000 cases: their} vectors are compared only on request";
    Medium "contradicting_facts", "compare memory $id":
        "{fact says|facts say} another value than an older one, of the same subject and predicate at the same time: one of \
         the two may be out of date";
    Low "near_duplicate_memory", "compare memory $id":
        "{group of memories of one person and agent says|groups of memories of one person and agent say} the same (cosine above 0.95, or nine in ten words)";
    High "write_burst", "quarantine $id":
        "{burst|bursts}: five or more rows of one person and agent, or of one session, within a minute";
    Low "dangling_reference", "backfill links": "{case refers|cases refer} to missing cases";
    Medium "low_reward_often_recalled", "quarantine $id":
        "{row of low value is|rows of low value are} recalled again and again";
    Medium "swamping_case", "quarantine $id":
        "{case turns up in most recalls of its|cases turn up in most recalls of their} bank, whatever was asked";
    High "chain_cycle", "unlink $id": "{chain of parents forms|chains of parents form} a cycle";
    Medium "missing_parent", "unlink $id": "{episode names|episodes name} a missing parent";
    Medium "cross_agent_parent", "unlink $id": "{episode names|episodes name} a parent of another agent";
    Medium "parent_younger", "unlink $id":
        "{episode names a parent that started after it|episodes name a parent that started after them}";
    Medium "not_linked", "backfill canvas-links":
        "{episode lacks the canvas events of its|episodes lack the canvas events of their} session";
    Medium "feedback_not_linked", "backfill feedback-links":
        "{episode lacks feedback on its|episodes lack feedback on their} execution";
    Medium "dangling_id", "backfill links":
        "{episode names|episodes name} missing canvas events or feedback";
    Low "repeated_id", "backfill links": "{episode names|episodes name} a canvas event or feedback more than once";
    Medium "one_way_link", "backfill links": "{episode|episodes} with links that lead one way only";
    Medium "wrong_back_link", "show episode $id":
        "{episode names|episodes name} rows that point back to another episode, or to none although another one names \
         them too";
    Low "count_differs", "backfill aggregates":
        "{episode whose canvas count differs from its|episodes whose canvas count differs from their} rows";
    Medium "aggregate_differs", "backfill aggregates":
        "{episode whose feedback score differs from its|episodes whose feedback score differs from their} rows";
    Medium "utility_differs", "backfill utility":
        "{episode whose utility is out of 0..1 or differs from its|episodes whose utility is out of 0..1 or differs \
         from their} signals";
    High "unfinished_erasure", "purge $id --resume":
        "{person whose erasure began here and has|people whose erasures began here and have} not ended verified";
    High "resurrected", "purge $id": "{person who was erased here is|people who were erased here are} back";
    Low "orphan_segment", "show segment $id": "{segment belongs|segments belong} to no episode";
    Low "missing_memory", "show episode $id": "{episode links|episodes link} missing memories";
    Medium "unreadable_value", "show $entity $id": "{row holds|rows hold} something unreadable";
    High "secret", "backfill secrets": "{row holds secrets or tokens in its|rows hold secrets or tokens in their} text";
    High "instruction", "show $entity $id": "{row reads|rows read} like an instruction to an agent";
    Medium "hidden_characters", "backfill hidden-characters":
        "{row hides characters or holds|rows hide characters or hold} control characters";
}

/// Entities with the columns that contain people's and agents' words, as text or in lists: backfills clean them if they
/// can be written. An event log is never rewritten.
pub const CLEANED: &[(Entity, &[&str])] = &[
    (
        Entity::Episode,
        &[
            "title", "summary", "detail", "domain", "topic", "tags", "participants", "tools_used", "entities",
            "observation", "insight", "workflow_name", "maturity", "metadata", "thoughts", "actions", "result",
            "key_decisions", "context",
        ],
    ),
    (Entity::Segment, &["content", "source_type"]),
    (Entity::CanvasEvent, &["canvas_type", "component_type", "component_name", "action", "metadata"]),
    (Entity::Feedback, &["correction"]),
    (Entity::Memory, &["title", "text", "tags", "metadata"]),
    (Entity::Case, &["prompt", "plan", "traces", "tags"]),
    (Entity::UtilityEvent, &["reason"]),
    (Entity::Access, &["query"]),
];

/// Kinds that draw conclusions from missing rows, with the entities whose rows must all be visible for that.
const RESTS_ON: &[(&[&str], &[Entity])] = &[
    (&["missing_parent"], &[Entity::Episode]),
    (&["not_linked"], &[Entity::Episode, Entity::CanvasEvent]),
    (&["feedback_not_linked"], &[Entity::Episode, Entity::Feedback]),
    (&["dangling_id", "one_way_link", "wrong_back_link"], &[Entity::Episode, Entity::CanvasEvent, Entity::Feedback]),
    (&["count_differs"], &[Entity::CanvasEvent]),
    (&["aggregate_differs"], &[Entity::Feedback]),
    (&["utility_differs"], &[Entity::UtilityEvent]),
    (&["orphan_segment"], &[Entity::Episode]),
    (&["missing_memory"], &[Entity::Memory, Entity::Case]),
    (&["dangling_reference", "policy_without_cases"], &[Entity::Case]),
];

/// Entities whose rows must all be visible for a finding of this kind, because it draws conclusions from missing rows.
pub fn rests_on(kind: &str) -> impl Iterator<Item = Entity> {
    RESTS_ON.iter().filter(move |(kinds, _)| kinds.contains(&kind)).flat_map(|(_, entities)| entities.iter().copied())
}

/// The kind with this name.
pub fn kind_named(name: &str) -> Option<&'static FindingKind> {
    KINDS.iter().find(|k| k.name == name)
}

/// A finding about the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind of the finding.
    pub kind: &'static str,
    /// Severity of the finding.
    pub severity: Severity,
    /// Entity of the examples; `None` if they are names of tables, columns, indexes or errors.
    pub entity: Option<&'static str>,
    /// Number of occurrences.
    pub count: u64,
    /// Message in one sentence.
    pub message: String,
    /// Ids or names, at most as many as requested.
    pub examples: Vec<String>,
    /// The command that fixes it.
    pub remedy: String,
    /// Rows of the first group, if rows are found in groups: the oldest first.
    #[serde(skip)]
    pub together: Vec<String>,
}

/// Counts from an earlier run, to report changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierLook {
    /// End of that run, in the canonical spelling.
    pub at: String,
    /// Number of findings of each kind.
    pub counts: BTreeMap<String, u64>,
}

/// A kind that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotApplicable {
    /// The kind.
    pub kind: &'static str,
    /// Reason why it could not be checked.
    pub reason: String,
}

impl Finding {
    /// Builds a finding of a kind. `entity` is that of the examples.
    pub fn new(kind: &'static FindingKind, entity: Option<&'static str>, tally: FindingTally) -> Finding {
        let first = tally.examples.first().map_or("", String::as_str);
        let is_case = entity.is_none_or(|e| e == "case");
        // A whole group of bursts is acted on together; two rows are compared.
        let ids = match &tally.together[..] {
            ids @ [_, ..] if is_case => ids.iter().map(String::as_str).collect(),
            [first, .., last] if kind.remedy.starts_with("compare") => vec![first.as_str(), last.as_str()],
            _ => vec![first],
        };
        let words = if kind.remedy == "quarantine $id" && !is_case { "show $entity $id" } else { kind.remedy };
        let by_hand = tally.by_hand;
        let finding = Finding {
            kind: kind.name,
            severity: kind.severity,
            entity,
            count: tally.count,
            message: format!("{} {}", tally.count, kind.what(tally.count)),
            remedy: filled(&words.replace("$entity", entity.unwrap_or("episode")), &ids),
            examples: tally.examples,
            together: tally.together,
        };
        if by_hand { finding.only_shown() } else { finding }
    }

    /// Uses the command that merges copies of a memory into the newest, where possible.
    pub fn merging(mut self) -> Finding {
        if let [older @ .., newest] = &self.together[..] {
            let ids: Vec<&str> = [newest].into_iter().chain(older).map(String::as_str).collect();
            self.remedy = filled("merge $id", &ids);
        }
        self
    }

    /// Uses the command that marks the older of two memories as superseded, where possible.
    pub fn superseding(mut self) -> Finding {
        if let [older, .., newer] = &self.together[..]
            && !needs_dashes(&[older, newer])
        {
            self.remedy = filled("supersede $id", &[older]);
            self.remedy += &filled(" --by $id", &[newer]);
        }
        self
    }

    /// Leaves the place of the id in the command to whoever runs it: the examples are not what it takes.
    pub fn unnamed(mut self) -> Finding {
        if let Some(kind) = kind_named(self.kind) {
            self.remedy = kind.remedy.replace("$id", "SUBJECT");
        }
        self
    }

    /// Uses a command that only shows the first example, because nothing can be written.
    pub fn only_shown(mut self) -> Finding {
        let first = self.examples.first().map_or("", String::as_str);
        self.remedy = filled(&format!("show {} $id", self.entity.unwrap_or("episode")), &[first]);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Row;
    use super::*;

    /// A row with some columns set.
    pub fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
        Row::with(entity, values.iter().cloned())
    }

    #[test]
    fn what_is_cleaned_are_the_words_of_all_rows_but_those_of_logs() {
        for entity in Entity::ALL.iter().filter(|e| !matches!(e, Entity::WorkflowEvent | Entity::AuditEntry)) {
            let cleaned = CLEANED.iter().find(|(of, _)| of == entity).map_or(&[][..], |(_, columns)| columns);
            let mut cleaned = cleaned.to_vec();
            let mut words: Vec<&str> = entity.columns().iter().filter(|c| c.holds_words()).map(|c| c.name).collect();
            cleaned.sort_unstable();
            words.sort_unstable();
            assert_eq!(cleaned, words, "{entity}");
        }
    }

    #[test]
    fn a_sentence_agrees_with_its_number() {
        let said = |name: &str, count| kind_named(name).expect("a kind").what(count);
        assert_eq!(said("secret", 1), "row holds secrets or tokens in its text");
        assert_eq!(said("secret", 2), "rows hold secrets or tokens in their text");
        assert!(said("unread_table", 1).ends_with("what it holds is left out"));
        for kind in KINDS {
            assert_ne!(kind.what(1), kind.what(2), "{}", kind.name);
            assert!(!kind.what(1).contains(['{', '|', '}']), "{}", kind.name);
        }
    }
}
