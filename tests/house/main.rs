//! The rules of the house, read from the source: who may use whom, what stays pure, where SQL stands, what files are
//! called. Each rule is tried on a made-up offender too, so that a rule which sees nothing cannot pass for kept.

mod commands_page;
mod readme;
mod scan;

use scan::{Kind, paths, tokens};
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer with the layers that it may use; `change::plan` opens that module only. `main.rs` and `lib.rs`, the root, may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ground", &[]),
    ("memory", &["ground::assets"]),
    ("recall", &["memory"]),
    ("layout", &["ground::assets", "memory"]),
    ("store", &["ground", "layout", "memory"]),
    ("lab", &["ground", "store", "layout", "recall", "memory"]),
    ("change", &["ground", "lab", "store", "layout", "recall", "memory"]),
    ("job", &["ground", "change", "lab", "store", "layout", "recall", "memory"]),
    ("demo", &["ground", "store", "layout", "recall", "memory"]),
    ("config", &["console::core::key_map", "ground", "recall", "memory"]),
    ("ui", &["ground::assets", "memory::nearest", "memory::thousands"]),
    ("console", &["ui", "recall", "memory", "change::operation", "change::plan", "job::plan"]),
    (
        "shell",
        &["console", "ui", "config", "demo", "job", "change", "lab", "store", "layout", "recall", "memory", "ground"],
    ),
    (
        "cli",
        &[
            "shell", "console", "ui", "config", "demo", "job", "change", "lab", "store", "layout", "recall", "memory",
            "ground",
        ],
    ),
];

/// Layers without input, output or clocks: the same call gives the same answer.
const PURE: &[&str] = &["memory", "recall", "console", "ui"];

/// Paths that a pure layer must not name: any path that holds these segments in a row.
const IMPURE: &[&[&str]] = &[
    &["tokio"],
    &["sqlx"],
    &["rusqlite"],
    &["crossterm"],
    &["std", "fs"],
    &["std", "net"],
    &["std", "env"],
    &["std", "process"],
    &["SystemTime"],
    &["Instant", "now"],
    &["Utc", "now"],
    &["Local", "now"],
];

/// Statements by their keywords, in order.
const SQL: &[&[&str]] = &[
    &["SELECT", "FROM"],
    &["INSERT", "INTO"],
    &["UPDATE", "SET"],
    &["DELETE", "FROM"],
    &["CREATE", "TABLE"],
    &["ALTER", "TABLE"],
    &["DROP", "TABLE"],
    &["PRAGMA"],
];

/// Pieces of statements: words in capitals that stand next to each other.
const SQL_WORDS: &[&[&str]] = &[
    &["FROM"],
    &["WHERE"],
    &["AND"],
    &["OR"],
    &["IN"],
    &["IS", "NULL"],
    &["IS", "NOT", "NULL"],
    &["ORDER", "BY"],
    &["GROUP", "BY"],
    &["JOIN"],
    &["UNION"],
    &["CAST"],
    &["EXISTS"],
    &["LIMIT"],
    &["RETURNING"],
];

/// Pieces of statements by their signs, as source spells them: calls, casts, a column of the alias `t`, and the quote that
/// is doubled in a quoted name.
const SQL_SIGNS: &[&str] =
    &["count(*)", "json_each(", "coalesce(", "lower(", "::text", "::jsonb", "t.{", "t.\\\"", "\\\"\\\""];

/// Names that say nothing of what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"];

/// Ways to open a file, by how a path ends. Whoever opens a database file in a process with a connection to it takes the
/// connection's locks away when it closes the file again.
const OPENERS: &[&[&str]] = &[
    &["File", "open"],
    &["File", "create"],
    &["File", "create_new"],
    &["File", "options"],
    &["OpenOptions", "new"],
    &["fs", "read"],
    &["fs", "read_to_string"],
    &["fs", "write"],
    &["fs", "copy"],
    &["fs", "rename"],
    &["fs", "hard_link"],
];

