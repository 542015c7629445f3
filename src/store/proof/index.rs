//! Remains in search indexes: words in full-text indexes of SQLite and entries for deleted rows, neighbours of a vector
//! in PostgreSQL.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::layout::Engine;
use crate::store::dialect::quote;
use crate::store::engine_error::explain;
use crate::store::fetched::{FetchedValue, number, text};
use crate::store::search_index::is_contentless;
use crate::store::session::Opener;
use crate::store::shape::qualified;
use crate::store::sqlite_reader::SqliteReader;
use crate::store::stored::TableName;
use crate::store::{ProofReader, StoreError};

/// An index belongs to a table if at most one in this many entries has no row there.
const MOST_ORPHANS: u64 = 10;

/// Findings of one search index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexHits {
    /// Table of the index.
    pub table: String,
    /// Number of rows that match each handle as a phrase, by its number; if the index stores no positions, rows with
    /// all of its words.
    pub rows: Vec<u64>,
    /// Number of rows under a term that is the whole handle, by its number.
    pub terms: Vec<u64>,
    /// Whether the index stores nothing of its source text, and so cannot be rebuilt.
    pub contentless: bool,
    /// Reason why the index could not be queried.
    pub unread: Option<String>,
}

impl IndexHits {
    /// Hits for all handles.
    pub fn total(&self) -> u64 {
        self.rows.iter().chain(&self.terms).sum()
    }
}

/// An index whose entries use the row numbers or keys of another table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideIndex {
    /// Table of the index.
    pub index: String,
    /// The table its entries are about.
    pub table: TableName,
    /// Number of entries for missing rows.
    pub orphans: u64,
    /// SQL that counts these.
    sql: String,
}

/// A virtual table through which an index is queried.
struct Virtual {
    schema: String,
    name: String,
    module: String,
    /// Definition of the table in lower case, without blanks.
    options: String,
}

impl Virtual {
    fn is_full_text(&self) -> bool {
        matches!(self.module.as_str(), "fts5" | "fts4" | "fts3")
    }

    /// The shadow table with one row per entry, and its column with the entry's number or key.
    fn entries(&self) -> [(String, &'static str); 3] {
        let shadow = |ending: &str| format!("{}_{ending}", self.name);
        let number = if self.module == "fts5" { "id" } else { "docid" };
        [(shadow("docsize"), number), (shadow("rowids"), "id"), (shadow("rowids"), "rowid")]
    }
}

const VIRTUAL: &str = "SELECT name, sql FROM $schema.sqlite_schema WHERE type = 'table' \
     AND lower(sql) LIKE 'create virtual table%' ORDER BY name";
/// Modules that only show other data, or hold numbers.
const HARMLESS: &[&str] = &["fts5vocab", "fts4aux", "fts3tokenize", "rtree", "rtree_i32", "geopoly", "dbstat"];

async fn virtual_tables(link: &mut SqliteReader) -> Result<Vec<Virtual>, sqlx::Error> {
    let mut all = Vec::new();
    for schema in link.fetch("SELECT name FROM pragma_database_list WHERE name <> 'temp' ORDER BY seq", &[]).await? {
        let schema = text(&schema, 0);
        for row in link.fetch(&VIRTUAL.replace("$schema", &quote(&schema)), &[]).await? {
            let sql = text(&row, 1).to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
            let module = sql.split_once(" using ").map_or("", |(_, rest)| rest.trim_start());
            let module = module.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
            let options = sql.chars().filter(|c| !c.is_whitespace()).collect();
            all.push(Virtual { schema: schema.clone(), name: text(&row, 0), module, options });
        }
    }
    all.retain(|table| !HARMLESS.contains(&table.module.as_str()));
    Ok(all)
}

/// Shadow tables of virtual tables whose rows are not entries, but segments and pages. The content table of an index
/// has one row per entry.
async fn parts_of_indexes(link: &mut SqliteReader, virtuals: &[Virtual]) -> Result<HashSet<TableName>, sqlx::Error> {
    let sql = "SELECT schema, name FROM pragma_table_list WHERE type = 'shadow'";
    let mut parts: HashSet<TableName> =
        link.fetch(sql, &[]).await?.iter().map(|row| TableName::new(text(row, 0), text(row, 1))).collect();
    parts.retain(|table| !table.name.ends_with("_content"));
    // If the module is missing, SQLite cannot tell.
    for index in virtuals {
        parts.extend(index.entries().map(|(shadow, _)| TableName::new(index.schema.clone(), shadow)));
    }
    Ok(parts)
}

impl ProofReader<'_> {
    /// Queries every search index of SQLite for handles. Empty for PostgreSQL, whose indexes only refer to rows, which
    /// are searched themselves.
    ///
    /// # Errors
    /// The engine's refusal; an index that cannot be queried is reported in the result.
    pub async fn search_indexes(self, handles: &[String]) -> Result<Vec<IndexHits>, StoreError> {
        let Opener::Sqlite(database) = self.store.sessions.opener() else { return Ok(Vec::new()) };
        // A separate connection: the vocabulary is read through temporary tables, which reading sessions may not
        // create.
        let mut link = database.reader().await?;
        let mut all = Vec::new();
        for table in virtual_tables(&mut link).await? {
            all.push(ask(&mut link, &table, handles).await);
        }
        Ok(all)
    }

