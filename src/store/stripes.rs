//! Reads the rows of an SQLite table in stripes of row numbers, by several connections at once. Each checks the rows
//! that it reads, and passes on only those with a hit, in the order of their numbers.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::fetched::{FetchedValue, RawRow, row_size};
use super::side_by_side::{cores, on_each};
use super::sqlite_reader::{PATIENCE, SqliteFile, SqliteReader, bind, refill, refused};
use super::tally;

/// Fewest row numbers per stripe.
const NARROWEST: u64 = 1_024;
/// Most stripes per table.
const MOST: u64 = 4_096;
/// Most stripes that wait for an earlier one.
const WAITING: usize = 256;
/// Time that connections read before they yield.
const TURN: Duration = Duration::from_millis(20);
/// Rows, and bytes of them, between two checks of the clock.
const ROWS: usize = 64;
const BYTES: usize = 1 << 20;
/// Bytes of hits per turn after which a stripe waits for the next turn.
const FOUND: usize = 1 << 20;
/// Bytes of hits waiting for an earlier stripe after which no further stripe begins.
const HELD: usize = 8 << 20;
/// Attempts to get several connections the same snapshot while others write.
const ATTEMPTS: usize = 5;

/// Begins a read transaction on as many connections as there are cores, all with the same snapshot. Only one connection
/// if several files are attached, or if others write all the time.
///
/// # Errors
/// SQLite's refusal.
pub(super) async fn readers(file: &SqliteFile) -> Result<Vec<SqliteReader>, sqlx::Error> {
    let count = if file.attached().is_empty() { cores() } else { 1 };
    let mut readers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut reader = file.reader().await?;
        reader.run("PRAGMA query_only = 1").await?;
        readers.push(reader);
    }
    for _ in 0..ATTEMPTS {
        if begin_together(&mut readers).await? {
            return Ok(readers);
        }
        let again = format!("ROLLBACK; PRAGMA busy_timeout = {}", PATIENCE.as_millis());
        for reader in &mut readers {
            reader.run(&again).await?;
        }
    }
    readers.truncate(1);
    begin_together(&mut readers).await?;
    Ok(readers)
}

/// Begins on all connections, without those that would have to wait. Returns whether nobody wrote meanwhile, so that
/// all have the same snapshot.
async fn begin_together(readers: &mut Vec<SqliteReader>) -> Result<bool, sqlx::Error> {
    let mut versions = Vec::with_capacity(readers.len());
    for reader in &mut *readers {
        versions.push(reader.data_version().await?);
    }
    let mut is_one = true;
    for (at, version) in versions.into_iter().enumerate() {
        let Some(reader) = readers.get_mut(at) else { break };
        if at > 0 {
            // A writer may be waiting for the first one to end, and nobody may begin behind it.
            reader.run("PRAGMA busy_timeout = 0").await?;
        }
        // Reading the version is the first read, which fixes the snapshot.
        reader.run("BEGIN").await?;
        match reader.data_version().await {
            // Writes before the first connection began are visible to the others too.
            Ok(now) => is_one &= at == 0 || now == version,
            Err(_) if at > 0 => readers.truncate(at),
            Err(error) => return Err(error),
        }
    }
    Ok(is_one)
}

/// A statement whose first column is the row number, limited by its two placeholders.
pub(super) struct StripedStatement<'a> {
    /// Text.
    pub sql: &'a str,
    /// First and last row number of the table.
    pub numbers: (i64, i64),
}

impl StripedStatement<'_> {
    /// Reads all rows. `look` gets each without its number, several in parallel, and returns its hit; rows with hits go
    /// to `take`.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn read<T: Send>(
        &self,
        readers: &mut [SqliteReader],
        look: impl Fn(&RawRow) -> Option<T> + Sync,
        mut take: impl FnMut(RawRow, T),
    ) -> Result<(), sqlx::Error> {
        let (first, last) = self.numbers;
        tally::expect(if first <= last { last.abs_diff(first).saturating_add(1) } else { 0 });
        let mut stripes = Stripes::of(self.numbers);
        loop {
            let until = Instant::now() + TURN;
            let lanes = readers.len().min(stripes.left().max(1));
            let turn = |reader: &mut SqliteReader| self.lane(reader, &stripes, &look, until);
            on_each(&mut readers[..lanes], turn).into_iter().collect::<Result<(), _>>()?;
            for (row, found) in stripes.in_order() {
                take(row, found);
            }
            if stripes.left() == 0 {
                return Ok(());
            }
            // Lets a waiting caller cancel here.
            tokio::task::yield_now().await;
        }
    }

    /// Reads stripes until the turn ends or none is left.
    fn lane<T>(
        &self,
        reader: &mut SqliteReader,
        stripes: &Stripes<T>,
        look: &impl Fn(&RawRow) -> Option<T>,
        until: Instant,
    ) -> Result<(), sqlx::Error> {
        let link = reader.link().ok_or(sqlx::Error::WorkerCrashed)?;
        while Instant::now() < until
            && let Some((at, from, to)) = stripes.next()
        {
            let (next, found) = self.stripe(link, (from, to), stripes, look, until).map_err(refused)?;
            stripes.queue().put(at, next, found);
        }
        Ok(())
    }

    /// Reads a stripe or part of it. Returns the row number at which to continue, and the hits.
    fn stripe<T>(
        &self,
        link: &Connection,
        (from, to): (i64, i64),
        stripes: &Stripes<T>,
        look: &impl Fn(&RawRow) -> Option<T>,
        until: Instant,
    ) -> Result<(Option<i64>, Found<T>), rusqlite::Error> {
        let mut statement = link.prepare_cached(self.sql)?;
        bind(&mut statement, &[FetchedValue::Integer(from), FetchedValue::Integer(to)])?;
        let mut row = vec![FetchedValue::Null; statement.column_count().saturating_sub(1)];
        let mut rows = statement.raw_query();
        let (mut all, mut own, mut read, mut bytes) = (Vec::new(), 0, 0, 0);
        while let Some(given) = rows.next()? {
            let number: i64 = given.get(0)?;
            for (at, slot) in row.iter_mut().enumerate() {
                refill(slot, given.get_ref(at + 1)?);
            }
            let size = row_size(&row);
            if let Some(found) = look(&row) {
                let next = vec![FetchedValue::Null; row.len()];
                all.push((mem::replace(&mut row, next), found));
                own += size;
                stripes.held.fetch_add(size, Ordering::Relaxed);
            }
            (read, bytes) = (read + 1, bytes + size);
            if read < ROWS && bytes < BYTES {
                continue;
            }
            tally::read(read);
            (read, bytes) = (0, 0);
            if own >= FOUND || Instant::now() >= until {
                return Ok((number.checked_add(1).filter(|next| *next <= to), all));
            }
        }
        tally::read(read);
        Ok((None, all))
    }
}

