//! `layouts test`: tests a layout on a database: reads every row through it, and erases a person on a private copy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::{Value, json};

use super::{CommandFailure, Session, output};
use crate::change::batch::has_place;
use crate::change::purge::verdict::PurgeStatus;
use crate::change::purge::{self, PurgeOptions, PurgeReceipt, subject};
use crate::change::{Author, ChangeError, migrate};
use crate::memory::digest::digest;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, ValueKind, agreeing, counted};
use crate::shell::erasure_desk as desk;
use crate::store::encode::table_of;
use crate::store::{OpenOptions, Store, Target};

/// Most ids followed of one kind of link.
const FOLLOWED: usize = 20_000;
/// Ids requested at a time.
const STRIDE: usize = 500;
/// Share of rows with problems from which a layout is considered wrong.
const MANY: f64 = 0.05;

/// Columns that name a row of another entity.
const LINKS: [(&str, &[Entity]); 4] = [
    ("episode_id", &[Entity::Episode]),
    ("parent_id", &[Entity::Episode]),
    ("memory_id", &[Entity::Memory, Entity::Case]),
    ("profile_id", &[Entity::Profile]),
];

/// Observations about an entity's rows.
#[derive(Debug, Default, Serialize)]
struct EntityTrial {
    rows: usize,
    repeated_ids: usize,
    rows_with_problems: usize,
    /// For each time column, the rows with a valid and with an invalid time.
    times: BTreeMap<&'static str, TimesRead>,
    /// For each column, the ids it refers to, and how many of them exist.
    links: BTreeMap<&'static str, LinksFollowed>,
    #[serde(skip)]
    named: BTreeMap<&'static str, HashSet<String>>,
}

#[derive(Debug, Default, Serialize)]
struct TimesRead {
    read: usize,
    unread: usize,
}

#[derive(Debug, Default, Serialize)]
struct LinksFollowed {
    named: usize,
    found: usize,
}

impl EntityTrial {
    fn add(&mut self, row: &Row, known: &mut HashSet<u64>) {
        self.rows += 1;
        self.rows_with_problems += usize::from(!row.problems.is_empty());
        if row.entity.column("id").is_some() && !known.insert(digest(row.id())) {
            self.repeated_ids += 1;
        }
        for column in row.entity.columns().iter().filter(|column| column.kind == ValueKind::Time) {
            let times = self.times.entry(column.name).or_default();
            times.read += usize::from(!row.get(column.name).is_null());
            times.unread += usize::from(!row.is_readable(column.name));
        }
        for (column, _) in LINKS {
            let named = self.named.entry(column).or_default();
            if let Some(id) = row.text(column).filter(|id| !id.is_empty() && named.len() < FOLLOWED) {
                named.insert(id.to_owned());
            }
        }
    }

    /// Lists the faults of an entity's rows, for users.
    fn faults(&self, entity: &str) -> Vec<String> {
        let mut faults = Vec::new();
        if self.repeated_ids > 0 {
            let words = "{row repeats|rows repeat} the id of another one, so none of them can be addressed";
            faults.push(agreeing(self.repeated_ids, &format!("{entity}: {{#}} {words}")));
        }
        if self.rows_with_problems as f64 > MANY * self.rows as f64 {
            let (odd, rows) = (self.rows_with_problems, self.rows);
            let words = "{holds|hold} something unreadable";
            faults.push(agreeing(odd, &format!("{entity}: {{#}} of {rows} rows {words}")));
        }
        for (column, times) in self.times.iter().filter(|(_, times)| times.unread > times.read) {
            let of = times.read + times.unread;
            let words = format!(
                "{entity}.{column}: {{#}} of {of} times {{is|are}} not times: say how they are \
             `stored`"
            );
            faults.push(agreeing(times.unread, &words));
        }
        for (column, links) in self.links.iter().filter(|(_, links)| links.named > 0 && links.found == 0) {
            let words = format!("{entity}.{column}: it names {{#}} {{id|ids}}, none of which exists");
            faults.push(agreeing(links.named, &words));
        }
        faults
    }
}

/// Tries a layout on a database and prints the result.
///
/// # Errors
/// Code 1 if the layout has errors.
pub(super) async fn run(session: &Session<'_>, file: &str) -> Result<(), CommandFailure> {
    let Some((target, options)) = session.target(None)? else {
        return Err(CommandFailure::usage("name the database to test the layout on with -d"));
    };
    let options = OpenOptions { layouts: vec![file.to_owned()], ..options };
    let store = Store::open(&target, &options).await?;
    let mut trials = read_all(&store).await?;
    for trial in trials.values_mut() {
        follow(&store, trial).await?;
    }
    let mut faults: Vec<String> = trials.iter().flat_map(|(entity, trial)| trial.faults(entity)).collect();
    let erased = match erased(&store, &options).await? {
        Ok((shown, more)) => {
            faults.extend(more);
            shown
        }
        Err(reason) => json!({ "tried": false, "reason": reason }),
    };
    let shown = json!({
        "file": file, "database": store.location(), "ok": faults.is_empty(), "entities": trials, "purge": erased, "faults": faults,
    });
    output::shape(session.format(), &shown)?;
    match faults.len() {
        0 => Ok(()),
        n => Err(CommandFailure::failed(format!("{file}: {}", agreeing(n, "{#} {fault|faults}")))),
    }
}

