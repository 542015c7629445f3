//! Rows that depend on the rows of a table by a foreign key, and the vectors among them.

use std::collections::HashMap;

use super::embedding::VectorShelf;
use super::encode::table_of;
use super::fetched::FetchedValue;
use super::foreign_keys::{ColumnKey, OnDelete};
use super::row_list::row_digest;
use super::shape::Comparison;
use super::snapshot::WantedRows;
use super::stored::{StoredRows, TableName};
use super::{ShapeReader, StoreError};
use crate::layout::BoundSource;
use crate::memory::vector::read_floats;

/// A table whose rows depend on another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hanging {
    /// Table whose rows depend on another's.
    pub table: TableName,
    /// Column that refers to the other row.
    pub column: String,
    /// Columns that identify its rows.
    pub key: Vec<String>,
    /// Whether the rows are deleted with the other row: the column is NOT NULL, or the foreign key cascades.
    pub bound: bool,
    /// Whether other tables refer to its rows, or it is listed under another column too.
    pub referred: bool,
    /// Comparison between the column and its target, if it differs from the column's own.
    pub compared: Option<Comparison>,
    /// Column with a vector; `None` if it has none.
    pub vector: Option<String>,
}

impl ShapeReader<'_> {
    /// The tables whose rows depend on a source's rows, with their id in that column: by a foreign key, or because the
    /// layout stores their vectors there.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn dependents_of(self, source: &BoundSource, id: &str) -> Result<Vec<Hanging>, StoreError> {
        let of = table_of(source);
        let mut references = self.column_keys_to(&of).await?;
        if let Ok(VectorShelf { table, key: Some(column), .. }) = VectorShelf::of(source)
            && !references.iter().any(|r| r.from == table && r.column == column)
        {
            references.push(ColumnKey { from: table, column, to: of.clone(), to_column: id.to_owned() });
        }
        let mut hanging = Vec::new();
        if references.is_empty() {
            return Ok(hanging);
        }
        let relations = self.store.snapshot().await?.relations().await?;
        references.retain(|reference| reference.to_column.eq_ignore_ascii_case(id));
        let tables: Vec<TableName> = references.iter().map(|reference| reference.from.clone()).collect();
        for reference in references {
            let shape = self.shape(&reference.from).await?;
            let key = relations.keys.get(&reference.from).cloned().unwrap_or_default();
            let vector = shape.columns.iter().find(|c| {
                let name = c.name.to_ascii_lowercase();
                c.declared.to_ascii_lowercase().starts_with("vector") || name == "embedding" || name == "vector"
            });
            let required = shape.column(&reference.column).is_some_and(|c| c.required);
            let goes_along = relations.foreign.iter().any(|foreign| {
                foreign.on_delete == OnDelete::Cascade
                    && (&foreign.from, &foreign.to) == (&reference.from, &of)
                    && foreign.columns == [reference.column.as_str()]
            });
            hanging.push(Hanging {
                referred: relations.foreign.iter().any(|foreign| foreign.to == reference.from)
                    || tables.iter().filter(|table| **table == reference.from).count() > 1,
                bound: required || goes_along || key.contains(&reference.column),
                vector: vector.map(|c| c.name.clone()),
                compared: relations.comparison((&reference.from, &reference.column), (&of, &reference.to_column)),
                table: reference.from,
                column: reference.column,
                key,
            });
        }
        Ok(hanging)
    }

    /// The keys by which a column refers to some rows, in the spelling of the column if its comparison is not its own.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn spelled(
        self,
        (table, column): (&TableName, &str),
        compared: Option<Comparison>,
        keys: &[Vec<FetchedValue>],
    ) -> Result<Vec<Vec<FetchedValue>>, StoreError> {
        if compared.is_none() {
            return Ok(keys.to_vec());
        }
        let by = [column.to_owned()];
        let wanted = WantedRows { table, columns: &by, when: None, subject: &[] };
        let mut spelled = Vec::new();
        let mut snapshot = self.store.snapshot().await?;
        snapshot.each_compared(wanted, (&by, &[compared]), keys, |row| spelled.push(row)).await?;
        spelled.sort_unstable_by_key(|row| row_digest(row));
        spelled.dedup();
        Ok(spelled)
    }

    /// Vectors of some rows, by the id of the row they depend on. Unreadable ones are left out.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_beside(
        self,
        hanging: &Hanging,
        ids: &[String],
    ) -> Result<HashMap<String, Vec<f32>>, StoreError> {
        let Some(column) = &hanging.vector else { return Ok(HashMap::new()) };
        let keys = ids.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
        let rows = StoredRows { table: hanging.table.clone(), by: vec![hanging.column.clone()], keys };
        let images = self.images_of(&rows, std::slice::from_ref(column)).await?;
        let read = |image: &super::stored::Image| match image.get(&hanging.column)? {
            FetchedValue::Text(id) => Some((id.clone(), vector(image.get(column)?)?)),
            _ => None,
        };
        Ok(images.iter().filter_map(read).collect())
    }
}

/// Parses a stored vector: little-endian float32 numbers, a JSON list, or PostgreSQL's array text.
fn vector(raw: &FetchedValue) -> Option<Vec<f32>> {
    match raw {
        FetchedValue::Bytes(bytes) => {
            let mut numbers = Vec::new();
            read_floats(bytes, &mut numbers).then_some(numbers)
        }
        FetchedValue::Text(text) => {
            let inner = text.trim().strip_prefix(['[', '{'])?.strip_suffix([']', '}'])?;
            inner.split(',').map(|number| number.trim().parse().ok()).collect()
        }
        _ => None,
    }
}
