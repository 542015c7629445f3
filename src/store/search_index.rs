//! Full-text indexes of SQLite that read their words from another table. Where no trigger takes a change over into such an
//! index, it is made again with the change.

use super::dialect::quote;
use super::engine_error::primary_code;
use super::fetched::{FetchedValue, number, text};
use super::shape::qualified;
use super::stored::{Mutation, TableName};
use super::write::{WriteError, WriteTransaction};
use crate::layout::Engine;

/// A full-text index that a change would leave with words that its rows no longer have, or without those that they get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaggingIndex {
    /// Table of the index.
    pub index: TableName,
    /// Table with the texts.
    pub table: TableName,
    /// Whether every row of the table is in it: one that leaves rows out cannot be made again.
    is_whole: bool,
}

/// A full-text index and the columns of the other table that it reads; none where these could not be found out.
struct ReadingIndex {
    name: String,
    columns: Vec<String>,
}

/// A trigger: what sets it off, and what it runs, in lower case.
struct Trigger {
    event: String,
    body: String,
}

/// The full-text indexes of a schema, and the triggers of a table.
const OBJECTS: &str = "SELECT type, name, sql FROM $schema WHERE type = 'trigger' AND lower(tbl_name) = lower($1) \
     OR type = 'table' AND lower(sql) LIKE 'create virtual table%using%fts%content%' ORDER BY name";
/// The columns of a full-text index.
const COLUMNS: &str = "SELECT name FROM pragma_table_xinfo($1, $2) WHERE hidden = 0";

