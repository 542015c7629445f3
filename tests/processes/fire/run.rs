//! Plays a history: agents, commands and consoles on one database, and what they acknowledged.

use std::collections::BTreeMap;

use mnemoscope::store::Target;
use serde_json::Value;

use super::agent::{Agent, Answer, Order, Written};
use super::console::Console;
use super::history::{AGENTS, AgentAct, Command, ConsoleAct, Dice, End, History, Kind, PEOPLE, Step, end};
use super::model::{Model, Owner, SlotId};
use super::place::{Dump, Place};
use super::program::{Outcome, Running};

/// Tables in which an agent writes rows of its own, with their column of text.
const TABLES: &[(&str, &str)] = &[
    ("memories", "text"),
    ("memory_access", "query"),
    ("episodes", "title"),
    ("episode_segments", "content"),
    ("canvas_audit", "component_name"),
    ("agent_feedback", "correction"),
];

/// Those of them that no job looks at for the sake of other rows.
const QUIET: usize = 2;

/// Those from which an agent takes rows away: nothing of ours leans on them.
const DELETABLE: &[&str] = &["memories", "memory_access"];

/// Maximum number of times that a job is killed, and total number of attempts to resume it.
const KILLS: u32 = 4;
const RESUMES: u32 = 12;

/// A change that an operator's command makes: what it writes in which slot.
struct Pending {
    running: Running,
    writes: Option<(SlotId, String)>,
    /// The entry of the trail that it takes back.
    undoes: Option<usize>,
}

/// A change that was acknowledged with a receipt.
pub struct Acknowledged {
    pub seq: i64,
    pub receipt: String,
    /// The slot that it wrote, with what stood there before and after.
    slot: Option<(SlotId, String, String)>,
    /// True when the change was undone, or its undo is under way or of unknown outcome.
    undone: bool,
}

/// A history under way.
pub struct Run<'a> {
    place: &'a Place,
    pub model: Model,
    agents: [Option<Agent>; AGENTS],
    beside: Vec<Pending>,
    consoles: BTreeMap<usize, Console>,
    pub acknowledged: Vec<Acknowledged>,
    /// Events so far, line by line.
    pub story: Vec<String>,
    pub faults: Vec<String>,
    /// Number of times that each command ended with a code other than 0.
    pub refused: BTreeMap<String, u32>,
    pub kills: u32,
    dice: Dice,
    /// Ids of episodes and feedback rows, of cases and profiles that are there from the start.
    episodes: Vec<String>,
    cases: Vec<String>,
    profiles: Vec<String>,
    rows: u32,
    only_quiet: bool,
}

impl<'a> Run<'a> {
    pub fn new(place: &'a Place, history: &History, start: &Dump) -> Self {
        let ids = |table: &str| -> Vec<String> {
            let unquoted = |key: &String| key.trim_matches(['\'', '"']).to_owned();
            let plain = |id: &String| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            start.get(table).map(|rows| rows.keys().map(unquoted).filter(plain).collect()).unwrap_or_default()
        };
        let mut run = Run {
            place,
            model: Model::default(),
            agents: [const { None }; AGENTS],
            beside: Vec::new(),
            consoles: BTreeMap::new(),
            acknowledged: Vec::new(),
            story: Vec::new(),
            faults: Vec::new(),
            refused: BTreeMap::new(),
            kills: 0,
            dice: Dice::new(history.choices),
            episodes: ids("episodes"),
            cases: ids("agent_memory_cases"),
            profiles: ids("agent_memory_profiles"),
            rows: 0,
            only_quiet: history.kind != Kind::Mixed,
        };
        if !run.only_quiet {
            // Episodes whose summaries agents write while operators change other columns of the same rows.
            for (at, id) in run.episodes.clone().into_iter().take(6).enumerate() {
                run.model.slot(Owner::Agent(at % AGENTS), "episodes", "summary", Some(id));
            }
        }
        run
    }

    /// Plays all of it. What is under way at the end is waited for.
    pub fn play(&mut self, history: &History) {
        match history.kind {
            Kind::Mixed => {
                let by_console = matches!(history.steps.first(), Some(Step::Console { .. }));
                if !history.migrated && !by_console {
                    self.migrate();
                }
                for step in &history.steps {
                    self.step(*step);
                }
            }
            Kind::Backfill(name) => {
                self.migrate();
                let begin = ["backfill", name, "--apply", "--batch", "4"];
                self.job(history, &begin, &["backfill", "resume", name]);
            }
            Kind::Erasure(person) => {
                self.migrate();
                let begin = ["purge", person, "--apply", "--batch", "5"];
                self.job(history, &begin, &["purge", person, "--resume", "--apply", "--batch", "5"]);
            }
        }
        self.settle();
        for agent in std::mem::take(&mut self.agents).into_iter().flatten() {
            let answers = agent.leave();
            self.hear(answers);
        }
        for (_, console) in std::mem::take(&mut self.consoles) {
            console.leave("q");
        }
        self.place.quiet();
    }

