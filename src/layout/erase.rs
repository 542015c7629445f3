//! Owners of rows and the effect of erasing a person: the `[[handle]]`, `[[erase]]` and `[account]` parts of a layout
//! file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names_in_sql::lacking;
use super::vector::BoundVector;
use super::{
    BoundOrigin, BoundSource, Catalog, CatalogTable, ColumnOrigin, ColumnSpec, Engine, Inside, Layout, Need, Source,
    Sql, TextPart,
};

/// A column with handles, by which a person is known.
#[derive(Debug, Clone, PartialEq)]
pub struct HandleColumn {
    /// Table.
    pub table: String,
    /// Column with the person's id.
    pub id: String,
    /// Value by which the person is known in this table.
    pub value: HandleValue,
    /// Kind of the handle: id, e-mail, name, phone, session, profile …
    pub kind: String,
    /// Tables and columns that must exist for the handle to be used.
    pub requires: Vec<Need>,
    /// Line in the layout file, from 1.
    pub line: usize,
}

/// Source of a handle's value.
#[derive(Debug, Clone, PartialEq)]
pub enum HandleValue {
    /// A column; a list in it is several handles.
    Column(String),
    /// An SQL expression over the table, whose alias is `t`.
    Sql(Sql),
}

/// Effect of erasing on a row or a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraseAction {
    /// The row is deleted.
    Delete,
    /// Columns are emptied, the row stays.
    Empty,
    /// The column gets a pseudonym, the row stays.
    Pseudonym,
    /// The column gets the value that the deleted row had there: children get the parent of their deleted parent.
    Reparent,
    /// Ids are removed from a list; aggregates over the list are recomputed.
    Remove,
    /// The row was learned from deleted rows: it is marked as out of date.
    Stale,
}

impl EraseAction {
    /// The words of layout files.
    pub const WORDS: &'static [(&'static str, EraseAction)] = &[
        ("delete", EraseAction::Delete),
        ("empty", EraseAction::Empty),
        ("pseudonym", EraseAction::Pseudonym),
        ("reparent", EraseAction::Reparent),
        ("remove", EraseAction::Remove),
        ("stale", EraseAction::Stale),
    ];
}

/// An aggregate that is recomputed from the remaining rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// The episode's feedback score.
    Feedback,
    /// The episode's number of canvas actions.
    Canvas,
    /// Uses and utility of a memory.
    Memory,
}

impl Recompute {
    /// The words of layout files.
    pub const WORDS: &'static [(&'static str, Recompute)] =
        &[("feedback", Recompute::Feedback), ("canvas", Recompute::Canvas), ("memory", Recompute::Memory)];
}

/// A member of an object in a row's document that refers to a row of another table: the member's key equals one
/// column of that row, its value another one.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldMember {
    /// Column of the document.
    pub column: String,
    /// Path of the object.
    pub path: String,
    /// Column of the other table whose value is the member's key.
    pub key: String,
    /// Column of the other table whose value is the member's value.
    pub value: String,
}

/// A rule that makes rows belong to a person, or name one.
#[derive(Debug, Clone, PartialEq)]
pub struct EraseRule {
    /// Table.
    pub table: String,
    /// Column that names the person, or a row of `of`.
    pub column: String,
    /// Place of the name within the column's value.
    pub inside: Inside,
    /// Table whose deleted rows the column refers to; `None` for the person's id.
    pub of: Option<String>,
    /// Layout of another database whose deleted rows the column refers to.
    pub of_layout: Option<String>,
    /// Column of that table that is referred to; its key if `None`.
    pub to: Option<String>,
    /// Further columns of a composite reference, each with its counterpart in that table.
    pub also: Vec<(String, String)>,
    /// A member that the row must also contain.
    pub holds: Option<HeldMember>,
    /// Further condition; the table's alias is `t`, `$subject` stands for the person's ids.
    pub when: Option<Sql>,
    /// Action on the row or its columns.
    pub action: EraseAction,
    /// Columns that are cleared instead of `column`.
    pub columns: Vec<String>,
    /// Value for cleared or stale columns instead of NULL.
    pub value: Option<Value>,
    /// Whether the row is the person's account in the application: it is kept unless its deletion is requested.
    pub account: bool,
    /// Whether the rule holds only for the erasure of a person: when a row is removed for another reason, rows that
    /// refer to it stay.
    pub erasure_only: bool,
    /// Aggregate to recompute.
    pub recompute: Option<Recompute>,
    /// Columns of the table that remaining rows need: names in them are masked, and they are not cleared.
    pub never_empty: Vec<String>,
    /// Tables and columns that must exist for the rule to apply.
    pub requires: Vec<Need>,
    /// Tables and columns that must not exist for the rule to apply.
    pub forbids: Vec<Need>,
    /// Line in the layout file, from 1; 0 for a rule of the layout that the file builds on.
    pub line: usize,
}

