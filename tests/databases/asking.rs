//! Questions to a whole database as people type them: words in all texts, two rows side by side, lists that grow, the past,
//! schemas, muted findings. Held against SQL and against what was there, on both engines.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use mnemoscope::change::{chain, edit, feedback, record, signal, undo};
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::{PageStart, Query};
use mnemoscope::memory::schema;
use mnemoscope::memory::utility::Signal;
use mnemoscope::store::Target;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

use crate::support::fixtures::Layout;
use crate::support::world::*;
use crate::support::{block_on, program};

/// A desk with settings and state of its own.
struct Desk {
    state: TempDir,
    database: String,
}

impl Desk {
    fn at(target: &Target) -> Self {
        Desk { state: TempDir::new().expect("a folder"), database: address_of(target) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .env("MNEMOSCOPE_STATE", self.state.path())
            .env("MNEMOSCOPE_CONFIG", self.state.path().join("config.toml"));
        command.env("TZ", "UTC").env_remove("COLUMNS").args(["-d", &self.database]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// The rows of a list, without those that are nested too deep to be read.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(&[arguments, &["--format", "jsonl"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn refused(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {words}");
        words
    }
}

/// Texts of the first column of a query, as SQL gives them.
async fn column(world: &World, sql: &str) -> BTreeSet<String> {
    texts(world, sql).await.into_iter().collect()
}

async fn worlds() -> Vec<World> {
    [Some(native().await), native_on_postgres().await].into_iter().flatten().collect()
}

fn id_of(row: &Value) -> String {
    row["id"].as_str().expect("an id").to_owned()
}

#[test]
fn words_are_found_wherever_sql_finds_them_and_each_row_once() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let texts = "INSERT INTO episodes (id, agent_id, user_id, title, summary, started_at) VALUES \
                ('find-1', 'a', 'u', 'Quaggas at noon', 'plain', '2026-03-01T10:00:00.000000Z'), \
                ('find-2', 'a', 'u', 'other', 'the QUAGGA of Zürixberg', '2026-03-02T10:00:00.000000Z'), \
                ('find-3', 'a', 'u', 'Zürixberg', 'at noon', NULL), ('find-4', 'a', 'u', 'qua', 'gga', NULL); \
                INSERT INTO episode_segments (id, episode_id, sequence, kind, content) VALUES \
                ('find-s', 'find-1', 1, 'message', 'a quagga'); \
                INSERT INTO agent_feedback (id, episode_id, user_id, kind, correction) VALUES \
                ('find-f', 'find-1', 'u', 'thumbs_down', 'not a Quagga'); \
                INSERT INTO memories (id, kind, title, text) VALUES ('find-m', 'drawer', 'quagga', 'x'); \
                INSERT INTO agent_memory_cases (id, message_hash, prompt) VALUES \
                ('find-c', 'h9', '{\"message\": \"one quagga\"}')";
            meddle(&world, texts).await;
            let mut truth = column(
                &world,
                "SELECT id FROM episodes WHERE lower(title) LIKE '%quagga%' OR lower(summary) LIKE '%quagga%'",
            )
            .await;
            truth.extend(["find-s", "find-f", "find-m", "find-c"].map(str::to_owned));
            let (mut found, mut after) = (Vec::new(), String::new());
            loop {
                let mut arguments = vec!["find", "quagga", "--limit", "2"];
                if !after.is_empty() {
                    arguments.extend(["--after", &after]);
                }
                let page = desk.json(&arguments);
                let rows = page["rows"].as_array().expect("rows").clone();
                assert!(rows.len() <= 2);
                for row in rows {
                    let snippet = row["snippet"].as_str().expect("a snippet").to_lowercase();
                    assert!(snippet.contains("quagga"), "{row}");
                    found.push(id_of(&row));
                }
                match page["next"].as_str() {
                    Some(next) => next.clone_into(&mut after),
                    None => break,
                }
            }
            assert_eq!(found.len(), truth.len(), "each once: {found:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), truth);
            let ids = |arguments: &[&str]| -> Vec<String> {
                desk.json(arguments)["rows"].as_array().expect("rows").iter().map(id_of).collect()
            };
            assert_eq!(ids(&["find", "zürixberg quagga"]), ["find-2"]);
            assert_eq!(ids(&["find", "\"at noon\"", "--entity", "episode"]), ["find-1", "find-3"]);
            assert_eq!(ids(&["find", "ZÜRIXBERG"]), ["find-2", "find-3"]);
            assert!(
                ids(&["find", "message", "--entity", "case"]).iter().all(|id| id != "find-c"),
                "a name is not text"
            );
            let masked = desk.run(&["find", "quagga", "--mask"]);
            let shown = String::from_utf8(masked.stdout).expect("text").to_lowercase();
            assert!(shown.contains("find-2") && !shown.contains("quagga") && !shown.contains("noon"), "{shown}");
            desk.refused(&["find", "zebra", "--after", &after], 2);
            desk.refused(&["find", "x", "--entity", "agent"], 2);
            desk.refused(&["find", " "], 2);
        }
    });
}

