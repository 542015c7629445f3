//! Statements on a connection for writing to an SQLite file.

use futures::TryStreamExt as _;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Decode, Row as _, TypeInfo as _, ValueRef as _};

use super::dialect::unnumbered;
use super::fetched::{FetchedValue, Param, RawRow};

/// A statement with its values, each in its own storage class.
pub(super) fn bound(sql: &str, params: Vec<Param>) -> Query<'static, Sqlite, SqliteArguments> {
    let (sql, params) = unnumbered(sql, params);
    let query = sqlx::query(AssertSqlSafe(sql));
    params.into_iter().fold(query, |query, param| match param {
        FetchedValue::Null => query.bind(None::<String>),
        FetchedValue::Text(text) => query.bind(text),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => query.bind(bytes),
        FetchedValue::Integer(i) => query.bind(i),
        FetchedValue::Real(x) => query.bind(x),
    })
}

/// Passes on each row of a statement as it comes, as the connection sees it.
///
/// # Errors
/// SQLite's refusal.
pub(super) async fn scan(
    link: &mut SqliteConnection,
    sql: &str,
    params: &[Param],
    mut each: impl FnMut(RawRow) + Send,
) -> Result<(), sqlx::Error> {
    let mut rows = bound(sql, params.to_vec()).fetch(link);
    while let Some(stored) = rows.try_next().await? {
        each(row(&stored)?);
    }
    Ok(())
}

/// All rows of a statement.
///
/// # Errors
/// SQLite's refusal.
pub(super) async fn fetch(
    link: &mut SqliteConnection,
    sql: &str,
    params: &[Param],
) -> Result<Vec<RawRow>, sqlx::Error> {
    let mut rows = Vec::new();
    scan(link, sql, params, |row| rows.push(row)).await?;
    Ok(rows)
}

fn row(row: &SqliteRow) -> Result<RawRow, sqlx::Error> {
    let mut values = Vec::with_capacity(row.len());
    for i in 0..row.len() {
        let value = row.try_get_raw(i)?;
        if value.is_null() {
            values.push(FetchedValue::Null);
            continue;
        }
        let class = value.type_info().into_owned();
        let read = match class.name() {
            "INTEGER" => <i64 as Decode<Sqlite>>::decode(value).map(FetchedValue::Integer),
            "REAL" => <f64 as Decode<Sqlite>>::decode(value).map(FetchedValue::Real),
            "TEXT" => <Vec<u8> as Decode<Sqlite>>::decode(value).map(|bytes| match String::from_utf8(bytes) {
                Ok(text) => FetchedValue::Text(text),
                Err(bad) => FetchedValue::BadText(bad.into_bytes()),
            }),
            _ => <Vec<u8> as Decode<Sqlite>>::decode(value).map(FetchedValue::Bytes),
        };
        values.push(read.map_err(sqlx::Error::Decode)?);
    }
    Ok(values)
}
