//! An agent: a process of its own that writes into the database, and how it is told what to do.
//!
//! The first is Python on SQLite, as agents are: its SQLite is another than ours and lets broken locks pass that ours
//! notices. The others are this test program, started again with one test chosen and the database's address in the
//! environment. Both read an order a line and say what became of it, after the commit.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use mnemoscope::store::Target;
use serde::{Deserialize, Serialize};

use super::model::SlotId;
use super::place::{Link, address};
use crate::support::block_on;

const ADDRESS: &str = "MNEMOSCOPE_FIRE_AGENT";

/// Opens each answer: the harness writes lines, too.
const ANSWER: &str = "agent: ";

/// Maximum duration of an order: longer than the longest wait for a lock.
const DEADLINE: Duration = Duration::from_secs(90);

#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// One transaction, which stays open for some milliseconds at its end.
    Write {
        sql: Vec<String>,
        hold: u32,
        taken_back: bool,
    },
    /// A statement outside of a transaction.
    Plain {
        sql: String,
    },
    Close,
}

/// The agent's own side. Without the address in the environment it is a test of nothing.
#[test]
fn an_agent_does_as_it_is_told() {
    let Ok(place) = std::env::var(ADDRESS) else { return };
    let target = if place.starts_with("postgres:") { Target::Postgres(place) } else { Target::File(place.into()) };
    block_on(async move {
        let mut link = None;
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).expect("an order") > 0 {
            let order = serde_json::from_str(&line).expect("an order");
            line.clear();
            let done = obey(order, &target, &mut link).await;
            if done.is_err() {
                // The connection may be lost, or be left within a transaction.
                link = None;
            }
            let words = done.map_or_else(|error| format!("refused {error}"), |rows| format!("done {rows}"));
            writeln!(std::io::stdout(), "{ANSWER}{}", words.replace('\n', " ")).expect("someone listens");
        }
        if let Some(link) = link {
            Link::close(link).await;
        }
    });
}

async fn obey(order: Order, target: &Target, kept: &mut Option<Link>) -> Result<u64, sqlx::Error> {
    if matches!(order, Order::Close) {
        if let Some(link) = kept.take() {
            link.close().await;
        }
        return Ok(0);
    }
    if kept.is_none() {
        *kept = Some(Link::open(target).await?);
    }
    let Some(link) = kept else { return Ok(0) };
    match order {
        Order::Close => Ok(0),
        Order::Plain { sql } => {
            let done = link.execute(&sql).await;
            // A connection that leaves WAL mode keeps its old pages, and would write them over what others committed.
            if sql.contains("journal_mode")
                && let Some(link) = kept.take()
            {
                link.close().await;
            }
            done
        }
        Order::Write { sql, hold, taken_back } => {
            let begin = if matches!(target, Target::File(_)) { "BEGIN IMMEDIATE" } else { "BEGIN" };
            link.execute(begin).await?;
            let mut rows = 0;
            for sql in &sql {
                rows += link.execute(sql).await?;
            }
            std::thread::sleep(Duration::from_millis(hold.into()));
            link.execute(if taken_back { "ROLLBACK" } else { "COMMIT" }).await?;
            Ok(rows)
        }
    }
}

/// Slots and texts that an order writes when it is done.
pub type Written = Vec<(SlotId, String)>;

/// Outcome of an order.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// Nothing was written, in the engine's words.
    Refused(String),
    /// The agent was killed before it could tell.
    Open,
}

/// An agent that is running, as whoever started it sees it.
pub struct Agent {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    pending: VecDeque<Written>,
}

impl Agent {
    pub fn start(target: &Target, who: usize) -> Agent {
        let mut command = match target {
            Target::File(path) if who == 0 => {
                let mut command = Command::new("python3");
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/fire/agent.py")).arg(path);
                command
            }
            _ => {
                let mut command = Command::new(std::env::current_exe().expect("this program"));
                command.args(["--exact", "fire::agent::an_agent_does_as_it_is_told", "--nocapture"]);
                command
            }
        };
        let mut child = command
            .env(ADDRESS, address(target))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("an agent");
        let orders = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("its words")).lines();
        let (told, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The harness's own words may be before ours on a line.
                if let Some((_, answer)) = line.split_once(ANSWER) {
                    let _ = told.send(answer.to_owned());
                }
            }
        });
        Agent { child, orders, answers, pending: VecDeque::new() }
    }

    pub fn tell(&mut self, order: &Order, written: Written) {
        let line = serde_json::to_string(order).expect("JSON");
        let orders = self.orders.as_mut().expect("its orders");
        writeln!(orders, "{line}").and_then(|()| orders.flush()).expect("the agent listens");
        self.pending.push_back(written);
    }

    /// Collects the answers so far, or all of them when `waited` is true.
    pub fn answers(&mut self, waited: bool) -> Vec<(Written, Answer)> {
        let mut all = Vec::new();
        while !self.pending.is_empty() {
            let answer = match self.answers.recv_timeout(if waited { DEADLINE } else { Duration::ZERO }) {
                Ok(words) if words.starts_with("done") => Answer::Done,
                Ok(words) => Answer::Refused(words),
                Err(RecvTimeoutError::Timeout) if !waited => break,
                Err(error) => panic!("an agent does not answer: {error}"),
            };
            all.extend(self.pending.pop_front().map(|written| (written, answer)));
        }
        all
    }

    /// Kills it: what it has not acknowledged is open.
    pub fn kill(mut self) -> Vec<(Written, Answer)> {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
        let mut all = Vec::new();
        // What it wrote into the pipe is still there.
        while let Some(written) = self.pending.pop_front() {
            let answer = match self.answers.recv_timeout(Duration::from_secs(5)) {
                Ok(words) if words.starts_with("done") => Answer::Done,
                Ok(words) => Answer::Refused(words),
                Err(_) => Answer::Open,
            };
            all.push((written, answer));
        }
        all
    }

    /// Lets it close its connection and end.
    pub fn leave(mut self) -> Vec<(Written, Answer)> {
        let all = self.answers(true);
        self.orders.take();
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "an agent ended badly: {status}");
        all
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
