//! τ-bench result files: a list of trajectories with task, messages, tool calls and reward.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read, Write};

use serde::Deserializer as _;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::batch::NewRow;
use super::{ImportContents, agent_name, check_text, digest, line_of, message_hash, profile};
use crate::ground::input_file::BYTE_ORDER_MARK;
use crate::memory::{Entity, json};

/// Characters of a title.
const TITLE: usize = 120;

/// Reason why a file cannot be split into trajectories.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It is not a JSON list.
    #[error("this is not a JSON list of trajectories: {0}")]
    NoList(serde_json::Error),
    /// It cannot be read, or its trajectories cannot be written.
    #[error(transparent)]
    System(io::Error),
}

/// Writes the trajectories of a file, each as one line of at most `most` bytes. The file may be of any size.
///
/// # Errors
/// [`ListError`].
pub fn trajectory_lines(mut file: impl Read, most: u64, to: &mut impl Write) -> Result<(), ListError> {
    let (left, mut unwritten) = (Cell::new(most), None);
    let mut start = Vec::new();
    let length = BYTE_ORDER_MARK.len() as u64;
    file.by_ref().take(length).read_to_end(&mut start).map_err(ListError::System)?;
    let file = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start).chain(file);
    let mut list = serde_json::Deserializer::from_reader(OneTrajectory { file, left: &left, second: None });
    let lines = TrajectoryLines { most, left: &left, to, unwritten: &mut unwritten };
    let read = list.deserialize_seq(lines).and_then(|()| list.end());
    match (read, unwritten) {
        (_, Some(error)) => Err(ListError::System(error)),
        (Err(error), None) if error.is_io() => Err(ListError::System(error.into())),
        (Err(error), None) => Err(ListError::NoList(error)),
        (Ok(()), None) => Ok(()),
    }
}

/// Bytes of a file, limited to the size of one trajectory. Each byte is returned as the character with its number,
/// whatever its encoding, so that a trajectory that is not UTF-8 does not end the list.
struct OneTrajectory<'c, R> {
    file: R,
    left: &'c Cell<u64>,
    /// Pending second byte of a character.
    second: Option<u8>,
}

impl<R: Read> Read for OneTrajectory<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // The reader asks for one byte at a time.
        let Some(next) = bytes.first_mut() else { return Ok(0) };
        if let Some(second) = self.second.take() {
            *next = second;
            return Ok(1);
        }
        let read = self.file.read(std::slice::from_mut(next))?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?);
        if read == 1 && !next.is_ascii() {
            self.second = Some(0x80 | *next & 0x3f);
            *next = 0xc0 | *next >> 6;
        }
        Ok(read)
    }
}

/// The line for the reader's characters. Between JSON tokens a line break is whitespace, and within them there is none.
fn line_of_characters(text: &str) -> String {
    let bytes = text.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c });
    line_of(bytes.filter_map(|c| u8::try_from(c).ok()).collect())
}

/// Writes each trajectory as it is read.
struct TrajectoryLines<'c, W> {
    most: u64,
    left: &'c Cell<u64>,
    to: &'c mut W,
    unwritten: &'c mut Option<io::Error>,
}

impl<'de, W: Write> Visitor<'de> for TrajectoryLines<'_, W> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(trajectory) = list.next_element::<Box<RawValue>>()? {
            let line = line_of_characters(trajectory.get());
            if let Err(error) = writeln!(self.to, "{line}") {
                *self.unwritten = Some(error);
                return Err(A::Error::custom("it cannot be written"));
            }
            self.left.set(self.most);
        }
        Ok(())
    }
}

/// Reads trajectories, one a line: those of a file from that place on.
pub fn read(name: &str, lines: &str, first: usize) -> ImportContents {
    let agent = agent_name(name);
    let mut contents = ImportContents::default();
    let mut users = HashSet::new();
    contents.add(
        NewRow::new(
            Entity::Agent,
            [
                ("id", Value::from(agent.clone())),
                ("name", Value::from(agent.clone())),
                ("status", Value::from("active")),
            ],
        )
        .at_once("last_seen"),
    );
    for (position, line) in lines.lines().enumerate() {
        contents.place = position + first;
        let read = check_text(line).and_then(|()| json::exactly(line));
        let read = read.and_then(|read| check(&read).map(|()| read));
        let trajectory = match &read {
            Ok(trajectory) => trajectory,
            Err(why) => {
                contents.is_bad(why.clone());
                continue;
            }
        };
        let user = trajectory_of(&mut contents, &agent, trajectory);
        if !users.contains(&user) {
            // The bank belongs to all of them.
            contents.place = 0;
            contents.add(profile(&user, &agent));
            users.insert(user);
        }
    }
    contents.notes.push("the file has no times: its rows take the time of the import".to_owned());
    contents
}

