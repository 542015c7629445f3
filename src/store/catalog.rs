//! Reads what tables, columns and indexes a database has.

use std::collections::HashMap;

use crate::layout::{Catalog, CatalogColumn, CatalogTable, Engine};

use super::ability::{RefusedAbilities, ServerAbility};
use super::dialect::quote;
use super::engine_error::{EngineFault, explain, fault};
use super::fetched::{FetchedValue, RawRow, integer, text};
use super::row_number::{free_name_sql, has_key_index};
use super::session::Sessions;

/// Reads the catalog of the opened database. Parts that the server refuses to show are left out and noted.
///
/// # Errors
/// The engine's error, for example for a damaged file.
pub async fn read(sessions: &Sessions, refusals: &RefusedAbilities) -> Result<Catalog, sqlx::Error> {
    let mut catalog = Catalog::default();
    match sessions.engine() {
        Engine::Sqlite => {
            let schemas = sessions.fetch("SELECT name FROM pragma_database_list ORDER BY seq", &[]).await?;
            for schema in schemas.iter().map(|row| text(row, 0)).filter(|s| s != "temp") {
                read_sqlite(sessions, &schema, &mut catalog).await?;
            }
        }
        Engine::Postgres => read_postgres(sessions, refusals, &mut catalog).await?,
    }
    Ok(catalog)
}

