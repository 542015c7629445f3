//! One person erased from several databases by one command: found in each by what another knows, each with its own status,
//! and one that cannot be reached makes the whole incomplete until it can.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::asking::assert_fits;
use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres, build_sqlite};
use crate::support::postgres::Database;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};

/// Rows that name the person whole.
const WHOLE: &str = "SELECT (SELECT count(*) FROM turn_facts WHERE user_id = 'user-ana') \
                     + (SELECT count(*) FROM users WHERE id = 'user-ana')";

struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(["--format", "json"]).args(arguments).stdin(Stdio::null());
        command.env("MNEMOSCOPE_STATE", self.path("state"));
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, Value, String) {
        let done = self.command(arguments).output().expect("the program");
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default(), words)
    }

    /// A fleet file with these labels and places.
    fn file(&self, name: &str, members: &[(&str, &str)]) -> String {
        let entry = |(label, url): &(&str, &str)| format!("[[database]]\nurl = \"{url}\"\nlabel = \"{label}\"\n");
        std::fs::write(self.path(name), members.iter().map(entry).collect::<String>()).expect("the file");
        self.path(name)
    }

    /// The number that a statement gives in one of the databases.
    fn number(&self, name: &str, sql: &'static str) -> i64 {
        block_on(async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.path(name));
            let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
            let number = sqlx::query_scalar(sql).fetch_one(&mut link).await.expect("a number");
            link.close().await.expect("closed");
            number
        })
    }

    /// Names of the files in a folder of the state, without their endings.
    fn kept(&self, folder: &str, ending: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path().join("state").join(folder)).into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
    }

    /// Whether a purge has its first receipt and works on the next database.
    fn has_gone_on(&self) -> bool {
        let Some(id) = self.kept("receipts", ".json").pop() else { return false };
        let path = self.folder.path().join("state/receipts").join(format!("{id}.json"));
        let receipt: Value = serde_json::from_slice(&std::fs::read(path).unwrap_or_default()).unwrap_or_default();
        let sessions = self.kept("purges", ".session");
        let others = sessions.iter().filter(|name| !name.starts_with("fleet-") && receipt["session"] != name.as_str());
        receipt["session"].is_string() && others.count() > 0
    }

    /// A database with our tables in it, in which the person has another id.
    async fn add(&self, name: &str, layout: Layout, id: &str) {
        self.add_bare(name, layout, id).await;
        assert_eq!(self.run(&["-d", &self.path(name), "migrate", "--apply"]).0, Some(0));
    }

    /// The same without our tables.
    async fn add_bare(&self, name: &str, layout: Layout, id: &str) {
        let path = self.path(name);
        build_sqlite(layout, Path::new(&path)).await;
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        let columns =
            "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
        for row in sqlx::query(columns).fetch_all(&mut link).await.expect("columns") {
            let (table, column): (String, String) = (row.get(0), row.get(1));
            let sql = format!("UPDATE \"{table}\" SET \"{column}\" = '{id}' WHERE \"{column}\" = 'user-ana'");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("another id");
        }
        link.close().await.expect("closed");
    }
}

fn statuses(answer: &Value) -> Vec<(&str, &str)> {
    let entries = answer["databases"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry["label"].as_str()?, entry["status"].as_str()?))).collect()
}

