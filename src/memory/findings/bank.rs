//! Findings about case banks: windows, repeats, bursts, references, overused cases. For any number of cases, their
//! facts are sorted and read in order.

use std::collections::{BTreeSet, HashSet};
use std::io;

use super::bursts::bursts;
use super::links::Faults;
use super::marks::{LINKED, NEVER, moment};
use super::tally::FindingTally;
use crate::memory::digest::{Digest, digest};
use crate::memory::first_of::FirstOf;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{RecordSorter, RecordStream, SortedRecords, in_order, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::prune::copies::{CaseCopies, CaseCopy, CaseMessage};
use crate::memory::{Row, score, time};

/// Highest reward or utility that counts as low.
const LITTLE: f64 = 0.3;

/// Recalls from which something counts as recalled often.
const OFTEN: u32 = 10;

/// Share of its bank's recalls from which a case dominates them.
const SWAMP: f64 = 0.6;

/// Fewest cases of a bank that one of them can dominate.
const SOME: u64 = 10;

/// Most cases of a bank whose vectors are compared by default: the work grows with their square.
pub const COMPARED: usize = 2_000;

/// Fewest different questions for which a dominating case was recalled.
const QUESTIONS: usize = 8;

/// Bytes of ids in memory.
const IDS: usize = 2 << 20;

/// Replaces the message of a case held back from recall, which is compared with none.
const HELD_BACK: Digest = 0;

/// Standing of a case in recall.
#[derive(Debug, Clone, Copy)]
struct CaseStanding {
    /// It has a low reward.
    little: bool,
    /// It is held back from recall.
    held_back: bool,
}

impl CaseStanding {
    /// Encodes the standing in a record.
    fn number(self) -> u64 {
        u64::from(self.little) | u64::from(self.held_back) << 1
    }

    /// Decodes the standing from a record.
    fn of(number: u64) -> Self {
        CaseStanding { little: number & 1 != 0, held_back: number & 2 != 0 }
    }
}

/// Profiles, cases, policies and accesses, as far as findings need them. Add profiles first, then cases, call
/// [`CaseBank::written`], then add policies and accesses.
#[derive(Debug)]
pub struct CaseBank {
    pages: PageStore,
    profile_ids: IdList,
    /// Profiles by id, with index, owner and window, which is 0 if none is stored.
    profiles: RecordSorter<4>,
    known_profiles: IdTable<4>,
    case_ids: IdList,
    /// Cases by id, with index, profile and standing.
    cases: RecordSorter<4>,
    known_cases: IdTable<4>,
    /// Cases by profile, time and id digest, with index and message digest, or a digest of the case if it has no hash,
    /// or that of a held-back case.
    messages: RecordSorter<5>,
    banks: Option<SortedRecords<5>>,
    /// Numbers of cases by profile.
    sizes: IdTable<2>,
    /// Cases by profile and message, newest first and at the same time by greatest id, with their indexes.
    copies: CaseCopies,
    /// Cases by profile and time.
    begun: RecordSorter<4>,
    /// Ids that cases refer to, with twice the index of the referring case, plus one if its list cannot be read
    /// completely.
    references: RecordSorter<2>,
    /// Recalls by owner.
    recalls: RecordSorter<2>,
    /// Recalled cases, with the owner of the recall and a digest of the question; 0 for none.
    recalled: RecordSorter<3>,
    zero: FirstOf<String>,
    idle: FirstOf<String>,
    space: MakeSpace,
    most: usize,
}

/// Whether a case may be poisoning recall: it has a low reward and is recalled often.
pub fn is_poison(reward: Option<f64>, recalls: u32) -> bool {
    recalls >= OFTEN && is_little(reward)
}

fn is_little(reward: Option<f64>) -> bool {
    reward.is_some_and(|reward| score::is_at_most(reward, LITTLE))
}

fn owner(row: &Row) -> Digest {
    digest(&format!("{}\n{}", row.text("user_id").unwrap_or_default(), row.text("agent_id").unwrap_or_default()))
}

impl CaseBank {
    /// Creates an empty bank whose findings name at most `most` examples. Data that does not fit in memory goes to
    /// `space`.
    pub fn new(most: usize, space: MakeSpace) -> Self {
        CaseBank::within(LINKED, most, space)
    }

    /// As [`CaseBank::new`], with a memory limit for each kind of record.
    fn within(bytes: usize, most: usize, space: MakeSpace) -> Self {
        let pages = PageStore::new(IDS.min(bytes), space);
        CaseBank {
            profile_ids: IdList::paged(&pages),
            profiles: RecordSorter::new(space).within(bytes),
            known_profiles: IdTable::default(),
            case_ids: IdList::paged(&pages),
            cases: RecordSorter::new(space).within(bytes),
            known_cases: IdTable::default(),
            messages: RecordSorter::new(space).within(bytes),
            banks: None,
            sizes: IdTable::default(),
            copies: CaseCopies::new(space).within(bytes),
            begun: RecordSorter::new(space).within(bytes),
            references: RecordSorter::new(space).within(bytes),
            recalls: RecordSorter::new(space).within(bytes),
            recalled: RecordSorter::new(space).within(bytes),
            zero: FirstOf::new(most),
            idle: FirstOf::new(most),
            space,
            most,
            pages,
        }
    }

    /// Adds a profile.
    pub fn profile(&mut self, row: &Row) {
        let window = row.get("window_size").as_i64();
        if window.is_some_and(|window| window <= 0) {
            self.zero.add(row.id().to_owned());
        }
        let place = self.profile_ids.len() as u64;
        self.profiles.add([digest(row.id()), place, owner(row), ordered(window.unwrap_or_default())]);
        self.profile_ids.push(row.id());
    }

    /// Adds a case.
    pub fn case(&mut self, row: &Row) {
        let (key, profile) = (digest(row.id()), row.text("profile_id").map_or(0, digest));
        let place = self.case_ids.len() as u64;
        let at = row.text("created_at").and_then(time::known).map_or(NEVER, |_| moment(row, "created_at"));
        let held_back = row.get("quarantined").as_bool().unwrap_or_default();
        if at != NEVER && !held_back {
            self.begun.add([profile, 0, ordered(at), place]);
        }
        let message = CaseMessage::of(row);
        if let Some(message) = message.filter(|_| profile != 0 && !held_back) {
            let [a, b, c] = in_order(row.id());
            self.copies.add(profile, message, [!ordered(at), !a, !b, !c], place);
        }
        let unread = u64::from(!row.is_readable("reference_case_ids"));
        for reference in row.list("reference_case_ids") {
            self.references.add([digest(reference), place << 1 | unread]);
        }
        let message = if held_back { HELD_BACK } else { message.map_or(key, |message| message.digest()) };
        self.messages.add([profile, ordered(at), key, place, message]);
        let standing = CaseStanding { little: is_little(row.number("reward")), held_back };
        self.cases.add([key, place, profile, standing.number()]);
        self.case_ids.push(row.id());
    }

    /// Findings from profiles and cases, all of which have been added.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn written(&mut self) -> io::Result<Faults> {
        self.known_profiles = IdTable::of(self.profiles.take(), |first, next| *first = *next)?;
        self.known_cases = IdTable::of(self.cases.take(), |first, next| *first = *next)?;
        let (over_window, too_large) = self.banks()?;
        let [repeats, unclear] = self.copies()?;
        let bursts = bursts([self.begun.take()], self.space, self.most, |place| self.case_id(place))?;
        let found = vec![
            ("over_window", FindingTally::of_first(over_window, Some)),
            ("window_is_zero", FindingTally::of_first(self.zero.take(), Some)),
            ("duplicate_case", repeats),
            ("unclear_hash", unclear),
            ("vector_duplicates_left", FindingTally::of_first(too_large, Some)),
            ("write_burst", bursts),
            ("dangling_reference", self.dangling()?),
        ];
        self.check()?;
        Ok(found)
    }

    /// Adds a policy.
    pub fn policy(&mut self, row: &Row) {
        if self.sizes.find(row.text("profile_id").map_or(0, digest)).is_none() {
            self.idle.add(row.id().to_owned());
        }
    }

    /// Adds a recall.
    pub fn access(&mut self, row: &Row) {
        let owner = owner(row);
        self.recalls.add([owner, 1]);
        let question = row.text("query").map_or(0, digest);
        // Counts as one recall, however often it names a case.
        let ids: BTreeSet<&str> = row.list("ids").into_iter().collect();
        ids.into_iter().for_each(|id| self.recalled.add([digest(id), owner, question]));
    }

    /// Policies whose bank has no case; all policies have been added.
    ///
    /// # Errors
    /// As [`CaseBank::written`].
    pub fn idle_policies(&mut self) -> io::Result<FindingTally> {
        self.sizes.check()?;
        Ok(FindingTally::of_first(self.idle.take(), Some))
    }

    /// Cases with a low reward that are recalled often, and cases in most recalls of a bank of some size, for many
    /// different questions. All accesses have been added.
    ///
    /// # Errors
    /// As [`CaseBank::written`].
    pub fn recalls(&mut self) -> io::Result<Faults> {
        let by_owner = IdTable::of(self.recalls.take(), |[_, count], [_, more]| *count += more)?;
        let sorted = self.recalled.take().sorted()?;
        let mut stream = sorted.stream()?;
        let (mut low, mut swamping) = (FirstOf::new(self.most), FirstOf::new(self.most));
        while let Some(case) = stream.group() {
            let known = self.known_cases.find(case);
            // The readers of its bank are the bank's owners.
            let reader =
                known.and_then(|[_, _, profile, _]| self.known_profiles.find(profile)).map(|[_, _, owner, _]| owner);
            let (mut recalls, mut own, mut questions, mut last) = (0_u32, 0_u32, 0, 0);
            while let Some([_, owner, question]) = stream.next_of(case)? {
                recalls = recalls.saturating_add(1);
                if Some(owner) == reader {
                    own = own.saturating_add(1);
                    questions += usize::from(question != last);
                    last = question;
                }
            }
            let Some([_, place, profile, standing]) = known else { continue };
            let standing = CaseStanding::of(standing);
            // A case no longer recalled needs no remedy.
            if standing.held_back {
                continue;
            }
            if recalls >= OFTEN && standing.little {
                low.add(place);
            }
            if questions >= QUESTIONS && self.swamps(own, profile, &by_owner) {
                swamping.add(place);
            }
        }
        by_owner.check()?;
        let found = vec![
            ("low_reward_often_recalled", FindingTally::of_first(low, |place| self.case_id(place))),
            ("swamping_case", FindingTally::of_first(swamping, |place| self.case_id(place))),
        ];
        self.check()?;
        Ok(found)
    }

    /// Whether this many recalls by its owner are most of the bank's.
    fn swamps(&self, recalls: u32, profile: Digest, by_owner: &IdTable<2>) -> bool {
        let cases = self.sizes.find(profile).map_or(0, |[_, cases]| cases);
        let owner = self.known_profiles.find(profile).map(|[_, _, owner, _]| owner);
        let all = owner.and_then(|owner| by_owner.find(owner)).map_or(0, |[_, count]| count);
        cases >= SOME && all >= u64::from(OFTEN) && f64::from(recalls) / all as f64 >= SWAMP
    }

    /// The cases of each bank.
    ///
    /// # Errors
    /// As [`CaseBank::written`], which must have been called.
    pub fn into_banks(mut self) -> io::Result<CaseBanks> {
        let sorted = self.banks.take().map_or_else(|| RecordSorter::new(self.space).sorted(), Ok)?;
        Ok(CaseBanks { sorted, ids: self.case_ids, pages: self.pages })
    }

    /// Banks with more cases than their window, and banks too large to compare vectors at once.
    fn banks(&mut self) -> io::Result<(FirstOf<String>, FirstOf<String>)> {
        let sorted = self.messages.take().sorted()?;
        let mut sizes = RecordSorter::new(self.space).within(LINKED);
        let (mut over, mut large) = (FirstOf::new(self.most), FirstOf::new(self.most));
        let mut stream = sorted.stream()?;
        while let Some(profile) = stream.group() {
            let (mut count, mut dated) = (0_u64, 0);
            while let Some([_, at, .., message]) = stream.next_of(profile)? {
                count += 1;
                dated += u64::from(at != ordered(NEVER) && message != HELD_BACK);
            }
            sizes.add([profile, count]);
            let known = self.known_profiles.find(profile);
            let window = known.map_or(0, |[.., window]| unordered(window));
            let id = || known.and_then(|[_, place, ..]| Some(self.profile_ids.get(place as usize)?.into_owned()));
            // A window counts neither cases without a time nor held-back ones.
            if window > 0 && dated > window as u64 {
                over.add(id().unwrap_or_default());
            }
            if count > COMPARED as u64 {
                large.add(id().unwrap_or_default());
            }
        }
        drop(stream);
        self.banks = Some(sorted);
        self.sizes = IdTable::of(sizes, |_, _| {})?;
        Ok((over, large))
    }

    /// Cases that repeat a newer one of their bank, and those for which the hash does not tell.
    fn copies(&mut self) -> io::Result<[FindingTally; 2]> {
        let (mut repeats, mut unclear) = (FirstOf::new(self.most), FirstOf::new(self.most));
        self.copies.take().each(|copy, [at, ..], place| match copy {
            CaseCopy::Unclear => unclear.add(place),
            CaseCopy::Repeats if at != !ordered(NEVER) => repeats.add(place),
            CaseCopy::Repeats => {}
        })?;
        Ok([repeats, unclear].map(|found| FindingTally::of_first(found, |place| self.case_id(place))))
    }

    /// Cases that refer to missing cases.
    fn dangling(&mut self) -> io::Result<FindingTally> {
        let sorted = self.references.take().sorted()?;
        let mut stream = sorted.stream()?;
        let mut places = RecordSorter::new(self.space).within(LINKED);
        while let Some([case, place]) = stream.next()? {
            if self.known_cases.find(case).is_none() {
                places.add([place]);
            }
        }
        let (mut found, mut by_hand) = (FirstOf::new(self.most), true);
        let sorted = places.sorted()?;
        let mut stream = sorted.stream()?;
        while let Some(place) = stream.group() {
            while stream.next_of(place)?.is_some() {}
            found.add(place >> 1);
            // No backfill writes a list that cannot be read.
            by_hand &= place & 1 == 1;
        }
        Ok(FindingTally { by_hand, ..FindingTally::of_first(found, |place| self.case_id(place)) })
    }

    fn case_id(&self, place: u64) -> Option<String> {
        self.case_ids.get(place as usize).map(std::borrow::Cow::into_owned)
    }

    fn check(&self) -> io::Result<()> {
        self.pages.check()?;
        self.known_profiles.check()?;
        self.known_cases.check()?;
        self.sizes.check()
    }
}

