//! Differences between the two engines in the text of statements.

use serde_json::value::RawValue;

use crate::layout::{BoundColumn, BoundOrigin, Engine};
use crate::memory::{ValueKind, time};
use crate::store::fetched::{FetchedValue, Param, affinity};
use crate::store::row_number::HIDDEN;

/// An identifier in quotes, safe whatever it holds.
#[must_use]
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.trim_start_matches(HIDDEN).replace('"', "\"\""))
}

/// A table in quotes, with its schema where it has one.
#[must_use]
pub fn table(schema: &str, name: &str) -> String {
    if schema.is_empty() { quote(name) } else { format!("{}.{}", quote(schema), quote(name)) }
}

/// Builds the SQL that joins the elements of a list within a column to its row, as `item` with `value` and `key`. A
/// value that is no JSON, or has no list there, has no elements. SQLite also reads numbers that JSON has not, and a text of
/// JSON whose text is JSON.
#[must_use]
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
                "JOIN json_each((SELECT CASE WHEN json_valid(held, 2) AND json_type(held, {path}) = 'array' \
                 THEN json_extract(held, {path}) ELSE '[]' END FROM (SELECT CASE WHEN json_valid(told, 2) \
                 AND json_type(told) = 'text' THEN json_extract(told, '$') ELSE told END AS held \
                 FROM (SELECT CAST({column} AS TEXT) AS told)))) AS item"
            )
        }
        Engine::Postgres => {
            let steps = path.iter().map(text).collect::<Vec<_>>().join(", ");
            let list = format!("{column}::jsonb #> ARRAY[{steps}]::text[]");
            format!(
                "CROSS JOIN LATERAL (SELECT e.value, e.place - 1 AS key FROM jsonb_array_elements(\
                 CASE jsonb_typeof({list}) WHEN 'array' THEN {list} ELSE '[]'::jsonb END) \
                 WITH ORDINALITY AS e(value, place)) AS item"
            )
        }
    }
}

/// The bare SQL expression of a column's value, as an index would know it.
#[must_use]
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

/// SQLite: a value as JSON may hold it. One blob would make the whole statement fail.
fn member(value: &str) -> String {
    format!("CASE typeof({value}) WHEN 'blob' THEN CAST({value} AS TEXT) ELSE {value} END")
}

/// The declared type of a column; empty for an expression.
#[must_use]
pub fn declared(origin: &BoundOrigin) -> &str {
    match origin {
        BoundOrigin::Column { declared, .. } => declared,
        BoundOrigin::Key { .. } | BoundOrigin::Fields { .. } | BoundOrigin::Sql(_) | BoundOrigin::Value(_) => "",
    }
}

/// Meaning of a column's PostgreSQL type for reading, comparing and binding.
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
    /// oid and tid, which tell where a row is stored.
    Place,
}

impl PgType {
    /// Reads a type name as `format_type` gives it.
    #[must_use]
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

/// The projection that reads a column in a form that the codec knows, cut to `preview` characters if asked.
#[must_use]
pub fn project(engine: Engine, column: &BoundColumn, kind: ValueKind, preview: Option<usize>) -> Option<String> {
    let bare = expression(&column.origin)?;
    // A part of a document or of a key could not be read.
    let preview = preview.filter(|_| column.inside.is_whole() && !matches!(column.origin, BoundOrigin::Key { .. }));
    if engine == Engine::Sqlite {
        return Some(match preview {
            // Only text is cut: a cut blob or JSON could not be read.
            Some(n) if kind == ValueKind::Text => beginning(&bare, n),
            _ => bare,
        });
    }
    let ty = match &column.origin {
        BoundOrigin::Sql(_) if kind == ValueKind::Time => PgType::Timestamptz,
        origin => PgType::of(declared(origin)),
    };
    // What the author's own SQL reads of encoded bytes comes as it is.
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
            format!("left(({bare})::text, {})", preview.unwrap_or_default())
        }
        _ => format!("({bare})::text"),
    })
}

/// A value of SQLite, of a text the first characters. `substr` ends at a NUL: a text with one is whole, so that nothing hides
/// behind it.
#[must_use]
pub fn beginning(value: &str, characters: usize) -> String {
    // A character has four bytes at most.
    let bytes = 4 * characters;
    format!(
        "CASE WHEN typeof({value}) = 'text' AND instr(substr(CAST({value} AS BLOB), 1, {bytes}), x'00') = 0 \
         THEN substr({value}, 1, {characters}) ELSE {value} END"
    )
}

