//! The database as a plan would leave it, or as it was before changes, without writing: in each statement that reads a
//! changed table, a common table expression replaces it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use super::dialect::{PgType, quote};
use super::encode::{plain_column, table_of};
use super::fetched::{FetchedValue, Param, affinity, keeps};
use super::select::SelectStatement;
use super::shape::qualified;
use super::stored::{Mutation, StoredRows, TableName};
use super::{ForesightReader, Store, StoreError};
use crate::layout::write::Removal;
use crate::layout::{BoundColumn, BoundOrigin, BoundSource, CatalogTable, Engine, StoredAs};
use crate::memory::{Entity, Row};

/// Most values that one statement may add to its own; SQLite allows 32,766 in all.
const VALUES: usize = 20_000;

/// Reason why nothing can be written through a preview.
const LOOKING: &str = "this is a preview of a plan: nothing can be written through it";

/// Tables as a plan would leave them.
#[derive(Debug, Default)]
pub struct Foresight {
    tables: Vec<Foreseen>,
    /// Candidates read so far: the same rows serve many situations.
    read: Mutex<HashMap<String, Arc<Vec<Row>>>>,
}

/// A changed table.
#[derive(Debug)]
struct Foreseen {
    table: TableName,
    /// Quoted name of the expression that replaces the table.
    stands_as: String,
    columns: Vec<ForeseenColumn>,
    /// Deleted rows.
    gone: Vec<StoredRows>,
    /// Changed rows, by their keys, with their new values.
    altered: BTreeMap<String, (Key, Values)>,
    new: Vec<Values>,
    /// Stored rows added later are left out.
    until: Option<Until>,
}

/// The time up to which rows are seen, with the column of their creation time.
#[derive(Debug, Clone)]
struct Until {
    column: String,
    /// The time in canonical form.
    at: String,
    stored: StoredAs,
}

/// Columns and values that identify a row.
type Key = Vec<(String, FetchedValue)>;
/// Values by column.
type Values = BTreeMap<String, FetchedValue>;

/// Changed rows, by their key columns and the columns that are set.
type Groups<'a> = BTreeMap<(Vec<&'a str>, Vec<&'a str>), Vec<(&'a Key, &'a Values)>>;

#[derive(Debug)]
struct ForeseenColumn {
    name: String,
    declared: String,
    /// Default value for a row that does not set the column, as SQL.
    default: Option<String>,
}

