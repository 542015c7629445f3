//! Vectors: reading stored ones, the similarity of two, and the nearest of many without holding all.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::Serialize;
use serde_json::Value;

use super::json;

/// Most bytes of vectors cached by the console: 40,000 of 1,536 dimensions.
pub const CONSOLE_BYTES: usize = 256 << 20;

/// Numbers multiplied in parallel.
const LANES: usize = 16;
/// The same in 64 bits.
const WIDE_LANES: usize = 8;

/// Appends little-endian 32-bit floats to `into`; false if the length is not a multiple of 4.
pub fn read_floats(bytes: &[u8], into: &mut Vec<f32>) -> bool {
    let (chunks, rest) = bytes.as_chunks::<4>();
    into.extend(chunks.iter().map(|c| f32::from_le_bytes(*c)));
    rest.is_empty() && !chunks.is_empty()
}

/// Appends the numbers of a text such as `[0.1,-2]` to `into`; false if it is not such a list.
pub fn read_list(text: &str, into: &mut Vec<f32>) -> bool {
    let Some(inner) = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']')) else { return false };
    let start = into.len();
    for part in inner.split(',') {
        let part = match part.trim() {
            // PostgreSQL's spelling in JSON.
            quoted @ ("\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"") => quoted.trim_matches('"'),
            plain => plain,
        };
        match part.parse::<f32>() {
            Ok(number) => into.push(number),
            Err(_) => return false,
        }
    }
    into.len() > start
}

/// Most dimensions of a sparse vector to expand.
const SPARSE: usize = 65_536;

/// Appends the numbers of a PostgreSQL array (`{0.1,-2}`) or sparse vector (`{1:0.1,3:-2}/4`) to `into`; false if it is
/// neither.
pub fn read_braced(text: &str, into: &mut Vec<f32>) -> bool {
    let Some((inner, size)) = text.trim().strip_prefix('{').and_then(|rest| rest.rsplit_once('}')) else {
        return false;
    };
    let start = into.len();
    let mut parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    let Some(size) = size.strip_prefix('/') else {
        let read = |part: &str| part.parse::<f32>().map(|number| into.push(number)).is_ok();
        return size.is_empty() && parts.all(read) && into.len() > start;
    };
    let Some(size) = size.parse::<usize>().ok().filter(|size| (1..=SPARSE).contains(size)) else { return false };
    into.resize(start + size, 0.0);
    parts.all(|part| {
        let Some((place, number)) = part.split_once(':') else { return false };
        let (Ok(place), Ok(number)) = (place.parse::<usize>(), number.parse::<f32>()) else { return false };
        let at = place.checked_sub(1).filter(|at| *at < size).and_then(|at| into.get_mut(start + at));
        at.map(|at| *at = number).is_some()
    })
}

/// Appends the bits of a text such as `1010` to `into`; false if it is not one.
pub fn read_bits(text: &str, into: &mut Vec<f32>) -> bool {
    let is_bits = !text.is_empty() && text.bytes().all(|bit| matches!(bit, b'0' | b'1'));
    into.extend(text.bytes().filter(|_| is_bits).map(|bit| f32::from(bit - b'0')));
    is_bits
}

/// The vector within a JSON value, at a path: a list of numbers, or a text with one.
pub fn at_path(value: &Value, path: &str) -> Option<Vec<f32>> {
    of_json(&json::path(value, path)?)
}

/// Converts a JSON value to a vector.
pub fn of_json(value: &Value) -> Option<Vec<f32>> {
    match value {
        Value::String(text) => {
            let mut numbers = Vec::new();
            read_list(text, &mut numbers).then_some(numbers)
        }
        Value::Array(items) if !items.is_empty() => items.iter().map(|item| item.as_f64().map(|x| x as f32)).collect(),
        _ => None,
    }
}

/// Whether a vector can be compared with others: it is not all zeros, and all its numbers are finite.
pub fn has_direction(vector: &[f32]) -> bool {
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    square.is_finite() && square > 0.0
}

/// The vector of length 1 in the same direction; `None` for one without a length.
pub fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let square = dot(&vector, &vector);
    if (1e-30..=1e30).contains(&square) {
        let length = square.sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        return Some(vector);
    }
    // Squares of such numbers overflow 32 bits.
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !(length.is_finite() && length > 0.0) {
        return None;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Some(vector)
}

/// The dot product, computed in parallel 32-bit floats: fast, accurate to about six digits.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        lanes = std::array::from_fn(|at| lanes[at] + x[at] * y[at]);
    }
    lanes.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum::<f32>()
}

