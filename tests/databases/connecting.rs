//! Ways to a PostgreSQL server as libpq knows them, each tried on the real thing: a listener that never answers, services,
//! several hosts, password files, certificates.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::support::fixtures::{Layout, build_postgres};
use crate::support::pooler::{free_port, skipped};
use crate::support::postgres::Database;
use crate::support::{block_on, told};
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Query;
use mnemoscope::store::pulse::{DatabasePulse, PulseBeat};
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use url::Url;

/// A folder of settings and a home, and nothing of libpq's in the environment.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        path
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(crate::support::program());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env_remove("DATABASE_URL").env_remove("MNEMOSCOPE_DATABASE");
        command.env("MNEMOSCOPE_CONFIG", self.path("config.toml")).env("MNEMOSCOPE_STATE", self.path("state"));
        command.env("HOME", self.0.path()).env("PGSYSCONFDIR", self.0.path().join("none")).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program runs")
    }
}

#[track_caller]
fn opens(output: &Output) {
    assert!(output.status.success() && told(output).contains("nous"), "{}", told(output));
}

#[track_caller]
fn fails(output: &Output, words: &[&str]) {
    let said = told(output);
    assert!(!output.status.success() && words.iter().all(|word| said.contains(word)), "{said}");
    assert!(!said.contains("S3cret"), "{said}");
}

/// Splits the URL of a test's server: host or folder of its socket, port, user, name.
fn parts(url: &str) -> (String, u16, String, String) {
    let url = Url::parse(url).expect("a URL");
    let host = url.host_str().unwrap_or("localhost");
    let host = percent_encoding::percent_decode_str(host).decode_utf8_lossy().into_owned();
    let name = url.path().trim_start_matches('/').to_owned();
    (host, url.port().unwrap_or(5432), url.username().to_owned(), name)
}

#[test]
fn urls_that_agents_keep_name_the_same_database() {
    let desk = Desk::new();
    let folder = desk.0.path().display().to_string();
    let run = |url: &str| {
        let mut command = desk.command(&["status", "--format", "json"]);
        command.current_dir(desk.0.path()).env("DATABASE_URL", url).output().expect("the program runs")
    };
    assert!(desk.run(&["demo", &format!("{folder}/rel.db"), "--episodes", "30", "--no-console"]).status.success());
    for url in [
        "sqlite:rel.db?mode=rwc",
        "sqlite:///rel.db",
        "sqlite+aiosqlite:///rel.db",
        &format!("sqlite+pysqlite:///{folder}/rel.db?timeout=5"),
        "file:rel.db?mode=ro",
        &format!("file://{folder}/rel.db"),
    ] {
        let output = run(url);
        assert!(output.status.success() && told(&output).contains("episodes"), "{url}: {}", told(&output));
    }
    for (url, code, words) in [
        ("sqlite+libsql:///rel.db", 2, &["`+libsql` is not understood", "sqlite:PATH"][..]),
        ("mysql+pymysql://ada:S3cret@h/db", 2, &["`mysql+pymysql://` is not understood", "postgres://HOST/NAME"]),
        ("sqlite+aiosqlite:///:memory:", 2, &["memory of the program"]),
        ("sqlite:///none.db", 3, &["/none.db or none.db", "no such file"]),
    ] {
        let output = run(url);
        assert_eq!(output.status.code(), Some(code), "{url}: {}", told(&output));
        fails(&output, words);
    }
    assert!(!desk.path("sqlite:").exists() && !desk.path("none.db").exists());
    let Some(database) = Database::fresh() else { return };
    let (_, rest) = database.url().split_once("://").expect("a scheme");
    for driver in ["asyncpg", "psycopg2"] {
        let output = run(&format!("postgresql+{driver}://{rest}"));
        assert!(output.status.success() && told(&output).contains("\"engine\": \"postgres\""), "{}", told(&output));
    }
}

