//! Names of databases for display, never with a password, wherever it is in the name. A user without a password may
//! itself be a password: it is shown only after a server has accepted it as a role.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use url::{Position, Url};

use super::server_words;

/// Replacement for an unreadable URL.
const UNREADABLE: &str = "://… (not a valid URL)";

/// Replacement for words that contain a secret and do not form a connection.
const CONNECTION_WORDS: &str = "what was named (connection words; write a postgres:// URL)";

/// Connection options that contain no secret.
const HARMLESS: [&str; 15] = [
    "application_name", "connect_timeout", "dbname", "host", "hostaddr", "options", "passfile", "port", "service",
    "sslcert", "sslmode", "sslrootcert", "statement-cache-capacity", "target_session_attrs", "user",
];

/// Words before `=` that indicate a secret.
const SECRETS: [&str; 6] = ["pass", "pwd", "secret", "token", "sslkey", "api_key"];

/// Drivers of SQLAlchemy that open a plain SQLite file.
pub(super) const FILE_DRIVERS: [&str; 2] = ["aiosqlite", "pysqlite"];

/// Names known to be users: a server has accepted them, or there is a password beside them.
static ROLES: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Records that a server accepted the user in a URL: it is a role, and shown from now on.
pub fn let_in(text: &str) {
    user_alone(text).iter().for_each(|user| note_role(user));
}

fn note_role(user: &str) {
    if is_role(user) && !is_known(user) {
        ROLES.write().unwrap_or_else(PoisonError::into_inner).insert(decoded(user));
    }
}

fn is_known(user: &str) -> bool {
    ROLES.read().unwrap_or_else(PoisonError::into_inner).contains(&decoded(user))
}

/// A name after percent-decoding.
fn decoded(user: &str) -> String {
    percent_encoding::percent_decode_str(user).decode_utf8_lossy().into_owned()
}

/// Returns the user of a server's URL without a password.
fn user_alone(text: &str) -> Option<String> {
    let place = server_words::hosts_of(text)?;
    let login = text[..place.start].split_once("://")?.1.strip_suffix('@')?;
    let login = login.strip_suffix(':').unwrap_or(login);
    (!login.contains(':') && !login.is_empty()).then(|| login.to_owned())
}

/// Hides the user of a URL, which may be a password, in a server's message about a refused login, such as `role "ada"
/// does not exist`.
pub fn without_user(words: &str, text: &str) -> String {
    let Some(user) = user_alone(text).filter(|user| !is_known(user)) else { return words.to_owned() };
    let meant = decoded(&user);
    [user, meant].iter().fold(words.to_owned(), |words, user| words.replace(&format!("\"{user}\""), "\"…\""))
}

/// A path or a URL for display. For a server's URL, only the user, the host and harmless options are kept; a user
/// without a password only if it is known to be one. Text that merely resembles a URL, or that has connection words
/// with a password, is replaced entirely.
pub fn shown(text: &str) -> String {
    if server_words::is_url(text) {
        return server(text).unwrap_or_else(|| unreadable(text));
    }
    if server_words::is_server(text) {
        return pairs(text).unwrap_or_else(|| CONNECTION_WORDS.to_owned());
    }
    let path = without_scheme(text).unwrap_or(text);
    if resembles_url(path) {
        unreadable(path)
    } else if has_secret_word(path) {
        CONNECTION_WORDS.to_owned()
    } else {
        text.to_owned()
    }
}

/// Makes a message safe that may quote user input, such as a command-line error: `typed` is replaced as by [`shown`],
/// and any other URL or `password=…` loses its password.
pub fn without_passwords<'t>(words: &str, typed: impl IntoIterator<Item = &'t str>) -> String {
    let mut words = words.to_owned();
    for text in typed {
        // The value of `--option=value` may be quoted alone.
        let value = text.split_once('=').filter(|(option, _)| option.starts_with('-')).map_or(text, |(_, value)| value);
        let harmless = shown(value);
        if harmless != value {
            words = words.replace(value, &harmless);
        }
    }
    without_values(&without_logins(&words))
}

