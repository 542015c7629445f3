//! Finds the named database, opens it read-only, and explains why if that fails.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::task::spawn_blocking;

use super::ability::{RefusedAbilities, ServerAbility};
use super::bytes_in_columns::look_for_bytes;
use super::companion::{self, Companion};
use super::engine_error::{EngineFault, explain, fault, primary_code};
use super::fetched::FetchedValue;
use super::file_state::stamp;
use super::identity::{self, Identity};
use super::migration::is_blank;
use super::raw_file::{RawFiles, UnreadBytes};
use super::salvage;
use super::server::{self, Server};
use super::session::{Opener, Sessions};
use super::sqlite_reader::{self, SqliteFile};
use super::withhold::recognise_readable;
use super::{Store, StoreError, catalog};
use crate::ground::database_url::{self, UrlFault};
use crate::ground::input_file::{self, SETTINGS_BYTES};
use crate::ground::private_file::PrivateFolder;
use crate::ground::{location, server_words};
use crate::layout::{Catalog, Engine, Layout, LayoutError, builtin, parse, recognise::unmet};
use crate::memory::UnreadRows;
use crate::memory::invocation::Invocation;

/// Database to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An SQLite file, or a folder that contains one.
    File(PathBuf),
    /// A PostgreSQL server, by URL or libpq keywords.
    Postgres(String),
}

impl Target {
    /// Reads a path, `sqlite:PATH` and other URLs of files, a `postgres://` URL, or words such as `host=db dbname=memory`. What
    /// does not name one file for certain is taken as it is, and opening it says why.
    pub fn parse(text: &str) -> Target {
        if server_words::is_url(text) || (server_words::is_server(text) && !Path::new(text).exists()) {
            return Target::Postgres(text.to_owned());
        }
        Target::File(database_url::file(text, Path::new("")).unwrap_or_else(|_| PathBuf::from(text)))
    }

    /// The same server with its password replaced; a file is unchanged.
    pub fn with_password(self, password: &str) -> Target {
        match self {
            Target::File(path) => Target::File(path),
            Target::Postgres(words) => Target::Postgres(server_words::with_password(&words, password)),
        }
    }

    /// The target for display: without its password.
    pub fn shown(&self) -> String {
        match self {
            Target::File(path) => location::shown(&path.display().to_string()),
            Target::Postgres(url) => location::shown(url),
        }
    }

    /// Returns a location that is the same for all spellings of a target: the real path, or server and name.
    fn place(&self) -> String {
        match self {
            Target::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
            Target::Postgres(words) => {
                Server::named(words, None, None).map_or_else(|_| location::shown(words), |server| server.place())
            }
        }
    }
}

/// Options for opening a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Names of layouts or layout files, instead of recognition: all of them must fit.
    pub layouts: Vec<String>,
    /// The operator's own layout files, by path and text: selectable by name, and tried if no shipped layout fits.
    pub own_layouts: Vec<(String, String)>,
    /// Arguments that name the database on a command line; its location and layout if `None`.
    pub invocation: Option<Invocation>,
    /// Most connections.
    pub connections: usize,
    /// Time after which PostgreSQL cancels a read; `None` means never.
    pub statement_timeout: Option<Duration>,
    /// Time limit for connecting, if the target sets none: zero means no limit, `None` means `PGCONNECT_TIMEOUT` or ten
    /// seconds.
    pub connect_timeout: Option<Duration>,
    /// Command that prints a password of the servers on its first line, for when the given one is no longer accepted.
    pub password_command: Option<String>,
    /// A standby of the database, for reading rows.
    pub replica: Option<Target>,
    /// A companion database to attach next to a palace, when it exists.
    pub companion: Option<PathBuf>,
    /// Folder for anchors of the audit trail.
    pub anchors: Option<PathBuf>,
    /// Key outside the database for the HMACs of erased people's handles.
    pub secret: Option<[u8; 32]>,
    /// Damaged pages of an SQLite database are read past: from a private copy of all rows that can be read.
    pub reads_past_damage: bool,
    /// Program that reads raw bytes of database files in a process of its own; the running one unless a test names it.
    pub program: Option<PathBuf>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            layouts: Vec::new(),
            own_layouts: Vec::new(),
            invocation: None,
            connections: 1,
            statement_timeout: None,
            connect_timeout: None,
            password_command: None,
            replica: None,
            companion: None,
            anchors: None,
            secret: None,
            reads_past_damage: false,
            program: None,
        }
    }
}

