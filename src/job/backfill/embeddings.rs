//! Adds vectors to rows without a usable one, from the endpoint in the profile: the only backfill that sends stored
//! text out of the process, and the only one that may cost money.

use std::collections::HashMap;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OnceCell};

use super::sources::{SourcePlace, writable};
use super::{BackfillArguments, left_out};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::lab::embed::{Endpoint, embed_all};
use crate::layout::BoundSource;
use crate::memory::text_check;
use crate::memory::vector::has_direction;
use crate::memory::{Entity, Row};
use crate::memory::{agreeing, thousands};
use crate::recall::keyword;
use crate::store::Store;
use crate::store::embedding::{VectorShelf, spelled};
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation, Revision, RowRevisions, StoredRows, TableName};
use crate::store::walk::{NarrowCondition, RowWalk, WalkedPart, WalkedRow, keyed};

/// Name of the backfill.
const NAME: &str = "embeddings";
/// Texts per request, and rows per batch.
const REQUEST: usize = 64;
/// Most characters of a text: as many as common models read.
const LONGEST: usize = 24_000;
/// Characters of a token, roughly.
const TOKEN: u64 = 4;

/// Rows that may have vectors, with the columns of their text.
const ENTITIES: [(Entity, &[&str]); 3] = [
    (
        Entity::Episode,
        &["id", "user_id", "title", "summary", "detail", "observation", "topic", "domain", "tags", "workflow_name"],
    ),
    (Entity::Case, &["id", "user_id", "prompt", "tags"]),
    (Entity::Memory, &["id", "user_id", "title", "text", "collection"]),
];

/// Rows of one source and the location of their vectors.
struct SourceVectors<'s> {
    columns: &'static [&'static str],
    source: &'s BoundSource,
    shelf: VectorShelf,
}

struct Embeddings {
    endpoint: Endpoint,
    in_rows: bool,
    /// Dimension of the existing vectors in each source, if known.
    sizes: OnceCell<Vec<Option<usize>>>,
    /// The answers of the latest request: a batch that is planned again does not pay twice.
    answers: Mutex<HashMap<String, Vec<f32>>>,
}

/// The backfill, if vectors are stored and an endpoint is configured.
pub fn make(store: &Store, given: &BackfillArguments) -> Result<Box<dyn Job>, ChangeError> {
    let kept = kept(store)?;
    let endpoint = given.endpoint.clone().map_err(ChangeError::Refused)?;
    let in_rows = kept.iter().any(|k| k.shelf.key.is_none());
    Ok(Box::new(Embeddings { endpoint, in_rows, sizes: OnceCell::new(), answers: Mutex::default() }))
}

fn kept(store: &Store) -> Result<Vec<SourceVectors<'_>>, ChangeError> {
    let mut all = Vec::new();
    let mut why = "this database stores no vectors of its rows".to_owned();
    for (entity, columns) in ENTITIES {
        if !store.embeddings().has_vectors(entity) {
            continue;
        }
        match writable(store, entity, &[]) {
            Ok(sources) => {
                for source in sources.into_iter().filter(|s| s.vector.is_some()) {
                    match VectorShelf::of(source) {
                        Ok(shelf) => all.push(SourceVectors { columns, source, shelf }),
                        Err(reason) => why = reason,
                    }
                }
            }
            Err(ChangeError::Refused(reason)) => why = reason,
            Err(error) => return Err(error),
        }
    }
    if all.is_empty() { Err(ChangeError::Refused(why)) } else { Ok(all) }
}