/// Connection words without secrets; `None` if they cannot be parsed.
fn pairs(text: &str) -> Option<String> {
    let mut pairs = server_words::pairs(text).ok()?;
    pairs.retain(|(name, value)| is_harmless(name, value));
    Some(server_words::written(&pairs))
}

/// A server's URL without secrets; `None` if it cannot be parsed with certainty.
fn server(text: &str) -> Option<String> {
    // To PostgreSQL this sign is a letter like any other.
    let text = &text.replace('#', "%23");
    let place = server_words::hosts_of(text)?;
    let hosts = &text[place.clone()];
    // For forms that only PostgreSQL supports, several hosts or none after a login, a stand-in host is parsed.
    let theirs = hosts.contains(',') || (hosts.is_empty() && text[..place.start].ends_with('@'));
    if !theirs {
        return harmless(Url::parse(text).ok()?).map(String::from);
    }
    if !hosts.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ',' | '.' | '-' | '_' | ':' | '[' | ']' | '%')) {
        return None;
    }
    let url = harmless(Url::parse(&format!("{}h{}", &text[..place.start], &text[place.end..])).ok()?)?;
    Some(format!("{}{hosts}{}", &url[..Position::BeforeHost], &url[Position::AfterPort..]))
}

fn harmless(mut url: Url) -> Option<Url> {
    // Such a character after the host: the password contains one of `/?`, so the URL was split wrongly.
    if [url.path(), url.query().unwrap_or_default()].iter().any(|p| p.contains('@')) {
        return None;
    }
    let is_alone = url.password().is_none_or(str::is_empty);
    if url.password().is_some() {
        url.set_password(None).ok()?;
    }
    let user = url.username();
    if !is_alone {
        note_role(user);
    }
    if !user.is_empty() && (!is_role(user) || !is_known(user)) {
        url.set_username("").ok()?;
    }
    let options: Vec<(String, String)> =
        url.query_pairs().filter(|(k, v)| is_harmless(k, v)).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    url.set_query(None);
    if !options.is_empty() {
        url.query_pairs_mut().extend_pairs(options);
    }
    Some(url)
}

fn is_harmless(option: &str, value: &str) -> bool {
    let fits = match option {
        "user" => is_role(value),
        // A login precedes it.
        "host" | "hostaddr" => !value.contains('@') || value.starts_with('/'),
        _ => true,
    };
    HARMLESS.contains(&option) && fits && !has_secret_word(value)
}

/// Whether the user part consists only of a name.
fn is_role(text: &str) -> bool {
    let text = decoded(text);
    text.len() < 64 && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'))
}

/// Whether a text that is not a server's URL was meant as one: it has a scheme, or a login before an `@`.
fn resembles_url(text: &str) -> bool {
    let meant_for_server = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("postg"));
    let is_path = text.starts_with(['.', '~']) || (text.starts_with('/') && !text.starts_with("//"));
    let login = text.rfind('@').is_some_and(|at| text[..at].contains(':') || meant_for_server);
    text.contains("://") || (meant_for_server && text.contains(":/")) || (login && !is_path)
}

fn unreadable(text: &str) -> String {
    format!("{}{UNREADABLE}", scheme_of(text).unwrap_or("…"))
}

/// Removes the scheme of a URL that names a file, with the slashes of an empty host: what is left begins with the path.
fn without_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_file =
        scheme == "sqlite" || scheme == "file" || sqlite_driver(scheme).is_some_and(|d| FILE_DRIVERS.contains(&d));
    is_file.then(|| rest.strip_prefix("//").unwrap_or(rest))
}

/// Returns the driver of a URL of an SQLite file, as SQLAlchemy names it.
pub(super) fn sqlite_driver(scheme: &str) -> Option<&str> {
    scheme.strip_prefix("sqlite+")
}

