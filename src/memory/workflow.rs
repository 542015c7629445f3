//! Episodes derived from a workflow engine's event log: the request, thoughts, actions and result of a run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json::{JsonPart, LONG, TYPE, is_kept_as_text, members, plain, read, unwrap_json_string, without_pickles};
use super::row::Row;
use super::time;

/// A run from its table. JSON columns have been parsed once; values inside may still be JSON strings.
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
    /// Return value; a run without a parent stores `x` as `[x]`.
    pub result: Value,
    /// The run that started it as a child.
    pub parent_run_id: Option<String>,
}

/// An episode derived from a run's log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DerivedEpisode {
    /// The start arguments as text, one per line; `None` if there are none.
    pub observation: Option<String>,
    /// Thoughts of the agent, in order.
    pub thoughts: Vec<String>,
    /// Completed and failed steps, in order: objects with `step_name`, `status` (`completed` or `failed`), `result`
    /// (typed values as stored, pickles as a marker), `error` and `at`. A retried step appears once per attempt.
    pub actions: StepActions,
    /// Return value of the run; typed values as stored, pickles as a marker.
    pub result: Value,
    /// Whether the return value is the text of a long JSON document.
    pub is_result_text: bool,
    /// True for a completed run, false for a failed or cancelled one, else unknown.
    pub success: Option<bool>,
    /// Stored explanation of the success, if there is one; never made up.
    pub insight: Option<String>,
    /// Canonical time of its end; `None` while it may still continue.
    pub ended_at: Option<String>,
    /// Seconds from its creation (as upstream counts) to its end.
    pub duration_seconds: Option<f64>,
}

impl DerivedEpisode {
    /// Sets the columns of an episode for which something was derived, each to the result of `made`, if any.
    pub fn fill(self, row: &mut Row, made: impl Fn(&'static str, Value) -> Option<Value>) {
        let (actions, are_text) = self.actions.into_json();
        let texts = [("result", self.is_result_text), ("actions", are_text)];
        let values = [
            ("observation", json!(self.observation)),
            ("thoughts", Value::from(self.thoughts)),
            ("actions", actions),
            ("result", self.result),
            ("success", json!(self.success)),
            ("insight", json!(self.insight)),
            ("ended_at", json!(self.ended_at)),
            ("duration_seconds", json!(self.duration_seconds)),
        ];
        for (column, value) in values.into_iter().filter(|(_, value)| !value.is_null()) {
            match made(column, value) {
                Some(text) if texts.contains(&(column, true)) => row.set_text(column, text),
                Some(value) => row.set(column, value),
                None => {}
            }
        }
    }
}

/// A completed or failed step.
#[derive(Debug, Clone, PartialEq)]
struct StepAction {
    name: Option<Box<str>>,
    is_completed: bool,
    /// JSON text.
    result: Box<str>,
    error: Option<Box<str>>,
    /// Id of the step.
    id: Option<Box<str>>,
}

/// The completed and failed steps of a run, in order. A run may have very many, and parsed values would take several
/// times the memory of their texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepActions {
    steps: Vec<(LogPlace, StepAction)>,
    /// Whether each is listed with the id of its step.
    with_ids: bool,
}

impl StepActions {
    /// The steps as a list of objects: a value, or the text of a long JSON document.
    pub fn into_json(self) -> (Value, bool) {
        let bytes = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let length = |(_, step): &(LogPlace, StepAction)| {
            let texts = [&step.name, &step.error, &step.id];
            STEP + step.result.len() + texts.into_iter().map(bytes).sum::<usize>()
        };
        let mut text = String::with_capacity(self.steps.iter().map(length).sum());
        if text.capacity() < LONG {
            let value = |(place, step): (LogPlace, StepAction)| step.to_value(&place, self.with_ids);
            return (self.steps.into_iter().map(value).collect(), false);
        }
        for (place, step) in self.steps {
            text.push(if text.is_empty() { '[' } else { ',' });
            step.write(&place, &mut text, self.with_ids);
        }
        text.push(']');
        if is_kept_as_text(&text) { (Value::from(text), true) } else { (read(&text).value, false) }
    }
}

/// Bytes of a step's member names and its time.
const STEP: usize = 128;

