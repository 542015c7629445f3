//! Walks through a value from the outside in. Each step handles one encoding: it decodes it, walks inside, and converts
//! the resulting edits to edits of its own bytes.

use std::ops::Range;

use uuid::Uuid;

use super::archive::Archive;
use super::escape::{self, EscapeNotation, EscapedReading, escaped};
use super::json::{self, JsonTokens};
use super::packed::{self, UnpackedBytes};
use super::piece::{PieceBody, PieceReader};
use super::place::{DocumentStep, TextPlace};
use super::word::{self, words};
use super::{Change, Contents, Edit, Layer, Leaf, LeafKind, Limits, Opaque, Rewritten, Visitor};
use super::{cbor, charset, edited, msgpack, pickle, protobuf};

/// Undecoded parts whose position is kept.
const REPORTED: usize = 16;
/// Offsets of a value at which a compressed stream is tried.
const TRIES: usize = 4_096;
/// Bytes of work allowed per byte of the value, and per value.
const WORK: (usize, usize) = (48, 256 << 20);
/// Levels of escapes to resolve: `%252540` has three.
const ESCAPES: usize = 4;
/// Levels of nested messages to try.
const MESSAGES: usize = 16;
/// Letters of a text that make a document unlikely by chance.
const WORD: usize = 4;
/// Bytes of a UUID.
const UUID: usize = 16;
/// Bytes between other parts up to which they are not reported.
const SCRAP: usize = 16;

/// One walk through one value.
pub(super) struct Walk<'v> {
    limits: Limits,
    visitor: &'v mut dyn Visitor,
    layers: Vec<Layer>,
    contents: Contents,
    cannot: Option<Layer>,
    /// Remaining bytes of decompression.
    unpackable: usize,
    /// Remaining bytes of work.
    work: usize,
    /// Remaining offsets to try.
    tries: usize,
    /// Nesting depth of parts next to compressed streams.
    gaps: usize,
}

impl<'v> Walk<'v> {
    pub fn new(limits: Limits, visitor: &'v mut dyn Visitor) -> Self {
        let (layers, contents) = (Vec::new(), Contents::default());
        Walk {
            limits,
            visitor,
            layers,
            contents,
            cannot: None,
            unpackable: limits.unpacked,
            work: WORK.1,
            tries: TRIES,
            gaps: 0,
        }
    }

    /// Ends the walk; returns the result from the old bytes of the value and the edits.
    pub fn end(self, old: &[u8], edits: Vec<Edit>) -> (Rewritten<Vec<u8>>, Contents) {
        let done = match (self.cannot, edits.is_empty()) {
            (Some(layer), _) => Rewritten::Cannot(layer),
            (None, true) => Rewritten::Unchanged,
            (None, false) => Rewritten::New(edited(old, edits)),
        };
        (done, self.contents)
    }

    /// A value that is a number.
    pub fn number(&mut self, text: &str) -> Vec<Edit> {
        self.leaf(text, LeafKind::Number, &TextPlace::ROOT)
    }

    /// A value stored as text.
    pub fn stored_text(&mut self, text: &str) -> Vec<Edit> {
        self.work = self.work.saturating_add(text.len().saturating_mul(WORK.0));
        self.text(text, LeafKind::Text, &TextPlace::ROOT)
    }

    /// A value stored as bytes.
    pub fn stored_bytes(&mut self, bytes: &[u8]) -> Vec<Edit> {
        self.work = self.work.saturating_add(bytes.len().saturating_mul(WORK.0));
        self.bytes(bytes, &TextPlace::ROOT)
    }

    /// A plain text: its encoded words, the text itself, and its readings with resolved escapes.
    fn text(&mut self, text: &str, kind: LeafKind, place: &TextPlace<'_>) -> Vec<Edit> {
        if is_plain(text) || !self.spend(text.len(), place) {
            return self.leaf(text, kind, place);
        }
        if json::is_document(text) {
            return self.json(text, place);
        }
        if let Some(edits) = self.bytes_as_text(text, place) {
            return edits;
        }
        self.wide(text.as_bytes(), place);
        self.readings(text, kind, None, place)
    }

