//! Pieces of binary documents: keys, texts, numbers and bytes with their positions, as each reader returns them.

use std::ops::Range;

use super::LeafKind;
use super::place::DocumentStep;

/// Most nesting levels that a reader follows; real writers refuse more.
pub(super) const DEPTH: usize = 1_024;
/// Levels whose path is kept.
pub(super) const PATH: usize = 64;

/// The bytes are not a document of that format, or a damaged one.
#[derive(Debug)]
pub(super) struct BrokenDocument;

/// One part of a document.
#[derive(Debug)]
pub(super) struct DocumentPiece {
    pub kind: LeafKind,
    /// Bytes of the part in the document, including its type and length.
    pub whole: Range<usize>,
    pub body: PieceBody,
}

/// Content of a part.
#[derive(Debug)]
pub(super) enum PieceBody {
    /// Bytes that should be UTF-8.
    Text(Range<usize>),
    /// A text with one byte per letter, with escapes for others.
    Line(Range<usize>),
    /// Bytes of any kind.
    Bytes(Range<usize>),
    /// A text, or bytes, joined from chunks.
    Joined(Vec<u8>),
    /// A whole number.
    Number(i128),
}

/// A reader of one format: returns the parts in order, `None` at the end.
pub(super) trait PieceReader {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument>;

    /// Returns the path to the last part.
    fn steps(&self) -> &[DocumentStep];
}

impl<P: PieceReader> PieceReader for &mut P {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument> {
        (**self).next()
    }

    fn steps(&self) -> &[DocumentStep] {
        (**self).steps()
    }
}

/// The length of the longest text, if the bytes can be parsed to the end and every text in them is valid.
pub(super) fn longest_text(bytes: &[u8], mut pieces: impl PieceReader) -> Option<usize> {
    let mut longest = 0;
    loop {
        match pieces.next() {
            Ok(None) => return Some(longest),
            Ok(Some(DocumentPiece { body: PieceBody::Text(range), .. })) => {
                std::str::from_utf8(&bytes[range.clone()]).ok()?;
                longest = longest.max(range.len());
            }
            Ok(Some(DocumentPiece { body: PieceBody::Line(range), .. })) => longest = longest.max(range.len()),
            Ok(Some(DocumentPiece { body: PieceBody::Joined(all), .. })) => longest = longest.max(all.len()),
            Ok(Some(_)) => {}
            Err(BrokenDocument) => return None,
        }
    }
}

/// Bytes with a read position.
#[derive(Debug)]
pub(super) struct ByteCursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> ByteCursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        ByteCursor { bytes, at: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> Result<u8, BrokenDocument> {
        let byte = *self.bytes.get(self.at).ok_or(BrokenDocument)?;
        self.at += 1;
        Ok(byte)
    }

    /// Range of the next `length` bytes.
    pub fn take(&mut self, length: u64) -> Result<Range<usize>, BrokenDocument> {
        let start = self.at;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or(BrokenDocument)?;
        if end > self.bytes.len() {
            return Err(BrokenDocument);
        }
        self.at = end;
        Ok(start..end)
    }

