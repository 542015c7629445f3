//! Vectors of a database: rows without one, and rows with another dimension than most.

use super::dialect::{self, quote};
use super::embedding::VectorShelf;
use super::fetched::FetchedValue;
use super::select::from_clause;
use super::{StoreError, VectorReader};
use crate::layout::{BoundSource, Engine};
use crate::memory::Entity;
use crate::memory::findings::FindingTally;

/// A column of vectors, and the rows they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPlace {
    /// Entity of the rows.
    pub entity: Entity,
    /// The table with the column, as FROM clause.
    from: String,
    /// Key of the row that a vector belongs to.
    key: String,
    /// The column.
    column: String,
    declared: String,
    /// Rows without a vector: FROM clause, id and condition.
    missing: (String, String, String),
}

impl VectorPlace {
    /// The location of the vectors of a source's rows; `None` if no column has one per row, or the rows have no plain
    /// id.
    fn of(source: &BoundSource) -> Option<VectorPlace> {
        let shelf = VectorShelf::of(source).ok()?;
        let [id] = source.column("id") else { return None };
        let id = dialect::expression(&id.origin)?;
        let rows = from_clause(source);
        let kept = source.keep.as_deref().unwrap_or("1 = 1");
        let entity = source.entity;
        let Some(key) = &shelf.key else {
            let column = format!("{}.{}", source.vector.as_ref()?.alias, quote(&shelf.column));
            let missing = (rows.clone(), id.clone(), format!("({kept}) AND {column} IS NULL"));
            return Some(VectorPlace { entity, from: rows, key: id, column, declared: shelf.declared, missing });
        };
        let from = format!("{} AS vec", dialect::table(&shelf.table.schema, &shelf.table.name));
        let (key, column) = (format!("vec.{}", quote(key)), format!("vec.{}", quote(&shelf.column)));
        let own = format!("SELECT 1 FROM {from} WHERE {key} = {id} AND {column} IS NOT NULL");
        let missing = (rows, id, format!("({kept}) AND NOT EXISTS ({own})"));
        Some(VectorPlace { entity, from, key, column, declared: shelf.declared, missing })
    }
}

impl VectorReader<'_> {
    /// The columns of vectors of known rows.
    pub fn vector_places(self) -> Vec<VectorPlace> {
        let mut places: Vec<VectorPlace> = Vec::new();
        for place in self.store.recognised.sources.iter().filter_map(VectorPlace::of) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Rows without a vector, if others have one.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_missing(self, place: &VectorPlace, most: usize) -> Result<FindingTally, StoreError> {
        let VectorPlace { from, column, missing: (rows, id, condition), .. } = place;
        // Without any vector, nobody uses them.
        let some = self.store.fetch_text(&format!("SELECT 1 FROM {from} WHERE {column} IS NOT NULL LIMIT 1")).await?;
        if some.is_empty() {
            return Ok(FindingTally::default());
        }
        self.tally(rows, id, condition, most).await
    }

    /// Rows whose vector has another dimension than most, or is not a vector, such as text. A column with a fixed
    /// dimension has none.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_of_odd_size(self, place: &VectorPlace, most: usize) -> Result<FindingTally, StoreError> {
        let VectorPlace { from, column, .. } = place;
        let size = match (self.store.engine(), place.declared.as_str()) {
            (_, declared) if declared.starts_with("vector(") || declared.starts_with("halfvec(") => {
                return Ok(FindingTally::default());
            }
            (Engine::Postgres, "vector" | "halfvec") => format!("vector_dims({column})"),
            (Engine::Postgres, "bytea") => format!("length({column})"),
            // One column may contain both forms: four bytes per number, or a list of numbers.
            (Engine::Sqlite, _) => format!(
                "CASE WHEN typeof({column}) = 'blob' THEN length({column}) \
                 WHEN json_valid({column}) THEN 4 * json_array_length({column}) END"
            ),
            (Engine::Postgres, "json" | "jsonb") => format!(
                "CASE WHEN jsonb_typeof({column}::jsonb) = 'array' THEN jsonb_array_length({column}::jsonb) END"
            ),
            (Engine::Postgres, array) if array.ends_with("[]") => format!("cardinality({column})"),
            (Engine::Postgres, _) => return Ok(FindingTally::default()),
        };
        let common = format!(
            "SELECT {size} FROM {from} WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        );
        let common = match self.store.fetch_text(&common).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(size)) => *size,
            _ => return Ok(FindingTally::default()),
        };
        self.tally(from, &place.key, &format!("{column} IS NOT NULL AND coalesce({size}, -1) <> {common}"), most).await
    }

    async fn tally(self, from: &str, key: &str, condition: &str, most: usize) -> Result<FindingTally, StoreError> {
        let count = self.store.fetch_text(&format!("SELECT count(*) FROM {from} WHERE {condition}")).await?;
        let count = match count.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(n)) => *n as u64,
            _ => 0,
        };
        let sql = format!("SELECT CAST({key} AS text) FROM {from} WHERE {condition} ORDER BY 1 LIMIT {most}");
        let id = |raw: &FetchedValue| if let FetchedValue::Text(text) = raw { Some(text.clone()) } else { None };
        let rows = self.store.fetch_text(&sql).await?;
        let examples = rows.iter().filter_map(|row| row.first().and_then(id)).collect();
        Ok(FindingTally { count, examples, ..FindingTally::default() })
    }
}
