//! Anchors that are kept without being asked for: outside the database, after every session that wrote, every hundred
//! entries, every purge. A copy of a database has the same identity and goes its own way, so each anchor says where the
//! database was.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::ChangeError;
use super::audit::{self, Anchor, Verdict};
use crate::ground::input_file::{self, InputError};
use crate::ground::private_file;
use crate::store::Store;

/// Entries after which an anchor is kept.
const EVERY: i64 = 100;

/// Bytes of a file of anchors that are read at most.
const FILE_BYTES: u64 = 64 << 20;

/// An anchor, and where the database was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    anchor: Anchor,
    place: String,
}

/// Keeps an anchor for the chain as it is now: at the end of a session that wrote, and after a purge. None where there
/// is no folder for them or no trail.
///
/// # Errors
/// [`ChangeError::Failed`] when the file cannot be written, else as [`audit::anchor`].
pub async fn keep(store: &Store) -> Result<Option<Anchor>, ChangeError> {
    let Some(folder) = store.anchor_folder() else { return Ok(None) };
    if store.own().await?.is_none() {
        return Ok(None);
    }
    let anchor = audit::anchor(store).await?;
    let path = file_of(folder, &anchor.database_id);
    let kept = Kept { anchor: anchor.clone(), place: store.place().to_owned() };
    append(&path, &json!(kept).to_string())
        .map_err(|e| ChangeError::Failed(format!("{}: the anchor could not be kept: {e}", path.display())))?;
    Ok(Some(anchor))
}

/// Keeps an anchor when the entry of that number completes a hundred. What was done stays done when that fails: it is
/// logged, and the next anchor makes up for it.
pub async fn after(store: &Store, seq: i64) {
    if seq % EVERY == 0
        && let Err(error) = keep(store).await
    {
        tracing::warn!(%error, "no anchor");
    }
}

/// Verifies the trail against the anchors that are known for this database, and those given.
///
/// # Errors
/// As [`audit::verify`]; [`ChangeError::Failed`] when the file of anchors cannot be read.
pub async fn verify(store: &Store, given: &[Anchor]) -> Result<Verdict, ChangeError> {
    let database_id = store.own().await?.map(|own| own.database_id).unwrap_or_default();
    let (kept, mut notes) = match store.anchor_folder() {
        Some(folder) => read(&file_of(folder, &database_id))?,
        None => (Vec::new(), vec!["there is no folder for anchors: MNEMOSCOPE_STATE can name one".to_owned()]),
    };
    let mut anchors = given.to_vec();
    let (here, elsewhere): (Vec<Kept>, Vec<Kept>) =
        kept.into_iter().filter(|k| k.anchor.database_id == database_id).partition(|k| k.place == store.place());
    anchors.extend(here.into_iter().map(|k| k.anchor));
    for kept in latest_of_each(elsewhere) {
        let (seq, place) = (kept.anchor.seq, &kept.place);
        if holds(store, &kept.anchor).await? {
            anchors.push(kept.anchor);
        } else {
            notes.push(format!(
                "an anchor of entry {seq} that was kept for {place} does not fit: this is a copy that went its own way, \
                 or one of the two was rewritten; `audit verify` there tells which"
            ));
        }
    }
    let mut verdict = audit::verify(store, &anchors).await?;
    verdict.notes.append(&mut notes);
    Ok(verdict)
}

async fn holds(store: &Store, anchor: &Anchor) -> Result<bool, ChangeError> {
    let found = store.trail(anchor.seq.saturating_sub(1), 1).await?.into_iter().next();
    Ok(anchor.seq == 0 || found.is_some_and(|e| e.seq == anchor.seq && e.hash == anchor.hash))
}

/// The last anchor of each place: it vouches for all entries before it.
fn latest_of_each(mut kept: Vec<Kept>) -> Vec<Kept> {
    kept.sort_by(|a, b| a.place.cmp(&b.place).then(b.anchor.seq.cmp(&a.anchor.seq)));
    kept.dedup_by(|a, b| a.place == b.place);
    kept
}

/// The file with the anchors of a database. Its identity comes out of the database: it need not be fit for a name.
fn file_of(folder: &Path, database_id: &str) -> PathBuf {
    let plain = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    let name = if database_id.len() == 36 && database_id.bytes().all(plain) {
        database_id.to_owned()
    } else {
        hex::encode(&Sha256::digest(database_id.as_bytes())[..18])
    };
    folder.join(format!("{name}.jsonl"))
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        private_file::folder(folder)?;
    }
    private_file::append(path, line)
}

/// The kept anchors, and what cannot be read of them.
fn read(path: &Path) -> Result<(Vec<Kept>, Vec<String>), ChangeError> {
    let bytes = match input_file::read(path, FILE_BYTES) {
        Err(InputError::NotFound) => return Ok((Vec::new(), Vec::new())),
        outcome => outcome.map_err(|e| ChangeError::Failed(format!("{}: {e}", path.display())))?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut kept, mut bad) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(anchor) => kept.push(anchor),
            Err(_) => bad += 1,
        }
    }
    let notes = (bad > 0).then(|| format!("{}: {bad} lines are no anchors and were passed over", path.display()));
    Ok((kept, notes.into_iter().collect()))
}
