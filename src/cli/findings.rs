//! `findings`: lists errors and suspicious values as they are found, and mutes unwanted ones.

use std::io::Write;
use std::ops::ControlFlow;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::doing::login;
use super::{CommandFailure, Format, Session, output, progress, retain};
use crate::change;
use crate::change::findings::{FindingNews, FindingRequest, look};
use crate::config::{self, Kept as _};
use crate::memory::Entity;
use crate::memory::findings::{Finding, FindingKind, KINDS, Mute, Muted, Severity, kind_named};
use crate::memory::nearest::unknown;
use crate::store::Store;
use crate::ui::text::SafeText;

/// Lowest severity of a finding that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Severe ones only.
    High,
    /// Those of middle weight too.
    Medium,
    /// Any.
    Low,
}

/// Examples of each kind; many if a single kind is requested.
const EXAMPLES: usize = 10;
const EXAMPLES_OF_ONE: usize = 1_000;

/// Kinds that report data hidden from our role, which was not judged: they make a run fail whatever the severity.
const UNSEEN: [&str; 2] = ["unread_table", "hidden_rows"];

/// Findings to look for, or to leave out from now on.
#[derive(Debug, Clone, Args)]
pub struct Findings {
    /// This kind only, with up to 1,000 examples.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Exit with code 6 when a finding is at least this severe, or says what your role does not see; with 5 when
    /// nothing, or not the kind that is named, could be judged.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<FailOn>,
    #[command(subcommand)]
    pub command: Option<MuteCommand>,
}