    /// Ends whatever is still running.
    pub fn abandon(&mut self) {
        self.beside.clear();
        self.consoles.clear();
        self.agents = [const { None }; AGENTS];
        self.place.quiet();
    }

    fn step(&mut self, step: Step) {
        self.story.push(format!("{step:?}"));
        match step {
            Step::Agent { who, act, waited } => self.agent(who, act, waited),
            Step::KillAgent { who } => {
                if let Some(agent) = self.agents[who].take() {
                    self.kills += 1;
                    let answers = agent.kill();
                    self.hear(answers);
                }
            }
            Step::Command { command, end, pick } => self.command(command, end, pick),
            Step::Console { who, act } => self.console(who, act),
            Step::Settle => self.settle(),
        }
    }

    /// Adds our tables, again and again when agents are in the way.
    fn migrate(&mut self) {
        for _ in 0..RESUMES {
            let words = ["migrate", "--apply"].map(str::to_owned).to_vec();
            let end = if self.dice.one_in(3) { end(&mut self.dice) } else { End::Waited };
            let outcome = Running::start(self.place, words, end).finish();
            if self.tell(&outcome) && !outcome.killed {
                return;
            }
        }
        self.faults.push("our tables could not be added".to_owned());
    }

    /// Begins a job, kills it, resumes it until it is through; the history's steps happen next to it.
    fn job(&mut self, history: &History, begin: &[&str], resume: &[&str]) {
        let mut steps = history.steps.iter();
        let mut begun = false;
        for time in 0..RESUMES {
            let end = match (time < KILLS, self.dice.below(3)) {
                (false, _) => End::Waited,
                (true, 0) => End::Signalled(self.dice.pick(&["KILL", "KILL", "TERM", "HUP"]), self.dice.below(500)),
                (true, _) => End::StoppedAt(1 + self.dice.below(40)),
            };
            let words: Vec<String> = if begun { resume } else { begin }.iter().map(|w| (*w).to_owned()).collect();
            let running = Running::start(self.place, words, end);
            for step in steps.by_ref().take(2) {
                self.step(*step);
            }
            let outcome = running.finish();
            let done = self.tell(&outcome);
            if done && outcome.code == Some(0) {
                return;
            }
            // Nothing to resume: it was killed before its first transaction, or after its last one.
            begun = outcome.code != Some(3);
            if !begun && time > 0 && self.is_through(history.kind) {
                return;
            }
        }
        self.faults.push(format!("{begin:?} could not be brought to its end"));
    }

    /// Whether the job has come to its end, and only its receipt was missing.
    fn is_through(&self, kind: Kind) -> bool {
        let sql = match kind {
            Kind::Backfill(_) => "SELECT name FROM memory_jobs WHERE ended_at IS NOT NULL",
            _ => "SELECT status FROM memory_purges WHERE status LIKE 'verified%'",
        };
        self.place.texts(sql).is_ok_and(|found| !found.is_empty())
    }

    fn agent(&mut self, who: usize, act: AgentAct, waited: bool) {
        let (order, written) = self.order(who, act);
        let target: &Target = &self.place.target;
        let agent = self.agents[who].get_or_insert_with(|| Agent::start(target, who));
        for (slot, _) in &written {
            self.model.begin(*slot);
        }
        agent.tell(&order, written);
        let answers = agent.answers(waited);
        self.hear(answers);
    }

