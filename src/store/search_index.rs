//! SQLite full-text indexes that read their words from another table. If no trigger updates such an index on a change,
//! it is rebuilt with the change.

use super::dialect::quote;
use super::engine_error::primary_code;
use super::fetched::{FetchedValue, number, text};
use super::shape::qualified;
use super::stored::{Mutation, TableName};
use super::write::{WriteError, WriteTransaction};
use crate::layout::Engine;

/// A full-text index that a change would leave with old words, or without new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaggingIndex {
    /// Table of the index.
    pub index: TableName,
    /// Table with the texts.
    pub table: TableName,
    /// Whether every row of the table is in it: an index that leaves rows out is not rebuilt.
    is_whole: bool,
}

/// A full-text index and the columns of the other table that it reads; empty if unknown.
struct ReadingIndex {
    name: String,
    /// Column of the other table with the row numbers.
    number: String,
    columns: Vec<String>,
}

/// A trigger on changes of some columns, or of any if none are named: its timing and event, and its statements in lower
/// case without blanks.
struct Trigger {
    event: String,
    columns: Vec<String>,
    steps: Vec<String>,
}

/// The full-text indexes of a schema, and the triggers of a table.
const OBJECTS: &str = "SELECT type, name, sql FROM $schema WHERE type = 'trigger' AND lower(tbl_name) = lower($1) \
     OR type = 'table' AND lower(sql) LIKE 'create virtual table%using%fts%content%' ORDER BY name";
/// The columns of a full-text index.
const COLUMNS: &str = "SELECT name FROM pragma_table_xinfo($1, $2) WHERE hidden = 0";

impl WriteTransaction<'_> {
    /// Finds the indexes that no trigger updates for the given changes. PostgreSQL has none.
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
                    let is_whole = self.is_whole(table, &index).await;
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
                // If its tokenizer is missing, the index cannot be opened.
                let columns = self.fetch(COLUMNS, &named).await.unwrap_or_default();
                let columns = columns.iter().map(|row| text(row, 0)).collect();
                indexes.push(ReadingIndex { name, number: number_column(&sql), columns });
            }
        }
        Ok((indexes, triggers))
    }

    /// Whether every row of a table is in an index; false if the index does not say.
    async fn is_whole(&mut self, table: &TableName, index: &ReadingIndex) -> bool {
        let sizes = TableName::new(table.schema.as_str(), format!("{}_docsize", index.name));
        for kept_out in kept_out(&qualified(table), &index.number, &qualified(&sizes)) {
            if let Ok(answer) = self.fetch(&format!("SELECT NOT EXISTS ({kept_out})"), &[]).await {
                return answer.first().is_some_and(|row| number(row, 0) == 1);
            }
        }
        false
    }

    /// Rebuilds an index from the current rows. Returns false if it must be left unchanged.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn make_again(&mut self, lagging: &LaggingIndex) -> Result<bool, WriteError> {
        if !lagging.is_whole {
            return Ok(false);
        }
        let (table, name) = (qualified(&lagging.index), quote(&lagging.index.name));
        let rebuild = format!("SAVEPOINT again; INSERT INTO {table} ({name}) VALUES ('rebuild'); RELEASE again");
        match self.link()?.script(&rebuild).await {
            Ok(()) => Ok(true),
            // Something that the index needs is missing, which showed only after it was emptied.
            Err(error) if primary_code(&error) == Some(1) => {
                self.link()?.script("ROLLBACK TO again; RELEASE again").await?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a change affects the columns of an index, and no trigger updates it.
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
    let told = || triggers.iter().filter(|trigger| trigger.is_set_off(event, &moved));
    let forgets = event == "insert" || told().any(|trigger| trigger.takes_out(index, event));
    let learns = event == "delete" || told().any(|trigger| trigger.puts_in(index));
    !(forgets && learns)
}

impl ReadingIndex {
    /// Spellings of its name in a trigger, without blanks.
    fn spellings(&self) -> impl Iterator<Item = String> {
        let name = compact(&self.name);
        [format!("\"{name}\""), format!("`{name}`"), format!("[{name}]"), format!("'{name}'"), name].into_iter()
    }

    /// The columns and the values of a statement that inserts one row with all its words into the index.
    fn inserted<'s>(&self, step: &'s str) -> Option<(Vec<&'s str>, &'s str)> {
        let into = |name: String| step.strip_prefix("insertinto")?.strip_prefix(&name)?.strip_prefix('(');
        let (columns, values) = self.spellings().find_map(into)?.split_once(")values(")?;
        let columns: Vec<&str> = columns.split(',').map(bare).collect();
        let is_there = |column: &String| columns.contains(&compact(column).as_str());
        self.columns.iter().all(is_there).then_some((columns, values))
    }
}

