//! Equivalent command lines, which turn a session into a runbook.

use super::context::Context;
use super::proposal::Proposal;
pub use crate::memory::invocation::quoted;

/// Words, quoted for a shell.
pub fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(quoted).to_vec()
}

/// The command lines equivalent to a proposal, one for each change.
pub fn change_line(cx: &Context, proposal: &Proposal, reason: Option<&str>) -> String {
    let mut proposal = proposal.clone();
    for person in proposal.persons_mut() {
        cx.masking.real(person);
    }
    let lines = proposal.commands().into_iter().map(|(command, own_reason)| {
        let mut words = vec![cx.opened.invocation.line([])];
        words.extend(command.iter().map(|word| quoted(word)));
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()).or(own_reason) {
            words.extend(["--reason".to_owned(), quoted(reason.trim())]);
        }
        words.push("--apply".to_owned());
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The command line that resumes a job.
pub fn resume_line(cx: &Context, name: &str) -> String {
    cx.opened.invocation.line(["backfill", "resume", name])
}

/// The command line that applies the pending migrations.
pub fn migrate_line(cx: &Context, optional: &[String]) -> String {
    let optional = optional.iter().flat_map(|option| ["--optional", option]);
    cx.opened.invocation.line(["migrate", "--apply"].into_iter().chain(optional))
}
