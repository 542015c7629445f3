//! Rows in an FTS4 index of SQLite, read from its segments: an index without row sizes has no other list of them.

use std::collections::BTreeSet;

/// Adds the row numbers in a segment node. `None` if it cannot be read; an interior node contains none. In a descending
/// index the numbers fall.
pub fn add_rows(node: &[u8], falling: bool, rows: &mut BTreeSet<i64>) -> Option<()> {
    let mut node = Reading(node);
    if node.number()? != 0 {
        return Some(());
    }
    let length = node.number()?;
    node.take(length)?;
    loop {
        let length = node.number()?;
        add_listed(Reading(node.take(length)?), falling, rows)?;
        if node.0.is_empty() {
            return Some(());
        }
        // The next term is stored without the prefix that it shares with the one before.
        node.number()?;
        let length = node.number()?;
        node.take(length)?;
    }
}

/// Adds the rows that contain a term. A row without positions was removed.
fn add_listed(mut list: Reading<'_>, falling: bool, rows: &mut BTreeSet<i64>) -> Option<()> {
    let mut row: Option<i64> = None;
    while !list.0.is_empty() {
        let step = list.number()? as i64;
        let next = match row {
            Some(last) if falling => last.wrapping_sub(step),
            Some(last) => last.wrapping_add(step),
            None => step,
        };
        row = Some(next);
        let mut stands = false;
        loop {
            match list.number()? {
                0 => break,
                // Another column; its number follows.
                1 => {
                    list.number()?;
                }
                _ => stands = true,
            }
        }
        if stands {
            rows.insert(next);
        }
    }
    Some(())
}

/// Bytes still to be read.
struct Reading<'b>(&'b [u8]);

impl<'b> Reading<'b> {
    /// A varint: seven bits per byte, lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_names_the_rows_of_all_its_terms_and_none_that_was_taken_out() {
        // `ab` in rows 3 and 303, in two columns of the second; `ac` in row 5, and removed from row 6.
        let first = [3, 2, 0, 0xac, 0x02, 3, 1, 1, 2, 0];
        let second = [5, 2, 0, 1, 0];
        let mut leaf = vec![0, 2, b'a', b'b', first.len() as u8];
        leaf.extend(first);
        leaf.extend([1, 1, b'c', second.len() as u8]);
        leaf.extend(second);
        let rows = |node: &[u8], falling| {
            let mut rows = BTreeSet::new();
            add_rows(node, falling, &mut rows).map(|()| rows.into_iter().collect::<Vec<i64>>())
        };
        assert_eq!(rows(&leaf, false), Some(vec![3, 5, 303]));
        assert_eq!(rows(&leaf, true), Some(vec![-297, 3, 5]));
        assert_eq!(rows(&[1, 7, 1, b'x'], false), Some(Vec::new()));
        assert_eq!(rows(&leaf[..leaf.len() - 1], false), None);
    }
}
