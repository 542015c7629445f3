//! URLs of database files, as agents' own programs keep them: SQLAlchemy, sqlx, and SQLite each have a spelling of their
//! own. A URL that fits several files names none of them.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::location::{self, FILE_DRIVERS, sqlite_driver};

/// Reason why a URL does not name one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlFault {
    /// None of the files that it may mean exists: their paths.
    Missing(String),
    /// It cannot be told what it means; words for people, without a secret.
    Unclear(String),
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (UrlFault::Missing(words) | UrlFault::Unclear(words)) = self;
        f.write_str(words)
    }
}

/// Finds the file that a path or a URL names. A relative path begins in `folder`; an empty one is the current folder. The
/// file need not exist if nothing else can be meant.
///
/// # Errors
/// Several files can be meant, and either none of them exists or more than one; or a part is not understood.
pub fn file(text: &str, folder: &Path) -> Result<PathBuf, UrlFault> {
    let Some(readings) = readings(text, folder)? else { return Ok(folder.join(text)) };
    let meant: Vec<PathBuf> = readings.iter().map(|path| folder.join(plain(path))).collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in readings.iter().flat_map(|path| spellings(path)).map(|path| folder.join(path)) {
        let is_new = || found.iter().all(|other| other.canonicalize().ok() != path.canonicalize().ok());
        if path.exists() && is_new() {
            found.push(path);
        }
    }
    match (&found[..], &meant[..]) {
        ([path], _) | ([], [path]) => Ok(path.clone()),
        ([], _) => Err(UrlFault::Missing(listed(&meant, " or "))),
        _ => Err(UrlFault::Unclear(format!(
            "the URL fits {}: write the path of the one that you mean, without a scheme",
            listed(&found, " and ")
        ))),
    }
}

/// The paths that a URL may mean, with the options that follow them; none for a text that is a path itself.
fn readings(text: &str, folder: &Path) -> Result<Option<Vec<String>>, UrlFault> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(None) };
    let paths = match (scheme, sqlite_driver(scheme)) {
        ("file", _) => vec![text.to_owned(), of_file_url(rest)?],
        // SQLAlchemy begins a relative path after three slashes, and most others an absolute one with the third.
        ("sqlite", _) => match rest.strip_prefix("///") {
            Some(path) if !path.starts_with('/') => vec![format!("/{path}"), of_sqlalchemy(path)?],
            _ => vec![rest.strip_prefix("//").unwrap_or(rest).to_owned()],
        },
        (_, Some(driver)) if FILE_DRIVERS.contains(&driver) => match rest.strip_prefix("///") {
            Some(path) => vec![of_sqlalchemy(path)?],
            None if rest == "//" => return Err(in_memory()),
            None => {
                return Err(UrlFault::Unclear(format!(
                    "`{scheme}:` is followed by `///` and the path of a file, or by `////` and an absolute one"
                )));
            }
        },
        _ if folder.join(text).exists() => return Ok(None),
        _ => return location::scheme_of(text).map_or(Ok(None), |scheme| Err(not_understood(scheme))),
    };
    // A name such as `file:a.db` is a path too, as long as such a file exists.
    let paths: Vec<String> = match paths.as_slice() {
        [path, meant] if scheme == "file" && !folder.join(path).exists() => vec![meant.clone()],
        _ => paths,
    };
    if paths.iter().all(|path| is_in_memory(path)) { Err(in_memory()) } else { Ok(Some(paths)) }
}

/// A path as SQLAlchemy has it, which may be a URL of SQLite in turn.
fn of_sqlalchemy(path: &str) -> Result<String, UrlFault> {
    path.strip_prefix("file:").map_or_else(|| Ok(path.to_owned()), of_file_url)
}

/// The path after `file:`, as SQLite reads it.
fn of_file_url(rest: &str) -> Result<String, UrlFault> {
    let Some(after) = rest.strip_prefix("//") else { return Ok(rest.to_owned()) };
    let path = after.strip_prefix("localhost").unwrap_or(after);
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    Err(UrlFault::Unclear(
        "`file://` is followed by the name of a host: write file:PATH, or file:///PATH for an absolute path".to_owned(),
    ))
}

/// A path as it may be meant: as it is, without the options after `?`, and with its escapes resolved.
fn spellings(path: &str) -> Vec<String> {
    let bare = path.split_once('?').map_or(path, |(bare, _)| bare);
    vec![path.to_owned(), bare.to_owned(), decoded(bare)]
}

/// A path without options and escapes.
fn plain(path: &str) -> String {
    spellings(path).pop().unwrap_or_default()
}

fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8().map_or_else(|_| path.to_owned(), std::borrow::Cow::into_owned)
}

