//! The state of an opened database: layouts, counts without blocking, capabilities, tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::companion::Companion;
use super::count::Counting;
use super::dialect::quote;
use super::fetched::FetchedValue;
use super::migration::Standing;
use super::own::OwnTables;
use super::withhold::DeniedTable;
use super::{DatabaseReport, StoreError};
use crate::layout::{Attachment, BoundSource, CatalogTable, Engine, Source};
use crate::memory::query::{
    Capability, CountKind, DatabaseStatus, EntityStatus, LayoutStatus, Migrations, StoreStatus, TableStatus,
};
use crate::memory::{Column, Entity, Personal, ValueKind, agreeing};

impl DatabaseReport<'_> {
    /// The state of the database. Counts that would take long are estimated or left out, with the reason.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn status(self) -> Result<StoreStatus, StoreError> {
        let mut counting = Counting::new(self.store);
        let mut layouts = Vec::new();
        for layout in &self.store.recognised().layouts {
            let mut entities: BTreeMap<&'static str, EntityStatus> = BTreeMap::new();
            for source in self.store.recognised().sources.iter().filter(|s| s.layout == layout.name) {
                // A table that may not be read does not affect the others.
                let counted = counting.source(source).await;
                let entity = entities.entry(source.entity.name()).or_insert(EntityStatus {
                    source: String::new(),
                    count: Some(0),
                    count_kind: CountKind::Exact,
                    count_reason: None,
                });
                entity.source = match entity.source.as_str() {
                    "" => source.label.clone(),
                    before => format!("{before}, {}", source.label),
                };
                entity.count = entity.count.zip(counted.rows).map(|(a, b)| a.saturating_add(b));
                entity.count_reason = entity.count_reason.take().or(counted.reason);
                if counted.kind == CountKind::About {
                    entity.count_kind = CountKind::About;
                }
            }
            let missing = layout.missing.iter().filter(|m| !m.optional);
            let missing = missing.map(|m| format!("{}: {}", m.key, m.message));
            layouts.push(LayoutStatus {
                name: layout.name.clone(),
                variant: layout.variant.clone(),
                entities,
                missing: missing.chain(self.tables_not_there(layout)).collect(),
            });
        }
        let mut tables = Vec::new();
        for table in &self.store.catalog().tables {
            let counted = counting.table(table).await;
            let bytes_reason = table.bytes.is_none().then(|| self.why_no_size(table));
            tables.push(TableStatus {
                name: table.title(),
                rows: counted.rows,
                rows_reason: counted.reason,
                bytes: table.bytes,
                bytes_reason,
            });
        }
        let own = self.store.records().own().await?;
        let companion = self.store.companion().and_then(Companion::missing).map(|_| super::companion::STEP.to_owned());
        let standings = self.store.schema().standings(own.as_ref(), &self.store.shapes().structure().await?);
        let pending = standings.into_iter().filter(Standing::is_due).map(|s| s.migration.name);
        let pending = companion.into_iter().chain(pending).collect();
        let write = self.may_write(own.as_ref()).await?;
        let notes = self.store.notes().into_iter().chain(self.unfinished_erasures().await?).collect();
        Ok(StoreStatus {
            database: DatabaseStatus {
                engine: self.store.engine().name().to_owned(),
                version: self.store.version.clone(),
                location: self.store.location.clone(),
                read_only: !write.available,
                notes,
            },
            layouts,
            capabilities: self.capabilities().into_iter().chain([write]).collect(),
            migrations: Migrations { pending },
            tables,
        })
    }

    /// Reason why the size of a table is not known without a full read.
    fn why_no_size(self, table: &CatalogTable) -> String {
        match self.store.engine() {
            Engine::Sqlite => {
                let sizes = self.store.invocation().line(["status", "--sizes"]);
                format!("SQLite must read every page to compute it: run `{sizes}`")
            }
            Engine::Postgres if !table.partitioned && !table.places.is_empty() => {
                "the server did not report it, or another session holds the table locked".to_owned()
            }
            Engine::Postgres => {
                "it has no pages of its own: it is a view, a partitioned table, or a foreign table".to_owned()
            }
        }
    }

    /// Sets the sizes of an SQLite database's tables with their indexes. Reads every page of the file.
    ///
    /// # Errors
    /// The engine's refusal; if SQLite has no `dbstat`, the sizes are left out with a note.
    pub async fn with_sizes(self, mut status: StoreStatus) -> Result<StoreStatus, StoreError> {
        if self.store.engine() != Engine::Sqlite {
            return Ok(status);
        }
        let mut sizes: HashMap<String, i64> = HashMap::new();
        let schemas: BTreeSet<&str> = self.store.catalog().tables.iter().map(|t| t.schema.as_str()).collect();
        for schema in schemas {
            let sql = format!(
                "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN {}.sqlite_schema m ON m.name = s.name \
                 WHERE s.schema = '{}' AND s.aggregate = 1 GROUP BY 1",
                quote(schema),
                schema.replace('\'', "''")
            );
            for row in self.store.fetch_text(&sql).await? {
                if let [FetchedValue::Text(name), FetchedValue::Integer(bytes)] = &row[..] {
                    let table = self.store.catalog().exactly(schema, name);
                    sizes.extend(table.map(|table| (table.title(), *bytes)));
                }
            }
        }
        for table in &mut status.tables {
            table.bytes = sizes.get(&table.name).copied();
            table.bytes_reason = table.bytes.is_none().then(|| "it has no pages of its own, like a view".to_owned());
        }
        Ok(status)
    }

    /// Message about erasures that have not ended verified; `None` if there are none, or our role may not read that.
    async fn unfinished_erasures(self) -> Result<Option<String>, StoreError> {
        let open = match self.store.records().open_purges().await {
            Err(error) if error.is_denied() => return Ok(None),
            open => open?.len(),
        };
        let invocation = self.store.invocation();
        let names = invocation.line(["findings", "--kind", "unfinished_erasure"]);
        let resume = invocation.line(["purge", "SUBJECT", "--resume"]);
        let words = "{#} {erasure has|erasures have} not ended verified";
        let words = format!("{}: `{names}` names whom, and `{resume}` continues", agreeing(open, words));
        Ok((open > 0).then_some(words))
    }

    /// The capability to make changes here, with the remedy if it is missing.
    async fn may_write(self, own: Option<&OwnTables>) -> Result<Capability, StoreError> {
        let (reason, remedy) = match (self.store.why_not_writable(), own) {
            (Some(reason), _) => (
                Some(reason.to_owned()),
                self.store.companion().and_then(|companion| companion.remedy(self.store.invocation())),
            ),
            (None, _) if let Some((reason, remedy)) = self.store.left_out() => {
                (Some(reason.to_owned()), Some(remedy.to_owned()))
            }
            (None, _) if self.store.recognised().layouts.is_empty() && !self.store.catalog().tables.is_empty() => (
                Some("no known layout fits this database, so the meaning of a change is unknown".to_owned()),
                Some("open it with --layout FILE; `layouts check FILE` helps to write one".to_owned()),
            ),
            (None, None) if let Some(taken) = self.store.records().taken(own).await? => {
                (Some(taken.reason), Some(taken.remedy))
            }
            (None, None) => (
                Some("there is no audit trail yet, and changes require one".to_owned()),
                Some(self.store.invocation().line(["migrate", "--apply"])),
            ),
            (None, Some(OwnTables { unread: Some((reason, remedy)), .. })) => {
                (Some(reason.clone()), Some(remedy.clone()))
            }
            (None, Some(_)) if let Some(elsewhere) = self.store.records().kept_elsewhere().await? => {
                (Some(elsewhere.reason), Some(elsewhere.remedy))
            }
            (None, Some(_)) => self.trail_refused().await?.unzip(),
        };
        Ok(Capability { name: "write".to_owned(), available: reason.is_none(), reason, remedy })
    }

    /// Returns the reason why our role may not append to the existing audit trail, and the remedy; `None` if it may.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_refused(self) -> Result<Option<(String, String)>, StoreError> {
        if self.store.records().may_append().await? {
            return Ok(None);
        }
        let reason = "your role may not write the audit trail, and changes require it".to_owned();
        Ok(Some((reason, super::withhold::to_append(&self.store.catalog().role))))
    }

    /// The tables that a layout expects for entities without a source here, each with its key: in this database they
    /// may have another name. Tables with a name pattern are never missing.
    fn tables_not_there(self, layout: &Attachment) -> Vec<String> {
        let catalog = self.store.catalog();
        let written = self.store.layouts.iter().find(|known| known.name == layout.name && known.attach.is_empty());
        let is_told = |entity: Entity| {
            let key = format!("{entity}.");
            self.store.recognised().sources.iter().any(|s| s.layout == layout.name && s.entity == entity)
                || layout.absent.iter().any(|(absent, _)| *absent == entity)
                || layout.missing.iter().any(|missing| !missing.optional && missing.key.starts_with(&key))
        };
        let sources = written.into_iter().flat_map(|written| &written.sources);
        let is_lost = |source: &&Source| !is_told(source.entity) && !source.forbids.iter().any(|n| catalog.has(n));
        let mut told: Vec<String> = Vec::new();
        for source in sources.filter(is_lost) {
            let lacks = |table: &&str| !table.contains('{') && catalog.table(table).is_none();
            let table = source.from.aliases().map(|(_, table)| table).find(lacks);
            let words = table.map(|table| format!("{}.table: table `{table}` does not exist", source.entity));
            if let Some(words) = words.filter(|words| !told.contains(words)) {
                told.push(words);
            }
        }
        told
    }

    /// Lists what this database can and cannot show, with the reasons.
    pub fn capabilities(self) -> Vec<Capability> {
        let mut capabilities = Vec::new();
        for entity in Entity::ALL {
            let available = self.store.recognised().sources.iter().any(|s| s.entity == *entity);
            let (reason, remedy) = if available {
                self.partly(*entity)
            } else {
                let (reason, remedy) = self.store.why_missing(*entity);
                (Some(reason), remedy)
            };
            capabilities.push(Capability { name: entity.name().to_owned(), available, reason, remedy });
        }
        let mut tables: Vec<Capability> = self.store.records().own_denied();
        let used = |t: &&CatalogTable| self.store.recognised().uses(t) && !super::own::is_ours(t, self.store.engine());
        let denied = self.store.catalog().tables.iter().filter(used).filter_map(DeniedTable::of);
        tables.extend(denied.map(|denied| denied.capability(&self.store.catalog().role)));
        capabilities.extend(tables);
        let uncovered = self.store.uncovered().iter().map(|store| Capability {
            name: "every_store".to_owned(),
            available: false,
            reason: Some(store.reason.clone()),
            remedy: Some(store.remedy.clone()),
        });
        capabilities.extend(uncovered);
        capabilities.extend(self.store.catalog().hidden_rows().map(|reason| Capability {
            name: "every_row".to_owned(),
            available: false,
            reason: Some(reason),
            remedy: Some(
                "open the database with a role that the policies show all rows to, or one with BYPASSRLS".to_owned(),
            ),
        }));
        capabilities.extend(self.store.refusals.capabilities());
        capabilities
    }

    /// Explains which part of an available entity is left out, and the remedy.
    fn partly(self, entity: Entity) -> (Option<String>, Option<String>) {
        let withheld: Vec<_> = self.store.recognised().withheld.iter().filter(|w| w.entity == entity).collect();
        if withheld.is_empty() {
            return (None, None);
        }
        let words = withheld.iter().map(|w| match &w.column {
            Some(column) => format!("{column} is null: {}", w.reason),
            None => format!("rows are left out: {}", w.reason),
        });
        let mut remedies: Vec<&str> = Vec::new();
        for w in &withheld {
            if !remedies.contains(&w.remedy.as_str()) {
                remedies.push(&w.remedy);
            }
        }
        (Some(words.collect::<Vec<_>>().join("; ")), Some(remedies.join("; ")))
    }

    /// Returns the reason why rows of an entity, or fields other than text, may exist unseen: our role may not read
    /// them, or row-level security may hide them. `None` if everything is visible, or if the layout has no such entity.
    pub fn unseen(self, entity: Entity) -> Option<String> {
        let is_text = |name: &str| {
            let is = |column: &Column| column.kind == ValueKind::Text && column.personal == Personal::Content;
            entity.column(name).is_some_and(is)
        };
        let mut withheld = self.store.recognised().withheld.iter().filter(|part| part.entity == entity);
        if let Some(part) = withheld.find(|part| !part.column.as_deref().is_some_and(is_text)) {
            return Some(format!("not all of {} is visible: {}", entity.title(), part.reason));
        }
        let mut sources = self.store.recognised().sources.iter().filter(|source| source.entity == entity);
        let hides = |source: &BoundSource| {
            let (schema, table) = &source.table;
            self.store.catalog().exactly(schema, table).is_some_and(|table| table.hides_rows)
        };
        sources.find(|source| hides(source)).and_then(|_| self.store.catalog().hidden_rows())
    }

    /// Lists the reasons why answers may be incomplete, to be shown next to them: rows that may be hidden, and data
    /// that our role may not read.
    pub fn gaps(self) -> Vec<String> {
        let mut tables: Vec<&str> = Vec::new();
        for withheld in &self.store.recognised().withheld {
            if !tables.contains(&withheld.table.as_str()) {
                tables.push(&withheld.table);
            }
        }
        let left_out = (!tables.is_empty()).then(|| {
            format!(
                "unreadable data is left out: {}; `status` says why, what is null because of it, and what would help",
                tables.join(", ")
            )
        });
        self.store.catalog().hidden_rows().into_iter().chain(left_out).collect()
    }
}
