//! The program as people meet it: in a terminal, with keys, signals, resizes, panics, and with hostile text stored.

#[path = "pty/terminal.rs"]
mod terminal;

use terminal::{Background, Home, Start};

const WHITE: Background = Background::Light("", "\x1b\\");

#[test]
fn keys_typed_before_the_screen_is_up_are_not_lost() {
    let home = Home::new();
    home.demo();
    let answers = [("2", Background::Silent), ("2", WHITE), ("", Background::Light("2", "\x07"))];
    for (typed, background) in answers {
        let mut terminal = Start::new(&home, &["demo.db"]).typed(typed).on(background).run();
        terminal.shows("of 250");
        terminal.press("q");
        assert_eq!(terminal.ended_and_read(), 0, "{background:?}");
        terminal.is_given_back();
    }
}
