//! ZIP archives: names and contents of their files, up to a limit.

use std::borrow::Cow;
use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::packed::TOO_LARGE;

/// A readable archive.
pub(super) struct Archive<'a>(ZipArchive<Cursor<&'a [u8]>>);

/// One file of it.
#[derive(Debug, Default)]
pub(super) struct ArchivedFile {
    pub name: String,
    /// Comment on the file in the archive.
    pub comment: String,
    /// Content of the file, as far as it was readable.
    pub inner: Vec<u8>,
    /// Declared size in bytes.
    pub size: usize,
    /// Reason why the file was not read to the end.
    pub unread: Option<&'static str>,
}

impl<'a> Archive<'a> {
    /// Opens an archive; `None` if its directory cannot be read.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        ZipArchive::new(Cursor::new(bytes)).ok().map(Archive)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn comment(&self) -> String {
        String::from_utf8_lossy(self.0.comment()).into_owned()
    }

    /// Reads a file by number, up to a limit in bytes.
    pub fn file(&mut self, number: usize, limit: usize) -> ArchivedFile {
        let name = self.0.name_for_index(number).and_then(Result::ok).map(Cow::into_owned);
        let mut out = ArchivedFile { name: name.unwrap_or_default(), ..ArchivedFile::default() };
        match self.0.by_index(number) {
            Ok(file) => {
                out.size = file.size() as usize;
                file.comment().clone_into(&mut out.comment);
                let read = file.take(limit as u64 + 1).read_to_end(&mut out.inner);
                out.unread = match read {
                    Ok(_) if out.inner.len() > limit => Some(TOO_LARGE),
                    Ok(_) => None,
                    Err(_) => Some("a file in a damaged zip archive"),
                };
            }
            Err(_) => {
                out.unread =
                    Some("a file in a zip archive that is encrypted, damaged, or compressed by another method");
            }
        }
        out
    }
}
