//! A PostgreSQL database for each test that asks for one.
//!
//! The server is the one that `TEST_DATABASE_URL` names, else a private one that `scripts/postgres` starts and that all
//! tests of one run share. It stops on its own when the last test process and the `cargo test` that began it are gone.

use super::block_on_aside;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use url::Url;

/// Memory that the server of the tests may need, in bytes: its log of 256 MB and the databases of the tests that run.
const ROOM: u64 = 2 << 30;

/// Databases that were made once, by what they hold. The server of the tests' own is deleted with them.
static KEPT: Mutex<BTreeMap<String, Arc<Database>>> = Mutex::new(BTreeMap::new());

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A database of one test's own, empty at first. It is deleted when this value is dropped, on a panic too.
pub struct Database {
    name: String,
    url: Url,
    has_vector: bool,
}

impl Database {
    /// Makes a new, empty database.
    ///
    /// `None`, and a word on the terminal, when `MNEMOSCOPE_SKIP_POSTGRES=1` asks for tests without PostgreSQL.
    ///
    /// # Panics
    /// When no server can be had, saying what would help.
    pub fn fresh() -> Option<Self> {
        Self::encoded("ENCODING 'UTF8'")
    }

    /// As [`Database::fresh`], of another encoding.
    pub fn encoded(encoding: &str) -> Option<Self> {
        if std::env::var("MNEMOSCOPE_SKIP_POSTGRES").is_ok_and(|asked| asked == "1") {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // Not `eprintln!`: the harness would swallow that, and a skipped test must not look like a passed one.
            let _ = writeln!(std::io::stderr(), "SKIPPED on PostgreSQL (MNEMOSCOPE_SKIP_POSTGRES=1): {test}");
            return None;
        }
        Some(Self::made_of("template0", encoding))
    }

    /// Another database with the same contents. Nobody may be connected to this one.
    pub fn copy(&self) -> Self {
        Self::made_of(&self.name, "")
    }

    fn made_of(template: &str, options: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mnemoscope_test_{}_{number}_{:08x}", std::process::id(), rand::random::<u32>());
        let mut url = server().clone();
        url.set_path(&name);
        // Its files are copied at half the cost of its pages.
        let strategy = if abilities().chooses_strategy { "STRATEGY file_copy" } else { "" };
        block_on_aside(async {
            let create = format!("CREATE DATABASE {name} TEMPLATE {template} {options} {strategy}");
            sqlx::query(AssertSqlSafe(create))
                .execute(&mut connect().await)
                .await
                .expect("a database of the test's own");
        });
        Self { name, url, has_vector: abilities().vector }
    }

    /// A copy of a database that was made before and kept by what it holds. `None` where there is none yet.
    pub fn copy_of(what: &str) -> Option<Self> {
        let kept = KEPT.lock().expect("nobody panics here").get(what).cloned();
        kept.map(|kept| kept.copy())
    }

    /// Keeps this database for those that want the same, and gives a copy; on a server that others use too, nothing is kept:
    /// nobody would delete it. Nobody may be connected to it.
    pub fn keep_as(self, what: &str) -> Self {
        if std::env::var_os("TEST_DATABASE_URL").is_some() {
            return self;
        }
        let copy = self.copy();
        KEPT.lock().expect("nobody panics here").insert(what.to_owned(), Arc::new(self));
        copy
    }

    /// The database's address, as a user would write it.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether `CREATE EXTENSION vector` works here.
    pub fn has_vector(&self) -> bool {
        self.has_vector
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        block_on_aside(async {
            // A failure here must not hide what the test itself has to say.
            if let Ok(mut connection) = PgConnection::connect(server().as_str()).await {
                let _ = sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await;
            }
        });
    }
}

/// Abilities of the server, which are asked for once.
struct Abilities {
    vector: bool,
    /// From PostgreSQL 15 on.
    chooses_strategy: bool,
}

fn abilities() -> &'static Abilities {
    static ABILITIES: OnceLock<Abilities> = OnceLock::new();
    ABILITIES.get_or_init(|| {
        block_on_aside(async {
            let sql = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector'), \
                 current_setting('server_version_num')::int >= 150000";
            let asked = sqlx::query_as(sql).fetch_one(&mut connect().await).await;
            let (vector, chooses_strategy) = asked.expect("what the server can do");
            Abilities { vector, chooses_strategy }
        })
    })
}

async fn connect() -> PgConnection {
    let url = server();
    PgConnection::connect(url.as_str()).await.unwrap_or_else(|error| panic!("PostgreSQL for the tests: {error}"))
}

/// The server's address, with the lock that keeps a private server alive as long as this process.
struct Server {
    url: Url,
    _user: Option<File>,
}

fn server() -> &'static Url {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    match SERVER.get_or_init(find_server) {
        Ok(server) => &server.url,
        Err(reason) => panic!(
            "these tests need PostgreSQL.\n{reason}\nTo run the others alone, set MNEMOSCOPE_SKIP_POSTGRES=1: tests on \
             PostgreSQL then say SKIPPED."
        ),
    }
}

fn find_server() -> Result<Server, String> {
    match std::env::var("TEST_DATABASE_URL") {
        Ok(url) => {
            let url = Url::parse(&url).map_err(|error| format!("TEST_DATABASE_URL is no URL: {error}"))?;
            Ok(Server { url, _user: None })
        }
        Err(_) => share_private_server(),
    }
}

fn share_private_server() -> Result<Server, String> {
    let told = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let directory = server_directory().map_err(|error| told("a directory for the server", &error))?;
    let user = File::create(directory.join("users")).map_err(|error| told("the server's list of users", &error))?;
    user.lock_shared().map_err(|error| told("the server's list of users", &error))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres");
    let parent = std::os::unix::process::parent_id().to_string();
    let asked = Command::new(script).arg("share").arg(&directory).arg(parent).output();
    let output = asked.map_err(|error| told(script, &error))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let url = Url::parse(String::from_utf8_lossy(&output.stdout).trim()).map_err(|error| told(script, &error))?;
    Ok(Server { url, _user: Some(user) })
}

/// One directory for each user and checkout; in memory where that has room, which makes and deletes databases faster.
/// Not under `target`: a socket's path must be short, and when root runs the tests the server runs as someone else, who
/// may not enter every checkout.
fn server_directory() -> std::io::Result<PathBuf> {
    let uid = tempfile::tempfile()?.metadata()?.uid();
    let checkout = std::fs::metadata(env!("CARGO_MANIFEST_DIR"))?.ino();
    let memory = rustix::fs::statvfs("/dev/shm").is_ok_and(|place| place.f_bavail * place.f_frsize >= ROOM);
    let place = if memory { "/dev/shm" } else { "/tmp" };
    let directory = PathBuf::from(format!("{place}/mnemoscope-test-{uid}-{checkout}"));
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}
