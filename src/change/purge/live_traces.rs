//! Traces in values that stay, which account for places in the bytes of the files.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::store::proof::bytes::NeedleContexts;
use crate::store::proof::values::WatchedValue;
use crate::store::stored::TableName;

/// Traces in values that stay of what is searched for among bytes.
#[derive(Debug, Default)]
pub struct LiveTraces {
    /// Each place of a needle in them, with what is around it there.
    pub contexts: NeedleContexts,
    /// Numbers of the needles that are in vectors.
    pub vectors: HashSet<usize>,
    /// Places of each handle, by its number.
    pub hits: BTreeMap<usize, u64>,
    /// Places of each handle that are not part of an id and told nowhere else, by its number, with table and column.
    pub named: BTreeMap<(usize, String), u64>,
    /// Places of each handle in values that only an index over an expression holds, by its number, with the table.
    pub made: BTreeMap<(usize, String), u64>,
    /// Handles by number, with table and column, that are in values which the search for the person judges.
    pub judged: BTreeSet<(usize, String)>,
}

/// Column that a watched value is in.
#[derive(Debug, Clone, Copy)]
pub struct WatchedColumn<'a> {
    /// Table.
    pub table: &'a TableName,
    /// Name of the column.
    pub name: &'a str,
    /// It holds ids.
    pub is_id: bool,
    /// It holds vectors.
    pub is_vector: bool,
}

impl LiveTraces {
    /// Adds what was seen in a value. `is_judged` when the search for the person found them there: whether such a value may stay
    /// is decided there, whichever of their handles it holds.
    pub fn add(&mut self, column: WatchedColumn<'_>, value: WatchedValue, is_judged: bool) {
        for (handle, seen) in value.seen.into_iter().filter(|(_, seen)| seen.whole > 0) {
            let is_part = column.is_id && !seen.entire;
            self.add_places(column.table, column.name, (handle, seen.whole), is_part || is_judged);
            if is_judged {
                self.judged.insert((handle, format!("{}.{}", column.table.title(), column.name)));
            }
        }
        if column.is_vector {
            self.vectors.extend(value.contexts.iter().map(|context| context.needle));
        }
        self.contexts.add(value.contexts);
    }

    /// Adds places of a handle in a column. `is_told` when they are part of an id, or told elsewhere.
    pub fn add_places(&mut self, table: &TableName, column: &str, (handle, count): (usize, u64), is_told: bool) {
        *self.hits.entry(handle).or_default() += count;
        // What the structure holds is told as such.
        if !is_told && table.name != "sqlite_schema" {
            *self.named.entry((handle, format!("{}.{column}", table.title()))).or_default() += count;
        }
    }
}
