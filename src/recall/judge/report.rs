//! Results of an evaluation of recall, as plain data.

use serde::Serialize;

use super::latency::AccessTrail;
use super::ranked::{MeanEstimate, RankingQuality};
use super::spread::RecallSpread;

/// Results of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// `case`, `episode` or `memory`.
    pub kind: &'static str,
    /// Rows of the kind.
    pub rows: usize,
    /// Recallable rows with a vector.
    pub with_vector: usize,
    /// The judged ranking: the one of `recall`.
    pub ranking: &'static str,
    /// Policy that cases were ranked by.
    pub policy: Option<String>,
    /// The ranking's formula, for people.
    pub formula: &'static str,
    /// Origin of the judgements.
    pub judged_by: String,
    /// Hit rate, precision, nDCG and reciprocal rank.
    pub quality: RankingQuality,
    /// Whether a row is found when it is the query itself.
    pub self_retrieval: Vec<SelfReturn>,
    /// Whether nonsense queries find anything.
    pub negative_controls: Vec<NonsenseControl>,
    /// Coverage, swamping, redundancy, staleness and bad feedback of the rankings here.
    pub spread: RecallSpread,
    /// Tokens that these recalls cost.
    pub tokens: TokenCounts,
    /// Statistics from the trail of accesses; `None` if there is no trail.
    pub stored: Option<StoredRecalls>,
    /// Notes for users about the evaluation.
    pub notes: Vec<String>,
}

/// Tokens of recalled texts, by the rough count of four characters each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenCounts {
    /// Number of recalls for which a text was made.
    pub n: usize,
    /// Token budget of a text.
    pub budget: usize,
    /// Mean tokens of the text for agents, cut to the budget.
    pub mean: Option<f64>,
    /// Mean tokens of the whole text.
    pub whole: Option<f64>,
    /// Texts that had to be cut.
    pub over_budget: usize,
}

/// Share of rows found among the first k when they are the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfReturn {
    /// `text` or `vector`.
    pub by: &'static str,
    /// Rows queried.
    pub n: usize,
    /// Number of these rows that were found.
    pub found: usize,
    /// Their share.
    pub share: Option<f64>,
}

/// Results of nonsense queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NonsenseControl {
    /// `text` or `vector`.
    pub by: &'static str,
    /// Nonsense queries.
    pub n: usize,
    /// Queries among these that gave something above the threshold: each is a failure.
    pub answered: usize,
    /// The threshold.
    pub threshold: f64,
    /// The highest score that nonsense got.
    pub highest: Option<f64>,
}

/// Recalls as they happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredRecalls {
    /// Times, tokens, policy versions.
    #[serde(flatten)]
    pub trail: AccessTrail,
    /// Share of recalls with a row known as successful.
    pub hit_rate: MeanEstimate,
    /// Share of the first k rows known as successful.
    pub precision_at_k: MeanEstimate,
    /// Coverage, swamping, redundancy, staleness and bad feedback of the recalled rows.
    pub spread: RecallSpread,
}
