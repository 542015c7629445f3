//! Erasing a person, step by step: who it is, where they are, who else names them, what comes of it, the last question,
//! and what it came to. Nothing is held open in the database while somebody reads.

use super::gate::{Gate, Passage};
use super::key::{Code, Key};
use super::menu::Overlay;
use super::message::{Destination, Effect, Failure, Ticket};
use super::model::{Model, Tone};
use super::panel::{Panel, PanelKind};
use super::place::View;
use super::what_if::Ahead;
use crate::change::plan::Danger;
use crate::change::plan::erasure::{Choice, Mentions, Outcome, Preview};
use crate::memory::Entity;

/// The steps, in order.
pub const STEPS: [&str; 7] = ["who", "where", "mentions", "effects", "recall", "ready", "result"];

/// What is chosen by a key here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// The next step.
    Next,
    /// The step before.
    Before,
    /// What happens to mentions.
    Mentions,
    /// Whether the account goes.
    Account,
    /// Whether the person's data is written to a folder first.
    Export,
    /// Whether tables may be rewritten under lock.
    Full,
    /// A longer look at how recall would change.
    Longer,
}

/// An erasure that is looked at, asked about, or under way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Erasure {
    /// The person, as named when it was opened.
    pub given: String,
    /// Position among [`STEPS`].
    pub step: usize,
    /// How it shall be done.
    pub choice: Choice,
    /// What it would do.
    pub preview: Option<Box<Preview>>,
    /// The plan is being made.
    pub pending: Option<Ticket>,
    /// Number of the request that made the plan, under which it is kept outside.
    pub planned: Option<Ticket>,
    /// How recall would change.
    pub ahead: Option<Ahead>,
    /// It is being done, and what is being done just now.
    pub running: Option<(Ticket, String, u64)>,
    /// What it came to.
    pub outcome: Option<Box<Outcome>>,
    /// Why it was not planned or done.
    pub failure: Option<Failure>,
    /// First line shown.
    pub scroll: usize,
}

impl Erasure {
    /// What was planned is out of date; what was done stays.
    pub fn forget(&mut self) {
        if self.outcome.is_none() && self.running.is_none() {
            self.preview = None;
            self.failure = None;
        }
    }

    /// The plan that is kept outside is needed no more.
    fn drops_plan(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        let looking = self.ahead.take().and_then(|ahead| ahead.waiting);
        looking.into_iter().chain(self.planned.take())
    }

    /// Every request that it waits for; it waits for none afterwards. A run that is stopped can be gone on with.
    pub fn release(&mut self) -> Vec<Ticket> {
        let running = self.running.take().map(|(ticket, ..)| ticket);
        let waited: Vec<Ticket> = self.pending.take().into_iter().chain(running).collect();
        waited.into_iter().chain(self.drops_plan()).collect()
    }

    /// Scrolls; what was drawn says how far.
    pub fn move_by(&mut self, by: isize) {
        self.scroll = self.scroll.saturating_add_signed(by).min(10_000);
    }

    fn go_to(&mut self, step: usize) {
        self.step = step.min(STEPS.len() - 1);
        self.scroll = 0;
    }
}

impl Model {
    fn erasure_mut(&mut self) -> Option<&mut Erasure> {
        match &mut self.history.here_mut().view {
            View::Panel(panel) => match &mut **panel {
                Panel::Erase(erasure) => Some(erasure),
                _ => None,
            },
            _ => None,
        }
    }

    /// The person of the selected row: a subject itself, or whom the row belongs to.
    #[must_use]
    pub fn selected_person(&self) -> Option<String> {
        let here = self.history.here();
        match here.selected() {
            Some((Entity::Subject, id)) if !id.is_empty() => Some(id.to_owned()),
            _ => here.row().and_then(|row| row.text("user_id")).filter(|id| !id.is_empty()).map(str::to_owned),
        }
    }

    /// Opens the erasure of the selected person.
    pub(super) fn open_erasure(&mut self) -> Vec<Effect> {
        let Some(person) = self.selected_person() else {
            return self.say(Tone::Warn, "Erase a person: no person is selected");
        };
        let effects = self.go(&Destination::Panel(PanelKind::Erase), false);
        if let Some(erasure) = self.erasure_mut() {
            let stopped = erasure.release();
            *erasure = Erasure { given: person, ..Erasure::default() };
            return effects.into_iter().chain(stopped.into_iter().map(Effect::Cancel)).collect();
        }
        effects
    }

    /// Asks for the plan where it is missing.
    pub(super) fn settle_erasure(&mut self) -> Vec<Effect> {
        let ticket = self.ticket();
        let Some(erasure) = self.erasure_mut() else { return Vec::new() };
        let idle = erasure.pending.is_none() && erasure.running.is_none() && erasure.failure.is_none();
        if erasure.given.is_empty() || erasure.preview.is_some() || erasure.outcome.is_some() || !idle {
            return Vec::new();
        }
        erasure.pending = Some(ticket);
        let mut effects: Vec<Effect> = erasure.drops_plan().map(Effect::Cancel).collect();
        effects.push(Effect::PlanErasure(ticket, erasure.given.clone(), erasure.choice));
        effects
    }

