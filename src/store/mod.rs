//! The only SQL: connecting, building queries, reading rows, pages, context and state. Sessions are read-only; a
//! connection for writing is opened only when a change is applied.

pub mod ability;
pub mod aside;
pub mod batch;
pub mod beside;
pub mod bulk;
mod bytes_in_columns;
pub mod catalog;
pub mod codec;
mod column_fit;
pub mod companion;
pub mod connect;
pub mod container;
pub mod context;
mod count;
mod damage;
pub mod derive;
mod dialect;
pub mod embedding;
pub mod encode;
mod engine_error;
pub mod episode_of;
pub mod erasing;
mod fault;
pub mod fetched;
pub mod file_state;
pub mod find;
pub mod foreign_keys;
mod foresight;
mod growth;
mod handles;
pub mod hanging;
pub mod identity;
mod index_builder;
pub mod jobs;
mod keyword;
mod lacking;
mod layout_check;
pub mod migrating;
pub mod migration;
mod order;
pub mod own;
mod page;
pub mod proof;
pub mod pulse;
pub mod raw_file;
pub mod raw_table;
pub mod reading;
pub mod relations;
mod revise;
pub mod row_list;
pub mod row_number;
mod salvage;
mod sample;
mod scan;
pub mod scratch;
pub mod search_index;
mod select;
pub mod server;
pub mod session;
pub mod shape;
mod side_by_side;
pub mod snapshot;
mod sql_names;
mod sqlite_reader;
mod sqlite_writer;
mod standby;
mod status;
pub mod stored;
mod stored_order;
mod stripes;
pub mod structure;
mod supervision;
pub mod surplus;
pub mod tally;
mod uncovered;
mod uniques;
pub mod vector;
mod vector_cache;
pub mod vectors;
pub mod walk;
mod withhold;
pub mod within;
pub mod write;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock};

use batch::{ReadRow, TakeEach};
use fetched::RawRow;
use order::SortableColumns;
use select::SelectStatement;
use session::Sessions;

use crate::ground::private_file::PrivateFolder;
use crate::layout::{BoundSource, Catalog, Engine, Layout, RecognisedLayouts};
use crate::memory::invocation::Invocation;
use crate::memory::{Entity, UnreadRows};

pub use engine_error::EngineFault;
pub use handles::{
    ContextReader, DatabaseReport, ForesightReader, ProofReader, RawTables, RecordReader, RowEncoder, RowWalks,
    SchemaDoor, ShapeReader, VectorReader,
};
pub use page::named_ids;

pub use connect::{OpenError, OpenOptions, Target};

/// Error of a read from the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not hold the entity.
    #[error("this database holds no {entity}: {reason}")]
    Missing {
        /// Requested entity.
        entity: String,
        /// Reason why the entity is missing.
        reason: String,
        /// Remedy, if there is one.
        remedy: Option<String>,
    },
    /// A cursor that belongs to another list.
    #[error("the cursor belongs to another list; use `next` from a page with the same entity and order")]
    Cursor,
    /// A source whose rows have no order to walk.
    #[error("the rows of {0} cannot be ordered: its id is not one plain column")]
    Unordered(String),
    /// Several rows share one id, so it identifies none of them; the last field says what does.
    #[error("several rows of {0} have the id `{1}`: {2}")]
    Ambiguous(String, String, String),
    /// A value that the database cannot store.
    #[error("{0}")]
    CannotHold(String),
    /// One of our own tables that our role may not read.
    #[error("{reason}")]
    Denied {
        /// Reason, in words.
        reason: String,
        /// Remedy for the table's owner.
        remedy: String,
    },
    /// A table that does not exist, or no longer exists.
    #[error("there is no table {0}")]
    NoTable(String),
    /// A scratch file could not be written or read.
    #[error("what does not fit in memory could not be spilled to a file: {0}")]
    Scratch(#[from] std::io::Error),
    /// The engine refused.
    #[error("{}", engine_error::explain(.0))]
    Engine(#[from] sqlx::Error),
}

impl StoreError {
    /// Whether the connection is lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, StoreError::Engine(error) if engine_error::lost(error))
    }

    /// Kind of the error, if people can act on it; `None` if its message says everything.
    pub fn fault(&self) -> Option<EngineFault> {
        match self {
            StoreError::Engine(error) => engine_error::fault(error),
            _ => None,
        }
    }

    /// Whether the cause is a missing privilege, which says nothing about other tables.
    pub fn is_denied(&self) -> bool {
        match self {
            StoreError::Denied { .. } => true,
            StoreError::Engine(sqlx::Error::Database(e)) => matches!(e.code().as_deref(), Some("42501" | "3")),
            _ => false,
        }
    }
}

