//! The inverse of the codec: converts canonical values back to stored ones, by the layout and the column's type.

use std::borrow::{Borrow, Cow};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::Value;

use super::dialect::{self, PgType};
use super::fetched::{self, FetchedValue};
use super::select::{as_stored, is_uuid, key_parts};
use super::shape::{ShapeColumn, TableShape};
use super::stored::{Cell, Image, Mutation, StoredRows, TableName, spell};
use super::surplus::StoredColumns;
use super::{RowEncoder, StoreError, codec, told_apart, within};
use crate::layout::write::{Removal, StoredCopy};
use crate::layout::{
    BoundColumn, BoundOrigin, BoundSource, Codec, Engine, Fill, Inside, StoredAs, TextPart, TimeSpelling, Write,
};
use crate::memory::id_list::{self, IdSpelling};
use crate::memory::json::JsonPart;
use crate::memory::{Entity, Row, ValueKind, json};

/// A canonical value to be stored.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenValue {
    /// This value.
    Is(Value),
    /// The value of this JSON document, whose text is kept as written.
    Document(String),
    /// A list of these texts; other elements of the stored list stay.
    Texts(Value),
    /// An object with these members; equal members of the stored one keep their spelling.
    Members(Value),
    /// The time of the change.
    Now,
}

impl GivenValue {
    /// Takes the value from a canonical column of a row.
    pub fn of(row: &Row, column: &str) -> Self {
        match row.json(column) {
            JsonPart::Value(value) => GivenValue::Is(value.clone()),
            JsonPart::Document(text) => GivenValue::Document(text.to_owned()),
        }
    }

    /// Takes the new value of a canonical column of a row: a list changed by texts, an object by members.
    pub fn changed(row: &Row, column: &str) -> Self {
        let is = |kind| row.entity.column(column).is_some_and(|c| c.kind == kind);
        match row.get(column) {
            texts @ Value::Array(_) if is(ValueKind::List) => GivenValue::Texts(texts.clone()),
            object @ Value::Object(_) if is(ValueKind::Json) => GivenValue::Members(object.clone()),
            value => GivenValue::Is(value.clone()),
        }
    }

    /// As [`GivenValue::of`], but moves the value out of the row.
    pub fn take(row: &mut Row, column: &str) -> Self {
        row.take_text(column).map_or_else(|| GivenValue::Is(row.take(column)), GivenValue::Document)
    }

    /// Puts the value in a canonical column of a row, unless it is the time of the change.
    pub fn put(self, row: &mut Row, column: &str) {
        match self {
            GivenValue::Is(value) | GivenValue::Texts(value) | GivenValue::Members(value) => row.set(column, value),
            GivenValue::Document(text) => row.set_text(column, Value::from(text)),
            GivenValue::Now => {}
        }
    }

    fn part(&self) -> Option<JsonPart<'_>> {
        match self {
            GivenValue::Is(value) | GivenValue::Texts(value) | GivenValue::Members(value) => {
                Some(JsonPart::Value(value))
            }
            GivenValue::Document(text) => Some(JsonPart::Document(text)),
            GivenValue::Now => None,
        }
    }
}

impl<T: Into<Value>> From<T> for GivenValue {
    fn from(value: T) -> Self {
        GivenValue::Is(value.into())
    }
}

/// One row, in stored and in canonical form.
#[derive(Debug, Clone)]
pub struct LocatedRow<'s> {
    /// Source of the row.
    pub source: &'s BoundSource,
    /// Columns and values that identify it.
    pub key: Vec<(String, FetchedValue)>,
    /// The stored row.
    pub image: Image,
    /// The row in canonical form.
    pub row: Row,
}

