//! Text that enters a memory: secrets are removed and counted; what reads like an instruction or hides characters is
//! flagged for review.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::json::{JsonText, each_text};

/// Oddities found in incoming text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TextOddities {
    /// Secrets that were removed, by kind.
    pub secrets: BTreeMap<&'static str, usize>,
    /// Counts of suspicious text, by kind.
    pub flags: BTreeMap<&'static str, usize>,
}

impl TextOddities {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: &TextOddities) {
        for (kind, count) in &other.secrets {
            *self.secrets.entry(kind).or_default() += count;
        }
        for (kind, count) in &other.flags {
            *self.flags.entry(kind).or_default() += count;
        }
    }

    /// The findings as sentences for people; none for harmless text.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let secrets = self.secrets.iter().map(|(kind, n)| format!("{n} x {kind} removed from the text"));
        let flags = self.flags.iter().map(|(kind, n)| format!("{n} x the text {kind}"));
        secrets.chain(flags).collect()
    }
}

/// Flag of text that addresses a model.
pub(super) const INSTRUCTION: &str = "reads like an instruction to an agent";

/// Whether a text holds characters that nobody sees, or that control a terminal.
#[must_use]
pub fn hides(text: &str) -> bool {
    hidden_characters(text) > 0
}

/// A text without the characters that [`hides`] is about.
#[must_use]
pub fn visible(text: &str) -> String {
    seen(text).filter_map(|(c, seen)| seen.then_some(c)).collect()
}

/// A JSON value with every text within it made again, keys among them. Keys that come out alike are numbered, so that no
/// member is lost.
#[must_use]
pub fn with_texts(value: &Value, text: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::String(stored) => Value::from(text(stored)),
        Value::Array(items) => items.iter().map(|item| with_texts(item, text)).collect(),
        Value::Object(object) => {
            members(object.iter().map(|(key, item)| (text(key), with_texts(item, text))).collect())
        }
        other => other.clone(),
    }
}

/// An object of these members.
fn members(given: Vec<(String, Value)>) -> Value {
    let mut object = Map::new();
    for (key, item) in given {
        let mut name = key.clone();
        let mut number = 1;
        while object.contains_key(&name) {
            number += 1;
            name = format!("{key} {number}");
        }
        object.insert(name, item);
    }
    Value::Object(object)
}

/// Replacement for a removed secret.
const REDACTED: &str = "[secret removed]";

/// Word in the place of a secret that a plan does not show.
const WITHHELD: &str = "[secret not shown]";

/// Beginnings of tokens, what they are, and how many letters, digits, `_` or `-` must follow at least.
const TOKENS: &[(&str, &str, usize)] = &[
    ("AKIA", "AWS access key", 16),
    ("ASIA", "AWS access key", 16),
    ("AIza", "Google API key", 30),
    ("ghp_", "GitHub token", 30),
    ("gho_", "GitHub token", 30),
    ("ghs_", "GitHub token", 30),
    ("github_pat_", "GitHub token", 30),
    ("glpat-", "GitLab token", 18),
    ("xoxb-", "Slack token", 20),
    ("xoxp-", "Slack token", 20),
    ("xoxa-", "Slack token", 20),
    ("sk_live_", "Stripe key", 16),
    ("rk_live_", "Stripe key", 16),
    ("sk-", "API key", 20),
    ("npm_", "npm token", 30),
    ("hf_", "Hugging Face token", 30),
    ("SG.", "SendGrid key", 20),
];

/// Words after which a value is a secret, when `=` or `:` is between.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_token",
    "auth_token",
    "client_secret",
    "private_key",
    "secret_key",
];

/// Phrases that address a model rather than a person, in lower case.
const INSTRUCTIONS: &[&str] = &[
    "ignore all previous",
    "ignore previous instructions",
    "ignore the above",
    "ignore all instructions",
    "ignore your instructions",
    "disregard previous",
    "disregard all previous",
    "disregard the above",
    "disregard your",
    "forget your instructions",
    "forget all previous",
    "forget previous instructions",
    "new instructions:",
    "override your instructions",
    "reveal your system prompt",
    "print your system prompt",
    "your system prompt",
    "you are now a",
    "you are now in",
    "pretend to be",
    "act as if you",
    "do not tell the user",
    "don't tell the user",
    "without telling the user",
    "<|im_start|>",
    "<|system|>",
    "[inst]",
    "<<sys>>",
    "### instruction",
    "### system",
    "begin system prompt",
    "jailbreak",
    "always answer that",
];

