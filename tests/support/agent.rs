//! An agent next to our program: this test program, started again, which works on the same database as a process of its
//! own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::{block_on, block_on_aside};

const DATABASE: &str = "MNEMOSCOPE_TEST_AGENT";
const DOES: &str = "MNEMOSCOPE_TEST_AGENT_DOES";

const ROWS: &str = "CREATE TABLE IF NOT EXISTS agent_notes (id INTEGER PRIMARY KEY, body TEXT)";

/// The ignored test below, which the agent's process runs.
const TEST: &str = "support::agent::works_as_an_agent";

async fn connect(database: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(database).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.expect("the database")
}

async fn run(link: &mut SqliteConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(link).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn start(database: &Path, does: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", TEST, "--nocapture", "--ignored"])
        .env(DATABASE, database)
        .env(DOES, does)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let mut out = BufReader::new(child.stdout.take().expect("its words"));
    let ready = out.by_ref().lines().map_while(Result::ok).any(|line| line.contains("the agent is ready"));
    assert!(ready, "{does}: the agent failed");
    (child, out)
}

/// Lets an agent write rows, each in a transaction of its own, close the database and end.
pub fn leaves_rows(database: &Path, rows: u32) {
    let (mut child, mut out) = start(database, &rows.to_string());
    out.read_to_string(&mut String::new()).expect("its words");
    assert!(child.wait().expect("the agent").success());
}

/// An agent that is in the middle of a transaction that writes, until it is killed.
pub fn keeps_writing(database: &Path) -> Agent {
    let (child, out) = start(database, "hold");
    Agent { child, _out: out }
}

/// An agent at work.
pub struct Agent {
    child: Child,
    /// Kept open: who writes to nobody ends early.
    _out: BufReader<ChildStdout>,
}

impl Agent {
    /// Kills it where it is.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

/// Rows that agents left.
pub fn rows(database: &Path) -> i64 {
    block_on_aside(async {
        let mut link = connect(database).await;
        let counted = sqlx::query("SELECT count(*) FROM agent_notes").fetch_one(&mut link).await;
        let rows = counted.expect("the agent's rows").get(0);
        link.close().await.expect("closed");
        rows
    })
}

/// Runs SQLite's integrity check on the whole database: `ok`, or the first problem.
pub fn integrity(database: &Path) -> String {
    block_on_aside(async {
        let mut link = connect(database).await;
        let said = sqlx::query("PRAGMA integrity_check").fetch_one(&mut link).await;
        let said = said.map_or_else(|error| error.to_string(), |row| row.get(0));
        link.close().await.expect("closed");
        said
    })
}

/// Does what an agent was started for; nothing in a test program that was not started as one.
#[test]
#[ignore = "run by other tests as the process of an agent"]
fn works_as_an_agent() {
    let (Ok(database), Ok(does)) = (std::env::var(DATABASE), std::env::var(DOES)) else { return };
    block_on(async {
        let mut link = connect(Path::new(&database)).await;
        run(&mut link, "PRAGMA busy_timeout = 20000").await;
        if let Ok(rows) = does.parse::<u32>() {
            run(&mut link, ROWS).await;
            for row in 0..rows {
                run(&mut link, &format!("INSERT INTO agent_notes (body) VALUES ('note {row}')")).await;
            }
            link.close().await.expect("closed");
            println!("\nthe agent is ready");
        } else {
            run(&mut link, "BEGIN IMMEDIATE").await;
            println!("\nthe agent is ready");
            let _ = std::io::stdin().read_line(&mut String::new());
        }
    });
}
