//! Values as people read them: times, numbers, states.

use std::cell::RefCell;

use chrono::{DateTime, Datelike as _, Utc};
use serde_json::Value;

use crate::console::core::zone::ShownZone;
use crate::memory::query::CountKind;
use crate::memory::{Row, time};
use crate::ui::{Look, SafeText, StyleRole, TextLine, figures};

/// The time zone, and the moment of drawing.
#[derive(Default)]
struct Clock {
    zone: ShownZone,
    now: DateTime<Utc>,
}

thread_local! {
    static CLOCK: RefCell<Clock> = RefCell::new(Clock::default());
}

/// Draws with times in a zone, as they are read at a moment.
pub fn in_zone<R>(zone: &ShownZone, now: DateTime<Utc>, draw: impl FnOnce() -> R) -> R {
    struct Restored(Clock);
    impl Drop for Restored {
        fn drop(&mut self) {
            CLOCK.set(std::mem::take(&mut self.0));
        }
    }
    let _restored = Restored(CLOCK.replace(Clock { zone: zone.clone(), now }));
    draw()
}

/// A canonical time by the zone's clock, `2026-02-04T10:00:00`; `None` if it is not a time.
fn local(text: &str) -> Option<String> {
    let micros = time::epoch_micros(text)?;
    let at = DateTime::from_timestamp_micros(micros)?;
    let offset = CLOCK.with_borrow(|clock| clock.zone.offset(at.timestamp()));
    Some(at.with_timezone(&offset).format("%Y-%m-%dT%H:%M:%S").to_string())
}

/// `2026-02-04 10:00` of a canonical time; `seconds` adds them.
pub fn time(text: &str, seconds: bool) -> SafeText {
    let end = if seconds { 19 } else { 16 };
    let local = local(text);
    let shown = local.as_deref().unwrap_or(text);
    match (shown.get(..10), shown.get(11..end)) {
        (Some(day), Some(clock)) if shown.as_bytes().get(10) == Some(&b'T') => format!("{day} {clock}").into(),
        _ => SafeText::limited(text, 32),
    }
}

/// A moment named in a text: `2026-02-04 10:00`, with seconds unless they are zero.
pub fn moment(text: &str) -> SafeText {
    time(text, text.get(17..19).is_some_and(|seconds| seconds != "00"))
}

/// A sentence with its canonical times as [`moment`] spells them.
pub fn with_moments(text: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = next_moment(rest) {
        let (canonical, after) = rest[at..].split_at(CANONICAL.len());
        told.push_str(&rest[..at]);
        told.push_str(moment(canonical).as_str());
        rest = after;
    }
    told + rest
}

/// The shape of a canonical time: each zero is any digit.
const CANONICAL: &str = "0000-00-00T00:00:00.000000Z";

/// Returns the place of the first canonical time in a text.
fn next_moment(text: &str) -> Option<usize> {
    let fits = |(shape, byte): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { shape == byte };
    let is_canonical = |part: &str| CANONICAL.bytes().zip(part.bytes()).all(fits);
    let mut starts = text.match_indices('T').filter_map(|(at, _)| at.checked_sub(10));
    starts.find(|at| text.get(*at..at + CANONICAL.len()).is_some_and(is_canonical))
}

/// `02-04 10:00` of a canonical time; of another year than this one the day, `2025-02-04`.
pub fn short_time(text: &str) -> SafeText {
    let shown = local(text).unwrap_or_else(|| text.to_owned());
    match (short_day(&shown), shown.get(11..16)) {
        (Some(day), Some(clock)) if day.len() == 5 => format!("{day} {clock}").into(),
        (Some(day), _) if day.len() == 10 => day.into(),
        _ => SafeText::limited(text, 11),
    }
}

/// `02-04` of a local time; of another year than this one `2025-02-04`.
fn short_day(local: &str) -> Option<&str> {
    let year = CLOCK.with_borrow(|clock| clock.now.with_timezone(&clock.zone.offset(clock.now.timestamp())).year());
    let is_this_year = local.get(..4)?.parse().map_or(true, |of: i32| of == year);
    local.get(if is_this_year { 5 } else { 0 }..10)
}

