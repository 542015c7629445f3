//! Connection settings of a PostgreSQL server: a URL or `key=value` pairs, parsed as by libpq. Pure.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// Settings of a connection by name, as written: without defaults.
pub type Words = BTreeMap<String, String>;

/// Names of libpq's settings.
const KNOWN: [&str; 52] = [
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
    "gssdelegation", "gssencmode", "gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle",
    "keepalives_interval", "krbsrvname", "load_balance_hosts", "max_protocol_version", "min_protocol_version",
    "oauth_client_id", "oauth_client_secret", "oauth_issuer", "oauth_scope", "options", "passfile", "password", "port",
    "replication", "require_auth", "requirepeer", "requiressl", "scram_client_key", "scram_server_key", "service",
    "servicefile", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcompression",
    "sslcrl", "sslcrldir", "sslkey", "sslkeylogfile", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
    "sslsni", "target_session_attrs", "tcp_user_timeout", "user",
];

/// Drivers of SQLAlchemy that go to a PostgreSQL server by the address in the URL.
const DRIVERS: [&str; 7] = ["aiopg", "asyncpg", "pg8000", "psycopg", "psycopg2", "psycopg2cffi", "psycopg_async"];

/// Values of `sslmode`, which asyncpg takes as `ssl`.
const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// Whether libpq has a setting of that name.
pub fn is_known(name: &str) -> bool {
    KNOWN.binary_search(&name).is_ok()
}

/// Whether a text names a PostgreSQL server: by its scheme, or by beginning with a setting of libpq.
pub fn is_server(text: &str) -> bool {
    is_url(text) || are_pairs(text)
}

/// Whether a text is a URL of PostgreSQL.
pub fn is_url(text: &str) -> bool {
    after_scheme(text).is_some()
}

fn are_pairs(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_known(name.trim()))
}

/// The URL after its scheme, which may name a driver as SQLAlchemy has it: `postgresql+asyncpg://`.
fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let (engine, driver) = scheme.split_once('+').map_or((scheme, None), |(engine, driver)| (engine, Some(driver)));
    let is_known = ["postgres", "postgresql"].contains(&engine) && driver.is_none_or(|d| DRIVERS.contains(&d));
    is_known.then_some(rest)
}

/// Parses the settings in a URL or in pairs.
///
/// # Errors
/// A message about the error that repeats nothing of the text.
pub fn parse(text: &str) -> Result<Words, String> {
    match after_scheme(text) {
        Some(rest) => url(rest),
        None => Ok(pairs(text)?.into_iter().collect()),
    }
}

/// Adds a password to the words; it overrides one in them.
pub fn with_password(words: &str, password: &str) -> String {
    if is_url(words) {
        let mark = if words.contains('?') { '&' } else { '?' };
        let encoded: String = url::form_urlencoded::byte_serialize(password.as_bytes()).collect();
        return format!("{words}{mark}password={encoded}");
    }
    format!("{words} password='{}'", password.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Finds the byte range of the hosts in a URL.
pub fn hosts_of(url: &str) -> Option<std::ops::Range<usize>> {
    let rest = after_scheme(url)?;
    let start = url.len() - rest.len();
    let end = start + rest.find(['/', '?']).unwrap_or(rest.len());
    let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    Some(start..end)
}

fn url(rest: &str) -> Result<Words, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    if name.contains('@') || query.contains('@') {
        return Err(
            "there is an `@` after the host: in a password, `/`, `?` and `@` are written %2F, %3F and %40".to_owned()
        );
    }
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
    let mut words = Words::new();
    let mut keep = |name: &str, value: String| {
        if !value.is_empty() {
            words.insert(name.to_owned(), value);
        }
    };
    keep("user", decoded(user)?);
    keep("password", decoded(password.unwrap_or_default())?);
    keep("dbname", decoded(name)?);
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = host_and_port(host)?;
        names.push(decoded(name)?);
        ports.push(port.to_owned());
    }
    keep("host", listed(&names));
    keep("port", listed(&ports));
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let option = name.strip_prefix("options[").and_then(|name| name.strip_suffix(']'));
        match (option, &*name) {
            (Some(option), _) => {
                let all = words.entry("options".to_owned()).or_default();
                let space = if all.is_empty() { "" } else { " " };
                all.push_str(&format!("{space}-c {option}={}", value.replace('\\', "\\\\").replace(' ', "\\ ")));
            }
            (None, "ssl") if value == "true" => drop(words.insert("sslmode".to_owned(), "require".to_owned())),
            (None, "ssl") if SSL_MODES.contains(&&*value) => {
                drop(words.insert("sslmode".to_owned(), value.into_owned()));
            }
            (None, name) => drop(words.insert(usual_name(name).to_owned(), value.into_owned())),
        }
    }
    Ok(words)
}

