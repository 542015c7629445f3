//! Ids of very many rows, stored compactly.

use std::borrow::Cow;

use uuid::Uuid;

use super::pages::PageStore;
use crate::memory::digest::digest;

/// Ids per part: few, because a part is in memory until it is full, whatever their length.
const PART: usize = 1 << 10;

/// Bytes of a UUID, and letters of one.
const UUID: usize = 16;
const UUID_LETTERS: usize = 36;

/// Longest id for which equal lengths are assumed.
const WIDE: usize = 256;

/// Ids by index. UUIDs take sixteen bytes; if all ids of a part have one length, their ends are not stored, and a
/// common prefix is stored once. Whole parts may be in scratch space.
#[derive(Debug, Default)]
pub(crate) struct IdList {
    parts: Vec<IdPart>,
    pages: Option<PageStore>,
}

#[derive(Debug)]
struct IdPart {
    /// Common prefix of all ids, once the part is full.
    begin: Vec<u8>,
    bytes: PartBytes,
    len: usize,
    shape: IdShape,
}

/// Stored bytes of a part's ids.
#[derive(Debug)]
enum PartBytes {
    Held(Vec<u8>),
    /// Their offset in the scratch space.
    Written(PageStore, usize),
}

#[derive(Debug)]
enum IdShape {
    /// UUIDs in lower case.
    Uuids,
    /// Texts of this many bytes.
    Wide(usize),
    /// Texts with their ends.
    Ends(Vec<u32>),
    /// The same, with the ends in the scratch space.
    WrittenEnds(PageStore, usize),
}

impl IdList {
    /// Creates a list that keeps parts in memory while there is room.
    pub fn paged(pages: &PageStore) -> Self {
        IdList { parts: Vec::new(), pages: Some(pages.clone()) }
    }

    pub fn push(&mut self, id: &str) {
        match self.parts.last_mut() {
            Some(part) if part.len < PART => part.push(id),
            _ => self.parts.push(IdPart::of(id)),
        }
        if let (Some(part), Some(pages)) = (self.parts.last_mut(), &self.pages)
            && part.len == PART
            && !pages.takes(part.size())
        {
            part.write(pages);
        }
    }

    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |last| (self.parts.len() - 1) * PART + last.len)
    }

    /// Bytes that the ids take.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(IdPart::size).sum()
    }

    /// The indexes of an id.
    pub fn places(&self, id: &str) -> Vec<usize> {
        let of_part = |(number, part): (usize, &IdPart)| {
            part.places(id).into_iter().map(|at| number * PART + at).collect::<Vec<_>>()
        };
        self.parts.iter().enumerate().flat_map(of_part).collect()
    }

    pub fn get(&self, place: usize) -> Option<Cow<'_, str>> {
        let (part, rest) = self.stored(place)?;
        match rest {
            Cow::Borrowed(rest) if part.begin.is_empty() && !matches!(part.shape, IdShape::Uuids) => {
                std::str::from_utf8(rest).ok().map(Cow::Borrowed)
            }
            rest => Some(Cow::Owned(part.spelled(&rest, &mut IdBuffer::default())?.to_owned())),
        }
    }

    /// The [`digest`] of an id.
    pub fn key(&self, place: usize) -> u64 {
        let key = |(part, rest): (&IdPart, Cow<'_, [u8]>)| part.spelled(&rest, &mut IdBuffer::default()).map(digest);
        self.stored(place).and_then(key).unwrap_or_default()
    }

    /// The part of an id, and its own stored bytes.
    fn stored(&self, place: usize) -> Option<(&IdPart, Cow<'_, [u8]>)> {
        let part = self.parts.get(place / PART)?;
        Some((part, part.kept(place % PART)?))
    }
}

/// Buffer for an assembled id.
struct IdBuffer {
    bytes: [u8; WIDE],
    letters: [u8; UUID_LETTERS],
}

impl Default for IdBuffer {
    fn default() -> Self {
        IdBuffer { bytes: [0; WIDE], letters: [0; UUID_LETTERS] }
    }
}

impl IdPart {
    fn of(id: &str) -> Self {
        let shape = match id.len() {
            _ if uuid(id).is_some() => IdShape::Uuids,
            width @ ..=WIDE => IdShape::Wide(width),
            _ => IdShape::Ends(Vec::new()),
        };
        let mut part = IdPart { begin: Vec::new(), bytes: PartBytes::Held(Vec::new()), len: 0, shape };
        part.push(id);
        part
    }