/// The table of accounts of the application that writes the memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Table.
    pub table: String,
    /// Column with the person's id.
    pub id: String,
    /// Columns of the nameless account to which a pseudonym refers if a foreign key requires an account; `{}` is the
    /// pseudonym.
    pub nameless: Vec<(String, Value)>,
    /// Line in the layout file, from 1.
    pub line: usize,
}

/// A table by schema and name.
pub type TableKey = (String, String);

/// Source of a handle's value in a recognised database.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundValue {
    /// A column by its stored name.
    Column(String),
    /// The layout file's SQL expression over the alias `t`.
    Sql(String),
}

/// A handle whose names exist in the database.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundHandle {
    /// Table.
    pub table: TableKey,
    /// Column with the person's id.
    pub id: String,
    /// Value by which the person is known in this table.
    pub value: BoundValue,
    /// Kind of the handle.
    pub kind: String,
}

/// A rule whose names exist in the database.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundRule {
    /// Table.
    pub table: TableKey,
    /// Column that names.
    pub column: String,
    /// Place of the name within the column's value.
    pub inside: Inside,
    /// Place of the owner among the parts; `None` if any part may be the person.
    pub owner: Option<OwnerPlace>,
    /// Table whose deleted rows are referred to; `None` for the person.
    pub of: Option<TableKey>,
    /// Column of that table; its key if `None`.
    pub to: Option<String>,
    /// Further columns of a composite reference, each with its counterpart in that table.
    pub also: Vec<(String, String)>,
    /// A member that the row must also contain.
    pub holds: Option<HeldMember>,
    /// Further condition.
    pub when: Option<String>,
    /// Action on the row or its columns.
    pub action: EraseAction,
    /// Columns that are cleared; only `column` unless the layout names others.
    pub columns: Vec<String>,
    /// Value for cleared or stale columns instead of NULL.
    pub value: Option<Value>,
    /// The row is the person's account.
    pub account: bool,
    /// Whether the rule holds only for the erasure of a person.
    pub erasure_only: bool,
    /// Aggregate to recompute.
    pub recompute: Option<Recompute>,
}

/// The part of a text that holds the owner of its row.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerPlace {
    /// The part.
    pub inside: Inside,
    /// Parts that stand for nobody.
    pub nobody: Vec<String>,
    /// Whether the layout reads the owner there; else it is the first part that may be an id.
    pub is_read: bool,
}

impl BoundRule {
    /// A rule that deletes rows together with those that a column refers to.
    pub fn hanging(table: TableKey, column: String, of: TableKey) -> Self {
        BoundRule {
            table,
            columns: vec![column.clone()],
            column,
            inside: Inside::default(),
            owner: None,
            of: Some(of),
            to: None,
            also: Vec::new(),
            holds: None,
            when: None,
            action: EraseAction::Delete,
            value: None,
            account: false,
            erasure_only: false,
            recompute: None,
        }
    }

    /// The columns that name, in the order of the key that they name.
    pub fn naming_columns(&self) -> Vec<String> {
        std::iter::once(&self.column).chain(self.also.iter().map(|(own, _)| own)).cloned().collect()
    }
}