/// Findings to leave out from now on, or to show again; the choice is kept in your state folder, not in the database.
#[derive(Debug, Clone, Subcommand)]
pub enum MuteCommand {
    /// Leave a kind of finding, or a row by its id, out of findings: `findings mute write_burst --reason 'load test'`.
    Mute {
        /// A kind, or a row's id.
        #[arg(value_name = "KIND|ID")]
        what: String,
        /// Reason why it needs no attention; shown in the list of mutes.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Person who mutes it [default: MNEMOSCOPE_ACTOR or the login name].
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
    /// Show a muted kind or row in findings again.
    Unmute {
        /// The kind, or the row's id.
        #[arg(value_name = "KIND|ID")]
        what: String,
    },
    /// List what is muted, and why.
    Muted,
}

/// Mutes, unmutes, or lists the mutes.
async fn mute(session: &Session<'_>, command: &MuteCommand) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let place = store.location();
    let known = Mute::load(place)?;
    let left = match command {
        MuteCommand::Muted => known,
        MuteCommand::Mute { what, reason, actor } => {
            if what.trim().is_empty() || reason.trim().is_empty() {
                return Err(CommandFailure::usage("name a kind or an id, and give a reason"));
            }
            let what = match named(what) {
                Ok(kind) => kind.to_owned(),
                Err(wrong) if !is_row(&store, what).await && !is_told(&store, what).await? => return Err(wrong),
                Err(_) => what.clone(),
            };
            let actor = actor.clone().filter(|a| !a.trim().is_empty()).unwrap_or_else(login);
            Mute { what, reason: reason.clone(), actor, at: change::now() }.keep(place)?
        }
        MuteCommand::Unmute { what } => {
            let what = named(what).map_or_else(|_| what.clone(), str::to_owned);
            if !known.iter().any(|mute| mute.what == what) {
                let names = known.iter().map(|mute| mute.what.as_str());
                return Err(CommandFailure::not_found(unknown("muted kind or id", &what, names)));
            }
            Mute::forget(place, &what)?
        }
    };
    let shown = muted_json(session, &left, &[]);
    output::rows(session.format(), &json!({ "muted": shown }), &shown, |out| {
        shown.iter().try_for_each(|mute| writeln!(out, "{}", SafeText::new(&words_of(mute))))?;
        if shown.is_empty() { writeln!(out, "nothing is muted") } else { Ok(()) }
    })
}

/// Builds the JSON of the mutes; reasons and actors, which may name people, are masked if values are.
fn muted_json(session: &Session<'_>, mutes: &[Mute], counts: &[(&str, u64)]) -> Vec<Value> {
    let mask = session.mask();
    let shown = |mute: &Mute| {
        let (mut reason, mut actor) = (json!(mute.reason), json!(mute.actor));
        if let Some(mask) = &mask {
            mask.unknown(&mut reason);
            actor = json!(mask.pseudonym("actor", &mute.actor));
        }
        let what = if kind_named(&mute.what).is_some() { "kind" } else { "id" };
        let mut value = json!({ what: mute.what, "reason": reason, "actor": actor, "at": mute.at });
        if let Some((_, count)) = counts.iter().find(|(kind, _)| *kind == mute.what) {
            value["count"] = json!(count);
        }
        value
    };
    mutes.iter().map(shown).collect()
}

fn words_of(mute: &Value) -> String {
    let text = |name: &str| mute[name].as_str().unwrap_or_default();
    let what = mute["kind"].as_str().or(mute["id"].as_str()).unwrap_or_default();
    let count = mute["count"].as_u64().map(|count| format!(" ({count} found)")).unwrap_or_default();
    format!("{what}{count}: {} ({}, {})", text("reason"), text("actor"), text("at"))
}

/// Lists every kind of finding with its severity and meaning, for the help.
pub fn kinds() -> String {
    let line = |kind: &FindingKind| format!("  {} ({}): {}", kind.name, kind.severity.word(), kind.meaning());
    let lines: Vec<String> = KINDS.iter().map(line).collect();
    format!("Kinds of findings:\n{}", lines.join("\n"))
}

/// Looks for findings and prints them: one line each as they are found in JSON lines, else all of them, worst first.
///
/// # Errors
/// Code 2 for an unknown kind; with `fail_on`, code 6 if something as severe is found, and code 5 if nothing, or not
/// the named kind, could be judged; else an error of the database.
pub(super) async fn run(session: &Session<'_>, asked: &Findings) -> Result<(), CommandFailure> {
    if let Some(command) = &asked.command {
        if asked.kind.is_some() || asked.fail_on.is_some() {
            return Err(CommandFailure::usage(
                "--kind and --fail-on are for listing findings: leave them out, or the word after them",
            ));
        }
        return mute(session, command).await;
    }
    let fail_on = asked.fail_on;
    let kind = asked.kind.as_deref().map(named).transpose()?;
    let store = session.store().await?;
    let mutes = Mute::load(store.location())?;
    let examples = if kind.is_some() { EXAMPLES_OF_ONE } else { EXAMPLES };
    let retention = retain::usual().map(|file| retain::read(&file)).transpose()?;
    let (muted, state) = (Muted::of(&mutes), config::state_folder());
    let wanted = FindingRequest { kind, examples, brief: None, muted, retention, state };
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let format = session.format();
    store.walks().expect_all().await?;
    let (mut found, mut skipped, mut severe) = (Vec::new(), Vec::new(), Vec::new());
    let mut failed = None;
    let mut told = |told: FindingNews| {
        match told {
            FindingNews::Found(mut finding) => {
                finding.remedy = store.invocation().before(&finding.remedy);
                let fails = |limit| finding.severity <= severity(limit) || UNSEEN.contains(&finding.kind);
                if fail_on.is_some_and(fails) {
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
            FindingNews::Muted(kind, count) => counts.push((kind, count)),
            FindingNews::Read(_, what) => progress::doing(what),
            FindingNews::Left(_) => {}
        }
        ControlFlow::Continue(())
    };
    let outcome = look(&store, &wanted, &mut told).await;
    outcome?;
    if let Some(error) = failed.filter(|_| severe.is_empty()) {
        return Err(error);
    }
    let is_unjudged = store.recognised().sources.iter().all(|source| source.entity.is_of_trail());
    found.sort_by_key(|f: &Finding| (f.severity, KINDS.iter().position(|k| k.name == f.kind), f.entity));
    let muted = muted_json(session, &mutes, &counts);
    let printed = match format {
        Format::Jsonl => Ok(()),
        Format::Json => output::json(&json!({ "findings": found, "not_applicable": skipped, "muted": muted })),
        Format::Csv => output::csv_table(&found.iter().map(|finding| json!(finding)).collect::<Vec<_>>()),
        Format::Table => output::piped(|out| {
            for finding in &found {
                written(out, finding)?;
            }
            if found.is_empty() && is_unjudged {
                writeln!(out, "nothing could be judged: {}", SafeText::new(&why_unjudged(&store).0))?;
            } else if found.is_empty() {
                writeln!(out, "nothing was found")?;
            }
            for mute in &muted {
                writeln!(out, "{}", output::ink().faint(SafeText::new(&format!("muted: {}", words_of(mute)))))?;
            }
            for kind in &skipped {
                writeln!(out, "not looked for: {}: {}", kind.kind, SafeText::new(&kind.reason))?;
            }
            Ok(())
        }),
    };
    if fail_on.is_some() && is_unjudged {
        return Err(unjudged(&store));
    }
    if let (Some(_), Some(kind), true, Some(part)) = (fail_on, kind, severe.is_empty(), skipped.first()) {
        return Err(CommandFailure::refused(format!("{kind} could not be judged: {}", part.reason)));
    }
    severe.sort_unstable();
    severe.dedup();
    // The exit code reports findings even if the answer could not be printed.
    if severe.is_empty() { printed } else { Err(CommandFailure::incomplete(format!("found: {}", severe.join(", ")))) }
}

/// The failure if there is nothing to judge: no layout fits, or no table of the memory can be read. The trail alone is
/// not a memory.
fn unjudged(store: &Store) -> CommandFailure {
    let (reason, remedy) = why_unjudged(store);
    let message = format!("{}: nothing could be judged: {reason}", store.location());
    CommandFailure { remedy, ..CommandFailure::refused(message) }
}

/// The reason why there is nothing to judge, and a remedy.
fn why_unjudged(store: &Store) -> (String, Option<String>) {
    let mut withheld = store.recognised().withheld.iter().filter(|part| !part.entity.is_of_trail());
    match withheld.next() {
        Some(part) => (part.reason.clone(), Some(part.remedy.clone())),
        None => store.why_missing(Entity::Episode),
    }
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
    kind_named(&asked).map(|k| k.name).ok_or_else(|| CommandFailure {
        remedy: Some("`mnemoscope findings --help` lists every kind".to_owned()),
        ..CommandFailure::usage(unknown("kind of finding", name, known))
    })
}

async fn is_row(store: &Store, id: &str) -> bool {
    for entity in Entity::ALL {
        if store.row(*entity, id).await.is_ok_and(|row| row.is_some()) {
            return true;
        }
    }
    false
}

/// Whether a finding has this name, as findings also name tables and other things.
async fn is_told(store: &Store, what: &str) -> Result<bool, CommandFailure> {
    let retention = retain::usual().map(|file| retain::read(&file)).transpose()?;
    let state = config::state_folder();
    let wanted = FindingRequest { examples: EXAMPLES_OF_ONE, retention, state, ..FindingRequest::default() };
    let mut is_told = false;
    let mut told = |news: FindingNews| {
        if let FindingNews::Found(finding) = news {
            is_told |= finding.examples.iter().any(|example| example == what);
        }
        if is_told { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    look(store, &wanted, &mut told).await?;
    Ok(is_told)
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
