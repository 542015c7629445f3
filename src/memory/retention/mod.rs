//! Retention: rules for rows that have been kept long enough. Pure; a row is deleted when all conditions of one rule
//! hold.

pub mod overdue;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, wide_digest};
use super::entity::Entity;
use super::filter::Filter;
use super::row::Row;
use super::{score, time};

/// Share of an entity's rows above which nothing is deleted, unless the rules set another one.
pub const SHARE: f64 = 0.25;

/// Sorts before all canonical times.
const LONG_AGO: &str = "0";

/// Columns that name the owner of a row.
const OWNERS: [&str; 3] = ["profile_id", "user_id", "agent_id"];

/// A file of rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRules {
    /// Share of an entity's rows that may be deleted at once, 0 to 1.
    pub share: Option<f64>,
    /// The rules.
    #[serde(default)]
    pub rule: Vec<RetentionRule>,
}

/// Conditions that must all hold for a row to be deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRule {
    /// Kind of row.
    pub entity: String,
    /// Minimum age of the row, such as `365d`.
    pub older_than: Option<String>,
    /// Minimum time since the row was last recalled.
    pub unused_for: Option<String>,
    /// Limit that the row's utility must be below, 0 to 1; a row without a utility stays.
    pub below_utility: Option<f64>,
    /// Outcomes, one of which the row must have.
    #[serde(default)]
    pub outcome: Vec<String>,
    /// Whether only expired rows are deleted.
    #[serde(default)]
    pub expired: bool,
    /// Number of newest rows kept for each owner (user and agent); only older ones are deleted.
    pub keep: Option<usize>,
    /// Further conditions, as in `--where`.
    #[serde(default)]
    pub r#where: Vec<String>,
}

/// A parsed rule, at a given time.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadRule {
    /// Kind of row.
    pub entity: Entity,
    older_than: Option<String>,
    unused_since: Option<String>,
    below_utility: Option<f64>,
    outcome: Vec<String>,
    expired_by: Option<String>,
    keep: Option<usize>,
    filters: Vec<Filter>,
}

impl RetentionRules {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// The error, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules: RetentionRules = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            format!("{line}: {}", e.message())
        })?;
        if rules.share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err("`share` must be a number from 0 to 1".to_owned());
        }
        Ok(rules)
    }

    /// Share of an entity's rows that may be deleted at once.
    pub fn share(&self) -> f64 {
        self.share.unwrap_or(SHARE)
    }

    /// Whether that many of an entity's rows may be deleted at once. Fractions are rounded up: of few rows, one may be
    /// deleted.
    pub fn allows(&self, going: usize, of: usize) -> bool {
        // The product with a decimal share may be off by less.
        going as f64 <= (self.share() * of as f64 - 1e-6).ceil()
    }

    /// Evaluates the rules at a given time.
    ///
    /// # Errors
    /// The first invalid rule, numbered from 1.
    pub fn read(&self, now: chrono::DateTime<chrono::Utc>) -> Result<Vec<ReadRule>, String> {
        let numbered = self.rule.iter().enumerate();
        numbered.map(|(i, rule)| rule.read(now).map_err(|why| format!("rule {}: {why}", i + 1))).collect()
    }
}

impl RetentionRule {
    fn read(&self, now: chrono::DateTime<chrono::Utc>) -> Result<ReadRule, String> {
        let entity = Entity::parse(&self.entity).ok_or_else(|| format!("there is no entity `{}`", self.entity))?;
        if matches!(entity, Entity::Subject | Entity::AuditEntry | Entity::UtilityEvent | Entity::Policy) {
            return Err(format!("rows of {} cannot be deleted by age: their history depends on them", entity.title()));
        }
        let age = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) if time::parse_age(text).is_some_and(|age| age.is_zero()) => {
                Err(format!("an age of `{text}` is a mistake: it would take every row"))
            }
            Some(text) => time::parse_age(text)
                .and_then(|age| now.checked_sub_signed(age))
                .and_then(time::spell_utc)
                .map(Some)
                .ok_or_else(|| format!("`{text}` is not an age, such as 90d or 12h")),
        };
        let has = |column: &str, key: &str| match entity.column(column) {
            Some(_) => Ok(()),
            None => Err(format!("`{key}` does not fit {}: it has no `{column}`", entity.title())),
        };
        self.below_utility.map_or(Ok(()), |_| has("utility", "below_utility"))?;
        if self.below_utility.is_some_and(|utility| !(0.0..=1.0).contains(&utility)) {
            return Err("`below_utility` must be a number from 0 to 1".to_owned());
        }
        if !self.outcome.is_empty() {
            has("outcome", "outcome")?;
        }
        if self.expired {
            has("expires_at", "expired")?;
        }
        if self.keep == Some(0) {
            return Err("`keep = 0` would keep nothing: give 1 or more".to_owned());
        }
        if self.keep.is_some() && OWNERS.iter().all(|column| entity.column(column).is_none()) {
            return Err(format!("`keep` does not fit {}: its rows name no user, agent or bank", entity.title()));
        }
        if self.unused_for.is_some() && !matches!(entity, Entity::Episode | Entity::Case | Entity::Memory) {
            return Err(format!("`unused_for` does not fit {}: only what is recalled is used", entity.title()));
        }
        let rule = ReadRule {
            entity,
            older_than: age(&self.older_than)?,
            unused_since: age(&self.unused_for)?,
            below_utility: self.below_utility,
            outcome: self.outcome.clone(),
            expired_by: if self.expired { time::spell_utc(now) } else { None },
            keep: self.keep,
            filters: self
                .r#where
                .iter()
                .map(|text| Filter::parse(entity, text, now).map_err(|error| error.to_string()))
                .collect::<Result<_, _>>()?,
        };
        let named = rule.older_than.is_some()
            || rule.unused_since.is_some()
            || rule.below_utility.is_some()
            || !rule.outcome.is_empty()
            || rule.expired_by.is_some()
            || rule.keep.is_some()
            || !rule.filters.is_empty();
        if named { Ok(rule) } else { Err("it has no condition: it would delete every row".to_owned()) }
    }
}

