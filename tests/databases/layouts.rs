//! Layout files: what a good one comes to, and what the errors of a bad one say; drafts of them.

mod awkward;
mod both;
mod draft;
mod language;
mod letta;
mod servers;
mod stores;
mod taught;

use mnemoscope::layout::{
    BoundOrigin, Catalog, CatalogColumn, CatalogTable, Engine, LayoutError, builtin, parse, recognise,
};
use mnemoscope::memory::Entity;

const TICKETS: &str = r#"
name = "tickets"
title = "Our ticket bot's memory"
requires = ["ticket_memory/ticket_text"]

[[episode]]
table = "ticket_memory"
[episode.columns]
id = "ticket_id"
title = "ticket_text"
outcome = { column = "state", map = { solved = "success" } }
tags = { column = "labels", optional = true }
"#;

fn errors(text: &str) -> Vec<LayoutError> {
    parse("x.toml", text).expect_err("the layout is wrong on purpose")
}

fn table(name: &str, columns: &[(&str, &str)]) -> CatalogTable {
    let column = |(name, declared): &(&str, &str)| CatalogColumn {
        name: (*name).to_owned(),
        declared: (*declared).to_owned(),
        ..CatalogColumn::default()
    };
    CatalogTable {
        schema: "main".to_owned(),
        name: name.to_owned(),
        visible: true,
        columns: columns.iter().map(column).collect(),
        ..CatalogTable::default()
    }
}

#[test]
fn every_shipped_layout_is_sound_and_named_like_its_file() {
    let layouts = builtin::all().expect("shipped layouts");
    let names: Vec<_> = layouts.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "agno", "atom", "atom-2026-02", "audit-trail", "claude-mem", "ennube", "google-adk", "google-adk-memory",
            "hindsight", "langgraph-checkpoints", "langgraph-shallow", "langgraph-store", "letta",
            "mcp-memory-service", "mem0", "mem0-history", "memori", "mempalace", "mnemoscope", "nous", "open-webui",
            "openai-agents", "pyworkflow"
        ]
    );
    for (name, text) in builtin::texts() {
        assert_eq!(parse(name, text).expect(name).name, name);
    }
}

#[test]
fn the_native_layout_maps_every_entity() {
    let layouts = builtin::all().expect("shipped layouts");
    let native = layouts.iter().find(|l| l.name == "mnemoscope").expect("native");
    for entity in Entity::ALL {
        assert!(native.sources.iter().any(|s| s.entity == *entity), "{entity} is not mapped");
    }
}

#[test]
fn an_unknown_column_names_file_line_key_and_the_nearest_name() {
    let wrong = TICKETS.replace("title = \"ticket_text\"", "titel = \"ticket_text\"");
    let [error] = &errors(&wrong)[..] else { panic!("one error") };
    assert_eq!((error.file.as_str(), error.line), ("x.toml", 10));
    assert_eq!(error.key, "episode[0].columns.titel");
    assert!(error.message.contains("did you mean `title`?"), "{}", error.message);
}

#[test]
fn each_kind_of_mistake_is_found_on_its_line() {
    let cases = [
        ("name = \"tickets\"", "nam = \"tickets\"", "nam", "did you mean `name`?"),
        ("[[episode]]", "[[episod]]", "episod", "did you mean `episode`?"),
        ("table = \"ticket_memory\"", "tabel = \"ticket_memory\"", "episode[0].tabel", "did you mean `table`?"),
        ("id = \"ticket_id\"", "", "episode[0].columns.id", "missing"),
        ("column = \"state\"", "colum = \"state\"", "episode[0].columns.outcome.colum", "did you mean `column`?"),
        ("optional = true", "optional = 3", "episode[0].columns.tags.optional", "true or false"),
        ("optional = true", "stored = \"epok\"", "episode[0].columns.tags.stored", "did you mean `epoch`?"),
        ("requires = [\"ticket_memory/ticket_text\"]", "requires = []", "requires", "name at least one"),
        ("title = \"Our", "engines = [\"mysql\"]\ntitle = \"Our", "engines", "sqlite, postgres"),
    ];
    for (from, to, key, words) in cases {
        let found = errors(&TICKETS.replace(from, to));
        assert!(
            found.iter().any(|e| e.key == key && e.message.contains(words)),
            "{to}: no error at {key} with {words:?} among {found:?}"
        );
    }
}

#[test]
fn a_text_that_is_no_toml_is_one_error_with_its_line() {
    let [error] = &errors("name = \"a\"\ntitle = = 3\n")[..] else { panic!("one error") };
    assert_eq!(error.line, 2);
}

#[test]
fn a_layout_is_bound_to_the_columns_that_are_there() {
    let layout = parse("x.toml", TICKETS).expect("sound");
    let columns = [("ticket_id", "text"), ("Ticket_Text", "text"), ("state", "text")];
    let catalog = Catalog { tables: vec![table("ticket_memory", &columns)], ..Catalog::default() };
    let found = recognise(&[layout], Engine::Sqlite, &catalog);
    let [source] = &found.sources[..] else { panic!("one source") };
    let [title] = source.column("title") else { panic!("one way") };
    assert!(matches!(&title.origin, BoundOrigin::Column { name, .. } if name == "Ticket_Text"));
    assert!(source.column("tags").is_empty());
    let [missing] = &found.layouts[0].missing[..] else { panic!("one missing column") };
    assert!(missing.optional && missing.message.contains("labels"));
}

#[test]
fn a_database_without_what_a_layout_requires_is_not_recognised() {
    let layout = parse("x.toml", TICKETS).expect("sound");
    let catalog = Catalog { tables: vec![table("ticket_memory", &[("ticket_id", "text")])], ..Catalog::default() };
    assert!(recognise(&[layout], Engine::Sqlite, &catalog).layouts.is_empty());
}

#[test]
fn two_layouts_may_fit_and_a_table_goes_to_the_more_specific_one() {
    let first = parse("x.toml", TICKETS).expect("sound");
    let second = TICKETS
        .replace("name = \"tickets\"", "name = \"tickets-2\"")
        .replace("[\"ticket_memory/ticket_text\"]", "[\"ticket_memory\", \"ticket_notes\"]")
        + "[[segment]]\ntable = \"ticket_notes\"\n[segment.columns]\nid = \"n\"\n";
    let second = parse("y.toml", &second).expect("sound");
    let catalog = Catalog {
        tables: vec![
            table("ticket_memory", &[("ticket_id", "text"), ("ticket_text", "text"), ("state", "text")]),
            table("ticket_notes", &[("n", "text")]),
        ],
        ..Catalog::default()
    };
    let found = recognise(&[first, second], Engine::Sqlite, &catalog);
    let names: Vec<_> = found.layouts.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["tickets-2", "tickets"]);
    let sources: Vec<_> = found.sources.iter().map(|s| (s.entity, s.layout.as_str())).collect();
    assert_eq!(sources, [(Entity::Episode, "tickets-2"), (Entity::Segment, "tickets-2")]);
}