    fn order(&mut self, who: usize, act: AgentAct) -> (Order, Written) {
        let write = |sql: String| Order::Write { sql: vec![sql], hold: 0, taken_back: false };
        let own = Owner::Agent(who);
        match act {
            AgentAct::Insert { rows, hold, taken_back } => {
                let among = if self.only_quiet { QUIET } else { TABLES.len() };
                let (table, column) = TABLES[self.dice.below(among as u32) as usize];
                let mut sql = Vec::new();
                let mut written = Vec::new();
                for _ in 0..rows {
                    self.rows += 1;
                    let (id, mark) = (format!("agent-row-{}", self.rows), self.model.mark());
                    let episode = self.dice.below(self.episodes.len() as u32) as usize;
                    sql.push(insert(table, column, &id, &mark, &self.episodes[episode]));
                    if !taken_back {
                        written.push((self.model.slot(own, table, column, Some(id)), mark));
                    }
                }
                (Order::Write { sql, hold, taken_back }, written)
            }
            AgentAct::Update | AgentAct::Delete => {
                let mut slots = self.model.idle(own, None, true);
                if act == AgentAct::Delete {
                    slots.retain(|slot| DELETABLE.contains(&self.model.get(*slot).table));
                } else if !self.only_quiet {
                    let empty = self.model.idle(own, Some("episodes"), false).into_iter();
                    slots.extend(empty.filter(|slot| self.model.get(*slot).column == "summary"));
                }
                if slots.is_empty() {
                    return (Order::Close, Vec::new());
                }
                let slot = self.dice.pick(&slots);
                let place = self.model.get(slot);
                let (table, column, id) = (place.table, place.column, place.id.clone().unwrap_or_default());
                if act == AgentAct::Delete {
                    return (write(format!("DELETE FROM {table} WHERE id = '{id}'")), vec![(slot, String::new())]);
                }
                let mark = self.model.mark();
                let sql = format!("UPDATE {table} SET {column} = '{mark}' WHERE id = '{id}'");
                (write(sql), vec![(slot, mark)])
            }
            AgentAct::Read { hold } => {
                let sql = vec!["SELECT count(*) FROM episodes".to_owned()];
                (Order::Write { sql, hold, taken_back: true }, Vec::new())
            }
            AgentAct::Upkeep(sql) => (Order::Plain { sql: sql.to_owned() }, Vec::new()),
            AgentAct::Close => (Order::Close, Vec::new()),
        }
    }

    /// Takes down what agents answered.
    fn hear(&mut self, answers: Vec<(Written, Answer)>) {
        for (written, answer) in answers {
            if let Answer::Refused(words) = &answer {
                self.story.push(format!("  agent: {words}"));
                if ["malformed", "disk I/O", "corrupt", "not a database"].iter().any(|word| words.contains(word)) {
                    self.faults.push(format!("an agent was told: {words}"));
                }
            }
            for (slot, text) in written {
                match answer {
                    Answer::Done => {
                        self.model.acknowledge(slot, &text);
                        self.model.acknowledged += 1;
                    }
                    // Its COMMIT may have been cut off.
                    Answer::Refused(ref words) if words.contains("terminat") || words.contains("closed") => {
                        self.model.leave_open(slot, &text);
                    }
                    Answer::Refused(_) => self.model.refuse(slot),
                    Answer::Open => self.model.leave_open(slot, &text),
                }
            }
        }
    }

    fn settle(&mut self) {
        for pending in std::mem::take(&mut self.beside) {
            self.finish(pending);
        }
        for who in 0..AGENTS {
            let answers = self.agents[who].as_mut().map(|agent| agent.answers(true)).unwrap_or_default();
            self.hear(answers);
        }
    }

    fn command(&mut self, command: Command, end: End, pick: u32) {
        let Some((words, writes, undoes)) = self.words(command, pick) else { return };
        if command == Command::PlanThenApply {
            self.plan_then_apply(words, writes, end);
            return;
        }
        self.start(words, writes, undoes, end);
    }

    fn start(&mut self, words: Vec<String>, writes: Option<(SlotId, String)>, undoes: Option<usize>, end: End) {
        if let Some((slot, _)) = &writes {
            self.model.begin(*slot);
        }
        if let Some(at) = undoes {
            self.acknowledged[at].undone = true;
        }
        let pending = Pending { running: Running::start(self.place, words, end), writes, undoes };
        if end == End::Beside {
            self.beside.push(pending);
        } else {
            self.finish(pending);
        }
    }

    fn plan_then_apply(&mut self, mut words: Vec<String>, writes: Option<(SlotId, String)>, end: End) {
        let file = self.place.home.path().join(format!("plan-{}.json", self.story.len())).display().to_string();
        words.retain(|word| word != "--apply");
        words.extend(["--plan-out".to_owned(), file.clone()]);
        let planned = Running::start(self.place, words, End::Waited).finish();
        if self.tell(&planned) {
            self.agent(0, AgentAct::Update, true);
            self.start(vec!["apply".to_owned(), file], writes, None, end);
        }
    }

