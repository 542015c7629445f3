//! Receivers of rows. Readers know one type of them, so that each reader is compiled once, not for every caller.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::mpsc::Sender;

use super::fetched::RawRow;
use super::tally;

/// Makes something of a row, in a task that reads ahead.
pub type ReadRow<R> = Arc<dyn Fn(RawRow) -> R + Send + Sync>;

/// Takes what was made of each row, until it breaks off.
pub type TakeEach<'t, R> = dyn FnMut(R) -> ControlFlow<()> + Send + 't;

/// Taker of the rows of a statement, a batch at a time.
pub struct BatchTaker<'t> {
    target: BatchTarget<'t>,
    has_taken: bool,
    is_tallied: bool,
}

enum BatchTarget<'t> {
    /// Takes each row at once, until it breaks off.
    Rows(&'t mut TakeEach<'t, RawRow>),
    /// Takes a batch when it has room for one, as long as someone listens.
    Ahead(&'t Sender<Vec<RawRow>>),
}

impl<'t> BatchTaker<'t> {
    /// Makes one that takes each row as it comes.
    #[must_use]
    pub fn rows(each: &'t mut TakeEach<'t, RawRow>) -> Self {
        BatchTaker { target: BatchTarget::Rows(each), has_taken: false, is_tallied: false }
    }

    /// Makes one that takes batches when there is room for them.
    #[must_use]
    pub fn ahead(give: &'t Sender<Vec<RawRow>>) -> Self {
        BatchTaker { target: BatchTarget::Ahead(give), has_taken: false, is_tallied: false }
    }

    /// The same, with its rows among those that this process has read.
    #[must_use]
    pub fn tallied(self) -> Self {
        BatchTaker { is_tallied: true, ..self }
    }

    /// Whether any batch has come.
    #[must_use]
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
