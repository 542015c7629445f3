//! Feedback that needs a look, one row after another, until none is left.
//!
//! Feedback that complains, corrects or contradicts its episode's outcome needs a look. It is done once its episode
//! gets a later signal, or a verdict is given in this session.

mod ahead;
pub(in crate::console) mod draw;
pub mod messages;

use std::collections::BTreeMap;

use ahead::VerdictAhead;
pub use messages::InboxVerdict;
use serde_json::{Map, Value};

use crate::change::operation::{FeedbackFields, Operation, SeenFeedback};
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Content, Context, Destination, Judged as Judgement, Lack, LayerOpening, Prompt, Purpose,
    Reply, Request, RequestFailure, RowKey, Screen, ScreenFace, ScreenKind, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::feedback::{RATING, THUMBS_DOWN, THUMBS_UP};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::invocation::filled;
use crate::memory::query::{Page, Query};
use crate::memory::utility::Signal;
use crate::memory::{Entity, Row};

/// Number of newest feedback rows that are checked.
pub const LOOKED_THROUGH: usize = 500;
/// Number of newest signals that show which feedback is done.
const SIGNALS: usize = 2_000;

/// A verdict that was given.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenVerdict {
    /// The feedback row.
    pub id: String,
    /// The verdict given.
    pub verdict: InboxVerdict,
    /// Number of the change's audit entry.
    pub seq: Option<i64>,
}

/// Rows that the inbox is reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InboxStage {
    /// The feedback.
    Feedback,
    /// The signals.
    Signals,
}

/// The focused pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InboxPane {
    /// The feedback.
    #[default]
    List,
    /// The conversation that it is about.
    Talk,
    /// Preview of a verdict.
    Verdict,
}

/// Verdicts that can be previewed, in the order of their tabs.
pub const LOOKED_AT: [InboxVerdict; 3] = [InboxVerdict::Right, InboxVerdict::Flipped, InboxVerdict::Removed];

/// The inbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InboxScreen {
    /// Rows that need a look, newest first.
    pub items: Vec<Row>,
    /// Position of the selected one.
    pub selected: usize,
    /// The focused pane.
    pub pane: InboxPane,
    /// Lines of the conversation that lie above.
    pub scroll: usize,
    /// Scroll position of the verdict's preview, in lines.
    pub verdict_scroll: usize,
    /// Verdict in the preview, by its position in [`LOOKED_AT`].
    pub looked_at: usize,
    /// Preview of the selected verdict.
    pub ahead: VerdictAhead,
    /// Rows read that need a look by their own content.
    found: Vec<Row>,
    /// Whether there is older feedback that was not checked.
    pub more: bool,
    /// They were read.
    pub filled: bool,
    /// Whether others wrote, or it was left, since the rows were read.
    aged: bool,
    /// Whether another row took the place of the selected one, which is gone, and nobody asked for a verdict or moved on since.
    slid: bool,
    /// The pending request, and the stage that it reads.
    pub pending: Option<(Ticket, InboxStage)>,
    /// Reason why the rows could not be read.
    pub failure: Option<RequestFailure>,
    /// Verdicts of this session.
    pub judged: Vec<GivenVerdict>,
    /// The verdict being planned or applied.
    pub waiting: Option<(String, InboxVerdict)>,
    /// Reason to record with the next verdict on the selected row.
    pub note: String,
    /// The episode of the selected row, with its id; its content is `None` if not found.
    pub episode: Option<(String, Option<Content>)>,
    /// Ticket of the episode while it is being read.
    pub pending_episode: Option<Ticket>,
    /// Episodes of rows that do not name theirs: those whose list of feedback contains the row.
    owners: BTreeMap<String, Option<String>>,
    /// Pending search for the episode of a row.
    pending_owner: Option<(Ticket, String)>,
    /// Whether the database has no signals, which would show verdicts.
    pub untold: bool,
}