fn is_in_memory(path: &str) -> bool {
    let options = path.split_once('?').map_or("", |(_, options)| options);
    ["", ":memory:", "/:memory:"].contains(&plain(path).as_str()) || options.split('&').any(|o| o == "mode=memory")
}

fn in_memory() -> UrlFault {
    UrlFault::Unclear("it names a database in the memory of the program that makes it, not a file".to_owned())
}

fn not_understood(scheme: &str) -> UrlFault {
    let why = match scheme.split_once('+') {
        Some(("sqlite" | "postgres" | "postgresql", driver)) => format!("`+{driver}` is not understood: drop it"),
        _ => format!("`{scheme}://` is not understood"),
    };
    UrlFault::Unclear(format!("{why}; write sqlite:PATH for an SQLite file, or postgres://HOST/NAME for a server"))
}

fn listed(paths: &[PathBuf], between: &str) -> String {
    let shown: Vec<String> = paths.iter().map(|path| location::shown(&path.display().to_string())).collect();
    shown.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_one_file_that_it_can_mean() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().display().to_string();
        for name in ["rel.db", "a b.db", "odd?.db"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let absolute = |text: &str| text.replace("DIR", &there);
        for (text, expected) in [
            ("rel.db", "rel.db"),
            ("none.db?x=1", "none.db?x=1"),
            ("sqlite:rel.db", "rel.db"),
            ("sqlite:none.db", "none.db"),
            ("sqlite:none.db?mode=rwc", "none.db"),
            ("sqlite://rel.db?mode=rwc", "rel.db"),
            ("sqlite:///rel.db", "rel.db"),
            ("sqlite:///./rel.db", "./rel.db"),
            ("sqlite:DIR/rel.db", "DIR/rel.db"),
            ("sqlite://DIR/rel.db", "DIR/rel.db"),
            ("sqlite:///DIR/rel.db", "/DIR/rel.db"),
            ("sqlite:a%20b.db?mode=ro", "a b.db"),
            ("sqlite:odd?.db", "odd?.db"),
            ("sqlite+aiosqlite:///rel.db", "rel.db"),
            ("sqlite+aiosqlite:///none.db", "none.db"),
            ("sqlite+pysqlite:///DIR/rel.db?timeout=5", "DIR/rel.db"),
            ("sqlite+pysqlite:///file:rel.db?mode=ro&uri=true", "rel.db"),
            ("file:rel.db?mode=ro", "rel.db"),
            ("file://DIR/rel.db", "DIR/rel.db"),
            ("file://localhostDIR/rel.db", "DIR/rel.db"),
            ("sqlite:///none.db", "! Missing /none.db or none.db"),
            ("sqlite+aiosqlite://rel.db", "! `sqlite+aiosqlite:` is followed by `///`"),
            ("sqlite+libsql:///rel.db", "! `+libsql` is not understood: drop it; write sqlite:PATH"),
            ("mysql+pymysql://ada:S3cret@h/db", "! `mysql+pymysql://` is not understood; write"),
            ("postgresql+ssh://ada:S3cret@h/db", "! `+ssh` is not understood: drop it; write"),
            ("file://host/rel.db", "! `file://` is followed by the name of a host"),
            ("sqlite::memory:", "! it names a database in the memory"),
            ("sqlite+aiosqlite://", "! it names a database in the memory"),
            ("sqlite:///:memory:", "! it names a database in the memory"),
            ("file:x?mode=memory&cache=shared", "! it names a database in the memory"),
        ] {
            // The third slash of SQLAlchemy is not of the path.
            let text = if text.contains("pysqlite:///DIR") { text.replace("DIR", &there) } else { absolute(text) };
            let shown = match file(&text, folder.path()) {
                Ok(path) => path.display().to_string(),
                Err(UrlFault::Missing(paths)) => format!("! Missing {}", paths.replace(&format!("{there}/"), "")),
                Err(fault) => format!("! {fault}"),
            };
            let expected = absolute(expected);
            if expected.starts_with('!') {
                assert!(shown.starts_with(&expected), "{text}: {shown}");
                assert!(!shown.contains("S3cret"), "{text}: {shown}");
            } else {
                assert_eq!(PathBuf::from(shown), folder.path().join(expected), "{text}");
            }
        }
    }

    #[test]
    fn a_url_that_fits_two_files_names_neither() {
        let (here, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = other.path().join("a.db");
        std::fs::write(&path, "").unwrap();
        let url = format!("sqlite://{}", path.display());
        assert_eq!(file(&url, here.path()), Ok(path.clone()));
        let relative = here.path().join(path.strip_prefix("/").unwrap());
        std::fs::create_dir_all(relative.parent().unwrap()).unwrap();
        std::fs::write(&relative, "").unwrap();
        let said = file(&url, here.path()).unwrap_err().to_string();
        assert!(said.contains(&format!("{} and {}", path.display(), relative.display())), "{said}");
    }
}
