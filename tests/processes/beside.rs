//! Other processes work on the database that is open here: whatever we do, SQLite keeps its locks, nothing of either side
//! is lost, and nobody waits longer than was said.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::agent;
use crate::support::block_on;
use crate::support::world::{author, ids_in, native, native_on_postgres, open, said, small};
use mnemoscope::change::findings::{self, FindingRequest};
use mnemoscope::change::operation::FeedbackFields;
use mnemoscope::change::purge::{self, Desk, PurgeOptions, Sink};
use mnemoscope::change::{self, ChangeError, anchor, audit, feedback, migrate, undo};
use mnemoscope::demo;
use mnemoscope::memory::Entity;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

const KEY: [u8; 32] = [7; 32];

/// Ranges of bytes that this process has locked in a file: first byte of each. None when the system does not tell. Each open
/// file tells its own locks: the list of all locks of the system may leave some out while others come and go.
fn locked(path: &Path) -> Option<Vec<u64>> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = std::fs::metadata(path).ok()?.ino().to_string();
    let opened = std::fs::read_dir("/proc/self/fdinfo").ok()?.flatten();
    let told = opened.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect::<String>();
    let first = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["lock:", _, "POSIX", _, _, _, file, first, _] = words[..] else { return None };
        (file.rsplit(':').next() == Some(&inode)).then(|| first.parse().ok())?
    };
    Some(told.lines().filter_map(first).collect())
}

/// First byte of the range that every connection of a WAL database keeps locked as long as it is open.
const SHARED: u64 = 0x4000_0002;
/// The byte of `-shm` that says that someone is there.
const SOMEBODY: u64 = 128;

struct Shop {
    folder: tempfile::TempDir,
    database: PathBuf,
    /// Rows that agents wrote.
    rows: u32,
}

impl Shop {
    /// Our locks are there, an agent comes, writes and goes, and they are still there, and the log is.
    fn stays_locked(&mut self, after: &str) {
        let shm = PathBuf::from(format!("{}-shm", self.database.display()));
        let wal = PathBuf::from(format!("{}-wal", self.database.display()));
        for when in ["", " and an agent's visit"] {
            let main = locked(&self.database).unwrap_or_default();
            assert!(main.contains(&SHARED), "after {after}{when} the lock on the database is gone: {main:?}");
            let beside = locked(&shm).unwrap_or_default();
            assert!(beside.contains(&SOMEBODY), "after {after}{when} the lock on -shm is gone: {beside:?}");
            assert!(wal.exists(), "after {after}{when} the log is gone");
            if when.is_empty() {
                self.rows += 3;
                agent::leaves_rows(&self.database, 3);
            }
        }
    }
}

async fn value(database: &Path, sql: &str) -> String {
    let mut link = SqliteConnection::connect(&format!("sqlite:{}", database.display())).await.expect("the database");
    let row = sqlx::query(AssertSqlSafe(format!("SELECT CAST(({sql}) AS TEXT)"))).fetch_one(&mut link).await;
    let value = row.expect(sql).get(0);
    link.close().await.expect("closed");
    value
}

