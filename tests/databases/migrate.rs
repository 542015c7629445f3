//! Migrations: what a layout lacks comes, once, step by step, and is verified; a stopped one continues; what differs is
//! shown and never stamped over; agents write meanwhile. On both engines.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::{
    address_of as place, bare_on_postgres, killed_at, meddle_with as run, open, run as cli, tester as author,
};
use mnemoscope::change::migrate::{self, MigrationChoice};
use mnemoscope::change::plan::migration::PendingMigration;
use mnemoscope::change::{ChangeError, audit};
use mnemoscope::layout::Engine;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{Connection, PgConnection};

const CANVAS: &str = "atom-2026-02/0001_canvas_feedback";

/// Takes back what the migration of February 2026 makes.
const BEFORE: [&str; 9] = [
    "DROP INDEX IF EXISTS ix_canvas_audit_episode_id",
    "DROP INDEX IF EXISTS ix_agent_feedback_episode_id",
    "DROP INDEX IF EXISTS ix_episodes_agent_canvas",
    "ALTER TABLE episodes DROP COLUMN canvas_ids",
    "ALTER TABLE episodes DROP COLUMN canvas_action_count",
    "ALTER TABLE episodes DROP COLUMN feedback_ids",
    "ALTER TABLE episodes DROP COLUMN aggregate_feedback_score",
    "ALTER TABLE canvas_audit RENAME COLUMN episode_id TO was_episode",
    "ALTER TABLE agent_feedback RENAME COLUMN episode_id TO was_episode",
];

/// A database on each engine, built by a fixture, with its place.
struct World {
    target: Target,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

async fn worlds(layout: Layout) -> Vec<World> {
    let mut worlds = Vec::new();
    if Layout::ON_SQLITE.contains(&layout) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("memory.db");
        build_sqlite(layout, &path).await;
        worlds.push(World { target: Target::File(path), _folder: folder, _database: None });
    }
    if let Some(database) = bare_on_postgres(layout).await {
        let target = Target::Postgres(database.url().to_owned());
        worlds.push(World { target, _folder: tempfile::tempdir().expect("a folder"), _database: Some(database) });
    }
    worlds
}

/// Databases of February 2026 from before the canvas and feedback columns.
async fn older() -> Vec<World> {
    let worlds = worlds(Layout::Atom2026).await;
    for world in &worlds {
        for sql in BEFORE {
            run(&world.target, sql).await;
        }
    }
    worlds
}

fn names(pending: &[PendingMigration]) -> Vec<&str> {
    pending.iter().map(|p| p.name.as_str()).collect()
}

#[test]
fn what_an_older_layout_lacks_comes_once_and_every_row_stays_readable() {
    block_on(async {
        for world in older().await {
            let store = open(&world.target).await;
            let state = migrate::state(&store).await.expect("a state");
            assert!(state.layouts[0].contains("before"), "{:?}", state.layouts);
            let canvas = state.pending.iter().find(|p| p.name == CANVAS).expect("the migration is pending");
            assert!(canvas.steps.len() == 9 && canvas.steps.iter().all(|s| !s.done), "{canvas:?}");
            assert!(canvas.sql.contains("canvas_action_count") && !canvas.lock_risk.is_empty());
            let outcome = migrate::apply_chosen(&store, &author(), &MigrationChoice::default()).await.expect("applied");
            assert!(outcome.verified && outcome.applied.contains(&CANVAS.to_owned()), "{outcome:?}");
            let episodes = outcome.readable.iter().find(|r| r.entity == "episode").expect("episodes were counted");
            assert!(episodes.before > 0 && episodes.read == episodes.before, "{episodes:?}");
            assert!(outcome.layouts[0].contains("with canvas"), "{:?}", outcome.layouts);
            let store = open(&world.target).await;
            let state = migrate::state(&store).await.expect("a state");
            assert_eq!(names(&state.pending), [""; 0]);
            assert!(migrate::apply(&store, &author(), None).await.expect("nothing").is_empty(), "idempotent");
            let entries = audit::list(&store, 0, 100).await.expect("a trail");
            assert_eq!(entries.len(), 2, "one entry for our tables, one for the layout's migration");
            assert!(audit::verify(&store, &[]).await.expect("verified").faults.is_empty());
        }
    });
}

