//! `compare`: two rows of a kind, field by field, their texts as word diffs.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::look::{entity, mask_rows};
use super::output::{self, csv_field};
use super::{CommandFailure, Format, Session};
use crate::memory::compare::{PieceOf, TextPiece, compare};
use crate::memory::json::JsonPart;
use crate::ui::text::SafeText;

/// Characters of what two texts have in common that a table shows on either side of a difference.
const COMMON: usize = 40;

/// Two rows of a kind.
#[derive(Debug, Clone, Args)]
pub struct Compare {
    /// Kind of row, as in `list`.
    pub entity: String,
    /// Id of the first row.
    #[arg(value_name = "ID")]
    pub first: String,
    /// Id of the second row.
    #[arg(value_name = "ID")]
    pub second: String,
}

/// Result of a comparison, as printed in JSON.
#[derive(Serialize)]
struct ComparedRows<'a> {
    entity: &'static str,
    ids: [&'a str; 2],
    same: bool,
    fields: &'a [ComparedField<'a>],
}

/// A column in which at least one of the rows has a value.
#[derive(Serialize)]
struct ComparedField<'a> {
    column: &'static str,
    same: bool,
    values: [JsonPart<'a>; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<TextPiece>>,
}

/// Compares two rows.
///
/// # Errors
/// Code 2 for an unknown entity, code 3 for a missing row; else what the database says.
pub(super) async fn run(session: &Session<'_>, asked: &Compare) -> Result<(), CommandFailure> {
    let entity = entity(&asked.entity)?;
    let store = session.store().await?;
    let mut rows = Vec::new();
    for id in [&asked.first, &asked.second] {
        let found = store.row(entity, id).await?;
        rows.push(found.ok_or_else(|| CommandFailure::not_found(store.none_found(entity, id)))?);
    }
    mask_rows(session, &mut rows);
    let [first, second] = &rows[..] else { return Ok(()) };
    let fields = compare(first, second).into_iter().filter_map(|field| {
        let at = entity.position(field.column)?;
        let values = [first.part(at), second.part(at)];
        Some(ComparedField { column: field.column, same: field.same, values, words: field.words })
    });
    let fields: Vec<ComparedField<'_>> = fields.collect();
    let shown = || {
        let same = fields.iter().all(|field| field.same || field.column == "id");
        ComparedRows { entity: entity.name(), ids: [first.id(), second.id()], same, fields: &fields }
    };
    match session.format() {
        Format::Json => output::json(&shown()),
        Format::Jsonl => output::piped(|out| fields.iter().try_for_each(|field| output::json_line(out, field))),
        Format::Csv => {
            let row = |field: &ComparedField<'_>| {
                let [first, second] = field.values.map(csv_field);
                [csv_field(&Value::from(field.column)), field.same.to_string(), first, second]
            };
            let headings = ["column", "same", "first", "second"];
            output::piped(|out| output::csv(out, Some(headings), fields.iter().map(row)))
        }
        Format::Table => output::piped(|out| print(out, &fields)),
    }
}

fn print(out: &mut dyn Write, fields: &[ComparedField<'_>]) -> std::io::Result<()> {
    let ink = output::ink();
    for field in fields.iter().filter(|field| !field.same) {
        writeln!(out, "{}", ink.heading(field.column))?;
        if let Some(words) = &field.words {
            print_words(out, words)?;
            continue;
        }
        let [first, second] = field.values.each_ref().map(|value| SafeText::new(&line(*value)));
        writeln!(out, "  {}\n  {}", ink.bad(format!("- {first}")), ink.good(format!("+ {second}")))?;
    }
    let same: Vec<&str> = fields.iter().filter(|field| field.same).map(|field| field.column).collect();
    if same.is_empty() { Ok(()) } else { writeln!(out, "{}", ink.faint(format!("the same: {}", same.join(", ")))) }
}

/// A text with what goes in `[-…-]` and what comes in `{+…+}`; long parts that both have are shown by their ends.
fn print_words(out: &mut dyn Write, words: &[TextPiece]) -> std::io::Result<()> {
    let ink = output::ink();
    let piece = |piece: &TextPiece| {
        let text = SafeText::new(&if piece.how == PieceOf::Same { ends(&piece.text) } else { piece.text.clone() });
        match piece.how {
            PieceOf::Same => text.to_string(),
            PieceOf::Removed => ink.bad(format!("[-{text}-]")),
            PieceOf::Added => ink.good(format!("{{+{text}+}}")),
        }
    };
    writeln!(out, "  {}", words.iter().map(piece).collect::<String>())
}

fn ends(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * COMMON + 3 {
        return text.to_owned();
    }
    let (start, end): (String, String) =
        (text.chars().take(COMMON).collect(), text.chars().skip(count - COMMON).collect());
    format!("{start} … {end}")
}

fn line(value: JsonPart<'_>) -> String {
    match value {
        JsonPart::Value(Value::Null) => "nothing".to_owned(),
        JsonPart::Value(Value::String(text)) => text.clone(),
        other => other.to_string(),
    }
}
