//! Recall: a situation, ranked in one way or in two beside each other, with every score taken apart. What is asked is
//! asked anew whenever it changes; the latest question wins.

mod lists;
mod prompts;

use std::collections::{BTreeMap, BTreeSet};

use super::command::CommandId;
use super::message::{Effect, Failure, Ticket};
use super::model::{Model, Tone};
use super::panel::Panel;
use super::place::{Place, View};
use crate::memory::{Entity, Row, time};
use crate::recall::answer::{Answer, Item, Stages};
use crate::recall::context::{Budget, Context, TOKENS, context};
use crate::recall::inquiry::{Inquiry, Saved};
use crate::recall::rank::{LeftOut, Ranking};

pub use lists::Pick;

/// Rows that can be asked for at most.
const MOST: usize = 50;

/// A command of this screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// Write a situation.
    Write,
    /// Rank in that way.
    Rank(Ranking),
    /// Choose among all ways to rank, policies too.
    Ways,
    /// Choose what to compare with.
    Compare,
    /// The other of two rankings.
    Side(bool),
    /// Exchange the two rankings.
    Swap,
    /// One row more, or one fewer.
    More(bool),
    /// Choose the agent.
    Agent,
    /// Choose the user.
    User,
    /// Domain and topic, or the workflow.
    Narrow,
    /// Successes only, or all.
    Outcomes,
    /// Keep what is asked under a name.
    Save,
    /// Ask what was kept.
    Saved,
    /// Forget what was kept.
    Forget,
}

/// A way to rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The ranking.
    pub ranking: Ranking,
    /// A learned policy instead of the cosine (cases).
    pub policy: Option<String>,
}

impl Way {
    /// A ranking by itself.
    #[must_use]
    pub fn plain(ranking: Ranking) -> Self {
        Way { ranking, policy: None }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.policy {
            Some(policy) => format!("{} by {policy}", self.ranking.name()),
            None => self.ranking.name().to_owned(),
        }
    }
}

/// An answer, and what an agent would get of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The rows with their scores.
    pub answer: Answer,
    /// How long it took.
    pub stages: Stages,
    /// The text that an agent would get.
    pub context: Context,
}

/// One ranking of the situation.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// How it ranks.
    pub way: Way,
    /// What was asked last; it need not be answered yet.
    pub asked: Option<Inquiry>,
    /// The request that is waited for, and what is being done for it.
    pub pending: Option<(Ticket, &'static str)>,
    /// The last answer.
    pub found: Option<Box<Found>>,
    /// Why there is none.
    pub failure: Option<Failure>,
    /// Position of the selected row.
    pub selected: usize,
}

impl Side {
    fn new(way: Way) -> Self {
        Side { way, asked: None, pending: None, found: None, failure: None, selected: 0 }
    }

    /// The rows in order.
    #[must_use]
    pub fn rows(&self) -> &[Item] {
        self.found.as_ref().map_or(&[], |found| &found.answer.rows)
    }

    /// The selected row.
    #[must_use]
    pub fn current(&self) -> Option<&Item> {
        self.rows().get(self.selected)
    }

    /// Place of a row, from 0.
    #[must_use]
    pub fn place_of(&self, entity: Entity, id: &str) -> Option<usize> {
        self.rows().iter().position(|item| item.ranked.row.entity == entity && item.ranked.row.id() == id)
    }

    /// Why a row is not among the rows, where that is known.
    #[must_use]
    pub fn why_not(&self, id: &str) -> Option<&LeftOut> {
        self.found.as_ref()?.answer.left_out.iter().find(|left| left.id == id)
    }