impl StepAction {
    /// The members before its result.
    fn head(&self) -> [(&'static str, Value); 2] {
        let status = if self.is_completed { "completed" } else { "failed" };
        [("step_name", json!(self.name)), ("status", Value::from(status))]
    }

    /// The members after it.
    fn tail(&self, place: &LogPlace, with_id: bool) -> impl Iterator<Item = (&'static str, Value)> {
        let members = [("error", json!(self.error)), ("at", json!(time::canonical(&place.at)))];
        members.into_iter().chain(with_id.then(|| ("step_id", json!(self.id))))
    }

    fn to_value(&self, place: &LogPlace, with_id: bool) -> Value {
        let result = [("result", read(&self.result).value)];
        let members = self.head().into_iter().chain(result).chain(self.tail(place, with_id));
        Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn write(&self, place: &LogPlace, text: &mut String, with_id: bool) {
        text.push('{');
        for (name, value) in self.head() {
            _ = write!(text, "\"{name}\":{value},");
        }
        _ = write!(text, "\"result\":{}", self.result);
        for (name, value) in self.tail(place, with_id) {
            _ = write!(text, ",\"{name}\":{value}");
        }
        text.push('}');
    }
}

/// Position of an event in its run's log: by number, then time, then id. Events without a readable number come last, as
/// do those without a time among events with the same number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LogPlace {
    is_unnumbered: bool,
    sequence: Option<i64>,
    is_undated: bool,
    at: String,
    id: String,
}

impl LogPlace {
    fn of(event: &Row) -> LogPlace {
        let at = event.text("created_at");
        let sequence = event.get("sequence").as_i64();
        LogPlace {
            is_unnumbered: sequence.is_none(),
            sequence,
            is_undated: at.is_none(),
            at: at.unwrap_or_default().to_owned(),
            id: event.id().to_owned(),
        }
    }
}

/// Result of a run: a value, or the text of a long JSON document.
#[derive(Debug, Clone, Default)]
struct Returned {
    value: Value,
    is_text: bool,
}

/// Members of an event's data that are used.
const USED: &[&str] = &[
    "step_id", "step_name", "workflow_name", "agent_id", "user_id", "why_it_worked", "role", "content", "thought",
    "error",
];

/// The data of an event; for a long document, only the used members.
#[derive(Default)]
struct EventData {
    value: Value,
    /// The result, if it is itself a long document.
    result: Option<String>,
    /// The arguments of a long document as lines of text.
    arguments: Option<Vec<String>>,
}

impl EventData {
    fn of(event: &mut Row) -> EventData {
        let JsonPart::Document(text) = event.json("data") else {
            return EventData { value: event.take("data"), ..EventData::default() };
        };
        let (mut data, mut result, mut arguments) = (Map::new(), None, None);
        for (name, member) in members(text).unwrap_or_default() {
            let member = member.get();
            match name.as_str() {
                "args" | "kwargs" if member != "null" => {
                    let lines = long_lines(&text_within(member), name == "args");
                    let known = arguments.get_or_insert_with(Vec::new);
                    // Positional arguments come first, wherever they are.
                    let at = if name == "args" { 0 } else { known.len() };
                    known.splice(at..at, lines);
                }
                "result" => {
                    let whole = text_within(member);
                    let is_apart = !whole.contains("pickle") && is_kept_as_text(&whole);
                    data.insert(name, if is_apart { Value::Null } else { read(member).value });
                    result = is_apart.then(|| whole.into_owned());
                }
                used if USED.contains(&used) => _ = data.insert(name, read(member).value),
                _ => {}
            }
        }
        EventData { value: Value::Object(data), result, arguments }
    }
}

/// The text in a JSON string, else the JSON text.
fn text_within(text: &str) -> Cow<'_, str> {
    serde_json::from_str::<String>(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Arguments as lines of text, in the form of [`lines`], one value at a time.
fn long_lines(text: &str, is_positional: bool) -> Vec<String> {
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(items) if is_positional => items.into_iter().flat_map(|item| lines_of_text(item.get())).collect(),
        Err(_) if text.trim_start().starts_with('[') && is_positional => positional(read(text).value),
        _ if text.trim() == "null" => Vec::new(),
        _ => lines_of_text(text),
    }
}

fn lines_of_text(text: &str) -> Vec<String> {
    match members(text) {
        Some(members) if members.iter().any(|(name, _)| name == TYPE) => lines(&read(text).value),
        Some(members) => {
            members.into_iter().map(|(name, value)| format!("{name}: {}", line_of_text(value.get()))).collect()
        }
        None => vec![line_of_text(text)],
    }
}

fn line_of_text(text: &str) -> String {
    if !text.contains(TYPE) && is_kept_as_text(text) {
        return JsonPart::Document(text).to_string();
    }
    let reading = read(text);
    // A text that is not JSON stays text.
    if reading.value.is_null() && !reading.problems.is_empty() {
        text.to_owned()
    } else {
        one_line(&plain(&reading.value))
    }
}

/// The log of a run, added event by event in any order: keeps only what an episode needs.
#[derive(Debug, Clone, Default)]
pub struct RunLog {
    has_thoughts: bool,
    has_actions: bool,
    first: Option<LogPlace>,
    last_sequence: Option<i64>,
    last_dated: Option<(LogPlace, String)>,
    end: Option<(LogPlace, &'static str)>,
    /// Data of the event that started the run, with its arguments as text if they are long.
    start: Option<(LogPlace, Value, Option<Vec<String>>)>,
    completion: Option<(LogPlace, Returned)>,
    is_result_logged: bool,
    is_stored_back: bool,
    insight: Option<(LogPlace, String)>,
    said: Vec<(LogPlace, String)>,
    /// Thoughts in the results of steps, used if no others were recorded.
    reasoned: Vec<(LogPlace, String)>,
    actions: Vec<(LogPlace, StepAction)>,
    /// Name of each step by any event of the run that states it; for steps whose id contains another name or none. A
    /// failure event has no name, and ids repeat only between runs.
    step_names: HashMap<String, (LogPlace, String)>,
}

impl RunLog {
    /// Creates an empty log for these columns of an episode: thoughts and actions are kept only if wanted. `None` means
    /// all columns.
    pub fn for_columns(wanted: Option<&[&str]>) -> RunLog {
        let is_wanted = |column| wanted.is_none_or(|wanted| wanted.contains(&column));
        RunLog { has_thoughts: is_wanted("thoughts"), has_actions: is_wanted("actions"), ..RunLog::default() }
    }

