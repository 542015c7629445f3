//! Storage of the vectors of a source's rows for writing: their stored form, and the dimension of existing ones.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::fetched::FetchedValue;
use super::stored::TableName;
use super::{StoreError, VectorReader};
use crate::layout::vector::VectorsBeside;
use crate::layout::{BoundSource, Engine};
use crate::store::encode::table_of;

/// Stored vectors sampled for their usual dimension.
const SAMPLE: usize = 5_000;

/// Place where the vectors of a source's rows are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorShelf {
    /// The table: the rows' own, or one next to it.
    pub table: TableName,
    /// Column of that table with the row's id; `None` if the vector is in the row itself.
    pub key: Option<String>,
    /// Column of the vector.
    pub column: String,
    /// Declared type of the vector column.
    pub declared: String,
}

impl VectorShelf {
    /// Finds where the vectors of a source's rows are written.
    ///
    /// # Errors
    /// The reason why they cannot be written.
    pub fn of(source: &BoundSource) -> Result<VectorShelf, String> {
        let Some(place) = &source.vector else { return Err(format!("{} has no place for vectors", source.label)) };
        if place.path.is_some() || place.keep.is_some() {
            return Err(format!("the vectors of {} are part of other values", source.label));
        }
        let (column, declared) = (place.column.clone(), place.declared.clone());
        Ok(match &place.beside {
            Some(VectorsBeside { table: Some((schema, name)), key, .. }) if key.len() == 1 => {
                let key = key.first().map(|(name, _)| name.clone());
                VectorShelf { table: TableName::new(schema.clone(), name.clone()), key, column, declared }
            }
            Some(_) => return Err(format!("the vectors of {} are not stored in one column", source.label)),
            None => VectorShelf { table: table_of(source), key: None, column, declared },
        })
    }

    /// Dimension that the column's type requires; `None` if it accepts any.
    pub fn fixed_size(&self) -> Option<usize> {
        let (name, rest) = self.declared.split_once('(')?;
        let is_vector = ["vector", "halfvec", "sparsevec"].iter().any(|of| is_type(name, of));
        rest.trim_end_matches(')').trim().parse().ok().filter(|_| is_vector)
    }
}

/// Whether a declared type is this type of the extension, in any schema and of any dimension.
fn is_type(declared: &str, name: &str) -> bool {
    declared.split('(').next().and_then(|bare| bare.rsplit('.').next()) == Some(name)
}

/// A vector in the form that a column of that type accepts.
pub fn spelled(engine: Engine, declared: &str, numbers: &[f32]) -> FetchedValue {
    let items = || numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(",");
    match (engine, declared.to_ascii_lowercase().as_str()) {
        (Engine::Sqlite, "blob" | "") | (Engine::Postgres, "bytea") => {
            FetchedValue::Bytes(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        (Engine::Postgres, array) if array.ends_with("[]") => FetchedValue::Text(format!("{{{}}}", items())),
        (Engine::Postgres, sparse) if is_type(sparse, "sparsevec") => {
            let placed = numbers.iter().enumerate().filter(|(_, x)| **x != 0.0);
            let placed: Vec<String> = placed.map(|(at, x)| format!("{}:{x}", at + 1)).collect();
            FetchedValue::Text(format!("{{{}}}/{}", placed.join(","), numbers.len()))
        }
        _ => FetchedValue::Text(format!("[{}]", items())),
    }
}

impl VectorReader<'_> {
    /// The dimension of most of the first stored vectors of a source; `None` if there are none.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn usual_vector_size(self, source: &BoundSource) -> Result<Option<usize>, StoreError> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        let mut looked_at = 0;
        self.each_stored_vector(source, |numbers| {
            *sizes.entry(numbers.len()).or_default() += 1;
            looked_at += 1;
            if looked_at == SAMPLE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await?;
        Ok(sizes.into_iter().max_by_key(|(_, count)| *count).map(|(size, _)| size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_spelled_as_its_column_takes_it() {
        let numbers = [1.0, -0.5];
        let bytes = FetchedValue::Bytes(vec![0, 0, 128, 63, 0, 0, 0, 191]);
        for (engine, declared, expected) in [
            (Engine::Sqlite, "BLOB", bytes.clone()),
            (Engine::Sqlite, "JSON", FetchedValue::Text("[1,-0.5]".to_owned())),
            (Engine::Postgres, "bytea", bytes),
            (Engine::Postgres, "vector(2)", FetchedValue::Text("[1,-0.5]".to_owned())),
            (Engine::Postgres, "public.sparsevec(3)", FetchedValue::Text("{1:1,2:-0.5}/2".to_owned())),
            (Engine::Postgres, "real[]", FetchedValue::Text("{1,-0.5}".to_owned())),
        ] {
            assert_eq!(spelled(engine, declared, &numbers), expected, "{declared}");
        }
    }

    #[test]
    fn a_type_may_fix_the_size() {
        let shelf = |declared: &str| VectorShelf {
            table: TableName::new("main", "t"),
            key: None,
            column: "embedding".to_owned(),
            declared: declared.to_owned(),
        };
        assert_eq!(shelf("vector(1536)").fixed_size(), Some(1536));
        assert_eq!(shelf("extensions.vector(3)").fixed_size(), Some(3));
        assert_eq!(shelf("varchar(255)").fixed_size(), None);
        assert_eq!(shelf("vector").fixed_size(), None);
    }
}
