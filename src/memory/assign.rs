//! Values as people write them: text parsed by the column's kind.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::entity::{Column, ValueKind};
use super::{json, time};

/// Parses a value for a column: text unchanged, numbers, true or false, times and ages, JSON, lists as JSON or
/// comma-separated. `null` empties the column, `'null'` in quotes is the word.
///
/// # Errors
/// The format that the column takes.
pub fn read_value(column: &Column, text: &str, now: DateTime<Utc>) -> Result<Value, &'static str> {
    if text == "null" {
        return Ok(Value::Null);
    }
    Ok(match column.kind {
        ValueKind::Text => Value::from(if text == "'null'" { "null" } else { text }),
        ValueKind::Integer => text.parse::<i64>().map(Value::from).map_err(|_| "a whole number")?,
        ValueKind::Real => {
            let number = text.parse::<f64>().ok().filter(|x| x.is_finite());
            number.map(Value::from).ok_or("a number")?
        }
        ValueKind::Boolean => text.parse::<bool>().map(Value::from).map_err(|_| "true or false")?,
        ValueKind::Time => {
            let moment = time::parse_moment(text, now);
            moment.map(Value::from).ok_or("a time such as 2026-02-04T10:00:00Z, or an age such as 7d")?
        }
        ValueKind::List if !text.trim_start().starts_with('[') => {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
        }
        ValueKind::Json | ValueKind::List => {
            json::exactly(text).map_err(|_| "JSON, its whole numbers within 64 bits")?
        }
    })
}

/// Formats a value so that it can be parsed again: text unchanged, lists comma-separated if none of their texts has a
/// comma.
pub fn write_value(column: &Column, value: &Value) -> String {
    match (column.kind, value) {
        (_, Value::Null) => String::new(),
        (_, Value::String(text)) if column.kind != ValueKind::Json => text.clone(),
        (ValueKind::List, Value::Array(items)) => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item| item.as_str().filter(|text| !text.contains([',', '[']))).collect();
            texts.map_or_else(|| value.to_string(), |texts| texts.join(", "))
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;

    fn column(entity: Entity, name: &str) -> &'static Column {
        entity.column(name).expect("a column")
    }

    #[test]
    fn values_are_read_by_their_kind() {
        let read = |entity, name, text| read_value(column(entity, name), text, DateTime::default());
        assert_eq!(read(Entity::Episode, "title", "a, b"), Ok(json!("a, b")));
        assert_eq!(read(Entity::Episode, "tags", "a, b"), Ok(json!(["a", "b"])));
        assert_eq!(read(Entity::Episode, "tags", "null"), Ok(Value::Null));
        assert_eq!(read(Entity::Case, "reward", "0.5"), Ok(json!(0.5)));
        assert_eq!(read(Entity::Case, "prompt", "{\"message\": 1}"), Ok(json!({"message": 1})));
        assert_eq!(read(Entity::Feedback, "rating", "4.5"), Err("a whole number"));
        assert!(read(Entity::Episode, "started_at", "soon").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(text in "[a-z ,\\[]{1,12}", other in "[a-z]{1,5}", number in -5_i64..5) {
            let now = DateTime::default();
            let again = |entity, name: &str, value: Value| {
                let column = column(entity, name);
                prop_assert_eq!(read_value(column, &write_value(column, &value), now), Ok(value));
                Ok(())
            };
            prop_assume!(text.trim() == text && text != "null");
            again(Entity::Episode, "tags", json!([text.clone(), other]))?;
            again(Entity::Episode, "title", json!(text))?;
            again(Entity::Feedback, "rating", json!(number))?;
            again(Entity::Case, "prompt", json!({"message": text}))?;
        }
    }
}
