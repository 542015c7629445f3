//! Searches bytes for needles: in overlapping pieces, so that none is cut, with memory independent of the file size. A
//! child process does it ([`crate::store::raw_file`]); this module defines the search and its result.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::needles::{NeedleContext, NeedleForm, Needles, SoughtBytes};
use crate::memory::word_index::WordIndex;
use crate::store::ProofReader;
use crate::store::file_state::{Stamp, stamp};
use crate::store::raw_file::UnreadBytes;
use crate::store::session::Opener;
use crate::store::side_by_side::{cores, on_lanes};
use crate::store::sqlite_reader::{SqliteFile, SqliteReader};

/// Bytes per read.
const PIECE: usize = 1 << 20;
/// Bytes below which a second core is not worth its cost.
const FEW: usize = 64 << 10;

/// Most scans of the files if others keep writing.
const SCANS: u32 = 3;

/// Suffixes of the files of a database, after its own name; the empty one is the database itself.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Number of matches of one handle in one encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedleCount {
    /// Number of the handle.
    pub handle: usize,
    /// Encoding.
    pub form: NeedleForm,
    /// Number of places.
    pub count: u64,
}

/// Findings of a scan of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileScan {
    /// Path.
    pub path: String,
    /// Needles found, with their counts.
    pub found: Vec<NeedleCount>,
    /// Further places, explained by values that stay.
    pub known: u64,
}

impl FileScan {
    /// Total number of unexplained places.
    pub fn hits(&self) -> u64 {
        self.found.iter().map(|f| f.count).sum()
    }
}

/// Findings of a scan of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteScan {
    /// Each file.
    pub files: Vec<FileScan>,
}

impl ByteScan {
    /// Number of unexplained places in all files.
    pub fn hits(&self) -> u64 {
        self.files.iter().map(FileScan::hits).sum()
    }

    /// Number of places in all files explained by values that stay.
    pub fn known(&self) -> u64 {
        self.files.iter().map(|file| file.known).sum()
    }

    /// Number of places of each handle in each encoding, over all files.
    pub fn by_needle(&self) -> BTreeMap<(usize, NeedleForm), u64> {
        let mut all = BTreeMap::new();
        for found in self.files.iter().flat_map(|f| &f.found) {
            *all.entry((found.handle, found.form)).or_default() += found.count;
        }
        all
    }
}

