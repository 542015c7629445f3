//! Commands as people type them: tables that fit, colours, what is said about the work, errors for programs, advice that can
//! be pasted, and answers to words that nobody knows.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mnemoscope::memory::Entity;
use serde_json::Value;
use sqlx::Connection as _;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mnemoscope");

/// A folder with a demo database, settings and state of its own.
struct Desk {
    folder: TempDir,
    database: PathBuf,
}

impl Desk {
    fn named(name: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let desk = Desk { database: folder.path().join(name), folder };
        let made = desk.typed(&["demo", desk.path(), "--no-console", "--episodes", "120"], &[]);
        assert_eq!(made.status.code(), Some(0), "{}", words(&made));
        desk
    }

    fn new() -> Self {
        Desk::named("memory.db")
    }

    /// With an audit trail, so that it can be changed.
    fn changeable(name: &str) -> Self {
        let desk = Desk::named(name);
        assert_eq!(desk.run(&["migrate", "--apply"]).status.code(), Some(0));
        desk
    }

    fn path(&self) -> &str {
        self.database.to_str().unwrap()
    }

    /// The program with nothing of ours in its surroundings but what is said.
    fn command(&self, program: &str, surroundings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(program);
        for name in ["MNEMOSCOPE_DATABASE", "DATABASE_URL", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_LOG"] {
            command.env_remove(name);
        }
        command.env("TZ", "UTC").env("MNEMOSCOPE_CONFIG", self.folder.path().join("config.toml"));
        command.env("MNEMOSCOPE_STATE", self.folder.path().join("state")).current_dir(self.folder.path());
        command.envs(surroundings.iter().copied());
        command
    }

    fn typed(&self, arguments: &[&str], surroundings: &[(&str, &str)]) -> Output {
        self.command(PROGRAM, surroundings).args(arguments).output().unwrap()
    }

    fn run_in(&self, arguments: &[&str], surroundings: &[(&str, &str)]) -> Output {
        self.typed(&[&["-d", self.path()], arguments].concat(), surroundings)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_in(arguments, &[])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {}", words(&output)))
    }

    /// A command line as a shell takes it, with the program's folder on its path.
    fn pasted(&self, line: &str) -> Output {
        let folder = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        self.command("/bin/sh", &[("PATH", &path)]).args(["-c", line]).output().unwrap()
    }

    fn first(&self, entity: &str) -> String {
        self.json(&["list", entity, "--limit", "1"])["rows"][0]["id"].as_str().unwrap().to_owned()
    }
}

/// Runs statements on a database, which is made when it is not there.
fn statements(path: &Path, statements: &[&'static str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("sqlite:{}?mode=rwc", path.display());
        let mut link = sqlx::SqliteConnection::connect(&url).await.unwrap();
        for statement in statements {
            sqlx::query(*statement).execute(&mut link).await.unwrap();
        }
        link.close().await.unwrap();
    });
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn error(output: &Output) -> Value {
    let error: Value = serde_json::from_slice(&output.stderr).unwrap_or_else(|e| panic!("{e}: {}", words(output)));
    error["error"].clone()
}

#[test]
fn tables_fit_the_terminal_and_ids_are_whole() {
    let desk = Desk::new();
    for entity in Entity::ALL {
        let rows = desk.json(&["list", entity.name(), "--limit", "20"]);
        for width in ["80", "100", "200"] {
            let arguments = ["list", entity.name(), "--limit", "20", "--format", "table"];
            let output = desk.run_in(&arguments, &[("COLUMNS", width)]);
            assert_eq!(output.status.code(), Some(0), "{}", words(&output));
            let shown = text(&output);
            let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with("! ")).collect();
            let widest = lines.iter().map(|line| line.width()).max().unwrap();
            assert!(widest <= width.parse().unwrap(), "{entity} at {width}:\n{shown}");
            assert!(!lines[0].contains('_') && !lines[0].contains("AT"), "{entity}: {}", lines[0]);
            let ids = rows["rows"].as_array().unwrap().iter();
            let ids = ids.map(|row| row["id"].as_str().or(row["episode_id"].as_str()).unwrap());
            for (id, line) in ids.zip(&lines[1..]) {
                assert!(line.starts_with(&format!("{id}  ")) || *line == id, "{entity}: {id}: {line}");
            }
        }
    }
}

