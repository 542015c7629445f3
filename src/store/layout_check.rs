//! Checks a layout against a database: missing names, failing SQL, repeated ids, paths that find nothing.

use std::fmt::Write as _;
use std::iter;

use super::select::{Projection, from_clause};
use super::shape::qualified;
use super::stored::TableName;
use super::{SchemaDoor, StoreError, codec, dialect};
use crate::layout::erase::EraseRule;
use crate::layout::recognise::with_nearest;
use crate::layout::{BoundSource, Layout, LayoutError, Source};
use crate::memory::agreeing;

/// Rows sampled for a path.
const ROWS: usize = 10_000;
/// Rows that may all lack a member of an object by chance.
const FEW: usize = 50;

impl<'a> SchemaDoor<'a> {
    /// Finds errors of a layout in this database, in the order of the lines, each with its line and key. Reads every id
    /// once, and up to 10,000 rows for each column with a path.
    ///
    /// # Errors
    /// The engine's refusal for a reason other than the layout.
    pub async fn check_layout(self, file: &str) -> Result<Vec<LayoutError>, StoreError> {
        let error =
            |line: usize, key: String, message: String| LayoutError { file: file.to_owned(), line, key, message };
        let mut errors = Vec::new();
        for layout in &self.store.recognised.layouts {
            let missing = layout.missing.iter().filter(|m| !m.optional);
            errors.extend(missing.map(|m| error(m.line, m.key.clone(), m.message.clone())));
        }
        for (line, key, words) in &self.store.recognised.erasure.missing {
            errors.push(error(*line, key.clone(), words.clone()));
        }
        let bound = |layout: &&Layout| self.store.recognised.layouts.iter().any(|bound| bound.name == layout.name);
        for rule in self.store.layouts.iter().filter(bound).flat_map(|layout| &layout.rules) {
            if let Some(words) = self.rule_fault(rule).await? {
                errors.push(error(rule.line, format!("erase.{}", rule.table), words));
            }
        }
        for source in &self.store.recognised.sources {
            let written = self.written(source);
            let entity = source.entity.name();
            if let (Some(spec), None) = (written.and_then(|s| s.vector.as_ref()), &source.vector) {
                let place = spec.table.as_deref().unwrap_or(&source.table.1);
                let words =
                    format!("column `{}` or its table {place} does not exist, so no row has a vector", spec.column);
                errors.push(error(source.line, format!("{entity}.vector"), words));
            }
            let faults = self.statement_faults(source, written).await?;
            let sound = faults.is_empty();
            errors.extend(faults.into_iter().map(|(line, key, words)| error(line, key, words)));
            if sound {
                let faults = self.row_faults(source, written).await?;
                errors.extend(faults.into_iter().map(|(line, key, words)| error(line, key, words)));
            }
        }
        errors.sort_by_key(|e| e.line);
        Ok(errors)
    }

    /// Returns the reason why a rule of the file never applies: a missing table that is not declared as optional, or a
    /// condition that the engine refuses.
    async fn rule_fault(self, rule: &EraseRule) -> Result<Option<String>, StoreError> {
        let catalog = self.store.catalog();
        if rule.line == 0 || !rule.is_met(catalog) {
            return Ok(None);
        }
        if rule.requires.is_empty()
            && let Some(name) = iter::once(&rule.table)
                .chain(&rule.of)
                // A pattern matches tables of any name, and possibly none.
                .find(|name| !name.starts_with('{') && catalog.table(name).is_none())
        {
            let words = format!(
                "table `{name}` does not exist, so the rule erases nothing; `requires` says what may be \
                 missing"
            );
            return Ok(Some(with_nearest(words, name, catalog.tables.iter().map(|table| table.name.as_str()))));
        }
        // A missing name in a condition has been reported already.
        if self.store.recognised().erasure.missing.iter().any(|(line, ..)| *line == rule.line) {
            return Ok(None);
        }
        let when = rule.when.as_ref().and_then(|sql| sql.on(self.store.engine()));
        let (Some(table), Some(when)) = (catalog.table(&rule.table), when) else { return Ok(None) };
        let table = qualified(&TableName::new(table.schema.clone(), table.name.clone()));
        let when = when.replace("$subject", "SELECT NULL WHERE 1 = 0");
        match self.store.fetch_text(&format!("SELECT 1 FROM {table} t WHERE ({when}) LIMIT 0")).await {
            Err(StoreError::Engine(refusal)) => Ok(Some(format!("`when`: {}", super::engine_error::explain(&refusal)))),
            other => other.map(|_| None),
        }
    }

