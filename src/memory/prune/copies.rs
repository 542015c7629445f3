//! Cases that say what a newer one of their bank says, by the hash of their message. A hash is believed where it is a digest.
//! Any other word, such as one that stands for "unknown", says the same of cases only as long as their prompts do not differ.

use std::io;
use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::memory::Row;
use crate::memory::digest::{Digest, digest, wide_digest};
use crate::memory::json::JsonPart;
use crate::memory::packed::records::{Record, RecordSorter};
use crate::memory::packed::space::MakeSpace;

/// Hexadecimal digits from which a hash is a digest.
const DIGEST: usize = 16;

/// Digests of messages that hold nothing: SHA-256 of what programs write for none, MD5 and SHA-1 of no text.
static OF_NOTHING: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sha256 = ["", r#""""#, "null", "{}", "[]"].map(|nothing| hex::encode(Sha256::digest(nothing)));
    let others = ["d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709"];
    sha256.into_iter().chain(others.map(str::to_owned)).collect()
});

/// Place of a case without a prompt among those of one hash: after the others.
const NO_PROMPT: Digest = Digest::MAX;

/// The hash of a case's message; none where nothing is stored, blanks alone, or the digest of a message that holds nothing.
#[must_use]
pub fn message_hash_of(case: &Row) -> Option<&str> {
    let is_one = |hash: &&str| !hash.trim().is_empty() && !OF_NOTHING.iter().any(|of| of.eq_ignore_ascii_case(hash));
    case.text("message_hash").filter(is_one)
}

/// The message of a prompt: the prompt itself, or its message, query or text. None where it holds none.
#[must_use]
pub fn message_of(prompt: &Value) -> Option<&str> {
    let is_said = |message: &&str| !message.is_empty();
    let named = || ["message", "query", "text"].iter().filter_map(|key| prompt.get(key)?.as_str()).find(is_said);
    prompt.as_str().filter(is_said).or_else(named)
}

/// Whether a hash is made of its message for all that can be seen: hexadecimal digits, and not one of them alone.
fn is_digest(hash: &str) -> bool {
    let digits = hash.rsplit_once(':').map_or(hash, |(_, digits)| digits).replace('-', "");
    let is_one_digit = digits.bytes().all(|digit| digits.starts_with(char::from(digit)));
    digits.len() >= DIGEST && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && !is_one_digit
}

/// The part of a prompt that is compared next to its hash: its message in small letters without blanks, or else all of it. None where
/// it holds nothing.
fn said(prompt: JsonPart<'_>) -> Option<Digest> {
    let mut whole = prompt.to_value();
    let is_nothing = match &whole {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    whole.sort_all_objects();
    let said = message_of(&whole).map_or_else(|| whole.to_string(), str::to_lowercase);
    let words: Vec<&str> = said.split_whitespace().collect();
    (!is_nothing).then(|| digest(&words.join(" ")).min(NO_PROMPT - 2))
}

/// The message of a case, as far as copies are told by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseMessage {
    /// Stands for the hash.
    pub hash: [Digest; 2],
    prompt: Digest,
}

impl CaseMessage {
    /// The message of a case; none where it has no hash.
    #[must_use]
    pub fn of(case: &Row) -> Option<Self> {
        let hash = message_hash_of(case)?;
        let prompt = if is_digest(hash) { None } else { said(case.json("prompt")) };
        Some(CaseMessage { hash: wide_digest(hash), prompt: prompt.unwrap_or(NO_PROMPT) })
    }

    /// Stands for the whole of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest(&format!("{:?}", self.numbers()))
    }

    /// Whether a case with this message repeats one with the other, as far as the two of them say.
    #[must_use]
    pub fn repeats(&self, other: &CaseMessage) -> bool {
        self.hash == other.hash && (self.prompt == other.prompt || [self.prompt, other.prompt].contains(&NO_PROMPT))
    }

    /// The same as numbers.
    #[must_use]
    pub fn numbers(&self) -> [u64; 3] {
        [self.hash[0], self.hash[1], self.prompt]
    }

    /// Reads it back; zeros stand for none.
    #[must_use]
    pub fn read([a, b, prompt]: [u64; 3]) -> Option<Self> {
        (a != 0).then_some(CaseMessage { hash: [a, b], prompt })
    }
}

