//! Adds our own tables to a database: the first migration makes changes possible, and is itself the first entry.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::audit::{self, NewEntry};
use super::{Author, ChangeError, new_id, now};
use crate::layout::Engine;
use crate::store::bulk::NATIVE_SCHEMA;
use crate::store::companion;
use crate::store::own::{Migration, Own};
use crate::store::session::Raw;
use crate::store::stored::{Cell, Mutation, TableName};
use crate::store::write::{WriteError, Writer};
use crate::store::{OpenOptions, Store, Target};

/// A migration that can be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Name.
    pub name: String,
    /// What will be run.
    pub sql: String,
    /// What it locks, and for how long.
    pub lock_risk: String,
    /// What it makes possible.
    pub effect: String,
}

/// The migrations of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// Still to be applied, in order.
    pub pending: Vec<Pending>,
    /// Names of the applied ones, in order.
    pub applied: Vec<String>,
    /// Applied ones whose statements differ from this version's; shown, never stamped over.
    pub drift: Vec<String>,
}

/// What is applied and what is not.
///
/// # Errors
/// The engine's refusal.
pub async fn state(store: &Store) -> Result<State, ChangeError> {
    let own = store.own().await?;
    let mut state = state_of(own.as_ref(), store.engine());
    if let Some(path) = store.missing_companion() {
        state.pending.insert(
            0,
            Pending {
                name: companion::STEP.to_owned(),
                sql: NATIVE_SCHEMA.to_owned(),
                lock_risk: "none: the palace itself is not touched".to_owned(),
                effect: format!("{} is made: episodes, feedback and signals about the palace go there", path.display()),
            },
        );
    }
    Ok(state)
}

fn state_of(own: Option<&Own>, engine: Engine) -> State {
    let pending =
        |m: Migration| Pending { name: m.name, sql: m.sql.to_owned(), lock_risk: m.lock_risk, effect: m.effect };
    State {
        pending: Own::pending(own, engine).into_iter().map(pending).collect(),
        applied: own.map(|o| o.applied.iter().map(|a| a.name.clone()).collect()).unwrap_or_default(),
        drift: own.map(|o| o.drift(engine)).unwrap_or_default(),
    }
}

/// Applies what is pending to the companion database of a palace, which is made when it is missing. The palace is to be
/// opened anew then.
async fn apply_to_companion(path: &Path, author: &Author, to: Option<i64>) -> Result<Vec<String>, ChangeError> {
    let mut applied = Vec::new();
    if !path.is_file() {
        companion::make(path).await.map_err(|e| ChangeError::Failed(e.to_string()))?;
        applied.push(companion::STEP.to_owned());
    }
    let store = Store::open(&Target::File(path.to_owned()), &OpenOptions::default()).await;
    let store = store.map_err(|e| ChangeError::Failed(e.to_string()))?;
    applied.extend(Box::pin(apply(&store, author, to)).await?);
    Ok(applied)
}

/// Applies what is pending, up to a version when one is named, all in one transaction with its audit entry. Gives the
/// names of what was applied: none when nothing was pending.
///
/// # Errors
/// [`ChangeError::Refused`] where nothing can be written or an applied migration is not what it was.
pub async fn apply(store: &Store, author: &Author, to: Option<i64>) -> Result<Vec<String>, ChangeError> {
    if let Some(path) = store.companion_path() {
        return apply_to_companion(path, author, to).await;
    }
    if store.recognised().sources.is_empty() {
        return Err(ChangeError::Refused(format!(
            "no known layout fits {}: our tables are added beside a memory only",
            store.location()
        )));
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let at = now();
        let mut writer = store.write(&at).await?;
        match within(store, &mut writer, author, &at, to).await {
            Ok(applied) => {
                writer.commit().await?;
                return Ok(applied);
            }
            Err(Failed::Write(WriteError::Busy(_))) if tries < 5 => {
                writer.rollback().await;
                super::apply::wait(tries).await;
            }
            Err(failed) => {
                writer.rollback().await;
                return Err(match failed {
                    Failed::Write(error) => error.into(),
                    Failed::Change(error) => error,
                });
            }
        }
    }
}

enum Failed {
    Write(WriteError),
    Change(ChangeError),
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Self {
        Failed::Write(error)
    }
}

async fn within(
    store: &Store,
    writer: &mut Writer<'_>,
    author: &Author,
    at: &str,
    to: Option<i64>,
) -> Result<Vec<String>, Failed> {
    let engine = store.engine();
    let own = writer.own_for_migration(engine).await?;
    if let Some(drifted) = own.as_ref().and_then(|o| o.drift(engine).into_iter().next()) {
        return Err(Failed::Change(ChangeError::Refused(format!(
            "the migration {drifted} that was applied here is not the one of this version: use the version that applied \
             it, or look into memory_migrations"
        ))));
    }
    let mut pending = Own::pending(own.as_ref(), engine);
    pending.retain(|m| to.is_none_or(|to| m.version <= to));
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    for migration in &pending {
        writer.script(migration.sql).await?;
    }
    let schema = writer.own_schema(engine).await?;
    let database_id = own.map_or_else(new_id, |o| o.database_id);
    let own = Own { database_id, schema, applied: Vec::new() };
    let rows = pending.iter().map(|m| row(writer, &own, m, at)).collect();
    let columns = ["version", "name", "checksum", "applied_at", "database_id"].map(str::to_owned).to_vec();
    let table: TableName = own.table("memory_migrations");
    writer.run(&Mutation::Insert { table, key: Vec::new(), columns, rows }).await?;
    let names: Vec<String> = pending.into_iter().map(|m| m.name).collect();
    let mut public = Map::new();
    public.insert("operation".to_owned(), Value::from("migrate"));
    public.insert("migrations".to_owned(), json!(names));
    public.insert("schema".to_owned(), Value::from(audit::SCHEMA));
    public.insert("undo_reason".to_owned(), Value::from("a migration is not undone"));
    if let Some(ticket) = &author.ticket {
        public.insert("ticket".to_owned(), Value::from(ticket.clone()));
    }
    let entry = NewEntry {
        at: at.to_owned(),
        actor: author.actor.clone(),
        action: "migrate".to_owned(),
        public: Value::Object(public),
        private: author.reason.iter().map(|r| ("reason".to_owned(), Value::from(r.clone()))).collect(),
    };
    audit::append(writer, &own, &entry).await.map_err(|error| match error {
        audit::AppendError::Write(error) => Failed::Write(error),
        head @ audit::AppendError::Head => Failed::Change(head.into()),
    })?;
    Ok(names)
}

fn row(writer: &Writer<'_>, own: &Own, migration: &Migration, at: &str) -> Vec<Cell> {
    let texts = [&migration.name, &migration.checksum, &at.to_owned(), &own.database_id];
    let version = Cell::Is(writer.number(migration.version));
    std::iter::once(version).chain(texts.into_iter().map(|t| Cell::Is(Raw::Text(t.clone())))).collect()
}
