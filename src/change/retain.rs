//! Retention for every kind of row: deletes what the rules no longer keep, with dependents, in one plan.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use chrono::{TimeDelta, Utc};
use serde_json::json;

use super::draft::{Draft, check_id, writable};
use super::feedback::writable as writable_source;
use super::held::HeldRows;
use super::plan::{ChangeDanger, Plan};
use super::remove::RowKeys;
use super::{ChangeError, now, remove};
use crate::lab::{each, silent};
use crate::memory::Entity;
use crate::memory::digest::wide_digest;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::pages::PageStore;
use crate::memory::query::Query;
use crate::memory::retention::overdue::{LastUses, OverdueFate, OverdueRows, OverdueTally, RowsThatStay};
use crate::memory::retention::{ReadRule, RetentionRules};
use crate::memory::{counted, thousands, time, workflow};
use crate::store::encode::{LocatedRow, leads_back};
use crate::store::scratch::scratch;
use crate::store::stored::Mutation;
use crate::store::{Store, StoreError};

/// Public fact of a plan that deletes unused rows: by entity, the time from which a use keeps a row.
const UNUSED_SINCE: &str = "unused_since";

/// Days for which uses are read again before a plan is applied: a use may be recorded some time after it happened.
const LATE: i64 = 1;

/// Statuses of an episode whose run has ended.
const ENDED: [&str; 4] = ["closed", "abandoned", "summarized", "archived"];

/// Most rows of one plan; the next one continues.
const MOST: usize = 2_500;

/// Bytes of located rows after which one plan takes no more.
const LOCATED: usize = 8 << 20;

/// The rows that the rules no longer keep, by entity, with the first `most` ids of each; rows under a hold, and rows
/// without an identifying id, are counted separately.
///
/// # Errors
/// [`ChangeError::Usage`] for invalid rules, [`ChangeError::Refused`] if a rule cannot be evaluated here; otherwise the
/// engine's refusal, or no room for data that does not fit in memory.
pub async fn overdue(
    store: &Store,
    rules: &RetentionRules,
    held: &HeldRows,
    most: usize,
) -> Result<Vec<(Entity, OverdueRows)>, ChangeError> {
    let rules = rules.read(Utc::now()).map_err(ChangeError::Usage)?;
    let entities: BTreeSet<Entity> = rules.iter().map(|rule| rule.entity).collect();
    let mut found = Vec::new();
    for entity in entities {
        let own: Vec<&ReadRule> = rules.iter().filter(|rule| rule.entity == entity).collect();
        let uses = if own.iter().any(|rule| rule.unused_since().is_some()) {
            last_uses(store, entity).await?
        } else {
            LastUses::new(scratch)
        };
        let mut columns: Vec<&'static str> = own.iter().flat_map(|rule| rule.columns()).collect();
        let sources = store.sources_of(entity)?;
        // If nothing can be written, planning says so.
        let some_are_written = sources.iter().any(|source| writable_source(source).is_ok());
        // Some stores keep removed rows with a mark: they do not count.
        let marked = sources.iter().any(|source| source.marks_removed());
        columns.extend(held.columns(entity));
        let open = if entity == Entity::WorkflowEvent { OpenRuns::of(store).await? } else { OpenRuns::none() };
        columns.extend(Entity::column(entity, "run_id").map(|column| column.name));
        columns.extend(Entity::column(entity, "status").filter(|_| marked).map(|column| column.name));
        columns.sort_unstable();
        columns.dedup();
        let mut tally = OverdueTally::new(&own, uses.end()?, most, scratch);
        store
            .walks()
            .each_sourced(&Query { columns: Some(columns), ..Query::new(entity) }, |source, row| {
                if !marked || row.text("status") != Some("deleted") {
                    let fate = if row.id().is_empty() || source.is_some_and(|source| !leads_back(source)) {
                        OverdueFate::Unnamed
                    } else if held.keeps(&row) {
                        OverdueFate::Held
                    } else if row.text("run_id").is_some_and(|run| open.has(run)) {
                        OverdueFate::Running
                    } else if some_are_written && source.is_some_and(|source| writable_source(source).is_err()) {
                        OverdueFate::ReadOnly
                    } else {
                        OverdueFate::Goes
                    };
                    tally.row(&row, fate);
                }
                ControlFlow::Continue(())
            })
            .await?;
        open.pages.check()?;
        held.check()?;
        found.push((entity, tally.end()?));
    }
    Ok(found)
}