/// Reason why a database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file does not exist.
    #[error("{0}: there is no such file; check the path, or try `mnemoscope demo`")]
    NoFile(String),
    /// The folder is not a palace.
    #[error(
        "{0} is a folder, not a memory database: a palace folder contains chroma.sqlite3. Name the database file in it"
    )]
    Folder(String),
    /// The file is not an SQLite database.
    #[error("{0} is not an SQLite database{1}")]
    NotSqlite(String, String),
    /// The file is a damaged SQLite database, as far as can be told.
    #[error("{0} is not an SQLite database{1}")]
    Damaged(String, String),
    /// The file is not readable for us.
    #[error("{0}: permission denied; ask for read access to the file and its folder")]
    Denied(String),
    /// Wrong user or password.
    #[error(
        "{location}: the server refused the login ({message}); check user and password: they come from the URL, PGUSER \
         and PGPASSWORD, or ~/.pgpass{hint}"
    )]
    Login {
        /// Location of the database.
        location: String,
        /// The server's message.
        message: String,
        /// Reason why a password was not found.
        hint: String,
    },
    /// The connection was refused.
    #[error("{location}: no connection ({message}); is the server running, and are the host and the port correct?")]
    Refused {
        /// Location of the server.
        location: String,
        /// The system's message.
        message: String,
    },
    /// The server has no such database.
    #[error("{location}: {message}; `psql -l` lists the server's databases")]
    NoDatabase {
        /// Location of the database.
        location: String,
        /// The server's message.
        message: String,
    },
    /// TLS was requested and is not available, or is required and was not requested.
    #[error("{location}: the encrypted connection failed ({message}); see `sslmode` in docs/databases.md")]
    Tls {
        /// Location of the server.
        location: String,
        /// Description of what went wrong.
        message: String,
    },
    /// The server's certificate is not valid.
    #[error("{location}: the server's certificate was not accepted: {message}")]
    Certificate {
        /// Location of the server.
        location: String,
        /// Description of what is wrong with the certificate.
        message: String,
    },
    /// The connection string is invalid.
    #[error("cannot tell which server is meant: {0}; a URL looks like postgres://user:password@host:5432/name")]
    Url(String),
    /// A URL that does not name one database for certain.
    #[error("cannot tell which database is meant: {0}")]
    Unclear(String),
    /// No layout of that name.
    #[error("there is no layout `{0}`{1}; `mnemoscope layouts` lists them, and a file name works too")]
    UnknownLayout(String, String),
    /// The layout asked for does not fit.
    #[error("the layout {0} does not fit this database: {1}")]
    LayoutDoesNotFit(String, String),
    /// A layout file with errors.
    #[error("{}", lines(.0))]
    Layout(Vec<LayoutError>),
    /// A layout file that cannot be read.
    #[error("{0}: {1}")]
    LayoutFile(String, String),
    /// Another process has locked the database.
    #[error("{location}: another process holds it locked ({message}); try again when it has finished")]
    Locked {
        /// Location of the database.
        location: String,
        /// The engine's message.
        message: String,
    },
    /// Anything else.
    #[error("{location}: {message}")]
    Other {
        /// Location of the database.
        location: String,
        /// Message of the engine.
        message: String,
    },
}

