//! Parent suggestions for a stored episode, or for one about to be recorded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;

use super::{LabError, each, silent};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::first_of::FirstOf;
use crate::memory::packed::column::PagedColumn;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::query::Query;
use crate::memory::vector::{Likeness, VectorProbe, cosine_of};
use crate::memory::{Entity, Row, time};
use crate::recall::parents::{self, Suggestion};
use crate::store::Store;
use crate::store::scratch::scratch;

/// Most episodes kept one by one that have no start, or took longer than the limit for a parent. Of more long ones only
/// the longest duration is known; with more that have no start, nothing is.
const LONG_ONES: usize = 100_000;

/// Most bytes of possible parents held while several episodes are examined.
const HELD: usize = 64 << 20;

/// Episodes whose vectors are read together.
const TOGETHER: usize = 2_000;

/// Most suggestions for one episode: the most similar.
pub const SUGGESTED: usize = 100;

/// Episodes whose possible parents are read together with those of one, and the hours within which they must begin.
const AHEAD: usize = 500;
const HOURS_AHEAD: f64 = 12.0;

/// Most bytes of ids and ends of possible parents held.
const PLACED: usize = 4 << 20;

/// Columns of a possible parent.
const COLUMNS: &[&str] = &["id", "agent_id", "status", "started_at", "ended_at", "title"];

/// Cosine by a fast comparison below which no exact one exceeds [`parents::ALIKE`]: they differ by less than a
/// hundredth for vectors of ordinary length with less than 65,536 dimensions.
const SURELY_OTHER: f64 = parents::ALIKE - 0.01;

/// Earliest starts of possible parents. Episodes are found by start time, so knowing these once spares every search a
/// scan over all episodes of an agent.
#[derive(Debug, Default)]
pub struct EarliestStarts {
    /// End and start of episodes that took longer than [`parents::WITHIN_HOURS`], in microseconds since 1970.
    long: Vec<(i64, i64)>,
    /// The longest duration in microseconds, if there are too many to keep.
    longest: Option<i64>,
    /// End and id of those that ended but have no start.
    startless: Vec<(i64, String)>,
}

impl EarliestStarts {
    /// Reads when all episodes began and ended.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn read(store: &Store) -> Result<EarliestStarts, LabError> {
        let mut starts = EarliestStarts::default();
        let columns = Some(vec!["started_at", "ended_at"]);
        each(store, &Query { columns, ..Query::new(Entity::Episode) }, &silent, |row| {
            let micros = |column: &str| row.text(column).and_then(time::epoch_micros);
            let Some(ended) = micros("ended_at") else { return };
            match micros("started_at") {
                Some(started) if ended - started > micros_of(parents::WITHIN_HOURS) => starts.add(ended, started),
                None if starts.startless.len() <= LONG_ONES => starts.startless.push((ended, row.id().to_owned())),
                _ => {}
            }
        })
        .await?;
        Ok(starts)
    }

    fn add(&mut self, ended: i64, started: i64) {
        if self.longest.is_some() || self.long.len() == LONG_ONES {
            let took = |(ended, started): (i64, i64)| ended - started;
            let known = self.long.drain(..).map(took).max().max(self.longest);
            self.longest = known.max(Some(took((ended, started))));
        } else {
            self.long.push((ended, started));
        }
    }

    /// The earliest possible start of a parent of an episode that began at `moment`, and the ids of those without a
    /// start; `None` if these are too many.
    fn before(&self, moment: &str) -> Option<(String, Vec<String>)> {
        let at = time::epoch_micros(moment).filter(|_| self.startless.len() <= LONG_ONES)?;
        let window = at - micros_of(parents::WITHIN_HOURS)..=at;
        let startless = self.startless.iter().filter(|(ended, _)| window.contains(ended)).map(|(_, id)| id.clone());
        let long = self.long.iter().filter(|(ended, _)| window.contains(ended)).map(|(_, started)| *started).min();
        let usual = window.start() - self.longest.unwrap_or(micros_of(parents::WITHIN_HOURS));
        let earliest = time::from_epoch(long.map_or(usual, |long| long.min(usual)), time::EpochUnit::Microseconds)?;
        Some((earliest, startless.collect()))
    }
}

