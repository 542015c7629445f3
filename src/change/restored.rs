//! References that an undo restores, by the layout's rules, to rows that may be deleted meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::ChangeError;
use super::apply::KeptUndo;
use super::draft::Draft;
use super::plan::Counts;
use super::plan::trail::EntryFacts;
use super::undo::LOOKED_THROUGH;
use crate::layout::erase::{BoundRule, EraseAction, TableKey};
use crate::layout::{BoundColumn, BoundSource};
use crate::memory::{agreeing, id_list, json};
use crate::store::Store;
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::own::TrailEntry;
use crate::store::stored::{Cell, Mutation, TableName};
use crate::store::within::texts_of;

/// A column that names rows of a source by their ids.
struct Reference<'s> {
    rule: &'s BoundRule,
    table: TableName,
    source: &'s BoundSource,
    /// Stored column of these ids, and how it is read.
    id: (&'s str, &'s BoundColumn),
}

/// References that an undo would restore but whose rows a later change deleted, as text. The plan itself lists those
/// whose rows are missing for another reason, which may not have existed before either.
pub(super) async fn lost(draft: &mut Draft<'_>, seq: i64) -> Result<Vec<String>, ChangeError> {
    let store = draft.store;
    let mut lost = Vec::new();
    for ((table, column), references) in references(store) {
        let mut ids = BTreeSet::new();
        for reference in &references {
            ids.extend(restored(store, draft.mutations(), reference).await?);
        }
        // One column may name rows of several tables.
        for reference in &references {
            reference.keep_missing(store, draft.mutations(), &mut ids).await?;
        }
        if ids.is_empty() {
            continue;
        }
        let to: BTreeSet<TableName> = references.iter().map(|reference| table_of(reference.source)).collect();
        let titles: Vec<String> = to.iter().map(TableName::title).collect();
        let words = format!(
            "{{#}} {{value|values}} of {}.{column} would name {{a row|rows}} of {} that {{is|are}} missing",
            table.title(),
            titles.join(" or ")
        );
        let words = agreeing(ids.len(), &words);
        match taken_away(store, seq, &to, &ids).await? {
            Some(by) => lost.push(format!("{words}: {by}")),
            None => draft.disclosures.push(words),
        }
    }
    Ok(lost)
}

/// The columns that refer to rows by their ids only, by the layout's rules, each with its possible targets.
fn references(store: &Store) -> BTreeMap<(TableName, &str), Vec<Reference<'_>>> {
    let mut places: BTreeMap<(TableName, &str), Vec<Reference<'_>>> = BTreeMap::new();
    let mut others = HashSet::new();
    for rule in &store.recognised().erasure.rules {
        let Some(of) = &rule.of else { continue };
        let place = (TableName::of(&rule.table), rule.column.as_str());
        let named = by_ids(store, rule, of);
        if named.is_empty() || !rule.also.is_empty() {
            others.insert(place);
        } else if rule.when.is_none() {
            places.entry(place).or_default().extend(named);
        }
    }
    places.retain(|place, _| !others.contains(place));
    places
}

/// The sources of a table whose rows a rule refers to by id.
fn by_ids<'s>(store: &'s Store, rule: &'s BoundRule, of: &TableKey) -> Vec<Reference<'s>> {
    let reference = |source: &'s BoundSource| {
        let id = plain_column(source, "id")?;
        let is_id = rule.to.as_deref().is_none_or(|to| to == id.0);
        is_id.then(|| Reference { rule, table: TableName::of(&rule.table), source, id })
    };
    store.recognised().sources.iter().filter(|source| source.table == *of).filter_map(reference).collect()
}

/// The ids that some changes restore in referring columns, and that do not exist now.
async fn restored(
    store: &Store,
    mutations: &[Mutation],
    reference: &Reference<'_>,
) -> Result<BTreeSet<String>, ChangeError> {
    let column = &reference.rule.column;
    let mut ids = BTreeSet::new();
    for mutation in mutations.iter().filter(|mutation| *mutation.table() == reference.table) {
        match mutation {
            Mutation::Insert { columns, rows, .. } => {
                let Some(at) = columns.iter().position(|name| name == column) else { continue };
                ids.extend(rows.iter().filter_map(|row| row.get(at)).flat_map(|cell| reference.named(cell)));
            }
            Mutation::Update { set, .. } => {
                let Some((_, cell)) = set.iter().find(|(name, _)| name == column) else { continue };
                let named = reference.named(cell);
                let Some(rows) = mutation.rows().filter(|_| !named.is_empty()) else { continue };
                let now = store.shapes().images_of(&rows, std::slice::from_ref(column)).await?;
                let now = now.first().and_then(|image| image.get(column)).cloned().unwrap_or(FetchedValue::Null);
                let now = reference.named(&Cell::Is(now));
                ids.extend(named.into_iter().filter(|id| !now.contains(id)));
            }
            Mutation::Delete(_) | Mutation::Revise(_) => {}
        }
    }
    Ok(ids)
}

