//! Suggestions for the parent of an episode, the one that it probably continues, with the evidence.

use serde::Serialize;

use crate::memory::{Row, time};

/// Hours before the start within which a parent must have ended.
pub const WITHIN_HOURS: f64 = 48.0;
/// Cosine that a parent must exceed.
pub const ALIKE: f64 = 0.85;

/// A suggested parent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggestion {
    /// Id of the parent.
    pub id: String,
    /// Title of the parent.
    pub title: Option<String>,
    /// End of the parent.
    pub ended_at: String,
    /// Hours from its end to the start of the episode.
    pub hours_before: f64,
    /// Cosine of their vectors.
    pub cosine: f64,
    /// The rule and the evidence, for people.
    pub evidence: String,
}

/// Whether an episode comes before another one: it started earlier, or at the same time with the smaller id. This order
/// is total, so links that all lead back in it never form a cycle.
pub fn precedes(earlier: &Row, later: &Row) -> bool {
    comes_before(earlier.text("started_at"), earlier.id(), later)
}

/// As [`precedes`], given only the start and the id of an episode.
pub fn comes_before(started_at: Option<&str>, id: &str, later: &Row) -> bool {
    match (started_at, later.text("started_at")) {
        (Some(one), Some(other)) => (one, id) < (other, later.id()),
        // Without a start it is never given a parent, so no circle leads through it.
        _ => id != later.id(),
    }
}

/// The hours from the end of a candidate to the start of an episode, if it can be the parent: an episode of the same
/// agent that comes before, was not abandoned, and ended within 48 hours before the start.
pub fn fits_in_time(episode: &Row, candidate: &Row) -> Option<f64> {
    let agent = episode.text("agent_id");
    let abandoned = candidate.text("status") == Some("abandoned");
    if abandoned || candidate.text("agent_id") != agent || !precedes(candidate, episode) {
        return None;
    }
    let hours = time::seconds_between(candidate.text("ended_at")?, episode.text("started_at")?)? / 3600.0;
    (0.0..=WITHIN_HOURS).contains(&hours).then_some(hours)
}

/// The possible parents of an episode: same agent, ended within 48 hours before its start, cosine strictly above 0.85;
/// most similar first, then latest first, then by id. `None` cosines do not count.
pub fn suggest(episode: &Row, candidates: &[(Row, Option<f64>)]) -> Vec<Suggestion> {
    let mut found: Vec<Suggestion> = candidates
        .iter()
        .filter_map(|(row, cosine)| {
            let (hours, cosine) = (fits_in_time(episode, row)?, cosine.filter(|c| *c > ALIKE)?);
            let evidence = format!(
                "same agent; ended {hours:.1} h before it started (48 h at most); cosine {cosine:.4} > {ALIKE}"
            );
            Some(Suggestion {
                id: row.id().to_owned(),
                title: row.text("title").map(str::to_owned),
                ended_at: row.text("ended_at")?.to_owned(),
                hours_before: hours,
                cosine,
                evidence,
            })
        })
        .collect();
    found.sort_by(|a, b| {
        b.cosine.total_cmp(&a.cosine).then_with(|| b.ended_at.cmp(&a.ended_at)).then_with(|| a.id.cmp(&b.id))
    });
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;

    fn episode(id: &str, agent: &str, started: &str, ended: Option<&str>) -> Row {
        Row::with(
            Entity::Episode,
            [("id", json!(id)), ("agent_id", json!(agent)), ("started_at", json!(started)), ("ended_at", json!(ended))],
        )
    }

    #[test]
    fn edges_of_the_rule() {
        let child = episode("c", "x", "2026-02-04T10:00:00.000000Z", None);
        let ended = |id: &str, agent: &str, at: &str| episode(id, agent, "2026-02-01T00:00:00.000000Z", Some(at));
        let mut abandoned = ended("left", "x", "2026-02-04T09:00:00.000000Z");
        abandoned.set("status", json!("abandoned"));
        let candidates = [
            (ended("edge", "x", "2026-02-02T10:00:00.000000Z"), Some(0.8501)),
            (ended("before", "x", "2026-02-02T09:59:59.999999Z"), Some(0.99)),
            (ended("after", "x", "2026-02-04T10:00:00.000001Z"), Some(0.99)),
            (ended("equal", "x", "2026-02-04T09:00:00.000000Z"), Some(0.85)),
            (ended("other", "y", "2026-02-04T09:00:00.000000Z"), Some(0.99)),
            (ended("none", "x", "2026-02-04T09:00:00.000000Z"), None),
            (episode("open", "x", "2026-02-04T09:00:00.000000Z", None), Some(0.99)),
            (abandoned, Some(0.99)),
            (episode("z", "x", "2026-02-04T10:00:00.000000Z", Some("2026-02-04T10:00:00.000000Z")), Some(0.99)),
            (ended("best", "x", "2026-02-04T10:00:00.000000Z"), Some(0.9)),
            (child.clone(), Some(1.0)),
        ];
        let ids: Vec<String> = suggest(&child, &candidates).into_iter().map(|s| s.id).collect();
        assert_eq!(ids, ["best", "edge"]);
    }
}
