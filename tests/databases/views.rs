//! Display of rows in lists, contexts and exports when their links are stored elsewhere, and the round trip through
//! export and import.

use std::collections::{BTreeMap, HashSet};

use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::world::*;
use mnemoscope::change::operation::ImportFormat;
use mnemoscope::change::{feedback, import, undo};
use mnemoscope::memory::filter::Filter;
use mnemoscope::memory::query::{Order, PageStart, Query};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::Target;
use mnemoscope::store::reading::ListReading;

/// Atom's feedback without a column of its episode: by execution, by list, by metadata; by none of them.
const LINKS: &str = "
INSERT INTO agent_executions (id, agent_id, status) VALUES ('run-1', 'agent-ledger', 'completed'),
  ('run-2', 'agent-ledger', 'completed'), ('run-both', 'agent-ledger', 'completed'), ('run-lost', 'agent-ledger', 'completed');
INSERT INTO agent_episodes (id, agent_id, tenant_id, execution_id, task_description, maturity_at_time, outcome, success,
  status, metadata_json, started_at, feedback_ids, access_count)
VALUES
  ('li-run', 'agent-ledger', 't', 'run-1', 'x', 'intern', 'success', TRUE, 'active', '{}', '2026-04-01 10:00:00', '[]', 0),
  ('li-list', 'agent-ledger', 't', 'run-2', 'x', 'intern', 'success', TRUE, 'active', '{}', '2026-04-02 10:00:00',
   '[\"lf-list\", \"lf-two\"]', 0),
  ('li-meta', 'agent-scribe', 't', 'run-both', 'x', 'intern', 'success', TRUE, 'active',
   '{\"feedback_ids\": [\"lf-meta\"]}', '2026-04-03 10:00:00', NULL, 0),
  ('li-one', 'agent-ledger', 't', 'run-both', 'x', 'intern', 'success', TRUE, 'active', '{}', '2026-04-04 10:00:00',
   '[\"lf-two\"]', 0),
  ('li-other', 'agent-ledger', 't', 'run-both', 'x', 'intern', 'success', TRUE, 'active', 'null', '2026-04-05 10:00:00',
   NULL, 0);
INSERT INTO agent_feedback (id, agent_id, agent_execution_id, user_id, original_output, user_correction, feedback_type,
  thumbs_up_down, created_at)