/// Reason why a feedback row needs a look; `None` if it does not.
pub fn worth_a_look(row: &Row) -> Option<&'static str> {
    let has_correction = row.text("correction").is_some_and(|text| !text.trim().is_empty());
    match (row.text("kind").unwrap_or_default(), row.get("rating").as_i64()) {
        (THUMBS_UP, Some(1 | 2)) => Some("thumbs up with a low rating"),
        (THUMBS_UP, _) if has_correction => Some("thumbs up with a correction"),
        (THUMBS_UP, _) => None,
        (THUMBS_DOWN, Some(4 | 5)) => Some("thumbs down with a high rating"),
        (THUMBS_DOWN, _) if has_correction => Some("thumbs down with a correction"),
        (THUMBS_DOWN, _) => Some("thumbs down"),
        (RATING, None) => Some("a rating without a number"),
        (RATING, Some(rating)) if !(1..=5).contains(&rating) => Some("a rating out of range"),
        (RATING, Some(1 | 2)) => Some("a low rating"),
        _ if has_correction => Some("a correction"),
        _ => None,
    }
}

/// The query for the feedback to check.
pub fn feedback_query() -> Query {
    Query { limit: LOOKED_THROUGH, ..Query::new(Entity::Feedback) }
}

/// The query for the signals that show which feedback is done.
pub fn signals_query() -> Query {
    let columns = Some(vec!["id", "episode_id", "signal", "created_at"]);
    Query { limit: SIGNALS, columns, ..Query::new(Entity::UtilityEvent) }
}

/// Filters feedback that needs a look, leaving out rows whose episode has a later signal.
pub fn untold<'r>(found: &'r [Row], signals: &[Row]) -> impl Iterator<Item = &'r Row> {
    let mut latest: BTreeMap<String, String> = BTreeMap::new();
    for signal in signals {
        if let (Some(episode), Some(at)) = (signal.text("episode_id"), signal.text("created_at")) {
            let known = latest.entry(episode.to_owned()).or_default();
            if at > known.as_str() {
                at.clone_into(known);
            }
        }
    }
    found.iter().filter(move |row| {
        let told = row.text("episode_id").and_then(|id| latest.get(id));
        told.zip(row.text("created_at")).is_none_or(|(told, said)| told.as_str() <= said)
    })
}

enum FeedbackOwner {
    /// An episode's.
    Episode(String),
    /// No episode has it.
    Nobody,
    /// The search has not been made yet.
    Unknown,
}

impl InboxScreen {
    /// The selected row.
    pub fn current(&self) -> Option<&Row> {
        self.items.get(self.selected)
    }

    /// Number of verdicts in this session, and that plus the number of remaining rows.
    pub fn progress(&self) -> (usize, usize) {
        (self.judged.len(), self.judged.len() + self.items.len())
    }

    fn owner(&self) -> FeedbackOwner {
        let Some(row) = self.current() else { return FeedbackOwner::Nobody };
        if let Some(id) = row.text("episode_id") {
            return FeedbackOwner::Episode(id.to_owned());
        }
        match self.owners.get(row.id()) {
            Some(Some(id)) => FeedbackOwner::Episode(id.clone()),
            Some(None) => FeedbackOwner::Nobody,
            None => FeedbackOwner::Unknown,
        }
    }

    /// Searches for the episode whose list of feedback contains the selected row.
    fn seek_owner(&mut self, cx: &mut Context) {
        let Some(id) = self.current().map(|row| row.id().to_owned()) else { return };
        if self.pending_owner.as_ref().is_some_and(|(_, sought)| *sought == id) {
            return;
        }
        self.episode = None;
        cx.cancel(self.pending_owner.take().map(|(ticket, _)| ticket));
        cx.cancel(self.pending_episode.take());
        let filter = Filter::new("feedback_ids", Operator::Has, Operand::Text(id.clone()));
        let columns = Some(vec!["id"]);
        let query = Query { limit: 1, columns, filters: vec![filter], ..Query::new(Entity::Episode) };
        self.pending_owner = Some((cx.ask(Request::LoadPage(Box::new(query))), id));
    }

    fn read_episode(&mut self, cx: &mut Context) {
        let wanted = match self.owner() {
            FeedbackOwner::Unknown => return self.seek_owner(cx),
            FeedbackOwner::Nobody => None,
            FeedbackOwner::Episode(id) => Some(id),
        };
        if wanted.as_deref() == self.episode.as_ref().map(|(id, _)| id.as_str()) {
            return;
        }
        cx.cancel(self.pending_episode.take());
        self.episode = wanted.clone().map(|id| (id, None));
        self.pending_episode = wanted.map(|id| cx.ask(Request::LoadDetail(Entity::Episode, RowKey::of_id(&id))));
    }

