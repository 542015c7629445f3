//! A damaged page: the table that it is of is named, with a way on, and the rest is looked at.

use std::cmp::Reverse;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::support::world::{author, by};
use crate::support::{alone_in, block_on, changeable_demo_in, options, statement};
use mnemoscope::change::{self, signal};
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Query;
use mnemoscope::memory::utility::Signal;
use mnemoscope::store::{Store, Target};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _};

/// Overwrites a page in the middle of a table's rows.
fn damage(path: &Path, table: &str) {
    let sql = format!(
        "SELECT pageno FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET \
         (SELECT count(*) / 2 FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf')"
    );
    let (page, size): (i64, i64) = block_on(async {
        let mut link = crate::support::world::sqlite(path).await;
        sqlx::query("PRAGMA journal_mode = DELETE").execute(&mut link).await.expect("a journal");
        let page = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut link).await.expect("a page");
        let size = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut link).await.expect("a size");
        link.close().await.expect("closed");
        (page, size)
    });
    let mut file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    file.seek(SeekFrom::Start(((page - 1) * size) as u64)).expect("the page");
    file.write_all(&vec![0xff; size as usize]).expect("written");
}

#[test]
fn a_damaged_page_is_named_and_keeps_nobody_from_the_rest() {
    for table in ["episode_segments", "notes"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = changeable_demo_in(folder.path(), 300);
        block_on(async {
            let mut link = crate::support::world::sqlite(&path).await;
            let notes = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO notes (body) \
                 WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 500) SELECT hex(zeroblob(200)) FROM n";
            sqlx::raw_sql(notes).execute(&mut link).await.expect("notes");
            link.close().await.expect("closed");
        });
        damage(&path, table);
        let run = |words: &[&str]| {
            let mut command = alone_in(folder.path());
            let done =
                command.arg("-d").arg(&path).args(["--format", "json"]).args(words).output().expect("the program");
            let answer = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
            (done.status.code(), answer(&done.stdout), answer(&done.stderr))
        };
        let (code, shown, error) = run(&["table", table, "--limit", "9000"]);
        assert!(code == Some(6) && shown["rows"].as_array().is_some_and(|rows| rows.len() > 100), "{error}");
        assert!(error["notes"].to_string().contains(table), "{error}");
        assert!(error["error"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("backup")), "{error}");
        let (code, _, error) = run(&["purge", "felix.abbott"]);
        let said = error["error"]["message"].as_str().unwrap_or_default();
        assert!(code == Some(1) && said.contains(&format!("not every row of {table} can be read")), "{error}");
        let named = |found: &Value| {
            found.as_array().into_iter().flatten().any(|f| f["examples"][0] == table && f["kind"] == "damaged_table")
        };
        let (code, found, error) = run(&["findings", "--kind", "damaged_table"]);
        assert!(code == Some(0) && named(&found["findings"]), "{found} {error}");
        let (code, found, error) = run(&["findings"]);
        assert_eq!((code, named(&found["findings"])), (Some(0), table == "episode_segments"), "{found} {error}");
        let kinds: Vec<&str> =
            found["findings"].as_array().into_iter().flatten().filter_map(|f| f["kind"].as_str()).collect();
        assert!(kinds.contains(&"chain_cycle") && kinds.contains(&"secret"), "the rest is looked at: {kinds:?}");
        // Of half of the rows nothing is said.
        assert_eq!(kinds.contains(&"orphan_segment"), table == "notes", "{kinds:?}");
    }
}

