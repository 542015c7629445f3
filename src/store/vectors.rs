//! Vectors of a database: where they are stored, which rows lack one, and which are of another size than most.

use super::dialect::quote;
use super::encode::plain_column;
use super::fetched::FetchedValue;
use super::{StoreError, VectorReader};
use crate::layout::{CatalogTable, Engine};
use crate::memory::Entity;
use crate::memory::findings::FindingTally;

/// A column of vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPlace {
    /// Entity that the vectors belong to.
    pub entity: Entity,
    /// They stand beside the rows' other values, not in a table of their own.
    pub beside: bool,
    table: (String, String),
    key: String,
    column: String,
    declared: String,
}

/// Tables that hold nothing but vectors, with the entity and the key.
const OWN_TABLES: &[(&str, Entity, &str)] =
    &[("agent_memory_embeddings", Entity::Case, "case_id"), ("episode_embeddings", Entity::Episode, "episode_id")];

impl VectorReader<'_> {
    /// The columns of vectors that belong to known rows.
    #[must_use]
    pub fn vector_places(self) -> Vec<VectorPlace> {
        let mut places = Vec::new();
        for table in &self.store.catalog.tables {
            let Some(column) = table.readable("embedding") else { continue };
            let place = |entity, beside, key: &str| VectorPlace {
                entity,
                beside,
                table: (table.schema.clone(), table.name.clone()),
                key: key.to_owned(),
                column: column.name.clone(),
                declared: column.declared.clone(),
            };
            let own = OWN_TABLES.iter().find(|(name, ..)| *name == table.name);
            if let Some((_, entity, key)) = own.filter(|(.., key)| table.readable(key).is_some()) {
                places.push(place(*entity, false, key));
            } else if let Some(entity) = self.entity_of(table).filter(|_| table.readable("id").is_some()) {
                places.push(place(entity, true, "id"));
            }
        }
        places
    }

    fn entity_of(self, table: &CatalogTable) -> Option<Entity> {
        let sources =
            self.store.recognised.sources.iter().filter(|s| s.table == (table.schema.clone(), table.name.clone()));
        sources.map(|s| s.entity).find(|e| matches!(e, Entity::Episode | Entity::Case | Entity::Memory))
    }

    /// Rows without a vector, where some have one.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_missing(self, place: &VectorPlace, most: usize) -> Result<FindingTally, StoreError> {
        let (from, column) = (from(place), quote(&place.column));
        // Nobody uses vectors where there is not one.
        let some = self.store.fetch_text(&format!("SELECT 1 FROM {from} WHERE {column} IS NOT NULL LIMIT 1")).await?;
        if some.is_empty() {
            return Ok(FindingTally::default());
        }
        if place.beside {
            return self.tally(&from, &quote(&place.key), &format!("{column} IS NULL"), most).await;
        }
        let of = |s: &&crate::layout::BoundSource| s.entity == place.entity;
        let source = self.store.recognised.sources.iter().find(of);
        let Some((id, source)) = source.and_then(|s| Some((plain_column(s, "id")?.0, s))) else {
            return Ok(FindingTally::default());
        };
        let rows = format!("{}.{} t", quote(&source.table.0), quote(&source.table.1));
        let key = format!("t.{}", quote(id));
        let own = format!("v.{} = {key} AND v.{column} IS NOT NULL", quote(&place.key));
        self.tally(&rows, &key, &format!("NOT EXISTS (SELECT 1 FROM {from} v WHERE {own})"), most).await
    }

    /// Rows whose vector has another size than most. A column that fixes the size has none.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn vectors_of_odd_size(self, place: &VectorPlace, most: usize) -> Result<FindingTally, StoreError> {
        let column = quote(&place.column);
        let size = match (self.store.engine(), place.declared.as_str()) {
            (_, declared) if declared.starts_with("vector(") => return Ok(FindingTally::default()),
            (Engine::Postgres, "vector") => format!("vector_dims({column})"),
            (Engine::Postgres, "bytea") => format!("length({column})"),
            // One column may hold both forms: four bytes a number, or a list of them.
            (Engine::Sqlite, _) => format!(
                "CASE WHEN typeof({column}) = 'blob' THEN length({column}) \
                 WHEN json_valid({column}) THEN 4 * json_array_length({column}) END"
            ),
            (Engine::Postgres, "json" | "jsonb") => format!(
                "CASE WHEN jsonb_typeof({column}::jsonb) = 'array' THEN jsonb_array_length({column}::jsonb) END"
            ),
            (Engine::Postgres, _) => return Ok(FindingTally::default()),
        };
        let from = from(place);
        let common = format!(
            "SELECT {size} FROM {from} WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        );
        let common = match self.store.fetch_text(&common).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(size)) => *size,
            _ => return Ok(FindingTally::default()),
        };
        self.tally(&from, &quote(&place.key), &format!("{column} IS NOT NULL AND {size} <> {common}"), most).await
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

fn from(place: &VectorPlace) -> String {
    format!("{}.{}", quote(&place.table.0), quote(&place.table.1))
}
