//! Builds the SELECT for one source: projection, the part of the filters that the database can evaluate, order, keys.
//!
//! The database only narrows: every condition lets all matching rows through, and the exact decision is made on the
//! canonical row. So both engines give the same answer, whatever the stored form.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::dialect::{self, PgType};
use super::fetched::{FetchedValue, Param, affinity, number_of};
use crate::layout::{BoundColumn, BoundFrom, BoundOrigin, BoundSource, Derivation, Engine, StoredAs, TextPart};
use crate::memory::filter::{Filter, Operand, Operator as Op};
use crate::memory::search::{self, Search};
use crate::memory::{Entity, ValueKind};

/// A statement under construction with its parameters.
#[derive(Debug, Clone)]
pub struct SelectStatement {
    /// Engine that it is for.
    pub engine: Engine,
    /// Text so far.
    pub sql: String,
    /// Parameters so far.
    pub params: Vec<Param>,
}

impl SelectStatement {
    /// A statement without parameters.
    pub fn new(engine: Engine, sql: String) -> Self {
        SelectStatement { engine, sql, params: Vec::new() }
    }

    /// Adds a parameter, and returns its placeholder with the cast for that declared type.
    pub fn bind(&mut self, param: Param, declared: &str) -> String {
        // PostgreSQL stores no text with NUL, and fails if one is bound.
        if matches!(&param, Param::Text(text) if self.engine == Engine::Postgres && text.contains('\0')) {
            return format!("NULL::{}", if declared.is_empty() { "text" } else { declared });
        }
        // Bytes that were stored as text are compared as text.
        let is_text = matches!(param, Param::BadText(_));
        self.params.push(param);
        let mark = dialect::placeholder(self.engine, self.params.len(), declared);
        if is_text { format!("CAST({mark} AS TEXT)") } else { mark }
    }
}

/// Expressions that a select reads, in addition to the sort keys.
#[derive(Debug, Clone)]
pub struct Projection {
    /// Engine that it is for.
    pub engine: Engine,
    /// The canonical position and the reading of each projected value, in order.
    pub slots: Vec<Slot>,
    /// Whether strict JSON without escapes is returned as its text.
    pub unparsed: bool,
    /// SQL expressions, one for each slot that is not constant.
    expressions: Vec<String>,
    /// Positions that are read by several slots.
    shared: Vec<usize>,
}

/// One projected value, for a canonical column.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Target that the value fills.
    pub target: SlotTarget,
    /// Column that the value is read from, and its encoding.
    pub column: BoundColumn,
    /// Position in the raw row; `None` for constants.
    pub at: Option<usize>,
    /// Whether the value is JSON text, in which letters may be escaped.
    pub shows_json: bool,
}

/// Target that a projected value fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotTarget {
    /// A canonical column, by position.
    Column(usize),
    /// The stored word behind `status`.
    RawStatus,
    /// The stored word behind `outcome`.
    RawOutcome,
}

/// The wanted columns, with those from which an unstored one is computed: a score, and whether it counts.
fn with_tellers<'w>(source: &BoundSource, wanted: &[&'w str]) -> Vec<&'w str> {
    let mut all = wanted.to_vec();
    if source.entity == Entity::Feedback {
        let lacks = |all: &[&str], name| all.contains(&name) && source.column(name).is_empty();
        if lacks(&all, "counts") {
            all.push("score");
        }
        if lacks(&all, "score") {
            all.extend(["kind", "rating"]);
        }
    }
    all
}

impl Projection {
    /// Projects the wanted canonical columns of a source; `None` means all.
    pub fn new(engine: Engine, source: &BoundSource, wanted: Option<&[&str]>, preview: Option<usize>) -> Self {
        let mut projection =
            Projection { engine, slots: Vec::new(), unparsed: false, expressions: Vec::new(), shared: Vec::new() };
        let wanted = wanted.map(|wanted| with_tellers(source, wanted));
        let wanted = wanted.as_deref();
        let columns = source.entity.columns();
        for (i, ways) in source.columns.iter().enumerate() {
            if wanted.is_none_or(|w| w.contains(&columns[i].name)) {
                projection.add(source, (SlotTarget::Column(i), columns[i].kind), ways, preview);
            }
        }
        let asked = |name: &str| wanted.is_none_or(|w| w.contains(&name) || w.contains(&"metadata"));
        if asked("status") {
            projection.add(source, (SlotTarget::RawStatus, ValueKind::Text), &source.raw_status, None);
        }
        if asked("outcome") {
            projection.add(source, (SlotTarget::RawOutcome, ValueKind::Text), &source.raw_outcome, None);
        }
        projection
    }

