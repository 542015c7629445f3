//! The stored weights of a retrieval policy: a bias and one number per named feature, in either of the two spellings in
//! use.

use serde_json::{Map, Value};

pub use super::features::NAMES as FEATURES;

/// The same in the spelling of ennube, whose readers only know these names.
const CAMEL: [&str; 6] =
    ["semanticWeight", "rewardWeight", "outcomeWeight", "recencyWeight", "textWeight", "tagWeight"];

/// Spelling of the names of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightSpelling {
    /// `text_overlap`: the native layout.
    #[default]
    Snake,
    /// `textWeight`: ennube.
    Camel,
}

impl WeightSpelling {
    fn names(self) -> &'static [&'static str; 6] {
        match self {
            WeightSpelling::Snake => &FEATURES,
            WeightSpelling::Camel => &CAMEL,
        }
    }
}

/// Weights of a policy: Q = bias + sum of weight x feature, on the logit scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Constant part of the score.
    pub bias: f64,
    /// One weight per [`FEATURES`] entry; 0 if none is stored.
    pub weights: [f64; 6],
    /// Spelling in which the weights were stored.
    pub spelling: WeightSpelling,
    /// Stored names that are not our features: their weights are ignored here, and score displays say so.
    pub unknown: Vec<String>,
}

impl Policy {
    /// Reads stored weights, in either spelling.
    ///
    /// # Errors
    /// The reason why they are invalid: nothing stored, not an object, a weight that is not a finite number, no known
    /// feature.
    pub fn parse(stored: &Value) -> Result<Policy, String> {
        let object = match stored {
            Value::Null => return Err("no readable weights are stored".to_owned()),
            Value::Object(object) => object,
            _ => return Err("the stored weights are not a JSON object of names and numbers".to_owned()),
        };
        let mut policy = Policy { bias: 0.0, weights: [0.0; 6], spelling: WeightSpelling::Snake, unknown: Vec::new() };
        let mut known = 0;
        for (name, value) in object {
            let number = value.as_f64().filter(|x| x.is_finite());
            let place = [WeightSpelling::Snake, WeightSpelling::Camel]
                .into_iter()
                .find_map(|s| Some((s, s.names().iter().position(|n| n == name)?)));
            match (name.as_str(), place, number) {
                ("bias", _, Some(number)) => policy.bias = number,
                (_, Some((spelling, at)), Some(number)) => {
                    policy.weights[at] = number;
                    policy.spelling = spelling;
                    known += 1;
                }
                ("bias", ..) | (_, Some(_), None) => {
                    return Err(format!("the stored weight `{name}` is not a finite number"));
                }
                (_, None, _) => policy.unknown.push(name.clone()),
            }
        }
        if known == 0 {
            return Err(format!("the stored weights name none of the features {}", FEATURES.join(", ")));
        }
        let greatest = policy.weights.iter().fold(policy.bias.abs(), |sum, weight| sum + weight.abs());
        if !greatest.is_finite() {
            return Err("the stored weights are too large to add".to_owned());
        }
        Ok(policy)
    }

    /// The weights as they are stored, in the policy's own spelling.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("bias".to_owned(), Value::from(self.bias));
        for (name, weight) in self.spelling.names().iter().zip(self.weights) {
            object.insert((*name).to_owned(), Value::from(weight));
        }
        Value::Object(object)
    }

    /// Computes the contribution of each feature to the score: weight x feature, in the order of [`FEATURES`].
    pub fn contributions(&self, features: &[f64; 6]) -> [f64; 6] {
        std::array::from_fn(|i| self.weights[i] * features[i])
    }

    /// Q of a pair on the logit scale: the bias and all contributions, added in that order.
    pub fn score(&self, features: &[f64; 6]) -> f64 {
        self.contributions(features).iter().fold(self.bias, |sum, part| sum + part)
    }
}

/// The probability that belongs to a score on the logit scale, in 0..1.
pub fn probability(score: f64) -> f64 {
    if score >= 0.0 {
        1.0 / (1.0 + (-score).exp())
    } else {
        let e = score.exp();
        e / (1.0 + e)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same numbers come out to the bit")]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let camel = json!({"bias": -2.0, "tagWeight": 0.8, "textWeight": 1.0, "rewardWeight": 2.5,
            "outcomeWeight": 1.5, "recencyWeight": 0.5, "semanticWeight": 0.25});
        let policy = Policy::parse(&camel).unwrap();
        assert_eq!(policy.weights, [0.25, 2.5, 1.5, 0.5, 1.0, 0.8]);
        assert_eq!((policy.bias, policy.spelling), (-2.0, WeightSpelling::Camel));
        let snake = json!({"bias": 1, "similarity": 2, "kernel": [1]});
        let policy = Policy::parse(&snake).unwrap();
        assert_eq!((policy.weights[0], policy.unknown), (2.0, vec!["kernel".to_owned()]));
    }

    #[test]
    fn what_are_no_weights_is_refused_with_the_reason() {
        for (stored, word) in [
            (json!(null), "no readable weights"),
            (json!("x"), "not a JSON object"),
            (json!({"bias": 1}), "none of the features"),
            (json!({"reward": "2"}), "not a finite number"),
            (json!({"bias": null, "reward": 1}), "not a finite number"),
            (json!({"similarity": 1e308, "reward": -1e308}), "too large"),
        ] {
            let why = Policy::parse(&stored).unwrap_err();
            assert!(why.contains(word), "{stored}: {why}");
        }
    }

    proptest! {
        #[test]
        fn weights_survive_storing_and_terms_sum_to_the_score(
            bias in -9.0..9.0f64, weights in prop::array::uniform6(-9.0..9.0f64), camel: bool,
            features in prop::array::uniform6(0.0..1.0f64),
        ) {
            let spelling = if camel { WeightSpelling::Camel } else { WeightSpelling::Snake };
            let policy = Policy { bias, weights, spelling, unknown: Vec::new() };
            let text = policy.to_json().to_string();
            prop_assert_eq!(&Policy::parse(&serde_json::from_str(&text).unwrap()).unwrap(), &policy);
            let sum: f64 = policy.contributions(&features).iter().sum();
            prop_assert!((policy.score(&features) - bias - sum).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&probability(policy.score(&features))));
        }
    }
}
