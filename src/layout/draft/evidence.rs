//! Findings about the sampled values of a column.

use std::collections::HashSet;

use serde_json::Value;

use super::document::{SampledDocument, is_time};
use super::names;
use super::{Sample, SampledColumn};
use crate::layout::Engine;
use crate::memory::vector::read_floats;

/// Seconds from 2000 to 2100.
const SECONDS: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;

/// Format of the times in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// In a type of times.
    Typed,
    /// As text that names its zone.
    Zoned,
    /// As text without a zone.
    Naive,
    /// In seconds since 1970.
    Seconds,
    /// In milliseconds since 1970.
    Millis,
}

impl Clock {
    /// Description in words.
    pub fn words(self) -> &'static str {
        match self {
            Clock::Typed => "a type of times",
            Clock::Zoned => "times as text with a zone",
            Clock::Naive => "times as text without a zone (taken as UTC)",
            Clock::Seconds => "seconds since 1970",
            Clock::Millis => "milliseconds since 1970",
        }
    }

    /// The layout's word for it, if it needs one.
    pub fn stored(self) -> Option<&'static str> {
        match self {
            Clock::Seconds => Some("epoch"),
            Clock::Millis => Some("epoch-millis"),
            _ => None,
        }
    }
}

/// Kind of values in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueShape {
    /// No values were sampled.
    Empty,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
    /// Times.
    Time(Clock),
    /// Texts.
    Text,
    /// JSON strings, quotes and all.
    Quoted,
    /// JSON objects and lists.
    Document(SampledDocument),
    /// Vectors of that many numbers.
    Vector(usize),
    /// Bytes that are not text.
    Packed,
}

/// Known facts about a column, from its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Kind of the column's values.
    pub shape: ValueShape,
    /// Sampled rows with a value.
    pub filled: usize,
    /// Sampled rows.
    pub of: usize,
    /// Different texts.
    pub distinct: usize,
    /// Letters of a text on average.
    pub letters: usize,
    /// Texts with a blank.
    pub blanks: usize,
    /// Texts that are or contain an e-mail address.
    pub mails: usize,
    /// Version of the time-ordered UUIDs in it: 6 or 7.
    pub uuid: Option<u8>,
    /// For texts made of parts, one of which several texts share: the separator, and the position of that part from 0.
    pub parted: Option<(char, usize)>,
    /// The same if every text has a word such as `users` before a person's name.
    pub led: Option<(char, usize)>,
    /// All texts are roles in a conversation.
    pub roles: bool,
}

impl Evidence {
    /// Examines the samples of a column.
    pub fn of(column: &SampledColumn, engine: Engine) -> Evidence {
        let values: Vec<&Sample> = column.values.iter().filter(|v| **v != Sample::Null).collect();
        let texts: Vec<&str> = values.iter().filter_map(|v| text(v)).collect();
        let letters: usize = texts.iter().map(|t| t.chars().count()).sum();
        Evidence {
            shape: shape(column, engine, &values, &texts),
            filled: values.len(),
            of: column.values.len(),
            distinct: texts.iter().collect::<HashSet<_>>().len(),
            letters: letters.checked_div(texts.len()).unwrap_or(0),
            blanks: texts.iter().filter(|t| t.trim().contains(' ')).count(),
            mails: texts.iter().filter(|t| t.len() < 200 && holds_mail(t)).count(),
            uuid: uuid_version(&texts),
            parted: parted(&texts),
            led: led(&texts),
            roles: texts.iter().all(|t| names::is_role(t)),
        }
    }

    /// Whether most texts have several words.
    pub fn is_prose(&self) -> bool {
        matches!(self.shape, ValueShape::Text | ValueShape::Quoted)
            && self.letters >= 12
            && self.blanks * 2 >= self.filled
    }

    /// Whether its texts are single words or names.
    pub fn is_word(&self) -> bool {
        matches!(self.shape, ValueShape::Text) && self.letters <= 64 && self.blanks * 2 <= self.filled
    }

    /// Description in words, for a comment.
    pub fn words(&self) -> String {
        let what = match &self.shape {
            ValueShape::Empty => return "no value was sampled".to_owned(),
            ValueShape::Whole => "whole numbers".to_owned(),
            ValueShape::Real => "numbers".to_owned(),
            ValueShape::Time(clock) => clock.words().to_owned(),
            ValueShape::Text => format!("texts, {} different, {} letters on average", self.distinct, self.letters),
            ValueShape::Quoted => "JSON strings with their quotes".to_owned(),
            ValueShape::Document(document) => {
                let paths: Vec<&str> = document.leaves.keys().take(6).map(String::as_str).collect();
                format!("JSON: {}", paths.join(", "))
            }
            ValueShape::Vector(width) => format!("vectors of {width} numbers"),
            ValueShape::Packed => "bytes that are neither text nor JSON".to_owned(),
        };
        format!("{what}; {} of {} sampled rows have one", self.filled, self.of)
    }
}