#[test]
fn an_index_of_words_adds_what_it_finds_and_hides_nothing() {
    block_on(async {
        let Some(world) = on_postgres(Layout::NousPlanned).await else { return };
        let desk = Desk::at(&world.target);
        let literal = column(
            &world,
            "SELECT id::text FROM heart.episodes WHERE lower(coalesce(title, '') || coalesce(summary, '') || \
             coalesce(detail, '')) LIKE '%deploy%'",
        )
        .await;
        let indexed = column(
            &world,
            "SELECT id::text FROM heart.episodes WHERE search_tsv @@ to_tsquery('english', '''deploy''')",
        )
        .await;
        let found = desk.json(&["find", "deploy", "--entity", "episode", "--limit", "10000"]);
        let found: BTreeSet<String> = found["rows"].as_array().expect("rows").iter().map(id_of).collect();
        assert!(found.is_superset(&literal) && found.is_superset(&indexed), "{found:?}");
    });
}

#[test]
fn two_rows_are_shown_side_by_side() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let texts = "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES \
                ('cmp-1', 'a', 'ada@example.org', 'Late load of Alder', '2026-03-01T10:00:00.000000Z'), \
                ('cmp-2', 'a', 'bob@example.org', 'Late load of Birch & Sons', '2026-03-02T10:00:00.000000Z')";
            meddle(&world, texts).await;
            let shown = desk.json(&["compare", "episode", "cmp-1", "cmp-2"]);
            assert_eq!(shown["same"], false);
            let field = |name: &str| {
                let fields = shown["fields"].as_array().expect("fields");
                fields.iter().find(|field| field["column"] == name).cloned().unwrap_or_default()
            };
            assert_eq!(field("agent_id")["same"], true);
            let words = field("title")["words"].clone();
            let side = |not: &str| {
                let pieces = words.as_array().expect("words").iter().filter(|piece| piece["how"] != not);
                pieces.map(|piece| piece["text"].as_str().expect("a text")).collect::<String>()
            };
            assert_eq!(
                (side("added").as_str(), side("removed").as_str()),
                ("Late load of Alder", "Late load of Birch & Sons")
            );
            let masked = desk.run(&["compare", "episode", "cmp-1", "cmp-2", "--mask", "--format", "table"]);
            let masked = String::from_utf8(masked.stdout).expect("text");
            assert!(masked.contains("title") && !masked.contains("Alder") && !masked.contains("ada@"), "{masked}");
            assert_eq!(desk.json(&["compare", "episode", "cmp-1", "cmp-1"])["same"], true);
            desk.refused(&["compare", "episode", "cmp-1", "nobody"], 3);
            desk.refused(&["compare", "nonsense", "cmp-1", "cmp-2"], 2);
        }
    });
}

/// Reads a program's output, line by line.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let out = BufReader::new(child.stdout.take().expect("its output"));
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    lines
}

