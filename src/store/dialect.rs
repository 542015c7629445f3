//! Differences between the two engines in SQL.

use crate::layout::{BoundColumn, BoundOrigin, Engine};
use crate::memory::ValueKind;
use crate::store::fetched::{FetchedValue, Param};
use crate::store::row_number::HIDDEN;

/// Quotes an identifier, whatever characters it contains.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.trim_start_matches(HIDDEN).replace('"', "\"\""))
}

/// Quotes a table, with its schema if it has one.
pub fn table(schema: &str, name: &str) -> String {
    if schema.is_empty() { quote(name) } else { format!("{}.{}", quote(schema), quote(name)) }
}

/// Builds the SQL that joins the elements of a list in a column, or the members of an object, to its row, as `item` with
/// `value` and its place `key`. A value that is not JSON, or has neither there, has no elements. SQLite also accepts
/// numbers that JSON does not have, and a JSON text that contains JSON.
pub fn each(engine: Engine, column: &str, path: &[String]) -> String {
    let text = |step: &String| format!("'{}'", step.replace('\'', "''"));
    match engine {
        Engine::Sqlite => {
            let step = |step: &String| match step.parse::<usize>() {
                Ok(place) => format!("[{place}]"),
                Err(_) => format!(".\"{}\"", step.replace('"', "\\\"")),
            };
            let path = text(&format!("${}", path.iter().map(step).collect::<String>()));
            format!(
                "JOIN json_each((SELECT CASE CASE WHEN json_valid(held, 2) THEN json_type(held, {path}) END \
                 WHEN 'array' THEN json_extract(held, {path}) WHEN 'object' THEN (SELECT json_group_array(\
                 CASE WHEN m.type IN ('object', 'array') THEN json(m.value) ELSE m.value END) \
                 FROM json_each(held, {path}) AS m) ELSE '[]' END FROM (SELECT CASE WHEN json_valid(told, 2) \
                 AND json_type(told) = 'text' THEN json_extract(told, '$') ELSE told END AS held \
                 FROM (SELECT CAST({column} AS TEXT) AS told)))) AS item"
            )
        }
        Engine::Postgres => {
            let steps = path.iter().map(text).collect::<Vec<_>>().join(", ");
            // Only json keeps the members of an object in order.
            let held = format!("{column}::json #> ARRAY[{steps}]::text[]");
            format!(
                "CROSS JOIN LATERAL (SELECT e.value::jsonb AS value, e.place - 1 AS key FROM (\
                 SELECT a.value, a.place FROM json_array_elements(\
                 CASE json_typeof({held}) WHEN 'array' THEN {held} ELSE '[]'::json END) \
                 WITH ORDINALITY AS a(value, place) UNION ALL SELECT o.value, o.place FROM json_each(\
                 CASE json_typeof({held}) WHEN 'object' THEN {held} ELSE '{{}}'::json END) \
                 WITH ORDINALITY AS o(name, value, place)) AS e) AS item"
            )
        }
    }
}

/// The SQL expression of a column's value, in the form that an index can match.
pub fn expression(origin: &BoundOrigin) -> Option<String> {
    match origin {
        BoundOrigin::Column { alias, name, .. } => Some(format!("{}.{}", quote(alias), quote(name))),
        BoundOrigin::Key { engine, parts } => {
            let parts = parts.iter().map(expression).collect::<Option<Vec<_>>>()?;
            Some(match engine {
                Engine::Sqlite => {
                    format!("json_array({})", parts.iter().map(|p| member(p)).collect::<Vec<_>>().join(", "))
                }
                Engine::Postgres => {
                    let text = |p: &String| format!("coalesce(to_json({p})::text, 'null')");
                    let parts = parts.iter().map(text).collect::<Vec<_>>().join(" || ',' || ");
                    format!("('[' || {parts} || ']')")
                }
            })
        }
        BoundOrigin::Fields { engine, fields } => object(*engine, fields),
        BoundOrigin::Sql(sql) => Some(format!("({sql})")),
        BoundOrigin::Value(_) => None,
    }
}

/// A JSON object of some columns.
fn object(engine: Engine, fields: &[(String, BoundOrigin)]) -> Option<String> {
    let mut members = Vec::new();
    for (name, origin) in fields {
        let value = expression(origin)?;
        let value = if engine == Engine::Sqlite { member(&value) } else { value };
        members.push(format!("'{}', {value}", name.replace('\'', "''")));
    }
    let function = if engine == Engine::Sqlite { "json_object" } else { "json_build_object" };
    Some(format!("{function}({})", members.join(", ")))
}

