//! Raw tables through the commands: every row once in any order, whether a layout knows the table or not, on both engines.

use std::path::Path;
use std::process::Command;

use crate::support::postgres::Database;
use crate::support::{block_on, program};
use serde_json::Value;
use sqlx::Connection as _;
use sqlx::{Executor as _, PgConnection};
use tempfile::TempDir;

const ROWS: i64 = 23;

/// Statements that both engines understand, and some of each one's own.
fn statements(engine: &str) -> Vec<String> {
    let (real, blob, json, list) = match engine {
        "sqlite" => ("REAL", "BLOB", "TEXT", "TEXT"),
        _ => ("double precision", "bytea", "jsonb", "text[]"),
    };
    let mut all = vec![
        format!(
            "CREATE TABLE facts (owner TEXT NOT NULL, \"key\" TEXT NOT NULL, weight {real}, rank INTEGER, body {json}, \
             raw {blob}, tags {list}, PRIMARY KEY (owner, \"key\")){}",
            if engine == "sqlite" { " WITHOUT ROWID" } else { "" }
        ),
        "CREATE TABLE loose (word TEXT, number INTEGER)".to_owned(),
        "CREATE VIEW shown AS SELECT owner, rank FROM facts WHERE rank IS NOT NULL".to_owned(),
    ];
    for n in 0..ROWS {
        let owner = ["ann", "bob", "Zoë"][usize::try_from(n % 3).unwrap()];
        let weight = if n % 4 == 0 { "NULL".to_owned() } else { format!("{}.5", n % 5) };
        let rank = if n % 7 == 0 { "NULL".to_owned() } else { (n % 6).to_string() };
        let raw = if engine == "sqlite" { format!("x'82a5{n:02x}'") } else { format!("'\\x82a5{n:02x}'") };
        let tags = if engine == "sqlite" { format!("'[\"t{n}\"]'") } else { format!("ARRAY['t{n}']") };
        all.push(format!(
            "INSERT INTO facts VALUES ('{owner}', 'k{n:02}', {weight}, {rank}, '{{\"n\": {n}, \"text\": \"line {n}\"}}', {raw}, {tags})"
        ));
        all.push(format!("INSERT INTO loose VALUES ('same', {})", n % 2));
    }
    all
}

struct World {
    database: String,
    home: TempDir,
    /// None where it is a file; deleted with the world.
    server: Option<Database>,
}

impl World {
    /// Runs statements as someone else.
    fn write(&self, script: &str) {
        block_on(async {
            let script = sqlx::raw_sql(sqlx::AssertSqlSafe(script.to_owned()));
            if let Some(server) = &self.server {
                let mut link = PgConnection::connect(server.url()).await.unwrap();
                script.execute(&mut link).await.unwrap();
            } else {
                let mut link = sqlx::SqliteConnection::connect(&self.database).await.unwrap();
                script.execute(&mut link).await.unwrap();
                link.close().await.unwrap();
            }
        });
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(program())
            .args(["-d", &self.database])
            .args(arguments)
            .env("MNEMOSCOPE_STATE", self.home.path().join("state"))
            .env("MNEMOSCOPE_CONFIG", self.home.path().join("config.toml"))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, error) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {out}"))
    }

    /// All rows in pages of that many.
    fn paged(&self, arguments: &[&str], limit: usize) -> Vec<Value> {
        let (limit, mut after, mut rows) = (limit.to_string(), None::<String>, Vec::new());
        loop {
            let mut page = arguments.to_vec();
            page.extend(["--limit", &limit]);
            page.extend(after.iter().flat_map(|after| ["--after", after]));
            let page = self.json(&page);
            rows.extend(page["rows"].as_array().unwrap().clone());
            assert!(rows.len() <= 200, "the pages do not end");
            match page["next"].as_str() {
                Some(next) => after = Some(next.to_owned()),
                None => return rows,
            }
        }
    }
}

fn sqlite() -> World {
    let home = TempDir::new().unwrap();
    let path = home.path().join("other.db");
    block_on(fill_sqlite(&path));
    World { database: path.display().to_string(), home, server: None }
}

