//! Inputs of a search for a person: the handles, the rows that go, the decisions, and known facts about the tables.

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
use crate::change::ChangeError;
use crate::change::plan::canonical;
use crate::layout::Engine;
use crate::store::Store;
use crate::store::own;
use crate::store::proof::values::ValueWatch;
use crate::store::relations::Relations;
use crate::store::row_list::RowList;
use crate::store::stored::TableName;

/// Known facts about a database's tables and columns.
#[derive(Debug)]
pub struct KnownTables {
    /// Schema of our own tables.
    pub own: Option<String>,
    /// Tables that the layout knows.
    pub tables: HashSet<TableName>,
    /// Columns that hold ids and nothing else.
    pub ids_only: HashSet<(TableName, String)>,
    /// Columns among these that hold ids of people.
    pub naming: NamingColumns,
    /// The engine holds columns to their types.
    pub postgres: bool,
}

impl KnownTables {
    /// Reads the facts that the layouts and the database itself state.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(store: &Store, relations: &Relations) -> Result<Self, ChangeError> {
        Ok(KnownTables {
            own: store.records().own().await?.map(|own| own.schema),
            tables: known_tables(store),
            ids_only: id_columns(store, relations),
            naming: naming_columns(store, relations),
            postgres: store.engine() == Engine::Postgres,
        })
    }

    /// Whether a table is one of ours.
    #[must_use]
    pub fn is_ours(&self, table: &TableName) -> bool {
        self.own.as_ref() == Some(&table.schema) && own::TABLES.contains(&table.name.as_str())
    }
}

/// Rows in which a search found something: a second plan for the same person reads only these where what is sought and
/// what goes are the same, as with other decisions about mentions. What was written since is not in it.
#[derive(Debug, Default)]
pub struct KeptSearch {
    /// For each handle why it is a usual word here, under the digest of what decides that.
    pub(super) usual: Option<(String, Vec<Option<String>>)>,
    /// Places of what was found, under the digest of what was sought.
    pub(super) found: Option<(String, FoundPlaces)>,
}

/// Places in which a search found something.
#[derive(Debug, Default)]
pub(super) struct FoundPlaces {
    /// Keys of the rows, by table; a table whose rows cannot be distinguished is not among them.
    pub rows: HashMap<TableName, RowList>,
    /// Keys that hold the person's id.
    pub keys: Vec<PersonKeyPart>,
}

/// Inputs of the pass over everything.
pub struct PersonSearch<'a> {
    /// Rows that go.
    pub graph: &'a Graph,
    /// Rows of the person's account that are kept, by table.
    pub account: &'a Graph,
    /// Ids by which rows name the person.
    pub subject: &'a [String],
    /// Handles, in the order of the matcher.
    pub handles: &'a [&'a PersonHandle],
    /// Matcher for the handles and ids to look for.
    pub matcher: &'a Matcher,
    /// Ids of rows that go, as far as they can be told in texts.
    pub ids: &'a LostIds,
    /// Forms of ids that are not words of others, wherever they stand.
    pub made: &'a MadeIds,
    /// The ids that lists of the layout may lose, by table and column: short ones too.
    pub listed: &'a HashMap<(TableName, String), LostIds>,
    /// Decisions about the mentions.
    pub decisions: Decisions<'a>,
    /// Known facts about tables and columns.
    pub about: &'a KnownTables,
    /// Tables that triggers keep in step.
    pub follows: &'a HashSet<TableName>,
    /// Looks for more in each value, where the bytes of files are searched next.
    pub watch: Option<&'a ValueWatch>,
    /// Told how many values have been read, now and then.
    pub progress: &'a (dyn Fn(&str, u64) + Sync),
}

impl PersonSearch<'_> {
    /// The digest of everything that decides in which rows something is found; `others` are the handles of other people.
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

/// Adds a person's handles to a hash, one after the other, and those of other people.
pub fn hash_handles<'h>(hash: &mut Sha256, handles: impl IntoIterator<Item = &'h PersonHandle>, others: &[String]) {
    for handle in handles {
        hash.update(canonical(handle));
    }
    hash.update(canonical(&json!({ "others": others })));
}
