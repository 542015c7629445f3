//! Reliability of the stored order of a column: determined once, and cached while the database is open.

use super::codec;
use super::fetched::FetchedValue;
use super::order::{SortHope, Sortable, is_of_numbers, one_time, sortable_probe};
use super::{Store, StoreError};
use crate::layout::{BoundSource, Engine};

/// A column of a source by which rows are ordered.
#[derive(Clone, Copy)]
pub struct StoredOrder<'s> {
    /// The database.
    pub store: &'s Store,
    /// Source that holds the rows.
    pub source: &'s BoundSource,
    /// The canonical column.
    pub column: &'s str,
}

impl StoredOrder<'_> {
    /// The statement that determines the reliability of the order, if it is in question.
    pub fn probe(self) -> Option<String> {
        let is_sqlite = self.store.engine() == Engine::Sqlite;
        is_sqlite.then(|| sortable_probe(self.source, self.column, self.is_stored())).flatten()
    }

    /// Whether all values are stored ones: a preview of changed rows has no index.
    fn is_stored(self) -> bool {
        !self.store.ahead().changes(self.source, self.column)
    }

    /// Returns the assumption for the order while its reliability is unknown.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn hope(self) -> Result<Option<SortHope>, StoreError> {
        let is_open = self.probe().is_some_and(|probe| self.store.sortable.is_open(&probe));
        if !is_open || self.source.keep.is_some() {
            return Ok(None);
        }
        self.assumption().await
    }

    async fn assumption(self) -> Result<Option<SortHope>, StoreError> {
        if is_of_numbers(self.source, self.column) { Ok(Some(SortHope::Numbers)) } else { self.spelling().await }
    }

    /// The spelling that unindexed times may all have.
    async fn spelling(self) -> Result<Option<SortHope>, StoreError> {
        let Some(one) = one_time(self.source, self.column) else { return Ok(None) };
        match self.store.fetch_text(&one).await?.pop().and_then(|mut row| row.pop()) {
            Some(FetchedValue::Text(time)) => Ok(SortHope::spelling(&time)),
            _ => Ok(None),
        }
    }

    /// Determines the reliability of the stored order.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn sortable(self) -> Result<Sortable, StoreError> {
        let Some(probe) = self.probe() else { return Ok(Sortable::AsStored) };
        let known = &self.store.sortable;
        if let Some(sortable) = known.known(&probe) {
            return Ok(sortable);
        }
        // The same assumption that the first row of a list tests, so that all its pages have the same order.
        let hope = self.assumption().await?;
        let but = match &hope {
            Some(hope) => self.all_but(hope).await?,
            None => None,
        };
        let sortable = match (but, hope) {
            (Some(sortable), _) => sortable,
            (None, Some(SortHope::Numbers)) => Sortable::No,
            (None, _) if self.is_stored() => Sortable::of(self.store.fetch_stored(&probe).await?.first()),
            (None, _) => Sortable::of(self.store.fetch_text(&probe).await?.first()),
        };
        known.keep(probe, sortable.clone());
        Ok(sortable)
    }

    /// The order if only few values break the assumption, and none of these can be read.
    async fn all_but(self, hope: &SortHope) -> Result<Option<Sortable>, StoreError> {
        let Some(otherwise) = hope.otherwise(self.source, self.column) else { return Ok(None) };
        let odd = self.store.fetch_text(&otherwise).await?;
        Ok(Sortable::but(hope, odd, |value| codec::is_read(self.source, self.column, value)))
    }
}
