//! Values that SQLite makes of stored ones and keeps beside them: generated columns, and indexes on expressions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::layout::Engine;
use crate::store::dialect::quote;
use crate::store::fetched::{FetchedValue, text};
use crate::store::select::SelectStatement;
use crate::store::{ProofReader, StoreError};

/// Generated columns, each with its table.
const GENERATED: &str = "SELECT m.name, p.name FROM main.sqlite_schema m JOIN pragma_table_xinfo(m.name, 'main') p \
     WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND p.hidden IN (2, 3) ORDER BY 1, p.cid";
/// Indexes of which a part is no column, each with its table.
const ON_EXPRESSIONS: &str = "SELECT m.tbl_name, m.sql FROM main.sqlite_schema m WHERE m.type = 'index' AND m.sql IS NOT NULL \
     AND EXISTS (SELECT 1 FROM pragma_index_xinfo(m.name, 'main') x WHERE x.cid = -2) ORDER BY 1, m.name";

impl ProofReader<'_> {
    /// Hands the bytes of each value that SQLite makes of stored ones and keeps to `each`. Those that cannot be made now, as by
    /// a function that is not here, are passed over.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn made_values(self, mut each: impl FnMut(&[u8]) + Send) -> Result<(), StoreError> {
        if self.store.engine() != Engine::Sqlite {
            return Ok(());
        }
        let mut made: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in self.store.fetch_text(GENERATED).await? {
            made.entry(text(&row, 0)).or_default().push(quote(&text(&row, 1)));
        }
        for row in self.store.fetch_text(ON_EXPRESSIONS).await? {
            made.entry(text(&row, 0)).or_default().extend(terms(&text(&row, 1)));
        }
        for (table, expressions) in made {
            let sql = format!("SELECT {} FROM main.{}", expressions.join(", "), quote(&table));
            let take = |row: Vec<FetchedValue>| {
                row.iter().filter_map(FetchedValue::bytes).for_each(&mut each);
                ControlFlow::Continue(())
            };
            // What cannot be made accounts for nothing.
            let _ = self.store.scan(&SelectStatement { sql, params: Vec::new() }, take).await;
        }
        Ok(())
    }
}

/// The parts of an index, out of the statement that made it: what is between its outer parentheses, without the direction.
fn terms(sql: &str) -> Vec<String> {
    let (mut terms, mut term, mut depth, mut quoted) = (Vec::new(), String::new(), 0_usize, None);
    for c in sql.chars() {
        match (quoted, c) {
            (Some(end), _) => quoted = (c != end).then_some(end),
            (None, '\'' | '"' | '`') => quoted = Some(c),
            (None, '[') => quoted = Some(']'),
            (None, '(') => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            (None, ')') if depth == 1 => {
                terms.push(term);
                break;
            }
            (None, ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 1 => {
                terms.push(std::mem::take(&mut term));
                continue;
            }
            _ => {}
        }
        if depth > 0 {
            term.push(c);
        }
    }
    let bare = |term: String| {
        let term = term.trim();
        let small = term.to_ascii_lowercase();
        let direction = [" asc", " desc"].into_iter().find(|end| small.ends_with(end)).map_or(0, str::len);
        term[..term.len() - direction].to_owned()
    };
    terms.into_iter().map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_index_are_what_is_between_its_parentheses() {
        for (sql, wanted) in [
            ("CREATE INDEX ex ON t(lower(memory))", &["lower(memory)"][..]),
            (
                "CREATE UNIQUE INDEX \"a(b\" ON \"t)\" (json_extract(note, '$.(who'), b DESC, [c,d] collate nocase ASC) WHERE a > (1)",
                &["json_extract(note, '$.(who')", "b", "[c,d] collate nocase"],
            ),
        ] {
            assert_eq!(terms(sql), wanted, "{sql}");
        }
    }
}
