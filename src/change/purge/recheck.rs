//! A later check of a receipt. The receipt names nobody, so every word of the database is compared with the HMACs of
//! the handles.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::desk::Desk;
use super::graph::within;
use super::owners;
use super::receipt::{PurgeReceipt, PurgeRecheck, RecheckFound, TrailFound, ValuesFound};
use super::verdict::{self, PurgeStatus, Remain, RemainKind};
use crate::change::suppress::{HandleHashes, candidates};
use crate::change::{ChangeError, audit, now};
use crate::layout::Engine;
use crate::layout::erase::BoundRule;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::container::{self, Leaf, Limits};
use crate::store::fetched::FetchedValue;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Most words tried together as one handle: names and telephone numbers contain blanks.
const WORDS: usize = 5;
/// Most words whose result is remembered.
const REMEMBERED: usize = 500_000;

/// Reason why a later check of an incomplete purge is incomplete, whatever it finds.
pub const ENDED_INCOMPLETE: &str =
    "the receipt is of a purge that ended incomplete: resume it, and verify its next receipt";

/// Checks again. The status is `verified`, `verified with disclosures` or `incomplete`.
///
/// # Errors
/// [`ChangeError::NotFound`] if there is no such receipt, [`ChangeError::Refused`] for one of another database,
/// [`ChangeError::Broken`] if the receipt or its audit entry was changed.
pub async fn recheck(store: &Store, named: &str, desk: &Desk<'_>) -> Result<PurgeRecheck, ChangeError> {
    let (receipt, hash) = desk.receipt(named)?;
    let own = crate::change::draft::trail(store).await?;
    if receipt.database_id != own.database_id {
        return Err(ChangeError::Refused(format!("the receipt belongs to another database than {}", store.location())));
    }
    check_receipt(store, &receipt, &hash).await?;
    let verdict = audit::verify(store, &[]).await?;
    if let Some(fault) = verdict.faults.first() {
        return Err(ChangeError::Broken(format!("the audit trail is broken: {}", fault.message)));
    }
    let handles: HashSet<String> = receipt.handles_hmac.iter().cloned().collect();
    let (found, unread) = look(store, &handles, desk).await?;
    let ValuesFound { hits, owned: back, .. } = found;
    let logical = &receipt.verification.logical;
    let is_incomplete = receipt.status == PurgeStatus::Incomplete;
    let left_words = || receipt.findings.iter().any(|found| found.kind.leaves_words());
    let left = !is_incomplete && (logical.hits > 0 || logical.account > 0 || left_words());
    // What an incomplete erasure left cannot be distinguished from later data.
    let since =
        if is_incomplete { "left by the erasure, which ended incomplete, or written since" } else { "written since" };
    let mut findings: Vec<Remain> = unread.into_iter().map(|what| Remain::new(RemainKind::Unread, what)).collect();
    if back > 0 {
        findings.push(Remain::new(
            RemainKind::Rows,
            agreeing(back, &format!("{{#}} {{row is|rows are}} the person's: {since}")),
        ));
    } else if hits > 0 && left {
        let what = "the erasure left words about the person, so newer ones cannot be distinguished";
        findings.push(Remain::new(RemainKind::Left, what));
    } else if hits > 0 {
        findings.push(Remain::new(
            RemainKind::Mention,
            agreeing(hits, &format!("{{#}} {{value names|values name}} the person: {since}")),
        ));
    }
    let status = verdict::status(&findings).max(receipt.status);
    let standing = "found by the receipt's HMACs, in words, in owners of rows, and in texts and names of the \
         structure, except names that are plain words: freed bytes are not searched again";
    let worst = |finding: &&Remain| finding.kind.allows() == PurgeStatus::Incomplete;
    let mut incomplete: Vec<String> = findings.iter().filter(worst).map(|finding| finding.what.clone()).collect();
    if is_incomplete && incomplete.is_empty() {
        incomplete.push(ENDED_INCOMPLETE.to_owned());
    }
    let mut disclosures: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
    disclosures.push(standing.to_owned());
    Ok(PurgeRecheck {
        receipt_id: receipt.receipt_id,
        operation: "purge verify",
        status,
        receipt: "as it was written",
        audit: TrailFound { entries: verdict.entries, faults: 0 },
        verification: RecheckFound { logical: found },
        disclosures,
        incomplete,
        checked_at: now(),
    })
}

/// Searches for a person by HMACs alone. Returns the findings, and what could not be read.
///
/// # Errors
/// The engine's refusal.
pub async fn look(
    store: &Store,
    handles: &HashSet<String>,
    desk: &Desk<'_>,
) -> Result<(ValuesFound, Vec<String>), ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let unread = relations.unread.iter().map(|(table, reason)| format!("{}: {reason}", table.title())).collect();
    let mut known = KnownRows { hashes: HandleHashes::new(&desk.key), handles, words: HashMap::new() };
    let mut found = search(&mut snapshot, &relations.tables, &mut known, desk).await?;
    for object in snapshot.definitions().await? {
        let name = object.name.split_once('.').filter(|_| store.engine() == Engine::Postgres);
        if known.is_called(&object.name) || name.is_some_and(|(_, name)| known.is_called(name)) {
            *found.places.entry(format!("the name of the {}", object.kind)).or_default() += 1;
        } else if literals(&object.text).any(|text| known.names(&text)) || known.is_told_in(&object.unquoted()) {
            *found.places.entry(format!("the definition of the {} {}", object.kind, object.name)).or_default() += 1;
        }
    }
    for table in &store.catalog().tables {
        for (number, _) in table.columns.iter().enumerate().filter(|(_, column)| known.is_called(&column.name)) {
            let place =
                format!("the name of column {} of {}", number + 1, TableName::new(&table.schema, &table.name).title());
            *found.places.entry(place).or_default() += 1;
        }
    }
    let object = |_, bytes: Option<Vec<u8>>| {
        if bytes.is_some_and(|bytes| known.is_named_in(&FetchedValue::Bytes(bytes))) {
            *found.places.entry("pg_catalog.pg_largeobject.data".to_owned()).or_default() += 1;
        }
    };
    snapshot.each_large_object(object).await?;
    found.hits = found.places.values().sum();
    Ok((found, unread))
}