/// Rows with their hits.
type Found<T> = Vec<(RawRow, T)>;

/// Stripes of a table, read by several threads.
struct Stripes<T> {
    queue: Mutex<StripeQueue<T>>,
    /// Bytes of hits not yet taken.
    held: AtomicUsize,
}

struct StripeQueue<T> {
    waiting: VecDeque<Stripe<T>>,
    /// Row numbers not yet assigned to a stripe.
    rest: Option<(i64, i64)>,
    width: u64,
}

struct Stripe<T> {
    /// Next row number to read; `None` if all were read.
    next: Option<i64>,
    last: i64,
    /// Whether a thread reads it.
    is_taken: bool,
    found: Found<T>,
}

impl<T> Stripes<T> {
    fn of((first, last): (i64, i64)) -> Self {
        let rest = (first <= last).then_some((first, last));
        let width = (last.abs_diff(first) / MOST).max(NARROWEST);
        let queue = StripeQueue { waiting: VecDeque::new(), rest, width };
        Stripes { queue: Mutex::new(queue), held: AtomicUsize::new(0) }
    }

    fn queue(&self) -> MutexGuard<'_, StripeQueue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a stripe: its position in the queue, its first and last row number.
    fn next(&self) -> Option<(usize, i64, i64)> {
        self.queue().next(self.held.load(Ordering::Relaxed))
    }

    /// Takes the hits of all leading stripes read so far.
    fn in_order(&mut self) -> Found<T> {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        while let Some(stripe) = queue.waiting.front_mut() {
            all.append(&mut stripe.found);
            if stripe.next.is_some() {
                break;
            }
            queue.waiting.pop_front();
        }
        *self.held.get_mut() -= all.iter().map(|(row, _)| row_size(row)).sum::<usize>();
        all
    }

    /// Number of stripes still to be read, counting up to 256 not begun.
    fn left(&self) -> usize {
        let queue = self.queue();
        let unmade = queue.rest.map_or(0, |(first, last)| last.abs_diff(first) / queue.width + 1);
        queue.waiting.iter().filter(|stripe| stripe.next.is_some()).count() + unmade.min(WAITING as u64) as usize
    }
}

impl<T> StripeQueue<T> {
    /// Takes the first stripe that no thread reads. If too many bytes are `held`, only the one that the others wait
    /// for.
    fn next(&mut self, held: usize) -> Option<(usize, i64, i64)> {
        let free = |stripe: &Stripe<T>| !stripe.is_taken && stripe.next.is_some();
        let at = match self.waiting.iter().position(free) {
            Some(at) => at,
            None if self.waiting.len() < WAITING => {
                let (first, last) = self.rest.take()?;
                let end = first.saturating_add_unsigned(self.width - 1).min(last);
                self.rest = (end < last).then(|| (end + 1, last));
                self.waiting.push_back(Stripe { next: Some(first), last: end, is_taken: false, found: Vec::new() });
                self.waiting.len() - 1
            }
            None => return None,
        };
        let stripe = self.waiting.get_mut(at).filter(|_| at == 0 || held < HELD)?;
        stripe.is_taken = true;
        Some((at, stripe.next?, stripe.last))
    }

    /// Puts back a stripe with its hits.
    fn put(&mut self, at: usize, next: Option<i64>, mut found: Found<T>) {
        if let Some(stripe) = self.waiting.get_mut(at) {
            (stripe.next, stripe.is_taken) = (next, false);
            stripe.found.append(&mut found);
        }
    }
}
