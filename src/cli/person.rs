//! One person: `show subject` and `export subject`.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::lines::PrintedLines;
use super::purge::planned;
use super::{CommandFailure, Session, output};
use crate::change::purge::{self, PurgeOptions, Sink};
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// `export subject SUBJECT`: never masked, since it would be of no use to the person then.
///
/// # Errors
/// Code 2 with a mask, 6 if some of the person's data could not be read; else an error of the database.
pub async fn export(session: &Session<'_>, subject: &str, out: Option<&Path>) -> Result<(), CommandFailure> {
    if session.mask().is_some() {
        return Err(CommandFailure::usage(
            "a person's bundle is for that person and contains the stored values unchanged: it cannot be made with \
             --mask or with a profile that masks",
        ));
    }
    let (store, options) = (session.store().await?, PurgeOptions::default());
    if let Some(folder) = out {
        let (manifest, hash) = purge::bundle(&store, subject, &options, Sink::Folder(folder)).await?;
        output::shape(session.format(), &json!({ "manifest": manifest, "manifest_sha256": hash }))?;
        return report_left_out(&manifest);
    }
    let mut lines = PersonLines(PrintedLines::new(output::is_read_by_people()));
    let written = purge::bundle(&store, subject, &options, Sink::Stream(&mut lines)).await;
    if lines.0.is_read() { report_left_out(&written?.0) } else { Ok(()) }
}

/// Reports the tables missing from a bundle, and fails if one could not be read.
fn report_left_out(manifest: &Value) -> Result<(), CommandFailure> {
    let left_out = manifest["left_out"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        format!("{} is not in the bundle: {}", text("table"), text("reason"))
    };
    let (unread, outside): (Vec<_>, Vec<_>) = left_out.iter().partition(|entry| entry["unread"] == Value::Bool(true));
    outside.into_iter().for_each(|entry| output::tell(&words(entry)));
    for (id, people) in manifest["namesakes"].as_object().into_iter().flatten() {
        output::tell(&format!(
            "{people} people of this database have the id `{id}`: the bundle holds the rows of all of them"
        ));
    }
    if unread.is_empty() {
        return Ok(());
    }
    let unread: Vec<String> = unread.into_iter().map(words).collect();
    Err(CommandFailure::incomplete(format!(
        "incomplete: {}; use a role that may read all rows for a complete one",
        unread.join("\n")
    )))
}

/// The lines of a bundle for standard output: a reader that is gone ends them.
struct PersonLines(PrintedLines);

impl Write for PersonLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        if self.0.is_read() { Ok(written) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `show subject ID`: the person, their rows, and mentions elsewhere.
pub async fn show(session: &Session<'_>, store: &Store, subject: &str) -> Result<Value, CommandFailure> {
    let options = PurgeOptions { account: true, ..PurgeOptions::default() };
    let (plan, unfinished) = planned(session, store, subject, &options).await?;
    let id = plan.subject.ids.first().cloned().unwrap_or_default();
    let notes = json!(unfinished.into_iter().chain(plan.shown_notes()).collect::<Vec<_>>());
    let mut printed = plan.printed();
    let row = match store.sources_of(Entity::Subject) {
        Ok(_) => store.row(Entity::Subject, &id).await?,
        Err(_) => None,
    };
    let mut row = row.unwrap_or_else(|| Row::empty(Entity::Subject));
    row.set("id", Value::from(id.clone()));
    let mask = session.mask();
    if let Some(mask) = &mask {
        printed.mask(mask);
        mask.row(&mut row);
    }
    let held = match store.records().holds().await {
        Err(StoreError::Denied { .. }) => Value::Null,
        holds => Value::from(holds?.iter().any(|(held, _)| *held == id)),
    };
    let mut value = row.to_json();
    value["known_as"] = json!(printed.subject.handles);
    value["near"] = json!(printed.subject.near);
    value["rows"] = json!(printed.counts);
    value["mentions"] = json!(printed.mentions);
    value["mentions_total"] = json!(printed.mentions_total);
    value["mentions_by_column"] = json!(printed.mentions_by_column);
    value["effects"] = json!(printed.effects);
    value["notes"] = notes;
    value["held"] = held;
    Ok(value)
}
