//! Outcome of an erasure when something is left that no plan named, or could not be looked at: each planted by plain
//! SQL in a small database.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::*;

/// Whether some disclosure of a receipt says all of these words.
fn says(receipt: &Value, words: &[&str]) -> bool {
    let texts = receipt["disclosures"].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.into_iter().any(|text| words.iter().all(|word| text.contains(word)))
}

async fn atoms() -> Vec<World> {
    [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten().collect()
}

/// Makes a trigger `bury` that does something for each session that goes.
async fn bury(world: &World, what: &str) {
    let trigger = match world.target {
        Target::File(_) => format!("CREATE TRIGGER bury AFTER DELETE ON chat_sessions BEGIN {what}; END"),
        Target::Postgres(_) => format!(
            "CREATE FUNCTION bury() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN old; END $$; \
             CREATE TRIGGER bury AFTER DELETE ON chat_sessions FOR EACH ROW EXECUTE FUNCTION bury()"
        ),
    };
    world.run(&trigger).await;
}

#[test]
fn what_is_written_after_an_erasure_is_found_wherever_an_erasure_looks() {
    block_on(async {
        for world in atoms().await {
            // By the command, whose key the later look has.
            let purge = ["purge", "user-ana", "--mentions", "redact", "--account", "erase", "--full", "--apply"];
            let aliases = ["--alias", "Ana Keller-Ruiz", "--alias", "ana.kr@acme.example"];
            let receipt = finished(&world, &[&purge[..], &aliases].concat()).stdout;
            let receipt: Value = serde_json::from_slice(&receipt).expect("a receipt");
            let id = receipt["receipt_id"].as_str().expect("an id");
            let both = [
                ("CREATE TABLE later (said TEXT DEFAULT 'x=ana.kr@acme.example,y')", "DROP TABLE later"),
                ("CREATE VIEW later AS SELECT 'Keller-Ruiz, Ana' AS said", "DROP VIEW later"),
                ("CREATE TABLE later AS SELECT 'Keller-Ruiz, Ana' AS said", "DROP TABLE later"),
            ];
            let server = [
                ("COMMENT ON TABLE chat_sessions IS 'for Ana Keller-Ruiz'", "COMMENT ON TABLE chat_sessions IS NULL"),
                (
                    "COMMENT ON COLUMN chat_sessions.title IS 'see ana.kr@acme.example'",
                    "COMMENT ON COLUMN chat_sessions.title IS NULL",
                ),
                ("CREATE TYPE later AS ENUM ('no', 'Ana Keller-Ruiz', 'yes')", "DROP TYPE later"),
                (
                    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET application_name = ''Ana Keller-Ruiz''', current_database()); END $$",
                    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET application_name', current_database()); END $$",
                ),
                (
                    "CREATE FOREIGN DATA WRAPPER later OPTIONS (owner 'Ana Keller-Ruiz')",
                    "DROP FOREIGN DATA WRAPPER later",
                ),
                (
                    "CREATE FOREIGN DATA WRAPPER later; CREATE SERVER later FOREIGN DATA WRAPPER later; \
                     CREATE USER MAPPING FOR CURRENT_USER SERVER later OPTIONS (login 'ana.kr@acme.example')",
                    "DROP FOREIGN DATA WRAPPER later CASCADE",
                ),
                ("SELECT lo_from_bytea(4711, 'Ana Keller-Ruiz called')", "SELECT lo_unlink(4711)"),
            ];
            let server = if matches!(world.target, Target::Postgres(_)) { &server[..] } else { &[] };
            for (write, remove) in both.iter().chain(server) {
                world.run(write).await;
                let looked = finished(&world, &["purge", "verify", id]);
                let answer: Value = serde_json::from_slice(&looked.stdout).expect("an answer");
                assert_eq!(answer["verification"]["logical"]["hits"], 1, "{write}: {answer:#}");
                assert_eq!(looked.status.code(), Some(6), "{write}: {answer:#}");
                world.run(remove).await;
            }
            let looked = finished(&world, &["purge", "verify", id]);
            assert_eq!(looked.status.code(), Some(0), "{}", String::from_utf8_lossy(&looked.stdout));
        }
    });
}

#[test]
fn texts_that_a_trigger_copies_while_rows_go_are_found_or_told() {
    block_on(async {
        // As they are, in other words, and as a number alone.
        let copies = [
            ("INSERT INTO graveyard VALUES (1, '{\"said\": \"' || old.title || '\"}')", Some("incomplete")),
            ("INSERT INTO graveyard VALUES (1, replace(old.title, 'e', '_'))", Some("verified with disclosures")),
            ("UPDATE graveyard SET id = id + 1", None),
        ];
        for (copy, word) in copies {
            for world in atoms().await {
                world
                    .run(
                        "CREATE TABLE graveyard (id INTEGER, said TEXT); INSERT INTO graveyard VALUES (0, 'Close the books'); \
                         UPDATE chat_sessions SET title = CASE user_id WHEN 'user-ana' THEN 'Plan the \"summer in the hills\"' \
                         ELSE 'Close the books' END",
                    )
                    .await;
                bury(&world, copy).await;
                let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
                assert_eq!(receipt["status"], word.unwrap_or(world.best()), "{copy}: {receipt:#}");
                let told = ["graveyard", "1 ", "trigger bury of chat_sessions"];
                assert_eq!(says(&receipt, &told), word.is_some(), "{copy}: {receipt:#}");
                if word == Some("incomplete") {
                    world.run("DELETE FROM graveyard").await;
                    let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
                    assert_eq!(again["status"], world.best(), "{again:#}");
                }
            }
        }
    });
}

#[test]
fn copies_that_a_trigger_makes_while_rows_go_are_found() {
    block_on(async {
        for world in atoms().await {
            world.run("CREATE TABLE graveyard (id INTEGER, who TEXT)").await;
            bury(&world, "INSERT INTO graveyard VALUES (1, old.user_id)").await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            let copies = world.count("graveyard WHERE who = 'user-ana'").await;
            assert!(copies > 0);
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            assert!(receipt["effects"].to_string().contains("trigger bury of chat_sessions runs"), "{receipt:#}");
            assert!(says(&receipt, &["graveyard.who", &copies.to_string()]), "{receipt:#}");
            // Taken away by whoever has the table, the erasure ends well.
            world.run("DELETE FROM graveyard").await;
            let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(again["status"], world.best(), "{again:#}");
        }
    });
}

#[test]
fn a_row_of_the_person_that_is_written_while_others_go_goes_in_the_same_run() {
    block_on(async {
        for world in atoms().await {
            let back = "INSERT INTO chat_sessions (id, user_id, title) SELECT 'late', old.user_id, 'back' \
                 WHERE old.id <> 'late' AND NOT EXISTS (SELECT 1 FROM chat_sessions WHERE id = 'late')";
            bury(&world, back).await;
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            assert_eq!(world.count("chat_sessions WHERE user_id = 'user-ana'").await, 0);
            let gone = |counts: &Value| rows(counts, "chat_sessions", "delete");
            assert_eq!(gone(&receipt["counts"]), gone(&plan["counts"]) + 1, "{receipt:#}");
        }
    });
}

#[test]
fn values_that_sqlite_makes_of_others_are_told_from_copies_of_what_is_gone() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        // The mention stays by choice, and so does all that is made of it.
        world
            .run(
                "CREATE TABLE remarks (id INTEGER PRIMARY KEY, note TEXT, small TEXT GENERATED ALWAYS AS (lower(note)) STORED, \
                 great TEXT GENERATED ALWAYS AS (upper(note)) VIRTUAL); CREATE INDEX great ON remarks (great); \
                 CREATE INDEX shape ON remarks (id, replace(note, 'ask', '(ask, ') DESC); \
                 INSERT INTO remarks (note) VALUES ('ask ana.ruiz@initech.example, she knows'); \
                 CREATE VIRTUAL TABLE found USING fts5(x); CREATE VIRTUAL TABLE vocabulary USING fts5vocab(found, row)",
            )
            .await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        assert!(says(&receipt, &["remarks"]), "{receipt:#}");
    });
}

#[test]
fn values_that_stay_account_for_their_bytes_whatever_encoding_the_database_has() {
    block_on(async {
        for encoding in ["UTF-16le", "UTF-16be"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("memory.db");
            let mut file =
                SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.expect("a file");
            let first = format!("PRAGMA encoding = '{encoding}'; CREATE TABLE first (x); DROP TABLE first");
            sqlx::raw_sql(AssertSqlSafe(first)).execute(&mut file).await.expect("an empty database");
            file.close().await.expect("the file is written");
            build_sqlite(Layout::Atom, &path).await;
            let world = World { target: Target::File(path), folder, _database: None }.ready().await;
            assert_eq!(world.texts("SELECT encoding FROM pragma_encoding").await, [encoding]);
            let long = "y".repeat(5_000);
            world
                .run(&format!(
                    "CREATE TABLE remarks (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO remarks (note) VALUES \
                     ('ask ana.ruiz@initech.example, she knows'), ('{long} Ana Ruiz {long}')"
                ))
                .await;
            let options = PurgeOptions { account: true, ..PurgeOptions::default() };
            let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        }
    });
}

#[test]
fn a_name_that_only_a_generated_column_spells_is_told() {
    block_on(async {
        for world in atoms().await {
            world
                .run(
                    "CREATE TABLE guests (id INTEGER PRIMARY KEY, first TEXT, last TEXT, \
                     whole TEXT GENERATED ALWAYS AS (first || '.' || last || '@initech.example') STORED); \
                     INSERT INTO guests VALUES (1, 'ana', 'ruiz'), (2, 'ana', 'other')",
                )
                .await;
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert!(plan["mentions"].to_string().contains("whole"), "{plan:#}");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert!(says(&receipt, &["guests.whole", "1 value names the person"]), "{receipt:#}");
        }
    });
}

#[test]
fn what_is_written_for_rows_that_are_gone_goes_when_the_erasure_is_resumed() {
    block_on(async {
        let worlds = [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await];
        for world in worlds.into_iter().flatten() {
            world.run("CREATE TABLE copies (words TEXT)").await;
            bury(&world, "INSERT INTO copies VALUES (old.user_id)").await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            world.run("DELETE FROM copies").await;
            if matches!(world.target, Target::Postgres(_)) {
                world
                    .run("ALTER TABLE episode_segments DROP CONSTRAINT IF EXISTS episode_segments_episode_id_fkey")
                    .await;
            }
            let late = "INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type) \
                        VALUES ('late', 'ep-list', 'conversation', 9, 'The home address is 5 Elm Street', 'chat_message')";
            world.run(late).await;
            let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(world.count("episode_segments WHERE id = 'late'").await, 0, "{again:#}");
            assert_ne!(again["status"], "incomplete", "{again:#}");
        }
    });
}

/// A role of its own that may do everything on all tables but what is removed then.
async fn as_role(world: &World, sql: &str) -> (World, String) {
    let Target::Postgres(url) = &world.target else { panic!("a server") };
    let role = format!("officer_{}", rand::random::<u32>());
    let grant = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE, CREATE ON SCHEMA public TO {role}; \
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; {}",
        sql.replace("$role", &role)
    );
    let mut link = PgConnection::connect(url).await.expect("the server");
    sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut link).await.expect("a role");
    let mut url = url::Url::parse(url).expect("a URL");
    url.set_username(&role).and_then(|()| url.set_password(Some("x"))).expect("a user");
    let target = Target::Postgres(url.to_string());
    (World { target, folder: tempfile::tempdir().expect("a folder"), _database: None }, role)
}

async fn drop_role(world: &World, role: &str) {
    world.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[test]
fn rows_that_policies_hide_are_not_called_searched() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        let hide = "ALTER TABLE chat_sessions ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON chat_sessions USING (user_id = 'user-ana'); \
             UPDATE chat_sessions SET title = 'ask user-ana' WHERE user_id = 'user-ben'";
        let (seen, role) = as_role(&world, hide).await;
        let (plan, receipt) = seen.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        assert!(says(&receipt, &["chat_sessions", "row-level security"]), "{receipt:#}");
        assert!(says(&plan, &["chat_sessions", "row-level security"]), "{plan:#}");
        drop_role(&world, &role).await;
    });
}

#[test]
fn a_table_that_may_not_be_read_is_named_and_does_not_end_the_erasure() {
    block_on(async {
        for table in ["vault", "chat_sessions", "users"] {
            let Some(world) = on_postgres(Layout::Atom).await else { return };
            world.run("CREATE TABLE vault (id INTEGER PRIMARY KEY, who TEXT)").await;
            let (seen, role) = as_role(&world, &format!("REVOKE ALL ON {table} FROM $role")).await;
            let (plan, receipt) =
                seen.purge("user-ana", &everything()).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            assert!(says(&receipt, &[table, "no right"]), "{receipt:#}");
            assert!(says(&plan, &[table, "no right"]), "{plan:#}");
            drop_role(&world, &role).await;
        }
    });
}

#[test]
fn rows_are_followed_over_foreign_keys_of_several_columns() {
    block_on(async {
        for world in atoms().await {
            world
                .run(
                    "CREATE TABLE rooms (site TEXT NOT NULL, room TEXT NOT NULL, session TEXT REFERENCES chat_sessions (id) ON DELETE CASCADE, \
                       PRIMARY KEY (site, room)); \
                     CREATE TABLE lines (id INTEGER PRIMARY KEY, site TEXT NOT NULL, room TEXT NOT NULL, said TEXT, \
                       FOREIGN KEY (site, room) REFERENCES rooms (site, room)); \
                     CREATE TABLE marks (id INTEGER PRIMARY KEY, site TEXT NOT NULL, room TEXT, \
                       FOREIGN KEY (site, room) REFERENCES rooms); \
                     INSERT INTO rooms SELECT 'here', id, id FROM chat_sessions; \
                     INSERT INTO rooms VALUES ('there', 'other', NULL); \
                     INSERT INTO lines SELECT row_number() OVER (), site, room, 'a' FROM rooms; \
                     INSERT INTO marks SELECT row_number() OVER (), site, room FROM rooms",
                )
                .await;
            let gone = world.count("chat_sessions WHERE user_id = 'user-ana'").await;
            let (rooms, marks) = (world.count("rooms").await, world.count("marks").await);
            assert!(gone > 0 && rooms > gone + 1);
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            assert_eq!(plan["counts"], receipt["counts"]);
            let dangling = "l WHERE l.room IS NOT NULL AND NOT EXISTS (SELECT 1 FROM rooms r WHERE r.site = l.site AND r.room = l.room)";
            for table in ["lines", "marks"] {
                assert_eq!(world.count(&format!("{table} {dangling}")).await, 0, "{table}");
            }
            assert_eq!(world.count("rooms").await, rooms - gone);
            assert_eq!(world.count("lines").await, rooms - gone, "those of other rooms stay");
            assert_eq!(world.count("marks").await, marks, "what can let go stays");
            assert_eq!(world.count("marks WHERE room IS NULL").await, gone);
        }
    });
}

#[test]
fn rows_that_refer_to_each_other_go_at_once_however_many_they_are() {
    block_on(async {
        for world in atoms().await {
            let ties = "CREATE TABLE ties (id INTEGER PRIMARY KEY, knot INTEGER NOT NULL REFERENCES knots (id))";
            let knots = "CREATE TABLE knots (id INTEGER PRIMARY KEY, up INTEGER REFERENCES knots (id), tie INTEGER $tie, \
                 session TEXT REFERENCES chat_sessions (id) ON DELETE CASCADE)";
            let (inline, later) = match world.target {
                Target::File(_) => ("REFERENCES ties (id)", ""),
                Target::Postgres(_) => ("", "; ALTER TABLE knots ADD FOREIGN KEY (tie) REFERENCES ties (id)"),
            };
            let knots = knots.replace("$tie", inline);
            world
                .run(&format!(
                    "{knots}; {ties}; CREATE INDEX ups ON knots (up); CREATE INDEX tied ON knots (tie); \
                     CREATE INDEX knotted ON ties (knot); \
                     INSERT INTO knots WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5500) \
                       SELECT n, CASE WHEN n > 1 THEN n - 1 END, n, (SELECT min(id) FROM chat_sessions WHERE user_id = 'user-ana') FROM n; \
                     INSERT INTO knots VALUES (20000, 20000, 20000, NULL); INSERT INTO ties SELECT id, id FROM knots{later}"
                ))
                .await;
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            assert_eq!(plan["counts"], receipt["counts"]);
            assert_eq!(receipt["counts"]["ties"], json!({"delete": 5_500}));
            assert_eq!((world.count("knots").await, world.count("ties").await), (1, 1));
        }
    });
}

#[test]
fn rows_of_a_table_in_partitions_are_looked_at_once() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE TABLE diary (id INTEGER, day INTEGER, who TEXT, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); \
                 CREATE TABLE diary_1 PARTITION OF diary FOR VALUES FROM (0) TO (10); \
                 CREATE TABLE diary_2 PARTITION OF diary DEFAULT; \
                 INSERT INTO diary VALUES (1, 1, 'user-ana'), (2, 11, 'ask user-ana'), (3, 11, 'user-ben')",
            )
            .await;
        let plan = purge::plan(&world.open().await, "user-ana", &everything(), &|_, _| {}).await.expect("a plan");
        let mentions = json!(plan.printed())["mentions_by_column"].clone();
        assert_eq!(mentions["diary.who"]["certain"], 2, "{mentions}");
        assert!(!mentions.to_string().contains("diary_"), "{mentions}");
        // Statistics of a partition show what rows that stay by choice hold.
        world.run("INSERT INTO diary SELECT n, 12, 'ask user-ana' FROM generate_series(4, 40) n; ANALYZE").await;
        let options = PurgeOptions { account: true, ..PurgeOptions::default() };
        let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    });
}

#[test]
fn every_text_of_the_structure_is_read_without_its_quotes() {
    block_on(async {
        let all: [(&str, &str); 7] = [
            ("plain", "CREATE VIEW plain AS SELECT id FROM users WHERE id <> 'user-ana'"),
            ("told", "CREATE TABLE told (a TEXT DEFAULT 'Dmitri O''Malley')"),
            ("checked", "CREATE TABLE checked (a TEXT CHECK (a <> 'Dmitri O''Malley'))"),
            (
                "made",
                "CREATE TABLE made (a TEXT, b INTEGER GENERATED ALWAYS AS (length(a || 'Dmitri O''Malley')) STORED)",
            ),
            ("seen", "CREATE VIEW seen AS SELECT id FROM users WHERE first_name = 'Dmitri O''Malley'"),
            ("partial", "CREATE INDEX partial ON users (role) WHERE first_name <> 'Dmitri O''Malley'"),
            ("expressed", "CREATE INDEX expressed ON users ((coalesce(role, 'Dmitri O''Malley')))"),
        ];
        let trigger = (
            "rung",
            "CREATE TRIGGER rung AFTER INSERT ON users WHEN new.role = 'Dmitri O''Malley' BEGIN SELECT 1; END",
        );
        let server: [(&str, &str); 15] = [
            (
                "trigger ring",
                "CREATE FUNCTION rings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$; \
                 CREATE TRIGGER ring AFTER INSERT ON users FOR EACH ROW WHEN (new.role = 'Dmitri O''Malley') EXECUTE FUNCTION rings()",
            ),
            ("spoken", "CREATE FUNCTION spoken() RETURNS text LANGUAGE sql AS $$ SELECT 'Dmitri O''Malley'::text $$"),
            ("ruled", "CREATE RULE ruled AS ON UPDATE TO users WHERE old.role = 'Dmitri O''Malley' DO ALSO NOTHING"),
            ("polite", "CREATE POLICY polite ON users USING (role <> 'Dmitri O''Malley')"),
            ("mood", "CREATE TYPE mood AS ENUM ('Dmitri O''Malley')"),
            ("domestic", "CREATE DOMAIN domestic AS text DEFAULT 'Dmitri O''Malley'"),
            ("a sequence", "CREATE SEQUENCE \"of Dmitri O'Malley\""),
            ("a schema", "CREATE SCHEMA \"for Dmitri O'Malley\""),
            (
                "parted_1",
                "CREATE TABLE parted (k text) PARTITION BY LIST (k); \
                 CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN ('Dmitri O''Malley')",
            ),
            ("counted", "CREATE STATISTICS counted ON (role || 'Dmitri O''Malley'), id FROM users"),
            (
                "far",
                "CREATE FOREIGN DATA WRAPPER way; CREATE SERVER far FOREIGN DATA WRAPPER way OPTIONS (who 'Dmitri O''Malley')",
            ),
            ("user mapping", "CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (who 'Dmitri O''Malley')"),
            (
                "settings",
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET application_name = %L', current_database(), 'Dmitri O''Malley'); END $$",
            ),
            ("comment", "COMMENT ON INDEX partial IS 'Dmitri O''Malley'"),
            ("published", "CREATE PUBLICATION published FOR TABLE users WHERE (id <> 'Dmitri O''Malley')"),
        ];
        for world in atoms().await {
            let further: &[(&str, &str)] =
                if matches!(world.target, Target::File(_)) { std::slice::from_ref(&trigger) } else { &server };
            let all: Vec<&(&str, &str)> = all.iter().chain(further).collect();
            for (_, sql) in &all {
                world.run(sql).await;
            }
            let options = PurgeOptions { aliases: vec!["Dmitri O'Malley".to_owned()], ..everything() };
            let (plan, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            for (object, _) in &all {
                assert!(says(&receipt, &[object, "structure"]), "{object}: {receipt:#}");
                assert!(says(&plan, &[object, "structure"]), "{object}");
            }
            assert!(!receipt.to_string().contains("Malley"), "the receipt names nobody");
        }
    });
}

#[test]
fn a_subscription_that_connects_as_the_person_is_told_of() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE SUBSCRIPTION called CONNECTION 'host=127.0.0.1 user=user-ana' PUBLICATION told WITH (connect = false)",
            )
            .await;
        let erased = world.purge("user-ana", &everything()).await;
        // No database goes that has one.
        world.run("ALTER SUBSCRIPTION called SET (slot_name = NONE)").await;
        world.run("DROP SUBSCRIPTION called").await;
        let (plan, receipt) = erased.expect("a receipt");
        assert!(says(&plan, &["subscription called", "structure"]), "{plan:#}");
        assert!(says(&receipt, &["subscription called", "structure"]), "{receipt:#}");
    });
}

#[test]
fn columns_are_read_by_what_their_type_is() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE DOMAIN internal_ref AS text; CREATE DOMAIN interval_of AS internal_ref; \
                 CREATE TYPE timeline AS (at timestamptz, who text); CREATE TYPE bitter AS ENUM ('user-ana', 'sweet'); \
                 CREATE TYPE interaction AS RANGE (subtype = text); CREATE TYPE dated AS (inner_one timeline, n int); \
                 CREATE UNLOGGED TABLE odd (id INTEGER PRIMARY KEY, a internal_ref, b interval_of[], c timeline, d bitter, \
                   e interaction, f dated[], g tsvector, i date, j int[]); \
                 INSERT INTO odd VALUES (1, 'user-ana', ARRAY['user-ana'], (now(), 'user-ana'), 'user-ana', '[user-ana,user-b)', \
                   ARRAY[((now(), 'user-ana'), 1)::dated], '''user-ana'':1', now(), '{1}')",
            )
            .await;
        let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        let by_column = &plan["mentions_by_column"];
        for column in ["a", "b", "c", "d", "e", "f", "g"] {
            let place = format!("odd.{column}");
            assert_eq!(by_column[&place]["outside"], 1, "{place}: {by_column}");
            assert!(says(&receipt, &[&place]), "{receipt:#}");
        }
        assert!(by_column.get("odd.i").is_none() && by_column.get("odd.j").is_none());
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    });
}

#[test]
fn a_name_is_found_in_a_text_search_vector_and_in_an_aggregate() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE TABLE sought (id INTEGER PRIMARY KEY, words tsvector); \
                 INSERT INTO sought VALUES (1, to_tsvector('simple', 'please call Ana Ruiz now')), \
                   (2, to_tsvector('simple', 'ruiz is not ana here')); \
                 CREATE AGGREGATE glued (text) (sfunc = textcat, stype = text, initcond = 'user-ana')",
            )
            .await;
        let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(plan["mentions_by_column"]["sought.words"]["outside"], 1, "{plan:#}");
        assert!(says(&receipt, &["sought.words"]) && says(&receipt, &["glued"]), "{receipt:#}");
    });
}