    fn add(
        &mut self,
        source: &BoundSource,
        (target, kind): (SlotTarget, ValueKind),
        ways: &[BoundColumn],
        preview: Option<usize>,
    ) {
        for column in ways {
            let at = dialect::project(self.engine, column, kind, preview).map(|sql| self.place(sql));
            let shows_json = kind == ValueKind::Text && source.shows_json(column);
            self.slots.push(Slot { target, column: column.clone(), at, shows_json });
        }
    }

    /// Position of an expression in the projection; equal expressions are read once.
    fn place(&mut self, sql: String) -> usize {
        if let Some(at) = self.expressions.iter().position(|e| *e == sql) {
            self.shared.push(at);
            at
        } else {
            self.expressions.push(sql);
            self.expressions.len() - 1
        }
    }

    /// Whether several slots read the value at a position.
    pub fn is_shared(&self, at: usize) -> bool {
        self.shared.contains(&at)
    }

    /// Number of projected expressions.
    pub fn len(&self) -> usize {
        self.expressions.len()
    }

    /// Begins the statement: SELECT, FROM and the condition that excludes bookkeeping rows. `keys` are read last.
    pub fn select(&self, source: &BoundSource, keys: &[String]) -> SelectStatement {
        let mut sql = String::from("SELECT ");
        for (i, expression) in self.expressions.iter().chain(keys).enumerate() {
            let _ = write!(sql, "{}{expression}", if i == 0 { "" } else { ", " });
        }
        if self.expressions.is_empty() && keys.is_empty() {
            sql.push('1');
        }
        let _ = write!(sql, " FROM {} WHERE {}", from_clause(source), source.keep.as_deref().unwrap_or("1 = 1"));
        SelectStatement::new(self.engine, sql)
    }
}

/// The FROM clause of a source.
pub fn from_clause(source: &BoundSource) -> String {
    match &source.from {
        BoundFrom::Table(schema, name) => format!("{} AS t", dialect::table(schema, name)),
        BoundFrom::Each { engine, table: (schema, name), column, path } => {
            let (table, column) = (dialect::table(schema, name), dialect::quote(column));
            format!("{table} AS t {}", dialect::each(*engine, &format!("t.{column}"), path))
        }
        BoundFrom::Query(sql) => sql.clone(),
    }
}

/// Adds the part of a filter that the database can evaluate, if any.
pub fn narrow(source: &BoundSource, filter: &Filter, statement: &mut SelectStatement) {
    let known = statement.params.len();
    let conditions = filter.alternatives().map(|filter| condition(source, filter, statement));
    match conditions.collect::<Option<Vec<String>>>() {
        None => statement.params.truncate(known),
        Some(conditions) if filter.or.is_empty() => {
            let _ = write!(statement.sql, " AND {}", conditions.concat());
        }
        Some(conditions) => {
            let _ = write!(statement.sql, " AND ({})", conditions.join(" OR "));
        }
    }
}

/// Narrows a selection by id by further filters too, on a server with partitions. SQLite, without them, might pick a
/// worse index for these filters.
pub fn narrow_server(source: &BoundSource, filters: &[Filter], statement: &mut SelectStatement) {
    if statement.engine == Engine::Postgres {
        filters.iter().for_each(|filter| narrow(source, filter, statement));
    }
}

