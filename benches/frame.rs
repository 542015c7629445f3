//! Duration of a frame: one key through the core, and the whole screen drawn at 200 x 60. The budget is 4 ms.

use std::collections::VecDeque;

use chrono::DateTime;
use divan::Bencher;
use mnemoscope::console::Painter;
use mnemoscope::console::core::key::{Code, Key};
use mnemoscope::console::core::key_map::KeyMap;
use mnemoscope::console::core::request::Content;
use mnemoscope::console::core::zone::ShownZone;
use mnemoscope::console::core::{ConsoleSettings, Effect, Message, OpenedDatabase, Reply, Request};
use mnemoscope::console::{Model, update};
use mnemoscope::memory::chain::Chain;
use mnemoscope::memory::mask::Mask;
use mnemoscope::memory::query::{Capability, EpisodeContext, Page, PageStart, Query};
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
        let (ticket, reply) = match effect {
            Effect::Ask(ticket, Request::LoadPage(query)) => (ticket, Reply::Page(Ok(page(&query)))),
            Effect::Ask(ticket, Request::LoadDetail(..)) => {
                (ticket, Reply::Detail(Ok(Some(Content::Episode(Box::new(long_episode()))))))
            }
            _ => continue,
        };
        waiting.extend(update(model, Message::Reply(ticket, reply)));
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
        own_themes: Vec::new(),
        keys: KeyMap::default(),
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

/// An episode with as many segments, canvas events and signals as nobody should have.
fn long_episode() -> EpisodeContext {
    const MOMENTS: usize = 2_000;
    let at =
        |number: usize| json!(DateTime::from_timestamp(1_781_000_000 + number as i64 * 37, 0).map(|t| t.to_rfc3339()));
    let rows = |entity: Entity, step: usize, values: &[(&str, serde_json::Value)]| {
        let row = |number: usize| {
            let mut row = Row::empty(entity);
            row.set("id", json!(format!("{entity}_{number}")));
            row.set("created_at", at(number));
            values.iter().for_each(|(column, value)| row.set(column, value.clone()));
            row
        };
        (0..MOMENTS).step_by(step).map(row).collect::<Vec<Row>>()
    };
    let text = json!("user: where is the parcel?\nassistant: in Zürich, since yesterday. ".repeat(8));
    EpisodeContext {
        episode: row(0),
        segments: rows(Entity::Segment, 1, &[("kind", json!("message")), ("content", text)]),
        canvas: rows(Entity::CanvasEvent, 5, &[("action", json!("present")), ("canvas_id", json!("c"))]),
        feedback: rows(Entity::Feedback, 100, &[("kind", json!("rating"))]),
        chain: Chain { ids: vec!["ep_000000".to_owned()], children: Vec::new(), cycle: false, missing_parent: None },
        relatives: std::collections::BTreeMap::new(),
        is_cut: false,
        utility: rows(Entity::UtilityEvent, 50, &[("signal", json!("ignored"))]),
        links: Vec::new(),
        memories: Vec::new(),
        events: Vec::new(),
        accesses: Vec::new(),
        more: std::collections::BTreeMap::new(),
        findings: Vec::new(),
    }
}

/// A key on the first screen, in the overview of a long episode and in its story.
#[divan::bench(args = ["1", "2\r", "2\r.t"], sample_count = 300)]
fn key_at(bencher: Bencher, keys: &str) {
    let mut model = model();
    for key in keys.chars() {
        let code = if key == '\r' { Code::Enter } else { Code::Char(key) };
        let effects = update(&mut model, press(code));
        settle(&mut model, effects);
    }
    let mut painter = Painter::default();
    let look = Look::new(Theme::dark(), Glyphs::unicode());
    bencher.bench_local(|| key_to_frame(&mut model, &mut painter, &look, Code::Down));
}

/// Processes a key: updates the model, and draws the frame that shows it.
fn key_to_frame(model: &mut Model, painter: &mut Painter, look: &Look, code: Code) -> Buffer {
    let effects = update(model, press(code));
    settle(model, effects);
    let mut buf = Buffer::empty(SCREEN);
    let drawn = painter.draw(model, look, &mut buf);
    let effects = update(model, Message::Drawn(drawn.measures));
    settle(model, effects);
    buf
}

#[divan::bench(args = [Code::Down, Code::PageDown], sample_count = 1000)]
fn update_and_draw(bencher: Bencher, code: Code) {
    let mut model = model();
    let mut painter = Painter::default();
    let look = Look::new(Theme::dark(), Glyphs::unicode());
    bencher.bench_local(|| key_to_frame(&mut model, &mut painter, &look, code));
}

fn main() {
    divan::main();
}
