//! Connection settings, taken from the connection string, a service, the profile and the environment, in this order.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::passfile::{self, Login};
use super::{Host, Server, ServerRole};
use crate::ground::input_file::{self, InputError, SETTINGS_BYTES};
use crate::ground::server_words::{self, Words};

/// Longest time for connecting, if no limit is given.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment variables of libpq. The driver itself reads `PGOPTIONS`.
const VARIABLES: [(&str, &str); 18] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLCRL", "sslcrl"),
    ("PGSSLCRLDIR", "sslcrldir"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGGSSENCMODE", "gssencmode"),
    ("PGREQUIREAUTH", "require_auth"),
    ("PGREQUIREPEER", "requirepeer"),
];

/// Security settings that are not supported here, with the values that require nothing.
const REFUSED: [(&str, &[&str]); 10] = [
    ("channel_binding", &["disable", "prefer"]),
    ("gssencmode", &["disable", "prefer"]),
    ("require_auth", &[]),
    ("requirepeer", &[]),
    ("sslcrl", &[]),
    ("sslcrldir", &[]),
    ("sslnegotiation", &["postgres"]),
    ("sslpassword", &[]),
    ("ssl_min_protocol_version", &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("ssl_max_protocol_version", &["TLSv1.3"]),
];

/// Settings that are supported, or have no effect here.
const FOLLOWED: [&str; 26] = [
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
    "gssencmode", "host", "hostaddr", "options", "passfile", "password", "port", "ssl_max_protocol_version",
    "ssl_min_protocol_version", "sslcert", "sslcompression", "sslkey", "sslmode", "sslnegotiation", "sslrootcert",
    "sslsni", "statement-cache-capacity", "target_session_attrs", "tcp_user_timeout", "user",
];

/// System-wide folders of the service file.
const SHARED_FOLDERS: [&str; 2] = ["/etc/postgresql-common", "/etc"];

/// Parses a connection string.
///
/// # Errors
/// The error in it, without repeating text that may be secret.
pub fn server(text: &str, connect_timeout: Option<Duration>) -> Result<Server, String> {
    let mut words = server_words::parse(text)?;
    let file = words.remove("servicefile").or_else(|| variable("PGSERVICEFILE"));
    if let Some(service) = words.remove("service").or_else(|| variable("PGSERVICE")) {
        fill(&mut words, self::service(&service, file.as_deref())?);
    }
    let said = words.remove("connect_timeout");
    let connect_timeout = match (said, connect_timeout) {
        (Some(said), _) => seconds(&said)?,
        (None, Some(profile)) => Some(profile).filter(|time| !time.is_zero()),
        (None, None) => variable("PGCONNECT_TIMEOUT").map_or(Ok(Some(CONNECT_TIMEOUT)), |said| seconds(&said))?,
    };
    fill(&mut words, VARIABLES.iter().filter_map(|(name, key)| Some(((*key).to_owned(), variable(name)?))).collect());
    for (name, harmless) in REFUSED {
        if words.get(name).is_some_and(|value| !harmless.contains(&value.as_str())) {
            return Err(format!("`{name}` asks for protection that this program does not support"));
        }
    }
    let mut notes: Vec<String> = Vec::new();
    for name in words.keys().filter(|name| !FOLLOWED.contains(&name.as_str())) {
        let harmless = name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-'));
        let shown = if harmless { format!("`{name}`") } else { "one".to_owned() };
        notes.push(format!("a connection setting was ignored, {shown}: it is unknown"));
    }
    let role = match words.get("target_session_attrs") {
        None => ServerRole::Any,
        Some(said) => ServerRole::parse(said)
            .ok_or("`target_session_attrs` is none of any, read-write, read-only, primary, standby, prefer-standby")?,
    };
    let hosts = hosts(&words, &mut notes)?;
    let plain = in_plain_text(&words, &hosts);
    let (password_command, renewed, chosen) = (None, Mutex::default(), OnceLock::new());
    Ok(Server {
        hosts,
        role,
        connect_timeout,
        statement_timeout: None,
        notes,
        plain,
        password_command,
        renewed,
        chosen,
    })
}

/// Note that network traffic is not encrypted.
fn in_plain_text(words: &Words, hosts: &[Host]) -> Option<String> {
    let mode = words.get("sslmode").map_or("prefer", String::as_str);
    let by_system = words.get("sslrootcert").is_some_and(|root| root == "system");
    let is_sure = by_system || ["require", "verify-ca", "verify-full"].contains(&mode);
    let is_near = |host: &Host| ["/", "localhost:", "127.", "::1:"].iter().any(|near| host.name.starts_with(near));
    (!is_sure && !hosts.iter().all(is_near)).then(|| {
        format!("the connection may be in plain text: sslmode={mode} allows that, and sslmode=verify-full does not")
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn home() -> Option<PathBuf> {
    dirs::home_dir()
}

/// Adds settings that are not set yet.
fn fill(words: &mut Words, more: Words) {
    for (name, value) in more {
        words.entry(name).or_insert(value);
    }
}

/// Parses a time in seconds; `None` for no limit.
fn seconds(said: &str) -> Result<Option<Duration>, String> {
    let seconds: i64 = said.trim().parse().map_err(|_| "`connect_timeout` is not a number of seconds")?;
    Ok(u64::try_from(seconds).ok().filter(|s| *s > 0).map(Duration::from_secs))
}

/// Reads the entry of a service from the service files: the user's own first, then the system's.
fn service(name: &str, file: Option<&str>) -> Result<Words, String> {
    let own = file.map(PathBuf::from).or_else(|| Some(home()?.join(".pg_service.conf")));
    let shared = match variable("PGSYSCONFDIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => SHARED_FOLDERS.iter().map(PathBuf::from).collect(),
    };
    let files: Vec<PathBuf> =
        own.into_iter().chain(shared.into_iter().map(|folder| folder.join("pg_service.conf"))).collect();
    for path in &files {
        let shown = path.display();
        let text = match input_file::read_text(path, SETTINGS_BYTES) {
            Ok(text) => text,
            Err(InputError::NotFound) if file.is_none_or(|named| Path::new(named) != path) => continue,
            Err(error) => return Err(format!("the service file {shown}: {error}")),
        };
        if let Some(words) = section(&text, name).map_err(|why| format!("the service file {shown}{why}"))? {
            return Ok(words);
        }
    }
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    // The typed text may be anything.
    let shown = if name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) { name } else { "…" };
    Err(format!("there is no service `{shown}` in {}", files.join(", ")))
}

/// The settings in a section of a service file; `None` if there is no such section.
fn section(text: &str, name: &str) -> Result<Option<Words>, String> {
    let mut found: Option<Words> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if found.is_some() {
                break;
            }
            found = (title == name).then(Words::new);
            continue;
        }
        let Some(words) = &mut found else { continue };
        let wrong = |why: &str| format!(":{}: {why}", number + 1);
        let (key, value) = line.split_once('=').ok_or_else(|| wrong("this line has no `=`"))?;
        match key.trim_end() {
            "service" | "servicefile" => return Err(wrong("a service cannot name another service")),
            key if !server_words::is_known(key) => return Err(wrong("there is no such connection setting")),
            key => fill(words, Words::from([(key.to_owned(), value.trim_start().to_owned())])),
        }
    }
    Ok(found)
}

/// Splits the list in a setting, such as hosts or their ports.
fn listed<'w>(words: &'w Words, name: &str) -> Vec<&'w str> {
    words.get(name).map(|all| all.split(',').map(str::trim).collect()).unwrap_or_default()
}

