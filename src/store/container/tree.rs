//! Binary documents as JSON: the result of a layout's `decode`, for reading, paths, filters and exports.
//!
//! Instances of classes become objects with their members and `$class`, the class name. Bytes become text if they are
//! UTF-8, otherwise base64. Documents nested deeper than JSON allows, or beyond the limits, are an error, never a
//! crash.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Number, Value};

use super::{cbor as cbor_parts, msgpack as msgpack_parts, packed, unpickle};
use crate::layout::Codec;
use crate::memory::agreeing;
use crate::memory::json::MAX_DEPTH;
use crate::memory::vector;
use crate::store::fetched::FetchedValue;

/// Most nested messages.
const MESSAGES: usize = 16;

/// Most values of a document; each takes more than a hundred bytes.
pub(super) const VALUES: usize = 1 << 18;
/// Reason why a document is not read.
pub(super) const TOO_MANY: &str = "it has more values than we read";

/// Result of decoding.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    /// Bytes of an unknown format.
    Bytes(Vec<u8>),
    /// A document.
    Document(Value),
}

/// Decodes a stored value, the outermost encoding first. `None` for SQL NULL and empty values.
///
/// # Errors
/// The reason why it is not in this encoding, for people.
pub fn decoded(raw: &FetchedValue, codecs: &[Codec]) -> Result<Option<Decoded>, String> {
    let mut bytes = match raw {
        FetchedValue::Null => return Ok(None),
        FetchedValue::Text(text) => text.as_bytes().to_vec(),
        FetchedValue::Bytes(bytes) | FetchedValue::BadText(bytes) => bytes.clone(),
        FetchedValue::Integer(number) => number.to_string().into_bytes(),
        FetchedValue::Real(number) => number.to_string().into_bytes(),
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    for codec in codecs {
        match step(*codec, &bytes).map_err(|why| format!("is not {}: {why}", codec.name()))? {
            Decoded::Bytes(inner) => bytes = inner,
            document @ Decoded::Document(_) => return Ok(Some(document)),
        }
    }
    Ok(Some(Decoded::Bytes(bytes)))
}

fn step(codec: Codec, bytes: &[u8]) -> Result<Decoded, String> {
    let document = |value: Result<Value, String>| value.map(Decoded::Document);
    match codec {
        Codec::Json => {
            let text = std::str::from_utf8(bytes).map_err(|_| "its bytes are not text".to_owned())?;
            let reading = crate::memory::json::read(text);
            match (reading.value, reading.problems.into_iter().next()) {
                (Value::Null, Some(problem)) => Err(problem),
                (value, _) => Ok(Decoded::Document(value)),
            }
        }
        Codec::Msgpack => document(of_msgpack(bytes, 0)),
        Codec::Cbor => {
            if cbor_parts::holds_more(bytes, VALUES) {
                return Err(TOO_MANY.to_owned());
            }
            let value = ciborium::de::from_reader_with_recursion_limit(bytes, MAX_DEPTH);
            document(value.map_err(|e| e.to_string()).and_then(|value| cbor(value, 0)))
        }
        Codec::Pickle => document(unpickle::read(bytes)),
        Codec::Protobuf => document(message(bytes, 0).ok_or_else(|| "its fields do not add up".to_owned())),
        Codec::Base64 => {
            let trimmed = bytes.trim_ascii();
            let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
            let found = engines.into_iter().find_map(|engine| engine.decode(trimmed).ok());
            found.map(Decoded::Bytes).ok_or_else(|| "it has letters outside the alphabet".to_owned())
        }
        Codec::Zlib | Codec::Gzip | Codec::Zstd => match packed::unpacked(bytes) {
            Some(Ok((_, inner))) => Ok(Decoded::Bytes(inner)),
            Some(Err(why)) => Err(why.to_owned()),
            None => Err("it does not begin like a compressed stream".to_owned()),
        },
        Codec::Floats => {
            let mut numbers = Vec::new();
            if !vector::read_floats(bytes, &mut numbers) {
                return Err("its bytes are not 32-bit floats".to_owned());
            }
            Ok(Decoded::Document(numbers.into_iter().map(|x| real(f64::from(x))).collect()))
        }
    }
}

/// `depth` is the nesting depth of the document.
fn of_msgpack(bytes: &[u8], depth: usize) -> Result<Value, String> {
    if msgpack_parts::holds_more(bytes, VALUES) {
        return Err(TOO_MANY.to_owned());
    }
    let mut rest = bytes;
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH).map_err(|e| e.to_string())?;
    if !rest.is_empty() {
        return Err(agreeing(rest.len(), "{#} {byte follows|bytes follow} it"));
    }
    msgpack(value, depth)
}