VALUES
  ('lf-run', 'agent-ledger', 'run-1', 'user-ana', '', 'ask first', 'thumbs_up', TRUE, '2026-05-01 10:00:00'),
  ('lf-list', 'agent-ledger', NULL, 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-02 10:00:00'),
  ('lf-two', 'agent-ledger', 'run-both', 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-03 10:00:00'),
  ('lf-meta', 'agent-scribe', 'run-lost', 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-04 10:00:00'),
  ('lf-many', 'agent-ledger', 'run-both', 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-05 10:00:00'),
  ('lf-agent', 'agent-scribe', 'run-1', 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-06 10:00:00'),
  ('lf-none', 'agent-ledger', NULL, 'user-ana', '', '', 'thumbs_up', TRUE, '2026-05-07 10:00:00');
";

/// Episode to which each feedback row belongs: by the only episode of its execution and agent, by a list, by the list
/// of its execution's episode.
const BELONGS: [(&str, Option<&str>); 7] = [
    ("lf-run", Some("li-run")),
    ("lf-list", Some("li-list")),
    ("lf-two", Some("li-one")),
    ("lf-meta", Some("li-meta")),
    ("lf-many", None),
    ("lf-agent", None),
    ("lf-none", None),
];

async fn all(world: &World, mut query: Query) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let page = world.store.page(&query).await.unwrap_or_else(|error| panic!("{error}"));
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return rows,
        }
    }
}

#[test]
fn feedback_is_listed_with_the_episode_that_it_belongs_to() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            meddle(&world, LINKS).await;
            let listed = all(&world, Query { limit: 2, ..Query::new(Entity::Feedback) }).await;
            let of: BTreeMap<&str, Option<&str>> = listed.iter().map(|r| (r.id(), r.text("episode_id"))).collect();
            for (id, episode) in BELONGS {
                assert_eq!(of[id], episode, "{id}");
                let row = world.store.row(Entity::Feedback, id).await.expect("a row").expect("it is there");
                assert_eq!(row.text("episode_id"), episode, "{id} on its own");
            }
            let index = ListReading::default();
            let mut query = Query { limit: 2, ..Query::new(Entity::Feedback) };
            let mut pages = 0;
            while let Some(page) = world.store.page_of(&query, &index).await.ok().filter(|_| pages < 1_000) {
                for row in &page.rows {
                    assert_eq!(row.text("episode_id"), of[row.id()], "{} with what other pages read", row.id());
                }
                pages += 1;
                let Some(next) = page.next else { break };
                query.start = PageStart::After(next);
            }
            assert_eq!(pages, listed.len().div_ceil(2));
            let by_episode = Order { column: "episode_id", descending: false };
            let ordered =
                all(&world, Query { limit: 3, order: Some(by_episode), ..Query::new(Entity::Feedback) }).await;
            let named: Vec<_> = ordered.iter().filter_map(|r| r.text("episode_id")).collect();
            assert!(named.is_sorted() && ordered.len() == listed.len(), "{named:?}");
            let either = "episode_id = 'li-run' or episode_id = 'li-one' or id = 'none'";
            let filters = vec![Filter::parse(Entity::Feedback, either, chrono::Utc::now()).expect("a filter")];
            let found = all(&world, Query { limit: 2, filters, ..Query::new(Entity::Feedback) }).await;
            let found: HashSet<&str> = found.iter().map(Row::id).collect();
            let of_either = of.iter().filter(|(_, of)| matches!(**of, Some("li-run" | "li-one")));
            let wanted: HashSet<&str> = of_either.map(|(id, _)| *id).collect();
            assert!(found == wanted && !wanted.is_empty(), "{found:?}, not {wanted:?}");
            for episode in ["li-run", "li-list", "li-one", "li-meta", "li-other", "ep-list", "nobody"] {
                let filter = format!("episode_id = '{episode}'");
                let filters = vec![Filter::parse(Entity::Feedback, &filter, chrono::Utc::now()).expect("a filter")];
                let mut wanted: Vec<&str> =
                    of.iter().filter(|(_, of)| **of == Some(episode)).map(|(id, _)| *id).collect();
                let found = all(&world, Query { limit: 2, filters, ..Query::new(Entity::Feedback) }).await;
                let mut found: Vec<&str> = found.iter().map(Row::id).collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{filter}");
                let Some(context) = world.store.contexts().episode(episode).await.expect("an answer") else { continue };
                let shown: Vec<&str> = context.feedback.iter().map(Row::id).collect();
                assert!(wanted.iter().all(|id| shown.contains(id)), "{episode} shows {shown:?}, not {wanted:?}");
            }
        }
    });
}

#[test]
fn a_list_of_many_pages_reads_the_links_of_episodes_once() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            meddle(&world, LINKS).await;
            let index = ListReading::default();
            let whole = Query { limit: 100, ..Query::new(Entity::Feedback) };
            let first = world.store.page_of(&whole, &index).await.expect("a page").rows;
            let again = world.store.page_of(&whole, &index).await.expect("a page").rows;
            meddle(&world, "UPDATE agent_episodes SET execution_id = NULL, feedback_ids = NULL, metadata_json = NULL")
                .await;
            let later = world.store.page_of(&whole, &index).await.expect("a page").rows;
            assert!(first == again && again == later, "nothing more is read of episodes");
            assert_ne!(world.store.page(&whole).await.expect("a page").rows, later, "a list of its own reads them");
        }
    });
}

