//! Quality of an agent's work and how often people had to step in.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{WeightedMean, WeightedTerm, mean};

/// Number of latest episodes that determine consistency.
pub const LATEST: usize = 20;

/// Days of a period; canvas success is compared with the previous one.
pub const PERIOD_DAYS: i64 = 30;

/// An episode, reduced to what quality needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkedEpisode {
    /// Id of the episode; orders those with the same start.
    pub id: String,
    /// Outcome word; `None` if none is recorded.
    pub outcome: Option<String>,
    /// Start of the episode, in the canonical spelling; orders the episodes.
    pub started_at: Option<String>,
    /// Feedback aggregate, in -1..1; `None` if unknown.
    pub feedback: Option<f64>,
    /// Recorded human interventions; `None` if the memory does not record them. A negative number is no record.
    pub interventions: Option<i64>,
    /// Constitutional score, in 0..1.
    pub constitutional: Option<f64>,
    /// Confidence, in 0..1.
    pub confidence: Option<f64>,
    /// Whether it succeeded, as recorded.
    pub success: Option<bool>,
    /// Decision of a supervisor on the episode's proposal; `None` if it was not proposed.
    pub supervised: Option<ProposalDecision>,
    /// Skill that it was an execution of.
    pub skill: Option<String>,
    /// Quality of the teaching that it is a record of, above 0.
    pub teaching: Option<f64>,
}

/// Fate of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposalDecision {
    /// True when the proposal was approved.
    pub approved: bool,
    /// True when the proposal was carried out as proposed.
    pub followed: bool,
}

/// Completion of an outcome: success 1, partial 0.5, otherwise 0.
pub fn completion(outcome: &str) -> f64 {
    match outcome {
        "success" => 1.0,
        "partial" => 0.5,
        _ => 0.0,
    }
}

/// Summarizes episodes one by one; only the latest are kept in full.
#[derive(Debug, Clone, Default)]
pub struct WorkTally {
    /// Number of episodes.
    pub episodes: usize,
    /// Number of episodes by outcome; empty if none is recorded.
    pub outcomes: BTreeMap<String, usize>,
    /// The skills that they were executions of.
    pub skills: BTreeSet<String>,
    /// Qualities of the teaching that they are records of.
    pub teaching: MeanSum,
    completion: MeanSum,
    feedback: MeanSum,
    /// Human interventions; `None` if no episode records them.
    interventions: Option<usize>,
    /// Completions of the latest episodes with an outcome.
    decided: LatestOf<f64>,
    whole: LatestOf<WorkedEpisode>,
}

impl WorkTally {
    /// Creates a tally that keeps the latest `whole` episodes in full.
    pub fn new(whole: usize) -> Self {
        let (decided, whole) = (LatestOf::new(LATEST), LatestOf::new(whole));
        WorkTally { decided, whole, ..WorkTally::default() }
    }

    /// Adds an episode.
    pub fn add(&mut self, episode: WorkedEpisode) {
        self.episodes += 1;
        match self.outcomes.get_mut(episode.outcome.as_deref().unwrap_or_default()) {
            Some(count) => *count += 1,
            None => *self.outcomes.entry(episode.outcome.clone().unwrap_or_default()).or_default() += 1,
        }
        if let Some(value) = episode.outcome.as_deref().map(completion) {
            self.completion.add(value);
            self.decided.add(episode.started_at.as_deref(), &episode.id, || value);
        }
        if let Some(feedback) = episode.feedback {
            self.feedback.add(feedback.clamp(-1.0, 1.0).midpoint(1.0));
        }
        if let Some(interventions) = episode.interventions.and_then(|n| usize::try_from(n).ok()) {
            let sum = self.interventions.get_or_insert(0);
            *sum = sum.saturating_add(interventions);
        }
        if let Some(skill) = episode.skill.as_ref().filter(|skill| !self.skills.contains(*skill)) {
            self.skills.insert(skill.clone());
        }
        if let Some(quality) = episode.teaching.filter(|quality| *quality > 0.0) {
            self.teaching.add(quality);
        }
        let (started, id) = (episode.started_at.clone(), episode.id.clone());
        self.whole.add(started.as_deref(), &id, || episode);
    }

    /// The latest episodes, latest first, those with the same start by id; at most `most`.
    pub fn latest(&self, most: usize) -> Vec<&WorkedEpisode> {
        self.whole.rows(most)
    }
}

/// Running sum for a mean.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MeanSum {
    sum: f64,
    /// Number of values.
    pub n: usize,
}

impl MeanSum {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    /// The mean; `None` without values.
    pub fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

/// The latest of very many items in any order: newer first, those with the same time by id.
#[derive(Debug, Clone, Default)]
struct LatestOf<T> {
    most: usize,
    rows: Vec<(Recency, T)>,
    /// Whether items were dropped: the last remaining one is then the oldest.
    is_cut: bool,
}

/// Time and id of a row; the least is the latest. A row without a time is the oldest.
type Recency = (Reverse<Option<String>>, String);

impl<T> LatestOf<T> {
    fn new(most: usize) -> Self {
        LatestOf { most, rows: Vec::new(), is_cut: false }
    }

