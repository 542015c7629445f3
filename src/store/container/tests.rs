//! Tests of what is found in values and how they are rewritten, for each encoding and for nested encodings.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Every distinct text of a value, with its path and encodings.
fn leaves(raw: &FetchedValue) -> Vec<(String, String, Vec<Layer>)> {
    let mut all = Vec::new();
    read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        all.push((leaf.text.to_owned(), leaf.path(), leaf.layers.to_vec()));
    });
    all
}

/// Counts the occurrences of a word in a value, each place once.
fn count(raw: &FetchedValue, word: &str) -> usize {
    let mut found = 0;
    read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        found += leaf.text.match_indices(word).filter(|(at, _)| leaf.is_new(*at..at + word.len())).count();
    });
    found
}

/// Removes a word from a value.
fn without(raw: &FetchedValue, word: &str, mark: &str) -> Rewritten<FetchedValue> {
    rewrite(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        let places = leaf.text.match_indices(word);
        places.map(|(at, _)| Change { range: at..at + word.len(), text: mark.to_owned() }).collect()
    })
    .0
}

fn opaque(raw: &FetchedValue) -> Vec<&'static str> {
    read(raw, Limits::default(), &mut |_: &Leaf<'_>| {}).opaque.iter().map(|part| part.why).collect()
}

