//! `audit`: the trail listed, verified, anchored, and a replaced database accepted.

use std::path::Path;

use serde_json::{Value, json};

use super::args::Format;
use super::change::{author, read_input};
use super::change_args::{AuditCommand, By};
use super::{Failure, Session, look, output};
use crate::change::anchor;
use crate::change::audit::{self, Anchor};
use crate::ground::private_file;
use crate::memory::Kind;
use crate::ui::text::SafeText;

/// Bytes that a file of anchors may have.
const ANCHOR_BYTES: u64 = 64 << 20;

/// Runs the commands on the trail.
pub async fn run(session: &Session<'_>, command: &AuditCommand) -> Result<(), Failure> {
    match command {
        AuditCommand::List { limit, before } => list(session, *limit, *before).await,
        AuditCommand::Verify { anchor } => verify(session, anchor.as_deref()).await,
        AuditCommand::Anchor { file } => write_anchor(session, file).await,
        AuditCommand::Accept { reason, actor } => accept(session, reason, actor.clone()).await,
    }
}

async fn list(session: &Session<'_>, limit: usize, before: Option<i64>) -> Result<(), Failure> {
    let store = session.store().await?;
    let head = audit::anchor(&store).await?.seq;
    let last = before.map_or(head, |before| (before - 1).min(head));
    let mut rows = audit::list(&store, (last - limit as i64).max(0), limit).await?;
    rows.retain(|row| row["seq"].as_i64().is_some_and(|seq| seq <= last));
    rows.reverse();
    if session.mask().is_some() {
        for row in &mut rows {
            row["changes"] = Value::Null;
            row["reason"] = Value::Null;
        }
    }
    let next = rows.last().and_then(|row| row["seq"].as_i64()).filter(|seq| *seq > 1);
    match session.format() {
        Format::Json => output::json(&json!({ "rows": rows, "next": next })),
        Format::Jsonl => output::piped(|out| rows.iter().try_for_each(|row| output::json_line(out, row))),
        Format::Csv => output::csv_table(&rows),
        Format::Table => output::piped(|out| {
            let cells: Vec<Vec<SafeText>> = rows
                .iter()
                .map(|row| {
                    let shown =
                        ["seq", "at", "actor", "action", "reason"].map(|key| output::cell(Kind::Text, &row[key]));
                    let counts = SafeText::limited(&row["public"]["counts"].to_string(), 200);
                    shown.into_iter().chain([counts]).collect()
                })
                .collect();
            let titles = ["SEQ", "AT", "ACTOR", "ACTION", "REASON", "ROWS"];
            output::table(out, &titles, &cells, output::width()).map(|_| ())
        }),
    }
}

fn read_anchors(file: &Path) -> Result<Vec<Anchor>, Failure> {
    let text = read_input(file, ANCHOR_BYTES)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let anchors: Vec<Anchor> = lines
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map_err(|e| Failure::usage(format!("{}:{}: this is no anchor: {e}", file.display(), number + 1)))
        })
        .collect::<Result<_, _>>()?;
    if anchors.is_empty() {
        return Err(Failure::usage(format!("{} holds no anchor", file.display())));
    }
    Ok(anchors)
}

async fn verify(session: &Session<'_>, anchor: Option<&Path>) -> Result<(), Failure> {
    let anchors = anchor.map(read_anchors).transpose()?.unwrap_or_default();
    let store = session.store().await?;
    let verdict = anchor::verify(&store, &anchors).await?;
    look::print_value(session, &json!(verdict))?;
    match verdict.faults.first() {
        None => Ok(()),
        Some(first) => Err(Failure {
            code: 7,
            message: format!("the audit trail is broken: {} ({} faults in all)", first.message, verdict.faults.len()),
        }),
    }
}

async fn accept(session: &Session<'_>, reason: &str, actor: Option<String>) -> Result<(), Failure> {
    let by = By { reason: Some(reason.to_owned()), ticket: None, actor };
    let store = session.store().await?;
    let acceptance = anchor::accept(&store, &author(&by)).await?;
    look::print_value(session, &json!(acceptance))
}

async fn write_anchor(session: &Session<'_>, file: &Path) -> Result<(), Failure> {
    let store = session.store().await?;
    let anchor = audit::anchor(&store).await?;
    private_file::append(file, &json!(anchor).to_string())
        .map_err(|e| Failure::failed(format!("{}: the anchor could not be written: {e}", file.display())))?;
    look::print_value(session, &json!(anchor))
}