/// The condition in SQL; `None` if the database cannot evaluate it.
fn condition(source: &BoundSource, filter: &Filter, statement: &mut SelectStatement) -> Option<String> {
    let [column] = source.column(filter.column) else { return None };
    if !keeps(source, filter.column) {
        return None;
    }
    if !column.inside.is_whole() {
        return inside_contains(source, column, filter, statement);
    }
    let bare = dialect::expression(&column.origin)?;
    let kind = source.entity.column(filter.column).map_or(ValueKind::Text, |c| c.kind);
    match (kind, filter.op, &filter.value) {
        (ValueKind::Text, Op::Equal, Operand::Text(_)) if source.shows_json(column) => None,
        (ValueKind::Text, Op::Equal, Operand::Text(value)) => equal_text(column, &bare, value, statement),
        (ValueKind::Text, Op::Contains, Operand::Text(value)) => text_contains(source, column, &bare, value, statement),
        (ValueKind::Json, Op::Contains, Operand::Text(value)) => {
            json_contains(source, filter.column, &bare, column, value, statement)
        }
        (ValueKind::List, Op::Has, Operand::Text(value)) => list_has(column, &bare, value, statement),
        (ValueKind::Time, op, Operand::Time(value)) => time_bound(column, &bare, op, value, statement),
        (_, op, Operand::Integer(value)) => number(column, &bare, op, *value as f64, statement),
        (_, op, Operand::Real(value)) => number(column, &bare, op, *value, statement),
        _ => None,
    }
}

/// Adds the condition that each word of a search is in one of the texts, as far as the database can evaluate it. A word
/// that cannot be searched in all texts adds no condition. Rows found by the layout's index (`indexed`) pass.
pub fn narrow_search(source: &BoundSource, search: &Search, indexed: Option<&str>, statement: &mut SelectStatement) {
    let columns: Vec<&str> = search::columns(source.entity).collect();
    let mut conditions: Vec<String> = Vec::new();
    for word in search.words().iter().filter(|word| word.is_ascii()) {
        let known = statement.params.len();
        let anywhere: Option<Vec<String>> = columns
            .iter()
            .flat_map(|name| source.column(name).iter().map(move |way| (*name, way)))
            .map(|(name, way)| may_hold(source, name, way, word, statement))
            .collect();
        match anywhere {
            None => statement.params.truncate(known),
            Some(anywhere) if anywhere.is_empty() => conditions.push("1 = 0".to_owned()),
            Some(anywhere) => conditions.push(format!("({})", anywhere.join(" OR "))),
        }
    }
    let literal = conditions.join(" AND ");
    match indexed {
        _ if literal.is_empty() => {}
        None => {
            let _ = write!(statement.sql, " AND {literal}");
        }
        Some(indexed) => {
            let _ = write!(statement.sql, " AND ({indexed} OR {literal})");
        }
    }
}

/// The condition that one reading of a column may contain a plain word; `None` if the database cannot evaluate that.
fn may_hold(
    source: &BoundSource,
    name: &str,
    way: &BoundColumn,
    word: &str,
    statement: &mut SelectStatement,
) -> Option<String> {
    if !keeps(source, name) {
        return None;
    }
    let bare = dialect::expression(&way.origin)?;
    if !way.inside.decode.is_empty() {
        return None;
    }
    if source.entity.column(name).is_some_and(|c| c.kind == ValueKind::Json) || !way.inside.is_whole() {
        return json_contains(source, name, &bare, way, word, statement);
    }
    text_contains(source, way, &bare, word, statement)
}

/// Whether a source's derivation leaves a column as stored.
fn keeps(source: &BoundSource, column: &str) -> bool {
    let plain = ["id", "workflow_name", "status", "parent_id", "started_at", "user_id", "agent_id"];
    match source.derive {
        None => true,
        Some(Derivation::WorkflowEvents) => plain.contains(&column),
        Some(derive) => !derive.fills().contains(&column),
    }
}

