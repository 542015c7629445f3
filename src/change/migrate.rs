//! Migrations: our own tables, which make changes possible, and missing parts of a layout. Each is shown before it is
//! applied, recorded in the trail with its statements, and verified: its objects exist and every row can be read.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::audit::{self, NewEntry};
use super::plan::migration::{PendingMigration, StepState};
use super::waiting::WaitingTries;
use super::{Author, ChangeError, FailedTransaction, new_id, now};
use crate::layout::Engine;
use crate::store::bulk::NATIVE_SCHEMA;
use crate::store::companion::{self, Companion};
use crate::store::fetched::FetchedValue;
use crate::store::migrating::{ForeignMigrations, ReadableSource};
use crate::store::migration::{self, Migration, MigrationStep, Standing};
use crate::store::own::{AppliedMigration, OwnTables};
use crate::store::stored::{Cell, Mutation, TableName};
use crate::store::write::{WriteError, WriteTransaction};
use crate::store::{OpenOptions, Store, StoreError, Target};

/// Longest total wait of a step for locks.
const LOCKS: Duration = Duration::from_secs(30);

/// A migration that is only applied when named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfferedMigration {
    /// The name.
    pub option: String,
    /// The migration.
    #[serde(flatten)]
    pub migration: PendingMigration,
    /// True when the migration has been applied.
    pub applied: bool,
}

/// An applied migration that differs from this version's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Name.
    pub name: String,
    /// Checksum of the applied statements.
    pub applied: String,
    /// Checksum of this version's statements; `None` if it does not have the migration.
    pub known: Option<String>,
    /// Meaning of the difference, as text.
    pub message: String,
    /// Line diff from the applied statements to this version's; empty if unknown.
    pub diff: String,
}

/// A migration that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoneMigration {
    /// Number of the migration.
    pub version: i64,
    /// Name of the migration.
    pub name: String,
    /// Time when it was applied, in the canonical spelling.
    pub applied_at: String,
    /// Checksum of the statements that were run.
    pub checksum: String,
    /// Effect of the migration, if this version has it: what it enables.
    pub effect: String,
    /// The statements of this version, if it has them.
    #[serde(skip)]
    pub sql: String,
}

/// The migrations of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigrationState {
    /// Still to be applied, in order.
    pub pending: Vec<PendingMigration>,
    /// Names of the applied ones, in order.
    pub applied: Vec<String>,
    /// The applied migrations with time and details, in order.
    pub history: Vec<DoneMigration>,
    /// Names of migrations whose objects all exist although they were never applied: the system itself created them.
    pub present: Vec<String>,
    /// Migrations that are only applied when named.
    pub optional: Vec<OfferedMigration>,
    /// Applied migrations whose statements differ from this version's; shown, never overwritten.
    pub drift: Vec<Drift>,
    /// Migrations recorded by the memory's own system: shown, never touched.
    pub foreign: Vec<ForeignMigrations>,
    /// Layouts that fit, each with its variant.
    pub layouts: Vec<String>,
    /// Reason why our own tables cannot be added, so that nothing can be applied, with a remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Choice of the migrations to apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationChoice {
    /// Up to this number only.
    pub to: Option<i64>,
    /// Requested optional ones, by name.
    pub optional: Vec<String>,
}

/// Migrations that were applied, and the resulting state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigrationOutcome {
    /// Names of the migrations that were applied, in order.
    pub applied: Vec<String>,
    /// Rows of each source: those that existed, and those that can be read now.
    pub readable: Vec<ReadableSource>,
    /// Whether all rows can be read and all objects exist.
    pub verified: bool,
    /// Layouts that now fit, each with its variant.
    pub layouts: Vec<String>,
}