/// Reads every row of every entity.
async fn read_all(store: &Store) -> Result<BTreeMap<&'static str, EntityTrial>, CommandFailure> {
    let mut trials = BTreeMap::new();
    for entity in Entity::ALL.iter().copied().filter(|entity| store.sources_of(*entity).is_ok()) {
        let (mut trial, mut known) = (EntityTrial::default(), HashSet::new());
        let row = |row: Row| {
            trial.add(&row, &mut known);
            ControlFlow::Continue(())
        };
        store.walks().each_row(&Query::new(entity), row).await?;
        let mapped = |column: &str| {
            let sources = store.sources_of(entity).unwrap_or_default();
            sources.iter().any(|source| !source.column(column).is_empty() || source.derives(column))
        };
        trial.times.retain(|column, _| mapped(column));
        trials.insert(entity.name(), trial);
    }
    Ok(trials)
}

/// Checks whether the referenced ids exist, if the layout has such rows.
async fn follow(store: &Store, trial: &mut EntityTrial) -> Result<(), CommandFailure> {
    for (column, named) in std::mem::take(&mut trial.named) {
        let targets = LINKS.iter().find(|(name, _)| *name == column).map_or(&[][..], |(_, targets)| targets);
        let targets: Vec<Entity> = targets.iter().copied().filter(|t| store.sources_of(*t).is_ok()).collect();
        if named.is_empty() || targets.is_empty() {
            continue;
        }
        let ids: Vec<String> = named.into_iter().collect();
        let mut there: HashSet<String> = HashSet::new();
        for target in targets {
            for some in ids.chunks(STRIDE) {
                there.extend(store.related(target, "id", some).await?.iter().map(|row| row.id().to_owned()));
            }
        }
        trial.links.insert(column, LinksFollowed { named: ids.len(), found: there.len() });
    }
    Ok(())
}

/// Result of a purge on a copy, with its errors; or the reason why none was tried.
type PurgeTrial = Result<(Value, Vec<String>), String>;

/// Erases a person on a private copy and checks that other people's rows are unchanged.
async fn erased(store: &Store, options: &OpenOptions) -> Result<PurgeTrial, CommandFailure> {
    if let Some(reason) = store.recognised().closed() {
        return Ok(Err(reason));
    }
    if store.recognised().erasure.rules.is_empty() {
        return Ok(Err("the layout has no `erase` rules: it does not say who owns a row".to_owned()));
    }
    let Some(person) = someone(store).await? else {
        return Ok(Err("no row names a person by an id that a purge takes".to_owned()));
    };
    let (_copy, file) = match store.private_copy().await {
        Ok(copy) => copy,
        Err(reason) => return Ok(Err(reason)),
    };
    let target = Target::File(file);
    let author = Author { actor: "layouts test".to_owned(), ..Author::default() };
    migrate::apply(&Store::open(&target, options).await?, &author, None).await?;
    let copy = Store::open(&target, options).await?;
    let mut episodes = HashSet::new();
    let before = owned_rows(&copy, &person, &mut episodes).await?;
    let desk = desk(&author, &|_, _| {})?;
    let receipt = match purge::run(&copy, &person, &PurgeOptions::default(), None, &desk, None).await {
        Ok(receipt) => receipt,
        Err(ChangeError::Refused(reason) | ChangeError::NotFound(reason) | ChangeError::Usage(reason)) => {
            let words = format!("erasing `{person}` on a copy is refused: {reason}");
            return Ok(Ok((json!({ "tried": true, "person": person, "status": "refused" }), vec![words])));
        }
        Err(error) => return Err(error.into()),
    };
    let after = owned_rows(&copy, &person, &mut episodes).await?;
    let others = before.compared(&after);
    let (deleted, changed) =
        (others.values().map(|o| o.deleted).sum::<usize>(), others.values().map(|o| o.changed).sum::<usize>());
    let unnamed: usize =
        others.iter().map(|(entity, o)| o.changed.saturating_sub(named(&copy, *entity, &receipt))).sum();
    let shown = json!({ "tried": true, "person": person, "status": receipt.status, "counts": receipt.counts,
        "verification": receipt.verification, "other_rows_changed": deleted + changed });
    let mut faults = Vec::new();
    if receipt.status == PurgeStatus::Incomplete {
        faults.push(format!("erasing `{person}` on a copy is incomplete: {}", receipt.incomplete.join("; ")));
    }
    for (rows, what) in [(deleted, "deleted"), (unnamed, "changed, unannounced in its plan,")] {
        faults
            .extend(counted(rows, &format!("erasing `{person}` on a copy {what} {{#}} {{row|rows}} of other people")));
    }
    for (entity, rows) in &after.of_person {
        faults.push(agreeing(
            *rows,
            &format!("erasing `{person}` on a copy left {{#}} {entity} {{row|rows}} of that person"),
        ));
    }
    Ok(Ok((shown, faults)))
}

