//! Removes from the recognised sources whatever reads columns that this database lacks, as a store of another version
//! may: a missing column reads as no value, and a source whose rows cannot be identified without it is left out.
//! Reports the reason for each.

use super::sql_names::{self, ReadTable};
use super::withhold::reads_what_is_there;
use crate::layout::recognise::MissingColumn;
use crate::layout::{
    Attachment, BoundColumn, BoundFrom, BoundOrigin, BoundSource, Catalog, CatalogTable, Layout, RecognisedLayouts,
    WithheldPart,
};

/// Columns that every table has implicitly.
const UNSAID: [&str; 9] = ["rowid", "_rowid_", "oid", "ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];

/// Advice for a missing source.
const REMEDY: &str =
    "describe this version in a layout of your own: `layouts draft` guesses one, `--layout FILE` uses it";

/// A table with the alias by which columns are written; `None` if its columns are unknown.
type Aliased<'c> = (String, Option<&'c CatalogTable>);

/// Removes readings of missing columns.
pub fn leave_out(known: &[Layout], catalog: &Catalog, found: &mut RecognisedLayouts) {
    let RecognisedLayouts { layouts, sources, withheld, .. } = found;
    sources.retain_mut(|source| {
        let Some(layout) = layouts.iter_mut().find(|layout| layout.name == source.layout) else { return true };
        let reader = VersionReader { known, catalog };
        let reason = reader.keeps(source, layout);
        layout.missing.extend(reason.iter().map(|reason| MissingColumn {
            line: source.line,
            key: source.entity.to_string(),
            message: reason.clone(),
            optional: reader.may_be_absent(source),
        }));
        withheld.extend(reason.iter().map(|reason| WithheldPart {
            entity: source.entity,
            column: None,
            table: source.label.clone(),
            reason: reason.clone(),
            remedy: REMEDY.to_owned(),
        }));
        reason.is_none()
    });
}

struct VersionReader<'c> {
    known: &'c [Layout],
    catalog: &'c Catalog,
}

impl<'c> VersionReader<'c> {
    /// Removes readings of missing columns from a source. Returns the reason if nothing is left.
    fn keeps(&self, source: &mut BoundSource, layout: &mut Attachment) -> Option<String> {
        let (schema, name) = &source.table;
        let main = self.catalog.exactly(schema, name);
        let aliases = match &source.from {
            BoundFrom::Table(..) | BoundFrom::Each { .. } => vec![("t".to_owned(), main)],
            BoundFrom::Query(sql) => self.aliases(sql, true),
        };
        if let BoundFrom::Query(sql) = &source.from
            && let Some(lack) = lack_of_columns(sql, &aliases)
        {
            return Some(lack);
        }
        if let Some(lack) = source.keep.as_deref().and_then(|sql| self.lack_of_sql(sql, &aliases)) {
            return Some(lack);
        }
        // A store of another version may lack its search index; it is then searched row by row.
        let there = |sql: &String| reads_what_is_there(self.catalog, sql) && self.lack_of_sql(sql, &aliases).is_none();
        source.search = source.search.take().filter(there);
        let names = source.entity.columns().iter().map(|c| c.name).chain(["raw_status", "raw_outcome"]);
        let ways = source.columns.iter_mut().chain([&mut source.raw_status, &mut source.raw_outcome]);
        for (name, ways) in names.zip(ways) {
            if let Some(message) = self.lost(ways, &aliases) {
                let optional = self.is_optional(&source.layout, source.line, name);
                let key = format!("{}.columns.{name}", source.entity);
                layout.missing.push(MissingColumn { line: source.line, key, message, optional });
            }
        }
        let query = source.vector.as_ref().and_then(|vector| vector.beside.as_ref()?.query.clone());
        source.vector = source.vector.take().filter(|_| query.is_none_or(|sql| self.lack_of_sql(&sql, &[]).is_none()));
        lack_of_id(source, layout)
    }

    /// Whether the layout declares that a source may be absent.
    fn may_be_absent(&self, source: &BoundSource) -> bool {
        let sources = self.known.iter().filter(|known| known.name == source.layout).flat_map(|known| &known.sources);
        sources.filter(|other| other.line == source.line).any(|other| !other.requires.is_empty())
    }

    /// Whether the layout declares that a column may be missing.
    fn is_optional(&self, layout: &str, line: usize, column: &str) -> bool {
        let sources = self.known.iter().filter(|known| known.name == layout).flat_map(|known| &known.sources);
        let columns = sources.filter(|source| source.line == line).flat_map(|source| &source.columns);
        columns.filter(|(name, _)| name == column).any(|(_, ways)| ways.iter().any(|way| way.optional))
    }

    /// Removes the readings of a column that use missing ones. Returns the reason if none is left.
    fn lost(&self, ways: &mut Vec<BoundColumn>, aliases: &[Aliased<'c>]) -> Option<String> {
        let mut lost = None;
        ways.retain_mut(|way| {
            let there =
                |sql: &String| reads_what_is_there(self.catalog, sql) && self.lack_of_sql(sql, aliases).is_none();
            way.lookup = way.lookup.take().filter(there);
            let lack = match &way.origin {
                BoundOrigin::Sql(sql) => self.lack_of_sql(sql, aliases),
                _ => None,
            };
            let keeps = lack.is_none();
            lost = lost.take().or(lack);
            keeps
        });
        lost.filter(|_| ways.is_empty())
    }

    /// Returns a column that the SQL uses and that the aliased table lacks.
    fn lack_of_sql(&self, sql: &str, outer: &[Aliased<'c>]) -> Option<String> {
        let mut all = self.aliases(sql, false);
        all.extend_from_slice(outer);
        lack_of_columns(sql, &all)
    }

    /// The tables that a piece of SQL reads. The columns of a subquery are unknown.
    fn aliases(&self, sql: &str, after_from: bool) -> Vec<Aliased<'c>> {
        let read = |read: ReadTable| (read.alias, self.catalog.table(&read.table));
        let derived = sql_names::derived(sql).into_iter().map(|alias| (alias, None));
        sql_names::reads(sql, after_from).into_iter().map(read).chain(derived).collect()
    }
}

fn lack_of_columns(sql: &str, aliases: &[Aliased<'_>]) -> Option<String> {
    sql_names::names(sql).iter().find_map(|name| {
        let [alias, column] = &name.parts[..] else { return None };
        let mut tables = aliases.iter().filter(|(other, _)| other.eq_ignore_ascii_case(alias)).map(|(_, table)| table);
        let is_there = |table: &CatalogTable| table.column(column).is_some() || table.columns.is_empty();
        let first = tables.clone().next()?.as_ref()?;
        let lacks = tables.all(|table| table.is_some_and(|table| !is_there(table)));
        (lacks && !UNSAID.contains(&column.as_str()) && !sql[name.place.1..].starts_with('('))
            .then(|| format!("the table {} has no column `{column}`", first.title()))
    })
}

/// Explains why the rows of a source have no ids.
fn lack_of_id(source: &BoundSource, layout: &Attachment) -> Option<String> {
    if source.entity.column("id").is_none() || !source.column("id").is_empty() {
        return None;
    }
    let key = format!("{}.columns.id", source.entity);
    let of_it = layout.missing.iter().filter(|missing| missing.key == key && missing.line >= source.line);
    let words = of_it.min_by_key(|missing| missing.line).map(|missing| missing.message.clone());
    Some(format!(
        "the rows of {} have no id: {}",
        source.label,
        words.unwrap_or_else(|| "the layout defines none".to_owned())
    ))
}
