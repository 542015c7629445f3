//! Findings and migrations on screen: told as they come, followed, fixed, applied after a confirmation.

use mnemoscope::change::Operation;
use mnemoscope::change::plan::migration::{PendingMigration, StepState};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::screens::findings::LookNews;
use mnemoscope::console::screens::migrations::{MigrationItem, MigrationList, MigrationStanding};
use mnemoscope::memory::Entity;
use mnemoscope::memory::findings::{EarlierLook, Finding, Mute, NotApplicable, OffendingQuote, Severity};

use super::changes::unlock;
use super::fake::{Console, asked, world};

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
        together: ids.iter().map(|id| (*id).to_owned()).collect(),
    }
}

fn looking(width: u16, height: u16) -> (Console, Ticket) {
    // What the first screen began continues.
    let (mut console, ticket) = home(width, height);
    console.press("F");
    (console, ticket)
}

fn tell(console: &mut Console, ticket: Ticket, news: LookNews) {
    console.reply(ticket, Reply::Finding(Ok(news)));
}

fn found(console: &mut Console, ticket: Ticket) {
    let low = finding("repeated_id", Severity::Low, Some("episode"), &["ep-1", "ep-2"], "show episode ep-1");
    let high = finding("chain_cycle", Severity::High, Some("episode"), &["ep-3", "ep-4"], "unlink ep-3");
    tell(console, ticket, LookNews::Found(Box::new(low)));
    tell(console, ticket, LookNews::Read(5_000, "episode"));
    console.shows("5,000 rows read");
    tell(console, ticket, LookNews::Found(Box::new(high)));
}

#[test]
fn findings_are_told_as_they_come_the_worst_first() {
    let (mut console, ticket) = looking(160, 50);
    console.shows("Looking");
    found(&mut console, ticket);
    let skipped = NotApplicable { kind: "over_window", reason: "there is no case bank".to_owned() };
    tell(&mut console, ticket, LookNews::NotApplicable(skipped));
    tell(&mut console, ticket, LookNews::Done);
    console.shows("there is no case bank");
    console.press("k");
    console.shows("chain cycle");
    console.press("y c");
    let line = "mnemoscope -d memory/made-up.db findings --kind chain_cycle";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
}

#[test]
fn news_of_an_older_look_change_nothing() {
    let (mut console, ticket) = looking(100, 30);
    console.press("r");
    found_nothing(&mut console, ticket);
    assert!(
        console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Look { .. }))),
        "{:?}",
        console.asked
    );
}

fn found_nothing(console: &mut Console, ticket: Ticket) {
    let late = finding("secret", Severity::High, Some("episode"), &["ep-1"], "backfill secrets");
    tell(console, ticket, LookNews::Found(Box::new(late)));
    console.shows("Looking");
}

#[test]
fn what_the_console_cannot_mend_says_which_command_does() {
    let (mut console, ticket) = looking(160, 50);
    let fault = finding("audit_break", Severity::High, None, &["entry 3"], "audit verify");
    tell(&mut console, ticket, LookNews::Found(Box::new(fault)));
    console.press("x");
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some("audit trail"));
    console.press("[");
    let unread = finding("hidden_rows", Severity::High, None, &["episodes"], "status");
    let Some(Effect::Ask(ticket, Request::Look { .. })) =
        console.asked.iter().rev().find(|effect| matches!(effect, Effect::Ask(_, Request::Look { .. }))).cloned()
    else {
        panic!("{:?}", console.asked)
    };
    tell(&mut console, ticket, LookNews::Found(Box::new(unread)));
    console.press("j");
    console.shows("x looks into it: status");
    console.press("x");
    console.shows("what it holds");
}

#[test]
fn copies_of_a_memory_lie_side_by_side_and_become_one() {
    let (mut console, ticket) = looking(160, 50);
    let ids = ["dr-1", "dr-2", "dr-3"];
    let copies = finding("near_duplicate_memory", Severity::Low, Some("memory"), &ids, "merge dr-3 dr-1 dr-2");
    tell(&mut console, ticket, LookNews::Found(Box::new(copies)));
    console.model.context.changing.unlocked = true;
    console.press("x");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::Plan(_)));
    let merge = Operation::Merge { memory: "dr-3".to_owned(), copies: vec!["dr-1".to_owned(), "dr-2".to_owned()] };
    assert!(format!("{request:?}").contains(&format!("{merge:?}")), "{request:?}");
    console.press("esc enter");
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some("two memories compared"));
}

