//! Banks and their cases in the order that the rules need, in any number.

use std::io;

use super::copies::CaseMessage;
use crate::memory::Row;
use crate::memory::digest::{Digest, wide_digest};
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{Record, RecordSorter, RecordStream, SortedRecords, in_order, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::time;

/// Bytes of ids in memory.
const IDS: usize = 2 << 20;

/// Bytes of profiles in memory: each case looks up its own.
const PROFILES: usize = 16 << 20;

/// Numbers of a case: its bank, its position in it, and the inputs of the rules.
const CASE: usize = 11;

/// Marks a missing time.
const NONE: i64 = i64::MIN;

/// Key of a bank: two numbers, because a mix-up would delete cases.
type BankKey = [Digest; 2];

/// The bank of a profile.
fn of_profile(profile: &str) -> BankKey {
    wide_digest(profile)
}

/// Id of the profile that a case names.
fn named_profile(case: &Row) -> Option<&str> {
    case.text("profile_id").filter(|id| !id.is_empty())
}

/// The bank of a case: that of the profile it names, whether that has a row or not, otherwise one by user and agent.
fn of_case(case: &Row) -> BankKey {
    let owner = || wide_digest(&format!("\u{0}{}\u{0}{}", case.get("user_id"), case.get("agent_id")));
    named_profile(case).map_or_else(owner, of_profile)
}

/// A case as input of the rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedCase {
    /// Creation time in microseconds since 1970; if `None`, the age is unknown, and no rule about age or order deletes
    /// it.
    pub at: Option<i64>,
    /// Reward of the case, in 0..1.
    pub reward: Option<f64>,
    /// Message of the case, if it has a hash.
    pub message: Option<CaseMessage>,
    /// The case is hidden from recall.
    pub quarantined: bool,
    place: u64,
}

impl JudgedCase {
    /// The case in a row.
    pub fn of(row: &Row) -> Self {
        JudgedCase {
            at: row.text("created_at").and_then(time::known).and_then(time::epoch_micros),
            reward: row.number("reward"),
            message: CaseMessage::of(row),
            quarantined: row.get("quarantined").as_bool().unwrap_or_default(),
            place: 0,
        }
    }

    /// Whether another reading of this case gives the rules the same input.
    pub fn is_as(&self, other: &JudgedCase) -> bool {
        JudgedCase { place: 0, ..*self } == JudgedCase { place: 0, ..*other }
    }

    /// Sort key and data: by bank, newest first, at the same time by greatest id.
    fn record(&self, [bank, rest]: BankKey, id: &str) -> Record<CASE> {
        let [a, b, c] = in_order(id);
        let [message, more, prompt] = self.message.as_ref().map(CaseMessage::numbers).unwrap_or_default();
        let reward = self.reward.unwrap_or(f64::NAN).to_bits();
        let place = self.place << 1 | u64::from(self.quarantined);
        [bank, rest, !ordered(self.at.unwrap_or(NONE)), !a, !b, !c, place, reward, message, more, prompt]
    }

    fn read([_, _, at, _, _, _, place, reward, message, more, prompt]: Record<CASE>) -> Self {
        JudgedCase {
            at: Some(unordered(!at)).filter(|at| *at != NONE),
            reward: Some(f64::from_bits(reward)).filter(|reward| !reward.is_nan()),
            message: CaseMessage::read([message, more, prompt]),
            quarantined: place & 1 != 0,
            place: place >> 1,
        }
    }
}

/// Collects profiles, and then cases.
#[derive(Debug)]
pub struct PruneBanks {
    pages: PageStore,
    profile_ids: IdList,
    /// Profiles by key, with twice the index, plus one if a window is stored, and the window.
    profiles: RecordSorter<4>,
    known: IdTable<4>,
    case_ids: IdList,
    cases: RecordSorter<CASE>,
}

