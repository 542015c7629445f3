//! Copies of rows for elsewhere, CSV and Markdown, and the session's changes as a script.

use serde_json::Value;

use crate::console::core::change::DoneChange;
use crate::console::core::command::CopyForm;
use crate::console::core::context::{Context, ToastTone};
use crate::console::core::message::Effect;
use crate::console::core::screen::Screen;
use crate::console::core::twin::change_line;
use crate::memory::Row;

/// Bytes of a copy at most: a clipboard is no place for more.
const MOST: usize = 1 << 20;

/// Copies the marked rows that are held, else the selected one, with the columns that the list shows.
pub(super) fn copy_rows(screen: &dyn Screen, form: CopyForm, cx: &mut Context) {
    let marked = screen.marked_rows();
    let rows = if marked.is_empty() { screen.row().cloned().into_iter().collect() } else { marked };
    let Some(first) = rows.first() else { return };
    let mut columns = vec!["id"];
    let shown = cx.list_columns(first.entity);
    columns.extend(shown.iter().map(|column| column.column).filter(|column| *column != "id"));
    let (what, text) = match form {
        CopyForm::Csv => ("CSV", csv_of(&rows, &columns)),
        CopyForm::Markdown => ("Markdown", markdown_of(&rows, &columns)),
    };
    if text.len() > MOST {
        let words = format!("{} bytes are too much for the clipboard; e writes them to a file", text.len());
        return cx.say(ToastTone::Warn, words);
    }
    cx.perform(Effect::Copy(format!("{} as {what}", counted(rows.len(), "row")), text));
}

/// Copies what was done in this session as commands that do the same.
pub(super) fn copy_runbook(cx: &mut Context) {
    let done: Vec<&DoneChange> = cx.changing.done.iter().filter(|done| !done.undone).collect();
    if done.is_empty() {
        return cx.say(ToastTone::Info, "nothing was changed in this session yet");
    }
    let line = |done: &&DoneChange| change_line(cx, &done.operation.clone().into(), done.reason.as_deref());
    let lines: Vec<String> = done.iter().map(line).collect();
    let script = format!("#!/bin/sh\nset -eu\n{}\n", lines.join("\n"));
    cx.perform(Effect::Copy(format!("a script of {}", counted(lines.len(), "change")), script));
}

/// Copies the command line that shows what the screen shows.
pub(super) fn copy_command(screen: &dyn Screen, cx: &mut Context) {
    let mut words = vec![cx.opened.invocation.line([])];
    words.extend(screen.twin(cx));
    words.extend(cx.masking.is_on().then(|| "--mask".to_owned()));
    cx.perform(Effect::Copy("command".to_owned(), words.join(" ")));
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
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
