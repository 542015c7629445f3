//! Findings about a person from the scan of every text.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::derived::OldDerived;
use super::live_traces::LiveTraces;
use super::mention::{Mention, Met};
use super::planned_mentions::{PlannedMentions, TellingValue};
use crate::layout::erase::Recompute;
use crate::memory::agreeing;
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;

/// Mentions that are kept with their sample; all are counted.
pub(super) const KEPT: usize = 10_000;

/// Counts of the mentions at one place: how sure they are, and what happens to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PlaceTally {
    /// They mean the person.
    pub certain: usize,
    /// They may.
    pub possible: usize,
    /// Left by choice.
    pub left: usize,
    /// Left because the table is outside the layout.
    pub outside: usize,
    /// Left although something else was asked for: it cannot be done.
    pub undone: usize,
    /// Redacted, or gone with their row.
    pub done: usize,
    /// Number of those left or outside that were decided one by one.
    #[serde(skip)]
    pub singled: usize,
}

impl PlaceTally {
    /// Those that a decision for all, or for all of a column, leaves.
    #[must_use]
    pub fn left_together(&self) -> usize {
        (self.left + self.outside).saturating_sub(self.singled)
    }

    /// The sum over several places.
    #[must_use]
    pub fn all<'t>(tallies: impl IntoIterator<Item = &'t PlaceTally>) -> PlaceTally {
        tallies.into_iter().fold(PlaceTally::default(), |sum, one| PlaceTally {
            certain: sum.certain + one.certain,
            possible: sum.possible + one.possible,
            left: sum.left + one.left,
            outside: sum.outside + one.outside,
            undone: sum.undone + one.undone,
            done: sum.done + one.done,
            singled: sum.singled + one.singled,
        })
    }
}

/// Values of a column that could not be looked into, or not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadColumn {
    /// Reason for the first of these values.
    pub why: &'static str,
    /// Number of these values.
    pub count: usize,
}

/// Rows that stay and hold an id of a row that goes where nothing says that ids are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdWord {
    /// Rows in which it is all of a text.
    pub whole: u64,
    /// Rows in which it is part of one.
    pub texts: u64,
}

/// Findings of the pass over everything.
#[derive(Debug, Default)]
pub struct ScanFindings {
    /// Mentions in rows that stay.
    pub mentions: Vec<Mention>,
    /// Ids of rows that go and may be words of others, in small letters, and where they stand.
    pub id_words: BTreeMap<String, IdWord>,
    /// Number of ids of rows that go which are such words, and are not looked for.
    pub usual_ids: usize,
    /// Number of mentions by table and column; includes those that are not kept.
    pub counted: BTreeMap<String, usize>,
    /// Decisions about the mentions, counted by table and column; includes those that are not kept.
    pub tally: BTreeMap<String, PlaceTally>,
    /// Decisions that were about existing mentions.
    pub met: Met,
    /// Rows that go because they mention the person, each with a value that does.
    pub doomed: Vec<((TableName, Vec<FetchedValue>), TellingValue)>,
    /// The same of all rounds, by table.
    pub planned: BTreeMap<TableName, PlannedMentions>,
    /// Number of rows that go in the end because they mention the person, or depend on such a row.
    pub gone_for_mentions: usize,
    /// Hits of each handle anywhere, also in the person's own rows: the positive control.
    pub control: Vec<usize>,
    /// References to rows that go which cannot be removed, by table and column.
    pub stuck: BTreeMap<String, usize>,
    /// References that go, by table and column.
    pub loosened: BTreeMap<String, usize>,
    /// Rows whose aggregate is to be made again.
    pub recompute: Vec<(Recompute, TableName, Vec<FetchedValue>)>,
    /// Elements removed from a canvas list, by row.
    pub removed: BTreeMap<String, usize>,
    /// Tables, views and the like whose definition names the person.
    pub structure: Vec<String>,
    /// Values that could not be read, and why, by table and column.
    pub unread: BTreeMap<String, UnreadColumn>,
    /// Rows of our own records of jobs that name the person or a row that goes: they go too.
    pub forgotten: Vec<(TableName, Vec<FetchedValue>)>,
    /// Private values of our own audit trail that name the person or a row that goes.
    pub redacts: BTreeSet<(i64, String)>,
    /// Entries of our own audit trail that kept what a row that goes was, or a row of the person: all their private values
    /// go.
    pub undone: BTreeSet<i64>,
    /// Hits in other tables of ours, which hold no personal values.
    pub ours: BTreeMap<String, usize>,
    /// Hits in the account that is kept.
    pub account: usize,
    /// Values computed from texts that lose words, which stay.
    pub old: OldDerived,
    /// Values read.
    pub values: u64,
    /// Traces that the watch saw, where there was one.
    pub live: LiveTraces,
}

impl ScanFindings {
    /// Notes a value that could not be looked into, or not be changed.
    pub fn not_looked_into(&mut self, place: String, why: &'static str) {
        self.unread.entry(place).or_insert(UnreadColumn { why, count: 0 }).count += 1;
    }

    /// Describes, by column, the values that could not be searched or changed.
    pub fn unread_words(&self) -> impl Iterator<Item = String> + '_ {
        let words = |(place, unread): (&String, &UnreadColumn)| {
            agreeing(
                unread.count,
                &format!("{place}: {{#}} {{value was left unchanged|values were left unchanged}}: {}", unread.why),
            )
        };
        self.unread.iter().map(words)
    }
}
