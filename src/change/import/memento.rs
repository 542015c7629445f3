//! Memento memories: a case bank with a question, a plan and a label on each line.

use serde_json::{Value, json};

use super::super::batch::NewRow;
use super::{ImportContents, agent_name, check_text, digest, message_hash, profile};
use crate::memory::{Entity, json};

/// User who owns a bank that names no user.
const USER: &str = "memento";

/// Reads a file, or a part of one whose first line has that number.
pub fn read(name: &str, text: &str, first_line: usize) -> ImportContents {
    let agent = agent_name(name);
    let mut contents = ImportContents::default();
    let bank = profile(USER, &agent);
    let bank_id = bank.row.id().to_owned();
    contents.add(bank);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        contents.place = number + first_line;
        if let Err(why) = case(&mut contents, &agent, &bank_id, line) {
            contents.is_bad(why);
        }
    }
    contents.notes.push(format!("the file names no person: its cases are in the bank of user `{USER}`"));
    contents
}

fn case(contents: &mut ImportContents, agent: &str, bank: &str, line: &str) -> Result<(), String> {
    check_text(line)?;
    let value = json::exactly(line).map_err(|problem| format!("not JSON that can be stored: {problem}"))?;
    if value.get("truth_label").is_some() {
        return Err("this is a judged pair, not a case: `policy train --pairs FILE` takes those".to_owned());
    }
    let question = value["case"].as_str().filter(|q| !q.trim().is_empty()).ok_or("it has no text in `case`")?;
    let (outcome, reward) = match value["case_label"].as_str() {
        Some("positive") => ("success", 1.0),
        Some("negative") => ("failure", 0.0),
        Some(other) => return Err(format!("unknown label `{other}`: positive or negative")),
        None => return Err("it has no text in `case_label`".to_owned()),
    };
    let key = digest(&["memento", question, &value["plan"].to_string(), outcome]);
    let message = contents.text(question);
    let plan = match &value["plan"] {
        Value::String(text) => {
            let reading = json::read(text);
            if reading.value.is_null() { Value::from(text.clone()) } else { reading.value }
        }
        other => other.clone(),
    };
    let plan = contents.value(&plan);
    contents.add(
        NewRow::new(
            Entity::Case,
            [
                ("id", Value::from(format!("memento-{key}"))),
                ("profile_id", Value::from(bank)),
                ("user_id", Value::from(USER)),
                ("agent_id", Value::from(agent)),
                ("message_hash", Value::from(message_hash(&message))),
                ("prompt", json!({"message": message})),
                ("plan", plan),
                ("outcome", Value::from(outcome)),
                ("reward", Value::from(reward)),
                ("tags", json!(["memento"])),
                ("reference_case_ids", json!([])),
                ("quarantined", Value::from(false)),
            ],
        )
        .at_once("created_at"),
    );
    Ok(())
}