    /// A big-endian number of up to eight bytes.
    pub fn big(&mut self, width: usize) -> Result<u64, BrokenDocument> {
        let range = self.take(width as u64)?;
        Ok(self.bytes[range].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A little-endian number of up to eight bytes.
    pub fn little(&mut self, width: usize) -> Result<u64, BrokenDocument> {
        let range = self.take(width as u64)?;
        Ok(self.bytes[range].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The line that begins here, without its line break.
    pub fn line(&mut self) -> Result<Range<usize>, BrokenDocument> {
        let length = self.bytes[self.at..].iter().position(|b| *b == b'\n').ok_or(BrokenDocument)?;
        let range = self.take(length as u64)?;
        self.at += 1;
        Ok(range)
    }
}

/// A signed number of that many bytes.
pub(super) fn signed(number: u64, width: usize) -> i128 {
    let bits = 64 - 8 * width as u32;
    i128::from(((number << bits) as i64) >> bits)
}

/// Open, nested arrays and maps.
#[derive(Debug, Default)]
pub(super) struct OpenNesting {
    open: Vec<Level>,
    steps: Vec<DocumentStep>,
}

#[derive(Debug)]
struct Level {
    /// Values still to come; `None` if an end mark follows.
    left: Option<u64>,
    is_map: bool,
    seen: usize,
}

impl OpenNesting {
    /// Returns the path to the last value.
    pub fn steps(&self) -> &[DocumentStep] {
        &self.steps
    }

    pub fn is_root(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the role of the next value, if it is a text.
    fn kind(&self) -> LeafKind {
        let is_key = self.open.last().is_some_and(|level| level.is_map && level.seen.is_multiple_of(2));
        if is_key { LeafKind::Key } else { LeafKind::Text }
    }

    /// Begins an array or map; `items` are elements or pairs, `None` if an end mark follows.
    pub fn enter(&mut self, items: Option<u64>, is_map: bool) -> Result<(), BrokenDocument> {
        self.begin(DocumentStep::Key(0..0));
        if self.open.len() >= DEPTH {
            return Err(BrokenDocument);
        }
        let left =
            items.map(|items| items.checked_mul(if is_map { 2 } else { 1 }).ok_or(BrokenDocument)).transpose()?;
        self.open.push(Level { left, is_map, seen: 0 });
        if self.open.len() <= PATH {
            self.steps.push(DocumentStep::At(0));
        }
        Ok(())
    }

    /// Closes completed levels before the next value is read.
    pub fn close_full(&mut self) {
        while self.open.last().is_some_and(|level| level.left == Some(0)) {
            self.leave();
        }
    }

    /// Closes the innermost level at its end mark.
    pub fn close_marked(&mut self) -> Result<(), BrokenDocument> {
        let level = self.open.last().ok_or(BrokenDocument)?;
        if level.left.is_some() || level.is_map && !level.seen.is_multiple_of(2) {
            return Err(BrokenDocument);
        }
        self.leave();
        Ok(())
    }

    fn leave(&mut self) {
        if self.open.len() <= PATH {
            self.steps.pop();
        }
        self.open.pop();
    }

    /// Adds a value other than an array or map, with its bytes `whole`. Returns its part, if it has contents.
    pub fn piece(&mut self, whole: Range<usize>, body: Option<PieceBody>) -> Option<DocumentPiece> {
        let kind = if matches!(body, Some(PieceBody::Number(_))) { LeafKind::Number } else { self.kind() };
        self.begin(match &body {
            Some(PieceBody::Text(range)) => DocumentStep::Key(range.clone()),
            Some(PieceBody::Number(number)) => DocumentStep::Number(*number),
            _ => DocumentStep::Key(0..0),
        });
        body.map(|body| DocumentPiece { kind, whole, body })
    }

    /// Records the start of a value; `key` is the path step if it is a key.
    fn begin(&mut self, key: DocumentStep) {
        let kind = self.kind();
        let depth = self.open.len();
        let Some(level) = self.open.last_mut() else { return };
        level.left = level.left.map(|left| left.saturating_sub(1));
        let step = match (level.is_map, kind) {
            (true, LeafKind::Key) => Some(key),
            (true, _) => None,
            (false, _) => Some(DocumentStep::At(level.seen)),
        };
        level.seen += 1;
        if let (Some(step), Some(last)) = (step, self.steps.last_mut().filter(|_| depth <= PATH)) {
            *last = step;
        }
    }
}

/// Whether the first bytes may begin a binary document.
pub(super) fn may_begin(start: &[u8]) -> bool {
    matches!(start, [0x80..=0xBF | 0xD9 | 0xDC..=0xDF | 0x08 | 0x0A | 0x12 | 0x1A, ..] | [b'P', b'K', 3 | 5, ..])
}
