//! SQLite's hidden row numbers: the names that statements read them by, and how they appear among columns.

/// First character of a hidden number's name in column lists: no real column name can contain it, and quoting drops it.
/// This distinguishes it from a real column named `rowid`.
pub const HIDDEN: char = '\0';

/// Names of the number, unless columns have them.
const NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Whether a name in a column list is the hidden number.
pub fn is_row_number(name: &str) -> bool {
    name.starts_with(HIDDEN)
}

/// Whether rows are identified by their hidden numbers, at least those with NULL in the other columns.
pub fn is_numbered(by: &[String]) -> bool {
    by.last().is_some_and(|column| is_row_number(column))
}

/// Builds the column-list name of the hidden number that a statement reads as `name`.
pub fn hidden(name: &str) -> String {
    format!("{HIDDEN}{name}")
}

/// A name of the number that no column of a table has, generated ones included; `None` if columns have all of them.
pub fn free_name(columns: &[&String]) -> Option<&'static str> {
    NAMES.into_iter().find(|name| !columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
}

/// The same as an SQL expression, for a table whose name and schema are expressions.
pub(super) fn free_name_sql(name: &str, schema: &str) -> String {
    format!(
        "(SELECT n.value FROM json_each('{}') n WHERE NOT EXISTS (SELECT 1 FROM pragma_table_xinfo({name}, {schema}) x \
         WHERE lower(x.name) = n.value) ORDER BY n.key LIMIT 1)",
        serde_json::json!(NAMES)
    )
}

/// The condition that the key of a table is not the row number itself, so that it has an index. `INTEGER PRIMARY KEY`
/// has none, unless followed by `DESC`.
pub(super) fn has_key_index(name: &str, schema: &str) -> String {
    format!("EXISTS (SELECT 1 FROM pragma_index_list({name}, {schema}) k WHERE k.origin = 'pk')")
}