/// Lines of a command that are rows, its exit code, and what it says.
fn ran(path: &Path, words: &[&str]) -> (Vec<String>, Option<i32>, String) {
    let folder = path.parent().expect("a folder");
    let done = alone_in(folder).arg("-d").arg(path).args(words).output().expect("the program");
    let lines = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect();
    (lines, done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn rows_next_to_a_damaged_page_are_shown_and_the_others_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changeable_demo_in(folder.path(), 300);
    let list = ["--format", "jsonl", "list", "episode"];
    let (all, code, said) = ran(&path, &list);
    assert_eq!(code, Some(0), "{said}");
    damage(&path, "episodes");
    let (rows, code, said) = ran(&path, &list);
    let unread = all.len() - rows.len();
    assert!(code == Some(6) && (1..=30).contains(&unread), "{unread}: {said}");
    assert!(rows.iter().all(|row| all.contains(row)));
    let words = [&format!("{unread} row")[..], "of episodes cannot be read: a page is damaged", ".recover"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    let whole: Vec<&String> = all.iter().filter(|row| rows.contains(row)).collect();
    assert_eq!(rows.iter().collect::<Vec<_>>(), whole, "the order is the same");
    for (words, least) in [
        (&["export", "episode"][..], rows.len()),
        (&["--format", "csv", "list", "episode"], rows.len()),
        (&["--format", "jsonl", "list", "episode", "--order", "id"], rows.len()),
        (&["--format", "jsonl", "table", "episodes"], rows.len()),
        (&["--format", "table", "list", "episode", "--limit", "9000"], rows.len()),
        (&["--format", "jsonl", "recall", "invoice", "--ranking", "boosted", "-k", "20"], 20),
        (&["--format", "jsonl", "find", "invoice", "--entity", "episode"], 1),
        (&["insights"], 1),
    ] {
        let (lines, code, said) = ran(&path, words);
        assert!(code == Some(6) && lines.len() >= least, "{words:?}: {} lines, {said}", lines.len());
    }
    // Of a row that is not found it is not said that there is none.
    let lost = all.iter().find(|row| !rows.contains(row)).expect("a row");
    let lost: Value = serde_json::from_str(lost).expect("a row");
    let (_, code, said) = ran(&path, &["show", "episode", lost["id"].as_str().expect("an id")]);
    assert!(code == Some(1) && said.contains("episodes"), "{said}");
}

/// A value of a file, by SQL.
fn value(path: &Path, sql: &str) -> String {
    block_on(async {
        let mut link = crate::support::world::sqlite(path).await;
        let value = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut link).await.expect(sql);
        link.close().await.expect("closed");
        value
    })
}

#[test]
fn no_command_that_looks_stops_where_a_list_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changeable_demo_in(folder.path(), 300);
    // The newest are not on a page in the middle.
    let id = |place: u32| {
        let sql = "SELECT id FROM episodes WHERE user_id GLOB '[a-z]*.[a-z]*' ORDER BY rowid DESC LIMIT 1 OFFSET";
        value(&path, &format!("{sql} {place}"))
    };
    let (first, second) = (id(0), id(1));
    let person = value(&path, &format!("SELECT user_id FROM episodes WHERE id = '{first}'"));
    let (_, code, said) = ran(&path, &["signal", &first, "confirmed", "--apply"]);
    assert_eq!(code, Some(0), "{said}");
    let looks: [&[&str]; 25] = [
        &["status"],
        &["--mask", "list", "subject"],
        &["list", "episode", "--as-of", "1"],
        &["--format", "jsonl", "list", "episode", "--as-of", "1"],
        &["--format", "table", "list", "episode", "--as-of", "1", "--limit", "9000"],
        &["list", "subject"],
        &["list", "audit_entry"],
        &["list", "episode", "--follow"],
        &["show", "episode", &first, "--as-of", "1"],
        &["show", "subject", &person],
        &["export", "subject", &person],
        &["export", "audit_entry"],
        &["recall", "invoice", "--ranking", "boosted", "--as-of", "1"],
        &["context", "invoice", "--ranking", "boosted", "--as-of", "1"],
        &["chain", &first],
        &["compare", "episode", &first, &second],
        &["insights"],
        &["evaluate"],
        &["audit", "list"],
        &["policy", "list"],
        &["backfill"],
        &["queries"],
        &["tables"],
        &["layouts", "draft"],
        &["findings"],
    ];
    damage(&path, "episodes");
    let bytes = std::fs::read(&path).expect("the file");
    for words in looks {
        let (lines, code, said) = ran(&path, words);
        assert!(matches!(code, Some(0 | 6)) && !lines.is_empty(), "{words:?}: {code:?} {said}");
        // The answer of `status` says what is missing.
        let times = usize::from(code == Some(6) && words[0] != "status");
        assert_eq!(said.matches("of episodes cannot be read").count(), times, "{words:?}: {said}");
    }
    let (now, then) =
        (["--format", "jsonl", "list", "episode"], ["--format", "jsonl", "list", "episode", "--as-of", "1"]);
    let (now, then) = (ran(&path, &now), ran(&path, &then));
    assert_eq!((now.0.len(), now.1), (then.0.len(), then.1), "{}", then.2);
    assert!(std::fs::read(&path).expect("the file") == bytes, "a damaged database is not written");
}