#[test]
fn a_domain_over_text_is_redacted_unless_it_has_a_rule_of_its_own() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE DOMAIN words AS text; CREATE DOMAIN notes AS words NOT NULL DEFAULT ''; \
                 CREATE DOMAIN lines AS text[]; CREATE DOMAIN ruled AS text CHECK (VALUE !~ '\\['); \
                 ALTER TABLE chat_sessions ADD COLUMN a words, ADD COLUMN b notes, ADD COLUMN c lines, ADD COLUMN d ruled; \
                 UPDATE chat_sessions SET a = 'ask user-ana', b = 'user-ana', c = ARRAY['ask user-ana now'] \
                   WHERE user_id = 'user-ben'",
            )
            .await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], world.best(), "{receipt:#}");
        let left = "SELECT DISTINCT a || '; ' || b || '; ' || c[1] FROM chat_sessions WHERE user_id = 'user-ben'";
        assert_eq!(world.texts(left).await, ["ask [erased]; [erased]; ask [erased] now"]);
        // Where a rule of the type may refuse what is put there, nothing is put there, and that is said.
        world.run("UPDATE chat_sessions SET d = 'ask ben.ode@initech.example' WHERE user_id <> 'user-ben'").await;
        let others = world.count("chat_sessions WHERE user_id <> 'user-ben'").await;
        if others > 0 {
            let (plan, receipt) = world.purge("user-ben", &everything()).await.expect("a receipt");
            assert_eq!(plan["mentions_by_column"]["chat_sessions.d"]["undone"], others, "{plan:#}");
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        }
    });
}

