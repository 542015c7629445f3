//! Shipped migrations: read from their files, split into steps, and compared with a database.
//!
//! A file of `assets/migrations/SERIES/ENGINE/` begins with comment lines `-- key: words` (`effect`, `lock risk`,
//! `requires`, `optional`, `blank`, `was`) and consists of steps, each introduced by `-- step: NAME`. The objects that
//! a step creates are parsed from its statements: a step is skipped if all of them exist, so that a migration can
//! continue where it stopped.

use std::collections::HashMap;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use super::structure::{Structure, StructurePart};
use crate::ground::assets;
use crate::layout::{Catalog, Engine};

/// The series, each with its base number, so that one list holds them all.
const SERIES: &[(&str, i64)] =
    &[(OWN, 0), (NATIVE, 1_000), ("atom-2026-02", 2_000), ("atom", 3_000), ("nous", 4_000), ("ennube", 5_000)];

/// The series of our own tables, for any layout.
pub const OWN: &str = "own";

/// The series of the native layout, for an empty database.
pub const NATIVE: &str = "mnemoscope";

/// A shipped migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Unique number; the list is ordered by it.
    pub version: i64,
    /// Series that the migration belongs to: our own tables, or a layout by name.
    pub series: &'static str,
    /// Unique name: the file's, prefixed by the layout's if it belongs to one.
    pub name: String,
    /// SQL statements of the migration.
    pub sql: &'static str,
    /// SHA-256 of the statements.
    pub checksum: String,
    /// Checksums of earlier versions that create the same objects: a database with one of these is up to date.
    pub earlier: Vec<String>,
    /// Effect of the migration.
    pub effect: String,
    /// Locks that the migration takes, and for how long.
    pub lock_risk: String,
    /// Word by which it is requested, if it is optional.
    pub optional: Option<String>,
    /// Tables, or columns as `table/column`, that must exist for it to apply.
    requires: Vec<String>,
    /// True when the migration can be applied to an empty database.
    pub blank: bool,
}

/// A part of a migration that runs as a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStep {
    /// Name, for people.
    pub name: String,
    /// SQL that the step runs.
    pub sql: String,
    /// Objects that exist after the step.
    pub makes: Vec<StructurePart>,
    /// Object that must exist; otherwise the step is skipped.
    needs: Option<StructurePart>,
    /// True if the step runs outside a transaction, without blocking writers.
    pub concurrent: bool,
}

/// The migrations of a series for an engine, in order.
pub fn of(series: &str, engine: Engine) -> Vec<Migration> {
    let Some((series, base)) = SERIES.iter().find(|(name, _)| *name == series).copied() else { return Vec::new() };
    let read = |(file, sql): (&'static str, _)| read(series, base, file.strip_suffix(".sql")?, sql);
    let mut all: Vec<Migration> =
        assets::within(&format!("migrations/{series}/{}", engine.name())).filter_map(read).collect();
    all.sort_by_key(|m| m.version);
    all
}

/// Every migration for an engine, in the order of their numbers.
pub fn all(engine: Engine) -> Vec<Migration> {
    SERIES.iter().flat_map(|(series, _)| of(series, engine)).collect()
}

fn read(series: &'static str, base: i64, file: &str, sql: &'static str) -> Option<Migration> {
    let said = |key: &str| header(sql, key).map(str::to_owned);
    Some(Migration {
        version: base + file.split('_').next()?.parse::<i64>().ok()?,
        series,
        name: if series == OWN { file.to_owned() } else { format!("{series}/{file}") },
        checksum: hex::encode(Sha256::digest(sql.as_bytes())),
        earlier: said("was").iter().flat_map(|w| w.split(' ')).map(str::to_owned).collect(),
        effect: said("effect").unwrap_or_default(),
        lock_risk: said("lock risk").unwrap_or_default(),
        optional: said("optional"),
        requires: said("requires").iter().flat_map(|r| r.split(' ')).map(str::to_owned).collect(),
        blank: said("blank").is_some(),
        sql,
    })
}

fn header<'a>(sql: &'a str, key: &str) -> Option<&'a str> {
    sql.lines().find_map(|line| line.strip_prefix("-- ")?.strip_prefix(key)?.strip_prefix(": "))
}

impl Migration {
    /// Whether the database has the objects that the migration requires.
    pub fn fits(&self, structure: &Structure) -> bool {
        let there = |need: &String| match need.split_once('/') {
            Some((table, column)) => structure.has(&StructurePart::Column(table.to_owned(), column.to_owned())),
            None => structure.has(&StructurePart::Table(need.clone())),
        };
        self.requires.iter().all(there)
    }

