//! `copy`: copies the rows of any database with a known layout into one with the native layout, and compares them
//! afterwards.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

mod chosen;
mod compared;

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use self::chosen::Chosen;
use self::compared::compared;
use super::context::{Damage, Session};
use super::doing::{By, author};
use super::look::write_export;
use super::part_totals::PartTotals;
use super::{CommandFailure, output};
use crate::change;
use crate::change::import::{self, ImportPart, ImportProgress};
use crate::change::operation::ImportFormat;
use crate::ground::unfinished::UnfinishedChange;
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row, agreeing, thousands};
use crate::store::Store;
use crate::store::reading::ListReading;

/// Bytes of lines that one change puts in.
const PART_BYTES: usize = 6 << 20;
/// Rows compared together.
const STRIDE: usize = 500;

/// From where, and where to.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// Database to copy from, of any layout.
    #[arg(long, value_name = "DATABASE")]
    pub from: String,
    /// Database to copy into, of the native layout, as `demo` and `migrate --layout mnemoscope` create it.
    #[arg(long, value_name = "DATABASE")]
    pub to: String,
    /// Condition, as in `list`; a row without its column is copied only if it belongs to one that is copied.
    #[arg(long = "where", value_name = "EXPR")]
    pub filters: Vec<String>,
    /// Apply the plan and print the receipt; without this the plan is printed and nothing is written.
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub by: By,
}

/// Totals over the parts of a copy.
#[derive(Default)]
struct Copied {
    totals: PartTotals,
    rows: BTreeMap<&'static str, usize>,
}

/// Copies rows, or shows the plan for it.
///
/// # Errors
/// Code 5 if the target is not of the native layout, code 6 if rows are missing afterwards.
pub(super) async fn run(session: &Session<'_>, asked: &CopyArgs) -> Result<(), CommandFailure> {
    if session.database.is_some() {
        return Err(CommandFailure::usage("`copy` takes its databases from --from and --to: leave out -d"));
    }
    let source = opened(session, &asked.from, session.global.layout.clone(), false).await?;
    let target = opened(session, &asked.to, Vec::new(), true).await?;
    if !target.recognised().layouts.iter().any(|layout| layout.name == "mnemoscope") {
        return Err(CommandFailure::refused(format!(
            "{} does not have the native layout: create such a database with `mnemoscope -d NEW --layout mnemoscope \
             migrate --apply`",
            target.location()
        )));
    }
    if source.place() == target.place() {
        return Err(CommandFailure::usage("--from and --to are the same database"));
    }
    let mut chosen = Chosen::new(&asked.filters)?;
    let mut copied = Copied::default();
    if let Some(query) = chosen.banked()?
        && source.sources_of(Entity::Case).is_ok()
    {
        let mut pages = Pages::of(&source, query);
        while let Some(cases) = pages.next().await? {
            chosen.note_banks(&cases);
        }
    }
    let _unfinished =
        asked.apply.then(|| UnfinishedChange::new("what was copied stays; the same command copies the rest"));
    if let Err(failure) = put_all(&source, &target, asked, &mut chosen, &mut copied).await {
        if copied.totals.receipts.is_empty() {
            return Err(failure);
        }
        let failure = copied.totals.stopped(failure, "After that, the same command copies the rest");
        let shown = json!({
            "operation": "copy",
            "status": "incomplete",
            "from": source.location(),
            "to": target.location(),
            "rows": copied.rows,
            "counts": copied.totals.counts,
            "disclosures": copied.totals.disclosures(),
            "receipts": copied.totals.receipts,
        });
        let _ = output::shape(session.format(), &shown);
        return Err(failure);
    }
    for entity in Entity::ALL.iter().copied().filter(|entity| !import::ORDER.contains(entity)) {
        if let Some(sentence) = stays(&source, entity).await? {
            copied.totals.disclose(&sentence);
        }
    }
    source.report().gaps().iter().for_each(|gap| copied.totals.disclose(gap));
    let mut shown = json!({
        "operation": "copy",
        "status": if !asked.apply { "planned" } else if copied.totals.counts.is_empty() { "nothing to do" } else { "applied" },
        "from": source.location(),
        "to": target.location(),
        "rows": copied.rows,
        "counts": copied.totals.counts,
        "disclosures": copied.totals.disclosures(),
    });
    if !asked.apply {
        return output::shape(session.format(), &shown);
    }
    let (compared, missing, different) = compared(&source, &target, &mut chosen).await?;
    shown["receipts"] = json!(copied.totals.receipts);
    shown["compared"] = compared;
    output::shape(session.format(), &shown)?;
    if missing == 0 && different == 0 {
        return Ok(());
    }
    Err(CommandFailure::incomplete(agreeing(
        missing as u64,
        &format!(
            "{{#}} {{row of the source is|rows of the source are}} not in the target, and {} differ there: see \
             `compared`",
            thousands(different)
        ),
    )))
}