/// Returns the applied and the pending migrations.
///
/// # Errors
/// The engine's refusal.
pub async fn state(store: &Store) -> Result<MigrationState, ChangeError> {
    let own = store.records().own().await?;
    let standings = store.schema().standings(own.as_ref(), &store.shapes().structure().await?);
    let (optional, plain): (Vec<&Standing>, Vec<&Standing>) =
        standings.iter().partition(|s| s.migration.optional.is_some());
    let mut pending: Vec<PendingMigration> = plain.iter().filter(|s| s.is_due()).map(|s| pending(s)).collect();
    if let Some(path) = store.companion().and_then(Companion::missing) {
        pending.insert(0, companion_step(path));
    }
    let known = migration::all(store.engine());
    let done = |a: &AppliedMigration| {
        let migration = known.iter().find(|m| m.name == a.name);
        Some(DoneMigration {
            version: a.version,
            name: a.name.clone(),
            applied_at: a.applied_at.clone()?,
            checksum: a.checksum.clone(),
            effect: migration.map(|m| m.effect.clone()).unwrap_or_default(),
            sql: migration.map(|m| m.sql.to_owned()).unwrap_or_default(),
        })
    };
    let history: Vec<DoneMigration> = own.iter().flat_map(|o| &o.applied).filter_map(done).collect();
    let offered = |s: &&Standing| OfferedMigration {
        option: s.migration.optional.clone().unwrap_or_default(),
        applied: !s.is_pending(),
        migration: self::pending(s),
    };
    let refused = match audit::shown(store) {
        Err(hidden) => Some(hidden.to_string()),
        Ok(()) => store.records().taken(own.as_ref()).await?.map(|taken| taken.to_string()),
    };
    Ok(MigrationState {
        pending,
        applied: history.iter().map(|done| done.name.clone()).collect(),
        history,
        present: plain.iter().filter(|s| !s.is_pending() && !s.recorded).map(|s| s.migration.name.clone()).collect(),
        optional: optional.iter().map(offered).collect(),
        drift: drift(store, own.as_ref()).await?,
        foreign: store.schema().foreign_migrations().await?,
        layouts: layouts(store),
        refused,
    })
}

fn pending(standing: &Standing) -> PendingMigration {
    let migration = &standing.migration;
    let step = |(step, done): &(MigrationStep, bool)| StepState {
        name: step.name.clone(),
        sql: step.sql.clone(),
        done: *done,
    };
    PendingMigration {
        version: migration.version,
        name: migration.name.clone(),
        sql: migration.sql.to_owned(),
        lock_risk: migration.lock_risk.clone(),
        effect: migration.effect.clone(),
        steps: standing.steps.iter().map(step).collect(),
        goes_on_at: standing.goes_on_at().map(str::to_owned),
    }
}

fn companion_step(path: &Path) -> PendingMigration {
    PendingMigration {
        version: 0,
        name: companion::STEP.to_owned(),
        sql: NATIVE_SCHEMA.clone(),
        lock_risk: "none: the palace itself is not changed".to_owned(),
        effect: format!("{} is created: episodes, feedback and signals about the palace go there", path.display()),
        steps: Vec::new(),
        goes_on_at: None,
    }
}

fn layouts(store: &Store) -> Vec<String> {
    let named = |l: &crate::layout::Attachment| match &l.variant {
        Some(variant) => format!("{}: {variant}", l.name),
        None => l.name.clone(),
    };
    store.recognised().layouts.iter().map(named).collect()
}

async fn drift(store: &Store, own: Option<&OwnTables>) -> Result<Vec<Drift>, ChangeError> {
    let Some(own) = own else { return Ok(Vec::new()) };
    let drifted = own.drift(store.engine());
    if drifted.is_empty() {
        return Ok(Vec::new());
    }
    let kept: Vec<Value> =
        store.records().migration_entries().await?.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let text = |name: &str| kept.iter().rev().find_map(|entry| entry["sql"][name].as_str());
    Ok(drifted.into_iter().map(|applied| explain_drift(applied, text(&applied.name), store.engine())).collect())
}