#[test]
fn values_of_hstore_and_xml_are_read() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE TABLE kept (id INTEGER PRIMARY KEY); INSERT INTO kept VALUES (1), (2); DO $$ BEGIN \
                   CREATE EXTENSION hstore; ALTER TABLE kept ADD COLUMN h hstore; \
                   UPDATE kept SET h = CASE id WHEN 1 THEN 'user-ana=>1'::hstore ELSE 'note=>\"ask user-ana\"'::hstore END; \
                   EXCEPTION WHEN undefined_file OR feature_not_supported THEN NULL; END $$; \
                 DO $$ BEGIN ALTER TABLE kept ADD COLUMN x xml; \
                   UPDATE kept SET x = CASE id WHEN 1 THEN '<a who=\"user-ana\"/>'::xml ELSE '<a>ask user-ana</a>'::xml END; \
                   EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            )
            .await;
        let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        let of_kept = "information_schema.columns WHERE table_name = 'kept'";
        for column in ["h", "x"] {
            if world.count(&format!("{of_kept} AND column_name = '{column}'")).await == 0 {
                continue;
            }
            let place = format!("kept.{column}");
            assert_eq!(plan["mentions_by_column"][&place]["outside"], 2, "{place}: {plan:#}");
            assert!(says(&receipt, &[&place]), "{receipt:#}");
        }
    });
}

