//! Foreign keys, as the database declares them.

use super::fetched::{FetchedValue, RawRow, number, text};
use super::stored::TableName;
use super::{ShapeReader, StoreError};
use crate::layout::Engine;

/// Action of a foreign key when the referenced row is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnDelete {
    /// The row is deleted too.
    Cascade,
    /// These of its columns are set to NULL.
    SetNull(Vec<String>),
    /// The deletion is refused while the row refers to it: NO ACTION, the default.
    Refuse,
    /// The same, declared as RESTRICT.
    Restrict,
    /// The column gets its default, if that is a constant: this one.
    SetDefault(String),
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Table that refers.
    pub from: TableName,
    /// Columns that refer, in order.
    pub columns: Vec<String>,
    /// Table that is referred to.
    pub to: TableName,
    /// Columns that are referred to, one for each that refers.
    pub to_columns: Vec<String>,
    /// Action on deletion.
    pub on_delete: OnDelete,
}

/// A foreign key of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnKey {
    /// Table that refers.
    pub from: TableName,
    /// Column that refers.
    pub column: String,
    /// Table that is referred to.
    pub to: TableName,
    /// Column that is referred to.
    pub to_column: String,
}

impl ColumnKey {
    fn of(key: ForeignKey) -> Option<Self> {
        match (<[String; 1]>::try_from(key.columns), <[String; 1]>::try_from(key.to_columns)) {
            (Ok([column]), Ok([to_column])) => Some(ColumnKey { from: key.from, column, to: key.to, to_column }),
            _ => None,
        }
    }
}

const SQLITE: &str = "SELECT l.schema, l.name, f.\"from\", l.schema, \
     coalesce((SELECT o.name FROM pragma_table_list o WHERE lower(o.name) = lower(f.\"table\") AND o.schema = l.schema), f.\"table\"), \
     coalesce(f.\"to\", (SELECT p.name FROM pragma_table_info(f.\"table\", l.schema) p WHERE p.pk = f.seq + 1)), lower(f.on_delete), f.seq, \
     (SELECT d.dflt_value FROM pragma_table_info(l.name, l.schema) d WHERE d.name = f.\"from\"), 1 \
     FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name, l.schema) f WHERE l.type = 'table'";

/// Foreign keys of partitions are listed under the partitioned table. Since PostgreSQL 15, SET NULL may cover only some
/// columns.
const POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text, s.nspname::text, t.relname::text, \
     b.attname::text, CASE k.confdeltype WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' WHEN 'r' THEN 'restrict' \
       WHEN 'd' THEN 'set default' ELSE 'no action' END, u.at - 1, pg_get_expr(d.adbin, d.adrelid), \
       coalesce(nullif(to_jsonb(k) -> 'confdelsetcols', 'null') @> to_jsonb(u.own), true)::int \
     FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u (own, other, at) \
     JOIN pg_class p ON p.oid = k.conrelid \
     JOIN pg_class c ON c.oid = CASE WHEN p.relispartition THEN pg_partition_root(p.oid) ELSE p.oid END \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_class q ON q.oid = k.confrelid \
     JOIN pg_class t ON t.oid = CASE WHEN q.relispartition THEN pg_partition_root(q.oid) ELSE q.oid END \
     JOIN pg_namespace s ON s.oid = t.relnamespace \
     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.own \
     JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.other \
     LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE k.contype = 'f' AND k.conparentid = 0";

/// The statement that reads the foreign keys for which a condition holds, one row per column.
pub(super) fn statement(engine: Engine, condition: &str) -> String {
    match engine {
        Engine::Sqlite => format!("{SQLITE}{condition} ORDER BY l.schema, l.name, f.id, f.seq"),
        Engine::Postgres => format!("{POSTGRES}{condition} ORDER BY k.oid, u.at"),
    }
}

