//! Answers questions about the memory for the core.

use crate::change::{self, operation::TRAINING_SEED};
use crate::console::core::RequestFailure;
use crate::console::screens::study::{StudyAnswer, StudyQuestion};
use crate::lab::judge::{self, EvaluationRequest};
use crate::lab::{LabError, Told, assess, silent, training, understand};
use crate::memory::Entity;
use crate::memory::mask::Mask;
use crate::memory::query::{PageStart, Query};
use crate::recall::judge::ranked::K;
use crate::store::{Store, StoreError};

/// Most agents listed.
const AGENTS: usize = 1_000;

/// The answer to a question; `told` gets the progress.
pub async fn answer(
    store: &Store,
    question: &StudyQuestion,
    mask: Option<&Mask>,
    told: Told<'_>,
) -> Result<StudyAnswer, RequestFailure> {
    let now = change::now();
    let found = match question {
        StudyQuestion::Agents => agents(store).await,
        StudyQuestion::Agent(id) => agent(store, id, &now, mask, told).await,
        StudyQuestion::Everyone => {
            let insights = understand::insights(store, None, &now, mask, told).await;
            insights.map(|insights| StudyAnswer::Agent(Box::new(insights), None))
        }
        StudyQuestion::Policies => {
            training::versions(store, None, told).await.map(|found| StudyAnswer::Policies(found.list, found.left))
        }
        StudyQuestion::Policy(id) => {
            let measured = assess::measure(store, Some(id), None, TRAINING_SEED, told).await;
            measured.map(|measured| StudyAnswer::Policy(Box::new(measured)))
        }
        StudyQuestion::Recall => {
            let ask = EvaluationRequest::stored(K, TRAINING_SEED);
            judge::evaluate(store, &ask, told).await.map(|found| StudyAnswer::Recall(Box::new(found)))
        }
    };
    found.map_err(|error| failure(question, &error))
}

async fn agents(store: &Store) -> Result<StudyAnswer, LabError> {
    let query = Query { limit: AGENTS, start: PageStart::First, ..Query::new(Entity::Agent) };
    match store.page(&query).await {
        Ok(page) => Ok(StudyAnswer::Agents(page.rows)),
        // The data about all agents together does not need their names.
        Err(StoreError::Missing { .. }) => Ok(StudyAnswer::Agents(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

async fn agent(
    store: &Store,
    id: &str,
    now: &str,
    mask: Option<&Mask>,
    told: Told<'_>,
) -> Result<StudyAnswer, LabError> {
    let insights = understand::insights(store, Some(id), now, mask, told).await?;
    let graduation = match understand::graduation(store, id, now, &silent).await {
        Ok(graduation) => Ok(graduation),
        Err(LabError::Store(StoreError::Missing { reason, .. })) => Err(reason),
        Err(error) => return Err(error),
    };
    Ok(StudyAnswer::Agent(Box::new(insights), Some(Box::new(graduation))))
}

fn failure(question: &StudyQuestion, error: &LabError) -> RequestFailure {
    let what = match question {
        StudyQuestion::Agents => "The agents could not be read",
        StudyQuestion::Agent(_) | StudyQuestion::Everyone => "It could not be analysed",
        StudyQuestion::Policies => "There are no policies to show",
        StudyQuestion::Policy(_) => "It cannot be measured",
        StudyQuestion::Recall => "Recall cannot be judged",
    };
    match (question, error) {
        // A store without cases and episodes is no fault.
        (StudyQuestion::Recall, LabError::Refused(_)) => {
            RequestFailure { remedy: None, ..RequestFailure::absent(what, error.to_string(), "") }
        }
        _ => super::load::failure_of_lab(what, error),
    }
}