fn lines(errors: &[LayoutError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

struct OpenedConnection {
    sessions: Sessions,
    notes: Vec<String>,
    /// Rows that are missing in a private copy of a damaged database; `None` for any other.
    unread: Option<Vec<UnreadRows>>,
    /// Reason why nothing can be written, whatever the operator does; `None` if writing is possible.
    blocked: Option<String>,
    copy: Option<PrivateFolder>,
    companion: Option<Companion>,
}

impl OpenedConnection {
    fn of(sessions: Sessions) -> Self {
        OpenedConnection { sessions, notes: Vec::new(), unread: None, blocked: None, copy: None, companion: None }
    }
}

impl Store {
    /// Opens a database read-only and recognises its layouts; also opens the standby for reading rows, if named.
    ///
    /// # Errors
    /// [`OpenError`], each kind with a remedy.
    pub async fn open(target: &Target, options: &OpenOptions) -> Result<Store, OpenError> {
        let mut store = Store::open_one(target, options).await?;
        if let Some(replica) = &options.replica {
            let beside = Store::open_one(replica, options).await?;
            let is_it = async { Ok::<_, StoreError>(store.identity().await?.0.is(&beside.identity().await?.0)) };
            if !is_it.await.unwrap_or(false) || parted(&beside, started(&store.sessions).await).await {
                return Err(no_standby(replica, target));
            }
            store.notes.push(looked_at_in(replica));
            store.replica = Some(Arc::new(beside));
        }
        Ok(store)
    }

    /// Opens a database for a command, or only the standby if the command `looks` at rows and a standby is named. The
    /// standby's identity is compared with the database's if that answers in time, so rows can be read while it is
    /// down.
    ///
    /// # Errors
    /// [`OpenError`], each kind with a remedy.
    pub async fn open_for(looks: bool, target: &Target, options: &OpenOptions) -> Result<Store, OpenError> {
        let Some(replica) = options.replica.as_ref().filter(|_| looks) else {
            return Store::open_one(target, options).await;
        };
        let followed = tokio::time::timeout(PATIENCE, identity_of(target, options));
        let (store, followed) = tokio::join!(Store::open_one(replica, options), followed);
        let store = store?;
        if let Ok(Some((followed, since))) = followed
            && (store.identity().await.is_ok_and(|(looked_at, _)| followed.differs(&looked_at))
                || parted(&store, since).await)
        {
            return Err(no_standby(replica, target));
        }
        Ok(store)
    }

    /// Note for reads from a standby: it may lag, or the reason why it is refused; `None` if no standby is named.
    pub async fn standby_note(target: &Target, options: &OpenOptions) -> Option<String> {
        let replica = options.replica.as_ref()?;
        match Store::open_for(true, target, options).await {
            Ok(_) => Some(looked_at_in(replica)),
            Err(error) => Some(format!("rows cannot be looked at: {error}")),
        }
    }

    async fn open_one(target: &Target, options: &OpenOptions) -> Result<Store, OpenError> {
        let typed = target.shown();
        let (own, faults) = own_layouts(options);
        let choice = LayoutChoice::of(options, own)?;
        let opened = match target {
            Target::File(path) => open_file(path, &choice, options).await?,
            Target::Postgres(url) => open_postgres(url, options).await?,
        };
        // By now the user in a URL is resolved to a role.
        let location = target.shown();
        let engine = opened.sessions.engine();
        let failed = |e: sqlx::Error| classify(&location, &e);
        let refusals = RefusedAbilities::default();
        let catalog = catalog::read(&opened.sessions, &refusals).await.map_err(failed)?;
        let layouts = choice.to_try(engine, &catalog).map_err(OpenError::Layout)?;
        for (name, layout) in options.layouts.iter().zip(&layouts) {
            let reasons = unmet(layout, engine, &catalog);
            if !reasons.is_empty() && !is_blank(&catalog, engine) {
                return Err(OpenError::LayoutDoesNotFit(name.clone(), reasons.join("; ")));
            }
        }
        let version = match engine {
            Engine::Sqlite => "SELECT sqlite_version()",
            Engine::Postgres => "SELECT current_setting('server_version')",
        };
        let version = match opened.sessions.fetch(version, &[]).await.map_err(failed)?.first().and_then(|r| r.first()) {
            Some(FetchedValue::Text(version)) => version.clone(),
            _ => String::new(),
        };
        let mut notes = opened.notes;
        notes.extend(faults);
        let mut blocked = opened.blocked;
        if engine == Engine::Postgres {
            let about = server_notes(&opened.sessions, &refusals, &catalog).await.map_err(failed)?;
            blocked = about.iter().find(|note| [STANDBY, READ_ONLY].contains(&note.as_str())).cloned();
            notes.extend(about);
        }
        let mut recognised = recognise_readable(&layouts, engine, &catalog);
        if engine == Engine::Sqlite {
            look_for_bytes(&opened.sessions, &mut recognised.sources).await;
        }
        let blocked = blocked.or_else(|| recognised.closed());
        let intended = choice.first_named().map(|layout| layout.name.clone());
        Ok(Store {
            intended: intended.filter(|_| is_blank(&catalog, engine)),
            recognised,
            sessions: Arc::new(opened.sessions),
            catalog,
            invocation: match &options.invocation {
                Some(invocation) => invocation.naming(&typed, &location),
                None => Invocation::at(&location, &options.layouts),
            },
            location,
            place: opened.companion.as_ref().map_or_else(|| target.place(), |c| c.path.display().to_string()),
            companion: opened.companion,
            anchors: options.anchors.clone(),
            version,
            notes,
            blocked,
            layouts,
            choice,
            uncovered: std::sync::OnceLock::new(),
            shapes: super::shape::TableShapes::default(),
            refusals: Arc::new(refusals),
            secret: options.secret,
            raw_files: RawFiles::through(options.program.clone()),
            writer: Arc::default(),
            commits: Arc::default(),
            fault: super::fault::FaultCounter::default(),
            plan_room: super::fault::PlanRoom::default(),
            sortable: super::order::SortableColumns::default(),
            vectors: std::sync::Mutex::default(),
            foresight: None,
            replica: None,
            unread: opened.unread,
            copy: opened.copy.map(Arc::new),
        })
    }
}

impl Store {
    /// Makes a private copy of the database's file, on which changes can be tried. It is deleted when the folder is
    /// dropped.
    ///
    /// # Errors
    /// The reason why there is none, for people.
    pub async fn private_copy(&self) -> Result<(PrivateFolder, PathBuf), String> {
        let Opener::Sqlite(file) = self.sessions.opener() else {
            return Err(
                "only an SQLite database can be copied: restore a backup of this one, and test the layout on the copy"
                    .to_owned(),
            );
        };
        if !file.attached().is_empty() {
            return Err("a folder with several files cannot be copied".to_owned());
        }
        let copied = private_copy(file.path(), Vec::new(), &self.raw_files).await;
        copied.map(|(copy, file, _)| (copy, file)).map_err(|unread| unread.to_string())
    }
}

/// The operator's own layouts, and the errors of those left out.
fn own_layouts(options: &OpenOptions) -> (Vec<Layout>, Vec<String>) {
    let (mut layouts, mut faults) = (Vec::new(), Vec::new());
    for (file, text) in &options.own_layouts {
        match parse(file, text) {
            Ok(layout) => layouts.push(layout),
            Err(errors) => {
                faults.extend(errors.first().map(|error| format!("one of your layouts is ignored: {error}")));
            }
        }
    }
    (layouts, faults)
}

/// Layouts that recognition may choose from.
#[derive(Debug, Clone)]
pub(super) enum LayoutChoice {
    /// Layouts that were named: all of them must fit.
    Named(Vec<Layout>),
    /// Shipped layouts; if none of them fits, the operator's own.
    Any(Vec<Layout>),
}

impl LayoutChoice {
    /// # Errors
    /// An unknown name, or the faults of a file.
    fn of(options: &OpenOptions, own: Vec<Layout>) -> Result<Self, OpenError> {
        if options.layouts.is_empty() {
            return Ok(LayoutChoice::Any(own));
        }
        let known = builtin::all().map_err(OpenError::Layout)?;
        let mut named: Vec<Layout> = Vec::new();
        for name in &options.layouts {
            let layout = layout_named(name, &known, &own)?;
            // A layout named twice counts once, since two of one name could not be distinguished.
            if named.iter().all(|other| other.name != layout.name) {
                named.push(layout);
            }
        }
        Ok(LayoutChoice::Named(named))
    }

    /// The layouts to try on a database.
    ///
    /// # Errors
    /// The faults of a shipped file.
    pub(super) fn to_try(&self, engine: Engine, catalog: &Catalog) -> Result<Vec<Layout>, Vec<LayoutError>> {
        let own = match self {
            LayoutChoice::Named(layouts) => return Ok(layouts.clone()),
            LayoutChoice::Any(own) => own,
        };
        let shipped = builtin::fitting(engine, catalog)?;
        let own = if shipped.iter().all(|layout| layout.name == builtin::TRAIL) { &own[..] } else { &[] };
        Ok(own.iter().cloned().chain(shipped).collect())
    }

    /// The first named layout.
    fn first_named(&self) -> Option<&Layout> {
        match self {
            LayoutChoice::Named(layouts) => layouts.first(),
            LayoutChoice::Any(_) => None,
        }
    }

    /// The layout of a folder, and its main file: a named layout that describes a folder, otherwise a known one. A
    /// layout for some of the tables need not describe the folder.
    fn of_folder(&self, path: &Path) -> Result<Option<(Layout, PathBuf)>, OpenError> {
        let named = match self {
            LayoutChoice::Named(layouts) => layouts.clone(),
            LayoutChoice::Any(_) => Vec::new(),
        };
        let main = |layout: Layout| Some((path.join(layout.folder.as_ref()?), layout));
        let known = builtin::all().map_err(OpenError::Layout)?;
        let found = named.into_iter().chain(known).filter_map(main).find(|(main, _)| main.is_file());
        Ok(found.map(|(main, layout)| (layout, main)))
    }
}

fn layout_named(name: &str, known: &[Layout], own: &[Layout]) -> Result<Layout, OpenError> {
    if let Some(layout) = known.iter().chain(own).find(|l| l.name == *name) {
        return Ok(layout.clone());
    }
    if Path::new(name).extension().is_some() && !Path::new(name).exists() {
        return Err(OpenError::UnknownLayout(name.to_owned(), ", and no such file".to_owned()));
    }
    if Path::new(name).exists() {
        let text = input_file::read_text(Path::new(name), SETTINGS_BYTES)
            .map_err(|e| OpenError::LayoutFile(name.to_owned(), e.to_string()))?;
        return parse(name, &text).map_err(OpenError::Layout);
    }
    let near = crate::layout::nearest(name, known.iter().chain(own).map(|l| l.name.as_str()));
    let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
    Err(OpenError::UnknownLayout(name.to_owned(), hint))
}

async fn open_file(path: &Path, choice: &LayoutChoice, options: &OpenOptions) -> Result<OpenedConnection, OpenError> {
    let shown = location::shown(&path.display().to_string());
    let about = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => match database_url::file(&path.to_string_lossy(), Path::new("")) {
            Err(UrlFault::Unclear(words)) => OpenError::Unclear(words),
            Err(UrlFault::Missing(paths)) => OpenError::NoFile(paths),
            Ok(_) if shown.contains("://") => {
                OpenError::Url(format!("{shown} is neither a file nor a PostgreSQL server"))
            }
            Ok(_) => OpenError::NoFile(shown.clone()),
        },
        std::io::ErrorKind::PermissionDenied => OpenError::Denied(shown.clone()),
        _ => OpenError::Other { location: shown.clone(), message: e.to_string() },
    })?;
    if about.is_file() {
        return open_sqlite(path, Vec::new(), None, options).await;
    }
    if !about.is_dir() {
        return Err(OpenError::NotSqlite(shown, ": it is a device or a pipe, not a file".to_owned()));
    }
    let Some((layout, main)) = choice.of_folder(path)? else {
        return Err(OpenError::Folder(shown));
    };
    let mut attached: Vec<(PathBuf, String)> = Vec::new();
    for file in &layout.attach {
        let beside = path.join(&file.file);
        if beside.is_file() && may_be_sqlite(&beside).await {
            attached.push((beside, file.schema.clone()));
        }
    }
    let companion = options.companion.clone().map(Companion::at);
    let there = companion.as_ref().filter(|c| c.exists);
    let opened = open_sqlite(&main, attached, there.map(|c| c.path.clone()), options).await?;
    // Writes go to the companion, whatever the folder allows.
    let blocked = if there.is_some() { None } else { Some(companion::PALACE.to_owned()) };
    Ok(OpenedConnection { blocked, companion, ..opened })
}