async fn read_sqlite(sessions: &Sessions, schema: &str, catalog: &mut Catalog) -> Result<(), sqlx::Error> {
    let quoted = quote(schema);
    let s = schema.replace('\'', "''");
    let first = catalog.tables.len();
    // A virtual table whose module is not compiled in cannot be described; its shadow tables can.
    let named = format!(
        "SELECT name, type FROM {quoted}.sqlite_schema WHERE type IN ('table', 'view') \
         AND lower(substr(name, 1, 7)) <> 'sqlite_' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    );
    let (mut views, mut places) = (Vec::new(), HashMap::new());
    for row in sessions.fetch(&named, &[]).await? {
        let name = text(&row, 0);
        let visible = !catalog.tables[..first].iter().any(|t| t.visible && t.name == name);
        let at = catalog.tables.len();
        if text(&row, 1) == "view" {
            views.push(at);
        }
        places.insert(name.clone(), at);
        catalog.tables.push(CatalogTable { schema: schema.to_owned(), name, visible, ..CatalogTable::default() });
    }
    let searched = format!(
        "SELECT m.name FROM {quoted}.sqlite_schema m WHERE m.type = 'table' AND m.sql LIKE 'CREATE VIRTUAL%' \
         AND EXISTS (SELECT 1 FROM pragma_module_list l WHERE l.name LIKE 'fts%' \
           AND lower(m.sql) LIKE '%using%' || l.name || '%')"
    );
    let searched = sessions.fetch(&searched, &[]).await?;
    catalog.word_indexes.extend(searched.iter().map(|row| text(row, 0)));
    let columns = format!(
        "SELECT p.name, lower(p.type), p.\"notnull\" OR p.pk > 0 AND NOT {}, m.name \
         FROM {quoted}.sqlite_schema m JOIN pragma_table_xinfo(m.name, '{s}') p \
         WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND p.hidden <> 1 ORDER BY m.name, p.cid",
        has_key_index("m.name", &format!("'{s}'"))
    );
    for row in sessions.fetch(&columns, &[]).await? {
        if let Some(at) = places.get(&text(&row, 3)) {
            catalog.tables[*at].columns.push(sqlite_column(&row));
        }
    }
    for at in views {
        let table = &mut catalog.tables[at];
        let named = [&table.name, &table.schema].map(|name| FetchedValue::Text(name.clone()));
        let columns = "SELECT name, lower(type), \"notnull\" FROM pragma_table_xinfo($1, $2) ORDER BY cid";
        match sessions.fetch(columns, &named).await {
            Ok(rows) => table.columns = rows.iter().map(sqlite_column).collect(),
            // A view of a missing table or function is broken by itself; other tables are not affected.
            Err(error) if is_wrong_in_itself(&error) => table.unread = Some(explain(&error)),
            Err(error) => return Err(error),
        }
    }
    let indexes = format!(
        "SELECT m.name, i.name FROM {quoted}.sqlite_schema m, pragma_index_list(m.name, '{s}') l, \
         pragma_index_info(l.name, '{s}') i WHERE m.type = 'table' AND i.seqno = 0 AND i.name IS NOT NULL \
         AND NOT l.partial AND m.sql NOT LIKE 'CREATE VIRTUAL%'"
    );
    for row in sessions.fetch(&indexes, &[]).await? {
        let name = text(&row, 0);
        if let Some(at) = places.get(&name) {
            catalog.tables[*at].indexed.push(text(&row, 1));
        }
    }
    identities_sqlite(sessions, schema, &places, &mut catalog.tables).await
}

/// Reads the columns that identify the rows of tables: unique indexes, and the row number, or the key of a table
/// without one.
async fn identities_sqlite(
    sessions: &Sessions,
    schema: &str,
    places: &HashMap<String, usize>,
    tables: &mut [CatalogTable],
) -> Result<(), sqlx::Error> {
    let (quoted, s) = (quote(schema), schema.replace('\'', "''"));
    let distinct = format!(
        "SELECT m.name, '', p.name FROM {quoted}.sqlite_schema m JOIN pragma_table_info(m.name, '{s}') p \
         WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND p.pk > 0 AND NOT {} \
         UNION ALL SELECT m.name, l.name, i.name FROM {quoted}.sqlite_schema m JOIN pragma_index_list(m.name, '{s}') l \
         JOIN pragma_index_info(l.name, '{s}') i WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' \
           AND l.\"unique\" AND NOT l.partial ORDER BY 1, 2",
        has_key_index("m.name", &format!("'{s}'"))
    );
    for (name, columns) in by_index(sessions.fetch(&distinct, &[]).await?) {
        if let Some(at) = places.get(&name) {
            tables[*at].unique.push(columns);
        }
    }
    let stored = format!(
        "SELECT l.name, {}, 'integer', 0 AS at FROM pragma_table_list l \
         WHERE l.schema = '{s}' AND l.type = 'table' AND NOT l.wr \
         UNION ALL SELECT l.name, p.name, p.type, p.pk FROM pragma_table_list l JOIN pragma_table_info(l.name, '{s}') p \
         WHERE l.schema = '{s}' AND l.type = 'table' AND l.wr AND p.pk > 0 ORDER BY 1, at",
        free_name_sql("l.name", "l.schema")
    );
    for row in sessions.fetch(&stored, &[]).await? {
        let place = Some((text(&row, 1), text(&row, 2))).filter(|(column, _)| !column.is_empty());
        if let Some(at) = places.get(&text(&row, 0)) {
            tables[*at].places.extend(place);
        }
    }
    Ok(())
}

/// Groups the columns of indexes by index; each comes with its table. Indexes on expressions are left out.
fn by_index(rows: Vec<RawRow>) -> Vec<(String, Vec<String>)> {
    let mut indexes: Vec<(String, String, Vec<String>)> = Vec::new();
    for row in rows {
        let table = integer(&row, 0).map_or_else(|| text(&row, 0), |number| number.to_string());
        let index = text(&row, 1);
        match indexes.last_mut().filter(|(t, i, _)| *t == table && *i == index) {
            Some((.., columns)) => columns.push(text(&row, 2)),
            None => indexes.push((table, index, vec![text(&row, 2)])),
        }
    }
    indexes.retain(|(.., columns)| columns.iter().all(|column| !column.is_empty()));
    indexes.into_iter().map(|(table, _, columns)| (table, columns)).collect()
}

/// Whether a statement or a view is itself invalid, as opposed to a file that is damaged, locked or gone.
fn is_wrong_in_itself(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if e.code().as_deref() == Some("1"))
}