#[test]
fn a_person_is_erased_from_every_database_by_one_command() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add("b.db", Layout::Atom2026, "person-77").await;
        fleet.add("d.db", Layout::Pyworkflow, "nobody-here").await;
    });
    let file = fleet.path("fleet.toml");
    let text = "[[database]]\nurl = \"a.db\"\nlabel = \"a\"\n[[database]]\nurl = \"b.db\"\nlabel = \"b\"\n\
        [[database]]\nurl = \"c.db\"\nlabel = \"c\"\n[[database]]\nurl = \"d.db\"\nlabel = \"d\"\n";
    std::fs::write(&file, text).expect("the file");
    let asked = ["user-ana", "--fleet", &file, "--account", "erase", "--mentions", "redact"];
    let purge = |more: &[&str]| fleet.run(&[&["purge"][..], &asked, more].concat());

    let (code, plan, words) = purge(&[]);
    assert_eq!(statuses(&plan), [("a", "planned"), ("b", "planned"), ("c", "unreachable"), ("d", "not found")]);
    assert_eq!((code, plan["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    assert_fits("fleet_plan", &plan);
    assert_fits("purge_plan", &plan["databases"][0]["plan"]);
    assert!(words.contains("c is unreachable") && words.contains("c.db"), "{words}");
    assert!(plan["counts"].as_object().is_some_and(|counts| counts.keys().any(|key| key.starts_with("b/"))));

    // A hold in one database holds in all of them.
    let b = fleet.path("b.db");
    assert_eq!(fleet.run(&["-d", &b, "hold", "person-77", "--apply"]).0, Some(0));
    let (code, _, words) = purge(&["--apply"]);
    assert!(code == Some(5) && words.contains("nothing was erased anywhere"), "{code:?} {words}");
    assert_eq!(fleet.run(&["-d", &b, "unhold", "person-77", "--apply"]).0, Some(0));

    let (code, receipt, words) = purge(&["--apply"]);
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "verified"), ("c", "unreachable"), ("d", "not found")]);
    assert_eq!((code, receipt["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    for (table, count) in plan["counts"].as_object().expect("counts") {
        assert_eq!(&receipt["counts"][table], count, "{table}");
    }
    assert_fits("purge_receipt", &receipt["databases"][0]["receipt"]);
    let text = receipt.to_string();
    assert!(!text.contains("user-ana") && !text.contains("person-77") && !text.contains("ana.ruiz"), "{text}");
    assert_eq!(receipt["verification"]["bytes"]["hits"], 0);

    // The one that was missing comes back.
    block_on(fleet.add("c.db", Layout::Atom, "user-ana"));
    let (code, receipt, words) = purge(&["--resume"]);
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "verified"), ("c", "verified"), ("d", "not found")]);
    assert_eq!((code, receipt["status"].as_str()), (Some(0), Some("verified")), "{words}");
    let id = receipt["receipt_id"].as_str().expect("an id");
    let (code, answer, words) = fleet.run(&["purge", "verify", id, "--fleet", &file]);
    assert_eq!((code, answer["status"].as_str()), (Some(0), Some("verified")), "{words}");
    assert_eq!(statuses(&answer), [("a", "verified"), ("b", "verified"), ("c", "verified"), ("d", "not found")]);
    assert_fits("purge_verify", &answer["databases"][0]["answer"]);
    let (code, _, words) = purge(&[]);
    assert_eq!(code, Some(3), "{words}");
}

#[test]
fn a_file_that_names_no_fleet_is_refused_with_its_line() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    let file = fleet.path("fleet.toml");
    let purge = || fleet.run(&["purge", "someone", "--fleet", &file]);
    assert_eq!(purge().0, Some(3), "there is no such file");
    std::fs::write(&file, "[[database]]\nlabel = \"x\"\n").expect("the file");
    let (code, _, words) = purge();
    assert!(code == Some(2) && words.contains("fleet.toml:1") && words.contains("url"), "{code:?} {words}");
}

