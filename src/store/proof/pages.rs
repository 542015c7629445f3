//! Positions of values in the pages of an SQLite file, so that the end of one value with the bytes after it is not
//! mistaken for a handle.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;

const MAGIC: &[u8] = b"SQLite format 3\0";
/// Bytes of the file header, before the first page's own.
const HEADER: usize = 100;
/// Bytes of a page's number.
const NUMBER: usize = 4;
/// Number of pages from which a page number may look like the start of a tree page.
const MOST: u64 = 0x0200_0000;
/// Most pages over which one value is followed.
const LONGEST: usize = 1_000;

/// The pages of one file.
pub struct Pages {
    file: File,
    size: usize,
    /// Bytes of a page that SQLite uses.
    usable: usize,
    free: HashSet<u32>,
    count: u32,
    /// The page decoded last.
    last: Option<(u32, PageUse)>,
    /// For each page, the tree page whose value continues there; 0 for none. Read on demand.
    owners: Vec<u32>,
}

/// Use of a page, as far as it could be decoded.
#[derive(Debug, Default, PartialEq, Eq)]
struct PageUse {
    /// Bytes of cells, in order.
    used: Vec<Range<usize>>,
    /// Bytes of single values.
    values: Vec<Range<usize>>,
}

/// A cell of a page in a tree.
struct Cell {
    /// Bytes of the cell in the page.
    whole: Range<usize>,
    /// Bytes of the record in the page.
    local: Range<usize>,
    /// Bytes of the record.
    size: usize,
    /// First page that the record continues in.
    next: Option<u32>,
}

impl PageUse {
    /// Whether a place is in use, but not within a single value.
    fn is_across(&self, place: &Range<usize>) -> bool {
        let mut at = place.start;
        for used in self.used.iter().filter(|used| used.end > place.start) {
            if used.contains(&at) {
                at = used.end;
            }
        }
        at >= place.end && !self.values.iter().any(|value| value.start <= place.start && place.end <= value.end)
    }

    /// Adds a part of a record: `used` are its bytes in this page, beginning at `offset` of the record.
    fn add(&mut self, whole: Range<usize>, used: &Range<usize>, offset: usize, values: &[Range<usize>]) {
        let clip = |at: usize| at.saturating_sub(offset).min(used.len()) + used.start;
        self.values.extend(values.iter().map(|value| clip(value.start)..clip(value.end)));
        self.used.push(whole);
    }
}