/// Rows that may hold personal data although nothing says whose they are.
#[derive(Debug, Clone, PartialEq)]
pub struct UnownedRows {
    /// Table.
    pub table: String,
    /// Condition for the rows over the alias `t`; without one they are those that name no owner.
    pub when: Option<Sql>,
}

/// A column with ids of rows that are in another database.
#[derive(Debug, Clone, PartialEq)]
pub struct FarReference {
    /// Table.
    pub table: TableKey,
    /// Column.
    pub column: String,
    /// Layout of the other database.
    pub layout: String,
}

/// Meaning of erasure in a recognised database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Erasure {
    /// Columns with handles of people.
    pub handles: Vec<BoundHandle>,
    /// Rules for the ownership of rows, and for the effect of erasing.
    pub rules: Vec<BoundRule>,
    /// Columns that refer to rows in databases of other layouts: their rows are deleted with these.
    pub far: Vec<FarReference>,
    /// Columns that remaining rows need.
    pub never_empty: Vec<(TableKey, String)>,
    /// Tables of accounts.
    pub accounts: Vec<BoundAccount>,
    /// Tables that triggers keep in sync with others.
    pub follows: Vec<TableKey>,
    /// Rows that may hold personal data although nothing says whose they are: their table, and a condition unless they are
    /// those that name no owner.
    pub unowned: Vec<(TableKey, Option<String>)>,
    /// Sentences about personal data that applications keep outside of the database.
    pub elsewhere: Vec<String>,
    /// Names in a layout that the database lacks: line, key and message.
    pub missing: Vec<(usize, String, String)>,
}

/// A table of accounts that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundAccount {
    /// Table.
    pub table: TableKey,
    /// Column with the person's id.
    pub id: String,
    /// Columns of the nameless account.
    pub nameless: Vec<(String, Value)>,
}

impl EraseRule {
    /// Whether the rule applies to a database: its tables exist.
    pub fn is_met(&self, catalog: &Catalog) -> bool {
        self.requires.iter().all(|need| catalog.has(need)) && !self.forbids.iter().any(|need| catalog.has(need))
    }
}

/// Binds a layout's statements about erasing.
pub fn bind(layout: &Layout, engine: Engine, catalog: &Catalog, erasure: &mut Erasure) {
    for handle in layout.handles.iter().filter(|h| h.requires.iter().all(|need| catalog.has(need))) {
        let mut find = RuleFinder { catalog, line: handle.line, key: "handle", missing: &mut erasure.missing };
        let Some((table, name)) = find.table(&handle.table) else { continue };
        let Some(id) = find.column(&name, &handle.id) else { continue };
        let value = match &handle.value {
            HandleValue::Column(column) => find.column(&name, column).map(BoundValue::Column),
            HandleValue::Sql(sql) => sql.on(engine).and_then(|sql| find.sql(&name, sql)).map(BoundValue::Sql),
        };
        let Some(value) = value else { continue };
        let bound = BoundHandle { table, id, value, kind: handle.kind.clone() };
        if !erasure.handles.contains(&bound) {
            erasure.handles.push(bound);
        }
    }
    let words = words_of_application(layout);
    for rule in layout.rules.iter().filter(|rule| rule.is_met(catalog)) {
        let mut find = RuleFinder { catalog, line: rule.line, key: "erase", missing: &mut erasure.missing };
        let Some(mut bound) = bind_rule(rule, engine, &mut find) else { continue };
        if let Some(layout) = rule.of_layout.clone() {
            erasure.far.push(FarReference { table: bound.table, column: bound.column, layout });
            continue;
        }
        if bound.of.is_none() && bound.action == EraseAction::Delete && bound.inside.is_any_part() {
            bound.inside.except.clone_from(&words);
            bound.inside.with = channels_of_application(layout);
            bound.owner = Some(place_of_owner(layout, rule, &bound.inside));
        }
        let there = rule.never_empty.iter().filter_map(|column| find.column(&rule.table, column));
        let there: Vec<(TableKey, String)> = there.map(|column| (bound.table.clone(), column)).collect();
        erasure.never_empty.extend(there);
        if !erasure.rules.contains(&bound) {
            erasure.rules.push(bound);
        }
    }
    let inherited = inherited_owners(&erasure.rules);
    erasure.rules.extend(inherited);
    let keys = |names: &[String]| -> Vec<TableKey> {
        let tables = names.iter().filter_map(|name| catalog.table(name));
        tables.map(|table| (table.schema.clone(), table.name.clone())).collect()
    };
    erasure.follows.extend(keys(&layout.follows));
    for UnownedRows { table, when } in &layout.unowned {
        let mut find = RuleFinder { catalog, line: 0, key: "unowned", missing: &mut erasure.missing };
        let Some((key, name)) = find.table(table) else { continue };
        let when = when.as_ref().and_then(|sql| sql.on(engine));
        let bound = when.map(|sql| find.sql(&name, sql));
        // Without what the condition reads, none of the rows is told.
        if bound != Some(None) {
            erasure.unowned.push((key, bound.flatten()));
        }
    }
    erasure.elsewhere.extend(layout.elsewhere.iter().cloned());
    if let Some(account) = &layout.account {
        let mut find = RuleFinder { catalog, line: account.line, key: "account", missing: &mut erasure.missing };
        if let Some((table, name)) = find.table(&account.table)
            && let Some(id) = find.column(&name, &account.id)
        {
            // Only columns that the account table has here.
            let there = |(column, _): &&(String, Value)| find.catalog.has(&need(&name, column));
            let nameless = account.nameless.iter().filter(there).cloned().collect();
            erasure.accounts.push(BoundAccount { table, id, nameless });
        }
    }
}

