//! Proof that values are gone: each encoding is found where it is, every stored value is searched on both engines,
//! and the physical pass leaves no byte behind, or says what kept it from that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::block_on;
use crate::support::postgres::Database;
use crate::support::world::open;
use mnemoscope::store::fetched::FetchedValue;
use mnemoscope::store::proof::bytes::{NeedleContexts, sqlite_files};
use mnemoscope::store::proof::needles::{NeedleForm, SoughtBytes};
use mnemoscope::store::proof::pass::PassRequest;
use mnemoscope::store::proof::values::{StoredSighting, ValueWatch};
use mnemoscope::store::raw_file::RawFiles;
use mnemoscope::store::stored::{Mutation, StoredRows, TableName};
use mnemoscope::store::{Store, Target};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

const MAIL: &str = "maria.lopez-vega@hooli.example";
const ID: &str = "auth0|7f3a9b2cd41e";

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.expect("the file")
}

async fn run(link: &mut SqliteConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(link).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A pass that waits for whoever is only slow to end, as a busy machine has them.
fn wanted(full: bool, touched: &[&str]) -> PassRequest {
    PassRequest {
        touched: touched.iter().map(|t| TableName::new("public", *t)).collect(),
        learned: Vec::new(),
        full,
        at: "2026-02-04".to_owned(),
        patience: Duration::from_secs(20),
    }
}

/// A pass that someone hinders until it has ended.
fn hindered(full: bool, touched: &[&str]) -> PassRequest {
    PassRequest { patience: Duration::from_millis(300), ..wanted(full, touched) }
}

async fn bytes(path: &Path) -> u64 {
    let sought = SoughtBytes::of(&[MAIL.to_owned(), ID.to_owned()]);
    let raw_files = RawFiles::through(Some(crate::support::program()));
    raw_files.search(&sqlite_files(path), &sought).await.expect("the files").hits()
}

/// A database in which a person has left traces in every way that SQLite offers: rows, an index, a full-text index, the
/// planner's samples, free pages, and the log or journal.
async fn haunted(folder: &Path, mode: &str) -> PathBuf {
    let path = folder.join("memory.db");
    let mut link = connect(&path).await;
    run(&mut link, &format!("PRAGMA journal_mode = {mode}; PRAGMA wal_autocheckpoint = 0")).await;
    run(
        &mut link,
        "CREATE TABLE notes (id TEXT PRIMARY KEY, owner TEXT, body TEXT); CREATE INDEX by_owner ON notes (owner); \
         CREATE VIRTUAL TABLE notes_fts USING fts5(body, content='notes'); \
         CREATE TRIGGER added AFTER INSERT ON notes BEGIN INSERT INTO notes_fts (rowid, body) VALUES (new.rowid, new.body); END; \
         CREATE TRIGGER gone AFTER DELETE ON notes BEGIN \
           INSERT INTO notes_fts (notes_fts, rowid, body) VALUES ('delete', old.rowid, old.body); END",
    )
    .await;
    for n in 0..300 {
        let (owner, mail) = if n % 3 == 0 { (ID, MAIL) } else { ("auth0|other0000001", "bob@initech.test") };
        let body =
            format!("Order {n} of {mail}, delivered to the door of whoever ordered it. {}", "Thanks. ".repeat(n % 60));
        let insert =
            sqlx::query("INSERT INTO notes VALUES ($1, $2, $3)").bind(format!("note-{n}")).bind(owner).bind(body);
        insert.execute(&mut link).await.expect("a row");
    }
    run(&mut link, "ANALYZE").await;
    // Traces from before: deleted without care by someone else.
    run(&mut link, &format!("DELETE FROM notes WHERE owner = '{ID}' AND rowid % 2 = 0")).await;
    link.close().await.expect("closed");
    path
}

async fn delete_rest(store: &Store) {
    let mut writer = store.write("2026-02-04T10:00:00.000000Z").await.expect("a writer");
    writer.overwrite_deleted(store.engine()).await.expect("erasing");
    let rows = store
        .shapes()
        .images(&StoredRows::with(&TableName::new("main", "notes"), "owner", FetchedValue::Text(ID.to_owned())))
        .await;
    let ids = rows.expect("rows").iter().filter_map(|image| Some(vec![image.get("id")?.clone()])).collect();
    let rows = StoredRows { table: TableName::new("main", "notes"), by: vec!["id".to_owned()], keys: ids };
    writer.run(&Mutation::Delete(rows)).await.expect("deleted");
    writer.commit().await.expect("final");
}

#[test]
fn no_byte_is_left_after_the_pass_whatever_the_journal() {
    for mode in ["WAL", "DELETE", "PERSIST", "TRUNCATE"] {
        block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            let path = haunted(folder.path(), mode).await;
            // A live database: someone has it open, and reads nothing.
            let mut other = connect(&path).await;
            run(&mut other, &format!("PRAGMA journal_mode = {mode}; SELECT count(*) FROM notes")).await;
            let store = open(&Target::File(path.clone())).await;
            let sought = SoughtBytes::of(&[MAIL.to_owned(), ID.to_owned()]);
            let control = store.proof().scan_bytes(&sought).await.expect("the files").by_needle();
            assert!([0, 1].iter().all(|handle| control.keys().any(|(found, _)| found == handle)), "{mode}");
            delete_rest(&store).await;
            let keys = store.proof().key_problems().await.expect("keys");
            let pass = store.proof().physical_pass(&wanted(false, &[])).await.expect("the pass");
            assert!(pass.incomplete.is_empty(), "{mode}: {pass:?}");
            assert_eq!(bytes(&path).await, 0, "{mode}: {pass:?}");
            assert_eq!(store.proof().key_problems().await.expect("keys"), keys);
            let free: i64 = sqlx::query("PRAGMA freelist_count").fetch_one(&mut other).await.expect("pages").get(0);
            assert_eq!(free, 0, "{mode}");
            let found = store.proof().search_indexes(&[MAIL.to_owned()]).await.expect("the index");
            assert_eq!((found.len(), found[0].total(), found[0].unread.as_ref()), (1, 0, None));
            let others = store.proof().search_indexes(&["bob@initech.test".to_owned()]).await.expect("the index");
            assert_eq!(others[0].rows, [200], "the index still finds the other people's rows");
        });
    }
}