/// Returns once someone waits for a lock in this database, or nobody does.
async fn until_lock_is_awaited(link: &mut PgConnection, waits: bool) {
    let sql = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let patience = Instant::now();
    while sqlx::query_scalar::<_, bool>(sql).fetch_one(&mut *link).await.expect("an answer") != waits {
        assert!(patience.elapsed() < Duration::from_mins(1), "awaited: {waits}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_followed_list_prints_each_new_row_once() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let mut child = desk
                .command(&["list", "memory", "--follow", "--limit", "1"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("the program");
            let lines = Mutex::new(lines_of(&mut child));
            let next = || {
                let line = lines.lock().expect("the lines").recv_timeout(Duration::from_mins(1)).expect("a line");
                id_of(&serde_json::from_str(&line).expect("JSON"))
            };
            let newest = desk.json(&["list", "memory", "--limit", "1"])["rows"][0].clone();
            assert_eq!(next(), id_of(&newest), "the newest one first");
            let row = |id: &str, time: &str| {
                format!("INSERT INTO memories (id, kind, text, created_at) VALUES ('{id}', 'drawer', 'x', '{time}')")
            };
            meddle(&world, &row("new-1", "2030-01-01T10:00:00.000000Z")).await;
            assert_eq!(next(), "new-1");
            // Written later, with an earlier time; then many at once.
            meddle(&world, &row("new-0", "2029-12-31T10:00:00.000000Z")).await;
            assert_eq!(next(), "new-0");
            let many: Vec<String> =
                (0..1_200).map(|n| row(&format!("many-{n:04}"), &format!("2030-02-01T10:00:00.{n:06}Z"))).collect();
            meddle(&world, &format!("BEGIN; {}; COMMIT", many.join("; "))).await;
            let printed: Vec<String> = (0..1_200).map(|_| next()).collect();
            assert_eq!(printed, (0..1_200).map(|n| format!("many-{n:04}")).collect::<Vec<_>>());
            meddle(&world, &row("last", "2030-03-01T10:00:00.000000Z")).await;
            assert_eq!(next(), "last", "none is printed again");
            if let Target::Postgres(url) = &world.target {
                // Looks that end at someone's lock are made again.
                let mut other = PgConnection::connect(url).await.expect("the server");
                let lock = "BEGIN; LOCK TABLE memories IN ACCESS EXCLUSIVE MODE";
                sqlx::raw_sql(lock).execute(&mut other).await.expect("a lock");
                for waits in [true, false, true, false] {
                    until_lock_is_awaited(&mut other, waits).await;
                }
                let row = row("behind-a-lock", "2030-03-02T10:00:00.000000Z");
                sqlx::raw_sql(AssertSqlSafe(format!("{row}; COMMIT"))).execute(&mut other).await.expect("a row");
                assert_eq!(next(), "behind-a-lock");
            }
            child.kill().expect("killed");
            child.wait().expect("its end");
            // Where nothing is written any more, it ends with its reader.
            let mut left =
                desk.command(&["list", "memory", "--follow"]).stdout(Stdio::piped()).spawn().expect("the program");
            let mut first = String::new();
            BufReader::new(left.stdout.take().expect("its output")).read_line(&mut first).expect("a line");
            let ended = std::thread::spawn(move || left.wait().expect("its end"));
            let patience = Instant::now();
            while !ended.is_finished() && patience.elapsed() < Duration::from_mins(1) {
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(ended.is_finished() && ended.join().expect("an end").success(), "{first}");
            desk.refused(&["list", "memory_link", "--follow"], 5);
            desk.refused(&["list", "memory", "--follow", "--format", "csv"], 2);
            desk.refused(&["list", "memory", "--follow", "--order", "kind"], 2);
        }
    });
}

#[test]
fn very_many_rows_of_one_time_are_shown_in_order_of_their_ids() {
    block_on(async {
        for world in worlds().await {
            let episode = some_episode(&world).await;
            // Their ids begin and end alike, and they come in another order.
            let script = format!(
                "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 2499) \
                 INSERT INTO utility_events (id, episode_id, signal, created_at) \
                 SELECT 'signals-of-one-run/' || (10000 + n * 7 % 2500) || '/of-the-episode', '{episode}', 'confirmed', \
                 '2026-02-01T00:00:00.000000Z' FROM n"
            );
            meddle(&world, &script).await;
            let shown = Desk::at(&world.target).json(&["show", "episode", &episode, "--format", "json"]);
            let ids = shown["utility"]
                .as_array()
                .expect("signals")
                .iter()
                .map(|signal| signal["id"].as_str().expect("an id"));
            let ids: Vec<&str> = ids.filter(|id| id.starts_with("signals-of-one-run")).collect();
            assert!(ids.len() == 2_500 && ids.is_sorted(), "{}", ids.len());
        }
    });
}

#[test]
fn a_long_list_that_no_index_has_in_order_is_in_order_and_whole() {
    block_on(async {
        for world in worlds().await {
            let episode = some_episode(&world).await;
            // What was before is one of three numbers, or none.
            let script = format!(
                "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 4999) \
                 INSERT INTO utility_events (id, episode_id, signal, created_at, \"before\") \
                 SELECT 'long/' || (10000 + n * 7 % 5000), '{episode}', 'confirmed', '2026-02-01T00:00:00.000000Z', \
                 CASE WHEN n % 2 = 0 THEN (n % 3) / 4.0 END FROM n"
            );
            meddle(&world, &script).await;
            for (order, down) in [("before", false), ("before:desc", true)] {
                let desk = Desk::at(&world.target);
                let shown = desk.rows(&["list", "utility_event", "--order", order]);
                let known = column(&world, "SELECT id FROM utility_events").await;
                let ids: BTreeSet<String> = shown.iter().map(id_of).collect();
                assert!(ids == known && shown.len() == known.len(), "{} of {}", shown.len(), known.len());
                let keys: Vec<(bool, f64, String)> = shown
                    .iter()
                    .map(|row| {
                        let before = row["before"].as_f64();
                        (before.is_none(), before.unwrap_or_default() * if down { -1.0 } else { 1.0 }, id_of(row))
                    })
                    .collect();
                let in_order = |pair: &[(bool, f64, String)]| {
                    let ids = if down { pair[0].2 > pair[1].2 } else { pair[0].2 < pair[1].2 };
                    (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1)
                        || (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1) && ids
                };
                assert!(keys.windows(2).all(in_order), "{order}");
            }
            // An index leads to the rows of a filter, and another one has their order.
            let filter = format!("episode_id = '{episode}'");
            let shown = Desk::at(&world.target).rows(&["list", "utility_event", "--where", &filter]);
            let known = column(&world, &format!("SELECT id FROM utility_events WHERE {filter}")).await;
            let ids: BTreeSet<String> = shown.iter().map(id_of).collect();
            assert!(ids == known && shown.len() == known.len(), "{} of {}", shown.len(), known.len());
            let keys: Vec<(&str, String)> =
                shown.iter().map(|row| (row["created_at"].as_str().unwrap(), id_of(row))).collect();
            assert!(keys.windows(2).all(|pair| pair[0] > pair[1]), "the newest first");
        }
    });
}

#[test]
fn a_list_goes_on_as_it_began_whatever_is_written_meanwhile() {
    block_on(async {
        let world = native().await;
        let desk = Desk::at(&world.target);
        let known = column(&world, "SELECT id FROM memories").await;
        for order in ["utility", "utility:desc"] {
            let (mut shown, mut after) = (Vec::new(), None);
            loop {
                let mut asked = vec!["list", "memory", "--order", order, "--limit", "7", "--format", "json"];
                asked.extend(after.iter().flat_map(|after: &String| ["--after", after]));
                let page = desk.json(&asked);
                shown.extend(page["rows"].as_array().expect("rows").iter().map(id_of));
                let Some(next) = page["next"].as_str() else { break };
                if after.is_none() {
                    // Another process writes what is no number to a row that is still to come.
                    let (column, seen) = (order.split(':').next().unwrap(), shown.iter().cloned().collect());
                    let unseen = known.difference(&seen).next().expect("a row");
                    meddle(&world, &format!("UPDATE memories SET {column} = 'odd' WHERE id = '{unseen}'")).await;
                }
                after = Some(next.to_owned());
            }
            let different: BTreeSet<String> = shown.iter().cloned().collect();
            assert!(different.is_subset(&known) && different.len() == shown.len(), "{order}: rows come twice");
            assert!(different.len() + 1 >= known.len(), "{order}: {} of {}", different.len(), known.len());
        }
    });
}

#[test]
fn a_page_ends_by_what_its_rows_take_once_they_are_read() {
    block_on(async {
        let world = native().await;
        // 60 KB of text, of which 30,000 values are made.
        let script = "UPDATE workflow_events SET data = '[' || replace(hex(zeroblob(30000)), '00', '0,') || '0]' \
                      WHERE rowid IN (SELECT rowid FROM workflow_events LIMIT 30)";
        meddle(&world, script).await;
        let (mut query, mut ids, mut dense) = (Query::new(Entity::WorkflowEvent).in_parts(), BTreeSet::new(), 0);
        loop {
            let page = world.store.page(&query).await.expect("a page");
            let long = page.rows.iter().filter(|row| row.get("data").as_array().is_some()).count();
            assert!(long <= 6, "{long} rows that take 2 MB each");
            dense += long;
            assert!(page.rows.iter().all(|row| ids.insert(row.id().to_owned())), "a row comes twice");
            let Some(next) = page.next else { break };
            query.start = PageStart::After(next);
        }
        assert_eq!((dense, ids), (30, column(&world, "SELECT id FROM workflow_events").await));
    });
}

#[test]
fn a_condition_finds_a_row_however_its_value_is_written() {
    block_on(async {
        let world = native().await;
        let (desk, episode) = (Desk::at(&world.target), some_episode(&world).await);
        for (column, stored, filter) in [
            ("title", "CAST('in bytes' AS BLOB)", "title = 'in bytes'"),
            ("user_id", "CAST('in bytes' AS BLOB)", "user_id = 'in bytes'"),
            ("tags", r#"'["\u0061bc"]'"#, "tags has abc"),
            ("metadata", r#"'{"a": 1e2}'"#, "metadata ~ 100"),
            ("metadata", r#"'{"a": NaN}'"#, "metadata ~ null"),
        ] {
            meddle(&world, &format!("UPDATE episodes SET {column} = {stored} WHERE id = '{episode}'")).await;
            let shown: Vec<String> = desk.rows(&["list", "episode", "--where", filter]).iter().map(id_of).collect();
            assert!(shown.contains(&episode), "{filter}: {shown:?}");
        }
    });
}

#[test]
fn links_that_are_gone_are_in_the_past() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            // Two that only their place distinguishes.
            let twice = "INSERT INTO episode_memories (episode_id, memory_id) SELECT episode_id, 'gone' FROM episode_memories \
                WHERE rank IS NULL OR rank = 1";
            meddle(&world, twice).await;
            let sorted = |arguments: &[&str]| {
                let mut rows: Vec<String> = desk.rows(arguments).iter().map(Value::to_string).collect();
                rows.sort();
                rows
            };
            let all = sorted(&["list", "memory_link"]);
            let episode = column(&world, "SELECT min(episode_id) FROM episode_memories").await;
            let episode = episode.first().expect("a link").as_str();
            let receipt = desk.json(&["remove", "episode", episode, "--apply"]);
            let before = (receipt["audit_seq"].as_i64().expect("a number") - 1).to_string();
            assert!(sorted(&["list", "memory_link"]).len() < all.len());
            assert_eq!(sorted(&["list", "memory_link", "--as-of", &before]), all);
            let pages = ["list", "memory_link", "--as-of", &before, "--limit", "1"];
            assert_eq!(desk.json(&pages)["rows"].as_array().map(Vec::len), Some(1));
        }
    });
}

#[test]
fn a_memory_of_nobody_is_recalled_with_all_its_values() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            meddle(&world, "INSERT INTO memories (id, kind, text, uses) VALUES ('shared-1', 'drawer', 'a b', 3)").await;
            let user = column(&world, "SELECT max(user_id) FROM episodes").await;
            let user = user.first().expect("a person").as_str();
            let told = desk.json(&["recall", "a", "--ranking", "proven", "--user", user, "-k", "500"]);
            let rows = told["rows"].as_array().expect("rows");
            let shared = rows.iter().find(|row| row["id"] == "shared-1").unwrap_or_else(|| panic!("{told:#}"));
            assert_eq!((&shared["row"]["kind"], &shared["row"]["uses"]), (&json!("drawer"), &json!(3)), "{shared:#}");
        }
    });
}