/// Place of a case in the order of its bank, the newest first.
pub type CaseOrder = [u64; 4];

/// Standing of a case among those of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseCopy {
    /// A newer case says the same.
    Repeats,
    /// Cases of that hash say different things, and none of those that say the same is newer.
    Unclear,
}

/// Cases by bank and message, however many there are.
#[derive(Debug)]
pub struct CaseCopies(RecordSorter<9>);

impl CaseCopies {
    /// No case yet. What does not fit in memory goes to such a space.
    #[must_use]
    pub fn new(space: MakeSpace) -> Self {
        CaseCopies(RecordSorter::new(space))
    }

    /// The same, with so many bytes in memory.
    #[must_use]
    pub fn within(self, bytes: usize) -> Self {
        CaseCopies(self.0.within(bytes))
    }

    /// Takes the cases, and leaves none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        CaseCopies(self.0.take())
    }

    /// Takes a case of a bank, with the number by which it is told.
    pub fn add(&mut self, bank: Digest, message: CaseMessage, [a, b, c, d]: CaseOrder, number: u64) {
        let [hash, rest, prompt] = message.numbers();
        self.0.add([bank, hash, rest, prompt, a, b, c, d, number]);
    }

    /// Tells each case that is no first one of its message, or of which it is unclear whether it is, with its place and number.
    ///
    /// # Errors
    /// What did not fit in memory could not be kept in a file.
    pub fn each(self, mut told: impl FnMut(CaseCopy, CaseOrder, u64)) -> io::Result<()> {
        let sorted = self.0.sorted()?;
        let mut stream = sorted.stream()?;
        let mut hash = CasesOfHash::default();
        while let Some(record) = stream.next()? {
            hash.take(&record, &mut told);
        }
        hash.end(&mut told);
        Ok(())
    }
}

/// The cases of one bank and hash, prompt after prompt, of each the newest first.
#[derive(Default)]
struct CasesOfHash {
    /// The newest case of the only prompt, or of the last one.
    newest: Option<Record<9>>,
    /// Number of prompts, without those that are not stored.
    prompts: usize,
}

impl CasesOfHash {
    fn take(&mut self, record: &Record<9>, told: &mut impl FnMut(CaseCopy, CaseOrder, u64)) {
        let Some(newest) = self.newest.filter(|newest| newest[..3] == record[..3]) else {
            self.end(told);
            *self = CasesOfHash { newest: Some(*record), prompts: usize::from(record[3] != NO_PROMPT) };
            return;
        };
        if newest[3] == record[3] {
            tell(CaseCopy::Repeats, record, told);
        } else if record[3] != NO_PROMPT {
            tell(CaseCopy::Unclear, &newest, told);
            *self = CasesOfHash { newest: Some(*record), prompts: self.prompts + 1 };
        } else if self.prompts > 1 {
            tell(CaseCopy::Unclear, record, told);
        } else {
            // Where all that is said is the same, the newest of all stays.
            let (mut first, copy) = if record[4..8] < newest[4..8] { (*record, newest) } else { (newest, *record) };
            tell(CaseCopy::Repeats, &copy, told);
            first[3] = NO_PROMPT;
            self.newest = Some(first);
        }
    }

    fn end(&mut self, told: &mut impl FnMut(CaseCopy, CaseOrder, u64)) {
        if let Some(newest) = self.newest.take().filter(|_| self.prompts > 1) {
            tell(CaseCopy::Unclear, &newest, told);
        }
    }
}

fn tell(copy: CaseCopy, record: &Record<9>, told: &mut impl FnMut(CaseCopy, CaseOrder, u64)) {
    told(copy, [record[4], record[5], record[6], record[7]], record[8]);
}