/// Bytes of run hashes in memory.
const RUNS: usize = 8 << 20;

/// Unfinished runs, by their episodes or logs: an engine resumes them from their log.
#[derive(Debug)]
struct OpenRuns {
    pages: PageStore,
    /// Runs with the beginning of a log.
    begun: DigestSet,
    /// Runs that ended, by their log or episode.
    ended: DigestSet,
    /// Runs that have not ended, by their episode: this counts whatever an earlier attempt left in the log.
    open: DigestSet,
}

impl OpenRuns {
    fn none() -> Self {
        let pages = PageStore::new(RUNS, scratch);
        let [begun, ended, open] = [(); 3].map(|()| DigestSet::new(&pages));
        OpenRuns { pages, begun, ended, open }
    }

    async fn of(store: &Store) -> Result<Self, ChangeError> {
        let mut runs = OpenRuns::none();
        let columns = vec!["id", "run_id", "kind", "created_at"];
        let query = Query { columns: Some(columns), ..Query::new(Entity::WorkflowEvent) };
        each(store, &query, &silent, |row| {
            let (Some(run), kind) = (row.text("run_id"), row.text("kind").unwrap_or_default()) else { return };
            if workflow::begins_run(kind) {
                runs.begun.insert(wide_digest(run));
            }
            if workflow::ends_run(kind) {
                runs.ended.insert(wide_digest(run));
            }
        })
        .await?;
        if store.sources_of(Entity::Episode).is_ok() {
            let columns = vec!["id", "execution_ids", "status", "started_at"];
            let query = Query { columns: Some(columns), ..Query::new(Entity::Episode) };
            each(store, &query, &silent, |row| {
                let Some(status) = row.text("status") else { return };
                let told = if ENDED.contains(&status) { &mut runs.ended } else { &mut runs.open };
                for run in row.list("execution_ids").into_iter().chain([row.id()]) {
                    told.insert(wide_digest(run));
                }
            })
            .await?;
        }
        Ok(runs)
    }

    fn has(&self, run: &str) -> bool {
        let run = wide_digest(run);
        self.open.contains(run) || self.begun.contains(run) && !self.ended.contains(run)
    }
}

/// Returns the time of the last use of each row.
async fn last_uses(store: &Store, entity: Entity) -> Result<LastUses, ChangeError> {
    let unknown = |why: &str| ChangeError::Refused(format!("`unused_for` of {} is unknown: {why}", entity.title()));
    if let Some(reason) = rests_on(entity).iter().find_map(|used_by| store.report().unseen(*used_by)) {
        return Err(unknown(&format!(
            "it draws conclusions from missing uses, and {reason}. Run it with a role that sees every row"
        )));
    }
    let mut last = LastUses::new(scratch);
    let found = uses(store, entity, None, &mut |id, at| last.add(id, at)).await?;
    if found.recalls > 0 && found.recalled == 0 {
        return Err(unknown("recalls are recorded here, but not which rows they returned"));
    }
    match store.sources_of(Entity::Access) {
        _ if found.recalled + found.others > 0 => Ok(last),
        Err(missing) => Err(unknown(&missing.to_string())),
        Ok(_) => Err(unknown("nothing here records which rows were recalled")),
    }
}

/// Entities whose rows record uses of this one.
fn rests_on(entity: Entity) -> &'static [Entity] {
    match entity {
        Entity::Episode => &[Entity::Access],
        Entity::Case => &[Entity::Access, Entity::Case, Entity::MemoryLink, Entity::Episode],
        _ => &[Entity::Access, Entity::MemoryLink, Entity::Episode],
    }
}

/// Numbers of recalls, of the rows that they gave, and of other uses.
struct FoundUses {
    recalls: u64,
    recalled: u64,
    others: u64,
}