impl LocatedRow<'_> {
    /// The table it is in.
    pub fn table(&self) -> TableName {
        table_of(self.source)
    }

    /// The row, by its key.
    pub fn rows(&self) -> StoredRows {
        let (by, values) = self.key.iter().cloned().unzip();
        StoredRows { table: self.table(), by, keys: vec![values] }
    }

    /// Updates columns of the row, and what the layout sets with every change.
    ///
    /// # Errors
    /// The reason why a value cannot be stored.
    pub fn update(&self, shape: &TableShape, values: &[(&str, GivenValue)]) -> Result<Mutation, String> {
        let engine = shape.engine;
        let mut set: Vec<(String, Cell)> = Vec::new();
        for (column, value) in values {
            self.check_alone(column)?;
            if let (Some((name, way)), Some(part)) = (self.way_in_use(column), value.part()) {
                let old = current(&set, &self.image, name);
                if matches!(value, GivenValue::Members(_)) && text_of(old).is_some_and(|text| !json::keeps_digits(text))
                {
                    return Err(format!("{}.{name} {TOO_MANY_DIGITS}", self.table().title()));
                }
                let new = put_within(engine, self.source, column, way, &part.to_value(), old)?;
                set.retain(|(known, _)| known != name);
                set.push((name.to_owned(), Cell::Is(new)));
            } else {
                let mut cells = encode(self.source, shape, column, value)?;
                cells.iter_mut().try_for_each(|(name, cell)| self.keep_form(column, name, cell))?;
                if let GivenValue::Texts(texts) = value {
                    keep_others(&self.image, texts, &mut cells, spelling_of_ids(self.source, column));
                }
                if let GivenValue::Members(object) = value {
                    for (name, cell) in &mut cells {
                        let Some(old) = self.image.get(name) else { continue };
                        if let Some(new) = with_members(old, self.row.get(column), object)
                            .map_err(|why| format!("{}.{name} {why}", self.table().title()))?
                        {
                            *cell = Cell::Is(new);
                        }
                    }
                }
                set.extend(cells);
            }
            self.rename_elsewhere(shape, column, value, &mut set)?;
        }
        for (name, cell) in copies(self.source, shape, values, (&set, &self.image), Some(&self.row), |_| true)? {
            set.retain(|(known, _)| *known != name);
            set.push((name, cell));
        }
        for (name, cell) in &mut set {
            if *cell == Cell::Is(FetchedValue::Null) && shape.column(name).is_some_and(|c| c.required) {
                let fill = self.source.write.as_ref().and_then(|w| w.insert.iter().find(|(n, _)| n == name));
                *cell = match fill {
                    Some((_, Fill::Value(value))) => Cell::Is(constant(engine, value)),
                    _ => return Err(format!("{}.{name} cannot be empty", self.table().title())),
                };
            }
        }
        let moves = |(name, cell): &&(String, Cell)| {
            self.key.iter().any(|(part, old)| part == name && *cell != Cell::Is(old.clone()))
        };
        if let Some((name, _)) = set.iter().find(moves) {
            return Err(format!(
                "{}.{name} is part of the row's id, which other rows may refer to: record a new row and remove this \
                 one",
                self.table().title()
            ));
        }
        touch(self.source, shape, &mut set);
        Ok(Mutation::Update { table: self.table(), key: self.key.clone(), set })
    }

    /// Updates the other places from which the layout reads the row's owner, if they name the same owner as the row
    /// did.
    fn rename_elsewhere(
        &self,
        shape: &TableShape,
        column: &str,
        value: &GivenValue,
        set: &mut Vec<(String, Cell)>,
    ) -> Result<(), String> {
        let engine = shape.engine;
        let (old, Some(new)) = (self.row.get(column), value.part().map(|part| part.to_value())) else { return Ok(()) };
        if !OWNERS.contains(&column) || old.is_null() || new == *old {
            return Ok(());
        }
        let times = self.source.write.as_ref().map_or(TimeSpelling::Canonical, |w| w.times);
        for way in self.source.column(column) {
            let Some(name) = own_column(way) else { continue };
            let names_old =
                |set: &[(String, Cell)]| codec::value(ValueKind::Text, way, current(set, &self.image, name)).0 == *old;
            let Some(stored) = shape.column(name).filter(|_| names_old(&*set)) else { continue };
            let title = || format!("{}.{name}", self.table().title());
            let cell = if way.inside.is_whole() {
                let value = mapped(way, &new, true);
                let raw = value.and_then(|value| raw(engine, way, ValueKind::Text, &stored.compared, times, &value));
                raw.map_err(|why| format!("{} {why}", title()))?
            } else {
                put_within(engine, self.source, column, way, &new, current(set, &self.image, name))?
            };
            set.retain(|(known, _)| known != name);
            set.push((name.to_owned(), Cell::Is(cell)));
            if names_old(&*set) {
                return Err(format!("{} would still refer to the earlier `{column}`", title()));
            }
        }
        Ok(())
    }

    /// Keeps the form of a stored value that a text replaces as a whole: bytes stay bytes, and a document from which
    /// other columns are read stays a document.
    fn keep_form(&self, column: &str, name: &str, cell: &mut Cell) -> Result<(), String> {
        let (Some(old), Cell::Is(FetchedValue::Text(new))) = (self.image.get(name), &*cell) else { return Ok(()) };
        let is_text = self.source.entity.column(column).is_some_and(|c| c.kind == ValueKind::Text);
        let new = new.clone();
        let is_json = |raw: &FetchedValue| text_of(raw).is_some_and(|text| json::read(text).problems.is_empty());
        let shared = is_text && is_shared(self.source, name);
        if shared && is_document(old) && !is_document(&FetchedValue::Text(new.clone())) {
            let table = self.table().title();
            return Err(format!(
                "{table}.{name} holds a JSON document, and `{column}` is the whole document: give JSON, not words"
            ));
        }
        // Text that replaces a JSON number, string or null is stored as a JSON string.
        let quoted = shared && is_json(old) && !is_json(&FetchedValue::Text(new.clone()));
        let new = if quoted { Value::from(new).to_string() } else { new };
        *cell = Cell::Is(match old {
            FetchedValue::Bytes(_) if is_text => FetchedValue::Bytes(new.into_bytes()),
            _ => FetchedValue::Text(new),
        });
        Ok(())
    }

    /// The reading within a stored column that gives a canonical column for this row: the first one, if none gives a
    /// value. `None` if a whole column gives it.
    fn way_in_use(&self, column: &str) -> Option<(&str, &BoundColumn)> {
        let ways = || self.source.column(column).iter();
        let kind = self.source.entity.column(column).map_or(ValueKind::Text, |c| c.kind);
        let own = |way: &BoundColumn| match &way.origin {
            BoundOrigin::Column { alias, name, .. } if alias == "t" => self.image.get(name),
            _ => None,
        };
        let says =
            |way: &&BoundColumn| own(way).is_some_and(|raw| !codec::says_nothing(&codec::value(kind, way, raw).0));
        let stands = |way: &&BoundColumn| {
            own(way).is_some_and(|raw| {
                if way.inside.is_whole() {
                    *raw != FetchedValue::Null
                } else {
                    within::found(raw, &way.inside).0.is_some()
                }
            })
        };
        let used = ways().find(says).or_else(|| ways().find(stands));
        let way = match used {
            Some(way) => way,
            None if plain_column(self.source, column).is_some() => return None,
            None => ways().find(|way| within_table(way).is_some())?,
        };
        Some((within_table(way)?, way))
    }

    /// Checks that the value of a column comes from stored values of this row alone, if the layout reads other rows
    /// first.
    fn check_alone(&self, column: &str) -> Result<(), String> {
        let Some(first) = asks_others(self.source, column) else { return Ok(()) };
        let behind = &self.source.column(column)[first..];
        let Some((name, way)) = self.way_in_use(column).or_else(|| plain_column(self.source, column)) else {
            return Ok(());
        };
        let (Some(stored), Some(kind)) = (self.image.get(name), self.source.entity.column(column).map(|c| c.kind))
        else {
            return Ok(());
        };
        if !behind.contains(way) {
            return Ok(());
        }
        let (told, shown) = (codec::value(kind, way, stored).0, self.row.get(column));
        let says_all = match (told.as_array(), shown.as_array()) {
            (told, Some(shown)) => shown.iter().all(|item| told.is_some_and(|told| told.contains(item))),
            _ => told == *shown,
        };
        if says_all {
            Ok(())
        } else {
            Err(format!("`{column}` of this row is derived from other rows too: change those"))
        }
    }

    /// Whether removing this row deletes the stored row; otherwise it stays with other values.
    pub fn goes(&self) -> bool {
        self.source.write.as_ref().is_none_or(|write| write.remove == Removal::Delete)
    }

    /// Whether the row was removed before, and stayed by a rule of its layout.
    ///
    /// # Errors
    /// The reason why it cannot be removed.
    pub fn is_removed(&self, shape: &TableShape) -> Result<bool, String> {
        let Mutation::Update { set, .. } = self.removal(shape)? else { return Ok(false) };
        let touched = touched(self.source, shape);
        let mut marks = set.iter().filter(|(name, _)| !touched.iter().any(|(other, _)| other == name));
        Ok(marks.all(|(name, cell)| match (cell, self.image.get(name)) {
            (Cell::Is(value), Some(stored)) => value == stored,
            (Cell::Now(_), Some(stored)) => *stored != FetchedValue::Null,
            _ => false,
        }))
    }

    /// Plans the removal of the row: it is deleted, or stays with other values.
    ///
    /// # Errors
    /// The reason why it cannot be removed.
    pub fn removal(&self, shape: &TableShape) -> Result<Mutation, String> {
        let Some(write) = &self.source.write else { return Ok(self.delete()) };
        let mut set: Vec<(String, Cell)> = match &write.remove {
            Removal::Delete => return Ok(self.delete()),
            Removal::Refuse(why) => return Err(why.clone()),
            Removal::Empty(columns) => {
                let own = || self.source.entity.columns().iter().filter(|c| !OF_THE_WHOLE.contains(&c.name));
                let named: Vec<String> = if columns.is_empty() {
                    own().filter_map(|c| Some(plain_column(self.source, c.name)?.0.to_owned())).collect()
                } else {
                    columns.clone()
                };
                named.into_iter().map(|name| (name, Cell::Is(FetchedValue::Null))).collect()
            }
            Removal::Mark(marks) => {
                let cell = |value: &Option<Value>| match value {
                    Some(value) => Cell::Is(constant(shape.engine, value)),
                    None => Cell::Now(write.times),
                };
                marks.iter().map(|(name, value)| (name.clone(), cell(value))).collect()
            }
        };
        if let Some((name, _)) = set.iter().find(|(name, cell)| {
            *cell == Cell::Is(FetchedValue::Null) && shape.column(name).is_none_or(|column| column.required)
        }) {
            return Err(format!("{}.{name} cannot be empty", self.table().title()));
        }
        touch(self.source, shape, &mut set);
        Ok(Mutation::Update { table: self.table(), key: self.key.clone(), set })
    }

    /// The deletion of the row.
    pub fn delete(&self) -> Mutation {
        Mutation::Delete(self.rows())
    }
}

/// Canonical columns for what a row belongs to: an emptied row keeps them.
const OF_THE_WHOLE: [&str; 9] =
    ["id", "episode_id", "execution_id", "user_id", "agent_id", "session_id", "created_at", "updated_at", "profile_id"];

/// Reason why plain text cannot replace a document.
const NO_DOCUMENT: &str = "holds a JSON document here: give JSON, not words";

