//! Whatever is pressed on whatever screen: it continues, shows nothing dangerous, and holds little.

use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::console::core::{
    AppliedPlan, ClickTarget, Effect, Key, Message, Refusal, Reply, Request, RequestFailure,
};
use mnemoscope::console::overlays::unlock::WriteState;
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::ui::{Glyphs, Look, Theme};
use proptest::prelude::*;

use super::changes::{entry, plan, receipt, removal};
use super::fake::{Console, Database, many, world};

const KEYS: &[&str] = &[
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "j", "k", "g", "G", "pgup", "pgdn", "enter", "esc", "tab", "l",
    "h", "z", "f", "/", "\\", "s", "<", ">", "S", "space", "u", "e", "y", "Y", "c", "t", "o", "w", "r", "M", "T", "m",
    ":", "[", "]", "?", "backspace", "up", "down", "left", "right", "home", "end", "delete", "ctrl-w", "ctrl-u", "a",
    "=", "'", "ctrl-l", "U", "R", "I", "Z", "A", "d", "i", "n", "p", "x", "ctrl-s", "ctrl-y", "backtab",
];

#[derive(Debug, Clone)]
enum Act {
    Press(&'static str),
    Hold(&'static str),
    Resize(u16, u16),
    Click(u16, u16, bool),
    Wheel(u16, u16, bool),
    Paste(String),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        20 => prop::sample::select(KEYS).prop_map(Act::Press),
        2 => prop::sample::select(KEYS).prop_map(Act::Hold),
        2 => (0_u16..230, 0_u16..70).prop_map(|(w, h)| Act::Resize(w, h)),
        3 => (0_u16..160, 0_u16..50, any::<bool>()).prop_map(|(x, y, twice)| Act::Click(x, y, twice)),
        1 => (0_u16..160, 0_u16..50, any::<bool>()).prop_map(|(x, y, up)| Act::Wheel(x, y, up)),
        1 => "\\PC{0,12}".prop_map(Act::Paste),
    ];
    prop::collection::vec(act, 0..50)
}

fn perform(console: &mut Console, act: &Act) {
    match act {
        Act::Press(name) => console.tell(Message::Key(Key::parse(name).expect("a key"))),
        Act::Hold(name) => console.tell(Message::Held(Key::parse(name).expect("a key"))),
        Act::Resize(width, height) => console.tell(Message::Resize(*width, *height)),
        Act::Click(x, y, twice) => {
            if let Some(target) = console.drawn.hits.at(*x, *y).cloned() {
                console.tell(Message::Click(target, *twice));
            }
        }
        Act::Wheel(x, y, up) => {
            let target = console.drawn.hits.at(*x, *y).cloned().unwrap_or(ClickTarget::List);
            console.tell(Message::Wheel(target, *up));
        }
        Act::Paste(text) => console.tell(Message::Paste(text.clone())),
    }
    console.draw();
}

/// Answers what the core wants to know, plan and do for changes: by turns yes, with nothing, with a refusal, a conflict.
fn answer_changes(console: &mut Console, turn: usize) {
    let failure = || RequestFailure::new("It was not done", "made up", "try again");
    for effect in std::mem::take(&mut console.asked) {
        let message = match effect {
            Effect::Ask(ticket, Request::CheckWritable) => {
                Message::Reply(ticket, Reply::Writable(Ok(WriteState { audited: true, ..WriteState::default() })))
            }
            Effect::Ask(ticket, Request::Plan(_)) => {
                let danger = [ChangeDanger::Safe, ChangeDanger::Guarded, ChangeDanger::Grave][turn % 3];
                let refused = turn % 7 == 6;
                let planned = plan("made.up", danger, &removal());
                Message::Reply(
                    ticket,
                    Reply::Planned(if refused { Err(Refusal::Failed(failure())) } else { Ok(Box::new(planned)) }),
                )
            }
            Effect::Ask(ticket, Request::Apply { reason, .. }) => {
                let message = "moved".to_owned();
                let conflict = Refusal::Conflict { message, rows: Vec::new(), now: vec![None] };
                let refusal = (turn % 5 == 4).then_some(conflict);
                let receipts = if refusal.is_some() { Vec::new() } else { vec![(0, receipt("made.up", turn as i64))] };
                Message::Reply(ticket, Reply::Applied(reason, AppliedPlan { receipts, refusal }))
            }
            Effect::Ask(ticket, Request::LoadTrail(before)) => {
                let entries = if before.is_none() {
                    vec![entry(2, "undo", Some(1)), entry(1, "signal", None)]
                } else {
                    Vec::new()
                };
                Message::Reply(ticket, Reply::Trail(Ok(entries)))
            }
            Effect::After(ticket, _) if turn.is_multiple_of(2) => Message::Elapsed(ticket),
            _ => continue,
        };
        console.tell(message);
        console.draw();
    }
}

fn continues(database: Database, acts: &[Act], look: &Look) {
    let mut console = Console::new(database, 160, 50);
    console.model.context.changing.unlocked = true;
    for (turn, act) in acts.iter().enumerate() {
        perform(&mut console, act);
        answer_changes(&mut console, turn);
        let buffer = console.draw_with(look);
        let dangerous = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}');
        assert!(buffer.content.iter().all(|cell| !cell.symbol().chars().any(dangerous)), "after {act:?}");
        if let Some(browse) = console.model.at::<ListScreen>() {
            assert!(browse.window.len() <= 500);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_small_world_survives_anything(acts in acts()) {
        continues(world(), &acts, &Look::new(Theme::dark(), Glyphs::unicode()));
    }

    #[test]
    fn a_long_list_survives_anything(acts in acts()) {
        continues(many(700), &acts, &Look::new(Theme::mono(), Glyphs::ascii()));
    }

    #[test]
    fn an_empty_database_survives_anything(acts in acts()) {
        continues(Database::default(), &acts, &Look::new(Theme::light(), Glyphs::unicode()));
    }
}
