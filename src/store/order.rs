//! The order in which the database walks a source's rows, and cursors: the stored keys at the edge of a page.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::dialect::{self, PgType};
use super::fetched::{FetchedValue, RawRow};
use super::select::SelectStatement;
use crate::layout::{BoundColumn, BoundOrigin, BoundSource, Engine, StoredAs};
use crate::memory::vocabulary::Vocabulary;
use crate::memory::{ValueKind, time};

/// Order in which one source is walked.
#[derive(Debug, Clone)]
pub struct SourceOrder {
    /// The key as an SQL expression for comparing and sorting.
    key: String,
    /// The key as an SQL expression for reading.
    key_read: String,
    key_declared: String,
    /// Whether the key may be NULL: those rows come last.
    nullable: bool,
    /// Condition for keys that are read as no value, such as infinity: they come last too.
    odd: Option<String>,
    id: Vec<IdPart>,
    /// Whether an index has this order: without one, each page sorts all rows.
    is_indexed: bool,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Assumption of the order, until its first page has been read.
    hope: Option<SortHope>,
}

/// A part of the columns that identify rows.
#[derive(Debug, Clone)]
struct IdPart {
    /// SQL for comparing.
    key: String,
    /// SQL for reading.
    read: String,
    declared: String,
    /// SQLite: the same with NULL for missing values, as in an index.
    bare: Option<String>,
}

/// Assumption under which SQLite's order of unindexed values is the canonical one. The first row of a list, greatest
/// first, confirms or refutes it; a query beforehand would read the whole table once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortHope {
    /// All values are numbers: others sort above them.
    Numbers,
    /// All values are times in one spelling, a LIKE pattern: others are sorted above them.
    Spelling(String),
}

impl SortHope {
    /// The spelling of a time in UTC; `None` for other texts.
    pub fn spelling(time: &str) -> Option<Self> {
        const SHAPE: &str = "____-__-__ __:__:__";
        let digit = |letter: char| if letter.is_ascii_digit() { '_' } else { letter };
        let (whole, rest) = time.split_at_checked(SHAPE.len())?;
        let shape: String = whole.chars().map(digit).collect();
        let zone = rest.find(['Z', '+']).unwrap_or(rest.len());
        let (fraction, zone) = rest.split_at(zone);
        let fraction: String = fraction.chars().map(digit).collect();
        let is_fraction = fraction.is_empty() || fraction.starts_with('.') && fraction[1..].chars().all(|c| c == '_');
        (shape.replace('T', " ") == SHAPE && is_fraction && matches!(zone, "" | "Z" | "+00:00"))
            .then(|| SortHope::Spelling(format!("{shape}{fraction}{zone}")))
    }

    /// The condition for values that break the assumption; such rows are sorted first. `None` for numbers.
    fn odd(&self, value: &str) -> Option<String> {
        match self {
            SortHope::Numbers => None,
            SortHope::Spelling(shape) => Some(format!("{value} NOT LIKE '{shape}'")),
        }
    }

    /// The statement that reads the values that break the assumption: NULL for a very long text, an empty blob for
    /// bytes. It stops after one more than [`Sortable::but`] accepts.
    pub fn otherwise(&self, source: &BoundSource, column: &str) -> Option<String> {
        let (value, from) = (stored_value(source, column)?, super::select::from_clause(source));
        let odd = match self {
            // Texts and bytes sort above all numbers, so an index on the column finds them.
            SortHope::Numbers => format!("{value} >= ''"),
            SortHope::Spelling(_) => {
                format!("{value} IS NOT NULL AND ({} OR typeof({value}) = 'blob')", self.odd(&value)?)
            }
        };
        Some(format!(
            "SELECT DISTINCT CASE WHEN typeof({value}) = 'blob' THEN x'' WHEN length({value}) <= {LONG} THEN {value} END \
             FROM {from} WHERE {odd} LIMIT {}",
            ODD + 1
        ))
    }

    /// Whether the greatest value confirms it.
    pub fn is_borne_out(&self, greatest: &RawKey) -> bool {
        match (self, greatest) {
            (_, RawKey::Null) | (SortHope::Numbers, RawKey::Integer(_) | RawKey::Real(_)) => true,
            (SortHope::Spelling(shape), RawKey::Text(time)) => {
                time.chars().count() == shape.len()
                    && time.chars().zip(shape.chars()).all(|(a, b)| b == '_' || a.eq_ignore_ascii_case(&b))
            }
            _ => false,
        }
    }
}

