//! Copies of rows for elsewhere, CSV and Markdown, and the session's changes as a script.

use serde_json::Value;

use crate::change::operation::Operation;
use crate::console::core::change::{DoneChange, DoneWork};
use crate::console::core::command::CopyForm;
use crate::console::core::context::{Context, ToastTone};
use crate::console::core::message::Effect;
use crate::console::core::proposal::Proposal;
use crate::console::core::screen::Screen;
use crate::console::core::twin::{change_line, migrate_line};
use crate::memory::Row;

/// Most bytes copied: a clipboard is not meant for more.
const MOST: usize = 1 << 20;

/// Copies the loaded marked rows, else the selected one, with the columns of the list.
pub(super) fn copy_rows(screen: &dyn Screen, form: CopyForm, cx: &mut Context) {
    let marked = if screen.means_open_row() { Vec::new() } else { screen.marked_rows() };
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
        let words = format!("{} bytes are too many for the clipboard; e writes them to a file", text.len());
        return cx.say(ToastTone::Warn, words);
    }
    cx.perform(Effect::Copy(format!("{} as {what}", counted(rows.len(), "row")), text));
}

/// Copies the changes of this session as equivalent commands.
pub(super) fn copy_runbook(cx: &mut Context) {
    let (done, standing) = (&cx.changing.done, || cx.changing.done.iter().filter(|done| !done.is_undone()));
    let erased = standing().any(|done| done.work == DoneWork::Erasure);
    let lines: Vec<String> = standing().filter_map(|done| script_line(cx, done)).collect();
    let changes = lines.iter().filter(|line| !line.starts_with('#')).count();
    if changes == 0 {
        let words = match (done.is_empty(), erased) {
            (true, _) => "nothing was changed in this session yet",
            (_, true) => "this session only erased a person: scripts do not name people, use purge",
            _ => "no change of this session is left for a script",
        };
        return cx.say(ToastTone::Info, words);
    }
    let script = format!("#!/bin/sh\nset -eu\n{}\n", lines.join("\n"));
    let without = if erased { ", without the erasure" } else { "" };
    cx.perform(Effect::Copy(format!("a script of {}{without}", counted(changes, "change")), script));
}

/// The command that repeats a change; a comment if there is none. `None` for an undo within this session: both it and
/// the undone change are left out, as the entry's number would differ elsewhere.
fn script_line(cx: &Context, done: &DoneChange) -> Option<String> {
    let reason = done.reason.as_deref();
    match &done.work {
        DoneWork::Change(Operation::Undo { seq }) if cx.changing.made(*seq) => None,
        DoneWork::Change(operation @ Operation::Undo { seq }) => {
            let line = change_line(cx, &operation.clone().into(), reason);
            let why = format!(
                "This is entry {seq} of the database that was changed; in another database it is a \
             different change:"
            );
            Some(comment(&[&why, &line]))
        }
        DoneWork::Change(operation) => Some(change_line(cx, &operation.clone().into(), reason)),
        DoneWork::Job { name, complete, .. } => {
            let line = change_line(cx, &Proposal::Backfill { name: name.clone(), resume: false }, reason);
            let part = if *complete { "partly taken back" } else { "not finished" };
            let is_whole = *complete && done.undone.is_empty();
            Some(if is_whole {
                line
            } else {
                comment(&[&format!("{name} was {part}; this would run all of it:"), &line])
            })
        }
        DoneWork::Migrations(optional) => Some(migrate_line(cx, optional)),
        DoneWork::Erasure => Some(comment(&["A person was erased here, who is not named: use purge."])),
    }
}

/// Lines that a shell skips.
fn comment(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| line.lines()).map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}

/// Commands that show the past, with the option for it.
const OF_THE_PAST: [&str; 3] = ["list", "show", "recall"];

/// Copies the command line that shows the same as the screen.
pub(super) fn copy_command(screen: &dyn Screen, cx: &mut Context) {
    let twin = screen.twin(cx);
    let first = twin.iter().flat_map(|words| words.split(' ')).next().unwrap_or_default();
    let looks_back = OF_THE_PAST.contains(&first) && screen.shows_past();
    let option = if looks_back { "--as-of" } else { "# now, not as of" };
    let past = cx.past.as_ref().map(|past| format!("{option} {}", past.at));
    let mask = cx.masking.is_on().then(|| "--mask".to_owned());
    let words: Vec<String> = [cx.opened.invocation.line([])].into_iter().chain(twin).chain(mask).chain(past).collect();
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
