//! Where a layout keeps the vectors of its rows: in a column of the row itself, or in a table beside it.

use super::{Catalog, CatalogTable};

/// Vectors as a layout file names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorSpec {
    /// Table beside the rows'; none where the row itself holds its vector.
    pub table: Option<String>,
    /// Column of that table that holds the row's id.
    pub key: Option<String>,
    /// Column of the vector.
    pub column: String,
    /// Path into the JSON value that the column holds.
    pub path: Option<String>,
    /// Condition on that table, whose alias is `vec`.
    pub keep: Option<String>,
}

/// Vectors whose names were found in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundVector {
    /// Table beside the rows': schema, name, key column and the key's declared type.
    pub beside: Option<(String, String, String, String)>,
    /// Alias of the table that holds the column.
    pub alias: String,
    /// Column of the vector.
    pub column: String,
    /// Its declared type in lower case.
    pub declared: String,
    /// Path into the JSON value that the column holds.
    pub path: Option<String>,
    /// Condition on the table beside.
    pub keep: Option<String>,
}

impl VectorSpec {
    /// Finds the names in a database; none where the table or a column is not there: such a database has no vectors.
    pub(super) fn bind(&self, catalog: &Catalog, aliases: &[(String, &CatalogTable)]) -> Option<BoundVector> {
        let (path, keep) = (self.path.clone(), self.keep.clone());
        if let (Some(table), Some(key)) = (&self.table, &self.key) {
            let table = catalog.table(table)?;
            let (key, column) = (table.column(key)?, table.column(&self.column)?);
            let beside = (table.schema.clone(), table.name.clone(), key.name.clone(), key.declared.clone());
            let (name, declared) = (column.name.clone(), column.declared.clone());
            return Some(BoundVector { beside: Some(beside), alias: "vec".into(), column: name, declared, path, keep });
        }
        let (alias, table) = aliases.iter().find(|(alias, _)| alias == "t").or(aliases.first())?;
        let column = table.column(&self.column)?;
        let (alias, name) = (alias.clone(), column.name.clone());
        Some(BoundVector { beside: None, alias, column: name, declared: column.declared.clone(), path, keep })
    }
}
