//! Rows that belong to a person: from the owner columns over every hop, to a fixed point.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::column_words::{NamingColumns, is_of_people};
use super::id_set::IdSet;
use super::subject;
use super::taken::{GoingRows, TakenRows, ranges, room};
use super::together::HeldMembers;
use crate::change::ChangeError;
use crate::layout::StoredAs;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::memory::entity::named_in_list;
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::pages::PageStore;
use crate::memory::sieve::WordSieve;
use crate::memory::{Entity, ValueKind};
use crate::store::Store;
use crate::store::container;
use crate::store::encode::{LocatedRow, key_columns, plain_column, table_of};
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::foreign_keys::{ForeignKey, OnDelete};
use crate::store::relations::Relations;
use crate::store::row_list::{RowList, row_digest};
use crate::store::row_number::is_numbered;
use crate::store::shape::Comparison;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{StoredRows, TableName};
use crate::store::within::{is_path_alone, texts_of};

/// Ids of rows that the same erasure deletes in other databases, by layout.
pub type CarriedIds = BTreeMap<String, BTreeSet<String>>;

/// All rows to delete, by table.
#[derive(Debug)]
pub struct Graph {
    /// Rows by table.
    pub tables: BTreeMap<TableName, TakenRows>,
    /// The rules in force: the layout's, and those that foreign keys imply where the layout says nothing.
    pub rules: Vec<BoundRule>,
    /// Relations between the tables.
    pub relations: Relations,
    /// Columns with the ids of a table's rows, as the layout says; keys may use other columns.
    ids: BTreeMap<TableName, BTreeSet<String>>,
    /// Rows without a key whose column names the person.
    pub(super) owned: BTreeMap<TableName, OwnedRows>,
    /// Places where the person owns rows and other people's ids may also be: separators of parts, and tables.
    pub owning: BTreeSet<String>,
    /// Storage for the rows.
    pages: PageStore,
    /// Number of rows after which the search stops.
    most: usize,
    /// Number of rows to delete, by table, before any is added for its contents; `None` until `end_own`.
    own: Option<BTreeMap<TableName, usize>>,
    /// The person's ids, once rows are deleted for their contents: other people's rows grouped with these stay.
    pub(super) sparing: Option<Vec<String>>,
}

/// Rows without a key that are deleted together, by a column that names the person.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedRows {
    /// The rows, by that column.
    pub rows: StoredRows,
    /// Number of rows.
    pub count: usize,
}

/// Adds a set's size and sums to a hash, under a title.
pub fn hash_set(hash: &mut Sha256, title: &str, sums: [u64; 2], len: usize) {
    hash.update((title.len() as u64).to_le_bytes());
    hash.update(title);
    sums.into_iter().chain([len as u64]).for_each(|number| hash.update(number.to_le_bytes()));
}

impl Graph {
    /// Creates an empty graph with its rules. `account` also includes the person's account.
    pub fn new(store: &Store, rules: &[BoundRule], relations: Relations, account: bool) -> Self {
        let mut rules: Vec<BoundRule> = rules.iter().filter(|r| account || !r.account).cloned().collect();
        for rule in &mut rules {
            rule.to = rule.to.take().or_else(|| id_of_several(store, &relations, rule.of.as_ref()?));
        }
        let erasing: HashSet<TableKey> =
            rules.iter().filter(|r| r.action == EraseAction::Delete).map(|r| r.table.clone()).collect();
        let mut ids: BTreeMap<TableName, BTreeSet<String>> = BTreeMap::new();
        for source in &store.recognised().sources {
            let id = plain_column(source, "id").map(|(name, _)| name.to_owned());
            ids.entry(table_of(source)).or_default().extend(id);
        }
        let mapped = mapped_links(store, &relations, &rules);
        rules.extend(mapped);
        let listing = mapped_lists(store, &rules);
        rules.extend(listing);
        let mut graph = Graph {
            tables: BTreeMap::new(),
            rules,
            relations,
            ids,
            owned: BTreeMap::new(),
            owning: BTreeSet::new(),
            pages: room(),
            most: usize::MAX,
            own: None,
            sparing: None,
        };
        graph.reach(erasing);
        graph
    }

    /// The rows of the person's account that an erasure keeps: all, or none if the account goes too.
    ///
    /// # Errors
    /// As [`Graph::close`].
    pub async fn of_account(
        snapshot: &mut Snapshot<'_>,
        relations: Relations,
        goes: bool,
        subject: &[String],
    ) -> Result<Self, ChangeError> {
        let mut account = Graph::new(snapshot.store, &[], relations, true);
        let rules = snapshot.store.recognised().erasure.rules.iter().filter(|r| r.account && !goes);
        account.rules = rules.cloned().collect();
        account.close(snapshot, subject).await?;
        Ok(account)
    }

    /// Stops the search when more rows than `most` are to be deleted.
    pub fn within(self, most: usize) -> Self {
        Graph { most, ..self }
    }

    /// Ends the rows that belong to the person: rows added later are deleted for their contents, or depend on such
    /// rows.
    pub(super) fn end_own(&mut self) {
        let counts = || self.tables.iter().map(|(table, taken)| (table.clone(), taken.len())).collect();
        self.own = Some(self.own.take().unwrap_or_else(counts));
    }

    /// Number of a table's leading rows that belong to the person.
    pub(super) fn own(&self, table: &TableName) -> usize {
        self.own.as_ref().map_or(usize::MAX, |own| own.get(table).copied().unwrap_or_default())
    }

    /// Storage for what is known of the rows.
    pub(super) fn pages(&self) -> &PageStore {
        &self.pages
    }

