//! Layouts of tables as an application makes them: rows that the engine numbers and lists that name them by number, columns of a
//! fixed length, ids that are compared without case, vectors of several types.

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use crate::support::postgres::Database;
use crate::support::world::{Agent, address, address_of, native_on_postgres, run, texts_in};
use crate::support::{alone_in, block_on};
use mnemoscope::store::Target;

/// A database with one layout file.
struct Shelf {
    folder: tempfile::TempDir,
    target: Target,
    _database: Option<Database>,
}

impl Shelf {
    async fn on_sqlite(layout: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shelf.db");
        std::fs::File::create(&path).expect("a file");
        Shelf::of(Target::File(path), folder, None, layout, script).await
    }

    async fn on_postgres(layout: &str, script: &str) -> Option<Self> {
        let database = Database::fresh()?;
        let target = Target::Postgres(database.url().to_owned());
        Some(Shelf::of(target, tempfile::tempdir().expect("a folder"), Some(database), layout, script).await)
    }

    async fn of(
        target: Target,
        folder: tempfile::TempDir,
        database: Option<Database>,
        layout: &str,
        script: &str,
    ) -> Self {
        std::fs::write(folder.path().join("shelf.toml"), layout).expect("a layout");
        Agent::of(&target).await.run(script).await;
        let shelf = Shelf { folder, target, _database: database };
        shelf.told(&["migrate", "--apply"]);
        shelf
    }

    fn ended(&self, arguments: &[&str]) -> (Option<i32>, Value, String) {
        let words = ["-d", &address_of(&self.target), "--layout", "shelf.toml", "--format", "json"];
        run(self.folder.path(), &[&words[..], arguments].concat())
    }

