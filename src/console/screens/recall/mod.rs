//! Recall: a situation with one ranking, or two side by side, with every score broken down. Every change of the
//! question asks it again; the latest question wins.

mod asks;
pub(in crate::console) mod draw;
pub mod levers;
mod lists;
pub mod messages;
mod prompts;
mod side;

use std::collections::{BTreeMap, BTreeSet};

pub use messages::{RankingWay, RecallCommand, RecallPick};
pub use side::{FoundAnswer, RankingSide};

use crate::console::core::command::{self};
use crate::console::core::twin::{quoted, words};
use crate::console::core::{
    CommandId, CommandScope, Context, Destination, Judged, Lack, MenuChoice, Prompt, Purpose, Reply, Request,
    RequestFailure, Screen, ScreenFace, ScreenKind, ScreenOrigin, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::{Entity, Row};
use crate::recall::answer::{RecallAnswer, RecalledItem, StageTimes};
use crate::recall::context::{Budget, ContextRow, TOKENS, context};
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::recall::rank::Ranking;

/// The screen.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallScreen {
    /// Inquiry of the screen; each side ranks it in its own way.
    pub inquiry: Inquiry,
    /// The ranking, and at the left the first of two.
    pub left: RankingSide,
    /// The second of two.
    pub right: Option<RankingSide>,
    /// Whether the right ranking has the focus.
    pub on_right: bool,
    /// Whether the explanation has the focus.
    pub reads: bool,
    /// Whether the focused pane takes the whole screen.
    pub zoomed: bool,
    /// Lines of the explanation that lie above.
    pub scroll: usize,
    /// Rows that were recalled when the situation was recorded.
    pub recorded: RecordedRecall,
    /// Whether cached vectors are out of date.
    stale: bool,
    /// Rows to choose from, as far as they were read.
    pub lists: BTreeMap<Entity, Vec<Row>>,
    wanted: BTreeSet<Entity>,
    pending_list: Option<(Ticket, Entity)>,
    /// Saved questions; `None` until read.
    pub saved: Option<Vec<SavedQuestion>>,
    pending_saved: Option<Ticket>,
    /// Message to show once the saved questions come back.
    told: Option<String>,
}

impl RecallScreen {
    /// Creates the screen with an empty question.
    pub fn new(ranking: Ranking) -> Self {
        RecallScreen {
            inquiry: Inquiry::new(ranking),
            left: RankingSide::new(RankingWay::plain(ranking)),
            right: None,
            on_right: false,
            reads: false,
            zoomed: false,
            scroll: 0,
            recorded: RecordedRecall::default(),
            stale: false,
            lists: BTreeMap::new(),
            wanted: BTreeSet::from([Entity::Policy]),
            pending_list: None,
            saved: None,
            pending_saved: None,
            told: None,
        }
    }

    /// The focused ranking.
    pub fn side(&self) -> &RankingSide {
        self.right.as_ref().filter(|_| self.on_right).unwrap_or(&self.left)
    }

    fn side_mut(&mut self) -> &mut RankingSide {
        match &mut self.right {
            Some(right) if self.on_right => right,
            _ => &mut self.left,
        }
    }

    /// The other ranking, if two are compared.
    pub fn other(&self) -> Option<&RankingSide> {
        let right = self.right.as_ref()?;
        Some(if self.on_right { &self.left } else { right })
    }

    /// Returns the inquiry for a side.
    pub fn asked(&self, side: &RankingSide) -> Inquiry {
        Inquiry { ranking: side.way.ranking, policy: side.way.policy.clone(), ..self.inquiry.clone() }
    }

    /// Selects a row of the focused ranking.
    fn pick(&mut self, position: usize) {
        let before = self.side().selected;
        self.side_mut().select(position);
        if self.side().selected != before {
            self.scroll = 0;
        }
    }

    fn sides_mut(&mut self) -> impl Iterator<Item = &mut RankingSide> {
        [Some(&mut self.left), self.right.as_mut()].into_iter().flatten()
    }

    /// Moves the focus to the left or the right ranking; a row that is in both stays selected.
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

