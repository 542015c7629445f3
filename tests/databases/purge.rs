//! Erasing a person, looked at with plain SQL: what goes, what stays to the byte, what no longer refers to anything; that
//! a killed run can be resumed; that a receipt says nothing of whom it was about. On each layout, on both engines.

mod decisions;
mod derived;
mod keys;
mod mentions;
mod owners;
mod undone;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::{
    address_of, bare_on_postgres, layout_in, layout_on_postgres, meddle_with, native_in, sqlite,
};
use mnemoscope::change::purge::{self, Desk, KeptSearch, Mentions, NewDecisions, PurgeOptions, PurgePlan};
use mnemoscope::change::{Author, ChangeError, audit, edit, hold, migrate, record};
use mnemoscope::layout::CatalogTable;
use mnemoscope::memory::Entity;
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::{Value, json};
use sha2::Digest as _;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};

const KEY: [u8; 32] = [7; 32];

struct World {
    target: Target,
    folder: tempfile::TempDir,
    _database: Option<Database>,
}

impl World {
    async fn open(&self) -> Store {
        let options = OpenOptions { secret: Some(KEY), ..crate::support::options() };
        Store::open(&self.target, &options).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn ready(self) -> Self {
        migrate::apply(&self.open().await, &author(), None).await.expect("our tables");
        self
    }

    /// The best word that an erasure can end on: the bytes of a server are not looked at.
    fn best(&self) -> &'static str {
        match self.target {
            Target::File(_) => "verified",
            Target::Postgres(_) => "verified with disclosures",
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Erases; gives the plan's and the receipt's JSON.
    async fn purge(&self, subject: &str, options: &PurgeOptions) -> Result<(Value, Value), ChangeError> {
        let store = self.open().await;
        let plan = purge::plan(&store, subject, options, &|_, _| {}).await?;
        Ok((json!(plan.printed()), self.carry_out(subject, options, false).await?))
    }

    async fn carry_out(&self, subject: &str, options: &PurgeOptions, resume: bool) -> Result<Value, ChangeError> {
        let by = author();
        let desk =
            Desk { folder: self.state(), key: KEY, author: &by, progress: &|_, _| {}, forget_kept: &|_, _| Ok(()) };
        let as_asked = resume.then(NewDecisions::default);
        let receipt = purge::run(&self.open().await, subject, options, as_asked.as_ref(), &desk, None).await;
        receipt.map(|receipt| json!(receipt))
    }

    /// Resumes an erasure, some mentions decided otherwise.
    async fn resume(&self, subject: &str, decisions: &NewDecisions) -> Result<Value, ChangeError> {
        let by = author();
        let desk =
            Desk { folder: self.state(), key: KEY, author: &by, progress: &|_, _| {}, forget_kept: &|_, _| Ok(()) };
        let store = self.open().await;
        let receipt = purge::run(&store, subject, &PurgeOptions::default(), Some(decisions), &desk, None).await;
        receipt.map(|receipt| json!(receipt))
    }

    /// Every row of every table that is not ours, as text; plain SQL.
    async fn dump(&self) -> BTreeMap<String, Vec<String>> {
        let store = self.open().await;
        let tables = store.catalog().tables.iter().filter(|t| !t.name.starts_with("memory_audit") && !ours(&t.name));
        match &self.target {
            Target::File(path) => {
                let of_table = |table: &CatalogTable| {
                    let quoted: Vec<String> = table
                        .columns
                        .iter()
                        .map(|c| format!("typeof(\"{0}\") || ':' || hex(\"{0}\")", c.name))
                        .collect();
                    let row = quoted.join(", ");
                    format!("SELECT group_concat(concat_ws(',', {row}), char(10)) FROM \"{}\"", table.title())
                };
                let sql = tables.clone().map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
                let lines =
                    |all: &String| all.split('\n').filter(|row| !row.is_empty()).map(str::to_owned).collect::<Vec<_>>();
                let rows = sqlite_texts(path, &sql).await;
                tables.map(CatalogTable::title).zip(rows.iter().map(lines)).collect()
            }
            Target::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.expect("the server");
                let of_table = |title: String| format!("SELECT '{title}', array_agg(t::text) FROM {title} t");
                let sql = tables.map(CatalogTable::title).map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
                let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.expect("rows");
                rows.iter().map(|row| (row.get(0), row.get::<Option<Vec<String>>, _>(1).unwrap_or_default())).collect()
            }
        }
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        match &self.target {
            Target::File(path) => sqlite_texts(path, sql).await,
            Target::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.expect("the server");
                let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut link).await;
                let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
                rows.iter().map(|row| row.get::<String, _>(0)).collect()
            }
        }
    }

    async fn count(&self, from: &str) -> i64 {
        let counted = self.texts(&format!("SELECT CAST(count(*) AS TEXT) FROM {from}")).await;
        counted.first().and_then(|n| n.parse().ok()).expect("a count")
    }

    async fn run(&self, sql: &str) {
        meddle_with(&self.target, sql).await;
    }

    /// Foreign keys that lead nowhere.
    async fn broken_keys(&self) -> usize {
        match &self.target {
            Target::File(path) => sqlite_texts(path, "SELECT \"table\" FROM pragma_foreign_key_check").await.len(),
            Target::Postgres(_) => 0,
        }
    }
}

fn ours(name: &str) -> bool {
    ["memory_migrations", "memory_holds", "memory_suppressions", "memory_purges"].contains(&name)
        || name.starts_with("memory_job")
}

fn author() -> Author {
    Author { actor: "officer".to_owned(), reason: None, ticket: Some("T-1".to_owned()) }
}

fn everything() -> PurgeOptions {
    PurgeOptions { mentions: Mentions::Redact, account: true, ..PurgeOptions::default() }
}

async fn sqlite_texts(path: &Path, sql: &str) -> Vec<String> {
    let mut link = sqlite(path).await;
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut link).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text =
        |row: &sqlx::sqlite::SqliteRow| String::from_utf8_lossy(&row.get_unchecked::<Vec<u8>, _>(0)).into_owned();
    rows.iter().map(text).collect()
}

async fn on_sqlite(layout: Layout) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory.db");
    layout_in(layout, &path).await;
    World { target: Target::File(path), folder, _database: None }
}

async fn on_postgres(layout: Layout) -> Option<World> {
    let database = layout_on_postgres(layout).await?;
    let target = Target::Postgres(database.url().to_owned());
    Some(World { target, folder: tempfile::tempdir().expect("a folder"), _database: Some(database) })
}

/// Atom's tables on both engines, with what a script adds.
async fn planted(script: &str) -> Vec<World> {
    let worlds = [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await];
    let worlds: Vec<World> = worlds.into_iter().flatten().collect();
    for world in &worlds {
        world.run(script).await;
    }
    worlds
}

async fn without_trail_on_postgres(layout: Layout) -> Option<World> {
    let database = bare_on_postgres(layout).await?;
    let target = Target::Postgres(database.url().to_owned());
    let folder = tempfile::tempdir().expect("a folder");
    Some(World { target, folder, _database: Some(database) })
}

async fn native(episodes: u64) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("native.db");
    native_in(episodes, &path).await;
    World { target: Target::File(path), folder, _database: None }
}

fn rows(counts: &Value, table: &str, verb: &str) -> usize {
    counts[table][verb].as_u64().unwrap_or_default() as usize
}

/// Erases a person with all that can go, and looks at the outcome with plain SQL.
async fn erased(world: &World, subject: &str, aliases: &[&str], words: &[&str]) -> Value {
    erased_of(world, &world.dump().await, subject, aliases, words).await.0
}

/// The same of a database whose rows are known; gives those that are left as well.
async fn erased_of(
    world: &World,
    before: &BTreeMap<String, Vec<String>>,
    subject: &str,
    aliases: &[&str],
    words: &[&str],
) -> (Value, BTreeMap<String, Vec<String>>) {
    let broken = world.broken_keys().await;
    let options = PurgeOptions { aliases: aliases.iter().map(ToString::to_string).collect(), ..everything() };
    let (plan, receipt) = world.purge(subject, &options).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
    assert_eq!(plan["counts"], receipt["counts"]);
    let after = world.dump().await;
    for (table, rows_before) in before {
        let there = |rows: &[String]| {
            let mut counted: BTreeMap<String, i64> = BTreeMap::new();
            rows.iter().for_each(|row| *counted.entry(row.clone()).or_default() += 1);
            counted
        };
        let (then, now) = (there(rows_before), there(&after[table]));
        let new: i64 = now.iter().map(|(row, n)| (n - then.get(row).unwrap_or(&0)).max(0)).sum();
        let counts = &receipt["counts"];
        let (gone, added, changed) =
            (rows(counts, table, "delete"), rows(counts, table, "insert"), rows(counts, table, "update"));
        if table != "memory_access_items" {
            assert_eq!(after[table].len(), rows_before.len() - gone + added, "{table}");
            assert_eq!(new as usize, added + changed, "{table}: rows that differ");
        }
        for (word, row) in words.iter().flat_map(|word| after[table].iter().map(move |row| (word, row))) {
            let hexed = hex::encode_upper(word);
            assert!(!row.contains(word) && !row.contains(&hexed), "{word} is left in {table}: {row}");
        }
    }
    assert!(world.broken_keys().await <= broken, "references that lead nowhere");
    let verdict = audit::verify(&world.open().await, &[]).await.expect("a trail");
    assert!(verdict.ok, "{:?}", verdict.faults);
    let text = receipt.to_string();
    assert!(words.iter().all(|word| !text.contains(word)), "the receipt names the person");
    (receipt, after)
}

