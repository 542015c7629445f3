//! Recall for the core, and the saved questions.

use std::time::Instant;

use crate::change::what_if::KeptQuestion;
use crate::config::Kept as _;
use crate::console::core::RequestFailure;
use crate::lab::embed::{self, Endpoint};
use crate::lab::{self, LabError};
use crate::memory::time;
use crate::recall::answer::{RecallAnswer, RecallRequest, StageTimes};
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::store::Store;

/// Endpoint for vectors of texts, or the reason why the profile's is not usable; `None` if the profile names none.
pub type Embedding = Option<Result<Endpoint, String>>;

/// Ranks a situation; `told` gets the progress.
pub async fn rank(
    store: &Store,
    embedding: &Embedding,
    inquiry: &Inquiry,
    at: &str,
    told: impl Fn(&'static str),
) -> Result<Box<(RecallAnswer, StageTimes)>, RequestFailure> {
    let begun = Instant::now();
    if inquiry.text_to_embed().is_some() {
        told("requesting the vector of the text");
    }
    let request = request(store, embedding, inquiry, at).await;
    let asked = begun.elapsed().as_secs_f64() * 1_000.0;
    told("ranking");
    let (mut answer, stages) = lab::timed(store, &request).await.map_err(|error| failure(&error))?;
    // It is not used any more.
    answer.request.vector = None;
    Ok(Box::new((answer, StageTimes { embedding: asked, ..stages })))
}

/// Builds the request of a question at a moment, with the vector of its text.
async fn request(store: &Store, embedding: &Embedding, inquiry: &Inquiry, at: &str) -> RecallRequest {
    let mut request = inquiry.request(at);
    if let Some(text) = inquiry.text_to_embed() {
        let kind = lab::kind_of(store, inquiry.ranking);
        match embed::vector_of(store, kind, embedding.as_ref(), text).await {
            Ok(vector) => request.vector = Some(vector),
            Err(why) => request.vector_note = Some(why),
        }
    }
    request
}

/// The saved questions of a database, ready to be asked before and after a change. In a hurry, those whose texts need a
/// request to an endpoint are left out.
pub async fn kept(store: &Store, embedding: &Embedding, patient: bool) -> Vec<KeptQuestion> {
    let at = time::spell_utc(chrono::Utc::now()).unwrap_or_default();
    let mut kept = Vec::new();
    // An unreadable file is reported when questions are asked by name.
    for SavedQuestion { name, inquiry } in SavedQuestion::load(store.location()).unwrap_or_default() {
        if patient || embedding.is_none() || inquiry.text_to_embed().is_none() {
            let request = request(store, embedding, &inquiry, &at).await;
            kept.push(KeptQuestion { name, request });
        }
    }
    kept
}

fn failure(error: &LabError) -> RequestFailure {
    super::load::failure_of_lab("The situation was not ranked", error)
}

/// The outcome of reading or writing the file of saved questions.
pub fn saved(what: &str, outcome: anyhow::Result<Vec<SavedQuestion>>) -> Result<Vec<SavedQuestion>, RequestFailure> {
    let remedy = "fix or remove that file; it does not affect databases";
    outcome.map_err(|why| RequestFailure::new(what, format!("{why:#}"), remedy))
}
