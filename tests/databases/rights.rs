//! A PostgreSQL role with half the rights: what it may not read is left out and said, with the GRANT that would help,
//! and the rest continues. Rows that policies hide are said to be hidden; tables in partitions are tables; a server
//! that does not know some function still opens.

use std::process::{Command, Output, Stdio};

use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::postgres::Database;
use crate::support::world::{bare_on_postgres, layout_on_postgres};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// A database with its owner, and a role that is given rights one by one.
struct World {
    database: Database,
    role: String,
    state: tempfile::TempDir,
}

/// An answer of the program: exit code, what it gave, what it said.
struct Answer {
    code: Option<i32>,
    value: Value,
    words: String,
}

impl World {
    /// A database that the owner has made ready for changes.
    async fn of(layout: Layout) -> Option<World> {
        Some(World::around(layout_on_postgres(layout).await?).await)
    }

    async fn without_trail(layout: Layout) -> Option<World> {
        Some(World::around(bare_on_postgres(layout).await?).await)
    }

    /// A database with a role that may read nothing in it.
    async fn around(database: Database) -> World {
        let role = format!("reader_{:08x}", rand::random::<u32>());
        let world = World { database, role, state: tempfile::tempdir().expect("a folder") };
        world.run("CREATE ROLE $role LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA public TO $role").await;
        world
    }

    /// Runs statements as the owner; `$role` stands for the role.
    async fn run(&self, sql: &str) {
        let mut link = PgConnection::connect(self.database.url()).await.expect("the server");
        let sql = sql.replace("$role", &self.role);
        sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut link).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        link.close().await.expect("closed");
    }

    async fn number(&self, sql: &str) -> i64 {
        let mut link = PgConnection::connect(self.database.url()).await.expect("the server");
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut link).await.expect("a number")
    }

    /// Lets the role read every table but our own and some.
    async fn grant_all_but(&self, tables: &[&str]) {
        let denied = tables.join("', '");
        self.run(&format!(
            "DO $$ DECLARE t record; BEGIN FOR t IN SELECT c.relname FROM pg_class c \
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') \
             AND c.relname NOT IN ('memory_audit', 'memory_audit_private', 'memory_audit_head', 'memory_migrations', \
               'memory_jobs', 'memory_job_quarantine', 'memory_holds', 'memory_suppressions', 'memory_purges', '{denied}') \
             LOOP EXECUTE format('GRANT SELECT ON %I TO $role', t.relname); END LOOP; END $$"
        ))
        .await;
    }

    async fn text(&self, sql: &str) -> String {
        let mut link = PgConnection::connect(self.database.url()).await.expect("the server");
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut link).await.expect("a text")
    }

    fn url_of_role(&self) -> String {
        let mut url = url::Url::parse(self.database.url()).expect("a URL");
        url.set_username(&self.role).and_then(|()| url.set_password(Some("x"))).expect("a user");
        url.to_string()
    }

    fn output(&self, url: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(["-d", url]).args(arguments).stdin(Stdio::null());
        command.env("MNEMOSCOPE_STATE", self.state.path()).output().expect("the program")
    }

    fn ask(&self, url: &str, arguments: &[&str]) -> Answer {
        let done = self.output(url, &[&["--format", "json"], arguments].concat());
        Answer {
            code: done.status.code(),
            value: serde_json::from_slice(&done.stdout).unwrap_or_default(),
            words: String::from_utf8_lossy(&done.stderr).into_owned(),
        }
    }

    fn owner(&self, arguments: &[&str]) -> Answer {
        self.ask(self.database.url(), arguments)
    }

    fn reader(&self, arguments: &[&str]) -> Answer {
        self.ask(&self.url_of_role(), arguments)
    }

    /// The reader's answer, which must be one.
    fn read(&self, arguments: &[&str]) -> Value {
        let answer = self.reader(arguments);
        assert_eq!(answer.code, Some(0), "{arguments:?}: {}", answer.words);
        answer.value
    }

    async fn end(self) {
        self.run("DROP OWNED BY $role; DROP ROLE $role").await;
    }
}

/// The capability of a name in an answer of `status`.
fn capability<'a>(status: &'a Value, name: &str) -> &'a Value {
    let all = status["capabilities"].as_array().expect("capabilities");
    all.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("no capability {name} in {status:#}"))
}

fn says(value: &Value, words: &[&str]) -> bool {
    let text = value.to_string();
    words.iter().all(|word| text.contains(word))
}

fn ids(list: &Value) -> Vec<&str> {
    list["rows"].as_array().expect("rows").iter().filter_map(|row| row["id"].as_str()).collect()
}

#[test]
fn a_reader_of_the_product_tables_is_not_locked_out_by_ours() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world.grant_all_but(&[]).await;
        let status = world.read(&["status"]);
        for table in ["memory_migrations", "memory_audit", "memory_holds", "memory_jobs"] {
            let missing = capability(&status, table);
            assert_eq!(missing["available"], false, "{missing}");
            assert!(
                says(missing, &["may not read", &format!("GRANT SELECT ON {table} TO {}", world.role)]),
                "{missing}"
            );
        }
        assert!(says(capability(&status, "write"), &["GRANT"]), "{status:#}");
        assert_eq!(status["migrations"]["pending"], serde_json::json!([]), "nobody is told to make them again");
        let findings = world.reader(&["findings"]);
        assert_eq!(findings.code, Some(0), "{}", findings.words);
        // What looks at the trail itself is refused, with what would help, and nothing is called broken.
        for asked in [&["audit", "list"][..], &["audit", "verify"]] {
            let refused = world.reader(asked);
            assert_eq!(refused.code, Some(5), "{asked:?}: {}", refused.words);
            assert!(refused.words.contains("GRANT SELECT ON memory_migrations TO"), "{}", refused.words);
        }
        for asked in [&["migrate"][..], &["backfill"], &["insights"], &["list", "episode"], &["list", "audit_entry"]] {
            let answer = world.reader(asked);
            let refused = answer.code == Some(5) && asked.contains(&"audit_entry");
            assert!(answer.code == Some(0) || refused, "{asked:?}: {}", answer.words);
        }
        let plan = world.read(&["purge", "user-ana"]);
        assert!(
            says(&plan["disclosures"], &["legal hold", "cannot check", "GRANT SELECT ON memory_holds"]),
            "{plan:#}"
        );
        let applied = world.reader(&["purge", "user-ana", "--apply"]);
        assert_eq!(applied.code, Some(5), "{}", applied.words);
        // The remedies are what helps.
        for missing in status["capabilities"].as_array().expect("capabilities") {
            if let Some(remedy) = missing["remedy"].as_str().filter(|r| r.starts_with("GRANT SELECT")) {
                world.run(remedy).await;
            }
        }
        assert_eq!(world.reader(&["audit", "verify"]).code, Some(0));
        let status = world.read(&["status"]);
        assert!(!says(&status["capabilities"], &["may not read"]), "{status:#}");
        world.end().await;
    });
}

#[test]
fn the_table_that_is_refused_is_the_one_that_is_named() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run("GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; REVOKE SELECT ON memory_suppressions FROM $role")
            .await;
        let listed =
            "INSERT INTO memory_suppressions (hmac, session, kind, created_at) VALUES ('h', 's', 'handle', 'now')";
        world.run(listed).await;
        let refused = world.reader(&["purge", "user-ana", "--apply"]);
        let error: Value = serde_json::from_str(&refused.words).unwrap_or_else(|e| panic!("{e}: {}", refused.words));
        let remedy = error["error"]["remedy"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (refused.code, &*remedy),
            (Some(5), &*format!("GRANT SELECT ON memory_suppressions TO {}", world.role))
        );
        world.run(&remedy).await;
        let done = world.reader(&["purge", "user-ana", "--apply"]);
        assert!(!done.words.contains("may not read"), "{}", done.words);
        world.end().await;
    });
}

