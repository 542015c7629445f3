//! Backfills that visit the rows of some entities and set columns of each row.

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::sources::{ERASED, HELD, RevisedRows, SourcePlace, UNREAD, note, noted, spare, with_owner, writable};
use super::{left_out, texts};
use crate::change::edit::{self, TextRemains};
use crate::change::held::HeldRows;
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::plan::{BadRow, JobCheck};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::lab::parents::EarliestStarts;
use crate::layout::BoundSource;
use crate::memory::{Entity, Row, text_check};
use crate::store::encode::{can_set, leads_back, plain_column, table_of};
use crate::store::stored::TableName;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow, keyed};
use crate::store::{Store, StoreError};

/// Verdict on a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowVerdict {
    /// The row stays unchanged.
    Keep,
    /// The row stays unchanged, because the deciding value is unreadable.
    Unread,
    /// These canonical columns are set to these values.
    Set(Vec<(&'static str, Value)>),
    /// The row cannot be handled, for this reason.
    Bad(String),
}

/// Rows of a source to judge together.
#[derive(Debug, Clone, Copy)]
pub struct RowBench<'a> {
    /// The database.
    pub store: &'a Store,
    /// Source of the rows.
    pub source: &'a BoundSource,
    /// The rows with the requested columns.
    pub found: &'a [WalkedRow],
    /// Columns to write, and which of them are empty.
    pub revising: &'a RevisedRows<'a>,
    /// Earliest starts of possible parents, read by the first batch that needs them.
    pub starts: &'a OnceCell<EarliestStarts>,
}

/// Judges rows, one verdict each, in order.
pub type Judge = for<'a> fn(RowBench<'a>) -> BoxFuture<'a, Result<Vec<RowVerdict>, ChangeError>>;

/// Checks the result.
pub type Verify = for<'a> fn(&'a Store) -> BoxFuture<'a, Result<Vec<JobCheck>, ChangeError>>;

/// The rows of one entity that a backfill visits.
#[derive(Debug)]
pub struct RowPart {
    /// Entity of the rows.
    pub entity: Entity,
    /// Canonical columns to read in addition to the id.
    pub reads: &'static [&'static str],
    /// Canonical columns that may be written; those without a column in a source are left out.
    pub writes: &'static [&'static str],
    /// Columns to write without which a source is skipped.
    pub needs: &'static [&'static str],
    /// Conditions by which the database can narrow the rows that still need it.
    pub narrow: &'static [NarrowCondition<'static>],
}

/// A backfill over rows.
pub struct RowBackfill {
    /// Name.
    pub name: &'static str,
    /// Name of the operation in the audit trail.
    pub operation: &'static str,
    /// The rows.
    pub parts: &'static [RowPart],
    /// The rule.
    pub judge: Judge,
    /// The rule as text, for people.
    pub rules: &'static [&'static str],
    /// Facts that users should know before the backfill is done.
    pub disclosures: &'static [&'static str],
    /// Reason why it cannot be undone; its entries then contain no values either.
    pub undo_reason: Option<&'static str>,
    /// Look at the result when everything is done, at what stays although it was to be removed: of one that only
    /// removes things from texts. So it is done to the rows of erased people too, and not to those of people under a legal
    /// hold, and within stored values, and what was computed of a text follows as with an edit.
    pub takes_away: Option<Verify>,
}

/// The backfill, if a source can store its result.
///
/// # Errors
/// [`ChangeError::Refused`] with the reason why there is none.
pub fn make(store: &Store, spec: &'static RowBackfill) -> Result<Box<dyn Job>, ChangeError> {
    // An existing but read-only source is a better reason than a missing one.
    let (there, missing): (Vec<&RowPart>, Vec<&RowPart>) =
        spec.parts.iter().partition(|part| store.sources_of(part.entity).is_ok());
    let mut why = None;
    for part in there.into_iter().chain(missing) {
        match writable(store, part.entity, part.needs) {
            Ok(_) => return Ok(Box::new(OverRows { spec, starts: OnceCell::new() })),
            Err(error) => why = Some(why.unwrap_or(error)),
        }
    }
    Err(match why {
        Some(ChangeError::Refused(reason)) if spec.takes_away.is_some() => {
            let by_hand = spec.parts.iter().find(|part| is_edited(store, part.entity));
            let by_hand = by_hand.map(|part| format!("; `edit {} ID COLUMN=VALUE` changes one of them", part.entity));
            ChangeError::Refused(reason + &by_hand.unwrap_or_default())
        }
        Some(why) => why,
        None => ChangeError::Refused("there is nothing to do it on".to_owned()),
    })
}

