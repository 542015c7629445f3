//! Course of a history, drawn from its seed: who does what in which order, and who is killed where.
//!
//! The seed decides every choice here. What it cannot decide is how long each process takes, so that two runs of one seed
//! take the same steps and may meet at other moments.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Choices that follow from a seed.
pub struct Dice(StdRng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(StdRng::seed_from_u64(seed))
    }

    /// A number from 0 to below `end`, which must not be 0.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0.random_range(0..end)
    }

    pub fn one_in(&mut self, chances: u32) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// Kind of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Agents and operators change whatever they like.
    Mixed,
    /// A backfill is killed and resumed until it ends; agents write other rows.
    Backfill(&'static str),
    /// The same of the erasure of a person.
    Erasure(&'static str),
}

/// One thing that an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAct {
    /// Inserts this many rows in one transaction, which stays open for some milliseconds, and may take it back.
    Insert {
        rows: u32,
        hold: u32,
        taken_back: bool,
    },
    /// Changes a row of its own, or the summary of an episode that operators change too.
    Update,
    Delete,
    /// Reads within a transaction that stays open for some milliseconds.
    Read {
        hold: u32,
    },
    /// Runs a statement that is about the database as a whole.
    Upkeep(&'static str),
    /// Closes its connection; the next order opens another.
    Close,
}

/// One thing that an operator does with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    AddFeedback,
    EditFeedback,
    RemoveFeedback,
    Signal,
    Link,
    Reward,
    Record,
    Window,
    Prune,
    /// Takes an acknowledged change back.
    Undo,
    /// Plans into a file, lets an agent write, applies the file.
    PlanThenApply,
    Backfill(&'static str),
    /// Only looks: these words.
    Look(&'static [&'static str]),
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The command is waited for.
    Waited,
    /// The command runs alongside the next steps.
    Beside,
    /// The command gets a signal after this many milliseconds.
    Signalled(&'static str, u32),
    /// The command stops at its n-th writing statement and is killed there.
    StoppedAt(u32),
}

/// An act in a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleAct {
    /// The console is opened and unlocked.
    Open,
    /// A feedback row is edited until the console says what became of it. It is opened where it is not.
    Edit,
    /// An edit is confirmed, and the console gets a signal at once.
    EditAndDie(&'static str),
    /// The console ends: by a key, by a signal.
    Leave(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Agent {
        who: usize,
        act: AgentAct,
        waited: bool,
    },
    /// SIGKILL to an agent, whatever it is doing. Another takes its place at the next step that needs one.
    KillAgent {
        who: usize,
    },
    Command {
        command: Command,
        end: End,
        pick: u32,
    },
    Console {
        who: usize,
        act: ConsoleAct,
    },
    /// Everything under way is waited for.
    Settle,
}

#[derive(Debug, Clone)]
pub struct History {
    pub kind: Kind,
    /// Our tables are there from the start; else the first step adds them.
    pub migrated: bool,
    /// SQLite's journal mode at the start.
    pub journal: &'static str,
    pub steps: Vec<Step>,
    /// Chooses rows while the history runs.
    pub choices: u64,
}

pub const AGENTS: usize = 2;

const BACKFILLS: &[&str] =
    &["canvas-links", "feedback-links", "links", "aggregates", "utility", "parents", "metadata", "hashes", "rewards"];

/// Backfills that rewrite texts: agents that write the same texts would be in their way, which is no fault.
const TEXT_BACKFILLS: &[&str] = &["secrets", "hidden-characters", "episodes-from-events"];

pub const PEOPLE: &[&str] = &["dana.whitfield", "dmitri.omalley", "jonas.lindqvist", "viktor.adeyemi"];

const LOOKS: &[&[&str]] = &[
    &["audit", "verify"],
    &["audit", "verify"],
    &["findings"],
    &["status"],
    &["list", "episode", "--limit", "20"],
    &["export", "feedback"],
    &["audit", "list"],
    &["list", "feedback"],
    &["backfill"],
];

const SIGNALS: &[&str] = &["KILL", "KILL", "KILL", "TERM", "HUP", "INT"];

impl History {
    pub fn of(engine: Engine, seed: u64) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(2).wrapping_add(u64::from(engine == Engine::Postgres)));
        let kind = match dice.below(10) {
            0 => Kind::Backfill(dice.pick(BACKFILLS)),
            1 => Kind::Backfill(dice.pick(TEXT_BACKFILLS)),
            2 => Kind::Erasure(dice.pick(PEOPLE)),
            _ => Kind::Mixed,
        };
        let consoles = if kind == Kind::Mixed && dice.one_in(8) { 1 + usize::from(dice.one_in(3)) } else { 0 };
        let migrated = consoles == 0 && !dice.one_in(4);
        let journal = if engine == Engine::Sqlite { dice.pick(&["WAL", "WAL", "WAL", "DELETE"]) } else { "" };
        let mut history = History { kind, migrated, journal, steps: Vec::new(), choices: 0 };
        match kind {
            Kind::Mixed if seed == 0 || consoles == 0 && dice.one_in(60) => history.scene(&mut dice),
            Kind::Mixed => history.mixed(engine, consoles, &mut dice),
            Kind::Backfill(_) | Kind::Erasure(_) => history.job(engine, &mut dice),
        }
        history.choices = u64::from(dice.below(u32::MAX));
        history
    }

    /// A console that adds our tables, then edits, while an agent connects for each piece of its work. Once it lost its
    /// locks by adding the tables, and the agent that closed last took the log away under it.
    fn scene(&mut self, dice: &mut Dice) {
        self.migrated = false;
        self.journal = if self.journal.is_empty() { "" } else { "WAL" };
        let agent = |act| Step::Agent { who: 0, act, waited: true };
        let insert = |hold| agent(AgentAct::Insert { rows: 5, hold, taken_back: false });
        let console = |act| Step::Console { who: 0, act };
        self.steps = vec![console(ConsoleAct::Open), console(ConsoleAct::Edit)];
        for _ in 0..2 {
            let hold = dice.below(30);
            self.steps.extend([insert(hold), agent(AgentAct::Close), console(ConsoleAct::Edit), insert(0)]);
        }
        self.steps.push(console(ConsoleAct::Leave(dice.pick(&["q", "q", "HUP", "KILL"]))));
    }

    fn mixed(&mut self, engine: Engine, consoles: usize, dice: &mut Dice) {
        for who in 0..consoles {
            self.steps.push(Step::Console { who, act: ConsoleAct::Open });
        }
        for _ in 0..8 + dice.below(16) {
            let step = match dice.below(if consoles > 0 { 12 } else { 9 }) {
                0..4 => agent(engine, dice, true),
                4 => Step::KillAgent { who: dice.below(AGENTS as u32) as usize },
                5..9 => Step::Command { command: command(dice), end: end(dice), pick: dice.below(u32::MAX) },
                _ => {
                    let act = match dice.below(6) {
                        0 => ConsoleAct::Leave(dice.pick(&["q", "KILL", "HUP", "TERM"])),
                        1 => ConsoleAct::EditAndDie(dice.pick(&["KILL", "HUP", "TERM"])),
                        _ => ConsoleAct::Edit,
                    };
                    Step::Console { who: dice.below(consoles as u32) as usize, act }
                }
            };
            self.steps.push(step);
            // As most programs do: a connection for each piece of work.
            if let Step::Agent { who, act: AgentAct::Insert { .. }, .. } = step
                && dice.one_in(2)
            {
                self.steps.push(Step::Agent { who, act: AgentAct::Close, waited: dice.one_in(2) });
            }
            if dice.one_in(6) {
                self.steps.push(Step::Settle);
            }
        }
        for who in 0..consoles {
            let act = ConsoleAct::Leave(dice.pick(&["q", "q", "KILL", "HUP"]));
            self.steps.push(Step::Console { who, act });
        }
    }

    /// The steps next to a job; the job itself is begun before the first.
    fn job(&mut self, engine: Engine, dice: &mut Dice) {
        for _ in 0..3 + dice.below(6) {
            self.steps.push(if dice.one_in(4) {
                let command = Command::Look(dice.pick(LOOKS));
                Step::Command { command, end: End::Waited, pick: 0 }
            } else {
                agent(engine, dice, false)
            });
        }
    }
}

