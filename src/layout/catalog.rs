//! Catalog of a database: its tables with columns, types and indexes, as the store read them.

use super::Need;

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogColumn {
    /// Name as stored.
    pub name: String,
    /// Declared type in lower case, such as `uuid`, `timestamp with time zone`, `varchar(255)`.
    pub declared: String,
    /// Whether the engine rejects NULL.
    pub not_null: bool,
    /// Whether our role has no right to read it.
    pub denied: bool,
}

/// One table or view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogTable {
    /// Schema (PostgreSQL) or attached name (SQLite).
    pub schema: String,
    /// Name as stored.
    pub name: String,
    /// Whether the table is found without naming its schema.
    pub visible: bool,
    /// Columns in order.
    pub columns: Vec<CatalogColumn>,
    /// The first column of each index.
    pub indexed: Vec<String>,
    /// Lists of columns that a unique index keeps distinct, except for NULL.
    pub unique: Vec<Vec<String>>,
    /// Columns, with their types, by which the engine itself distinguishes any rows; empty for a view.
    pub places: Vec<(String, String)>,
    /// Number of rows estimated by the engine; `None` if it has no estimate.
    pub estimate: Option<i64>,
    /// Size in bytes with indexes; `None` if the engine does not report it.
    pub bytes: Option<i64>,
    /// Whether our role has no right to read any of it.
    pub denied: bool,
    /// Whether nobody can read it, because the server is a standby and the table, or one that it reads, is unlogged.
    pub unlogged: bool,
    /// Whether our role may not even enter its schema.
    pub closed_schema: bool,
    /// Reason why the engine itself cannot read it, for example a view of a missing table.
    pub unread: Option<String>,
    /// Whether row-level security may hide some of its rows from our role.
    pub hides_rows: bool,
    /// Whether its rows are those of other tables: it is a partition, inherits from a table, or is a materialised view.
    pub derived: bool,
    /// Whether its rows are those of its partitions.
    pub partitioned: bool,
}

impl CatalogTable {
    /// The column with this name, in any case, as in SQL.
    pub fn column(&self, name: &str) -> Option<&CatalogColumn> {
        self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The column of this name, if our role may read it.
    pub fn readable(&self, name: &str) -> Option<&CatalogColumn> {
        self.column(name).filter(|c| !c.denied)
    }

    /// Whether it holds rows of its own, unlike a view.
    pub fn holds_rows(&self) -> bool {
        !self.places.is_empty() && !self.derived
    }

    /// Name for people: with the schema if it is not found without.
    pub fn title(&self) -> String {
        if self.visible { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }
}

/// All tables of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    /// Tables and views, in order of schema and name.
    pub tables: Vec<CatalogTable>,
    /// Searchable full-text indexes of SQLite, which only conditions can use as tables.
    pub word_indexes: Vec<String>,
    /// Our role; empty if the engine has none, or does not report it.
    pub role: String,
}

impl Catalog {
    /// Finds a table by its name in a layout: `table` if visible, or `schema.table`.
    pub fn table(&self, name: &str) -> Option<&CatalogTable> {
        let plain = |t: &&CatalogTable| t.visible && t.name.eq_ignore_ascii_case(name);
        self.tables.iter().find(plain).or_else(|| {
            let (schema, table) = name.split_once('.')?;
            self.tables.iter().find(|t| t.schema.eq_ignore_ascii_case(schema) && t.name.eq_ignore_ascii_case(table))
        })
    }

    /// The table with exactly that schema and name.
    pub fn exactly(&self, schema: &str, name: &str) -> Option<&CatalogTable> {
        self.tables.iter().find(|t| t.schema == schema && t.name == name)
    }

    /// Explains that row-level security may hide rows from our role, and in which tables; `None` if it hides none.
    pub fn hidden_rows(&self) -> Option<String> {
        let hiding: Vec<String> = self.tables.iter().filter(|t| t.hides_rows).map(CatalogTable::title).collect();
        let role = if self.role.is_empty() { String::new() } else { format!(" {}", self.role) };
        (!hiding.is_empty())
            .then(|| format!("rows may be hidden from your role{role} by row-level security: {}", hiding.join(", ")))
    }

    /// Whether a need of a layout is met.
    pub fn has(&self, need: &Need) -> bool {
        let Some(table) = self.table(&need.table) else { return false };
        let Some(column) = &need.column else { return true };
        let fits = |declared: &str| need.types.is_empty() || need.types.iter().any(|t| declared.contains(t.as_str()));
        table.column(column).is_some_and(|c| fits(&c.declared))
    }
}