/// Separators between the parts of a text.
const APART: [char; 4] = [':', '/', '|', '#'];

/// Finds the separator of texts such as `users/ann/facts`, if in all of them a word leads to a person's name, and the
/// position of the name.
fn led(texts: &[&str]) -> Option<(char, usize)> {
    let leads = |apart: char, place: usize| {
        texts.iter().all(|text| {
            let mut parts = text.split(apart).skip(place);
            parts.next().is_some_and(names::leads_to_person) && parts.next().is_some_and(|name| !name.is_empty())
        })
    };
    let found = |apart: char| Some((apart, (0..2).find(|place| leads(apart, *place))? + 1));
    APART.into_iter().chain(['.']).filter(|_| !texts.is_empty()).find_map(found)
}

/// Finds the separator of texts such as `ann:3`, and the position of the part that several of them share, which may be
/// a person.
fn parted(texts: &[&str]) -> Option<(char, usize)> {
    let whole: HashSet<&str> = texts.iter().copied().collect();
    let shares = |apart: char, place: usize| {
        let parts: Option<HashSet<&str>> = whole.iter().map(|text| text.split(apart).nth(place)).collect();
        parts.is_some_and(|parts| {
            let is_name = |part: &&str| part.len() > 1 && part.chars().any(char::is_alphabetic);
            parts.len() > 1 && parts.len() * 2 <= whole.len() && parts.iter().all(is_name)
        })
    };
    let is_short = whole.iter().all(|text| text.len() <= 200 && !text.contains([' ', '{']));
    APART.into_iter().filter(|_| is_short).find_map(|apart| Some((apart, (0..3).find(|place| shares(apart, *place))?)))
}

fn text(value: &Sample) -> Option<&str> {
    match value {
        Sample::Text(text) => Some(text),
        Sample::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn shape(column: &SampledColumn, engine: Engine, values: &[&Sample], texts: &[&str]) -> ValueShape {
    let declared = column.declared.as_str();
    if let Some(inner) = ["vector(", "halfvec("].iter().find_map(|word| declared.split_once(word)) {
        return ValueShape::Vector(inner.1.trim_end_matches(')').parse().unwrap_or(0));
    }
    let is_typed = declared.starts_with("timestamp") || declared == "date" || declared == "datetime";
    if is_typed && (engine == Engine::Postgres || values.is_empty()) {
        return ValueShape::Time(Clock::Typed);
    }
    if values.is_empty() {
        return ValueShape::Empty;
    }
    if let Some(numbers) = numbers(values) {
        return of_numbers(&column.name, values, &numbers);
    }
    if let Some(width) = float_width(values) {
        return ValueShape::Vector(width);
    }
    if most(texts.len(), values.len()) { of_texts(texts) } else { ValueShape::Packed }
}

fn of_numbers(name: &str, values: &[&Sample], numbers: &[f64]) -> ValueShape {
    if names::is_time(name) && numbers.iter().all(|x| SECONDS.contains(x)) {
        return ValueShape::Time(Clock::Seconds);
    }
    if names::is_time(name) && numbers.iter().all(|x| SECONDS.contains(&(x / 1000.0))) {
        return ValueShape::Time(Clock::Millis);
    }
    if values.iter().all(|v| matches!(v, Sample::Integer(_))) { ValueShape::Whole } else { ValueShape::Real }
}

fn of_texts(texts: &[&str]) -> ValueShape {
    let times = texts.iter().filter(|t| is_time(t)).count();
    if most(times, texts.len()) {
        let zoned = texts
            .iter()
            .filter(|t| t.get(10..).is_some_and(|rest| rest.ends_with('Z') || rest.contains(['+', '-'])))
            .count();
        return ValueShape::Time(if most(zoned, texts.len()) { Clock::Zoned } else { Clock::Naive });
    }
    let (mut document, mut quoted, mut cut) = (SampledDocument::default(), 0, 0);
    let mut widths = HashSet::new();
    let mut lists = 0;
    for text in texts {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::String(_)) => quoted += 1,
            Ok(Value::Array(list)) if list.len() >= 8 && list.iter().all(Value::is_number) => {
                lists += 1;
                widths.insert(list.len());
            }
            Ok(value @ (Value::Object(_) | Value::Array(_))) => document.add(&value),
            // A null written as JSON.
            Ok(Value::Null) => cut += 1,
            Err(_) if text.starts_with(['{', '[']) && text.len() >= super::CUT => cut += 1,
            _ => {}
        }
    }
    if cut == texts.len() {
        return ValueShape::Empty;
    }
    let leaves = document.leaves.values().map(|l| l.rows).max().unwrap_or(0);
    let documents = leaves.max(document.objects + document.text_lists) + cut;
    if lists > 0 && most(lists, texts.len()) && widths.len() == 1 {
        return ValueShape::Vector(widths.into_iter().next().unwrap_or(0));
    }
    if quoted > 0 && most(quoted + cut, texts.len()) {
        return ValueShape::Quoted;
    }
    if documents > cut && most(documents, texts.len()) {
        return ValueShape::Document(document);
    }
    ValueShape::Text
}