    /// The situation as a row, to name it.
    pub fn situation(&self) -> Option<&Row> {
        let found = self.side().found.as_ref().or(self.left.found.as_ref())?;
        found.answer.like.as_ref().filter(|row| Some(row.id()) == self.inquiry.like.as_deref())
    }
}

impl RecallScreen {
    fn rank(&mut self, way: RankingWay) {
        let side = self.side_mut();
        if side.way != way {
            // Another ranking gives another answer: the old one would only mislead.
            let asked = side.pending.take();
            *side = RankingSide { pending: asked, ..RankingSide::new(way) };
        }
        self.scroll = 0;
    }

    /// Stops the running ranking. False if there is none.
    fn stop(&mut self, cx: &mut Context) -> bool {
        let mut stopped = Vec::new();
        for side in self.sides_mut() {
            if let Some((ticket, _)) = side.pending.take() {
                stopped.push(ticket);
                side.failure =
                    Some(RequestFailure::new("Ranking was stopped", "there is no answer to this", "r asks again"));
            }
        }
        let any = !stopped.is_empty();
        cx.cancel(stopped);
        any
    }

    /// Asks unanswered questions; stops those no longer needed.
    fn ask(&mut self, cx: &mut Context) {
        let at = cx.moment();
        let inquiry = self.inquiry.clone();
        let mut fresh = self.stale;
        for side in self.sides_mut() {
            let (ranking, policy) = (side.way.ranking, side.way.policy.clone());
            let wanted = Inquiry { ranking, policy, ..inquiry.clone() };
            if side.asked.as_ref() == Some(&wanted) {
                continue;
            }
            cx.cancel(side.pending.take().map(|(ticket, _)| ticket));
            side.asked = Some(wanted.clone());
            side.failure = None;
            if !wanted.is_enough() || can_rank(cx, ranking).is_err() {
                side.found = None;
                continue;
            }
            let ticket = cx.ask(Request::Recall { inquiry: Box::new(wanted), at: at.clone(), fresh });
            side.pending = Some((ticket, "ranking"));
            fresh = false;
        }
        self.stale = fresh;
    }

    fn waiting_mut(&mut self, ticket: Ticket) -> Option<&mut RankingSide> {
        self.sides_mut().find(|side| side.pending.is_some_and(|(waiting, _)| waiting == ticket))
    }

    /// Compares with a ranking, or ends the comparison.
    fn compare(&mut self, way: Option<RankingWay>) {
        self.right = way.map(RankingSide::new);
        self.on_right = false;
    }
}

/// Checks that the database supports a ranking.
///
/// # Errors
/// The reason why not, with a remedy.
pub fn can_rank(cx: &Context, ranking: Ranking) -> Result<(), Lack> {
    let held = match ranking {
        Ranking::Boosted | Ranking::Similar => cx.holds(Entity::Episode).or_else(|_| cx.holds(Entity::Memory)),
        Ranking::Cases => cx.holds(Entity::Case),
        Ranking::Proven => cx.holds(Entity::Memory).or_else(|_| cx.holds(Entity::Episode)),
    };
    held.map_err(|missing| (missing.reason.clone().unwrap_or_default(), missing.remedy.clone()))
}

/// Whether the database holds anything that is ranked.
pub fn can_rank_any(cx: &Context) -> bool {
    Ranking::ALL.into_iter().any(|ranking| can_rank(cx, ranking).is_ok())
}

/// The situation of the selected row, if it has one that can be ranked.
fn situation_from(origin: &ScreenOrigin, cx: &Context) -> Option<Inquiry> {
    let asked = situation_of(origin.row.as_ref()?, cx.masking.is_on())?;
    can_rank(cx, asked.ranking).is_ok().then_some(asked)
}