fn explain_drift(applied: &AppliedMigration, text: Option<&str>, engine: Engine) -> Drift {
    let known = migration::all(engine).into_iter().find(|m| m.name == applied.name);
    let (message, diff) = match (&known, text) {
        (None, _) => ("this version does not know the migration: another version applied it", String::new()),
        (Some(_), None) => ("the applied statements were not kept, so they cannot be compared", String::new()),
        (Some(known), Some(text)) if known.sql == text => {
            ("the applied statements are those of this version: the recorded checksum was altered", String::new())
        }
        (Some(known), Some(text)) => {
            let diff = similar::TextDiff::from_lines(text, known.sql);
            (
                "the applied statements differ from those of this version",
                diff.unified_diff().header("applied", "here").to_string(),
            )
        }
    };
    Drift {
        name: applied.name.clone(),
        applied: applied.checksum.clone(),
        known: known.map(|m| m.checksum),
        message: message.to_owned(),
        diff,
    }
}

/// Applies pending migrations to the companion database of a palace, which is created if missing. The palace must be
/// reopened afterwards.
async fn apply_to_companion(
    path: &Path,
    author: &Author,
    choice: &MigrationChoice,
) -> Result<MigrationOutcome, ChangeError> {
    let mut made = Vec::new();
    if !path.is_file() {
        companion::make(path).await.map_err(|e| ChangeError::Failed(e.to_string()))?;
        made.push(companion::STEP.to_owned());
    }
    let store = Store::open(&Target::File(path.to_owned()), &OpenOptions::default()).await;
    let store = store.map_err(|e| ChangeError::Failed(e.to_string()))?;
    let mut outcome = Box::pin(apply_chosen(&store, author, choice)).await?;
    outcome.applied.splice(0..0, made);
    Ok(outcome)
}

/// Applies pending migrations, up to a number if given. Returns their names; empty if nothing was pending.
///
/// # Errors
/// As [`apply_chosen`].
pub async fn apply(store: &Store, author: &Author, to: Option<i64>) -> Result<Vec<String>, ChangeError> {
    let choice = MigrationChoice { to, optional: Vec::new() };
    Ok(apply_chosen(store, author, &choice).await?.applied)
}

/// Applies pending migrations: our own tables in one transaction with their entry; a layout's migration step by step,
/// each in its own transaction or, if it must not block writers, outside of any. If interrupted, it continues with the
/// next step when applied again.
///
/// # Errors
/// [`ChangeError::Refused`] if nothing can be written or an applied migration has changed; [`ChangeError::Usage`] for
/// an option that is not offered here; [`ChangeError::Failed`] if a step fails.
pub async fn apply_chosen(
    store: &Store,
    author: &Author,
    choice: &MigrationChoice,
) -> Result<MigrationOutcome, ChangeError> {
    if let Some(path) = store.companion().map(|companion| &companion.path) {
        return apply_to_companion(path, author, choice).await;
    }
    if store.recognised().sources.is_empty() && !store.schema().is_blank() {
        audit::shown(store)?;
        return Err(ChangeError::Refused(format!(
            "no known layout fits {}: our tables can only be added next to a memory, or to an empty database",
            store.location()
        )));
    }
    let own = store.records().own().await?.map(OwnTables::read).transpose()?;
    if let Some(drifted) = drift(store, own.as_ref()).await?.into_iter().next() {
        return Err(ChangeError::Refused(format!(
            "the migration {} that was applied here differs from the one of this version ({}): use the version that \
             applied it, or check memory_migrations; `{}` shows the difference",
            drifted.name,
            drifted.message,
            store.invocation().line(["migrate"])
        )));
    }
    check_number(store, choice)?;
    let wanted = choose(&store.schema().standings(own.as_ref(), &store.shapes().structure().await?), choice)?;
    let mut applied = apply_own(store, author, choice.to).await?;
    let mut readable = Vec::new();
    for migration in wanted {
        readable = apply_steps(store, author, &migration).await?;
        applied.push(migration.name);
    }
    let after = store.schema().look_again().await?;
    if store.schema().is_blank() && !after.schema().is_blank() {
        // Migrations that build on new tables are only found once these exist.
        let more = Box::pin(apply_chosen(&after, author, choice)).await?;
        applied.extend(more.applied);
        readable.extend(more.readable);
    }
    let verified = readable.iter().all(|r| r.read >= r.before);
    Ok(MigrationOutcome { applied, readable, verified, layouts: layouts(&after) })
}

