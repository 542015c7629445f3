//! Removes from the recognised sources what our role may not read, so that the rest can be read: a column becomes null,
//! rows of one of several tables are missing, or a source is left out. Each with the reason and the GRANT that would
//! help.

use super::StoreError;
use super::dialect::quote;
use super::lacking;
use super::sql_names::{self, ReadTable};
use crate::layout::vector::VectorsBeside;
use crate::layout::{
    BoundColumn, BoundFrom, BoundOrigin, BoundSource, Catalog, CatalogColumn, CatalogTable, Engine, Layout, Need,
    RecognisedLayouts, WithheldPart, recognise,
};
use crate::memory::query::Capability;

/// Recognises the layouts that fit, with the sources that our role may read.
pub fn recognise_readable(layouts: &[Layout], engine: Engine, catalog: &Catalog) -> RecognisedLayouts {
    let mut found = recognise(layouts, engine, catalog);
    lacking::leave_out(layouts, catalog, &mut found);
    if catalog.tables.iter().all(|t| t.columns.iter().all(|c| !c.denied)) {
        return found;
    }
    let RecognisedLayouts { sources, withheld, .. } = &mut found;
    sources.retain_mut(|source| RightsReader { catalog, withheld }.keeps(source));
    found
}

/// A table, or columns of it, that our role may not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedTable<'c> {
    table: &'c CatalogTable,
    /// The columns; empty if it is the whole table.
    columns: Vec<&'c str>,
}

impl<'c> DeniedTable<'c> {
    /// Denial of a whole table.
    pub fn whole(table: &'c CatalogTable) -> Self {
        DeniedTable { table, columns: Vec::new() }
    }

    /// The columns of a table that may not be read; `None` if all may.
    pub fn of(table: &'c CatalogTable) -> Option<Self> {
        let columns: Vec<&str> = table.columns.iter().filter(|c| c.denied).map(|c| c.name.as_str()).collect();
        match (table.denied, columns.is_empty()) {
            (true, _) => Some(DeniedTable::whole(table)),
            (false, true) => None,
            (false, false) => Some(DeniedTable { table, columns }),
        }
    }

    /// Returns the reason for the denial, as text.
    pub fn reason(&self, role: &str) -> String {
        if self.table.unlogged {
            let title = self.table.title();
            return format!("a standby cannot read {title}, which is unlogged or reads a table that is");
        }
        let who = who(role);
        match self.columns[..] {
            [] => format!("{who} may not read the table {}", self.table.title()),
            [column] => format!("{who} may not read the column {column} of {}", self.table.title()),
            _ => format!("{who} may not read the columns {} of {}", self.columns.join(", "), self.table.title()),
        }
    }

    /// The denial as a missing capability.
    pub fn capability(&self, role: &str) -> Capability {
        Capability {
            name: self.table.title(),
            available: false,
            reason: Some(self.reason(role)),
            remedy: Some(self.remedy(role)),
        }
    }

    /// Returns the SQL with which the owner of the table can grant access, or another remedy.
    pub fn remedy(&self, role: &str) -> String {
        if self.table.unlogged {
            return "open the primary, or have the table logged there (ALTER TABLE ... SET LOGGED)".to_owned();
        }
        self.grant("SELECT", role)
    }

    /// The SQL that grants privileges on the table, or on its columns.
    fn grant(&self, rights: &str, role: &str) -> String {
        let role = if role.is_empty() { "your role".to_owned() } else { plain_or_quoted(role) };
        let schema = plain_or_quoted(&self.table.schema);
        let enter = if self.table.closed_schema {
            format!("GRANT USAGE ON SCHEMA {schema} TO {role}; ")
        } else {
            String::new()
        };
        let columns: Vec<String> = self.columns.iter().map(|c| plain_or_quoted(c)).collect();
        let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
        let name = plain_or_quoted(&self.table.name);
        let table = if self.table.visible { name } else { format!("{schema}.{name}") };
        format!("{enter}GRANT {rights}{columns} ON {table} TO {role}")
    }
}

/// The error for a change in a table that the role may not write, with the GRANT that would help.
pub fn unwritable(table: &CatalogTable, role: &str) -> StoreError {
    let reason = format!("{} may not write the table {}", who(role), table.title());
    let remedy = DeniedTable::whole(table).grant("SELECT, INSERT, UPDATE, DELETE", role);
    StoreError::Denied { reason, remedy }
}

