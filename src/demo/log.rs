//! The event log of an episode's workflow, and the values derived for the episode: thoughts, actions, interventions.

use serde_json::{Value as Json, json};

use super::calendar::{SECOND, stamp};
use super::chance::Chance;
use super::ids::Ids;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{DemoRow, EVENTS};

/// A log and the values derived from it.
#[derive(Debug)]
pub struct EventLog {
    pub rows: Vec<DemoRow>,
    /// Considerations that the agent stated.
    pub thoughts: Vec<String>,
    /// One for each completed or failed step.
    pub actions: Vec<Json>,
    /// Result of the run, when it completed.
    pub result: Option<Json>,
    /// Number of times that a person had to decide.
    pub interventions: i64,
}

struct EventLogWriter<'a, 'm> {
    moment: &'a EpisodeFacts<'m>,
    ids: &'a mut Ids,
    clock: i64,
    rows: Vec<DemoRow>,
}

impl EventLogWriter<'_, '_> {
    /// Adds an event `wait` microseconds after the one before; its time.
    fn add(&mut self, kind: &'static str, wait: i64, data: Json) -> String {
        self.clock += wait;
        let at = stamp(self.clock.min(self.moment.anchor));
        self.rows.push(
            DemoRow::new(&EVENTS)
                .with("id", self.ids.next("ev"))
                .with("run_id", self.moment.run().to_owned())
                .with("sequence", self.rows.len() as i64 + 1)
                .with("kind", kind)
                .with("data", data)
                .with("created_at", &at),
        );
        at
    }
}

/// The log of the episode's run.
pub fn write(moment: &EpisodeFacts<'_>, ids: &mut Ids) -> EventLog {
    let mut chance = moment.chance("log");
    let words = moment.words;
    let steps = &moment.topic.steps;
    let mut log =
        EventLog { rows: Vec::new(), thoughts: Vec::new(), actions: Vec::new(), result: None, interventions: 0 };
    // Long episodes spend their time waiting for people, not in the log.
    let pace = ((moment.ended - moment.started) / 16).clamp(SECOND, 90 * SECOND);
    let wait = move |chance: &mut Chance| chance.between(pace / 20, pace);
    let mut writer = EventLogWriter { moment, ids, clock: moment.started, rows: Vec::new() };

    let kwargs = json!({"user": moment.person.id, "channel": "chat"});
    let args = json!([moment.title, words.word("ref")]);
    writer.add("workflow.started", 0, json!({"workflow_name": moment.topic.workflow, "args": args, "kwargs": kwargs}));
    for (position, step) in steps.iter().enumerate() {
        let last = position + 1 == steps.len();
        if position == 0 || chance.is(0.35) {
            let thought = words.say(&moment.topic.thoughts, &mut chance);
            let w = wait(&mut chance);
            writer.add("agent_message", w, json!({"role": "assistant", "content": thought}));
            log.thoughts.push(thought);
        }
        let id = format!("step_{}_{:016x}", step.name, chance.next());
        let w = wait(&mut chance);
        let started = json!({"step_id": id, "step_name": step.name, "args": [words.word("ref")], "attempt": 1});
        writer.add("step.started", w, started);
        let fails = last && moment.outcome == EpisodeEnd::Failure;
        let retries = !fails && chance.is(0.08);
        if fails || retries {
            let error = words.fill(step.error, &mut chance);
            let w = wait(&mut chance);
            let failed = json!({"step_id": id, "error": error, "error_type": "StepError", "is_retryable": retries, "attempt": 1});
            let at = writer.add("step.failed", w, failed);
            log.actions
                .push(json!({"step_name": step.name, "status": "failed", "result": null, "error": error, "at": at}));
            if fails {
                break;
            }
            writer.add("step.retrying", SECOND, json!({"step_id": id, "attempt": 2, "error": error}));
        }
        if last && matches!(moment.outcome, EpisodeEnd::Ongoing | EpisodeEnd::Aborted) {
            break;
        }
        let result = words.fill(step.result, &mut chance);
        let w = wait(&mut chance);
        let at = writer.add("step.completed", w, json!({"step_id": id, "step_name": step.name, "result": result}));
        log.actions
            .push(json!({"step_name": step.name, "status": "completed", "result": result, "error": null, "at": at}));
        if position == 0 && moment.agent().maturity[0] != "supervised" && chance.is(0.3) {
            ask_person(&mut writer, &mut chance, pace);
            log.interventions += 1;
        }
    }
    let end = wait(&mut chance);
    match moment.outcome {
        EpisodeEnd::Ongoing => {}
        EpisodeEnd::Failure => {
            let error = log.actions.last().map_or(Json::Null, |a| a["error"].clone());
            writer.add("workflow.failed", end, json!({"error": error, "error_type": "StepError"}));
        }
        EpisodeEnd::Aborted => {
            writer.add("workflow.cancelled", end, json!({"reason": "stopped by the user"}));
        }
        _ => {
            let summary = summary(moment, &mut chance);
            let result = json!({"summary": summary, "reference": words.word("ref")});
            writer.add("workflow.completed", end, json!({"result": result}));
            log.result = Some(result);
        }
    }
    log.rows = writer.rows;
    log
}

/// Makes up a sentence on how the episode ended.
pub fn summary(moment: &EpisodeFacts<'_>, chance: &mut Chance) -> String {
    let phrases = if moment.outcome.pleases() { &moment.topic.successes } else { &moment.topic.failures };
    moment.words.say(phrases, chance)
}

fn ask_person(writer: &mut EventLogWriter<'_, '_>, chance: &mut Chance, pace: i64) {
    let moment = writer.moment;
    let hook = "hook_approval_1";
    writer.add("hook.created", SECOND, json!({"hook_id": hook, "name": "approval"}));
    let pleases = moment.outcome.pleases();
    let verdict = *chance.pick(if pleases {
        &["confirmed", "confirmed", "corrected"]
    } else {
        &["corrected", "rejected", "undone"]
    });
    let comment = (verdict != "confirmed").then(|| moment.words.say(&moment.topic.corrections, chance));
    let payload = json!({"verdict": verdict, "by": moment.person.mail, "comment": comment});
    writer.add("hook.received", chance.between(pace, pace * 3), json!({"hook_id": hook, "payload": payload}));
}
