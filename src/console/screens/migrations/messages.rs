//! State of the migrations.

use crate::change::plan::migration::PendingMigration;

/// State of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationStanding {
    /// Applied, but with other statements.
    Drifted,
    /// Still to be applied.
    Pending,
    /// Applied only if named.
    Optional,
    /// Applied.
    Applied,
    /// Not applied, but the objects it would create already exist.
    Present,
}

impl MigrationStanding {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            MigrationStanding::Drifted => "drifted",
            MigrationStanding::Pending => "pending",
            MigrationStanding::Optional => "optional",
            MigrationStanding::Applied => "applied",
            MigrationStanding::Present => "present",
        }
    }
}

/// A migration in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationItem {
    /// The migration, as far as it is known.
    pub migration: PendingMigration,
    /// State of the migration.
    pub standing: MigrationStanding,
    /// Further note: when it was applied, where it resumes, or why it drifted.
    pub note: Option<String>,
    /// Difference between the applied statements and those of this version.
    pub diff: String,
    /// Word for `--optional`.
    pub option: Option<String>,
}

/// Known facts about the migrations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MigrationList {
    /// The migrations.
    pub items: Vec<MigrationItem>,
    /// Layouts that fit, each with its variant.
    pub layouts: Vec<String>,
    /// Other systems' lists: table, and lines of its rows.
    pub foreign: Vec<(String, Vec<String>)>,
}
