//! Location of the vectors of a layout's rows: in a column of the row, or in a separate table.

use super::{Catalog, CatalogTable, Engine};

/// Vectors as a layout file names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorSpec {
    /// Separate table for the vectors; `None` if the row contains its vector.
    pub table: Option<String>,
    /// A read-only query in place of that table.
    pub from: Option<super::Sql>,
    /// Columns of that table with the row's id.
    pub key: Vec<String>,
    /// Column of the vector.
    pub column: String,
    /// Path into the JSON value of the column.
    pub path: Option<String>,
    /// Condition on that table, whose alias is `vec`.
    pub keep: Option<String>,
}

/// A separate table of vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorsBeside {
    /// The table: schema and name; `None` if a query replaces it.
    pub table: Option<(String, String)>,
    /// Query that replaces the table, if there is one.
    pub query: Option<String>,
    /// Columns with the row's id, each with its declared type.
    pub key: Vec<(String, String)>,
}

/// Vectors whose names exist in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundVector {
    /// Separate table of the vectors; `None` if the rows contain them.
    pub beside: Option<VectorsBeside>,
    /// Alias of the table with the column.
    pub alias: String,
    /// Column of the vector.
    pub column: String,
    /// Declared type of the vector column, in lower case.
    pub declared: String,
    /// Path into the JSON value of the column.
    pub path: Option<String>,
    /// Condition on the separate table.
    pub keep: Option<String>,
}

impl VectorSpec {
    /// Binds the names to a database; `None` if the table or a column is missing: such a database has no vectors.
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