/// Formats the age of a canonical time: `now`, `5m`, `3h`, `12d`; the day if it is longer ago or in the future.
pub fn age(text: &str, now: DateTime<Utc>) -> SafeText {
    const MINUTE: i64 = 60;
    const DAY: i64 = 86_400;
    let Some(at) = time::epoch_micros(text) else { return SafeText::limited(text, 10) };
    match (now.timestamp_micros() - at).div_euclid(1_000_000) {
        // The clocks of others may be ahead.
        seconds if (-5 * MINUTE..MINUTE).contains(&seconds) => "now".into(),
        seconds if (0..3_600).contains(&seconds) => format!("{}m", seconds / MINUTE).into(),
        seconds if (0..DAY).contains(&seconds) => format!("{}h", seconds / 3_600).into(),
        seconds if (0..31 * DAY).contains(&seconds) => format!("{}d", seconds / DAY).into(),
        _ => {
            let shown = local(text).unwrap_or_else(|| text.to_owned());
            SafeText::limited(short_day(&shown).unwrap_or(text), 10)
        }
    }
}

/// A name within the room. If it must be cut, the words shared with the name before it are removed first.
pub fn told_apart(name: &str, before: Option<&str>, room: usize, look: &Look) -> SafeText {
    const LONGEST: usize = 200;
    let whole = SafeText::limited(name, LONGEST);
    if whole.width() <= room {
        return whole;
    }
    let alike = before.unwrap_or_default().chars().zip(name.chars()).take_while(|(a, b)| a == b);
    let shared = &name[..alike.map(|(_, c)| c.len_utf8()).sum()];
    let rest = &name[shared.len()..];
    let is_within = rest.starts_with(char::is_alphanumeric) && shared.ends_with(char::is_alphanumeric);
    let cut = if is_within { shared.rfind(char::is_whitespace).unwrap_or(0) } else { shared.len() };
    let rest = name[cut..].trim_start_matches(|c: char| !c.is_alphanumeric());
    if cut == 0 || rest.is_empty() {
        return look.fit(&whole, room);
    }
    let words = SafeText::join(&[SafeText::glyphs(look.glyphs.ellipsis, 1), SafeText::limited(rest, LONGEST)], " ");
    look.fit(&words, room)
}

/// Returns the style role of a state: the word carries the meaning, the glyph and the colour only help.
pub fn state_role(word: &str) -> StyleRole {
    match word {
        "success" | "active" | "confirmed" | "thumbs_up" | "submit" | "submitted" | "completed" | "approved" => {
            StyleRole::Good
        }
        "failure" | "failed" | "rejected" | "undone" | "thumbs_down" | "error" | "abandoned" => StyleRole::Bad,
        "partial" | "corrected" | "correction" | "aborted" | "training" | "paused" | "update" => StyleRole::Warn,
        "ongoing" | "running" | "present" | "rating" | "summarized" | "execute" => StyleRole::Info,
        _ => StyleRole::Muted,
    }
}

/// A state: its sign and its word.
pub fn state(word: &str, look: &Look) -> TextLine {
    let g = look.glyphs;
    let role = state_role(word);
    let sign = match role {
        StyleRole::Good => g.check,
        StyleRole::Bad => g.cross,
        StyleRole::Warn => g.half,
        StyleRole::Info => g.ring,
        _ => g.separator,
    };
    TextLine::default().with_glyph(sign, role).with(" ", StyleRole::Text).with(SafeText::limited(word, 40), role)
}

/// Feedback in a few columns: its kind, and the value of a rating.
pub fn feedback(row: &Row, look: &Look) -> TextLine {
    let kind = row.text("kind").unwrap_or("no kind");
    let line = state(kind, look);
    match row.get("rating").as_i64().filter(|_| kind == "rating") {
        Some(rating) => line.with(format!(" {rating}"), state_role(kind)),
        None => line,
    }
}