#[test]
fn a_listener_that_never_answers_is_not_waited_for_for_ever() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = silent.local_addr().expect("its port").port();
    let desk = Desk::new();
    desk.file(
        "config.toml",
        &format!("[profile.p]\ndatabase = \"host=127.0.0.1 port={port}\"\nconnect_timeout = 1\n"),
        0o600,
    );
    let url = format!("postgres://ada:S3cret@127.0.0.1:{port}/db");
    let with = format!("{url}?connect_timeout=1");
    let words = format!("host=127.0.0.1 port={port} password=S3cret connect_timeout=1");
    let desk = &desk;
    std::thread::scope(|scope| {
        for database in [&with, &words, "p"] {
            scope.spawn(move || {
                let began = Instant::now();
                fails(&desk.run(&["-d", database, "status"]), &["no answer within 1 s (connect_timeout)"]);
                assert!(began.elapsed() < Duration::from_secs(8), "{database}: {:?}", began.elapsed());
            });
        }
        scope.spawn(|| {
            let began = Instant::now();
            let output = desk.command(&["-d", &url, "status"]).env("PGCONNECT_TIMEOUT", "1").output().expect("runs");
            fails(&output, &["within 1 s"]);
            assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        });
        // Nobody says how long: ten seconds.
        let began = Instant::now();
        fails(&desk.run(&["-d", &url, "status"]), &["within 10 s"]);
        assert!(began.elapsed() >= Duration::from_secs(10) && began.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn a_server_that_is_gone_is_told_with_the_place_where_it_was() {
    let Some(database) = Database::fresh() else { return };
    let (host, port, user, name) = parts(database.url());
    if !host.starts_with('/') {
        return skipped("the tests' server has no socket here");
    }
    block_on(build_postgres(Layout::NousPlanned, database.url()));
    let desk = Desk::new();
    let socket = desk.path(&format!(".s.PGSQL.{port}"));
    std::os::unix::fs::symlink(Path::new(&host).join(format!(".s.PGSQL.{port}")), &socket).expect("a link");
    let words = format!("host={} port={port} user={user} dbname={name}", desk.0.path().display());
    let error = block_on(async {
        let store = Store::open(&Target::Postgres(words.clone()), &crate::support::options()).await.expect("opens");
        std::fs::remove_file(&socket).expect("no link");
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        let ends =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()";
        sqlx::query(ends).bind(&name).execute(&mut link).await.expect("ended");
        store.page(&Query::new(Entity::Episode)).await.expect_err("no page").to_string()
    });
    let place = format!("no connection to {}:{port} (No such file", desk.0.path().display());
    assert!(error.contains(&place), "{error}");
    fails(&desk.run(&["-d", &words, "status"]), &["no connection (No such file", "is the server running"]);
}

/// Passes bytes on between a client and a server until it is armed, and from then on none that come after a message which
/// begins with a letter: nobody hears anything, and nobody hangs up.
fn goes_silent(url: &str, letter: u8) -> (u16, Arc<AtomicBool>) {
    fn pass(mut from: impl Read, mut to: impl Write, ends: impl Fn(&[u8]) -> bool) {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if ends(&bytes[..count]) {
                loop {
                    std::thread::park();
                }
            }
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    }
    let (host, port, ..) = parts(url);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let here = listener.local_addr().expect("its port").port();
    let armed = Arc::new(AtomicBool::new(false));
    let trigger = Arc::clone(&armed);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let back = client.try_clone().expect("a client");
            let trigger = Arc::clone(&trigger);
            let ends = move |bytes: &[u8]| trigger.load(Ordering::Relaxed) && bytes[0] == letter;
            if host.starts_with('/') {
                let server = UnixStream::connect(format!("{host}/.s.PGSQL.{port}")).expect("the server");
                let answers = server.try_clone().expect("the server");
                std::thread::spawn(move || pass(client, server, ends));
                std::thread::spawn(move || pass(answers, back, |_| false));
            } else {
                let server = TcpStream::connect((host.as_str(), port)).expect("the server");
                let answers = server.try_clone().expect("the server");
                std::thread::spawn(move || pass(client, server, ends));
                std::thread::spawn(move || pass(answers, back, |_| false));
            }
        }
    });
    (here, armed)
}

