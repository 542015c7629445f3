//! Traces in values that stay. They explain places in the bytes of the files.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::store::proof::bytes::NeedleContexts;
use crate::store::proof::values::WatchedValue;
use crate::store::stored::TableName;

/// Traces of the search terms for bytes in values that stay.
#[derive(Debug, Default)]
pub struct LiveTraces {
    /// Each place of a needle in such values, with its context.
    pub contexts: NeedleContexts,
    /// Numbers of the needles found in vectors.
    pub vectors: HashSet<usize>,
    /// Number of places of each handle, by its number.
    pub hits: BTreeMap<usize, u64>,
    /// Places of each handle that are not part of an id and are reported nowhere else, by its number, with table and
    /// column.
    pub named: BTreeMap<(usize, String), u64>,
    /// Places of each handle in values that only an expression index holds, by its number, with the table.
    pub made: BTreeMap<(usize, String), u64>,
    /// Handles, by number with table and column, in values that the search for the person judges.
    pub judged: BTreeSet<(usize, String)>,
}

/// Column of a watched value.
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
    /// Adds the traces found in a value. `is_judged` if the search for the person found the value: it then decides
    /// whether the value may stay, whichever handles it contains.
    pub fn add(&mut self, column: WatchedColumn<'_>, value: WatchedValue, is_judged: bool) {
        for (handle, seen) in value.seen {
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

    /// Adds places of a handle in a column. `is_told` if they are part of an id, or reported elsewhere.
    pub fn add_places(&mut self, table: &TableName, column: &str, (handle, count): (usize, u64), is_told: bool) {
        *self.hits.entry(handle).or_default() += count;
        // Traces in the database's structure are reported as such.
        if !is_told && table.name != "sqlite_schema" {
            *self.named.entry((handle, format!("{}.{column}", table.title()))).or_default() += count;
        }
    }
}