/// The index of a column's first reading that queries other rows.
fn asks_others(source: &BoundSource, column: &str) -> Option<usize> {
    let asks =
        |way: &BoundColumn| matches!(&way.origin, BoundOrigin::Sql(sql) if sql.to_ascii_lowercase().contains("select"));
    source.column(column).iter().position(asks)
}

/// Canonical columns with the owner of a row: an edit updates every place that names the earlier owner.
const OWNERS: [&str; 2] = ["user_id", "agent_id"];

/// Whether other columns are read from the document in a stored column.
fn is_shared(source: &BoundSource, name: &str) -> bool {
    source.entity.columns().iter().any(|column| {
        let reads = |way: &BoundColumn| matches!(&way.origin, BoundOrigin::Column { alias, name: other, .. } if alias == "t" && other == name);
        source.column(column.name).iter().any(|way| reads(way) && (column.kind == ValueKind::Json || way.inside.path.is_some()))
    })
}

/// Whether a stored value is a JSON object or list.
fn is_document(raw: &FetchedValue) -> bool {
    text_of(raw).is_some_and(is_document_text)
}

/// Whether a text is a JSON object or list.
fn is_document_text(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && json::read(text).problems.is_empty()
}

fn text_of(raw: &FetchedValue) -> Option<&str> {
    match raw {
        FetchedValue::Text(text) => Some(text),
        FetchedValue::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The spelling of ids in a list of a source.
pub fn spelling_of_ids(source: &BoundSource, column: &str) -> IdSpelling {
    let is_numbers = |way: &BoundColumn| way.stored == StoredAs::Numbers;
    if source.column(column).iter().any(is_numbers) { IdSpelling::Numbers } else { IdSpelling::Texts }
}

/// The items of a list as ids that may be numbers, in JSON.
fn list_of_ids(items: &[Value]) -> String {
    id_list::of(&items.iter().filter_map(Value::as_str).collect::<Vec<_>>(), IdSpelling::Numbers)
}

/// Keeps the other elements, and the spelling, of a stored list that a list of texts replaces.
pub fn keep_others(image: &Image, texts: &Value, cells: &mut [(String, Cell)], spelling: IdSpelling) {
    let wanted: Vec<&str> = texts.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, cell) in cells {
        let Some(old) = image.get(name) else { continue };
        let Cell::Is(usual) = &*cell else { continue };
        let begins = |text: &str| text.trim_start().chars().next();
        let is_alike = text_of(old).zip(text_of(usual)).is_some_and(|(old, usual)| begins(old) == begins(usual));
        if let Some(new) = text_of(old).filter(|_| is_alike).and_then(|old| id_list::relisted(old, &wanted, spelling)) {
            *cell = Cell::Is(match old {
                FetchedValue::Bytes(_) => FetchedValue::Bytes(new.into_bytes()),
                _ => FetchedValue::Text(new),
            });
        }
    }
}

/// Reason why a document is not rewritten.
const TOO_MANY_DIGITS: &str = "holds numbers with more digits than we keep when we write it again";

/// Changes a stored object; `was` and `becomes` are its parsed values. Unchanged members keep their spelling. `None` if
/// no object is stored.
///
/// # Errors
/// The reason why it cannot be changed, for people.
pub fn with_members(old: &FetchedValue, was: &Value, becomes: &Value) -> Result<Option<FetchedValue>, String> {
    let Some(text) = text_of(old).filter(|text| text.trim_start().starts_with('{')) else { return Ok(None) };
    match (json::remade(text, was, becomes), old) {
        (Some(new), FetchedValue::Bytes(_)) => Ok(Some(FetchedValue::Bytes(new.into_bytes()))),
        (Some(new), _) => Ok(Some(FetchedValue::Text(new))),
        (None, _) => Err(format!("holds invalid JSON: {}", json::read(text).problems.join("; "))),
    }
}

/// The `wanted` stored copies of canonical values to write, each with its column, for a change that `set`s some.
/// `there` is the stored row, `was` the row before. A missing copy within an existing value stays missing; a new row
/// gets all. An owner's copy is updated if it names the earlier owner, and never created.
fn copies(
    source: &BoundSource,
    shape: &TableShape,
    values: &[(&str, impl Borrow<GivenValue>)],
    (set, there): (&[(String, Cell)], &Image),
    was: Option<&Row>,
    wanted: impl Fn(&StoredCopy) -> bool,
) -> Result<Vec<(String, Cell)>, String> {
    let Some(write) = &source.write else { return Ok(Vec::new()) };
    let mut made: Vec<(String, Cell)> = Vec::new();
    for copy in write.copies.iter().filter(|copy| wanted(copy) && shape.column(&copy.column).is_some()) {
        let Some((of, given)) = values.iter().find(|(column, _)| copy.of.iter().any(|of| of == column)) else {
            continue;
        };
        let given: &GivenValue = given.borrow();
        let is_owner = copy.of.len() == 1 && OWNERS.contains(of);
        let text = match (copy.form.spelling(), given) {
            (Some(spelling), time) => {
                let declared = shape.column(&copy.column).map_or("", |column| column.compared.as_str());
                made.extend(time_cell(exact(spelling, declared), time).map(|cell| (copy.column.clone(), cell)));
                continue;
            }
            (None, _) if copy.of.len() > 1 => {
                let stored = |of: &String| plain_column(source, of).map(|(name, _)| current(set, there, name));
                let texts = copy
                    .of
                    .iter()
                    .map(|of| stored(of).map(|raw| fetched::text(std::slice::from_ref(raw), 0)).unwrap_or_default());
                Some(Cow::Owned(texts.collect::<Vec<_>>().join("\0")))
            }
            (None, GivenValue::Is(Value::String(text))) => Some(Cow::Borrowed(text.as_str())),
            (None, GivenValue::Is(Value::Null)) if is_owner => None,
            _ => continue,
        };
        let known = made.iter().find_map(|(name, cell)| match cell {
            Cell::Is(raw) if *name == copy.column => Some(raw),
            _ => None,
        });
        let old = known.unwrap_or_else(|| current(set, there, &copy.column));
        let found = within::found(old, &copy.inside).0;
        let is_missing = was.is_some() && !copy.inside.is_whole() && found.is_none();
        let names_old = |row: &Row| row.text(of).is_some_and(|old| found == Some(Value::from(copy.form.of(old))));
        if is_missing || is_owner && !was.is_some_and(names_old) {
            continue;
        }
        let copied = text.map_or(Value::Null, |text| Value::from(copy.form.of(&text)));
        let raw = within::replaced(old, &copy.inside, &copied)
            .map_err(|why| format!("{}.{} {why}", table_of(source).title(), copy.column))?;
        made.retain(|(name, _)| *name != copy.column);
        made.push((copy.column.clone(), Cell::Is(raw)));
    }
    Ok(made)
}

/// Recomputes the `wanted` stored copies of canonical `values` that a change `set`s in an existing row, as an edit
/// does. `was` is the row before.
///
/// # Errors
/// The reason why one cannot be stored.
pub fn copies_again(
    source: &BoundSource,
    shape: &TableShape,
    values: &[(&str, GivenValue)],
    (set, there): (&[(String, Cell)], &Image),
    was: &Row,
    wanted: impl Fn(&StoredCopy) -> bool,
) -> Result<Vec<(String, Cell)>, String> {
    copies(source, shape, values, (set, there), Some(was), wanted)
}

/// Some canonical columns of a row, read from its own stored values only: the first reading that gives a value.
pub fn told_by(source: &BoundSource, columns: &[&str], image: &Image) -> Row {
    let mut row = Row::empty(source.entity);
    for column in columns {
        let kind = source.entity.column(column).map_or(ValueKind::Text, |c| c.kind);
        let value = |way| Some(codec::value(kind, way, image.get(own_column(way)?)?).0);
        let said = source.column(column).iter().filter_map(value).find(|value| !codec::says_nothing(value));
        row.set(column, said.unwrap_or_default());
    }
    row
}

/// A time in another spelling; `None` for a value that is not a time.
fn time_cell(spelling: TimeSpelling, time: &GivenValue) -> Option<Cell> {
    match time {
        GivenValue::Now => Some(Cell::Now(spelling)),
        GivenValue::Is(Value::Null) => Some(Cell::Is(FetchedValue::Null)),
        GivenValue::Is(Value::String(time)) => Some(Cell::Is(spell(spelling, time))),
        _ => None,
    }
}

/// Returns the value that a stored column has, or will have.
fn current<'c>(set: &'c [(String, Cell)], image: &'c Image, name: &str) -> &'c FetchedValue {
    let set = set.iter().find_map(|(known, cell)| match cell {
        Cell::Is(raw) if known == name => Some(raw),
        _ => None,
    });
    set.or(image.get(name)).unwrap_or(&FetchedValue::Null)
}

/// Puts a canonical value into the stored one that it is read from.
fn put_within(
    engine: Engine,
    source: &BoundSource,
    column: &str,
    way: &BoundColumn,
    value: &Value,
    old: &FetchedValue,
) -> Result<FetchedValue, String> {
    let kind = source.entity.column(column).map_or(ValueKind::Text, |c| c.kind);
    let times = source.write.as_ref().map_or(TimeSpelling::Canonical, |w| w.times);
    let title = || table_of(source).title();
    let value = match (kind, &*mapped(way, value, true).map_err(|why| format!("{}.{column} {why}", title()))?) {
        (ValueKind::Time, Value::String(time)) => {
            let is_real = within::found(old, &way.inside).0.is_some_and(|there| there.is_f64());
            let spelling = match spelling(engine, way, times) {
                TimeSpelling::Epoch if is_real => TimeSpelling::EpochReal,
                other => other,
            };
            match spell(spelling, time) {
                FetchedValue::Text(text) => Value::from(text),
                FetchedValue::Integer(number) => Value::from(number),
                FetchedValue::Real(number) => Value::from(number),
                _ => Value::Null,
            }
        }
        (ValueKind::Text, Value::String(text)) => {
            let there = within::found(old, &way.inside).0;
            in_place_of(there, &way.inside, text).map_err(|why| format!("{}.{column} {why}", title()))?
        }
        (ValueKind::List, Value::Array(items)) if way.stored == StoredAs::Numbers => {
            json::read(&list_of_ids(items)).value
        }
        (_, value) => value.clone(),
    };
    let is_json = way.inside.decode.iter().all(|codec| *codec == Codec::Json);
    let empty = FetchedValue::Text(if way.inside.path.is_some() { "{}" } else { "null" }.to_owned());
    let within = way.inside.path.is_some() || !way.inside.decode.is_empty();
    let old = if *old == FetchedValue::Null && is_json && within { &empty } else { old };
    within::replaced(old, &way.inside, &value).map_err(|why| format!("{}.{column} {why}", title()))
}

/// A text as a value that replaces another one. If that is an object or a list, the text is parsed as a document, also
/// if the stored one is a document in a string.
fn in_place_of(there: Option<Value>, inside: &Inside, text: &str) -> Result<Value, String> {
    let is_every = inside.path.as_ref().is_some_and(|path| path.split('.').any(|step| step == within::EVERY));
    let is_document = |value: &Value| value.is_object() || value.is_array();
    let is_words = |item: &Value| item.is_null() || item.as_str().is_some_and(|text| !is_document_text(text));
    match there {
        Some(Value::Array(items)) if is_every && !items.iter().all(is_words) => {
            Err("holds more than texts: change the whole document".to_owned())
        }
        Some(Value::String(there)) if inside.path.is_some() && inside.by.is_none() && is_document_text(&there) => {
            if is_document_text(text) {
                Ok(Value::from(text))
            } else {
                Err(NO_DOCUMENT.to_owned())
            }
        }
        Some(there) if !is_every && inside.by.is_none() && is_document(&there) => match json::read(text) {
            new if new.problems.is_empty() && is_document(&new.value) => Ok(new.value),
            _ => Err(NO_DOCUMENT.to_owned()),
        },
        _ => Ok(Value::from(text)),
    }
}

/// Adds what the layout sets with every change of a row, unless the change sets it.
pub fn touch(source: &BoundSource, shape: &TableShape, set: &mut Vec<(String, Cell)>) {
    for (name, times) in touched(source, shape) {
        if !set.iter().any(|(known, _)| *known == name) {
            set.push((name, Cell::Now(times)));
        }
    }
}

/// The stored columns that get the time of every change of a row, including copies, with their time spelling.
pub fn touched(source: &BoundSource, shape: &TableShape) -> Vec<(String, TimeSpelling)> {
    let Some(write) = &source.write else { return Vec::new() };
    let there = write.touch.iter().filter_map(|name| shape.column(name));
    // A column that the layout reads is written in the spelling it is read in.
    let read = |name: &str| {
        source.columns.iter().flatten().find(|way| way.stored != StoredAs::Plain && stored_in_table(way) == Some(name))
    };
    let times = |column: &ShapeColumn| match read(&column.name).map(|way| way.stored) {
        Some(StoredAs::Epoch) => exact(TimeSpelling::Epoch, &column.compared),
        Some(StoredAs::EpochMillis) => TimeSpelling::EpochMillis,
        _ => exact(write.times, &column.compared),
    };
    let mut touched: Vec<(String, TimeSpelling)> = there.map(|column| (column.name.clone(), times(column))).collect();
    let is_touched =
        |of: &String| plain_column(source, of).is_some_and(|(name, _)| touched.iter().any(|t| t.0 == name));
    let again = write.copies.iter().filter(|copy| copy.of.iter().any(is_touched));
    let again = again.filter_map(|copy| {
        let column = shape.column(&copy.column)?;
        Some((column.name.clone(), exact(copy.form.spelling()?, &column.compared)))
    });
    let again: Vec<(String, TimeSpelling)> = again.collect();
    touched.extend(again);
    touched
}

/// The table of a source's rows.
pub fn table_of(source: &BoundSource) -> TableName {
    TableName::of(&source.table)
}

/// The stored column that contains a canonical one unchanged, if the source's own table has one.
pub fn plain_column<'b>(source: &'b BoundSource, column: &str) -> Option<(&'b str, &'b BoundColumn)> {
    source.column(column).iter().find_map(|way| Some((stored_in_table(way)?, way)))
}

