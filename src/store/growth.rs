//! Growth of a table: its rows by the day of their creation, counted by the engine.

use std::ops::ControlFlow;

use super::dialect::{self, PgType, quote};
use super::encode::stored_in_table;
use super::fetched::{FetchedValue, number};
use super::raw_table::RawTable;
use super::select::{SelectStatement, from_clause};
use super::{RawTables, StoreError};
use crate::layout::{BoundColumn, BoundSource, Engine, StoredAs};
use crate::memory::growth::TableGrowth;

impl RawTables<'_> {
    /// Rows of a table by the UTC day of their creation, as a layout reads it; or the reason why the days are unknown.
    /// Days of texts are taken as written.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn growth(self, table: &RawTable) -> Result<Result<TableGrowth, String>, StoreError> {
        let sources = self.store.recognised().sources.iter();
        let of_table: Vec<&BoundSource> = sources.filter(|source| table.is_of(source)).collect();
        let timed = of_table.iter().find_map(|source| {
            let column = source.entity.creation_column()?;
            Some((source, column, day(self.store.engine(), source, column)?))
        });
        let Some((source, column, day)) = timed else {
            let named = of_table.iter().find_map(|source| Some((source.entity, source.entity.creation_column()?)));
            return Ok(Err(match (of_table.first(), named) {
                (None, _) => "no layout says which column holds the time of creation".to_owned(),
                (Some(source), None) => format!("{} has no time of creation", source.entity.title()),
                (_, Some((entity, column))) => {
                    format!("no single column of this table holds `{column}` of {}", entity.title())
                }
            }));
        };
        let keep = source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT {day}, count(*) FROM {} WHERE {keep} GROUP BY 1", from_clause(source));
        let mut growth = TableGrowth::new(source.entity, column);
        let statement = SelectStatement::new(self.store.engine(), sql);
        self.store
            .scan(&statement, |row| {
                let day = if let Some(FetchedValue::Text(day)) = row.first() { Some(day.as_str()) } else { None };
                let rows = u64::try_from(number(&row, 1)).unwrap_or(0);
                growth.add(day, rows);
                ControlFlow::Continue(())
            })
            .await?;
        Ok(Ok(growth))
    }
}

/// The SQL expression for the day of a time, `YYYY-MM-DD` in UTC; for a value that is not a time, the value or NULL. Of
/// several columns the first with a value counts. `None` if one of them is not in this table.
fn day(engine: Engine, source: &BoundSource, column: &str) -> Option<String> {
    let days: Option<Vec<String>> = source.column(column).iter().map(|way| day_of(engine, way)).collect();
    match &days?[..] {
        [] => None,
        [day] => Some(day.clone()),
        days => Some(format!("coalesce({})", days.join(", "))),
    }
}

fn day_of(engine: Engine, way: &BoundColumn) -> Option<String> {
    let bare = format!("t.{}", quote(stored_in_table(way)?));
    let divisor = match way.stored {
        StoredAs::Epoch => Some(1),
        StoredAs::EpochMillis => Some(1000),
        _ => None,
    };
    Some(match (engine, divisor, PgType::of(dialect::declared(&way.origin))) {
        (Engine::Sqlite, Some(divisor), _) => {
            format!("CASE WHEN typeof({bare}) IN ('integer', 'real') THEN date({bare} / {divisor}, 'unixepoch') END")
        }
        (Engine::Sqlite, None, _) => format!("substr({bare}, 1, 10)"),
        (Engine::Postgres, Some(divisor), _) => {
            let seconds = format!("(({bare})::float8 / {divisor})");
            // The seconds of the years 1 to 9999: others cannot be converted to a timestamp.
            format!(
                "CASE WHEN {seconds} BETWEEN -62135596800 AND 253402300799 \
                 THEN to_char(to_timestamp({seconds}) AT TIME ZONE 'UTC', 'YYYY-MM-DD') END"
            )
        }
        (Engine::Postgres, None, PgType::Timestamptz) => {
            format!("CASE WHEN isfinite({bare}) THEN to_char({bare} AT TIME ZONE 'UTC', 'YYYY-MM-DD') END")
        }
        (Engine::Postgres, None, PgType::Timestamp) => {
            format!("CASE WHEN isfinite({bare}) THEN to_char({bare}, 'YYYY-MM-DD') END")
        }
        (Engine::Postgres, None, _) => format!("left(({bare})::text, 10)"),
    })
}