#[test]
fn changes_follow_stored_links_alone() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            meddle(&world, LINKS).await;
            with_user(&world).await;
            let edited =
                feedback::edit(&world.store, "lf-run", &said("thumbs_down", None, None), None).await.expect("a plan");
            let touched: Vec<&str> = edited.changes.iter().map(|change| change.entity.as_str()).collect();
            assert_eq!(touched, ["feedback"], "no episode stores a link to it");
        }
    });
}

/// Arguments that export every kind of row but accesses and audit entries, in the order in which they go back in.
const EVERYTHING: [&str; 14] = [
    "export", "case", "agent", "subject", "episode", "segment", "canvas_event", "feedback", "utility_event", "memory",
    "memory_link", "profile", "policy", "workflow_event",
];

fn run(world: &World, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(crate::support::program());
    let output = command.arg("-d").arg(address(world)).args(arguments).output().expect("the program");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A native database without a row.
async fn empty(postgres: bool) -> Option<World> {
    let (folder, schema) = (tempfile::tempdir().expect("a folder"), mnemoscope::store::bulk::NATIVE_SCHEMA.as_str());
    if postgres {
        let database = crate::support::postgres::Database::fresh()?;
        let target = Target::Postgres(database.url().to_owned());
        let schema = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
        Agent::of(&target).await.run(schema).await;
        return Some(world(target, folder, Some(database)).await);
    }
    let path = folder.path().join("empty.db");
    std::fs::File::create(&path).expect("a file");
    let target = Target::File(path);
    Agent::of(&target).await.run(schema).await;
    Some(world(target, folder, None).await)
}

/// Removes what is in one dump and not in the other, but for secrets, which an import leaves out.
fn differing(a: &BTreeMap<String, Vec<String>>, b: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let secret = |row: &&String| row.contains(&hex::encode_upper("AKIA")) || row.contains("AKIA");
    let mut found = Vec::new();
    for (table, rows) in a {
        let there: std::collections::BTreeSet<&String> = b.get(table).into_iter().flatten().collect();
        let missing = rows.iter().filter(|row| !there.contains(row)).filter(|row| !secret(row));
        found.extend(missing.map(|row| format!("{table}: {}", row.chars().take(3_000).collect::<String>())));
    }
    found
}

#[test]
fn a_row_with_a_long_value_that_cannot_be_read_is_imported() {
    block_on(async {
        let (source, target) = (small().await, empty(false).await.expect("a database"));
        let script = "UPDATE episodes SET metadata = '{\"a\": NaN, \"pad\": \"' || hex(zeroblob(40000)) || '\"}' \
                      WHERE id = (SELECT max(id) FROM episodes)";
        meddle(&source, script).await;
        let lines = run(&source, &["export", "episode"]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &lines).expect("the export");
        let path = file.path().display().to_string();
        let receipt = run(&target, &["import", "jsonl", &path, "--apply", "--format", "json"]);
        let receipt: serde_json::Value = serde_json::from_str(&receipt).expect("a receipt");
        assert_eq!(receipt["counts"]["episodes"]["insert"], lines.lines().count());
    });
}

#[test]
fn an_export_that_is_imported_gives_the_same_database() {
    block_on(async {
        for postgres in [false, true] {
            let source = if postgres { native_on_postgres().await } else { Some(small().await) };
            let (Some(source), Some(target)) = (source, empty(postgres).await) else { continue };
            let floats: Vec<String> = [0.1_f32, -1e-40, f32::MAX, 1.0 / 3.0].iter().map(f32::to_string).collect();
            if postgres {
                let table = source.store.catalog().table("episode_embeddings").expect("the table");
                let is_vector = table.column("embedding").is_some_and(|c| c.declared.contains("vector"));
                let vector = if is_vector { format!("'[{}]'", floats.join(",")) } else { "'\\x3dcccccd'".to_owned() };
                let rows = format!(
                    "INSERT INTO episode_embeddings VALUES ('ep-1', {vector}), ('ep-2', {vector}); \
                    INSERT INTO agents (id, name, created_at) VALUES ('agent-1', 'One', '2026-01-01'); \
                    INSERT INTO subjects (id, name, handles) VALUES ('user-1', 'Ana', '[\"ana@example.com\"]')"
                );
                meddle(&source, &rows).await;
            }
            let mut arguments = EVERYTHING.to_vec();
            arguments.push("access");
            let lines = run(&source, &arguments);
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &lines).expect("the export");
            let path = file.path().display().to_string();
            let receipt = run(&target, &["import", "jsonl", &path, "--apply", "--format", "json"]);
            let receipt: serde_json::Value = serde_json::from_str(&receipt).expect("a receipt");
            assert_eq!(receipt["status"], "applied");
            let (before, after) = (dump(&source).await, dump(&target).await);
            let ours = |all: BTreeMap<String, Vec<String>>| {
                all.into_iter().filter(|(table, _)| table != "agent_memory_audit").collect::<BTreeMap<_, _>>()
            };
            let (before, after) = (ours(before), ours(after));
            assert_eq!(differing(&before, &after), Vec::<String>::new(), "postgres: {postgres}");
            let counts = |all: &BTreeMap<String, Vec<String>>| {
                all.iter().map(|(table, rows)| (table.clone(), rows.len())).collect::<Vec<_>>()
            };
            assert_eq!(counts(&before), counts(&after), "postgres: {postgres}");
            assert!(before.get("episode_embeddings").is_some_and(|rows| !rows.is_empty()));
        }
    });
}

