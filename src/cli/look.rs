//! The reading commands: status, list, show, chain, export.

use std::io::{IsTerminal as _, Write};

use chrono::Utc;
use clap::Args;

use super::document::RowsDocument;
use super::shown::PrintedContext;
use super::table::{self, CellShape};
use super::{CommandFailure, Format, Session, as_of as past, columns, hints, output, person};
use crate::change::as_of::{AsOf, Moment};
use crate::change::import::ORDER;
use crate::memory::filter::Filter;
use crate::memory::nearest::unknown;
use crate::memory::query::{CanvasFilter, Capability, CountKind, Order, PAGE, PART, PageStart, Query};
use crate::memory::{Entity, Row, agreeing, thousands};
use crate::store::context::Relatives;
use crate::store::reading::ListReading;
use crate::store::surplus::{StoredForm, Surplus};
use crate::store::{Store, StoreError};
use crate::ui::text::SafeText;

/// Most rows of a table: all are held while its columns are measured.
pub(super) const TABLE: usize = 10_000;
/// Rows printed together.
const STRIDE: usize = 500;

/// Choice and order of an entity's rows.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// Condition `column OP value` with = != < <= > >= ~ (contains) has (list holds); several must all hold,
    /// of those joined by `or` one. Times take
    /// RFC 3339 or an age such as 30d.
    #[arg(long = "where", value_name = "EXPR")]
    pub filters: Vec<String>,
    /// Order [default: newest first].
    #[arg(long, value_name = "COLUMN[:asc|:desc]")]
    pub order: Option<String>,
    /// Episodes with a canvas event of this type, and of this action.
    #[arg(long, value_name = "TYPE[:ACTION]")]
    pub canvas: Option<String>,
}

impl Selection {
    fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.order.is_none() && self.canvas.is_none()
    }
}

pub(super) fn entity(name: &str) -> Result<Entity, CommandFailure> {
    Entity::parse(name)
        .ok_or_else(|| CommandFailure::usage(unknown("entity", name, Entity::ALL.iter().map(|e| e.name()))))
}

/// The query for `--where`, `--order` and `--canvas`.
pub(super) fn query(entity: Entity, selection: &Selection) -> Result<Query, CommandFailure> {
    let now = Utc::now();
    let mut query = Query::new(entity);
    for text in &selection.filters {
        query
            .filters
            .push(Filter::parse(entity, text, now).map_err(|e| CommandFailure::usage(format!("--where: {e}")))?);
    }
    if let Some(text) = &selection.order {
        query.order = Some(Order::parse(entity, text).map_err(|e| CommandFailure::usage(format!("--order: {e}")))?);
    }
    if let Some(text) = &selection.canvas {
        if entity != Entity::Episode {
            return Err(CommandFailure::usage("--canvas is for episodes"));
        }
        query.canvas = Some(CanvasFilter::parse(text));
    }
    Ok(query)
}

pub async fn status(session: &Session<'_>, sizes: bool) -> Result<(), CommandFailure> {
    let store = session.described_store().await?;
    let mut status = store.report().status().await?;
    if let Some((target, options)) = session.target(None)? {
        status.database.notes.extend(Store::standby_note(&target, &options).await);
    }
    if sizes {
        status = store.report().with_sizes(status).await?;
    }
    let value = serde_json::to_value(&status).unwrap_or_default();
    match session.format() {
        Format::Json => output::json(&value),
        Format::Jsonl => output::piped(|out| output::json_line(out, &value)),
        Format::Csv => Err(CommandFailure::usage("status is not a table of rows: use --format json, jsonl or table")),
        Format::Table => output::piped(|out| {
            let database = &status.database;
            writeln!(out, "{} {}  {}", database.engine, database.version, SafeText::new(&database.location))?;
            for note in &database.notes {
                writeln!(out, "note: {}", SafeText::new(note))?;
            }
            for layout in &status.layouts {
                let variant = layout.variant.as_ref().map(|v| format!(", {v}")).unwrap_or_default();
                writeln!(out, "\nlayout {}", SafeText::new(&format!("{}{variant}", layout.name)))?;
                let rows: Vec<_> = layout
                    .entities
                    .iter()
                    .map(|(name, e)| {
                        let about = if e.count_kind == CountKind::About { "about " } else { "" };
                        let count = e.count.map_or("not counted".to_owned(), |n| format!("{about}{n}"));
                        vec![SafeText::new(name), SafeText::new(&count), SafeText::new(&e.source)]
                    })
                    .collect();
                let titles = [("Entity", CellShape::Word), ("Rows", CellShape::Number), ("Source", CellShape::Text)];
                output::table(out, &table::columns(&titles), &rows)?;
                for missing in &layout.missing {
                    writeln!(out, "missing: {}", SafeText::new(missing))?;
                }
            }
            if sizes {
                let size = |bytes: Option<i64>| bytes.map_or_else(|| "·".to_owned(), |b| b.to_string());
                let rows: Vec<_> =
                    status.tables.iter().map(|t| vec![SafeText::new(&t.name), SafeText::new(&size(t.bytes))]).collect();
                writeln!(out)?;
                output::table(
                    out,
                    &table::columns(&[("Table", CellShape::Text), ("Bytes", CellShape::Number)]),
                    &rows,
                )?;
            }
            if status.layouts.is_empty() {
                let words = "no known layout fits this database, so it has no entities and is read-only";
                let tables = "`tables` lists its {#} {table|tables}, `table NAME` shows {its|their} rows";
                writeln!(out, "\n{words}\n{}", agreeing(status.tables.len(), tables))?;
                return writeln!(out, "`layouts` lists the known layouts; --layout FILE opens it with one of your own");
            }
            write_missing(out, &status.capabilities)
        }),
    }
}

