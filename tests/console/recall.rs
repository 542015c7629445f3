//! Recall: what is asked when, what is shown, two rankings next to each other, saved questions, and what a change of
//! mind stops.

use mnemoscope::console::core::{Effect, Message, Reply, Request, RequestFailure};
use mnemoscope::console::screens::recall::RecallScreen;
use mnemoscope::memory::Entity;
use mnemoscope::memory::Row;
use mnemoscope::memory::vector::{ComparedBy, VectorTally};
use mnemoscope::recall::answer::{RecallAnswer, RecalledItem, StageTimes, WordsBy};
use mnemoscope::recall::features::words;
use mnemoscope::recall::inquiry::{Inquiry, SavedQuestion};
use mnemoscope::recall::keyword::{shares_told, text_of};
use mnemoscope::recall::rank::{self, ProvenQuery, RankedRow, Ranking, choose, place_of};
use serde_json::json;

use super::fake::{Console, Database, many, row, world};

/// Recalls from a database of these rows, by the rules themselves; without vectors.
pub fn recalled(database: &Database, inquiry: &Inquiry, at: &str) -> Box<(RecallAnswer, StageTimes)> {
    let all = |entity: Entity| database.rows.get(&entity).cloned().unwrap_or_default();
    let like = inquiry.like.as_ref().and_then(|id| {
        let kinds = [Entity::Episode, Entity::Case, Entity::Memory].into_iter();
        kinds.flat_map(all).find(|row| row.id() == id)
    });
    let asked = like.as_ref().map(text_of).or(inquiry.text.clone()).unwrap_or_default();
    let mut rows = match inquiry.ranking {
        Ranking::Cases => all(Entity::Case),
        Ranking::Proven => [all(Entity::Episode), all(Entity::Memory)].concat(),
        Ranking::Boosted | Ranking::Similar => all(Entity::Episode),
    };
    rows.retain(|row| inquiry.agent.is_none() || row.text("agent_id") == inquiry.agent.as_deref());
    rows.retain(|row| inquiry.user.is_none() || row.text("user_id") == inquiry.user.as_deref());
    rows.retain(|row| like.as_ref().is_none_or(|like| like.id() != row.id()));
    let candidates = rows.len();
    let told: Vec<_> = rows.iter().map(|row| words(&text_of(row))).collect();
    let likeness = shares_told(&words(&asked), &told.iter().collect::<Vec<_>>());
    let place = like.as_ref().map(place_of).unwrap_or_default();
    let sought = ProvenQuery {
        domain: inquiry.domain.as_deref().or(place.0.as_deref()).map(Into::into),
        topic: inquiry.topic.as_deref().or(place.1.as_deref()).map(Into::into),
    };
    let mut ranked: Vec<RankedRow> = (rows.into_iter().zip(likeness))
        .map(|(row, share)| match inquiry.ranking {
            Ranking::Boosted => rank::boosted(row, (!asked.is_empty()).then_some(share), "keywords", at),
            Ranking::Proven => {
                let utility = row.number("utility");
                rank::proven(row, &sought, utility, at)
            }
            Ranking::Cases | Ranking::Similar => rank::by_likeness(row, share, "keywords"),
        })
        .collect();
    rank::sort(&mut ranked);
    let (chosen, left_out) = choose(ranked, inquiry.rows(), 3, |_, _| None);
    let item = RecalledItem::new;
    let answer = RecallAnswer {
        rows: chosen.into_iter().map(item).collect(),
        left_out,
        used: if asked.is_empty() { "none" } else { "keyword" },
        policy: None,
        k: inquiry.rows(),
        compared: None,
        words_by: (!asked.is_empty()).then_some(WordsBy::Read),
        candidates,
        notes: inquiry.text.iter().map(|_| "no embedding endpoint is named: compared by keywords".to_owned()).collect(),
        like,
        request: inquiry.request(at),
    };
    Box::new((answer, StageTimes { embedding: 0.0, situation: 1.0, ranking: 2.5, context: 0.5 }))
}

/// The last question that was asked, with its number.
fn asked(console: &Console) -> Option<(mnemoscope::console::core::Ticket, Inquiry)> {
    console.held.iter().rev().find_map(|effect| match effect {
        Effect::Ask(ticket, Request::Recall { inquiry, .. }) => Some((*ticket, (**inquiry).clone())),
        _ => None,
    })
}

#[test]
fn the_selected_row_is_the_situation() {
    let mut console = Console::new(world(), 140, 40);
    console.press("2 j W");
    console.shows("as in episode Reconcile the October invoices  ep-1");
    console.shows("Reconcile the October invoices");
    // The other episode of its agent; the row itself is left out.
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-2".to_owned())));
    console.shows("agent Bookkeeper");
    console.press("enter");
    assert_eq!(console.id(), "ep-2");
    console.press("[");
    console.shows("as in episode Reconcile the October invoices  ep-1");
    // From a result on: its situation in turn, and back again.
    console.press("W");
    console.shows("gpj.exe  ep-2");
    console.press("[");
    console.shows("as in episode Reconcile the October invoices  ep-1");
}