    /// Bytes stored as text: in PostgreSQL's hexadecimal form, or one letter each.
    fn bytes_as_text(&mut self, text: &str, place: &TextPlace<'_>) -> Option<Vec<Edit>> {
        if let Some(digits) = text.strip_prefix("\\x")
            && !digits.is_empty()
            && let Ok(inner) = hex::decode(digits)
        {
            let edits = self.within(Layer::Hex, inner.len(), place, |walk| walk.bytes(&inner, place));
            return Some(whole(text.len(), &inner, edits, |new| format!("\\x{}", hex::encode(new)).into_bytes()));
        }
        if !begins_packed_letters(text) {
            return None;
        }
        let all: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let inner = all.filter(|inner| packed::begins(inner))?;
        let edits = self.within(Layer::Latin1, inner.len(), place, |walk| walk.bytes(&inner, place));
        Some(whole(text.len(), &inner, edits, |new| charset::latin1(new).into_bytes()))
    }

    /// Base64 and hexadecimal words. In a later reading, only those that an escape touches.
    fn words(&mut self, text: &str, reading: Option<&EscapedReading>, place: &TextPlace<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        for word in words(text, means_something) {
            if reading.is_some_and(|reading| !reading.is_new(&word.range)) {
                continue;
            }
            let inner = &word.inner;
            let inside = self.within(word.layer, inner.len(), place, |walk| walk.bytes(inner, place));
            if !inside.is_empty() {
                let (range, bytes) = word.encoded(&edited(inner, inside));
                edits.push(Edit { range, bytes });
            }
        }
        edits
    }

    /// A text as stored, then with its escapes resolved, level by level.
    fn readings(
        &mut self,
        text: &str,
        kind: LeafKind,
        reading: Option<&EscapedReading>,
        place: &TextPlace<'_>,
    ) -> Vec<Edit> {
        let next = EscapedReading::of(text);
        let mut edits = self.words(text, reading, place);
        edits.extend(self.hand_over(text, kind, (reading, next.as_ref()), place));
        let Some(next) = next else { return edits };
        let inner = next.text.as_str();
        let escapes = self.layers.iter().rev().take_while(|layer| **layer == Layer::Escapes).count();
        if escapes >= ESCAPES {
            self.opaque("escapes within escapes, in more levels than we read", inner.len(), place);
            return edits;
        }
        let mut later = self.within(Layer::Escapes, inner.len(), place, |walk| {
            if json::is_document(inner) {
                return walk.json(inner, place);
            }
            walk.readings(inner, kind, Some(&next), place)
        });
        later = later.into_iter().map(|edit| next.carried_back(&edit)).collect();
        // An edit that this reading did not make is left to the one before it.
        later.retain(|edit| reading.is_none_or(|reading| reading.is_new(&edit.range)));
        edits.extend(later);
        edits
    }

    fn json(&mut self, text: &str, place: &TextPlace<'_>) -> Vec<Edit> {
        let Some(new) = self.visitor.document(text) else { return self.texts_of_json(text, place) };
        if let Some(layer) = self.layers.iter().find(|layer| !layer.rewrites()) {
            self.cannot = self.cannot.or(Some(*layer));
            return Vec::new();
        }
        let edits = self.texts_of_json(&new, place);
        vec![Edit { range: 0..text.len(), bytes: edited(new.as_bytes(), edits) }]
    }

    fn texts_of_json(&mut self, text: &str, place: &TextPlace<'_>) -> Vec<Edit> {
        self.within(Layer::Json, text.len(), place, |walk| {
            let mut edits = Vec::new();
            let mut tokens = JsonTokens::new(text);
            while let Ok(Some(token)) = tokens.next() {
                let place = TextPlace { up: Some(place), source: text.as_bytes(), steps: tokens.steps() };
                if token.kind == LeafKind::Number {
                    let number = &text[token.range.clone()];
                    let inside = walk.leaf(number, LeafKind::Number, &place);
                    if !inside.is_empty() {
                        let new = String::from_utf8(edited(number.as_bytes(), inside)).unwrap_or_default();
                        let new = if json::is_number(&new) { new } else { "null".to_owned() };
                        edits.push(Edit { range: token.range, bytes: new.into_bytes() });
                    }
                    continue;
                }
                let (start, end) = (token.range.start + 1, token.range.end - 1);
                let reading = EscapedReading::of_literal(&text[start..end]);
                let inner = reading.as_ref().map_or(&text[start..end], |reading| &reading.text);
                for edit in walk.text(inner, token.kind, &place) {
                    let Edit { range, bytes } = match &reading {
                        Some(reading) => reading.carried_back(&edit),
                        None => Edit { bytes: escaped(&edit.bytes, EscapeNotation::Backslash), ..edit },
                    };
                    edits.push(Edit { range: start + range.start..start + range.end, bytes });
                }
            }
            edits
        })
    }

