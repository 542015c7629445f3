//! The parser for lenient JSON: recursive to a bounded depth, linear in the text.

use serde_json::{Map, Number, Value};

use super::{JsonReading, MAX_DEPTH};

/// Bytes from which the length of a list is estimated first.
const LONG: usize = 1 << 20;

/// Treatment of a number beyond 64 bits and the range of a double.
#[derive(Clone, Copy)]
pub(super) enum WideNumber {
    /// A string of its digits.
    Digits,
    /// Null.
    Null,
}

/// Reads one text; the rules are those of [`super::read`].
pub(super) fn read_with(text: &str, wide: WideNumber) -> JsonReading {
    let mut reader =
        JsonReader { text, bytes: text.as_bytes(), at: 0, depth: 0, wide, oddities: Vec::new(), repeated: None };
    match reader.document() {
        Ok(value) => JsonReading {
            value,
            problems: reader.oddities.iter().map(Oddity::words).collect(),
            repeated: reader.repeated.as_ref().map(Oddity::words),
        },
        Err(failure) => JsonReading { problems: vec![failure.words(text)], ..JsonReading::default() },
    }
}

/// A deviation from strict JSON, with its first position and its count: a text may have a million of them.
struct Oddity {
    what: &'static str,
    first: usize,
    count: usize,
}

impl Oddity {
    fn words(&self) -> String {
        let Oddity { what, first, count } = self;
        match count {
            1 => format!("{what} at byte {first}"),
            _ => format!("{what}, {count} times, first at byte {first}"),
        }
    }
}

/// Reason why nothing could be read, and its place.
struct JsonFailure {
    what: &'static str,
    at: usize,
}

impl JsonFailure {
    fn words(&self, text: &str) -> String {
        let rest = text.get(self.at..).unwrap_or_default();
        let python = ["'", "None", "True", "False", "(", "u'", "b'"].iter().any(|p| rest.starts_with(p));
        let hint = if python { " (looks like Python)" } else { "" };
        format!("not JSON: {} at byte {}{hint}", self.what, self.at)
    }
}

type Step<T> = Result<T, JsonFailure>;

struct JsonReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    wide: WideNumber,
    oddities: Vec<Oddity>,
    /// Repeated keys, which strict JSON allows.
    repeated: Option<Oddity>,
}

impl<'a> JsonReader<'a> {
    fn document(&mut self) -> Step<Value> {
        self.skip_space();
        if self.peek().is_none() {
            return self.fail("the text is empty");
        }
        let value = self.value()?;
        self.skip_space();
        match self.peek() {
            None => Ok(value),
            Some(_) => self.fail("there is data after the value"),
        }
    }