#[test]
fn a_reader_keeps_the_pass_from_being_complete_and_is_named() {
    block_on(async {
        for mode in ["WAL", "DELETE"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = haunted(folder.path(), mode).await;
            let store = open(&Target::File(path.clone())).await;
            let mut reader = reading_process(&path);
            delete_or_wait(&store, mode).await;
            let pass = store.proof().physical_pass(&hindered(false, &[])).await.expect("the pass");
            assert!(!pass.incomplete.is_empty(), "{mode}: {pass:?}");
            let reason = pass.incomplete.join("; ");
            assert!(reason.contains("resume") && reason.contains(&reader.id().to_string()), "{mode}: {reason}");
            reader.kill().expect("ended");
            reader.wait().expect("ended");
            delete_rest(&store).await;
            let pass = store.proof().physical_pass(&wanted(false, &[])).await.expect("the pass");
            assert!(pass.incomplete.is_empty(), "{mode}: {pass:?}");
            assert_eq!(bytes(&path).await, 0, "{mode}");
        }
    });
}

/// In rollback mode a reader keeps the deletion itself out.
async fn delete_or_wait(store: &Store, mode: &str) {
    if mode == "WAL" {
        delete_rest(store).await;
    }
}

/// Another process in the middle of a read transaction.
fn reading_process(path: &Path) -> std::process::Child {
    use std::io::BufRead as _;
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "proof::holds_a_read_transaction_open", "--nocapture", "--ignored"])
        .env("MNEMOSCOPE_TEST_READS", path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("another process");
    let out = std::io::BufReader::new(child.stdout.take().expect("its words"));
    assert!(out.lines().map_while(Result::ok).any(|line| line.contains("reading")), "it did not begin to read");
    child
}

#[test]
#[ignore = "run by other tests as the process that reads"]
fn holds_a_read_transaction_open() {
    let Ok(path) = std::env::var("MNEMOSCOPE_TEST_READS") else { return };
    block_on(async {
        let mut link = connect(Path::new(&path)).await;
        run(&mut link, "BEGIN").await;
        sqlx::query("SELECT count(*) FROM notes").fetch_one(&mut link).await.expect("a read");
        println!("\nreading");
        // Until the input ends or the process is ended.
        let _ = std::io::stdin().read_line(&mut String::new());
    });
}

const ROWS: &str = "CREATE TABLE people (id TEXT PRIMARY KEY, mail TEXT, age INTEGER); \
     CREATE TABLE strange (a TEXT, b TEXT, n BIGINT); \
     INSERT INTO people VALUES ('auth0|7f3a9b2cd41e', 'Maria.Lopez-Vega@Hooli.example', 4711), ('auth0|other', 'bob@hooli.example', 1); \
     INSERT INTO strange VALUES ('{\"who\": {\"list\": [\"x\", \"auth0|7f3a9b2cd41e\"]}}', 'nothing', 4711), \
       ('auth0|7f3a9b2cd41e0 is another one', 'to YXV0aDB8N2YzYTliMmNkNDFl', 47110), (NULL, 'see auth0%7C7f3a9b2cd41e', NULL)";

