//! References of other rows to an edited row: by a foreign key, or by the layout.

use super::ChangeError;
use crate::layout::Codec;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::store::Store;
use crate::store::encode::LocatedRow;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{Cell, Mutation, StoredRows, TableName};
use crate::store::within::texts_of;

/// Columns of another table that name a row by columns of its own.
struct NamingKey<'a> {
    from: TableName,
    columns: Vec<String>,
    to: Vec<String>,
    /// The layout's rule, if it is not a foreign key.
    rule: Option<&'a BoundRule>,
}

/// Checks that no column by which other rows refer to a row changes: the engine would change them too, or they would
/// dangle.
///
/// # Errors
/// [`ChangeError::Refused`] with the referring table; otherwise the engine's refusal.
pub(super) async fn check(store: &Store, found: &LocatedRow<'_>, update: &Mutation) -> Result<(), ChangeError> {
    let Mutation::Update { table, set, .. } = update else { return Ok(()) };
    let changes = |column: &String| {
        let old = found.image.get(column);
        let is_it = |(name, _): &&(String, Cell)| name.eq_ignore_ascii_case(column);
        set.iter().find(is_it).is_some_and(|(_, new)| old.is_some_and(|old| *new != Cell::Is(old.clone())))
    };
    let keys = store.shapes().keys_to(table).await?.into_iter();
    let mut naming: Vec<NamingKey<'_>> =
        keys.map(|key| NamingKey { from: key.from, columns: key.columns, to: key.to_columns, rule: None }).collect();
    let mut referred = None;
    for rule in
        store.recognised().erasure.rules.iter().filter(|rule| rule.of.as_ref().is_some_and(|of| is_of(of, table)))
    {
        let Some(to) = named_columns(rule, found) else { continue };
        let changed: Vec<&String> = to.iter().filter(|to| changes(to)).collect();
        if changed.is_empty() {
            continue;
        }
        let is_own = is_own_name(store, found, table, &to);
        if !is_own {
            if referred.is_none() {
                referred = Some(store.shapes().column_keys_of(table).await?);
            }
            let refers = |column: &&String| {
                let foreign = referred.iter().flatten().any(|key| key.column.eq_ignore_ascii_case(column));
                foreign || leads_elsewhere(store, table, column)
            };
            let of_itself = is_of(&rule.table, table) && rule.naming_columns() == to;
            if of_itself || rule.action != EraseAction::Delete || changed.iter().any(refers) {
                continue;
            }
        }
        naming.push(NamingKey {
            from: TableName::of(&rule.table),
            columns: rule.naming_columns(),
            to,
            rule: Some(rule),
        });
    }
    naming.retain(|key| key.to.iter().any(&changes));
    if naming.is_empty() {
        return Ok(());
    }
    let mut snapshot = store.snapshot().await?;
    for key in naming {
        let values: Option<Vec<FetchedValue>> = key.to.iter().map(|to| found.image.get(to).cloned()).collect();
        // NULL refers to nothing.
        let Some(values) = values.filter(|values| !values.contains(&FetchedValue::Null)) else { continue };
        if names(&mut snapshot, found, &key, &values).await? && is_alone(&mut snapshot, table, &key, values).await? {
            let changed = key.to.iter().find(|to| changes(to)).map_or("", String::as_str);
            return Err(ChangeError::Refused(format!(
                "{}.{changed} would change, and rows of {} refer to this row by it (`{}`): it cannot be edited",
                table.title(),
                key.from.title(),
                key.columns.join("`, `")
            )));
        }
    }
    Ok(())
}

fn is_of(key: &TableKey, table: &TableName) -> bool {
    (&key.0, &key.1) == (&table.schema, &table.name)
}

/// The columns of a row's own table that a rule refers to: its key if the rule names none.
fn named_columns(rule: &BoundRule, found: &LocatedRow<'_>) -> Option<Vec<String>> {
    let key = || match &found.key[..] {
        [(column, _)] => Some(column.clone()),
        _ => None,
    };
    let first = rule.to.clone().or_else(key)?;
    Some(std::iter::once(first).chain(rule.also.iter().map(|(_, to)| to.clone())).collect())
}

/// Whether some columns identify a row: their values are unique, or they include a copy of its words.
fn is_own_name(store: &Store, found: &LocatedRow<'_>, table: &TableName, to: &[String]) -> bool {
    let among = |column: &String| to.iter().any(|to| to.eq_ignore_ascii_case(column));
    let unique = store.catalog().exactly(&table.schema, &table.name).map(|there| &there.unique);
    unique.into_iter().flatten().any(|columns| columns.iter().all(among))
        || found.source.write.iter().flat_map(|write| &write.copies).any(|copy| among(&copy.column))
}

/// Whether a row refers to others by a column: a rule leads from it to the key of another table.
fn leads_elsewhere(store: &Store, table: &TableName, column: &str) -> bool {
    let is_key = |rule: &BoundRule| {
        let there = store.catalog().exactly(&rule.table.0, &rule.table.1);
        there.is_some_and(|there| there.unique.iter().any(|unique| *unique == [rule.column.as_str()]))
    };
    let leads = |rule: &&BoundRule| {
        rule.of.as_ref().is_some_and(|of| is_of(of, table))
            && rule.to.as_deref() == Some(column)
            && rule.also.is_empty()
    };
    store.recognised().erasure.rules.iter().filter(leads).any(is_key)
}

/// Whether a row of the other table has some values in the referring columns; the first of these may be a list or a
/// document, if the rule looks into it.
async fn names(
    snapshot: &mut Snapshot<'_>,
    found: &LocatedRow<'_>,
    key: &NamingKey<'_>,
    values: &[FetchedValue],
) -> Result<bool, ChangeError> {
    let subject: Vec<String> = found.row.text("user_id").map(str::to_owned).into_iter().collect();
    let when = key.rule.and_then(|rule| rule.when.as_deref());
    let wanted = WantedRows { table: &key.from, columns: &key.columns, when, subject: &subject };
    let within = key.rule.filter(|rule| !rule.inside.is_whole() || rule.action == EraseAction::Remove);
    let Some(rule) = within else { return Ok(snapshot.holds_key(wanted, &key.columns, values.to_vec()).await?) };
    let Some(text) = values.first().and_then(as_text) else { return Ok(false) };
    let mut inside = rule.inside.clone();
    if inside.is_whole() {
        inside.decode.push(Codec::Json);
    }
    let mut is_there = false;
    let look = |row: &Vec<FetchedValue>| texts_of(row.first()?, &inside).contains(&text).then_some(());
    snapshot.stream_looked(wanted, look, |_, ()| is_there = true).await?;
    Ok(is_there)
}

/// Whether no other row of the table has the same values; otherwise references lead to that one.
async fn is_alone(
    snapshot: &mut Snapshot<'_>,
    table: &TableName,
    key: &NamingKey<'_>,
    values: Vec<FetchedValue>,
) -> Result<bool, ChangeError> {
    let rows = StoredRows { table: table.clone(), by: key.to.clone(), keys: vec![values] };
    Ok(snapshot.number(rows).await?.is_none_or(|watch| watch.state.count < 2))
}
