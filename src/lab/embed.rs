//! Vectors of texts from the OpenAI-compatible endpoint that a profile names. Nothing else here uses the network.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use url::{Host, Position, Url};

use crate::memory::{Entity, vector};
use crate::store::Store;

/// Most bytes of a response.
const ANSWER: u64 = 16 << 20;
/// First wait before another try; doubled each time.
const BACKOFF: Duration = Duration::from_millis(200);
/// Longest time for a request of many texts, including retries and waits.
const LONGEST: Duration = Duration::from_mins(2);

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

impl Endpoint {
    /// Host and port, for people: other parts of an address may be secret.
    pub fn host(&self) -> String {
        let Ok(url) = Url::parse(&self.url) else { return "an address that cannot be read".to_owned() };
        url[Position::BeforeHost..Position::AfterPort].to_owned()
    }

    /// Whether it is on this machine, judging by its name.
    pub fn is_local(&self) -> bool {
        match Url::parse(&self.url).ok().as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
            None => false,
        }
    }

    /// Removes the address and the key from a message of another program.
    fn without_secrets(&self, words: &str) -> String {
        let mut clean = words.replace(&self.url, &self.host());
        for secret in [self.key.as_deref(), self.url.split_once('?').map(|(_, query)| query)].into_iter().flatten() {
            if !secret.is_empty() {
                clean = clean.replace(secret, "[key]");
            }
        }
        crate::memory::text_check::check(&clean).0
    }
}

/// The vector of a text in the same space as the stored vectors of an entity, or the reason why there is none.
pub async fn vector_of(
    store: &Store,
    kind: Entity,
    endpoint: Option<&Result<Endpoint, String>>,
    text: &str,
) -> Result<Vec<f32>, String> {
    if !store.embeddings().has_vectors(kind) {
        return Err(format!("compared by keywords: this database keeps no {} vectors", kind.title()));
    }
    match endpoint {
        None => Err("compared by keywords: no embedding endpoint is set".to_owned()),
        Some(Err(why)) => Err(format!("compared by keywords: {why}")),
        Some(Ok(endpoint)) => embed(endpoint, text).await.map_err(|why| format!("compared by keywords: {why}")),
    }
}

enum EmbedFailure {
    /// A retry may help, after this time if given.
    Passing(String, Option<Duration>),
    /// Another try would not help.
    Lasting(String),
}

/// The vector of a text.
///
/// # Errors
/// A message for people: no response in time, a refusal, or an invalid response.
pub async fn embed(endpoint: &Endpoint, text: &str) -> Result<Vec<f32>, String> {
    let vectors = embed_all(endpoint, &[text.to_owned()]).await?;
    vectors.into_iter().next().ok_or_else(|| "the answer holds no vector".to_owned())
}

/// The vectors of some texts, in order, by one request. The time limit is that of one text times their number, two
/// minutes at most.
///
/// # Errors
/// As [`embed`]; vectors of different sizes are an error too.
pub async fn embed_all(endpoint: &Endpoint, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
    let Ok(count) = u32::try_from(texts.len().max(1)) else { return Err("too many texts for one request".to_owned()) };
    let limit = endpoint.timeout.saturating_mul(count).min(LONGEST).max(endpoint.timeout);
    let (endpoint, texts) = (endpoint.clone(), texts.to_vec());
    let asked = tokio::task::spawn_blocking(move || ask_again(&endpoint, &texts, limit));
    // A hanging resolver is subject to the limit too.
    match tokio::time::timeout(limit + Duration::from_millis(50), asked).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err("the embedding request broke off".to_owned()),
        Err(_) => Err(format!("no answer within {:.1} s", limit.as_secs_f64())),
    }
}

fn ask_again(endpoint: &Endpoint, texts: &[String], limit: Duration) -> Result<Vec<Vec<f32>>, String> {
    let end = Instant::now() + limit;
    let mut wait = BACKOFF;
    let mut tries = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match ask(endpoint, texts, left) {
            Ok(vectors) => return Ok(vectors),
            Err(EmbedFailure::Lasting(why)) => return Err(why),
            Err(EmbedFailure::Passing(why, asked)) => {
                tries += 1;
                let left = end.saturating_duration_since(Instant::now());
                let pause = asked.unwrap_or(wait).max(wait);
                if tries > endpoint.retries || pause >= left {
                    return Err(format!("{why} ({tries} {})", if tries == 1 { "try" } else { "tries" }));
                }
                std::thread::sleep(pause);
                wait *= 2;
            }
        }
    }
}

