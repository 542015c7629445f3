//! An episode as a story: every moment in its context, in time order, with its lane.

use serde_json::Value;

use super::query::EpisodeContext;
use super::utility::{self, UtilityReplay};
use super::{Entity, Row, time};

/// Most actions of an episode to show.
pub const ACTIONS: usize = 500;

/// Kind of a moment, shown as a lane of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoryLane {
    /// Spoken words.
    Said,
    /// Actions.
    Did,
    /// Items shown to the user on canvases, and user actions there.
    Canvas,
    /// Feedback from users.
    Feedback,
    /// Signals that moved the utility.
    Utility,
    /// Accesses that recalled the episode.
    Recalled,
}

impl StoryLane {
    /// Every lane, from top to bottom.
    pub const ALL: [StoryLane; 6] = [
        StoryLane::Said,
        StoryLane::Did,
        StoryLane::Canvas,
        StoryLane::Feedback,
        StoryLane::Utility,
        StoryLane::Recalled,
    ];

    /// Returns the label in front of the lane.
    pub fn title(self) -> &'static str {
        match self {
            StoryLane::Said => "said",
            StoryLane::Did => "did",
            StoryLane::Canvas => "canvas",
            StoryLane::Feedback => "feedback",
            StoryLane::Utility => "utility",
            StoryLane::Recalled => "recalled",
        }
    }
}

/// Position of a moment's source within the episode's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentSource {
    /// Among the segments.
    Segment(usize),
    /// Among the workflow events.
    Event(usize),
    /// Among the actions of the episode.
    Action(usize),
    /// Among the canvas events.
    Canvas(usize),
    /// Among the feedback.
    Feedback(usize),
    /// Among the signals.
    Signal(usize),
    /// Among the accesses.
    Access(usize),
}

impl MomentSource {
    /// The row of the moment; an action is part of the episode's own row.
    pub fn row(self, context: &EpisodeContext) -> Option<&Row> {
        match self {
            MomentSource::Segment(at) => context.segments.get(at),
            MomentSource::Event(at) => context.events.get(at),
            MomentSource::Action(_) => None,
            MomentSource::Canvas(at) => context.canvas.get(at),
            MomentSource::Feedback(at) => context.feedback.get(at),
            MomentSource::Signal(at) => context.utility.get(at),
            MomentSource::Access(at) => context.accesses.get(at),
        }
    }
}

/// One event in the story of an episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Position on the axis: seconds since 1970, or the moment's index if the axis is even.
    pub at: f64,
    /// Whether the time of the moment is stored. Otherwise it gets that of the previous moment in its list.
    pub is_timed: bool,
    /// Lane that shows the moment.
    pub lane: StoryLane,
    /// Position of the source in the episode's context.
    pub source: MomentSource,
}

/// Every moment of an episode, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Story {
    /// From first to last.
    pub moments: Vec<Moment>,
    /// Reason why the axis is even instead of showing true time; `None` if it shows true time.
    pub even: Option<&'static str>,
}

impl Story {
    /// Builds the story from a context.
    pub fn of(context: &EpisodeContext) -> Self {
        let mut told = Told::default();
        told.list(&context.segments, |row, at| {
            (!is_told_elsewhere(row, context)).then(|| (segment_lane(row), MomentSource::Segment(at)))
        });
        told.list(&context.events, |row, at| Some((event_lane(row), MomentSource::Event(at))));
        if context.events.is_empty() {
            // An event log contains the same in more detail.
            told.actions(context.episode.get("actions"));
        }
        told.list(&context.canvas, |_, at| Some((StoryLane::Canvas, MomentSource::Canvas(at))));
        told.list(&context.feedback, |_, at| Some((StoryLane::Feedback, MomentSource::Feedback(at))));
        told.list(&context.utility, |_, at| Some((StoryLane::Utility, MomentSource::Signal(at))));
        told.list(&context.accesses, |_, at| Some((StoryLane::Recalled, MomentSource::Access(at))));
        told.finish(context.episode.text("started_at").and_then(time::epoch_micros))
    }

