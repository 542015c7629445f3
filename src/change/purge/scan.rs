//! Reads every text of the database once, row by row, for mentions of the person and of deleted rows.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::column_words::{looks_personal, place_of};
use super::effects::{KeptRows, is_required};
use super::keys::{self, Keys};
use super::matcher::may_be_field;
use super::place::{TablePlace, TableTexts};
use super::row_ids::ID_LENGTH;
use super::scan_findings::ScanFindings;
use super::sealed::sealed_scratch;
use super::search::{FoundPlaces, PersonSearch};
use super::subject::PersonHandle;
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::memory::mention::{MANY_DIGITS, MentionText, is_plain};
use crate::memory::name_words::is_word_in;
use crate::memory::packed::pages::PageStore;
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::relations::ColumnContent;
use crate::store::row_list::RowList;
use crate::store::shape::ShapeColumn;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Most rows with matches remembered per table; a table with more is read again.
const REMEMBERED: usize = 100_000;
/// Bytes of their keys that stay in memory.
const FOUND: usize = 4 << 20;
/// Rows of these per read.
const AT_ONCE: usize = 200;
/// Values between two progress reports.
const REPORT: u64 = 8_192;

/// Reads everything; of tables with a key, only the rows in which an equal search `before` found something. Also
/// returns the places.
///
/// # Errors
/// The engine's refusal.
pub async fn everything(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    before: Option<&FoundPlaces>,
    updates: &mut KeptRows,
) -> Result<(ScanFindings, FoundPlaces), ChangeError> {
    // Digits of the longest handle that may be stored as a number.
    let digits = search.handles.iter().filter_map(|handle| digits_of(handle)).max();
    let (keys, key_parts) = keys::find(snapshot, search, before).await?;
    let mut places = FoundPlaces { rows: HashMap::new(), keys: key_parts };
    let room = PageStore::new(FOUND, sealed_scratch);
    let mut found = ScanFindings { control: vec![0; search.handles.len()], ..ScanFindings::default() };
    for table in search.graph.relations.tables.clone() {
        let key = search.graph.relations.keys.get(&table).cloned().unwrap_or_default();
        let shape = snapshot.store.shapes().shape(&table).await?;
        let holds = |c: &&ShapeColumn| match search.graph.relations.content(&table, &c.name) {
            ColumnContent::Words => true,
            ColumnContent::Neither => false,
            ColumnContent::Numbers if search.listed.contains_key(&(table.clone(), c.name.clone())) => true,
            ColumnContent::Number | ColumnContent::Numbers => {
                digits.is_some_and(|digits| digits >= MANY_DIGITS || looks_personal(&c.name))
            }
        };
        let texts = |columns: &[ShapeColumn]| -> Vec<(String, String)> {
            columns.iter().filter(holds).map(|c| (c.name.clone(), c.base.clone())).collect()
        };
        let (texts, generated) = (texts(&shape.columns), texts(&shape.generated));
        if !generated.is_empty() {
            let columns = TableTexts::of(snapshot, search, &table, texts.clone(), generated, &keys);
            look_at_generated(snapshot, &columns.place(search, &table, &key, &keys), &mut found, updates).await?;
        }
        if texts.is_empty() {
            continue;
        }
        let columns = TableTexts::of(snapshot, search, &table, texts, Vec::new(), &keys);
        let place = columns.place(search, &table, &key, &keys);
        let read = place.names();
        let wanted = WantedRows { table: &table, columns: &read, when: None, subject: &[] };
        let title = table.title();
        let tells = !key.is_empty() && !place.ours;
        if let Some(known) = before.and_then(|before| before.rows.get(&table)) {
            for from in (0..known.len()).step_by(AT_ONCE) {
                let some: Vec<RawRow> = known.rows(from..known.len().min(from + AT_ONCE)).collect();
                for row in snapshot.select_keys(wanted, &key, &some).await? {
                    if let Some(looked) = place.look(&row, &mut found.values) {
                        place.take(&row, looked, &mut found, updates);
                    }
                }
            }
            known.check()?;
            places.rows.insert(table, known.clone());
            continue;
        }
        let mut holding = RowList::new(&room);
        let (values, before) = (AtomicU64::new(0), found.values);
        let look = |row: &RawRow| {
            let mut own = 0;
            let looked = place.look(row, &mut own);
            let all = before + values.fetch_add(own, Ordering::Relaxed);
            if all / REPORT != (all + own) / REPORT {
                (search.progress)(&title, all + own);
            }
            looked
        };
        let take = |row: RawRow, looked| {
            if place.take(&row, looked, &mut found, updates) && tells && holding.len() <= REMEMBERED {
                holding.push(&row[..key.len()]);
            }
        };
        snapshot.stream_looked(wanted, look, take).await?;
        found.values += values.into_inner();
        if tells && holding.len() <= REMEMBERED {
            places.rows.insert(table.clone(), holding);
        }
    }
    private_values(snapshot, search, &mut found).await?;
    large_objects(snapshot, search, &keys, &mut found, updates).await?;
    search.graph.check()?;
    room.check()?;
    found.structure = structure(snapshot, search).await?;
    Ok((found, places))
}

