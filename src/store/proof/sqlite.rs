//! The physical pass on SQLite: search indexes rebuilt, the log emptied, the file rewritten without free pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::pass::{PassReport, PassRequest};
use super::segments::add_rows;
use super::{bytes::sqlite_files, holders};
use crate::layout::Engine;
use crate::memory::agreeing;
use crate::store::dialect::quote;
use crate::store::engine_error::{explain, primary_code};
use crate::store::fetched::{FetchedValue, RawRow, integer, number, text};
use crate::store::search_index::{is_contentless, kept_out, number_column, option};
use crate::store::session::Opener;
use crate::store::sqlite_writer;
use crate::store::write::WriteError;
use crate::store::{ProofReader, Store, StoreError};

/// Longest wait of one statement for locks; the pass retries as long as its patience lasts.
const WAIT: Duration = Duration::from_millis(250);

/// Problems of foreign keys: rows without a parent by table, parent and number of the key.
pub type KeyProblems = BTreeMap<(String, String, i64), u64>;

const REFERRING: &str = "SELECT DISTINCT l.name FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name) f \
     WHERE l.schema = 'main' AND l.type = 'table' ORDER BY 1";
const KEY_PROBLEMS: &str =
    "SELECT \"table\", parent, fkid, count(*) FROM pragma_foreign_key_check($1) GROUP BY 1, 2, 3";
const SEARCH_TABLES: &str = "SELECT name, lower(sql) FROM main.sqlite_schema WHERE type = 'table' \
     AND lower(sql) LIKE 'create virtual table%' AND (lower(sql) LIKE '%using fts5%' \
     OR lower(sql) LIKE '%using fts4%' OR lower(sql) LIKE '%using fts3%') \
     AND lower(sql) NOT LIKE '%using fts5vocab%' AND lower(sql) NOT LIKE '%using fts4aux%' \
     AND lower(sql) NOT LIKE '%using fts3tokenize%' ORDER BY name";
/// Tables whose hidden row numbers a `VACUUM` may change: no column holds them, and there is no index.
const LOOSE: &str = "SELECT l.name FROM pragma_table_list l WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND l.wr = 0 \
     AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND NOT EXISTS (SELECT 1 FROM pragma_index_list(l.name, 'main')) \
     AND NOT EXISTS (SELECT 1 FROM pragma_table_info(l.name, 'main') p WHERE p.pk > 0) ORDER BY 1";
/// Prefix of the indexes that preserve such numbers meanwhile.
const KEEPER: &str = "mnemoscope_keeps_row_numbers_";
const KEEPERS: &str = "SELECT name FROM main.sqlite_schema WHERE type = 'index' AND name LIKE 'mnemoscope\\_keeps\\_row\\_numbers\\_%' \
     ESCAPE '\\'";
/// The table with some name, ignoring blanks and case.
const CONTENT: &str =
    "SELECT name FROM main.sqlite_schema WHERE type IN ('table', 'view') AND replace(lower(name), ' ', '') = $1";
/// Temporary tables for a rebuild: rows left out of a search index, rows in it, and its words.
const KEPT_OUT: &str = "mnemoscope_kept_out";
const HELD: &str = "mnemoscope_held";
const WORDS: &str = "mnemoscope_words";
const STATISTICS: &str = "SELECT count(*) FROM main.sqlite_schema WHERE name IN ('sqlite_stat3', 'sqlite_stat4')";

/// Nodes of a search index per read.
const NODES: usize = 256;

/// Outcome of rebuilding a search index.
enum MadeAgain {
    /// Rebuilt with the rows it had; this many rows of its content were not in it.
    Without(i64),
    /// The index does not say which rows it has, and was left unchanged.
    Unknown,
}

struct SqlitePass {
    link: SqliteConnection,
    main: PathBuf,
    patience: Duration,
    /// Empty pages that the pass itself leaves free.
    freed: i64,
    /// Search indexes that leave rows of their content out.
    partial: Vec<String>,
}