impl ForesightReader<'_> {
    /// A view of the database as these changes would leave it at a given time. It is short-lived: it reads through this
    /// store's connections, and caches candidates. Also returns the number of changes that were too many to include.
    ///
    /// # Errors
    /// The engine's refusal, or a missing table.
    pub async fn foreseeing(self, mutations: &[Mutation], now: &str) -> Result<(Store, usize), StoreError> {
        let mut foresight = Foresight::default();
        let (mut room, mut unseen) = (VALUES, 0);
        for mutation in mutations {
            let size = values_of(mutation);
            if size > room {
                unseen += mutation.count().1;
                continue;
            }
            room -= size;
            if !foresight.tables.iter().any(|t| t.table == *mutation.table()) {
                foresight.tables.push(self.foreseen_table(mutation.table()).await?);
            }
            if let Some(table) = foresight.tables.iter_mut().find(|t| t.table == *mutation.table()) {
                table.take(mutation, now);
            }
        }
        let mut view = self.store.again(
            Arc::clone(&self.store.sessions),
            self.store.catalog.clone(),
            self.store.layouts.clone(),
            self.store.recognised.clone(),
        );
        view.blocked = Some(LOOKING.to_owned());
        view.foresight = Some(foresight);
        Ok((view, unseen))
    }

    /// A view of the database at an earlier time, as far as these changes can be reverted: rows with a creation time
    /// are seen up to then. As with [`ForesightReader::foreseeing`], the view is short-lived.
    ///
    /// # Errors
    /// As [`ForesightReader::foreseeing`].
    pub async fn as_of(self, mutations: &[Mutation], at: &str) -> Result<(Store, usize), StoreError> {
        let (mut view, unseen) = self.foreseeing(mutations, at).await?;
        let mut foresight = view.foresight.take().unwrap_or_default();
        for source in &self.store.recognised.sources {
            let Some((column, way)) = came(source) else { continue };
            let table = table_of(source);
            if !foresight.tables.iter().any(|t| t.table == table) {
                foresight.tables.push(self.foreseen_table(&table).await?);
            }
            let until = Until { column: column.to_owned(), at: at.to_owned(), stored: way.stored };
            if let Some(table) = foresight.tables.iter_mut().find(|t| t.table == table && t.until.is_none()) {
                table.until = Some(until);
            }
        }
        view.foresight = Some(foresight);
        Ok((view, unseen))
    }

    /// Names of the sources without a creation time: a view of the past shows all their rows.
    pub fn timeless(self) -> BTreeSet<String> {
        let sources = &self.store.recognised.sources;
        let dated: BTreeSet<TableName> = sources.iter().filter(|s| came(s).is_some()).map(table_of).collect();
        let are_rows = |source: &&BoundSource| {
            matches!(source.entity, Entity::Episode | Entity::Segment | Entity::Memory | Entity::Case)
        };
        let undated = sources.iter().filter(are_rows).filter(|source| !dated.contains(&table_of(source)));
        undated.map(|source| source.label.clone()).collect()
    }

    async fn foreseen_table(self, table: &TableName) -> Result<Foreseen, StoreError> {
        let text = |raw: Option<&FetchedValue>| match raw {
            Some(FetchedValue::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let (sql, params) = question(self.store.engine(), table);
        let rows = self.store.sessions.fetch(sql, &params).await?;
        let column = |row: &Vec<FetchedValue>| ForeseenColumn {
            name: text(row.first()).unwrap_or_default(),
            declared: text(row.get(1)).unwrap_or_default(),
            // It would advance a sequence, which a reader may not do.
            default: text(row.get(2)).filter(|default| !default.contains("nextval(")),
        };
        let mut columns: Vec<ForeseenColumn> = rows.iter().map(column).collect();
        if columns.is_empty() {
            return Err(StoreError::NoTable(table.title()));
        }
        if let Some(number) = &self.store.shapes().shape(table).await?.row_number {
            columns
                .insert(0, ForeseenColumn { name: number.to_string(), declared: "INTEGER".to_owned(), default: None });
        }
        let is_told = columns.iter().any(|column| column.name.eq_ignore_ascii_case("rowid"));
        if self.store.engine() == Engine::Sqlite
            && !is_told
            && !self.store.sessions.fetch(NUMBERED, &params).await?.is_empty()
        {
            // Lists order rows by it if they have no other order.
            columns
                .insert(0, ForeseenColumn { name: "rowid".to_owned(), declared: "INTEGER".to_owned(), default: None });
        }
        if self.store.engine() == Engine::Postgres {
            let known = self.store.catalog.exactly(&table.schema, &table.name);
            let place = |(name, declared): &(String, String)| ForeseenColumn {
                name: name.clone(),
                declared: declared.clone(),
                default: Some("0".to_owned()),
            };
            columns.extend(known.iter().flat_map(|known| known.places.iter().map(place)));
        }
        let same_name = |other: &&CatalogTable| other.name.eq_ignore_ascii_case(&table.name);
        let mut others = self.store.catalog.tables.iter().filter(same_name).filter(|t| t.schema != table.schema);
        // A bare name leads to the visible one of several.
        let is_bare = others.next().is_none()
            || self.store.catalog.exactly(&table.schema, &table.name).is_some_and(|known| known.visible);
        let stands_as = if is_bare { quote(&table.name) } else { quote(&format!("{}.{}", table.schema, table.name)) };
        Ok(Foreseen {
            table: table.clone(),
            stands_as,
            columns,
            gone: Vec::new(),
            altered: BTreeMap::new(),
            new: Vec::new(),
            until: None,
        })
    }

    /// The statement, rewritten to read the view's tables if this store is a view.
    pub(super) fn seen(self, statement: &SelectStatement) -> Cow<'_, SelectStatement> {
        let seen =
            self.store.foresight.as_ref().and_then(|foresight| foresight.rewritten(self.store.engine(), statement));
        seen.map_or(Cow::Borrowed(statement), Cow::Owned)
    }

    /// Candidates read earlier through this view; `None` if nothing is cached.
    pub(super) fn known_candidates(self, key: &str) -> Option<Arc<Vec<Row>>> {
        let foresight = self.store.foresight.as_ref()?;
        let read = foresight.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(key).cloned()
    }

    /// Whether this store is a preview.
    pub(super) fn is_view(self) -> bool {
        self.store.foresight.is_some()
    }

    /// Whether rows may hold values of a column that are not stored: this store is a preview that sets it or adds rows.
    pub(super) fn changes(self, source: &BoundSource, column: &str) -> bool {
        let table = table_of(source);
        let sets = |other: &Foreseen| match source.column(column) {
            [BoundColumn { origin: BoundOrigin::Column { alias, name, .. }, .. }] if alias == "t" => {
                let names_it = |(_, set): &(Key, Values)| set.keys().any(|set| set.eq_ignore_ascii_case(name));
                other.table == table && (!other.new.is_empty() || other.altered.values().any(names_it))
            }
            _ => !other.new.is_empty() || !other.altered.is_empty(),
        };
        self.store.foresight.iter().flat_map(|foresight| &foresight.tables).any(sets)
    }

    /// Caches candidates, if this store is a preview.
    pub(super) fn keep_candidates(self, key: String, rows: Vec<Row>) {
        if let Some(foresight) = &self.store.foresight {
            let mut read = foresight.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.insert(key, Arc::new(rows));
        }
    }
}

