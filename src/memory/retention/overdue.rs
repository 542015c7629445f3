//! Rows that the rules no longer keep, in any number.

use std::io;

use super::{ReadRule, RuleFit, owner};
use crate::memory::Row;
use crate::memory::digest::digest;
use crate::memory::first_of::FirstOf;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{RecordSorter, in_order, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::time::{self, EpochUnit};

/// Bytes of each kind of record in memory.
const HELD: usize = 8 << 20;

/// Replaces the time of a use that cannot be read: it may be the last one.
pub(super) const SOME_TIME: &str = "";

/// The same as a number.
const UNREAD: i64 = i64::MAX;

/// Times when rows were last used.
#[derive(Debug)]
pub struct LastUses(RecordSorter<2>);

/// The same, for look-ups.
#[derive(Debug)]
pub struct KnownUses(IdTable<2>);

impl LastUses {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        LastUses::within(HELD, space)
    }

    pub(super) fn within(bytes: usize, space: MakeSpace) -> Self {
        LastUses(RecordSorter::new(space).within(bytes))
    }

    /// Adds a use of a row at a canonical time; an empty one, or a placeholder, is unknown.
    pub fn add(&mut self, id: &str, at: &str) {
        self.0.add([digest(id), ordered(time::known(at).and_then(time::epoch_micros).unwrap_or(UNREAD))]);
    }

    /// Finishes adding uses.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn end(self) -> io::Result<KnownUses> {
        Ok(KnownUses(IdTable::of(self.0, |last, next| last[1] = last[1].max(next[1]))?))
    }
}

impl KnownUses {
    /// Canonical time of a row's last use, empty if one of its uses cannot be read; `None` if it was not used.
    pub fn last(&self, id: &str) -> Option<String> {
        self.0.get(id).map(|[_, at]| time::from_epoch(unordered(at), EpochUnit::Microseconds).unwrap_or_default())
    }

    /// Checks whether all look-ups could be read.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}

/// Outcome for an overdue row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverdueFate {
    /// It is deleted.
    Goes,
    /// It stays: it is under a hold.
    Held,
    /// It stays: no id identifies it.
    Unnamed,
    /// It stays: it is in the log of an unfinished run.
    Running,
    /// It stays: the layout can only read it.
    ReadOnly,
}

/// Numbers of rows that stay although a rule names them, by the reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowsThatStay {
    /// Rows of people under a legal hold.
    pub held: usize,
    /// Rows to which no id leads.
    pub unnamed: usize,
    /// Rows in logs of runs that have not ended.
    pub running: usize,
    /// Rows whose time that a rule asks for is unknown.
    pub undated: usize,
    /// Rows that name nobody whose newest rows are kept.
    pub unowned: usize,
    /// Rows of a source that the layout can only read.
    pub read_only: usize,
}

/// Rows of an entity that are overdue.
#[derive(Debug)]
pub struct OverdueRows {
    /// Number of those to delete, with the first ids.
    pub going: FirstOf<String>,
    /// Those that stay, by the reason.
    pub stay: RowsThatStay,
    /// Rows of that entity in all.
    pub of: usize,
}

/// Collects all rows of an entity, and determines those that the rules no longer keep.
#[derive(Debug)]
pub struct OverdueTally<'r> {
    rules: &'r [&'r ReadRule],
    uses: KnownUses,
    pages: PageStore,
    /// Ids of rows that may be deleted.
    ids: IdList,
    /// For each rule with a count: rows by owner, newest first, with their index among those that may be deleted.
    counted: Vec<RecordSorter<7>>,
    /// Overdue rows: index among the candidates, and their fate.
    gone: RecordSorter<2>,
    most: usize,
    of: usize,
    stay: RowsThatStay,
}

/// Number of fates.
const FATES: u64 = 5;
const HELD_ROW: u64 = OverdueFate::Held as u64;
const UNNAMED: u64 = OverdueFate::Unnamed as u64;
const RUNNING: u64 = OverdueFate::Running as u64;
const READ_ONLY: u64 = OverdueFate::ReadOnly as u64;

