//! Raw tables of a database, whether a layout knows them or not, a page at a time. Read only.

mod page;
mod shown;

use std::collections::{BTreeMap, HashMap};

use super::count::Counting;
use super::proof::tables::{self, SearchedKind, SearchedTable, UnsearchedReason};
use super::stored::TableName;
use super::{RawTables, StoreError};
use crate::layout::{BoundSource, CatalogColumn, CatalogTable, Engine};
use crate::memory::nearest::nearest;
use crate::memory::query::CountKind;

pub use page::{RawPage, RawQuery};
pub use shown::ShownRaw;

/// Kind of a virtual table.
const VIRTUAL: &str = "virtual table";

/// A table or view as its engine describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTable {
    /// Schema and name.
    pub name: TableName,
    /// Name shown to users: with the schema when the table is not found without it.
    pub title: String,
    /// Kind of the table: `table`, `view`, `virtual table` and the like.
    pub kind: &'static str,
    /// Columns in order; empty when the engine cannot describe them.
    pub columns: Vec<CatalogColumn>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
    /// Number of rows; `None` if they cannot be counted.
    pub rows: Option<i64>,
    /// Method of counting the rows.
    pub count_kind: CountKind,
    /// Reason for a missing number of rows.
    pub rows_reason: Option<String>,
    /// Size with indexes in bytes; `None` if the engine does not say.
    pub bytes: Option<i64>,
    /// Entities that a layout reads from it.
    pub entities: Vec<&'static str>,
    /// Reason why the rows cannot be read.
    pub unread: Option<String>,
    /// SQLite's name for the hidden row number.
    row_number: Option<&'static str>,
    /// Whether rows of other tables are visible through it, which its key does not identify.
    has_heirs: bool,
}

impl RawTable {
    /// Whether a source reads from it.
    pub fn is_of(&self, source: &BoundSource) -> bool {
        self.name == TableName::new(&source.table.0, &source.table.1)
    }

    /// The column with this name, in any case, as in SQL.
    pub fn column(&self, name: &str) -> Option<&CatalogColumn> {
        self.columns.iter().find(|c| c.name == name).or_else(|| {
            let mut alike = self.columns.iter().filter(|c| c.name.eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        })
    }
}

impl RawTables<'_> {
    /// Every table and view, ordered by schema and name, with counts as in `status`.
    ///
    /// # Errors
    /// The engine's refusal to describe the database.
    pub async fn raw_tables(self) -> Result<Vec<RawTable>, StoreError> {
        let mut tables = self.named().await?;
        for table in &mut tables {
            self.describe_virtual(table).await;
        }
        let mut counting = Counting::new(self.store);
        let known: HashMap<(&str, &str), &CatalogTable> =
            self.store.catalog().tables.iter().map(|t| ((t.schema.as_str(), t.name.as_str()), t)).collect();
        for table in tables.iter_mut().filter(|table| table.unread.is_none()) {
            let Some(known) = known.get(&(table.name.schema.as_str(), table.name.name.as_str())) else {
                table.rows_reason = Some("not counted: it was made since the database was opened".to_owned());
                continue;
            };
            let counted = counting.table(known).await;
            (table.rows, table.count_kind, table.rows_reason) = (counted.rows, counted.kind, counted.reason);
        }
        Ok(tables)
    }

    /// The table with a name: `table`, or `schema.table`.
    ///
    /// # Errors
    /// [`StoreError::NoTable`] with the nearest name, or the engine's refusal.
    pub async fn raw_table(self, name: &str) -> Result<RawTable, StoreError> {
        let tables = self.named().await?;
        let exact = |t: &&RawTable| t.title == name || t.name.title() == name;
        let alike = |t: &&RawTable| {
            t.title.eq_ignore_ascii_case(name)
                || format!("{}.{}", t.name.schema, t.name.name).eq_ignore_ascii_case(name)
        };
        if let Some(table) = tables.iter().find(exact).or_else(|| tables.iter().find(alike)) {
            let mut table = table.clone();
            self.describe_virtual(&mut table).await;
            return Ok(table);
        }
        let near = nearest(name, tables.iter().map(|t| t.title.as_str()));
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        Err(StoreError::NoTable(format!("{name}{hint} (`tables` lists them all)")))
    }

