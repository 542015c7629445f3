//! Finds the indexed columns of SQLite that contain no blobs: there, equal texts are one value, so the index also gives
//! the order of the rows.

use std::fmt::Write as _;

use super::dialect;
use super::fetched::FetchedValue;
use super::session::Sessions;
use crate::layout::{BoundOrigin, BoundSource};

/// Marks the columns whose index ends without a blob, as blobs sort last. A source that cannot be queried stays
/// unmarked.
pub(super) async fn look_for_bytes(sessions: &Sessions, sources: &mut [BoundSource]) {
    for source in sources {
        let table = dialect::table(&source.table.0, &source.table.1);
        let mut sql = String::new();
        for origin in own_columns(source) {
            if let Some(column) = dialect::expression(origin) {
                let before = if sql.is_empty() { "SELECT" } else { "," };
                let _ = write!(sql, "{before} EXISTS (SELECT 1 FROM {table} AS t WHERE {column} >= x'')");
            }
        }
        if sql.is_empty() {
            continue;
        }
        let found = sessions.fetch(&sql, &[]).await.ok().and_then(|mut rows| rows.pop()).unwrap_or_default();
        for (origin, found) in own_columns(source).zip(found) {
            if let BoundOrigin::Column { bytes, .. } = origin {
                *bytes = found != FetchedValue::Integer(0);
            }
        }
    }
}

/// The indexed columns of a source's own table.
fn own_columns(source: &mut BoundSource) -> impl Iterator<Item = &mut BoundOrigin> {
    let origins = source.columns.iter_mut().flatten().map(|way| &mut way.origin);
    origins.filter(|origin| matches!(origin, BoundOrigin::Column { alias, indexed: true, .. } if alias == "t"))
}
