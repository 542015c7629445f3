//! `tables` and `table`: the contents of a database, with or without a layout.

use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::document::{Document, RowsDocument};
use super::options::{Format, at_least_one};
use super::table::{self, CellShape, PrintedColumn};
use super::{CommandFailure, Session, columns, output};
use crate::memory::query::{CountKind, PART};
use crate::store::Store;
use crate::store::raw_table::{RawPage, RawQuery, RawTable, ShownRaw};
use crate::ui::text::SafeText;

/// Choice and order of a raw table's rows.
#[derive(Debug, Clone, Args)]
pub struct RawSelection {
    /// Condition `column OP value` with = != < <= > >= ~ (contains); several must all hold. `null` asks for empty ones.
    #[arg(long = "where", value_name = "EXPR")]
    pub filters: Vec<String>,
    /// Order [default: by the key].
    #[arg(long, value_name = "COLUMN[:asc|:desc]")]
    pub order: Option<String>,
    /// Maximum number of rows [default: 50; all with --format jsonl or csv].
    #[arg(long, value_parser = at_least_one())]
    pub limit: Option<usize>,
    /// Continue after this cursor: `next` of the previous page.
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
}

/// Rows read at a time if all of them are wanted.
const STRIDE: usize = 500;
/// Columns of the list of tables.
const TITLES: [(&str, CellShape); 6] = [
    ("Table", CellShape::Word),
    ("Kind", CellShape::Word),
    ("Rows", CellShape::Number),
    ("Bytes", CellShape::Number),
    ("Key", CellShape::Text),
    ("Entities", CellShape::Text),
];

pub async fn tables(session: &Session<'_>) -> Result<(), CommandFailure> {
    let tables = session.store().await?.raw().raw_tables().await?;
    let described = || tables.iter().map(table_json);
    match session.format() {
        Format::Json => {
            let mut document = Document::new(Format::Json)?;
            document.list("tables", tables.len());
            document.items(described())?;
            document.finish().map(|_| ())
        }
        Format::Jsonl => output::piped(|out| described().try_for_each(|table| output::json_line(out, &table))),
        Format::Csv => {
            let rows = tables.iter().map(|table| fields(table).map(|f| output::csv_field(&json!(f))));
            let headings = ["table", "kind", "rows", "bytes", "key", "entities"];
            output::piped(|out| output::csv(out, Some(headings), rows))
        }
        Format::Table => output::piped(|out| {
            let rows: Vec<_> = tables.iter().map(|t| fields(t).iter().map(|f| SafeText::new(f)).collect()).collect();
            output::table(out, &table::columns(&TITLES), &rows)?;
            for (table, why) in tables.iter().filter_map(|t| t.unread.as_ref().map(|why| (t, why))) {
                writeln!(out, "{}: {}", SafeText::new(&table.title), SafeText::new(why))?;
            }
            Ok(())
        }),
    }
}

fn table_json(table: &RawTable) -> Value {
    let columns: Vec<Value> =
        table.columns.iter().map(|c| json!({ "name": c.name, "type": c.declared, "required": c.not_null })).collect();
    let mut value = json!({
        "name": table.title,
        "schema": table.name.schema,
        "kind": table.kind,
        "rows": table.rows,
        "count_kind": table.rows.map(|_| table.count_kind),
        "bytes": table.bytes,
        "key": table.key,
        "columns": columns,
        "entities": table.entities,
    });
    if let Some(why) = &table.unread {
        value["unread"] = json!(why);
    }
    if let Some(why) = &table.rows_reason {
        value["rows_reason"] = json!(why);
    }
    value
}

fn fields(table: &RawTable) -> [String; 6] {
    let about = if table.count_kind == CountKind::About { "about " } else { "" };
    [
        table.title.clone(),
        table.kind.to_owned(),
        table.rows.map(|rows| format!("{about}{rows}")).unwrap_or_default(),
        table.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
        table.key.join(", "),
        table.entities.join(", "),
    ]
}

