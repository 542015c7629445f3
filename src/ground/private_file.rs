//! The only writer of files with stored or secret values: only their owner can read them, they are written completely
//! or not at all, and never through a link.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::open_files::is_open_here;
use super::unfinished::UnfinishedPath;

/// Age from which an unfinished file counts as abandoned if locks are not supported.
const MAKING: Duration = Duration::from_hours(1);

/// Longest wait for a lock: others hold it while they write a small file.
const PATIENCE: Duration = Duration::from_secs(3);

/// No link is followed, and opening a pipe without a reader does not block.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Beginning of the name of a file in the making.
const PART: &str = ".mnemoscope-";

/// Read and write for the owner only.
const OWNER_ONLY: u32 = 0o600;

/// Everybody reads, and the owner writes.
const READABLE: u32 = 0o644;

/// A private file being written, beside its final place. It is deleted if dropped unfinished.
#[derive(Debug)]
pub struct PrivateFile {
    part: UnfinishedPath,
    whole: PathBuf,
    file: BufWriter<File>,
}

impl PrivateFile {
    /// Begins a file. Its folder must be there.
    ///
    /// # Errors
    /// The folder cannot be written, or the path does not end in a name.
    pub fn begin(whole: &Path) -> io::Result<Self> {
        if whole.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not end in a file name"));
        }
        let part = whole.with_file_name(format!("{PART}{:016x}.part", rand::random::<u64>()));
        let part = UnfinishedPath::new(&part);
        let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(part.path())?;
        // Released when the process ends, so that nobody takes it for abandoned before. Not every file system has
        // locks.
        let _ = file.try_lock();
        Ok(PrivateFile { part, whole: whole.to_path_buf(), file: BufWriter::new(file) })
    }

    /// Gives it its final name, in place of an existing regular file. It is on the disk when this returns.
    ///
    /// # Errors
    /// There is a link, a folder or a device; or the write fails.
    pub fn replace(mut self) -> io::Result<()> {
        self.sync()?;
        check_place(&self.whole)?;
        fs::rename(self.part.path(), &self.whole)?;
        sync_folder(&self.whole);
        Ok(())
    }

    /// Gives it its final name if that is free. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], also for a link that leads nowhere; or the disk refuses.
    pub fn create(mut self) -> io::Result<()> {
        self.sync()?;
        check_name(&self.whole)?;
        // A hard link, unlike a rename, never replaces a file that was created meanwhile.
        match fs::hard_link(self.part.path(), &self.whole) {
            // Not every file system has links.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && self.whole.symlink_metadata().is_err() => {
                fs::rename(self.part.path(), &self.whole)?;
            }
            linked => linked?,
        }
        sync_folder(&self.whole);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // Already gone if it was renamed.
        let _ = fs::remove_file(self.part.path());
    }
}

/// Checks that a file may be written there: the name is free, or a regular file that is not a database.
fn check_place(path: &Path) -> io::Result<()> {
    let refused = |words: &str| Err(io::Error::other(words));
    check_name(path)?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(there) if !there.is_file() => refused("it is a link, a folder or a device, not a plain file"),
        Ok(there) if is_open_here(&there) || begins_as_database(path) => refused("it is a database: name another file"),
        Ok(_) => Ok(()),
    }
}

/// Refuses names of files that SQLite uses beside an existing database.
fn check_name(path: &Path) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mains = ["-wal", "-shm", "-journal"].into_iter().filter_map(|ending| name.strip_suffix(ending));
    let is_database = |main: PathBuf| {
        fs::metadata(&main).is_ok_and(|about| about.is_file() && (is_open_here(&about) || begins_as_database(&main)))
    };
    if mains.map(|main| path.with_file_name(main)).any(is_database) {
        return Err(io::Error::other("SQLite would treat it as part of the database next to it: name another file"));
    }
    Ok(())
}

fn begins_as_database(path: &Path) -> bool {
    let mut head = [0; 15];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && &head == b"SQLite format 3"
}

/// Writes a whole file, in place of an existing regular file.
///
/// # Errors
/// As [`PrivateFile::replace`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = PrivateFile::begin(path)?;
    file.write_all(bytes)?;
    file.replace()
}

/// The same for a file that everybody may read once it has its name.
///
/// # Errors
/// As [`PrivateFile::replace`].
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = PrivateFile::begin(path)?;
    file.write_all(bytes)?;
    file.file.get_ref().set_permissions(Permissions::from_mode(READABLE))?;
    file.replace()
}

/// Checks that a file could be written there now. Unfinished files of killed runs beside it are removed.
///
/// # Errors
/// As [`PrivateFile::begin`] and [`PrivateFile::replace`].
pub fn check_room(path: &Path) -> io::Result<()> {
    check_place(path)?;
    let made = PrivateFile::begin(path)?;
    let names = fs::read_dir(folder_of(&made.whole)).into_iter().flatten().filter_map(Result::ok);
    let ours = names.filter(|name| name.file_name().to_string_lossy().starts_with(PART));
    ours.map(|name| name.path()).filter(|part| is_abandoned(part)).for_each(|part| drop(fs::remove_file(part)));
    Ok(())
}

/// Writes a whole new file.
///
/// # Errors
/// As [`PrivateFile::create`].
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = PrivateFile::begin(path)?;
    file.write_all(bytes)?;
    file.create()
}

/// Appends a line to a file, which is created if missing and made private. It is on the disk when this returns. An
/// incomplete last line of an earlier run is ended first.
///
/// # Errors
/// There is a link, a folder or a device; or the write fails.
pub fn append(path: &Path, line: &str) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let mut file = appending(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    let parting = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{parting}{line}\n").as_bytes())?;
    file.sync_all()
}

