//! Layouts taught by a file, on both engines: what an edit refuses, whom an erasure takes along, and whose rows stay as they
//! are.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

use super::stores::{made, run, told_in};
use crate::support::postgres::Database;
use crate::support::{block_on, program};

/// A database of some tables with a layout for them.
struct Taught {
    home: TempDir,
    target: PathBuf,
    server: Option<Database>,
}

/// Such a database on each engine that is here, ready for changes.
fn on_both(tables: &str, layout: &str) -> Vec<Taught> {
    let mut all = Vec::new();
    for server in [None, Some(Database::fresh())] {
        let home = TempDir::new().expect("a folder");
        let (target, server) = match server {
            None => (made(&home, "taught", tables), None),
            Some(None) => continue,
            Some(Some(server)) => (PathBuf::from(server.url()), Some(server)),
        };
        std::fs::write(home.path().join("taught.toml"), layout).expect("a layout");
        let taught = Taught { home, target, server };
        if taught.server.is_some() {
            taught.change(tables);
        }
        taught.told(&["migrate", "--apply"]);
        all.push(taught);
    }
    all
}

impl Taught {
    fn is_file(&self) -> bool {
        self.server.is_none()
    }

    fn layout(&self) -> String {
        self.home.path().join("taught.toml").display().to_string()
    }

    /// The answer of a command that succeeds.
    fn told(&self, words: &[&str]) -> Value {
        told_in(self.home.path(), &self.target, &[&["--layout", &self.layout()], words].concat())
    }

    /// The words of a command that is refused.
    fn refused(&self, words: &[&str]) -> String {
        let mut command = Command::new(program());
        command.env("HOME", self.home.path()).env_remove("MNEMOSCOPE_DATABASE");
        command.arg("-d").arg(&self.target).args(["--layout", &self.layout()]).args(words);
        let done = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(5), "{words:?}: {said}");
        said
    }

    /// Runs statements.
    fn change(&self, statements: &str) {
        match &self.server {
            None => run(&self.target, statements),
            Some(server) => block_on(async {
                let mut link = PgConnection::connect(server.url()).await.expect("a connection");
                let sql = AssertSqlSafe(statements.to_owned());
                sqlx::raw_sql(sql).execute(&mut link).await.expect("statements");
                link.close().await.expect("closed");
            }),
        }
    }

    /// The texts that a query gives.
    fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        block_on(async {
            match &self.server {
                None => {
                    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&self.target);
                    let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
                    sqlx::query_scalar(sql).fetch_all(&mut link).await.expect("rows")
                }
                Some(server) => {
                    let mut link = PgConnection::connect(server.url()).await.expect("a connection");
                    sqlx::query_scalar(sql).fetch_all(&mut link).await.expect("rows")
                }
            }
        })
    }
}

const CODES: &str = r#"
    name = "codes"
    title = "Codes"
    requires = ["notes/code"]

    [[memory]]
    table = "notes"
    write = {}
    [memory.columns]
    id = "id"
    text = "body"
    user_id = "usr"
    collection = "room"
    session_id = "code"

    [[erase]]
    table = "notes"
    column = "usr"

    [[erase]]
    table = "refs"
    column = ["room", "ref"]
    of = "notes"
    to = ["room", "code"]

    [[erase]]
    table = "pins"
    column = "ref"
    of = "notes"
    to = "code"
    when = "t.kind = 'note'"
"#;