    fn told(&self, arguments: &[&str]) -> Value {
        let (code, answer, words) = self.ended(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {words}");
        answer
    }

    fn undone(&self, receipt: &Value) {
        self.told(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        texts_in(&self.target, sql).await
    }
}

/// Memories in a table `facts`, with more columns of theirs.
fn facts(columns: &str, more: &str) -> String {
    format!(
        "name = \"shelf\"\ntitle = \"A shelf\"\nwritable = true\nrequires = [\"facts/body\"]\nrecall = \"memory\"\n\
         [[memory]]\ntable = \"facts\"\nwrite = {{ numbered = true }}\n{more}\n\
         columns = {{ id = \"id\", user_id = \"owner\", text = \"body\"{columns} }}\n\
         [[erase]]\ntable = \"facts\"\ncolumn = \"owner\"\n"
    )
}

/// The numbers that a stored list names, whatever its form.
fn numbers(stored: &str) -> Vec<i64> {
    let digits = stored.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    digits.map(|number| number.parse().expect("a number")).collect()
}

#[test]
fn a_list_names_rows_by_their_numbers_and_loses_those_that_go() {
    block_on(async {
        let layout = facts(", source_ids = \"src\"", "");
        let rule = "[[erase]]\ntable = \"facts\"\ncolumn = \"src\"\nof = \"facts\"\naction = \"remove\"\n";
        let script = |key: &str, list: &str, value: &str| {
            format!(
                "CREATE TABLE facts (id {key} PRIMARY KEY, owner TEXT, body TEXT, src {list}); \
                 INSERT INTO facts VALUES (100, 'ann-smith77', 'a', NULL), (101, 'bob-jones88', 'b', {value}), \
                 (102, 'bob-jones88', 'c', NULL)"
            )
        };
        for layout in [layout.clone(), format!("{layout}{rule}")] {
            let mut shelves = vec![Shelf::on_sqlite(&layout, &script("INTEGER", "TEXT", "'[100, 102]'")).await];
            for (list, value) in [
                ("bigint[]", "'{100,102}'"),
                ("text[]", "'{100,102}'"),
                ("jsonb", "'[100, 102]'"),
                ("text", "'[\"100\", \"102\"]'"),
            ] {
                shelves.extend(Shelf::on_postgres(&layout, &script("bigint", list, value)).await);
            }
            for shelf in shelves {
                let row = shelf.told(&["list", "memory", "--where", "source_ids has 102"]);
                assert_eq!(row["rows"][0]["source_ids"], json!(["100", "102"]), "{row:#}");
                assert_eq!(row["rows"][0]["problems"], Value::Null);
                let stored = "SELECT CAST(src AS TEXT) FROM facts WHERE id = 101";
                let before = shelf.texts(stored).await;
                let receipt = shelf.told(&["remove", "memory", "102", "--apply"]);
                assert_eq!(numbers(&shelf.texts(stored).await[0]), [100]);
                shelf.undone(&receipt);
                assert_eq!(shelf.texts(stored).await, before);
                let receipt = shelf.told(&["purge", "ann-smith77", "--mentions", "redact", "--apply"]);
                assert!(receipt["status"].as_str().is_some_and(|it| it.starts_with("verified")), "{receipt:#}");
                let left = shelf.texts(stored).await;
                assert_eq!(numbers(&left[0]), [102], "{left:?}");
                assert_eq!(left[0].contains('"'), before[0].contains('"'), "{left:?}");
            }
        }
    });
}

#[test]
fn a_row_with_columns_of_a_fixed_length_is_brought_back() {
    block_on(async {
        let layout = facts(", expires_at = \"until\"", "vector = \"emb\"").replace("numbered = true", "");
        let script = "CREATE TABLE facts (id text PRIMARY KEY, owner text, body text, until timestamptz(3), emb bit(4), \
                      flags bit(4)[], one bit, few varbit(9), code char(8), length interval(2)); \
                      INSERT INTO facts VALUES ('f-1', 'o', 'text', NULL, '1010', '{1010,1111}', '1', '101', 'abc', '3.25 s')";
        let Some(shelf) = Shelf::on_postgres(&layout, script).await else { return };
        let all = "SELECT facts::text FROM facts";
        let before = shelf.texts(all).await;
        for change in [&["edit", "memory", "f-1", "text=new", "--apply"][..], &["remove", "memory", "f-1", "--apply"]] {
            let receipt = shelf.told(change);
            assert_ne!(shelf.texts(all).await, before);
            shelf.undone(&receipt);
            assert_eq!(shelf.texts(all).await, before, "{change:?}");
        }
        let (code, _, words) =
            shelf.ended(&["edit", "memory", "f-1", "expires_at=2026-03-09T00:00:00.123456Z", "--apply"]);
        assert!(code == Some(5) && words.contains("keeps 3 decimals of a second"), "{words}");
        shelf.told(&["edit", "memory", "f-1", "expires_at=2026-03-09T00:00:00.123Z", "--apply"]);
    });
}

/// Whether there is a server, and it was built with collations of ICU.
async fn knows_icu() -> bool {
    let Some(database) = Database::fresh() else { return false };
    let mut link = PgConnection::connect(database.url()).await.expect("the server");
    let made = sqlx::query("CREATE COLLATION tried (provider = icu, locale = 'und')").execute(&mut link).await;
    made.is_ok()
}

#[test]
fn an_owner_is_one_person_in_each_spelling_that_the_columns_take_for_the_same() {
    block_on(async {
        let layout = facts("", "").replace("numbered = true", "")
            + "[[subject]]\ntable = \"people\"\ncolumns = { id = \"login\", name = \"called\" }\n\
               [[handle]]\ntable = \"people\"\nid = \"login\"\ncolumn = \"called\"\nkind = \"name\"\n\
               [[erase]]\ntable = \"people\"\ncolumn = \"login\"\naccount = true\n";
        let script = |kind: &str| {
            format!(
                "CREATE TABLE people (login {kind} PRIMARY KEY, called TEXT); \
                 CREATE TABLE facts (id TEXT PRIMARY KEY, owner {kind}, body TEXT); \
                 INSERT INTO people VALUES ('Jose.Silva77', 'José Silva'), ('mary.major', 'Mary Major'); \
                 INSERT INTO facts VALUES ('f-1', 'Jose.Silva77', 'likes tea'), ('f-2', 'jose.silva77', 'likes milk'), \
                 ('f-3', 'mary.major', 'knows JOSE.SILVA77 well')"
            )
        };
        let mut shelves = vec![Shelf::on_sqlite(&layout, &script("TEXT COLLATE NOCASE")).await];
        if knows_icu().await {
            let folded =
                "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false); ";
            let folded = format!("{folded}{}", script("text COLLATE folded"));
            shelves.extend(Shelf::on_postgres(&layout, &folded).await);
        }
        for shelf in shelves {
            let receipt = shelf.told(&["purge", "jose.silva77", "--mentions", "redact", "--apply"]);
            assert!(receipt["status"].as_str().is_some_and(|it| it.starts_with("verified")), "{receipt:#}");
            let words = receipt["disclosures"].to_string();
            assert!(!words.contains("was not found anywhere"), "{receipt:#}");
            assert_eq!(shelf.texts("SELECT id FROM facts").await, ["f-3"]);
            let left = shelf.texts("SELECT body FROM facts").await;
            assert!(!left[0].to_lowercase().contains("jose.silva77"), "{left:?}");
            assert_eq!(shelf.texts("SELECT login || '' FROM people ORDER BY 1").await.len(), 2);
            assert!(receipt.to_string().contains("the account is kept"), "{receipt:#}");
        }
    });
}

#[test]
fn vectors_of_every_type_are_compared() {
    block_on(async {
        let types = [
            ("", "bit(4)", "B'1100'", "B'1110'", "B'0001'"),
            ("CREATE DOMAIN numbers AS real[]; ", "numbers", "'{1,0.9,0}'", "'{1,1,0}'", "'{0,0,1}'"),
            (
                "CREATE EXTENSION IF NOT EXISTS vector; ",
                "sparsevec(4)",
                "'{1:1,2:1}/4'",
                "'{1:1,2:0.9}/4'",
                "'{4:1}/4'",
            ),
        ];
        for (made, kind, first, near, far) in types {
            let layout = facts("", "vector = \"emb\"").replace("numbered = true", "");
            let script = format!(
                "{made}CREATE TABLE facts (id text PRIMARY KEY, owner text, body text, emb {kind}); \
                 INSERT INTO facts VALUES ('f-0', 'o', 'one', {first}), ('f-1', 'o', 'two', {far}), ('f-2', 'o', 'three', {near})"
            );
            if made.contains("EXTENSION") && Database::fresh().is_none_or(|database| !database.has_vector()) {
                continue;
            }
            let Some(shelf) = Shelf::on_postgres(&layout, &script).await else { return };
            let (_, answer, words) = shelf.ended(&["recall", "--like", "f-0", "--ranking", "similar"]);
            assert!(
                !answer.to_string().contains("has no vector") && !words.contains("has no vector"),
                "{kind}: {answer:#}"
            );
            let text = answer.to_string();
            let place = |id: &str| text.find(&format!("\"{id}\""));
            let is_first = place("f-2").is_some_and(|near| place("f-1").is_none_or(|far| near < far));
            assert!(is_first, "{kind}: {answer:#}");
        }
    });
}

#[test]
fn a_removal_that_waited_sees_what_was_added_meanwhile() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let Target::Postgres(url) = &world.target else { return };
        let mut other = PgConnection::connect(url).await.expect("the server");
        let script = "BEGIN; INSERT INTO episode_segments (id, episode_id, sequence, kind, content) \
                      VALUES ('late', 'ep-12', 1, 'message', 'x'); SELECT 1 FROM episodes WHERE id = 'ep-12' FOR UPDATE";
        sqlx::raw_sql(script).execute(&mut other).await.expect("a row and a lock");
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = alone_in(folder.path());
        command.args(["-d", &address(&world), "remove", "episode", "ep-12", "--apply"]);
        let waiting = std::thread::spawn(move || command.output().expect("the program"));
        // Until it waits for the row.
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event_type = 'Lock'";
        let mut watcher = PgConnection::connect(url).await.expect("the server");
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut watcher).await.expect("a count") == 0 {
            assert!(!waiting.is_finished(), "it waited for nothing");
        }
        sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("done");
        let output = waiting.join().expect("it ended");
        // It gives up, or takes the row along that it did not know of.
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 4)), "{words}");
        let orphans = "SELECT count(*) FROM episode_segments s WHERE NOT EXISTS (SELECT FROM episodes e WHERE e.id = s.episode_id)";
        let left: i64 = sqlx::query_scalar(orphans).fetch_one(&mut other).await.expect("a count");
        assert_eq!(left, 0, "{words}");
    });
}

