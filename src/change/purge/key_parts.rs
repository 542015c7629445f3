//! Parts of a key, such as `prefs:ann` or `memories.ann.s1`, that mean the person, and the key with those parts
//! renamed.

use super::hit::{ByteFind, Hit};
use super::subject::PersonHandle;
use crate::memory::mention::Certainty;
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;

/// Characters that may separate the pieces of a key, or belong to a longer id. Any other punctuation separates.
const LOOSE: &[u8] = b"._-@";
/// Columns whose values are dotted paths.
const PATHS: [&str; 2] = ["prefix", "namespace"];
/// Characters of a pseudonym with the number that may follow it.
const PSEUDONYM: usize = 48;
/// Shortest id, in characters, that is distinctive within a key.
const TELLING: usize = 5;

/// A part of a key that names the person.
#[derive(Debug, Clone)]
pub(super) struct PersonKeyPart {
    pub table: TableName,
    pub by: Vec<String>,
    pub key: Vec<FetchedValue>,
    pub column: String,
    pub raw: FetchedValue,
    pub hits: Vec<Hit>,
    pub declared: String,
}

/// The hits that are a whole key or a part of one. The id of a deleted row counts only as a whole.
pub fn parts(value: &[u8], mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.retain(|hit| matches!(hit.what, ByteFind::Handle(_)) || beside(value, hit) == (None, None));
    hits
}

fn beside<'v>(value: &'v [u8], hit: &Hit) -> (Option<&'v u8>, Option<&'v u8>) {
    (hit.start.checked_sub(1).and_then(|at| value.get(at)), value.get(hit.end))
}

/// Whether an id is an entire value, or an entire element of a list or a document. Within a longer id, it means something
/// else.
pub fn is_item(value: &[u8], hit: &Hit) -> bool {
    let (Some(before), Some(after)) = beside(value, hit) else { return beside(value, hit) == (None, None) };
    let is_number = value[hit.start..hit.end].iter().all(u8::is_ascii_digit);
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'\\');
    let parts = |b: &u8| matches!(b, b',' | b'[' | b']' | b'{' | b'}' | b':') || is_number && b.is_ascii_whitespace();
    let is_list = value.trim_ascii_start().starts_with(b"[") || value.trim_ascii_start().starts_with(b"{");
    is_list && (is_quote(before) && is_quote(after) || parts(before) && parts(after))
}

/// Rates how certain it is that a part of a key means the person. A dot may be part of an id: `ann.k` is someone else,
/// as are further letters and digits.
pub fn certainty(column: &str, value: &[u8], hits: &[Hit]) -> Certainty {
    let path = PATHS.contains(&column);
    let sure = |hit: &Hit| {
        let (before, after) = beside(value, hit);
        let id = value.get(hit.start..hit.end).unwrap_or_default();
        if id.len() < TELLING || id.iter().all(u8::is_ascii_digit) || hit.is_common() {
            return before.is_none() && after.is_none();
        }
        let parted = |b: u8| path && b == b'.' || !LOOSE.contains(&b) && !b.is_ascii_alphanumeric();
        let ends = |beside: Option<&u8>| beside.is_none_or(|b| parted(*b));
        let between = ends(before) && ends(after) || before == Some(&b'.') && after == Some(&b'.');
        between && hit.certainty.is_certain()
    };
    if hits.iter().any(sure) { Certainty::Certain } else { Certainty::Possible("it may be part of another id") }
}

/// Renames the person in a key. Returns the text before, between and after the names.
///
/// # Errors
/// The reason why the key cannot be renamed.
pub fn renamed(
    declared: &str,
    raw: &FetchedValue,
    value: &[u8],
    hits: &[Hit],
    handles: &[&PersonHandle],
) -> Result<Vec<String>, &'static str> {
    let FetchedValue::Text(text) = raw else { return Err("a key that is not text cannot be renamed") };
    let lower = declared.to_ascii_lowercase();
    if hits.is_empty() {
        return Err("its value is encoded, and other rows may refer to it");
    }
    if lower.contains('[')
        || !lower.is_empty() && !["char", "text", "clob", "string", "json"].iter().any(|t| lower.contains(t))
    {
        return Err("the type of the key does not accept a pseudonym");
    }
    let left = value.len() - hits.iter().map(|hit| hit.end - hit.start).sum::<usize>();
    let room = lower.split_once('(').and_then(|(_, rest)| rest.trim_end_matches(')').parse::<usize>().ok());
    if room.is_some_and(|room| left + hits.len() * PSEUDONYM > room) {
        return Err("the key is too short for a pseudonym");
    }
    let mut pieces = Vec::new();
    let (mut at, mut number) = (0, String::new());
    for hit in hits {
        pieces.push(number + text.get(at..hit.start).unwrap_or_default());
        number = numbered(hit, value, handles);
        at = hit.end;
    }
    pieces.push(number + text.get(at..).unwrap_or_default());
    Ok(pieces)
}

/// Delimits the placeholder of a name until the pseudonym is known. It has letters only, which no encoding escapes.
pub const BLANK: &str = "qZnameZq";

/// The text with each of these hits replaced by a placeholder that contains the hit's number.
pub fn blanked(text: &str, hits: &[Hit]) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (n, hit) in hits.iter().enumerate() {
        new.extend([text.get(at..hit.start).unwrap_or_default(), BLANK, &n.to_string(), BLANK]);
        at = hit.end;
    }
    new + text.get(at..).unwrap_or_default()
}

