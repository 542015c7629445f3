//! Surroundings of an erasure outside the database: the key of the suppression list, and a folder for sessions and
//! receipts. Session files name the person: they are encrypted, locked while a process works on them, and removed at
//! the end.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::copied::CopiedTexts;
use super::fleet::FleetSession;
use super::id_set::IdSet;
use super::plan::PurgeOptions;
use super::receipt::{BESIDE_THE_HASH, PurgeReceipt, Redecision};
use super::sealed::{SealedReader, SealedWriter};
use super::subject::PurgeSubject;
use super::taken::{GoingRows, room};
use super::vectors::OldVector;
use super::verdict::PurgeStatus;
use crate::change::anchor::AnchorSpot;
use crate::change::plan::erasure::ErasureChoice;
use crate::change::plan::{Counts, digest_of};
use crate::change::suppress::{Key, hmac};
use crate::change::{Author, ChangeError, now};
use crate::ground::input_file::{self, InputError, InputFile};
use crate::ground::private_file::{self, PrivateFile};
use crate::memory::packed::pages::PageStore;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::proof::index::SideIndex;
use crate::store::stored::TableName;

/// Seconds after which a session that wrote nothing is removed, 7 days: a plan is valid no longer.
const ASKED_LASTS: f64 = 7.0 * 86_400.0;

/// Largest session file, in bytes (64 GiB): it lists every row to delete.
const SESSION_BYTES: u64 = 1 << 36;

/// Largest receipt, in bytes.
const RECEIPT_BYTES: u64 = 64 << 20;

/// Called with the current step and the amount done so far.
pub type Progress<'a> = &'a (dyn Fn(&str, u64) + Sync);

/// Removes data kept outside a database about it and a person: takes the database's location and the person's handles,
/// each with whether it also counts within a text. Returns the reason on failure.
pub type ForgetKept<'a> = &'a (dyn Fn(&str, &[(&str, bool)]) -> Result<(), String> + Sync);

/// Workplace of an erasure: folder, key, author, and the receiver of its progress.
pub struct Desk<'a> {
    /// Folder that outlives the run, readable by its owner only.
    pub folder: PathBuf,
    /// Key of the suppression list.
    pub key: Key,
    /// Author of the erasure.
    pub author: &'a Author,
    /// Receives the progress.
    pub progress: Progress<'a>,
    /// Removes what the operator keeps about the person outside the database.
    pub forget_kept: ForgetKept<'a>,
}

/// A requested erasure: its choices, stored before anything is planned or written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PurgeRequest {
    /// Id of the session.
    pub session: String,
    /// The database.
    pub database_id: String,
    /// The person as given.
    pub given: String,
    /// Options of the erasure.
    pub options: PurgeOptions,
    /// SHA-256 of the bundle that was exported first.
    pub export_sha256: Option<String>,
    /// Time when the erasure was requested.
    pub started_at: String,
    /// Location of the database; a copy of the file has the same id.
    pub spot: AnchorSpot,
}

/// Content of a session's file, except the rows to delete and their ids.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStage {
    /// Nothing is planned yet.
    Asked(Box<PurgeRequest>),
    /// Planned; the database knows whether anything was written.
    Planned(Box<KeptSession>),
}