fn msgpack(value: rmpv::Value, depth: usize) -> Result<Value, String> {
    within(depth)?;
    Ok(match value {
        rmpv::Value::Nil => Value::Null,
        rmpv::Value::Boolean(b) => Value::Bool(b),
        rmpv::Value::Integer(i) => match (i.as_i64(), i.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, i) => Value::from(i),
        },
        rmpv::Value::F32(x) => real(f64::from(x)),
        rmpv::Value::F64(x) => real(x),
        rmpv::Value::String(text) => bytes_as_text(text.as_bytes()),
        rmpv::Value::Binary(bytes) => bytes_as_text(&bytes),
        rmpv::Value::Array(items) => {
            items.into_iter().map(|item| msgpack(item, depth + 1)).collect::<Result<_, _>>()?
        }
        rmpv::Value::Map(pairs) => {
            let mut object = Map::new();
            for (key, value) in pairs {
                object.insert(key_text(&msgpack(key, depth + 1)?), msgpack(value, depth + 1)?);
            }
            Value::Object(object)
        }
        // An extension often contains another document: for LangGraph, a class and its arguments.
        rmpv::Value::Ext(kind, bytes) => match of_msgpack(&bytes, depth + 1) {
            Ok(Value::Array(parts)) => instance(parts),
            Ok(inner @ Value::Object(_)) => inner,
            _ => serde_json::json!({ "$type": kind, "value": bytes_as_text(&bytes) }),
        },
    })
}

/// Module, class and arguments of an instance, as an object with the members or a list of arguments.
fn instance(parts: Vec<Value>) -> Value {
    let [Value::String(module), Value::String(class), rest @ ..] = &parts[..] else { return Value::Array(parts) };
    let mut object = Map::from_iter([("$class".to_owned(), Value::from(format!("{module}.{class}")))]);
    let members = rest.iter().find_map(Value::as_object);
    match members {
        Some(members) => object.extend(members.iter().map(|(key, value)| (key.clone(), value.clone()))),
        None => {
            object.insert("args".to_owned(), rest.first().cloned().unwrap_or_default());
        }
    }
    Value::Object(object)
}

fn cbor(value: ciborium::Value, depth: usize) -> Result<Value, String> {
    within(depth)?;
    Ok(match value {
        ciborium::Value::Bool(b) => Value::Bool(b),
        ciborium::Value::Integer(i) => i64::try_from(i).map_or_else(|_| i128::from(i).to_string().into(), Value::from),
        ciborium::Value::Float(x) => real(x),
        ciborium::Value::Text(text) => Value::from(text),
        ciborium::Value::Bytes(bytes) => bytes_as_text(&bytes),
        ciborium::Value::Array(items) => {
            items.into_iter().map(|item| cbor(item, depth + 1)).collect::<Result<_, _>>()?
        }
        ciborium::Value::Map(pairs) => {
            let mut object = Map::new();
            for (key, value) in pairs {
                object.insert(key_text(&cbor(key, depth + 1)?), cbor(value, depth + 1)?);
            }
            Value::Object(object)
        }
        ciborium::Value::Tag(_, inner) => cbor(*inner, depth + 1)?,
        _ => Value::Null,
    })
}

/// Fields by number; a repeated field becomes a list. Bytes become a text, a message, or base64, whichever fits first.
fn message(bytes: &[u8], depth: usize) -> Option<Value> {
    let mut fields: Map<String, Value> = Map::new();
    let mut at = 0;
    while at < bytes.len() {
        let tag = varint(bytes, &mut at)?;
        let value = match tag & 7 {
            0 => Value::from(varint(bytes, &mut at)?),
            1 => real(f64::from_le_bytes(take(bytes, &mut at, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(bytes, &mut at)?).ok()?;
                let inner = take(bytes, &mut at, length)?;
                match std::str::from_utf8(inner) {
                    Ok(text) if super::charset::is_clean(text) => Value::from(text),
                    _ if depth < MESSAGES => message(inner, depth + 1).unwrap_or_else(|| bytes_as_text(inner)),
                    _ => bytes_as_text(inner),
                }
            }
            5 => real(f64::from(f32::from_le_bytes(take(bytes, &mut at, 4)?.try_into().ok()?))),
            _ => return None,
        };
        if tag >> 3 == 0 {
            return None;
        }
        match fields.entry((tag >> 3).to_string()) {
            serde_json::map::Entry::Vacant(vacant) => {
                vacant.insert(value);
            }
            serde_json::map::Entry::Occupied(mut known) => match known.get_mut() {
                Value::Array(items) => items.push(value),
                one => *one = Value::Array(vec![one.take(), value]),
            },
        }
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take<'b>(bytes: &'b [u8], at: &mut usize, length: usize) -> Option<&'b [u8]> {
    let taken = bytes.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(taken)
}

/// Fails if JSON would be nested too deep.
fn within(depth: usize) -> Result<(), String> {
    if depth < MAX_DEPTH { Ok(()) } else { Err(format!("it nests deeper than {MAX_DEPTH}")) }
}

/// A number as JSON; its name if JSON cannot represent it.
pub(super) fn real(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| Value::from(number.to_string()), Value::Number)
}

