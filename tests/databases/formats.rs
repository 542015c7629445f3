//! Output of the commands: the same things in each format, in the same order each time, one row a line whatever the
//! rows hold, and help that a person can read.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{alone_in, demo_in, statement};

struct Desk {
    folder: TempDir,
    database: PathBuf,
}

impl Desk {
    /// A demo database in a folder of its own.
    fn new() -> Desk {
        let folder = TempDir::new().unwrap();
        let database = demo_in(folder.path(), 60);
        Desk { folder, database }
    }

    fn run(&self, words: &[&str]) -> Output {
        alone_in(self.folder.path()).args(words).output().unwrap()
    }

    fn on(&self, words: &[&str]) -> Output {
        let path = self.database.display().to_string();
        self.run(&[&["-d", path.as_str()], words].concat())
    }

    fn text(&self, words: &[&str]) -> String {
        let output = self.on(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.text(words)).unwrap()
    }
}

#[test]
fn commands_that_give_rows_give_them_as_csv_too() {
    let desk = Desk::new();
    desk.text(&["migrate", "--apply"]);
    let lists: [(&[&str], &str, &str); 7] = [
        (&["findings"], "findings", "kind,severity,entity,count,"),
        (&["audit", "list"], "rows", "seq,"),
        (&["policy", "list"], "rows", "id,profile_id,version,"),
        (&["backfill"], "backfills", "name,does,"),
        (&["layouts"], "", "name,title,"),
        (&["recall", "invoice", "--ranking", "boosted"], "rows", "id,"),
        (&["replay", "invoice"], "rows", "id,agent_id,"),
    ];
    for (words, key, header) in lists {
        let json = desk.json(&[words, &["--format", "json"]].concat());
        let rows = if key.is_empty() { &json } else { &json[key] };
        let csv = desk.text(&[words, &["--format", "csv"]].concat());
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(Some(records.len()), rows.as_array().map(Vec::len), "{words:?}");
        assert!(records.is_empty() || csv.starts_with(header), "{words:?}: {csv}");
    }
    assert_eq!(desk.on(&["status", "--format", "csv"]).status.code(), Some(2));
}

#[test]
fn a_row_stays_on_its_line_whatever_it_holds() {
    let desk = Desk::new();
    statement(&desk.database, "UPDATE episodes SET title = 'a' || char(8232) || 'b' || char(133) || 'c' || char(8233)");
    let lines = desk.text(&["list", "episode", "--format", "jsonl"]);
    assert!(!lines.contains(['\u{85}', '\u{2028}', '\u{2029}']));
    assert_eq!(lines.lines().count(), 60);
    let row: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(row["title"], "a\u{2028}b\u{85}c\u{2029}");
}

#[test]
fn findings_come_in_the_same_order_each_time_the_worst_first() {
    let desk = Desk::new();
    let told = |desk: &Desk| -> Vec<[String; 3]> {
        let all = desk.json(&["findings"]);
        let words = |finding: &Value| ["severity", "kind", "entity"].map(|key| finding[key].to_string());
        all["findings"].as_array().unwrap().iter().map(words).collect()
    };
    let first = told(&desk);
    assert!(first.len() > 10, "{first:?}");
    let place = |kind: &str| mnemoscope::memory::findings::KINDS.iter().position(|k| format!("\"{}\"", k.name) == kind);
    let mut sorted = first.clone();
    let severity = |word: &str| ["\"high\"", "\"medium\"", "\"low\""].iter().position(|s| *s == word);
    sorted.sort_by_key(|[worst, kind, entity]| (severity(worst), place(kind), entity.clone()));
    assert_eq!(first, sorted);
    assert_eq!(told(&desk), first);
}

#[test]
fn a_database_is_read_only_until_changes_can_be_made() {
    let desk = Desk::new();
    let read_only = || desk.json(&["status"])["database"]["read_only"].clone();
    assert_eq!(read_only(), true, "no audit trail yet");
    desk.text(&["migrate", "--apply"]);
    assert_eq!(read_only(), false);
}