/// The files of an SQLite database: itself, `-wal`, `-shm` and `-journal`, whether they exist or not.
pub fn sqlite_files(main: &Path) -> Vec<PathBuf> {
    let beside = |ending: &str| {
        let mut path = main.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    BESIDE.map(beside).to_vec()
}

/// Bytes on either side of a needle by which a value is recognized.
const AROUND: usize = 8;
/// Number of these bytes that suffice on one side: a value that continues on another page may be cut anywhere.
const ENOUGH: usize = 4;
/// Most contexts of one needle that are distinguished.
const CONTEXTS: usize = 4_096;

/// A search that is ready to run.
#[derive(Debug)]
pub struct ByteSearch {
    needles: Needles,
    index: WordIndex,
    longest: usize,
    known: HashMap<usize, Vec<NeedleContext>>,
}

/// Contexts of needles in values that stay.
#[derive(Debug, Default)]
pub struct NeedleContexts(HashMap<usize, HashSet<NeedleContext>>);

impl NeedleContexts {
    /// Adds contexts from [`ByteSearch::contexts`].
    pub fn add(&mut self, contexts: impl IntoIterator<Item = NeedleContext>) {
        for context in contexts {
            let known = self.0.entry(context.needle).or_default();
            if known.len() < CONTEXTS {
                known.insert(context);
            } else {
                // Too many to distinguish: each place may be one of them.
                known.insert(NeedleContext { before: Vec::new(), after: Vec::new(), ..context });
            }
        }
    }

    /// All contexts, sorted.
    pub fn all(self) -> Vec<NeedleContext> {
        let mut all: Vec<NeedleContext> = self.0.into_values().flatten().collect();
        all.sort_unstable();
        all
    }
}

impl NeedleContext {
    /// Whether the bytes from `start` to `end` may be that place of the value.
    fn fits(&self, bytes: &[u8], start: usize, end: usize) -> bool {
        let before = bytes[..start].ends_with(&self.before);
        let after = bytes[end..].starts_with(&self.after);
        before && (after || self.before.len() >= ENOUGH) || after && self.after.len() >= ENOUGH
    }
}

impl ByteSearch {
    /// Prepares a search for needles; `known` are places explained by values that stay.
    pub fn new(needles: Needles, known: Vec<NeedleContext>) -> Self {
        let known = known.into_iter().fold(HashMap::new(), |mut all, context| {
            all.entry(context.needle).or_insert_with(Vec::new).push(context);
            all
        });
        let longest = needles.iter().map(|needle| needle.bytes.len()).max().unwrap_or_default();
        ByteSearch { index: WordIndex::new(&needles.words), longest, known, needles }
    }

    /// The needles.
    pub fn needles(&self) -> &Needles {
        &self.needles
    }

    /// Whether a text contains a needle, in any case of ASCII letters.
    pub fn is_in(&self, text: &str) -> bool {
        self.index.is_in(&self.needles.words, text.as_bytes())
    }

    /// Returns every place of a needle in a value, with its context.
    pub fn contexts(&self, value: &[u8]) -> Vec<NeedleContext> {
        let context = |(needle, place): (usize, Range<usize>)| NeedleContext {
            needle,
            before: value[place.start.saturating_sub(AROUND)..place.start].to_vec(),
            after: value[place.end..value.len().min(place.end + AROUND)].to_vec(),
        };
        self.places(value).map(context).collect()
    }

    /// Every place of a needle in some bytes, with the needle's number.
    fn places<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let places = self.index.places(&self.needles.words, bytes);
        places.filter(|(number, place)| self.needles.words.word(*number) == &bytes[place.clone()])
    }

    /// Whether a value that stays explains a place.
    fn is_known(&self, needle: usize, bytes: &[u8], start: usize, end: usize) -> bool {
        self.known.get(&needle).is_some_and(|all| all.iter().any(|context| context.fits(bytes, start, end)))
    }

    /// The needles whose last byte is in a part of some bytes: their numbers, their places, and whether a value that
    /// stays explains the place.
    fn ending(&self, bytes: &[u8], part: Range<usize>) -> Vec<(usize, Range<usize>, bool)> {
        let from = part.start.saturating_sub(self.longest);
        let places = self.places(&bytes[from..part.end]).map(|(n, place)| (n, place.start + from..place.end + from));
        let here = places.filter(|(_, place)| place.end > part.start);
        let known = |n, place: &Range<usize>| self.is_known(n, bytes, place.start, place.end);
        here.map(|(n, place)| (n, place.clone(), known(n, &place))).collect()
    }

    /// Searches everything that a reader returns; `is_chance` recognizes a false match: the end of one value and the
    /// beginning of another.
    ///
    /// # Errors
    /// The reader's error.
    pub fn run(
        &self,
        mut reader: impl Read,
        is_chance: &mut impl FnMut(&Range<u64>) -> bool,
    ) -> io::Result<ReaderScan> {
        let mut counts: BTreeMap<(usize, NeedleForm), u64> = BTreeMap::new();
        let mut known = 0;
        let keep = self.longest + 2 * AROUND;
        let mut buffer = vec![0; PIECE + keep];
        let (mut kept, mut counted, mut total) = (0, 0, 0);
        loop {
            let read = read_full(&mut reader, &mut buffer[kept..])?;
            let filled = kept + read;
            // The context of the last places comes with the next piece.
            let until = if read == 0 { filled } else { filled.saturating_sub(AROUND) };
            let bytes = &buffer[..filled];
            let lanes = if filled < FEW { 1 } else { cores() };
            let end = |lane: usize| counted + until.saturating_sub(counted) * lane / lanes;
            let ending = on_lanes(lanes, |lane| self.ending(bytes, end(lane)..end(lane + 1)));
            let before = total - kept as u64;
            for (number, place, is_known) in ending.into_iter().flatten() {
                let Some(needle) = self.needles.needle(number) else { continue };
                if is_known {
                    known += 1;
                } else if !is_chance(&(before + place.start as u64..before + place.end as u64)) {
                    *counts.entry((needle.handle, needle.form)).or_default() += 1;
                }
            }
            if read == 0 {
                break;
            }
            total += read as u64;
            let from = filled.saturating_sub(keep);
            buffer.copy_within(from..filled, 0);
            (kept, counted) = (filled - from, until.saturating_sub(from));
        }
        let found = counts.into_iter().map(|((handle, form), count)| NeedleCount { handle, form, count }).collect();
        Ok(ReaderScan { found, known })
    }
}

