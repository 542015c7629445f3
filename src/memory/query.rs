//! Queries to a memory database and their results: pages of rows, an episode with its context, a chain, the state of
//! the database. Plain data, shared by the store, screens and commands.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::chain::Chain;
use super::entity::Entity;
use super::filter::Filter;
use super::nearest::nearest;
use super::row::Row;
use super::search::Search;

/// Default number of rows per page.
pub const PAGE: usize = 50;

/// Bytes of stored values that end a page when pages are read one after the other.
pub const PART: usize = 8 << 20;

/// Rows that end it: parsed rows take several times their stored bytes.
const PART_ROWS: usize = 2_048;

/// A query for rows of one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Entity to list.
    pub entity: Entity,
    /// Conditions, all of which hold.
    pub filters: Vec<Filter>,
    /// Episodes only: those with a canvas event of this type (and action, on the same event).
    pub canvas: Option<CanvasFilter>,
    /// Words that must occur in a row's texts.
    pub search: Option<Search>,
    /// Order; `None` means newest first by (time, id).
    pub order: Option<Order>,
    /// Rows at most.
    pub limit: usize,
    /// Bytes of stored values after which a page ends before its limit; `next` then continues. `None` for no such
    /// limit.
    pub bytes: Option<usize>,
    /// Start of the page.
    pub start: PageStart,
    /// Canonical columns to read; `None` means all. The id and the columns needed by filters and order are always read.
    pub columns: Option<Vec<&'static str>>,
    /// Characters of each text to read; `None` means whole values.
    pub preview: Option<usize>,
    /// Whether strict JSON without escapes, including lists, is returned as text, for callers that search all of it.
    pub unparsed: bool,
    /// For walks over all rows: only rows without a stored value in this column, as far as the database can tell.
    pub absent: Option<&'static str>,
}

impl Query {
    /// Limits pages by size too, for callers that read page after page. Pages are large, because each one sorts all
    /// rows if no index has their order.
    pub fn in_parts(self) -> Self {
        Query { bytes: Some(PART), limit: PART_ROWS, ..self }
    }

    /// The first page of an entity, newest first, with all columns.
    pub fn new(entity: Entity) -> Self {
        Query {
            entity,
            filters: Vec::new(),
            canvas: None,
            search: None,
            order: None,
            limit: PAGE,
            bytes: None,
            start: PageStart::First,
            columns: None,
            preview: None,
            unparsed: false,
            absent: None,
        }
    }
}

/// A canvas type with an action: `sheets` or `sheets:present`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasFilter {
    /// Canvas type, compared exactly.
    pub canvas_type: String,
    /// Action, compared exactly.
    pub action: Option<String>,
}

impl CanvasFilter {
    /// Whether a canvas event has the type, and the action if one is given.
    pub fn fits(&self, event: &Row) -> bool {
        event.text("canvas_type") == Some(&self.canvas_type)
            && self.action.as_deref().is_none_or(|action| event.text("action") == Some(action))
    }

    /// Reads `TYPE` or `TYPE:ACTION`.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((kind, action)) => CanvasFilter { canvas_type: kind.to_owned(), action: Some(action.to_owned()) },
            None => CanvasFilter { canvas_type: text.to_owned(), action: None },
        }
    }
}

/// A column to order by; ties are ordered by id in the same direction. Absent values come last either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Canonical column.
    pub column: &'static str,
    /// Whether the greatest comes first.
    pub descending: bool,
}

impl Order {
    /// Reads `COLUMN`, `COLUMN:asc` or `COLUMN:desc`.
    ///
    /// # Errors
    /// The error, with the entity's columns.
    pub fn parse(entity: Entity, text: &str) -> Result<Self, String> {
        let (name, direction) = text.split_once(':').unwrap_or((text, "asc"));
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            other => return Err(format!("unknown direction `{other}`; use `asc` or `desc`")),
        };
        if let Some(column) = entity.column(name) {
            Ok(Order { column: column.name, descending })
        } else {
            let known: Vec<_> = entity.columns().iter().map(|c| c.name).collect();
            let hint = nearest(name, known.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
            let hint = hint.unwrap_or_default();
            Err(format!("{} has no column `{name}`{hint}; it has {}", entity.title(), known.join(", ")))
        }
    }
}

/// Start of a page. Cursors are opaque: they hold the stored keys of the rows at a page's edge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PageStart {
    /// At the first row.
    #[default]
    First,
    /// So that the page ends with the last row.
    Last,
    /// After the row of a [`Page::next`] cursor.
    After(String),
    /// So that the page ends before the row of a [`Page::previous`] cursor.
    Before(String),
}