#[test]
fn what_belongs_to_an_episode_takes_its_situation() {
    let mut console = Console::new(world(), 140, 40);
    console.press("5 W");
    console.shows("as in episode Reconcile the October invoices  ep-1");
    // An agent has no situation of its own.
    console.press("9 W");
    console.shows("writes a situation");
    let mut database = world();
    let asked = [("id", "ac-1"), ("query", "lost invoices"), ("kind", "similar"), ("user_id", "user-ana")];
    let access = row(Entity::Access, &asked.map(|(column, value)| (column, json!(value))));
    database.rows.entry(Entity::Access).or_default().push(access);
    let mut console = Console::new(database, 140, 40);
    console.press(": 'accesses' enter W");
    let inquiry = &console.model.at::<RecallScreen>().unwrap().inquiry;
    assert_eq!((inquiry.text.as_deref(), inquiry.user.as_deref()), (Some("lost invoices"), Some("user-ana")));
    assert_eq!(inquiry.ranking, Ranking::Similar, "as it was ranked then");
}

#[test]
fn what_was_recalled_when_it_was_recorded_is_marked_and_counted() {
    let mut database = world();
    let access = [
        ("id", json!("ac-1")),
        ("query", json!("invoices")),
        ("kind", json!("boosted")),
        ("ids", json!(["ep-1", "ep-gone"])),
        ("created_at", json!("2026-02-03T12:00:00.000000Z")),
    ];
    database.rows.entry(Entity::Access).or_default().push(row(Entity::Access, &access));
    let mut console = Console::new(database, 140, 40);
    console.press(": 'accesses' enter W");
    console.shows("recorded 2026-02-03 12:00: 2 recalled, 1 of them here (marked)");
    console.press("/ ctrl-u 'another' enter");
    console.hides("recorded 2026");
}

#[test]
fn an_agent_that_no_row_names_is_told_with_the_key_that_takes_all() {
    let mut database = world();
    database.rows.get_mut(&Entity::Episode).expect("episodes").retain(|row| row.id() == "ep-1");
    let mut console = Console::new(database, 140, 40);
    console.press("2 W");
    console.shows("No row here names this agent");
    console.shows("n a another agent, or all");
    console.press("n a ctrl-u enter");
    console.hides("names this agent");
}

#[test]
fn the_reason_of_a_lead_speaks_for_it() {
    let episode = |id: &str, started: &str, utility: f64| {
        let values =
            [("id", json!(id)), ("title", json!(id)), ("started_at", json!(started)), ("utility", json!(utility))];
        row(Entity::Episode, &values)
    };
    let mut database = many(0);
    let rows = vec![
        episode("ep-new", "2026-02-04T10:00:00.000000Z", 0.05),
        episode("ep-old", "2025-02-04T10:00:00.000000Z", 0.95),
    ];
    database.rows.insert(Entity::Episode, rows);
    let mut console = Console::new(database, 140, 50);
    console.press("W n 2 / 'anything' enter");
    console.shows("utility      +0.0100 - +0.1900 = -0.1800");
    console.shows("ahead, mostly by week (+0.1000)");
}

#[test]
fn every_term_is_shown_with_its_reason_and_they_sum() {
    let mut console = Console::new(world(), 160, 48);
    console.press("2 W");
    for text in [
        "B base",
        "C canvas",
        "F feedback",
        "2 canvas interactions are stored: + 0.1",
        "the stored aggregate +0.25 is above 0: + 0.2",
        "sum",
        "what an agent gets from it",
        "Context: Reconcile the October invoices",
        "tokens (rough: 4 characters each)",
        "by words, compared here in every text",
        "2.5 ms",
    ] {
        console.shows(text);
    }
    let found = console.model.at::<RecallScreen>().unwrap().left.current().unwrap().ranked.score.clone();
    console.shows(&format!("{:+.4}", found.total));
}

#[test]
fn a_row_is_held_against_the_first_term_by_term() {
    let mut console = Console::new(world(), 160, 60);
    console.press("W");
    let rows = console.model.at::<RecallScreen>().unwrap().left.rows().to_vec();
    let apart = rows[0].ranked.score.total - rows[1].ranked.score.total;
    console.shows("against 2");
    console.shows(&format!("{apart:.4} ahead, mostly by"));
    console.press("j");
    console.shows("against 1");
    console.shows(&format!("{apart:.4} behind, mostly by"));
}

