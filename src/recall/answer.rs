//! A question to recall and its answer, as plain data.

use serde::Serialize;
use serde_json::{Value, json};

use super::context::{ContextRow, ToldRows};
use super::inquiry::Inquiry;
use super::rank::{LeftOut, RankedRow};
use crate::memory::Row;
use crate::memory::feedback::ScoreSum;
use crate::memory::query::ShownFinding;
use crate::memory::vector::{ComparedBy, VectorTally};

/// The word that turns policies off.
pub const NO_POLICY: &str = "none";

/// Policy that ranks cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyChoice<'r> {
    /// The active policy of the bank, if there is one.
    InUse,
    /// No policy: similarity decides.
    Likeness,
    /// This one.
    Named(&'r str),
}

/// Question put to recall at a moment, with the vector of its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecallRequest {
    /// Question that is asked.
    pub inquiry: Inquiry,
    /// Vector of the text, by the model of the stored ones.
    pub vector: Option<Vec<f32>>,
    /// Reason why the text has no vector.
    pub vector_note: Option<String>,
    /// Moment of the recall, canonical, for computing ages.
    pub at: String,
}

/// Returns the policy for a word.
pub fn choice(policy: Option<&str>) -> PolicyChoice<'_> {
    match policy {
        None => PolicyChoice::InUse,
        Some(NO_POLICY) => PolicyChoice::Likeness,
        Some(id) => PolicyChoice::Named(id),
    }
}

/// The policy that ranked cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsedPolicy {
    /// Id of the policy: `recall --policy ID` repeats the answer.
    pub id: String,
    /// Version of the policy.
    pub version: Option<i64>,
    /// Reason why this policy was used: `named`, or `in use` by the readers of the bank.
    pub because: &'static str,
}

impl UsedPolicy {
    /// A stored policy.
    pub fn of(row: &Row, because: &'static str) -> Self {
        UsedPolicy { id: row.id().to_owned(), version: row.get("version").as_i64(), because }
    }
}

/// A recalled row with its context.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledItem {
    /// The row in its place.
    pub ranked: RankedRow,
    /// Canvas events of an episode, as far as an agent's text shows them.
    pub canvas: ToldRows,
    /// Feedback on an episode, likewise.
    pub feedback: ToldRows,
    /// The scores of all feedback on it.
    pub scores: ScoreSum,
    /// Findings that explain empty context, where stored and resolved links differ.
    pub findings: Vec<ShownFinding>,
}

/// Rows that would be recalled, and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallAnswer {
    /// The rows in order.
    pub rows: Vec<RecalledItem>,
    /// Candidates that were left out, and why.
    pub left_out: Vec<LeftOut>,
    /// `vector`, `keyword`, or `none` if nothing was asked.
    pub used: &'static str,
    /// The policy that ranked the cases; `None` if similarity did.
    pub policy: Option<UsedPolicy>,
    /// Rows at most.
    pub k: usize,
    /// Counts of all rows' vectors by result, and the component that compared them.
    pub compared: Option<(VectorTally, ComparedBy)>,
    /// Component that searched for words; `None` if no words were compared.
    pub words_by: Option<WordsBy>,
    /// Number of candidates.
    pub candidates: usize,
    /// Notes for users about the answer.
    pub notes: Vec<String>,
    /// The stored row used as the situation.
    pub like: Option<Row>,
    /// Request that this answers.
    pub request: RecallRequest,
}

/// Component that searches for words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WordsBy {
    /// The database's full-text index excluded rows without any of them.
    Index,
    /// The program, in all texts.
    Read,
}

/// Durations of the parts of a recall, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageTimes {
    /// Computing the vector of a text; 0 if none was computed.
    pub embedding: f64,
    /// Looking up the situation.
    pub situation: f64,
    /// Reading and ranking the candidates.
    pub ranking: f64,
    /// Fetching the rows with their context.
    pub context: f64,
}

impl RecallAnswer {
    /// The rows, to be masked.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        let told = |item| {
            let RecalledItem { ranked, canvas, feedback, .. }: &mut RecalledItem = item;
            let around = canvas.rows.iter_mut().chain(&mut feedback.rows).map(|(row, _)| row);
            std::iter::once(&mut ranked.row).chain(around)
        };
        self.rows.iter_mut().flat_map(told).chain(&mut self.like)
    }

    /// Returns the output of `recall` after the rows, which are printed one by one.
    pub fn rest_json(&self) -> Value {
        json!({ "left_out": self.left_out, "query": self.query_json() })
    }

    /// Describes as JSON how the answer was found.
    pub fn query_json(&self) -> Value {
        let RecallRequest { inquiry, at, .. } = &self.request;
        json!({
            // Two words, for scripts: everything not compared by vectors counts as compared by words.
            "used": if self.used == "vector" { "vector" } else { "keyword" },
            "ranking": inquiry.ranking,
            "formula": inquiry.ranking.formula(),
            "text": inquiry.text,
            "like": inquiry.like,
            "agent": inquiry.agent,
            "user": inquiry.user,
            "domain": inquiry.domain,
            "topic": inquiry.topic,
            "workflow": inquiry.workflow,
            "policy": self.policy.as_ref().map(|used| &used.id),
            "policy_version": self.policy.as_ref().and_then(|used| used.version),
            "policy_because": self.policy.as_ref().map(|used| used.because),
            "downweight": inquiry.downweight,
            "k": self.k,
            "at": at,
            "keywords_by": self.words_by,
            "candidates": self.candidates,
            "compared_by": self.compared.map(|(_, by)| by),
            "vectors": self.compared.map(|(tally, _)| tally),
            "notes": self.notes,
        })
    }
}

impl RecalledItem {
    /// A row before its context is read.
    pub fn new(ranked: RankedRow) -> Self {
        let (canvas, feedback) = (ToldRows::default(), ToldRows::default());
        RecalledItem { ranked, canvas, feedback, scores: ScoreSum::default(), findings: Vec::new() }
    }

    /// The row in the form for an agent's text.
    pub fn told(&self) -> ContextRow<'_> {
        ContextRow { row: &self.ranked.row, canvas: &self.canvas, feedback: &self.feedback }
    }
}
