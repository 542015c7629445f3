//! Location of the vectors of a layout's rows: in a column of the row itself, or in a table next to it.

use super::{Catalog, CatalogTable, Engine};

/// Vectors as a layout file names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorSpec {
    /// Table next to the rows'; none when the row itself holds its vector.
    pub table: Option<String>,
    /// A read-only query in place of that table.
    pub from: Option<super::Sql>,
    /// Columns of that table that hold the row's id.
    pub key: Vec<String>,
    /// Column of the vector.
    pub column: String,
    /// Path into the JSON value that the column holds.
    pub path: Option<String>,
    /// Condition on that table, whose alias is `vec`.
    pub keep: Option<String>,
}

/// A table of vectors next to the rows'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorsBeside {
    /// The table: schema and name; none when a query replaces it.
    pub table: Option<(String, String)>,
    /// Query that replaces the table, if there is one.
    pub query: Option<String>,
    /// Columns that hold the row's id, each with its declared type.
    pub key: Vec<(String, String)>,
}

/// Vectors whose names were found in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundVector {
    /// Location of the vectors next to the rows; `None` when the rows themselves hold them.
    pub beside: Option<VectorsBeside>,
    /// Alias of the table that holds the column.
    pub alias: String,
    /// Column of the vector.
    pub column: String,
    /// Declared type of the vector column, in lower case.
    pub declared: String,
    /// Path into the JSON value that the column holds.
    pub path: Option<String>,
    /// Condition on the separate table.
    pub keep: Option<String>,
}

impl VectorSpec {
    /// Finds the names in a database; none when the table or a column is not there: such a database has no vectors.
    pub(super) fn bind(
        &self,
        engine: Engine,
        catalog: &Catalog,
        aliases: &[(String, &CatalogTable)],
    ) -> Option<BoundVector> {
        let (path, keep) = (self.path.clone(), self.keep.clone());
        let found = |beside, name: &str, declared: &str| BoundVector {
            beside: Some(beside),
            alias: "vec".into(),
            column: name.to_owned(),
            declared: declared.to_owned(),
            path: path.clone(),
            keep: keep.clone(),
        };
        if let Some(query) = &self.from {
            // The table that it reads may not be there.
            catalog.table(self.table.as_deref()?)?;
            let key = self.key.iter().map(|key| (key.clone(), String::new())).collect();
            let beside = VectorsBeside { table: None, query: Some(query.on(engine)?.to_owned()), key };
            return Some(found(beside, &self.column, "bytea"));
        }
        if let Some(table) = self.table.as_ref().filter(|_| !self.key.is_empty()) {
            let table = catalog.table(table)?;
            let key = |name: &String| table.column(name).map(|key| (key.name.clone(), key.declared.clone()));
            let key = self.key.iter().map(key).collect::<Option<Vec<_>>>()?;
            let column = table.column(&self.column)?;
            let beside = VectorsBeside { table: Some((table.schema.clone(), table.name.clone())), query: None, key };
            return Some(found(beside, &column.name, &column.declared));
        }
        let (alias, table) = aliases.iter().find(|(alias, _)| alias == "t").or(aliases.first())?;
        let column = table.column(&self.column)?;
        let (alias, name) = (alias.clone(), column.name.clone());
        Some(BoundVector { beside: None, alias, column: name, declared: column.declared.clone(), path, keep })
    }
}
