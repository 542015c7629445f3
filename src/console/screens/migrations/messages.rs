//! How migrations stand, as it is read.

/// How a migration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationStanding {
    /// It was applied with other statements.
    Drifted,
    /// Still to be applied.
    Pending,
    /// Applied only when its name is said.
    Optional,
    /// Applied.
    Applied,
    /// Its things are there without it.
    Present,
}

impl MigrationStanding {
    /// The word for it.
    #[must_use]
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
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: MigrationStanding,
    /// What it makes possible.
    pub effect: String,
    /// What it locks, and for how long.
    pub lock_risk: String,
    /// What will be run.
    pub sql: String,
    /// Its steps, and whether each is done.
    pub steps: Vec<(String, bool)>,
    /// What else is to be known: where it goes on, or why it drifted.
    pub note: Option<String>,
    /// From what was applied to what this version has.
    pub diff: String,
    /// Word for `--optional`.
    pub option: Option<String>,
}

/// What is known of the migrations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MigrationList {
    /// The migrations.
    pub items: Vec<MigrationItem>,
    /// Layouts that fit, each with its variant.
    pub layouts: Vec<String>,
    /// Other systems' lists: table, and lines of its rows.
    pub foreign: Vec<(String, Vec<String>)>,
}