#[test]
fn what_would_move_a_row_is_told_and_planned() {
    let mut console = Console::new(world(), 160, 70);
    console.press("2 W");
    console.shows("what would move it");
    console.shows("thumbs down");
    console.press("x");
    console.shows("Move place 1");
    console.press("'remove' enter");
    console.shows("unlock");
}

#[test]
fn a_written_situation_is_ranked_and_the_fallback_is_said() {
    let mut console = Console::new(world(), 140, 50);
    console.press("W");
    console.shows("writes a situation");
    console.shows("by time alone: there is no question");
    console.press("/ 'missing invoices' enter");
    console.shows("missing invoices");
    console.shows("! no embedding endpoint is named: compared by keywords");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().inquiry.text.as_deref(), Some("missing invoices"));
}

#[test]
fn a_ranking_that_compares_asks_for_a_situation_first() {
    let mut console = Console::new(world(), 120, 30);
    console.press("W n 4");
    console.shows("What is the situation?");
    console.holding = true;
    console.press("/ 'invoices' enter");
    assert_eq!(asked(&console).unwrap().1.ranking, Ranking::Similar);
}

#[test]
fn what_the_database_cannot_rank_says_why() {
    let mut console = Console::new(many(3), 140, 60);
    console.press("W n 3");
    console.shows("made-up has no case");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().left.way.ranking, Ranking::Boosted);
    console.shows("not in this database");
    let mut nothing = Console::new(Database::default(), 140, 40);
    nothing.press("W");
    nothing.shows("This ranking is not possible here");
    nothing.shows("use another layout");
}

#[test]
fn the_latest_question_wins_and_esc_stops_it() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W");
    console.holding = true;
    console.press("/ 'first' enter");
    let (first, _) = asked(&console).unwrap();
    console.reply(first, Reply::Recalling("requesting the vector of the text"));
    console.shows("requesting the vector of the text");
    console.press("+");
    let (second, inquiry) = asked(&console).unwrap();
    assert_eq!(inquiry.k, Some(5));
    assert!(console.held.contains(&Effect::Cancel(first)), "the older one is stopped");
    let late = RequestFailure::new("late", "", "");
    console.reply(first, Reply::Recalled(Err(late)));
    console.hides("late");
    console.press("esc");
    assert!(console.held.contains(&Effect::Cancel(second)));
    console.shows("Ranking was stopped");
    console.held.clear();
    console.press("r");
    let again = console.held.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Recall { fresh: true, .. })));
    assert!(again, "read again, without what is kept in memory");
}

#[test]
fn two_rankings_stand_beside_each_other_with_the_moves_between_them() {
    let mut console = Console::new(world(), 160, 40);
    console.press("W = 'proven' enter");
    console.shows("next to proven");
    console.shows("goes");
    console.shows("was");
    let recall = console.model.at::<RecallScreen>().unwrap().clone();
    let row = recall.left.current().unwrap().ranked.row.clone();
    let place = recall.right.as_ref().unwrap().place_of(row.entity, row.id());
    assert!(place.is_some());
    console.shows("in the other ranking");
    console.press("l");
    assert_eq!(console.id(), row.id(), "the same row is selected in both");
    console.press("~");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().left.way.ranking, Ranking::Proven);
    console.press("= 'similar' enter esc");
    assert!(console.model.at::<RecallScreen>().unwrap().right.is_none(), "esc ends the comparison first");
}

#[test]
fn rows_of_other_kinds_are_said_to_be_that() {
    let mut console = Console::new(world(), 160, 40);
    console.press("4 W = 'boosted' enter");
    console.shows("cases");
    let recall = console.model.at::<RecallScreen>().unwrap();
    if recall.left.current().is_some() {
        console.shows("which ranks no cases");
    }
}

#[test]
fn the_number_of_rows_the_owners_and_what_narrows_are_set_by_keys() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W - - - - -");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().left.rows().len(), 1);
    console.press("n a 'nobody' enter");
    console.shows("No row here names this agent");
    console.press("n a ctrl-u 'book' tab");
    console.shows("agent-books");
    console.press("enter n 2 n n 'finance / invoices' enter");
    let asked = &console.model.at::<RecallScreen>().unwrap().inquiry;
    assert_eq!((asked.domain.as_deref(), asked.topic.as_deref()), (Some("finance"), Some("invoices")));
    console.shows("finance, as asked");
    console.press("n n");
    console.shows("domain finance, topic invoices");
    console.press("esc n 1 n n");
    console.shows("only proven relevance and similar episodes can be narrowed");
}

