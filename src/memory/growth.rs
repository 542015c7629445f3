//! Growth of a table: its rows by day of creation, and the weeks or months of a chart.

use std::collections::BTreeMap;

use chrono::{Datelike as _, Days, NaiveDate};

use super::Entity;

/// Most distinct days, about a hundred years: rows of further days count as untimed.
const DAYS: usize = 40_000;

/// Rows of a table by the day of their creation in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGrowth {
    /// Entity of the rows.
    pub entity: Entity,
    /// Canonical column of the creation time.
    pub column: &'static str,
    /// Number of rows per day; days without rows are left out.
    pub days: BTreeMap<NaiveDate, u64>,
    /// Rows without a readable time.
    pub untimed: u64,
}

/// Width of a bar of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthUnit {
    /// From Monday to Sunday.
    Week,
    /// A month of the calendar.
    Month,
}

impl GrowthUnit {
    /// Name in the singular.
    pub fn word(self) -> &'static str {
        match self {
            GrowthUnit::Week => "week",
            GrowthUnit::Month => "month",
        }
    }

    /// First day of the bar that a day falls into.
    fn start(self, day: NaiveDate) -> NaiveDate {
        let back = match self {
            GrowthUnit::Week => day.weekday().num_days_from_monday(),
            GrowthUnit::Month => day.day0(),
        };
        day - Days::new(u64::from(back))
    }

    /// First day of the next bar.
    fn next(self, start: NaiveDate) -> NaiveDate {
        let days = if self == GrowthUnit::Week { 7 } else { 31 };
        self.start(start + Days::new(days))
    }
}

/// Rows in each of consecutive weeks or months, including empty ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowthBars {
    /// Width of a bar.
    pub unit: GrowthUnit,
    /// Number of rows in each bar, the newest last.
    pub counts: Vec<u64>,
    /// First day of the first bar, and of the last.
    pub ends: (NaiveDate, NaiveDate),
}

impl TableGrowth {
    /// No rows yet.
    pub fn new(entity: Entity, column: &'static str) -> Self {
        TableGrowth { entity, column, days: BTreeMap::new(), untimed: 0 }
    }

    /// Adds rows of a day, `YYYY-MM-DD`; `None`, or another text, counts as untimed.
    pub fn add(&mut self, day: Option<&str>, rows: u64) {
        let day = day.and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok());
        // The range of years in which times are read.
        let day = day.filter(|day| (1..=9999).contains(&day.year()));
        match day.filter(|day| self.days.len() < DAYS || self.days.contains_key(day)) {
            Some(day) => *self.days.entry(day).or_default() += rows,
            None => self.untimed += rows,
        }
    }

    /// The weeks from the first row to the last, or the months if these are more than `most`; of more months the newest
    /// `most`. `None` if no row has a time.
    pub fn bars(&self, most: usize) -> Option<GrowthBars> {
        let (first, last) = (*self.days.keys().next()?, *self.days.keys().next_back()?);
        let weeks = (GrowthUnit::Week.start(last) - GrowthUnit::Week.start(first)).num_days() / 7 + 1;
        let unit =
            if usize::try_from(weeks).is_ok_and(|weeks| weeks <= most) { GrowthUnit::Week } else { GrowthUnit::Month };
        let mut found: BTreeMap<NaiveDate, u64> = BTreeMap::new();
        for (day, rows) in &self.days {
            *found.entry(unit.start(*day)).or_default() += rows;
        }
        let starts = std::iter::successors(Some(unit.start(first)), |start| Some(unit.next(*start)));
        let starts: Vec<NaiveDate> = starts.take_while(|start| *start <= last).collect();
        let starts = &starts[starts.len().saturating_sub(most.max(1))..];
        let counts = starts.iter().map(|start| found.get(start).copied().unwrap_or(0)).collect();
        Some(GrowthBars { unit, counts, ends: (*starts.first()?, *starts.last()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(days: &[(&str, u64)]) -> TableGrowth {
        let mut growth = TableGrowth::new(Entity::Episode, "started_at");
        days.iter().for_each(|(day, rows)| growth.add(Some(day), *rows));
        growth
    }

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    #[test]
    fn weeks_begin_on_mondays_and_have_no_holes() {
        let growth = of(&[("2026-02-01", 2), ("2026-02-02", 3), ("2026-02-08", 1), ("2026-02-17", 4)]);
        let bars = growth.bars(60).expect("bars");
        assert_eq!((bars.unit, bars.counts), (GrowthUnit::Week, vec![2, 4, 0, 4]));
        assert_eq!(bars.ends, (day("2026-01-26"), day("2026-02-16")));
    }

    #[test]
    fn more_weeks_than_fit_are_months_and_of_those_the_newest() {
        let growth = of(&[("2024-12-31", 7), ("2025-11-30", 1), ("2026-01-31", 2), ("2026-01-01", 3)]);
        let bars = growth.bars(3).expect("bars");
        assert_eq!((bars.unit, bars.counts), (GrowthUnit::Month, vec![1, 0, 5]));
        assert_eq!(bars.ends, (day("2025-11-01"), day("2026-01-01")));
        assert_eq!(growth.bars(0).map(|bars| bars.counts), Some(vec![5]));
    }

    #[test]
    fn what_is_no_day_is_counted_apart() {
        let mut growth = of(&[("yesterday", 1), ("2026-02-30", 2), ("0000-01-01", 3)]);
        growth.add(None, 4);
        assert_eq!((growth.untimed, growth.bars(9)), (10, None));
    }
}