    /// Follows foreign keys to the rows of some tables and to rows that cascade from them, to a fixed point.
    pub fn reach(&mut self, mut reached: HashSet<TableKey>) {
        let spoken: HashSet<(TableKey, String)> =
            self.rules.iter().map(|r| (r.table.clone(), r.column.clone())).collect();
        loop {
            let before = reached.len();
            for foreign in &self.relations.foreign {
                let (from, to) = (key_of(&foreign.from), key_of(&foreign.to));
                let same = |r: &BoundRule| {
                    r.table == from && r.of.as_ref() == Some(&to) && foreign.columns.contains(&r.column)
                };
                let spoken = matches!(&foreign.columns[..], [one] if spoken.contains(&(from.clone(), one.clone())));
                if !reached.contains(&to) || spoken || self.rules.iter().any(same) {
                    continue;
                }
                let Some(rule) = implied(foreign, &self.relations, from, to) else { continue };
                if rule.action == EraseAction::Delete {
                    reached.insert(rule.table.clone());
                }
                self.rules.push(rule);
            }
            if reached.len() == before {
                break;
            }
        }
    }

    /// Adds the keys of all rows to delete to a hash, by table.
    pub fn hash_rows(&self, hash: &mut Sha256) {
        for (table, taken) in &self.tables {
            hash_set(hash, &table.title(), taken.sums(), taken.len());
        }
    }

    /// The rows of a table to delete; `None` if there are none.
    pub fn taken(&self, table: &TableName) -> Option<&TakenRows> {
        self.tables.get(table)
    }

    /// The rows to delete of a table and of the tables through which its rows are also seen, such as partitions; tables
    /// without such rows are left out.
    pub fn taken_through<'g>(&'g self, table: &'g TableName) -> impl Iterator<Item = &'g TakenRows> {
        let tables = std::iter::successors(Some(table), |table| self.relations.inside.get(*table));
        tables.filter_map(|table| self.taken(table)).filter(|taken| !taken.is_empty())
    }

    /// Whether a row is to be deleted.
    pub fn has(&self, table: &TableName, key: &[FetchedValue]) -> bool {
        self.taken_through(table).any(|taken| taken.has(key))
    }

    /// The key of a located row, in the form that the graph uses for its table.
    pub fn key_of(&self, row: &LocatedRow<'_>) -> Vec<FetchedValue> {
        let by = self.relations.keys.get(&row.table());
        let key = by.and_then(|by| by.iter().map(|column| row.image.get(column).cloned()).collect::<Option<Vec<_>>>());
        key.filter(|key| !key.is_empty()).unwrap_or_else(|| row.key.iter().map(|(_, value)| value.clone()).collect())
    }

    /// Whether one of these stored rows is to be deleted, as far as they are given by the table's key or by their ids.
    pub fn has_one_of(&self, rows: &StoredRows) -> bool {
        let places = |key: &[String]| -> Option<Vec<usize>> {
            key.iter().map(|k| rows.by.iter().position(|column| column == k)).collect()
        };
        if let Some(places) = self.relations.keys.get(&rows.table).filter(|key| !key.is_empty()).and_then(|k| places(k))
        {
            return rows.keys.iter().any(|values| {
                let key: Vec<FetchedValue> = places.iter().filter_map(|i| values.get(*i).cloned()).collect();
                self.has(&rows.table, &key)
            });
        }
        let ([column], Some(taken)) = (&rows.by[..], self.taken(&rows.table)) else { return false };
        let named: HashSet<String> = rows.keys.iter().filter_map(|values| as_text(values.first()?)).collect();
        taken.values(column, 0..taken.len()).any(|id| as_text(&id).is_some_and(|id| named.contains(&id)))
    }

    /// The list of a table's rows, created empty if missing.
    pub fn table(&mut self, table: &TableName) -> &mut TakenRows {
        let key = self.relations.keys.get(table).cloned().unwrap_or_default();
        let (rules, ids, relations) = (&self.rules, self.ids.get(table), &self.relations);
        self.tables.entry(table.clone()).or_insert_with(|| {
            let mut columns = key.clone();
            let mut also = |column: &String| {
                if !columns.contains(column) {
                    columns.push(column.clone());
                }
            };
            ids.into_iter().flatten().for_each(&mut also);
            for rule in rules {
                if rule.of.as_ref().map(TableName::of).as_ref() == Some(table) {
                    rule.to.iter().chain(rule.also.iter().map(|(_, to)| to)).for_each(&mut also);
                    rule.holds.iter().flat_map(|held| [&held.key, &held.value]).for_each(&mut also);
                }
                if TableName::of(&rule.table) == *table
                    && (rule.action == EraseAction::Reparent || rule.recompute.is_some())
                {
                    also(&rule.column);
                }
            }
            relations
                .carrying()
                .filter(|carrying| carrying.to == *table)
                .flat_map(|key| &key.to_columns)
                .for_each(also);
            TakenRows::new(key, columns, &self.pages)
        })
    }

    /// Ranges of the rows from whose values a rule finds others, starting at number `from`; one empty range for a rule
    /// that names the person.
    pub fn parts(&self, rule: &BoundRule, from: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let alone = rule.of.is_none().then_some(0..0);
        ranges(from..self.leading(rule)).chain(alone)
    }

    /// Number of rows to delete in the table that a rule leads from.
    pub(super) fn leading(&self, rule: &BoundRule) -> usize {
        rule.of.as_ref().and_then(|of| self.taken(&TableName::of(of))).map_or(0, TakenRows::len)
    }

    /// Returns the keys, of one or more values, by which a rule's columns name the person or one of the given rows.
    pub fn named_by(&self, rule: &BoundRule, subject: &[String], rows: Range<usize>) -> Vec<Vec<FetchedValue>> {
        let Some(of) = &rule.of else { return subject.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect() };
        let Some(taken) = self.tables.get(&TableName::of(of)) else { return Vec::new() };
        let Some(to) = rule.to.as_ref().or(taken.key.first()) else { return Vec::new() };
        if rule.also.is_empty() {
            return taken.values(to, rows).map(|value| vec![value]).collect();
        }
        let columns = [to].into_iter().chain(rule.also.iter().map(|(_, to)| to));
        let at: Option<Vec<usize>> = columns.map(|name| taken.place(name)).collect();
        let Some(at) = at else { return Vec::new() };
        let key = |row: RawRow| at.iter().map(|at| row.get(*at).cloned()).collect::<Option<Vec<FetchedValue>>>();
        let whole = |key: &Vec<FetchedValue>| !key.contains(&FetchedValue::Null);
        taken.rows(rows).filter_map(key).filter(whole).collect()
    }

