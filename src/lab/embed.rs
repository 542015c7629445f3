//! The vector of a text, from the OpenAI-compatible endpoint that a profile names. Nothing else here uses the network.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::memory::Entity;
use crate::store::Store;

/// Bytes of an answer at most.
const ANSWER: u64 = 16 << 20;
/// First wait before another try; doubled each time.
const BACKOFF: Duration = Duration::from_millis(200);

/// An endpoint and how to talk to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of `/v1/embeddings`.
    pub url: String,
    /// Model: the one that made the stored vectors.
    pub model: String,
    /// Key, sent as a bearer token.
    pub key: Option<String>,
    /// Time for everything, all tries and waits included.
    pub timeout: Duration,
    /// Further tries after a failure that may pass.
    pub retries: u32,
}

/// Never shows the key.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).field("model", &self.model).finish_non_exhaustive()
    }
}

/// The vector of a text in the same space as the stored vectors of an entity, or why there is none.
pub async fn vector_of(
    store: &Store,
    kind: Entity,
    endpoint: Option<&Result<Endpoint, String>>,
    text: &str,
) -> Result<Vec<f32>, String> {
    if !store.has_vectors(kind) {
        return Err(format!("this database keeps no vectors of {}s: compared by keywords", kind.title()));
    }
    match endpoint {
        None => Err("no embedding endpoint is named in the profile: compared by keywords".to_owned()),
        Some(Err(why)) => Err(format!("compared by keywords: {why}")),
        Some(Ok(endpoint)) => embed(endpoint, text).await.map_err(|why| format!("compared by keywords: {why}")),
    }
}

enum Failure {
    /// Another try may help.
    Passing(String),
    /// It would not.
    Lasting(String),
}

/// The vector of a text.
///
/// # Errors
/// Why there is none, for people: no answer in time, a refusal, an answer that is none.
pub async fn embed(endpoint: &Endpoint, text: &str) -> Result<Vec<f32>, String> {
    let (endpoint, text) = (endpoint.clone(), text.to_owned());
    let limit = endpoint.timeout;
    let asked = tokio::task::spawn_blocking(move || ask_again(&endpoint, &text));
    // A resolver that hangs is not waited for either.
    match tokio::time::timeout(limit + Duration::from_millis(50), asked).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err("the embedding request broke off".to_owned()),
        Err(_) => Err(format!("no answer within {:.1} s", limit.as_secs_f64())),
    }
}

fn ask_again(endpoint: &Endpoint, text: &str) -> Result<Vec<f32>, String> {
    let end = Instant::now() + endpoint.timeout;
    let mut wait = BACKOFF;
    let mut tries = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match ask(endpoint, text, left) {
            Ok(vector) => return Ok(vector),
            Err(Failure::Lasting(why)) => return Err(why),
            Err(Failure::Passing(why)) => {
                tries += 1;
                let left = end.saturating_duration_since(Instant::now());
                if tries > endpoint.retries || wait >= left {
                    return Err(format!("{why} ({tries} {})", if tries == 1 { "try" } else { "tries" }));
                }
                std::thread::sleep(wait);
                wait *= 2;
            }
        }
    }
}

fn ask(endpoint: &Endpoint, text: &str, left: Duration) -> Result<Vec<f32>, Failure> {
    let config = ureq::Agent::config_builder().timeout_global(Some(left)).http_status_as_error(false).build();
    let agent: ureq::Agent = config.into();
    let mut request = agent.post(&endpoint.url).header("content-type", "application/json");
    if let Some(key) = &endpoint.key {
        request = request.header("authorization", &format!("Bearer {key}"));
    }
    let body = json!({"model": endpoint.model, "input": text, "encoding_format": "float"}).to_string();
    let mut response = request.send(body).map_err(|e| Failure::Passing(told(endpoint, &e)))?;
    let status = response.status().as_u16();
    let answer = response
        .body_mut()
        .with_config()
        .limit(ANSWER)
        .read_to_string()
        .map_err(|e| Failure::Passing(told(endpoint, &e)))?;
    if status != 200 {
        let said: Value = serde_json::from_str(&answer).unwrap_or_default();
        let said = said["error"]["message"].as_str().or(said["error"].as_str()).unwrap_or_default();
        let said: String = said.chars().take(200).collect();
        let why = format!("{} answered {status} {said}", endpoint.url);
        let why = why.trim_end().to_owned();
        return Err(if matches!(status, 408 | 409 | 429 | 500..) {
            Failure::Passing(why)
        } else {
            Failure::Lasting(why)
        });
    }
    let value: Value = serde_json::from_str(&answer)
        .map_err(|_| Failure::Lasting(format!("the answer of {} is no JSON", endpoint.url)))?;
    crate::memory::vector::at_path(&value, "data.0.embedding")
        .ok_or_else(|| Failure::Lasting(format!("the answer of {} holds no data[0].embedding", endpoint.url)))
}

fn told(endpoint: &Endpoint, error: &ureq::Error) -> String {
    format!("{} did not answer: {error}", endpoint.url)
}