/// Adds rules for vectors stored beside rows, if the layouts have none: they are deleted with their row. Vectors of
/// several kinds of rows in one table are left alone, because their keys may collide.
pub fn with_vectors(sources: &[BoundSource], catalog: &Catalog, erasure: &mut Erasure) {
    for source in sources {
        let Some(BoundVector { beside: Some(beside), column, keep: None, .. }) = &source.vector else { continue };
        let (Some(table), Some(ids)) = (&beside.table, id_columns(source)) else { continue };
        let is_ruled = |rule: &BoundRule| rule.table == *table && rule.of.as_ref() == Some(&source.table);
        let others = sources.iter().filter(|other| other.table != source.table);
        let is_shared =
            others.filter_map(|other| other.vector.as_ref()?.beside.as_ref()?.table.as_ref()).any(|t| t == table);
        let keys: Vec<&String> = beside.key.iter().map(|(name, _)| name).collect();
        let is_own = |there: &CatalogTable| {
            let is_key = |unique: &Vec<String>| unique.iter().all(|name| keys.contains(&name));
            let bare = there.columns.iter().all(|c| c.name == *column || keys.contains(&&c.name));
            !there.places.is_empty() && there.unread.is_none() && (bare || there.unique.iter().any(is_key))
        };
        let is_own = catalog.exactly(&table.0, &table.1).is_some_and(is_own);
        if !is_own
            || is_shared
            || *table == source.table
            || keys.len() != ids.len()
            || erasure.rules.iter().any(is_ruled)
        {
            continue;
        }
        let mut pairs = beside.key.iter().map(|(name, _)| name.clone()).zip(ids);
        let Some((column, to)) = pairs.next() else { continue };
        erasure.rules.push(BoundRule {
            table: table.clone(),
            columns: vec![column.clone()],
            column,
            inside: Inside::default(),
            owner: None,
            of: Some(source.table.clone()),
            to: Some(to),
            also: pairs.collect(),
            holds: None,
            when: None,
            action: EraseAction::Delete,
            value: None,
            account: false,
            erasure_only: false,
            recompute: None,
        });
    }
}

/// The stored columns of a source's id, if all are in its own table.
fn id_columns(source: &BoundSource) -> Option<Vec<String>> {
    let [way] = source.column("id") else { return None };
    let parts = match &way.origin {
        BoundOrigin::Key { parts, .. } => &parts[..],
        origin if way.inside.is_whole() && way.map.is_empty() => std::slice::from_ref(origin),
        _ => return None,
    };
    let own = |part: &BoundOrigin| match part {
        BoundOrigin::Column { alias, name, .. } if alias == "t" => Some(name.clone()),
        _ => None,
    };
    parts.iter().map(own).collect()
}