#[test]
fn a_masked_cursor_names_nobody_and_continues_masked_or_not() {
    let desk = Desk::new();
    let lists: [&[&str]; 4] = [
        &["list", "subject"],
        &["list", "feedback", "--order", "user_id"],
        &["find", "invoice"],
        &["table", "episodes", "--order", "user_id"],
    ];
    for words in lists {
        let page = |more: &[&str]| desk.json(&[words, &["--format", "json"], more].concat());
        let cursor = page(&["--mask", "--limit", "2"])["next"].as_str().unwrap().to_owned();
        assert!(cursor.starts_with("sealed") && cursor.chars().all(char::is_alphanumeric), "{words:?}: {cursor}");
        let (four, after) = (page(&["--limit", "4"]), ["--limit", "2", "--after", &cursor]);
        let next = page(&after);
        assert_eq!(next["rows"].as_array().unwrap()[..], four["rows"].as_array().unwrap()[2..], "{words:?}");
        assert!(next["next"].as_str().unwrap().starts_with("ey"), "{next}");
        assert_eq!(page(&[&["--mask"], &after[..]].concat())["rows"].as_array().unwrap().len(), 2);
        let told = desk.on(&[&["--mask", "--format", "table"], words, &["--limit", "2"]].concat()).stderr;
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains(&format!("--after {cursor}")) && !told.contains("eyJ"), "{told}");
        let path = desk.database.display().to_string();
        let other = alone_in(desk.folder.path())
            .env("MNEMOSCOPE_STATE", desk.folder.path().join("other"))
            .args([&["-d", path.as_str()], words, &after[..]].concat())
            .output()
            .unwrap();
        assert_eq!(other.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&other.stderr).contains("cursor"));
    }
}

#[test]
fn a_persons_bundle_is_not_made_with_a_mask_that_it_would_not_wear() {
    let desk = Desk::new();
    let subject = desk.json(&["list", "subject", "--limit", "1"])["rows"][0]["id"].as_str().unwrap().to_owned();
    assert!(desk.on(&["export", "subject", &subject]).status.success());
    let masked = desk.on(&["--mask", "export", "subject", &subject]);
    assert_eq!((masked.status.code(), masked.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&masked.stderr).contains("--mask"));
}

#[test]
fn help_lists_the_options_of_a_command_before_those_of_every_command() {
    let desk = Desk::new();
    for words in
        [&["list", "--help"][..], &["purge", "--help"], &["backfill", "--help"], &["policy", "train", "--help"]]
    {
        let help = String::from_utf8(desk.run(words).stdout).unwrap();
        let (own, every) = help.split_once("Options of every command:").unwrap_or_else(|| panic!("{words:?}: {help}"));
        assert!(
            every.contains("--mask") && every.contains("--database") && !own.contains("--mask"),
            "{words:?}: {help}"
        );
    }
    let help = String::from_utf8(desk.run(&["list", "--help"]).stdout).unwrap();
    assert!(help.contains("canvas_event") && !help.contains("`canvas_event`"), "{help}");
}

#[test]
fn no_rows_at_all_are_wrong_usage_and_a_closed_pipe_is_no_error() {
    let desk = Desk::new();
    desk.text(&["migrate", "--apply"]);
    for words in
        [&["list", "episode", "--limit", "0"][..], &["audit", "list", "--limit", "0"], &["replay", "x", "--limit", "0"]]
    {
        assert_eq!(desk.on(words).status.code(), Some(2), "{words:?}");
    }
    for words in ["completions bash", "man", "findings", "layouts show atom", "list episode --format csv"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
            .args(words.split(' '))
            .env("MNEMOSCOPE_DATABASE", &desk.database)
            .env("MNEMOSCOPE_STATE", desk.folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words}");
    }
}