const ROWS_OF_TWO: &str = "INSERT INTO episodes (id, user_id, execution_ids) VALUES ('e-ana', 'ana', '[\"r-ana\"]'), ('e-bo', 'bo', '[\"r-bo\"]'); \
    INSERT INTO episode_segments (id, episode_id) VALUES ('s-ana', 'e-ana'), ('s-bo', 'e-bo'), ('s-none', NULL); \
    INSERT INTO utility_events (id, episode_id) VALUES ('u-ana', 'e-ana'), ('u-bo', 'e-bo'); \
    INSERT INTO episode_memories (episode_id, memory_id) VALUES ('e-ana', 'm'), ('e-bo', 'm'); \
    INSERT INTO workflow_events (id, run_id) VALUES ('w-ana', 'r-ana'), ('w-bo', 'r-bo'); \
    INSERT INTO memory_access (id, user_id) VALUES ('a-ana', 'ana'), ('a-bo', 'bo'); \
    INSERT INTO agent_memory_profiles (id, user_id) VALUES ('b-ana', 'ana'), ('b-bo', 'bo'); \
    INSERT INTO agent_memory_policies (id, profile_id) VALUES ('p-ana', 'b-ana'), ('p-bo', 'b-bo'); \
    INSERT INTO subjects (id) VALUES ('ana'), ('bo')";

#[test]
fn row_level_security_covers_what_hangs_on_the_rows_of_others() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let world = World::around(database).await;
        assert_eq!(world.owner(&["--layout", "mnemoscope", "migrate", "--apply"]).code, Some(0));
        world.run(ROWS_OF_TWO).await;
        let secured = world.owner(&["migrate", "--apply", "--optional", "row-level-security"]);
        assert_eq!(secured.code, Some(0), "{}", secured.words);
        world.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role").await;
        let mut link = PgConnection::connect(&world.url_of_role()).await.expect("the role");
        for table in [
            "episodes", "episode_segments", "utility_events", "episode_memories", "workflow_events", "memory_access",
            "agent_memory_profiles", "agent_memory_policies", "subjects",
        ] {
            for (user, expected) in [("", 0), ("ana", 1)] {
                let sql = format!("SELECT count(*), count(*) FILTER (WHERE t::text LIKE '%ana%') FROM {table} t");
                let set = format!("SELECT set_config('mnemoscope.user_id', '{user}', false)");
                sqlx::query(AssertSqlSafe(set)).execute(&mut link).await.expect("the user");
                let seen: (i64, i64) = sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut link).await.expect(table);
                assert_eq!(seen, (expected, expected), "{table} as `{user}`");
            }
        }
        link.close().await.expect("closed");
        world.end().await;
    });
}

#[test]
fn an_optional_migration_that_stopped_is_resumed_only_by_its_name() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let world = World::around(database).await;
        assert_eq!(world.owner(&["--layout", "mnemoscope", "migrate", "--apply"]).code, Some(0));
        world.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO $role").await;
        let secured = "SELECT count(*) FROM pg_class WHERE relrowsecurity";
        let by_name = ["migrate", "--apply", "--optional", "row-level-security"];
        let resumes = by_name.join(" ");
        // Only the owner of a table may set its policies.
        let stopped = world.reader(&by_name);
        assert!(stopped.code == Some(5) && stopped.words.contains(&resumes), "{:?} {}", stopped.code, stopped.words);
        for asked in [&["migrate"][..], &["migrate", "--apply"]] {
            let answer = world.owner(asked);
            assert_eq!(answer.code, Some(0), "{}", answer.words);
            assert_eq!(answer.value["pending"], serde_json::json!([]), "{:#}", answer.value);
            assert_eq!(answer.value["optional"][0]["goes_on_at"], "policy on episodes", "{:#}", answer.value);
            assert!(says(&Value::from(&*answer.words), &["started", &resumes, "leaves it"]), "{}", answer.words);
            assert_eq!(world.number(secured).await, 0, "{asked:?}");
        }
        assert_eq!(world.owner(&["status"]).value["migrations"]["pending"], serde_json::json!([]));
        let named = world.owner(&by_name);
        assert!(named.code == Some(0) && !named.words.contains("begun"), "{}", named.words);
        assert!(world.number(secured).await > 0);
        world.end().await;
    });
}

#[test]
fn a_table_that_may_not_be_read_takes_down_no_entity() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let all = world.owner(&["list", "episode"]).value;
        world.grant_all_but(&["chat_sessions"]).await;
        let status = world.read(&["status"]);
        let missing = capability(&status, "chat_sessions");
        let remedy = missing["remedy"].as_str().expect("a remedy").to_owned();
        assert_eq!(remedy, format!("GRANT SELECT ON chat_sessions TO {}", world.role));
        assert!(says(capability(&status, "episode"), &["user_id is null", "chat_sessions"]), "{status:#}");
        assert_eq!(capability(&status, "episode")["available"], true);
        let list = world.reader(&["list", "episode"]);
        assert_eq!(ids(&list.value), ids(&all), "{}", list.words);
        assert!(list.value["rows"].as_array().expect("rows").iter().all(|row| row["user_id"].is_null()));
        assert!(list.words.contains("left out: chat_sessions"), "{}", list.words);
        let subjects = world.read(&["list", "subject"]);
        let first = &subjects["rows"][0];
        assert!(first["episodes"].is_null() && first["feedback"].is_number(), "a count is none, not nought: {first}");
        for asked in [
            &["findings"][..],
            &["insights"],
            &["recall", "report", "--ranking", "boosted", "--agent", "agent-1"],
            &["context", "report", "--ranking", "boosted", "--agent", "agent-1"],
            &["show", "episode", ids(&all)[0]],
        ] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(0), "{asked:?}: {}", answer.words);
        }
        let findings = world.read(&["findings", "--kind", "unread_table"]);
        assert!(says(&findings, &["unread_table", "chat_sessions"]), "{findings:#}");
        // What fails is one document, with what is to be known next to it.
        let failed = world.reader(&["findings", "--fail-on", "low"]);
        let error: Value = serde_json::from_str(&failed.words).unwrap_or_else(|e| panic!("{e}: {}", failed.words));
        assert_eq!((failed.code, &error["error"]["code"]), (Some(6), &Value::from("incomplete")));
        assert!(error["notes"].to_string().contains("left out: chat_sessions"), "{error}");
        world.run(&remedy).await;
        let list = world.read(&["list", "episode"]);
        assert!(list["rows"].as_array().expect("rows").iter().any(|row| row["user_id"].is_string()), "{list:#}");
        world.end().await;
    });
}

#[test]
fn findings_fail_a_run_of_a_role_that_does_not_see_all() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let failed = |code: i32, word: &str| {
            for limit in ["high", "low"] {
                let answer = world.reader(&["findings", "--fail-on", limit]);
                assert!(answer.code == Some(code) && answer.words.contains(word), "{limit}: {}", answer.words);
            }
        };
        failed(5, "GRANT SELECT");
        world.grant_all_but(&["chat_sessions"]).await;
        failed(6, "unread_table");
        world.run("GRANT SELECT ON chat_sessions TO $role").await;
        world
            .run("ALTER TABLE agent_episodes ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON agent_episodes USING (false)")
            .await;
        failed(6, "hidden_rows");
        world.end().await;
    });
}

