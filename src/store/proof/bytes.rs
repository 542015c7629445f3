//! Looks through files byte by byte for needles: in pieces that overlap, so that none is cut in two, with memory that
//! does not grow with the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::{Deserialize, Serialize};

use super::needles::{Form, Needles};
use crate::store::session::Opener;
use crate::store::{Store, StoreError};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// How often something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Number of the handle.
    pub handle: usize,
    /// Encoding.
    pub form: Form,
    /// Places.
    pub count: u64,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileScan {
    /// Path.
    pub path: String,
    /// Bytes that were read; none when there is no such file.
    pub bytes: Option<u64>,
    /// What was found.
    pub found: Vec<Found>,
}

impl FileScan {
    /// Places in all.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.found.iter().map(|f| f.count).sum()
    }
}

/// What some files hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteScan {
    /// Each file.
    pub files: Vec<FileScan>,
    /// Milliseconds that it took.
    pub ms: u64,
}

impl ByteScan {
    /// Places in all files.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.files.iter().map(FileScan::hits).sum()
    }

    /// Places of each handle in each encoding, over all files.
    #[must_use]
    pub fn by_needle(&self) -> BTreeMap<(usize, Form), u64> {
        let mut all = BTreeMap::new();
        for found in self.files.iter().flat_map(|f| &f.found) {
            *all.entry((found.handle, found.form)).or_default() += found.count;
        }
        all
    }

    /// Handles that were not found in any encoding though they were looked for: after a deletion their absence proves
    /// nothing.
    #[must_use]
    pub fn not_found(&self, needles: &Needles) -> Vec<usize> {
        let found = self.by_needle();
        let seen = |handle: usize| found.keys().any(|(found, _)| *found == handle);
        needles.forms().into_keys().filter(|handle| !seen(*handle)).collect()
    }
}

/// The files of an SQLite database: itself, `-wal`, `-shm` and `-journal`, there or not.
#[must_use]
pub fn sqlite_files(main: &Path) -> Vec<PathBuf> {
    let beside = |ending: &str| {
        let mut path = main.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    ["", "-wal", "-shm", "-journal"].map(beside).to_vec()
}

/// A search that is ready to run.
#[derive(Debug)]
pub struct Search {
    automaton: AhoCorasick,
    /// Which handle and encoding a pattern is.
    means: Vec<(usize, Form)>,
    longest: usize,
}

impl Search {
    /// Prepares to look for needles.
    ///
    /// # Errors
    /// More than can be looked for at once.
    pub fn new(needles: &Needles) -> io::Result<Self> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(needles.needles.iter().map(|n| &n.bytes))
            .map_err(io::Error::other)?;
        Ok(Search {
            automaton,
            means: needles.needles.iter().map(|n| (n.handle, n.form)).collect(),
            longest: needles.needles.iter().map(|n| n.bytes.len()).max().unwrap_or_default(),
        })
    }

    /// Looks through everything that a reader gives; `each` gets the bytes of every piece read. Gives what was found
    /// and how many bytes there were.
    ///
    /// # Errors
    /// The reader's.
    pub fn run(&self, mut reader: impl Read, each: &mut impl FnMut(u64)) -> io::Result<(Vec<Found>, u64)> {
        let mut counts: BTreeMap<(usize, Form), u64> = BTreeMap::new();
        let keep = self.longest.saturating_sub(1);
        let mut buffer = vec![0; PIECE + keep];
        let (mut kept, mut total) = (0, 0);
        loop {
            let read = read_full(&mut reader, &mut buffer[kept..])?;
            if read == 0 {
                break;
            }
            let filled = kept + read;
            for hit in self.automaton.find_overlapping_iter(&buffer[..filled]) {
                // One that ends within the part kept from before was counted then.
                if hit.end() > kept
                    && let Some(means) = self.means.get(hit.pattern().as_usize())
                {
                    *counts.entry(*means).or_default() += 1;
                }
            }
            total += read as u64;
            each(read as u64);
            let from = filled.saturating_sub(keep);
            buffer.copy_within(from..filled, 0);
            kept = filled - from;
        }
        let found = counts.into_iter().map(|((handle, form), count)| Found { handle, form, count }).collect();
        Ok((found, total))
    }
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Looks through files; one that is not there holds nothing. `each` gets the bytes of every piece read.
///
/// # Errors
/// A file that is there and cannot be read, with its path.
pub fn scan_files(files: &[PathBuf], needles: &Needles, each: &mut impl FnMut(u64)) -> io::Result<ByteScan> {
    let began = Instant::now();
    let search = Search::new(needles)?;
    let mut scan = ByteScan::default();
    for path in files {
        let shown = path.display().to_string();
        let (found, bytes) = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), None),
            Err(error) => return Err(at(&shown, &error)),
            Ok(file) => {
                let (found, bytes) = search.run(file, each).map_err(|error| at(&shown, &error))?;
                (found, Some(bytes))
            }
        };
        scan.files.push(FileScan { path: shown, bytes, found });
    }
    scan.ms = began.elapsed().as_millis() as u64;
    Ok(scan)
}

