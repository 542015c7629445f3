//! Plan of a person's erasure, as data: exact counts, mentions, effects and disclosures.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::NewDecisions;
use super::derived::OldDerived;
use super::effects::KeptRow;
use super::graph::{CarriedIds, OwnedRows};
use super::id_set::IdSet;
use super::mention::{Decisions, Mention, Mentions, Met};
use super::planned_mentions::PlannedMentions;
use super::planned_owners::PlannedOwners;
use super::scan_findings::PlaceTally;
use super::subject::{PurgeSubject, SharedWord};
use super::taken::GoingRows;
use crate::change::plan::Counts;
use crate::store::fetched::FetchedValue;
use crate::store::relations::TableTrigger;
use crate::store::stored::{StoredRows, TableName};

/// Default number of rows per transaction.
pub const BATCH: usize = 5_000;

/// Options of a person's erasure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PurgeOptions {
    /// Further handles that the operator knows.
    pub aliases: Vec<String>,
    /// Decision about mentions that certainly mean the person, in other people's rows.
    pub mentions: Mentions,
    /// Decisions about one mention, by its id, or about those in one column, by `table.column`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub each: BTreeMap<String, Mentions>,
    /// Whether the person's account with the application is erased too.
    pub account: bool,
    /// PostgreSQL: whether tables may be locked while they are rewritten.
    pub full: bool,
    /// Rows per transaction, from 1.
    pub batch: usize,
    /// Ids of rows that the same erasure deletes in other databases, by layout.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub carried: CarriedIds,
}

impl Default for PurgeOptions {
    fn default() -> Self {
        PurgeOptions {
            aliases: Vec::new(),
            mentions: Mentions::Leave,
            each: BTreeMap::new(),
            account: false,
            full: false,
            batch: BATCH,
            carried: CarriedIds::new(),
        }
    }
}

impl PurgeOptions {
    /// The options for resuming an erasure, with those that are given again.
    pub fn resumed(&self, new: &PurgeOptions, decisions: &NewDecisions) -> PurgeOptions {
        let mut options = self.clone();
        options.aliases.extend(new.aliases.iter().filter(|alias| !self.aliases.contains(alias)).cloned());
        decisions.replace(&mut options);
        options.account |= new.account;
        options.full |= new.full;
        if new.batch != BATCH {
            options.batch = new.batch;
        }
        options
    }

    /// Whether any choice about the data to erase was made, as opposed to how it is erased.
    pub fn are_chosen(&self) -> bool {
        let (full, batch, carried) = (self.full, self.batch, self.carried.clone());
        *self != PurgeOptions { full, batch, carried, ..PurgeOptions::default() }
    }

    /// Returns the decisions about mentions.
    pub fn decisions(&self) -> Decisions<'_> {
        Decisions { all: self.mentions, each: &self.each }
    }
}

/// A row that stays and changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlteredRow {
    /// Table.
    pub table: TableName,
    /// Columns and values that find the row.
    pub key: Vec<(String, FetchedValue)>,
    /// Changes in the row.
    pub update: KeptRow,
}

impl AlteredRow {
    /// The row, by its key.
    pub fn stored(&self) -> StoredRows {
        let (by, values) = self.key.iter().cloned().unzip();
        StoredRows { table: self.table.clone(), by, keys: vec![values] }
    }
}

/// An anonymous account that pseudonyms refer to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nameless {
    /// Table of accounts.
    pub table: TableName,
    /// Column of that table with the account's id.
    pub id: String,
    /// Other columns.
    pub columns: Vec<(String, Value)>,
}