#[test]
fn a_table_of_vectors_that_may_not_be_read_leaves_the_cases() {
    block_on(async {
        let Some(world) = World::of(Layout::EnnubeVectors).await else { return };
        let all = world.owner(&["list", "case"]).value;
        world.grant_all_but(&["agent_memory_embeddings"]).await;
        let list = world.read(&["list", "case"]);
        assert_eq!(ids(&list), ids(&all));
        assert!(
            list["rows"].as_array().expect("rows").iter().all(|row| row["has_vector"].is_null()),
            "not false: {list:#}"
        );
        for asked in [&["findings"][..], &["recall", "phone numbers", "--ranking", "cases"], &["status"]] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(0), "{asked:?}: {}", answer.words);
        }
        assert!(says(capability(&world.read(&["status"]), "agent_memory_embeddings"), &["GRANT SELECT"]));
        // What a prune would take is shown to whoever may look, with what is not counted.
        let plan = world.reader(&["prune", "--older-than", "1d"]);
        assert_eq!(plan.code, Some(0), "{}", plan.words);
        assert!(plan.value["counts"]["agent_memory_cases"]["delete"].as_i64() > Some(0), "{:#}", plan.value);
        assert!(says(&plan.value["disclosures"], &["agent_memory_embeddings", "not counted"]), "{:#}", plan.value);
        // Without the cases the people are there, and how many cases they have is not known.
        world.run("REVOKE SELECT ON agent_memory_cases FROM $role").await;
        let subjects = world.read(&["list", "subject"]);
        assert!(!ids(&subjects).is_empty() && subjects["rows"][0]["cases"].is_null(), "{subjects:#}");
        let refused = world.reader(&["list", "case"]);
        assert_eq!(refused.code, Some(5), "{}", refused.words);
        assert!(refused.words.contains("GRANT SELECT ON agent_memory_cases TO"), "{}", refused.words);
        world.end().await;
    });
}

#[test]
fn a_column_that_may_not_be_read_is_null() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let all = world.owner(&["list", "feedback"]).value;
        world.grant_all_but(&["agent_feedback"]).await;
        world
            .run(
                "DO $$ DECLARE c text; BEGIN FOR c IN SELECT attname FROM pg_attribute WHERE attnum > 0 \
                 AND attrelid = 'agent_feedback'::regclass AND attname <> 'user_correction' \
                 LOOP EXECUTE format('GRANT SELECT (%I) ON agent_feedback TO $role', c); END LOOP; END $$",
            )
            .await;
        let list = world.read(&["list", "feedback"]);
        assert_eq!(ids(&list), ids(&all));
        let of_table = |row: &&Value| row["source"] == "agent_feedback";
        let mut rows = list["rows"].as_array().expect("rows").iter().filter(of_table);
        assert!(rows.all(|row| row["correction"].is_null() && row["agent_id"].is_string()), "{list:#}");
        let status = world.read(&["status"]);
        let remedy = capability(&status, "agent_feedback")["remedy"].as_str().expect("a remedy").to_owned();
        assert_eq!(remedy, format!("GRANT SELECT (user_correction) ON agent_feedback TO {}", world.role));
        assert_eq!(world.reader(&["findings"]).code, Some(0));
        let exported = world.reader(&["export", "feedback"]);
        assert_eq!(exported.code, Some(0), "{}", exported.words);
        assert!(exported.words.contains("agent_feedback"), "what is left out is named: {}", exported.words);
        let raw = world.read(&["table", "agent_feedback"]);
        assert!(raw["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{raw:#}");
        assert!(!raw.to_string().contains("user_correction"), "{raw:#}");
        world.run(&remedy).await;
        assert!(!says(&world.read(&["status"])["capabilities"], &["user_correction"]));
        world.end().await;
    });
}

#[test]
fn an_erasure_by_a_role_that_may_not_read_or_delete_everything_is_not_verified() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run("GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; REVOKE DELETE ON agent_episodes FROM $role")
            .await;
        let refused = world.reader(&["purge", "user-ana", "--apply"]);
        assert!(matches!(refused.code, Some(5 | 6)), "{:?} {} {:#}", refused.code, refused.words, refused.value);
        assert!(!refused.value["status"].to_string().contains("verified"), "{:#}", refused.value);
        world.run("REVOKE ALL ON agent_feedback FROM $role").await;
        let exported = world.output(&world.url_of_role(), &["export", "subject", "user-ana"]);
        let (lines, words) = (String::from_utf8_lossy(&exported.stdout), String::from_utf8_lossy(&exported.stderr));
        assert_eq!(exported.status.code(), Some(6), "{words}");
        assert!(words.contains("agent_feedback is not in the bundle"), "{words}");
        let end: Value = serde_json::from_str(lines.lines().last().expect("a manifest")).expect("JSON");
        assert_eq!(end["manifest"]["left_out"][0]["table"], "agent_feedback", "{end:#}");
        world
            .run("ALTER TABLE agent_episodes REPLICA IDENTITY NOTHING; CREATE PUBLICATION p FOR TABLE agent_episodes")
            .await;
        let refused = world.owner(&["purge", "user-ana", "--mentions", "leave", "--apply"]);
        assert!(refused.code == Some(5) && refused.words.contains("REPLICA IDENTITY FULL"), "{}", refused.words);
        world.end().await;
    });
}

/// The statements of the documentation, each block on its own.
fn documented() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deployments.md");
    let text = std::fs::read_to_string(path).expect("the page");
    let blocks = text.split("```sql\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn the_documented_grants_are_enough_for_a_reader_and_for_an_operator() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let operator = format!("{}_op", world.role);
        // The reader of the page is the role that is there; the operator is another.
        let run = |block: &str| {
            let made = block.lines().filter(|line| !line.starts_with("CREATE ROLE memory_reader"));
            let sql = made.collect::<Vec<_>>().join("\n");
            sql.replace("memory_reader", &world.role).replace("memory_operator", &operator)
        };
        let blocks: Vec<String> = documented().into_iter().filter(|b| b.contains(" memory_")).collect();
        let [reading, private, changing] = &blocks[..] else { panic!("{blocks:?}") };
        world.run(&run(reading)).await;
        assert_eq!(world.reader(&["audit", "verify"]).code, Some(0));
        assert!(!says(&world.read(&["status"])["capabilities"], &["may not read"]));
        world.run(&run(private)).await;
        let refused = world.reader(&["audit", "verify"]);
        assert_eq!(refused.code, Some(5), "{}", refused.words);
        assert!(refused.words.contains("GRANT SELECT ON memory_audit_private"), "{}", refused.words);
        assert_eq!(world.reader(&["findings"]).code, Some(0));
        world.run(&run(changing)).await;
        world.run(&format!("ALTER ROLE {operator} CONNECTION LIMIT 2")).await;
        let url = world.url_of_role().replace(&world.role, &operator);
        let episode = world.read(&["list", "episode"])["rows"][0]["id"].as_str().expect("an id").to_owned();
        let given =
            world.ask(&url, &["feedback", "add", &episode, "--kind", "thumbs_up", "--user", "user-ana", "--apply"]);
        assert_eq!(given.code, Some(0), "{}", given.words);
        let refused =
            world.reader(&["feedback", "add", &episode, "--kind", "thumbs_down", "--user", "user-ana", "--apply"]);
        assert_eq!(refused.code, Some(5), "{}", refused.words);
        let erased = world.ask(&url, &["purge", "user-ana", "--apply", "--account", "erase"]);
        assert_eq!(erased.code, Some(0), "{} {:#}", erased.words, erased.value);
        assert_eq!(erased.value["status"], "verified with disclosures", "{:#}", erased.value);
        world.run(&format!("DROP OWNED BY {operator}; DROP ROLE {operator}")).await;
        world.end().await;
    });
}

/// Makes a table of the fixture a partitioned one with the same rows.
async fn partition(world: &World, table: &str, by: &str, parts: &[String]) {
    let mut sql = format!(
        "ALTER TABLE {table} RENAME TO whole_{table}; \
         CREATE TABLE {table} (LIKE whole_{table} INCLUDING DEFAULTS) PARTITION BY {by}; "
    );
    for part in parts {
        sql += &format!("{part}; ");
    }
    sql += &format!("INSERT INTO {table} SELECT * FROM whole_{table}; DROP TABLE whole_{table} CASCADE");
    world.run(&sql).await;
}

fn hashed(table: &str) -> Vec<String> {
    let part =
        |n: usize| format!("CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES WITH (MODULUS 3, REMAINDER {n})");
    let mut parts: Vec<String> = (0..2).map(part).collect();
    // The last one is in parts again.
    parts.push(format!("{} PARTITION BY RANGE (created_at)", part(2)));
    parts.push(format!(
        "CREATE TABLE {table}_2_old PARTITION OF {table}_2 FOR VALUES FROM (MINVALUE) TO ('2026-02-01')"
    ));
    parts.push(format!("CREATE TABLE {table}_2_new PARTITION OF {table}_2 DEFAULT"));
    parts
}