    /// Bytes of an unknown encoding.
    fn bytes(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        if bytes.is_empty() || !self.spend(bytes.len(), place) {
            return Vec::new();
        }
        let text = std::str::from_utf8(bytes);
        if let Ok(text) = text
            && charset::is_clean(text)
        {
            return self.text(text, LeafKind::Text, place);
        }
        if let Some((order, text)) = charset::utf16(bytes) {
            let edits = self.within(Layer::Utf16, text.len(), place, |w| w.text(&text, LeafKind::Text, place));
            return whole(bytes.len(), text.as_bytes(), edits, |new| {
                charset::to_utf16(&String::from_utf8_lossy(new), order)
            });
        }
        if packed::begins(bytes) {
            return self.streams(bytes, place);
        }
        match structure(bytes) {
            Some((Layer::Msgpack, _)) => self.pieces(Layer::Msgpack, bytes, msgpack::MsgpackReader::new(bytes), place),
            Some((Layer::Pickle, _)) => {
                let layer = if bytes[0] == 0x80 { Layer::Pickle } else { Layer::OldPickle };
                self.pieces(layer, bytes, pickle::PickleReader::new(bytes), place)
            }
            Some((Layer::Cbor, _)) => self.pieces(Layer::Cbor, bytes, cbor::CborReader::new(bytes), place),
            Some((Layer::Protobuf, _)) => {
                self.pieces(Layer::Protobuf, bytes, protobuf::ProtobufReader::new(bytes), place)
            }
            Some(_) => self.archive(bytes, place),
            None => match text {
                Ok(text) => self.text(text, LeafKind::Text, place),
                Err(_) => self.unknown(bytes, place),
            },
        }
    }

    /// The parts of a binary document.
    fn pieces(&mut self, layer: Layer, bytes: &[u8], mut pieces: impl PieceReader, place: &TextPlace<'_>) -> Vec<Edit> {
        self.within(layer, bytes.len(), place, |walk| {
            let mut edits = Vec::new();
            while let Ok(Some(piece)) = pieces.next() {
                let place = TextPlace { up: Some(place), source: bytes, steps: pieces.steps() };
                let part = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
                let is_class = layer == Layer::Pickle && pickle::names_class(bytes, piece.whole.end);
                let kind = if is_class { LeafKind::Class } else { piece.kind };
                let new = match &piece.body {
                    PieceBody::Number(number) => {
                        let text = number.to_string();
                        let inside = walk.leaf(&text, LeafKind::Number, &place);
                        (!inside.is_empty()).then(|| edited(text.as_bytes(), inside))
                    }
                    PieceBody::Text(range) => {
                        let text = std::str::from_utf8(part(range)).unwrap_or_default();
                        let inside = walk.text(text, kind, &place);
                        (!inside.is_empty()).then(|| edited(text.as_bytes(), inside))
                    }
                    PieceBody::Line(range) => {
                        let line = charset::latin1(part(range));
                        let line = line.strip_suffix('L').filter(|digits| json::is_number(digits)).unwrap_or(&line);
                        if !walk.text(line, kind, &place).is_empty() {
                            walk.cannot = walk.cannot.or(Some(layer));
                        }
                        None
                    }
                    PieceBody::Bytes(range) => {
                        let inside = if layer == Layer::Msgpack && msgpack::makes_object(part(&piece.whole)) {
                            walk.object(part(range), &place)
                        } else {
                            walk.bytes(part(range), &place)
                        };
                        (!inside.is_empty()).then(|| edited(part(range), inside))
                    }
                    PieceBody::Joined(all) => {
                        walk.bytes(all, &place);
                        None
                    }
                };
                let Some(new) = new else { continue };
                if is_class {
                    walk.cannot = walk.cannot.or(Some(layer));
                    continue;
                }
                let encoded = if layer == Layer::Pickle { pickle::encoded } else { msgpack::encoded };
                edits.push(Edit { bytes: encoded(part(&piece.whole), &new), range: piece.whole });
            }
            if layer == Layer::Pickle && !edits.is_empty() {
                let frames = pickle::reframed(bytes, &edits);
                edits.extend(frames);
            }
            edits
        })
    }