/// Files that may open files, each with the reason why no database file in use is opened there.
const MAY_OPEN: &[(&str, &str)] = &[
    ("src/store/raw_file/child.rs", "the only door to raw bytes: a process without connections"),
    ("src/store/bulk.rs", "a new file under a name of its own, before and after it has a connection"),
    ("src/store/proof/holders.rs", "the kernel's lists below /proc"),
    ("src/job/record.rs", "the kernel's words below /proc"),
    ("src/ground/unfinished.rs", "the kernel's words below /proc"),
    ("src/ground/input_file.rs", "files that people name; those that this process has open are refused"),
    ("src/ground/private_file.rs", "files of ours, and those that people name for us; open ones are refused"),
    ("src/ground/scratch_file.rs", "files of ours without a name, made again"),
];

/// The one door to PostgreSQL.
const SERVER_DOOR: &str = "src/store/server/";

/// Beginnings of paths that reach PostgreSQL past that door.
const PAST_THE_DOOR: &[&[&str]] = &[
    &["sqlx", "postgres"],
    &["sqlx", "Postgres"],
    &["sqlx", "PgConnection"],
    &["sqlx", "PgPool"],
    &["sqlx", "Any"],
    &["sqlx", "AnyConnection"],
];

/// Ways to run a statement that keep it prepared on the server under a name; `query` too, unless told otherwise.
const KEEPS_A_NAME: &[&str] = &["query_as", "query_scalar", "query_with", "QueryBuilder", "prepare", "Executor"];

/// Beginnings of statements whose effect outlasts a transaction. On a server that a pooler gives to someone else next,
/// they would apply to that client.
const LASTS: &[&str] =
    &["SET SESSION ", "LISTEN ", "CREATE TEMP", "DECLARE ", "SELECT pg_advisory_lock", "DISCARD ", "PREPARE "];

/// Folders of a developer's own machine.
const MACHINE_FOLDERS: &[&str] = &["work", "root", "farm", "home", "Users"];

/// Crates whose types meet in our code: two versions of one would not fit together. Two copies of SQLite in one process would drop each
/// other's locks.
const SINGLE: &[&str] = &["ratatui", "crossterm", "sqlx", "tokio", "ratatui-textarea", "rusqlite", "libsqlite3-sys"];