fn check(trajectory: &Value) -> Result<(), String> {
    let Some(messages) = trajectory["traj"].as_array() else { return Err("it has no list in `traj`".to_owned()) };
    if messages.is_empty() {
        return Err("its list `traj` is empty".to_owned());
    }
    if let Some(position) = messages.iter().position(|m| m["role"].as_str().is_none()) {
        return Err(format!("message {} has no role", position + 1));
    }
    match trajectory["reward"].as_f64() {
        None => Err("it has no number in `reward`".to_owned()),
        Some(reward) if !(0.0..=1.0).contains(&reward) => Err(format!("its reward {reward} is not within 0 and 1")),
        Some(_) => Ok(()),
    }
}

/// Call of a tool, with its result.
struct Call {
    id: String,
    name: String,
    arguments: Value,
    result: Option<String>,
}

impl Call {
    fn failed(&self) -> bool {
        self.result.as_deref().is_some_and(|r| r.trim_start().to_ascii_lowercase().starts_with("error"))
    }

    /// The call as a step of an episode.
    fn action(&self) -> Value {
        let (status, result, error) = match (&self.result, self.failed()) {
            (Some(text), true) => ("failed", Value::Null, Value::from(text.clone())),
            (Some(text), false) => ("completed", Value::from(text.clone()), Value::Null),
            (None, _) => ("failed", Value::Null, Value::from("no answer was recorded")),
        };
        json!({"step_name": self.name, "status": status, "result": result, "error": error, "at": null})
    }
}

/// Contents of one trajectory.
struct Trajectory<'a> {
    agent: &'a str,
    user: String,
    key: String,
    reward: f64,
    metadata: Value,
    instruction: Option<String>,
    message: String,
    calls: Vec<Call>,
}

/// Adds one trajectory and returns its user.
fn trajectory_of(contents: &mut ImportContents, agent: &str, trajectory: &Value) -> String {
    let messages = trajectory["traj"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (task, trial) = (trajectory["task_id"].to_string(), trajectory["trial"].to_string());
    let key = digest(&["tau-bench", &task, &trial, &trajectory["traj"].to_string()]);
    let about = &trajectory["info"]["task"];
    let user = about["user_id"].as_str().unwrap_or("tau-bench").to_owned();
    let reward = trajectory["reward"].as_f64().unwrap_or_default();
    let instruction = about["instruction"].as_str().map(|text| contents.text(text));
    let first = messages.iter().find(|m| m["role"] == "user").and_then(|m| m["content"].as_str()).unwrap_or_default();
    let message = contents.text(first);
    let (calls, answered) = segments(contents, &format!("tau-{key}"), messages);
    events(contents, &format!("tau-run-{key}"), messages, (&calls, answered), reward, instruction.as_deref());
    let metadata = contents.value(&json!({"source": "tau-bench", "task_id": trajectory["task_id"],
        "trial": trajectory["trial"], "reward": reward, "user_cost": trajectory["info"]["user_cost"]}));
    let read = Trajectory { agent, user, key, reward, metadata, instruction, message, calls };
    contents.add(read.episode());
    contents.add(read.case());
    read.user
}

impl Trajectory<'_> {
    fn outcome(&self) -> &'static str {
        match self.reward {
            r if r >= 1.0 => "success",
            r if r > 0.0 => "partial",
            _ => "failure",
        }
    }

    fn episode(&self) -> NewRow {
        let actions: Vec<Value> = self.calls.iter().map(Call::action).collect();
        let mut tools: Vec<&str> = self.calls.iter().map(|c| c.name.as_str()).collect();
        tools.sort_unstable();
        tools.dedup();
        NewRow::new(
            Entity::Episode,
            [
                ("id", Value::from(format!("tau-{}", self.key))),
                ("agent_id", Value::from(self.agent)),
                ("user_id", Value::from(self.user.clone())),
                ("execution_ids", json!([format!("tau-run-{}", self.key)])),
                ("title", Value::from(self.message.chars().take(TITLE).collect::<String>())),
                ("observation", self.instruction.clone().map_or(Value::Null, Value::from)),
                ("status", Value::from("closed")),
                ("outcome", Value::from(self.outcome())),
                ("success", Value::from(self.reward >= 1.0)),
                ("actions", Value::from(actions)),
                ("result", json!({"reward": self.reward})),
                ("tools_used", json!(tools)),
                ("tags", json!(["tau-bench"])),
                ("workflow_name", Value::from("tau-bench")),
                ("metadata", self.metadata.clone()),
                ("canvas_ids", json!([])),
                ("canvas_action_count", Value::from(0)),
                ("feedback_ids", json!([])),
                ("utility", Value::from(crate::memory::utility::START)),
            ],
        )
        .at_once("started_at")
    }

    fn case(&self) -> NewRow {
        let bank = profile(&self.user, self.agent).row.id().to_owned();
        let plan: Vec<Value> = self.calls.iter().map(|c| json!({"tool": c.name, "arguments": c.arguments})).collect();
        let traces: Vec<Value> = self
            .calls
            .iter()
            .map(|c| json!({"tool": c.name, "input": c.arguments, "status": if c.failed() { "error" } else { "ok" }, "output": c.result}))
            .collect();
        let episode = format!("tau-{}", self.key);
        NewRow::new(
            Entity::Case,
            [
                ("id", Value::from(format!("tau-case-{}", self.key))),
                ("profile_id", Value::from(bank)),
                ("user_id", Value::from(self.user.clone())),
                ("agent_id", Value::from(self.agent)),
                ("message_hash", Value::from(message_hash(&self.message))),
                ("prompt", json!({"message": self.message, "instruction": self.instruction, "episode_id": episode})),
                ("plan", json!({"steps": plan})),
                ("traces", json!({"steps": traces})),
                ("outcome", Value::from(self.outcome())),
                ("reward", Value::from(self.reward)),
                ("tags", json!(["tau-bench"])),
                ("reference_case_ids", json!([])),
                ("quarantined", Value::from(false)),
            ],
        )
        .at_once("created_at")
    }
}