#[test]
fn resuming_finishes_where_nothing_was_begun_by_the_choices_of_the_first_run() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(fleet.add("a.db", Layout::Atom, "user-ana"));
    let server = Database::fresh();
    let mut members = vec![("a", "a.db"), ("c", "c.db")];
    // Nobody listens at port 1.
    members.extend(server.as_ref().map(|_| ("p", "postgres://127.0.0.1:1/absent")));
    let file = fleet.file("fleet.toml", &members);
    let choices = ["--alias", "Ana Ruiz", "--account", "erase", "--mentions", "redact", "--apply"];
    let (code, first, words) = fleet.run(&[&["purge", "user-ana", "--fleet", &file][..], &choices].concat());
    assert_eq!((code, first["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    assert_eq!(statuses(&first)[..2], [("a", "verified"), ("c", "unreachable")]);
    let error: Value = serde_json::from_str(&words).expect("JSON");
    let resume = format!("mnemoscope purge user-ana --fleet {file} --resume");
    assert_eq!(error["error"]["remedy"], resume.as_str(), "{words}");
    assert_fits("fleet_receipt", &first);
    let missing = |key: &&String| first.get(key).is_none();
    assert_eq!(schema_keys("receipt").iter().find(missing), None);
    let verify = |receipt: &Value, file: &str| {
        let (code, answer, words) =
            fleet.run(&["purge", "verify", receipt["receipt_id"].as_str().expect("an id"), "--fleet", file]);
        assert_fits("fleet_verify", &answer);
        (code, answer, words)
    };
    let (code, answer, words) = verify(&first, &file);
    assert_eq!((code, answer["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    assert_eq!(statuses(&answer)[..2], [("a", "verified"), ("c", "unreachable")]);

    // They come back, and the person is whole in them.
    block_on(fleet.add("c.db", Layout::Atom, "user-ana"));
    if let Some(server) = &server {
        block_on(build_postgres(Layout::Atom, server.url()));
        assert_eq!(fleet.run(&["-d", server.url(), "migrate", "--apply"]).0, Some(0));
        members[2].1 = server.url();
    }
    let file = fleet.file("fleet.toml", &members);
    let (code, answer, words) = verify(&first, &file);
    assert_eq!((code, answer["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    for entry in &answer["databases"].as_array().expect("databases")[1..] {
        assert_eq!(entry["status"], "incomplete", "{entry}");
        assert!(entry["found"]["logical"]["owned"].as_u64() > Some(0), "{entry}");
    }

    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    let mut expected = vec![("a", "verified"), ("c", "verified")];
    // The bytes of a server are not looked at.
    expected.extend(server.as_ref().map(|_| ("p", "verified with disclosures")));
    assert_eq!((code, statuses(&receipt)), (Some(0), expected.clone()), "{words}");
    assert_fits("fleet_receipt", &receipt);
    assert!(!receipt.to_string().contains("user-ana") && !receipt.to_string().contains("Ruiz"), "{receipt}");
    for (entry, label) in receipt["databases"].as_array().expect("databases").iter().zip(["a/", "c/", "p/"]) {
        assert_eq!(entry["receipt"]["account"], "erase", "{entry}");
        assert_eq!(entry["receipt"]["mentions"], "redact", "{entry}");
        assert!(receipt["counts"].as_object().is_some_and(|counts| counts.keys().any(|key| key.starts_with(label))));
    }
    assert_eq!((fleet.number("a.db", WHOLE), fleet.number("c.db", WHOLE)), (0, 0));
    if let Some(server) = &server {
        let left: i64 = block_on(async {
            let mut link = PgConnection::connect(server.url()).await.expect("the server");
            sqlx::query_scalar(WHOLE).fetch_one(&mut link).await.expect("a number")
        });
        assert_eq!(left, 0);
    }
    let (code, answer, words) = verify(&receipt, &file);
    assert_eq!((code, statuses(&answer)), (Some(0), expected), "{words}");
    assert_eq!(answer["status"], receipt["status"]);
    // What ended incomplete stays so, whatever was done since.
    assert_eq!(verify(&first, &file).0, Some(6));
    let (code, _, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    assert!(code == Some(3) && words.contains("no person in any of"), "{code:?} {words}");
}

/// Keys that a schema asks for.
fn schema_keys(name: &str) -> Vec<String> {
    let schema = mnemoscope::memory::schema::schema(name).expect("a schema");
    let keys = schema["required"].as_array().expect("keys").iter();
    keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

#[test]
fn choices_that_nobody_kept_are_asked_for() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(fleet.add("a.db", Layout::Atom, "user-ana"));
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("c", "c.db")]);
    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--apply"]);
    let expected = [("a", "verified with disclosures"), ("c", "unreachable")];
    assert_eq!((code, statuses(&receipt)), (Some(6), expected.to_vec()), "{words}");
    // The account was kept by choice: that stays said, and nothing is done about it again.
    let (code, again, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    assert_eq!((code, statuses(&again)), (Some(6), expected.to_vec()), "{words}");
    let id = |receipt: &Value| receipt["databases"][0]["receipt"]["receipt_id"].clone();
    assert_eq!(id(&again), id(&receipt));
    block_on(fleet.add("c.db", Layout::Atom, "user-ana"));
    // Another file is another fleet: what was chosen for it is not known.
    let other = fleet.file("other.toml", &[("a", "a.db"), ("c", "c.db")]);
    let whole = fleet.number("c.db", WHOLE);
    let (code, _, words) = fleet.run(&["purge", "user-ana", "--fleet", &other, "--resume"]);
    assert!(code == Some(2) && words.contains("--apply and your choices"), "{code:?} {words}");
    assert!(whole > 0 && fleet.number("c.db", WHOLE) == whole);
    let repeated = ["--account", "erase", "--mentions", "redact", "--resume"];
    let (code, receipt, words) = fleet.run(&[&["purge", "user-ana", "--fleet", &other][..], &repeated].concat());
    let both = vec![("a", "verified"), ("c", "verified")];
    assert_eq!((code, statuses(&receipt)), (Some(0), both.clone()), "{words}");
    assert_eq!(fleet.number("c.db", WHOLE), 0);
    // What was erased meanwhile has its receipt.
    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    assert_eq!((code, statuses(&receipt)), (Some(0), both), "{words}");
}

#[test]
fn a_purge_that_was_killed_between_two_databases_is_finished_in_all() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        for name in ["a.db", "b.db", "c.db"] {
            fleet.add(name, Layout::Atom, "user-ana").await;
        }
    });
    let members = [("a", "a.db"), ("b", "b.db"), ("c", "c.db")];
    let file = fleet.file("fleet.toml", &members);
    // Another process writes to the second one, so that the purge waits there.
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(fleet.path("b.db"));
    let mut writer = block_on(async {
        let mut writer = SqliteConnection::connect_with(&options).await.expect("the file");
        sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.expect("a lock");
        writer
    });
    let asked = ["purge", "user-ana", "--fleet", &file, "--account", "erase", "--mentions", "redact", "--apply"];
    let mut erasing = fleet.command(&asked).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
    while !fleet.has_gone_on() {
        assert!(erasing.try_wait().expect("a state").is_none(), "it ended");
        std::thread::yield_now();
    }
    erasing.kill().expect("killed");
    erasing.wait().expect("ended");
    block_on(async { sqlx::query("ROLLBACK").execute(&mut writer).await.expect("no lock") });
    block_on(writer.close()).expect("closed");
    assert_eq!(fleet.number("a.db", WHOLE), 0);
    assert!(fleet.number("b.db", WHOLE) > 0 && fleet.number("c.db", WHOLE) > 0);

    // By another file, what was begun is known, and what was chosen for the rest is not.
    let other = fleet.file("other.toml", &members);
    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &other, "--resume"]);
    assert_eq!(statuses(&receipt), [("a", "not found"), ("b", "verified"), ("c", "refused")], "{words}");
    assert!(code == Some(6) && words.contains("repeat them with --resume"), "{code:?} {words}");

    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    let all = [("a", "verified"), ("b", "verified"), ("c", "verified")];
    assert_eq!((code, statuses(&receipt)), (Some(0), all.to_vec()), "{words}");
    for (_, name) in members {
        assert_eq!(fleet.number(name, WHOLE), 0, "{name}");
    }
    let id = receipt["receipt_id"].as_str().expect("an id");
    let (code, answer, words) = fleet.run(&["purge", "verify", id, "--fleet", &file]);
    assert_eq!((code, statuses(&answer)), (Some(0), all.to_vec()), "{words}");
}

#[test]
fn a_fleet_file_that_changes_between_runs_hides_no_database() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(fleet.add("a.db", Layout::Atom, "user-ana"));
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("c", "c.db")]);
    let choices = ["--account", "erase", "--mentions", "redact", "--apply"];
    assert_eq!(fleet.run(&[&["purge", "user-ana", "--fleet", &file][..], &choices].concat()).0, Some(6));
    let resume = || fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);

    // One is removed before it was reached, and another is new.
    block_on(fleet.add("d.db", Layout::Atom2026, "person-77"));
    fleet.file("fleet.toml", &[("a", "a.db"), ("d", "d.db")]);
    let (code, receipt, words) = resume();
    assert_eq!(statuses(&receipt), [("a", "verified"), ("d", "verified"), ("c", "unreachable")], "{words}");
    assert!(code == Some(6) && words.contains("the fleet file does not name it"), "{code:?} {words}");

    // Names are only names.
    block_on(fleet.add("c.db", Layout::Atom, "user-ana"));
    fleet.file("fleet.toml", &[("new", "d.db"), ("alpha", "a.db"), ("gamma", "c.db")]);
    let (code, receipt, words) = resume();
    let all = [("new", "verified"), ("alpha", "verified"), ("gamma", "verified")];
    assert_eq!((code, statuses(&receipt)), (Some(0), all.to_vec()), "{words}");
    assert_eq!(fleet.number("c.db", WHOLE), 0);

    // A later look names what no longer exists, and what the receipt has nothing of.
    let id = receipt["receipt_id"].as_str().expect("an id").to_owned();
    let verify = || fleet.run(&["purge", "verify", &id, "--fleet", &file]);
    assert_eq!(verify().0, Some(0));
    block_on(fleet.add("e.db", Layout::Atom, "user-ana"));
    fleet.file("fleet.toml", &[("a", "a.db"), ("c", "c.db"), ("e", "e.db"), ("f", "f.db")]);
    let (code, answer, words) = verify();
    assert_eq!((code, answer["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    let expected =
        [("a", "verified"), ("c", "verified"), ("e", "incomplete"), ("f", "unreachable"), ("new", "unreachable")];
    assert_eq!(statuses(&answer), expected, "{words}");
}

#[test]
fn nothing_is_erased_while_one_database_takes_no_changes_and_what_texts_hold_is_finished_later() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add_bare("b.db", Layout::Atom, "user-ana").await;
        fleet.add("d.db", Layout::Pyworkflow, "user-ana").await;
    });
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("b", "b.db"), ("d", "d.db")]);
    // Texts of the third name the person, who is nobody there.
    let note = "INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, error) VALUES \
                ('run-90', 'notes', 'failed', '2026-10-20T07:00:00+00:00', '2026-10-20T07:00:00+00:00', \
                'asked for by user-ana') RETURNING 1";
    assert_eq!(fleet.number("d.db", note), 1);
    let (_, plan, words) = fleet.run(&["purge", "user-ana", "--fleet", &file]);
    let [a, b] = [0, 1].map(|at| &plan["databases"][at]);
    assert!(a["error"].is_null() && b["status"] == "planned", "{words} {plan}");
    for told in [&b["error"], &b["plan"]["disclosures"]] {
        assert!(told.to_string().contains("not be applied yet") && told.to_string().contains("migrate --apply"), "{b}");
    }
    let choices = ["--account", "erase", "--mentions", "redact", "--apply"];
    let apply = || fleet.run(&[&["purge", "user-ana", "--fleet", &file][..], &choices].concat());
    let (code, _, words) = apply();
    assert!(code == Some(5) && words.contains("b: ") && words.contains("migrate --apply"), "{code:?} {words}");
    assert!(words.contains("nothing was erased anywhere") && fleet.number("a.db", WHOLE) > 0, "{words}");

    assert_eq!(fleet.run(&["-d", &fleet.path("b.db"), "migrate", "--apply"]).0, Some(0));
    let (code, receipt, words) = apply();
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "verified"), ("d", "incomplete")], "{words}");
    assert!(code == Some(6) && words.contains("workflow_runs.error (1)"), "{code:?} {words}");
    let verify = |receipt: &Value| {
        fleet.run(&["purge", "verify", receipt["receipt_id"].as_str().expect("an id"), "--fleet", &file])
    };
    let (code, answer, words) = verify(&receipt);
    assert_eq!(code, Some(6), "{words}");
    assert_eq!(statuses(&answer), [("a", "verified"), ("b", "verified"), ("d", "incomplete")], "{words}");

    // To leave them is a choice, which is said.
    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--mentions", "leave", "--resume"]);
    assert_eq!(receipt["status"], "verified with disclosures", "{words}");
    assert_eq!((code, statuses(&receipt)[2]), (Some(0), ("d", "not found")), "{words}");
    assert!(
        receipt["disclosures"].to_string().contains("d: no person is known by that name, but texts contain it"),
        "{receipt}"
    );
    assert_eq!(fleet.number("b.db", WHOLE), 0);
    let (code, answer, words) = verify(&receipt);
    assert_eq!((code, answer["status"].as_str()), (Some(0), Some("verified with disclosures")), "{words}");
}

