//! Contract of every layout with its users, on each engine where it runs: every row listed once, page by page in both
//! directions, with the context, chains, values and problems that the fixtures were built with.

use crate::owners;
use crate::support::block_on;
use crate::support::fixtures::{Context, Fixture, Layout, build_postgres, build_sqlite, build_sqlite_as_postgres};
use crate::support::postgres::Database;
use mnemoscope::demo::{self, DemoOptions};
use mnemoscope::memory::filter::{Filter, Operand, Operator};
use mnemoscope::memory::query::{Order, Page, PageStart, Query};
use mnemoscope::memory::{Entity, Row, ValueKind};
use mnemoscope::store::context::{EpisodeChain, Relatives};
use mnemoscope::store::{Store, Target};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

/// Few enough that each list has several pages.
const ROWS_A_PAGE: usize = 3;

/// Deviations from the contract; empty when all is well.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    fn expect<T: PartialEq + Debug>(&mut self, what: impl Display, found: &T, wanted: &T) {
        if found != wanted {
            self.0.push(format!("{what}: found {found:?}, wanted {wanted:?}"));
        }
    }
}

struct Opened {
    store: Store,
    fixture: Fixture,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

async fn on_sqlite(layout: Layout) -> Opened {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory");
    let fixture = build_sqlite(layout, &path).await;
    let store = open(Target::File(path)).await;
    Opened { store, fixture, _folder: folder, _database: None }
}

async fn on_postgres(layout: Layout) -> Option<Opened> {
    let database = Database::fresh()?;
    assert!(database.has_vector() || !layout.needs_vector(), "this layout's test needs pgvector on the server");
    let fixture = build_postgres(layout, database.url()).await;
    let store = open(Target::Postgres(database.url().to_owned())).await;
    Some(Opened { store, fixture, _folder: tempfile::tempdir().expect("a folder"), _database: Some(database) })
}

async fn open(target: Target) -> Store {
    Store::open(&target, &crate::support::options()).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Every page of a list from one end to the other, each page in the list's order.
async fn pages(store: &Store, mut query: Query, onward: fn(&Page) -> Option<PageStart>) -> Vec<Vec<Row>> {
    let entity = query.entity;
    let mut pages = Vec::new();
    loop {
        let page = store.page(&query).await.unwrap_or_else(|error| panic!("{entity}: {error}"));
        let next = onward(&page);
        pages.push(page.rows);
        let Some(next) = next else { return pages };
        assert!(pages.len() < 1_000, "{entity}: the pages never end");
        query.start = next;
    }
}

fn paged(entity: Entity) -> Query {
    Query { limit: ROWS_A_PAGE, ..Query::new(entity) }
}

/// All rows of a query, page after page.
async fn list(store: &Store, query: Query) -> Vec<Row> {
    pages(store, query, |page| page.next.clone().map(PageStart::After)).await.concat()
}

fn ids(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.id().to_owned()).collect()
}

async fn check(opened: &Opened, layouts: &[&str]) -> Report {
    let mut report = Report::default();
    let recognised = opened.store.report().status().await.expect("the status");
    let names: Vec<&str> = recognised.layouts.iter().map(|found| found.name.as_str()).collect();
    report.expect("layouts", &names, &layouts.to_vec());
    let mut lists = BTreeMap::new();
    for (name, wanted) in &opened.fixture.rows {
        let entity = *Entity::ALL.iter().find(|entity| entity.name() == *name).expect("an entity");
        let rows = list(&opened.store, paged(entity)).await;
        let found: BTreeSet<String> = ids(&rows).into_iter().collect();
        report.expect(format!("{name}: rows"), &found, wanted);
        report.expect(format!("{name}: each row once"), &rows.len(), &wanted.len());
        newest_first(&mut report, name, entity, &rows);
        let last = Query { start: PageStart::Last, ..paged(entity) };
        let mut backward = pages(&opened.store, last, |page| page.previous.clone().map(PageStart::Before)).await;
        backward.reverse();
        report.expect(format!("{name}: backward"), &ids(&backward.concat()), &ids(&rows));
        for bytes in [1, 1_000] {
            let parts = list(&opened.store, Query { bytes: Some(bytes), ..paged(entity) }).await;
            report.expect(format!("{name}: in parts of {bytes} bytes"), &ids(&parts), &ids(&rows));
        }
        lists.insert(*name, rows);
    }
    values(&mut report, opened, &lists);
    growth(&mut report, &opened.store, &lists).await;
    contexts(&mut report, opened).await;
    chains(&mut report, opened).await;
    report
}

/// Dated rows are in falling order of time; canonical times order as text.
fn newest_first(report: &mut Report, name: &str, entity: Entity, rows: &[Row]) {
    let times: Vec<&str> = rows.iter().filter_map(|row| row.text(entity.time_column())).collect();
    report.expect(format!("{name}: newest first"), &times.is_sorted_by(|a, b| a >= b), &true);
}

fn values(report: &mut Report, opened: &Opened, lists: &BTreeMap<&str, Vec<Row>>) {
    let row = |entity: &str, id: &str| lists.get(entity)?.iter().find(|row| row.id() == id);
    for (entity, id, column, wanted) in &opened.fixture.values {
        let found = row(entity, id).map(|row| row.get(column).clone());
        report.expect(format!("{entity} {id}: {column}"), &found, &Some(wanted.clone()));
    }
    for (entity, id, column) in &opened.fixture.problems {
        let said = row(entity, id).is_some_and(|row| row.problems.iter().any(|problem| problem.column == *column));
        report.expect(format!("{entity} {id}: says what is wrong with {column}"), &said, &true);
    }
    let awkward: BTreeSet<(&str, &str)> =
        opened.fixture.problems.iter().map(|(entity, id, _)| (*entity, *id)).collect();
    for (name, rows) in lists {
        let sound = rows.iter().filter(|row| !row.problems.is_empty() && !awkward.contains(&(*name, row.id())));
        let complaints: Vec<String> = sound.map(|row| format!("{} {:?}", row.id(), row.problems)).collect();
        report.expect(format!("{name}: complaints about sound rows"), &complaints, &Vec::new());
    }
}

/// The engine counts the rows of each day as reading them does.
async fn growth(report: &mut Report, store: &Store, lists: &BTreeMap<&str, Vec<Row>>) {
    for table in store.raw().raw_tables().await.expect("the tables") {
        let sources: Vec<_> = store.recognised().sources.iter().filter(|source| table.is_of(source)).collect();
        let alone = |entity| store.recognised().sources.iter().filter(|source| source.entity == entity).count() == 1;
        let [source] = sources[..] else { continue };
        let Ok(grown) = store.raw().growth(&table).await.expect("counted") else { continue };
        let Some(rows) = lists.get(source.entity.name()).filter(|_| alone(source.entity)) else { continue };
        let mut days: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows {
            *days.entry(row.text(grown.column).map_or("none", |time| &time[..10]).to_owned()).or_default() += 1;
        }
        let untimed = days.remove("none").unwrap_or(0);
        let counted = grown.days.iter().map(|(day, rows)| (day.to_string(), *rows)).collect();
        report.expect(format!("{}: rows a day", table.title), &counted, &days);
        report.expect(format!("{}: rows without a time", table.title), &grown.untimed, &untimed);
    }
}

async fn contexts(report: &mut Report, opened: &Opened) {
    for wanted in &opened.fixture.contexts {
        let id = wanted.episode;
        let Some(found) = opened.store.contexts().episode(id).await.unwrap_or_else(|error| panic!("{id}: {error}"))
        else {
            report.0.push(format!("{id}: not found"));
            continue;
        };
        report.expect(format!("{id}: canvas"), &ids(&found.canvas), &strings(&wanted.canvas));
        report.expect(format!("{id}: feedback"), &ids(&found.feedback), &strings(&wanted.feedback));
        let dangling: BTreeSet<String> = found
            .findings
            .iter()
            .filter(|finding| finding.kind == "dangling_id")
            .flat_map(|finding| finding.ids.iter().cloned())
            .collect();
        report.expect(format!("{id}: dangling"), &dangling, &strings(&wanted.dangling).into_iter().collect());
        let sequences: Vec<&Value> = found.segments.iter().map(|segment| segment.get("sequence")).collect();
        report.expect(format!("{id}: segments in order"), &sequences.is_sorted_by_key(|value| value.as_i64()), &true);
    }
}

async fn chains(report: &mut Report, opened: &Opened) {
    for wanted in &opened.fixture.chains {
        let id = wanted.episode;
        let read = |relatives| async move {
            let read = opened.store.contexts().chain(id, relatives).await;
            read.unwrap_or_else(|error| panic!("{id}: {error}"))
        };
        let (Some(by_id), Some(EpisodeChain { chain: found, relatives: named, .. })) =
            (read(Relatives::Ids).await, read(Relatives::Named).await)
        else {
            report.0.push(format!("{id}: no chain"));
            continue;
        };
        report.expect(format!("{id}: the chain by ids"), &by_id.chain, &found);
        let shown =
            |row: &Row| ["title", "topic", "outcome", "started_at", "ended_at"].map(|column| row.get(column).clone());
        for (relative, row) in &named {
            let whole =
                opened.store.row(Entity::Episode, relative).await.unwrap_or_else(|error| panic!("{id}: {error}"));
            report.expect(format!("{id}: names and times"), &Some(shown(row)), &whole.as_ref().map(shown));
        }
        let outline = opened.store.contexts().outline(id, Relatives::Ids).await;
        let findings = outline.unwrap_or_else(|error| panic!("{id}: {error}")).map(|outline| outline.findings);
        let named = opened.store.contexts().episode(id).await;
        let named = named.unwrap_or_else(|error| panic!("{id}: {error}")).map(|context| context.findings);
        report.expect(format!("{id}: findings by names"), &named, &findings);
        report.expect(format!("{id}: chain"), &found.ids, &strings(&wanted.ids));
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        report.expect(format!("{id}: children"), &sorted(found.children), &sorted(strings(&wanted.children)));
        report.expect(format!("{id}: cycle"), &found.cycle, &wanted.cycle);
        report.expect(format!("{id}: missing parent"), &found.missing_parent.as_deref(), &wanted.missing_parent);
    }
}

fn strings(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn holds_on_sqlite(layout: Layout) {
    let report = block_on(async { check(&on_sqlite(layout).await, &[layout.name()]).await });
    assert!(report.0.is_empty(), "{layout:?} on SQLite:\n{}", report.0.join("\n"));
}

fn holds_on_postgres(layout: Layout) {
    let report = block_on(async {
        let Some(opened) = on_postgres(layout).await else { return Report::default() };
        check(&opened, &[layout.name()]).await
    });
    assert!(report.0.is_empty(), "{layout:?} on PostgreSQL:\n{}", report.0.join("\n"));
}

/// The same rows are the same answers to the last value and in the same order.
fn same_on_both(layout: Layout) {
    let differences = block_on(async {
        let Some(postgres) = on_postgres(layout).await else { return Report::default() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("memory");
        build_sqlite_as_postgres(layout, &path).await;
        let sqlite = open(Target::File(path)).await;
        let mut report = Report::default();
        for name in postgres.fixture.rows.keys() {
            let entity = *Entity::ALL.iter().find(|entity| entity.name() == *name).expect("an entity");
            let here: Vec<Value> = list(&postgres.store, paged(entity)).await.iter().map(Row::to_json).collect();
            let there: Vec<Value> = list(&sqlite, paged(entity)).await.iter().map(Row::to_json).collect();
            let order = |rows: &[Value]| rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
            report.expect(format!("{name}: order"), &order(&there), &order(&here));
            for (here, there) in here.iter().zip(&there).filter(|(here, there)| here["id"] == there["id"]) {
                report.expect(format!("{name} {}", here["id"]), there, here);
            }
        }
        report
    });
    assert!(differences.0.is_empty(), "{layout:?}:\n{}", differences.0.join("\n"));
}

/// The native layout, distributed by owner as the book says, against what SQL says of the same rows as they are. A row that
/// complains of a value there does so here.
#[test]
fn native_by_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((whole, distributed)) = owners::both(folder.path(), "30") else { return };
    let report = block_on(async {
        let mut fixture = owners::stated(whole.url()).await;
        let as_it_is = open(Target::Postgres(whole.url().to_owned())).await;
        for name in fixture.rows.keys() {
            let entity = *Entity::ALL.iter().find(|entity| entity.name() == *name).expect("an entity");
            for row in list(&as_it_is, paged(entity)).await {
                let id: &'static str = row.id().to_owned().leak();
                fixture.problems.extend(row.problems.into_iter().map(|problem| (*name, id, &*problem.column.leak())));
            }
        }
        assert!(fixture.rows.values().all(|rows| !rows.is_empty()), "{:?}", fixture.rows);
        let any = |holds: fn(&Context) -> bool| fixture.contexts.iter().any(holds);
        assert!(any(|c| !c.canvas.is_empty()) && any(|c| !c.feedback.is_empty()) && any(|c| !c.dangling.is_empty()));
        assert!(fixture.chains.iter().any(|c| c.ids.len() > 1 && !c.children.is_empty() && c.missing_parent.is_some()));
        let store = open(Target::Postgres(distributed.url().to_owned())).await;
        check(&Opened { store, fixture, _folder: folder, _database: Some(distributed) }, &["mnemoscope", "audit-trail"])
            .await
    });
    assert!(report.0.is_empty(), "by owner:\n{}", report.0.join("\n"));
}

#[test]
fn atom_on_sqlite() {
    holds_on_sqlite(Layout::Atom);
}

#[test]
fn atom_on_postgres() {
    holds_on_postgres(Layout::Atom);
}

#[test]
fn atom_is_the_same_on_both() {
    same_on_both(Layout::Atom);
}

#[test]
fn atom_of_february_2026_on_sqlite() {
    holds_on_sqlite(Layout::Atom2026);
}

#[test]
fn atom_of_february_2026_on_postgres() {
    holds_on_postgres(Layout::Atom2026);
}

#[test]
fn atom_of_february_2026_is_the_same_on_both() {
    same_on_both(Layout::Atom2026);
}

#[test]
fn ennube_with_json_snapshots() {
    holds_on_postgres(Layout::EnnubeJson);
}

#[test]
fn ennube_with_stored_vectors() {
    holds_on_postgres(Layout::EnnubeVectors);
}

#[test]
fn ennube_with_zlib_snapshots() {
    holds_on_postgres(Layout::EnnubeZlib);
}

#[test]
fn ennube_with_plain_bytes() {
    holds_on_postgres(Layout::EnnubePlain);
}

#[test]
fn nous_with_the_planned_columns() {
    holds_on_postgres(Layout::NousPlanned);
}

#[test]
fn nous_as_its_head_is() {
    holds_on_postgres(Layout::NousHead);
}

#[test]
fn pyworkflow_on_sqlite() {
    holds_on_sqlite(Layout::Pyworkflow);
}

#[test]
fn pyworkflow_on_postgres() {
    holds_on_postgres(Layout::Pyworkflow);
}

#[test]
fn pyworkflow_is_the_same_on_both() {
    same_on_both(Layout::Pyworkflow);
}

#[test]
fn a_palace_whose_side_files_lie_in_their_logs() {
    holds_on_sqlite(Layout::Mempalace);
}

#[test]
fn every_order_of_a_demo_holds_each_row_once_and_those_without_a_value_last() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("demo.db");
        let options = DemoOptions { episodes: 40, ..DemoOptions::default() };
        demo::build(&path, &options, |_| ()).await.expect("a demo");
        let store = open(Target::File(path)).await;
        let told = |rows: Vec<Row>| {
            let mut told: Vec<String> = rows.iter().map(|row| row.to_json().to_string()).collect();
            told.sort_unstable();
            told
        };
        let mut report = Report::default();
        for entity in Entity::ALL.iter().copied() {
            let all = Query { limit: 10_000, ..Query::new(entity) };
            let Ok(page) = store.page(&all).await else { continue };
            let wanted = told(page.rows);
            let sorted = entity.columns().iter().filter(|c| !matches!(c.kind, ValueKind::Json | ValueKind::List));
            for column in sorted {
                let order = Some(Order { column: column.name, descending: false });
                let rows = list(&store, Query { order, limit: 50, ..Query::new(entity) }).await;
                let values: Vec<Value> = rows.iter().map(|row| row.get(column.name).clone()).collect();
                let (known, others) = values.split_at(values.iter().take_while(|value| !value.is_null()).count());
                let number = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(f64::from));
                let ordered = |a: &Value, b: &Value| match (number(a), number(b)) {
                    (Some(a), Some(b)) => a <= b,
                    _ => a.as_str() <= b.as_str(),
                };
                let is_ordered = known.is_sorted_by(ordered) && others.iter().all(Value::is_null);
                report.expect(format!("{entity} in the order of {}", column.name), &is_ordered, &true);
                report.expect(format!("{entity} by {}", column.name), &(told(rows) == wanted), &true);
                if column.kind == ValueKind::Boolean {
                    let is_it = Filter::new(column.name, Operator::Equal, Operand::Boolean(true));
                    let counted = Query { filters: vec![is_it], columns: Some(Vec::new()), ..all.clone() };
                    let found = store.page(&counted).await.expect("a page").rows.len();
                    let known = values.iter().filter(|value| value.as_bool() == Some(true)).count();
                    report.expect(format!("{entity} where {} is true", column.name), &found, &known);
                }
            }
        }
        assert!(report.0.is_empty(), "{:#?}", report.0);
    });
}