#[test]
fn rows_that_nothing_tells_apart_are_not_changed() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        meddle(&world, "ALTER TABLE memories DROP CONSTRAINT memories_pkey CASCADE").await;
        let words = Desk::at(&world.target).refused(&["remove", "episode", "ep-7"], 5);
        assert!(words.contains("memories has no primary key"), "{words}");
    });
}

#[test]
fn a_word_of_an_enum_is_found_and_another_is_not_there() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let desk = Desk::at(&world.target);
        meddle(
            &world,
            "INSERT INTO canvas_audit (id, episode_id, canvas_type, action) VALUES ('c', 'ep-1', 'sheets', 'present'); \
             UPDATE episodes SET outcome = 'failure' WHERE id = 'ep-1'; \
             CREATE TYPE outcome AS ENUM ('failure', 'unknown'); CREATE TYPE kind AS ENUM ('drawer', 'sheets'); \
             ALTER TABLE episodes ALTER outcome DROP DEFAULT, ALTER outcome TYPE outcome USING outcome::outcome; \
             ALTER TABLE memories ALTER kind TYPE kind USING kind::kind; \
             ALTER TABLE canvas_audit ALTER canvas_type TYPE kind USING canvas_type::kind",
        )
        .await;
        for (asked, found) in [
            (&["list", "episode", "--where", "outcome = failure"][..], 1),
            (&["list", "episode", "--where", "outcome = partial"], 0),
            (&["list", "episode", "--canvas", "sheets:present"], 1),
            (&["list", "episode", "--canvas", "paper:present"], 0),
            (&["list", "memory", "--where", "kind = drawer"], 1),
            (&["list", "memory", "--where", "kind = nonsense"], 0),
        ] {
            assert_eq!(desk.rows(asked).len(), found, "{asked:?}");
        }
    });
}

