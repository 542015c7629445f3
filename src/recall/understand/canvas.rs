//! Use of canvases by the people they are shown to: dwell, engagement, rewards of observations, success.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;

use super::quality::{CanvasSuccess, MeanSum};
use crate::memory::digest::{Digest, digest};
use crate::memory::packed::records::{Record, RecordSorter, in_order, ordered, unordered};
use crate::memory::packed::space::MakeSpace;

/// Seconds below which a canvas counts as closed quickly.
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

/// Combined name for kinds of canvas and actions beyond the memory limit.
pub const OTHERS: &str = "(others)";

/// Bytes for kinds of canvas and other actions, with their counts: about 4,000 kinds.
const ROOM: usize = 2 << 20;

/// The rules for the words of a canvas type, for people.
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

/// A canvas event, reduced to what these rules need.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CanvasUse<'r> {
    /// Id of the event, which orders events with the same time: its first 16 bytes, then its last 8.
    pub id: &'r str,
    /// The canvas; an event without one is a canvas of its own.
    pub canvas: Option<&'r str>,
    /// Stored canvas type; empty if none.
    pub canvas_type: &'r str,
    /// Stored component type; empty if none.
    pub component: &'r str,
    /// Action of the event, as stored.
    pub action: &'r str,
    /// Time of the event, in microseconds since 1970.
    pub at: Option<i64>,
    /// Seconds for which the canvas was open, as recorded on closing.
    pub open_seconds: Option<f64>,
    /// Recorded as done by the agent or the system itself.
    pub by_agent: bool,
    /// The episode it depends on.
    pub episode: Option<Digest>,
}

/// Counts of one canvas type, or of one of its component types.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Engagement {
    /// Canvas type; empty if none is stored.
    pub canvas_type: String,
    /// Component type; `None` for the type as a whole.
    pub component_type: Option<String>,
    /// Words whose rule applies: `closes_quickly`, `engages`, `submits`.
    pub verdicts: Vec<&'static str>,
    /// Times presented.
    pub presented: usize,
    /// Times closed.
    pub closed: usize,
    /// Closed under 5 s.
    pub closed_quickly: usize,
    /// Closed at 5 s or later.
    pub closed_slowly: usize,
    /// Closed with an unknown duration.
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
    /// Mean open time in seconds; `None` if unknown.
    pub dwell_seconds: Option<f64>,
    /// Number of closes in the mean.
    pub dwell_n: usize,
    /// Number of these with a recorded time; the others are timed by their events.
    pub dwell_recorded: usize,
    /// Episodes that it was shown in.
    pub episodes: usize,
    /// Mean feedback aggregate of those episodes, in -1..1; `None` if unknown for all.
    pub feedback: Option<f64>,
    /// Number of episodes in the mean.
    pub feedback_n: usize,
    /// Sum of the rewards of its observations.
    pub reward: f64,
    /// Observations with a reward.
    pub reward_n: usize,
}

/// An observation with its reward and its number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// Name of the observation.
    pub observation: &'static str,
    /// Reward of the observation; `None` if none is defined.
    pub reward: Option<f64>,
    /// Number of times it was made.
    pub n: usize,
}

/// Summary of canvas events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CanvasSummary {
    /// By canvas type, most presented first.
    pub types: Vec<Engagement>,
    /// By canvas and component type.
    pub components: Vec<Engagement>,
    /// Success of the canvases.
    pub success: CanvasSuccess,
    /// Events in all.
    pub events: usize,
    /// Whether some kinds or actions are combined as [`OTHERS`].
    pub has_others: bool,
}

#[derive(Default)]
struct CanvasTally {
    counts: Engagement,
    dwell: f64,
    feedback: MeanSum,
}

