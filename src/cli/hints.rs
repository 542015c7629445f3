//! Suggestions for an empty list: existing values in place of an unknown one.

use super::{Session, output};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::nearest::{nearest, unknown};
use crate::memory::query::Query;
use crate::memory::{Entity, Personal, ValueKind};
use crate::store::Store;

/// Most rows, the newest, read for the values of a column.
const LOOKED_AT: usize = 2_000;

/// Most different values of a column of words: with more, it holds ids or titles.
const WORDS: usize = 60;

/// Prints to standard error the existing values for each condition of an empty list whose value no row has. Failures
/// are ignored, as the list itself was answered, and so are personal values if they are masked.
pub async fn values(session: &Session<'_>, store: &Store, query: &Query) {
    for filter in query.filters.iter().flat_map(Filter::alternatives) {
        let (Operand::Text(word), Operator::Equal | Operator::Has) = (&filter.value, filter.op) else { continue };
        say(session, store, query.entity, filter.column, word).await;
    }
    if let Some(canvas) = &query.canvas {
        say(session, store, Entity::CanvasEvent, "canvas_type", &canvas.canvas_type).await;
        if let Some(action) = &canvas.action {
            say(session, store, Entity::CanvasEvent, "action", action).await;
        }
    }
}

/// The same for conditions given by special options: column and word.
pub async fn options(session: &Session<'_>, store: &Store, entity: Entity, asked: &[(&'static str, Option<&str>)]) {
    for (column, word) in asked {
        if let Some(word) = word {
            say(session, store, entity, column, word).await;
        }
    }
}

async fn say(session: &Session<'_>, store: &Store, entity: Entity, column: &'static str, word: &str) {
    let is_personal = entity.column(column).is_some_and(|about| about.personal != Personal::No);
    if column == "id" || is_personal && session.mask().is_some() {
        return;
    }
    let Some(known) = known(store, entity, column).await else { return };
    if known.is_empty() || known.len() > WORDS || known.iter().any(|value| value == word) {
        return;
    }
    // Ids do not help someone who typed another one, unless they are similar.
    if column.ends_with("_id") && nearest(word, known.iter().map(String::as_str)).is_none() {
        return;
    }
    let what = format!("{} with the {column}", entity.title());
    output::tell(&unknown(&what, word, known.iter().map(String::as_str)));
}

/// The values of a column in the newest rows, the most frequent first.
async fn known(store: &Store, entity: Entity, column: &'static str) -> Option<Vec<String>> {
    let about = entity.column(column).filter(|about| matches!(about.kind, ValueKind::Text | ValueKind::List))?;
    let query = Query { columns: Some(vec![about.name]), limit: LOOKED_AT, ..Query::new(entity) };
    let page = store.page(&query).await.ok()?;
    let mut counted: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for row in &page.rows {
        let values = row.text(column).into_iter().chain(row.list(column));
        values.for_each(|value| *counted.entry(value.to_owned()).or_default() += 1);
    }
    let mut known: Vec<(usize, String)> = counted.into_iter().map(|(value, count)| (count, value)).collect();
    known.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    Some(known.into_iter().map(|(_, value)| value).collect())
}