fn hosts(words: &Words, notes: &mut Vec<String>) -> Result<Vec<Host>, String> {
    let (names, addresses, ports) = (listed(words, "host"), listed(words, "hostaddr"), listed(words, "port"));
    let count = names.len().max(addresses.len()).max(1);
    for (what, all) in [("hosts", &names), ("addresses", &addresses)] {
        if !all.is_empty() && all.len() != count {
            return Err(format!("there are {} {what} and {count} addresses or hosts", all.len()));
        }
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("there are {} ports for {count} hosts", ports.len()));
    }
    let user = words.get("user").cloned().unwrap_or_else(|| whoami::username().unwrap_or_default());
    let database = words.get("dbname").cloned().unwrap_or_else(|| user.clone());
    let base = base(words)?.username(&user).database(&database);
    let tls = Tls::of(words)?;
    let passfile = passfile(words, notes);
    let mut hosts = Vec::new();
    for at in 0..count {
        let port = match ports.get(if ports.len() == 1 { 0 } else { at }).copied().unwrap_or_default() {
            "" => 5432,
            text => text.parse().ok().filter(|port| *port > 0).ok_or("a port is not a number from 1 to 65535")?,
        };
        let name = names.get(at).copied().unwrap_or_default();
        let address = addresses.get(at).copied().unwrap_or_default();
        if !address.is_empty() && address.parse::<std::net::IpAddr>().is_err() {
            return Err("`hostaddr` is not an IP address".to_owned());
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) && !name.starts_with('/') {
            return Err("a host name contains a space".to_owned());
        }
        let name = if name.is_empty() && address.is_empty() { usual_host(port) } else { name.to_owned() };
        let reached = if address.is_empty() { &name } else { address };
        let is_socket = reached.starts_with('/');
        let mut options = base.clone().port(port);
        options = if is_socket { options.socket(reached).host("localhost") } else { options.host(reached) };
        if !is_socket && tls.mode_verifies_names() && !address.is_empty() && !name.is_empty() && name != address {
            return Err(
                "`hostaddr` together with `host` is not accepted with sslmode=verify-full, because the name could not \
                 be checked"
                    .to_owned(),
            );
        }
        options = tls.over(options, is_socket);
        let looked_up = match &name {
            name if SOCKET_FOLDERS.contains(&name.trim_end_matches('/')) => "localhost",
            name if name.is_empty() => address,
            name => name,
        };
        let login = Login { host: looked_up, port, database: &database, user: &user };
        let kept = || passfile.as_deref().and_then(|path| passfile::password(path, login));
        // Without any, the driver would look for one elsewhere.
        options = options.password(&words.get("password").cloned().or_else(kept).unwrap_or_default());
        hosts.push(Host { name: format!("{reached}:{port}"), options });
    }
    Ok(hosts)
}