fn at(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

impl Store {
    /// The files of this database; none for a server, whose files are not ours to read.
    #[must_use]
    pub fn files(&self) -> Option<Vec<PathBuf>> {
        match self.sessions.opener() {
            Opener::Sqlite(options, attached) => {
                let mut files = sqlite_files(options.get_filename());
                let path = |uri: &String| {
                    let inner = uri.strip_prefix("file:").unwrap_or(uri);
                    let inner = inner.split('?').next().unwrap_or(inner);
                    PathBuf::from(inner.replace("%3f", "?").replace("%23", "#").replace("%25", "%"))
                };
                files.extend(attached.iter().flat_map(|(uri, _)| sqlite_files(&path(uri))));
                Some(files)
            }
            Opener::Postgres(_) => None,
        }
    }

    /// Looks through the database's files, on a thread of its own; none for a server. `each` gets the bytes of every
    /// piece read.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub async fn scan_bytes(
        &self,
        needles: &Needles,
        mut each: impl FnMut(u64) + Send + 'static,
    ) -> Result<Option<ByteScan>, StoreError> {
        let Some(files) = self.files() else { return Ok(None) };
        let needles = needles.clone();
        let scanned = tokio::task::spawn_blocking(move || scan_files(&files, &needles, &mut each)).await;
        let scanned = scanned.map_err(|error| StoreError::Engine(sqlx::Error::Io(io::Error::other(error))))?;
        scanned.map(Some).map_err(|error| StoreError::Engine(sqlx::Error::Io(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(bytes: &[u8], needles: &Needles) -> Vec<Found> {
        Search::new(needles).unwrap().run(bytes, &mut |_| {}).unwrap().0
    }

    #[test]
    fn every_encoding_is_found_in_a_file_that_holds_it() {
        let handle = "Zoë.Núñez@Example.org";
        let needles = Needles::new(&[handle.to_owned()], &[vec![0.25, -0.5, 0.125, 0.75]]);
        for needle in &needles.needles {
            let mut file = vec![0xAA; 100];
            file.extend(&needle.bytes);
            file.extend([0xAA; 9]);
            let found = scan(&file, &needles);
            let it = found.iter().find(|f| (f.handle, f.form) == (needle.handle, needle.form));
            assert_eq!(it.map(|f| f.count), Some(1), "{:?} in {found:?}", needle.form);
        }
        assert!(scan(&[0xAA; 4096], &needles).is_empty());
    }

    #[test]
    fn a_needle_across_two_pieces_is_found_once() {
        let needles = Needles::new(&["auth0|7f3a9b2c".to_owned()], &[]);
        for at in [PIECE - 20, PIECE - 14, PIECE - 7, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 3] {
            let mut file = vec![b'.'; 3 * PIECE];
            file[at..at + 14].copy_from_slice(b"auth0|7f3a9b2c");
            let count = |form| scan(&file, &needles).iter().find(|f| f.form == form).map(|f| f.count);
            assert_eq!((count(Form::Utf8), count(Form::Tail)), (Some(1), Some(1)), "at {at}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_holds_nothing_and_one_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let needles = Needles::new(&["auth0|7f3a9b2c".to_owned()], &[]);
        let main = folder.path().join("a.db");
        std::fs::write(&main, b"xx auth0|7f3a9b2c yy AUTH0|7F3A9B2C").unwrap();
        let mut read = 0;
        let scan = scan_files(&sqlite_files(&main), &needles, &mut |n| read += n).unwrap();
        assert_eq!((scan.files.len(), scan.files[0].bytes, scan.files[1].bytes, read), (4, Some(35), None, 35));
        assert_eq!(scan.by_needle()[&(0, Form::Utf8)], 1);
        assert!(scan.not_found(&needles).is_empty());
        let error = scan_files(&[folder.path().to_owned()], &needles, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    }
}