    fn add(&mut self, at: Option<&str>, id: &str, row: impl FnOnce() -> T) {
        let oldest = self.rows.get(self.most.wrapping_sub(1)).filter(|_| self.is_cut);
        let is_older =
            |(Reverse(oldest), other): &Recency| (Reverse(at), id) > (Reverse(oldest.as_deref()), other.as_str());
        if oldest.is_some_and(|(oldest, _)| is_older(oldest)) {
            return;
        }
        self.rows.push(((Reverse(at.map(str::to_owned)), id.to_owned()), row()));
        if self.rows.len() >= 2 * self.most.max(1) {
            self.rows.sort_by(|a, b| a.0.cmp(&b.0));
            self.rows.truncate(self.most);
            self.is_cut = true;
        }
    }

    fn rows(&self, most: usize) -> Vec<&T> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().take(most.min(self.most)).map(|(_, row)| row).collect()
    }
}

/// Quality = 0.4 task completion + 0.3 canvas success + 0.2 feedback quality + 0.1 consistency, each in 0..1; the
/// weight of a missing term is distributed to the others. Completion is the mean over the episodes with a recorded
/// outcome; canvas success the mean over canvases; feedback quality the mean of (aggregate + 1) / 2 over the episodes
/// with a known aggregate; consistency 1 - 2 x standard deviation of completion over the [`LATEST`] episodes, those
/// with the same start ordered by id.
pub fn quality(worked: &WorkTally, canvases: MeanSum) -> WeightedMean {
    let latest: Vec<f64> = worked.decided.rows(LATEST).into_iter().copied().collect();
    let no = |words: &str| Err(words.to_owned());
    let completed = worked.completion.mean().map_or_else(|| no("no episode has an outcome"), Ok);
    let shown = canvases.mean().map_or_else(|| no("there are no canvas events"), Ok);
    let said = worked.feedback.mean().map_or_else(|| no("no episode has scored feedback"), Ok);
    let steady = match latest.len() {
        0 | 1 => no("fewer than two episodes have an outcome"),
        _ => Ok(1.0 - 2.0 * deviation(&latest)),
    };
    WeightedMean::of(vec![
        WeightedTerm::new("task_completion", 0.4, worked.completion.n, completed),
        WeightedTerm::new("canvas_success", 0.3, canvases.n, shown),
        WeightedTerm::new("feedback_quality", 0.2, worked.feedback.n, said),
        WeightedTerm::new("consistency", 0.1, latest.len(), steady),
    ])
}

/// Population standard deviation; at most 0.5 for values in 0..1.
fn deviation(values: &[f64]) -> f64 {
    let center = mean(values.iter().copied()).unwrap_or_default();
    mean(values.iter().map(|v| (v - center).powi(2))).unwrap_or_default().sqrt()
}

/// Canvas success of the last period and of the one before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Periods {
    /// Days of a period; the last one ends with the newest canvas event.
    pub days: i64,
    /// Success of the last period; `None` without canvases.
    pub last: Option<f64>,
    /// Canvases in it.
    pub last_n: usize,
    /// Success of the period before.
    pub previous: Option<f64>,
    /// Canvases in it.
    pub previous_n: usize,
    /// Relative rise of success over the previous period; `None` if that is 0 or unknown.
    pub improvement: Option<f64>,
}

/// Success of canvases: all, those of the last period, and those of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CanvasSuccess {
    /// Time of the newest canvas event, in microseconds since 1970.
    newest: Option<i64>,
    /// All canvases.
    pub all: MeanSum,
    last: MeanSum,
    previous: MeanSum,
}

impl CanvasSuccess {
    /// Creates an empty comparison; the last period ends with the newest event, in microseconds since 1970.
    pub fn until(newest: Option<i64>) -> Self {
        CanvasSuccess { newest, ..CanvasSuccess::default() }
    }

    /// Adds a canvas: 1 if submitted or executed, 0 if closed within 5 s or with an error, otherwise 0.5, with the time
    /// of its last event.
    pub fn add(&mut self, value: f64, at: Option<i64>) {
        const PERIOD: i64 = PERIOD_DAYS * 86_400_000_000;
        self.all.add(value);
        match self.newest.zip(at).map(|(newest, at)| newest.saturating_sub(at)) {
            Some(0..PERIOD) => self.last.add(value),
            Some(age) if (PERIOD..2 * PERIOD).contains(&age) => self.previous.add(value),
            _ => {}
        }
    }

