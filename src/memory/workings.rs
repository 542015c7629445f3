//! Explains a row's numbers: each formula with the row's own values.

use super::utility::{self, UtilityStep};
use super::{Entity, Row, feedback, reward};

/// Values of a sum that are shown; of more, the last ones.
const SPELLED: usize = 8;

/// Name of a number, and its derivation.
pub type NumberWorking = (&'static str, String);

/// The numbers of a row that come from a formula, with their input values. `feedback` and `signals` are those of an
/// episode, signals oldest first.
pub fn workings(row: &Row, feedback: &[Row], signals: &[Row]) -> Vec<NumberWorking> {
    match row.entity {
        Entity::Episode => [score_of(row, feedback), utility_of(row, signals)].into_iter().flatten().collect(),
        Entity::Feedback => given(row).into_iter().collect(),
        Entity::Case => earned(row).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn score_of(row: &Row, feedback: &[Row]) -> Option<NumberWorking> {
    let counts = |row: &&Row| row.get("counts").as_bool() != Some(false);
    let scores: Vec<f64> = feedback.iter().filter(counts).filter_map(|row| row.number("score")).collect();
    let stored = row.number("feedback_score");
    let Some(mean) = feedback::aggregate(scores.iter().copied()) else {
        return stored
            .map(|stored| ("feedback score", format!("{stored:+.2} is stored; there is no feedback that counts")));
    };
    let sum = listed(&scores, |score| format!("{score:+.2}"));
    let words =
        format!("mean of the scores that count: ({sum}) / {} = {mean:+.2}{}", scores.len(), beside(mean, stored));
    Some(("feedback score", words))
}

fn utility_of(row: &Row, signals: &[Row]) -> Option<NumberWorking> {
    let stored = row.number("utility");
    let start = signals.first().and_then(|row| row.number("before")).unwrap_or(utility::START);
    let replayed = utility::replay(start, signals.iter().map(|row| row.text("signal").unwrap_or_default()));
    if signals.is_empty() {
        let words = |stored: f64| {
            let begins = if (stored - utility::START).abs() < SAME { ", the starting value" } else { "" };
            format!("{stored:.2} is stored{begins}; no signals")
        };
        return stored.map(|stored| ("utility", words(stored)));
    }
    let step = |step: &UtilityStep| match step.signal {
        Some(signal) if (step.before + signal.delta() - step.after).abs() > SAME => {
            format!("{} {:+.2} (held at {:.0})", signal.word(), signal.delta(), step.after)
        }
        Some(signal) => format!("{} {:+.2}", signal.word(), signal.delta()),
        None => "an unknown signal".to_owned(),
    };
    let steps = listed(&replayed.steps, step);
    let end = replayed.utility();
    Some(("utility", format!("{start:.2}, {steps} = {end:.2}; held within 0 to 1{}", beside(end, stored))))
}

fn given(row: &Row) -> Option<NumberWorking> {
    let (kind, rating) = (row.text("kind")?, row.get("rating").as_i64());
    let score = feedback::score(kind, rating)?;
    let words = match rating.filter(|_| kind == feedback::RATING) {
        Some(rating) => format!("a rating gives (rating - 3) / 2: ({rating} - 3) / 2 = {score:+.2}"),
        None => format!("{} gives {score:+.2}", kind.replace('_', " ")),
    };
    Some(("score", format!("{words}{}", beside(score, row.number("score")))))
}

fn earned(row: &Row) -> Option<NumberWorking> {
    let outcome = row.text("outcome")?;
    let rule = reward::of_outcome(outcome)?;
    Some(("reward", format!("by the rule, {outcome} earns {rule:.2}{}", beside(rule, row.number("reward")))))
}

/// Largest difference that is not shown.
const SAME: f64 = 5e-3;

/// States the stored number if it differs from the computed one, or that nothing is stored.
fn beside(worked_out: f64, stored: Option<f64>) -> String {
    match stored {
        Some(stored) if (stored - worked_out).abs() > SAME => format!("; stored is {stored:.2}"),
        Some(_) => String::new(),
        None => "; nothing is stored".to_owned(),
    }
}

fn listed<T>(values: &[T], spelled: impl Fn(&T) -> String) -> String {
    let left = values.len().saturating_sub(SPELLED);
    let more = (left > 0).then(|| format!("{left} before"));
    more.into_iter().chain(values[left..].iter().map(spelled)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
        Row::with(entity, values.iter().cloned())
    }

    #[test]
    fn an_episodes_numbers_are_worked_out_and_what_is_stored_is_told_where_it_differs() {
        let score =
            |score: f64, counts: bool| row(Entity::Feedback, &[("score", json!(score)), ("counts", json!(counts))]);
        let signal = |word: &str| row(Entity::UtilityEvent, &[("signal", json!(word)), ("before", json!(0.9))]);
        let episode = row(Entity::Episode, &[("feedback_score", json!(0.25)), ("utility", json!(1.7))]);
        let told =
            workings(&episode, &[score(1.0, true), score(-0.5, true), score(1.0, false)], &[signal("confirmed")]);
        assert_eq!(told[0].1, "mean of the scores that count: (+1.00, -0.50) / 2 = +0.25");
        let delta = utility::Signal::Confirmed.delta();
        let words = format!("0.90, confirmed {delta:+.2} (held at 1) = 1.00; held within 0 to 1; stored is 1.70");
        assert_eq!(told[1].1, words);
        assert!(workings(&row(Entity::Episode, &[]), &[], &[]).is_empty());
    }

    #[test]
    fn feedback_and_cases_say_their_rule() {
        let rating = row(Entity::Feedback, &[("kind", json!("rating")), ("rating", json!(2)), ("score", json!(-0.5))]);
        assert_eq!(workings(&rating, &[], &[])[0].1, "a rating gives (rating - 3) / 2: (2 - 3) / 2 = -0.50");
        let case = row(Entity::Case, &[("outcome", json!("success")), ("reward", json!(0.2))]);
        assert_eq!(workings(&case, &[], &[])[0].1, "by the rule, success earns 1.00; stored is 0.20");
    }
}
