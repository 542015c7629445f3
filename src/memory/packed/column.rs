//! Lists of very many small values, without unused capacity.

use super::pages::PageStore;

/// Values of a part.
const PART: usize = 1 << 16;

/// Values by index. Grows in parts, so that nothing is copied and in memory twice.
#[derive(Debug)]
pub(crate) struct Column<T>(Vec<Vec<T>>);

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column(Vec::new())
    }
}

impl<T> Column<T> {
    pub fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(part) if part.len() < PART => part.push(value),
            None => self.0.push(vec![value]),
            Some(_) => {
                let mut part = Vec::with_capacity(PART);
                part.push(value);
                self.0.push(part);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PART + last.len())
    }

    /// Bytes that the values take.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    pub fn at(&self, place: usize) -> Option<&T> {
        self.0.get(place / PART)?.get(place % PART)
    }
}

impl<T: Copy> Column<T> {
    pub fn get(&self, place: usize) -> Option<T> {
        self.at(place).copied()
    }
}

/// A value of a fixed number of bytes.
pub(crate) trait FixedBytes: Copy {
    /// The bytes.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Default;
    fn to_bytes(self) -> Self::Bytes;
    fn of_bytes(bytes: Self::Bytes) -> Self;
}

macro_rules! fixed_bytes {
    ($($number:ty),*) => {$(
        impl FixedBytes for $number {
            type Bytes = [u8; size_of::<$number>()];
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            fn of_bytes(bytes: Self::Bytes) -> Self {
                <$number>::from_le_bytes(bytes)
            }
        }
    )*};
}

fixed_bytes!(u8, u32, u64, i64, f64);

impl FixedBytes for [u8; 6] {
    type Bytes = Self;
    fn to_bytes(self) -> Self {
        self
    }
    fn of_bytes(bytes: Self) -> Self {
        bytes
    }
}

/// Values by index, of which whole parts may be in scratch space.
#[derive(Debug)]
pub(crate) struct PagedColumn<T> {
    pages: PageStore,
    parts: Vec<PagedPart<T>>,
}

#[derive(Debug)]
enum PagedPart<T> {
    Held(Vec<T>),
    /// Offset of the part in the scratch space.
    Written(usize),
}

impl<T: FixedBytes> PagedColumn<T> {
    /// Creates a column that keeps parts in memory while there is room.
    pub fn new(pages: &PageStore) -> Self {
        PagedColumn { pages: pages.clone(), parts: Vec::new() }
    }

    pub fn push(&mut self, value: T) {
        match self.parts.last_mut() {
            Some(PagedPart::Held(part)) if part.len() < PART => part.push(value),
            None => self.parts.push(PagedPart::Held(vec![value])),
            Some(_) => {
                let mut part = Vec::with_capacity(PART);
                part.push(value);
                self.parts.push(PagedPart::Held(part));
            }
        }
        if let Some(last) = self.parts.last_mut()
            && let PagedPart::Held(part) = last
            && part.len() == PART
            && !self.pages.takes(size_of_val(part.as_slice()))
        {
            let bytes: Vec<u8> = part.iter().flat_map(|value| Vec::from(value.to_bytes().as_ref())).collect();
            *last = PagedPart::Written(self.pages.write(&bytes));
        }
    }

    pub fn len(&self) -> usize {
        let of_last = |last: &PagedPart<T>| if let PagedPart::Held(part) = last { part.len() } else { PART };
        self.parts.last().map_or(0, |last| (self.parts.len() - 1) * PART + of_last(last))
    }

    pub fn get(&self, place: usize) -> Option<T> {
        match self.parts.get(place / PART)? {
            PagedPart::Held(part) => part.get(place % PART).copied(),
            PagedPart::Written(at) => {
                let mut bytes = T::Bytes::default();
                self.pages.read(at + place % PART * size_of::<T>(), bytes.as_mut());
                Some(T::of_bytes(bytes))
            }
        }
    }
}

/// Numbers by index: each part is as wide as its largest number needs.
#[derive(Debug, Default)]
pub(crate) struct NumberColumn(Vec<NumberPart>);

#[derive(Debug)]
enum NumberPart {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl NumberColumn {
    pub fn push(&mut self, number: u32) {
        match self.0.last_mut() {
            Some(part) if part.len() < PART => part.push(number),
            _ => {
                let mut part = NumberPart::One(Vec::new());
                part.push(number);
                self.0.push(part);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PART + last.len())
    }

    /// Bytes that the numbers take.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(NumberPart::size).sum()
    }

