//! Compares written rows with what the database then stores: its triggers and rules may change them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::plan::Plan;
use crate::layout::Engine;
use crate::memory::{agreeing, time};
use crate::store::fetched::FetchedValue;
use crate::store::shape::ShapeColumn;
use crate::store::stored::{Cell, Image, Mutation, StoredRows};
use crate::store::write::{WriteError, WriteTransaction};

/// Bytes of rows read back per plan.
const ROOM: usize = 1 << 20;

/// Rows read back of any plan, in addition to those it lists, because other rows change with them.
const ROWS: usize = 100;

/// Reads back new, changed and deleted rows, as many as a plan lists.
#[derive(Debug)]
pub struct ReadBack {
    left: usize,
    room: usize,
    /// Values stored differently than written, by table and column; missing rows have no column.
    altered: BTreeMap<(String, String), usize>,
    /// Rows that are invisible once written, by table, if row-level security may hide them.
    unseen: BTreeMap<String, usize>,
    /// Rows that still exist after deletion, by table.
    back: BTreeMap<String, usize>,
}

impl ReadBack {
    /// Begins with nothing read.
    pub fn of(plan: &Plan) -> Self {
        let left = plan.changes.len().max(ROWS);
        let (altered, unseen, back) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        ReadBack { left, room: ROOM, altered, unseen, back }
    }