    /// The source as its author wrote it.
    fn written(self, source: &BoundSource) -> Option<&'a Source> {
        let layout: Option<&Layout> = self.store.layouts.iter().find(|l| l.name == source.layout);
        layout?.sources.iter().find(|s| s.line == source.line && s.entity == source.entity)
    }

    /// Columns whose SQL the engine refuses; the source itself if no single column is to blame.
    async fn statement_faults(
        self,
        source: &BoundSource,
        written: Option<&Source>,
    ) -> Result<Vec<(usize, String, String)>, StoreError> {
        let Some(whole) = self.refused(source, None).await? else { return Ok(Vec::new()) };
        let mut faults = Vec::new();
        for column in source.entity.columns() {
            if let (false, Some(words)) =
                (source.column(column.name).is_empty(), self.refused(source, Some(&[column.name])).await?)
            {
                let key = format!("{}.columns.{}", source.entity, column.name);
                faults.push((line_of(written, column.name).unwrap_or(source.line), key, words));
            }
        }
        // If every column fails, the fault is in the FROM part.
        let mapped = source.entity.columns().iter().filter(|c| !source.column(c.name).is_empty()).count();
        if faults.is_empty() || (faults.len() == mapped && faults.iter().all(|(.., words)| *words == whole)) {
            faults = vec![(source.line, source.entity.to_string(), whole)];
        }
        Ok(faults)
    }

    /// Returns the engine's reason for refusing to read some columns of a source; `None` if it reads them.
    async fn refused(self, source: &BoundSource, columns: Option<&[&str]>) -> Result<Option<String>, StoreError> {
        let mut statement = Projection::new(self.store.engine(), source, columns, None).select(source, &[]);
        statement.sql += " LIMIT 0";
        match self.store.fetch(&statement).await {
            Err(StoreError::Engine(refusal)) => Ok(Some(super::engine_error::explain(&refusal))),
            other => other.map(|_| None),
        }
    }

    /// Ids shared by several rows, and paths that find nothing.
    async fn row_faults(
        self,
        source: &BoundSource,
        written: Option<&Source>,
    ) -> Result<Vec<(usize, String, String)>, StoreError> {
        let mut faults = Vec::new();
        let line = |column: &str| line_of(written, column).unwrap_or(source.line);
        if let [id] = source.column("id")
            && let Some(bare) = dialect::expression(&id.origin).filter(|_| id.inside.is_whole())
        {
            let (from, keep) = (from_clause(source), source.keep.as_deref().unwrap_or("1 = 1"));
            let sql = format!(
                "SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM {from} WHERE {keep} GROUP BY {bare} HAVING count(*) > 1) r"
            );
            let found = self.store.fetch_text(&sql).await?;
            let number = |at: usize| found.first().map_or(0, |row| super::fetched::number(row, at));
            if number(0) > 0 {
                let words = agreeing(
                    number(0),
                    "{#} {id occurs|ids occur} in several rows, so none of them can be addressed: build the id from \
                     all columns that identify a row",
                );
                faults.push((line("id"), format!("{}.columns.id", source.entity), words));
            }
        }
        for column in source.entity.columns() {
            let [way] = source.column(column.name) else { continue };
            let Some(path) = way.inside.path.as_ref().filter(|path| !path.is_empty()) else { continue };
            let projection = Projection::new(self.store.engine(), source, Some(&[column.name]), None);
            let mut statement = projection.select(source, &[]);
            let _ = write!(statement.sql, " LIMIT {ROWS}");
            let rows = self.store.fetch(&statement).await?;
            let stored =
                rows.iter().filter(|row| row.iter().any(|raw| *raw != super::fetched::FetchedValue::Null)).count();
            let is_there = |row: &super::fetched::RawRow| {
                let value = codec::decode(source, &projection, &mut row.clone());
                let value = value.get(column.name);
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            };
            let optional = written.is_some_and(|w| {
                w.columns.iter().any(|(n, ways)| n == column.name && ways.iter().any(|way| way.optional))
            });
            if stored > 0 && !optional && !rows.iter().any(is_there) {
                // A few rows may lack a member by chance, but hardly the first step of the path.
                let first = path.split('.').next().unwrap_or(path);
                let mut shorter = source.clone();
                if let Some(at) = source.entity.position(column.name) {
                    shorter.columns[at].iter_mut().for_each(|way| way.inside.path = Some(first.to_owned()));
                }
                let shorter_way = Projection::new(self.store.engine(), &shorter, Some(&[column.name]), None);
                let begins = |row: &super::fetched::RawRow| {
                    let row = codec::decode(&shorter, &shorter_way, &mut row.clone());
                    !row.get(column.name).is_null() || !row.problems.is_empty()
                };
                if stored < FEW && first != path && rows.iter().any(begins) {
                    continue;
                }
                let words = format!("none of {stored} rows has a value at `{path}`: check what the column holds");
                faults.push((line(column.name), format!("{}.columns.{}", source.entity, column.name), words));
            }
        }
        Ok(faults)
    }
}

/// The line of the layout file on which a canonical column is mapped.
fn line_of(written: Option<&Source>, column: &str) -> Option<usize> {
    written?.columns.iter().find(|(name, _)| name == column)?.1.first().map(|spec| spec.line)
}
