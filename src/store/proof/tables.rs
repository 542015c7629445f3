//! Every table of a database with its stored columns and keys, whether the layout knows it or not; and for each column
//! its possible contents, by its actual type rather than the type's name.

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::Engine;
use crate::store::fetched::{RawRow, number, text};
use crate::store::row_number::{free_name, has_key_index};
use crate::store::stored::TableName;
use crate::store::{Store, StoreError};

/// Possible contents of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnContent {
    /// Words.
    Words,
    /// One number.
    Number,
    /// Numbers within another value, such as a list.
    Numbers,
    /// Neither: times, booleans, vectors, bits.
    Neither,
}

/// A column to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedColumn {
    pub name: String,
    /// Type in lower case.
    pub declared: String,
    /// Content that the column can hold.
    pub holds: ColumnContent,
    /// Whether the column is NOT NULL.
    pub required: bool,
    /// Whether the column is also visible through the table that this one inherits from.
    pub inherited: bool,
}

/// Role of a table in a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchedKind {
    /// Table whose rows are searched.
    Stored,
    /// Table whose rows belong to a search index.
    Index,
    /// Materialized view or table with copies of other tables' rows.
    Copies,
    /// Partitioned table, whose rows are those of its partitions.
    Parent,
    /// Table that is not searched, with the reason.
    Unread(UnsearchedReason),
}

/// Reason why a table is not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsearchedReason {
    /// We have no privilege to read it.
    Denied,
    /// It is unlogged, and the server is a standby.
    Unlogged,
    /// Rows are in another database.
    Foreign,
    /// Copies of other tables' rows that were never populated.
    Empty,
    /// Rows are in the table's shadow tables.
    Virtual,
}