#[test]
fn every_row_is_read_again_also_those_without_an_id() {
    block_on(async {
        for world in older().await {
            let Target::File(_) = &world.target else { continue };
            let loose = "ALTER TABLE episode_segments RENAME TO kept; CREATE TABLE episode_segments AS SELECT * FROM kept; \
                DROP TABLE kept";
            run(&world.target, loose).await;
            // More than are read in one statement.
            for (id, rows) in [("'many-' || n", 2_300), ("NULL", 3)] {
                let numbers =
                    format!("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {rows})");
                run(
                    &world.target,
                    &format!(
                        "{numbers} INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content) \
                         SELECT {id}, 'ep', 'message', n, 'text' FROM c"
                    ),
                )
                .await;
            }
            let store = open(&world.target).await;
            let outcome = migrate::apply_chosen(&store, &author(), &MigrationChoice::default()).await.expect("applied");
            let segments = outcome.readable.iter().find(|r| r.entity == "segment").expect("segments were counted");
            assert!(segments.before > 2_300 && segments.read == segments.before, "{segments:?}");
            assert!(outcome.verified);
        }
    });
}

#[test]
fn a_migration_that_was_stopped_says_where_it_goes_on() {
    block_on(async {
        for world in older().await {
            let store = open(&world.target).await;
            migrate::apply(&store, &author(), Some(3)).await.expect("our own tables only");
            let begun = format!(
                "INSERT INTO memory_migrations (version, name, checksum, applied_at, database_id) \
                 SELECT 2001, '{CANVAS}', '{}', '', database_id FROM memory_migrations WHERE version = 1",
                mnemoscope::store::migration::of("atom-2026-02", store.engine())[0].checksum
            );
            run(&world.target, &begun).await;
            run(&world.target, "ALTER TABLE episodes ADD COLUMN canvas_ids JSON").await;
            if let Target::Postgres(_) = &world.target {
                // What a build that was broken off leaves: an index that serves nobody.
                run(&world.target, "CREATE INDEX ix_episodes_agent_canvas ON episodes (agent_id)").await;
                let broken =
                    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_episodes_agent_canvas'::regclass";
                run(&world.target, broken).await;
            }
            let store = open(&world.target).await;
            let state = migrate::state(&store).await.expect("a state");
            assert_eq!(names(&state.pending), [CANVAS]);
            assert_eq!(state.pending[0].goes_on_at.as_deref(), Some("episodes count their canvas actions"));
            assert!(!state.applied.contains(&CANVAS.to_owned()) && state.drift.is_empty(), "{state:?}");
            assert_eq!(migrate::apply(&store, &author(), None).await.expect("applied"), [CANVAS]);
            let state = migrate::state(&open(&world.target).await).await.expect("a state");
            assert!(state.pending.is_empty() && state.applied.contains(&CANVAS.to_owned()), "{state:?}");
        }
    });
}

#[test]
fn drift_is_shown_with_a_diff_and_nothing_is_stamped_over() {
    block_on(async {
        for world in worlds(Layout::Atom2026).await {
            let store = open(&world.target).await;
            migrate::apply(&store, &author(), None).await.expect("applied");
            run(&world.target, "UPDATE memory_migrations SET checksum = 'feed' WHERE version = 1").await;
            let state = migrate::state(&store).await.expect("a state");
            assert!(state.drift[0].message.contains("altered") && state.drift[0].diff.is_empty(), "{:?}", state.drift);
            run(&world.target, "UPDATE memory_audit SET public = replace(public, 'prev_hash', 'prior_hash')").await;
            let state = migrate::state(&store).await.expect("a state");
            let diff = &state.drift[0].diff;
            assert!(diff.contains("-    prior_hash") && diff.contains("+    prev_hash"), "{diff}");
            let refused = migrate::apply(&store, &author(), None).await;
            assert!(
                matches!(&refused, Err(ChangeError::Refused(words)) if words.contains("0001_audit")),
                "{refused:?}"
            );
            assert_eq!(migrate::state(&store).await.expect("a state").drift[0].applied, "feed");
        }
    });
}