/// An opened memory database.
#[derive(Debug)]
pub struct Store {
    sessions: Arc<Sessions>,
    catalog: Catalog,
    recognised: RecognisedLayouts,
    location: String,
    invocation: Invocation,
    place: String,
    companion: Option<companion::Companion>,
    anchors: Option<std::path::PathBuf>,
    version: String,
    notes: Vec<String>,
    /// Reason why nothing can be written here, whatever the operator does.
    blocked: Option<String>,
    /// Layouts that were tried on it.
    layouts: Vec<crate::layout::Layout>,
    /// Layouts to choose from when the database is opened again.
    choice: connect::LayoutChoice,
    /// A requested layout that an empty database does not have yet.
    intended: Option<String>,
    /// Stores in it that are not read, once checked.
    uncovered: OnceLock<Vec<uncovered::UncoveredStore>>,
    shapes: shape::TableShapes,
    /// Abilities that the server lacks or does not report.
    refusals: Arc<ability::RefusedAbilities>,
    /// Key outside the database for the HMACs of erased people's handles.
    secret: Option<[u8; 32]>,
    /// Reads raw bytes of the database's files.
    raw_files: raw_file::RawFiles,
    /// The connection for writing, shared by all stores of one database.
    writer: Arc<tokio::sync::Mutex<Option<write::WriteConnection>>>,
    /// Number of transactions that tried to commit.
    commits: Arc<std::sync::atomic::AtomicU64>,
    fault: fault::FaultCounter,
    plan_room: fault::PlanRoom,
    /// Reliability of the stored order of columns.
    sortable: SortableColumns,
    /// Vectors cached between recalls.
    vectors: Mutex<vector_cache::Cache>,
    /// Tables as a plan would leave them, if this store is a preview.
    foresight: Option<foresight::Foresight>,
    /// A standby of the database, for reading rows.
    replica: Option<Arc<Store>>,
    /// Rows that are missing in a private copy of a damaged database; `None` for any other.
    unread: Option<Vec<UnreadRows>>,
    /// Private copy of a database that could not be opened in place; held until the last store that reads it is dropped.
    copy: Option<Arc<PrivateFolder>>,
}

impl Store {
    /// Notes on how it was opened and on missing rows, for people.
    pub fn notes(&self) -> Vec<String> {
        let told = |rows: &UnreadRows| format!("{}: a page is damaged", rows.told());
        self.notes.iter().cloned().chain(self.unread.iter().flatten().map(told)).collect()
    }

    /// Rows that are missing in the private copy of a damaged database, by table, the most first; `None` if this is the
    /// database itself.
    pub fn unread(&self) -> Option<&[UnreadRows]> {
        self.unread.as_deref()
    }

    /// Missing rows of the trail in such a copy, or of its tables: nothing can be said of it as a whole.
    pub fn unread_trail(&self) -> Option<&UnreadRows> {
        self.unread()?.iter().find(|rows| own::is_of_trail(&rows.table) || rows.table == salvage::SCHEMA)
    }

    /// Engine of the database.
    pub fn engine(&self) -> Engine {
        self.sessions.engine()
    }

    /// Layouts and sources that were recognised.
    pub fn recognised(&self) -> &RecognisedLayouts {
        &self.recognised
    }

    /// Tables of the database.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Path or URL, without a password.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns how the database is named on a command line, for the commands in advice.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    /// Returns a location that is the same for all spellings: a real path, or a server and a database name.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Folder for anchors of the audit trail; `None` if there is none.
    pub fn anchor_folder(&self) -> Option<&std::path::Path> {
        self.anchors.as_deref()
    }

    /// The sources of an entity.
    ///
    /// # Errors
    /// [`StoreError::Missing`] with the reason if there is none.
    pub fn sources_of(&self, entity: Entity) -> Result<Vec<&BoundSource>, StoreError> {
        let sources: Vec<_> = self.recognised.sources.iter().filter(|s| s.entity == entity).collect();
        if sources.is_empty() {
            let (reason, remedy) = self.why_missing(entity);
            return Err(StoreError::Missing { entity: entity.title(), reason, remedy });
        }
        Ok(sources)
    }