impl ReadRule {
    /// Columns that it uses.
    pub fn columns(&self) -> Vec<&'static str> {
        let mut names = vec!["user_id", "agent_id", "profile_id", "outcome", "utility", "expires_at"];
        names.push(self.entity.time_column());
        names.extend(self.filters.iter().flat_map(Filter::columns));
        names.into_iter().filter_map(|name| self.entity.column(name)).map(|column| column.name).collect()
    }

    /// The time since when rows must not have been used; `None` if the rule does not depend on use.
    pub fn unused_since(&self) -> Option<&str> {
        self.unused_since.as_deref()
    }

    /// Whether the row's own values still select it, apart from its last use and the number of newer rows.
    pub fn takes(&self, row: &Row) -> bool {
        self.fits(row, Some(LONG_AGO)) == RuleFit::Fits
    }

    /// Tests all conditions of a row except the count. A row is unused since the later of its own time and its
    /// last use `used`, if any.
    fn fits(&self, row: &Row, used: Option<&str>) -> RuleFit {
        let own = row.text(self.entity.time_column()).and_then(time::known);
        let is_before = |limit: &Option<String>, time: Option<&str>| match limit {
            Some(limit) => time.map(|time| time < limit.as_str()),
            None => Some(true),
        };
        let last = |used| Some(used).filter(|used| *used != overdue::SOME_TIME);
        let is_low = |limit| row.number("utility").is_some_and(|utility| score::is_below(utility, limit));
        let expires_at = row.text("expires_at").and_then(time::known);
        let conditions = [
            is_before(&self.older_than, own),
            is_before(&self.unused_since, own),
            used.map_or(Some(true), |used| is_before(&self.unused_since, last(used))),
            self.keep.map_or(Some(true), |_| own.map(|_| true)),
            Some(self.below_utility.is_none_or(is_low)),
            Some(self.outcome.is_empty() || row.text("outcome").is_some_and(|o| self.outcome.iter().any(|w| w == o))),
            Some(self.expired_by.as_deref().is_none_or(|by| expires_at.is_some_and(|time| time < by))),
            Some(self.filters.iter().all(|filter| filter.matches(row))),
        ];
        if conditions.contains(&Some(false)) {
            RuleFit::Stays
        } else if conditions.contains(&None) {
            RuleFit::Undated
        } else if self.keep.is_some() && owner(row).is_none() {
            RuleFit::Unowned
        } else {
            RuleFit::Fits
        }
    }
}

/// Key of the owner for whom rows are counted: the bank of a case, otherwise user and agent. `None` for a row that
/// names neither, since such rows need not have one owner.
fn owner(row: &Row) -> Option<[Digest; 2]> {
    let [bank, user, agent] = OWNERS.map(|column| row.text(column).filter(|id| !id.trim().is_empty()));
    match (bank, user.or(agent)) {
        (Some(bank), _) => Some(wide_digest(bank)),
        (None, Some(_)) => Some(wide_digest(&format!("{user:?}\u{0}{agent:?}"))),
        (None, None) => None,
    }
}