async fn fill_sqlite(path: &Path) {
    let url = format!("sqlite:{}?mode=rwc", path.display());
    let mut link = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let search = ["CREATE VIRTUAL TABLE words USING fts5(word)", "INSERT INTO words VALUES ('late loads')"];
    for statement in statements("sqlite").iter().map(String::as_str).chain(search) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut link).await.unwrap();
    }
    link.close().await.unwrap();
}

fn on_both(check: impl Fn(&World)) {
    check(&sqlite());
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let mut link = PgConnection::connect(database.url()).await.unwrap();
        for statement in statements("postgres") {
            link.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
        }
    });
    check(&World { database: database.url().to_owned(), home: TempDir::new().unwrap(), server: Some(database) });
}

#[test]
fn every_table_is_listed_with_its_rows_key_and_columns() {
    on_both(|world| {
        let tables = world.json(&["tables"]);
        let table = |name: &str| {
            let all = tables["tables"].as_array().unwrap();
            all.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("{name} in {tables}")).clone()
        };
        let facts = table("facts");
        assert_eq!(
            (&facts["rows"], &facts["count_kind"], &facts["kind"]),
            (&ROWS.into(), &"exact".into(), &"table".into())
        );
        assert_eq!(facts["key"], serde_json::json!(["owner", "key"]));
        assert_eq!(facts["columns"].as_array().unwrap().len(), 7);
        assert_eq!(table("shown")["kind"], "view");
        assert_eq!(table("loose")["key"], serde_json::json!([]));
    });
}

#[test]
fn a_view_that_the_engine_cannot_read_keeps_no_table_back() {
    let world = sqlite();
    world.write(
        "CREATE VIEW orphan AS SELECT gone FROM dropped; CREATE VIEW foreign_function AS SELECT other_f(rank) FROM facts; \
             CREATE TABLE \"sqlitexnotes\" (id INTEGER PRIMARY KEY)",
    );
    let tables = world.json(&["tables"]);
    let table = |name: &str| tables["tables"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone();
    for (view, why) in [("orphan", "no such table"), ("foreign_function", "no such function")] {
        assert!(table(view)["unread"].as_str().is_some_and(|words| words.contains(why)), "{tables:#}");
        let (code, _, words) = world.run(&["table", view]);
        assert!(code == 5 && words.contains(why), "{code} {words}");
    }
    assert_eq!((&table("facts")["rows"], &table("sqlitexnotes")["rows"]), (&ROWS.into(), &0.into()));
    assert_eq!(world.paged(&["table", "facts"], 5).len(), ROWS as usize);
    world.json(&["status"]);
}

#[test]
fn a_column_that_the_engine_computes_is_read_like_others() {
    on_both(|world| {
        let made = "CREATE TABLE made (id INTEGER PRIMARY KEY, word TEXT, letters INTEGER GENERATED ALWAYS AS (length(word)) STORED)";
        let filled = "INSERT INTO made (id, word) VALUES (1, 'one'), (2, 'three')";
        world.write(&format!("{made}; {filled}"));
        let rows = world.paged(&["table", "made", "--where", "letters > 3"], 5);
        assert_eq!(rows, [serde_json::json!({"id": 2, "word": "three", "letters": 5})]);
    });
}

#[test]
fn pages_hold_each_row_once_in_every_order() {
    on_both(|world| {
        // Where values are empty, a page ends among these or right behind them.
        for (order, limit) in [
            (None, 8),
            (Some("weight"), 4),
            (Some("weight:desc"), 4),
            (Some("rank"), 4),
            (Some("rank:desc"), 4),
            (Some("body"), 8),
            (Some("raw:desc"), 8),
        ] {
            let mut arguments = vec!["table", "facts"];
            arguments.extend(order.iter().flat_map(|order| ["--order", order]));
            let whole = world.paged(&arguments, 100);
            assert_eq!(whole.len(), ROWS as usize, "{order:?}");
            assert_eq!(world.paged(&arguments, limit), whole, "{order:?}");
            let mut keys: Vec<String> = whole.iter().map(|row| format!("{} {}", row["owner"], row["key"])).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), ROWS as usize, "{order:?}");
        }
        // Without a key, and a view.
        assert_eq!(world.paged(&["table", "loose", "--order", "number:desc"], 8).len(), ROWS as usize);
        assert_eq!(world.paged(&["table", "loose"], 8).len(), ROWS as usize);
        let ranked = (0..ROWS).filter(|n| n % 7 != 0).count();
        assert_eq!(world.paged(&["table", "shown"], 10).len(), ranked);
        // Text that is none, at the edge of a page.
        if world.server.is_none() {
            world.write("UPDATE facts SET body = CAST(x'6cff' AS TEXT) WHERE \"key\" = 'k06'");
            for (order, limit) in [("body", 1), ("body:desc", 2)] {
                assert_eq!(world.paged(&["table", "facts", "--order", order], limit).len(), ROWS as usize, "{order}");
            }
        }
    });
}

