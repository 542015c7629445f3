//! The vectors of many new rows, stored in their own column or the separate table, each as exported.

use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::layout::BoundSource;
use crate::memory::agreeing;
use crate::store::embedding::{VectorShelf, spelled};
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation};
use crate::store::surplus::{StoredColumns, Surplus};

/// Adds the vectors of new rows, by id, to the plan that adds the rows; reports those that cannot be stored.
///
/// # Errors
/// The engine's refusal.
pub async fn add(draft: &mut Draft<'_>, source: &BoundSource, with: Vec<(String, Surplus)>) -> Result<(), ChangeError> {
    if with.is_empty() {
        return Ok(());
    }
    let store = draft.store;
    let shelf = match VectorShelf::of(source) {
        Ok(shelf) => shelf,
        Err(why) => {
            draft.disclosures.push(agreeing(with.len(), &format!("{{#}} {{vector is|vectors are}} left out: {why}")));
            return Ok(());
        }
    };
    let shape = store.shapes().shape(&shelf.table).await?;
    let mut odd = 0;
    let mut beside: Vec<StoredColumns> = Vec::new();
    for (id, surplus) in with {
        let as_stored = surplus.beside.filter(|(table, _)| *table == shelf.table.title());
        if let (Some(_), Some((_, columns))) = (&shelf.key, as_stored) {
            beside.push(columns.into_iter().filter(|(name, _)| shape.column(name).is_some()).collect());
            continue;
        }
        let Some(numbers) = &surplus.vector else { continue };
        if shelf.fixed_size().is_some_and(|size| size != numbers.len()) {
            odd += 1;
            continue;
        }
        let vector = spelled(store.engine(), &shelf.declared, numbers);
        match &shelf.key {
            Some(key) => {
                beside.push(vec![(key.clone(), FetchedValue::Text(id)), (shelf.column.clone(), vector)]);
            }
            None => into_row(draft, source, id, &shelf, vector),
        }
    }
    if odd > 0 {
        let words = agreeing(
            odd,
            &format!(
                "{{#}} {{vector is|vectors are}} left out: {} stores vectors of another size",
                shelf.table.title()
            ),
        );
        draft.disclosures.push(words);
    }
    let Some(key) = &shelf.key else { return Ok(()) };
    let lacks = |columns: &StoredColumns| {
        let filled = |name: &str| columns.iter().any(|(n, raw)| n == name && *raw != FetchedValue::Null);
        shape.columns.iter().find(|c| c.required && !filled(&c.name)).map(|c| c.name.clone())
    };
    if let Some(column) = beside.iter().find_map(lacks) {
        let before = beside.len();
        beside.retain(|columns| lacks(columns).is_none());
        let (table, gone) = (shelf.table.title(), before - beside.len());
        draft.disclosures.push(agreeing(
            gone,
            &format!("{{#}} {{vector is|vectors are}} left out: nothing says what {table}.{column} should hold"),
        ));
    }
    beside.sort_by_key(|columns| columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for rows in beside.chunk_by(|a, b| a.iter().map(|(name, _)| name).eq(b.iter().map(|(name, _)| name))) {
        let columns = rows[0].iter().map(|(name, _)| name.clone()).collect();
        let rows = rows.iter().map(|row| row.iter().map(|(_, raw)| Cell::Is(raw.clone())).collect()).collect();
        draft.push(Mutation::Insert { table: shelf.table.clone(), key: vec![key.clone()], columns, rows });
    }
    Ok(())
}

/// Puts a vector into the new row itself, unless its stored form is already there.
fn into_row(draft: &mut Draft<'_>, source: &BoundSource, of: String, shelf: &VectorShelf, vector: FetchedValue) {
    let Some((id, _)) = plain_column(source, "id") else { return };
    let own = table_of(source);
    let key = Cell::Is(FetchedValue::Text(of));
    for mutation in draft.mutations_mut() {
        let Mutation::Insert { table, columns, rows, .. } = mutation else { continue };
        let Some(at) = columns.iter().position(|c| c == id).filter(|_| *table == own) else { continue };
        let Some(row) = rows.iter().position(|row| row[at] == key) else { continue };
        let place = columns.iter().position(|c| *c == shelf.column).unwrap_or_else(|| {
            columns.push(shelf.column.clone());
            rows.iter_mut().for_each(|row| row.push(Cell::Is(FetchedValue::Null)));
            columns.len() - 1
        });
        if rows[row][place] == Cell::Is(FetchedValue::Null) {
            rows[row][place] = Cell::Is(vector);
        }
        return;
    }
}