#[test]
fn findings_of_a_kind_stand_together_and_quote_what_offends() {
    let (mut console, ticket) = looking(160, 50);
    let of = |entity, ids: &[&str]| finding("secret", Severity::High, Some(entity), ids, "backfill secrets");
    tell(&mut console, ticket, LookNews::Found(Box::new(of("episode", &["ep-1", "ep-2"]))));
    tell(&mut console, ticket, LookNews::Found(Box::new(of("memory", &["dr-1"]))));
    // While rows are read, more may be found.
    console.shows("3+ rows hold secrets");
    console.shows("Reconcile the October invoices");
    console.shows("memory");
    console.wait();
    let (quoted, request) = asked(&mut console, |request| matches!(request, Request::Quote(..)));
    assert_eq!(request, Request::Quote("secret", Entity::Episode, "ep-1".to_owned()));
    let quote = OffendingQuote {
        column: "summary".to_owned(),
        before: "use password=".to_owned(),
        hit: "hunter2!".to_owned(),
        after: " there".to_owned(),
    };
    console.reply(quoted, Reply::Quoted(Ok(Some(quote))));
    console.shows("use password=hunter2! there");
    // The examples take the keys, and the quote is that of the selected one.
    console.press("tab G");
    console.hides("hunter2!");
    console.press("enter");
    assert_eq!(console.selected(), Some((Entity::Memory, "dr-1".to_owned())));
}

#[test]
fn a_kind_or_a_row_is_muted_for_a_reason_and_heard_of_again() {
    let (mut console, ticket) = looking(160, 50);
    let (mutes, _) = asked(&mut console, |request| *request == Request::LoadMutes);
    console.reply(mutes, Reply::Mutes(Ok(Vec::new())));
    found(&mut console, ticket);
    console.press("k m enter");
    console.shows("say why nobody needs to see it");
    console.press("'load test' enter");
    let (muting, request) = asked(&mut console, |request| matches!(request, Request::Mute(..)));
    assert_eq!(request, Request::Mute("chain_cycle".to_owned(), "load test".to_owned()));
    let mute = Mute {
        what: "chain_cycle".to_owned(),
        reason: "load test".to_owned(),
        actor: "ann".to_owned(),
        at: "2026-02-04T10:00:00.000000Z".to_owned(),
    };
    console.reply(muting, Reply::Mutes(Ok(vec![mute])));
    console.shows("chain cycle: load test");
    // What is muted is left out from the beginning: it is looked again.
    let (again, _) = asked(&mut console, |request| matches!(request, Request::Look { .. }));
    tell(&mut console, again, LookNews::Done);
    console.shows("chain cycle is muted");
    console.press("m");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::Unmute(_)));
    assert_eq!(request, Request::Unmute("chain_cycle".to_owned()));
}

#[test]
fn a_single_row_is_muted_where_the_examples_have_the_keys() {
    let (mut console, ticket) = looking(100, 30);
    found(&mut console, ticket);
    console.press("k tab j m 'known' enter");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::Mute(..)));
    assert_eq!(request, Request::Mute("ep-4".to_owned(), "known".to_owned()));
}

#[test]
fn what_changed_since_the_last_look_is_told() {
    let (mut console, ticket) = looking(160, 50);
    let counts = [("repeated_id".to_owned(), 5)].into_iter().collect();
    let at = "2026-02-02T10:00:00.000000Z".to_owned();
    console.model.context.opened.found_before = Some(EarlierLook { at, counts });
    found(&mut console, ticket);
    console.shows("new");
    console.hides(" -3 ");
    tell(&mut console, ticket, LookNews::Done);
    console.shows(" -3 ");
}

fn item(name: &str, standing: MigrationStanding) -> MigrationItem {
    MigrationItem {
        migration: PendingMigration {
            name: name.to_owned(),
            sql: "CREATE INDEX ix ON episodes (agent_id)".to_owned(),
            lock_risk: "none worth naming".to_owned(),
            effect: "canvas queries are quick".to_owned(),
            steps: vec![StepState { name: "index of episodes".to_owned(), sql: String::new(), done: false }],
            ..PendingMigration::default()
        },
        standing,
        note: None,
        diff: String::new(),
        option: (standing == MigrationStanding::Optional).then(|| "row-level-security".to_owned()),
    }
}