/// The form that is written; the rows and ids follow it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenStage<'k> {
    Asked(&'k PurgeRequest),
    Planned(&'k KeptSession),
}

/// A row to delete, with the number of its table; or an id.
type SessionRow = (Option<usize>, Vec<FetchedValue>);

impl SessionStage {
    /// Id of the session.
    pub fn session(&self) -> &str {
        match self {
            SessionStage::Asked(asked) => &asked.session,
            SessionStage::Planned(kept) => &kept.session,
        }
    }

    /// The database.
    pub fn database_id(&self) -> &str {
        match self {
            SessionStage::Asked(asked) => &asked.database_id,
            SessionStage::Planned(kept) => &kept.database_id,
        }
    }

    fn spot(&self) -> &AnchorSpot {
        match self {
            SessionStage::Asked(asked) => &asked.spot,
            SessionStage::Planned(kept) => &kept.spot,
        }
    }

    fn started_at(&self) -> &str {
        match self {
            SessionStage::Asked(asked) => &asked.started_at,
            SessionStage::Planned(kept) => &kept.started_at,
        }
    }

    /// Whether a handle, in any case, means the person of this session.
    pub fn is_about(&self, key: &Key, given: &str) -> bool {
        let wanted = hmac(key, given);
        match self {
            SessionStage::Asked(asked) => hmac(key, &asked.given) == wanted,
            SessionStage::Planned(kept) => {
                let told = kept.subject.handles.iter().filter(|h| kept.subject.is_alone(h)).map(|h| &h.value);
                told.chain([&kept.subject.given]).any(|value| hmac(key, value) == wanted)
            }
        }
    }

    /// The request: what was asked for.
    pub fn asked(self) -> PurgeRequest {
        match self {
            SessionStage::Asked(asked) => *asked,
            SessionStage::Planned(kept) => PurgeRequest {
                session: kept.session,
                database_id: kept.database_id,
                given: kept.subject.given,
                options: kept.options,
                export_sha256: kept.export_sha256,
                started_at: kept.started_at,
                spot: kept.spot,
            },
        }
    }
}

/// An exclusive lock on a session, until it is dropped.
#[derive(Debug)]
pub struct Hold(#[allow(dead_code, reason = "the lock is let go when the file is closed")] File);

/// A session as it is stored outside the database until the erasure is verified: what is needed to resume, and to look
/// for what must be gone. Nothing else still says who the person is.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptSession {
    /// Id of the session.
    pub session: String,
    /// The database.
    pub database_id: String,
    /// Person to be erased.
    pub subject: PurgeSubject,
    /// Options of the erasure.
    pub options: PurgeOptions,
    /// The plan it began with.
    pub plan_id: String,
    /// Row counts of the plan that the session began with.
    pub planned: Counts,
    /// Handles found before the erasure, and how many were looked for.
    pub control: (usize, usize),
    /// Rows to delete, listed so that they are still found after the rows leading to them are gone.
    pub deletes: Vec<GoingRows>,
    /// Ids of rows to delete.
    #[serde(skip, default = "no_ids")]
    pub ids: Arc<IdSet>,
    /// Replaces the person where a column must name someone.
    pub pseudonym: String,
    /// Effects on rows that stay.
    pub effects: Vec<String>,
    /// Data that stays according to the plan. It is shown, but does not affect the final status.
    pub particular: Vec<String>,
    /// Messages about rows that stay because other people have a share in them.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Hashes, left in place, of texts that lose words.
    pub old_hashes: Vec<String>,
    /// Vectors, left in place, of texts that lose words.
    #[serde(default)]
    pub old_vectors: Vec<String>,
    /// Values that name the person and stay by choice, by table and column.
    pub left: BTreeMap<String, usize>,
    /// References to deleted rows that stay according to the plan, by table and column.
    pub left_references: BTreeMap<String, usize>,
    /// Disclosures that do not affect the final status either.
    pub notes: Vec<String>,
    /// Tables outside the layout that do not name the person as far as the plan saw, with their columns that look
    /// personal.
    #[serde(default)]
    pub silent: BTreeMap<String, String>,
    /// Dangling foreign keys before the erasure, by table, parent and number.
    pub broken_before: BTreeMap<String, u64>,
    /// Tables with deleted or changed rows.
    pub touched: Vec<TableName>,
    /// Tables that named the person.
    pub named_in: Vec<TableName>,
    /// Search indexes that keep entries about other tables' rows, in their state before the erasure.
    pub side_indexes: Vec<SideIndex>,
    /// Hits in the bytes of the files before the erasure, by handle; `None` for a server.
    pub bytes_before: Option<Vec<u64>>,
    /// Sample of the vectors of deleted rows.
    pub vectors: Vec<OldVector>,
    /// Texts of deleted rows that the database itself may copy.
    #[serde(default)]
    pub copied: CopiedTexts,
    /// Duration of each phase, in seconds.
    pub phases: BTreeMap<String, f64>,
    /// SHA-256 of the bundle that was exported first.
    pub export_sha256: Option<String>,
    /// Time when the erasure began.
    pub started_at: String,
    /// Location of the database; a copy of the file has the same id.
    pub spot: AnchorSpot,
    /// Decisions made when it was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redecided: Vec<Redecision>,
    /// Whether the first run's file was lost, so that the rest was planned again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_anew: bool,
    /// The receipt, from the time it is made until it is delivered.
    pub receipt: Option<PurgeReceipt>,
}

fn no_ids() -> Arc<IdSet> {
    Arc::new(IdSet::new(&room()))
}

impl KeptSession {
    /// Checks whether its rows and ids could be written and read.
    ///
    /// # Errors
    /// There is no room for data that does not fit in memory, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.deletes.iter().try_for_each(GoingRows::check)?;
        self.ids.check()
    }

    /// Returns the choices that the erasure follows.
    pub fn choice(&self) -> ErasureChoice {
        let PurgeOptions { mentions, each, account, full, .. } = self.options.clone();
        ErasureChoice { mentions, each, account, full, export: self.export_sha256.is_some() }
    }
}

