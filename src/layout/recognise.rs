//! Finds the layouts that fit a database, and binds their columns.

use std::collections::HashMap;

use serde_json::Value;

use super::names_in_sql::{columns_in, lacking};
use super::write::Removal;
use super::{
    BoundVector, Catalog, ColumnOrigin, ColumnSpec, Derivation, Engine, EpisodeLink, FromClause, Inside, Layout, Need,
    Source, StoredAs, Write,
    catalog::{CatalogColumn, CatalogTable},
};
use crate::memory::entity::named_in_list;
use crate::memory::vocabulary::{self, Vocabulary};
use crate::memory::{Entity, ValueKind};

/// The outcome of recognition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecognisedLayouts {
    /// Layouts that fit, the most specific first.
    pub layouts: Vec<Attachment>,
    /// Sources of all of them; each table serves only one layout.
    pub sources: Vec<BoundSource>,
    /// Owners of rows, and the effect of erasing a person on them.
    pub erasure: super::erase::Erasure,
    /// Parts that are left out because our role may not read them, or because the database lacks columns they need.
    pub withheld: Vec<WithheldPart>,
}

/// A part of an entity that is left out because it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldPart {
    /// Entity that lacks it.
    pub entity: Entity,
    /// Column of the entity that is null; `None` if rows are left out.
    pub column: Option<String>,
    /// Name for people of the table that cannot be read.
    pub table: String,
    /// Reason in words.
    pub reason: String,
    /// Remedy, for whoever can apply it.
    pub remedy: String,
}

/// A layout that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// Short name of the layout.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Variant found here; `None` if the layout has no variants.
    pub variant: Option<String>,
    /// Whether anything may be changed or erased through it.
    pub writable: bool,
    /// Kind of rows that its agents recall, if the layout names it.
    pub recalled: Option<Entity>,
    /// Statuses of the episodes that its agents never get.
    pub never_recalled: Vec<String>,
    /// Entities that it cannot hold, with the reason.
    pub absent: Vec<(Entity, String)>,
    /// Columns of the layout that this database lacks.
    pub missing: Vec<MissingColumn>,
}

/// A column that a layout names and the database lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingColumn {
    /// Line in the layout file.
    pub line: usize,
    /// Key in the layout file.
    pub key: String,
    /// Description of the missing name, with the nearest one that exists.
    pub message: String,
    /// Whether the layout marks it as optional.
    pub optional: bool,
}

/// A source whose names exist in the database.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundSource {
    /// Layout of the source.
    pub layout: String,
    /// Entity of the source's rows.
    pub entity: Entity,
    /// Name for people.
    pub label: String,
    /// FROM clause.
    pub from: BoundFrom,
    /// Table of the rows: schema and name.
    pub table: (String, String),
    /// The table's own estimate of its rows.
    pub estimate: Option<i64>,
    /// Columns that distinguish rows of the same id; empty if the engine keeps ids distinct, or if there are no such
    /// columns.
    pub places: Vec<BoundOrigin>,
    /// Condition that leaves bookkeeping rows out, as SQL.
    pub keep: Option<String>,
    /// For each canonical column the ways to read it, in order of preference.
    pub columns: Vec<Vec<BoundColumn>>,
    /// The stored word behind `status`.
    pub raw_status: Vec<BoundColumn>,
    /// The stored word behind `outcome`.
    pub raw_outcome: Vec<BoundColumn>,
    /// Links from an episode to canvas events and feedback.
    pub links: Vec<EpisodeLink>,
    /// Rust derivation that completes the rows.
    pub derive: Option<Derivation>,
    /// Rules for writing the source's rows; `None` if they are read-only.
    pub write: Option<Write>,
    /// Location of the rows' vectors; `None` if there are no vectors.
    pub vector: Option<BoundVector>,
    /// Condition that finds the rows with one of `$words`.
    pub search: Option<String>,
    /// Line in the layout file.
    pub line: usize,
}