/// The call that an answer belongs to: ids repeat within a trajectory, so it is one without an answer yet, latest calls
/// first.
fn answered_by(calls: &[Call], latest: usize, id: &str) -> Option<usize> {
    let is_open = |at: &usize| calls[*at].id == id && calls[*at].result.is_none();
    (latest..calls.len()).find(is_open).or_else(|| (0..latest).rev().find(is_open))
}

/// Adds messages and calls as segments; returns the calls with their results, and the call of each answer.
fn segments(contents: &mut ImportContents, episode: &str, messages: &[Value]) -> (Vec<Call>, Vec<Option<usize>>) {
    let (mut calls, mut answered) = (Vec::<Call>::new(), Vec::new());
    let (mut sequence, mut latest) = (0, 0);
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        let text = message["content"].as_str().map(|text| contents.text(text));
        let (kind, source_id) = match role {
            "tool" => ("execution", message["tool_call_id"].as_str()),
            _ => ("message", None),
        };
        if let ("tool", Some(text)) = (role, &text) {
            let call = source_id.and_then(|id| answered_by(&calls, latest, id));
            if let Some(call) = call {
                calls[call].result = Some(text.clone());
            }
            answered.push(call);
        }
        if let Some(text) = text {
            segment(contents, episode, &mut sequence, kind, role, source_id, text);
        }
        let made = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !made.is_empty() {
            latest = calls.len();
        }
        for call in made {
            let name = contents.text(call["function"]["name"].as_str().unwrap_or("unknown"));
            let written = call["function"]["arguments"].as_str().unwrap_or("{}");
            let read = json::exactly(written).unwrap_or_else(|_| Value::from(written));
            let arguments = contents.value(&read);
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            let text = format!("{name}({arguments})");
            segment(contents, episode, &mut sequence, "execution", "tool_call", Some(&id), text);
            calls.push(Call { id, name, arguments, result: None });
        }
    }
    (calls, answered)
}

fn segment(
    contents: &mut ImportContents,
    episode: &str,
    sequence: &mut i64,
    kind: &str,
    source_type: &str,
    source_id: Option<&str>,
    text: String,
) {
    *sequence += 1;
    contents.add(
        NewRow::new(
            Entity::Segment,
            [
                ("id", Value::from(format!("{episode}-s{sequence}"))),
                ("episode_id", Value::from(episode)),
                ("sequence", Value::from(*sequence)),
                ("kind", Value::from(kind)),
                ("content", Value::from(text)),
                ("source_type", Value::from(source_type)),
                ("source_id", source_id.map_or(Value::Null, Value::from)),
            ],
        )
        .at_once("created_at"),
    );
}

/// Adds the trajectory as the event log of a run.
fn events(
    contents: &mut ImportContents,
    run: &str,
    messages: &[Value],
    (calls, answered): (&[Call], Vec<Option<usize>>),
    reward: f64,
    instruction: Option<&str>,
) {
    let mut log: Vec<(&str, Value)> = vec![("workflow.started", json!({"args": [instruction]}))];
    let (mut next, mut answered) = (calls.iter(), answered.into_iter());
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        match (role, message["content"].as_str()) {
            // The policy is in the segments; results follow as completed steps.
            ("system", _) | (_, None) => {}
            ("tool", Some(_)) => {
                if let Some(call) = answered.next().flatten().map(|call| &calls[call]) {
                    log.push(if call.failed() {
                        ("step.failed", json!({"step_id": call.id, "step_name": call.name, "error": call.result}))
                    } else {
                        ("step.completed", json!({"step_id": call.id, "step_name": call.name, "result": call.result}))
                    });
                }
            }
            (role, Some(text)) => {
                let text = contents.text(text);
                log.push(("agent_message", json!({"role": role, "content": text})));
            }
        }
        let count = message["tool_calls"].as_array().map_or(0, Vec::len);
        for call in next.by_ref().take(count) {
            log.push(("step.started", json!({"step_id": call.id, "step_name": call.name, "args": call.arguments})));
        }
    }
    log.push(("workflow.completed", json!({"result": {"reward": reward}})));
    for (position, (kind, data)) in log.into_iter().enumerate() {
        contents.add(
            NewRow::new(
                Entity::WorkflowEvent,
                [
                    ("id", Value::from(format!("{run}-{position}"))),
                    ("run_id", Value::from(run)),
                    ("sequence", Value::from(position as i64)),
                    ("kind", Value::from(kind)),
                    ("data", data),
                ],
            )
            .at_once("created_at"),
        );
    }
}
