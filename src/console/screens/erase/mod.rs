//! Erasing a person, step by step: the person, where they occur, who names them, the effects, the last question, and
//! the outcome. No transaction is held open while someone reads.

pub(in crate::console) mod draw;
pub mod mentions;
pub mod messages;

pub use messages::EraseChoice;

use crate::change::plan::erasure::{ErasureChoice, ErasureOutcome, Mentions, Preview};
use crate::console::core::command::{self};
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, DoneWork, Lack, LayerOpening, Purpose, RecallAhead, Reply, Request,
    RequestFailure, Screen, ScreenFace, ScreenKind, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::Entity;

/// The steps, in order.
pub const STEPS: [&str; 7] = ["who", "where", "mentions", "effects", "recall", "decide", "result"];

/// Phases of an erasure, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Searching again, as the database may have changed.
    #[default]
    Looking,
    /// Rows are deleted in batches.
    Deleting,
    /// The engine overwrites old pages.
    Overwriting,
    /// Searching for remains.
    Checking,
}

/// An erasure under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRun {
    /// Number of the request.
    pub ticket: Ticket,
    /// Current phase.
    pub phase: Phase,
    /// The table being read; empty for none.
    pub table: String,
    /// Values read, or rows done, in this phase.
    pub count: u64,
}

impl ErasureRun {
    fn new(ticket: Ticket) -> Self {
        ErasureRun { ticket, phase: Phase::default(), table: String::new(), count: 0 }
    }

    /// Takes a progress report: the name of a phase, or of the table being read.
    fn hear(&mut self, what: String, count: u64) {
        let named = match what.as_str() {
            "bytes" => Some(self.phase),
            "deleting" => Some(Phase::Deleting),
            "physical pass" => Some(Phase::Overwriting),
            _ => None,
        };
        let reads_after = named.is_none() && self.phase >= Phase::Deleting;
        self.phase = named.unwrap_or(if reads_after { Phase::Checking } else { Phase::Looking });
        self.table = if named.is_none() { what } else { String::new() };
        self.count = count;
    }
}

/// An erasure that is previewed, confirmed or running.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EraseScreen {
    /// The person, as named when it was opened.
    pub given: String,
    /// Position among [`STEPS`].
    pub step: usize,
    /// Choices for the erasure.
    pub choice: ErasureChoice,
    /// Preview of the erasure.
    pub preview: Option<Box<Preview>>,
    /// Pending request for the plan.
    pub pending: Option<Ticket>,
    /// Number of the request that made the plan, under which it is kept outside.
    pub planned: Option<Ticket>,
    /// Preview of recall.
    pub ahead: Option<RecallAhead>,
    /// Progress of the planning: the table being read, and the number of values read.
    pub looking: Option<(String, u64)>,
    /// Running erasure.
    pub running: Option<ErasureRun>,
    /// Outcome of the erasure.
    pub outcome: Option<Box<ErasureOutcome>>,
    /// Reason why the erasure was not planned or done.
    pub failure: Option<RequestFailure>,
    /// First line shown.
    pub scroll: usize,
    /// Position of the selected mention.
    pub mention: usize,
    /// Whether mentions were decided since it was planned.
    pub stale: bool,
}

impl EraseScreen {
    /// Creates the erasure of a person.
    pub fn of(given: String) -> Self {
        EraseScreen { given, ..EraseScreen::default() }
    }

    fn drop_plan(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        let looking = self.ahead.take().and_then(|ahead| ahead.waiting);
        looking.into_iter().chain(self.planned.take())
    }

    /// An earlier run is resumed: how it is done was chosen then.
    pub fn is_settled(&self) -> bool {
        self.preview.as_ref().is_some_and(|preview| preview.unfinished)
    }