#[test]
fn a_short_id_leads_to_nobody_in_another_database() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "u-77").await;
        fleet.add("b.db", Layout::Atom2026, "u-77").await;
    });
    let another = "UPDATE users SET email = 'zoe@initech.example', first_name = 'Zoe', last_name = 'Low' \
                   WHERE id = 'u-77' RETURNING 1";
    assert_eq!(fleet.number("b.db", another), 1);
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("b", "b.db")]);
    let (_, plan, words) = fleet.run(&["purge", "ana.ruiz@initech.example", "--fleet", &file]);
    assert_eq!(statuses(&plan), [("a", "planned"), ("b", "not found")], "{words}");
}

#[test]
fn what_one_database_knows_of_the_person_is_looked_for_in_all() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add("b.db", Layout::Atom, "user-ana").await;
    });
    let named = "SELECT count(*) FROM turn_facts WHERE fact_text LIKE '%ana.ruiz@initech.example%'";
    let other = "UPDATE users SET email = 'old@initech.example' WHERE id = 'user-ana' RETURNING 1";
    let plant = "INSERT INTO turn_facts (id, workspace_id, user_id, fact_text, status) \
                 VALUES ('fact-9', 'space', 'user-ben', 'ask ana.ruiz@initech.example', 'active') RETURNING 1";
    assert_eq!((fleet.number("b.db", other), fleet.number("b.db", plant)), (1, 1));
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("b", "b.db")]);
    let asked = ["purge", "user-ana", "--fleet", &file, "--account", "erase", "--mentions", "redact", "--apply"];
    let (code, receipt, words) = fleet.run(&asked);
    assert_eq!((code, statuses(&receipt)), (Some(0), vec![("a", "verified"), ("b", "verified")]), "{words}");
    assert_eq!(fleet.number("b.db", named), 0);
}