#[test]
fn large_objects_are_looked_into() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world.run("SELECT lo_from_bytea(0, 'a letter of user-ana'::bytea), lo_from_bytea(0, 'nothing'::bytea)").await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert!(says(&receipt, &["pg_largeobject", "1 value "]), "{receipt:#}");
        let (seen, role) = as_role(&world, "SELECT 1").await;
        let (_, receipt) = seen.purge("user-ben", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        assert!(says(&receipt, &["pg_largeobject (2 objects)", "no right"]), "{receipt:#}");
        drop_role(&world, &role).await;
    });
}

#[test]
fn a_materialised_view_is_read_and_has_to_be_refreshed() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world.run("CREATE MATERIALIZED VIEW digest AS SELECT user_id AS who FROM chat_sessions").await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        assert!(says(&receipt, &["digest.who", "refresh"]), "{receipt:#}");
        world.run("REFRESH MATERIALIZED VIEW digest").await;
        let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
        assert_eq!(again["status"], world.best(), "{again:#}");
    });
}

#[test]
fn statistics_and_dead_rows_of_other_tables_are_cleaned_too() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        let names = "SELECT 'user-ana' FROM generate_series(1, 50)";
        world
            .run(&format!(
                "CREATE TABLE emptied (who text); INSERT INTO emptied {names}; ANALYZE emptied; TRUNCATE emptied; \
                 CREATE TABLE parted (who text) PARTITION BY LIST (who); CREATE TABLE parted_1 PARTITION OF parted DEFAULT; \
                 INSERT INTO parted {names}; ANALYZE parted; \
                 CREATE TABLE dead (who text) WITH (autovacuum_enabled = off); INSERT INTO dead {names}"
            ))
            .await;
        world.run("DELETE FROM parted; ANALYZE parted_1").await;
        world.run("DELETE FROM dead").await;
        let known = "pg_stats WHERE schemaname = 'public' AND most_common_vals::text LIKE '%user-ana%' \
             AND tablename IN ('emptied', 'parted')";
        let bytes =
            "SELECT CAST(position('user-ana'::bytea IN pg_read_binary_file(pg_relation_filepath('dead'))) AS TEXT)";
        world.run("CHECKPOINT").await;
        assert_eq!(world.count(known).await, 2);
        assert_ne!(world.texts(bytes).await, ["0"]);
        let (_, receipt) =
            world.purge("user-ana", &PurgeOptions { full: true, ..everything() }).await.expect("a receipt");
        assert_eq!(receipt["status"], world.best(), "{receipt:#}");
        assert_eq!(world.count(known).await, 0, "{receipt:#}");
        world.run("CHECKPOINT").await;
        assert_eq!(world.texts(bytes).await, ["0"], "{receipt:#}");
    });
}

