//! Common code of backfills that remove something from every free text.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::rows::{RowBench, RowPart, RowVerdict};
use super::sources::spare;
use crate::change::edit::TextRemains;
use crate::change::held::HeldRows;
use crate::change::{ChangeError, Draft};
use crate::job::plan::JobCheck;
use crate::memory::agreeing;
use crate::memory::findings::{CLEANED, HeldText, TextScanner};
use crate::memory::json::{JsonPart, JsonText, each_text};
use crate::memory::query::Query;
use crate::memory::{Entity, Row, ValueKind, text_check};
use crate::store::Store;
use crate::store::encode::can_set;
use crate::store::fetched::FetchedValue;
use crate::store::walk::WalkedRow;

/// Most rows named that are left unchanged.
const NAMED: usize = 3;

/// Values left from earlier texts: a fact of batches with the number of rows, and the text for people.
const REMAINS: [(&str, &str); 4] = [
    ("lost_vectors", "{#} {vector|vectors} of earlier texts {goes|go}; `backfill embeddings` makes new ones"),
    (
        "kept_vectors",
        "{#} {row keeps|rows keep} the vector of {its earlier text, if it has|their earlier texts, if they have} one; \
         `backfill embeddings` makes new ones where it can write them",
    ),
    (
        "kept_copies",
        "{#} {row keeps|rows keep} what was computed from {its earlier text|their earlier texts}, such as a hash: \
         other rows refer to it",
    ),
    (
        "kept_words",
        "{#} {row keeps|rows keep} search words of {its earlier text|their earlier texts}, until the application or a \
         trigger updates them",
    ),
];

/// Records the values left from earlier texts as facts of a batch, each reported once.
pub fn note_remains(draft: &mut Draft<'_>, remains: &[TextRemains]) {
    let count = |is: fn(&&TextRemains) -> bool| remains.iter().filter(is).count();
    let counts =
        [count(|r| r.loses_vector), count(|r| r.keeps_vector), count(|r| r.keeps_copies), count(|r| r.keeps_words)];
    REMAINS.iter().zip(counts).for_each(|((fact, _), rows)| spare(draft, fact, rows));
    for told in [&mut draft.effects, &mut draft.disclosures] {
        told.sort_unstable();
        told.dedup();
    }
}

/// Reports the values left from earlier texts, by the facts of all batches.
pub fn remains(sums: &Map<String, Value>) -> Vec<String> {
    let rows = |fact: &str| sums.get(fact).and_then(Value::as_u64).filter(|rows| *rows > 0);
    REMAINS.iter().filter_map(|(fact, words)| Some(agreeing(rows(fact)?, words))).collect()
}

/// The rows whose texts are cleaned.
pub const PARTS: [RowPart; CLEANED.len()] = {
    let mut parts = [const { part(0) }; CLEANED.len()];
    let mut at = 1;
    while at < CLEANED.len() {
        parts[at] = part(at);
        at += 1;
    }
    parts
};

const fn part(at: usize) -> RowPart {
    let (entity, columns) = CLEANED[at];
    RowPart { entity, reads: columns, writes: columns, needs: &[], narrow: &[] }
}