/// Callback for the id of a used row, and the time.
type TakeUse<'a> = &'a mut (dyn FnMut(&str, &str) + Send);

/// Passes on the uses of rows, all or since a time: by a recall that returned a row, a case that names it as recalled,
/// or a linked episode.
async fn uses(store: &Store, entity: Entity, since: Option<&str>, take: TakeUse<'_>) -> Result<FoundUses, ChangeError> {
    let (recalls, recalled) = listed(store, Entity::Access, "ids", since, take).await?;
    let mut others = 0;
    if entity == Entity::Case {
        others += listed(store, Entity::Case, "reference_case_ids", since, take).await?.1;
    }
    if entity != Entity::Episode {
        others += linked(store, since, take).await?;
    }
    Ok(FoundUses { recalls, recalled, others })
}

/// The rows of an entity with two columns, an id and a time; only those since a time, if given.
fn timed(entity: Entity, columns: Vec<&'static str>, time: &'static str, since: Option<&str>) -> Query {
    let since = since.map(|since| Filter::new(time, Operator::GreaterOrEqual, Operand::Time(since.to_owned())));
    Query { columns: Some(columns), filters: since.into_iter().collect(), ..Query::new(entity) }
}

/// Passes on the uses that rows list, at the row's time. Returns the number of rows and of uses.
async fn listed(
    store: &Store,
    entity: Entity,
    list: &'static str,
    since: Option<&str>,
    take: TakeUse<'_>,
) -> Result<(u64, u64), ChangeError> {
    let (mut rows, mut uses) = (0, 0);
    each(store, &timed(entity, vec!["id", list, "created_at"], "created_at", since), &silent, |row| {
        let at = row.text("created_at").unwrap_or_default();
        rows += 1;
        for id in row.list(list).into_iter().filter(|id| *id != row.id()) {
            uses += 1;
            take(id, at);
        }
    })
    .await?;
    Ok((rows, uses))
}

/// Passes on the uses by linked episodes, at the episode's time. Returns the number of links.
async fn linked(store: &Store, since: Option<&str>, take: TakeUse<'_>) -> Result<u64, ChangeError> {
    if store.sources_of(Entity::MemoryLink).is_err() || store.sources_of(Entity::Episode).is_err() {
        return Ok(0);
    }
    let (mut times, mut episodes) = (LastUses::new(scratch), 0);
    each(store, &timed(Entity::Episode, vec!["id", "started_at"], "started_at", since), &silent, |row| {
        episodes += 1;
        times.add(row.id(), row.text("started_at").unwrap_or_default());
    })
    .await?;
    let times = times.end()?;
    let mut links = 0;
    if since.is_some() && episodes == 0 {
        return Ok(links);
    }
    let query = Query { columns: Some(vec!["episode_id", "memory_id"]), ..Query::new(Entity::MemoryLink) };
    each(store, &query, &silent, |row| {
        links += 1;
        if let (Some(episode), Some(memory)) = (row.text("episode_id"), row.text("memory_id"))
            && let Some(at) = times.last(episode)
        {
            take(memory, &at);
        }
    })
    .await?;
    times.check()?;
    Ok(links)
}

/// By entity, the time from which a use keeps an unused row. If rows may also be deleted by another rule, it is now.
fn unused_since(rules: &RetentionRules) -> Result<BTreeMap<&'static str, String>, ChangeError> {
    let late = Utc::now() - TimeDelta::days(LATE);
    let (late, now) = (time::spell_utc(late).unwrap_or_default(), now());
    let rules = rules.read(Utc::now()).map_err(ChangeError::Usage)?;
    let mut times = BTreeMap::new();
    for rule in &rules {
        let Some(since) = rule.unused_since() else { continue };
        let is_by_use = rules.iter().filter(|other| other.entity == rule.entity).all(|o| o.unused_since().is_some());
        let since = if is_by_use { late.as_str().max(since) } else { now.as_str() };
        let known: &mut String = times.entry(rule.entity.name()).or_default();
        *known = since.max(known).to_owned();
    }
    Ok(times)
}