#[test]
fn rows_that_the_database_does_not_let_go_are_told_with_the_likely_cause() {
    block_on(async {
        for verb in ["DELETE", "UPDATE"] {
            for world in atoms().await {
                world.run("UPDATE chat_sessions SET title = 'ask user-ana' WHERE user_id = 'user-ben'").await;
                let (keep, undo) = match world.target {
                    Target::File(_) => (
                        format!("CREATE TRIGGER keep BEFORE {verb} ON chat_sessions BEGIN SELECT RAISE(IGNORE); END"),
                        "DROP TRIGGER keep",
                    ),
                    Target::Postgres(_) => (
                        format!("CREATE RULE keep AS ON {verb} TO chat_sessions DO INSTEAD NOTHING"),
                        "DROP RULE keep ON chat_sessions",
                    ),
                };
                world.run(&keep).await;
                for resume in [false, true] {
                    let error = world.carry_out("user-ana", &everything(), resume).await.expect_err("kept");
                    assert!(matches!(error, ChangeError::Paused(_)), "{error}");
                    let words = error.to_string();
                    let told = ["chat_sessions", "trigger", "rule", "policy", "--resume"];
                    assert!(told.iter().all(|word| words.contains(word)), "{words}");
                }
                world.run(undo).await;
                let ended = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
                assert_eq!(ended["status"], world.best(), "{ended:#}");
            }
        }
    });
}

