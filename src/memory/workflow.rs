//! Episodes derived from a workflow engine's event log: what a run was asked, thought, did and came to.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::json::{plain, read, unwrap_json_string, without_pickles};
use super::row::Row;
use super::time;

/// A run, as its table keeps it. JSON columns have been read once; the values inside may be JSON strings still.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkflowRun {
    /// `completed`, `failed`, `cancelled`, `continued_as_new`, `suspended`, `running`, …
    pub status: String,
    /// Creation time, in any spelling of time.
    pub created_at: Option<String>,
    /// Start time; often absent.
    pub started_at: Option<String>,
    /// Completion time; absent for runs that ended in any other way.
    pub completed_at: Option<String>,
    /// Positional start arguments: a list, or null.
    pub input_args: Value,
    /// Named start arguments: an object, or null.
    pub input_kwargs: Value,
    /// Return value; a run without a parent keeps `x` as `[x]`.
    pub result: Value,
    /// The run that started it as a child.
    pub parent_run_id: Option<String>,
}

/// An entry of a run's log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkflowEvent {
    /// Type of the event, such as `step.completed`; an underscore for the dot means the same.
    pub kind: String,
    /// Data of the event; the values inside may be JSON strings.
    pub data: Value,
    /// Time of writing, in any spelling of time.
    pub created_at: Option<String>,
    /// The step that it is about, when the table says so; else `data.step_id` does.
    pub step_id: Option<String>,
}

impl WorkflowEvent {
    /// The entry that a row of a log is.
    #[must_use]
    pub fn of(row: &Row) -> WorkflowEvent {
        WorkflowEvent {
            kind: row.text("kind").unwrap_or_default().to_owned(),
            data: row.get("data").clone(),
            created_at: row.text("created_at").map(str::to_owned),
            step_id: None,
        }
    }
}

/// A step that completed or failed; a step that was tried again is there once for each try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepAction {
    /// Name of the step; `None` when neither the log nor its id tells.
    pub step_name: Option<String>,
    /// `completed` or `failed`.
    pub status: &'static str,
    /// Return value of the step; typed values as stored, pickles as a marker.
    pub result: Value,
    /// Error with which the step failed.
    pub error: Option<String>,
    /// Canonical time of the event.
    pub at: Option<String>,
    /// Id of the step, for what is stored back; an episode's `actions` do not show it.
    #[serde(skip)]
    pub step_id: Option<String>,
}

/// An episode derived from a run's log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DerivedEpisode {
    /// The start arguments as text, one to a line; `None` when there are none.
    pub observation: Option<String>,
    /// Thoughts of the agent, in order.
    pub thoughts: Vec<String>,
    /// Completed and failed steps, in order.
    pub actions: Vec<StepAction>,
    /// Return value of the run; typed values as stored, pickles as a marker.
    pub result: Value,
    /// True for a completed run, false for a failed or cancelled one, else unknown.
    pub success: Option<bool>,
    /// Stored explanation of why it worked, if there is one; never invented.
    pub insight: Option<String>,
    /// Canonical time of its end; `None` while it may still go on.
    pub ended_at: Option<String>,
    /// Seconds from its creation (as upstream counts) to its end.
    pub duration_seconds: Option<f64>,
}

impl DerivedEpisode {
    /// Puts what was derived into the columns of an episode row.
    pub fn fill(self, row: &mut Row) {
        row.set("observation", json!(self.observation));
        row.set("thoughts", json!(self.thoughts));
        row.set("actions", json!(self.actions));
        row.set("result", self.result);
        row.set("success", json!(self.success));
        row.set("insight", json!(self.insight));
        row.set("ended_at", json!(self.ended_at));
        row.set("duration_seconds", json!(self.duration_seconds));
    }
}

/// Derives an episode from a run and its events, which are in the order of their sequence.
#[must_use]
pub fn derive(run: &WorkflowRun, events: &[WorkflowEvent]) -> DerivedEpisode {
    let ended_at = ended_at(run, events);
    let begun = run.created_at.as_deref().or(run.started_at.as_deref());
    DerivedEpisode {
        observation: observation(run, events),
        thoughts: thoughts(events),
        actions: actions(events),
        result: without_pickles(&result(run, events)),
        success: success(&run.status),
        insight: insight(events),
        duration_seconds: begun.zip(ended_at.as_deref()).and_then(|(begun, end)| time::seconds_between(begun, end)),
        ended_at,
    }
}