#[test]
fn an_earlier_text_of_a_migration_that_makes_the_same_parts_is_no_drift() {
    const WAS: [&str; 2] = [
        "8cca6f55d8daec8f1b793bbfcee93365f9fd05f4657307fc5f88a2d197c37bea",
        "8930942686ef9b935779845e6595b5e93c66b95a2f790366ce44d9c3a36c4356",
    ];
    block_on(async {
        for world in older().await {
            let store = open(&world.target).await;
            migrate::apply(&store, &author(), None).await.expect("applied");
            let was = match store.engine() {
                Engine::Sqlite => WAS[0],
                Engine::Postgres => WAS[1],
            };
            for (checksum, drifts) in [("feed", 1), (was, 0)] {
                let stamp = format!("UPDATE memory_migrations SET checksum = '{checksum}' WHERE name = '{CANVAS}'");
                run(&world.target, &stamp).await;
                let state = migrate::state(&store).await.expect("a state");
                assert_eq!(state.drift.len(), drifts, "{checksum}: {:?}", state.drift);
            }
            assert!(migrate::state(&store).await.expect("a state").pending.is_empty());
        }
    });
}

#[test]
fn an_empty_database_becomes_a_memory_of_its_own() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.db");
        std::fs::write(&path, "").expect("an empty file");
        let database = Database::fresh();
        let targets = std::iter::once(Target::File(path));
        for target in targets.chain(database.iter().map(|d| Target::Postgres(d.url().to_owned()))) {
            let store = open(&target).await;
            assert!(names(&migrate::state(&store).await.expect("a state").pending).contains(&"mnemoscope/0001_native"));
            migrate::apply(&store, &author(), None).await.expect("applied");
            let store = open(&target).await;
            assert_eq!(store.recognised().layouts[0].name, "mnemoscope");
            let state = migrate::state(&store).await.expect("a state");
            assert_eq!(names(&state.pending), [""; 0]);
        }
    });
}

#[test]
fn a_case_bank_can_be_made_and_optional_ones_come_by_name_only() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let target = Target::Postgres(database.url().to_owned());
        let options = OpenOptions { layouts: vec!["ennube".to_owned()], ..crate::support::options() };
        let store = Store::open(&target, &options).await.expect("an empty database");
        let applied = migrate::apply(&store, &author(), None).await.expect("applied");
        for name in ["ennube/0001_case_bank", "ennube/0002_audit_index", "ennube/0003_reward_updates"] {
            assert!(applied.contains(&name.to_owned()), "{applied:?}");
        }
        let store = open(&target).await;
        let state = migrate::state(&store).await.expect("a state");
        assert!(state.pending.is_empty(), "{:?}", names(&state.pending));
        assert!(!state.optional[0].applied);
        let choice = |name: &str| MigrationChoice { to: None, optional: vec![name.to_owned()] };
        let unknown = migrate::apply_chosen(&store, &author(), &choice("row-level-safety")).await;
        assert!(matches!(unknown, Err(ChangeError::Usage(_))), "{unknown:?}");
        let outcome = migrate::apply_chosen(&store, &author(), &choice("row-level-security")).await.expect("applied");
        assert_eq!(outcome.applied, ["ennube/0004_row_level_security"]);
        assert!(migrate::state(&open(&target).await).await.expect("a state").optional[0].applied);
        // The name under which it is listed is as good; it is already there.
        let again =
            migrate::apply_chosen(&open(&target).await, &author(), &choice("ennube/0004_row_level_security")).await;
        assert_eq!(again.expect("nothing to do").applied, [""; 0]);
    });
}