#[test]
fn partitioned_tables_get_their_indexes_and_are_purged_by_their_keys() {
    block_on(async {
        let Some(world) = World::without_trail(Layout::Atom2026).await else { return };
        partition(&world, "canvas_audit", "HASH (id)", &hashed("canvas_audit")).await;
        world.run("ALTER TABLE canvas_audit ADD PRIMARY KEY (id, created_at)").await;
        // As a migration leaves it that was stopped after its first step.
        world.run("CREATE INDEX ix_canvas_audit_episode_id ON ONLY canvas_audit (episode_id)").await;
        let migrated = world.owner(&["migrate", "--apply"]);
        assert_eq!(migrated.code, Some(0), "{}", migrated.words);
        let sound = "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE i.indisvalid AND c.relname = 'ix_canvas_audit_episode_id' AND c.relkind = 'I'";
        assert_eq!(world.number(sound).await, 1, "the index of the whole is valid");
        let below = "SELECT count(*) FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] \
             WHERE t.relname ~ '^canvas_audit' AND t.relkind = 'r' AND a.attname = 'episode_id' AND i.indisvalid";
        assert_eq!(world.number(below).await, 4, "each partition that holds rows has it");
        let status = world.owner(&["status"]).value;
        assert_eq!(status["migrations"]["pending"], serde_json::json!([]), "{status:#}");
        let before = world.number("SELECT count(*) FROM canvas_audit WHERE user_id = 'user-ana'").await;
        assert!(before > 0);
        let receipt = world.owner(&["purge", "user-ana", "--apply", "--account", "erase"]);
        assert_eq!(receipt.code, Some(0), "{} {:#}", receipt.words, receipt.value);
        assert!(receipt.value["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{:#}", receipt.value);
        assert_eq!(world.number("SELECT count(*) FROM canvas_audit WHERE user_id = 'user-ana'").await, 0);
        world.end().await;
    });
}

#[test]
fn vectors_go_with_their_cases_though_no_foreign_key_leads_to_a_partitioned_table() {
    block_on(async {
        let Some(world) = World::without_trail(Layout::EnnubeVectors).await else { return };
        let part = |n: usize| {
            format!(
                "CREATE TABLE agent_memory_cases_{n} PARTITION OF agent_memory_cases \
                 FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
            )
        };
        partition(&world, "agent_memory_cases", "HASH (profile_id)", &[part(0), part(1)]).await;
        // The key has to hold what the table is divided by; nothing can refer to the id alone then.
        world.run("ALTER TABLE agent_memory_cases ADD PRIMARY KEY (profile_id, id)").await;
        assert_eq!(world.owner(&["migrate", "--apply"]).code, Some(0));
        let orphans = "SELECT count(*) FROM agent_memory_embeddings e \
             WHERE NOT EXISTS (SELECT 1 FROM agent_memory_cases c WHERE c.id = e.case_id)";
        let vectors = "SELECT count(*) FROM agent_memory_embeddings";
        let before = (world.number(orphans).await, world.number(vectors).await);
        let person = "SELECT p.user_sub FROM agent_memory_profiles p JOIN agent_memory_cases c ON c.profile_id = p.id \
             JOIN agent_memory_embeddings e ON e.case_id = c.id LIMIT 1";
        let person = world.text(person).await;
        let erased = world.owner(&["purge", &person, "--apply"]);
        assert!(erased.value["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{:#}", erased.value);
        let after = (world.number(orphans).await, world.number(vectors).await);
        assert!(after.0 == before.0 && after.1 < before.1, "{before:?} {after:?} {:#}", erased.value["counts"]);
        let pruned = world.owner(&["prune", "--older-than", "1d", "--apply"]);
        assert!(pruned.value["counts"]["agent_memory_embeddings"]["delete"].as_i64() > Some(0), "{:#}", pruned.value);
        assert_eq!(world.number(orphans).await, before.0);
        world.end().await;
    });
}

#[test]
fn a_user_is_known_in_whichever_partition_their_row_is() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let part =
            |n: usize| format!("CREATE TABLE users_{n} PARTITION OF users FOR VALUES WITH (MODULUS 2, REMAINDER {n})");
        partition(&world, "users", "HASH (id)", &[part(0), part(1)]).await;
        world.run("ALTER TABLE users ADD PRIMARY KEY (id)").await;
        world.run("ALTER TABLE agent_feedback ADD FOREIGN KEY (user_id) REFERENCES users (id)").await;
        let list = world.owner(&["list", "episode"]).value;
        let episode = ids(&list)[0];
        let given = world.owner(&["feedback", "add", episode, "--kind", "thumbs_up", "--user", "user-ana", "--apply"]);
        assert_eq!(given.code, Some(0), "{}", given.words);
        world.end().await;
    });
}

#[test]
fn rows_that_policies_hide_are_said_to_be_hidden_in_partitioned_tables_too() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom2026).await else { return };
        let ranges = [
            "CREATE TABLE episodes_old PARTITION OF episodes FOR VALUES FROM (MINVALUE) TO ('2026-01-15')".to_owned(),
            "CREATE TABLE episodes_new PARTITION OF episodes DEFAULT".to_owned(),
        ];
        partition(&world, "episodes", "RANGE (started_at)", &ranges).await;
        // Whoever attaches tables has the key on each of them, and none on the whole.
        world.run("ALTER TABLE episodes_old ADD PRIMARY KEY (id); ALTER TABLE episodes_new ADD PRIMARY KEY (id)").await;
        world
            .run(
                "ALTER TABLE episodes ENABLE ROW LEVEL SECURITY; \
                 CREATE POLICY own ON episodes USING (user_id = 'user-ana'); \
                 GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role",
            )
            .await;
        let all = world.number("SELECT count(*) FROM episodes").await;
        let list = world.reader(&["list", "episode"]);
        assert!((ids(&list.value).len() as i64) < all, "the policy hides some");
        let hidden = ["row-level security", "episodes", &world.role];
        assert!(hidden.iter().all(|word| list.words.contains(word)), "{}", list.words);
        let status = world.read(&["status"]);
        assert!(says(capability(&status, "every_row"), &hidden), "{status:#}");
        let findings = world.read(&["findings", "--kind", "hidden_rows"]);
        assert!(says(&findings, &["hidden_rows", "episodes"]), "{findings:#}");
        let plan = world.read(&["purge", "user-ana"]);
        assert!(says(&plan["disclosures"], &["episodes", "row-level security"]), "{plan:#}");
        // Nor is nobody said to be there of whom rows may be hidden.
        for asked in [&["purge", "user-zoe"][..], &["show", "subject", "user-zoe"], &["show", "episode", "ep-zoe"]] {
            let answer = world.reader(asked);
            let error: Value = serde_json::from_str(&answer.words).unwrap_or_else(|e| panic!("{e}: {}", answer.words));
            assert_eq!((answer.code, &error["error"]["code"]), (Some(3), &Value::from("not_found")), "{error}");
            assert!(says(&error["notes"], &["row-level security", "episodes"]), "{asked:?}: {error}");
        }
        // The owner sees all, and hears nothing of it.
        let owner = world.owner(&["list", "episode"]);
        assert!(ids(&owner.value).len() as i64 == all && !owner.words.contains("row-level"), "{}", owner.words);
        world.end().await;
    });
}

#[test]
fn an_answer_without_rows_says_that_rows_may_be_hidden() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run(
                "ALTER TABLE agent_episodes ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON agent_episodes USING (false); \
                 GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role",
            )
            .await;
        let list = |format| vec!["list", "episode", "--format", format];
        let asked = [vec!["export", "episode"], vec!["export", "episode", "--format", "jsonl"]];
        for asked in asked.into_iter().chain(["json", "jsonl", "csv", "table"].map(list)) {
            let answer = world.output(&world.url_of_role(), &asked);
            let words = String::from_utf8_lossy(&answer.stderr);
            assert!(answer.status.success(), "{asked:?}: {words}");
            assert!(words.contains("row-level security") && words.contains("episodes"), "{asked:?}: {words}");
        }
        world.end().await;
    });
}