#[test]
fn sqlite_keeps_its_locks_whatever_is_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("native.db");
    let options = demo::DemoOptions { episodes: 40, ..demo::DemoOptions::default() };
    block_on(demo::build(&database, &options, |_| {})).expect("the demo");
    if locked(&database).is_none() {
        eprintln!("skipped: this system does not list the locks on files");
        return;
    }
    let mut shop = Shop { folder, database, rows: 0 };
    block_on(async {
        let target = Target::File(shop.database.clone());
        let anchors = Some(shop.folder.path().join("anchors"));
        let chosen = OpenOptions { secret: Some(KEY), anchors, ..crate::support::options() };
        let store = Store::open(&target, &chosen).await.expect("it opens");
        shop.stays_locked("opening");
        migrate::apply(&store, &author(), None).await.expect("our tables");
        shop.stays_locked("migrating");
        let store = Store::open(&target, &chosen).await.expect("it opens again");
        shop.stays_locked("opening again");

        let id = ids_in(&store, Entity::Feedback).await.remove(0);
        let edited = said("rating", Some(2), Some("edited next to others"));
        let edit = change::plan_and_apply(&store, &author(), || feedback::edit(&store, &id, &edited, None)).await;
        let (_, receipt) = edit.expect("the edit");
        shop.stays_locked("an edit");
        let verdict = anchor::verify(&store, &[]).await.expect("the trail");
        assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
        anchor::keep(&store).await.expect("an anchor");
        shop.stays_locked("verifying the trail");
        let every = FindingRequest { examples: 10, ..FindingRequest::default() };
        findings::look(&store, &every, &mut |_| ControlFlow::Continue(())).await.expect("findings");
        shop.stays_locked("findings");

        let subjects = ids_in(&store, Entity::Subject).await;
        let (person, erased) = (&subjects[0], &subjects[1]);
        purge::bundle(&store, person, &PurgeOptions::default(), Sink::Folder(&shop.folder.path().join("bundle")))
            .await
            .expect("a bundle");
        shop.stays_locked("an export");
        let seq = receipt.audit_seq.expect("an entry");
        change::plan_and_apply(&store, &author(), || undo::undo(&store, seq)).await.expect("the undo");
        shop.stays_locked("an undo");

        let by = author();
        let state = shop.folder.path().join("state");
        let desk = Desk { folder: state, key: KEY, author: &by, progress: &|_, _| {}, forget_kept: &|_, _| Ok(()) };
        let receipt =
            purge::run(&store, erased, &PurgeOptions::default(), None, &desk, None).await.expect("the erasure");
        assert!(receipt.verification.bytes.checked, "{receipt:?}");
        shop.stays_locked("a purge with proof");
        purge::recheck(&store, &receipt.receipt_id, &desk).await.expect("the receipt again");
        shop.stays_locked("verifying a purge");

        let layouts = vec!["mnemoscope".to_owned()];
        let switched = Store::open(&target, &OpenOptions { layouts, ..chosen.clone() }).await.expect("by its layout");
        shop.stays_locked("switching the layout");
        drop(store);
        assert!(!ids_in(&switched, Entity::Episode).await.is_empty());
        shop.stays_locked("closing the first");
    });
    let database = shop.database.clone();
    assert_eq!(agent::rows(&database), i64::from(shop.rows));
    assert_eq!(agent::integrity(&database), "ok");
}

/// Checks how durably our transactions are committed, as a trigger sees it.
#[test]
fn what_is_done_is_on_disk() {
    block_on(async {
        for mode in ["WAL", "DELETE"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("native.db");
            demo::build(&path, &demo::DemoOptions { episodes: 24, ..demo::DemoOptions::default() }, |_| {})
                .await
                .expect("the demo");
            let mut link = crate::support::world::sqlite(&path).await;
            let watch = format!(
                "PRAGMA journal_mode = {mode}; CREATE TABLE seen (how INTEGER); CREATE TRIGGER watch AFTER UPDATE ON \
                 agent_feedback BEGIN INSERT INTO seen SELECT synchronous FROM pragma_synchronous; END"
            );
            sqlx::raw_sql(AssertSqlSafe(watch)).execute(&mut link).await.expect("the trigger");
            link.close().await.expect("closed");
            let world = crate::support::world::world(Target::File(path.clone()), folder, None).await;
            edit(&open(&world.target).await, "a word").await.expect("the edit");
            // EXTRA, which is FULL in WAL mode.
            assert_eq!(value(&path, "SELECT group_concat(DISTINCT how) FROM seen").await, "3", "{mode}");
        }
        let Some(world) = native_on_postgres().await else { return };
        let Target::Postgres(url) = &world.target else { panic!("a server") };
        let mut link = sqlx::PgConnection::connect(url).await.expect("the server");
        let watch = "CREATE TABLE seen (how text); CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$; \
             CREATE TRIGGER watch AFTER UPDATE ON agent_feedback FOR EACH ROW EXECUTE FUNCTION watch()";
        sqlx::raw_sql(watch).execute(&mut link).await.expect("the trigger");
        for (told, kept) in [("off", "on"), ("local", "local"), ("on", "on"), ("remote_apply", "remote_apply")] {
            let tell = format!(
                "DELETE FROM seen; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = {told}', \
                 current_database()); END $$"
            );
            sqlx::raw_sql(AssertSqlSafe(tell)).execute(&mut link).await.expect("the setting");
            edit(&open(&world.target).await, told).await.expect("the edit");
            let seen = sqlx::query("SELECT string_agg(DISTINCT how, ',') FROM seen").fetch_one(&mut link).await;
            assert_eq!(seen.expect("what the trigger saw").get::<String, _>(0), kept, "{told}");
        }
    });
}