impl Pages {
    /// Opens the pages of a file; `None` if it is not an SQLite database that can be decoded.
    ///
    /// # Errors
    /// The error of reading the file.
    pub fn of(mut file: File) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        (&mut file).take(HEADER as u64).read_to_end(&mut head)?;
        if head.len() < HEADER || !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let size = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let count = file.metadata()?.len() / size.max(1) as u64;
        if size < 512 || !size.is_power_of_two() || count >= MOST {
            return Ok(None);
        }
        let usable = size - usize::from(head[20]);
        let (free, owners) = (HashSet::new(), Vec::new());
        let mut pages = Pages { file, size, usable, free, count: count as u32, last: None, owners };
        Ok(pages.read_free(number(&head, 32).unwrap_or_default()).map(|()| pages))
    }

    /// Whether a place in the file is in use, but not within a single value; false if the page cannot be decoded.
    pub fn is_across(&mut self, place: &Range<u64>) -> bool {
        let size = self.size as u64;
        let first = place.start / size * size;
        let Ok(page) = u32::try_from(place.start / size + 1) else { return false };
        if self.last.as_ref().is_none_or(|(last, _)| *last != page) {
            let found = if self.free.contains(&page) { None } else { self.page_use(page) };
            self.last = Some((page, found.unwrap_or_default()));
        }
        let place = (place.start - first) as usize..(place.end - first) as usize;
        self.last.as_ref().is_some_and(|(_, found)| found.is_across(&place))
    }

    fn read(&mut self, page: u32, bytes: usize) -> Option<Vec<u8>> {
        let from = u64::from(page.checked_sub(1).filter(|_| page <= self.count)?) * self.size as u64;
        self.file.seek(SeekFrom::Start(from)).ok()?;
        let mut read = vec![0; bytes];
        self.file.read_exact(&mut read).ok()?;
        Some(read)
    }

    /// Records the free pages, which may contain anything.
    fn read_free(&mut self, mut trunk: u32) -> Option<()> {
        while trunk != 0 {
            let page = self.read(trunk, self.size)?;
            let leaves = 1..=number(&page, NUMBER)? as usize;
            self.free.insert(trunk).then_some(())?;
            for leaf in leaves {
                self.free.insert(number(&page, (leaf + 1) * NUMBER)?);
            }
            trunk = number(&page, 0)?;
        }
        Some(())
    }

    fn page_use(&mut self, page: u32) -> Option<PageUse> {
        let bytes = self.read(page, self.usable)?;
        let mut found = PageUse::default();
        let Some(cells) = cells(&bytes, page) else { return self.continued(page) };
        for cell in cells {
            if let Some(values) = values(bytes.get(cell.local.clone())?, cell.size) {
                found.add(cell.whole, &cell.local, 0, &values);
            }
        }
        found.used.sort_unstable_by_key(|used| used.start);
        Some(found)
    }

    /// Use of a page in which a value continues.
    fn continued(&mut self, page: u32) -> Option<PageUse> {
        if self.owners.is_empty() {
            self.read_owners();
        }
        let owner = self.owners.get(page as usize).copied().filter(|owner| *owner != 0)?;
        let bytes = self.read(owner, self.usable)?;
        for cell in cells(&bytes, owner)? {
            let Some(at) = self.chain(&cell).into_iter().position(|next| next == page) else { continue };
            let offset = cell.local.len() + at * (self.usable - NUMBER);
            let used = NUMBER..NUMBER + (self.usable - NUMBER).min(cell.size.checked_sub(offset)?);
            let mut found = PageUse::default();
            found.add(used.clone(), &used, offset, &values(bytes.get(cell.local)?, cell.size)?);
            return Some(found);
        }
        None
    }

    /// The pages in which a record continues, in order.
    fn chain(&mut self, cell: &Cell) -> Vec<u32> {
        let most = (cell.size - cell.local.len()).div_ceil(self.usable - NUMBER).min(LONGEST);
        let mut chain = Vec::new();
        let mut next = cell.next;
        while let Some(page) = next.filter(|_| chain.len() < most) {
            chain.push(page);
            next = self.read(page, NUMBER).and_then(|head| number(&head, 0));
        }
        chain
    }

    fn read_owners(&mut self) {
        self.owners = vec![0; self.count as usize + 1];
        for page in 1..=self.count {
            let bytes = if self.free.contains(&page) { None } else { self.read(page, self.usable) };
            let cells = bytes.and_then(|bytes| cells(&bytes, page));
            for cell in cells.into_iter().flatten() {
                for next in self.chain(&cell) {
                    if let Some(owner) = self.owners.get_mut(next as usize) {
                        *owner = page;
                    }
                }
            }
        }
    }
}

/// A big-endian page number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|bytes| usize::from(u16::from_be_bytes(*bytes)))
}

/// Reads an SQLite varint of one to nine bytes, and moves past it.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value: u64 = 0;
    for read in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if read == 8 {
            value = value << 8 | u64::from(byte);
            break;
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    usize::try_from(value).ok()
}

/// The cells with records of a tree page, given its usable bytes; `None` for another page.
fn cells(page: &[u8], number_of_page: u32) -> Option<Vec<Cell>> {
    let head = if number_of_page == 1 { HEADER } else { 0 };
    let (kind, count) = (*page.get(head)?, short(page, head + 3)?);
    let pointers = head
        + match kind {
            2 | 5 => 12,
            10 | 13 => 8,
            _ => return None,
        };
    let cells = (0..count).map(|n| short(page, pointers + 2 * n).and_then(|at| cell(page, kind, at)));
    // An interior table page has row numbers only.
    if kind == 5 { Some(Vec::new()) } else { cells.collect() }
}

fn cell(page: &[u8], kind: u8, start: usize) -> Option<Cell> {
    let usable = page.len();
    let mut at = if kind == 2 { start + NUMBER } else { start };
    let size = varint(page, &mut at)?;
    if kind == 13 {
        varint(page, &mut at)?;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let most = if kind == 13 { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
    if size <= most {
        return Some(Cell { whole: start..at + size, local: at..at + size, size, next: None });
    }
    let fitted = least + (size - least) % (usable - NUMBER);
    let end = at + if fitted <= most { fitted } else { least };
    Some(Cell { whole: start..end + NUMBER, local: at..end, size, next: Some(number(page, end)?) })
}

/// The bytes of each value in a record of some size, given its beginning; `None` if that is too short to tell.
fn values(record: &[u8], size: usize) -> Option<Vec<Range<usize>>> {
    let mut at = 0;
    let mut end = varint(record, &mut at)?;
    let head = record.get(..end)?;
    let mut values = Vec::new();
    while at < head.len() {
        let bytes = match varint(head, &mut at)? {
            0 | 8 | 9 => 0,
            kind @ 1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            kind => (kind - 12) / 2,
        };
        values.push(end..end.checked_add(bytes)?);
        end += bytes;
    }
    (end == size).then_some(values)
}
