//! `schema`: JSON Schemas of the output of commands.

use clap::Args;
use serde_json::{Value, json};

use super::{CommandFailure, Format, Session, output};
use crate::memory::nearest::unknown;
use crate::memory::schema::{VERSION, names, schema, title};

/// Choice of a schema.
#[derive(Debug, Clone, Args)]
pub struct Schema {
    /// An entity (a row of it), or what a command prints: status, list, plan, receipt and so on; without
    /// a name all are listed.
    pub name: Option<String>,
}

/// Prints a schema, or the names of all.
///
/// # Errors
/// Code 3 for an unknown name.
pub(super) fn run(session: &Session<'_>, asked: &Schema) -> Result<(), CommandFailure> {
    let Some(name) = &asked.name else {
        let known = names();
        let titled = |name: &String| json!({ "name": name, "title": title(name) });
        let rows: Vec<Value> = known.iter().map(titled).collect();
        return output::rows(session.format(), &json!({ "version": VERSION, "schemas": rows }), &rows, |out| {
            known.iter().try_for_each(|name| writeln!(out, "{name}: {}", title(name).unwrap_or_default()))
        });
    };
    let found = schema(name).ok_or_else(|| {
        let known = names();
        CommandFailure {
            remedy: Some("`mnemoscope schema` lists every name".to_owned()),
            ..CommandFailure::not_found(unknown("schema", name, known.iter().map(String::as_str)))
        }
    })?;
    match session.format() {
        // A schema is read as the JSON that it is.
        Format::Table => output::json(&found),
        format => output::shape(format, &found),
    }
}