/// The situation of a row: its own, that of its episode, or the one of an access.
fn situation_of(row: &Row, masked: bool) -> Option<Inquiry> {
    if row.entity == Entity::Access {
        return situation_of_access(row, masked);
    }
    let (ranking, id) = match row.entity {
        Entity::Episode => (Ranking::Boosted, Some(row.id())),
        Entity::Case => (Ranking::Cases, Some(row.id())),
        Entity::Memory => (Ranking::Proven, Some(row.id())),
        _ => (Ranking::Boosted, row.text("episode_id")),
    };
    // A case names its bank on its own.
    let agent = row.text("agent_id").filter(|_| row.entity != Entity::Case).map(str::to_owned);
    let like = id.filter(|id| !id.is_empty())?.to_owned();
    Some(Inquiry { agent, like: Some(like), ..Inquiry::new(ranking) })
}

/// Rows that an access recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedRecall {
    /// Time of the access.
    pub at: String,
    /// Ids of the recalled rows; empty if the situation was not recorded.
    pub ids: Vec<String>,
}

impl RecordedRecall {
    fn of(access: &Row) -> Self {
        let ids = access.get("ids").as_array().into_iter().flatten().filter_map(|id| id.as_str());
        RecordedRecall {
            at: access.text("created_at").unwrap_or_default().to_owned(),
            ids: ids.map(str::to_owned).collect(),
        }
    }

    /// Whether a row was recalled.
    pub fn holds(&self, id: &str) -> bool {
        self.ids.iter().any(|recorded| recorded == id)
    }
}

/// Situation of an access, with the ranking that it names.
fn situation_of_access(row: &Row, masked: bool) -> Option<Inquiry> {
    let ranking = Ranking::ALL.into_iter().find(|ranking| row.text("kind") == Some(ranking.name()));
    let given = |column: &str| row.text(column).filter(|text| !text.trim().is_empty() && !masked).map(str::to_owned);
    Some(Inquiry {
        text: Some(given("query")?),
        agent: given("agent_id"),
        user: given("user_id"),
        ..Inquiry::new(ranking.unwrap_or(Ranking::Boosted))
    })
}

/// Returns the entities that a ranking ranks.
pub fn recalled_kinds(ranking: Ranking) -> &'static [Entity] {
    match ranking {
        Ranking::Cases => &[Entity::Case],
        Ranking::Proven | Ranking::Boosted | Ranking::Similar => &[Entity::Memory, Entity::Episode],
    }
}