/// Directories where a local server has its socket.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Returns the host to try if none is given: the directory of its socket if it exists, otherwise `localhost`.
fn usual_host(port: u16) -> String {
    let there = |folder: &&&str| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
    SOCKET_FOLDERS.iter().find(there).map_or("localhost", |folder| folder).to_owned()
}

/// Builds the options common to all hosts.
fn base(words: &Words) -> Result<PgConnectOptions, String> {
    // Only a URL accepts options unchanged; a password in it prevents the driver from looking for one.
    let mut url = url::Url::parse("postgres://localhost").map_err(|e| e.to_string())?;
    url.query_pairs_mut().append_pair("password", "");
    if let Some(options) = words.get("options") {
        url.query_pairs_mut().append_pair("options", options);
    }
    let options = PgConnectOptions::from_str(url.as_str()).map_err(|_| "`options` cannot be read")?;
    let mut options = options.application_name("mnemoscope").statement_cache_capacity(0).extra_float_digits(None);
    if let (Some(certificate), Some(key)) = (words.get("sslcert"), words.get("sslkey")) {
        options = options.ssl_client_cert(certificate).ssl_client_key(key);
    }
    Ok(options)
}

/// The password file, unless a password is given already; the reason for ignoring it is added to `notes`.
fn passfile(words: &Words, notes: &mut Vec<String>) -> Option<PathBuf> {
    if words.contains_key("password") {
        return None;
    }
    let path = words.get("passfile").map(PathBuf::from).or_else(|| Some(home()?.join(".pgpass")))?;
    match passfile::why_ignored(&path) {
        Some(why) => {
            notes.push(why);
            None
        }
        None => Some(path),
    }
}

/// TLS settings of a network connection.
struct Tls {
    mode: PgSslMode,
    root: Option<Root>,
}

enum Root {
    File(PathBuf),
    /// Certificates trusted by the system, as PEM.
    System(Vec<u8>),
}

impl Tls {
    fn of(words: &Words) -> Result<Tls, String> {
        let said = words.get("sslmode").map(String::as_str);
        let mode = match said {
            None => None,
            Some(said) => Some(PgSslMode::from_str(said).map_err(|_| {
                "`sslmode` is none of disable, allow, prefer, require, verify-ca, verify-full".to_owned()
            })?),
        };
        let named = words.get("sslrootcert").map(String::as_str);
        if named == Some("system") {
            return match mode {
                None | Some(PgSslMode::VerifyFull) => {
                    Ok(Tls { mode: PgSslMode::VerifyFull, root: Some(Root::System(trusted_by_system()?)) })
                }
                Some(_) => Err("sslrootcert=system requires sslmode=verify-full".to_owned()),
            };
        }
        let mode = mode.unwrap_or_default();
        let usual = home().map(|home| home.join(".postgresql/root.crt")).filter(|path| path.exists());
        let root = named.map(PathBuf::from).or(usual);
        let encrypts = matches!(mode, PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull);
        if let Some(path) = root.as_ref().filter(|path| encrypts && !path.is_file()) {
            return Err(format!("the root certificate {} does not exist", path.display()));
        }
        // If a root certificate exists, the server is verified against it, as in libpq.
        let mode = if matches!(mode, PgSslMode::Require) && root.is_some() { PgSslMode::VerifyCa } else { mode };
        Ok(Tls { mode, root: root.map(Root::File) })
    }