/// Writes the missing capabilities, grouped by reason.
fn write_missing(out: &mut dyn Write, capabilities: &[Capability]) -> std::io::Result<()> {
    let mut lacks: Vec<(String, Vec<&str>)> = Vec::new();
    for capability in capabilities.iter().filter(|c| !c.available) {
        let reason = capability.reason.as_deref().unwrap_or_default();
        let remedy = capability.remedy.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
        let lack = format!("{reason}{remedy}");
        match lacks.iter_mut().find(|(known, _)| *known == lack) {
            Some((_, names)) => names.push(&capability.name),
            None => lacks.push((lack, vec![&capability.name])),
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot available")?;
    lacks.iter().try_for_each(|(lack, names)| writeln!(out, "  {}: {}", names.join(", "), SafeText::new(lack)))
}

pub async fn list(
    session: &Session<'_>,
    name: &str,
    selection: &Selection,
    limit: Option<usize>,
    after: Option<&str>,
    as_of: Option<&str>,
) -> Result<(), CommandFailure> {
    let mut query = query(entity(name)?, selection)?;
    if limit == Some(0) {
        return Err(CommandFailure::usage("--limit 0 asks for nothing: give 1 or more"));
    }
    query.limit = limit.unwrap_or(PAGE);
    if let Some(cursor) = Session::typed_cursor(after)? {
        query.start = PageStart::After(cursor);
    }
    let format = session.format();
    if format == Format::Table {
        query.columns = Some(columns::read(query.entity));
        query.preview = Some(columns::preview());
    }
    let moment = past::moment(as_of)?;
    let (store, as_of) = past::store(session, moment.as_ref()).await?;
    if format != Format::Table {
        let most = limit.or((format == Format::Json).then_some(PAGE));
        let mut reader = RowReader::new(session, store, moment);
        let printed = reader.stream(query.clone(), most, Printer::new(format, as_of)).await?;
        if printed == 0 {
            hints::values(session, &reader.store, &query).await;
        }
        return Ok(());
    }
    let shown = query.limit.min(TABLE);
    let mut page = store.page(&Query { limit: shown, ..query.clone().in_parts() }).await?;
    if page.rows.is_empty() {
        hints::values(session, &store, &query).await;
    }
    let is_cut = page.next.is_some() && page.rows.len() < query.limit;
    mask_rows(session, &mut page.rows);
    print_table(query.entity, &page.rows)?;
    columns::report_cut_texts(page.rows.iter().flat_map(|row| &row.values).filter_map(serde_json::Value::as_str));
    if is_cut {
        output::tell(&format!(
            "a table ends with {} rows, or {} MB: --format csv or jsonl prints more",
            thousands(TABLE),
            PART >> 20
        ));
    } else if let Some(next) = session.printed_cursor(page.next) {
        // A cursor is long: it is only useful for reading page by page, or for a program.
        let is_asked = after.is_some() || session.global.verbose > 0 || !std::io::stdout().is_terminal();
        if is_asked {
            output::tell(&format!("more rows follow: --after {next}"));
        } else {
            output::tell("more rows follow: --limit shows more, -v the cursor for --after");
        }
    }
    Ok(())
}

fn print_table(entity: Entity, rows: &[Row]) -> Result<(), CommandFailure> {
    let (columns, cells, zones) = columns::table(entity, rows, output::width());
    output::piped(|out| {
        if let Some(zones) = zones {
            output::afterwards(format!("times are local: {zones}"));
        }
        output::table(out, &columns, &cells)?;
        for row in rows.iter().filter(|r| !r.problems.is_empty()) {
            for problem in &row.problems {
                let words = format!("{}: {} {}", row.id(), problem.column, problem.problem);
                writeln!(out, "{} {}", output::ink().warn("!"), SafeText::new(&words))?;
            }
        }
        Ok(())
    })
}

/// Reads rows that are printed as they are read.
struct RowReader<'a> {
    session: &'a Session<'a>,
    store: Store,
    reading: ListReading,
    /// The moment that the database is shown as of.
    moment: Option<Moment>,
}

impl<'a> RowReader<'a> {
    fn new(session: &'a Session<'a>, store: Store, moment: Option<Moment>) -> Self {
        RowReader { session, store, reading: ListReading::default(), moment }
    }

    /// Continues with what can be read if a page is damaged.
    async fn read_past(&mut self, error: StoreError) -> Result<(), CommandFailure> {
        self.store = past::past(self.session, error.into(), self.moment.as_ref()).await?;
        self.reading = ListReading::default();
        Ok(())
    }

    /// Reads the values that an export holds of rows beside their canonical ones.
    async fn surplus(&mut self, entity: Entity, rows: &[Row]) -> Result<Vec<Surplus>, CommandFailure> {
        match self.store.shapes().surplus(entity, rows).await {
            Err(error) => self.read_past(error).await?,
            Ok(surplus) => return Ok(surplus),
        }
        Ok(self.store.shapes().surplus(entity, rows).await?)
    }

    /// Prints the rows of a query, `most` of them where there is a limit; gives how many there were. At a damaged page it
    /// continues with what can be read.
    async fn stream(
        &mut self,
        query: Query,
        most: Option<usize>,
        mut printer: Printer,
    ) -> Result<usize, CommandFailure> {
        let mut query = query.in_parts();
        let mut printed = 0;
        let mask = self.session.mask();
        self.reading = ListReading::default();
        loop {
            query.limit = most.map_or(query.limit, |most| query.limit.min(most - printed));
            let mut page = match self.store.page_of(&query, &self.reading).await {
                Ok(page) => page,
                Err(error) => {
                    self.read_past(error).await?;
                    continue;
                }
            };
            if let Some(mask) = &mask {
                page.rows.iter_mut().for_each(|row| mask.row(row));
            }
            let is_export = matches!(printer, Printer::Export) && mask.is_none();
            let mut is_read = true;
            for rows in page.rows.chunks(STRIDE) {
                let surplus = if is_export { self.surplus(query.entity, rows).await? } else { Vec::new() };
                is_read = printer.rows(query.entity, rows, &surplus)?;
                if !is_read {
                    break;
                }
            }
            printed += page.rows.len();
            match page.next {
                Some(next) if is_read && most.is_none_or(|most| printed < most) => query.start = PageStart::After(next),
                next => {
                    return printer.end(query.entity, self.session.printed_cursor(next)).map(|()| printed);
                }
            }
        }
    }
}

/// Form in which rows are printed as they are read.
enum Printer {
    Json { document: RowsDocument, as_of: Option<AsOf> },
    Jsonl,
    Csv { is_begun: bool, unread: u64 },
    Export,
}

impl Printer {
    fn new(format: Format, as_of: Option<AsOf>) -> Self {
        match format {
            Format::Csv => Printer::Csv { is_begun: false, unread: 0 },
            Format::Jsonl => Printer::Jsonl,
            Format::Json | Format::Table => Printer::Json { document: RowsDocument::begin(), as_of },
        }
    }

    /// Prints rows; whether the reader is still there.
    fn rows(&mut self, entity: Entity, rows: &[Row], surplus: &[Surplus]) -> Result<bool, CommandFailure> {
        match self {
            Printer::Json { document, .. } => document.rows(rows),
            Printer::Jsonl => output::piped_open(|out| rows.iter().try_for_each(|row| output::json_line(out, row))),
            Printer::Export => output::piped_open(|out| write_export(out, rows, surplus, entity)),
            Printer::Csv { is_begun, unread } => output::piped_open(|out| {
                *unread += rows.iter().filter(|row| !row.problems.is_empty()).count() as u64;
                let headings = (!std::mem::replace(is_begun, true)).then(|| entity.columns().iter().map(|c| c.name));
                output::csv(out, headings, rows.iter().map(output::csv_fields))
            }),
        }
    }

    /// Prints the lines after the rows.
    fn end(mut self, entity: Entity, next: Option<String>) -> Result<(), CommandFailure> {
        if matches!(self, Printer::Csv { is_begun: false, .. }) {
            self.rows(entity, &[], &[])?;
        }
        match self {
            Printer::Json { document, as_of } => document.end(&AfterRows { next, as_of }),
            Printer::Csv { unread, .. } if unread > 0 => {
                output::tell(&agreeing(
                    unread,
                    "{#} {row has values that cannot be read, which are|rows have values that cannot be read, which are} \
                     empty here: --format json names them",
                ));
                Ok(())
            }
            Printer::Jsonl | Printer::Csv { .. } | Printer::Export => Ok(()),
        }
    }
}

/// An exported row: its canonical values, its entity, and the data to restore it exactly. It is written without a copy:
/// a row may have a million ids.
#[derive(serde::Serialize)]
struct ExportedRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    entity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<StoredForm<'a>>,
    /// 32-bit floats are printed with the shortest digits that give the same bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<&'a [f32]>,
}

