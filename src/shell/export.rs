//! Writes rows to a file as JSON lines, page by page.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::load;
use crate::app::Failure;
use crate::app::message::Export;
use crate::app::window::row_key;
use crate::memory::mask::Mask;
use crate::memory::query::{Query, Start};
use crate::memory::{Entity, Row};
use crate::store::Store;

/// Rows read at a time.
const BATCH: usize = 500;

/// Writes the rows; how many, and to which file. `told` hears of the progress.
pub async fn write(
    store: &Store,
    export: &Export,
    mask: Option<&Mask>,
    told: impl Fn(usize),
) -> Result<(usize, String), Failure> {
    let path = expanded(&export.path);
    let failed = |e: io::Error| {
        let mut failure = Failure::new("The rows were not written", e.to_string(), remedy(&e));
        failure.code = Some(path.display().to_string());
        failure
    };
    let mut out = Out { part: Part::create(&path).map_err(failed)?, mask, rows: 0 };
    match &export.only {
        Some(keys) if export.query.entity != Entity::MemoryLink => {
            for keys in keys.chunks(BATCH) {
                // A key begins with the row's id.
                let ids: Vec<String> =
                    keys.iter().map(|key| key.split('\u{1f}').next().unwrap_or_default().to_owned()).collect();
                let rows = store.related(export.query.entity, "id", &ids).await;
                let rows = rows.map_err(|e| load::failure("The rows could not be read", &e))?;
                let wanted: HashSet<&str> = keys.iter().map(String::as_str).collect();
                out.rows(rows, |row| wanted.contains(row_key(row).as_str())).map_err(failed)?;
                told(out.rows);
            }
        }
        only => {
            let wanted: Option<HashSet<&str>> = only.as_ref().map(|keys| keys.iter().map(String::as_str).collect());
            let mut query = Query { limit: BATCH, start: Start::First, ..export.query.clone() };
            loop {
                let page = load::page(store, &query).await?;
                let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|keys| keys.contains(row_key(row).as_str()));
                out.rows(page.rows, is_wanted).map_err(failed)?;
                told(out.rows);
                match page.next {
                    Some(next) => query.start = Start::After(next),
                    None => break,
                }
            }
        }
    }
    out.part.finish(&path).map_err(failed)?;
    let shown = path.canonicalize().unwrap_or_else(|_| path.clone());
    Ok((out.rows, shown.display().to_string()))
}

struct Out<'m> {
    part: Part,
    mask: Option<&'m Mask>,
    rows: usize,
}

impl Out<'_> {
    fn rows(&mut self, rows: Vec<Row>, wanted: impl Fn(&Row) -> bool) -> io::Result<()> {
        for mut row in rows.into_iter().filter(|row| wanted(row)) {
            if let Some(mask) = self.mask {
                mask.row(&mut row);
            }
            serde_json::to_writer(&mut self.part.file, &row.to_json())?;
            self.part.file.write_all(b"\n")?;
            self.rows += 1;
        }
        Ok(())
    }
}

/// What was written so far, beside the file that it becomes: that one is there as a whole or not at all. Only its owner
/// may read it: rows are personal.
struct Part {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Part {
    fn create(whole: &Path) -> io::Result<Self> {
        if whole.symlink_metadata().is_ok() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let name = whole.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let path = whole.with_file_name(format!(".{}.{:08x}.part", name.to_string_lossy(), rand::random::<u32>()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Part { path, file: BufWriter::new(file) })
    }

    /// Gives it its name. A link, unlike a new name, never takes the place of a file that came meanwhile.
    fn finish(&mut self, whole: &Path) -> io::Result<()> {
        self.file.flush()?;
        match fs::hard_link(&self.path, whole) {
            // Not every file system has links.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && whole.symlink_metadata().is_err() => {
                fs::rename(&self.path, whole)
            }
            linked => linked,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "name a file that does not exist yet",
        io::ErrorKind::NotFound => "name a file in a folder that exists",
        io::ErrorKind::PermissionDenied => "name a file in a folder that you may write to",
        _ => "name another file",
    }
}

/// The path with `~/` as the home folder.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), dirs::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