#[test]
fn an_export_of_another_engine_brings_its_vectors_and_says_what_it_cannot() {
    block_on(async {
        let (source, Some(target)) = (on_sqlite(Layout::Atom).await, empty(false).await) else { return };
        meddle(&source, "UPDATE agent_episodes SET embedding = '[0.25, -3.5]' WHERE id = 'ep-list'").await;
        let lines = run(&source, &["export", "episode"]);
        let line = lines.lines().find(|line| line.contains("\"ep-list\"")).expect("the episode");
        assert!(line.contains("\"vector\":[0.25,-3.5]"), "{line}");
        let plan = import::plan(&target.store, ImportFormat::Jsonl, "x", &lines, true).await.expect("a plan");
        assert!(plan.disclosures.iter().any(|d| d.contains("agent_episodes.tenant_id")), "{:?}", plan.disclosures);
        done(&target, Ok(plan)).await;
        let vectors =
            target.store.embeddings().vectors(Entity::Episode, &["ep-list".to_owned()]).await.expect("vectors");
        assert_eq!(vectors.get("ep-list"), Some(&vec![0.25, -3.5]));
        if let Some(target) = empty(true).await {
            done(&target, import::plan(&target.store, ImportFormat::Jsonl, "x", &lines, true).await).await;
            let vectors =
                target.store.embeddings().vectors(Entity::Episode, &["ep-list".to_owned()]).await.expect("vectors");
            assert_eq!(vectors.get("ep-list"), Some(&vec![0.25, -3.5]));
        }
    });
}