    /// Success of the last period and of the one before.
    pub fn periods(&self) -> Periods {
        let (last, previous) = (self.last.mean(), self.previous.mean());
        Periods {
            days: PERIOD_DAYS,
            last,
            last_n: self.last.n,
            previous,
            previous_n: self.previous.n,
            improvement: last.zip(previous.filter(|p| *p > 0.0)).map(|(new, old)| (new - old) / old),
        }
    }
}

/// Rate of human interventions, and the corrections by source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interventions {
    /// Corrections / episodes; `None` without episodes.
    pub rate: Option<f64>,
    /// All corrections.
    pub corrections: usize,
    /// Episodes.
    pub episodes: usize,
    /// Corrections in feedback; `None` if the memory stores no feedback.
    pub chat: Option<usize>,
    /// User updates after a canvas was presented; `None` if the memory stores no canvas events.
    pub canvas: Option<usize>,
    /// Recorded human interventions; `None` if the memory does not record them.
    pub workflow: Option<usize>,
}

/// Intervention rate = corrections / episodes, over the sources that the memory stores.
pub fn interventions(worked: &WorkTally, chat: Option<usize>, canvas: Option<usize>) -> Interventions {
    let workflow = worked.interventions;
    let sources = [chat, canvas, workflow];
    let corrections = sources.iter().flatten().sum();
    let known = sources.iter().any(Option::is_some) && worked.episodes > 0;
    let rate = known.then(|| corrections as f64 / worked.episodes as f64);
    Interventions { rate, corrections, episodes: worked.episodes, chat, canvas, workflow }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(episodes: impl IntoIterator<Item = WorkedEpisode>) -> WorkTally {
        let mut tally = WorkTally::new(1);
        episodes.into_iter().for_each(|episode| tally.add(episode));
        tally
    }

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
        let mut canvases = MeanSum::default();
        [1.0, 0.0, 0.5, 0.5].into_iter().for_each(|value| canvases.add(value));
        let found = quality(&tally(episodes), canvases);
        let values: Vec<f64> = found.terms.iter().filter_map(|t| t.value).collect();
        // Completion 1, 0, 0.5, 0: mean 0.375, deviation sqrt(0.171875).
        let steady = 1.0 - 2.0 * 0.171_875_f64.sqrt();
        assert_eq!(values[..3], [0.375, 0.5, 0.75]);
        assert!((values[3] - steady).abs() < 1e-12);
        assert!((found.score.unwrap() - (0.15 + 0.15 + 0.15 + 0.1 * steady)).abs() < 1e-12);
    }

    #[test]
    fn the_latest_are_known_before_they_are_cut() {
        let mut latest = LatestOf::new(2);
        ["01", "05", "03"].into_iter().for_each(|at| latest.add(Some(at), "e", || at));
        assert_eq!(latest.rows(2), [&"05", &"03"]);
    }

    #[test]
    fn the_latest_are_those_of_a_full_sort_in_whatever_order_they_come() {
        let episode = |n: i64| WorkedEpisode {
            id: format!("{:02}", n * 53 % 97),
            started_at: (n % 5 > 0).then(|| format!("{:02}", n * 37 % 11)),
            interventions: Some(n),
            ..WorkedEpisode::default()
        };
        let mut all: Vec<WorkedEpisode> = (0..90).map(episode).collect();
        let of = |episodes: &[WorkedEpisode]| {
            let mut kept = WorkTally::new(7);
            episodes.iter().for_each(|episode| kept.add(episode.clone()));
            kept
        };
        let mut kept = vec![of(&all)];
        all.reverse();
        kept.push(of(&all));
        all.sort_by(|a, b| b.started_at.cmp(&a.started_at).then_with(|| a.id.cmp(&b.id)));
        for kept in kept {
            assert_eq!(kept.latest(7), all.iter().take(7).collect::<Vec<_>>());
            assert_eq!(kept.latest(3), all.iter().take(3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_three_sources_are_counted_apart() {
        let episodes = [worked("success", None), worked("success", None)];
        let found = interventions(&tally(episodes), Some(3), None);
        assert_eq!((found.rate, found.corrections, found.workflow, found.canvas), (Some(2.5), 5, Some(2), None));
        assert_eq!(interventions(&tally([]), Some(1), Some(1)).rate, None);
    }

    #[test]
    fn the_last_period_stands_beside_the_one_before() {
        let day = 86_400_000_000;
        let mut canvases = CanvasSuccess::until(Some(100 * day));
        for (value, at) in [(1.0, 100), (0.5, 71), (0.5, 70), (0.0, 41), (1.0, 40)] {
            canvases.add(value, Some(at * day));
        }
        canvases.add(0.0, None);
        assert_eq!(canvases.all.n, 6);
        let found = canvases.periods();
        assert_eq!((found.last, found.last_n, found.previous, found.previous_n), (Some(0.75), 2, Some(0.25), 2));
        assert_eq!(found.improvement, Some(2.0));
    }
}