/// A FROM clause whose names exist in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundFrom {
    /// A table: schema and name, under the alias `t`.
    Table(String, String),
    /// The elements of a list in the rows of a table: alias `item`, columns `value` and `key`, beside `t`.
    Each {
        /// The engine, which splits the list.
        engine: Engine,
        /// Schema and name of the table.
        table: (String, String),
        /// Column with the list.
        column: String,
        /// Path to the list, step by step.
        path: Vec<String>,
    },
    /// The author's text.
    Query(String),
}

impl BoundFrom {
    /// Whether it joins tables, without subqueries, which may read every row.
    pub fn is_join(&self) -> bool {
        matches!(self, BoundFrom::Query(sql) if !sql.contains('('))
    }
}

/// One way to read a canonical column.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundColumn {
    /// Source of the value.
    pub origin: BoundOrigin,
    /// Place of the value within the stored one.
    pub inside: Inside,
    /// Stored words with their canonical words.
    pub map: Vec<(String, String)>,
    /// Meanings of the words that are not in the map.
    pub vocabulary: Option<&'static Vocabulary>,
    /// Encoding of the stored value.
    pub stored: StoredAs,
    /// Condition that finds the rows whose list holds one of `$ids`.
    pub lookup: Option<String>,
    /// Tables and columns needed for its value, besides those named in it.
    pub needs: Vec<Need>,
}

impl BoundColumn {
    /// The canonical word for a stored one; `None` if that is canonical already, or if any word is allowed.
    pub fn canonical(&self, word: &str) -> Option<&str> {
        let mapped = self.map.iter().find(|(from, _)| from == word).map(|(_, to)| to.as_str());
        mapped.or_else(|| self.vocabulary.filter(|_| !word.is_empty())?.canonical(word))
    }

    /// Whether stored words may be translated.
    pub fn is_mapped(&self) -> bool {
        self.vocabulary.is_some() || !self.map.is_empty()
    }

    /// The stored words for a canonical word; `None` if they are unknown.
    pub fn stored_words(&self, canonical: &str) -> Option<Vec<String>> {
        let mut words: Vec<String> =
            self.map.iter().filter(|(_, to)| to == canonical).map(|(from, _)| from.clone()).collect();
        let usual = match self.vocabulary {
            Some(vocabulary) => vocabulary.meaning(canonical)?,
            None => vec![canonical.to_owned()],
        };
        words.extend(usual.into_iter().filter(|word| !self.map.iter().any(|(from, _)| from == word)));
        Some(words)
    }
}

/// Source of a bound column's value.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundOrigin {
    /// A column of a table.
    Column {
        /// Alias of its table.
        alias: String,
        /// Name as stored.
        name: String,
        /// Declared type in lower case.
        declared: String,
        /// Whether the engine rejects NULL.
        not_null: bool,
        /// An index leads with it.
        indexed: bool,
        /// SQLite: whether its values may be bytes, as nothing was found that prevents it.
        bytes: bool,
    },
    /// Columns that make one value together, a JSON list of theirs.
    Key {
        /// The engine that puts them together.
        engine: Engine,
        /// The columns.
        parts: Vec<BoundOrigin>,
    },
    /// Columns as a JSON object, by the names in it.
    Fields {
        /// The engine that puts them together.
        engine: Engine,
        /// The names and the columns.
        fields: Vec<(String, BoundOrigin)>,
    },
    /// An SQL expression of the author's.
    Sql(String),
    /// A constant for every row.
    Value(Value),
}

impl BoundOrigin {
    /// The stored columns of the main table that it reads.
    fn columns_read(&self) -> Vec<String> {
        match self {
            BoundOrigin::Column { alias, name, .. } if alias == "t" => vec![name.clone()],
            BoundOrigin::Column { .. } | BoundOrigin::Value(_) => Vec::new(),
            BoundOrigin::Key { parts, .. } => parts.iter().flat_map(BoundOrigin::columns_read).collect(),
            BoundOrigin::Fields { fields, .. } => fields.iter().flat_map(|(_, origin)| origin.columns_read()).collect(),
            BoundOrigin::Sql(sql) => columns_in(sql),
        }
    }