/// Returns the scheme of a URL, such as `mysql` or `postgresql+asyncpg`; none for what may be anything else.
pub fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_word = |word: &str| !word.is_empty() && word.len() < 16 && word.chars().all(|c| c.is_ascii_alphanumeric());
    (scheme.split('+').count() <= 2 && scheme.split('+').all(is_word)).then_some(scheme)
}

/// Whether a word that indicates a secret has a value; percent-encoded letters are recognized.
fn has_secret_word(text: &str) -> bool {
    let decoded: String = url::form_urlencoded::parse(format!("x={text}").replace('&', "%26").as_bytes())
        .map(|(_, value)| value.to_ascii_lowercase())
        .collect();
    let mut names = decoded.split('=').collect::<Vec<_>>();
    names.pop();
    names.iter().any(|name| {
        let name = name.trim_end();
        let start = name
            .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
            .map_or(0, |at| at + name[at..].chars().next().map_or(0, char::len_utf8));
        SECRETS.iter().any(|secret| name[start..].contains(secret))
    })
}

/// Words without the logins of URLs: `scheme://user:password@` becomes `scheme://user@`, and `scheme://user@` loses the
/// user unless it is known to be one.
fn without_logins(words: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(words.len()), words);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end =
            after.find(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '<' | '>')).unwrap_or(after.len());
        let (address, next) = after.split_at(end);
        match address.rfind('@') {
            Some(sign) => {
                let login = &address[..sign];
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                let is_shown = is_role(user) && (!password.is_empty() || is_known(user));
                out.push_str(if is_shown { user } else { "…" });
                out.push_str(&address[sign..]);
            }
            None => out.push_str(address),
        }
        rest = next;
    }
    out.push_str(rest);
    out
}