/// A name without its quotation marks.
fn bare(name: &str) -> &str {
    name.trim_matches(['"', '`', '[', ']', '\''])
}

/// Recognizes only the trigger statements in the form of the SQLite documentation: a trigger written otherwise does not
/// count, and the index is rebuilt.
impl Trigger {
    fn is_set_off(&self, event: &str, moved: &[String]) -> bool {
        let is_listed = |column: &String| self.columns.iter().any(|listed| *listed == compact(column));
        self.event.ends_with(&format!(" {event}")) && (self.columns.is_empty() || moved.iter().all(is_listed))
    }

    /// Whether it removes the old words from an index while that is still possible: with a 'delete' command, or by
    /// deleting the row from the index before the change.
    fn takes_out(&self, index: &ReadingIndex, event: &str) -> bool {
        // Without a keyword, a trigger runs before the change.
        let is_before = !self.event.ends_with(&format!(" after {event}"));
        let is_row = |rest: &str| {
            let old = rest.split_once('=').and_then(|(_, value)| value.strip_prefix("old."));
            old.is_some_and(|column| bare(column).chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        let named = |step: &String| {
            let (columns, values) = index.inserted(step)?;
            let is_command = columns.first().is_some_and(|first| *first == compact(&index.name));
            Some(is_command && ["'delete',", "\"delete\","].iter().any(|word| values.starts_with(word)))
        };
        let taken = |step: &String| {
            let from = |name: String| step.strip_prefix("deletefrom")?.strip_prefix(&name)?.strip_prefix("where");
            index.spellings().find_map(from).is_some_and(is_row)
        };
        self.steps.iter().any(|step| named(step) == Some(true) || is_before && taken(step))
    }

    /// Whether it adds the new words to an index.
    fn puts_in(&self, index: &ReadingIndex) -> bool {
        self.steps.iter().any(|step| index.inserted(step).is_some_and(|(_, values)| values.starts_with("new.")))
    }
}

/// Parses the definition of a trigger; `None` if it has a condition, or a comment that may hide parts.
fn trigger(sql: &str) -> Option<Trigger> {
    if sql.contains("--") || sql.contains("/*") {
        return None;
    }
    let sql = sql.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let (head, body) = sql.split_once(" begin ")?;
    let (event, on) = head.split_once(" on ")?;
    let (event, of) = event.split_once(" of ").unwrap_or((event, ""));
    if on.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "when") {
        return None;
    }
    Some(Trigger {
        event: event.to_owned(),
        columns: of.split(',').map(|name| compact(bare(name.trim()))).filter(|name| !name.is_empty()).collect(),
        steps: body.split(';').map(compact).collect(),
    })
}

/// An option of a full-text index, in lower case without blanks and quotation marks; `None` if it is empty or missing.
/// The option `content` is the table whose rows it reads.
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

/// The column of the other table with the row numbers of the index, quoted.
pub(super) fn number_column(sql: &str) -> String {
    quote(&option(sql, "content_rowid").unwrap_or_else(|| "rowid".to_owned()))
}

/// Queries for the row numbers that the application leaves out of the index of their table, such as hidden rows. The
/// first is for FTS5, the second for FTS4; each fails on the other one.
pub(super) fn kept_out(table: &str, number: &str, sizes: &str) -> [String; 2] {
    ["id", "docid"].map(|key| {
        format!(
            "SELECT c.{number} FROM {table} c WHERE NOT EXISTS (SELECT 1 FROM {sizes} d WHERE d.{key} = c.{number})"
        )
    })
}

/// Whether a full-text index stores no content, neither its own nor another table's.
pub(super) fn is_contentless(sql: &str) -> bool {
    let sql = compact(sql);
    sql.contains("content=''") || sql.contains("content=\"\"")
}

fn compact(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect()
}
