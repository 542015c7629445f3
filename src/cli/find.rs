//! `find`: searches all texts of a database for words.

use clap::Args;
use serde_json::{Value, json};

use super::document::RowsDocument;
use super::look::entity;
use super::options::{Format, at_least_one};
use super::{CommandFailure, Session, output};
use crate::memory::query::PAGE;
use crate::memory::search::{SEARCHED, Search};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::find::FoundPage;
use crate::ui::text::SafeText;

/// Columns of CSV.
const COLUMNS: [&str; 4] = ["entity", "id", "column", "snippet"];

/// Rows read at a time.
const STRIDE: usize = 500;

/// Words to look for, and the rows to look in.
#[derive(Debug, Clone, Args)]
pub struct Find {
    /// Words that a row's texts must hold, in any order and case; double quotes keep words together.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// Only rows of this kind: episode, segment, feedback, case or memory. May be repeated.
    #[arg(long = "entity", value_name = "ENTITY")]
    pub entities: Vec<String>,
    /// Maximum number of rows [default: 50; all with --format jsonl or csv].
    #[arg(long, value_parser = at_least_one())]
    pub limit: Option<usize>,
    /// Continue after this cursor: `next` of the previous page in JSON.
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
}

/// Searches for words.
///
/// # Errors
/// Code 2 for an invalid search, code 5 for an entity that the database does not hold; else an error of the database.
pub(super) async fn run(session: &Session<'_>, asked: &Find) -> Result<(), CommandFailure> {
    let search = Search::parse(&asked.text).map_err(CommandFailure::usage)?;
    let named = asked.entities.iter().map(|name| searched(name)).collect::<Result<Vec<Entity>, CommandFailure>>()?;
    let mut store = session.store().await?;
    let entities = if named.is_empty() { held(&store)? } else { named };
    let format = session.format();
    let all = matches!(format, Format::Jsonl | Format::Csv);
    let mut left = asked.limit.or((!all).then_some(PAGE));
    let mut document = (format == Format::Json).then(RowsDocument::begin);
    let mut after = Session::typed_cursor(asked.after.as_deref())?;
    let mut begun = false;
    loop {
        let limit = left.map_or(STRIDE, |left| left.min(STRIDE));
        let page = match store.find(&search, &entities, limit, after.as_deref()).await {
            Ok(page) => page,
            Err(error) => {
                store = session.past(error.into()).await?;
                continue;
            }
        };
        left = left.map(|left| left - page.rows.len());
        let shown: Vec<Value> = rows(session, &page);
        let open = match format {
            Format::Json => document.as_mut().map_or(Ok(true), |document| document.rows(&shown))?,
            Format::Table => print(&search, &shown)?,
            Format::Jsonl => output::piped_open(|out| shown.iter().try_for_each(|row| output::json_line(out, row)))?,
            Format::Csv => {
                let fields = shown.iter().map(|row| COLUMNS.map(|column| output::csv_field(&row[column])));
                output::piped_open(|out| output::csv(out, (!begun).then_some(COLUMNS), fields))?
            }
        };
        begun |= !shown.is_empty();
        match page.next {
            Some(next) if open && left != Some(0) => after = Some(next),
            next => return end(document, begun, format, session.printed_cursor(next)),
        }
    }
}

/// Prints the lines after the rows.
fn end(
    document: Option<RowsDocument>,
    is_any: bool,
    format: Format,
    next: Option<String>,
) -> Result<(), CommandFailure> {
    if let Some(document) = document {
        return document.end(&json!({ "next": next }));
    }
    if format != Format::Table {
        return Ok(());
    }
    if !is_any {
        output::piped(|out| writeln!(out, "nothing was found"))?;
    }
    if let Some(next) = next {
        output::tell(&format!("more rows follow: --limit shows more, --after {next} continues"));
    }
    Ok(())
}

fn searched(name: &str) -> Result<Entity, CommandFailure> {
    let entity = entity(name)?;
    if SEARCHED.contains(&entity) {
        return Ok(entity);
    }
    let known: Vec<&str> = SEARCHED.iter().map(|e| e.name()).collect();
    Err(CommandFailure::usage(format!(
        "{} holds no texts to look through; these do: {}",
        entity.title(),
        known.join(", ")
    )))
}

/// The searchable entities that the database holds.
fn held(store: &Store) -> Result<Vec<Entity>, CommandFailure> {
    let held: Vec<Entity> = SEARCHED.iter().copied().filter(|entity| store.sources_of(*entity).is_ok()).collect();
    if held.is_empty() {
        store.sources_of(Entity::Memory)?;
    }
    Ok(held)
}

fn rows(session: &Session<'_>, page: &FoundPage) -> Vec<Value> {
    let mask = session.mask();
    let shown = |(row, hit): &(Row, crate::memory::search::SearchHit)| {
        let mut snippet = Value::from(hit.snippet.clone());
        if let Some(mask) = &mask {
            mask.unknown(&mut snippet);
        }
        json!({ "entity": row.entity.name(), "id": row.id(), "column": hit.column, "snippet": snippet })
    };
    page.rows.iter().map(shown).collect()
}

/// Prints rows; whether the reader is still there.
fn print(search: &Search, rows: &[Value]) -> Result<bool, CommandFailure> {
    output::piped_open(|out| {
        for row in rows {
            let word = |name: &str| SafeText::new(row[name].as_str().unwrap_or_default()).to_string();
            writeln!(out, "{} {}  {}", word("entity"), output::ink().heading(word("id")), word("column"))?;
            writeln!(out, "    {}", lit(search, row["snippet"].as_str().unwrap_or_default()))?;
        }
        Ok(())
    })
}

/// A snippet with the matches in colour.
fn lit(search: &Search, snippet: &str) -> String {
    let safe = SafeText::new(snippet);
    let mut ranges: Vec<_> = search.terms().iter().flat_map(|term| safe.find(term)).collect();
    ranges.sort_by_key(|range| range.start);
    let (text, mut out, mut at) = (safe.as_str(), String::new(), 0);
    for range in ranges {
        if range.start >= at && text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
            out.push_str(&text[at..range.start]);
            out.push_str(&output::ink().good(&text[range.clone()]));
            at = range.end;
        }
    }
    out + &text[at..]
}