/// The role, for use in a sentence.
fn who(role: &str) -> String {
    if role.is_empty() { "your role".to_owned() } else { format!("your role {role}") }
}

/// Whether the tables that a piece of SQL reads exist.
pub(super) fn reads_what_is_there(catalog: &Catalog, sql: &str) -> bool {
    let is_function = |end: usize| sql[end..].trim_start().starts_with('(');
    let own = |name: &str| sql_names::names(sql).iter().any(|n| n.parts == [name] && is_common_table(sql, n.place.1));
    let searched = |name: &str| catalog.word_indexes.iter().any(|index| index.eq_ignore_ascii_case(name));
    let there = |name: &str| catalog.table(name).is_some() || searched(name) || own(name);
    sql_names::reads(sql, false).iter().all(|read| there(&read.table) || is_function(read.place.1))
}

/// Whether the name that ends there is that of a query in a `WITH` clause.
fn is_common_table(sql: &str, end: usize) -> bool {
    let rest = sql[end..].trim_start();
    rest.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("as")) && rest[2..].trim_start().starts_with('(')
}

/// The error for creating something in a schema, with the GRANT that helps.
pub fn closed_to_new(schema: &str, role: &str) -> StoreError {
    let grantee = if role.is_empty() { "your role".to_owned() } else { plain_or_quoted(role) };
    let grant = format!("GRANT USAGE, CREATE ON SCHEMA {} TO {grantee}", plain_or_quoted(schema));
    StoreError::Denied {
        reason: format!("{} may not create tables in the schema {schema}", who(role)),
        remedy: format!("run it as the owner of the tables, or: {grant}"),
    }
}

/// Returns the SQL that lets a role write the audit trail.
pub fn to_append(role: &str) -> String {
    let role = if role.is_empty() { "your role".to_owned() } else { plain_or_quoted(role) };
    format!(
        "GRANT INSERT ON memory_audit, memory_audit_private TO {role}; \
         GRANT SELECT, UPDATE ON memory_audit_head TO {role}"
    )
}

/// An identifier, quoted only if SQL requires it.
fn plain_or_quoted(name: &str) -> String {
    const RESERVED: [&str; 12] =
        ["all", "analyze", "desc", "end", "group", "limit", "order", "public", "select", "table", "user", "when"];
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    // `public` is fine as a schema name without quotes.
    if begins && name.bytes().all(plain) && (name == "public" || !RESERVED.contains(&name)) {
        name.to_owned()
    } else {
        quote(name)
    }
}

/// A table with the alias of its columns.
type Aliased<'c> = (String, &'c CatalogTable);

struct RightsReader<'c, 'w> {
    catalog: &'c Catalog,
    withheld: &'w mut Vec<WithheldPart>,
}