impl UnsearchedReason {
    /// The reason as text.
    pub fn words(self) -> &'static str {
        match self {
            UnsearchedReason::Denied => "you have no right to read it",
            UnsearchedReason::Unlogged => "a standby cannot read it: it is unlogged, or has a part that is",
            UnsearchedReason::Foreign => "a foreign table: its rows are in another database",
            UnsearchedReason::Empty => "a materialised view that was never populated",
            UnsearchedReason::Virtual => "a virtual table: its content is in its shadow tables, which are searched",
        }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedTable {
    pub name: TableName,
    pub kind: SearchedKind,
    pub columns: Vec<SearchedColumn>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
    /// Whether the key may be NULL, even repeatedly: SQLite allows it, and rows have a hidden number.
    pub has_keys_of_null: bool,
    /// A free name of the hidden row number.
    pub row_number: Option<&'static str>,
    /// Whether the rows belong to another listed table.
    pub partition: bool,
    /// The table it inherits from, through which its rows are also visible; it may have further columns.
    pub inherits: Option<TableName>,
    /// Whether others inherit from it and their rows are visible through it, so that its key does not identify all of
    /// these.
    pub has_heirs: bool,
    /// Whether policies may hide rows from us.
    pub hidden: bool,
}

/// The query for the tables of SQLite.
fn sqlite() -> String {
    let has_index = has_key_index("l.name", "l.schema");
    format!(
        "SELECT l.schema, l.name, l.type, l.wr, c.name, lower(c.type), c.hidden, c.pk, 'words', 0, 0, c.\"notnull\" OR c.pk > 0, \
     0, c.pk > 0 AND NOT c.\"notnull\" AND NOT l.wr AND NOT l.strict AND {has_index} \
     FROM pragma_table_list l JOIN pragma_table_xinfo(l.name, l.schema) c \
     WHERE l.type IN ('table', 'shadow') AND l.schema <> 'temp' ORDER BY l.schema, l.name, c.cid"
    )
}

const SQLITE_OTHERS: &str = "SELECT schema, name, type FROM pragma_table_list \
     WHERE type = 'virtual' AND schema <> 'temp' ORDER BY schema, name";

/// Types are resolved to their components: a domain to its base, a list to its items, a composite to its fields, a
/// range to its bounds.
const POSTGRES: &str = "WITH RECURSIVE stored AS (SELECT c.oid, c.relname, c.relkind, c.relispartition, n.oid AS space, \
       n.nspname, c.relispopulated FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
       WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'), \
     held AS MATERIALIZED (SELECT a.* FROM stored s JOIN pg_attribute a ON a.attrelid = s.oid \
       WHERE a.attnum > 0 AND NOT a.attisdropped), \
     part (root, oid, inner_to) AS ( \
       SELECT DISTINCT a.atttypid, a.atttypid, false FROM held a \
       UNION SELECT p.root, x.oid, p.inner_to OR x.inner_to FROM part p JOIN pg_type t ON t.oid = p.oid, LATERAL ( \
         SELECT t.typbasetype, false WHERE t.typtype = 'd' \
         UNION ALL SELECT t.typelem, true WHERE t.typcategory = 'A' AND t.typelem <> 0 \
         UNION ALL SELECT f.atttypid, true FROM pg_attribute f \
           WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped \
         UNION ALL SELECT r.rngsubtype, true FROM pg_range r \
           WHERE t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)) x (oid, inner_to)), \
     chosen AS MATERIALIZED (SELECT DISTINCT ON (i.indrelid) i.indrelid, i.indkey::int2[] AS columns, i.indnkeyatts AS width FROM pg_index i \
       JOIN stored s ON s.oid = i.indrelid WHERE i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute b \
         WHERE b.attrelid = i.indrelid AND b.attnum = ANY (i.indkey::int2[]) AND NOT b.attnotnull) \
       ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid), \
     leaf AS (SELECT p.root, p.inner_to, CASE \
         WHEN (t.typname IN ('int2', 'int4', 'int8', 'numeric') OR t.typname = 'float8' AND NOT p.inner_to) AND t.typnamespace = 'pg_catalog'::regnamespace THEN 'number' \
         WHEN t.typname IN ('bool', 'float4', 'float8', 'money', 'date', 'time', 'timetz', 'timestamp', 'timestamptz', \
           'interval', 'bit', 'varbit', 'oid', 'tid', 'xid', 'xid8', 'cid', 'point', 'line', 'lseg', 'box', 'path', \
           'polygon', 'circle', 'pg_lsn') AND t.typnamespace = 'pg_catalog'::regnamespace \
           OR t.typname IN ('vector', 'halfvec', 'sparsevec') AND EXISTS (SELECT 1 FROM pg_depend d \
             WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e') THEN 'neither' \
         ELSE 'words' END AS holds \
       FROM part p JOIN pg_type t ON t.oid = p.oid \
       WHERE t.typtype IN ('b', 'e', 'p') AND NOT (t.typcategory = 'A' AND t.typelem <> 0)), \
     kinds AS (SELECT root, CASE WHEN bool_or(holds = 'words') THEN 'words' \
       WHEN bool_or(holds = 'number' AND NOT inner_to) THEN 'number' WHEN bool_or(holds = 'number') THEN 'numbers' \
       ELSE 'neither' END AS holds FROM leaf GROUP BY root) \
     SELECT s.nspname::text, s.relname::text, CASE \
       WHEN s.relkind = 'f' THEN 'foreign' \
       WHEN NOT (has_schema_privilege(s.space, 'USAGE') AND has_table_privilege(s.oid, 'SELECT')) THEN 'denied' \
       WHEN s.relkind = 'm' THEN CASE WHEN s.relispopulated THEN 'copies' ELSE 'empty' END \
       WHEN s.relkind = 'p' THEN 'parent' ELSE 'table' END, 0, a.attname::text, \
     lower(format_type(a.atttypid, a.atttypmod)), CASE WHEN a.attgenerated = '' THEN 0 ELSE 3 END, \
     coalesce((SELECT array_position(i.columns[0:i.width - 1], a.attnum) + 1 FROM chosen i WHERE i.indrelid = s.oid), 0), coalesce(k.holds, 'words'), \
     s.relispartition, row_security_active(s.oid), a.attnotnull, \
     a.attinhcount > 0 AND NOT s.relispartition \
     FROM stored s JOIN held a ON a.attrelid = s.oid LEFT JOIN kinds k ON k.root = a.atttypid ORDER BY 1, 2, a.attnum";