/// A file of the repository, `path` relative to its root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_ours(&self) -> bool {
        self.path.starts_with("src/") && has_extension(&self.path, "rs")
    }

    /// The module that the file is, outermost first; empty for the root.
    fn module(&self) -> Vec<&str> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        inner.split('/').filter(|name| !matches!(*name, "mod" | "lib" | "main")).collect()
    }

    fn at(&self, line: usize, words: &str) -> String {
        format!("{}:{line}: {words}", self.path)
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// A path as it reads from the root of the package, or none when it does not name anything of ours.
fn from_root(module: &[&str], inside: &[String], segments: &[String]) -> Option<Vec<String>> {
    let here: Vec<String> = module.iter().map(ToString::to_string).chain(inside.iter().cloned()).collect();
    let (mut base, mut rest) = match segments.first()?.as_str() {
        "crate" | "mnemoscope" => (Vec::new(), &segments[1..]),
        "self" => (here, &segments[1..]),
        "super" => (here, segments),
        _ => return None,
    };
    while rest.first().is_some_and(|segment| segment == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

fn layering(source: &Source) -> Vec<String> {
    let module = source.module();
    let Some(&layer) = module.first() else { return Vec::new() };
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == layer) else {
        return vec![source.at(1, &format!("`{layer}` has no place in the house: give it one in tests/house.rs"))];
    };
    let named = paths(&tokens(&source.text)).into_iter();
    let used = named.filter_map(|path| Some((path.line, from_root(&module, &path.inside, &path.segments)?)));
    used.filter_map(|(line, path)| {
        let other = path.first()?;
        let within = |door: &&str| door.split("::").zip(&path).all(|(wanted, part)| wanted == part);
        let fine = other == layer || allowed.iter().any(|door| path.len() > door.matches("::").count() && within(door));
        (!fine).then(|| source.at(line, &format!("`{layer}` must not use `{}`", path.join("::"))))
    })
    .collect()
}

/// The rooms of the console: screens and overlays are made against `core` and drawn with `view`; none knows another screen,
/// nor the machine. What a screen asks for and gets is in its `messages`, which all may name.
fn rooms(source: &Source) -> Vec<String> {
    let module = source.module();
    let ["console", room, inner @ ..] = &module[..] else { return Vec::new() };
    let named = paths(&tokens(&source.text)).into_iter();
    let used = named.filter_map(|path| Some((path.line, from_root(&module, &path.inside, &path.segments)?)));
    used.filter_map(|(line, path)| {
        let [first, other, deeper @ ..] = &path[..] else { return None };
        let is_data = deeper.get(1).is_some_and(|part| part == "messages");
        let is_own = inner.first().is_none_or(|own| deeper.first().is_some_and(|part| part == own));
        let fine = first != "console"
            || match (*room, other.as_str()) {
                ("machine", _) | (_, "core" | "view") | ("overlays", "overlays") => true,
                ("screens", "screens") => is_own || is_data,
                (_, "screens" | "overlays") => is_data,
                _ => false,
            };
        (!fine).then(|| source.at(line, &format!("a room of the console must not use `{}`", path.join("::"))))
    })
    .collect()
}

fn purity(source: &Source) -> Vec<String> {
    let module = source.module();
    let Some(layer) = module.first().filter(|layer| PURE.contains(layer)) else { return Vec::new() };
    let impure =
        |segments: &[String]| IMPURE.iter().any(|taboo| segments.windows(taboo.len()).any(|part| part == *taboo));
    let named = paths(&tokens(&source.text)).into_iter().filter(|path| impure(&path.segments));
    named
        .map(|path| {
            source.at(path.line, &format!("`{layer}` is pure and must not name `{}`", path.segments.join("::")))
        })
        .collect()
}

/// Whether a text holds a piece of a statement, by its words or by its signs. A sign that is more than the end of a word
/// stands alone.
fn is_piece_of_sql(text: &str) -> bool {
    // What is in braces is a name of the code's own.
    let outside: String = text.split('{').map(|part| part.rsplit_once('}').map_or(part, |(_, rest)| rest)).collect();
    let words = outside.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let in_words = SQL_WORDS.iter().any(|piece| words.windows(piece.len()).any(|part| part == *piece));
    let in_word =
        |at: usize| text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '\\'));
    in_words || SQL_SIGNS.iter().any(|sign| text.match_indices(sign).any(|(at, _)| !in_word(at)))
}

/// Whether a text reads as SQL: it begins with a statement's first keyword (or `WITH`) and holds the others in order,
/// each a word of its own, in capitals. A text that quotes a statement somewhere is only a text.
fn is_sql(text: &str) -> bool {
    let words = || text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    SQL.iter().any(|keywords| {
        let begins = words().next().is_some_and(|word| word == keywords[0] || word == "WITH");
        let mut rest = words();
        begins && keywords.iter().all(|keyword| rest.any(|word| word == *keyword))
    })
}

fn sql_in_its_place(source: &Source) -> Vec<String> {
    if source.path.starts_with("src/store/") || source.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let texts = tokens(&source.text).into_iter().filter(|token| !token.in_tests());
    texts
        .filter(|token| matches!(&token.kind, Kind::Text(text) if is_sql(text) || is_piece_of_sql(text)))
        .map(|token| source.at(token.line, "SQL is in src/store/ and assets/ only"))
        .collect()
}

/// File that puts advised commands together; no other one may hold the shell words for them.
const ADVISER: &str = "src/memory/invocation.rs";

