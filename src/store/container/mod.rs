//! Takes stored values apart: every text, key and number in a value, through each encoding around it; and writes the
//! value again with some texts changed, in the same encodings.
//!
//! One walk serves both. It goes from the outside in, keeps nothing of what it has left behind, and hands each text to
//! a [`Visitor`]; what the visitor changes is carried back out as edits of byte ranges, so that every byte which no
//! edit covers stays what it was. What cannot be taken apart is reported as [`Opaque`], never skipped.

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
    /// Bytes that all its compressed parts together may unpack to.
    pub unpacked: usize,
    /// Layers of encodings around one text.
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
    /// A value of JSON, also of JSON that is not strict.
    Json,
    /// A zlib stream.
    Zlib,
    /// A member of gzip.
    Gzip,
    /// A frame of Zstandard.
    Zstd,
    /// A word of base64, of either alphabet.
    Base64,
    /// A word of hexadecimal digits.
    Hex,
    /// Escapes of URLs (`%40`), HTML (`&#64;`) or programs (`\u0040`) in a text.
    Escapes,
    /// UTF-16.
    Utf16,
    /// A byte a letter: ISO 8859-1, or bytes that were stored as such a text.
    Latin1,
    /// Sixteen bytes that no other format explains, as a UUID in small letters.
    Uuid,
    /// `MessagePack`.
    Msgpack,
    /// CBOR. Searched only.
    Cbor,
    /// A Protocol Buffers message of an unknown schema. Searched only.
    Protobuf,
    /// A Python pickle of protocol 2 and later: its opcodes are read and never run.
    Pickle,
    /// A Python pickle of the first protocols, which are lines of text. Searched only.
    OldPickle,
    /// A ZIP archive. Searched only.
    Zip,
    /// Letters between bytes that nothing above explains. Searched only.
    Binary,
}

impl Layer {
    /// Returns the name of the encoding as shown to users.
    #[must_use]
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

    /// Whether a text inside can be changed so that readers of the encoding still can read it.
    #[must_use]
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
    /// The name of a class, its module, or its method, by which a reader of the value makes an object: never changed.
    Class,
    /// A number. In a changed one that is not a number any more, null takes its place.
    Number,
}

/// A decoded text.
#[derive(Debug)]
pub struct Leaf<'a> {
    /// The text, without any escapes and encodings.
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
    /// Returns the place of the text in the value: keys and positions (from 0) with dots between, such as
    /// `users.0.mail`; empty for a text that is the whole value.
    #[must_use]
    pub fn path(&self) -> String {
        self.place.path()
    }

    /// Returns the place of the object that a key is in, as [`Leaf::path`].
    #[must_use]
    pub fn parent_path(&self) -> String {
        self.place.parent().path()
    }

    /// Whether a match at this range of bytes is to be counted and changed here.
    ///
    /// A text that holds escapes is visited as it is stored and then once more per level with its escapes resolved
    /// ([`Layer::Escapes`] is the last layer then). A match counts where it is read best: as it is stored, unless an
    /// escape stands right next to it (the `n` of `\nann` is not a letter); of a later reading, where it holds or
    /// touches what was resolved. Changes elsewhere are dropped.
    #[must_use]
    pub fn is_new(&self, range: Range<usize>) -> bool {
        self.reading.is_none_or(|reading| reading.is_new(&range))
            && !self.next.is_some_and(|next| next.is_beside(&range))
    }

    /// Whether a match at this range of bytes holds or touches something that is percent-encoded, as in a URL.
    #[must_use]
    pub fn is_percent(&self, range: Range<usize>) -> bool {
        self.reading.is_some_and(|reading| reading.is_percent(&range))
    }
}

/// Replacement for a part of a leaf's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Bytes of the leaf's text, at character boundaries.
    pub range: Range<usize>,
    /// The plain text that comes there; it is escaped and encoded as its surroundings are.
    pub text: String,
}

impl Change {
    /// A change of the whole text.
    #[must_use]
    pub fn whole(leaf: &Leaf<'_>, text: impl Into<String>) -> Self {
        Change { range: 0..leaf.text.len(), text: text.into() }
    }
}

/// Whoever wants to see the texts of a value, and may change them.
pub trait Visitor {
    /// A text of the value, and what changes in it. Of changes that overlap the first counts.
    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change>;

    /// A whole JSON document, before its texts are visited. A new document takes its place, and its texts are visited
    /// then.
    fn document(&mut self, _text: &str) -> Option<String> {
        None
    }
}

impl<F: FnMut(&Leaf<'_>) -> Vec<Change>> Visitor for F {
    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change> {
        self(leaf)
    }
}

/// A part of a value that nobody looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Reason why nobody looked into it.
    pub why: &'static str,
    /// Place of the part, as [`Leaf::path`].
    pub path: String,
    /// The encodings around it, outermost first.
    pub layers: Vec<Layer>,
    /// Size of the part, in bytes.
    pub bytes: usize,
}

/// Findings about what a value is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Parts that could not be looked into, the first sixteen of them.
    pub opaque: Vec<Opaque>,
    /// Some of it was compressed.
    pub compressed: bool,
}

/// A value after a rewrite.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewritten<T> {
    /// No text of it was changed.
    Unchanged,
    /// The new value, encoded as it was.
    New(T),
    /// A change is in an encoding that is searched only: nothing was rewritten.
    Cannot(Layer),
}

/// Visits every text of a stored value. SQL NULL holds none, nor does a real with decimals; an integer is one number.
pub fn read(raw: &FetchedValue, limits: Limits, visitor: &mut (impl FnMut(&Leaf<'_>) + ?Sized)) -> Contents {
    let mut look = |leaf: &Leaf<'_>| {
        visitor(leaf);
        Vec::new()
    };
    rewrite(raw, limits, &mut look).1
}

/// Visits every text of a stored value and writes it again with what the visitor changed.
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
    /// The same answer about another form of the value.
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

/// The bytes with the edits made; of edits that overlap the first in order of place counts, of those at one place the
/// longest.
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
