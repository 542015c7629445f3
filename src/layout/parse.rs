//! Reads a layout file. Every error names the file, the line, the key and the nearest valid name.

mod erase;
mod inside;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::erase::UnownedRows;
use super::{
    AttachedFile, ColumnOrigin, ColumnSpec, Derivation, Engine, EpisodeLink, Fill, FromClause, Inside, Layout, LinkBy,
    Need, Source, Sql, StoredAs, TimeSpelling, Variant, VectorSpec, Write, nearest,
};
use crate::memory::Entity;

/// Mistake in a layout file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutError {
    /// File name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Key with its tables, separated by dots; empty if the file is not TOML at all.
    pub key: String,
    /// Description of the error, with the nearest valid name if there is one.
    pub message: String,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for LayoutError {}

type Node<'a> = Spanned<DeValue<'a>>;

const TOP_KEYS: &[&str] = &[
    "name", "title", "engines", "folder", "requires", "forbids", "variant", "attach", "absent", "handle", "erase",
    "account", "follows", "unowned", "elsewhere", "never_recalled", "writable", "pattern", "extends", "recall",
];
const SOURCE_KEYS: &[&str] = &[
    "table", "each", "from", "tables", "label", "keep", "requires", "forbids", "columns", "links", "derive", "write",
    "vector", "search",
];
const COLUMN_KEYS: &[&str] = &[
    "column", "columns", "fields", "sql", "value", "decode", "path", "by", "part", "except", "after", "named", "with",
    "map", "stored", "lookup", "requires", "forbids", "optional",
];

/// Reads the text of a layout file.
///
/// # Errors
/// All errors in the file, by line.
pub fn parse(file: &str, text: &str) -> Result<Layout, Vec<LayoutError>> {
    let mut reader = LayoutReader::new(file, text);
    let layout = match DeTable::parse(text) {
        Ok(root) => Some(reader.layout(root.get_ref())),
        Err(error) => {
            let at = error.span().map_or(0, |s| s.start);
            reader.error(at, "", error.message().to_owned());
            None
        }
    };
    reader.errors.sort_by_key(|e| e.line);
    match layout {
        Some(layout) if reader.errors.is_empty() => Ok(layout),
        _ => Err(reader.errors),
    }
}

/// The tables and columns that a layout requires, without reading the rest of its text; empty when they cannot be read.
pub fn requirements(text: &str) -> Vec<Need> {
    let head = text.find("\n[").map_or(text, |end| &text[..end]);
    let Ok(root) = DeTable::parse(head) else { return Vec::new() };
    LayoutReader::new("", head).needs(root.get_ref(), "", "requires")
}

struct LayoutReader<'a> {
    file: &'a str,
    /// Positions of line ends.
    ends: Vec<usize>,
    errors: Vec<LayoutError>,
}

impl<'a> LayoutReader<'a> {
    fn new(file: &'a str, text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        LayoutReader { file, ends, errors: Vec::new() }
    }
}

