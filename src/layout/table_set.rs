//! Tables that applications name themselves: a database may hold several sets of them, one for each application.

use super::erase::{EraseRule, HandleColumn, UnownedRows};
use super::pattern::{NameInPlace, is_bare, table_of};
use super::{Catalog, CatalogTable, Layout, Source};

/// The tables of one kind.
pub struct TableKind {
    /// Name in the layout.
    named: String,
    /// Names in the database.
    tables: Vec<String>,
}

impl TableKind {
    /// The table with the name of the layout, and the others of this kind that are found without their schema.
    pub fn of(named: String, fitting: &[&CatalogTable], catalog: &Catalog) -> Self {
        let is_there = catalog.table(&named).is_some();
        let others = || fitting.iter().filter(|table| table.visible && table.name != named && is_bare(&table.name));
        let is_alone = !is_there && others().count() == 1;
        let others = others().filter(|table| is_alone || table.holds_rows()).map(|table| table.name.clone());
        let tables = is_there.then(|| named.clone()).into_iter().chain(others).collect();
        TableKind { named, tables }
    }

    /// The beginning of a table's name before the word that the names of this kind end with: `support` of
    /// `support_sessions`. The whole name if it ends otherwise.
    fn root<'t>(&self, table: &'t str) -> &'t str {
        let word = self.named.rsplit('_').next().unwrap_or_default();
        table.strip_suffix(word).map_or(table, |root| root.trim_end_matches('_'))
    }
}

/// The tables of one application.
#[derive(Default)]
struct TableSet {
    /// The beginning of their names.
    root: String,
    /// The name of each kind in the layout, and in the database.
    tables: Vec<(String, String)>,
}

impl TableSet {
    fn holds(&self, named: &str) -> bool {
        self.tables.iter().any(|(kind, _)| kind == named)
    }

    /// Whether a name that begins so is one of this application's: `support` or `support_sessions` of `support`.
    fn may_begin(&self, root: &str) -> bool {
        let is_longer = || root.strip_prefix(&self.root).is_some_and(|rest| rest.starts_with('_'));
        root == self.root || is_longer() || self.tables.iter().any(|(_, table)| table == root)
    }

    /// Names that replace those in the layout. A kind of which the application has no table gets none.
    fn names(&self, kinds: &[TableKind]) -> Vec<NameInPlace> {
        let of_kind = |kind: &TableKind| {
            let name = self.tables.iter().find(|(named, _)| *named == kind.named).map(|(_, table)| table.clone());
            NameInPlace { mark: kind.named.clone(), name: name.unwrap_or_default() }
        };
        kinds.iter().map(of_kind).collect()
    }

    /// The elements that name a table of the set, with these names.
    fn renamed<'a, T: Clone + PartialEq + 'a>(
        &'a self,
        all: &'a [T],
        kinds: &'a [TableKind],
        put: impl Fn(&NameInPlace, &mut T) + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        let names = self.names(kinds);
        all.iter().filter_map(move |one| {
            let (mut copy, mut is_own) = (one.clone(), false);
            for name in &names {
                let before = copy.clone();
                put(name, &mut copy);
                is_own |= !name.name.is_empty() && before != copy;
            }
            is_own.then_some(copy)
        })
    }
}

/// The sets of some tables. Where a set has no table of a kind, one whose name begins alike joins it.
fn sets(kinds: &[TableKind]) -> Vec<TableSet> {
    if kinds.iter().all(|kind| kind.tables.len() < 2) {
        let only = |kind: &TableKind| Some((kind.named.clone(), kind.tables.first()?.clone()));
        return vec![TableSet { root: String::new(), tables: kinds.iter().filter_map(only).collect() }];
    }
    let mut sets: Vec<TableSet> = Vec::new();
    for kind in kinds {
        let mut tables: Vec<&String> = kind.tables.iter().collect();
        tables.sort_by_key(|table| (kind.root(table).len(), *table));
        for table in tables {
            let (root, named) = (kind.root(table), (kind.named.clone(), table.clone()));
            let fitting = sets.iter_mut().filter(|set| !set.holds(&kind.named) && set.may_begin(root));
            match fitting.max_by_key(|set| set.root.len()) {
                Some(set) => set.tables.push(named),
                None => sets.push(TableSet { root: root.to_owned(), tables: vec![named] }),
            }
        }
    }
    let has_usual = |set: &TableSet| set.tables.iter().any(|(named, table)| named == table);
    sets.sort_by_key(|set| (!has_usual(set), std::cmp::Reverse(set.tables.len())));
    sets
}

