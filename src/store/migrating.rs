//! Runs the steps of migrations, and checks whether every row can still be read afterwards.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::dialect::quote;
use super::fetched::FetchedValue;
use super::index_builder::IndexBuilder;
use super::migration::{self, Migration, MigrationStep, NATIVE, OWN, Standing};
use super::own::OwnTables;
use super::scan::Scan;
use super::select::{Projection, from_clause};
use super::session::{Opener, Sessions};
use super::structure::{Structure, StructurePart};
use super::withhold::recognise_readable;
use super::write::WriteError;
use super::{SchemaDoor, Store, StoreError, catalog};
use crate::layout::{BoundSource, Engine};

/// Longest wait of a step for a lock; sessions queued behind it wait as long.
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Most readings of a source from which others delete rows meanwhile.
const READINGS: usize = 3;

/// Rows shown of another tool's list of migrations.
const FOREIGN_ROWS: usize = 20;

/// Migration tables of other tools; each is shown if it exists, and never changed.
const FOREIGN: &[&str] = &[
    "alembic_version",
    "nous_system.schema_migrations",
    "schema_migrations",
    "_sqlx_migrations",
    "_prisma_migrations",
    "__drizzle_migrations",
    "drizzle.__drizzle_migrations",
    "django_migrations",
    "flyway_schema_history",
    "knex_migrations",
    "migrations",
];

/// Another tool's list of migrations.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ForeignMigrations {
    /// Table that holds the list.
    pub table: String,
    /// Columns of the table.
    pub columns: Vec<String>,
    /// Last rows of the table, as text.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The rows of one source: their number, and how many could be read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReadableSource {
    /// Kind of rows.
    pub entity: String,
    /// Source.
    pub source: String,
    /// Rows before, less those that others deleted meanwhile.
    pub before: u64,
    /// Rows that were read.
    pub read: u64,
}

