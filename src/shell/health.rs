//! Findings and migrations for the core: a search that reports findings as it runs, and the state of migrations.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::change;
use crate::change::findings::{self, BriefLimit, FindingNews, FindingRequest};
use crate::change::migrate::{self, DoneMigration, MigrationState};
use crate::change::plan::migration::PendingMigration;
use crate::config::{self, desk};
use crate::console::core::{Reply, RequestFailure};
use crate::console::screens::findings::LookNews;
use crate::console::screens::migrations::{MigrationItem, MigrationList, MigrationStanding};
use crate::memory::Entity;
use crate::memory::findings::{EarlierLook, NotApplicable, OffendingQuote, quote};
use crate::store::Store;

use super::change::failure_of;
use super::load;

const EXAMPLES: usize = 50;

/// Limits of a look that runs beside other work: enough for a hundred thousand episodes.
const BRIEF: BriefLimit = BriefLimit { rows: 2_000_000, time: Duration::from_secs(30) };

/// Looks through the database; `replies` receives findings as they are found.
pub async fn look(store: &Store, brief: bool, replies: impl Fn(Reply) + Sync) -> Result<LookNews, RequestFailure> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut told = |told: FindingNews| {
        let news = match told {
            FindingNews::Found(finding) => {
                *counts.entry(finding.kind.to_owned()).or_default() += finding.count;
                LookNews::Found(Box::new(finding))
            }
            FindingNews::NotApplicable(kind) => LookNews::NotApplicable(kind),
            FindingNews::Read(rows, entity) => LookNews::Read(rows, entity),
            FindingNews::Left(kinds) => LookNews::Left(kinds),
            FindingNews::Muted(kind, count) => {
                LookNews::NotApplicable(NotApplicable { kind, reason: format!("it is muted; {count} were found") })
            }
        };
        replies(Reply::Finding(Ok(news)));
        ControlFlow::Continue(())
    };
    // An unreadable file mutes nothing.
    let muted = config::muted(store.location());
    let (limit, state) = (brief.then_some(BRIEF), config::state_folder());
    let wanted = FindingRequest { examples: EXAMPLES, brief: limit, muted, state, ..FindingRequest::default() };
    // The card offers another look; after a temporary failure it says that one follows automatically.
    let failed = |error: change::ChangeError| {
        let failure = failure_of("Looking for findings ended early", &error);
        let remedy = failure.remedy.filter(|_| failure.passes);
        RequestFailure { remedy, code: None, ..failure }
    };
    findings::look(store, &wanted, &mut told).await.map_err(failed)?;
    if !brief {
        desk::keep_findings(store.location(), &EarlierLook { at: change::now(), counts });
    }
    Ok(LookNews::Done)
}

/// The text in a row that a finding is about.
pub async fn quoted(
    store: &Store,
    kind: &str,
    entity: Entity,
    id: &str,
) -> Result<Option<OffendingQuote>, RequestFailure> {
    let row = store.row(entity, id).await.map_err(|e| load::failure("The text could not be read", &e))?;
    Ok(row.and_then(|row| quote(kind, &row)))
}

pub async fn migrations(store: &Store) -> Result<Box<MigrationList>, RequestFailure> {
    let state = migrate::state(store).await;
    let state = state.map_err(|e| failure_of("The migrations could not be read", &e))?;
    Ok(Box::new(listed(state)))
}

fn listed(state: MigrationState) -> MigrationList {
    let mut items = Vec::new();
    for drift in state.drift {
        let note = Some(drift.message);
        items.push(MigrationItem { note, diff: drift.diff, ..named(drift.name, MigrationStanding::Drifted) });
    }
    let pending = |p| MigrationItem { note: state.refused.clone(), ..item(p, MigrationStanding::Pending) };
    items.extend(state.pending.into_iter().map(pending));
    for offered in state.optional {
        let standing = if offered.applied { MigrationStanding::Applied } else { MigrationStanding::Optional };
        items.push(MigrationItem { option: Some(offered.option), ..item(offered.migration, standing) });
    }
    for done in state.history {
        match items.iter_mut().find(|i| i.migration.name == done.name) {
            Some(item) if item.note.is_none() => item.note = Some(record(&done)),
            Some(_) => {}
            None => {
                let note = Some(record(&done));
                let DoneMigration { version, name, effect, sql, .. } = done;
                let migration = PendingMigration { version, name, sql, effect, ..PendingMigration::default() };
                items.push(MigrationItem { note, ..item(migration, MigrationStanding::Applied) });
            }
        }
    }
    items.extend(state.present.into_iter().map(|name| named(name, MigrationStanding::Present)));
    let line = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("  ");
    let foreign = state.foreign.into_iter().map(|f| (f.table, f.rows.into_iter().map(line).collect())).collect();
    MigrationList { items, layouts: state.layouts, foreign }
}

/// Describes when a migration was applied, with the beginning of its checksum, which identifies its statements.
fn record(done: &DoneMigration) -> String {
    let checksum: String = done.checksum.chars().take(12).collect();
    format!("on {}, checksum {checksum}…", done.applied_at.get(..16).unwrap_or(&done.applied_at).replace('T', " "))
}

fn named(name: String, standing: MigrationStanding) -> MigrationItem {
    item(PendingMigration { name, ..PendingMigration::default() }, standing)
}

fn item(migration: PendingMigration, standing: MigrationStanding) -> MigrationItem {
    let note = migration.goes_on_at.as_ref().map(|step| format!("was stopped: resumes at \"{step}\""));
    MigrationItem { migration, standing, note, diff: String::new(), option: None }
}