/// The values in which one of some handles is found.
async fn search(store: &Store, handles: &[&str]) -> Vec<StoredSighting> {
    let handles: Vec<String> = handles.iter().map(ToString::to_string).collect();
    let (watch, mut seen) = (ValueWatch::new(&handles, &[]), Vec::new());
    let each = |sighting| seen.push(sighting);
    store.proof().search_values(&watch, true, &mut NeedleContexts::default(), each).await.expect("the search");
    seen
}

#[test]
fn every_stored_value_is_searched_on_sqlite() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("any.db");
        let mut link = connect(&path).await;
        run(&mut link, ROWS).await;
        run(&mut link, "CREATE VIEW v AS SELECT * FROM people").await;
        let store = open(&Target::File(path.clone())).await;
        let seen = search(&store, &[MAIL, ID, "4711"]).await;
        let places: Vec<(&str, &str, usize, bool)> =
            seen.iter().map(|s| (s.table.name.as_str(), s.column.as_str(), s.handle, s.entire)).collect();
        let expected = [
            ("people", "id", 1, true),
            ("people", "mail", 0, true),
            ("people", "age", 2, true),
            ("strange", "a", 1, false),
            ("strange", "n", 2, true),
            ("strange", "b", 1, false),
            ("strange", "b", 1, false),
        ];
        assert_eq!(places, expected);
        assert!(seen.iter().all(|s| s.count == 1), "{seen:?}");
        // Compressed, in a table without row numbers, and behind a full-text index.
        run(
            &mut link,
            "DROP TABLE strange; CREATE TABLE z (k INTEGER, l INTEGER, body BLOB, made TEXT AS (k || l), PRIMARY KEY (l, k)) WITHOUT ROWID; \
             CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('mail maria.lopez-vega@hooli.example')",
        )
        .await;
        let insert = sqlx::query("INSERT INTO z (k, l, body) VALUES (1, 2, $1)")
            .bind(zlib(br#"{"m":["maria.lopez-vega@hooli.example"]}"#));
        insert.execute(&mut link).await.expect("a row");
        let seen = search(&store, &[MAIL]).await;
        for table in ["z", "f_content"] {
            assert!(seen.iter().any(|s| s.table.name == table), "{table}: {seen:?}");
        }
    });
}

/// Long tables, each with the person in rows of its own: of plain texts, of texts in encodings, with more columns than most,
/// without row numbers, and with a column called as the row number is.
fn long_tables() -> Vec<(&'static str, String)> {
    let rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)";
    let columns: Vec<String> = (0..120).map(|n| format!("c{n}")).collect();
    let wide = columns.iter().map(|name| format!("{name} TEXT")).collect::<Vec<_>>().join(", ");
    vec![
        (
            "plain",
            format!(
                "CREATE TABLE plain (body, n); INSERT INTO plain {rows} SELECT 'order ' || i || ' of bob', i FROM n"
            ),
        ),
        (
            "coded",
            format!(
                "CREATE TABLE coded (body, n); INSERT INTO coded {rows} SELECT '{{\"a\":\"one\\ntwo ' || i || '\"}}', i FROM n"
            ),
        ),
        (
            "named",
            format!(
                "CREATE TABLE named (\"rowid\" TEXT, body, n); INSERT INTO named {rows} SELECT 'x', 'order ' || i, i FROM n"
            ),
        ),
        (
            "bare",
            format!(
                "CREATE TABLE bare (k INTEGER PRIMARY KEY, body, n) WITHOUT ROWID; INSERT INTO bare {rows} SELECT i, 'order ' || i, i FROM n"
            ),
        ),
        (
            "wide",
            format!(
                "CREATE TABLE wide (body, n, {wide}); INSERT INTO wide (body, n) {rows} SELECT 'order ' || i, i FROM n"
            ),
        ),
    ]
}

