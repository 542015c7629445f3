//! The vector of a curated episode: read from its JSON, and stored if the layout stores vectors.

use serde_json::{Map, Value};

use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::layout::BoundSource;
use crate::layout::vector::VectorsBeside;
use crate::memory::vector::has_direction;
use crate::store::embedding::spelled;
use crate::store::encode::table_of;
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation, TableName};

/// Key of the JSON with the vector; not a canonical column.
const KEY: &str = "embedding";

/// Most numbers of a vector.
const DIMENSIONS: usize = 65_536;

/// Takes the vector out of the JSON of an episode; `None` if there is none.
///
/// # Errors
/// [`ChangeError::Usage`] if it is not a list of numbers.
pub(super) fn take(object: &mut Map<String, Value>) -> Result<Option<Vec<f32>>, ChangeError> {
    let wrong = || ChangeError::Usage(format!("`{KEY}` must be a list of 1 to {DIMENSIONS} numbers"));
    let numbers = match object.remove(KEY) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(numbers)) if (1..=DIMENSIONS).contains(&numbers.len()) => numbers,
        Some(_) => return Err(wrong()),
    };
    let number = |value: &Value| value.as_f64().map(|x| x as f32).filter(|x| x.is_finite());
    numbers.iter().map(number).collect::<Option<Vec<f32>>>().map(Some).ok_or_else(wrong)
}

/// Adds the vector to the plan with the new row: in its own column or in the separate table.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn store(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    id: &str,
    numbers: &[f32],
) -> Result<(), ChangeError> {
    let store = draft.store;
    let own = table_of(source);
    let Some(place) = &source.vector else {
        draft.disclosures.push(format!("the vector is not stored: {} has no place for one", own.title()));
        return Ok(());
    };
    if !has_direction(numbers) {
        let words = "the vector has no direction: it is all zeros, as 32 bits keep it, and finds nothing";
        draft.disclosures.push(words.to_owned());
    }
    if let Some(usual) = store.embeddings().usual_vector_size(source).await?.filter(|usual| *usual != numbers.len()) {
        draft.disclosures.push(format!(
            "the vector has {} numbers and most stored ones have {usual}: it is compared with none of these",
            numbers.len()
        ));
    }
    let beside = match &place.beside {
        Some(VectorsBeside { table: Some(table), key, .. }) if key.len() == 1 => Some((table, &key[0].0)),
        Some(_) => {
            draft.disclosures.push(format!("the vector is not stored: that of {} is not one column", own.title()));
            return Ok(());
        }
        None => None,
    };
    let Some(((schema, name), key)) = beside else {
        let shape = store.shapes().shape(&own).await?;
        let declared = shape.column(&place.column).map_or("", |c| c.compared.as_str());
        let cell = Cell::Is(spelled(store.engine(), declared, numbers));
        let is_new_row = |m: &&mut Mutation| matches!(m, Mutation::Insert { table, .. } if *table == own);
        if let Some(Mutation::Insert { columns, rows, .. }) = draft.mutations_mut().find(is_new_row) {
            columns.push(place.column.clone());
            rows.iter_mut().for_each(|row| row.push(cell.clone()));
        }
        return Ok(());
    };
    let table = TableName::new(schema.clone(), name.clone());
    let shape = store.shapes().shape(&table).await?;
    let declared = shape.column(&place.column).map_or("", |c| c.compared.as_str());
    // The row's key in stored form: a UUID in a text column keeps its spelling.
    let row = vec![Cell::Is(FetchedValue::Text(id.to_owned())), Cell::Is(spelled(store.engine(), declared, numbers))];
    let columns = vec![key.clone(), place.column.clone()];
    draft.push(Mutation::Insert { table, key: vec![key.clone()], columns, rows: vec![row] });
    Ok(())
}