#[test]
fn columns_without_room_are_named_and_a_pipe_gets_everything() {
    let desk = Desk::new();
    let narrow = desk.run_in(&["list", "episode", "--format", "table"], &[("COLUMNS", "60")]);
    assert!(text(&narrow).starts_with("Episode "), "{}", text(&narrow));
    let said = words(&narrow);
    let note: Vec<&str> = said.lines().filter(|line| line.contains("no room for")).collect();
    assert_eq!(note.len(), 1, "{said}");
    for name in ["Utility", "Status", "Agent"] {
        assert!(note[0].contains(name) && !text(&narrow).lines().next().unwrap().contains(name), "{said}");
    }
    let piped = desk.run(&["list", "episode", "--format", "table", "--limit", "30"]);
    assert!(!words(&piped).contains("no room") && !words(&piped).contains("cut"), "{}", words(&piped));
    for row in desk.json(&["list", "episode", "--limit", "30"])["rows"].as_array().unwrap() {
        let line = format!("{}  ", row["id"].as_str().unwrap());
        assert!(text(&piped).contains(&line), "{line}");
    }
    // A table that is read by a program continues by its cursor.
    let cursor = words(&desk.run(&["list", "episode", "--format", "table", "--limit", "5"]));
    let cursor = cursor.split("--after ").nth(1).unwrap().split_whitespace().next().unwrap();
    let next = desk.json(&["list", "episode", "--limit", "5", "--after", cursor]);
    assert_eq!(next["rows"].as_array().unwrap().len(), 5);
}

#[test]
fn times_are_local_and_the_zone_is_said_once() {
    let desk = Desk::new();
    let row = desk.json(&["list", "case", "--limit", "1"])["rows"][0].clone();
    let there = chrono::DateTime::parse_from_rfc3339(row["created_at"].as_str().unwrap()).unwrap();
    let here = there + chrono::TimeDelta::minutes(330);
    for (zone, title, moment) in [("UTC", "(UTC)", there), ("XST-5:30", "(+05:30)", here)] {
        let output = desk.run_in(&["list", "case", "--limit", "1", "--format", "table"], &[("TZ", zone)]);
        let shown = text(&output);
        assert_eq!(shown.matches(title).count(), 1, "{shown}");
        assert!(shown.lines().next().unwrap().contains(title), "{shown}");
        assert!(shown.contains(&format!("  {}  ", moment.format("%Y-%m-%d %H:%M"))), "{zone}: {shown}");
    }
}

#[test]
fn numbers_stand_at_the_right() {
    let desk = Desk::new();
    let shown = text(&desk.run(&["list", "subject", "--format", "table"]));
    let end = shown.lines().next().unwrap().find("Episodes").unwrap() + "Episodes".len();
    for line in shown.lines().skip(1) {
        let until: String = line
            .chars()
            .scan(0, |at, c| {
                *at += c.to_string().width();
                Some((*at, c))
            })
            .take_while(|(at, _)| *at <= end)
            .map(|(_, c)| c)
            .collect();
        assert!(until.ends_with(|c: char| c.is_ascii_digit() || c == '·'), "{line}");
    }
}

#[test]
fn colours_come_when_asked_for_and_never_into_data() {
    let desk = Desk::new();
    let list = |more: &[&str], here: &[(&str, &str)]| text(&desk.run_in(&[&["list", "episode"], more].concat(), here));
    let table = &["--format", "table"][..];
    let is_coloured = |text: &str| text.contains("\u{1b}[");
    assert!(!is_coloured(&list(table, &[])));
    assert!(is_coloured(&list(&[table, &["--color", "always"]].concat(), &[])));
    assert!(is_coloured(&list(&[table, &["--color", "always"]].concat(), &[("NO_COLOR", "1")])));
    assert!(is_coloured(&list(table, &[("CLICOLOR_FORCE", "1")])));
    assert!(!is_coloured(&list(table, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])));
    assert!(!is_coloured(&list(&[table, &["--color", "never"]].concat(), &[("CLICOLOR_FORCE", "1")])));
    for format in ["json", "jsonl", "csv"] {
        let data = &["--format", format][..];
        assert_eq!(list(&[data, &["--color", "always"]].concat(), &[]), list(data, &[]), "{format}");
    }
    let plain = list(table, &[]);
    let coloured = list(&[table, &["--color", "always"]].concat(), &[]);
    let mut bare = String::new();
    for part in coloured.split("\u{1b}[") {
        bare.push_str(
            part.split_once('m')
                .filter(|(code, _)| code.chars().all(|c| c.is_ascii_digit() || c == ';'))
                .map_or(part, |(_, rest)| rest),
        );
    }
    assert_eq!(bare, plain, "colours take no room");
}