/// The stored column of the source's own table from which a value is read, whole or within it.
pub fn own_column(way: &BoundColumn) -> Option<&str> {
    stored_in_table(way).or_else(|| within_table(way))
}

/// Whether a change can set a canonical column: it is read from a stored column that is not part of the id, whole or
/// within it.
pub fn can_set(source: &BoundSource, column: &str) -> bool {
    let key = plain_column(source, "id").map(|(name, _)| vec![name]).or_else(|| key_columns(source, "id"));
    let holds = |name: &str| !key.as_ref().is_some_and(|key| key.contains(&name));
    let writes = source.write.as_ref().is_some_and(|write| write.refuse.is_none());
    writes && source.column(column).iter().filter_map(own_column).any(holds)
}

/// The stored columns that make up an id in a column of a source, if there are several in its own table.
pub fn key_columns<'b>(source: &'b BoundSource, column: &str) -> Option<Vec<&'b str>> {
    let [BoundColumn { origin: BoundOrigin::Key { parts, .. }, .. }] = source.column(column) else { return None };
    let own = |part: &'b BoundOrigin| match part {
        BoundOrigin::Column { alias, name, .. } if alias == "t" => Some(name.as_str()),
        _ => None,
    };
    parts.iter().map(own).collect()
}

/// Whether rows can be found by the ids of a source; otherwise the layout computes the ids from other values.
pub fn leads_back(source: &BoundSource) -> bool {
    plain_column(source, "id").is_some() || key_columns(source, "id").is_some()
}

