//! Finds facts that contradict one another, in any number: they are sorted outside of memory, and only the latest ones
//! about one subject are held.

use std::collections::VecDeque;
use std::io;

use serde_json::Value;

use super::standing::{GROUP, group};
use crate::memory::digest::{Digest, digest};
use crate::memory::packed::records::{Record, RecordSorter, RecordStream, in_order, ordered};
use crate::memory::{Row, time};

/// Most earlier facts with the same subject and predicate that a fact is compared with: those directly before it.
const BEFORE: usize = 2_000;

/// Subjects with several values at a time from which a predicate may be one of several values, if they are at least one in
/// [`OF`] of its subjects: a person may speak two languages.
const MANY: u64 = 5;
const OF: u64 = 4;

/// A bound that is not said leaves its side open.
const ALWAYS: i64 = i64::MIN;
const FOR_EVER: i64 = i64::MAX;

/// Digits up to which two numbers are compared as numbers.
const DIGITS: usize = 15;

/// Numbers of a predicate.
const PREDICATE: usize = 2;
/// Numbers that facts about one subject by one predicate have in common.
const SUBJECT: usize = PREDICATE + GROUP;
/// Numbers of a fact: its subject, the time from which it holds and its id, which put it in order, what it says, the time to
/// which it holds, and its place.
const FACT: usize = SUBJECT + 4 + 3;

/// Facts by their predicate, who owns them, and their subject.
#[derive(Debug)]
pub(super) struct Facts(RecordSorter<FACT>);

/// Statement of one memory about a subject.
#[derive(Debug)]
struct Statement {
    object: Digest,
    /// As an unsigned sort key; see [`ordered`].
    from: u64,
    to: u64,
    place: u64,
}

impl Facts {
    pub fn new(records: RecordSorter<FACT>) -> Self {
        Facts(records)
    }

    /// Takes the facts, leaving none.
    pub fn take(&mut self) -> Self {
        Facts(self.0.take())
    }

    /// Takes the memory at a place, which came at `created`; whether it is a fact. One with a time that cannot be read is not
    /// compared: nobody knows when it holds.
    pub fn add(&mut self, row: &Row, created: Option<i64>, place: u64) -> bool {
        let told = ["subject", "predicate", "object"].map(|name| word(&row.within("metadata", name)?));
        let [Some(subject), Some(predicate), Some(object)] = told else { return false };
        if let Some([from, to]) = validity(row, created) {
            let [person, rest, name, one, other] = group(row, &[&subject, &predicate]);
            let ([first, ..], [a, b, c]) = (in_order(&predicate), in_order(row.id()));
            let (predicate, object, [from, to]) = (digest(&predicate), digest(&object), [from, to].map(ordered));
            self.0.add([first, predicate, person, rest, name, one, other, from, a, b, c, object, to, place]);
        }
        true
    }

    /// Hands on the places of two facts about the same subject by the same predicate with another object that hold at the
    /// same time, the older one first. Each fact is the newer one of a pair at most. A predicate of several values has none.
    ///
    /// # Errors
    /// What did not fit in memory cannot be written or read.
    pub fn contradictions(self, mut pair: impl FnMut([u64; 2])) -> io::Result<()> {
        let sorted = self.0.sorted()?;
        let (mut ahead, mut stream) = (sorted.stream()?, sorted.stream()?);
        while let Some(predicate) = ahead.peek().map(|record| record[..PREDICATE].to_vec()) {
            let (mut subjects, mut several, mut is_counted) = (0, 0, false);
            each_fact(&mut ahead, &predicate, |is_first, _, older| {
                subjects += u64::from(is_first);
                is_counted &= !is_first;
                several += u64::from(older.is_some() && !is_counted);
                is_counted |= older.is_some();
            })?;
            let has_several_values = several >= MANY && several * OF >= subjects;
            each_fact(&mut stream, &predicate, |_, newer, older| {
                if let Some(older) = older.filter(|_| !has_several_values) {
                    pair([older.place, newer.place]);
                }
            })?;
        }
        Ok(())
    }
}

/// Hands on each fact of a predicate: whether it is the first about its subject, and the older one that it contradicts.
fn each_fact(
    stream: &mut RecordStream<'_, FACT>,
    predicate: &[u64],
    mut each: impl FnMut(bool, &Statement, Option<&Statement>),
) -> io::Result<()> {
    let (mut subject, mut before) = ([0; SUBJECT], VecDeque::new());
    while stream.peek().is_some_and(|record| record[..PREDICATE] == *predicate)
        && let Some(record) = stream.next()?
    {
        let is_first = before.is_empty() || record[..SUBJECT] != subject;
        if is_first {
            subject.copy_from_slice(&record[..SUBJECT]);
            before.clear();
        }
        let newer = Statement::of(&record);
        each(is_first, &newer, before.iter().find(|older| newer.contradicts(older)));
        before.truncate(BEFORE - 1);
        before.push_front(newer);
    }
    Ok(())
}

/// Word of a fact, as it is compared: without case, and a number however it is spelled. None for an empty one.
fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_lowercase(),
        Value::Number(number) => number.to_string(),
        Value::Bool(told) => told.to_string(),
        _ => return None,
    };
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && text.len() <= DIGITS);
    Some(number.map_or(text, |number| number.to_string())).filter(|word| !word.is_empty())
}

/// Time from which a fact holds, and to which; none where one cannot be read. One that says no beginning holds since it was
/// written.
fn validity(row: &Row, created: Option<i64>) -> Option<[i64; 2]> {
    let told = |name: &str| match row.within("metadata", name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) if text.trim().is_empty() => Some(None),
        Some(Value::String(text)) => time::epoch_micros(text.trim()).map(Some),
        Some(_) => None,
    };
    if !row.is_readable("expires_at") {
        return None;
    }
    let expires = row.text("expires_at").and_then(time::known).and_then(time::epoch_micros);
    let to = [told("valid_to")?, expires].into_iter().flatten().min().unwrap_or(FOR_EVER);
    let from = told("valid_from")?.or(created.filter(|created| *created < to)).unwrap_or(ALWAYS);
    Some([from, to])
}

impl Statement {
    fn of([.., from, _, _, _, object, to, place]: &Record<FACT>) -> Self {
        Statement { object: *object, from: *from, to: *to, place: *place }
    }

    /// Whether both are stated for a common time, and cannot both be true.
    fn contradicts(&self, other: &Statement) -> bool {
        self.object != other.object && self.to > other.from && other.to > self.from
    }
}