impl Desk<'_> {
    fn sessions(&self) -> PathBuf {
        self.folder.join("purges")
    }

    fn session_file(&self, session: &str) -> PathBuf {
        self.sessions().join(format!("{session}.session"))
    }

    fn lock_file(&self, session: &str) -> PathBuf {
        self.sessions().join(format!("{session}.lock"))
    }

    /// Locks a session for this process until the `Hold` is dropped or the process ends. Returns `None` while another
    /// process holds it.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn hold(&self, session: &str) -> Result<Option<Hold>, ChangeError> {
        let path = self.lock_file(session);
        let failed = |e: std::io::Error| ChangeError::Failed(format!("{}: {e}", path.display()));
        private_file::folder(&self.sessions()).map_err(failed)?;
        let file = private_file::lock_file(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Hold(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Stores a request; it is on disk when this returns.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_asked(&self, asked: &PurgeRequest) -> Result<(), ChangeError> {
        self.keep_stage(&asked.session, &WrittenStage::Asked(asked))
    }

    /// Stores a session; it is on disk when this returns.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep(&self, kept: &KeptSession) -> Result<(), ChangeError> {
        self.keep_stage(&kept.session, &WrittenStage::Planned(kept))
    }

    fn keep_stage(&self, session: &str, stage: &WrittenStage<'_>) -> Result<(), ChangeError> {
        self.write_sealed(&self.session_file(session), |file| {
            serde_json::to_writer(&mut *file, stage)?;
            match stage {
                WrittenStage::Asked(_) => Ok(()),
                WrittenStage::Planned(kept) => write_rows(kept, file),
            }
        })
    }

    /// Writes an encrypted file atomically.
    fn write_sealed(
        &self,
        path: &Path,
        content: impl FnOnce(&mut SealedWriter<PrivateFile>) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        let write = || {
            path.parent().map_or(Ok(()), private_file::folder)?;
            let mut file = SealedWriter::begin(PrivateFile::begin(path)?, &self.key)?;
            content(&mut file)?;
            file.finish()?.replace()
        };
        write().map_err(|e: io::Error| ChangeError::Failed(format!("{}: {e}", path.display())))
    }

    /// Reads a stored session; `None` if it does not exist, or is not ours.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] if its rows do not fit in memory and no file can be created for them.
    pub fn kept(&self, session: &str) -> Result<Option<KeptSession>, ChangeError> {
        let pages = room();
        let Some(kept) = read_session(&self.key, &self.session_file(session), &pages) else { return Ok(None) };
        kept.check()?;
        Ok(Some(kept))
    }

    /// Reads the stored sessions of a database, oldest first, without those of its copies. Unreadable files are
    /// skipped.
    pub fn stages(&self, database_id: &str, here: &AnchorSpot) -> Vec<SessionStage> {
        stages_of(&self.folder, &self.key, database_id, here)
    }

    /// Reads every unfinished session in a folder, oldest first. Other files are skipped.
    pub fn all_kept(folder: &Path, key: &Key) -> Vec<KeptSession> {
        let planned = |stage| match stage {
            SessionStage::Planned(kept) => Some(*kept),
            SessionStage::Asked(_) => None,
        };
        stages(folder, key).into_iter().filter_map(planned).collect()
    }

    /// Removes the file of a finished session: it names the person.
    pub fn forget(&self, session: &str) {
        // If the file cannot be removed, nothing more can be done.
        let _ = std::fs::remove_file(self.session_file(session));
        let _ = std::fs::remove_file(self.lock_file(session));
    }

    /// Removes files that no process works on and nobody needs: unfinished files, and old sessions that wrote nothing.
    pub fn tidy(&self) {
        let files = std::fs::read_dir(self.sessions()).into_iter().flatten().flatten().map(|file| file.path());
        for path in files {
            if private_file::is_abandoned(&path) {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            let is_old = match stage(&self.key, &path) {
                Some(SessionStage::Asked(asked)) => seconds_since(&asked.started_at) > ASKED_LASTS,
                _ => false,
            };
            if is_old && let Ok(Some(_hold)) = self.hold(name) {
                let _ = std::fs::remove_file(&path);
                let _ = std::fs::remove_file(self.lock_file(name));
            }
        }
    }

    fn fleet_file(&self, name: &str) -> PathBuf {
        // A hash without a key would reveal the person to anyone who tries names.
        self.sessions().join(format!("fleet-{}.session", hmac(&self.key, name)))
    }

    /// Stores what is needed to finish an erasure in several databases, until all are verified.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_fleet(&self, name: &str, session: &FleetSession) -> Result<(), ChangeError> {
        self.write_sealed(&self.fleet_file(name), |file| Ok(serde_json::to_writer(file, session)?))
    }

    /// Reads the state that [`Desk::keep_fleet`] stored.
    pub fn fleet(&self, name: &str) -> Option<FleetSession> {
        open(&self.key, &self.fleet_file(name)).and_then(|file| serde_json::from_reader(file).ok())
    }

    /// Removes that state: it names the person.
    pub fn forget_fleet(&self, name: &str) {
        let _ = std::fs::remove_file(self.fleet_file(name));
    }

    /// Returns the folder of the receipts.
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    /// Creates the folder of the receipts. Called first, so that nothing is erased whose receipt could not be stored.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the folder's name.
    pub fn make_receipts(&self) -> Result<(), ChangeError> {
        let path = self.receipts();
        private_file::folder(&path).map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))
    }

    /// Stores the receipt of a purge that ended. Returns the file.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_receipt(&self, id: &str, status: PurgeStatus, receipt: &impl Serialize) -> Result<String, ChangeError> {
        let path = self.receipts().join(format!("{id}.json"));
        let text = serde_json::to_string_pretty(receipt).unwrap_or_default();
        write_private(&path, text.as_bytes()).map_err(|error| {
            let ended = status.word();
            ChangeError::Failed(format!(
                "{error}: the purge ended {ended}, and its receipt could not be kept; --resume keeps it"
            ))
        })?;
        Ok(path.display().to_string())
    }

    /// Receipts of a person's erasures that were verified since a time, oldest first.
    pub fn verified_since(&self, handles: &HashSet<String>, since: &str) -> Vec<PurgeReceipt> {
        let files = std::fs::read_dir(self.receipts()).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| input_file::read_text(&file.path(), RECEIPT_BYTES).ok());
        let receipts = texts.filter_map(|text| serde_json::from_str::<PurgeReceipt>(&text).ok());
        let wanted = receipts.filter(|receipt| {
            receipt.status != PurgeStatus::Incomplete
                && receipt.applied_at.as_str() >= since
                && receipt.handles_hmac.iter().any(|handle| handles.contains(handle))
        });
        let mut wanted: Vec<PurgeReceipt> = wanted.collect();
        wanted.sort_by(|one, other| one.applied_at.cmp(&other.applied_at));
        wanted
    }

    /// Reads a receipt by its file or its id. Returns it with its hash.
    ///
    /// # Errors
    /// [`ChangeError::NotFound`], or [`ChangeError::Usage`] for a file that is not a receipt.
    pub fn receipt(&self, named: &str) -> Result<(PurgeReceipt, String), ChangeError> {
        let file = Path::new(named);
        let kept = self.receipts().join(format!("{named}.json"));
        let path = if file.is_file() { file } else { &kept };
        let text = input_file::read_text(path, RECEIPT_BYTES).map_err(|error| match error {
            InputError::NotFound => ChangeError::NotFound(format!(
                "there is no receipt `{named}`; they are kept in {}",
                self.receipts().display()
            )),
            other => ChangeError::Usage(format!("{named}: {other}")),
        })?;
        let bad = |e| ChangeError::Usage(format!("{named} is not a receipt: {e}"));
        let mut value: Value = serde_json::from_str(&text).map_err(bad)?;
        if value["operation"] != "purge" || !value["verification"].is_object() {
            return Err(ChangeError::Usage(format!("{named} is not a receipt of a purge")));
        }
        let receipt = PurgeReceipt::deserialize(&value).map_err(bad)?;
        if let Some(object) = value.as_object_mut() {
            BESIDE_THE_HASH.iter().for_each(|key| drop(object.remove(*key)));
        }
        Ok((receipt, digest_of(&value)))
    }
}