/// Findings of a scan of one reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReaderScan {
    /// Needles found at unexplained places, with their counts.
    pub found: Vec<NeedleCount>,
    /// Number of places explained by values that stay.
    pub known: u64,
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

/// Reason why the bytes of a database were not searched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UncheckedBytes {
    /// The files belong to a server.
    #[error("a server's files cannot be read from here")]
    Server,
    /// Others wrote during each scan, so moved data may have been missed.
    #[error("other processes wrote to the files during each of {0} scans; stop them and verify again")]
    Moving(u32),
    /// The files could not be read.
    #[error("{0}")]
    Unread(#[from] UnreadBytes),
}

/// State of the files, which changes with any write.
#[derive(Debug, PartialEq, Eq)]
struct FilesStanding {
    /// State of each file; `None` if it does not exist.
    files: Vec<Option<Stamp>>,
    /// Data version of each database; `None` if SQLite cannot report it.
    versions: Vec<Option<i64>>,
}

/// Connections that detect commits of others.
struct CommitWatch {
    files: Vec<PathBuf>,
    links: Vec<Option<SqliteReader>>,
}

impl CommitWatch {
    async fn over(database: &SqliteFile, files: &[PathBuf]) -> Self {
        let mut links = Vec::new();
        for main in files.iter().step_by(BESIDE.len()) {
            links.push(database.beside(main).reader().await.ok());
        }
        // The `-shm` file stores no rows, and changes with every read.
        let files = files.iter().enumerate().filter(|(n, _)| n % BESIDE.len() != 2).map(|(_, f)| f.clone()).collect();
        CommitWatch { files, links }
    }

    async fn look(&mut self) -> FilesStanding {
        let mut versions = Vec::new();
        for link in &mut self.links {
            versions.push(match link {
                Some(link) => link.data_version().await.ok(),
                None => None,
            });
        }
        FilesStanding { files: self.files.iter().map(|path| stamp(path)).collect(), versions }
    }
}

/// Detects writes to a database's files since the watch began.
pub struct FilesWatch {
    watch: CommitWatch,
    began: FilesStanding,
}

impl FilesWatch {
    /// Whether the files are unchanged.
    pub async fn is_unchanged(&mut self) -> bool {
        self.watch.look().await == self.began
    }
}