/// The sum of the products of two vectors, and that of the squares of the second, side by side in 64 bits: one pass takes no
/// longer than [`dot`] twice.
fn products(a: &[f32], b: &[f32]) -> (f64, f64) {
    let wide = |numbers: &[f32; WIDE_LANES]| numbers.map(f64::from);
    let (a_chunks, a_rest) = a.as_chunks::<WIDE_LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<WIDE_LANES>();
    let (mut products, mut squares) = ([0.0_f64; WIDE_LANES], [0.0_f64; WIDE_LANES]);
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        let (x, y) = (wide(x), wide(y));
        products = std::array::from_fn(|at| products[at] + x[at] * y[at]);
        squares = std::array::from_fn(|at| squares[at] + y[at] * y[at]);
    }
    let rest = |(product, square): (f64, f64), (x, y): (&f32, &f32)| {
        let (x, y) = (f64::from(*x), f64::from(*y));
        (product + x * y, square + y * y)
    };
    let sums = (products.iter().sum::<f64>(), squares.iter().sum::<f64>());
    a_rest.iter().zip(b_rest).fold(sums, rest)
}

/// A query made ready for many comparisons.
#[derive(Debug, Clone)]
pub struct VectorProbe<'q> {
    vector: &'q [f32],
    length: f64,
}

/// Comparison of a stored vector with a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Likeness {
    /// The cosine, in -1..1.
    Cosine(f64),
    /// One of the two has no length, or a number that is not finite.
    NoDirection,
    /// Their numbers of dimensions differ.
    OtherDimensions,
}

impl<'q> VectorProbe<'q> {
    /// A query.
    pub fn new(vector: &'q [f32]) -> Self {
        VectorProbe { vector, length: products(vector, vector).1.sqrt() }
    }

    /// Compares in 64 bits, with the same result on every machine and engine.
    pub fn compare(&self, other: &[f32]) -> Likeness {
        if other.len() != self.vector.len() {
            return Likeness::OtherDimensions;
        }
        let (product, square) = products(self.vector, other);
        let cosine = product / (self.length * square.sqrt());
        if cosine.is_finite() { Likeness::Cosine(cosine.clamp(-1.0, 1.0)) } else { Likeness::NoDirection }
    }
}

/// The cosine of two vectors, as [`VectorProbe::compare`] makes it; none when the dimensions differ or either has no
/// direction.
pub fn cosine_of(a: &[f32], b: &[f32]) -> Option<f64> {
    match VectorProbe::new(a).compare(b) {
        Likeness::Cosine(cosine) => Some(cosine),
        Likeness::NoDirection | Likeness::OtherDimensions => None,
    }
}

/// Counts of vector rows by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct VectorTally {
    /// Rows of the owner.
    pub rows: usize,
    /// Rows whose vector was compared.
    pub compared: usize,
    /// Rows without a vector.
    pub missing: usize,
    /// Vectors of length 0, or with numbers that are not finite.
    pub no_direction: usize,
    /// Vectors with another number of dimensions than the query.
    pub other_dimensions: usize,
    /// Stored values that are not vectors.
    pub unreadable: usize,
}

impl VectorTally {
    /// Counts one comparison, and passes its cosine on.
    pub(crate) fn count(&mut self, likeness: Likeness, cosine: impl FnOnce(f64)) {
        match likeness {
            Likeness::Cosine(found) => {
                self.compared += 1;
                cosine(found);
            }
            Likeness::NoDirection => self.no_direction += 1,
            Likeness::OtherDimensions => self.other_dimensions += 1,
        }
    }
}

/// Component that compared the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedBy {
    /// pgvector, over the owner's materialised rows.
    Pgvector,
    /// This program, over rows while reading.
    Streamed,
    /// This program, over cached vectors.
    Memory,
}

/// A row with its cosine.
#[derive(Debug, Clone, PartialEq)]
pub struct NearRow {
    /// Id of the row.
    pub id: String,
    /// Cosine to the query, in -1..1.
    pub cosine: f64,
}

impl Eq for NearRow {}

impl Ord for NearRow {
    /// Nearer is less, so that the heap drops the farthest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for NearRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the nearest of many.
#[derive(Debug)]
pub struct Nearest {
    most: usize,
    heap: BinaryHeap<NearRow>,
}

impl Nearest {
    /// Keeps at most `most`.
    pub fn new(most: usize) -> Self {
        Nearest { most, heap: BinaryHeap::with_capacity(most.min(1024)) }
    }

    /// Offers a row; its id is only created if it is kept.
    pub fn offer(&mut self, cosine: f64, id: impl FnOnce() -> String) {
        if self.heap.len() < self.most {
            self.heap.push(NearRow { id: id(), cosine });
        } else if self.heap.peek().is_some_and(|farthest| cosine >= farthest.cosine) {
            self.heap.push(NearRow { id: id(), cosine });
            self.heap.pop();
        }
    }