/// The stored column with the creation time of a source's rows. Not for agents and people, which record when they were
/// last seen, nor for rows read from within other rows, which may be older.
fn came(source: &BoundSource) -> Option<(&str, &BoundColumn)> {
    let moves = matches!(source.entity, Entity::Agent | Entity::Subject | Entity::MemoryLink);
    let within = source.write.as_ref().is_some_and(|write| matches!(write.remove, Removal::Empty(_)));
    let column = plain_column(source, source.entity.time_column());
    column.filter(|(_, way)| !moves && !within && way.inside.is_whole())
}

/// Counts the values that a change binds in a statement.
fn values_of(mutation: &Mutation) -> usize {
    match mutation {
        // The key appears twice more: to exclude a stored row, and to add changed rows.
        Mutation::Insert { key, columns, rows, .. } => (columns.len() + 2 * key.len()) * rows.len(),
        // The key appears twice: to exclude the row, and to add it again.
        Mutation::Update { key, set, .. } => 2 * key.len() + set.len(),
        Mutation::Delete(rows) => 2 * rows.by.len() * rows.keys.len(),
        Mutation::Revise(revise) => (2 * revise.key.len() + revise.columns.len()) * revise.rows.len(),
    }
}

/// Returns a row if SQLite numbers the rows of a table.
const NUMBERED: &str = "SELECT 1 FROM pragma_table_list WHERE name = $1 AND schema = $2 AND type = 'table' AND wr = 0";

/// The statement that lists the columns of a table: name, type, default. Generated columns are included, since readers
/// may use them.
fn question(engine: Engine, table: &TableName) -> (&'static str, Vec<Param>) {
    let (schema, name) = (FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone()));
    match engine {
        Engine::Sqlite => (
            "SELECT name, type, CASE hidden WHEN 0 THEN dflt_value END FROM pragma_table_xinfo($1, $2) \
             WHERE hidden IN (0, 2, 3) ORDER BY cid",
            vec![name, schema],
        ),
        Engine::Postgres => (
            "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), \
             CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END \
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            vec![schema, name],
        ),
    }
}

