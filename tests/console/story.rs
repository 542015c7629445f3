//! The story of an episode: lanes on one axis of time, and a cursor through its moments.

use mnemoscope::console::core::{ClickTarget, Message};
use mnemoscope::memory::Entity;
use serde_json::json;

use super::fake::{Console, row, world};

/// At the story of the episode with everything.
fn at_story(width: u16, height: u16) -> Console {
    let mut console = Console::new(world(), width, height);
    console.press("2 j enter . t");
    console
}

fn lane(console: &mut Console, name: &str) -> String {
    let lines = console.lines();
    let line = lines.iter().find(|line| line.contains(&format!("│ {name}"))).cloned();
    line.unwrap_or_else(|| panic!("no lane {name}\n{}", lines.join("\n")))
}

#[test]
fn every_lane_stands_on_one_axis_with_the_words_of_its_moments_below() {
    for (width, height) in [(100, 45), (200, 50), (60, 30)] {
        let mut console = at_story(width, height);
        let said = lane(&mut console, "said").find('●').expect("what was said");
        let (shown, done) =
            lane(&mut console, "canvas").find('●').zip(lane(&mut console, "canvas").find('✓')).expect("two");
        let liked = lane(&mut console, "feedback");
        let liked = liked.find(['✓', '2', '3']).expect("feedback");
        assert!(said < shown && shown < done && done < liked, "{said} {shown} {done} {liked}");
        console.shows("1 of 8");
        console.shows("one column is");
        console.shows("where are the two invoices?");
        console.press("j");
        console.shows("2 of 8");
    }
}

#[test]
fn the_utility_steps_at_its_signals_and_says_what_it_is_at_the_cursor() {
    let mut console = at_story(120, 45);
    assert!(lane(&mut console, "utility").contains("0.50"));
    console.press("G k");
    assert!(lane(&mut console, "utility").contains("0.70"));
    console.press("j j");
    assert!(lane(&mut console, "utility").contains("0.60"), "the last one is the last one");
    console.shows("8 of 8");
    console.press("g");
    console.shows("1 of 8");
}

#[test]
fn enter_shows_the_lane_alone_at_the_moment_and_the_way_back_is_where_one_was() {
    let mut console = at_story(120, 45);
    for (keys, shown) in [("", "in the archive"), ("j", "sheets / ledger"), ("j j j j j", "replayed 0.60")] {
        console.press(keys);
        console.press("enter");
        console.shows(shown);
        console.press(". t");
    }
    console.shows("7 of 8");
}

#[test]
fn a_click_goes_to_a_moment_and_the_chain_is_walked_in_sight() {
    let mut console = at_story(120, 45);
    console.tell(Message::Click(ClickTarget::Moment(4), false));
    console.shows("5 of 8");
    console.shows("chain");
    console.press("}");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-2".to_owned())));
    console.shows("chain");
    console.press("}");
    console.shows("no episode follows this one");
    console.press("{");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-1".to_owned())));
    console.shows("1 of 8");
    console.press("{");
    console.shows("this episode follows none");
}

#[test]
fn a_long_pause_is_folded_and_named_and_an_axis_without_times_says_so() {
    let mut database = world();
    for (at, row) in database.rows.get_mut(&Entity::UtilityEvent).expect("signals").iter_mut().enumerate() {
        row.set("created_at", json!(format!("2026-05-0{}T12:00:00.000000Z", at + 1)));
    }
    let mut console = Console::new(database.clone(), 200, 50);
    console.press("2 j enter . t z");
    console.shows("┊  87d   ┊05-01");
    for entity in [Entity::UtilityEvent, Entity::Segment, Entity::CanvasEvent, Entity::Feedback] {
        for row in database.rows.get_mut(&entity).expect("rows") {
            row.set("created_at", json!(null));
        }
    }
    let mut console = Console::new(database, 120, 45);
    console.press("2 j enter . t");
    console.shows("in order, not to scale");
    console.shows("evenly spaced: no times are stored");
}

#[test]
fn a_signal_that_was_held_at_an_end_says_so() {
    let mut database = world();
    let signal = &mut database.rows.get_mut(&Entity::UtilityEvent).expect("signals")[0];
    signal.set("signal", json!("rejected"));
    signal.set("before", json!(0.2));
    signal.set("after", json!(0.0));
    let mut console = Console::new(database, 120, 45);
    console.press("2 j enter . t G k");
    console.shows("-0.20 of -0.30, held at 0");
}

#[test]
fn an_episode_with_very_many_canvas_events_shows_the_first_and_leads_to_all() {
    let console = at_story(120, 45);
    let id = console.id();
    let mut database = world();
    let event = |n: usize| {
        let at = format!("2026-02-04T08:{:02}:00.000000Z", n % 60);
        row(
            Entity::CanvasEvent,
            &[
                ("id", json!(format!("many-{n}"))),
                ("episode_id", json!(id)),
                ("action", json!("present")),
                ("created_at", json!(at)),
            ],
        )
    };
    let there = database.rows.entry(Entity::CanvasEvent).or_default();
    let before = there.iter().filter(|row| row.text("episode_id") == Some(&id)).count();
    there.extend((before..1_250).map(event));
    let mut console = Console::new(database, 200, 45);
    console.press("2 j enter . t");
    console.shows("without 1,050 more");
    console.press(". a G");
    console.shows("canvas 1.2k");
    console.click("and 1,050 more");
    console.shows("canvas events where episode_id = 'ep-1'");
}

#[test]
fn a_chain_shows_all_that_follows_and_tells_its_episodes_apart_where_titles_are_cut() {
    let mut database = world();
    let episodes = database.rows.get_mut(&Entity::Episode).expect("episodes");
    episodes.retain(|row| row.id() == "ep-1");
    let mut parent = "ep-1".to_owned();
    for (day, part) in ["second look", "day after", "closed"].iter().enumerate() {
        let id = format!("ep-later-{day}");
        episodes.push(row(
            Entity::Episode,
            &[
                ("id", json!(id)),
                ("parent_id", json!(parent)),
                ("title", json!(format!("Reconcile the August ledger of all customers: {part}"))),
                ("started_at", json!(format!("2026-02-0{}T10:00:00.000000Z", day + 1))),
            ],
        ));
        parent = id;
    }
    let mut console = Console::new(database, 80, 24);
    console.press("2 G enter . c");
    for shown in ["chain 4", "day after", "closed"] {
        console.shows(shown);
    }
    console.press(". t");
    console.shows("second look");
}