#[test]
fn a_person_is_erased_from_atom_and_nobody_else_is() {
    block_on(async {
        for layout in [Layout::Atom, Layout::Atom2026] {
            let worlds = [Some(on_sqlite(layout).await), on_postgres(layout).await];
            for world in worlds.into_iter().flatten() {
                let words = ["user-ana", "ana.ruiz@initech.example", "Ana Ruiz"];
                let receipt = erased(&world, "ana.ruiz@initech.example", &[], &words).await;
                assert_eq!(receipt["verification"]["logical"]["hits"], 0);
                assert_eq!(world.count("users WHERE id = 'user-ben'").await, 1);
                for (table, column) in
                    [("canvas_audit", "user_id"), ("agent_feedback", "user_id"), ("agent_registry", "user_id")]
                {
                    assert_eq!(world.count(&format!("{table} WHERE {column} = 'user-ana'")).await, 0, "{table}");
                }
            }
        }
    });
}

#[test]
fn a_person_is_erased_from_case_banks_with_every_reference() {
    block_on(async {
        for layout in [Layout::EnnubeJson, Layout::EnnubeVectors, Layout::EnnubeZlib, Layout::EnnubePlain] {
            let Some(world) = on_postgres(layout).await else { continue };
            let ids = world
                .texts("SELECT c.id::text FROM agent_memory_cases c JOIN agent_memory_profiles p ON p.id = c.profile_id WHERE p.user_sub = 'auth0|ana'")
                .await;
            assert!(!ids.is_empty());
            let mut words = vec!["auth0|ana"];
            words.extend(ids.iter().map(String::as_str));
            erased(&world, "auth0|ana", &[], &words).await;
            assert!(world.count("agent_memory_profiles WHERE user_sub = 'auth0|ben'").await > 0);
        }
    });
}

#[test]
fn a_person_is_erased_from_episodes_that_others_rest_on() {
    block_on(async {
        for layout in [Layout::NousPlanned, Layout::NousHead] {
            let Some(world) = on_postgres(layout).await else { continue };
            let ids = world.texts("SELECT id::text FROM heart.episodes WHERE user_id = 'user-ana'").await;
            let mut words = vec!["user-ana", "Ana Ruiz"];
            words.extend(ids.iter().map(String::as_str));
            erased(&world, "user-ana", &[], &words).await;
            assert_eq!(world.count("heart.episodes WHERE user_id = 'user-ana'").await, 0);
        }
    });
}

#[test]
fn a_person_is_erased_from_workflow_runs_and_their_children() {
    block_on(async {
        let worlds = [Some(on_sqlite(Layout::Pyworkflow).await), on_postgres(Layout::Pyworkflow).await];
        for world in worlds.into_iter().flatten() {
            // Runs of someone else that hers began, whose arguments are not strict JSON, or JSON within JSON.
            world
                .run(
                    "INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, input_kwargs, parent_run_id) \
                     SELECT 'theirs-' || k.n, 'w', 'completed', r.created_at, r.updated_at, k.kwargs, r.run_id \
                     FROM workflow_runs r, (SELECT 1 AS n, '{\"user_id\": \"user-4\", \"score\": NaN}' AS kwargs \
                       UNION ALL SELECT 2, '\"{\\\"user_id\\\": \\\"user-4\\\"}\"') k \
                     WHERE r.run_id = (SELECT min(run_id) FROM workflow_runs WHERE input_kwargs LIKE '%\"user-3\"%')",
                )
                .await;
            let runs = world.count("workflow_runs").await;
            erased(&world, "user-3", &[], &["user-3"]).await;
            assert_eq!(world.count("workflow_runs WHERE run_id LIKE 'theirs-%'").await, 2);
            let left = world.count("workflow_runs").await;
            assert!(left < runs && left > 0);
            let orphans = "events e WHERE NOT EXISTS (SELECT 1 FROM workflow_runs r WHERE r.run_id = e.run_id)";
            assert_eq!(world.count(orphans).await, 0);
            // Who answered in the runs of others.
            erased(&world, "ben.ode@initech.example", &[], &["ben.ode@initech.example"]).await;
        }
    });
}

#[test]
fn a_palace_is_searched_and_left_alone() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        build_sqlite(Layout::Mempalace, &folder.path().join("palace")).await;
        let world = World { target: Target::File(folder.path().join("palace")), folder, _database: None };
        let store = world.open().await;
        let word = world.texts_of_drawers(&store).await;
        let plan = purge::plan(&store, &word, &PurgeOptions::default(), &|_, _| {}).await.expect("a plan");
        let plan = json!(plan.printed());
        assert_eq!(plan["counts"], json!({}));
        assert!(plan["mentions_total"].as_u64().is_some_and(|n| n > 0));
        let refused = world.carry_out(&word, &PurgeOptions::default(), false).await;
        assert!(matches!(refused, Err(ChangeError::Refused(_))));
        let nobody = purge::plan(&store, "nobody@nowhere.example", &PurgeOptions::default(), &|_, _| {}).await;
        assert!(matches!(nobody, Err(ChangeError::NotFound(_))));
    });
}

impl World {
    /// A word that a drawer holds.
    async fn texts_of_drawers(&self, store: &Store) -> String {
        let query = mnemoscope::memory::query::Query::new(mnemoscope::memory::Entity::Memory);
        let page = store.page(&query).await.expect("drawers");
        let text = page.rows.iter().find_map(|row| row.text("text")).expect("a text").to_owned();
        text.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).expect("a word").to_owned()
    }
}

#[test]
fn everyone_of_the_demo_can_be_erased_and_aggregates_are_those_of_the_rows_that_stay() {
    block_on(async {
        let world = native(60).await;
        let people = world.texts("SELECT id FROM subjects ORDER BY id LIMIT 4").await;
        let mut left = world.dump().await;
        for person in &people {
            let handles = world.texts(&format!("SELECT handles FROM subjects WHERE id = '{person}'")).await;
            let handles: Vec<String> = serde_json::from_str(&handles[0]).expect("a list");
            let mut words: Vec<&str> = handles.iter().map(String::as_str).collect();
            words.push(person);
            left = erased_of(&world, &left, person, &[], &words).await.1;
        }
        let uses = "memories m WHERE m.uses IS NOT NULL AND m.uses <> (SELECT count(*) FROM episode_memories l WHERE l.memory_id = m.id)";
        assert_eq!(world.count(uses).await, 0);
        let dangling = "episode_memories l WHERE NOT EXISTS (SELECT 1 FROM episodes e WHERE e.id = l.episode_id)";
        assert_eq!(world.count(dangling).await, 0);
    });
}

#[test]
fn a_memory_that_stays_has_the_utility_that_the_episodes_that_stay_give_it() {
    block_on(async {
        let world = native(20).await;
        let episode = |id: &str, user: &str, utility: &str| {
            format!(
                "INSERT INTO episodes (id, user_id, title, started_at, utility)
                 VALUES ('{id}', '{user}', 't', '2026-03-01T10:00:00.000000Z', {utility});
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('{id}', 'mean-memory');"
            )
        };
        let mut rows = String::from(
            "INSERT INTO memories (id, kind, title, uses, utility)
             VALUES ('mean-memory', 'drawer', 't', 23, 0.1);",
        );
        rows += &episode("mean-gone", "leaver-x", "0.1");
        // 22 of one start: the 20 of the highest utility count, where none is stored 0.5.
        rows += &(0..18).map(|n| episode(&format!("mean-{n:02}"), "keeper-a", "1.0")).collect::<String>();
        rows += &episode("mean-one", "keeper-a", "NULL");
        rows += &episode("mean-two", "keeper-a", "NULL");
        rows += &episode("mean-low", "keeper-a", "0.2");
        rows += &episode("mean-zero", "keeper-a", "0.0");
        world.run(&rows).await;
        world.purge("leaver-x", &everything()).await.expect("a receipt");
        let kept = "SELECT uses || ' ' || round(utility, 6) FROM memories WHERE id = 'mean-memory'";
        assert_eq!(world.texts(kept).await, ["22 0.95"]);
    });
}

#[test]
fn a_chain_is_closed_where_a_person_is_taken_out_of_it() {
    block_on(async {
        let world = native(40).await;
        let insert = |id: &str, user: &str, parent: &str| {
            format!("INSERT INTO episodes (id, user_id, parent_id, title) VALUES ('{id}', '{user}', {parent}, 't');")
        };
        let rows = [
            insert("chain-0001", "keeper-a", "NULL"),
            insert("chain-0002", "leaver-x", "'chain-0001'"),
            insert("chain-0003", "leaver-x", "'chain-0002'"),
            insert("chain-0004", "keeper-a", "'chain-0003'"),
            insert("chain-0005", "keeper-a", "'chain-0002'"),
            // Above the leaver is nobody: the child becomes a root.
            insert("chain-0006", "leaver-x", "'not-there'"),
            insert("chain-0007", "keeper-a", "'chain-0006'"),
        ];
        world.run(&rows.join("")).await;
        world.purge("leaver-x", &everything()).await.expect("a receipt");
        let parents = world
            .texts("SELECT id || ' ' || coalesce(parent_id, '-') FROM episodes WHERE id LIKE 'chain-%' ORDER BY id")
            .await;
        assert_eq!(parents, ["chain-0001 -", "chain-0004 chain-0001", "chain-0005 chain-0001", "chain-0007 -"]);
    });
}