#[test]
fn a_value_that_follows_from_other_rows_is_not_edited() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            meddle(&world, "INSERT INTO agents (id, name) VALUES ('idle', 'Idle')").await;
            let sql = "SELECT agent_id FROM episodes WHERE started_at IS NOT NULL";
            let busy = column(&world, sql).await.into_iter().next().expect("an agent");
            meddle(
                &world,
                &format!(
                    "INSERT INTO agents (id, name) SELECT '{busy}', 'x' WHERE NOT EXISTS \
                (SELECT 1 FROM agents WHERE id = '{busy}')"
                ),
            )
            .await;
            let moment = "last_seen=2026-03-04T05:06:07Z";
            let words = desk.refused(&["edit", "agent", &busy, moment, "--apply", "--actor", "x"], 5);
            assert!(words.contains("`last_seen` of this row is derived from other rows too"), "{words}");
            desk.json(&["edit", "agent", "idle", moment, "--apply", "--actor", "x", "--format", "json"]);
            let shown = desk.json(&["show", "agent", "idle", "--format", "json"]);
            assert!(shown.to_string().contains("2026-03-04T05:06:07"), "{shown:#}");
        }
    });
}

#[test]
fn a_row_that_an_agent_put_back_is_there_once_in_the_past() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let gone = desk.rows(&["list", "feedback"]).into_iter().find(|row| row["created_at"].is_string());
            let gone = gone.expect("feedback with a time");
            let (id, episode) = (id_of(&gone), gone["episode_id"].as_str().expect("an episode"));
            let receipt = desk.json(&["feedback", "remove", &id, "--apply", "--actor", "x", "--format", "json"]);
            let before = (receipt["audit_seq"].as_i64().expect("a number") - 1).to_string();
            meddle(
                &world,
                &format!(
                    "INSERT INTO agent_feedback (id, episode_id, user_id, kind, created_at) VALUES ('{id}', '{episode}', \
                     'u', 'thumbs_up', '2026-01-02T00:00:00.000000Z')"
                ),
            )
            .await;
            for again in [false, true] {
                if again {
                    desk.json(&["feedback", "remove", &id, "--apply", "--actor", "x", "--format", "json"]);
                }
                let then = desk.rows(&["list", "feedback", "--as-of", &before]);
                let then: Vec<&Value> = then.iter().filter(|row| row["id"] == gone["id"]).collect();
                assert_eq!(then, [&gone]);
            }
        }
    });
}

#[test]
fn an_entry_of_the_trail_is_a_place_in_it_whatever_its_clock_said() {
    block_on(async {
        for world in worlds().await {
            let (desk, store) = (Desk::at(&world.target), &world.store);
            let given = json!({"id": "ep-late", "agent_id": "a", "title": "T", "started_at": "2026-11-01T10:00:00Z"});
            done(&world, record::episode(store, &given.to_string()).await).await;
            let plan = feedback::add(store, "ep-late", &said("thumbs_up", None, None)).await;
            let seq = done(&world, plan).await.audit_seq.expect("a number");
            // Written by a machine whose clock was behind, and by one whose clock was ahead.
            for at in ["2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
                let written = "UPDATE agent_feedback SET created_at = '{at}' WHERE episode_id = 'ep-late'; \
                     UPDATE memory_audit SET at = '{at}' WHERE seq = "
                    .replace("{at}", at);
                meddle(&world, &format!("{written}{seq}")).await;
                let shown = desk.json(&["show", "episode", "ep-late", "--as-of", &seq.to_string()]);
                assert_eq!(shown["feedback_context"].as_array().map(Vec::len), Some(1), "{at}: {shown:#}");
            }
        }
    });
}

#[test]
fn every_time_is_before_the_last_day_of_the_calendar() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let all = desk.rows(&["list", "episode"]);
            let dated = all.iter().filter(|row| row["started_at"].is_string()).count();
            let found = desk.rows(&["list", "episode", "--where", "started_at < 9999-12-31"]);
            assert!(dated > 0 && found.len() == dated, "{} of {dated}", found.len());
        }
    });
}

