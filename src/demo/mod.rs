//! A made-up memory database with a coherent story: agents and the people they work for, chains over days, canvases,
//! feedback, utilities, cases, logs, and awkward rows as in real databases.
//!
//! The same options give the same rows, on every machine.

mod awkward;
mod bank;
mod calendar;
mod canvas;
mod chance;
mod ids;
mod log;
mod moment;
mod phrase;
mod reaction;
mod rows;
mod scene;
mod segments;
mod shelf;
mod story;
mod topics;
mod vectors;
mod world;

use std::path::Path;

use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use crate::store::bulk::{BulkBatch, BulkError, ExistingTarget, Loader, NATIVE_SCHEMA};
use rows::{EPISODES, RowBatches, TABLES};
use story::StoryTeller;

/// Most batches that wait for the database: enough that neither side waits for the other, little in memory.
const WAITING: usize = 16;

/// Options for the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoOptions {
    /// Number of episodes, including awkward ones; segments, canvas events, feedback and so on are in proportion.
    pub episodes: u64,
    /// Number of episodes with a vector: the newest ones.
    pub vectors: u64,
    /// Seed of the story.
    pub seed: u64,
    /// End of the story; it began 120 days earlier.
    pub anchor: DateTime<Utc>,
    /// Action when the file exists already.
    pub existing: ExistingTarget,
}

impl Default for DemoOptions {
    /// 2,000 episodes up to 2026-06-15, at most 20,000 of them with vectors; nothing is overwritten.
    fn default() -> DemoOptions {
        let anchor = DateTime::from_timestamp(1_781_539_200, 0).unwrap_or_default();
        DemoOptions { episodes: 2_000, vectors: 20_000, seed: 1, anchor, existing: ExistingTarget::Refuse }
    }
}

/// Progress of writing the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoProgress {
    /// Rows are being written.
    Rows {
        /// Episodes written.
        episodes: u64,
        /// Number of episodes in all.
        of: u64,
    },
    /// Indexes are being built.
    Indexes {
        /// Indexes built.
        done: usize,
        /// Number of indexes in all.
        of: usize,
    },
}

/// Summary of the database made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Rows of each table.
    pub rows: Vec<(&'static str, u64)>,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Names of the awkward rows, in story order: each of these episodes is tagged `awkward` and `awkward:NAME`. A story of
/// fewer episodes has only the first ones.
pub fn awkward_names() -> impl Iterator<Item = &'static str> {
    awkward::names()
}

/// Makes the demo database at `path`: a SQLite file with the native layout. It appears there only when it is whole.
///
/// # Errors
/// [`BulkError::Exists`] if the file exists and `options` do not allow replacing it; else an error of the file system
/// or of SQLite.
pub async fn build(
    path: &Path,
    options: &DemoOptions,
    mut progress: impl FnMut(DemoProgress),
) -> Result<Summary, BulkError> {
    let mut loader = Loader::create(path, &NATIVE_SCHEMA, options.existing).await?;
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let told = *options;
    // Generating is pure computation; it ends with the story, or when the receiver is gone.
    let teller = tokio::task::spawn_blocking(move || tell(&told, |batch| sender.blocking_send(batch).is_ok()));
    let mut rows: Vec<(&'static str, u64)> = TABLES.iter().map(|table| (table.name, 0)).collect();
    while let Some(batch) = receiver.recv().await {
        let (table, count) = (batch.table, batch.rows() as u64);
        loader.insert(batch).await?;
        if let Some((_, sum)) = rows.iter_mut().find(|(name, _)| *name == table.name) {
            *sum += count;
            if table == &EPISODES {
                progress(DemoProgress::Rows { episodes: *sum, of: options.episodes });
            }
        }
    }
    if let Err(error) = teller.await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
    let bytes = loader.finish(|done, of| progress(DemoProgress::Indexes { done, of })).await?;
    Ok(Summary { rows, bytes })
}

/// Sends the whole story to `send`, table by table in batches, until that returns false.
fn tell(options: &DemoOptions, mut send: impl FnMut(BulkBatch) -> bool) {
    let mut story = StoryTeller::new(options);
    let mut batches = RowBatches::new();
    for number in 0..options.episodes {
        for row in story.scene(number).into_rows() {
            if !batches.add(row, &mut send) {
                return;
            }
        }
    }
    for row in story.ending() {
        if !batches.add(row, &mut send) {
            return;
        }
    }
    batches.flush(&mut send);
}