    /// Whether it may read other tables than the main one.
    fn is_joined(&self) -> bool {
        match self {
            BoundOrigin::Column { alias, .. } => alias != "t",
            BoundOrigin::Key { parts, .. } => parts.iter().any(BoundOrigin::is_joined),
            BoundOrigin::Fields { fields, .. } => fields.iter().any(|(_, origin)| origin.is_joined()),
            BoundOrigin::Sql(_) => true,
            BoundOrigin::Value(_) => false,
        }
    }
}

impl RecognisedLayouts {
    /// Explains that nothing may be changed or erased because a fitting layout forbids it; `None` if everything may be
    /// written.
    pub fn closed(&self) -> Option<String> {
        let layout = self.layouts.iter().find(|l| !l.writable)?;
        Some(format!(
            "the layout {} says `writable = false`: nothing can be changed or erased through it; check it with \
             `mnemoscope layouts check` and set `writable = true` in its file",
            layout.name
        ))
    }

    /// Whether no fitting layout reads any table, or would if it had the right: one may fit by tables that are not found
    /// without their schema.
    pub fn reads_nothing(&self) -> bool {
        self.sources.is_empty() && self.withheld.is_empty()
    }

    /// Whether a fitting layout reads a table, or would if it had the right.
    pub fn uses(&self, table: &CatalogTable) -> bool {
        let place = (table.schema.clone(), table.name.clone());
        self.withheld.iter().any(|w| w.table == table.title())
            || self.sources.iter().any(|s| s.table == place)
            || self.erasure.rules.iter().any(|r| r.table == place)
            || self.erasure.handles.iter().any(|h| h.table == place)
    }
}

impl BoundSource {
    /// The ways to read a canonical column; empty if the source lacks it.
    pub fn column(&self, name: &str) -> &[BoundColumn] {
        self.entity.position(name).map_or(&[], |i| &self.columns[i])
    }

    /// Whether the source's derivation may fill a canonical column, so that the stored value is not final.
    pub fn derives(&self, name: &str) -> bool {
        self.derive.is_some_and(|derive| derive.fills().contains(&name))
    }

    /// Whether a text is the whole of a stored JSON column: one that is declared as JSON, or read as JSON or by a path.
    pub fn shows_json(&self, text: &BoundColumn) -> bool {
        let BoundOrigin::Column { alias, name, declared, .. } = &text.origin else { return false };
        if !text.inside.is_whole() {
            return false;
        }
        let same = |way: &BoundColumn| matches!(&way.origin, BoundOrigin::Column { alias: other, name: column, .. } if other == alias && column == name);
        let reads = |(kind, way): (ValueKind, &BoundColumn)| {
            same(way) && (kind == ValueKind::Json && way.inside.is_whole() || way.inside.path.is_some())
        };
        let kinds = self.entity.columns().iter().map(|column| column.kind);
        matches!(declared.as_str(), "json" | "jsonb")
            || kinds.zip(&self.columns).flat_map(|(kind, ways)| ways.iter().map(move |way| (kind, way))).any(reads)
    }

    /// The stored columns of the main table that the source reads, whole or in part.
    pub fn columns_read(&self) -> Vec<String> {
        let ways = self.columns.iter().flatten();
        let mut read: Vec<String> = ways.flat_map(|way| way.origin.columns_read()).collect();
        match &self.from {
            BoundFrom::Table(..) => {}
            BoundFrom::Each { column, .. } => read.push(column.clone()),
            BoundFrom::Query(sql) => read.extend(columns_in(sql)),
        }
        read
    }

    /// The canonical columns that are read from tables joined to the main one, also in part.
    pub fn columns_joined(&self) -> impl Iterator<Item = &'static str> {
        let joined = |ways: &&Vec<BoundColumn>| ways.iter().any(|way| way.origin.is_joined());
        let columns = self.entity.columns().iter().zip(&self.columns);
        columns.filter(move |(_, ways)| joined(ways)).map(|(column, _)| column.name)
    }

    /// Whether the layout lets its rows be written.
    pub fn is_writable(&self) -> bool {
        self.write.as_ref().is_some_and(|write| write.refuse.is_none())
    }

    /// Whether removed rows are only marked.
    pub fn marks_removed(&self) -> bool {
        self.write.as_ref().is_some_and(|write| matches!(write.remove, Removal::Mark(_)))
    }
}