    fn take_page(&mut self, ticket: Ticket, result: Result<Page, RequestFailure>, cx: &mut Context) {
        if let Some((_, id)) = self.pending_owner.take_if(|(waiting, _)| *waiting == ticket) {
            let found = result.ok().and_then(|page| page.rows.first().map(|row| row.id().to_owned()));
            self.owners.insert(id, found);
            return;
        }
        let keeps_signals = cx.holds(Entity::UtilityEvent).is_ok();
        self.untold = !keeps_signals;
        match (self.pending.take(), result) {
            (None, _) => {}
            // If rereading fails, the old rows are kept.
            (Some(_), Err(_)) if self.filled => {}
            (Some(_), Err(failure)) => self.failure = Some(failure),
            (Some((_, InboxStage::Signals)), Ok(page)) => self.fill(&page.rows, cx),
            (Some((_, InboxStage::Feedback)), Ok(page)) => {
                self.more = page.next.is_some();
                self.found = page.rows.into_iter().filter(|row| worth_a_look(row).is_some()).collect();
                if keeps_signals && !self.found.is_empty() {
                    self.read(signals_query(), InboxStage::Signals, cx);
                } else {
                    self.fill(&[], cx);
                }
            }
        }
    }

    /// Reads rows; if they were read before, at a time when that costs little.
    fn read(&mut self, query: Query, stage: InboxStage, cx: &mut Context) {
        let request = Request::LoadPage(Box::new(query));
        self.pending = Some((if self.filled { cx.renew(request) } else { cx.ask(request) }, stage));
    }

    /// Checks that a verdict can be given on the selected row.
    pub(in crate::console) fn can_judge(&self, verdict: InboxVerdict, cx: &Context) -> Result<(), &'static str> {
        let row = self.current().ok_or("nothing is left to review")?;
        let kind = row.text("kind").unwrap_or_default();
        match verdict {
            InboxVerdict::Flipped if ![THUMBS_UP, THUMBS_DOWN].contains(&kind) => Err("only thumbs can be flipped"),
            InboxVerdict::Right if cx.holds(Entity::UtilityEvent).is_ok() && row.text("episode_id").is_none() => {
                Err("it belongs to no episode")
            }
            _ => Ok(()),
        }
    }

    fn give(&mut self, verdict: InboxVerdict, cx: &mut Context) {
        let Some(row) = self.current().cloned().filter(|_| cx.changing.pending.is_none()) else { return };
        if std::mem::take(&mut self.slid) {
            return cx.say(
                ToastTone::Warn,
                "the row that you looked at is no longer here: this is another one; press it again for this one",
            );
        }
        let id = row.id().to_owned();
        match self.operation(&row, verdict, cx) {
            Some(operation) => {
                self.waiting = Some((id, verdict));
                cx.propose(operation);
            }
            None if verdict == InboxVerdict::Edited => cx.show(LayerOpening::Edit(Box::new(row))),
            None => {
                self.note_verdict(id, verdict, None);
                if verdict == InboxVerdict::Right {
                    cx.say(ToastTone::Info, "noted for this session only, because this database keeps no signals");
                }
            }
        }
    }

    /// Returns the operation of a verdict on a row; `None` if the verdict itself changes nothing in the database.
    fn operation(&self, row: &Row, verdict: InboxVerdict, cx: &Context) -> Option<Operation> {
        let id = row.id().to_owned();
        let edit = |kind: &str, rating: Option<i64>| {
            let fields = FeedbackFields { kind: Some(kind.to_owned()), rating, ..FeedbackFields::default() };
            let (set, instead_of) = (fields.values(), seen(row));
            Operation::Edit { entity: row.entity, id: id.clone(), set, instead_of }
        };
        Some(match verdict {
            InboxVerdict::Later | InboxVerdict::Edited => return None,
            InboxVerdict::Right if cx.holds(Entity::UtilityEvent).is_err() => return None,
            InboxVerdict::Right => {
                let episode = row.text("episode_id").unwrap_or_default().to_owned();
                let reason = Some(self.note.clone()).filter(|note| !note.is_empty());
                let feedback = SeenFeedback { id, values: seen(row) };
                Operation::Signal { episode, signal: meant(row), reason, feedback: Some(feedback) }
            }
            InboxVerdict::Flipped if row.text("kind") == Some(THUMBS_UP) => edit(THUMBS_DOWN, None),
            InboxVerdict::Flipped => edit(THUMBS_UP, None),
            InboxVerdict::Rated(rating) => edit(RATING, Some(i64::from(rating))),
            InboxVerdict::Removed => Operation::Remove { entity: row.entity, ids: vec![id] },
        })
    }

    /// The previewed verdict.
    pub fn verdict_ahead(&self) -> InboxVerdict {
        LOOKED_AT.get(self.looked_at).copied().unwrap_or(InboxVerdict::Right)
    }

    /// Previews the verdict if it can be given at all.
    fn look_ahead(&mut self, cx: &mut Context) {
        let Some(row) = self.current().cloned() else { return };
        let verdict = self.verdict_ahead();
        let operation = self.can_judge(verdict, cx).ok().and_then(|()| self.operation(&row, verdict, cx));
        self.ahead.look_at(row.id(), verdict, || operation, cx);
    }

    /// Takes the rows found, without those that are done.
    fn fill(&mut self, signals: &[Row], cx: &mut Context) {
        let before = self.current().cloned();
        let judged = |row: &Row| self.judged.iter().any(|judged| judged.id == row.id());
        self.items = untold(&self.found, signals).filter(|row| !judged(row)).cloned().collect();
        self.filled = true;
        cx.read_names(&self.items);
        let is_it = |row: &Row| before.as_ref().is_some_and(|before| row.id() == before.id());
        let again = self.items.iter().position(is_it);
        self.selected = again.unwrap_or(self.selected.min(self.items.len().saturating_sub(1)));
        if before.is_some() && self.current() != before.as_ref() {
            self.ahead.doubt();
        }
        if before.is_some() && again.is_none() {
            self.note.clear();
            self.slid = self.waiting.is_none() && !self.items.is_empty();
            if self.slid {
                cx.say(ToastTone::Info, "the row that you looked at is no longer here");
            }
        }
    }

    /// Notes a verdict and continues to the next row.
    fn note_verdict(&mut self, id: String, verdict: InboxVerdict, seq: Option<i64>) {
        self.items.retain(|row| row.id() != id);
        self.selected = self.selected.min(self.items.len().saturating_sub(1));
        self.note.clear();
        self.judged.push(GivenVerdict { id, verdict, seq });
    }
}

