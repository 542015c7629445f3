//! SQLite's hidden row numbers: the names that statements read them by, and how they appear among columns.

/// Beginning of what stands for a hidden number among the names of columns: no column's name can hold it, and it is left
/// out where names are quoted. So a column of its own that is called `rowid` is not taken for the number.
pub const HIDDEN: char = '\0';

/// Names of the number, as far as no column has them.
const NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Whether a name among those of columns stands for the hidden number.
#[must_use]
pub fn is_row_number(name: &str) -> bool {
    name.starts_with(HIDDEN)
}

/// Whether rows are distinguished by their hidden numbers, at least those that hold NULL in the other columns.
#[must_use]
pub fn is_numbered(by: &[String]) -> bool {
    by.last().is_some_and(|column| is_row_number(column))
}

/// Makes what stands for the hidden number that a statement reads by a name.
#[must_use]
pub fn hidden(name: &str) -> String {
    format!("{HIDDEN}{name}")
}

/// A name of the number that no column of a table has taken, computed ones included; none where columns have all of them.
#[must_use]
pub fn free_name(columns: &[&String]) -> Option<&'static str> {
    NAMES.into_iter().find(|name| !columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
}

/// The same as an expression, of a table whose name and schema are expressions.
pub(super) fn free_name_sql(name: &str, schema: &str) -> String {
    format!(
        "(SELECT n.value FROM json_each('{}') n WHERE NOT EXISTS (SELECT 1 FROM pragma_table_xinfo({name}, {schema}) x \
         WHERE lower(x.name) = n.value) ORDER BY n.key LIMIT 1)",
        serde_json::json!(NAMES)
    )
}

/// The condition that the key of a table is not the number itself: then it has an index. `INTEGER PRIMARY KEY` has none,
/// unless it is followed by `DESC`.
pub(super) fn has_key_index(name: &str, schema: &str) -> String {
    format!("EXISTS (SELECT 1 FROM pragma_index_list({name}, {schema}) k WHERE k.origin = 'pk')")
}