/// Seconds from a time until now; 0 for a time that cannot be parsed.
fn seconds_since(at: &str) -> f64 {
    crate::memory::time::seconds_between(at, &now()).unwrap_or_default()
}

/// Reads the sessions in a folder that are about a database, as [`Desk::stages`] does.
pub(super) fn stages_of(folder: &Path, key: &Key, database_id: &str, here: &AnchorSpot) -> Vec<SessionStage> {
    let is_ours = |stage: &SessionStage| stage.database_id() == database_id && stage.spot().is(here);
    stages(folder, key).into_iter().filter(is_ours).collect()
}

fn stages(folder: &Path, key: &Key) -> Vec<SessionStage> {
    let files = std::fs::read_dir(folder.join("purges")).into_iter().flatten().flatten();
    let mut kept: Vec<SessionStage> = files.filter_map(|file| stage(key, &file.path())).collect();
    kept.sort_by(|a, b| a.started_at().cmp(b.started_at()));
    kept
}

/// Reads the beginning of a session's file; `None` for other files, such as unfinished ones.
fn stage(key: &Key, path: &Path) -> Option<SessionStage> {
    path.extension().filter(|end| *end == "session")?;
    SessionStage::deserialize(&mut serde_json::Deserializer::from_reader(open(key, path)?)).ok()
}