    /// Returns how each column of a rule is compared with the column it names.
    pub(super) fn compared(&self, rule: &BoundRule) -> Vec<Option<Comparison>> {
        let table = TableName::of(&rule.table);
        let Some(of) = rule.of.as_ref().map(TableName::of) else {
            return vec![self.relations.comparison_of_owner(&table, &rule.column)];
        };
        let Some(to) = rule.to.as_ref().or_else(|| self.relations.keys.get(&of)?.first()) else { return Vec::new() };
        let pairs = std::iter::once((&rule.column, to)).chain(rule.also.iter().map(|(own, to)| (own, to)));
        pairs.map(|(own, to)| self.relations.comparison((&table, own), (&of, to))).collect()
    }

    /// The texts by which a rule's column names the person or a row to delete.
    pub fn texts_by(&self, rule: &BoundRule, subject: &[String], from: usize) -> IdSet {
        let mut texts = IdSet::new(&self.pages);
        for part in self.parts(rule, from) {
            let keys = self.named_by(rule, subject, part);
            keys.iter().filter_map(|key| as_text(key.first()?)).for_each(|text| texts.insert(&text));
        }
        texts
    }

    /// Adds the rows that name one of some rows in databases of other layouts, by layout, which are deleted too.
    ///
    /// # Errors
    /// As [`Graph::close`].
    pub(super) async fn take_carried(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        carried: &CarriedIds,
    ) -> Result<(), ChangeError> {
        for far in &snapshot.store.recognised().erasure.far {
            let Some(ids) = carried.get(&far.layout) else { continue };
            let rule = BoundRule::hanging(far.table.clone(), far.column.clone(), far.table.clone());
            if self.is_passed_over(&rule)? {
                continue;
            }
            let keys: Vec<RawRow> = ids.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
            let taken = self.table(&TableName::of(&far.table));
            let columns = taken.columns.clone();
            naming(snapshot, (&rule, &[]), &columns, &keys, &[], |row| taken.add(&row)).await?;
        }
        Ok(())
    }

    /// Follows the rules that delete rows to a fixed point. Conditions do not see rows deleted for their contents.
    ///
    /// # Errors
    /// The engine's refusal, a table without a key, or no room for data that does not fit in memory.
    pub async fn close(&mut self, snapshot: &mut Snapshot<'_>, subject: &[String]) -> Result<(), ChangeError> {
        self.take_parts(snapshot, subject).await?;
        let follows = |rule: &&BoundRule| rule.action == EraseAction::Delete && rule.owner.is_none();
        let rules: Vec<BoundRule> = self.rules.iter().filter(follows).cloned().collect();
        let mut done: HashMap<usize, usize> = HashMap::new();
        self.owned.clear();
        loop {
            self.follow_all(snapshot, &rules, subject, &mut done).await?;
            if !self.leave_out(snapshot).await? {
                return self.check();
            }
            // A condition that did not hold before may hold now.
            done.retain(|i, _| rules[*i].when.is_none());
        }
    }

    /// Follows some rules to a fixed point. `done` holds for each rule by index from how many rows it was followed.
    pub(super) async fn follow_all(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        rules: &[BoundRule],
        subject: &[String],
        done: &mut HashMap<usize, usize>,
    ) -> Result<(), ChangeError> {
        loop {
            let mut grown = false;
            for (i, rule) in rules.iter().enumerate() {
                if rule.of.is_none() && done.contains_key(&i) || self.is_full() {
                    continue;
                }
                let from = done.insert(i, self.leading(rule)).unwrap_or(0);
                grown |= self.follow(snapshot, rule, subject, from).await?;
            }
            if !grown {
                return Ok(());
            }
        }
    }

    /// A graph with these rules and without rows.
    pub(super) fn emptied(&self) -> Graph {
        let (rules, relations, ids) = (self.rules.clone(), self.relations.clone(), self.ids.clone());
        let (tables, owned, owning) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (pages, most, own, sparing) = (room(), self.most, None, self.sparing.clone());
        Graph { tables, rules, relations, ids, owned, owning, pages, most, own, sparing }
    }

    /// Evaluates conditions as if rows deleted for their contents, and their dependents, did not exist. Returns whether
    /// there are more such rows than before.
    async fn leave_out(&self, snapshot: &mut Snapshot<'_>) -> Result<bool, ChangeError> {
        if self.own.is_none() {
            return Ok(false);
        }
        let read = snapshot.tables_read(self.rules.iter().filter_map(|rule| rule.when.as_deref()));
        let gone = |table: TableName| {
            let taken = self.taken(&table).filter(|taken| !taken.key.is_empty())?;
            let keys = taken.keys(self.own(&table).min(taken.len())..taken.len()).collect();
            Some(StoredRows { table, by: taken.key.clone(), keys })
        };
        Ok(snapshot.leave_out(read.into_iter().filter_map(gone).collect()).await?)
    }

    /// Adds rows that depend on rows already deleted, because they were written since. Returns the graph of both, with
    /// only the keys of the deleted rows. Row numbers are skipped, since the engine may have reused them.
    ///
    /// # Errors
    /// As [`Graph::close`].
    pub async fn take_late(&mut self, snapshot: &mut Snapshot<'_>, gone: &[GoingRows]) -> Result<Graph, ChangeError> {
        let mut led = self.emptied();
        for rows in gone.iter().filter(|rows| !is_numbered(&rows.by)) {
            let taken = led.table(&rows.table);
            let (same, columns) = (taken.key == rows.by, taken.columns.len());
            for mut key in rows.all_keys().filter(|_| same) {
                key.resize(columns, FetchedValue::Null);
                taken.add(&key);
            }
        }
        let gone: BTreeMap<TableName, usize> =
            led.tables.iter().map(|(table, taken)| (table.clone(), taken.len())).collect();
        led.close(snapshot, &[]).await?;
        for (table, taken) in &led.tables {
            let first = gone.get(table).copied().unwrap_or_default();
            let own = self.table(table);
            taken.rows(first..taken.len()).for_each(|row| own.add(&row));
        }
        Ok(led)
    }