    fn value(&mut self) -> Step<Value> {
        match self.peek() {
            Some(b'{' | b'[') if self.depth == MAX_DEPTH => self.raw_container(),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'N') => self.not_a_number("NaN"),
            Some(b'I') => self.not_a_number("Infinity"),
            Some(_) => self.fail("a value is missing"),
            None => self.fail("the text ends early"),
        }
    }

    fn nested(&mut self, container: fn(&mut Self) -> Step<Value>) -> Step<Value> {
        self.depth += 1;
        self.at += 1;
        let value = container(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Step<Value> {
        let mut elements = Vec::with_capacity(self.expected());
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            self.skip_space();
            elements.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(elements));
            }
            self.expect(b',', "a comma or ] is missing")?;
        }
    }

    /// Approximate number of texts in a long list, so that it need not grow by doubling; 0 for a short list.
    fn expected(&self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if self.depth > 1 || rest.len() < LONG {
            return 0;
        }
        rest.windows(3).filter(|bytes| matches!(bytes, [b',', b'"', _] | [b',', b' ', b'"'])).count() + 1
    }

    fn object(&mut self) -> Step<Value> {
        let mut object = Map::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(object));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.fail_or_end("a quoted key is missing");
            }
            let start = self.at;
            let key = self.string()?;
            self.skip_space();
            self.expect(b':', "a colon is missing")?;
            self.skip_space();
            let value = self.value()?;
            if object.insert(key, value).is_some() {
                let what = "key that stands in its object already, the last value is read";
                self.repeated.get_or_insert(Oddity { what, first: start, count: 0 }).count += 1;
            }
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(object));
            }
            self.expect(b',', "a comma or } is missing")?;
        }
    }

    /// The raw text of the container that starts here, found by counting brackets, without recursion.
    fn raw_container(&mut self) -> Step<Value> {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'[' | b'{' => open += 1,
                b']' | b'}' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                self.note("nesting beyond 128 levels kept as text", start);
                return Ok(Value::String(self.slice(start).to_owned()));
            }
        }
        self.fail("the text ends early")
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
    }

    fn string(&mut self) -> Step<String> {
        self.at += 1;
        let mut out = String::new();
        let mut run = self.at;
        loop {
            match self.peek() {
                None => return self.fail("the text ends early"),
                Some(b'"') => {
                    out.push_str(self.slice(run));
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    out.push_str(self.slice(run));
                    out.push(self.escape()?);
                    run = self.at;
                }
                Some(byte) => {
                    if byte < b' ' {
                        self.note("control character in a string", self.at);
                    }
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Step<char> {
        let start = self.at;
        self.at += 1;
        let simple = match self.peek() {
            Some(b'u') => return self.unicode_escape(start),
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return self.fail_or_end("an unknown escape"),
        };
        self.at += 1;
        Ok(simple)
    }

    fn unicode_escape(&mut self, start: usize) -> Step<char> {
        let first = self.code_unit()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let after = self.at;
        if first < 0xDC00 && self.bytes.get(after..after + 2) == Some(b"\\u") {
            self.at += 1;
            let second = self.code_unit()?;
            if let Some(c) = super::pair(first, second) {
                return Ok(c);
            }
            self.at = after;
        }
        self.note("lone surrogate read as U+FFFD", start);
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// Reads the four hexadecimal digits after a `u`.
    fn code_unit(&mut self) -> Step<u32> {
        self.at += 1;
        let digits = self.bytes.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else { return self.fail("four hexadecimal digits are missing") };
        self.at += 4;
        Ok(digits.iter().fold(0, |unit, d| unit * 16 + char::from(*d).to_digit(16).unwrap_or(0)))
    }

    fn number(&mut self) -> Step<Value> {
        let start = self.at;
        let negative = self.take(b'-');
        if negative && self.peek() == Some(b'I') {
            self.at = start;
            return self.not_a_number("-Infinity");
        }
        match self.digits() {
            0 => return self.fail_or_end("a digit is missing"),
            1 => {}
            _ if self.bytes.get(start + usize::from(negative)) == Some(&b'0') => {
                self.at = start;
                return self.fail("a number starts with a zero");
            }
            _ => {}
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            if self.digits() == 0 {
                return self.fail_or_end("a digit is missing");
            }
        }
        if self.take(b'e') || self.take(b'E') {
            whole = false;
            let _sign = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return self.fail_or_end("a digit is missing");
            }
        }
        let text = self.slice(start);
        let number = if whole && text != "-0" { whole_number(text) } else { real_number(text) };
        if let Some(number) = number {
            return Ok(Value::Number(number));
        }
        self.note(if whole { "integer beyond 64 bits" } else { "number out of range" }, start);
        Ok(match self.wide {
            WideNumber::Digits => Value::String(text.to_owned()),
            WideNumber::Null => Value::Null,
        })
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn not_a_number(&mut self, word: &'static str) -> Step<Value> {
        let what = match word {
            "NaN" => "NaN read as null",
            "Infinity" => "Infinity read as null",
            _ => "-Infinity read as null",
        };
        let start = self.at;
        let value = self.word(word, Value::Null)?;
        self.note(what, start);
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Step<Value> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            Ok(value)
        } else {
            self.fail("a value is missing")
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, missing: &'static str) -> Step<()> {
        if self.take(byte) { Ok(()) } else { self.fail_or_end(missing) }
    }

    fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn note(&mut self, what: &'static str, at: usize) {
        match self.oddities.iter_mut().find(|o| o.what == what) {
            Some(oddity) => oddity.count += 1,
            None => self.oddities.push(Oddity { what, first: at, count: 1 }),
        }
    }

    fn fail<T>(&self, what: &'static str) -> Step<T> {
        Err(JsonFailure { what, at: self.at })
    }

    fn fail_or_end<T>(&self, what: &'static str) -> Step<T> {
        self.fail(if self.peek().is_none() { "the text ends early" } else { what })
    }
}

fn whole_number(text: &str) -> Option<Number> {
    let signed = text.parse::<i64>().ok().map(Number::from);
    signed.or_else(|| text.parse::<u64>().ok().map(Number::from))
}

fn real_number(text: &str) -> Option<Number> {
    text.parse::<f64>().ok().and_then(Number::from_f64)
}
