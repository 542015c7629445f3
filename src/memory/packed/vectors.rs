//! Vectors of very many rows: as they are while there is room for that, else rounded to 8 bits a number. A rounded
//! vector gives a range that holds its cosine, not the cosine: callers that need it read the vectors of the few rows
//! that matter.

use std::borrow::Cow;

use super::column::Column;
use super::ids::IdList;
use super::preselect::Bounds;
use crate::memory::vector::{Likeness, VectorProbe, VectorTally};

/// Numbers per block.
const BLOCK: usize = 1 << 18;

/// Numbers multiplied in parallel.
const LANES: usize = 16;

/// Most different numbers of dimensions.
const GROUPS: usize = 64;

/// Greatest rounded number.
const MOST: f32 = 127.0;

/// Greatest relative error of one 32-bit operation: 2^-24.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// Dimensions up to which the error of a sum in 32 bits is bounded by the formula of [`slack`].
const BOUNDED: usize = 1 << 16;

/// Lengths of vectors whose products and quotients neither overflow nor underflow in 32 bits.
const LENGTHS: std::ops::RangeInclusive<f64> = 1e-15..=1e15;

/// Vectors with the ids of their rows. Those of equal dimensions are numbered in order of insertion; vectors without a
/// direction are only counted.
#[derive(Debug, Default)]
pub(crate) struct PackedVectors {
    groups: Vec<VectorGroup>,
    is_rounded: bool,
}

/// The vectors of one dimension.
#[derive(Debug)]
struct VectorGroup {
    dimensions: usize,
    ids: IdList,
    numbers: GroupNumbers,
    undirected: usize,
}

#[derive(Debug)]
enum GroupNumbers {
    Whole(Blocks<f32>),
    Rounded(Blocks<i8>, Column<Rounding>),
}

/// Scale factor and rounding error of a rounded vector.
#[derive(Debug, Clone, Copy)]
struct Rounding {
    /// Rounding step, divided by the vector's length.
    step: f32,
    /// Length of the rounding error, divided by the vector's length; an upper bound.
    lost: f32,
}

/// Rows of equally many numbers, in blocks, so that nothing is copied and in memory twice.
#[derive(Debug)]
struct Blocks<T> {
    width: usize,
    blocks: Vec<Vec<T>>,
}

impl<T: Copy> Blocks<T> {
    fn new(width: usize) -> Self {
        Blocks { width, blocks: Vec::new() }
    }

    fn rows(&self) -> usize {
        (BLOCK / self.width.max(1)).max(1)
    }

    fn push(&mut self, row: impl IntoIterator<Item = T>) {
        let full = self.rows() * self.width;
        match self.blocks.last_mut() {
            Some(block) if block.len() < full => block.extend(row),
            // The first block grows on demand: there may be few rows.
            None => self.blocks.push(row.into_iter().collect()),
            Some(_) => {
                let mut block = Vec::with_capacity(full);
                block.extend(row);
                self.blocks.push(block);
            }
        }
    }

    fn get(&self, at: usize) -> Option<&[T]> {
        let start = at % self.rows() * self.width;
        self.blocks.get(at / self.rows())?.get(start..start + self.width)
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| size_of_val(block.as_slice())).sum()
    }
}

impl PackedVectors {
    /// Adds the vector of a row; returns whether there is room for its dimension.
    pub fn push(&mut self, id: &str, vector: &[f32]) -> bool {
        let at = self.groups.iter().position(|group| group.dimensions == vector.len()).unwrap_or(self.groups.len());
        if at == GROUPS {
            return false;
        }
        if at == self.groups.len() {
            self.groups.push(VectorGroup::new(vector.len(), self.is_rounded));
        }
        self.groups[at].push(id, vector);
        true
    }

    /// Rounds all vectors, and those added later.
    pub fn round(&mut self) {
        self.is_rounded = true;
        self.groups.iter_mut().for_each(VectorGroup::round);
    }

    /// Whether they are rounded.
    pub fn is_rounded(&self) -> bool {
        self.is_rounded
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(VectorGroup::bytes).sum()
    }

    /// Whether a row has several vectors. Ids with the same hash count as one.
    pub fn has_twins(&self) -> bool {
        let keys = |group: &VectorGroup| (0..group.ids.len()).map(|at| group.ids.key(at)).collect::<Vec<_>>();
        let mut keys: Vec<u64> = self.groups.iter().flat_map(keys).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        keys.len() < all
    }

    /// The vectors comparable with a query; `None` for a query of unusual length, for which the cosines cannot be
    /// bounded.
    pub fn compared<'v>(&'v self, query: &'v [f32]) -> Option<PackedComparison<'v>> {
        let length = length(query);
        if !LENGTHS.contains(&length) {
            return None;
        }
        let group = self.groups.iter().find(|group| group.dimensions == query.len());
        let unit = query.iter().map(|number| (f64::from(*number) / length) as f32).collect();
        Some(PackedComparison { group, probe: VectorProbe::new(query), unit, slack: slack(query.len()) })
    }

