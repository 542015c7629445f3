//! Findings and migrations for the core: a look through the database that tells as it goes, and how migrations stand.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::change::findings::{self, Brief, Told, Wanted};
use crate::change::migrate::{self, Done, Pending, State};
use crate::config::mutes;
use crate::console::core::Failure;
use crate::console::core::request::Reply;
use crate::console::screens::findings::News;
use crate::console::screens::migrations::{Item, Listed, Standing};
use crate::memory::findings::NotApplicable;
use crate::store::Store;

/// Examples of each finding.
const EXAMPLES: usize = 50;

/// What a look beside other work may cost: a hundred thousand episodes are within it.
const BRIEF: Brief = Brief { rows: 2_000_000, time: Duration::from_secs(30) };

/// Looks through the database; `replies` hear what is found as it is found.
pub async fn look(store: &Store, brief: bool, replies: impl Fn(Reply) + Sync) -> Result<News, Failure> {
    let mut told = |told: Told| {
        let news = match told {
            Told::Found(finding) => News::Found(Box::new(finding)),
            Told::NotApplicable(kind) => News::NotApplicable(kind),
            Told::Read(rows, entity) => News::Read(rows, entity),
            Told::Left(kinds) => News::Left(kinds),
            Told::Muted(kind, count) => {
                News::NotApplicable(NotApplicable { kind, reason: format!("it is muted; {count} were found") })
            }
        };
        replies(Reply::Finding(Ok(news)));
        ControlFlow::Continue(())
    };
    let muted = mutes::muted(store.location());
    let wanted = Wanted { kind: None, examples: EXAMPLES, brief: brief.then_some(BRIEF), muted };
    let remedy = "r looks again; findings of one kind: findings --kind K";
    let failed =
        |e: crate::change::ChangeError| Failure::new("Looking for findings ended early", e.to_string(), remedy);
    findings::look(store, &wanted, &mut told).await.map(|()| News::Done).map_err(failed)
}

/// How the migrations stand.
pub async fn migrations(store: &Store) -> Result<Box<Listed>, Failure> {
    let state = migrate::state(store).await;
    let state = state.map_err(|e| Failure::new("The migrations could not be read", e.to_string(), "r reads again"))?;
    Ok(Box::new(listed(state)))
}

fn listed(state: State) -> Listed {
    let mut items = Vec::new();
    for drift in state.drift {
        let note = Some(drift.message);
        items.push(Item { note, diff: drift.diff, ..named(drift.name, Standing::Drifted) });
    }
    items.extend(state.pending.into_iter().map(|p| item(p, Standing::Pending)));
    for offered in state.optional {
        let standing = if offered.applied { Standing::Applied } else { Standing::Optional };
        items.push(Item { option: Some(offered.option), ..item(offered.migration, standing) });
    }
    for done in state.history {
        match items.iter_mut().find(|i| i.name == done.name) {
            Some(item) if item.note.is_none() => item.note = Some(record(&done)),
            Some(_) => {}
            None => items.push(Item {
                note: Some(record(&done)),
                effect: done.effect,
                sql: done.sql,
                ..named(done.name, Standing::Applied)
            }),
        }
    }
    items.extend(state.present.into_iter().map(|name| named(name, Standing::Present)));
    let line = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("  ");
    let foreign = state.foreign.into_iter().map(|f| (f.table, f.rows.into_iter().map(line).collect())).collect();
    Listed { items, layouts: state.layouts, foreign }
}

/// When a migration was applied, and the beginning of what tells its statements from others.
fn record(done: &Done) -> String {
    let checksum: String = done.checksum.chars().take(12).collect();
    format!("on {}, checksum {checksum}…", done.applied_at.get(..16).unwrap_or(&done.applied_at).replace('T', " "))
}

fn named(name: String, standing: Standing) -> Item {
    Item {
        name,
        standing,
        effect: String::new(),
        lock_risk: String::new(),
        sql: String::new(),
        steps: Vec::new(),
        note: None,
        diff: String::new(),
        option: None,
    }
}

fn item(pending: Pending, standing: Standing) -> Item {
    Item {
        effect: pending.effect,
        lock_risk: pending.lock_risk,
        sql: pending.sql,
        steps: pending.steps.into_iter().map(|s| (s.name, s.done)).collect(),
        note: pending.goes_on_at.map(|step| format!("was stopped: goes on at \"{step}\"")),
        ..named(pending.name, standing)
    }
}