    /// Adds rows that contain the person's id as part of a value: those owned by the person, and the others unless they
    /// name someone else at a place where the person owns rows, or the part is a short number or word.
    async fn take_parts(&mut self, snapshot: &mut Snapshot<'_>, subject: &[String]) -> Result<(), ChangeError> {
        let (parts, whole): (Vec<BoundRule>, Vec<BoundRule>) =
            self.rules.iter().filter(|r| names_owner(r)).cloned().partition(|rule| rule.owner.is_some());
        let mut others = Vec::new();
        let mut owning = std::mem::take(&mut self.owning);
        for rule in &parts {
            let (table, texts) = (TableName::of(&rule.table), self.texts_by(rule, subject, 0));
            if texts.is_empty() || self.is_passed_over(rule)? {
                continue;
            }
            let whole: Vec<&BoundRule> = whole.iter().filter(|other| other.table == rule.table).collect();
            let (mut here, mut elsewhere) = (RowList::new(&self.pages), RowList::new(&self.pages));
            let taken = self.table(&table);
            let mut columns = taken.columns.clone();
            columns.push(rule.column.clone());
            columns.extend(whole.iter().map(|rule| rule.column.clone()));
            let read = taken.columns.len();
            by_path_rows(snapshot, rule, &columns, &texts, subject, |row| {
                let (row, named) = row.split_at(read);
                let is_other = |id: &String| !id.is_empty() && !texts.contains(id);
                let parts = texts_of(&named[0], &rule.inside);
                let tells = |part: &String| texts.contains(part) && (parts.len() == 1 || subject::tells_anywhere(part));
                if within(&named[0], rule).iter().any(|id| texts.contains(id)) {
                    owning.extend(rule.inside.by.clone());
                    taken.add(row);
                } else if !parts.iter().any(tells) {
                    // A short number or word may also be someone else's.
                } else if whole.iter().zip(&named[1..]).any(|(rule, raw)| within(raw, rule).iter().any(is_other)) {
                    elsewhere.push(row);
                } else {
                    here.push(row);
                }
            })
            .await?;
            others.push((rule, whole, here, elsewhere));
        }
        for (rule, whole, here, elsewhere) in others {
            if rule.inside.by.as_ref().is_some_and(|by| owning.contains(by)) {
                continue;
            }
            let table = TableName::of(&rule.table);
            if !elsewhere.is_empty() && owns_by(snapshot, &whole, subject).await? {
                owning.insert(table.title());
            }
            let taken = self.table(&table);
            here.iter().for_each(|row| taken.add(&row));
            if !owning.contains(&table.title()) {
                elsewhere.iter().for_each(|row| taken.add(&row));
            }
        }
        self.owning = owning;
        Ok(())
    }