/// The unmet needs of a layout; empty if it fits.
pub fn unmet(layout: &Layout, engine: Engine, catalog: &Catalog) -> Vec<String> {
    let layout = &*super::pattern::spelled_out(layout, catalog);
    let name = |need: &Need| match &need.column {
        Some(column) => format!("{}.{column}", need.table),
        None => need.table.clone(),
    };
    let mut unmet = Vec::new();
    if !layout.engines.contains(&engine) {
        unmet.push(format!("it does not occur on {}", engine.name()));
    }
    unmet.extend(layout.requires.iter().filter(|n| !catalog.has(n)).map(|n| format!("{} is not there", name(n))));
    unmet.extend(layout.forbids.iter().filter(|n| catalog.has(n)).map(|n| format!("{} is there", name(n))));
    unmet
}

/// Finds the layouts that fit and binds their sources, regardless of our role's rights.
pub fn recognise(layouts: &[Layout], engine: Engine, catalog: &Catalog) -> RecognisedLayouts {
    let mut fitting: Vec<_> = layouts.iter().map(|l| super::pattern::spelled_out(l, catalog)).collect();
    fitting.retain(|l| unmet(l, engine, catalog).is_empty());
    fitting.sort_by_key(|l| (std::cmp::Reverse(l.requires.len()), l.name.clone()));
    let mut found = RecognisedLayouts::default();
    let mut winners: HashMap<(String, String), String> = HashMap::new();
    for layout in fitting.iter().map(|layout| &**layout) {
        let variant = layout.variants.iter().find(|v| met(&v.requires, &v.forbids, catalog)).map(|v| v.name.clone());
        let mut missing = Vec::new();
        for source in layout.sources.iter().filter(|s| met(&s.requires, &s.forbids, catalog)) {
            let Some(bound) = bind(layout, source, engine, catalog, &mut missing) else { continue };
            let winner = winners.entry(bound.table.clone()).or_insert_with(|| layout.name.clone());
            if *winner == layout.name {
                found.sources.push(bound);
            }
        }
        super::erase::bind(layout, engine, catalog, &mut found.erasure);
        found.layouts.push(Attachment {
            name: layout.name.clone(),
            title: layout.title.clone(),
            variant,
            writable: layout.writable,
            recalled: layout.recalled,
            never_recalled: layout.never_recalled.clone(),
            absent: layout.absent.clone(),
            missing,
        });
    }
    read_numbers(&mut found.sources);
    super::erase::with_vectors(&found.sources, catalog, &mut found.erasure);
    found
}

/// Marks lists of ids whose integers are ids, if the referenced rows are numbered or the column holds nothing else.
fn read_numbers(sources: &mut [BoundSource]) {
    let declared = |way: &BoundColumn| match &way.origin {
        BoundOrigin::Column { declared, .. } => declared.to_ascii_lowercase(),
        _ => String::new(),
    };
    let is_numbered = |source: &BoundSource| {
        let mut ids = source.column("id").iter().filter(|way| way.inside.is_whole());
        ids.any(|way| holds_whole_numbers(&declared(way)))
    };
    let numbered: Vec<Entity> = sources.iter().filter(|s| is_numbered(s)).map(|source| source.entity).collect();
    for source in sources {
        for (column, ways) in source.entity.columns().iter().zip(&mut source.columns) {
            let named = named_in_list(column.name);
            let is_named = match (named, column.name) {
                (Some(entity), _) => numbered.contains(&entity),
                (None, "execution_ids") => numbered.contains(&Entity::Episode),
                (None, "ids") => RECALLED.iter().any(|entity| numbered.contains(entity)),
                _ => continue,
            };
            for way in ways.iter_mut().filter(|way| way.stored == StoredAs::Plain) {
                let holds_numbers = declared(way).strip_suffix("[]").is_some_and(holds_whole_numbers);
                if is_named || holds_numbers {
                    way.stored = StoredAs::Numbers;
                }
            }
        }
    }
}