/// The SQL expression of a canonical column's stored value.
fn stored_value(source: &BoundSource, column: &str) -> Option<String> {
    let values: Option<Vec<_>> = source.column(column).iter().map(|w| dialect::expression(&w.origin)).collect();
    match &values?[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("coalesce({})", several.join(", "))),
    }
}

/// SQLite: a statement that reads one time of a column whose times are texts without an index. Its
/// [`SortHope::spelling`] becomes the assumption.
pub fn one_time(source: &BoundSource, column: &str) -> Option<String> {
    let ways = source.column(column);
    let is_time = source.entity.column(column)?.kind == ValueKind::Time;
    let indexed = matches!(ways, [BoundColumn { origin: BoundOrigin::Column { indexed: true, .. }, .. }]);
    if !is_time || indexed || !ways.iter().all(|w| w.stored == StoredAs::Plain) {
        return None;
    }
    let (value, from) = (stored_value(source, column)?, super::select::from_clause(source));
    Some(format!("SELECT {value} FROM {from} WHERE {value} IS NOT NULL LIMIT 1"))
}

/// SQLite: whether a column's values should be numbers, for [`sortable_probe`].
pub fn is_of_numbers(source: &BoundSource, column: &str) -> bool {
    let numbers = |kind| matches!(kind, ValueKind::Integer | ValueKind::Real | ValueKind::Boolean);
    let ways = source.column(column);
    let kind = source.entity.column(column).map(|c| c.kind);
    let epochs = kind == Some(ValueKind::Time) && ways.iter().any(|w| w.stored != StoredAs::Plain);
    !ways.is_empty() && (epochs || kind.is_some_and(numbers))
}

/// A position between two rows of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Edge {
    /// Before the first row.
    Begin,
    /// After the last row.
    End,
    /// At a row, which is included only if `inclusive`.
    At {
        /// The stored key; NULL for rows without one.
        key: RawKey,
        /// The stored id, of one or more values.
        id: Vec<RawKey>,
        /// Whether the row itself is included.
        inclusive: bool,
    },
}

/// A stored key in a form that a cursor can hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RawKey {
    /// NULL.
    Null,
    /// Text.
    Text(String),
    /// Bytes in hexadecimal; and whether they were declared as text.
    Bytes(String, bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number, by its bits.
    Real(u64),
}

impl RawKey {
    /// Converts a raw value.
    pub fn of(raw: &FetchedValue) -> Self {
        match raw {
            FetchedValue::Null => RawKey::Null,
            FetchedValue::Text(text) => RawKey::Text(text.clone()),
            FetchedValue::BadText(bytes) => RawKey::Bytes(hex::encode(bytes), true),
            FetchedValue::Bytes(bytes) => RawKey::Bytes(hex::encode(bytes), false),
            FetchedValue::Integer(i) => RawKey::Integer(*i),
            FetchedValue::Real(x) => RawKey::Real(x.to_bits()),
        }
    }

    /// Converts back to a raw value.
    pub fn raw(&self) -> FetchedValue {
        match self {
            RawKey::Null => FetchedValue::Null,
            RawKey::Text(text) => FetchedValue::Text(text.clone()),
            RawKey::Bytes(digits, true) => FetchedValue::BadText(hex::decode(digits).unwrap_or_default()),
            RawKey::Bytes(digits, false) => FetchedValue::Bytes(hex::decode(digits).unwrap_or_default()),
            RawKey::Integer(i) => FetchedValue::Integer(*i),
            RawKey::Real(bits) => FetchedValue::Real(f64::from_bits(*bits)),
        }
    }
}

/// A cursor: its list, and the edge in each source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListCursor {
    /// Entity and order, so that a cursor of another list is refused.
    pub list: String,
    /// One edge for each source; empty in a scanned order.
    pub edges: Vec<Edge>,
    /// Reliability of each source's stored order when the list began, used for all its pages; empty in a scanned order,
    /// and in cursors of earlier versions.
    #[serde(default)]
    pub sorted: Vec<Sortable>,
    /// The row at the edge of a scanned order.
    pub scanned: Option<ScannedEdge>,
}

/// A row at the edge of a page in a scanned order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScannedEdge {
    /// Canonical value by which the rows are ordered.
    pub key: serde_json::Value,
    /// Canonical id.
    pub id: String,
    /// Index of its source.
    pub source: usize,
    /// Position of the row in its source, which distinguishes rows with the same key and id.
    pub edge: Edge,
}

/// Encodes a position as opaque text for a command line.
pub fn place_text(place: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(place).unwrap_or_default())
}

/// Decodes a position; `None` if the text is not one.
pub fn place_of<P: DeserializeOwned>(text: &str) -> Option<P> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