    /// Checks whether all data that does not fit in memory could be written and read.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> Result<(), ChangeError> {
        Ok(self.pages.check()?)
    }

    /// Number of rows to delete, without those that have no key.
    pub(super) fn going(&self) -> usize {
        self.tables.values().map(TakenRows::len).sum()
    }

    /// Whether more rows are to be deleted than the search may find.
    pub(super) fn is_full(&self) -> bool {
        self.going() > self.most
    }

    /// Adds the rows that a rule finds from the rows to delete, from number `from` on. Returns whether any were added.
    pub(super) async fn follow(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        rule: &BoundRule,
        subject: &[String],
        from: usize,
    ) -> Result<bool, ChangeError> {
        let table = TableName::of(&rule.table);
        let before = self.table(&table).len();
        if !rule.inside.is_whole() {
            let texts = self.texts_by(rule, subject, from);
            if texts.is_empty() || self.is_passed_over(rule)? {
                return Ok(false);
            }
            let taken = self.table(&table);
            let columns = taken.columns.clone();
            by_path_rows(snapshot, rule, &columns, &texts, subject, |row| taken.add(&row)).await?;
            return Ok(self.table(&table).len() > before);
        }
        for part in self.parts(rule, from) {
            let held = HeldMembers::of(self, rule, part.clone());
            let keys = self.named_by(rule, subject, part);
            let keys = self.unshared(snapshot, rule, keys).await?;
            if keys.is_empty() || self.is_full() {
                continue;
            }
            let compared = self.compared(rule);
            if self.is_passed_over(rule)? {
                if self.owner_of(&table) == Some(rule) {
                    self.take_owned(snapshot, rule, &keys).await?;
                }
                continue;
            }
            let taken = self.table(&table);
            let (mut columns, read) = (taken.columns.clone(), taken.columns.len());
            columns.extend(names_owner(rule).then(|| rule.column.clone()));
            let own = columns.len();
            columns.extend(held.iter().flat_map(|held| held.columns.iter().cloned()));
            let take = |row: RawRow| {
                let (row, named) = row.split_at(own.min(row.len()));
                let (row, owner) = row.split_at(read.min(row.len()));
                if held.as_ref().is_none_or(|held| held.are_in(named)) {
                    taken.add_owned(row, owner.first().and_then(as_text).is_some_and(|id| subject.contains(&id)));
                }
            };
            naming(snapshot, (rule, &compared), &columns, &keys, subject, take).await?;
        }
        Ok(self.table(&table).len() > before)
    }

    /// Adds the rows without a key whose column names the person, by that column.
    async fn take_owned(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        rule: &BoundRule,
        keys: &[Vec<FetchedValue>],
    ) -> Result<(), ChangeError> {
        let (table, by) = (TableName::of(&rule.table), vec![rule.column.clone()]);
        let (mut count, mut named): (usize, Vec<RawRow>) = (0, Vec::new());
        let take = |row: RawRow| {
            count += 1;
            if !named.contains(&row) {
                named.push(row);
            }
        };
        naming(snapshot, (rule, &[]), &by, keys, &[], take).await?;
        let rows = StoredRows { table: table.clone(), by, keys: named };
        self.owned.insert(table, OwnedRows { rows, count });
        Ok(())
    }

    /// The rule by which a single column says that a table's rows are the person's. `None` if there are several such
    /// columns, since a row may then also be someone else's, or if other rows refer to the table.
    fn owner_of(&self, table: &TableName) -> Option<&BoundRule> {
        if self.relations.foreign.iter().any(|reference| reference.to == *table) {
            return None;
        }
        let mut owners = self.owner_rules(table);
        let (first, second) = (owners.next()?, owners.next());
        let alone = first.owner.is_none() && first.inside.is_whole() && first.when.is_none();
        (second.is_none() && alone && self.compared(first).iter().all(Option::is_none)).then_some(first)
    }

    /// The rules by which a column names the owner of a table's rows.
    pub fn owner_rules(&self, table: &TableName) -> impl Iterator<Item = &BoundRule> {
        self.rules.iter().filter(move |rule| names_owner(rule) && TableName::of(&rule.table) == *table)
    }

    /// Passes some columns of the rows without a key that the engine deletes by cascade to `take`, each row once. Rows
    /// deleted for their owner are not included.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_carried(
        &self,
        snapshot: &mut Snapshot<'_>,
        table: &TableName,
        columns: &[String],
        mut take: impl FnMut(&[FetchedValue]) + Send,
    ) -> Result<(), ChangeError> {
        let carrying: Vec<&ForeignKey> = self.relations.carrying().filter(|key| key.from == *table).collect();
        let owned = self.owned.get(table).map(|owned| &owned.rows);
        let mut read = columns.to_vec();
        let mut place = |names: &[String]| {
            read.extend(names.iter().cloned());
            read.len() - names.len()..read.len()
        };
        let owner = place(owned.map_or(&[][..], |rows| &rows.by[..]));
        let places: Vec<Range<usize>> = carrying.iter().map(|key| place(&key.columns)).collect();
        let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
        // Keys already followed: their rows were passed on.
        let mut seen: Vec<(&Range<usize>, DigestSet)> = Vec::new();
        for (key, own) in carrying.into_iter().zip(&places) {
            let Some(taken) = self.taken(&key.to) else { continue };
            let to: Option<Vec<usize>> = key.to_columns.iter().map(|column| taken.place(column)).collect();
            let Some(to) = to else { continue };
            let pairs = key.columns.iter().zip(&key.to_columns);
            let compared: Vec<Option<Comparison>> =
                pairs.map(|(own, to)| self.relations.comparison((table, own), (&key.to, to))).collect();
            let mut named = DigestSet::new(&self.pages);
            for range in ranges(0..taken.len()) {
                let values = |row: RawRow| to.iter().map(|at| row.get(*at).cloned()).collect::<Option<RawRow>>();
                let keys = taken.rows(range).filter_map(values).filter(|key| !key.contains(&FetchedValue::Null));
                let keys: Vec<RawRow> = keys.filter(|key| named.insert(row_digest(key))).collect();
                let each = |row: RawRow| {
                    let is_owned = owned.is_some_and(|rows| rows.keys.iter().any(|key| **key == row[owner.clone()]));
                    let was =
                        |(at, named): &(&Range<usize>, DigestSet)| named.contains(row_digest(&row[(*at).clone()]));
                    if !is_owned && !seen.iter().any(was) {
                        take(&row[..columns.len()]);
                    }
                };
                snapshot.each_compared(wanted, (&key.columns, &compared), &keys, each).await?;
            }
            seen.push((own, named));
        }
        self.check()
    }

    /// Whether a rule's rows need not be added because the engine deletes them by cascade.
    fn is_passed_over(&mut self, rule: &BoundRule) -> Result<bool, ChangeError> {
        let table = TableName::of(&rule.table);
        if !self.table(&table).key.is_empty() {
            return Ok(false);
        }
        if self.cascades(rule) {
            return Ok(true);
        }
        Err(ChangeError::Refused(format!("{} has no primary key that identifies its rows", table.title())))
    }

    /// Whether the engine deletes the rows of a rule's table by cascade with the rows they refer to; then they need no
    /// key. For a rule that names the person, any rows left over are found afterwards.
    fn cascades(&self, rule: &BoundRule) -> bool {
        let of = rule.of.as_ref().map(TableName::of);
        let goes = |table: &TableName| {
            self.rules.iter().any(|r| r.action == EraseAction::Delete && TableName::of(&r.table) == *table)
        };
        let same = |f: &&ForeignKey| {
            f.from == TableName::of(&rule.table)
                && of.as_ref().map_or_else(|| goes(&f.to), |of| f.to == *of && f.columns.contains(&rule.column))
        };
        self.relations.foreign.iter().filter(same).any(|f| f.on_delete == OnDelete::Cascade)
    }

    /// Tables whose rows to delete refer to each other, grouped by circle.
    pub fn circles(&self) -> Vec<Vec<TableName>> {
        let tables: Vec<TableName> =
            self.tables.iter().filter(|(_, t)| !t.is_empty()).map(|(name, _)| name.clone()).collect();
        let foreign: Vec<(TableName, TableName)> =
            self.relations.foreign.iter().map(|f| (f.from.clone(), f.to.clone())).collect();
        let mut circles: Vec<Vec<TableName>> = Vec::new();
        for table in &tables {
            let before = leading_to(&foreign, &tables, table);
            if before.contains(table) && !circles.iter().flatten().any(|known| known == table) {
                let back = |other: &&&TableName| leading_to(&foreign, &tables, other).contains(table);
                circles.push(before.iter().filter(back).map(|other| (*other).clone()).collect());
            }
        }
        circles
    }

    /// Whether rows that belong to the person can be deleted before rows deleted for their contents: no foreign key
    /// leads from the latter to the former, except by a rule that makes the referring row the person's too, and none is
    /// in a circle with some.
    pub fn own_can_go_first(&self, circles: &[Vec<TableName>]) -> bool {
        let is_chosen = |table: &TableName| self.taken(table).is_some_and(|taken| taken.len() > self.own(table));
        let waits = |circle: &&Vec<TableName>| circle.iter().any(is_chosen);
        let waiting: Vec<&TableName> = circles.iter().filter(waits).flatten().collect();
        let goes_first =
            |table: &TableName| self.taken(table).is_some() && self.own(table) > 0 && !waiting.contains(&table);
        let takes_along = |key: &ForeignKey| {
            let is_sure = |r: &&BoundRule| r.action == EraseAction::Delete && r.when.is_none() && r.holds.is_none();
            self.rules.iter().filter(is_sure).any(|rule| {
                TableName::of(&rule.table) == key.from
                    && rule.of.as_ref().map(TableName::of).as_ref() == Some(&key.to)
                    && key.columns.contains(&rule.column)
            })
        };
        let keeps_back = |key: &ForeignKey| {
            goes_first(&key.to) && (waiting.contains(&&key.from) || is_chosen(&key.from) && !takes_along(key))
        };
        !self.relations.foreign.iter().any(keeps_back)
    }

    /// The tables in the order of deletion: referring tables first.
    pub fn order(&self) -> Vec<TableName> {
        let mut left: Vec<TableName> =
            self.tables.iter().filter(|(_, t)| !t.is_empty()).map(|(n, _)| n.clone()).collect();
        let foreign: Vec<(TableName, TableName)> =
            self.relations.foreign.iter().map(|f| (f.from.clone(), f.to.clone())).collect();
        let mut first = foreign.clone();
        let hops = self.rules.iter().filter(|r| r.action == EraseAction::Delete);
        for (table, of) in hops.filter_map(|r| Some((TableName::of(&r.table), TableName::of(r.of.as_ref()?)))) {
            // A foreign key in the other direction decides, because the engine enforces it.
            if !first.contains(&(of.clone(), table.clone())) {
                first.push((table, of));
            }
        }
        let mut order = Vec::new();
        while !left.is_empty() {
            // In a circle to which no other table refers, any table may be first to which no foreign key leads: the engine
            // enforces these.
            let is_free = |first: &[(TableName, TableName)], table: &TableName| {
                let before = leading_to(first, &left, table);
                before.iter().all(|other| leading_to(first, &left, other).contains(table))
            };
            let next = left.iter().find(|table| is_free(&first, table) && is_free(&foreign, table)).cloned();
            let Some(next) = next else { break };
            left.retain(|t| *t != next);
            order.push(next);
        }
        order
    }
}