#[test]
fn a_policy_that_keeps_a_row_from_changing_is_named_as_the_cause() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        // A key that lets go of rows asks for all rows of its table.
        world
            .run(
                "DO $$ DECLARE k record; BEGIN FOR k IN SELECT conname, conrelid::regclass AS t FROM pg_constraint \
                 WHERE contype = 'f' AND confrelid = 'agent_episodes'::regclass LOOP \
                 EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.t, k.conname); END LOOP; END $$",
            )
            .await;
        world
            .run(
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role; \
                 GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role; \
                 UPDATE agent_episodes SET metadata_json = '{\"by\": \"user-ana\"}' WHERE session_id = 'ses-ben'; \
                 ALTER TABLE agent_episodes ENABLE ROW LEVEL SECURITY; \
                 CREATE POLICY seen ON agent_episodes FOR SELECT USING (true); \
                 CREATE POLICY gone ON agent_episodes FOR DELETE USING (true)",
            )
            .await;
        let answer = world.reader(&["purge", "user-ana", "--mentions", "redact", "--apply"]);
        assert_eq!(answer.code, Some(4), "{}", answer.words);
        assert!(answer.words.contains("a trigger, a rule"), "{}", answer.words);
        assert!(!answer.words.contains("changed meanwhile"), "{}", answer.words);
        let episode = world.text("SELECT min(id::text) FROM agent_episodes").await;
        let answer = world.reader(&["edit", "episode", &episode, "title=x", "--apply"]);
        assert!(answer.code == Some(4) && answer.words.contains("a trigger, a rule"), "{}", answer.words);
        world.end().await;
    });
}

#[test]
fn a_hold_that_policies_hide_is_not_taken_for_none() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run(
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role; \
                 GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role",
            )
            .await;
        let held = world.owner(&["hold", "user-ana", "--apply"]);
        assert_eq!(held.code, Some(0), "{}", held.words);
        let rows = "SELECT count(*) FROM chat_sessions WHERE user_id = 'user-ana'";
        let before = world.number(rows).await;
        world.run("ALTER TABLE memory_holds ENABLE ROW LEVEL SECURITY").await;
        let erase = ["purge", "user-ana", "--apply", "--account", "erase"];
        let episode = world.text("SELECT min(id::text) FROM agent_episodes").await;
        for asked in [&erase[..], &["remove", "episode", &episode, "--apply"]] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(5), "{asked:?}: {}", answer.words);
            let hidden = ["row-level security", "memory_holds", &world.role, "BYPASSRLS"];
            assert!(hidden.iter().all(|word| answer.words.contains(word)), "{}", answer.words);
        }
        assert!(before > 0 && world.number(rows).await == before);
        world.end().await;
    });
}

#[test]
fn a_refused_write_names_the_grant_with_the_schema() {
    block_on(async {
        let Some(world) = World::of(Layout::NousPlanned).await else { return };
        assert_eq!(world.owner(&["migrate", "--apply"]).code, Some(0));
        world
            .run(
                "GRANT USAGE ON SCHEMA heart TO $role; GRANT SELECT ON ALL TABLES IN SCHEMA heart TO $role; \
                 GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role",
            )
            .await;
        let id = world.text("SELECT min(id::text) FROM heart.episodes").await;
        let edit = ["edit", "episode", &id, "title=x", "--apply"];
        let planned = world.read(&edit[..4]);
        assert!(says(&planned["disclosures"], &["may not write the table heart.episodes", "GRANT"]), "{planned}");
        let refused = world.reader(&edit);
        let error: Value = serde_json::from_str(&refused.words).unwrap_or_else(|e| panic!("{e}: {}", refused.words));
        assert_eq!(refused.code, Some(5), "{error}");
        assert!(says(&error["error"]["message"], &["may not write the table heart.episodes"]), "{error}");
        let granted = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON heart.episodes TO {}", world.role);
        assert_eq!(error["error"]["remedy"], Value::from(granted.clone()));
        world.run(&granted).await;
        let ours = world.reader(&edit);
        assert!(ours.code == Some(5) && ours.words.contains("memory_audit"), "{}", ours.words);
        world.end().await;
    });
}

#[test]
fn a_trigger_that_is_refused_names_the_table_that_it_writes() {
    block_on(async {
        for when in ["TRIGGER app AFTER UPDATE", "CONSTRAINT TRIGGER app AFTER UPDATE"] {
            let Some(world) = World::of(Layout::NousPlanned).await else { return };
            world
                .run(
                    "GRANT USAGE ON SCHEMA heart TO $role; GRANT ALL ON ALL TABLES IN SCHEMA heart TO $role; \
                     GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; \
                     CREATE TABLE app_log (said text); GRANT SELECT ON app_log TO $role; \
                     CREATE FUNCTION app() RETURNS trigger LANGUAGE plpgsql AS \
                       'BEGIN INSERT INTO app_log VALUES (''x''); RETURN new; END'",
                )
                .await;
            let deferred = if when.starts_with("CONSTRAINT") { "DEFERRABLE INITIALLY DEFERRED" } else { "" };
            world.run(&format!("CREATE {when} ON heart.episodes {deferred} FOR EACH ROW EXECUTE FUNCTION app()")).await;
            let id = world.text("SELECT min(id::text) FROM heart.episodes").await;
            let refused = world.reader(&["edit", "episode", &id, "title=x", "--apply"]);
            let error: Value =
                serde_json::from_str(&refused.words).unwrap_or_else(|e| panic!("{e}: {}", refused.words));
            assert_eq!(refused.code, Some(5), "{error}");
            assert!(says(&error["error"]["message"], &["may not write the table app_log"]), "{error}");
            assert!(says(&error["error"]["remedy"], &["ON app_log TO", &world.role]), "{error}");
            world.end().await;
        }
    });
}

/// Notes, with parts that refer to them and stars that are given to them.
const NOTES: &str = r#"
    name = "notes"
    title = "Notes"
    requires = ["notes/owner"]

    [[memory]]
    table = "notes"
    [memory.columns]
    id = "id"
    text = "body"
    user_id = "owner"

    [[erase]]
    table = "notes"
    column = "owner"

    [[erase]]
    table = "parts"
    column = "note"
    of = "notes"
"#;

#[test]
fn an_erasure_that_may_not_write_a_table_names_it_and_the_grant_whatever_the_statement() {
    block_on(async {
        // Rows that refer to each other go at once, and keys get other names with what refers to them.
        let circle = "CREATE TABLE notes (id text PRIMARY KEY, owner text, best text, body text); \
            CREATE TABLE parts (id text PRIMARY KEY, note text REFERENCES notes, said text); \
            ALTER TABLE notes ADD FOREIGN KEY (best) REFERENCES parts; \
            INSERT INTO notes VALUES ('n1', 'ada-4711', NULL, 'tea'), ('n2', 'bo-22', NULL, 'milk'); \
            INSERT INTO parts VALUES ('p1', 'n1', 'x'), ('p2', 'n2', 'y'); UPDATE notes SET best = 'p1' WHERE id = 'n1'";
        let names = "CREATE TABLE notes (id text PRIMARY KEY, owner text, body text); \
            CREATE TABLE stars (id int PRIMARY KEY, note text REFERENCES notes, given int); \
            INSERT INTO notes VALUES ('talk.ada-4711.x', 'bo-22', 'tea'), ('n-of-ada', 'ada-4711', 'milk'); \
            INSERT INTO stars VALUES (1, 'talk.ada-4711.x', 5)";
        let no_delete = "REVOKE DELETE ON parts FROM $role";
        let one_column = "REVOKE UPDATE ON stars FROM $role; GRANT UPDATE (given) ON stars TO $role";
        for (tables, rights, table) in [(circle, no_delete, "parts"), (names, one_column, "stars")] {
            let Some(database) = Database::fresh() else { return };
            let world = World::around(database).await;
            let layout = world.state.path().join("notes.toml");
            std::fs::write(&layout, NOTES).expect("a layout");
            let layout = layout.to_str().expect("a path");
            world.run(tables).await;
            let made = world.owner(&["--layout", layout, "migrate", "--apply"]);
            assert_eq!(made.code, Some(0), "{}", made.words);
            world.run(&format!("GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; {rights}")).await;
            let before = world.text(&format!("SELECT string_agg(t::text, ' ' ORDER BY id) FROM {table} t")).await;
            let refused = world.reader(&["--layout", layout, "purge", "ada-4711", "--mentions", "redact", "--apply"]);
            assert_eq!(refused.code, Some(5), "{}", refused.words);
            let named = format!("may not write the table {table}");
            let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {}", world.role);
            assert!(refused.words.contains(&named) && refused.words.contains(&grant), "{}", refused.words);
            let after = world.text(&format!("SELECT string_agg(t::text, ' ' ORDER BY id) FROM {table} t")).await;
            assert_eq!(after, before);
            world.end().await;
        }
    });
}