#[test]
fn people_whose_ids_differ_in_case_or_composition_or_length_are_told_apart() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let people = ["bob", "bob-smith", "ANN-KAY", "ann-kay", "jose\u{301}-1", "jos\u{e9}-1"];
            for (i, id) in people.iter().enumerate() {
                let row = format!("'{id}', 'mail{i}@x.example', 'First{i}', 'Last{i}', 'member', 'active'");
                world
                    .run(&format!("INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ({row})"))
                    .await;
                for (kind, user, title) in
                    [("own", *id, "mine"), ("word", "user-ben", *id), ("json", "user-ben", &json!([id]).to_string())]
                {
                    world
                        .run(&format!(
                            "INSERT INTO chat_sessions (id, user_id, title) VALUES ('{kind}-{i}', '{user}', '{title}')"
                        ))
                        .await;
                }
            }
            let sessions =
                "SELECT id || ' ' || user_id || ' ' || title FROM chat_sessions WHERE id LIKE '%-_' ORDER BY id";
            for id in people {
                let about = |rows: Vec<String>| -> Vec<String> {
                    let i = people.iter().position(|p| *p == id).map(|i| format!("-{i} ")).unwrap_or_default();
                    rows.into_iter().filter(|row| !row.contains(&i)).collect()
                };
                let before = about(world.texts(sessions).await);
                let (plan, receipt) =
                    world.purge(id, &everything()).await.unwrap_or_else(|error| panic!("{id}: {error}"));
                assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
                // A short word is a possible mention in a text, and left.
                let changes = if id == "bob" { json!({"delete": 1}) } else { json!({"delete": 1, "update": 2}) };
                assert_eq!(plan["counts"], json!({"chat_sessions": changes, "users": {"delete": 1}}));
                assert_eq!(about(world.texts(sessions).await), before, "{id}");
                // Whoever comes first and last is looked for again.
                if ![people.first(), people.last()].contains(&Some(&id)) {
                    continue;
                }
                let by = author();
                let desk = Desk {
                    folder: world.state(),
                    key: KEY,
                    author: &by,
                    progress: &|_, _| {},
                    forget_kept: &|_, _| Ok(()),
                };
                let named = receipt["receipt_id"].as_str().expect("an id");
                let again = json!(purge::recheck(&world.open().await, named, &desk).await.expect("an answer"));
                assert_eq!(again["status"], receipt["status"], "{id}: {again:#}");
            }
        }
    });
}

#[test]
fn a_handle_that_only_texts_hold_is_said_to_be_there() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            world.run("UPDATE chat_sessions SET title = 'ask zoe@elsewhere.example' WHERE user_id = 'user-ben'").await;
            let refused = world.purge("zoe@elsewhere.example", &PurgeOptions::default()).await;
            let Err(ChangeError::NotFound(words)) = refused else { panic!("{refused:?}") };
            assert!(words.contains("texts contain it: chat_sessions.title (") && words.contains("--alias"), "{words}");
            // Somebody who owns nothing is removed from what others say, if that is decided.
            let purged = world.purge("zoe@elsewhere.example", &everything()).await;
            let (plan, receipt) = purged.unwrap_or_else(|error| panic!("{error}"));
            assert!(
                plan["disclosures"].to_string().contains("no row belongs to anybody known by that name"),
                "{plan:#}"
            );
            assert_eq!(plan["counts"], receipt["counts"]);
            assert!(!receipt["counts"].to_string().contains("delete"), "{receipt:#}");
            let titles = world.texts("SELECT title FROM chat_sessions WHERE user_id = 'user-ben'").await;
            assert!(!titles.is_empty() && titles.iter().all(|title| title == "ask [erased]"), "{titles:?}");
        }
    });
}

#[test]
fn links_of_others_to_a_persons_cases_go_with_them() {
    block_on(async {
        let world = native(60).await;
        let case = "SELECT c.id FROM agent_memory_cases c ORDER BY c.id LIMIT 1";
        let (case, owner) =
            (world.texts(case).await.remove(0), "SELECT user_id FROM agent_memory_cases ORDER BY id LIMIT 1");
        let owner = world.texts(owner).await.remove(0);
        world.run(&format!("INSERT INTO episode_memories (episode_id, memory_id, kind, rank) SELECT id, '{case}', 'case', 99 FROM episodes WHERE user_id <> '{owner}' LIMIT 3")).await;
        let (plan, receipt) = world.purge(&owner, &everything()).await.expect("a receipt");
        assert_eq!(plan["counts"], receipt["counts"]);
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
        assert_eq!(world.count(&format!("episode_memories WHERE memory_id = '{case}'")).await, 0);
        assert!(receipt["effects"].to_string().contains("memory_access_items is kept in step by triggers"));
    });
}

#[test]
fn chains_of_computed_links_go_on_by_the_links_that_are_left() {
    block_on(async {
        let Some(world) = without_trail_on_postgres(Layout::NousHead).await else { return };
        // Nous's own migration adds a column for parents: here are the tables that erasing needs alone.
        migrate::apply(&world.open().await, &author(), Some(3)).await.expect("our tables");
        let middle = "started_at = '2026-10-02 10:00:00.123456+00'";
        world.run(&format!("UPDATE heart.episodes SET user_id = 'user-ben' WHERE NOT {middle}")).await;
        world.run("UPDATE brain.graph_edges SET weight = 0.76 WHERE weight = 0.74").await;
        let kept = format!(
            "SELECT g::text FROM brain.graph_edges g WHERE NOT EXISTS (SELECT 1 FROM heart.episodes e WHERE e.{middle} AND e.id IN (g.source_id, g.target_id)) ORDER BY g.id"
        );
        let before = world.texts(&kept).await;
        let (plan, _) = world.purge("user-ana", &everything()).await.expect("a receipt");
        let said = "heart.episodes: 2 rows follow a row to be deleted; they follow the strongest of their other links \
         then";
        assert!(plan["effects"].to_string().contains(said), "{:#}", plan["effects"]);
        assert_eq!(world.texts("SELECT g::text FROM brain.graph_edges g ORDER BY g.id").await, before);
    });
}

#[test]
fn mentions_are_left_taken_out_or_deleted_as_asked() {
    block_on(async {
        for (mentions, left, text) in [
            (Mentions::Leave, 1, "write to lea@leaver.example, and to lealea@leaver.example"),
            (Mentions::Redact, 1, "write to [erased], and to lealea@leaver.example"),
            (Mentions::Delete, 0, ""),
        ] {
            let world = native(40).await;
            world
                .run(
                    "INSERT INTO subjects (id, name, handles) VALUES ('leaver-x', 'Lea Verhoeven', '[\"lea@leaver.example\"]');
                    INSERT INTO episodes (id, user_id, title) VALUES ('mention-1', 'keeper-a', 'write to lea@leaver.example, and to lealea@leaver.example');
                    INSERT INTO episode_segments (id, episode_id, content) VALUES ('mention-2', 'mention-1', 'nothing');",
                )
                .await;
            let options = PurgeOptions { mentions, account: true, ..PurgeOptions::default() };
            {
                let store = world.open().await;
                let plan = purge::plan(&store, "lea@leaver.example", &options, &|_, _| {}).await.expect("a plan");
                // The episode that names her, and its segment, are another person's.
                let others = if mentions == Mentions::Delete { 2 } else { 0 };
                assert_eq!(purge::preview(&store, &plan).await.expect("a preview").gone_for_mentions, others);
            }
            let (plan, receipt) = world.purge("lea@leaver.example", &options).await.expect("a receipt");
            assert_eq!(plan["counts"], receipt["counts"]);
            assert_eq!(world.texts("SELECT title FROM episodes WHERE id = 'mention-1'").await.join(""), text);
            assert_eq!(world.count("episode_segments WHERE episode_id = 'mention-1'").await, left);
            // The longer address may be the person's too.
            let expected = if mentions == Mentions::Delete { "verified" } else { "verified with disclosures" };
            assert_eq!(receipt["status"], expected, "{receipt:#}");
        }
    });
}

#[test]
fn a_row_of_a_held_person_is_not_deleted_because_it_names_somebody() {
    block_on(async {
        for (title, content) in [("write to lea@leaver.example", "nothing"), ("nothing", "write to lea@leaver.example")]
        {
            let world = native(40).await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name, handles) VALUES ('leaver-x', 'Lea Verhoeven', '[\"lea@leaver.example\"]');
                    INSERT INTO episodes (id, user_id, title) VALUES ('mention-1', 'keeper-a', '{title}');
                    INSERT INTO episode_segments (id, episode_id, content) VALUES ('mention-2', 'mention-1', '{content}');"
                ))
                .await;
            let store = world.open().await;
            let hold = hold::hold(&store, "keeper-a", None, "officer").await.expect("a plan");
            mnemoscope::change::apply(&store, &hold, &author()).await.expect("held");
            let asked = |mentions| PurgeOptions { mentions, account: true, ..PurgeOptions::default() };
            let refused = purge::plan(&store, "lea@leaver.example", &asked(Mentions::Delete), &|_, _| {}).await;
            let Err(ChangeError::Refused(words)) = refused else { panic!("{title}: it is deleted") };
            assert!(words.contains("legal hold"), "{words}");
            purge::plan(&store, "lea@leaver.example", &asked(Mentions::Leave), &|_, _| {}).await.expect("a plan");
        }
    });
}

/// Facts of a plan, whenever it was made: the values that were read for it, its numbers, and what is printed.
fn told_by(plan: PurgePlan) -> (u64, String, Value) {
    let numbers = format!("{} {:?} {:?}", plan.plan_id, plan.control, plan.tally);
    let values = plan.values;
    let mut printed = serde_json::to_value(plan.printed()).expect("JSON");
    printed["created_at"] = Value::Null;
    (values, numbers, printed)
}

