//! Passwords in a password file in libpq's format: `host:port:database:user:password`, one per line.

use std::path::Path;

use crate::ground::input_file::{self, SETTINGS_BYTES};

/// Login to look up a password for.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Name of the host, its address, or the directory of its socket.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// Database.
    pub database: &'a str,
    /// Role.
    pub user: &'a str,
}

/// Returns the reason why the password file is ignored: its permissions, or an error reading it; `None` if it is used.
pub fn why_ignored(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let about = std::fs::metadata(path).ok()?;
    let shown = path.display();
    if !about.is_file() {
        return Some(format!("the password file {shown} was ignored: it is not a plain file"));
    }
    let mode = about.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!(
            "the password file {shown} was ignored: other users have access to it (mode {mode:o}); run `chmod 600 \
         {shown}`"
        )
    })
}

/// The password of a login; `None` if the file has no entry, or does not exist.
pub fn password(path: &Path, login: Login<'_>) -> Option<String> {
    let text = input_file::read_text(path, SETTINGS_BYTES).ok()?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| of_line(line, login))
}

fn of_line(line: &str, login: Login<'_>) -> Option<String> {
    let port = login.port.to_string();
    let mut rest = line;
    for wanted in [login.host, &port, login.database, login.user] {
        let (field, after) = field(rest);
        rest = after?;
        if field != "*" && unescaped(field) != wanted {
            return None;
        }
    }
    // A password may contain a colon.
    Some(unescaped(rest))
}

/// Splits a text at the next colon not escaped by `\`.
fn field(text: &str) -> (&str, Option<&str>) {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            ':' if !escaped => return (&text[..at], Some(&text[at + 1..])),
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    (text, None)
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.extend(letters.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_for_whom_it_names() {
        let login = Login { host: "db.example", port: 5432, database: "memory", user: "ada" };
        for (line, expected) in [
            ("db.example:5432:memory:ada:S3cret", Some("S3cret")),
            ("*:*:*:*:a:b\\:c\\\\d", Some("a:b:c\\d")),
            ("db.example:5433:memory:ada:S3cret", None),
            ("*:*:*:bob:S3cret", None),
            ("db.example:5432:memory", None),
            ("", None),
        ] {
            assert_eq!(of_line(line, login).as_deref(), expected, "{line}");
        }
        let socket = Login { host: "/run/a:b", ..login };
        assert_eq!(of_line("/run/a\\:b:*:*:*:x", socket).as_deref(), Some("x"));
    }
}