impl ListCursor {
    /// Encodes the cursor as opaque text for a command line.
    pub fn encode(&self) -> String {
        place_text(self)
    }

    /// Decodes a cursor of the given list; `None` if it is not one.
    pub fn decode(text: &str, list: &str, sources: usize) -> Option<Self> {
        let cursor: ListCursor = place_of(text.trim())?;
        let is_whole = cursor.edges.len() == sources && [0, sources].contains(&cursor.sorted.len());
        (cursor.list == list && (cursor.scanned.is_some() || is_whole)).then_some(cursor)
    }
}

/// A part of a source: rows with a key, or rows without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderedPart {
    /// Rows that have a key.
    Keyed,
    /// Rows whose key is NULL, or is read as no value.
    Unkeyed,
}

impl SourceOrder {
    /// The order by a canonical column; `None` if only canonical values can order the rows.
    pub fn new(
        engine: Engine,
        source: &BoundSource,
        column: &str,
        descending: bool,
        sortable: &Sortable,
    ) -> Option<Self> {
        let kind = source.entity.column(column)?.kind;
        let ways = source.column(column);
        if *sortable == Sortable::No {
            return None;
        }
        let derived =
            source.derives(column) || kind == ValueKind::Text && ways.iter().any(|way| source.shows_json(way));
        let plain = |w: &BoundColumn| w.inside.is_whole() && w.map.is_empty() && w.stored != StoredAs::One;
        if ways.is_empty() || derived || !ways.iter().all(plain) || matches!(kind, ValueKind::Json | ValueKind::List) {
            return None;
        }
        let id = id_expressions(engine, source)?;
        let odd_of = |key: &str, declared: &str| match sortable {
            Sortable::AllBut(spans) | Sortable::OneSpellingBut(spans) => Some(within_spans(key, spans)),
            Sortable::Numbers => {
                let odd = odd_keys(engine, key, declared, (kind, ways));
                let text = format!("typeof({key}) IN ('text', 'blob')");
                Some(odd.map_or_else(|| text.clone(), |odd| format!("({text} OR {odd})")))
            }
            _ => odd_keys(engine, key, declared, (kind, ways)),
        };
        let (mut key, mut key_read, mut key_declared, nullable, odd) = match ways {
            [way] => {
                let (key, read, declared, nullable) = key_expression(engine, way, kind)?;
                let odd = odd_of(&key, &declared);
                (key, read, declared, nullable, odd)
            }
            several => {
                let parts: Option<Vec<_>> = several.iter().map(|w| key_expression(engine, w, kind)).collect();
                let mut parts = parts?;
                // If one reading gives no value, the next one counts.
                for (key, read, declared, nullable) in &mut parts {
                    if let Some(odd) = odd_of(key, declared) {
                        *read = format!("CASE WHEN {odd} THEN NULL ELSE {read} END");
                        *key = format!("CASE WHEN {odd} THEN NULL ELSE {key} END");
                        *nullable = true;
                    }
                }
                let join =
                    |f: fn(&(String, String, String, bool)) -> &str| parts.iter().map(f).collect::<Vec<_>>().join(", ");
                let key = format!("coalesce({})", join(|p| &p.0));
                let read = format!("coalesce({})", join(|p| &p.1));
                (key, read, parts[0].2.clone(), parts.iter().all(|p| p.3), None)
            }
        };
        if sortable.has_several() {
            key = one_spelling(&key);
            key_read.clone_from(&key);
        }
        let vocabulary = ways.iter().find_map(|way| way.vocabulary);
        if let Some(vocabulary) = vocabulary {
            key = meant(engine, &key, vocabulary);
            (key_read, key_declared) = (key.clone(), String::new());
        }
        let is_indexed = matches!(ways, [BoundColumn { origin: BoundOrigin::Column { indexed: true, .. }, .. }])
            && !sortable.has_several()
            && vocabulary.is_none();
        if let Some(odd) = &odd {
            key_read = format!("CASE WHEN {odd} THEN NULL ELSE {key_read} END");
        }
        let nullable = nullable || odd.is_some();
        Some(SourceOrder { key, key_read, key_declared, nullable, odd, id, is_indexed, descending, hope: None })
    }

    /// Sets the assumption of the order.
    pub fn hoping(self, hope: Option<SortHope>) -> Self {
        SourceOrder { hope, ..self }
    }

    /// Returns the assumption that the order rests on.
    pub fn hope(&self) -> Option<&SortHope> {
        self.hope.as_ref()
    }

    /// Whether each page sorts all matching rows.
    pub fn sorts(&self) -> bool {
        !self.is_indexed
    }