    /// Counts the vectors by outcome of a comparison with a query, without rows that have none. The query must be
    /// accepted by [`PackedVectors::compared`].
    pub fn tally(&self, query: &[f32]) -> VectorTally {
        let mut tally = VectorTally::default();
        for group in &self.groups {
            let (directed, undirected) = (group.ids.len(), group.undirected);
            tally.rows += directed + undirected;
            if group.dimensions == query.len() {
                (tally.compared, tally.no_direction) = (directed, undirected);
            } else {
                tally.other_dimensions += directed + undirected;
            }
        }
        tally
    }
}

impl VectorGroup {
    fn new(dimensions: usize, is_rounded: bool) -> Self {
        let numbers = if is_rounded {
            GroupNumbers::Rounded(Blocks::new(dimensions), Column::default())
        } else {
            GroupNumbers::Whole(Blocks::new(dimensions))
        };
        VectorGroup { dimensions, ids: IdList::default(), numbers, undirected: 0 }
    }

    fn push(&mut self, id: &str, vector: &[f32]) {
        // In 64 bits, every other vector has a finite length above 0, and a cosine with every query that has one.
        if vector.iter().all(|number| *number == 0.0) || vector.iter().any(|number| !number.is_finite()) {
            self.undirected += 1;
            return;
        }
        self.ids.push(id);
        match &mut self.numbers {
            GroupNumbers::Whole(numbers) => numbers.push(vector.iter().copied()),
            GroupNumbers::Rounded(numbers, roundings) => roundings.push(rounded(vector, numbers)),
        }
    }

    fn round(&mut self) {
        let GroupNumbers::Whole(whole) = &mut self.numbers else { return };
        let (mut numbers, mut roundings) = (Blocks::new(self.dimensions), Column::default());
        for block in whole.blocks.drain(..) {
            block.chunks_exact(self.dimensions).for_each(|vector| roundings.push(rounded(vector, &mut numbers)));
        }
        self.numbers = GroupNumbers::Rounded(numbers, roundings);
    }

    fn bytes(&self) -> usize {
        let numbers = match &self.numbers {
            GroupNumbers::Whole(numbers) => numbers.bytes(),
            GroupNumbers::Rounded(numbers, roundings) => numbers.bytes() + roundings.bytes(),
        };
        self.ids.bytes() + numbers
    }
}

/// Vectors compared with a query, by number.
pub(crate) struct PackedComparison<'v> {
    group: Option<&'v VectorGroup>,
    probe: VectorProbe<'v>,
    unit: Vec<f32>,
    slack: f64,
}

impl PackedComparison<'_> {
    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.group.map_or(0, |group| group.ids.len())
    }

    /// The id of a vector's row.
    pub fn id(&self, at: usize) -> Option<Cow<'_, str>> {
        self.group?.ids.get(at)
    }

    /// A range that contains the result of [`VectorProbe::compare`] for a vector; exact if the vector is not rounded.
    ///
    /// Let `x` be the vector, `y` its stored form and `q` the query, all in real numbers. The cosines of `q` with `x`
    /// and of `q` with `y`, the latter by the length of `x`, differ by `q (x - y) / |q| |x|`, which is at most `|x - y|
    /// / |x|`, that is `lost`. The rest is the error of computing both: see [`slack`].
    pub fn cosine(&self, at: usize) -> Option<Bounds> {
        match &self.group?.numbers {
            GroupNumbers::Whole(numbers) => match self.probe.compare(numbers.get(at)?) {
                Likeness::Cosine(cosine) => Some(Bounds { low: cosine, high: cosine }),
                Likeness::NoDirection | Likeness::OtherDimensions => None,
            },
            GroupNumbers::Rounded(numbers, roundings) => {
                let Rounding { step, lost } = roundings.get(at)?;
                let cosine = f64::from(mixed_dot(&self.unit, numbers.get(at)?)) * f64::from(step);
                let around = f64::from(lost) + self.slack;
                Some(Bounds { low: (cosine - around).max(-1.0), high: (cosine + around).min(1.0) })
            }
        }
    }
}

/// The most by which two cosines of vectors of ordinary length differ from what they are in real numbers, together. The one
/// with a rounded vector, whose length is at most twice that of the vector, is computed in 32 bits: a sum of `n` products in
/// any order is off by at most `n u / (1 - n u)` of the product of the lengths, with `u = 2^-24`, and each further operation
/// by `u`. That makes at most `2 (n + 5) u`; [`VectorProbe::compare`], in 64 bits, adds hardly anything. Together it is less
/// than half of this.
fn slack(dimensions: usize) -> f64 {
    8.0 * (dimensions as f64 + 4.0) * UNIT
}

/// The length, in 64 bits.
fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|number| f64::from(*number) * f64::from(*number)).sum::<f64>().sqrt()
}