/// Whether SQLite accepts a file as a database.
async fn may_be_sqlite(path: &Path) -> bool {
    let asked = async {
        let mut reader = SqliteFile::at(path).reader().await?;
        reader.fetch("SELECT count(*) FROM sqlite_schema", &[]).await
    };
    !asked.await.is_err_and(|error: sqlx::Error| is_no_database(&error))
}

fn is_no_database(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if e.code().as_deref() == Some("26"))
}

/// The error for a file that SQLite does not accept, with a guess at its kind by its first bytes.
async fn not_sqlite(path: &Path, raw_files: &RawFiles) -> OpenError {
    let head = raw_files.head(path, 16).await.unwrap_or_default();
    let hint = if head.starts_with(b"--") || head.starts_with(b"PGDMP") {
        ": it looks like a dump; load it into a server first (psql or pg_restore) and open that"
    } else if head.starts_with(b"PRAGMA ") || head.starts_with(b"BEGIN TRANSACTIO") {
        ": it looks like a dump; load it into a file first (sqlite3 NEW.db < DUMP) and open that"
    } else if head == b"SQLite format 3\0" {
        return OpenError::Damaged(path.display().to_string(), ", or it is damaged".to_owned());
    } else {
        ", or it is encrypted"
    };
    OpenError::NotSqlite(path.display().to_string(), hint.to_owned())
}