fn sqlite_column(row: &RawRow) -> CatalogColumn {
    CatalogColumn { name: text(row, 0), declared: text(row, 1), not_null: flag(row, 2), denied: false }
}

/// Query that every server supports: the tables with their numbers, names and row estimates.
const TABLES: &str = "SELECT c.oid::bigint, n.nspname::text, c.relname::text, pg_table_is_visible(c.oid), \
     c.reltuples::bigint, c.relkind = 'p', c.relrowsecurity, c.relkind IN ('r', 'm'), c.relpersistence = 'u', c.relkind = 'm' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     ORDER BY 2, 3";

/// The columns of all tables, each with its type; a domain with its base type, by which its values are read and
/// compared.
const COLUMNS: &str = "WITH RECURSIVE made_of (domain, type, modifier) AS ( \
       SELECT oid, typbasetype, typtypmod FROM pg_type WHERE typtype = 'd' UNION ALL \
       SELECT m.domain, t.typbasetype, t.typtypmod FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype = 'd'), \
     base AS (SELECT m.domain, m.type, m.modifier FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype <> 'd') \
     SELECT a.attrelid::bigint, a.attname::text, \
     format_type(coalesce(b.type, a.atttypid), CASE WHEN b.type IS NULL THEN a.atttypmod ELSE b.modifier END), \
     a.attnotnull OR t.typnotnull, a.attnum::bigint FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
     LEFT JOIN base b ON b.domain = a.atttypid \
     JOIN pg_class c ON c.oid = a.attrelid \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum";

/// The leading column of each index that covers all rows.
const INDEXES: &str = "SELECT i.indrelid::bigint, a.attname::text FROM pg_index i JOIN pg_attribute a \
     ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indpred IS NULL ORDER BY 1, 2";

/// The columns of each unique index that covers all rows; NULL for an expression.
const DISTINCT: &str = "SELECT i.indrelid::bigint, i.indexrelid::text, a.attname::text FROM pg_index i \
     CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place) \
     LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0 \
     WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts ORDER BY 1, 2, 3";

/// The sizes of tables. A table with an exclusive lock, held or requested, is left out with its indexes: the query
/// would wait for the lock.
const SIZES: &str = "WITH held AS (SELECT l.relation FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
       WHERE d.datname = current_database() AND l.mode = 'AccessExclusiveLock'), \
     kept AS (SELECT relation FROM held \
       UNION SELECT i.indrelid FROM pg_index i JOIN held h ON h.relation = i.indexrelid) \
     SELECT c.oid::bigint, pg_total_relation_size(c.oid) FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') \
     AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.relation IN (c.oid, c.reltoastrelid))";

/// Tables that our role may not read as a whole, whether it may use their schema, and the columns that it may read
/// anyway; at least one row for each, and one row with the role's name.
const RIGHTS: &str = "SELECT 0::bigint, true, NULL::text, current_user::text \
     UNION ALL SELECT c.oid::bigint, has_schema_privilege(n.oid, 'USAGE'), a.attname::text, NULL FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 \
       AND NOT a.attisdropped AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT') \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))";

/// Unlogged tables on a standby, with the tables and views that read them.
const UNLOGGED: &str = "WITH RECURSIVE reads (above, below) AS (SELECT inhparent, inhrelid FROM pg_inherits \
       UNION ALL SELECT v.oid, d.refobjid FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid \
       JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' \
       WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass), \
     unlogged (oid) AS (SELECT oid FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' AND pg_is_in_recovery() \
       UNION SELECT e.above FROM reads e JOIN unlogged u ON u.oid = e.below) \
     SELECT oid::bigint FROM unlogged";