fn equal_text(column: &BoundColumn, bare: &str, value: &str, statement: &mut SelectStatement) -> Option<String> {
    let engine = statement.engine;
    if let BoundOrigin::Key { parts, .. } = &column.origin {
        return key_is(parts, &[value], statement);
    }
    let declared = dialect::declared(&column.origin);
    let words = column.stored_words(value)?;
    if engine == Engine::Postgres {
        match PgType::of(declared) {
            PgType::Text => {}
            PgType::Uuid => return equal_uuid(bare, &words, statement),
            PgType::Integer => {
                let value = value.parse::<i64>().ok()?;
                return Some(format!("{bare} = {}", statement.bind(Param::Text(value.to_string()), declared)));
            }
            _ => return None,
        }
    }
    let text = if engine == Engine::Postgres { as_text(bare, declared) } else { bare.to_owned() };
    // An index keeps its order only for a single value.
    let bytes = affinity(declared).is_none() || !matches!(column.origin, BoundOrigin::Column { bytes: false, .. });
    Some(is_one_of(&text, declared, &words, bytes, statement))
}

/// PostgreSQL: an expression comparable with text. For a text column it is the column itself, so that an index matches;
/// for other types, such as an enum, its text.
fn as_text(bare: &str, declared: &str) -> String {
    let is_text = declared == "text" || declared.starts_with("character");
    if is_text { bare.to_owned() } else { format!("({bare})::text") }
}

/// The condition that an expression of a declared type is one of some texts, in any form in which SQLite may store
/// them: as `bytes` in any column, and as numbers if the type has no affinity.
fn is_one_of(
    expression: &str,
    declared: &str,
    texts: &[String],
    bytes: bool,
    statement: &mut SelectStatement,
) -> String {
    let engine = statement.engine;
    let mut marks = Vec::new();
    for text in texts {
        let mark = statement.bind(Param::Text(text.clone()), "");
        marks.extend((bytes && engine == Engine::Sqlite).then(|| format!("CAST({mark} AS BLOB)")));
        marks.push(mark);
        let number = number_of(text).filter(|_| engine == Engine::Sqlite && affinity(declared).is_none());
        marks.extend(number.map(|number| statement.bind(number, "")));
    }
    format!("{expression} IN ({})", marks.join(", "))
}

/// The parts of a composite id: a JSON list of that many texts and numbers. `None` for other ids.
pub fn key_parts(id: &str, parts: usize) -> Option<Vec<FetchedValue>> {
    let Ok(Value::Array(items)) = serde_json::from_str::<Value>(id) else { return None };
    let raw = |item: &Value| match item {
        Value::Null => Some(FetchedValue::Null),
        Value::String(text) => Some(FetchedValue::Text(text.clone())),
        Value::Number(number) => number.as_i64().map(FetchedValue::Integer).or(number.as_f64().map(FetchedValue::Real)),
        _ => None,
    };
    items.iter().map(raw).collect::<Option<Vec<_>>>().filter(|raws| raws.len() == parts)
}

/// Builds the condition that columns together equal one of some keys; an id that is not such a key matches no row.
fn key_is(parts: &[BoundOrigin], ids: &[&str], statement: &mut SelectStatement) -> Option<String> {
    let engine = statement.engine;
    let columns = parts.iter().map(|p| Some((dialect::expression(p)?, p))).collect::<Option<Vec<_>>>()?;
    let mut keys = Vec::new();
    for raws in ids.iter().filter_map(|id| key_parts(id, parts.len())) {
        let mut same = Vec::new();
        for ((bare, origin), raw) in columns.iter().zip(raws) {
            let declared = dialect::declared(origin);
            let fits = match (engine, PgType::of(declared), &raw) {
                (Engine::Postgres, PgType::Uuid, FetchedValue::Text(text)) => is_uuid(&text.to_ascii_lowercase()),
                (Engine::Postgres, PgType::Integer, raw) => matches!(raw, FetchedValue::Integer(_)),
                _ => true,
            };
            same.push(match raw {
                FetchedValue::Null => format!("{bare} IS NULL"),
                _ if !fits => "1 = 0".to_owned(),
                FetchedValue::Integer(number) if engine == Engine::Postgres => {
                    format!("{bare} = {}", statement.bind(FetchedValue::Text(number.to_string()), declared))
                }
                raw => {
                    let is_text = matches!(raw, FetchedValue::Text(_));
                    let mark = statement.bind(raw, declared);
                    match engine {
                        // A blob reads as the same text.
                        Engine::Sqlite if is_text => format!("{bare} IN ({mark}, CAST({mark} AS BLOB))"),
                        Engine::Postgres if PgType::of(declared) == PgType::Text => {
                            format!("{} = {mark}", as_text(bare, declared))
                        }
                        _ => format!("{bare} = {mark}"),
                    }
                }
            });
        }
        keys.push(format!("({})", same.join(" AND ")));
    }
    Some(if keys.is_empty() { "1 = 0".to_owned() } else { format!("({})", keys.join(" OR ")) })
}