#[test]
fn a_number_comes_back_with_its_row_where_the_server_gave_it() {
    block_on(async {
        let script = "CREATE TABLE facts (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text, body text); \
             INSERT INTO facts (owner, body) VALUES ('ann-smith77', 'a'), ('bob-jones88', 'b')";
        let Some(shelf) = Shelf::on_postgres(&facts("", ""), script).await else { return };
        let all = "SELECT id || body FROM facts ORDER BY id";
        let mut line = shelf.told(&["export", "memory", "--where", "id=2"]);
        Agent::of(&shelf.target).await.run("DELETE FROM facts WHERE id = 2").await;
        let file = shelf.folder.path().join("own.jsonl");
        let import = ["import", "jsonl", "own.jsonl", "--apply"];
        std::fs::write(&file, line.to_string()).expect("a file");
        let receipt = shelf.told(&import);
        assert_eq!(shelf.texts(all).await, ["1a", "2b"], "{receipt:#}");
        // One that it has not come to is passed over later.
        line["id"] = json!("7");
        std::fs::write(&file, line.to_string()).expect("a file");
        let receipt = shelf.told(&import);
        assert!(receipt["effects"].to_string().contains("facts numbers further rows after 7"), "{receipt:#}");
        Agent::of(&shelf.target).await.run("INSERT INTO facts (owner, body) VALUES ('zoe', 'c')").await;
        assert_eq!(shelf.texts(all).await, ["1a", "2b", "7b", "8c"]);
    });
}