/// `table NAME`.
pub async fn table(session: &Session<'_>, name: &str, selection: &RawSelection) -> Result<(), CommandFailure> {
    let mut store = session.store().await?;
    let table = store.raw().raw_table(name).await?;
    if let Some(why) = &table.unread {
        return Err(CommandFailure::refused(format!("the rows of {} cannot be read: {why}", table.title)));
    }
    let mut query =
        RawQuery::parse(table, &selection.filters, selection.order.as_deref()).map_err(CommandFailure::usage)?;
    query.after = Session::typed_cursor(selection.after.as_deref())?;
    let format = session.format();
    let limit = selection.limit.unwrap_or(query.limit);
    if format != Format::Table {
        let most = selection.limit.or((format == Format::Json).then_some(limit));
        return stream(session, &mut store, query, most, format).await;
    }
    (query.limit, query.preview, query.bytes) = (limit, Some(columns::preview()), Some(PART / 2));
    let page = page(session, &store, &query).await?;
    let rows: Vec<Vec<_>> =
        page.rows.iter().map(|row| row.iter().map(|cell| SafeText::new(&cell.line())).collect()).collect();
    output::piped(|out| output::table(out, &titles(&query.table), &rows))?;
    columns::report_cut_texts(rows.iter().flatten().map(SafeText::as_str));
    if let Some(next) = session.printed_cursor(page.next) {
        output::tell(&format!("more rows follow: --after {next}"));
    }
    Ok(())
}

/// Headings of a raw table: the key comes first, so that it is never dropped.
fn titles(table: &RawTable) -> Vec<PrintedColumn> {
    let titled = |(at, column): (usize, &crate::layout::CatalogColumn)| {
        let rank = if table.key.contains(&column.name) { 0 } else { u8::try_from(at + 1).unwrap_or(u8::MAX) };
        PrintedColumn::new(&column.name, CellShape::Text, rank)
    };
    table.columns.iter().enumerate().map(titled).collect()
}

async fn page(session: &Session<'_>, store: &Store, query: &RawQuery) -> Result<RawPage, CommandFailure> {
    let page = store.raw().raw_page(query).await;
    let mut page = page.map_err(|error| match error.unfit_value().filter(|_| query.is_filtered()) {
        Some(words) => CommandFailure::usage(format!("--where: a value does not fit its column: {words}")),
        None => error.into(),
    })?;
    if let Some(mask) = session.mask() {
        page.rows.iter_mut().flatten().for_each(|cell| cell.mask(&mask));
    }
    Ok(page)
}

/// Prints rows as they are read, `most` of them where there is a limit. At a damaged page it continues with what can be
/// read.
async fn stream(
    session: &Session<'_>,
    store: &mut Store,
    mut query: RawQuery,
    most: Option<usize>,
    format: Format,
) -> Result<(), CommandFailure> {
    query.bytes = Some(PART);
    let (mut printed, mut document) = (0, RowsDocument::begin());
    loop {
        query.limit = most.map_or(STRIDE, |most| most - printed);
        let page = match page(session, store, &query).await {
            Ok(page) => page,
            Err(failure) => {
                *store = session.past(failure).await?;
                continue;
            }
        };
        let table = &query.table;
        let is_read = match format {
            Format::Json => document.rows(page.rows.iter().map(|row| RowObject(table, row)))?,
            Format::Csv => output::piped_open(|out| {
                let headings = table.columns.iter().map(|c| output::csv_field(&json!(c.name)));
                let rows = page.rows.iter().map(|row| row.iter().map(|c| output::csv_field(c.part())));
                output::csv(out, (printed == 0).then_some(headings), rows)
            })?,
            Format::Jsonl | Format::Table => output::piped_open(|out| {
                page.rows.iter().try_for_each(|row| output::json_line(out, &RowObject(table, row)))
            })?,
        };
        printed += page.rows.len();
        match page.next {
            Some(next) if is_read && most.is_none_or(|most| printed < most) => query.after = Some(next),
            next if format == Format::Json => {
                return document.end(&json!({ "next": session.printed_cursor(next) }));
            }
            _ => return Ok(()),
        }
    }
}

struct RowObject<'a>(&'a RawTable, &'a [ShownRaw]);

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.columns.iter().zip(self.1).map(|(column, cell)| (&column.name, cell.part())))
    }
}