/// Processes canvas events in any order and number: data that does not fit in memory goes to scratch space.
pub struct CanvasStudy {
    /// The index of a type, and of each of its components.
    places: BTreeMap<String, (usize, BTreeMap<String, usize>)>,
    types: Vec<CanvasTally>,
    /// The components, each with the place of its type.
    parts: Vec<(usize, CanvasTally)>,
    steps: RecordSorter<8>,
    /// Episodes, with the components that were shown in them.
    shown: RecordSorter<2>,
    /// Time of the newest event.
    newest: Option<i64>,
    /// Events later than this do not end the last period; `None` without a limit.
    now: Option<i64>,
    events: usize,
    /// Bytes left for new kinds and actions.
    room: usize,
    has_others: bool,
}

impl CanvasStudy {
    /// Creates an empty study. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        CanvasStudy {
            places: BTreeMap::new(),
            types: Vec::new(),
            parts: Vec::new(),
            steps: RecordSorter::new(space),
            shown: RecordSorter::new(space),
            newest: None,
            now: None,
            events: 0,
            room: ROOM,
            has_others: false,
        }
    }

    /// The same study at a moment, in microseconds since 1970: later events do not end the last period.
    pub fn as_of(self, now: Option<i64>) -> Self {
        CanvasStudy { now, ..self }
    }

    /// Adds an event.
    pub fn add(&mut self, event: &CanvasUse<'_>) {
        let part = self.part(event.canvas_type, event.component);
        let action = CanvasAction::of(event.action);
        if action == CanvasAction::Other {
            self.count_other(part, event.action);
        }
        let step = CanvasStep {
            canvas: event.canvas.filter(|id| !id.trim().is_empty()).map_or(0, digest),
            at: event.at,
            part,
            action,
            by_agent: event.by_agent,
            open_seconds: event.open_seconds,
            episode: event.episode,
        };
        self.steps.add(step.record(event.id));
        self.newest = self.newest.max(event.at.filter(|at| self.now.is_none_or(|now| *at <= now)));
        self.events += 1;
    }

    /// Sums up the events. `feedback` returns the known feedback aggregate of an episode.
    ///
    /// # Errors
    /// Data that does not fit in memory cannot be written or read.
    pub fn close(mut self, feedback: impl Fn(Digest) -> Option<f64>) -> io::Result<CanvasSummary> {
        let success = self.follow_canvases()?;
        self.show_in_episodes(feedback)?;
        let (mut types, mut components) = (Vec::new(), Vec::new());
        for (kind, (whole, parts)) in &self.places {
            types.extend(self.types.get_mut(*whole).map(|tally| tally.close(kind, None)));
            for (part, at) in parts {
                components.extend(self.parts.get_mut(*at).map(|(_, tally)| tally.close(kind, Some(part))));
            }
        }
        let (types, components) = (ranked(types), ranked(components));
        Ok(CanvasSummary { types, components, success, events: self.events, has_others: self.has_others })
    }

    /// Follows each canvas through its events, in the order of their times.
    fn follow_canvases(&mut self) -> io::Result<CanvasSuccess> {
        let mut success = CanvasSuccess::until(self.newest);
        let sorted = self.steps.take().sorted()?;
        let mut stream = sorted.stream()?;
        while let Some(canvas) = stream.group() {
            let mut course = CanvasCourse::begin();
            while let Some(record) = stream.next_of(canvas)? {
                let step = CanvasStep::of(record);
                let moment = course.take(&step);
                self.tallies(step.part, |tally| tally.add(moment));
                let place = step.episode.map(|episode| [episode, step.part as u64]);
                if let Some(place) = place.filter(|_| course.shown != place) {
                    self.shown.add(place);
                    course.shown = Some(place);
                }
                if canvas == 0 {
                    // Without a canvas it is one of its own.
                    break;
                }
            }
            success.add(course.value, course.at);
        }
        Ok(success)
    }

    /// Counts each episode once, with all the components shown in it.
    fn show_in_episodes(&mut self, feedback: impl Fn(Digest) -> Option<f64>) -> io::Result<()> {
        let sorted = self.shown.take().sorted()?;
        let mut stream = sorted.stream()?;
        while let Some(episode) = stream.group() {
            let mut parts = BTreeSet::new();
            while let Some([_, part]) = stream.next_of(episode)? {
                parts.insert(part as usize);
            }
            self.shown_in(&parts, feedback(episode));
        }
        Ok(())
    }

    fn shown_in(&mut self, parts: &BTreeSet<usize>, feedback: Option<f64>) {
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

    /// The tallies of a component and of its type.
    fn tallies(&mut self, part: usize, mut tell: impl FnMut(&mut CanvasTally)) {
        if let Some((of, tally)) = self.parts.get_mut(part) {
            tell(tally);
            self.types.get_mut(*of).into_iter().for_each(tell);
        }
    }

    /// Counts an action that the rules do not know.
    fn count_other(&mut self, part: usize, action: &str) {
        let is_known = self.parts.get(part).is_some_and(|(_, tally)| tally.counts.other.contains_key(action));
        let name = if is_known || self.takes_room(action.len() + size_of::<String>()) { action } else { OTHERS };
        self.tallies(part, |tally| match tally.counts.other.get_mut(name) {
            Some(n) => *n += 1,
            None => drop(tally.counts.other.insert(name.to_owned(), 1)),
        });
    }

    /// The place of a component of a type.
    fn part(&mut self, kind: &str, component: &str) -> usize {
        if let Some(place) = self.places.get(kind).and_then(|(_, parts)| parts.get(component)) {
            return *place;
        }
        let is_others = (kind, component) == (OTHERS, OTHERS);
        if !is_others && !self.takes_room(2 * size_of::<CanvasTally>() + kind.len() + component.len()) {
            return self.part(OTHERS, OTHERS);
        }
        let (whole, parts) = self.places.entry(kind.to_owned()).or_insert_with(|| {
            self.types.push(CanvasTally::default());
            (self.types.len() - 1, BTreeMap::new())
        });
        self.parts.push((*whole, CanvasTally::default()));
        parts.insert(component.to_owned(), self.parts.len() - 1);
        self.parts.len() - 1
    }

    /// Reserves memory for a new name, if there is enough.
    fn takes_room(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes);
        self.has_others |= left.is_none();
        self.room = left.unwrap_or(self.room);
        left.is_some()
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
    /// Closed: seconds open if known, and whether they were recorded.
    Closed(Option<(f64, bool)>),
    Submitted,
    Executed,
    Updated {
        corrects: bool,
    },
    Error,
    Other,
}