/// Findings of searches before, and facts of plans that were made without them.
#[derive(Default)]
struct Searched {
    kept: KeptSearch,
    fresh: Vec<(PurgeOptions, (u64, String, Value))>,
}

/// Plans with what searches before found, and without; checks that both are one plan, and gives the values that were read.
async fn planned_again(store: &Store, person: &str, options: &PurgeOptions, searched: &mut Searched) -> (u64, u64) {
    let Searched { kept, fresh } = searched;
    let again = purge::plan_any(store, person, options, kept, &|_, _| ()).await.expect("a plan");
    if !fresh.iter().any(|(made, _)| made == options) {
        let plan = purge::plan_any(store, person, options, &mut KeptSearch::default(), &|_, _| ()).await;
        fresh.push((options.clone(), told_by(plan.expect("a plan"))));
    }
    let (_, (fresh_values, fresh_numbers, fresh_printed)) =
        fresh.iter().find(|(made, _)| made == options).expect("a plan");
    let (values, numbers, printed) = told_by(again);
    assert_eq!(&numbers, fresh_numbers, "{person}");
    assert_eq!(&printed, fresh_printed, "{person}");
    (values, *fresh_values)
}

#[test]
fn another_decision_reads_only_what_was_found_before() {
    block_on(async {
        let demo = native(24).await;
        let of_demo = demo.texts("SELECT id FROM subjects ORDER BY id LIMIT 1").await.remove(0);
        let worlds = [
            (Some(demo), of_demo.as_str(), true),
            (Some(on_sqlite(Layout::Atom).await), "user-ana", false),
            (on_postgres(Layout::Atom2026).await, "user-ana", true),
            (on_postgres(Layout::EnnubeJson).await, "auth0|ana", false),
            (on_postgres(Layout::NousHead).await, "user-ana", false),
            (Some(on_sqlite(Layout::Pyworkflow).await), "user-3", false),
        ];
        let worlds = worlds.into_iter().filter_map(|(world, person, all)| Some((world?, person, all)));
        for (world, person, all) in worlds {
            let store = world.open().await;
            let mut searched = Searched::default();
            let asked = |mentions, account| PurgeOptions { mentions, account, ..PurgeOptions::default() };
            planned_again(&store, person, &asked(Mentions::Leave, false), &mut searched).await;
            let (again, fresh) = planned_again(&store, person, &asked(Mentions::Redact, false), &mut searched).await;
            assert!(again < fresh, "{person}: {again} of {fresh} values were read");
            // Every choice in one database of each engine, and the last in all.
            let choices = [
                (Mentions::Leave, false),
                (Mentions::Delete, false),
                (Mentions::Redact, true),
                (Mentions::Leave, true),
                (Mentions::Delete, true),
                (Mentions::Redact, false),
            ];
            let first = if all { 0 } else { choices.len() - 1 };
            for (mentions, account) in &choices[first..] {
                planned_again(&store, person, &asked(*mentions, *account), &mut searched).await;
            }
            let first = purge::plan(&store, person, &asked(Mentions::Leave, true), &|_, _| ()).await.expect("a plan");
            for mention in first.mentions.iter().take(3) {
                let each = BTreeMap::from([(mention.id.clone(), Mentions::Redact)]);
                let options = PurgeOptions { each, ..asked(Mentions::Leave, true) };
                planned_again(&store, person, &options, &mut searched).await;
            }
        }
    });
}

#[test]
fn a_table_outside_the_layout_is_disclosed_and_left_alone() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world.run("CREATE TABLE crm_notes (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO crm_notes VALUES (1, 'ask user-ana')").await;
        let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures");
        let said = |json: &Value| json["disclosures"].to_string().contains("crm_notes");
        assert!(said(&plan) && said(&receipt));
        assert_eq!(world.texts("SELECT note FROM crm_notes").await, ["ask user-ana"]);
    });
}

#[test]
fn a_receipt_names_nobody_whatever_tables_columns_and_folders_are_called() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            world
                .run(
                    "CREATE TABLE \"log of user-ana\" (id INTEGER PRIMARY KEY, \"Ana Ruiz\" TEXT); \
                     INSERT INTO \"log of user-ana\" VALUES (1, 'ask user-ana')",
                )
                .await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures");
            let whole = receipt.to_string();
            assert!(!whole.contains("user-ana") && !whole.contains("Ana Ruiz"), "{receipt:#}");
            assert!(whole.contains(".[column 2] is outside the layout"), "{receipt:#}");
            for file in receipt["verification"]["bytes"]["files"].as_array().into_iter().flatten() {
                assert!(file["path"].as_str().is_some_and(|path| path.starts_with("memory.db")), "{file}");
            }
        }
    });
}

#[test]
fn an_account_is_kept_and_disclosed_unless_its_erasure_is_asked_for() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        let options = PurgeOptions { account: false, ..everything() };
        let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures");
        assert_eq!(world.count("users WHERE id = 'user-ana'").await, 1);
        assert!(receipt["verification"]["logical"]["account"].as_u64().is_some_and(|n| n > 0));
    });
}

#[test]
fn what_cannot_mean_one_person_is_refused() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        let store = world.open().await;
        for subject in ["", "  ", "*", "%", "a", "user-*", "--"] {
            let plan = purge::plan(&store, subject, &PurgeOptions::default(), &|_, _| {}).await;
            assert!(matches!(plan, Err(ChangeError::Usage(_))), "{subject}");
        }
        let nobody = purge::plan(&store, "7", &PurgeOptions::default(), &|_, _| {}).await;
        assert!(matches!(nobody, Err(ChangeError::NotFound(_))), "a number may be an id");
        let Err(ChangeError::NotFound(words)) =
            purge::plan(&store, "user-anna", &PurgeOptions::default(), &|_, _| {}).await
        else {
            panic!("nobody is called that");
        };
        assert!(words.contains("user-anna"));
        world.run("INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ('user-2', 'x@y.example', 'Ana', 'Ruiz', 'member', 'active')").await;
        let two = purge::plan(&store, "Ana Ruiz", &PurgeOptions::default(), &|_, _| {}).await;
        assert!(
            matches!(two, Err(ChangeError::Usage(words)) if words.contains("user-2") && words.contains("user-ana"))
        );
    });
}

#[test]
fn a_hold_keeps_a_person_from_being_erased_until_it_is_taken_away() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let store = world.open().await;
            let here = &world;
            let apply = |plan| async move {
                mnemoscope::change::apply(&here.open().await, &plan, &author()).await.expect("applied")
            };
            apply(hold::hold(&store, "ana.ruiz@initech.example", Some("case 7"), "officer").await.expect("a plan"))
                .await;
            let Err(ChangeError::Refused(words)) = world.carry_out("user-ana", &everything(), false).await else {
                panic!("held")
            };
            assert!(words.contains("case 7"));
            assert!(world.count("users WHERE id = 'user-ana'").await == 1);
            apply(hold::unhold(&store, "user-ana").await.expect("a plan")).await;
            // The trail's own private values named the person: they go, and the trail still holds.
            erased(&world, "user-ana", &[], &["user-ana"]).await;
            assert_eq!(world.count("memory_audit_private WHERE value LIKE '%user-ana%'").await, 0);
        }
    });
}

#[test]
fn a_hold_or_a_list_that_is_taken_away_by_sql_is_noticed() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let here = &world;
            let apply = |plan| async move {
                mnemoscope::change::apply(&here.open().await, &plan, &author()).await.expect("applied")
            };
            let faults = || async move {
                let verdict = audit::verify(&here.open().await, &[]).await.expect("a verdict");
                verdict.faults.into_iter().map(|fault| fault.kind).collect::<Vec<_>>()
            };
            let held =
                || async move { hold::hold(&here.open().await, "user-ana", None, "officer").await.expect("a plan") };
            apply(held().await).await;
            assert!(faults().await.is_empty());
            world.run("DELETE FROM memory_holds").await;
            assert_eq!(faults().await, ["lost_hold"]);
            let Err(ChangeError::Refused(words)) = world.carry_out("user-ana", &everything(), false).await else {
                panic!("held")
            };
            assert!(words.contains("of the audit trail placed it"), "{words}");
            apply(held().await).await;
            assert!(faults().await.is_empty());
            apply(hold::unhold(&world.open().await, "user-ana").await.expect("a plan")).await;
            world.purge("user-ana", &everything()).await.expect("a receipt");
            assert!(faults().await.is_empty());
            world.run("DELETE FROM memory_suppressions").await;
            assert_eq!(faults().await, ["lost_list"]);
            let found = finished(&world, &["findings", "--kind", "resurrected", "--format", "json"]);
            assert!(String::from_utf8_lossy(&found.stdout).contains("missing from memory_suppressions"));
        }
    });
}