async fn atoms() -> Vec<World> {
    [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten().collect()
}

#[test]
fn feedback_by_somebody_unknown_is_refused_where_a_foreign_key_asks() {
    block_on(async {
        for world in atoms().await {
            let refused = feedback::add(&world.store, "ep-list", &said("thumbs_up", None, None)).await;
            let words = refused.expect_err("nobody is called u-1").to_string();
            assert!(words.contains("u-1") && words.contains("--user"), "{words}");
            with_user(&world).await;
            assert!(feedback::add(&world.store, "ep-list", &said("thumbs_up", None, None)).await.is_ok());
        }
    });
}

#[test]
fn a_person_has_as_much_feedback_as_the_list_shows() {
    block_on(async {
        for world in atoms().await {
            meddle(
                &world,
                "INSERT INTO episode_feedback (id, episode_id, tenant_id, feedback_score, provider_id) \
                VALUES ('ef-more', 'ep-list', 't', 0.5, 'user-ana')",
            )
            .await;
            for person in all(&world, Query::new(Entity::Subject)).await {
                let filter =
                    Filter::parse(Entity::Feedback, &format!("user_id = '{}'", person.id()), chrono::Utc::now());
                let query = Query { filters: vec![filter.expect("a filter")], ..Query::new(Entity::Feedback) };
                assert_eq!(
                    person.get("feedback").as_u64(),
                    Some(all(&world, query).await.len() as u64),
                    "{}",
                    person.id()
                );
            }
        }
    });
}

#[test]
fn an_empty_canvas_type_gives_way_to_the_one_in_the_details() {
    block_on(async {
        for world in atoms().await {
            meddle(
                &world,
                "INSERT INTO canvas_audit (id, canvas_id, tenant_id, action_type, canvas_type, details_json) \
                VALUES ('ca-empty', 'canvas-1', 't', 'present', '', '{\"canvas_type\": \"sheets\"}')",
            )
            .await;
            let row = world.store.row(Entity::CanvasEvent, "ca-empty").await.unwrap().expect("the event");
            assert_eq!(row.text("canvas_type"), Some("sheets"));
        }
    });
}

#[test]
fn uuids_are_found_in_any_case() {
    block_on(async {
        let Some(world) = on_postgres(Layout::EnnubeJson).await else { return };
        let found = all(&world, Query { limit: 1, ..Query::new(Entity::Case) }).await;
        let (id, upper) = (found[0].id().to_owned(), found[0].id().to_ascii_uppercase());
        let row = world.store.row(Entity::Case, &upper).await.unwrap().expect("the case");
        assert_eq!(row.id(), id);
        let filter = Filter::parse(Entity::Case, &format!("id = '{upper}'"), chrono::Utc::now()).expect("a filter");
        let query = Query { filters: vec![filter], ..Query::new(Entity::Case) };
        assert_eq!(all(&world, query).await.len(), 1);
        assert!(world.store.encoder().locate(Entity::Case, &upper).await.unwrap().is_some());
    });
}

#[test]
fn an_undo_that_was_done_says_so() {
    block_on(async {
        let world = small().await;
        let episode = some_episode(&world).await;
        let receipt = done(&world, feedback::add(&world.store, &episode, &said("thumbs_up", None, None)).await).await;
        let seq = receipt.audit_seq.expect("an entry");
        let undone = done(&world, undo::undo(&world.store, seq).await).await;
        let words = undo::undo(&world.store, seq).await.expect_err("it is done").to_string();
        assert!(words.contains("already undone"), "{words}");
        // Taken back, it is current again.
        done(&world, undo::undo(&world.store, undone.audit_seq.expect("an entry")).await).await;
        done(&world, undo::undo(&world.store, seq).await).await;
    });
}

#[test]
fn feedback_that_never_counts_does_not_count_after_an_edit() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, layout) = (folder.path().join("notes.db"), folder.path().join("notes.toml"));
        std::fs::File::create(&path).expect("a file");
        std::fs::write(
            &layout,
            "name = \"notes\"\ntitle = \"Notes\"\nrequires = [\"notes/said\"]\n[[episode]]\ntable = \"talks\"\nlinks = [{ to = \"feedback\", back = true }]\n[episode.columns]\nid = \"id\"\n[[feedback]]\n\
            table = \"notes\"\nwrite = {}\n[feedback.columns]\nid = \"id\"\nepisode_id = \"talk\"\nkind = \"said\"\ncorrection = \"words\"\n\
            counts = { value = false }\n",
        )
        .expect("the layout");
        let target = Target::File(path.clone());
        Agent::of(&target)
            .await
            .run(
                "CREATE TABLE notes (id TEXT PRIMARY KEY, talk TEXT, said TEXT, words TEXT); CREATE TABLE talks (id TEXT PRIMARY KEY); \
            INSERT INTO notes VALUES ('n-1', 't-1', 'thumbs_up', ''); INSERT INTO talks VALUES ('t-1')",
            )
            .await;
        let run = |arguments: &[&str]| {
            let mut command = std::process::Command::new(crate::support::program());
            let output =
                command.arg("-d").arg(&path).arg("--layout").arg(&layout).args(arguments).output().expect("it");
            String::from_utf8(output.stdout).expect("text")
        };
        run(&["migrate", "--apply"]);
        let receipt = run(&["feedback", "edit", "n-1", "--kind", "thumbs_down", "--apply", "--format", "json"]);
        assert!(receipt.contains("thumbs_down") && !receipt.contains("\"counts\": true"), "{receipt}");
    });
}