    /// The source whose table an id names before a colon (`notes:7`), and the rest of the id; the longest matching name
    /// wins.
    fn in_table<'i>(&self, entity: Entity, id: &'i str) -> Option<(&BoundSource, &'i str)> {
        let sources = self.sources_of(entity).ok()?.into_iter();
        let named = sources.filter_map(|source| Some((source, id.strip_prefix(&*source.label)?.strip_prefix(':')?)));
        named.min_by_key(|(_, id)| id.len())
    }

    /// Explains why an entity is missing, and what would help.
    pub fn why_missing(&self, entity: Entity) -> (String, Option<String>) {
        let Some(layout) = self.recognised.layouts.first() else {
            if let Some((reason, remedy)) = self.left_out() {
                return (reason.to_owned(), Some(remedy.to_owned()));
            }
            if self.schema().is_blank() {
                let reason = "it has no memory tables yet, and no known layout fits it";
                let remedy = format!("`{}` creates the memory tables", self.invocation.line(["migrate", "--apply"]));
                return (reason.to_owned(), Some(remedy));
            }
            let remedy = "describe it in a layout file and open it with --layout FILE (`layouts check FILE` helps)";
            return ("no known layout fits it".to_owned(), Some(remedy.to_owned()));
        };
        let rows = |w: &&crate::layout::WithheldPart| w.entity == entity && w.column.is_none();
        if let Some(withheld) = self.recognised.withheld.iter().find(rows) {
            return (withheld.reason.clone(), Some(withheld.remedy.clone()));
        }
        let said = self.recognised.layouts.iter().flat_map(|l| &l.absent).find(|(e, _)| *e == entity);
        if let Some(remedy) = self.companion.as_ref().and_then(|companion| companion.remedy(&self.invocation)) {
            let reason =
                "a palace does not store it: it is stored in a companion database next to it, which does not exist yet";
            return (said.map_or_else(|| reason.to_owned(), |(_, reason)| reason.clone()), Some(remedy));
        }
        let prefix = format!("{entity}.");
        let lost = || self.recognised.layouts.iter().flat_map(|l| &l.missing).find(|m| m.key.starts_with(&prefix));
        match said {
            Some((_, reason)) => (reason.clone(), None),
            None => match lost() {
                Some(missing) => (missing.message.clone(), None),
                None => match self.uncovered().iter().find(|store| store.is_hidden && store.entities.contains(&entity))
                {
                    Some(hidden) => (hidden.reason.clone(), Some(hidden.remedy.clone())),
                    None => {
                        (format!("the layout {} has no source for it here", layout.name), self.of_one_person(entity))
                    }
                },
            },
        }
    }

    /// Explains what can be asked about people if no layout lists them but rows name them.
    fn of_one_person(&self, entity: Entity) -> Option<String> {
        let named = || self.recognised.sources.iter().any(|source| !source.column("user_id").is_empty());
        let show = self.invocation.line(["show", "subject", "ID"]);
        (entity == Entity::Subject && named())
            .then(|| format!("rows name people in `user_id`: `{show}` lists what is stored about one of them"))
    }

    /// Reason and remedy if no layout fits because the PostgreSQL search path leaves its tables out.
    pub fn left_out(&self) -> Option<(&str, &str)> {
        let hidden = self.uncovered().iter().find(|store| store.is_hidden && self.recognised.reads_nothing())?;
        Some((&hidden.reason, &hidden.remedy))
    }

    async fn fetch(&self, statement: &SelectStatement) -> Result<Vec<RawRow>, StoreError> {
        let statement = self.ahead().seen(statement);
        tracing::debug!(sql = %statement.sql, "fetch");
        Ok(self.sessions.fetch(&statement.sql, &statement.params).await?)
    }

    /// The engine's plan for a statement, as text.
    async fn steps(&self, statement: &SelectStatement) -> Result<Vec<String>, StoreError> {
        let statement = self.ahead().seen(statement);
        let (explain, column) = match self.engine() {
            Engine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
            Engine::Postgres => ("EXPLAIN", 0),
        };
        let steps = self.sessions.fetch(&format!("{explain} {}", statement.sql), &statement.params).await?;
        Ok(steps.iter().map(|row| fetched::text(row, column)).collect())
    }

    /// As [`Sessions::fetch_within`].
    async fn fetch_within(&self, statement: &SelectStatement, bytes: usize) -> Result<(Vec<RawRow>, bool), StoreError> {
        let statement = self.ahead().seen(statement);
        tracing::debug!(sql = %statement.sql, "fetch");
        Ok(self.sessions.fetch_within(&statement.sql, &statement.params, bytes).await?)
    }

    /// As [`Store::fetch_text`], of the rows as they are stored, whatever this store previews.
    async fn fetch_stored(&self, sql: &str) -> Result<Vec<RawRow>, StoreError> {
        tracing::debug!(%sql, "fetch");
        Ok(self.sessions.fetch(sql, &[]).await?)
    }

    async fn fetch_text(&self, sql: &str) -> Result<Vec<RawRow>, StoreError> {
        self.fetch(&SelectStatement::new(self.engine(), sql.to_owned())).await
    }

    async fn scan(
        &self,
        statement: &SelectStatement,
        each: impl FnMut(RawRow) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let statement = self.ahead().seen(statement);
        tracing::debug!(sql = %statement.sql, "scan");
        Ok(self.sessions.scan(&statement.sql, &statement.params, each).await?)
    }

    async fn scan_ahead<R: Send + 'static>(
        &self,
        statement: &SelectStatement,
        read: &ReadRow<R>,
        each: &mut TakeEach<'_, R>,
    ) -> Result<(), StoreError> {
        let statement = self.ahead().seen(statement);
        tracing::debug!(sql = %statement.sql, "scan ahead");
        Ok(self.sessions.scan_ahead(&statement.sql, &statement.params, read, each).await?)
    }

    /// Opens the same database through other connections, or with another reading of its tables, with empty caches.
    fn again(
        &self,
        sessions: Arc<Sessions>,
        catalog: Catalog,
        layouts: Vec<Layout>,
        recognised: RecognisedLayouts,
    ) -> Store {
        Store {
            sessions,
            catalog,
            recognised,
            invocation: self.invocation.clone(),
            location: self.location.clone(),
            place: self.place.clone(),
            companion: self.companion.clone(),
            anchors: self.anchors.clone(),
            version: self.version.clone(),
            notes: self.notes.clone(),
            blocked: self.blocked.clone(),
            layouts,
            choice: self.choice.clone(),
            intended: self.intended.clone(),
            uncovered: OnceLock::new(),
            shapes: shape::TableShapes::default(),
            refusals: Arc::clone(&self.refusals),
            secret: self.secret,
            raw_files: self.raw_files.clone(),
            writer: Arc::clone(&self.writer),
            commits: Arc::clone(&self.commits),
            fault: fault::FaultCounter::default(),
            plan_room: fault::PlanRoom::default(),
            sortable: SortableColumns::default(),
            vectors: Mutex::default(),
            foresight: None,
            replica: None,
            unread: self.unread.clone(),
            copy: self.copy.clone(),
        }
    }
}

