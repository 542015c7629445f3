//! Times: converts all stored spellings to one that sorts as text; ages; parts of the day.

use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

/// Unit of a time that is stored as a whole number since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochUnit {
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
}

/// Converts any stored spelling to `2026-02-04T10:00:00.000000Z`.
///
/// Accepts a date alone (midnight), or a date and a time separated by `T` or a space, without seconds, with whole
/// seconds or any fraction (truncated to microseconds), followed by nothing (UTC), `Z`, `UTC`, `+02`, `+0200`, `+02:00`
/// or `+02:00:00`. Years are 0001 to 9999, so that texts sort like times. Impossible dates are `None`.
pub fn canonical(text: &str) -> Option<String> {
    let time = parse(text)?;
    // If it parses and has this form, it is already canonical, as most stored times are; formatting it again takes
    // longer.
    let bytes = text.as_bytes();
    let is_canonical = bytes.len() == SPELLED && bytes[10] == b'T' && bytes[19] == b'.' && bytes[SPELLED - 1] == b'Z';
    if is_canonical && time.date().year() > 0 { Some(text.to_owned()) } else { spell(time) }
}

/// Bytes of a canonical spelling.
const SPELLED: usize = "2026-02-04T10:00:00.000000Z".len();

/// The canonical spelling of an integer since 1970.
pub fn from_epoch(count: i64, unit: EpochUnit) -> Option<String> {
    let factor = match unit {
        EpochUnit::Seconds => 1_000_000,
        EpochUnit::Milliseconds => 1_000,
        EpochUnit::Microseconds => 1,
    };
    spell(DateTime::from_timestamp_micros(count.checked_mul(factor)?)?.naive_utc())
}

/// The canonical spelling of fractional seconds since 1970, rounded to the nearest microsecond: a double stores today's
/// seconds to about 0.2 microseconds, so truncation would often lose a whole one.
pub fn from_epoch_real(seconds: f64) -> Option<String> {
    let micros = (seconds * 1e6).round();
    if micros.abs() < 1e18 { from_epoch(micros as i64, EpochUnit::Microseconds) } else { None }
}

/// Microseconds since 1970 for any spelling that [`canonical`] accepts.
pub fn epoch_micros(text: &str) -> Option<i64> {
    Some(parse(text)?.and_utc().timestamp_micros())
}

/// The start of 1970, and the second before it: how a count of 0 or -1 reads.
const COUNT_OF_NONE: [&str; 2] = ["1970-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.000000Z"];

/// Returns a canonical time unless it stands for "none" or "never": the first day of year 1, the last day of year 9999,
/// or a count of 0 or -1 since 1970. Such a time says nothing about the age of a row.
pub fn known(text: &str) -> Option<&str> {
    let is_extreme = text.starts_with("0001-01-01T") || text.starts_with("9999-12-31T");
    (!is_extreme && !COUNT_OF_NONE.contains(&text)).then_some(text)
}

/// Parses a time as people write it: any spelling that [`canonical`] accepts, or an age before `now` in whole weeks,
/// days, hours, minutes or seconds: `2w`, `30d`, `12h`, `15m`, `45s`.
pub fn parse_moment(text: &str, now: DateTime<Utc>) -> Option<String> {
    match parse_age(text) {
        Some(age) => spell(now.checked_sub_signed(age)?.naive_utc()),
        None => canonical(text),
    }
}

/// Parses an age as in [`parse_moment`].
pub fn parse_age(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().ok()?;
    match unit {
        's' => Duration::try_seconds(count),
        'm' => Duration::try_minutes(count),
        'h' => Duration::try_hours(count),
        'd' => Duration::try_days(count),
        'w' => Duration::try_weeks(count),
        _ => None,
    }
}

/// Seconds from `a` to `b`, negative if `b` is earlier; exact to a microsecond.
pub fn seconds_between(a: &str, b: &str) -> Option<f64> {
    Some((epoch_micros(b)? - epoch_micros(a)?) as f64 / 1e6)
}

/// Whether two times are a second or more apart; false if one is no time.
pub fn are_apart(a: &str, b: &str) -> bool {
    seconds_between(a, b).is_some_and(|seconds| seconds.abs() >= 1.0)
}

/// Part of the day and day of the week, in UTC: `morning` from 5, `afternoon` from 12, `evening` from 17, `night` from
/// 22 o'clock; `Monday` to `Sunday`.
pub fn day_part(text: &str) -> Option<(&'static str, &'static str)> {
    let moment = parse(text)?;
    let part = match moment.hour() {
        5..12 => "morning",
        12..17 => "afternoon",
        17..22 => "evening",
        _ => "night",
    };
    let day = match moment.weekday() {
        chrono::Weekday::Mon => "Monday",
        chrono::Weekday::Tue => "Tuesday",
        chrono::Weekday::Wed => "Wednesday",
        chrono::Weekday::Thu => "Thursday",
        chrono::Weekday::Fri => "Friday",
        chrono::Weekday::Sat => "Saturday",
        chrono::Weekday::Sun => "Sunday",
    };
    Some((part, day))
}

