//! The first screen: what it looks at, what stands out of it, and where its entries lead.

pub(in crate::console) mod draw;

use std::collections::BTreeMap;

use crate::console::core::columns::read_columns;
use crate::console::core::command::CommandId;
use crate::console::core::condition::Conditions;
use crate::console::core::context::Context;
use crate::console::core::message::{Destination, RequestFailure, Ticket};
use crate::console::core::request::{Reply, Request};
use crate::console::core::screen::{Screen, ScreenFace};
use crate::console::core::twin::words;
use crate::console::view::Canvas;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{Page, Query};
use crate::memory::{Entity, Row};

/// What the first screen looks at: the first of these that the database holds.
const LOOKED_AT: [Entity; 4] = [Entity::Episode, Entity::Case, Entity::Memory, Entity::WorkflowEvent];
/// Rows that it looks at.
pub const RECENT: usize = 400;
/// Of them, those that it lists.
pub const RECENT_SHOWN: usize = 100;
/// A utility or reward below this is low: for a utility, more than one rejection away from where it starts.
const LOW: f64 = 0.2;

/// Something worth looking at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Standout {
    /// How many of the newest rows.
    pub count: usize,
    /// What they are.
    pub text: &'static str,
    /// Where to see them.
    pub to: Destination,
}

/// The question for the newest rows of what the first screen looks at.
#[must_use]
pub fn recent_query(entity: Entity) -> Query {
    const PREVIEW: usize = 120;
    let columns = match entity {
        Entity::Episode => vec!["id", "title", "started_at", "outcome", "status", "feedback_score", "utility"],
        _ => read_columns(entity),
    };
    Query { limit: RECENT, columns: Some(columns), preview: Some(PREVIEW), ..Query::new(entity) }
}

/// The first screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HomeScreen {
    /// The newest rows of what it looks at.
    pub recent: Option<Page>,
    /// They are being waited for.
    pub pending: Option<Ticket>,
    /// Why they could not be read.
    pub failure: Option<RequestFailure>,
    /// The selected entry: what is unfinished, entities that are there, findings, what stands out, the newest rows.
    pub selected: usize,
    /// Unfinished erasures that stood before all others when that was known last.
    begun: usize,
}

impl HomeScreen {
    /// Where the entries lead: erasures that are unfinished, entities that are there, the worst findings, what stands out,
    /// the newest rows.
    #[must_use]
    pub fn entries(&self, cx: &Context) -> Vec<Destination> {
        let begun = cx.changing.begun().iter().map(|begun| Destination::Erase(begun.given.clone()));
        let held = cx.held().map(|entity| Destination::List(entity, Conditions::default()));
        let worst = cx.health.worst().into_iter().map(|(f, _)| Destination::Finding(f.kind, f.entity));
        let standouts = self.standouts().into_iter().map(|standout| standout.to);
        let recent = self.rows().iter().take(RECENT_SHOWN);
        let recent = recent.map(|row| Destination::Row(row.entity, row.id().to_owned()));
        begun.chain(held).chain(worst).chain(standouts).chain(recent).collect()
    }

    /// Unfinished erasures stand before all others: the selected entry stays selected when there are more of them.
    fn keep_selected(&mut self, cx: &Context) {
        let Some(found) = &cx.changing.unfinished else { return };
        if self.selected > 0 && self.selected >= self.begun {
            self.selected = self.selected - self.begun + found.len();
        }
        self.begun = found.len();
    }

    /// The newest rows, as far as they were read.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        self.recent.as_ref().map_or(&[], |page| &page.rows)
    }

    /// Outcomes of the newest rows by how often they came, the most frequent first; none where none is known.
    #[must_use]
    pub fn outcomes(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.rows() {
            *counts.entry(row.text("outcome").unwrap_or("unknown")).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if matches!(counts.as_slice(), [("unknown", _)]) { Vec::new() } else { counts }
    }

    /// The newest rows that are worth looking at first.
    #[must_use]
    pub fn standouts(&self) -> Vec<Standout> {
        let Some(entity) = self.rows().first().map(|row| row.entity) else { return Vec::new() };
        let count = |holds: &dyn Fn(&Row) -> bool| self.rows().iter().filter(|row| holds(row)).count();
        let listed = |text: &'static str, count: usize, filter: Filter| {
            let conditions = Conditions { filters: vec![filter], canvas: None };
            Standout { count, text, to: Destination::List(entity, conditions) }
        };
        let below = |text: &'static str, column: &'static str, limit: f64| {
            let low = |row: &Row| row.number(column).is_some_and(|value| value < limit);
            listed(text, count(&low), Filter { column, op: Operator::Less, value: Operand::Real(limit) })
        };
        let failure = Filter { column: "outcome", op: Operator::Equal, value: Operand::Text("failure".to_owned()) };
        let mut found = vec![
            listed("failed", count(&|row: &Row| row.text("outcome") == Some("failure")), failure),
            below("were disliked", "feedback_score", 0.0),
            below("have a low utility", "utility", LOW),
            below("have a low reward", "reward", LOW),
        ];
        let unreadable = |row: &&Row| !row.problems.is_empty();
        if let Some(first) = self.rows().iter().find(unreadable) {
            let count = self.rows().iter().filter(unreadable).count();
            let to = Destination::Row(entity, first.id().to_owned());
            found.push(Standout { count, text: "hold something that cannot be read; see the newest", to });
        }
        found.retain(|standout| standout.count > 0);
        found
    }
}

/// What the first screen looks at, if the database holds any of it.
#[must_use]
pub fn looked_at(cx: &Context) -> Option<Entity> {
    LOOKED_AT.into_iter().find(|entity| cx.holds(*entity).is_ok())
}

impl Screen for HomeScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::shared("home", CommandId::Home)
    }

    fn hints(&self) -> Vec<CommandId> {
        vec![CommandId::Open, CommandId::Palette, CommandId::Refresh]
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["status"])
    }

    fn settle(&mut self, cx: &mut Context) {
        self.keep_selected(cx);
        if self.pending.is_some() {
            return;
        }
        let unread = self.recent.is_none() && self.failure.is_none();
        if let Some(entity) = looked_at(cx).filter(|_| unread) {
            self.pending = Some(cx.ask(Request::LoadPage(Box::new(recent_query(entity)))));
            return;
        }
        cx.read_status();
        cx.read_unfinished();
        if cx.status.is_some() || cx.status_failure.is_some() {
            cx.look(true);
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        let Reply::Page(result) = reply else { return };
        self.pending = None;
        match result {
            Ok(page) => self.recent = Some(page),
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn open(&mut self, cx: &mut Context) {
        if let Some(to) = self.entries(cx).into_iter().nth(self.selected) {
            cx.follow(to);
        }
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        let last = cx.measures.home_entries.saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    fn page(&self, _cx: &Context) -> usize {
        10
    }

    fn select(&mut self, position: usize) {
        self.selected = position;
    }

    fn is_at(&self, position: usize) -> bool {
        self.selected == position
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().into_iter().collect()
    }

    fn forget(&mut self) {
        (self.recent, self.failure) = (None, None);
    }

    fn shows_findings(&self) -> bool {
        true
    }

    fn is_reading(&self) -> bool {
        self.pending.is_some()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
