//! Screens that are too small to draw, or told in lines, and what can never be done in a database.

use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::console::Painter;
use mnemoscope::console::core::{ClickTarget, Effect, Key, Message, Reply, Request};
use mnemoscope::ui::linear::LinearTeller;
use mnemoscope::ui::{Glyphs, Look, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::changes::{applied, plan, planned, removal, unlocked};
use super::fake::{Console, world};

const TOO_SMALL: [(u16, u16); 3] = [(20, 5), (39, 24), (100, 9)];

fn asks(console: &Console) -> bool {
    let writes =
        |request: &Request| matches!(request, Request::Plan(_) | Request::Apply { .. } | Request::CheckWritable);
    console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, request) if writes(request)))
}

fn resize(console: &mut Console, (width, height): (u16, u16)) {
    console.tell(Message::Resize(width, height));
    console.draw();
}

/// A plan of a removal that was drawn and can be confirmed.
fn removing() -> Console {
    let mut console = unlocked(100, 30);
    console.press("5 j c d");
    let (ticket, _) = planned(&mut console);
    let plan = plan("feedback.remove", ChangeDanger::Guarded, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan))));
    console.draw();
    console.wait();
    console
}

#[test]
fn where_nothing_can_be_drawn_no_key_does_anything_but_leave() {
    for size in TOO_SMALL {
        let mut console = unlocked(100, 30);
        console.press("2 c");
        let selected = console.selected();
        resize(&mut console, size);
        console.shows("Too small");
        console.press("d j t c c d U 5 :");
        console.tell(Message::Paste("d".to_owned()));
        console.tell(Message::Click(ClickTarget::ListRow(1), true));
        resize(&mut console, (100, 30));
        assert!(!asks(&console) && console.model.overlays.is_empty(), "{size:?}: {:?}", console.asked);
        assert_eq!(console.selected(), selected, "{size:?}");
        resize(&mut console, size);
        console.press("q");
        assert!(console.asked.contains(&Effect::Quit), "{size:?}");
    }
}

#[test]
fn a_plan_is_applied_only_where_it_is_drawn() {
    for size in TOO_SMALL {
        let mut console = removing();
        resize(&mut console, size);
        console.press("A");
        assert!(!asks(&console), "{size:?}: {:?}", console.asked);
        // The key may come before the next frame.
        console.tell(Message::Resize(100, 30));
        console.tell(Message::Key(Key::parse("A").expect("a key")));
        assert!(!asks(&console), "{size:?}: {:?}", console.asked);
        console.draw();
        console.press("A");
        applied(&mut console);
        let mut console = removing();
        resize(&mut console, size);
        console.press("esc");
        assert!(console.model.overlays.is_empty(), "{size:?}");
    }
}

#[test]
fn a_plan_waits_for_its_first_frame() {
    let mut console = unlocked(100, 30);
    console.tell(Message::Releases);
    console.press("5 j c d");
    let (ticket, _) = planned(&mut console);
    let plan = plan("feedback.remove", ChangeDanger::Guarded, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan))));
    console.tell(Message::Key(Key::parse("A").expect("a key")));
    assert!(!asks(&console), "{:?}", console.asked);
    console.draw();
    console.press("A");
    applied(&mut console);
}

/// The picture of a console that is told in lines, and the lines.
fn told(console: &Console, (width, height): (u16, u16)) -> (Buffer, Vec<String>) {
    let look = Look { spoken: true, ..Look::new(Theme::named("mono").expect("a theme"), Glyphs::unicode()) };
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    Painter::of(true).draw(&console.model, &look, &mut buf);
    let told = LinearTeller::default().tell(&buf, &Painter::moment(&console.model, true));
    (buf, told)
}

#[test]
fn keys_that_may_follow_are_told_alone() {
    for (key, item) in [("c", "d, Remove"), ("t", "c, Confirmed"), ("y", "c, ")] {
        let mut console = unlocked(95, 44);
        console.press("2");
        console.press(key);
        let (_, told) = told(&console, (95, 44));
        assert_eq!(told.first().map(String::as_str), Some(key), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with(item)), "{told:?}");
        assert!(!told.iter().any(|line| line.contains("Reconcile") || line.contains("home")), "{told:?}");
    }
}

#[test]
fn the_terms_of_a_score_are_told_with_their_numbers() {
    let mut console = Console::new(world(), 100, 44);
    console.press("2 j W");
    let (_, told) = told(&console, (100, 44));
    let first = told.iter().find(|line| line.starts_with("selected: 1,")).expect("a ranked row");
    assert!(first.contains("base ") && first.contains("feedback "), "{first}");
    assert!(!told.iter().any(|line| line.contains("B base") || line.contains("C canvas")), "{told:#?}");
}

#[test]
fn panes_are_told_one_after_the_other() {
    let mut consoles = [(95, 44), (200, 60)].map(|size| unlocked(size.0, size.1));
    for key in ["1", "2", "3", "4", "5", "6", "7", "8", "I", "B", "F", "J", "D", "R", "C", "W", "P", "V", "O", "L", "E"]
    {
        for console in &mut consoles {
            console.press(key);
            let size = console.model.context.size;
            let (buf, told) = told(console, size);
            for y in 0..size.1 {
                let row: String = (0..size.0).map(|x| buf[(x, y)].symbol()).collect();
                let beside = ["╮╭", "╯╰"].iter().any(|edges| row.contains(edges));
                assert!(!beside, "{key} at {size:?}: {row}\n{told:#?}");
            }
        }
    }
}

#[test]
fn where_nothing_can_be_unlocked_the_reason_is_told_instead_of_the_key() {
    let mut console = Console::new(world(), 160, 50);
    console.model.context.opened.blocked = Some("this server is a standby".to_owned());
    console.shows("read-only: this server is a standby");
    console.press("5 t c");
    console.shows("this server is a standby");
    console.hides("unlocks");
    console.hides("continues with it");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(_)))));
}
