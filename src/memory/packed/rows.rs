//! Compact rows for rankings: of each its id, its time, and the number of its kind, the values of its other columns,
//! which many rows share.

use std::collections::HashMap;

use serde_json::Value;

use super::column::{Column, NumberColumn};
use super::ids::IdList;
use crate::memory::row::Unparsed;
use crate::memory::time::EpochUnit;
use crate::memory::{Entity, Problem, Row, time};

/// No time, or one stored in the row's kind.
const NO_TIME: i64 = i64::MIN;

/// Estimated bytes of a column's value in a kind, with the look-up of the kind.
const VALUE: usize = 160;

/// Values by the position of their column; nulls are left out.
type Values = Vec<(usize, Value)>;

/// Rows of one entity, in order of insertion.
#[derive(Debug)]
pub(crate) struct PackedRows {
    entity: Entity,
    ids: IdList,
    times: Column<i64>,
    kinds: NumberColumn,
    /// 0, or one more than the number of the row's vector.
    vectors: NumberColumn,
    known: HashMap<Values, u32>,
    told: Vec<(Values, Vec<Problem>, Vec<Unparsed>)>,
    told_bytes: usize,
}

impl PackedRows {
    /// No rows yet.
    pub fn new(entity: Entity) -> Self {
        PackedRows {
            entity,
            ids: IdList::default(),
            times: Column::default(),
            kinds: NumberColumn::default(),
            vectors: NumberColumn::default(),
            known: HashMap::new(),
            told: Vec::new(),
            told_bytes: 0,
        }
    }

    /// Adds a row, with the number of its vector.
    pub fn push(&mut self, row: &Row, vector: Option<u32>) {
        let (id, at) = (self.entity.position("id"), self.entity.position(self.entity.time_column()));
        let micros = row.text(self.entity.time_column()).and_then(time::known).and_then(exact_micros);
        let other = |at_column: &usize| Some(*at_column) != id && (micros.is_none() || Some(*at_column) != at);
        let values: Values = row
            .values
            .iter()
            .enumerate()
            .filter(|(column, value)| !value.is_null() && other(column))
            .map(|(column, value)| (column, value.clone()))
            .collect();
        let next = self.told.len() as u32;
        let kind = if row.problems.is_empty() { self.known.get(&values).copied() } else { None };
        if kind.is_none() {
            let text = |value: &Value| value.as_str().map_or(0, str::len);
            let problems = row.problems.iter().map(|problem| VALUE + problem.problem.len() + problem.raw.len());
            self.told_bytes += VALUE + problems.sum::<usize>();
            self.told_bytes += values.iter().map(|(_, value)| VALUE + 2 * text(value)).sum::<usize>();
            if row.problems.is_empty() {
                self.known.insert(values.clone(), next);
            }
            self.told.push((values, row.problems.clone(), row.unparsed.clone()));
        }
        self.ids.push(row.id());
        self.times.push(micros.unwrap_or(NO_TIME));
        self.kinds.push(kind.unwrap_or(next));
        self.vectors.push(vector.map_or(0, |number| number.saturating_add(1)));
    }

    /// Finishes adding rows.
    pub fn close(&mut self) {
        self.known = HashMap::new();
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.ids.bytes() + self.times.bytes() + self.kinds.bytes() + self.vectors.bytes() + self.told_bytes
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The indexes of the rows with an id.
    pub fn places(&self, id: &str) -> Vec<usize> {
        self.ids.places(id)
    }

    /// A row for each kind: the values of that kind's rows without ids and, if [`PackedRows::micros`] has it, without
    /// the time.
    pub fn kinds(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.told.len()).map(|kind| self.of_kind(kind))
    }

    fn of_kind(&self, kind: usize) -> Row {
        let mut row = Row::empty(self.entity);
        if let Some((values, problems, unparsed)) = self.told.get(kind) {
            values.iter().for_each(|(column, value)| row.values[*column] = value.clone());
            row.problems.clone_from(problems);
            row.unparsed.clone_from(unparsed);
        }
        row
    }

    /// The index of a row's kind among [`PackedRows::kinds`].
    pub fn kind(&self, at: usize) -> Option<usize> {
        self.kinds.get(at).map(|kind| kind as usize)
    }

    /// The time of a row in microseconds since 1970; `None` if its kind has it, or if it has none.
    pub fn micros(&self, at: usize) -> Option<i64> {
        self.times.get(at).filter(|micros| *micros != NO_TIME)
    }

    /// The number of a row's vector.
    pub fn vector(&self, at: usize) -> Option<usize> {
        self.vectors.get(at)?.checked_sub(1).map(|number| number as usize)
    }

    /// The complete row.
    pub fn row(&self, at: usize) -> Option<Row> {
        let mut row = self.of_kind(self.kind(at)?);
        row.set("id", Value::from(self.ids.get(at)?.into_owned()));
        if let Some(micros) = self.micros(at) {
            row.set(self.entity.time_column(), Value::from(time::from_epoch(micros, EpochUnit::Microseconds)?));
        }
        Some(row)
    }
}

/// The microseconds of a time, if they reproduce its text.
fn exact_micros(text: &str) -> Option<i64> {
    let micros = time::epoch_micros(text).filter(|micros| *micros != NO_TIME)?;
    (time::from_epoch(micros, EpochUnit::Microseconds)? == text).then_some(micros)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_come_back_as_they_came() {
        let row = |n: usize| {
            let mut row = Row::empty(Entity::Episode);
            row.set("id", json!(format!("ep_{n}")));
            row.set("canvas_action_count", json!(n % 3));
            row.set("outcome", if n.is_multiple_of(2) { json!("success") } else { Value::Null });
            match n % 4 {
                0 => row.set("started_at", json!(format!("2026-01-01T00:00:00.{n:06}Z"))),
                1 => row.set("started_at", json!("some day")),
                2 => row.problems.push(Problem {
                    column: "started_at".to_owned(),
                    problem: "is not a time".to_owned(),
                    raw: n.to_string(),
                }),
                _ => {}
            }
            row
        };
        let vector = |n: usize| (!n.is_multiple_of(5)).then_some(n as u32 * 7);
        let mut packed = PackedRows::new(Entity::Episode);
        (0..120).for_each(|n| packed.push(&row(n), vector(n)));
        packed.close();
        assert_eq!((packed.len(), packed.row(120)), (120, None));
        for n in 0..120 {
            assert_eq!(packed.row(n), Some(row(n)));
            assert_eq!((packed.places(&format!("ep_{n}")), packed.vector(n)), (vec![n], vector(n).map(|v| v as usize)));
            let kind = packed.kinds().nth(packed.kind(n).unwrap()).unwrap();
            assert_eq!(kind.get("outcome"), row(n).get("outcome"));
            assert_eq!(packed.micros(n).is_some(), n % 4 == 0);
        }
        assert_eq!(packed.kinds().count(), 3 * 3 + 30, "one for each row with a problem");
    }
}
