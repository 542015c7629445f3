//! Columns that a job relies on: the columns of its tables when it was started, and how they differ later.

use serde_json::{Map, Value};

use crate::store::stored::TableName;
use crate::store::{Store, StoreError};

/// The columns of some tables with their types, as JSON: table to column to type. Read now, not from the cache.
///
/// # Errors
/// The engine's refusal; a missing table has no columns.
pub async fn columns(store: &Store, tables: &[TableName]) -> Result<Value, StoreError> {
    let mut all = Map::new();
    for table in tables {
        let mut columns = Map::new();
        match store.shapes().shape_now(table).await {
            Ok(shape) => {
                columns.extend(shape.columns.iter().map(|c| (c.name.clone(), Value::from(c.declared.clone()))));
            }
            Err(StoreError::NoTable(_)) => {}
            Err(error) => return Err(error),
        }
        all.insert(table.title(), Value::Object(columns));
    }
    Ok(Value::Object(all))
}

/// Describes how the columns differ; empty if they do not. A new column is not a difference, since a job does not rely
/// on it.
pub fn differences(then: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (table, columns) in then.as_object().into_iter().flatten() {
        let current = &now[table];
        for (column, declared) in columns.as_object().into_iter().flatten() {
            let (was, is) = (declared.as_str().unwrap_or_default(), current[column].as_str());
            match is {
                None => found.push(format!("{table}.{column} ({was}) is gone")),
                Some(is) if is != was => found.push(format!("{table}.{column} was {was} and is {is}")),
                Some(_) => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_gone_or_of_another_type_is_named_and_what_is_new_is_not() {
        let then = json!({ "episodes": { "id": "text", "canvas_ids": "json", "title": "text" } });
        let now = json!({ "episodes": { "id": "text", "canvas_ids": "text", "mood": "text" } });
        assert_eq!(
            differences(&then, &now),
            ["episodes.canvas_ids was json and is text", "episodes.title (text) is gone"]
        );
        assert!(differences(&then, &then).is_empty());
        assert_eq!(differences(&then, &json!({})).len(), 3);
    }
}