#[test]
fn what_a_database_forgot_of_the_person_must_be_gone_from_its_bytes() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add("b.db", Layout::Atom, "user-ana").await;
        // The application deletes its rows itself; the engine leaves their bytes where they are.
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(fleet.path("b.db")).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        sqlx::raw_sql("PRAGMA secure_delete = OFF").execute(&mut link).await.expect("bytes that stay");
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'memory_%' \
                      AND name NOT LIKE 'sqlite_%'";
        for row in sqlx::query(tables).fetch_all(&mut link).await.expect("tables") {
            let sql = format!("DELETE FROM \"{}\"", row.get::<String, _>(0));
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("no rows");
        }
        sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut link).await.expect("one file");
        link.close().await.expect("closed");
    });
    let holds = || {
        let bytes = std::fs::read(fleet.path("b.db")).expect("the file");
        memchr::memmem::find_iter(&bytes, "user-ana").count()
    };
    assert!(holds() > 0);
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("b", "b.db")]);
    let choices = ["--account", "erase", "--mentions", "redact", "--apply"];
    let (code, receipt, words) = fleet.run(&[&["purge", "user-ana", "--fleet", &file][..], &choices].concat());
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "incomplete")], "{words}");
    assert!(code == Some(6) && words.contains("among the bytes") && words.contains("VACUUM"), "{code:?} {words}");
    assert!(!receipt.to_string().contains("user-ana"), "{receipt}");

    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(fleet.path("b.db"));
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        sqlx::raw_sql("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut link).await.expect("written again");
        link.close().await.expect("closed");
    });
    assert_eq!(holds(), 0);
    let (code, receipt, words) = fleet.run(&["purge", "user-ana", "--fleet", &file, "--resume"]);
    assert_eq!((code, receipt["status"].as_str()), (Some(0), Some("verified")), "{words}");
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "not found")]);
}

