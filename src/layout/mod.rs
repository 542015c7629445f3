//! Layouts: how a database keeps its memories, described as data; how layouts are written and recognised.
//!
//! A layout is a TOML file (`assets/layouts/`, or the operator's own) that maps tables to our entities.
//! [`parse()`] reads one, [`catalog`] says what a database holds, [`recognise()`] finds which layouts fit it and
//! what each of their columns comes down to there.

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
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        }
    }
}

/// Description of how one kind of memory database keeps its memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Short name, as in `--layout NAME`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// File the layout was read from, for messages.
    pub file: String,
    /// Engines on which it occurs.
    pub engines: Vec<Engine>,
    /// Tables and columns that must exist for the layout to be recognised.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the layout to be recognised.
    pub forbids: Vec<Need>,
    /// Named variants, in order of preference: the first whose needs are met names the variant.
    pub variants: Vec<Variant>,
    /// Further SQLite files of the same folder.
    pub attach: Vec<AttachedFile>,
    /// File that makes a folder such a database.
    pub folder: Option<String>,
    /// Sources of the entities; one entity may have several.
    pub sources: Vec<Source>,
    /// Kinds of tables of any name.
    pub patterns: Vec<TablePattern>,
    /// Entities that the layout cannot hold, each with a sentence that says why and what to use instead.
    pub absent: Vec<(Entity, String)>,
    /// By what people are known.
    pub handles: Vec<erase::HandleColumn>,
    /// Rules that say whose rows are and what erasing does to them.
    pub rules: Vec<erase::EraseRule>,
    /// The table of accounts.
    pub account: Option<erase::Account>,
    /// Tables that triggers keep in step with others: erasing leaves them to those.
    pub follows: Vec<String>,
    /// Tables that may hold what is a person's in rows that do not tell who owns them.
    pub unowned: Vec<String>,
    /// Sentences about what its application keeps of a person outside of the database, where no erasure reaches.
    pub elsewhere: Vec<String>,
    /// Kind of rows that its agents recall, when the file says so.
    pub recalled: Option<Entity>,
    /// Whether anything may be changed or erased through it; a draft is closed until its author opens it.
    pub writable: bool,
}

/// A table, or a column of a table, that must or must not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Table, with its schema where that is not the default one.
    pub table: String,
    /// Column of it.
    pub column: Option<String>,
    /// Words of the declared type, one of which the column's type must contain (any case).
    pub types: Vec<String>,
    /// Line in the layout file, from 1.
    pub line: usize,
}

/// Tables of any name that are identified by their columns, such as one for each collection. Whatever names a table of
/// the layout may say `{name}` for each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePattern {
    /// Name under which the rest of the layout speaks of such a table.
    pub name: String,
    /// Columns that the table must have, each with words of which its declared type must contain one; any type when
    /// there are none.
    pub has: Vec<(String, Vec<String>)>,
    /// True when the table must have these columns and no others.
    pub only: bool,
    /// Pattern for the table's name, in any case: `*` stands for any letters.
    pub like: String,
    /// Patterns that the table's name must not match, or a pattern named before, of which it must not be.
    pub unlike: Vec<String>,
    /// Ending that the table's name has beyond that of another table with these columns.
    pub twin: Option<String>,
    /// Table of the layout in whose place the only such table is where that is not there.
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

/// An SQLite file that is attached under a schema name.
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
    /// The text for an engine; none when the author gave none.
    #[must_use]
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
    /// Name of the source for people: the table, or what the author says.
    pub label: String,
    /// The FROM clause: a table under the alias `t`, or the author's own.
    pub from: FromClause,
    /// Condition that leaves bookkeeping rows out.
    pub keep: Option<Sql>,
    /// Tables and columns that must exist for the source to be used.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the source to be used.
    pub forbids: Vec<Need>,
    /// Canonical columns: name and the ways to get it, the first one that gives a value wins.
    pub columns: Vec<(String, Vec<ColumnSpec>)>,
    /// Links from an episode to canvas events and feedback.
    pub links: Vec<EpisodeLink>,
    /// Rust derivation that completes the rows.
    pub derive: Option<Derivation>,
    /// Rules for writing the source's rows; `None` when they are only read.
    pub write: Option<Write>,
    /// Location of the rows' vectors.
    pub vector: Option<VectorSpec>,
    /// Condition that finds the rows with one of some words; `$words` stands for the words in the engine's own way of
    /// asking for any of them.
    pub search: Option<Sql>,
    /// Line of the file, from 1.
    pub line: usize,
}

/// The FROM clause of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromClause {
    /// One table.
    Table(String),
    /// The elements of a list in a column of a table's rows: the table, the column, and where in it the list is.
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

/// One way to get a canonical column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Source of the value.
    pub value: ColumnOrigin,
    /// Place of the value within the stored one.
    pub inside: Inside,
    /// Stored word to canonical word.
    pub map: Vec<(String, String)>,
    /// Encoding of the stored value, when its type does not say.
    pub stored: StoredAs,
    /// Tables and columns that must exist for this way to be used.
    pub requires: Vec<Need>,
    /// Condition that finds the rows whose list holds one of some ids; `$ids` stands for the list of ids.
    pub lookup: Option<Sql>,
    /// Tables and columns that must not exist for this way to be used.
    pub forbids: Vec<Need>,
    /// A database without the column is not an error.
    pub optional: bool,
    /// Line of the file, from 1.
    pub line: usize,
}

/// Source of a column's value.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnOrigin {
    /// A column, perhaps `alias.column`.
    Column(String),
    /// Several columns that make one value together: the id of a row whose key they are.
    Columns(Vec<String>),
    /// Several columns as a JSON object: each name in it, and the column.
    Fields(Vec<(String, String)>),
    /// An SQL expression of the author's.
    Sql(Sql),
    /// The same for every row.
    Value(Value),
}

/// Encoding of a stored value, when the column's type does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredAs {
    /// As the type and the first bytes say: text, JSON text, zlib, array, any spelling of time.
    #[default]
    Plain,
    /// Seconds since 1970, whole or with a fraction.
    Epoch,
    /// Milliseconds since 1970.
    EpochMillis,
    /// A scalar that stands for a list of one.
    One,
    /// JSON whose strings may hold JSON again, with typed values.
    Nested,
    /// A list of ids in which whole numbers are ids too: the rows that it names are numbered.
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
    /// A JSON column of the episode holds a list of ids at a path: column and path.
    Path(String, String),
}

/// Rust code that completes rows where data is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derivation {
    /// Episodes out of the event log of their workflow run.
    WorkflowEvents,
    /// The episode of feedback that names none: the only one of its execution, else the one that lists it.
    EpisodeLinks,
}

impl Derivation {
    /// Canonical columns that it may fill.
    #[must_use]
    pub fn fills(self) -> &'static [&'static str] {
        match self {
            Derivation::WorkflowEvents => {
                &["observation", "thoughts", "actions", "result", "success", "insight", "ended_at", "duration_seconds"]
            }
            Derivation::EpisodeLinks => &["episode_id"],
        }
    }

    /// Canonical columns that it looks at, next to the id.
    #[must_use]
    pub fn reads(self) -> &'static [&'static str] {
        match self {
            Derivation::WorkflowEvents => &["status", "started_at", "parent_id", "ended_at"],
            Derivation::EpisodeLinks => &["source", "agent_id", "execution_id", "episode_id"],
        }
    }
}
