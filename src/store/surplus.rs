//! Data of stored rows beyond their canonical values, needed to restore an export exactly: vectors, stored columns
//! without a canonical one, and values stored in another form than their canonical value would get.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::embedding::{VectorShelf, spelled};
use super::encode::{encode_value, key_columns, plain_column, table_of};
use super::fetched::FetchedValue;
use super::row_number::is_row_number;
use super::select::key_parts;
use super::shape::TableShape;
use super::stored::{Cell, Image, StoredRows, TableName};
use super::{ShapeReader, StoreError};
use crate::layout::{BoundFrom, BoundSource, Engine};
use crate::memory::{Entity, Row, time};

/// Stored values of a table by column.
pub type StoredColumns = Vec<(String, FetchedValue)>;

/// Data of a row beyond its canonical values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surplus {
    /// Vector of the row.
    pub vector: Option<Vec<f32>>,
    /// Engine that stored it.
    pub engine: Option<String>,
    /// Layout by which it was read; `None` in old exports.
    pub layout: Option<String>,
    /// Table of the row; `None` if it is not a row of one table.
    pub table: Option<String>,
    /// Stored columns without a canonical one.
    pub hidden: StoredColumns,
    /// Those of them from which a canonical value is read in part, or in another form; empty in an export.
    pub shown: Vec<String>,
    /// Columns whose stored form differs from the one that the canonical value would get.
    pub spelled: StoredColumns,
    /// The row of a separate table with its vector, if it has more than the key and a vector in the usual form.
    pub beside: Option<(String, StoredColumns)>,
}

impl Surplus {
    /// Whether the row has a vector.
    pub fn has_vector(&self) -> bool {
        self.vector.is_some() || self.beside.is_some()
    }

    /// Notes which hidden columns are among those that the layouts read, by table.
    pub fn note_shown(&mut self, read: &HashMap<String, HashSet<String>>) {
        let Some(read) = self.table.as_ref().and_then(|table| read.get(table)) else { return };
        let names = self.hidden.iter().map(|(name, _)| name);
        self.shown = names.filter(|name| read.contains(*name)).cloned().collect();
    }

    /// Returns the `stored` object of an exported row, without copying; `None` for a row that is not of one table.
    pub fn stored(&self) -> Option<StoredForm<'_>> {
        Some(StoredForm {
            engine: self.engine.as_deref(),
            layout: self.layout.as_deref(),
            table: self.table.as_deref()?,
            hidden: &self.hidden,
            shown: &self.shown,
            spelled: &self.spelled,
            beside: self.beside.as_ref().map(|(table, columns)| BesideForm { table, columns }),
        })
    }
}

/// The engine, the layout, the table and its columns, in the form of an export.
#[derive(Debug, Serialize)]
pub struct StoredForm<'s> {
    engine: Option<&'s str>,
    layout: Option<&'s str>,
    table: &'s str,
    #[serde(serialize_with = "by_name")]
    hidden: &'s StoredColumns,
    #[serde(skip_serializing_if = "is_empty")]
    shown: &'s [String],
    #[serde(serialize_with = "by_name")]
    spelled: &'s StoredColumns,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<BesideForm<'s>>,
}

#[derive(Debug, Serialize)]
struct BesideForm<'s> {
    table: &'s str,
    #[serde(serialize_with = "by_name")]
    columns: &'s StoredColumns,
}

fn is_empty(names: &&[String]) -> bool {
    names.is_empty()
}

fn by_name<S: Serializer>(columns: &StoredColumns, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(columns.iter().map(|(name, raw)| (name, raw)))
}

/// A table that contains rows of an entity.
struct EntityPlace {
    table: TableName,
    /// Canonical columns that identify rows.
    columns: &'static [&'static str],
    /// The stored columns behind them: one each, or several for one id.
    by: Vec<String>,
}

