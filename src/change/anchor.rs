//! Stores anchors automatically, outside the database: after every session that wrote, every hundred entries, and every
//! purge. They are found by trail and by location, whatever name the database is given. A mismatch is a fault until
//! someone declares, with a reason, that the database was replaced on purpose: the anchors then end, and stay on
//! record.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::apply::Author;
use super::audit::{self, Anchor, NewEntry};
use super::plan::NO_ANCHOR;
use super::plan::trail::AuditVerdict;
use super::waiting::WaitingTries;
use super::{ChangeError, FailedTransaction, now};
use crate::ground::input_file::{self, InputError};
use crate::ground::private_file;
use crate::memory::{agreeing, text_check};
use crate::store::Store;
use crate::store::identity::Identity;
use crate::store::own::OwnTables;
use crate::store::write::WriteError;

/// Entries after which an anchor is stored.
const EVERY: i64 = 100;

/// Most bytes read of an anchor file.
const FILE_BYTES: u64 = 64 << 20;

/// The file that lists ended anchors.
const ACCEPTED: &str = "accepted.jsonl";

/// Location of a database: its text, and the identity that the database reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorSpot {
    place: String,
    identity: Identity,
}

impl AnchorSpot {
    /// Reads the location of a database, and returns a note about unknown parts.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(store: &Store) -> Result<(AnchorSpot, Option<String>), ChangeError> {
        let (identity, note) = store.identity().await?;
        Ok((AnchorSpot { place: store.place().to_owned(), identity }, note))
    }

    /// Whether the file of a database still exists.
    pub fn stands(&self) -> bool {
        self.identity.is(&Identity::of_file(Path::new(&self.place)))
    }

    /// Whether both are one location. If two servers report identities, their addresses do not matter.
    pub fn is(&self, other: &AnchorSpot) -> bool {
        let servers = (&self.identity.server, &other.identity.server);
        let apart = matches!(servers, (Some(one), Some(other)) if one != other);
        !apart && (self.place == other.place || self.identity.is(&other.identity))
    }
}

/// An anchor, with the location of the database at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptAnchor {
    #[serde(flatten)]
    anchor: Anchor,
    #[serde(flatten)]
    spot: AnchorSpot,
}

/// Anchors that ended because someone accepted a replaced database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    at: String,
    actor: String,
    reason: String,
    #[serde(flatten)]
    spot: AnchorSpot,
    /// The current trail; `None` if there is none.
    database_id: Option<String>,
    anchors: Vec<KeptAnchor>,
}

impl Ended {
    /// Whether one of the anchors is of the current trail.
    fn is_of_this_trail(&self) -> bool {
        self.anchors.iter().any(|kept| self.database_id.as_ref() == Some(&kept.anchor.database_id))
    }

    /// Whether the location was accepted as a separate copy: anchors of one trail then count for one of the two
    /// locations, not for both.
    fn parts(&self, kept: &KeptAnchor) -> bool {
        let own = self.database_id.as_ref() == Some(&kept.anchor.database_id);
        own && self
            .anchors
            .iter()
            .any(|ended| ended.anchor.database_id == kept.anchor.database_id && !ended.spot.is(&self.spot))
    }
}

/// Stores an anchor for the current chain: at the end of a session that wrote, and after a purge. `None` without a
/// folder for anchors or a trail.
///
/// # Errors
/// [`ChangeError::Failed`] if the file cannot be written, otherwise as [`audit::anchor`].
pub async fn keep(store: &Store) -> Result<Option<Anchor>, ChangeError> {
    let Some(folder) = store.anchor_folder() else { return Ok(None) };
    if store.records().own().await?.is_none_or(|own| own.unread.is_some()) {
        return Ok(None);
    }
    let anchor = audit::anchor(store).await?;
    let kept = KeptAnchor { anchor: anchor.clone(), spot: AnchorSpot::of(store).await?.0 };
    append(&file_of(folder, &anchor.database_id), &kept)?;
    Ok(Some(anchor))
}

/// Stores an anchor if the entry with that number completes a hundred. A failure is only logged and does not undo the
/// change: the session's last anchor replaces it, or reports the reason.
pub async fn after(store: &Store, seq: i64) {
    if seq % EVERY == 0
        && let Err(error) = keep(store).await
    {
        tracing::warn!(%error, "{NO_ANCHOR}, so a truncated trail would go unnoticed");
    }
}

const NO_FOLDER: &str = "there is no folder for anchors: set MNEMOSCOPE_STATE to one";