#[test]
fn search_indexes_that_keep_entries_of_rows_that_are_gone_are_named() {
    block_on(async {
        for (kind, options) in [
            ("fts5", "content='', detail=none"),
            ("fts5", "content='', detail=column, tokenize=\"unicode61 tokenchars '-'\""),
            ("fts5", "content=''"),
            ("fts4", "content=\"\""),
        ] {
            let world = on_sqlite(Layout::Atom).await;
            world
                .run(&format!(
                    "UPDATE chat_sessions SET title = 'call user-ana' WHERE user_id = 'user-ana'; \
                     CREATE VIRTUAL TABLE talk USING {kind} (title, {options}); \
                     INSERT INTO talk ({}, title) SELECT rowid, title FROM chat_sessions",
                    if kind == "fts4" { "docid" } else { "rowid" }
                ))
                .await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "incomplete", "{kind} {options}: {receipt:#}");
            assert!(says(&receipt, &["talk", "entries"]), "{kind} {options}: {receipt:#}");
            assert!(!says(&receipt, &["damaged"]), "{kind} {options}: {receipt:#}");
            world.run("DROP TABLE talk").await;
            let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(again["status"], "verified", "{again:#}");
        }
        // What keeps its content, or another table's, is made again.
        for options in ["title, detail=none", "title, content='chat_sessions', detail=column"] {
            let world = on_sqlite(Layout::Atom).await;
            world
                .run(&format!(
                    "UPDATE chat_sessions SET title = 'call user-ana' WHERE user_id = 'user-ana'; \
                     CREATE VIRTUAL TABLE talk USING fts5 ({options}); \
                     INSERT INTO talk (rowid, title) SELECT rowid, title FROM chat_sessions WHERE user_id = 'user-ben'"
                ))
                .await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified", "{options}: {receipt:#}");
        }
    });
}