impl Job for Embeddings {
    fn name(&self) -> &'static str {
        NAME
    }

    fn told(&self) -> Value {
        json!({ "model": self.endpoint.model, "host": self.endpoint.host() })
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let tables = |k: SourceVectors<'_>| [table_of(k.source), k.shelf.table];
        let mut tables: Vec<TableName> = kept(store).unwrap_or_default().into_iter().flat_map(tables).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async move {
            let walk =
                |k: SourceVectors<'a>| RowWalk { source: k.source, columns: &["id"], stored: &[], narrow: Vec::new() };
            Ok(Some(store.walks().walk_count_all(kept(store)?.into_iter().map(walk)).await?))
        })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(self.one(ask))
    }

    fn effects(&self) -> Vec<String> {
        vec![format!(
            "rows without a vector, or with one of another size than most, get one of {} from the model {}, computed \
             from the text that keyword search uses, cut to {LONGEST} characters",
            self.endpoint.host(),
            self.endpoint.model
        )]
    }

    fn disclosures(&self) -> Vec<String> {
        let host = self.endpoint.host();
        let mut said = vec![if self.endpoint.is_local() {
            format!("stored texts are sent to {host}, a server on this machine; secrets are removed first")
        } else {
            format!("stored texts leave this machine for {host}; secrets are removed first")
        }];
        said.push("vectors of two models cannot be compared: use the model that made the existing ones".to_owned());
        said
    }

    fn undo_reason(&self) -> Option<String> {
        self.in_rows.then(|| {
            "vectors are in the rows themselves and are too large to keep twice; to undo it, empty the column"
                .to_owned()
        })
    }

    fn summed(&self, sums: &Map<String, Value>) -> Vec<String> {
        let sum = |key: &str| sums.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (rows, characters) = (sum("texts"), sum("characters"));
        let mut said = vec![agreeing(
            rows,
            &format!(
                "{{#}} {{text|texts}} of {} characters, about {} tokens (rough: {TOKEN} characters each), in about {} requests \
             of up to {REQUEST} to {}",
                thousands(characters),
                thousands(characters.div_ceil(TOKEN)),
                thousands(rows.div_ceil(REQUEST as u64)),
                self.endpoint.host()
            ),
        )];
        if sum("cut") > 0 {
            said.push(agreeing(sum("cut"), &format!("{{#}} {{text is|texts are}} cut to {LONGEST} characters")));
        }
        if sum("textless") > 0 {
            said.push(agreeing(sum("textless"), "{#} {row has|rows have} no text {and gets|and get} no vector"));
        }
        said.extend(left_out(sums));
        said
    }
}

/// A row that needs a vector.
struct Lacking {
    found: WalkedRow,
    text: String,
    /// Stored value in place of the vector, if there is one.
    there: Option<FetchedValue>,
}

/// Counts of the processed rows.
#[derive(Default)]
struct EmbeddingTally {
    characters: u64,
    cut: u64,
    textless: u64,
    erased: u64,
}

impl Embeddings {
    async fn one(&self, ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
        let store = ask.store;
        let all = kept(store)?;
        let place = SourcePlace::read(ask.place);
        let mut draft = Draft::batch(store, ask.own, "backfill.embeddings", ChangeDanger::Guarded);
        draft.undo_reason = self.undo_reason();
        let Some(kept) = all.get(place.source) else {
            return Ok(JobBatch { plan: draft.seal_batch(), next: None, seen: 0, bad: Vec::new() });
        };
        let sizes = self.sizes.get_or_try_init(|| self.look_around(store, &all)).await?;
        let size = sizes.get(place.source).copied().flatten();
        let stored = if kept.shelf.key.is_none() { vec![kept.shelf.column.clone()] } else { Vec::new() };
        let walk = RowWalk { source: kept.source, columns: kept.columns, stored: &stored, narrow: Vec::new() };
        let WalkedPart { rows: mut found, is_full } = store.walks().walk(&walk, place.after.as_ref(), ask.size).await?;
        let ids: Vec<String> = found.iter().map(|f| f.row.id().to_owned()).collect();
        let vectors = store.embeddings().vectors(kept.source.entity, &ids).await?;
        let is_usable = |v: &Vec<f32>| size.is_none_or(|size| v.len() == size) && has_direction(v);
        let has = |f: &WalkedRow| vectors.get(f.row.id()).is_some_and(is_usable);
        let erased = Erased::of(store).await?;
        let mut told = EmbeddingTally::default();
        let mut wanted = Vec::new();
        let mut looked_at = 0;
        for found in &found {
            if !ask.dry && wanted.len() == REQUEST {
                break;
            }
            looked_at += 1;
            if has(found) {
                continue;
            }
            if told.sorted(&found.row, erased.as_ref()).is_some() {
                wanted.push(found.row.id().to_owned());
            }
        }
        let cut_short = looked_at < found.len();
        found.truncate(looked_at);
        let next = place.behind(found.last().map(|f| &f.key), is_full || cut_short, all.len());
        let wanted: Vec<WalkedRow> = if ask.dry {
            found.into_iter().filter(|f| wanted.iter().any(|id| id == f.row.id())).collect()
        } else {
            self.again(&mut draft, kept, &walk, &wanted).await?
        };
        let mut counted = EmbeddingTally { erased: told.erased, textless: told.textless, ..EmbeddingTally::default() };
        let mut lacking = Vec::new();
        for found in wanted {
            // Read again, since the text may have changed meanwhile.
            if let Some(text) = counted.sorted(&found.row, erased.as_ref()) {
                lacking.push(Lacking { there: found.stored.first().cloned(), found, text });
            }
        }
        self.standing(store, kept, &mut lacking).await?;
        let vectors = if ask.dry { vec![Vec::new(); lacking.len()] } else { self.asked(&lacking).await? };
        if let (Some(size), Some(given)) = (size, vectors.first().map(Vec::len).filter(|_| !ask.dry))
            && size != given
        {
            return Err(self.misfit(&kept.shelf, size, given));
        }
        counted.note(&mut draft, lacking.len());
        draft.facts.insert("model".to_owned(), Value::from(self.endpoint.model.clone()));
        kept.push(&mut draft, &lacking, &vectors)?;
        Ok(JobBatch { plan: draft.seal_batch(), next, seen: looked_at, bad: Vec::new() })
    }