/// Stores an anchor at the end of a session that wrote; returns the reason if that fails, for people.
pub async fn missed(store: &Store) -> Option<String> {
    let why = match store.anchor_folder() {
        Some(_) => keep(store).await.err()?.to_string(),
        None => NO_FOLDER.to_owned(),
    };
    Some(format!("{NO_ANCHOR}, so a truncated trail would go unnoticed: {why}"))
}

/// Facts about a database that are stored outside it.
struct AnchorKnowledge {
    spot: AnchorSpot,
    /// Id of the current trail.
    database_id: Option<String>,
    /// Anchors that count, those of this place first.
    anchors: Vec<KeptAnchor>,
    notes: Vec<String>,
}

impl AnchorKnowledge {
    async fn of(store: &Store) -> Result<AnchorKnowledge, ChangeError> {
        // A trail that our role may not read does not count as missing.
        let database_id = store.records().own().await?.map(OwnTables::read).transpose()?.map(|own| own.database_id);
        let (spot, note) = AnchorSpot::of(store).await?;
        let Some(folder) = store.anchor_folder() else {
            return Ok(AnchorKnowledge { spot, database_id, anchors: Vec::new(), notes: vec![NO_FOLDER.to_owned()] });
        };
        let mut known = AnchorKnowledge::at(folder, spot, database_id)?;
        known.notes.extend(note);
        Ok(known)
    }

    /// Reads the facts about a location and a trail from the files of a folder.
    fn at(folder: &Path, spot: AnchorSpot, database_id: Option<String>) -> Result<AnchorKnowledge, ChangeError> {
        let mut notes = Vec::new();
        let ended: Vec<Ended> = read(&folder.join(ACCEPTED), &mut notes)?;
        let over: HashSet<String> = ended
            .iter()
            .filter(|ended| ended.spot.is(&spot))
            .flat_map(|ended| &ended.anchors)
            .map(|kept| json!(kept).to_string())
            .collect();
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for path in files(folder) {
            for kept in read::<KeptAnchor>(&path, &mut notes)? {
                if over.contains(&json!(kept).to_string()) {
                    continue;
                }
                if kept.spot.is(&spot) {
                    here.push(kept);
                } else if database_id.as_ref() == Some(&kept.anchor.database_id)
                    && !ended.iter().any(|e| (e.spot.is(&spot) || e.spot.is(&kept.spot)) && e.parts(&kept))
                {
                    elsewhere.push(kept);
                }
            }
        }
        here.extend(latest_of_each(elsewhere));
        // One message for each earlier trail is enough.
        let mut others = HashSet::new();
        here.reverse();
        here.retain(|kept| {
            let id = &kept.anchor.database_id;
            database_id.as_ref() == Some(id) || others.insert(id.clone())
        });
        here.reverse();
        Ok(AnchorKnowledge { spot, database_id, anchors: here, notes })
    }

    fn plain(&self) -> Vec<Anchor> {
        self.anchors.iter().map(|kept| kept.anchor.clone()).collect()
    }

    /// Verifies the trail, with these and further anchors.
    async fn judge(
        &self,
        store: &Store,
        given: &[Anchor],
        told: &(dyn Fn(usize) + Sync),
    ) -> Result<AuditVerdict, ChangeError> {
        let missing = audit::missing_tables(store).await?;
        let id = || self.database_id.clone().unwrap_or_default();
        if !missing.is_empty() {
            return Ok(audit::unreadable(id(), vec![audit::missing(&missing)]));
        }
        match (&self.database_id, self.anchors.first()) {
            (None, Some(kept)) => Ok(audit::unreadable(id(), vec![audit::gone(&kept.anchor)])),
            _ => audit::walk(store, &[given, &self.plain()].concat(), told).await,
        }
    }
}

/// Verifies the trail against the stored anchors for this trail and this location, and those given.
///
/// # Errors
/// As [`audit::verify`]; [`ChangeError::Failed`] when the file of anchors cannot be read; [`ChangeError::Refused`] when
/// entries are on damaged pages.
pub async fn verify(store: &Store, given: &[Anchor]) -> Result<AuditVerdict, ChangeError> {
    walk(store, given, &|_| ()).await
}