/// Words that are searched for in any case of ASCII letters: nearly all texts hold none, which one pass tells.
pub(super) struct Search(Option<AhoCorasick>);

impl Search {
    fn of(words: &[&str]) -> Self {
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA));
        Search(builder.build(words).ok())
    }

    /// Whether a text may hold one of the words. False is certain.
    pub fn may_match(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|search| search.is_match(text))
    }
}

/// All that a secret begins with or holds.
pub(super) static SECRET: LazyLock<Search> = LazyLock::new(|| Search::of(&secret_words()));
/// All phrases that address a model.
pub(super) static PHRASE: LazyLock<Search> = LazyLock::new(|| Search::of(INSTRUCTIONS));
/// Both of them.
pub(super) static SUSPICIOUS: LazyLock<Search> =
    LazyLock::new(|| Search::of(&[&secret_words(), INSTRUCTIONS].concat()));

fn secret_words() -> Vec<&'static str> {
    let tokens = TOKENS.iter().map(|(prefix, ..)| *prefix).chain(["-----BEGIN ", "eyJ", "bearer ", "://"]);
    tokens.chain(NAMES.iter().copied()).collect()
}

/// Features of a text that its bytes show at a glance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Glance {
    /// True when the text holds more than plain letters, signs and line ends, which may hide something.
    pub odd: bool,
    /// Words stand one blank apart, as phrases are written.
    pub flat: bool,
}

/// Looks at each byte of a text once.
pub(super) fn glance(text: &str) -> Glance {
    let mut glance = Glance { odd: false, flat: true };
    let mut before = b'x';
    for byte in text.bytes() {
        let line_end = matches!(byte, b'\n' | b'\r' | b'\t');
        glance.odd |= !(b' '..0x7f).contains(&byte) && !line_end;
        glance.flat &= !(line_end || byte == b' ' && before == b' ');
        before = byte;
    }
    glance
}

/// Takes secrets out of a text and says what is odd about it.
#[must_use]
pub fn check(text: &str) -> (String, TextOddities) {
    check_with(text, REDACTED)
}

/// [`check`] with `word` in the place of each secret.
fn check_with(text: &str, word: &str) -> (String, TextOddities) {
    let mut found = TextOddities::default();
    let seen = glance(text);
    let clean = if SECRET.may_match(text) { without_secrets(text, word, &mut found.secrets) } else { text.to_owned() };
    let hidden = if seen.odd { hidden_characters(&clean) } else { 0 };
    if hidden > 0 {
        found.flags.insert("hides characters", hidden);
    }
    let orders = if seen.odd || !seen.flat || PHRASE.may_match(&clean) { instructions(&clean) } else { 0 };
    if orders > 0 {
        found.flags.insert(INSTRUCTION, orders);
    }
    (clean, found)
}

/// Counts the phrases of a text that address a model, whatever hides among their letters and is between their words.
fn instructions(text: &str) -> usize {
    let visible: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let flat = visible.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if !PHRASE.may_match(&flat) {
        return 0;
    }
    INSTRUCTIONS.iter().filter(|phrase| flat.contains(**phrase)).count()
}

/// [`check`] for every text within a JSON value, keys among them. What is under a key such as `password` is a secret as
/// it would be after `password=`.
#[must_use]
pub fn check_value(value: &Value, found: &mut TextOddities) -> Value {
    value_with(value, REDACTED, found)
}

/// A value as it is, but for its secrets: a word says that each is not shown.
#[must_use]
pub fn withheld(value: &Value) -> Value {
    value_with(value, WITHHELD, &mut TextOddities::default())
}

/// [`check_value`] with `word` in the place of each secret.
fn value_with(value: &Value, word: &str, found: &mut TextOddities) -> Value {
    let mut checked = |text: &str| {
        let (clean, more) = check_with(text, word);
        found.add(&more);
        clean
    };
    match value {
        Value::String(text) => Value::from(checked(text)),
        Value::Array(items) => items.iter().map(|item| value_with(item, word, found)).collect(),
        Value::Object(object) => {
            let mut clean = Vec::with_capacity(object.len());
            for (key, item) in object {
                let item = match item {
                    Value::String(text) if is_secret_under(key, text) => {
                        *found.secrets.entry("password or key").or_default() += 1;
                        Value::from(word)
                    }
                    other => value_with(other, word, found),
                };
                let (key, more) = check_with(key, word);
                found.add(&more);
                clean.push((key, item));
            }
            members(clean)
        }
        other => other.clone(),
    }
}

