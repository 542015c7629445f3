//! Quality of an agent's work and how often people had to step in.

use serde::Serialize;

use super::canvas::CanvasOutcome;
use super::{WeightedMean, WeightedTerm, mean};

/// Episodes that consistency looks at: the latest ones.
pub const LATEST: usize = 20;

/// Days of a period, of which canvas success is shown beside that of the one before.
pub const PERIOD_DAYS: i64 = 30;

/// An episode as far as quality looks at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkedEpisode {
    /// Outcome word; none where none is recorded.
    pub outcome: Option<String>,
    /// When it started, in the canonical spelling; orders the episodes.
    pub started_at: Option<String>,
    /// Feedback aggregate, in -1..1; none when unknown.
    pub feedback: Option<f64>,
    /// Human interventions recorded with it; none where the memory keeps no such number.
    pub interventions: Option<i64>,
    /// Constitutional score, in 0..1.
    pub constitutional: Option<f64>,
    /// Confidence, in 0..1.
    pub confidence: Option<f64>,
    /// Whether it succeeded, as recorded.
    pub success: Option<bool>,
    /// What a supervisor decided on its proposal; none for one that was not proposed.
    pub supervised: Option<ProposalDecision>,
    /// Skill that it was an execution of.
    pub skill: Option<String>,
    /// Quality of the teaching that it is a record of, above 0.
    pub teaching: Option<f64>,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposalDecision {
    /// It was approved.
    pub approved: bool,
    /// It was carried out as it was proposed.
    pub followed: bool,
}

/// Completion of an outcome: success 1, partial 0.5, else 0.
#[must_use]
pub fn completion(outcome: &str) -> f64 {
    match outcome {
        "success" => 1.0,
        "partial" => 0.5,
        _ => 0.0,
    }
}

/// Quality = 0.4 task completion + 0.3 canvas success + 0.2 feedback quality + 0.1 consistency, each in 0..1; a missing
/// term leaves its weight to the others. Completion is the mean over the episodes whose outcome is recorded; canvas
/// success the mean over canvases; feedback quality the mean of (aggregate + 1) / 2 over the episodes with a known
/// aggregate; consistency 1 - 2 x standard deviation of completion over the [`LATEST`] episodes.
#[must_use]
pub fn quality(episodes: &[WorkedEpisode], canvases: &[CanvasOutcome]) -> WeightedMean {
    let mut dated: Vec<&WorkedEpisode> = episodes.iter().filter(|e| e.outcome.is_some()).collect();
    dated.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    let completions: Vec<f64> = dated.iter().filter_map(|e| e.outcome.as_deref().map(completion)).collect();
    let latest = completions.get(..completions.len().min(LATEST)).unwrap_or_default();
    let feedback: Vec<f64> = episodes.iter().filter_map(|e| e.feedback).map(|f| f.midpoint(1.0)).collect();
    let no = |words: &str| Err(words.to_owned());
    let completed = mean(completions.iter().copied()).map_or_else(|| no("no episode has an outcome"), Ok);
    let shown = mean(canvases.iter().map(|c| c.value)).map_or_else(|| no("there are no canvas events"), Ok);
    let said = mean(feedback.iter().copied()).map_or_else(|| no("no episode has scored feedback"), Ok);
    let steady = match latest.len() {
        0 | 1 => no("fewer than two episodes have an outcome"),
        _ => Ok(1.0 - 2.0 * deviation(latest)),
    };
    WeightedMean::of(vec![
        WeightedTerm::new("task_completion", 0.4, completions.len(), completed),
        WeightedTerm::new("canvas_success", 0.3, canvases.len(), shown),
        WeightedTerm::new("feedback_quality", 0.2, feedback.len(), said),
        WeightedTerm::new("consistency", 0.1, latest.len(), steady),
    ])
}

/// Standard deviation of the whole population; at most 0.5 for values in 0..1.
fn deviation(values: &[f64]) -> f64 {
    let center = mean(values.iter().copied()).unwrap_or_default();
    mean(values.iter().map(|v| (v - center).powi(2))).unwrap_or_default().sqrt()
}

/// Canvas success of the last period and of the one before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Periods {
    /// Days of a period; the last one ends with the newest canvas event.
    pub days: i64,
    /// Success of the last period; none without canvases.
    pub last: Option<f64>,
    /// Canvases in it.
    pub last_n: usize,
    /// Success of the period before.
    pub previous: Option<f64>,
    /// Canvases in it.
    pub previous_n: usize,
    /// By how much success rose, as a share of the previous one; none where that is 0 or unknown.
    pub improvement: Option<f64>,
}