    /// Names of the tables and indexes that the migration makes.
    pub fn names(&self) -> Vec<String> {
        let name = |part| match part {
            StructurePart::Table(name) | StructurePart::Index(name, _) => Some(name),
            _ => None,
        };
        made_by(self.sql).into_iter().filter_map(name).collect()
    }

    /// Returns the steps of the migration for a database, including those already done.
    pub fn steps(&self, structure: &Structure) -> Vec<MigrationStep> {
        let mut steps = self.written_steps();
        if steps.is_empty() {
            steps = self.steps_of_script(structure);
        }
        steps.retain(|step| step.needs.as_ref().is_none_or(|need| structure.can_have(need)));
        for step in &mut steps {
            // A table created here has no users yet, so indexing it takes no time.
            let fresh = |part: &StructurePart| matches!(part, StructurePart::Index(_, table) if !structure.has(&StructurePart::Table(table.clone())));
            if step.concurrent && step.makes.iter().any(fresh) {
                step.concurrent = false;
                step.sql = step.sql.replace(" CONCURRENTLY", "");
            }
        }
        steps
    }

    /// The steps marked in the file.
    fn written_steps(&self) -> Vec<MigrationStep> {
        let mut steps = Vec::new();
        let begins = |line: &&str| line.starts_with("-- step: ");
        let mut lines = self.sql.lines().skip_while(|line| !begins(line)).peekable();
        while let Some(name) = lines.next().and_then(|line| line.strip_prefix("-- step: ")) {
            let mut body = String::new();
            while let Some(line) = lines.next_if(|line| !begins(line)) {
                body.push_str(line);
                body.push('\n');
            }
            steps.push(MigrationStep::read(name, body.trim_end()));
        }
        steps
    }

    /// The steps of a file without marks: the whole file if a table is missing, otherwise each missing index.
    fn steps_of_script(&self, structure: &Structure) -> Vec<MigrationStep> {
        let whole = MigrationStep::read("tables and indexes", self.sql);
        let lacks_table = |part: &StructurePart| matches!(part, StructurePart::Table(_)) && !structure.has(part);
        if whole.makes.iter().any(lacks_table) {
            return vec![whole];
        }
        let concurrently = structure.engine() == Engine::Postgres;
        let index = |line: &str| {
            let step = MigrationStep::read("", line);
            let Some(StructurePart::Index(name, _)) = step.makes.first() else { return None };
            let sql = if concurrently { line.replacen(" INDEX ", " INDEX CONCURRENTLY ", 1) } else { line.to_owned() };
            Some(MigrationStep { name: format!("index {name}"), concurrent: concurrently, sql, ..step })
        };
        self.sql.lines().filter(|line| line.starts_with("CREATE ") && line.ends_with(';')).filter_map(index).collect()
    }
}

impl MigrationStep {
    fn read(name: &str, sql: &str) -> MigrationStep {
        let extension = |key: &str| header(sql, key).and_then(named_part);
        let mut makes = made_by(sql);
        makes.extend(extension("makes"));
        MigrationStep {
            name: name.to_owned(),
            makes,
            needs: extension("needs"),
            concurrent: sql.contains(" CONCURRENTLY "),
            sql: sql.to_owned(),
        }
    }

    /// Whether all objects that it creates exist.
    pub fn done(&self, structure: &Structure) -> bool {
        self.makes.iter().all(|part| structure.has(part))
    }
}

/// Parses `table NAME` or `extension NAME`.
fn named_part(words: &str) -> Option<StructurePart> {
    let (kind, name) = words.split_once(' ')?;
    match kind {
        "table" => Some(StructurePart::Table(name.to_owned())),
        "extension" => Some(StructurePart::Extension(name.to_owned())),
        _ => None,
    }
}

/// Lists the parts that statements create, judged by their first words.
fn made_by(sql: &str) -> Vec<StructurePart> {
    let bare: String =
        sql.lines().filter(|line| !line.trim_start().starts_with("--")).flat_map(|l| [l, "\n"]).collect();
    let words: Vec<&str> = bare.split(|c: char| c.is_whitespace() || matches!(c, '(' | ';' | '\'')).collect();
    let words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
    let mut parts = Vec::new();
    for at in 0..words.len() {
        let rest: Vec<&str> = words[at..].iter().copied().filter(|w| !FILLERS.contains(w)).take(7).collect();
        let owned = |text: &str| text.trim_matches('"').to_owned();
        match rest[..] {
            // Filler words come between the keyword and the name, never before it.
            _ if FILLERS.contains(&words[at]) => {}
            ["CREATE", "TABLE", table, ..] => parts.push(StructurePart::Table(owned(table))),
            ["CREATE", "INDEX", index, "ON", table, ..] => parts.push(StructurePart::Index(owned(index), owned(table))),
            ["CREATE", "POLICY", policy, "ON", table, ..] => {
                parts.push(StructurePart::Policy(owned(policy), owned(table)));
            }
            ["ALTER", "TABLE", table, "ADD", "COLUMN", column, ..] => {
                parts.push(StructurePart::Column(owned(table), owned(column)));
            }
            ["ALTER", "TABLE", table, "ENABLE", "ROW", "LEVEL", ..] => {
                parts.push(StructurePart::Security(owned(table)));
            }
            _ => {}
        }
    }
    parts
}