/// The stored column of the source's own table within which a value is read.
fn within_table(way: &BoundColumn) -> Option<&str> {
    match &way.origin {
        BoundOrigin::Column { alias, name, .. } if alias == "t" && !way.inside.is_whole() => Some(name),
        _ => None,
    }
}

pub(super) fn stored_in_table(way: &BoundColumn) -> Option<&str> {
    match &way.origin {
        BoundOrigin::Column { alias, name, .. } if alias == "t" && way.inside.is_whole() => Some(name),
        _ => None,
    }
}

/// The stored columns that a canonical value sets, each with its value. If a value is stored in several forms (a kind
/// as a word and as a thumb), all of them are set.
///
/// # Errors
/// The reason why it cannot be stored.
pub fn encode(
    source: &BoundSource,
    shape: &TableShape,
    column: &str,
    given: &GivenValue,
) -> Result<Vec<(String, Cell)>, String> {
    encode_value(source, shape, column, given.part())
}

/// As [`encode`]; without a value, the time of the change.
///
/// # Errors
/// As [`encode`].
pub(super) fn encode_value(
    source: &BoundSource,
    shape: &TableShape,
    column: &str,
    value: Option<JsonPart<'_>>,
) -> Result<Vec<(String, Cell)>, String> {
    let engine = shape.engine;
    let title = table_of(source).title();
    let kind = source.entity.column(column).map_or(ValueKind::Text, |c| c.kind);
    let times = source.write.as_ref().map_or(TimeSpelling::Canonical, |w| w.times);
    let mut cells = Vec::new();
    if let ("id", Some(names), Some(JsonPart::Value(Value::String(id)))) = (column, key_columns(source, "id"), value) {
        let parts = key_parts(id, names.len());
        let parts =
            parts.ok_or_else(|| format!("{title}: the id `{id}` is not a JSON list of {}", names.join(", ")))?;
        return Ok(names.into_iter().map(str::to_owned).zip(parts.into_iter().map(Cell::Is)).collect());
    }
    for (position, way) in source.column(column).iter().enumerate() {
        let Some(name) = stored_in_table(way) else { continue };
        let Some(stored) = shape.column(name) else { continue };
        // A further column with a word map stores the same value again; one without is only a fallback for reading.
        if !cells.is_empty() && way.map.is_empty() {
            continue;
        }
        let cell = match value {
            None => Cell::Now(spelling(engine, way, times)),
            Some(value) => {
                let raw = match value {
                    JsonPart::Value(value) => mapped(way, value, position == 0)
                        .and_then(|value| raw(engine, way, kind, &stored.compared, times, &value)),
                    JsonPart::Document(text) => document(engine, &stored.compared, text),
                };
                Cell::Is(raw.map_err(|e| format!("{title}.{name} {e}"))?)
            }
        };
        cells.push((stored.name.clone(), cell));
    }
    if cells.is_empty() && !value.is_some_and(|value| value.is_null()) {
        return Err(format!("{title} has no separate column for the {} `{column}`", source.entity.title()));
    }
    Ok(cells)
}

/// The stored word for a canonical one. A word missing from the map is stored unchanged if the column is the first
/// choice and holds words; a second column stays empty.
///
/// # Errors
/// The possible words, if the column holds numbers.
fn mapped<'v>(way: &BoundColumn, value: &'v Value, first: bool) -> Result<Cow<'v, Value>, String> {
    let Value::String(word) = value else { return Ok(Cow::Borrowed(value)) };
    if way.map.is_empty() {
        return Ok(Cow::Borrowed(value));
    }
    let mut words = way.map.iter().filter(|(_, to)| to == word).map(|(from, _)| from.as_str());
    let is_flag = matches!(dialect::declared(&way.origin), "boolean" | "bool" | "integer" | "int");
    let numeric = |w: &&str| w.bytes().all(|b| b.is_ascii_digit());
    // A map may list a canonical word as a stored one too: `success = "success"`.
    if words.clone().any(|from| from == word) {
        return Ok(Cow::Borrowed(value));
    }
    let found = if is_flag { words.clone().find(numeric).or_else(|| words.next()) } else { words.next() };
    Ok(match found {
        Some(stored) if is_flag => Cow::Owned(stored.parse::<i64>().map_or_else(|_| Value::from(stored), Value::from)),
        Some(stored) => Cow::Owned(Value::from(stored)),
        None if first && is_flag => {
            let known: Vec<String> = way.map.iter().map(|(_, to)| format!("`{to}`")).collect();
            return Err(format!("holds {} here, not `{word}`", known.join(", ")));
        }
        None if first => Cow::Borrowed(value),
        None => Cow::Owned(Value::Null),
    })
}

/// The spelling of a time in a column of that type: with fractional seconds if it stores them.
fn exact(spelling: TimeSpelling, declared: &str) -> TimeSpelling {
    let keeps_fraction = declared.eq_ignore_ascii_case("numeric") || fetched::affinity(declared) == Some("REAL");
    match spelling {
        TimeSpelling::Epoch if keeps_fraction => TimeSpelling::EpochReal,
        other => other,
    }
}

fn spelling(engine: Engine, way: &BoundColumn, times: TimeSpelling) -> TimeSpelling {
    match (way.stored, engine) {
        (StoredAs::Epoch, _) => exact(TimeSpelling::Epoch, dialect::declared(&way.origin)),
        (StoredAs::EpochMillis, _) => TimeSpelling::EpochMillis,
        // PostgreSQL accepts any spelling for its own types; texts use the layout's.
        (_, Engine::Postgres) if PgType::of(dialect::declared(&way.origin)) != PgType::Text => TimeSpelling::Canonical,
        _ => exact(times, dialect::declared(&way.origin)),
    }
}

fn raw(
    engine: Engine,
    way: &BoundColumn,
    kind: ValueKind,
    declared: &str,
    times: TimeSpelling,
    value: &Value,
) -> Result<FetchedValue, String> {
    if value.is_null() {
        return Ok(FetchedValue::Null);
    }
    let text = match (way.stored, kind, value) {
        (StoredAs::One, _, Value::Array(items)) => match &items[..] {
            [] => return Ok(FetchedValue::Null),
            [Value::String(one)] => one.clone(),
            _ => return Err("holds one id, not a list".to_owned()),
        },
        (_, ValueKind::Time, Value::String(time)) => return Ok(spell(spelling(engine, way, times), time)),
        (_, ValueKind::List, Value::Array(items)) if declared.ends_with("[]") => array_literal(items),
        (StoredAs::Numbers, ValueKind::List, Value::Array(items)) => list_of_ids(items),
        (_, ValueKind::Json | ValueKind::List, value) => value.to_string(),
        (_, _, Value::String(text)) => text.clone(),
        (_, _, value @ (Value::Bool(_) | Value::Number(_))) => {
            check_scale(declared, value)?;
            return Ok(constant(engine, &whole(declared, value)));
        }
        (_, _, value) => value.to_string(),
    };
    if engine == Engine::Postgres {
        if text.contains('\0') || declared.eq_ignore_ascii_case("jsonb") && holds_nul(value) {
            return Err("cannot hold a NUL character".to_owned());
        }
        if declared.eq_ignore_ascii_case("uuid") && !is_uuid(&text.to_ascii_lowercase()) {
            return Err(format!("holds UUIDs, not `{text}`"));
        }
    }
    Ok(FetchedValue::Text(text))
}