/// Puts all chosen rows into the target, or plans it.
async fn put_all(
    source: &Store,
    target: &Store,
    asked: &CopyArgs,
    chosen: &mut Chosen<'_>,
    copied: &mut Copied,
) -> Result<(), CommandFailure> {
    let (mut text, mut line, progress) = (Vec::new(), 1, ImportProgress::default());
    let columns_read = source.shapes().columns_read();
    for entity in chosen.order().into_iter().filter(|entity| source.sources_of(*entity).is_ok()) {
        let mut pages = Pages::of(source, chosen.query(entity)?);
        let mut left = 0;
        while let Some(mut rows) = pages.next().await? {
            let read = rows.len();
            chosen.keep(entity, &mut rows)?;
            left += read - rows.len();
            *copied.rows.entry(entity.name()).or_default() += rows.len();
            let mut surplus = source.shapes().surplus(entity, &rows).await?;
            surplus.iter_mut().for_each(|surplus| surplus.note_shown(&columns_read));
            write_export(&mut text, &rows, &surplus, entity)?;
            if text.len() >= PART_BYTES {
                line = put_in(target, asked, CopyPart { text: &mut text, line, is_last: false }, &progress, copied)
                    .await?;
            }
        }
        if left > 0 {
            let words = format!(
                "{{#}} {} {{row is|rows are}} left out: no copied row is related to {{it|them}}",
                entity.title()
            );
            copied.totals.disclose(&agreeing(left, &words));
        }
    }
    put_in(target, asked, CopyPart { text: &mut text, line, is_last: true }, &progress, copied).await?;
    Ok(())
}

/// A sentence about rows of an entity that are never copied, if the source has some: they record changes made there.
async fn stays(source: &Store, entity: Entity) -> Result<Option<String>, CommandFailure> {
    if source.sources_of(entity).is_err() {
        return Ok(None);
    }
    let query = Query { limit: 500, columns: Some(vec!["id"]), ..Query::new(entity) };
    let (mut pages, mut rows) = (Pages::of(source, query), 0);
    while let Some(page) = pages.next().await? {
        rows += page.len();
    }
    let words = format!(
        "{{#}} {} {{row is|rows are}} left out: {{it records|they record}} what was done in the source",
        entity.title()
    );
    Ok((rows > 0).then(|| agreeing(rows, &words)))
}

async fn opened(
    session: &Session<'_>,
    database: &str,
    layouts: Vec<String>,
    changes: bool,
) -> Result<Store, CommandFailure> {
    let mut global = session.global.clone();
    global.layout = layouts;
    global.profile = None;
    let database = Some(database);
    let damage = Damage::default();
    Session { global: &global, database, changes, looks: false, suits_standby: false, damage, ..*session }.store().await
}

/// Lines that are written to the target together.
struct CopyPart<'t> {
    /// The lines; removed.
    text: &'t mut Vec<u8>,
    /// The number of the first, from 1.
    line: usize,
    is_last: bool,
}

/// Puts lines into the target, or plans it; the number of the next line.
async fn put_in(
    target: &Store,
    asked: &CopyArgs,
    part: CopyPart<'_>,
    progress: &ImportProgress,
    copied: &mut Copied,
) -> Result<usize, CommandFailure> {
    let CopyPart { text, line, is_last } = part;
    let text = String::from_utf8(std::mem::take(text)).map_err(|e| CommandFailure::failed(e.to_string()))?;
    if text.is_empty() && !progress.waits() {
        return Ok(line);
    }
    let next = line + text.lines().count();
    let plan = || {
        let part = ImportPart { text: &text, first_line: line, progress, is_last };
        import::plan_part(target, ImportFormat::Jsonl, &asked.from, part, true)
    };
    let planned = if asked.apply {
        let (planned, receipt) = change::plan_and_apply(target, &author(&asked.by), plan).await?;
        copied.totals.add_receipt(&receipt, target).await;
        planned
    } else {
        plan().await?
    };
    progress.advance();
    copied.totals.add(&planned);
    Ok(next)
}

/// The rows of a question, some at a time.
struct Pages<'s> {
    store: &'s Store,
    /// The query for the next page; `None` after the last.
    query: Option<Query>,
    reading: ListReading,
    /// Rows of the page before that were not given out yet.
    rows: std::vec::IntoIter<Row>,
}

impl<'s> Pages<'s> {
    fn of(store: &'s Store, query: Query) -> Self {
        Pages { store, query: Some(query), reading: ListReading::default(), rows: Vec::new().into_iter() }
    }

    async fn next(&mut self) -> Result<Option<Vec<Row>>, CommandFailure> {
        if self.rows.len() == 0 {
            let Some(query) = self.query.take() else { return Ok(None) };
            let page = self.store.page_of(&query, &self.reading).await?;
            self.query = page.next.map(|next| Query { start: PageStart::After(next), ..query });
            self.rows = page.rows.into_iter();
        }
        Ok(Some(self.rows.by_ref().take(STRIDE).collect()))
    }
}