#[test]
fn an_erased_person_is_noticed_when_brought_back() {
    block_on(async {
        let world = native(40).await;
        let person = world.texts("SELECT id FROM subjects ORDER BY id LIMIT 1").await.remove(0);
        world.purge(&person, &everything()).await.expect("a receipt");
        let store = world.open().await;
        let episode = |user: &str| {
            json!({"title": "back again", "user_id": user, "agent_id": "agent-1", "started_at": "2026-05-01T10:00:00Z"})
                .to_string()
        };
        let plan = record::episode(&store, &episode(&person.to_uppercase())).await.expect("a plan");
        let refused = mnemoscope::change::apply(&store, &plan, &author()).await;
        assert!(matches!(refused, Err(ChangeError::Refused(words)) if words.contains("erased")));
        let set = json!({"user_id": person});
        let other = record::episode(&store, &episode("another")).await.expect("a plan");
        let id = other.changes[0].id.clone();
        mnemoscope::change::apply(&store, &other, &author()).await.expect("another may come");
        let plan = edit::edit(&store, Entity::Episode, &id, set.as_object().expect("values"), &serde_json::Map::new())
            .await
            .expect("a plan");
        let refused = mnemoscope::change::apply(&store, &plan, &author()).await;
        assert!(matches!(refused, Err(ChangeError::Refused(words)) if words.contains("erased")));
        let plan = record::episode(&store, &episode("someone-else")).await.expect("a plan");
        mnemoscope::change::apply(&store, &plan, &author()).await.expect("others may come");
        // Whoever has another key cannot tell, and is told so.
        let options = OpenOptions { secret: Some([9; 32]), ..crate::support::options() };
        let store = Store::open(&world.target, &options).await.expect("it opens");
        let plan = record::episode(&store, &episode(&person)).await.expect("a plan");
        let receipt = mnemoscope::change::apply(&store, &plan, &author()).await.expect("nobody can tell");
        let told = "1 erasure was listed here with another `erasure.key`";
        assert!(receipt.disclosures.iter().any(|words| words.contains(told)), "{:?}", receipt.disclosures);
    });
}

#[test]
fn an_account_that_was_left_is_no_return_and_a_new_one_is() {
    block_on(async {
        let everywhere = [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await];
        for world in everywhere.into_iter().flatten() {
            let back = |world: &World| {
                let found = finished(world, &["findings", "--kind", "resurrected"]);
                assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
                let found: Value = serde_json::from_slice(&found.stdout).expect("findings");
                found["findings"][0]["examples"].clone()
            };
            assert!(finished(&world, &["purge", "user-ana", "--apply"]).status.success());
            assert_eq!(world.count("users WHERE id = 'user-ana'").await, 1, "the account is left");
            assert_eq!(back(&world), Value::Null);
            world.run("INSERT INTO chat_sessions (id, user_id, title) VALUES ('s-9', 'user-ana', 'back')").await;
            assert_eq!(back(&world), json!(["user-ana"]));
            world.run("DELETE FROM chat_sessions WHERE id = 's-9'").await;
            assert_eq!(back(&world), Value::Null);
            // Once the account was erased too, an account alone is a return.
            let erased = finished(&world, &["purge", "user-ana", "--account", "erase", "--apply"]);
            assert!(erased.status.success(), "{}", String::from_utf8_lossy(&erased.stderr));
            assert_eq!(world.count("users WHERE id = 'user-ana'").await, 0);
            let account = "INSERT INTO users (id, email, first_name, last_name, role, status) \
                 VALUES ('user-ana', 'new@initech.example', 'A', 'R', 'member', 'active')";
            world.run(account).await;
            assert_eq!(back(&world), json!(["user-ana"]));
        }
    });
}

#[test]
fn what_others_are_known_by_too_is_no_sign_of_a_return() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            world.run("UPDATE users SET first_name = 'Ana', last_name = 'Ruiz' WHERE id = 'user-ben'").await;
            world.run("UPDATE chat_sessions SET title = 'Ana Ruiz asks' WHERE user_id = 'user-ben'").await;
            let options = PurgeOptions { full: true, ..everything() };
            let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            let by = author();
            let desk = Desk {
                folder: world.state(),
                key: KEY,
                author: &by,
                progress: &|_, _| {},
                forget_kept: &|_, _| Ok(()),
            };
            let store = world.open().await;
            let id = receipt["receipt_id"].as_str().expect("an id");
            let again = json!(purge::recheck(&store, id, &desk).await.expect("an answer"));
            assert_eq!(again["status"], "verified with disclosures");
            let erased = mnemoscope::change::suppress::Erased::of(&store).await.expect("a list").expect("people");
            assert!(erased.is_in("user-ana") && !erased.is_in("Ana Ruiz"));
            let again = world.carry_out("Ana Ruiz", &everything(), false).await;
            assert!(again.is_ok(), "the other one can still be erased: {again:?}");
        }
    });
}

#[test]
fn a_return_is_noticed_although_words_about_the_person_were_left() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let (_, receipt) = world.purge("user-ana", &PurgeOptions::default()).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures");
            let by = author();
            let desk = Desk {
                folder: world.state(),
                key: KEY,
                author: &by,
                progress: &|_, _| {},
                forget_kept: &|_, _| Ok(()),
            };
            let id = receipt["receipt_id"].as_str().expect("an id");
            let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
            assert_eq!(again["status"], "verified with disclosures", "{again:#}");
            world.run("INSERT INTO chat_sessions (id, user_id, title) VALUES ('s-9', 'user-ana', 'back')").await;
            let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
            assert_eq!(again["status"], "incomplete", "{again:#}");
        }
    });
}

#[test]
fn words_that_come_back_are_noticed_where_an_account_was_to_be_kept_and_there_is_none() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world.run("DELETE FROM users WHERE id = 'user-ana'").await;
        let options = PurgeOptions { account: false, ..everything() };
        let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
        let id = receipt["receipt_id"].as_str().expect("an id");
        let by = author();
        let desk =
            Desk { folder: world.state(), key: KEY, author: &by, progress: &|_, _| {}, forget_kept: &|_, _| Ok(()) };
        let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
        assert_eq!(again["status"], "verified", "{again:#}");
        world.run("INSERT INTO chat_sessions (id, user_id, title) VALUES ('s-9', 'user-ben', 'ask user-ana')").await;
        let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
        assert_eq!(again["status"], "incomplete", "{again:#}");
    });
}

#[test]
fn a_receipt_can_be_checked_later_and_notices_a_return_and_a_change() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        let id = receipt["receipt_id"].as_str().expect("an id");
        let by = author();
        let desk =
            Desk { folder: world.state(), key: KEY, author: &by, progress: &|_, _| {}, forget_kept: &|_, _| Ok(()) };
        let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
        assert_eq!(again["status"], "verified", "{again:#}");
        world.run("INSERT INTO chat_sessions (id, user_id, title) VALUES ('s-9', 'user-ben', 'ask ana.ruiz@initech.example')").await;
        let again = json!(purge::recheck(&world.open().await, id, &desk).await.expect("an answer"));
        assert_eq!(again["status"], "incomplete");
        let file = world.state().join("receipts").join(format!("{id}.json"));
        let text = std::fs::read_to_string(&file).expect("the receipt").replace("\"officer\"", "\"nobody\"");
        std::fs::write(&file, text).expect("written");
        let changed = purge::recheck(&world.open().await, id, &desk).await;
        assert!(matches!(changed, Err(ChangeError::Broken(_))));
    });
}

#[test]
fn a_bundle_holds_the_rows_that_would_go_with_a_hash_each() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        let store = world.open().await;
        let out = world.folder.path().join("bundle");
        let (manifest, _) = purge::bundle(&store, "user-ana", &PurgeOptions::default(), purge::Sink::Folder(&out))
            .await
            .expect("a bundle");
        let plan = purge::plan(&store, "user-ana", &everything(), &|_, _| {}).await.expect("a plan");
        let plan = json!(plan.printed());
        for table in manifest["tables"].as_array().expect("tables") {
            let name = table["table"].as_str().expect("a name");
            let bytes = std::fs::read(out.join(table["file"].as_str().expect("a file"))).expect("its rows");
            assert_eq!(table["sha256"], hex::encode(sha2::Sha256::digest(&bytes)));
            let lines = String::from_utf8_lossy(&bytes).lines().count();
            assert_eq!(table["rows"], lines, "{name}");
            assert!(lines >= rows(&plan["counts"], name, "delete"), "{name}");
        }
        let twice = purge::bundle(&store, "user-ana", &PurgeOptions::default(), purge::Sink::Folder(&out)).await;
        assert!(matches!(twice, Err(ChangeError::Usage(_))));
        let Target::File(database) = &world.target else { panic!("a file") };
        let mut reader = ChangingReader { database, read: Vec::new() };
        purge::bundle(&store, "user-ana", &PurgeOptions::default(), purge::Sink::Stream(&mut reader))
            .await
            .expect("a bundle");
        let read = String::from_utf8(reader.read).expect("text");
        assert!(read.contains("\"users\"") && !read.contains("changed meanwhile"), "{read}");
    });
}

/// The rows of a bundle, by table.
async fn bundled(world: &World, subject: &str, name: &str) -> (Value, BTreeMap<String, Vec<Value>>) {
    let out = world.folder.path().join(name);
    let sink = purge::Sink::Folder(&out);
    let bundle = purge::bundle(&world.open().await, subject, &PurgeOptions::default(), sink).await;
    let (manifest, _) = bundle.expect("a bundle");
    let of_table = |table: &Value| {
        let text = std::fs::read_to_string(out.join(table["file"].as_str().expect("a file"))).expect("its rows");
        let rows = text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
        (table["table"].as_str().expect("a name").to_owned(), rows)
    };
    let rows = manifest["tables"].as_array().expect("tables").iter().map(of_table).collect();
    (manifest, rows)
}

