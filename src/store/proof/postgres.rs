//! The physical pass on PostgreSQL: tables vacuumed or rewritten, statistics recomputed, and a report of what a client
//! cannot reach.

use std::time::{Duration, Instant};

use super::pass::{PassReport, PassRequest};
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::engine_error::explain;
use crate::store::fetched::{FetchedValue, RawRow, number, text};
use crate::store::server::ServerLink;
use crate::store::session::Opener;
use crate::store::shape::qualified;
use crate::store::stored::TableName;
use crate::store::write::WriteError;

/// Pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(300);

/// Longest wait of one attempt for a lock; sessions queued behind it wait as long.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Query for a table's storage, whether we may vacuum it, and its number of dead rows.
const ABOUT: &str = "SELECT c.oid::bigint, pg_relation_filenode(c.oid)::bigint, \
     coalesce((SELECT sum(pg_stat_get_dead_tuples(p.relid)) FROM pg_partition_tree(c.oid) p), \
       pg_stat_get_dead_tuples(c.oid), 0)::bigint, \
     pg_has_role(c.relowner, 'USAGE') OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) \
     OR EXISTS (SELECT 1 FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid \
       WHERE r.rolname = 'pg_maintain' AND pg_has_role(r.oid, 'USAGE')), c.relkind::text \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";

/// Tables with dead rows, whoever deleted them; partitions are vacuumed with the partitioned table.
const DEAD: &str = "SELECT DISTINCT n.nspname::text, r.relname::text FROM pg_class c \
     JOIN pg_class r ON r.oid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END \
     JOIN pg_namespace n ON n.oid = r.relnamespace WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_' \
     AND n.nspname <> 'information_schema' AND pg_stat_get_dead_tuples(c.oid) > 0 ORDER BY 1, 2";

const MAINTAIN: &str = "SELECT has_table_privilege(to_regclass($1), 'MAINTAIN')";

/// Sessions, slots and prepared transactions that keep dead rows from being removed.
const OLD_READERS: &str = "SELECT 'process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '') \
       || ' in state ' || coalesce(state, 'unknown') FROM pg_stat_activity \
       WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend' \
       AND (datname = current_database() OR datname IS NULL) \
     UNION ALL SELECT 'replication slot ' || slot_name::text FROM pg_replication_slots \
       WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL \
     UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = current_database()";

/// Statistics of a table's columns.
const LEARNED: &str = "SELECT 1 FROM pg_catalog.pg_stats WHERE schemaname = $1 AND tablename = $2";

/// Deletes the statistics of a table and its indexes; before PostgreSQL 18 there is no statement for that.
const FORGET: &str = "BEGIN READ WRITE; SET LOCAL lock_timeout = 500; SET LOCAL allow_system_table_mods = on; \
     DELETE FROM pg_catalog.pg_statistic WHERE starelid = $relation \
       OR starelid IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = $relation); \
     DELETE FROM pg_catalog.pg_statistic_ext_data \
       WHERE stxoid IN (SELECT oid FROM pg_catalog.pg_statistic_ext WHERE stxrelid = $relation); COMMIT";

const LOCKERS: &str = "SELECT string_agg(DISTINCT 'process ' || a.pid || coalesce(' (' || nullif(a.application_name, '') || ')', ''), ', ') \
     FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
     WHERE l.relation = to_regclass($1) AND l.granted AND l.pid <> pg_backend_pid() AND l.locktype = 'relation'";

/// Query for copies beyond the tables: archives, standbys, slots, recorded statements, extended statistics,
/// publications.
const BEYOND: &str = "SELECT current_setting('archive_mode', true), \
     (SELECT count(*) FROM pg_stat_replication)::bigint, \
     (SELECT string_agg(slot_name || coalesce(' (' || plugin || ')', ''), ', ' ORDER BY slot_name) FROM pg_replication_slots), \
     EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'), \
     EXISTS (SELECT 1 FROM pg_statistic_ext), \
     (SELECT string_agg(pubname, ', ' ORDER BY pubname) FROM pg_publication)";

struct PostgresPass<'a> {
    link: ServerLink,
    wanted: &'a PassRequest,
    /// Time spent waiting for sessions that may still read dead rows, over all tables.
    waited: Duration,
}