/// Whether an edit can write rows of an entity that cannot be walked because of composite ids.
fn is_edited(store: &Store, entity: Entity) -> bool {
    let is_edited = |source: &&BoundSource| source.is_writable() && keyed(source).is_err() && leads_back(source);
    store.sources_of(entity).is_ok_and(|sources| sources.iter().any(is_edited))
}

struct OverRows {
    spec: &'static RowBackfill,
    starts: OnceCell<EarliestStarts>,
}

impl OverRows {
    fn sources<'s>(&self, store: &'s Store) -> Vec<(&'static RowPart, &'s BoundSource)> {
        let of = |part: &'static RowPart| {
            let sources = writable(store, part.entity, part.needs).unwrap_or_default();
            let within = self.spec.takes_away.is_some();
            let has_place =
                move |s: &BoundSource, c: &str| if within { can_set(s, c) } else { plain_column(s, c).is_some() };
            let useful = move |s: &&BoundSource| part.writes.iter().any(|c| has_place(s, c));
            sources.into_iter().filter(useful).map(move |s| (part, s))
        };
        self.spec.parts.iter().flat_map(of).collect()
    }
}

impl Job for OverRows {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let mut tables: Vec<TableName> = self.sources(store).iter().map(|(_, s)| table_of(s)).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async move {
            let walk = |(part, source): (&RowPart, &'a BoundSource)| RowWalk {
                source,
                columns: &["id"],
                stored: &[],
                narrow: part.narrow.to_vec(),
            };
            Ok(Some(store.walks().walk_count_all(self.sources(store).into_iter().map(walk)).await?))
        })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(self, ask))
    }

    fn effects(&self) -> Vec<String> {
        self.spec.rules.iter().map(|r| (*r).to_owned()).collect()
    }

    fn disclosures(&self) -> Vec<String> {
        self.spec.disclosures.iter().map(|d| (*d).to_owned()).collect()
    }

    fn undo_reason(&self) -> Option<String> {
        self.spec.undo_reason.map(str::to_owned)
    }

    fn summed(&self, sums: &Map<String, Value>) -> Vec<String> {
        left_out(sums).into_iter().chain(texts::remains(sums)).collect()
    }

    fn verify<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Vec<JobCheck>, ChangeError>> {
        match self.spec.takes_away {
            Some(verify) => verify(store),
            None => Box::pin(async { Ok(Vec::new()) }),
        }
    }
}