    /// The words of a command, with what it writes and what it takes back; none when there is nothing to do it to.
    #[allow(clippy::type_complexity, reason = "taken apart at once")]
    fn words(&mut self, command: Command, pick: u32) -> Option<(Vec<String>, Option<(SlotId, String)>, Option<usize>)> {
        let mut dice = Dice::new(u64::from(pick));
        let episode = self.episodes[dice.below(self.episodes.len() as u32) as usize].clone();
        let of = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<String>>();
        let own = Owner::Operator;
        let feedback = self.model.idle(own, Some("agent_feedback"), true);
        Some(match command {
            Command::AddFeedback | Command::PlanThenApply => {
                let mark = self.model.mark();
                let rating = (1 + dice.below(5)).to_string();
                let words = ["feedback", "add", &episode, "--kind", "rating", "--rating", &rating];
                let slot = self.model.slot(own, "agent_feedback", "correction", None);
                ([of(&words), of(&["--correction", &mark, "--apply"])].concat(), Some((slot, mark)), None)
            }
            Command::EditFeedback | Command::RemoveFeedback => {
                if feedback.is_empty() {
                    return None;
                }
                let slot = dice.pick(&feedback);
                let id = self.model.get(slot).id.clone()?;
                if command == Command::RemoveFeedback {
                    (of(&["feedback", "remove", &id, "--apply"]), Some((slot, String::new())), None)
                } else {
                    let mark = self.model.mark();
                    (of(&["feedback", "edit", &id, "--correction", &mark, "--apply"]), Some((slot, mark)), None)
                }
            }
            Command::Signal => {
                let mark = self.model.mark();
                let word = dice.pick(&["confirmed", "corrected", "rejected", "undone", "ignored"]);
                let slot = self.model.slot(own, "utility_events", "reason", None);
                (of(&["signal", &episode, word, "--reason", &mark, "--apply"]), Some((slot, mark)), None)
            }
            Command::Link => {
                let parent = &self.episodes[dice.below(self.episodes.len() as u32) as usize];
                (of(&["link", &episode, parent, "--apply"]), None, None)
            }
            Command::Reward => {
                let case = &self.cases[dice.below(self.cases.len() as u32) as usize];
                let value = dice.pick(&["0.25", "0.75", "1"]);
                (of(&["reward", case, value, "--apply"]), None, None)
            }
            Command::Record => {
                let mark = self.model.mark();
                let file = self.place.home.path().join(format!("row-{mark}.json"));
                let row = serde_json::json!({"title": mark, "started_at": "2026-03-01T10:00:00Z", "agent_id": "agent_travel",
                    "user_id": dice.pick(PEOPLE)});
                std::fs::write(&file, row.to_string()).expect("the row");
                let slot = self.model.slot(own, "episodes", "title", None);
                (of(&["record", "episode", &file.display().to_string(), "--apply"]), Some((slot, mark)), None)
            }
            Command::Window => {
                let profile = &self.profiles[dice.below(self.profiles.len() as u32) as usize];
                let window = dice.pick(&["1", "5", "200"]);
                (of(&["profile", "set", profile, "--window", window, "--apply"]), None, None)
            }
            Command::Prune => (of(&["prune", "--window", "1", "--apply"]), None, None),
            Command::Undo => {
                let may = |at: &usize| {
                    let change: &Acknowledged = &self.acknowledged[*at];
                    !change.undone
                        && change.slot.as_ref().is_some_and(|(slot, _, after)| self.model.text(*slot) == Some(after))
                };
                let changes: Vec<usize> = (0..self.acknowledged.len()).filter(may).collect();
                if changes.is_empty() {
                    return None;
                }
                let at = dice.pick(&changes);
                let change = &self.acknowledged[at];
                let writes = change.slot.as_ref().map(|(slot, before, _)| (*slot, before.clone()));
                (of(&["undo", &change.seq.to_string(), "--apply"]), writes, Some(at))
            }
            Command::Backfill(name) => (of(&["backfill", name, "--apply", "--batch", "6"]), None, None),
            Command::Look(words) => (of(words), None, None),
        })
    }

    /// Takes down what became of a command: whether it ended well and whether it wrote.
    fn finish(&mut self, pending: Pending) {
        let outcome = pending.running.finish();
        self.tell(&outcome);
        let entry = outcome.receipt.as_ref().and_then(|receipt| receipt["audit_seq"].as_i64());
        if let (Some(receipt), Some(seq)) = (&outcome.receipt, entry) {
            self.model.acknowledged += 1;
            let slot = pending.writes.as_ref().map(|(slot, after)| {
                let before = self.before(*slot);
                (*slot, before, after.clone())
            });
            let id = receipt["receipt_id"].as_str().unwrap_or_default().to_owned();
            // A job's receipt names its last batch only.
            if receipt.get("job").is_none() {
                self.acknowledged.push(Acknowledged { seq, receipt: id, slot, undone: false });
            }
        }
        let Some((slot, text)) = pending.writes else { return };
        if self.model.get(slot).id.is_none()
            && let Some(id) = outcome.receipt.as_ref().and_then(created)
        {
            self.model.identify(slot, &id);
        }
        if outcome.receipt.is_some() {
            // A receipt without an entry: there was nothing to do.
            if entry.is_some() { self.model.acknowledge(slot, &text) } else { self.model.refuse(slot) }
        } else if outcome.is_refused() {
            self.model.refuse(slot);
            if let Some(at) = pending.undoes {
                self.acknowledged[at].undone = false;
            }
        } else {
            self.model.leave_open(slot, &text);
        }
    }