#[test]
fn an_edit_is_refused_by_every_column_that_names_the_row_and_by_the_condition() {
    let tables = "CREATE TABLE notes (id integer PRIMARY KEY, usr text, room text, code text, body text);
        CREATE TABLE refs (id integer PRIMARY KEY, room text, ref text);
        CREATE TABLE pins (id integer PRIMARY KEY, kind text, ref text);
        INSERT INTO notes VALUES (1, 'ada-1', 'r1', 'c1', 'a'), (2, 'bo-22', 'r1', 'c2', 'b'), (3, 'bo-22', 'r1', 'c3', 'c'),
          (4, 'bo-22', 'r1', 'c4', 'd');
        INSERT INTO refs VALUES (1, 'r1', 'c1'), (2, 'r9', 'c2');
        INSERT INTO pins VALUES (1, 'picture', 'c3'), (2, 'note', 'c4')";
    let links = "SELECT room || ' ' || ref FROM refs UNION ALL SELECT kind || ' ' || ref FROM pins ORDER BY 1";
    for taught in on_both(tables, CODES) {
        let before = taught.texts(links);
        for (id, set, by) in [
            ("1", "session_id=c9", "rows of refs refer to this row by it (`room`, `ref`)"),
            ("1", "collection=r2", "rows of refs refer to this row by it (`room`, `ref`)"),
            ("4", "session_id=c9", "rows of pins refer to this row by it (`ref`)"),
        ] {
            let words = taught.refused(&["edit", "memory", id, set, "--apply"]);
            assert!(words.contains(by), "{id} {set}: {words}");
        }
        taught.told(&["edit", "memory", "2", "collection=r2", "--apply"]);
        taught.told(&["edit", "memory", "3", "session_id=c9", "--apply"]);
        // What names it leads to another row then.
        taught.change("INSERT INTO notes VALUES (5, 'cy-3', 'r1', 'c1', 'e')");
        taught.told(&["edit", "memory", "1", "session_id=c9", "--apply"]);
        let notes = taught.texts("SELECT room || ' ' || code || ' ' || body FROM notes ORDER BY id");
        assert_eq!(notes, ["r1 c9 a", "r2 c2 b", "r1 c9 c", "r1 c4 d", "r1 c1 e"]);
        assert_eq!(taught.texts(links), before);
    }
}

const PAST: &str = r#"
    name = "past"
    title = "What was"
    requires = ["past/was"]
    unowned = ["past"]

    [[memory]]
    table = "past"
    write = {}
    [memory.columns]
    id = "id"
    text = "was"
    user_id = "actor"

    [[erase]]
    table = "past"
    column = "actor"

    [[erase]]
    table = "past"
    column = "parent"
    of = "past"
"#;

#[test]
fn rows_that_lead_to_an_owner_over_any_number_of_rows_are_somebodys() {
    let tables = "CREATE TABLE past (id integer PRIMARY KEY, actor text, parent integer, was text);
        INSERT INTO past VALUES (1, 'ada-1', NULL, 'a'), (2, NULL, 1, 'b'), (5, NULL, 2, 'c'), (3, 'bo-22', NULL, 'd'),
          (4, NULL, 3, 'e'), (6, NULL, 4, 'f'), (10, NULL, 11, 'g'), (11, NULL, 12, 'h'), (12, NULL, 3, 'i')";
    let others = "SELECT id || ' ' || coalesce(actor, '-') || ' ' || coalesce(parent, 0) || ' ' || was FROM past \
                  WHERE id NOT IN (1, 2, 5) ORDER BY id";
    let nobodys = "INSERT INTO past VALUES (20, NULL, 99, 'x'), (21, NULL, 20, 'y'), (22, NULL, NULL, 'z')";
    for more in [None, Some(nobodys)] {
        for taught in on_both(tables, PAST) {
            more.into_iter().for_each(|more| taught.change(more));
            let before = taught.texts(others);
            let receipt = taught.told(&["purge", "ada-1", "--apply"]);
            assert_eq!(receipt["counts"], json!({"past": {"delete": 3}}), "{receipt:#}");
            let told = receipt["disclosures"].to_string();
            let words = "3 rows of past name no owner";
            assert_eq!((told.contains("no owner"), told.contains(words)), (more.is_some(), more.is_some()), "{told}");
            if taught.is_file() {
                let word = if more.is_some() { "verified with disclosures" } else { "verified" };
                assert_eq!(receipt["status"], word, "{receipt:#}");
            }
            assert_eq!(taught.texts(others), before);
        }
    }
}