/// A list as one setting; empty if all entries are.
fn listed(all: &[String]) -> String {
    if all.iter().all(String::is_empty) { String::new() } else { all.join(",") }
}

/// libpq's name of a setting that other clients spell another way.
fn usual_name(name: &str) -> &str {
    match name {
        "ssl-mode" => "sslmode",
        "ssl-root-cert" | "ssl-ca" => "sslrootcert",
        "ssl-cert" => "sslcert",
        "ssl-key" => "sslkey",
        other => other,
    }
}

fn host_and_port(text: &str) -> Result<(&str, &str), String> {
    let bad = || "a host in brackets is not closed".to_owned();
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) = inner.split_once(']').ok_or_else(bad)?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if rest.is_empty() => Ok((host, "")),
            None => Err("there is something between a host in brackets and its port".to_owned()),
        };
    }
    Ok(text.split_once(':').unwrap_or((text, "")))
}

fn decoded(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| "an escape (%) in it is not UTF-8".to_owned())?;
    if text.contains('\0') { Err("it holds a NUL".to_owned()) } else { Ok(text.into_owned()) }
}

/// Pairs in their order: `name = value`, a value with spaces in single quotes, `\` before a quote or a `\`.
///
/// # Errors
/// A message about the missing part.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or("a word has no `=` and no value after it")?;
        let name = name.trim();
        if name.contains(char::is_whitespace) {
            return Err("a word has no `=` and no value after it".to_owned());
        }
        let (value, after) = value(after.trim_start())?;
        found.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(found)
}

fn value(text: &str) -> Result<(String, &str), String> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |inner| (true, inner));
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            space if space.is_whitespace() && !quoted => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted { Err("a quote is not closed".to_owned()) } else { Ok((value, "")) }
}

/// Pairs as they are written.
pub fn written(pairs: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| {
        let plain = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '\\'));
        let quoted = || format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
        format!("{name}={}", if plain { value.clone() } else { quoted() })
    };
    pairs.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(words) => written(&words.into_iter().collect::<Vec<_>>()),
            Err(why) => format!("! {why}"),
        }
    }

    #[test]
    fn a_password_is_put_into_words_as_it_is() {
        let password = r"S3 c'r\et&=?/#%";
        for words in ["host=h user=ada", "postgres://ada@h/db", "postgres://ada:other@h/db?sslmode=require"] {
            let found = parse(&with_password(words, password)).unwrap();
            assert_eq!(found.get("password").map(String::as_str), Some(password), "{words}");
            assert_eq!(found.get("user").map(String::as_str), Some("ada"));
        }
    }

    #[test]
    fn settings_are_in_order_so_that_they_are_found() {
        assert!(KNOWN.is_sorted());
    }

    #[test]
    fn a_url_and_pairs_say_the_same() {
        for (text, expected) in [
            ("postgres://", ""),
            ("postgres://ada:S%2F3@h:6432/db", "dbname=db host=h password=S/3 port=6432 user=ada"),
            ("postgresql://h", "host=h"),
            (
                "postgresql+asyncpg://ada@h:6432/db?ssl=verify-full",
                "dbname=db host=h port=6432 sslmode=verify-full user=ada",
            ),
            ("postgres://ada@/db?host=/run/pg", "dbname=db host=/run/pg user=ada"),
            ("postgres://%2Frun%2Fpg/db", "dbname=db host=/run/pg"),
            ("postgres://a:1,b,[::1]:3/db", "dbname=db host=a,b,::1 port=1,,3"),
            ("postgres://a,b/db?target_session_attrs=primary", "dbname=db host=a,b target_session_attrs=primary"),
            (
                "postgres:///db?ssl=true&options[search_path]=a+b",
                "dbname=db options='-c search_path=a\\\\ b' sslmode=require",
            ),
            ("postgres:///?service=x", "service=x"),
            ("postgres://ada:p#ss@h/nous#2", "dbname=nous#2 host=h password=p#ss user=ada"),
            ("host = h  user='a b' password = it\\'s", "host=h password='it\\'s' user='a b'"),
            ("host='' dbname=x", "dbname=x host=''"),
            ("host=h dbname", "! a word has no `=` and no value after it"),
            ("host='h", "! a quote is not closed"),
            ("postgres://[::1/db", "! a host in brackets is not closed"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(shown("postgres://ada:1/S3cret@h/db").starts_with("! there is an `@`"));
    }

    #[test]
    fn a_path_is_no_server() {
        for (text, is) in [
            ("host=h", true),
            ("service=prod", true),
            ("postgres://", true),
            ("a=b.db", false),
            ("/data/host=h.db", false),
            ("memory.db", false),
            ("postgres.db", false),
        ] {
            assert_eq!(is_server(text), is, "{text}");
        }
    }
}
