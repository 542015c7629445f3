//! `findings`: what is wrong or suspicious, told as it is found.

use std::io::{IsTerminal as _, Write};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::args::Format;
use super::{Failure, Session, output};
use crate::change::findings::{Told, Wanted, look};
use crate::memory::findings::{Finding, KINDS, kind_named};
use crate::memory::nearest::nearest;
use crate::ui::text::SafeText;

/// Examples of each kind; many where one kind is asked for.
const EXAMPLES: usize = 10;
const EXAMPLES_OF_ONE: usize = 1_000;

/// Looks for findings and prints them: a line each as it is found in JSON lines, else all of them, the worst first.
///
/// # Errors
/// Code 2 for an unknown kind; else what the database says.
pub(super) async fn run(session: &Session<'_>, kind: Option<&str>) -> Result<(), Failure> {
    let kind = kind.map(named).transpose()?;
    let store = session.store().await?;
    let wanted = Wanted { kind, examples: if kind.is_some() { EXAMPLES_OF_ONE } else { EXAMPLES }, brief: None };
    let format = session.format();
    let progress = std::io::stderr().is_terminal() && !session.global().no_progress && !session.global().quiet;
    let prefix = format!("mnemoscope -d {} ", quoted(store.location()));
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let mut failed = None;
    let mut told = |told: Told| {
        match told {
            Told::Found(mut finding) => {
                finding.remedy.insert_str(0, &prefix);
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
            Told::NotApplicable(kind) => skipped.push(kind),
            Told::Read(rows, what) if progress => {
                let _ = write!(std::io::stderr(), "\r{rows} rows read, now {what}\x1b[K");
            }
            Told::Read(..) | Told::Left(_) => {}
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
        Format::Jsonl => Ok(()),
        Format::Json => output::json(&json!({ "findings": found, "not_applicable": skipped })),
        Format::Csv => output::csv_table(&found.iter().map(|finding| json!(finding)).collect::<Vec<_>>()),
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
        }),
    }
}

fn named(name: &str) -> Result<&'static str, Failure> {
    let asked = name.replace('-', "_");
    kind_named(&asked).map(|k| k.name).ok_or_else(|| {
        let near = nearest(&asked, KINDS.iter().map(|k| k.name));
        let hint = near.map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
        let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        Failure::usage(format!("there is no kind of finding `{name}`; {hint}known are {}", known.join(", ")))
    })
}

fn written(out: &mut dyn Write, finding: &Finding) -> std::io::Result<()> {
    let severity = serde_json::to_value(finding.severity).unwrap_or(Value::Null);
    writeln!(out, "{:<6} {}: {}", severity.as_str().unwrap_or_default(), finding.kind, finding.message)?;
    let examples: Vec<String> = finding.examples.iter().take(5).map(|e| SafeText::new(e).to_string()).collect();
    writeln!(out, "       {} {}", finding.entity.unwrap_or("for example"), examples.join(", "))?;
    writeln!(out, "       {}", SafeText::new(&finding.remedy))
}

/// A word as a shell takes it whole.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
