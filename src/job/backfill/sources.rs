//! Common code of backfills for reading and writing: places in several sources, and revisions of canonical columns.

use serde_json::{Value, json};

use crate::change::suppress::Erased;
use crate::change::{ChangeError, Draft};
use crate::layout::BoundSource;
use crate::memory::{Entity, Row};
use crate::recall::keyword;
use crate::store::encode::{GivenValue, encode, plain_column, touched};
use crate::store::fetched::FetchedValue;
use crate::store::shape::TableShape;
use crate::store::stored::{Cell, Mutation, Revision, RowRevisions};
use crate::store::walk::{WalkedRow, keyed};
use crate::store::{Store, StoreError};

/// A position in the sources of an entity: the source, and the stored id after which to continue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SourcePlace {
    /// Position of the source.
    pub source: usize,
    /// Id of the last row processed there.
    pub after: Option<FetchedValue>,
}

impl SourcePlace {
    /// Parses a position; an invalid one is the beginning.
    pub fn read(value: &Value) -> Self {
        let after = serde_json::from_value(value["after"].clone()).ok().filter(|raw| *raw != FetchedValue::Null);
        SourcePlace { source: value["source"].as_u64().unwrap_or_default() as usize, after }
    }

    /// The position after the rows of a batch: further in the source if the batch was full, otherwise the next source.
    /// `None` at the end.
    pub fn behind(&self, last: Option<&FetchedValue>, full: bool, sources: usize) -> Option<Value> {
        match last {
            Some(key) if full => Some(json!({ "source": self.source, "after": key })),
            _ if self.source + 1 < sources => Some(json!({ "source": self.source + 1 })),
            _ => None,
        }
    }
}

/// The writable sources of an entity with some canonical columns in stored columns of their own table.
///
/// # Errors
/// [`ChangeError::Refused`] with the reason why there is none.
pub fn writable<'s>(store: &'s Store, entity: Entity, columns: &[&str]) -> Result<Vec<&'s BoundSource>, ChangeError> {
    let mut why = None;
    let mut sources = Vec::new();
    for source in store.sources_of(entity)? {
        match lacks(store, source, columns) {
            None => sources.push(source),
            Some(reason) => why = Some(why.unwrap_or(reason)),
        }
    }
    match why {
        Some(reason) if sources.is_empty() => Err(ChangeError::Refused(reason)),
        _ => Ok(sources),
    }
}

fn lacks(store: &Store, source: &BoundSource, columns: &[&str]) -> Option<String> {
    let title = source.entity.title();
    match &source.write {
        None => return Some(format!("the layout {} only reads {}", source.layout, source.label)),
        Some(write) if write.refuse.is_some() => return write.refuse.clone(),
        Some(_) => {}
    }
    if keyed(source).is_err() {
        return Some(format!("the rows of {} have no id in one plain column", source.label));
    }
    let missing: Vec<&str> = columns.iter().copied().filter(|c| plain_column(source, c).is_none()).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "{} has no column for the {title} {}; if the layout has a migration that adds it, `{}` shows it",
            source.label,
            missing.join(", "),
            store.invocation().line(["migrate"])
        )
    })
}

