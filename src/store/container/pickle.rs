//! Python pickles, never loaded, since a pickle is a program. Its opcodes are skipped; the texts, bytes and numbers in
//! them are read and, from protocol 2 on, rewritten.

use super::piece::{BrokenDocument, ByteCursor, DocumentPiece, PieceBody, PieceReader, longest_text, signed};
use super::place::DocumentStep;
use super::{Edit, LeafKind};

/// The FRAME opcode, followed by the frame's length.
const FRAME: u8 = 0x95;

#[derive(Debug)]
pub(super) struct PickleReader<'a> {
    cursor: ByteCursor<'a>,
    stopped: bool,
    /// Offsets of the FRAME opcodes.
    frames: Vec<usize>,
}

/// The length of the longest text, if the bytes are opcodes that end with STOP.
pub(super) fn longest(bytes: &[u8]) -> Option<usize> {
    let begins = matches!(bytes, [0x80, 1..=5, ..] | [b'(' | b']' | b'}' | b'c' | b'U' | b'X' | b'S' | b'V', ..]);
    if !begins || bytes.last() != Some(&b'.') {
        return None;
    }
    longest_text(bytes, PickleReader::new(bytes))
}

impl<'a> PickleReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        PickleReader { cursor: ByteCursor::new(bytes), stopped: false, frames: Vec::new() }
    }

    fn sized(&mut self, width: usize) -> Result<std::ops::Range<usize>, BrokenDocument> {
        let length = self.cursor.little(width)?;
        self.cursor.take(length)
    }

    fn number(&mut self, width: usize, has_sign: bool) -> Result<Option<PieceBody>, BrokenDocument> {
        let number = self.cursor.little(width)?;
        Ok(Some(PieceBody::Number(if has_sign { signed(number, width) } else { number.into() })))
    }

    /// An integer of any length; those beyond sixteen bytes are not ids.
    fn long(&mut self, width: usize) -> Result<Option<PieceBody>, BrokenDocument> {
        let range = self.sized(width)?;
        let digits = &self.cursor.bytes[range];
        let Some(highest) = digits.last().filter(|_| digits.len() <= 16) else { return Ok(None) };
        let sign = if *highest < 128 { 0 } else { -1 };
        Ok(Some(PieceBody::Number(digits.iter().rev().fold(sign, |number, byte| number << 8 | i128::from(*byte)))))
    }

    fn skip(&mut self, bytes: u64) -> Result<Option<PieceBody>, BrokenDocument> {
        self.cursor.take(bytes).map(|_| None)
    }

    fn opcode(&mut self, opcode: u8) -> Result<Option<PieceBody>, BrokenDocument> {
        Ok(match opcode {
            // Texts, and numbers written as text.
            0x8C => Some(PieceBody::Text(self.sized(1)?)),
            b'X' => Some(PieceBody::Text(self.sized(4)?)),
            0x8D => Some(PieceBody::Text(self.sized(8)?)),
            b'V' | b'S' | b'P' | b'I' | b'L' | b'F' => Some(PieceBody::Line(self.cursor.line()?)),
            // Names of modules and classes, also of instances.
            b'c' | b'i' => {
                let module = self.cursor.line()?;
                let class = self.cursor.line()?;
                Some(PieceBody::Line(module.start..class.end))
            }
            // Bytes.
            b'U' | b'C' => Some(PieceBody::Bytes(self.sized(1)?)),
            b'T' | b'B' => Some(PieceBody::Bytes(self.sized(4)?)),
            0x8E | 0x96 => Some(PieceBody::Bytes(self.sized(8)?)),
            // Numbers.
            b'K' => self.number(1, false)?,
            b'M' => self.number(2, false)?,
            b'J' => self.number(4, true)?,
            0x8A => self.long(1)?,
            0x8B => self.long(4)?,
            b'G' | FRAME => self.skip(8)?,
            // Memo indexes and registered extensions.
            b'g' | b'p' => {
                self.cursor.line()?;
                None
            }
            b'h' | b'q' | 0x80 | 0x82 => self.skip(1)?,
            0x83 => self.skip(2)?,
            b'j' | b'r' | 0x84 => self.skip(4)?,
            // Opcodes without data.
            b'('
            | b'0'
            | b'1'
            | b'2'
            | b'N'
            | b'Q'
            | b'R'
            | b'a'
            | b'b'
            | b'd'
            | b'}'
            | b'e'
            | b'l'
            | b']'
            | b'o'
            | b's'
            | b't'
            | b')'
            | b'u'
            | 0x81
            | 0x85..=0x89
            | 0x8F..=0x94
            | 0x97
            | 0x98 => None,
            _ => return Err(BrokenDocument),
        })
    }
}