pub(super) fn write_export(
    out: &mut dyn Write,
    rows: &[Row],
    surplus: &[Surplus],
    entity: Entity,
) -> std::io::Result<()> {
    rows.iter().enumerate().try_for_each(|(i, row)| {
        let surplus = surplus.get(i);
        let stored = surplus.and_then(Surplus::stored);
        let vector = surplus.and_then(|s| s.vector.as_deref());
        output::json_line(out, &ExportedRow { row, entity: entity.name(), stored, vector })
    })
}

/// Members that `list` prints after the rows in JSON.
#[derive(serde::Serialize)]
struct AfterRows {
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<AsOf>,
}

/// `export ENTITY…`.
pub async fn export(
    session: &Session<'_>,
    names: &[String],
    selection: &Selection,
    out: Option<&std::path::Path>,
) -> Result<(), CommandFailure> {
    if matches!(session.global.format, Some(Format::Csv | Format::Table)) {
        return Err(CommandFailure::usage(
            "`export` writes JSON lines: leave out --format; `list ENTITY --format csv` prints rows as CSV, `--format table` as a \
             table",
        ));
    }
    // Of one person, unless the second word is an entity too.
    if let [first, subject] = names
        && Entity::parse(first) == Some(Entity::Subject)
        && Entity::parse(subject).is_none()
    {
        if !selection.is_empty() {
            return Err(CommandFailure::usage(
                "`export subject SUBJECT` writes everything about a person: leave out --where, --order and --canvas",
            ));
        }
        return person::export(session, subject, out).await;
    }
    if out.is_some() {
        return Err(CommandFailure::usage("--out is for `export subject SUBJECT`"));
    }
    let mut queries = Vec::new();
    for name in names {
        queries.push(query(entity(name)?, selection)?);
    }
    let mut reader = RowReader::new(session, session.store().await?, None);
    for query in &queries {
        reader.store.sources_of(query.entity)?;
    }
    if session.mask().is_some() {
        output::tell("mnemoscope: masked: vectors and stored values are left out");
    }
    // Entities that others depend on come first, as an import needs them.
    queries.sort_by_key(|q| ORDER.iter().position(|entity| *entity == q.entity).unwrap_or(ORDER.len()));
    for query in queries {
        if reader.stream(query.clone(), None, Printer::Export).await? == 0 {
            hints::values(session, &reader.store, &query).await;
        }
    }
    Ok(())
}

