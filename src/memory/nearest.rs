//! The valid name that somebody probably meant.

/// The candidate that differs from `word` by the fewest inserted, removed, replaced or swapped letters, ignoring ASCII
/// case; `None` when even that one differs by more than half of the longer name. Of equals the first.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(edits, candidate)| edits * 2 <= word.chars().count().max(candidate.chars().count()))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Restricted Damerau-Levenshtein distance. Every row is one longer than `b`, so that no index below is out of range.
fn edits(a: &str, b: &str) -> usize {
    let letters = |s: &str| s.chars().map(|c| c.to_ascii_lowercase()).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, to) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(from != to)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_fewest_edits_is_meant() {
        let names = ["rating", "kind", "correction", "created_at", "user_id"];
        for (word, expected) in [
            ("raiting", Some("rating")),
            ("Rating", Some("rating")),
            ("kidn", Some("kind")),
            ("userid", Some("user_id")),
            ("create_at", Some("created_at")),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn a_swap_is_one_edit() {
        assert_eq!(edits("ab", "ba"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
    }
}