#[test]
fn a_bundle_holds_what_is_the_persons_in_rows_that_stay() {
    block_on(async {
        let everywhere = [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await];
        for world in everywhere.into_iter().flatten() {
            world
                .run(
                    "ALTER TABLE canvases ADD COLUMN last_edited_by VARCHAR(36) REFERENCES users (id); \
                     INSERT INTO canvases (id, tenant_id, created_by, name, content, last_edited_by) VALUES \
                       ('c-shared', 'tenant', 'user-ana', 'Plan', '{\"form\":\"Salary of Ana\"}', NULL), \
                       ('c-both', 'tenant', 'user-ana', 'Words of Ben', '{\"form\":\"Lease of Ana\"}', 'user-ben'), \
                       ('c-ben', 'tenant', 'user-ben', 'Budget', '{\"form\":\"Salary of Ben\"}', 'user-ana'); \
                     INSERT INTO canvas_audit (id, canvas_id, tenant_id, action_type, user_id, canvas_type) VALUES \
                       ('use-1', 'c-shared', 'tenant', 'present', 'user-ben', 'x'), \
                       ('use-2', 'c-both', 'tenant', 'present', 'user-ben', 'x'); \
                     UPDATE agent_registry SET user_id = 'user-ana' WHERE id = 'agent-scribe'; \
                     INSERT INTO agent_executions (id, agent_id, status, input_summary) VALUES \
                       ('run-ana', 'agent-scribe', 'done', 'asked about her lease'); \
                     UPDATE agent_episodes SET execution_id = 'run-ana' WHERE session_id IN \
                       (SELECT id FROM chat_sessions WHERE user_id = 'user-ana'); \
                     CREATE TABLE lines (session VARCHAR(255) REFERENCES chat_sessions (id) ON DELETE CASCADE, words TEXT); \
                     INSERT INTO lines SELECT id, 'said in passing' FROM chat_sessions WHERE user_id = 'user-ana'",
                )
                .await;
            let (manifest, rows) = bundled(&world, "user-ana", "bundle").await;
            let row = |table: &str, id: &str| rows[table].iter().find(|row| row["id"] == id).expect("a row");
            let content = |row: &Value| match &row["content"] {
                Value::String(text) => serde_json::from_str(text).expect("JSON"),
                other => other.clone(),
            };
            // Nobody else is named: the row as it is.
            let shared = row("canvases", "c-shared");
            assert_eq!((&shared["name"], &content(shared)["form"]), (&json!("Plan"), &json!("Salary of Ana")));
            assert_eq!(row("agent_registry", "agent-scribe")["name"], "Scribe");
            // Someone else is: what names the person, and what the erasure empties.
            let both = row("canvases", "c-both");
            assert_eq!(content(both)["form"], "Lease of Ana");
            let keys = |row: &Value| row.as_object().expect("a row").keys().cloned().collect::<BTreeSet<_>>();
            assert_eq!(keys(both), ["id", "created_by", "content"].map(str::to_owned).into());
            assert_eq!(*row("canvases", "c-ben"), json!({ "id": "c-ben", "last_edited_by": "user-ana" }));
            assert_eq!(row("agent_executions", "run-ana")["input_summary"], "asked about her lease");
            let entry = |name: &str| {
                let tables = manifest["tables"].as_array().expect("tables");
                tables.iter().find(|table| table["table"] == name).expect("an entry").clone()
            };
            assert_eq!(entry("canvases")["parts"], 2, "{manifest:#}");
            assert_eq!(entry("agent_registry")["parts"], Value::Null);
            // Rows that only the engine takes along.
            assert_eq!(rows["lines"].len() as i64, world.count("lines").await);
            assert!(rows["lines"].iter().all(|row| row["words"] == "said in passing"));
            world.purge("user-ana", &everything()).await.expect("a receipt");
            let left = "canvases WHERE id IN ('c-shared', 'c-both', 'c-ben') AND content IS NULL";
            assert_eq!((world.count(left).await, world.count("lines").await), (2, 0), "what the bundle holds is gone");
        }
    });
}

/// Reads a bundle, and changes a table whose rows come late in it with the first of its bytes.
struct ChangingReader<'w> {
    database: &'w Path,
    read: Vec<u8>,
}

impl std::io::Write for ChangingReader<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.read.is_empty() {
            let other = rusqlite::Connection::open(self.database).expect("the database");
            other.execute("UPDATE users SET first_name = 'changed meanwhile'", []).expect("changed");
        }
        self.read.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn binary(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.args(["-d", &address_of(&world.target), "--format", "json"]).args(arguments);
    command.env("MNEMOSCOPE_STATE", world.state()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(world: &World, arguments: &[&str]) -> Output {
    binary(world, arguments).output().expect("the program")
}

#[test]
fn the_commands_exit_as_the_contract_says() {
    let world = block_on(on_sqlite(Layout::Atom));
    let code = |arguments: &[&str]| finished(&world, arguments).status.code();
    assert_eq!(code(&["purge", ""]), Some(2));
    assert_eq!(code(&["purge", "*"]), Some(2));
    assert_eq!(code(&["purge", "x"]), Some(2));
    assert_eq!(code(&["purge", "x1"]), Some(3));
    assert_eq!(code(&["purge", "nobody@nowhere.example"]), Some(3));
    assert_eq!(code(&["purge", "user-ana", "--resume"]).map(|_| ()), Some(()));
    let world = block_on(on_sqlite(Layout::Atom));
    let code = |arguments: &[&str]| finished(&world, arguments).status.code();
    assert_eq!(code(&["hold", "user-ana", "--apply"]), Some(0));
    assert_eq!(code(&["purge", "user-ana"]), Some(5));
    assert_eq!(code(&["purge", "user-ana", "--apply"]), Some(5));
    assert_eq!(code(&["unhold", "user-ana", "--apply"]), Some(0));
    assert_eq!(code(&["unhold", "user-ana", "--apply"]), Some(3));
    assert_eq!(code(&["show", "subject", "ana.ruiz@initech.example"]), Some(0));
    block_on(world.run("CREATE TABLE chat_log (id INTEGER PRIMARY KEY, user_id TEXT, message TEXT)"));
    let exported = finished(&world, &["export", "subject", "user-ana"]);
    assert_eq!(exported.status.code(), Some(0));
    let told = "chat_log is not in the bundle: it is outside the layout and looks personal (user_id)";
    assert!(String::from_utf8_lossy(&exported.stderr).contains(told), "{exported:?}");
    let done = finished(&world, &["purge", "user-ana", "--account", "erase", "--mentions", "redact", "--apply"]);
    let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
    assert_eq!((done.status.code(), &receipt["status"]), (Some(0), &json!("verified")), "{receipt:#}");
    let id = receipt["receipt_id"].as_str().expect("an id");
    assert_eq!(code(&["purge", "verify", id]), Some(0));
    assert_eq!(code(&["purge", "verify", "no-such-receipt"]), Some(3));
}

#[test]
fn what_the_operator_keeps_outside_of_the_database_loses_the_person() {
    let world = block_on(on_sqlite(Layout::Atom));
    let done = |arguments: &[&str]| {
        let done = finished(&world, arguments);
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    done(&["recall", "what does Ana Ruiz like", "--ranking", "similar", "--save", "hers"]);
    done(&["recall", "invoices of August", "--ranking", "similar", "--save", "of the house"]);
    done(&["findings", "mute", "secret", "--reason", "as ANA.RUIZ@initech.example asked"]);
    done(&["findings", "mute", "instruction", "--reason", "known"]);
    done(&["purge", "user-ana", "--account", "erase", "--mentions", "redact", "--apply"]);
    let kept = |file: &str| std::fs::read_to_string(world.state().join(file)).expect("a file");
    let (questions, mutes) = (kept("queries.toml"), kept("mutes.toml"));
    assert!(questions.contains("invoices of August") && !questions.contains("Ana"), "{questions}");
    assert!(mutes.contains("instruction") && !mutes.contains("ANA"), "{mutes}");
}

#[test]
fn a_row_that_was_changed_meanwhile_pauses_the_run() {
    block_on(async {
        let world = native(60).await;
        let (before, person) = (world.count("episodes").await, "lucia.moreau");
        world.run("CREATE TRIGGER gone AFTER DELETE ON episode_segments BEGIN DELETE FROM utility_events; END").await;
        let paused = world.carry_out(person, &PurgeOptions { batch: 5, ..everything() }, false).await;
        assert!(
            matches!(&paused, Err(ChangeError::Paused(words)) if !words.contains("nothing was written")),
            "{paused:?}"
        );
        assert_eq!(world.count("episodes").await, before);
        assert!(matches!(world.carry_out(person, &everything(), false).await, Err(ChangeError::Refused(_))));
        world.run("DROP TRIGGER gone").await;
        let receipt = world.carry_out(person, &everything(), true).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
        assert_eq!(world.count("episodes WHERE user_id = 'lucia.moreau'").await, 0);
    });
}

/// A row that an agent gives to someone else while the erasure waits for it, and one that is given away before its
/// batch.
#[test]
fn a_row_that_was_given_to_somebody_else_meanwhile_stays() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let give = "UPDATE canvases SET created_by = 'user-ben' WHERE created_by = 'user-ana'";
            let told = if let Target::Postgres(url) = &world.target {
                let mut agent = PgConnection::connect(url).await.expect("the server");
                let mut change = agent.begin().await.expect("a transaction");
                sqlx::query(give).execute(&mut *change).await.expect("given");
                let waits = async {
                    let waiting = "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'transactionid' \
                         AND datname = current_database()";
                    while world.texts(waiting).await != ["1"] {
                        tokio::task::yield_now().await;
                    }
                    change.commit().await.expect("committed");
                };
                let chosen = everything();
                futures::join!(world.carry_out("user-ana", &chosen, false), waits).0
            } else {
                let on = "CREATE TRIGGER gives AFTER UPDATE ON memory_purges WHEN new.position > 0 BEGIN";
                world.run(&format!("{on} {give}; END")).await;
                let told = world.carry_out("user-ana", &PurgeOptions { batch: 1, ..everything() }, false).await;
                world.run("DROP TRIGGER gives").await;
                told
            };
            let words = told.expect_err("it is paused").to_string();
            assert!(words.contains("canvases") && words.contains("given to someone else"), "{words}");
            let receipt = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            assert_eq!(world.count("canvases").await, 1, "{receipt:#}");
        }
    });
}