/// Inheriting tables, without partitions, each with its parent.
const INHERITING: &str = "SELECT n.nspname::text, c.relname::text, s.nspname::text, p.relname::text FROM pg_inherits i \
     JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace s ON s.oid = p.relnamespace \
     WHERE NOT c.relispartition AND c.relkind IN ('r', 'f') ORDER BY 1, 2, i.inhseqno DESC";

/// Partitioned tables with everything below them: whether that holds rows, its name, and its partition columns; an
/// expression has no name.
const PARTITIONS: &str = "SELECT n.nspname::text, r.relname::text, t.isleaf, s.nspname::text, c.relname::text, \
     a.attname::text, k.number IS NOT NULL FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace \
     CROSS JOIN LATERAL pg_partition_tree(r.oid) t JOIN pg_class c ON c.oid = t.relid \
     JOIN pg_namespace s ON s.oid = c.relnamespace LEFT JOIN pg_partitioned_table b ON b.partrelid = c.oid \
     LEFT JOIN LATERAL unnest(b.partattrs::int2[]) k (number) ON true \
     LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number \
     WHERE r.relkind = 'p' AND NOT r.relispartition ORDER BY 1, 2";

/// Every table, ordered by schema and name. Views are left out, since their data is stored elsewhere.
pub async fn read(store: &Store) -> Result<Vec<SearchedTable>, StoreError> {
    let mut tables: BTreeMap<TableName, SearchedTable> = BTreeMap::new();
    let mut keys: BTreeMap<TableName, Vec<(i64, String)>> = BTreeMap::new();
    let sql = if store.engine() == Engine::Sqlite { sqlite() } else { POSTGRES.to_owned() };
    let mut computed: BTreeMap<TableName, Vec<String>> = BTreeMap::new();
    for row in store.fetch_text(&sql).await? {
        let name = TableName::new(text(&row, 0), text(&row, 1));
        let table = tables.entry(name.clone()).or_insert_with(|| SearchedTable {
            name: name.clone(),
            kind: match store.catalog().exactly(&name.schema, &name.name) {
                Some(known) if known.unlogged => SearchedKind::Unread(UnsearchedReason::Unlogged),
                _ => kind(&text(&row, 2), &name.name),
            },
            columns: Vec::new(),
            key: Vec::new(),
            has_keys_of_null: false,
            row_number: (store.engine() == Engine::Sqlite && number(&row, 3) == 0).then_some("rowid"),
            partition: number(&row, 9) == 1,
            inherits: None,
            has_heirs: false,
            hidden: number(&row, 10) == 1,
        });
        let holds = holds(&text(&row, 8));
        let column = SearchedColumn {
            name: text(&row, 4),
            declared: text(&row, 5),
            holds,
            required: number(&row, 11) == 1,
            inherited: number(&row, 12) == 1,
        };
        table.has_keys_of_null |= number(&row, 13) == 1;
        if number(&row, 7) > 0 {
            keys.entry(name.clone()).or_default().push((number(&row, 7), column.name.clone()));
        }
        // A generated column follows its source columns.
        if number(&row, 6) == 0 {
            table.columns.push(column);
        } else {
            computed.entry(name).or_default().push(column.name);
        }
    }
    if store.engine() == Engine::Sqlite {
        for row in store.fetch_text(SQLITE_OTHERS).await? {
            let name = TableName::new(text(&row, 0), text(&row, 1));
            let (kind, columns, key) = (SearchedKind::Unread(UnsearchedReason::Virtual), Vec::new(), Vec::new());
            let table = SearchedTable {
                name,
                kind,
                columns,
                key,
                has_keys_of_null: false,
                row_number: None,
                partition: false,
                inherits: None,
                has_heirs: false,
                hidden: false,
            };
            tables.insert(table.name.clone(), table);
        }
    }
    for (name, mut columns) in keys {
        columns.sort_unstable();
        if let Some(table) = tables.get_mut(&name) {
            table.key = columns.into_iter().map(|(_, column)| column).collect();
        }
    }
    for table in tables.values_mut() {
        let computed = computed.get(&table.name).into_iter().flatten();
        let columns: Vec<&String> = table.columns.iter().map(|column| &column.name).chain(computed).collect();
        table.row_number = table.row_number.and_then(|_| free_name(&columns));
    }
    if store.engine() == Engine::Postgres {
        for row in store.fetch_text(INHERITING).await? {
            if let Some(table) = tables.get_mut(&TableName::new(text(&row, 0), text(&row, 1))) {
                table.inherits = Some(TableName::new(text(&row, 2), text(&row, 3)));
            }
            if let Some(parent) = tables.get_mut(&TableName::new(text(&row, 2), text(&row, 3))) {
                parent.has_heirs = true;
            }
        }
        if tables.values().any(|t| t.kind == SearchedKind::Parent && t.key.is_empty() && !t.partition) {
            keys_below(&mut tables, &store.fetch_text(PARTITIONS).await?);
        }
    }
    Ok(tables.into_values().collect())
}

