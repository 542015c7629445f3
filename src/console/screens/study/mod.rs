//! The screens that study the memory: agents, policies, quality of recall. Each asks one question at a time, shows its
//! progress, and keeps its answers until something changes.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::{StudyAnswer, StudyKind, StudyQuestion};

use std::collections::BTreeMap;

use crate::console::core::twin::words;
use crate::console::core::{
    CommandAsk, CommandId, CommandScope, Context, Reply, Request, RequestFailure, Screen, ScreenFace, ScreenKind,
    Ticket,
};
use crate::console::view::Canvas;
use crate::memory::{Entity, Row};
use crate::recall::learn::version::Version;

const RECALLED: [Entity; 3] = [Entity::Case, Entity::Episode, Entity::Memory];

/// Most answers kept.
const KEPT: usize = 60;

/// A pending question.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingQuestion {
    /// Ticket of the request.
    pub ticket: Ticket,
    /// The question asked.
    pub question: StudyQuestion,
    /// Entity being read, and number of its rows read so far.
    pub told: Option<(Entity, usize)>,
}

/// The state of such a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyScreen {
    /// Subject of the study.
    pub kind: StudyKind,
    /// Agents that can be selected.
    pub agents: Vec<Row>,
    /// Versions that can be selected.
    pub versions: Vec<Version>,
    /// Number of versions that are not listed.
    pub left: u64,
    /// They were read.
    pub filled: bool,
    /// Position of the selected one.
    pub selected: usize,
    /// Whether the result has the focus, rather than the list.
    pub reads: bool,
    /// Scroll position of the result, in lines.
    pub scroll: usize,
    /// Answers so far, by question.
    pub answers: BTreeMap<StudyQuestion, Result<StudyAnswer, RequestFailure>>,
    /// The question that awaits its answer.
    pub waiting: Option<WaitingQuestion>,
}

impl StudyScreen {
    /// Creates an empty screen.
    pub fn new(kind: StudyKind) -> Self {
        StudyScreen {
            kind,
            agents: Vec::new(),
            versions: Vec::new(),
            left: 0,
            filled: false,
            selected: 0,
            reads: kind == StudyKind::Recall,
            scroll: 0,
            answers: BTreeMap::new(),
            waiting: None,
        }
    }

    /// Number of entries in the list; after the agents comes one for all of them.
    pub fn entries(&self) -> usize {
        match self.kind {
            StudyKind::Agents => self.agents.len() + usize::from(self.filled),
            StudyKind::Policies => self.versions.len(),
            StudyKind::Recall => 0,
        }
    }

    /// The selected agent.
    pub fn agent(&self) -> Option<&Row> {
        self.agents.get(self.selected)
    }

    /// The selected version.
    pub fn version(&self) -> Option<&Version> {
        self.versions.get(self.selected)
    }

    /// The question whose answer fills the list.
    fn first(&self) -> Option<StudyQuestion> {
        match self.kind {
            StudyKind::Agents => Some(StudyQuestion::Agents),
            StudyKind::Policies => Some(StudyQuestion::Policies),
            StudyKind::Recall => None,
        }
    }

    /// The question about the selected entry.
    pub fn question(&self) -> Option<StudyQuestion> {
        match self.kind {
            StudyKind::Agents if self.selected < self.agents.len() => {
                self.agent().map(|a| StudyQuestion::Agent(a.id().to_owned()))
            }
            StudyKind::Agents => self.filled.then_some(StudyQuestion::Everyone),
            StudyKind::Policies => {
                let usable = self.version().filter(|v| v.policy.is_ok());
                usable.map(|v| StudyQuestion::Policy(v.row.id().to_owned()))
            }
            StudyKind::Recall => Some(StudyQuestion::Recall),
        }
    }

    /// Returns the answer about the selected entry, if there is one yet.
    pub fn answer(&self) -> Option<&Result<StudyAnswer, RequestFailure>> {
        self.answers.get(&self.question()?)
    }

    /// Returns the reason why the list could not be read.
    pub fn list_failure(&self) -> Option<&RequestFailure> {
        self.answers.get(&self.first()?)?.as_ref().err()
    }

    /// Returns the question to ask next; `None` if there is none.
    fn wanted(&self) -> Option<StudyQuestion> {
        match self.first() {
            Some(first) if !self.filled => Some(first),
            _ => self.question(),
        }
        .filter(|question| !self.answers.contains_key(question))
    }

    /// Selects an entry; its result is shown from the beginning.
    fn pick(&mut self, position: usize) {
        let position = position.min(self.entries().saturating_sub(1));
        if position != self.selected {
            (self.selected, self.scroll) = (position, 0);
        }
    }

