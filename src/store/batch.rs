//! Receivers of rows. Readers use this one type, so that each reader is compiled once and not per caller.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::mpsc::Sender;

use super::fetched::RawRow;
use super::tally;

/// Converts a row, in a task that reads ahead.
pub type ReadRow<R> = Arc<dyn Fn(RawRow) -> R + Send + Sync>;

/// Receives each converted row, until it breaks.
pub type TakeEach<'t, R> = dyn FnMut(R) -> ControlFlow<()> + Send + 't;

/// Receives the rows of a statement in batches.
pub struct BatchTaker<'t> {
    target: BatchTarget<'t>,
    has_taken: bool,
    is_tallied: bool,
}

enum BatchTarget<'t> {
    /// Passes each row on immediately, until the receiver breaks.
    Rows(&'t mut TakeEach<'t, RawRow>),
    /// Sends a batch when the channel has room, as long as there is a receiver.
    Ahead(&'t Sender<Vec<RawRow>>),
}

impl<'t> BatchTaker<'t> {
    /// Creates a taker that passes each row on as it comes.
    pub fn rows(each: &'t mut TakeEach<'t, RawRow>) -> Self {
        BatchTaker { target: BatchTarget::Rows(each), has_taken: false, is_tallied: false }
    }

    /// Creates a taker that sends batches when there is room.
    pub fn ahead(give: &'t Sender<Vec<RawRow>>) -> Self {
        BatchTaker { target: BatchTarget::Ahead(give), has_taken: false, is_tallied: false }
    }

    /// Counts its rows among those that this process has read.
    pub fn tallied(self) -> Self {
        BatchTaker { is_tallied: true, ..self }
    }

    /// Whether any batch has arrived.
    pub fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Takes a batch.
    pub async fn take(&mut self, rows: Vec<RawRow>) -> ControlFlow<()> {
        self.has_taken = true;
        if self.is_tallied {
            tally::read(rows.len());
        }
        match &mut self.target {
            BatchTarget::Rows(each) => rows.into_iter().try_for_each(each),
            BatchTarget::Ahead(give) => give.send(rows).await.map_or(ControlFlow::Break(()), ControlFlow::Continue),
        }
    }
}