/// As [`verify`]; `told` gets the number of entries read so far.
///
/// # Errors
/// As [`verify`].
pub async fn walk(store: &Store, given: &[Anchor], told: &(dyn Fn(usize) + Sync)) -> Result<AuditVerdict, ChangeError> {
    if let Some(rows) = store.unread_trail() {
        return Err(ChangeError::Refused(format!("the trail cannot be verified: {}", rows.told())));
    }
    let known = AnchorKnowledge::of(store).await?;
    let mut verdict = known.judge(store, given, told).await?;
    verdict.notes.extend(known.notes.iter().cloned());
    let places: HashSet<&str> =
        known.anchors.iter().filter(|kept| !kept.spot.is(&known.spot)).map(|kept| kept.spot.place.as_str()).collect();
    if !verdict.ok && !known.anchors.is_empty() {
        let accept = store.invocation().line(["audit", "accept", "--reason", "TEXT"]);
        let mut words = format!(
            "if the database was replaced, restored or copied on purpose, `{accept}` ends the anchors that do not \
             match and keeps them on record"
        );
        if !places.is_empty() {
            words
                .push_str(&format!("; anchors of this trail were also kept for {}", Vec::from_iter(places).join(", ")));
        }
        verdict.notes.push(words);
    }
    Ok(verdict)
}

/// Result of accepting a replaced database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// `accepted`, or `nothing to do`.
    pub status: &'static str,
    /// The anchors that ended.
    pub ended: Vec<Anchor>,
    /// The current trail; `None` if there is none.
    pub database_id: Option<String>,
    /// Number of the entry that records it; `None` if there is no trail for it.
    pub audit_seq: Option<i64>,
    /// Notes that the user should read.
    pub notes: Vec<String>,
}

/// Ends the anchors that do not match the current database, and keeps them on record with the reason.
///
/// # Errors
/// [`ChangeError::Usage`] without a reason, [`ChangeError::Refused`] without a folder for anchors; otherwise as
/// [`verify`].
pub async fn accept(store: &Store, author: &Author) -> Result<Acceptance, ChangeError> {
    let reason = author.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let Some(reason) = reason.map(|reason| text_check::check(reason).0) else {
        return Err(ChangeError::Usage("say why this is a different database now: --reason TEXT".to_owned()));
    };
    let Some(folder) = store.anchor_folder() else {
        return Err(ChangeError::Refused("there is no folder for anchors: set MNEMOSCOPE_STATE to one".to_owned()));
    };
    let known = AnchorKnowledge::of(store).await?;
    let mut misfits = Vec::new();
    for kept in &known.anchors {
        if !fits(store, known.database_id.as_deref(), &kept.anchor).await? {
            misfits.push(kept.clone());
        }
    }
    // For trails that no longer exist, all anchors stored at this location.
    misfits = all_of(folder, &known, misfits)?;
    let mut acceptance = Acceptance {
        status: if misfits.is_empty() { "nothing to do" } else { "accepted" },
        ended: misfits.iter().map(|kept| kept.anchor.clone()).collect(),
        database_id: known.database_id.clone(),
        audit_seq: None,
        notes: Vec::new(),
    };
    if misfits.is_empty() {
        return Ok(acceptance);
    }
    let ended = Ended {
        at: now(),
        actor: author.actor.clone(),
        reason: reason.clone(),
        spot: known.spot,
        database_id: known.database_id.clone(),
        anchors: misfits,
    };
    // The entry comes first: if the process is stopped in between, accepting again still finds something to accept.
    match super::draft::writable(store).await {
        Ok(own) => acceptance.audit_seq = Some(enter(store, &own, author, &ended).await?),
        // The trail itself has to say that it was cut. A server that lags would be taken for it, too.
        Err(error) if ended.is_of_this_trail() => return Err(error),
        Err(error) => acceptance.notes.push(format!("the trail has no entry about this: {error}")),
    }
    append(&folder.join(ACCEPTED), &ended)?;
    acceptance.notes.extend(missed(store).await);
    Ok(acceptance)
}

/// The misfits, and every other anchor of their trails stored at this location, if there is another trail now.
fn all_of(folder: &Path, known: &AnchorKnowledge, misfits: Vec<KeptAnchor>) -> Result<Vec<KeptAnchor>, ChangeError> {
    let mut all: Vec<KeptAnchor> = Vec::new();
    for kept in misfits {
        if known.database_id.as_ref() == Some(&kept.anchor.database_id) {
            all.push(kept);
            continue;
        }
        let of_trail = read::<KeptAnchor>(&file_of(folder, &kept.anchor.database_id), &mut Vec::new())?;
        all.extend(of_trail.into_iter().filter(|other| other.spot.is(&known.spot)));
    }
    Ok(all)
}