/// Rounds a finite non-zero vector to multiples of 1/127 of its greatest number. For one of unusual length or with too
/// many dimensions, the cosine has no bounds.
fn rounded(vector: &[f32], into: &mut Blocks<i8>) -> Rounding {
    let length = length(vector);
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let step = most / MOST;
    if !LENGTHS.contains(&length) || vector.len() > BOUNDED || !step.is_normal() {
        into.push(vector.iter().map(|_| 0));
        return Rounding { step: 0.0, lost: 2.0 };
    }
    // As `round`, which would be a function call per number.
    let numbers = || vector.iter().map(|x| f32::from((x / step + 0.5_f32.copysign(*x)) as i8));
    let lost = vector.iter().zip(numbers()).map(|(x, y)| (f64::from(*x) - f64::from(step) * f64::from(y)).powi(2));
    let lost = (lost.sum::<f64>().sqrt() / length) as f32;
    into.push(numbers().map(|number| number as i8));
    Rounding { step: (f64::from(step) / length) as f32, lost: lost.next_up() }
}

/// As [`crate::memory::vector::dot`], with rounded numbers.
fn mixed_dot(a: &[f32], b: &[i8]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        lanes = std::array::from_fn(|lane| lanes[lane] + x[lane] * f32::from(y[lane]));
    }
    lanes.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(x, y)| x * f32::from(*y)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers as found in vectors, and some that should not be.
    fn numbers() -> impl Strategy<Value = f32> {
        prop_oneof![
            20 => -1.0f32..1.0,
            2 => Just(0.0f32),
            1 => prop::num::f32::ANY,
            1 => Just(1e-20f32),
            1 => Just(3e18f32),
        ]
    }

    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        let plain = |most: usize| prop::collection::vec(-1.0f32..1.0, 0..most);
        let odd = prop::collection::vec(numbers(), 0..5);
        let same = (-2.0f32..2.0, 1usize..70).prop_map(|(number, length)| vec![number; length]);
        let spiky = (prop::collection::vec(-1e-3f32..1e-3, 64), 0usize..64).prop_map(|(mut vector, at)| {
            vector[at] = 1.0;
            vector
        });
        let zero = (0usize..70).prop_map(|length| vec![0.0; length]);
        let any = prop_oneof![4 => prop::collection::vec(-1.0f32..1.0, 64), 2 => plain(70), 1 => odd, 1 => same, 1 => spiky, 1 => zero];
        prop::collection::vec(any, 1..40)
    }

    proptest! {
        #[test]
        fn the_range_holds_the_cosine_that_is_computed_of_the_stored_vector(all in vectors(), asked in any::<prop::sample::Index>()) {
            let query = asked.get(&all);
            let probe = VectorProbe::new(query);
            let mut tally = VectorTally { rows: all.len(), ..VectorTally::default() };
            let mut exact = Vec::new();
            for (at, vector) in all.iter().enumerate() {
                tally.count(probe.compare(vector), |cosine| exact.push((at.to_string(), cosine)));
            }
            for half in [usize::MAX, 0, all.len() / 2] {
                let mut packed = PackedVectors::default();
                for (at, vector) in all.iter().enumerate() {
                    if at == half {
                        packed.round();
                    }
                    prop_assert!(packed.push(&at.to_string(), vector));
                }
                prop_assert_eq!(packed.is_rounded(), half < all.len());
                let Some(compared) = packed.compared(query) else {
                    prop_assert!(!LENGTHS.contains(&length(query)));
                    continue;
                };
                prop_assert_eq!(packed.tally(query), tally);
                prop_assert_eq!(compared.len(), exact.len());
                for (at, (id, cosine)) in exact.iter().enumerate() {
                    let range = compared.cosine(at).unwrap();
                    prop_assert_eq!(compared.id(at).map(Cow::into_owned), Some(id.clone()));
                    prop_assert!(range.hold(*cosine), "{range:?} {cosine}");
                    prop_assert!(packed.is_rounded() || range.low.to_bits() == cosine.to_bits());
                }
            }
        }
    }

    #[test]
    fn rounded_vectors_take_a_quarter_and_tell_near_from_far() {
        // The mixing function of SplitMix64 (Steele, Lea and Flood).
        let number = |seed: u64| {
            let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
        };
        let vector = |seed: usize| (0..64).map(|n| number((seed * 64 + n) as u64)).collect::<Vec<f32>>();
        let mut packed = PackedVectors::default();
        (0..10_000).for_each(|n| assert!(packed.push(&format!("ep_{n:08}"), &vector(n))));
        let whole = packed.bytes();
        packed.round();
        assert!(whole > 10_000 * 256 && packed.bytes() < 10_000 * (64 + 8 + 12), "{} {whole}", packed.bytes());
        let query = vector(77);
        let compared = packed.compared(&query).unwrap();
        let near: Vec<usize> = (0..compared.len()).filter(|at| compared.cosine(*at).unwrap().high >= 1.0).collect();
        assert_eq!(near, [77]);
        let wide = |range: Bounds| range.high - range.low;
        assert!((0..compared.len()).all(|at| wide(compared.cosine(at).unwrap()) < 0.02));
    }

    #[test]
    fn vectors_of_very_many_numbers_of_dimensions_have_no_place() {
        let mut packed = PackedVectors::default();
        assert!((1..=GROUPS).all(|length| packed.push("a", &vec![1.0; length])));
        assert!(!packed.push("a", &vec![1.0; GROUPS + 1]) && packed.push("a", &[1.0]));
    }
}
