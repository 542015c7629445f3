//! Replay: a topic or what is around an episode in order of time, with parents that are suggested and linked by a plan.

use mnemoscope::change::operation::Operation;
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::screens::replay::{ReplayStep, ReplaySubject, ReplayedTopic};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::recall::parents::Suggestion;
use serde_json::json;

use super::changes::{planned, unlocked};
use super::fake::{Console, row, world};
use super::looks::{SIZES, picture};

#[track_caller]
fn asked(console: &mut Console) -> (Ticket, ReplaySubject, usize) {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::Replay { .. })));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::Replay { about, limit })) => (ticket, about, limit),
        _ => panic!("nothing is replayed: {:?}", console.asked),
    }
}

fn episode(id: &str, title: &str, day: u32, outcome: &str, parent: Option<&str>) -> Row {
    row(
        Entity::Episode,
        &[
            ("id", json!(id)),
            ("title", json!(title)),
            ("agent_id", json!("agent-books")),
            ("user_id", json!("ada@example.org")),
            ("topic", json!("invoices")),
            ("summary", json!("What was missing was found in the archive, and booked.")),
            ("outcome", json!(outcome)),
            ("parent_id", json!(parent)),
            ("utility", json!(0.6)),
            ("started_at", json!(format!("2026-02-{day:02}T09:00:00.000000Z"))),
            ("ended_at", json!(format!("2026-02-{day:02}T10:30:00.000000Z"))),
        ],
    )
}

fn told() -> ReplayedTopic {
    let step = |row: Row| ReplayStep { row, relevance: Some(0.75), parents: Vec::new() };
    let suggestion = Suggestion {
        id: "ep-2".into(),
        title: Some("Book the missing invoices".into()),
        ended_at: "2026-02-03T10:30:00.000000Z".into(),
        hours_before: 22.5,
        cosine: 0.912,
        evidence: "same agent; ended 22.5 h before it started (48 h at most); cosine 0.9120 > 0.85".into(),
    };
    let suggested =
        ReplayStep { parents: vec![suggestion], ..step(episode("ep-3", "Pay the invoices", 4, "failure", None)) };
    ReplayedTopic {
        topic: "invoices".into(),
        steps: vec![
            step(episode("ep-1", "Reconcile the October invoices", 1, "partial", None)),
            step(episode("ep-2", "Book the missing invoices", 3, "success", Some("ep-1"))),
            suggested,
            step(episode("ep-4", "Ask the \u{1b}[31mtax office", 20, "success", Some("ep-0"))),
        ],
        used: "keyword".into(),
        candidates: 1_234,
        more: 0,
    }
}

/// A console that shows a topic.
fn replayed(mut console: Console) -> Console {
    console.press("V");
    console.shows("Topic to replay");
    console.press("'invoices' enter");
    let (ticket, about, limit) = asked(&mut console);
    assert_eq!((about, limit), (ReplaySubject::Topic("invoices".into()), 10));
    console.shows("Reading");
    console.reply(ticket, Reply::Replayed(Ok(Box::new(told()))));
    console
}

#[test]
fn a_topic_is_shown_as_it_happened() {
    let mut console = replayed(Console::new(world(), 160, 45));
    console.shows("4 of 1,234 episodes, by keyword");
    console.shows("continues 1");
    console.shows("continues ep-0, which is not among these");
    console.shows("may continue 2  cosine 0.912");
    console.shows("later");
    console.hides("\u{1b}[31m");
    console.press("j enter");
    assert_eq!(console.id(), "ep-2");
    console.press("[");
    console.shows("continues 1");
}

#[test]
fn a_suggestion_is_linked_by_a_plan_and_led_to() {
    let mut console = replayed(unlocked(160, 45));
    console.press("j j j");
    console.shows("suggested parent");
    console.shows("same agent; ended 22.5 h");
    console.press("c l");
    let (_, operation) = planned(&mut console);
    assert_eq!(operation, Operation::Link { child: "ep-3".into(), parent: "ep-2".into() });
    let mut console = replayed(unlocked(160, 45));
    console.press("j j j enter");
    assert_eq!(console.id(), "ep-2");
    // On an episode itself the parent is chosen.
    let mut console = replayed(unlocked(160, 45));
    console.press("j c l");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))));
}

#[test]
fn an_episode_is_replayed_with_what_is_around_it() {
    let mut console = Console::new(world(), 160, 45);
    console.press("2 V");
    let (ticket, about, _) = asked(&mut console);
    assert_eq!(about, ReplaySubject::Episode("ep-2".into()));
    console.reply(ticket, Reply::Replayed(Ok(Box::new(told()))));
    console.shows("replay around an episode of invoices");
    // It is the selected one among them.
    assert_eq!(console.id(), "ep-2");
    console.press("y c");
    let copied = console
        .asked
        .iter()
        .any(|e| matches!(e, Effect::Copy(_, line) if line.contains("chain ep-2 --suggest-parents")));
    assert!(copied, "{:?}", console.asked);
}

#[test]
fn more_and_fewer_and_another_topic_ask_anew() {
    let mut console = replayed(Console::new(world(), 160, 45));
    console.press("+");
    let (first, _, limit) = asked(&mut console);
    assert_eq!(limit, 20);
    console.press("-");
    let (_, _, limit) = asked(&mut console);
    assert_eq!(limit, 10);
    console.reply(
        first,
        Reply::Replayed(Err(RequestFailure::new("The topic was not replayed", "too late", "never mind"))),
    );
    console.hides("too late");
    console.press("/ ctrl-u 'stock' enter");
    let (ticket, about, _) = asked(&mut console);
    assert_eq!(about, ReplaySubject::Topic("stock".into()));
    console.reply(
        ticket,
        Reply::Replayed(Ok(Box::new(ReplayedTopic { topic: "stock".into(), ..ReplayedTopic::default() }))),
    );
    console.shows("No episode matches");
    console.press("enter");
    console.shows("Topic to replay");
}

#[test]
fn masked_nobody_is_named_and_titles_of_suggestions_are_left_out() {
    let mut console = replayed(Console::masked(world(), 160, 45));
    console.press("j j j");
    console.hides("ada@example.org");
    console.hides("Book the missing invoices");
}

#[test]
fn pictures() {
    for (width, height) in SIZES {
        let mut console = replayed(Console::new(world(), width, height));
        console.press("j j j");
        let text = picture(&console.draw());
        insta::assert_snapshot!(format!("replay-{width}x{height}"), text);
    }
}
