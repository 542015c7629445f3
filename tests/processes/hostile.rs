//! Hostile input: files that are none or have no end, names that hold passwords or control characters, links where a
//! private file is written, rows that are far too long.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{alone_in, changeable_demo_in, statement, told};

struct Desk {
    folder: TempDir,
    database: PathBuf,
}

impl Desk {
    /// A small demo database with a trail, in a folder of its own.
    fn new() -> Desk {
        let folder = TempDir::new().unwrap();
        let database = changeable_demo_in(folder.path(), 24);
        Desk { folder, database }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = alone_in(self.folder.path());
        command.args(words);
        command
    }

    fn on(&self, words: &[&str]) -> Output {
        self.command(&[&["-d", self.database.to_str().unwrap()], words].concat()).output().unwrap()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn episode(&self) -> String {
        let output = self.on(&["list", "episode", "--limit", "1", "--format", "jsonl"]);
        let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        row["id"].as_str().unwrap().to_owned()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn no_spelling_of_a_database_makes_a_command_repeat_its_password() {
    let desk = Desk::new();
    // One of each kind: `ground::location` tests the others.
    let spellings = [
        "postgres://ada:S3cret@127.0.0.1:1/db",
        "postgres://S3cret@[bad",
        "//ada:S3cret@127.0.0.1/db",
        "host=127.0.0.1 user=ada password=S3cret",
    ];
    for text in spellings {
        let joined = format!("--database={text}");
        for words in [
            &["-d", text, "status"][..],
            &["-d", text, "--format", "json", "list", "episode"],
            &[&joined, "status"],
            &["--profile", text, "status"],
            &["-d", "x.db", text],
            &["console", text],
            &["status", text],
            &["-d", "x.db", "--layout", text, "status"],
            &["-d", "x.db", "list", text],
            &["layouts", "check", text],
            &["layouts", "show", text],
            &["purge", "verify", text, "-d", "x.db"],
            &["--theme", text],
            &["console", "x.db", "--theme", text],
        ] {
            let output = desk.command(words).output().unwrap();
            assert!(!output.status.success() && !told(&output).contains("S3"), "{words:?}: {}", told(&output));
        }
        let output = desk.command(&["status"]).env("DATABASE_URL", text).output().unwrap();
        assert!(!told(&output).contains("S3"), "{text}: {}", told(&output));
        let settings = format!("default = \"home\"\n[profile.home]\ndatabase = '{text}'\n");
        let settings = desk.file("config.toml", &settings);
        let output = desk.command(&["status"]).env("MNEMOSCOPE_CONFIG", settings).output().unwrap();
        assert!(!told(&output).contains("S3"), "{text}: {}", told(&output));
        let fleet = desk.file("fleet.toml", &format!("[[database]]\nurl = '{text}'\n"));
        let output = desk.command(&["purge", "someone", "--fleet", fleet.to_str().unwrap()]).output().unwrap();
        assert!(!told(&output).contains("S3"), "{text}: {}", told(&output));
    }
}

#[test]
fn control_characters_of_arguments_are_shown_and_not_sent_to_the_terminal() {
    let desk = Desk::new();
    let text = "x\u{1b}]0;owned\u{7}\u{202e}y";
    let path = desk.database.to_str().unwrap();
    for words in [
        &[text][..],
        &["-d", path, text],
        &["-d", text, "status"],
        &["-d", path, "show", "episode", text],
        &["-d", path, "show", text, "1"],
        &["-d", path, "list", "episode", "--where", text],
        &["-d", path, "list", "episode", "--limit", text],
        &["-d", path, "--format", text, "status"],
        &["-d", path, "--layout", text, "status"],
        &["-d", path, "--profile", text, "status"],
        &["-d", path, "apply", text],
        &["-d", path, "feedback", text],
        &["-d", path, "purge", text],
        &["-d", path, "backfill", text],
        &["layouts", "show", text],
        &["layouts", "check", text],
    ] {
        let output = desk.command(words).output().unwrap();
        let said = told(&output);
        assert!(!output.status.success() && !said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{words:?}: {said:?}");
    }
}

#[test]
fn plans_and_anchors_are_private_and_follow_no_link() {
    let desk = Desk::new();
    let episode = desk.episode();
    let (plan, anchor) = (desk.file("plan.json", "old"), desk.file("anchors", ""));
    for path in [&plan, &anchor] {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let subject = desk.on(&["list", "subject", "--limit", "1", "--format", "jsonl"]);
    let subject: serde_json::Value = serde_json::from_slice(&subject.stdout).unwrap();
    let subject = subject["id"].as_str().unwrap();
    let writing = |plan: &str, anchor: &str| {
        [
            vec![
                "signal".to_owned(),
                episode.clone(),
                "confirmed".to_owned(),
                "--plan-out".to_owned(),
                plan.to_owned(),
            ],
            vec!["purge".to_owned(), subject.to_owned(), "--plan-out".to_owned(), plan.to_owned()],
            vec!["audit".to_owned(), "anchor".to_owned(), anchor.to_owned()],
        ]
    };
    let run = |words: &[String]| desk.on(&words.iter().map(String::as_str).collect::<Vec<_>>());
    for words in writing(plan.to_str().unwrap(), anchor.to_str().unwrap()) {
        let output = run(&words);
        assert!(output.status.success(), "{words:?}: {}", told(&output));
    }
    assert_eq!((mode(&plan), mode(&anchor)), (0o600, 0o600));
    let target = desk.file("target", "theirs");
    let link = desk.folder.path().join("link");
    symlink(&target, &link).unwrap();
    for words in writing(link.to_str().unwrap(), link.to_str().unwrap()) {
        let output = run(&words);
        assert!(!output.status.success() && told(&output).contains("it is a link,"), "{words:?}: {}", told(&output));
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
    assert!(link.is_symlink());
    // A database is no place for either, whichever way it is named.
    let (path, other) = (desk.database.clone(), desk.folder.path().join("other.db"));
    fs::copy(&path, &other).unwrap();
    fs::hard_link(&path, desk.folder.path().join("again")).unwrap();
    for place in [&path, &other, &desk.folder.path().join("again")] {
        for words in writing(place.to_str().unwrap(), place.to_str().unwrap()) {
            let output = run(&words);
            assert!(
                !output.status.success() && told(&output).contains("it is a database"),
                "{words:?}: {}",
                told(&output)
            );
        }
    }
    assert_eq!(fs::read(&other).unwrap()[..15], *b"SQLite format 3");
    assert!(desk.on(&["audit", "verify"]).status.success());
}

/// Result of a program run: how it ended, its duration, seconds of processor time used, peak memory in kB.
struct Run {
    output: Output,
    seconds: f64,
    worked: f64,
    memory: u64,
}

fn watched(mut command: Command) -> Run {
    let since = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let child_id = child.id();
    let status = PathBuf::from(format!("/proc/{child_id}/status"));
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(Child::wait_with_output(child)));
    let ticks = PathBuf::from(format!("/proc/{child_id}/stat"));
    let (mut memory, mut worked) = (0, 0.0);
    let output = loop {
        // Bytes are counted by the system: the highest that it saw.
        let highest = fs::read_to_string(&status).unwrap_or_default();
        let highest =
            highest.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        memory = memory.max(highest.unwrap_or(0));
        // After the name in brackets: times as user and as system are the 12th and 13th word, in hundredths of a second.
        let times = fs::read_to_string(&ticks).unwrap_or_default();
        let times = times.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        worked = times.filter_map(|time| time.parse::<f64>().ok()).sum::<f64>().max(worked * 100.0) / 100.0;
        match ended.recv_timeout(Duration::from_millis(20)) {
            Ok(output) => break output.unwrap(),
            Err(_) => assert!(since.elapsed() < Duration::from_mins(2), "it hangs"),
        }
    };
    Run { output, seconds: since.elapsed().as_secs_f64(), worked, memory }
}

/// Every place where a command takes a file, with that file named.
fn places(file: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["--layout", file, "status"],
        vec!["layouts", "check", file],
        vec!["apply", file],
        vec!["import", "jsonl", file],
        vec!["import", "memento", file],
        vec!["import", "tau-bench", file],
        vec!["policy", "evaluate", "--pairs", file],
        vec!["evaluate", "--judged", file],
        vec!["purge", "someone", "--fleet", file],
        vec!["audit", "verify", "--anchor", file],
        vec!["record", "case", file],
    ]
}

impl Desk {
    /// Runs all of [`places`] at once, and the settings file, with that file.
    fn everywhere(&self, file: &str) -> Vec<(String, Run)> {
        let database = ["-d", self.database.to_str().unwrap()];
        // A fleet names its databases itself.
        let on = |words: &[&str]| {
            let names_its_own = words.contains(&"--fleet");
            self.command(&[if names_its_own { &[][..] } else { &database }, words].concat())
        };
        let mut settings = on(&["status"]);
        settings.env("MNEMOSCOPE_CONFIG", file);
        let mut commands = vec![("settings".to_owned(), settings)];
        commands.extend(places(file).into_iter().map(|words| (words.join(" "), on(&words))));
        std::thread::scope(|scope| {
            let runs: Vec<_> =
                commands.into_iter().map(|(name, command)| (name, scope.spawn(|| watched(command)))).collect();
            runs.into_iter().map(|(name, run)| (name, run.join().unwrap())).collect()
        })
    }
}

#[test]
fn a_device_a_folder_and_a_pipe_that_nobody_writes_are_refused_in_words() {
    let desk = Desk::new();
    let pipe = desk.folder.path().join("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (file, words) in [
        ("/dev/zero", "a device"),
        (desk.folder.path().to_str().unwrap(), "a folder"),
        (pipe.to_str().unwrap(), "no data arrived for"),
    ] {
        for (name, run) in desk.everywhere(file) {
            let said = told(&run.output);
            assert!(!run.output.status.success() && said.contains(words), "{name}: {said}");
            assert!(run.memory < 300 << 10 && run.seconds < 60.0, "{name}: {} kB, {} s", run.memory, run.seconds);
        }
    }
}

#[test]
fn a_stream_without_an_end_is_given_up() {
    let desk = Desk::new();
    for line in ["x", "[1,", "{\"entity\":\"episode\",\"id\":\"a\",\"title\":\"t\"}\n", "\n"] {
        let block = line.repeat(65536 / line.len());
        for words in places("-") {
            // A layout is a file. Only an import looks at what comes before it has all, and only one of a list at what a line
            // without an end holds.
            let is_list = words[..2] == ["import", "tau-bench"];
            if words.contains(&"--layout") || line != "x" && words[0] != "import" || line == "[1," && !is_list {
                continue;
            }
            let mut command = desk.command(&[&["-d", desk.database.to_str().unwrap()], &words[..]].concat());
            let (reader, mut writer) = std::io::pipe().unwrap();
            command.stdin(reader);
            let block = block.clone();
            let endless = std::thread::spawn(move || {
                use std::io::Write as _;
                while writer.write_all(block.as_bytes()).is_ok() {}
            });
            let run = watched(command);
            let said = told(&run.output);
            assert!(!run.output.status.success() && !said.contains("panicked"), "{words:?} {line:?}: {said}");
            assert!(run.memory < 300 << 10, "{words:?} {line:?}: {} kB, {} s: {said}", run.memory, run.seconds);
            endless.join().unwrap();
        }
    }
}

#[test]
fn a_row_that_names_80000_ids_costs_time_in_proportion() {
    let desk = Desk::new();
    let episode = desk.episode();
    let ids = |kind: &str| {
        format!(
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80000) \
             SELECT json_group_array('{kind}-' || (i % 79999)) FROM n)"
        )
    };
    let sql = format!(
        "UPDATE episodes SET canvas_ids = {}, feedback_ids = {}, execution_ids = {}, tags = {} WHERE id = '{episode}'",
        ids("ca"),
        ids("fb"),
        ids("ex"),
        ids("tag")
    );
    statement(&desk.database, &sql);
    for words in [
        &["show", "episode", &episode][..],
        &["show", "episode", &episode, "--format", "table"],
        &["list", "episode", "--format", "csv"],
        &["chain", &episode],
        &["findings"],
        &["insights"],
        &["recall", "invoice", "--ranking", "boosted"],
        &["backfill", "links"],
        &["backfill", "links", "--apply"],
    ] {
        let run = watched(desk.command(&[&["-d", desk.database.to_str().unwrap()], words].concat()));
        assert!(run.output.status.success(), "{words:?}: {}", told(&run.output));
        assert!(run.memory < 250 << 10 && run.worked < 10.0, "{words:?}: {} kB, {} s", run.memory, run.worked);
        if words == ["show", "episode", &episode] {
            let shown: serde_json::Value = serde_json::from_slice(&run.output.stdout).unwrap();
            let dangling = shown["findings"].as_array().unwrap().iter().find(|f| f["kind"] == "dangling_id").unwrap();
            assert_eq!(dangling["ids"].as_array().unwrap().len(), 100);
            assert!(dangling["message"].as_str().unwrap().ends_with("(showing 100 of 79999)"), "{dangling}");
        }
    }
}

#[test]
fn cells_that_a_spreadsheet_takes_for_formulas_are_kept_from_being_one() {
    let desk = Desk::new();
    let episode = desk.episode();
    for (text, expected) in [
        ("=1+1", "'=1+1"),
        ("-1+1", "'-1+1"),
        ("-cmd", "'-cmd"),
        ("-inf", "'-inf"),
        ("-", "'-"),
        ("-1.5e3", "-1.5e3"),
        ("+1", "'+1"),
        ("@a", "'@a"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("\u{ff1d}1", "'\u{ff1d}1"),
        ("\u{ff0b}1", "'\u{ff0b}1"),
        ("\u{ff0d}1", "'\u{ff0d}1"),
        ("\u{ff20}a", "'\u{ff20}a"),
        ("a=1", "a=1"),
    ] {
        statement(&desk.database, &format!("UPDATE episodes SET title = '{text}' WHERE id = '{episode}'"));
        let output = desk.on(&["list", "episode", "--where", &format!("id={episode}"), "--format", "csv"]);
        let mut reader = csv::Reader::from_reader(&output.stdout[..]);
        let title = reader.headers().unwrap().iter().position(|name| name == "title").unwrap();
        assert_eq!(&reader.records().next().unwrap().unwrap()[title], expected);
    }
}

/// Every handle in a database: of people by their ids, names and other handles, and of sessions.
fn handles(desk: &Desk) -> Vec<String> {
    let rows = |entity: &str| -> Vec<serde_json::Value> {
        let output = desk.on(&["list", entity, "--format", "jsonl"]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut found: Vec<String> = Vec::new();
    for person in rows("subject") {
        found.extend([&person["id"], &person["name"]].into_iter().filter_map(|v| v.as_str().map(str::to_owned)));
        found.extend(person["handles"].as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)));
    }
    found.extend(rows("episode").iter().filter_map(|row| row["session_id"].as_str().map(str::to_owned)));
    found.sort();
    found.dedup();
    assert!(found.len() > 30, "{found:?}");
    found
}

/// Commands that print rows.
const ROWS: &[&str] =
    &["list", "table", "findings", "recall", "context", "replay", "chain", "insights", "evaluate", "audit", "export"];

#[test]
fn a_masked_session_prints_no_handle_of_anybody() {
    let desk = Desk::new();
    let known = handles(&desk);
    let row = |entity: &str| -> serde_json::Value {
        serde_json::from_slice(&desk.on(&["list", entity, "--limit", "1", "--format", "jsonl"]).stdout).unwrap()
    };
    let person = row("subject");
    let (id, name) = (person["id"].as_str().unwrap(), person["name"].as_str().unwrap());
    let (near, episode) = (&id[..id.len() - 1], desk.episode());
    let case = row("case")["id"].as_str().unwrap().to_owned();
    // Where no column says that it names a person: a collection, a key of JSON, a word of a title, a tag.
    statement(
        &desk.database,
        &format!(
            "UPDATE memories SET collection = 'prefs:{id}'; UPDATE episodes SET topic = '{id}_notes', \
             tags = json_array('about {name}'), metadata = json_object('{id}', 1), domain = upper('{id}')"
        ),
    );
    let commands = [
        &["status"][..],
        &["findings"],
        &["insights"],
        &["chain", &episode],
        &["show", "episode", &episode],
        &["show", "case", &case],
        &["show", "subject", id],
        &["show", "subject", name],
        &["show", "subject", near],
        &["show", "episode", id],
        &["show", "profile", name],
        &["list", "episode", "--where", &format!("user_id={id}")],
        &["recall", "invoice", "--ranking", "boosted"],
        &["recall", "invoice", "--ranking", "cases", "--user", id],
        &["context", "invoice", "--ranking", "boosted"],
        &["context", "invoice", "--ranking", "cases"],
        &["replay", "invoice"],
        &["evaluate"],
        &["purge", id],
        &["purge", name],
        &["purge", near],
        &["hold", id, "--reason", name],
        &["hold", id, "--reason", name, "--apply"],
        &["purge", id, "--apply"],
        &["unhold", id, "--apply"],
        &["unhold", id],
        &["prune", "--user", id, "--window", "1"],
        &["feedback", "add", &episode, "--kind", "thumbs_up", "--user", id],
        &["audit", "list"],
        &["undo", "2"],
        &["backfill", "links"],
        &["export", "episode", "memory"],
        &["purge", id, "--apply"],
        // What the operator typed is repeated in words about the failure, most of them before the database is opened.
        &["show", id],
        &["show", near],
        &[id],
        &["list", "episode", near],
        &["list", "episode", "--order", id],
        &["status", "--format", id],
        &["status", "--profile", id],
        &["apply", &format!("/none/{id}.json")],
        &["--layout", &format!("/none/{near}.toml"), "status"],
        &["layouts", "check", &format!("/none/{id}.toml")],
        &["import", "jsonl", &format!("/none/{near}.jsonl")],
        &["audit", "anchor", &format!("/none/{id}")],
        &["policy", "activate", id],
        &["table", id],
    ];
    let entities = mnemoscope::memory::Entity::ALL.iter().map(|entity| vec!["list", entity.name()]);
    let commands = commands.iter().map(|words| words.to_vec()).chain(entities);
    for words in commands {
        // What is one document is the same text as lines, and none as CSV.
        let formats: &[&str] =
            if ROWS.contains(&words[0]) { &["json", "jsonl", "csv", "table"] } else { &["json", "table"] };
        for &format in formats {
            let output = desk.on(&[&["--mask", "--format", format], &words[..]].concat());
            let said = told(&output).to_lowercase();
            let seen: Vec<&String> = known.iter().filter(|handle| said.contains(&handle.to_lowercase())).collect();
            assert!(seen.is_empty(), "{words:?} as {format}: {seen:?}");
            assert!(!said.contains(near), "{words:?} as {format}: {said}");
        }
    }
}

#[test]
fn a_lock_that_another_process_keeps_is_waited_for_with_a_limit() {
    let desk = Desk::new();
    let state = desk.folder.path().join("state");
    fs::create_dir_all(&state).unwrap();
    let lock = fs::File::create(state.join("mutes.lock")).unwrap();
    lock.lock().unwrap();
    let output = desk.on(&["findings", "mute", "secret", "--reason", "known"]);
    assert!(!output.status.success() && told(&output).contains("another process holds the lock of"), "{output:?}");
}
