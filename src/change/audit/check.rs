//! Verifies a trail entry by entry, for any number and size of entries.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::{Anchor, AuditFault, AuditVerdict, EntryFacts, GENESIS, commitment, entry_hash, fault};
use crate::memory::digest::wide_digest;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::RecordSorter;
use crate::memory::packed::space::MakeSpace;
use crate::store::own::{PrivateValue, TrailEntry};

/// Private values that entries declare redacted.
#[derive(Debug)]
pub struct RedactionClaims(RecordSorter<2>);

fn place(seq: i64, field: &str) -> [u64; 2] {
    wide_digest(&format!("{seq} {field}"))
}

impl RedactionClaims {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        RedactionClaims(RecordSorter::new(space))
    }

    /// Adds the claims of an entry.
    pub fn entry(&mut self, entry: &TrailEntry) {
        for (seq, field) in EntryFacts::parse(&entry.public).redacts {
            // A value can only have been redacted by a later entry.
            if seq < entry.seq {
                self.0.add(place(seq, &field));
            }
        }
    }
}

/// Verifies consecutive entries of a trail.
#[derive(Debug)]
pub struct TrailCheck<'a> {
    database_id: &'a str,
    anchors: &'a [Anchor],
    claims: IdTable<2>,
    /// Expected number of the next entry, and the hash of the previous one.
    expected: i64,
    prev: String,
    entries: usize,
    last: i64,
    /// Hashes of the anchored entries; `None` until they have been read.
    anchored: HashMap<i64, Option<String>>,
    /// Commitments of the latest entries whose values have not been read yet.
    open: BTreeMap<i64, BTreeMap<String, String>>,
    redacted: usize,
    chain_faults: Vec<AuditFault>,
    value_faults: Vec<AuditFault>,
}

impl<'a> TrailCheck<'a> {
    /// Begins a check.
    ///
    /// # Errors
    /// Claims that did not fit in memory could not be written to a file.
    pub fn new(database_id: &'a str, anchors: &'a [Anchor], claims: RedactionClaims) -> io::Result<Self> {
        Ok(TrailCheck {
            database_id,
            anchors,
            claims: IdTable::of(claims.0, |_, _| {})?,
            expected: 1,
            prev: GENESIS.to_owned(),
            entries: 0,
            last: 0,
            anchored: anchors.iter().map(|anchor| (anchor.seq, None)).collect(),
            open: BTreeMap::new(),
            redacted: 0,
            chain_faults: Vec::new(),
            value_faults: Vec::new(),
        })
    }

    /// Checks the next entry.
    pub fn entry(&mut self, entry: &TrailEntry) {
        let expected = self.expected;
        let faults = &mut self.chain_faults;
        if entry.seq != expected {
            let words = match entry.seq.saturating_sub(expected) {
                1 => format!("entry {expected} is missing"),
                2.. => format!("entries {expected} to {} are missing", entry.seq - 1),
                _ => format!("entry {} is where entry {expected} should be", entry.seq),
            };
            faults.push(fault("gap", expected.min(entry.seq), words));
        }
        if entry.database_id != self.database_id {
            faults.push(fault("foreign_chain", entry.seq, format!("entry {} belongs to another database", entry.seq)));
        }
        if entry.prev_hash != self.prev {
            let words = format!("entry {} does not follow the one before it", entry.seq);
            faults.push(fault("wrong_previous", entry.seq, words));
        }
        if entry_hash(entry) != entry.hash {
            faults.push(fault(
                "edited_entry",
                entry.seq,
                format!("entry {} was changed after it was written", entry.seq),
            ));
        }
        if let Some(seen) = self.anchored.get_mut(&entry.seq) {
            *seen = Some(entry.hash.clone());
        }
        self.open.insert(entry.seq, serde_json::from_str(&entry.commitments).unwrap_or_default());
        self.prev.clone_from(&entry.hash);
        self.expected = entry.seq.saturating_add(1);
        self.last = entry.seq;
        self.entries += 1;
    }