#[test]
fn empty_values_come_first_and_numbers_are_ordered_as_numbers() {
    on_both(|world| {
        let rows = world.paged(&["table", "facts", "--order", "weight"], 100);
        let weights: Vec<Option<f64>> = rows.iter().map(|row| row["weight"].as_f64()).collect();
        let mut ordered = weights.clone();
        ordered.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(weights, ordered);
        assert_eq!(weights[0], None);
    });
}

#[test]
fn conditions_narrow_rows() {
    on_both(|world| {
        let count = |conditions: &[&str]| {
            let mut arguments = vec!["table", "facts"];
            arguments.extend(conditions.iter().flat_map(|c| ["--where", c]));
            world.paged(&arguments, 100).len()
        };
        let numbers = || 0..ROWS;
        assert_eq!(count(&["owner = Zoë"]), numbers().filter(|n| n % 3 == 2).count());
        assert_eq!(count(&["rank = null"]), numbers().filter(|n| n % 7 == 0).count());
        assert_eq!(count(&["rank >= 4"]), numbers().filter(|n| n % 7 != 0 && n % 6 >= 4).count());
        // SQLite keeps any number; a server's column takes none of this size.
        let code = world.run(&["table", "facts", "--where", "rank = 99999999999999999999"]).0;
        assert_eq!(code, if world.server.is_some() { 2 } else { 0 });
        assert_eq!(count(&["body ~ 'LINE 1'"]), numbers().filter(|n| *n == 1 || (10..20).contains(n)).count());
        assert_eq!(count(&["owner = ann", "key != k00"]), numbers().filter(|n| n % 3 == 0 && *n != 0).count());
    });
}

#[test]
fn values_are_decoded_and_blobs_previewed() {
    on_both(|world| {
        let wide = "{\"n\": 123456789012345678901234567890.123}";
        let set = format!("UPDATE facts SET body = '{wide}' WHERE \"key\" = 'k06'");
        world.write(&set);
        let rows = world.json(&["table", "facts", "--where", "key = k06"]);
        assert_eq!(rows["rows"][0]["body"], wide, "no digit is lost");
        let rows = world.json(&["table", "facts", "--where", "key = k05"]);
        let row = &rows["rows"][0];
        assert_eq!(row["body"], serde_json::json!({ "n": 5, "text": "line 5" }));
        assert_eq!(row["tags"], serde_json::json!(["t5"]));
        assert_eq!((&row["raw"]["bytes"], &row["raw"]["begins"]), (&3.into(), &"82a505".into()));
    });
}

#[test]
fn a_masked_table_shows_no_word() {
    on_both(|world| {
        for format in ["json", "jsonl", "csv", "table"] {
            let (code, out, error) = world.run(&["--mask", "--format", format, "table", "facts"]);
            assert_eq!(code, 0, "{error}");
            for word in ["ann", "bob", "Zoë", "line 5", "82a5"] {
                assert!(!out.contains(word), "{format}: {word} in {out}");
            }
        }
    });
}

#[test]
fn wrong_names_are_answered_with_the_nearest() {
    on_both(|world| {
        let (code, _, error) = world.run(&["table", "fact"]);
        assert!(code == 3 && error.contains("facts"), "{code} {error}");
        let (code, _, error) = world.run(&["table", "facts", "--where", "owners = ann"]);
        assert!(code == 2 && error.contains("owner"), "{code} {error}");
        let (code, _, error) = world.run(&["table", "facts", "--after", "AAAA"]);
        assert!(code == 2 && error.contains("cursor"), "{code} {error}");
    });
}

