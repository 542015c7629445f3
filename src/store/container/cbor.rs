//! CBOR, read part by part. An own reader, because crates decode into trees, and malicious input must be cheap.

use super::piece::{BrokenDocument, ByteCursor, DocumentPiece, OpenNesting, PieceBody, PieceReader, longest_text};
use super::place::DocumentStep;

#[derive(Debug)]
pub(super) struct CborReader<'a> {
    cursor: ByteCursor<'a>,
    nesting: OpenNesting,
    values: usize,
}

/// The length of the longest text, if the bytes are one CBOR array, map or tagged value.
pub(super) fn longest(bytes: &[u8]) -> Option<usize> {
    let mut reader = CborReader::new(bytes);
    let compound = matches!(bytes.first()?, 0x80..=0xDB);
    let longest = compound.then(|| longest_text(bytes, &mut reader)).flatten()?;
    (reader.values == 1).then_some(longest)
}

/// Whether bytes contain more than that many values and tags, counted up to a syntax error.
pub(super) fn holds_more(bytes: &[u8], most: usize) -> bool {
    let mut reader = CborReader::new(bytes);
    let mut next = || -> Result<(), BrokenDocument> {
        let head = reader.cursor.byte()?;
        if let (2 | 3, Some(length)) = (head >> 5, reader.argument(head)?) {
            reader.cursor.take(length)?;
        }
        Ok(())
    };
    (0..=most).all(|_| next().is_ok())
}

impl<'a> CborReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        CborReader { cursor: ByteCursor::new(bytes), nesting: OpenNesting::default(), values: 0 }
    }

    /// The number in a head byte; `None` for an indefinite length.
    fn argument(&mut self, head: u8) -> Result<Option<u64>, BrokenDocument> {
        match head & 31 {
            small @ 0..24 => Ok(Some(small.into())),
            width @ 24..28 => self.cursor.big(1 << (width - 24)).map(Some),
            31 => Ok(None),
            _ => Err(BrokenDocument),
        }
    }

    /// Joins the chunks of a text or byte string of indefinite length.
    fn joined(&mut self, major: u8) -> Result<Vec<u8>, BrokenDocument> {
        let mut all = Vec::new();
        loop {
            let head = self.cursor.byte()?;
            if head == 0xFF {
                return Ok(all);
            }
            let length = self.argument(head)?.filter(|_| head >> 5 == major).ok_or(BrokenDocument)?;
            let range = self.cursor.take(length)?;
            all.extend_from_slice(&self.cursor.bytes[range]);
        }
    }
}

impl PieceReader for CborReader<'_> {
    fn next(&mut self) -> Result<Option<DocumentPiece>, BrokenDocument> {
        loop {
            self.nesting.close_full();
            if self.cursor.is_at_end() {
                return if self.nesting.is_root() { Ok(None) } else { Err(BrokenDocument) };
            }
            let start = self.cursor.at;
            let head = self.cursor.byte()?;
            if head == 0xFF {
                self.nesting.close_marked()?;
                continue;
            }
            let (major, argument) = (head >> 5, self.argument(head)?);
            if major == 6 {
                // A tag; its value follows.
                argument.ok_or(BrokenDocument)?;
                continue;
            }
            if self.nesting.is_root() {
                self.values += 1;
                if self.values > 1 {
                    return Err(BrokenDocument);
                }
            }
            let body = match (major, argument) {
                (0, Some(number)) => Some(PieceBody::Number(number.into())),
                (1, Some(number)) => Some(PieceBody::Number(-1 - i128::from(number))),
                (2, Some(length)) => Some(PieceBody::Bytes(self.cursor.take(length)?)),
                (3, Some(length)) => Some(PieceBody::Text(self.cursor.take(length)?)),
                (2 | 3, None) => Some(PieceBody::Joined(self.joined(major)?)),
                (4 | 5, _) => {
                    self.nesting.enter(argument, major == 5)?;
                    continue;
                }
                (7, Some(_)) => None,
                _ => return Err(BrokenDocument),
            };
            let piece = self.nesting.piece(start..self.cursor.at, body);
            if piece.is_some() {
                return Ok(piece);
            }
        }
    }

    fn steps(&self) -> &[DocumentStep] {
        self.nesting.steps()
    }
}