#[test]
fn a_retention_that_may_not_be_carried_out_says_so_with_the_grant() {
    block_on(async {
        let Some(world) = World::of(Layout::EnnubeJson).await else { return };
        world
            .run(
                "GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role; \
                 REVOKE UPDATE, DELETE ON agent_memory_cases FROM $role",
            )
            .await;
        let rules = world.state.path().join("retention.toml");
        std::fs::write(&rules, "share = 1.0\n[[rule]]\nentity = \"case\"\nolder_than = \"1d\"\n").expect("rules");
        let ran = world.reader(&["jobs", "run", "--until-idle", "--retention", rules.to_str().expect("a path")]);
        let problems = ran.value["problems"].to_string();
        let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON agent_memory_cases TO {}", world.role);
        assert!(problems.contains("retention: ") && problems.contains(&grant), "{:#} {}", ran.value, ran.words);
        world.end().await;
    });
}

#[test]
fn a_table_that_somebody_keeps_locked_leaves_the_others_open() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world.run("CREATE SCHEMA app; CREATE TABLE app.big (id int PRIMARY KEY)").await;
        let mut other = PgConnection::connect(world.database.url()).await.expect("the server");
        for taken in ["LOCK TABLE app.big IN ACCESS EXCLUSIVE MODE", "REINDEX INDEX app.big_pkey"] {
            sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {taken}"))).execute(&mut other).await.expect("a lock");
            for asked in [&["list", "episode"][..], &["audit", "verify"], &["tables"]] {
                let answer = world.owner(asked);
                assert_eq!(answer.code, Some(0), "{taken}, {asked:?}: {}", answer.words);
            }
            let status = world.owner(&["status"]).value;
            let tables = status["tables"].as_array().expect("tables");
            let size = |name: &str| tables.iter().find(|t| t["name"] == name).map(|t| &t["bytes"]);
            assert_eq!(size("app.big"), Some(&Value::Null), "{taken}");
            assert!(size("agent_episodes").is_some_and(Value::is_u64), "{status:#}");
            sqlx::raw_sql("ROLLBACK").execute(&mut other).await.expect("let go");
        }
        world.end().await;
    });
}

#[test]
fn rows_of_a_table_that_inherits_are_read_once() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run(
                "CREATE TABLE chat_messages_old (archived_note text) INHERITS (chat_messages); ALTER TABLE \
                 chat_messages_old ADD PRIMARY KEY (id); INSERT INTO chat_messages_old SELECT m.*, 'said by user-ana' \
                 FROM chat_messages m JOIN chat_sessions s ON s.id = m.conversation_id WHERE s.user_id = 'user-ana' \
                 ORDER BY m.id LIMIT 1; UPDATE chat_messages_old SET id = 'old-1'; CREATE TABLE others AS SELECT * \
                 FROM chat_messages_old; UPDATE others SET id = 'old-2', conversation_id = 'of-someone', content = \
                 'tell user-ana', archived_note = 'asked by user-ana'; INSERT INTO chat_messages_old SELECT * FROM \
                 others; DROP TABLE others",
            )
            .await;
        let mine = "SELECT count(*) FROM chat_messages m JOIN chat_sessions s ON s.id = m.conversation_id \
             WHERE s.user_id = 'user-ana'";
        let rows = world.number(mine).await;
        let plan = world.owner(&["purge", "user-ana"]).value;
        assert_eq!(plan["counts"]["chat_messages"]["delete"], rows, "{:#}", plan["counts"]);
        assert!(plan["counts"]["chat_messages_old"].is_null(), "not once more: {:#}", plan["counts"]);
        // Of a row that goes nothing is a mention; of one that stays each column is looked at once.
        let of_old = |mention: &&Value| mention["key"].to_string().contains("old-");
        let mut mentions: Vec<String> = plan["mentions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(of_old)
            .map(|m| format!("{} {}.{}", m["key"], m["table"].as_str().unwrap(), m["column"].as_str().unwrap()))
            .collect();
        mentions.sort_unstable();
        let expected = ["\"old-2\" chat_messages.content", "\"old-2\" chat_messages_old.archived_note"];
        assert_eq!(mentions, expected);
        let receipt = world.owner(&["purge", "user-ana", "--apply", "--account", "erase"]);
        assert_eq!(receipt.code, Some(0), "{} {:#}", receipt.words, receipt.value);
        assert_eq!(world.number("SELECT count(*) FROM chat_messages_old").await, 1);
        world.end().await;
    });
}

#[test]
fn a_server_without_what_the_clean_up_needs_ends_incomplete_and_says_why() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world
            .run(
                "CREATE SCHEMA shadow; CREATE FUNCTION shadow.pg_stat_get_dead_tuples(oid) RETURNS bigint LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'unknown function: pg_stat_get_dead_tuples()' USING ERRCODE = '42883'; END $$; \
                 DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shadow, pg_catalog, public', \
                 current_database()); END $$",
            )
            .await;
        let receipt = world.owner(&["purge", "user-ana", "--apply", "--account", "erase"]);
        assert_eq!(receipt.code, Some(6), "{} {:#}", receipt.words, receipt.value);
        assert_eq!(receipt.value["status"], "incomplete");
        let why = receipt.value["incomplete"].to_string();
        assert!(why.contains("refused cleaning up") && why.contains("pg_stat_get_dead_tuples"), "{why}");
        assert_eq!(world.number("SELECT count(*) FROM public.chat_sessions WHERE user_id = 'user-ana'").await, 0);
        world.end().await;
    });
}

