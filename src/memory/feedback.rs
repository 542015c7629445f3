//! Score of a feedback row, and of an episode's feedback; the words of corrections.

use super::Row;

/// Kind of a row that approves.
pub const THUMBS_UP: &str = "thumbs_up";
/// Kind of a row that disapproves.
pub const THUMBS_DOWN: &str = "thumbs_down";
/// Kind of a row with a rating.
pub const RATING: &str = "rating";

/// Columns needed for the aggregate of an episode.
pub const SCORED: &[&str] = &["id", "episode_id", "kind", "rating", "score", "counts", "source", "created_at"];

/// Score of one feedback row, in -1..1, chosen by its kind alone: `thumbs_up` 1, `thumbs_down` -1 (whatever rating
/// such a row also holds), `rating` 1 to 5: -1, -0.5, 0, 0.5, 1.
///
/// `None` for a row that is shown but not scored: any other kind (correction, comment), or a missing or out-of-range
/// rating.
pub fn score(kind: &str, rating: Option<i64>) -> Option<f64> {
    match (kind, rating) {
        (THUMBS_UP, _) => Some(1.0),
        (THUMBS_DOWN, _) => Some(-1.0),
        (RATING, Some(rating @ 1..=5)) => Some((rating - 3) as f64 / 2.0),
        _ => None,
    }
}

/// Whether a row may mean more than [`score`] can tell: its rating is unreadable, or its kind is a scored one in
/// another spelling.
pub fn is_doubtful(row: &Row) -> bool {
    let kind = row.text("kind").unwrap_or_default();
    let meant = kind.trim().to_ascii_lowercase();
    !row.is_readable("rating") || kind != meant && [THUMBS_UP, THUMBS_DOWN, RATING].contains(&meant.as_str())
}

/// Kinds whose text is not a correction: praise, and an agent's own corrections.
const NOT_CORRECTING: [&str; 3] = ["completed", "praised", "self_corrected"];

/// The trimmed text of a correction; `None` if there is none, or if the row's kind corrects nothing.
pub fn correction(row: &Row) -> Option<&str> {
    let corrects = !row.text("kind").is_some_and(|kind| NOT_CORRECTING.contains(&kind));
    row.text("correction").map(str::trim).filter(|words| corrects && !words.is_empty())
}

/// Scores of feedback, summed up one by one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScoreSum {
    sum: f64,
    count: u32,
}

impl ScoreSum {
    /// Adds a score.
    pub fn with(self, score: f64) -> Self {
        ScoreSum { sum: self.sum + score, count: self.count + 1 }
    }

    /// The mean, in -1..1; `None` (unknown, not 0) without any score.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// Aggregate feedback of an episode: the mean of the scores that count, in -1..1; `None` (unknown, not 0) without any.
pub fn aggregate(scores: impl IntoIterator<Item = f64>) -> Option<f64> {
    scores.into_iter().fold(ScoreSum::default(), ScoreSum::with).mean()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::Entity;

    #[test]
    fn the_kind_chooses_the_score() {
        for (kind, rating, expected) in [
            ("thumbs_up", None, Some(1.0)),
            ("thumbs_up", Some(1), Some(1.0)),
            ("thumbs_down", Some(5), Some(-1.0)),
            ("rating", Some(1), Some(-1.0)),
            ("rating", Some(2), Some(-0.5)),
            ("rating", Some(3), Some(0.0)),
            ("rating", Some(4), Some(0.5)),
            ("rating", Some(5), Some(1.0)),
            ("rating", Some(0), None),
            ("rating", Some(6), None),
            ("rating", Some(i64::MIN), None),
            ("rating", None, None),
            ("correction", Some(5), None),
            ("", None, None),
        ] {
            assert_eq!(score(kind, rating), expected, "{kind} {rating:?}");
        }
    }

    #[test]
    fn another_spelling_of_a_kind_that_counts_is_doubtful() {
        for (kind, expected) in
            [("thumbs_up", false), ("THUMBS_UP", true), ("rating ", true), ("Comment", false), ("", false)]
        {
            assert_eq!(is_doubtful(&Row::with(Entity::Feedback, [("kind", kind.into())])), expected, "{kind}");
        }
    }

    #[test]
    fn no_scores_are_unknown_and_not_zero() {
        assert_eq!(aggregate([]), None);
        assert_eq!(aggregate([1.0, -1.0]), Some(0.0));
        assert_eq!(aggregate([1.0, 0.5]), Some(0.75));
    }

    proptest! {
        #[test]
        fn an_aggregate_lies_between_its_scores_in_any_order(ratings in prop::collection::vec(1_i64..=5, 1..30)) {
            let scores: Vec<f64> = ratings.iter().filter_map(|r| score(RATING, Some(*r))).collect();
            let mean = aggregate(scores.iter().copied()).unwrap();
            prop_assert!(scores.iter().any(|s| *s <= mean) && scores.iter().any(|s| *s >= mean));
            prop_assert_eq!(aggregate(scores.iter().rev().copied()), Some(mean));
        }
    }
}