/// Action of an event, as far as these rules know it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CanvasAction {
    Present,
    Close,
    Submit,
    Execute,
    Update,
    Error,
    Other,
}

impl CanvasAction {
    /// The known ones by number; any other number is another action.
    const KNOWN: [(&str, CanvasAction); 6] = [
        ("present", CanvasAction::Present),
        ("close", CanvasAction::Close),
        ("submit", CanvasAction::Submit),
        ("execute", CanvasAction::Execute),
        ("update", CanvasAction::Update),
        ("error", CanvasAction::Error),
    ];

    fn of(stored: &str) -> Self {
        Self::KNOWN.iter().find(|(name, _)| *name == stored).map_or(CanvasAction::Other, |(_, action)| *action)
    }
}

/// An event as numbers, without its texts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CanvasStep {
    /// The canvas; 0 for none.
    canvas: Digest,
    at: Option<i64>,
    /// Place of its component.
    part: usize,
    action: CanvasAction,
    by_agent: bool,
    open_seconds: Option<f64>,
    episode: Option<Digest>,
}

impl CanvasStep {
    /// A record sorted by canvas, time and id.
    fn record(&self, id: &str) -> Record<8> {
        let [first, rest, end] = in_order(id);
        let action = CanvasAction::KNOWN.iter().position(|(_, known)| *known == self.action).unwrap_or(usize::MAX);
        [
            self.canvas,
            ordered(self.at.unwrap_or(i64::MIN)),
            first,
            rest,
            end,
            (self.part as u64) << 16 | u64::from(self.by_agent) << 8 | action as u64 & 0xff,
            self.open_seconds.unwrap_or(f64::NAN).to_bits(),
            self.episode.unwrap_or_default(),
        ]
    }

