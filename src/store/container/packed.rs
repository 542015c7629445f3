//! Compressed bytes: zlib, gzip and Zstandard, decompressed up to a limit and compressed again.

use std::borrow::Cow;
use std::io::{Read, Write as _};

use flate2::bufread::{GzDecoder, ZlibDecoder};
use flate2::write::ZlibEncoder;
use flate2::{Compression, GzBuilder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{Layer, Limits};
use crate::store::fetched::FetchedValue;

/// Bytes of error-free output that confirm a stream.
const PROBE: usize = 256;
/// Largest window of a Zstandard frame.
const WINDOW: u64 = 64 << 20;

/// Reason why compressed bytes were not read completely.
pub const TOO_LARGE: &str = "unpacks to more than 64 MB and was not read";
pub(super) const BROKEN: &str = "a compressed stream that ends early or is damaged";

/// Result of decompression.
#[derive(Debug)]
pub(super) struct UnpackedBytes {
    pub layer: Layer,
    /// Decompressed content; for a broken stream, the part before the error.
    pub inner: Vec<u8>,
    /// Length of the stream; later bytes do not belong to it.
    pub used: usize,
    /// Whether the stream ends correctly.
    pub whole: bool,
    /// Whether the stream contains more than requested.
    pub too_large: bool,
}

/// The format whose header the bytes begin with.
pub(super) fn header(bytes: &[u8]) -> Option<Layer> {
    match bytes {
        [0x1F, 0x8B, 8, ..] => Some(Layer::Gzip),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Layer::Zstd),
        [method, flags, ..]
            if method & 0x8F == 8
                && flags & 0x20 == 0
                && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31) =>
        {
            Some(Layer::Zlib)
        }
        _ => None,
    }
}

/// Decompresses the stream at the start of the bytes, up to a limit. `None` if there is none.
pub(super) fn unpack(bytes: &[u8], limit: usize) -> Option<UnpackedBytes> {
    let layer = header(bytes)?;
    let mut rest = bytes;
    let mut inner = Vec::new();
    let take = limit as u64 + 1;
    let whole = match layer {
        Layer::Zlib => ZlibDecoder::new(&mut rest).take(take).read_to_end(&mut inner).is_ok(),
        Layer::Gzip => GzDecoder::new(&mut rest).take(take).read_to_end(&mut inner).is_ok(),
        _ => frame(&mut rest, take, &mut inner).is_some(),
    };
    let too_large = inner.len() > limit;
    Some(UnpackedBytes { layer, inner, used: bytes.len() - rest.len(), whole: whole && !too_large, too_large })
}

fn frame(rest: &mut &[u8], take: u64, inner: &mut Vec<u8>) -> Option<()> {
    let mut frames = FrameDecoder::new();
    frames.set_max_window_size(WINDOW.min(take.max(1 << 20)));
    let mut decoder = StreamingDecoder::new_with_decoder(rest, frames).ok()?;
    (&mut decoder).take(take).read_to_end(inner).ok()?;
    let frames = &decoder.decoder;
    let sum = frames.get_checksum_from_data();
    (sum.is_none() || inner.len() as u64 == take || sum == frames.get_calculated_checksum()).then_some(())
}

/// Whether bytes begin with a stream that can be decompressed, at least at its beginning.
pub(super) fn begins(bytes: &[u8]) -> bool {
    unpack(bytes, PROBE).is_some_and(|out| (out.whole || out.too_large) && !out.inner.is_empty())
}

/// Returns the texts in the header of a gzip member: file name, comment, extra field.
pub(super) fn header_words(stream: &[u8]) -> Option<String> {
    let decoder = GzDecoder::new(stream);
    let header = decoder.header()?;
    let parts = [header.filename(), header.comment(), header.extra()];
    let words: Vec<_> = parts.into_iter().flatten().map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join("\n"))
}

/// Compresses bytes in the format of the original stream; a gzip member keeps its name and time from `old`.
///
/// # Errors
/// The encoder's error.
pub fn pack(layer: Layer, inner: &[u8], old: &[u8]) -> std::io::Result<Vec<u8>> {
    match layer {
        Layer::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(inner).and_then(|()| encoder.finish())
        }
        Layer::Gzip => {
            let mut encoder = like(old).write(Vec::new(), Compression::default());
            encoder.write_all(inner).and_then(|()| encoder.finish())
        }
        _ => Ok(compress_to_vec(inner, CompressionLevel::Fastest)),
    }
}

fn like(old: &[u8]) -> GzBuilder {
    let decoder = GzDecoder::new(old);
    let Some(header) = decoder.header() else { return GzBuilder::new() };
    let mut builder = GzBuilder::new().mtime(header.mtime()).operating_system(header.operating_system());
    if let Some(name) = header.filename() {
        builder = builder.filename(name);
    }
    if let Some(comment) = header.comment() {
        builder = builder.comment(comment);
    }
    match header.extra() {
        Some(extra) => builder.extra(extra),
        None => builder,
    }
}

/// Decompresses a value with all its streams, up to the usual limit; returns the format of the first. `None` if it is
/// not compressed.
///
/// # Errors
/// The bytes only look like a compressed stream, or contain more than the limit.
pub fn unpacked(bytes: &[u8]) -> Option<Result<(Layer, Vec<u8>), &'static str>> {
    let layer = header(bytes)?;
    let limit = Limits::default().unpacked;
    let (mut at, mut all) = (0, Vec::new());
    while let Some(mut out) = unpack(&bytes[at..], limit - all.len()) {
        match (out.whole, out.too_large) {
            (true, _) => all.append(&mut out.inner),
            (_, true) => return Some(Err(TOO_LARGE)),
            // Data after the first stream need not be one.
            _ if at > 0 => break,
            _ => return Some(Err(BROKEN)),
        }
        at += out.used;
    }
    Some(Ok((layer, all)))
}

/// Content of a stored value.
#[derive(Debug)]
pub struct OpenedValue<'a> {
    /// Bytes of the value, decompressed.
    pub bytes: Cow<'a, [u8]>,
    /// Compression format of the value.
    pub wrapping: Option<Layer>,
}

/// The bytes of a stored value, decompressed if needed; `None` for numbers and NULL.
///
/// # Errors
/// A compressed value with more than the limit.
pub fn opened(raw: &FetchedValue) -> Result<Option<OpenedValue<'_>>, &'static str> {
    let plain = |bytes| Ok(Some(OpenedValue { bytes: Cow::Borrowed(bytes), wrapping: None }));
    match raw {
        FetchedValue::Text(text) => plain(text.as_bytes()),
        FetchedValue::BadText(bytes) => plain(bytes),
        FetchedValue::Bytes(bytes) => match unpacked(bytes) {
            Some(Ok((layer, inner))) => Ok(Some(OpenedValue { bytes: Cow::Owned(inner), wrapping: Some(layer) })),
            Some(Err(TOO_LARGE)) => Err(TOO_LARGE),
            _ => plain(bytes),
        },
        FetchedValue::Null | FetchedValue::Integer(_) | FetchedValue::Real(_) => Ok(None),
    }
}

/// The text of a stored value, with replacement characters for invalid UTF-8; `None` for numbers and unreadable values.
pub fn readable(raw: &FetchedValue) -> Option<String> {
    let opened = opened(raw).ok()??;
    Some(match opened.bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Cow::Owned(bytes) => String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into()),
    })
}