impl Reference<'_> {
    /// Keeps only the ids that no row has, and that some changes do not restore.
    async fn keep_missing(
        &self,
        store: &Store,
        mutations: &[Mutation],
        ids: &mut BTreeSet<String>,
    ) -> Result<(), ChangeError> {
        let to = table_of(self.source);
        for mutation in mutations {
            let Mutation::Insert { table, columns, rows, .. } = mutation else { continue };
            let at = columns.iter().position(|name| name == self.id.0).filter(|_| *table == to);
            let Some(at) = at else { continue };
            for cell in rows.iter().filter_map(|row| row.get(at)) {
                if let Cell::Is(value) = cell
                    && let Some(id) = as_text(value)
                {
                    ids.remove(&id);
                }
            }
        }
        let may_be = |id: &&String| store.encoder().can_be(self.id.1, id);
        let asked: Vec<String> = ids.iter().filter(may_be).cloned().collect();
        if !asked.is_empty() {
            let there = store.related_in(self.source, "id", &asked, &[], Some(&["id"])).await?;
            // Columns may compare ids without regard to case.
            let there: HashSet<String> = there.iter().map(|row| row.id().to_lowercase()).collect();
            ids.retain(|id| !there.contains(&id.to_lowercase()));
        }
        Ok(())
    }

    /// The ids that a value names there.
    fn named(&self, cell: &Cell) -> Vec<String> {
        let Cell::Is(raw) = cell else { return Vec::new() };
        if !self.rule.inside.is_whole() {
            return texts_of(raw, &self.rule.inside);
        }
        let Some(text) = as_text(raw).filter(|text| !text.is_empty()) else { return Vec::new() };
        let is_array = self.rule.action == EraseAction::Remove && text.starts_with('{');
        // Numbers in a list are ids too.
        let ids = |_: Vec<String>| {
            json::read_ids(&text).items.iter().filter_map(|id| Some(id.as_str()?.to_owned())).collect()
        };
        let items = if is_array { id_list::array_texts(&text).ok() } else { json::listed(&text).map(ids) };
        items.unwrap_or_else(|| vec![text])
    }
}

/// Returns the later audit entry that deleted one of some rows. For an entry whose values are not stored, such as an
/// erasure, it is unknown which rows of a table it deleted.
async fn taken_away(
    store: &Store,
    seq: i64,
    tables: &BTreeSet<TableName>,
    ids: &BTreeSet<String>,
) -> Result<Option<String>, ChangeError> {
    let is_it = |mutation: &Mutation| {
        let names = |key: &Vec<FetchedValue>| key.iter().filter_map(as_text).any(|id| ids.contains(&id));
        let back =
            mutation.rows().filter(|rows| matches!(mutation, Mutation::Insert { .. }) && tables.contains(&rows.table));
        back.is_some_and(|rows| rows.keys.iter().any(names))
    };
    let deletes = |entry: &TrailEntry| {
        let counts = EntryFacts::parse(&entry.public).counts;
        let is_less = |counts: &Counts, table: &TableName| {
            counts.get(&table.title()).is_some_and(|verbs| verbs.contains_key("delete"))
        };
        counts.is_some_and(|counts| tables.iter().any(|table| is_less(&counts, table)))
    };
    for entry in store.records().trail(seq, LOOKED_THROUGH).await?.iter().filter(|entry| deletes(entry)) {
        let kept = store.records().trail_private(entry.seq, entry.seq, &["undo"]).await?;
        let kept = kept.first().and_then(|kept| serde_json::from_str::<KeptUndo>(&kept.value).ok());
        match kept {
            None => return Ok(Some(format!("entry {}, which keeps no values, may have removed one", entry.seq))),
            Some(kept) if kept.inverses.iter().any(|inverse| is_it(&inverse.mutation)) => {
                return Ok(Some(format!("removed by entry {}", entry.seq)));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}