/// The condition that a plain word is in the text of a value within an unencoded one.
fn inside_contains(
    source: &BoundSource,
    column: &BoundColumn,
    filter: &Filter,
    statement: &mut SelectStatement,
) -> Option<String> {
    let kind = source.entity.column(filter.column)?.kind;
    let (Op::Equal, Operand::Text(value), ValueKind::Text) = (filter.op, &filter.value, kind) else { return None };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@');
    let escaped = matches!(column.inside.part, TextPart::After(_));
    if !column.inside.decode.is_empty()
        || column.is_mapped()
        || escaped
        || value.is_empty()
        || !value.bytes().all(plain)
    {
        return None;
    }
    let bare = dialect::expression(&column.origin)?;
    match statement.engine {
        // A blob may be compressed.
        Engine::Sqlite => {
            let mark = statement.bind(Param::Text(value.clone()), "");
            let held = format!("instr(CAST({bare} AS TEXT), {mark}) > 0");
            Some(format!("({held} OR typeof({bare}) = 'blob' AND substr({bare}, 1, 1) NOT IN (x'7b', x'5b', x'22'))"))
        }
        Engine::Postgres if matches!(PgType::of(dialect::declared(&column.origin)), PgType::Text | PgType::Json) => {
            let mark = statement.bind(Param::Text(value.clone()), "text");
            Some(format!("strpos(({bare})::text COLLATE \"C\", {mark}) > 0"))
        }
        Engine::Postgres => None,
    }
}

fn equal_uuid(bare: &str, words: &[String], statement: &mut SelectStatement) -> Option<String> {
    let [word] = words else { return None };
    let word = &word.to_ascii_lowercase();
    // No stored uuid reads as such a text, and the cast would fail.
    if !is_uuid(word) {
        return Some("1 = 0".to_owned());
    }
    Some(format!("{bare} = {}", statement.bind(Param::Text(word.clone()), "uuid")))
}

/// A value in a column's spelling: PostgreSQL accepts a UUID in any case and returns it in lower case.
pub fn as_stored<'v>(engine: Engine, source: &BoundSource, name: &str, value: &'v str) -> Cow<'v, str> {
    let is_uuids = |way: &BoundColumn| {
        let declared = dialect::declared(&way.origin);
        PgType::of(declared) == PgType::Uuid || declared == "uuid[]"
    };
    let ways = source.column(name);
    if ways.iter().any(|way| matches!(way.origin, BoundOrigin::Key { .. })) {
        return Cow::Owned(super::fetched::key_text(value));
    }
    let lower = value.to_ascii_lowercase();
    if engine == Engine::Postgres && lower != value && is_uuid(&lower) && ways.iter().any(is_uuids) {
        return Cow::Owned(lower);
    }
    Cow::Borrowed(value)
}

/// Whether a text is a UUID in PostgreSQL's spelling.
pub fn is_uuid(text: &str) -> bool {
    let spelled = |uuid: Uuid| *uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == *text;
    text.len() == Hyphenated::LENGTH && Uuid::try_parse(text).is_ok_and(spelled)
}