#[test]
fn a_copy_of_the_file_alone_holds_what_a_command_did() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, copy) = (folder.path().join("native.db"), folder.path().join("copy.db"));
        let options = demo::DemoOptions { episodes: 24, ..demo::DemoOptions::default() };
        demo::build(&path, &options, |_| {}).await.expect("the demo");
        assert_eq!(value(&path, "SELECT journal_mode FROM pragma_journal_mode").await, "wal");
        let run = |words: &[&str]| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
            let ended = command.env("XDG_STATE_HOME", folder.path()).arg("-d").arg(&path).args(words).output();
            assert!(ended.as_ref().is_ok_and(|ended| ended.status.success()), "{words:?}: {ended:?}");
            std::fs::copy(&path, &copy).expect("copied");
        };
        run(&["migrate", "--apply"]);
        assert_eq!(value(&copy, "SELECT count(*) FROM memory_audit_head").await, "1");
        let id = value(&path, "SELECT min(id) FROM agent_feedback").await;
        run(&["feedback", "edit", &id, "--correction", "whole in one file", "--apply"]);
        let found = "SELECT count(*) FROM agent_feedback WHERE correction = 'whole in one file'";
        assert_eq!(value(&copy, found).await, "1");
    });
}

async fn edit(store: &Store, words: &str) -> Result<(), ChangeError> {
    edit_of(store, &ids_in(store, Entity::Feedback).await.remove(0), words).await
}

async fn edit_of(store: &Store, id: &str, words: &str) -> Result<(), ChangeError> {
    let edited = FeedbackFields { correction: Some(words.to_owned()), ..FeedbackFields::default() };
    change::plan_and_apply(store, &author(), || feedback::edit(store, id, &edited, None)).await.map(drop)
}

#[test]
fn a_file_that_was_replaced_moved_or_deleted_is_not_written() {
    block_on(async {
        let world = native().await;
        let Target::File(path) = &world.target else { panic!("a file") };
        edit(&world.store, "before").await.expect("an edit");
        let id = ids_in(&world.store, Entity::Feedback).await.remove(0);
        let with = |ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
        let files = || ["", "-wal", "-shm"].map(|ending| (with(ending), with(&format!(".aside{ending}"))));
        files().into_iter().for_each(|(at, aside)| std::fs::rename(at, aside).expect("moved"));
        let refused =
            edit_of(&world.store, &id, "into a file without a name").await.expect_err("its path is empty").to_string();
        assert!(refused.contains("no longer exists"), "{refused}");

        demo::build(path, &demo::DemoOptions { episodes: 24, ..demo::DemoOptions::default() }, |_| {})
            .await
            .expect("another");
        let other = std::fs::read(path).expect("the other file");
        let refused =
            edit_of(&world.store, &id, "into the wrong file").await.expect_err("its path is taken").to_string();
        assert!(refused.contains("another file has replaced"), "{refused}");
        assert_eq!(std::fs::read(path).expect("the other file"), other, "the other file is as it was");

        std::fs::remove_file(path).expect("removed");
        files().into_iter().for_each(|(at, aside)| std::fs::rename(aside, at).expect("moved back"));
        edit(&world.store, "after").await.expect("an edit");
        let words = "SELECT count(*) FROM agent_feedback WHERE correction IN ('into a file without a name', 'into the wrong file')";
        assert_eq!(value(path, words).await, "0");
        assert!(audit::verify(&open(&world.target).await, &[]).await.expect("the trail").faults.is_empty());
    });
}

#[test]
fn nobody_waits_longer_for_a_lock_than_was_said() {
    block_on(async {
        let world = small().await;
        let Target::File(path) = &world.target else { panic!("a file") };
        let options = OpenOptions { secret: Some(KEY), ..crate::support::options() };
        let (first, second) = (Store::open(&world.target, &options).await.expect("a store"), open(&world.target).await);
        let person = ids_in(&world.store, Entity::Subject).await.remove(0);
        let agent = agent::keeps_writing(path);
        let folder = tempfile::tempdir().expect("a folder");
        let by = author();
        let desk = Desk {
            folder: folder.path().to_owned(),
            key: KEY,
            author: &by,
            progress: &|_, _| {},
            forget_kept: &|_, _| Ok(()),
        };
        let began = Instant::now();
        let choices = PurgeOptions::default();
        let erasing = async { (purge::run(&first, &person, &choices, None, &desk, None).await, began.elapsed()) };
        let editing = async { (edit(&second, "a word").await, began.elapsed()) };
        let (erased, edited) = tokio::join!(erasing, editing);
        let all = [("the purge", erased.0.map(drop), erased.1), ("the edit", edited.0, edited.1)];
        for (what, outcome, took) in all {
            let words = outcome.expect_err("the agent holds the lock").to_string();
            assert!(words.contains("gave up after 12 s"), "{what}: {words}");
            assert!((11..=16).contains(&took.as_secs()), "{what} took {took:?}");
        }
        agent.kill();
        edit(&second, "a word").await.expect("nobody is in the way");
        assert!(Duration::from_secs(40) > began.elapsed());
    });
}