    fn before(&self, slot: SlotId) -> String {
        self.model.settled(slot)
    }

    /// Notes a command's end; whether it ended well or printed a receipt.
    fn tell(&mut self, outcome: &Outcome) -> bool {
        self.kills += u32::from(outcome.killed);
        let words = outcome.words.join(" ");
        let (code, err) = (outcome.code, outcome.err.trim());
        let entry = outcome.receipt.as_ref().map(|receipt| &receipt["audit_seq"]);
        let entry = entry.map(|seq| format!(", entry {seq}")).unwrap_or_default();
        let killed = if outcome.killed { ", killed" } else { "" };
        self.story.push(format!("  {words}: {code:?}{killed}{entry} {err}"));
        self.faults.extend(outcome.fault());
        let well = outcome.code == Some(0) || outcome.receipt.is_some();
        if !well && !outcome.killed {
            let verb = outcome.words.first().cloned().unwrap_or_default();
            *self.refused.entry(format!("{verb} {}", code.unwrap_or(-1))).or_default() += 1;
        }
        well
    }

    fn console(&mut self, who: usize, act: ConsoleAct) {
        if let ConsoleAct::Leave(how) = act {
            self.leave(who, how);
            return;
        }
        if !self.consoles.contains_key(&who) {
            self.settle();
            self.consoles.insert(who, Console::open(self.place));
        }
        match act {
            ConsoleAct::Edit => self.edit_in_console(who, true),
            ConsoleAct::EditAndDie(signal) => {
                self.edit_in_console(who, false);
                self.leave(who, signal);
            }
            ConsoleAct::Open | ConsoleAct::Leave(_) => {}
        }
    }

    fn leave(&mut self, who: usize, how: &str) {
        if let Some(console) = self.consoles.remove(&who) {
            self.kills += u32::from(how != "q");
            console.leave(how);
        }
    }

    fn edit_in_console(&mut self, who: usize, heard: bool) {
        let Some(console) = self.consoles.get(&who) else { return };
        let id = console.edit();
        let table = "agent_feedback";
        let slot = match self.model.named(table, "correction", &id) {
            Some(slot) => slot,
            None => self.model.slot(Owner::Operator, table, "correction", Some(id.clone())),
        };
        let Some(before) = self.model.text(slot).map(str::to_owned) else {
            console.forget();
            return;
        };
        let mark = self.model.mark();
        let after = format!("{before} {mark}").trim().to_owned();
        self.model.begin(slot);
        let told = console.confirm(&mark, heard);
        self.story.push(format!("  console: {id} gets {mark}: {told:?}"));
        match told {
            Some(true) => {
                self.model.acknowledge(slot, &after);
                self.model.acknowledged += 1;
            }
            Some(false) => self.model.refuse(slot),
            None => self.model.leave_open(slot, &after),
        }
    }
}

/// Id of the row that a receipt says was made.
fn created(receipt: &Value) -> Option<String> {
    let change = receipt["changes"].as_array()?.iter().find(|change| change["before"].is_null())?;
    Some(change["id"].as_str()?.to_owned())
}

fn insert(table: &str, column: &str, id: &str, mark: &str, episode: &str) -> String {
    let time = "'2026-05-05T05:05:05.000000Z'";
    let (columns, values) = match table {
        "memories" => ("kind, created_at", format!("'drawer', {time}")),
        "memory_access" => ("agent_id, kind, created_at", format!("'agent_travel', 'recall', {time}")),
        "episodes" => ("agent_id, user_id, started_at", format!("'agent_travel', 'someone', {time}")),
        "episode_segments" => ("episode_id, sequence, kind, created_at", format!("'{episode}', 9, 'message', {time}")),
        "canvas_audit" => {
            ("canvas_id, canvas_type, action, created_at", format!("'canvas-1', 'form', 'present', {time}"))
        }
        _ => ("episode_id, user_id, kind, rating, created_at", format!("'{episode}', 'someone', 'rating', 4, {time}")),
    };
    format!("INSERT INTO {table} (id, {column}, {columns}) VALUES ('{id}', '{mark}', {values})")
}