#[test]
fn a_server_without_some_functions_still_opens_and_is_looked_at() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        world.grant_all_but(&[]).await;
        world.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role").await;
        let all = world.read(&["list", "episode"]);
        // Functions of that name are before the server's own, and know nothing.
        let mut sql = "ALTER TABLE turn_facts ENABLE ROW LEVEL SECURITY; CREATE SCHEMA shadow; GRANT USAGE ON SCHEMA shadow TO $role; ".to_owned();
        for (name, arguments, gives) in [
            ("pg_total_relation_size", "oid", "bigint"),
            ("pg_total_relation_size", "regclass", "bigint"),
            ("has_table_privilege", "oid, text", "boolean"),
            ("has_table_privilege", "text, text", "boolean"),
            ("has_schema_privilege", "oid, text", "boolean"),
            ("has_column_privilege", "oid, smallint, text", "boolean"),
            ("row_security_active", "oid", "boolean"),
            ("pg_is_in_recovery", "", "boolean"),
            ("pg_advisory_xact_lock", "bigint", "void"),
            ("pg_control_system", "", "bigint"),
            ("txid_current", "", "bigint"),
        ] {
            sql += &format!(
                "CREATE FUNCTION shadow.{name}({arguments}) RETURNS {gives} LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'unknown function: {name}()' USING ERRCODE = '42883'; END $$; "
            );
        }
        for view in ["pg_inherits", "pg_policies", "pg_available_extensions", "pg_stat_activity", "pg_stat_replication"]
        {
            sql += &format!("CREATE VIEW shadow.{view} AS SELECT 1 / (random() * 0)::int AS nothing; ");
        }
        sql += "GRANT SELECT ON ALL TABLES IN SCHEMA shadow TO $role; \
                ALTER ROLE $role SET search_path = shadow, pg_catalog, public";
        world.run(&sql).await;
        let status = world.read(&["status"]);
        for name in ["table_sizes", "rights", "row_security", "standby", "table_parts", "policies", "extensions"] {
            let missing = capability(&status, name);
            assert_eq!(missing["available"], false);
            assert!(missing["reason"].as_str().is_some_and(|r| r.contains("refused")), "{missing}");
        }
        assert_eq!(ids(&world.read(&["list", "episode"])), ids(&all));
        for asked in [
            &["findings"][..],
            &["insights"],
            &["recall", "report", "--ranking", "boosted", "--agent", "agent-1"],
            &["audit", "verify"],
            &["backfill"],
            &["migrate"],
            &["show", "episode", ids(&all)[0]],
        ] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(0), "{asked:?}: {}", answer.words);
        }
        world.end().await;
    });
}

#[test]
fn rows_that_would_go_unseen_are_not_taken_along() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom2026).await else { return };
        world
            .run(
                "GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; ALTER ROLE $role SET IntervalStyle = 'sql_standard'; \
                 CREATE TABLE notes (id integer PRIMARY KEY, about text REFERENCES episodes (id) ON DELETE CASCADE, \
                   took interval DEFAULT '-1 days -02:03:04'); INSERT INTO notes VALUES (1, 'ep-list')",
            )
            .await;
        let remove = ["remove", "episode", "ep-list", "--apply"];
        let refused = world.reader(&remove);
        assert_eq!(refused.code, Some(5), "{}", refused.words);
        assert!(refused.words.contains("SELECT on notes"), "{}", refused.words);
        // What is read of some of its columns alone is not counted either.
        world.run("GRANT SELECT (id, about) ON notes TO $role").await;
        for asked in [&remove[..], &["purge", "user-ana", "--mentions", "leave", "--apply"]] {
            let refused = world.reader(asked);
            assert!(
                refused.code == Some(5) && refused.words.contains("SELECT on notes"),
                "{asked:?} {}",
                refused.words
            );
        }
        assert_eq!(world.number("SELECT count(*) FROM notes").await, 1);
        world.run("GRANT ALL ON notes TO $role").await;
        let done = world.reader(&remove);
        assert_eq!(done.code, Some(0), "{}", done.words);
        assert_eq!(done.value["counts"]["notes"]["delete"], 1, "{}", done.value);
        assert_eq!(world.owner(&["undo", &done.value["audit_seq"].to_string(), "--apply"]).code, Some(0));
        assert_eq!(world.text("SELECT took::text FROM notes").await, "-1 days -02:03:04");
        world.end().await;
    });
}

#[test]
fn a_row_of_a_table_that_inherits_is_told_from_others() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom2026).await else { return };
        world
            .run(
                "CREATE TABLE notes (id integer PRIMARY KEY, about text REFERENCES episodes (id) ON DELETE CASCADE); \
                 CREATE TABLE old_notes (box text, PRIMARY KEY (id), \
                   FOREIGN KEY (about) REFERENCES episodes (id) ON DELETE SET NULL) INHERITS (notes); \
                 INSERT INTO notes VALUES (1, 'ep-list'); INSERT INTO old_notes VALUES (2, 'ep-list', 'box 7'); \
                 CREATE TABLE old_episodes (box text) INHERITS (episodes); \
                 INSERT INTO old_episodes SELECT e.*, 'box 7' FROM ONLY episodes e WHERE id = 'ep-list'",
            )
            .await;
        for asked in [&["remove", "episode", "ep-list"][..], &["purge", "user-ana"]] {
            let refused = world.owner(asked);
            assert!(refused.code != Some(0), "{asked:?}: {}", refused.value);
        }
        assert!(world.owner(&["purge", "user-ana"]).words.contains("has the same key"));
        world.run("UPDATE old_episodes SET id = 'ep-old'").await;
        let gone = world.owner(&["remove", "episode", "ep-list", "--apply"]);
        assert_eq!(gone.code, Some(0), "{}", gone.words);
        assert_eq!(world.text("SELECT string_agg(n::text, '') FROM notes n").await, "(2,)");
        assert!(gone.value["undo"].is_string(), "{}", gone.value);
        let gone = world.owner(&["remove", "episode", "ep-old", "--apply"]);
        assert!(gone.value["undo"].is_null() && says(&gone.value["undo_reason"], &["inherits"]), "{}", gone.value);
        world.end().await;
    });
}

/// Kinds of findings in a part of the answer.
fn kinds<'a>(findings: &'a Value, part: &str) -> Vec<&'a str> {
    findings[part].as_array().expect(part).iter().filter_map(|found| found["kind"].as_str()).collect()
}

#[test]
fn what_our_role_does_not_see_is_not_taken_for_absent() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let world = World::around(database).await;
        assert_eq!(world.owner(&["--layout", "mnemoscope", "migrate", "--apply"]).code, Some(0));
        world
            .run(
                "INSERT INTO episodes (id, user_id, canvas_ids, canvas_action_count, feedback_ids, feedback_score) VALUES \
                 ('e-1', 'ana', '[\"cv-1\"]', 1, '[\"fb-1\"]', -1), ('e-2', 'ana', NULL, NULL, NULL, NULL); \
                 INSERT INTO canvas_audit (id, episode_id, user_id) VALUES ('cv-1', 'e-1', 'bo'); \
                 INSERT INTO agent_feedback (id, episode_id, user_id, kind) VALUES ('fb-1', 'e-1', 'bo', 'thumbs_down'); \
                 INSERT INTO agent_memory_profiles (id, user_id) VALUES ('b-ana', 'ana'); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id) VALUES ('c-ana', 'b-ana', 'ana'), ('c-bo', 'b-ana', 'bo'); \
                 INSERT INTO memories (id, text, created_at) VALUES ('m-1', 'a', '2001-01-01'), ('m-2', 'b', '2001-01-01'); \
                 INSERT INTO memory_access (id, ids, user_id, created_at) VALUES ('ac-1', '[\"m-1\"]', 'bo', now()), \
                   ('ac-2', '[\"m-2\"]', 'ana', now()); \
                 GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role",
            )
            .await;
        let rests = ["dangling_id", "count_differs", "aggregate_differs"];
        assert!(kinds(&world.read(&["findings"]), "findings").iter().all(|kind| !rests.contains(kind)));
        let mut sql = String::new();
        for table in ["canvas_audit", "agent_feedback", "agent_memory_cases", "memory_access"] {
            sql += &format!(
                "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON {table} USING (user_id = 'ana'); "
            );
        }
        world.run(&sql).await;
        let feedback = |episode| ["feedback", "add", episode, "--kind", "thumbs_up", "--apply"];
        let rules = world.state.path().join("unused.toml");
        std::fs::write(&rules, "share = 1.0\n[[rule]]\nentity = \"memory\"\nunused_for = \"30d\"\n").expect("rules");
        for (asked, word) in [
            (&["retain", rules.to_str().expect("a path"), "--apply"][..], "sees every row"),
            (&["backfill", "links", "--apply"], "sees every row"),
            (&["backfill", "aggregates", "--apply"], "sees every row"),
            (&feedback("e-1"), "fb-1"),
            (&["remove", "profile", "b-ana", "--apply"], "agent_memory_cases"),
        ] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(5), "{asked:?}: {} {}", answer.words, answer.value);
            assert!(answer.words.contains(word), "{asked:?}: {}", answer.words);
        }
        let findings = world.read(&["findings"]);
        let (found, passed_over) = (kinds(&findings, "findings"), kinds(&findings, "not_applicable"));
        assert!(rests.iter().all(|kind| passed_over.contains(kind) && !found.contains(kind)), "{findings:#}");
        let shown = world.read(&["show", "episode", "e-1"])["findings"].to_string();
        assert!(shown.contains("hidden_rows") && !rests.iter().any(|kind| shown.contains(kind)), "{shown}");
        let added = world.reader(&feedback("e-2"));
        assert!(added.code == Some(0) && says(&added.value["disclosures"], &["row-level security"]), "{}", added.value);
        assert_eq!(world.number("SELECT count(*) FROM agent_memory_cases").await, 2);
        world
            .run(
                "ALTER TABLE canvas_audit DISABLE ROW LEVEL SECURITY; ALTER TABLE agent_feedback DISABLE ROW LEVEL SECURITY; \
                 REVOKE ALL ON canvas_audit FROM $role",
            )
            .await;
        let refused = world.reader(&["backfill", "aggregates", "--apply"]);
        assert!(refused.code == Some(5) && refused.words.contains("canvas_audit"), "{}", refused.words);
        let findings = world.read(&["findings"]);
        assert!(!kinds(&findings, "findings").contains(&"count_differs"), "{findings:#}");
        assert!(!kinds(&findings, "not_applicable").contains(&"aggregate_differs"), "{findings:#}");
        assert_eq!(world.number("SELECT canvas_action_count::bigint FROM episodes WHERE id = 'e-1'").await, 1);
        world.run("REVOKE USAGE ON SCHEMA public FROM $role, PUBLIC").await;
        for asked in [&["audit", "verify"][..], &["list", "episode"], &["purge", "ana"]] {
            let refused = world.reader(asked);
            let is_told = refused.words.contains("GRANT USAGE ON SCHEMA public TO");
            assert!(refused.code == Some(5) && is_told, "{asked:?}: {:?} {}", refused.code, refused.words);
        }
        world.end().await;
    });
}