    /// Visits the description of an object in a `MessagePack` extension.
    fn object(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        if msgpack::longest(bytes).is_none() {
            return self.bytes(bytes, place);
        }
        if !self.spend(bytes.len(), place) {
            return Vec::new();
        }
        self.pieces(Layer::Msgpack, bytes, msgpack::MsgpackReader::of_object(bytes), place)
    }

    /// The files of an archive; read only.
    fn archive(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        let Some(mut archive) = Archive::open(bytes) else {
            self.opaque("a zip archive that is damaged", bytes.len(), place);
            self.letters(bytes, place);
            return Vec::new();
        };
        self.within(Layer::Zip, bytes.len(), place, |walk| {
            walk.text(&archive.comment(), LeafKind::Text, place);
            for number in 0..archive.len() {
                let file = archive.file(number, walk.unpackable);
                let steps = [DocumentStep::Key(0..file.name.len())];
                let place = TextPlace { up: Some(place), source: file.name.as_bytes(), steps: &steps };
                walk.text(&file.name, LeafKind::Key, &place);
                walk.text(&file.comment, LeafKind::Text, &place);
                walk.unpackable = walk.unpackable.saturating_sub(file.inner.len());
                walk.bytes(&file.inner, &place);
                if let Some(why) = file.unread {
                    walk.opaque(why, file.size, &place);
                }
            }
            Vec::new()
        })
    }

    /// Bytes of no known format: with embedded streams, single-byte letters, or letters between other bytes.
    fn unknown(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        if let Some(at) = self.next_stream(bytes, 0, place) {
            let mut edits = self.between(&bytes[..at], place);
            edits.extend(self.streams(&bytes[at..], place).into_iter().map(|edit| shifted(edit, at)));
            return edits;
        }
        if charset::is_latin1(bytes) {
            let text = charset::latin1(bytes);
            let edits = self.within(Layer::Latin1, text.len(), place, |w| w.text(&text, LeafKind::Text, place));
            return whole(bytes.len(), text.as_bytes(), edits, |new| charset::to_latin1(&String::from_utf8_lossy(new)));
        }
        if charset::is_damaged_text(bytes) {
            let mut edits = Vec::new();
            for (range, run) in charset::runs(bytes, 1) {
                let inside = self.text(run, LeafKind::Text, place);
                edits.extend(inside.into_iter().map(|edit| shifted(edit, range.start)));
            }
            return edits;
        }
        if bytes[0] != 0x08 && packed::header(bytes).is_some() {
            return self.streams(bytes, place);
        }
        self.letters(bytes, place);
        if let Ok(uuid) = Uuid::from_slice(bytes) {
            let text = uuid.to_string();
            let edits = self.within(Layer::Uuid, UUID, place, |walk| walk.leaf(&text, LeafKind::Text, place));
            return whole(UUID, text.as_bytes(), edits, |new| charset::to_uuid(&String::from_utf8_lossy(new)));
        }
        // Fewer bytes are times, sums and flags: too few to contain a name.
        if bytes.len() > UUID {
            self.opaque(named(bytes), bytes.len(), place);
        }
        Vec::new()
    }

    /// Letters in bytes of no known format; read only.
    fn letters(&mut self, bytes: &[u8], place: &TextPlace<'_>) {
        self.within(Layer::Binary, 0, place, |walk| {
            for (_, run) in charset::letters(bytes) {
                walk.text(run, LeafKind::Text, place);
            }
            Vec::new()
        });
        self.wide(bytes, place);
    }