/// One more set of tables of a layout.
struct Added {
    sources: Vec<Source>,
    rules: Vec<EraseRule>,
    handles: Vec<HandleColumn>,
    follows: Vec<String>,
    unowned: Vec<UnownedRows>,
}

impl Added {
    fn of(set: &TableSet, kinds: &[TableKind], layout: &Layout) -> Self {
        let is_there = |source: &Source| source.from.aliases().all(|(_, table)| !table.is_empty());
        let sources = set.renamed(&layout.sources, kinds, NameInPlace::source).filter(is_there);
        Added {
            sources: sources.map(|source| labelled(source, layout)).collect(),
            rules: set.renamed(&layout.rules, kinds, NameInPlace::rule).collect(),
            handles: set.renamed(&layout.handles, kinds, NameInPlace::handle).collect(),
            follows: set.renamed(&layout.follows, kinds, NameInPlace::text).collect(),
            unowned: set.renamed(&layout.unowned, kinds, NameInPlace::unowned).collect(),
        }
    }
}

/// Puts the names of the first set of tables into a layout, and repeats what names them for each other set.
pub fn spell_out(kinds: &[TableKind], layout: &mut Layout) {
    let sets = sets(kinds);
    let Some((first, others)) = sets.split_first() else { return };
    let added: Vec<Added> = others.iter().map(|set| Added::of(set, kinds, layout)).collect();
    first.names(kinds).iter().filter(|name| !name.name.is_empty()).for_each(|name| name.layout(layout));
    for Added { sources, rules, handles, follows, unowned } in added {
        layout.sources.extend(sources);
        layout.rules.extend(rules);
        layout.handles.extend(handles);
        layout.follows.extend(follows);
        layout.unowned.extend(unowned);
    }
}

/// The source with its table in its label, unless that tells it from those of other sets.
fn labelled(mut source: Source, layout: &Layout) -> Source {
    if layout.sources.iter().any(|other| other.label == source.label) {
        source.label = format!("{} of {}", source.label, table_of(&source));
    }
    source
}

#[cfg(test)]
mod tests {
    use super::{TableKind, sets};

    fn kinds(tables: &[(&str, &[&str])]) -> Vec<TableKind> {
        let kind = |(named, tables): &(&str, &[&str])| TableKind {
            named: (*named).to_owned(),
            tables: tables.iter().map(|table| (*table).to_owned()).collect(),
        };
        tables.iter().map(kind).collect()
    }

    #[test]
    fn tables_whose_names_begin_alike_are_one_applications() {
        let of = |tables: &[(&str, &[&str])]| -> Vec<String> {
            let joined =
                |set: super::TableSet| set.tables.into_iter().map(|(_, table)| table).collect::<Vec<_>>().join(" ");
            sets(&kinds(tables)).into_iter().map(joined).collect()
        };
        let (memories, sessions, runs) = ("a_memories", "a_sessions", "a_runs");
        assert_eq!(of(&[(memories, &["notes"]), (sessions, &[]), (runs, &["a_runs"])]), ["notes a_runs"]);
        let twice = of(&[
            (memories, &["a_memories", "b_memories"]),
            (sessions, &["a_sessions", "b_sessions"]),
            (runs, &["a_runs", "b_sessions_runs"]),
        ]);
        assert_eq!(twice, ["a_memories a_sessions a_runs", "b_memories b_sessions b_sessions_runs"]);
        let within = of(&[
            (memories, &["b_c_memories", "b_memories"]),
            (sessions, &["b_c_sessions", "b_sessions"]),
            (runs, &["b_c_sessions_runs", "b_sessions_runs"]),
        ]);
        assert_eq!(within, ["b_memories b_sessions b_sessions_runs", "b_c_memories b_c_sessions b_c_sessions_runs"]);
        let unlike = of(&[
            (memories, &["a_memories"]),
            (sessions, &["chats", "talks"]),
            (runs, &["chats_runs", "sessions_runs"]),
        ]);
        assert_eq!(unlike, ["a_memories", "chats chats_runs", "talks", "sessions_runs"]);
    }
}
