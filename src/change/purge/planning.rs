//! Plans an erasure in one read-only transaction: rows to delete, mentions elsewhere, and effects.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::co_owners;
use super::decide;
use super::derived;
use super::disclose;
use super::effects::{self, KeptRows, NewValue};
use super::graph::{self, Graph, OwnedRows, key_of};
use super::id_set::{IdSet, LostIds};
use super::keys;
use super::loss;
use super::made_ids::MadeIds;
use super::matcher::Matcher;
use super::mention::{Mention, Mentions, Met};
use super::plan::{AlteredRow, Nameless, PurgeOptions, PurgePlan};
use super::planned_mentions::PlannedMentions;
use super::rarity;
use super::recompute;
use super::row_ids::{ID_LENGTH, RowIds};
use super::scan;
use super::scan_findings::{PlaceTally, ScanFindings};
use super::search::{KeptSearch, KnownTables, PersonSearch};
use super::subject::{self, PersonHandle, PurgeSubject, SharedWord};
use super::taken::GoingRows;
use super::vec0;
use crate::change::audit::shown;
use crate::change::plan::{Counts, digest_of_each};
use crate::change::suppress::hmac;
use crate::change::{ChangeError, now};
use crate::layout::Engine;
use crate::layout::erase::EraseAction;
use crate::memory::mention::folded;
use crate::store::encode::key_columns;
use crate::store::erasing::PurgeSession;
use crate::store::fetched::{FetchedValue, RawRow, as_text, composite_id};
use crate::store::row_number::is_numbered;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{StoredRows, TableName};
use crate::store::{Store, StoreError};

/// Reason why mentions in a palace stay, and why no erasure begins there.
pub(super) const UNOWNED: &str = "a palace does not say whom its drawers are about, so nothing can be erased there, \
     only searched: erase what is found with the tool that wrote it";

/// Note on an erasure from texts alone.
const TALKED_ABOUT: &str = "no row belongs to anybody known by that name: only what texts say is changed";