/// [`check_value`] for a JSON document that stays its text. Whether it may: what a text within it holds is only counted
/// where none of them is a secret.
#[must_use]
pub fn check_document(text: &str, found: &mut TextOddities) -> bool {
    let mut odd = TextOddities::default();
    let mut holds_secret = false;
    let read = each_text(text, &mut |part| {
        holds_secret |= matches!(part, JsonText::Member(key, text) if is_secret_under(key, text));
        odd.add(&check(part.text()).1);
    });
    let stays = read.is_ok() && !holds_secret && odd.secrets.is_empty();
    if stays {
        found.add(&odd);
    }
    stays
}

/// Whether a text is a secret by the key that it is under.
#[must_use]
pub fn is_secret_under(key: &str, text: &str) -> bool {
    let name = key.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let odd = text.bytes().any(|b| !b.is_ascii_lowercase());
    let one_word = !text.contains(char::is_whitespace);
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
        && text.len() >= 6
        && odd
        && one_word
        && !stands_for_secret(name, text)
}

/// Whether a value only stands for a secret: a variable, a call, a placeholder, an address where it is set, a mask, what took
/// the place of one, or, after `pwd`, a folder.
fn stands_for_secret(name: &str, value: &str) -> bool {
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
    let is_read = value.split_once(['[', '(']).is_some_and(|(read, _)| read.split('.').all(is_name));
    let is_mask = value.chars().all(|c| matches!(c, '*' | '•' | '.' | '-' | '_' | 'x' | 'X'));
    let is_folder = name.eq_ignore_ascii_case("pwd") && value.starts_with(['/', '~', '.']);
    is_placeholder(value) || value.contains("://") || is_read || is_mask || is_folder
}

/// Whether a value begins as a placeholder does: `$NAME`, `${name}`, `%NAME%`, `%(name)s`, `<name>`, `[name]`, `{name}`.
fn is_placeholder(value: &str) -> bool {
    let is_capital = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_variable = |name: &str| !name.is_empty() && name.trim_end_matches('%').bytes().all(is_capital);
    let mut letters = value.chars();
    match (letters.next(), letters.next()) {
        (Some('$' | '%'), Some(next)) => matches!(next, '{' | '(') || is_variable(&value[1..]),
        (Some('[' | '<'), Some(next)) => next.is_alphabetic() || next == '_',
        (Some('{'), Some(next)) => next.is_alphabetic() || matches!(next, '{' | '_' | '%'),
        _ => false,
    }
}

fn without_secrets(text: &str, word: &str, secrets: &mut BTreeMap<&'static str, usize>) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((kind, range)) = next_secret(text, at) {
        *secrets.entry(kind).or_default() += 1;
        clean.push_str(&text[at..range.start]);
        clean.push_str(word);
        at = range.end;
    }
    clean.push_str(&text[at..]);
    clean
}

/// The first secret from a place on, which is the beginning or the end of another one.
fn next_secret(text: &str, from: usize) -> Option<(&'static str, Range<usize>)> {
    // A secret begins where a word does: what is before it is not a letter or digit.
    let mut before = if from == 0 { ' ' } else { ']' };
    text[from..].char_indices().find_map(|(offset, c)| {
        let begins = !before.is_alphanumeric() && before != '_';
        before = c;
        let found = begins.then(|| secret_at(text, from + offset)).flatten();
        found.map(|(kind, start, end)| (kind, start..end))
    })
}

/// Finds the first secret in a text.
#[must_use]
pub fn first_secret(text: &str) -> Option<Range<usize>> {
    next_secret(text, 0).map(|(_, range)| range)
}

/// Finds the first words in a text that address a model: the range as written, with hidden characters among them.
#[must_use]
pub fn first_instruction(text: &str) -> Option<Range<usize>> {
    // The text as phrases are written, and for each of its bytes where that came from.
    let (mut flat, mut places) = (String::new(), Vec::new());
    for (at, c) in text.char_indices().filter(|(_, c)| !is_hidden(*c)) {
        let end = at + c.len_utf8();
        if !c.is_whitespace() {
            flat.extend(c.to_lowercase());
        } else if !flat.is_empty() && !flat.ends_with(' ') {
            flat.push(' ');
        }
        places.resize(flat.len(), at..end);
    }
    let found = INSTRUCTIONS.iter().filter_map(|phrase| Some((flat.find(phrase)?, phrase.len())));
    let (start, length) = found.min()?;
    Some(places.get(start)?.start..places.get(start + length - 1)?.end)
}