const LINKED_NOTES: &str = r#"
    name = "linked"
    title = "Linked notes"
    requires = ["notes/body", "links/why"]

    [[memory]]
    table = "notes"
    write = {}
    [memory.columns]
    id = "id"
    text = "body"
    user_id = "usr"

    [[erase]]
    table = "notes"
    column = "usr"

    [[erase]]
    table = "links"
    column = "owner"

    [[erase]]
    table = "links"
    column = "other"

    [[erase]]
    table = "links"
    column = "note"
    of = "notes"
"#;

const LINKS: &str = "CREATE TABLE notes (id integer PRIMARY KEY, usr text, body text);
    CREATE TABLE links (note integer REFERENCES notes (id) ON DELETE CASCADE, also integer REFERENCES notes (id) ON DELETE CASCADE, \
      owner text, other text, why text);
    INSERT INTO notes VALUES (1, 'ada-4711', 'a'), (2, 'hiro-7712', 'b'), (3, 'ada-4711', 'c');
    INSERT INTO links VALUES (1, 3, 'ada-4711', 'hiro-7712', 'both on notes of hers'), (1, 2, 'ada-4711', 'ada-4711', 'hers alone'),
      (2, NULL, 'ada-4711', 'bob-661', 'hers on his'), (2, NULL, 'hiro-7712', 'bob-661', 'his')";

#[test]
fn rows_without_a_key_of_somebody_under_a_hold_keep_an_erasure_from_beginning() {
    let all = "SELECT coalesce(note, 0) || ' ' || owner || ' ' || other || ' ' || why FROM links ORDER BY why";
    for taught in on_both(LINKS, LINKED_NOTES) {
        taught.told(&["hold", "hiro-7712", "--apply"]);
        let before = taught.texts(all);
        let words = taught.refused(&["purge", "ada-4711", "--apply"]);
        assert!(words.contains("links") && words.contains("hiro-7712 is under a legal hold"), "{words}");
        assert_eq!((taught.texts(all), taught.texts("SELECT body FROM notes").len()), (before, 3));
        taught.told(&["unhold", "hiro-7712", "--apply"]);
        let plan = taught.told(&["purge", "ada-4711"]);
        let told = plan.to_string();
        let carried = "links: 2 rows that nothing distinguishes are deleted with what they refer to";
        // A file numbers its rows, so that each of them is counted.
        assert_eq!(told.contains(carried), !taught.is_file(), "{plan:#}");
        let (of_others, left) = if taught.is_file() {
            ("links: 2 rows to be deleted name another owner", vec!["his"])
        } else {
            ("links: 1 row to be deleted names another owner", vec!["hers on his", "his"])
        };
        assert!(told.contains(of_others), "{plan:#}");
        taught.told(&["purge", "ada-4711", "--apply"]);
        assert_eq!(taught.texts("SELECT why FROM links ORDER BY why"), left);
        let his = taught.texts("SELECT note || owner || other || why FROM links WHERE owner = 'hiro-7712'");
        assert_eq!(his, ["2hiro-7712bob-661his"]);
        assert_eq!(taught.texts("SELECT id || usr || body FROM notes"), ["2hiro-7712b"]);
    }
}

#[test]
fn rows_that_refer_to_some_without_a_key_keep_these_from_going_untold() {
    let tables = "CREATE TABLE notes (id integer PRIMARY KEY, usr text, body text);
        CREATE TABLE links (tag text UNIQUE, note integer REFERENCES notes (id) ON DELETE CASCADE, owner text, other text, why text);
        CREATE TABLE tags (id integer PRIMARY KEY, tag text REFERENCES links (tag) ON DELETE CASCADE, said text);
        INSERT INTO notes VALUES (1, 'ada-4711', 'a'), (2, 'hiro-7712', 'b');
        INSERT INTO links VALUES ('x', 1, 'bob-661', 'bob-661', 'v'), ('y', 2, 'bob-661', 'bob-661', 'w');
        INSERT INTO tags VALUES (1, 'x', 'of bob'), (2, 'y', 'of hiro')";
    for taught in on_both(tables, LINKED_NOTES).into_iter().filter(|taught| !taught.is_file()) {
        let words = taught.refused(&["purge", "ada-4711", "--apply"]);
        assert!(words.contains("rows of tags refer to rows of links"), "{words}");
        let all = "SELECT said FROM tags UNION ALL SELECT body FROM notes UNION ALL SELECT why FROM links ORDER BY 1";
        assert_eq!(taught.texts(all), ["a", "b", "of bob", "of hiro", "v", "w"]);
        taught.change("DELETE FROM tags WHERE id = 1");
        taught.told(&["purge", "ada-4711", "--apply"]);
        assert_eq!(taught.texts(all), ["b", "of hiro", "w"]);
    }
}

