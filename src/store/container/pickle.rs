//! Python pickles, never loaded: a pickle is a program. Its opcodes are stepped over, and the texts, bytes and numbers
//! that they carry are read.

use super::LeafKind;
use super::piece::{BrokenDocument, ByteCursor, DocumentPiece, PieceBody, PieceReader, longest_text, signed};
use super::walk::DocumentStep;

#[derive(Debug)]
pub(super) struct PickleReader<'a> {
    cursor: ByteCursor<'a>,
    stopped: bool,
}

/// The length of the longest text, where bytes are opcodes to the last, which is the one that ends a pickle.
pub(super) fn longest(bytes: &[u8]) -> Option<usize> {
    let begins = matches!(bytes, [0x80, 1..=5, ..] | [b'(' | b']' | b'}' | b'c' | b'U' | b'X' | b'S' | b'V', ..]);
    if !begins || bytes.last() != Some(&b'.') {
        return None;
    }
    longest_text(bytes, PickleReader::new(bytes))
}

impl<'a> PickleReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        PickleReader { cursor: ByteCursor::new(bytes), stopped: false }
    }

    fn sized(&mut self, width: usize) -> Result<std::ops::Range<usize>, BrokenDocument> {
        let length = self.cursor.little(width)?;
        self.cursor.take(length)
    }

    fn number(&mut self, width: usize, has_sign: bool) -> Result<Option<PieceBody>, BrokenDocument> {
        let number = self.cursor.little(width)?;
        Ok(Some(PieceBody::Number(if has_sign { signed(number, width) } else { number.into() })))
    }

    /// A whole number of any length; those beyond sixteen bytes are nobody's id.
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
            // Texts, and numbers that are written as such.
            0x8C => Some(PieceBody::Text(self.sized(1)?)),
            b'X' => Some(PieceBody::Text(self.sized(4)?)),
            0x8D => Some(PieceBody::Text(self.sized(8)?)),
            b'V' | b'S' | b'P' | b'I' | b'L' | b'F' => Some(PieceBody::Line(self.cursor.line()?)),
            // Names of modules and classes, of instances too.
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
            b'G' | 0x95 => self.skip(8)?,
            // Places in the memo and registered extensions.
            b'g' | b'p' => {
                self.cursor.line()?;
                None
            }
            b'h' | b'q' | 0x80 | 0x82 => self.skip(1)?,
            0x83 => self.skip(2)?,
            b'j' | b'r' | 0x84 => self.skip(4)?,
            // What carries nothing.
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
            self.stopped = opcode == b'.';
            if self.stopped {
                continue;
            }
            if let Some(body) = self.opcode(opcode)? {
                let kind = if matches!(body, PieceBody::Number(_)) { LeafKind::Number } else { LeafKind::Text };
                return Ok(Some(DocumentPiece { kind, whole: start..self.cursor.at, body }));
            }
        }
        if self.stopped { Ok(None) } else { Err(BrokenDocument) }
    }

    fn steps(&self) -> &[DocumentStep] {
        &[]
    }
}