#[test]
fn row_numbers_and_search_indexes_of_others_are_as_before() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        // Tables without key and index: their definitions take pages too.
        let logs: Vec<String> = (0..20).map(|n| format!("CREATE TABLE log_{n} (a, b)")).collect();
        world.run(&logs.join("; ")).await;
        world
            .run(
                "CREATE TABLE docs (t TEXT); INSERT INTO docs VALUES ('a'), ('b'), ('c'); DELETE FROM docs WHERE t = 'a'; \
                 CREATE TABLE notes (id INTEGER PRIMARY KEY, t TEXT); INSERT INTO notes (t) VALUES ('open'), ('hidden'); \
                 CREATE VIRTUAL TABLE five USING fts5 (t, content = 'notes', content_rowid='id'); \
                 CREATE VIRTUAL TABLE four USING fts4 (t, content=\"notes\"); \
                 INSERT INTO five (rowid, t) VALUES (1, 'open'); INSERT INTO four (docid, t) VALUES (1, 'open'); \
                 CREATE VIRTUAL TABLE six USING fts5 (t, content='notes', content_rowid='id', columnsize=0); \
                 INSERT INTO six (rowid, t) VALUES (1, 'open'); \
                 CREATE VIRTUAL TABLE seven USING fts4 (t, content='notes', matchinfo=fts3); \
                 INSERT INTO seven (docid, t) VALUES (1, 'open'); \
                 UPDATE chat_sessions SET title = CASE user_id WHEN 'user-ana' THEN 'gone' ELSE 'hidden' END; \
                 CREATE VIRTUAL TABLE talk USING fts5 (title, content='chat_sessions'); \
                 INSERT INTO talk (rowid, title) SELECT rowid, title FROM chat_sessions WHERE user_id = 'user-ana'",
            )
            .await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
        assert_eq!(world.texts("SELECT rowid || t FROM docs ORDER BY 1").await, ["2b", "3c"]);
        for word in ["gone", "hidden"] {
            assert_eq!(world.count(&format!("talk WHERE talk MATCH '{word}'")).await, 0, "{word}");
        }
        for index in ["five", "four", "six", "seven"] {
            assert_eq!(world.count(&format!("{index} WHERE {index} MATCH 'open'")).await, 1, "{index}");
            assert_eq!(world.count(&format!("{index} WHERE {index} MATCH 'hidden'")).await, 0, "{index}");
        }
        assert_eq!(world.count("sqlite_schema WHERE name LIKE 'mnemoscope%'").await, 0);
    });
}

#[test]
fn a_search_index_that_takes_other_peoples_words_for_the_persons_is_named() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world
            .run(
                "UPDATE chat_sessions SET title = 'the user \u{c1}na said' WHERE user_id = 'user-ben'; \
                 CREATE VIRTUAL TABLE talk USING fts5 (title, content='chat_sessions'); \
                 INSERT INTO talk (talk) VALUES ('rebuild')",
            )
            .await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        assert!(says(&receipt, &["talk", "other spellings"]), "{receipt:#}");
    });
}

#[test]
fn vectors_of_an_extension_that_is_not_here_are_told_by_their_rows() {
    block_on(async {
        for (of, status) in [("user-ana", "incomplete"), ("user-ben", "verified")] {
            let world = on_sqlite(Layout::Atom).await;
            world
                .run(&format!(
                    "CREATE TABLE near_chat_sessions_rowids (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id, chunk_id INTEGER, chunk_offset INTEGER); \
                     INSERT INTO near_chat_sessions_rowids (rowid, chunk_id, chunk_offset) \
                       SELECT rowid, 1, rowid FROM chat_sessions WHERE user_id = '{of}'; \
                     PRAGMA writable_schema = ON; \
                     INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES \
                       ('table', 'near_chat_sessions', 'near_chat_sessions', 0, 'CREATE VIRTUAL TABLE near_chat_sessions USING vec0(v float[4])'); \
                     PRAGMA writable_schema = OFF"
                ))
                .await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], status, "{receipt:#}");
            let told = says(&receipt, &["near", "of chat_sessions", "keeps"]);
            assert_eq!(told, status == "incomplete", "{receipt:#}");
        }
    });
}

