//! A compact list of fetched rows, in order; rows that do not fit in memory go to scratch space.

use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::fetched::{FetchedValue, RawRow};
use crate::memory::packed::pages::PageStore;

/// Bytes from which a part is full.
const PART: usize = 64 << 10;

/// Rows by their number.
#[derive(Debug, Clone)]
pub struct RowList {
    pages: PageStore,
    parts: Vec<RowPart>,
    /// The last part, not yet full.
    last: Vec<u8>,
    /// Number of rows in the full parts.
    before: usize,
    len: usize,
}

#[derive(Debug, Clone)]
struct RowPart {
    /// Number of its first row.
    first: usize,
    bytes: PartBytes,
}

#[derive(Debug, Clone)]
enum PartBytes {
    Held(Arc<[u8]>),
    /// Offset in the scratch space, and length.
    Written(usize, usize),
}

impl RowList {
    /// Creates an empty list that shares storage with others.
    pub(crate) fn new(pages: &PageStore) -> Self {
        RowList { pages: pages.clone(), parts: Vec::new(), last: Vec::new(), before: 0, len: 0 }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[FetchedValue]) {
        put_number(&mut self.last, row.len());
        row.iter().for_each(|value| put(&mut self.last, value));
        self.len += 1;
        if self.last.len() >= PART {
            self.close();
        }
    }

    /// Finishes the last part, in memory or in the scratch space.
    pub fn close(&mut self) {
        let part = std::mem::take(&mut self.last);
        if part.is_empty() {
            return;
        }
        let bytes = if self.pages.takes(part.len()) {
            PartBytes::Held(part.into())
        } else {
            PartBytes::Written(self.pages.write(&part), part.len())
        };
        self.parts.push(RowPart { first: self.before, bytes });
        self.before = self.len;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows of a range, as they were added. It ends early if the scratch space cannot be read, which
    /// [`RowList::check`] reports.
    pub fn rows(&self, range: Range<usize>) -> impl Iterator<Item = RawRow> + '_ {
        let part = self.parts.partition_point(|part| part.first <= range.start).saturating_sub(1);
        let first = self.parts.get(part).map_or(self.before, |part| part.first);
        let rows = RowReader {
            list: self,
            part,
            bytes: self.part(part),
            at: 0,
            left: range.end.min(self.len) - first.min(range.end),
        };
        rows.skip(range.start - first.min(range.start))
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = RawRow> + '_ {
        self.rows(0..self.len)
    }

    /// Checks whether all rows could be written and read.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.pages.check()
    }

    fn part(&self, number: usize) -> Arc<[u8]> {
        match self.parts.get(number).map(|part| &part.bytes) {
            None => self.last.as_slice().into(),
            Some(PartBytes::Held(bytes)) => bytes.clone(),
            Some(PartBytes::Written(at, len)) => {
                let mut bytes = vec![0; *len];
                self.pages.read(*at, &mut bytes);
                // Unreadable bytes are zeros, which would be rows without values.
                if self.pages.check().is_ok() { bytes.into() } else { Arc::new([]) }
            }
        }
    }
}

/// Reads consecutive rows.
struct RowReader<'l> {
    list: &'l RowList,
    part: usize,
    bytes: Arc<[u8]>,
    at: usize,
    left: usize,
}

impl Iterator for RowReader<'_> {
    type Item = RawRow;

    fn next(&mut self) -> Option<RawRow> {
        self.left = self.left.checked_sub(1)?;
        if self.at >= self.bytes.len() {
            self.part += 1;
            (self.bytes, self.at) = (self.list.part(self.part), 0);
        }
        let mut rest = self.bytes.get(self.at..)?;
        let before = rest.len();
        let row = take_row(&mut rest)?;
        self.at += before - rest.len();
        Some(row)
    }
}

/// Two hashes of some values, together unique for each row.
pub fn row_digest(values: &[FetchedValue]) -> [u64; 2] {
    [0_u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        values.iter().for_each(|value| hash(value, &mut hasher));
        hasher.finish()
    })
}

fn hash(value: &FetchedValue, hasher: &mut DefaultHasher) {
    match value {
        FetchedValue::Null => hasher.write_u8(0),
        FetchedValue::Text(text) => (1_u8, text).hash(hasher),
        FetchedValue::BadText(bytes) => (2_u8, bytes).hash(hasher),
        FetchedValue::Bytes(bytes) => (3_u8, bytes).hash(hasher),
        FetchedValue::Integer(number) => (4_u8, number).hash(hasher),
        FetchedValue::Real(number) => (5_u8, number.to_bits()).hash(hasher),
    }
}