#[test]
fn sizes_of_tables_are_told_on_demand() {
    block_on(async {
        let world = small().await;
        let status = world.store.report().status().await.expect("the status");
        assert!(status.tables.iter().all(|t| t.bytes.is_none() && t.bytes_reason.is_some()));
        let told = world.store.report().with_sizes(status).await.expect("the sizes");
        assert!(told.tables.iter().all(|t| t.bytes.is_some_and(|b| b >= 4096)), "{:?}", told.tables);
    });
}

#[test]
fn a_count_is_true_or_missing_with_the_reason() {
    block_on(async {
        let world = small().await;
        // Three rows with numbers far apart, and a table that nobody can count.
        for sql in [
            "CREATE TABLE sparse (id INTEGER PRIMARY KEY, word TEXT)",
            "INSERT INTO sparse VALUES (1, 'a'), (1000000, 'b'), (1767225600000000, 'c')",
            "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        ] {
            meddle(&world, sql).await;
        }
        let store = open(&world.target).await;
        let status = store.report().status().await.unwrap();
        let of = |name: &str| status.tables.iter().find(|t| t.name == name).unwrap();
        assert_eq!((of("sparse").rows, &of("sparse").rows_reason), (Some(3), &None));
        assert_eq!(of("endless").rows, None);
        let reason = of("endless").rows_reason.as_deref().unwrap();
        assert!(reason.contains("takes too long") && reason.contains("ANALYZE"), "{reason}");
        // Tables that are listed by themselves are counted so too.
        let tables = store.raw().raw_tables().await.unwrap();
        let listed = |name: &str| tables.iter().find(|t| t.name.name == name).unwrap();
        assert_eq!((listed("sparse").rows, listed("endless").rows), (Some(3), None));
        assert!(listed("endless").rows_reason.is_some());
    });
}

#[test]
fn tables_outside_of_the_search_path_are_hinted_at() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        meddle(
            &world,
            "CREATE SCHEMA aside; ALTER TABLE episodes SET SCHEMA aside; ALTER TABLE utility_events SET SCHEMA \
            aside; ALTER TABLE episode_memories SET SCHEMA aside",
        )
        .await;
        let store = open(&world.target).await;
        let Err(error) = store.sources_of(Entity::Episode) else { panic!("they are not found") };
        assert!(error.to_string().contains("not in the search path"), "{error}");
        let remedy = store.why_missing(Entity::Episode).1.expect("a remedy");
        assert!(remedy.ends_with("`?options[search_path]=aside` at the end of the URL"), "{remedy}");
        // A name in quotes has no place in an address.
        meddle(&world, "ALTER SCHEMA aside RENAME TO \"a Side\"").await;
        let remedy = open(&world.target).await.why_missing(Entity::Episode).1.expect("a remedy");
        assert_eq!(remedy, "ALTER ROLE CURRENT_USER SET search_path TO \"a Side\"");
    });
}