    /// The SQL expressions that read a row's edge: key, then id.
    pub fn reads(&self) -> Vec<String> {
        std::iter::once(&self.key_read).chain(self.id.iter().map(|part| &part.read)).cloned().collect()
    }

    /// The parts to walk from an edge on, in order.
    pub fn parts(&self, edge: &Edge, forward: bool) -> Vec<OrderedPart> {
        let mut parts =
            if self.nullable { vec![OrderedPart::Keyed, OrderedPart::Unkeyed] } else { vec![OrderedPart::Keyed] };
        if !forward {
            parts.reverse();
        }
        match edge {
            Edge::At { key: RawKey::Null, .. } => parts.retain(|p| *p == OrderedPart::Unkeyed || !forward),
            Edge::At { .. } => parts.retain(|p| *p == OrderedPart::Keyed || forward),
            Edge::Begin if !forward => parts.clear(),
            Edge::End if forward => parts.clear(),
            Edge::Begin | Edge::End => {}
        }
        parts
    }

    /// Narrows one part to a run of consecutive rows, by their ids and up to the last of them.
    pub fn narrow_to(&self, statement: &mut SelectStatement, part: OrderedPart, run: &[Edge], forward: bool) {
        let Some(last) = run.last() else { return };
        self.narrow_to_ids(statement, run);
        let upper = self.beside(statement, part, last, if self.goes_down(forward) { ">=" } else { "<=" });
        statement.sql += &upper;
    }

    /// Narrows to the rows at these positions.
    pub fn narrow_to_places(&self, statement: &mut SelectStatement, places: &[Edge]) {
        self.narrow_to_ids(statement, places);
        if self.id.len() < 2 {
            return;
        }
        let mut rows = Vec::with_capacity(places.len());
        for edge in places {
            let Edge::At { id, .. } = edge else { continue };
            let marks = id.iter().zip(&self.id).map(|(at, part)| statement.bind(at.raw(), &part.declared));
            rows.push(format!("({})", marks.collect::<Vec<_>>().join(", ")));
        }
        statement.sql +=
            &format!(" AND ({}) IN (VALUES {})", self.id_keys(statement.engine).join(", "), rows.join(", "));
    }

    /// Narrows to rows with the first parts of some ids.
    fn narrow_to_ids(&self, statement: &mut SelectStatement, edges: &[Edge]) {
        let Some(first) = self.id.first() else { return };
        let mut marks = Vec::with_capacity(edges.len());
        let mut has_none = false;
        for edge in edges {
            let Edge::At { id, .. } = edge else { continue };
            let Some(at) = id.first() else { continue };
            has_none |= *at == RawKey::Text(String::new());
            marks.push(statement.bind(at.raw(), &first.declared));
        }
        let id = first.bare.as_ref().unwrap_or(&first.key);
        let none = if has_none && first.bare.is_some() { format!(" OR {id} IS NULL") } else { String::new() };
        statement.sql += &format!(" AND ({id} IN ({}){none})", marks.join(", "));
    }

    fn goes_down(&self, forward: bool) -> bool {
        self.descending == forward
    }

    /// The condition for rows on one side of an edge; empty if the edge is in the other part, so that this one is read
    /// completely.
    fn beside(&self, statement: &mut SelectStatement, part: OrderedPart, edge: &Edge, sign: &str) -> String {
        let engine = statement.engine;
        let Edge::At { key: key_at, id: id_at, .. } = edge else { return String::new() };
        let bound = |statement: &mut SelectStatement| -> String {
            let marks = id_at.iter().zip(&self.id).map(|(at, part)| statement.bind(at.raw(), &part.declared));
            marks.collect::<Vec<_>>().join(", ")
        };
        let ids = self.id_keys(engine).join(", ");
        match (part, key_at) {
            (OrderedPart::Unkeyed, RawKey::Null) => {
                let marks = bound(statement);
                format!(" AND ({ids}) {sign} ({marks})")
            }
            (OrderedPart::Keyed, key_at) if *key_at != RawKey::Null => {
                let key_mark = statement.bind(key_at.raw(), &self.key_declared);
                let marks = bound(statement);
                format!(" AND ({}, {ids}) {sign} ({key_mark}, {marks})", self.sort_key(engine))
            }
            _ => String::new(),
        }
    }

    fn sort_key(&self, engine: Engine) -> String {
        dialect::sort_key(engine, &self.key, &self.key_declared)
    }

    fn id_keys(&self, engine: Engine) -> Vec<String> {
        self.id.iter().map(|part| dialect::sort_key(engine, &part.key, &part.declared)).collect()
    }