    /// Whether what is shown is about to be replaced.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.pending.is_some() || self.failure.is_some()
    }

    fn select(&mut self, position: usize) {
        self.selected = position.min(self.rows().len().saturating_sub(1));
    }

    /// Takes an answer; the same row stays selected.
    fn take(&mut self, result: Result<Found, Failure>) {
        match result {
            Ok(found) => {
                let kept = self.current().map(|item| (item.ranked.row.entity, item.ranked.row.id().to_owned()));
                self.found = Some(Box::new(found));
                let place = kept.and_then(|(entity, id)| self.place_of(entity, &id));
                self.selected = place.unwrap_or(0);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// The screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Recall {
    /// What is asked; each side ranks it in its own way.
    pub inquiry: Inquiry,
    /// The ranking, and at the left the first of two.
    pub left: Side,
    /// The second of two.
    pub right: Option<Side>,
    /// The right one has the keys.
    pub on_right: bool,
    /// The explanation has the keys.
    pub reads: bool,
    /// Lines of the explanation that lie above.
    pub scroll: usize,
    /// Kept vectors are out of date.
    stale: bool,
    /// Rows to choose from, as far as they were read.
    pub lists: BTreeMap<Entity, Vec<Row>>,
    wanted: BTreeSet<Entity>,
    pending_list: Option<(Ticket, Entity)>,
    /// Questions that were kept, once they were read.
    pub saved: Option<Vec<Saved>>,
    pending_saved: Option<Ticket>,
}

impl Recall {
    /// Nothing asked yet.
    #[must_use]
    pub fn new(ranking: Ranking) -> Self {
        Recall {
            inquiry: Inquiry::new(ranking),
            left: Side::new(Way::plain(ranking)),
            right: None,
            on_right: false,
            reads: false,
            scroll: 0,
            stale: false,
            lists: BTreeMap::new(),
            wanted: BTreeSet::from([Entity::Policy]),
            pending_list: None,
            saved: None,
            pending_saved: None,
        }
    }

    /// The ranking that has the keys.
    #[must_use]
    pub fn side(&self) -> &Side {
        self.right.as_ref().filter(|_| self.on_right).unwrap_or(&self.left)
    }

    fn side_mut(&mut self) -> &mut Side {
        match &mut self.right {
            Some(right) if self.on_right => right,
            _ => &mut self.left,
        }
    }

    /// The other ranking, where two are compared.
    #[must_use]
    pub fn other(&self) -> Option<&Side> {
        let right = self.right.as_ref()?;
        Some(if self.on_right { &self.left } else { right })
    }

    /// The selected row.
    #[must_use]
    pub fn row(&self) -> Option<&Row> {
        self.side().current().map(|item| &item.ranked.row)
    }

    /// What a side asks.
    #[must_use]
    pub fn asked(&self, side: &Side) -> Inquiry {
        Inquiry { ranking: side.way.ranking, policy: side.way.policy.clone(), ..self.inquiry.clone() }
    }

    fn sides_mut(&mut self) -> impl Iterator<Item = &mut Side> {
        [Some(&mut self.left), self.right.as_mut()].into_iter().flatten()
    }

    /// Every request that it waits for; it waits for none afterwards, and asks again.
    pub fn release(&mut self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = Vec::new();
        for side in self.sides_mut() {
            if let Some((ticket, _)) = side.pending.take() {
                side.asked = None;
                tickets.push(ticket);
            }
        }
        tickets.extend(self.pending_list.take().map(|(ticket, _)| ticket));
        tickets.extend(self.pending_saved.take());
        tickets
    }

    /// What was read is out of date; it stays on the screen until it is read again.
    pub fn forget(&mut self) {
        self.stale = true;
        self.sides_mut().for_each(|side| side.asked = None);
        self.wanted.extend(std::mem::take(&mut self.lists).into_keys());
        self.saved = None;
    }

    /// Moves the selection, or scrolls the explanation.
    pub fn move_by(&mut self, by: isize) {
        if self.reads {
            self.scroll = self.scroll.saturating_add_signed(by);
        } else {
            self.select(self.side().selected.saturating_add_signed(by));
        }
    }

    /// Selects a row of the ranking that has the keys.
    pub fn select(&mut self, position: usize) {
        let before = self.side().selected;
        self.side_mut().select(position);
        if self.side().selected != before {
            self.scroll = 0;
        }
    }

    /// Gives the keys to the left or the right ranking; the same row is selected where it is in both.
    pub fn turn_to(&mut self, right: bool) {
        if self.right.is_none() || self.on_right == right {
            return;
        }
        let row = self.row().map(|row| (row.entity, row.id().to_owned()));
        self.on_right = right;
        self.scroll = 0;
        if let Some(place) = row.and_then(|(entity, id)| self.side().place_of(entity, &id)) {
            self.side_mut().select(place);
        }
    }

    /// The situation in words, for what names it.
    #[must_use]
    pub fn situation(&self) -> Option<&Row> {
        let found = self.side().found.as_ref().or(self.left.found.as_ref())?;
        found.answer.like.as_ref().filter(|row| Some(row.id()) == self.inquiry.like.as_deref())
    }
}

impl Model {
    /// The recall screen, when we are at it.
    #[must_use]
    pub fn at_recall(&self) -> Option<&Recall> {
        match self.panel() {
            Some(Panel::Recall(recall)) => Some(recall),
            _ => None,
        }
    }

    pub(super) fn recall_mut(&mut self) -> Option<&mut Recall> {
        match self.panel_mut() {
            Some(Panel::Recall(recall)) => Some(recall),
            _ => None,
        }
    }

    /// Whether the database can be ranked so.
    ///
    /// # Errors
    /// Why not, and what would help.
    pub fn can_rank(&self, ranking: Ranking) -> Result<(), (String, Option<String>)> {
        let held = match ranking {
            Ranking::Boosted | Ranking::Similar => self.holds(Entity::Episode),
            Ranking::Cases => self.holds(Entity::Case),
            Ranking::Proven => self.holds(Entity::Memory).or_else(|_| self.holds(Entity::Episode)),
        };
        held.map_err(|missing| (missing.reason.clone().unwrap_or_default(), missing.remedy.clone()))
    }

    /// Opens the screen; with the situation of the selected row, where one is selected that has one.
    pub(super) fn open_recall(&mut self) -> Vec<Effect> {
        let row = self.history.here().row().filter(|row| ranks(row.entity).is_some()).cloned();
        let first = Ranking::ALL.into_iter().find(|ranking| self.can_rank(*ranking).is_ok());
        let fitting = row.as_ref().and_then(|row| ranks(row.entity)).filter(|ranking| self.can_rank(*ranking).is_ok());
        let here = self.at_recall().map(|recall| recall.left.way.ranking).filter(|_| row.is_some());
        let mut fresh = Recall::new(here.or(fitting).or(first).unwrap_or(Ranking::Boosted));
        if let Some(row) = &row {
            fresh.inquiry.like = Some(row.id().to_owned());
            // A case names its bank by itself.
            let agent = row.text("agent_id").filter(|_| row.entity == Entity::Episode);
            fresh.inquiry.agent = agent.map(str::to_owned);
        } else if self.at_recall().is_some() {
            return Vec::new();
        }
        let view = View::Panel(Box::new(Panel::Recall(Box::new(fresh))));
        let mut effects = self.leave();
        self.history.push(Place { view, followed: row.is_some(), epoch: self.changing.epoch });
        effects.extend(self.arrive());
        effects
    }

    /// Asks what is not answered yet; what nobody wants to know any more is stopped.
    pub(super) fn settle_recall(&mut self) -> Vec<Effect> {
        let tickets = [self.ticket(), self.ticket()];
        let at = time::spell_utc(self.now).unwrap_or_default();
        let last = self.measures.detail_lines.saturating_sub(self.measures.detail_rows);
        let rankable = Ranking::ALL.map(|ranking| (ranking, self.can_rank(ranking).is_ok()));
        let Some(recall) = self.recall_mut() else { return Vec::new() };
        recall.scroll = recall.scroll.min(last);
        let inquiry = recall.inquiry.clone();
        let mut fresh = recall.stale;
        let mut effects = Vec::new();
        for (side, ticket) in recall.sides_mut().zip(tickets) {
            let (ranking, policy) = (side.way.ranking, side.way.policy.clone());
            let wanted = Inquiry { ranking, policy, ..inquiry.clone() };
            if side.asked.as_ref() == Some(&wanted) {
                continue;
            }
            effects.extend(side.pending.take().map(|(ticket, _)| Effect::Cancel(ticket)));
            side.asked = Some(wanted.clone());
            side.failure = None;
            if !wanted.is_enough() || !rankable.contains(&(ranking, true)) {
                side.found = None;
                continue;
            }
            side.pending = Some((ticket, "ranking"));
            effects.push(Effect::Recall { ticket, inquiry: Box::new(wanted), at: at.clone(), fresh });
            fresh = false;
        }
        recall.stale = fresh;
        effects.extend(self.settle_lists());
        effects
    }

    pub(super) fn got_recalled(
        &mut self,
        ticket: Ticket,
        result: Result<Box<(Answer, Stages)>, Failure>,
    ) -> Vec<Effect> {
        let result = result.map(|answered| {
            let (mut answer, stages) = *answered;
            self.masking.rows(answer.rows_mut());
            let rows: Vec<&Row> = answer.rows.iter().map(|item| &item.ranked.row).collect();
            let lessons = answer.request.ranking == Ranking::Similar;
            let context = context(&rows, Budget { tokens: TOKENS, per_row: None }, lessons);
            Found { answer, stages, context }
        });
        let Some(recall) = self.recall_mut() else { return Vec::new() };
        let waits = |side: &&mut Side| side.pending.is_some_and(|(waiting, _)| waiting == ticket);
        let Some(side) = recall.sides_mut().find(waits) else { return Vec::new() };
        side.pending = None;
        side.take(result);
        Vec::new()
    }

    /// What is being done for an answer.
    pub(super) fn recalling(&mut self, ticket: Ticket, doing: &'static str) {
        let Some(recall) = self.recall_mut() else { return };
        for (_, known) in recall.sides_mut().filter_map(|side| side.pending.as_mut()).filter(|(t, _)| *t == ticket) {
            *known = doing;
        }
    }

    /// Stops what is being ranked, else steps out of what is open here. Whether there was anything.
    pub(super) fn step_out_of_recall(&mut self) -> Option<Vec<Effect>> {
        let recall = self.recall_mut()?;
        let mut stopped: Vec<Effect> = Vec::new();
        for side in recall.sides_mut() {
            if let Some((ticket, _)) = side.pending.take() {
                stopped.push(Effect::Cancel(ticket));
                side.failure = Some(Failure::new("Ranking was stopped", "there is no answer to this", "r asks again"));
            }
        }
        if !stopped.is_empty() {
            stopped.extend(self.say(Tone::Info, "stopped"));
            return Some(stopped);
        }
        if recall.reads {
            recall.reads = false;
        } else if recall.right.take().is_some() {
            recall.on_right = false;
        } else {
            return None;
        }
        Some(Vec::new())
    }

    /// Whether a command of this screen can be given.
    ///
    /// # Errors
    /// Why not, and what would help.
    pub(super) fn can_recall(&self, ask: Ask) -> Result<(), (String, Option<String>)> {
        let Some(recall) = self.at_recall() else { return Err(("only on the recall screen".to_owned(), None)) };
        let no = |reason: &str| Err((reason.to_owned(), None));
        let ranking = recall.side().way.ranking;
        match ask {
            Ask::Rank(ranking) => self.can_rank(ranking),
            Ask::Side(_) | Ask::Swap if recall.right.is_none() => no("v compares with another ranking first"),
            Ask::Narrow if !matches!(ranking, Ranking::Proven | Ranking::Similar) => {
                no("only proven relevance and similar episodes are narrowed")
            }
            Ask::Outcomes if ranking != Ranking::Similar => no("only similar episodes leave failures out"),
            Ask::Save if !recall.asked(recall.side()).is_enough() => no("nothing is asked yet"),
            Ask::Saved | Ask::Forget if recall.saved.as_ref().is_none_or(Vec::is_empty) => {
                no("nothing is kept yet; S keeps what is asked")
            }
            _ => Ok(()),
        }
    }

    /// Does what a command of this screen says.
    pub(super) fn ask_recall(&mut self, ask: Ask) -> Vec<Effect> {
        match ask {
            Ask::Write | Ask::Agent | Ask::User | Ask::Narrow | Ask::Save => return self.write_recall(ask),
            Ask::Ways | Ask::Compare => return self.open_ways(ask == Ask::Compare),
            Ask::Saved | Ask::Forget => return self.open_saved(ask == Ask::Forget),
            _ => {}
        }
        let Some(recall) = self.recall_mut() else { return Vec::new() };
        match ask {
            Ask::Rank(ranking) => recall.rank(Way::plain(ranking)),
            Ask::Side(right) => recall.turn_to(right),
            Ask::Swap => {
                if let Some(right) = &mut recall.right {
                    std::mem::swap(right, &mut recall.left);
                }
            }
            Ask::More(more) => {
                let now = recall.inquiry.k.unwrap_or_else(|| recall.side().way.ranking.default_k());
                let k = if more { now + 1 } else { now.saturating_sub(1) };
                recall.inquiry.k = Some(k.clamp(1, MOST));
            }
            Ask::Outcomes => recall.inquiry.all_outcomes = !recall.inquiry.all_outcomes,
            _ => {}
        }
        Vec::new()
    }
}

impl Recall {
    /// Ranks the side that has the keys in another way.
    fn rank(&mut self, way: Way) {
        let side = self.side_mut();
        if side.way != way {
            // Another ranking is another answer: what stood there would only mislead.
            let asked = side.pending.take();
            *side = Side { pending: asked, ..Side::new(way) };
        }
        self.scroll = 0;
    }

    /// Compares with a way, or with none any more.
    fn compare(&mut self, way: Option<Way>) {
        self.right = way.map(Side::new);
        self.on_right = false;
    }
}

/// The ranking by which rows of an entity are recalled.
fn ranks(entity: Entity) -> Option<Ranking> {
    match entity {
        Entity::Episode => Some(Ranking::Boosted),
        Entity::Case => Some(Ranking::Cases),
        Entity::Memory => Some(Ranking::Proven),
        _ => None,
    }
}

/// The command that opens the screen.
pub const OPEN: CommandId = CommandId::Panel(super::panel::PanelKind::Recall);