#[test]
fn a_prune_leaves_long_numbers_and_repeated_keys_as_they_stand() {
    block_on(async {
        let world = small().await;
        let plan = "{\"n\": 123456789012345678901234567890, \"cases\": [\"gone\", 1.50], \"cases\": {\"ids\": [\"kept\", \"gone\"]}}";
        meddle(&world, &format!("INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('pr-x', 'u-x', 'a-x'); \
            INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, plan, reward, created_at) VALUES \
            ('gone', 'pr-x', 'u-x', 'a-x', 'h1', NULL, 0.1, '2026-01-01T00:00:00.000000Z'), \
            ('stays', 'pr-x', 'u-x', 'a-x', 'h2', '{plan}', 0.9, '2026-01-02T00:00:00.000000Z')")).await;
        run(&world, &["prune", "--user", "u-x", "--below-reward", "0.5", "--apply"]);
        let stored = run(&world, &["export", "case", "--where", "id = 'stays'"]);
        let line: serde_json::Value = serde_json::from_str(&stored).expect("a line");
        let wanted = "{\"n\": 123456789012345678901234567890, \"cases\": [1.50], \"cases\": {\"ids\": [\"kept\"]}}";
        assert_eq!(line["stored"]["spelled"]["plan"], wanted, "{stored}");
    });
}

#[test]
fn the_demo_tells_the_same_story_up_to_any_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |at: &str, name: &str| -> Vec<(String, i64)> {
        let path = folder.path().join(name).display().to_string();
        let run = |arguments: &[&str]| {
            let output =
                std::process::Command::new(crate::support::program()).args(arguments).output().expect("the program");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        run(&["demo", &path, "--episodes", "40", "--no-console", "--at", at]);
        let end = chrono::DateTime::parse_from_rfc3339(at).expect("a time");
        let lines = run(&["-d", &path, "list", "episode", "--format", "jsonl"]);
        // Awkward rows nest deeper than a strict reader goes: the two values are removed from the text.
        let value = |line: &str, name: &str| {
            let rest = line.split_once(&format!("\"{name}\":\"")).map(|(_, rest)| rest.to_owned());
            rest.and_then(|rest| rest.split_once('"').map(|(value, _)| value.to_owned())).unwrap_or_default()
        };
        let age = |line: &str| {
            let started = chrono::DateTime::parse_from_rfc3339(&value(line, "started_at"));
            (value(line, "agent_id"), started.map_or(-1, |started| (end - started).num_seconds()))
        };
        lines.lines().map(age).collect()
    };
    let (one, other) = (told("2026-06-15T16:00:00Z", "one.db"), told("2031-01-04T03:30:00Z", "other.db"));
    assert_eq!(one, other);
    assert!(one.iter().any(|(_, age)| (0..3_600).contains(age)), "{one:?}");
}

/// Counts for each person of Atom, by SQL, what the feedback tables name.
fn counted_by_sql(tables: &[(&str, &str)]) -> String {
    let of = |(table, user): &(&str, &str)| format!("(SELECT count(*) FROM {table} f WHERE f.{user} = t.id)");
    let sum = tables.iter().map(of).collect::<Vec<_>>().join(" + ");
    format!("SELECT t.id || ' ' || CAST({sum} AS text) FROM users t")
}

#[test]
fn the_feedback_of_atoms_people_is_counted_in_each_table() {
    let today: &[(&str, &str)] = &[("agent_feedback", "user_id"), ("episode_feedback", "provider_id")];
    block_on(async {
        for (layout, tables) in [(Layout::Atom, today), (Layout::Atom2026, &today[..1])] {
            for world in [Some(on_sqlite(layout).await), on_postgres(layout).await].into_iter().flatten() {
                let mut stated = texts(&world, &counted_by_sql(tables)).await;
                let order = Some(Order { column: "feedback", descending: true });
                let query = Query { limit: usize::MAX, order, ..Query::new(Entity::Subject) };
                let page = world.store.page(&query).await.unwrap_or_else(|error| panic!("{error}"));
                let counts: Vec<i64> =
                    page.rows.iter().map(|row| row.get("feedback").as_i64().expect("a count")).collect();
                assert!(counts[0] > 0 && counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
                let mut shown: Vec<String> =
                    page.rows.iter().zip(counts).map(|(row, count)| format!("{} {count}", row.id())).collect();
                stated.sort();
                shown.sort();
                assert_eq!(shown, stated, "{layout:?}");
            }
        }
    });
}