fn most(some: usize, all: usize) -> bool {
    some * 5 >= all * 4 && all > 0
}

fn numbers(values: &[&Sample]) -> Option<Vec<f64>> {
    let number = |value: &&Sample| match value {
        Sample::Integer(i) => Some(*i as f64),
        Sample::Real(x) => Some(*x),
        _ => None,
    };
    values.iter().map(number).collect()
}

/// Returns the number of 32-bit floats in each value, if all values consist of the same number of them.
fn float_width(values: &[&Sample]) -> Option<usize> {
    let mut width = None;
    for value in values {
        let Sample::Bytes(bytes) = value else { return None };
        let mut floats = Vec::new();
        if bytes.len() < 32 || width.is_some_and(|w| w != bytes.len()) || !read_floats(bytes, &mut floats) {
            return None;
        }
        width = Some(bytes.len());
        let is_part = |x: &f32| *x == 0.0 || (x.is_finite() && (1e-12..1e4).contains(&x.abs()));
        if !floats.iter().all(is_part) {
            return None;
        }
    }
    width.map(|bytes| bytes / 4)
}

fn holds_mail(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || ",;<>()=&\"'".contains(c)).any(|word| {
        word.split_once('@').is_some_and(|(who, at)| {
            !who.is_empty() && at.split('.').count() >= 2 && at.split('.').all(|part| !part.is_empty())
        })
    })
}

/// The version of the UUIDs if all texts are UUIDs of one time-ordered version.
fn uuid_version(texts: &[&str]) -> Option<u8> {
    let version = |text: &&str| {
        let dashes = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        let hex = text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
        match text.as_bytes().get(14) {
            Some(b'6') if text.len() == 36 && dashes && hex => Some(6),
            Some(b'7') if text.len() == 36 && dashes && hex => Some(7),
            _ => None,
        }
    };
    let first = version(texts.first()?)?;
    texts.iter().all(|text| version(text) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(name: &str, values: Vec<Sample>) -> Evidence {
        Evidence::of(&SampledColumn { name: name.to_owned(), declared: String::new(), values }, Engine::Sqlite)
    }

    fn texts(texts: &[&str]) -> Vec<Sample> {
        texts.iter().map(|t| Sample::Text((*t).to_owned())).collect()
    }

    #[test]
    fn numbers_are_times_only_under_the_name_of_one() {
        let values = || vec![Sample::Integer(1_772_461_855), Sample::Integer(1_795_314_618)];
        assert_eq!(evidence("created_at", values()).shape, ValueShape::Time(Clock::Seconds));
        assert_eq!(evidence("tokens_used", values()).shape, ValueShape::Whole);
        let millis = vec![Sample::Integer(1_795_314_834_528)];
        assert_eq!(evidence("created_at_epoch", millis).shape, ValueShape::Time(Clock::Millis));
    }

    #[test]
    fn texts_are_told_from_json_and_times() {
        assert_eq!(
            evidence("a", texts(&["2026-11-22 02:30:14", "2026-11-22 02:30"])).shape,
            ValueShape::Time(Clock::Naive)
        );
        assert_eq!(evidence("a", texts(&["2026-11-22T02:30:14+01:00"])).shape, ValueShape::Time(Clock::Zoned));
        let mostly = [&["2026-11-22T02:30:14Z"; 4][..], &["aéééééé"]].concat();
        assert_eq!(evidence("a", texts(&mostly)).shape, ValueShape::Time(Clock::Zoned));
        assert_eq!(evidence("a", texts(&["\"one\"", "null"])).shape, ValueShape::Quoted);
        assert!(matches!(evidence("a", texts(&["{\"a\":1}", "[\"x\"]"])).shape, ValueShape::Document(_)));
        assert_eq!(evidence("a", texts(&["[1", "1"])).shape, ValueShape::Text);
        assert_eq!(evidence("a", texts(&["1f1e61ca-7136-67f9-bfff-247d82c8ff97"])).uuid, Some(6));
    }

    #[test]
    fn bytes_are_floats_where_all_are() {
        let floats: Vec<u8> = (1_u8..=16).flat_map(|i| (f32::from(i) / 16.0).to_le_bytes()).collect();
        assert_eq!(evidence("e", vec![Sample::Bytes(floats)]).shape, ValueShape::Vector(16));
        assert_eq!(evidence("e", vec![Sample::Bytes(vec![0x87, 0xa1, 0x76, 0x04])]).shape, ValueShape::Packed);
    }
}