impl Screen for InboxScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("inbox", ScreenKind::Inbox, CommandScope::Inbox)
    }

    fn row(&self) -> Option<&Row> {
        self.current()
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        match self.current() {
            Some(row) => vec![filled("show feedback $id", &[row.id()])],
            None => words(["list", "feedback"]),
        }
    }

    fn shows_past(&self) -> bool {
        true
    }

    /// A new inbox knows the verdicts that were given in an earlier one.
    fn inherit(&mut self, earlier: &Self, _here: bool) -> bool {
        self.judged.clone_from(&earlier.judged);
        true
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.failure.is_some() {
            return;
        }
        if self.pending.is_none() && (!self.filled || std::mem::take(&mut self.aged)) {
            self.read(feedback_query(), InboxStage::Feedback, cx);
        }
        if self.filled {
            if cx.holds(Entity::Episode).is_ok() {
                self.read_episode(cx);
            }
            self.look_ahead(cx);
        }
    }

    fn others_wrote(&mut self, _cx: &mut Context) -> bool {
        self.aged = true;
        true
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Page(result) => self.take_page(ticket, result, cx),
            Reply::Detail(result) => {
                self.pending_episode = None;
                if let (Ok(content), Some((_, place))) = (result, &mut self.episode) {
                    *place = content;
                }
            }
            other => self.ahead.take(ticket, other, cx),
        }
    }

    fn elapsed(&mut self, ticket: Ticket, cx: &mut Context) {
        self.ahead.rested(ticket, cx);
    }

    fn can(&self, id: CommandId, cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::Judge(verdict) => self.can_judge(verdict, cx).map_err(|reason| (reason.to_owned(), None)),
            CommandId::Note if self.current().is_none() => Err(("nothing is left to review".to_owned(), None)),
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Judge(verdict) => self.give(verdict, cx),
            CommandId::Note => cx.prompt(Purpose::Note, &self.note),
            CommandId::LookLonger => self.ahead.look_longer(cx),
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        if let Some(row) = self.current() {
            cx.follow(Destination::Row(row.entity, row.id().to_owned()));
        }
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        match self.pane {
            InboxPane::List => self.select(self.selected.saturating_add_signed(by)),
            InboxPane::Talk | InboxPane::Verdict => self.scroll_by(by, cx),
        }
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        let scroll = if self.pane == InboxPane::Verdict { &mut self.verdict_scroll } else { &mut self.scroll };
        *scroll = scroll.saturating_add_signed(by).min(cx.last_line());
    }

    fn page(&self, cx: &Context) -> usize {
        if self.pane == InboxPane::List { cx.measures.list_rows } else { cx.measures.detail_rows }
    }

    fn has_panes(&self) -> bool {
        true
    }

    fn focus(&mut self, detail: bool) {
        self.pane = if detail { InboxPane::Talk } else { InboxPane::List };
    }

    fn other_pane(&mut self, _cx: &Context) {
        self.pane = match self.pane {
            InboxPane::List => InboxPane::Talk,
            InboxPane::Talk => InboxPane::Verdict,
            InboxPane::Verdict => InboxPane::List,
        };
    }

    fn has_tabs(&self, cx: &Context) -> bool {
        draw::shows_verdict(self, cx.size)
    }

    /// Previews the next verdict.
    fn turn_tab(&mut self, by: isize) {
        let count = LOOKED_AT.len() as isize;
        self.show_tab((self.looked_at as isize + by).rem_euclid(count) as usize);
    }

    fn show_tab(&mut self, tab: usize) {
        (self.looked_at, self.verdict_scroll) = (tab.min(LOOKED_AT.len() - 1), 0);
    }

    fn close(&mut self, _cx: &mut Context) -> bool {
        let stepped = self.pane != InboxPane::List;
        self.pane = InboxPane::List;
        stepped
    }

    /// A note belongs to the row that it was written for.
    fn select(&mut self, position: usize) {
        let position = position.min(self.items.len().saturating_sub(1));
        if position != self.selected {
            (self.selected, self.scroll, self.verdict_scroll, self.slid) = (position, 0, 0, false);
            self.note.clear();
        }
    }

    fn written(&mut self, purpose: Purpose, text: &str, _cx: &mut Context) {
        if purpose == Purpose::Note {
            text.clone_into(&mut self.note);
        }
    }

    fn judge(&self, prompt: &Prompt, _cx: &Context) -> Option<Judgement> {
        let told = "goes with the next verdict as its reason";
        (prompt.purpose == Purpose::Note).then(|| (Ok(told.to_owned()), Vec::new()))
    }

    fn reason(&self) -> Option<&str> {
        Some(&self.note)
    }

    fn edited(&mut self, id: &str) {
        self.waiting = Some((id.to_owned(), InboxVerdict::Edited));
    }

    /// The verdict that requested the change is given, or taken back.
    fn changed(&mut self, operation: &Operation, entry: Option<i64>) {
        if let Operation::Undo { seq } = operation {
            self.judged.retain(|judged| judged.seq != Some(*seq));
        } else if let Some((id, verdict)) = self.waiting.take() {
            self.note_verdict(id, verdict, entry);
        }
        self.ahead.doubt();
    }

    /// No verdict is given.
    fn refused(&mut self) {
        self.waiting = None;
    }

    fn release(&mut self) -> Vec<Ticket> {
        let rows = self.pending.take().map(|(ticket, _)| ticket);
        let owner = self.pending_owner.take().map(|(ticket, _)| ticket);
        let waited = [rows, owner, self.pending_episode.take()].into_iter().flatten();
        waited.chain(self.ahead.release()).collect()
    }

    fn forget(&mut self) {
        (self.filled, self.aged) = (false, false);
        self.failure = None;
        self.episode = None;
        self.owners.clear();
    }

    fn awaits_jump(&self) -> bool {
        self.pending.is_some() && self.current().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(self, cx, canvas);
    }
}

/// The values of a row that decide about a verdict.
fn seen(row: &Row) -> Map<String, Value> {
    ["kind", "rating"].map(|column| (column.to_owned(), row.get(column).clone())).into_iter().collect()
}

/// The signal that corresponds to a feedback row.
pub fn meant(row: &Row) -> Signal {
    let has_correction = row.text("correction").is_some_and(|text| !text.trim().is_empty());
    let score = crate::memory::feedback::score(row.text("kind").unwrap_or_default(), row.get("rating").as_i64());
    match score {
        _ if has_correction => Signal::Corrected,
        Some(score) if score < 0.0 => Signal::Rejected,
        Some(_) => Signal::Confirmed,
        None => Signal::Corrected,
    }
}