/// The command arguments that apply a migration, with the name of an optional one.
pub fn applying(optional: Option<&str>) -> impl Iterator<Item = &str> {
    ["migrate", "--apply"].into_iter().chain(optional.into_iter().flat_map(|name| ["--optional", name]))
}

/// Reduces the pending migrations to those that the choice would apply.
///
/// # Errors
/// [`ChangeError::Usage`] for an optional migration that is not offered, or an unknown number.
pub fn narrow(store: &Store, state: &mut MigrationState, choice: &MigrationChoice) -> Result<(), ChangeError> {
    check_number(store, choice)?;
    let named = |o: &OfferedMigration, name: &String| o.option == *name || o.migration.name == *name;
    if let Some(unknown) = choice.optional.iter().find(|name| !state.optional.iter().any(|o| named(o, name))) {
        let offered: Vec<&str> = state.optional.iter().map(|o| o.option.as_str()).collect();
        return Err(not_offered(unknown, &offered));
    }
    state.pending.retain(|migration| choice.to.is_none_or(|to| migration.version <= to));
    Ok(())
}

fn check_number(store: &Store, choice: &MigrationChoice) -> Result<(), ChangeError> {
    let known = migration::all(store.engine());
    match choice.to.filter(|to| known.iter().all(|migration| migration.version != *to)) {
        None => Ok(()),
        Some(to) => Err(ChangeError::Usage(format!(
            "there is no migration {to}; `{}` lists them with their numbers",
            store.invocation().line(["migrate"])
        ))),
    }
}

fn not_offered(unknown: &str, offered: &[&str]) -> ChangeError {
    let mut offered = offered.to_vec();
    offered.dedup();
    let known =
        if offered.is_empty() { "there are none here".to_owned() } else { format!("there is {}", offered.join(", ")) };
    ChangeError::Usage(format!("there is no optional migration `{unknown}` for this database; {known}"))
}

/// The migrations of layouts to apply.
fn choose(standings: &[Standing], choice: &MigrationChoice) -> Result<Vec<Migration>, ChangeError> {
    let offered: Vec<&str> = standings.iter().filter_map(|s| s.migration.optional.as_deref()).collect();
    // By its word, or by its listed name.
    let named =
        |m: &Migration, name: &String| m.optional.is_some() && (m.optional.as_ref() == Some(name) || m.name == *name);
    if let Some(unknown) = choice.optional.iter().find(|name| !standings.iter().any(|s| named(&s.migration, name))) {
        return Err(not_offered(unknown, &offered));
    }
    let chosen = |m: &Migration| choice.optional.iter().any(|name| named(m, name));
    let wanted = |s: &&Standing| s.is_due() || (s.is_pending() && chosen(&s.migration));
    let due = standings.iter().filter(|s| s.migration.series != migration::OWN).filter(wanted);
    let due = due.map(|s| s.migration.clone());
    Ok(due.filter(|m| choice.to.is_none_or(|to| m.version <= to)).collect())
}

/// Retries a transaction while others hold locks, within the time limit.
macro_rules! in_turn {
    ($store:expr, $at:ident, |$writer:ident| $work:expr) => {{
        let mut waiting = WaitingTries::up_to(LOCKS);
        loop {
            let $at = now();
            let patience = waiting.patience();
            let attempt = async {
                let mut $writer = $store.write_within(&$at, patience).await?;
                match $work.await {
                    Ok(done) => $writer.commit().await.map(|()| done).map_err(FailedTransaction::Write),
                    Err(failed) => {
                        $writer.rollback().await;
                        Err(failed)
                    }
                }
            };
            match attempt.await {
                Err(FailedTransaction::Write(error @ WriteError::Busy(_))) => {
                    if !waiting.again().await {
                        break Err(waiting.gave_up(&error));
                    }
                }
                outcome => break outcome.map_err(ChangeError::from),
            }
        }
    }};
}

/// Applies the pending migrations of our own tables, all in one transaction with their entry.
async fn apply_own(store: &Store, author: &Author, to: Option<i64>) -> Result<Vec<String>, ChangeError> {
    in_turn!(store, at, |writer| within(store, &mut writer, author, &at, to))
}