fn put(bytes: &mut Vec<u8>, value: &FetchedValue) {
    let (kind, held) = match value {
        FetchedValue::Null => return bytes.push(0),
        FetchedValue::Text(text) => (1, text.as_bytes()),
        FetchedValue::BadText(held) => (2, held.as_slice()),
        FetchedValue::Bytes(held) => (3, held.as_slice()),
        FetchedValue::Integer(number) => (4, &number.to_le_bytes()[..]),
        FetchedValue::Real(number) => (5, &number.to_le_bytes()[..]),
    };
    bytes.push(kind);
    if kind < 4 {
        put_number(bytes, held.len());
    }
    bytes.extend_from_slice(held);
}

/// Seven bits per byte, lowest first; the eighth bit marks that more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_row(bytes: &mut &[u8]) -> Option<RawRow> {
    let count = take_number(bytes)?;
    (0..count).map(|_| take_value(bytes)).collect()
}

fn take_value(bytes: &mut &[u8]) -> Option<FetchedValue> {
    let kind = *bytes.split_off_first()?;
    let fixed = |bytes: &mut &[u8]| bytes.split_off(..8).and_then(|held| held.try_into().ok());
    Some(match kind {
        0 => FetchedValue::Null,
        4 => FetchedValue::Integer(i64::from_le_bytes(fixed(bytes)?)),
        5 => FetchedValue::Real(f64::from_le_bytes(fixed(bytes)?)),
        _ => {
            let count = take_number(bytes)?;
            let held = bytes.split_off(..count)?.to_vec();
            match kind {
                1 => FetchedValue::Text(String::from_utf8(held).ok()?),
                2 => FetchedValue::BadText(held),
                _ => FetchedValue::Bytes(held),
            }
        }
    })
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::packed::space::tests::{no_space, space};

    fn value() -> impl Strategy<Value = FetchedValue> {
        prop_oneof![
            Just(FetchedValue::Null),
            "[a-zé]{0,300}".prop_map(FetchedValue::Text),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(FetchedValue::Bytes),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(FetchedValue::BadText),
            any::<i64>().prop_map(FetchedValue::Integer),
            (-9.0..9.0).prop_map(FetchedValue::Real),
        ]
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_came(
            rows in prop::collection::vec(prop::collection::vec(value(), 0..4), 0..9), times in 1usize..900, room in 0usize..200_000,
            closed in 0usize..2_000
        ) {
            let mut list = RowList::new(&PageStore::new(room, space));
            let all: Vec<&RawRow> = std::iter::repeat_n(&rows, times).flatten().collect();
            for (n, row) in all.iter().enumerate() {
                list.push(row);
                if n == closed {
                    list.close();
                    list.close();
                }
            }
            prop_assert_eq!((list.len(), list.is_empty()), (all.len(), all.is_empty()));
            prop_assert!(list.iter().eq(all.iter().map(|row| (*row).clone())));
            for from in [0, 1, all.len() / 2, all.len()] {
                let range = from.min(all.len())..(from + 3).min(all.len());
                prop_assert!(list.rows(range.clone()).eq(all[range].iter().map(|row| (*row).clone())));
            }
        }
    }

    #[test]
    fn values_of_different_kinds_are_different_keys() {
        let keys = [
            vec![FetchedValue::Text("1".to_owned())],
            vec![FetchedValue::Integer(1)],
            vec![FetchedValue::Bytes(b"1".to_vec())],
            vec![FetchedValue::Null, FetchedValue::Integer(1)],
            vec![FetchedValue::Text("1".to_owned()), FetchedValue::Text(String::new())],
            vec![FetchedValue::Text(String::new()), FetchedValue::Text("1".to_owned())],
        ];
        let different: std::collections::HashSet<_> = keys.iter().map(|key| row_digest(key)).collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn a_list_without_room_says_so() {
        let pages = PageStore::new(0, no_space);
        let mut list = RowList::new(&pages);
        let row = [FetchedValue::Text("long ".repeat(PART))];
        (0..3).for_each(|_| list.push(&row));
        assert!(list.iter().next().is_none() && list.check().is_err() && list.check().is_err());
    }
}