    pub(super) fn got_erasure(&mut self, ticket: Ticket, result: Result<Box<Preview>, Failure>) -> Vec<Effect> {
        let mut result = result;
        if let Ok(preview) = &mut result {
            self.masking.preview(preview);
        }
        let Some(erasure) = self.erasure_mut() else { return Vec::new() };
        if erasure.pending.take_if(|waiting| *waiting == ticket).is_none() {
            return Vec::new();
        }
        match result {
            Ok(preview) => (erasure.preview, erasure.planned) = (Some(preview), Some(ticket)),
            Err(failure) => {
                erasure.failure = Some(failure);
                return Vec::new();
            }
        }
        let (ahead, look) = self.look_ahead(ticket);
        if let Some(erasure) = self.erasure_mut() {
            erasure.ahead = Some(ahead);
        }
        vec![look]
    }

    pub(super) fn erasing(&mut self, ticket: Ticket, what: String, count: u64) -> Vec<Effect> {
        if let Some(running) = self.erasure_mut().and_then(|e| e.running.as_mut()).filter(|r| r.0 == ticket) {
            (running.1, running.2) = (what, count);
        }
        Vec::new()
    }

    pub(super) fn erased(&mut self, ticket: Ticket, result: Result<Box<Outcome>, Failure>) -> Vec<Effect> {
        let Some(erasure) = self.erasure_mut() else { return Vec::new() };
        if erasure.running.take_if(|running| running.0 == ticket).is_none() {
            return Vec::new();
        }
        match result {
            Ok(outcome) => {
                let (tone, text) = match outcome.status.as_str() {
                    "incomplete" => (Tone::Warn, "the person was not erased completely".to_owned()),
                    status => (Tone::Good, format!("the person was erased: {status}")),
                };
                erasure.outcome = Some(outcome);
                erasure.go_to(STEPS.len() - 1);
                self.changing.epoch += 1;
                self.say(tone, text)
            }
            Err(failure) => {
                erasure.preview = None;
                erasure.failure = Some(failure);
                Vec::new()
            }
        }
    }

    /// What a key chooses.
    pub(super) fn turn_erasure(&mut self, turn: Turn) -> Vec<Effect> {
        let Some(erasure) = self.erasure_mut() else { return Vec::new() };
        if erasure.running.is_some() {
            return Vec::new();
        }
        match turn {
            Turn::Next if erasure.step == STEPS.len() - 2 => return self.ask_erasure(),
            Turn::Next if erasure.step < STEPS.len() - 2 => erasure.go_to(erasure.step + 1),
            Turn::Longer => return self.look_longer(),
            Turn::Next => {}
            Turn::Before if erasure.outcome.is_none() => erasure.go_to(erasure.step.saturating_sub(1)),
            _ if erasure.outcome.is_some() => {}
            Turn::Export => erasure.choice.export = !erasure.choice.export,
            Turn::Full => erasure.choice.full = !erasure.choice.full,
            Turn::Mentions | Turn::Account => {
                match (turn, erasure.choice.mentions) {
                    (Turn::Account, _) => erasure.choice.account = !erasure.choice.account,
                    (_, Mentions::Leave) => erasure.choice.mentions = Mentions::Redact,
                    (_, Mentions::Redact) => erasure.choice.mentions = Mentions::Delete,
                    (_, Mentions::Delete) => erasure.choice.mentions = Mentions::Leave,
                }
                let stopped = erasure.pending.take();
                erasure.preview = None;
                return stopped.into_iter().chain(erasure.drops_plan()).map(Effect::Cancel).collect();
            }
            Turn::Before => {}
        }
        Vec::new()
    }

    /// The last question: the person's id is typed.
    fn ask_erasure(&mut self) -> Vec<Effect> {
        if let Err((reason, remedy)) = self.may_change() {
            let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
            return self.say(Tone::Warn, format!("Erase a person: {reason}{remedy}"));
        }
        let preview = self.erasure_mut().and_then(|e| e.preview.clone());
        let Some(preview) = preview else { return self.say(Tone::Info, "the plan is still being made") };
        if let Some(reason) = preview.refused {
            return self.say(Tone::Warn, reason);
        }
        let (gate, mut effects) = self.gate(Danger::Grave, &preview.id);
        effects.extend(self.show(Overlay::Erase(Box::new(gate))));
        effects
    }

    /// What a key does to the last question.
    pub(super) fn erase_key(&mut self, key: Key) -> Vec<Effect> {
        let Some(Overlay::Erase(gate)) = self.overlays.last_mut() else { return Vec::new() };
        let was_early = !gate.armed;
        match gate.press(key) {
            Passage::Open => {
                self.overlays.pop();
                self.erase()
            }
            Passage::Closed => {
                self.overlays.pop();
                self.say(Tone::Info, "nothing was changed")
            }
            Passage::Taken | Passage::Other if was_early && key.code != Code::Esc => self.wait_longer(),
            Passage::Taken | Passage::Other => Vec::new(),
        }
    }

    fn erase(&mut self) -> Vec<Effect> {
        let ticket = self.ticket();
        let Some(erasure) = self.erasure_mut() else { return Vec::new() };
        let resume = erasure.preview.as_ref().is_some_and(|preview| preview.unfinished);
        erasure.running = Some((ticket, "planning".to_owned(), 0));
        let (given, choice) = (erasure.given.clone(), erasure.choice);
        let mut effects: Vec<Effect> = erasure.drops_plan().map(Effect::Cancel).collect();
        effects.push(Effect::Erase { ticket, given, choice, resume });
        effects
    }

    /// The gate of the last question, when it is asked.
    #[must_use]
    pub fn erase_gate(&self) -> Option<&Gate> {
        match self.overlays.last() {
            Some(Overlay::Erase(gate)) => Some(gate),
            _ => None,
        }
    }
}
