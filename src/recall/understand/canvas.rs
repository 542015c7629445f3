//! Use of canvases by the people they are shown to: dwell, engagement, rewards of observations, success.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::quality::MeanSum;

/// A canvas that is closed sooner, in seconds, was closed quickly.
pub const QUICK: f64 = 5.0;

/// Reward of an observation: closed under 5 s -0.2, closed at 5 s or later +0.1, form submitted +0.5, thumbs up +0.3,
/// thumbs down -0.3. Presented and error shown are observations without a stated reward.
pub const REWARDS: [(&str, Option<f64>); 7] = [
    ("canvas_presented", None),
    ("canvas_closed_quickly", Some(-0.2)),
    ("canvas_closed_slowly", Some(0.1)),
    ("canvas_form_submitted", Some(0.5)),
    ("canvas_error_shown", None),
    ("thumbs_up_feedback", Some(0.3)),
    ("thumbs_down_feedback", Some(-0.3)),
];

/// The rules by which a canvas type gets its words, for people.
pub const RULES: [(&str, &str); 4] = [
    ("closes_quickly", "more than half of the closes whose time is known came under 5 s"),
    (
        "engages",
        "not closed quickly, and at least half of the closes whose time is known came at 5 s or later, or at least half \
         of the presentations were submitted, executed or updated by the user",
    ),
    ("submits", "at least one in five presentations was submitted"),
    ("dwell", "the recorded `open_seconds` of a close, else the time since the canvas was last presented"),
];

/// A canvas event as far as these rules look at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CanvasUse {
    /// Id of the event, which orders events of the same time.
    pub id: String,
    /// The canvas; an event without one stands alone.
    pub canvas: Option<String>,
    /// Canvas type as stored; empty when none is.
    pub canvas_type: String,
    /// Component type as stored; empty when none is.
    pub component: String,
    /// Action of the event, as stored.
    pub action: String,
    /// Time of the event, in microseconds since 1970.
    pub at: Option<i64>,
    /// Time for which the canvas was open, as recorded with a close, in seconds.
    pub open_seconds: Option<f64>,
    /// Recorded as done by the agent or the system itself.
    pub by_agent: bool,
    /// The episode it hangs on, by a number of it.
    pub episode: Option<u64>,
}

/// Counts of one canvas type, or of one of its component types.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Engagement {
    /// Canvas type; empty where none is stored.
    pub canvas_type: String,
    /// Component type; none for the type as a whole.
    pub component_type: Option<String>,
    /// `closes_quickly`, `engages`, `submits`: those whose rule holds.
    pub verdicts: Vec<&'static str>,
    /// Times presented.
    pub presented: usize,
    /// Times closed.
    pub closed: usize,
    /// Closed under 5 s.
    pub closed_quickly: usize,
    /// Closed at 5 s or later.
    pub closed_slowly: usize,
    /// Closed with no time to tell by.
    pub closed_untimed: usize,
    /// Times submitted.
    pub submitted: usize,
    /// Times executed.
    pub executed: usize,
    /// Times updated, by whomever.
    pub updated: usize,
    /// Updates by the user after the canvas was presented: corrections.
    pub corrected: usize,
    /// Errors shown.
    pub errors: usize,
    /// Other actions, as stored.
    pub other: BTreeMap<String, usize>,
    /// Mean time open, in seconds; none when no time is known.
    pub dwell_seconds: Option<f64>,
    /// Closes behind the mean.
    pub dwell_n: usize,
    /// Closes among these with a recorded time; the others are timed by their events.
    pub dwell_recorded: usize,
    /// Episodes that it was shown in.
    pub episodes: usize,
    /// Mean feedback aggregate of those episodes, in -1..1; none when unknown for all.
    pub feedback: Option<f64>,
    /// Episodes behind the mean.
    pub feedback_n: usize,
    /// Sum of the rewards of its observations.
    pub reward: f64,
    /// Observations with a reward.
    pub reward_n: usize,
}

