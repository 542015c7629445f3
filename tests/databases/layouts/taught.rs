//! Layouts taught by a file, on tables that nobody would have designed: what they list, and whom they erase.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::stores::{made, told};
use crate::support::{block_on, program};

const TYPELESS: &str = r#"
    name = "typeless"
    title = "Notes"
    requires = ["notes/owner"]

    [[memory]]
    table = "notes"
    write = {}
    [memory.columns]
    id = "id"
    text = "body"
    user_id = "owner"

    [[erase]]
    table = "notes"
    column = "owner"

    [[erase]]
    table = "replies"
    column = "note"
    of = "notes"
    to = "id"
"#;

/// A database of these tables with a layout for them.
struct Taught {
    folder: TempDir,
    database: PathBuf,
}

impl Taught {
    fn new(tables: &str, layout: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let database = made(&folder, "taught", tables);
        std::fs::write(folder.path().join("taught.toml"), layout).expect("a layout");
        Taught { folder, database }
    }

    fn told(&self, words: &[&str]) -> Value {
        let layout = self.folder.path().join("taught.toml");
        told(&self.database, &[&["--layout", layout.to_str().expect("a path")], words].concat())
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.env("HOME", self.folder.path()).env_remove("MNEMOSCOPE_DATABASE");
        command.arg("-d").arg(&self.database).arg("--layout").arg(self.folder.path().join("taught.toml"));
        command.args(words).output().expect("it runs")
    }

    /// The answer of `layouts check` or `layouts test`, whatever the exit code.
    fn of_file(&self, word: &str) -> Value {
        let mut command = Command::new(program());
        command.env("HOME", self.folder.path()).env_remove("MNEMOSCOPE_DATABASE");
        command.arg("-d").arg(&self.database).args(["--format", "json", "layouts", word]);
        let done = command.arg(self.folder.path().join("taught.toml")).output().expect("it runs");
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)))
    }

    fn column(&self, sql: &'static str) -> Vec<String> {
        block_on(async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&self.database);
            let mut link =
                <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.expect("the file");
            sqlx::query_scalar(sql).fetch_all(&mut link).await.expect("rows")
        })
    }
}

#[test]
fn an_owner_of_a_column_without_a_type_is_the_same_however_it_is_kept() {
    let taught = Taught::new(
        "CREATE TABLE notes (id, owner, body);
         CREATE TABLE replies (id integer primary key, note);
         INSERT INTO notes VALUES (1, 70123, 'integer'), ('b', '70123', 'text'), (3, 70123.0, 'real'), ('d', x'3730313233', 'blob'),
           ('e', '070123', 'another'), (6, 70124, 'a third'), ('g', NULL, 'nobody');
         INSERT INTO replies VALUES (1, 1), (2, '1'), (3, 'b'), (4, x'33'), (5, 'e'), (6, 6);",
        TYPELESS,
    );
    let named = taught.told(&["list", "memory", "--where", "user_id = 70123"]);
    let mut kept: Vec<&str> = named["rows"].as_array().unwrap().iter().filter_map(|row| row["text"].as_str()).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["blob", "integer", "real", "text"]);
    taught.told(&["migrate", "--apply"]);
    let receipt = taught.told(&["purge", "70123", "--mentions", "leave", "--apply"]);
    assert_eq!(receipt["counts"], json!({ "notes": { "delete": 4 }, "replies": { "delete": 4 } }));
    assert_eq!(taught.column("SELECT body FROM notes ORDER BY body"), ["a third", "another", "nobody"]);
    assert_eq!(taught.column("SELECT CAST(id AS TEXT) FROM replies ORDER BY id"), ["5", "6"]);
}

const TALKS: &str = r#"
    name = "talks"
    title = "Talks"
    requires = ["talks/owner"]

    [[episode]]
    table = "talks"
    write = {}
    [episode.columns]
    id = "id"
    user_id = "owner"

    [[segment]]
    table = "lines"
    write = {}
    [segment.columns]
    id = "id"
    episode_id = "talk"
    content = "said"

    [[erase]]
    table = "talks"
    column = "owner"
