//! Decomposes stored values: every text, key and number in a value, through each encoding around it. Can also rewrite
//! the value with some texts changed, in the same encodings.
//!
//! One walk serves both. It goes from the outside in, keeps nothing of the parts it has passed, and gives each text to
//! a [`Visitor`]. Changes are carried back outwards as edits of byte ranges, so every byte outside an edit is
//! unchanged. Parts that cannot be decoded are reported as [`Opaque`], never skipped.

mod archive;
mod cbor;
mod charset;
mod escape;
mod json;
mod msgpack;
mod packed;
mod pickle;
mod piece;
mod place;
mod protobuf;
mod tree;
mod unpickle;
mod walk;
mod word;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::store::fetched::FetchedValue;

pub use packed::{OpenedValue, TOO_LARGE, opened, pack, readable, unpacked};
pub use place::TextPlace;
pub use tree::{Decoded, decoded};
pub use walk::is_bare;

use escape::EscapedReading;
use walk::Walk;

/// Limits on the work for one value.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most bytes to which all its compressed parts together may expand.
    pub unpacked: usize,
    /// Most layers of encodings around one text.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { unpacked: 64 << 20, depth: 16 }
    }
}

/// An encoding around a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// JSON, strict or not.
    Json,
    /// A zlib stream.
    Zlib,
    /// A member of gzip.
    Gzip,
    /// A frame of Zstandard.
    Zstd,
    /// A base64 word, in either alphabet.
    Base64,
    /// A word of hexadecimal digits.
    Hex,
    /// Escapes of URLs (`%40`), HTML (`&#64;`) or programs (`\u0040`) in a text.
    Escapes,
    /// UTF-16.
    Utf16,
    /// One byte per letter: ISO 8859-1, or bytes stored as such a text.
    Latin1,
    /// Sixteen bytes of no other format, as a lower-case UUID.
    Uuid,
    /// `MessagePack`.
    Msgpack,
    /// CBOR. Read only.
    Cbor,
    /// A Protocol Buffers message of an unknown schema. Read only.
    Protobuf,
    /// A Python pickle of protocol 2 or later: its opcodes are parsed, never executed.
    Pickle,
    /// A Python pickle of protocol 0 or 1, which is text lines. Read only.
    OldPickle,
    /// A ZIP archive. Read only.
    Zip,
    /// Letters between bytes of no format above. Read only.
    Binary,
}

impl Layer {
    /// Returns the name of the encoding as shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Json => "JSON",
            Layer::Zlib => "zlib",
            Layer::Gzip => "gzip",
            Layer::Zstd => "zstd",
            Layer::Base64 => "base64",
            Layer::Hex => "hex",
            Layer::Escapes => "escapes",
            Layer::Utf16 => "UTF-16",
            Layer::Latin1 => "Latin-1",
            Layer::Uuid => "UUID bytes",
            Layer::Msgpack => "MessagePack",
            Layer::Cbor => "CBOR",
            Layer::Protobuf => "protobuf",
            Layer::Pickle | Layer::OldPickle => "pickle",
            Layer::Zip => "zip",
            Layer::Binary => "unknown bytes",
        }
    }

    /// Whether a text inside can be changed so that the encoding stays readable.
    pub fn rewrites(self) -> bool {
        !matches!(self, Layer::Cbor | Layer::Protobuf | Layer::OldPickle | Layer::Zip | Layer::Binary)
    }
}

/// Role of a text in the value around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// A key of an object or map, or the name of a file in an archive.
    Key,
    /// A text.
    Text,
    /// The name of a class, its module, or its method, by which a reader of the value creates an object: never changed.
    Class,
    /// A number. If it is changed to something else, null replaces it.
    Number,
}

/// A decoded text.
#[derive(Debug)]
pub struct Leaf<'a> {
    /// The text, decoded and unescaped.
    pub text: &'a str,
    /// Role of the text in the value.
    pub kind: LeafKind,
    /// The encodings around it, outermost first; empty for a plain stored text.
    pub layers: &'a [Layer],
    place: &'a TextPlace<'a>,
    reading: Option<&'a EscapedReading>,
    next: Option<&'a EscapedReading>,
}

impl Leaf<'_> {
    /// Returns the path of the text in the value: keys and indexes (from 0) joined by dots, such as `users.0.mail`;
    /// empty for a text that is the whole value.
    pub fn path(&self) -> String {
        self.place.path()
    }

    /// Returns the path of the object that a key is in, as [`Leaf::path`].
    pub fn parent_path(&self) -> String {
        self.place.parent().path()
    }

    /// Whether a match at this range of bytes counts, and may be changed, in this reading.
    ///
    /// A text with escapes is visited as stored, and then once per level of resolved escapes, with [`Layer::Escapes`]
    /// as its last layer. A match counts in the reading where it is read best: as stored, unless an escape is directly
    /// next to it (the `n` of `
    /// ann` is not a letter); in a later reading, if it contains or touches a resolved escape. Changes elsewhere are
    /// dropped.
    pub fn is_new(&self, range: Range<usize>) -> bool {
        self.reading.is_none_or(|reading| reading.is_new(&range))
            && !self.next.is_some_and(|next| next.is_beside(&range))
    }

    /// Whether a match at this range of bytes contains or touches a percent escape, as in a URL.
    pub fn is_percent(&self, range: Range<usize>) -> bool {
        self.reading.is_some_and(|reading| reading.is_percent(&range))
    }
}