    fn of([canvas, at, _, _, _, what, open, episode]: Record<8>) -> Self {
        let known = CanvasAction::KNOWN.get((what & 0xff) as usize);
        CanvasStep {
            canvas,
            at: Some(unordered(at)).filter(|at| *at != i64::MIN),
            part: (what >> 16) as usize,
            action: known.map_or(CanvasAction::Other, |(_, action)| *action),
            by_agent: what >> 8 & 1 == 1,
            open_seconds: Some(f64::from_bits(open)).filter(|seconds| !seconds.is_nan()),
            episode: Some(episode).filter(|episode| *episode != 0),
        }
    }
}

/// A canvas up to one of its events.
struct CanvasCourse {
    presented: bool,
    presented_at: Option<i64>,
    /// 1 if submitted or executed, 0 if closed within 5 s or with an error, otherwise 0.5.
    value: f64,
    /// Time of its last event.
    at: Option<i64>,
    /// The episode and the component reported last.
    shown: Option<Record<2>>,
}

impl CanvasCourse {
    fn begin() -> Self {
        CanvasCourse { presented: false, presented_at: None, value: 0.5, at: None, shown: None }
    }

    /// Adds the next event, and returns its meaning here.
    fn take(&mut self, step: &CanvasStep) -> CanvasMoment {
        let moment = self.moment(step);
        if moment == CanvasMoment::Presented {
            (self.presented, self.presented_at) = (true, step.at);
        }
        self.value = moment.moves(self.value);
        self.at = self.at.max(step.at);
        moment
    }

    fn moment(&self, step: &CanvasStep) -> CanvasMoment {
        match step.action {
            CanvasAction::Present => CanvasMoment::Presented,
            CanvasAction::Close => {
                let recorded = step.open_seconds.filter(|s| s.is_finite() && *s >= 0.0).map(|s| (s, true));
                let between = || Some((step.at? - self.presented_at?) as f64 / 1e6).filter(|s| *s >= 0.0);
                CanvasMoment::Closed(recorded.or_else(|| between().map(|s| (s, false))))
            }
            CanvasAction::Submit => CanvasMoment::Submitted,
            CanvasAction::Execute => CanvasMoment::Executed,
            CanvasAction::Update => CanvasMoment::Updated { corrects: self.presented && !step.by_agent },
            CanvasAction::Error => CanvasMoment::Error,
            CanvasAction::Other => CanvasMoment::Other,
        }
    }
}

