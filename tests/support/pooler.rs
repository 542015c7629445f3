//! pgbouncer in front of the tests' PostgreSQL, in transaction mode and otherwise with its defaults.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use url::Url;

/// A running pooler. It ends when this value is dropped.
pub struct Pooler {
    process: Child,
    url: Url,
    folder: tempfile::TempDir,
}

/// Says on the terminal why a test does nothing: the harness would swallow `eprintln!`, and a skipped test must not look
/// like a passed one.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED ({why}): {test}");
}

/// A port of this machine on which nobody listens.
pub fn free_port() -> u16 {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    probe.local_addr().expect("its number").port()
}

/// Whether a program can be run; where that is not in the path of all, its folder is tried too.
pub fn program(name: &str) -> Option<String> {
    let candidates = [name.to_owned(), format!("/usr/sbin/{name}")];
    let runs = |path: &&String| Command::new(path).arg("--version").output().is_ok_and(|o| o.status.success());
    candidates.iter().find(runs).cloned()
}

impl Pooler {
    /// Starts one with this many connections to the server of a database; none, and a word on the terminal, where there is
    /// no pgbouncer.
    pub fn over(database: &str, connections: u32, settings: &str) -> Option<Pooler> {
        let Some(program) = program("pgbouncer") else {
            skipped("there is no pgbouncer: apt install pgbouncer");
            return None;
        };
        let server = Url::parse(database).expect("a URL");
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let host = percent_encoding::percent_decode_str(server.host_str().unwrap_or("localhost")).decode_utf8_lossy();
        let (user, server_port) = (server.username(), server.port().unwrap_or(5432));
        let password = server.password().map(|p| format!(" password='{p}'")).unwrap_or_default();
        let config = format!(
            "[databases]\n* = host={host} port={server_port} user={user}{password}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {connections}\n{settings}\n"
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, config).expect("its settings");
        let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
        open(folder.path(), 0o755).and_then(|()| open(&file, 0o644)).expect("readable settings");
        let mut command = Command::new(program);
        // It refuses to run as root.
        if std::fs::metadata(&file).expect("the file").uid() == 0 {
            command.args(["-u", "nobody"]);
        }
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let process = command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let process = process.expect("pgbouncer");
        let mut url = Url::parse(&format!("postgres://{user}@127.0.0.1:{port}")).expect("a URL");
        url.set_path(server.path());
        let pooler = Pooler { process, url, folder };
        pooler.wait(port);
        Some(pooler)
    }

    fn wait(&self, port: u16) {
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "pgbouncer does not answer:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The database's address by way of the pooler.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
