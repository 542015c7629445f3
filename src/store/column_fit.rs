//! Whether a column stores a value from another database unchanged, or would change or refuse it.

use serde_json::value::RawValue;

use super::dialect::PgType;
use super::fetched::{FetchedValue, affinity};
use super::shape::ShapeColumn;
use crate::layout::Engine;
use crate::memory::time;

impl ShapeColumn {
    /// Whether the column stores a value of another database unchanged, as far as the value shows.
    pub fn takes(&self, engine: Engine, raw: &FetchedValue) -> bool {
        takes(engine, &self.base, raw)
    }
}

/// Whether a column of a type stores a value of another database unchanged, as far as the value shows.
fn takes(engine: Engine, declared: &str, raw: &FetchedValue) -> bool {
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
        // A text that looks like a number is converted to it.
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
        // The column drops the time zone.
        PgType::Timestamp => holds_time(&text).is_some_and(|utc| {
            let bare = text.replace(' ', "T");
            bare.len() <= 10 || utc.get(..16) == bare.get(..16)
        }),
    }
}

/// Most characters of a text column.
fn limit(declared: &str) -> Option<usize> {
    declared.starts_with("character").then(|| declared.split_once('(')?.1.trim_end_matches(')').parse().ok()).flatten()
}

/// The canonical form of a time, if it loses nothing.
fn holds_time(text: &str) -> Option<String> {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    time::canonical(text).filter(|_| digits <= 6)
}

/// Whether a number has the engine's own spelling, so that its text carries no more than the number.
fn is_plain(text: &str) -> bool {
    let Ok(number) = text.parse::<f64>() else { return false };
    let plain = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    // PostgreSQL's form of powers of ten.
    let power = text.split_once('e').is_some_and(|(_, power)| power.len() > 2 && power.starts_with(['+', '-']));
    power || number.to_string() == plain || text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}

/// Whether a numeric column keeps every digit of a number.
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
}