    /// Adds an event; returns whether its data was kept.
    pub fn take(&mut self, mut event: Row) -> bool {
        let place = LogPlace::of(&event);
        let stored_kind = event.text("kind").unwrap_or_default();
        let kind = stored_kind.replace('.', "_");
        let is_completion = stored_kind == "workflow.completed";
        let EventData { value: mut data, result: long_result, arguments } = EventData::of(&mut event);
        self.is_result_logged |= is_completion && data.get("result").is_some();
        let created_at = event.text("created_at");
        self.last_sequence = self.last_sequence.max(place.sequence);
        if self.first.as_ref().is_none_or(|first| place < *first) {
            self.first = Some(place.clone());
        }
        // A stored-back episode describes the run and is not part of it.
        if let Some(at) = created_at.filter(|_| kind != "episode_created").and_then(time::canonical) {
            keep_last(&mut self.last_dated, &place, at);
        }
        if let Some(end) = end_of(&kind) {
            keep_last(&mut self.end, &place, end);
        }
        if self.has_actions
            && let Some((id, name)) = step_id(&data).zip(text_field(&data, "step_name"))
        {
            self.name_step(id, &place, name);
        }
        match kind.as_str() {
            "workflow_started" if self.start.as_ref().is_none_or(|(first, ..)| place < *first) => {
                self.start = Some((place, data, arguments));
            }
            "workflow_completed" => {
                let is_text = long_result.is_some();
                let value = long_result.map(Value::from).or_else(|| take_stored(&mut data, "result"));
                keep_last(&mut self.completion, &place, Returned { value: value.unwrap_or_default(), is_text });
            }
            "episode_created" => {
                self.is_stored_back = true;
                if let Some(insight) = text_field(&data, "why_it_worked").filter(|text| !text.trim().is_empty()) {
                    keep_last(&mut self.insight, &place, insight);
                }
            }
            "agent_message" | "agent_thought" => return self.take_thought(&kind, place, &data),
            "step_completed" | "step_failed" => {
                let result = long_result.map(StepResult::Text);
                let value = || take_stored(&mut data, "result").map(StepResult::Value);
                let result = result.or_else(value).unwrap_or(StepResult::Value(Value::Null));
                return self.take_step(&kind, place, &data, result);
            }
            _ => return false,
        }
        true
    }