#[test]
fn a_server_that_falls_silent_is_not_waited_for_for_ever() {
    let Some(database) = Database::fresh() else { return };
    block_on(build_postgres(Layout::NousPlanned, database.url()));
    let (_, _, user, name) = parts(database.url());
    // `Q` is how a transaction begins and ends, `P` how a statement does.
    for (letter, words) in [(b'Q', "no transaction began within 1 s"), (b'P', "the server stopped answering")] {
        let (port, armed) = goes_silent(database.url(), letter);
        let second = Some(Duration::from_secs(1));
        let options = OpenOptions { statement_timeout: second, connect_timeout: second, ..crate::support::options() };
        block_on(async {
            let target = Target::Postgres(format!("postgres://{user}@127.0.0.1:{port}/{name}?sslmode=disable"));
            let store = Store::open(&target, &options).await.expect("opens");
            store.page(&Query::new(Entity::Episode)).await.expect("a page");
            armed.store(true, Ordering::Relaxed);
            let began = Instant::now();
            let error = store.page(&Query::new(Entity::Episode)).await.expect_err("no page").to_string();
            assert!(error.contains(words), "{error}");
            assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        });
    }
}

#[test]
fn a_service_a_pair_and_a_url_lead_to_the_same_database() {
    let Some(database) = Database::fresh() else { return };
    block_on(build_postgres(Layout::NousPlanned, database.url()));
    let (host, port, user, name) = parts(database.url());
    let desk = Desk::new();
    let pairs = format!("host='{host}' port={port} user={user} dbname={name}");
    opens(&desk.run(&["-d", &pairs, "status"]));
    let section = format!(
        "# ours\n[other]\nhost=nowhere.example\n\n[memory]\nhost={host}\nport={port}\nuser={user}\ndbname={name}\n"
    );
    let file = desk.file("services.conf", &section, 0o600);
    let with = |variables: &[(&str, &str)], database: &str| {
        desk.command(&["-d", database, "status"]).envs(variables.iter().copied()).output().expect("runs")
    };
    let file = file.display().to_string();
    opens(&with(&[("PGSERVICEFILE", &file)], "service=memory"));
    opens(&with(&[("PGSERVICEFILE", &file), ("PGSERVICE", "memory")], "postgres://"));
    opens(&with(&[("PGSERVICEFILE", &file)], "postgres:///?service=memory"));
    fails(&with(&[("PGSERVICEFILE", &file)], "service=absent"), &["no service `absent`", &file]);
    // What is said next to a service counts before what the service says.
    fails(&with(&[("PGSERVICEFILE", &file)], "service=memory dbname=no_such_name"), &["no_such_name"]);
    desk.file(".pg_service.conf", &section, 0o600);
    opens(&desk.run(&["-d", "service=memory", "status"]));
    std::fs::remove_file(desk.path(".pg_service.conf")).expect("gone");
    std::fs::create_dir(desk.path("none")).expect("a folder");
    desk.file("none/pg_service.conf", &section, 0o600);
    opens(&desk.run(&["-d", "service=memory", "status"]));
    // A profile takes what a command takes, and a fleet too.
    desk.file("config.toml", "[profile.p]\ndatabase = \"service=memory\"\n", 0o600);
    opens(&desk.run(&["-d", "p", "status"]));
    let variables =
        [("PGHOST", host.as_str()), ("PGPORT", &port.to_string()), ("PGUSER", &user), ("PGDATABASE", &name)];
    opens(&with(&variables, "postgres://"));
}

#[test]
fn of_several_hosts_the_one_that_fits_is_taken_and_named() {
    let Some(database) = Database::fresh() else { return };
    block_on(build_postgres(Layout::NousPlanned, database.url()));
    let (host, port, user, name) = parts(database.url());
    let desk = Desk::new();
    let down = free_port();
    let two = |rest: &str| format!("host='127.0.0.1,{host}' port={down},{port} user={user} dbname={name} {rest}");
    let encoded = host.replace('/', "%2F");
    opens(&desk.run(&["-d", &format!("postgres://{user}@127.0.0.1:{down},{encoded}:{port}/{name}"), "status"]));
    for attributes in ["any", "read-write", "primary", "prefer-standby"] {
        let output = desk.run(&["-d", &two(&format!("target_session_attrs={attributes}")), "status"]);
        opens(&output);
        assert!(told(&output).contains(&format!("{host}:{port}")), "{}", told(&output));
    }
    for (attributes, why) in [("standby", "is no standby"), ("read-only", "takes writes")] {
        let output = desk.run(&["-d", &two(&format!("target_session_attrs={attributes} password=S3cret")), "status"]);
        fails(&output, &[why, &format!("127.0.0.1:{down}"), "no host matches"]);
    }
    // A read-only server stands for a standby here: which of its two words is asked about is the server's to say.
    let locked = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    block_on(async {
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::raw_sql(AssertSqlSafe(locked)).execute(&mut link).await.expect("read-only");
    });
    opens(&desk.run(&["-d", &two("target_session_attrs=read-only"), "status"]));
    fails(&desk.run(&["-d", &two("target_session_attrs=read-write"), "status"]), &["is read-only"]);
}