/// SQLite: a value in a form that JSON allows. A single blob would make the whole statement fail.
fn member(value: &str) -> String {
    format!("CASE typeof({value}) WHEN 'blob' THEN CAST({value} AS TEXT) ELSE {value} END")
}

/// The declared type of a column; empty for an expression.
pub fn declared(origin: &BoundOrigin) -> &str {
    match origin {
        BoundOrigin::Column { declared, .. } => declared,
        BoundOrigin::Key { .. } | BoundOrigin::Fields { .. } | BoundOrigin::Sql(_) | BoundOrigin::Value(_) => "",
    }
}

/// PostgreSQL type of a column, for reading, comparing and binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PgType {
    /// text, varchar and everything that reads and compares as text.
    Text,
    /// uuid.
    Uuid,
    /// timestamp with time zone.
    Timestamptz,
    /// timestamp without time zone, taken as UTC.
    Timestamp,
    /// Whole numbers.
    Integer,
    /// numeric, real, double precision.
    Number,
    /// boolean.
    Boolean,
    /// json or jsonb.
    Json,
    /// Any array.
    Array,
    /// bytea.
    Bytes,
    /// oid and tid, the physical location of a row.
    Place,
}

impl PgType {
    /// Parses a type name in the format of `format_type`.
    pub fn of(declared: &str) -> PgType {
        match declared {
            d if d.ends_with("[]") => PgType::Array,
            "uuid" => PgType::Uuid,
            d if d.starts_with("timestamp") && d.ends_with("with time zone") => PgType::Timestamptz,
            "bytea" => PgType::Bytes,
            "oid" | "tid" => PgType::Place,
            "json" | "jsonb" => PgType::Json,
            "boolean" => PgType::Boolean,
            "smallint" | "integer" | "bigint" => PgType::Integer,
            "real" | "double precision" => PgType::Number,
            d if d.starts_with("numeric") => PgType::Number,
            d if d.starts_with("timestamp") || d == "date" => PgType::Timestamp,
            _ => PgType::Text,
        }
    }
}

/// The projection that reads a column in a form the codec knows, cut to `preview` characters if given.
pub fn project(engine: Engine, column: &BoundColumn, kind: ValueKind, preview: Option<usize>) -> Option<String> {
    let bare = expression(&column.origin)?;
    // A cut document or key could not be parsed.
    let preview = preview.filter(|_| column.inside.is_whole() && !matches!(column.origin, BoundOrigin::Key { .. }));
    if engine == Engine::Sqlite {
        return Some(match preview {
            // Only text is cut: a cut blob or JSON could not be parsed.
            Some(n) if kind == ValueKind::Text => beginning(&bare, n),
            _ => bare,
        });
    }
    let ty = match &column.origin {
        BoundOrigin::Sql(_) if kind == ValueKind::Time => PgType::Timestamptz,
        origin => PgType::of(declared(origin)),
    };
    // Encoded bytes that a layout author's own SQL reads are returned as they are.
    if matches!(column.origin, BoundOrigin::Sql(_)) && !column.inside.decode.is_empty() {
        return Some(bare);
    }
    Some(match ty {
        PgType::Timestamptz => {
            pg_time(&format!("({bare})::timestamptz AT TIME ZONE 'UTC'"), &format!("({bare})::timestamptz"))
        }
        PgType::Timestamp => pg_time(&format!("({bare})::timestamp"), &format!("({bare})::timestamp")),
        PgType::Array => format!("array_to_json({bare})::text"),
        PgType::Bytes | PgType::Integer | PgType::Boolean => bare,
        PgType::Number => format!("({bare})::float8"),
        PgType::Text if preview.is_some() && kind == ValueKind::Text => {
            beginning_postgres(&bare, preview.unwrap_or_default())
        }
        _ => format!("({bare})::text"),
    })
}

/// An SQLite value, cut to its first characters if it is text. `substr` ends at a NUL, so a text with one is not cut:
/// otherwise its rest would be hidden.
pub fn beginning(value: &str, characters: usize) -> String {
    // A character has at most four bytes.
    let bytes = 4 * characters;
    format!(
        "CASE WHEN typeof({value}) = 'text' AND instr(substr(CAST({value} AS BLOB), 1, {bytes}), x'00') = 0 \
         THEN substr({value}, 1, {characters}) ELSE {value} END"
    )
}