/// The canonical spelling of a moment in UTC.
pub fn spell_utc(moment: DateTime<Utc>) -> Option<String> {
    spell(moment.naive_utc())
}

fn spell(moment: NaiveDateTime) -> Option<String> {
    let (date, time) = (moment.date(), moment.time());
    let micros = time.nanosecond() / 1_000;
    (1..=9999).contains(&date.year()).then(|| {
        let (year, month, day) = (date.year(), date.month(), date.day());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    })
}

fn parse(text: &str) -> Option<NaiveDateTime> {
    let mut scanner = TimeScanner { rest: text.trim().as_bytes() };
    let year = scanner.number(4)?;
    scanner.expect(b"-")?;
    let month = scanner.number(2)?;
    scanner.expect(b"-")?;
    let day = scanner.number(2)?;
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    if scanner.rest.is_empty() {
        return Some(date.and_time(NaiveTime::MIN));
    }
    scanner.expect(b"T").or_else(|| scanner.expect(b"t")).or_else(|| scanner.expect(b" "))?;
    let hour = scanner.number(2)?;
    scanner.expect(b":")?;
    let minute = scanner.number(2)?;
    let second = if scanner.expect(b":").is_some() { scanner.number(2)? } else { 0 };
    let micros = if scanner.expect(b".").or_else(|| scanner.expect(b",")).is_some() { scanner.fraction()? } else { 0 };
    let offset = scanner.offset()?;
    date.and_time(NaiveTime::from_hms_micro_opt(hour, minute, second, micros)?).checked_sub_signed(offset)
}

struct TimeScanner<'a> {
    rest: &'a [u8],
}

impl TimeScanner<'_> {
    fn expect(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        number.iter().all(u8::is_ascii_digit).then(|| to_number(number))
    }

    /// Digits after the point as microseconds, truncated.
    fn fraction(&mut self) -> Option<u32> {
        let length = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let kept = digits.get(..6).unwrap_or(digits);
        (length > 0).then(|| to_number(kept) * 10_u32.pow(6 - kept.len() as u32))
    }

    /// Parses the offset after the time, to be subtracted for UTC.
    fn offset(&mut self) -> Option<Duration> {
        let _space = self.expect(b" ");
        if matches!(self.rest, b"" | b"Z" | b"z" | b"UTC") {
            return Some(Duration::zero());
        }
        let sign = if self.expect(b"+").is_some() { 1 } else { self.expect(b"-").map(|()| -1)? };
        let hours = self.number(2).filter(|h| *h < 24)?;
        let minutes = self.offset_part()?;
        let seconds = self.offset_part()?;
        let total = i64::from(hours * 3600 + minutes * 60 + seconds);
        self.rest.is_empty().then(|| Duration::seconds(sign * total))
    }

    fn offset_part(&mut self) -> Option<u32> {
        if self.rest.is_empty() {
            return Some(0);
        }
        let _colon = self.expect(b":");
        self.number(2).filter(|n| *n < 60)
    }
}