/// Replacement for a part of a leaf's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Bytes of the leaf's text, at character boundaries.
    pub range: Range<usize>,
    /// The plain replacement; it is escaped and encoded as its surroundings are.
    pub text: String,
}

impl Change {
    /// Replaces the whole text.
    pub fn whole(leaf: &Leaf<'_>, text: impl Into<String>) -> Self {
        Change { range: 0..leaf.text.len(), text: text.into() }
    }
}

/// Receives the texts of a value, and may change them.
pub trait Visitor {
    /// Visits a text of the value; returns its changes. If changes overlap, the first counts.
    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change>;

    /// Visits a whole JSON document before its texts. May return a new document, whose texts are then visited instead.
    fn document(&mut self, _text: &str) -> Option<String> {
        None
    }
}

impl<F: FnMut(&Leaf<'_>) -> Vec<Change>> Visitor for F {
    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change> {
        self(leaf)
    }
}

/// A part of a value that was not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Reason why it was not decoded.
    pub why: &'static str,
    /// Place of the part, as [`Leaf::path`].
    pub path: String,
    /// The encodings around it, outermost first.
    pub layers: Vec<Layer>,
    /// Size of the part, in bytes.
    pub bytes: usize,
}

/// Composition of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The first sixteen parts that could not be decoded.
    pub opaque: Vec<Opaque>,
}

/// A value after a rewrite.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewritten<T> {
    /// No text was changed.
    Unchanged,
    /// The new value, in the same encodings.
    New(T),
    /// A change is within a read-only encoding: nothing was rewritten.
    Cannot(Layer),
}

/// Visits every text of a stored value. SQL NULL and a fractional real have none; an integer is one number.
pub fn read(raw: &FetchedValue, limits: Limits, visitor: &mut (impl FnMut(&Leaf<'_>) + ?Sized)) -> Contents {
    let mut look = |leaf: &Leaf<'_>| {
        visitor(leaf);
        Vec::new()
    };
    rewrite(raw, limits, &mut look).1
}

/// Visits every text of a stored value, and rewrites it with the visitor's changes.
pub fn rewrite(raw: &FetchedValue, limits: Limits, visitor: &mut dyn Visitor) -> (Rewritten<FetchedValue>, Contents) {
    let mut walk = Walk::new(limits, visitor);
    let (old, edits): (&[u8], _) = match raw {
        FetchedValue::Integer(_) | FetchedValue::Real(_) => {
            let Some(text) = raw.whole_number() else { return (Rewritten::Unchanged, Contents::default()) };
            let edits = walk.number(&text);
            let (done, contents) = walk.end(text.as_bytes(), edits);
            let number = |bytes: Vec<u8>| {
                String::from_utf8(bytes)
                    .ok()
                    .and_then(|t| t.parse().ok())
                    .map_or(FetchedValue::Null, FetchedValue::Integer)
            };
            return (done.map(number), contents);
        }
        FetchedValue::Null => return (Rewritten::Unchanged, Contents::default()),
        FetchedValue::Text(text) => (text.as_bytes(), walk.stored_text(text)),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => (bytes, walk.stored_bytes(bytes)),
    };
    let (done, contents) = walk.end(old, edits);
    let stored = |bytes: Vec<u8>| match raw {
        FetchedValue::Bytes(_) => FetchedValue::Bytes(bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => FetchedValue::Text(text),
            Err(bad) => FetchedValue::BadText(bad.into_bytes()),
        },
    };
    (done.map(stored), contents)
}

impl<T> Rewritten<T> {
    /// Converts the value, if there is a new one.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Rewritten<U> {
        match self {
            Rewritten::Unchanged => Rewritten::Unchanged,
            Rewritten::New(value) => Rewritten::New(f(value)),
            Rewritten::Cannot(layer) => Rewritten::Cannot(layer),
        }
    }
}

/// New bytes for a range of old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    range: Range<usize>,
    bytes: Vec<u8>,
}

/// Applies edits to bytes. Of overlapping edits the first counts; of those at one offset, the longest.
fn edited(old: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    let mut new = Vec::with_capacity(old.len());
    let mut at = 0;
    for edit in edits.into_iter().filter(|edit| edit.range.end <= old.len() && edit.range.start <= edit.range.end) {
        if edit.range.start >= at {
            new.extend_from_slice(&old[at..edit.range.start]);
            new.extend_from_slice(&edit.bytes);
            at = edit.range.end;
        }
    }
    new.extend_from_slice(&old[at..]);
    new
}