/// Plans an erasure, and checks that every decision about a mention can be carried out.
///
/// # Errors
/// As [`plan_any`]; [`ChangeError::Usage`] for a decision about an unknown mention, [`ChangeError::Refused`] for one
/// that cannot be carried out.
pub async fn plan(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<PurgePlan, ChangeError> {
    let plan = plan_any(store, given, options, &mut KeptSearch::default(), progress).await?;
    decide::check(&plan)?;
    Ok(plan)
}

/// Plans an erasure. Decisions may concern mentions in other databases. `kept` caches the results of searches: the
/// earlier one is reused, and this one is stored.
///
/// # Errors
/// [`ChangeError::Usage`] and [`ChangeError::NotFound`] for a subject that is nobody or several people,
/// [`ChangeError::Refused`] if the layout does not say who owns rows.
pub async fn plan_any(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    kept: &mut KeptSearch,
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<PurgePlan, ChangeError> {
    match look_for(store, given, options, kept, progress).await? {
        LookedFor::Found(plan) | LookedFor::Unknown { decided: Some(plan), .. } => Ok(*plan),
        LookedFor::Unknown { words, named, .. } => {
            let texts = named.map_or(String::new(), |named| format!("; {}", named.words));
            Err(ChangeError::NotFound(words + &texts))
        }
    }
}

/// Result of a search for a person.
pub enum LookedFor {
    /// The plan of the erasure.
    Found(Box<PurgePlan>),
    /// The person is unknown.
    Unknown {
        /// The message.
        words: String,
        /// Texts that contain the handle anyway.
        named: Option<NamedInTexts>,
        /// The erasure from these texts alone, if a decision about them was requested.
        decided: Option<Box<PurgePlan>>,
    },
}

/// Texts that contain a handle which leads to no id, such as an e-mail address that no table assigns to anybody.
pub struct NamedInTexts {
    /// The places, with advice.
    pub words: String,
    /// Whether a decision about them was requested.
    pub asked: bool,
}

impl NamedInTexts {
    fn of(plan: &PurgePlan) -> Option<Self> {
        if plan.mentioned.is_empty() {
            return None;
        }
        let places: Vec<String> = plan.mentioned.iter().map(|(place, values)| format!("{place} ({values})")).collect();
        let places = places.join(", ");
        let words = format!(
            "texts contain it: {places}. Give the person's id, and this as an --alias, to remove it from them, or \
                     decide about them with --mentions if the person owns no rows"
        );
        let tally = PlaceTally::all(plan.tally.values());
        Some(NamedInTexts { words, asked: tally.done + tally.undone > 0 })
    }
}

/// Plans for a person who may be unknown here.
///
/// # Errors
/// As [`plan_any`], but an unknown person is not an error.
pub async fn look_for(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    kept: &mut KeptSearch,
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<LookedFor, ChangeError> {
    subject::check(given)?;
    refuse_unread(store)?;
    let mut snapshot = store.snapshot().await?;
    if let Err(ChangeError::Refused(reason)) = owners(store) {
        let subject = subject::by_words(given, &options.aliases)?;
        let mut plan = rest(&mut snapshot, subject, options, (&[], kept), progress).await?;
        if plan.mentioned.is_empty() {
            let words = format!("nothing in {} names `{given}`", store.location());
            return Ok(LookedFor::Unknown { words, named: None, decided: None });
        }
        plan.is_unowned = true;
        plan.particular.insert(0, reason);
        return Ok(LookedFor::Found(Box::new(plan)));
    }
    let subject = match subject::resolve(&mut snapshot, given, &options.aliases).await {
        Err(ChangeError::NotFound(words)) => {
            let words = words + &erased_before(store, given).await?;
            let subject = subject::talked_about(&mut snapshot, given, &options.aliases).await?;
            let mut plan = rest(&mut snapshot, subject, options, (&[], kept), progress).await?;
            // Palaces have no ids of people: without a companion, the general note about drawers applies.
            if store.companion().is_some() && !plan.mentioned.is_empty() {
                plan.is_unowned = true;
                plan.particular.insert(0, UNOWNED.to_owned());
                return Ok(LookedFor::Found(Box::new(plan)));
            }
            // Rows may name what is deleted in other databases, and nobody.
            if !options.carried.is_empty() && !plan.deletes.is_empty() {
                return Ok(LookedFor::Found(Box::new(plan)));
            }
            let named = NamedInTexts::of(&plan);
            let is_asked = named.as_ref().is_some_and(|named| named.asked);
            // What is left of a person whose erasure is not finished belongs to that erasure.
            let is_begun = erased_as(store, given).await?.is_some_and(|session| session.is_open());
            plan.notes.insert(0, TALKED_ABOUT.to_owned());
            let decided = (is_asked && !is_begun).then(|| Box::new(plan));
            return Ok(LookedFor::Unknown { words, named, decided });
        }
        found => found?,
    };
    let plan = rest(&mut snapshot, subject, options, (&[], kept), progress).await?;
    Ok(LookedFor::Found(Box::new(plan)))
}

/// Fails if our role may read no table of the memory: otherwise everybody would seem absent.
fn refuse_unread(store: &Store) -> Result<(), ChangeError> {
    let recognised = store.recognised();
    if recognised.sources.iter().any(|source| !source.entity.is_of_trail()) {
        return Ok(());
    }
    match recognised.withheld.iter().find(|part| !part.entity.is_of_trail()) {
        None => Ok(()),
        Some(part) => Err(StoreError::Denied { reason: part.reason.clone(), remedy: part.remedy.clone() }.into()),
    }
}

/// Message for a person who is unknown because they were erased.
async fn erased_before(store: &Store, given: &str) -> Result<String, ChangeError> {
    Ok(match erased_as(store, given).await? {
        Some(session) if session.is_open() => {
            format!(
                "; the erasure of a person known by it began here and has not ended verified: it is {}",
                session.status
            )
        }
        Some(session) => format!("; a person known by it was erased here, and that ended {}", session.status),
        None => String::new(),
    })
}

/// The latest erasure of a person with this handle; `None` if it cannot be determined.
///
/// # Errors
/// The engine's refusal.
pub async fn erased_as(store: &Store, given: &str) -> Result<Option<PurgeSession>, ChangeError> {
    match store.records().secret().filter(|_| store.records().can_erase()) {
        Some(key) => Ok(store.records().purge_of(&hmac(key, given)).await?),
        None => Ok(None),
    }
}

/// Refuses a database whose layout does not say who owns rows.
///
/// # Errors
/// [`ChangeError::Refused`].
pub fn owners(store: &Store) -> Result<(), ChangeError> {
    if !store.recognised().erasure.rules.is_empty() {
        return Ok(());
    }
    shown(store)?;
    Err(ChangeError::Refused(format!(
        "{}: no layout says who owns its rows, so nothing can be erased here, only searched: erase what is found with \
         the tool that wrote it (or add [[erase]] rules to a layout file)",
        store.location()
    )))
}

/// Plans what is left for a person who has been found. `also` are rows already known to be deleted; `kept` caches the
/// results of searches.
///
/// # Errors
/// As [`plan`].
pub async fn rest(
    snapshot: &mut Snapshot<'_>,
    subject: PurgeSubject,
    options: &PurgeOptions,
    (also, kept): (&[GoingRows], &mut KeptSearch),
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<PurgePlan, ChangeError> {
    let store = snapshot.store;
    let erasure = &store.recognised().erasure;
    let relations = snapshot.relations().await?;
    let mut graph = Graph::new(store, &erasure.rules, relations.clone(), options.account);
    let about = KnownTables::of(snapshot, &relations).await?;
    if options.decisions().delete_any() {
        // The dependents of a row deleted for its contents may be in any table.
        graph.reach(about.tables.iter().map(key_of).collect());
    }
    for part in also.iter().flat_map(GoingRows::parts) {
        remaining(snapshot, &mut graph, &part).await?;
    }
    also.iter().try_for_each(GoingRows::check)?;
    if !also.is_empty() {
        // Some of them may have been chosen for their contents.
        graph.spare(&subject.ids);
    }
    let late = graph.take_late(snapshot, also).await?;
    let account = Graph::of_account(snapshot, relations, options.account, &subject.ids).await?;
    let mut subject = subject;
    graph.owning.append(&mut subject.owning);
    graph.take_carried(snapshot, &options.carried).await?;
    graph.close(snapshot, &subject.ids).await?;
    subject.owning.clone_from(&graph.owning);
    let usual = &mut kept.usual;
    rarity::measure(snapshot, &graph, &mut subject.handles, &subject.others, &about, usual).await?;
    let search = RoundSearch { subject: &subject, options, about: &about, late: &late, progress };
    let (mut updates, mut found, ids) = rounds(snapshot, &mut graph, &account, &search, (also, kept)).await?;
    subject.usual_ids = Some(found.usual_ids).filter(|ids| *ids > 0);
    updates.without(&graph);
    loss::refuse(snapshot, &graph.relations, &updates.losing()).await?;
    let mut going = keys::GoingReferences { rows: KeptRows::new(graph.pages()), first: BTreeSet::new() };
    keys::follow(snapshot, &graph, &mut updates, &mut going).await?;
    let recomputed = recompute::all(snapshot, &graph, &found, &mut updates).await?;
    found.old = derived::follow(snapshot, &graph, &about.unique, &mut updates).await?;
    let mut plan = finished(snapshot, subject, options, &graph, updates, found, ids).await?;
    plan.along = altered(&graph, going.rows);
    plan.first = going.first;
    if !recomputed {
        let words = "aggregates of rows that stay are not recomputed, because your role may not read the tables they \
         are computed from";
        plan.notes.push(words.to_owned());
    }
    Ok(plan)
}

/// Inputs of every round of a search.
#[derive(Clone, Copy)]
struct RoundSearch<'a> {
    subject: &'a PurgeSubject,
    options: &'a PurgeOptions,
    about: &'a KnownTables,
    /// Rows already known to be deleted, and their dependents.
    late: &'a Graph,
    progress: &'a (dyn Fn(&str, u64) + Sync),
}

/// Repeats the search until no further row is deleted for its contents; the graph is closed before each. Returns the changes in rows that stay, the
/// findings, and the ids of the rows to delete.
async fn rounds(
    snapshot: &mut Snapshot<'_>,
    graph: &mut Graph,
    account: &Graph,
    search: &RoundSearch<'_>,
    (also, kept): (&[GoingRows], &mut KeptSearch),
) -> Result<(KeptRows, ScanFindings, Arc<IdSet>), ChangeError> {
    let erasure = &snapshot.store.recognised().erasure;
    let follows: HashSet<TableName> = erasure.follows.iter().map(TableName::of).collect();
    let RoundSearch { subject, options, about, late, progress } = *search;
    let handles: Vec<&PersonHandle> = subject.searched().collect();
    let mut going = None;
    let (mut usual, mut made) = (BTreeSet::new(), MadeIds::default());
    let mut met = Met::default();
    let mut doomed: Vec<Mention> = Vec::new();
    let mut planned: BTreeMap<TableName, PlannedMentions> = BTreeMap::new();
    let of_person = graph.going();
    let (updates, mut found, ids) = loop {
        made.learn(snapshot, graph, also).await?;
        let (ids, own) = ids_of(snapshot.store, (graph, &made), also, &handles, &usual);
        let listed = listed(snapshot, graph, &ids, &own).await?;
        let told = LostIds::new(&ids, IdSet::new(graph.pages()));
        let matcher = Matcher::new(handles.iter().copied(), RowIds::new(&ids), &subject.others)?;
        let mut updates = KeptRows::new(graph.pages());
        effects::find(snapshot, graph, &subject.ids, &mut updates).await?;
        effects::find(snapshot, late, &[], &mut updates).await?;
        vec0::clear(snapshot, graph, &mut updates).await?;
        let search = PersonSearch {
            graph,
            account,
            subject: &subject.ids,
            handles: &handles,
            matcher: &matcher,
            ids: &told,
            made: &made,
            listed: &listed,
            decisions: options.decisions(),
            about,
            follows: &follows,
            watch: None,
            progress,
        };
        let sought = search.digest(&subject.others);
        let before = kept.found.take().filter(|(of, _)| *of == sought).map(|(_, places)| places);
        let (mut found, places) = scan::everything(snapshot, &search, before.as_ref(), &mut updates).await?;
        kept.found = Some((sought, places));
        let words = rarity::usual_ids(&found);
        if !words.is_empty() {
            // Repeat without the ids that are other people's words.
            usual.extend(words);
            continue;
        }
        found.usual_ids = usual.len();
        met.names.append(&mut found.met.names);
        met.refused.append(&mut found.met.refused);
        // Repeat while rows deleted for their contents lead to further ones.
        if found.doomed.is_empty() || going.replace(graph.going()) == Some(graph.going()) {
            found.gone_for_mentions = graph.going().saturating_sub(of_person);
            for (table, key) in &found.forgotten {
                take(snapshot, graph, table, key).await?;
            }
            break (updates, found, ids);
        }
        doomed.extend(found.mentions.into_iter().filter(|mention| mention.decision == Mentions::Delete));
        graph.end_own();
        graph.spare(&subject.ids);
        let (rows, values): (Vec<_>, Vec<_>) = found.doomed.into_iter().unzip();
        loss::refuse(snapshot, &graph.relations, &rows).await?;
        for ((table, key), value) in rows.iter().zip(values) {
            take(snapshot, graph, table, key).await?;
            let there = planned.entry(table.clone()).or_insert_with(|| PlannedMentions::new(graph.pages()));
            there.add(key, value);
        }
        graph.close(snapshot, &subject.ids).await?;
    };
    (found.met, found.planned) = (met, planned);
    for mention in &doomed {
        *found.counted.entry(mention.place()).or_default() += 1;
        let tally = found.tally.entry(mention.place()).or_default();
        *(if mention.reason().is_none() { &mut tally.certain } else { &mut tally.possible }) += 1;
        tally.done += 1;
    }
    found.mentions.extend(doomed);
    Ok((updates, found, ids))
}

/// Adds those of some rows that still exist.
async fn remaining(snapshot: &mut Snapshot<'_>, graph: &mut Graph, rows: &StoredRows) -> Result<(), ChangeError> {
    let columns = graph.table(&rows.table).columns.clone();
    // The engine may have reused their numbers for other rows.
    let Some(by) = rows.by.first().filter(|_| !is_numbered(&rows.by)) else { return Ok(()) };
    let wanted = WantedRows { table: &rows.table, columns: &columns, when: None, subject: &[] };
    let first: Vec<FetchedValue> = rows.keys.iter().filter_map(|key| key.first().cloned()).collect();
    let keys: HashSet<String> = rows.keys.iter().filter_map(|key| serde_json::to_string(key).ok()).collect();
    let found = snapshot.select(wanted, by, &first).await?;
    let taken = graph.table(&rows.table);
    let same =
        |row: &Vec<FetchedValue>| serde_json::to_string(&row[..rows.by.len()]).is_ok_and(|key| keys.contains(&key));
    found.iter().filter(|row| same(row)).for_each(|row| taken.add(row));
    Ok(())
}

/// Adds a single row.
async fn take(
    snapshot: &mut Snapshot<'_>,
    graph: &mut Graph,
    table: &TableName,
    key: &[FetchedValue],
) -> Result<(), ChangeError> {
    let taken = graph.table(table);
    let (by, columns) = (taken.key.clone(), taken.columns.clone());
    let at = if is_numbered(&by) { by.len() - 1 } else { 0 };
    let (Some(value), Some(column)) = (key.get(at), by.get(at)) else { return Ok(()) };
    let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
    let rows = snapshot.select(wanted, column, std::slice::from_ref(value)).await?;
    let taken = graph.table(table);
    rows.iter().filter(|row| row[..by.len()] == *key).for_each(|row| taken.add(row));
    Ok(())
}

/// Ids of the rows to delete that are recognizable in texts: single-column keys, and ids of several columns as they are
/// displayed. Returned second: ids that are also a handle, such as that of the person's own row; elsewhere these are
/// mentions and follow the decisions. `usual` are other people's words.
fn ids_of(
    store: &Store,
    (graph, made): (&Graph, &MadeIds),
    also: &[GoingRows],
    handles: &[&PersonHandle],
    usual: &BTreeSet<String>,
) -> (Arc<IdSet>, BTreeSet<String>) {
    let called: HashSet<String> = handles.iter().map(|handle| handle.value.to_ascii_lowercase()).collect();
    let (mut ids, mut own) = (IdSet::new(graph.pages()), BTreeSet::new());
    let mut tell = |table: &TableName, id: String| {
        if called.contains(&id.to_ascii_lowercase()) {
            own.insert(id);
        } else if made.tell(table, &id) && !usual.contains(&id) {
            ids.insert(&id);
        }
    };
    let is_long = |id: &String| id.len() >= ID_LENGTH;
    let first = |row: RawRow| as_text(row.first()?).filter(is_long);
    let has_id = |by: &[String]| by.len() - usize::from(is_numbered(by)) == 1;
    for (table, taken) in graph.tables.iter().filter(|(_, taken)| has_id(&taken.key)) {
        taken.rows(0..taken.len()).filter_map(first).for_each(|id| tell(table, id));
    }
    // Rows already deleted may have been named again since.
    for rows in also.iter().filter(|rows| has_id(&rows.by)) {
        rows.all_keys().filter_map(first).for_each(|id| tell(&rows.table, id));
    }
    for source in &store.recognised().sources {
        let table = TableName::of(&source.table);
        let (Some(columns), Some(taken)) = (key_columns(source, "id"), graph.taken(&table)) else {
            continue;
        };
        let at: Option<Vec<usize>> = columns.iter().map(|column| taken.place(column)).collect();
        let Some(at) = at else { continue };
        let id = |row: RawRow| composite_id(at.iter().map(|at| row.get(*at)));
        for id in taken.rows(0..taken.len()).filter_map(id) {
            // Inside a document, the quotes of such an id are escaped.
            tell(&table, Value::from(id.as_str()).to_string().trim_matches('"').to_owned());
            tell(&table, id);
        }
    }
    (Arc::new(ids), own)
}

/// The ids that the layout's lists may lose: ids of the tables that the list refers to, and ids recognizable in any
/// text. An id that a remaining row of another such table also has stays.
async fn listed(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    ids: &Arc<IdSet>,
    own: &BTreeSet<String>,
) -> Result<HashMap<(TableName, String), LostIds>, ChangeError> {
    let mut listed: HashMap<(TableName, String), IdSet> = HashMap::new();
    for rule in graph.rules.iter().filter(|r| r.action == EraseAction::Remove) {
        if rule.of.as_ref().is_none_or(|of| graph.taken(&TableName::of(of)).is_none()) {
            continue;
        }
        let place = (TableName::of(&rule.table), rule.column.clone());
        let lost = listed.entry(place).or_insert_with(|| IdSet::new(graph.pages()));
        own.iter().for_each(|id| lost.insert(id));
        graph.each_unlisted(snapshot, rule, |id| !ids.contains(id), |id| lost.insert(id)).await?;
    }
    Ok(listed.into_iter().map(|(place, lost)| (place, LostIds::new(ids, lost))).collect())
}

/// The hits of each searched handle, with its kind. Handles that the search treats as one word all get the hits of the
/// first.
fn control(subject: &PurgeSubject, hits: &[usize]) -> Vec<(SharedWord, usize)> {
    let mut of_word: HashMap<String, usize> = HashMap::new();
    for (handle, hits) in subject.searched().zip(hits) {
        *of_word.entry(folded(&handle.value)).or_default() += hits;
    }
    let found = |handle: &PersonHandle, hits: usize| match hits {
        0 => of_word.get(&folded(&handle.value)).copied().unwrap_or_default(),
        hits => hits,
    };
    subject.searched().zip(hits).map(|(handle, hits)| (handle.kind.clone(), found(handle, *hits))).collect()
}

async fn finished(
    snapshot: &mut Snapshot<'_>,
    subject: PurgeSubject,
    options: &PurgeOptions,
    graph: &Graph,
    updates: KeptRows,
    mut found: ScanFindings,
    ids: Arc<IdSet>,
) -> Result<PurgePlan, ChangeError> {
    let store = snapshot.store;
    let mut deletes = Vec::new();
    for table in graph.order() {
        let Some(taken) = graph.taken(&table) else { continue };
        deletes.push(taken.going(table.clone()).with_own(graph.own(&table)));
    }
    let altered = altered(graph, updates);
    let is_heired = |table: &TableName| graph.relations.heired.contains(table);
    let hit = deletes.iter().filter(|rows| is_heired(&rows.table)).flat_map(GoingRows::parts);
    let changed = altered.iter().filter(|row| is_heired(&row.table)).map(AlteredRow::stored);
    let hit: Vec<StoredRows> = hit.chain(changed).collect();
    graph::refuse_same_keys(snapshot, &graph.relations, hit).await?;
    let nameless = nameless(store, graph, &altered);
    let mut counts = Counts::new();
    let mut count = |table: &TableName, verb: &str, rows: usize| {
        *counts.entry(table.title()).or_default().entry(verb.to_owned()).or_default() += rows;
    };
    let owned: Vec<OwnedRows> = graph.owned.values().filter(|owned| owned.count > 0).cloned().collect();
    owned.iter().for_each(|owned| count(&owned.rows.table, "delete", owned.count));
    deletes.iter().for_each(|rows| count(&rows.table, "delete", rows.len()));
    altered.iter().for_each(|row| count(&row.table, "update", 1));
    let along = altered.iter().flat_map(|row| &row.update.along);
    along.for_each(|rows| count(&rows.table, "delete", rows.keys.len()));
    nameless.iter().for_each(|account| count(&account.table, "insert", 1));
    let control = control(&subject, &found.control);
    let circles = if store.engine() == Engine::Postgres { graph.circles() } else { Vec::new() };
    let mut plan = PurgePlan {
        plan_id: String::new(),
        subject,
        options: options.clone(),
        is_unowned: false,
        owned,
        deletes,
        updates: altered,
        along: Vec::new(),
        first: BTreeSet::new(),
        nameless,
        redacts: std::mem::take(&mut found.redacts),
        counts,
        mentions: std::mem::take(&mut found.mentions),
        mentioned: std::mem::take(&mut found.counted),
        left_references: found.stuck.clone(),
        old: std::mem::take(&mut found.old),
        tally: found.tally.clone(),
        met: std::mem::take(&mut found.met),
        gone_for_mentions: found.gone_for_mentions,
        control,
        ids,
        effects: Vec::new(),
        particular: Vec::new(),
        shared: Vec::new(),
        notes: Vec::new(),
        silent: BTreeMap::new(),
        hops: hops(graph),
        own_first: store.engine() == Engine::Sqlite || graph.own_can_go_first(&circles),
        circles,
        linked: graph.relations.foreign.iter().flat_map(|f| [f.from.clone(), f.to.clone()]).collect(),
        created_at: now(),
        values: found.values,
        owners: BTreeMap::new(),
        telling: std::mem::take(&mut found.planned),
    };
    let triggers = snapshot.triggers().await?;
    disclose::effects(&mut plan, &store.recognised().erasure.follows, &triggers);
    disclose::chains(store, &mut plan, graph).await?;
    let shared = disclose::namesakes(store, &plan.subject.ids).await?;
    let of_one = if shared.is_empty() { Vec::new() } else { subject::ids_of_one(snapshot, &plan.subject).await? };
    let choice = match &of_one[..] {
        [] => String::new(),
        ids => format!("; to erase one of them, give an id that only one has: {}", ids.join(", ")),
    };
    let shared = shared.into_iter().map(|(id, people)| {
        format!("{people} people of this database have the id `{id}`: they are erased together{choice}")
    });
    plan.particular.extend(shared);
    co_owners::disclose(snapshot, &mut plan, graph).await?;
    disclose::disclosures(snapshot, &mut plan, graph, &found).await?;
    plan.plan_id = digest(&plan);
    graph.check()?;
    Ok(plan)
}

/// Rows to change, with the columns of their keys.
fn altered(graph: &Graph, rows: KeptRows) -> Vec<AlteredRow> {
    let by = |table: &TableName| graph.relations.keys.get(table).cloned().unwrap_or_default();
    let row =
        |((table, _), (key, update))| AlteredRow { key: by(&table).into_iter().zip(key).collect(), table, update };
    rows.rows.into_iter().map(row).collect()
}

/// Returns the tables that led to each other, for those with rows to delete.
fn hops(graph: &Graph) -> Vec<(TableName, Option<TableName>)> {
    let going = |table: &TableName| graph.taken(table).is_some_and(|t| !t.is_empty());
    let rules = graph.rules.iter().filter(|r| r.action == EraseAction::Delete);
    let hops = rules.map(|rule| (TableName::of(&rule.table), rule.of.as_ref().map(TableName::of)));
    hops.filter(|(table, of)| going(table) && of.as_ref().is_none_or(going)).collect()
}

/// Returns the account that pseudonyms require in columns that refer to accounts.
fn nameless(store: &Store, graph: &Graph, altered: &[AlteredRow]) -> Option<Nameless> {
    store.recognised().erasure.accounts.iter().find_map(|account| {
        let table = TableName::of(&account.table);
        let refers = |row: &AlteredRow| {
            row.update.set.iter().any(|update| {
                update.new == NewValue::Pseudonym
                    && graph.relations.foreign.iter().any(|f| {
                        f.from == row.table
                            && f.columns.iter().any(|column| **column == *update.column)
                            && f.to == table
                    })
            })
        };
        altered.iter().any(refers).then(|| Nameless {
            table,
            id: account.id.clone(),
            columns: account.nameless.clone(),
        })
    })
}

fn digest(plan: &PurgePlan) -> String {
    let mentioned: Vec<_> = plan.mentions.iter().map(|m| (&m.id, m.decision, m.certainty)).collect();
    let asked = json!({
        "ids": plan.subject.ids, "aliases": plan.options.aliases, "mentions": plan.options.mentions,
        "each": plan.options.each, "mentioned": mentioned,
        "account": plan.options.account, "full": plan.options.full,
        "nameless": plan.nameless, "redacts": plan.redacts,
    });
    let owned = plan.owned.iter().map(|owned| json!({ "rows": owned.rows, "count": owned.count }));
    let deletes = plan.deletes.iter().flat_map(|rows| {
        std::iter::once(json!({ "table": rows.table, "by": rows.by })).chain(rows.all_keys().map(|key| json!(key)))
    });
    digest_of_each(std::iter::once(asked).chain(owned).chain(deletes).chain(plan.updates.iter().map(|row| json!(row))))
}