/// The pieces of a text around its remaining placeholders. `old` is the text in which `hits` were found.
pub fn pieces(text: &str, hits: &[Hit], old: &str, handles: &[&PersonHandle]) -> Vec<String> {
    let mut parts = text.split(BLANK);
    let mut pieces = vec![parts.next().unwrap_or_default().to_owned()];
    while let (Some(n), Some(after)) = (parts.next(), parts.next()) {
        let hit = n.parse::<usize>().ok().and_then(|n| hits.get(n));
        pieces.push(hit.map(|hit| numbered(hit, old.as_bytes(), handles)).unwrap_or_default() + after);
    }
    pieces
}

/// Suffix of the pseudonym for a hit: it differs by handle and by spelling, so that two keys do not become one.
fn numbered(hit: &Hit, value: &[u8], handles: &[&PersonHandle]) -> String {
    let ByteFind::Handle(n) = hit.what else { return String::new() };
    let number = if n > 0 { format!("-{n}") } else { String::new() };
    let written = value.get(hit.start..hit.end).unwrap_or_default();
    if handles.get(n).is_none_or(|handle| handle.value.as_bytes() == written) {
        return number;
    }
    // Has too few bits to reveal the spelling.
    let sum = written.iter().fold(0_u32, |sum, byte| (sum * 31 + u32::from(*byte)) % 997);
    format!("{number}v{sum}")
}

/// Returns the hit with the text around it up to a blank, a comma, a quotation mark, a bracket or a backslash: the item, if
/// the text is a list.
pub fn token(text: &[u8], hit: &Hit) -> Hit {
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b',' | b'[' | b']' | b'{' | b'}' | b'\\');
    let start = text[..hit.start].iter().rposition(ends).map_or(0, |at| at + 1);
    let end = text[hit.end..].iter().position(ends).map_or(text.len(), |at| hit.end + at);
    Hit { start, end, ..*hit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(column: &str, key: &str, id: &str) -> bool {
        let start = key.find(id).expect("it is there");
        let hit = Hit { what: ByteFind::Handle(0), start, end: start + id.len(), certainty: Certainty::Certain };
        certainty(column, key.as_bytes(), &parts(key.as_bytes(), vec![hit])) == Certainty::Certain
    }

    #[test]
    fn a_part_of_a_key_is_the_person_and_a_part_of_a_longer_id_may_be() {
        for (column, key, id, expected) in [
            ("id", "prefs:dmitri.omalley", "dmitri.omalley", true),
            ("id", "mem:dmitri.omalley:7", "dmitri.omalley", true),
            ("id", "memories.johnsmith.s1", "johnsmith", true),
            ("prefix", "johnsmith.profile", "johnsmith", true),
            ("id", "johnsmith.k", "johnsmith", false),
            ("prefix", "memories.hiro-t.s1", "hiro", false),
            ("id", "user_johnsmith", "johnsmith", false),
            ("id", "xjohnsmith", "johnsmith", false),
            ("id", "johnsmith2", "johnsmith", false),
            ("id", "[\"users\", \"johnsmith\"]", "johnsmith", true),
            ("id", "('users', 'johnsmith')", "johnsmith", true),
            ("id", "a note for johnsmith", "johnsmith", true),
            ("id", "请联系johnsmith谢谢", "johnsmith", true),
        ] {
            assert_eq!(of(column, key, id), expected, "{id} in {key}");
        }
    }

    #[test]
    fn an_id_within_a_longer_one_is_no_item() {
        for (value, expected) in [
            ("run-0001", true),
            (r#"["a", "run-0001"]"#, true),
            (r#"{"id": "run-0001"}"#, true),
            (r#""[\"run-0001\"]""#, false),
            (r#"[[\"run-0001\"]]"#, true),
            ("{a,run-0001}", true),
            ("shared-run-0001", false),
            ("team/run-0001", false),
            ("user run-0001", false),
            (r#"["user run-0001"]"#, false),
            (r#"["user run-0001 x"]"#, false),
            (r#"["team/run-0001"]"#, false),
        ] {
            let start = value.find("run").expect("it is there");
            let hit = Hit { what: ByteFind::Row, start, end: start + 8, certainty: Certainty::Certain };
            assert_eq!(is_item(value.as_bytes(), &hit), expected, "{value}");
        }
    }

    #[test]
    fn a_key_is_renamed_in_its_place_each_handle_by_a_name_of_its_own() {
        let hit = |n, start, end| Hit { what: ByteFind::Handle(n), start, end, certainty: Certainty::Certain };
        let handle = |value: &str| PersonHandle {
            kind: "id".into(),
            value: value.into(),
            source: "".into(),
            unsearched: None,
            common: None,
        };
        let handles = ["ann", "x", "ann@x.org"].map(handle);
        let handles: Vec<&PersonHandle> = handles.iter().collect();
        let of = |value: &str, declared: &str| {
            renamed(
                declared,
                &FetchedValue::Text(value.into()),
                value.as_bytes(),
                &[hit(0, 2, 5), hit(2, 6, 15)],
                &handles,
            )
        };
        let pieces = of("a:ann:ann@x.org", "TEXT");
        assert_eq!(pieces, Ok(vec!["a:".to_owned(), ":".to_owned(), "-2".to_owned()]));
        assert_ne!(of("a:ANN:ann@x.org", "TEXT"), pieces);
        assert!(of("a:ann:ann@x.org", "varchar(20)").is_err());
    }
}