#[test]
fn values_in_odd_spellings_are_found_whole_and_told_of() {
    let desk = Desk::new();
    desk.text(&["migrate", "--apply"]);
    let long = "i".repeat(300);
    statement(
        &desk.database,
        &format!(
            "INSERT INTO episodes (id, title, started_at, canvas_action_count, metadata, feedback_score) VALUES \
             ('wide', 'w', '2020-01-01T10:00:00-0330', 9007199254740993, '{{\"u\": \"nee\\u0064le\"}}', NULL), \
             ('early', 'e', '2020-01-01t10:00:00z', 9007199254740992, NULL, NULL), \
             ('{long}', 'zebrafinch', NULL, 0, NULL, 'x')"
        ),
    );
    statement(&desk.database, "DROP TABLE memory_access_items");
    let found = |words: &[&str]| -> Vec<String> {
        let json = desk.json(&[words, &["--format", "json"]].concat());
        json["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let list = |condition| found(&["list", "episode", "--where", condition, "--where", "started_at < 2021-01-01"]);
    assert_eq!(list("canvas_action_count = 9007199254740993"), ["wide"]);
    assert_eq!(list("canvas_action_count < 9007199254740993"), ["early"]);
    assert_eq!(list("metadata ~ needle"), ["wide"]);
    assert_eq!(found(&["find", "zebrafinch", "--entity", "episode"]), [long.as_str()]);
    let past = ["list", "episode", "--as-of", "2020-01-01T12:00:00Z", "--where", "started_at < 2021-01-01"];
    assert_eq!(found(&past), ["early"]);
    let shown = desk.json(&["show", "episode", "wide", "--format", "json"]);
    assert_eq!(shown["episode"]["id"], "wide", "{shown}");
    let csv = desk.on(&["list", "episode", "--where", "title = zebrafinch", "--format", "csv"]);
    assert!(String::from_utf8_lossy(&csv.stderr).contains("1 row has values that cannot be read"), "{csv:?}");
    statement(
        &desk.database,
        "DELETE FROM memory_embeddings WHERE memory_id = (SELECT min(memory_id) FROM memory_embeddings)",
    );
    let missing = desk.json(&["findings", "--kind", "vector_missing", "--format", "json"]);
    let of_memories = |found: &Value| found["entity"] == "memory" && found["count"].as_u64() > Some(0);
    assert!(missing["findings"].as_array().unwrap().iter().any(of_memories), "{missing}");
    let odd = || {
        let found = desk.json(&["findings", "--kind", "vector_size", "--format", "json"]);
        let found = found["findings"].as_array().unwrap().iter().find(|found| found["entity"] == "episode").cloned();
        found.and_then(|found| found["count"].as_u64()).unwrap_or_default()
    };
    let before = odd();
    statement(
        &desk.database,
        "UPDATE episode_embeddings SET embedding = 'no vector' WHERE episode_id = (SELECT max(episode_id) \
         FROM episode_embeddings WHERE length(embedding) = (SELECT max(length(embedding)) FROM episode_embeddings))",
    );
    assert_eq!(odd(), before + 1, "a text that is no vector");
}

/// The names of a command and of those below it, with their own options.
fn own_options(name: &str, command: &clap::Command, found: &mut Vec<(String, Vec<String>)>) {
    let options = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set());
    found.push((name.to_owned(), options.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
        own_options(&format!("{name} {}", below.get_name()), below, found);
    }
}

#[test]
fn the_manual_page_stands_alone_and_holds_every_option() {
    use clap::CommandFactory as _;
    let page = Desk::new().text(&["man"]).replace('\\', "");
    let mut commands = Vec::new();
    for command in mnemoscope::cli::args::Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        own_options(command.get_name(), command, &mut commands);
    }
    for (name, options) in commands {
        let heading = if name.contains(' ') { format!(".SS \"{name}\"") } else { format!(".SS {name}") };
        let (_, part) = page.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
        let part = part.split("\n.S").next().unwrap_or_default();
        assert!(options.iter().all(|option| part.contains(option)), "{name}: {options:?} {part}");
    }
    assert!(!page.contains("(1)"), "it refers to no other page");
    let sections = ["EXIT STATUS", "ENVIRONMENT", "FILES"]
        .map(|name| format!(".SH \"{name}\"").replace("\"ENVIRONMENT\"", "ENVIRONMENT").replace("\"FILES\"", "FILES"));
    assert!(sections.iter().all(|section| page.contains(section)), "{sections:?}");
    assert!(page.starts_with(&format!(".TH mnemoscope 1 \"\" \"mnemoscope {}\"", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn what_is_not_there_ends_with_3_and_an_unknown_number_with_2() {
    let desk = Desk::new();
    let config = desk.folder.path().join("config.toml");
    std::fs::write(
        &config,
        format!("[profile.half]\nread = \"x.db\"\n[profile.two]\ndatabase = \"x.db\"\nwrite = \"y.db\"\n[profile.good]\nwrite = {:?}\n", desk.database),
    )
    .unwrap();
    let ask = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(words).env("MNEMOSCOPE_CONFIG", &config).env("MNEMOSCOPE_STATE", desk.folder.path());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for (words, code, said) in [
        (&["-d", "good", "layouts", "test", "/nonexistent"][..], 3, "no layout"),
        (&["layouts", "show", "nope"], 3, "no layout"),
        (&["-d", "good", "--layout", "nope", "status"], 3, "no layout"),
        (&["--profile", "nope", "status"], 3, "no profile"),
        (&["-d", "nope", "status"], 3, "no such file"),
        (&["-d", "good", "migrate", "--to", "99"], 2, "no migration 99"),
        (&["-d", "good", "migrate", "--to", "99", "--apply"], 2, "no migration 99"),
        (&["-d", "good", "migrate", "--to", "2"], 0, ""),
        // A profile that is wrong stops only what names it.
        (&["-d", "half", "status"], 2, "names no database"),
        (&["-d", "two", "status"], 2, "names two databases"),
        (&["-d", "good", "status"], 0, ""),
    ] {
        let answer = ask(words);
        assert!(answer.0 == Some(code) && answer.1.contains(said), "{words:?}: {answer:?}");
    }
}

#[test]
fn every_ranking_says_whether_vectors_or_words_were_compared() {
    let desk = Desk::new();
    for ranking in ["boosted", "proven", "cases", "similar"] {
        let found = desk.json(&["recall", "invoice", "--ranking", ranking, "--topic", "invoice"]);
        assert_eq!(found["query"]["used"], "keyword", "{ranking}");
    }
}