impl CanvasMoment {
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
    fn add(&mut self, seen: CanvasMoment) {
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
            CanvasMoment::Other => {}
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

/// The words whose rule in [`RULES`] applies.
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
    pub fn with(&self, verdict: &str) -> Vec<&str> {
        let mut types: Vec<&str> =
            self.types.iter().filter(|t| t.verdicts.contains(&verdict)).map(|t| t.canvas_type.as_str()).collect();
        types.sort_unstable();
        types
    }

    /// Every observation of [`REWARDS`] with its number; thumbs are counted elsewhere.
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
    pub fn corrections(&self) -> usize {
        self.types.iter().map(|t| t.corrected).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::space::tests::{no_space, space};

    fn event(canvas: &'static str, action: &'static str, second: i64) -> CanvasUse<'static> {
        CanvasUse {
            canvas: Some(canvas),
            canvas_type: "sheets",
            component: "table",
            action,
            at: Some(second * 1_000_000),
            ..CanvasUse::default()
        }
    }

    /// Summarizes events; the result must be the same with and without memory.
    fn understand(events: &[CanvasUse<'_>], feedback: impl Fn(Digest) -> Option<f64>) -> CanvasSummary {
        let understood = |bytes| {
            let mut study = CanvasStudy::new(space);
            study.steps = study.steps.take().within(bytes);
            study.shown = study.shown.take().within(bytes);
            events.iter().for_each(|event| study.add(event));
            study.close(&feedback).unwrap()
        };
        let found = understood(1 << 20);
        assert_eq!(understood(1), found);
        found
    }

    #[test]
    fn dwell_is_the_recorded_time_else_that_since_the_canvas_was_presented() {
        let mut recorded = event("b", "close", 20);
        recorded.open_seconds = Some(12.0);
        let events = [
            event("a", "close", 3),
            event("a", "present", 0),
            event("b", "present", 19),
            recorded,
            event("c", "close", 1),
        ];
        let found = understand(&events, |_| None);
        let sheets = &found.types[0];
        assert_eq!((sheets.closed_quickly, sheets.closed_slowly, sheets.closed_untimed), (1, 1, 1));
        assert_eq!((sheets.dwell_seconds, sheets.dwell_n, sheets.dwell_recorded), (Some(7.5), 2, 1));
        assert!((sheets.reward - -0.1).abs() < 1e-12);
        assert_eq!(sheets.reward_n, 2);
        assert_eq!(found.with("engages"), ["sheets"]);
    }

    #[test]
    fn five_seconds_sharp_are_not_quick() {
        let found = understand(&[event("a", "present", 0), event("a", "close", 5)], |_| None);
        assert_eq!(found.types[0].closed_slowly, 1);
    }

    #[test]
    fn an_act_decides_how_a_canvas_went() {
        let events = [
            event("acted", "present", 0),
            event("acted", "submit", 2),
            event("acted", "close", 3),
            event("shut", "present", 0),
            event("shut", "close", 1),
            event("open", "present", 0),
            event("broken", "error", 0),
        ];
        for (canvas, value) in [("acted", 1.0), ("shut", 0.0), ("open", 0.5), ("broken", 0.0)] {
            let events: Vec<_> = events.iter().filter(|event| event.canvas == Some(canvas)).copied().collect();
            assert_eq!(understand(&events, |_| None).success.all.mean(), Some(value), "{canvas}");
        }
        let found = understand(&events, |_| None).success.periods();
        assert_eq!((found.last, found.last_n, found.previous_n), (Some(0.375), 4, 0));
    }

    #[test]
    fn an_event_of_the_future_does_not_end_the_last_period() {
        let mut study = CanvasStudy::new(space).as_of(Some(10_000_000));
        [event("a", "present", 0), event("b", "present", 9), event("c", "present", 100_000_000)]
            .iter()
            .for_each(|event| study.add(event));
        let found = study.close(|_| None).unwrap().success;
        assert_eq!((found.all.n, found.periods().last_n), (3, 2));
    }

    #[test]
    fn only_a_users_update_after_a_presentation_corrects() {
        let mut own = event("a", "update", 3);
        own.by_agent = true;
        let events = [event("a", "present", 0), own, event("a", "update", 4), event("b", "update", 0)];
        let found = understand(&events, |_| None);
        assert_eq!((found.types[0].updated, found.corrections()), (3, 1));
    }

    #[test]
    fn feedback_counts_once_an_episode() {
        let mut events = [event("a", "present", 0), event("b", "present", 0), event("c", "present", 0)];
        for (event, episode) in events.iter_mut().zip([4, 4, 2]) {
            event.episode = Some(episode);
        }
        let found = understand(&events, |episode| Some(if episode == 2 { -0.5 } else { 1.0 }));
        assert_eq!((found.types[0].feedback, found.types[0].feedback_n), (Some(0.25), 2));
    }

    #[test]
    fn an_event_without_a_canvas_stands_alone() {
        for canvas in [None, Some(""), Some(" ")] {
            let alone = |action, second| CanvasUse { canvas, ..event("", action, second) };
            let found =
                understand(&[alone("present", 0), alone("close", 9), alone("peek", 9), alone("peek", 0)], |_| None);
            assert_eq!((found.types[0].closed_untimed, found.success.all.n, found.events), (1, 4, 4));
            assert_eq!(
                (&found.types[0].other, &found.components[0].other),
                (&[("peek".to_owned(), 2)].into(), &[("peek".to_owned(), 2)].into())
            );
        }
    }

    #[test]
    fn a_record_holds_all_of_a_step() {
        let step = CanvasStep {
            canvas: digest("a"),
            at: Some(-1),
            part: 70_000,
            action: CanvasAction::Other,
            by_agent: true,
            open_seconds: Some(1.5),
            episode: Some(digest("e")),
        };
        let none =
            CanvasStep { canvas: 0, at: None, part: 0, open_seconds: None, episode: None, by_agent: false, ..step };
        for action in CanvasAction::KNOWN.iter().map(|(_, action)| *action).chain([CanvasAction::Other]) {
            for step in [step, none] {
                let step = CanvasStep { action, ..step };
                assert_eq!(CanvasStep::of(step.record("an id")), step);
            }
        }
    }

    #[test]
    fn an_episode_counts_once_for_a_type_and_for_each_of_its_components() {
        let mut events = [event("a", "present", 0), event("b", "present", 0), event("b", "update", 1)];
        events[1].component = "form";
        events.iter_mut().for_each(|event| event.episode = Some(4));
        let found = understand(&events, |_| Some(1.0));
        assert_eq!((found.types[0].episodes, found.types[0].feedback_n), (1, 1));
        assert_eq!(found.components.iter().map(|part| part.episodes).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn ids_order_events_of_one_time() {
        let named = |id, action| CanvasUse { id, ..event("a", action, 1) };
        for ids in [["a", "b"], ["2", "10-"], ["canvas-event-of-2026-000009", "canvas-event-of-2026-000010"]] {
            let [first, second] = ids;
            let presented = [named(second, "update"), named(first, "present")];
            let later = [named(first, "update"), named(second, "present")];
            let corrected = if first < second { (1, 0) } else { (0, 1) };
            let found = [&presented, &later].map(|events| understand(events, |_| None).corrections());
            assert_eq!((found[0], found[1]), corrected, "{ids:?}");
        }
    }

    #[test]
    fn kinds_without_room_are_counted_together_and_none_is_lost() {
        let mut study = CanvasStudy::new(space);
        study.room = 3_000;
        let names: Vec<String> = (0..500).map(|n| format!("kind {n}")).collect();
        for name in &names {
            for action in ["present", name] {
                let event = event("", "", 0);
                study.add(&CanvasUse { canvas: None, canvas_type: name, component: name, action, ..event });
            }
        }
        let found = study.close(|_| None).unwrap();
        assert!(found.has_others && found.types.len() < 10 && found.components.len() < 10);
        let counted =
            |groups: &[Engagement]| groups.iter().map(|g| g.presented + g.other.values().sum::<usize>()).sum::<usize>();
        assert_eq!([&found.types, &found.components].map(|groups| counted(groups)), [1_000; 2]);
        assert_eq!((found.types[0].canvas_type.as_str(), found.types[0].other.len()), (OTHERS, 1));
        let unbounded = understand(&[event("a", "peek", 0)], |_| None);
        assert!(!unbounded.has_others);
    }

    #[test]
    fn without_room_there_is_no_summary() {
        let mut study = CanvasStudy::new(no_space);
        study.steps = study.steps.take().within(1);
        (0..3).for_each(|second| study.add(&event("a", "present", second)));
        assert_eq!(study.close(|_| None).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