/// Finds the first character that is invisible or controls a terminal.
#[must_use]
pub fn first_hidden(text: &str) -> Option<Range<usize>> {
    let mut at = 0;
    seen(text).find_map(|(c, seen)| {
        let start = at;
        at += c.len_utf8();
        (!seen).then_some(start..at)
    })
}

/// The secret that begins at a place: its kind and the range to remove.
fn secret_at(text: &str, at: usize) -> Option<(&'static str, usize, usize)> {
    let rest = &text[at..];
    let first = *rest.as_bytes().first()?;
    // Nearly every place is none: decide by its first byte.
    if !first.is_ascii_alphabetic() && first != b'-' {
        return None;
    }
    if rest.starts_with("-----BEGIN ") {
        return private_key(rest).map(|length| ("private key", at, at + length));
    }
    for (prefix, kind, least) in TOKENS {
        if let Some(body) = rest.strip_prefix(prefix) {
            let length = run(body, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
            let length = body[..length].trim_end_matches('.').len();
            if length >= *least && body[..length].bytes().any(|b| b.is_ascii_digit()) {
                return Some((kind, at, at + prefix.len() + length));
            }
        }
    }
    if rest.starts_with("eyJ") {
        let length = run(rest, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='));
        if length >= 40 && rest[..length].bytes().filter(|b| *b == b'.').count() == 2 {
            return Some(("JSON web token", at, at + length));
        }
    }
    named_secret(text, at).or_else(|| bearer(text, at)).or_else(|| password_in_url(text, at))
}

fn private_key(rest: &str) -> Option<usize> {
    let head = rest.lines().next()?;
    if !head.contains("PRIVATE KEY") {
        return None;
    }
    let end = rest.find("-----END ")?;
    let tail = &rest[end..];
    Some(end + tail.find('\n').unwrap_or(tail.len()))
}

/// `password = …`, `"api_key": "…"`.
fn named_secret(text: &str, at: usize) -> Option<(&'static str, usize, usize)> {
    let rest = &text[at..];
    let name = NAMES.iter().find(|name| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)))?;
    let after = &rest[name.len()..];
    let sign = run(after, |b| matches!(b, b'"' | b'\'' | b' '));
    let value = after[sign..].strip_prefix([':', '='])?;
    let quotes = run(value, |b| matches!(b, b'"' | b'\'' | b' '));
    let value = &value[quotes..];
    let length = run(value, |b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b',' | b';' | b'}' | b')'));
    if stands_for_secret(name, &value[..length]) {
        return None;
    }
    let start = text.len() - value.len();
    // Words of a sentence ("password: please") are not secrets.
    let odd = value[..length].bytes().any(|b| !b.is_ascii_lowercase());
    (length >= 6 && odd && text.is_char_boundary(start + length)).then_some(("password or key", start, start + length))
}

fn bearer(text: &str, at: usize) -> Option<(&'static str, usize, usize)> {
    let body = text[at..].strip_prefix("Bearer ").or_else(|| text[at..].strip_prefix("bearer "))?;
    let length = run(body, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'=' | b'+' | b'/'));
    (length >= 20).then(|| ("bearer token", text.len() - body.len(), text.len() - body.len() + length))
}

/// `scheme://user:password@host`.
fn password_in_url(text: &str, at: usize) -> Option<(&'static str, usize, usize)> {
    let rest = &text[at..];
    let scheme = run(rest, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let body = rest[scheme..].strip_prefix("://")?;
    let authority = run(body, |b| b.is_ascii_graphic() && !matches!(b, b'/' | b'"' | b'\'' | b'<' | b'>'));
    let (user, _) = body[..authority].rsplit_once('@')?;
    let colon = user.find(':')?;
    let start = text.len() - body.len() + colon + 1;
    let end = text.len() - body.len() + user.len();
    (end > start).then_some(("password in a URL", start, end))
}

fn run(text: &str, fits: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| b.is_ascii() && fits(*b)).count()
}

/// Whether a character is not seen, or changes how others are.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
        || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// The characters of a text, each with whether someone sees it. Joiners within emoji and within scripts that need them
/// are seen.
fn seen(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let needed = matches!(c, '\u{200c}' | '\u{200d}')
            && !before.is_ascii()
            && chars.peek().is_some_and(|next| !next.is_ascii() && !is_hidden(*next));
        before = c;
        Some((c, needed || !is_hidden(c)))
    })
}