#[test]
fn an_erasure_that_waits_in_one_database_keeps_the_whole_from_being_verified() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add("b.db", Layout::Atom, "user-ana").await;
    });
    let choices = ["--account", "erase", "--mentions", "redact", "--apply"];
    std::fs::copy(fleet.path("a.db"), fleet.path("before.db")).expect("a copy");
    let (b, file) = (fleet.path("b.db"), fleet.file("fleet.toml", &[("a", "a.db"), ("b", "b.db")]));
    let in_b = [&["-d", &b, "purge", "user-ana"][..], &choices].concat();
    assert_eq!(fleet.run(&in_b).0, Some(0));
    let in_all = [&["purge", "user-ana", "--fleet", &file][..], &choices].concat();
    let (code, receipt, words) = fleet.run(&in_all);
    assert_eq!((code, statuses(&receipt)), (Some(0), vec![("a", "verified"), ("b", "not found")]), "{words}");
    let verify = ["purge", "verify", receipt["receipt_id"].as_str().expect("an id"), "--fleet", &file];
    assert_eq!(fleet.run(&verify).0, Some(0));

    // As a run leaves it that was killed after its last batch: no row is the person's, nothing is proved.
    assert_eq!(fleet.number("b.db", "UPDATE memory_purges SET status = 'running' RETURNING 1"), 1);
    let (code, answer, words) = fleet.run(&verify);
    assert_eq!((code, statuses(&answer)), (Some(6), vec![("a", "verified"), ("b", "incomplete")]), "{words}");
    assert!(words.contains("did not end as verified"), "{words}");
    std::fs::copy(fleet.path("before.db"), fleet.path("a.db")).expect("a restored backup");
    let (code, _, words) = fleet.run(&in_all);
    assert!(code == Some(5) && words.contains("b: ") && words.contains("--resume"), "{code:?} {words}");
    assert!(words.contains("nothing was erased anywhere") && fleet.number("a.db", WHOLE) > 0, "{words}");
}