impl Foresight {
    /// The statement over the view's tables; `None` if it reads none of them.
    fn rewritten(&self, engine: Engine, statement: &SelectStatement) -> Option<SelectStatement> {
        let lower = statement.sql.to_ascii_lowercase();
        let named: Vec<&Foreseen> =
            self.tables.iter().filter(|t| lower.contains(&t.table.name.to_ascii_lowercase())).collect();
        let (recursive, rest) = match () {
            () if named.is_empty() => return None,
            () if lower.starts_with("with recursive ") => ("RECURSIVE ", statement.sql.get(15..)),
            () if lower.starts_with("with ") => ("", statement.sql.get(5..)),
            () if lower.starts_with("select") => ("", None),
            () => return None,
        };
        let mut params = statement.params.clone();
        let mut sql = format!("WITH {recursive}");
        for (i, table) in named.iter().enumerate() {
            let body = table.rows(engine, &mut params);
            let _ = write!(sql, "{}{} AS ({body})", if i == 0 { "" } else { ", " }, table.stands_as);
        }
        let body = rest.unwrap_or(&statement.sql);
        let body = named.iter().fold(body.to_owned(), |body, table| unqualified(&body, &table.table, &table.stands_as));
        sql.push_str(if rest.is_some() { ", " } else { " " });
        sql.push_str(&body);
        Some(SelectStatement { engine, sql, params })
    }
}

impl Foreseen {
    /// Adds a change; later changes build on it.
    fn take(&mut self, mutation: &Mutation, now: &str) {
        match mutation {
            Mutation::Insert { table, key, columns, rows } => {
                // A row that was deleted and inserted again is the same row.
                let places: Vec<usize> =
                    key.iter().filter_map(|name| columns.iter().position(|column| column == name)).collect();
                if !key.is_empty() && places.len() == key.len() {
                    let key_of =
                        |cells: &Vec<super::stored::Cell>| places.iter().map(|at| cells[*at].at(now)).collect();
                    let keys: Vec<Vec<FetchedValue>> = rows.iter().map(key_of).collect();
                    self.forget(key, &keys);
                    self.gone.push(StoredRows { table: table.clone(), by: key.clone(), keys });
                }
                let row = |cells: &Vec<super::stored::Cell>| {
                    columns.iter().cloned().zip(cells.iter().map(|cell| cell.at(now))).collect::<Values>()
                };
                self.new.extend(rows.iter().map(row));
            }
            Mutation::Update { key, set, .. } => {
                let set = set.iter().map(|(column, cell)| (column.clone(), cell.at(now)));
                self.alter(key.clone(), set.collect());
            }
            Mutation::Delete(rows) => {
                self.forget(&rows.by, &rows.keys);
                self.gone.push(rows.clone());
            }
            Mutation::Revise(revise) => {
                for row in &revise.rows {
                    let key = revise.key.iter().cloned().zip(row.0.iter().cloned()).collect();
                    self.alter(key, revise.columns.iter().cloned().zip(row.2.iter().cloned()).collect());
                }
            }
        }
    }

    /// Drops new rows by their keys.
    fn forget(&mut self, by: &[String], keys: &[Vec<FetchedValue>]) {
        let holds = |row: &Values, key: &Vec<FetchedValue>| by.iter().zip(key).all(|(c, v)| row.get(c) == Some(v));
        self.new.retain(|row| !keys.iter().any(|key| holds(row, key)));
    }

    fn alter(&mut self, key: Key, set: Values) {
        let is_it = |row: &&mut Values| key.iter().all(|(column, value)| row.get(column) == Some(value));
        if let Some(row) = self.new.iter_mut().find(is_it) {
            row.extend(set);
            return;
        }
        let spelled = serde_json::to_string(&key).unwrap_or_default();
        self.altered.entry(spelled).or_insert_with(|| (key, Values::new())).1.extend(set);
    }

