//! Answers questions about the memory for the core.

use crate::change::{self, operation::TRAINING_SEED};
use crate::console::core::Failure;
use crate::console::screens::study::{Answer, Question};
use crate::lab::judge::{self, Ask};
use crate::lab::{LabError, Told, assess, silent, training, understand};
use crate::memory::Entity;
use crate::memory::mask::Mask;
use crate::memory::query::{Query, Start};
use crate::recall::judge::ranked::K;
use crate::store::{Store, StoreError};

/// Agents that are listed at most.
const AGENTS: usize = 1_000;

/// The answer to a question; `told` hears how far it is.
pub async fn answer(
    store: &Store,
    question: &Question,
    mask: Option<&Mask>,
    told: Told<'_>,
) -> Result<Answer, Failure> {
    let now = change::now();
    let found = match question {
        Question::Agents => agents(store).await,
        Question::Agent(id) => agent(store, id, &now, mask, told).await,
        Question::Everyone => {
            let insights = understand::insights(store, None, &now, mask, told).await;
            insights.map(|insights| Answer::Agent(Box::new(insights), None))
        }
        Question::Policies => training::versions(store, None, told).await.map(Answer::Policies),
        Question::Policy(id) => {
            let measured = assess::measure(store, Some(id), None, TRAINING_SEED, told).await;
            measured.map(|measured| Answer::Policy(Box::new(measured)))
        }
        Question::Recall => {
            let ask = Ask::stored(K, TRAINING_SEED);
            judge::evaluate(store, &ask, told).await.map(|found| Answer::Recall(Box::new(found)))
        }
    };
    found.map_err(|error| failure(question, &error))
}

async fn agents(store: &Store) -> Result<Answer, LabError> {
    let query = Query { limit: AGENTS, start: Start::First, ..Query::new(Entity::Agent) };
    Ok(Answer::Agents(store.page(&query).await?.rows))
}

async fn agent(store: &Store, id: &str, now: &str, mask: Option<&Mask>, told: Told<'_>) -> Result<Answer, LabError> {
    let insights = understand::insights(store, Some(id), now, mask, told).await?;
    let graduation = match understand::graduation(store, id, now, &silent).await {
        Ok(graduation) => Ok(graduation),
        Err(LabError::Store(StoreError::Missing { reason, .. })) => Err(reason),
        Err(error) => return Err(error),
    };
    Ok(Answer::Agent(Box::new(insights), Some(Box::new(graduation))))
}

fn failure(question: &Question, error: &LabError) -> Failure {
    let what = match question {
        Question::Agents => "The agents could not be read",
        Question::Agent(_) | Question::Everyone => "Nothing can be said of it",
        Question::Policies => "There are no policies to show",
        Question::Policy(_) => "It cannot be measured",
        Question::Recall => "Recall cannot be judged",
    };
    match error {
        LabError::Store(error) => super::load::failure(what, error),
        other => Failure { what: what.to_owned(), message: other.to_string(), code: None, remedy: None },
    }
}