/// The columns in which a layout reads the owner of rows, each with its source.
fn owner_columns(layout: &Layout) -> impl Iterator<Item = (&Source, &ColumnSpec)> {
    let columns = layout.sources.iter().flat_map(|source| source.columns.iter().map(move |column| (source, column)));
    let owners = columns.filter(|(_, (name, _))| name == "user_id");
    owners.flat_map(|(source, (_, ways))| ways.iter().map(move |way| (source, way)))
}

/// Words that a column maps to nobody.
fn nobody(way: &ColumnSpec) -> impl Iterator<Item = String> {
    way.map.iter().filter(|(_, owner)| owner.is_empty()).map(|(word, _)| word.clone())
}

/// Parts that are nobody's id, for layouts that consider every part of a value: stated once, they hold for all.
fn words_of_application(layout: &Layout) -> Vec<String> {
    let ways = owner_columns(layout).map(|(_, way)| way).filter(|way| way.inside.by.is_some());
    let read = ways.flat_map(|way| nobody(way).chain(way.inside.except.iter().chain(&way.inside.named).cloned()));
    let said = layout.rules.iter().filter(|rule| rule.of.is_none()).flat_map(|rule| rule.inside.except.iter().cloned());
    read.chain(said).collect()
}

/// Channels before ids: stated once, they hold for every rule that checks any part.
fn channels_of_application(layout: &Layout) -> Vec<(String, usize)> {
    let read = owner_columns(layout).flat_map(|(_, way)| &way.inside.with);
    let channels: BTreeMap<&String, usize> = read.map(|(word, number)| (word, *number)).collect();
    channels.into_iter().map(|(word, number)| (word.clone(), number)).collect()
}

/// The part that holds the owner: the one that the layout reads in the rule's column, or in another column with the
/// same separator; else the first that may be an id, after the words that an expression knows. An expression may read it
/// in some rows only.
fn place_of_owner(layout: &Layout, rule: &EraseRule, inside: &Inside) -> OwnerPlace {
    let is_column = |way: &ColumnSpec| matches!(way.value, ColumnOrigin::Column(_));
    let alike = || owner_columns(layout).filter(|(_, way)| is_column(way) && way.inside.by == inside.by);
    let is_same = |(source, way): &(&Source, &ColumnSpec)| reads(source, way, rule);
    let Some((_, way)) = alike().find(is_same).or_else(|| alike().next()) else {
        let read = owner_columns(layout).map(|(_, way)| &way.inside).find(|read| read.by == inside.by);
        let (after, named) = read.map(|read| (read.after.clone(), read.named.clone())).unwrap_or_default();
        let inside = Inside { part: TextPart::At(0), after, named, ..inside.clone() };
        return OwnerPlace { inside, nobody: Vec::new(), is_read: false };
    };
    let Inside { part, except, after, named, with, .. } = way.inside.clone();
    OwnerPlace {
        inside: Inside { part, except, after, named, with, ..inside.clone() },
        nobody: nobody(way).collect(),
        is_read: true,
    }
}

/// Whether a way reads the column of a rule.
fn reads(source: &Source, way: &ColumnSpec, rule: &EraseRule) -> bool {
    let ColumnOrigin::Column(named) = &way.value else { return false };
    let (alias, column) = named.split_once('.').unwrap_or(("t", named));
    column == rule.column && source.from.aliases().any(|named| named == (alias, rule.table.as_str()))
}

