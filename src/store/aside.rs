//! Data that PostgreSQL stores outside the rows of tables: large objects, and statistics with the most common values of
//! columns.

use super::StoreError;
use super::ability::ServerAbility;
use super::fetched::{FetchedValue, number, text};
use super::snapshot::Snapshot;
use super::stored::TableName;
use crate::layout::Engine;

/// Largest large object to read, in bytes.
pub const OBJECT: usize = 64 << 20;

/// Second column: whether our role may read the object.
const OBJECTS: &str = "SELECT l.oid::bigint, current_setting('lo_compat_privileges')::bool \
       OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) OR pg_has_role(l.lomowner, 'USAGE') \
       OR EXISTS (SELECT 1 FROM aclexplode(l.lomacl) a WHERE a.privilege_type = 'SELECT' \
         AND (a.grantee = 0 OR pg_has_role(a.grantee, 'USAGE'))) FROM pg_largeobject_metadata l ORDER BY 1";

/// Statistics of an index are listed under its table.
const STATISTICS: &str = "SELECT s.schemaname::text, coalesce((SELECT t.relname FROM pg_index i \
       JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_namespace n ON n.oid = x.relnamespace \
       JOIN pg_class t ON t.oid = i.indrelid WHERE x.relname = s.tablename AND n.nspname = s.schemaname), s.tablename)::text, \
       s.attname::text, concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text, s.most_common_elems::text, \
       to_jsonb(s) ->> 'range_bounds_histogram') FROM pg_stats s \
       WHERE s.schemaname !~ '^pg_' AND s.schemaname <> 'information_schema' \
     UNION ALL SELECT schemaname::text, tablename::text, statistics_name::text, most_common_vals::text FROM pg_stats_ext";

/// Since PostgreSQL 14.
const OF_EXPRESSIONS: &str = " UNION ALL SELECT schemaname::text, tablename::text, statistics_name::text, \
     concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text) FROM pg_stats_ext_exprs";

/// Tables that inherit from others or are partitions of them, each with such a parent.
const PARENTS: &str = "SELECT pn.nspname::text, p.relname::text, wn.nspname::text, w.relname::text FROM pg_inherits i \
     JOIN pg_class p ON p.oid = i.inhrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace \
     JOIN pg_class w ON w.oid = i.inhparent JOIN pg_namespace wn ON wn.oid = w.relnamespace WHERE w.relkind IN ('r', 'p', 'f')";

/// Statistics of one column, or of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStatistics {
    /// Table.
    pub table: TableName,
    /// Tables through which its rows are also visible: for a partition, the partitioned table.
    pub within: Vec<TableName>,
    /// Column, or the statistics' own name.
    pub column: String,
    /// The values in the statistics.
    pub values: String,
}

impl Snapshot<'_> {
    /// Lists the large objects, and whether we may read each; `None` if the server does not say.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn large_objects(&mut self) -> Result<Option<Vec<(i64, bool)>>, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(Some(Vec::new()));
        }
        let objects = self.ask(ServerAbility::LargeObjects, OBJECTS).await?;
        Ok(objects.map(|rows| rows.iter().map(|row| (number(row, 0), number(row, 1) == 1)).collect()))
    }

    /// Hands on the number and the bytes of each large object that we may read; no bytes of one that is longer than
    /// [`OBJECT`].
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_large_object(&mut self, mut each: impl FnMut(i64, Option<Vec<u8>>)) -> Result<(), StoreError> {
        for (id, _) in self.large_objects().await?.into_iter().flatten().filter(|(_, readable)| *readable) {
            each(id, self.large_object(id).await?);
        }
        Ok(())
    }

    async fn large_object(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = format!("SELECT lo_get($1::oid, 0, {})", OBJECT + 1);
        let rows = self.fetch(&sql, &[FetchedValue::Text(id.to_string())]).await?;
        Ok(match rows.into_iter().next().and_then(|row| row.into_iter().next()) {
            Some(FetchedValue::Bytes(bytes)) if bytes.len() <= OBJECT => Some(bytes),
            _ => None,
        })
    }

    /// Reads the column statistics of all tables; empty on SQLite, whose statistics are tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn statistics(&mut self) -> Result<Vec<ColumnStatistics>, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(Vec::new());
        }
        let version = self.fetch("SELECT current_setting('server_version_num')::int", &[]).await?;
        let recent = version.first().is_some_and(|row| number(row, 0) >= 140_000);
        let sql = format!("{STATISTICS}{}", if recent { OF_EXPRESSIONS } else { "" });
        let name = |row: &[FetchedValue], at| TableName::new(text(row, at), text(row, at + 1));
        let parents = self.ask(ServerAbility::Parts, PARENTS).await?.unwrap_or_default();
        let parents: Vec<_> = parents.iter().map(|row| (name(row, 0), name(row, 2))).collect();
        let within = |table: &TableName| {
            let mut found = vec![table.clone()];
            while let Some((_, whole)) =
                parents.iter().find(|(part, whole)| found.contains(part) && !found.contains(whole))
            {
                found.push(whole.clone());
            }
            found.split_off(1)
        };
        let read = |row: &Vec<FetchedValue>| {
            let table = name(row, 0);
            ColumnStatistics { within: within(&table), table, column: text(row, 2), values: text(row, 3) }
        };
        Ok(self.fetch(&sql, &[]).await?.iter().map(read).collect())
    }
}
