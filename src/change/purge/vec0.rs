//! Vectors of sqlite-vec whose rows are deleted: its `_rowids` table says where in the chunks of a vec0 table they are.
//! They are cleared there as the extension does on a deletion, without needing the extension.

use std::collections::BTreeMap;

use super::effects::{KeptRows, NewValue};
use super::graph::Graph;
use super::taken::ranges;
use crate::change::ChangeError;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Suffix of the table with one row per vector.
const ROWIDS: &str = "_rowids";

/// Positions in a chunk, from 0, by the chunk's number.
type Places = BTreeMap<i64, Vec<usize>>;

/// Clears the vectors whose rows in `_rowids` tables are deleted.
///
/// # Errors
/// The engine's refusal.
pub async fn clear(snapshot: &mut Snapshot<'_>, graph: &Graph, updates: &mut KeptRows) -> Result<(), ChangeError> {
    let tables = &graph.relations.tables;
    for (rowids, taken) in &graph.tables {
        let Some(base) = rowids.name.strip_suffix(ROWIDS) else { continue };
        let of = |table: &&TableName, ending: &str| {
            table.schema == rowids.schema && table.name.strip_prefix(base).is_some_and(|rest| rest.starts_with(ending))
        };
        let Some(chunks) = tables.iter().find(|table| of(table, "_chunks")) else { continue };
        let columns = ["chunk_id".to_owned(), "chunk_offset".to_owned()];
        let wanted = WantedRows { table: rowids, columns: &columns, when: None, subject: &[] };
        let mut places = Places::new();
        for range in ranges(0..taken.len()) {
            let keys: Vec<Vec<FetchedValue>> = taken.keys(range).collect();
            let take = |row: RawRow| {
                if let [FetchedValue::Integer(chunk), FetchedValue::Integer(place)] = row[..] {
                    places.entry(chunk).or_default().extend(usize::try_from(place));
                }
            };
            snapshot.each_of_keys(wanted, &taken.key, &keys, take).await?;
        }
        let sizes = of_chunks(snapshot, chunks, &places, updates).await?;
        for vectors in tables.iter().filter(|table| of(table, "_vector_chunks")) {
            of_vectors(snapshot, vectors, &places, &sizes, updates).await?;
        }
    }
    Ok(())
}

/// Clears the validity bits and row numbers of positions in chunks. Returns the number of positions of each chunk.
async fn of_chunks(
    snapshot: &mut Snapshot<'_>,
    table: &TableName,
    places: &Places,
    updates: &mut KeptRows,
) -> Result<BTreeMap<i64, usize>, ChangeError> {
    let mut sizes = BTreeMap::new();
    let columns = ["chunk_id", "size", "validity", "rowids"].map(str::to_owned);
    for row in rows(snapshot, table, &columns, "chunk_id", places).await? {
        let [
            FetchedValue::Integer(chunk),
            FetchedValue::Integer(size),
            FetchedValue::Bytes(validity),
            FetchedValue::Bytes(rowids),
        ] = &row[..]
        else {
            continue;
        };
        sizes.insert(*chunk, usize::try_from(*size).unwrap_or_default());
        let (mut marks, mut numbers) = (validity.clone(), rowids.clone());
        for place in &places[chunk] {
            if let Some(byte) = marks.get_mut(place / 8) {
                *byte &= !(1 << (place % 8));
            }
            zero(&mut numbers, place * 8, 8);
        }
        let key = [FetchedValue::Integer(*chunk)];
        let why = format!("{} marks places as free", table.title());
        for (column, old, new) in [("validity", &row[2], marks), ("rowids", &row[3], numbers)] {
            updates.set(table, &key, column, old, NewValue::Is(FetchedValue::Bytes(new)), &why);
        }
    }
    Ok(sizes)
}

/// Clears the vectors at positions of chunks.
async fn of_vectors(
    snapshot: &mut Snapshot<'_>,
    table: &TableName,
    places: &Places,
    sizes: &BTreeMap<i64, usize>,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let columns = ["rowid", "vectors"].map(str::to_owned);
    for row in rows(snapshot, table, &columns, "rowid", places).await? {
        let [FetchedValue::Integer(chunk), FetchedValue::Bytes(vectors)] = &row[..] else { continue };
        let Some(size) = sizes.get(chunk).filter(|size| **size > 0) else { continue };
        let width = vectors.len() / size;
        let mut cleared = vectors.clone();
        places[chunk].iter().for_each(|place| zero(&mut cleared, place * width, width));
        let why = format!("{} loses vectors", table.title());
        let new = NewValue::Is(FetchedValue::Bytes(cleared));
        updates.set(table, &[FetchedValue::Integer(*chunk)], "vectors", &row[1], new, &why);
    }
    Ok(())
}

async fn rows(
    snapshot: &mut Snapshot<'_>,
    table: &TableName,
    columns: &[String],
    key: &str,
    places: &Places,
) -> Result<Vec<Vec<FetchedValue>>, ChangeError> {
    let keys: Vec<Vec<FetchedValue>> = places.keys().map(|chunk| vec![FetchedValue::Integer(*chunk)]).collect();
    let wanted = WantedRows { table, columns, when: None, subject: &[] };
    Ok(snapshot.select_keys(wanted, &[key.to_owned()], &keys).await?)
}

fn zero(bytes: &mut [u8], start: usize, length: usize) {
    if let Some(part) = start.checked_add(length).and_then(|end| bytes.get_mut(start..end)) {
        part.fill(0);
    }
}