/// Commands that people are advised to run name the database as it was named and are quoted by one function.
fn advice_from_one_place(source: &Source) -> Vec<String> {
    let is_own = |text: &str| text.contains("mnemoscope -d {") || text.contains(r"'\\''");
    let texts = tokens(&source.text).into_iter().filter(|token| !token.in_tests() && source.path != ADVISER);
    texts
        .filter(|token| matches!(&token.kind, Kind::Text(text) if is_own(text)))
        .map(|token| source.at(token.line, "an advised command is put together by memory::invocation"))
        .collect()
}

fn telling_name(source: &Source) -> Vec<String> {
    let names = source.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
    let found = names.filter(|name| EMPTY_NAMES.contains(name));
    let files = found.map(|name| source.at(1, &format!("`{name}` says nothing of what is inside")));
    let code = if has_extension(&source.path, "rs") { tokens(&source.text) } else { Vec::new() };
    let modules = code.windows(2).filter_map(|pair| match (&pair[0].kind, &pair[1].kind) {
        (Kind::Word(keyword), Kind::Word(name)) if keyword == "mod" && EMPTY_NAMES.contains(&name.as_str()) => {
            Some(source.at(pair[1].line, &format!("`mod {name}` says nothing of what is inside")))
        }
        _ => None,
    });
    files.chain(modules).collect()
}

fn says_what_it_is_for(source: &Source) -> Vec<String> {
    let said = source.text.starts_with("//! ");
    if said { Vec::new() } else { vec![source.at(1, "opens with a `//!` line that says what the file is for")] }
}

/// Words that a documented thing does not begin with: they open a fragment, not a subject or a verb.
const FRAGMENTS: [&str; 14] = [
    "What", "How", "Where", "Why", "Which", "Who", "When", "Whose", "Of", "That", "Whom", "Something", "Someone", "Its",
];

/// Documentation begins with its subject ("The score of…") or with a verb ("Reads…").
fn names_its_subject(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim_start).collect();
    let doc = |line: &str| line.strip_prefix("///").or(line.strip_prefix("//!")).map(str::trim).map(str::to_owned);
    let found = lines.iter().enumerate().filter(|(at, line)| {
        let is_first = *at == 0 || doc(lines[at - 1]).is_none();
        let words = doc(line).filter(|_| is_first).unwrap_or_default();
        let first = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        FRAGMENTS.contains(&first)
    });
    found
        .map(|(at, line)| source.at(at + 1, &format!("begins with a fragment, not with its subject: {line}")))
        .collect()
}

fn no_machine_paths(source: &Source) -> Vec<String> {
    let names_machine = |line: &str| {
        MACHINE_FOLDERS.iter().any(|folder| {
            let path = format!("/{folder}/");
            line.match_indices(&path).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '~' | '}'))
            })
        })
    };
    let lines = source.text.lines().enumerate().filter(|(_, line)| names_machine(line));
    lines.map(|(number, _)| source.at(number + 1, "a path of someone's own machine")).collect()
}

fn single_versions(lock: &str) -> Vec<String> {
    let lock: toml::Table = lock.parse().expect("Cargo.lock is TOML");
    let packages = lock["package"].as_array().expect("Cargo.lock lists packages");
    let versions = |name: &str| packages.iter().filter(|package| package["name"].as_str() == Some(name)).count();
    let counted = SINGLE.iter().map(|name| (name, versions(name)));
    counted
        .filter(|(_, count)| *count != 1)
        .map(|(name, count)| format!("Cargo.lock: {count} versions of {name}"))
        .collect()
}

/// Files are opened only where it is known that no connection of ours is to them.
fn opens_no_database(source: &Source) -> Vec<String> {
    if MAY_OPEN.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let opens = |segments: &[String]| {
        OPENERS.iter().any(|end| segments.len() >= end.len() && segments[segments.len() - end.len()..] == **end)
    };
    let named = paths(&tokens(&source.text)).into_iter();
    let tests = |path: &scan::Path| path.inside.iter().any(|module| module == "tests");
    named
        .filter(|path| !tests(path) && opens(&path.segments))
        .map(|path| {
            let words =
                format!("`{}`: raw bytes of databases are read through store::raw_file only", path.segments.join("::"));
            source.at(path.line, &words)
        })
        .collect()
}