/// Result of a rule for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleFit {
    /// All conditions hold.
    Fits,
    /// They hold, except that a needed time is unknown: the row stays.
    Undated,
    /// They hold, but the row has no owner whose newest rows are kept: it stays.
    Unowned,
    /// A condition does not hold.
    Stays,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::overdue::{LastUses, OverdueFate, OverdueTally};
    use super::*;
    use crate::memory::packed::space::tests::space;

    fn now() -> chrono::DateTime<chrono::Utc> {
        chrono::DateTime::from_timestamp(1_770_199_200, 0).expect("a moment")
    }

    fn episode(id: &str, user: &str, started: &str, utility: f64) -> Row {
        let mut row = Row::empty(Entity::Episode);
        for (column, value) in
            [("id", json!(id)), ("user_id", json!(user)), ("started_at", json!(started)), ("utility", json!(utility))]
        {
            row.set(column, value);
        }
        row
    }

    fn gone(text: &str, rows: &[Row], used: &[(&str, &str)]) -> Vec<String> {
        let rules = RetentionRules::parse(text).expect("rules").read(now()).expect("they make sense");
        let rules: Vec<&ReadRule> = rules.iter().collect();
        let found = [1, 1 << 20].map(|room| {
            let mut uses = LastUses::within(room, space);
            used.iter().for_each(|(id, at)| uses.add(id, at));
            let mut tally = OverdueTally::within(room, &rules, uses.end().unwrap(), 10, space);
            rows.iter().for_each(|row| tally.row(row, OverdueFate::Goes));
            let found = tally.end().unwrap();
            assert_eq!((found.stay.held, found.of), (0, rows.len()));
            found.going.in_order()
        });
        assert_eq!(found[0], found[1], "wherever the rows are");
        found[0].clone()
    }

    #[test]
    fn every_condition_of_a_rule_must_hold() {
        let rows = [
            episode("old", "ann", "2025-01-01T00:00:00.000000Z", 0.1),
            episode("old-good", "ann", "2025-01-02T00:00:00.000000Z", 0.9),
            episode("new", "ann", "2026-02-01T00:00:00.000000Z", 0.1),
        ];
        let rule = |rest: &str| format!("[[rule]]\nentity = \"episode\"\n{rest}");
        assert_eq!(gone(&rule("older_than = \"90d\""), &rows, &[]), ["old", "old-good"]);
        assert_eq!(gone(&rule("older_than = \"90d\"\nbelow_utility = 0.5"), &rows, &[]), ["old"]);
        assert_eq!(gone(&rule("keep = 1"), &rows, &[]), ["old", "old-good"]);
        let used = [("old", "2026-02-03T00:00:00.000000Z")];
        assert_eq!(gone(&rule("unused_for = \"30d\""), &rows, &used), ["old-good"]);
        assert_eq!(gone(&rule("keep = 2\nwhere = [\"utility < 0.5\"]"), &rows, &[]), ["old"]);
    }

    #[test]
    fn a_row_counts_once_however_many_rules_take_it_and_stays_where_it_is_held() {
        let text = "[[rule]]\nentity = \"episode\"\nkeep = 1\n[[rule]]\nentity = \"episode\"\nolder_than = \"90d\"\n\
            [[rule]]\nentity = \"episode\"\nkeep = 2";
        let rules = RetentionRules::parse(text).expect("rules").read(now()).expect("they make sense");
        let rules: Vec<&ReadRule> = rules.iter().collect();
        let mut tally = OverdueTally::within(1, &rules, LastUses::within(1, space).end().unwrap(), 2, space);
        for n in 0..8 {
            let (user, fate) = if n % 2 == 0 { ("ann", OverdueFate::Goes) } else { ("bob", OverdueFate::Held) };
            tally.row(&episode(&format!("e{n}"), user, &format!("2025-01-0{}T00:00:00.000000Z", 9 - n), 0.5), fate);
        }
        tally.row(&episode("new", "eve", "2026-02-03T00:00:00.000000Z", 0.5), OverdueFate::Goes);
        let found = tally.end().unwrap();
        assert_eq!((found.going.count(), found.stay.held, found.of), (4, 4, 9));
        assert_eq!(found.going.in_order(), ["e0", "e2"]);
    }

    #[test]
    fn rules_that_make_no_sense_say_why() {
        for (text, words) in [
            ("[[rule]]\nentity = \"episode\"", "has no condition"),
            ("[[rule]]\nentity = \"episode\"\nkeep = 0", "keep nothing"),
            ("[[rule]]\nentity = \"segment\"\nexpired = true", "has no `expires_at`"),
            ("[[rule]]\nentity = \"episode\"\nolder_than = \"soon\"", "is not an age"),
            ("[[rule]]\nentity = \"episode\"\nolder_than = \"0d\"", "is a mistake"),
            ("[[rule]]\nentity = \"workflow_event\"\nkeep = 9", "name no user"),
            ("[[rule]]\nentity = \"subject\"\nolder_than = \"1d\"", "cannot be deleted by age"),
        ] {
            let error = RetentionRules::parse(text).and_then(|rules| rules.read(now()).map(|_| ())).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(RetentionRules::parse("share = 2.0").is_err());
        let rules = RetentionRules::parse("share = 0.29").unwrap();
        assert!(rules.allows(29, 100) && !rules.allows(30, 100) && rules.allows(1, 3) && !rules.allows(2, 3));
        assert!(RetentionRules::parse("[[rule]]\nentty = \"episode\"").unwrap_err().starts_with('2'));
    }
}