/// The texts that a definition holds as such: any word of theirs may be a handle.
fn literals(definition: &str) -> impl Iterator<Item = String> {
    let marked = definition.replace("''", "\0");
    let texts: Vec<String> = marked.split('\'').skip(1).step_by(2).map(|text| text.replace('\0', "'")).collect();
    texts.into_iter()
}

/// Checks the receipt against its own hash, and the hash against the audit trail.
async fn check_receipt(store: &Store, receipt: &PurgeReceipt, hash: &str) -> Result<(), ChangeError> {
    let seq = receipt.audit_seq.unwrap_or_default();
    let entry = audit::open(store, seq).await?;
    let entered = entry.is_some_and(|e| e.facts().receipt_sha256.as_deref() == Some(hash));
    if receipt.receipt_sha256.as_deref() == Some(hash) && entered {
        return Ok(());
    }
    Err(ChangeError::Broken(format!("the receipt does not match entry {seq} of the audit trail: it was changed")))
}

/// Counts the values of each column that contain a handle, and the rows that belong to the person by the layout.
async fn search(
    snapshot: &mut Snapshot<'_>,
    tables: &[TableName],
    known: &mut KnownRows<'_>,
    desk: &Desk<'_>,
) -> Result<ValuesFound, ChangeError> {
    let store = snapshot.store;
    let mut found = ValuesFound::default();
    let mut values = 0;
    // The suppression list contains the HMACs, and no handle.
    for table in tables.iter().filter(|table| table.name != "memory_suppressions") {
        let shape = store.shapes().shape(table).await?;
        let columns: Vec<String> = shape.columns.iter().map(|c| c.name.clone()).collect();
        let rules: Vec<&BoundRule> = owners::rules(store).filter(|rule| TableName::of(&rule.table) == *table).collect();
        let title = table.title();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        snapshot
            .stream(wanted, |row| {
                let mut is_owned = false;
                for (column, raw) in columns.iter().zip(&row) {
                    values += 1;
                    if values % 4_096 == 0 {
                        (desk.progress)(&title, values);
                    }
                    let mut owns = rules.iter().filter(|rule| rule.column == *column);
                    let owns = owns.any(|rule| within(raw, rule).iter().any(|owner| known.lists(owner)));
                    is_owned |= owns;
                    if owns || known.is_named_in(raw) {
                        *found.places.entry(format!("{title}.{column}")).or_default() += 1;
                    }
                }
                found.owned += usize::from(is_owned);
                ControlFlow::Continue(())
            })
            .await?;
    }
    Ok(found)
}

/// Whether a word may be that of a program as well.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

struct KnownRows<'a> {
    hashes: HandleHashes,
    handles: &'a HashSet<String>,
    words: HashMap<String, bool>,
}

impl KnownRows<'_> {
    fn is_named_in(&mut self, raw: &FetchedValue) -> bool {
        if matches!(raw, FetchedValue::Null | FetchedValue::Integer(_) | FetchedValue::Real(_)) {
            return false;
        }
        let mut is_named = false;
        container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
            is_named = is_named || self.names(leaf.text);
        });
        is_named
    }

    /// Whether the name of a table, a column or the like is a handle. A common word does not count.
    fn is_called(&mut self, name: &str) -> bool {
        self.any_word(name, |word| !is_plain(word))
    }

    /// Whether a handle is in a definition, whose plain words may be names of columns, and whose numbers may be anything.
    fn is_told_in(&mut self, definition: &str) -> bool {
        self.any_word(definition, |word| !is_plain(word) && !word.bytes().all(|b| b.is_ascii_digit()))
    }

    fn names(&mut self, text: &str) -> bool {
        self.any_word(text, |_| true)
    }

    /// Whether a word of a text that may be meant is a handle, or several words in a row are.
    fn any_word(&mut self, text: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        // A long run of digits and marks, such as a vector, holds no words.
        let single: Vec<&str> = candidates(text).into_iter().collect();
        if single.into_iter().any(|word| is_meant(word) && self.is_handle(word)) {
            return true;
        }
        let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '=').filter(|w| !w.is_empty()).collect();
        (2..=WORDS).any(|n| words.windows(n).any(|run| run.iter().all(|w| w.len() < 40) && self.is_name(run)))
    }

    /// Whether words are a handle, also with the last name first: `Keller, Maria`.
    fn is_name(&mut self, run: &[&str]) -> bool {
        let last = run.iter().take(run.len() - 1).position(|word| word.ends_with(','));
        let turned = last.map(|at| [&run[at + 1..], &run[..=at]].concat().join(" "));
        self.is_handle(&run.join(" ")) || turned.is_some_and(|name| self.is_handle(&name))
    }

    fn is_handle(&mut self, word: &str) -> bool {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && "\"',.:;!?()[]{}<>".contains(c));
        let is_fraction = word.contains('.') && word.parse::<f64>().is_ok();
        !word.is_empty() && !is_fraction && self.lists(word)
    }

    fn lists(&mut self, word: &str) -> bool {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let held = self.handles.contains(&self.hashes.of(word));
        if self.words.len() < REMEMBERED {
            self.words.insert(word.to_owned(), held);
        }
        held
    }
}