#[test]
fn migrations_are_shown_and_applied_after_a_confirmation() {
    for (width, height) in [(180, 48), (100, 30), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        unlock(&mut console);
        console.press("D");
        let Some(Effect::Ask(ticket, Request::LoadMigrations)) = console.asked.pop() else {
            panic!("{:?}", console.asked)
        };
        let items = vec![
            item("atom/0001_index", MigrationStanding::Pending),
            item("atom/0002_rls", MigrationStanding::Optional),
        ];
        let listed = MigrationList { items, layouts: vec!["atom".to_owned()], foreign: Vec::new() };
        console.reply(ticket, Reply::Migrations(Ok(Box::new(listed))));
        console.shows("atom/0001_index");
        console.shows("canvas queries");
        console.press("a");
        console.shows("CREATE INDEX ix");
        console.wait();
        console.press("A");
        assert!(
            console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Migrate(..)))),
            "{:?}",
            console.asked
        );
    }
}

#[test]
fn nothing_is_applied_on_top_of_drift() {
    let mut console = Console::new(world(), 160, 50);
    unlock(&mut console);
    console.press("D");
    let Some(Effect::Ask(ticket, Request::LoadMigrations)) = console.asked.pop() else { panic!("{:?}", console.asked) };
    let drifted =
        MigrationItem { diff: "-old line\n+new line".to_owned(), ..item("0001_audit", MigrationStanding::Drifted) };
    let listed = MigrationList { items: vec![drifted], ..MigrationList::default() };
    console.reply(ticket, Reply::Migrations(Ok(Box::new(listed))));
    console.shows("+new line");
    console.press("a");
    console.shows("has changed");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Migrate(..)))));
}

/// The first screen with its look under way.
fn home(width: u16, height: u16) -> (Console, Ticket) {
    let mut console = Console::new(world(), width, height);
    console.looked = true;
    console.press("r");
    let Some(Effect::Ask(ticket, Request::Look { brief: true })) = console.asked.pop() else {
        panic!("{:?}", console.asked)
    };
    (console, ticket)
}

#[test]
fn findings_that_may_be_old_are_told_as_such() {
    let (mut console, ticket) = home(180, 48);
    found(&mut console, ticket);
    tell(&mut console, ticket, LookNews::Done);
    console.beat();
    console.hides("other processes may have written");
    console.beat();
    console.shows("other processes may have written since: r checks again");
    console.press("r");
    console.hides("other processes may have written");
}

#[test]
fn the_first_screen_lists_the_worst_findings_and_leads_to_them() {
    for (width, height) in [(180, 48), (100, 40)] {
        let (mut console, ticket) = home(width, height);
        found(&mut console, ticket);
        console.shows("chains of parents form a cycle");
        tell(&mut console, ticket, LookNews::Done);
        // The first line is the worst, the second one the episode's.
        console.press("j enter");
        assert_eq!(console.model.crumbs().last().map(String::as_str), Some("findings"));
        console.press("y c");
        let line = "mnemoscope -d memory/made-up.db findings --kind repeated_id";
        assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
        let again = console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Look { .. })));
        assert!(!again, "what was found is not looked for twice: {:?}", console.asked);
    }
}

#[test]
fn leaving_the_first_screen_stops_the_look_and_coming_back_begins_it_again() {
    let (mut console, ticket) = home(120, 40);
    console.press("2");
    assert_eq!(console.model.context.health.pending, None);
    found_late(&mut console, ticket);
    console.press("1");
    let begun = console
        .asked
        .iter()
        .filter(|effect| matches!(effect, Effect::Ask(_, Request::Look { brief: true, .. })))
        .count();
    assert_eq!(begun, 1, "{:?}", console.asked);
}

fn found_late(console: &mut Console, ticket: Ticket) {
    let late = finding("secret", Severity::High, Some("episode"), &["ep-1"], "backfill secrets");
    tell(console, ticket, LookNews::Found(Box::new(late)));
    assert!(console.model.context.health.found.is_empty(), "nobody waits for that any more");
}

