//! `list … --follow`: the newest rows, then every new one as it is written, one JSON line each.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::look::{Selection, entity, mask_rows, query};
use super::{CommandFailure, Format, Session, output, progress};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{Order, PAGE, PageStart, Query};
use crate::memory::{Entity, Row};
use crate::store::{EngineFault, Store, StoreError};

/// Time between two checks.
const PAUSE: Duration = Duration::from_secs(1);
/// Greatest share of time for checks: one part in this many.
const SHARE: u32 = 10;
/// Newest rows checked each time for rows written late, with an earlier time.
const LATE: usize = 500;
/// Most rows remembered, so that each is printed once.
const REMEMBERED: usize = 500_000;

/// Follows a list until the reader is gone.
///
/// # Errors
/// Code 2 if the format or the order does not allow following, code 5 if the rows have no time; else an error of the
/// database.
pub(super) async fn run(
    session: &Session<'_>,
    name: &str,
    selection: &Selection,
    newest: Option<usize>,
    after: Option<&str>,
) -> Result<(), CommandFailure> {
    let query = &query(entity(name)?, selection)?;
    if session.global.format.is_some_and(|format| format != Format::Jsonl) {
        return Err(CommandFailure::usage("--follow prints JSON lines: leave out --format, or give jsonl"));
    }
    if query.order.is_some() || after.is_some() {
        return Err(CommandFailure::usage(
            "--follow prints rows as they arrive: it cannot be combined with --order and \
         --after",
        ));
    }
    let store = session.store().await?;
    progress::end();
    let time = query.entity.time_column();
    let timed = store.sources_of(query.entity)?.iter().any(|source| !source.column(time).is_empty());
    if query.entity == Entity::MemoryLink || !timed {
        let words = format!("rows of {} have no time here, so new ones cannot be recognised", query.entity.title());
        return Err(CommandFailure::refused(words));
    }
    let mut version = None;
    let mut tail = Tail { session, store: &store, query, seen: Seen::default(), latest: None, floor: None };
    // Nobody writes to a private copy of a damaged database.
    if !tail.begin(newest.unwrap_or(PAGE)).await? || store.unread().is_some() {
        return Ok(());
    }
    loop {
        let began = Instant::now();
        match tail.look_again(&mut version).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // The lock will be released: new rows are printed then.
            Err(Ended::Read(error)) if error.fault() == Some(EngineFault::Locked) => version = None,
            Err(Ended::Read(error)) => return Err(error.into()),
            Err(Ended::Print(failure)) => return Err(failure),
        }
        if is_left() {
            return Ok(());
        }
        tokio::time::sleep(PAUSE.max(began.elapsed() * SHARE)).await;
    }
}

/// Whether the reader is gone, which a pipe reports without a write.
fn is_left() -> bool {
    let out = std::io::stdout();
    let mut asked = [PollFd::new(&out, PollFlags::empty())];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Rows that were printed or existed at the start.
#[derive(Default)]
struct Seen {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Seen {
    /// Remembers a row; whether it is new.
    fn take(&mut self, row: &Row) -> bool {
        let mut hasher = DefaultHasher::new();
        (row.text("source"), row.id()).hash(&mut hasher);
        let short = hasher.finish();
        if !self.known.insert(short) {
            return false;
        }
        self.order.push_back(short);
        if self.order.len() > REMEMBERED
            && let Some(old) = self.order.pop_front()
        {
            self.known.remove(&old);
        }
        true
    }
}

/// Failure of a check.
enum Ended {
    Read(StoreError),
    Print(CommandFailure),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Ended::Read(error)
    }
}

/// The end of a list that grows.
struct Tail<'a> {
    session: &'a Session<'a>,
    store: &'a Store,
    query: &'a Query,
    seen: Seen,
    latest: Option<String>,
    /// The earliest time of a new row: if there were more rows at the start than can be remembered, older ones move up
    /// when others are deleted.
    floor: Option<String>,
}

impl Tail<'_> {
    /// Prints the newest rows, oldest first, and remembers the existing ones.
    async fn begin(&mut self, newest: usize) -> Result<bool, CommandFailure> {
        let query = Query { limit: newest.max(LATE), ..self.query.clone() };
        let page = self.store.page(&query).await?;
        let mut rows = page.rows;
        rows.reverse();
        if page.next.is_some() {
            self.floor = rows.first().and_then(|row| row.text(self.query.entity.time_column())).map(str::to_owned);
        }
        self.note(&mut rows);
        let known = rows.len().saturating_sub(newest);
        self.print(rows.split_off(known))
    }

    /// Prints new rows if anything was written since that version. False if the reader is gone.
    async fn look_again(&mut self, version: &mut Option<i64>) -> Result<bool, Ended> {
        let now = self.store.walks().version_of_data().await?;
        // A server does not report whether anything was written: every check reads the rows there.
        if now.is_some() && now == *version {
            return Ok(true);
        }
        *version = now;
        self.look().await
    }

    /// Prints new rows. False if the reader is gone.
    async fn look(&mut self) -> Result<bool, Ended> {
        let column = self.query.entity.time_column();
        let mut later = self.query.clone().in_parts();
        later.order = self.query.entity.column(column).map(|c| Order { column: c.name, descending: false });
        if let (Some(latest), Some(order)) = (&self.latest, &later.order) {
            let value = Operand::Time(latest.clone());
            later.filters.push(Filter::new(order.column, Operator::GreaterOrEqual, value));
        }
        loop {
            let page = self.store.page(&later).await?;
            let mut rows = page.rows;
            self.note(&mut rows);
            if !self.print(rows).map_err(Ended::Print)? {
                return Ok(false);
            }
            match page.next {
                Some(next) => later.start = PageStart::After(next),
                None => break,
            }
        }
        // Rows written late, or without a time: among the newest and among those without one.
        let mut late = self.store.page(&Query { limit: LATE, ..self.query.clone() }).await?.rows;
        late.reverse();
        self.note(&mut late);
        self.print(late).map_err(Ended::Print)
    }

    /// Leaves the rows that were not seen before.
    fn note(&mut self, rows: &mut Vec<Row>) {
        let column = self.query.entity.time_column();
        rows.retain(|row| {
            let time = row.text(column);
            if self.floor.is_some() && time < self.floor.as_deref() {
                return false;
            }
            if time > self.latest.as_deref() {
                self.latest = time.map(str::to_owned);
            }
            self.seen.take(row)
        });
    }

    fn print(&self, mut rows: Vec<Row>) -> Result<bool, CommandFailure> {
        mask_rows(self.session, &mut rows);
        output::piped_open(|out| {
            rows.iter().try_for_each(|row| output::json_line(out, row))?;
            out.flush()
        })
    }
}
