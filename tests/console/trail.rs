//! Checking the audit trail in the console: the chain is walked, and is whole or broken.

use mnemoscope::change::plan::trail::{AuditFault, AuditVerdict};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};

use super::fake::{Console, oldest_asked, world};

fn asked(console: &mut Console) -> Ticket {
    oldest_asked(console, |request| *request == Request::VerifyTrail).0
}

fn verdict(faults: Vec<AuditFault>) -> AuditVerdict {
    let notes = vec!["entries after 17, the last anchor, could be removed unnoticed".to_owned()];
    AuditVerdict {
        ok: faults.is_empty(),
        entries: 21,
        database_id: "db-1".into(),
        head: Some(21),
        anchored: Some(17),
        redacted: 2,
        faults,
        notes,
    }
}

fn fault(seq: i64, kind: &'static str) -> AuditFault {
    AuditFault { kind, seq, message: format!("entry {seq} was changed after it was written") }
}

#[test]
fn a_whole_trail_is_green_after_it_was_walked() {
    let mut console = Console::new(world(), 120, 30);
    console.press("C");
    let ticket = asked(&mut console);
    console.reply(ticket, Reply::WalkingTrail(12_000));
    console.shows("12,000 entries read");
    console.reply(ticket, Reply::TrailVerified(Ok(Box::new(verdict(Vec::new())))));
    console.shows("the chain is whole");
    console.shows("entry 17");
    console.shows("could be removed unnoticed");
    console.hides("what is wrong");
    console.press("y c");
    let line = "mnemoscope -d memory/made-up.db audit verify";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
    console.press("r");
    asked(&mut console);
    console.shows("the chain is whole");
}

#[test]
fn a_broken_link_is_shown_with_the_entry_where_it_breaks() {
    let mut console = Console::new(world(), 120, 30);
    console.press("C");
    let ticket = asked(&mut console);
    let faults = vec![fault(4, "edited_entry"), fault(9, "wrong_previous")];
    console.reply(ticket, Reply::TrailVerified(Ok(Box::new(verdict(faults)))));
    console.shows("the chain is broken at entry 4");
    console.shows("entry 9 was changed after it was written");
    console.press("j j j k");
    console.shows("edited entry");
}

#[test]
fn without_a_trail_the_card_says_what_would_help() {
    let mut console = Console::new(world(), 120, 30);
    console.press("C");
    let ticket = asked(&mut console);
    let failure = RequestFailure::absent("No audit trail yet", "there is no audit trail yet", "U adds it");
    console.reply(ticket, Reply::TrailVerified(Err(failure)));
    console.shows("there is no audit trail yet");
    console.hides("try again");
    console.hides("✗");
    console.press("esc");
    console.shows("home");
}
