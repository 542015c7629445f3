//! What backfills share that take something out of every free text.

use serde_json::Value;

use super::rows::{Bench, Part, Verdict};
use crate::memory::{Entity, Kind};
use crate::store::session::Raw;
use crate::store::walk::Found;

macro_rules! part {
    ($entity:ident: $($column:literal),*) => {
        Part {
            entity: Entity::$entity,
            reads: &["id", $($column),*],
            writes: &[$($column),*],
            needs: &[],
            narrow: &[],
        }
    };
}

/// Entities and their columns of free text: those of [`CLEANED`].
///
/// [`CLEANED`]: crate::memory::findings::CLEANED
pub const PARTS: &[Part] = &[
    part!(Episode: "title", "summary", "detail", "observation", "insight", "metadata", "thoughts", "actions", "result",
            "key_decisions", "context"),
    part!(Segment: "content"),
    part!(CanvasEvent: "metadata"),
    part!(Feedback: "correction"),
    part!(Memory: "title", "text", "metadata"),
    part!(Case: "prompt", "plan", "traces"),
    part!(UtilityEvent: "reason"),
    part!(Access: "query"),
];

/// Judges rows by what each of their texts should be: `clean` gives none where it may stay as it is. `what` names what is
/// taken out.
pub fn judge(bench: Bench<'_>, what: &str, clean: impl Fn(&Value) -> Option<Value>) -> Vec<Verdict> {
    bench.found.iter().map(|found| verdict(bench, found, what, &clean)).collect()
}

fn verdict(bench: Bench<'_>, found: &Found, what: &str, clean: &impl Fn(&Value) -> Option<Value>) -> Verdict {
    let row = &found.row;
    let mut values = Vec::new();
    for column in row.entity.columns().iter().filter(|c| bench.revising.writes(c.name)) {
        let (name, taken) = (column.name, clean(row.get(column.name)));
        if let Some(problem) = row.problems.iter().find(|p| p.column == name) {
            if taken.is_some() || clean(&Value::from(problem.raw.as_str())).is_some() {
                return Verdict::Bad(format!("{name} holds {what} and cannot be read as it should be"));
            }
        } else if taken.is_some() && column.kind == Kind::Json && packed(&found.stored) {
            return Verdict::Bad(format!("{name} holds {what} in packed bytes, which only its writer can replace"));
        } else if let Some(value) = taken {
            values.push((name, value));
        }
    }
    if values.is_empty() { Verdict::Keep } else { Verdict::Set(values) }
}

/// Whether a row holds bytes: compressed JSON is not written back.
fn packed(stored: &[Raw]) -> bool {
    let is_bytes = |raw: &Raw| match raw {
        Raw::Bytes(_) => true,
        Raw::Text(text) => text.starts_with("\\x"),
        _ => false,
    };
    stored.iter().any(is_bytes)
}