impl PruneBanks {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        let pages = PageStore::new(IDS, space);
        PruneBanks {
            profile_ids: IdList::paged(&pages),
            profiles: RecordSorter::new(space).within(PROFILES),
            known: IdTable::default(),
            case_ids: IdList::paged(&pages),
            cases: RecordSorter::new(space),
            pages,
        }
    }

    /// Sets the memory limit for cases in bytes.
    #[cfg(test)]
    pub(super) fn within(self, bytes: usize) -> Self {
        PruneBanks { cases: self.cases.within(bytes), profiles: self.profiles.within(bytes), ..self }
    }

    /// Adds a profile.
    pub fn profile(&mut self, row: &Row) {
        let [bank, rest] = of_profile(row.id());
        let window = row.get("window_size").as_i64();
        let place = (self.profile_ids.len() as u64) << 1 | u64::from(window.is_some());
        self.profiles.add([bank, rest, place, ordered(window.unwrap_or_default())]);
        self.profile_ids.push(row.id());
    }

    /// Finishes adding profiles.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn profiles_end(&mut self) -> io::Result<()> {
        self.known = IdTable::of(self.profiles.take(), |_, _| {})?;
        Ok(())
    }

    /// Whether there is neither a profile nor a case.
    pub fn is_empty(&self) -> bool {
        self.profile_ids.len() == 0 && self.case_ids.len() == 0
    }

    /// Whether the profile of a case was added.
    pub fn knows(&self, case: &Row) -> bool {
        named_profile(case).is_some_and(|profile| self.find(of_profile(profile)).is_some())
    }

    /// Adds a case.
    pub fn case(&mut self, row: &Row) {
        let bank = of_case(row);
        let case = JudgedCase { place: self.case_ids.len() as u64, ..JudgedCase::of(row) };
        self.cases.add(case.record(bank, row.id()));
        self.case_ids.push(row.id());
    }

    fn find(&self, [bank, rest]: BankKey) -> Option<Record<4>> {
        self.known.find(bank).filter(|found| found[1] == rest)
    }

    /// Sorts the banks, after all cases have been added.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn sorted(mut self) -> io::Result<SortedBanks> {
        self.known.check()?;
        Ok(SortedBanks { sorted: self.cases.take().sorted()?, banks: self })
    }
}

/// Sorted banks, each with the newest case first.
#[derive(Debug)]
pub struct SortedBanks {
    sorted: SortedRecords<CASE>,
    banks: PruneBanks,
}

/// A bank that has cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortedBank {
    key: BankKey,
    /// Index of its profile, if it has one.
    profile: Option<u64>,
    /// Window of the bank itself, as stored.
    pub window: Option<i64>,
}

impl SortedBank {
    /// Whether a row is a case of this bank.
    pub fn holds(&self, row: &Row) -> bool {
        of_case(row) == self.key
    }
}

impl SortedBanks {
    /// Reads them from the beginning.
    ///
    /// # Errors
    /// Data that did not fit in memory cannot be read.
    pub fn stream(&self) -> io::Result<BankStream<'_>> {
        Ok(BankStream { records: self.sorted.stream()?, banks: &self.banks })
    }

    /// Id of a case.
    ///
    /// # Errors
    /// As [`SortedBanks::stream`].
    pub fn id(&self, case: &JudgedCase) -> io::Result<String> {
        let id = self.banks.case_ids.get(case.place as usize).unwrap_or_default().into_owned();
        self.banks.pages.check()?;
        Ok(id)
    }

    /// Id of a bank's profile.
    ///
    /// # Errors
    /// As [`SortedBanks::stream`].
    pub fn profile(&self, bank: &SortedBank) -> io::Result<Option<String>> {
        let id = bank.profile.and_then(|place| Some(self.banks.profile_ids.get(place as usize)?.into_owned()));
        self.banks.pages.check()?;
        Ok(id)
    }
}

/// Iterates over banks and cases.
pub struct BankStream<'b> {
    records: RecordStream<'b, CASE>,
    banks: &'b PruneBanks,
}

impl BankStream<'_> {
    /// The bank of the next case.
    ///
    /// # Errors
    /// As [`SortedBanks::stream`].
    pub fn bank(&self) -> io::Result<Option<SortedBank>> {
        let Some([bank, rest, ..]) = self.records.peek() else { return Ok(None) };
        let key = [*bank, *rest];
        let found = self.banks.find(key);
        self.banks.known.check()?;
        let window = found.filter(|[_, _, place, _]| place & 1 != 0).map(|[.., window]| unordered(window));
        Ok(Some(SortedBank { key, profile: found.map(|[_, _, place, _]| place >> 1), window }))
    }

    /// The next case, if it is of that bank.
    ///
    /// # Errors
    /// As [`SortedBanks::stream`].
    pub fn next_of(&mut self, bank: &SortedBank) -> io::Result<Option<JudgedCase>> {
        if self.records.peek().is_none_or(|[first, rest, ..]| [*first, *rest] != bank.key) {
            return Ok(None);
        }
        Ok(self.records.next()?.map(JudgedCase::read))
    }
}
