//! Vectors of the demo with plausible neighbours: the same story is nearest, then the same topic, then the same domain.

use super::chance::Chance;

/// Numbers in a vector.
pub const DIMENSIONS: usize = 64;

/// Shares of domain, topic, story and chance. The cosine of two episodes of one story is then about 0.96, of one topic
/// 0.77, of one domain 0.12.
const SHARES: [f32; 4] = [0.35, 0.8, 0.45, 0.2];

type Vector = [f32; DIMENSIONS];

/// A direction of length 1 determined by `sort` and `number`. It uses only sums and a square root, which every machine
/// rounds the same way.
fn direction(seed: u64, sort: &str, number: u64) -> Vector {
    let mut chance = Chance::new(seed, sort, number);
    let mut vector = [0.0; DIMENSIONS];
    for value in &mut vector {
        // The sum of four uniform numbers is near enough to a normal one.
        *value = (0..4).map(|_| chance.unit() as f32).sum::<f32>() - 2.0;
    }
    unit(vector)
}

fn unit(vector: Vector) -> Vector {
    let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    vector.map(|v| v / length)
}

/// The vector of the thing of that number in a story of a topic of a domain, as little-endian bytes.
pub fn vector(seed: u64, domain: usize, topic: usize, story: u64, number: u64) -> Vec<u8> {
    let parts = [
        direction(seed, "domain", domain as u64),
        direction(seed, "topic", topic as u64),
        direction(seed, "story", story),
        direction(seed, "noise", number),
    ];
    let mut sum = [0.0; DIMENSIONS];
    for (part, share) in parts.iter().zip(SHARES) {
        for (s, p) in sum.iter_mut().zip(part) {
            *s += share * p;
        }
    }
    unit(sum).iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &[u8], b: &[u8]) -> f32 {
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
        };
        floats(a).iter().zip(floats(b)).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn story_is_nearer_than_topic_than_domain() {
        for number in 0..50 {
            let one = vector(1, 0, 0, 10, number);
            let story = cosine(&one, &vector(1, 0, 0, 10, number + 100));
            let topic = cosine(&one, &vector(1, 0, 0, 11, number + 200));
            let domain = cosine(&one, &vector(1, 0, 1, 12, number + 300));
            assert!(story > 0.9 && story > topic && topic > domain, "{story} {topic} {domain}");
        }
    }
}