#[test]
fn a_search_table_of_sqlite_is_readable() {
    let world = sqlite();
    let tables = world.json(&["tables"]);
    let words = tables["tables"].as_array().unwrap().iter().find(|t| t["name"] == "words").unwrap().clone();
    assert_eq!(words["kind"], "virtual table");
    assert_eq!(world.json(&["table", "words"])["rows"][0]["word"], "late loads");
}

#[test]
fn rows_that_are_seen_through_a_parent_are_all_shown() {
    let Some(database) = Database::fresh() else { return };
    let world = World { database: database.url().to_owned(), home: TempDir::new().unwrap(), server: Some(database) };
    // Keys of a table are not unique over those that inherit from it, nor within one of them.
    world.write(
        "CREATE TABLE top (id int PRIMARY KEY, v text); CREATE TABLE other (w text); CREATE TABLE heir (extra text) INHERITS (top, other); \
         CREATE TABLE below () INHERITS (heir); INSERT INTO top VALUES (1, 'top'), (3, 'top'); \
         INSERT INTO heir (id, v) VALUES (1, 'heir'), (1, 'again'), (2, 'heir'); INSERT INTO below (id, v) VALUES (1, 'below'), (4, 'below')",
    );
    for (table, rows) in [("top", 7), ("other", 5), ("heir", 5), ("below", 2)] {
        for order in [&[][..], &["--order", "v"], &["--order", "v:desc"]] {
            if table == "other" && !order.is_empty() {
                continue;
            }
            let arguments = [&["table", table], order].concat();
            for limit in [1, 2, 50] {
                assert_eq!(world.paged(&arguments, limit).len(), rows, "{arguments:?} {limit}");
            }
        }
    }
    let ids: Vec<i64> = world.paged(&["table", "top"], 2).iter().filter_map(|row| row["id"].as_i64()).collect();
    assert_eq!(ids, [1, 1, 1, 1, 2, 3, 4]);
}

#[test]
fn a_value_that_fits_no_column_is_wrong_usage_or_is_nowhere() {
    on_both(|world| {
        let is_server = world.server.is_some();
        let domain = if is_server { "CREATE DOMAIN part AS int CHECK (VALUE > 0); " } else { "" };
        let part = if is_server { "part" } else { "INTEGER CHECK (p > 0)" };
        world.write(&format!(
            "{domain}CREATE TABLE typed (p {part}, big BIGINT, at TIMESTAMP, span INTERVAL, u UUID); INSERT INTO typed (p, big) VALUES (1, 2)"
        ));
        for filter in [
            "p = -5", "p = abc", "big = 99999999999999999999", "at = 2026-13-45", "span = soon", "u = x",
            "at = 2026-01-01 10:00+99",
        ] {
            let (code, out, words) = world.run(&["--format", "json", "table", "typed", "--where", filter]);
            let nowhere = out.contains("\"rows\": []");
            assert!(
                code == 2 && words.contains("does not fit") || code == 0 && nowhere,
                "{filter}: {code} {out} {words}"
            );
        }
    });
}

#[test]
fn a_table_may_have_as_many_columns_as_its_engine_takes() {
    on_both(|world| {
        let (most, blob) = if world.server.is_some() { (1_590, "bytea") } else { (1_990, "BLOB") };
        let columns: Vec<String> =
            (0..most).map(|n| if n == 1_500 { format!("c{n} {blob}") } else { format!("c{n} INTEGER") }).collect();
        let blob = if world.server.is_some() { "'\\x82a507'" } else { "x'82a507'" };
        world.write(&format!(
            "CREATE TABLE wide ({}); INSERT INTO wide (c7, c1500) VALUES (7, {blob}), (8, NULL)",
            columns.join(", ")
        ));
        let rows = world.paged(&["table", "wide", "--order", "c7"], 1);
        assert_eq!((rows.len(), &rows[0]["c7"], &rows[1]["c7"]), (2, &7.into(), &8.into()));
        assert_eq!(
            (&rows[0]["c1500"]["bytes"], &rows[1]["c1500"], rows[0].as_object().map(serde_json::Map::len)),
            (&3.into(), &Value::Null, Some(most))
        );
        assert!(
            world.json(&["tables"])["tables"].as_array().unwrap().iter().any(|t| t["name"] == "wide" && t["rows"] == 2)
        );
    });
}