#[test]
fn nothing_is_written_or_read_as_a_file_of_the_database_by_any_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let database = at("native.db");
    block_on(demo::build(&database, &demo::DemoOptions { episodes: 24, ..demo::DemoOptions::default() }, |_| {}))
        .expect("demo");
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(crate::support::program());
        command.args(["-d"]).arg(&database).args(words).current_dir(folder.path()).stdin(std::process::Stdio::null());
        let out =
            command.env("MNEMOSCOPE_STATE", at("state")).env("HOME", folder.path()).output().expect("the program");
        (out.status.code().expect("a code"), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(run(&["migrate", "--apply"]).0, 0);
    // An agent keeps the log and its index there.
    let agent = agent::keeps_writing(&database);
    std::fs::hard_link(&database, at("linked")).expect("a link");
    std::os::unix::fs::symlink(&database, at("symbolic")).expect("a link");
    let main = std::fs::read(&database).expect("its bytes");
    for name in ["native.db", "native.db-wal", "native.db-shm", "native.db-journal", "linked", "symbolic"] {
        let id =
            block_on(async { ids_in(&open(&Target::File(database.clone())).await, Entity::Feedback).await.remove(0) });
        let writes: [&[&str]; 2] = [
            &["feedback", "edit", &id, "--rating", "2", "--kind", "rating", "--plan-out", name],
            &["audit", "anchor", name],
        ];
        for words in writes {
            let (code, said) = run(words);
            assert!(code != 0 && !said.contains("unexpected argument"), "{words:?}: {said}");
        }
        let reads: [&[&str]; 3] =
            [&["apply", name], &["audit", "verify", "--anchor", name], &["purge", "verify", name]];
        for words in reads {
            let (code, said) = run(words);
            assert!(code != 0 && !said.contains("unexpected argument"), "{words:?}: {said}");
        }
    }
    assert!(!at("native.db-journal").exists());
    agent.kill();
    assert_eq!(std::fs::read(&database).expect("its bytes"), main);
    assert_eq!(agent::integrity(&database), "ok");
}

#[test]
fn what_a_killed_process_left_in_a_journal_is_rolled_back_before_anything_is_read() {
    const KILLED: &str = "import os, sqlite3, sys\n\
        c = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
        c.execute('PRAGMA journal_mode = DELETE')\n\
        c.execute('PRAGMA cache_size = 2')\n\
        c.execute('BEGIN IMMEDIATE')\n\
        c.execute(\"UPDATE episode_segments SET content = content || 'HALF'\")\n\
        c.execute(\"UPDATE episodes SET summary = 'HALF'\")\n\
        os.kill(os.getpid(), 9)\n";
    block_on(async {
        let world = small().await;
        let Target::File(database) = &world.target else { panic!("a file") };
        drop(world.store);
        let killed = std::process::Command::new("python3").args(["-c", KILLED]).arg(database).status();
        assert!(!killed.expect("python3").success());
        let journal = PathBuf::from(format!("{}-journal", database.display()));
        assert!(std::fs::metadata(&journal).is_ok_and(|about| about.len() > 0), "a journal is left to roll back");
        let store = open(&world.target).await;
        assert!(store.why_not_writable().is_none(), "{:?}", store.why_not_writable());
        assert_eq!(value(database, "SELECT count(*) FROM episodes WHERE summary = 'HALF'").await, "0");
        assert_eq!(value(database, "SELECT integrity_check FROM pragma_integrity_check").await, "ok");
    });
}

/// Checks that nothing more is written to a deleted log, where nobody else would ever see it.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_was_deleted_under_the_open_database_is_not_written_to() {
    block_on(async {
        for ending in ["-wal", "-shm"] {
            let world = native().await;
            let Target::File(path) = &world.target else { panic!("a file") };
            edit(&world.store, "before").await.expect("an edit");
            let id = ids_in(&world.store, Entity::Feedback).await.remove(0);
            std::fs::remove_file(format!("{}{ending}", path.display())).expect("it was there");
            let refused = edit_of(&world.store, &id, "into nowhere").await.expect_err("a deleted log").to_string();
            assert!(refused.contains("was deleted while the database is open"), "{refused}");
        }
    });
}
