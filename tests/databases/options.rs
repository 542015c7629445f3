//! Options that mean nothing next to others are refused, or said to play no part: none is skipped without a word.

use std::path::Path;
use std::process::Output;

use crate::support::{alone_in, changeable_demo_in};
use serde_json::Value;

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        changeable_demo_in(folder.path(), 120);
        std::fs::write(folder.path().join("fleet.toml"), "[[database]]\nurl = \"demo.db\"\nlabel = \"a\"\n")
            .expect("a file");
        Desk { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, line: &str) -> Output {
        let words = line.split(' ');
        let mut command = alone_in(self.path());
        command.current_dir(self.path()).args(["--format", "json"]).args(words).output().expect("the program")
    }

    fn json(&self, line: &str) -> Value {
        let done = self.run(line);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{line}: {e}: {done:?}"))
    }
}

#[test]
fn options_that_mean_nothing_beside_others_are_refused() {
    let desk = Desk::new();
    let refused = [
        ("purge felix.abbott --fleet fleet.toml --plan-out p.json", "--plan-out"),
        ("purge felix.abbott --fleet fleet.toml --what-if", "--what-if"),
        ("purge felix.abbott --fleet fleet.toml -d demo.db", "leave out -d"),
        ("purge felix.abbott --fleet fleet.toml --layout mnemoscope", "--layout"),
        ("purge verify some-receipt --fleet fleet.toml -d demo.db", "leave out -d"),
        ("-d demo.db purge felix.abbott --resume --plan-out p.json", "--plan-out"),
        ("-d demo.db purge felix.abbott --apply --plan-out p.json", "--plan-out"),
        ("-d demo.db purge felix.abbott --apply --what-if", "--what-if"),
        ("-d demo.db purge --alias felix verify some-receipt", "go after it"),
        ("-d demo.db purge --export out verify some-receipt", "go after it"),
        ("-d demo.db prune --apply --what-if", "--what-if"),
        ("-d demo.db prune --older-than 1d --keep-diverse", "--window"),
        ("-d demo.db export subject felix.abbott --where id=x", "--where"),
        ("-d demo.db backfill --apply", "backfill NAME --apply"),
        ("-d demo.db backfill pause links --rate 5", "--rate"),
        ("-d demo.db backfill links --from-feedback", "backfill utility"),
        ("-d demo.db backfill resume utility --from-feedback", "as it was started"),
        ("-d demo.db migrate --optional nothing-like-it", "nothing-like-it"),
        ("-d demo.db findings --kind write_burst muted", "--kind"),
        ("-d demo.db console demo.db", "name it once"),
        ("-d other.db demo --no-console", "demo PATH"),
        ("demo other.db --no-console --plain", "--plain"),
    ];
    for (line, told) in refused {
        let done = desk.run(line);
        let error: Value = serde_json::from_slice(&done.stderr).unwrap_or_else(|e| panic!("{line}: {e}: {done:?}"));
        assert_eq!((done.status.code(), &error["error"]["code"]), (Some(2), &Value::from("usage")), "{line}: {error}");
        assert!(error["error"].to_string().contains(told), "{line}: {error}");
        assert!(done.stdout.is_empty(), "{line}");
    }
    assert!(!desk.path().join("p.json").exists() && !desk.path().join("other.db").exists());
    assert!(!desk.path().join("out").exists());
}

#[test]
fn nothing_is_changed_where_the_receipt_could_not_be_printed() {
    let desk = Desk::new();
    let stored = || std::fs::read(desk.path().join("demo.db")).expect("the database");
    let before = stored();
    for line in ["purge felix.abbott --apply", "prune --window 1 --apply", "migrate --apply", "jobs run"] {
        let done = desk.run(&format!("-d demo.db {line} --format csv"));
        assert_eq!(done.status.code(), Some(2), "{line}: {done:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains("not a table of rows"), "{line}: {done:?}");
        assert!(stored() == before, "{line}");
    }
}

#[test]
fn a_plan_of_migrations_holds_those_that_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::demo_in(folder.path(), 20);
    let desk = Desk { folder };
    let pending = |line: &str| desk.json(line)["pending"].as_array().expect("a list").len();
    let all = pending("-d demo.db migrate");
    assert_eq!((pending("-d demo.db migrate --to 1"), all > 1), (1, true));
}

#[test]
fn parts_of_a_question_that_its_ranking_does_not_look_at_are_told() {
    let desk = Desk::new();
    let notes = |line: &str| desk.json(line)["query"]["notes"].to_string();
    let idle = |words: &str, option: &str| words.contains(&format!("{option} is not used by the ranking"));
    let asked = "-d demo.db recall invoice --ranking";
    for (ranking, own) in [("boosted", ""), ("proven", "--domain --topic"), ("similar", "--workflow --all-outcomes")] {
        let told = notes(&format!("{asked} {ranking} --domain a --topic b --workflow c --all-outcomes --downweight"));
        for option in ["--domain", "--topic", "--workflow", "--all-outcomes", "--downweight"] {
            assert_eq!(idle(&told, option), !own.contains(option), "{ranking} {option}: {told}");
        }
    }
    assert!(!idle(&notes(&format!("{asked} cases --policy none --downweight")), "--downweight"));
}