/// Counts the rows that still hold what is removed, wherever it stands: where nothing is written, it stays, and that is
/// said by number. Where that is `grave`, what could not be written fails the check; a log, which never is, and what a legal hold
/// keeps do not.
///
/// # Errors
/// The engine's refusal.
pub async fn kept(
    store: &Store,
    what: &str,
    grave: bool,
    holds: fn(&HeldText) -> bool,
) -> Result<Vec<JobCheck>, ChangeError> {
    let held = HeldRows::of(store).await?;
    let (mut logged, mut kept, mut others) = (0, 0, Vec::new());
    let mut scanner = TextScanner::default();
    for entity in Entity::ALL.iter().copied().filter(|entity| store.sources_of(*entity).is_ok()) {
        let is_log = matches!(entity, Entity::WorkflowEvent | Entity::AuditEntry);
        let (mut rows, mut named) = (0, Vec::new());
        let each = |row: Row| {
            if !holds(&scanner.whole(&row)) {
                return ControlFlow::Continue(());
            }
            if !is_log && held.keeps(&row) {
                kept += 1;
            } else {
                rows += 1;
                if named.len() < NAMED && !row.id().is_empty() {
                    named.push(text_check::visible(&text_check::check(row.id()).0));
                }
            }
            ControlFlow::Continue(())
        };
        store.walks().each_row(&Query { unparsed: false, ..Query::new(entity) }, each).await?;
        match rows {
            0 => {}
            _ if is_log => logged += rows,
            _ if named.is_empty() => others.push(format!("{rows} of {entity}")),
            _ => others.push(format!("{rows} of {entity} ({})", named.join(", "))),
        }
    }
    held.check()?;
    let mut checks = Vec::new();
    if logged > 0 {
        let found = agreeing(logged, &format!("{{#}} {{row holds|rows hold}} {what}: a log is never rewritten"));
        checks.push(JobCheck { what: "event logs and audit trails".to_owned(), ok: true, found });
    }
    if kept > 0 {
        let found = agreeing(kept, &format!("{{#}} {{row holds|rows hold}} {what}; `unhold` ends a hold"));
        checks.push(JobCheck { what: "rows of people under a legal hold".to_owned(), ok: true, found });
    }
    if !others.is_empty() {
        let found = format!(
            "{}: ids, and what this backfill cannot write, still hold {what}; `edit` may change it row by row",
            others.join(", ")
        );
        checks.push(JobCheck { what: "rows that are left unchanged".to_owned(), ok: !grave, found });
    }
    Ok(checks)
}

/// Removal of something from texts.
pub struct Cleaning {
    /// Name of it.
    pub what: &'static str,
    /// Whether a text within a JSON document may stay as it is.
    pub stays: fn(JsonText<'_>) -> bool,
    /// Makes a value without it; none when it may stay as it is.
    pub clean: fn(&Value) -> Option<Value>,
}

/// Judges rows by what each of their texts should be.
pub fn judge(bench: RowBench<'_>, cleaning: &Cleaning) -> Vec<RowVerdict> {
    bench.found.iter().map(|found| verdict(bench, found, cleaning)).collect()
}

fn verdict(bench: RowBench<'_>, found: &WalkedRow, cleaning: &Cleaning) -> RowVerdict {
    let (row, Cleaning { what, clean, .. }) = (&found.row, cleaning);
    let mut values = Vec::new();
    for column in row.entity.columns().iter().filter(|c| c.holds_words() && can_set(bench.source, c.name)) {
        let name = column.name;
        let taken = if document_stays(row, name, cleaning) { None } else { clean(row.get(name)) };
        if let Some(problem) = row.problems.iter().find(|p| p.column == name) {
            if taken.is_some() || clean(&Value::from(problem.raw.as_str())).is_some() {
                return RowVerdict::Bad(format!("{name} holds {what} and cannot be read properly"));
            }
        } else if taken.is_some() && column.kind == ValueKind::Json && packed(&found.stored) {
            return RowVerdict::Bad(format!("{name} holds {what} in packed bytes, which only its writer can replace"));
        } else if let Some(value) = taken {
            values.push((name, value));
        }
    }
    if values.is_empty() { RowVerdict::Keep } else { RowVerdict::Set(values) }
}

/// Whether a column holds a long JSON document in which all texts may stay: no value is made of it, which would take twenty
/// times the memory.
fn document_stays(row: &Row, column: &str, cleaning: &Cleaning) -> bool {
    let JsonPart::Document(text) = row.json(column) else { return false };
    let mut all_stay = true;
    each_text(text, &mut |text| all_stay = all_stay && (cleaning.stays)(text)).is_ok() && all_stay
}

/// Whether a row holds bytes: compressed JSON is not written back.
fn packed(stored: &[FetchedValue]) -> bool {
    let is_bytes = |raw: &FetchedValue| match raw {
        FetchedValue::Bytes(_) => true,
        FetchedValue::Text(text) => text.starts_with("\\x"),
        _ => false,
    };
    stored.iter().any(is_bytes)
}