    /// Indexes whose entries use the row numbers or keys of one of some tables: vector indexes, and contentless
    /// full-text indexes. The table of an index is recognized by its entries, nearly all of which have a row there.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn side_indexes(self, tables: &[TableName]) -> Result<Vec<SideIndex>, StoreError> {
        let Opener::Sqlite(database) = self.store.sessions.opener() else { return Ok(Vec::new()) };
        let mut link = database.reader().await?;
        let virtuals = virtual_tables(&mut link).await?;
        let parts = parts_of_indexes(&mut link, &virtuals).await?;
        let mut all = Vec::new();
        for index in virtuals.iter().filter(|v| !v.is_full_text() || is_contentless(&v.options)) {
            let mut sides = Vec::new();
            let shadow = |table: &&TableName| table.name.starts_with(&format!("{}_", index.name));
            let rows = |table: &&TableName| table.schema == index.schema && !shadow(table) && !parts.contains(*table);
            for table in tables.iter().filter(rows) {
                sides.extend(about(&mut link, index, table).await);
            }
            // Row numbers begin at 1 everywhere: if the name does not tell, every table that fits may be the one.
            let named =
                |side: &SideIndex| index.name.contains(&side.table.name) || side.table.name.contains(&index.name);
            let some_named = sides.iter().any(named);
            all.extend(sides.into_iter().filter(|side| named(side) || !some_named));
        }
        Ok(all)
    }

    /// Counts the entries of an index for missing rows, now.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn orphans_of(self, side: &SideIndex) -> Result<u64, StoreError> {
        let Opener::Sqlite(database) = self.store.sessions.opener() else { return Ok(0) };
        let mut link = database.reader().await?;
        // A dropped index contains nothing.
        let found = link.fetch(&side.sql, &[]).await.unwrap_or_default();
        Ok(found.first().map_or(0, |row| number(row, 1) as u64))
    }

    /// Keys of the `k` rows with the vectors nearest to one, by the engine's own index if it has one. Empty on SQLite,
    /// which has no such index.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn nearest_keys(
        self,
        table: &TableName,
        by: &[&str],
        vector: &str,
        query: &[f32],
        k: usize,
    ) -> Result<Option<Vec<Vec<String>>>, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(None);
        }
        let numbers: Vec<String> = query.iter().map(ToString::to_string).collect();
        let columns: Vec<String> = by.iter().map(|column| format!("{}::text", quote(column))).collect();
        let sql = format!(
            "SELECT {} FROM {} ORDER BY {} <=> $1::vector LIMIT {k}",
            columns.join(", "),
            qualified(table),
            quote(vector)
        );
        let rows = self.store.sessions.fetch(&sql, &[FetchedValue::Text(format!("[{}]", numbers.join(",")))]).await?;
        Ok(Some(rows.iter().map(|row| (0..by.len()).map(|at| text(row, at)).collect()).collect()))
    }
}