pub async fn pass(store: &Store, wanted: &PassRequest) -> Result<PassReport, WriteError> {
    let Opener::Sqlite(database) = store.sessions.opener() else { return Ok(PassReport::default()) };
    if let Some(words) = store.displaced() {
        return Err(WriteError::Displaced(words));
    }
    let main = database.path().to_path_buf();
    let link = SqliteConnection::connect_with(&database.writing().busy_timeout(WAIT)).await?;
    let mut work = SqlitePass { link, main, patience: wanted.patience, freed: 0, partial: Vec::new() };
    work.run("PRAGMA secure_delete = ON; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON").await?;
    let mut pass = PassReport::default();
    let mode = text(&work.row("PRAGMA journal_mode").await?, 0);
    work.steps(&mut pass, mode == "wal").await?;
    pass.refused.extend(database.attached().iter().map(|(_, schema)| {
        format!("the attached file {schema} was searched but not cleaned: open it separately to erase there")
    }));
    work.link.close().await?;
    Ok(pass)
}

impl SqlitePass {
    async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        tracing::debug!(%sql, "physical pass");
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.link).await.map(drop)
    }

    async fn rows(&mut self, sql: &str) -> Result<Vec<RawRow>, sqlx::Error> {
        sqlite_writer::fetch(&mut self.link, sql, &[]).await
    }

    async fn row(&mut self, sql: &str) -> Result<RawRow, sqlx::Error> {
        Ok(self.rows(sql).await?.into_iter().next().unwrap_or_default())
    }

    /// Reason why something could not be done, with the blocking processes as far as known.
    fn in_the_way(&self, what: &str) -> String {
        let holder = holders::told(&self.main);
        format!("{what}: {holder} holds a transaction open and may still read deleted values; end it and resume")
    }

    /// Repeats a statement while others block it and patience lasts. `None` if they still do.
    async fn patiently(&mut self, sql: &str) -> Result<Option<()>, sqlx::Error> {
        let began = Instant::now();
        loop {
            match self.run(sql).await {
                Ok(()) => return Ok(Some(())),
                Err(error) if is_busy(&error) && began.elapsed() < self.patience => tokio::time::sleep(WAIT).await,
                Err(error) if is_busy(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs the steps. A failed step ends the pass, since the following ones would prove nothing.
    async fn steps(&mut self, pass: &mut PassReport, wal: bool) -> Result<(), WriteError> {
        let search_tables = self.rows(SEARCH_TABLES).await?;
        if !self.rebuild(pass, &search_tables).await? || !self.statistics(pass).await? {
            return Ok(());
        }
        if (wal && !self.checkpoint(pass).await?) || !self.room(pass)? || !self.vacuum(pass).await? {
            return Ok(());
        }
        // Once more, for what the rewrite wrote to the log.
        if wal && !self.checkpoint(pass).await? {
            return Ok(());
        }
        if !wal && !self.journal(pass).await? {
            return Ok(());
        }
        self.check(pass).await
    }

    async fn rebuild(&mut self, pass: &mut PassReport, tables: &[RawRow]) -> Result<bool, WriteError> {
        for table in tables {
            let name = text(table, 0);
            let optimize = tell(&name, "optimize");
            let reason = match self.make_again(&name, &text(table, 1)).await {
                Ok(Some(MadeAgain::Without(0))) => continue,
                Ok(Some(MadeAgain::Without(_))) => {
                    self.partial.push(name);
                    continue;
                }
                Ok(Some(MadeAgain::Unknown)) => format!(
                    "{name} was not rebuilt: it does not show which rows it indexes, and a rebuild would add the rows \
                     left out of it; rebuild it with the program that maintains it, and resume"
                ),
                Ok(None) => self.in_the_way(&format!("{name} could not be rebuilt")),
                // A contentless index cannot be rebuilt, only merged.
                Err(_) if self.patiently(&optimize).await.is_ok_and(|done| done.is_some()) => continue,
                Err(error) => format!("{name} could not be rebuilt: {}", explain(&error)),
            };
            pass.incomplete.push(reason);
            return Ok(false);
        }
        Ok(true)
    }

    /// Rebuilds a search index. Rows that the application leaves out of it, such as hidden ones, stay out. `None` if
    /// others block it.
    async fn make_again(&mut self, name: &str, sql: &str) -> Result<Option<MadeAgain>, sqlx::Error> {
        if self.patiently("BEGIN IMMEDIATE").await?.is_none() {
            return Ok(None);
        }
        let made = match self.made_again(name, sql).await {
            Ok(made) => self.patiently("COMMIT").await.map(|done| done.map(|()| made)),
            Err(error) if is_busy(&error) => Ok(None),
            Err(error) => Err(error),
        };
        if !matches!(made, Ok(Some(_))) {
            // SQLite may have rolled back by itself.
            let _ = self.run("ROLLBACK").await;
        }
        made
    }

    async fn made_again(&mut self, name: &str, sql: &str) -> Result<MadeAgain, sqlx::Error> {
        let Some(kept_out) = self.note_kept_out(name, sql).await? else { return Ok(MadeAgain::Unknown) };
        self.run(&tell(name, "rebuild")).await?;
        if kept_out > 0 {
            let take = format!("DELETE FROM main.{} WHERE rowid IN (SELECT id FROM temp.{KEPT_OUT})", quote(name));
            self.run(&format!("{take}; {}", tell(name, "optimize"))).await?;
        }
        Ok(MadeAgain::Without(kept_out))
    }

    /// Records the rows of the content table that are not in its search index, and returns their number; `None` if the
    /// index does not say.
    async fn note_kept_out(&mut self, name: &str, sql: &str) -> Result<Option<i64>, sqlx::Error> {
        let Some(content) = option(sql, "content") else { return Ok(Some(0)) };
        let named = [FetchedValue::Text(content)];
        let Some(content) = sqlite_writer::fetch(&mut self.link, CONTENT, &named).await?.pop() else {
            return Ok(Some(0));
        };
        let (content, number) = (format!("main.{}", quote(&text(&content, 0))), number_column(sql));
        self.run(&format!("DROP TABLE IF EXISTS temp.{KEPT_OUT}; CREATE TABLE temp.{KEPT_OUT} (id)")).await?;
        let sizes = kept_out(&content, &number, &format!("main.{}", quote(&format!("{name}_docsize"))));
        let words = [
            // For an index of another kind this can be created, but not read.
            format!(
                "DROP TABLE IF EXISTS temp.{WORDS}; CREATE VIRTUAL TABLE temp.{WORDS} USING fts5vocab (main, {}, instance)",
                quote(name)
            ),
            format!("SELECT c.{number} FROM {content} c WHERE c.{number} NOT IN (SELECT doc FROM temp.{WORDS})"),
            format!("DROP TABLE temp.{WORDS}"),
        ];
        // An index without word counts still has positions; a row without words is in no such list.
        let ways = [["", &sizes[0], ""], ["", &sizes[1], ""], words.each_ref().map(String::as_str)];
        for [before, missing, after] in ways {
            match self.run(&format!("{before}; INSERT INTO temp.{KEPT_OUT} {missing}; {after}")).await {
                Ok(()) => return self.count_kept_out().await.map(Some),
                Err(error) if primary_code(&error) == Some(1) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.note_held(name, sql).await? {
            return Ok(None);
        }
        let missing =
            format!("SELECT c.{number} FROM {content} c WHERE c.{number} NOT IN (SELECT id FROM temp.{HELD})");
        self.run(&format!("INSERT INTO temp.{KEPT_OUT} {missing}; DROP TABLE temp.{HELD}")).await?;
        self.count_kept_out().await.map(Some)
    }

    async fn count_kept_out(&mut self) -> Result<i64, sqlx::Error> {
        let noted = self.row(&format!("SELECT count(*) FROM temp.{KEPT_OUT}")).await?;
        Ok(integer(&noted, 0).unwrap_or_default())
    }

    /// Records the rows in an FTS4 index, after merging its segments into one. Returns false if it cannot be read.
    async fn note_held(&mut self, name: &str, sql: &str) -> Result<bool, sqlx::Error> {
        if !sql.contains("using fts4") {
            return Ok(false);
        }
        let falling = option(sql, "order").as_deref() == Some("desc");
        let table = format!("DROP TABLE IF EXISTS temp.{HELD}; CREATE TABLE temp.{HELD} (id INTEGER PRIMARY KEY)");
        self.run(&format!("{table}; {}", tell(name, "optimize"))).await?;
        let shadow = |ending: &str| format!("main.{}", quote(&format!("{name}_{ending}")));
        let mut nodes = self.rows(&format!("SELECT 0, root FROM {}", shadow("segdir"))).await?;
        while !nodes.is_empty() {
            let mut held = BTreeSet::new();
            for node in &nodes {
                let Some(FetchedValue::Bytes(node)) = node.get(1) else { return Ok(false) };
                if add_rows(node, falling, &mut held).is_none() {
                    return Ok(false);
                }
            }
            let held: Vec<String> = held.iter().map(i64::to_string).collect();
            let list = format!("SELECT value FROM json_each('[{}]')", held.join(","));
            self.run(&format!("INSERT OR IGNORE INTO temp.{HELD} {list}")).await?;
            let last = nodes.last().map_or(0, |node| number(node, 0));
            let next = format!("WHERE blockid > {last} ORDER BY blockid LIMIT {NODES}");
            nodes = self.rows(&format!("SELECT blockid, block FROM {} {next}", shadow("segments"))).await?;
        }
        Ok(true)
    }

    /// Recomputes the planner's statistics, which contain samples of indexed values.
    async fn statistics(&mut self, pass: &mut PassReport) -> Result<bool, WriteError> {
        if number(&self.row(STATISTICS).await?, 0) == 0 {
            return Ok(true);
        }
        pass.incomplete.push(match self.patiently("ANALYZE main").await {
            Ok(Some(())) => return Ok(true),
            Ok(None) => self.in_the_way("statistics were not rebuilt"),
            Err(error) => lacking("statistics were not rebuilt", error)?,
        });
        Ok(false)
    }

    async fn checkpoint(&mut self, pass: &mut PassReport) -> Result<bool, WriteError> {
        let began = Instant::now();
        loop {
            // 1 means that someone still reads an older state or writes.
            let busy = match self.row("PRAGMA main.wal_checkpoint(TRUNCATE)").await {
                Ok(row) => number(&row, 0) != 0,
                Err(error) if is_busy(&error) => true,
                Err(error) => return Err(error.into()),
            };
            if !busy {
                return Ok(true);
            }
            if began.elapsed() >= self.patience {
                pass.incomplete.push(self.in_the_way("the write-ahead log could not be emptied"));
                return Ok(false);
            }
            tokio::time::sleep(WAIT).await;
        }
    }

    /// Checks for disk space: the file is rewritten, which needs room next to it and for temporary files.
    fn room(&mut self, pass: &mut PassReport) -> Result<bool, WriteError> {
        let bytes = std::fs::metadata(&self.main).map_err(sqlx::Error::from)?.len();
        let folder = self.main.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = std::env::var_os("SQLITE_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        for (place, needed) in [(folder, 2 * bytes), (temporary.as_path(), bytes)] {
            if let Some(free) = free_bytes(place).filter(|free| *free < needed) {
                pass.incomplete.push(format!(
                    "too little space to rewrite the file: {needed} bytes are needed in {}, {free} are free; free some \
                     space and resume",
                    place.display()
                ));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Preserves row numbers that other rows may refer to while the file is rewritten: SQLite keeps the numbers of a
    /// table that has an index, even an empty one. `None` if others block it.
    async fn hold_numbers(&mut self) -> Result<Option<()>, sqlx::Error> {
        for (at, table) in self.rows(LOOSE).await?.iter().enumerate() {
            let index = format!("CREATE INDEX main.{KEEPER}{at} ON {} (1) WHERE 0", quote(&text(table, 0)));
            if self.patiently(&index).await?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Drops those indexes again, including those of a killed pass.
    async fn let_numbers_go(&mut self) -> Result<Option<()>, sqlx::Error> {
        self.freed = 0;
        let before = self.free_pages().await?;
        for index in self.rows(KEEPERS).await? {
            if self.patiently(&format!("DROP INDEX main.{}", quote(&text(&index, 0)))).await?.is_none() {
                return Ok(None);
            }
        }
        // Counts their own pages, and those of their definitions.
        self.freed = self.free_pages().await? - before;
        Ok(Some(()))
    }

    /// Rewrites the file with unchanged row numbers.
    async fn write_again(&mut self) -> Result<Option<()>, sqlx::Error> {
        if self.let_numbers_go().await?.is_none() {
            return Ok(None);
        }
        let written = match self.hold_numbers().await? {
            Some(()) => self.patiently("VACUUM main").await,
            None => Ok(None),
        };
        let gone = self.let_numbers_go().await?;
        Ok(written?.and(gone))
    }

    async fn vacuum(&mut self, pass: &mut PassReport) -> Result<bool, WriteError> {
        const WHAT: &str = "the file could not be rewritten";
        let reason = match self.write_again().await {
            Ok(Some(())) => return Ok(true),
            Ok(None) => self.in_the_way(WHAT),
            Err(error) => {
                let reason = format!("{}; run VACUUM with it", lacking(WHAT, error)?);
                // Deleted values were overwritten in place, and the bytes are searched: only free pages could contain
                // older ones.
                if self.free_pages().await? == 0 {
                    pass.refused.push(reason);
                    return Ok(true);
                }
                format!("{reason}, then resume")
            }
        };
        pass.incomplete.push(reason);
        Ok(false)
    }

    /// Removes a persistent journal, which contains copies of old pages.
    async fn journal(&mut self, pass: &mut PassReport) -> Result<bool, WriteError> {
        let journal = sqlite_files(&self.main).into_iter().nth(3).unwrap_or_default();
        if !journal.exists() {
            return Ok(true);
        }
        // Only a change of mode deletes the file, and a new connection begins with the wanted mode.
        self.run("PRAGMA main.journal_mode = PERSIST").await?;
        let gone = self.patiently("PRAGMA main.journal_mode = DELETE").await?;
        if gone.is_some() && !journal.exists() {
            return Ok(true);
        }
        pass.incomplete.push(self.in_the_way(&format!("{} is still there", journal.display())));
        Ok(false)
    }

    /// Number of free pages that may contain data.
    async fn free_pages(&mut self) -> Result<i64, sqlx::Error> {
        Ok((number(&self.row("PRAGMA main.freelist_count").await?, 0) - self.freed).max(0))
    }

    /// Whether a line of the integrity check is about an index that leaves rows of its content out.
    fn is_partial(&self, line: &str) -> bool {
        self.partial.iter().any(|name| line.ends_with(&format!(" table main.{name}")))
    }

    async fn check(&mut self, pass: &mut PassReport) -> Result<(), WriteError> {
        let free = self.free_pages().await?;
        if free != 0 {
            let words = "{#} free {page|pages} appeared after the file was rewritten; resume";
            pass.incomplete.push(agreeing(free, words));
        }
        let contentless: Vec<String> = self
            .rows(SEARCH_TABLES)
            .await?
            .iter()
            .filter(|t| is_contentless(&text(t, 1)))
            .map(|t| text(t, 0))
            .collect();
        let mut said: Vec<String> = match self.rows("PRAGMA main.integrity_check(100)").await {
            Ok(rows) => rows.iter().map(|row| text(row, 0)).collect(),
            Err(error) => {
                pass.refused.push(lacking("the file was not checked for damage", error)?);
                return Ok(());
            }
        };
        // Such an index has nothing to be compared with, and one that leaves rows out differs from its content.
        said.retain(|line| !contentless.iter().any(|name| is_no_comparison(line, name)) && !self.is_partial(line));
        if !said.is_empty() && said != ["ok"] {
            pass.incomplete.push(format!("the database is damaged: {}", said.join("; ")));
        }
        Ok(())
    }
}

/// The statement that sends a command to a search index.
fn tell(name: &str, word: &str) -> String {
    format!("INSERT INTO main.{t} ({t}) VALUES ('{word}')", t = quote(name))
}

/// Explains that SQLite lacks something the application adds to this schema, such as a function, a collation or a
/// tokenizer. Returns other errors unchanged.
fn lacking(what: &str, error: sqlx::Error) -> Result<String, sqlx::Error> {
    match primary_code(&error) {
        Some(1) => Ok(format!(
            "{what}: {}: a table or an index needs something that only its application has",
            explain(&error)
        )),
        _ => Err(error),
    }
}

/// Whether a line of the integrity check only says that a full-text index could not be compared with its content.
fn is_no_comparison(line: &str, table: &str) -> bool {
    let said = line.strip_prefix("unable to validate the inverted index for ");
    said.is_some_and(|rest| rest.contains(&format!(" table main.{table}: ")))
}

/// Free bytes for us on the disk of a path; `None` if the system does not say.
fn free_bytes(path: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(path).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}

fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

impl ProofReader<'_> {
    /// Rows whose parent is missing, for comparison before and after a deletion. Row numbers are not included, since
    /// they may change. Empty on PostgreSQL, which enforces its foreign keys.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn key_problems(self) -> Result<KeyProblems, StoreError> {
        if self.store.engine() == Engine::Postgres {
            return Ok(KeyProblems::new());
        }
        let mut problems = KeyProblems::new();
        for table in self.store.fetch_text(REFERRING).await? {
            let name = FetchedValue::Text(text(&table, 0));
            match self.store.sessions.fetch(KEY_PROBLEMS, &[name]).await {
                Ok(rows) => {
                    let problem = |row: &RawRow| ((text(row, 0), text(row, 1), number(row, 2)), number(row, 3) as u64);
                    problems.extend(rows.iter().map(problem));
                }
                // A key that no parent can have refers to nothing.
                Err(error) if primary_code(&error) == Some(1) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(problems)
    }
}