    /// Adds the condition, the order and the limit for one part.
    pub fn walk(&self, statement: &mut SelectStatement, part: OrderedPart, edge: &Edge, forward: bool, limit: usize) {
        let engine = statement.engine;
        let down = self.goes_down(forward);
        let direction = if down { "DESC" } else { "ASC" };
        let key = self.sort_key(engine);
        let order = self.id_keys(engine).iter().map(|id| format!("{id} {direction}")).collect::<Vec<_>>().join(", ");
        let mut sql = String::new();
        if self.nullable {
            let key = &self.key;
            sql += &match (part, &self.odd) {
                (OrderedPart::Keyed, None) => format!(" AND {key} IS NOT NULL"),
                (OrderedPart::Keyed, Some(odd)) => format!(" AND {key} IS NOT NULL AND NOT ({odd})"),
                (OrderedPart::Unkeyed, None) => format!(" AND {key} IS NULL"),
                (OrderedPart::Unkeyed, Some(odd)) => format!(" AND ({key} IS NULL OR {odd})"),
            };
        }
        if let Edge::At { inclusive, .. } = edge {
            let sign = match (down, inclusive) {
                (true, false) => "<",
                (true, true) => "<=",
                (false, false) => ">",
                (false, true) => ">=",
            };
            sql += &self.beside(statement, part, edge, sign);
        }
        let odd = self.hope.as_ref().filter(|_| *edge == Edge::Begin).and_then(|hope| hope.odd(&self.key));
        let odd = odd.map(|odd| format!("{odd} DESC, ")).unwrap_or_default();
        sql += &match part {
            OrderedPart::Keyed => format!(" ORDER BY {odd}{key} {direction}, {order} LIMIT {limit}"),
            OrderedPart::Unkeyed => format!(" ORDER BY {order} LIMIT {limit}"),
        };
        statement.sql += &sql;
    }
}

/// Condition for keys that the engine stores and sorts, but that are read as no value.
fn odd_keys(engine: Engine, key: &str, declared: &str, (kind, ways): (ValueKind, &[BoundColumn])) -> Option<String> {
    /// Seconds of the start of year 1 and of the end of year 9999.
    const YEARS: (i64, i64) = (-62_135_596_800, 253_402_300_800);
    /// Limit below which adjacent floating-point numbers are distinct.
    const WHOLE: &str = "9e15";
    let stored = |wanted: StoredAs| ways.iter().all(|way| way.stored == wanted);
    match (engine, kind, PgType::of(declared)) {
        (Engine::Sqlite, ValueKind::Time, _) if stored(StoredAs::Epoch) || stored(StoredAs::EpochMillis) => {
            let unit = if stored(StoredAs::Epoch) { 1 } else { 1_000 };
            let (first, last) = (YEARS.0 * unit, YEARS.1 * unit);
            Some(format!("(typeof({key}) IN ('integer', 'real') AND ({key} < {first} OR {key} >= {last}))"))
        }
        (Engine::Sqlite, ValueKind::Real, _) => Some(format!("{key} IN (9e999, -9e999)")),
        (Engine::Sqlite, ValueKind::Integer, _) => {
            Some(format!("(typeof({key}) = 'real' AND (abs({key}) >= {WHOLE} OR {key} <> CAST({key} AS INTEGER)))"))
        }
        (Engine::Sqlite, ValueKind::Boolean, _) => {
            Some(format!("(typeof({key}) = 'real' OR typeof({key}) = 'integer' AND {key} NOT IN (0, 1))"))
        }
        (Engine::Postgres, ValueKind::Boolean, PgType::Integer) => Some(format!("{key} NOT IN (0, 1)")),
        (Engine::Postgres, ValueKind::Integer, PgType::Number) => {
            Some(format!("(abs({key}) >= {WHOLE} OR {key} <> trunc({key}))"))
        }
        // Not every server supports infinite numerics.
        (Engine::Postgres, ValueKind::Real, PgType::Number) if declared.starts_with("numeric") => {
            Some(format!("{key} = 'NaN'"))
        }
        (Engine::Postgres, ValueKind::Real, PgType::Number) => {
            Some(format!("{key} IN ('NaN', 'Infinity', '-Infinity')"))
        }
        (Engine::Postgres, ValueKind::Time, PgType::Timestamptz | PgType::Timestamp) => {
            Some(format!("({key} >= '10000-01-01' OR {key} < '0001-01-01')"))
        }
        _ => None,
    }
}

