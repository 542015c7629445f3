//! Copies of rows for elsewhere, CSV and Markdown, and the session's changes as a script.

use serde_json::Value;

use super::model::Model;
use crate::console::core::change::DoneChange;
use crate::console::core::command::CopyForm;
use crate::console::core::context::ToastTone;
use crate::console::core::message::Effect;
use crate::console::core::twin::change_line;
use crate::memory::Row;

/// Bytes of a copy at most: a clipboard is no place for more.
const MOST: usize = 1 << 20;

impl Model {
    /// Copies the marked rows that are held, else the selected one, with the columns that the list shows.
    pub(super) fn copy_rows(&mut self, form: CopyForm) {
        let marked = self.screen().marked_rows();
        let rows = if marked.is_empty() { self.screen().row().cloned().into_iter().collect() } else { marked };
        let Some(first) = rows.first() else { return };
        let mut columns = vec!["id"];
        let shown = self.context.list_columns(first.entity);
        columns.extend(shown.iter().map(|column| column.column).filter(|column| *column != "id"));
        let (what, text) = match form {
            CopyForm::Csv => ("CSV", csv_of(&rows, &columns)),
            CopyForm::Markdown => ("Markdown", markdown_of(&rows, &columns)),
        };
        if text.len() > MOST {
            let words = format!("{} bytes are too much for the clipboard; e writes them to a file", text.len());
            return self.context.say(ToastTone::Warn, words);
        }
        self.context.perform(Effect::Copy(format!("{} as {what}", counted(rows.len())), text));
    }

    /// Copies what was done in this session as commands that do the same.
    pub(super) fn copy_runbook(&mut self) {
        let done: Vec<&DoneChange> = self.context.changing.done.iter().filter(|done| !done.undone).collect();
        if done.is_empty() {
            return self.context.say(ToastTone::Info, "nothing was changed in this session yet");
        }
        let line =
            |done: &&DoneChange| change_line(&self.context, &done.operation.clone().into(), done.reason.as_deref());
        let lines: Vec<String> = done.iter().map(line).collect();
        let script = format!("#!/bin/sh\nset -eu\n{}\n", lines.join("\n"));
        let what = format!(
            "a script of {}",
            if lines.len() == 1 { "1 change".to_owned() } else { format!("{} changes", lines.len()) }
        );
        self.context.perform(Effect::Copy(what, script));
    }
}

fn counted(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn csv_of(rows: &[Row], columns: &[&str]) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    let record = |row: &Row| columns.iter().map(|column| text_of(row.get(column))).collect::<Vec<_>>();
    // A writer into memory fails for records of different lengths only.
    let _ = out.write_record(columns);
    for row in rows {
        let _ = out.write_record(record(row));
    }
    out.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

fn markdown_of(rows: &[Row], columns: &[&str]) -> String {
    let cell = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(columns.iter().map(|column| (*column).to_owned()).collect());
    out += &line(columns.iter().map(|_| "---".to_owned()).collect());
    for row in rows {
        out += &line(columns.iter().map(|column| cell(&text_of(row.get(column)))).collect());
    }
    out
}