async fn within(
    store: &Store,
    writer: &mut WriteTransaction<'_>,
    author: &Author,
    at: &str,
    to: Option<i64>,
) -> Result<Vec<String>, FailedTransaction> {
    let engine = store.engine();
    let own = writer.own_for_migration(engine).await?;
    let mut pending = OwnTables::pending(own.as_ref(), engine);
    pending.retain(|m| to.is_none_or(|to| m.version <= to));
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(taken) = writer.taken(engine, &pending).await? {
        return Err(ChangeError::Refused(taken.to_string()).into());
    }
    for migration in &pending {
        writer.script(migration.sql).await?;
    }
    let schema = writer.own_schema(engine).await?;
    let database_id = own.map_or_else(new_id, |o| o.database_id);
    let own = OwnTables { database_id, schema, applied: Vec::new(), unread: None };
    let rows = pending.iter().map(|m| row(writer, &own, m, at)).collect();
    writer.run(&recorded(&own, rows)).await?;
    enter(writer, &own, author, at, &pending, Map::new()).await?;
    Ok(pending.into_iter().map(|m| m.name).collect())
}

fn recorded(own: &OwnTables, rows: Vec<Vec<Cell>>) -> Mutation {
    let columns = ["version", "name", "checksum", "applied_at", "database_id"].map(str::to_owned).to_vec();
    let table: TableName = own.table("memory_migrations");
    Mutation::Insert { table, key: Vec::new(), columns, rows }
}

/// A row of the list of migrations; without a time the migration is begun.
fn row(writer: &WriteTransaction<'_>, own: &OwnTables, migration: &Migration, at: &str) -> Vec<Cell> {
    let texts = [&migration.name, &migration.checksum, &at.to_owned(), &own.database_id];
    let version = Cell::Is(writer.number(migration.version));
    std::iter::once(version).chain(texts.into_iter().map(|t| Cell::Is(FetchedValue::Text(t.clone())))).collect()
}

/// Records migrations in the trail, with their statements for comparison with later versions.
async fn enter(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    author: &Author,
    at: &str,
    migrations: &[Migration],
    mut public: Map<String, Value>,
) -> Result<(), FailedTransaction> {
    let names: Vec<&str> = migrations.iter().map(|m| m.name.as_str()).collect();
    let sql: Map<String, Value> = migrations.iter().map(|m| (m.name.clone(), Value::from(m.sql))).collect();
    public.insert("operation".to_owned(), Value::from("migrate"));
    public.insert("migrations".to_owned(), json!(names));
    public.insert("sql".to_owned(), Value::Object(sql));
    public.insert("schema".to_owned(), Value::from(audit::SCHEMA));
    public.insert("undo_reason".to_owned(), Value::from("a migration cannot be undone"));
    if let Some(ticket) = &author.ticket {
        public.insert("ticket".to_owned(), Value::from(ticket.clone()));
    }
    let entry = NewEntry {
        at: at.to_owned(),
        actor: author.actor.clone(),
        action: "migrate".to_owned(),
        public: Value::Object(public),
        private: author.reason.iter().map(|r| ("reason".to_owned(), json!(r).to_string())).collect(),
    };
    audit::append(writer, own, entry).await.map(drop)
}