    pub fn get(&self, place: usize) -> Option<u32> {
        let at = place % PART;
        match self.0.get(place / PART)? {
            NumberPart::One(part) => part.get(at).map(|number| u32::from(*number)),
            NumberPart::Two(part) => part.get(at).map(|number| u32::from(*number)),
            NumberPart::Four(part) => part.get(at).copied(),
        }
    }
}

impl NumberPart {
    fn len(&self) -> usize {
        match self {
            NumberPart::One(part) => part.len(),
            NumberPart::Two(part) => part.len(),
            NumberPart::Four(part) => part.len(),
        }
    }

    fn size(&self) -> usize {
        match self {
            NumberPart::One(part) => size_of_val(part.as_slice()),
            NumberPart::Two(part) => size_of_val(part.as_slice()),
            NumberPart::Four(part) => size_of_val(part.as_slice()),
        }
    }

    fn push(&mut self, number: u32) {
        match (&mut *self, u8::try_from(number), u16::try_from(number)) {
            (NumberPart::One(part), Ok(number), _) => part.push(number),
            (NumberPart::Two(part), _, Ok(number)) => part.push(number),
            (NumberPart::Four(part), ..) => part.push(number),
            (NumberPart::One(part), ..) => {
                *self = NumberPart::Two(part.iter().map(|number| u16::from(*number)).collect());
                self.push(number);
            }
            (NumberPart::Two(part), ..) => {
                *self = NumberPart::Four(part.iter().map(|number| u32::from(*number)).collect());
                self.push(number);
            }
        }
    }
}

/// One bit each.
#[derive(Debug, Default)]
pub(crate) struct BitList(Vec<u64>);

impl BitList {
    pub fn new(bits: usize) -> Self {
        BitList(vec![0; bits.div_ceil(64)])
    }

    pub fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }

    /// Sets a bit; returns whether it was not set.
    pub fn set(&mut self, at: usize) -> bool {
        let was = self.get(at);
        if let Some(bits) = self.0.get_mut(at / 64) {
            *bits |= 1 << (at % 64);
        }
        !was
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::tests::space;
    use super::*;

    #[test]
    fn values_are_found_across_parts() {
        let mut column = Column::default();
        assert_eq!((column.len(), column.get(0)), (0, None));
        let count = 2 * PART + 1;
        (0..count).for_each(|n| column.push(n));
        assert_eq!((column.len(), column.get(PART - 1), column.get(PART)), (count, Some(PART - 1), Some(PART)));
        assert_eq!(column.bytes(), count * size_of::<usize>());
        assert_eq!((column.get(2 * PART), column.get(count)), (Some(2 * PART), None));
    }

    #[test]
    fn values_are_found_in_memory_and_in_the_file() {
        let pages = PageStore::new(PART * size_of::<u64>(), space);
        let (mut column, mut small) = (PagedColumn::new(&pages), PagedColumn::new(&pages));
        assert_eq!((column.len(), column.get(0)), (0, None));
        for n in 0..=3 * PART {
            column.push(n as u64);
            small.push([n as u8, 1, 2, 3, 4, 5]);
        }
        assert_eq!((column.len(), small.len()), (3 * PART + 1, 3 * PART + 1));
        assert!((0..=3 * PART).all(|n| column.get(n) == Some(n as u64)));
        assert!((0..=3 * PART).all(|n| small.get(n) == Some([n as u8, 1, 2, 3, 4, 5])));
        assert_eq!((column.get(3 * PART + 1), small.get(4 * PART)), (None, None));
        pages.check().unwrap();
    }

    #[test]
    fn numbers_are_as_wide_as_they_need_to_be() {
        for most in [200, 60_000, u32::MAX] {
            let mut numbers = NumberColumn::default();
            let number = |n: u32| if n.is_multiple_of(7) { most } else { n % 100 };
            (0..PART as u32 + 50).for_each(|n| numbers.push(number(n)));
            assert!((0..PART as u32 + 50).all(|n| numbers.get(n as usize) == Some(number(n))));
            assert_eq!((numbers.len(), numbers.get(PART + 50)), (PART + 50, None));
        }
    }
}