#[test]
fn tables_of_one_name_in_two_schemas_are_told_apart_in_the_past() {
    block_on(async {
        let source = |schema: &str| {
            format!(
                "[[memory]]\ntable = \"{schema}.notes\"\nlabel = \"{schema}\"\nwrite = {{}}\n\
                 columns = {{ id = \"id\", text = \"body\", created_at = \"at\" }}\n"
            )
        };
        let layout = format!(
            "name = \"shelf\"\ntitle = \"A shelf\"\nwritable = true\nrequires = [\"one.notes/body\"]\n{}{}",
            source("one"),
            source("two")
        );
        let table = |schema: &str| {
            format!(
                "CREATE SCHEMA {schema}; CREATE TABLE {schema}.notes (id text PRIMARY KEY, body text, at timestamptz); \
                 INSERT INTO {schema}.notes VALUES ('{schema}-1', 'x', '2026-01-01'), ('{schema}-2', 'x', '2026-03-01'); "
            )
        };
        let Some(shelf) = Shelf::on_postgres(&layout, &(table("one") + &table("two"))).await else { return };
        let receipt = shelf.told(&["remove", "memory", "one-1", "--apply"]);
        let before = (receipt["audit_seq"].as_i64().expect("a number") - 1).to_string();
        let ids = |at: &str| {
            let listed = shelf.told(&["list", "memory", "--order", "id", "--as-of", at]);
            let rows = listed["rows"].as_array().expect("rows").clone();
            rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&before), ["one-1", "one-2", "two-1", "two-2"]);
        assert_eq!(ids("2026-02-01"), ["one-1", "two-1"]);
    });
}