/// Applies a layout's migration: records that it has begun, runs missing steps, verifies, and records it in the trail.
async fn apply_steps(
    store: &Store,
    author: &Author,
    migration: &Migration,
) -> Result<Vec<ReadableSource>, ChangeError> {
    begin(store, migration).await?;
    let before = store.schema().source_counts().await?;
    let structure = store.shapes().structure().await?;
    let steps = migration.steps(&structure);
    let due: Vec<&MigrationStep> = steps.iter().filter(|step| !step.done(&structure)).collect();
    let together = store.schema().is_blank() && due.iter().all(|step| !step.concurrent);
    if together {
        run(store, migration, &due).await?;
    } else {
        for step in &due {
            run(store, migration, &[step]).await?;
        }
    }
    let structure = store.shapes().structure().await?;
    let missing: Vec<String> =
        steps.iter().flat_map(|s| &s.makes).filter(|part| !structure.has(part)).map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Err(ChangeError::Failed(format!(
            "{} is not complete: {} was not created; apply it again",
            migration.name,
            missing.join(", ")
        )));
    }
    let readable = store.schema().look_again().await?.schema().read_all(before).await?;
    let lost: Vec<String> = readable
        .iter()
        .filter(|r| r.read < r.before)
        .map(|r| format!("{} of {} rows of {}", r.read, r.before, r.source))
        .collect();
    let done: Vec<&str> = due.iter().map(|s| s.name.as_str()).collect();
    let mut facts = Map::new();
    facts.insert("steps".to_owned(), json!(done));
    facts.insert("readable".to_owned(), json!(readable));
    end(store, author, migration, facts).await?;
    if !lost.is_empty() {
        return Err(ChangeError::Failed(format!(
            "{} was applied, but only {} can be read now",
            migration.name,
            lost.join(", ")
        )));
    }
    Ok(readable)
}

/// Runs steps of one transaction, retrying until it gets their locks.
async fn run(store: &Store, migration: &Migration, steps: &[&MigrationStep]) -> Result<(), ChangeError> {
    let mut waiting = WaitingTries::up_to(LOCKS);
    loop {
        match store.schema().run_steps(steps, &now(), waiting.patience()).await {
            Ok(()) => return Ok(()),
            // Others have their turn in between.
            Err(WriteError::Busy(_)) if waiting.again().await => {}
            Err(error) => {
                let name = steps.first().map_or("", |step| step.name.as_str());
                let (why, is_refused) = match &error {
                    WriteError::Store(StoreError::Denied { reason, remedy }) => (format!("{reason}; {remedy}"), true),
                    other => (other.to_string(), matches!(other, WriteError::ReadOnly(_))),
                };
                let after = format!(
                    "{}: the step \"{name}\" did not succeed: {why}. Earlier steps stay applied; `{}` continues from \
                     there",
                    migration.name,
                    store.invocation().line(applying(migration.optional.as_deref()))
                );
                return Err(if is_refused { ChangeError::Refused(after) } else { ChangeError::Failed(after) });
            }
        }
    }
}

/// Records that a migration has begun, unless it is recorded already.
async fn begin(store: &Store, migration: &Migration) -> Result<(), ChangeError> {
    let mut writer = store.write(&now()).await?;
    let own = writer.own_for_migration(store.engine()).await?;
    let Some(own) = own else {
        writer.rollback().await;
        return Err(ChangeError::Refused(
            "our own tables come first: apply without --to, or with a higher one".to_owned(),
        ));
    };
    if !own.applied.iter().any(|a| a.name == migration.name) {
        let row = row(&writer, &own, migration, "");
        if let Err(error) = writer.run(&recorded(&own, vec![row])).await {
            writer.rollback().await;
            return Err(error.into());
        }
    }
    Ok(writer.commit().await?)
}

/// Records that a migration has been applied, with its entry.
async fn end(
    store: &Store,
    author: &Author,
    migration: &Migration,
    facts: Map<String, Value>,
) -> Result<(), ChangeError> {
    in_turn!(store, at, |writer| end_within(store, &mut writer, author, migration, &at, facts.clone()))
}

async fn end_within(
    store: &Store,
    writer: &mut WriteTransaction<'_>,
    author: &Author,
    migration: &Migration,
    at: &str,
    facts: Map<String, Value>,
) -> Result<(), FailedTransaction> {
    let Some(own) = writer.own_for_migration(store.engine()).await? else {
        return Err(ChangeError::Refused("our own tables are missing".to_owned()).into());
    };
    // A migration recorded before keeps its record: only its lost objects were created again.
    if own.applied.iter().any(|a| a.name == migration.name && a.applied_at.is_none()) {
        let key = vec![("version".to_owned(), writer.number(migration.version))];
        let set = vec![("applied_at".to_owned(), Cell::Is(FetchedValue::Text(at.to_owned())))];
        writer.run(&Mutation::Update { table: own.table("memory_migrations"), key, set }).await?;
    }
    enter(writer, &own, author, at, std::slice::from_ref(migration), facts).await
}