fn hidden_characters(text: &str) -> usize {
    seen(text).filter(|(_, seen)| !seen).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_taken_out_and_counted() {
        for (text, clean, kind) in [
            ("key AKIAIOSFODNN7EXAMPLE.", "key [secret removed].", "AWS access key"),
            ("use sk-proj-abcdefghijklmnop1234567890", "use [secret removed]", "API key"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[secret removed]", "GitHub token"),
            (r#"{"api_key": "Zx81-22"}"#, r#"{"api_key": "[secret removed]"}"#, "password or key"),
            ("PASSWORD=hunter2!", "PASSWORD=[secret removed]", "password or key"),
            ("password: $ecret-4711", "password: [secret removed]", "password or key"),
            ("password: <3horses!", "password: [secret removed]", "password or key"),
            ("at postgres://ann:s3cret@db/x now", "at postgres://ann:[secret removed]@db/x now", "password in a URL"),
            ("Bearer abcdefghijklmnopqrstuv", "Bearer [secret removed]", "bearer token"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nrest",
                "[secret removed]\nrest",
                "private key",
            ),
        ] {
            let (found_clean, found) = check(text);
            assert_eq!(found_clean, clean);
            assert_eq!(found.secrets, BTreeMap::from([(kind, 1)]), "{text}");
        }
    }

    #[test]
    fn plain_words_are_no_secrets() {
        for text in [
            "The password: please reset it",
            "task-based sk-learn",
            "https://example.com/a:b@c",
            "AKIA is a prefix",
            "user_id: mia_li_3668",
            "call_oIHazX6yQrB8hUwl4cRilFKj",
            "a secret plan",
            "password = os.environ['DB_PASSWORD']",
            "client_secret=${CLIENT_SECRET} api_key: <YOUR_API_KEY>",
            "api_key=get_key(1) password: ******** secret: [REDACTED]",
            "Reset your password: https://x.org/reset?A=1",
            "pwd: /srv/Work/project",
            "",
        ] {
            assert_eq!(check(text), (text.to_owned(), TextOddities::default()), "{text}");
        }
    }

    #[test]
    fn instructions_and_hidden_characters_are_flagged() {
        let flags = |text: &str| check(text).1.flags.into_keys().collect::<Vec<_>>();
        assert_eq!(flags("Please IGNORE  all\nprevious rules"), ["reads like an instruction to an agent"]);
        assert_eq!(flags("ig\u{200b}nore all previous"), ["hides characters", "reads like an instruction to an agent"]);
        assert_eq!(flags("a\u{202e}b"), ["hides characters"]);
        assert_eq!(flags("x\u{e0041}"), ["hides characters"]);
        for plain in ["👩‍👩‍👧 emoji", "نمی‌خواهم", "line\nline\ttab", "ignore the noise"] {
            assert!(flags(plain).is_empty(), "{plain}");
        }
    }

    #[test]
    fn every_text_of_a_value_is_checked() {
        let mut found = TextOddities::default();
        let value = json!({"a": ["password=Abcdef1", 5], "b": {"c": "a\u{200b}"}});
        let clean = check_value(&value, &mut found);
        assert_eq!((found.secrets.values().sum::<usize>(), found.flags.len()), (1, 1));
        assert_eq!(clean, json!({"a": ["password=[secret removed]", 5], "b": {"c": "a\u{200b}"}}));
        assert_eq!((found.secrets.len(), found.flags.len()), (1, 1));
    }

    #[test]
    fn keys_are_texts_too_and_no_member_is_lost() {
        let mut found = TextOddities::default();
        let value =
            json!({"AKIAIOSFODNN7EXAMPLE": 1, "AKIAIOSFODNN7EXAMPLF": {"Password": "Hunter22", "pwd": "please"}});
        let clean = check_value(&value, &mut found);
        assert_eq!(
            clean,
            json!({"[secret removed]": 1, "[secret removed] 2": {"Password": "[secret removed]", "pwd": "please"}})
        );
        assert_eq!(found.secrets, BTreeMap::from([("AWS access key", 2), ("password or key", 1)]));
        assert_eq!(check_value(&clean, &mut TextOddities::default()), clean);
        let hidden = with_texts(&json!({"a\u{200b}b": ["x\u{200b}"]}), &mut |text| visible(text));
        assert_eq!(hidden, json!({"ab": ["x"]}));
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_clean_text_stays_so(text in "\\PC*|[a-zA-Z0-9:=@/ _.\"-]{0,60}") {
            let (clean, found) = check(&text);
            if found.secrets.is_empty() {
                prop_assert_eq!(&clean, &text);
            }
            prop_assert!(check(&clean).1.secrets.len() <= found.secrets.len());
        }
    }
}