async fn open_sqlite(
    path: &Path,
    attached: Vec<(PathBuf, String)>,
    companion: Option<PathBuf>,
    options: &OpenOptions,
) -> Result<OpenedConnection, OpenError> {
    let location = location::shown(&path.display().to_string());
    if !may_be_read(path) {
        return Err(OpenError::Denied(location));
    }
    let raw_files = RawFiles::through(options.program.clone());
    let ours = companion.as_deref();
    if options.reads_past_damage {
        return past_damage(path, attached, ours, options).await;
    }
    let opened = OpenedConnection::of;
    let first = try_sqlite(path, &attached, ours, options, false).await;
    let error = match first {
        Ok(sessions) => return Ok(OpenedConnection { blocked: kept_from_writing(path), ..opened(sessions) }),
        Err(error) => error,
    };
    if is_no_database(&error) {
        return Err(not_sqlite(path, &raw_files).await);
    }
    if !cannot_open(&error) {
        return Err(classify(&location, &error));
    }
    if lacks_descriptors() {
        let message = "this process has reached its limit of open files: raise it (`ulimit -n`)".to_owned();
        return Err(OpenError::Other { location, message });
    }
    let is_left = |ending| with_attached(path, &attached).any(|file| has(file, ending));
    // A process killed inside a transaction left a journal, which no reader may ignore.
    if is_left("-journal") && recover(with_attached(path, &attached)).await.is_ok() {
        let sessions = try_sqlite(path, &attached, ours, options, false).await.map_err(|e| classify(&location, &e))?;
        let note = "a transaction that a killed process left unfinished was rolled back".to_owned();
        return Ok(OpenedConnection { notes: vec![note], ..opened(sessions) });
    }
    // A database in WAL mode needs files next to it, which cannot be created in a folder without write access.
    if !is_left("-wal") && !is_left("-journal") {
        let sessions = try_sqlite(path, &attached, ours, options, true).await.map_err(|e| classify(&location, &e))?;
        let note = "opened as immutable: its folder is not writable, and no rows wait in a -wal file".to_owned();
        return Ok(OpenedConnection { notes: vec![note.clone()], blocked: Some(note), ..opened(sessions) });
    }
    let (copy, path, attached) = recovered_copy(path, attached, &raw_files, &location).await?;
    let sessions = try_sqlite(&path, &attached, ours, options, false).await.map_err(|e| classify(&location, &e))?;
    let note = "read from a private copy as of now: its folder is not writable, and rows wait in its -wal file or an \
                unfinished transaction in its -journal"
        .to_owned();
    Ok(OpenedConnection { notes: vec![note.clone()], blocked: Some(note), copy: Some(copy), ..opened(sessions) })
}