    /// Letters of two and four bytes at any offset in other bytes; read only.
    fn wide(&mut self, bytes: &[u8], place: &TextPlace<'_>) {
        if !charset::may_be_wide(bytes) || !self.spend(bytes.len() * charset::WIDE_READINGS, place) {
            return;
        }
        self.within(Layer::Binary, 0, place, |walk| {
            charset::wide(bytes, &mut |run| {
                walk.leaf(run, LeafKind::Text, place);
            });
            Vec::new()
        });
    }

    /// Bytes next to compressed streams.
    fn between(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        if bytes.len() <= SCRAP {
            self.letters(bytes, place);
            return Vec::new();
        }
        // Data next to a stream may begin with an empty stream, and so on.
        if self.gaps == self.limits.depth {
            self.letters(bytes, place);
            self.opaque("more nested streams than we read", bytes.len(), place);
            return Vec::new();
        }
        self.gaps += 1;
        let edits = self.bytes(bytes, place);
        self.gaps -= 1;
        edits
    }

    /// Consecutive compressed streams, and the data between and after them.
    fn streams(&mut self, bytes: &[u8], place: &TextPlace<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut at = 0;
        while let Some(out) = packed::unpack(&bytes[at..], self.unpackable) {
            let UnpackedBytes { layer, inner, used, whole, too_large } = out;
            let stream = &bytes[at..at + used];
            self.unpackable = self.unpackable.saturating_sub(inner.len());
            let inside = self.within(layer, inner.len(), place, |walk| walk.bytes(&inner, place));
            let header = (layer == Layer::Gzip).then(|| packed::header_words(stream)).flatten();
            let renamed = header.is_some_and(|words| {
                let edits = self.within(layer, words.len(), place, |walk| walk.text(&words, LeafKind::Key, place));
                !edits.is_empty()
            });
            if !whole {
                let why = if too_large { packed::TOO_LARGE } else { packed::BROKEN };
                self.opaque(why, bytes.len() - at, place);
                if !inside.is_empty() || renamed {
                    self.cannot = self.cannot.or(Some(layer));
                }
                return edits;
            }
            if !inside.is_empty() || renamed {
                // A header with someone's name is dropped.
                match packed::pack(layer, &edited(&inner, inside), if renamed { &[] } else { stream }) {
                    Ok(new) => edits.push(Edit { range: at..at + used, bytes: new }),
                    Err(_) => self.cannot = self.cannot.or(Some(layer)),
                }
            }
            at += used;
            if packed::header(&bytes[at..]).is_none() || !packed::begins(&bytes[at..]) {
                let next = self.next_stream(bytes, at, place);
                let gap = at..next.unwrap_or(bytes.len());
                edits.extend(self.between(&bytes[gap.clone()], place).into_iter().map(|edit| shifted(edit, gap.start)));
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        edits
    }

    /// Finds the start of the next stream that can be decompressed.
    fn next_stream(&mut self, bytes: &[u8], from: usize, place: &TextPlace<'_>) -> Option<usize> {
        let strong = |at: &usize| matches!(bytes[*at], 0x78 | 0x1F | 0x28) && packed::header(&bytes[*at..]).is_some();
        for at in (from..bytes.len()).filter(strong) {
            if self.tries == 0 {
                self.opaque("may hold more compressed streams than we look for", bytes.len() - at, place);
                return None;
            }
            self.tries -= 1;
            if packed::begins(&bytes[at..]) {
                return Some(at);
            }
        }
        None
    }

    fn leaf(&mut self, text: &str, kind: LeafKind, place: &TextPlace<'_>) -> Vec<Edit> {
        self.hand_over(text, kind, (None, None), place)
    }

    /// Passes a text to the visitor, and converts its changes to edits; with this reading and the next one.
    fn hand_over(
        &mut self,
        text: &str,
        kind: LeafKind,
        (reading, next): (Option<&EscapedReading>, Option<&EscapedReading>),
        place: &TextPlace<'_>,
    ) -> Vec<Edit> {
        let leaf = Leaf { text, kind, layers: &self.layers, place, reading, next };
        let mut changes = self.visitor.leaf(&leaf);
        changes.retain(|change| text.get(change.range.clone()).is_some_and(|old| old != change.text));
        changes.retain(|change| leaf.is_new(change.range.clone()));
        let fixed = self.layers.iter().find(|layer| !layer.rewrites());
        let fixed = fixed.or_else(|| self.layers.last().filter(|_| kind == LeafKind::Class));
        if !changes.is_empty()
            && let Some(layer) = fixed
        {
            self.cannot = self.cannot.or(Some(*layer));
            return Vec::new();
        }
        changes.into_iter().map(|Change { range, text }| Edit { range, bytes: text.into_bytes() }).collect()
    }

    /// Walks inside a layer, unless there are too many.
    fn within(
        &mut self,
        layer: Layer,
        bytes: usize,
        place: &TextPlace<'_>,
        walk: impl FnOnce(&mut Self) -> Vec<Edit>,
    ) -> Vec<Edit> {
        if self.layers.len() >= self.limits.depth {
            self.opaque("more nested encodings than we read", bytes, place);
            return Vec::new();
        }
        self.layers.push(layer);
        let edits = walk(self);
        self.layers.pop();
        edits
    }

    fn spend(&mut self, bytes: usize, place: &TextPlace<'_>) -> bool {
        let left = self.work.checked_sub(bytes);
        if left.is_none() {
            self.opaque("takes more work than one value is allowed, and was not read to the end", bytes, place);
        }
        self.work = left.unwrap_or(0);
        left.is_some()
    }

    fn opaque(&mut self, why: &'static str, bytes: usize, place: &TextPlace<'_>) {
        if self.contents.opaque.len() < REPORTED {
            self.contents.opaque.push(Opaque { why, path: place.path(), layers: self.layers.clone(), bytes });
        }
    }
}

/// Combines edits within decoded bytes into one edit of all the encoded bytes.
fn whole(old: usize, inner: &[u8], edits: Vec<Edit>, encode: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<Edit> {
    if edits.is_empty() {
        return Vec::new();
    }
    vec![Edit { range: 0..old, bytes: encode(&edited(inner, edits)) }]
}

fn shifted(edit: Edit, by: usize) -> Edit {
    Edit { range: edit.range.start + by..edit.range.end + by, bytes: edit.bytes }
}

/// Features of a text that suggest encodings, found in one pass.
#[derive(Debug, Clone, Copy, Default)]
struct TextGlance {
    /// It may contain escapes, or two-byte letters.
    escaped: bool,
    /// It has a word long enough for an encoding.
    long: bool,
}

impl TextGlance {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        // Branch-free, because most texts contain none of these.
        let shows = bytes.iter().fold(false, |any, byte| any | matches!(byte, b'\\' | 0 | b'%' | b'&' | b'+'));
        TextGlance { escaped: shows && may_hold_escapes(text), long: has_long_word(bytes) }
    }
}

/// Whether a text may contain an escape, two-byte letters, or a `+` that stands for a blank.
fn may_hold_escapes(text: &str) -> bool {
    let mut assigned = false;
    text.bytes().enumerate().any(|(at, byte)| {
        assigned |= byte == b'=';
        match byte {
            b'\\' | 0 => true,
            b'%' => escape::percent(text, at).is_some(),
            b'&' => escape::entity(text, at).is_some(),
            b'+' => assigned,
            _ => false,
        }
    })
}

/// Whether there are enough consecutive letters for an encoding.
fn has_long_word(bytes: &[u8]) -> bool {
    let mut from = 0;
    while let Some(part) = bytes.get(from..from + word::SHORTEST) {
        match part.iter().rposition(|byte| !word::is_letter(*byte)) {
            Some(at) => from += at + 1,
            None => return true,
        }
    }
    false
}

/// Whether a text certainly contains no encoding, found without allocation; true for most texts.
fn is_plain(text: &str) -> bool {
    let glance = TextGlance::of(text);
    let first = text.bytes().find(|b| !b.is_ascii_whitespace());
    // A compressed stream as letters begins with one of the others.
    !glance.escaped
        && !glance.long
        && !matches!(first, Some(b'{' | b'[' | b'"' | 0x1F))
        && (!matches!(first, Some(b'x' | b'(')) || text.is_ascii())
}

/// Whether every text that a walk would find in a stored text appears there literally: it contains no encoding except
/// JSON without escapes.
pub fn is_bare(text: &str) -> bool {
    let glance = TextGlance::of(text);
    let plain = !glance.escaped && (!glance.long || words(text, means_something).next().is_none());
    plain && (text.is_ascii() || !may_hold_letters_of_bytes(text))
}

/// Whether a text, or a string in it, may be a compressed stream with one letter per byte.
fn may_hold_letters_of_bytes(text: &str) -> bool {
    let begins_string = |at: usize| at == 0 || text.as_bytes()[at - 1] == b'"';
    text.char_indices().any(|(at, _)| begins_string(at) && begins_packed_letters(&text[at..]))
}

/// Whether a text begins like a compressed stream with one letter per byte.
fn begins_packed_letters(text: &str) -> bool {
    text.starts_with(['x', '(', '\u{1F}']) && {
        let head: Vec<u8> = text.chars().take(4).map_while(|c| u8::try_from(u32::from(c)).ok()).collect();
        head.len() == 4 && packed::header(&head).is_some()
    }
}

/// The binary document format of the bytes, if any, and the length of its longest text.
fn structure(bytes: &[u8]) -> Option<(Layer, usize)> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Some((Layer::Zip, bytes.len()));
    }
    let pickle = || Some((Layer::Pickle, pickle::longest(bytes)?));
    let msgpack = || Some((Layer::Msgpack, msgpack::longest(bytes)?));
    let cbor = || Some((Layer::Cbor, cbor::longest(bytes)?));
    let protobuf = || Some((Layer::Protobuf, protobuf::longest(bytes, MESSAGES)?));
    pickle().or_else(msgpack).or_else(cbor).or_else(protobuf)
}

