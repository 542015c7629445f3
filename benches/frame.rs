//! How long a frame takes: one key through the core, and the whole screen drawn at 200 x 60. The budget is 4 ms.

use std::collections::VecDeque;

use chrono::DateTime;
use divan::Bencher;
use mnemoscope::console::Painter;
use mnemoscope::console::core::key::{Code, Key};
use mnemoscope::console::core::zone::ShownZone;
use mnemoscope::console::core::{ConsoleSettings, Effect, Message, OpenedDatabase, Reply, Request};
use mnemoscope::console::{Model, update};
use mnemoscope::memory::mask::Mask;
use mnemoscope::memory::query::{Capability, Page, PageStart, Query};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::ui::{Glyphs, Look, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

const SCREEN: Rect = Rect { x: 0, y: 0, width: 200, height: 60 };

fn row(number: usize) -> Row {
    let mut row = Row::empty(Entity::Episode);
    row.set("id", json!(format!("ep_{number:06}")));
    row.set("title", json!(format!("Replay the Friday load number {number} for a customer with a long name")));
    row.set("agent_id", json!("agent_data_steward"));
    row.set("user_id", json!("yara.yilmaz"));
    row.set("outcome", json!("partial"));
    row.set("status", json!("closed"));
    row.set("started_at", json!("2026-06-14T17:41:08.624530Z"));
    row.set("feedback_score", json!(-0.75));
    row.set("utility", json!(0.7));
    row
}

/// Answers what the core asks for, as the shell would, from rows made up.
fn settle(model: &mut Model, effects: Vec<Effect>) {
    let mut waiting: VecDeque<Effect> = effects.into();
    while let Some(effect) = waiting.pop_front() {
        if let Effect::Ask(ticket, Request::LoadPage(query)) = effect {
            let page = page(&query);
            waiting.extend(update(model, Message::Reply(ticket, Reply::Page(Ok(page)))));
        }
    }
}

fn page(query: &Query) -> Page {
    let first = match &query.start {
        PageStart::After(cursor) => cursor.parse().unwrap_or(0),
        PageStart::Before(cursor) => cursor.parse::<usize>().unwrap_or(0).saturating_sub(query.limit),
        PageStart::First | PageStart::Last => 0,
    };
    let rows: Vec<Row> = (first..first + query.limit).map(row).collect();
    let next = Some((first + query.limit).to_string());
    Page { rows, next, previous: (first > 0).then(|| first.to_string()) }
}

fn model() -> Model {
    let capability = |e: &Entity| Capability { name: e.name().to_owned(), available: true, reason: None, remedy: None };
    let opened = OpenedDatabase {
        location: "demo.db".to_owned(),
        layouts: vec!["mnemoscope".to_owned()],
        capabilities: Entity::ALL.iter().map(capability).collect(),
        ..OpenedDatabase::default()
    };
    let settings = ConsoleSettings {
        vector_bytes: 1 << 28,
        theme: "dark".to_owned(),
        theme_chosen: false,
        mouse: true,
        wrap: true,
        zone: ShownZone::default(),
    };
    let mut model = Model::new(opened, settings, Mask::new([7; 32]), false);
    let now = DateTime::from_timestamp(1_781_539_200, 0).expect("a time");
    for message in [Message::Start(now), Message::Resize(SCREEN.width, SCREEN.height), press(Code::Char('2'))] {
        let effects = update(&mut model, message);
        settle(&mut model, effects);
    }
    model
}

fn press(code: Code) -> Message {
    Message::Key(Key { code, ctrl: false, alt: false })
}

#[divan::bench(args = [Code::Down, Code::PageDown], sample_count = 1000)]
fn update_and_draw(bencher: Bencher, code: Code) {
    let mut model = model();
    let mut painter = Painter::default();
    let look = Look::new(Theme::dark(), Glyphs::unicode());
    bencher.bench_local(|| {
        let effects = update(&mut model, press(code));
        settle(&mut model, effects);
        let mut buf = Buffer::empty(SCREEN);
        let drawn = painter.draw(&model, &look, &mut buf);
        let effects = update(&mut model, Message::Drawn(drawn.measures));
        settle(&mut model, effects);
        buf
    });
}

fn main() {
    divan::main();
}
