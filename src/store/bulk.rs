//! Builds an SQLite file in one pass: many rows in few statements, written next to the target and moved into place when
//! complete.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteSynchronous};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::ground::assets;
use crate::ground::unfinished::UnfinishedPath;

/// Tables and indexes of the native layout.
pub static NATIVE_SCHEMA: LazyLock<String> = LazyLock::new(|| {
    ["0001_native.sql", "0003_whole_memories.sql"]
        .map(|file| assets::text(&format!("migrations/mnemoscope/sqlite/{file}")))
        .concat()
});

/// Values per statement: enough to amortize its cost, few enough to keep a batch small.
const VALUES_PER_STATEMENT: usize = 2_400;

/// Page cache while rows are written, in KiB.
const CACHE_KIB: u32 = 32 * 1024;
/// Page cache while indexes are built, in KiB. Sorting keys takes the same amount again.
const SORT_KIB: u32 = 16 * 1024;

/// A value as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum BulkValue {
    /// SQL NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(Cow<'static, str>),
    /// Bytes.
    Blob(Vec<u8>),
    /// Text that may be invalid UTF-8: SQLite does not check, nor do all programs that write to it.
    RawText(Vec<u8>),
}

/// A table with the columns of the rows to insert, in order.
#[derive(Debug, PartialEq, Eq)]
pub struct BulkTable {
    /// Name of the table.
    pub name: &'static str,
    /// Names of the columns, unquoted.
    pub columns: &'static [&'static str],
}

impl BulkTable {
    /// Number of rows that fit in one statement.
    pub fn rows_per_statement(&self) -> usize {
        (VALUES_PER_STATEMENT / self.columns.len().max(1)).max(1)
    }

    /// An INSERT of rows; `value` gives the placeholder of each value.
    fn insert(&self, rows: usize, value: impl Fn(usize) -> &'static str) -> String {
        let columns: Vec<String> = self.columns.iter().map(|c| format!("\"{c}\"")).collect();
        let row = |r: usize| {
            let values: Vec<&str> = (0..self.columns.len()).map(|c| value(r * self.columns.len() + c)).collect();
            format!("({})", values.join(","))
        };
        let rows: Vec<String> = (0..rows).map(row).collect();
        format!("INSERT INTO \"{}\" ({}) VALUES {}", self.name, columns.join(","), rows.join(","))
    }
}

/// Rows of one table.
#[derive(Debug, PartialEq)]
pub struct BulkBatch {
    /// Table to fill.
    pub table: &'static BulkTable,
    /// Values, row after row, in the order of the table's columns.
    pub values: Vec<BulkValue>,
}

impl BulkBatch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.table.columns.len().max(1)
    }
}

/// Behaviour if something exists at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTarget {
    /// Refuse, unless it is an empty file.
    Refuse,
    /// Replace it, and any journal next to it.
    Replace,
}

/// Reason why a file could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The path is taken by a file that must not be replaced.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// The path cannot be a database file.
    #[error("{0} is not a valid file path")]
    NotAFile(PathBuf),
    /// Error of the file system.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Error of SQLite.
    #[error("cannot build the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// An unfinished SQLite file. Nothing exists at the target before [`Loader::finish`]; if dropped earlier, it leaves
/// nothing behind.
#[derive(Debug)]
pub struct Loader {
    connection: SqliteConnection,
    partial: Partial,
    target: PathBuf,
    existing: ExistingTarget,
    indexes: Vec<String>,
    full: Option<(&'static BulkTable, String)>,
}

impl Loader {
    /// Creates a file with the tables of `schema`. Each statement must end at the end of a line, and `--` may only
    /// start comments, not occur in a literal. Indexes are built after the rows.
    ///
    /// # Errors
    /// [`BulkError::Exists`] if something exists at the target and must not be replaced; otherwise the error of the
    /// file system or SQLite.
    pub async fn create(target: &Path, schema: &str, existing: ExistingTarget) -> Result<Loader, BulkError> {
        check_target(target, existing)?;
        let partial = Partial::beside(target)?;
        // No journal and no fsync: a failed file is discarded, and only a complete one is moved.
        let mut connection = SqliteConnectOptions::new()
            .filename(partial.0.path())
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off)
            .locking_mode(SqliteLockingMode::Exclusive)
            .foreign_keys(false)
            .pragma("cache_size", format!("-{CACHE_KIB}"))
            .disable_statement_logging()
            .connect()
            .await?;
        let (indexes, tables): (Vec<String>, Vec<String>) =
            statements(schema).into_iter().partition(|s| s.starts_with("CREATE INDEX"));
        for table in tables {
            run(&mut connection, table).await?;
        }
        run(&mut connection, "BEGIN".to_owned()).await?;
        Ok(Loader { connection, partial, target: target.to_owned(), existing, indexes, full: None })
    }