#[test]
fn nothing_is_erased_while_a_role_may_not_write_in_one_database() {
    let Some(server) = Database::fresh() else { return };
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        build_postgres(Layout::Atom, server.url()).await;
    });
    assert_eq!(fleet.run(&["-d", server.url(), "migrate", "--apply"]).0, Some(0));
    let role = format!("eraser_{:08x}", rand::random::<u32>());
    let sql = |sql: &str| {
        let sql = sql.replace("$role", &role);
        block_on(async {
            let mut link = PgConnection::connect(server.url()).await.expect("the server");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("done");
        });
    };
    sql("CREATE ROLE $role LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA public TO $role; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO $role; REVOKE DELETE ON turn_facts FROM $role");
    let mut url = url::Url::parse(server.url()).expect("a URL");
    url.set_username(&role).and_then(|()| url.set_password(Some("x"))).expect("a user");
    let file = fleet.file("fleet.toml", &[("a", "a.db"), ("p", url.as_str())]);
    let choices = ["--account", "erase", "--mentions", "redact"];
    let purge = |more: &[&str]| fleet.run(&[&["purge", "user-ana", "--fleet", &file][..], &choices, more].concat());
    let refused = |expected: &str| {
        let (code, _, words) = purge(&["--apply"]);
        assert!(code == Some(5) && words.contains("p: ") && words.contains(expected), "{code:?} {words}");
        assert!(words.contains("nothing was erased anywhere") && fleet.number("a.db", WHOLE) > 0, "{words}");
    };
    let told = |plan: &Value| plan["databases"][1]["error"].as_str().unwrap_or_default().to_owned();
    let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON turn_facts TO {role}");
    let (code, plan, words) = purge(&[]);
    assert!(code == Some(0) && told(&plan).contains(&grant), "{code:?} {words} {plan}");
    refused(&grant);
    sql(&grant);
    sql("REVOKE INSERT ON memory_purges FROM $role");
    refused("memory_purges");
    sql("GRANT INSERT ON memory_purges TO $role");
    assert_eq!(told(&purge(&[]).1), "");
    sql("ALTER ROLE $role SET default_transaction_read_only = on");
    refused("default_transaction_read_only");
    sql("DROP OWNED BY $role; DROP ROLE $role");
}

/// Two layouts: notes, whose rows name the person, and a log, whose rows name a note only.
const NOTES: &str = "name = 'notes'\ntitle = 'Notes'\nengines = ['sqlite']\nrequires = ['notes/person']\n\
     [[memory]]\nlabel = 'notes'\ntable = 'notes'\n[memory.columns]\nid = 'id'\ntext = 'body'\nuser_id = 'person'\n\
     [[erase]]\ntable = 'notes'\ncolumn = 'person'\n";
const LOG: &str = "name = 'note-log'\ntitle = 'Log of notes'\nengines = ['sqlite']\nrequires = ['log/note']\n\
     [[audit_entry]]\nlabel = 'log'\ntable = 'log'\n[audit_entry.columns]\nid = 'id'\naction = 'event'\n\
     [[erase]]\ntable = 'log'\ncolumn = 'who'\n[[erase]]\ntable = 'log'\ncolumn = 'note'\nof_layout = 'notes'\n";

#[test]
fn rows_that_go_with_those_of_another_database_are_exported_first() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    let notes = "CREATE TABLE notes (id TEXT PRIMARY KEY, person TEXT, body TEXT); INSERT INTO notes VALUES \
         ('note-0001', 'ada-1', 'one'), ('note-0002', 'ada-1', 'two'), ('note-0003', 'bo-22', 'three')";
    let log = "CREATE TABLE log (id TEXT PRIMARY KEY, note TEXT, event TEXT, who TEXT); INSERT INTO log VALUES \
         ('h1', 'note-0001', 'ADD', NULL), ('h2', 'note-0001', 'UPDATE', NULL), ('h3', 'note-0002', 'ADD', NULL), \
         ('h4', 'note-0003', 'ADD', NULL)";
    let mut members = String::new();
    for (name, layout, sql) in [("log", LOG, log), ("notes", NOTES, notes)] {
        let (file, path) = (fleet.path(&format!("{name}.toml")), fleet.path(&format!("{name}.db")));
        std::fs::write(&file, layout).expect("a layout");
        block_on(async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
            sqlx::raw_sql(sql).execute(&mut link).await.expect("rows");
            link.close().await.expect("closed");
        });
        assert_eq!(fleet.run(&["-d", &path, "--layout", &file, "migrate", "--apply"]).0, Some(0), "{name}");
        members += &format!("[[database]]\nurl = '{path}'\nlabel = '{name}'\nlayout = '{file}'\n");
    }
    let (file, bundles) = (fleet.path("fleet.toml"), fleet.path("bundles"));
    std::fs::write(&file, members).expect("the file");
    let (code, receipt, words) = fleet.run(&["purge", "ada-1", "--fleet", &file, "--apply", "--export", &bundles]);
    assert_eq!((code, receipt["status"].as_str()), (Some(0), Some("verified")), "{words}");
    assert_eq!(fleet.number("log.db", "SELECT count(*) FROM log WHERE id = 'h4'"), 1);
    assert_eq!(fleet.number("log.db", "SELECT count(*) FROM log"), 1);
    let rows = std::fs::read_to_string(format!("{bundles}/log/log.jsonl")).expect("rows of the bundle");
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 3, "{rows}");
    assert!(["h1", "h2", "h3"].iter().all(|id| rows.contains(&format!("\"id\":\"{id}\""))), "{rows}");
    assert!(receipt["databases"][0]["receipt"]["export_sha256"].is_string(), "{receipt:#}");
}