/// A timestamp as the one canonical text; an infinite one, and one before our era, as PostgreSQL writes it.
fn pg_time(expression: &str, written: &str) -> String {
    format!(
        "CASE WHEN isfinite({expression}) AND {expression} >= '0001-01-01' THEN to_char({expression}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
         ELSE ({written})::text END"
    )
}

/// The placeholder with the cast that lets it meet a column of that declared type.
#[must_use]
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

/// Whether a column of a type stores a value of another database as it is, as far as the value tells.
#[must_use]
pub(super) fn takes(engine: Engine, declared: &str, raw: &FetchedValue) -> bool {
    let text = match raw {
        FetchedValue::Null => return true,
        FetchedValue::Text(text) => text.clone(),
        FetchedValue::Integer(number) => number.to_string(),
        FetchedValue::Real(number) => number.to_string(),
        FetchedValue::BadText(_) | FetchedValue::Bytes(_) => {
            return engine == Engine::Sqlite || PgType::of(declared) == PgType::Bytes;
        }
    };
    if engine == Engine::Sqlite {
        // A text that looks like a number becomes that number.
        let turns =
            affinity(declared).is_some_and(|affinity| affinity != "TEXT") && matches!(raw, FetchedValue::Text(_));
        let is_number = || text.trim().parse::<f64>().is_ok_and(f64::is_finite);
        return !turns || !is_number() || is_plain(&text);
    }
    match PgType::of(declared) {
        PgType::Text => !text.contains('\0') && limit(declared).is_none_or(|most| text.chars().count() <= most),
        PgType::Array | PgType::Bytes | PgType::Place => true,
        PgType::Uuid => uuid::Uuid::parse_str(&text).is_ok(),
        PgType::Integer => match declared {
            "smallint" => text.parse::<i16>().is_ok(),
            "integer" => text.parse::<i32>().is_ok(),
            _ => text.parse::<i64>().is_ok(),
        },
        PgType::Number => holds_number(declared, &text),
        PgType::Boolean => {
            const WORDS: [&str; 12] = ["t", "true", "y", "yes", "on", "1", "f", "false", "n", "no", "off", "0"];
            WORDS.contains(&text.trim().to_ascii_lowercase().as_str())
        }
        PgType::Json => serde_json::from_str::<&RawValue>(&text).is_ok() && !text.contains("\\u0000"),
        PgType::Timestamptz | PgType::Timestamp if matches!(text.trim(), "infinity" | "-infinity") => true,
        PgType::Timestamptz => holds_time(&text).is_some(),
        PgType::Timestamp if declared == "date" => {
            holds_time(&text).is_some_and(|utc| utc.contains("T00:00:00.000000"))
        }
        // Its zone is left out.
        PgType::Timestamp => holds_time(&text).is_some_and(|utc| {
            let bare = text.replace(' ', "T");
            bare.len() <= 10 || utc.get(..16) == bare.get(..16)
        }),
    }
}

/// Letters that a column of texts takes at most.
fn limit(declared: &str) -> Option<usize> {
    declared.starts_with("character").then(|| declared.split_once('(')?.1.trim_end_matches(')').parse().ok()).flatten()
}

/// The canonical spelling of a time that loses nothing by it.
fn holds_time(text: &str) -> Option<String> {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    time::canonical(text).filter(|_| digits <= 6)
}

/// Whether a number is spelled as an engine spells it, so that its text tells no more than the number.
fn is_plain(text: &str) -> bool {
    let Ok(number) = text.parse::<f64>() else { return false };
    let plain = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    // As PostgreSQL writes powers of ten.
    let power = text.split_once('e').is_some_and(|(_, power)| power.len() > 2 && power.starts_with(['+', '-']));
    power || number.to_string() == plain || text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}

/// Whether a column of numbers holds each digit of one.
fn holds_number(declared: &str, text: &str) -> bool {
    let Ok(number) = text.trim().parse::<f64>() else { return false };
    let Some((_, limits)) = declared.split_once('(') else {
        return declared == "numeric" || !number.is_finite() || text.contains(['e', 'E']) || is_plain(text);
    };
    let mut limits =
        limits.trim_end_matches(')').split(',').map(|limit| limit.trim().parse::<usize>().unwrap_or_default());
    let (precision, scale) = (limits.next().unwrap_or_default(), limits.next().unwrap_or_default());
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = whole.trim_start_matches(['+', '-', '0']).len();
    decimals.trim_end_matches('0').len() <= scale && digits + scale <= precision && number.is_finite()
}