#[test]
fn agents_that_write_meanwhile_wait_less_than_a_second() {
    block_on(async {
        for world in older().await {
            let Target::Postgres(url) = &world.target else { continue };
            let many = "INSERT INTO canvas_audit SELECT (jsonb_populate_record(c, jsonb_build_object('id', c.id || '-' || n))).* \
                FROM canvas_audit c, generate_series(1, 2000) n";
            run(&world.target, many).await;
            let (done, longest) = (AtomicBool::new(false), AtomicU64::new(0));
            let agent = async {
                let mut link = PgConnection::connect(url).await.expect("the server");
                while !done.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    let sql = "UPDATE episodes SET title = title; UPDATE canvas_audit SET session_id = session_id WHERE id = ''";
                    sqlx::raw_sql(sql).execute(&mut link).await.expect("an agent's write");
                    longest.fetch_max(started.elapsed().as_millis() as u64, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            // Holds its rows for longer than a step waits.
            let slow = async {
                let mut link = PgConnection::connect(url).await.expect("the server");
                let sql = "BEGIN; UPDATE episodes SET title = title WHERE false; SELECT pg_sleep(3.2); COMMIT";
                sqlx::raw_sql(sql).execute(&mut link).await.expect("a slow agent");
            };
            let migration = async {
                let store = open(&world.target).await;
                let outcome = migrate::apply_chosen(&store, &author(), &MigrationChoice::default()).await;
                done.store(true, Ordering::Relaxed);
                outcome
            };
            let ((), (), outcome) = tokio::join!(agent, slow, migration);
            assert!(outcome.expect("applied in the end").verified);
            assert!(longest.load(Ordering::Relaxed) < 1_000, "an agent waited {} ms", longest.load(Ordering::Relaxed));
        }
    });
}

async fn rows(target: &Target) -> Vec<(String, String, u64)> {
    let counts = open(target).await.schema().source_counts().await.expect("counts");
    counts.into_iter().map(|c| (c.entity, c.source, c.before)).collect()
}

/// Builds the worlds whose pending migrations are killed: databases of a layout, or empty ones for `None`.
async fn killed_world(layout: Option<Layout>) -> Vec<World> {
    match layout {
        Some(Layout::Atom2026) => older().await,
        Some(layout) => worlds(layout).await,
        None => {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("empty.db");
            std::fs::write(&path, "").expect("an empty file");
            let empty = |target, database| World {
                target,
                _folder: tempfile::tempdir().expect("a folder"),
                _database: database,
            };
            let mut worlds = vec![World { target: Target::File(path), _folder: folder, _database: None }];
            if let Some(database) = Database::fresh() {
                worlds.push(empty(Target::Postgres(database.url().to_owned()), Some(database)));
            }
            worlds
        }
    }
}

/// One statement in this many is tried; all of them with `MNEMOSCOPE_KILL_EVERY=1`.
fn every() -> usize {
    std::env::var("MNEMOSCOPE_KILL_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(37)
}

#[test]
fn a_migration_killed_at_any_statement_goes_on_there_and_every_row_stays() {
    block_on(async {
        let layouts =
            [None, Some(Layout::Atom), Some(Layout::Atom2026), Some(Layout::NousHead), Some(Layout::EnnubeJson)];
        for (first, layout) in layouts.into_iter().enumerate() {
            for statement in (1 + 7 * first % every()..).step_by(every()) {
                let mut all_ended = true;
                for world in killed_world(layout).await {
                    let before = rows(&world.target).await;
                    let stopped = killed_at(&world.target, statement, &["migrate"]);
                    let store = open(&world.target).await;
                    let state = migrate::state(&store).await.expect("a state");
                    assert!(state.drift.is_empty(), "{layout:?} at {statement}: {:?}", state.drift);
                    assert!(
                        stopped || state.pending.is_empty(),
                        "{layout:?} at {statement}: {:?}",
                        names(&state.pending)
                    );
                    assert_kept(&world, &before, layout, statement).await;
                    let outcome = migrate::apply_chosen(&store, &author(), &MigrationChoice::default()).await;
                    let outcome = outcome.unwrap_or_else(|e| panic!("{layout:?} at {statement}: {e}"));
                    assert!(outcome.applied.is_empty() || outcome.verified, "{layout:?} at {statement}: {outcome:?}");
                    assert_kept(&world, &before, layout, statement).await;
                    let store = open(&world.target).await;
                    assert!(migrate::state(&store).await.expect("a state").pending.is_empty());
                    assert!(audit::verify(&store, &[]).await.expect("a trail").ok, "{layout:?} at {statement}");
                    all_ended &= !stopped;
                }
                if all_ended {
                    break;
                }
            }
        }
    });
}

/// Checks that everything readable before is still readable, row for row.
async fn assert_kept(world: &World, before: &[(String, String, u64)], layout: Option<Layout>, statement: usize) {
    let now = rows(&world.target).await;
    for source in before {
        assert!(now.contains(source), "{layout:?} at {statement}: {source:?} of {now:?}");
    }
}

/// Runs the program on a database: its exit code, and what it prints and says.
fn told(folder: &std::path::Path, database: &str, words: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    cli(folder, &[&["-d", database, "--format", "json"], words].concat())
}

#[test]
fn a_table_of_somebody_else_that_bears_one_of_our_names_is_not_taken_for_ours() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        for world in worlds(Layout::Atom).await {
            let database = place(&world.target);
            let subjects = told(folder.path(), &database, &["list", "subject", "--limit", "1"]).1;
            let person = subjects["rows"][0]["id"].as_str().expect("someone").to_owned();
            let looks = ["status", "findings", "list episode", "audit list", "audit verify", "backfill", "tables"];
            let looks =
                || looks.iter().map(|words| words.split(' ').collect::<Vec<_>>()).chain([vec!["purge", &person]]);
            let codes =
                || looks().map(|words| (words.join(" "), told(folder.path(), &database, &words).0)).collect::<Vec<_>>();
            let create = async |name: &str| {
                run(&world.target, &format!("CREATE TABLE {name} (id integer PRIMARY KEY, note text)")).await;
                run(&world.target, &format!("INSERT INTO {name} (id, note) VALUES (1, 'theirs')")).await;
            };
            let before = codes();
            for name in mnemoscope::store::own::TABLES {
                create(name).await;
            }
            assert_eq!(codes(), before);
            for name in mnemoscope::store::own::TABLES {
                run(&world.target, &format!("DROP TABLE {name}")).await;
            }
            for name in mnemoscope::store::own::TABLES {
                create(name).await;
                let (code, plan, said) = told(folder.path(), &database, &["migrate"]);
                assert_eq!(code, Some(5), "{name}: {said}");
                assert!(said.contains(name) && said.contains("rename it"), "{said}");
                assert!(plan["refused"].as_str().is_some_and(|why| why.contains(name)), "{plan:#}");
                for change in [vec!["migrate", "--apply"], vec!["hold", &person, "--reason", "a claim", "--apply"]] {
                    let (code, _, said) = told(folder.path(), &database, &change);
                    assert_eq!(code, Some(5), "{name} {change:?}: {said}");
                    assert!(said.contains(name), "{said}");
                }
                let store = open(&world.target).await;
                let ours = mnemoscope::store::own::TABLES;
                let there: Vec<&str> =
                    ours.iter().copied().filter(|own| store.catalog().table(own).is_some()).collect();
                assert_eq!(there, [*name], "nothing of ours was added");
                let write = told(folder.path(), &database, &["status"]).1["capabilities"].to_string();
                assert!(write.contains(&format!("{name} already exists")), "{write}");
                run(&world.target, &format!("DROP TABLE {name}")).await;
            }
            run(&world.target, "CREATE TABLE memory_audit (id integer PRIMARY KEY)").await;
            if let Target::Postgres(url) = &world.target {
                run(&world.target, "CREATE SCHEMA ours").await;
                let joint = if url.contains('?') { '&' } else { '?' };
                let own_schema = format!("{url}{joint}options[search_path]=ours,public");
                let elsewhere = tempfile::tempdir().expect("a folder");
                let (code, _, said) = told(elsewhere.path(), &own_schema, &["migrate", "--apply"]);
                assert_eq!(code, Some(0), "{said}");
                assert_eq!(told(elsewhere.path(), &own_schema, &["audit", "verify"]).0, Some(0));
                run(&world.target, "DROP SCHEMA ours CASCADE").await;
            }
            run(&world.target, "ALTER TABLE memory_audit RENAME TO memory_audit_of_agents").await;
            let (code, _, said) = told(folder.path(), &database, &["migrate", "--apply"]);
            assert_eq!(code, Some(0), "{said}");
            assert_eq!(told(folder.path(), &database, &["audit", "verify"]).0, Some(0));
        }
    });
}