/// The files of a database: its own, and the attached ones.
fn with_attached<'a>(path: &'a Path, attached: &'a Attached) -> impl Iterator<Item = &'a Path> {
    std::iter::once(path).chain(attached.iter().map(|(file, _)| file.as_path()))
}

/// Copies a database privately, and rolls back there what a killed process left unfinished.
async fn recovered_copy(
    path: &Path,
    attached: Attached,
    raw_files: &RawFiles,
    location: &str,
) -> Result<(PrivateFolder, PathBuf, Attached), OpenError> {
    let copied = private_copy(path, attached, raw_files).await;
    let (copy, path, attached) =
        copied.map_err(|e| OpenError::Other { location: location.to_owned(), message: e.to_string() })?;
    recover(with_attached(&path, &attached)).await.map_err(|e| classify(location, &e))?;
    Ok((copy, path, attached))
}

/// Opens a private copy of the rows that can be read, and lists those that cannot.
async fn past_damage(
    path: &Path,
    attached: Attached,
    companion: Option<&Path>,
    options: &OpenOptions,
) -> Result<OpenedConnection, OpenError> {
    let location = location::shown(&path.display().to_string());
    let failed = |message: String| OpenError::Other { location: location.clone(), message };
    let raw_files = RawFiles::through(options.program.clone());
    let (copy, main, attached) = recovered_copy(path, attached, &raw_files, &location).await?;
    let note = "read from a private copy as of now, past damaged pages".to_owned();
    let mut unread: Vec<UnreadRows> = Vec::new();
    for file in with_attached(&main, &attached) {
        let (from, to) = (file.to_path_buf(), salvage::beside(file));
        let salvaged = spawn_blocking(move || salvage::salvage(&from, &to)).await;
        unread.extend(salvaged.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?);
    }
    unread.sort_by_key(|lost| Reverse(lost.rows));
    let attached: Attached = attached.into_iter().map(|(file, schema)| (salvage::beside(&file), schema)).collect();
    let sessions = try_sqlite(&salvage::beside(&main), &attached, companion, options, false).await;
    let opened = OpenedConnection::of(sessions.map_err(|e| classify(&location, &e))?);
    let notes = vec![note.clone()];
    Ok(OpenedConnection { notes, unread: Some(unread), blocked: Some(note), copy: Some(copy), ..opened })
}

async fn try_sqlite(
    path: &Path,
    attached: &[(PathBuf, String)],
    companion: Option<&Path>,
    options: &OpenOptions,
    immutable: bool,
) -> Result<Sessions, sqlx::Error> {
    let mode = if immutable { "immutable=1" } else { "mode=ro" };
    // The companion is written while the rest is unchanged, so it is never opened as immutable.
    let ours = companion.map(|path| (sqlite_reader::uri(path, "mode=ro"), companion::SCHEMA.to_owned()));
    let attached =
        attached.iter().map(|(p, schema)| (sqlite_reader::uri(p, mode), schema.clone())).chain(ours).collect();
    let file = SqliteFile::at(path).with(attached, immutable);
    let sessions = Sessions::open(Opener::Sqlite(file), options.connections).await?;
    sessions.fetch("SELECT count(*) FROM sqlite_schema", &[]).await?;
    Ok(sessions)
}

/// Whether the system lets us read a file. Does not open it.
#[cfg(unix)]
fn may_be_read(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK) != Err(rustix::io::Errno::ACCESS)
}

#[cfg(not(unix))]
fn may_be_read(_: &Path) -> bool {
    true
}

