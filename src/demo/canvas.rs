//! Canvases of the demo, and their use: sheets are closed at once, charts looked at, forms filled.

use serde_json::{Value as Json, json};

use super::calendar::{SECOND, stamp};
use super::chance::Chance;
use super::ids::Ids;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{CANVAS, DemoRow};
use super::topics::CanvasShow;

const FIELDS: [&str; 5] = ["name", "email", "phone", "city", "amount"];

/// Canvas type, component type, and the least and most seconds that it stays open.
fn look(show: CanvasShow) -> (&'static str, &'static str, (i64, i64)) {
    match show {
        CanvasShow::Sheet => ("sheets", "table", (5, 25)),
        CanvasShow::Line => ("charts", "line_chart", (18, 95)),
        CanvasShow::Bar => ("charts", "bar_chart", (15, 80)),
        CanvasShow::Doc => ("docs", "rich_text", (8, 120)),
        CanvasShow::Mail => ("email", "draft", (10, 60)),
        CanvasShow::Form => ("forms", "form", (30, 240)),
        CanvasShow::Shell => ("terminal", "shell", (20, 300)),
        CanvasShow::Diff => ("coding", "diff", (25, 200)),
        CanvasShow::Board => ("orchestration", "board", (10, 90)),
        CanvasShow::Custom => ("generic", "heat_map", (12, 70)),
    }
}

/// The canvas events of an episode, in time order.
pub fn events(moment: &EpisodeFacts<'_>, ids: &mut Ids) -> Vec<DemoRow> {
    let mut chance = moment.chance("canvas");
    let count = chance.weighted(&[0.45, 0.4, 0.15]).max(usize::from(moment.rich));
    let mut rows = Vec::new();
    for part in 0..count {
        let show = *chance.pick(&moment.topic.shows);
        let canvas = ids.next("canvas");
        let mut clock = moment.within((part as f64 + 0.3) / (count as f64 + 0.5));
        for (action, wait, metadata) in session(moment, show, &mut chance) {
            clock += wait;
            if clock > moment.anchor {
                break;
            }
            let (kind, component, _) = look(show);
            rows.push(
                DemoRow::new(&CANVAS)
                    .with("id", ids.next("cv"))
                    .with("episode_id", &moment.id)
                    .with("session_id", &moment.session)
                    .with("agent_id", moment.agent().id)
                    .with("user_id", &moment.person.id)
                    .with("canvas_id", &canvas)
                    .with("canvas_type", kind)
                    .with("component_type", component)
                    .with("component_name", format!("{} {}", moment.topic.name, component.replace('_', " ")))
                    .with("action", action)
                    .with("metadata", metadata)
                    .with("created_at", stamp(clock)),
            );
        }
    }
    rows.sort_by(|a, b| a.text("created_at").cmp(b.text("created_at")));
    rows
}

/// Generates the events on one canvas: action, time since the last one, and its details.
fn session(moment: &EpisodeFacts<'_>, show: CanvasShow, chance: &mut Chance) -> Vec<(&'static str, i64, Json)> {
    let mut happens = vec![("present", 0, presented(moment, show, chance))];
    let corrected = !moment.outcome.pleases() && chance.is(0.45);
    if corrected || chance.is(0.2) {
        let by = if corrected { "user" } else { "agent" };
        let changed = format!("row {}", chance.between(1, 60));
        happens.push(("update", chance.between(4, 40) * SECOND, json!({"by": by, "changed": [changed]})));
    }
    let (_, _, (least, most)) = look(show);
    let mut open = chance.between(least, most);
    // Most tables get only a glance.
    let glance = show == CanvasShow::Sheet && chance.is(0.75) || chance.is(0.04);
    let acts = match show {
        CanvasShow::Form => chance.is(0.75),
        CanvasShow::Mail => moment.outcome.pleases() || chance.is(0.4),
        CanvasShow::Shell | CanvasShow::Diff => chance.is(0.7),
        CanvasShow::Board => chance.is(0.4),
        _ => false,
    };
    if glance {
        let micros = chance.between(1_100_000, 4_700_000);
        happens.push(("close", micros, json!({"open_seconds": micros as f64 / SECOND as f64})));
        return happens;
    }
    if acts {
        open /= 2;
        let (action, metadata) = acted(moment, show, chance);
        happens.push((action, open.max(2) * SECOND, metadata));
    }
    if chance.is(0.85) {
        let micros = open.max(6) * SECOND + chance.between(0, 999_999);
        happens.push(("close", micros, json!({"open_seconds": micros as f64 / SECOND as f64})));
    }
    happens
}

fn presented(moment: &EpisodeFacts<'_>, show: CanvasShow, chance: &mut Chance) -> Json {
    match show {
        CanvasShow::Sheet => json!({"rows": chance.between(12, 900), "columns": chance.between(3, 14)}),
        CanvasShow::Line | CanvasShow::Bar => json!({"data_points": chance.between(7, 180), "title": moment.title}),
        CanvasShow::Doc => json!({"words": chance.between(80, 1_400), "title": moment.title}),
        CanvasShow::Mail => {
            json!({"to": moment.words.fill("{colleague_mail}", chance), "subject": moment.title})
        }
        CanvasShow::Form => json!({"form_fields": FIELDS, "prefilled": ["name", "email"]}),
        CanvasShow::Shell => {
            json!({"command": format!("{} --for {}", moment.topic.workflow, moment.words.word("ref"))})
        }
        CanvasShow::Diff => json!({"files": chance.between(1, 9), "added": chance.between(2, 160),
            "removed": chance.between(0, 90)}),
        CanvasShow::Board => json!({"steps": moment.topic.steps.len(), "waiting_for": moment.words.word("colleague")}),
        CanvasShow::Custom => json!({"component": "heat-map-by-region", "version": chance.between(1, 4)}),
    }
}

fn acted(moment: &EpisodeFacts<'_>, show: CanvasShow, chance: &mut Chance) -> (&'static str, Json) {
    match show {
        CanvasShow::Form => {
            let person = moment.person;
            let done = if moment.outcome.pleases() { 5 } else { chance.between(2, 4) as usize };
            let all = [
                json!(person.name),
                json!(person.mail),
                json!(person.phone),
                json!(moment.words.word("city")),
                json!(chance.between(120, 64_000)),
            ];
            let values: serde_json::Map<String, Json> =
                FIELDS.iter().map(|f| (*f).to_owned()).zip(all).take(done).collect();
            ("submit", json!({"form_fields": FIELDS, "completed": FIELDS[..done.min(5)], "values": values}))
        }
        CanvasShow::Mail => ("submit", json!({"approved": true, "edited": chance.is(0.3)})),
        CanvasShow::Board => ("submit", json!({"approved_steps": moment.topic.steps.len()})),
        _ if moment.outcome == EpisodeEnd::Failure => {
            ("execute", json!({"exit_code": 1, "error": "stopped with an error"}))
        }
        _ => ("execute", json!({"exit_code": 0, "duration_ms": chance.between(40, 90_000)})),
    }
}