/// Gives partitioned tables without a key that of their partitions, if all have the same: together with the partition
/// columns it identifies the rows of the whole.
fn keys_below(tables: &mut BTreeMap<TableName, SearchedTable>, rows: &[RawRow]) {
    /// Key columns shared by all partitions, and partition columns.
    type Shared = (BTreeSet<String>, BTreeSet<String>);
    let mut found: BTreeMap<TableName, Option<Shared>> = BTreeMap::new();
    for row in rows {
        let whole = TableName::new(text(row, 0), text(row, 1));
        let part = TableName::new(text(row, 3), text(row, 4));
        let below = found.entry(whole).or_insert_with(|| Some((BTreeSet::new(), BTreeSet::new())));
        let Some((key, by)) = below else { continue };
        if number(row, 2) == 1 {
            let own: BTreeSet<String> = tables.get(&part).map(|t| t.key.iter().cloned().collect()).unwrap_or_default();
            if own.is_empty() || !key.is_empty() && *key != own {
                *below = None;
            } else {
                *key = own;
            }
        } else if number(row, 6) == 1 {
            match text(row, 5) {
                expression if expression.is_empty() => *below = None,
                column => drop(by.insert(column)),
            }
        }
    }
    for (whole, below) in found {
        if let (Some(table), Some((key, by))) = (tables.get_mut(&whole).filter(|t| t.key.is_empty()), below)
            && !key.is_empty()
        {
            table.key = key.union(&by).cloned().collect();
        }
    }
}

/// Whether a table is internal to SQLite, not a relation.
pub fn is_engines_own(table: &TableName) -> bool {
    table.name.starts_with("sqlite_")
}

fn kind(word: &str, name: &str) -> SearchedKind {
    match word {
        "shadow" => SearchedKind::Index,
        // Samples of indexed values.
        _ if name.starts_with("sqlite_stat") => SearchedKind::Index,
        "foreign" => SearchedKind::Unread(UnsearchedReason::Foreign),
        "denied" => SearchedKind::Unread(UnsearchedReason::Denied),
        "empty" => SearchedKind::Unread(UnsearchedReason::Empty),
        "copies" => SearchedKind::Copies,
        "parent" => SearchedKind::Parent,
        _ => SearchedKind::Stored,
    }
}

fn holds(word: &str) -> ColumnContent {
    match word {
        "number" => ColumnContent::Number,
        "numbers" => ColumnContent::Numbers,
        "neither" => ColumnContent::Neither,
        _ => ColumnContent::Words,
    }
}
