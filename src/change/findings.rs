//! Searches a whole database for findings, each reported as soon as it is known: structure and trail first, then banks,
//! episodes and their dependents, text last. Read only; each kind of row is read once, unordered.

mod memories;
mod near;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::held::HeldRows;
use super::prune::case_source;
use super::purge::{owners, unfinished_purges};
use super::suppress::{self, Erased};
use super::{ChangeError, anchor, retain};
use crate::lab::banked::ActiveVersions;
use crate::layout::{BoundSource, CatalogTable, EpisodeLink, LinkBy};
use crate::memory::digest::digest;
use crate::memory::entity::{Column, Personal, ValueKind};
use crate::memory::findings::{
    CLEANED, CaseBank, CaseBanks, DAMAGED, Finding, FindingTally, KINDS, LinkedEpisodes, Muted, NamedLinks,
    NotApplicable, TextScanner, UtilityHistories, kind_named, rests_on,
};
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::RecordSorter;
use crate::memory::query::Query;
use crate::memory::retention::RetentionRules;
use crate::memory::{Entity, Row};
use crate::store::embedding::VectorShelf;
use crate::store::encode::{can_set, plain_column, table_of};
use crate::store::migration::OWN;
use crate::store::scratch::scratch;
use crate::store::stored::TableName;
use crate::store::structure::StructurePart;
use crate::store::walk::keyed;
use crate::store::{EngineFault, Store, StoreError, named_ids};

/// News while looking for findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingNews {
    /// A finding.
    Found(Finding),
    /// A kind that cannot be checked here.
    NotApplicable(NotApplicable),
    /// Number of rows read so far, and the entity of the last ones.
    Read(u64, &'static str),
    /// A muted kind, and how often it was found.
    Muted(&'static str, u64),
    /// Kinds that a brief search did not finish: their findings cover only the rows it read.
    Left(Vec<&'static str>),
}

/// Request for findings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FindingRequest {
    /// This kind only.
    pub kind: Option<&'static str>,
    /// Most examples of each.
    pub examples: usize,
    /// Limits of a brief search; `None` reads everything.
    pub brief: Option<BriefLimit>,
    /// Muted kinds and rows.
    pub muted: Muted,
    /// Retention rules; without rules nothing is overdue.
    pub retention: Option<RetentionRules>,
    /// The state folder, where the sessions of unfinished erasures say whom they are about.
    pub state: Option<PathBuf>,
}

/// Limits at which a brief search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefLimit {
    /// Most rows read.
    pub rows: u64,
    /// Longest duration.
    pub time: Duration,
}

/// Rows between two progress reports.
const PROGRESS: u64 = 5_000;

/// Searches for findings and reports each when it is known; stops early when `told` breaks.
///
/// # Errors
/// The engine's refusal.
pub async fn look(
    store: &Store,
    wanted: &FindingRequest,
    told: &mut (dyn FnMut(FindingNews) -> ControlFlow<()> + Send),
) -> Result<(), ChangeError> {
    let mut survey = Survey {
        store,
        wanted,
        told,
        stopped: false,
        spent: false,
        begun: Instant::now(),
        left: BTreeSet::new(),
        read: 0,
        scanner: TextScanner::default(),
        text: BTreeMap::new(),
        cleanable: BTreeSet::new(),
        damaged: BTreeSet::new(),
        passed_over: BTreeSet::new(),
    };
    survey.structure().await?;
    // A private copy lacks the rows on damaged pages.
    survey.damaged.extend(store.unread().into_iter().flatten().map(|rows| rows.table.clone()));
    if wanted.kind == Some(DAMAGED) {
        survey.damaged.extend(store.raw().damaged(&[]).await?);
    }
    let done = survey.trail().await;
    survey.bear(done).await?;
    let done = survey.unfinished().await;
    survey.bear(done).await?;
    let done = survey.resurrected().await;
    survey.bear(done).await?;
    let done = survey.overdue().await;
    survey.bear(done).await?;
    let done = survey.vectors().await;
    survey.bear(done).await?;
    let banks = survey.banks().await;
    let banks = survey.bear(banks).await?;
    let done = survey.episodes().await;
    survey.bear(done).await?;
    survey.rest().await?;
    survey.texts();
    let done = survey.directions().await;
    survey.bear(done).await?;
    if let Some(banks) = banks.flatten() {
        let done = survey.near_copies(&banks).await;
        survey.bear(done).await?;
    }
    let done = survey.memories().await;
    survey.bear(done).await?;
    let damaged = FindingTally::of(std::mem::take(&mut survey.damaged), survey.most());
    survey.found(DAMAGED, None, damaged);
    if !survey.left.is_empty() {
        let left = std::mem::take(&mut survey.left);
        survey.tell(FindingNews::Left(left.into_iter().collect()));
    }
    Ok(())
}