    /// Adds rows. Batches of [`BulkTable::rows_per_statement`] rows are fastest; larger ones are split.
    ///
    /// # Errors
    /// The error of SQLite, for example a duplicate key.
    pub async fn insert(&mut self, batch: BulkBatch) -> Result<(), BulkError> {
        let table = batch.table;
        let width = table.columns.len().max(1);
        let mut values = batch.values;
        while !values.is_empty() {
            let rest = values.split_off(values.len().min(table.rows_per_statement() * width));
            self.insert_some(table, values).await?;
            values = rest;
        }
        Ok(())
    }

    async fn insert_some(&mut self, table: &'static BulkTable, values: Vec<BulkValue>) -> Result<(), BulkError> {
        let rows = values.len() / table.columns.len().max(1);
        let odd: Vec<bool> = values.iter().map(|v| matches!(v, BulkValue::RawText(_))).collect();
        let usual = rows == table.rows_per_statement() && !odd.contains(&true);
        let sql = if usual {
            self.full_statement(table)
        } else {
            table.insert(rows, |i| if odd.get(i) == Some(&true) { "CAST(? AS TEXT)" } else { "?" })
        };
        // Only the statement of a full batch is worth preparing.
        let query = sqlx::query(AssertSqlSafe(sql)).persistent(usual);
        values.into_iter().fold(query, bind).execute(&mut self.connection).await?;
        Ok(())
    }

    /// The statement of a full batch, cached because batches of one table come one after the other.
    fn full_statement(&mut self, table: &'static BulkTable) -> String {
        match &self.full {
            Some((known, sql)) if *known == table => sql.clone(),
            _ => {
                let sql = table.insert(table.rows_per_statement(), |_| "?");
                self.full = Some((table, sql.clone()));
                sql
            }
        }
    }

    /// Builds the indexes, closes the file in WAL mode, syncs it to disk and moves it to the target. `progress` gets
    /// the number of finished indexes and their total. Returns the size in bytes.
    ///
    /// # Errors
    /// [`BulkError::Exists`] if something has appeared at the target meanwhile; otherwise the error of the file system
    /// or SQLite.
    pub async fn finish(mut self, mut progress: impl FnMut(usize, usize)) -> Result<u64, BulkError> {
        run(&mut self.connection, "COMMIT".to_owned()).await?;
        let indexes = std::mem::take(&mut self.indexes);
        let all = indexes.len();
        run(&mut self.connection, format!("PRAGMA cache_size = -{SORT_KIB}")).await?;
        for (done, index) in indexes.into_iter().enumerate() {
            progress(done, all);
            run(&mut self.connection, index).await?;
        }
        progress(all, all);
        run(&mut self.connection, "PRAGMA journal_mode = WAL".to_owned()).await?;
        self.connection.close().await?;

        let partial = self.partial.0.path();
        let file = fs::File::open(partial).map_err(at(partial))?;
        file.sync_all().map_err(at(partial))?;
        let bytes = file.metadata().map_err(at(partial))?.len();
        check_target(&self.target, self.existing)?;
        for journal in journals(&self.target) {
            remove_if_there(&journal)?;
        }
        fs::rename(partial, &self.target).map_err(at(&self.target))?;
        let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The new name is on disk once the folder is synced, which not every file system supports.
        let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
        Ok(bytes)
    }
}

