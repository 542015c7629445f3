//! Rankings by vectors from the rows that an earlier recall cached in memory. Every row's score is bounded; those that
//! may be among the best are ranked like rows that are read. The answer equals that of a recall that reads all rows, or
//! there is none.

use super::LabError;
use super::candidates::CandidateRows;
use super::recall::{eligibility, never_recalled};
use super::situation::ResolvedQuestion;
use crate::memory::filter::Filter;
use crate::memory::packed::preselect::{Bounds, Preselection};
use crate::memory::packed::rows::PackedRows;
use crate::memory::packed::vectors::PackedComparison;
use crate::memory::vector::VectorTally;
use crate::memory::{Entity, Row, time};
use crate::recall::among::{self, HeldBack, HeldRows};
use crate::recall::answer::RecallRequest;
use crate::recall::preselect::{of_boosted, of_likeness, recency};
use crate::recall::rank::{self, RankedRow, Ranking};
use crate::recall::shortlist::{FoundLikeness, Placing, Shortlist, ShortlistEnd};
use crate::store::Store;

/// Columns of an episode that rankings by vectors use.
pub(super) const OF_EPISODE: &[&str] =
    &["started_at", "status", "canvas_action_count", "feedback_score", "success", "outcome"];

/// The same of a memory.
pub(super) const OF_MEMORY: &[&str] = &["created_at", "status", "expires_at"];

/// Rows between two checks of the memory limit.
const STRIDE: usize = 1_024;

/// The best rows of a ranking, with facts found on the way.
pub(super) struct KeptFind {
    /// The first rows in order.
    pub rows: Vec<RankedRow>,
    /// Counts of the vectors by outcome.
    pub tally: VectorTally,
    /// Number of rows that may be recalled.
    pub candidates: usize,
    /// The row that is the query itself, if any.
    pub itself: Option<Row>,
    /// The rows that agents never get.
    pub held: HeldRows,
}

/// State of a scan over cached rows.
struct KeptLook<'a> {
    rows: &'a PackedRows,
    vectors: PackedComparison<'a>,
    /// For each kind of row its score without similarity and recency, or why agents never get it; `None` if the ranking does
    /// not consider it.
    kinds: Vec<Option<Result<f64, HeldBack>>>,
    ranking: Ranking,
    now: Option<i64>,
}

impl KeptLook<'_> {
    /// The bounds of the cosine of a row; `None` for a row without a vector.
    fn likeness(&self, at: usize) -> Option<Bounds> {
        self.vectors.cosine(self.rows.vector(at)?)
    }

    /// The bounds of a row's score; `None` for a row that is not a candidate.
    fn score(&self, at: usize, others: f64) -> Option<Bounds> {
        let likeness = self.likeness(at);
        if self.ranking == Ranking::Similar {
            return likeness.map(of_likeness);
        }
        let age = self.rows.micros(at).zip(self.now).map_or(0.0, |(micros, now)| recency(micros, now));
        Some(of_boosted(likeness.unwrap_or(Bounds { low: 0.0, high: 0.0 }), age, others))
    }
}

/// The best `room` rows by boosted recall or by similarity, as `place` ranks them. `None` if rows or vectors are not
/// cached, if they do not determine the result, or if one of the rows was changed meanwhile.
pub(super) async fn first_rows(
    store: &Store,
    of: &CandidateRows<'_>,
    (request, asked): (&RecallRequest, &ResolvedQuestion),
    room: usize,
    place: &Placing<'_>,
) -> Result<Option<KeptFind>, LabError> {
    let (vectors, Some(query), []) = (store.embeddings(), &asked.vector, &asked.more_vectors[..]) else {
        return Ok(None);
    };
    let Some((kept, rows)) = vectors.kept(of.kind, of.filters) else { return Ok(None) };
    let Some(compared) = kept.packed().compared(query) else { return Ok(None) };
    let never = never_recalled(store);
    let eligibility = eligibility(request, &never);
    let of_kind = |row: Row| {
        if !eligibility.counts(&row) {
            return None;
        }
        if let Some(held) = eligibility.held_back(&row) {
            return Some(Err(held));
        }
        let others = if request.inquiry.ranking == Ranking::Similar {
            0.0
        } else {
            rank::boosted(&row, Some(0.0), among::likeness_name(true), &request.at).score.total
        };
        Some(Ok(others))
    };
    let look = KeptLook {
        rows: &rows,
        vectors: compared,
        kinds: rows.kinds().map(of_kind).collect(),
        ranking: request.inquiry.ranking,
        now: time::epoch_micros(&request.at),
    };
    let own = asked.row.as_ref().filter(|own| own.entity == of.kind);
    let own: Vec<usize> = own.map(|own| rows.places(own.id())).unwrap_or_default();
    let (mut selection, mut candidates, mut itself) = (Preselection::new(room), 0, None);
    let mut held = HeldRows::default();
    for at in 0..rows.len() {
        let others = match rows.kind(at).and_then(|kind| *look.kinds.get(kind)?) {
            None => continue,
            Some(Err(why)) => {
                held.add(why, || Some(rows.row(at)?.id().to_owned()));
                continue;
            }
            Some(Ok(others)) => others,
        };
        if own.contains(&at) {
            itself = itself.or_else(|| rows.row(at));
            continue;
        }
        candidates += 1;
        if let Some(bounds) = look.score(at, others) {
            // Scores that are this near are tied.
            selection.offer(at, Bounds { low: bounds.low - rank::TIE, high: bounds.high + rank::TIE });
        }
    }
    let first = selection.close();
    let Some(ranked) = ranked(store, of, query, &look, &first, room, place).await? else {
        return Ok(None);
    };
    if !are_stored(store, of, &ranked).await? {
        vectors.forget(of.kind, of.filters);
        return Ok(None);
    }
    Ok(Some(KeptFind { rows: ranked, tally: kept.tally(query), candidates, itself, held }))
}