    fn mode_verifies_names(&self) -> bool {
        matches!(self.mode, PgSslMode::VerifyFull)
    }

    /// A socket is not encrypted, since the data does not leave the machine.
    fn over(&self, options: PgConnectOptions, is_socket: bool) -> PgConnectOptions {
        let options = options.ssl_mode(if is_socket { PgSslMode::Disable } else { self.mode });
        match &self.root {
            Some(Root::File(path)) => options.ssl_root_cert(path),
            Some(Root::System(pem)) => options.ssl_root_cert_from_pem(pem.clone()),
            None => options,
        }
    }
}

/// The certificate authorities trusted by this system.
fn trusted_by_system() -> Result<Vec<u8>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err("sslrootcert=system: this system has no list of authorities (install the package ca-certificates)"
            .to_owned());
    }
    let pem = |der: &[u8]| {
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    Ok(found.certs.iter().map(|certificate| pem(certificate)).collect::<String>().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_its_section_and_no_other() {
        let text = "# ours\n[a]\nhost=h\nport = 6432\n\n[b]\nhost=other\nuser=bob\n[a]\nhost=later";
        let words = section(text, "a").unwrap().unwrap();
        assert_eq!(words, Words::from([("host".into(), "h".into()), ("port".into(), "6432".into())]));
        assert_eq!(section(text, "c"), Ok(None));
        assert_eq!(section("[a]\nhsot=h", "a"), Err(":2: there is no such connection setting".to_owned()));
        assert_eq!(section("[a]\nhost", "a"), Err(":2: this line has no `=`".to_owned()));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_and_what_is_not_known_is_named() {
        for (text, expected) in [
            ("host=h channel_binding=require", "`channel_binding` asks for protection"),
            ("host=h sslrootcert=system sslmode=require", "requires sslmode=verify-full"),
            ("host=h sslmode=requires", "`sslmode` is none of"),
            ("host=h sslmode=require sslrootcert=/none/such.crt", "/none/such.crt does not exist"),
            ("host=a,b port=1,2,3", "3 ports for 2 hosts"),
            ("host=h port=S3cret", "a port is not a number"),
            ("host=h target_session_attrs=master", "`target_session_attrs` is none of"),
            ("host=h connect_timeout=S3cret", "`connect_timeout` is not a number"),
        ] {
            let error = server(text, None).map(drop).unwrap_err();
            assert!(error.contains(expected) && !error.contains("S3"), "{text}: {error}");
        }
        for (words, is_plain) in [
            ("host=h", true),
            ("host=h sslmode=disable", true),
            ("host=h sslmode=require", false),
            ("host=h sslmode=verify-full", false),
            ("host=localhost", false),
            ("host=127.0.0.1", false),
            ("host=/tmp", false),
            ("host=/tmp,h", true),
        ] {
            assert_eq!(server(words, None).unwrap().plain.is_some(), is_plain, "{words}");
        }
        let server = server("postgres://h/db?pgbouncer=true&S3cret=1&password=x", None).unwrap();
        assert_eq!(
            server.notes,
            [
                "a connection setting was ignored, one: it is unknown",
                "a connection setting was ignored, `pgbouncer`: it is unknown"
            ]
        );
    }

    #[test]
    fn each_host_has_its_port_and_a_time_limit_comes_from_the_nearest_word() {
        let two = server("postgres://ada:x@a:1,b/db?connect_timeout=3", Some(Duration::from_secs(7))).unwrap();
        let names: Vec<&str> = two.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["a:1", "b:5432"]);
        assert_eq!(two.connect_timeout, Some(Duration::from_secs(3)));
        let profile = server("host=h password=x", Some(Duration::from_secs(7))).unwrap();
        assert_eq!(profile.connect_timeout, Some(Duration::from_secs(7)));
        assert_eq!(server("host=h password=x connect_timeout=0", None).unwrap().connect_timeout, None);
    }
}