const ROOMS: &str = r#"
    name = "rooms"
    title = "Rooms"
    requires = ["msgs/parent"]

    [[memory]]
    table = "msgs"
    [memory.columns]
    id = { columns = ["room", "code"] }
    text = "body"
    user_id = "owner"

    [[erase]]
    table = "msgs"
    column = "owner"

    [[erase]]
    table = "msgs"
    column = ["parent", "room"]
    of = "msgs"
    to = ["code", "room"]
    action = "reparent"
"#;

#[test]
fn a_child_of_a_key_of_several_columns_follows_the_name_that_its_next_parent_gets() {
    let tables = "CREATE TABLE msgs (room text, code text, parent text, owner text, body text, PRIMARY KEY (room, code)$foreign);
        INSERT INTO msgs VALUES ('r', 'talk.ada-4711.x', NULL, 'bo-22', 'a'), ('r', 'm2', 'talk.ada-4711.x', 'ada-4711', 'b'),
          ('r', 'm3', 'm2', 'cy-33', 'c'), ('q', 'm2', NULL, 'bo-22', 'd'), ('q', 'm9', 'm2', 'cy-33', 'e')";
    let others =
        "SELECT room || code || coalesce(parent, '-') || owner || body FROM msgs WHERE room = 'q' ORDER BY code";
    for foreign in ["", ", FOREIGN KEY (room, parent) REFERENCES msgs (room, code)"] {
        for taught in on_both(&tables.replace("$foreign", foreign), ROOMS) {
            let before = taught.texts(others);
            let receipt = taught.told(&["purge", "ada-4711", "--mentions", "redact", "--apply"]);
            assert_eq!(receipt["counts"], json!({"msgs": {"delete": 1, "update": 2}}), "{receipt:#}");
            let next = "SELECT c.owner || p.owner FROM msgs c JOIN msgs p ON p.room = c.room AND p.code = c.parent \
                        WHERE c.code = 'm3'";
            assert_eq!(taught.texts(next), ["cy-33bo-22"]);
            let names = "SELECT code FROM msgs WHERE code || coalesce(parent, '') LIKE '%ada-4711%'";
            assert_eq!(taught.texts(names), Vec::<String>::new());
            assert_eq!(taught.texts(others), before);
        }
    }
}

const OF_AGNO: &str = "name = \"our-agno\"\ntitle = \"Our Agno\"\nextends = \"agno\"\n";

