//! The step about mentions: each is decided by a key, or all in its column at once; nothing is searched again before the step
//! is left, and going back forgets nothing.

use std::fmt::Write as _;

use mnemoscope::change::plan::erasure::{Mentions, Preview, ShownMention};
use mnemoscope::console::core::{Effect, Reply, Request};
use mnemoscope::console::screens::erase::EraseScreen;
use mnemoscope::ui::{Glyphs, Look, Theme};

use super::changes::unlocked;
use super::erase::{asked, mention, preview, runs};
use super::fake::{Console, world};
use super::looks::picture;

/// Five mentions in two columns: one possible, one outside the layout.
fn mentioned(id: &str) -> Preview {
    let in_notes = |mention: ShownMention| ShownMention { place: "notes.text".into(), ..mention };
    Preview {
        mentions: vec![("episodes.summary".into(), 3), ("notes.text".into(), 2)],
        named: vec![
            mention("m_0000000001", "ask […] again"),
            mention("m_0000000002", "met […] in Lyon"),
            ShownMention { doubt: Some("next to `_`".into()), ..mention("m_0000000003", "the file user_[…].json") },
            in_notes(mention("m_0000000004", "call […] on Monday")),
            in_notes(ShownMention {
                options: vec![Mentions::Leave],
                refused: Some("the table is outside the layout and is never written".into()),
                ..mention("m_0000000005", "[…] was here")
            }),
        ],
        ..preview(id)
    }
}

fn at_mentions(mut console: Console) -> (Console, String) {
    console.press("8 c p");
    let (ticket, id, _) = asked(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(mentioned(&id)))));
    console.press("l l");
    (console, id)
}

fn searches(console: &Console) -> bool {
    console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::PlanErasure(..))))
}

#[test]
fn each_mention_is_decided_by_a_key_and_nothing_is_searched_before_the_step_is_left() {
    let (mut console, id) = at_mentions(unlocked(100, 30));
    console.shows("ask Ann Lee again");
    console.shows("Late parcel to Lyon");
    // The cursor continues to the next one on its own.
    console.press("x d");
    console.press("j i");
    console.shows("outside the layout");
    assert!(!searches(&console));
    console.press("l");
    let (ticket, _, choice) = asked(&mut console);
    let decided: Vec<(&str, Mentions)> = choice.each.iter().map(|(id, what)| (id.as_str(), *what)).collect();
    let expected =
        [("m_0000000001", Mentions::Redact), ("m_0000000002", Mentions::Delete), ("m_0000000004", Mentions::Leave)];
    assert_eq!(decided, expected);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(mentioned(&id)))));
    // Back and on again: nothing is forgotten, nothing searched.
    console.press("h l h");
    assert!(!searches(&console));
    console.press("l l l");
    console.press("enter");
    console.shows("3 decided one by one");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (_, _, choice, _) = runs(&mut console).expect("it is asked for");
    assert_eq!(choice.each.len(), 3);
}

#[test]
fn a_column_is_decided_at_once_and_what_cannot_be_done_is_refused() {
    let (mut console, id) = at_mentions(unlocked(100, 30));
    console.press("x * x");
    console.press("G d");
    console.shows("outside the layout");
    console.press("l");
    let (ticket, _, choice) = asked(&mut console);
    let decided: Vec<(&str, Mentions)> = choice.each.iter().map(|(id, what)| (id.as_str(), *what)).collect();
    assert_eq!(decided, [("episodes.summary", Mentions::Redact)]);
    // What no longer exists is no longer queried.
    let fewer = Preview { mentions: Vec::new(), named: Vec::new(), ..preview(&id) };
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(fewer))));
    assert!(console.model.at::<EraseScreen>().expect("we are there").choice.each.is_empty());
}

#[test]
fn a_possible_mention_is_left_unless_it_is_decided_by_itself() {
    let (mut console, _) = at_mentions(unlocked(100, 30));
    console.press("c m");
    assert!(!searches(&console));
    let erasure = console.model.at::<EraseScreen>().expect("we are there");
    let decisions: Vec<Mentions> =
        mentioned("x").named.iter().map(|mention| erasure.choice.decision(mention)).collect();
    let (leave, redact) = (Mentions::Leave, Mentions::Redact);
    assert_eq!(decisions, [redact, redact, leave, redact, leave]);
    console.press("j j x");
    console.press("l");
    assert_eq!(asked(&mut console).2.each.get("m_0000000003"), Some(&Mentions::Redact));
}

#[test]
fn an_earlier_run_keeps_its_decisions() {
    let mut console = unlocked(100, 30);
    console.press("8 c p");
    let (ticket, id, _) = asked(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(Preview { unfinished: true, ..mentioned(&id) }))));
    console.press("l l x");
    console.shows("with its original choices");
    assert!(console.model.at::<EraseScreen>().expect("we are there").choice.each.is_empty());
}

#[test]
fn masked_no_word_of_a_mention_is_shown() {
    let (mut console, _) = at_mentions(Console::masked(world(), 100, 30));
    console.hides("Lyon");
    console.hides("Ann Lee");
    console.hides("ep-1");
    console.shows("episodes.summary");
    console.shows("certain; masking hides the words, M shows them");
    // Only the person is one.
    console.hides("row person-");
}

#[test]
fn pictures_of_decisions() {
    let mut pages = String::new();
    for (width, height) in [(100, 30), (80, 24), (60, 20)] {
        for (name, glyphs) in [("unicode", Glyphs::unicode()), ("ascii", Glyphs::ascii())] {
            let (mut console, _) = at_mentions(unlocked(width, height));
            console.press("x d");
            console.wait();
            let text = picture(&console.draw_with(&Look::new(Theme::dark(), glyphs)));
            let _ = writeln!(pages, "== {width}x{height} {name}\n{text}");
        }
    }
    insta::assert_snapshot!("erasure-decisions", pages);
}

#[test]
fn what_was_decided_stands_when_the_same_person_is_opened_again() {
    let (mut console, id) = at_mentions(unlocked(100, 30));
    console.press("x d esc c p");
    let (_, again, choice) = asked(&mut console);
    assert_eq!(again, id);
    let decided: Vec<(&str, Mentions)> = choice.each.iter().map(|(id, what)| (id.as_str(), *what)).collect();
    assert_eq!(decided, [("m_0000000001", Mentions::Redact), ("m_0000000002", Mentions::Delete)]);
}