/// The possible parents of an episode, most similar first, at most [`SUGGESTED`]: see [`parents::suggest`]. `vector` is
/// the episode's own; without it the stored one is read. `starts` makes it fast, if known.
///
/// # Errors
/// The engine's refusal.
pub async fn suggest(
    store: &Store,
    episode: &Row,
    vector: Option<&[f32]>,
    starts: Option<&EarliestStarts>,
) -> Result<Vec<Suggestion>, LabError> {
    let stored;
    let vector = match vector {
        Some(vector) => vector,
        None => {
            match store.embeddings().vectors(Entity::Episode, &[episode.id().to_owned()]).await?.remove(episode.id()) {
                Some(found) => {
                    stored = found;
                    &stored
                }
                None => return Ok(Vec::new()),
            }
        }
    };
    let Some(started) = episode.text("started_at") else { return Ok(Vec::new()) };
    let bound = |column: &'static str, op: Operator, at: String| Filter::new(column, op, Operand::Time(at));
    let mut filters = vec![bound("ended_at", Operator::LessOrEqual, started.to_owned())];
    if let Some(agent) = episode.text("agent_id") {
        filters.push(super::equal("agent_id", agent));
    }
    if let Some(earliest) = hours_before(started, parents::WITHIN_HOURS) {
        filters.push(bound("ended_at", Operator::GreaterOrEqual, earliest));
    }
    let mut possible = PossibleParents::default();
    if let Some((earliest, startless)) = starts.and_then(|starts| starts.before(started)) {
        for ids in startless.chunks(TOGETHER) {
            let rows = store.related_columns(Entity::Episode, "id", ids, Some(COLUMNS)).await?;
            rows.iter().filter(|row| row.text("started_at").is_none()).for_each(|row| possible.add(episode, row));
        }
        filters.push(bound("started_at", Operator::GreaterOrEqual, earliest));
        filters.push(bound("started_at", Operator::LessOrEqual, started.to_owned()));
    }
    store.each_candidate(Entity::Episode, &filters, COLUMNS, &[], |row| possible.add(episode, &row)).await?;
    possible.suggest(store, episode, vector).await
}

/// Episodes that fit in time, in any number: ids and ends that exceed the memory limit are in a scratch file.
struct PossibleParents {
    ids: IdList,
    /// Ends in microseconds since 1970.
    ended: PagedColumn<i64>,
    pages: PageStore,
}

impl Default for PossibleParents {
    fn default() -> Self {
        let pages = PageStore::new(PLACED, scratch);
        PossibleParents { ids: IdList::paged(&pages), ended: PagedColumn::new(&pages), pages }
    }
}

impl PossibleParents {
    fn add(&mut self, episode: &Row, candidate: &Row) {
        let ended = candidate.text("ended_at").and_then(time::epoch_micros);
        if let Some(ended) = ended.filter(|_| parents::fits_in_time(episode, candidate).is_some()) {
            self.ids.push(candidate.id());
            self.ended.push(ended);
        }
    }

    /// The best [`SUGGESTED`]: vectors are compared in batches, then the rows of the best are read.
    async fn suggest(self, store: &Store, episode: &Row, vector: &[f32]) -> Result<Vec<Suggestion>, LabError> {
        let mut first = FirstOf::new(SUGGESTED);
        for from in (0..self.ids.len()).step_by(TOGETHER) {
            let places = from..self.ids.len().min(from + TOGETHER);
            let ids: Vec<String> = places.clone().filter_map(|at| Some(self.ids.get(at)?.into_owned())).collect();
            let vectors = store.embeddings().vectors(Entity::Episode, &ids).await?;
            for (at, id) in places.zip(ids) {
                let cosine = vectors.get(&id).and_then(|other| cosine_of(vector, other));
                if let Some(cosine) = cosine.filter(|cosine| *cosine > parents::ALIKE) {
                    first.add((most_alike(cosine), Reverse(self.ended.get(at)), id));
                }
            }
        }
        self.pages.check()?;
        let alike: HashMap<String, f64> =
            first.in_order().into_iter().map(|(cosine, _, id)| (id, cosine_in(cosine))).collect();
        let ids: Vec<String> = alike.keys().cloned().collect();
        let rows = store.related_columns(Entity::Episode, "id", &ids, Some(COLUMNS)).await?;
        let candidates: Vec<(Row, Option<f64>)> = rows
            .into_iter()
            .map(|row| {
                let cosine = alike.get(row.id()).copied();
                (row, cosine)
            })
            .collect();
        Ok(parents::suggest(episode, &candidates))
    }
}