struct PostgresTable {
    file: Option<i64>,
    dead: i64,
    may: bool,
}

pub async fn pass(store: &Store, wanted: &PassRequest) -> Result<PassReport, WriteError> {
    let Opener::Postgres(server) = store.sessions.opener() else { return Ok(PassReport::default()) };
    // A second connection may be needed to stop a waiting one.
    store.sessions.close_idle();
    let link = store.link(server).await?;
    let mut work = PostgresPass { link, wanted, waited: Duration::ZERO };
    let mut pass = PassReport::default();
    for table in &wanted.touched {
        work.table(&mut pass, table, true).await?;
    }
    for row in work.rows(DEAD, &[]).await? {
        let table = TableName::new(text(&row, 0), text(&row, 1));
        if !wanted.touched.contains(&table) {
            work.table(&mut pass, &table, false).await?;
        }
    }
    for table in &wanted.learned {
        work.learn_again(&mut pass, table).await?;
    }
    work.statistics(&mut pass).await?;
    let lsn = work.checkpoint(&mut pass).await?;
    work.beyond(&mut pass, &lsn).await?;
    work.link.close().await;
    Ok(pass)
}

impl PostgresPass<'_> {
    async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        tracing::debug!(%sql, "physical pass");
        self.link.script(sql).await
    }

    async fn rows(&mut self, sql: &str, params: &[FetchedValue]) -> Result<Vec<RawRow>, sqlx::Error> {
        self.link.read(sql, params).await
    }

    async fn about(&mut self, table: &TableName) -> Result<Option<PostgresTable>, sqlx::Error> {
        let params = [FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone())];
        let Some(row) = self.rows(ABOUT, &params).await?.into_iter().next() else { return Ok(None) };
        let mut may = number(&row, 3) == 1;
        if !may {
            // A separate privilege since PostgreSQL 17; unknown before.
            let named = [FetchedValue::Text(qualified(table))];
            may = self.rows(MAINTAIN, &named).await.is_ok_and(|rows| rows.first().is_some_and(|r| number(r, 0) == 1));
        }
        let file = row.get(1).filter(|raw| **raw != FetchedValue::Null).map(|_| number(&row, 1));
        Ok(Some(PostgresTable { file, dead: number(&row, 2), may }))
    }

    /// Waits a moment for sessions that may still read dead rows, unless patience is exhausted.
    async fn waits(&mut self) -> bool {
        if self.waited >= self.wanted.patience {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        self.waited += PAUSE;
        true
    }

    /// Repeats a cleaning statement while a lock is not available and patience lasts.
    async fn patiently(&mut self, sql: &str) -> Result<bool, sqlx::Error> {
        let began = Instant::now();
        loop {
            match self.link.alone(sql, LOCK_WAIT).await? {
                true => return Ok(true),
                false if began.elapsed() < self.wanted.patience => tokio::time::sleep(PAUSE).await,
                false => return Ok(false),
            }
        }
    }

    /// Vacuums a table. In an untouched table others deleted rows: if it cannot be vacuumed, that is disclosed.
    async fn table(&mut self, pass: &mut PassReport, table: &TableName, touched: bool) -> Result<(), WriteError> {
        let (title, full) = (table.title(), self.wanted.full);
        let Some(before) = self.about(table).await? else { return Ok(()) };
        if !before.may {
            pass.refused.push(format!(
                "{title} was not cleaned, because only its owner may do so; deleted rows stay in its file until then"
            ));
            return Ok(());
        }
        let mut words = vec!["ANALYZE"];
        words.extend(full.then_some("FULL"));
        let sql = format!("VACUUM ({}) {}", words.join(", "), qualified(table));
        match self.patiently(&sql).await {
            Ok(true) => {}
            Ok(false) => {
                let lockers = self.rows(LOCKERS, &[FetchedValue::Text(qualified(table))]).await?;
                let who = lockers.first().map(|row| text(row, 0)).filter(|who| !who.is_empty());
                let who = who.unwrap_or_else(|| "another session".to_owned());
                let what = format!("{title} could not be cleaned: {who} holds a lock on it");
                if touched {
                    pass.incomplete.push(format!("{what}; resume later"));
                } else {
                    pass.refused.push(what);
                }
                return Ok(());
            }
            Err(error) if matches!(&error, sqlx::Error::Database(_)) => {
                pass.refused.push(format!("{title} was not cleaned: {}", explain(&error)));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let Some(mut after) = self.settled(table).await? else { return Ok(()) };
        // Waits for sessions that end in a moment, such as autovacuum.
        while after.dead > 0 && self.waits().await {
            if !self.patiently(&sql).await.unwrap_or_default() {
                break;
            }
            let Some(again) = self.settled(table).await? else { return Ok(()) };
            after = again;
        }
        if full && before.file.is_some() && before.file == after.file {
            let what = "was not rewritten, because other sessions hold locks on it; resume later";
            pass.incomplete.push(format!("{title} {what}"));
            return Ok(());
        }
        if after.dead > 0 {
            self.dead(pass, &title, after.dead, touched).await?;
        }
        self.unlearned(pass, table).await?;
        if !full {
            pass.disclosures.push(format!(
                "{title} was cleaned but not rewritten: copies of deleted values may remain in the free space of its \
                 file until it is reused; --full rewrites it"
            ));
        }
        Ok(())
    }

    /// Recomputes statistics of a table with data that must be gone: those of a partitioned table are not recomputed
    /// with its partitions, and a truncated table keeps its own.
    async fn learn_again(&mut self, pass: &mut PassReport, table: &TableName) -> Result<(), WriteError> {
        match self.patiently(&format!("ANALYZE {}", qualified(table))).await {
            Ok(true) => {}
            Ok(false) => pass.refused.push(format!(
                "the statistics of {} were not refreshed, because other sessions hold locks on it",
                table.title()
            )),
            Err(error) if matches!(&error, sqlx::Error::Database(_)) => {
                let title = table.title();
                pass.refused.push(format!("the statistics of {title} were not rebuilt: {}", explain(&error)));
            }
            Err(error) => return Err(error.into()),
        }
        self.unlearned(pass, table).await
    }

    /// Deletes the statistics of an empty table: `ANALYZE` keeps those of the former rows, including the most common
    /// values of each column.
    async fn unlearned(&mut self, pass: &mut PassReport, table: &TableName) -> Result<(), WriteError> {
        let named = qualified(table);
        let params = [FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone())];
        let sql = format!("{LEARNED} AND NOT EXISTS (SELECT 1 FROM {named})");
        if self.rows(&sql, &params).await?.is_empty() {
            return Ok(());
        }
        let relation = format!("'{}'::regclass", named.replace('\'', "''"));
        match self.run(&FORGET.replace("$relation", &relation)).await {
            Ok(()) => {}
            Err(error) if matches!(&error, sqlx::Error::Database(_)) => {
                self.run("ROLLBACK").await?;
                pass.refused.push(format!(
                    "the statistics of the emptied table {} hold its most common values until it has rows again and is \
                     analysed: {}",
                    table.title(),
                    explain(&error)
                ));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The state of a table once the server's counters are up to date.
    async fn settled(&mut self, table: &TableName) -> Result<Option<PostgresTable>, sqlx::Error> {
        for _ in 0..3 {
            let about = self.about(table).await?;
            if about.as_ref().is_none_or(|a| a.dead == 0) {
                return Ok(about);
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.about(table).await
    }

    async fn dead(&mut self, pass: &mut PassReport, title: &str, dead: i64, touched: bool) -> Result<(), WriteError> {
        let readers: Vec<String> = self.rows(OLD_READERS, &[]).await?.iter().map(|row| text(row, 0)).collect();
        if readers.is_empty() || !touched {
            let what = "{#} dead {row|rows}: other sessions have changed rows since it was cleaned";
            pass.disclosures.push(format!("{title} holds {}", agreeing(dead, what)));
        } else {
            pass.incomplete.push(format!(
                "{title} still holds {dead} dead rows, which {} may still read; end it and resume",
                readers.join(", ")
            ));
        }
        Ok(())
    }

    /// Recomputes statistics, which contain the most common values of each column.
    async fn statistics(&mut self, pass: &mut PassReport) -> Result<(), WriteError> {
        let extended = self.rows(BEYOND, &[]).await.is_ok_and(|rows| rows.first().is_some_and(|r| number(r, 4) == 1));
        let tables = ["pg_catalog.pg_statistic", "pg_catalog.pg_statistic_ext_data"];
        for table in tables.into_iter().take(if extended { 2 } else { 1 }) {
            // Without the privilege the server only warns and skips it.
            let may = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
            let may = self.rows(may, &[]).await.is_ok_and(|rows| rows.first().is_some_and(|r| number(r, 0) == 1));
            let what = |why: &str| format!("old statistics may still hold common values in the file of {table}: {why}");
            if !may {
                pass.refused.push(what("only a superuser may rewrite it"));
                continue;
            }
            match self.written_anew(table).await {
                Ok(Some(0)) => {}
                Ok(Some(dead)) => {
                    pass.refused.push(what(&agreeing(dead, "other sessions may still read {#} old {row|rows}")));
                }
                Ok(None) => pass.refused.push(what("other sessions hold locks on it")),
                Err(error) if matches!(&error, sqlx::Error::Database(_)) => {
                    pass.refused.push(what(&explain(&error)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Rewrites a catalog, repeatedly while others may read its old rows and patience lasts. Returns the number of
    /// these rows; `None` if it is locked. Only a plain `VACUUM` counts them.
    async fn written_anew(&mut self, table: &str) -> Result<Option<i64>, sqlx::Error> {
        loop {
            for sql in [format!("VACUUM (FULL) {table}"), format!("VACUUM {table}")] {
                if !self.patiently(&sql).await? {
                    return Ok(None);
                }
            }
            let sql = "SELECT coalesce(pg_stat_get_dead_tuples(to_regclass($1)), 0)";
            let rows = self.rows(sql, &[FetchedValue::Text(table.to_owned())]).await?;
            let dead = rows.first().map_or(0, |row| number(row, 0));
            if dead == 0 || !self.waits().await {
                return Ok(Some(dead));
            }
        }
    }

    /// Returns the place in the write-ahead log up to which it holds deleted values.
    async fn checkpoint(&mut self, pass: &mut PassReport) -> Result<String, WriteError> {
        match self.run("CHECKPOINT").await {
            Ok(()) => {}
            Err(error) if matches!(&error, sqlx::Error::Database(_)) => {
                let what = "old pages may remain on disk until the next checkpoint";
                pass.refused.push(format!("{what}: {}", explain(&error)));
            }
            Err(error) => return Err(error.into()),
        }
        let lsn = self.rows("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap_or_default();
        Ok(lsn.first().map_or_else(|| "now".to_owned(), |row| text(row, 0)))
    }

    async fn beyond(&mut self, pass: &mut PassReport, lsn: &str) -> Result<(), WriteError> {
        let log = format!("the server's write-ahead log before {lsn} holds deleted values until it is recycled");
        pass.disclosures.push(log);
        let row = match self.rows(BEYOND, &[]).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(error) => {
                pass.refused.push(format!("could not find out what holds copies: {}", explain(&error)));
                return Ok(());
            }
        };
        let mut disclose = |words: String| pass.disclosures.push(words);
        if !matches!(text(&row, 0).as_str(), "" | "off") {
            let words = "the write-ahead log is archived: archives, and backups made from them, hold deleted values";
            disclose(words.to_owned());
        }
        match number(&row, 1) {
            0 => {}
            count => {
                let words = "{#} standby {server follows this one: it receives|servers follow this one: they receive} \
                 the deletions in due course";
                disclose(agreeing(count, words));
            }
        }
        if !text(&row, 2).is_empty() {
            disclose(format!("replication slots keep old log files: {}", text(&row, 2)));
        }
        if !text(&row, 5).is_empty() {
            let words = "publications have passed rows on, and subscribers may keep copies";
            disclose(format!("{words}: {}", text(&row, 5)));
        }
        if number(&row, 3) == 1 {
            disclose("pg_stat_statements is installed: its statement texts may hold values".to_owned());
        }
        Ok(())
    }
}