/// A JSON document in stored form, as its value would be stored.
fn document(engine: Engine, declared: &str, text: &str) -> Result<FetchedValue, String> {
    if engine == Engine::Postgres && declared.eq_ignore_ascii_case("jsonb") {
        let mut has_nul = false;
        json::each_text(text, &mut |part| has_nul |= part.text().contains('\0')).map_err(|error| error.to_string())?;
        if has_nul {
            return Err("cannot hold a NUL character".to_owned());
        }
    }
    JsonPart::Document(text).written().map(FetchedValue::Text).map_err(|error| error.to_string())
}

/// Whether a text within a value contains a NUL, which JSON writes as an escape.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(object) => object.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

/// A number in the form that an integer column accepts: 60, as 60.0 would be an error.
fn whole(declared: &str, value: &Value) -> Value {
    match value.as_f64() {
        Some(x) if keeps_whole(declared) && x.fract() == 0.0 && x.abs() < 9e15 => Value::from(x as i64),
        _ => value.clone(),
    }
}

/// Whether a column of that type holds integers only.
pub fn keeps_whole(declared: &str) -> bool {
    matches!(declared.to_ascii_lowercase().as_str(), "integer" | "bigint" | "smallint" | "int")
}

/// Refuses a number that the column would round.
fn check_scale(declared: &str, value: &Value) -> Result<(), String> {
    let inner = declared.strip_prefix("numeric(").and_then(|rest| rest.strip_suffix(')'));
    let scale = inner.and_then(|digits| digits.split(',').nth(1)?.trim().parse::<i32>().ok());
    let scale = scale.or(keeps_whole(declared).then_some(0));
    let (Some(scale), Some(number)) = (scale, value.as_f64()) else { return Ok(()) };
    let shifted = number * 10_f64.powi(scale);
    // Tolerates the error of a sum of such numbers, and the precision of a double of that size.
    if (shifted - shifted.round()).abs() <= f64::max(1e-9, 4.0 * f64::EPSILON * shifted.abs()) {
        return Ok(());
    }
    Err(format!("keeps {scale} decimals and would round {number}"))
}

/// Checks that the column of a value stores every digit of its seconds.
///
/// # Errors
/// The value that the column would store instead.
pub fn check_seconds(source: &BoundSource, shape: &TableShape, column: &str, value: &Value) -> Result<(), String> {
    let Some((name, way)) = plain_column(source, column) else { return Ok(()) };
    let Some(stored) = shape.column(name) else { return Ok(()) };
    let declared = stored.compared.to_ascii_lowercase();
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let title = || format!("{}.{name}", table_of(source).title());
    if declared == "date" && text.contains('T') && !text.contains("T00:00:00") {
        return Err(format!("{} keeps days and would truncate {text}", title()));
    }
    let kept =
        declared.split_once('(').filter(|_| declared.starts_with("timestamp") || declared.starts_with("interval"));
    let kept = match way.stored {
        StoredAs::Plain => kept.and_then(|(_, rest)| rest.split_once(')')?.0.parse::<usize>().ok()),
        StoredAs::Epoch if exact(TimeSpelling::Epoch, &declared) == TimeSpelling::Epoch => Some(0),
        StoredAs::EpochMillis => Some(3),
        _ => None,
    };
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits: String = fraction.chars().take_while(char::is_ascii_digit).collect();
    match kept {
        Some(kept) if digits.trim_end_matches('0').len() > kept => {
            Err(format!("{} keeps {kept} decimals of a second and would round {text}", title()))
        }
        _ => Ok(()),
    }
}

/// A constant in stored form.
pub fn constant(engine: Engine, value: &Value) -> FetchedValue {
    match (engine, value) {
        (_, Value::Null) => FetchedValue::Null,
        (_, Value::String(text)) => FetchedValue::Text(text.clone()),
        (Engine::Sqlite, Value::Bool(b)) => FetchedValue::Integer(i64::from(*b)),
        (Engine::Sqlite, Value::Number(n)) => match (n.as_i64(), n.as_f64()) {
            (Some(i), _) => FetchedValue::Integer(i),
            (None, Some(x)) => FetchedValue::Real(x),
            (None, None) => FetchedValue::Text(n.to_string()),
        },
        (_, other) => FetchedValue::Text(other.to_string()),
    }
}

fn array_literal(items: &[Value]) -> String {
    let element = |item: &Value| {
        let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    };
    format!("{{{}}}", items.iter().map(element).collect::<Vec<_>>().join(","))
}

/// Whether a canonical column of a new row is put into another stored value: it has no column of its own, or its column
/// is a document from which other columns are read.
pub fn goes_within(source: &BoundSource, column: &str) -> bool {
    let is_text = source.entity.column(column).is_some_and(|c| c.kind == ValueKind::Text);
    let key = key_columns(source, "id").unwrap_or_default();
    let place = |way: &BoundColumn| within_table(way).is_some_and(|name| key.contains(&name) || can_be_made(way));
    let within = || source.column(column).iter().any(place);
    match plain_column(source, column) {
        None => within(),
        Some((name, _)) => is_text && within() && is_shared(source, name),
    }
}

/// Whether a value can be created at this place if nothing is stored there yet: a whole value, or a member of an
/// object.
fn can_be_made(way: &BoundColumn) -> bool {
    let inside = &way.inside;
    let member = |path: &String| !path.contains(['.', '*']) && path.parse::<usize>().is_err();
    inside.decode.iter().all(|codec| *codec == Codec::Json)
        && inside.path.as_ref().is_none_or(member)
        && (inside.by.is_none() || inside.part == TextPart::Any)
}

/// Canonical columns with a row's contents. They take precedence over the same contents in a document given with them.
const SAID: [&str; 2] = ["text", "content"];

/// Adds a cell to a new row. Fails with the column's name if it already has another value.
fn add_cell(cells: &mut Vec<(String, Cell)>, (name, cell): (String, Cell)) -> Result<(), String> {
    let nothing = Cell::Is(FetchedValue::Null);
    match cells.iter_mut().find(|(known, _)| *known == name) {
        None => cells.push((name, cell)),
        Some((_, known)) if *known == nothing => *known = cell,
        Some((_, known)) if cell != nothing && !same(known, &cell) => return Err(name),
        Some(_) => {}
    }
    Ok(())
}