/// A row that a plan deletes as unused, and that was used since, as text.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn used_since(store: &Store, plan: &Plan) -> Result<Option<String>, ChangeError> {
    let Some(read) = plan.facts[UNUSED_SINCE].as_object() else { return Ok(None) };
    let changed = |all: bool| {
        let wanted = plan.mutations.iter().filter(move |change| all || matches!(change, Mutation::Delete(_)));
        RowKeys::of(wanted.filter_map(Mutation::rows).map(Cow::Owned))
    };
    // Some layouts keep the stored row and mark it as removed.
    let (deleted, changed) = (changed(false), changed(true));
    for (name, since) in read {
        let (Some(entity), Some(since)) = (Entity::parse(name), since.as_str()) else { continue };
        let (mut used, sources) = (BTreeSet::new(), store.sources_of(entity)?);
        let mut take = |id: &str, _: &str| {
            used.insert(id.to_owned());
        };
        uses(store, entity, Some(since), &mut take).await?;
        for id in used.iter().filter(|id| check_id(entity, id).is_ok()) {
            for &source in &sources {
                let Some(found) = store.encoder().locate_in(source, id).await? else { continue };
                let taken = if found.goes() { &deleted } else { &changed };
                if taken.hold(&found.table(), |column| found.image.get(column).cloned()) {
                    return Ok(Some(format!("{} {id}", entity.title())));
                }
            }
        }
    }
    Ok(None)
}

/// Rows that one plan deletes, and the number that it leaves.
#[derive(Debug, Clone)]
struct RowsToGo {
    entity: Entity,
    ids: Vec<String>,
    /// Total number of rows to delete by the rules.
    overdue: usize,
    stay: RowsThatStay,
    of: usize,
}

/// Plans the deletions of the rules. Rows of people under a hold stay.
///
/// # Errors
/// As [`overdue`]; [`ChangeError::Refused`] if more than the allowed share of an entity's rows would be deleted.
pub async fn plan(store: &Store, rules: &RetentionRules) -> Result<Plan, ChangeError> {
    writable(store).await?;
    let (held, unused) = (HeldRows::of(store).await?, unused_since(rules)?);
    let mut going = Vec::new();
    let mut room = MOST;
    for (entity, found) in overdue(store, rules, &held, MOST).await? {
        let (of, overdue) = (found.of, found.going.count() as usize);
        let all = overdue + found.stay.held;
        if !rules.allows(all, of) {
            return Err(ChangeError::Refused(format!(
                "{all} of {of} rows of {} would be deleted, more than the share of {}: check the rules, or raise \
                 `share` to {:.2}",
                entity.title(),
                rules.share(),
                (100.0 * all as f64 / of as f64).ceil() / 100.0
            )));
        }
        let mut ids = found.going.in_order();
        // Two sources may have rows with the same id.
        ids.dedup();
        ids.truncate(room);
        room -= ids.len();
        going.push(RowsToGo { entity, ids, overdue, stay: found.stay, of });
    }
    let read = rules.read(Utc::now()).map_err(ChangeError::Usage)?;
    let mut aside = Vec::new();
    let mut some = going.clone();
    loop {
        let all: usize = some.iter().map(|rows| rows.ids.len()).sum();
        let draft = Draft::new(store, remove::RETAIN, ChangeDanger::Guarded).await?;
        let mut draft = if all > 1 { draft.limited() } else { draft.limited_for_one() };
        let taken = take(&mut draft, &held, &read, &mut some).await?;
        if !draft.is_full() {
            draft.disclosures.extend(aside);
            draft.facts.extend((!unused.is_empty()).then(|| (UNUSED_SINCE.to_owned(), json!(unused))));
            return Ok(draft.seal());
        }
        if all > 1 {
            let mut left = taken.div_ceil(2).min(all - 1);
            for rows in &mut some {
                rows.ids.truncate(left);
                left -= rows.ids.len();
            }
            continue;
        }
        // Only the row itself: the others are not affected.
        for (rows, one) in going.iter_mut().zip(&some).filter(|(_, one)| !one.ids.is_empty()) {
            remove::set_aside(&mut aside, rows.entity, &one.ids[0])?;
            rows.ids.retain(|id| *id != one.ids[0]);
            rows.overdue -= 1;
        }
        some.clone_from(&going);
    }
}