#[test]
fn a_brief_look_says_what_it_left_and_the_screen_of_findings_looks_at_the_rest() {
    let (mut console, ticket) = home(180, 48);
    found(&mut console, ticket);
    let secret = finding("secret", Severity::High, Some("episode"), &["ep-1"], "backfill secrets");
    tell(&mut console, ticket, LookNews::Found(Box::new(secret)));
    tell(&mut console, ticket, LookNews::Left(vec!["secret", "count_differs"]));
    tell(&mut console, ticket, LookNews::Done);
    console.shows("the first 5,000 rows were checked; F checks all");
    let line = |console: &mut Console, word: &str| console.lines().into_iter().find(|line| line.contains(word));
    assert!(line(&mut console, "secrets").is_some_and(|line| line.contains(" 1+ ")), "{}", console.text());
    assert!(line(&mut console, "cycle").is_some_and(|line| line.contains(" 2  ")), "{}", console.text());
    console.press("F");
    let Some(Effect::Ask(ticket, Request::Look { brief: false })) = console.asked.pop() else {
        panic!("{:?}", console.asked)
    };
    console.press("k");
    console.shows("chain cycle");
    let low = finding("repeated_id", Severity::Low, Some("episode"), &["ep-1"], "show episode ep-1");
    tell(&mut console, ticket, LookNews::Found(Box::new(low)));
    tell(&mut console, ticket, LookNews::Done);
    console.hides("chain cycle");
}

#[test]
fn an_optional_migration_is_applied_when_it_is_selected() {
    let mut console = Console::new(world(), 160, 50);
    unlock(&mut console);
    console.press("D");
    let Some(Effect::Ask(ticket, Request::LoadMigrations)) = console.asked.pop() else { panic!("{:?}", console.asked) };
    let items =
        vec![item("atom/0001_index", MigrationStanding::Applied), item("atom/0002_rls", MigrationStanding::Optional)];
    let listed = MigrationList { items, layouts: vec!["atom".to_owned()], foreign: Vec::new() };
    console.reply(ticket, Reply::Migrations(Ok(Box::new(listed))));
    console.press("a");
    console.shows("nothing is pending");
    console.press("j a");
    console.shows("atom/0002_rls");
    console.wait();
    console.press("y c");
    let line = "mnemoscope -d memory/made-up.db migrate --apply --optional row-level-security";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
    console.press("A");
    let named = vec!["row-level-security".to_owned()];
    let applied = |effect: &Effect| matches!(effect, Effect::Ask(_, Request::Migrate(names)) if *names == named);
    assert!(console.asked.iter().any(applied), "{:?}", console.asked);
}

#[test]
fn a_finding_that_is_only_shown_offers_no_fix() {
    let (mut console, ticket) = looking(160, 50);
    found(&mut console, ticket);
    tell(&mut console, ticket, LookNews::Done);
    console.shows("x fixes: unlink ep-3");
    console.shows("x fix ");
    console.press("j");
    console.shows("enter shows it: show episode ep-1");
    console.hides("x fix");
}

/// A look that ends early, by something that passes or not.
fn ends_early(console: &mut Console, ticket: Ticket, passes: bool) {
    let failure = RequestFailure { passes, ..RequestFailure::new("Looking ended early", "it is locked", "wait") };
    console.asked.clear();
    console.reply(ticket, Reply::Finding(Err(failure)));
}

fn looks(console: &Console) -> usize {
    console.asked.iter().filter(|effect| matches!(effect, Effect::Ask(_, Request::Look { .. }))).count()
}

#[test]
fn a_look_that_a_lock_ended_begins_again_by_itself() {
    for keys in ["", "F"] {
        let (mut console, ticket) = home(180, 48);
        console.press(keys);
        ends_early(&mut console, ticket, true);
        console.shows("the check ended early; it restarts automatically");
        assert_eq!(looks(&console), 0, "not at once");
        console.wait();
        assert_eq!(looks(&console), 1, "{:?}", console.asked);
        console.hides("the check ended early");
    }
}

#[test]
fn a_look_that_failed_names_its_key_and_begins_again_when_somebody_comes_back() {
    let (mut console, ticket) = home(180, 48);
    ends_early(&mut console, ticket, false);
    console.shows("the check ended early: r checks again");
    console.wait();
    assert_eq!(looks(&console), 0, "what failed would fail again");
    console.press("2 1");
    assert_eq!(looks(&console), 1, "{:?}", console.asked);
    console.hides("the check ended early");
}
