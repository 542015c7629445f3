//! The segments of an episode: messages, runs of tools, changes on canvases.

use super::calendar::stamp;
use super::ids::Ids;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{DemoRow, SEGMENTS};

/// The segments of an episode, in order; `canvas` are its canvas events.
pub fn write(moment: &EpisodeFacts<'_>, canvas: &[DemoRow], ids: &mut Ids) -> Vec<DemoRow> {
    let mut chance = moment.chance("segments");
    let (words, topic) = (moment.words, moment.topic);
    let ask = words.say(&topic.asks, &mut chance);
    let answer = words.say(&topic.answers, &mut chance);
    let opening = format!("user: {ask}\nassistant: {answer}");
    let mut pieces = vec![("message", opening, "chat_message", ids.next("msg"))];
    if chance.is(0.6) {
        let step = chance.pick(&topic.steps);
        let content = format!("{}: {}", step.name, words.fill(step.result, &mut chance));
        pieces.push(("execution", content, "agent_execution", moment.run().to_owned()));
    }
    if let Some(event) = canvas.first() {
        let content = format!("{} {}: {}", event.text("action"), event.text("component_name"), moment.title);
        pieces.push(("canvas_update", content, "canvas_audit", event.text("id").to_owned()));
    }
    if chance.is(0.55) {
        let (replies, ends) = match moment.outcome {
            EpisodeEnd::Ongoing => (&topic.asks, &topic.answers),
            outcome if outcome.pleases() => (&topic.decisions, &topic.successes),
            _ => (&topic.corrections, &topic.failures),
        };
        let reply = words.say(replies, &mut chance);
        let last = words.say(ends, &mut chance);
        pieces.push(("message", format!("user: {reply}\nassistant: {last}"), "chat_message", ids.next("msg")));
    }
    let count = pieces.len() as f64;
    let piece =
        |(position, (kind, content, source, source_id)): (usize, (&'static str, String, &'static str, String))| {
            DemoRow::new(&SEGMENTS)
                .with("id", ids.next("seg"))
                .with("episode_id", &moment.id)
                .with("sequence", position as i64)
                .with("kind", kind)
                .with("content", content)
                .with("source_type", source)
                .with("source_id", source_id)
                .with("created_at", stamp(moment.within(position as f64 / count).min(moment.anchor)))
        };
    pieces.into_iter().enumerate().map(piece).collect()
}