/// Rows in order, with cursors in both directions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The rows.
    pub rows: Vec<Row>,
    /// Cursor for [`PageStart::After`]; `None` at the end.
    pub next: Option<String>,
    /// Cursor for [`PageStart::Before`]; `None` at the beginning.
    pub previous: Option<String>,
}

/// A remark about the rows shown: a fact, not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownFinding {
    /// Short stable identifier, such as `dangling_id`.
    pub kind: String,
    /// Sentence for people.
    pub message: String,
    /// Rows it is about.
    pub ids: Vec<String>,
}

/// An episode with everything that depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeContext {
    /// The episode.
    pub episode: Row,
    /// Segments of the episode, in order.
    pub segments: Vec<Row>,
    /// Canvas events from lists, back-links and metadata, without repeats, in time order.
    pub canvas: Vec<Row>,
    /// Feedback from lists and back-links, without repeats, in time order.
    pub feedback: Vec<Row>,
    /// The chain it is in.
    pub chain: Chain,
    /// Titles and times of the chain's episodes, and of those below it, by id.
    pub relatives: BTreeMap<String, Row>,
    /// Whether not all episodes further below were read.
    pub is_cut: bool,
    /// Signals in time order.
    pub utility: Vec<Row>,
    /// Links to memories, in order of rank.
    pub links: Vec<Row>,
    /// The existing linked memories.
    pub memories: Vec<Row>,
    /// Workflow events of its runs in order.
    pub events: Vec<Row>,
    /// Accesses that recalled the episode.
    pub accesses: Vec<Row>,
    /// Number of further rows by entity, not included here.
    pub more: BTreeMap<Entity, usize>,
    /// Findings about empty parts, dangling references and contradictions.
    pub findings: Vec<ShownFinding>,
}

impl EpisodeContext {
    /// Iterates over all its rows, for masking.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        let parts = [
            &mut self.segments, &mut self.canvas, &mut self.feedback, &mut self.utility, &mut self.links,
            &mut self.memories, &mut self.events, &mut self.accesses,
        ];
        std::iter::once(&mut self.episode).chain(self.relatives.values_mut()).chain(parts.into_iter().flatten())
    }

    /// Number of rows of an entity, including those not read.
    pub fn total(&self, entity: Entity) -> usize {
        let here = match entity {
            Entity::Segment => &self.segments,
            Entity::CanvasEvent => &self.canvas,
            Entity::Feedback => &self.feedback,
            Entity::UtilityEvent => &self.utility,
            Entity::MemoryLink => &self.links,
            Entity::WorkflowEvent => &self.events,
            Entity::Access => &self.accesses,
            _ => return 0,
        };
        here.len() + self.more.get(&entity).copied().unwrap_or_default()
    }

    /// The children that were read, in order.
    pub fn children(&self) -> impl Iterator<Item = &Row> {
        self.chain.children.iter().filter_map(|id| self.relative(id))
    }

    /// The episodes that follow one, as far as they were read, oldest first.
    pub fn followers(&self, id: &str) -> Vec<&Row> {
        let follows = |row: &&Row| row.text("parent_id") == Some(id) && !self.chain.ids.iter().any(|up| up == row.id());
        let mut rows: Vec<&Row> = self.relatives.values().filter(follows).collect();
        rows.sort_by(|a, b| a.text("started_at").cmp(&b.text("started_at")));
        rows
    }

    /// The other episodes of the chain, above and below it.
    pub fn chain_total(&self) -> usize {
        let apart = |row: &&Row| {
            let is = |ids: &[String]| ids.iter().any(|id| id == row.id());
            !is(&self.chain.ids) && !is(&self.chain.children)
        };
        let further = self.relatives.values().filter(apart).count();
        (self.chain.ids.len() + self.chain.children.len() + further).saturating_sub(1)
    }

    /// An episode of the chain or below it, including this one.
    pub fn relative(&self, id: &str) -> Option<&Row> {
        if id == self.episode.id() { Some(&self.episode) } else { self.relatives.get(id) }
    }

    /// The JSON printed by `show episode`.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

