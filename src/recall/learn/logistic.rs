//! Logistic regression on few features by Newton's method: binary cross-entropy with a light ridge, deterministic to
//! the last bit.

use super::{LearnError, TrainingExample, check};
use crate::recall::policy::{FEATURES, Policy, WeightSpelling, probability};

const N: usize = FEATURES.len();
/// Weights and bias.
const M: usize = N + 1;
/// Ridge on standardised weights, in pairs: as if one pair were evidence for every weight being 0. It keeps weights
/// finite if a feature separates the pairs completely, and splits weight between equal features.
const RIDGE: f64 = 1.0;
/// Most steps; Newton's method needs fewer than ten.
const STEPS: usize = 50;

/// Trains on pairs. A feature that is constant gets the weight 0.
///
/// # Errors
/// [`LearnError`] for pairs without information.
pub fn train(examples: &[TrainingExample], spelling: WeightSpelling) -> Result<Policy, LearnError> {
    check(examples)?;
    let n = examples.len() as f64;
    let mean: [f64; N] = std::array::from_fn(|i| examples.iter().map(|e| e.features[i]).sum::<f64>() / n);
    let spread: [f64; N] =
        std::array::from_fn(|i| (examples.iter().map(|e| (e.features[i] - mean[i]).powi(2)).sum::<f64>() / n).sqrt());
    let scaled = |features: &[f64; N]| -> [f64; M] {
        std::array::from_fn(|i| match i {
            N => 1.0,
            _ if spread[i] > 1e-9 => (features[i] - mean[i]) / spread[i],
            _ => 0.0,
        })
    };
    let rows: Vec<([f64; M], f64)> =
        examples.iter().map(|e| (scaled(&e.features), if e.label { 1.0 } else { 0.0 })).collect();
    let mut weights = [0.0; M];
    let mut loss = objective(&rows, &weights);
    for _ in 0..STEPS {
        let step = newton(&rows, &weights);
        // A full step nearly always improves; otherwise a shorter one does.
        let mut share = 1.0;
        let better = loop {
            let tried: [f64; M] = std::array::from_fn(|i| weights[i] - share * step[i]);
            let tried_loss = objective(&rows, &tried);
            if tried_loss <= loss {
                break Some((tried, tried_loss));
            }
            share /= 2.0;
            if share < 1e-6 {
                break None;
            }
        };
        let Some((tried, tried_loss)) = better else { break };
        let gained = loss - tried_loss;
        (weights, loss) = (tried, tried_loss);
        if gained < 1e-12 * n {
            break;
        }
    }
    let raw: [f64; N] = std::array::from_fn(|i| if spread[i] > 1e-9 { weights[i] / spread[i] } else { 0.0 });
    let bias = weights[N] - (0..N).map(|i| raw[i] * mean[i]).sum::<f64>();
    Ok(Policy { bias, weights: raw, spelling, unknown: Vec::new() })
}

