//! Protocol Buffers without a schema: fields by number, one level; a length-delimited field is a text, bytes or a
//! message.

use super::LeafKind;
use super::charset;
use super::piece::{BrokenDocument, ByteCursor, DocumentPiece, PieceBody, PieceReader, longest_text};
use super::place::DocumentStep;

/// Highest plausible field number.
const FIELDS: u64 = 1 << 15;

#[derive(Debug)]
pub(super) struct ProtobufReader<'a> {
    cursor: ByteCursor<'a>,
    step: [DocumentStep; 1],
}

/// The length of the longest text, if the bytes are a message: fields to the end, at least one of them a text or a
/// message with one.
pub(super) fn longest(bytes: &[u8], depth: usize) -> Option<usize> {
    if bytes.len() < 4 || depth == 0 {
        return None;
    }
    longest_text(bytes, ProtobufReader::new(bytes))?;
    let mut reader = ProtobufReader::new(bytes);
    let mut longest = 0;
    while let Ok(Some(piece)) = reader.next() {
        match piece.body {
            PieceBody::Text(range) => longest = longest.max(range.len()),
            PieceBody::Bytes(range) => longest = longest.max(self::longest(&bytes[range], depth - 1).unwrap_or(0)),
            PieceBody::Line(_) | PieceBody::Joined(_) | PieceBody::Number(_) => {}
        }
    }
    (longest > 0).then_some(longest)
}

impl<'a> ProtobufReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        ProtobufReader { cursor: ByteCursor::new(bytes), step: [DocumentStep::Number(0)] }
    }

    fn varint(&mut self) -> Result<u64, BrokenDocument> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.cursor.byte()?;
            number |= u64::from(byte & 127).checked_shl(shift).unwrap_or(0);
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(BrokenDocument)
    }
}

impl PieceReader for ProtobufReader<'_> {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument> {
        while !self.cursor.is_at_end() {
            let start = self.cursor.at;
            let tag = self.varint()?;
            let field = tag >> 3;
            if field == 0 || field > FIELDS {
                return Err(BrokenDocument);
            }
            self.step = [DocumentStep::Number(field.into())];
            let body = match tag & 7 {
                0 => PieceBody::Number((self.varint()? as i64).into()),
                1 => {
                    self.cursor.take(8)?;
                    continue;
                }
                2 => {
                    let length = self.varint()?;
                    let range = self.cursor.take(length)?;
                    let inner = &self.cursor.bytes[range.clone()];
                    match std::str::from_utf8(inner) {
                        Ok(text) if charset::is_clean(text) => PieceBody::Text(range),
                        _ => PieceBody::Bytes(range),
                    }
                }
                5 => {
                    self.cursor.take(4)?;
                    continue;
                }
                _ => return Err(BrokenDocument),
            };
            let kind = if matches!(body, PieceBody::Number(_)) { LeafKind::Number } else { LeafKind::Text };
            return Ok(Some(DocumentPiece { kind, whole: start..self.cursor.at, body }));
        }
        Ok(None)
    }

    fn steps(&self) -> &[DocumentStep] {
        &self.step
    }
}