fn contains(column: &BoundColumn, bare: &str, value: &str, statement: &mut SelectStatement) -> Option<String> {
    let engine = statement.engine;
    if !value.is_ascii() || column.is_mapped() {
        return None;
    }
    if engine == Engine::Postgres && matches!(PgType::of(dialect::declared(&column.origin)), PgType::Bytes) {
        return None;
    }
    let mark = statement.bind(Param::Text(value.to_ascii_lowercase()), "");
    Some(match engine {
        Engine::Sqlite => format!("instr(lower({bare}), {mark}) > 0"),
        Engine::Postgres => format!("strpos(lower(({bare})::text COLLATE \"C\"), {mark}) > 0"),
    })
}

/// As [`contains`], for a canonical text: JSON with escapes passes, since they may stand for letters of the word.
fn text_contains(
    source: &BoundSource,
    column: &BoundColumn,
    bare: &str,
    value: &str,
    statement: &mut SelectStatement,
) -> Option<String> {
    let held = contains(column, bare, value, statement)?;
    Some(match statement.engine {
        _ if !source.shows_json(column) => held,
        Engine::Sqlite => format!("({held} OR instr({bare}, '\\') > 0)"),
        Engine::Postgres => format!("({held} OR strpos(({bare})::text, '\\') > 0)"),
    })
}

/// The condition that a plain word is in the JSON text, where an escape may stand for one of its letters and a number
/// may be written differently. A value that may be compressed passes. The metadata is not narrowed if it shows stored
/// words of status and outcome.
fn json_contains(
    source: &BoundSource,
    name: &str,
    bare: &str,
    column: &BoundColumn,
    value: &str,
    statement: &mut SelectStatement,
) -> Option<String> {
    let engine = statement.engine;
    let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !plain || column.stored == StoredAs::Nested {
        return None;
    }
    let mut also = if name == "metadata" { shown_words(engine, source)? } else { String::new() };
    also.push_str(&rewritten(engine, bare, value));
    let declared = dialect::declared(&column.origin);
    if engine == Engine::Postgres && PgType::of(declared) == PgType::Bytes {
        return None;
    }
    let narrowed = contains(column, bare, value, statement)?;
    Some(match engine {
        Engine::Sqlite => format!("(typeof({bare}) = 'blob' OR {narrowed} OR instr({bare}, '\\u00') > 0{also})"),
        Engine::Postgres if declared == "json" || PgType::of(declared) == PgType::Text => {
            format!("({narrowed} OR strpos(({bare})::text, '\\u00') > 0{also})")
        }
        Engine::Postgres => format!("({narrowed}{also})"),
    })
}

/// Builds a further condition for JSON texts that the canonical form writes differently, possibly with the word:
/// numbers with an exponent, many zeros or more digits than a double has, and invalid numbers, which become null.
fn rewritten(engine: Engine, bare: &str, word: &str) -> String {
    let is_of_number = word.bytes().all(|b| b.is_ascii_digit() || b.eq_ignore_ascii_case(&b'e'));
    let is_of_null = "null".contains(&word.to_ascii_lowercase());
    match engine {
        Engine::Sqlite if is_of_number => {
            let digits = "[0-9]".repeat(17);
            format!(" OR {bare} GLOB '*[0-9][eE][-+0-9]*' OR instr({bare}, '.00000') > 0 OR {bare} GLOB '*{digits}*'")
        }
        Engine::Sqlite if is_of_null => format!(" OR instr({bare}, 'NaN') > 0 OR instr({bare}, 'Infinity') > 0"),
        Engine::Postgres if is_of_number => format!(" OR ({bare})::text ~ '[0-9]([eE][-+0-9]|[0-9]{{16}}|[.]00000)'"),
        Engine::Postgres if is_of_null => format!(" OR ({bare})::text ~ 'NaN|Infinity'"),
        Engine::Sqlite | Engine::Postgres => String::new(),
    }
}

/// Builds a further condition that the metadata shows a stored word of status or outcome. `None` if the database cannot
/// tell.
fn shown_words(engine: Engine, source: &BoundSource) -> Option<String> {
    if !source.raw_status.is_empty() || !source.raw_outcome.is_empty() {
        return None;
    }
    let mut sql = String::new();
    for way in ["status", "outcome"].iter().flat_map(|column| source.column(column)).filter(|way| way.is_mapped()) {
        let (true, Some(vocabulary)) = (way.map.is_empty() && way.inside.is_whole(), way.vocabulary) else {
            return None;
        };
        let words: Vec<String> = vocabulary.canonical_words().map(|word| format!("'{word}'")).collect();
        let cast = if engine == Engine::Postgres { "::text" } else { "" };
        let _ = write!(sql, " OR ({}){cast} NOT IN ({})", dialect::expression(&way.origin)?, words.join(", "));
    }
    Some(sql)
}