/// Index of a row that stays in any case.
const STAYS: u64 = u64::MAX;

impl<'r> OverdueTally<'r> {
    /// Begins with rules for one entity; the first `most` ids are reported.
    pub fn new(rules: &'r [&'r ReadRule], uses: KnownUses, most: usize, space: MakeSpace) -> Self {
        OverdueTally::within(HELD, rules, uses, most, space)
    }

    pub(super) fn within(
        bytes: usize,
        rules: &'r [&'r ReadRule],
        uses: KnownUses,
        most: usize,
        space: MakeSpace,
    ) -> Self {
        let pages = PageStore::new(bytes, space);
        OverdueTally {
            rules,
            uses,
            ids: IdList::paged(&pages),
            pages,
            counted: rules.iter().map(|_| RecordSorter::new(space).within(bytes)).collect(),
            gone: RecordSorter::new(space).within(bytes),
            most,
            of: 0,
            stay: RowsThatStay::default(),
        }
    }

    /// Adds a row, with its fate if it is overdue.
    pub fn row(&mut self, row: &Row, fate: OverdueFate) {
        self.of += 1;
        let used = self.uses.last(row.id());
        let fits: Vec<RuleFit> = self.rules.iter().map(|rule| rule.fits(row, used.as_deref())).collect();
        let mut place = STAYS;
        let stays_as = |fit| !fits.contains(&RuleFit::Fits) && fits.contains(&fit);
        self.stay.undated += usize::from(stays_as(RuleFit::Undated));
        self.stay.unowned += usize::from(stays_as(RuleFit::Unowned) && !stays_as(RuleFit::Undated));
        if fits.contains(&RuleFit::Fits) {
            place = self.ids.len() as u64 * FATES + fate as u64;
            self.ids.push(row.id());
        }
        for ((rule, fits), counted) in self.rules.iter().zip(fits).zip(&mut self.counted) {
            let place = if fits == RuleFit::Fits { place } else { STAYS };
            if rule.keep.is_some() {
                // A row without a time or an owner does not count among the newest.
                let at = row.text(rule.entity.time_column()).and_then(time::known).and_then(time::epoch_micros);
                if let (Some(at), Some([owner, rest])) = (at, owner(row)) {
                    let [a, b, c] = in_order(row.id());
                    counted.add([owner, rest, !ordered(at), !a, !b, !c, place]);
                }
            } else if place != STAYS {
                self.gone.add([place / FATES, place % FATES]);
            }
        }
    }

    /// Returns the rows that are overdue.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn end(mut self) -> io::Result<OverdueRows> {
        self.uses.0.check()?;
        for (rule, counted) in self.rules.iter().zip(std::mem::take(&mut self.counted)) {
            let sorted = counted.sorted()?;
            let mut stream = sorted.stream()?;
            let (mut last, mut number) = (None, 0);
            while let Some([owner, rest, .., place]) = stream.next()? {
                if last.replace((owner, rest)) != Some((owner, rest)) {
                    number = 0;
                }
                number += 1;
                if rule.keep.is_some_and(|keep| number > keep) && place != STAYS {
                    self.gone.add([place / FATES, place % FATES]);
                }
            }
        }
        let mut found = OverdueRows { going: FirstOf::new(self.most), stay: self.stay, of: self.of };
        let sorted = self.gone.take().sorted()?;
        let mut stream = sorted.stream()?;
        let mut last = None;
        while let Some([place, fate]) = stream.next()? {
            if last.replace(place) == Some(place) {
                continue;
            }
            match fate {
                HELD_ROW => found.stay.held += 1,
                UNNAMED => found.stay.unnamed += 1,
                RUNNING => found.stay.running += 1,
                READ_ONLY => found.stay.read_only += 1,
                _ => found.going.add(self.ids.get(place as usize).unwrap_or_default().into_owned()),
            }
        }
        self.pages.check()?;
        Ok(found)
    }
}
