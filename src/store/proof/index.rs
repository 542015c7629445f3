//! What search indexes still give: words in full-text indexes of SQLite, neighbours of a vector in PostgreSQL.

use std::ops::ControlFlow;

use serde::Serialize;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::tables::{number, text};
use crate::layout::Engine;
use crate::store::connect::explain;
use crate::store::dialect::quote;
use crate::store::session::{self, Opener, Raw, RawRow};
use crate::store::shape::qualified;
use crate::store::stored::TableName;
use crate::store::{Store, StoreError};

/// What one full-text index gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexHits {
    /// Table of the index.
    pub table: String,
    /// Rows that each handle finds as a phrase, by its number.
    pub rows: Vec<u64>,
    /// Rows under a term of the vocabulary that is the whole handle, by its number.
    pub terms: Vec<u64>,
    /// Why it could not be asked.
    pub unread: Option<String>,
}

impl IndexHits {
    /// Hits of all handles.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows.iter().chain(&self.terms).sum()
    }
}

const SEARCH_TABLES: &str = "SELECT name, lower(sql) LIKE '%using fts5%' FROM main.sqlite_schema WHERE type = 'table' \
     AND lower(sql) LIKE 'create virtual table%' AND (lower(sql) LIKE '%using fts5%' \
     OR lower(sql) LIKE '%using fts4%') ORDER BY name";

impl Store {
    /// Asks every full-text index of SQLite for handles. PostgreSQL's indexes only point at rows, which are searched
    /// themselves: none there.
    ///
    /// # Errors
    /// The engine's refusal; an index that cannot be asked is told as such.
    pub async fn search_indexes(&self, handles: &[String]) -> Result<Vec<IndexHits>, StoreError> {
        let Opener::Sqlite(options, _) = self.sessions.opener() else { return Ok(Vec::new()) };
        let tables = self.fetch_text(SEARCH_TABLES).await?;
        let mut all = Vec::new();
        if tables.is_empty() {
            return Ok(all);
        }
        // The vocabulary is read through a temporary table, which reading sessions may not make.
        let mut link = SqliteConnection::connect_with(options).await?;
        for table in tables {
            all.push(ask(&mut link, &text(&table, 0), number(&table, 1) == 1, handles).await);
        }
        link.close().await?;
        Ok(all)
    }

    /// Ids of the `k` rows whose vectors are nearest to one, by the engine's own index where it has one. None on SQLite,
    /// which has no such index.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn nearest_ids(
        &self,
        table: &TableName,
        id: &str,
        vector: &str,
        query: &[f32],
        k: usize,
    ) -> Result<Option<Vec<String>>, StoreError> {
        if self.engine() == Engine::Sqlite {
            return Ok(None);
        }
        let numbers: Vec<String> = query.iter().map(ToString::to_string).collect();
        let sql = format!(
            "SELECT {}::text FROM {} ORDER BY {} <=> $1::vector LIMIT {k}",
            quote(id),
            qualified(table),
            quote(vector)
        );
        let rows = self.sessions.fetch(&sql, &[Raw::Text(format!("[{}]", numbers.join(",")))]).await?;
        Ok(Some(rows.iter().map(|row| text(row, 0)).collect()))
    }
}

async fn ask(link: &mut SqliteConnection, table: &str, fts5: bool, handles: &[String]) -> IndexHits {
    let mut hits = IndexHits { table: table.to_owned(), rows: Vec::new(), terms: Vec::new(), unread: None };
    let outcome = async {
        for handle in handles {
            hits.rows.push(phrase(link, table, handle).await?);
        }
        if fts5 {
            hits.terms = vocabulary(link, table, handles).await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    if let Err(error) = outcome.await {
        hits.unread = Some(explain(&error));
    }
    hits
}

/// Rows that hold a handle's words one after the other. A handle without any word finds none.
async fn phrase(link: &mut SqliteConnection, table: &str, handle: &str) -> Result<u64, sqlx::Error> {
    if !handle.chars().any(char::is_alphanumeric) {
        return Ok(0);
    }
    let sql = format!("SELECT count(*) FROM main.{t} WHERE {t} MATCH $1", t = quote(table));
    let phrase = format!("\"{}\"", handle.replace('"', "\"\"").replace('\0', ""));
    count(link, &sql, &[Raw::Text(phrase)]).await
}

async fn vocabulary(link: &mut SqliteConnection, table: &str, handles: &[String]) -> Result<Vec<u64>, sqlx::Error> {
    let make = format!(
        "DROP TABLE IF EXISTS temp.vocabulary; CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, {}, row)",
        quote(table)
    );
    sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut *link).await?;
    let mut hits = Vec::new();
    for handle in handles {
        let sql = "SELECT coalesce(sum(doc), 0) FROM temp.vocabulary WHERE term = $1";
        hits.push(count(link, sql, &[Raw::Text(handle.to_lowercase())]).await?);
    }
    sqlx::raw_sql("DROP TABLE temp.vocabulary").execute(&mut *link).await?;
    Ok(hits)
}

async fn count(link: &mut SqliteConnection, sql: &str, params: &[Raw]) -> Result<u64, sqlx::Error> {
    let mut found = 0;
    let mut each = |row: RawRow| {
        found = number(&row, 0) as u64;
        ControlFlow::Break(())
    };
    session::scan_sqlite(link, sql, params, &mut each).await.map(drop)?;
    Ok(found)
}