    fn name_step(&mut self, id: String, place: &LogPlace, name: String) {
        if name_in_id(&id) == Some(&name) {
            return;
        }
        let known = self.step_names.entry(id).or_insert_with(|| (place.clone(), name.clone()));
        if known.0 < *place {
            *known = (place.clone(), name);
        }
    }

    fn take_thought(&mut self, kind: &str, place: LogPlace, data: &Value) -> bool {
        let Some(thought) = spoken_thought(kind, data).filter(|_| self.has_thoughts) else { return false };
        self.said.push((place, thought));
        self.reasoned = Vec::new();
        true
    }

    fn take_step(&mut self, kind: &str, place: LogPlace, data: &Value, result: StepResult) -> bool {
        if self.has_thoughts && self.said.is_empty() && kind == "step_completed" {
            let thoughts = result.reasoning();
            self.reasoned.extend(thoughts.into_iter().map(|thought| (place.clone(), thought)));
        }
        if self.has_actions {
            let action = action(kind, data, result);
            self.actions.push((place, action));
        }
        self.has_actions || self.has_thoughts
    }

    /// Data of the event that started the run; null if the log has none.
    pub fn start(&self) -> &Value {
        self.start.as_ref().map_or(&Value::Null, |(_, data, _)| data)
    }

    /// Time of the first event.
    pub fn begun(&self) -> Option<&str> {
        self.first.as_ref().filter(|first| !first.is_undated).map(|first| first.at.as_str())
    }

    /// Final status of the run; `None` if it has not ended.
    pub fn end(&self) -> Option<&'static str> {
        self.end.as_ref().map(|(_, status)| *status)
    }

    /// Greatest number of an event.
    pub fn last_sequence(&self) -> Option<i64> {
        self.last_sequence
    }

    /// Whether the log contains the result as it was returned.
    pub fn is_result_logged(&self) -> bool {
        self.is_result_logged
    }

    /// Whether an episode of the run was stored back as an event.
    pub fn is_stored_back(&self) -> bool {
        self.is_stored_back
    }

    /// Derives the episode of a run from its log.
    pub fn derive(self, run: &WorkflowRun) -> DerivedEpisode {
        let ended_at = self.ended_at(run);
        let begun = run.created_at.as_deref().or(run.started_at.as_deref());
        let long = self.start.as_ref().and_then(|(.., arguments)| arguments.as_ref());
        let observation = match long {
            Some(lines) => (!lines.is_empty()).then(|| lines.join("\n")),
            None => observation(run, self.start()),
        };
        let Returned { value, is_text } = returned(self.completion, run);
        DerivedEpisode {
            observation,
            result: without_pickles(value),
            is_result_text: is_text,
            success: success(&run.status),
            insight: self.insight.map(|(_, insight)| insight),
            duration_seconds: begun.zip(ended_at.as_deref()).and_then(|(begun, end)| time::seconds_between(begun, end)),
            ended_at,
            thoughts: in_order(if self.said.is_empty() { self.reasoned } else { self.said }),
            actions: named(self.actions, &self.step_names),
        }
    }

    /// The run's actions in the form of an `episode_created` event: each with the id of its step.
    pub fn actions_to_store(self) -> StepActions {
        StepActions { with_ids: true, ..named(self.actions, &self.step_names) }
    }

