//! Every table of a database with its stored columns and keys, whatever the layout knows of it.

use std::collections::BTreeMap;

use crate::layout::Engine;
use crate::store::session::{Raw, RawRow};
use crate::store::stored::TableName;
use crate::store::{Store, StoreError};

/// A column to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// Type in small letters.
    pub declared: String,
}

/// What a table is to a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Its rows are searched.
    Stored,
    /// Its rows belong to a search index.
    Index,
    /// It is not searched, for that reason.
    Unread(&'static str),
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: TableName,
    pub kind: Kind,
    pub columns: Vec<Column>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
    /// A name of the hidden row number that no column has taken.
    pub row_number: Option<&'static str>,
}

const SQLITE: &str = "SELECT l.schema, l.name, l.type, l.wr, c.name, lower(c.type), c.hidden, c.pk \
     FROM pragma_table_list l JOIN pragma_table_xinfo(l.name, l.schema) c \
     WHERE l.type IN ('table', 'shadow') AND l.schema <> 'temp' ORDER BY l.schema, l.name, c.cid";
const SQLITE_OTHERS: &str = "SELECT schema, name, type FROM pragma_table_list \
     WHERE type = 'virtual' AND schema <> 'temp' ORDER BY schema, name";

const POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, c.relkind::text, 0, a.attname::text, \
     lower(format_type(a.atttypid, a.atttypmod)), CASE WHEN a.attgenerated = '' THEN 0 ELSE 3 END, \
     coalesce((SELECT array_position(i.indkey::int2[], a.attnum) + 1 FROM pg_index i \
       WHERE i.indrelid = c.oid AND i.indisprimary), 0) \
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2, a.attnum";

/// Every table, in order of schema and name. Views are left out: what they show is stored elsewhere.
pub async fn read(store: &Store) -> Result<Vec<Table>, StoreError> {
    let mut tables: BTreeMap<TableName, Table> = BTreeMap::new();
    let mut keys: BTreeMap<TableName, Vec<(i64, String)>> = BTreeMap::new();
    let sql = if store.engine() == Engine::Sqlite { SQLITE } else { POSTGRES };
    for row in store.fetch_text(sql).await? {
        let name = TableName::new(text(&row, 0), text(&row, 1));
        let table = tables.entry(name.clone()).or_insert_with(|| Table {
            name: name.clone(),
            kind: kind(&text(&row, 2), &name.name),
            columns: Vec::new(),
            key: Vec::new(),
            row_number: (store.engine() == Engine::Sqlite && number(&row, 3) == 0).then_some("rowid"),
        });
        let column = Column { name: text(&row, 4), declared: text(&row, 5) };
        if number(&row, 7) > 0 {
            keys.entry(name).or_default().push((number(&row, 7), column.name.clone()));
        }
        // What is generated goes with what it is made of.
        if number(&row, 6) == 0 {
            table.columns.push(column);
        }
    }
    if store.engine() == Engine::Sqlite {
        for row in store.fetch_text(SQLITE_OTHERS).await? {
            let name = TableName::new(text(&row, 0), text(&row, 1));
            let kind = Kind::Unread("a virtual table: what it holds is in its shadow tables, which are searched");
            tables.insert(name.clone(), Table { name, kind, columns: Vec::new(), key: Vec::new(), row_number: None });
        }
    }
    for (name, mut columns) in keys {
        columns.sort_unstable();
        if let Some(table) = tables.get_mut(&name) {
            table.key = columns.into_iter().map(|(_, column)| column).collect();
        }
    }
    for table in tables.values_mut() {
        let taken = |name: &str| table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
        table.row_number = table.row_number.and_then(|_| ["rowid", "_rowid_", "oid"].into_iter().find(|n| !taken(n)));
    }
    Ok(tables.into_values().collect())
}

fn kind(word: &str, name: &str) -> Kind {
    match word {
        "shadow" => Kind::Index,
        // Samples of indexed values.
        _ if name.starts_with("sqlite_stat") => Kind::Index,
        "f" => Kind::Unread("a foreign table: its rows are in another database"),
        _ => Kind::Stored,
    }
}

pub fn text(row: &RawRow, at: usize) -> String {
    match row.get(at) {
        Some(Raw::Text(text)) => text.clone(),
        Some(Raw::Integer(i)) => i.to_string(),
        _ => String::new(),
    }
}

pub fn number(row: &RawRow, at: usize) -> i64 {
    match row.get(at) {
        Some(Raw::Integer(i)) => *i,
        Some(Raw::Text(text)) => text.parse().unwrap_or_default(),
        _ => 0,
    }
}
