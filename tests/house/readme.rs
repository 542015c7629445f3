//! Promises of the documents, kept: commands that the program understands, files that links lead to, the two commands
//! that every visitor tries first.

use clap::Parser as _;
use mnemoscope::cli::args::Cli;
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Every document, relative to the root.
fn documents() -> Vec<String> {
    let pages = fs::read_dir(root().join("docs")).expect("the folder of documents");
    let pages = pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned());
    let pages = pages.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"));
    DOCUMENTS.iter().map(ToString::to_string).chain(pages.map(|name| format!("docs/{name}"))).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The lines of a document's blocks of code, each with the block's language.
fn code(text: &str) -> Vec<(&str, &str)> {
    let mut block = None;
    let line_of_code = |line| {
        if let Some(language) = str::strip_prefix(line, "```") {
            block = if block.is_some() { None } else { Some(language) };
            return None;
        }
        Some((block?, line))
    };
    text.lines().filter_map(line_of_code).collect()
}

/// The words that a shell would hand to `mnemoscope`, when the line calls it. What follows a redirection, a pipe, or a comment goes.
fn call(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("mnemoscope")?;
    let mut words = vec!["mnemoscope".to_owned()];
    for (part, piece) in line.split('\'').enumerate() {
        if part % 2 == 1 {
            words.push(piece.to_owned());
            continue;
        }
        for word in piece.split_whitespace() {
            if matches!(word, "#" | ">" | "|" | "||") {
                return Some(words);
            }
            words.push(word.to_owned());
        }
    }
    Some(words)
}

/// Lists the texts between `](` and the closing parenthesis in a document.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn each_command_in_the_documents_is_understood() {
    let mut tried = 0;
    for name in documents() {
        let text = document(&name).replace("\\\n", "");
        for (language, words) in code(&text).into_iter().filter_map(|(language, line)| Some((language, call(line)?))) {
            tried += 1;
            assert_eq!(language, "sh", "{name}: commands are run where their block says `sh`: {}", words.join(" "));
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{name}: {}\n{error}", words.join(" "));
            }
        }
    }
    assert!(tried > 50, "only {tried} commands were found");
}

#[test]
fn each_link_leads_somewhere() {
    for name in documents() {
        let folder = root().join(Path::new(&name).parent().expect("a document's folder"));
        for link in links(&document(&name)).map(str::to_owned).filter(|link| !link.starts_with("https://")) {
            let file = link.split('#').next().unwrap_or_default();
            assert!(folder.join(file).exists(), "{name}: nothing is at {link}");
            assert!(!name.starts_with("docs/") || !link.starts_with("../"), "{name}: {link} is not in the book");
        }
    }
}

#[test]
fn the_summary_names_every_page() {
    let summary = document("docs/SUMMARY.md");
    let pages = documents().into_iter().filter_map(|name| name.strip_prefix("docs/").map(str::to_owned));
    for page in pages.filter(|page| page != "SUMMARY.md") {
        assert!(summary.contains(&format!("({page})")), "the summary does not name {page}");
    }
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = document("README.md");
    for command in ["cargo run --release -- demo", "cargo test"] {
        assert!(code(&readme).iter().any(|(_, line)| line.starts_with(command)), "{command} is not in the README");
    }
}

#[test]
fn the_readme_is_short() {
    let lines = document("README.md").lines().count();
    assert!(lines < 200, "the README has {lines} lines: longer texts belong in docs");
}

#[test]
fn the_readme_lists_every_shipped_layout() {
    let readme = document("README.md");
    for entry in fs::read_dir(root().join("assets/layouts")).expect("the layouts") {
        let path = entry.expect("a layout").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(readme.contains(&format!("`{name}`")), "the README does not name the layout {name}");
        }
    }
}