fn to_number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_becomes_one() {
        for (stored, expected) in [
            ("2026-02-04", "2026-02-04T00:00:00.000000Z"),
            ("2026-02-04 10:00", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04 10:00:00", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04T10:00:00", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04T10:00:00Z", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04t10:00:00z", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04 10:00:00 UTC", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04 10:00:00.5", "2026-02-04T10:00:00.500000Z"),
            ("2026-02-04 10:00:00,123", "2026-02-04T10:00:00.123000Z"),
            ("2026-02-04T10:00:00.123456789Z", "2026-02-04T10:00:00.123456Z"),
            ("2026-02-04T10:00:00.999999999+00:00", "2026-02-04T10:00:00.999999Z"),
            ("2026-02-04 10:00:00+00", "2026-02-04T10:00:00.000000Z"),
            ("2026-02-04 10:00:00+0200", "2026-02-04T08:00:00.000000Z"),
            ("2026-02-04T01:00:00.25+05:30", "2026-02-03T19:30:00.250000Z"),
            ("2026-02-04 22:00:00 -0800", "2026-02-05T06:00:00.000000Z"),
            ("1890-01-01 00:00:00+00:53:28", "1889-12-31T23:06:32.000000Z"),
            (" 2026-02-04 10:00:00 ", "2026-02-04T10:00:00.000000Z"),
            ("2024-02-29", "2024-02-29T00:00:00.000000Z"),
        ] {
            assert_eq!(canonical(stored).as_deref(), Some(expected), "{stored}");
        }
    }

    #[test]
    fn times_that_stand_for_none_say_nothing() {
        for text in ["0001-01-01", "0001-01-01T05:00:00", "1970-01-01T01:00:00+01:00", "9999-12-31T23:59:59.999999Z"] {
            assert_eq!(known(&canonical(text).expect("a time")), None, "{text}");
        }
        for text in ["0001-01-02", "1970-01-01T00:00:00.000001Z", "1970-01-02", "2026-02-04", "9999-12-30"] {
            assert!(known(&canonical(text).expect("a time")).is_some(), "{text}");
        }
    }

    #[test]
    fn impossible_times_are_none() {
        for text in [
            "", "now", "infinity", "2026", "2026-02", "2026-02-30", "2025-02-29", "2026-13-01", "2026-02-04T",
            "2026-2-4", "2026-02-04 24:00:00", "2026-02-04 10:60", "2026-02-04 10:00:00.", "2026-02-04 10:00:00+",
            "2026-02-04x", "2026-02-04 10:00:00+2", "2026-02-04 10:00:00+24:00", "2026-02-04 10:00:00Zx", "0000-01-01",
            "10000-01-01", "0001-01-01T00:00:00+01:00", "2026-02-04 10:00:00 BC", "２０２６-02-04",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn epochs_become_the_same_spelling() {
        let expected = Some("2026-02-04T10:00:00.000000Z".to_owned());
        assert_eq!(from_epoch(1_770_199_200, EpochUnit::Seconds), expected);
        assert_eq!(from_epoch(1_770_199_200_000, EpochUnit::Milliseconds), expected);
        assert_eq!(from_epoch(1_770_199_200_000_000, EpochUnit::Microseconds), expected);
        assert_eq!(from_epoch_real(1_770_199_200.0), expected);
        assert_eq!(from_epoch_real(1_770_199_200.123_456).as_deref(), Some("2026-02-04T10:00:00.123456Z"));
        assert_eq!(from_epoch(-1, EpochUnit::Microseconds).as_deref(), Some("1969-12-31T23:59:59.999999Z"));
        for none in [from_epoch(i64::MAX, EpochUnit::Seconds), from_epoch_real(f64::NAN), from_epoch_real(1e300)] {
            assert_eq!(none, None);
        }
    }

    #[test]
    fn a_moment_is_a_time_or_an_age() {
        let now = parse("2026-02-04T10:00:00.000001Z").unwrap().and_utc();
        for (text, expected) in [
            ("45s", "2026-02-04T09:59:15.000001Z"),
            ("15m", "2026-02-04T09:45:00.000001Z"),
            ("12h", "2026-02-03T22:00:00.000001Z"),
            ("30d", "2026-01-05T10:00:00.000001Z"),
            ("2w", "2026-01-21T10:00:00.000001Z"),
            ("0d", "2026-02-04T10:00:00.000001Z"),
            ("2026-01-01", "2026-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(parse_moment(text, now).as_deref(), Some(expected), "{text}");
        }
        for text in ["d", "-3d", "3y", "3", "1.5h", "99999999999999999999d", "9999999w", "3é", ""] {
            assert_eq!(parse_moment(text, now), None, "{text}");
        }
    }

    #[test]
    fn days_have_parts_and_names() {
        for (time, expected) in [
            ("2026-02-04T04:59:59Z", ("night", "Wednesday")),
            ("2026-02-04T05:00:00Z", ("morning", "Wednesday")),
            ("2026-02-07 12:00", ("afternoon", "Saturday")),
            ("2026-02-08 17:00", ("evening", "Sunday")),
            ("2026-02-08 22:00", ("night", "Sunday")),
        ] {
            assert_eq!(day_part(time), Some(expected), "{time}");
        }
        assert_eq!(day_part("soon"), None);
    }

    #[test]
    fn seconds_between_times_are_signed() {
        assert_eq!(seconds_between("2026-02-04 10:00", "2026-02-04T10:01:00.5Z"), Some(60.5));
        assert_eq!(seconds_between("2026-02-04", "2026-02-03"), Some(-86400.0));
        assert_eq!(seconds_between("2026-02-04", "?"), None);
    }

    proptest! {
        #[test]
        fn canonical_text_orders_as_time_does(a in -62_000_000_000_000_000_i64..253_000_000_000_000_000,
                                              b in -62_000_000_000_000_000_i64..253_000_000_000_000_000) {
            let text = |micros| from_epoch(micros, EpochUnit::Microseconds).unwrap();
            prop_assert_eq!(text(a).cmp(&text(b)), a.cmp(&b));
            prop_assert_eq!(epoch_micros(&text(a)), Some(a));
            prop_assert_eq!(canonical(&text(a)), Some(text(a)));
        }

        #[test]
        fn any_text_is_survived(text in "[0-9TtZz: .,+\\-]{0,32}|\\PC*") {
            if let Some(time) = canonical(&text) {
                prop_assert_eq!(canonical(&time), Some(time.clone()));
            }
        }
    }
}
