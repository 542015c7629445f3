//! Wrapping at words, row by row, so that a window of a long text costs only the rows up to its end.

use std::borrow::Cow;
use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

use super::{SafeText, shown};
use crate::ui::clean::{CleanPiece, CleanPieces, PieceKind};

/// The wrapped rows of a text, built one at a time; see [`SafeText::rows`].
#[derive(Clone, Debug)]
pub struct WrappedRows<'a> {
    source: WrapSource<'a>,
    /// The beginning of the next row: a word that did not fit on the last one.
    carry: SafeText,
    width: usize,
    done: bool,
}

/// Text to wrap.
#[derive(Clone, Debug)]
enum WrapSource<'a> {
    Raw(CleanPieces<'a>),
    /// Text after hiding.
    Veiled(VecDeque<CleanPiece<'static>>),
    /// Clean text, from byte `at` on.
    Clean {
        text: &'a SafeText,
        at: usize,
    },
}

impl<'a> WrapSource<'a> {
    fn next_at(&mut self, column: usize) -> Option<CleanPiece<'a>> {
        match self {
            Self::Raw(pieces) => pieces.next_at(column),
            Self::Veiled(pieces) => pieces.pop_front(),
            Self::Clean { text, at } => {
                let (unit, is_mark) = text.unit(*at)?;
                let kind = if is_mark { PieceKind::Mark } else { PieceKind::Text };
                *at += unit.len();
                Some(CleanPiece { text: Cow::Borrowed(unit), width: unit.width(), kind })
            }
        }
    }
}

impl<'a> WrappedRows<'a> {
    pub(super) fn of_raw(raw: &'a str, width: usize) -> Self {
        let source = match shown(raw) {
            Cow::Borrowed(raw) => WrapSource::Raw(CleanPieces::new(raw)),
            Cow::Owned(veiled) => WrapSource::Veiled(owned(&veiled)),
        };
        Self { source, carry: SafeText::default(), width, done: width == 0 }
    }

    pub(super) fn of_clean(text: &'a SafeText, width: usize) -> Self {
        Self { source: WrapSource::Clean { text, at: 0 }, carry: SafeText::default(), width, done: width == 0 }
    }
}

/// All pieces of a text; its tabs are as wide as at the beginning of a line.
fn owned(text: &str) -> VecDeque<CleanPiece<'static>> {
    let mut pieces = CleanPieces::new(text);
    let own = |piece: CleanPiece<'_>| CleanPiece {
        text: Cow::Owned(piece.text.into_owned()),
        width: piece.width,
        kind: piece.kind,
    };
    std::iter::from_fn(|| pieces.next_at(0).map(own)).collect()
}

impl Iterator for WrappedRows<'_> {
    type Item = SafeText;

    fn next(&mut self) -> Option<SafeText> {
        if self.done {
            return None;
        }
        let mut row = std::mem::take(&mut self.carry);
        // Last possible break of the row: byte and column after a blank or around an ideograph.
        let mut break_at = None;
        loop {
            let Some(piece) = self.source.next_at(row.width) else {
                self.done = true;
                return Some(row);
            };
            if piece.kind == PieceKind::Break {
                return Some(row);
            }
            let is_blank = piece.kind == PieceKind::Text && piece.text.starts_with(' ');
            if row.width + piece.width > self.width && is_blank {
                // A blank that does not fit ends the row and is dropped there.
                row.trim_end();
                return Some(row);
            }
            let is_ideograph = piece.width > 1 && piece.kind == PieceKind::Text && piece.text.chars().nth(1).is_none();
            if is_ideograph {
                break_at = Some((row.text.len(), row.width));
            }
            if row.width + piece.width <= self.width {
                row.push(&piece.text, piece.width, piece.kind == PieceKind::Mark);
                if is_blank || is_ideograph {
                    break_at = Some((row.text.len(), row.width));
                }
                continue;
            }
            let mut piece_text = SafeText::default();
            piece_text.push(&piece.text, piece.width, piece.kind == PieceKind::Mark);
            let piece_text = piece_text.cut(self.width);
            if let Some((at, column)) = break_at.filter(|(at, _)| *at > 0).or_else(|| after_slash(&row.text)) {
                self.carry = row.split_off(at, column);
            }
            if self.carry.width + piece_text.width <= self.width {
                self.carry.append(&piece_text);
            } else {
                // The carried word and a mark wider than the rest of the row: the word keeps its place.
                let word = std::mem::replace(&mut self.carry, piece_text);
                row.append(&word);
                return Some(row);
            }
            row.trim_end();
            return Some(row);
        }
    }
}

/// Returns the byte and the column after the last slash, where a path longer than a row is broken.
fn after_slash(text: &str) -> Option<(usize, usize)> {
    // A slash with a combining mark is one cluster, which is never split.
    let (at, slash) = text.grapheme_indices(true).rfind(|(_, cluster)| *cluster == "/")?;
    let at = at + slash.len();
    Some((at, text[..at].width()))
}