/// Digits of an id or a telephone number that may be stored as a number; `None` for other handles.
fn digits_of(handle: &PersonHandle) -> Option<usize> {
    let is_number = match &*handle.kind {
        "id" => handle.value.parse::<i64>().is_ok(),
        kind => kind == "phone",
    };
    is_number.then(|| handle.value.bytes().filter(u8::is_ascii_digit).count())
}

impl<'a> TableTexts<'a> {
    fn of(
        snapshot: &Snapshot<'_>,
        search: &PersonSearch<'a>,
        table: &TableName,
        mut texts: Vec<(String, String)>,
        generated: Vec<(String, String)>,
        keys: &Keys,
    ) -> Self {
        let stored = texts.len();
        texts.extend(generated);
        let place = |column: &String| (table.clone(), column.clone());
        let each = |of: &dyn Fn(&String) -> bool| texts.iter().map(|(column, _)| of(column)).collect::<Vec<_>>();
        let vectors = each(&|column| search.about.vectors.contains(&place(column)));
        let is_keyed = |place: &_| keys.columns.contains(place) || search.about.kept_apart.contains(place);
        let about = |(column, _): &(String, String)| MentionText {
            number: search.graph.relations.content(table, column) == ColumnContent::Number,
            ..place_of(table, column, &search.about.naming)
        };
        TableTexts {
            required: each(&|column| is_required(snapshot, table, column)),
            ids_only: each(&|column| search.about.ids_only.contains(&place(column))),
            keyed: each(&|column| is_keyed(&place(column))),
            listed: texts.iter().map(|(column, _)| search.listed.get(&place(column))).collect(),
            // Vectors are bytes without words, and so is most of an index.
            opaque: vectors.iter().map(|is_vector| !search.about.indexes.contains(table) && !is_vector).collect(),
            vectors,
            agents: each(&|column| search.about.naming.agents.contains(&place(column))),
            about: texts.iter().map(about).collect(),
            stored,
            texts,
        }
    }

    fn place<'t>(
        &'t self,
        search: &'t PersonSearch<'a>,
        table: &'t TableName,
        key: &'t [String],
        keys: &'t Keys,
    ) -> TablePlace<'t> {
        TablePlace {
            search,
            table,
            ours: search.about.is_ours(table),
            going: search.graph.taken_through(table).collect(),
            owned: search.graph.owned.get(table).and_then(|owned| {
                let at = self.texts.iter().position(|(column, _)| owned.rows.by.first() == Some(column))?;
                Some((at, owned))
            }),
            account: search.account.taken_through(table).collect(),
            key,
            keys,
            columns: self,
        }
    }
}

/// Searches the generated columns of a table, only in rows whose stored columns have no match: a name may be split over
/// two of them. On SQLite a generated column may use a function that is missing here.
async fn look_at_generated(
    snapshot: &mut Snapshot<'_>,
    place: &TablePlace<'_>,
    found: &mut ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let read = place.names();
    let wanted = WantedRows { table: place.table, columns: &read, when: None, subject: &[] };
    let look = |row: &RawRow| place.look_at_generated(row);
    let walked = snapshot.stream_looked(wanted, look, |row, looked| {
        let _ = place.take(&row, looked, found, updates);
    });
    match walked.await {
        Err(error) if snapshot.store.engine() == Engine::Sqlite && error.refusal().is_some() => {
            found.not_looked_into(place.table.title(), "a generated column cannot be computed here");
            Ok(())
        }
        walked => Ok(walked?),
    }
}