/// Reason why the system does not let us write a file; `None` if it does. Does not open it.
#[cfg(unix)]
fn kept_from_writing(path: &Path) -> Option<String> {
    use rustix::io::Errno;
    let why = match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
        Err(Errno::ACCESS | Errno::PERM) => "you have no write access to the file",
        Err(Errno::ROFS) => "its file system is mounted read-only",
        _ => return None,
    };
    Some(why.to_owned())
}

#[cfg(not(unix))]
fn kept_from_writing(_: &Path) -> Option<String> {
    None
}

/// Whether the process has run out of file descriptors, of which SQLite needs some.
#[cfg(unix)]
fn lacks_descriptors() -> bool {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    let open = |_| rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    matches!((0..4).map(open).collect::<Result<Vec<_>, _>>(), Err(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
fn lacks_descriptors() -> bool {
    false
}

/// The path of SQLite's file with that suffix; SQLite resolves links of the database's path first.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut beside = path.canonicalize().unwrap_or_else(|_| path.to_owned()).into_os_string();
    beside.push(ending);
    PathBuf::from(beside)
}

/// Whether there is a non-empty file with that suffix next to a database.
fn has(path: &Path, ending: &str) -> bool {
    std::fs::metadata(beside(path, ending)).is_ok_and(|m| m.len() > 0)
}

/// Lets SQLite roll back the journal of a killed process, under its own locks.
async fn recover(files: impl Iterator<Item = &Path>) -> Result<(), sqlx::Error> {
    for file in files.filter(|file| has(file, "-journal")) {
        let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(3));
        let mut link = SqliteConnection::connect_with(&options).await?;
        let recovered = sqlx::raw_sql("SELECT count(*) FROM sqlite_schema").execute(&mut link).await;
        link.close().await?;
        recovered?;
    }
    Ok(())
}

type Attached = Vec<(PathBuf, String)>;

/// Attempts to copy files that others keep writing to.
const COPIES: u32 = 3;

/// Copies files to a folder where SQLite's own files can be created. A log and a database copied at different states do
/// not match: if others wrote meanwhile, everything is copied again.
async fn private_copy(
    path: &Path,
    attached: Attached,
    raw_files: &RawFiles,
) -> Result<(PrivateFolder, PathBuf, Attached), UnreadBytes> {
    for _ in 0..COPIES {
        let copy = PrivateFolder::temporary().map_err(|e| UnreadBytes::of("a private copy cannot be made", e))?;
        let folder = copy.path();
        let main = folder.join("main.db");
        let copies: Attached =
            attached.iter().map(|(_, schema)| (folder.join(format!("{schema}.db")), schema.clone())).collect();
        let from = std::iter::once(path).chain(attached.iter().map(|(file, _)| file.as_path()));
        let to = std::iter::once(&main).chain(copies.iter().map(|(file, _)| file));
        let files: Vec<(PathBuf, PathBuf)> = from
            .zip(to)
            .flat_map(|(from, to)| ["", "-wal", "-journal"].map(|ending| (beside(from, ending), beside(to, ending))))
            .collect();
        let standing = || files.iter().map(|(from, _)| stamp(from)).collect::<Vec<_>>();
        let before = standing();
        raw_files.copy(files.clone()).await?;
        if standing() == before {
            return Ok((copy, main, copies));
        }
    }
    Err(UnreadBytes::of(
        "a copy could not be made",
        format!("other processes wrote during each of {COPIES} attempts; try again later"),
    ))
}

fn cannot_open(error: &sqlx::Error) -> bool {
    // 14 is CANTOPEN, 8 READONLY, 1 also occurs for an attached file.
    match error {
        sqlx::Error::Database(e) => {
            matches!(primary_code(error), Some(14 | 8)) || e.message().starts_with("unable to open database")
        }
        _ => false,
    }
}

fn looked_at_in(replica: &Target) -> String {
    format!("rows are read from {}, which may lag behind", replica.shown())
}

fn no_standby(replica: &Target, target: &Target) -> OpenError {
    let message = format!("it does not follow {}, according to both servers; check `read`", target.shown());
    OpenError::Other { location: replica.shown(), message }
}

/// Identity of a database, and the start time of its server; `None` if it does not say.
async fn identity_of(target: &Target, options: &OpenOptions) -> Option<(Identity, Option<String>)> {
    match target {
        Target::File(path) => Some((Identity::of_file(path), None)),
        Target::Postgres(url) => {
            let sessions = open_postgres(url, options).await.ok()?.sessions;
            Some((identity::of_server(&sessions).await.ok()?, started(&sessions).await))
        }
    }
}

/// Start time of a server, which is the same under all its names.
async fn started(sessions: &Sessions) -> Option<String> {
    let rows = sessions.fetch("SELECT extract(epoch FROM pg_postmaster_start_time())::text", &[]).await.ok()?;
    match rows.into_iter().next()?.into_iter().next()? {
        FetchedValue::Text(time) => Some(time),
        _ => None,
    }
}

/// Whether a server is no longer a standby, and is not the server that started at `other`.
async fn parted(beside: &Store, other: Option<String>) -> bool {
    let follows = beside.engine() == Engine::Sqlite || beside.notes.iter().any(|note| note == STANDBY);
    !follows && other.is_some() && started(&beside.sessions).await != other
}

async fn open_postgres(words: &str, options: &OpenOptions) -> Result<OpenedConnection, OpenError> {
    let named = Server::named(words, options.connect_timeout, options.statement_timeout);
    let mut server = named.map_err(OpenError::Url)?;
    server.password_command.clone_from(&options.password_command);
    let server = Arc::new(server);
    let opened = Sessions::open(Opener::Postgres(Arc::clone(&server)), options.connections).await;
    let said = |error: &sqlx::Error| location::without_user(&words_of(error), words);
    let sessions = opened.map_err(|error| match classified(&location::shown(words), &error, said(&error)) {
        OpenError::Login { location, message, .. } => {
            let hint = server.notes.iter().fold(String::new(), |hint, note| hint + "; " + note);
            OpenError::Login { location, message, hint }
        }
        other => other,
    })?;
    location::let_in(words);
    let mut notes = server.notes.clone();
    notes.extend(server.plain.clone());
    notes.extend(server.choice().map(|host| format!("connected to {host}, one of the hosts that you named")));
    Ok(OpenedConnection { notes, ..OpenedConnection::of(sessions) })
}

/// Time limit for the database to report its identity while its standby is opened.
const PATIENCE: Duration = Duration::from_secs(1);

const STANDBY: &str = "this server is a standby: it follows another server and accepts no writes";

const READ_ONLY: &str =
    "default_transaction_read_only is on for this server, database, or role, or in the URL: nothing is written";

/// Facts about a PostgreSQL server that affect what is shown.
async fn server_notes(
    sessions: &Sessions,
    refusals: &RefusedAbilities,
    catalog: &Catalog,
) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'";
    let rows = refusals.ask(sessions, ServerAbility::Standby, sql).await?.unwrap_or_default();
    let told = rows.into_iter().next().unwrap_or_default();
    let holds = |(note, told): (&str, FetchedValue)| (told == FetchedValue::Integer(1)).then(|| note.to_owned());
    let mut notes: Vec<String> = [STANDBY, READ_ONLY].into_iter().zip(told).filter_map(holds).collect();
    notes.extend(catalog.hidden_rows());
    Ok(notes)
}