/// Schemas of the search path as set, whether our role may use them or not.
const SEARCH_PATH: &str = "SELECT btrim(replace(btrim(s.name), '$user', current_user), '\"') \
     FROM unnest(string_to_array(current_setting('search_path'), ',')) s (name)";

const HIDING: &str = "SELECT c.oid::bigint FROM pg_class c WHERE c.relrowsecurity AND row_security_active(c.oid)";

/// Tables whose rows are seen through another table: partitions, and inheriting tables.
const PARTS: &str = "SELECT inhparent::bigint, inhrelid::bigint FROM pg_inherits ORDER BY 1, 2";

async fn read_postgres(
    sessions: &Sessions,
    refusals: &RefusedAbilities,
    catalog: &mut Catalog,
) -> Result<(), sqlx::Error> {
    // Indexes into the list of tables, by table number.
    let mut places: HashMap<i64, usize> = HashMap::new();
    let mut secured: Vec<i64> = Vec::new();
    let mut has_unlogged = false;
    for row in sessions.fetch(TABLES, &[]).await? {
        let oid = integer(&row, 0).unwrap_or_default();
        places.insert(oid, catalog.tables.len());
        if flag(&row, 6) {
            secured.push(oid);
        }
        has_unlogged |= flag(&row, 8);
        catalog.tables.push(CatalogTable {
            schema: text(&row, 1),
            name: text(&row, 2),
            visible: flag(&row, 3),
            // Before the first ANALYZE it is -1, or 0 up to PostgreSQL 13.
            estimate: integer(&row, 4).filter(|n| *n > 0),
            partitioned: flag(&row, 5),
            derived: flag(&row, 9),
            places: places_postgres(flag(&row, 5), flag(&row, 7)),
            ..CatalogTable::default()
        });
    }
    let place = |row: &RawRow| integer(row, 0).and_then(|oid| places.get(&oid)).copied();
    for row in sessions.fetch(COLUMNS, &[]).await? {
        let Some(at) = place(&row) else { continue };
        let declared = text(&row, 2).to_ascii_lowercase();
        let column = CatalogColumn { name: text(&row, 1), declared, not_null: flag(&row, 3), denied: false };
        catalog.tables[at].columns.push(column);
    }
    for row in refusals.ask(sessions, ServerAbility::Indexes, INDEXES).await?.unwrap_or_default() {
        let Some(at) = place(&row) else { continue };
        let indexed = &mut catalog.tables[at].indexed;
        let column = text(&row, 1);
        if indexed.last() != Some(&column) {
            indexed.push(column);
        }
    }
    let distinct = refusals.ask(sessions, ServerAbility::Indexes, DISTINCT).await?.unwrap_or_default();
    for (table, columns) in by_index(distinct) {
        if let Some(at) = table.parse::<i64>().ok().and_then(|oid| places.get(&oid)) {
            catalog.tables[*at].unique.push(columns);
        }
    }
    let sizes = match refusals.ask(sessions, ServerAbility::Sizes, SIZES).await {
        // Someone has locked a table meanwhile.
        Err(error) if fault(&error) == Some(EngineFault::Locked) => None,
        sizes => sizes?,
    };
    for row in sizes.unwrap_or_default() {
        if let Some(at) = place(&row) {
            catalog.tables[at].bytes = integer(&row, 1);
        }
    }
    for row in refusals.ask(sessions, ServerAbility::Rights, RIGHTS).await?.unwrap_or_default() {
        match place(&row) {
            None => catalog.role = text(&row, 3),
            Some(at) => deny(&mut catalog.tables[at], &text(&row, 2), flag(&row, 1)),
        }
    }
    let unlogged = if has_unlogged { refusals.ask(sessions, ServerAbility::Standby, UNLOGGED).await? } else { None };
    for row in unlogged.unwrap_or_default() {
        let Some(at) = place(&row) else { continue };
        let table = &mut catalog.tables[at];
        (table.denied, table.unlogged) = (true, true);
        table.columns.iter_mut().for_each(|column| column.denied = true);
    }
    if catalog.tables.iter().any(|table| table.closed_schema && !table.visible) {
        let path = sessions.fetch(SEARCH_PATH, &[]).await?;
        see_closed(catalog, &path.iter().map(|row| text(row, 0)).collect::<Vec<_>>());
    }
    let hiding = match refusals.ask(sessions, ServerAbility::RowSecurity, HIDING).await? {
        Some(rows) => rows.iter().filter_map(|row| integer(row, 0)).collect(),
        None => secured,
    };
    for at in hiding.iter().filter_map(|oid| places.get(oid)) {
        catalog.tables[*at].hides_rows = true;
    }
    let parts = refusals.ask(sessions, ServerAbility::Parts, PARTS).await?.unwrap_or_default();
    let pair = |row: &RawRow| Some((*places.get(&integer(row, 0)?)?, *places.get(&integer(row, 1)?)?));
    let parts: Vec<(usize, usize)> = parts.iter().filter_map(pair).collect();
    parts.iter().for_each(|(_, part)| catalog.tables[*part].derived = true);
    for at in 0..catalog.tables.len() {
        sum_of_parts(catalog, &parts, at);
    }
    Ok(())
}

