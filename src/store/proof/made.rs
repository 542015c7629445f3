//! Values that SQLite computes from stored ones and stores next to them: generated columns, and indexes on expressions.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use crate::layout::Engine;
use crate::store::dialect::quote;
use crate::store::fetched::{FetchedValue, text};
use crate::store::select::SelectStatement;
use crate::store::{ProofReader, StoreError};

/// Generated columns, each with its table.
const GENERATED: &str = "SELECT m.name, p.name FROM main.sqlite_schema m JOIN pragma_table_xinfo(m.name, 'main') p \
     WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND p.hidden IN (2, 3) ORDER BY 1, p.cid";
/// Indexes with parts that are not columns, each with its table and the indexes of such parts.
const ON_EXPRESSIONS: &str = "SELECT m.tbl_name, m.sql, group_concat(x.seqno) FROM main.sqlite_schema m \
     JOIN pragma_index_xinfo(m.name, 'main') x WHERE m.type = 'index' AND m.sql IS NOT NULL AND x.cid = -2 \
     GROUP BY m.tbl_name, m.name, m.sql ORDER BY 1, m.name";

/// A value that SQLite computes from stored ones.
#[derive(Debug, Clone, Copy)]
pub struct MadeValue<'v> {
    /// Name of the table.
    pub table: &'v str,
    /// Whether it comes from an expression, and is stored only in an index.
    pub is_indexed: bool,
    /// The value.
    pub value: &'v FetchedValue,
}

impl ProofReader<'_> {
    /// Passes each stored value that SQLite computed to `each`. Skips those that cannot be computed now, for example
    /// because a function is missing.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn made_values(self, mut each: impl FnMut(MadeValue<'_>) + Send) -> Result<(), StoreError> {
        if self.store.engine() != Engine::Sqlite {
            return Ok(());
        }
        let mut generated: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in self.store.fetch_text(GENERATED).await? {
            generated.entry(text(&row, 0)).or_default().push(quote(&text(&row, 1)));
        }
        for (table, columns) in generated {
            self.made((&table, &columns, ""), &HashSet::new(), &mut each).await;
        }
        for row in self.store.fetch_text(ON_EXPRESSIONS).await? {
            let (terms, condition) = terms(&text(&row, 1));
            let expressions = text(&row, 2).split(',').filter_map(|place| place.parse().ok()).collect();
            self.made((&text(&row, 0), &terms, &condition), &expressions, &mut each).await;
        }
        Ok(())
    }

    /// Passes on the values of some expressions for the rows of a table. `indexed` are the positions of those stored
    /// only in an index. Values that cannot be computed explain nothing.
    async fn made(
        self,
        (table, expressions, condition): (&str, &[String], &str),
        indexed: &HashSet<usize>,
        each: &mut (impl FnMut(MadeValue<'_>) + Send),
    ) {
        let sql = format!("SELECT {} FROM main.{} {condition}", expressions.join(", "), quote(table));
        let take = |row: Vec<FetchedValue>| {
            for (place, value) in row.iter().enumerate() {
                each(MadeValue { table, is_indexed: indexed.contains(&place), value });
            }
            ControlFlow::Continue(())
        };
        let _ = self.store.scan(&SelectStatement::new(self.store.engine(), sql), take).await;
    }
}

/// The parts of an index from its CREATE statement: the text between the outer parentheses, without sort directions.
/// Also returns the rest, the condition of a partial index.
pub fn terms(sql: &str) -> (Vec<String>, String) {
    let (mut terms, mut term, mut depth, mut quoted) = (Vec::new(), String::new(), 0_usize, None);
    let mut condition = "";
    for (at, c) in sql.char_indices() {
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
                condition = sql[at + 1..].trim();
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
    (terms.into_iter().map(bare).collect(), condition.to_owned())
}

/// The expressions of a table's generated columns, from its CREATE statement: what follows `AS` in parentheses.
pub fn generated_parts(sql: &str) -> String {
    let small = sql.to_ascii_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let begins = |at: &usize| !small[..*at].ends_with(is_part) && small[at + 2..].trim_start().starts_with('(');
    let parts = small.match_indices("as").map(|(at, _)| at).filter(begins);
    parts.flat_map(|at| terms(&sql[at..]).0).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_generated_columns_are_found_in_the_statement() {
        let sql = "CREATE TABLE t (a TEXT, alias (b), c GENERATED ALWAYS AS (lower(a || ')')) STORED, d as(b, 1))";
        assert_eq!(generated_parts(sql), "lower(a || ')') b 1");
    }

    #[test]
    fn the_parts_of_an_index_are_what_is_between_its_parentheses() {
        for (sql, wanted, condition) in [
            ("CREATE INDEX ex ON t(lower(memory))", &["lower(memory)"][..], ""),
            (
                "CREATE UNIQUE INDEX \"a(b\" ON \"t)\" (json_extract(note, '$.(who'), b DESC, [c,d] collate nocase ASC) WHERE a > (1)",
                &["json_extract(note, '$.(who')", "b", "[c,d] collate nocase"],
                "WHERE a > (1)",
            ),
        ] {
            assert_eq!(
                terms(sql),
                (wanted.iter().map(|term| (*term).to_owned()).collect(), condition.to_owned()),
                "{sql}"
            );
        }
    }
}