/// The tables that must be deleted before another, over every hop; includes the table itself if it is in a circle.
fn leading_to<'t>(
    first: &'t [(TableName, TableName)],
    tables: &[TableName],
    table: &'t TableName,
) -> BTreeSet<&'t TableName> {
    let (mut found, mut next) = (BTreeSet::new(), vec![table]);
    while let Some(table) = next.pop() {
        let before = first.iter().filter(|(before, after)| after == table && tables.contains(before));
        next.extend(before.map(|(before, _)| before).filter(|before| found.insert(*before)));
    }
    found
}

/// The column by which rows of a table are named, if their key has more columns: the key of a partitioned table
/// includes the partition column.
fn id_of_several(store: &Store, relations: &Relations, of: &TableKey) -> Option<String> {
    let (table, key) = (TableName::of(of), relations.keys.get(&TableName::of(of)).filter(|key| key.len() > 1)?);
    let mut sources = store.recognised().sources.iter().filter(|source| table_of(source) == table);
    let id = sources.find_map(|source| Some(plain_column(source, "id")?.0.to_owned()))?;
    key.contains(&id).then_some(id)
}

/// Columns that hold ids and nothing else: a longer value that contains such an id names someone else.
pub fn id_columns(store: &Store, relations: &Relations) -> HashSet<(TableName, String)> {
    let erasure = &store.recognised().erasure;
    let rules =
        erasure.rules.iter().filter(|r| r.inside.is_whole() && r.action != EraseAction::Remove && r.to.is_none());
    let rules = rules.map(|r| (TableName::of(&r.table), r.column.clone()));
    let handles = erasure.handles.iter().map(|h| (TableName::of(&h.table), h.id.clone()));
    let foreign =
        relations.foreign.iter().flat_map(|f| f.columns.iter().map(|column| (f.from.clone(), column.clone())));
    let keys = relations.keys.iter().flat_map(|(table, keys)| keys.iter().map(|key| (table.clone(), key.clone())));
    rules.chain(handles).chain(foreign).chain(keys).collect()
}

/// Columns for which the layout or a foreign key says whether they hold the id of a person.
pub fn naming_columns(store: &Store, relations: &Relations) -> NamingColumns {
    let erasure = &store.recognised().erasure;
    let owners =
        erasure.rules.iter().filter(|r| r.of.is_none() && r.inside.is_whole() && r.action != EraseAction::Remove);
    let owners = owners.map(|r| (TableName::of(&r.table), r.column.clone()));
    let handles = erasure.handles.iter().map(|h| (TableName::of(&h.table), h.id.clone()));
    let mut found: HashSet<(TableName, String)> = owners.chain(handles).collect();
    let pairs = relations.foreign.iter().flat_map(|f| f.columns.iter().zip(&f.to_columns).map(move |pair| (f, pair)));
    let refers = pairs.filter(|(f, (_, to))| found.contains(&(f.to.clone(), (*to).clone())));
    let refers: Vec<(TableName, String)> = refers.map(|(f, (column, _))| (f.from.clone(), column.clone())).collect();
    found.extend(refers);
    // A table of people outside the layout is one too.
    let elsewhere = relations.foreign.iter().filter(|f| !is_of_people(&f.to.name));
    let foreign = elsewhere.flat_map(|f| f.columns.iter().map(|column| (f.from.clone(), column.clone())));
    let of_person = |of: &TableKey| is_of_people(&of.1) || erasure.handles.iter().any(|h| h.table == *of);
    let of_row = |r: &&BoundRule| r.inside.is_whole() && r.of.as_ref().is_some_and(|of| !of_person(of));
    let ruled = erasure.rules.iter().filter(of_row);
    let ruled = ruled.map(|r| (TableName::of(&r.table), r.column.clone()));
    let others = foreign.chain(ruled).collect();
    let agent_column = |source: &crate::layout::BoundSource| {
        let column = if source.entity == Entity::Agent { "id" } else { "agent_id" };
        plain_column(source, column).map(|(column, _)| (table_of(source), column.to_owned()))
    };
    let mut agents: HashSet<(TableName, String)> = store.recognised().sources.iter().filter_map(agent_column).collect();
    // Tables that are not sources have these columns under the same name.
    let named =
        |name: &String| agents.iter().any(|(_, agent)| agent == name) && found.iter().all(|(_, own)| own != name);
    let tables = relations.tables.iter().filter_map(|table| store.catalog().exactly(&table.schema, &table.name));
    let columns =
        tables.flat_map(|t| t.columns.iter().map(move |c| (TableName::new(t.schema.clone(), t.name.clone()), &c.name)));
    let alike: Vec<(TableName, String)> =
        columns.filter(|(_, name)| named(name)).map(|(table, name)| (table, name.clone())).collect();
    agents.extend(alike);
    agents.retain(|place| !found.contains(place));
    NamingColumns { others, agents, people: found }
}