/// The columns for the physical location of a row, in a partitioned table including the partition.
fn places_postgres(is_partitioned: bool, has_rows: bool) -> Vec<(String, String)> {
    let (partition, place) = (("tableoid", "oid"), ("ctid", "tid"));
    let columns = match (is_partitioned, has_rows) {
        (true, _) => vec![partition, place],
        (false, true) => vec![place],
        (false, false) => Vec::new(),
    };
    columns.into_iter().map(|(name, declared)| (name.to_owned(), declared.to_owned())).collect()
}

/// Notes that a table cannot be read, except for one column if given.
fn deny(table: &mut CatalogTable, readable: &str, schema_open: bool) {
    if !table.denied && table.columns.iter().all(|c| !c.denied) {
        table.denied = true;
        table.columns.iter_mut().for_each(|c| c.denied = true);
    }
    table.closed_schema = !schema_open;
    if let Some(column) = table.columns.iter_mut().find(|c| c.name == readable) {
        column.denied = false;
        table.denied = false;
    }
}

/// Resolves names through closed schemas of the search path too, which the server skips: their tables exist but may not
/// be read.
fn see_closed(catalog: &mut Catalog, path: &[String]) {
    for schema in path {
        for at in 0..catalog.tables.len() {
            let table = &catalog.tables[at];
            let is_taken = || catalog.tables.iter().any(|other| other.visible && other.name == table.name);
            if table.closed_schema && table.schema == *schema && !is_taken() {
                catalog.tables[at].visible = true;
            }
        }
    }
}

/// A partitioned table stores nothing itself: its rows and bytes are the sum of its partitions, at any depth.
fn sum_of_parts(catalog: &mut Catalog, parts: &[(usize, usize)], at: usize) {
    if !catalog.tables[at].partitioned {
        return;
    }
    let (mut below, mut rows, mut bytes) = (vec![at], None, None);
    while let Some(whole) = below.pop() {
        for (_, part) in parts.iter().filter(|(of, _)| *of == whole) {
            let table = &catalog.tables[*part];
            if table.partitioned {
                below.push(*part);
            } else {
                rows = rows.max(Some(0)).zip(table.estimate.or(Some(0))).map(|(a, b)| a + b);
                bytes = match (bytes, table.bytes) {
                    (a, None) => a,
                    (a, Some(b)) => Some(a.unwrap_or(0) + b),
                };
            }
        }
    }
    let table = &mut catalog.tables[at];
    table.estimate = rows.filter(|n| *n > 0).or(table.estimate);
    table.bytes = bytes;
}

fn flag(row: &RawRow, at: usize) -> bool {
    integer(row, at) == Some(1)
}