#[test]
fn the_past_of_many_days_is_read_once() {
    block_on(async {
        for world in worlds().await.into_iter().filter(|world| matches!(world.target, Target::File(_))) {
            let (desk, store) = (Desk::at(&world.target), &world.store);
            let many = "INSERT INTO episodes (id, agent_id, title, started_at) \
                 WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 23999) \
                 SELECT 'ep-of-day-' || i, 'a', 'T', strftime('%Y-%m-%dT10:00:00.000000Z', '2018-01-01', (i % 2400) || ' days') \
                 FROM n";
            meddle(&world, many).await;
            let plan = feedback::add(store, "ep-of-day-7", &said("thumbs_up", None, None)).await;
            let seq = done(&world, plan).await.audit_seq.expect("a number");
            let began = Instant::now();
            let arguments = ["list", "episode", "--where", "id = ep-of-day-7", "--as-of", &(seq - 1).to_string()];
            assert_eq!(desk.rows(&arguments)[0]["feedback_ids"], json!([]));
            // Days that are looked up one by one take minutes where no index leads to them.
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        }
    });
}

#[test]
fn the_past_is_what_it_was() {
    block_on(async {
        for world in worlds().await {
            let (desk, store) = (Desk::at(&world.target), &world.store);
            let episode = some_episode(&world).await;
            // An agent wrote it without a signal.
            meddle(&world, &format!("UPDATE episodes SET utility = 0.93 WHERE id = '{episode}'")).await;
            let other = ids(&world, Entity::Episode).await.into_iter().find(|id| *id != episode).expect("another");
            let looks = [
                vec!["show", "episode", &episode],
                vec!["list", "feedback"],
                vec!["list", "utility_event", "--where", "signal = rejected"],
                vec!["list", "agent"],
                vec!["recall", "a load", "--ranking", "boosted", "-k", "3"],
            ];
            // A recall says when it is asked.
            let plain = |mut value: Value| {
                value.as_object_mut().expect("an object").remove("as_of");
                if let Some(query) = value.get_mut("query") {
                    query["at"] = Value::Null;
                }
                value
            };
            let look_at = |arguments: &[&str]| match arguments[0] {
                "list" => Value::from(desk.rows(arguments)),
                _ => desk.json(arguments),
            };
            let plain = |value: Value| if value.is_object() { plain(value) } else { value };
            let mut was: Vec<(i64, Vec<Value>)> = Vec::new();
            let mut last = None;
            for step in 0..6 {
                let plan = match step {
                    0 => feedback::add(store, &episode, &said("rating", Some(2), Some("no"))).await,
                    1 => signal::add(store, &episode, Signal::Rejected, by("tester", None)).await,
                    2 => {
                        let id = ids(&world, Entity::Feedback).await.remove(0);
                        feedback::remove(store, &id).await
                    }
                    3 => undo::undo(store, last.expect("a number")).await,
                    4 => chain::link(store, &episode, &other).await,
                    _ => feedback::add(store, &other, &said("thumbs_up", None, None)).await,
                };
                last = done(&world, plan).await.audit_seq;
                // After the first, while something is removed that comes back, and after the last.
                if ![0, 2, 5].contains(&step) {
                    continue;
                }
                let seen = looks.iter().map(|look| {
                    let mut at = look.clone();
                    // The same moment for both recalls: ages count.
                    if look[0] == "recall" {
                        at.extend(["--at", "2027-01-01T00:00:00Z"]);
                    }
                    plain(look_at(&at))
                });
                was.push((last.expect("a number"), seen.collect()));
            }
            // An agent continues: a signal, feedback, an episode.
            meddle(
                &world,
                &format!(
                    "INSERT INTO utility_events (id, episode_id, signal, delta, before, after, created_at) SELECT 'late-u', \
                     id, 'confirmed', 0.2, utility, 0.99, '2039-01-01T00:00:00.000000Z' FROM episodes WHERE id = '{episode}'; \
                     UPDATE episodes SET utility = 0.99, feedback_score = 0.9 WHERE id = '{episode}'; \
                     UPDATE agents SET last_seen = '2039-01-01T00:00:00.000000Z'; \
                     INSERT INTO agent_feedback (id, episode_id, user_id, kind, created_at) VALUES \
                     ('late-f', '{episode}', 'u', 'thumbs_up', '2039-01-01T00:00:00.000000Z'); \
                     INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES \
                     ('late-e', 'a', 'u', 'a load', '2039-01-01T00:00:00.000000Z')"
                ),
            )
            .await;
            for (seq, then) in was.iter().rev() {
                for (look, then) in looks.iter().zip(then) {
                    let seq = seq.to_string();
                    let mut arguments = look.clone();
                    arguments.extend(["--as-of", &seq]);
                    if look[0] == "recall" {
                        arguments.extend(["--at", "2027-01-01T00:00:00Z"]);
                    }
                    let now = look_at(&arguments);
                    assert!(now.is_array() || now["as_of"]["unknown"][0].is_string(), "what is not known is said");
                    assert_eq!(plain(now), *then, "{arguments:?}");
                }
            }
            let head = was.last().expect("a change").0;
            let seq = was[0].0.to_string();
            for look in [&["list", "episode"][..], &["recall", "a load", "--ranking", "boosted"]] {
                for format in ["jsonl", "csv"] {
                    let answer = desk.run(&[look, &["--as-of", &seq, "--format", format]].concat());
                    let words = String::from_utf8_lossy(&answer.stderr);
                    assert!(words.contains("as of") && words.contains("not known: "), "{look:?} {format}: {words}");
                }
            }
            desk.refused(&["list", "episode", "--as-of", &(head + 1).to_string()], 3);
            desk.refused(&["list", "episode", "--as-of", "yesterday-ish"], 2);
            desk.refused(&["list", "episode", "--as-of", "2090-01-01"], 2);
            let early = desk.rows(&["list", "episode", "--as-of", "2026-02-01T05:30:00Z"]);
            let early: BTreeSet<String> = early.iter().map(id_of).collect();
            let sql = "SELECT id FROM episodes WHERE started_at <= '2026-02-01T05:30:00.000000Z' OR started_at IS NULL";
            assert_eq!(early, column(&world, sql).await);
        }
    });
}