    /// The dimension of the vectors of each source, after checking which model made them.
    async fn look_around(&self, store: &Store, all: &[SourceVectors<'_>]) -> Result<Vec<Option<usize>>, ChangeError> {
        for run in store.records().jobs().await?.iter().filter(|run| run.name == NAME && run.changed > 0) {
            let settings: Value = serde_json::from_str(&run.settings).unwrap_or_default();
            if let Some(model) = settings["told"]["model"].as_str().filter(|model| *model != self.endpoint.model) {
                return Err(ChangeError::Refused(format!(
                    "the vectors here were made by the model {model}, and the profile names {}: they cannot be \
                     compared. Name that model in the profile, or empty the vectors first",
                    self.endpoint.model
                )));
            }
        }
        let mut sizes = Vec::new();
        for kept in all {
            sizes.push(match kept.shelf.fixed_size() {
                Some(size) => Some(size),
                None => store.embeddings().usual_vector_size(kept.source).await?,
            });
        }
        Ok(sizes)
    }

    /// Reads the rows again and watches them: if a text changes, or a row is deleted, while its vector is computed, the
    /// batch is planned again.
    async fn again(
        &self,
        draft: &mut Draft<'_>,
        kept: &SourceVectors<'_>,
        walk: &RowWalk<'_>,
        wanted: &[String],
    ) -> Result<Vec<WalkedRow>, ChangeError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let read = RowWalk { narrow: vec![NarrowCondition::OneOf("id", wanted)], ..walk.clone() };
        let (table, id) = keyed(kept.source)?;
        let keys = draft.store.walks().walk_all(&read).await?.into_iter().map(|f| vec![f.key]).collect();
        let columns = kept.columns.iter().filter_map(|c| plain_column(kept.source, c));
        let columns = columns.map(|(name, _)| name.to_owned()).collect();
        draft.watch_columns(StoredRows { table, by: vec![id], keys }, columns).await?;
        Ok(draft.store.walks().walk_all(&read).await?)
    }

    /// Watches the rows where the vectors will be stored.
    async fn standing(
        &self,
        store: &Store,
        kept: &SourceVectors<'_>,
        lacking: &mut [Lacking],
    ) -> Result<(), ChangeError> {
        let Some(key) = &kept.shelf.key else { return Ok(()) };
        let keys: Vec<Vec<FetchedValue>> = lacking.iter().map(|l| vec![l.found.key.clone()]).collect();
        let rows = StoredRows { table: kept.shelf.table.clone(), by: vec![key.clone()], keys };
        let images = store.shapes().images_of(&rows, std::slice::from_ref(&kept.shelf.column)).await?;
        let by_key: HashMap<String, FetchedValue> = images
            .iter()
            .filter_map(|i| Some((json!(i.get(key)?).to_string(), i.get(&kept.shelf.column)?.clone())))
            .collect();
        for lacking in lacking {
            lacking.there = by_key.get(&json!(lacking.found.key).to_string()).cloned();
        }
        Ok(())
    }