/// Whether a run of that status succeeded; `None` when it did not come to an end of its own.
#[must_use]
pub fn success(status: &str) -> Option<bool> {
    match status {
        "completed" => Some(true),
        "failed" | "cancelled" => Some(false),
        _ => None,
    }
}

fn is(event: &WorkflowEvent, kind: &str) -> bool {
    event.kind.replace('.', "_") == kind
}

fn field<'a>(event: &'a WorkflowEvent, name: &str) -> Option<&'a Value> {
    event.data.get(name).filter(|value| !value.is_null())
}

fn text_field(event: &WorkflowEvent, name: &str) -> Option<String> {
    field(event, name).and_then(Value::as_str).map(str::to_owned)
}

/// A value that is stored as JSON text inside JSON; text that is no JSON stays text.
fn stored(value: &Value) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    let reading = read(text);
    if reading.value.is_null() && !reading.problems.is_empty() { value.clone() } else { reading.value }
}

fn ended_at(run: &WorkflowRun, events: &[WorkflowEvent]) -> Option<String> {
    if let Some(completed) = run.completed_at.as_deref().and_then(time::canonical) {
        return Some(completed);
    }
    let has_ended = matches!(run.status.as_str(), "completed" | "failed" | "cancelled" | "continued_as_new");
    // An episode that was stored back is about the run, and no part of it.
    let own = events.iter().filter(|event| !is(event, "episode_created"));
    let last = || own.rev().find_map(|event| time::canonical(event.created_at.as_deref()?));
    if has_ended { last() } else { None }
}

fn result(run: &WorkflowRun, events: &[WorkflowEvent]) -> Value {
    match (&run.result, run.parent_run_id.is_some()) {
        (Value::Null, _) => {
            let completion = events.iter().rev().find(|event| is(event, "workflow_completed"));
            completion.and_then(|event| field(event, "result")).map(stored).unwrap_or_default()
        }
        (Value::Array(wrapped), false) => match wrapped.as_slice() {
            [only] => only.clone(),
            _ => run.result.clone(),
        },
        (result, _) => result.clone(),
    }
}

fn insight(events: &[WorkflowEvent]) -> Option<String> {
    let stored = events.iter().rev().filter(|event| is(event, "episode_created"));
    stored.filter_map(|event| text_field(event, "why_it_worked")).find(|insight| !insight.trim().is_empty())
}