    /// The kept rows, nearest first, ties by id.
    pub fn into_sorted(self) -> Vec<NearRow> {
        self.heap.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn vectors_are_read_as_postgresql_spells_them() {
        let read = |text: &str, by: fn(&str, &mut Vec<f32>) -> bool| {
            let mut numbers = Vec::new();
            by(text, &mut numbers).then_some(numbers)
        };
        for (text, expected) in [
            ("{0.5,-2}", Some(vec![0.5, -2.0])),
            ("{1:0.5,3:0.25}/4", Some(vec![0.5, 0.0, 0.25, 0.0])),
            ("{}/2", Some(vec![0.0, 0.0])),
            ("{}", None),
            ("{1,NULL}", None),
            ("{5:1}/4", None),
            ("{0:1}/4", None),
            ("{1:1}/900000000", None),
            ("[1]", None),
        ] {
            assert_eq!(read(text, read_braced), expected, "{text}");
        }
        assert_eq!(read("101", read_bits), Some(vec![1.0, 0.0, 1.0]));
        assert_eq!(read("102", read_bits).or(read("", read_bits)), None);
    }

    #[test]
    fn every_stored_form_is_read() {
        let mut read = Vec::new();
        assert!(read_floats(&[0, 0, 128, 63, 0, 0, 0, 192], &mut read));
        assert!(read_list(" [1, -2]", &mut read));
        assert_eq!(read, [1.0, -2.0, 1.0, -2.0]);
        assert!(read_list("[1,\"-Infinity\"]", &mut read) && read.ends_with(&[1.0, f32::NEG_INFINITY]));
        assert!(!read_floats(&[1, 2, 3], &mut Vec::new()) && !read_floats(&[], &mut Vec::new()));
        for text in ["", "[]", "[a]", "1,2", "null"] {
            assert!(!read_list(text, &mut Vec::new()), "{text}");
        }
        assert_eq!(at_path(&json!({"data": {"embedding": [1, 0.5]}}), "data.embedding"), Some(vec![1.0, 0.5]));
        assert_eq!(of_json(&json!("[3]")), Some(vec![3.0]));
        assert_eq!(of_json(&json!([])), None);
        assert_eq!(of_json(&json!([1, "x"])), None);
    }

    #[test]
    fn what_cannot_be_compared_is_told_apart() {
        let probe = VectorProbe::new(&[1.0, 0.0]);
        assert_eq!(probe.compare(&[2.0, 0.0]), Likeness::Cosine(1.0));
        assert_eq!(probe.compare(&[0.0, 0.0]), Likeness::NoDirection);
        assert_eq!(probe.compare(&[f32::NAN, 0.0]), Likeness::NoDirection);
        assert_eq!(probe.compare(&[1.0]), Likeness::OtherDimensions);
        assert_eq!(probe.compare(&[3e38, 0.0]), Likeness::Cosine(1.0));
        assert_eq!(cosine_of(&[0.0], &[1.0]), None);
        for long in [1e-40, 1e-24, 1.0, 1e25, 3e38] {
            assert_eq!(unit(vec![0.0, long]), Some(vec![0.0, 1.0]), "{long}");
        }
        assert_eq!((unit(vec![0.0]), unit(vec![f32::NAN]), unit(vec![f32::INFINITY])), (None, None, None));
        for (vector, has) in
            [([0.0, -0.0], false), ([1.0, f32::INFINITY], false), ([f32::NAN, 1.0], false), ([3e38, 1e-40], true)]
        {
            assert_eq!(has_direction(&vector), has, "{vector:?}");
        }
    }

    fn vectors(dimensions: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
        prop::collection::vec(prop::collection::vec(-1.0f32..1.0, dimensions), 2..40)
    }

    proptest! {
        #[test]
        fn lanes_agree_with_plain_sums(all in (1usize..70).prop_flat_map(vectors)) {
            for pair in all.windows(2) {
                let plain = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
                let exact = plain(&pair[0], &pair[1]) / (plain(&pair[0], &pair[0]) * plain(&pair[1], &pair[1])).sqrt();
                match cosine_of(&pair[0], &pair[1]) {
                    Some(cosine) => prop_assert!((cosine - exact).abs() < 1e-12),
                    None => prop_assert!(!exact.is_finite()),
                }
            }
        }

        #[test]
        fn the_nearest_are_those_of_a_full_sort(cosines in prop::collection::vec(-9i32..9, 0..60), most in 0usize..9) {
            let mut nearest = Nearest::new(most);
            let mut all: Vec<NearRow> = Vec::new();
            for (i, cosine) in cosines.iter().enumerate() {
                let cosine = f64::from(*cosine) / 9.0;
                nearest.offer(cosine, || format!("{i:03}"));
                all.push(NearRow { id: format!("{i:03}"), cosine });
            }
            all.sort();
            all.truncate(most);
            prop_assert_eq!(nearest.into_sorted(), all);
        }
    }
}
