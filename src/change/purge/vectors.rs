//! Vectors of deleted rows: they are searched for in bytes afterwards, and their nearest neighbours are queried.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::taken::GoingRows;
use crate::change::ChangeError;
use crate::layout::vector::VectorsBeside;
use crate::store::Store;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::proof::needles::{NeedleContext, NeedleForm, Needles};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Most vectors to search for.
const LOOKED_FOR: usize = 64;
/// Most vectors whose neighbours are queried.
const ASKED: usize = 3;
/// Neighbours per query.
const NEIGHBOURS: usize = 10;

/// A vector of a deleted row, in stored form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OldVector {
    /// Table.
    pub table: TableName,
    /// Column of the row's id.
    pub id: String,
    /// The further columns of a composite id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Column of the vector.
    pub column: String,
    /// Whether the engine can search for its neighbours.
    pub native: bool,
    /// The stored value.
    pub value: FetchedValue,
}

impl OldVector {
    fn numbers(&self) -> Option<Vec<f32>> {
        match &self.value {
            FetchedValue::Text(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }
}

/// Columns that hold vectors, and whether the engine can search for neighbours in them.
pub fn places(store: &Store) -> Vec<(TableName, String, bool)> {
    let mut places: Vec<(TableName, String, bool)> = Vec::new();
    for source in &store.recognised().sources {
        let Some(vector) = &source.vector else { continue };
        let (schema, table) = match &vector.beside {
            Some(VectorsBeside { table: Some(table), .. }) => table.clone(),
            // Computed by a query: there is no column to read.
            Some(_) => continue,
            None => source.table.clone(),
        };
        let place = (TableName::new(schema, table), vector.column.clone(), vector.declared.starts_with("vector"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Some vectors of rows to delete.
///
/// # Errors
/// The engine's refusal.
pub async fn some(snapshot: &mut Snapshot<'_>, deletes: &[GoingRows]) -> Result<Vec<OldVector>, ChangeError> {
    let mut all = Vec::new();
    for (table, column, native) in places(snapshot.store) {
        let rows = deletes.iter().find(|rows| rows.table == table);
        let Some((rows, (id, with))) = rows.and_then(|rows| Some((rows, rows.by.split_first()?))) else { continue };
        let keys: Vec<Vec<FetchedValue>> = rows.all_keys().take(LOOKED_FOR).collect();
        let columns = [column.clone()];
        let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
        for value in snapshot.select_keys(wanted, &rows.by, &keys).await?.into_iter().flatten() {
            if !matches!(value, FetchedValue::Null) {
                let (table, id, with, column) = (table.clone(), id.clone(), with.to_vec(), column.clone());
                all.push(OldVector { table, id, with, column, native, value });
            }
        }
    }
    all.truncate(LOOKED_FOR);
    Ok(all)
}

/// The vectors in stored form.
pub fn stored(vectors: &[OldVector]) -> Vec<Vec<u8>> {
    vectors.iter().filter_map(|vector| vector.value.bytes().map(<[u8]>::to_vec)).collect()
}

/// Places of vector pieces that remaining rows share, as with equal texts: each place of such a vector may be theirs.
/// `found` are the needles found in vectors of these rows.
pub fn shared(needles: &Needles, found: &HashSet<usize>) -> Vec<NeedleContext> {
    let all = || needles.iter().enumerate().filter(|(_, needle)| needle.form == NeedleForm::Vector);
    let handles: HashSet<usize> = all().filter(|(n, _)| found.contains(n)).map(|(_, needle)| needle.handle).collect();
    let anywhere = |needle| NeedleContext { needle, before: Vec::new(), after: Vec::new() };
    all().filter(|(_, needle)| handles.contains(&needle.handle)).map(|(n, _)| anywhere(n)).collect()
}

/// Queries the engine's own index for the neighbours of old vectors. Returns how many were queried, and how many
/// neighbours are deleted rows.
///
/// # Errors
/// The engine's refusal.
pub async fn neighbours(store: &Store, vectors: &[OldVector], gone: &[GoingRows]) -> Result<(usize, u64), ChangeError> {
    let (mut asked, mut hits) = (0, 0);
    for vector in vectors.iter().filter(|v| v.native).take(ASKED) {
        let Some(numbers) = vector.numbers() else { continue };
        let by: Vec<&str> = std::iter::once(&vector.id).chain(&vector.with).map(String::as_str).collect();
        let near = store.proof().nearest_keys(&vector.table, &by, &vector.column, &numbers, NEIGHBOURS).await?;
        let Some(near) = near else { continue };
        asked += 1;
        let rows = gone.iter().filter(|rows| rows.table == vector.table);
        let gone = rows.flat_map(GoingRows::all_keys).filter_map(|key| key.iter().map(as_text).collect::<Option<_>>());
        hits += gone.filter(|key| near.contains(key)).collect::<HashSet<Vec<String>>>().len() as u64;
    }
    Ok((asked, hits))
}
