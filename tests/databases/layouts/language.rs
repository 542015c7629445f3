//! The language's page: every key that a layout file may hold is on it, and in an example that works.

use std::collections::BTreeSet;

use mnemoscope::layout::parse;
use mnemoscope::memory::Entity;
use serde_json::json;

use super::stores::{made, told};

const PAGE: &str = include_str!("../../../docs/layouts.md");

/// The fenced blocks of the page in a language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    PAGE.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).map(|block| format!("{block}\n")).collect()
}

/// The keys that a table takes: what is said when another one is in it.
fn keys_of(text: &str) -> BTreeSet<String> {
    let errors = parse("x.toml", text).expect_err("a key that is none");
    let error =
        errors.iter().find(|e| e.message.contains("qqqqqqqqqqqqqqqqqqqqqqqq")).unwrap_or_else(|| panic!("{errors:?}"));
    let list = error.message.split("; one of ").nth(1).unwrap_or_else(|| panic!("{}", error.message));
    list.split(", ").filter(|key| Entity::parse(key).is_none_or(|e| e.name() != *key)).map(str::to_owned).collect()
}

fn every_key() -> BTreeSet<String> {
    const BAD: &str = "qqqqqqqqqqqqqqqqqqqqqqqq = 1\n";
    let head = "name = \"x\"\ntitle = \"x\"\nrequires = [\"t\"]\n";
    let source =
        |entity: &str, more: &str| format!("{head}[[{entity}]]\ntable = \"t\"\n{more}[{entity}.columns]\nid = \"a\"\n");
    let mut texts = vec![format!("{BAD}{head}[[memory]]\ntable = \"t\"\n[memory.columns]\nid = \"a\"\n")];
    texts.push(source("memory", BAD));
    texts.push(format!("{}text = {{ column = \"b\", {} }}\n", source("memory", ""), BAD.trim()));
    for entity in ["memory", "feedback", "episode", "audit_entry"] {
        texts.push(source(entity, &format!("write = {{ {} }}\n", BAD.trim())));
    }
    for part in
        ["vector = { QQ }", "links = [{ QQ }]", "write = { copies = [{ QQ }] }", "write = { insert = { a = { QQ } } }"]
    {
        texts.push(source("episode", &format!("{}\n", part.replace("QQ", BAD.trim()))));
    }
    texts.push(source("episode", &format!("write = {{ insert = {{ a = {{ by = \"status\", {} }} }} }}\n", BAD.trim())));
    for table in ["[[variant]]", "[[attach]]", "[[pattern]]", "[[handle]]", "[[erase]]", "[account]"] {
        texts.push(format!("{}\n{table}\n{BAD}", source("memory", "")));
    }
    texts.iter().flat_map(|text| keys_of(text)).collect()
}

#[test]
fn every_key_is_on_the_page_and_in_a_layout_on_it() {
    let keys = every_key();
    assert!(keys.len() > 60, "{keys:?}");
    let layouts: Vec<String> = blocks("toml").into_iter().filter(|block| block.contains("\ntitle = ")).collect();
    assert!(layouts.len() >= 3);
    for layout in &layouts {
        parse("page.toml", layout).unwrap_or_else(|errors| panic!("{errors:?}\n{layout}"));
    }
    let all = layouts.join("\n");
    let is_used = |key: &str| {
        [format!("{key} = "), format!("[[{key}]]"), format!("[{key}]"), format!(".{key}]")]
            .iter()
            .any(|form| all.contains(form.as_str()))
    };
    let unused: Vec<&String> = keys.iter().filter(|key| !is_used(key)).collect();
    assert!(unused.is_empty(), "in no layout of the page: {unused:?}");
    let is_told = |key: &str| {
        PAGE.lines().any(|line| {
            line.starts_with('|')
                && (line.contains(&format!("`{key}`"))
                    || line.contains(&format!("[[{key}]]"))
                    || line.contains(&format!("[{key}]"))
                    || line.contains(&format!("{key} = ")))
        })
    };
    let untold: Vec<&String> = keys.iter().filter(|key| !is_told(key)).collect();
    assert!(untold.is_empty(), "in no table of the page: {untold:?}");
}

