//! The child's side: a process without any connection to a database, which may open and close files freely.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{ChildReply, ChildRequest, REQUEST};
use crate::store::proof::bytes::{ByteScan, ByteSearch, FileScan, ReaderScan};
use crate::store::proof::needles::SoughtBytes;
use crate::store::proof::pages::Pages;

/// Answers the single request on standard input. Exits at once when standard input ends: then the parent is gone, or no
/// longer waits.
pub fn serve() -> ExitCode {
    let mut line = Vec::new();
    let read = io::stdin().lock().take(REQUEST).read_until(b'\n', &mut line);
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(1);
    });
    let request = read.and_then(|_| serde_json::from_slice(&line).map_err(io::Error::other));
    let reply = match request {
        Ok(request) => answer(request).unwrap_or_else(|error| ChildReply::Failed(error.to_string())),
        Err(error) => ChildReply::Failed(format!("the request cannot be read: {error}")),
    };
    if say(&reply).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(reply: &ChildReply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn answer(request: ChildRequest<'_>) -> io::Result<ChildReply> {
    match request {
        ChildRequest::Search { files, sought } => search(&files, sought.into_owned()).map(ChildReply::Found),
        ChildRequest::Head { file, bytes } => {
            let mut head = Vec::new();
            let read = File::open(&file).and_then(|file| file.take(bytes).read_to_end(&mut head));
            read.map(|_| ChildReply::Head(head)).map_err(at(&file))
        }
        ChildRequest::Copy { files } => {
            for (from, to) in &files {
                copy(from, to)?;
            }
            Ok(ChildReply::Copied)
        }
    }
}

/// Searches files; a missing one contains nothing.
fn search(files: &[PathBuf], sought: SoughtBytes) -> io::Result<ByteScan> {
    let search = ByteSearch::new(sought.needles(), sought.known);
    let mut scan = ByteScan::default();
    for path in files {
        let ReaderScan { found, known } = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReaderScan::default(),
            Err(error) => return Err(at(path)(error)),
            Ok(file) => {
                let mut pages = File::open(path).and_then(Pages::of).map_err(at(path))?;
                let mut is_chance = |place: &_| pages.as_mut().is_some_and(|pages| pages.is_across(place));
                search.run(file, &mut is_chance).map_err(at(path))?
            }
        };
        scan.files.push(FileScan { path: path.display().to_string(), found, known });
    }
    Ok(scan)
}

/// Copies a file if it exists, readable by its owner only.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from_file = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(at(from))?,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut to_file = options.open(to).map_err(at(to))?;
    io::copy(&mut from_file, &mut to_file).map(drop).map_err(at(to))
}

fn at(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::proof::bytes::sqlite_files;
    use crate::store::proof::needles::NeedleForm;

    #[test]
    fn a_file_that_is_not_there_holds_nothing_and_one_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let sought = SoughtBytes::of(&["auth0|7f3a9b2c".to_owned()]);
        let main = folder.path().join("a.db");
        std::fs::write(&main, b"xx auth0|7f3a9b2c yy AUTH0|7F3A9B2C").unwrap();
        let scan = search(&sqlite_files(&main), sought.clone()).unwrap();
        assert_eq!(scan.files.iter().map(|file| file.hits() > 0).collect::<Vec<_>>(), [true, false, false, false]);
        assert_eq!(scan.by_needle()[&(0, NeedleForm::Utf8)], 1);
        let error = search(&[folder.path().to_owned()], sought).unwrap_err();
        assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    }

    #[test]
    fn a_copy_never_takes_the_place_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        copy(&from, &to).unwrap();
        assert!(!to.exists(), "there was nothing to copy");
        std::fs::write(&from, b"rows").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"rows");
        assert!(copy(&from, &to).is_err());
    }
}
