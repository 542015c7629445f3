//! The first screen: what it looks at, what stands out of it, and where its entries lead.

use std::collections::BTreeMap;

use super::condition::Conditions;
use super::message::Destination;
use super::model::Model;
use super::place::{Home, View};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};

/// Episodes that the first screen looks at.
pub const RECENT: usize = 400;
/// Of them, those that it lists.
pub const RECENT_SHOWN: usize = 100;
/// A utility below this is low: two rejections away from where it starts.
const LOW_UTILITY: f64 = 0.2;

/// Something worth looking at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Standout {
    /// How many of the newest episodes.
    pub count: usize,
    /// What they are.
    pub text: &'static str,
    /// Where to see them.
    pub to: Destination,
}

/// The question for the newest episodes.
#[must_use]
pub fn recent_query() -> Query {
    let columns = vec!["id", "title", "started_at", "outcome", "status", "feedback_score", "utility"];
    Query { limit: RECENT, columns: Some(columns), preview: Some(120), ..Query::new(Entity::Episode) }
}

impl Home {
    /// The newest episodes, as far as they were read.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        self.recent.as_ref().map_or(&[], |page| &page.rows)
    }

    /// Outcomes of the newest episodes by how often they came, the most frequent first.
    #[must_use]
    pub fn outcomes(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.rows() {
            *counts.entry(row.text("outcome").unwrap_or("unknown")).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    /// What of the newest episodes is worth looking at first.
    #[must_use]
    pub fn standouts(&self) -> Vec<Standout> {
        let list = |column: &'static str, op: Operator, value: Operand| {
            let filters = vec![Filter { column, op, value }];
            Destination::List(Entity::Episode, Conditions { filters, canvas: None })
        };
        let count = |holds: &dyn Fn(&Row) -> bool| self.rows().iter().filter(|row| holds(row)).count();
        let below = |column: &'static str, limit: f64| {
            count(&|row: &Row| row.number(column).is_some_and(|value| value < limit))
        };
        let unreadable = |row: &&Row| !row.problems.is_empty();
        let mut found = vec![
            Standout {
                count: count(&|row: &Row| row.text("outcome") == Some("failure")),
                text: "failed",
                to: list("outcome", Operator::Equal, Operand::Text("failure".to_owned())),
            },
            Standout {
                count: below("feedback_score", 0.0),
                text: "were disliked",
                to: list("feedback_score", Operator::Less, Operand::Integer(0)),
            },
            Standout {
                count: below("utility", LOW_UTILITY),
                text: "have a low utility",
                to: list("utility", Operator::Less, Operand::Real(LOW_UTILITY)),
            },
        ];
        if let Some(first) = self.rows().iter().find(unreadable) {
            let count = self.rows().iter().filter(unreadable).count();
            let to = Destination::Row(Entity::Episode, first.id().to_owned());
            found.push(Standout { count, text: "hold something that cannot be read; see the newest", to });
        }
        found.retain(|standout| standout.count > 0);
        found
    }
}

impl Model {
    /// Where the entries of the first screen lead: entities that are there, what stands out, the newest episodes.
    #[must_use]
    pub fn home_entries(&self) -> Vec<Destination> {
        let held = Entity::ALL.iter().filter(|entity| self.holds(**entity).is_ok());
        let mut entries: Vec<Destination> = held.map(|e| Destination::List(*e, Conditions::default())).collect();
        if let View::Home(home) = &self.history.here().view {
            entries.extend(home.standouts().into_iter().map(|standout| standout.to));
            let recent = home.rows().iter().take(RECENT_SHOWN);
            entries.extend(recent.map(|row| Destination::Row(Entity::Episode, row.id().to_owned())));
        }
        entries
    }
}
