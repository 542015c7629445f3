//! Layouts: descriptions, as data, of how databases store memories; their syntax and their recognition.
//!
//! A layout is a TOML file (`assets/layouts/`, or the operator's own) that maps tables to our entities. [`parse()`]
//! reads one, [`catalog`] lists the tables of a database, [`recognise()`] finds the layouts that fit it and binds their
//! columns.

pub mod builtin;
pub mod catalog;
pub mod draft;
pub mod erase;
mod extend;
pub mod inside;
mod names_in_sql;
pub mod parse;
mod pattern;
pub mod recognise;
mod table_set;
pub mod vector;
pub mod write;

use serde_json::Value;

pub use crate::memory::nearest::nearest;

use crate::memory::Entity;

pub use catalog::{Catalog, CatalogColumn, CatalogTable};
pub use inside::{Codec, Inside, TextPart};
pub use parse::{LayoutError, parse};
pub use write::{Fill, TimeSpelling, Write};

pub use vector::{BoundVector, VectorSpec};

pub use recognise::{
    Attachment, BoundColumn, BoundFrom, BoundOrigin, BoundSource, RecognisedLayouts, WithheldPart, recognise,
};

/// The two kinds of database that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// An SQLite file, or several attached to one.
    Sqlite,
    /// A PostgreSQL database.
    Postgres,
}

impl Engine {
    /// Name in layout files and in output.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        }
    }
}

/// Description of how one kind of memory database stores its memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Short name, as in `--layout NAME`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// File the layout was read from, for messages.
    pub file: String,
    /// Engines on which it exists.
    pub engines: Vec<Engine>,
    /// Tables and columns that must exist for the layout to be recognised.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the layout to be recognised.
    pub forbids: Vec<Need>,
    /// Named variants, in order of preference: the first whose needs are met applies.
    pub variants: Vec<Variant>,
    /// Further SQLite files in the same folder.
    pub attach: Vec<AttachedFile>,
    /// File that makes a folder such a database.
    pub folder: Option<String>,
    /// Sources of the entities; one entity may have several.
    pub sources: Vec<Source>,
    /// Kinds of tables of any name.
    pub patterns: Vec<TablePattern>,
    /// Entities that the layout cannot hold, each with the reason and an alternative.
    pub absent: Vec<(Entity, String)>,
    /// Columns with handles of people.
    pub handles: Vec<erase::HandleColumn>,
    /// Rules for the ownership of rows, and for the effect of erasing.
    pub rules: Vec<erase::EraseRule>,
    /// The table of accounts.
    pub account: Option<erase::Account>,
    /// Tables that triggers keep in sync with others: erasing leaves them to the triggers.
    pub follows: Vec<String>,
    /// Rows that may hold personal data although nothing says whose they are.
    pub unowned: Vec<erase::UnownedRows>,
    /// Sentences about personal data that the application keeps outside of the database, where no erasure reaches.
    pub elsewhere: Vec<String>,
    /// Kind of rows that its agents recall, if the file names it.
    pub recalled: Option<Entity>,
    /// Statuses of the episodes that its agents never get.
    pub never_recalled: Vec<String>,
    /// Whether anything may be changed or erased through it; a draft is closed until its author opens it.
    pub writable: bool,
}

/// A table, or a column of a table, that must or must not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Table, with its schema unless that is the default one.
    pub table: String,
    /// Column of the table.
    pub column: Option<String>,
    /// Words of the declared type, one of which the column's type must contain (any case).
    pub types: Vec<String>,
    /// Line in the layout file, from 1.
    pub line: usize,
}

/// Tables of any name, identified by their columns, for example one per collection. Wherever the layout names a table,
/// `{name}` stands for each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePattern {
    /// Name for such a table in the rest of the layout.
    pub name: String,
    /// Columns that the table must have, each with words of which its declared type must contain one; any type if
    /// empty.
    pub has: Vec<(String, Vec<String>)>,
    /// Whether the table must have no other columns.
    pub only: bool,
    /// Pattern for the table's name, in any case: `*` stands for any characters.
    pub like: String,
    /// Patterns that the table's name must not match, or earlier named patterns that must not apply.
    pub unlike: Vec<String>,
    /// Suffix of the table's name relative to another table with these columns.
    pub twin: Option<String>,
    /// Table of the layout that such tables have the place of, under names of their own.
    pub stands_for: Option<String>,
}

/// One of several shapes that a layout is found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Name, for people.
    pub name: String,
    /// Tables and columns that must exist for the variant.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the variant.
    pub forbids: Vec<Need>,
}

/// An SQLite file to attach under a schema name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// File name within the folder.
    pub file: String,
    /// Schema name under which its tables appear.
    pub schema: String,
}

/// SQL text written by the layout's author, one for both engines or one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    /// Text for SQLite.
    pub sqlite: Option<String>,
    /// Text for PostgreSQL.
    pub postgres: Option<String>,
}

impl Sql {
    /// The text for an engine; `None` if the author gave none.
    pub fn on(&self, engine: Engine) -> Option<&str> {
        match engine {
            Engine::Sqlite => self.sqlite.as_deref(),
            Engine::Postgres => self.postgres.as_deref(),
        }
    }
}