impl ShapeReader<'_> {
    /// Reads the data of some rows of one entity beyond their canonical values, in order.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn surplus(self, entity: Entity, rows: &[Row]) -> Result<Vec<Surplus>, StoreError> {
        let mut all: Vec<Surplus> = vec![Surplus::default(); rows.len()];
        for source in self.store.sources_of(entity)? {
            let Some(found) = found(source) else { continue };
            let shape = self.shape(&found.table).await?;
            let of_source = |(i, row): &(usize, &Row)| {
                all[*i].table.is_none()
                    && (entity != Entity::Feedback || row.text("source") == Some(&source.label))
                    && found.key_of(row).is_some()
                    && found.columns.iter().all(|c| {
                        plain_column(source, c)
                            .is_none_or(|(_, way)| self.store.encoder().can_be(way, row.text(c).unwrap_or_default()))
                    })
            };
            let open: Vec<(usize, &Row)> = rows.iter().enumerate().filter(of_source).collect();
            let key_of = |row: &Row| found.key_of(row).unwrap_or_default();
            let by = found.by.clone();
            let keys = open.iter().map(|(_, row)| key_of(row).into_iter().map(FetchedValue::Text).collect()).collect();
            let images = self.readable(&StoredRows { table: found.table.clone(), by: by.clone(), keys }).await?;
            let images: HashMap<Vec<String>, &Image> = images.iter().map(|image| (key_in(image, &by), image)).collect();
            let ids: Vec<String> = open.iter().map(|(_, row)| row.id().to_owned()).collect();
            let vectors = if source.vector.is_some() {
                self.store.embeddings().vectors(entity, &ids).await?
            } else {
                HashMap::new()
            };
            let shelf = VectorShelf::of(source).ok();
            let beside = self.beside(shelf.as_ref(), &ids).await?;
            for (i, row) in open {
                let Some(image) = images.get(&key_of(row)) else { continue };
                let vector = vectors.get(row.id());
                let mut surplus = self.of_row(source, &shape, image, row, &by);
                surplus.table = Some(found.table.title());
                surplus.layout = Some(source.layout.clone());
                surplus.engine = Some(self.store.engine().name().to_owned());
                if let Some(VectorShelf { table, key, column, declared, .. }) = &shelf {
                    let usual = vector.map(|numbers| spelled(self.store.engine(), declared, numbers));
                    match key {
                        // In the row itself: already in the vector, unless stored in another form.
                        None => surplus.hidden.retain(|(name, raw)| {
                            name != column
                                || *raw != FetchedValue::Null && usual.as_ref().is_none_or(|usual| usual != raw)
                        }),
                        Some(key) => {
                            surplus.beside = beside.get(row.id()).and_then(|image| {
                                let more = image.0.iter().any(|(name, raw)| match &**name {
                                    name if is_row_number(name) => false,
                                    name if name == key => false,
                                    name if name == column => usual.as_ref() != Some(raw),
                                    _ => *raw != FetchedValue::Null,
                                });
                                let columns = image.0.iter().filter(|(name, _)| !is_row_number(name)).map(named);
                                more.then(|| (table.title(), columns.collect()))
                            });
                        }
                    }
                }
                surplus.vector = vector.filter(|numbers| numbers.iter().all(|x| x.is_finite())).cloned();
                all[i] = surplus;
            }
        }
        // A row joined from several tables has a vector too.
        if self.store.embeddings().has_vectors(entity) {
            let open = |i: usize| all[i].table.is_none() && all[i].vector.is_none();
            let ids: Vec<String> = (0..rows.len()).filter(|i| open(*i)).map(|i| rows[i].id().to_owned()).collect();
            let mut vectors = self.store.embeddings().vectors(entity, &ids).await?;
            for i in (0..rows.len()).filter(|i| open(*i)).collect::<Vec<_>>() {
                all[i].vector = vectors.remove(rows[i].id()).filter(|numbers| numbers.iter().all(|x| x.is_finite()));
            }
        }
        Ok(all)
    }

    /// The stored columns that the layouts read, by table.
    pub fn columns_read(self) -> HashMap<String, HashSet<String>> {
        let mut read: HashMap<String, HashSet<String>> = HashMap::new();
        for source in &self.store.recognised().sources {
            read.entry(table_of(source).title()).or_default().extend(source.columns_read());
        }
        read
    }

    /// Stored rows, without columns that our role may not read.
    async fn readable(self, rows: &StoredRows) -> Result<Vec<Image>, StoreError> {
        let table = &rows.table;
        let known = self.store.catalog().exactly(&table.schema, &table.name);
        match known.filter(|t| t.columns.iter().any(|c| c.denied)) {
            None => self.images(rows).await,
            Some(known) => {
                let open: Vec<String> = known.columns.iter().filter(|c| !c.denied).map(|c| c.name.clone()).collect();
                self.images_of(rows, &open).await
            }
        }
    }

    /// The rows of the separate table that hold the vectors of some ids.
    async fn beside(self, shelf: Option<&VectorShelf>, ids: &[String]) -> Result<HashMap<String, Image>, StoreError> {
        let Some((shelf, key)) = shelf.and_then(|s| Some((s, s.key.clone()?))).filter(|_| !ids.is_empty()) else {
            return Ok(HashMap::new());
        };
        let by = vec![key];
        let keys = ids.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
        let images = self.readable(&StoredRows { table: shelf.table.clone(), by: by.clone(), keys }).await?;
        Ok(images.into_iter().map(|image| (key_in(&image, &by).join(""), image)).collect())
    }

    /// The stored columns of a row that its canonical values would not restore.
    fn of_row(self, source: &BoundSource, shape: &TableShape, image: &Image, row: &Row, key: &[String]) -> Surplus {
        let mut usual: HashMap<String, Cell> = HashMap::new();
        for (at, column) in source.entity.columns().iter().enumerate() {
            let value = Some(row.part(at));
            usual.extend(encode_value(source, shape, column.name, value).unwrap_or_default());
        }
        let mapped = |name: &str| {
            let ways = source.entity.columns().iter().filter_map(|c| plain_column(source, c.name));
            usual.contains_key(name) || ways.into_iter().any(|(stored, _)| stored == name)
        };
        let differs = |(name, raw): &&(Arc<str>, FetchedValue)| {
            let declared = shape.column(name).map_or("", |c| c.compared.as_str());
            !matches!(usual.get(&**name), Some(Cell::Is(cell)) if is_same(self.store.engine(), declared, cell, raw))
        };
        let stored = image.0.iter().filter(|(name, _)| !is_row_number(name) && !key.iter().any(|key| **key == **name));
        let (spelled, hidden): (Vec<_>, Vec<_>) = stored.filter(differs).partition(|(name, _)| mapped(name));
        // Values may be long: frees these before copying others.
        drop(usual);
        let copied = |columns: Vec<&(Arc<str>, FetchedValue)>| columns.into_iter().map(named).collect();
        Surplus { spelled: copied(spelled), hidden: copied(hidden), ..Surplus::default() }
    }
}