    fn declared(&self, name: &str) -> &str {
        self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name)).map_or("", |c| c.declared.as_str())
    }

    /// A value cast to the column's full type, so that it is rounded as on storing.
    fn mark(&self, engine: Engine, name: &str, value: &FetchedValue, params: &mut Vec<Param>) -> String {
        params.push(value.clone());
        let number = params.len();
        match (engine, value) {
            (Engine::Sqlite, FetchedValue::BadText(_)) => format!("CAST(${number} AS TEXT)"),
            (Engine::Sqlite, _) => format!("${number}"),
            (Engine::Postgres, _) => format!("${number}::{}", self.declared(name)),
        }
    }

    fn tuple(&self, engine: Engine, values: &[(&str, &FetchedValue)], params: &mut Vec<Param>) -> String {
        let marks: Vec<String> = values.iter().map(|(name, value)| self.mark(engine, name, value, params)).collect();
        format!("({})", marks.join(", "))
    }

    /// The condition that a stored row has one of some keys.
    fn one_of(&self, engine: Engine, by: &[String], keys: &[Vec<&FetchedValue>], params: &mut Vec<Param>) -> String {
        let columns: Vec<String> = by.iter().map(|name| format!("r.{}", quote(name))).collect();
        let tuples: Vec<String> = keys
            .iter()
            .map(|key| {
                let pairs: Vec<(&str, &FetchedValue)> =
                    by.iter().map(String::as_str).zip(key.iter().copied()).collect();
                self.tuple(engine, &pairs, params)
            })
            .collect();
        format!("(({}) IN (VALUES {})) IS TRUE", columns.join(", "), tuples.join(", "))
    }

    /// The conditions that a stored row to delete meets.
    fn goes(&self, engine: Engine, params: &mut Vec<Param>) -> String {
        let mut sql = String::from("1 = 1");
        for rows in self.gone.iter().filter(|rows| !rows.keys.is_empty()) {
            let keys: Vec<Vec<&FetchedValue>> = rows.keys.iter().map(|key| key.iter().collect()).collect();
            let _ = write!(sql, " AND NOT ({})", self.one_of(engine, &rows.by, &keys, params));
        }
        if let Some(until) = &self.until {
            let _ = write!(sql, " AND {}", self.came_by(engine, until, params));
        }
        sql
    }

    /// The condition that a stored row existed at a time; a row without a creation time is taken to have existed.
    fn came_by(&self, engine: Engine, until: &Until, params: &mut Vec<Param>) -> String {
        let column = format!("r.{}", quote(&until.column));
        let mut bound = |value: FetchedValue, cast: &str| {
            params.push(value);
            format!("${}{}", params.len(), if engine == Engine::Postgres { cast } else { "" })
        };
        let is_number = matches!(until.stored, StoredAs::Epoch | StoredAs::EpochMillis);
        let is_time = matches!(
            PgType::of(&self.declared(&until.column).to_ascii_lowercase()),
            PgType::Timestamp | PgType::Timestamptz
        );
        let early = match engine {
            _ if is_number => {
                let micros = crate::memory::time::epoch_micros(&until.at).unwrap_or_default() as f64;
                let unit = if until.stored == StoredAs::Epoch { 1_000_000.0 } else { 1_000.0 };
                let mark = match engine {
                    Engine::Sqlite => bound(FetchedValue::Real(micros / unit), ""),
                    Engine::Postgres => bound(FetchedValue::Text((micros / unit).to_string()), "::float8"),
                };
                format!("{column} <= {mark}")
            }
            Engine::Postgres if is_time => {
                let cast = format!("::{}", self.declared(&until.column));
                format!("{column} <= {}", bound(FetchedValue::Text(until.at.clone()), &cast))
            }
            Engine::Postgres => {
                let plain =
                    format!("regexp_replace(replace({column}::text, ' ', 'T'), '(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$', '')");
                let at = until.at.trim_end_matches('Z').to_owned();
                format!("{plain} COLLATE \"C\" <= {}", bound(FetchedValue::Text(at), "::text"))
            }
            // A number is not text, and a text that is not a time is ignored.
            Engine::Sqlite => {
                let mark = bound(FetchedValue::Text(until.at.clone()), "");
                let spelled = format!("upper(trim(replace({column}, ',', '.')))");
                // SQLite reads the hours and minutes of a time zone only with a colon between them.
                let read = format!(
                    "julianday(CASE WHEN {spelled} GLOB '*[0-9][+-][0-9][0-9][0-9][0-9]' \
                     THEN substr({spelled}, 1, length({spelled}) - 2) || ':' || substr({spelled}, -2) ELSE {spelled} END)"
                );
                // Texts of the same spelling are compared to the last digit.
                format!(
                    "CASE WHEN typeof({column}) <> 'text' THEN 1 WHEN length({column}) = length({mark}) \
                     AND {column} GLOB '????-??-??T*Z' THEN {column} <= {mark} ELSE {read} <= julianday({mark}) END"
                )
            }
        };
        format!("({early}) IS NOT FALSE")
    }

    /// Groups changed rows with the same key columns and the same set columns.
    fn groups(&self) -> Groups<'_> {
        let mut groups = Groups::new();
        for (key, set) in self.altered.values() {
            let by: Vec<&str> = key.iter().map(|(column, _)| column.as_str()).collect();
            let named: Vec<&str> = set.keys().map(String::as_str).collect();
            groups.entry((by, named)).or_default().push((key, set));
        }
        groups
    }

    /// The SELECT of all rows as the plan would leave them.
    fn rows(&self, engine: Engine, params: &mut Vec<Param>) -> String {
        let real = qualified(&self.table);
        let names: Vec<String> = self.columns.iter().map(|c| quote(&c.name)).collect();
        let plain: Vec<String> = names.iter().map(|name| format!("r.{name} AS {name}")).collect();
        let mut sql = format!("SELECT {} FROM {real} AS r WHERE {}", plain.join(", "), self.goes(engine, params));
        let groups = self.groups();
        for ((by, _), rows) in &groups {
            let by: Vec<String> = by.iter().map(|name| (*name).to_owned()).collect();
            let keys: Vec<Vec<&FetchedValue>> =
                rows.iter().map(|(key, _)| key.iter().map(|(_, value)| value).collect()).collect();
            let _ = write!(sql, " AND NOT ({})", self.one_of(engine, &by, &keys, params));
        }
        for ((by, set), rows) in &groups {
            let column = |c: &ForeseenColumn| match set.iter().position(|name| name.eq_ignore_ascii_case(&c.name)) {
                Some(at) => {
                    let values = rows.iter().filter_map(|(_, values)| values.get(set[at]));
                    with_affinity(engine, c, format!("v.column{}", by.len() + at + 1), values)
                }
                None => format!("r.{}", quote(&c.name)),
            };
            let columns: Vec<String> = self.columns.iter().map(column).collect();
            let tuples: Vec<String> = rows
                .iter()
                .map(|(key, set)| {
                    let pairs = key.iter().map(|(name, value)| (name.as_str(), value));
                    let pairs = pairs.chain(set.iter().map(|(name, value)| (name.as_str(), value)));
                    self.tuple(engine, &pairs.collect::<Vec<_>>(), params)
                })
                .collect();
            let on: Vec<String> =
                by.iter().enumerate().map(|(i, name)| format!("r.{} = v.column{}", quote(name), i + 1)).collect();
            let _ = write!(
                sql,
                " UNION ALL SELECT {} FROM {real} AS r JOIN (VALUES {}) AS v ON {} WHERE {}",
                columns.join(", "),
                tuples.join(", "),
                on.join(" AND "),
                self.goes(engine, params)
            );
        }
        if !self.new.is_empty() {
            let tuple = |(place, row)| self.new_row(engine, place, row, params);
            let tuples: Vec<String> = self.new.iter().enumerate().map(tuple).collect();
            let column = |(at, c): (usize, &ForeseenColumn)| {
                let column = format!("n.column{}", at + 1);
                let values: Vec<&FetchedValue> = self.new.iter().filter_map(|row| said(row, &c.name)).collect();
                // The form of a default is unknown.
                let is_known = c.default.is_none() || values.len() == self.new.len();
                if is_known { with_affinity(engine, c, column, values) } else { column }
            };
            let columns: Vec<String> = self.columns.iter().enumerate().map(column).collect();
            let _ = write!(sql, " UNION ALL SELECT {} FROM (VALUES {}) AS n", columns.join(", "), tuples.join(", "));
        }
        sql
    }

    /// A new row; columns that it does not set get the table's defaults.
    fn new_row(&self, engine: Engine, place: usize, row: &Values, params: &mut Vec<Param>) -> String {
        let value = |c: &ForeseenColumn, params: &mut Vec<Param>| {
            let bare = match (said(row, &c.name), &c.default) {
                (Some(value), _) => return self.mark(engine, &c.name, value, params),
                // A location that no other row has.
                (None, _) if c.declared == "tid" => format!("'({},0)'", u32::MAX - place as u32),
                (None, Some(default)) => format!("({default})"),
                (None, None) => "NULL".to_owned(),
            };
            if engine == Engine::Postgres { format!("{bare}::{}", c.declared) } else { bare }
        };
        let values: Vec<String> = self.columns.iter().map(|c| value(c, params)).collect();
        format!("({})", values.join(", "))
    }
}