/// Entities whose rows are recalled.
const RECALLED: &[Entity] = &[Entity::Episode, Entity::Memory, Entity::Case];

/// Whether a declared type, in small letters, is one of whole numbers, on either engine.
fn holds_whole_numbers(declared: &str) -> bool {
    const TYPES: &[&str] =
        &["smallint", "integer", "bigint", "int", "int2", "int4", "int8", "tinyint", "mediumint", "unsigned big int"];
    TYPES.contains(&declared)
}

fn met(requires: &[Need], forbids: &[Need], catalog: &Catalog) -> bool {
    requires.iter().all(|n| catalog.has(n)) && !forbids.iter().any(|n| catalog.has(n))
}

/// Binds a source; `None` if its table is missing.
fn bind(
    layout: &Layout,
    source: &Source,
    engine: Engine,
    catalog: &Catalog,
    missing: &mut Vec<MissingColumn>,
) -> Option<BoundSource> {
    let mut aliases = tables_of(source, catalog).map_err(|lacking| missing.push(lacking)).ok()?;
    let main = aliases.iter().find(|(a, _)| a == "t").or(aliases.first())?.1;
    let items = item_table(engine);
    let from = match &source.from {
        FromClause::Table(_) => BoundFrom::Table(main.schema.clone(), main.name.clone()),
        FromClause::Each { column, path, .. } => {
            let each = each_item(source, (column, path), main, engine).map_err(|lacking| missing.push(lacking)).ok()?;
            aliases.push(("item".to_owned(), &items));
            each
        }
        FromClause::Query { sql, .. } => BoundFrom::Query(sql.on(engine)?.to_owned()),
    };
    let mut columns = vec![Vec::new(); source.entity.columns().len()];
    let (mut raw_status, mut raw_outcome) = (Vec::new(), Vec::new());
    for (name, specs) in &source.columns {
        let bound = bind_column(source.entity, name, specs, &aliases, engine, catalog, missing);
        match (source.entity.position(name), name.as_str()) {
            (Some(i), _) => columns[i] = bound,
            (None, "raw_status") => raw_status = bound,
            (None, _) => raw_outcome = bound,
        }
    }
    let id = source.entity.position("id").map_or(&[][..], |i| &columns[i]);
    Some(BoundSource {
        places: places(source, main, id),
        layout: layout.name.clone(),
        entity: source.entity,
        label: source.label.clone(),
        table: (main.schema.clone(), main.name.clone()),
        estimate: main.estimate,
        from,
        keep: source.keep.as_ref().and_then(|sql| sql.on(engine)).map(str::to_owned),
        columns,
        raw_status,
        raw_outcome,
        links: source.links.clone(),
        derive: source.derive,
        write: source.write.clone().map(|write| write.of_table(main)),
        vector: source.vector.as_ref().and_then(|spec| spec.bind(engine, catalog, &aliases)),
        search: source.search.as_ref().and_then(|sql| sql.on(engine)).map(str::to_owned),
        line: source.line,
    })
}

/// Columns that distinguish rows with the same id.
fn places(source: &Source, main: &CatalogTable, id: &[BoundColumn]) -> Vec<BoundOrigin> {
    let column = |alias: &str, name: &str, declared: &str| BoundOrigin::Column {
        alias: alias.to_owned(),
        name: name.to_owned(),
        declared: declared.to_owned(),
        not_null: true,
        indexed: false,
        bytes: true,
    };
    // The main table itself comes first under its alias, rather than a composed query.
    let is_main = |sql: &String| {
        let mut words = sql.split_whitespace();
        let table = words.next().unwrap_or_default();
        !table.starts_with('(') && words.find(|word| !word.eq_ignore_ascii_case("as")) == Some("t")
    };
    let (has_rows, is_each) = match &source.from {
        FromClause::Table(_) => (true, false),
        FromClause::Each { .. } => (true, true),
        FromClause::Query { sql, .. } => (sql.sqlite.iter().chain(&sql.postgres).all(is_main), false),
    };
    if !has_rows || matches!(id, [way] if !is_each && is_distinct(way, main)) {
        return Vec::new();
    }
    let place = |(name, declared): &(String, String)| column("t", name, declared);
    main.places.iter().map(place).chain(is_each.then(|| column("item", "key", "bigint"))).collect()
}

