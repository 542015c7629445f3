//! Unnamed files for values that do not fit in memory. They vanish when closed, or when their process is killed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Opens an empty file that only this process can reach, in the same folder as SQLite's temporary files:
/// `SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp` or `/tmp`, the first one that is a folder.
///
/// # Errors
/// The folder cannot be written; the error names it.
pub fn scratch_file() -> io::Result<File> {
    let folder = folder();
    let path = folder.join(format!("mnemoscope-{:016x}.scratch", rand::random::<u64>()));
    let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = opened.map_err(|error| io::Error::new(error.kind(), no_room(&error)))?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// A message that names the folder in which scratch files cannot be written.
pub fn no_room(error: &io::Error) -> String {
    format!("cannot write a scratch file in {}: {error}; set TMPDIR to another folder", folder().display())
}

fn folder() -> PathBuf {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
    named.chain(usual).find(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;

    #[test]
    fn a_scratch_file_has_no_name_and_keeps_what_is_written() {
        let file = scratch_file().unwrap();
        file.write_all_at(b"values", 0).unwrap();
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 0).unwrap();
        let about = file.metadata().unwrap();
        assert_eq!((&read, about.nlink(), about.mode() & 0o777), (b"values", 0, 0o600));
    }
}