    fn push(&mut self, id: &str) {
        let PartBytes::Held(bytes) = &mut self.bytes else { return };
        match (&self.shape, uuid(id)) {
            (IdShape::Uuids, Some(uuid)) => bytes.extend_from_slice(uuid.as_bytes()),
            (IdShape::Wide(width), _) if id.len() == *width => bytes.extend_from_slice(id.as_bytes()),
            _ => push_any(&mut self.shape, bytes, self.len, id),
        }
        self.len += 1;
        if self.len == PART {
            self.take_begin();
        }
    }

    fn size(&self) -> usize {
        let ends = if let IdShape::Ends(ends) = &self.shape { size_of_val(ends.as_slice()) } else { 0 };
        let bytes = if let PartBytes::Held(bytes) = &self.bytes { bytes.len() } else { 0 };
        self.begin.len() + bytes + ends
    }

    /// Moves a full part to the scratch space.
    fn write(&mut self, pages: &PageStore) {
        if let IdShape::Ends(ends) = &self.shape {
            let bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            self.shape = IdShape::WrittenEnds(pages.clone(), pages.write(&bytes));
        }
        if let PartBytes::Held(bytes) = &self.bytes {
            self.bytes = PartBytes::Written(pages.clone(), pages.write(bytes));
        }
    }

    /// The own stored bytes of an id.
    fn kept(&self, at: usize) -> Option<Cow<'_, [u8]>> {
        let range = self.range(at)?;
        match &self.bytes {
            PartBytes::Held(bytes) => bytes.get(range).map(Cow::Borrowed),
            PartBytes::Written(pages, from) => {
                let mut bytes = vec![0; range.len()];
                pages.read(from + range.start, &mut bytes);
                Some(Cow::Owned(bytes))
            }
        }
    }

    fn places(&self, id: &str) -> Vec<usize> {
        let uuid = uuid(id);
        let kept = match (&self.shape, &uuid) {
            (IdShape::Uuids, Some(uuid)) => uuid.as_bytes().as_slice(),
            (IdShape::Uuids, None) => return Vec::new(),
            _ => id.as_bytes(),
        };
        let Some(rest) = kept.strip_prefix(self.begin.as_slice()) else { return Vec::new() };
        let is_same = |at: &usize| self.kept(*at).as_deref() == Some(rest);
        (0..self.len).filter(is_same).collect()
    }

    /// Removes the common prefix.
    fn take_begin(&mut self) {
        let width = self.width();
        let PartBytes::Held(bytes) = &mut self.bytes else { return };
        let Some(first) = bytes.get(..width).filter(|first| !first.is_empty()) else { return };
        let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let shared = bytes.chunks(width).map(|id| same(first, id)).min().unwrap_or_default();
        self.begin = first.get(..shared).unwrap_or_default().to_vec();
        *bytes = bytes.chunks(width).flat_map(|id| id.get(shared..).unwrap_or_default()).copied().collect();
    }

    /// Length of each id; 0 if they differ.
    fn width(&self) -> usize {
        match self.shape {
            IdShape::Uuids => UUID,
            IdShape::Wide(width) => width,
            IdShape::Ends(_) | IdShape::WrittenEnds(..) => 0,
        }
    }

    /// Assembles an id from its stored bytes.
    fn spelled<'b>(&self, rest: &'b [u8], buffer: &'b mut IdBuffer) -> Option<&'b str> {
        if matches!(self.shape, IdShape::Ends(_) | IdShape::WrittenEnds(..)) {
            return std::str::from_utf8(rest).ok();
        }
        let bytes = buffer.bytes.get_mut(..self.width())?;
        bytes.get_mut(..self.begin.len())?.copy_from_slice(&self.begin);
        bytes.get_mut(self.begin.len()..)?.copy_from_slice(rest);
        match self.shape {
            IdShape::Uuids => Some(Uuid::from_slice(bytes).ok()?.hyphenated().encode_lower(&mut buffer.letters)),
            _ => std::str::from_utf8(bytes).ok(),
        }
    }

    fn range(&self, at: usize) -> Option<std::ops::Range<usize>> {
        let end = |at: usize| match &self.shape {
            IdShape::Ends(ends) => ends.get(at).copied(),
            IdShape::WrittenEnds(pages, from) => {
                let mut end = [0; 4];
                pages.read(from + at * end.len(), &mut end);
                Some(u32::from_le_bytes(end))
            }
            IdShape::Uuids | IdShape::Wide(_) => None,
        };
        if at >= self.len {
            return None;
        }
        if let Some(to) = end(at) {
            let from = at.checked_sub(1).and_then(end).unwrap_or_default();
            return Some(from as usize..to as usize);
        }
        let width = self.width() - self.begin.len();
        Some(at * width..(at + 1) * width)
    }
}

