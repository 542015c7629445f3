//! Expands patterns for tables of any name to the tables of a database.

use std::borrow::Cow;

use super::erase::{EraseRule, HandleColumn, HandleValue, UnownedRows};
use super::table_set::{self, TableKind};
use super::{Catalog, CatalogTable, ColumnOrigin, ColumnSpec, FromClause, Layout, Need, Source, Sql, TablePattern};

/// Expands a layout: every source and rule that names a pattern is repeated for each matching table. Unchanged without
/// patterns; with an unmet need if no table matches.
pub fn spelled_out<'l>(layout: &'l Layout, catalog: &Catalog) -> Cow<'l, Layout> {
    if layout.patterns.is_empty() {
        return Cow::Borrowed(layout);
    }
    let mut layout = layout.clone();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut kinds: Vec<TableKind> = Vec::new();
    for pattern in std::mem::take(&mut layout.patterns) {
        let mark = format!("{{{}}}", pattern.name);
        let is_other = |t: &&CatalogTable| {
            !found.iter().any(|(mark, tables)| pattern.unlike.contains(mark) && tables.contains(&t.title()))
        };
        let fitting = catalog.tables.iter().filter(|t| fits(&pattern, t) && is_twin(&pattern, t, catalog));
        let fitting: Vec<&CatalogTable> = fitting.filter(is_other).collect();
        let tables: Vec<String> = fitting.iter().map(|table| table.title()).collect();
        found.push((mark.clone(), tables.clone()));
        kinds.extend(pattern.stands_for.map(|named| TableKind::of(named, &fitting, catalog)));
        if let Some(first) = tables.first() {
            let put = NameInPlace { mark: mark.clone(), name: first.clone() };
            put.needs(&mut layout.requires);
            put.needs(&mut layout.forbids);
        }
        layout.sources = each(layout.sources, &tables, &mark, NameInPlace::source, |s| table_of(s).contains(&mark));
        layout.rules = each(layout.rules, &tables, &mark, NameInPlace::rule, |r| r.table.contains(&mark));
        layout.follows = each(layout.follows, &tables, &mark, NameInPlace::text, |name| name.contains(&mark));
        layout.unowned = each(layout.unowned, &tables, &mark, NameInPlace::unowned, |rows| rows.table.contains(&mark));
        layout.handles = each(layout.handles, &tables, &mark, NameInPlace::handle, |h| h.table.contains(&mark));
    }
    table_set::spell_out(&kinds, &mut layout);
    Cow::Owned(layout)
}

pub(super) fn table_of(source: &Source) -> &str {
    match &source.from {
        FromClause::Table(name) | FromClause::Each { table: name, .. } => name,
        FromClause::Query { tables, .. } => tables.first().map_or("", |(_, table)| table),
    }
}

/// Whether a table passes the test for a twin, if there is one: its name is that of another table with the same
/// columns, plus the suffix.
fn is_twin(pattern: &TablePattern, table: &CatalogTable, catalog: &Catalog) -> bool {
    pattern.twin.as_ref().is_none_or(|ending| {
        let of = table.name.strip_suffix(ending.as_str());
        catalog.tables.iter().any(|t| t.schema == table.schema && Some(&*t.name) == of && has_columns(pattern, t))
    })
}

fn has_columns(pattern: &TablePattern, table: &CatalogTable) -> bool {
    let has = |(name, types): &(String, Vec<String>)| {
        let of_type = |declared: &str| types.is_empty() || types.iter().any(|t| declared.contains(t.as_str()));
        table.column(name).is_some_and(|c| of_type(&c.declared))
    };
    pattern.has.iter().all(has)
}

/// Whether a table is of the kind.
fn fits(pattern: &TablePattern, table: &CatalogTable) -> bool {
    has_columns(pattern, table)
        && (!pattern.only || table.columns.len() == pattern.has.len())
        && is_like(&pattern.like, &table.name)
        && !pattern.unlike.iter().any(|unlike| is_like(unlike, &table.name))
}

/// Whether a name matches a pattern, in which `*` stands for any characters.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(name),
        Some((start, rest)) => {
            let begins = name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
            begins && (start.len()..=name.len()).any(|at| name.get(at..).is_some_and(|tail| is_like(rest, tail)))
        }
    }
}

/// Repeats the elements that name the pattern for each table, and keeps the others unchanged.
fn each<T: Clone>(
    all: Vec<T>,
    tables: &[String],
    mark: &str,
    put: impl Fn(&NameInPlace, &mut T),
    names: impl Fn(&T) -> bool,
) -> Vec<T> {
    let mut spelled = Vec::new();
    for one in all {
        if !names(&one) {
            spelled.push(one);
            continue;
        }
        for name in tables {
            let mut copy = one.clone();
            put(&NameInPlace { mark: mark.to_owned(), name: name.clone() }, &mut copy);
            spelled.push(copy);
        }
    }
    spelled
}

