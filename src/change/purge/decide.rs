//! Checks decisions about mentions against a plan: mentions that do not exist, treatments that are not possible, and
//! rows whose key is renamed.

use std::collections::{BTreeMap, HashMap};

use super::effects::NewValue;
use super::keys::spelled;
use super::mention::{self, Mentions, Met, RefusedDecision};
use super::plan::{AlteredRow, PurgeOptions, PurgePlan};
use crate::change::ChangeError;
use crate::memory::nearest::nearest;
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;

/// Decisions about mentions made when an erasure is resumed. They replace earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDecisions {
    /// For all certain mentions, if decided again.
    pub all: Option<Mentions>,
    /// By mention id, or by `table.column`.
    pub each: BTreeMap<String, Mentions>,
}

impl NewDecisions {
    /// Whether nothing is decided.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.each.is_empty()
    }

    /// Overwrites the earlier decisions.
    pub fn replace(&self, options: &mut PurgeOptions) {
        options.mentions = self.all.unwrap_or(options.mentions);
        options.each.extend(self.each.iter().map(|(name, decision)| (name.clone(), *decision)));
    }

    /// Whether one decision covers all mentions left in a column.
    pub fn covers(&self, place: &str) -> bool {
        self.all.is_some() || self.each.contains_key(place)
    }

    /// Counts the mentions decided one by one, by decision. The ids reveal nothing.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut each = BTreeMap::new();
        self.each.values().for_each(|decision| *each.entry(decision.word().to_owned()).or_default() += 1);
        each
    }

    /// Refuses decisions about mentions that do not exist and were not decided before, and decisions that cannot be
    /// carried out.
    ///
    /// # Errors
    /// [`ChangeError::Usage`] with similar names, [`ChangeError::Refused`] with the decisions that are possible.
    pub fn check(&self, plan: &PurgePlan, before: &BTreeMap<String, Mentions>) -> Result<(), ChangeError> {
        let again = |name: &str| before.get(name).is_some_and(|decision| self.each.get(name) == Some(decision));
        let met = &plan.met;
        if let Some(name) = self.each.keys().find(|name| !met.names.contains(*name) && !again(name)) {
            return Err(missing(plan, name));
        }
        met.refused.iter().filter(|(name, _)| self.each.contains_key(*name)).try_for_each(refused)
    }
}

/// Decisions about mentions that the plan did not find.
pub fn unmet(plan: &PurgePlan) -> Vec<&str> {
    plan.options.each.keys().filter(|name| !plan.met.names.contains(*name)).map(String::as_str).collect()
}

/// Refuses decisions about mentions that do not exist, and decisions that cannot be carried out.
///
/// # Errors
/// [`ChangeError::Usage`] with similar names, [`ChangeError::Refused`] with the decisions that are possible.
pub fn check(plan: &PurgePlan) -> Result<(), ChangeError> {
    match unmet(plan).first() {
        Some(name) => Err(missing(plan, name)),
        None => check_possible(&plan.met),
    }
}

/// Error for a mention that does not exist.
fn missing(plan: &PurgePlan, name: &str) -> ChangeError {
    let ids = plan.mentions.iter().map(|mention| mention.id.as_str());
    let near = nearest(name, ids.chain(plan.mentioned.keys().map(String::as_str)));
    let near = near.map_or(String::new(), |near| format!("; near is {near}"));
    ChangeError::Usage(format!(
        "no mention has the id `{name}`{near}: the plan shows them, and TABLE.COLUMN decides for all mentions in it"
    ))
}

/// Refuses decisions that cannot be carried out.
///
/// # Errors
/// [`ChangeError::Refused`] with the decisions that are possible.
pub fn check_possible(met: &Met) -> Result<(), ChangeError> {
    met.refused.iter().try_for_each(refused)
}

/// Error for a decision that cannot be carried out.
fn refused((name, (decision, reason, options)): (&String, &RefusedDecision)) -> Result<(), ChangeError> {
    let words: Vec<&str> = options.iter().map(|option| option.word()).collect();
    Err(ChangeError::Refused(format!(
        "--mention {name}={}: {reason}; possible there: {}",
        decision.word(),
        words.join(", ")
    )))
}

/// Decisions about rows whose key is renamed, under the mention ids that they will have.
pub fn moved(plan: &PurgePlan, pseudonym: &str) -> Vec<(String, Mentions)> {
    let key_of = |row: &AlteredRow| -> Vec<FetchedValue> { row.key.iter().map(|(_, value)| value.clone()).collect() };
    let renamed: HashMap<(TableName, String), &AlteredRow> = plan
        .updates
        .iter()
        .filter(|row| row.key.iter().any(|(column, _)| row.update.get(column).is_some_and(NewValue::is_around)))
        .map(|row| ((row.table.clone(), spelled(&key_of(row))), row))
        .collect();
    let moved = plan.mentions.iter().filter_map(|mention| {
        let decision = *plan.options.each.get(&mention.id)?;
        let row = renamed.get(&(mention.table.clone(), spelled(&mention.key)))?;
        let by: Vec<String> = row.key.iter().map(|(column, _)| column.clone()).collect();
        let value = |(column, old): &(String, FetchedValue)| match row.update.get(column) {
            Some(NewValue::Around(pieces)) => FetchedValue::Text(pieces.join(pseudonym)),
            _ => old.clone(),
        };
        let key: Vec<FetchedValue> = row.key.iter().map(value).collect();
        Some((mention::id(&mention.table, &by, &key, &mention.column, &FetchedValue::Null), decision))
    });
    moved.collect()
}