/// Words without the values of `password=value` and the like.
fn without_values(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for piece in words.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '&' | '?' | '`' | '"' | '\'')) {
        let value_at = piece.find('=').map(|at| at + 1).filter(|at| has_secret_word(&piece[..*at]));
        let Some(at) = value_at else {
            out.push_str(piece);
            continue;
        };
        let ends = piece.chars().next_back().filter(|c| c.is_whitespace() || matches!(c, '&' | '?' | '`' | '"' | '\''));
        out.push_str(&piece[..at]);
        if piece.len() > at + ends.map_or(0, char::len_utf8) {
            out.push('…');
        }
        out.extend(ends);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_what_helps_and_loses_every_password() {
        let_in("postgres://let.in@host/db");
        let_in("postgres://no role@host/db");
        for (text, expected) in [
            ("postgres://ada:S3cret@host:6432/db", "postgres://ada@host:6432/db"),
            ("postgresql://eve@host/db?password=S3cret&sslmode=require", "postgresql://host/db?sslmode=require"),
            ("postgres://eve@host/db?p%61sswd=S3cret", "postgres://host/db"),
            ("postgres://eve@host/db?user=ada&options=-c+x.password%3DS3cret", "postgres://host/db?user=ada"),
            ("postgres://ada%3AS3cret@host/db", "postgres://host/db"),
            ("postgres://host/db?user=ada:S3cret", "postgres://host/db"),
            ("postgres://eve@host/db#2", "postgres://host/db%232"),
            ("postgres://S3cret@host/db", "postgres://host/db"),
            ("postgres://S3cret:@a,b/db", "postgres://a,b/db"),
            ("postgres://let.in@host/db", "postgres://let.in@host/db"),
            ("postgres://let.in:@host/db", "postgres://let.in@host/db"),
            ("postgres://l%65t.in@host/db", "postgres://l%65t.in@host/db"),
            ("postgres://ada:1/S3cret@host/db", "postgres://… (not a valid URL)"),
            ("postgres://ada:12?S3cret@host/db", "postgres://… (not a valid URL)"),
            ("postgres://ada:12#S3cret@host/db", "postgres://ada@host/db"),
            ("postgres://ada:S3 cret@[bad", "postgres://… (not a valid URL)"),
            ("postgresql+asyncpg://ada:S3cret@host/db", "postgresql+asyncpg://ada@host/db"),
            ("postgresql+ssh://ada:S3cret@host/db", "postgresql+ssh://… (not a valid URL)"),
            ("sqlite+aiosqlite:///data/a.db", "sqlite+aiosqlite:///data/a.db"),
            ("file:///data/a.db?mode=ro", "file:///data/a.db?mode=ro"),
            ("postgres:/ada:S3cret@host/db", "…://… (not a valid URL)"),
            ("postgres:ada:S3cret@host", "…://… (not a valid URL)"),
            ("postgress//ada:S3cret@host", "…://… (not a valid URL)"),
            ("POSTGRES://ada:S3cret@host", "POSTGRES://… (not a valid URL)"),
            ("//ada:S3cret@host/db", "…://… (not a valid URL)"),
            ("ada:S3cret@host/db", "…://… (not a valid URL)"),
            ("sqlite:ada:S3cret@host/db", "…://… (not a valid URL)"),
            ("mysql://ada:S3cret@host/db", "mysql://… (not a valid URL)"),
            ("postgres://ada:S3cret@a:1,b,[::1]:3/db?password=S3", "postgres://ada@a:1,b,[::1]:3/db"),
            ("postgres://ada:S3cret@/db?host=/run/pg", "postgres://ada@/db?host=%2Frun%2Fpg"),
            ("host=there user=ada password=S3cret", "host=there user=ada"),
            ("host=there user=ada PASSWORD = S3cret", "host=there user=ada"),
            ("host=there user=ada:S3cret dbname='a b'", "host=there dbname='a b'"),
            ("host=there user=ada 'S3cret", CONNECTION_WORDS),
            ("user=ada password=a host=S3cret@b/c options='-c x.password=S3cret'", "user=ada"),
            ("ada password=S3cret", CONNECTION_WORDS),
            ("memory.db?passwd=S3cret", CONNECTION_WORDS),
            ("memory.db?p%61ssword=S3cret", CONNECTION_WORDS),
            ("/data/passwords.db", "/data/passwords.db"),
            ("sqlite:/data/a=b:c@d.db", "sqlite:/data/a=b:c@d.db"),
            ("postgres.db", "postgres.db"),
            ("backup:2026.db", "backup:2026.db"),
            ("postgres:///db?host=/run/postgresql", "postgres:///db?host=%2Frun%2Fpostgresql"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_a_server_says_of_a_login_alone_does_not_repeat_it() {
        let said = "role \"S3 cret\" does not exist; database \"S3%20cret\" is not there";
        assert_eq!(
            without_user(said, "postgres://S3%20cret@h"),
            "role \"…\" does not exist; database \"…\" is not there"
        );
        assert_eq!(without_user("role \"ada\" may not", "postgres://ada:S3cret@h"), "role \"ada\" may not");
    }

    #[test]
    fn words_lose_the_passwords_that_they_quote() {
        let_in("postgres://let.in@host/db");
        let typed = ["-d", "--profile=postgres:/u:S3 cret@h", "postgres://u:S3`cret@h/db"];
        for (words, expected) in [
            ("no profile `postgres:/u:S3 cret@h` here", "no profile `…://… (not a valid URL)` here"),
            ("no command `postgres://u:S3`cret@h/db`", "no command `postgres://u@h/db`"),
            ("see \"mysql://u:S3cret@h/db\" and a@b.c", "see \"mysql://u@h/db\" and a@b.c"),
            ("a login alone, https://S3cret@h/ or db://let.in@h", "a login alone, https://…@h/ or db://let.in@h"),
            ("at http://h/?token=S3cret&x=1 now", "at http://h/?token=…&x=1 now"),
            ("PGPASSWORD=S3cret psql", "PGPASSWORD=… psql"),
            ("password=\"\" x", "password=\"\" x"),
            ("--where title=a: no such column", "--where title=a: no such column"),
        ] {
            assert_eq!(without_passwords(words, typed), expected);
        }
    }
}