/// Whether decoded bytes are unlikely by chance: a text, or a known format.
fn means_something(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).is_ok_and(charset::is_clean);
    text || charset::utf16(bytes).is_some()
        || packed::begins(bytes)
        || charset::may_be_wide(bytes)
        || structure(bytes).is_some_and(|(layer, longest)| longest >= WORD || holds_something(layer, bytes))
}

/// Whether bytes within a document are a text, a stream or a document.
fn holds_something(layer: Layer, bytes: &[u8]) -> bool {
    let mut pieces: Box<dyn PieceReader + '_> = match layer {
        Layer::Msgpack => Box::new(msgpack::MsgpackReader::new(bytes)),
        Layer::Pickle => Box::new(pickle::PickleReader::new(bytes)),
        Layer::Cbor => Box::new(cbor::CborReader::new(bytes)),
        _ => return false,
    };
    while let Ok(Some(piece)) = pieces.next() {
        let PieceBody::Bytes(range) = piece.body else { continue };
        let part = bytes.get(range).unwrap_or_default();
        let text = std::str::from_utf8(part).is_ok_and(charset::is_clean);
        let means = text || packed::begins(part) || structure(part).is_some_and(|(_, longest)| longest >= WORD);
        if part.len() >= WORD && means {
            return true;
        }
    }
    false
}

/// Names the kind of unknown bytes by their beginning.
fn named(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] | [0xFF, 0xD8, 0xFF, ..] | [b'G', b'I', b'F', b'8', ..] => "an image",
        [b'R', b'I', b'F', b'F', ..] | [b'O', b'g', b'g', b'S', ..] | [b'I', b'D', b'3', ..] => "sound or an image",
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => "bzip2, which is not searched",
        [0xFD, b'7', b'z', b'X', b'Z', ..] | [0x5D, 0, 0, ..] => "xz or LZMA, which is not searched",
        [0x04, 0x22, 0x4D, 0x18, ..] => "LZ4, which is not searched",
        [b'%', b'P', b'D', b'F', ..] => "a PDF, which is not searched",
        _ => "bytes of an unknown format",
    }
}