/// The value of a row for a column.
fn said<'r>(row: &'r Values, name: &str) -> Option<&'r FetchedValue> {
    row.iter().find(|(column, _)| column.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A column of rows that are not stored, cast to the affinity of the table's column if that leaves all values
/// unchanged: only then SQLite can use an index of the table together with these rows. Otherwise it sorts all rows for
/// each page.
fn with_affinity<'v>(
    engine: Engine,
    column: &ForeseenColumn,
    bare: String,
    values: impl IntoIterator<Item = &'v FetchedValue>,
) -> String {
    let affinity = affinity(&column.declared).filter(|_| engine == Engine::Sqlite);
    let mut values = values.into_iter();
    match affinity.filter(|affinity| values.all(|value| keeps(affinity, value))) {
        Some(affinity) => format!("CAST({bare} AS {affinity})"),
        None => bare,
    }
}

/// The statement with the table's qualified name replaced by the name of the expression.
fn unqualified(sql: &str, table: &TableName, stands_as: &str) -> String {
    let sql = sql.replace(&qualified(table), stands_as);
    let plain = format!("{}.{}", table.schema, table.name).to_ascii_lowercase();
    let lower = sql.to_ascii_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '"' | '.'));
    let mut out = String::with_capacity(sql.len());
    let mut from = 0;
    for (at, _) in lower.match_indices(&plain) {
        let end = at + plain.len();
        let (before, after) = (lower[..at].chars().next_back(), lower[end..].chars().next());
        if at < from || is_part(before) || after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '"')) {
            continue;
        }
        out.push_str(&sql[from..at]);
        out.push_str(stands_as);
        from = end;
    }
    out.push_str(&sql[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_a_column_keeps_as_they_are_get_its_affinity() {
        let text = || FetchedValue::Text("2026-01-01".to_owned());
        for (declared, value, cast) in [
            ("text", text(), Some("TEXT")),
            ("varchar(9)", FetchedValue::Null, Some("TEXT")),
            ("text", FetchedValue::Integer(1), None),
            ("datetime", text(), None),
            ("numeric(3,2)", FetchedValue::Real(0.5), Some("NUMERIC")),
            ("double", FetchedValue::Integer(1), Some("REAL")),
            ("bigint", FetchedValue::Real(0.5), None),
            ("bigint", FetchedValue::Integer(1), Some("INTEGER")),
            ("blob", FetchedValue::Bytes(vec![1]), None),
            ("", text(), None),
        ] {
            let column = ForeseenColumn { name: "c".to_owned(), declared: declared.to_owned(), default: None };
            let shown = |engine| with_affinity(engine, &column, "v.column1".to_owned(), [&FetchedValue::Null, &value]);
            let bare = "v.column1".to_owned();
            let expected = cast.map_or(bare.clone(), |affinity| format!("CAST({bare} AS {affinity})"));
            assert_eq!((shown(Engine::Sqlite), shown(Engine::Postgres)), (expected, bare), "{declared} {value:?}");
        }
    }

    #[test]
    fn tables_are_named_without_their_schema_wherever_they_stand() {
        let table = TableName::new("heart", "episodes");
        let sql =
            r#"SELECT * FROM "heart"."episodes" AS t JOIN heart.episodes e ON heart.episodes_old.id = sheart.episodes"#;
        assert_eq!(
            unqualified(sql, &table, "\"episodes\""),
            r#"SELECT * FROM "episodes" AS t JOIN "episodes" e ON heart.episodes_old.id = sheart.episodes"#
        );
    }
}