fn bind(query: Query<'_, Sqlite, SqliteArguments>, value: BulkValue) -> Query<'_, Sqlite, SqliteArguments> {
    match value {
        BulkValue::Null => query.bind(None::<i64>),
        BulkValue::Integer(number) => query.bind(number),
        BulkValue::Real(number) => query.bind(number),
        BulkValue::Text(text) => query.bind(text.into_owned()),
        BulkValue::Blob(bytes) | BulkValue::RawText(bytes) => query.bind(bytes),
    }
}

async fn run(connection: &mut SqliteConnection, sql: String) -> Result<(), BulkError> {
    sqlx::query(AssertSqlSafe(sql)).persistent(false).execute(connection).await?;
    Ok(())
}

/// The statements of a schema, without comments. Each ends at the end of a line; a trigger's last line is `END;`.
fn statements(schema: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut statement = String::new();
    for line in schema.lines().map(|line| line.split("--").next().unwrap_or_default().trim_end()) {
        statement.push_str(line);
        statement.push('\n');
        let trigger = statement.trim_start().starts_with("CREATE TRIGGER");
        if if trigger { line == "END;" } else { line.ends_with(';') } {
            statements.push(std::mem::take(&mut statement).trim().to_owned());
        }
    }
    statements
}

/// The unfinished file. It is removed when dropped, with SQLite's files next to it. Until then it is locked, so that
/// another process sees that it is in use.
#[derive(Debug)]
struct Partial(UnfinishedPath, #[expect(dead_code, reason = "held for its lock")] fs::File);

impl Partial {
    /// Creates a new file in the target's folder, under a unique name.
    fn beside(target: &Path) -> Result<Partial, BulkError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().ok_or_else(|| BulkError::NotAFile(target.to_owned()))?;
        remove_stale(target);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}-{number}.partial", std::process::id()));
        let path = target.with_file_name(partial);
        let unfinished = UnfinishedPath::new(&path);
        let file = fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(at(&path))?;
        // Not every file system supports locks.
        let _ = file.try_lock();
        Ok(Partial(unfinished, file))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Errors cannot be reported here; after a rename there is nothing to remove.
        for path in journals(self.0.path()).into_iter().chain([self.0.path().to_owned()]) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Age after which an unfinished file without a lock is abandoned.
const STALE: Duration = Duration::from_mins(1);

/// Removes unfinished files that killed processes left for the same target.
fn remove_stale(target: &Path) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = target.file_name().map(|name| format!(".{}.", name.to_string_lossy())) else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_stale(path, &name)) {
        for path in journals(&path).into_iter().chain([path]) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a path is an abandoned unfinished file whose name begins with `begins`.
fn is_stale(path: &Path, begins: &str) -> bool {
    let own = path.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
    let number = own.strip_prefix(begins).and_then(|rest| rest.strip_suffix(".partial")).unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !number.split_once('-').is_some_and(|(process, count)| is_number(process) && is_number(count)) {
        return false;
    }
    let Ok(file) = fs::File::open(path) else { return false };
    let changed = file.metadata().and_then(|about| about.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE)) && file.try_lock().is_ok()
}

/// Refuses a target that exists, unless it may be replaced. A journal without a database counts: SQLite would roll it
/// back into the new file.
fn check_target(target: &Path, existing: ExistingTarget) -> Result<(), BulkError> {
    if target.is_dir() {
        return Err(BulkError::NotAFile(target.to_owned()));
    }
    let holds_something = |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.len() > 0);
    // A dangling link is also someone's.
    let is_link = |path: &PathBuf| path == target && path.is_symlink();
    let stands = |path: &PathBuf| holds_something(path) || is_link(path);
    let found = [target.to_owned()].into_iter().chain(journals(target)).find(stands);
    match (existing, found) {
        (ExistingTarget::Refuse, Some(path)) => Err(BulkError::Exists(path)),
        _ => Ok(()),
    }
}

/// The files that SQLite may create next to a database.
fn journals(database: &Path) -> Vec<PathBuf> {
    let beside = |suffix: &str| {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        PathBuf::from(path)
    };
    ["-wal", "-shm", "-journal"].map(beside).to_vec()
}

fn remove_if_there(path: &Path) -> Result<(), BulkError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> BulkError + '_ {
    |source| BulkError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_is_cut_into_whole_statements() {
        let begins = |line: &str| line.starts_with("CREATE ") || line.starts_with("ALTER TABLE ");
        let all = statements(&NATIVE_SCHEMA);
        for statement in &all {
            assert!(begins(statement) && statement.ends_with(';'), "{statement}");
            assert_eq!(statement.lines().filter(|line| begins(line)).count(), 1, "{statement}");
        }
        assert_eq!(all.len(), NATIVE_SCHEMA.lines().filter(|line| begins(line)).count());
    }

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_being_made_stays() {
        let folder = tempfile::TempDir::new().unwrap();
        let make = |name: &str, age: u64| {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
            file
        };
        make(".a.db.71-0.partial", 120);
        make(".a.db.71-0.partial-journal", 120);
        let stay =
            [".a.db.72-0.partial", ".a.db.73-0.partial", ".a.db.x-0.partial", ".b.db.71-0.partial", "a.db.partial"];
        let held = make(stay[0], 120);
        held.lock().unwrap();
        make(stay[1], 1);
        stay[2..].iter().for_each(|name| drop(make(name, 120)));
        remove_stale(&folder.path().join("a.db"));
        let mut left: Vec<String> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, stay);
    }

    #[test]
    fn statement_casts_only_where_asked() {
        static TABLE: BulkTable = BulkTable { name: "t", columns: &["a", "after"] };
        let sql = TABLE.insert(2, |i| if i == 2 { "CAST(? AS TEXT)" } else { "?" });
        assert_eq!(sql, r#"INSERT INTO "t" ("a","after") VALUES (?,?),(CAST(? AS TEXT),?)"#);
    }
}
