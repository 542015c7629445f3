//! Pieces of binary documents: keys, texts, numbers and bytes with their places, as each reader returns them.

use std::ops::Range;

use super::LeafKind;
use super::place::DocumentStep;

/// Levels within each other that a reader follows; real writers refuse more.
pub(super) const DEPTH: usize = 1_024;
/// Levels of which the path is kept.
pub(super) const PATH: usize = 64;

/// The bytes are no document of that format, or a damaged one.
#[derive(Debug)]
pub(super) struct BrokenDocument;

/// One part of a document.
#[derive(Debug)]
pub(super) struct DocumentPiece {
    pub kind: LeafKind,
    /// Bytes of the part in the document, including those that give its type and length.
    pub whole: Range<usize>,
    pub body: PieceBody,
}

/// Content of a part.
#[derive(Debug)]
pub(super) enum PieceBody {
    /// Bytes that should be UTF-8.
    Text(Range<usize>),
    /// A text of a byte a letter, with escapes for others.
    Line(Range<usize>),
    /// Bytes of any kind.
    Bytes(Range<usize>),
    /// A text, or bytes, that is in pieces, put together.
    Joined(Vec<u8>),
    /// A whole number.
    Number(i128),
}

/// A reader of one format: parts in order, none at the end.
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

/// Whether bytes can be read to the end and every text in them is one, and how long the longest text is.
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

/// Bytes that are read from the front.
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

    /// Range of the next bytes, by their number.
    pub fn take(&mut self, length: u64) -> Result<Range<usize>, BrokenDocument> {
        let start = self.at;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or(BrokenDocument)?;
        if end > self.bytes.len() {
            return Err(BrokenDocument);
        }
        self.at = end;
        Ok(start..end)
    }

    /// A number of up to eight bytes, the highest first.
    pub fn big(&mut self, width: usize) -> Result<u64, BrokenDocument> {
        let range = self.take(width as u64)?;
        Ok(self.bytes[range].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A number of up to eight bytes, the lowest first.
    pub fn little(&mut self, width: usize) -> Result<u64, BrokenDocument> {
        let range = self.take(width as u64)?;
        Ok(self.bytes[range].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The line that begins here, without its end.
    pub fn line(&mut self) -> Result<Range<usize>, BrokenDocument> {
        let length = self.bytes[self.at..].iter().position(|b| *b == b'\n').ok_or(BrokenDocument)?;
        let range = self.take(length as u64)?;
        self.at += 1;
        Ok(range)
    }
}

/// A number of that many bytes with its sign.
pub(super) fn signed(number: u64, width: usize) -> i128 {
    let bits = 64 - 8 * width as u32;
    i128::from(((number << bits) as i64) >> bits)
}

/// Arrays and maps that are open within each other.
#[derive(Debug, Default)]
pub(super) struct OpenNesting {
    open: Vec<Level>,
    steps: Vec<DocumentStep>,
}

#[derive(Debug)]
struct Level {
    /// Values still to come; none when an end is marked.
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

    /// Begins an array or map and opens it; `items` are elements or pairs, none when an end is marked.
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

    /// Closes what is complete, before the next value is read.
    pub fn close_full(&mut self) {
        while self.open.last().is_some_and(|level| level.left == Some(0)) {
            self.leave();
        }
    }

    /// Closes the innermost level at its mark.
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

    /// Takes a value that is not an array or map, whose bytes are `whole`. Gives the part that it is, if it has a
    /// content.
    pub fn piece(&mut self, whole: Range<usize>, body: Option<PieceBody>) -> Option<DocumentPiece> {
        let kind = if matches!(body, Some(PieceBody::Number(_))) { LeafKind::Number } else { self.kind() };
        self.begin(match &body {
            Some(PieceBody::Text(range)) => DocumentStep::Key(range.clone()),
            Some(PieceBody::Number(number)) => DocumentStep::Number(*number),
            _ => DocumentStep::Key(0..0),
        });
        body.map(|body| DocumentPiece { kind, whole, body })
    }

    /// Notes that a value begins; `key` leads on if it is a key.
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

/// Whether the first bytes can be those of a document that is not text.
pub(super) fn may_begin(start: &[u8]) -> bool {
    matches!(start, [0x80..=0xBF | 0xD9 | 0xDC..=0xDF | 0x08 | 0x0A | 0x12 | 0x1A, ..] | [b'P', b'K', 3 | 5, ..])
}
