//! Protocol Buffers without their schema: fields by number, one level; what has a length is a text, bytes or a message.

use super::LeafKind;
use super::charset;
use super::piece::{Body, Broken, Cursor, Piece, Pieces, longest_text};
use super::walk::Step;

/// The highest number of a field that is believed.
const FIELDS: u64 = 1 << 15;

#[derive(Debug)]
pub(super) struct Reader<'a> {
    cursor: Cursor<'a>,
    step: [Step; 1],
}

/// The length of the longest text of bytes that are a message: fields to the end, at least one of them a text or a
/// message that holds one.
pub(super) fn longest(bytes: &[u8], depth: usize) -> Option<usize> {
    if bytes.len() < 4 || depth == 0 {
        return None;
    }
    longest_text(bytes, Reader::new(bytes))?;
    let mut reader = Reader::new(bytes);
    let mut longest = 0;
    while let Ok(Some(piece)) = reader.next() {
        match piece.body {
            Body::Text(range) => longest = longest.max(range.len()),
            Body::Bytes(range) => longest = longest.max(self::longest(&bytes[range], depth - 1).unwrap_or(0)),
            Body::Line(_) | Body::Number(_) => {}
        }
    }
    (longest > 0).then_some(longest)
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { cursor: Cursor::new(bytes), step: [Step::Number(0)] }
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.cursor.byte()?;
            number |= u64::from(byte & 127).checked_shl(shift).unwrap_or(0);
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(Broken)
    }
}

impl Pieces for Reader<'_> {
    fn next(&mut self) -> Result<Option<Piece>, Broken> {
        while !self.cursor.is_at_end() {
            let start = self.cursor.at;
            let tag = self.varint()?;
            let field = tag >> 3;
            if field == 0 || field > FIELDS {
                return Err(Broken);
            }
            self.step = [Step::Number(field.into())];
            let body = match tag & 7 {
                0 => Body::Number((self.varint()? as i64).into()),
                1 => {
                    self.cursor.take(8)?;
                    continue;
                }
                2 => {
                    let length = self.varint()?;
                    let range = self.cursor.take(length)?;
                    let inner = &self.cursor.bytes[range.clone()];
                    match std::str::from_utf8(inner) {
                        Ok(text) if charset::is_clean(text) => Body::Text(range),
                        _ => Body::Bytes(range),
                    }
                }
                5 => {
                    self.cursor.take(4)?;
                    continue;
                }
                _ => return Err(Broken),
            };
            let kind = if matches!(body, Body::Number(_)) { LeafKind::Number } else { LeafKind::Text };
            return Ok(Some(Piece { kind, whole: start..self.cursor.at, body }));
        }
        Ok(None)
    }

    fn steps(&self) -> &[Step] {
        &self.step
    }
}
