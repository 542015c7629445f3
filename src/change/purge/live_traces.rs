//! Traces in values that stay, by which places among the bytes of the files are accounted for.

use std::collections::{BTreeMap, HashSet};

use crate::store::proof::bytes::NeedleContexts;
use crate::store::proof::values::WatchedValue;
use crate::store::stored::TableName;

/// Traces in values that stay of what is searched for among bytes.
#[derive(Debug, Default)]
pub struct LiveTraces {
    /// Each place of a needle in them, with what stands around it there.
    pub contexts: NeedleContexts,
    /// Numbers of the needles that are in vectors.
    pub vectors: HashSet<usize>,
    /// Places of each handle, by its number.
    pub hits: BTreeMap<usize, u64>,
    /// Places of each handle that are no part of an id, by its number, with table and column.
    pub named: BTreeMap<(usize, String), u64>,
}

impl LiveTraces {
    /// Adds what was seen in a value.
    pub fn add(&mut self, table: &TableName, column: &str, value: WatchedValue, is_id: bool, is_vector: bool) {
        for (handle, seen) in value.seen.into_iter().filter(|(_, seen)| seen.whole > 0) {
            self.add_places(table, column, (handle, seen.whole), is_id && !seen.entire);
        }
        if is_vector {
            self.vectors.extend(value.contexts.iter().map(|context| context.needle));
        }
        self.contexts.add(value.contexts);
    }

    /// Adds places of a handle in a column. `is_part` when they are part of an id.
    pub fn add_places(&mut self, table: &TableName, column: &str, (handle, count): (usize, u64), is_part: bool) {
        *self.hits.entry(handle).or_default() += count;
        // What the structure holds is told as such.
        if !is_part && table.name != "sqlite_schema" {
            *self.named.entry((handle, format!("{}.{column}", table.title()))).or_default() += count;
        }
    }
}