/// Whether the engine keeps the ids of a table distinct and not NULL.
fn is_distinct(id: &BoundColumn, main: &CatalogTable) -> bool {
    let sound = |origin: &BoundOrigin| match origin {
        BoundOrigin::Column { alias, name, not_null: true, .. } if alias == "t" => Some(name.clone()),
        _ => None,
    };
    let columns: Vec<String> = match &id.origin {
        BoundOrigin::Key { parts, .. } => parts.iter().filter_map(sound).collect(),
        origin => sound(origin).into_iter().collect(),
    };
    let is_of_it = |name: &String| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    id.inside.is_whole() && main.unique.iter().any(|unique| unique.iter().all(is_of_it))
}

/// The tables of a source by alias. A column without an alias belongs to the first table that has it.
///
/// # Errors
/// The missing table.
fn tables_of<'c>(source: &Source, catalog: &'c Catalog) -> Result<Vec<(String, &'c CatalogTable)>, MissingColumn> {
    let mut aliases = Vec::new();
    for (alias, name) in source.from.aliases() {
        let Some(table) = catalog.table(name) else {
            let known = catalog.tables.iter().map(|t| t.name.as_str());
            return Err(MissingColumn {
                line: source.line,
                key: format!("{}.table", source.entity),
                message: with_nearest(format!("table `{name}` does not exist"), name, known),
                optional: !source.requires.is_empty(),
            });
        };
        aliases.push((alias.to_owned(), table));
    }
    // A column without an alias belongs to the main table, if that has it.
    aliases.sort_by_key(|(alias, _)| alias != "t");
    Ok(aliases)
}

/// The items of a list in a column, each as a row.
///
/// # Errors
/// An error if the column is missing, or is not JSON.
fn each_item(
    source: &Source,
    (column, path): (&str, &str),
    main: &CatalogTable,
    engine: Engine,
) -> Result<BoundFrom, MissingColumn> {
    let lists = |declared: &str| engine == Engine::Sqlite || declared.starts_with("json");
    let Some(column) = main.column(column).filter(|c| lists(&c.declared)) else {
        return Err(MissingColumn {
            line: source.line,
            key: format!("{}.each", source.entity),
            message: format!("{} has no column `{column}` of JSON", main.title()),
            optional: !source.requires.is_empty(),
        });
    };
    let path = path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    Ok(BoundFrom::Each { engine, table: (main.schema.clone(), main.name.clone()), column: column.name.clone(), path })
}

