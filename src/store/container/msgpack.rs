//! `MessagePack`, with the extension types of `LangGraph`: read part by part, with lengths rewritten for changed parts.
//!
//! An own reader, because crates decode into trees and lose the original bytes.

use std::ops::Range;

use super::LeafKind;
use super::piece::{
    BrokenDocument, ByteCursor, DocumentPiece, OpenNesting, PieceBody, PieceReader, longest_text, signed,
};
use super::place::DocumentStep;

/// The extension type of times.
const TIME: u8 = 0xFF;
/// Extension types, up to this one, with which `LangGraph` names a class and the arguments of an object.
const OBJECT: u8 = 5;
/// Indexes of the module, the class and the method in such a list.
const CLASS: [usize; 3] = [0, 1, 3];

#[derive(Debug)]
pub(super) struct MsgpackReader<'a> {
    cursor: ByteCursor<'a>,
    nesting: OpenNesting,
    values: usize,
    /// Whether the list describes an object.
    is_object: bool,
}

/// The length of the longest text, if the bytes are `MessagePack` with contents: one array, map, text, binary or
/// extension, or several arrays and maps in a row.
pub(super) fn longest(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let compound = matches!(first, 0x80..=0x9F | 0xDC..=0xDF);
    if !compound && !matches!(first, 0xA0..=0xBF | 0xC4..=0xC9 | 0xD4..=0xDB) {
        return None;
    }
    let mut reader = MsgpackReader::new(bytes);
    let longest = longest_text(bytes, &mut reader)?;
    (compound || reader.values == 1).then_some(longest)
}

/// Whether a part is an extension that creates an object of a named class.
pub(super) fn makes_object(part: &[u8]) -> bool {
    let at = match part.first() {
        Some(0xD4..=0xD8) => 1,
        Some(head @ 0xC7..=0xC9) => 1 + (1 << (head - 0xC7)),
        _ => return false,
    };
    part.get(at).is_some_and(|kind| *kind <= OBJECT)
}

/// Whether bytes contain more than that many values, counted up to a syntax error.
pub(super) fn holds_more(bytes: &[u8], most: usize) -> bool {
    let mut reader = MsgpackReader::new(bytes);
    let mut next = || -> Result<(), BrokenDocument> {
        let head = reader.cursor.byte()?;
        if reader.compound(head)?.is_none() {
            reader.value(head)?;
        }
        Ok(())
    };
    (0..=most).all(|_| next().is_ok())
}

impl<'a> MsgpackReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        MsgpackReader { cursor: ByteCursor::new(bytes), nesting: OpenNesting::default(), values: 0, is_object: false }
    }

    /// A reader for the description of an object.
    pub fn of_object(bytes: &'a [u8]) -> Self {
        MsgpackReader { is_object: true, ..Self::new(bytes) }
    }

    fn body(&mut self, width: usize) -> Result<Range<usize>, BrokenDocument> {
        let length = self.cursor.big(width)?;
        self.cursor.take(length)
    }

    fn extension(&mut self, length: u64) -> Result<Option<PieceBody>, BrokenDocument> {
        let kind = self.cursor.byte()?;
        let range = self.cursor.take(length)?;
        Ok((kind != TIME).then_some(PieceBody::Bytes(range)))
    }

    /// Reads a value; `None` if it is neither text, bytes nor an integer.
    fn value(&mut self, head: u8) -> Result<Option<PieceBody>, BrokenDocument> {
        let number = |number: i128| Ok(Some(PieceBody::Number(number)));
        match head {
            0x00..=0x7F => number(head.into()),
            0xE0..=0xFF => number((head as i8).into()),
            0xA0..=0xBF => Ok(Some(PieceBody::Text(self.cursor.take(u64::from(head & 31))?))),
            0xD9..=0xDB => Ok(Some(PieceBody::Text(self.body(1 << (head - 0xD9))?))),
            0xC4..=0xC6 => Ok(Some(PieceBody::Bytes(self.body(1 << (head - 0xC4))?))),
            0xCC..=0xCF => number(self.cursor.big(1 << (head - 0xCC))?.into()),
            0xD0..=0xD3 => {
                let width = 1 << (head - 0xD0);
                number(signed(self.cursor.big(width)?, width))
            }
            0xD4..=0xD8 => self.extension(1 << (head - 0xD4)),
            0xC7..=0xC9 => {
                let length = self.cursor.big(1 << (head - 0xC7))?;
                self.extension(length)
            }
            0xCA => self.cursor.take(4).map(|_| None),
            0xCB => self.cursor.take(8).map(|_| None),
            0xC0 | 0xC2 | 0xC3 => Ok(None),
            _ => Err(BrokenDocument),
        }
    }

    /// Whether an array or a map begins, and its number of elements or pairs.
    fn compound(&mut self, head: u8) -> Result<Option<(u64, bool)>, BrokenDocument> {
        Ok(Some(match head {
            0x80..=0x8F => (u64::from(head & 15), true),
            0x90..=0x9F => (u64::from(head & 15), false),
            0xDC | 0xDD => (self.cursor.big(2 << (head - 0xDC))?, false),
            0xDE | 0xDF => (self.cursor.big(2 << (head - 0xDE))?, true),
            _ => return Ok(None),
        }))
    }
}

