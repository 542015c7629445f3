//! Messages for users who end the console during a write: the running operation, and its result.

use crate::console::Model;
use crate::console::core::{AppliedPlan, Refusal, Reply, Ticket};

/// Describes the result of a request that was answered after the last frame; `None` if it wrote nothing.
pub fn outcome(model: &mut Model, ticket: Ticket, mut reply: Reply) -> Option<String> {
    model.context.masking.inbound(&mut reply);
    match reply {
        Reply::Applied(_, applied) => {
            let (title, changes) = change(model, ticket)?;
            Some(applied_words(&title, changes, applied))
        }
        Reply::Migrated(Ok((names, _))) => Some(format!("applied: {}", names.join(", "))),
        Reply::Erased(Ok(outcome)) => Some(format!("the erasure ended {}", outcome.status)),
        Reply::Migrated(Err(failure)) | Reply::Erased(Err(failure)) => {
            Some(format!("{}: {}", failure.what, failure.message))
        }
        _ => None,
    }
}

/// Says that a write was interrupted at the end, and where its result can be checked; `is_begun` if it may have
/// committed something.
pub fn broken_off(model: &Model, ticket: Ticket, is_begun: bool) -> String {
    let cx = &model.context;
    let line = |words: &[&str]| cx.opened.invocation.line(words.iter().copied());
    let still = "still under way when the console ended";
    match change(model, ticket) {
        Some((title, _)) if !is_begun => format!("{title}: not done: it was {still}"),
        Some((title, 1)) => {
            let listed = line(&["audit", "list"]);
            format!("{title}: {still}, so it is unknown whether it was done: `{listed}` shows what was")
        }
        Some((title, _)) => {
            let listed = line(&["audit", "list"]);
            format!("{title}: {still}, so it is unknown how many of these were done: `{listed}` shows which")
        }
        None if cx.changing.asking == Some(ticket) => {
            format!("the migration: {still}, so it is unknown whether it was done: `{}` shows that", line(&["migrate"]))
        }
        None => format!("the erasure: {still}: `{}` resumes it", line(&["purge", "PERSON", "--resume"])),
    }
}

/// The title of the change that the request applies, and how many changes it consists of.
fn change(model: &Model, ticket: Ticket) -> Option<(String, usize)> {
    let pending = model.context.changing.pending.as_ref().filter(|pending| pending.ticket == ticket)?;
    Some((model.context.in_title(&pending.proposal.title()), pending.proposal.changes().len()))
}

fn applied_words(title: &str, changes: usize, applied: AppliedPlan) -> String {
    let made = applied.receipts.len();
    let done = match changes {
        1 => format!("{title}: {}", if made == 1 { "done" } else { "not done" }),
        _ => format!("{title}: {made} of {changes} changes made"),
    };
    match applied.refusal {
        None => done,
        Some(Refusal::Conflict { message, .. }) => format!("{done}: {message}"),
        Some(Refusal::Failed(failure)) if changes == 1 => format!("{done}: {}", failure.message),
        Some(Refusal::Failed(failure)) => format!("{done}; {}: {}", failure.what, failure.message),
    }
}
