//! Raw tables, for the core.

use super::load::failure;
use crate::console::core::RequestFailure;
use crate::console::screens::tables::messages::{TableEntry, TablePage};
use crate::layout::draft;
use crate::memory::growth::TableGrowth;
use crate::memory::query::CountKind;
use crate::store::Store;
use crate::store::raw_table::{RawQuery, RawTable};

pub async fn tables(store: &Store) -> Result<Vec<TableEntry>, RequestFailure> {
    let tables = store.raw().raw_tables().await;
    let tables = tables.map_err(|e| failure("The tables could not be read", &e))?;
    Ok(tables.into_iter().map(entry).collect())
}

fn entry(table: RawTable) -> TableEntry {
    TableEntry {
        kind: table.kind.to_owned(),
        rows: table.rows.and_then(|rows| u64::try_from(rows).ok()),
        rows_reason: table.rows_reason,
        about: table.count_kind == CountKind::About,
        columns: table.columns.iter().map(|column| (column.name.clone(), column.declared.clone())).collect(),
        entities: table.entities.iter().map(|entity| entity.replace('_', " ")).collect(),
        unread: table.unread,
        key: table.key,
        name: table.title,
    }
}

pub async fn rows(store: &Store, name: &str, after: Option<String>) -> Result<TablePage, RequestFailure> {
    const PREVIEW: usize = 400;
    let what = "The rows of the table could not be read";
    let table = store.raw().raw_table(name).await.map_err(|e| failure(what, &e))?;
    let columns = table.columns.iter().map(|column| column.name.clone()).collect();
    let query = RawQuery::parse(table, &[], None);
    let mut query = query.map_err(|why| RequestFailure::bare(what, why))?;
    (query.after, query.preview) = (after, Some(PREVIEW));
    let page = store.raw().raw_page(&query).await.map_err(|e| failure(what, &e))?;
    let rows = page.rows.into_iter().map(|row| row.into_iter().map(|cell| cell.part().to_value()).collect()).collect();
    Ok(TablePage { columns, rows, next: page.next })
}

/// Rows of a table by day of creation, or the reason why that is unknown.
pub async fn growth(store: &Store, name: &str) -> Result<Result<TableGrowth, String>, RequestFailure> {
    let grown = async { store.raw().growth(&store.raw().raw_table(name).await?).await };
    grown.await.map_err(|e| failure("The growth of the table could not be counted", &e))
}

pub async fn draft(store: &Store) -> Result<String, RequestFailure> {
    let what = "No layout was drafted";
    let tables = store.raw().sampled_tables().await.map_err(|e| failure(what, &e))?;
    let location = store.location();
    let drafted =
        draft::draft(&draft::name_of(location), &format!("Drafted from {location}"), &tables, &store.engine());
    drafted.map_err(|why| RequestFailure::new(what, why, "write one by hand: docs/layouts.md"))
}