/// Plan of an erasure: everything it would do.
#[derive(Debug)]
pub struct PurgePlan {
    /// SHA-256 over the person, the options, and every row with its treatment.
    pub plan_id: String,
    /// Person to be erased.
    pub subject: PurgeSubject,
    /// Options of the erasure.
    pub options: PurgeOptions,
    /// No rows are owned by anybody here: the plan can be viewed but not applied.
    pub is_unowned: bool,
    /// Rows without a key, by a column that names the person; deleted first.
    pub owned: Vec<OwnedRows>,
    /// Other rows to delete, in the order of deletion.
    pub deletes: Vec<GoingRows>,
    /// Rows that stay and change.
    pub updates: Vec<AlteredRow>,
    /// Rows to delete whose reference to a renamed key is renamed until then; counted as deleted rows.
    pub along: Vec<AlteredRow>,
    /// Tables whose rows are deleted before keys are renamed, since their own key refers to a renamed one.
    pub first: BTreeSet<TableName>,
    /// The account that pseudonyms refer to, if a foreign key requires one.
    pub nameless: Option<Nameless>,
    /// Private values of our audit trail to remove.
    pub redacts: BTreeSet<(i64, String)>,
    /// Rows by table.
    pub counts: Counts,
    /// Mentions in other people's rows, up to the limit.
    pub mentions: Vec<Mention>,
    /// Number of other people's values that mention the person, by table and column.
    pub mentioned: BTreeMap<String, usize>,
    /// References to deleted rows that stay, by table and column.
    pub left_references: BTreeMap<String, usize>,
    /// Values computed from texts that lose words, left in place.
    pub old: OldDerived,
    /// Decisions about all these mentions, counted by table and column.
    pub tally: BTreeMap<String, PlaceTally>,
    /// Decisions that matched existing mentions.
    pub met: Met,
    /// Number of rows deleted because they mention the person, or depend on such a row.
    pub gone_for_mentions: usize,
    /// For each searched handle, its kind and number of hits.
    pub control: Vec<(SharedWord, usize)>,
    /// Ids of the rows to delete.
    pub ids: Arc<IdSet>,
    /// Further effects of the erasure.
    pub effects: Vec<String>,
    /// Data that remains or cannot be determined; this lowers the resulting status.
    pub particular: Vec<String>,
    /// Those of `particular` about rows that stay because other people have a share in them.
    pub shared: Vec<String>,
    /// Facts to know that do not lower the resulting status.
    pub notes: Vec<String>,
    /// Tables outside the layout that do not name the person, with their columns that look personal.
    pub silent: BTreeMap<String, String>,
    /// Tables with rows to delete, each with the table whose rows led to them; `None` if they name the person.
    pub hops: Vec<(TableName, Option<TableName>)>,
    /// Circles of tables whose rows refer to each other and are deleted in one statement, as PostgreSQL requires.
    pub circles: Vec<Vec<TableName>>,
    /// Whether rows that belong to the person can be deleted before rows deleted for their contents.
    pub own_first: bool,
    /// Tables that refer to others, or that others refer to.
    pub linked: HashSet<TableName>,
    /// Time when the plan was made.
    pub created_at: String,
    /// Values that were read.
    pub values: u64,
    /// Owners of the rows to delete, by table.
    pub owners: BTreeMap<TableName, PlannedOwners>,
    /// Mentions that cause rows to be deleted, by table.
    pub telling: BTreeMap<TableName, PlannedMentions>,
}

impl PurgePlan {
    /// Number of rows to delete.
    pub fn going(&self) -> usize {
        let owned: usize = self.owned.iter().map(|owned| owned.count).sum();
        let along: usize = self.along_rows().map(|rows| rows.keys.len()).sum();
        owned + along + self.deletes.iter().map(GoingRows::len).sum::<usize>()
    }

    /// Facts to know that do not lower the resulting status, as text.
    pub fn shown_notes(&self) -> impl Iterator<Item = String> {
        self.notes.iter().cloned().chain(self.silent.iter().map(told_silent))
    }

    /// Rows deleted when others change: vectors of their earlier texts.
    pub fn along_rows(&self) -> impl Iterator<Item = &StoredRows> {
        self.updates.iter().flat_map(|row| &row.update.along)
    }

    /// Tables that lose rows.
    pub fn losing(&self) -> BTreeSet<&TableName> {
        let owned = self.owned.iter().map(|owned| &owned.rows.table);
        let along = self.along_rows().map(|rows| &rows.table);
        self.deletes.iter().filter(|rows| !rows.is_empty()).map(|rows| &rows.table).chain(owned).chain(along).collect()
    }

    /// The triggers that fire when its rows are deleted or changed.
    pub fn running<'t>(&self, triggers: &'t [TableTrigger]) -> impl Iterator<Item = &'t TableTrigger> {
        let goes = self.losing();
        let changes: HashSet<&TableName> = self.updates.iter().map(|row| &row.table).collect();
        triggers.iter().filter(move |trigger| {
            trigger.on_delete && goes.contains(&trigger.table) || trigger.on_update && changes.contains(&trigger.table)
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty() && self.deletes.is_empty() && self.updates.is_empty()
    }
}

/// Message about a table outside the layout that does not name the person, with its columns that look personal.
pub(super) fn told_silent((table, columns): (&String, &String)) -> String {
    let why = "it was searched, and does not name the person";
    format!("the table {table} is outside the layout and looks personal ({columns}): {why}")
}