#[test]
fn what_agno_took_over_from_its_second_version_is_shown_once() {
    let runs = r#"{"run_id": "r1", "messages": [{"role": "user", "content": "tea?"}, {"role": "assistant", "content": "noted"}]}
        {"run_id": "r2", "messages": [{"role": "user", "content": "tea?", "from_history": true}, {"role": "user", "content": "more"}]}
        {"run_id": "r3", "input": {"input_content": "in"}, "content": "out"}"#;
    let runs: Vec<&str> = runs.lines().map(str::trim).collect();
    let sessions = format!(
        "CREATE TABLE agno_sessions (session_id text PRIMARY KEY, agent_id text, team_id text, workflow_id text, user_id text, \
           session_data json, runs json, summary json, created_at bigint, updated_at bigint); \
         INSERT INTO agno_sessions VALUES ('s1', 'desk', NULL, NULL, 'ada-1', '{{}}', '[{}]', NULL, 1772461855, 1772461855);",
        runs.join(", ")
    );
    let taken_over = format!(
        "CREATE TABLE agno_runs (run_id text PRIMARY KEY, session_id text, run_type text, user_id text, run_index integer, \
           run_data json, created_at bigint, updated_at bigint); \
         INSERT INTO agno_runs VALUES ('r1', 's1', 'agent', 'ada-1', 0, '{}', 1772461855, NULL), \
           ('r2', 's1', 'agent', 'ada-1', 1, '{}', 1772461855, NULL);",
        runs[0], runs[1]
    );
    let said = json!([
        ["[\"r1\",0]", "user", "tea?"],
        ["[\"r1\",1]", "assistant", "noted"],
        ["[\"r2\",1]", "user", "more"],
        ["[\"r3\",0]", "input", "in"],
        ["[\"r3\",1]", "output", "out"],
    ]);
    for store in on_both(&sessions, OF_AGNO) {
        let shown = || {
            let list = store.told(&["list", "segment", "--order", "sequence"]);
            let rows = list["rows"].as_array().expect("rows");
            rows.iter().map(|row| json!([row["id"], row["kind"], row["content"]])).collect::<Value>()
        };
        assert_eq!(shown(), said);
        if store.is_file() {
            store.change("UPDATE agno_sessions SET runs = json_quote(runs)");
            assert_eq!(shown(), said, "a text of JSON whose text is JSON");
        }
        store.change(&taken_over);
        assert_eq!(shown(), said, "a run that was not taken over is in the session only");
    }
}

/// Tables of one application.
const TABLES_OF_AGNO: &str = "CREATE TABLE agno_memories (memory_id text PRIMARY KEY, memory json NOT NULL, input text, agent_id text,
      team_id text, user_id text, topics json, feedback text, created_at bigint, updated_at bigint);
    CREATE TABLE agno_sessions (session_id text PRIMARY KEY, session_type text, agent_id text, team_id text, workflow_id text,
      user_id text, session_data json, metadata json, summary json, created_at bigint, updated_at bigint);
    CREATE TABLE agno_runs (run_id text PRIMARY KEY, session_id text, run_type text, user_id text, run_index bigint, run_data json,
      created_at bigint, updated_at bigint);
    INSERT INTO agno_memories VALUES ('m1', '\"Bo likes tea\"', NULL, NULL, NULL, 'bo-22', NULL, NULL, 1, 1),
      ('m2', '\"Ada likes tea\"', NULL, NULL, NULL, 'ada-1', NULL, NULL, 1, 1);
    INSERT INTO agno_sessions VALUES ('s1', 'agent', NULL, NULL, NULL, 'bo-22', '{}', NULL, NULL, 1, 1),
      ('s2', 'agent', NULL, NULL, NULL, 'ada-1', '{}', NULL, NULL, 1, 1);
    INSERT INTO agno_runs VALUES ('r1', 's1', 'agent', NULL, 0, '{\"messages\": [{\"role\": \"user\", \"content\": \"tea\"}]}', 1, 1),
      ('r2', 's2', 'agent', NULL, 0, '{\"messages\": [{\"role\": \"user\", \"content\": \"tea\"}]}', 1, 1);";

#[test]
fn each_application_with_tables_of_its_own_is_read_and_erased() {
    // In the second application the first session is Ada's.
    let second = TABLES_OF_AGNO.replace("agno_runs", "agno_sessions_runs").replace("agno_", "support_");
    let (bo, ada) = ("('s1', 'agent', NULL, NULL, NULL, 'bo-22'", "('s1', 'agent', NULL, NULL, NULL, 'ada-1'");
    let second =
        second.replace("('s2', 'agent', NULL, NULL, NULL, 'ada-1'", "('s2', 'agent', NULL, NULL, NULL, 'bo-22'");
    let second = second.replacen(bo, ada, 1);
    let usual = format!("{TABLES_OF_AGNO}{second}");
    let named = usual.replace("agno_runs", "agno_sessions_runs").replace("agno_", "sales_");
    for (tables, [memories, sessions, runs]) in [
        (usual, ["agno_memories", "agno_sessions", "agno_runs"]),
        (named, ["sales_memories", "sales_sessions", "sales_sessions_runs"]),
    ] {
        for store in on_both(&tables, OF_AGNO) {
            for entity in ["memory", "episode", "segment", "workflow_event"] {
                let listed = store.told(&["list", entity]);
                assert_eq!(listed["rows"].as_array().map(Vec::len), Some(4), "{entity}: {listed:#}");
            }
            store.told(&["purge", "ada-1", "--apply"]);
            let left = |table: &str, id: &str| store.texts(&format!("SELECT {id} FROM {table} ORDER BY {id}"));
            let of_first = [left(memories, "memory_id"), left(sessions, "session_id"), left(runs, "run_id")];
            assert_eq!(of_first, [["m1"], ["s1"], ["r1"]]);
            let of_second = [
                left("support_memories", "memory_id"),
                left("support_sessions", "session_id"),
                left("support_sessions_runs", "run_id"),
            ];
            assert_eq!(of_second, [["m1"], ["s2"], ["r2"]]);
            assert_eq!(left(runs, "session_id"), ["s1"], "the session of the same id that stays");
        }
    }
}