/// As [`suggest`], for several episodes with their vectors, in order: the possible parents of consecutive episodes of
/// one agent are read once.
///
/// # Errors
/// The engine's refusal.
pub async fn suggest_all(
    store: &Store,
    episodes: &[(&Row, &[f32])],
    starts: &EarliestStarts,
) -> Result<Vec<Vec<Suggestion>>, LabError> {
    let mut by_agent: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let mut found = vec![Vec::new(); episodes.len()];
    for (at, (episode, vector)) in episodes.iter().enumerate() {
        match (episode.text("agent_id"), episode.text("started_at")) {
            (Some(agent), Some(started)) => by_agent.entry(agent).or_default().push((started, at)),
            _ => found[at] = suggest(store, episode, Some(vector), Some(starts)).await?,
        }
    }
    for (agent, mut order) in by_agent {
        order.sort_unstable();
        let mut window = ParentWindow::of(store, agent);
        for (place, (started, at)) in order.iter().enumerate() {
            let (episode, vector) = episodes[*at];
            let ahead = order[order.len().min(place + AHEAD) - 1].0;
            let later = hours_before(started, -HOURS_AHEAD);
            let until = later.as_deref().map_or(*started, |later| ahead.min(later));
            found[*at] = if window.move_to(episode, until, starts).await? {
                window.suggest(episode, vector)
            } else {
                suggest(store, episode, Some(vector), Some(starts)).await?
            };
        }
    }
    Ok(found)
}

/// A possible parent with its vector.
#[derive(Default)]
struct PossibleParent {
    id: String,
    title: Option<String>,
    started_at: String,
    ended_at: String,
    /// End in microseconds since 1970.
    ended: i64,
    vector: Vec<f32>,
}

impl PossibleParent {
    /// An episode that was not abandoned and ended, still without its vector.
    fn of(row: &Row) -> Option<Self> {
        let text = |column: &str| row.text(column).map(str::to_owned);
        let ended_at = text("ended_at").filter(|_| row.text("status") != Some("abandoned"))?;
        let ended = time::epoch_micros(&ended_at)?;
        let (id, title, started_at) = (row.id().to_owned(), text("title"), text("started_at")?);
        Some(PossibleParent { id, title, started_at, ended_at, ended, vector: Vec::new() })
    }

    fn bytes(&self) -> usize {
        let texts =
            self.id.len() + self.title.as_ref().map_or(0, String::len) + self.started_at.len() + self.ended_at.len();
        size_of::<Self>() + texts + size_of_val(self.vector.as_slice())
    }

    fn row(&self, agent: &str) -> Row {
        let mut row = Row::empty(Entity::Episode);
        let texts = [("id", &self.id), ("started_at", &self.started_at), ("ended_at", &self.ended_at)];
        texts.into_iter().for_each(|(column, text)| row.set(column, text.as_str().into()));
        row.set("agent_id", agent.into());
        row.set("title", self.title.as_deref().into());
        row
    }
}

/// The episodes of an agent that have a vector, were not abandoned, ended, and began between two moments.
struct ParentWindow<'a> {
    store: &'a Store,
    agent: &'a str,
    /// The moments, canonical; `None` before anything was read.
    range: Option<(String, String)>,
    /// In order of their starts, as they were read.
    held: VecDeque<PossibleParent>,
    bytes: usize,
}

impl<'a> ParentWindow<'a> {
    fn of(store: &'a Store, agent: &'a str) -> Self {
        ParentWindow { store, agent, range: None, held: VecDeque::new(), bytes: 0 }
    }

    fn clear(&mut self) {
        (self.range, self.bytes) = (None, 0);
        self.held.clear();
    }

    /// Moves on to an episode that began no earlier than the one before, and reads ahead the episodes that began until
    /// a later moment. False if its parents must be read separately: one of them may have begun long before, or they
    /// are too many to hold.
    async fn move_to(&mut self, episode: &Row, until: &str, starts: &EarliestStarts) -> Result<bool, LabError> {
        let Some(started) = episode.text("started_at") else { return Ok(false) };
        let Some((earliest, startless)) = starts.before(started) else { return Ok(false) };
        let usual = hours_before(started, 2.0 * parents::WITHIN_HOURS);
        if !startless.is_empty() || usual.is_none_or(|usual| earliest < usual) {
            return Ok(false);
        }
        let behind = match self.range.take() {
            Some((_, to)) if to >= earliest => Some(to),
            _ => None,
        };
        if behind.is_none() {
            self.clear();
        }
        while self.held.front().is_some_and(|first| first.started_at < earliest) {
            self.bytes -= self.held.pop_front().map_or(0, |first| first.bytes());
        }
        let to = behind.clone().filter(|to| to.as_str() >= started).unwrap_or_else(|| until.max(started).to_owned());
        if behind.as_ref() != Some(&to) {
            let bound = |op: Operator, at: &str| Filter::new("started_at", op, Operand::Time(at.to_owned()));
            let from = match &behind {
                Some(to) => bound(Operator::Greater, to),
                None => bound(Operator::GreaterOrEqual, &earliest),
            };
            let filters = [super::equal("agent_id", self.agent), from, bound(Operator::LessOrEqual, &to)];
            if !self.read(filters.to_vec()).await? {
                self.clear();
                return Ok(false);
            }
        }
        self.range = Some((earliest, to));
        Ok(true)
    }

