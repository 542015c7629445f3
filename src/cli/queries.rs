//! `queries`: the saved questions of a database.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandFailure, Session, output};
use crate::config::Kept as _;
use crate::memory::invocation::quoted;
use crate::memory::nearest::unknown;
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::store::Store;
use crate::ui::text::SafeText;

/// Actions on saved questions.
#[derive(Debug, Clone, Subcommand)]
pub enum QueriesCommand {
    /// Forget one.
    Forget {
        /// Name of the question.
        name: String,
    },
}

pub async fn run(session: &Session<'_>, command: Option<&QueriesCommand>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let mut kept = match command {
        None => SavedQuestion::load(store.location())?,
        Some(QueriesCommand::Forget { name }) => {
            saved(&store, name)?;
            SavedQuestion::forget(store.location(), name)?
        }
    };
    if let Some(mask) = session.mask() {
        for asked in kept.iter_mut().map(|saved| &mut saved.inquiry) {
            asked.text = asked.text.as_ref().map(|text| format!("‹{} characters›", text.chars().count()));
            asked.user = asked.user.as_ref().map(|user| mask.pseudonym("user_id", user));
        }
    }
    let lines = kept.iter().map(|saved| {
        let words: Vec<String> = saved.inquiry.words().iter().map(|word| quoted(word)).collect();
        format!("{}: recall {}", saved.name, words.join(" "))
    });
    let rows: Vec<Value> = kept.iter().map(|saved| json!(saved)).collect();
    output::rows(session.format(), &json!({"queries": rows}), &rows, |out| {
        lines.into_iter().try_for_each(|line| writeln!(out, "{}", SafeText::new(&line)))
    })
}

pub(super) fn saved(store: &Store, name: &str) -> Result<Inquiry, CommandFailure> {
    let kept = SavedQuestion::load(store.location())?;
    let known: Vec<String> = kept.iter().map(|saved| saved.name.clone()).collect();
    let place = store.location();
    kept.into_iter().find(|saved| saved.name == name).map(|saved| saved.inquiry).ok_or_else(|| {
        let what = format!("question saved for {place} with the name");
        CommandFailure::not_found(unknown(&what, name, known.iter().map(String::as_str)))
    })
}
