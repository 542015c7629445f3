//! The native tables and their rows, by column name.

use std::borrow::Cow;

use crate::store::bulk::{BulkBatch, BulkTable, BulkValue};

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $table:literal: $($column:literal)*;)*) => {
        $($(#[$doc])* pub static $name: BulkTable = BulkTable { name: $table, columns: &[$($column),*] };)*

        /// Every table that the demo fills.
        pub static TABLES: &[&BulkTable] = &[$(&$name),*];
    };
}

tables! {
    /// Agents, the owners of memories.
    AGENTS = "agents": "id" "name" "status" "created_at" "last_seen";
    /// Accounts of people.
    SUBJECTS = "subjects": "id" "name" "handles" "created_at";
    EPISODES = "episodes": "id" "agent_id" "user_id" "session_id" "execution_ids" "parent_id" "title" "summary"
        "detail" "domain" "topic" "status" "outcome" "started_at" "ended_at" "duration_seconds" "tags" "participants"
        "tools_used" "entities" "key_decisions" "metadata" "canvas_ids" "canvas_action_count" "feedback_ids"
        "feedback_score" "utility" "observation" "thoughts" "actions" "result" "success" "insight" "workflow_name"
        "context" "maturity" "importance" "decay_score" "access_count" "consolidated_into" "archived_at"
        "intervention_count" "constitutional_score" "confidence";
    EPISODE_VECTORS = "episode_embeddings": "episode_id" "embedding";
    SEGMENTS = "episode_segments": "id" "episode_id" "sequence" "kind" "content" "source_type" "source_id" "created_at";
    CANVAS = "canvas_audit": "id" "episode_id" "session_id" "agent_id" "user_id" "canvas_id" "canvas_type"
        "component_type" "component_name" "action" "metadata" "created_at";
    FEEDBACK = "agent_feedback": "id" "episode_id" "execution_id" "agent_id" "user_id" "kind" "rating" "correction"
        "created_at";
    /// Signals that moved a utility.
    UTILITY = "utility_events": "id" "episode_id" "signal" "delta" "before" "after" "actor" "reason" "created_at";
    MEMORIES = "memories": "id" "kind" "collection" "title" "text" "user_id" "agent_id" "tags" "status"
        "importance" "metadata" "created_at" "updated_at" "uses" "utility";
    MEMORY_VECTORS = "memory_embeddings": "memory_id" "embedding";
    /// Links from episodes to the memories that they retrieved.
    LINKS = "episode_memories": "episode_id" "memory_id" "kind" "rank";
    /// Banks of cases.
    PROFILES = "agent_memory_profiles": "id" "user_id" "agent_id" "window_size" "created_at" "updated_at";
    CASES = "agent_memory_cases": "id" "profile_id" "user_id" "agent_id" "message_hash" "prompt" "plan" "traces"
        "outcome" "reward" "tags" "reference_case_ids" "created_at" "quarantined";
    CASE_VECTORS = "agent_memory_embeddings": "case_id" "embedding";
    /// Learned weights.
    POLICIES = "agent_memory_policies": "id" "profile_id" "version" "weights" "metrics" "status" "trained_at";
    /// The memory's own audit trail.
    AUDIT = "agent_memory_audit": "id" "actor" "agent_id" "action" "payload" "created_at";
    EVENTS = "workflow_events": "id" "run_id" "sequence" "kind" "data" "created_at";
    ACCESS = "memory_access": "id" "agent_id" "user_id" "query" "ids" "kind" "latency_ms" "policy_version" "tokens"
        "created_at";
}

#[derive(Debug, Clone, PartialEq)]
pub struct DemoRow {
    table: &'static BulkTable,
    values: Vec<BulkValue>,
}

impl DemoRow {
    pub fn new(table: &'static BulkTable) -> DemoRow {
        DemoRow { table, values: vec![BulkValue::Null; table.columns.len()] }
    }

    pub fn with(mut self, column: &str, value: impl Into<BulkValue>) -> DemoRow {
        self.set(column, value);
        self
    }

    pub fn set(&mut self, column: &str, value: impl Into<BulkValue>) {
        let position = self.table.columns.iter().position(|c| *c == column);
        debug_assert!(position.is_some(), "{} has no column {column}", self.table.name);
        if let Some(slot) = position.and_then(|p| self.values.get_mut(p)) {
            *slot = value.into();
        }
    }

    /// Text of a column; empty if it has none.
    pub fn text(&self, column: &str) -> &str {
        match self.table.columns.iter().position(|c| *c == column).and_then(|p| self.values.get(p)) {
            Some(BulkValue::Text(text)) => text,
            _ => "",
        }
    }

    pub fn table(&self) -> &'static BulkTable {
        self.table
    }
}

/// Gathers rows into batches, one for each table.
#[derive(Debug)]
pub struct RowBatches(Vec<BulkBatch>);

impl RowBatches {
    pub fn new() -> RowBatches {
        RowBatches(TABLES.iter().map(|table| BulkBatch { table, values: Vec::new() }).collect())
    }

    /// Adds a row; a full batch is passed to `send`. False if that returns false.
    pub fn add(&mut self, row: DemoRow, send: &mut impl FnMut(BulkBatch) -> bool) -> bool {
        let Some(batch) = self.0.iter_mut().find(|batch| batch.table == row.table) else { return true };
        batch.values.extend(row.values);
        if batch.rows() < batch.table.rows_per_statement() {
            return true;
        }
        let room = Vec::with_capacity(batch.values.len());
        send(BulkBatch { table: batch.table, values: std::mem::replace(&mut batch.values, room) })
    }

    pub fn flush(self, send: &mut impl FnMut(BulkBatch) -> bool) {
        self.0.into_iter().filter(|batch| !batch.values.is_empty()).all(send);
    }
}

pub fn list<T: AsRef<str>>(items: &[T]) -> BulkValue {
    let items: Vec<serde_json::Value> = items.iter().map(|item| item.as_ref().into()).collect();
    serde_json::Value::Array(items).into()
}

macro_rules! values {
    ($($from:ty: $given:ident => $made:expr;)*) => {
        $(impl From<$from> for BulkValue {
            fn from($given: $from) -> BulkValue {
                $made
            }
        })*
    };
}

values! {
    &'static str: text => BulkValue::Text(Cow::Borrowed(text));
    String: text => BulkValue::Text(Cow::Owned(text));
    &String: text => text.clone().into();
    i64: number => BulkValue::Integer(number);
    f64: number => BulkValue::Real(number);
    bool: yes => BulkValue::Integer(i64::from(yes));
    Vec<u8>: bytes => BulkValue::Blob(bytes);
    serde_json::Value: json => BulkValue::Text(Cow::Owned(json.to_string()));
}

impl<T: Into<BulkValue>> From<Option<T>> for BulkValue {
    fn from(value: Option<T>) -> BulkValue {
        value.map_or(BulkValue::Null, Into::into)
    }
}
