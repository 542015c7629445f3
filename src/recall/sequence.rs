//! The history of a topic: the most relevant episodes, in chronological order.

use super::rank::RankedRow;

/// Relevance that an episode must exceed to belong to a topic.
pub const RELEVANT: f64 = 0.5;

/// The sequence of a topic: of the `limit` most relevant episodes those of relevance above 0.5, by start time.
/// `ranked` is in order of relevance, and is cut before it is sorted by time: cutting afterwards would drop the newest.
pub fn sequence(ranked: Vec<RankedRow>, limit: usize) -> Vec<RankedRow> {
    let mut shown: Vec<RankedRow> = ranked.into_iter().filter(|r| r.score.total > RELEVANT).take(limit).collect();
    shown.sort_by(|a, b| (a.row.text("started_at"), a.row.id()).cmp(&(b.row.text("started_at"), b.row.id())));
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::{Entity, Row};
    use crate::recall::rank::by_likeness;

    #[test]
    fn the_most_relevant_are_shown_in_order_of_time() {
        let ranked: Vec<RankedRow> = [
            ("new", 0.9, "2026-03-01"),
            ("old", 0.8, "2026-01-01"),
            ("mid", 0.7, "2026-02-01"),
            ("edge", 0.5, "2026-04-01"),
        ]
        .iter()
        .map(|(id, score, at)| {
            let row = Row::with(Entity::Episode, [("id", json!(id)), ("started_at", json!(at))]);
            by_likeness(row, *score, "similarity")
        })
        .collect();
        let shown = |limit| sequence(ranked.clone(), limit).iter().map(|r| r.row.id().to_owned()).collect::<Vec<_>>();
        assert_eq!(shown(2), ["old", "new"]);
        assert_eq!(shown(9), ["old", "mid", "new"]);
    }
}