fn observation(run: &WorkflowRun, events: &[WorkflowEvent]) -> Option<String> {
    let started = events.iter().find(|event| is(event, "workflow_started"));
    let logged = |name| started.and_then(|event| field(event, name)).map(stored);
    let (args, kwargs) = match (logged("args"), logged("kwargs")) {
        (None, None) => (stored(&run.input_args), without_machinery(stored(&run.input_kwargs))),
        (args, kwargs) => (args.unwrap_or_default(), kwargs.unwrap_or_default()),
    };
    let positional = match args {
        Value::Null => Vec::new(),
        Value::Array(args) => args,
        other => vec![other],
    };
    let named = (!kwargs.is_null()).then_some(kwargs);
    let lines: Vec<String> = positional.into_iter().chain(named).flat_map(|value| lines(&value)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Named arguments without those that the engine adds to a run's own (they start with an underscore).
fn without_machinery(kwargs: Value) -> Value {
    match kwargs {
        Value::Object(object) => {
            Value::Object(object.into_iter().filter(|(name, _)| !name.starts_with('_')).collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// An argument as lines of text: an object a line for each key, anything else one.
fn lines(argument: &Value) -> Vec<String> {
    match plain(argument) {
        Value::Object(object) => object.iter().map(|(name, value)| format!("{name}: {}", one_line(value))).collect(),
        other => vec![one_line(&other)],
    }
}

fn one_line(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn thoughts(events: &[WorkflowEvent]) -> Vec<String> {
    let said: Vec<String> = events.iter().filter_map(spoken_thought).collect();
    if !said.is_empty() {
        return said;
    }
    let results = events.iter().filter(|event| is(event, "step_completed")).filter_map(|event| field(event, "result"));
    results.flat_map(|result| reasoning(&stored(result))).collect()
}

fn spoken_thought(event: &WorkflowEvent) -> Option<String> {
    let key = match event.kind.replace('.', "_").as_str() {
        "agent_message" if field(event, "role").and_then(Value::as_str) == Some("assistant") => "content",
        "agent_thought" => "thought",
        _ => return None,
    };
    field(event, key).map(|value| one_line(&plain(value))).filter(|thought| !thought.is_empty())
}

/// Reasoning in a step's result: its own, and that of the assistant's messages in it.
fn reasoning(result: &Value) -> Vec<String> {
    let messages = result.get("messages").cloned().map(unwrap_json_string);
    let assistant = messages.as_ref().and_then(Value::as_array).into_iter().flatten();
    let assistant = assistant.filter(|message| message.get("role").and_then(Value::as_str) == Some("assistant"));
    std::iter::once(result).chain(assistant).flat_map(own_reasoning).collect()
}

fn own_reasoning(holder: &Value) -> Vec<String> {
    let held = ["thought", "thoughts", "reasoning"].into_iter().filter_map(|key| holder.get(key));
    held.flat_map(|value| match plain(value) {
        Value::Array(several) => several,
        Value::Null => Vec::new(),
        one => vec![one],
    })
    .map(|thought| one_line(&thought))
    .filter(|thought| !thought.is_empty())
    .collect()
}

fn actions(events: &[WorkflowEvent]) -> Vec<StepAction> {
    let names = step_names(events);
    events.iter().filter_map(|event| action(event, &names)).collect()
}

fn action(event: &WorkflowEvent, names: &HashMap<String, String>) -> Option<StepAction> {
    let status = match event.kind.replace('.', "_").as_str() {
        "step_completed" => "completed",
        "step_failed" => "failed",
        _ => return None,
    };
    let known_name = |id: String| names.get(&id).cloned().or_else(|| name_in_id(&id));
    Some(StepAction {
        step_name: text_field(event, "step_name").or_else(|| step_id(event).and_then(known_name)),
        status,
        result: field(event, "result").map(|value| without_pickles(&stored(value))).unwrap_or_default(),
        error: field(event, "error").map(one_line),
        at: event.created_at.as_deref().and_then(time::canonical),
        step_id: step_id(event),
    })
}

/// A run's actions as an `episode_created` event keeps them: each with the id of its step.
#[must_use]
pub fn actions_to_store(events: &[WorkflowEvent]) -> Value {
    let stored = |action: StepAction| {
        let mut value = json!(action);
        value["step_id"] = json!(action.step_id);
        value
    };
    actions(events).into_iter().map(stored).collect()
}

fn step_id(event: &WorkflowEvent) -> Option<String> {
    event.step_id.clone().or_else(|| text_field(event, "step_id"))
}

/// Name of each step that any event of the run names: a failure does not, and ids repeat across runs only.
fn step_names(events: &[WorkflowEvent]) -> HashMap<String, String> {
    events.iter().filter_map(|event| step_id(event).zip(text_field(event, "step_name"))).collect()
}

/// The name in a step id of the form `step_NAME_hash`, where the hash is hexadecimal.
fn name_in_id(id: &str) -> Option<String> {
    let (name, hash) = id.strip_prefix("step_")?.rsplit_once('_')?;
    let is_hash = hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hash && !name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::entity::Entity;
    use super::*;

    fn event(kind: &str, at: &str, data: Value) -> WorkflowEvent {
        WorkflowEvent { kind: kind.to_owned(), data, created_at: Some(at.to_owned()), step_id: None }
    }

    fn run(status: &str) -> WorkflowRun {
        let created_at = Some("2026-10-20T10:00:00.000000+00:00".to_owned());
        WorkflowRun { status: status.to_owned(), created_at, ..WorkflowRun::default() }
    }

    #[test]
    fn a_completed_run_tells_its_whole_story() {
        let run = WorkflowRun {
            completed_at: Some("2026-10-20T10:00:02.500000+00:00".to_owned()),
            input_args: json!(["ignored, the log says more"]),
            result: json!([{"answer": "42", "cost": {"__type__": "decimal", "value": "0.1"}}]),
            ..run("completed")
        };
        let started = json!({"args": "[{\"id\": \"T-1\", \"text\": \"it's \\\"broken\\\"\"}, [1, 2]]", "kwargs": "{\"user_id\": \"u\"}"});
        let completed = json!({
            "step_id": "s1", "step_name": "charge",
            "result": "{\"at\": {\"__type__\": \"date\", \"value\": \"2026-10-20\"}, \"m\": {\"__type__\": \"cloudpickle\", \"value\": \"gASV\"}}",
        });
        let events = [
            event("workflow.started", "2026-10-20 10:00:00", started),
            event("step.completed", "2026-10-20 10:00:01", completed),
            event("step.completed", "2026-10-20 10:00:02", json!({"step_name": "check", "result": "true"})),
        ];
        let derived = derive(&run, &events);
        assert_eq!(derived.observation.as_deref(), Some("id: T-1\ntext: it's \"broken\"\n[1,2]\nuser_id: u"));
        assert_eq!(derived.result, json!({"answer": "42", "cost": {"__type__": "decimal", "value": "0.1"}}));
        assert_eq!((derived.success, derived.duration_seconds, derived.insight), (Some(true), Some(2.5), None));
        assert_eq!(derived.ended_at.as_deref(), Some("2026-10-20T10:00:02.500000Z"));
        assert_eq!(
            json!(derived.actions),
            json!([
                {"step_name": "charge", "status": "completed", "error": null, "at": "2026-10-20T10:00:01.000000Z",
                 "result": {"at": {"__type__": "date", "value": "2026-10-20"}, "m": "<pickle, 3 bytes, not loaded>"}},
                {"step_name": "check", "status": "completed", "error": null, "at": "2026-10-20T10:00:02.000000Z",
                 "result": true},
            ])
        );
    }

    #[test]
    fn only_a_top_level_result_is_wrapped() {
        let with = |result: Value, parent: Option<&str>| {
            let run = WorkflowRun { result, parent_run_id: parent.map(str::to_owned), ..run("completed") };
            derive(&run, &[event("workflow.completed", "", json!({"result": "[\"logged\"]"}))]).result
        };
        assert_eq!(with(json!([{"a": 1}]), None), json!({"a": 1}));
        assert_eq!(with(json!([[1]]), None), json!([1]));
        assert_eq!(with(json!([1, 2]), None), json!([1, 2]));
        assert_eq!(with(json!([1]), Some("parent")), json!([1]));
        assert_eq!(with(json!("5"), Some("parent")), json!("5"));
        assert_eq!(with(Value::Null, None), json!(["logged"]));
    }

    #[test]
    fn a_run_without_completion_ends_with_its_last_event() {
        let events = [
            event("workflow.started", "2026-10-20T10:00:00Z", json!({})),
            event("x", "2026-10-20T10:01:00Z", json!({})),
        ];
        for (status, ended, success) in [
            ("failed", true, Some(false)),
            ("cancelled", true, Some(false)),
            ("continued_as_new", true, None),
            ("completed", true, Some(true)),
            ("suspended", false, None),
            ("running", false, None),
            ("interrupted", false, None),
        ] {
            let derived = derive(&run(status), &events);
            assert_eq!(derived.ended_at, ended.then(|| "2026-10-20T10:01:00.000000Z".to_owned()), "{status}");
            assert_eq!((derived.success, derived.duration_seconds), (success, ended.then_some(60.0)), "{status}");
        }
        assert_eq!(derive(&run("failed"), &[]).ended_at, None);
    }

    #[test]
    fn a_failure_finds_its_steps_name() {
        let failed = |id: &str| WorkflowEvent {
            step_id: Some(id.to_owned()),
            ..event("step.failed", "", json!({"error": "timed out", "attempt": 1}))
        };
        let events = [
            failed("step_late_0123456789abcdef"),
            event("step.started", "", json!({"step_id": "by-start", "step_name": "started"})),
            failed("by-start"),
            failed("step_charge_card_0123456789abcdef"),
            failed("custom"),
            event("step_failed", "", json!({"error": {"code": 7}})),
            event("step.completed", "", json!({"step_id": "step_late_0123456789abcdef", "step_name": "named later"})),
        ];
        let actions = derive(&run("failed"), &events).actions;
        let names: Vec<Option<&str>> = actions.iter().map(|a| a.step_name.as_deref()).collect();
        assert_eq!(names, [Some("named later"), Some("started"), Some("charge_card"), None, None, Some("named later")]);
        let errors: Vec<Option<&str>> = actions.iter().map(|a| a.error.as_deref()).collect();
        assert_eq!(errors[3..], [Some("timed out"), Some("{\"code\":7}"), None]);
        assert_eq!((actions[0].status, &actions[0].result), ("failed", &Value::Null));
    }

    #[test]
    fn each_completion_of_a_step_is_an_action() {
        let completed = event("step.completed", "", json!({"step_id": "s", "step_name": "n", "result": "1"}));
        assert_eq!(derive(&run("completed"), &[completed.clone(), completed]).actions.len(), 2);
    }

    #[test]
    fn thoughts_are_what_was_said_else_what_results_hold() {
        let result = json!({
            "thought": "first", "reasoning": ["second", "third"],
            "messages": [{"role": "user", "thought": "no"}, {"role": "assistant", "content": "no", "thought": "fourth"}],
        });
        let from_results = event("step.completed", "", json!({"result": result.to_string()}));
        assert_eq!(
            derive(&run("completed"), std::slice::from_ref(&from_results)).thoughts,
            ["first", "second", "third", "fourth"]
        );
        let events = [
            event("agent_message", "", json!({"role": "assistant", "content": "a"})),
            event("agent.message", "", json!({"role": "user", "content": "no"})),
            event("agent.thought", "", json!({"thought": "b"})),
            event("agent_thought", "", json!({"thought": ""})),
            event("agent.message", "", json!({"role": "assistant", "content": "c"})),
            from_results,
        ];
        assert_eq!(derive(&run("completed"), &events).thoughts, ["a", "b", "c"]);
    }

    #[test]
    fn the_runs_own_arguments_stand_in_for_a_missing_start() {
        let with = |args: Value, kwargs: Value| {
            derive(&WorkflowRun { input_args: args, input_kwargs: kwargs, ..run("running") }, &[]).observation
        };
        assert_eq!(
            with(json!(["C-0", 5]), json!({"bad": false, "_engine": null})).as_deref(),
            Some("C-0\n5\nbad: false")
        );
        assert_eq!(with(json!("[\"read through\"]"), Value::Null).as_deref(), Some("read through"));
        assert_eq!(with(json!([]), json!({})), None);
        assert_eq!(with(Value::Null, Value::Null), None);
    }

    #[test]
    fn what_was_stored_back_is_no_part_of_the_run() {
        for status in ["failed", "cancelled", "continued_as_new", "completed"] {
            let mut events =
                vec![event("step.failed", "2026-10-20T10:00:07Z", json!({"step_id": "s1", "error": "no"}))];
            let before = derive(&run(status), &events);
            assert_eq!(actions_to_store(&events)[0]["step_id"], json!("s1"));
            events.push(event("episode_created", "2026-10-29T16:00:00Z", json!({"actions": [], "why_it_worked": ""})));
            assert_eq!(derive(&run(status), &events), before, "{status}");
        }
    }

    #[test]
    fn an_insight_is_stored_or_absent() {
        let created = |why: Value| event("episode_created", "", json!({"why_it_worked": why}));
        let insight = |why| derive(&run("completed"), &[created(why)]).insight;
        assert_eq!(insight(json!("asked first")).as_deref(), Some("asked first"));
        for absent in [json!(""), json!(" "), Value::Null, json!(5)] {
            assert_eq!(insight(absent), None);
        }
    }

    #[test]
    fn a_row_is_filled_with_what_was_derived() {
        let mut row = Row::empty(Entity::Episode);
        derive(&run("failed"), &[event("step.failed", "2026-10-20T10:00:07Z", json!({"error": "no"}))]).fill(&mut row);
        assert_eq!(row.get("success"), &json!(false));
        assert_eq!(row.number("duration_seconds"), Some(7.0));
        assert_eq!(row.get("actions")[0]["error"], json!("no"));
        assert_eq!(row.get("observation"), &Value::Null);
    }

    #[test]
    fn data_that_is_no_object_harms_nothing() {
        for data in [Value::Null, json!("text"), json!([1]), json!({"result": "{broken", "step_id": 5, "role": 1})] {
            let kinds = ["workflow.started", "step.completed", "step.failed", "agent_message", "episode_created"];
            let events: Vec<WorkflowEvent> = kinds.iter().map(|kind| event(kind, "never", data.clone())).collect();
            assert_eq!(derive(&run("completed"), &events).actions.len(), 2, "{data}");
        }
    }
}