const FILLERS: &[&str] = &["IF", "NOT", "EXISTS", "UNIQUE", "CONCURRENTLY"];

/// The columns that our migrations create in one of our own tables, in order; empty for other tables.
pub fn own_columns(engine: Engine, table: &str) -> &'static [&'static str] {
    static COLUMNS: LazyLock<[HashMap<&str, Vec<&str>>; 2]> =
        LazyLock::new(|| [Engine::Sqlite, Engine::Postgres].map(created));
    COLUMNS[usize::from(engine == Engine::Postgres)].get(table).map_or(&[], Vec::as_slice)
}

/// The columns of our own tables by table name. In the files, each begins a line.
fn created(engine: Engine) -> HashMap<&'static str, Vec<&'static str>> {
    let mut tables: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut open = None;
    for line in assets::within(&format!("migrations/{OWN}/{}", engine.name())).flat_map(|(_, sql)| sql.lines()) {
        let begins = line.strip_prefix("CREATE TABLE ").and_then(|rest| rest.strip_suffix(" ("));
        open = begins.or(open).filter(|_| !line.starts_with(')'));
        let word = line.split_whitespace().next().filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
        if let (Some(table), Some(column)) = (open, word) {
            tables.entry(table).or_default().push(column);
        }
    }
    tables
}

/// Whether a database has no tables except possibly ours.
pub fn is_blank(catalog: &Catalog, engine: Engine) -> bool {
    catalog.tables.iter().all(|table| super::own::is_ours(table, engine))
}

/// State of a migration in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The migration.
    pub migration: Migration,
    /// Steps of the migration, each with whether it is done.
    pub steps: Vec<(MigrationStep, bool)>,
    /// True if the migration was begun but not finished.
    pub begun: bool,
    /// True when the migration is recorded as applied.
    pub recorded: bool,
}

impl Standing {
    /// Whether any step remains.
    pub fn is_pending(&self) -> bool {
        if self.migration.series == OWN {
            return !self.recorded;
        }
        self.begun || self.steps.iter().any(|(_, done)| !done)
    }

    /// Whether it is applied by default: a step remains, and it is not optional.
    pub fn is_due(&self) -> bool {
        self.is_pending() && self.migration.optional.is_none()
    }

    /// The next step, if it was begun.
    pub fn goes_on_at(&self) -> Option<&str> {
        let next = self.steps.iter().find(|(_, done)| !done);
        self.begun.then(|| next.map_or("verification", |(step, _)| step.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_has_a_number_of_its_own_and_says_what_it_does() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let mut numbers = std::collections::HashSet::new();
            for migration in all(engine) {
                assert!(numbers.insert(migration.version), "{}", migration.name);
                assert!(!migration.effect.is_empty() && !migration.lock_risk.is_empty(), "{}", migration.name);
                for step in migration.written_steps() {
                    assert!(
                        !step.makes.is_empty(),
                        "{}: {} creates nothing that can be seen",
                        migration.name,
                        step.name
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_statement_makes_is_read_from_it() {
        let column = |t: &str, c: &str| StructurePart::Column(t.to_owned(), c.to_owned());
        assert_eq!(made_by("ALTER TABLE heart.a ADD COLUMN IF NOT EXISTS b uuid"), [column("heart.a", "b")]);
        assert_eq!(
            made_by("-- CREATE TABLE c (\nCREATE INDEX CONCURRENTLY IF NOT EXISTS x ON t (a, b)"),
            [StructurePart::Index("x".to_owned(), "t".to_owned())]
        );
        assert_eq!(made_by("CREATE TABLE IF NOT EXISTS t (\n id text)"), [StructurePart::Table("t".to_owned())]);
        assert_eq!(made_by("EXECUTE format('CREATE TABLE IF NOT EXISTS t (')"), [StructurePart::Table("t".to_owned())]);
    }
}
