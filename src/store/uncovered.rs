//! Stores in the database that no layout reads here: those in a schema outside the search path, and tables with the columns
//! of a table that is read, under another name.

use std::collections::{BTreeMap, HashMap};

use super::dialect::quote;
use super::{Store, own, search_path_of_url, with_search_path};
use crate::layout::{Catalog, CatalogTable, Engine, builtin, recognise};
use crate::memory::Entity;

/// Fewest columns by which a table is recognised as a copy of another.
const TELLING: usize = 4;

/// A store that is not read.
#[derive(Debug)]
pub struct UncoveredStore {
    /// Names its tables for people.
    pub tables: Vec<String>,
    /// Entities that it holds.
    pub entities: Vec<Entity>,
    /// Reason why it is not read.
    pub reason: String,
    /// Remedy.
    pub remedy: String,
    /// Whether it is outside the search path.
    pub is_hidden: bool,
}

impl Store {
    /// The stores of known layouts that are in the database and not read. Computed once, since every missing entity asks
    /// for them.
    pub fn uncovered(&self) -> &[UncoveredStore] {
        self.uncovered.get_or_init(|| {
            let mut found = self.hidden_stores();
            let copies = self.copies(&found);
            found.extend(copies);
            found
        })
    }

    /// Stores of known layouts in schemas outside the search path.
    fn hidden_stores(&self) -> Vec<UncoveredStore> {
        let mut schemas: BTreeMap<&str, Catalog> = BTreeMap::new();
        let is_hidden = |table: &&CatalogTable| self.engine() == Engine::Postgres && !table.visible;
        for table in self.catalog.tables.iter().filter(is_hidden) {
            let inside = schemas.entry(&table.schema).or_default();
            inside.tables.push(CatalogTable { visible: true, ..table.clone() });
        }
        schemas.iter().flat_map(|(schema, inside)| self.hidden_in(schema, inside)).collect()
    }

    /// The stores in a schema, whose tables are these.
    fn hidden_in(&self, schema: &str, inside: &Catalog) -> Vec<UncoveredStore> {
        let layouts = builtin::fitting(Engine::Postgres, inside).unwrap_or_default();
        let mut found = Vec::new();
        for layout in layouts.iter().filter(|layout| layout.name != builtin::TRAIL) {
            let read = recognise(std::slice::from_ref(layout), Engine::Postgres, inside).sources;
            let mut places: Vec<_> = read.into_iter().map(|source| source.table).collect();
            places.sort_unstable();
            places.dedup();
            let tables = places.iter().filter_map(|(schema, name)| self.catalog.exactly(schema, name));
            let tables: Vec<_> = tables.filter(|table| !self.recognised.uses(table)).map(CatalogTable::title).collect();
            if tables.is_empty() {
                continue;
            }
            let whose = if self.recognised.reads_nothing() { "its tables" } else { "other tables of it" };
            let reason = format!(
                "{whose} fit the layout {}, but are in the schema `{schema}`, which is not in the search path",
                layout.name
            );
            let entities = layout.sources.iter().map(|source| source.entity).collect();
            let remedy = self.way_into(schema, inside);
            found.push(UncoveredStore { tables, entities, reason, remedy, is_hidden: true });
        }
        found
    }

    /// Advice that opens the store in a schema.
    fn way_into(&self, schema: &str, inside: &Catalog) -> String {
        // A role whose search path is set finds the store that is open here no more.
        let option = search_path_of_url(&[schema]).filter(|_| !self.recognised.reads_nothing());
        let path = option.map_or_else(|| with_search_path(&[schema]), |option| format!("open it with {option}"));
        let is_closed = inside.tables.iter().any(|table| table.closed_schema);
        let role = &self.catalog.role;
        let enter = is_closed.then(|| format!("GRANT USAGE ON SCHEMA {} TO {}; ", quote(schema), quote(role)));
        enter.unwrap_or_default() + &path
    }

    /// Tables that have the columns of a table that is read, and are not read themselves.
    fn copies(&self, hidden: &[UncoveredStore]) -> Vec<UncoveredStore> {
        let is_theirs = |table: &&CatalogTable| !own::TABLES.contains(&table.name.to_ascii_lowercase().as_str());
        let own = self.catalog.tables.iter().filter(is_theirs).filter(|table| table.columns.len() >= TELLING);
        let (read, others): (Vec<_>, Vec<_>) = own.partition(|table| self.recognised.uses(table));
        let read: HashMap<Vec<String>, &CatalogTable> = read.into_iter().map(|table| (columns(table), table)).collect();
        let mut found = Vec::new();
        for table in others.into_iter().filter(|table| table.holds_rows()) {
            let title = table.title();
            let is_told = || hidden.iter().any(|store| store.tables.contains(&title));
            let Some(of) = read.get(&columns(table)).filter(|_| !is_told()) else { continue };
            let entities =
                self.recognised.sources.iter().filter(|source| source.table == (of.schema.clone(), of.name.clone()));
            found.push(UncoveredStore {
                entities: entities.map(|source| source.entity).collect(),
                reason: format!("the table {title} has the columns of {} and is not read by any layout", of.title()),
                remedy: "map it in a layout file, and open the database with --layout FILE".to_owned(),
                tables: vec![title],
                is_hidden: false,
            });
        }
        found
    }
}

/// The names of a table's columns, in order.
fn columns(table: &CatalogTable) -> Vec<String> {
    let mut names: Vec<String> = table.columns.iter().map(|column| column.name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names
}