/// Adds an id that does not fit the shape of the `len` ids before.
fn push_any(shape: &mut IdShape, bytes: &mut Vec<u8>, len: usize, id: &str) {
    if matches!(shape, IdShape::Uuids) {
        let texts = bytes.chunks(UUID).filter_map(|bytes| Uuid::from_slice(bytes).ok());
        *bytes = texts.flat_map(|uuid| uuid.to_string().into_bytes()).collect();
        *shape = IdShape::Wide(UUID_LETTERS);
    }
    if let IdShape::Wide(width) = shape {
        *shape = IdShape::Ends((1..=len).map(|n| (n * *width) as u32).collect());
    }
    if let IdShape::Ends(ends) = shape {
        // Beyond 4 GB ids are only counted, not stored.
        if u32::try_from(bytes.len() + id.len()).is_ok() {
            bytes.extend_from_slice(id.as_bytes());
        }
        ends.push(bytes.len() as u32);
    }
}

/// Parses an id that is a UUID in the usual form.
fn uuid(id: &str) -> Option<Uuid> {
    let uuid = Uuid::try_parse(id).ok().filter(|_| id.len() == UUID_LETTERS)?;
    (uuid.hyphenated().encode_lower(&mut [0; UUID_LETTERS]) == id).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::super::space::tests::space;
    use super::*;

    #[test]
    fn few_long_ids_are_held_where_there_is_no_room() {
        let mut ids = IdList::paged(&PageStore::new(0, space));
        (0..5_000).for_each(|n| ids.push(&format!("{n:04000}")));
        assert!(ids.bytes() < 5 << 20, "{} of 20,000,000 bytes", ids.bytes());
        assert_eq!(ids.get(4_999), Some(format!("{:04000}", 4_999).into()));
    }

    #[test]
    fn ids_of_any_shape_come_back_as_they_were() {
        let uuid = |n: usize| Uuid::from_u128(n as u128).to_string();
        let wide = |n: usize| format!("ep_{n:08}");
        let any = |n: usize| match n % 5 {
            0 => String::new(),
            1 => uuid(n).to_uppercase(),
            2 => uuid(n),
            3 => "é".repeat(n % 7),
            _ => n.to_string(),
        };
        let late = |n: usize| if n == 40 { "odd".to_owned() } else { uuid(n) };
        let longer = |n: usize| if n < 40 { wide(n) } else { format!("longer {n}") };
        let shapes: [&dyn Fn(usize) -> String; 5] = [&uuid, &wide, &any, &late, &longer];
        for shape in shapes {
            let mut ids = IdList::default();
            (0..100).for_each(|n| ids.push(&shape(n)));
            assert_eq!(ids.len(), 100);
            for n in 0..100 {
                assert_eq!(ids.get(n).as_deref(), Some(&*shape(n)));
                assert_eq!(ids.key(n), digest(&shape(n)));
                let same: Vec<usize> = (0..100).filter(|other| shape(*other) == shape(n)).collect();
                assert_eq!(ids.places(&shape(n)), same);
            }
            assert!(ids.bytes() > 0 && ids.places("not one of these").is_empty());
            assert_eq!((ids.get(100), ids.key(100)), (None, 0));
        }
        let shapes: [&dyn Fn(usize) -> String; 4] = [&uuid, &wide, &any, &|_| "one".to_owned()];
        for (shape, written) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let mut ids = if written { IdList::paged(&PageStore::new(0, space)) } else { IdList::default() };
            (0..=PART).for_each(|n| ids.push(&shape(n)));
            assert_eq!(ids.len(), PART + 1);
            for n in [0, 1, PART - 1, PART] {
                assert_eq!((ids.get(n).as_deref(), ids.key(n)), (Some(&*shape(n)), digest(&shape(n))));
                assert!(ids.places(&shape(n)).contains(&n));
            }
        }
    }
}