impl SchemaDoor<'_> {
    /// Returns the state of each migration that concerns this database.
    pub fn standings(self, own: Option<&OwnTables>, structure: &Structure) -> Vec<Standing> {
        let blank = migration::is_blank(structure.catalog(), self.store.engine());
        if blank {
            let series = self.store.intended.as_deref().unwrap_or(NATIVE);
            return standings(&[series], own, structure, true);
        }
        let series: Vec<&str> = self.store.recognised.layouts.iter().map(|l| l.name.as_str()).collect();
        standings(&series, own, structure, false)
    }

    /// Whether the database has no tables except possibly ours.
    pub fn is_blank(self) -> bool {
        migration::is_blank(&self.store.catalog, self.store.engine())
    }

    /// Opens the same database again, with its current tables and the layouts that now fit.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn look_again(self) -> Result<Store, StoreError> {
        let sessions = Sessions::open(self.store.sessions.opener().clone(), 1).await?;
        let catalog = catalog::read(&sessions, &self.store.refusals).await?;
        // Shipped layouts are valid: a test parses them all.
        let layouts = self.store.choice.to_try(self.store.engine(), &catalog).unwrap_or_default();
        let recognised = recognise_readable(&layouts, self.store.engine(), &catalog);
        let intended = self.store.intended.clone().filter(|_| migration::is_blank(&catalog, self.store.engine()));
        let mut again = self.store.again(Arc::new(sessions), catalog, layouts, recognised);
        again.intended = intended;
        Ok(again)
    }

    /// Runs steps: those of one transaction together, or a single one that runs outside of any.
    ///
    /// # Errors
    /// [`WriteError::Busy`] if a lock could not be taken in time: nothing was done, and it can be tried again.
    pub async fn run_steps(self, steps: &[&MigrationStep], now: &str, patience: Duration) -> Result<(), WriteError> {
        if let [step] = steps
            && step.concurrent
        {
            return self.run_outside(step).await;
        }
        let mut writer = self.store.write_within(now, patience).await?;
        if self.store.engine() == Engine::Postgres {
            writer.script(&format!("SET LOCAL lock_timeout = {}", LOCK_WAIT.as_millis())).await?;
        }
        for step in steps {
            if let Err(error) = writer.script(&step.sql).await {
                writer.rollback().await;
                return Err(error);
            }
        }
        writer.commit().await
    }

    /// Builds an index without blocking writers. An unfinished index of an earlier attempt is removed first.
    async fn run_outside(self, step: &MigrationStep) -> Result<(), WriteError> {
        if let Some(reason) = self.store.why_not_writable() {
            return Err(WriteError::ReadOnly(reason.to_owned()));
        }
        let Opener::Postgres(server) = self.store.sessions.opener() else { return Ok(()) };
        self.store.fault.step()?;
        let structure = self.store.shapes().structure().await?;
        let mut link = self.store.link(server).await?;
        for part in &step.makes {
            if let (Some(schema), StructurePart::Index(index, table)) = (structure.broken_index(part), part)
                && !structure.is_partitioned(table)
            {
                let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {}.{}", quote(schema), quote(index));
                locked_or_done(link.alone(&drop, LOCK_WAIT).await)?;
            }
        }
        let built = IndexBuilder { link: &mut link, refusals: &self.store.refusals }.build(step, &structure).await;
        link.close().await;
        locked_or_done(built)
    }

    /// The number of rows of each source.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn source_counts(self) -> Result<Vec<ReadableSource>, StoreError> {
        let mut counts = Vec::new();
        for source in &self.store.recognised.sources {
            let before = self.source_count(source).await?;
            let entity = source.entity.name().to_owned();
            counts.push(ReadableSource { entity, source: source.label.clone(), before, read: 0 });
        }
        Ok(counts)
    }

    async fn source_count(self, source: &BoundSource) -> Result<u64, StoreError> {
        let keep = source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT count(*) FROM {} WHERE {keep}", from_clause(source));
        Ok(match self.store.fetch_text(&sql).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(n)) => *n as u64,
            _ => 0,
        })
    }

    /// Reads every row of the sources counted before, and sets the number read. If it is lower, others may have deleted
    /// some: they are counted and read again.
    ///
    /// # Errors
    /// The engine's refusal, which means that they cannot be read.
    pub async fn read_all(self, before: Vec<ReadableSource>) -> Result<Vec<ReadableSource>, StoreError> {
        let mut counted = Vec::new();
        for mut readable in before {
            for _ in 0..READINGS {
                self.read_source(&mut readable).await?;
                if readable.read >= readable.before {
                    break;
                }
            }
            counted.push(readable);
        }
        Ok(counted)
    }

    /// Reads every row of a source, and counts them again if fewer come than before.
    async fn read_source(self, readable: &mut ReadableSource) -> Result<(), StoreError> {
        let same = |s: &&BoundSource| s.entity.name() == readable.entity && s.label == readable.source;
        let sources: Vec<&BoundSource> = self.store.recognised.sources.iter().filter(same).collect();
        readable.read = 0;
        for source in &sources {
            let scan = Scan::new(Projection::new(self.store.engine(), source, None, None).select(source, &[]));
            let mut came = |()| {
                readable.read += 1;
                ControlFlow::Continue(())
            };
            let _ = self.store.walks().scan_parts(source, scan, |_| (), &mut came).await?;
        }
        if readable.read < readable.before && !sources.is_empty() {
            let mut now = 0;
            for source in sources {
                now += self.source_count(source).await?;
            }
            readable.before = readable.before.min(now);
        }
        Ok(())
    }

    /// Reads the migration tables of other tools.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn foreign_migrations(self) -> Result<Vec<ForeignMigrations>, StoreError> {
        let mut found = Vec::new();
        for name in FOREIGN {
            let Some(table) = self.store.catalog.table(name) else { continue };
            if found.iter().any(|f: &ForeignMigrations| f.table == table.title()) {
                continue;
            }
            let columns: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
            let texts: Vec<String> = columns.iter().map(|c| format!("CAST({} AS text)", quote(c))).collect();
            let last = if columns.is_empty() { "" } else { " ORDER BY 1 DESC" };
            let sql = format!(
                "SELECT {} FROM {}.{}{last} LIMIT {FOREIGN_ROWS}",
                texts.join(", "),
                quote(&table.schema),
                quote(&table.name)
            );
            let text = |raw: &FetchedValue| match raw {
                FetchedValue::Text(text) => Some(text.clone()),
                FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => {
                    Some(String::from_utf8_lossy(bytes).into_owned())
                }
                FetchedValue::Integer(i) => Some(i.to_string()),
                FetchedValue::Real(x) => Some(x.to_string()),
                FetchedValue::Null => None,
            };
            // A table that may not be read is still listed.
            let rows = self.store.fetch_text(&sql).await.unwrap_or_default();
            let rows = rows.iter().map(|row| row.iter().map(text).collect()).collect();
            found.push(ForeignMigrations { table: table.title(), columns, rows });
        }
        Ok(found)
    }
}

/// Converts the outcome of a statement with a short lock timeout.
fn locked_or_done(outcome: Result<bool, sqlx::Error>) -> Result<(), WriteError> {
    match outcome {
        Ok(true) => Ok(()),
        Ok(false) => {
            let words = "transactions that other sessions had open before did not end in time";
            Err(WriteError::Busy(sqlx::Error::InvalidArgument(words.to_owned())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of the migrations that concern a database: our own first, then those of its layouts.
fn standings(series: &[&str], own: Option<&OwnTables>, structure: &Structure, blank: bool) -> Vec<Standing> {
    let engine = structure.engine();
    let wanted = std::iter::once(OWN).chain(series.iter().copied().filter(|s| *s != OWN));
    let fitting = wanted
        .flat_map(|s| migration::of(s, engine))
        .filter(|m| if blank { m.blank || m.series == OWN } else { m.fits(structure) });
    let standing = |migration: Migration| {
        let entry = own.and_then(|o| o.applied.iter().find(|a| a.name == migration.name));
        let steps = if migration.series == OWN { Vec::new() } else { migration.steps(structure) };
        let steps =
            steps.into_iter().map(|step| (step.done(structure), step)).map(|(done, step)| (step, done)).collect();
        // If our role may not read the list, the migration counts as applied, so that nobody is told to repeat it.
        let unread = migration.series == OWN && own.is_some_and(|o| o.unread.is_some());
        let ended = unread || entry.is_some_and(|e| e.applied_at.is_some());
        Standing { begun: entry.is_some() && !ended, recorded: ended, steps, migration }
    };
    fitting.map(standing).collect()
}