    /// Number of rows and actions left out if there are very many.
    pub fn untold(context: &EpisodeContext) -> usize {
        let actions = context.episode.get("actions").as_array().filter(|_| context.events.is_empty());
        let actions = actions.map_or(0, |actions| actions.len().saturating_sub(ACTIONS));
        context.more.values().sum::<usize>() + actions
    }

    /// Counts the moments without a stored time.
    pub fn untimed(&self) -> usize {
        self.moments.iter().filter(|moment| !moment.is_timed).count()
    }
}

/// Moments as they are collected: with their times, or that of the previous one in their list.
#[derive(Default)]
struct Told {
    found: Vec<(Option<i64>, bool, StoryLane, MomentSource)>,
}

impl Told {
    fn list(&mut self, rows: &[Row], moment: impl Fn(&Row, usize) -> Option<(StoryLane, MomentSource)>) {
        let mut before = None;
        for (at, row) in rows.iter().enumerate() {
            let own = row.text("created_at").and_then(time::epoch_micros);
            before = own.or(before);
            self.found.extend(moment(row, at).map(|(lane, source)| (before, own.is_some(), lane, source)));
        }
    }

    fn actions(&mut self, actions: &Value) {
        let mut before = None;
        for (at, action) in actions.as_array().into_iter().flatten().take(ACTIONS).enumerate() {
            let own = action.get("at").and_then(Value::as_str).and_then(time::epoch_micros);
            before = own.or(before);
            self.found.push((before, own.is_some(), StoryLane::Did, MomentSource::Action(at)));
        }
    }

    /// Sorts the moments; those before every time are placed at the beginning of the episode.
    fn finish(mut self, started: Option<i64>) -> Story {
        let first = self.found.iter().filter_map(|(at, ..)| *at).min();
        let last = self.found.iter().filter_map(|(at, ..)| *at).max();
        let begin = started.or(first);
        for (at, ..) in &mut self.found {
            *at = at.or(begin);
        }
        // Stable: at the same time, moments keep the order of lanes and, within a list, its own order.
        self.found.sort_by_key(|(at, ..)| *at);
        let even = match (first, last) {
            (None, _) => Some("no times are stored"),
            (Some(first), Some(last)) if first == last && started.is_none_or(|at| at == first) => {
                Some("everything has the same time")
            }
            _ => None,
        };
        let place = |position: usize, at: Option<i64>| match (even, at) {
            (None, Some(micros)) => micros as f64 / 1e6,
            _ => position as f64,
        };
        let found = self.found.into_iter().enumerate();
        let moment =
            |(position, (at, is_timed, lane, source))| Moment { at: place(position, at), is_timed, lane, source };
        Story { moments: found.map(moment).collect(), even }
    }
}

/// Whether a segment only repeats a canvas event, feedback or workflow event that has a row of its own.
fn is_told_elsewhere(segment: &Row, context: &EpisodeContext) -> bool {
    let Some(source) = segment.text("source_id").filter(|id| !id.is_empty()) else { return false };
    let among = |rows: &[Row]| rows.iter().any(|row| row.id() == source);
    match segment.text("source_type") {
        Some("canvas_audit") => among(&context.canvas),
        Some("agent_feedback") => among(&context.feedback),
        _ => false,
    }
}

fn segment_lane(row: &Row) -> StoryLane {
    match row.text("kind").unwrap_or_default() {
        kind if kind.contains("canvas") => StoryLane::Canvas,
        kind if ["execution", "action", "tool", "step"].iter().any(|word| kind.contains(word)) => StoryLane::Did,
        _ => StoryLane::Said,
    }
}

fn event_lane(row: &Row) -> StoryLane {
    if row.text("kind").is_some_and(|kind| kind.contains("message")) { StoryLane::Said } else { StoryLane::Did }
}

/// Replays the signals of an episode from the utility before the first one.
pub fn signals(context: &EpisodeContext) -> UtilityReplay {
    let start = context.utility.first().and_then(|row| row.number("before")).unwrap_or(utility::START);
    utility::replay(start, context.utility.iter().map(|row| row.text("signal").unwrap_or_default()))
}

