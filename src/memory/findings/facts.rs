//! Findings about facts that contradict one another, however many there are: they are put in order outside of memory, and
//! only the latest ones about one subject are held.

use std::collections::VecDeque;
use std::io;

use super::standing::{GROUP, group};
use crate::memory::digest::{Digest, digest};
use crate::memory::packed::records::{Record, RecordSorter, in_order, ordered};
use crate::memory::{Row, time};

/// Facts about one subject by one predicate that a later one is compared with at most: those right before it.
const BEFORE: usize = 2_000;

/// A bound that is not said leaves its side open.
const ALWAYS: i64 = i64::MIN;
const FOR_EVER: i64 = i64::MAX;

/// Stands for the time of a fact that says none, in the order of numbers: before all others.
const UNDATED: u64 = 0;

/// Numbers of a fact: its group, the time from which it holds and its id, which put it in order, and a [`Statement`].
const FACT: usize = GROUP + 4 + 4;

/// Facts by who owns them, their subject, and their predicate.
#[derive(Debug)]
pub(super) struct Facts(RecordSorter<FACT>);

/// Statement of one memory about a subject.
#[derive(Debug)]
struct Statement {
    object: Digest,
    /// In the order of numbers that are not negative; see [`ordered`].
    from: u64,
    to: u64,
    place: u64,
    undated: bool,
}

impl Facts {
    pub fn new(records: RecordSorter<FACT>) -> Self {
        Facts(records)
    }

    /// Takes the facts, and leaves none.
    pub fn take(&mut self) -> Self {
        Facts(self.0.take())
    }

    /// Takes the memory at a place, which came at `created`; whether it is a fact.
    pub fn add(&mut self, row: &Row, created: Option<i64>, place: u64) -> bool {
        let told = |name: &str| row.within("metadata", name)?.as_str().map(str::to_owned);
        let said = |name: &str| told(name).map(|text| text.trim().to_lowercase()).filter(|t| !t.is_empty());
        let (Some(subject), Some(predicate), Some(object)) = (said("subject"), said("predicate"), said("object"))
        else {
            return false;
        };
        let moment =
            |name: &str| told(name).and_then(|text| time::canonical(&text)).as_deref().and_then(time::epoch_micros);
        let (from, to) = (moment("valid_from"), moment("valid_to"));
        let [person, rest, name, one, other] = group(row, &[&subject, &predicate]);
        let [a, b, c] = in_order(row.id());
        let bounds = [from.unwrap_or(ALWAYS), to.unwrap_or(FOR_EVER)].map(ordered);
        let since = from.or(created).map_or(UNDATED, ordered);
        self.0.add([person, rest, name, one, other, since, a, b, c, digest(&object), bounds[0], bounds[1], place]);
        true
    }

    /// Hands on the places of two facts about the same subject by the same predicate with another object that hold at the
    /// same time, the older one first, and whether the age of one is unknown. Each fact is the newer one of a pair at most.
    ///
    /// # Errors
    /// What did not fit in memory cannot be written or read.
    pub fn contradictions(self, mut pair: impl FnMut([u64; 2], bool)) -> io::Result<()> {
        let sorted = self.0.sorted()?;
        let mut stream = sorted.stream()?;
        let (mut group, mut before) = ([0; GROUP], VecDeque::new());
        while let Some(record) = stream.next()? {
            if record[..GROUP] != group {
                group.copy_from_slice(&record[..GROUP]);
                before.clear();
            }
            let newer = Statement::of(&record);
            if let Some(older) = before.iter().find(|older| newer.contradicts(older)) {
                pair([older.place, newer.place], older.undated || newer.undated);
            }
            before.truncate(BEFORE - 1);
            before.push_front(newer);
        }
        Ok(())
    }
}

impl Statement {
    fn of([.., since, _, _, _, object, from, to, place]: &Record<FACT>) -> Self {
        Statement { object: *object, from: *from, to: *to, place: *place, undated: *since == UNDATED }
    }

    /// Whether there is a moment at which both are said to be so, and both cannot.
    fn contradicts(&self, other: &Statement) -> bool {
        self.object != other.object && self.to > other.from && other.to > self.from
    }
}