impl ProofReader<'_> {
    /// The files of this database; `None` for a server, whose files we may not read.
    pub fn files(self) -> Option<Vec<PathBuf>> {
        match self.store.sessions.opener().databases() {
            databases if databases.is_empty() => None,
            databases => Some(databases.iter().flat_map(|main| sqlite_files(main)).collect()),
        }
    }

    /// Searches the bytes of the database's files, in a child process; repeats if others wrote meanwhile.
    ///
    /// # Errors
    /// [`UncheckedBytes`]: nothing is known about the bytes.
    pub async fn scan_bytes(self, sought: &SoughtBytes) -> Result<ByteScan, UncheckedBytes> {
        let Opener::Sqlite(database) = self.store.sessions.opener() else { return Err(UncheckedBytes::Server) };
        let files = self.files().ok_or(UncheckedBytes::Server)?;
        let mut watch = CommitWatch::over(database, &files).await;
        let mut before = watch.look().await;
        for _ in 0..SCANS {
            let scan = self.store.raw_files.search(&files, sought).await?;
            let after = watch.look().await;
            if before == after {
                return Ok(scan);
            }
            before = after;
        }
        Err(UncheckedBytes::Moving(SCANS))
    }

    /// Begins to watch for writes to the database's files; `None` for a server.
    pub async fn watch_files(self) -> Option<FilesWatch> {
        let Opener::Sqlite(database) = self.store.sessions.opener() else { return None };
        let mut watch = CommitWatch::over(database, &self.files()?).await;
        let began = watch.look().await;
        Some(FilesWatch { watch, began })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(bytes: &[u8], sought: &SoughtBytes) -> ReaderScan {
        let search = ByteSearch::new(sought.needles(), sought.known.clone());
        search.run(bytes, &mut |_| false).unwrap()
    }

    #[test]
    fn every_encoding_is_found_in_a_file_that_holds_it() {
        let vector = [0.25_f32, -0.5, 0.125, 0.75, 0.3, 0.6, 0.7, 0.9].iter().flat_map(|x| x.to_le_bytes()).collect();
        let sought = SoughtBytes { vectors: vec![vector], ..SoughtBytes::of(&["Zoë.Núñez@Example.org".to_owned()]) };
        for needle in sought.needles().iter() {
            let mut file = vec![0xAA; 100];
            file.extend(needle.bytes);
            file.extend([0xAA; 9]);
            let found = scan(&file, &sought).found;
            let it = found.iter().find(|f| (f.handle, f.form) == (needle.handle, needle.form));
            assert_eq!(it.map(|f| f.count), Some(1), "{:?} in {found:?}", needle.form);
        }
        assert!(scan(&[0xAA; 4096], &sought).found.is_empty());
    }

    #[test]
    fn a_place_that_a_value_which_stays_accounts_for_is_told_from_others() {
        let mut sought = SoughtBytes::of(&["bob.smith".to_owned()]);
        let mut contexts = NeedleContexts::default();
        let search = ByteSearch::new(sought.needles(), Vec::new());
        contexts.add(search.contexts(b"ask bob.smithers about it"));
        contexts.add(search.contexts(b"bob.smith-2"));
        sought.known = contexts.all();
        let count = |bytes: &[u8]| {
            let of = |found: &NeedleCount| (found.form == NeedleForm::Utf8).then_some(found.count);
            scan(bytes, &sought).found.iter().find_map(of).unwrap_or_default()
        };
        let stays = b"\x01\x17ask bob.smithers about itbob.smith-2\x00";
        assert_eq!(count(stays), 0);
        let known = |bytes: &[u8]| scan(bytes, &sought).known;
        assert_eq!((known(stays), known(b"\x00bob.smith\x00")), (4, 0), "each place of the handle and of its tail");
        // Records are adjacent: the next one follows a value directly.
        for gone in [&b"\x00bob.smith\x00"[..], b"bob.smithhello", b"xbob.smith-3"] {
            assert_eq!(count(gone), 1, "{}", String::from_utf8_lossy(gone));
        }
        for at in [PIECE - 12, PIECE - 3, PIECE, PIECE + 5] {
            let mut file = vec![b'.'; 2 * PIECE];
            file[at..at + stays.len()].copy_from_slice(stays);
            file[64..73].copy_from_slice(b"bob.smith");
            assert_eq!(count(&file), 1, "at {at}");
        }
    }

    #[test]
    fn a_needle_across_two_pieces_is_found_once() {
        let sought = SoughtBytes::of(&["auth0|7f3a9b2c".to_owned()]);
        for at in [PIECE - 20, PIECE - 14, PIECE - 7, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 3] {
            let mut file = vec![b'.'; 3 * PIECE];
            file[at..at + 14].copy_from_slice(b"auth0|7f3a9b2c");
            let count = |form| scan(&file, &sought).found.iter().find(|f| f.form == form).map(|f| f.count);
            assert_eq!((count(NeedleForm::Utf8), count(NeedleForm::Tail)), (Some(1), Some(1)), "at {at}");
        }
    }
}