#[test]
fn a_look_back_takes_back_what_fits_in_memory_and_names_how_far_that_is() {
    block_on(async {
        for world in worlds().await {
            let (desk, store) = (Desk::at(&world.target), &world.store);
            let episode = some_episode(&world).await;
            let mut seqs = Vec::new();
            for letter in ["a", "b", "c", "d"] {
                let set = json!({"detail": letter.repeat(3 << 20)});
                let plan = edit::edit(
                    store,
                    Entity::Episode,
                    &episode,
                    set.as_object().expect("values"),
                    &serde_json::Map::new(),
                )
                .await;
                seqs.extend(done(&world, plan).await.audit_seq);
            }
            let refused = desk.refused(&["show", "episode", &episode, "--as-of", &(seqs[0] - 1).to_string()], 5);
            assert!(refused.contains("more than 8 MB"), "{refused}");
            let named = seqs.iter().find(|seq| refused.contains(&format!("name entry {seq} or"))).expect("an entry");
            let at = seqs.iter().position(|seq| seq == named).expect("its place");
            let seen = desk.json(&["show", "episode", &episode, "--as-of", &named.to_string(), "--format", "json"]);
            let detail = seen["episode"]["detail"].as_str().or(seen["detail"].as_str()).expect("a text");
            assert!(detail.starts_with(["a", "b", "c", "d"][at]), "{at} {}", &detail[..9]);
            desk.refused(&["show", "episode", &episode, "--as-of", &(named - 1).to_string()], 5);
        }
    });
}

/// A schema that allows no key that it does not name, where it names any.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if (object.contains_key("properties") || object.contains_key("allOf"))
                && !object.contains_key("additionalProperties")
            {
                object.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
            object.iter_mut().filter(|(key, _)| *key != "allOf").for_each(|(_, value)| strict(value));
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

/// A schema that allows no key that it does not name.
fn strict_schema(name: &str) -> (boon::Schemas, boon::SchemaIndex) {
    let mut document = schema::schema(name).unwrap_or_else(|| panic!("no schema {name}"));
    // Parts that are met together with others name some of the keys only.
    let said = document.to_string();
    let mut parts = document.as_object_mut().and_then(|object| object.remove("$defs")).unwrap_or_else(|| json!({}));
    for (name, part) in parts.as_object_mut().expect("parts") {
        if !said.contains(&format!("\"allOf\":[{{\"$ref\":\"#/$defs/{name}\"")) {
            strict(part);
        }
    }
    strict(&mut document);
    document["$defs"] = parts;
    let mut compiler = boon::Compiler::new();
    let mut known = boon::Schemas::new();
    compiler.add_resource("mem:///schema.json", document).expect("a schema");
    let index = compiler.compile("mem:///schema.json", &mut known).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    (known, index)
}

/// Holds an answer against its schema.
pub fn assert_fits(name: &str, value: &Value) {
    thread_local! {
        static SCHEMAS: RefCell<HashMap<String, (boon::Schemas, boon::SchemaIndex)>> = RefCell::default();
    }
    SCHEMAS.with_borrow_mut(|all| {
        let (known, index) = all.entry(name.to_owned()).or_insert_with(|| strict_schema(name));
        known.validate(value, *index).unwrap_or_else(|error| panic!("{name}: {error:#}\n{value:#}"));
    });
}

#[test]
fn what_is_printed_fits_its_schema() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let episode = some_episode(&world).await;
            for entity in Entity::ALL {
                desk.rows(&["list", entity.name()]).iter().for_each(|row| assert_fits(entity.name(), row));
            }
            for entity in [Entity::Subject, Entity::Memory, Entity::Profile, Entity::Case] {
                for row in desk.rows(&["list", entity.name(), "--limit", "3"]) {
                    assert_fits(entity.name(), &desk.json(&["show", entity.name(), &id_of(&row)]));
                }
            }
            let add = ["feedback", "add", &episode, "--kind", "thumbs_down", "--user", "u-1", "--again"];
            let mut linked = desk.json(&["list", "memory_link", "--limit", "1"])["rows"][0]["episode_id"].clone();
            let linked = linked.take().as_str().map_or_else(|| episode.clone(), str::to_owned);
            let ids = desk.json(&["list", "episode", "--limit", "2"]);
            let ids: Vec<String> = ids["rows"].as_array().expect("rows").iter().map(id_of).collect();
            let anchors = desk.state.path().join("anchors.jsonl").display().to_string();
            let layout = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/layouts/mnemoscope.toml");
            let person = id_of(&desk.rows(&["list", "subject"])[0]);
            let agent = desk.json(&["show", "episode", &episode])["episode"]["agent_id"].clone();
            let agent = agent.as_str().expect("an agent").to_owned();
            for (name, arguments) in [
                ("plan", add.to_vec()),
                ("plan", [&add[..], &["--what-if"]].concat()),
                ("purge_plan", vec!["purge", &person, "--what-if"]),
                ("receipt", [&add[..], &["--apply"]].concat()),
                ("status", vec!["status"]),
                ("episode_context", vec!["show", "episode", &episode]),
                ("episode_context", vec!["show", "episode", &linked, "--as-of", "1"]),
                ("chain", vec!["chain", &episode]),
                ("parents", vec!["chain", &episode, "--suggest-parents"]),
                ("list", vec!["list", "feedback"]),
                ("list", vec!["list", "feedback", "--as-of", "1d"]),
                ("findings", vec!["findings"]),
                ("muted", vec!["findings", "mute", "one_way_link", "--reason", "known"]),
                ("findings", vec!["findings"]),
                ("find", vec!["find", "e"]),
                ("compare", vec!["compare", "episode", &ids[0], &ids[1]]),
                ("recall", vec!["recall", "a load", "--ranking", "boosted"]),
                ("recall", vec!["recall", "a load", "--ranking", "cases", "--as-of", "1"]),
                ("audit_list", vec!["audit", "list"]),
                ("audit_verify", vec!["audit", "verify"]),
                ("tables", vec!["tables"]),
                ("table", vec!["table", "episodes"]),
                ("replay", vec!["replay", "loads"]),
                ("context", vec!["context", "a load", "--ranking", "boosted"]),
                ("insights", vec!["insights"]),
                ("graduation", vec!["graduation", &agent]),
                ("evaluate", vec!["evaluate"]),
                ("policy_list", vec!["policy", "list"]),
                ("backfill", vec!["backfill"]),
                ("plan", vec!["backfill", "links"]),
                ("receipt", vec!["backfill", "links", "--apply"]),
                ("backfill", vec!["backfill"]),
                ("audit_anchor", vec!["audit", "anchor", &anchors]),
                ("audit_accept", vec!["audit", "accept", "--reason", "known"]),
                ("layouts", vec!["layouts"]),
                ("layouts_check", vec!["layouts", "check", layout]),
                ("layouts_columns", vec!["layouts", "columns", "memory"]),
                ("migrate", vec!["migrate"]),
                ("migrate", vec!["migrate", "--apply"]),
                ("queries", vec!["queries"]),
                ("jobs_run", vec!["jobs", "run"]),
            ] {
                assert_fits(name, &desk.json(&arguments));
            }
            // The demo's awkward rows are faults.
            let tried = desk.run(&["layouts", "test", layout]).stdout;
            assert_fits("layouts_test", &serde_json::from_slice(&tried).expect("JSON"));
            let error = desk.refused(&["show", "episode", "nobody", "--format", "json"], 3);
            assert_fits("error", &serde_json::from_str(&error).expect("JSON"));
            assert_eq!(desk.json(&["schema", "plan"]), schema::schema("plan").expect("a schema"));
            let listed = desk.json(&["schema"]);
            assert_eq!(listed["schemas"].as_array().map(Vec::len), Some(schema::names().len()));
            desk.refused(&["schema", "plans-of-mice"], 3);
        }
    });
}

