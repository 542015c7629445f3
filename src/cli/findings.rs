//! `findings`: what is wrong or suspicious, told as it is found.

use std::io::Write;
use std::ops::ControlFlow;

use clap::ValueEnum;
use serde_json::json;

use super::context::Session;
use super::failure::CommandFailure;
use super::options::Format;
use super::output;
use crate::change::findings::{FindingNews, FindingRequest, look};
use crate::memory::findings::{Finding, KINDS, Severity, kind_named};
use crate::memory::nearest::unknown;
use crate::ui::text::SafeText;

/// How severe a finding is that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Severe ones only.
    High,
    /// Those of middle weight too.
    Medium,
    /// Any.
    Low,
}

/// Examples of each kind; many where one kind is asked for.
const EXAMPLES: usize = 10;
const EXAMPLES_OF_ONE: usize = 1_000;

/// Looks for findings and prints them: a line each as it is found in JSON lines, else all of them, the worst first.
///
/// # Errors
/// Code 2 for an unknown kind, code 6 when something as severe as `fail_on` is found; else what the database says.
pub(super) async fn run(
    session: &Session<'_>,
    kind: Option<&str>,
    fail_on: Option<FailOn>,
) -> Result<(), CommandFailure> {
    let kind = kind.map(named).transpose()?;
    let store = session.store().await?;
    let wanted =
        FindingRequest { kind, examples: if kind.is_some() { EXAMPLES_OF_ONE } else { EXAMPLES }, brief: None };
    let format = session.format();
    let progress = session.shows_progress();
    let (mut found, mut skipped, mut severe) = (Vec::new(), Vec::new(), Vec::new());
    let mut failed = None;
    let mut told = |told: FindingNews| {
        match told {
            FindingNews::Found(mut finding) => {
                finding.remedy = store.invocation().before(&finding.remedy);
                if fail_on.is_some_and(|limit| finding.severity <= severity(limit)) {
                    severe.push(finding.kind);
                }
                if format == Format::Jsonl {
                    if let Err(error) = output::piped(|out| {
                        output::json_line(out, &json!(finding))?;
                        out.flush()
                    }) {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                } else {
                    found.push(finding);
                }
            }
            FindingNews::NotApplicable(kind) => skipped.push(kind),
            FindingNews::Read(rows, what) if progress => {
                let _ = write!(std::io::stderr(), "\r{rows} rows read, now {what}\x1b[K");
            }
            FindingNews::Read(..) | FindingNews::Left(_) => {}
        }
        ControlFlow::Continue(())
    };
    let outcome = look(&store, &wanted, &mut told).await;
    if progress {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    outcome?;
    if let Some(error) = failed {
        return Err(error);
    }
    found.sort_by_key(|f: &Finding| (f.severity, KINDS.iter().position(|k| k.name == f.kind), f.entity));
    match format {
        Format::Jsonl => {}
        Format::Json => output::json(&json!({ "findings": found, "not_applicable": skipped }))?,
        Format::Csv => output::csv_table(&found.iter().map(|finding| json!(finding)).collect::<Vec<_>>())?,
        Format::Table => output::piped(|out| {
            for finding in &found {
                written(out, finding)?;
            }
            if found.is_empty() {
                writeln!(out, "nothing was found")?;
            }
            for kind in &skipped {
                writeln!(out, "not looked for: {}: {}", kind.kind, SafeText::new(&kind.reason))?;
            }
            Ok(())
        })?,
    }
    severe.sort_unstable();
    severe.dedup();
    if severe.is_empty() { Ok(()) } else { Err(CommandFailure::incomplete(format!("found: {}", severe.join(", ")))) }
}

fn severity(limit: FailOn) -> Severity {
    match limit {
        FailOn::High => Severity::High,
        FailOn::Medium => Severity::Medium,
        FailOn::Low => Severity::Low,
    }
}

fn named(name: &str) -> Result<&'static str, CommandFailure> {
    let asked = name.replace('-', "_");
    let known = KINDS.iter().map(|k| k.name);
    kind_named(&asked).map(|k| k.name).ok_or_else(|| CommandFailure::usage(unknown("kind of finding", name, known)))
}

fn written(out: &mut dyn Write, finding: &Finding) -> std::io::Result<()> {
    let ink = output::ink();
    let severity = match finding.severity {
        Severity::High => ink.bad("high  "),
        Severity::Medium => ink.warn("medium"),
        Severity::Low => ink.faint("low   "),
    };
    writeln!(out, "{severity} {}: {}", ink.heading(finding.kind), finding.message)?;
    let examples: Vec<String> = finding.examples.iter().take(5).map(|e| SafeText::new(e).to_string()).collect();
    writeln!(out, "       {} {}", finding.entity.unwrap_or("for example"), examples.join(", "))?;
    writeln!(out, "       {}", SafeText::new(&finding.remedy))
}