/// Source of an entity's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Entity of the rows.
    pub entity: Entity,
    /// Name of the source for people: the table, or the author's label.
    pub label: String,
    /// The FROM clause: a table under the alias `t`, or the author's own.
    pub from: FromClause,
    /// Condition that leaves bookkeeping rows out.
    pub keep: Option<Sql>,
    /// Tables and columns that must exist for the source to be used.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the source to be used.
    pub forbids: Vec<Need>,
    /// Canonical columns: the name and the ways to read it; the first one with a value wins.
    pub columns: Vec<(String, Vec<ColumnSpec>)>,
    /// Links from an episode to canvas events and feedback.
    pub links: Vec<EpisodeLink>,
    /// Rust derivation that completes the rows.
    pub derive: Option<Derivation>,
    /// Rules for writing the source's rows; `None` if they are read-only.
    pub write: Option<Write>,
    /// Location of the rows' vectors.
    pub vector: Option<VectorSpec>,
    /// Condition that finds the rows with one of some words; `$words` is replaced by the engine's query for any of
    /// them.
    pub search: Option<Sql>,
    /// Line of the file, from 1.
    pub line: usize,
}

/// The FROM clause of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromClause {
    /// One table.
    Table(String),
    /// The elements of a list in a column: the table, the column, and the path to the list.
    Each {
        /// The table, under the alias `t`.
        table: String,
        /// Column with the list.
        column: String,
        /// Path to the list in the column's JSON.
        path: String,
    },
    /// A join or a read-only query with the tables behind its aliases.
    Query {
        /// Text after FROM.
        sql: Sql,
        /// Alias and table.
        tables: Vec<(String, String)>,
    },
}

impl FromClause {
    /// The tables behind the aliases, each with its alias.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        let (one, several) = match self {
            FromClause::Table(table) | FromClause::Each { table, .. } => (Some(("t", table.as_str())), None),
            FromClause::Query { tables, .. } => (None, Some(tables)),
        };
        let named = several.into_iter().flatten().map(|(alias, table)| (alias.as_str(), table.as_str()));
        one.into_iter().chain(named)
    }
}

/// One way to read a canonical column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Source of the value.
    pub value: ColumnOrigin,
    /// Place of the value within the stored one.
    pub inside: Inside,
    /// Stored words with their canonical words.
    pub map: Vec<(String, String)>,
    /// Encoding of the stored value, if its type does not determine it.
    pub stored: StoredAs,
    /// Tables and columns that must exist for this way to be used.
    pub requires: Vec<Need>,
    /// Condition that finds the rows whose list contains one of some ids; `$ids` stands for the list of ids.
    pub lookup: Option<Sql>,
    /// Tables and columns that must not exist for this way to be used.
    pub forbids: Vec<Need>,
    /// Whether a database may lack the column.
    pub optional: bool,
    /// Line of the file, from 1.
    pub line: usize,
}

/// Source of a column's value.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnOrigin {
    /// A column, perhaps `alias.column`.
    Column(String),
    /// Several columns that form one value: the id of a row with a composite key.
    Columns(Vec<String>),
    /// Several columns as a JSON object: each name in it, and the column.
    Fields(Vec<(String, String)>),
    /// An SQL expression of the author's.
    Sql(Sql),
    /// A constant for every row.
    Value(Value),
}

/// Encoding of a stored value, if the column's type does not determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredAs {
    /// Determined by the type and the first bytes: text, JSON text, zlib, array, any spelling of time.
    #[default]
    Plain,
    /// Seconds since 1970, whole or with a fraction.
    Epoch,
    /// Milliseconds since 1970.
    EpochMillis,
    /// A scalar that stands for a list with one element.
    One,
    /// JSON whose strings may contain JSON again, with typed values.
    Nested,
    /// A list of ids in which integers are ids too, as the referenced rows are numbered.
    Numbers,
}

/// Link from an episode to rows of another entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeLink {
    /// Entity of the linked rows.
    pub to: Entity,
    /// Kind of link.
    pub by: LinkBy,
}

/// The three ways of being linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkBy {
    /// The episode's list column holds ids.
    List(String),
    /// The other row's `episode_id` names the episode.
    Back,
    /// A JSON column of the episode with a list of ids at a path: column and path.
    Path(String, String),
}

/// Rust code that completes rows if data is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derivation {
    /// Episodes out of the event log of their workflow run.
    WorkflowEvents,
    /// The episode of feedback that names none: the only one of its execution, else the one that lists it.
    EpisodeLinks,
}

impl Derivation {
    /// Canonical columns that it may fill.
    pub fn fills(self) -> &'static [&'static str] {
        match self {
            Derivation::WorkflowEvents => {
                &["observation", "thoughts", "actions", "result", "success", "insight", "ended_at", "duration_seconds"]
            }
            Derivation::EpisodeLinks => &["episode_id"],
        }
    }

    /// Canonical columns that it reads, besides the id.
    pub fn reads(self) -> &'static [&'static str] {
        match self {
            Derivation::WorkflowEvents => &["status", "started_at", "parent_id", "ended_at"],
            Derivation::EpisodeLinks => &["source", "agent_id", "execution_id", "episode_id"],
        }
    }
}