    /// Compares a private value with its commitment; the entries up to its number must have been checked.
    pub fn value(&mut self, value: &PrivateValue) {
        let (seq, field) = (value.seq, &value.field);
        let Some(committed) = self.open.get_mut(&seq).and_then(|own| own.remove(field)) else {
            let words = format!("entry {seq} has a value `{field}` that it does not commit to");
            self.value_faults.push(fault("unknown_value", seq, words));
            return;
        };
        let salt = hex::decode(&value.salt).unwrap_or_default();
        if self.is_claimed(seq, field) {
            let words = format!("the redacted value `{field}` of entry {seq} is back: a backup was restored");
            self.value_faults.push(fault("resurrected_value", seq, words));
        } else if commitment(&salt, field, &value.value) != committed {
            let words = format!("the value `{field}` of entry {seq} was changed after it was written");
            self.value_faults.push(fault("edited_value", seq, words));
        }
    }

    /// Finishes the values of the entries checked so far.
    pub fn part_ends(&mut self) {
        for (seq, left) in std::mem::take(&mut self.open) {
            for field in left.into_keys() {
                if self.is_claimed(seq, &field) {
                    self.redacted += 1;
                } else {
                    let words = format!("the value `{field}` of entry {seq} is missing, and no entry records why");
                    self.value_faults.push(fault("silent_redaction", seq, words));
                }
            }
        }
    }

    fn is_claimed(&self, seq: i64, field: &str) -> bool {
        let [first, second] = place(seq, field);
        self.claims.find(first).is_some_and(|found| found[1] == second)
    }

    /// The verdict, given the head, after all entries.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn end(mut self, head: Option<&(i64, String)>) -> io::Result<AuditVerdict> {
        self.claims.check()?;
        let mut faults = std::mem::take(&mut self.chain_faults);
        faults.extend(self.head_fault(head));
        faults.append(&mut self.value_faults);
        self.anchor_faults(&mut faults);
        faults.sort_by_key(|f| f.seq);
        let of_this = self.anchors.iter().filter(|a| a.database_id == self.database_id);
        let anchored = of_this.map(|a| a.seq).max();
        let notes = match anchored {
            None => vec![
                "without an anchor, a rewrite of the whole chain by whoever owns the database, or a truncation at its \
                 end, cannot be detected: keep one with `audit anchor FILE` outside the database"
                    .to_owned(),
            ],
            Some(seq) if seq < self.last => {
                vec![format!("entries after {seq}, the last anchor, could be removed unnoticed")]
            }
            Some(_) => Vec::new(),
        };
        Ok(AuditVerdict {
            ok: faults.is_empty(),
            entries: self.entries,
            database_id: self.database_id.to_owned(),
            head: head.map(|(seq, _)| *seq),
            anchored,
            redacted: self.redacted,
            faults,
            notes,
        })
    }

    fn head_fault(&self, head: Option<&(i64, String)>) -> Option<AuditFault> {
        let last = self.last;
        match head {
            None => Some(fault("moved_head", last, "the head of the chain is missing")),
            Some((seq, hash)) if *seq != last || *hash != self.prev => {
                let words = if *seq == last {
                    format!("the head has another hash than entry {seq}, which is the last one")
                } else {
                    format!("the head names entry {seq}, but the last one is {last}")
                };
                Some(fault("moved_head", last.min(*seq), words))
            }
            Some(_) => None,
        }
    }

    fn anchor_faults(&self, faults: &mut Vec<AuditFault>) {
        let (database_id, last) = (self.database_id, self.last);
        for anchor in self.anchors {
            if anchor.database_id != database_id {
                let words = format!(
                    "an anchor of {} saw entry {} of another trail, {}; this one is {database_id}",
                    anchor.at, anchor.seq, anchor.database_id
                );
                faults.push(fault("foreign_chain", anchor.seq, words));
                continue;
            }
            match self.anchored.get(&anchor.seq).and_then(Option::as_ref) {
                _ if anchor.seq == 0 => {}
                None => {
                    let words = format!(
                        "the trail ends at entry {last}, and an anchor of {} saw entry {}",
                        anchor.at, anchor.seq
                    );
                    faults.push(fault("truncated", last.saturating_add(1), words));
                }
                Some(hash) if *hash != anchor.hash => {
                    let words = format!("entry {} is not the one that an anchor of {} saw", anchor.seq, anchor.at);
                    faults.push(fault("rewritten", anchor.seq, words));
                }
                Some(_) => {}
            }
        }
    }
}