/// Owner rules for rows that refer to others by the column that names the owner: they name the owner themselves, even
/// if the referenced rows are gone.
fn inherited_owners(rules: &[BoundRule]) -> Vec<BoundRule> {
    let goes = |rule: &&BoundRule| rule.action == EraseAction::Delete && !rule.account;
    let owners = || rules.iter().filter(goes).filter(|rule| rule.of.is_none() && rule.when.is_none());
    let mut found: Vec<BoundRule> = Vec::new();
    for link in rules.iter().filter(goes).filter(|rule| rule.when.is_none() && rule.inside.is_whole()) {
        let named = link.to.iter().map(|to| (&link.column, to)).chain(link.also.iter().map(|(own, to)| (own, to)));
        for (column, to) in named {
            for owner in owners().filter(|owner| link.of.as_ref() == Some(&owner.table) && owner.column == *to) {
                let (table, column) = (link.table.clone(), column.clone());
                let own = BoundRule { table, columns: vec![column.clone()], column, ..owner.clone() };
                if !rules.contains(&own) && !found.contains(&own) {
                    found.push(own);
                }
            }
        }
    }
    found
}

fn bind_rule(rule: &EraseRule, engine: Engine, find: &mut RuleFinder<'_>) -> Option<BoundRule> {
    let (table, name) = find.table(&rule.table)?;
    let of = match &rule.of {
        Some(of) => Some(find.table(of)?),
        None => None,
    };
    let to = match (&of, &rule.to) {
        (Some((_, of)), Some(to)) => Some(find.column(of, to)?),
        _ => None,
    };
    let mut also = Vec::new();
    for (column, to) in &rule.also {
        let (_, of) = of.as_ref()?;
        also.push((find.column(&name, column)?, find.column(of, to)?));
    }
    let holds = match &rule.holds {
        Some(HeldMember { column, path, key, value }) => {
            let (_, of) = of.as_ref()?;
            let (column, path) = (find.column(&name, column)?, path.clone());
            Some(HeldMember { column, path, key: find.column(of, key)?, value: find.column(of, value)? })
        }
        None => None,
    };
    let columns: Vec<String> = if rule.columns.is_empty() {
        vec![find.column(&name, &rule.column)?]
    } else {
        // A table has them only in some versions.
        rule.columns.iter().filter_map(|c| find.there(&name, c)).collect()
    };
    let when = match rule.when.as_ref().and_then(|sql| sql.on(engine)) {
        Some(sql) => Some(find.sql(&name, sql)?),
        None => None,
    };
    Some(BoundRule {
        column: find.column(&name, &rule.column)?,
        table,
        inside: rule.inside.clone(),
        owner: None,
        of: of.map(|(key, _)| key),
        to,
        also,
        holds,
        when,
        action: rule.action,
        columns,
        value: rule.value.clone(),
        account: rule.account,
        erasure_only: rule.erasure_only,
        recompute: rule.recompute,
    })
}

fn need(table: &str, column: &str) -> Need {
    Need { table: table.to_owned(), column: Some(column.to_owned()), types: Vec::new(), line: 0 }
}

struct RuleFinder<'a> {
    catalog: &'a Catalog,
    line: usize,
    key: &'static str,
    missing: &'a mut Vec<(usize, String, String)>,
}

impl RuleFinder<'_> {
    /// A table that may not be there: systems grow and shrink.
    fn table(&self, name: &str) -> Option<(TableKey, String)> {
        let table = self.catalog.table(name)?;
        Some(((table.schema.clone(), table.name.clone()), name.to_owned()))
    }

    fn there(&self, table: &str, column: &str) -> Option<String> {
        Some(self.catalog.table(table)?.column(column)?.name.clone())
    }

    /// Binds an SQL text over a table; `None` if one of its names is missing.
    fn sql(&mut self, table: &str, sql: &str) -> Option<String> {
        if let Some(words) = lacking(sql, self.catalog.table(table), self.catalog) {
            self.missing.push((self.line, format!("{}.{table}", self.key), words));
            return None;
        }
        Some(sql.to_owned())
    }

    fn column(&mut self, table: &str, column: &str) -> Option<String> {
        let found = self.there(table, column);
        if found.is_none() {
            let words = format!("column `{column}` is not in {table}");
            self.missing.push((self.line, format!("{}.{table}", self.key), words));
        }
        found
    }
}