#[test]
fn a_question_is_kept_asked_again_and_forgotten() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W b b");
    console.shows("nothing is saved yet");
    console.press("/ 'missing invoices' enter + b k enter");
    console.shows("name it");
    console.press("'lost ones' enter");
    console.shows("saved as lost ones");
    let expected = Inquiry { text: Some("missing invoices".into()), k: Some(5), ..Inquiry::new(Ranking::Boosted) };
    assert_eq!(console.saved, [SavedQuestion { name: "lost ones".into(), inquiry: expected.clone() }]);
    console.press("1 [ W b b enter");
    console.shows("missing invoices");
    let recall = console.model.at::<RecallScreen>().unwrap();
    assert_eq!(recall.asked(recall.side()), expected);
    console.press("b d enter");
    assert!(console.saved.is_empty());
}

#[test]
fn a_change_asks_again_and_the_same_row_stays_selected() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W j");
    let before = console.id();
    console.holding = true;
    console.model.context.changing.epoch += 1;
    console.tell(Message::Tick(super::fake::now()));
    let Some((ticket, inquiry)) = asked(&console) else { panic!("it is asked again") };
    let stale = console.model.at::<RecallScreen>().unwrap().left.is_stale();
    assert!(stale, "until then what was found stays, dimmed");
    let answer = recalled(&console.database, &inquiry, "2026-02-04T11:00:00.000000Z");
    console.reply(ticket, Reply::Recalled(Ok(answer)));
    assert_eq!(console.id(), before);
}

#[test]
fn the_command_line_asks_the_same() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W / 'it was lost' enter + n a 'agent-books' enter y c");
    let Some(Effect::Copy(_, line)) = console.asked.iter().rev().find(|e| matches!(e, Effect::Copy(..))) else {
        panic!("nothing copied")
    };
    assert_eq!(line, "mnemoscope -d memory/made-up.db recall 'it was lost' --ranking boosted --agent agent-books -k 5");
}

#[test]
fn nothing_personal_shows_through_a_mask() {
    let mut console = Console::masked(world(), 160, 48);
    console.press("2 j W");
    for text in ["October", "ada@example.org", "missing invoices"] {
        console.hides(text);
    }
    console.press("/ 'my tax file' enter");
    console.hides("my tax file");
    console.shows("a text of 11 characters");
    console.press("n u 'ada@example.org' enter");
    console.hides("ada@example.org");
    console.press("b k 'k' enter b b");
    console.hides("my tax file");
}

#[test]
fn what_vectors_came_to_is_said() {
    let mut console = Console::new(world(), 160, 54);
    console.press("W");
    console.holding = true;
    console.press("r");
    let (ticket, inquiry) = asked(&console).unwrap();
    let mut answer = recalled(&console.database, &inquiry, "2026-02-04T11:00:00.000000Z");
    let tally = VectorTally { rows: 9, compared: 4, missing: 2, no_direction: 1, other_dimensions: 1, unreadable: 1 };
    (answer.0.used, answer.0.compared, answer.0.words_by) = ("vector", Some((tally, ComparedBy::Memory)), None);
    console.reply(ticket, Reply::Recalled(Ok(answer)));
    console.shows("kept in memory");
    console.shows("4 of 9 rows, 2 have none, 1 has no direction");
    console.shows("1 is unreadable");
    console.shows("at most 268 MB");
}

#[test]
fn a_failure_is_a_card_and_what_was_found_stays() {
    let mut console = Console::new(world(), 140, 40);
    console.press("W");
    let rows = console.model.at::<RecallScreen>().unwrap().left.rows().len();
    console.failure = Some(RequestFailure::new("The situation was not ranked", "the server is gone", "start it"));
    console.press("r");
    console.shows("The situation was not ranked");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().left.rows().len(), rows);
    let mut fresh = Console::new(world(), 140, 40);
    fresh.failure = Some(RequestFailure::new("The situation was not ranked", "the server is gone", "start it"));
    fresh.press("W");
    fresh.shows("the server is gone");
}

#[test]
fn hostile_and_huge_rows_do_no_harm() {
    let mut database = world();
    let mut wild: Row = row(Entity::Episode, &[("id", json!("ep-\u{202e}9")), ("title", json!("x".repeat(50_000)))]);
    wild.set("feedback_score", json!(f64::MAX));
    database.rows.entry(Entity::Episode).or_default().push(wild);
    for (width, height) in [(40, 10), (60, 20), (100, 30), (200, 50)] {
        let mut console = Console::new(database.clone(), width, height);
        console.press("W = 'proven' enter l j j tab j*40 k*3 tab h - - + + ~ esc esc");
    }
}

#[test]
fn clicks_choose_rankings_rows_and_sides() {
    let mut console = Console::new(world(), 160, 40);
    console.press("W");
    console.click("proven");
    assert_eq!(console.model.at::<RecallScreen>().unwrap().left.way.ranking, Ranking::Proven);
    console.press("= 'boosted' enter");
    console.click("was");
    assert!(console.model.at::<RecallScreen>().unwrap().on_right);
}
