//! A damaged page: the table that it is of is named, with a way on, and the rest is looked at.

use std::io::{Seek as _, SeekFrom, Write as _};

use crate::support::{alone_in, block_on, changeable_demo_in};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _};

/// Overwrites a page in the middle of a table's rows.
fn damage(path: &std::path::Path, table: &str) {
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
        for words in [&["table", table, "--limit", "9000"][..], &["purge", "felix.abbott"]] {
            let (code, _, error) = run(words);
            let said = error["error"]["message"].as_str().unwrap_or_default();
            assert!(
                code == Some(1) && said.contains(&format!("not every row of {table} can be read")),
                "{words:?}: {error}"
            );
            assert!(error["error"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("backup")), "{error}");
        }
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