/// Whether a name needs no quotation marks, wherever a layout names it.
pub(super) fn is_bare(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A table's name in place of the pattern's.
pub(super) struct NameInPlace {
    pub mark: String,
    pub name: String,
}

impl NameInPlace {
    pub(super) fn text(&self, text: &mut String) {
        if text.contains(&self.mark) {
            *text = self.put(text);
        }
    }

    /// Replaces the mark in a text by the name. If the mark is itself a table's name, it is not replaced within longer
    /// names.
    fn put(&self, text: &str) -> String {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let (mut put, mut from) = (String::with_capacity(text.len()), 0);
        for (at, mark) in text.match_indices(&self.mark) {
            let end = at + mark.len();
            let is_part = text[..at].ends_with(is_letter) || text[end..].starts_with(is_letter);
            if !(is_part && is_bare(mark)) {
                put.push_str(&text[from..at]);
                put.push_str(&self.name);
                from = end;
            }
        }
        put.push_str(&text[from..]);
        put
    }

    pub(super) fn layout(&self, layout: &mut Layout) {
        let variants = layout.variants.iter_mut().flat_map(|variant| [&mut variant.requires, &mut variant.forbids]);
        variants.chain([&mut layout.requires, &mut layout.forbids]).for_each(|needs| self.needs(needs));
        layout.sources.iter_mut().for_each(|source| self.source(source));
        layout.rules.iter_mut().for_each(|rule| self.rule(rule));
        layout.handles.iter_mut().for_each(|handle| self.handle(handle));
        layout.unowned.iter_mut().for_each(|rows| self.unowned(rows));
        let account = layout.account.iter_mut().map(|account| &mut account.table);
        layout.follows.iter_mut().chain(account).for_each(|name| self.text(name));
    }

    fn sql(&self, sql: &mut Sql) {
        sql.sqlite.iter_mut().chain(sql.postgres.iter_mut()).for_each(|text| self.text(text));
    }

    pub(super) fn handle(&self, handle: &mut HandleColumn) {
        self.text(&mut handle.table);
        self.needs(&mut handle.requires);
        if let HandleValue::Sql(sql) = &mut handle.value {
            self.sql(sql);
        }
    }

    pub(super) fn unowned(&self, rows: &mut UnownedRows) {
        self.text(&mut rows.table);
        rows.when.iter_mut().for_each(|sql| self.sql(sql));
    }

    fn needs(&self, needs: &mut [Need]) {
        needs.iter_mut().for_each(|need| self.text(&mut need.table));
    }

    pub(super) fn source(&self, source: &mut Source) {
        self.text(&mut source.label);
        match &mut source.from {
            FromClause::Table(name) | FromClause::Each { table: name, .. } => self.text(name),
            FromClause::Query { sql, tables } => {
                self.sql(sql);
                tables.iter_mut().for_each(|(_, table)| self.text(table));
            }
        }
        self.needs(&mut source.requires);
        self.needs(&mut source.forbids);
        source.keep.iter_mut().chain(source.search.iter_mut()).for_each(|sql| self.sql(sql));
        if let Some(vector) = &mut source.vector {
            vector.table.iter_mut().for_each(|table| self.text(table));
            vector.from.iter_mut().for_each(|sql| self.sql(sql));
        }
        source.columns.iter_mut().flat_map(|(_, ways)| ways).for_each(|way| self.column(way));
    }

    fn column(&self, way: &mut ColumnSpec) {
        match &mut way.value {
            ColumnOrigin::Sql(sql) => self.sql(sql),
            ColumnOrigin::Value(serde_json::Value::String(text)) => self.text(text),
            _ => {}
        }
        self.needs(&mut way.requires);
        self.needs(&mut way.forbids);
        way.lookup.iter_mut().for_each(|sql| self.sql(sql));
    }

    pub(super) fn rule(&self, rule: &mut EraseRule) {
        self.text(&mut rule.table);
        rule.of.iter_mut().for_each(|of| self.text(of));
        rule.when.iter_mut().for_each(|sql| self.sql(sql));
        self.needs(&mut rule.requires);
        self.needs(&mut rule.forbids);
    }
}

#[cfg(test)]
mod tests {
    use super::{NameInPlace, is_like};

    #[test]
    fn a_name_takes_the_place_of_a_whole_name_and_a_mark_that_of_a_part() {
        for (mark, text, expected) in [
            ("logs", "logs.id, main.logs, logs_of_logs, \"logs\"", "x.id, main.x, logs_of_logs, \"x\""),
            ("{logs}", "{logs}_old, my_{logs}", "x_old, my_x"),
        ] {
            let name = NameInPlace { mark: mark.to_owned(), name: "x".to_owned() };
            assert_eq!(name.put(text), expected);
        }
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name, expected) in [
            ("*", "memories", true),
            ("mem0*", "mem0_team", true),
            ("mem0*", "my_mem0", false),
            ("*_entities", "memories_entities", true),
            ("*_entities", "entities_of_ours", false),
            ("a*b*c", "A-b-b-C", true),
            ("käse*", "käsebrot", true),
        ] {
            assert_eq!(is_like(pattern, name), expected, "{name} like {pattern}");
        }
    }
}