#[test]
fn the_example_with_every_key_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let layout =
        blocks("toml").into_iter().find(|block| block.starts_with("name = \"every-key\"")).expect("the example");
    let schema = blocks("sql").into_iter().find(|block| block.contains("trail_index")).expect("its schema");
    let rows = "INSERT INTO people VALUES ('ada-1', 'ada@example.org', 'Ada'), ('bo', 'bo@example.org', 'Bo');
        INSERT INTO talks VALUES ('t1', 'ada-1', 'desk', 'tea', 'solved', 1772461855, 1, '{\"boards\":[\"b1\"]}', '[\"b1\"]', 'x'),
          ('t2', 'bo', 'desk', 'coffee', 'dropped', 1772461856, 0, '{}', '[]', 'x');
        INSERT INTO turns (talk, who, said, lower, at) VALUES ('t1', 'user', 'Tea please', 'tea please', 1772461855), ('t2', 'user', 'No', 'no', 1772461856);
        INSERT INTO boards VALUES ('b1', 't1', 'ada-1', 'docs', '2026-03-02T14:30:55Z', 'bo');
        INSERT INTO thumbs VALUES ('f1', 't1', 1, '2026-03-02T14:30:55Z', 'x', 'ada-1');
        INSERT INTO facts_de VALUES ('facts.ada-1', 'k', x'789cab562a49ad2851b252724c4954c8c9cc4e2d5628494d54aa050064470818', 'tea', NULL);
        INSERT INTO cards VALUES ('c1', 'a card', x'0000803F');
        INSERT INTO runs VALUES ('r1', '[{\"kind\":\"start\"},{\"kind\":\"end\"}]', '2026-03-02T14:30:55.000000Z');
        INSERT INTO trail VALUES (1, 'bo', 'looked', '2026-03-02T14:30:55Z');";
    let database = made(&folder, "every-key", &format!("{schema}{rows}"));
    let path = folder.path().join("every-key.toml");
    std::fs::write(&path, &layout).expect("a file");
    let path = path.to_str().expect("a path");
    let with = |words: &[&str]| told(&database, &[&["--layout", path], words].concat());
    for (entity, count) in [
        ("episode", 2),
        ("segment", 2),
        ("canvas_event", 1),
        ("feedback", 1),
        ("memory", 2),
        ("workflow_event", 2),
        ("audit_entry", 1),
    ] {
        let listed = with(&["list", entity]);
        assert_eq!(listed["rows"].as_array().map(Vec::len), Some(count), "{entity}: {listed:#}");
        assert!(listed["rows"].as_array().into_iter().flatten().all(|row| row["problems"].is_null()), "{listed:#}");
    }
    assert_eq!(with(&["show", "memory", "[\"facts.ada-1\",\"k\"]"])["text"], "Ada likes tea");
    let tried = told(&database, &["layouts", "test", path]);
    assert_eq!((&tried["ok"], &tried["purge"]["tried"]), (&json!(true), &json!(true)), "{tried:#}");
    assert_eq!(tried["entities"]["segment"]["links"]["episode_id"], json!({"named": 2, "found": 2}), "{tried:#}");
    with(&["migrate", "--apply"]);
    with(&["edit", "segment", "1", "content=Coffee PLEASE", "--apply"]);
    let stored = told(&database, &["table", "turns", "--where", "id=1"]);
    assert_eq!(stored["rows"][0]["lower"], "coffee please", "{stored:#}");
    // Two layouts at once: each contributes its entities.
    let second = folder.path().join("looks.toml");
    let looks = "name = \"looks\"\ntitle = \"x\"\nrequires = [\"looks\"]\n[[access]]\ntable = \"looks\"\n[access.columns]\nid = \"id\"\nuser_id = \"person\"\n";
    std::fs::write(&second, looks).expect("a file");
    let status = with(&["--layout", second.to_str().expect("a path"), "status"]);
    let names: Vec<&str> =
        status["layouts"].as_array().into_iter().flatten().filter_map(|l| l["name"].as_str()).collect();
    assert_eq!(names, ["every-key", "looks"], "{status:#}");
}