pub async fn show(session: &Session<'_>, name: &str, id: &str, as_of: Option<&str>) -> Result<(), CommandFailure> {
    let entity = entity(name)?;
    if entity == Entity::Subject && as_of.is_some() {
        return Err(CommandFailure::usage("--as-of is for rows; a person is shown as they are now"));
    }
    let moment = past::moment(as_of)?;
    let (store, as_of) = past::store(session, moment.as_ref()).await?;
    let missing = || CommandFailure::not_found(store.none_found(entity, id));
    match entity {
        Entity::Subject => output::shape(session.format(), &person::show(session, &store, id).await?),
        Entity::Episode => {
            let outline = store.contexts().outline(id, Relatives::Ids).await?.ok_or_else(missing)?;
            PrintedContext::new(session, &store)?.episode(outline, as_of).await
        }
        _ => {
            let row = store.row(entity, id).await?.ok_or_else(missing)?;
            PrintedContext::new(session, &store)?.row(row, as_of).await
        }
    }
}

pub async fn chain(session: &Session<'_>, id: &str) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let found = store.contexts().chain(id, Relatives::Ids).await?;
    let found = found
        .ok_or_else(|| CommandFailure::not_found(format!("there is no episode `{id}` in {}", store.location())))?;
    PrintedContext::new(session, &store)?.chain(found).await
}

pub(super) fn mask_rows(session: &Session<'_>, rows: &mut [Row]) {
    if let Some(mask) = session.mask() {
        rows.iter_mut().for_each(|row| mask.row(row));
    }
}