/// A bound on a time: exact if the engine has a time type, by day if the spelling may vary.
fn time_bound(
    column: &BoundColumn,
    bare: &str,
    op: Op,
    value: &str,
    statement: &mut SelectStatement,
) -> Option<String> {
    let lower = match op {
        Op::Greater | Op::GreaterOrEqual => true,
        Op::Less | Op::LessOrEqual => false,
        _ => return None,
    };
    if column.stored != StoredAs::Plain {
        return None;
    }
    if statement.engine == Engine::Postgres {
        let declared = dialect::declared(&column.origin);
        if !matches!(PgType::of(declared), PgType::Timestamp | PgType::Timestamptz) {
            return None;
        }
        let mark = statement.bind(Param::Text(value.to_owned()), declared);
        return Some(format!("{bare} {} {mark}", if lower { ">=" } else { "<=" }));
    }
    // Offsets from UTC move a time by less than a day: one day of tolerance on either side includes them.
    let day = value.get(..10)?;
    let date = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
    let slack = chrono::Duration::days(if lower { -1 } else { 2 });
    let date = date.checked_add_signed(slack)?.to_string();
    // A year with a sign is not in the order of texts.
    if date.len() > 10 {
        return None;
    }
    let mark = statement.bind(Param::Text(date), "");
    Some(format!("{bare} {} {mark}", if lower { ">=" } else { "<" }))
}

fn list_has(column: &BoundColumn, bare: &str, value: &str, statement: &mut SelectStatement) -> Option<String> {
    if column.stored == StoredAs::One {
        return equal_text(column, bare, value, statement);
    }
    let declared = dialect::declared(&column.origin);
    let simple = value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b':'));
    match statement.engine {
        Engine::Postgres => match PgType::of(declared) {
            PgType::Array if declared == "uuid[]" => is_uuid(value).then(|| {
                let mark = statement.bind(Param::Text(value.to_owned()), "uuid");
                format!("{bare} @> ARRAY[{mark}]")
            }),
            PgType::Array if declared.starts_with("text") || declared.starts_with("character varying") => {
                let mark = statement.bind(Param::Text(value.to_owned()), "text");
                Some(format!("{mark} = ANY ({bare})"))
            }
            PgType::Array if column.stored == StoredAs::Numbers => {
                let number = value.parse::<i64>().ok()?;
                let mark = statement.bind(Param::Text(number.to_string()), "bigint");
                Some(format!("{mark} = ANY ({bare})"))
            }
            PgType::Json if declared == "jsonb" => {
                let mark = statement.bind(Param::Text(value.to_owned()), "text");
                let holds = format!("{bare} @> to_jsonb(ARRAY[{mark}])");
                match value.parse::<i64>() {
                    Ok(number) if column.stored == StoredAs::Numbers => {
                        let mark = statement.bind(Param::Text(number.to_string()), "bigint");
                        Some(format!("({holds} OR {bare} @> to_jsonb(ARRAY[{mark}]))"))
                    }
                    _ => Some(holds),
                }
            }
            // As below: the JSON text contains a plain word literally, or with an escape.
            PgType::Json | PgType::Text if simple => {
                let mark = statement.bind(Param::Text(value.to_owned()), "text");
                let text = format!("({bare})::text COLLATE \"C\"");
                Some(format!("(strpos({text}, {mark}) > 0 OR strpos({text}, '\\u00') > 0)"))
            }
            _ => None,
        },
        // The JSON text contains a plain word literally, or with an escape; a blob is compared as text.
        Engine::Sqlite if simple => {
            let mark = statement.bind(Param::Text(value.to_owned()), "");
            let text = format!("CAST({bare} AS TEXT)");
            Some(format!("(instr({text}, {mark}) > 0 OR instr({text}, '\\u00') > 0)"))
        }
        Engine::Sqlite => None,
    }
}