/// SQL expression for the canonical word of a stored one.
fn meant(engine: Engine, key: &str, vocabulary: &Vocabulary) -> String {
    let key = if engine == Engine::Postgres { format!("({key})::text") } else { key.to_owned() };
    let mut sql = format!("CASE WHEN {key} = '' THEN {key}");
    for word in vocabulary.canonical_words() {
        let spellings = vocabulary.meaning(word).unwrap_or_default();
        if !spellings.is_empty() {
            let listed: Vec<String> = spellings.iter().map(|spelling| format!("'{spelling}'")).collect();
            sql += &format!(" WHEN {key} IN ({}) THEN '{word}'", listed.join(", "));
        }
    }
    let other = vocabulary.other().map_or_else(|| key.clone(), |word| format!("'{word}'"));
    format!("{sql} WHEN {key} IS NOT NULL THEN {other} END")
}

/// SQLite: condition for texts within one of some spans, both ends included.
fn within_spans(key: &str, spans: &[(String, String)]) -> String {
    let text = |text: &String| format!("CAST(x'{}' AS TEXT)", hex::encode(text));
    let within = |(from, to): &(String, String)| format!("{key} BETWEEN {} AND {}", text(from), text(to));
    format!("({})", spans.iter().map(within).collect::<Vec<_>>().join(" OR "))
}

/// Expression for sorting, expression for reading, declared type, nullable.
fn key_expression(engine: Engine, way: &BoundColumn, kind: ValueKind) -> Option<(String, String, String, bool)> {
    let bare = dialect::expression(&way.origin)?;
    let read = dialect::project(engine, way, kind, None)?;
    Some(match (&way.origin, engine) {
        (BoundOrigin::Column { declared, not_null, .. }, _) => (bare, read, declared.clone(), !not_null),
        (_, Engine::Postgres) if kind == ValueKind::Time => {
            (format!("({bare})::timestamptz"), read, "timestamp with time zone".to_owned(), true)
        }
        (_, Engine::Postgres) if matches!(kind, ValueKind::Integer | ValueKind::Real) => {
            (format!("({bare})::numeric"), read, "numeric".to_owned(), true)
        }
        _ => (bare, read, String::new(), true),
    })
}

/// SQL expressions that identify rows: the parts of the id, and the row's location if that may repeat. None of them is
/// NULL, since NULL has no place in an order.
fn id_expressions(engine: Engine, source: &BoundSource) -> Option<Vec<IdPart>> {
    let [way] = source.column(super::page::id_column(source.entity)) else { return None };
    let parts = match &way.origin {
        BoundOrigin::Key { parts, .. } => &parts[..],
        origin => std::slice::from_ref(origin),
    };
    let part = |origin: &BoundOrigin| {
        let way = BoundColumn { origin: origin.clone(), ..way.clone() };
        let (key, read, declared, nullable) = key_expression(engine, &way, ValueKind::Text)?;
        Some(match zero(engine, &declared).filter(|_| nullable) {
            None => IdPart { key, read, declared, bare: None },
            Some(zero) if engine == Engine::Sqlite => IdPart {
                key: format!("coalesce({key}, {zero})"),
                read: format!("coalesce({read}, {zero})"),
                declared,
                bare: Some(key),
            },
            Some(zero) => {
                let key = if PgType::of(&declared) == PgType::Text { format!("({key})::text") } else { key };
                let present = format!("coalesce({key}, {zero})");
                let read =
                    if PgType::of(&declared) == PgType::Integer { present.clone() } else { format!("{present}::text") };
                IdPart { key: present, read, declared, bare: None }
            }
        })
    };
    parts.iter().chain(&source.places).map(part).collect()
}

/// A value of the type that replaces NULL; the row's location distinguishes it from an equal value.
fn zero(engine: Engine, declared: &str) -> Option<&'static str> {
    match (engine, PgType::of(declared)) {
        (Engine::Sqlite, _) | (Engine::Postgres, PgType::Text) => Some("''"),
        (Engine::Postgres, PgType::Uuid) => Some("'00000000-0000-0000-0000-000000000000'"),
        (Engine::Postgres, PgType::Integer) => Some("0"),
        _ => None,
    }
}

/// SQLite: converts times of any stored spelling to one, so that their texts can be sorted.
fn one_spelling(time: &str) -> String {
    let bare = format!("replace(replace(replace({time}, ' ', 'T'), '+00:00', ''), 'Z', '')");
    format!("substr({bare} || CASE WHEN length({bare}) = 19 THEN '.' ELSE '' END || '000000', 1, 26)")
}

