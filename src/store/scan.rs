//! Every row of an entity in one read, in no order: for figures over a whole memory, where pages would cost too much.

use std::ops::ControlFlow;

use super::codec;
use super::derive;
use super::select::{Projection, narrow};
use super::{Store, StoreError};
use crate::memory::query::{Query, Start};
use crate::memory::{Entity, Row};

/// Rows read at a time where a derivation completes them.
const STRIDE: usize = 500;

impl Store {
    /// Hands every row of a query's entity, filters and columns to `each`, in no order, until it breaks off. Limit,
    /// order, start and canvas filter of the query do not matter.
    ///
    /// # Errors
    /// An entity that the database does not hold, or the engine's refusal.
    pub async fn each_row(
        &self,
        query: &Query,
        mut each: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let wanted: Option<Vec<&str>> = query.columns.as_ref().map(|columns| {
            let mut wanted = columns.clone();
            wanted.push("id");
            wanted.extend(query.filters.iter().map(|f| f.column));
            wanted
        });
        let sources = self.sources_of(query.entity)?;
        let derived = query.entity == Entity::Episode
            && wanted.as_ref().is_none_or(|w| w.iter().any(|c| derive::COLUMNS.contains(c)));
        if derived && sources.iter().any(|s| s.derive.is_some()) {
            return self.each_paged(query, each).await;
        }
        for source in sources {
            let mut projection = Projection::new(self.engine(), source, wanted.as_deref(), query.preview);
            projection.unparsed = query.unparsed;
            let mut statement = projection.select(source, &[]);
            for filter in &query.filters {
                narrow(self.engine(), source, filter, &mut statement);
            }
            let mut flow = ControlFlow::Continue(());
            let decoded = source.clone();
            let read = move |raw| codec::decode(&decoded, &projection, &raw);
            self.scan_ahead(&statement, read, |row| {
                if query.filters.iter().all(|f| f.matches(&row)) {
                    flow = each(row);
                }
                flow
            })
            .await?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn each_paged(&self, query: &Query, mut each: impl FnMut(Row) -> ControlFlow<()>) -> Result<(), StoreError> {
        let mut query = Query { limit: STRIDE, start: Start::First, order: None, canvas: None, ..query.clone() };
        loop {
            let page = self.page(&query).await?;
            for row in page.rows {
                if each(row).is_break() {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => query.start = Start::After(next),
                None => return Ok(()),
            }
        }
    }
}