    /// The vectors of some rows' texts, in order; requested only once.
    async fn asked(&self, lacking: &[Lacking]) -> Result<Vec<Vec<f32>>, ChangeError> {
        let mut answers = self.answers.lock().await;
        let mut open: Vec<String> =
            lacking.iter().map(|l| l.text.clone()).filter(|text| !answers.contains_key(text)).collect();
        open.sort_unstable();
        open.dedup();
        let known: HashMap<String, Vec<f32>> =
            lacking.iter().filter_map(|l| Some((l.text.clone(), answers.remove(&l.text)?))).collect();
        *answers = known;
        if !open.is_empty() {
            let vectors = embed_all(&self.endpoint, &open).await.map_err(ChangeError::Failed)?;
            answers.extend(open.into_iter().zip(vectors));
        }
        Ok(lacking.iter().map(|l| answers.get(&l.text).cloned().unwrap_or_default()).collect())
    }

    fn misfit(&self, shelf: &VectorShelf, size: usize, given: usize) -> ChangeError {
        ChangeError::Refused(format!(
            "the model {} returns vectors of {given} numbers, but those of {} have {size}: they cannot be compared. \
             Name the model that made them in the profile",
            self.endpoint.model,
            shelf.table.title()
        ))
    }
}

impl SourceVectors<'_> {
    /// Adds the vectors to the plan: new rows in the separate table, or a column to set.
    fn push(&self, draft: &mut Draft<'_>, lacking: &[Lacking], vectors: &[Vec<f32>]) -> Result<(), ChangeError> {
        let store = draft.store;
        let shelf = &self.shelf;
        let key = match &shelf.key {
            Some(key) => key.clone(),
            None => keyed(self.source)?.1,
        };
        let (mut fresh, mut revised) = (Vec::new(), Vec::new());
        for (lacking, numbers) in lacking.iter().zip(vectors) {
            let vector = spelled(store.engine(), &shelf.declared, numbers);
            let id = lacking.found.key.clone();
            match &lacking.there {
                Some(there) => revised.push(Revision(vec![id], vec![there.clone()], vec![vector])),
                None => fresh.push(vec![Cell::Is(id), Cell::Is(vector)]),
            }
            let was = lacking.there.as_ref().filter(|raw| **raw != FetchedValue::Null);
            let before = json!({ "vector": was.map(|_| "unusable: of another size, or unreadable") });
            let after = json!({ "vector": format!("of a text of {} characters", lacking.text.chars().count()) });
            draft.note(self.source.entity, lacking.found.row.id(), before, after);
        }
        let column = shelf.column.clone();
        if !fresh.is_empty() {
            let columns = vec![key.clone(), column.clone()];
            draft.push(Mutation::Insert { table: shelf.table.clone(), key: vec![key.clone()], columns, rows: fresh });
        }
        if !revised.is_empty() {
            let table = shelf.table.clone();
            let columns = vec![column];
            draft.push(Mutation::Revise(RowRevisions {
                table,
                key: vec![key],
                columns,
                rows: revised,
                touch: Vec::new(),
            }));
        }
        Ok(())
    }
}

impl EmbeddingTally {
    /// The text of a row to send; `None` if it gets no vector, which is counted.
    fn sorted(&mut self, row: &Row, erased: Option<&Erased<'_>>) -> Option<String> {
        let text = keyword::text_of(row);
        if text.trim().is_empty() {
            self.textless += 1;
            return None;
        }
        if erased.is_some_and(|erased| erased.owns(row) || erased.is_in(&text)) {
            self.erased += 1;
            return None;
        }
        let (clean, _) = text_check::check(&text);
        let cut: String = clean.chars().take(LONGEST).collect();
        self.cut += u64::from(cut.len() < clean.len());
        self.characters += cut.chars().count() as u64;
        Some(cut)
    }

    fn note(&self, draft: &mut Draft<'_>, texts: usize) {
        let counts = [
            ("texts", texts as u64),
            ("characters", self.characters),
            ("cut", self.cut),
            ("textless", self.textless),
            ("erased", self.erased),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            draft.facts.insert(name.to_owned(), Value::from(count));
        }
    }
}
