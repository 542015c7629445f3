//! Sentences that agree with a number.

/// A sentence in which `{of one|of several}` stands for either, as the number decides; anything else in braces stays.
#[must_use]
pub fn agreeing<N: Copy + PartialEq + From<u8>>(number: N, sentence: &str) -> String {
    let is_one = number == N::from(1);
    let mut said = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        said += before;
        let forms = after.split_once('}').and_then(|(forms, after)| Some((forms.split_once('|')?, after)));
        let Some(((one, several), after)) = forms else {
            said.push('{');
            rest = after;
            continue;
        };
        said += if is_one { one } else { several };
        rest = after;
    }
    said + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_decides_and_other_braces_stay() {
        let rows = "{row of {t} is|rows are} there";
        assert_eq!(agreeing(1, "1 {value is|values are} in {t}: {a|b}"), "1 value is in {t}: a");
        assert_eq!(agreeing(0_u64, "0 {value is|values are} in {t} {"), "0 values are in {t} {");
        assert_eq!(agreeing(2_usize, rows), rows);
    }
}