async fn batch(job: &OverRows, ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
    let (spec, store) = (job.spec, ask.store);
    let sources = job.sources(store);
    let place = SourcePlace::read(ask.place);
    let mut draft = Draft::batch(store, ask.own, spec.operation, ChangeDanger::Guarded);
    draft.undo_reason = job.undo_reason();
    let Some((part, source)) = sources.get(place.source).copied() else {
        return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
    };
    let mut revising = RevisedRows::new(store, source, part.writes).await?;
    // A change that can be undone does not set the time of the last change, so that undoing leaves no trace.
    if spec.undo_reason.is_some() {
        revising.touch();
    }
    let (erased, mut held) = match spec.takes_away {
        Some(_) => (None, HeldRows::new(store).await?),
        None => (Erased::of(store).await?, HeldRows::default()),
    };
    let mut columns = with_owner(&[&["id"], part.reads].concat(), erased.as_ref());
    columns.extend(held.columns(part.entity).filter(|column| !part.reads.contains(column)));
    let walk = RowWalk { source, columns: &columns, stored: &revising.stored, narrow: part.narrow.to_vec() };
    let WalkedPart { rows: found, is_full } = store.walks().walk(&walk, place.after.as_ref(), ask.size).await?;
    let next = place.behind(found.last().map(|f| &f.key), is_full, sources.len());
    let verdicts =
        (spec.judge)(RowBench { store, source, found: &found, revising: &revising, starts: &job.starts }).await?;
    let judged = found.iter().zip(&verdicts);
    let changing = judged.filter(|(_, verdict)| **verdict != RowVerdict::Keep).map(|(found, _)| &found.row);
    held.learn(store, changing).await?;
    let mut bad = Vec::new();
    let (mut spared, mut kept, mut unread, mut remains) = (0, 0, 0, Vec::new());
    for (found, verdict) in found.iter().zip(verdicts) {
        let problem = match verdict {
            RowVerdict::Keep => continue,
            _ if held.keeps(&found.row) => {
                kept += 1;
                continue;
            }
            RowVerdict::Unread => {
                unread += 1;
                continue;
            }
            RowVerdict::Set(values) if erased.as_ref().is_some_and(|e| would_return(e, &found.row, &values)) => {
                spared += 1;
                continue;
            }
            RowVerdict::Bad(problem) => problem,
            RowVerdict::Set(mut values) => {
                let rewritten = if spec.takes_away.is_some() && revising.reaches_further(&values) {
                    rewritten(&mut draft, source, found, &mut values, &mut remains).await?
                } else {
                    None
                };
                let is_set = match rewritten {
                    Some(is_set) => Ok(is_set),
                    None => revising.row(&found.key, &found.stored, values.clone()),
                };
                match is_set {
                    Ok(true) if spec.undo_reason.is_some() => {
                        nameless(&mut draft, &found.row, &values);
                        continue;
                    }
                    Ok(true) => {
                        note(&mut draft, &found.row, &values);
                        continue;
                    }
                    Ok(false) => continue,
                    Err(problem) => problem,
                }
            }
        };
        bad.push(BadRow {
            entity: found.row.entity.name().to_owned(),
            id: text_check::check(found.row.id()).0,
            problem,
        });
    }
    revising.push(&mut draft);
    spare(&mut draft, ERASED, spared);
    spare(&mut draft, HELD, kept);
    spare(&mut draft, UNREAD, unread);
    texts::note_remains(&mut draft, &remains);
    Ok(JobBatch { plan: draft.seal_batch(), next, seen: found.len(), bad })
}

/// Sets texts of a row as an edit does: also within stored values, with derived values updated. Returns whether any is
/// set; `None` if that is refused, for example because others refer to a hash: then texts in columns of their own are
/// left to be set alone.
async fn rewritten<'s>(
    draft: &mut Draft<'s>,
    source: &'s BoundSource,
    found: &WalkedRow,
    values: &mut Vec<(&'static str, Value)>,
    remains: &mut Vec<TextRemains>,
) -> Result<Option<bool>, ChangeError> {
    let located = match draft.seek_in(source, found.row.id()).await {
        Err(ChangeError::Store(StoreError::CannotHold(_) | StoreError::Ambiguous(..))) => None,
        located => located?,
    };
    // A text changed since it was judged is judged again at the end.
    let is_same = |row: &Row| values.iter().all(|(column, _)| row.get(column) == found.row.get(column));
    let Some(located) = located.filter(|located| is_same(&located.row)) else { return Ok(Some(false)) };
    loop {
        match edit::rewrite(draft, &located, values).await {
            Ok(remaining) => {
                remains.push(remaining);
                return Ok(Some(true));
            }
            Err(ChangeError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        let all = values.len();
        values.retain(|(column, _)| plain_column(source, column).is_some());
        if values.is_empty() {
            return Ok(Some(false));
        }
        if values.len() == all {
            remains.push(TextRemains::of_all(source));
            return Ok(None);
        }
    }
}

/// Whether new values would bring an erased person back: it is their row, or the values name them.
fn would_return(erased: &Erased<'_>, row: &Row, values: &[(&'static str, Value)]) -> bool {
    erased.owns(row) || values.iter().any(|(_, value)| erased.is_within(value.into()))
}

/// Records a change without the removed secrets, which must not be stored.
fn nameless(draft: &mut Draft<'_>, row: &Row, values: &[(&'static str, Value)]) {
    noted(draft, row.entity, &text_check::check(row.id()).0, values, |column| text_check::withheld(row.get(column)));
}
