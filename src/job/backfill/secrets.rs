//! Takes tokens, keys and passwords out of stored text.

use super::rows::{self, Bench, Part, Spec, Verdict};
use crate::change::ChangeError;
use crate::job::Job;
use crate::memory::text_check::{self, Found as Secrets};
use crate::memory::{Entity, Kind};
use crate::store::Store;
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

const SPEC: Spec = Spec {
    name: "secrets",
    operation: "backfill.secrets",
    parts: &[
        part!(Episode: "title", "summary", "detail", "observation", "insight", "metadata", "thoughts", "actions", "result",
            "key_decisions", "context"),
        part!(Segment: "content"),
        part!(CanvasEvent: "metadata"),
        part!(Feedback: "correction"),
        part!(Memory: "title", "text", "metadata"),
        part!(Case: "prompt", "plan", "traces"),
    ],
    judge: |bench| Box::pin(async move { Ok(judge(bench)) }),
    rules: &["tokens, keys and passwords that are known by their form are replaced by a word that names their kind"],
    disclosures: &["what stands in JSON is written anew in its shortest spelling where something was taken out"],
    undo_reason: Some("what was taken out is kept nowhere"),
    takes_away: true,
};

/// The backfill, where any text can be written.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    rows::make(store, &SPEC)
}

fn judge(bench: Bench<'_>) -> Vec<Verdict> {
    bench.found.iter().map(|found| verdict(bench, found)).collect()
}

fn verdict(bench: Bench<'_>, found: &Found) -> Verdict {
    let row = &found.row;
    let mut values = Vec::new();
    for column in row.entity.columns().iter().filter(|c| bench.revising.writes(c.name)) {
        let value = row.get(column.name);
        let mut secrets = Secrets::default();
        let clean = text_check::check_value(value, &mut secrets);
        let taken = !secrets.secrets.is_empty();
        if let Some(problem) = row.problems.iter().find(|p| p.column == column.name) {
            if taken || !text_check::check(&problem.raw).1.secrets.is_empty() {
                return Verdict::Bad(format!("{} holds a secret and cannot be read as it should be", column.name));
            }
        } else if taken && column.kind == Kind::Json && packed(&found.stored) {
            return Verdict::Bad(format!(
                "{} holds a secret in packed bytes, which only its writer can replace",
                column.name
            ));
        } else if taken {
            values.push((column.name, clean));
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
