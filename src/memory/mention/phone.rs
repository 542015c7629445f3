//! Finds a telephone number in any notation: with and without the country code, with blanks, dashes, dots, slashes and
//! brackets between its digits.

/// Fewest and most digits of a number.
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
/// Fewest digits of a number without country code.
const NATIONAL: usize = 9;
/// Most marks between two digits.
const MARKS: usize = 3;

/// A telephone number prepared for a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    /// The digit sequences of the number, longest first.
    rows: Vec<Vec<u8>>,
}

impl Phone {
    /// Digits of the shortest sequence that counts.
    pub const SHORTEST: usize = *DIGITS.start();

    /// Parses a number; `None` if the text is not one.
    pub fn new(text: &str) -> Option<Self> {
        let written = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ' ' | '(' | ')' | '.' | '/');
        let mut digits: String = text.chars().filter(char::is_ascii_digit).collect();
        if !text.chars().all(written) || !DIGITS.contains(&digits.len()) {
            return None;
        }
        let mut rows = vec![digits.clone()];
        let abroad = text.trim_start().starts_with('+') || digits.starts_with("00");
        if let Some(rest) = digits.strip_prefix("00") {
            digits = rest.to_owned();
            rows.push(digits.clone());
        }
        if abroad {
            rows.push(format!("00{digits}"));
            // The length of the country code is unknown: one to three digits.
            for code in 1..=3 {
                let (code, rest) = digits.split_at(code.min(digits.len()));
                if rest.len() >= NATIONAL {
                    rows.extend([
                        rest.to_owned(),
                        format!("0{rest}"),
                        format!("{code}0{rest}"),
                        format!("00{code}0{rest}"),
                    ]);
                }
            }
        } else if let Some(rest) = digits.strip_prefix('0').filter(|rest| rest.len() >= NATIONAL) {
            rows.push(rest.to_owned());
        }
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.len()));
        rows.dedup();
        Some(Phone { rows: rows.into_iter().map(String::into_bytes).collect() })
    }

    /// The digit sequences; marks may be between the digits.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Finds the number in a folded text: start, end (exclusive), and whether a letter or `_` is adjacent.
    pub fn find(&self, text: &str) -> Vec<(usize, usize, bool)> {
        let text = text.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = text.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
            at += next;
            // Digits on either side make another number, as does a continuation after a dot.
            match self.rows.iter().find_map(|row| ends(text, at, row)) {
                Some(end) => {
                    let marks = text[..at].iter().rev().take(2).take_while(|b| matches!(b, b'+' | b'(')).count();
                    let joined = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
                    let before = (at - marks).checked_sub(1).and_then(|i| text.get(i));
                    if !is_fraction(&text[..at], &text[at..end]) {
                        found.push((at - marks, end, joined(before) || joined(text.get(end))));
                    }
                    at = end;
                }
                None => at += text[at..].iter().take_while(|b| b.is_ascii_digit()).count(),
            }
        }
        found
    }
}

/// Finds the end of a digit sequence that begins at a place; `None` if there is another text.
fn ends(text: &[u8], start: usize, row: &[u8]) -> Option<usize> {
    let mut at = start;
    for (i, digit) in row.iter().enumerate() {
        let marks = text.get(at..)?.iter().take(MARKS + 1).take_while(|b| i > 0 && is_mark(**b)).count();
        at += marks;
        if marks > MARKS || text.get(at) != Some(digit) {
            return None;
        }
        at += 1;
    }
    let next = text.get(at).copied();
    let fraction = next == Some(b'.') && text.get(at + 1).is_some_and(u8::is_ascii_digit);
    (!next.is_some_and(|b| b.is_ascii_digit()) && !fraction).then_some(at)
}

/// Whether digits are those after a decimal point.
fn is_fraction(before: &[u8], digits: &[u8]) -> bool {
    matches!(before, [.., b'0'..=b'9', b'.']) && digits.iter().all(u8::is_ascii_digit)
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/' | b'(' | b')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_however_it_is_written_and_no_other_one_is() {
        for (number, text, found) in [
            ("+1-555-906-6204", "+15559066204 (555) 906-6204 555.906.6204 001 555 906 6204", 4),
            ("+1-555-906-6204", "15559066205 155590662041 5559066204.5", 0),
            ("+49 30 9155101", "+49 (0)30 9155101, 030/915 51 01", 2),
            ("555-9876543", "5559876543", 1),
            ("0049 30 9155101", "+49309155101", 1),
        ] {
            assert_eq!(Phone::new(number).unwrap().find(text).len(), found, "{number} in {text}");
        }
        assert_eq!(Phone::new("12345"), None);
        assert_eq!(Phone::new("usr_1234567"), None);
        assert_eq!(Phone::new("+1-555-906-6204").unwrap().find("a (+1) 555-906-6204"), [(2, 19, false)]);
        assert_eq!(Phone::new("+1-555-906-6204").unwrap().find("tel_15559066204"), [(4, 15, true)]);
    }
}