fn text(text: &str) -> FetchedValue {
    FetchedValue::Text(text.to_owned())
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

const MAIL: &str = "ann@example.org";

/// The person's address in every rewritable encoding, single and nested.
fn disguises() -> Vec<(&'static str, FetchedValue)> {
    let sentence = "write to ann@example.org, please";
    let bytes = sentence.as_bytes();
    let document = json!({ "who": { "mail": sentence }, "n": 1 }).to_string();
    let wide: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let twice = STANDARD.encode(STANDARD.encode(sentence));
    let lines = STANDARD.encode([bytes, &[b'.'; 90], bytes].concat());
    let lines: Vec<&str> = lines.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let mut prefixed = vec![0, 0, 1, 200];
    prefixed.extend(zlib(bytes));
    vec![
        ("text", text(sentence)),
        ("text in bytes", FetchedValue::Bytes(bytes.to_vec())),
        ("JSON", text(&document)),
        ("JSON in bytes", FetchedValue::Bytes(document.clone().into_bytes())),
        ("JSON in JSON", text(&json!({ "inner": document }).to_string())),
        ("JSON escapes", text(r#"{"a":"x \u0061\u006e\u006e\u0040example.org"}"#)),
        ("JSON cut off", text(r#"{"a":"one\nann\u0040example.org"#)),
        ("JSON lines", text("{\"a\":1}\n{\"a\":\"ann@example.org\"}\n")),
        ("a JSON string", text(r#""say \"ann@example.org\"""#)),
        ("Python", text("{'a': None, 'b': 'it\\'s ann@example.org'}")),
        ("a key", text(r#"{"ann@example.org":[1]}"#)),
        ("zlib", FetchedValue::Bytes(zlib(bytes))),
        ("zlib of JSON", FetchedValue::Bytes(zlib(document.as_bytes()))),
        ("zlib in zlib", FetchedValue::Bytes(zlib(&zlib(bytes)))),
        ("a second zlib stream", FetchedValue::Bytes([zlib(b"nothing"), zlib(bytes)].concat())),
        ("zlib after other bytes", FetchedValue::Bytes(prefixed)),
        ("zlib as Latin-1", FetchedValue::Text(charset::latin1(&zlib(bytes)))),
        ("zlib as hex", text(&hex::encode(zlib(bytes)))),
        ("zlib as bytea", text(&format!("\\x{}", hex::encode(zlib(bytes))))),
        ("zlib in a text that is not UTF-8", FetchedValue::BadText(zlib(bytes))),
        (
            "text after zlib",
            FetchedValue::Bytes([&zlib(b"nothing")[..], b" and then ann@example.org follows"].concat()),
        ),
        ("gzip", FetchedValue::Bytes(gzip(bytes))),
        ("a second member of gzip", FetchedValue::Bytes([gzip(b"nothing"), gzip(bytes)].concat())),
        ("zstd", FetchedValue::Bytes(zstd(bytes))),
        ("base64", text(&STANDARD.encode(sentence))),
        ("base64 in words", text(&format!("token={} of", STANDARD.encode(sentence)))),
        ("base64 without padding", text(&STANDARD_NO_PAD.encode(format!("{sentence}??>>")))),
        ("base64 of URLs", text(&format!("a.{}.b", URL_SAFE_NO_PAD.encode(format!("{sentence}??>>"))))),
        ("base64 twice", text(&twice)),
        ("base64 on lines", text(&lines.join("\r\n"))),
        ("base64 of zlib", text(&STANDARD.encode(zlib(bytes)))),
        ("base64 after a word", text(&format!("id_{}", STANDARD.encode(sentence)))),
        ("base64 with escapes", text(&STANDARD.encode(sentence).replace('=', "%3D"))),
        ("hex", text(&hex::encode(sentence))),
        ("hex in capitals", text(&hex::encode_upper(sentence))),
        ("percent", text("?m=ann%40example.org&x=1")),
        ("percent twice", text("?m=ann%2540example.org&x=1")),
        ("a form", text("q=to+ann%40example.org+now")),
        ("JSON in percent", text("?q=%7B%22m%22%3A%22ann%40example.org%22%7D")),
        ("an entity", text("to ann&#64;example.org")),
        ("a hexadecimal entity", text("to ann&#x40;example.org")),
        ("entities of entities", text("to ann&amp;#64;example.org")),
        ("JSON in entities", text("{&quot;m&quot;:&quot;ann@example.org&quot;}")),
        ("an escape in a text", text("to ann\\u0040example.org")),
        ("UTF-16", FetchedValue::Bytes(wide)),
        (
            "base64 in JSON in zlib",
            FetchedValue::Bytes(zlib(json!([STANDARD.encode(sentence)]).to_string().as_bytes())),
        ),
    ]
}

#[test]
fn a_word_is_found_in_every_encoding() {
    for (name, value) in disguises() {
        assert!(count(&value, MAIL) >= 1, "{name}: {:?}", leaves(&value));
        assert_eq!(opaque(&value), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn a_rewritten_value_is_encoded_as_it_was_and_the_word_is_gone() {
    for (name, value) in disguises() {
        let Rewritten::New(new) = without(&value, MAIL, "[erased]") else { panic!("{name} was not rewritten") };
        assert_eq!(count(&new, MAIL), 0, "{name}: {new:?}");
        assert!(count(&new, "[erased]") >= 1, "{name}: {:?}", leaves(&new));
        assert_eq!(std::mem::discriminant(&value), std::mem::discriminant(&new), "{name}");
        // Replacing the mark by the word again restores the texts.
        let Rewritten::New(back) = without(&new, "[erased]", MAIL) else { panic!("{name} was not restored") };
        let last = |value: &FetchedValue| leaves(value).into_iter().map(|(text, path, _)| (text, path)).next_back();
        assert_eq!((last(&back), count(&back, MAIL)), (last(&value), count(&value, MAIL)), "{name}");
        assert_eq!(without(&value, "nobody", "x"), Rewritten::Unchanged, "{name}");
    }
}

#[test]
fn every_byte_beside_a_change_stays() {
    for (before, after) in [
        (
            r#"{ "a":1.10, "b" : "x\u00e9 ann@example.org \/", "b":NaN}"#,
            r#"{ "a":1.10, "b" : "x\u00e9 * \/", "b":NaN}"#,
        ),
        (
            r#"["\ud800", 123456789012345678901234567890, "ann@example.org",]"#,
            r#"["\ud800", 123456789012345678901234567890, "*",]"#,
        ),
        ("50% of ann%40example.org &amp; co", "50% of %2A &amp; co"),
        ("a &lt; b, ann&#64;example.org, &nbsp;", "a &lt; b, *, &nbsp;"),
        (r"C:\temp\new ann@example.org", r"C:\temp\new *"),
    ] {
        let expected = after.replace("%2A", "*");
        let Rewritten::New(FetchedValue::Text(new)) = without(&text(before), MAIL, "*") else { panic!("{before}") };
        assert_eq!(new, expected);
    }
    let two = [zlib(b"nothing here"), zlib(b"ann@example.org")].concat();
    let Rewritten::New(FetchedValue::Bytes(new)) = without(&FetchedValue::Bytes(two.clone()), MAIL, "*") else {
        panic!()
    };
    assert!(new.starts_with(&zlib(b"nothing here")));
    assert_eq!(unpacked(&new), Some(Ok((Layer::Zlib, b"nothing here*".to_vec()))));
}

#[test]
fn a_backslash_that_is_no_escape_is_a_letter() {
    for path in [r"C:\home\tanya.k", r"C:\users\ann@example.org"] {
        assert_eq!(leaves(&text(path)).len(), 1, "{path}");
    }
}

#[test]
fn a_match_is_handed_over_once() {
    assert_eq!(count(&text("{\"a\":\"one\\nann@example.org\\u0040"), MAIL), 1);
    assert_eq!(count(&text("ann@example.org & ann%40example.org"), MAIL), 2);
    assert_eq!(count(&text("R&amp;D ann@example.org 100%25"), MAIL), 1);
    assert_eq!(count(&text("ann&amp;#64;example.org ann&#64;example.org"), MAIL), 2);
}

#[test]
fn a_number_becomes_a_number_or_null() {
    let number = |to: &str| without(&text(r#"{"id": 4711, "n": 1}"#), "4711", to);
    assert_eq!(number("[erased]"), Rewritten::New(text(r#"{"id": null, "n": 1}"#)));
    assert_eq!(number("0"), Rewritten::New(text(r#"{"id": 0, "n": 1}"#)));
    assert_eq!(without(&FetchedValue::Integer(4711), "4711", "x"), Rewritten::New(FetchedValue::Null));
}

#[test]
fn a_path_leads_through_documents_in_documents() {
    let value = json!({ "a": [{ "b": json!({ "c\n": [0, "ann"] }).to_string() }] }).to_string();
    let found = leaves(&text(&value)).into_iter().find(|(text, ..)| text == "ann").unwrap();
    assert_eq!((found.1.as_str(), found.2), ("a.0.b.c\n.1", vec![Layer::Json, Layer::Json]));
}

#[test]
fn what_cannot_be_read_is_reported() {
    let mut cut = zlib(
        &[b"ann@example.org ".repeat(500), (0..9_999).flat_map(|n: u32| n.to_string().into_bytes()).collect()].concat(),
    );
    cut.truncate(cut.len() - 8);
    let noise: Vec<u8> = (0..400_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (name, value, why) in [
        ("cut off", FetchedValue::Bytes(cut.clone()), packed::BROKEN),
        ("unknown", FetchedValue::Bytes(noise.clone()), "bytes of an unknown format"),
        ("base64 of unknown", text(&STANDARD.encode(&noise)), "bytes of an unknown format"),
    ] {
        assert_eq!(opaque(&value), [why], "{name}");
    }
    let bomb = FetchedValue::Bytes(zlib(&vec![b'a'; 80_000]));
    let limits = Limits { unpacked: 70_000, ..Limits::default() };
    let contents = read(&bomb, limits, &mut |leaf: &Leaf<'_>| assert!(leaf.text.len() <= 70_001));
    assert_eq!(contents.opaque[0].why, packed::TOO_LARGE);
    // Its readable parts are searched, but not rewritten.
    assert!(count(&FetchedValue::Bytes(cut.clone()), MAIL) > 100);
    assert_eq!(without(&FetchedValue::Bytes(cut), MAIL, "*"), Rewritten::Cannot(Layer::Zlib));
    let around = [&noise[..], b"ann@example.org", &noise[..]].concat();
    assert_eq!(count(&FetchedValue::Bytes(around.clone()), MAIL), 1);
    assert_eq!(without(&FetchedValue::Bytes(around), MAIL, "*"), Rewritten::Cannot(Layer::Binary));
}

#[test]
fn sixteen_bytes_are_read_as_a_uuid() {
    let bytes = hex::decode("9f1c02aa7b3e4d5f8a6b0011223344ff").unwrap();
    let value = FetchedValue::Bytes(bytes);
    assert_eq!(count(&value, "9f1c02aa-7b3e-4d5f-8a6b-0011223344ff"), 1);
    let done = without(&value, "9f1c02aa-7b3e-4d5f-8a6b-0011223344ff", "[erased]");
    assert_eq!(done, Rewritten::New(FetchedValue::Bytes(vec![0; 16])));
}

#[test]
fn letters_of_one_byte_and_damaged_text_are_read() {
    let latin = FetchedValue::BadText(b"Zo\xEB N\xFA\xF1ez was here".to_vec());
    assert_eq!(count(&latin, "Zoë Núñez"), 1);
    assert_eq!(without(&latin, "Zoë Núñez", "*"), Rewritten::New(text("* was here")));
    let damaged = FetchedValue::BadText("Zoë Núñez was here and there\u{FFFD}".as_bytes()[..33].to_vec());
    assert_eq!(count(&damaged, "Zoë Núñez"), 1);
    let Rewritten::New(FetchedValue::BadText(new)) = without(&damaged, "Zoë Núñez", "*") else { panic!() };
    assert!(new.starts_with(b"* was here"));
}

#[test]
fn hostile_values_end_in_time() {
    let mut nested = "x ann%40example.org".to_owned();
    for _ in 0..20 {
        nested = STANDARD.encode(&nested) + "%3D";
    }
    let mut zipped = b"ann@example.org".to_vec();
    for _ in 0..20 {
        zipped = zlib(&zipped);
    }
    let streams = [zlib(b"a"), vec![0x78, 0x9C, 0x78, 0x9C, 0xFF, 0x78]].concat().repeat(10_000);
    for value in [
        text(&"[".repeat(4 << 20)),
        text(&"{\"a\":".repeat(1 << 18)),
        text(&"%25".repeat(1 << 18)),
        text(&format!("%{}", "25".repeat(1 << 18))),
        text(&"&amp;".repeat(1 << 18)),
        text(&"\\".repeat(1 << 19)),
        text(&"eJwA".repeat(1 << 18)),
        text(&"eJwAeJwAeJwAeJwA ".repeat(1 << 16)),
        text(&nested),
        FetchedValue::Bytes(zipped),
        FetchedValue::Bytes(streams),
        FetchedValue::Bytes([0x78, 0x9C].repeat(1 << 18)),
        FetchedValue::Bytes(zlib(b"").repeat(1 << 13)),
        FetchedValue::Bytes([0x28, 0xB5, 0x2F, 0xFD].repeat(1 << 18)),
        FetchedValue::Bytes(vec![0x91; 1 << 19]),
        FetchedValue::Bytes(vec![0xDD; 1 << 19]),
        FetchedValue::Bytes([&[0xDF, 0xFF, 0xFF, 0xFF, 0xFF][..], &vec![0xC0; 1 << 19]].concat()),
        FetchedValue::Bytes([&[0x9F; 1_000][..], &vec![0xFF; 1 << 19]].concat()),
        FetchedValue::Bytes([0x0A, 0x7F].repeat(1 << 19)),
        FetchedValue::Bytes([&[0x80, 4][..], &vec![0x8C; 1 << 20], b"."].concat()),
        FetchedValue::Bytes([b"PK\x05\x06".to_vec(), vec![0xFF; 1 << 20]].concat()),
    ] {
        let begun = std::time::Instant::now();
        leaves(&value);
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }
}

/// Values written by Python libraries that agents use, with the name of their format.
fn of_python() -> Vec<(String, FetchedValue)> {
    let all: Value = serde_json::from_str(include_str!("../../../tests/data/containers.json")).unwrap();
    let bytes = |hex: &Value| FetchedValue::Bytes(hex::decode(hex.as_str().unwrap()).unwrap());
    all.as_object().unwrap().iter().map(|(name, hex)| (name.clone(), bytes(hex))).collect()
}

#[test]
fn what_other_programs_wrote_is_read() {
    for (name, value) in of_python() {
        let found = leaves(&value);
        assert!(count(&value, MAIL) >= 1, "{name}: {found:?}");
        // Only the bytes after a zero are not understood.
        let unknown = opaque(&value);
        let expected = usize::from(["msgpack", "cbor", "pickle 3", "pickle 4", "pickle 5"].contains(&name.as_str()));
        assert_eq!(unknown.len(), expected, "{name}: {unknown:?} {found:?}");
        if name == "msgpack" || name == "cbor" || name.starts_with("pickle") {
            let texts: Vec<&str> = found.iter().map(|(text, ..)| text.as_str()).collect();
            for text in ["4711", "-70000", "seven", "Zoë 漢字 😀", "key too"] {
                assert!(texts.contains(&text), "{name}: {text} in {texts:?}");
            }
        }
        if name == "msgpack" || name == "cbor" {
            let paths: Vec<&str> = found.iter().map(|(_, path, _)| path.as_str()).collect();
            for path in ["who.mail", "who.big", "list.3", "7", "ann@example.org.0"] {
                assert!(paths.contains(&path), "{name}: {path} in {paths:?}");
            }
        }
    }
}

#[test]
fn what_other_programs_wrote_is_written_again_or_left() {
    for (name, value) in of_python() {
        let done = without(&value, MAIL, "[erased]");
        let only_read = ["cbor", "pickle 0", "pickle 1", "protobuf", "zip"].iter().any(|known| name.starts_with(known));
        // If a part is not understood, nothing is rewritten.
        let only_read = only_read || ["msgpack", "pickle 3", "pickle 4", "pickle 5"].contains(&name.as_str());
        match done {
            Rewritten::New(new) if !only_read => {
                assert_eq!(count(&new, MAIL), 0, "{name}");
                assert!(count(&new, "[erased]") >= 1, "{name}");
            }
            Rewritten::Cannot(_) if only_read => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn lengths_follow_the_texts_and_neighbours_stay() {
    let long = "z".repeat(70_000);
    for (old, new) in
        [("a", "b"), ("a", &long[..40]), ("a", &long[..300]), ("a", &long[..]), (&long[..], ""), (&long[..300], "a")]
    {
        let packed = |text: &str| {
            // [1.5, {"k": text}, ext 5 of [nil, nil, text], 4711]
            let mut inner = vec![0x93, 0xC0, 0xC0];
            inner.extend(written(text));
            let mut out = vec![0x94, 0xCB, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0, 0x81, 0xA1, b'k'];
            out.extend(written(text));
            out.extend([0xC9]);
            out.extend((inner.len() as u32).to_be_bytes());
            out.push(5);
            out.extend(inner);
            out.extend([0xCD, 0x12, 0x67]);
            FetchedValue::Bytes(out)
        };
        let done = rewrite(&packed(old), Limits::default(), &mut |leaf: &Leaf<'_>| {
            if leaf.text == old { vec![Change::whole(leaf, new)] } else { Vec::new() }
        });
        let Rewritten::New(done) = done.0 else { panic!("{} to {}", old.len(), new.len()) };
        let texts =
            |raw: &FetchedValue| leaves(raw).into_iter().map(|(text, path, _)| (text, path)).collect::<Vec<_>>();
        assert_eq!(texts(&done), texts(&packed(new)), "{} to {}", old.len(), new.len());
    }
    let number = FetchedValue::Bytes(vec![0x92, 0xCD, 0x12, 0x67, 1]);
    assert_eq!(without(&number, "4711", "x"), Rewritten::New(FetchedValue::Bytes(vec![0x92, 0xC0, 1])));
}

/// A text in `MessagePack`, in its shortest form.
fn written(text: &str) -> Vec<u8> {
    let length = text.len();
    let mut out = match length {
        0..32 => vec![0xA0 | length as u8],
        32..256 => vec![0xD9, length as u8],
        256..65_536 => [&[0xDA], &(length as u16).to_be_bytes()[..]].concat(),
        _ => [&[0xDB], &(length as u32).to_be_bytes()[..]].concat(),
    };
    out.extend_from_slice(text.as_bytes());
    out
}

/// Removes the elements that are one word from a document.
struct Dropped;

impl Visitor for Dropped {
    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change> {
        if leaf.text == "ann" { vec![Change::whole(leaf, "*")] } else { Vec::new() }
    }

    fn document(&mut self, text: &str) -> Option<String> {
        text.contains(r#","gone""#).then(|| text.replace(r#","gone""#, ""))
    }
}

#[test]
fn a_document_can_be_replaced_before_its_texts_are_visited() {
    let document = r#"{"a":["ann","gone"],"b":"x"}"#;
    let left = r#"{"a":["*"],"b":"x"}"#;
    let done = |raw: &FetchedValue| rewrite(raw, Limits::default(), &mut Dropped).0;
    assert_eq!(done(&text(document)), Rewritten::New(text(left)));
    assert_eq!(
        done(&FetchedValue::Bytes(zlib(document.as_bytes()))),
        Rewritten::New(FetchedValue::Bytes(zlib(left.as_bytes())))
    );
    let nested = |inner: &str| text(&json!({ "n": inner }).to_string());
    assert_eq!(done(&nested(document)), Rewritten::New(nested(left)));
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = "[a-zA-Zéß漢\"\\\\/&%<> \n\t{}\\[\\]@.]{0,12}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word, inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Every text of a JSON value, including keys.
fn strings(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(object) => object.iter().for_each(|(key, item)| {
            all.push(key.clone());
            strings(item, all);
        }),
        _ => {}
    }
}

fn replaced(value: &Value, word: &str, by: &str) -> Value {
    match value {
        Value::String(text) => text.replace(word, by).into(),
        Value::Array(items) => items.iter().map(|item| replaced(item, word, by)).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, item)| (key.replace(word, by), replaced(item, word, by))).collect()
        }
        other => other.clone(),
    }
}

fn planted(value: &Value) -> Value {
    json!({ "first": [value, 1.10], "who": { "NEEDLE key": "a \"NEEDLE\" é" }, "last": value })
}

/// Parts of bare texts, and parts that make others: encoded words, escapes, letters beyond ASCII.
fn bare_part() -> impl Strategy<Value = String> {
    let fixed = [
        " ",
        "\n",
        "\"",
        "{",
        "]",
        ",",
        "canvas_action_count",
        "1f0c9d2e-77aa-4b6e-9c10-0aa1b2c3d4e5",
        "x",
        "(",
        "a=b+c",
        "%41",
        "&amp;",
        "\\u0041",
        "\\n",
        "\0",
        "YW5uYUBleGFtcGxlLm9yZw==",
        "616e6e61406578616d706c652e6f7267",
        "\u{e9}",
        "\u{1f}\u{8b}",
        "x\u{9c}",
        "(S",
        "(\u{b5}/\u{fd}",
        "日本",
        "\u{1f}",
        "e\u{301}",
        "A & B; 5 % of",
        "\\x616e6e61",
        "12345678901234567890",
    ];
    prop_oneof![prop::sample::select(fixed.to_vec()).prop_map(str::to_owned), "[a-z@. ]{0,12}", any::<String>()]
}

proptest! {
    #[test]
    fn each_text_of_a_bare_one_stands_in_it(parts in prop::collection::vec(bare_part(), 0..8), document in any::<bool>()) {
        let joined = parts.concat();
        let text = if document { json!({ "id": joined, "list": parts, "n": 12 }).to_string() } else { joined };
        if is_bare(&text) {
            let raw = FetchedValue::Text(text.clone());
            let contents = read(&raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
                assert!(text.contains(leaf.text), "{} of {text}", leaf.text);
                assert!(leaf.layers.iter().all(|layer| *layer == Layer::Json), "{:?} of {text}", leaf.layers);
            });
            prop_assert_eq!(contents, Contents::default());
        }
    }

    #[test]
    fn every_text_of_a_document_is_a_leaf(value in any_json()) {
        let value = planted(&value);
        let mut expected = Vec::new();
        strings(&value, &mut expected);
        for raw in [text(&value.to_string()), text(&format!("{value:#}")), FetchedValue::Bytes(zlib(value.to_string().as_bytes()))] {
            let found: Vec<String> = leaves(&raw).into_iter().map(|(text, ..)| text).collect();
            for text in &expected {
                // A text that is itself a document is decomposed.
                prop_assert!(found.contains(text) || json::is_document(text), "{:?} in {:?}", text, found);
            }
        }
    }

    #[test]
    fn a_change_in_a_document_changes_nothing_else(value in any_json()) {
        let value = planted(&value);
        let expected = replaced(&value, "NEEDLE", "a \"quoted\"\n\\ mark ü");
        let stored = text(&format!("{value:#}"));
        let Rewritten::New(FetchedValue::Text(new)) = without(&stored, "NEEDLE", "a \"quoted\"\n\\ mark ü") else { panic!() };
        prop_assert_eq!(serde_json::from_str::<Value>(&new).unwrap(), expected);
        prop_assert_eq!(without(&text(&new), "a \"quoted\"\n\\ mark ü", "NEEDLE"), Rewritten::New(stored));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), packed in 0..9_usize, at in 0..300_usize) {
        // Random bytes, the same compressed, and a document of another program with some bytes replaced.
        let bytes = match of_python().into_iter().nth(packed * 2) {
            Some((_, FetchedValue::Bytes(mut whole))) if packed > 1 => {
                let at = at % whole.len();
                let end = whole.len().min(at + bytes.len() % 4);
                whole[at..end].copy_from_slice(&bytes[..end - at]);
                whole
            }
            _ if packed == 1 => zlib(&bytes),
            _ => bytes,
        };
        for raw in [FetchedValue::Bytes(bytes.clone()), FetchedValue::BadText(bytes.clone())] {
            let done = without(&raw, "a", "b");
            if let Rewritten::New(new) = done {
                leaves(&new);
            }
        }
        leaves(&FetchedValue::Text(String::from_utf8_lossy(&bytes).into_owned()));
    }

    #[test]
    fn any_text_is_survived(text in r#"[\\u0-9a-fx{}\[\]"',:%&#;+=A-Za-z \n]{0,80}"#) {
        let raw = FetchedValue::Text(text);
        leaves(&raw);
        without(&raw, "a", "\"\\%&");
    }
}

#[test]
fn a_pickle_is_written_again_with_its_frames_and_a_class_keeps_its_name() {
    // pickle.dumps({"note": "ann@example.org", "n": 7}, 4) of Python, and the same of the other text.
    let pickle = |frame: &str, text: &str| {
        let bytes = format!("800495{frame}000000000000007d94288c046e6f7465948c{text}948c016e944b07752e");
        FetchedValue::Bytes(hex::decode(bytes).unwrap())
    };
    let old = pickle("24", "0f616e6e406578616d706c652e6f7267");
    assert_eq!(without(&old, MAIL, "[erased]"), Rewritten::New(pickle("1d", "085b6572617365645d")));
    // A class of a module with the person's name.
    let class = b"\x80\x04\x8c\x0fann@example.org\x94\x8c\x01C\x94\x93\x94)\x81.".to_vec();
    assert!(matches!(without(&FetchedValue::Bytes(class), MAIL, "x"), Rewritten::Cannot(Layer::Pickle)));
}

#[test]
fn what_stands_in_pieces_or_beside_the_contents_is_found() {
    let mail = "dmitri@omalley.example";
    let pieces = [&[0xBF, 0x61, b'a', 0x7F, 0x66][..], b"dmitri", &[0x70], b"@omalley.example", &[0xFF, 0xFF]].concat();
    let mut member =
        flate2::GzBuilder::new().filename("dmitri@omalley.example").write(Vec::new(), Compression::default());
    member.write_all(b"nothing here").unwrap();
    let member = FetchedValue::Bytes(member.finish().unwrap());
    let units = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let long = |text: &str| text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect::<Vec<u8>>();
    for (name, value) in [
        ("pieces of a CBOR text", FetchedValue::Bytes(pieces)),
        ("the header of a gzip member", member.clone()),
        ("UTF-16 behind one byte", FetchedValue::Bytes([&[1][..], &units(mail)].concat())),
        (
            "UTF-16 between other bytes",
            FetchedValue::Bytes([&[0xFF, 0xC0, 0x81][..], &units(mail), &[0xFF; 40]].concat()),
        ),
        ("UTF-32", FetchedValue::Bytes(long(mail))),
        ("UTF-16 stored as a text", FetchedValue::Text(String::from_utf8(units(mail)).unwrap())),
        ("hex of UTF-16 with a mark", text(&hex::encode([&[0xFF, 0xFE][..], &units(mail)].concat()))),
        ("base64 of UTF-16 of two scripts", text(&STANDARD.encode(units("“请联系dmitri@omalley.example谢谢”")))),
        (
            "hex of a message of LangGraph",
            text(&hex::encode([&[0x81, 0xA1, b'm', 0xC7, 24, 5, 0x91, 0xB6][..], mail.as_bytes()].concat())),
        ),
        (
            "base64 of gzip in MessagePack",
            text(&STANDARD.encode(
                [&[0x81, 0xA1, b'm', 0xC4, gzip(mail.as_bytes()).len() as u8][..], &gzip(mail.as_bytes())].concat(),
            )),
        ),
        ("named characters", text("dmitri&commat;omalley&period;example")),
        ("named characters of JSON", text(r#"{"a":"dmitri&commat;omalley&period;example"}"#)),
    ] {
        assert_eq!(count(&value, mail), 1, "{name}");
    }
    let Rewritten::New(renamed) = without(&member, mail, "[erased]") else { panic!("not written") };
    assert_eq!(count(&renamed, "nothing here"), 1);
    assert_eq!(count(&renamed, mail), 0);
    assert_eq!(without(&text("dmitri&commat;omalley&period;example"), mail, "x"), Rewritten::New(text("x")));
    let name = "\u{414}\u{43c}\u{438}\u{442}\u{440}\u{438}\u{439} \u{418}\u{432}\u{430}\u{43d}\u{43e}\u{432}";
    assert_eq!(count(&FetchedValue::Bytes([&[1][..], &units(name)].concat()), name), 1);
}
