//! Inputs of a search for a person: handles, deleted rows, decisions, and known facts about the tables.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::column_words::NamingColumns;
use super::graph::{Graph, hash_set, id_columns, naming_columns};
use super::id_set::LostIds;
use super::key_parts::PersonKeyPart;
use super::made_ids::MadeIds;
use super::matcher::Matcher;
use super::mention::Decisions;
use super::owners::known_tables;
use super::subject::PersonHandle;
use super::vectors;
use crate::change::ChangeError;
use crate::change::plan::canonical;
use crate::layout::Engine;
use crate::store::own;
use crate::store::proof::values::ValueWatch;
use crate::store::relations::Relations;
use crate::store::row_list::RowList;
use crate::store::snapshot::Snapshot;
use crate::store::stored::TableName;

/// Known facts about a database's tables and columns.
#[derive(Debug)]
pub struct KnownTables {
    /// Schema of our own tables.
    pub own: Option<String>,
    /// Tables in the layout.
    pub tables: HashSet<TableName>,
    /// Columns that hold ids and nothing else.
    pub ids_only: HashSet<(TableName, String)>,
    /// Columns that name people, other things, or agents.
    pub naming: NamingColumns,
    /// Columns of unique indexes, including keys.
    pub unique: HashSet<(TableName, String)>,
    /// The same with the columns that such indexes compute their values from.
    pub kept_apart: HashSet<(TableName, String)>,
    /// Columns that hold vectors.
    pub vectors: HashSet<(TableName, String)>,
    /// Tables of search indexes.
    pub indexes: HashSet<TableName>,
    /// PostgreSQL, which enforces the types of columns.
    pub postgres: bool,
}

impl KnownTables {
    /// Reads the facts from the layouts and the database itself.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(snapshot: &mut Snapshot<'_>, relations: &Relations) -> Result<Self, ChangeError> {
        let (store, unique) = (snapshot.store, snapshot.unique_columns().await?);
        Ok(KnownTables {
            own: store.records().own().await?.map(|own| own.schema),
            tables: known_tables(store),
            ids_only: id_columns(store, relations),
            naming: naming_columns(store, relations),
            kept_apart: snapshot.columns_kept_apart(unique.clone()).await?,
            unique,
            vectors: vectors::places(store).into_iter().map(|(table, column, _)| (table, column)).collect(),
            indexes: store.proof().index_tables().await?,
            postgres: store.engine() == Engine::Postgres,
        })
    }

    /// Whether a table is one of ours.
    pub fn is_ours(&self, table: &TableName) -> bool {
        self.own.as_ref() == Some(&table.schema) && own::TABLES.contains(&table.name.as_str())
    }
}

/// Cached results of a search: a second plan for the same person reads only the rows with matches, if the search terms
/// and the deleted rows are the same, as when only decisions differ. Later writes are not included.
#[derive(Debug, Default)]
pub struct KeptSearch {
    /// For each handle the reason why it is a common word here, with a digest of the inputs.
    pub(super) usual: Option<(String, Vec<Option<String>>)>,
    /// Places found, with a digest of the search.
    pub(super) found: Option<(String, FoundPlaces)>,
}

/// Places in which a search found something.
#[derive(Debug, Default)]
pub(super) struct FoundPlaces {
    /// Keys of the rows, by table; tables without a key are not included.
    pub rows: HashMap<TableName, RowList>,
    /// Keys that contain the person's id.
    pub keys: Vec<PersonKeyPart>,
}

/// Inputs of the full scan.
pub struct PersonSearch<'a> {
    /// Rows to delete.
    pub graph: &'a Graph,
    /// Rows of the person's account that are kept, by table.
    pub account: &'a Graph,
    /// Ids by which rows name the person.
    pub subject: &'a [String],
    /// Handles, in the order of the matcher.
    pub handles: &'a [&'a PersonHandle],
    /// Matcher for the handles and ids to look for.
    pub matcher: &'a Matcher,
    /// Ids of deleted rows that are recognizable in texts.
    pub ids: &'a LostIds,
    /// Forms of generated ids, which are nobody's words.
    pub made: &'a MadeIds,
    /// The ids that lists of the layout may lose, by table and column, including short ones.
    pub listed: &'a HashMap<(TableName, String), LostIds>,
    /// Decisions about the mentions.
    pub decisions: Decisions<'a>,
    /// Known facts about tables and columns.
    pub about: &'a KnownTables,
    /// Tables that triggers keep in step.
    pub follows: &'a HashSet<TableName>,
    /// Searches each value for further terms, if the bytes of files are searched next.
    pub watch: Option<&'a ValueWatch>,
    /// Called with the number of values read so far.
    pub progress: &'a (dyn Fn(&str, u64) + Sync),
}

impl PersonSearch<'_> {
    /// Digest of everything that decides which rows match; `others` are the handles of other people.
    pub(super) fn digest(&self, others: &[String]) -> String {
        let mut hash = Sha256::new();
        hash_handles(&mut hash, self.handles.iter().copied(), others);
        self.graph.hash_rows(&mut hash);
        self.account.hash_rows(&mut hash);
        hash_set(&mut hash, "ids", self.ids.told().sums(), self.ids.told().len());
        let mut listed: Vec<_> = self.listed.iter().collect();
        listed.sort_unstable_by_key(|(place, _)| *place);
        for ((table, column), ids) in listed {
            hash_set(&mut hash, &format!("{}.{column}", table.title()), ids.own().sums(), ids.own().len());
        }
        hex::encode(hash.finalize())
    }
}

/// Adds a person's handles, and those of other people, to a hash.
pub fn hash_handles<'h>(hash: &mut Sha256, handles: impl IntoIterator<Item = &'h PersonHandle>, others: &[String]) {
    for handle in handles {
        hash.update(canonical(handle));
    }
    hash.update(canonical(&json!({ "others": others })));
}