/// Findings about text and readability, collected over all entities.
type Gathered = BTreeMap<(&'static str, Entity), FindingTally>;

struct Survey<'a> {
    store: &'a Store,
    wanted: &'a FindingRequest,
    told: &'a mut (dyn FnMut(FindingNews) -> ControlFlow<()> + Send),
    /// The receiver wants no more.
    stopped: bool,
    /// The limits of a brief search are reached: no more rows are read.
    spent: bool,
    begun: Instant,
    left: BTreeSet<&'static str>,
    read: u64,
    scanner: TextScanner,
    text: Gathered,
    /// Kinds of suspicious text found where a backfill can remove it.
    cleanable: BTreeSet<(&'static str, Entity)>,
    /// Tables that cannot be read as a whole.
    damaged: BTreeSet<String>,
    /// Kinds reported as not applicable.
    passed_over: BTreeSet<&'static str>,
}

/// The kind of vectors that cannot be compared for their numbers.
const NO_DIRECTION: &str = "vector_no_direction";
/// The kind of erasures that have not ended verified.
const UNFINISHED: &str = "unfinished_erasure";
/// Reason for no findings about vectors.
const NO_VECTORS: &str = "no vectors are stored here";

/// Kinds that are found by the same reading.
const STRUCTURE: &[&str] =
    &["migration_drift", "missing_table", "missing_column", "missing_index", "unread_table", "hidden_rows"];
const BANK: &[&str] = &[
    "over_window",
    "window_is_zero",
    "policy_without_cases",
    "unusable_policy",
    "duplicate_case",
    "unclear_hash",
    near::NEAR_COPY,
    near::LEFT,
    "write_burst",
    "dangling_reference",
    "low_reward_often_recalled",
    "swamping_case",
];
const EPISODES: &[&str] = &[
    "write_burst", "chain_cycle", "missing_parent", "cross_agent_parent", "parent_younger", "not_linked",
    "feedback_not_linked", "dangling_id", "repeated_id", "one_way_link", "wrong_back_link", "count_differs",
    "aggregate_differs", "utility_differs", "orphan_segment", "missing_memory",
];
const TEXT: &[&str] = &["unreadable_value", "secret", "instruction", "hidden_characters"];

/// Those that a backfill removes from the texts that it can write.
const CLEANABLE: &[&str] = &["secret", "hidden_characters"];

/// Plain columns that findings use; others of this kind do not matter.
const USED: &[&str] = &[
    "id", "agent_id", "user_id", "session_id", "parent_id", "profile_id", "episode_id", "execution_id", "memory_id",
    "message_hash", "query", "signal", "started_at", "ended_at", "created_at",
];

/// Columns of an entity to read: those that findings use, and all that may be unreadable or contain text. If text is
/// not checked, it is not read either.
fn columns_read(entity: Entity, texts: bool) -> Vec<&'static str> {
    let read = |column: &&Column| match column.kind {
        _ if column.name == "has_vector" => false,
        _ if entity == Entity::Feedback && column.personal != Personal::Content => true,
        _ if entity == Entity::Policy && ["status", "weights"].contains(&column.name) => true,
        ValueKind::Text | ValueKind::Time => USED.contains(&column.name) || texts && column.holds_words(),
        ValueKind::Json => texts || column.name == "metadata" || column.name == "prompt",
        _ => true,
    };
    entity.columns().iter().filter(read).map(|column| column.name).collect()
}