/// Reliability of SQLite's own order of a column's values: a column may contain values of any type, and times in any
/// spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sortable {
    /// The stored values have the canonical order.
    AsStored,
    /// All except texts in some spans, which are not times.
    AllBut(Vec<(String, String)>),
    /// Times in several UTC spellings: converted to one, they have the canonical order.
    OneSpelling,
    /// The same, except texts in some spans, which are not times.
    OneSpellingBut(Vec<(String, String)>),
    /// Numbers, and texts and bytes that are not numbers.
    Numbers,
    /// Some values are not times or not numbers, which only reading them shows.
    No,
}

/// Known reliability of the stored order of columns, by probe statement.
#[derive(Debug, Default)]
pub struct SortableColumns {
    known: Mutex<HashMap<String, Sortable>>,
    /// Probes of columns whose first row refuted the assumption: these must be run.
    doubted: Mutex<HashSet<String>>,
}

impl SortableColumns {
    /// Returns the result of an earlier probe.
    pub(super) fn known(&self, probe: &str) -> Option<Sortable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(probe).cloned()
    }

    /// Whether a probe has no result and is not doubted.
    pub(super) fn is_open(&self, probe: &str) -> bool {
        self.known(probe).is_none() && !self.doubted.lock().unwrap_or_else(PoisonError::into_inner).contains(probe)
    }

    /// Stores the result of a probe.
    pub(super) fn keep(&self, probe: String, sortable: Sortable) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(probe, sortable);
    }

    /// Records that an assumption was refuted.
    pub(super) fn doubt(&self, probe: String) {
        self.doubted.lock().unwrap_or_else(PoisonError::into_inner).insert(probe);
    }
}

impl Sortable {
    /// The order under an assumption, except for some values that are read as no value; `None` if these are too many,
    /// or one of them can be read.
    pub fn but(hope: &SortHope, odd: Vec<RawRow>, is_read: impl Fn(&FetchedValue) -> bool) -> Option<Self> {
        let odd: Vec<FetchedValue> = odd.into_iter().flatten().collect();
        if odd.len() > ODD || odd.iter().any(|value| *value == FetchedValue::Null || is_read(value)) {
            return None;
        }
        match hope {
            SortHope::Numbers if odd.is_empty() => Some(Sortable::AsStored),
            SortHope::Numbers => Some(Sortable::Numbers),
            SortHope::Spelling(_) => {
                let span = |value| match value {
                    FetchedValue::Text(text) => Some((text.clone(), text)),
                    _ => None,
                };
                Some(Sortable::of_times(false, odd.into_iter().map(span).collect::<Option<_>>()?))
            }
        }
    }

    /// The order of times in one or several spellings, except texts in some spans.
    fn of_times(several: bool, spans: Vec<(String, String)>) -> Self {
        match (several, spans.is_empty()) {
            (false, true) => Sortable::AsStored,
            (false, false) => Sortable::AllBut(spans),
            (true, true) => Sortable::OneSpelling,
            (true, false) => Sortable::OneSpellingBut(spans),
        }
    }

    /// Whether the spellings must be converted to one.
    fn has_several(&self) -> bool {
        matches!(self, Sortable::OneSpelling | Sortable::OneSpellingBut(_))
    }

    /// Parses the result of [`sortable_probe`]'s statement.
    pub fn of(probed: Option<&RawRow>) -> Self {
        let spans = |row: &RawRow| match row.get(1) {
            Some(FetchedValue::Text(spans)) => {
                let spans = serde_json::from_str::<Vec<(String, String)>>(spans).ok()?;
                // A text that can be read has its place, whatever its spelling.
                let is_read = |text: &String| time::canonical(text).is_some();
                (!spans.iter().any(|(low, high)| is_read(low) || is_read(high))).then_some(spans)
            }
            Some(_) => None,
            None => Some(Vec::new()),
        };
        match (probed.and_then(|row| row.first()), probed.and_then(spans)) {
            (Some(FetchedValue::Integer(several @ 0..=1)), Some(spans)) => Sortable::of_times(*several == 1, spans),
            _ => Sortable::No,
        }
    }
}

/// Most spans of texts that are not times in an order; with more, all values must be read.
const ODD: usize = 16;

/// Characters of the text at the end of such a span.
const LONG: usize = 64;