fn agent(engine: Engine, dice: &mut Dice, anything: bool) -> Step {
    let hold = if dice.one_in(3) { dice.below(60) } else { 0 };
    let act = match dice.below(if anything { 14 } else { 10 }) {
        0..5 => AgentAct::Insert { rows: 1 + dice.below(12), hold, taken_back: dice.one_in(6) },
        5 => AgentAct::Read { hold: 10 + dice.below(80) },
        6 | 7 => AgentAct::Upkeep(dice.pick(upkeep(engine))),
        8 => AgentAct::Close,
        9 => AgentAct::Delete,
        _ => AgentAct::Update,
    };
    Step::Agent { who: dice.below(AGENTS as u32) as usize, act, waited: dice.one_in(2) }
}

fn upkeep(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Sqlite => &[
            "PRAGMA wal_checkpoint(PASSIVE)",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA wal_checkpoint(RESTART)",
            "VACUUM",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA journal_mode = WAL",
            "PRAGMA journal_mode = PERSIST",
            "ANALYZE",
        ],
        Engine::Postgres => &[
            "CHECKPOINT",
            "VACUUM episodes",
            "VACUUM FULL memories",
            "ANALYZE",
            "REINDEX TABLE agent_feedback",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name LIKE 'mnemoscope%'",
        ],
    }
}

fn command(dice: &mut Dice) -> Command {
    match dice.below(20) {
        0..4 => Command::AddFeedback,
        4 | 5 => Command::EditFeedback,
        6 => Command::RemoveFeedback,
        7 | 8 => Command::Signal,
        9 => Command::Link,
        10 => Command::Reward,
        11 => Command::Record,
        12 => dice.pick(&[Command::Window, Command::Prune]),
        13 | 14 => Command::Undo,
        15 => Command::PlanThenApply,
        16 => Command::Backfill(dice.pick(BACKFILLS)),
        _ => Command::Look(dice.pick(LOOKS)),
    }
}

pub fn end(dice: &mut Dice) -> End {
    match dice.below(8) {
        0..3 => End::Waited,
        3 | 4 => End::Beside,
        5 | 6 => End::Signalled(dice.pick(SIGNALS), dice.below(220)),
        _ => End::StoppedAt(1 + dice.below(14)),
    }
}