/// An observation with its reward and how often it was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// Name of the observation.
    pub observation: &'static str,
    /// Reward of the observation; `None` when none is stated.
    pub reward: Option<f64>,
    /// Number of times it was made.
    pub n: usize,
}

/// Outcome of one canvas: 1 if submitted or executed, 0 if closed under 5 s or in error, else 0.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CanvasOutcome {
    /// 0, 0.5 or 1.
    pub value: f64,
    /// Time of its last event, in microseconds since 1970.
    pub at: Option<i64>,
}

/// Summary of canvas events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CanvasSummary {
    /// By canvas type, most presented first.
    pub types: Vec<Engagement>,
    /// By canvas and component type.
    pub components: Vec<Engagement>,
    /// Outcome of each canvas; empty when that is not asked for.
    pub outcomes: Vec<CanvasOutcome>,
    /// Events in all.
    pub events: usize,
}

#[derive(Default)]
struct CanvasTally {
    counts: Engagement,
    dwell: f64,
    feedback: MeanSum,
}

/// Looks at events in any order. `feedback` returns the known feedback aggregate of an episode.
#[must_use]
pub fn understand(mut events: Vec<CanvasUse>, feedback: impl Fn(u64) -> Option<f64>) -> CanvasSummary {
    events.sort_by(|a, b| a.canvas.cmp(&b.canvas));
    let (mut study, mut shown) = (CanvasStudy::new(true), BTreeSet::new());
    for canvas in events.chunk_by_mut(|a, b| a.canvas == b.canvas) {
        study.add(canvas, |episode, part| {
            shown.insert((episode, part));
        });
    }
    let shown: Vec<(u64, usize)> = shown.into_iter().collect();
    for parts in shown.chunk_by(|a, b| a.0 == b.0) {
        let numbers: Vec<usize> = parts.iter().map(|(_, part)| *part).collect();
        study.shown_in(&numbers, parts.first().and_then(|(episode, _)| feedback(*episode)));
    }
    study.close()
}

/// Looks at very many events, canvas by canvas: none of them is kept. Which episodes a canvas was shown in is for the caller
/// to keep, who brings that back episode by episode.
#[derive(Default)]
pub struct CanvasStudy {
    /// The place of a type, and of each of its components.
    places: BTreeMap<String, (usize, BTreeMap<String, usize>)>,
    types: Vec<CanvasTally>,
    /// The components, each with the place of its type.
    parts: Vec<(usize, CanvasTally)>,
    /// Only where it is asked for how each canvas went.
    outcomes: Option<Vec<CanvasOutcome>>,
    events: usize,
}

impl CanvasStudy {
    /// A study that tells how each canvas went, where that is asked for.
    #[must_use]
    pub fn new(of_each: bool) -> Self {
        CanvasStudy { outcomes: of_each.then(Vec::new), ..CanvasStudy::default() }
    }

    /// All events of a canvas, or events without one: each of these stands alone. `shown` is told in which episode which
    /// component was shown, perhaps more than once.
    pub fn add(&mut self, events: &mut [CanvasUse], mut shown: impl FnMut(u64, usize)) {
        events.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        for canvas in events.chunk_by(|a, b| a.canvas.is_some() && a.canvas == b.canvas) {
            self.canvas(canvas, &mut shown);
        }
    }