/// SQLite: the statement that determines the reliability of a column's stored order. It returns 0 for as stored, 1 for
/// several spellings, 2 for unreliable, and as JSON the spans of texts that are not times, or the values that are not
/// numbers. `None` if no probe is needed. With an index on the column, if that is used, it reads only a few rows, for times
/// two per day.
pub fn sortable_probe(source: &BoundSource, column: &str, by_index: bool) -> Option<String> {
    let kind = source.entity.column(column)?.kind;
    let ways = source.column(column);
    let value = stored_value(source, column)?;
    let from = super::select::from_clause(source);
    let in_text = kind == ValueKind::Time && ways.iter().all(|w| w.stored == StoredAs::Plain);
    match kind {
        ValueKind::Time if in_text => {}
        ValueKind::Time | ValueKind::Integer | ValueKind::Real | ValueKind::Boolean => {
            return SortHope::Numbers.otherwise(source, column);
        }
        ValueKind::Text | ValueKind::Json | ValueKind::List => return None,
    }
    let is_indexed = matches!(ways, [BoundColumn { origin: BoundOrigin::Column { indexed: true, .. }, .. }]);
    if !(is_indexed && by_index) {
        let (spelling, sound) = (spelling(&value), sound_utc(&value));
        return Some(format!(
            "WITH counted(sound, spelled) AS MATERIALIZED (\
               SELECT count({value}) = total({sound}), count(DISTINCT CASE WHEN {sound} THEN {spelling} END) FROM {from}), \
             odd(value) AS MATERIALIZED (\
               SELECT DISTINCT {value} FROM {from} \
               WHERE NOT (SELECT sound FROM counted) AND {value} IS NOT NULL AND coalesce({sound}, 0) = 0 LIMIT {}) \
             SELECT CASE WHEN (SELECT count(*) FROM odd) > {ODD} \
               OR EXISTS (SELECT 1 FROM odd WHERE typeof(value) <> 'text' OR length(value) > {LONG}) THEN 2 \
               ELSE (SELECT spelled FROM counted) > 1 END, \
               (SELECT json_group_array(json_array(value, value)) FROM odd WHERE typeof(value) = 'text')",
            ODD + 1
        ));
    }
    let end = "char(1114111)";
    let (low_sound, high_sound) = (sound_utc("low"), sound_utc("high"));
    Some(format!(
        "WITH RECURSIVE days(day, low) AS (\
           SELECT substr(min({value}), 1, 10), min({value}) FROM {from} \
           UNION ALL \
           SELECT (SELECT substr(min({value}), 1, 10) FROM {from} WHERE {value} > day || {end}), \
                  (SELECT min({value}) FROM {from} WHERE {value} > day || {end}) \
           FROM days WHERE typeof(low) = 'text' AND length(low) BETWEEN 10 AND {LONG} \
           LIMIT 20000), \
         ends(low, high, dated) AS MATERIALIZED (\
           SELECT low, (SELECT max({value}) FROM {from} WHERE {value} >= low AND {value} <= day || {end}), date(day) = day \
           FROM days WHERE day IS NOT NULL), \
         seen(low, high, dated, lows, highs) AS MATERIALIZED (\
           SELECT low, high, dated, coalesce({low_sound}, 0), coalesce({high_sound}, 0) FROM ends), \
         texts AS (SELECT * FROM seen WHERE typeof(low) = 'text' AND typeof(high) = 'text'), \
         odd(span) AS (\
           SELECT json_array(low, high) FROM texts WHERE dated IS NOT 1 \
           UNION SELECT json_array(low, low) FROM texts WHERE dated AND NOT lows \
           UNION SELECT json_array(high, high) FROM texts WHERE dated AND NOT highs \
           LIMIT {}), \
         spelled(s) AS (\
           SELECT {} FROM seen WHERE lows UNION SELECT {} FROM seen WHERE highs) \
         SELECT CASE WHEN (SELECT count(*) FROM odd) > {ODD} THEN 2 \
           WHEN EXISTS (SELECT 1 FROM seen WHERE typeof(low) <> 'text' OR typeof(high) <> 'text' \
             OR length(low) NOT BETWEEN 10 AND {LONG} OR length(high) > {LONG}) THEN 2 \
           ELSE (SELECT count(*) FROM spelled) > 1 END, \
           (SELECT json_group_array(json(span)) FROM odd)",
        ODD + 1,
        spelling("low"),
        spelling("high"),
    ))
}

/// SQLite: features that distinguish the spellings of a time: its length, and the characters between date and time.
fn spelling(time: &str) -> String {
    format!("length({time}) || substr({time}, 11, 1)")
}

/// SQLite: whether a value is the text of a possible time in UTC that [`one_spelling`] can read; NULL for no.
fn sound_utc(time: &str) -> String {
    format!(
        "(typeof({time}) = 'text' \
         AND strftime('%Y-%m-%dT%H:%M:%S', substr({time}, 1, 19)) = replace(substr({time}, 1, 19), ' ', 'T') \
         AND replace(replace(substr({time}, 20), '+00:00', ''), 'Z', '') NOT GLOB '*[^.0-9]*')"
    )
}
