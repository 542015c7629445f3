//! Finds cases that repeat a newer one of their bank, by the hash of their message. A digest is trusted; any other
//! word, such as one for "unknown", only counts if the prompts are the same.

use std::io;
use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::memory::Row;
use crate::memory::digest::{Digest, digest, wide_digest};
use crate::memory::json::{self, JsonPart};
use crate::memory::packed::records::{Record, RecordSorter};
use crate::memory::packed::space::MakeSpace;

/// Hexadecimal digits from which a hash is a digest.
const DIGEST: usize = 16;

/// Digests of empty messages: SHA-256 of usual placeholders, MD5 and SHA-1 of no text.
static OF_NOTHING: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sha256 = ["", r#""""#, "null", "{}", "[]"].map(|nothing| hex::encode(Sha256::digest(nothing)));
    let others = ["d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709"];
    sha256.into_iter().chain(others.map(str::to_owned)).collect()
});

/// Sort key of a case without a prompt among those of one hash: last.
const NO_PROMPT: Digest = Digest::MAX;

/// The hash of a case's message; `None` if it is missing, blank, or the digest of an empty message.
pub fn message_hash_of(case: &Row) -> Option<&str> {
    let is_one = |hash: &&str| !hash.trim().is_empty() && !OF_NOTHING.iter().any(|of| of.eq_ignore_ascii_case(hash));
    case.text("message_hash").filter(is_one)
}

/// The message of a prompt: the prompt itself, or its message, query or text. `None` if there is none.
pub fn message_of(prompt: &Value) -> Option<&str> {
    let is_said = |message: &&str| !message.is_empty();
    let named = || ["message", "query", "text"].iter().filter_map(|key| prompt.get(key)?.as_str()).find(is_said);
    prompt.as_str().filter(is_said).or_else(named)
}

/// Whether a hash looks like a real digest: hexadecimal digits that are not all the same.
fn is_digest(hash: &str) -> bool {
    let digits = hash.rsplit_once(':').map_or(hash, |(_, digits)| digits).replace('-', "");
    let is_one_digit = digits.bytes().all(|digit| digits.starts_with(char::from(digit)));
    digits.len() >= DIGEST && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && !is_one_digit
}

/// The part of a prompt that is compared in addition to its hash: its message in lower case without blanks, or
/// otherwise all of it. `None` if it is empty.
fn said(prompt: JsonPart<'_>) -> Option<Digest> {
    let mut whole = prompt.to_value();
    let is_blank = json::is_blank(&whole);
    whole.sort_all_objects();
    let said = message_of(&whole).map_or_else(|| whole.to_string(), str::to_lowercase);
    let words: Vec<&str> = said.split_whitespace().collect();
    (!is_blank).then(|| digest(&words.join(" ")).min(NO_PROMPT - 2))
}

/// The message of a case, as far as needed to find copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseMessage {
    /// Digests of the hash.
    pub hash: [Digest; 2],
    prompt: Digest,
}

impl CaseMessage {
    /// The message of a case; `None` if it has no hash.
    pub fn of(case: &Row) -> Option<Self> {
        let hash = message_hash_of(case)?;
        let prompt = if is_digest(hash) { None } else { said(case.json("prompt")) };
        Some(CaseMessage { hash: wide_digest(hash), prompt: prompt.unwrap_or(NO_PROMPT) })
    }

    /// Digest of both.
    pub fn digest(&self) -> Digest {
        digest(&format!("{:?}", self.numbers()))
    }

    /// Whether a case with this message repeats one with the other, as far as known.
    pub fn repeats(&self, other: &CaseMessage) -> bool {
        self.hash == other.hash && (self.prompt == other.prompt || [self.prompt, other.prompt].contains(&NO_PROMPT))
    }

    /// Encodes it as numbers.
    pub fn numbers(&self) -> [u64; 3] {
        [self.hash[0], self.hash[1], self.prompt]
    }

    /// Decodes it; zeros mean none.
    pub fn read([a, b, prompt]: [u64; 3]) -> Option<Self> {
        (a != 0).then_some(CaseMessage { hash: [a, b], prompt })
    }
}

/// Place of a case in the order of its bank, the newest first.
pub type CaseOrder = [u64; 4];

/// Whether a case is a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseCopy {
    /// A newer case says the same.
    Repeats,
    /// Cases with that hash differ, and no newer case is known to say the same.
    Unclear,
}

/// Cases by bank and message, in any number.
#[derive(Debug)]
pub struct CaseCopies(RecordSorter<9>);

impl CaseCopies {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        CaseCopies(RecordSorter::new(space))
    }

    /// Sets the memory limit in bytes.
    pub fn within(self, bytes: usize) -> Self {
        CaseCopies(self.0.within(bytes))
    }

    /// Takes the cases, leaving none.
    pub fn take(&mut self) -> Self {
        CaseCopies(self.0.take())
    }

    /// Adds a case of a bank, with the number by which it is reported.
    pub fn add(&mut self, bank: Digest, message: CaseMessage, [a, b, c, d]: CaseOrder, number: u64) {
        let [hash, rest, prompt] = message.numbers();
        self.0.add([bank, hash, rest, prompt, a, b, c, d, number]);
    }

    /// Reports each case that is not the first with its message, or for which that is unclear, with its position and
    /// number.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
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

/// The cases of one bank and hash, by prompt, newest first.
#[derive(Default)]
struct CasesOfHash {
    /// The newest case of the only prompt, or of the last one.
    newest: Option<Record<9>>,
    /// Number of different prompts, without missing ones.
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
            // If all known parts are the same, the newest case stays.
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
