//! Writes rows to a file as JSON lines, page by page.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::PathBuf;

use super::load;
use crate::console::core::request::Export;
use crate::console::core::{RequestFailure, RowKey};
use crate::ground::private_file::PrivateFile;
use crate::memory::mask::Mask;
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row};
use crate::store::reading::ListReading;
use crate::store::{Store, StoreError};

/// Rows read at a time.
const BATCH: usize = 500;

/// Writes the rows. Returns their number and the file's path; `told` gets the progress.
pub async fn write(
    store: &Store,
    export: &Export,
    mask: Option<&Mask>,
    told: impl Fn(usize),
) -> Result<(usize, String), RequestFailure> {
    let path = expanded(&export.path);
    let failed = |e: io::Error| {
        let mut failure = RequestFailure::new("The rows were not written", e.to_string(), remedy(&e));
        failure.code = Some(path.display().to_string());
        failure
    };
    let unread = |e: StoreError| load::failure("The rows could not be read", &e);
    if path.symlink_metadata().is_ok() {
        return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    let mut out = Out { file: PrivateFile::begin(&path).map_err(failed)?, mask, rows: 0 };
    match &export.only {
        Some(keys) if export.query.entity != Entity::MemoryLink => {
            for keys in keys.chunks(BATCH) {
                let ids: Vec<String> = keys.iter().map(|key| key.id().to_owned()).collect();
                let rows = store.related(export.query.entity, "id", &ids).await;
                let rows = rows.map_err(unread)?;
                let wanted: HashSet<&RowKey> = keys.iter().collect();
                out.rows(rows, |row| wanted.contains(&RowKey::of(row))).map_err(failed)?;
                told(out.rows);
            }
        }
        only => {
            let wanted: Option<HashSet<&RowKey>> = only.as_ref().map(|keys| keys.iter().collect());
            let mut query = Query { start: PageStart::First, ..export.query.clone() }.in_parts();
            let reading = ListReading::default();
            loop {
                let page = store.page_of(&query, &reading).await.map_err(unread)?;
                let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|keys| keys.contains(&RowKey::of(row)));
                out.rows(page.rows, is_wanted).map_err(failed)?;
                told(out.rows);
                match page.next {
                    Some(next) => query.start = PageStart::After(next),
                    None => break,
                }
            }
        }
    }
    let rows = out.rows;
    out.file.create().map_err(failed)?;
    let shown = path.canonicalize().unwrap_or_else(|_| path.clone());
    Ok((rows, shown.display().to_string()))
}

struct Out<'m> {
    file: PrivateFile,
    mask: Option<&'m Mask>,
    rows: usize,
}

impl Out<'_> {
    fn rows(&mut self, rows: Vec<Row>, wanted: impl Fn(&Row) -> bool) -> io::Result<()> {
        for mut row in rows.into_iter().filter(|row| wanted(row)) {
            if let Some(mask) = self.mask {
                mask.row(&mut row);
            }
            serde_json::to_writer(&mut self.file, &row)?;
            self.file.write_all(b"\n")?;
            self.rows += 1;
        }
        Ok(())
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