impl LayoutReader<'_> {
    fn line(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end < at) + 1
    }

    fn error(&mut self, at: usize, key: &str, message: impl Into<String>) {
        let error = LayoutError {
            file: self.file.to_owned(),
            line: self.line(at),
            key: key.to_owned(),
            message: message.into(),
        };
        self.errors.push(error);
    }

    fn unknown<'k>(&mut self, at: usize, key: &str, word: &str, what: &str, known: impl IntoIterator<Item = &'k str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let message = match nearest(word, known.iter().copied()) {
            Some(near) => format!("unknown {what} `{word}`; did you mean `{near}`?"),
            None => format!("unknown {what} `{word}`; one of {}", known.join(", ")),
        };
        self.error(at, key, message);
    }

    /// Reports unknown keys of a table.
    fn check_keys(&mut self, table: &DeTable<'_>, prefix: &str, known: &[&str]) {
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let name = key.get_ref();
                self.unknown(key.span().start, &join(prefix, name), name, "key", known.iter().copied());
            }
        }
    }

    fn layout(&mut self, root: &DeTable<'_>) -> Layout {
        let entity_names = || Entity::ALL.iter().map(|e| e.name());
        for key in root.keys() {
            let name = key.get_ref().as_ref();
            if !TOP_KEYS.contains(&name) && !Entity::ALL.iter().any(|e| e.name() == name) {
                self.unknown(
                    key.span().start,
                    name,
                    name,
                    "key or entity",
                    TOP_KEYS.iter().copied().chain(entity_names()),
                );
            }
        }
        let name = self.required_text(root, "", "name");
        let title = self.required_text(root, "", "title");
        let engines = self.engines(root);
        let requires = self.needs(root, "", "requires");
        let base = self.base(root);
        let unowned = self.unowned(root);
        if requires.is_empty() && !root.contains_key("extends") {
            self.error(0, "requires", "a layout is recognised by required tables or columns: name at least one");
        }
        // Reading continues after an error: all errors are reported together.
        let layout = Layout {
            name: name.unwrap_or_default(),
            title: title.unwrap_or_default(),
            file: self.file.to_owned(),
            engines,
            requires,
            forbids: self.needs(root, "", "forbids"),
            variants: self.variants(root),
            attach: self.attached(root),
            folder: self.text(root, "", "folder"),
            patterns: self.patterns(root),
            sources: self.sources(root),
            absent: self.absent(root),
            handles: self.handles(root),
            rules: self.rules(root),
            account: self.account(root),
            follows: self.texts(root, "", "follows").into_iter().map(|(_, text)| text).collect(),
            unowned: unowned.iter().map(|(_, rows)| rows.clone()).collect(),
            elsewhere: self.texts(root, "", "elsewhere").into_iter().map(|(_, text)| text).collect(),
            recalled: self.recalled(root),
            never_recalled: self.texts(root, "", "never_recalled").into_iter().map(|(_, text)| text).collect(),
            writable: root.get("writable").is_none() || self.boolean(root, "", "writable"),
        };
        let is_alone = base.is_none();
        let layout = match base {
            Some(base) => layout.over(base),
            None => layout,
        };
        // A part with errors may be the one that names the table.
        if self.errors.is_empty() {
            self.check_unowned(&unowned, &layout);
        }
        if is_alone && !Entity::ALL.iter().any(|e| root.get(e.name()).is_some()) {
            self.error(0, "", "no entity is mapped: add a table such as [[episode]]");
        }
        layout
    }

    /// Reports tables in `unowned` that the layout does not mention otherwise.
    fn check_unowned(&mut self, unowned: &[(usize, UnownedRows)], layout: &Layout) {
        let sources = layout.sources.iter().flat_map(|source| source.from.aliases()).map(|(_, table)| table);
        let ruled = layout.rules.iter().flat_map(|rule| std::iter::once(&rule.table).chain(&rule.of));
        let known: BTreeSet<&str> = sources.chain(ruled.map(String::as_str)).collect();
        for (at, UnownedRows { table: name, .. }) in unowned {
            if !known.iter().any(|table| table.eq_ignore_ascii_case(name)) {
                self.unknown(*at, "unowned", name, "table", known.iter().copied());
            }
        }
    }

    /// Reads the kind of rows that the agents recall: episodes or memories.
    fn recalled(&mut self, root: &DeTable<'_>) -> Option<Entity> {
        const WORDS: [Entity; 2] = [Entity::Episode, Entity::Memory];
        let word = self.text(root, "", "recall")?;
        let found = WORDS.into_iter().find(|entity| entity.name() == word);
        if found.is_none() {
            let at = root.get("recall").map_or(0, |node| node.span().start);
            self.unknown(at, "recall", &word, "entity to recall", WORDS.iter().map(|entity| entity.name()));
        }
        found
    }

    /// The shipped layout that this one builds on.
    fn base(&mut self, root: &DeTable<'_>) -> Option<Layout> {
        let name = self.text(root, "", "extends")?;
        let shipped = super::builtin::texts();
        let Some((file, text)) = shipped.iter().find(|(known, _)| *known == name) else {
            let at = root.get("extends").map_or(0, |node| node.span().start);
            self.unknown(at, "extends", &name, "layout", shipped.iter().map(|(known, _)| *known));
            return None;
        };
        parse(&format!("{file}.toml"), text).ok()
    }

    fn engines(&mut self, root: &DeTable<'_>) -> Vec<Engine> {
        let mut engines = Vec::new();
        for (at, word) in self.texts(root, "", "engines") {
            match word.as_str() {
                "sqlite" => engines.push(Engine::Sqlite),
                "postgres" => engines.push(Engine::Postgres),
                _ => self.unknown(at, "engines", &word, "engine", ["sqlite", "postgres"]),
            }
        }
        if engines.is_empty() { vec![Engine::Sqlite, Engine::Postgres] } else { engines }
    }

    fn variants(&mut self, root: &DeTable<'_>) -> Vec<Variant> {
        let mut variants = Vec::new();
        for (i, (_, table)) in self.tables(root, "", "variant").into_iter().enumerate() {
            let prefix = format!("variant[{i}]");
            self.check_keys(table, &prefix, &["name", "requires", "forbids"]);
            let requires = self.needs(table, &prefix, "requires");
            let forbids = self.needs(table, &prefix, "forbids");
            if let Some(name) = self.required_text(table, &prefix, "name") {
                variants.push(Variant { name, requires, forbids });
            }
        }
        variants
    }

    fn attached(&mut self, root: &DeTable<'_>) -> Vec<AttachedFile> {
        let mut files = Vec::new();
        for (i, (_, table)) in self.tables(root, "", "attach").into_iter().enumerate() {
            let prefix = format!("attach[{i}]");
            self.check_keys(table, &prefix, &["file", "schema"]);
            let file = self.required_text(table, &prefix, "file");
            let schema = self.required_text(table, &prefix, "schema");
            if let (Some(file), Some(schema)) = (file, schema) {
                files.push(AttachedFile { file, schema });
            }
        }
        files
    }

    fn absent(&mut self, root: &DeTable<'_>) -> Vec<(Entity, String)> {
        let mut absent = Vec::new();
        let Some(node) = root.get("absent") else { return absent };
        let Some(table) = self.table(node, "absent") else { return absent };
        for (key, value) in table {
            let path = join("absent", key.get_ref());
            match (Entity::ALL.iter().find(|e| e.name() == key.get_ref()), value.get_ref().as_str()) {
                (Some(entity), Some(reason)) => absent.push((*entity, reason.to_owned())),
                (None, _) => {
                    let names = Entity::ALL.iter().map(|e| e.name());
                    self.unknown(key.span().start, &path, key.get_ref(), "entity", names);
                }
                (_, None) => self.error(
                    value.span().start,
                    &path,
                    "give a text that says why the layout does not have \
                    it",
                ),
            }
        }
        absent
    }

    fn sources(&mut self, root: &DeTable<'_>) -> Vec<Source> {
        let mut sources = Vec::new();
        for entity in Entity::ALL {
            for (i, (at, table)) in self.tables(root, "", entity.name()).into_iter().enumerate() {
                let prefix = format!("{}[{i}]", entity.name());
                if let Some(source) = self.source(*entity, table, &prefix, at) {
                    sources.push(source);
                }
            }
        }
        sources
    }

    fn source(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str, at: usize) -> Option<Source> {
        self.check_keys(table, prefix, SOURCE_KEYS);
        let from = self.from(table, prefix, at);
        let label = self.text(table, prefix, "label");
        let columns = self.columns(entity, table, prefix, at);
        let source = Source {
            entity,
            label: label.or_else(|| match &from {
                Some(FromClause::Table(name) | FromClause::Each { table: name, .. }) => Some(name.clone()),
                Some(FromClause::Query { tables, .. }) => {
                    tables.iter().find(|(alias, _)| alias == "t").or(tables.first()).map(|(_, table)| table.clone())
                }
                None => None,
            })?,
            from: from?,
            keep: table.get("keep").and_then(|n| self.sql(n, &join(prefix, "keep"))),
            requires: self.needs(table, prefix, "requires"),
            forbids: self.needs(table, prefix, "forbids"),
            columns,
            links: self.links(entity, table, prefix),
            derive: self.derive(table, prefix),
            write: self.write(entity, table, prefix),
            vector: self.vector(table, prefix),
            search: table.get("search").and_then(|n| self.sql(n, &join(prefix, "search"))),
            line: self.line(at),
        };
        Some(source)
    }

    fn from(&mut self, table: &DeTable<'_>, prefix: &str, at: usize) -> Option<FromClause> {
        let name = self.text(table, prefix, "table");
        if let (Some(name), Some(node), None) = (&name, table.get("each"), table.get("from")) {
            let each = self.text(table, prefix, "each")?;
            let (column, path) = each.split_once('.').unwrap_or((&each, ""));
            if path.split('.').any(|step| step == "*") {
                self.error(node.span().start, &join(prefix, "each"), "names one list: it has no `*`");
            }
            return Some(FromClause::Each { table: name.clone(), column: column.to_owned(), path: path.to_owned() });
        }
        match (name, table.get("from")) {
            (Some(name), None) => Some(FromClause::Table(name)),
            (None, Some(node)) => {
                let sql = self.sql(node, &join(prefix, "from"))?;
                let key = join(prefix, "tables");
                let Some(tables) = table.get("tables") else {
                    self.error(
                        at,
                        &key,
                        "a `from` needs `tables = { alias = \"table\" }`, so that types can be looked up",
                    );
                    return None;
                };
                let tables = self.pairs(tables, &key);
                Some(FromClause::Query { sql, tables })
            }
            (Some(_), Some(node)) => {
                self.error(node.span().start, &join(prefix, "from"), "a source has a `table` or a `from`, not both");
                None
            }
            (None, None) => {
                self.error(at, prefix, "a source needs a `table` (or a `from` with its `tables`)");
                None
            }
        }
    }

    fn columns(
        &mut self,
        entity: Entity,
        table: &DeTable<'_>,
        prefix: &str,
        at: usize,
    ) -> Vec<(String, Vec<ColumnSpec>)> {
        let mut columns = Vec::new();
        let prefix = join(prefix, "columns");
        let Some(node) = table.get("columns") else {
            self.error(at, &prefix, "no column is mapped");
            return columns;
        };
        let Some(table) = self.table(node, &prefix) else { return columns };
        for (key, node) in table {
            let name = key.get_ref().as_ref();
            let path = join(&prefix, name);
            let extra: &[&str] = if entity == Entity::Episode { &["raw_status", "raw_outcome"] } else { &[] };
            if entity.column(name).is_none() && !extra.contains(&name) {
                let known = entity.columns().iter().map(|c| c.name).chain(extra.iter().copied());
                self.unknown(key.span().start, &path, name, &format!("column of {}", entity.title()), known);
                continue;
            }
            let specs = match node.get_ref() {
                DeValue::Array(items) => items.iter().filter_map(|item| self.column(item, &path)).collect(),
                _ => self.column(node, &path).into_iter().collect::<Vec<_>>(),
            };
            columns.push((name.to_owned(), specs));
        }
        if entity.column("id").is_some() && !columns.iter().any(|(name, _)| name == "id") {
            self.error(at, &join(&prefix, "id"), "the id is missing: it is needed to find and page rows");
        }
        columns
    }

    fn column(&mut self, node: &Node<'_>, key: &str) -> Option<ColumnSpec> {
        let at = node.span().start;
        let mut spec = ColumnSpec {
            value: ColumnOrigin::Value(Value::Null),
            inside: Inside::default(),
            map: Vec::new(),
            stored: StoredAs::Plain,
            requires: Vec::new(),
            lookup: None,
            forbids: Vec::new(),
            optional: false,
            line: self.line(at),
        };
        if let Some(name) = node.get_ref().as_str() {
            spec.value = ColumnOrigin::Column(name.to_owned());
            return Some(spec);
        }
        let table = self.table(node, key)?;
        self.check_keys(table, key, COLUMN_KEYS);
        let origins: Vec<&str> =
            ["column", "columns", "fields", "sql", "value"].into_iter().filter(|k| table.get(*k).is_some()).collect();
        spec.value = match origins[..] {
            ["column"] => ColumnOrigin::Column(self.text(table, key, "column")?),
            ["columns"] => ColumnOrigin::Columns(self.plain_texts(table, key, "columns")),
            ["fields"] => ColumnOrigin::Fields(self.pairs(table.get("fields")?, &join(key, "fields"))),
            ["sql"] => ColumnOrigin::Sql(self.sql(table.get("sql")?, &join(key, "sql"))?),
            ["value"] => ColumnOrigin::Value(self.constant(table.get("value")?, &join(key, "value"))?),
            _ => {
                self.error(at, key, "give exactly one of `column`, `columns`, `fields`, `sql` and `value`");
                return None;
            }
        };
        spec.inside = self.inside(table, key);
        spec.map = table.get("map").map(|n| self.pairs(n, &join(key, "map"))).unwrap_or_default();
        spec.stored = self.stored(table, key);
        spec.requires = self.needs(table, key, "requires");
        spec.lookup = table.get("lookup").and_then(|n| self.sql(n, &join(key, "lookup")));
        spec.forbids = self.needs(table, key, "forbids");
        spec.optional = self.boolean(table, key, "optional");
        Some(spec)
    }

    fn stored(&mut self, table: &DeTable<'_>, prefix: &str) -> StoredAs {
        const WORDS: &[(&str, StoredAs)] = &[
            ("plain", StoredAs::Plain),
            ("epoch", StoredAs::Epoch),
            ("epoch-millis", StoredAs::EpochMillis),
            ("one", StoredAs::One),
            ("nested", StoredAs::Nested),
        ];
        let Some(word) = self.text(table, prefix, "stored") else { return StoredAs::Plain };
        if let Some((_, stored)) = WORDS.iter().find(|(w, _)| *w == word) {
            return *stored;
        }
        let at = table.get("stored").map_or(0, |n| n.span().start);
        self.unknown(at, &join(prefix, "stored"), &word, "way of storing", WORDS.iter().map(|(w, _)| *w));
        StoredAs::Plain
    }

    fn derive(&mut self, table: &DeTable<'_>, prefix: &str) -> Option<Derivation> {
        let word = self.text(table, prefix, "derive")?;
        match word.as_str() {
            "workflow-events" => return Some(Derivation::WorkflowEvents),
            "episode-links" => return Some(Derivation::EpisodeLinks),
            _ => {}
        }
        let at = table.get("derive").map_or(0, |n| n.span().start);
        self.unknown(at, &join(prefix, "derive"), &word, "derivation", ["workflow-events", "episode-links"]);
        None
    }

    fn vector(&mut self, table: &DeTable<'_>, prefix: &str) -> Option<VectorSpec> {
        let key = join(prefix, "vector");
        let node = table.get("vector")?;
        if let Some(column) = node.get_ref().as_str() {
            return Some(VectorSpec { column: column.to_owned(), ..VectorSpec::default() });
        }
        let table = self.table(node, &key)?;
        self.check_keys(table, &key, &["table", "from", "key", "column", "path", "keep"]);
        let spec = VectorSpec {
            table: self.text(table, &key, "table"),
            from: table.get("from").and_then(|node| self.sql(node, &join(&key, "from"))),
            key: self.plain_texts(table, &key, "key"),
            column: self.required_text(table, &key, "column")?,
            path: self.text(table, &key, "path"),
            keep: self.text(table, &key, "keep"),
        };
        if spec.table.is_some() == spec.key.is_empty() {
            let words = "vectors of another table need its `table` and the `key` column that names the row";
            self.error(node.span().start, &key, words);
        }
        Some(spec)
    }

    fn write(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str) -> Option<Write> {
        let key = join(prefix, "write");
        let table = self.table(table.get("write")?, &key)?;
        let extra: &[&str] = match entity {
            Entity::Feedback => &["kinds"],
            Entity::AuditEntry => &["actions"],
            Entity::Episode => &["event"],
            _ => &[],
        };
        self.check_keys(
            table,
            &key,
            &[&["refuse", "insert", "touch", "copies", "times", "numbered", "keeps_vector", "remove"], extra].concat(),
        );
        let texts = |reader: &mut Self, name: &str| -> Vec<String> {
            reader.texts(table, &key, name).into_iter().map(|(_, text)| text).collect()
        };
        Some(Write {
            refuse: self.text(table, &key, "refuse"),
            kinds: table.get("kinds").is_some().then(|| texts(self, "kinds")),
            insert: self.fills(entity, table, &key),
            touch: texts(self, "touch"),
            copies: self.copies(entity, table, &key),
            remove: self.removal(table, &key),
            times: self.times(table, &key),
            numbered: self.boolean(table, &key, "numbered"),
            keeps_vector: self.boolean(table, &key, "keeps_vector"),
            event: self.text(table, &key, "event"),
            actions: table.get("actions").map(|n| self.pairs(n, &join(&key, "actions"))).unwrap_or_default(),
        })
    }

    fn fills(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str) -> Vec<(String, Fill)> {
        let key = join(prefix, "insert");
        let Some(table) = table.get("insert").and_then(|node| self.table(node, &key)) else { return Vec::new() };
        let mut fills = Vec::new();
        for (name, node) in table {
            let path = join(&key, name.get_ref());
            let fill = match node.get_ref() {
                DeValue::Table(word) if word.contains_key("by") => {
                    self.check_keys(word, &path, &["by", "words"]);
                    let column = self.canonical(entity, word, &path, "by");
                    let words = word.get("words").map(|n| self.constants(n, &join(&path, "words"))).unwrap_or_default();
                    column.map(|column| Fill::Word { column, words })
                }
                DeValue::Table(owner) => {
                    self.check_keys(owner, &path, &["owner"]);
                    self.required_text(owner, &path, "owner").map(Fill::Owner)
                }
                _ => self.constant(node, &path).map(Fill::Value),
            };
            fills.extend(fill.map(|fill| (name.get_ref().to_string(), fill)));
        }
        fills
    }

    fn times(&mut self, table: &DeTable<'_>, prefix: &str) -> TimeSpelling {
        const WORDS: &[(&str, TimeSpelling)] = &[
            ("canonical", TimeSpelling::Canonical),
            ("naive", TimeSpelling::Naive),
            ("offset", TimeSpelling::Offset),
            ("epoch", TimeSpelling::Epoch),
            ("epoch-millis", TimeSpelling::EpochMillis),
        ];
        let Some(word) = self.text(table, prefix, "times") else { return TimeSpelling::Canonical };
        if let Some((_, spelling)) = WORDS.iter().find(|(w, _)| *w == word) {
            return *spelling;
        }
        let at = table.get("times").map_or(0, |n| n.span().start);
        self.unknown(at, &join(prefix, "times"), &word, "spelling of times", WORDS.iter().map(|(w, _)| *w));
        TimeSpelling::Canonical
    }

    fn links(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str) -> Vec<EpisodeLink> {
        let mut links = Vec::new();
        for (i, (at, table)) in self.tables(table, prefix, "links").into_iter().enumerate() {
            let key = format!("{prefix}.links[{i}]");
            self.check_keys(table, &key, &["to", "list", "back", "json", "path"]);
            let Some(to) = self.required_text(table, &key, "to") else { continue };
            let to = match to.as_str() {
                "canvas_event" => Entity::CanvasEvent,
                "feedback" => Entity::Feedback,
                other => {
                    self.unknown(at, &join(&key, "to"), other, "linked entity", ["canvas_event", "feedback"]);
                    continue;
                }
            };
            let list = self.canonical(entity, table, &key, "list");
            let json = self.canonical(entity, table, &key, "json");
            let back = self.boolean(table, &key, "back");
            let path = self.text(table, &key, "path");
            let by = match (list, json, path, back) {
                (Some(list), None, None, false) => LinkBy::List(list),
                (None, Some(json), Some(path), false) => LinkBy::Path(json, path),
                (None, None, None, true) => LinkBy::Back,
                _ => {
                    self.error(
                        at,
                        &key,
                        "a link is `list = COLUMN`, `back = true`, or `json = COLUMN` with `path = PATH`",
                    );
                    continue;
                }
            };
            links.push(EpisodeLink { to, by });
        }
        links
    }

    /// Text that names a canonical column of the entity.
    fn canonical(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str, key: &str) -> Option<String> {
        let name = self.text(table, prefix, key)?;
        if entity.column(&name).is_some() {
            return Some(name);
        }
        let at = table.get(key).map_or(0, |n| n.span().start);
        let what = format!("column of {}", entity.title());
        self.unknown(at, &join(prefix, key), &name, &what, entity.columns().iter().map(|c| c.name));
        None
    }

    fn needs(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Vec<Need> {
        let found = self.texts(table, prefix, key);
        found.into_iter().map(|(at, text)| need(&text, self.line(at))).collect()
    }

    fn sql(&mut self, node: &Node<'_>, key: &str) -> Option<Sql> {
        if let Some(text) = node.get_ref().as_str() {
            return Some(Sql { sqlite: Some(text.to_owned()), postgres: Some(text.to_owned()) });
        }
        let table = self.table(node, key)?;
        self.check_keys(table, key, &["sqlite", "postgres"]);
        Some(Sql { sqlite: self.text(table, key, "sqlite"), postgres: self.text(table, key, "postgres") })
    }

    fn constant(&mut self, node: &Node<'_>, key: &str) -> Option<Value> {
        match node.get_ref() {
            DeValue::String(text) => Some(Value::from(text.as_ref())),
            DeValue::Boolean(b) => Some(Value::from(*b)),
            DeValue::Integer(i) => i.as_str().parse::<i64>().ok().map(Value::from),
            DeValue::Float(x) => x.as_str().parse::<f64>().ok().map(Value::from),
            _ => {
                self.error(node.span().start, key, "a constant is a text, a number or a boolean");
                None
            }
        }
    }

    fn constants(&mut self, node: &Node<'_>, key: &str) -> Vec<(String, Value)> {
        let Some(table) = self.table(node, key) else { return Vec::new() };
        let mut constants = Vec::new();
        for (name, value) in table {
            let constant = self.constant(value, &join(key, name.get_ref()));
            constants.extend(constant.map(|constant| (name.get_ref().to_string(), constant)));
        }
        constants
    }

    /// Named texts, in file order.
    fn pairs(&mut self, node: &Node<'_>, key: &str) -> Vec<(String, String)> {
        let Some(table) = self.table(node, key) else { return Vec::new() };
        let mut written: Vec<_> = table.iter().collect();
        written.sort_by_key(|(name, _)| name.span().start);
        let mut pairs = Vec::new();
        for (name, value) in written {
            match value.get_ref().as_str() {
                Some(text) => pairs.push((name.get_ref().to_string(), text.to_owned())),
                None => self.error(value.span().start, &join(key, name.get_ref()), "must be a text"),
            }
        }
        pairs
    }

    fn table<'n, 'd>(&mut self, node: &'n Node<'d>, key: &str) -> Option<&'n DeTable<'d>> {
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.error(node.span().start, key, format!("must be a table, not {}", node.get_ref().type_str()));
        }
        table
    }

    /// The tables of an array of tables; a single table counts as an array of one.
    fn tables<'n, 'd>(&mut self, table: &'n DeTable<'d>, prefix: &str, key: &str) -> Vec<(usize, &'n DeTable<'d>)> {
        let Some(node) = table.get(key) else { return Vec::new() };
        let path = join(prefix, key);
        match node.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| Some((item.span().start, self.table(item, &path)?))).collect()
            }
            _ => self.table(node, &path).map(|t| (node.span().start, t)).into_iter().collect(),
        }
    }

    fn text(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Option<String> {
        let node = table.get(key)?;
        let text = node.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            let message = format!("must be a text, not {}", node.get_ref().type_str());
            self.error(node.span().start, &join(prefix, key), message);
        }
        text
    }

    fn required_text(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Option<String> {
        if table.get(key).is_none() {
            let at = table.keys().map(|k| k.span().start).min().unwrap_or(0);
            self.error(at, &join(prefix, key), "is missing");
        }
        self.text(table, prefix, key)
    }

    fn boolean(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> bool {
        let Some(node) = table.get(key) else { return false };
        node.get_ref().as_bool().unwrap_or_else(|| {
            self.error(node.span().start, &join(prefix, key), "must be true or false");
            false
        })
    }

    /// A text or a list of texts.
    fn plain_texts(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Vec<String> {
        self.texts(table, prefix, key).into_iter().map(|(_, text)| text).collect()
    }

    /// A text or a list of texts, each with its place.
    fn texts(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Vec<(usize, String)> {
        let Some(node) = table.get(key) else { return Vec::new() };
        let path = join(prefix, key);
        let items: Vec<&Node<'_>> = match node.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![node],
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => texts.push((item.span().start, text.to_owned())),
                None => self.error(item.span().start, &path, "must be a text or a list of texts"),
            }
        }
        texts
    }
}

/// Reads `table`, `table/column` or `table/column:type|type`; the table may have a schema before a dot.
fn need(text: &str, line: usize) -> Need {
    let (path, types) = text.split_once(':').unwrap_or((text, ""));
    let (table, column) = path.split_once('/').map_or((path, None), |(t, c)| (t, Some(c.to_owned())));
    Need {
        table: table.to_owned(),
        column,
        types: types.split('|').filter(|t| !t.is_empty()).map(str::to_ascii_lowercase).collect(),
        line,
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_reference() {
        let page = include_str!("../../docs/layouts.md");
        let keys = TOP_KEYS.iter().chain(SOURCE_KEYS).chain(COLUMN_KEYS).chain(erase::RULE_KEYS);
        for key in keys {
            let told = [format!("`{key}`"), format!("[[{key}]]"), format!("`[{key}]`"), format!("{key} = ")];
            assert!(told.iter().any(|told| page.contains(told)), "`{key}` is not in the reference");
        }
    }

    #[test]
    fn a_layout_builds_on_a_shipped_one() {
        let text = "name = \"ours\"\ntitle = \"Ours\"\nextends = \"agno\"\n\n[[episode]]\ntable = \"talks\"\ncolumns = { id = \"id\" }\n";
        let (ours, agno) =
            (parse("ours.toml", text).expect("it is sound"), super::super::builtin::all().expect("layouts"));
        let agno = agno.into_iter().find(|layout| layout.name == "agno").expect("agno");
        let of = |layout: &Layout, entity| layout.sources.iter().filter(|s| s.entity == entity).count();
        assert_eq!(of(&ours, Entity::Memory), of(&agno, Entity::Memory));
        assert_eq!(
            (of(&ours, Entity::Episode), &ours.requires, ours.rules.len()),
            (1, &agno.requires, agno.rules.len())
        );
        let wrong = parse("ours.toml", &text.replace("agno", "agnos")).expect_err("there is none");
        assert!(wrong[0].message.contains("did you mean `agno`?"), "{}", wrong[0]);
    }
}