/// Rules for columns by which a layout attaches rows to an episode or a memory, if neither a rule nor a foreign key
/// covers them: parts and links are deleted with it, any other row loses the reference.
fn mapped_links(store: &Store, relations: &Relations, rules: &[BoundRule]) -> Vec<BoundRule> {
    let sources = &store.recognised().sources;
    let stored = |source, column: &str| {
        let names = plain_column(source, column).map(|(name, _)| vec![name]).or_else(|| key_columns(source, column));
        names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let mut links: Vec<BoundRule> = Vec::new();
    for source in sources {
        for (column, entity) in [("episode_id", Entity::Episode), ("memory_id", Entity::Memory)] {
            let Some(columns) = stored(source, column) else { continue };
            let from = table_of(source);
            let is_spoken = |rule: &BoundRule| rule.table == key_of(&from) && columns.contains(&rule.column);
            let is_foreign = |key: &ForeignKey| key.from == from && key.columns == columns;
            if rules.iter().any(is_spoken) || relations.foreign.iter().any(is_foreign) {
                continue;
            }
            for target in sources.iter().filter(|target| target.entity == entity && table_of(target) != from) {
                let Some(to_columns) = stored(target, "id").filter(|ids| ids.len() == columns.len()) else { continue };
                let on_delete = match source.entity {
                    Entity::Segment | Entity::MemoryLink => OnDelete::Cascade,
                    _ => OnDelete::Refuse,
                };
                let (from, columns, to) = (from.clone(), columns.clone(), table_of(target));
                let key = ForeignKey { from, columns, to, to_columns, on_delete };
                let link = implied(&key, relations, key_of(&key.from), key_of(&key.to));
                links.extend(link.filter(|link| !links.contains(link)));
            }
        }
    }
    links
}

/// Rules for list columns in which a layout has rows name others, if no rule covers them: they lose the ids of deleted
/// rows.
fn mapped_lists(store: &Store, rules: &[BoundRule]) -> Vec<BoundRule> {
    let sources = &store.recognised().sources;
    let mut lists: Vec<BoundRule> = Vec::new();
    for source in sources {
        for list in source.entity.columns().iter().filter(|column| column.kind == ValueKind::List) {
            let Some(entity) = named_in_list(list.name) else { continue };
            let Some((column, way)) = plain_column(source, list.name) else { continue };
            let table = key_of(&table_of(source));
            let is_spoken = |rule: &BoundRule| rule.table == table && rule.column == *column;
            if way.stored == StoredAs::One || rules.iter().any(is_spoken) {
                continue;
            }
            for target in sources.iter().filter(|target| target.entity == entity) {
                let Some((id, _)) = plain_column(target, "id") else { continue };
                let rule = BoundRule {
                    to: Some(id.to_owned()),
                    action: EraseAction::Remove,
                    ..BoundRule::hanging(table.clone(), column.to_owned(), key_of(&table_of(target)))
                };
                lists.extend((!lists.contains(&rule)).then_some(rule));
            }
        }
    }
    lists
}

/// Returns the rule that a foreign key implies if the layout says nothing: either the row is deleted too, or its
/// reference is emptied: the columns that the key says, or else the last nullable one. A row without a nullable column
/// is deleted.
fn implied(foreign: &ForeignKey, relations: &Relations, table: TableKey, of: TableKey) -> Option<BoundRule> {
    let (column, to) = (foreign.columns.first()?.clone(), foreign.to_columns.first()?.clone());
    let mut pairs = foreign.columns.iter().cloned().zip(foreign.to_columns.iter().cloned());
    pairs.next();
    let loose = |column: &&String| !relations.required.contains(&(foreign.from.clone(), (*column).clone()));
    let mut emptied: Vec<String> = match &foreign.on_delete {
        OnDelete::SetNull(columns) => columns.iter().filter(loose).cloned().collect(),
        _ => Vec::new(),
    };
    if emptied.is_empty() {
        emptied.extend(foreign.columns.iter().rev().find(loose).cloned());
    }
    let default = match &foreign.on_delete {
        OnDelete::SetDefault(value) if foreign.columns.len() == 1 => Some(Value::from(value.as_str())),
        _ => None,
    };
    let (action, columns) = if default.is_some() {
        (EraseAction::Empty, vec![column.clone()])
    } else if emptied.is_empty() || foreign.on_delete == OnDelete::Cascade {
        (EraseAction::Delete, vec![column.clone()])
    } else {
        (EraseAction::Empty, emptied)
    };
    let rule = BoundRule::hanging(table, column, of);
    let when = relations.applies(foreign);
    Some(BoundRule { to: Some(to), also: pairs.collect(), when, action, columns, value: default, ..rule })
}

/// Refuses to continue if a row of an inheriting table has the same key as a row to delete or change: a statement would
/// affect both.
///
/// # Errors
/// [`ChangeError::Refused`], or the engine's refusal.
pub(super) async fn refuse_same_keys(
    snapshot: &mut Snapshot<'_>,
    relations: &Relations,
    rows: Vec<StoredRows>,
) -> Result<(), ChangeError> {
    for rows in rows {
        if !relations.heired.contains(&rows.table) {
            continue;
        }
        let (table, keys) = (rows.table.clone(), rows.keys.len());
        if snapshot.number(rows).await?.is_some_and(|found| found.state.count > keys) {
            let title = table.title();
            return Err(ChangeError::Refused(format!(
                "a row of a table that inherits from {title} has the same key as one of {title} that would go or \
                 change, or as one of another such table: nothing distinguishes them. Give one of them another key, or \
                 take it away in its own table"
            )));
        }
    }
    Ok(())
}

/// Passes on the rows whose columns, compared as [`Graph::compared`] says, contain one of some keys.
///
/// # Errors
/// The engine's refusal.
pub async fn naming(
    snapshot: &mut Snapshot<'_>,
    (rule, compared): (&BoundRule, &[Option<Comparison>]),
    columns: &[String],
    keys: &[Vec<FetchedValue>],
    subject: &[String],
    take: impl FnMut(RawRow) + Send,
) -> Result<(), ChangeError> {
    let table = TableName::of(&rule.table);
    let by = rule.naming_columns();
    let wanted = WantedRows { table: &table, columns, when: rule.when.as_deref(), subject };
    Ok(snapshot.each_compared(wanted, (&by, compared), keys, take).await?)
}

pub(super) fn key_of(table: &TableName) -> TableKey {
    (table.schema.clone(), table.name.clone())
}

/// The owners that a rule finds in a value of its column; for a value of parts, the one at the owner's place.
pub fn within(raw: &FetchedValue, rule: &BoundRule) -> Vec<String> {
    if let Some(owner) = &rule.owner {
        let is_somebody = |text: &String| !owner.nobody.contains(text);
        return texts_of(raw, &owner.inside).into_iter().filter(is_somebody).collect();
    }
    if rule.inside.is_whole() { as_text(raw).into_iter().collect() } else { texts_of(raw, &rule.inside) }
}

/// Whether a rule deletes rows because their column names the person.
pub fn names_owner(rule: &BoundRule) -> bool {
    rule.of.is_none() && rule.action == EraseAction::Delete
}

/// Whether the person owns rows by one of some rules.
async fn owns_by(snapshot: &mut Snapshot<'_>, rules: &[&BoundRule], subject: &[String]) -> Result<bool, ChangeError> {
    for rule in rules {
        for id in subject {
            if is_named(snapshot, rule, id).await? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether some row's column of a rule names `id`.
async fn is_named(snapshot: &mut Snapshot<'_>, rule: &BoundRule, id: &str) -> Result<bool, ChangeError> {
    if !rule.inside.is_whole() {
        return is_at_path(snapshot, rule, id).await;
    }
    let (table, columns) = (TableName::of(&rule.table), [rule.column.clone()]);
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    Ok(snapshot.holds(wanted, FetchedValue::Text(id.to_owned())).await?)
}

/// Whether the column of a rule contains a text at the rule's path in some row.
///
/// # Errors
/// The engine's refusal.
pub async fn is_at_path(snapshot: &mut Snapshot<'_>, rule: &BoundRule, text: &str) -> Result<bool, ChangeError> {
    let mut texts = IdSet::new(&room());
    texts.insert(text);
    let anywhere = rule.owner.is_none() || subject::tells_anywhere(text);
    let mut is_there = false;
    let owns = |row: &RawRow| {
        let Some(raw) = row.first() else { return false };
        within(raw, rule).iter().any(|id| id == text) || texts_of(raw, &rule.inside) == [text]
    };
    let column = std::slice::from_ref(&rule.column);
    by_path_rows(snapshot, rule, column, &texts, &[], |row| is_there |= anywhere || owns(&row)).await?;
    Ok(is_there)
}

/// Passes on the rows whose column contains one of some texts at the rule's path. Reads the column row by row, because
/// no index helps.
///
/// # Errors
/// The engine's refusal.
pub async fn by_path_rows(
    snapshot: &mut Snapshot<'_>,
    rule: &BoundRule,
    columns: &[String],
    texts: &IdSet,
    subject: &[String],
    mut take: impl FnMut(RawRow) + Send,
) -> Result<(), ChangeError> {
    let table = TableName::of(&rule.table);
    let mut read = columns.to_vec();
    read.push(rule.column.clone());
    let wanted = WantedRows { table: &table, columns: &read, when: rule.when.as_deref(), subject };
    let each = |each: &mut dyn FnMut(&[u8])| texts.iter().for_each(|text| each(text.as_bytes()));
    let sieve = WordSieve::new(each).filter(|_| is_path_alone(&rule.inside));
    let may_hold = |raw: &FetchedValue| match (raw, &sieve) {
        // Without encodings, each text appears literally.
        (FetchedValue::Text(text), Some(sieve)) => sieve.may_be_in(text) || !container::is_bare(text),
        _ => true,
    };
    let look = |row: &RawRow| {
        let raw = row.last().filter(|raw| may_hold(raw))?;
        texts_of(raw, &rule.inside).iter().any(|text| texts.contains(text)).then_some(())
    };
    let without_column = |mut row: RawRow, ()| {
        row.pop();
        take(row);
    };
    snapshot.stream_looked(wanted, look, without_column).await?;
    Ok(())
}

/// Passes on the owners that a rule finds in every row.
///
/// # Errors
/// The engine's refusal.
pub async fn each_owner(
    snapshot: &mut Snapshot<'_>,
    rule: &BoundRule,
    each: impl FnMut(String) + Send,
) -> Result<(), ChangeError> {
    let (table, read) = (TableName::of(&rule.table), [rule.column.clone()]);
    let wanted = WantedRows { table: &table, columns: &read, when: rule.when.as_deref(), subject: &[] };
    let look = |row: &RawRow| Some(within(row.first()?, rule));
    let mut each = each;
    snapshot.stream_looked(wanted, look, |_, texts: Vec<String>| texts.into_iter().for_each(&mut each)).await?;
    Ok(())
}