/// The JSON printed by `show episode`, without copying rows, which may be long.
impl Serialize for EpisodeContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut known: HashMap<&str, &Row> = HashMap::new();
        for memory in &self.memories {
            known.entry(memory.id()).or_insert(memory);
        }
        let memories: Vec<_> = self.links.iter().map(|link| LinkedMemory::new(link, &known)).collect();
        let mut object = serializer.serialize_map(Some(10))?;
        object.serialize_entry("episode", &self.episode)?;
        object.serialize_entry("segments", &self.segments)?;
        object.serialize_entry("canvas_context", &self.canvas)?;
        object.serialize_entry("feedback_context", &self.feedback)?;
        object.serialize_entry("chain", &ShownChain::new(&self.chain, |id| self.relative(id)))?;
        object.serialize_entry("utility", &self.utility)?;
        object.serialize_entry("memories", &memories)?;
        object.serialize_entry("events", &self.events)?;
        object.serialize_entry("accesses", &self.accesses)?;
        object.serialize_entry("findings", &self.findings)?;
        object.end()
    }
}

/// A memory link with its memory under `memory`, or null there.
#[derive(Debug)]
pub struct LinkedMemory<'r> {
    link: &'r Row,
    memory: Option<&'r Row>,
}

impl<'r> LinkedMemory<'r> {
    /// A link with its memory, if that is among those known by their ids.
    pub fn new(link: &'r Row, known: &HashMap<&str, &'r Row>) -> Self {
        LinkedMemory { link, memory: known.get(link.text("memory_id").unwrap_or_default()).copied() }
    }
}

impl Serialize for LinkedMemory<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        self.link.entries(&mut object)?;
        object.serialize_entry("memory", &self.memory)?;
        object.end()
    }
}

/// The JSON printed by `chain`: the episodes root first, the children, and anomalies.
#[derive(Debug, Serialize)]
pub struct ShownChain<'c> {
    chain: Vec<&'c Row>,
    children: Vec<&'c Row>,
    cycle: bool,
    missing_parent: Option<&'c str>,
}

impl<'c> ShownChain<'c> {
    /// A chain with its known rows.
    pub fn new(chain: &'c Chain, known: impl Fn(&str) -> Option<&'c Row>) -> Self {
        let rows = |ids: &'c [String]| ids.iter().filter_map(|id| known(id)).collect();
        ShownChain {
            chain: rows(&chain.ids),
            children: rows(&chain.children),
            cycle: chain.cycle,
            missing_parent: chain.missing_parent.as_deref(),
        }
    }
}

/// Method by which a count was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CountKind {
    /// Counted.
    Exact,
    /// Estimated by the engine.
    About,
}

/// One entity of a layout in the opened database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntityStatus {
    /// Tables it comes from.
    pub source: String,
    /// Number of rows without bookkeeping rows.
    pub count: Option<i64>,
    /// Method by which the count was obtained.
    pub count_kind: CountKind,
    /// Reason why there is no count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_reason: Option<String>,
}

/// A layout in the opened database.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayoutStatus {
    /// Short name.
    pub name: String,
    /// Variant, if it has several.
    pub variant: Option<String>,
    /// Entities by name.
    pub entities: BTreeMap<&'static str, EntityStatus>,
    /// Parts that the layout names and the database lacks.
    pub missing: Vec<String>,
}

/// An ability of the program on a database, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Short stable word: an entity's name, or an ability such as `write`.
    pub name: String,
    /// Whether it is available now.
    pub available: bool,
    /// Reason why it is unavailable.
    pub reason: Option<String>,
    /// Remedy that would make it available.
    pub remedy: Option<String>,
}

/// A table of the database, in a layout or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// Name, with its schema if needed.
    pub name: String,
    /// Number of rows; approximate if the engine only estimates it.
    pub rows: Option<i64>,
    /// Reason for a missing number of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_reason: Option<String>,
    /// Size with indexes in bytes, if known.
    pub bytes: Option<i64>,
    /// Reason for a missing size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_reason: Option<String>,
}

/// Location, engine and state of the opened database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// `sqlite` or `postgres`.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// Path or URL without its password.
    pub location: String,
    /// Whether nothing can be changed now; the capability `write` says why.
    pub read_only: bool,
    /// Remarks on how the database was opened, for users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The state of an opened database, as printed by `status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoreStatus {
    /// Location, engine and state of the database.
    pub database: DatabaseStatus,
    /// Layouts that fit.
    pub layouts: Vec<LayoutStatus>,
    /// Abilities of the program on this database.
    pub capabilities: Vec<Capability>,
    /// Migrations that are pending.
    pub migrations: Migrations,
    /// All tables.
    pub tables: Vec<TableStatus>,
}

/// Migrations of the opened database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Migrations {
    /// Names of the pending ones.
    pub pending: Vec<String>,
}
