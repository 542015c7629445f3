//! One episode with everything that depends on it, and its own row.

use serde_json::{Value as Json, json};

use super::calendar::{DAY, part_of_day, stamp, weekday};
use super::chance::Chance;
use super::log::{EventLog, summary};
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{DemoRow, EPISODES, list};
use super::world::ORGANISATIONS;
use crate::store::bulk::BulkValue;

/// Age in days from which retention considers an episode.
const OLD: f64 = 90.0;

#[derive(Debug)]
pub struct Scene {
    pub episode: DemoRow,
    pub segments: Vec<DemoRow>,
    pub canvas: Vec<DemoRow>,
    pub feedback: Vec<DemoRow>,
    /// The history of its utility.
    pub signals: Vec<DemoRow>,
    /// The log of its run.
    pub events: Vec<DemoRow>,
    /// Links, vectors, accesses and cases of the episode, and any other rows.
    pub others: Vec<DemoRow>,
}

impl Scene {
    /// Names the canvas events and the feedback in the episode's lists.
    pub fn list_links(&mut self) {
        let ids = |rows: &[DemoRow]| list(&rows.iter().map(|row| row.text("id")).collect::<Vec<_>>());
        let (canvas, feedback) = (ids(&self.canvas), ids(&self.feedback));
        self.episode.set("canvas_ids", canvas);
        self.episode.set("canvas_action_count", self.canvas.len() as i64);
        self.episode.set("feedback_ids", feedback);
    }

    /// All rows, the episode first.
    pub fn into_rows(self) -> impl Iterator<Item = DemoRow> {
        let parts = [self.segments, self.canvas, self.feedback, self.signals, self.events, self.others];
        std::iter::once(self.episode).chain(parts.into_iter().flatten())
    }
}

/// Place of an episode within its story, and its later fate.
#[derive(Debug, Default)]
pub struct EpisodeFate {
    /// The episode before it.
    pub parent: Option<String>,
    /// Number of earlier episodes of the same story.
    pub step: u32,
    /// The digest that it went into.
    pub consolidated_into: Option<String>,
    /// Episodes that went into it.
    pub sources: Vec<String>,
    /// Feedback aggregate.
    pub score: Option<f64>,
    /// Utility, 0..=1.
    pub utility: f64,
    /// Log of the run, if the run was recorded.
    pub log: Option<EventLog>,
}

pub fn episode(moment: &EpisodeFacts<'_>, fate: &EpisodeFate) -> DemoRow {
    let mut chance = moment.chance("episode");
    let (words, topic, person) = (moment.words, moment.topic, moment.person);
    let over = moment.ended <= moment.anchor;
    let age = (moment.anchor - moment.ended) as f64 / DAY as f64;
    let archived = over && fate.consolidated_into.is_none() && age > OLD + 2.0 && chance.is(0.35);
    let status = match moment.outcome {
        _ if fate.consolidated_into.is_some() => "summarized",
        _ if archived => "archived",
        EpisodeEnd::Ongoing => "active",
        EpisodeEnd::Aborted if chance.is(0.5) => "abandoned",
        _ if age < 1.5 && chance.is(0.5) => "active",
        _ => "closed",
    };
    let situation = words.say(&topic.situations, &mut chance);
    let thought = words.say(&topic.thoughts, &mut chance);
    let decision = words.say(&topic.decisions, &mut chance);
    let end = summary(moment, &mut chance);
    let insight = (over && chance.is(0.7)).then(|| words.say(&topic.insights, &mut chance));
    let log = fate.log.as_ref();
    let result = match log {
        Some(log) => log.result.clone(),
        None if over => Some(Json::String(end.clone())),
        None => None,
    };
    let duration = (moment.ended - moment.started) as f64 / 1e6;
    let age_now = age.max(0.0);
    // As written by the systems that decay: untouched for 90 days, then down to 0 at 180.
    let decay = if age_now < OLD { 1.0 } else { (1.0 - age_now / 180.0).max(0.0) };
    DemoRow::new(&EPISODES)
        .with("id", &moment.id)
        .with("agent_id", moment.agent().id)
        .with("user_id", &person.id)
        .with("session_id", &moment.session)
        .with("execution_ids", list(&moment.executions))
        .with("parent_id", fate.parent.clone())
        .with("title", &moment.title)
        .with("summary", if over { end.clone() } else { format!("In work: {situation}") })
        .with(
            "detail",
            format!("{situation} {thought} Decided: {decision}. {}", if over { &end } else { "Still open." }),
        )
        .with("domain", moment.agent().domain)
        .with("topic", topic.name)
        .with("status", status)
        .with("outcome", moment.outcome.word())
        .with("started_at", stamp(moment.started))
        .with("ended_at", over.then(|| stamp(moment.ended)))
        .with("duration_seconds", over.then_some(duration))
        .with("tags", list(&tags(moment, &mut chance)))
        .with("participants", list(&participants(moment, &mut chance)))
        .with("tools_used", list(&tools(moment, &mut chance)))
        .with("entities", list(&["customer", "city", "ref"].map(|slot| words.word(slot))))
        .with("key_decisions", if chance.is(0.75) { list(&[decision]) } else { BulkValue::Null })
        .with("metadata", metadata(moment, fate, &mut chance))
        .with("feedback_score", fate.score)
        .with("utility", fate.utility)
        .with("observation", situation)
        .with("thoughts", log.map_or_else(|| chance.is(0.4).then(|| list(&[thought])).into(), |l| list(&l.thoughts)))
        .with("actions", log.map(|l| Json::Array(l.actions.clone())))
        .with("result", result)
        .with("success", moment.outcome.success())
        .with("insight", insight)
        .with("workflow_name", log.map(|_| topic.workflow))
        .with("context", context(moment, &mut chance))
        .with("maturity", maturity(moment))
        .with("importance", tenths(0.2 + chance.unit() * 0.5 + f64::from(fate.step.min(3)) * 0.1))
        .with("decay_score", decay)
        .with("access_count", chance.weighted(&[0.4, 0.2, 0.12, 0.1, 0.06, 0.05, 0.04, 0.03]) as i64)
        .with("consolidated_into", fate.consolidated_into.clone())
        .with("archived_at", archived.then(|| stamp(moment.ended + (OLD as i64 + 1) * DAY)))
        .with(
            "intervention_count",
            log.map_or_else(|| chance.weighted(&[0.85, 0.12, 0.03]) as i64, |l| l.interventions),
        )
        .with("constitutional_score", chance.is(0.8).then(|| tenths(0.72 + chance.unit() * 0.28)))
        .with("confidence", tenths(if moment.outcome.pleases() { 0.65 } else { 0.35 } + chance.unit() * 0.34))
}