/// Builds the keys from the statement's rows: further columns of a key follow its first.
pub(super) fn keys(rows: &[RawRow]) -> Vec<ForeignKey> {
    let mut keys: Vec<ForeignKey> = Vec::new();
    for row in rows {
        let first = number(row, 7) == 0;
        let emptied = (number(row, 9) == 1).then(|| text(row, 2));
        match keys.last_mut().filter(|_| !first) {
            Some(key) => {
                if let OnDelete::SetNull(columns) = &mut key.on_delete {
                    columns.extend(emptied);
                }
                key.columns.push(text(row, 2));
                key.to_columns.push(text(row, 5));
            }
            None => keys.push(ForeignKey {
                from: TableName::new(text(row, 0), text(row, 1)),
                columns: vec![text(row, 2)],
                to: TableName::new(text(row, 3), text(row, 4)),
                to_columns: vec![text(row, 5)],
                on_delete: match text(row, 6).as_str() {
                    "cascade" => OnDelete::Cascade,
                    "set null" => OnDelete::SetNull(emptied.into_iter().collect()),
                    "restrict" => OnDelete::Restrict,
                    // Without a default the column is set to NULL.
                    "set default" if row.get(8) == Some(&FetchedValue::Null) => {
                        OnDelete::SetNull(emptied.into_iter().collect())
                    }
                    "set default" => literal(&text(row, 8)).map_or(OnDelete::Refuse, OnDelete::SetDefault),
                    _ => OnDelete::Refuse,
                },
            }),
        }
    }
    keys
}

/// The value of a default that is a text or number constant, possibly with a cast; `None` for other expressions.
fn literal(sql: &str) -> Option<String> {
    let sql = sql.trim();
    if sql.parse::<i64>().is_ok() {
        return Some(sql.to_owned());
    }
    let quoted = sql.strip_prefix('\'')?;
    let (value, behind) = match quoted.rsplit_once("'::") {
        Some((value, kind)) if !kind.contains(['\'', '(', '|']) => (value, kind),
        _ => (quoted.strip_suffix('\'')?, ""),
    };
    let is_one = !value.replace("''", "").contains('\'') && !behind.contains("::");
    is_one.then(|| value.replace("''", "'"))
}

impl ShapeReader<'_> {
    /// Reads every foreign key.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn foreign_keys(self) -> Result<Vec<ForeignKey>, StoreError> {
        Ok(keys(&self.store.fetch_text(&statement(self.store.engine(), "")).await?))
    }

    /// Reads the foreign keys that refer to a table.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn keys_to(self, table: &TableName) -> Result<Vec<ForeignKey>, StoreError> {
        let condition = match self.store.engine() {
            Engine::Sqlite => " AND l.schema = $1 AND lower(f.\"table\") = lower($2)",
            Engine::Postgres => " AND s.nspname = $1 AND t.relname = $2",
        };
        self.keys_where(condition, table).await
    }

    /// Reads the foreign keys of one column that refer to a table.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn column_keys_to(self, table: &TableName) -> Result<Vec<ColumnKey>, StoreError> {
        Ok(self.keys_to(table).await?.into_iter().filter_map(ColumnKey::of).collect())
    }

    /// Reads the single-column foreign keys by which a table refers to others, or to itself.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn column_keys_of(self, table: &TableName) -> Result<Vec<ColumnKey>, StoreError> {
        let condition = match self.store.engine() {
            Engine::Sqlite => " AND l.schema = $1 AND lower(l.name) = lower($2)",
            Engine::Postgres => " AND n.nspname = $1 AND c.relname = $2",
        };
        Ok(self.keys_where(condition, table).await?.into_iter().filter_map(ColumnKey::of).collect())
    }

    async fn keys_where(self, condition: &str, table: &TableName) -> Result<Vec<ForeignKey>, StoreError> {
        let params = [FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone())];
        let rows = self.store.sessions.fetch(&statement(self.store.engine(), condition), &params).await?;
        Ok(keys(&rows))
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn a_default_that_is_a_plain_value_is_told_from_others() {
        for (sql, value) in [
            ("'it''s'::text", Some("it's")),
            ("'nobody'::character varying", Some("nobody")),
            ("'nobody'", Some("nobody")),
            ("0", Some("0")),
            ("''::text", Some("")),
            ("('a'::text || 'b'::text)", None),
            ("'a'::text || 'b'::text", None),
            ("'a' || 'b'", None),
            ("nextval('ids'::regclass)", None),
            ("CURRENT_USER", None),
        ] {
            assert_eq!(literal(sql).as_deref(), value, "{sql}");
        }
    }
}
