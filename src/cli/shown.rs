//! Output of `show` and `chain`: a row and its dependent rows, printed as they are read.

use std::collections::HashMap;

use super::document::Document;
use super::{CommandFailure, Session};
use crate::change::as_of::AsOf;
use crate::memory::mask::Mask;
use crate::memory::query::LinkedMemory;
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::context::{EpisodeChain, EpisodeOutline, LinkedMemories};
use crate::store::hanging::HangingRows;

/// A row in its context on its way to standard output.
pub struct PrintedContext<'a> {
    store: &'a Store,
    mask: Option<Mask>,
    document: Document,
}

impl<'a> PrintedContext<'a> {
    /// Begins in the format of the session.
    ///
    /// # Errors
    /// Code 2 for CSV.
    pub fn new(session: &Session<'_>, store: &'a Store) -> Result<Self, CommandFailure> {
        Ok(PrintedContext { store, mask: session.mask(), document: Document::new(session.format())? })
    }

    /// `show episode`.
    pub async fn episode(mut self, outline: EpisodeOutline, as_of: Option<AsOf>) -> Result<(), CommandFailure> {
        let EpisodeOutline { mut episode, chain, .. } = outline;
        self.mask(std::slice::from_mut(&mut episode));
        self.document.object("episode");
        self.document.row(&episode)?;
        self.document.end();
        drop(episode);
        self.list("segments", outline.segments).await?;
        self.list("canvas_context", outline.canvas).await?;
        self.list("feedback_context", outline.feedback).await?;
        self.document.object("chain");
        self.links(chain).await?;
        self.document.end();
        self.list("utility", outline.utility).await?;
        self.memories(outline.links).await?;
        self.list("events", outline.events).await?;
        self.list("accesses", outline.accesses).await?;
        self.document.member("findings", &outline.findings)?;
        self.finish(as_of)
    }

    /// `show` of any other row: its canonical columns, and its dependent rows under names of their own.
    pub async fn row(mut self, mut row: Row, as_of: Option<AsOf>) -> Result<(), CommandFailure> {
        let id = [row.id().to_owned()];
        let named: Vec<String> = row.list("reference_case_ids").into_iter().map(str::to_owned).collect();
        let profile: Vec<String> = row.text("profile_id").map(str::to_owned).into_iter().collect();
        let parts: &[(&str, Entity, &'static str, &[String])] = match row.entity {
            Entity::Case => &[
                ("references", Entity::Case, "id", &named),
                ("referenced_by", Entity::Case, "reference_case_ids", &id),
                ("profile", Entity::Profile, "id", &profile),
            ],
            Entity::Profile => {
                &[("policies", Entity::Policy, "profile_id", &id), ("cases", Entity::Case, "profile_id", &id)]
            }
            Entity::Memory => &[("links", Entity::MemoryLink, "memory_id", &id)],
            _ => &[],
        };
        self.mask(std::slice::from_mut(&mut row));
        self.document.row(&row)?;
        for (name, entity, column, values) in parts {
            let rows = self.store.contexts().hanging(*entity, column, values).await?;
            self.list(name, rows).await?;
        }
        self.finish(as_of)
    }

    /// `chain`.
    pub async fn chain(mut self, chain: EpisodeChain) -> Result<(), CommandFailure> {
        self.links(chain).await?;
        self.document.finish().map(|_| ())
    }

    fn finish(mut self, as_of: Option<AsOf>) -> Result<(), CommandFailure> {
        if let Some(as_of) = as_of {
            self.document.member("as_of", &as_of)?;
        }
        self.document.finish().map(|_| ())
    }

    fn mask(&self, rows: &mut [Row]) {
        if let Some(mask) = &self.mask {
            rows.iter_mut().for_each(|row| mask.row(row));
        }
    }

    async fn list(&mut self, name: &str, rows: HangingRows) -> Result<(), CommandFailure> {
        list(&mut self.document, name, (self.store, self.mask.as_ref()), rows).await
    }

    /// The episodes of a chain from the root, the children, and notes on errors in it.
    async fn links(&mut self, chain: EpisodeChain) -> Result<(), CommandFailure> {
        let EpisodeChain { chain, children, .. } = chain;
        self.document.list("chain", chain.ids.len());
        for id in &chain.ids {
            if let Some(mut row) = self.store.row(Entity::Episode, id).await?.filter(|_| self.document.is_read()) {
                self.mask(std::slice::from_mut(&mut row));
                self.document.item();
                self.document.row(&row)?;
                self.document.end();
            }
        }
        self.document.end();
        self.list("children", children).await?;
        self.document.member("cycle", &chain.cycle)?;
        self.document.member("missing_parent", &chain.missing_parent)
    }

    /// The links to memories, each with the memory that it names.
    async fn memories(&mut self, links: HangingRows) -> Result<(), CommandFailure> {
        self.document.list("memories", links.len());
        let mut parts = self.store.contexts().parts(links);
        let mut memories = LinkedMemories::new(self.store.contexts());
        while self.document.is_read() {
            let mut links = parts.next().await?;
            if links.is_empty() {
                break;
            }
            while !links.is_empty() {
                let (count, mut found) = memories.of(&links).await?;
                self.mask(&mut found);
                self.mask(&mut links[..count]);
                let mut known: HashMap<&str, &Row> = HashMap::new();
                for memory in &found {
                    known.entry(memory.id()).or_insert(memory);
                }
                self.document.items(links[..count].iter().map(|link| LinkedMemory::new(link, &known)))?;
                links.drain(..count);
            }
        }
        self.document.end();
        Ok(())
    }
}

/// Prints rows as a list in a document, part by part.
pub async fn list(
    document: &mut Document,
    name: &str,
    (store, mask): (&Store, Option<&Mask>),
    rows: HangingRows,
) -> Result<(), CommandFailure> {
    document.list(name, rows.len());
    let mut parts = store.contexts().parts(rows);
    while document.is_read() {
        let mut rows = parts.next().await?;
        if rows.is_empty() {
            break;
        }
        if let Some(mask) = mask {
            rows.iter_mut().for_each(|row| mask.row(row));
        }
        document.items(&rows)?;
    }
    document.end();
    Ok(())
}