/// Bytes as text if they are UTF-8, otherwise as base64.
pub(super) fn bytes_as_text(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| Value::from(STANDARD.encode(bytes)), Value::from)
}

/// A value as a member name.
pub(super) fn key_text(key: &Value) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(bytes: &[u8], codecs: &[Codec]) -> Value {
        match decoded(&FetchedValue::Bytes(bytes.to_vec()), codecs) {
            Ok(Some(Decoded::Document(value))) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_codec_gives_a_document() {
        let msgpack = [0x82, 0xA1, b'a', 0x01, 0xA1, b'b', 0x92, 0xC0, 0xC3];
        let plain = json!({"a": 1, "b": [null, true]});
        assert_eq!(document(&msgpack, &[Codec::Msgpack]), plain);
        let zipped = packed::pack(super::super::Layer::Zlib, &msgpack, &[]).expect("it packs");
        assert_eq!(document(&zipped, &[Codec::Zlib, Codec::Msgpack]), plain);
        let worded = STANDARD.encode(br#"{"a":1}"#);
        assert_eq!(document(worded.as_bytes(), &[Codec::Base64, Codec::Json]), json!({"a": 1}));
        assert_eq!(document(&[0xA1, 0x61, b'a', 0xF6], &[Codec::Cbor]), json!({"a": null}));
        assert_eq!(document(&[0x0A, 3, b'a', b'n', b'n', 0x10, 7], &[Codec::Protobuf]), json!({"1": "ann", "2": 7}));
        assert_eq!(document(&[0, 0, 128, 63, 0, 0, 0, 191], &[Codec::Floats]), json!([1.0, -0.5]));
        assert_eq!(document(br#""quoted""#, &[Codec::Json]), json!("quoted"));
    }

    #[test]
    fn an_extension_is_the_instance_that_it_makes() {
        // ["m", "C", {"content": "hi"}, "validate"] as an extension of type 5.
        let inner =
            [&[0x94, 0xA1, b'm', 0xA1, b'C', 0x81, 0xA7][..], b"content", &[0xA2, b'h', b'i', 0xA1, b'v']].concat();
        let bytes = [&[0xC7, inner.len() as u8, 5][..], &inner].concat();
        assert_eq!(document(&bytes, &[Codec::Msgpack]), json!({"$class": "m.C", "content": "hi"}));
    }

    #[test]
    fn a_document_of_very_many_values_is_not_read() {
        let of = |count: u32| [&b"\xDD"[..], &count.to_be_bytes(), &b"\xC0".repeat(count as usize)].concat();
        let cbor = |count: u32| [&b"\x9A"[..], &count.to_be_bytes(), &b"\xF6".repeat(count as usize)].concat();
        for (codec, few, many) in
            [(Codec::Msgpack, of(1_000), of(VALUES as u32)), (Codec::Cbor, cbor(1_000), cbor(VALUES as u32))]
        {
            let why = decoded(&FetchedValue::Bytes(many), &[codec]).expect_err("too many");
            assert!(why.contains(TOO_MANY), "{why}");
            assert_eq!(document(&few, &[codec]).as_array().map(Vec::len), Some(1_000));
        }
    }

    #[test]
    fn damaged_and_hostile_bytes_are_errors() {
        for codec in Codec::WORDS.iter().map(|(_, codec)| *codec) {
            for bytes in [&b"\xDD\xFF\xFF\xFF\xFF"[..], &[0x91; 4_000], b"\x80\x05\x95", &[0xBF, 0xBF, 0xBF]] {
                let _ = decoded(&FetchedValue::Bytes(bytes.to_vec()), &[codec]);
            }
        }
        assert!(decoded(&FetchedValue::Bytes(vec![0x91; 4_000]), &[Codec::Msgpack]).is_err());
        assert_eq!(decoded(&FetchedValue::Bytes(Vec::new()), &[Codec::Msgpack]), Ok(None));
        let mut extensions = vec![0xC0];
        for _ in 0..20_000 {
            let length = (extensions.len() as u32).to_be_bytes();
            extensions.splice(0..0, [&[0xC9][..], &length, &[5]].concat());
        }
        assert_eq!(document(&extensions, &[Codec::Msgpack])["$type"], 5);
    }
}