/// A PostgreSQL value as text, cut to its first characters. In a database with the encoding `SQL_ASCII` a character is
/// a byte, and a cut could split a character: there it is not cut.
pub fn beginning_postgres(value: &str, characters: usize) -> String {
    format!(
        "left(({value})::text, CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN {} ELSE {characters} END)",
        i32::MAX
    )
}

/// A timestamp in canonical form; infinite ones, and those BC, in PostgreSQL's form.
fn pg_time(expression: &str, written: &str) -> String {
    format!(
        "CASE WHEN isfinite({expression}) AND {expression} >= '0001-01-01' THEN to_char({expression}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
         ELSE ({written})::text END"
    )
}

/// The placeholder, with a cast to a type comparable with a column of that declared type.
pub fn placeholder(engine: Engine, number: usize, declared: &str) -> String {
    if engine == Engine::Sqlite {
        return format!("${number}");
    }
    let cast = match PgType::of(declared) {
        PgType::Uuid => "uuid",
        PgType::Timestamptz => "timestamptz",
        PgType::Timestamp => "timestamp",
        PgType::Integer => "bigint",
        PgType::Number => "numeric",
        PgType::Boolean => "boolean",
        PgType::Json => "jsonb",
        PgType::Array | PgType::Text => "text",
        PgType::Place => declared,
        PgType::Bytes => return format!("${number}"),
    };
    format!("${number}::{cast}")
}

/// Most values of a statement with numbered placeholders.
const NUMBERED: usize = 100;

/// Rewrites a statement with many values for SQLite to placeholders without numbers, and returns the value of each:
/// SQLite finds numbered ones by a linear search of their names, which takes seconds for thousands.
pub(super) fn unnumbered(sql: &str, params: Vec<Param>) -> (String, Vec<Param>) {
    if params.len() <= NUMBERED {
        return (sql.to_owned(), params);
    }
    let (mut plain, mut places) = (String::with_capacity(sql.len()), Vec::with_capacity(params.len()));
    let (mut quoted, mut rest) = (None, sql);
    while let Some(at) = rest.find(['\'', '"', '$']) {
        let sign = rest[at..].chars().next();
        let after = &rest[at + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let number = after[..digits].parse::<usize>().ok().filter(|_| quoted.is_none() && sign == Some('$'));
        if let Some(place) = number.and_then(|number| number.checked_sub(1)) {
            plain.push_str(&rest[..at]);
            plain.push('?');
            places.push(place);
            rest = &after[digits..];
            continue;
        }
        if sign != Some('$') && (quoted.is_none() || quoted == sign) {
            quoted = if quoted.is_none() { sign } else { None };
        }
        plain.push_str(&rest[..=at]);
        rest = after;
    }
    plain.push_str(rest);
    let in_order = places.iter().copied().eq(0..params.len());
    let value = |place: usize| params.get(place).cloned().unwrap_or(FetchedValue::Null);
    (plain, if in_order { params } else { places.into_iter().map(value).collect() })
}

/// The expression as a sort key: PostgreSQL text is ordered by its bytes, as in SQLite.
pub fn sort_key(engine: Engine, expression: &str, declared: &str) -> String {
    if engine == Engine::Postgres && PgType::of(declared) == PgType::Text {
        format!("({expression})::text COLLATE \"C\"")
    } else {
        expression.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_bound_in_the_order_of_their_places() {
        let values = |count: i64| (1..=count).map(FetchedValue::Integer).collect::<Vec<_>>();
        let marks = |of: std::ops::RangeInclusive<i64>| of.map(|n| format!("${n}")).collect::<Vec<_>>().join(",");
        let plain = |count: usize| vec!["?"; count].join(",");
        let few = unnumbered("SELECT $1, $1", values(1));
        assert_eq!(few, ("SELECT $1, $1".to_owned(), values(1)));
        let listed = unnumbered(&format!("x IN ({})", marks(1..=200)), values(200));
        assert_eq!(listed, (format!("x IN ({})", plain(200)), values(200)));
        // A value that is used twice, and text that only looks like a placeholder.
        let (sql, bound) = unnumbered(&format!("'$1''$2' \"a\"\"'$3\" $ $x $200 {}", marks(1..=200)), values(200));
        assert_eq!(sql, format!("'$1''$2' \"a\"\"'$3\" $ $x ? {}", plain(200)));
        assert_eq!(bound.len(), 201);
        assert_eq!((&bound[0], &bound[1..]), (&FetchedValue::Integer(200), &values(200)[..]));
    }
}
