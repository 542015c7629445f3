//! Numbers as people read them: counts, sizes, durations.

use super::text::{Align, SafeText};
use crate::memory::thousands;

/// A real number without rounding noise: six significant digits, or three decimals if those are more, without trailing
/// zeros. `0.7` for 0.7000000000000001; `1e300` for numbers far from 1.
pub fn real(value: f64) -> String {
    const DIGITS: i32 = 6;
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-5..1e15).contains(&size) {
        let short = format!("{value:.*e}", DIGITS as usize - 1);
        return short.parse().map_or(short, |value: f64| format!("{value:e}"));
    }
    let decimals = (DIGITS - 1 - size.log10().floor() as i32).max(3) as usize;
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A count with its thousands apart: `12,400`.
pub fn count(value: u64) -> SafeText {
    thousands(value).into()
}

/// A count right-aligned in `width` columns; a longer one takes more columns, as cutting it would change the number.
pub fn column(value: u64, width: usize) -> SafeText {
    let count = count(value);
    count.pad(width.max(count.width()), Align::Right)
}

/// A count in at most five columns: `999`, `12.4k`, `3.1M`.
pub fn short_count(value: u64) -> SafeText {
    scaled(value as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"], "").into()
}

/// A size in bytes: `812 B`, `1.4 MB` (powers of 1000).
pub fn bytes(value: u64) -> SafeText {
    scaled(value as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"], " ").into()
}

fn scaled(value: f64, base: f64, units: &[&str], between: &str) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    format!("{value:.digits$}{between}{}", units[unit])
}

/// The time that something took, in milliseconds or in seconds: `340 ms`, `7.0 s`.
pub fn took(millis: f64) -> SafeText {
    if millis < 999.5 { format!("{millis:.0} ms").into() } else { format!("{:.1} s", millis / 1000.0).into() }
}

/// A duration in seconds by its two largest units: `340ms`, `42s`, `3m 20s`, `2d 4h`, `3y 40d`.
pub fn duration(seconds: f64) -> SafeText {
    const UNITS: [(&str, u64); 5] = [("y", 31_536_000), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let sign = if seconds < 0.0 { "-" } else { "" };
    let seconds = seconds.abs();
    if !seconds.is_finite() {
        return SafeText::new("?");
    }
    if seconds < 0.9995 {
        return format!("{sign}{:.0}ms", seconds * 1000.0).into();
    }
    let whole = seconds.round() as u64;
    let largest = UNITS.iter().position(|(_, size)| whole >= *size).unwrap_or(UNITS.len() - 1);
    let (unit, size) = UNITS[largest];
    let most = format!("{sign}{}{unit}", whole / size);
    match UNITS.get(largest + 1) {
        Some((unit, smaller)) if whole % size >= *smaller => format!("{most} {}{unit}", whole % size / smaller).into(),
        _ => most.into(),
    }
}