#[test]
fn a_hold_stops_an_erasure_that_runs_or_waits() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let person = "user-ana";
            let (stops, holds, drop) = match world.target {
                Target::File(_) => (
                    "CREATE TRIGGER stops BEFORE DELETE ON users BEGIN SELECT RAISE(ABORT, 'not now'); END",
                    "CREATE TRIGGER stops AFTER DELETE ON users BEGIN \
                       INSERT INTO memory_holds (subject, reason, actor, created_at) VALUES ('user-ana', 'a claim', 'x', ''); END",
                    "DROP TRIGGER stops",
                ),
                Target::Postgres(_) => (
                    "CREATE FUNCTION stops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$; \
                     CREATE TRIGGER stops BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION stops()",
                    "CREATE FUNCTION holds() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                       INSERT INTO memory_holds (subject, reason, actor, created_at) \
                       VALUES ('user-ana', 'a claim', 'x', now()); RETURN NULL; END $$; \
                     CREATE TRIGGER stops AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION holds()",
                    "DROP TRIGGER stops ON users",
                ),
            };
            world.run(stops).await;
            world
                .carry_out(person, &PurgeOptions { batch: 1, ..everything() }, false)
                .await
                .expect_err("it is stopped");
            world.run(drop).await;
            // While it waits, a hold keeps what is left.
            let store = world.open().await;
            let hold = hold::hold(&store, person, Some("a claim"), "officer").await.expect("a plan");
            mnemoscope::change::apply(&store, &hold, &author()).await.expect("held");
            let resumed = world.carry_out(person, &everything(), true).await;
            assert!(matches!(&resumed, Err(ChangeError::Refused(words)) if words.contains("(a claim)")), "{resumed:?}");
            assert_eq!(world.count("users WHERE id = 'user-ana'").await, 1);
            let unhold = hold::unhold(&store, person).await.expect("a plan");
            mnemoscope::change::apply(&store, &unhold, &author()).await.expect("free");
            // One that is placed while it runs stops it before the next batch is final.
            world.run(holds).await;
            let stopped = world.carry_out(person, &everything(), true).await;
            let says = |words: &str| words.contains("(a claim)") && words.contains("--resume");
            assert!(matches!(&stopped, Err(ChangeError::Refused(words)) if says(words)), "{stopped:?}");
            assert_eq!(world.count("users WHERE id = 'user-ana'").await, 1);
            world.run(drop).await;
            let receipt = world.carry_out(person, &everything(), true).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            // Who was erased is not written down again by a hold that was planned before.
            let returned = mnemoscope::change::apply(&store, &hold, &author()).await;
            assert!(
                matches!(&returned, Err(ChangeError::Refused(words)) if words.contains("bring back")),
                "{returned:?}"
            );
        }
    });
}

#[test]
fn finding_out_waits_for_nobody() {
    block_on(async {
        let world = native(40).await;
        let began = Instant::now();
        let store = world.open().await;
        purge::plan(&store, "lucia.moreau", &PurgeOptions::default(), &|_, _| {}).await.expect("a plan");
        // No transaction is left open: another writer goes on at once.
        world.run("INSERT INTO agents (id) VALUES ('agent-new')").await;
        assert!(began.elapsed() < Duration::from_secs(30));
    });
}

/// Every place of a file, and of what lies next to it, where a text is in one of the spellings of bytes.
fn bytes_of(path: &Path, word: &str) -> usize {
    let utf16 = |order: fn(u16) -> [u8; 2]| word.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let needles = [
        word.as_bytes().to_vec(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        hex::encode(word).into_bytes(),
        hex::encode_upper(word).into_bytes(),
    ];
    let files = ["", "-wal", "-shm", "-journal"].map(|ending| PathBuf::from(format!("{}{ending}", path.display())));
    let bytes: Vec<Vec<u8>> = files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
    let count = |bytes: &Vec<u8>, needle: &Vec<u8>| memchr::memmem::find_iter(bytes, needle).count();
    bytes.iter().map(|bytes| needles.iter().map(|needle| count(bytes, needle)).sum::<usize>()).sum()
}

#[test]
fn no_byte_is_left_in_any_file_of_the_database() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        let (person, mail) = ("lucia.moreau", "lucia.moreau@harborpine.example");
        assert!(bytes_of(path, person) > 0 && bytes_of(path, mail) > 0);
        let (_, receipt) = world.purge(person, &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
        assert_eq!(receipt["verification"]["bytes"]["hits"], 0);
        assert_eq!((bytes_of(path, person), bytes_of(path, mail)), (0, 0));
    });
}

#[test]
fn a_reader_that_keeps_old_pages_leaves_it_incomplete_until_it_ends() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        let mut reader = sqlite(path).await;
        sqlx::raw_sql("BEGIN").execute(&mut reader).await.expect("begun");
        sqlx::query("SELECT count(*) FROM episodes").fetch_one(&mut reader).await.expect("a count");
        let (_, receipt) = world.purge("lucia.moreau", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        assert!(receipt["incomplete"].as_array().is_some_and(|reasons| !reasons.is_empty()));
        reader.close().await.expect("ended");
        let again = world.carry_out("lucia.moreau", &everything(), true).await.expect("a receipt");
        assert_eq!(again["status"], "verified", "{again:#}");
        assert_eq!(again["counts"], receipt["counts"]);
        assert_eq!(bytes_of(path, "lucia.moreau"), 0);
    });
}

#[test]
fn a_foreign_key_that_fits_no_parent_keeps_nobody_from_being_erased() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        let mut link = sqlite(path).await;
        let table = "CREATE TABLE note (u TEXT REFERENCES episodes (title), v TEXT REFERENCES nowhere (id)); \
             INSERT INTO note VALUES ('x', 'y')";
        sqlx::raw_sql(table).execute(&mut link).await.expect("a table");
        link.close().await.expect("closed");
        let (_, receipt) = world.purge("lucia.moreau", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
    });
}

#[test]
fn a_file_that_only_its_application_can_write_again_ends_in_a_word_too() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        let application = || async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).collation("LOCALIZED", Ord::cmp);
            SqliteConnection::connect_with(&options).await.expect("the application")
        };
        let mut link = application().await;
        let table = "CREATE TABLE places (name TEXT COLLATE LOCALIZED PRIMARY KEY); INSERT INTO places VALUES ('Oslo')";
        sqlx::raw_sql(table).execute(&mut link).await.expect("a table");
        link.close().await.expect("closed");
        let purge = |how: &str| {
            let done = finished(
                &world,
                &["purge", "lucia.moreau", how, "--account", "erase", "--mentions", "redact", "--apply"],
            );
            let words = String::from_utf8_lossy(&done.stderr).into_owned();
            (
                done.status.code(),
                serde_json::from_slice::<Value>(&done.stdout).unwrap_or_else(|e| panic!("{e}: {words}")),
            )
        };
        let (code, receipt) = purge("--format=json");
        assert_eq!((code, &receipt["status"]), (Some(6), &json!("incomplete")), "{receipt:#}");
        let said = receipt.to_string();
        assert!(
            said.contains("no such collation sequence: LOCALIZED") && said.contains("run VACUUM with it"),
            "{said}"
        );
        let mut link = application().await;
        sqlx::raw_sql("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut link).await.expect("written again");
        link.close().await.expect("closed");
        let (code, receipt) = purge("--resume");
        assert_eq!((code, &receipt["status"]), (Some(0), &json!("verified with disclosures")), "{receipt:#}");
        assert_eq!(bytes_of(path, "lucia.moreau"), 0);
    });
}

#[test]
fn old_pages_are_found_although_values_that_stay_hold_the_same_letters() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        world.run("UPDATE episodes SET title = 'about lucia.moreaux' WHERE user_id <> 'lucia.moreau'").await;
        let mut reader = sqlite(path).await;
        sqlx::raw_sql("BEGIN").execute(&mut reader).await.expect("begun");
        sqlx::query("SELECT count(*) FROM episodes").fetch_one(&mut reader).await.expect("a count");
        let (_, receipt) = world.purge("lucia.moreau", &everything()).await.expect("a receipt");
        let bytes = |receipt: &Value, what: &str| receipt["verification"]["bytes"][what].as_u64().unwrap_or_default();
        assert!(bytes(&receipt, "hits") > 0 && bytes(&receipt, "left") > 0, "{receipt:#}");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        reader.close().await.expect("ended");
        let again = world.carry_out("lucia.moreau", &everything(), true).await.expect("a receipt");
        assert_eq!(again["status"], "verified with disclosures", "{again:#}");
        assert!(bytes(&again, "hits") == 0 && bytes(&again, "left") > 0, "{again:#}");
    });
}

