//! Rows that the rules no longer keep, however many there are.

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

/// Bytes of each kind of record that are held in memory.
const HELD: usize = 8 << 20;

/// Stands for the time of a use that cannot be read: it may be the last one.
pub(super) const SOME_TIME: &str = "";

/// The same as a number.
const UNREAD: i64 = i64::MAX;

/// Times at which rows were used last.
#[derive(Debug)]
pub struct LastUses(RecordSorter<2>);

/// The same, to be asked for.
#[derive(Debug)]
pub struct KnownUses(IdTable<2>);

impl LastUses {
    /// No use yet. What does not fit in memory goes to such a space.
    #[must_use]
    pub fn new(space: MakeSpace) -> Self {
        LastUses::within(HELD, space)
    }

    pub(super) fn within(bytes: usize, space: MakeSpace) -> Self {
        LastUses(RecordSorter::new(space).within(bytes))
    }

    /// A row was used at a time in the canonical spelling; an empty one, or one that stands for none, is unknown.
    pub fn add(&mut self, id: &str, at: &str) {
        self.0.add([digest(id), ordered(time::known(at).and_then(time::epoch_micros).unwrap_or(UNREAD))]);
    }

    /// All uses have been added.
    ///
    /// # Errors
    /// What did not fit in memory could not be kept in a file.
    pub fn end(self) -> io::Result<KnownUses> {
        Ok(KnownUses(IdTable::of(self.0, |last, next| last[1] = last[1].max(next[1]))?))
    }
}

impl KnownUses {
    /// Canonical time at which a row was used last, empty where one of them cannot be read; none when it was not used.
    #[must_use]
    pub fn last(&self, id: &str) -> Option<String> {
        self.0.get(id).map(|[_, at]| time::from_epoch(unordered(at), EpochUnit::Microseconds).unwrap_or_default())
    }

    /// Says whether all of them could be read.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}

/// Fate of a row that is overdue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverdueFate {
    /// It goes.
    Goes,
    /// It stays: someone holds it.
    Held,
    /// It stays: no id leads to it.
    Unnamed,
    /// It stays: it is in the log of a run that has not ended.
    Running,
}

/// Rows of an entity that are overdue.
#[derive(Debug)]
pub struct OverdueRows {
    /// The first ids of all of them, and their number.
    pub all: FirstOf<String>,
    /// The same of those that go.
    pub going: FirstOf<String>,
    /// Number of those that are held.
    pub held: usize,
    /// Number of those to which no id leads.
    pub unnamed: usize,
    /// Number of those in logs of runs that have not ended.
    pub running: usize,
    /// Number of rows that stay because the time that a rule asks for is unknown.
    pub undated: usize,
    /// Number of rows that stay because they name nobody whose newest rows are kept.
    pub unowned: usize,
    /// Rows of that entity in all.
    pub of: usize,
}

/// Takes all rows of an entity, and says which of them some rules no longer keep.
#[derive(Debug)]
pub struct OverdueTally<'r> {
    rules: &'r [&'r ReadRule],
    uses: KnownUses,
    pages: PageStore,
    /// Ids of rows that may go.
    ids: IdList,
    /// For each rule that counts rows: rows by owner, the newest first, with their place among those that may go.
    counted: Vec<RecordSorter<7>>,
    /// Rows that are overdue: place among those that may be, and their fate.
    gone: RecordSorter<2>,
    most: usize,
    of: usize,
    undated: usize,
    unowned: usize,
}

/// Number of fates.
const FATES: u64 = 4;
const HELD_ROW: u64 = OverdueFate::Held as u64;
const UNNAMED: u64 = OverdueFate::Unnamed as u64;
const RUNNING: u64 = OverdueFate::Running as u64;

/// Place of a row that stays whatever its number.
const STAYS: u64 = u64::MAX;

impl<'r> OverdueTally<'r> {
    /// Begins with rules for one entity; the first `most` ids are told.
    #[must_use]
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
            undated: 0,
            unowned: 0,
        }
    }

    /// Takes a row, with its fate should it be overdue.
    pub fn row(&mut self, row: &Row, fate: OverdueFate) {
        self.of += 1;
        let used = self.uses.last(row.id());
        let fits: Vec<RuleFit> = self.rules.iter().map(|rule| rule.fits(row, used.as_deref())).collect();
        let mut place = STAYS;
        let stays_as = |fit| !fits.contains(&RuleFit::Fits) && fits.contains(&fit);
        self.undated += usize::from(stays_as(RuleFit::Undated));
        self.unowned += usize::from(stays_as(RuleFit::Unowned) && !stays_as(RuleFit::Undated));
        if fits.contains(&RuleFit::Fits) {
            place = self.ids.len() as u64 * FATES + fate as u64;
            self.ids.push(row.id());
        }
        for ((rule, fits), counted) in self.rules.iter().zip(fits).zip(&mut self.counted) {
            let place = if fits == RuleFit::Fits { place } else { STAYS };
            if rule.keep.is_some() {
                // A row that does not say when it came, or whose it is, takes no place among the newest.
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
    /// What did not fit in memory could not be kept in a file.
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
        let mut found = OverdueRows {
            all: FirstOf::new(self.most),
            going: FirstOf::new(self.most),
            held: 0,
            unnamed: 0,
            running: 0,
            undated: self.undated,
            unowned: self.unowned,
            of: self.of,
        };
        let sorted = self.gone.take().sorted()?;
        let mut stream = sorted.stream()?;
        let mut last = None;
        while let Some([place, fate]) = stream.next()? {
            if last.replace(place) == Some(place) {
                continue;
            }
            let id = self.ids.get(place as usize).unwrap_or_default().into_owned();
            match fate {
                HELD_ROW => found.held += 1,
                UNNAMED => found.unnamed += 1,
                RUNNING => {
                    found.running += 1;
                    continue;
                }
                _ => found.going.add(id.clone()),
            }
            found.all.add(id);
        }
        self.pages.check()?;
        Ok(found)
    }
}