#[test]
fn a_memory_that_the_search_path_leaves_out_is_named_by_what_would_change_it() {
    let Some(world) = block_on(worlds(Layout::Atom)).pop() else { return };
    let Target::Postgres(url) = &world.target else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(run(&world.target, "ALTER SCHEMA public RENAME TO ai; CREATE SCHEMA public"));
    for words in
        [&["migrate", "--apply"][..], &["edit", "memory", "m1", "text=x", "--apply"], &["purge", "user-ana", "--apply"]]
    {
        let (code, _, said) = told(home.path(), url, words);
        assert!(code == Some(5) && said.contains("options[search_path]=ai"), "{words:?} {code:?}: {said}");
    }
    let status = told(home.path(), url, &["status"]).1["capabilities"].to_string();
    assert!(status.contains("options[search_path]=ai"), "{status}");
}

#[test]
fn tables_for_changes_in_a_schema_that_the_search_path_leaves_out_are_not_made_a_second_time() {
    let Some(world) = block_on(worlds(Layout::Atom)).pop() else { return };
    let Target::Postgres(url) = &world.target else { return };
    let home = tempfile::tempdir().expect("a folder");
    let sql = |sql: &str| block_on(run(&world.target, sql));
    let through = |path: &str| format!("{url}{}options[search_path]={path}", if url.contains('?') { '&' } else { '?' });
    let asked = |database: &str, words: &[&str]| told(home.path(), database, words);
    let person =
        asked(url, &["list", "subject", "--limit", "1"]).1["rows"][0]["id"].as_str().expect("someone").to_owned();
    // Tables for changes of the memory in `public`, by someone who keeps them apart, and a hold.
    sql("CREATE SCHEMA ours");
    let ours = through("ours,public");
    assert_eq!(asked(&ours, &["migrate", "--apply"]).0, Some(0));
    assert_eq!(asked(&ours, &["hold", &person, "--reason", "a claim", "--apply"]).0, Some(0));
    assert_eq!(asked(&ours, &["purge", &person]).0, Some(5), "the hold is seen");
    let is_named = |(code, _, said): (Option<i32>, serde_json::Value, String), words: &[&str]| {
        assert!(
            matches!(code, Some(5 | 6)) && said.contains("options[search_path]=ours,public"),
            "{words:?} {code:?}: {said}"
        );
    };
    for words in [&["migrate"][..], &["migrate", "--apply"], &["hold", &person, "--reason", "x", "--apply"]] {
        is_named(asked(url, words), words);
    }
    let status = asked(url, &["status"]).1["capabilities"].to_string();
    assert!(status.contains("search_path]=ours,public"), "{status}");
    // Two sets, which versions before made: neither lets an erasure through that the other forbids.
    sql("ALTER TABLE ours.memory_migrations RENAME TO kept");
    assert_eq!(asked(url, &["migrate", "--apply"]).0, Some(0));
    sql("ALTER TABLE ours.kept RENAME TO memory_migrations");
    let purge = ["purge", &person, "--apply"];
    is_named(asked(url, &purge), &purge);
    assert!(asked(&ours, &purge).2.contains("search_path]=public"), "the other set is named");
    let told_in_plan =
        || asked(url, &["purge", &person]).1["disclosures"].to_string().contains("search_path]=ours,public");
    assert!(told_in_plan());
    // Where others have memories in this database, nobody can tell who owns them.
    sql("CREATE SCHEMA tenant; DO $$ DECLARE name text; BEGIN \
         FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname NOT LIKE 'memory%' LOOP \
         EXECUTE format('CREATE TABLE tenant.%I (LIKE public.%I INCLUDING ALL)', name, name); END LOOP; END $$");
    assert_eq!(asked(&through("tenant"), &["migrate", "--apply"]).0, Some(0));
    assert!(!told_in_plan());
}