impl<'c> RightsReader<'c, '_> {
    /// Removes from a source what may not be read; returns false if nothing useful is left.
    fn keeps(&mut self, source: &mut BoundSource) -> bool {
        let (schema, name) = &source.table;
        let Some(main) = self.catalog.exactly(schema, name) else {
            return true;
        };
        let aliases = match &source.from {
            BoundFrom::Table(..) | BoundFrom::Each { .. } => vec![("t".to_owned(), main)],
            BoundFrom::Query(sql) => self.aliases(&sql_names::reads(sql, true)),
        };
        let lack = if main.denied {
            Some(DeniedTable::whole(main))
        } else {
            let keep = source.keep.as_deref().and_then(|sql| self.lack_of_sql(sql, &aliases));
            keep.or_else(|| self.lack_of_from(source)).or_else(|| {
                let mut ways = source.column("id").iter();
                ways.find_map(|way| self.lack_of_way(way, &aliases))
            })
        };
        if let Some(lack) = lack {
            self.note(source, None, &lack);
            return false;
        }
        source.search = source.search.take().filter(|sql| self.lack_of_sql(sql, &aliases).is_none());
        let names: Vec<&'static str> = source.entity.columns().iter().map(|c| c.name).collect();
        for (at, name) in names.into_iter().enumerate() {
            let ways = std::mem::take(&mut source.columns[at]);
            source.columns[at] = self.ways(source, name, ways, &aliases);
        }
        let raw = std::mem::take(&mut source.raw_status);
        source.raw_status = self.ways(source, "status", raw, &aliases);
        let raw = std::mem::take(&mut source.raw_outcome);
        source.raw_outcome = self.ways(source, "outcome", raw, &aliases);
        self.vector(source, main);
        self.veil(source);
        true
    }

    fn note(&mut self, source: &BoundSource, column: Option<&str>, lack: &DeniedTable<'_>) {
        let withheld = WithheldPart {
            entity: source.entity,
            column: column.map(str::to_owned),
            table: lack.table.title(),
            reason: lack.reason(&self.catalog.role),
            remedy: lack.remedy(&self.catalog.role),
        };
        if !self.withheld.contains(&withheld) {
            self.withheld.push(withheld);
        }
    }

    /// The readable readings of a column. A constant fallback means "no value", which an unreadable column is not.
    fn ways(
        &mut self,
        source: &BoundSource,
        name: &str,
        ways: Vec<BoundColumn>,
        aliases: &[Aliased<'c>],
    ) -> Vec<BoundColumn> {
        let mut open = Vec::new();
        let mut closed = None;
        for mut way in ways {
            match self.lack_of_way(&way, aliases) {
                Some(lack) => closed = closed.or(Some(lack)),
                None if closed.is_some() && matches!(way.origin, BoundOrigin::Value(_)) => {}
                None => {
                    way.lookup = way.lookup.filter(|sql| self.lack_of_sql(sql, aliases).is_none());
                    open.push(way);
                }
            }
        }
        if let Some(lack) = closed.filter(|_| open.is_empty()) {
            self.note(source, Some(name), &lack);
        }
        open
    }

    fn lack_of_way(&self, way: &BoundColumn, aliases: &[Aliased<'c>]) -> Option<DeniedTable<'c>> {
        let needed = way.needs.iter().find_map(|need| self.lack_of_need(need));
        needed.or_else(|| match &way.origin {
            BoundOrigin::Value(_) => None,
            BoundOrigin::Sql(sql) => self.lack_of_sql(sql, aliases),
            BoundOrigin::Key { parts, .. } => self.lack_of_parts(way, parts.iter(), aliases),
            BoundOrigin::Fields { fields, .. } => {
                self.lack_of_parts(way, fields.iter().map(|(_, origin)| origin), aliases)
            }
            BoundOrigin::Column { alias, name, .. } => {
                let (_, table) = aliases.iter().find(|(other, _)| other.eq_ignore_ascii_case(alias))?;
                lack_of_column(table, name)
            }
        })
    }

    fn lack_of_parts<'o>(
        &self,
        way: &BoundColumn,
        mut parts: impl Iterator<Item = &'o BoundOrigin>,
        aliases: &[Aliased<'c>],
    ) -> Option<DeniedTable<'c>> {
        let part = |origin: &BoundOrigin| BoundColumn { origin: origin.clone(), needs: Vec::new(), ..way.clone() };
        parts.find_map(|origin| self.lack_of_way(&part(origin), aliases))
    }

    fn lack_of_need(&self, need: &Need) -> Option<DeniedTable<'c>> {
        let table = self.catalog.table(&need.table)?;
        match &need.column {
            Some(column) => lack_of_column(table, column),
            None => table.denied.then(|| DeniedTable::whole(table)),
        }
    }

    /// The first table or column in a piece of SQL that may not be read.
    fn lack_of_sql(&self, sql: &str, outer: &[Aliased<'c>]) -> Option<DeniedTable<'c>> {
        let own = self.aliases(&sql_names::reads(sql, false));
        if let Some((_, table)) = own.iter().find(|(_, table)| table.denied) {
            return Some(DeniedTable::whole(table));
        }
        Self::lack_of_columns(sql, &own, outer)
    }

    fn lack_of_columns(sql: &str, own: &[Aliased<'c>], outer: &[Aliased<'c>]) -> Option<DeniedTable<'c>> {
        let all = || own.iter().chain(outer);
        sql_names::names(sql).iter().find_map(|name| match &name.parts[..] {
            [alias, column] => {
                let (_, table) = all().find(|(other, _)| other.eq_ignore_ascii_case(alias))?;
                lack_of_column(table, column)
            }
            // Without an alias, it belongs to any table that has it; preferably one that we may read.
            [column] if !all().any(|(_, table)| table.readable(column).is_some()) => {
                all().find_map(|(_, table)| lack_of_column(table, column))
            }
            _ => None,
        })
    }

    /// Finds the denied table or columns that prevent reading the rows of a query, because other tables' rows depend on
    /// them.
    fn lack_of_from(&self, source: &BoundSource) -> Option<DeniedTable<'c>> {
        let BoundFrom::Query(sql) = &source.from else { return None };
        let reads = sql_names::reads(sql, true);
        for read in &reads {
            let Some(table) = self.catalog.table(&read.table) else { continue };
            if table.denied && !can_be_without(source, sql, read) {
                return Some(DeniedTable::whole(table));
            }
        }
        let mut open = self.aliases(&reads);
        let is_union = is_union(sql);
        open.retain(|(_, table)| !table.denied && (!is_union || !table.columns.iter().any(|c| c.denied)));
        Self::lack_of_columns(sql, &open, &[])
    }

    /// Replaces each unreadable table in a query by an empty one; in a union also by one without the values of
    /// unreadable columns.
    fn veil(&mut self, source: &mut BoundSource) {
        let BoundFrom::Query(sql) = &source.from else { return };
        let mut veiled = sql.clone();
        let mut lacks = Vec::new();
        for read in sql_names::reads(sql, true).iter().rev() {
            let Some(table) = self.catalog.table(&read.table) else { continue };
            let named = sql_names::names(sql);
            let is_named = |c: &&CatalogColumn| named.iter().any(|name| name.parts.last() == Some(&c.name));
            let closed: Vec<&str> =
                table.columns.iter().filter(|c| c.denied).filter(is_named).map(|c| c.name.as_str()).collect();
            let (lack, rows) = if table.denied {
                (DeniedTable::whole(table), "WHERE false".to_owned())
            } else if is_union(sql) && !closed.is_empty() {
                (DeniedTable { table, columns: closed }, format!("FROM {}", &sql[read.place.0..read.place.1]))
            } else {
                continue;
            };
            let column = |c: &CatalogColumn| match quote(&c.name) {
                name if c.denied => format!("NULL::{} AS {name}", c.declared),
                name => name,
            };
            let columns: Vec<String> = table.columns.iter().map(column).collect();
            let alias = if read.renamed { String::new() } else { format!(" AS {}", quote(&read.alias)) };
            veiled.replace_range(read.place.0..read.place.1, &format!("(SELECT {} {rows}){alias}", columns.join(", ")));
            lacks.push((lack, read.outer));
        }
        source.from = BoundFrom::Query(veiled);
        for (lack, outer) in lacks {
            // An outer join drops no rows; its columns have been noted.
            if !outer {
                self.note(source, None, &lack);
            }
        }
    }

    fn vector(&mut self, source: &mut BoundSource, main: &'c CatalogTable) {
        let Some(vector) = &source.vector else { return };
        let lack = match &vector.beside {
            Some(VectorsBeside { table: Some((schema, name)), key, .. }) => {
                let table = self.catalog.exactly(schema, name);
                let mut named = key.iter().map(|(key, _)| key).chain([&vector.column]);
                table.and_then(|table| named.find_map(|name| lack_of_column(table, name)))
            }
            Some(VectorsBeside { query, .. }) => query.as_ref().and_then(|sql| self.lack_of_sql(sql, &[])),
            None => lack_of_column(main, &vector.column),
        };
        if let Some(lack) = lack {
            self.note(source, Some("vector"), &lack);
            source.vector = None;
        }
    }

    fn aliases(&self, reads: &[ReadTable]) -> Vec<Aliased<'c>> {
        reads.iter().filter_map(|read| Some((read.alias.clone(), self.catalog.table(&read.table)?))).collect()
    }
}

fn lack_of_column<'c>(table: &'c CatalogTable, name: &str) -> Option<DeniedTable<'c>> {
    let column = table.column(name).filter(|c| c.denied)?;
    Some(if table.denied { DeniedTable::whole(table) } else { DeniedTable { table, columns: vec![&column.name] } })
}

/// Whether a query is a union of several tables.
fn is_union(sql: &str) -> bool {
    sql_names::names(sql).iter().any(|name| name.parts == ["union"])
}

/// Whether the rows of a query are correct without a table: it is outer-joined, it is one of a union, or the layout
/// says which columns come from it.
fn can_be_without(source: &BoundSource, sql: &str, read: &ReadTable) -> bool {
    let of_it = |need: &Need| need.table.eq_ignore_ascii_case(&read.table);
    read.outer || is_union(sql) || source.columns.iter().flatten().any(|way| way.needs.iter().any(of_it))
}