#[test]
fn the_log_is_private_and_says_what_is_done_without_personal_text() {
    let desk = Desk::new();
    let file = desk.folder.path().join("work.log");
    let log = file.to_str().unwrap();
    let episode = desk.first("episode");
    let quiet = desk.run(&["--log", log, "show", "episode", &episode]);
    assert_eq!((quiet.status.code(), words(&quiet).as_str()), (Some(0), ""));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(first.contains("INFO") && first.contains("started") && first.contains("ended code=0"), "{first}");
    let lost = desk.run(&["-vv", "--log", log, "list", "episode", "--where", "user_id = 'Mary Ann'"]);
    assert!(words(&lost).contains("DEBUG") && words(&lost).contains("SELECT"), "{}", words(&lost));
    let both = std::fs::read_to_string(&file).unwrap();
    assert!(both.starts_with(&first) && both.len() > first.len(), "it is added to");
    assert!(!both.contains("Mary"), "{both}");
    assert!(words(&desk.run(&["-v", "status"])).contains("INFO"));
    let filtered = desk.run_in(&["status"], &[("RUST_LOG", "mnemoscope::store=debug")]);
    assert!(words(&filtered).contains("DEBUG") && !words(&filtered).contains("INFO"), "{}", words(&filtered));
    let wrong = desk.run_in(&["status"], &[("RUST_LOG", "mnemoscope=loud")]);
    assert!(wrong.status.code() == Some(2) && words(&wrong).contains("RUST_LOG"), "{}", words(&wrong));
    // A database is no log, and a password is not written down.
    assert_eq!(desk.run(&["--log", desk.path(), "status"]).status.code(), Some(1));
    let url = "postgres://ada:s3cret@127.0.0.1:1/none";
    let refused = desk.typed(&["-vvv", "--log", log, "-d", url, "status"], &[("RUST_LOG", "trace")]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(!words(&refused).contains("s3cret") && !std::fs::read_to_string(&file).unwrap().contains("s3cret"));
}

#[test]
fn a_warning_reaches_the_operator_and_a_long_trail_is_listed_whole() {
    let desk = Desk::changeable("memory.db");
    // The folder of the anchors cannot be made: a file has its name.
    let anchors = desk.folder.path().join("state").join("anchors");
    let _ = std::fs::remove_dir_all(&anchors);
    std::fs::write(&anchors, "").unwrap();
    statements(&desk.database, &["UPDATE episodes SET canvas_action_count = 77"]);
    let done = desk.run(&["backfill", "aggregates", "--apply", "--batch", "1"]);
    let last = desk.json(&["audit", "list", "--limit", "1"])["rows"][0]["seq"].as_i64().unwrap();
    assert!(last > 102, "an anchor was due: {last}: {}", words(&done));
    assert!(
        words(&done).contains("WARN") && words(&done).contains("its anchor could not be stored"),
        "{}",
        words(&done)
    );
    // More entries than are read at once are listed without a gap.
    let seqs = |rows: &[Value]| rows.iter().map(|row| row["seq"].as_i64().unwrap()).collect::<Vec<_>>();
    let all: Vec<i64> = (1..=last).rev().collect();
    let listed = desk.json(&["audit", "list", "--limit", "1000"]);
    assert_eq!((seqs(listed["rows"].as_array().unwrap()), &listed["next"]), (all.clone(), &Value::Null));
    let part = desk.json(&["audit", "list", "--limit", "101", "--before", &last.to_string()]);
    assert_eq!(seqs(part["rows"].as_array().unwrap()), (last - 101..last).rev().collect::<Vec<_>>());
    assert_eq!(part["next"].as_i64(), Some(last - 101).filter(|seq| *seq > 1));
    let jsonl = desk.run(&["audit", "list", "--limit", "1000", "--format", "jsonl"]);
    let lines = String::from_utf8(jsonl.stdout).unwrap();
    assert_eq!(seqs(&lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()), all);
    let csv = desk.run(&["audit", "list", "--limit", "1000", "--format", "csv"]).stdout;
    let mut csv = csv::Reader::from_reader(csv.as_slice());
    assert_eq!(csv.headers().unwrap().get(0), Some("seq"));
    assert_eq!(csv.records().map(|row| row.unwrap()[0].parse::<i64>().unwrap()).collect::<Vec<_>>(), all);
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let desk = Desk::new();
    for (arguments, code, word) in [
        (&["show", "episode", "nothing", "--format", "json"][..], 3, "not_found"),
        (&["--format", "jsonl", "list", "episodes_of"], 2, "usage"),
        (&["list", "episode", "--format=json", "--limt", "3"], 2, "usage"),
        (&["--format", "json", "lisst"], 2, "usage"),
        (&["--format", "json", "list", "episode", "--limit", "many"], 2, "usage"),
    ] {
        let output = desk.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", words(&output));
        let error = error(&output);
        assert_eq!(error["code"], word, "{arguments:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|words| !words.is_empty()), "{error}");
        assert!(error.as_object().unwrap().contains_key("remedy"), "{error}");
    }
    let near = error(&desk.run(&["list", "episode", "--format=json", "--limt", "3"]));
    assert!(near["remedy"].as_str().unwrap().contains("--limit"), "{near}");
    let plain = desk.run(&["show", "episode", "nothing"]);
    assert!(words(&plain).starts_with("mnemoscope: "), "json is not asked for by a pipe: {}", words(&plain));
}

#[test]
fn what_an_agent_would_get_holds_corrections_and_canvas_events_within_the_budget() {
    let desk = Desk::new();
    let corrected = desk.json(&["list", "feedback", "--where", "correction ~ contact", "--limit", "100"]);
    let with_both = |row: &Value| {
        let episode = row["episode_id"].as_str()?;
        let shown = desk.json(&["show", "episode", episode]);
        let canvas = shown["canvas_context"].as_array()?.first()?["action"].as_str()?.to_owned();
        Some((episode.to_owned(), row["correction"].as_str()?.to_owned(), canvas, shown["episode"]["topic"].clone()))
    };
    let found = corrected["rows"].as_array().unwrap().iter().find_map(with_both);
    let (episode, correction, canvas, topic) = found.expect("an episode with a correction and canvas events");
    let all = ["--ranking", "boosted", "--topic", topic.as_str().unwrap(), "-k", "50", "--tokens", "20000"];
    let made = desk.json(&[&["context"], &all[..]].concat());
    let text = made["text"].as_str().unwrap();
    assert!(made["rows"].as_array().unwrap().iter().any(|id| *id == *episode), "{made:#}");
    assert!(text.contains(&format!("corrected: \"{correction}\"")) && text.contains(&format!(" {canvas}")), "{text}");
    assert_eq!(text.matches("Feedback: ").count(), made["rows"].as_array().unwrap().len());
    assert_eq!(text.matches("Canvas: ").count(), made["rows"].as_array().unwrap().len());
    for tokens in ["60", "200"] {
        let made = desk.json(&["context", "--ranking", "boosted", "invoice", "--tokens", tokens]);
        assert!(made["text"].as_str().unwrap().chars().count() <= tokens.parse::<usize>().unwrap() * 4, "{made:#}");
    }
    let replayed = desk.json(&["replay", topic.as_str().unwrap(), "--limit", "50"]);
    let row = replayed["rows"].as_array().unwrap().iter().find(|row| row["id"] == *episode).expect("the episode");
    assert_eq!(row["canvas_context"][0]["action"], *canvas);
    assert!(row["feedback_context"].to_string().contains(&correction[..8]), "{row:#}");
}

#[test]
fn findings_fail_a_run_where_that_is_asked_for() {
    let desk = Desk::new();
    let found = desk.json(&["findings"]);
    let severe = |limit: &[&str]| {
        found["findings"].as_array().unwrap().iter().any(|f| limit.contains(&f["severity"].as_str().unwrap()))
    };
    assert!(severe(&["low", "medium", "high"]));
    for (limit, severities) in
        [("high", &["high"][..]), ("medium", &["high", "medium"]), ("low", &["high", "medium", "low"])]
    {
        let output = desk.run(&["findings", "--fail-on", limit, "--format", "json"]);
        assert_eq!(output.status.code(), Some(if severe(severities) { 6 } else { 0 }), "{limit}: {}", words(&output));
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), found, "{limit}");
    }
    assert_eq!(desk.run(&["findings", "--fail-on", "hihg"]).status.code(), Some(2));
    // What was found is identified by the code, too, where there is no room for the answer.
    let line = format!("mnemoscope -d {} findings --fail-on low > /dev/full", desk.path());
    assert_eq!(desk.pasted(&line).status.code(), Some(6));
    // Of a kind that could not be looked for nobody knows.
    let output = desk.run(&["findings", "--kind", "audit-break", "--fail-on", "low"]);
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
    assert!(words(&output).contains("audit_break could not be judged: there is no audit trail"), "{}", words(&output));
    assert_eq!(desk.run(&["findings", "--kind", "audit-break"]).status.code(), Some(0));
}

