//! Whatever is pressed on whatever screen: it goes on, shows nothing dangerous, and holds little.

use mnemoscope::app::message::Message;
use mnemoscope::app::{Key, Target};
use mnemoscope::ui::{Glyphs, Look, Theme};
use proptest::prelude::*;

use super::fake::{Console, Database, many, world};

const KEYS: &[&str] = &[
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "0",
    "j",
    "k",
    "g",
    "G",
    "pgup",
    "pgdn",
    "enter",
    "esc",
    "tab",
    "l",
    "h",
    "z",
    "f",
    "/",
    "\\",
    "s",
    "<",
    ">",
    "S",
    "space",
    "u",
    "e",
    "y",
    "Y",
    "c",
    "t",
    "o",
    "w",
    "r",
    "M",
    "T",
    "m",
    ":",
    "[",
    "]",
    "?",
    "backspace",
    "up",
    "down",
    "left",
    "right",
    "home",
    "end",
    "delete",
    "ctrl-w",
    "ctrl-u",
    "a",
    "=",
    "'",
    "ctrl-l",
];

#[derive(Debug, Clone)]
enum Act {
    Press(&'static str),
    Resize(u16, u16),
    Click(u16, u16, bool),
    Wheel(u16, u16, bool),
    Paste(String),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        20 => prop::sample::select(KEYS).prop_map(Act::Press),
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
        Act::Resize(width, height) => console.tell(Message::Resize(*width, *height)),
        Act::Click(x, y, twice) => {
            if let Some(target) = console.drawn.hits.at(*x, *y).cloned() {
                console.tell(Message::Click(target, *twice));
            }
        }
        Act::Wheel(x, y, up) => {
            let target = console.drawn.hits.at(*x, *y).cloned().unwrap_or(Target::List);
            console.tell(Message::Wheel(target, *up));
        }
        Act::Paste(text) => console.tell(Message::Paste(text.clone())),
    }
    console.draw();
}

fn goes_on(database: Database, acts: &[Act], look: &Look) {
    let mut console = Console::new(database, 160, 50);
    for act in acts {
        perform(&mut console, act);
        let buffer = console.draw_with(look);
        let dangerous = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}');
        assert!(buffer.content.iter().all(|cell| !cell.symbol().chars().any(dangerous)), "after {act:?}");
        if let Some(browse) = console.model.browse() {
            assert!(browse.window.len() <= 500);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_small_world_survives_anything(acts in acts()) {
        goes_on(world(), &acts, &Look::new(Theme::dark(), Glyphs::unicode()));
    }

    #[test]
    fn a_long_list_survives_anything(acts in acts()) {
        goes_on(many(700), &acts, &Look::new(Theme::mono(), Glyphs::ascii()));
    }

    #[test]
    fn an_empty_database_survives_anything(acts in acts()) {
        goes_on(Database::default(), &acts, &Look::new(Theme::light(), Glyphs::unicode()));
    }
}
