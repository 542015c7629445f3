//! Needs of an erasure next to the database: the key of the suppression list, and a folder for sessions and receipts.
//! Sessions name the person: they are encrypted on the disk, locked while someone works on them, and removed at the
//! end.

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

/// Seconds after which a session that wrote nothing is forgotten: a plan lasts no longer.
const ASKED_LASTS: f64 = 7.0 * 86_400.0;

/// Bytes that a session's file may have: it names every row that goes.
const SESSION_BYTES: u64 = 1 << 36;

/// Bytes that a receipt may have.
const RECEIPT_BYTES: u64 = 64 << 20;

/// Told what is being done and how far it is.
pub type Progress<'a> = &'a (dyn Fn(&str, u64) + Sync);

/// Forgets what is kept outside of a database, by its location, and names a person by one of some handles, each with whether it
/// tells also within a text. Gives the reason where that fails.
pub type ForgetKept<'a> = &'a (dyn Fn(&str, &[(&str, bool)]) -> Result<(), String> + Sync);

/// Workplace of an erasure: folder, key, author, and the receiver of its progress.
pub struct Desk<'a> {
    /// Folder that outlives the run; readable by nobody else.
    pub folder: PathBuf,
    /// Key of the suppression list.
    pub key: Key,
    /// Author of the erasure.
    pub author: &'a Author,
    /// Told how far it is.
    pub progress: Progress<'a>,
    /// Forgets what the operator keeps outside of the database about the person.
    pub forget_kept: ForgetKept<'a>,
}

/// An erasure that was asked for: its choices, kept before anything is planned or written.
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
    /// SHA-256 of the bundle that was exported before.
    pub export_sha256: Option<String>,
    /// Time when the erasure was requested.
    pub started_at: String,
    /// Location of the database: a copy has the same id.
    pub spot: AnchorSpot,
}

/// Content of a session's file, but for the rows that go and their ids.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStage {
    /// Nothing is planned yet.
    Asked(Box<PurgeRequest>),
    /// Planned; whether anything was written, the database knows.
    Planned(Box<KeptSession>),
}