#[test]
fn a_key_of_several_columns_lets_go_as_it_says() {
    block_on(async {
        let layout = facts(", collection = \"room\"", "").replace("numbered = true", "");
        let script = |action: &str| {
            format!(
                "CREATE TABLE facts (id TEXT PRIMARY KEY, room TEXT, owner TEXT, body TEXT, UNIQUE (room, id)); \
                 CREATE TABLE marks (mark TEXT NOT NULL PRIMARY KEY, room TEXT, fact TEXT, \
                   FOREIGN KEY (room, fact) REFERENCES facts (room, id) {action}); \
                 INSERT INTO facts VALUES ('f-1', 'r', 'ann', 'a'); INSERT INTO marks VALUES ('m', 'r', 'f-1')"
            )
        };
        for (action, left) in [("ON DELETE SET NULL", "m--"), ("", "mr-"), ("ON DELETE SET NULL (fact)", "mr-")] {
            let mut shelves = vec![];
            if !action.ends_with(')') {
                shelves.push(Shelf::on_sqlite(&layout, &script(action)).await);
            }
            if !action.ends_with(')') || knows_set_null_of_some().await {
                shelves.extend(Shelf::on_postgres(&layout, &script(action)).await);
            }
            for shelf in shelves {
                let marks = "SELECT mark || coalesce(room, '-') || coalesce(fact, '-') FROM marks";
                let before = shelf.texts(marks).await;
                let receipt = shelf.told(&["remove", "memory", "f-1", "--apply"]);
                assert_eq!(shelf.texts(marks).await, [left], "{action}");
                shelf.undone(&receipt);
                assert_eq!(shelf.texts(marks).await, before, "{action}");
            }
        }
    });
}

/// Whether there is a server, and its keys may let go by some of their columns: PostgreSQL 15.
async fn knows_set_null_of_some() -> bool {
    let Some(database) = Database::fresh() else { return false };
    let mut link = PgConnection::connect(database.url()).await.expect("the server");
    let version = "SELECT current_setting('server_version_num')::integer >= 150000";
    sqlx::query_scalar(version).fetch_one(&mut link).await.expect("its version")
}

#[test]
fn what_the_database_raises_by_itself_is_no_fault_of_the_connection_or_the_role() {
    block_on(async {
        let layout = facts("", "").replace("numbered = true", "");
        let script = "CREATE TABLE stored (id text PRIMARY KEY, owner text, body text); \
             CREATE FUNCTION far() RETURNS SETOF stored LANGUAGE plpgsql AS $$ BEGIN \
               RAISE 'could not connect to server \"other\"' USING ERRCODE = '08001', HINT = 'ask Bob'; END $$; \
             CREATE VIEW facts AS SELECT * FROM far()";
        let Some(shelf) = Shelf::on_postgres(&layout, script).await else { return };
        let mut agent = Agent::of(&shelf.target).await;
        let raising = |code: &str| {
            format!(
                "CREATE OR REPLACE FUNCTION far() RETURNS SETOF stored LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE 'not on Sundays' USING ERRCODE = '{code}', HINT = 'ask Bob'; END $$"
            )
        };
        for code in ["08001", "57P03", "42501", "42P01", "P0001", "HV00N"] {
            agent.run(&raising(code)).await;
            let (ended, _, words) = shelf.ended(&["list", "memory"]);
            assert_eq!(ended, Some(if code == "42501" { 5 } else { 1 }), "{code}: {words}");
            for part in [code, "far() line 1", "ask Bob", "a function, trigger or policy of the database"] {
                assert!(words.contains(part), "{code}: {words}");
            }
            assert!(!words.contains("connection was lost"), "{code}: {words}");
        }
        let trigger = "DROP VIEW facts; ALTER TABLE stored RENAME TO facts; INSERT INTO facts VALUES ('f-1', 'o', 'a'); \
             CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not on Sundays' USING ERRCODE = '08006'; END $$; \
             CREATE TRIGGER guard BEFORE DELETE ON facts FOR EACH ROW EXECUTE FUNCTION guard()";
        agent.run(trigger).await;
        let (ended, _, words) = shelf.ended(&["remove", "memory", "f-1", "--apply"]);
        assert!(ended == Some(5) && words.contains("guard() line 1") && words.contains("correct it there"), "{words}");
    });
}