    fn ended_at(&self, run: &WorkflowRun) -> Option<String> {
        if let Some(completed) = run.completed_at.as_deref().and_then(time::canonical) {
            return Some(completed);
        }
        let has_ended = matches!(run.status.as_str(), "completed" | "failed" | "cancelled" | "continued_as_new");
        self.last_dated.as_ref().filter(|_| has_ended).map(|(_, at)| at.clone())
    }
}

/// Result of a run, from its table, otherwise from its log.
fn returned(logged: Option<(LogPlace, Returned)>, run: &WorkflowRun) -> Returned {
    let value = match (&run.result, run.parent_run_id.is_some()) {
        (Value::Null, _) => return logged.map(|(_, logged)| logged).unwrap_or_default(),
        (Value::Array(wrapped), false) => match wrapped.as_slice() {
            [only] => only.clone(),
            _ => run.result.clone(),
        },
        (result, _) => result.clone(),
    };
    Returned { value, is_text: false }
}

fn keep_last<T>(kept: &mut Option<(LogPlace, T)>, place: &LogPlace, value: T) {
    if kept.as_ref().is_none_or(|(known, _)| place > known) {
        *kept = Some((place.clone(), value));
    }
}

fn in_order<T>(mut parts: Vec<(LogPlace, T)>) -> Vec<T> {
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Whether an event of that stored kind begins the log of a run.
pub fn begins_run(kind: &str) -> bool {
    kind.replace('.', "_") == "workflow_started"
}

/// Whether an event of that stored kind ends a run.
pub fn ends_run(kind: &str) -> bool {
    let kind = kind.replace('.', "_");
    end_of(&kind).is_some() || ["workflow_continued_as_new", "workflow_interrupted"].contains(&kind.as_str())
}

fn end_of(kind: &str) -> Option<&'static str> {
    match kind {
        "workflow_completed" => Some("completed"),
        "workflow_failed" => Some("failed"),
        "workflow_cancelled" => Some("cancelled"),
        _ => None,
    }
}

/// Whether a run with that status succeeded; `None` if it did not end by itself.
pub fn success(status: &str) -> Option<bool> {
    match status {
        "completed" => Some(true),
        "failed" | "cancelled" => Some(false),
        _ => None,
    }
}

fn field<'a>(data: &'a Value, name: &str) -> Option<&'a Value> {
    data.get(name).filter(|value| !value.is_null())
}

fn text_field(data: &Value, name: &str) -> Option<String> {
    field(data, name).and_then(Value::as_str).map(str::to_owned)
}

/// Parses a value stored as JSON text inside JSON; other text stays text.
fn stored(value: Value) -> Value {
    let Some(text) = value.as_str() else { return value };
    let reading = read(text);
    if reading.value.is_null() && !reading.problems.is_empty() { value } else { reading.value }
}

/// Takes a member out of an object, parsed as by [`stored`]; `None` for null.
fn take_stored(data: &mut Value, name: &str) -> Option<Value> {
    data.get_mut(name).map(Value::take).filter(|value| !value.is_null()).map(stored)
}

fn observation(run: &WorkflowRun, start: &Value) -> Option<String> {
    let logged = |name| field(start, name).cloned().map(stored);
    let (args, kwargs) = match (logged("args"), logged("kwargs")) {
        (None, None) => (stored(run.input_args.clone()), without_machinery(stored(run.input_kwargs.clone()))),
        (args, kwargs) => (args.unwrap_or_default(), kwargs.unwrap_or_default()),
    };
    let mut told = positional(args);
    if !kwargs.is_null() {
        told.extend(lines(&kwargs));
    }
    (!told.is_empty()).then(|| told.join("\n"))
}

