//! Sentences that agree with a number.

/// Formats a number with thousands separators: `12,400`.
pub fn thousands(number: impl Copy + ToString) -> String {
    let written = number.to_string();
    let (sign, digits) = written.split_at(written.len() - written.trim_start_matches('-').len());
    let mut text = String::with_capacity(written.len() * 4 / 3);
    text += sign;
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a sentence about a number: `{#}` is the number with thousands separators, `{singular|plural}` the form that
/// agrees with it. Other braces are unchanged.
pub fn agreeing<N: Copy + PartialEq + From<u8> + ToString>(number: N, sentence: &str) -> String {
    let is_one = number == N::from(1);
    let mut out = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        out += before;
        rest = match after.split_once('}') {
            Some(("#", after)) => {
                out += &thousands(number);
                after
            }
            Some((forms, rest)) if forms.contains('|') => {
                let (one, several) = forms.split_once('|').unwrap_or((forms, forms));
                out += if is_one { one } else { several };
                rest
            }
            _ => {
                out.push('{');
                after
            }
        };
    }
    out + rest
}

/// The sentence about a number, as [`agreeing`]; `None` for 0, where there is nothing to tell.
pub fn counted<N: Copy + PartialEq + From<u8> + ToString>(number: N, sentence: &str) -> Option<String> {
    (number != N::from(0)).then(|| agreeing(number, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_decides_and_other_braces_stay() {
        let rows = "{row of {t} is|rows are} there";
        assert_eq!(agreeing(1, "{#} {value is|values are} in {t}: {a|b}"), "1 value is in {t}: a");
        assert_eq!(agreeing(0_u64, "0 {value is|values are} in {t} {"), "0 values are in {t} {");
        assert_eq!(agreeing(2_usize, rows), rows);
        assert_eq!(agreeing(19_514_u64, "{#} {row|rows}"), "19,514 rows");
        assert_eq!([thousands(-1_000), thousands(-12), thousands(999)], ["-1,000", "-12", "999"]);
    }
}