fn number(column: &BoundColumn, bare: &str, op: Op, value: f64, statement: &mut SelectStatement) -> Option<String> {
    let sign = match op {
        Op::Equal => "=",
        Op::Less => "<",
        Op::LessOrEqual => "<=",
        Op::Greater => ">",
        Op::GreaterOrEqual => ">=",
        Op::NotEqual | Op::Contains | Op::Has => return None,
    };
    // Beyond this, a double may differ from the stored or requested number.
    if value.abs() >= 2_f64.powi(53) {
        return None;
    }
    let declared = dialect::declared(&column.origin);
    if statement.engine == Engine::Postgres {
        if !matches!(PgType::of(declared), PgType::Integer | PgType::Number) {
            return None;
        }
        let mark = statement.bind(Param::Text(value.to_string()), "numeric");
        // The canonical value is a double: compared as one, so that both engines agree.
        return Some(format!("({bare})::float8 {sign} {mark}"));
    }
    // SQLite sorts text above every number: a number stored as text passes.
    let mark = statement.bind(Param::Real(value), "");
    Some(format!("({bare} {sign} {mark} OR typeof({bare}) = 'text')"))
}

/// Narrows to rows whose column is one of the values; false if the database cannot evaluate that.
pub fn narrow_any(source: &BoundSource, name: &str, values: &[String], statement: &mut SelectStatement) -> bool {
    let Some(condition) = any_of(source, name, values, statement) else { return false };
    let _ = write!(statement.sql, " AND {condition}");
    true
}

/// The condition that one of a column's readings gives one of the values; `None` if the database cannot evaluate that.
pub fn any_of(source: &BoundSource, name: &str, values: &[String], statement: &mut SelectStatement) -> Option<String> {
    let known = statement.params.len();
    let ways = source.column(name).iter().map(|way| way_is_any_of(source, name, way, values, statement));
    match ways.collect::<Option<Vec<String>>>() {
        Some(ways) if !ways.is_empty() => Some(format!("({})", ways.join(" OR "))),
        _ => {
            statement.params.truncate(known);
            None
        }
    }
}

fn way_is_any_of(
    source: &BoundSource,
    name: &str,
    column: &BoundColumn,
    values: &[String],
    statement: &mut SelectStatement,
) -> Option<String> {
    let engine = statement.engine;
    if let Some(lookup) = &column.lookup {
        let marks: Vec<_> = values.iter().map(|v| statement.bind(Param::Text(v.clone()), "text")).collect();
        return Some(lookup.replace("$ids", &marks.join(", ")));
    }
    if !column.inside.is_whole() || column.is_mapped() {
        return None;
    }
    if let BoundOrigin::Key { parts, .. } = &column.origin {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        return key_is(parts, &values, statement);
    }
    let kind = source.entity.column(name).map(|c| c.kind);
    let is_text = kind == Some(ValueKind::Text) && !source.shows_json(column);
    if !(is_text || column.stored == StoredAs::One) {
        return None;
    }
    let bare = dialect::expression(&column.origin)?;
    let declared = dialect::declared(&column.origin);
    if engine == Engine::Sqlite {
        return Some(is_one_of(&bare, declared, values, true, statement));
    }
    let (text, values): (String, Vec<&String>) = match (engine, PgType::of(declared)) {
        (_, PgType::Uuid) => (bare, values.iter().filter(|v| is_uuid(v)).collect()),
        _ => (as_text(&bare, declared), values.iter().collect()),
    };
    let cast = if engine == Engine::Postgres && PgType::of(declared) == PgType::Uuid { "uuid" } else { "" };
    let marks: Vec<_> = values.into_iter().map(|v| statement.bind(Param::Text(v.clone()), cast)).collect();
    Some(match marks[..] {
        [] => "1 = 0".to_owned(),
        _ => format!("{text} IN ({})", marks.join(", ")),
    })
}