/// A stored value with the name of its column.
fn named((name, value): &(Arc<str>, FetchedValue)) -> (String, FetchedValue) {
    (name.to_string(), value.clone())
}

fn found(source: &BoundSource) -> Option<EntityPlace> {
    // Only rows of one table can be written, whatever else they are read from.
    let is_table =
        matches!(source.from, BoundFrom::Table(..)) || source.entity == Entity::Subject || source.is_writable();
    let columns: &[&'static str] =
        if source.entity.column("id").is_some() { &["id"] } else { &["episode_id", "memory_id"] };
    let plain: Option<Vec<_>> = columns.iter().map(|c| Some(plain_column(source, c)?.0.to_owned())).collect();
    let by = plain.or_else(|| key_columns(source, "id").map(|names| names.into_iter().map(str::to_owned).collect()));
    Some(EntityPlace { table: table_of(source), columns, by: by.filter(|_| is_table)? })
}

impl EntityPlace {
    /// The row's key as texts; `None` if the id is not one of this table.
    fn key_of(&self, row: &Row) -> Option<Vec<String>> {
        if self.columns.len() == self.by.len() {
            return Some(self.columns.iter().map(|c| row.text(c).unwrap_or_default().to_owned()).collect());
        }
        let text = |raw| match raw {
            FetchedValue::Text(text) => text,
            FetchedValue::Integer(number) => number.to_string(),
            _ => String::new(),
        };
        Some(key_parts(row.id(), self.by.len())?.into_iter().map(text).collect())
    }
}

/// A stored row's key as texts.
fn key_in(image: &Image, by: &[String]) -> Vec<String> {
    let text = |name: &String| match image.get(name) {
        Some(FetchedValue::Text(text)) => text.clone(),
        Some(FetchedValue::Integer(i)) => i.to_string(),
        _ => String::new(),
    };
    by.iter().map(text).collect()
}

/// Whether both values are stored the same in a column of that type.
fn is_same(engine: Engine, declared: &str, cell: &FetchedValue, raw: &FetchedValue) -> bool {
    if cell == raw {
        return true;
    }
    let (Engine::Postgres, FetchedValue::Text(cell), FetchedValue::Text(raw)) = (engine, cell, raw) else {
        return false;
    };
    let is_time = declared.starts_with("timestamp");
    is_time && time::canonical(cell).is_some_and(|one| time::canonical(raw) == Some(one))
        || declared == "jsonb" && compact(raw) == *cell
        || declared == "boolean" && cell.starts_with(['t', '1']) == raw.starts_with(['t', '1'])
}

/// JSON text without whitespace between its tokens.
fn compact(text: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let keep = |c: &char| {
        let inside = quoted;
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = inside && *c == '\\' && !escaped;
        inside || !c.is_ascii_whitespace()
    };
    text.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_between_parts_go_and_those_in_texts_stay() {
        assert_eq!(compact(r#"{"a b": [1, "x \" , y"]}"#), r#"{"a b":[1,"x \" , y"]}"#);
    }
}