/// Kind and id of the row of a moment; the episode's own for an action.
pub fn row_of(moment: &Moment, context: &EpisodeContext) -> (Entity, String) {
    let row = moment.source.row(context).unwrap_or(&context.episode);
    (row.entity, row.id().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::chain::Chain;

    fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
        Row::with(entity, values.iter().cloned())
    }

    fn context() -> EpisodeContext {
        EpisodeContext {
            episode: row(Entity::Episode, &[("id", json!("e"))]),
            segments: Vec::new(),
            canvas: Vec::new(),
            feedback: Vec::new(),
            chain: Chain { ids: vec!["e".to_owned()], children: Vec::new(), cycle: false, missing_parent: None },
            relatives: std::collections::BTreeMap::new(),
            is_cut: false,
            utility: Vec::new(),
            links: Vec::new(),
            memories: Vec::new(),
            events: Vec::new(),
            accesses: Vec::new(),
            more: std::collections::BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    fn at(entity: Entity, time: &str, more: &[(&str, Value)]) -> Row {
        let mut row = row(entity, more);
        row.set("created_at", json!(time));
        row
    }

    #[test]
    fn moments_of_all_lanes_stand_in_order_of_time() {
        let mut context = context();
        context.segments = vec![
            at(Entity::Segment, "2026-02-04T08:00:00Z", &[("kind", json!("message"))]),
            row(Entity::Segment, &[("kind", json!("execution"))]),
            at(Entity::Segment, "2026-02-04T08:11:00Z", &[("kind", json!("message"))]),
        ];
        context.feedback = vec![at(Entity::Feedback, "2026-02-06T14:02:00Z", &[])];
        context.canvas = vec![at(Entity::CanvasEvent, "2026-02-04T08:04:00Z", &[])];
        let story = Story::of(&context);
        let told: Vec<(StoryLane, bool)> = story.moments.iter().map(|m| (m.lane, m.is_timed)).collect();
        assert_eq!(
            told,
            [
                (StoryLane::Said, true),
                (StoryLane::Did, false),
                (StoryLane::Canvas, true),
                (StoryLane::Said, true),
                (StoryLane::Feedback, true)
            ]
        );
        let [first, second] = [0, 1].map(|n: usize| story.moments[n].at.to_bits());
        assert_eq!(second, first, "it is placed where the one before it is");
        assert_eq!((story.even, story.untimed()), (None, 1));
    }

    #[test]
    fn without_times_the_axis_is_even_and_says_why() {
        let mut context = context();
        context.segments = vec![row(Entity::Segment, &[]), row(Entity::Segment, &[])];
        let story = Story::of(&context);
        assert_eq!(story.even, Some("no times are stored"));
        assert_eq!(story.moments.iter().map(|m| m.at).collect::<Vec<f64>>(), [0.0, 1.0]);
        let same = |_| at(Entity::Segment, "2026-02-04T08:00:00Z", &[]);
        context.segments = (0..3).map(same).collect();
        assert_eq!(Story::of(&context).even, Some("everything has the same time"));
    }

    #[test]
    fn what_two_rows_tell_is_told_once() {
        let mut context = context();
        let copy =
            [("kind", json!("canvas_update")), ("source_type", json!("canvas_audit")), ("source_id", json!("c"))];
        context.segments = vec![at(Entity::Segment, "2026-02-04T08:00:00Z", &copy)];
        assert_eq!(Story::of(&context).moments.len(), 1, "nothing else gives it");
        context.canvas = vec![at(Entity::CanvasEvent, "2026-02-04T08:00:00Z", &[("id", json!("c"))])];
        let told: Vec<MomentSource> = Story::of(&context).moments.iter().map(|m| m.source).collect();
        assert_eq!(told, [MomentSource::Canvas(0)]);
        context.episode.set("actions", json!([{"step_name": "fetch", "at": "2026-02-04T08:01:00Z"}]));
        assert_eq!(Story::of(&context).moments.len(), 2);
        context.events = vec![at(Entity::WorkflowEvent, "2026-02-04T08:01:00Z", &[("kind", json!("step.completed"))])];
        assert!(Story::of(&context).moments.iter().all(|m| m.source != MomentSource::Action(0)));
    }
}