/// PostgreSQL is spoken to through one door, which leaves nothing behind on a server.
fn one_door_to_postgres(source: &Source) -> Vec<String> {
    let code = tokens(&source.text);
    let named: Vec<scan::Path> =
        paths(&code).into_iter().filter(|path| !path.inside.iter().any(|m| m == "tests")).collect();
    let at_door = source.path.starts_with(SERVER_DOOR);
    let wrong = |path: &&scan::Path| {
        let ends = |names: &[&str]| path.segments.last().is_some_and(|last| names.contains(&last.as_str()));
        let past = PAST_THE_DOOR
            .iter()
            .any(|start| path.segments.iter().zip(*start).filter(|(a, b)| a == *b).count() == start.len());
        if at_door { path.segments[0] == "sqlx" && ends(KEEPS_A_NAME) } else { past }
    };
    let words = "PostgreSQL is spoken to through store::server only, and without names for statements";
    let mut found: Vec<String> = named.iter().filter(wrong).map(|path| source.at(path.line, words)).collect();
    let lines = source.text.lines().enumerate().filter(|(_, line)| line.contains("sqlx::query(") && at_door);
    let kept = lines.filter(|(_, line)| !line.contains(".persistent(false)"));
    found.extend(kept.map(|(number, _)| source.at(number + 1, words)));
    if source.path.starts_with("src/store/") {
        let statements = code.iter().filter(|token| !token.in_tests()).filter_map(|token| match &token.kind {
            Kind::Text(text) => Some((token.line, text)),
            _ => None,
        });
        let lasts = |statement: &str| {
            let words = statement.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
            let of_transaction = ["SET LOCAL ", "SET CONSTRAINTS "].iter().any(|start| words.starts_with(start));
            let sets = words.starts_with("SET ") && !of_transaction;
            sets || LASTS.iter().any(|start| words.starts_with(start))
        };
        let lasting = statements.filter(|(_, text)| text.split(';').any(lasts));
        found.extend(lasting.map(|(line, _)| source.at(line, "nothing is set for longer than a transaction")));
    }
    found
}

/// Every file of the repository that people write, leaving out what Git ignores by our `.gitignore` and test data.
fn repository() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.to_path_buf()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a folder of the repository");
        for path in entries.map(|entry| entry.expect("an entry of the folder").path()) {
            let name = relative(root, &path);
            if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | "tests/data" | "tests/snapshots") {
                folders.push(path);
            } else if path.is_file() && name != ".git" {
                let text = String::from_utf8_lossy(&fs::read(&path).expect("a file of the repository")).into_owned();
                sources.push(Source { path: name, text });
            }
        }
    }
    sources
}

fn relative(root: &Path, path: &Path) -> String {
    let inner: PathBuf = path.strip_prefix(root).expect("a path below the root").to_path_buf();
    inner.to_string_lossy().into_owned()
}