    /// Every table; virtual ones without their columns.
    async fn named(self) -> Result<Vec<RawTable>, StoreError> {
        let mut tables: BTreeMap<TableName, RawTable> = BTreeMap::new();
        for table in tables::read(self.store).await? {
            tables.insert(table.name.clone(), stored(&table));
        }
        for known in &self.store.catalog().tables {
            let name = TableName::new(&known.schema, &known.name);
            let table = tables.entry(name.clone()).or_insert_with(|| RawTable { kind: "view", ..empty(name) });
            table.title = known.title();
            table.bytes = known.bytes;
            // Tables that may not be read are not queried.
            table.columns = known.columns.iter().filter(|c| !c.denied).cloned().collect();
            let denied = UnsearchedReason::Denied.words();
            if known.denied {
                let why = if known.unlogged { UnsearchedReason::Unlogged.words() } else { denied };
                table.unread = Some(why.to_owned());
            } else if known.unread.is_some() {
                table.unread.clone_from(&known.unread);
            } else if table.unread.as_deref() == Some(denied) && table.key.iter().all(|k| known.readable(k).is_some()) {
                // Some of its columns may be read.
                table.unread = None;
            }
        }
        for source in &self.store.recognised().sources {
            let name = TableName::new(&source.table.0, &source.table.1);
            if let Some(table) = tables.get_mut(&name)
                && !table.entities.contains(&source.entity.name())
            {
                table.entities.push(source.entity.name());
            }
        }
        Ok(tables.into_values().filter(|t| !t.name.name.starts_with("sqlite_")).collect())
    }

    /// Reads the columns of a virtual table if its module is compiled in; other tables are unchanged.
    async fn describe_virtual(self, table: &mut RawTable) {
        if table.kind != VIRTUAL {
            return;
        }
        let sql = "SELECT name, lower(type), \"notnull\" FROM pragma_table_xinfo($1, $2) WHERE hidden = 0 ORDER BY cid";
        let named = [&table.name.name, &table.name.schema].map(|name| super::fetched::FetchedValue::Text(name.clone()));
        let Ok(rows) = self.store.sessions.fetch(sql, &named).await else {
            let why = "this program does not include its module; its shadow tables hold its rows";
            table.unread = Some(why.to_owned());
            return;
        };
        let column = |row: &super::fetched::RawRow| CatalogColumn {
            name: super::fetched::text(row, 0),
            declared: super::fetched::text(row, 1),
            not_null: super::fetched::number(row, 2) == 1,
            denied: false,
        };
        table.columns = rows.iter().map(column).collect();
        table.row_number = (self.store.engine() == Engine::Sqlite).then_some("rowid");
    }
}

fn stored(table: &SearchedTable) -> RawTable {
    let column = |c: &tables::SearchedColumn| CatalogColumn {
        name: c.name.clone(),
        declared: c.declared.clone(),
        not_null: c.required,
        denied: false,
    };
    let kind = match table.kind {
        SearchedKind::Index => "part of an index",
        SearchedKind::Copies => "materialised view",
        SearchedKind::Parent => "partitioned table",
        SearchedKind::Unread(UnsearchedReason::Virtual) => VIRTUAL,
        SearchedKind::Unread(UnsearchedReason::Foreign) => "foreign table",
        _ if table.partition => "partition",
        _ => "table",
    };
    let unread = match table.kind {
        SearchedKind::Unread(
            why @ (UnsearchedReason::Denied | UnsearchedReason::Unlogged | UnsearchedReason::Empty),
        ) => Some(why.words().to_owned()),
        _ => None,
    };
    RawTable {
        kind,
        columns: table.columns.iter().map(column).collect(),
        key: table.key.clone(),
        unread,
        row_number: table.row_number,
        has_heirs: table.has_heirs,
        ..empty(table.name.clone())
    }
}

fn empty(name: TableName) -> RawTable {
    RawTable {
        title: name.title(),
        name,
        kind: "table",
        columns: Vec::new(),
        key: Vec::new(),
        rows: None,
        count_kind: CountKind::About,
        rows_reason: None,
        bytes: None,
        entities: Vec::new(),
        unread: None,
        row_number: None,
        has_heirs: false,
    }
}
