//! The only way to read files named by users, with limits on size and time. Regular files, pipes and standard input are
//! read; folders, devices and sockets are refused.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, IsTerminal as _, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::open_files::is_open_here;

/// Most bytes of a settings, layout, theme or fleet file.
pub const SETTINGS_BYTES: u64 = 1 << 20;

/// Limits on waiting for input that is not a regular file.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Without a byte.
    quiet: Duration,
    /// For the whole input.
    whole: Duration,
}

/// A named pipe: its writer should exist already.
const PIPE: Patience = Patience { quiet: Duration::from_secs(10), whole: Duration::from_mins(1) };

/// Standard input that is not a terminal: its source may take some time.
const STANDARD: Patience = Patience { quiet: Duration::from_secs(30), whole: Duration::from_mins(10) };

/// Reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file does not exist.
    #[error("there is no such file")]
    NotFound,
    /// The path leads to something other than a file.
    #[error("it is {0}, not a file: name a plain file or a pipe, or `-` for standard input where it is accepted")]
    NotAFile(&'static str),
    /// The input is longer than the limit, in bytes.
    #[error("it contains more than {}, the maximum", in_words(*.0))]
    TooLong(u64),
    /// The input stays silent for this time.
    #[error("no data arrived for {} seconds: is anything writing to it?", .0.as_secs())]
    Quiet(Duration),
    /// The input does not end within this time.
    #[error("it did not end within {} seconds", .0.as_secs())]
    Endless(Duration),
    /// The input is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The system's own reason.
    #[error("{0}")]
    System(io::Error),
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return InputError::NotFound;
        }
        error.downcast::<InputError>().unwrap_or_else(InputError::System)
    }
}

/// Bytes in the largest unit that fits.
fn in_words(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 => format!("{} kB", b >> 10),
        b => format!("{b} bytes"),
    }
}

/// A file, or standard input, with a limit on its size.
#[derive(Debug)]
pub struct InputFile {
    file: File,
    most: u64,
    left: u64,
    patience: Option<Patience>,
    since: Instant,
}

impl InputFile {
    /// Opens a file, or standard input for `-`, with a limit of `most` bytes.
    ///
    /// # Errors
    /// [`InputError::NotFound`], [`InputError::NotAFile`], or the system's.
    pub fn open(path: &Path, most: u64) -> Result<Self, InputError> {
        if path == Path::new("-") {
            let patience = (!io::stdin().is_terminal()).then_some(STANDARD);
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            return Ok(Self::of(file, most, patience));
        }
        if fs::metadata(path).is_ok_and(|about| about.is_file() && is_open_here(&about)) {
            return Err(InputError::NotAFile("the database that is open"));
        }
        // Non-blocking: opening a pipe without a writer would wait forever.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let kind = file.metadata()?.file_type();
        match other_kind(kind) {
            Some(words) => Err(InputError::NotAFile(words)),
            None => Ok(Self::of(file, most, kind.is_fifo().then_some(PIPE))),
        }
    }

    fn of(file: File, most: u64, patience: Option<Patience>) -> Self {
        InputFile { file, most, left: most, patience, since: Instant::now() }
    }

    /// Waits for data or the end.
    fn wait(&self, patience: Patience) -> Result<(), InputError> {
        let left = patience.whole.checked_sub(self.since.elapsed()).ok_or(InputError::Endless(patience.whole))?;
        let turn = left.min(patience.quiet);
        let until = Instant::now() + turn;
        loop {
            let time = until.saturating_duration_since(Instant::now());
            let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&time)) {
                Ok(0) if turn < patience.quiet => return Err(InputError::Endless(patience.whole)),
                Ok(0) => return Err(InputError::Quiet(patience.quiet)),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(InputError::System(error.into())),
            }
        }
    }
}

impl Read for InputFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(patience) = self.patience {
                self.wait(patience).map_err(io::Error::other)?;
            }
            // One byte beyond the limit distinguishes the end from an excess.
            let room = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX).saturating_add(1));
            match self.file.read(&mut bytes[..room]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(read) if read as u64 > self.left => return Err(io::Error::other(InputError::TooLong(self.most))),
                Ok(read) => {
                    self.left -= read as u64;
                    return Ok(read);
                }
            }
        }
    }
}

/// Names the kind of something that is neither a regular file nor a pipe; `None` for these.
fn other_kind(kind: FileType) -> Option<&'static str> {
    match kind {
        k if k.is_file() || k.is_fifo() => None,
        k if k.is_dir() => Some("a folder"),
        k if k.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// All bytes of a file, or of standard input for `-`, if they are at most `most`.
///
/// # Errors
/// [`InputError`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    InputFile::open(path, most)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Byte order mark that some programs put before UTF-8 text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Removes a byte order mark from the beginning.
pub fn drop_byte_order_mark(bytes: &mut Vec<u8>) {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
}

/// As [`read`], as text without a byte order mark.
///
/// # Errors
/// [`InputError`].
pub fn read_text(path: &Path, most: u64) -> Result<String, InputError> {
    let mut bytes = read(path, most)?;
    drop_byte_order_mark(&mut bytes);
    String::from_utf8(bytes).map_err(|_| InputError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const SOON: Patience = Patience { quiet: Duration::from_millis(50), whole: Duration::from_millis(200) };

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert_eq!(read_text(&path, 3).unwrap_err().to_string(), "it contains more than 3 bytes, the maximum");
        fs::write(&path, "\u{feff}four").unwrap();
        assert_eq!(read_text(&path, 8).unwrap(), "four");
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read_text(&path, 3), Err(InputError::NotText)));
        assert!(matches!(read(&folder.path().join("none"), 3), Err(InputError::NotFound)));
    }

    #[test]
    fn what_is_no_file_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in [(Path::new("/dev/zero"), "a device"), (folder.path(), "a folder")] {
            assert!(read(path, 3).unwrap_err().to_string().contains(kind), "{kind}");
        }
        // The system itself does not open a socket as a file.
        assert!(matches!(read(&socket, 3), Err(InputError::System(_) | InputError::NotAFile(_))));
    }

    #[test]
    fn a_pipe_is_waited_for_but_not_for_ever() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut quiet = InputFile::of(File::from(std::os::fd::OwnedFd::from(reader)), 100, Some(SOON));
        writer.write_all(b"some").unwrap();
        let mut bytes = [0; 100];
        assert_eq!(quiet.read(&mut bytes).unwrap(), 4);
        let error = InputError::from(quiet.read(&mut bytes).unwrap_err());
        assert!(matches!(error, InputError::Quiet(_)), "{error}");
        drop(writer);
        assert_eq!(quiet.read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn a_pipe_that_never_ends_is_given_up() {
        let (reader, writer) = io::pipe().unwrap();
        let mut writer = writer;
        let drip = std::thread::spawn(move || while writer.write_all(b"x").is_ok() {});
        let patience = Patience { quiet: Duration::from_mins(1), ..SOON };
        let mut endless = InputFile::of(File::from(std::os::fd::OwnedFd::from(reader)), u64::MAX, Some(patience));
        let error = InputError::from(io::copy(&mut endless, &mut io::sink()).unwrap_err());
        assert!(matches!(error, InputError::Endless(_)), "{error}");
        drop(endless);
        drip.join().unwrap();
    }
}
