//! Current structure of a database: tables, columns, valid indexes, row-level security, extensions.

use std::collections::HashSet;

use super::ability::ServerAbility;
use super::fetched::{FetchedValue, RawRow};
use super::stored::TableName;
use super::{ShapeReader, StoreError, catalog};
use crate::layout::{Catalog, Engine};

/// Part of a database's structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StructurePart {
    /// A table.
    Table(String),
    /// A column of a table.
    Column(String, String),
    /// An index, with its table.
    Index(String, String),
    /// A policy of row-level security, with its table.
    Policy(String, String),
    /// A table's row-level security.
    Security(String),
    /// An extension of the server.
    Extension(String),
}

impl std::fmt::Display for StructurePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StructurePart::Table(table) => write!(f, "table {table}"),
            StructurePart::Column(table, column) => write!(f, "column {table}.{column}"),
            StructurePart::Index(index, table) => write!(f, "index {index} of {table}"),
            StructurePart::Policy(policy, table) => write!(f, "policy {policy} of {table}"),
            StructurePart::Security(table) => write!(f, "row-level security of {table}"),
            StructurePart::Extension(extension) => write!(f, "extension {extension}"),
        }
    }
}

/// The structure of a database.
#[derive(Debug, Clone)]
pub struct Structure {
    engine: Engine,
    catalog: Catalog,
    /// Valid indexes: schema and name.
    indexes: HashSet<(String, String)>,
    /// Unfinished indexes: schema and name.
    broken: HashSet<(String, String)>,
    /// Policies: schema, table, name.
    policies: HashSet<(String, String, String)>,
    /// Tables with row-level security: schema and name.
    secured: HashSet<(String, String)>,
    /// Installed extensions, and available ones.
    extensions: (HashSet<String>, HashSet<String>),
}

const SQLITE: &str = "SELECT 'index', d.name, l.name, '' FROM pragma_database_list d, pragma_table_list(NULL) t, \
     pragma_index_list(t.name, d.name) l WHERE t.schema = d.name AND t.type = 'table' AND d.name <> 'temp'";

const POSTGRES: &str = "SELECT CASE WHEN i.indisvalid THEN 'index' ELSE 'broken' END, n.nspname::text, c.relname::text, '' \
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
       WHERE n.nspname !~ '^pg_' \
     UNION ALL SELECT 'secured', n.nspname::text, c.relname::text, '' FROM pg_class c \
       JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relrowsecurity";

const POLICIES: &str = "SELECT 'policy', schemaname::text, tablename::text, policyname::text FROM pg_policies";

const EXTENSIONS: &str = "SELECT 'extension', '', extname::text, '' FROM pg_extension \
     UNION ALL SELECT 'available', '', name::text, '' FROM pg_available_extensions";

impl ShapeReader<'_> {
    /// Reads the current structure of the database, as opposed to that at opening.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn structure(self) -> Result<Structure, StoreError> {
        let catalog = catalog::read(&self.store.sessions, &self.store.refusals).await?;
        let engine = self.store.engine();
        let mut rows = Vec::new();
        if engine == Engine::Sqlite {
            rows = self.store.fetch_text(SQLITE).await?;
        } else {
            for (ability, sql) in [
                (ServerAbility::Indexes, POSTGRES),
                (ServerAbility::Policies, POLICIES),
                (ServerAbility::Extensions, EXTENSIONS),
            ] {
                rows.extend(self.store.ask(ability, sql).await?);
            }
        }
        let mut structure = Structure {
            engine,
            catalog,
            indexes: HashSet::new(),
            broken: HashSet::new(),
            policies: HashSet::new(),
            secured: HashSet::new(),
            extensions: (HashSet::new(), HashSet::new()),
        };
        for row in &rows {
            structure.note(row);
        }
        Ok(structure)
    }
}

impl Structure {
    fn note(&mut self, row: &RawRow) {
        let text = |at: usize| match row.get(at) {
            Some(FetchedValue::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let (schema, name) = (text(1), text(2));
        match text(0).as_str() {
            "index" => {
                self.indexes.insert((schema, name));
            }
            "broken" => {
                self.broken.insert((schema, name));
            }
            "policy" => {
                self.policies.insert((schema, name, text(3)));
            }
            "secured" => {
                self.secured.insert((schema, name));
            }
            "extension" => {
                self.extensions.0.insert(name);
            }
            _ => {
                self.extensions.1.insert(name);
            }
        }
    }

    /// The engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Tables and columns.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn place(&self, table: &str) -> Option<(String, String)> {
        self.catalog.table(table).map(|t| (t.schema.clone(), t.name.clone()))
    }

    /// Whether a part exists and is valid.
    pub fn has(&self, part: &StructurePart) -> bool {
        let beside = |table: &str, name: &str, set: &HashSet<(String, String)>| {
            self.place(table).is_some_and(|(schema, _)| set.contains(&(schema, name.to_owned())))
        };
        match part {
            StructurePart::Table(table) => self.catalog.table(table).is_some(),
            StructurePart::Column(table, column) => {
                self.catalog.table(table).is_some_and(|t| t.column(column).is_some())
            }
            StructurePart::Index(index, table) => beside(table, index, &self.indexes),
            StructurePart::Policy(policy, table) => {
                self.place(table).is_some_and(|(schema, name)| self.policies.contains(&(schema, name, policy.clone())))
            }
            StructurePart::Security(table) => self.place(table).is_some_and(|place| self.secured.contains(&place)),
            StructurePart::Extension(name) => self.extensions.0.contains(name),
        }
    }

    /// Whether a part exists or can be installed.
    pub fn can_have(&self, part: &StructurePart) -> bool {
        self.has(part) || matches!(part, StructurePart::Extension(name) if self.extensions.1.contains(name))
    }

    /// Whether a table's rows are those of its partitions.
    pub fn is_partitioned(&self, table: &str) -> bool {
        self.catalog.table(table).is_some_and(|t| t.partitioned)
    }

    /// Schema and name of a table.
    pub fn place_of(&self, table: &str) -> Option<TableName> {
        self.place(table).map(|(schema, name)| TableName::new(schema, name))
    }

    /// The schema of an unfinished index, left for example by a killed process.
    pub fn broken_index(&self, part: &StructurePart) -> Option<&str> {
        let StructurePart::Index(index, table) = part else { return None };
        let (schema, _) = self.place(table)?;
        self.broken.get(&(schema, index.clone())).map(|(schema, _)| schema.as_str())
    }
}
