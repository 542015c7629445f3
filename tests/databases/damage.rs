//! A damaged page: the table that it is of is named, with a way on, and the rest is looked at.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::support::{alone_in, block_on, changeable_demo_in};
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

#[test]
fn a_file_that_ends_too_early_gives_what_is_left_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changeable_demo_in(folder.path(), 300);
    block_on(async {
        let mut link = crate::support::world::sqlite(&path).await;
        sqlx::query("PRAGMA journal_mode = DELETE").execute(&mut link).await.expect("a journal");
        link.close().await.expect("closed");
    });
    let all = ran(&path, &["export", "episode"]).0.len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
    let size = file.metadata().expect("its size").len();
    file.set_len(size / 4096 * 2 / 3 * 4096).expect("cut");
    let (rows, code, said) = ran(&path, &["export", "episode"]);
    assert!(code == Some(6) && !rows.is_empty() && rows.len() < all, "{} of {all}: {said}", rows.len());
    let (_, code, said) = ran(&path, &["--format", "json", "status"]);
    assert!(code == Some(1) && said.contains(".recover"), "{said}");
}