fn classify(location: &str, error: &sqlx::Error) -> OpenError {
    classified(location, error, words_of(error))
}

/// The message of an error, next to the location.
fn words_of(error: &sqlx::Error) -> String {
    if let sqlx::Error::Io(error) = error { server::cause_of(error) } else { explain(error) }
}

fn classified(location: &str, error: &sqlx::Error, message: String) -> OpenError {
    let location = location.to_owned();
    match error {
        _ if fault(error) == Some(EngineFault::Locked) => OpenError::Locked { location, message },
        _ if fault(error) == Some(EngineFault::Damaged) => {
            OpenError::Damaged(location, format!(" or is damaged ({message})"))
        }
        sqlx::Error::Database(e) => match e.code().as_deref() {
            Some(code) if code.starts_with("28") => OpenError::Login { location, message, hint: String::new() },
            Some("3D000") => OpenError::NoDatabase { location, message },
            _ if message.contains("startup parameter") => {
                let hint = "a pooler in between does not accept it: remove it from the URL and from PGOPTIONS, or add \
                     it to the pooler's ignore_startup_parameters";
                OpenError::Other { location, message: format!("{message}; {hint}") }
            }
            Some("26") => OpenError::Damaged(location, format!(" or is damaged ({message})")),
            _ => OpenError::Other { location, message },
        },
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) if server::complaint(error).is_some() => {
            OpenError::Certificate { location, message: server::complaint(error).unwrap_or_default() }
        }
        sqlx::Error::Io(_) => OpenError::Refused { location, message },
        sqlx::Error::Tls(_) => OpenError::Tls { location, message },
        // The driver prepares names and passwords by the rules of 2002, and sends none with characters unknown to them.
        sqlx::Error::Configuration(e) if e.to_string().contains("saslprep") => {
            let words = "the name or the password of the role holds a character that this program cannot send, such as an \
                 emoji: give the role another password";
            OpenError::Other { location, message: words.to_owned() }
        }
        sqlx::Error::Configuration(_) => OpenError::Url("part of it is not valid".to_owned()),
        _ => OpenError::Other { location, message },
    }
}