impl PieceReader for PickleReader<'_> {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument> {
        while !self.cursor.is_at_end() {
            let start = self.cursor.at;
            let opcode = self.cursor.byte()?;
            if opcode == FRAME {
                self.frames.push(start);
            }
            self.stopped = opcode == b'.';
            if self.stopped {
                continue;
            }
            if let Some(body) = self.opcode(opcode)? {
                let kind = match body {
                    PieceBody::Number(_) => LeafKind::Number,
                    _ if matches!(opcode, b'c' | b'i') => LeafKind::Class,
                    _ => LeafKind::Text,
                };
                return Ok(Some(DocumentPiece { kind, whole: start..self.cursor.at, body }));
            }
        }
        if self.stopped { Ok(None) } else { Err(BrokenDocument) }
    }

    fn steps(&self) -> &[DocumentStep] {
        &[]
    }
}

/// Whether the text that ends here is the name of a class or of its module, which Python resolves.
pub(super) fn names_class(bytes: &[u8], end: usize) -> bool {
    let after = |at: usize| match bytes.get(at) {
        Some(0x94) => at + 1,
        Some(b'q') => at + 2,
        Some(b'r') => at + 5,
        _ => at,
    };
    let at = after(end);
    match bytes.get(at) {
        Some(0x93) => true,
        Some(0x8C) => {
            let length = usize::from(bytes.get(at + 1).copied().unwrap_or_default());
            bytes.get(after(at + 2 + length)) == Some(&0x93)
        }
        _ => false,
    }
}

/// Encodes a part with new contents; `old` are its bytes. A number that became something else is written as None.
pub(super) fn encoded(old: &[u8], new: &[u8]) -> Vec<u8> {
    let opcode = old.first().copied().unwrap_or_default();
    let sized = |opcode: u8, width: usize| {
        let length = (new.len() as u64).to_le_bytes();
        [&[opcode][..], &length[..width], new].concat()
    };
    let is_short = new.len() < 256;
    match opcode {
        0x8C if is_short => sized(0x8C, 1),
        0x8C | b'X' => sized(b'X', 4),
        0x8D => sized(0x8D, 8),
        b'U' if is_short => sized(b'U', 1),
        b'U' | b'T' => sized(b'T', 4),
        b'C' if is_short => sized(b'C', 1),
        b'C' | b'B' => sized(b'B', 4),
        0x8E | 0x96 => sized(opcode, 8),
        _ => match std::str::from_utf8(new).ok().and_then(|text| text.parse::<i64>().ok()) {
            Some(number) => [&[0x8A, 8][..], &number.to_le_bytes()].concat(),
            None => vec![b'N'],
        },
    }
}

/// Edits for the lengths of the frames around other edits.
pub(super) fn reframed(bytes: &[u8], edits: &[Edit]) -> Vec<Edit> {
    let mut reader = PickleReader::new(bytes);
    while let Ok(Some(_)) = reader.next() {}
    let mut lengths = Vec::new();
    for start in reader.frames {
        let Some(field) = bytes.get(start + 1..start + 9) else { continue };
        let length = field.iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        let inside = start as u64 + 9..(start as u64 + 9).saturating_add(length);
        let grown: i64 = edits
            .iter()
            .filter(|edit| inside.contains(&(edit.range.start as u64)))
            .map(|edit| edit.bytes.len() as i64 - edit.range.len() as i64)
            .sum();
        let new = length.saturating_add_signed(grown);
        lengths.push(Edit { range: start + 1..start + 9, bytes: new.to_le_bytes().to_vec() });
    }
    lengths
}
