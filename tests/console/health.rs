//! Findings and migrations on screen: told as they come, followed, mended, applied after a confirmation.

use mnemoscope::app::findings::News;
use mnemoscope::app::migrations::{Item, Listed, Standing};
use mnemoscope::app::{Effect, Message, Ticket};
use mnemoscope::memory::findings::{Finding, NotApplicable, Severity};

use super::fake::{Console, world};

fn finding(
    kind: &'static str,
    severity: Severity,
    entity: Option<&'static str>,
    ids: &[&str],
    remedy: &str,
) -> Finding {
    Finding {
        kind,
        severity,
        entity,
        count: ids.len() as u64,
        message: format!("{} of them", ids.len()),
        examples: ids.iter().map(|id| (*id).to_owned()).collect(),
        remedy: remedy.to_owned(),
    }
}

fn looking(width: u16, height: u16) -> (Console, Ticket) {
    let mut console = Console::new(world(), width, height);
    console.press("F");
    let Some(Effect::Look(ticket)) = console.asked.pop() else { panic!("{:?}", console.asked) };
    (console, ticket)
}

fn tell(console: &mut Console, ticket: Ticket, news: News) {
    console.tell(Message::Finding(ticket, Ok(news)));
}

fn found(console: &mut Console, ticket: Ticket) {
    let low = finding("repeated_id", Severity::Low, Some("episode"), &["ep-1", "ep-2"], "show episode ep-1");
    let high = finding("chain_cycle", Severity::High, Some("episode"), &["ep-3", "ep-4"], "unlink ep-3");
    tell(console, ticket, News::Found(Box::new(low)));
    tell(console, ticket, News::Read(5_000, "episode"));
    console.shows("5,000 rows read");
    tell(console, ticket, News::Found(Box::new(high)));
}

#[test]
fn findings_are_told_as_they_come_the_worst_first() {
    let (mut console, ticket) = looking(160, 50);
    console.shows("Looking");
    found(&mut console, ticket);
    let skipped = NotApplicable { kind: "over_window", reason: "there is no case bank".to_owned() };
    tell(&mut console, ticket, News::NotApplicable(skipped));
    tell(&mut console, ticket, News::Done);
    console.shows("chain cycle");
    console.shows("there is no case bank");
    console.press("k y c");
    let line = "mnemoscope -d memory/made-up.db unlink ep-3";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
}

#[test]
fn news_of_an_older_look_change_nothing() {
    let (mut console, ticket) = looking(100, 30);
    console.press("r");
    found_nothing(&mut console, ticket);
    assert!(console.asked.iter().any(|effect| matches!(effect, Effect::Look(_))), "{:?}", console.asked);
}

fn found_nothing(console: &mut Console, ticket: Ticket) {
    let late = finding("secret", Severity::High, Some("episode"), &["ep-1"], "backfill secrets");
    tell(console, ticket, News::Found(Box::new(late)));
    console.shows("Looking");
}

#[test]
fn what_the_console_cannot_mend_says_which_command_does() {
    let (mut console, ticket) = looking(160, 50);
    let secret = finding("secret", Severity::High, Some("episode"), &["ep-1"], "backfill secrets");
    tell(&mut console, ticket, News::Found(Box::new(secret)));
    console.press("x");
    console.shows("backfill secrets: y c copies the command");
}

fn item(name: &str, standing: Standing) -> Item {
    Item {
        name: name.to_owned(),
        standing,
        effect: "canvas queries are quick".to_owned(),
        lock_risk: "none worth naming".to_owned(),
        sql: "CREATE INDEX ix ON episodes (agent_id)".to_owned(),
        steps: vec![("index of episodes".to_owned(), false)],
        note: None,
        diff: String::new(),
        option: (standing == Standing::Optional).then(|| "row-level-security".to_owned()),
    }
}

#[test]
fn migrations_are_shown_and_applied_after_a_confirmation() {
    for (width, height) in [(180, 48), (100, 30), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        console.press("D");
        let Some(Effect::LoadMigrations(ticket)) = console.asked.pop() else { panic!("{:?}", console.asked) };
        let items = vec![item("atom/0001_index", Standing::Pending), item("atom/0002_rls", Standing::Optional)];
        let listed = Listed { items, layouts: vec!["atom".to_owned()], foreign: Vec::new() };
        console.tell(Message::Migrations(ticket, Ok(Box::new(listed))));
        console.shows("atom/0001_index");
        console.shows("canvas queries");
        console.press("a");
        console.shows("CREATE INDEX ix");
        console.wait();
        console.press("A");
        assert!(console.asked.iter().any(|effect| matches!(effect, Effect::Migrate(_))), "{:?}", console.asked);
    }
}

#[test]
fn nothing_is_applied_on_top_of_drift() {
    let mut console = Console::new(world(), 160, 50);
    console.press("D");
    let Some(Effect::LoadMigrations(ticket)) = console.asked.pop() else { panic!("{:?}", console.asked) };
    let drifted = Item { diff: "-old line\n+new line".to_owned(), ..item("0001_audit", Standing::Drifted) };
    let listed = Listed { items: vec![drifted], ..Listed::default() };
    console.tell(Message::Migrations(ticket, Ok(Box::new(listed))));
    console.shows("+new line");
    console.press("a");
    console.shows("not what it was");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Migrate(_))));
}