/// Confirms episodes, each of which is an entry of the trail.
fn confirm(path: &Path, episodes: usize) {
    block_on(async {
        let store = Store::open(&Target::File(path.to_owned()), &options()).await.expect("the database");
        let query = Query { limit: episodes, ..Query::new(Entity::Episode) };
        for episode in store.page(&query).await.expect("episodes").rows {
            let plan = || signal::add(&store, episode.id(), Signal::Confirmed, by("tester", None));
            change::plan_and_apply(&store, &author(), plan).await.expect("a signal");
        }
    });
}

#[test]
fn a_trail_with_a_damaged_page_is_listed_and_not_called_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changeable_demo_in(folder.path(), 300);
    confirm(&path, 60);
    let entries: usize = value(&path, "SELECT CAST(count(*) AS TEXT) FROM memory_audit").parse().expect("a number");
    damage(&path, "memory_audit");
    for words in [
        &["--format", "jsonl", "audit", "list", "--limit", "9000"][..],
        &["--format", "csv", "audit", "list", "--limit", "9000"],
        &["--format", "table", "audit", "list", "--limit", "9000"],
        &["--format", "jsonl", "table", "memory_audit"],
    ] {
        let (lines, code, said) = ran(&path, words);
        assert!(code == Some(6) && (20..entries).contains(&lines.len()), "{words:?}: {} lines, {said}", lines.len());
        assert_eq!(said.matches("of memory_audit cannot be read").count(), 1, "{words:?}: {said}");
    }
    let (lines, code, said) = ran(&path, &["--format", "jsonl", "list", "episode", "--as-of", "1"]);
    let unknown = said.contains("not known: entries of the trail cannot be read");
    assert!(code == Some(6) && !lines.is_empty() && unknown, "{said}");
    let (_, code, said) = ran(&path, &["audit", "verify"]);
    assert!(code == Some(1) && said.contains("memory_audit"), "{said}");
}

#[test]
fn a_file_that_ends_too_early_gives_what_is_left_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changeable_demo_in(folder.path(), 300);
    statement(&path, "PRAGMA journal_mode = DELETE");
    let all = ran(&path, &["export", "episode"]).0.len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
    let size = file.metadata().expect("its size").len();
    file.set_len(size / 4096 * 2 / 3 * 4096).expect("cut");
    drop(file);
    let bytes = std::fs::read(&path).expect("the file");
    let (rows, code, said) = ran(&path, &["export", "episode"]);
    assert!(code == Some(6) && !rows.is_empty() && rows.len() < all, "{} of {all}: {said}", rows.len());
    let (status, code, said) = ran(&path, &["--format", "json", "status"]);
    assert!(code == Some(6) && said.contains(".recover") && !said.contains("rows of"), "{said}");
    let status: Value = serde_json::from_str(&status.concat()).expect("JSON");
    let notes: Vec<&str> =
        status["database"]["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let missing: Vec<&str> = notes.iter().filter(|note| note.contains("cannot be read")).copied().collect();
    assert!(missing.len() > 3, "{notes:?}");
    let rows = |note: &&str| note.split(' ').next().and_then(|rows| rows.replace(',', "").parse::<i64>().ok());
    assert!(missing.is_sorted_by_key(|note| Reverse(rows(note))), "the most first: {missing:?}");
    // Findings that need all rows are not made up.
    let (found, code, said) = ran(&path, &["--format", "json", "findings"]);
    let found: Value = serde_json::from_str(&found.concat()).expect("JSON");
    let kinds: Vec<&str> =
        found["findings"].as_array().expect("a list").iter().filter_map(|f| f["kind"].as_str()).collect();
    assert!(code == Some(6) && kinds.contains(&"damaged_table") && !kinds.contains(&"audit_break"), "{kinds:?} {said}");
    assert!(!kinds.iter().any(|kind| ["orphan_segment", "missing_memory", "dangling_id"].contains(kind)), "{kinds:?}");
    let (_, code, said) = ran(&path, &["migrate", "--apply"]);
    assert!(code == Some(1) && said.contains(".recover"), "{said}");
    assert!(std::fs::read(&path).expect("the file") == bytes, "a damaged database is not written");
}