impl WriteTransaction<'_> {
    /// Finds the indexes that no trigger keeps in step with changes that are about to be made. PostgreSQL has none.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn lagging_indexes(&mut self, mutations: &[Mutation]) -> Result<Vec<LaggingIndex>, WriteError> {
        if self.engine() == Engine::Postgres {
            return Ok(Vec::new());
        }
        let mut tables: Vec<&TableName> = mutations.iter().map(Mutation::table).collect();
        tables.sort();
        tables.dedup();
        let mut all = Vec::new();
        for table in tables {
            let (indexes, triggers) = self.readers_of(table).await?;
            for index in indexes {
                let mut changes = mutations.iter().filter(|mutation| mutation.table() == table);
                if changes.any(|mutation| lags(&index, &triggers, mutation)) {
                    let is_whole = self.is_whole(table, &index.name).await;
                    let index = TableName::new(table.schema.as_str(), index.name);
                    all.push(LaggingIndex { index, table: table.clone(), is_whole });
                }
            }
        }
        Ok(all)
    }

    /// The indexes that read a table, and the triggers of that table.
    async fn readers_of(&mut self, table: &TableName) -> Result<(Vec<ReadingIndex>, Vec<Trigger>), WriteError> {
        let schema = qualified(&TableName::new(table.schema.as_str(), "sqlite_schema"));
        let sql = OBJECTS.replace("$schema", &schema);
        let (mut indexes, mut triggers) = (Vec::new(), Vec::new());
        for row in self.fetch(&sql, &[FetchedValue::Text(table.name.clone())]).await? {
            let (name, sql) = (text(&row, 1), text(&row, 2));
            if text(&row, 0) == "trigger" {
                triggers.extend(trigger(&sql));
            } else if option(&sql, "content") == Some(compact(&table.name)) {
                let named = [&name, &table.schema].map(|name| FetchedValue::Text(name.clone()));
                // A tokenizer that is not here keeps the index from being opened.
                let columns = self.fetch(COLUMNS, &named).await.unwrap_or_default();
                indexes.push(ReadingIndex { name, columns: columns.iter().map(|row| text(row, 0)).collect() });
            }
        }
        Ok((indexes, triggers))
    }

    /// Whether an index knows at least as many rows as its table has; it may still know some that are gone.
    async fn is_whole(&mut self, table: &TableName, index: &str) -> bool {
        let known = qualified(&TableName::new(table.schema.as_str(), format!("{index}_docsize")));
        let sql = format!("SELECT (SELECT count(*) FROM {known}) >= (SELECT count(*) FROM {})", qualified(table));
        let answer = self.fetch(&sql, &[]).await.unwrap_or_default();
        answer.first().is_some_and(|row| number(row, 0) == 1)
    }

    /// Makes an index again from the rows as they are now. False where it has to be left as it is.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn make_again(&mut self, lagging: &LaggingIndex) -> Result<bool, WriteError> {
        if !lagging.is_whole {
            return Ok(false);
        }
        let (table, name) = (qualified(&lagging.index), quote(&lagging.index.name));
        match self.link()?.script(&format!("INSERT INTO {table} ({name}) VALUES ('rebuild')")).await {
            Ok(()) => Ok(true),
            // Something that the index needs is not here.
            Err(error) if primary_code(&error) == Some(1) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a change moves what an index reads, and no trigger tells the index.
fn lags(index: &ReadingIndex, triggers: &[Trigger], mutation: &Mutation) -> bool {
    let (event, set): (_, Vec<&String>) = match mutation {
        Mutation::Insert { .. } => ("insert", Vec::new()),
        Mutation::Delete(_) => ("delete", Vec::new()),
        Mutation::Update { set, .. } => ("update", set.iter().map(|(column, _)| column).collect()),
        Mutation::Revise(revise) => ("update", revise.columns.iter().collect()),
    };
    let is_read = |column: &&String| {
        index.columns.is_empty() || index.columns.iter().any(|read| read.eq_ignore_ascii_case(column))
    };
    let moved: Vec<String> = set.into_iter().filter(is_read).map(|column| column.to_lowercase()).collect();
    if event == "update" && moved.is_empty() {
        return false;
    }
    !triggers.iter().any(|trigger| trigger.tells(&index.name.to_lowercase(), event, &moved))
}

impl Trigger {
    /// Whether it tells an index of such a change of columns, while the index can still know the words of before: it names
    /// them with 'delete', or takes the row out of the index before the change.
    fn tells(&self, index: &str, event: &str, moved: &[String]) -> bool {
        let (kind, of) = self.event.split_once(" of ").unwrap_or((self.event.as_str(), ""));
        let listed: Vec<&str> = of.split(',').map(|name| name.trim().trim_matches(['"', '`', '[', ']'])).collect();
        if !kind.ends_with(&format!(" {event}")) || !self.body.contains(index) {
            return false;
        }
        let is_listed = of.is_empty() || moved.iter().all(|column| listed.contains(&column.as_str()));
        // Without a word for it, a trigger runs before the change.
        let is_before = !kind.ends_with(&format!(" after {event}")) && self.body.contains("delete from");
        let is_named = ["'delete'", "\"delete\""].iter().any(|word| self.body.contains(word));
        is_listed && (event == "insert" || is_before || is_named)
    }
}

/// Reads the definition of a trigger.
fn trigger(sql: &str) -> Option<Trigger> {
    let sql = sql.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let (head, body) = sql.split_once(" begin ")?;
    let (event, _) = head.split_once(" on ")?;
    Some(Trigger { event: event.to_owned(), body: body.to_owned() })
}

/// An option of a full-text index, in small letters without blanks and quotation marks; none where it is empty or not given. The
/// one of `content` is the table whose rows it reads.
pub(super) fn option(sql: &str, name: &str) -> Option<String> {
    let sql = compact(sql);
    let rest = [',', '('].iter().find_map(|mark| sql.split_once(&format!("{mark}{name}=")))?.1;
    let value = match rest.chars().next()? {
        mark @ ('\'' | '"' | '`') => rest[1..].split(mark).next()?,
        '[' => rest[1..].split(']').next()?,
        _ => rest.split([',', ')']).next()?,
    };
    (!value.is_empty()).then(|| value.to_owned())
}

/// Whether a full-text index keeps no content, neither its own nor another table's.
pub(super) fn is_contentless(sql: &str) -> bool {
    let sql = compact(sql);
    sql.contains("content=''") || sql.contains("content=\"\"")
}

fn compact(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect()
}