impl PieceReader for MsgpackReader<'_> {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument> {
        loop {
            self.nesting.close_full();
            if self.cursor.is_at_end() {
                return if self.nesting.is_root() { Ok(None) } else { Err(BrokenDocument) };
            }
            let start = self.cursor.at;
            let head = self.cursor.byte()?;
            if self.nesting.is_root() {
                self.values += 1;
            }
            if let Some((items, is_map)) = self.compound(head)? {
                self.nesting.enter(Some(items), is_map)?;
                continue;
            }
            if self.nesting.is_root() && self.values > 1 {
                return Err(BrokenDocument);
            }
            let body = self.value(head)?;
            if let Some(mut piece) = self.nesting.piece(start..self.cursor.at, body) {
                if self.is_object && matches!(self.steps(), [DocumentStep::At(at)] if CLASS.contains(at)) {
                    piece.kind = LeafKind::Class;
                }
                return Ok(Some(piece));
            }
        }
    }

    fn steps(&self) -> &[DocumentStep] {
        self.nesting.steps()
    }
}

/// Encodes a part with new contents; `old` are its bytes. The length field keeps its width, or grows if needed. A
/// number that became something else is written as nil.
pub(super) fn encoded(old: &[u8], new: &[u8]) -> Vec<u8> {
    let length = new.len() as u64;
    let head = old.first().copied().unwrap_or_default();
    let sized = |first: u8, widest: u8, kind: Option<u8>| {
        let width = (0..2).find(|w| first + w >= head && length < 1 << (8 << w)).unwrap_or(2).min(widest - first);
        let mut out = vec![first + width];
        out.extend_from_slice(&length.to_be_bytes()[8 - (1 << width)..]);
        out.extend(kind);
        out
    };
    let mut out = match head {
        0xA0..=0xBF if length < 32 => vec![0xA0 | new.len() as u8],
        0xA0..=0xBF | 0xD9..=0xDB => sized(0xD9, 0xDB, None),
        0xC4..=0xC6 => sized(0xC4, 0xC6, None),
        0xC7..=0xC9 => {
            let kind = old.get(1 + (1 << (head - 0xC7))).copied();
            sized(0xC7, 0xC9, kind)
        }
        0xD4..=0xD8 if length == 1 << (head - 0xD4) => old[..2.min(old.len())].to_vec(),
        0xD4..=0xD8 => sized(0xC7, 0xC9, old.get(1).copied()),
        _ => {
            let number = std::str::from_utf8(new).ok().and_then(|text| text.parse::<i64>().ok());
            return number.map_or_else(|| vec![0xC0], |number| [&[0xD3], &number.to_be_bytes()[..]].concat());
        }
    };
    out.extend_from_slice(new);
    out
}