#[test]
fn nothing_is_concluded_from_rows_that_our_role_does_not_see() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let world = World::around(database).await;
        let make = ["--layout", "mnemoscope", "migrate", "--apply"];
        let refused = world.reader(&make);
        let grant = "GRANT USAGE, CREATE ON SCHEMA public TO";
        assert!(refused.code == Some(5) && refused.words.contains(grant), "{}", refused.words);
        assert_eq!(world.owner(&make).code, Some(0));
        world
            .run(
                "INSERT INTO episodes (id, user_id, utility, parent_id) VALUES ('e-1', 'ana', 0.9, NULL), \
                 ('e-2', 'bo', 0.2, 'e-1'), ('e-3', 'ana', NULL, 'e-2'), ('e-4', 'cy', NULL, NULL); \
                 INSERT INTO utility_events (id, episode_id, signal, delta, before, after, actor, created_at) VALUES \
                 ('u-1', 'e-1', 'confirmed', 0.2, 0.5, 0.7, 'op', '2026-01-01'), \
                 ('u-2', 'e-1', 'confirmed', 0.2, 0.7, 0.9, 'op', '2026-01-02'); \
                 INSERT INTO memories (id, text, uses, utility) VALUES ('m-1', 'a', 2, 0.45), ('m-2', 'b', 1, 0.2); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('e-1', 'm-1'), ('e-2', 'm-1'), ('e-2', 'm-2'); \
                 INSERT INTO episode_segments (id, episode_id, content) VALUES ('s-1', 'e-1', 'x'), ('s-4', 'e-4', 'y'); \
                 GRANT ALL ON ALL TABLES IN SCHEMA public TO $role; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role; \
                 ALTER TABLE episodes ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON episodes USING (user_id = 'ana'); \
                 ALTER TABLE utility_events ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON utility_events USING (true)",
            )
            .await;
        let signal = world.reader(&["signal", "e-1", "confirmed", "--apply"]);
        assert!(signal.code == Some(0) && says(&signal.value["disclosures"], &["memories"]), "{}", signal.words);
        assert_eq!(world.number("SELECT uses::bigint FROM memories WHERE id = 'm-1'").await, 2);
        world.run("DROP POLICY own ON utility_events; CREATE POLICY own ON utility_events USING (id <> 'u-2')").await;
        assert_eq!(world.owner(&["hold", "cy", "--apply"]).code, Some(0));
        let counted = "SELECT (SELECT count(*) FROM utility_events) + (SELECT count(*) FROM episode_segments) + \
                       (SELECT count(*) FROM episode_memories) + (SELECT count(*) FROM memories) + (SELECT count(*) FROM episodes)";
        let before = world.number(counted).await;
        for (asked, word) in [
            (&["signal", "e-1", "confirmed", "--apply"][..], "every row"),
            (&["merge", "m-1", "m-2", "--apply"], "every row"),
            (&["remove", "episode", "e-1", "--apply"], "utility_events"),
            (&["link", "e-1", "e-3", "--apply"], "e-2"),
            (&["remove", "segment", "s-4", "--apply"], "legal hold"),
        ] {
            let answer = world.reader(asked);
            assert_eq!(answer.code, Some(5), "{asked:?}: {} {}", answer.words, answer.value);
            assert!(answer.words.contains(word), "{asked:?}: {}", answer.words);
        }
        assert_eq!(world.number(counted).await, before);
        world
            .run(
                "ALTER TABLE memory_audit ENABLE ROW LEVEL SECURITY; \
                 CREATE POLICY own ON memory_audit USING (action <> 'signal')",
            )
            .await;
        let verified = world.reader(&["audit", "verify"]);
        assert!(verified.code == Some(5) && verified.words.contains("memory_audit"), "{}", verified.words);
        world.end().await;
    });
}

#[test]
fn people_are_listed_from_the_tables_whose_columns_may_be_read() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        let world = World::around(database).await;
        assert_eq!(world.owner(&["--layout", "mnemoscope", "migrate", "--apply"]).code, Some(0));
        world
            .run("INSERT INTO agent_feedback (id, user_id, kind) VALUES ('f-only', 'only-by-feedback', 'thumbs_up')")
            .await;
        world.grant_all_but(&["episodes"]).await;
        world
            .run(
                "DO $$ DECLARE c text; BEGIN FOR c IN SELECT attname FROM pg_attribute WHERE attnum > 0 \
                 AND attrelid = 'episodes'::regclass AND attname <> 'user_id' \
                 LOOP EXECUTE format('GRANT SELECT (%I) ON episodes TO $role', c); END LOOP; END $$",
            )
            .await;
        let listed = world.reader(&["list", "subject", "--where", "id=only-by-feedback"]);
        assert_eq!((listed.code, ids(&listed.value)), (Some(0), vec!["only-by-feedback"]), "{}", listed.words);
        assert!(listed.value["rows"][0]["episodes"].is_null(), "{:#}", listed.value);
        assert!(listed.words.contains("left out: episodes"), "{}", listed.words);
        let status = world.read(&["status"]);
        assert!(
            says(capability(&status, "subject"), &["rows are left out", "column user_id of episodes"]),
            "{status:#}"
        );
        world.end().await;
    });
}

#[test]
fn an_import_tells_which_table_it_may_not_read() {
    block_on(async {
        let Some(world) = World::of(Layout::Atom).await else { return };
        let file = world.state.path().join("own.jsonl");
        std::fs::write(&file, world.output(world.database.url(), &["export", "feedback"]).stdout).expect("a file");
        world.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role").await;
        world.run("REVOKE SELECT ON agent_feedback, episode_feedback FROM $role").await;
        let plan = world.read(&["import", "jsonl", &file.display().to_string()]);
        let words = plan["disclosures"].to_string();
        assert!(words.contains("may not read the table") && words.contains("GRANT SELECT ON"), "{plan:#}");
        assert!(!words.contains("written by agents alone"), "{plan:#}");
        world.end().await;
    });
}