#[test]
fn the_history_of_memories_goes_with_the_memories_of_another_database() {
    let Some(server) = Database::fresh().filter(Database::has_vector) else { return };
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    let id = |n: usize| format!("00000000-0000-0000-0000-00000000000{n}");
    block_on(async {
        let mut link = PgConnection::connect(server.url()).await.expect("the server");
        let memory = |n: usize, user: &str| {
            let payload = format!("{{\"data\": \"text {n}\", \"user_id\": \"{user}\"}}");
            format!("INSERT INTO mem0 VALUES ('{}', '[1,0]', '{payload}'); ", id(n))
        };
        let sql = "CREATE EXTENSION vector; CREATE TABLE mem0 (id uuid PRIMARY KEY, vector vector(2), payload jsonb); ";
        let sql = [sql.to_owned(), memory(1, "ada-1"), memory(2, "ada-1"), memory(3, "bo-22")].concat();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("memories");
        for name in ["told.db", "silent.db"] {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(fleet.path(name)).create_if_missing(true);
            let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
            let row = |n: usize, of: usize| {
                format!(
                    "INSERT INTO history VALUES ('h{n}', '{}', NULL, 'text {of}', 'ADD', NULL, NULL, 0, NULL, NULL); ",
                    id(of)
                )
            };
            let talk = "INSERT INTO messages VALUES ('t1', 'user_id=ada-1', 'user', 'hello', NULL, NULL); ";
            let tables = "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, \
                 created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT); \
                 CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at DATETIME); ";
            let talk = if name == "told.db" { talk } else { "" };
            let sql = [tables.to_owned(), talk.to_owned(), row(1, 1), row(2, 1), row(3, 2), row(4, 3)].concat();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("a history");
            link.close().await.expect("closed");
        }
    });
    let (told, silent) = (fleet.path("told.db"), fleet.path("silent.db"));
    for database in [server.url(), told.as_str(), silent.as_str()] {
        assert_eq!(fleet.run(&["-d", database, "migrate", "--apply"]).0, Some(0), "{database}");
    }
    // The history that knows nobody, and one that stands before the memories in the file.
    let file = fleet.file("fleet.toml", &[("told", "told.db"), ("memories", server.url()), ("silent", "silent.db")]);
    let purge = |more: &[&str]| fleet.run(&[&["purge", "ada-1", "--fleet", &file][..], more].concat());
    let (_, plan, words) = purge(&[]);
    assert_eq!(statuses(&plan), [("told", "planned"), ("memories", "planned"), ("silent", "planned")], "{words}");
    assert_eq!(plan["counts"]["told/history"]["delete"], 3, "{plan:#}");
    let unowned = |entry: &Value| entry["plan"]["disclosures"].to_string().contains("1 row of history names no owner");
    assert!(plan["databases"].as_array().is_some_and(|all| unowned(&all[0]) && unowned(&all[2])), "{plan:#}");
    let bundles = fleet.path("bundles");
    let (code, receipt, words) = purge(&["--apply", "--export", &bundles]);
    assert_eq!(code, Some(0), "{words} {receipt:#}");
    for name in ["told", "silent"] {
        let rows = std::fs::read_to_string(format!("{bundles}/{name}/history.jsonl")).expect("rows of the bundle");
        let row = |line: &str| serde_json::from_str::<Value>(line).expect("a row")["id"].clone();
        let mut ids: Vec<Value> = rows.lines().map(row).collect();
        ids.sort_unstable_by_key(Value::to_string);
        assert_eq!(ids, ["h1", "h2", "h3"], "all that goes is in the bundle first");
        assert_eq!(receipt["counts"][format!("{name}/history")]["delete"], 3, "{receipt:#}");
        assert_eq!(fleet.number(&format!("{name}.db"), "SELECT count(*) FROM history WHERE id = 'h4'"), 1);
        assert_eq!(fleet.number(&format!("{name}.db"), "SELECT count(*) FROM history"), 1);
    }
}