/// Adds deletions to a plan, with what must be reported. Returns their number.
async fn take(
    draft: &mut Draft<'_>,
    held: &HeldRows,
    rules: &[ReadRule],
    going: &mut [RowsToGo],
) -> Result<usize, ChangeError> {
    let mut located = Vec::new();
    let mut size = 0;
    for rows in going {
        let (mut stay, mut seen, before) = (rows.stay, 0, located.len());
        for id in &rows.ids {
            if size >= LOCATED {
                break;
            }
            seen += 1;
            if let Some(row) = locate(draft, held, rules, (rows.entity, id), &mut stay).await? {
                size += row.image.size();
                located.push(row);
            }
        }
        rows.ids.truncate(seen);
        let kind = rows.entity.title();
        draft.disclosures.extend(reasons(&kind, &stay, rows.overdue.saturating_sub(seen)));
        let goes = format!("{{#}} of {} rows of {kind} {{goes|go}}", thousands(rows.of));
        draft.effects.extend(counted(located.len() - before, &goes));
    }
    held.check()?;
    if !located.is_empty() && !draft.is_full() {
        remove::take(draft, &located, None).await?;
    }
    Ok(located.len())
}

/// Finds an overdue row that may go; one that has to stay is counted.
async fn locate<'s>(
    draft: &mut Draft<'s>,
    held: &HeldRows,
    rules: &[ReadRule],
    (entity, id): (Entity, &str),
    stay: &mut RowsThatStay,
) -> Result<Option<LocatedRow<'s>>, ChangeError> {
    let found = match draft.seek(entity, id).await {
        Err(ChangeError::Store(StoreError::Ambiguous(..))) => {
            stay.unnamed += 1;
            return Ok(None);
        }
        found => found?,
    };
    let Some(found) = found else { return Ok(None) };
    writable_source(found.source)?;
    if held.keeps(&found.row) {
        stay.held += 1;
        return Ok(None);
    }
    // Someone may have changed it since all rows were read.
    let goes = rules.iter().any(|rule| rule.entity == entity && rule.takes(&found.row));
    Ok(goes.then_some(found))
}

/// Sentences about overdue rows of a kind that stay, and about those that the next plan takes.
fn reasons(kind: &str, stay: &RowsThatStay, left: usize) -> Vec<String> {
    let row = format!("{{row of|rows of}} {kind}");
    let told = [
        (stay.held, format!("{{#}} {row} {{stays: its person is|stay: their people are}} under a legal hold")),
        (
            stay.unnamed,
            format!(
                "{{#}} overdue {row} {{stays: it has|stay: they have}} no id, one that several rows have, or one that \
                 the layout builds from other values, so {{it is|they are}} read-only"
            ),
        ),
        (
            stay.undated,
            format!(
                "{{#}} {row} {{stays: how old it is, or when it was used last, is|stay: how old they are, or when \
                 they were used last, is}} unknown, because {{a time|times}} cannot be read or {{stands|stand}} for \
                 none; `keep` does not count {{it|them}}"
            ),
        ),
        (
            stay.unowned,
            format!(
                "{{#}} {row} {{stays: it names|stay: they name}} neither user nor agent, so `keep` does not count \
                 {{it|them}}"
            ),
        ),
        (
            stay.running,
            format!(
                "{{#}} overdue {row} {{stays|stay}}: {{its run has|their runs have}} not ended, and {{needs its|need \
                 their}} log to go on"
            ),
        ),
        (stay.read_only, format!("{{#}} overdue {row} {{stays|stay}}: the layout can only read {{it|them}}")),
        (left, format!("{{#}} more {row} {{is overdue|are overdue}}: one plan takes as many as fit; run it again")),
    ];
    told.iter().filter_map(|(number, sentence)| counted(*number, sentence)).collect()
}