/// Searches all private values of the audit entries that recorded a deleted row: if one of them mentions it, the others
/// do too. Entries come in no order, so all are read first.
async fn private_values(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    found: &mut ScanFindings,
) -> Result<(), ChangeError> {
    let undone = std::mem::take(&mut found.undone);
    let Some(own) = search.about.own.as_ref().filter(|_| !undone.is_empty()) else { return Ok(()) };
    let table = TableName::new(own.clone(), "memory_audit_private");
    let columns = ["seq".to_owned(), "field".to_owned()];
    let wanted = WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
    snapshot
        .stream(wanted, |row| {
            let seq = row.first().and_then(as_text).and_then(|seq| seq.parse().ok());
            if let (Some(seq), Some(FetchedValue::Text(field))) = (seq, row.get(1))
                && undone.contains(&seq)
            {
                found.redacts.insert((seq, field.to_owned()));
            }
            ControlFlow::Continue(())
        })
        .await?;
    Ok(())
}

/// Searches PostgreSQL's large objects, which are in no table.
async fn large_objects(
    snapshot: &mut Snapshot<'_>,
    search: &PersonSearch<'_>,
    keys: &Keys,
    found: &mut ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let table = TableName::new("pg_catalog", "pg_largeobject");
    let key = ["loid".to_owned()];
    let columns = TableTexts {
        texts: vec![("data".to_owned(), "bytea".to_owned())],
        stored: 1,
        required: vec![true],
        ids_only: vec![false],
        keyed: vec![false],
        listed: vec![None],
        opaque: vec![false],
        vectors: vec![false],
        agents: vec![false],
        about: vec![MentionText::default()],
    };
    let (going, owned, account, columns) = (Vec::new(), None, Vec::new(), &columns);
    let place = TablePlace { search, table: &table, ours: false, going, owned, account, key: &key, columns, keys };
    let object = |id: i64, bytes: Option<Vec<u8>>| {
        let Some(bytes) = bytes else {
            return found.not_looked_into(format!("{}.data", table.title()), "too long to be searched");
        };
        let row = [FetchedValue::Integer(id), FetchedValue::Bytes(bytes)];
        if let Some(looked) = place.look(&row, &mut found.values) {
            place.take(&row, looked, found, updates);
        }
    };
    Ok(snapshot.each_large_object(object).await?)
}

/// Whether a name or another text of the structure contains a handle, both in lower case. Words in names are joined by
/// `_`.
pub(super) fn is_named_in(text: &str, handle: &str) -> bool {
    if handle.len() >= ID_LENGTH { text.contains(handle) } else { is_word_in(text, handle, char::is_alphanumeric) }
}

/// Whether a handle in the structure means the person or may do so: it is not common, or like no word and no name of a
/// column.
fn tells_in_structure(handle: &PersonHandle) -> bool {
    handle.common.is_none() || !handle.is_shared() && !is_plain(&handle.value) && !may_be_field(&handle.value)
}

/// Descriptions, without the name, of structure parts that name the person. Names are often part of a longer word
/// there, so a distinctive handle also counts within one.
async fn structure(snapshot: &mut Snapshot<'_>, search: &PersonSearch<'_>) -> Result<Vec<String>, ChangeError> {
    let definitions = snapshot.definitions().await?;
    let texts: Vec<[String; 3]> =
        definitions.iter().map(|object| [object.name.clone(), object.text.clone(), object.unquoted()]).collect();
    let mut names: Vec<[bool; 3]> =
        texts.iter().map(|texts| [0, 1, 2].map(|n| search.matcher.names(&texts[n]))).collect();
    let small: Vec<[String; 3]> = texts.iter().map(|texts| [0, 1, 2].map(|n| texts[n].to_lowercase())).collect();
    // One handle at a time: there may be very many.
    let words = search.handles.iter().filter(|h| tells_in_structure(h)).map(|h| h.value.to_lowercase());
    for word in words {
        for (is_named, text) in names.as_flattened_mut().iter_mut().zip(small.as_flattened()) {
            *is_named |= is_named_in(text, &word);
        }
    }
    let mut named = Vec::new();
    for (object, names) in definitions.iter().zip(names) {
        if names[0] {
            let article = if object.kind.starts_with(['a', 'e', 'i']) { "an" } else { "a" };
            named.push(format!("{article} {} is named after a handle", object.kind));
        } else if names[1] || names[2] {
            named.push(format!("the definition of the {} {} names the person", object.kind, object.name));
        }
    }
    named.dedup();
    Ok(named)
}
