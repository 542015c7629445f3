//! Feedback of people on an episode, and the signals that change its utility.

use super::calendar::{DAY, HOUR, MINUTE, stamp};
use super::ids::Ids;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{DemoRow, FEEDBACK, UTILITY};
use crate::memory::feedback::{self, RATING, THUMBS_DOWN, THUMBS_UP};
use crate::memory::utility::{self, Signal};

/// Reasons for signals, in the order of [`Signal::ALL`].
const REASONS: [&str; 5] = [
    "answer was accepted as it stood",
    "a detail was put right",
    "the user said no",
    "the change had to be taken back",
    "no reaction within two days",
];

/// Generates the feedback given after the end of an episode, in time order, and the resulting score of the episode:
/// -1..=1, `None` if nothing counts.
pub fn feedback(moment: &EpisodeFacts<'_>, ids: &mut Ids) -> (Vec<DemoRow>, Option<f64>) {
    let mut chance = moment.chance("feedback");
    let mut rows = Vec::new();
    let mut scores = Vec::new();
    let mut clock = moment.ended;
    let count = chance.weighted(&[0.6, 0.3, 0.08, 0.02]).max(usize::from(moment.rich));
    for _ in 0..count {
        clock += if chance.is(0.85) { chance.between(1, 90) * MINUTE } else { chance.between(1, 4) * DAY };
        clock += chance.between(0, 59_999_999);
        if clock > moment.anchor {
            break;
        }
        let content = moment.outcome.pleases() != chance.is(0.12);
        let (kind, rating) = match (chance.weighted(&[0.5, 0.38, 0.12]), content) {
            (0, true) => (THUMBS_UP, None),
            (0, false) => (THUMBS_DOWN, None),
            (1, true) => (RATING, Some(chance.between(4, 5))),
            (1, false) => (RATING, Some(chance.between(1, 3))),
            _ => ("correction", None),
        };
        scores.extend(feedback::score(kind, rating));
        let corrects = kind == "correction" || !content && chance.is(0.55) || content && chance.is(0.08);
        rows.push(
            DemoRow::new(&FEEDBACK)
                .with("id", ids.next("fb"))
                .with("episode_id", &moment.id)
                .with("execution_id", moment.run().to_owned())
                .with("agent_id", moment.agent().id)
                .with("user_id", &moment.person.id)
                .with("kind", kind)
                .with("rating", rating)
                .with("correction", corrects.then(|| moment.words.say(&moment.topic.corrections, &mut chance)))
                .with("created_at", stamp(clock)),
        );
    }
    (rows, feedback::aggregate(scores))
}

/// The signals that an episode got, in time order, and the utility that they lead to, 0..=1.
pub fn signals(moment: &EpisodeFacts<'_>, ids: &mut Ids) -> (Vec<DemoRow>, f64) {
    let mut chance = moment.chance("signals");
    let weights = match moment.outcome {
        EpisodeEnd::Success => [0.78, 0.1, 0.02, 0.01, 0.09],
        EpisodeEnd::Partial => [0.25, 0.5, 0.1, 0.05, 0.1],
        EpisodeEnd::Failure => [0.04, 0.2, 0.42, 0.3, 0.04],
        _ => [0.15, 0.15, 0.2, 0.05, 0.45],
    };
    let mut heard = Vec::new();
    let mut clock = moment.ended;
    // A few episodes are used repeatedly: their history is long enough to reach both ends of the scale.
    let count = if chance.is(0.03) { chance.between(6, 14) } else { chance.weighted(&[0.4, 0.38, 0.15, 0.07]) as i64 };
    for _ in 0..count.max(i64::from(moment.rich)) {
        let which = chance.weighted(&weights);
        clock += match Signal::ALL[which] {
            Signal::Ignored => 2 * DAY,
            _ if chance.is(0.6) => chance.between(2, 180) * MINUTE,
            _ => chance.between(5, 100) * HOUR,
        };
        clock += chance.between(0, 59_999_999);
        if clock > moment.anchor {
            break;
        }
        heard.push((clock, Signal::ALL[which], REASONS[which]));
    }
    let replay = utility::replay(utility::START, heard.iter().map(|(_, signal, _)| signal.word()));
    let row = |((clock, signal, reason), step): (&(i64, Signal, &'static str), &utility::UtilityStep)| {
        let actor = if *signal == Signal::Ignored { "system".to_owned() } else { moment.person.id.clone() };
        DemoRow::new(&UTILITY)
            .with("id", ids.next("ut"))
            .with("episode_id", &moment.id)
            .with("signal", signal.word())
            .with("delta", signal.delta())
            .with("before", step.before)
            .with("after", step.after)
            .with("actor", actor)
            .with("reason", *reason)
            .with("created_at", stamp(*clock))
    };
    (heard.iter().zip(&replay.steps).map(row).collect(), replay.utility())
}
