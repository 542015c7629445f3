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

/// Most mentions stored with their sample; all are counted.
pub(super) const KEPT: usize = 10_000;

/// Counts of the mentions in one column, by certainty and treatment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PlaceTally {
    /// Mentions that certainly mean the person.
    pub certain: usize,
    /// Mentions that may mean the person.
    pub possible: usize,
    /// Left by choice.
    pub left: usize,
    /// Left because the table is outside the layout.
    pub outside: usize,
    /// Left because the requested decision is impossible.
    pub undone: usize,
    /// Redacted, or deleted with their row.
    pub done: usize,
    /// Number of left or outside mentions that were decided one by one.
    #[serde(skip)]
    pub singled: usize,
}

impl PlaceTally {
    /// Mentions left by a decision for all, or for a whole column.
    pub fn left_together(&self) -> usize {
        (self.left + self.outside).saturating_sub(self.singled)
    }

    /// Adds up several tallies.
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

/// Values of a column that could not be read or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadColumn {
    /// Reason for the first of these values.
    pub why: &'static str,
    /// Number of these values.
    pub count: usize,
}

/// Rows that stay and contain the id of a deleted row, in columns not declared to hold ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdWord {
    /// Rows in which the id is the entire text.
    pub whole: u64,
    /// Rows in which it is part of a text.
    pub texts: u64,
}

/// Findings of the full scan.
#[derive(Debug, Default)]
pub struct ScanFindings {
    /// Mentions in rows that stay.
    pub mentions: Vec<Mention>,
    /// Ids of deleted rows that may be other people's words, with their occurrences.
    pub id_words: BTreeMap<String, IdWord>,
    /// Number of ids of deleted rows that are such words and are not searched for.
    pub usual_ids: usize,
    /// Number of mentions by table and column, including those not stored.
    pub counted: BTreeMap<String, usize>,
    /// Decisions about the mentions, counted by table and column, including those not stored.
    pub tally: BTreeMap<String, PlaceTally>,
    /// Decisions that matched existing mentions.
    pub met: Met,
    /// Rows to delete because they mention the person, each with such a value.
    pub doomed: Vec<((TableName, Vec<FetchedValue>), TellingValue)>,
    /// The same for all rounds, by table.
    pub planned: BTreeMap<TableName, PlannedMentions>,
    /// Final number of rows deleted because they mention the person, or depend on such a row.
    pub gone_for_mentions: usize,
    /// Hits of each handle anywhere, including the person's own rows: the positive control.
    pub control: Vec<usize>,
    /// References to deleted rows that cannot be removed, by table and column.
    pub stuck: BTreeMap<String, usize>,
    /// Values that contain the id of a deleted row within a longer id, and are left, by table and column.
    pub parts: BTreeMap<String, usize>,
    /// References to be removed, by table and column.
    pub loosened: BTreeMap<String, usize>,
    /// Rows whose aggregate is to be recomputed.
    pub recompute: Vec<(Recompute, TableName, Vec<FetchedValue>)>,
    /// Elements removed from a canvas list, by row.
    pub removed: BTreeMap<String, usize>,
    /// Tables, views and the like whose definition names the person.
    pub structure: Vec<String>,
    /// Values that could not be read, and why, by table and column.
    pub unread: BTreeMap<String, UnreadColumn>,
    /// Our own job records that name the person or a deleted row: they are deleted too.
    pub forgotten: Vec<(TableName, Vec<FetchedValue>)>,
    /// Private values of our own audit trail that name the person or a deleted row.
    pub redacts: BTreeSet<(i64, String)>,
    /// Entries of our own audit trail that recorded a deleted row, or a row of the person: all their private values are
    /// removed.
    pub undone: BTreeSet<i64>,
    /// Hits in our other tables, which hold no personal values.
    pub ours: BTreeMap<String, usize>,
    /// Hits in the account that is kept.
    pub account: usize,
    /// Values computed from texts that lose words, left in place.
    pub old: OldDerived,
    /// Number of values read.
    pub values: u64,
    /// Traces found by the watch, if there was one.
    pub live: LiveTraces,
}

impl ScanFindings {
    /// Records a value that could not be read or changed.
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
