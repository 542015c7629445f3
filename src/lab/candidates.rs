//! The rows from which a ranking chooses, read as a stream: only the best are kept.

use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::LabError;
use super::situation::ResolvedQuestion;
use crate::memory::digest::digest;
use crate::memory::filter::Filter;
use crate::memory::packed::id_table::IdTable;
use crate::memory::vector::{ComparedBy, VectorTally};
use crate::memory::{Entity, Row};
use crate::recall::among;
use crate::recall::keyword::{ComparedText, WordFinder};
use crate::recall::shortlist::{FoundLikeness, Placing, Shortlist};
use crate::store::Store;
use crate::store::scratch::sorter;
use crate::store::vector::{EachCosine, KeptVectors};

/// Filters and columns for reading the candidates of an entity.
pub(super) struct CandidateRows<'a> {
    /// Entity of the rows.
    pub kind: Entity,
    /// Filters that select the rows.
    pub filters: &'a [Filter],
    /// Columns that rankings use.
    pub columns: &'a [&'static str],
    /// Words to look up in an index, if there is one.
    pub words: &'a [String],
}

impl CandidateRows<'_> {
    /// Calls `each` with every row.
    pub async fn each(&self, store: &Store, each: impl FnMut(Row) + Send) -> Result<(), LabError> {
        Ok(store.each_candidate(self.kind, self.filters, self.columns, self.words, each).await?)
    }
}

/// Texts of episodes and memories that are only searched for words.
const TOLD: &[&str] = &["title", "summary", "detail", "observation", "result", "text"];

/// Most bytes of such a text that a row keeps after the search.
const KEPT: usize = 16_384;

/// Most bytes of cosines in memory: rows look up theirs in random order. Enough for two million vectors.
const LOOKED_UP: usize = 32 << 20;

/// An episode or memory after the search for words, without its long texts, which would fill the memory while it waits.
/// They are read again with the whole row.
pub(super) fn without_long_texts(mut row: Row) -> Row {
    // Cases are compared with each other by their texts.
    if row.entity != Entity::Case {
        for column in TOLD {
            if row.text(column).is_some_and(|text| text.len() > KEPT) {
                row.set(column, Value::Null);
            }
        }
    }
    row
}

/// Similarity of rows to the question, ready to be looked up.
pub(super) enum Measure {
    /// There is nothing to compare.
    Nothing,
    /// By vectors, which may be cached.
    Cosines(Box<IdTable<2>>, Option<Box<NumberedVectors>>),
    /// By the words in a text of the rows.
    Words(WordFinder, ComparedText),
}

/// Cached vectors, one for each row, to be found by row.
pub(super) struct NumberedVectors {
    /// The vectors.
    pub vectors: Arc<KeptVectors>,
    numbers: IdTable<2>,
}

impl NumberedVectors {
    /// Numbers the vectors that can be compared with a query; `None` if a row has several.
    fn of(vectors: Arc<KeptVectors>, query: &[f32]) -> Result<Option<Self>, LabError> {
        let mut numbers = sorter().within(LOOKED_UP);
        let Some(compared) = vectors.packed().compared(query) else { return Ok(None) };
        for number in 0..compared.len() {
            let Some(id) = compared.id(number) else { return Ok(None) };
            numbers.add([digest(&id), number as u64]);
        }
        let (numbers, all) = (IdTable::of(numbers, |_, _| {})?, compared.len());
        Ok((numbers.len() == all).then_some(NumberedVectors { vectors, numbers }))
    }

    /// The number of a row's vector.
    pub fn of_row(&self, row: &Row) -> Option<u32> {
        self.numbers.get(row.id()).map(|[_, number]| number as u32)
    }
}

impl Measure {
    /// Compares the stored vectors of an entity with the question, or prepares to search `text` for its words. Returns
    /// the name of the measure too, and counts of the vectors.
    pub async fn of(
        store: &Store,
        kind: Entity,
        filters: &[Filter],
        asked: &ResolvedQuestion,
        text: ComparedText,
    ) -> Result<(Measure, &'static str, Option<(VectorTally, ComparedBy)>), LabError> {
        let name = among::likeness_name(asked.vector.is_some());
        let Some(vector) = &asked.vector else {
            return Ok((Measure::Words(WordFinder::new(&asked.words), text), name, None));
        };
        let mut cosines = sorter().within(LOOKED_UP);
        let mut add = |id: &str, cosine: f64| cosines.add([digest(id), cosine.to_bits()]);
        let EachCosine { mut tally, mut by, kept } =
            store.embeddings().each_cosine(kind, filters, vector, &mut add).await?;
        for vector in &asked.more_vectors {
            let more = store.embeddings().each_cosine(kind, filters, vector, &mut add).await?;
            if more.tally.compared > tally.compared {
                (tally, by) = (more.tally, more.by);
            }
        }
        // A row may have several vectors, and so may the question: the nearest pair counts.
        let nearer = |first: &mut [u64; 2], next: &[u64; 2]| {
            if f64::from_bits(next[1]).total_cmp(&f64::from_bits(first[1])).is_gt() {
                *first = *next;
            }
        };
        let cosines = IdTable::of(cosines, nearer)?;
        let kept = kept.map(|kept| NumberedVectors::of(kept, vector)).transpose()?.flatten();
        let kept = kept.filter(|kept| kept.numbers.len() == cosines.len());
        Ok((Measure::Cosines(Box::new(cosines), kept.map(Box::new)), name, Some((tally, by))))
    }

    /// Fails if the similarity of a row could not be read.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> io::Result<()> {
        if let Measure::Cosines(cosines, kept) = self {
            cosines.check()?;
            kept.as_ref().map_or(Ok(()), |kept| kept.numbers.check())?;
        }
        Ok(())
    }

    /// The compared vectors, if cached.
    pub fn kept(&self) -> Option<&NumberedVectors> {
        if let Measure::Cosines(_, kept) = self { kept.as_deref() } else { None }
    }

    /// Returns the similarity of a row.
    pub fn likeness(&self, row: &Row) -> FoundLikeness {
        match self {
            Measure::Nothing => FoundLikeness::Cosine(None),
            Measure::Cosines(cosines, _) => {
                FoundLikeness::Cosine(cosines.get(row.id()).map(|[_, cosine]| f64::from_bits(cosine)))
            }
            Measure::Words(finder, _) if finder.is_empty() => FoundLikeness::Cosine(Some(0.0)),
            Measure::Words(finder, text) => FoundLikeness::Words { held: finder.held_by(row, *text), apart: 0 },
        }
    }

    fn finder(&self) -> Option<&WordFinder> {
        match self {
            Measure::Words(finder, _) => Some(finder),
            Measure::Nothing | Measure::Cosines(..) => None,
        }
    }

    /// Creates a list for rows ranked by this similarity.
    pub fn shortlist<'a>(&'a self, room: usize, place: &'a Placing<'a>) -> Shortlist<'a> {
        Shortlist::new(room, self.finder(), place)
    }
}