impl Survey<'_> {
    fn wants(&self, kinds: &[&str]) -> bool {
        !self.stopped && self.wanted.kind.is_none_or(|kind| kinds.contains(&kind))
    }

    /// Examples to search for: more than are reported if some of them are muted.
    fn most(&self) -> usize {
        self.wanted.muted.examples(self.wanted.examples)
    }

    fn tell(&mut self, told: FindingNews) {
        if !self.stopped {
            self.stopped = (self.told)(told).is_break();
        }
    }

    /// Continues if a page is damaged, which is a finding.
    async fn bear<T>(&mut self, outcome: Result<T, ChangeError>) -> Result<Option<T>, ChangeError> {
        match outcome {
            Err(ChangeError::Store(error)) => self.note_damage(error, &[]).await.map(|()| None),
            outcome => outcome.map(Some),
        }
    }

    /// Records which of some tables, or of all, cannot be read completely.
    ///
    /// # Errors
    /// The error, if it is not about damage.
    async fn note_damage(&mut self, error: StoreError, tables: &[TableName]) -> Result<(), ChangeError> {
        if !matches!(error.fault(), Some(EngineFault::Damaged | EngineFault::DamagedOnServer)) {
            return Err(error.into());
        }
        let mut names = self.store.raw().damaged(tables).await?;
        if names.is_empty() {
            names = tables.iter().map(TableName::title).collect();
        }
        if names.is_empty() {
            return Err(error.into());
        }
        self.damaged.extend(names);
        Ok(())
    }

    fn found(&mut self, kind: &str, entity: Option<Entity>, tally: FindingTally) {
        let Some(kind) = kind_named(kind).filter(|kind| !self.passed_over.contains(kind.name)) else { return };
        if let Some(reason) = self.unseen(kind.name) {
            return self.not_applicable(&[kind.name], &reason);
        }
        if !self.damaged.is_empty() && !TEXT.contains(&kind.name) {
            let names: Vec<&str> = self.damaged.iter().map(String::as_str).collect();
            let reason = format!("not every row of {} can be read", names.join(", "));
            return self.not_applicable(&[kind.name], &reason);
        }
        let tally = self.wanted.muted.without(tally, self.wanted.examples);
        if self.wanted.muted.kind(kind.name) {
            if tally.count > 0 && self.wants(&[kind.name]) {
                self.tell(FindingNews::Muted(kind.name, tally.count));
            }
            return;
        }
        if self.spent {
            self.left.insert(kind.name);
            // Findings about text hold for each row; others would be based on a part of the rows.
            if !TEXT.contains(&kind.name) {
                return;
            }
        }
        if tally.count > 0 && self.wants(&[kind.name]) {
            // What takes a row out of use is advised only where the rows say the same, word for word.
            let copies = kind.name == memories::COPIES && tally.is_same;
            let dated_pair = tally.together.len() == 2 && !tally.undated;
            let mut finding = Finding::new(kind, entity.map(Entity::name), tally);
            if kind.name == UNFINISHED && entity.is_none() {
                finding = finding.unnamed();
            } else if copies && dated_pair && self.supersedes() {
                finding = finding.superseding();
            } else if copies && self.merges() {
                finding = finding.merging();
            }
            let lacks_what_it_writes = finding.remedy.starts_with("quarantine ") && !self.quarantines()
                || finding.remedy.starts_with("unlink ") && !self.unlinks()
                || finding.remedy == "backfill embeddings" && !entity.is_some_and(|entity| self.embeds(entity));
            if lacks_what_it_writes {
                finding = finding.only_shown();
            }
            self.tell(FindingNews::Found(finding));
        }
    }

    /// Whether the layout can hide a case from recall.
    fn quarantines(&self) -> bool {
        case_source(self.store).is_ok_and(|source| plain_column(source, "quarantined").is_some())
    }

    /// Whether the parent of an episode can be removed.
    fn unlinks(&self) -> bool {
        let sources = self.store.sources_of(Entity::Episode).unwrap_or_default();
        sources.iter().any(|source| source.is_writable() && can_set(source, "parent_id"))
    }

    /// Whether vectors of an entity's rows can be written.
    fn embeds(&self, entity: Entity) -> bool {
        let sources = self.store.sources_of(entity).unwrap_or_default();
        sources.iter().any(|source| source.is_writable() && VectorShelf::of(source).is_ok())
    }

    /// The columns of an entity from which a backfill removes unwanted text, in any source.
    fn cleaned(&self, entity: Entity) -> Vec<&'static str> {
        let sources = self.store.sources_of(entity).unwrap_or_default();
        let writes = |name: &str| {
            let mut read = sources.iter().filter(|source| !source.column(name).is_empty()).peekable();
            let is_cleaned = |s: &&BoundSource| s.is_writable() && keyed(s).is_ok() && can_set(s, name);
            read.peek().is_some() && read.all(is_cleaned)
        };
        let columns = CLEANED.iter().find(|(of, _)| *of == entity).map_or(&[][..], |(_, columns)| columns);
        columns.iter().copied().filter(|name| writes(name)).collect()
    }

    /// Reason why rows that a kind depends on may exist unseen.
    fn unseen(&self, kind: &str) -> Option<String> {
        rests_on(kind).find_map(|entity| self.store.report().unseen(entity))
    }

    fn not_applicable(&mut self, kinds: &[&str], reason: &str) {
        let known: Vec<&'static crate::memory::findings::FindingKind> =
            KINDS.iter().filter(|k| kinds.contains(&k.name)).collect();
        for kind in known {
            if self.wants(&[kind.name]) && self.passed_over.insert(kind.name) {
                self.tell(FindingNews::NotApplicable(NotApplicable { kind: kind.name, reason: reason.to_owned() }));
            }
        }
    }

    /// Returns the reason why an entity is missing; `None` if it exists.
    fn lacks(&self, entity: Entity) -> Option<String> {
        self.store.sources_of(entity).err().map(|e| e.to_string())
    }

    async fn structure(&mut self) -> Result<(), ChangeError> {
        if !self.wants(STRUCTURE) {
            return Ok(());
        }
        let structure = self.store.shapes().structure().await?;
        let own = self.store.records().own().await?;
        let standings = self.store.schema().standings(own.as_ref(), &structure);
        let (mut tables, mut columns, mut indexes) =
            (FindingTally::default(), FindingTally::default(), FindingTally::default());
        let most = self.most();
        // Without a known layout, nothing of it can be missing.
        let is_known = !self.store.recognised().layouts.is_empty();
        let plain =
            standings.iter().filter(|s| is_known && s.migration.optional.is_none() && s.migration.series != OWN);
        for part in plain.flat_map(|s| &s.steps).filter(|(_, done)| !done).flat_map(|(step, _)| &step.makes) {
            match part {
                _ if structure.has(part) => {}
                StructurePart::Table(table) => tables.add(table, most),
                StructurePart::Column(table, column) => columns.add(&format!("{table}.{column}"), most),
                StructurePart::Index(index, table) => indexes.add(&format!("{table}.{index}"), most),
                _ => {}
            }
        }
        self.found("missing_table", None, tables);
        self.found("missing_column", None, columns);
        self.found("missing_index", None, indexes);
        let (unread, hidden) = self.unread_tables(most);
        self.found("unread_table", None, unread);
        self.found("hidden_rows", None, hidden);
        if let Some((reason, remedy)) = own.as_ref().and_then(|own| own.unread.as_ref()) {
            self.not_applicable(&["migration_drift"], &format!("{reason}; {remedy}"));
        } else if let Some(own) = own {
            let names = own.drift(self.store.engine()).into_iter().map(|applied| applied.name.clone());
            self.found("migration_drift", None, FindingTally::of(names, most));
        }
        Ok(())
    }

    /// Tables of the memory that our role may not read, and those whose rows it may not all see.
    fn unread_tables(&self, most: usize) -> (FindingTally, FindingTally) {
        let used = |t: &&CatalogTable| self.store.recognised().uses(t);
        let tables = || self.store.catalog().tables.iter().filter(used);
        let partly = |t: &&CatalogTable| t.denied || t.columns.iter().any(|c| c.denied);
        let title = |t: &CatalogTable| t.title();
        let hidden = tables().filter(|t| t.hides_rows).map(title);
        (FindingTally::of(tables().filter(partly).map(title), most), FindingTally::of(hidden, most))
    }

    async fn trail(&mut self) -> Result<(), ChangeError> {
        if !self.wants(&["audit_break"]) {
            return Ok(());
        }
        if let Some(rows) = self.store.unread_trail() {
            self.not_applicable(&["audit_break"], &rows.told());
            return Ok(());
        }
        let verdict = match anchor::verify(self.store, &[]).await {
            Err(ChangeError::Refused(_)) => {
                let why = if let Some(taken) = self.store.records().taken(None).await? {
                    format!("there is no audit trail: {taken}")
                } else {
                    let adds = self.store.invocation().line(["migrate", "--apply"]);
                    format!("there is no audit trail yet: `{adds}` adds it")
                };
                self.not_applicable(&["audit_break"], &why);
                return Ok(());
            }
            Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
                self.not_applicable(&["audit_break"], &format!("{reason}; {remedy}"));
                return Ok(());
            }
            outcome => outcome?,
        };
        let words = verdict.faults.into_iter().map(|fault| fault.message);
        self.found("audit_break", None, FindingTally::of(words, self.most()));
        Ok(())
    }

    /// People whose erasure has not ended verified.
    async fn unfinished(&mut self) -> Result<(), ChangeError> {
        if !self.wants(&[UNFINISHED]) {
            return Ok(());
        }
        let found = match unfinished_purges(self.store, self.wanted.state.as_deref()).await {
            Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
                self.not_applicable(&[UNFINISHED], &format!("{reason}; {remedy}"));
                return Ok(());
            }
            found => found?,
        };
        self.found(UNFINISHED, Some(Entity::Subject), FindingTally::of(found.given, self.most()));
        self.found(UNFINISHED, None, FindingTally::of(found.unnamed, self.most()));
        Ok(())
    }

    /// People on the list of the erased who are back: with rows, or with an account that their erasure did not keep.
    async fn resurrected(&mut self) -> Result<(), ChangeError> {
        const KIND: &str = "resurrected";
        if !self.wants(&[KIND]) {
            return Ok(());
        }
        let listed = self.lacks(Entity::Subject);
        if let Some(reason) = listed.as_ref().filter(|_| owners::rules(self.store).next().is_none()) {
            self.not_applicable(&[KIND], reason);
            return Ok(());
        }
        let erased = match Erased::of(self.store).await {
            Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
                self.not_applicable(&[KIND], &format!("{reason}; {remedy}"));
                return Ok(());
            }
            erased => erased?,
        };
        if let Some(reason) = suppress::unknown(self.store).await? {
            self.not_applicable(&[KIND], &reason);
        }
        let Some(erased) = erased else { return Ok(()) };
        if let Some(gap) = self.store.report().gaps().first() {
            self.not_applicable(&[KIND], gap);
        }
        let mut named: Vec<String> = Vec::new();
        let query = Query { columns: Some(vec!["id", "name", "handles"]), ..Query::new(Entity::Subject) };
        let subject = |row: Row| {
            let mut handles = [row.id()].into_iter().chain(row.text("name")).chain(row.list("handles"));
            if handles.any(|handle| erased.lists(handle)) {
                named.push(row.id().to_owned());
            }
            ControlFlow::Continue(())
        };
        if listed.is_none() {
            self.store.walks().each_row(&query, subject).await?;
        }
        let kept = match erased.left_accounts(self.store, &named).await {
            Err(StoreError::Denied { reason, remedy }) => {
                self.not_applicable(&[KIND], &format!("{reason}; {remedy}"));
                return Ok(());
            }
            kept => kept?,
        };
        let mut back: BTreeSet<String> = named.into_iter().filter(|id| !kept.contains(id)).collect();
        let owner = |owner: String| {
            if erased.lists(&owner) {
                back.insert(owner);
            }
        };
        owners::each(&mut self.store.snapshot().await?, owner).await?;
        self.found(KIND, Some(Entity::Subject), FindingTally::of(back, self.most()));
        Ok(())
    }

    /// Rows that the retention rules delete; those of people under a hold stay.
    async fn overdue(&mut self) -> Result<(), ChangeError> {
        const KIND: &str = "overdue";
        let Some(rules) = self.wanted.retention.as_ref().filter(|_| self.wants(&[KIND])) else { return Ok(()) };
        let held = match HeldRows::of(self.store).await {
            Err(StoreError::Denied { reason, remedy }) => {
                self.not_applicable(&[KIND], &format!("legal holds cannot be checked: {reason}; {remedy}"));
                return Ok(());
            }
            held => held?,
        };
        match retain::overdue(self.store, rules, &held, self.most()).await {
            Err(ChangeError::Refused(reason)) => self.not_applicable(&[KIND], &reason),
            Err(ChangeError::Store(error @ StoreError::Missing { .. })) => {
                self.not_applicable(&[KIND], &error.to_string());
            }
            overdue => {
                for (entity, rows) in overdue? {
                    self.found(KIND, Some(entity), FindingTally::of_first(rows.going, Some));
                }
            }
        }
        Ok(())
    }

    async fn vectors(&mut self) -> Result<(), ChangeError> {
        let embeddings = self.store.embeddings();
        if !self.wants(&["vector_missing", "vector_size"]) {
            return Ok(());
        }
        let places = embeddings.vector_places();
        if places.is_empty() {
            self.not_applicable(&["vector_missing", "vector_size"], NO_VECTORS);
        }
        for place in places {
            let entity = place.entity;
            let missing = embeddings.vectors_missing(&place, self.most()).await?;
            self.found("vector_missing", Some(entity), missing);
            let odd = embeddings.vectors_of_odd_size(&place, self.most()).await?;
            self.found("vector_size", Some(entity), odd);
        }
        Ok(())
    }

    /// Rows whose vector has no direction. Unless this kind alone is wanted, the vectors of cases and memories are read for
    /// comparison, and tell.
    async fn directions(&mut self) -> Result<(), ChangeError> {
        if !self.wants(&[NO_DIRECTION]) {
            return Ok(());
        }
        let embeddings = self.store.embeddings();
        let with_vectors: Vec<Entity> = Entity::ALL.iter().copied().filter(|e| embeddings.has_vectors(*e)).collect();
        if with_vectors.is_empty() {
            self.not_applicable(&[NO_DIRECTION], NO_VECTORS);
        }
        let is_compared = |entity: &Entity| [Entity::Case, Entity::Memory].contains(entity);
        let is_alone = self.wanted.kind == Some(NO_DIRECTION);
        for entity in with_vectors.into_iter().filter(|entity| is_alone || !is_compared(entity)) {
            if self.spent {
                self.left.insert(NO_DIRECTION);
                return Ok(());
            }
            let found = embeddings.vectors_without_direction(entity, self.most()).await?;
            self.found(NO_DIRECTION, Some(entity), found);
        }
        Ok(())
    }

    /// Banks and their recalls; returns the cases of each.
    async fn banks(&mut self) -> Result<Option<CaseBanks>, ChangeError> {
        if !self.wants(BANK) && !self.wants(TEXT) {
            return Ok(None);
        }
        if let Some(reason) = self.lacks(Entity::Case) {
            let only: Vec<&str> = BANK.iter().copied().filter(|k| *k != "write_burst").collect();
            self.not_applicable(&only, &reason);
            return Ok(None);
        }
        let mut bank = CaseBank::new(self.most(), scratch);
        self.each(Entity::Profile, |row| bank.profile(row)).await?;
        self.each(Entity::Case, |row| bank.case(row)).await?;
        for (kind, tally) in bank.written()? {
            let profiles = ["over_window", "window_is_zero", near::LEFT].contains(&kind);
            self.found(kind, Some(if profiles { Entity::Profile } else { Entity::Case }), tally);
        }
        let mut versions = ActiveVersions::default();
        self.each(Entity::Policy, |row| {
            bank.policy(row);
            versions.add(row);
        })
        .await?;
        let idle = bank.idle_policies()?;
        self.found("policy_without_cases", Some(Entity::Policy), idle);
        let unusable = versions.in_use().unusable.into_iter().map(|policy| policy.id);
        self.found("unusable_policy", Some(Entity::Policy), FindingTally::of(unusable, self.most()));
        match self.lacks(Entity::Access) {
            Some(reason) => self.not_applicable(&["low_reward_often_recalled", "swamping_case"], &reason),
            None => self.each(Entity::Access, |row| bank.access(row)).await?,
        }
        for (kind, tally) in bank.recalls()? {
            self.found(kind, Some(Entity::Case), tally);
        }
        Ok(Some(bank.into_banks()?))
    }

    async fn episodes(&mut self) -> Result<(), ChangeError> {
        if !self.wants(EPISODES) && !self.wants(TEXT) {
            return Ok(());
        }
        if let Some(reason) = self.lacks(Entity::Episode) {
            // Cases have bursts too.
            let cases = self.lacks(Entity::Case).is_none();
            let only: Vec<&str> = EPISODES.iter().copied().filter(|k| !cases || *k != "write_burst").collect();
            self.not_applicable(&only, &reason);
            return Ok(());
        }
        for (entity, kinds) in [
            (Entity::CanvasEvent, &["not_linked", "count_differs"][..]),
            (Entity::Feedback, &["feedback_not_linked", "aggregate_differs"]),
            (Entity::Segment, &["orphan_segment"]),
            (Entity::MemoryLink, &["missing_memory"]),
            (Entity::UtilityEvent, &["utility_differs"]),
        ] {
            if let Some(reason) = self.lacks(entity) {
                self.not_applicable(kinds, &reason);
            }
        }
        let links = self.links();
        let back = |to| links.iter().any(|l| l.to == to && l.by == LinkBy::Back);
        let canvas_back = back(Entity::CanvasEvent);
        let [counted, scored] = ["canvas_action_count", "feedback_score"].map(|column| self.stores(column, |_| true));
        let fillable = ["canvas_ids", "feedback_ids"].map(|column| self.stores(column, BoundSource::is_writable));
        let mut story = LinkedEpisodes::new(self.most(), scratch);
        let mut utilities = UtilityHistories::new(scratch);
        self.each(Entity::Episode, |row| {
            utilities.episode(row);
            let named = NamedLinks {
                canvas: named_ids(row, &links, Entity::CanvasEvent),
                feedback: named_ids(row, &links, Entity::Feedback),
                canvas_back,
                counted,
                scored,
                fillable,
            };
            story.episode(row, &named);
        })
        .await?;
        let episode = Some(Entity::Episode);
        let chains = story.chains()?;
        chains.into_iter().for_each(|(kind, tally)| self.found(kind, episode, tally));
        self.each(Entity::CanvasEvent, |row| story.canvas(row)).await?;
        self.each(Entity::Feedback, |row| story.feedback(row)).await?;
        self.each(Entity::Segment, |row| story.segment(row)).await?;
        self.memory_links(&mut story).await?;
        if self.lacks(Entity::UtilityEvent).is_none() {
            let signal = |row: &Row| {
                if let Some(place) = row.text("episode_id").and_then(|id| story.place(id)) {
                    utilities.signal(row, place);
                }
            };
            self.each(Entity::UtilityEvent, signal).await?;
            let differing = utilities.differing()?;
            let ids = differing.into_iter().filter_map(|place| story.id(place));
            let differing = FindingTally::of(ids, self.most());
            self.found("utility_differs", episode, differing);
        }
        for (kind, tally) in story.links()? {
            let entity = if kind == "orphan_segment" { Entity::Segment } else { Entity::Episode };
            self.found(kind, Some(entity), tally);
        }
        Ok(())
    }

    fn links(&self) -> Vec<EpisodeLink> {
        let episodes = self.store.recognised().sources.iter().filter(|s| s.entity == Entity::Episode);
        episodes.flat_map(|s| s.links.iter().cloned()).collect()
    }

    /// Whether a column of episodes is stored in a source of such a kind.
    fn stores(&self, column: &str, such: impl Fn(&BoundSource) -> bool) -> bool {
        let mut episodes = self.store.recognised().sources.iter().filter(|s| s.entity == Entity::Episode);
        episodes.any(|source| such(source) && plain_column(source, column).is_some())
    }

    async fn memory_links(&mut self, story: &mut LinkedEpisodes) -> Result<(), ChangeError> {
        if self.lacks(Entity::MemoryLink).is_some() || self.lacks(Entity::Memory).is_some() {
            return Ok(());
        }
        let mut there = RecordSorter::new(scratch);
        self.each(Entity::Memory, |row| there.add([digest(row.id())])).await?;
        if self.lacks(Entity::Case).is_none() {
            let query = Query { columns: Some(vec!["id"]), ..Query::new(Entity::Case) };
            let case = |row: Row| {
                there.add([digest(row.id())]);
                ControlFlow::Continue(())
            };
            self.store.walks().each_row(&query, case).await?;
        }
        let there = IdTable::of(there, |_, _| {})?;
        self.each(Entity::MemoryLink, |row| {
            if row.text("memory_id").is_some_and(|id| there.get(id).is_none()) {
                story.memory_is_missing(row.text("episode_id").unwrap_or_default());
            }
        })
        .await?;
        Ok(there.check()?)
    }

    /// Entities that nothing else reads, for the contents of their rows.
    async fn rest(&mut self) -> Result<(), ChangeError> {
        if !self.wants(TEXT) {
            return Ok(());
        }
        let banks = self.lacks(Entity::Case).is_none();
        let episodes = self.lacks(Entity::Episode).is_none();
        let linked = episodes && self.lacks(Entity::MemoryLink).is_none();
        for entity in [Entity::Memory, Entity::UtilityEvent, Entity::WorkflowEvent, Entity::Access, Entity::Policy] {
            let read = match entity {
                Entity::Access | Entity::Policy => banks,
                Entity::Memory => linked,
                Entity::UtilityEvent => episodes,
                _ => false,
            };
            if !read {
                self.each(entity, |_| {}).await?;
            }
        }
        Ok(())
    }

    fn texts(&mut self) {
        if self.spent {
            self.left.extend(TEXT);
        }
        for ((kind, entity), mut tally) in std::mem::take(&mut self.text) {
            tally.by_hand = CLEANABLE.contains(&kind) && !self.cleanable.contains(&(kind, entity));
            self.found(kind, Some(entity), tally);
        }
    }

    /// Reads every row of an entity, checks its text, and passes it on. A missing entity has no rows.
    async fn each(&mut self, entity: Entity, each: impl FnMut(&Row) + Send) -> Result<(), ChangeError> {
        if self.stopped || self.spent || self.lacks(entity).is_some() {
            return Ok(());
        }
        let texts = self.wants(TEXT);
        let columns = Some(columns_read(entity, texts));
        match self.walk(&Query { columns, unparsed: true, ..Query::new(entity) }, texts, each).await {
            Err(ChangeError::Store(error)) => {
                let tables: Vec<TableName> = self.store.sources_of(entity)?.into_iter().map(table_of).collect();
                self.note_damage(error, &tables).await
            }
            walked => walked,
        }
    }

    /// Passes on the rows of a query, and checks their text if requested, until it breaks.
    async fn walk(&mut self, query: &Query, texts: bool, mut each: impl FnMut(&Row) + Send) -> Result<(), ChangeError> {
        let (store, most, entity) = (self.store, self.most(), query.entity);
        let (cleaned, cleanable) = (self.cleaned(entity), &mut self.cleanable);
        let (scanner, text, told) = (&mut self.scanner, &mut self.text, &mut self.told);
        let (read, stopped, spent) = (&mut self.read, &mut self.stopped, &mut self.spent);
        let (brief, begun) = (self.wanted.brief, self.begun);
        let row = |row: Row| {
            *read += 1;
            if texts {
                let held = scanner.row(&row);
                let kinds = [
                    (!row.problems.is_empty(), "unreadable_value"),
                    (held.secret, "secret"),
                    (held.instruction, "instruction"),
                    (held.hidden, "hidden_characters"),
                ];
                let kinds = kinds.into_iter().filter_map(|(holds, kind)| holds.then_some(kind));
                kinds.for_each(|kind| text.entry((kind, entity)).or_default().add(row.id(), most));
                if (held.secret || held.hidden) && !cleaned.is_empty() {
                    let held = scanner.columns(&row, &cleaned);
                    let kinds = [(held.secret, "secret"), (held.hidden, "hidden_characters")];
                    cleanable.extend(kinds.iter().filter(|(holds, _)| *holds).map(|(_, kind)| (*kind, entity)));
                }
            }
            each(&row);
            if *read % PROGRESS == 0 {
                *stopped = told(FindingNews::Read(*read, entity.name())).is_break();
            }
            let late = |time: Duration| *read % PROGRESS == 0 && begun.elapsed() >= time;
            *spent = brief.is_some_and(|b| *read >= b.rows || late(b.time));
            if *stopped || *spent { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        Ok(store.walks().each_row(query, row).await?)
    }
}