    /// Reads back the written rows.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn look(&mut self, writer: &mut WriteTransaction<'_>, mutation: &Mutation) -> Result<(), WriteError> {
        let mut written: Vec<Vec<(&String, &Cell)>> = match mutation {
            Mutation::Update { key, set, .. } if !set.iter().any(|(name, _)| key.iter().any(|(k, _)| k == name)) => {
                vec![set.iter().map(|(name, cell)| (name, cell)).collect()]
            }
            Mutation::Insert { columns, rows, .. } => {
                rows.iter().take(self.left).map(|row| columns.iter().zip(row).collect()).collect()
            }
            Mutation::Delete(rows) if rows.keys.len() <= self.left => {
                self.left -= rows.keys.len();
                let there = writer.images(rows).await?.len();
                if there > 0 {
                    *self.back.entry(rows.table.title()).or_default() += there;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let fits = |row: &&Vec<(&String, &Cell)>| {
            let size: usize = row.iter().map(|(_, cell)| cell.size()).sum();
            let room = self.room.checked_sub(size);
            self.room = room.unwrap_or_default();
            room.is_some()
        };
        let some = written.iter().take_while(fits).count();
        written.truncate(some);
        if self.left == 0 || some == 0 {
            return Ok(());
        }
        let Some(rows) = mutation.rows() else { return Ok(()) };
        self.left = self.left.saturating_sub(written.len());
        let keys = rows.keys.into_iter().take(written.len()).collect();
        self.compare(writer, StoredRows { keys, ..rows }, &written).await
    }

    async fn compare(
        &mut self,
        writer: &mut WriteTransaction<'_>,
        rows: StoredRows,
        written: &[Vec<(&String, &Cell)>],
    ) -> Result<(), WriteError> {
        let (images, shape, engine) = (writer.images(&rows).await?, writer.shape(&rows.table).await?, writer.engine());
        let key = |image: &Image| rows.by.iter().map(|name| image.get(name).cloned()).collect::<Option<Vec<_>>>();
        let mut note = |column: &str| *self.altered.entry((rows.table.title(), column.to_owned())).or_default() += 1;
        let table = writer.store().catalog().exactly(&rows.table.schema, &rows.table.name);
        match rows.keys.len().saturating_sub(images.len()) {
            0 => {}
            missing if table.is_some_and(|table| table.hides_rows) => {
                *self.unseen.entry(rows.table.title()).or_default() += missing;
            }
            missing => (0..missing).for_each(|_| note("")),
        }
        for (asked, written) in rows.keys.iter().zip(written) {
            // A key may be stored in another spelling; with a single row the match is clear.
            let found = match &images[..] {
                [one] if rows.keys.len() == 1 => Some(one),
                images => images.iter().find(|image| key(image).as_ref() == Some(asked)),
            };
            for (name, cell) in written {
                if let (Cell::Is(value), Some(stored), Some(column)) =
                    (cell, found.and_then(|image| image.get(name)), shape.column(name))
                    && is_other(engine, value, stored, column)
                {
                    note(name);
                }
            }
        }
        Ok(())
    }

    /// Sentences about values stored differently.
    pub fn sentences(self) -> impl Iterator<Item = String> {
        let by = "by a trigger or a rule of the database";
        let back = self.back.into_iter().map(move |(table, count)| {
            agreeing(count, &format!("{{#}} {{row|rows}} of {table} {{was|were}} deleted and restored, {by}"))
        });
        let altered = self.altered.into_iter().map(move |((table, column), count)| {
            if column.is_empty() {
                let words = format!("{{#}} {{row|rows}} of {table} {{was|were}} written and deleted again, {by}");
                return agreeing(count, &words);
            }
            let words =
                format!("{{#}} {{value|values}} of {table}.{column} {{is|are}} not what was written: changed {by}");
            agreeing(count, &words)
        });
        let unseen = self.unseen.into_iter().map(|(table, count)| {
            let words = "{was|were} written but {is|are} not visible: row-level security may hide {it|them}, or a \
                         trigger or a rule of the database deleted {it|them} again";
            agreeing(count, &format!("{{#}} {{row|rows}} of {table} {words}"))
        });
        altered.chain(unseen).chain(back)
    }
}

/// Whether another value is stored. An engine spells times in its own way, and rounds them: of two that are less than a second
/// apart this cannot be told.
fn is_other(engine: Engine, written: &FetchedValue, stored: &FetchedValue, column: &ShapeColumn) -> bool {
    let kind = column.compared.as_str();
    let is_words =
        engine == Engine::Sqlite || kind == "text" || kind.starts_with("character varying") || column.is_citext();
    match (written, stored) {
        (FetchedValue::Integer(a), FetchedValue::Integer(b)) => a != b,
        (FetchedValue::Null, other) | (other, FetchedValue::Null) => *other != FetchedValue::Null,
        (FetchedValue::Text(a), FetchedValue::Text(b)) if is_words => a != b,
        (FetchedValue::Text(a), FetchedValue::Text(b)) if matches!(kind, "json" | "jsonb") => {
            let [a, b] = [a, b].map(|text| serde_json::from_str::<Value>(text).ok());
            a.zip(b).is_some_and(|(a, b)| !is_same(&a, &b))
        }
        (FetchedValue::Text(a), FetchedValue::Text(b)) if kind.starts_with("timestamp") => {
            let times = time::canonical(a).zip(time::canonical(b));
            times.is_some_and(|(a, b)| time::are_apart(&a, &b))
        }
        (a, b) if kind == "boolean" => truth(a).zip(truth(b)).is_some_and(|(a, b)| a != b),
        (a, b) => {
            let numbers = number(engine, a, kind).zip(number(engine, b, kind));
            numbers.is_some_and(|(a, b)| (a - b).abs() > precision(kind) * a.abs().max(1.0))
        }
    }
}

/// Whether two documents are equal, with numbers compared by value, since engines spell them differently.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn truth(value: &FetchedValue) -> Option<bool> {
    match value {
        FetchedValue::Integer(number) => Some(*number != 0),
        FetchedValue::Text(word) => match word.as_str() {
            "t" | "true" | "1" => Some(true),
            "f" | "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A number; PostgreSQL accepts and returns some as text.
fn number(engine: Engine, value: &FetchedValue, kind: &str) -> Option<f64> {
    match value {
        FetchedValue::Integer(number) => Some(*number as f64),
        FetchedValue::Real(number) => Some(*number),
        FetchedValue::Text(text) if engine == Engine::Postgres => {
            let is_number = matches!(kind, "smallint" | "integer" | "bigint" | "real" | "double precision")
                || kind.starts_with("numeric");
            text.parse().ok().filter(|_| is_number)
        }
        _ => None,
    }
}

/// Relative difference up to which a type may store a number differently.
fn precision(kind: &str) -> f64 {
    let scale: Option<i32> =
        kind.strip_prefix("numeric(").and_then(|rest| rest.strip_suffix(')')?.split(',').nth(1)?.parse().ok());
    match (kind, scale) {
        ("real", _) => 1e-6,
        (_, Some(scale)) => 10_f64.powi(-scale),
        _ => 1e-12,
    }
}