#[test]
fn a_handle_within_longer_words_is_told_from_its_own_copies_among_the_bytes() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world.run("UPDATE chat_sessions SET title = 'about user-anabel' WHERE user_id = 'user-ben'").await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        // It may be a longer spelling of the id: left, and said.
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        assert!(receipt["verification"]["bytes"]["left"].as_u64().is_some_and(|left| left > 0), "{receipt:#}");
    });
}

#[test]
fn nothing_is_erased_whose_receipt_could_not_be_kept() {
    block_on(async {
        let world = on_sqlite(Layout::Atom2026).await;
        std::fs::create_dir_all(world.state()).expect("a folder");
        std::fs::write(world.state().join("receipts"), "").expect("a file");
        let before = world.dump().await;
        let refused = world.carry_out("user-ana", &everything(), false).await;
        assert!(matches!(&refused, Err(ChangeError::Failed(why)) if why.contains("receipts")), "{refused:?}");
        assert!(world.dump().await == before);
    });
}

#[test]
fn a_receipt_that_cannot_be_kept_at_the_end_is_kept_by_a_resumption() {
    block_on(async {
        let world = on_sqlite(Layout::Atom2026).await;
        std::fs::create_dir_all(world.state()).expect("a folder");
        let receipts = world.state().join("receipts");
        // A folder in which nobody makes a file.
        std::os::unix::fs::symlink("/proc/sys/kernel", &receipts).expect("a link");
        let failed = world.carry_out("user-ana", &everything(), false).await;
        let Err(ChangeError::Failed(why)) = &failed else { panic!("{failed:?}") };
        assert!(why.contains("the purge ended") && why.contains("--resume keeps it"), "{why}");
        std::fs::remove_file(&receipts).expect("the link");
        world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
        assert_eq!(std::fs::read_dir(&receipts).expect("the folder").count(), 1);
    });
}

#[test]
fn what_other_people_are_known_by_too_may_name_the_person_and_is_told() {
    block_on(async {
        for (twin, said) in [("Ana Ruiz", "ask Ana Ruiz"), ("user-ana ", "ask user-ana at once")] {
            for world in atoms().await {
                let (first, last) = (
                    "UPDATE users SET first_name = 'Ana', last_name = 'Ruiz' WHERE id IN",
                    "('user-ana', 'user-twin')",
                );
                let id = if twin.starts_with("user") { twin } else { "user-twin" };
                world
                    .run(&format!(
                        "INSERT INTO users (id, email, first_name, last_name, role, status) \
                           VALUES ('{id}', 'twin@x.example', 'Eva', 'Moll', 'member', 'active'); {first} {last}; \
                         INSERT INTO chat_sessions (id, user_id, title) VALUES ('s-own', '{id}', 'mine'); \
                         UPDATE chat_sessions SET title = '{said}' WHERE user_id = 'user-ben'"
                    ))
                    .await;
                let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
                let titles = &plan["mentions_by_column"]["chat_sessions.title"];
                let of_ben =
                    world.count(&format!("chat_sessions WHERE user_id = 'user-ben' AND title = '{said}'")).await;
                assert!(of_ben > 0, "what may mean someone else is not replaced unasked");
                assert_eq!((&titles["certain"], &titles["possible"]), (&json!(0), &json!(of_ben)), "{plan:#}");
                assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
                assert!(says(&receipt, &["chat_sessions.title", &of_ben.to_string(), "left"]), "{receipt:#}");
                assert!(!says(&receipt, &["was not found anywhere"]), "{receipt:#}");
                assert_eq!(world.count(&format!("users WHERE id = '{id}'")).await, 1);
                assert_eq!(world.count(&format!("chat_sessions WHERE user_id = '{id}'")).await, 1);
            }
        }
    });
}

#[test]
fn a_handle_that_is_not_looked_for_is_told_with_the_reason_and_lowers_the_word() {
    block_on(async {
        for world in atoms().await {
            world.run("UPDATE users SET first_name = 'X', last_name = '' WHERE id = 'user-ana'").await;
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            for told in [&plan, &receipt] {
                assert!(says(told, &["kind name", "not searched for in texts", "too short"]), "{told:#}");
            }
            assert!(!says(&receipt, &["kind name", "was not found anywhere"]), "{receipt:#}");
        }
    });
}

#[test]
fn an_id_is_told_from_another_one_with_a_value_behind_it() {
    block_on(async {
        let world = on_sqlite(Layout::Atom).await;
        world
            .run(
                "CREATE TABLE spots (id INTEGER PRIMARY KEY, who TEXT, what TEXT); CREATE INDEX of_whom ON spots (who); \
                 INSERT INTO spots VALUES (97, 'user-an', 'apples'), (98, 'user-an', 'pears')",
            )
            .await;
        let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified", "{receipt:#}");
        let Target::File(path) = &world.target else { return };
        assert_eq!(bytes_of(path, "user-ana"), 2, "a row number and a text behind the other id");
    });
}