    fn take(&mut self, question: StudyQuestion, result: Result<StudyAnswer, RequestFailure>, cx: &mut Context) {
        match &result {
            Ok(StudyAnswer::Agents(agents)) => {
                self.agents.clone_from(agents);
                self.filled = true;
            }
            Ok(StudyAnswer::Policies(versions, left)) => {
                self.left = *left;
                cx.read_names(versions.iter().map(|version| &version.row));
                self.versions.clone_from(versions);
                self.filled = true;
            }
            Ok(StudyAnswer::Recall(found)) => {
                let stored = found.stored.as_ref().map(|stored| &stored.spread);
                let spreads = [Some(&found.spread), stored].into_iter().flatten();
                let most: Vec<&str> = spreads.filter_map(|s| s.most_recalled.as_ref()).map(|(id, _)| &**id).collect();
                RECALLED.iter().for_each(|kind| cx.read_names_of(*kind, most.iter().copied()));
            }
            _ => {}
        }
        self.selected = self.selected.min(self.entries().saturating_sub(1));
        if self.answers.len() >= KEPT {
            self.answers.pop_first();
        }
        self.answers.insert(question, result);
    }
}

impl Screen for StudyScreen {
    fn face(&self) -> ScreenFace {
        let (title, kind) = match self.kind {
            StudyKind::Agents => ("agents at work", ScreenKind::Agents),
            StudyKind::Policies => ("learned policies", ScreenKind::Policies),
            StudyKind::Recall => ("evaluation", ScreenKind::Evaluation),
        };
        ScreenFace::own(title, kind, CommandScope::Study)
    }

    fn hints(&self) -> Vec<CommandId> {
        let learn = [CommandId::Change(CommandAsk::ActivatePolicy), CommandId::Change(CommandAsk::TrainPolicy)];
        let own: &[CommandId] = if self.kind == StudyKind::Policies { &learn } else { &[] };
        let open = (!self.reads).then_some(CommandId::Open);
        let pane = self.has_panes().then_some(CommandId::Focus);
        let shared = [CommandId::Close, CommandId::Palette, CommandId::ScrollDetail(true), CommandId::Refresh];
        open.into_iter().chain(own.iter().copied()).chain(pane).chain(shared).collect()
    }

    fn row(&self) -> Option<&Row> {
        match self.kind {
            StudyKind::Agents => self.agent(),
            StudyKind::Policies => self.version().map(|version| &version.row),
            StudyKind::Recall => None,
        }
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        match self.question() {
            Some(StudyQuestion::Agent(id)) => words(["graduation", &id]),
            Some(StudyQuestion::Policy(id)) => words(["policy", "evaluate", &id]),
            Some(StudyQuestion::Recall) => words(["evaluate"]),
            Some(StudyQuestion::Policies) => words(["policy", "list"]),
            None if self.kind == StudyKind::Policies => words(["policy", "list"]),
            Some(StudyQuestion::Agents | StudyQuestion::Everyone) | None => words(["insights"]),
        }
    }

    /// Asks the current question; stops those no longer needed.
    fn settle(&mut self, cx: &mut Context) {
        let wanted = self.wanted();
        if self.waiting.as_ref().map(|waiting| &waiting.question) == wanted.as_ref() {
            return;
        }
        cx.cancel(self.release());
        if let Some(question) = wanted {
            let masked = cx.masking.is_on();
            let ticket = cx.ask(Request::Study { question: question.clone(), masked });
            self.waiting = Some(WaitingQuestion { ticket, question, told: None });
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Answer(result) => {
                if let Some(waiting) = self.waiting.take() {
                    self.take(waiting.question, result, cx);
                }
            }
            Reply::Told(entity, rows) => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.told = Some((entity, rows));
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, _cx: &mut Context) {
        self.reads = true;
    }

    fn close(&mut self, _cx: &mut Context) -> bool {
        let steps_out = self.reads && self.entries() > 0;
        if steps_out {
            self.reads = false;
        }
        steps_out
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if self.reads {
            self.scroll = self.scroll.saturating_add_signed(by);
        } else {
            self.pick(self.selected.saturating_add_signed(by));
        }
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.scroll = self.scroll.saturating_add_signed(by).min(cx.last_line());
    }

    fn select(&mut self, position: usize) {
        self.reads = false;
        self.pick(position);
    }

    fn has_panes(&self) -> bool {
        self.entries() > 0
    }

    fn focus(&mut self, detail: bool) {
        self.reads = detail;
    }

    fn other_pane(&mut self, _cx: &Context) {
        if self.has_panes() {
            self.reads = !self.reads;
        }
    }

    fn drawn(&mut self, cx: &Context) {
        self.scroll = self.scroll.min(cx.last_line());
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.waiting.take().map(|waiting| waiting.ticket).into_iter().collect()
    }

    /// Keeps the selection.
    fn forget(&mut self) {
        self.filled = false;
        self.answers.clear();
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