/// Binds the ways to read one column. Ways that this database does not support are left out; if none is left, the
/// column is reported as missing.
fn bind_column(
    entity: Entity,
    name: &str,
    specs: &[ColumnSpec],
    aliases: &[(String, &CatalogTable)],
    engine: Engine,
    catalog: &Catalog,
    missing: &mut Vec<MissingColumn>,
) -> Vec<BoundColumn> {
    let mut bound = Vec::new();
    let mut lost: Option<MissingColumn> = None;
    for spec in specs {
        let key = format!("{entity}.columns.{name}");
        let mut lose = |message: String, optional: bool| {
            lost.get_or_insert(MissingColumn {
                line: spec.line,
                key: key.clone(),
                message,
                optional: optional || spec.optional,
            });
        };
        if let Some(need) = spec.requires.iter().find(|n| !catalog.has(n)) {
            lose(format!("needs {}", need.table), true);
            continue;
        }
        if let Some(need) = spec.forbids.iter().find(|n| catalog.has(n)) {
            lose(format!("cannot be combined with {}", need.table), true);
            continue;
        }
        let origin = match &spec.value {
            ColumnOrigin::Value(value) => BoundOrigin::Value(value.clone()),
            ColumnOrigin::Sql(sql) => {
                let Some(text) = sql.on(engine) else {
                    lose(format!("has no SQL for {}", engine.name()), true);
                    continue;
                };
                if let Some(lacking) = lacking(text, None, catalog) {
                    lose(lacking, false);
                    continue;
                }
                BoundOrigin::Sql(text.to_owned())
            }
            ColumnOrigin::Column(column) => match find_column(column, aliases) {
                Ok(origin) => origin,
                Err(message) => {
                    lose(message, false);
                    continue;
                }
            },
            // A member whose column is missing is missing too.
            ColumnOrigin::Fields(fields) => {
                let mut there = Vec::new();
                for (member, column) in fields {
                    match find_column(column, aliases) {
                        Ok(origin) => there.push((member.clone(), origin)),
                        Err(message) => missing.push(MissingColumn {
                            line: spec.line,
                            key: format!("{key}.fields.{member}"),
                            message,
                            optional: spec.optional,
                        }),
                    }
                }
                if there.is_empty() {
                    continue;
                }
                BoundOrigin::Fields { engine, fields: there }
            }
            ColumnOrigin::Columns(columns) => {
                match columns.iter().map(|column| find_column(column, aliases)).collect::<Result<Vec<_>, _>>() {
                    Ok(parts) => BoundOrigin::Key { engine, parts },
                    Err(message) => {
                        lose(message, false);
                        continue;
                    }
                }
            }
        };
        let lookup = spec.lookup.as_ref().and_then(|sql| sql.on(engine)).map(str::to_owned);
        let (inside, map) = (spec.inside.clone(), spec.map.clone());
        let vocabulary = if entity == Entity::Episode { vocabulary::of_episode(name) } else { None };
        let (stored, needs) = (spec.stored, spec.requires.clone());
        bound.push(BoundColumn { origin, inside, map, vocabulary, stored, lookup, needs });
    }
    if bound.is_empty() {
        missing.extend(lost);
    }
    bound
}

/// The elements of a list as a table: the element, and its position.
fn item_table(engine: Engine) -> CatalogTable {
    let column = |name: &str, declared: &str| {
        let declared = if engine == Engine::Postgres { declared } else { "" };
        CatalogColumn {
            name: name.to_owned(),
            declared: declared.to_owned(),
            not_null: true,
            ..CatalogColumn::default()
        }
    };
    let columns = vec![column("value", "jsonb"), column("key", "bigint")];
    CatalogTable { name: "item".to_owned(), visible: true, columns, ..CatalogTable::default() }
}

fn find_column(written: &str, aliases: &[(String, &CatalogTable)]) -> Result<BoundOrigin, String> {
    let is_each = aliases.iter().any(|(alias, _)| alias == "item");
    let written = match written {
        "item" if is_each => "item.value",
        "position" if is_each => "item.key",
        other => other,
    };
    let (alias, name) = match written.split_once('.') {
        Some((alias, name)) => (Some(alias), name),
        None => (None, written),
    };
    let candidates: Vec<_> = aliases.iter().filter(|(a, _)| alias.is_none_or(|wanted| wanted == a)).collect();
    for (alias, table) in &candidates {
        if let Some(column) = table.column(name) {
            return Ok(BoundOrigin::Column {
                alias: alias.clone(),
                name: column.name.clone(),
                declared: column.declared.clone(),
                // An outer join gives NULL for the columns of other tables than the source's own.
                not_null: column.not_null && matches!(alias.as_str(), "t" | "item"),
                indexed: table.indexed.iter().any(|i| i.eq_ignore_ascii_case(&column.name)),
                bytes: true,
            });
        }
    }
    let known = candidates.iter().flat_map(|(_, t)| t.columns.iter().map(|c| c.name.as_str()));
    let table = candidates.first().map(|(_, t)| t.title()).unwrap_or_default();
    Err(with_nearest(format!("column `{name}` is not in {table}"), name, known))
}

/// A message about a missing name, with the most similar existing one.
pub(crate) fn with_nearest<'a>(message: String, wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    match super::nearest(wrong, known) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}