    /// Reads more, which began after those held. False if there are too many.
    async fn read(&mut self, filters: Vec<Filter>) -> Result<bool, LabError> {
        let (mut found, mut bytes) = (Vec::new(), self.bytes);
        let query = Query { filters, columns: Some(COLUMNS.to_vec()), ..Query::new(Entity::Episode) };
        let row = |row: Row| {
            let parent = PossibleParent::of(&row).filter(|_| row.text("agent_id") == Some(self.agent));
            bytes += parent.as_ref().map_or(0, PossibleParent::bytes);
            found.extend(parent);
            if bytes > HELD { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.store.walks().each_row(&query, row).await?;
        if bytes > HELD {
            return Ok(false);
        }
        found.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        for some in found.chunks_mut(TOGETHER) {
            let ids: Vec<String> = some.iter().map(|parent| parent.id.clone()).collect();
            let mut vectors = self.store.embeddings().vectors(Entity::Episode, &ids).await?;
            for parent in some {
                let Some(vector) = vectors.remove(&parent.id) else { continue };
                let parent = PossibleParent { vector, ..std::mem::take(parent) };
                self.bytes += parent.bytes();
                self.held.push_back(parent);
            }
            if self.bytes > HELD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The possible parents of an episode among those held: [`parents::suggest`] decides.
    fn suggest(&self, episode: &Row, vector: &[f32]) -> Vec<Suggestion> {
        let Some(at) = episode.text("started_at").and_then(time::epoch_micros) else { return Vec::new() };
        let ended = at - micros_of(parents::WITHIN_HOURS)..=at;
        let probe = VectorProbe::new(vector);
        let may_be_alike = |other: &[f32]| match probe.compare(other) {
            Likeness::Cosine(cosine) => cosine >= SURELY_OTHER || !is_ordinary(vector) || !is_ordinary(other),
            Likeness::NoDirection | Likeness::OtherDimensions => false,
        };
        let mut first = FirstOf::new(SUGGESTED);
        for (place, parent) in self.held.iter().enumerate() {
            if ended.contains(&parent.ended) && may_be_alike(&parent.vector) {
                let cosine = cosine_of(vector, &parent.vector).filter(|cosine| *cosine > parents::ALIKE);
                let fits = |_: &f64| parents::fits_in_time(episode, &parent.row(self.agent)).is_some();
                let ranked = |cosine| (most_alike(cosine), Reverse(parent.ended), &parent.id, place);
                cosine.filter(fits).map(ranked).into_iter().for_each(|parent| first.add(parent));
            }
        }
        let candidates: Vec<(Row, Option<f64>)> = first
            .in_order()
            .into_iter()
            .filter_map(|(cosine, .., place)| Some((self.held.get(place)?.row(self.agent), Some(cosine_in(cosine)))))
            .collect();
        parents::suggest(episode, &candidates)
    }
}

/// A sort key by which the most similar come first: positive numbers are ordered like their bits.
fn most_alike(cosine: f64) -> Reverse<u64> {
    Reverse(cosine.to_bits())
}

fn cosine_in(Reverse(bits): Reverse<u64>) -> f64 {
    f64::from_bits(bits)
}

/// Whether a fast comparison is good to a hundredth.
fn is_ordinary(vector: &[f32]) -> bool {
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    vector.len() < 1 << 16 && (1e-12..=1e12).contains(&most)
}

fn hours_before(moment: &str, hours: f64) -> Option<String> {
    time::from_epoch(time::epoch_micros(moment)? - micros_of(hours), time::EpochUnit::Microseconds)
}

fn micros_of(hours: f64) -> i64 {
    (hours * 3.6e9) as i64
}