/// A number: integers with thousands separators, others with two decimals.
pub fn number(value: &Value) -> Option<SafeText> {
    if let Some(whole) = value.as_i64() {
        let digits = figures::count(whole.unsigned_abs());
        return Some(if whole < 0 { SafeText::join(&["-".into(), digits], "") } else { digits });
    }
    value.as_f64().map(|x| format!("{x:.2}").into())
}

/// A number beside its name: integers with thousands separators, others as in [`figures::real`].
pub fn amount(value: &Value) -> SafeText {
    let whole = || number(value).unwrap_or_default();
    value.as_f64().filter(|_| value.is_f64()).map_or_else(whole, |real| figures::real(real).into())
}

/// A score in -1..1, with its sign.
pub fn score(value: f64) -> TextLine {
    let role = if value > 0.0 {
        StyleRole::Good
    } else if value < 0.0 {
        StyleRole::Bad
    } else {
        StyleRole::Muted
    };
    TextLine::of(format!("{value:+.2}"), role)
}

/// A count with its precision: `about 1,000,000`.
pub fn count(count: u64, kind: CountKind) -> SafeText {
    match kind {
        CountKind::Exact => figures::count(count),
        CountKind::About => SafeText::join(&["about ".into(), figures::count(count)], ""),
    }
}

/// A value on one line in readable form, cut to the width: `name: value, name: value`.
pub fn one_line(value: &Value, width: usize) -> SafeText {
    match value {
        Value::Null => SafeText::default(),
        Value::String(text) => SafeText::limited(text, width),
        other => SafeText::limited(&spoken(other, width), width),
    }
}

/// JSON on one line, unchanged but cut to the width.
pub fn as_stored(value: &Value, width: usize) -> SafeText {
    match value {
        Value::Array(_) | Value::Object(_) => SafeText::limited(&value.to_string(), width),
        _ => one_line(value, width),
    }
}

/// Lists and objects without their quotes and brackets, as far as `width` columns may show them.
fn spoken(value: &Value, width: usize) -> String {
    let nested = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => format!("({})", spoken(value, width)),
        plain => spoken(plain, width),
    };
    // Each item takes at least one column.
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().take(width).map(nested).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name}: {}", nested(value));
            fields.iter().take(width).map(field).collect::<Vec<_>>().join(", ")
        }
        Value::Number(number) if !(number.is_i64() || number.is_u64()) => {
            figures::real(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_tells_the_year_where_it_is_another_one() {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:30:00Z").unwrap().to_utc();
        let shown = |offset: i32, text: &str| {
            in_zone(&ShownZone::new(vec![(0, offset)]), now, || short_time(text).as_str().to_owned())
        };
        assert_eq!(shown(0, "2026-01-01T00:10:00.000000Z"), "01-01 00:10");
        assert_eq!(shown(0, "2025-12-31T23:50:00.000000Z"), "2025-12-31");
        // By the clock of New York it is still 2025.
        assert_eq!(shown(-18_000, "2025-12-31T23:50:00.000000Z"), "12-31 18:50");
        assert_eq!(shown(-18_000, "2026-01-01T06:00:00.000000Z"), "2026-01-01");
    }

    #[test]
    fn a_sentence_tells_its_times_by_the_clock_of_the_zone() {
        let zone = ShownZone::new(vec![(0, -18_000)]);
        let told = |text: &str| in_zone(&zone, DateTime::default(), || with_moments(text));
        assert_eq!(
            told("from 2026-02-04T10:00:00.000000Z to 2026-02-04T03:00:07.123456Z…"),
            "from 2026-02-04 05:00 to 2026-02-03 22:00:07…"
        );
        for same in ["", "T", "2026-02-04T10:00:00Z", "ÄÄÄÄÄÄT00:00", "2026-02-04T10:00:00.00000"] {
            assert_eq!(told(same), same);
        }
    }
}