/// Ranks rows by their stored vectors.
async fn ranked(
    store: &Store,
    of: &CandidateRows<'_>,
    query: &[f32],
    look: &KeptLook<'_>,
    first: &[usize],
    room: usize,
    place: &Placing<'_>,
) -> Result<Option<Vec<RankedRow>>, LabError> {
    let mut doubtful = Vec::new();
    let mut list = Shortlist::new(room, None, place);
    for at in first {
        let Some(row) = look.rows.row(*at) else { return Ok(None) };
        match look.likeness(*at) {
            Some(bounds) if !bounds.are_exact() => doubtful.push((*at, (row.id().to_owned(), bounds))),
            exact => list.offer(row, FoundLikeness::Cosine(exact.map(|bounds| bounds.low))),
        }
    }
    let (places, asked): (Vec<usize>, Vec<(String, Bounds)>) = doubtful.into_iter().unzip();
    let Some(cosines) = store.embeddings().cosines_again((of.kind, of.filters), query, &asked).await? else {
        return Ok(None);
    };
    for (at, cosine) in places.into_iter().zip(cosines) {
        let Some(row) = look.rows.row(at) else { return Ok(None) };
        list.offer(row, FoundLikeness::Cosine(Some(cosine)));
    }
    match list.close() {
        ShortlistEnd::Rows(found) => Ok(Some(found.rows)),
        ShortlistEnd::Again(_) => Ok(None),
    }
}

/// Whether the stored rows still equal the cached ones.
async fn are_stored(store: &Store, of: &CandidateRows<'_>, ranked: &[RankedRow]) -> Result<bool, LabError> {
    let ids: Vec<String> = ranked.iter().map(|ranked| ranked.row.id().to_owned()).collect();
    let mut wanted = vec!["id"];
    wanted.extend(of.columns);
    wanted.extend(of.filters.iter().flat_map(Filter::columns));
    let stored = store.related_among(of.kind, "id", &ids, of.filters, Some(&wanted)).await?;
    let is_same = |row: &Row| {
        let same = |stored: &&Row| wanted.iter().all(|column| stored.get(column) == row.get(column));
        stored.iter().any(|stored| same(&stored))
    };
    Ok(ranked.iter().all(|ranked| is_same(&ranked.row)))
}

/// Packs rows while they are read.
pub(super) struct PackingRows {
    rows: Option<PackedRows>,
    room: usize,
}

impl PackingRows {
    /// Creates a packer with a limit in bytes.
    pub fn new(kind: Entity, room: usize) -> Self {
        PackingRows { rows: Some(PackedRows::new(kind)), room }
    }

    /// Adds a row, with the number of its vector.
    pub fn push(&mut self, row: &Row, vector: Option<u32>) {
        if let Some(rows) = &mut self.rows {
            rows.push(row, vector);
            if rows.len().is_multiple_of(STRIDE) && rows.bytes() > self.room {
                self.rows = None;
            }
        }
    }

    /// The packed rows; `None` if there are too many.
    pub fn close(self) -> Option<PackedRows> {
        let mut rows = self.rows.filter(|rows| rows.bytes() <= self.room)?;
        rows.close();
        Some(rows)
    }
}