    fn canvas(&mut self, events: &[CanvasUse], shown: &mut impl FnMut(u64, usize)) {
        let (mut presented, mut presented_at) = (false, None);
        let mut outcome = CanvasOutcome { value: 0.5, at: None };
        let mut last = None;
        for event in events {
            let seen = CanvasMoment::of(event, presented, presented_at);
            if seen == CanvasMoment::Presented {
                (presented, presented_at) = (true, event.at);
            }
            outcome.value = seen.moves(outcome.value);
            outcome.at = outcome.at.max(event.at);
            let part = self.part(&event.canvas_type, &event.component);
            if let Some((of, tally)) = self.parts.get_mut(part) {
                tally.add(event, seen);
                if let Some(whole) = self.types.get_mut(*of) {
                    whole.add(event, seen);
                }
            }
            let place = event.episode.map(|episode| (episode, part));
            if let Some((episode, part)) = place.filter(|_| last != place) {
                shown(episode, part);
                last = place;
            }
        }
        self.events += events.len();
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.push(outcome);
        }
    }

    /// The place of a component of a type.
    fn part(&mut self, kind: &str, component: &str) -> usize {
        if let Some(place) = self.places.get(kind).and_then(|(_, parts)| parts.get(component)) {
            return *place;
        }
        let (whole, parts) = self.places.entry(kind.to_owned()).or_insert_with(|| {
            self.types.push(CanvasTally::default());
            (self.types.len() - 1, BTreeMap::new())
        });
        self.parts.push((*whole, CanvasTally::default()));
        parts.insert(component.to_owned(), self.parts.len() - 1);
        self.parts.len() - 1
    }

    /// Takes an episode with all the components that were shown in it, and its feedback aggregate where that is known.
    pub fn shown_in(&mut self, parts: &[usize], feedback: Option<f64>) {
        let mut types = BTreeSet::new();
        for part in parts {
            if let Some((of, tally)) = self.parts.get_mut(*part) {
                tally.shown_in(feedback);
                types.insert(*of);
            }
        }
        for of in types {
            if let Some(whole) = self.types.get_mut(of) {
                whole.shown_in(feedback);
            }
        }
    }

    /// Sums up the events.
    #[must_use]
    pub fn close(mut self) -> CanvasSummary {
        let (mut types, mut components) = (Vec::new(), Vec::new());
        for (kind, (whole, parts)) in &self.places {
            types.extend(self.types.get_mut(*whole).map(|tally| tally.close(kind, None)));
            for (part, at) in parts {
                components.extend(self.parts.get_mut(*at).map(|(_, tally)| tally.close(kind, Some(part))));
            }
        }
        CanvasSummary {
            types: ranked(types),
            components: ranked(components),
            outcomes: self.outcomes.unwrap_or_default(),
            events: self.events,
        }
    }
}

fn ranked(mut groups: Vec<Engagement>) -> Vec<Engagement> {
    groups.sort_by_key(|group| std::cmp::Reverse(group.presented));
    groups
}

/// Meaning of an event under these rules.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CanvasMoment {
    Presented,
    /// Closed: seconds open where known, and whether they were recorded.
    Closed(Option<(f64, bool)>),
    Submitted,
    Executed,
    Updated {
        corrects: bool,
    },
    Error,
    Other,
}

impl CanvasMoment {
    fn of(event: &CanvasUse, presented: bool, presented_at: Option<i64>) -> CanvasMoment {
        match event.action.as_str() {
            "present" => CanvasMoment::Presented,
            "close" => {
                let recorded = event.open_seconds.filter(|s| s.is_finite() && *s >= 0.0).map(|s| (s, true));
                let between = || Some((event.at? - presented_at?) as f64 / 1e6).filter(|s| *s >= 0.0);
                CanvasMoment::Closed(recorded.or_else(|| between().map(|s| (s, false))))
            }
            "submit" => CanvasMoment::Submitted,
            "execute" => CanvasMoment::Executed,
            "update" => CanvasMoment::Updated { corrects: presented && !event.by_agent },
            "error" => CanvasMoment::Error,
            _ => CanvasMoment::Other,
        }
    }

    /// The value of a canvas after this: an act decides, then a quick close or an error.
    fn moves(self, value: f64) -> f64 {
        match self {
            CanvasMoment::Submitted | CanvasMoment::Executed => 1.0,
            CanvasMoment::Closed(Some((seconds, _))) if seconds < QUICK && value < 1.0 => 0.0,
            CanvasMoment::Error if value < 1.0 => 0.0,
            _ => value,
        }
    }
}

