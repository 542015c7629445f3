//! A fleet file: several databases that may contain data of one person.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::ground::{database_url, location, server_words};

/// A database of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetMember {
    /// Path, folder or URL; a path is relative to the file's folder.
    pub url: String,
    /// Layout name or file, instead of recognition.
    pub layout: Option<String>,
    /// Name for people, of its own.
    pub label: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FleetFile {
    #[serde(default)]
    database: Vec<toml::Spanned<FleetEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FleetEntry {
    url: String,
    layout: Option<String>,
    label: Option<String>,
}

/// Reads a fleet file's text. `path` is its place, for errors and for paths in it.
///
/// # Errors
/// All errors with their lines; never a URL, which may contain a password.
pub fn parse(path: &Path, text: &str) -> Result<Vec<FleetMember>, Vec<String>> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let fault = |at: usize, words: &str| format!("{}:{}: {words}", path.display(), line(at));
    let file: FleetFile =
        toml::from_str(text).map_err(|e| vec![fault(e.span().map_or(0, |s| s.start), e.message())])?;
    if file.database.is_empty() {
        return Err(vec![fault(0, "it names no database; each one is a [[database]] with a url")]);
    }
    let (mut members, mut faults) = (Vec::new(), Vec::new());
    let (mut labels, mut urls) = (BTreeSet::new(), BTreeSet::new());
    for (number, entry) in file.database.into_iter().enumerate() {
        let at = entry.span().start;
        let FleetEntry { url, layout, label } = entry.into_inner();
        if url.trim().is_empty() {
            faults.push(fault(at, "the url is empty"));
            continue;
        }
        let label = label.unwrap_or_else(|| format!("database {}", number + 1));
        if label.trim().is_empty() || label.chars().any(char::is_control) {
            faults.push(fault(at, "the label is empty or holds control characters"));
        }
        let url = located(path, &url);
        if !urls.insert(url.clone()) {
            faults.push(fault(at, &format!("the database labelled `{label}` is named twice")));
        }
        if !labels.insert(label.clone()) {
            faults.push(fault(at, &format!("there are two databases labelled `{label}`")));
        }
        let layout = layout.map(|layout| if is_file(&layout) { located(path, &layout) } else { layout });
        members.push(FleetMember { url, layout, label });
    }
    if faults.is_empty() { Ok(members) } else { Err(faults) }
}

fn is_file(layout: &str) -> bool {
    Path::new(layout).extension().is_some()
}

/// A relative path in the file, resolved against its folder.
fn located(file: &Path, text: &str) -> String {
    // What may not be repeated as it stands is not a path, whatever it was meant for.
    if server_words::is_server(text) || location::shown(text) != text {
        return text.to_owned();
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    database_url::file(text, folder).map_or_else(|_| text.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<FleetMember>, Vec<String>> {
        parse(Path::new("/etc/fleet.toml"), text)
    }

    #[test]
    fn databases_have_a_place_a_layout_and_a_label() {
        let text = "[[database]]\nurl = \"a.db\"\n[[database]]\nurl = \"postgres://u:secret@h/db\"\nlayout = \"ennube\"\n\
             label = \"eu\"\n[[database]]\nurl = \"sqlite:/srv/c.db\"\nlayout = \"mine.toml\"";
        let members = read(text).unwrap();
        let shown: Vec<(&str, Option<&str>, &str)> =
            members.iter().map(|m| (m.url.as_str(), m.layout.as_deref(), m.label.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("/etc/a.db", None, "database 1"),
                ("postgres://u:secret@h/db", Some("ennube"), "eu"),
                ("/srv/c.db", Some("/etc/mine.toml"), "database 3"),
            ]
        );
    }

    #[test]
    fn every_fault_has_its_line_and_no_password() {
        for (text, expected) in [
            ("", vec!["/etc/fleet.toml:1: it names no database; each one is a [[database]] with a url"]),
            ("\n[[database]]\nlabel = \"x\"", vec!["/etc/fleet.toml:2: missing field `url`"]),
            (
                "[[database]]\nurl = \"postgres://u:secret@h/db\"\n[[database]]\nurl = \"postgres://u:secret@h/db\"\n\
                 label = \"database 1\"\n[[database]]\nurl = \" \"",
                vec![
                    "/etc/fleet.toml:3: the database labelled `database 1` is named twice",
                    "/etc/fleet.toml:3: there are two databases labelled `database 1`",
                    "/etc/fleet.toml:6: the url is empty",
                ],
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text}");
        }
        let unknown = read("[[database]]\nurl = \"a\"\nlayuot = \"x\"").unwrap_err();
        assert!(unknown[0].starts_with("/etc/fleet.toml:3: unknown field `layuot`"), "{unknown:?}");
    }
}
