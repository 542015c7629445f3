//! A timeline on few columns: stretches with events get the space, and long pauses are compressed.

/// Columns for a squeezed pause.
const GAP: usize = 3;

/// Least columns of a stretch.
const LEAST: usize = 2;

/// A pause is long if it takes more than this share of the total time.
const LONG: f64 = 0.08;

/// Maps times (seconds since any origin) to columns. Later times never come before earlier ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    stretches: Vec<TimeStretch>,
}

/// A stretch of time without long pauses, and its columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeStretch {
    /// Start of the stretch, in seconds.
    pub from: f64,
    /// End of the stretch, in seconds.
    pub to: f64,
    /// First column of the stretch.
    pub column: usize,
    /// Number of columns, at least one.
    pub width: usize,
}

impl Scale {
    /// Creates a scale of `width` columns over spans of (begin, end). Spans with a NaN time are left out.
    pub fn new(spans: &[(f64, f64)], width: usize) -> Self {
        let mut spans: Vec<(f64, f64)> = spans
            .iter()
            .filter(|(from, to)| from.is_finite() && to.is_finite())
            .map(|(from, to)| (from.min(*to), from.max(*to)))
            .collect();
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(first) = spans.first().copied().filter(|_| width > 0) else { return Self::default() };
        let end = spans.iter().map(|span| span.1).fold(first.1, f64::max);
        let squeezed = long_pauses(&spans, (end - first.0) * LONG, width / (3 * (GAP + LEAST)));
        Self::between((first.0, end), &squeezed, width, (GAP, LEAST))
    }

    /// Creates a scale of `width` columns over moments (in order) that folds the longest pauses, but only as many as
    /// are needed to keep most moments apart. A fold takes `gap` columns and a stretch at least `least`, so that both
    /// can be labelled.
    pub fn folding(moments: &[f64], width: usize, (gap, least): (usize, usize)) -> Self {
        /// Columns that a fold must distinguish to be worth its own.
        const WORTH: usize = 2;
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else { return Self::default() };
        let points: Vec<(f64, f64)> = moments.iter().map(|at| (*at, *at)).collect();
        let most = (width / (gap + 2 * least).max(1)).min(moments.len().saturating_sub(2));
        let folded = |count: usize| {
            let pauses = long_pauses(&points, 0.0, count);
            Self::between((*first, *last), &pauses, width, (gap, least))
        };
        let apart = |scale: &Self| {
            let mut columns: Vec<usize> = moments.iter().map(|at| scale.column(*at)).collect();
            columns.dedup();
            columns.len()
        };
        let mut best = (folded(0), 0);
        let plain = apart(&best.0);
        for count in 1..=most {
            let scale = folded(count);
            let gain = apart(&scale).saturating_sub(plain + count * WORTH);
            if gain > best.1 {
                best = (scale, gain);
            }
        }
        best.0
    }

    fn between((first, end): (f64, f64), squeezed: &[(f64, f64)], width: usize, room: (usize, usize)) -> Self {
        let mut bounds = vec![first];
        for (from, to) in squeezed {
            bounds.extend([*from, *to]);
        }
        bounds.push(end);
        let mut stretches: Vec<TimeStretch> = bounds
            .chunks_exact(2)
            .map(|ends| TimeStretch { from: ends[0], to: ends[1], column: 0, width: 1 })
            .collect();
        share_out(&mut stretches, width, room);
        Self { stretches }
    }

    /// The stretches in order; between two of them, time is compressed.
    pub fn stretches(&self) -> &[TimeStretch] {
        &self.stretches
    }

    /// The column of a time; times outside are at the nearest end.
    pub fn column(&self, time: f64) -> usize {
        let after = self.stretches.partition_point(|stretch| stretch.from <= time);
        let Some(stretch) = self.stretches.get(after.saturating_sub(1)) else { return 0 };
        let share = super::small::share(time - stretch.from, stretch.to - stretch.from);
        stretch.column + (share * stretch.width.saturating_sub(1) as f64).round() as usize
    }
}

/// The longest pauses between the spans (sorted by their beginning): at most `most`, each longer than `least`, in
/// order.
fn long_pauses(spans: &[(f64, f64)], least: f64, most: usize) -> Vec<(f64, f64)> {
    let mut reached = f64::NEG_INFINITY;
    let mut pauses: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        if reached.is_finite() && from - reached > least {
            pauses.push((reached, *from));
        }
        reached = reached.max(*to);
    }
    pauses.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    pauses.truncate(most);
    pauses.sort_by(|a, b| a.0.total_cmp(&b.0));
    pauses
}

/// Gives each stretch its minimum, and shares the rest by duration.
fn share_out(stretches: &mut [TimeStretch], width: usize, (gap, least): (usize, usize)) {
    let gaps = gap * stretches.len().saturating_sub(1);
    let least = least.min(width);
    let mut room_left = width.saturating_sub(gaps + least * stretches.len());
    let mut time: f64 = stretches.iter().map(|stretch| stretch.to - stretch.from).sum();
    let mut left = stretches.len();
    let mut column = 0;
    for stretch in stretches {
        let duration = stretch.to - stretch.from;
        let share = if time > 0.0 { duration / time } else { 1.0 / left as f64 };
        let more = if left == 1 { room_left } else { ((room_left as f64 * share).round() as usize).min(room_left) };
        (stretch.column, stretch.width) = (column, least + more);
        column += stretch.width + gap;
        (room_left, time, left) = (room_left - more, time - duration, left - 1);
    }
}