impl CanvasTally {
    fn add(&mut self, event: &CanvasUse, seen: CanvasMoment) {
        let counts = &mut self.counts;
        let mut observe = |name: &str| {
            let reward = REWARDS.iter().find(|(n, _)| *n == name).and_then(|(_, reward)| *reward);
            counts.reward += reward.unwrap_or(0.0);
            counts.reward_n += usize::from(reward.is_some());
        };
        match seen {
            CanvasMoment::Closed(Some((seconds, _))) if seconds < QUICK => observe("canvas_closed_quickly"),
            CanvasMoment::Closed(Some(_)) => observe("canvas_closed_slowly"),
            CanvasMoment::Submitted => observe("canvas_form_submitted"),
            _ => {}
        }
        match seen {
            CanvasMoment::Presented => counts.presented += 1,
            CanvasMoment::Closed(time) => {
                counts.closed += 1;
                match time {
                    Some((seconds, recorded)) => {
                        self.dwell += seconds;
                        counts.dwell_n += 1;
                        counts.dwell_recorded += usize::from(recorded);
                        counts.closed_quickly += usize::from(seconds < QUICK);
                        counts.closed_slowly += usize::from(seconds >= QUICK);
                    }
                    None => counts.closed_untimed += 1,
                }
            }
            CanvasMoment::Submitted => counts.submitted += 1,
            CanvasMoment::Executed => counts.executed += 1,
            CanvasMoment::Updated { corrects } => {
                counts.updated += 1;
                counts.corrected += usize::from(corrects);
            }
            CanvasMoment::Error => counts.errors += 1,
            CanvasMoment::Other => *counts.other.entry(event.action.clone()).or_default() += 1,
        }
    }

    /// It was shown in one more episode.
    fn shown_in(&mut self, feedback: Option<f64>) {
        self.counts.episodes += 1;
        feedback.into_iter().for_each(|feedback| self.feedback.add(feedback));
    }

    fn close(&mut self, kind: &str, component: Option<&str>) -> Engagement {
        let mut counts = std::mem::take(&mut self.counts);
        kind.clone_into(&mut counts.canvas_type);
        counts.component_type = component.map(str::to_owned);
        counts.dwell_seconds = (counts.dwell_n > 0).then(|| self.dwell / counts.dwell_n as f64);
        counts.feedback_n = self.feedback.n;
        counts.feedback = self.feedback.mean();
        counts.verdicts = verdicts(&counts);
        counts
    }
}

/// The words whose rule in [`RULES`] holds.
fn verdicts(counts: &Engagement) -> Vec<&'static str> {
    let timed = counts.closed_quickly + counts.closed_slowly;
    let acts = counts.submitted + counts.executed + counts.corrected;
    let quick = counts.closed_quickly * 2 > timed;
    let stays = timed > 0 && counts.closed_slowly * 2 >= timed;
    let acted = acts > 0 && acts * 2 >= counts.presented;
    let submits = counts.submitted > 0 && counts.submitted * 5 >= counts.presented;
    [("closes_quickly", quick), ("engages", !quick && (stays || acted)), ("submits", submits)]
        .into_iter()
        .filter_map(|(word, holds)| holds.then_some(word))
        .collect()
}

impl CanvasSummary {
    /// Canvas types with a word, sorted.
    #[must_use]
    pub fn with(&self, verdict: &str) -> Vec<&str> {
        let mut types: Vec<&str> =
            self.types.iter().filter(|t| t.verdicts.contains(&verdict)).map(|t| t.canvas_type.as_str()).collect();
        types.sort_unstable();
        types
    }