/// The index as one of this table; `None` if it is not.
async fn about(link: &mut SqliteReader, index: &Virtual, table: &TableName) -> Option<SideIndex> {
    let key = format!(
        "SELECT name FROM pragma_table_info({}, {}) WHERE pk = 1",
        literal(&table.name),
        literal(&table.schema)
    );
    let key = link.fetch(&key, &[]).await.ok()?.first().map(|row| quote(&text(row, 0)));
    for (shadow, column) in index.entries() {
        let (schema, shadow) = (quote(&index.schema), quote(&shadow));
        for by in std::iter::once("rowid".to_owned()).chain(key.clone()) {
            let sql = format!(
                "SELECT count(*), coalesce(sum(NOT EXISTS (SELECT 1 FROM {} t WHERE t.{by} = v.{column})), 0) FROM {schema}.{shadow} v \
                 WHERE v.{column} IS NOT NULL",
                qualified(table)
            );
            // No such shadow table, or a table without row numbers.
            let Ok(found) = link.fetch(&sql, &[]).await else { continue };
            let (entries, orphans) = found.first().map_or((0, 0), |row| (number(row, 0) as u64, number(row, 1) as u64));
            if entries > 0 && orphans * MOST_ORPHANS <= entries {
                return Some(SideIndex { index: index.name.clone(), table: table.clone(), orphans, sql });
            }
        }
    }
    None
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

async fn ask(link: &mut SqliteReader, table: &Virtual, handles: &[String]) -> IndexHits {
    let (rows, terms, contentless) = (Vec::new(), Vec::new(), is_contentless(&table.options));
    let mut hits = IndexHits { table: table.name.clone(), rows, terms, contentless, unread: None };
    if !table.is_full_text() {
        hits.unread = Some(format!("the extension behind `{}` is not available", table.module));
        return hits;
    }
    let outcome = async {
        for handle in handles {
            let found = match phrase(link, table, handle).await {
                // Without positions, phrases cannot be queried.
                Err(_) if table.module == "fts5" && is_contentless(&table.options) => {
                    all_words(link, table, handle).await?
                }
                // Its source text is searched itself, and the index is rebuilt from it.
                Err(_) if table.options.contains("detail=") => 0,
                found => found?,
            };
            hits.rows.push(found);
        }
        if table.module == "fts5" {
            hits.terms = vocabulary(link, table, handles).await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    if let Err(error) = outcome.await {
        hits.unread = Some(explain(&error));
    }
    hits
}

/// Number of rows with a handle's words in sequence. A handle without words matches none.
async fn phrase(link: &mut SqliteReader, table: &Virtual, handle: &str) -> Result<u64, sqlx::Error> {
    if !handle.chars().any(char::is_alphanumeric) {
        return Ok(0);
    }
    let (schema, name) = (quote(&table.schema), quote(&table.name));
    let sql = format!("SELECT count(*) FROM {schema}.{name} WHERE {name} MATCH $1");
    let phrase = format!("\"{}\"", handle.replace('"', "\"\"").replace('\0', ""));
    count(link, &sql, &[FetchedValue::Text(phrase)]).await
}

/// Number of rows with all words of a handle, as split by the index's own tokenizer.
async fn all_words(link: &mut SqliteReader, table: &Virtual, handle: &str) -> Result<u64, sqlx::Error> {
    let tokenizer = tokenizer(&table.options, link, table).await?;
    let make = format!(
        "DROP TABLE IF EXISTS temp.asked; DROP TABLE IF EXISTS temp.asked_words; DROP TABLE IF EXISTS temp.held; \
         CREATE VIRTUAL TABLE temp.asked USING fts5(x{tokenizer}); \
         CREATE VIRTUAL TABLE temp.asked_words USING fts5vocab(temp, asked, row); \
         CREATE VIRTUAL TABLE temp.held USING fts5vocab({}, {}, instance)",
        quote(&table.schema),
        quote(&table.name)
    );
    link.run(&make).await?;
    link.fetch("INSERT INTO temp.asked (x) VALUES ($1)", &[FetchedValue::Text(handle.to_owned())]).await?;
    let sql = "SELECT count(*) FROM (SELECT doc FROM temp.held WHERE term IN (SELECT term FROM temp.asked_words) \
         GROUP BY doc HAVING count(DISTINCT term) = (SELECT count(*) FROM temp.asked_words))";
    let found = count(link, sql, &[]).await;
    link.run("DROP TABLE temp.held; DROP TABLE temp.asked_words; DROP TABLE temp.asked").await?;
    found
}

/// The tokenizer option of an index, as in its definition.
async fn tokenizer(options: &str, link: &mut SqliteReader, table: &Virtual) -> Result<String, sqlx::Error> {
    if !options.contains("tokenize=") {
        return Ok(String::new());
    }
    let sql = format!("SELECT sql FROM {}.sqlite_schema WHERE name = $1", quote(&table.schema));
    let definition = link.fetch(&sql, &[FetchedValue::Text(table.name.clone())]).await?;
    let definition = definition.first().map(|row| text(row, 0)).unwrap_or_default();
    let at = definition.to_ascii_lowercase().find("tokenize").unwrap_or_default();
    let option = &definition[at..];
    // Up to the next option, or the end; quoted text may contain anything.
    let mut quoted = None;
    let end = option.find(|c| match (quoted, c) {
        (None, '\'' | '"') => {
            quoted = Some(c);
            false
        }
        (Some(open), c) if open == c => {
            quoted = None;
            false
        }
        (None, ',' | ')') => true,
        _ => false,
    });
    Ok(format!(", {}", &option[..end.unwrap_or(option.len())]))
}

async fn vocabulary(link: &mut SqliteReader, table: &Virtual, handles: &[String]) -> Result<Vec<u64>, sqlx::Error> {
    let make = format!(
        "DROP TABLE IF EXISTS temp.vocabulary; CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab({}, {}, row)",
        quote(&table.schema),
        quote(&table.name)
    );
    link.run(&make).await?;
    let mut hits = Vec::new();
    for handle in handles {
        let sql = "SELECT coalesce(sum(doc), 0) FROM temp.vocabulary WHERE term = $1";
        hits.push(count(link, sql, &[FetchedValue::Text(handle.to_lowercase())]).await?);
    }
    link.run("DROP TABLE temp.vocabulary").await?;
    Ok(hits)
}

async fn count(link: &mut SqliteReader, sql: &str, params: &[FetchedValue]) -> Result<u64, sqlx::Error> {
    Ok(link.fetch(sql, params).await?.first().map_or(0, |row| number(row, 0) as u64))
}