#[test]
fn what_is_written_while_values_are_searched_accounts_for_its_bytes() {
    const WRITE: &str = "import sqlite3, sys\nlink = sqlite3.connect(sys.argv[1])\n\
         link.execute(\"UPDATE episodes SET summary = 'written late, about lucia.moreaux' WHERE id = \
         (SELECT max(id) FROM episodes)\")\nlink.commit()";
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { return };
        let (is_clean, is_written) = (AtomicBool::new(false), AtomicBool::new(false));
        // Another process writes once, after the rows are deleted and while values are searched.
        let progress = |what: &str, _: u64| {
            let before = is_clean.fetch_or(what == "physical pass", Ordering::Relaxed);
            if before && !is_written.swap(true, Ordering::Relaxed) {
                let ended = Command::new("python3").args(["-c", WRITE]).arg(path).status().expect("Python");
                assert!(ended.success());
            }
        };
        let by = author();
        let desk =
            Desk { folder: world.state(), key: KEY, author: &by, progress: &progress, forget_kept: &|_, _| Ok(()) };
        let store = world.open().await;
        let receipt = purge::run(&store, "lucia.moreau", &everything(), None, &desk, None).await.expect("a receipt");
        let receipt = json!(receipt);
        assert!(is_written.into_inner(), "it was written in between");
        assert_eq!(receipt["verification"]["bytes"]["hits"], 0, "{receipt:#}");
        assert!(receipt["verification"]["bytes"]["left"].as_u64() > Some(0), "{receipt:#}");
    });
}

#[test]
fn on_a_server_what_was_not_rewritten_is_disclosed() {
    block_on(async {
        for full in [false, true] {
            let Some(world) = on_postgres(Layout::EnnubeZlib).await else { return };
            let (_, receipt) =
                world.purge("auth0|ana", &PurgeOptions { full, ..everything() }).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert_eq!(receipt["verification"]["bytes"]["checked"], false);
            assert!(receipt["disclosures"].to_string().contains("bytes of the server's files were not checked"));
        }
    });
}

#[test]
fn a_kept_plan_is_executed_as_it_was_approved_or_not_at_all() {
    let world = block_on(on_sqlite(Layout::Atom));
    let file = world.folder.path().join("plan.json");
    let kept = file.display().to_string();
    let purge = ["purge", "user-ana", "--account", "erase", "--mentions", "redact", "--plan-out", &kept];
    assert_eq!(finished(&world, &purge).status.code(), Some(0));
    block_on(world.run("INSERT INTO chat_sessions (id, user_id) VALUES ('ses-new', 'user-ana')"));
    let moved = finished(&world, &["apply", &kept]);
    assert_eq!(moved.status.code(), Some(4), "{}", String::from_utf8_lossy(&moved.stderr));
    assert_eq!(block_on(world.count("chat_sessions WHERE user_id = 'user-ana'")), 2);
    let planned = finished(&world, &purge);
    let done = finished(&world, &["apply", &kept, "--actor", "second"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let json = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).expect("json");
    let (plan, receipt) = (json(&planned), json(&done));
    assert_eq!((&receipt["plan_id"], &receipt["counts"]), (&plan["plan_id"], &plan["counts"]));
    let again = finished(&world, &["purge", "user-ana"]);
    assert_eq!(again.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&again.stderr).contains("erased here"));
}

#[test]
fn ids_that_are_numbers_are_told_from_words() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world
            .run(
                "UPDATE agent_episodes SET feedback_ids = '[\"7\", \"fb-other\"]', metadata_json = '{\"room\": \"7\", \"a\": [\"7\"]}'
                 WHERE session_id = 'ses-ben';
                 UPDATE agent_feedback SET user_id = 'user-ben' WHERE user_id = 'user-ana';
                 INSERT INTO agent_feedback (id, agent_id, user_id, original_output, user_correction)
                 VALUES ('7', 'agent-ledger', 'user-ana', '', '')",
            )
            .await;
        world.purge("user-ana", &everything()).await.expect("a receipt");
        let lists = world
            .texts("SELECT DISTINCT feedback_ids || metadata_json FROM agent_episodes WHERE session_id = 'ses-ben'")
            .await;
        assert_eq!(lists, ["[\"fb-other\"]{\"room\": \"7\", \"a\": [\"7\"]}"]);
    });
}

#[test]
fn a_person_is_taken_out_of_others_texts_in_whatever_spelling() {
    block_on(async {
        let world = native(20).await;
        let handles = r#"["ana.ruiz@initech.example", "+1-555-906-6204"]"#;
        world
            .run(&format!("INSERT INTO subjects (id, name, handles) VALUES ('user-ana', 'Ana Ruiz', '{handles}')"))
            .await;
        let texts = [
            ("ANA.RUIZ@INITECH.EXAMPLE wrote", "[erased] wrote"),
            ("x YW5hLnJ1aXpAaW5pdGVjaC5leGFtcGxl y", "x W2VyYXNlZF0= y"),
            ("616e612e7275697a40696e69746563682e6578616d706c65", "5b6572617365645d"),
            ("?to=ana.ruiz%40initech.example&u=user-ana", "?to=%5Berased%5D&u=[erased]"),
            (r#"{"a":"{\"b\":\"ana.ruiz@initech.example\"}"}"#, r#"{"a":"{\"b\":\"[erased]\"}"}"#),
            (r#"{"a":"ana.ruiz\u0040initech.example","user-ana":1}"#, r#"{"a":"[erased]","[erased]":1}"#),
            (r#"{"call":[15559066204, 2],"n":"(555) 906-6204"}"#, r#"{"call":[null, 2],"n":"[erased]"}"#),
            ("001 555.906.6204, not +1-555-906-62041", "[erased], not +1-555-906-62041"),
            (
                "user-anabel and xuser-ana and ana.ruiz@initech.example.org",
                "user-anabel and xuser-ana and ana.ruiz@initech.example.org",
            ),
        ];
        for (i, (text, _)) in texts.iter().enumerate() {
            let quoted = text.replace('\'', "''");
            let row = format!("('spelled-{i}', 'keeper-a', '{quoted}')");
            world.run(&format!("INSERT INTO episodes (id, user_id, title) VALUES {row}")).await;
        }
        let bytes = "CAST(x'ff20616e612e7275697a40696e69746563682e6578616d706c65' AS TEXT)";
        world.run(&format!("INSERT INTO episodes (id, user_id, title) VALUES ('bytes', 'keeper-a', {bytes})")).await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        // Letters next to an id may make another one: it is left, and named.
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        for (i, (_, expected)) in texts.iter().enumerate() {
            let now = world.texts(&format!("SELECT title FROM episodes WHERE id = 'spelled-{i}'")).await;
            assert_eq!(now, [*expected]);
        }
        let bytes = world.texts("SELECT hex(title) FROM episodes WHERE id = 'bytes'").await;
        assert_eq!(bytes, [format!("FF20{}", hex::encode_upper("[erased]"))]);
    });
}

#[test]
fn people_whose_ids_are_alike_keep_theirs_and_what_cannot_be_changed_is_disclosed() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world
            .run(
                "INSERT INTO chat_sessions (id, user_id) VALUES ('ses-a', 'u%50%'), ('ses-b', 'u%50%-b'), ('ses-c', 'u%50%0');
                 CREATE TABLE visitors (n INTEGER, email TEXT);
                 INSERT INTO memory_job_quarantine (job_id, number, entity, row_id, problem, at) VALUES ('j', 1, 'episode', 'x', 'of u%50% it was', 'now')",
            )
            .await;
        let (plan, receipt) = world.purge("u%50%", &everything()).await.expect("a receipt");
        assert_eq!(plan["counts"], receipt["counts"]);
        assert_eq!(
            world.texts("SELECT user_id FROM chat_sessions WHERE user_id LIKE 'u\\%%' ESCAPE '\\' ORDER BY 1").await,
            ["u%50%-b", "u%50%0"]
        );
        assert_eq!(world.count("memory_job_quarantine").await, 0);
        let said = receipt["disclosures"].to_string();
        assert!(said.contains("visitors is outside the layout and looks personal"), "{said}");
    });
}

#[test]
fn a_bundle_keeps_bytes_that_are_no_text() {
    block_on(async {
        for (world, hex) in [
            (Some(on_sqlite(Layout::Atom2026).await), "x'c328ff00'"),
            (on_postgres(Layout::Atom2026).await, "'\\xc328ff00'"),
        ] {
            let Some(world) = world else { continue };
            let bytes = if matches!(world.target, Target::File(_)) { "BLOB" } else { "bytea" };
            world
                .run(&format!("ALTER TABLE episodes ADD COLUMN packed {bytes}; UPDATE episodes SET packed = {hex}"))
                .await;
            let mut out = Vec::new();
            purge::bundle(&world.open().await, "user-ana", &PurgeOptions::default(), purge::Sink::Stream(&mut out))
                .await
                .expect("a bundle");
            let text = String::from_utf8(out).expect("text");
            let packed = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .filter_map(|row| row.get("packed").cloned());
            let packed: Vec<Value> = packed.collect();
            assert!(!packed.is_empty() && packed.iter().all(|value| value["hex"] == "c328ff00"), "{packed:?}");
        }
    });
}

#[test]
fn a_table_or_column_that_only_a_condition_names_may_be_missing() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            world.run("DROP TABLE canvas_audit; ALTER TABLE users DROP COLUMN first_name").await;
            let planned = finished(&world, &["purge", "user-ana"]);
            let words = String::from_utf8_lossy(&planned.stderr).into_owned();
            assert_eq!(planned.status.code(), Some(0), "{words}");
            let plan: Value = serde_json::from_slice(&planned.stdout).expect("a plan");
            assert!(!plan["counts"].as_object().expect("counts").is_empty(), "{plan:#}");
        }
    });
}