fn ask(endpoint: &Endpoint, texts: &[String], left: Duration) -> Result<Vec<Vec<f32>>, EmbedFailure> {
    let config = ureq::Agent::config_builder().timeout_global(Some(left)).http_status_as_error(false).build();
    let agent: ureq::Agent = config.into();
    let mut request = agent.post(&endpoint.url).header("content-type", "application/json");
    if let Some(key) = &endpoint.key {
        request = request.header("authorization", &format!("Bearer {key}"));
    }
    // A single text is sent as a string: not every server accepts lists.
    let input = if let [one] = texts { json!(one) } else { json!(texts) };
    let body = json!({"model": endpoint.model, "input": input, "encoding_format": "float"}).to_string();
    let mut response = request.send(body).map_err(|e| EmbedFailure::Passing(told(endpoint, &e), None))?;
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after").and_then(|v| v.to_str().ok()?.trim().parse().ok());
    let answer = response
        .body_mut()
        .with_config()
        .limit(ANSWER)
        .read_to_string()
        .map_err(|e| EmbedFailure::Passing(told(endpoint, &e), None))?;
    if status != 200 {
        let said: Value = serde_json::from_str(&answer).unwrap_or_default();
        let said = said["error"]["message"].as_str().or(said["error"].as_str()).unwrap_or_default();
        let said: String = endpoint.without_secrets(said).chars().take(200).collect();
        let why = format!("{} answered {status} {said}", endpoint.host());
        let why = why.trim_end().to_owned();
        return Err(if matches!(status, 408 | 409 | 429 | 500..) {
            EmbedFailure::Passing(why, wait.map(Duration::from_secs))
        } else {
            EmbedFailure::Lasting(why)
        });
    }
    let host = endpoint.host();
    let value: Value = serde_json::from_str(&answer)
        .map_err(|_| EmbedFailure::Lasting(format!("the answer of {host} is not JSON")))?;
    vectors(&value, texts.len()).map_err(|why| EmbedFailure::Lasting(format!("the answer of {host} {why}")))
}

/// The vectors of an answer, in the order of the texts.
fn vectors(answer: &Value, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<Option<Vec<f32>>> = vec![None; texts];
    for (at, item) in data.iter().enumerate() {
        let at = item["index"].as_u64().map_or(at, |index| usize::try_from(index).unwrap_or(usize::MAX));
        if let (Some(place), Some(vector)) = (found.get_mut(at), vector::of_json(&item["embedding"])) {
            *place = Some(vector);
        }
    }
    if let Some(missing) = found.iter().position(Option::is_none) {
        return Err(format!("holds no data[{missing}].embedding"));
    }
    let found: Vec<Vec<f32>> = found.into_iter().flatten().collect();
    let size = found.first().map_or(0, Vec::len);
    if size == 0 || found.iter().any(|v| v.len() != size || v.iter().any(|x| !x.is_finite())) {
        return Err("contains vectors of different sizes, or a value that is not a number".to_owned());
    }
    Ok(found)
}

fn told(endpoint: &Endpoint, error: &ureq::Error) -> String {
    format!("{} did not answer: {}", endpoint.host(), endpoint.without_secrets(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        let key = Some("sk-very-secret-1".to_owned());
        Endpoint { url: url.to_owned(), model: "m".to_owned(), key, timeout: Duration::from_secs(1), retries: 0 }
    }

    #[test]
    fn only_the_host_of_an_address_is_told() {
        for (url, host, local) in [
            ("http://localhost:11434/v1/embeddings", "localhost:11434", true),
            ("https://user:pass@api.example.com/v1?api-key=abc", "api.example.com", false),
            ("http://[::1]:8080/x", "[::1]:8080", true),
            ("http://127.0.0.1", "127.0.0.1", true),
            ("http://127.0.0.1.evil.example/x", "127.0.0.1.evil.example", false),
            ("http://127.evil.example", "127.evil.example", false),
            ("http://localhost.evil.example", "localhost.evil.example", false),
            ("http://localhost@evil.example/x", "evil.example", false),
            ("http://localhost\\@evil.example/x", "localhost", true),
            ("http://LOCALHOST:80/x", "localhost", true),
            ("http://[::ffff:127.0.0.1]/x", "[::ffff:7f00:1]", true),
            ("no address", "an address that cannot be read", false),
        ] {
            assert_eq!((endpoint(url).host().as_str(), endpoint(url).is_local()), (host, local), "{url}");
        }
    }

    #[test]
    fn what_others_repeat_of_the_key_is_taken_out() {
        let asked = endpoint("https://h/v1?api-key=abcdef");
        let words = asked.without_secrets("bad key sk-very-secret-1 for https://h/v1?api-key=abcdef (abcdef)");
        assert!(!words.contains("secret-1") && !words.contains("api-key=abcdef"), "{words}");
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_or_not_at_all() {
        let both = json!({"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]});
        assert_eq!(vectors(&both, 2).unwrap(), [vec![1.0], vec![2.0]]);
        let unnumbered = json!({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]});
        assert_eq!(vectors(&unnumbered, 2).unwrap(), [vec![1.0], vec![2.0]]);
        for (answer, word) in [
            (json!({"data": [{"embedding": [1.0]}]}), "data[1]"),
            (json!({"error": "no"}), "data[0]"),
            (json!({"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}), "different sizes"),
        ] {
            assert!(vectors(&answer, 2).unwrap_err().contains(word), "{answer}");
        }
    }
}
