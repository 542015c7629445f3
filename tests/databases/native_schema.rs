//! The native layout's migrations: the same tables, columns and indexes on both engines, and a column for whatever an
//! entity has that is not derived.

use std::collections::{BTreeMap, BTreeSet};

use mnemoscope::memory::Entity;

const SQLITE: &str = concat!(
    include_str!("../../assets/migrations/mnemoscope/sqlite/0001_native.sql"),
    include_str!("../../assets/migrations/mnemoscope/sqlite/0003_whole_memories.sql")
);
const POSTGRES: &str = concat!(
    include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql"),
    include_str!("../../assets/migrations/mnemoscope/postgres/0003_whole_memories.sql")
);

/// Tables that PostgreSQL does not need: an index over a list serves there.
const SQLITE_ONLY: &[&str] = &["memory_access_items"];

/// Columns of each table. A column is a line of its own, a name and a type; so are the tables made by `format`.
fn tables(sql: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut table = String::new();
    for line in sql.lines() {
        if let Some((_, rest)) = line.split_once("CREATE TABLE IF NOT EXISTS ") {
            rest.trim_end_matches(" (").clone_into(&mut table);
        } else if let Some((altered, column)) =
            line.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split_once(" ADD COLUMN "))
        {
            let column = column.trim_start_matches("IF NOT EXISTS ").split(' ').next().unwrap_or_default();
            tables.entry(altered.to_owned()).or_default().insert(column.to_owned());
        } else if line.trim_start().starts_with(')') {
            table.clear();
        } else if let Some(name) = line.split_whitespace().next().filter(|_| !table.is_empty()) {
            let columns = tables.entry(table.clone()).or_default();
            if name != "PRIMARY" {
                columns.insert(name.trim_matches('"').to_owned());
            }
        }
    }
    tables
}

fn indexes(sql: &'static str) -> BTreeSet<&'static str> {
    let index =
        |line: &'static str| line.strip_prefix("CREATE INDEX ")?.split_once("IF NOT EXISTS ").map(|(_, rest)| rest);
    sql.lines().filter_map(index).collect()
}

#[test]
fn both_engines_have_the_same_tables() {
    let mut sqlite = tables(SQLITE);
    sqlite.retain(|name, _| !SQLITE_ONLY.contains(&name.as_str()));
    assert!(sqlite.len() > 15);
    assert_eq!(sqlite, tables(POSTGRES));
}

#[test]
fn both_engines_have_the_same_indexes() {
    let (sqlite, postgres) = (indexes(SQLITE), indexes(POSTGRES));
    let missing: Vec<_> = sqlite.difference(&postgres).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let more: Vec<_> = postgres.difference(&sqlite).filter(|index| !index.contains(" USING ")).collect();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn every_entity_has_its_columns() {
    let tables = tables(SQLITE);
    for (entity, table, derived) in [
        (Entity::Agent, "agents", &["episodes"][..]),
        (Entity::Subject, "subjects", &["episodes", "cases", "feedback", "last_seen"]),
        (Entity::Episode, "episodes", &[]),
        (Entity::Segment, "episode_segments", &[]),
        (Entity::CanvasEvent, "canvas_audit", &[]),
        (Entity::Feedback, "agent_feedback", &["score", "counts", "source"]),
        (Entity::UtilityEvent, "utility_events", &[]),
        (Entity::Memory, "memories", &[]),
        (Entity::MemoryLink, "episode_memories", &[]),
        (Entity::Profile, "agent_memory_profiles", &["k"]),
        (Entity::Case, "agent_memory_cases", &["has_vector"]),
        (Entity::Policy, "agent_memory_policies", &[]),
        (Entity::WorkflowEvent, "workflow_events", &[]),
        (Entity::Access, "memory_access", &[]),
        (Entity::AuditEntry, "agent_memory_audit", &["source"]),
    ] {
        for column in entity.columns().iter().filter(|column| !derived.contains(&column.name)) {
            assert!(tables[table].contains(column.name), "{table} has no {}", column.name);
        }
    }
}