#[test]
fn a_long_table_is_searched_to_its_last_row_whatever_its_values_are() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("long.db");
        let mut link = connect(&path).await;
        // Each holds the person's id once.
        let texts = [
            format!("see {ID}."),
            format!("see {}", ID.to_uppercase()),
            ID.replace("auth0", r#"{"a":"\u0061uth0"#) + "\"}",
            "to YXV0aDB8N2YzYTliMmNkNDFl".to_owned(),
            format!("Zoë of {ID}"),
        ];
        for (table, sql) in long_tables() {
            run(&mut link, &sql).await;
            // The ends of the parts in which rows are read, and the ends of the table.
            for (text, row) in texts.iter().zip([1, 4_999, 5_000, 5_001, 11_000]) {
                let planted = sqlx::query(AssertSqlSafe(format!("UPDATE {table} SET body = $1 WHERE n = $2")));
                planted.bind(text).bind(row).execute(&mut link).await.expect("a value");
            }
            let bytes = zlib(format!("{{\"m\":\"{ID}\"}}").as_bytes());
            let planted = sqlx::query(AssertSqlSafe(format!("UPDATE {table} SET body = $1 WHERE n = 10000")));
            planted.bind(bytes).execute(&mut link).await.expect("bytes");
            run(&mut link, &format!("UPDATE {table} SET n = 4711 WHERE n = 77")).await;
        }
        let store = open(&Target::File(path.clone())).await;
        let seen = search(&store, &[ID, "4711"]).await;
        for (table, _) in long_tables() {
            let here = |column: &str, handle| {
                seen.iter().filter(|s| s.table.name == table && s.column == column && s.handle == handle).count()
            };
            assert_eq!((here("body", 0), here("n", 1)), (6, 2), "{table}");
        }
    });
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a_pass_says_what_its_role_may_not_do() {
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let mut server = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::raw_sql(ROWS).execute(&mut server).await.expect("rows");
        let role = format!("searcher_{}", rand::random::<u32>());
        let grant = format!("CREATE ROLE {role}; GRANT {role} TO current_user; GRANT SELECT ON people TO {role}");
        sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut server).await.expect("a role");
        let mut url = url::Url::parse(database.url()).expect("a URL");
        url.query_pairs_mut().append_pair("options", &format!("-c role={role}"));
        let store = open(&Target::Postgres(url.to_string())).await;
        let pass = store.proof().physical_pass(&wanted(true, &["people"])).await.expect("the pass");
        assert!(pass.incomplete.is_empty() && pass.refused[0].contains("people"), "{pass:?}");
        drop(store);
        let drop_role = format!("DROP OWNED BY {role}; DROP ROLE {role}");
        sqlx::raw_sql(AssertSqlSafe(drop_role)).execute(&mut server).await.expect("the role goes");
    });
}

#[test]
fn tables_are_written_anew_on_postgres_and_who_hinders_it_is_named() {
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let mut server = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::raw_sql(ROWS).execute(&mut server).await.expect("rows");
        sqlx::raw_sql("DELETE FROM people WHERE age = 4711").execute(&mut server).await.expect("gone");
        let store = open(&Target::Postgres(database.url().to_owned())).await;
        let file = "SELECT pg_relation_filenode('people')::bigint";
        let before: i64 = sqlx::query(file).fetch_one(&mut server).await.expect("a file").get(0);
        let pass = store.proof().physical_pass(&wanted(true, &["people", "absent"])).await.expect("the pass");
        assert!(pass.incomplete.is_empty(), "{pass:?}");
        let after: i64 = sqlx::query(file).fetch_one(&mut server).await.expect("a file").get(0);
        assert_ne!(before, after, "the table is in another file");
        assert!(pass.disclosures.iter().all(|d| d.contains("2026-02-04")) && !pass.disclosures.is_empty(), "{pass:?}");
        // A lock in the way.
        let mut other = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::raw_sql("BEGIN; LOCK TABLE people IN ACCESS SHARE MODE").execute(&mut other).await.expect("a lock");
        let pass = store.proof().physical_pass(&hindered(true, &["people"])).await.expect("the pass");
        let pid: i32 = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut other).await.expect("its number").get(0);
        assert!(pass.incomplete[0].contains(&pid.to_string()), "{pass:?}");
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.expect("no lock");
        // An old reader in the way.
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM strange")
            .execute(&mut other)
            .await
            .expect("a reader");
        sqlx::raw_sql("DELETE FROM people").execute(&mut server).await.expect("gone");
        let pass = store.proof().physical_pass(&hindered(false, &["people"])).await.expect("the pass");
        assert!(pass.incomplete.iter().any(|why| why.contains(&pid.to_string())), "{pass:?}");
        // Its old statistics hold common values, and may still be read too.
        let statistics = |words: &String| words.contains("in the file of pg_catalog.pg_statistic:");
        assert!(pass.refused.iter().any(statistics), "{pass:?}");
        other.close().await.expect("ended");
        let pass = store.proof().physical_pass(&wanted(false, &["people"])).await.expect("the pass");
        assert!(pass.incomplete.is_empty() && pass.disclosures.iter().any(|d| d.contains("--full")), "{pass:?}");
        assert!(!pass.refused.iter().any(statistics), "{pass:?}");
        let known = sqlx::query("SELECT 1 FROM pg_stats WHERE tablename = 'people'").fetch_all(&mut server).await;
        assert!(known.expect("statistics").is_empty(), "the statistics of an empty table hold what was in it");
    });
}