fn check(chosen: impl Fn(&Source) -> bool, rule: impl Fn(&Source) -> Vec<String>) {
    let sources: Vec<Source> = repository().into_iter().filter(chosen).collect();
    assert!(!sources.is_empty(), "the rule looked at nothing");
    let broken: Vec<String> = sources.iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Counts the objections of a rule to a made-up file.
fn objections(rule: impl Fn(&Source) -> Vec<String>, path: &str, text: &str) -> usize {
    rule(&Source::new(path, text)).len()
}

#[test]
fn each_layer_uses_only_what_stands_below_it() {
    check(Source::is_ours, layering);
}

#[test]
fn the_layer_rule_sees_every_way_to_name_a_layer() {
    let offenders = [
        ("src/memory/row.rs", "use crate::layout::Layout;"),
        ("src/memory/row.rs", "use super::super::layout::Layout;"),
        ("src/memory/mod.rs", "use super::layout;"),
        ("src/memory/mod.rs", "use {std::fmt, crate::{memory::Row, store as s}};"),
        ("src/memory/row.rs", "use crate::*;"),
        ("src/memory/row.rs", "fn f() -> Vec<crate::store::Store> { vec![] }"),
        ("src/memory/row.rs", "mod inner { use super::super::super::cli; }"),
        ("src/memory/row.rs", "macro_rules! m { () => { $crate::shell::run() } }"),
        ("src/ui/text.rs", "pub use crate::memory::Row;"),
        ("src/console/core/model.rs", "use crate::shell::run;"),
        ("src/shell/run.rs", "use crate::cli::Exit;"),
        ("src/console/screens/home/mod.rs", "use mnemoscope::store::Store;"),
        ("src/attic/old.rs", "use std::fmt;"),
    ];
    for (path, text) in offenders {
        assert_eq!(objections(layering, path, text), 1, "{path}: {text}");
    }
    let fine = [
        ("src/memory/row.rs", "use super::{Entity, entity::Kind}; use crate::memory::*; // use crate::store::Store;"),
        ("src/memory/row.rs", "const WORDS: &str = \"crate::store\"; fn f<'a>(c: &'a char) -> bool { *c == '\"' }"),
        ("src/memory/row.rs", "mod tests { use super::super::row; use super::*; }"),
        ("src/store/page.rs", "use crate::{layout::Layout, memory::Row}; /* crate::cli /* nested */ crate::cli */"),
        (
            "src/console/screens/home/mod.rs",
            "use crate::{console::core::Model, ui::Theme}; const R: &str = r#\"crate::\"store\"#;",
        ),
        ("src/main.rs", "use mnemoscope::cli;"),
    ];
    for (path, text) in fine {
        assert_eq!(objections(layering, path, text), 0, "{path}: {text}");
    }
}

#[test]
fn screens_know_neither_each_other_nor_the_machine() {
    check(Source::is_ours, rooms);
    let offenders = [
        ("src/console/screens/inbox/mod.rs", "use crate::console::screens::recall::RecallScreen;"),
        ("src/console/screens/inbox/draw.rs", "use super::super::jobs::draw;"),
        ("src/console/screens/inbox/mod.rs", "use crate::console::machine::Model;"),
        ("src/console/screens/inbox/mod.rs", "use crate::console::Model;"),
        ("src/console/screens/inbox/mod.rs", "use crate::console::overlays::form::Form;"),
        ("src/console/overlays/form/mod.rs", "use crate::console::screens::inbox::InboxScreen;"),
        ("src/console/core/context.rs", "use crate::console::screens::inbox::InboxScreen;"),
        ("src/console/view/words.rs", "use crate::console::overlays::Overlay;"),
    ];
    for (path, text) in offenders {
        assert_eq!(objections(rooms, path, text), 1, "{path}: {text}");
    }
    let fine = [
        ("src/console/screens/inbox/draw.rs", "use super::InboxScreen; use crate::console::view::words;"),
        ("src/console/screens/mod.rs", "use inbox::InboxScreen; use super::core::screen::Screen;"),
        ("src/console/core/request.rs", "use crate::console::screens::receipts::messages::Entry;"),
        ("src/console/machine/act.rs", "use crate::console::screens::AnyScreen;"),
    ];
    for (path, text) in fine {
        assert_eq!(objections(rooms, path, text), 0, "{path}: {text}");
    }
}

#[test]
fn the_core_is_free_of_io_and_clocks() {
    check(Source::is_ours, purity);
}

#[test]
fn the_purity_rule_sees_io_and_clocks() {
    let offenders = [
        "use tokio::sync::mpsc;",
        "use ::std::{fmt, fs};",
        "use ratatui::crossterm::event::Event;",
        "fn f() { std::net::TcpStream::connect(a); }",
        "fn f() { let t = chrono::Utc::now(); }",
        "use std::time::{Duration, SystemTime};",
        "fn f() -> u64 { Instant::now().elapsed() }",
        "#[tokio::test] async fn f() {}",
    ];
    for text in offenders {
        assert_eq!(objections(purity, "src/console/core/model.rs", text), 1, "{text}");
        assert_eq!(objections(purity, "src/shell/run.rs", text), 0, "{text}");
    }
    assert_eq!(
        objections(purity, "src/console/core/model.rs", "use std::time::Duration; use ratatui::layout::Rect;"),
        0
    );
}

#[test]
fn sql_stands_in_the_store_only() {
    check(Source::is_ours, sql_in_its_place);
}

#[test]
fn the_sql_rule_sees_statements_and_not_words() {
    let offenders = [
        "\"SELECT id FROM episodes\"",
        "r#\"INSERT INTO t VALUES (1)\"#",
        "\"UPDATE t\n  SET a = 1\"",
        "\"DELETE FROM t\"",
        "\" FROM episodes\"",
        "\" AND \"",
        "\"{column} IS NULL\"",
        "\"{column} IS NOT NULL\"",
        "\"t.{}\"",
        r#""t.\"{}\"""#,
        r#""\"\"""#,
        "\"count(*)\"",
        "\"lower({name})\"",
        "\"{value}::text\"",
    ];
    for text in offenders {
        let code = format!("fn f() {{ run({text}) }}");
        assert_eq!(objections(sql_in_its_place, "src/cli/list.rs", &code), 1, "{text}");
        assert_eq!(objections(sql_in_its_place, "src/store/page.rs", &code), 0, "{text}");
        assert_eq!(objections(sql_in_its_place, "src/cli/list.rs", &format!("mod tests {{ {code} }}")), 0, "{text}");
    }
    let words = "fn f() { say(\"Select rows from the table\", \"Rob'); DROP TABLE t; --\"); /* SELECT a FROM b */ }";
    assert_eq!(objections(sql_in_its_place, "src/cli/list.rs", words), 0);
}

#[test]
fn postgres_is_spoken_to_through_one_door_that_leaves_nothing_behind() {
    check(Source::is_ours, one_door_to_postgres);
}

#[test]
fn the_door_rule_sees_every_way_past_it() {
    for text in [
        "use sqlx::postgres::PgConnection;",
        "use sqlx::{AssertSqlSafe, PgConnection};",
        "fn f() { sqlx::PgPool::connect(url); }",
        "const A: &str = \"SET statement_timeout = 0\";",
        "const A: &str = \"BEGIN; SET  SESSION x = 1\";",
        "const A: &str = \"LISTEN changes\";",
        "const A: &str = \"CREATE TEMPORARY TABLE t (a int)\";",
        "const A: &str = \"SELECT pg_advisory_lock(1)\";",
    ] {
        assert_eq!(objections(one_door_to_postgres, "src/store/page.rs", text), 1, "{text}");
    }
    for text in [
        "fn f() { sqlx::query(sql).execute(link); }",
        "fn f() { sqlx::query_scalar(sql).persistent(false).fetch_one(link); }",
        "use sqlx::{AssertSqlSafe, query_as};",
    ] {
        assert_eq!(objections(one_door_to_postgres, "src/store/server/link.rs", text), 1, "{text}");
    }
    for text in [
        "use sqlx::sqlite::SqliteConnection; fn f() { sqlx::query(sql).execute(link); }",
        "const A: &str = \"SET LOCAL x = 1; SELECT pg_advisory_xact_lock(1); UPDATE t SET a = 1\";",
        "mod tests { use sqlx::PgConnection; }",
    ] {
        assert_eq!(objections(one_door_to_postgres, "src/store/page.rs", text), 0, "{text}");
    }
    let door = "use sqlx::postgres::PgConnection; fn f() { sqlx::query(sql).persistent(false).execute(link); }";
    assert_eq!(objections(one_door_to_postgres, "src/store/server/link.rs", door), 0);
}

#[test]
fn database_files_are_opened_by_sqlite_only() {
    check(Source::is_ours, opens_no_database);
}

#[test]
fn the_opening_rule_sees_every_way_to_open_a_file() {
    let offenders = [
        "fn f() { File::open(path); }",
        "fn f() { std::fs::File::create(path); }",
        "fn f() { tokio::fs::read(path); }",
        "use std::fs::read_to_string;",
        "use std::{io, fs::{self, copy}};",
        "fn f() { fs::OpenOptions::new().read(true).open(path); }",
    ];
    for text in offenders {
        assert_eq!(objections(opens_no_database, "src/store/page.rs", text), 1, "{text}");
        assert_eq!(objections(opens_no_database, "src/cli/list.rs", text), 1, "{text}");
        assert_eq!(objections(opens_no_database, "src/store/raw_file/child.rs", text), 0, "{text}");
        let tests = format!("mod tests {{ {text} }}");
        assert_eq!(objections(opens_no_database, "src/store/page.rs", &tests), 0, "{text}");
    }
    let fine = "fn f() { std::fs::metadata(path); OpenOptions { layout, ..OpenOptions::default() }; table.open(); }";
    assert_eq!(objections(opens_no_database, "src/store/page.rs", fine), 0);
}

#[test]
fn names_tell_what_is_inside() {
    check(|_| true, telling_name);
}

#[test]
fn the_name_rule_sees_files_folders_and_modules() {
    assert_eq!(objections(telling_name, "src/store/utils.rs", ""), 1);
    assert_eq!(objections(telling_name, "tests/common/mod.rs", ""), 1);
    assert_eq!(objections(telling_name, "src/store/mod.rs", "mod helpers { }"), 1);
    assert_eq!(objections(telling_name, "src/store/page.rs", "mod order; // mod utils"), 0);
}

#[test]
fn each_file_says_what_it_is_for() {
    check(|source| has_extension(&source.path, "rs"), says_what_it_is_for);
    assert_eq!(objections(says_what_it_is_for, "src/ui/text.rs", "use std::fmt;\n//! Late."), 1);
}

#[test]
fn documentation_begins_with_a_subject_or_a_verb() {
    check(|source| has_extension(&source.path, "rs"), names_its_subject);
    let broken = "//! What it does.\n\n/// Whose rows are.\n/// Where they are.\nstruct A {\n    /// How many.\n    n: usize,\n}";
    assert_eq!(objections(names_its_subject, "src/a.rs", broken), 3);
    let fine = "/// Rows of a person.\n/// What is left out.\nstruct A; // Why not\n/// Whatever it is.\nstruct B;";
    assert_eq!(objections(names_its_subject, "src/a.rs", fine), 0);
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    check(|_| true, no_machine_paths);
    for folder in MACHINE_FOLDERS {
        assert_eq!(objections(no_machine_paths, "README.md", &format!("see /{folder}/me/notes")), 1, "{folder}");
    }
    assert_eq!(objections(no_machine_paths, "README.md", "see ~/work/notes and frame/work/bench"), 0);
}

#[test]
fn each_shared_crate_has_one_version() {
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).expect("Cargo.lock");
    assert_eq!(single_versions(&lock), Vec::<String>::new());
    let twice = lock.replacen("name = \"mnemoscope\"", "name = \"tokio\"", 1);
    assert_eq!(single_versions(&twice), ["Cargo.lock: 2 versions of tokio"]);
}

#[test]
fn advised_commands_come_from_one_place() {
    check(Source::is_ours, advice_from_one_place);
    let by_hand = "fn f() { format!(\"mnemoscope -d {place} undo 5\"); }";
    assert_eq!(objections(advice_from_one_place, "src/change/x.rs", by_hand), 1);
    let quoted = "fn f() { word.replace('\\'', \"'\\\\''\"); }";
    assert_eq!(objections(advice_from_one_place, "src/cli/x.rs", quoted), 1);
    let asked = "fn f() { store.invocation().line([\"undo\"]); }";
    assert_eq!(objections(advice_from_one_place, "src/cli/x.rs", asked), 0);
}