/// Splits canvases into the last period and the one before.
#[must_use]
pub fn periods(canvases: &[CanvasOutcome]) -> Periods {
    const DAY: i64 = 86_400_000_000;
    let newest = canvases.iter().filter_map(|c| c.at).max();
    let within = |from: i64, to: i64| -> Vec<f64> {
        let age = |c: &CanvasOutcome| Some(newest? - c.at?);
        let inside = |c: &&CanvasOutcome| age(c).is_some_and(|age| age >= from * DAY && age < to * DAY);
        canvases.iter().filter(inside).map(|c| c.value).collect()
    };
    let (last, previous) = (within(0, PERIOD_DAYS), within(PERIOD_DAYS, 2 * PERIOD_DAYS));
    let (last_n, previous_n) = (last.len(), previous.len());
    let (last, previous) = (mean(last), mean(previous));
    let improvement = last.zip(previous.filter(|p| *p > 0.0)).map(|(new, old)| (new - old) / old);
    Periods { days: PERIOD_DAYS, last, last_n, previous, previous_n, improvement }
}

/// How often people stepped in, by where they did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interventions {
    /// Corrections / episodes; none without episodes.
    pub rate: Option<f64>,
    /// All corrections.
    pub corrections: usize,
    /// Episodes.
    pub episodes: usize,
    /// Corrections in feedback; none where the memory keeps no feedback.
    pub chat: Option<usize>,
    /// Updates by the user after a canvas was presented; none where the memory keeps no canvas events.
    pub canvas: Option<usize>,
    /// Human interventions recorded with episodes; none where the memory keeps no such number.
    pub workflow: Option<usize>,
}

/// Intervention rate = corrections / episodes, of the sources that the memory keeps.
#[must_use]
pub fn interventions(episodes: &[WorkedEpisode], chat: Option<usize>, canvas: Option<usize>) -> Interventions {
    let recorded: Vec<i64> = episodes.iter().filter_map(|e| e.interventions).collect();
    let workflow = (!recorded.is_empty()).then(|| recorded.iter().map(|n| (*n).max(0) as usize).sum::<usize>());
    let sources = [chat, canvas, workflow];
    let corrections = sources.iter().flatten().sum();
    let known = sources.iter().any(Option::is_some) && !episodes.is_empty();
    let rate = known.then(|| corrections as f64 / episodes.len() as f64);
    Interventions { rate, corrections, episodes: episodes.len(), chat, canvas, workflow }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked(outcome: &str, feedback: Option<f64>) -> WorkedEpisode {
        WorkedEpisode {
            outcome: Some(outcome.to_owned()),
            feedback,
            interventions: Some(1),
            ..WorkedEpisode::default()
        }
    }

    #[test]
    fn quality_is_the_weighted_mean_of_its_terms() {
        let episodes = [
            worked("success", Some(1.0)),
            worked("failure", Some(0.0)),
            worked("partial", None),
            worked("ongoing", None),
        ];
        let canvases = [1.0, 0.0, 0.5, 0.5].map(|value| CanvasOutcome { value, at: None });
        let found = quality(&episodes, &canvases);
        let values: Vec<f64> = found.terms.iter().filter_map(|t| t.value).collect();
        // Completion 1, 0, 0.5, 0: mean 0.375, deviation sqrt(0.171875).
        let steady = 1.0 - 2.0 * 0.171_875_f64.sqrt();
        assert_eq!(values[..3], [0.375, 0.5, 0.75]);
        assert!((values[3] - steady).abs() < 1e-12);
        assert!((found.score.unwrap() - (0.15 + 0.15 + 0.15 + 0.1 * steady)).abs() < 1e-12);
    }

    #[test]
    fn the_three_sources_are_counted_apart() {
        let episodes = [worked("success", None), worked("success", None)];
        let found = interventions(&episodes, Some(3), None);
        assert_eq!((found.rate, found.corrections, found.workflow, found.canvas), (Some(2.5), 5, Some(2), None));
        assert_eq!(interventions(&[], Some(1), Some(1)).rate, None);
    }

    #[test]
    fn the_last_period_stands_beside_the_one_before() {
        let day = 86_400_000_000;
        let canvases = [(1.0, 100), (0.5, 71), (0.5, 70), (0.0, 41)]
            .map(|(value, at)| CanvasOutcome { value, at: Some(at * day) });
        let found = periods(&canvases);
        assert_eq!((found.last, found.last_n, found.previous, found.previous_n), (Some(0.75), 2, Some(0.25), 2));
        assert_eq!(found.improvement, Some(2.0));
    }
}
