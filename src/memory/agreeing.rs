//! Sentences that agree with a number.

/// A sentence about a number: `{#}` is the number, `{of one|of several}` the form that agrees with it; anything else in
/// braces stays.
#[must_use]
pub fn agreeing<N: Copy + PartialEq + From<u8> + ToString>(number: N, sentence: &str) -> String {
    let is_one = number == N::from(1);
    let mut out = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        out += before;
        rest = match after.split_once('}') {
            Some(("#", after)) => {
                out += &number.to_string();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_decides_and_other_braces_stay() {
        let rows = "{row of {t} is|rows are} there";
        assert_eq!(agreeing(1, "{#} {value is|values are} in {t}: {a|b}"), "1 value is in {t}: a");
        assert_eq!(agreeing(0_u64, "0 {value is|values are} in {t} {"), "0 values are in {t} {");
        assert_eq!(agreeing(2_usize, rows), rows);
    }
}