/// The same to be written: the rows and ids follow it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenStage<'k> {
    Asked(&'k PurgeRequest),
    Planned(&'k KeptSession),
}

/// A row that goes with the number of its table, or an id.
type SessionRow = (Option<usize>, Vec<FetchedValue>);

impl SessionStage {
    /// Id of the session.
    #[must_use]
    pub fn session(&self) -> &str {
        match self {
            SessionStage::Asked(asked) => &asked.session,
            SessionStage::Planned(kept) => &kept.session,
        }
    }

    /// The database.
    #[must_use]
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

    /// Whether someone is meant by a handle, in whatever case.
    #[must_use]
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

    /// The choices that were made.
    #[must_use]
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

/// A session that this process alone works on, as long as this is kept.
#[derive(Debug)]
pub struct Hold(#[allow(dead_code, reason = "the lock is let go when the file is closed")] File);

/// A session as it is kept outside the database until it is verified: what is needed to continue, and to look for what
/// must be gone. It is the only place that still says who it is about.
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
    /// Handles that were found before, of how many.
    pub control: (usize, usize),
    /// Rows that were to go, so that none is lost when what led to it is gone already.
    pub deletes: Vec<GoingRows>,
    /// Ids of rows that go.
    #[serde(skip, default = "no_ids")]
    pub ids: Arc<IdSet>,
    /// Stands for the person where a column must name someone.
    pub pseudonym: String,
    /// Effects on rows that stay.
    pub effects: Vec<String>,
    /// Data that stays according to the plan: shown, but without influence on the final status.
    pub particular: Vec<String>,
    /// Hashes of texts that lose words, which stay.
    pub old_hashes: Vec<String>,
    /// Vectors of texts that lose words, which stay.
    #[serde(default)]
    pub old_vectors: Vec<String>,
    /// Values that name the person and stay by choice, by table and column.
    pub left: BTreeMap<String, usize>,
    /// References to rows that go which the plan said would stay, by table and column.
    pub left_references: BTreeMap<String, usize>,
    /// Disclosures that do not.
    pub notes: Vec<String>,
    /// Tables that no layout knows and that do not name the person as far as the plan saw, with their columns that look personal.
    #[serde(default)]
    pub silent: BTreeMap<String, String>,
    /// Foreign keys that led nowhere before, by table, parent and number.
    pub broken_before: BTreeMap<String, u64>,
    /// Tables whose rows go or change.
    pub touched: Vec<TableName>,
    /// Tables that named the person.
    pub named_in: Vec<TableName>,
    /// Search indexes that keep entries about other tables' rows, as they were before.
    pub side_indexes: Vec<SideIndex>,
    /// Hits among the bytes of the files before, by handle; none for a server.
    pub bytes_before: Option<Vec<u64>>,
    /// Vectors of rows that go, a sample.
    pub vectors: Vec<OldVector>,
    /// Texts of rows that go which the database itself may copy.
    #[serde(default)]
    pub copied: CopiedTexts,
    /// Seconds that each phase took.
    pub phases: BTreeMap<String, f64>,
    /// SHA-256 of the bundle that was exported before.
    pub export_sha256: Option<String>,
    /// Time when the erasure began.
    pub started_at: String,
    /// Location of the database: a copy has the same id.
    pub spot: AnchorSpot,
    /// Decisions that were made when it was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redecided: Vec<Redecision>,
    /// Whether the file of the first run was lost, so that the rest was planned again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_anew: bool,
    /// The receipt, once it is made and until it is delivered.
    pub receipt: Option<PurgeReceipt>,
}

fn no_ids() -> Arc<IdSet> {
    Arc::new(IdSet::new(&room()))
}

impl KeptSession {
    /// Whether its rows and ids could be written and read.
    ///
    /// # Errors
    /// There is no room for what does not fit in memory, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.deletes.iter().try_for_each(GoingRows::check)?;
        self.ids.check()
    }

    /// Returns the choices by which the erasure is carried out.
    #[must_use]
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

    /// Makes a session this process's own until the `Hold` is dropped or the process ends; none while another process
    /// works on it.
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

    /// Keeps what was asked for; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_asked(&self, asked: &PurgeRequest) -> Result<(), ChangeError> {
        self.keep_stage(&asked.session, &WrittenStage::Asked(asked))
    }

    /// Keeps a session; it is on the disk when this returns.
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

    /// Writes an encrypted file, whole or not at all.
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

    /// Reads a kept session; `None` when it is not there, or not ours.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] where its rows do not fit in memory and no file can be made for them.
    pub fn kept(&self, session: &str) -> Result<Option<KeptSession>, ChangeError> {
        let pages = room();
        let Some(kept) = read_session(&self.key, &self.session_file(session), &pages) else { return Ok(None) };
        kept.check()?;
        Ok(Some(kept))
    }

    /// Reads the kept sessions of a database, oldest first, but for those of a copy of it; unreadable files are skipped.
    #[must_use]
    pub fn stages(&self, database_id: &str, here: &AnchorSpot) -> Vec<SessionStage> {
        let is_ours = |stage: &SessionStage| stage.database_id() == database_id && stage.spot().is(here);
        stages(&self.folder, &self.key).into_iter().filter(is_ours).collect()
    }

    /// Every session that is kept in a folder and is not over, the oldest first; files that are none are skipped.
    #[must_use]
    pub fn all_kept(folder: &Path, key: &Key) -> Vec<KeptSession> {
        let planned = |stage| match stage {
            SessionStage::Planned(kept) => Some(*kept),
            SessionStage::Asked(_) => None,
        };
        stages(folder, key).into_iter().filter_map(planned).collect()
    }

    /// Forgets a session that is over: it named the person.
    pub fn forget(&self, session: &str) {
        // Nothing can be done about a file that does not go.
        let _ = std::fs::remove_file(self.session_file(session));
        let _ = std::fs::remove_file(self.lock_file(session));
    }

    /// Forgets what nobody needs any more and nobody works on: files that were never finished, and sessions that wrote
    /// nothing and were asked for too long ago.
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
        // A hash that anybody can make would say who it is about to whoever tries names.
        self.sessions().join(format!("fleet-{}.session", hmac(&self.key, name)))
    }

    /// Keeps what is needed to finish an erasure in several databases, until all of them are verified.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_fleet(&self, name: &str, session: &FleetSession) -> Result<(), ChangeError> {
        self.write_sealed(&self.fleet_file(name), |file| Ok(serde_json::to_writer(file, session)?))
    }

    /// Reads what [`Desk::keep_fleet`] kept.
    #[must_use]
    pub fn fleet(&self, name: &str) -> Option<FleetSession> {
        open(&self.key, &self.fleet_file(name)).and_then(|file| serde_json::from_reader(file).ok())
    }

    /// Forgets it: it named the person.
    pub fn forget_fleet(&self, name: &str) {
        let _ = std::fs::remove_file(self.fleet_file(name));
    }

    /// Returns the folder of the receipts.
    #[must_use]
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    /// Makes the folder of the receipts: nothing is erased whose receipt could not be kept.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the folder's name.
    pub fn make_receipts(&self) -> Result<(), ChangeError> {
        let path = self.receipts();
        private_file::folder(&path).map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))
    }

    /// Keeps a receipt.
    ///
    /// # Errors
    /// [`ChangeError::Failed`] with the file's name.
    pub fn keep_receipt(&self, id: &str, receipt: &impl Serialize) -> Result<PathBuf, ChangeError> {
        let path = self.receipts().join(format!("{id}.json"));
        let text = serde_json::to_string_pretty(receipt).unwrap_or_default();
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Receipts of a person's erasures that ended verified since a time, the oldest first.
    #[must_use]
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

    /// Reads a receipt by its file or its id; with the hash of what it says.
    ///
    /// # Errors
    /// [`ChangeError::NotFound`], or [`ChangeError::Usage`] for what is not a receipt.
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

/// Seconds from a time until now; none have passed since a time that cannot be read.
fn seconds_since(at: &str) -> f64 {
    crate::memory::time::seconds_between(at, &now()).unwrap_or_default()
}

fn stages(folder: &Path, key: &Key) -> Vec<SessionStage> {
    let files = std::fs::read_dir(folder.join("purges")).into_iter().flatten().flatten();
    let mut kept: Vec<SessionStage> = files.filter_map(|file| stage(key, &file.path())).collect();
    kept.sort_by(|a, b| a.started_at().cmp(b.started_at()));
    kept
}

/// Reads the beginning of a session's file; `None` of other files, as of one that is in the making.
fn stage(key: &Key, path: &Path) -> Option<SessionStage> {
    path.extension().filter(|end| *end == "session")?;
    SessionStage::deserialize(&mut serde_json::Deserializer::from_reader(open(key, path)?)).ok()
}

/// Reads a session with its rows, which are put in a room.
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

/// Writes the rows that go, and their ids.
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

/// Writes a file that nobody else can read, whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ChangeError> {
    let folder = path.parent().map_or(Ok(()), private_file::folder);
    let written = folder.and_then(|()| private_file::replace(path, bytes));
    written.map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))
}