"#;

const TALK_ROWS: &str = "CREATE TABLE talks (id text primary key, owner text, room text);
    CREATE TABLE lines (id integer primary key, talk text, said text);
    INSERT INTO talks VALUES ('t1', 'ada-1', 'a'), ('t2', 'bo-22', 'a'), ('t3', 'ada-1', 'b');
    INSERT INTO lines (id, talk, said) VALUES (1, 't1', 'hello'), (2, 't2', 'tea'), (3, 't3', 'bye'), (4, 't2', 'milk');";

#[test]
fn parts_of_an_episode_go_with_it_where_no_rule_says_so() {
    let taught = Taught::new(TALK_ROWS, TALKS);
    assert_eq!(taught.of_file("test")["faults"], json!([]));
    taught.told(&["migrate", "--apply"]);
    let receipt = taught.told(&["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["counts"], json!({ "lines": { "delete": 2 }, "talks": { "delete": 2 } }));
    assert_eq!(taught.column("SELECT said FROM lines ORDER BY id"), ["tea", "milk"]);
}

#[test]
fn a_column_by_which_rows_of_others_refer_to_a_row_is_not_edited() {
    let layout = r#"
        name = "codes"
        title = "Codes"
        requires = ["notes/code"]

        [[memory]]
        table = "notes"
        write = {}
        [memory.columns]
        id = "id"
        title = "code"
        text = "body"
    "#;
    let taught = Taught::new(
        "CREATE TABLE notes (id integer primary key, code text, body text, UNIQUE (code, body));
         CREATE TABLE parts (id integer primary key, code text, body text, \
           FOREIGN KEY (code, body) REFERENCES notes (code, body) ON UPDATE CASCADE);
         INSERT INTO notes VALUES (1, 'a', 'tea'), (2, 'b', 'coffee');
         INSERT INTO parts VALUES (1, 'a', 'tea'), (2, NULL, NULL);",
        layout,
    );
    taught.told(&["migrate", "--apply"]);
    for column in ["title=x", "text=x"] {
        let refused = taught.run(&["edit", "memory", "1", column, "--apply"]);
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(5) && words.contains("rows of parts refer to this row by"), "{words}");
        taught.told(&["edit", "memory", "2", column, "--apply"]);
    }
    assert_eq!(taught.column("SELECT code || body FROM notes ORDER BY id"), ["atea", "xx"]);
}

const FACTS: &str = r#"
    name = "facts"
    title = "Facts"
    requires = ["facts/owner"]

    [[memory]]
    table = "facts"
    vector = { table = "vectors", key = "fact", column = "numbers" }
    write = { touch = ["changed"] }
    [memory.columns]
    id = "id"
    user_id = "owner"
    text = "said"
    importance = "weight"
    status = { column = "state", map = { "0" = "active", "1" = "superseded" } }
    updated_at = { column = "changed", stored = "epoch-millis" }

    [[erase]]
    table = "facts"
    column = "owner"
"#;

const FACT_ROWS: &str = "CREATE TABLE facts (id text primary key, owner text, said text, weight real, state integer, changed integer);
    CREATE TABLE vectors (fact text, numbers text);
    INSERT INTO facts VALUES ('f1', 'ada-1', 'tea', 0.5, 0, 1770000000000), ('f2', 'bo-22', 'milk', 'heavy', 0, 1770000000001),
      ('f3', 'ada-1', 'oats', 0.25, 1, 1770000000002), ('f4', 'bo-22', 'rye', 0.75, 1, 'soon'), ('f5', 'bo-22', 'bran', 9e999, 0, 1770000000003);
    INSERT INTO vectors SELECT id, '[0.25, ' || rowid || '.5]' FROM facts;";

#[test]
fn vectors_beside_rows_go_with_them_where_no_rule_says_so() {
    let taught = Taught::new(FACT_ROWS, FACTS);
    taught.told(&["migrate", "--apply"]);
    let receipt = taught.told(&["remove", "memory", "f2", "--apply"]);
    assert_eq!(receipt["counts"], json!({ "facts": { "delete": 1 }, "vectors": { "delete": 1 } }));
    let receipt = taught.told(&["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["counts"], json!({ "facts": { "delete": 2 }, "vectors": { "delete": 2 } }));
    assert_eq!(taught.column("SELECT fact FROM vectors ORDER BY fact"), ["f4", "f5"]);
}

#[test]
fn vectors_of_several_kinds_in_one_table_are_left_alone() {
    let rows = FACT_ROWS.replace(
        "CREATE TABLE vectors (fact text, numbers text)",
        "CREATE TABLE vectors (fact text, numbers text, kind text)",
    );
    let rows = rows.replace("INSERT INTO vectors SELECT id,", "INSERT INTO vectors (fact, numbers) SELECT id,");
    let taught = Taught::new(&format!("{rows} INSERT INTO vectors VALUES ('f2', '[9]', 'turn');"), FACTS);
    taught.told(&["migrate", "--apply"]);
    assert_eq!(taught.told(&["remove", "memory", "f2", "--apply"])["counts"], json!({ "facts": { "delete": 1 } }));
}

#[test]
fn rows_of_a_view_with_the_same_id_are_each_listed_once_in_an_order_of_values() {
    let rows = "CREATE TABLE stored (id text, owner text, said text, weight, state integer, changed integer);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
          INSERT INTO stored SELECT 'f' || (i / 2), 'bo-22', 'w' || i, CASE i % 3 WHEN 0 THEN 'odd' || i ELSE i / 8.0 END, 0, 0 FROM n;
        CREATE TABLE vectors (fact text, numbers text);
        CREATE VIEW facts AS SELECT * FROM stored;";
    let taught = Taught::new(rows, FACTS);
    let page = taught.told(&["list", "memory", "--order", "importance:asc", "--limit", "100"]);
    let rows = page["rows"].as_array().expect("rows");
    let mut texts: Vec<&str> = rows.iter().filter_map(|row| row["text"].as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!((rows.len(), texts.len()), (60, 60));
    let (mut paged, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let words = ["list", "memory", "--order", "importance:asc", "--limit", "7"];
        let page = match &after {
            Some(after) => taught.told(&[&words[..], &["--after", after]].concat()),
            None => taught.told(&words),
        };
        paged.extend(page["rows"].as_array().expect("rows").iter().cloned());
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() || paged.len() > 60 {
            break;
        }
    }
    assert_eq!(&paged, rows);
    let known: Vec<f64> = rows.iter().filter_map(|row| row["importance"].as_f64()).collect();
    assert_eq!(known.len(), 40);
    assert!(known.is_sorted() && rows[40..].iter().all(|row| row["importance"].is_null()));
}

#[test]
fn a_person_of_an_id_and_of_an_address_is_one() {
    let tables = format!(
        "{FACT_ROWS} CREATE TABLE people (id text primary key, mail text);
         CREATE TABLE asked (id integer primary key, by_mail text, words text);
         INSERT INTO people VALUES ('ada-1', 'ada@corp.example'), ('bo-22', 'bo@corp.example');
         INSERT INTO asked VALUES (1, 'ada@corp.example', 'why'), (2, 'bo@corp.example', 'how'), (3, 'ada@corp.example', 'who');"
    );
    let rules = "[[handle]]\ntable = \"people\"\nid = \"id\"\ncolumn = \"mail\"\nkind = \"e-mail\"\n\
         [[erase]]\ntable = \"people\"\ncolumn = \"id\"\naccount = true\n\
         [[erase]]\ntable = \"asked\"\ncolumn = \"by_mail\"\n";
    for person in ["ada-1", "ada@corp.example"] {
        let taught = Taught::new(&tables, &format!("{FACTS}\n{rules}"));
        taught.told(&["migrate", "--apply"]);
        taught.told(&["hold", "ada-1", "--reason", "court", "--apply"]);
        let refused = taught.run(&["purge", person, "--account", "erase", "--apply"]);
        assert_eq!(refused.status.code(), Some(5), "{person}");
        taught.told(&["unhold", "ada-1", "--apply"]);
        let receipt = taught.told(&["purge", person, "--account", "erase", "--apply"]);
        assert_eq!(receipt["counts"]["asked"], json!({ "delete": 2 }), "{person}: {receipt:#}");
        assert_eq!(receipt["counts"]["facts"], json!({ "delete": 2 }), "{person}");
        assert_eq!(taught.column("SELECT words FROM asked"), ["how"]);
        assert_eq!(taught.column("SELECT id FROM people"), ["bo-22"]);
    }
}

#[test]
fn a_number_of_the_second_way_is_in_order_where_the_first_holds_none() {
    let layout = FACTS.replace("importance = \"weight\"", "importance = [\"weight\", \"weight2\"]");
    let rows = FACT_ROWS
        .replace("changed integer)", "changed integer, weight2 real)")
        .replace("INSERT INTO facts VALUES", "INSERT INTO facts (id, owner, said, weight, state, changed) VALUES");
    let taught =
        Taught::new(&format!("{rows} UPDATE facts SET weight2 = 0.6 WHERE id IN ('f2', 'f5', 'f1');"), &layout);
    for (order, wanted) in
        [("importance:asc", ["f3", "f1", "f2", "f5", "f4"]), ("importance:desc", ["f4", "f5", "f2", "f1", "f3"])]
    {
        let page = taught.told(&["list", "memory", "--order", order]);
        let ids: Vec<&str> =
            page["rows"].as_array().expect("rows").iter().filter_map(|row| row["id"].as_str()).collect();
        assert_eq!(ids, wanted, "{order}");
    }
}

#[test]
fn a_condition_that_fails_is_an_error_of_the_file() {
    let typo = FACTS.replace("write = { touch", "keep = \"t.nope = 1\"\n    write = { touch");
    let errors = Taught::new(FACT_ROWS, &typo).of_file("check")["errors"].clone();
    assert_eq!(errors.as_array().map(Vec::len), Some(1), "{errors:#}");
    assert!(errors[0]["message"].as_str().unwrap().contains("nope"), "{errors:#}");
}

#[test]
fn values_are_written_as_their_columns_are_read() {
    let taught = Taught::new(FACT_ROWS, FACTS);
    taught.told(&["migrate", "--apply"]);
    taught.told(&["edit", "memory", "f1", "text=green tea", "--apply"]);
    assert_eq!(taught.column("SELECT typeof(changed) FROM facts WHERE id = 'f1'"), ["integer"]);
    taught.told(&["edit", "memory", "f1", "status=superseded", "--apply"]);
    assert_eq!(taught.column("SELECT typeof(state) || state FROM facts WHERE id = 'f1'"), ["integer1"]);
    let refused = taught.run(&["edit", "memory", "f1", "status=archived", "--apply"]);
    assert_eq!(refused.status.code(), Some(5));
    assert_eq!(taught.column("SELECT CAST(state AS TEXT) FROM facts WHERE id = 'f1'"), ["1"]);
}

#[test]
fn numbers_are_in_order_beside_what_is_none() {
    let taught = Taught::new(FACT_ROWS, FACTS);
    for (order, wanted) in [
        ("importance:asc", ["f3", "f1", "f4", "f2", "f5"]),
        ("importance:desc", ["f4", "f1", "f3", "f5", "f2"]),
        ("updated_at:asc", ["f1", "f2", "f3", "f5", "f4"]),
        ("updated_at:desc", ["f5", "f3", "f2", "f1", "f4"]),
    ] {
        for limit in ["1", "2", "9"] {
            let (mut ids, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
            loop {
                let words = ["list", "memory", "--order", order, "--limit", limit];
                let page = match &after {
                    Some(after) => taught.told(&[&words[..], &["--after", after]].concat()),
                    None => taught.told(&words),
                };
                let rows = page["rows"].as_array().expect("rows");
                ids.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
                after = page["next"].as_str().map(str::to_owned);
                if after.is_none() || ids.len() > 9 {
                    break;
                }
            }
            assert_eq!(ids, wanted, "{order} {limit}");
        }
    }
}

#[test]
fn a_rule_that_takes_parts_of_other_peoples_episodes_is_a_fault() {
    let rule = "\n[[erase]]\ntable = \"lines\"\ncolumn = \"room\"\nof = \"talks\"\nto = \"room\"\n";
    let rows = TALK_ROWS.replace("said text", "said text, room text default 'a'");
    let tried = Taught::new(&rows, &format!("{TALKS}{rule}")).of_file("test");
    assert_eq!(tried["purge"]["other_rows_changed"], 2, "{tried:#}");
    assert_eq!(tried["faults"], json!(["erasing `ada-1` on a copy deleted 2 rows of other people"]));
}

#[test]
fn a_rule_of_a_table_that_is_not_there_is_an_error_and_so_is_a_condition_that_fails() {
    for (rule, told) in [
        ("table = \"linse\"\ncolumn = \"talk\"\nof = \"talks\"", "table `linse` does not exist"),
        ("table = \"lines\"\ncolumn = \"talk\"\nof = \"talk\"", "table `talk` does not exist"),
        (
            "table = \"lines\"\ncolumn = \"talk\"\nof = \"talks\"\nwhen = \"t.sayd <> ''\"",
            "column `sayd` is not in lines",
        ),
    ] {
        let taught = Taught::new(TALK_ROWS, &format!("{TALKS}\n[[erase]]\n{rule}\n"));
        let errors = taught.of_file("check")["errors"].clone();
        assert_eq!(errors.as_array().map(Vec::len), Some(1), "{errors:#}");
        assert!(errors[0]["message"].as_str().unwrap().contains(told), "{errors:#}");
    }
    let may_lack = "\n[[erase]]\ntable = \"linse\"\ncolumn = \"talk\"\nof = \"talks\"\nrequires = [\"linse\"]\n";
    assert_eq!(Taught::new(TALK_ROWS, &format!("{TALKS}{may_lack}")).of_file("check")["errors"], json!([]));
}

#[test]
fn items_of_a_list_are_rows_also_where_the_list_is_json_within_json_or_not_strict() {
    let layout = r#"
        name = "turns"
        title = "Turns"
        requires = ["talks/turns"]

        [[segment]]
        table = "talks"
        each = "turns"
        [segment.columns]
        id = { columns = ["id", "item.key"] }
        episode_id = "id"
        content = { column = "item", path = "said" }
    "#;
    let taught = Taught::new(
        r#"CREATE TABLE talks (id text primary key, turns);
           INSERT INTO talks VALUES ('a', '[{"said": "plain"}, {"said": "twice"}]'), ('b', '"[{\"said\": \"within\"}]"'),
             ('c', '[{"said": "odd", "cost": NaN}]'), ('d', x'5b7b2273616964223a22626c6f62227d5d'),
             ('e', '"[no list"'), ('f', '{"said": "no list"}'), ('g', NULL);"#,
        layout,
    );
    let rows = taught.told(&["list", "segment"])["rows"].clone();
    let mut said: Vec<&str> = rows.as_array().unwrap().iter().filter_map(|row| row["content"].as_str()).collect();
    said.sort_unstable();
    assert_eq!(said, ["blob", "odd", "plain", "twice", "within"]);
}

#[test]
fn an_id_that_two_people_have_is_told_before_both_are_erased() {
    let layout = format!(
        "{TALKS}\n[[subject]]\ntable = \"people\"\n[subject.columns]\nid = \"login\"\n\n\
         [[erase]]\ntable = \"people\"\ncolumn = \"login\"\n"
    );
    let people = "CREATE TABLE people (login text, tenant text, primary key (login, tenant));
        INSERT INTO people VALUES ('ada-1', 'north'), ('ada-1', 'south'), ('bo-22', 'north');";
    let taught = Taught::new(&format!("{TALK_ROWS}{people}"), &layout);
    taught.told(&["migrate", "--apply"]);
    for (person, told) in [("ada-1", true), ("bo-22", false)] {
        let plan = taught.told(&["purge", person, "--mentions", "leave"]);
        let words = plan["disclosures"].to_string();
        assert_eq!(
            words.contains("2 people of this database have the id `ada-1`: they are erased together"),
            told,
            "{words}"
        );
    }
}

#[test]
fn a_value_that_loses_the_person_by_a_rule_loses_references_to_rows_that_go_too() {
    let layout = format!(
        "{TALKS}\n[[workflow_event]]\ntable = \"logs\"\n[workflow_event.columns]\nid = \"id\"\ndata = \"data\"\n\n\
         [[erase]]\ntable = \"logs\"\ncolumn = \"data\"\npath = \"by\"\naction = \"empty\"\n"
    );
    let logs = "INSERT INTO talks VALUES ('talk-aaa-4711', 'ada-1', 'z');
        CREATE TABLE logs (id integer primary key, data text);
        INSERT INTO logs VALUES (1, '{\"by\": \"ada-1\", \"ref\": \"talk-aaa-4711\", \"said\": \"hi\"}'),
          (2, '{\"by\": \"bo-22\", \"ref\": \"talk-aaa-4711\"}');";
    let taught = Taught::new(&format!("{TALK_ROWS}{logs}"), &layout);
    taught.told(&["migrate", "--apply"]);
    let receipt = taught.told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
    assert_eq!(receipt["status"], "verified", "{receipt:#}");
    let left = taught.column("SELECT data FROM logs ORDER BY id");
    assert!(left.iter().all(|data| !data.contains("4711") && !data.contains("ada-1")), "{left:?}");
    assert!(left[0].contains("hi") && left[1].contains("bo-22"), "{left:?}");
}

#[test]
fn rows_that_may_be_anybodys_lower_the_word_of_an_erasure() {
    let rows = "CREATE TABLE past (id integer primary key, talk text, actor text, was text);
        INSERT INTO past VALUES (1, 't1', 'ada-1', 'tea'), (2, 't1', NULL, 'green tea'), (3, 't9', NULL, 'mint tea'),
          (4, NULL, NULL, 'coffee');";
    let rules = "\n[[audit_entry]]\ntable = \"past\"\n[audit_entry.columns]\nid = \"id\"\nactor = \"actor\"\n\n\
        [[erase]]\ntable = \"past\"\ncolumn = \"actor\"\n\n\
        [[erase]]\ntable = \"past\"\ncolumn = \"talk\"\nof = \"past\"\nto = \"talk\"\n";
    for (unowned, word) in [("", "verified"), ("unowned = [\"past\"]\n", "verified with disclosures")] {
        let taught = Taught::new(&format!("{TALK_ROWS}{rows}"), &format!("{unowned}{TALKS}{rules}"));
        taught.told(&["migrate", "--apply"]);
        let receipt = taught.told(&["purge", "ada-1", "--apply"]);
        assert_eq!(receipt["status"], word, "{receipt:#}");
        assert!(receipt["disclosures"].to_string().contains("2 rows of past name no owner"), "{receipt:#}");
        assert_eq!(taught.column("SELECT CAST(id AS TEXT) FROM past ORDER BY id"), ["3", "4"]);
    }
}

#[test]
fn a_table_that_the_layout_does_not_know_holds_no_rows_of_anybody() {
    let layout = format!("unowned = [\"talks\", \"lined\"]\n{TALKS}");
    let errors = Taught::new(TALK_ROWS, &layout).of_file("check")["errors"].clone();
    assert_eq!((errors.as_array().map(Vec::len), &errors[0]["key"]), (Some(1), &json!("unowned")), "{errors:#}");
    let words = errors[0]["message"].as_str().unwrap_or_default();
    assert!(words.contains("unknown table `lined`; did you mean `lines`?"), "{errors:#}");
}

#[test]
fn a_copy_of_a_time_fills_its_column() {
    let copies =
        "write = { copies = [{ of = \"started_at\", column = \"room\", path = \"at\", form = \"iso-seconds\" }] }";
    let layout = TALKS.replacen("write = {}", copies, 1);
    let errors = Taught::new(TALK_ROWS, &layout).of_file("check")["errors"].clone();
    assert!(errors[0]["message"].as_str().is_some_and(|words| words.contains("fills its column")), "{errors:#}");
}