    /// Returns true when the erasure was done but ended incomplete: it can be resumed.
    pub fn is_incomplete(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.status == "incomplete")
    }

    fn go_to(&mut self, step: usize) {
        self.step = step.min(STEPS.len() - 1);
        self.scroll = 0;
    }

    /// The person: by the id, once known.
    pub fn id(&self) -> &str {
        self.preview.as_ref().map_or(&self.given, |preview| &preview.id)
    }

    fn take_plan(&mut self, ticket: Ticket, result: Result<Box<Preview>, RequestFailure>, cx: &mut Context) {
        self.pending = None;
        match result {
            Ok(preview) => {
                if let Some(began) = &preview.began {
                    self.choice.clone_from(began);
                }
                cx.read_names_of(
                    Entity::Subject,
                    preview.named.iter().map(|mention| &*mention.owner).filter(|owner| !owner.is_empty()),
                );
                (self.preview, self.planned, self.stale) = (Some(preview), Some(ticket), false);
                self.forget_missing();
                self.ahead = Some(RecallAhead::begin(ticket, false, cx));
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn hear(&mut self, what: String, count: u64) {
        match &mut self.running {
            Some(run) => run.hear(what, count),
            None => self.looking = Some((what, count)),
        }
    }

    fn take_outcome(&mut self, result: Result<Box<ErasureOutcome>, RequestFailure>, cx: &mut Context) {
        self.running = None;
        match result {
            Ok(outcome) => {
                let (tone, text) = match outcome.status.as_str() {
                    "incomplete" => (ToastTone::Warn, "the person was not erased completely".to_owned()),
                    status => (ToastTone::Good, format!("the person was erased: {status}")),
                };
                self.outcome = Some(outcome);
                self.go_to(STEPS.len() - 1);
                cx.changing.epoch += 1;
                cx.changing.unfinished = None;
                cx.changing.note(DoneWork::Erasure.into());
                cx.say(tone, text);
            }
            Err(failure) => {
                self.preview = None;
                self.failure = Some(failure);
                self.go_to(STEPS.len() - 2);
            }
        }
    }

    /// Carries out the choice that a key makes.
    fn turn(&mut self, turn: EraseChoice, cx: &mut Context) {
        const LAST: usize = STEPS.len() - 2;
        if self.running.is_some() {
            return;
        }
        match turn {
            EraseChoice::Other => cx.prompt(Purpose::Person, ""),
            _ if self.failure.is_some() => {}
            EraseChoice::Next if self.step == LAST || self.is_incomplete() => self.ask_last(cx),
            EraseChoice::Next if self.step < LAST => self.go_to(self.step + 1),
            EraseChoice::Longer => {
                if let Some(ahead) = &mut self.ahead {
                    ahead.look_longer(cx);
                }
            }
            EraseChoice::Before if self.outcome.is_none() => self.go_to(self.step.saturating_sub(1)),
            EraseChoice::Next | EraseChoice::Before => {}
            _ if self.outcome.is_some() => {}
            _ if self.is_settled() => cx.say(ToastTone::Info, "an earlier run is resumed with its original choices"),
            _ => self.choose(turn, cx),
        }
    }

    /// Changes how it is done.
    fn choose(&mut self, turn: EraseChoice, cx: &mut Context) {
        match turn {
            EraseChoice::Export => self.choice.export = !self.choice.export,
            EraseChoice::Full => self.choice.full = !self.choice.full,
            EraseChoice::Decide(decision, all) => self.decide_here(decision, all, cx),
            EraseChoice::Account => {
                self.choice.account = !self.choice.account;
                self.plan_again(cx);
            }
            EraseChoice::Mentions => {
                self.choice.mentions = self.choice.mentions.next();
                self.plan_again(cx);
            }
            EraseChoice::Next | EraseChoice::Before | EraseChoice::Longer | EraseChoice::Other => {}
        }
        if let Some(told) = draw::chosen_words(&self.choice, turn) {
            cx.say(ToastTone::Info, told);
        }
    }

    /// Drops the plan after a choice that affects it; it is made again once the step about mentions is left.
    fn plan_again(&mut self, cx: &mut Context) {
        if self.is_at_mentions() {
            self.stale = true;
            return;
        }
        self.preview = None;
        cx.cancel(self.pending.take());
        cx.cancel(self.drop_plan());
    }

    /// The last question: the person's id is typed.
    fn ask_last(&self, cx: &mut Context) {
        if let Err((reason, remedy)) = cx.may_change() {
            let waits = cx.waits_for_unlocking();
            let continues = if waits { " and continues with it" } else { "" };
            cx.changing.then = waits.then_some((CommandId::Open, None));
            let remedy = remedy.map(|remedy| format!("; {remedy}{continues}")).unwrap_or_default();
            return cx.say(ToastTone::Warn, format!("Erase a person: {reason}{remedy}"));
        }
        match &self.preview {
            None => cx.say(ToastTone::Info, "the plan is still being made"),
            Some(preview) => match &preview.refused {
                Some(reason) => cx.say(ToastTone::Warn, reason.clone()),
                None => cx.show(LayerOpening::Erase(preview.id.clone(), draw::last_words(self))),
            },
        }
    }

    fn erase(&mut self, reason: Option<String>, cx: &mut Context) {
        let resume = self.is_incomplete() || self.is_settled();
        self.outcome = None;
        cx.cancel(self.drop_plan());
        let (given, choice) = (self.given.clone(), self.choice.clone());
        self.running = Some(ErasureRun::new(cx.ask(Request::Erase { given, choice, resume, reason })));
        self.go_to(STEPS.len() - 1);
    }
}

impl Screen for EraseScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("erase a person", ScreenKind::Erase, CommandScope::Erase)
    }

    /// Returns the commands for the footer. Choices are left out while the erasure runs, and after an outcome or a
    /// failure; decisions about a mention are shown if there are mentions.
    fn hints(&self) -> Vec<CommandId> {
        let looks = self.running.is_none() && self.outcome.is_none() && self.failure.is_none();
        let decides = self.is_at_mentions() && self.mention().is_some();
        let asks = (looks && self.step == STEPS.len() - 2).then_some(CommandId::Open);
        let is_decision = |id: &CommandId| matches!(id, CommandId::Turn(EraseChoice::Decide(..)));
        let is_choice = |id: &CommandId| matches!(id, CommandId::Turn(turn) if turn.changes_the_erasure());
        let own = command::hinted(CommandScope::Erase).filter(|_| looks);
        let own = own.filter(|id| !(self.is_settled() && is_choice(id)));
        let (decisions, mut others): (Vec<_>, Vec<_>) = own.partition(is_decision);
        let decisions = decisions.into_iter().filter(|_| decides);
        // How it continues is first.
        let next = others.iter().position(|id| *id == CommandId::Turn(EraseChoice::Next)).map(|at| others.remove(at));
        let unknown = self.failure.is_some() || self.given.is_empty();
        let other = unknown.then_some(CommandId::Turn(EraseChoice::Other));
        let own = other.into_iter().chain(asks).chain(next).chain(decisions).chain(others);
        let shared =
            [CommandId::CopyText, CommandId::PageDown, CommandId::Close, CommandId::Palette, CommandId::Refresh];
        own.chain(shared).collect()
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        let no = |reason: &str| Err((reason.to_owned(), None));
        match id {
            CommandId::Turn(EraseChoice::Decide(..)) if !self.is_at_mentions() || self.mention().is_none() => {
                no("no mention is selected")
            }
            CommandId::Turn(EraseChoice::Before) if self.step == 0 => no("this is the first step"),
            CommandId::Turn(EraseChoice::Next) if self.pending.is_some() && self.preview.is_none() => {
                no("everything is still being searched")
            }
            CommandId::Turn(EraseChoice::Full) if self.preview.as_ref().is_some_and(|preview| !preview.locks) => {
                no("no tables are rewritten here: only PostgreSQL needs that")
            }
            CommandId::CopyCommand if self.given.is_empty() => no("no person is named yet"),
            _ => Ok(()),
        }
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        match id {
            CommandId::Open => Some("ask"),
            CommandId::CopyText => Some("copy path"),
            // A key that changes the erasure names the new choice.
            CommandId::Turn(EraseChoice::Mentions) => Some(match self.choice.mentions.next() {
                Mentions::Leave => "leave mentions",
                Mentions::Redact => "redact mentions",
                Mentions::Delete => "delete mentions",
            }),
            CommandId::Turn(EraseChoice::Account) => {
                Some(if self.choice.account { "keep account" } else { "erase account" })
            }
            CommandId::Turn(EraseChoice::Export) => Some(if self.choice.export { "no export" } else { "export first" }),
            _ => None,
        }
    }

    fn copies(&self) -> Option<String> {
        self.outcome.as_ref().map(|outcome| outcome.kept_in.clone())
    }

    fn person(&self) -> Option<&str> {
        Some(self.id()).filter(|id| !id.is_empty())
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        let account = if self.choice.account { "erase" } else { "keep" };
        let mut line = words(["purge", &self.given, "--mentions", self.choice.mentions.word(), "--account", account]);
        for (mention, decision) in &self.choice.each {
            line.extend(words(["--mention", &format!("{mention}={}", decision.word())]));
        }
        line.extend(self.choice.full.then(|| "--full".to_owned()));
        line
    }

    /// Keeps earlier decisions about the same person until they are changed.
    fn inherit(&mut self, earlier: &Self, _here: bool) -> bool {
        if earlier.outcome.is_none() && [earlier.given.as_str(), earlier.id()].contains(&self.given.as_str()) {
            self.choice.clone_from(&earlier.choice);
        }
        true
    }

    /// Requests the plan if it is missing.
    fn settle(&mut self, cx: &mut Context) {
        if self.stale && self.step != mentions::STEP {
            (self.preview, self.stale) = (None, false);
        }
        let idle = self.pending.is_none() && self.running.is_none() && self.failure.is_none();
        if self.given.is_empty() || self.preview.is_some() || self.outcome.is_some() || !idle {
            return;
        }
        cx.cancel(self.drop_plan());
        self.looking = None;
        self.pending = Some(cx.ask(Request::PlanErasure(self.given.clone(), self.choice.clone())));
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::ErasurePlanned(result) => self.take_plan(ticket, result, cx),
            Reply::Erasing(what, count) => self.hear(what, count),
            Reply::Erased(result) => self.take_outcome(result, cx),
            other => {
                if let Some(ahead) = &mut self.ahead {
                    ahead.take(ticket, other, cx);
                }
            }
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        if let CommandId::Turn(turn) = id {
            self.turn(turn, cx);
        }
    }

    fn open(&mut self, cx: &mut Context) {
        self.turn(EraseChoice::Next, cx);
    }

    /// Moves among mentions, else scrolls within the drawn range.
    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if self.is_at_mentions() {
            self.select_mention(by);
        } else {
            self.scroll = self.scroll.saturating_add_signed(by);
        }
    }

    fn page(&self, cx: &Context) -> usize {
        if self.is_at_mentions() { cx.measures.list_rows } else { cx.measures.detail_rows }
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.scroll = self.scroll.saturating_add_signed(by).min(cx.last_line());
    }

    fn drawn(&mut self, cx: &Context) {
        self.scroll = self.scroll.min(cx.last_line());
    }

    /// Starts over with another person.
    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        if purpose == Purpose::Person {
            cx.cancel(self.release());
            *self = EraseScreen::of(text.to_owned());
        }
    }

    fn confirmed(&mut self, reason: Option<String>, cx: &mut Context) {
        self.erase(reason, cx);
    }

    fn busy(&self) -> Option<&'static str> {
        self.running.is_some().then_some("a person is being erased: esc stops that; ctrl-c ends anyway")
    }

    fn left(&mut self, cx: &mut Context) {
        if self.running.is_some() {
            cx.changing.unfinished = None;
            let words = format!("the erasure was stopped; {} resumes it", cx.key_for(CommandId::Erase));
            cx.say(ToastTone::Warn, words);
        }
    }

    /// Only a plan goes out of date; a running erasure and an outcome do not.
    fn others_wrote(&mut self, _cx: &mut Context) -> bool {
        self.running.is_some() || self.outcome.is_some()
    }

    /// A stopped run can be resumed.
    fn release(&mut self) -> Vec<Ticket> {
        let running = self.running.take().map(|run| run.ticket);
        if running.is_some() {
            // The plan is half done: it is made again, to be resumed.
            self.preview = None;
            self.go_to(STEPS.len() - 2);
        }
        let waited: Vec<Ticket> = self.pending.take().into_iter().chain(running).collect();
        waited.into_iter().chain(self.drop_plan()).collect()
    }

    /// Drops an out-of-date plan; an outcome is kept.
    fn forget(&mut self) {
        if self.outcome.is_none() {
            self.preview = None;
            self.failure = None;
        }
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