/// The cases of all banks, bank by bank.
pub struct CaseBanks {
    sorted: SortedRecords<5>,
    ids: IdList,
    pages: PageStore,
}

/// A case of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BankCase {
    place: u32,
    /// Number of its bank.
    bank: u32,
    /// Digest of its message, or of the case if it has no hash.
    message: Digest,
}

impl BankCase {
    /// Whether both are in one bank with different messages: equal messages are already reported as copies.
    pub fn differs(&self, other: &BankCase) -> bool {
        self.bank == other.bank && self.message != other.message
    }
}

impl CaseBanks {
    /// Reads one bank after the other.
    ///
    /// # Errors
    /// Data that did not fit in memory cannot be read.
    pub fn stream(&self) -> io::Result<BankStream<'_>> {
        Ok(BankStream { records: self.sorted.stream()?, banks: 0, too_large: HashSet::new() })
    }

    /// Ids of cases.
    ///
    /// # Errors
    /// As [`CaseBanks::stream`].
    pub fn ids(&self, cases: &[BankCase]) -> io::Result<Vec<String>> {
        let id = |case: &BankCase| self.ids.get(case.place as usize).unwrap_or_default().into_owned();
        let ids = cases.iter().map(id).collect();
        self.pages.check()?;
        Ok(ids)
    }
}