/// Opens a file for appending; it is created if missing, and made private.
///
/// # Errors
/// There is a link, a folder, a device or a database; or the file cannot be opened.
pub fn appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(OWNER_ONLY).custom_flags(PLAIN.bits().cast_signed());
    check_place(path)?;
    let file = options.open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != OWNER_ONLY {
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    }
    Ok(file)
}

/// Opens an empty file that serves as a lock; it is created if missing.
///
/// # Errors
/// There is a link or a folder; or the file cannot be opened.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(OWNER_ONLY).custom_flags(PLAIN.bits().cast_signed());
    options.open(path)
}

/// Opens such a file and locks it, waiting for a limited time for another process.
///
/// # Errors
/// As [`lock_file`]; or a message that the lock is still held.
pub fn lock(path: &Path) -> io::Result<File> {
    let (file, begun) = (lock_file(path)?, Instant::now());
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => {
                let words = format!(
                    "another process holds the lock of {} for more than {} s; end it if it is stopped or hangs, and try again",
                    path.display(),
                    PATIENCE.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
        }
    }
}

/// Whether it is an unfinished file of a killed run.
pub fn is_abandoned(path: &Path) -> bool {
    let age = || fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    let is_free = || File::open(path).is_ok_and(|file| file.try_lock().is_ok());
    path.extension().is_some_and(|end| end == "part") && (is_free() || age().is_some_and(|age| age > MAKING))
}

/// A private folder for temporary files. It is deleted with its contents on drop; after a killed process, a later one
/// removes it.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: UnfinishedPath,
    /// Released when the process ends.
    lock: Option<File>,
}

/// Ending of the name of such a folder.
const FOLDER: &str = ".copy";

/// File in the folder that is locked while it is in use.
const IN_USE: &str = "in-use";

/// Age from which that file must be locked if the folder is in use.
const LOCKED: Duration = Duration::from_mins(1);

impl PrivateFolder {
    /// Creates a folder with an unguessable name, and removes those of this user left by killed processes.
    ///
    /// # Errors
    /// The folder of temporary files cannot be written; the error names the path.
    pub fn temporary() -> io::Result<Self> {
        let all = std::env::temp_dir();
        let folder = UnfinishedPath::new(&all.join(format!("mnemoscope-{:016x}{FOLDER}", rand::random::<u64>())));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.path().display()));
        DirBuilder::new().mode(0o700).create(folder.path()).map_err(named)?;
        let mut made = PrivateFolder { folder, lock: None };
        let lock = lock_file(&made.path().join(IN_USE))?;
        // Not every file system has locks.
        let _ = lock.try_lock();
        made.lock = Some(lock);
        made.remove_abandoned(&all);
        Ok(made)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn remove_abandoned(&self, all: &Path) {
        let Ok(ours) = fs::symlink_metadata(self.path()) else { return };
        for entry in fs::read_dir(all).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = |about: Metadata| about.is_dir() && about.uid() == ours.uid();
            if name.starts_with("mnemoscope-")
                && name.ends_with(FOLDER)
                && fs::symlink_metadata(entry.path()).is_ok_and(is_ours)
                && is_left(&entry.path().join(IN_USE))
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path());
    }
}

/// Whether the lock file of a running process would be locked, and this one is not.
fn is_left(lock: &Path) -> bool {
    let age = fs::symlink_metadata(lock).ok().and_then(|about| about.modified().ok()?.elapsed().ok());
    age.is_some_and(|age| age > LOCKED) && File::open(lock).is_ok_and(|file| file.try_lock().is_ok())
}

/// Creates a private folder, with its parents; an existing one is unchanged.
///
/// # Errors
/// It cannot be created.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Syncs the folder, so that a new name is on the disk. Not every file system supports that, and the file itself is
/// safe.
fn sync_folder(path: &Path) {
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_private_however_open_the_one_before_it_was() {
        let folder = tempfile::tempdir().unwrap();
        for write in [|path: &Path| replace(path, b"new\n"), |path: &Path| append(path, "new")] {
            let path = folder.path().join("file");
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
            write(&path).unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new\n", 0o600));
        }
        assert_eq!(names(folder.path()), ["file"], "nothing is left next to it");
    }

    #[test]
    fn no_link_is_followed_and_none_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "theirs").unwrap();
        symlink(&target, &link).unwrap();
        for write in
            [|path: &Path| replace(path, b"x"), |path: &Path| create(path, b"x"), |path: &Path| append(path, "x")]
        {
            write(&link).unwrap_err();
            write(folder.path()).unwrap_err();
        }
        symlink(folder.path().join("nowhere"), folder.path().join("dangling")).unwrap();
        create(&folder.path().join("dangling"), b"x").unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["dangling", "link", "target"]);
    }

    #[test]
    fn other_names_of_a_file_keep_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "theirs").unwrap();
        fs::hard_link(&path, &other).unwrap();
        replace(&path, b"ours").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
        assert_eq!(create(&path, b"again").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
    }

    #[test]
    fn a_line_that_was_cut_short_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        append(&path, "one").unwrap();
        fs::write(&path, "one\ntw").unwrap();
        append(&path, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntw\nthree\n");
    }

    #[test]
    fn a_private_folder_goes_when_its_process_does() {
        let made = PrivateFolder::temporary().unwrap();
        let path = made.path().to_owned();
        assert_eq!(mode(&path), 0o700);
        let lock = path.join(IN_USE);
        File::options().write(true).open(&lock).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(!is_left(&lock), "it is in use");
        let mut made = made;
        made.lock = None;
        assert!(is_left(&lock));
        drop(PrivateFolder::temporary().unwrap());
        assert!(!path.exists());
    }
}