/// Whether two cells have the same value, number or text.
fn same(a: &Cell, b: &Cell) -> bool {
    let text = |cell: &Cell| match cell {
        Cell::Is(FetchedValue::Integer(number)) => Some(number.to_string()),
        Cell::Is(FetchedValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    a == b || text(a).is_some_and(|a| Some(a) == text(b))
}

/// No stored columns.
const NOTHING: &StoredColumns = &Vec::new();

/// The error for changing a row that the layout builds from several stored ones.
fn made_of_several(source: &BoundSource, id: &str) -> StoreError {
    StoreError::CannotHold(format!(
        "{} `{id}` is read-only: the layout {} builds it from several rows of {}, and does not say how to write them",
        source.entity.title(),
        source.layout,
        table_of(source).title()
    ))
}

/// Rows that one statement reads by id.
const AT_ONCE: usize = 400;

impl<'a> RowEncoder<'a> {
    /// Finds the row of an id, and its table; `None` if there is none. If no row has the id, the part before a colon
    /// may be the table's name.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] if several rows have the id, an entity that the database does not hold, or the
    /// engine's refusal.
    pub async fn locate(self, entity: Entity, id: &str) -> Result<Option<LocatedRow<'a>>, StoreError> {
        let mut found = None;
        for source in self.store.sources_of(entity)? {
            if let Some(located) = self.locate_in(source, id).await? {
                self.only_one(entity, &[id]).await?;
                found = found.or(Some(located));
            }
        }
        match self.store.in_table(entity, id) {
            Some((source, id)) if found.is_none() => self.locate_in(source, id).await,
            _ => Ok(found),
        }
    }

    /// Checks that each id belongs to only one row, over all sources.
    ///
    /// # Errors
    /// As [`RowEncoder::locate`].
    async fn only_one(self, entity: Entity, ids: &[impl AsRef<str> + Sync]) -> Result<(), StoreError> {
        let (mut seen, mut twice) = (HashSet::new(), None);
        let take = |row: Row, _| match seen.replace(row.id().to_owned()) {
            None => ControlFlow::Continue(()),
            again => {
                twice = again;
                ControlFlow::Break(())
            }
        };
        self.store.each_related(entity, "id", ids, &["id"], take).await?;
        let Some(id) = twice else { return Ok(()) };
        let mut tables = Vec::new();
        for source in self.store.sources_of(entity)? {
            if !self.store.related_in(source, "id", &[&id], &[], Some(&["id"])).await?.is_empty() {
                tables.push(&*source.label);
            }
        }
        let words = told_apart(&tables, &id);
        Err(StoreError::Ambiguous(entity.title(), id, words))
    }

    /// As [`RowEncoder::locate`], for many ids at once. Returns the existing rows by id.
    ///
    /// # Errors
    /// As [`RowEncoder::locate`].
    pub async fn locate_all(
        self,
        entity: Entity,
        ids: &[String],
    ) -> Result<HashMap<String, LocatedRow<'a>>, StoreError> {
        self.only_one(entity, ids).await?;
        let mut located = HashMap::new();
        for source in self.store.sources_of(entity)? {
            let left: Vec<&String> = ids.iter().filter(|id| !located.contains_key(*id)).collect();
            let Some((name, way)) = plain_column(source, "id") else {
                for id in left {
                    located.extend(self.locate_in(source, id).await?.map(|row| (id.clone(), row)));
                }
                continue;
            };
            let stored = |id: &&String| (as_stored(self.store.engine(), source, "id", id).into_owned(), (*id).clone());
            let given: HashMap<String, String> =
                left.iter().map(stored).filter(|(id, _)| self.can_be(way, id)).collect();
            let stored: Vec<String> = given.keys().cloned().collect();
            let keys = stored.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
            let wanted = StoredRows { table: table_of(source), by: vec![name.to_owned()], keys };
            let mut rows: HashMap<String, Row> = HashMap::new();
            for some in stored.chunks(AT_ONCE) {
                let some = self.store.related_in(source, "id", some, &[], None).await?;
                rows.extend(some.into_iter().map(|row| (row.id().to_owned(), row)));
            }
            for image in self.store.shapes().images(&wanted).await? {
                let Some(value) = image.get(name).cloned() else { continue };
                let id = fetched::text(std::slice::from_ref(&value), 0);
                let Some(given) = given.get(&id) else { continue };
                if located.contains_key(given) {
                    return Err(made_of_several(source, &id));
                }
                let Some(row) = rows.remove(&id) else { continue };
                let key = vec![(name.to_owned(), value)];
                located.insert(given.clone(), LocatedRow { source, key, image, row });
            }
        }
        Ok(located)
    }

    /// As [`RowEncoder::locate`], among the rows of one source.
    ///
    /// # Errors
    /// As [`RowEncoder::locate`].
    pub async fn locate_in<'s>(self, source: &'s BoundSource, id: &str) -> Result<Option<LocatedRow<'s>>, StoreError> {
        let id = &*as_stored(self.store.engine(), source, "id", id);
        let (by, values) = match (plain_column(source, "id"), key_columns(source, "id")) {
            (Some((name, way)), _) if self.can_be(way, id) => {
                (vec![name.to_owned()], vec![FetchedValue::Text(id.to_owned())])
            }
            (None, Some(names)) => match key_parts(id, names.len()) {
                Some(values) => (names.into_iter().map(str::to_owned).collect(), values),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let mut images = self
            .store
            .shapes()
            .images(&StoredRows { table: table_of(source), by: by.clone(), keys: vec![values] })
            .await?;
        let Some(image) = images.pop() else { return Ok(None) };
        let mut rows = self.store.related_in(source, "id", &[id.to_owned()], &[], None).await?;
        if !images.is_empty() {
            return Err(match rows.len() {
                1 => made_of_several(source, id),
                _ => StoreError::Ambiguous(source.entity.title(), id.to_owned(), told_apart(&[], id)),
            });
        }
        let key: Option<Vec<(String, FetchedValue)>> =
            by.into_iter().map(|name| Some((name.clone(), image.get(&name)?.clone()))).collect();
        let Some(key) = key else { return Ok(None) };
        Ok(rows.pop().map(|row| LocatedRow { source, key, image, row }))
    }

    /// Whether a column can contain that id: a uuid column contains only UUIDs, and a JSON column no bare words.
    /// Querying for others would be an error.
    pub fn can_be(self, way: &BoundColumn, id: &str) -> bool {
        match PgType::of(dialect::declared(&way.origin)) {
            PgType::Uuid if self.store.engine() == Engine::Postgres => is_uuid(id),
            PgType::Integer if self.store.engine() == Engine::Postgres => id.parse::<i64>().is_ok(),
            PgType::Json => self.store.engine() != Engine::Postgres,
            _ => true,
        }
    }

    /// Inserts a row into a source. `owner` is the stored row that it depends on, from which the layout may copy
    /// columns.
    ///
    /// # Errors
    /// [`StoreError::CannotHold`] with the reason.
    pub async fn insertion(
        self,
        source: &BoundSource,
        values: &[(&str, GivenValue)],
        owner: Option<&Image>,
    ) -> Result<Mutation, StoreError> {
        let (columns, row): (Vec<&str>, Vec<GivenValue>) = values.iter().cloned().unzip();
        self.insertions(source, &columns, &[row], owner).await
    }

    /// Inserts rows into a source, all with values for the same canonical columns.
    ///
    /// # Errors
    /// As [`RowEncoder::insertion`].
    pub async fn insertions(
        self,
        source: &BoundSource,
        columns: &[&str],
        rows: &[Vec<GivenValue>],
        owner: Option<&Image>,
    ) -> Result<Mutation, StoreError> {
        let rows: Vec<(&[GivenValue], &StoredColumns)> = rows.iter().map(|row| (row.as_slice(), NOTHING)).collect();
        self.insertions_as_stored(source, columns, &rows, owner).await
    }

    /// As [`RowEncoder::insertions`], with values for stored columns in addition to the canonical ones, the same
    /// columns for each row.
    ///
    /// # Errors
    /// As [`RowEncoder::insertion`].
    pub async fn insertions_as_stored(
        self,
        source: &BoundSource,
        columns: &[&str],
        rows: &[(&[GivenValue], &StoredColumns)],
        owner: Option<&Image>,
    ) -> Result<Mutation, StoreError> {
        let table = table_of(source);
        let shape = self.store.shapes().shape(&table).await?;
        let write = source.write.clone().unwrap_or_default();
        let mut names = Vec::new();
        let mut cells = Vec::with_capacity(rows.len());
        for (row, stored) in rows {
            let values: Vec<(&str, &GivenValue)> = columns.iter().copied().zip(*row).collect();
            let (named, row) = self
                .new_cells(source, &shape, &write, &values, stored, owner)
                .map_err(StoreError::CannotHold)?
                .into_iter()
                .unzip();
            names = named;
            cells.push(row);
        }
        let key_columns: &[&str] =
            if source.entity.column("id").is_some() { &["id"] } else { &["episode_id", "memory_id"] };
        let stored: Option<Vec<String>> = match self::key_columns(source, "id") {
            Some(parts) => Some(parts.into_iter().map(str::to_owned).collect()),
            None => key_columns.iter().map(|c| Some(plain_column(source, c)?.0.to_owned())).collect(),
        };
        // The engine numbers rows without a number.
        let is_given = |key: &Vec<String>| !write.numbered || key.iter().all(|name| names.contains(name));
        let key = stored.filter(is_given).unwrap_or_default();
        Ok(Mutation::Insert { table, key, columns: names, rows: cells })
    }

    fn new_cells(
        self,
        source: &BoundSource,
        shape: &TableShape,
        write: &Write,
        values: &[(&str, &GivenValue)],
        stored: &StoredColumns,
        owner: Option<&Image>,
    ) -> Result<Vec<(String, Cell)>, String> {
        let is_kept = |name: &str| stored.iter().any(|(kept, _)| kept == name);
        let mut cells: Vec<(String, Cell)> = Vec::new();
        let keep = |cells: &mut Vec<(String, Cell)>| {
            for (name, raw) in stored {
                cells.retain(|(n, _)| n != name);
                cells.push((name.clone(), Cell::Is(raw.clone())));
            }
        };
        // A stored value contains everything that was read from it.
        keep(&mut cells);
        let only_within = |c: &str| {
            plain_column(source, c).is_none() && source.column(c).iter().any(|way| within_table(way).is_some())
        };
        let within = |c: &str| goes_within(source, c) || only_within(c);
        let by_word = |c: &str| write.insert.iter().any(|(_, f)| matches!(f, Fill::Word { column, .. } if column == c));
        for (column, value) in values {
            let elsewhere =
                *column == "id" && write.numbered || by_word(column) && plain_column(source, column).is_none();
            if !elsewhere && !within(column) {
                for cell in encode(source, shape, column, value)?.into_iter().filter(|(name, _)| !is_kept(name)) {
                    add_cell(&mut cells, cell)
                        .map_err(|name| format!("{name} and `{column}` contradict each other"))?;
                }
            }
        }
        // Values within a stored value are added after that is set.
        let inside = values.iter().filter(|(column, _)| within(column));
        for (column, value) in inside {
            if let Some(value) = value.part() {
                self.put_into(source, column, &value.to_value(), &mut cells, is_kept)?;
            }
        }
        let made = |copy: &StoredCopy| !is_kept(&copy.column);
        for (name, cell) in copies(source, shape, values, (&cells, &Image(Vec::new())), None, made)? {
            cells.retain(|(known, _)| *known != name);
            cells.push((name, cell));
        }
        self.fill(shape, write, values, owner, &mut cells);
        keep(&mut cells);
        let filled = |name: &str| cells.iter().any(|(n, cell)| n == name && *cell != Cell::Is(FetchedValue::Null));
        match shape.columns.iter().find(|c| c.required && !filled(&c.name)) {
            Some(column) => Err(lacking(source, write, &column.name)),
            None => Ok(cells),
        }
    }

    /// Puts a value of a new row into the stored value that contains it, unless that has it already or is kept
    /// unchanged.
    fn put_into(
        self,
        source: &BoundSource,
        column: &str,
        value: &Value,
        cells: &mut Vec<(String, Cell)>,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let ways = source.column(column).iter();
        let places: Vec<(&str, &BoundColumn)> = ways.filter_map(|way| Some((within_table(way)?, way))).collect();
        let none = Image(Vec::new());
        let says = |place: &&(&str, &BoundColumn)| {
            within::found(current(cells, &none, place.0), &place.1.inside).0.is_some_and(|found| !found.is_null())
        };
        // For a value that does not exist yet the whole value is the best place, otherwise the shallowest.
        let depth = |place: &&(&str, &BoundColumn)| (!can_be_made(place.1), place.1.inside.path.is_some());
        let said = places.iter().find(says);
        let Some((name, way)) = said.or(places.iter().min_by_key(depth)).copied() else { return Ok(()) };
        let old = current(cells, &none, name).clone();
        let kind = source.entity.column(column).map_or(ValueKind::Text, |c| c.kind);
        let told = codec::value(kind, way, &old).0;
        let is_said = within::found(&old, &way.inside).0.as_ref() == Some(value) || said.is_some() && told == *value;
        if value.is_null() || is_said || is_kept(name) {
            return Ok(());
        }
        let is_key = key_columns(source, "id").unwrap_or_default().contains(&name);
        // Other rows may have contributed to a list.
        let lists = told.as_array().zip(value.as_array()).filter(|_| asks_others(source, column).is_some());
        let adds = lists.is_some_and(|(told, all)| told.iter().all(|one| all.contains(one)));
        if said.is_some() && (is_key || !SAID.contains(&column) && !adds) {
            let title = table_of(source).title();
            return Err(format!("{title}.{name}: the value given for it contradicts `{column}`"));
        }
        let new = put_within(self.store.engine(), source, column, way, value, &old)?;
        cells.retain(|(known, _)| known != name);
        cells.push((name.to_owned(), Cell::Is(new)));
        Ok(())
    }

    /// Sets the columns of a new row for which the layout has a value, if they have none.
    fn fill(
        self,
        shape: &TableShape,
        write: &Write,
        values: &[(&str, &GivenValue)],
        owner: Option<&Image>,
        cells: &mut Vec<(String, Cell)>,
    ) {
        for (name, fill) in &write.insert {
            let Some(column) = shape.column(name) else { continue };
            if cells.iter().any(|(n, cell)| *n == column.name && *cell != Cell::Is(FetchedValue::Null)) {
                continue;
            }
            let value = match fill {
                Fill::Value(value) => constant(self.store.engine(), value),
                Fill::Owner(from) => owner.and_then(|o| o.get(from)).cloned().unwrap_or(FetchedValue::Null),
                Fill::Word { column, words } => {
                    let said = values.iter().find_map(|(c, given)| match given {
                        GivenValue::Is(Value::String(word)) if c == column => Some(word),
                        _ => None,
                    });
                    match words.iter().find(|(word, _)| Some(word) == said) {
                        Some((_, value)) => constant(self.store.engine(), value),
                        None => continue,
                    }
                }
            };
            cells.retain(|(n, _)| *n != column.name);
            cells.push((column.name.clone(), Cell::Is(value)));
        }
    }
}

/// Explains that a new row needs a value in a column, and where it would come from.
fn lacking(source: &BoundSource, write: &Write, name: &str) -> String {
    let title = table_of(source).title();
    let canonical = source.entity.columns().iter().find(|c| plain_column(source, c.name).is_some_and(|p| p.0 == name));
    match (canonical, write.insert.iter().find(|(n, _)| n == name)) {
        (Some(column), _) => format!("{title}.{name} must have a value: give `{}`", column.name),
        (None, Some((_, Fill::Owner(_)))) => format!(
            "{title}.{name} must have a value, which would come from another row of the same owner, but there is no \
             such row"
        ),
        (None, _) => format!("{title}.{name} must have a value, and nothing that you gave determines it"),
    }
}