#[test]
fn parents_that_edges_of_a_graph_tell_outlive_the_columns_that_a_migration_adds() {
    let Some(world) = block_on(worlds(Layout::NousHead)).pop() else { return };
    let Target::Postgres(url) = &world.target else { return };
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    let asked = |words: &[&str]| {
        let (code, answer, said) = told(folder, url, words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        answer
    };
    let episodes = || asked(&["list", "episode"])["rows"].as_array().expect("rows").clone();
    let told_of = |rows: &[serde_json::Value]| {
        rows.iter().map(|row| (row["parent_id"].clone(), row["metadata"].clone())).collect::<Vec<_>>()
    };
    let before = episodes();
    let child = before.iter().find(|row| row["parent_id"].is_string()).expect("one with a parent")["id"].clone();
    let child = child.as_str().expect("an id");
    let chain = asked(&["chain", child]);
    let parent = chain["chain"][0]["id"].as_str().expect("a root");
    let children = asked(&["chain", parent])["children"].clone();
    asked(&["migrate", "--apply"]);
    assert_eq!(told_of(&episodes()), told_of(&before));
    assert_eq!(asked(&["chain", child])["chain"].as_array().map(Vec::len), chain["chain"].as_array().map(Vec::len));
    assert_eq!(asked(&["chain", parent])["children"].as_array().map(Vec::len), children.as_array().map(Vec::len));
    // The edge would tell it again: nothing is said to be done that is not.
    let (code, _, said) = told(folder, url, &["unlink", child, "--apply"]);
    assert!(code == Some(5) && said.contains("other rows"), "{said}");
    let alone = before.iter().find(|row| row["parent_id"].is_null() && row["id"] != parent).expect("one without");
    let other = alone["id"].as_str().expect("an id");
    let linked = asked(&["link", child, other, "--apply"])["audit_seq"].to_string();
    let parent_of = |id: &str| episodes().iter().find(|row| row["id"] == id).expect("the row")["parent_id"].clone();
    assert_eq!(parent_of(child), other);
    asked(&["undo", &linked, "--apply"]);
    assert_eq!(told_of(&episodes()), told_of(&before));
    let (_, plan, _) = told(folder, url, &["backfill", "parents"]);
    let changes = plan["changes"].as_array().cloned().unwrap_or_default();
    assert!(changes.iter().all(|change| change["before"]["parent_id"].is_null()), "{changes:?}");
    // One whose parent only its own row tells has none when that is removed.
    let text = format!("UPDATE heart.episodes SET parent_episode_id = '{parent}' WHERE id = '{other}'");
    block_on(run(&world.target, &text));
    asked(&["unlink", other, "--apply"]);
    assert!(parent_of(other).is_null());
}