    /// Every observation of [`REWARDS`] with how often it was made; the thumbs are counted elsewhere.
    #[must_use]
    pub fn observations(&self, thumbs_up: usize, thumbs_down: usize) -> Vec<Observation> {
        let sum = |count: fn(&Engagement) -> usize| self.types.iter().map(count).sum();
        let count = |name: &str| match name {
            "canvas_presented" => sum(|t| t.presented),
            "canvas_closed_quickly" => sum(|t| t.closed_quickly),
            "canvas_closed_slowly" => sum(|t| t.closed_slowly),
            "canvas_form_submitted" => sum(|t| t.submitted),
            "canvas_error_shown" => sum(|t| t.errors),
            "thumbs_up_feedback" => thumbs_up,
            _ => thumbs_down,
        };
        REWARDS
            .iter()
            .map(|(name, reward)| Observation { observation: name, reward: *reward, n: count(name) })
            .collect()
    }

    /// Corrections on canvases: updates by the user after a canvas was presented.
    #[must_use]
    pub fn corrections(&self) -> usize {
        self.types.iter().map(|t| t.corrected).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(canvas: &str, action: &str, second: i64) -> CanvasUse {
        CanvasUse {
            id: format!("{canvas}-{second}"),
            canvas: Some(canvas.to_owned()),
            canvas_type: "sheets".to_owned(),
            component: "table".to_owned(),
            action: action.to_owned(),
            at: Some(second * 1_000_000),
            ..CanvasUse::default()
        }
    }

    #[test]
    fn dwell_is_the_recorded_time_else_that_since_the_canvas_was_presented() {
        let mut recorded = event("b", "close", 20);
        recorded.open_seconds = Some(12.0);
        let events = vec![
            event("a", "close", 3),
            event("a", "present", 0),
            event("b", "present", 19),
            recorded,
            event("c", "close", 1),
        ];
        let found = understand(events, |_| None);
        let sheets = &found.types[0];
        assert_eq!((sheets.closed_quickly, sheets.closed_slowly, sheets.closed_untimed), (1, 1, 1));
        assert_eq!((sheets.dwell_seconds, sheets.dwell_n, sheets.dwell_recorded), (Some(7.5), 2, 1));
        assert!((sheets.reward - -0.1).abs() < 1e-12);
        assert_eq!(sheets.reward_n, 2);
        assert_eq!(found.with("engages"), ["sheets"]);
    }

    #[test]
    fn five_seconds_sharp_are_not_quick() {
        let found = understand(vec![event("a", "present", 0), event("a", "close", 5)], |_| None);
        assert_eq!(found.types[0].closed_slowly, 1);
    }

    #[test]
    fn an_act_decides_how_a_canvas_went() {
        let events = vec![
            event("acted", "present", 0),
            event("acted", "submit", 2),
            event("acted", "close", 3),
            event("shut", "present", 0),
            event("shut", "close", 1),
            event("open", "present", 0),
            event("broken", "error", 0),
        ];
        let values: Vec<f64> = understand(events, |_| None).outcomes.iter().map(|o| o.value).collect();
        assert_eq!(values, [1.0, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn only_a_users_update_after_a_presentation_corrects() {
        let mut own = event("a", "update", 3);
        own.by_agent = true;
        let events = vec![event("a", "present", 0), own, event("a", "update", 4), event("b", "update", 0)];
        let found = understand(events, |_| None);
        assert_eq!((found.types[0].updated, found.corrections()), (3, 1));
    }

    #[test]
    fn feedback_counts_once_an_episode() {
        let mut events = vec![event("a", "present", 0), event("b", "present", 0), event("c", "present", 0)];
        for (event, episode) in events.iter_mut().zip([4, 4, 2]) {
            event.episode = Some(episode);
        }
        let found = understand(events, |episode| Some(if episode == 2 { -0.5 } else { 1.0 }));
        assert_eq!((found.types[0].feedback, found.types[0].feedback_n), (Some(0.25), 2));
    }
}