/// Ends every anchor stored for the file at a path, which we have just created again.
///
/// # Errors
/// [`ChangeError::Failed`] when a file of anchors cannot be read or written.
pub fn made_again(folder: &Path, path: &Path, actor: &str, reason: &str) -> Result<(), ChangeError> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let spot = AnchorSpot { place, identity: Identity::of_file(path) };
    let known = AnchorKnowledge::at(folder, spot, None)?;
    let anchors = all_of(folder, &known, known.anchors.clone())?;
    if anchors.is_empty() {
        return Ok(());
    }
    let (actor, reason) = (actor.to_owned(), reason.to_owned());
    append(&folder.join(ACCEPTED), &Ended { at: now(), actor, reason, spot: known.spot, database_id: None, anchors })
}

async fn fits(store: &Store, database_id: Option<&str>, anchor: &Anchor) -> Result<bool, ChangeError> {
    if database_id != Some(anchor.database_id.as_str()) {
        return Ok(false);
    }
    if !audit::missing_tables(store).await?.is_empty() {
        return Ok(true);
    }
    let found = store.records().trail(anchor.seq.saturating_sub(1), 1).await?.into_iter().next();
    Ok(anchor.seq == 0 || found.is_some_and(|e| e.seq == anchor.seq && e.hash == anchor.hash))
}

/// Records the end of anchors in the trail.
async fn enter(store: &Store, own: &OwnTables, author: &Author, ended: &Ended) -> Result<i64, ChangeError> {
    let trails: HashSet<&str> = ended.anchors.iter().map(|kept| kept.anchor.database_id.as_str()).collect();
    let last = ended.anchors.iter().map(|kept| kept.anchor.seq).max();
    let public = json!({
        "operation": "audit.accept", "schema": audit::SCHEMA, "anchors": ended.anchors.len(), "trails": trails.len(),
        "last": last, "undo_reason": "what was accepted stays on record",
    });
    let entry = NewEntry {
        at: ended.at.clone(),
        actor: author.actor.clone(),
        action: "audit.accept".to_owned(),
        public,
        private: BTreeMap::from([("reason".to_owned(), json!(ended.reason).to_string())]),
    };
    let mut waiting = WaitingTries::begin();
    loop {
        match entered(store, own, entry.clone(), waiting.patience()).await {
            Err(FailedTransaction::Write(error @ WriteError::Busy(_))) => waiting.again_after(&error).await?,
            entered => return Ok(entered?),
        }
    }
}

async fn entered(
    store: &Store,
    own: &OwnTables,
    entry: NewEntry,
    patience: Duration,
) -> Result<i64, FailedTransaction> {
    let mut writer = store.write_within(&entry.at, patience).await?;
    match audit::append(&mut writer, own, entry).await {
        Ok(seq) => {
            writer.commit().await?;
            Ok(seq)
        }
        Err(error) => {
            writer.rollback().await;
            Err(error)
        }
    }
}

/// The last anchor of each location, which covers all earlier entries.
fn latest_of_each(mut kept: Vec<KeptAnchor>) -> Vec<KeptAnchor> {
    kept.sort_by(|a, b| a.spot.place.cmp(&b.spot.place).then(b.anchor.seq.cmp(&a.anchor.seq)));
    kept.dedup_by(|a, b| a.spot.place == b.spot.place);
    kept
}

/// The file with the anchors of a database. Its identity comes from the database and may be unsuitable as a file name.
fn file_of(folder: &Path, database_id: &str) -> PathBuf {
    let plain = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    let name = if database_id.len() == 36 && database_id.bytes().all(plain) {
        database_id.to_owned()
    } else {
        hex::encode(&Sha256::digest(database_id.as_bytes())[..18])
    };
    folder.join(format!("{name}.jsonl"))
}

/// The files with anchors, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl") && !path.ends_with(ACCEPTED)).collect();
    files.sort();
    files
}

/// Adds a line; it is on the disk when this returns.
fn append(path: &Path, line: &impl Serialize) -> Result<(), ChangeError> {
    let folder = path.parent().map_or(Ok(()), private_file::folder);
    let written = folder.and_then(|()| private_file::append(path, &json!(line).to_string()));
    written.map_err(|e| ChangeError::Failed(format!("{}: the anchor could not be stored: {e}", path.display())))
}

/// The lines of a file; unreadable ones are reported in the notes.
fn read<L: DeserializeOwned>(path: &Path, notes: &mut Vec<String>) -> Result<Vec<L>, ChangeError> {
    let bytes = match input_file::read(path, FILE_BYTES) {
        Err(InputError::NotFound) => return Ok(Vec::new()),
        outcome => outcome.map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut lines, mut bad) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(read) => lines.push(read),
            Err(_) => bad += 1,
        }
    }
    if bad > 0 {
        let words = agreeing(bad, "{#} {line is not an anchor and was|lines are not anchors and were} skipped");
        notes.push(format!("{}: {words}", path.display()));
    }
    Ok(lines)
}