/// Makes the role that is asked for its password, `S3cret`. Roles belong to the whole server: one test at a time makes it.
fn make_role(database: &Database) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async {
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        let make = "DO $$ BEGIN CREATE ROLE needs_password LOGIN PASSWORD 'S3cret'; EXCEPTION WHEN duplicate_object THEN \
             ALTER ROLE needs_password LOGIN PASSWORD 'S3cret'; END $$";
        sqlx::raw_sql(make).execute(&mut link).await.expect("a role");
    });
}

#[test]
fn a_password_file_that_others_may_use_is_named_and_not_used() {
    let Some(database) = Database::fresh() else { return };
    let (host, port, _, name) = parts(database.url());
    make_role(&database);
    let desk = Desk::new();
    let escaped = host.replace(':', "\\:");
    let line = format!("elsewhere:*:*:*:wrong\n{escaped}:{port}:{name}:needs_password:S3cret\n");
    let pairs = format!("host='{host}' port={port} user=needs_password dbname={name}");
    let file = desk.file(".pgpass", &line, 0o644);
    fails(
        &desk.run(&["-d", &pairs, "status"]),
        &["refused the login", "was ignored", "mode 644", "chmod 600", ".pgpass"],
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let output = desk.run(&["-d", &pairs, "status"]);
    assert!(output.status.success() && !told(&output).contains("S3cret"), "{}", told(&output));
    std::fs::remove_file(file).expect("gone");
    let other = desk.file("passwords", &line, 0o600);
    let output = desk.run(&["-d", &format!("{pairs} passfile='{}'", other.display()), "status"]);
    assert!(output.status.success(), "{}", told(&output));
    fails(&desk.run(&["-d", &pairs, "status"]), &["refused the login"]);
}

#[test]
fn a_password_that_cannot_be_sent_is_no_fault_of_the_address() {
    let Some(database) = Database::fresh() else { return };
    let (host, port, _, name) = parts(database.url());
    make_role(&database);
    let words = format!("host='{host}' port={port} user=needs_password dbname={name} password=S3💥");
    let output = Desk::new().run(&["-d", &words, "status"]);
    fails(&output, &["cannot send", "another password"]);
    assert!(
        !told(&output).contains("S3") && !told(&output).contains("cannot tell which server is meant"),
        "{}",
        told(&output)
    );
}

#[test]
fn a_profiles_command_tells_the_password_and_nobody_sees_it() {
    let Some(database) = Database::fresh() else { return };
    let (host, port, _, name) = parts(database.url());
    make_role(&database);
    let desk = Desk::new();
    let url = format!("postgres://needs_password@/{name}?host={}&port={port}", host.replace('/', "%2F"));
    for words in [format!("host='{host}' port={port} user=needs_password dbname={name}"), url] {
        let status = |command: &str| {
            let settings = format!("[profile.home]\ndatabase = \"{words}\"\npassword_command = '''{command}'''\n");
            desk.file("config.toml", &settings, 0o600);
            desk.run(&["--profile", "home", "status"])
        };
        let output = status("echo S3cret; echo more");
        assert!(output.status.success() && !told(&output).contains("S3"), "{}", told(&output));
        let wrong = status("echo S3wrong");
        fails(&wrong, &["refused the login"]);
        assert!(!told(&wrong).contains("S3"), "{}", told(&wrong));
        fails(&status("exit 3"), &["password_command", "3"]);
        fails(&status("true"), &["password_command", "nothing"]);
    }
}

/// Certificates made by the system's openssl, in a folder: an authority, one for `localhost`, and one that has expired.
fn certificates(folder: &Path) -> Result<(), String> {
    let openssl = |arguments: &[&str]| -> Result<(), String> {
        let output = Command::new("openssl").args(arguments).current_dir(folder).output().map_err(|e| e.to_string())?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).map_err(|e| e.to_string());
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    for authority in ["ca", "other"] {
        let (out, kept) = (format!("{authority}.crt"), format!("{authority}.key"));
        let subject = format!("/CN=mnemoscope test {authority}");
        let made = ["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", &kept, "-out", &out];
        openssl(&[&made[..], &key].concat())?;
    }
    write(
        "ca.conf",
        "[ca]\ndefault_ca = d\n[d]\ndatabase = index.txt\nserial = serial\nnew_certs_dir = .\ndefault_md = sha256\n\
         policy = p\nx509_extensions = e\nunique_subject = no\n[p]\ncommonName = supplied\n[e]\n\
         subjectAltName = DNS:localhost\nbasicConstraints = CA:FALSE\n",
    )?;
    write("index.txt", "")?;
    write("serial", "01\n")?;
    for (name, from, to) in
        [("good", "20200101000000Z", "20491231000000Z"), ("expired", "20200101000000Z", "20210101000000Z")]
    {
        std::fs::create_dir(folder.join(name)).map_err(|e| e.to_string())?;
        let (request, kept) = (format!("{name}.csr"), format!("{name}/server.key"));
        let made = ["req", "-subj", "/CN=localhost", "-keyout", &kept, "-out", &request];
        openssl(&[&made[..], &key].concat())?;
        let out = format!("{name}/server.crt");
        openssl(&[
            "ca", "-batch", "-config", "ca.conf", "-cert", "ca.crt", "-keyfile", "ca.key", "-startdate", from,
            "-enddate", to, "-in", &request, "-out", &out, "-notext",
        ])?;
    }
    Ok(())
}

/// A server of a test's own that encrypts. It stops when this value is dropped.
struct Encrypting {
    folder: PathBuf,
    port: u16,
    _kept: tempfile::TempDir,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres");

impl Encrypting {
    fn with(certificates: &Path) -> Option<Encrypting> {
        let kept = tempfile::Builder::new().prefix("mnemoscope-tls-").tempdir_in("/tmp").expect("a folder");
        std::fs::set_permissions(kept.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let folder = kept.path().join("pg");
        let output = Command::new(SCRIPT).args(["start", "--tls"]).arg(certificates).arg(&folder).output();
        let output = output.expect("the script runs");
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("can encrypt"), "{said}");
            skipped(said.trim());
            return None;
        }
        let url = Url::parse(String::from_utf8_lossy(&output.stdout).trim()).expect("a URL");
        Some(Encrypting { folder, port: url.port().expect("a port"), _kept: kept })
    }
}

impl Drop for Encrypting {
    fn drop(&mut self) {
        let _ = Command::new(SCRIPT).arg("stop").arg(&self.folder).output();
    }
}

#[test]
fn a_certificate_that_is_not_accepted_is_said_to_be_so_and_why() {
    if std::env::var("MNEMOSCOPE_SKIP_POSTGRES").is_ok_and(|asked| asked == "1") {
        return skipped("MNEMOSCOPE_SKIP_POSTGRES=1");
    }
    let desk = Desk::new();
    let folder = desk.0.path();
    if let Err(why) = certificates(folder) {
        return skipped(&format!("openssl makes no certificates: {why}"));
    }
    let Some(good) = Encrypting::with(&folder.join("good")) else { return };
    let (root, other) = (folder.join("ca.crt").display().to_string(), folder.join("other.crt").display().to_string());
    let at = |host: &str, port: u16, rest: &str| {
        desk.run(&["-d", &format!("postgres://postgres:S3cret@{host}:{port}/postgres?{rest}"), "status"])
    };
    let opens = |output: Output| assert!(output.status.success(), "{}", told(&output));
    let certificate = "certificate was not accepted";
    opens(at("localhost", good.port, &format!("sslmode=verify-full&sslrootcert={root}")));
    opens(at("127.0.0.1", good.port, &format!("sslmode=verify-ca&sslrootcert={root}")));
    fails(
        &at("127.0.0.1", good.port, &format!("sslmode=verify-full&sslrootcert={root}")),
        &[certificate, "for another host"],
    );
    fails(
        &at("localhost", good.port, &format!("sslmode=verify-full&sslrootcert={other}")),
        &[certificate, "issuer is unknown", "sslrootcert"],
    );
    fails(&at("localhost", good.port, "sslrootcert=system"), &[certificate, "issuer is unknown"]);
    fails(&at("localhost", good.port, "sslrootcert=system&sslmode=require"), &["requires sslmode=verify-full"]);
    // Without a root certificate `require` encrypts and asks no more; with one it looks at who issued it.
    opens(at("127.0.0.1", good.port, "sslmode=require"));
    opens(at("127.0.0.1", good.port, &format!("sslmode=require&sslrootcert={root}")));
    fails(&at("127.0.0.1", good.port, &format!("sslmode=require&sslrootcert={other}")), &[certificate]);
    std::fs::create_dir(folder.join(".postgresql")).expect("a folder");
    std::fs::copy(&other, folder.join(".postgresql/root.crt")).expect("a root");
    fails(&at("127.0.0.1", good.port, "sslmode=require"), &[certificate]);
    fails(&at("127.0.0.1", good.port, "sslmode=require&sslrootcert=/none/such"), &["/none/such does not exist"]);
    drop(good);
    let Some(expired) = Encrypting::with(&folder.join("expired")) else { return };
    fails(
        &at("localhost", expired.port, &format!("sslmode=verify-full&sslrootcert={root}")),
        &[certificate, "has expired"],
    );
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_change_is_said_to_have_written_nothing() {
    let Some(database) = Database::fresh() else { return };
    let (url, desk) = (database.url(), Desk::new());
    block_on(async {
        assert!(desk.run(&["-d", url, "--layout", "mnemoscope", "migrate", "--apply"]).status.success());
        let mut link = PgConnection::connect(url).await.expect("the server");
        let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'; \
             CREATE TRIGGER slow BEFORE UPDATE ON episodes FOR EACH ROW EXECUTE FUNCTION slow(); INSERT INTO episodes (id, title) VALUES ('e', 'sent')";
        sqlx::raw_sql(slow).execute(&mut link).await.expect("a slow table");
        let mut command = desk.command(&["-d", url, "edit", "episode", "e", "title=other", "--apply"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() \
             AND wait_event = 'PgSleep' AND query LIKE 'UPDATE%'";
        let until = Instant::now() + Duration::from_mins(1);
        while sqlx::query_scalar::<_, i64>(end).fetch_one(&mut link).await.expect("an answer") == 0 {
            assert!(Instant::now() < until, "no change came");
        }
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        fails(&output, &["connection was lost", "nothing was written", "57P01", "run it again"]);
        let title = sqlx::query_scalar::<_, String>("SELECT title FROM episodes").fetch_one(&mut link).await;
        assert_eq!(title.expect("the title"), "sent");
    });
}

/// Runs statements over a connection of their own: what it wrote is counted when it ends.
async fn written(database: &Database, sql: &'static str) {
    let mut link = PgConnection::connect(database.url()).await.expect("connects");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect(sql);
    link.close().await.expect("ends");
}

#[test]
fn what_is_written_in_another_database_of_the_server_is_not_taken_as_written_here() {
    let (Some(here), Some(there)) = (Database::fresh(), Database::fresh()) else { return };
    block_on(async {
        for database in [&here, &there] {
            written(database, "CREATE TABLE notes (id int); INSERT INTO notes VALUES (1)").await;
        }
        let open = |database: &Database| {
            let target = Target::Postgres(database.url().to_owned());
            async move { Store::open(&target, &OpenOptions::default()).await.expect("opens") }
        };
        let (store, other) = (open(&here).await, open(&there).await);
        let (mut pulse, mut others) = (store.pulse(), other.pulse());
        let before = pulse.beat().await.expect("answers").expect("tells");
        let theirs = others.beat().await.expect("answers").expect("tells");
        assert!(before.own.is_some() && theirs.own.is_some(), "{before:?}, {theirs:?}");
        written(&there, "INSERT INTO notes VALUES (2)").await;
        changed(&mut others, &theirs).await;
        let now = pulse.beat().await.expect("answers").expect("tells");
        assert_eq!(now.own, before.own);
        assert_ne!(now.mark, before.mark, "the server counts transactions of all its databases");
        written(&here, "UPDATE notes SET id = 3").await;
        changed(&mut pulse, &now).await;
    });
}

/// Waits until a database says that it was written.
async fn changed(pulse: &mut DatabasePulse<'_>, before: &PulseBeat) {
    let begun = Instant::now();
    while pulse.beat().await.expect("answers").is_some_and(|now| now.own == before.own) {
        assert!(begun.elapsed() < Duration::from_mins(1), "it does not say that it was written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