/// One bank after the other.
pub struct BankStream<'b> {
    records: RecordStream<'b, 5>,
    /// Number of banks that were read.
    banks: u32,
    /// Those that had too many cases.
    too_large: HashSet<u32>,
}

/// The cases that a [`BankStream`] did not return.
pub struct RestOfBanks<'b> {
    records: RecordStream<'b, 5>,
    /// Bank of the last case, and its number.
    bank: (Option<u64>, u32),
    too_large: HashSet<u32>,
}

impl RestOfBanks<'_> {
    /// The next cases, at most `together`; empty at the end.
    ///
    /// # Errors
    /// As [`CaseBanks::stream`].
    pub fn next(&mut self, together: usize) -> io::Result<Vec<BankCase>> {
        let mut cases = Vec::new();
        while cases.len() < together
            && let Some([bank, .., place, message]) = self.records.next()?
        {
            if self.bank.0 != Some(bank) {
                self.bank = (Some(bank), self.bank.1 + 1);
            }
            if message == HELD_BACK || self.too_large.contains(&self.bank.1) {
                cases.push(BankCase { place: place as u32, bank: self.bank.1, message });
            }
        }
        Ok(cases)
    }
}

impl BankStream<'_> {
    /// The cases that this stream did not return: those of too large banks, and those that cannot be recalled.
    ///
    /// # Errors
    /// As [`CaseBanks::stream`].
    pub fn rest<'b>(&self, banks: &'b CaseBanks) -> io::Result<RestOfBanks<'b>> {
        Ok(RestOfBanks { records: banks.sorted.stream()?, bank: (None, 0), too_large: self.too_large.clone() })
    }

    /// The recallable cases of the next banks, each bank oldest first; cases without a time come first, and those with
    /// the same time are ordered by id digest. Returns at least one bank, and further ones up to `together` cases.
    /// Empty for a bank with more than `most`, and at the end.
    ///
    /// # Errors
    /// As [`CaseBanks::stream`].
    pub fn next(&mut self, most: usize, together: usize) -> io::Result<Vec<BankCase>> {
        let mut cases = Vec::new();
        while cases.len() < together
            && let Some(bank) = self.records.group()
        {
            let (before, mut count) = (cases.len(), 0);
            self.banks += 1;
            while let Some([.., place, message]) = self.records.next_of(bank)? {
                count += 1;
                if count <= most && message != HELD_BACK {
                    cases.push(BankCase { place: place as u32, bank: self.banks, message });
                }
            }
            if count > most {
                cases.truncate(before);
                self.too_large.insert(self.banks);
            }
        }
        Ok(cases)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;
    use crate::memory::packed::space::tests::space;

    /// Memory limits: none, so that everything is in files, or enough.
    const ROOM: [usize; 2] = [0, 1 << 20];

    fn bank(room: usize, most: usize) -> CaseBank {
        let mut bank = CaseBank::within(room, most, space);
        for (id, window) in [("wide", json!(100)), ("narrow", json!(2)), ("zero", json!(0)), ("open", Value::Null)] {
            let values = [("id", json!(id)), ("user_id", json!(id)), ("window_size", window)];
            bank.profile(&row(Entity::Profile, &values));
        }
        bank
    }

    /// A case written in a separate minute.
    fn case(bank: &mut CaseBank, id: &str, profile: &str, minute: usize, message: &str, reward: f64, refers: &[&str]) {
        let at = format!("2026-01-{:02}T{:02}:{:02}:00.000000Z", 1 + minute / 1440, minute / 60 % 24, minute % 60);
        let values = [
            ("id", json!(id)),
            ("profile_id", json!(profile)),
            ("message_hash", if message.is_empty() { Value::Null } else { json!(message) }),
            ("reward", json!(reward)),
            ("reference_case_ids", json!(refers)),
            ("created_at", json!(at)),
        ];
        bank.case(&row(Entity::Case, &values));
    }

    fn access(bank: &mut CaseBank, user: &str, query: &str, ids: &[&str]) {
        let values = [("user_id", json!(user)), ("query", json!(query)), ("ids", json!(ids))];
        bank.access(&row(Entity::Access, &values));
    }

    fn told(faults: &Faults) -> Vec<String> {
        let told = faults.iter().filter(|(_, tally)| tally.count > 0);
        told.map(|(kind, tally)| format!("{kind} {}: {}", tally.count, tally.examples.join(" "))).collect()
    }

    #[test]
    fn windows_repeats_and_references_are_told_wherever_cases_are() {
        for room in ROOM {
            let mut bank = bank(room, 2);
            case(&mut bank, "n2", "narrow", 20, "same", 1.0, &[]);
            case(&mut bank, "n1", "narrow", 10, "same", 1.0, &["gone", "n2", "gone too"]);
            case(&mut bank, "n3", "narrow", 30, "same", 1.0, &["n4"]);
            case(&mut bank, "n0", "narrow", 30, "same", 1.0, &[]);
            case(&mut bank, "w1", "wide", 40, "same", 1.0, &["n1", "nowhere"]);
            case(&mut bank, "w2", "wide", 50, "", 1.0, &["never"]);
            case(&mut bank, "w3", "wide", 70, "", 1.0, &[]);
            let found = bank.written().unwrap();
            assert_eq!(
                told(&found),
                [
                    "over_window 1: narrow", "window_is_zero 1: zero", "duplicate_case 3: n2 n1",
                    "dangling_reference 4: n1 n3"
                ]
            );
            for (id, profile) in [("p1", "wide"), ("p2", "open"), ("p3", "nobody")] {
                bank.policy(&row(Entity::Policy, &[("id", json!(id)), ("profile_id", json!(profile))]));
            }
            assert_eq!(bank.idle_policies().unwrap(), FindingTally::of(["p2", "p3"], 2));
        }
    }

    #[test]
    fn cases_are_poison_or_swamp_their_bank_by_how_they_are_recalled() {
        for room in ROOM {
            let mut bank = bank(room, 5);
            for n in 0..12 {
                case(&mut bank, &format!("w{n}"), "wide", n * 10, "", if n == 1 { 0.2 } else { 0.9 }, &[]);
            }
            case(&mut bank, "alone", "open", 0, "", 0.9, &[]);
            bank.written().unwrap();
            for n in 0..10 {
                // Of ten questions: all, all with the same words, and too few.
                let question = format!("question {n}");
                access(&mut bank, "wide", &question, &["w0", "gone"]);
                access(&mut bank, "wide", "the same", if n < 5 { &["w1", "w2", "w0"] } else { &["w1", "w2"] });
                access(&mut bank, "open", &question, &["alone"]);
            }
            for n in 0..30 {
                // Another reader's recalls do not count for the bank.
                access(&mut bank, "open", &format!("question {n}"), &["w3"]);
            }
            assert_eq!(told(&bank.recalls().unwrap()), ["low_reward_often_recalled 1: w1", "swamping_case 1: w0"]);
        }
    }

    #[test]
    fn banks_are_read_one_after_the_other_and_large_ones_left_out() {
        for room in ROOM {
            let mut bank = bank(room, 5);
            // Not in time order.
            for n in [4, 1, 5, 0, 3, 2] {
                let profile = if n % 3 == 0 { "narrow" } else { "wide" };
                case(&mut bank, &format!("c{n}"), profile, n, "m", 1.0, &[]);
            }
            bank.written().unwrap();
            let banks = bank.into_banks().unwrap();
            let read = |most, together| {
                let mut stream = banks.stream().unwrap();
                let cases =
                    std::iter::from_fn(|| Some(stream.next(most, together).unwrap()).filter(|all| !all.is_empty()));
                let mut all: Vec<Vec<String>> = cases.map(|cases| banks.ids(&cases).unwrap()).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(read(4, 1), [vec!["c0", "c3"], vec!["c1", "c2", "c4", "c5"]]);
            assert_eq!(read(4, 6).concat().len(), 6);
            assert_eq!(read(3, 1), [["c0", "c3"]]);
            let mut stream = banks.stream().unwrap();
            while !stream.next(3, 1).unwrap().is_empty() {}
            let mut rest = stream.rest(&banks).unwrap();
            let rest = [(); 3].map(|()| banks.ids(&rest.next(2).unwrap()).unwrap());
            assert_eq!(rest, [vec!["c1", "c2"], vec!["c4", "c5"], vec![]]);
        }
    }
}