fn dot(a: &[f64; M], b: &[f64; M]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Sum of the cross-entropies and half the ridge; the bias is free.
fn objective(rows: &[([f64; M], f64)], weights: &[f64; M]) -> f64 {
    // ln(1 + e^s) - y s, without overflow.
    let one = |(x, y): &([f64; M], f64)| {
        let s = dot(x, weights);
        s.max(0.0) + (-s.abs()).exp().ln_1p() - y * s
    };
    let ridge: f64 = weights[..N].iter().map(|w| w * w).sum();
    rows.iter().map(one).sum::<f64>() + RIDGE / 2.0 * ridge
}

type Matrix = [[f64; M]; M];

/// Newton's step: the Hessian's inverse times the gradient. Uses only the lower half of the Hessian.
fn newton(rows: &[([f64; M], f64)], weights: &[f64; M]) -> [f64; M] {
    let mut gradient = [0.0; M];
    let mut hessian = [[0.0; M]; M];
    for (x, y) in rows {
        let p = probability(dot(x, weights));
        let curve = p * (1.0 - p);
        for i in 0..M {
            gradient[i] += (p - y) * x[i];
            for j in 0..=i {
                hessian[i][j] += curve * x[i] * x[j];
            }
        }
    }
    for i in 0..M {
        // The bias has no ridge; a tiny value keeps the system solvable if all predictions are certain.
        hessian[i][i] += if i == N { 1e-9 } else { RIDGE };
        gradient[i] += if i == N { 0.0 } else { RIDGE * weights[i] };
    }
    solve(&hessian, &gradient)
}

/// Solves `matrix` x = `right` for a symmetric positive definite matrix, by Cholesky's decomposition.
fn solve(matrix: &Matrix, right: &[f64; M]) -> [f64; M] {
    let mut root = [[0.0; M]; M];
    for i in 0..M {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| root[i][k] * root[j][k]).sum();
            root[i][j] =
                if i == j { (matrix[i][i] - sum).max(1e-12).sqrt() } else { (matrix[i][j] - sum) / root[j][j] };
        }
    }
    let mut forward = [0.0; M];
    for i in 0..M {
        let sum: f64 = (0..i).map(|k| root[i][k] * forward[k]).sum();
        forward[i] = (right[i] - sum) / root[i][i];
    }
    let mut solved = [0.0; M];
    for i in (0..M).rev() {
        let sum: f64 = (i + 1..M).map(|k| root[k][i] * solved[k]).sum();
        solved[i] = (forward[i] - sum) / root[i][i];
    }
    solved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::learn::split::Random;

    fn drawn(n: usize, seed: u64, truth: [f64; M]) -> Vec<TrainingExample> {
        let mut random = Random::new(seed);
        let one = |i: usize| {
            let features: [f64; N] = std::array::from_fn(|_| random.unit());
            let score = truth[N] + (0..N).map(|k| truth[k] * features[k]).sum::<f64>();
            TrainingExample { query: i / 8, features, label: random.unit() < probability(score) }
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn known_weights_are_found_again() {
        let truth = [2.0, -1.0, 0.0, 0.5, 3.0, 0.0, -2.0];
        let policy = train(&drawn(20_000, 3, truth), WeightSpelling::Snake).unwrap();
        for (found, meant) in policy.weights.iter().chain([&policy.bias]).zip(truth) {
            assert!((found - meant).abs() < 0.25, "{policy:?}");
        }
    }

    #[test]
    fn one_feature_by_hand() {
        // x = 1: 3 of 4 positive, x = 0: 1 of 4. Without a ridge the weight is 2 ln 3; the ridge of one pair over eight
        // shrinks it: with standardised +-1 and weight w the gradient 8 (p(w) - 3/4) + w is 0.
        let example = |i: usize| TrainingExample {
            query: i,
            features: [if i < 4 { 1.0 } else { 0.0 }, 0.7, 0.0, 0.0, 0.0, 0.0],
            label: matches!(i, 0 | 1 | 2 | 4),
        };
        let policy = train(&(0..8).map(example).collect::<Vec<_>>(), WeightSpelling::Snake).unwrap();
        let w = policy.weights[0] / 2.0;
        assert!((8.0 * (probability(w) - 0.75) + w).abs() < 1e-6, "{w}");
        assert!((policy.bias + w).abs() < 1e-6);
        assert_eq!(policy.weights[1..], [0.0; 5]);
    }

    #[test]
    fn wholly_parted_pairs_give_finite_weights() {
        let pairs: Vec<TrainingExample> =
            (0..10).map(|i| TrainingExample { query: i, features: [i as f64 / 10.0; N], label: i >= 5 }).collect();
        let policy = train(&pairs, WeightSpelling::Camel).unwrap();
        assert!(policy.weights.iter().all(|w| w.is_finite() && w.abs() < 100.0));
        // Equal features share the weight.
        assert!(policy.weights.windows(2).all(|w| (w[0] - w[1]).abs() < 1e-9));
    }

    #[test]
    fn what_cannot_be_learned_from_is_refused() {
        assert_eq!(train(&[], WeightSpelling::Snake), Err(LearnError::Empty));
        let one = vec![TrainingExample { query: 0, features: [0.0; N], label: true }; 3];
        assert_eq!(train(&one, WeightSpelling::Snake), Err(LearnError::OneClass { n: 3, label: "positive" }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn training_twice_gives_the_same_bits(seed: u64) {
            let pairs = drawn(200, seed, [1.0, 0.0, -1.0, 0.0, 2.0, 0.0, -0.5]);
            prop_assume!(check(&pairs).is_ok());
            let (a, b) = (train(&pairs, WeightSpelling::Snake).unwrap(), train(&pairs, WeightSpelling::Snake).unwrap());
            prop_assert_eq!(a.weights.map(f64::to_bits), b.weights.map(f64::to_bits));
            prop_assert_eq!(a.bias.to_bits(), b.bias.to_bits());
        }
    }
}