/// Rounds to two digits, as scores are written.
fn tenths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn tags(moment: &EpisodeFacts<'_>, chance: &mut Chance) -> Vec<&'static str> {
    let count = 1 + chance.below(2) as usize;
    let mut tags = vec![moment.agent().domain];
    tags.extend(chance.some(&moment.topic.tags, count));
    tags
}

fn tools(moment: &EpisodeFacts<'_>, chance: &mut Chance) -> Vec<&'static str> {
    let count = 1 + chance.below(3) as usize;
    let steps: Vec<&'static str> = moment.topic.steps.iter().map(|step| step.name).collect();
    let mut tools: Vec<&'static str> = chance.some(&steps, count).into_iter().copied().collect();
    tools.extend(chance.some(&moment.topic.tools, 1));
    tools
}

fn participants(moment: &EpisodeFacts<'_>, chance: &mut Chance) -> Vec<String> {
    let person = moment.person;
    let mut all = vec![if chance.is(0.2) { format!("{} <{}>", person.name, person.mail) } else { person.name.clone() }];
    if chance.is(0.3) {
        all.push(moment.words.word("colleague").to_owned());
    }
    all
}

fn context(moment: &EpisodeFacts<'_>, chance: &mut Chance) -> Json {
    let person = moment.person;
    let patterns = if chance.is(0.6) { person.patterns.as_slice() } else { &[] };
    json!({
        "time_of_day": part_of_day(moment.started),
        "day_of_week": weekday(moment.started),
        "active_preferences": person.preferences,
        "active_patterns": patterns,
    })
}

fn metadata(moment: &EpisodeFacts<'_>, fate: &EpisodeFate, chance: &mut Chance) -> Json {
    let mut metadata = json!({
        "organisation": ORGANISATIONS[moment.person.organisation].name,
        "channel": chance.pick(&["chat", "chat", "mail", "voice", "api"]),
        "model": chance.pick(&["planner-3", "planner-3", "planner-4"]),
    });
    if fate.step > 0 {
        metadata["step_of_story"] = json!(fate.step + 1);
    }
    if !fate.sources.is_empty() {
        metadata["consolidates"] = json!(fate.sources);
    }
    metadata
}

fn maturity(moment: &EpisodeFacts<'_>) -> &'static str {
    let left = (moment.anchor - moment.started) / (30 * DAY);
    moment.agent().maturity[3 - left.clamp(0, 3) as usize]
}