#[test]
fn every_table_of_agno_that_says_whose_its_rows_are_is_erased() {
    let tables = "CREATE TABLE agno_sessions (session_id text PRIMARY KEY, user_id text, session_data json, updated_at bigint);
        CREATE TABLE agno_knowledge (id text PRIMARY KEY, name text NOT NULL, user_id text);
        CREATE TABLE agno_metrics (id text PRIMARY KEY, user_id text NOT NULL DEFAULT '');
        CREATE TABLE agno_traces (trace_id text PRIMARY KEY, session_id text, user_id text);
        CREATE TABLE agno_spans (span_id text PRIMARY KEY, trace_id text NOT NULL REFERENCES agno_traces (trace_id));
        CREATE TABLE agno_schedules (id text PRIMARY KEY, user_id text);
        CREATE TABLE agno_schedule_runs (id text PRIMARY KEY, schedule_id text, session_id text, user_id text);
        CREATE TABLE agno_approvals (id text PRIMARY KEY, session_id text, user_id text, resolved_by text);
        INSERT INTO agno_sessions VALUES ('s1', 'ada-1', NULL, 1), ('s2', 'bo-22', NULL, 1);
        INSERT INTO agno_knowledge VALUES ('1', 'a paper', 'ada-1'), ('2', 'another', 'bo-22'), ('3', 'everybody''s', NULL);
        INSERT INTO agno_metrics VALUES ('1', 'ada-1'), ('2', 'bo-22'), ('3', '');
        INSERT INTO agno_traces VALUES ('1', 's1', NULL), ('2', 's2', 'bo-22'), ('3', NULL, NULL);
        INSERT INTO agno_spans VALUES ('1', '1'), ('2', '2'), ('3', '3');
        INSERT INTO agno_schedules VALUES ('1', 'ada-1'), ('2', 'bo-22'), ('3', NULL);
        INSERT INTO agno_schedule_runs VALUES ('1', '1', NULL, NULL), ('2', '2', NULL, 'bo-22'), ('3', '3', NULL, NULL);
        INSERT INTO agno_approvals VALUES ('1', 's1', NULL, 'bo-22'), ('2', 's2', 'bo-22', 'ada-1'), ('3', 's2', NULL, NULL);";
    let kept = [
        ("agno_knowledge", "id"),
        ("agno_metrics", "id"),
        ("agno_traces", "trace_id"),
        ("agno_spans", "span_id"),
        ("agno_schedules", "id"),
        ("agno_schedule_runs", "id"),
        ("agno_approvals", "id"),
    ];
    for store in on_both(tables, OF_AGNO) {
        let receipt = store.told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
        assert_eq!(receipt["incomplete"], json!([]), "{receipt:#}");
        for (table, id) in kept {
            assert_eq!(
                store.texts(&format!("SELECT {id} FROM {table} ORDER BY {id}")),
                ["2", "3"],
                "{table}: {receipt:#}"
            );
        }
        let named = store.texts("SELECT id FROM agno_approvals WHERE resolved_by IS NOT NULL");
        assert_eq!(named, Vec::<String>::new(), "{receipt:#}");
    }
}
