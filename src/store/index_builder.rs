//! Builds an index without blocking writers. The index of a partitioned table cannot be built this way: it is created
//! empty, one is built on each partition that has rows, at any depth, and attached.

use sha2::{Digest as _, Sha256};

use super::ability::{RefusedAbilities, ServerAbility};
use super::dialect::quote;
use super::fetched::{FetchedValue, number, text};
use super::migrating::LOCK_WAIT;
use super::migration::MigrationStep;
use super::server::ServerLink;
use super::shape::qualified;
use super::stored::TableName;
use super::structure::Structure;
use super::structure::StructurePart;

/// Longest name in PostgreSQL, in bytes.
const NAME: usize = 63;

/// The tables directly below a partitioned table: their names, and whether they are partitioned too. Foreign tables are
/// left out, since they have no indexes.
const BELOW: &str = "SELECT n.nspname::text, c.relname::text, c.relkind = 'p' FROM pg_inherits i \
     JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE i.inhparent = to_regclass($1) AND c.relkind IN ('r', 'p') ORDER BY 1, 2";

/// Whether an index is valid, and whether it is attached to another; no row if it does not exist.
const INDEX: &str = "SELECT i.indisvalid, EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.indexrelid) \
     FROM pg_index i WHERE i.indexrelid = to_regclass($1)";

/// Builds indexes on a connection of its own, outside of any transaction.
pub struct IndexBuilder<'a> {
    /// The connection.
    pub link: &'a mut ServerLink,
    /// Abilities that the server lacks.
    pub refusals: &'a RefusedAbilities,
}

/// The part of a CREATE INDEX statement that does not depend on its name and table.
struct Recipe<'a> {
    unique: bool,
    /// Rest of the statement after the table's name.
    rest: &'a str,
}

impl<'a> Recipe<'a> {
    /// Parses a statement; `None` if it is not `CREATE INDEX … ON table …`.
    fn of(sql: &'a str) -> Option<Self> {
        let sql = sql.lines().find(|line| line.starts_with("CREATE "))?.trim_end_matches(';');
        let (head, tail) = sql.split_once(" ON ")?;
        let (_, rest) = tail.split_once(' ')?;
        Some(Recipe { unique: head.contains(" UNIQUE "), rest })
    }

    fn statement(&self, words: &str, name: &str, on: &str) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {words}IF NOT EXISTS {} ON {on} {}", quote(name), self.rest)
    }
}

impl IndexBuilder<'_> {
    /// Builds the index of a step. Returns whether it exists: others may hold a lock for too long, and then the next
    /// attempt continues.
    ///
    /// # Errors
    /// The engine's refusal. Indexes built before it stay, and are not built again.
    pub async fn build(&mut self, step: &MigrationStep, structure: &Structure) -> Result<bool, sqlx::Error> {
        if let [StructurePart::Index(index, table)] = &step.makes[..]
            && structure.is_partitioned(table)
            && let (Some(recipe), Some(table)) = (Recipe::of(&step.sql), structure.place_of(table))
        {
            return self.build_below(&recipe, index, &table).await;
        }
        self.concurrently(&step.sql).await
    }

    async fn build_below(&mut self, recipe: &Recipe<'_>, index: &str, table: &TableName) -> Result<bool, sqlx::Error> {
        self.within(&recipe.statement("", index, &format!("ONLY {}", qualified(table)))).await?;
        for row in self.link.read(BELOW, &[FetchedValue::Text(qualified(table))]).await? {
            let part = TableName::new(text(&row, 0), text(&row, 1));
            let name = name_of_part(index, &part);
            let full = TableName::new(part.schema.clone(), name.clone());
            let found = self.link.read(INDEX, &[FetchedValue::Text(qualified(&full))]).await?;
            let (sound, attached) =
                found.first().map_or((false, false), |row| (number(row, 0) == 1, number(row, 1) == 1));
            if sound && attached {
                continue;
            }
            let built = if number(&row, 2) == 1 {
                Box::pin(self.build_below(recipe, &name, &part)).await?
            } else {
                self.build_part(recipe, &full, &part, !found.is_empty() && !sound).await?
            };
            if !built {
                return Ok(false);
            }
            if !attached {
                let whole = TableName::new(table.schema.clone(), index);
                self.within(&format!("ALTER INDEX {} ATTACH PARTITION {}", qualified(&whole), qualified(&full)))
                    .await?;
            }
        }
        Ok(true)
    }

    /// Builds the index of a partition with rows; an unfinished one is removed first.
    async fn build_part(
        &mut self,
        recipe: &Recipe<'_>,
        index: &TableName,
        part: &TableName,
        broken: bool,
    ) -> Result<bool, sqlx::Error> {
        let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {}", qualified(index));
        if broken && !self.link.alone(&drop, LOCK_WAIT).await? {
            return Ok(false);
        }
        self.concurrently(&recipe.statement("CONCURRENTLY ", &index.name, &qualified(part))).await
    }

    /// Builds without blocking writers or, if the server cannot do that, while they wait.
    async fn concurrently(&mut self, sql: &str) -> Result<bool, sqlx::Error> {
        const UNKNOWN: [&str; 2] = ["0A000", "42601"];
        if self.refusals.has(ServerAbility::ConcurrentIndexes) {
            return self.within(&sql.replace(" CONCURRENTLY", "")).await.map(|()| true);
        }
        match self.link.alone(sql, LOCK_WAIT).await {
            Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| UNKNOWN.contains(&code.as_ref())) => {
                self.within(&sql.replace(" CONCURRENTLY", "")).await?;
                self.refusals.keep(ServerAbility::ConcurrentIndexes, error.message().to_owned());
                Ok(true)
            }
            outcome => outcome,
        }
    }

    /// Runs a statement in a transaction, with a short lock timeout.
    async fn within(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        self.link.begin_writing(LOCK_WAIT).await?;
        match self.link.script(&format!("SET LOCAL statement_timeout = 0; {sql}")).await {
            Ok(()) => self.link.commit().await,
            Err(error) => {
                // If even this fails, the next statement reports it.
                let _ = self.link.rollback().await;
                Err(error)
            }
        }
    }
}

/// The name of a partition's own index: the same at every attempt, and different for each partition.
fn name_of_part(index: &str, part: &TableName) -> String {
    let digest = hex::encode(&Sha256::digest(part.title().as_bytes())[..4]);
    let most = NAME - digest.len() - 1;
    let short: String = index.char_indices().take_while(|(at, c)| at + c.len_utf8() <= most).map(|(_, c)| c).collect();
    format!("{short}_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_part_is_made_as_that_of_the_whole() {
        let sql = "-- why\nCREATE INDEX CONCURRENTLY IF NOT EXISTS ix ON heart.t USING gin (tags) WHERE a > 1;";
        let recipe = Recipe::of(sql).expect("an index");
        assert_eq!(
            recipe.statement("CONCURRENTLY ", "x", "p"),
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS \"x\" ON p USING gin (tags) WHERE a > 1"
        );
    }

    #[test]
    fn names_of_parts_fit_and_differ() {
        let long = "i".repeat(63);
        let names = ["a", "b"].map(|part| name_of_part(&long, &TableName::new("s", part)));
        assert!(names.iter().all(|n| n.len() <= NAME) && names[0] != names[1], "{names:?}");
    }
}