/// The stored columns to write for canonical ones: of several readings, the first in the source's own table. The others
/// are fallbacks for reading.
fn stored_columns(source: &BoundSource, shape: &TableShape, columns: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in columns.iter().filter_map(|c| plain_column(source, c)) {
        if shape.column(name).is_some() && !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Rows of one source with changes in the same canonical columns.
#[derive(Debug)]
pub struct RevisedRows<'s> {
    source: &'s BoundSource,
    shape: std::sync::Arc<TableShape>,
    columns: Vec<&'static str>,
    /// The stored columns, to be read with the rows, in the order that [`RevisedRows::row`] expects.
    pub stored: Vec<String>,
    revise: RowRevisions,
}

impl<'s> RevisedRows<'s> {
    /// Rows of a source, before any is added.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn new(
        store: &Store,
        source: &'s BoundSource,
        columns: &[&'static str],
    ) -> Result<RevisedRows<'s>, StoreError> {
        let (table, key) = keyed(source)?;
        let shape = store.shapes().shape(&table).await?;
        let columns: Vec<&'static str> =
            columns.iter().copied().filter(|c| plain_column(source, c).is_some()).collect();
        let stored = stored_columns(source, &shape, &columns);
        // The time of the last change stays: a backfilled value is not a change by an agent, and undoing must restore
        // the rows exactly.
        let revise =
            RowRevisions { table, key: vec![key], columns: stored.clone(), rows: Vec::new(), touch: Vec::new() };
        Ok(RevisedRows { source, shape, columns, stored, revise })
    }

    /// Sets the time of this change on the rows, if the layout stores one: their text has changed, and copies should be
    /// refreshed.
    pub fn touch(&mut self) {
        self.revise.touch = touched(self.source, &self.shape);
    }

    /// Whether a canonical column can be written.
    pub fn writes(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// Whether new texts of a row affect more than their own columns: they are within stored values, or copies, hashes,
    /// vectors or search words are derived from them.
    pub fn reaches_further(&self, values: &[(&'static str, Value)]) -> bool {
        let source = self.source;
        let words = keyword::text_columns(source.entity);
        let is_searched = source.entity == Entity::Case
            || source.vector.is_some()
            || self.shape.columns.iter().any(|column| column.compared == "tsvector");
        let mut copied = source.write.iter().flat_map(|write| &write.copies).flat_map(|copy| &copy.of);
        values.iter().any(|(column, _)| is_searched && words.contains(column))
            || values.iter().any(|(column, _)| source.column(column).iter().any(|way| !way.inside.is_whole()))
            || copied.any(|of| values.iter().any(|(column, _)| of == column))
    }

    /// Whether nothing is stored for a canonical column in a row read with the stored columns.
    pub fn is_absent(&self, stored: &[FetchedValue], column: &str) -> bool {
        self.stored_of(stored, column) == Some(&FetchedValue::Null)
    }

    /// The stored text of a canonical column in such a row.
    pub fn stored_text<'r>(&self, stored: &'r [FetchedValue], column: &str) -> Option<&'r str> {
        match self.stored_of(stored, column) {
            Some(FetchedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn stored_of<'r>(&self, stored: &'r [FetchedValue], column: &str) -> Option<&'r FetchedValue> {
        let (name, _) = plain_column(self.source, column)?;
        stored.get(self.stored.iter().position(|s| s == name)?)
    }

    /// Adds a row read with the stored columns, with its new canonical values in column order. An unchanged row is left
    /// out.
    ///
    /// # Errors
    /// A message about a value that cannot be stored.
    pub fn row(
        &mut self,
        key: &FetchedValue,
        before: &[FetchedValue],
        values: Vec<(&'static str, Value)>,
    ) -> Result<bool, String> {
        let mut after = before.to_vec();
        for (column, value) in values.into_iter().filter(|(c, _)| self.columns.contains(c)) {
            let given = GivenValue::Is(value);
            for (name, cell) in encode(self.source, &self.shape, column, &given)? {
                let at = self.stored.iter().position(|stored| *stored == name);
                if let (Some(at), Cell::Is(raw)) = (at, cell) {
                    after[at] = raw;
                }
            }
        }
        if after == before {
            return Ok(false);
        }
        self.revise.rows.push(Revision(vec![key.clone()], before.to_vec(), after));
        Ok(true)
    }

    /// Adds the rows to a plan.
    pub fn push(self, draft: &mut Draft<'_>) {
        if !self.revise.rows.is_empty() {
            draft.push(Mutation::Revise(self.revise));
        }
    }
}

/// The key of a row and the value of its one column, unless they are the id and empty: of very many rows, the usual
/// ones need no memory.
pub fn unusual(found: WalkedRow) -> Option<Box<(FetchedValue, Vec<FetchedValue>)>> {
    let is_id = matches!(&found.key, FetchedValue::Text(key) if key == found.row.id());
    (!is_id || found.stored != [FetchedValue::Null]).then(|| Box::new((found.key, found.stored)))
}

/// The key and the value of a row, from the result of [`unusual`].
pub fn usual_or(id: &str, kept: Option<&(FetchedValue, Vec<FetchedValue>)>) -> (FetchedValue, Vec<FetchedValue>) {
    kept.map_or_else(|| (FetchedValue::Text(id.to_owned()), vec![FetchedValue::Null]), Clone::clone)
}

/// Records the change of a row: in full while there is room, otherwise only its number.
pub fn note(draft: &mut Draft<'_>, before: &Row, values: &[(&'static str, Value)]) {
    noted(draft, before.entity, before.id(), values, |column| before.get(column).clone());
}

/// As [`note`], moving the values out of a row that is no longer needed: a list may have a million ids.
pub fn note_taken(draft: &mut Draft<'_>, before: &mut Row, values: &[(&'static str, Value)]) {
    let (entity, id) = (before.entity, before.id().to_owned());
    noted(draft, entity, &id, values, |column| before.take(column));
}

/// Records the change of a row, with the previous values of columns from `before`.
pub fn noted(
    draft: &mut Draft<'_>,
    entity: Entity,
    id: &str,
    values: &[(&'static str, Value)],
    mut before: impl FnMut(&str) -> Value,
) {
    if !draft.wants_more() {
        draft.count(1);
        return;
    }
    let was = values.iter().map(|(c, _)| ((*c).to_owned(), before(c))).collect();
    let is = values.iter().map(|(c, v)| ((*c).to_owned(), v.clone())).collect();
    draft.note(entity, id, Value::Object(was), Value::Object(is));
}

/// The columns to read, with the owner if needed.
pub fn with_owner<'c>(columns: &[&'c str], erased: Option<&Erased<'_>>) -> Vec<&'c str> {
    let owner = (erased.is_some() && !columns.contains(&"user_id")).then_some("user_id");
    columns.iter().copied().chain(owner).collect()
}

/// Rows left unchanged because of the person they are about, as a fact of a batch.
pub const ERASED: &str = "erased";
/// Rows that are left unchanged because a legal hold keeps them.
pub const HELD: &str = "held";
/// Rows that are left unchanged because the deciding value cannot be read.
pub const UNREAD: &str = "unread";
/// Canvas events that are not linked, because an episode lists them already.
pub const CLAIMED: &str = "claimed";

/// Notes how many rows were left unchanged, and why.
pub fn spare(draft: &mut Draft<'_>, why: &str, rows: usize) {
    if rows > 0 {
        draft.facts.insert(why.to_owned(), Value::from(rows));
    }
}