impl Screen for RecallScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("recall", ScreenKind::Recall, CommandScope::Recall)
    }

    /// Returns the commands for the footer: first the way to the reasons and back, if there are any.
    fn hints(&self) -> Vec<CommandId> {
        let pane = self.row().is_some().then_some(CommandId::Focus);
        let own = pane.into_iter().chain(command::hinted(CommandScope::Recall));
        own.chain([CommandId::Close, CommandId::Palette, CommandId::Refresh]).collect()
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        (id == CommandId::Focus).then_some(if self.reads { "ranking" } else { "why" })
    }

    fn zooms(&self) -> bool {
        self.has_panes()
    }

    fn row(&self) -> Option<&Row> {
        self.side().current().map(|item| &item.ranked.row)
    }

    fn twin(&self, cx: &Context) -> Vec<String> {
        let mut asked = self.asked(self.side());
        asked.user = asked.user.map(|user| cx.masking.person(&user));
        words(["recall"]).into_iter().chain(asked.words().iter().map(|word| quoted(word))).collect()
    }

    /// Takes over the situation of the selected row, if it has one.
    fn enter(&mut self, origin: &ScreenOrigin, cx: &mut Context) -> bool {
        let first = Ranking::ALL.into_iter().find(|ranking| can_rank(cx, *ranking).is_ok());
        let asked = situation_from(origin, cx);
        let followed = asked.is_some();
        let inquiry = asked.unwrap_or_else(|| Inquiry::new(first.unwrap_or(Ranking::Boosted)));
        self.left = RankingSide::new(RankingWay::plain(inquiry.ranking));
        self.inquiry = inquiry;
        let access = origin.row.as_ref().filter(|row| row.entity == Entity::Access && followed);
        self.recorded = access.map(RecordedRecall::of).unwrap_or_default();
        followed
    }

    fn opens_again(&self, origin: &ScreenOrigin, cx: &Context) -> bool {
        situation_from(origin, cx).is_some()
    }

    /// Another situation is ranked as the one before was.
    fn inherit(&mut self, earlier: &Self, here: bool) -> bool {
        if here {
            self.left = RankingSide::new(RankingWay::plain(earlier.left.way.ranking));
        }
        true
    }

    fn settle(&mut self, cx: &mut Context) {
        self.scroll = self.scroll.min(cx.last_line());
        self.ask(cx);
        self.read_lists(cx);
        cx.read_names_of(Entity::Agent, self.inquiry.agent.as_deref());
        cx.read_names_of(Entity::Subject, self.inquiry.user.as_deref());
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Recalling(doing) => {
                if let Some((_, known)) = self.waiting_mut(ticket).and_then(|side| side.pending.as_mut()) {
                    *known = doing;
                }
            }
            Reply::Recalled(result) => {
                if let Some(side) = self.waiting_mut(ticket) {
                    side.pending = None;
                    side.take(result.map(|answered| found(*answered)));
                    let (kinds, left) = (recalled_kinds(side.way.ranking), side.left_out());
                    for kind in kinds {
                        cx.read_names_of(*kind, left.iter().map(String::as_str));
                    }
                }
            }
            Reply::Page(result) => self.take_list(result, cx),
            Reply::Saved(result) => self.take_saved(result, cx),
            _ => {}
        }
    }

    fn can(&self, id: CommandId, cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::Recall(ask) => self.can_ask(ask, cx),
            CommandId::CopyCommand if !self.asked(self.side()).is_enough() => {
                Err(("this ranking has no situation yet".to_owned(), None))
            }
            CommandId::CopyCommand => can_rank(cx, self.side().way.ranking),
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Recall(ask) => self.give(ask, cx),
            CommandId::Zoom => self.zoomed = !self.zoomed,
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        if let Some((entity, id)) = self.selected() {
            cx.follow(Destination::Row(entity, id.to_owned()));
        }
    }

    /// Stops the running ranking, else closes what is open here.
    fn close(&mut self, cx: &mut Context) -> bool {
        if self.stop(cx) {
            cx.say(ToastTone::Info, "stopped");
        } else if self.zoomed {
            self.zoomed = false;
        } else if self.reads {
            self.reads = false;
        } else if self.right.take().is_some() {
            self.on_right = false;
        } else {
            return false;
        }
        true
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if self.reads {
            self.scroll = self.scroll.saturating_add_signed(by);
        } else {
            self.pick(self.side().selected.saturating_add_signed(by));
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
        self.row().is_some()
    }

    fn focus(&mut self, detail: bool) {
        self.reads = detail;
    }

    fn other_pane(&mut self, _cx: &Context) {
        self.reads = !self.reads;
    }

    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        self.take_line(purpose, text, cx);
    }

    fn judge(&self, prompt: &Prompt, _cx: &Context) -> Option<Judged> {
        self.judge_line(prompt.purpose, prompt.input.text().trim())
    }

    fn chosen(&mut self, choice: MenuChoice, cx: &mut Context) {
        if let MenuChoice::Recall(pick) = choice {
            self.picked(pick, cx);
        }
    }

    fn release(&mut self) -> Vec<Ticket> {
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

    /// Marks the data as out of date; it stays on screen until it is read again.
    fn forget(&mut self) {
        self.stale = true;
        self.sides_mut().for_each(|side| side.asked = None);
        self.wanted.extend(std::mem::take(&mut self.lists).into_keys());
        self.saved = None;
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn awaits_jump(&self) -> bool {
        self.side().pending.is_some() && self.row().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

/// An answer with the text for an agent.
fn found((answer, stages): (RecallAnswer, StageTimes)) -> FoundAnswer {
    let rows: Vec<ContextRow<'_>> = answer.rows.iter().map(RecalledItem::told).collect();
    let lessons = answer.request.inquiry.ranking == Ranking::Similar;
    let context = context(&rows, Budget { tokens: TOKENS, per_row: None }, lessons);
    FoundAnswer { answer, stages, context }
}