#[test]
fn what_is_no_table_is_refused_as_csv_before_anything_is_written() {
    let desk = Desk::changeable("memory.db");
    let file = desk.folder.path().join("anchors.jsonl");
    let before = desk.json(&["audit", "list"]);
    for words in [vec!["audit", "anchor", file.to_str().unwrap()], vec!["audit", "accept", "--reason", "restored"]] {
        let refused = desk.run(&[&words[..], &["--format", "csv"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {refused:?}");
        assert!(!file.exists() && desk.json(&["audit", "list"]) == before, "{words:?}");
    }
}

#[test]
fn a_list_without_rows_has_the_header_of_its_csv() {
    let desk = Desk::new();
    let list = |id: &str| {
        let output = desk.run(&["list", "episode", "--where", &format!("id{id}"), "--format", "csv", "--limit", "1"]);
        assert!(output.status.success(), "{}", words(&output));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (some, none) = (list("!=nobody"), list("=nobody"));
    assert!(none.len() == 1 && some[0] == none[0] && some[0].starts_with("id,"), "{none:?}");
}

#[test]
fn findings_fail_a_run_where_nothing_could_be_judged() {
    let desk = Desk::new();
    let file = |name: &str| desk.folder.path().join(name).display().to_string();
    std::fs::write(file("empty.db"), "").unwrap();
    crate::support::block_on(async {
        let url = format!("sqlite:{}?mode=rwc", file("other.db"));
        let mut link = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("CREATE TABLE a (b)").execute(&mut link).await.unwrap();
        link.close().await.unwrap();
    });
    let server = crate::support::postgres::Database::fresh();
    let servers = server.iter().map(|database| database.url().to_owned());
    for database in [file("empty.db"), file("other.db")].into_iter().chain(servers) {
        for limit in ["high", "low"] {
            let failed = desk.typed(&["-d", &database, "--format", "json", "findings", "--fail-on", limit], &[]);
            let said = words(&failed);
            assert!(failed.status.code() == Some(5) && said.contains("no known layout fits it"), "{database}: {said}");
            let shown: Value = serde_json::from_slice(&failed.stdout).unwrap();
            assert_eq!(shown["findings"], serde_json::json!([]), "what was looked for is told all the same");
        }
        assert_eq!(desk.typed(&["-d", &database, "findings"], &[]).status.code(), Some(0));
    }
}

#[test]
fn the_same_feedback_twice_is_there_already() {
    let desk = Desk::changeable("memory.db");
    let episode = desk.first("episode");
    let add = |more: &[&str]| {
        let said = ["feedback", "add", &episode, "--correction", "Shorter, please.", "--apply"];
        desk.json(&[&said, more].concat())
    };
    let thumb = ["--kind", "thumbs_down"];
    let first = add(&thumb);
    assert_eq!(first["counts"]["agent_feedback"]["insert"], 1, "{first}");
    let id = first["changes"].as_array().unwrap().iter().find(|c| c["entity"] == "feedback").unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = add(&thumb);
    assert_eq!(second["counts"], serde_json::json!({}), "{second}");
    let effects = second["effects"].to_string();
    assert!(effects.contains(&id) && effects.contains("--again"), "{second}");
    assert_eq!(add(&["--kind", "thumbs_down", "--again"])["counts"]["agent_feedback"]["insert"], 1);
    assert_eq!(add(&["--kind", "rating", "--rating", "2"])["counts"]["agent_feedback"]["insert"], 1);
}

#[test]
fn advised_commands_can_be_pasted() {
    let desk = Desk::changeable("it's a $(memory) copy.db");
    let found = desk.json(&["--layout", "mnemoscope", "findings"]);
    let remedies: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|f| f["remedy"].as_str().unwrap()).collect();
    assert!(remedies.len() > 5, "{remedies:?}");
    // Of those whose own words need no quotes, one of each command.
    let mut plain = BTreeSet::new();
    for line in remedies {
        let (_, words_of_it) = line.split_once(" --layout mnemoscope ").unwrap_or_else(|| panic!("{line}"));
        let is_plain = words_of_it.chars().all(|c| c.is_ascii_alphanumeric() || "_- ".contains(c));
        if is_plain && !plain.insert(words_of_it.split(' ').next()) {
            continue;
        }
        let output = desk.pasted(line);
        assert!(!matches!(output.status.code(), Some(2 | 127) | None), "{line}: {}", words(&output));
    }
    let episode = desk.first("episode");
    let done = desk.json(&["feedback", "add", &episode, "--kind", "thumbs_up", "--user", "someone else", "--apply"]);
    let output = desk.pasted(done["undo"].as_str().unwrap());
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
}

#[test]
fn a_burst_is_quarantined_whole_by_its_remedy() {
    let desk = Desk::changeable("memory.db");
    statements(
        &desk.database,
        &[
            "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('p', 'u', 'a')",
            "INSERT INTO agent_memory_cases (id, profile_id, message_hash, created_at) \
             WITH n(i) AS (VALUES (1),(2),(3),(4),(5),(6)) \
             SELECT '-burst ' || i, 'p', 'same', '2031-02-01T10:00:0' || i || '.000000Z' FROM n",
        ],
    );
    let found = desk.json(&["findings", "--kind", "write_burst"]);
    let bursts = found["findings"].as_array().unwrap();
    let of_cases = bursts.iter().find(|f| f["entity"] == "case").unwrap();
    let remedy = of_cases["remedy"].as_str().unwrap();
    assert!(remedy.contains(" quarantine -- '-burst 1' '-burst 2' "), "{remedy}");
    let plan: Value = serde_json::from_slice(&desk.pasted(remedy).stdout).unwrap();
    assert_eq!(plan["changes_total"], 6, "{plan}");
    let applied = remedy.replacen(" quarantine --", " quarantine --apply --", 1);
    assert_eq!(desk.pasted(&applied).status.code(), Some(0));
    let held = desk.json(&["list", "case", "--where", "profile_id = p", "--where", "quarantined = true"]);
    assert_eq!(held["rows"].as_array().unwrap().len(), 6, "{held}");
}

#[test]
fn sizes_are_told_when_they_are_asked_for() {
    let desk = Desk::new();
    let status = desk.json(&["status"]);
    let of = |status: &Value| status["tables"].as_array().unwrap().clone();
    assert!(of(&status).iter().all(|t| t["bytes"].is_null()), "{status}");
    let reason = of(&status)[0]["bytes_reason"].as_str().unwrap().to_owned();
    let command = reason.split('`').nth(1).unwrap();
    let told = desk.pasted(&format!("{command} --format json"));
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let page = 4096;
    let sum: u64 = of(&told).iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    let whole = std::fs::metadata(&desk.database).unwrap().len();
    assert!(of(&told).iter().all(|t| t["bytes"].as_u64().unwrap() >= page), "{told}");
    assert!(sum <= whole && sum * 2 > whole, "{sum} of {whole}");
}

#[test]
fn advice_of_plans_and_lists_is_a_whole_command() {
    let desk = Desk::changeable("memory.db");
    let profiles = desk.json(&["list", "profile", "--limit", "50"]);
    let mut plans = profiles["rows"].as_array().unwrap().iter().map(|profile| {
        let id = profile["id"].as_str().unwrap();
        desk.json(&["profile", "set", id, "--window", "1"])["effects"].to_string()
    });
    let line = plans.find_map(|effects| effects.split('`').nth(1).map(str::to_owned)).unwrap();
    let expected = format!("mnemoscope -d {} prune --apply", desk.path());
    assert_eq!(line, expected);
    let name = desk.json(&["backfill"])["backfills"][0]["name"].as_str().unwrap().to_owned();
    let plan = desk.json(&["backfill", &name]);
    let undo = plan["undo"].as_str().unwrap();
    assert!(undo.contains("cannot be undone") || undo.contains(&format!("-d {} undo SEQ", desk.path())), "{undo}");
}

#[test]
fn advice_names_the_database_as_it_was_named() {
    let desk = Desk::changeable("memory.db");
    let settings = format!("[profile.home]\ndatabase = {:?}\n", desk.path());
    std::fs::write(desk.folder.path().join("config.toml"), settings).unwrap();
    let episode = desk.first("episode");
    let change = ["feedback", "add", &episode, "--kind", "thumbs_up", "--apply", "--format", "json", "--again"];
    for (named, here, expected) in [
        (&["--profile", "home"][..], None, "mnemoscope --profile home undo "),
        (&["-d", "home"], None, "mnemoscope -d home undo "),
        (&[], Some(("MNEMOSCOPE_DATABASE", "home")), "mnemoscope -d home undo "),
    ] {
        let output = desk.typed(&[named, &change[..]].concat(), here.as_slice());
        let receipt: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", words(&output)));
        let line = receipt["undo"].as_str().unwrap();
        assert!(line.starts_with(expected), "{line}");
        assert_eq!(desk.pasted(line).status.code(), Some(0), "{line}");
    }
}

#[test]
fn an_error_that_advises_a_command_gives_it_apart() {
    let desk = Desk::new();
    let path = desk.folder.path().join("an agent's.db");
    statements(
        &path,
        &[
            "CREATE TABLE agent_episodes (id VARCHAR NOT NULL PRIMARY KEY, agent_id VARCHAR, task_description TEXT,
            session_id VARCHAR, started_at DATETIME, canvas_ids JSON, canvas_action_count INTEGER, feedback_ids JSON,
            aggregate_feedback_score FLOAT, metadata_json JSON)",
            "INSERT INTO agent_episodes (id) VALUES ('a'), ('b')",
        ],
    );
    let refused = desk.typed(&["-d", path.to_str().unwrap(), "--format", "json", "link", "a", "b", "--apply"], &[]);
    assert_eq!(refused.status.code(), Some(5), "{}", words(&refused));
    let remedy = error(&refused)["remedy"].as_str().unwrap().to_owned();
    assert_eq!(desk.pasted(&remedy).status.code(), Some(0), "{remedy}");
}

#[test]
fn verify_and_retract_are_commands_and_after_two_dashes_names() {
    let desk = Desk::changeable("memory.db");
    for (arguments, code, expected) in [
        (&["purge", "verify", "--help"][..], 0, "<RECEIPT>"),
        (&["signal", "retract", "--help"], 0, "Retract a signal"),
        (&["purge", "verify", "nobody"], 3, "there is no receipt `nobody`"),
        (&["purge", "--", "verify"], 3, "no person in"),
        (&["signal", "--", "retract", "confirmed"], 3, "`retract`"),
        (&["signal", "retract", "sig_none"], 3, "`sig_none`"),
        (&["purge", "verify"], 2, "<RECEIPT>"),
        (&["purge", "--apply", "verify", "x"], 2, "go after it"),
        (&["purge", "someone", "verify", "x"], 2, "go after it"),
        (&["signal", "--apply", "retract", "x"], 2, "go after it"),
        (&["purge"], 2, "<SUBJECT>"),
        (&["signal", "ep"], 2, "<SIGNAL>"),
    ] {
        let output = desk.run(arguments);
        let said = format!("{}{}", text(&output), words(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_schema_is_one_document_and_no_table() {
    let desk = Desk::new();
    let line = text(&desk.run(&["schema", "agent", "--format", "jsonl"]));
    assert_eq!(line.lines().count(), 1, "{line}");
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), desk.json(&["schema", "agent"]));
    let refused = desk.run(&["schema", "agent", "--format", "csv"]);
    assert_eq!((refused.status.code(), text(&refused)), (Some(2), String::new()), "{}", words(&refused));
}

#[test]
fn a_demo_is_a_file() {
    let desk = Desk::new();
    let refused = desk.typed(&["demo", "postgres://ada:s3cret@h/nous", "--no-console"], &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
    assert!(words(&refused).contains("an SQLite file") && !words(&refused).contains("s3cret"), "{}", words(&refused));
}

#[test]
fn unknown_words_are_answered_with_the_nearest_known_one() {
    let desk = Desk::new();
    std::fs::write(desk.folder.path().join("config.toml"), "[profile.production]\ndatabase = \"x.db\"\n").unwrap();
    for (arguments, code, expected) in [
        (&["lst"][..], 2, "did you mean `list`?"),
        (&["lst", "episode"], 2, "did you mean `list`?"),
        (&["recal", "x"], 2, "did you mean `recall`?"),
        (&["findigs", "--kind", "x"], 2, "did you mean `findings`?"),
        (&["prodution"], 2, "did you mean `production`?"),
        (&["--profile", "prodution", "status"], 3, "did you mean `production`?"),
        (&["-d", "prodution", "status"], 3, "did you mean the profile `production`?"),
    ] {
        let output = desk.typed(arguments, &[]);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", words(&output));
        assert!(words(&output).contains(expected), "{arguments:?}: {}", words(&output));
    }
    let episode = desk.first("episode");
    for (arguments, code, expected) in [
        (&["lst"][..], 2, "did you mean `list`?"),
        (&["list", "episods"], 2, "did you mean `episode`?"),
        (&["list", "episode", "--where", "titel = x"], 2, "did you mean `title`?"),
        (&["list", "episode", "--order", "statred_at"], 2, "did you mean `started_at`?"),
        (&["list", "episode", "--order", "starte"], 2, "did you mean `started_at`?"),
        (&["findings", "mute", "chain_cycl", "--reason", "seen"], 2, "did you mean `chain_cycle`?"),
        (&["findings", "mute", "no-kind-and-no-row", "--reason", "seen"], 2, "there is no kind of finding"),
        (&["findings", "--kind", "chain-cicle"], 2, "did you mean `chain_cycle`?"),
        (&["findings", "--kind", "nosuch"], 2, "`mnemoscope findings --help` lists every kind"),
        (&["schema", "nosuch"], 3, "`mnemoscope schema` lists every name"),
        (&["--layout", "mnemoskope", "status"], 3, "did you mean `mnemoscope`?"),
        (&["backfill", "metdata"], 2, "did you mean `metadata`?"),
        (&["signal", &episode, "confimed"], 2, "did you mean `confirmed`?"),
        (&["feedback", "add", &episode, "--kind", "thumbs_upp"], 2, "did you mean `thumbs_up`?"),
        (&["import", "taubench", "x"], 2, "did you mean `tau-bench`?"),
        (&["record", "cas", "x"], 2, "did you mean `case`?"),
        (&["recall", "--ranking", "boost", "x"], 2, "boosted"),
        (&["list", "episode", "--limit", "-1"], 2, "to pass '-1' to '--limit', use '--limit=-1'"),
        (&["recall", "x", "-k", "-1"], 2, "use '-k=-1'"),
        (&["list", "episode", "--limit=-1"], 2, "invalid value '-1' for '--limit"),
        // Values, where nothing has the one that is asked for.
        (&["list", "episode", "--canvas", "spreadsheet"], 0, "did you mean `sheets`?"),
        (&["list", "episode", "--canvas", "sheets:presnt"], 0, "did you mean `present`?"),
        (&["list", "episode", "--where", "outcome = sucess"], 0, "did you mean `success`?"),
        (&["list", "episode", "--where", "outcome = sucess", "--format", "jsonl"], 0, "did you mean `success`?"),
        (&["list", "episode", "--where", "agent_id = agent_suport"], 0, "did you mean `agent_support`?"),
        (&["export", "case", "--where", "outcome = sucess"], 0, "did you mean `success`?"),
        (&["recall", "--ranking", "boosted", "x", "--agent", "agent_suport"], 0, "did you mean `agent_support`?"),
    ] {
        let output = desk.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", words(&output));
        assert!(words(&output).contains(expected), "{arguments:?}: {}", words(&output));
    }
    let known = desk.run(&["list", "episode", "--where", "outcome = success", "--where", "title = nothing"]);
    assert!(!words(&known).contains("outcome"), "a value that is there is not questioned: {}", words(&known));
}

#[test]
fn the_help_of_findings_lists_every_kind() {
    let help = text(&Desk::new().typed(&["findings", "--help"], &[]));
    for kind in mnemoscope::memory::findings::KINDS {
        assert!(help.contains(&format!("{} ({}): ", kind.name, kind.severity.word())), "{}: {help}", kind.name);
    }
}

#[test]
fn too_few_files_are_told_with_what_helps() {
    let desk = Desk::new();
    for files in [5, 6, 7, 12] {
        let output =
            desk.pasted(&format!("ulimit -n {files}; exec mnemoscope -d {} status --format json", desk.path()));
        assert_eq!(output.status.code(), Some(1), "{files}: {}", words(&output));
        assert!(
            words(&output).contains("Too many open files") && words(&output).contains("ulimit -n 1024"),
            "{}",
            words(&output)
        );
    }
}

#[test]
fn a_receipt_without_room_for_it_is_told_where_its_entry_is() {
    let desk = Desk::changeable("memory.db");
    let episode = desk.json(&["list", "episode", "--limit", "1"])["rows"][0]["id"].as_str().expect("an id").to_owned();
    let change =
        format!("mnemoscope -d {} edit episode {episode} title=New --apply --format json > /dev/full", desk.path());
    let output = desk.pasted(&change);
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let error = error(&output);
    assert!(error["message"].as_str().is_some_and(|words| words.contains("is kept")), "{error}");
    let shown = error["remedy"].as_str().and_then(|words| words.split('`').nth(1)).expect("a command").to_owned();
    let entry = desk.pasted(&shown);
    assert!(entry.status.success() && text(&entry).contains("receipt_id"), "{shown}: {}", words(&entry));
}