#[test]
fn muted_findings_are_listed_with_their_reason_and_fail_no_run() {
    block_on(async {
        for world in worlds().await {
            let desk = Desk::at(&world.target);
            let secret = "INSERT INTO memories (id, kind, text) VALUES \
                ('leak-1', 'drawer', 'key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789'), \
                ('leak-2', 'drawer', 'key sk-proj-zyxwvutsrqponmlkjihgfedcba9876543210')";
            meddle(&world, secret).await;
            let count = || {
                let found = desk.json(&["findings", "--kind", "secret"])["findings"].clone();
                let of = |finding: &&Value| finding["entity"] == "memory";
                found.as_array().expect("findings").iter().find(of).map_or(0, |f| f["count"].as_u64().expect("a count"))
            };
            let before = count();
            desk.json(&["findings", "mute", "leak-1", "--reason", "a test key", "--actor", "ada@example.org"]);
            assert_eq!(count(), before - 1);
            assert_eq!(desk.run(&["findings", "--kind", "secret", "--fail-on", "high"]).status.code(), Some(6));
            let muted = desk.json(&["findings", "mute", "secret", "--reason", "scrubbed tonight"]);
            assert_eq!(muted["muted"].as_array().map(Vec::len), Some(2));
            assert_eq!(count(), 0);
            let shown = desk.json(&["findings", "--kind", "secret", "--fail-on", "high"]);
            let kind = shown["muted"].as_array().expect("mutes").iter().find(|m| m["kind"] == "secret").cloned();
            assert!(kind.is_some_and(|mute| mute["count"].as_u64() > Some(0) && mute["reason"] == "scrubbed tonight"));
            let masked = desk.run(&["findings", "muted", "--mask"]);
            let masked = String::from_utf8(masked.stdout).expect("text");
            assert!(masked.contains("leak-1") && !masked.contains("ada@") && !masked.contains("test key"), "{masked}");
            desk.json(&["findings", "unmute", "secret"]);
            desk.json(&["findings", "unmute", "leak-1"]);
            assert_eq!(count(), before);
            desk.refused(&["findings", "unmute", "leak-1"], 3);
            desk.refused(&["findings", "mute", "secret"], 2);
            desk.refused(&["findings", "mute", "secret", "--reason", " "], 2);
        }
    });
}
