//! One ranking of a situation: its method, its question, its answer.

use super::RankingWay;
use crate::console::core::{RequestFailure, Ticket};
use crate::memory::Entity;
use crate::recall::answer::{RecallAnswer, RecalledItem, StageTimes};
use crate::recall::context::RecallContext;
use crate::recall::inquiry::Inquiry;
use crate::recall::rank::LeftOut;

/// An answer, and the text for an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundAnswer {
    /// The rows with their scores.
    pub answer: RecallAnswer,
    /// Time that each stage took.
    pub stages: StageTimes,
    /// The text for an agent.
    pub context: RecallContext,
}

/// One ranking of the situation.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingSide {
    /// Ranking of this side.
    pub way: RankingWay,
    /// The last inquiry; its answer may be pending.
    pub asked: Option<Inquiry>,
    /// The pending request, and its current step.
    pub pending: Option<(Ticket, &'static str)>,
    /// The last answer.
    pub found: Option<Box<FoundAnswer>>,
    /// Reason why there is no answer.
    pub failure: Option<RequestFailure>,
    /// Position of the selected row.
    pub selected: usize,
}

impl RankingSide {
    pub(in crate::console) fn new(way: RankingWay) -> Self {
        RankingSide { way, asked: None, pending: None, found: None, failure: None, selected: 0 }
    }

    /// The rows in order.
    pub fn rows(&self) -> &[RecalledItem] {
        self.found.as_ref().map_or(&[], |found| &found.answer.rows)
    }

    /// The selected row.
    pub fn current(&self) -> Option<&RecalledItem> {
        self.rows().get(self.selected)
    }

    /// Place of a row, from 0.
    pub fn place_of(&self, entity: Entity, id: &str) -> Option<usize> {
        self.rows().iter().position(|item| item.ranked.row.entity == entity && item.ranked.row.id() == id)
    }

    /// Finds the reason why a row was left out, if known.
    pub fn why_not(&self, id: &str) -> Option<&LeftOut> {
        self.found.as_ref()?.answer.left_out.iter().find(|left| left.id == id)
    }

    /// Ids of the rows left out.
    pub fn left_out(&self) -> Vec<String> {
        let left = self.found.iter().flat_map(|found| &found.answer.left_out);
        left.map(|left| left.id.clone()).collect()
    }

    /// Whether the shown answer is about to be replaced.
    pub fn is_stale(&self) -> bool {
        self.pending.is_some() || self.failure.is_some()
    }

    pub(in crate::console) fn select(&mut self, position: usize) {
        self.selected = position.min(self.rows().len().saturating_sub(1));
    }

    /// Takes an answer; the same row stays selected.
    pub(in crate::console) fn take(&mut self, result: Result<FoundAnswer, RequestFailure>) {
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