/// Finds an owner of rows who can be erased by the id; `None` if there is none.
async fn someone(store: &Store) -> Result<Option<String>, CommandFailure> {
    for entity in Entity::ALL.iter().copied().filter(|e| e.column("user_id").is_some()) {
        if store.sources_of(entity).is_err() {
            continue;
        }
        let mut person = None;
        let row = |row: Row| {
            person = row.text("user_id").filter(|id| subject::check(id).is_ok()).map(str::to_owned);
            if person.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.walks().each_row(&Query { columns: Some(vec!["user_id"]), ..Query::new(entity) }, row).await?;
        if person.is_some() {
            return Ok(person);
        }
    }
    Ok(None)
}

/// Number of rows of an entity that an erasure changes: lists and aggregates of remaining rows lose deleted rows.
fn named(store: &Store, entity: Entity, receipt: &PurgeReceipt) -> usize {
    let sources = store.sources_of(entity).unwrap_or_default();
    let tables: HashSet<String> = sources.into_iter().map(|source| table_of(source).title()).collect();
    tables.iter().filter_map(|table| receipt.counts.get(table)?.get("update")).sum()
}

#[derive(Default)]
struct OwnedRows {
    /// Other people's rows by entity and id: a digest of the stored values of each.
    of_others: HashMap<(Entity, u64), u64>,
    /// Rows of the person, by entity.
    of_person: BTreeMap<&'static str, usize>,
}

/// Fate of other people's rows.
#[derive(Default)]
struct OtherRows {
    deleted: usize,
    changed: usize,
}

impl OwnedRows {
    /// Compares other people's rows with their later state, by entity.
    fn compared(&self, after: &OwnedRows) -> BTreeMap<Entity, OtherRows> {
        let mut found: BTreeMap<Entity, OtherRows> = BTreeMap::new();
        for (row, stored) in &self.of_others {
            let of = found.entry(row.0).or_default();
            match after.of_others.get(row) {
                None => of.deleted += 1,
                Some(now) => of.changed += usize::from(now != stored),
            }
        }
        found
    }
}

/// Reads the owners of rows, from themselves or from the episode they depend on. `episodes` are those of the person;
/// they are collected if empty.
async fn owned_rows(store: &Store, person: &str, episodes: &mut HashSet<u64>) -> Result<OwnedRows, CommandFailure> {
    let (mut owned, mut others) = (OwnedRows::default(), HashSet::new());
    // Episodes come first.
    for entity in
        Entity::ALL.iter().copied().filter(|e| ["user_id", "episode_id"].iter().any(|c| e.column(c).is_some()))
    {
        let Ok(sources) = store.sources_of(entity) else { continue };
        // Values computed from other rows change with these.
        let is_stored = |column: &str| sources.iter().any(|source| has_place(source, column));
        let stored: Vec<&str> = entity.columns().iter().map(|column| column.name).filter(|c| is_stored(c)).collect();
        let row = |row: Row| {
            let episode = row.text("episode_id").map(digest);
            let is_other = row.text("user_id").map(|id| id != person).or_else(|| {
                let episode = episode?;
                if episodes.contains(&episode) { Some(false) } else { others.contains(&episode).then_some(true) }
            });
            match is_other {
                Some(true) => {
                    let values = json!(stored.iter().map(|column| row.get(column)).collect::<Vec<_>>()).to_string();
                    let id: &str = if entity.column("id").is_some() { row.id() } else { &values };
                    owned.of_others.insert((entity, digest(id)), digest(&values));
                }
                Some(false) => *owned.of_person.entry(entity.name()).or_default() += 1,
                None => {}
            }
            if let (Entity::Episode, Some(is_other)) = (entity, is_other) {
                (if is_other { &mut others } else { &mut *episodes }).insert(digest(row.id()));
            }
            ControlFlow::Continue(())
        };
        store.walks().each_row(&Query::new(entity), row).await?;
    }
    Ok(owned)
}