/// Values up to which a statement keeps its numbered placeholders.
const NUMBERED: usize = 100;

/// A statement of many values for SQLite, its placeholders `$1`, `$2`, … without numbers, and the value of each: SQLite
/// looks numbers up by their names, one after the other, so that thousands of them take seconds.
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

/// The expression as a sort key: text in PostgreSQL is ordered by its bytes, as SQLite does.
#[must_use]
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
    fn a_column_takes_what_it_neither_changes_nor_refuses() {
        let text = |text: &str| FetchedValue::Text(text.to_owned());
        for (declared, takes, not) in [
            (
                "INTEGER",
                &["5", "-7", "words", "1.5", "1.50", "5e-05", "1e+15"][..],
                &["007", "1e3", " 5", "12345678901234567890.5"][..],
            ),
            ("TEXT", &["007", "1e3"], &[]),
        ] {
            for value in takes {
                assert!(super::takes(Engine::Sqlite, declared, &text(value)), "{declared} {value}");
            }
            for value in not {
                assert!(!super::takes(Engine::Sqlite, declared, &text(value)), "{declared} {value}");
            }
        }
        for (declared, takes, not) in [
            (
                "timestamp with time zone",
                &["2026-02-04T10:00:00.000001Z", "2026-02-04 10:00:00+02"][..],
                &["now", "04/05/2026", "2026-02-04T10:00:00.0000001Z", ""][..],
            ),
            (
                "timestamp without time zone",
                &["2026-02-04T10:00:00Z", "2026-02-04 10:00", "2026-02-04", "infinity"],
                &["2026-02-04T10:00:00+05:00"],
            ),
            ("date", &["2026-02-04", "2026-02-04 00:00:00"], &["2026-02-04T10:00Z"]),
            ("character varying(3)", &["abc"], &["abcd"]),
            ("numeric(4,2)", &["1.23", "1.230", "-12"], &["1.239", "12345", "x"]),
            ("numeric", &["12345678901234567890.123456789", "NaN"], &["x"]),
            ("double precision", &["0.1", "5", "1.50", "1.5e3", "NaN"], &["0.1234567890123456789"]),
            ("integer", &["5"], &["2147483648", "5.0"]),
            ("boolean", &["1", "false", "Yes"], &["2"]),
            ("jsonb", &["{}", "[1]"], &["{", "'a'"]),
            ("text", &["now"], &["a\0b"]),
        ] {
            for value in takes {
                assert!(super::takes(Engine::Postgres, declared, &text(value)), "{declared} {value}");
            }
            for value in not {
                assert!(!super::takes(Engine::Postgres, declared, &text(value)), "{declared} {value}");
            }
        }
        assert!(!super::takes(Engine::Postgres, "text", &FetchedValue::Bytes(vec![255])));
    }

    #[test]
    fn many_values_are_bound_in_the_order_of_their_places() {
        let values = |count: i64| (1..=count).map(FetchedValue::Integer).collect::<Vec<_>>();
        let marks = |of: std::ops::RangeInclusive<i64>| of.map(|n| format!("${n}")).collect::<Vec<_>>().join(",");
        let plain = |count: usize| vec!["?"; count].join(",");
        let few = unnumbered("SELECT $1, $1", values(1));
        assert_eq!(few, ("SELECT $1, $1".to_owned(), values(1)));
        let listed = unnumbered(&format!("x IN ({})", marks(1..=200)), values(200));
        assert_eq!(listed, (format!("x IN ({})", plain(200)), values(200)));
        // A value that is named twice, and what only looks like a place.
        let (sql, bound) = unnumbered(&format!("'$1''$2' \"a\"\"'$3\" $ $x $200 {}", marks(1..=200)), values(200));
        assert_eq!(sql, format!("'$1''$2' \"a\"\"'$3\" $ $x ? {}", plain(200)));
        assert_eq!(bound.len(), 201);
        assert_eq!((&bound[0], &bound[1..]), (&FetchedValue::Integer(200), &values(200)[..]));
    }
}