/// Explains how to identify one of several rows with the same id in these tables.
fn told_apart(tables: &[&str], id: &str) -> String {
    let mut different: Vec<String> = Vec::new();
    for table in tables {
        let name = format!("`{table}:{id}`");
        if !different.contains(&name) {
            different.push(name);
        }
    }
    match different.split_last() {
        Some((last, before)) if !before.is_empty() => {
            format!(
                "it alone cannot select one of them for a change; {} or {last} selects the row of one table",
                before.join(", ")
            )
        }
        _ => "they are in one table, so the id cannot select one of them for a change".to_owned(),
    }
}

/// Advice that sets a PostgreSQL search path.
fn with_search_path(schemas: &[&str]) -> String {
    let quoted: Vec<String> = schemas.iter().map(|schema| dialect::quote(schema)).collect();
    let words = format!("ALTER ROLE CURRENT_USER SET search_path TO {}", quoted.join(", "));
    search_path_of_url(schemas).map_or_else(|| words.clone(), |option| format!("{words}, or {option}"))
}

/// Advice that sets a PostgreSQL search path for one opening; `None` if the schemas need quotation marks.
fn search_path_of_url(schemas: &[&str]) -> Option<String> {
    let is_plain = |schema: &&str| schema.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
    let option = || format!("`?options[search_path]={}` at the end of the URL", schemas.join(","));
    schemas.iter().all(is_plain).then(option)
}