#[test]
fn the_tail_of_a_word_is_looked_for_too() {
    let needles = SoughtBytes::of(&[MAIL.to_owned()]).needles();
    assert!(needles.iter().any(|n| n.form == NeedleForm::Tail && n.bytes == b".example"));
}

/// Places of a handle among the bytes of a file as they stand, and those that are told of a person who has it.
async fn places(path: &Path, handle: &str) -> (usize, u64) {
    let sought = SoughtBytes::of(&[handle.to_owned()]);
    let raw_files = RawFiles::through(Some(crate::support::program()));
    let told = raw_files.search(&sqlite_files(path), &sought).await.expect("the files").hits();
    let needles = sought.needles();
    let file = std::fs::read(path).expect("the file");
    let plain = needles.iter().filter(|n| matches!(n.form, NeedleForm::Utf8 | NeedleForm::Utf16Le));
    let count = |needle: &[u8]| memchr::memmem::find_iter(&file, needle).count();
    (plain.map(|needle| count(needle.bytes)).sum(), told)
}

#[test]
fn the_end_of_one_value_and_the_beginning_of_the_next_are_no_handle() {
    block_on(async {
        for (encoding, size, vacuum) in
            [("UTF-8", 512, "NONE"), ("UTF-8", 4_096, "FULL"), ("UTF-16le", 1_024, "NONE"), ("UTF-8", 65_536, "NONE")]
        {
            let at = format!("{encoding} {size}");
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("memory.db");
            let mut link = connect(&path).await;
            run(
                &mut link,
                &format!(
                    "PRAGMA encoding = '{encoding}'; PRAGMA page_size = {size}; PRAGMA auto_vacuum = {vacuum}; \
                     PRAGMA secure_delete = ON; \
                     CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, owner TEXT, next TEXT); \
                     CREATE INDEX by_owner ON notes (owner); CREATE INDEX by_body ON notes (body); \
                     CREATE TABLE pairs (owner TEXT, next TEXT, PRIMARY KEY (owner, next)) WITHOUT ROWID; \
                     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300) \
                       INSERT INTO notes SELECT n, printf('%.*c', n * n % 9000, 'x'), 'customer-10', n % 2 || ' apples' FROM n; \
                     INSERT INTO notes VALUES (12544, 'b', 'customer-10', NULL); \
                     INSERT INTO pairs SELECT DISTINCT owner, '1' || id FROM notes; VACUUM"
                ),
            )
            .await;
            let (there, told) = places(&path, "customer-101").await;
            assert!(there > 150, "{at}: {there}");
            assert_eq!(told, 0, "{at}: of {there}");
            // Values that are there are told, wherever they stand.
            for (n, body) in ["''", "printf('%.*c', 20000, 'x')"].into_iter().enumerate() {
                let row = format!("INSERT INTO notes VALUES ({n} + 20000, {body}, 'customer-101', NULL); VACUUM");
                run(&mut link, &row).await;
                // In the table and in the index; the tail of the handle is looked for too, in UTF-8.
                let forms = if encoding == "UTF-8" { 2 } else { 1 };
                let (there, told) = places(&path, "customer-101").await;
                assert_eq!(told, 2 * forms * (n as u64 + 1), "{at}: of {there}");
            }
            // So are those in places that are free.
            run(&mut link, "PRAGMA secure_delete = OFF; DELETE FROM notes WHERE owner = 'customer-101'").await;
            assert!(places(&path, "customer-101").await.1 > 0, "{at}: deleted");
            run(&mut link, "PRAGMA secure_delete = ON; VACUUM").await;
            assert_eq!(places(&path, "customer-101").await.1, 0, "{at}: written again");
        }
    });
}

#[test]
fn a_watch_over_files_notices_whoever_writes_and_nobody_who_reads() {
    block_on(async {
        for mode in ["WAL", "DELETE"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("watched.db");
            let mut link = connect(&path).await;
            run(
                &mut link,
                &format!("PRAGMA journal_mode = {mode}; CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)"),
            )
            .await;
            let store = open(&Target::File(path.clone())).await;
            let mut watch = store.proof().watch_files().await.expect("files");
            search(&store, &[MAIL]).await;
            assert!(watch.is_unchanged().await, "{mode}: read");
            run(&mut link, &format!("INSERT INTO notes (note) VALUES ('{MAIL}')")).await;
            assert!(!watch.is_unchanged().await, "{mode}: written");
        }
    });
}