/// Reads a session with its rows, which are stored in `pages`.
fn read_session(key: &Key, path: &Path, pages: &PageStore) -> Option<KeptSession> {
    let mut file = serde_json::Deserializer::from_reader(open(key, path)?);
    let SessionStage::Planned(mut kept) = SessionStage::deserialize(&mut file).ok()? else { return None };
    for rows in &mut kept.deletes {
        *rows = rows.emptied(pages);
    }
    let mut ids = IdSet::new(pages);
    loop {
        match file.end() {
            Ok(()) => break,
            Err(error) if error.is_io() => return None,
            Err(_) => {}
        }
        match SessionRow::deserialize(&mut file).ok()? {
            (Some(table), key) => kept.deletes.get_mut(table)?.push(&key),
            (None, id) => id.iter().filter_map(as_text).for_each(|id| ids.insert(&id)),
        }
    }
    kept.ids = Arc::new(ids);
    Some(*kept)
}

/// Writes the rows to delete, and their ids.
fn write_rows(kept: &KeptSession, file: &mut SealedWriter<PrivateFile>) -> io::Result<()> {
    let mut write = |table: Option<usize>, row: &[FetchedValue]| {
        serde_json::to_writer(&mut *file, &(table, row))?;
        file.write_all(b"\n")
    };
    for (number, rows) in kept.deletes.iter().enumerate() {
        rows.all_keys().try_for_each(|key| write(Some(number), &key))?;
    }
    kept.ids.iter().try_for_each(|id| write(None, &[FetchedValue::Text(id.into_owned())]))?;
    kept.check()
}

/// Opens an encrypted file; `None` when it does not exist, or is not sealed with this key.
fn open(key: &Key, path: &Path) -> Option<BufReader<SealedReader<InputFile>>> {
    Some(BufReader::new(SealedReader::begin(InputFile::open(path, SESSION_BYTES).ok()?, key).ok()?))
}

/// Writes a file atomically, readable by its owner only.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ChangeError> {
    let folder = path.parent().map_or(Ok(()), private_file::folder);
    let written = folder.and_then(|()| private_file::replace(path, bytes));
    written.map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))
}