/// Positional arguments as lines of text.
fn positional(args: Value) -> Vec<String> {
    match args {
        Value::Null => Vec::new(),
        Value::Array(args) => args.iter().flat_map(lines).collect(),
        other => lines(&other),
    }
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

/// An argument as lines of text: one per key of an object, otherwise a single line.
fn lines(argument: &Value) -> Vec<String> {
    match plain(argument) {
        Value::Object(object) => object.iter().map(|(name, value)| format!("{name}: {}", one_line(value))).collect(),
        other => vec![one_line(&other)],
    }
}

fn one_line(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn spoken_thought(kind: &str, data: &Value) -> Option<String> {
    let key = match kind {
        "agent_message" if field(data, "role").and_then(Value::as_str) == Some("assistant") => "content",
        "agent_thought" => "thought",
        _ => return None,
    };
    field(data, key).map(|value| one_line(&plain(value))).filter(|thought| !thought.is_empty())
}

/// Reasoning in a step's result: its own, and that of the assistant's messages in it.
fn reasoning(result: &Value) -> Vec<String> {
    let messages = result.get("messages").cloned().map(unwrap_json_string);
    let assistant = messages.as_ref().and_then(Value::as_array).into_iter().flatten();
    let assistant = assistant.filter(|message| message.get("role").and_then(Value::as_str) == Some("assistant"));
    std::iter::once(result).chain(assistant).flat_map(own_reasoning).collect()
}

/// Members that hold reasoning.
const REASONING: [&str; 3] = ["thought", "thoughts", "reasoning"];

fn own_reasoning(holder: &Value) -> Vec<String> {
    let held = REASONING.into_iter().filter_map(|key| holder.get(key));
    held.flat_map(|value| match plain(value) {
        Value::Array(several) => several,
        Value::Null => Vec::new(),
        one => vec![one],
    })
    .map(|thought| one_line(&thought))
    .filter(|thought| !thought.is_empty())
    .collect()
}

/// Result of a step: a value, or the text of a long JSON document.
enum StepResult {
    Value(Value),
    Text(String),
}

impl StepResult {
    /// Reasoning in it: its own, and that of the assistant's messages in it.
    fn reasoning(&self) -> Vec<String> {
        match self {
            StepResult::Value(result) => reasoning(result),
            StepResult::Text(text) => {
                let told = |(name, _): &(String, &RawValue)| name == "messages" || REASONING.contains(&name.as_str());
                let told = members(text).unwrap_or_default().into_iter().filter(told);
                reasoning(&Value::Object(told.map(|(name, value)| (name, read(value.get()).value)).collect()))
            }
        }
    }

    /// JSON text of it.
    fn into_text(self) -> String {
        match self {
            StepResult::Value(result) => without_pickles(result).to_string(),
            StepResult::Text(text) => text,
        }
    }
}

/// The action of an event; with a name if the event itself states it.
fn action(kind: &str, data: &Value, result: StepResult) -> StepAction {
    let boxed = |text: Option<String>| text.map(String::into_boxed_str);
    StepAction {
        name: boxed(text_field(data, "step_name")),
        is_completed: kind == "step_completed",
        result: result.into_text().into_boxed_str(),
        error: boxed(field(data, "error").map(one_line)),
        id: boxed(step_id(data)),
    }
}

/// The actions in order, each with the name of its step if any event of the run states it.
fn named(mut actions: Vec<(LogPlace, StepAction)>, names: &HashMap<String, (LogPlace, String)>) -> StepActions {
    actions.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    for (_, action) in &mut actions {
        if let Some(id) = action.id.as_deref().filter(|_| action.name.is_none()) {
            let name = names.get(id).map_or_else(|| name_in_id(id), |(_, name)| Some(name));
            action.name = name.map(Box::from);
        }
    }
    StepActions { steps: actions, with_ids: false }
}

fn step_id(data: &Value) -> Option<String> {
    text_field(data, "step_id")
}

/// The name in a step id of the form `step_NAME_hash`, with a hexadecimal hash.
fn name_in_id(id: &str) -> Option<&str> {
    let (name, hash) = id.strip_prefix("step_")?.rsplit_once('_')?;
    let is_hash = hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hash && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::entity::Entity;
    use super::*;

    fn event(kind: &str, at: &str, data: Value) -> Row {
        Row::with(Entity::WorkflowEvent, [("kind", json!(kind)), ("created_at", json!(at)), ("data", data)])
    }

    /// The log of events that are numbered in the order of the list.
    fn log(events: &[Row]) -> RunLog {
        let mut log = RunLog::for_columns(None);
        for (number, event) in events.iter().enumerate() {
            let mut event = event.clone();
            event.set("sequence", json!(number));
            log.take(event);
        }
        log
    }

    fn derive(run: &WorkflowRun, events: &[Row]) -> DerivedEpisode {
        log(events).derive(run)
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
            derived.actions.into_json().0,
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
        let failed = |id: &str| event("step.failed", "", json!({"step_id": id, "error": "timed out", "attempt": 1}));
        let events = [
            failed("step_late_0123456789abcdef"),
            event("step.started", "", json!({"step_id": "by-start", "step_name": "started"})),
            failed("by-start"),
            failed("step_charge_card_0123456789abcdef"),
            failed("custom"),
            event("step_failed", "", json!({"error": {"code": 7}})),
            event("step.completed", "", json!({"step_id": "step_late_0123456789abcdef", "step_name": "named later"})),
        ];
        let actions = derive(&run("failed"), &events).actions.into_json().0;
        let actions = actions.as_array().unwrap();
        let names: Vec<Option<&str>> = actions.iter().map(|a| a["step_name"].as_str()).collect();
        assert_eq!(names, [Some("named later"), Some("started"), Some("charge_card"), None, None, Some("named later")]);
        let errors: Vec<Option<&str>> = actions.iter().map(|a| a["error"].as_str()).collect();
        assert_eq!(errors[3..], [Some("timed out"), Some("{\"code\":7}"), None]);
        assert_eq!((&actions[0]["status"], &actions[0]["result"]), (&json!("failed"), &Value::Null));
    }

    #[test]
    fn each_completion_of_a_step_is_an_action() {
        let completed = event("step.completed", "", json!({"step_id": "s", "step_name": "n", "result": "1"}));
        assert_eq!(derive(&run("completed"), &[completed.clone(), completed]).actions.steps.len(), 2);
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
            assert_eq!(log(&events).actions_to_store().into_json().0[0]["step_id"], json!("s1"));
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
    fn what_was_derived_has_the_columns_of_an_episode() {
        let failed = event("step.failed", "2026-10-20T10:00:07Z", json!({"error": "no"}));
        let mut row = Row::empty(Entity::Episode);
        derive(&run("failed"), &[failed]).fill(&mut row, |_, value| Some(value));
        assert_eq!(row.get("success"), &json!(false));
        assert_eq!(row.number("duration_seconds"), Some(7.0));
        assert_eq!(row.get("actions")[0]["error"], json!("no"));
        assert_eq!(row.get("observation"), &Value::Null);
    }

    #[test]
    fn events_may_come_in_any_order() {
        let named = |name: &str| json!({"step_id": "s", "step_name": name, "result": {"thought": name}});
        let events = [
            event("workflow.started", "2026-10-20T10:00:00Z", json!({"args": ["first"]})),
            event("workflow.started", "2026-10-20T10:00:01Z", json!({"args": ["again"]})),
            event("step.completed", "2026-10-20T10:00:02Z", named("a")),
            event("step.failed", "2026-10-20T10:00:03Z", json!({"step_id": "s", "error": "no"})),
            event("step.completed", "2026-10-20T10:00:04Z", named("b")),
            event("workflow.completed", "2026-10-20T10:00:05Z", json!({"result": 1})),
            event("workflow.completed", "2026-10-20T10:00:06Z", json!({"result": 2})),
            event("episode_created", "2026-10-20T10:00:07Z", json!({"why_it_worked": "early"})),
            event("episode_created", "2026-10-20T10:00:08Z", json!({"why_it_worked": "late"})),
        ];
        let numbered = |(number, event): (usize, &Row)| {
            let mut event = event.clone();
            event.set("sequence", json!(number));
            event
        };
        let mut backwards = RunLog::for_columns(None);
        events.iter().enumerate().map(numbered).collect::<Vec<_>>().into_iter().rev().for_each(|event| {
            backwards.take(event);
        });
        let derived = backwards.derive(&run("completed"));
        assert_eq!(derived, derive(&run("completed"), &events));
        assert_eq!((derived.observation.as_deref(), derived.insight.as_deref()), (Some("first"), Some("late")));
        assert_eq!((derived.result, derived.thoughts), (json!(2), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(derived.actions.steps[1].1.name.as_deref(), Some("b"));
    }

    #[test]
    fn thoughts_and_actions_are_kept_only_where_they_are_wanted() {
        let step = event("step.completed", "", json!({"step_name": "n", "result": {"thought": "t"}}));
        let derived = |wanted: &[&str]| {
            let mut log = RunLog::for_columns(Some(wanted));
            let is_kept = log.take(step.clone());
            let derived = log.derive(&run("completed"));
            (is_kept, derived.thoughts.len(), derived.actions.steps.len())
        };
        assert_eq!(derived(&["observation"]), (false, 0, 0));
        assert_eq!(derived(&["thoughts"]), (true, 1, 0));
        assert_eq!(derived(&["actions"]), (true, 0, 1));
    }

    #[test]
    fn data_that_is_no_object_harms_nothing() {
        for data in [Value::Null, json!("text"), json!([1]), json!({"result": "{broken", "step_id": 5, "role": 1})] {
            let kinds = ["workflow.started", "step.completed", "step.failed", "agent_message", "episode_created"];
            let events: Vec<Row> = kinds.iter().map(|kind| event(kind, "never", data.clone())).collect();
            assert_eq!(derive(&run("completed"), &events).actions.steps.len(), 2, "{data}");
        }
    }
}
