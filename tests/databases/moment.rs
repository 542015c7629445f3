//! A look at every row of a table reads it with several connections: all of them see one moment while another process
//! writes, and the rows come in the order of their numbers, however these are spread.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI64, Ordering};

use mnemoscope::store::Store;
use mnemoscope::store::connect::Target;
use mnemoscope::store::fetched::FetchedValue;
use mnemoscope::store::snapshot::WantedRows;
use mnemoscope::store::stored::TableName;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::support::{block_on, options};

/// Moves one from an account to another, again and again, the first and the last row of the table in turn with any other.
const WRITE: &str = "
import random, sqlite3, sys, time
link = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
link.execute('PRAGMA synchronous = OFF')
ids = [id for (id,) in link.execute('SELECT id FROM accounts ORDER BY id')]
while True:
    one, other, begun = random.choice((ids[0], ids[-1])), random.choice(ids), time.monotonic()
    link.execute('BEGIN IMMEDIATE')
    link.execute('UPDATE accounts SET held = held - 1 WHERE id = ?', (one,))
    link.execute('UPDATE accounts SET held = held + 1 WHERE id = ?', (other,))
    link.execute('COMMIT')
    if sys.argv[2] == 'delete':
        # Its journal shuts readers out for most of a transaction: they get their turn.
        time.sleep(time.monotonic() - begun)
";

/// Accounts, numbered without a gap.
const ACCOUNTS: usize = 60_000;
/// Rows of the other table: those before a gap, behind it, and at both ends of what numbers there are.
const SPREAD: usize = 2 * 3_000 + 2;

fn filled(path: &Path, journal: &str) {
    block_on(async {
        let made = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut link = SqliteConnection::connect_with(&made).await.expect("the database");
        let sql = format!(
            "PRAGMA journal_mode = {journal};
             CREATE TABLE accounts (id INTEGER PRIMARY KEY, held INTEGER NOT NULL);
             CREATE TABLE spread (id INTEGER PRIMARY KEY, note TEXT);
             CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
             CREATE TABLE vacant (id INTEGER PRIMARY KEY, note TEXT);
             INSERT INTO pairs VALUES ('x', 'y'), ('u', 'v');
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ACCOUNTS})
             INSERT INTO accounts SELECT n, 10 FROM n;
             INSERT INTO spread SELECT id, printf('%.*c', id % 900, 'x') FROM accounts WHERE id <= 3000
             UNION ALL SELECT id * 3 + 4000000000, NULL FROM accounts WHERE id <= 3000
             UNION ALL VALUES ({}, 'first'), ({}, 'last');
             UPDATE spread SET note = printf('%.*c', 300000, 'y') WHERE id % 500 = 0;",
            i64::MIN,
            i64::MAX
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("its rows");
        link.close().await.expect("closed");
    });
}

/// The first column of rows.
fn numbers(rows: &[Vec<FetchedValue>]) -> Vec<i64> {
    let number = |row: &Vec<FetchedValue>| match row[0] {
        FetchedValue::Integer(number) => number,
        _ => panic!("no number: {row:?}"),
    };
    rows.iter().map(number).collect()
}

struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("killed");
    }
}

/// The rows of a table as a look at all of them hands them on, and the sum of the last number of each.
async fn looked(store: &Store, table: &str, columns: &[&str]) -> (Vec<Vec<FetchedValue>>, i64) {
    let (table, columns) =
        (TableName::new("main", table), columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let sum = AtomicI64::new(0);
    let mut taken = Vec::new();
    let mut snapshot = store.snapshot().await.expect("a moment");
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    let look = |row: &Vec<FetchedValue>| {
        let held = row.iter().rev().find_map(|value| match value {
            FetchedValue::Integer(held) => Some(*held),
            _ => None,
        });
        sum.fetch_add(held.unwrap_or_default(), Ordering::Relaxed);
        Some(row[0].clone())
    };
    let take = |row: Vec<FetchedValue>, first: FetchedValue| {
        assert_eq!(row[0], first, "a row comes with what was found in it");
        taken.push(row);
    };
    snapshot.stream_looked(wanted, look, take).await.expect("all rows");
    (taken, sum.into_inner())
}

#[test]
fn several_connections_see_one_moment_while_another_process_writes() {
    for journal in ["wal", "delete"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accounts.db");
        filled(&path, journal);
        let writer = Command::new("python3").args(["-c", WRITE]).arg(&path).arg(journal).spawn();
        let writer = Writer(writer.expect("python3"));
        block_on(async {
            let store = Store::open(&Target::File(path.clone()), &options()).await.expect("opened");
            for _ in 0..20 {
                let (rows, sum) = looked(&store, "accounts", &["id", "held"]).await;
                assert_eq!((rows.len(), sum), (ACCOUNTS, ACCOUNTS as i64 * 10), "{journal}");
                assert!(numbers(&rows).is_sorted());
            }
        });
        drop(writer);
        block_on(async {
            let store = Store::open(&Target::File(path.clone()), &options()).await.expect("opened");
            let (rows, _) = looked(&store, "accounts", &["id", "held"]).await;
            let written = rows.iter().filter(|row| row[1] != FetchedValue::Integer(10)).count();
            assert!(written > 5, "{journal}: {written} accounts were written to");
            let (rows, _) = looked(&store, "spread", &["id", "note"]).await;
            let found = numbers(&rows);
            assert!(found.is_sorted() && found[0] == i64::MIN && found.last() == Some(&i64::MAX));
            let is_long =
                |row: &&Vec<FetchedValue>| matches!(&row[1], FetchedValue::Text(text) if text.len() == 300_000);
            assert_eq!((rows.iter().filter(is_long).count(), rows.len()), (12, SPREAD));
            assert_eq!(looked(&store, "pairs", &["a", "b"]).await.0.len(), 2);
            assert_eq!(looked(&store, "vacant", &["id", "note"]).await.0.len(), 0);
        });
    }
}
