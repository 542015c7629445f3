//! The store's rooms by their doors: each handle borrows the store and has the methods of one room.

use super::Store;

/// Reader for a proof of erasure: raw values, search structures, and bytes.
#[derive(Clone, Copy)]
pub struct ProofReader<'a> {
    pub(super) store: &'a Store,
}

/// The vectors of a database: where they stand, which are missing, which are nearest.
#[derive(Clone, Copy)]
pub struct VectorReader<'a> {
    pub(super) store: &'a Store,
}

/// Walks over all rows of a table or a source, in bounded memory.
#[derive(Clone, Copy)]
pub struct RowWalks<'a> {
    pub(super) store: &'a Store,
}

/// A row with what hangs on it: chains, canvas events, feedback, memories, accesses.
#[derive(Clone, Copy)]
pub struct ContextReader<'a> {
    pub(super) store: &'a Store,
}

/// Our own tables: the trail, holds, erasures, and jobs.
#[derive(Clone, Copy)]
pub struct RecordReader<'a> {
    pub(super) store: &'a Store,
}

/// Reader for what `status` reports about a database.
#[derive(Clone, Copy)]
pub struct DatabaseReport<'a> {
    pub(super) store: &'a Store,
}

/// The structure of a database: its migrations, and layouts tried on it.
#[derive(Clone, Copy)]
pub struct SchemaDoor<'a> {
    pub(super) store: &'a Store,
}

/// Tables as they stand, with or without a layout.
#[derive(Clone, Copy)]
pub struct RawTables<'a> {
    pub(super) store: &'a Store,
}

/// Reader for the shape of tables: their columns, keys, references, and what a row holds beside its canonical values.
#[derive(Clone, Copy)]
pub struct ShapeReader<'a> {
    pub(super) store: &'a Store,
}

/// The database as a plan would leave it.
#[derive(Clone, Copy)]
pub struct ForesightReader<'a> {
    pub(super) store: &'a Store,
}

/// Canonical values made into stored ones.
#[derive(Clone, Copy)]
pub struct RowEncoder<'a> {
    pub(super) store: &'a Store,
}

impl Store {
    /// Returns the reader for a proof of erasure: raw values, search structures, and bytes.
    #[must_use]
    pub fn proof(&self) -> ProofReader<'_> {
        ProofReader { store: self }
    }

    /// The vectors of a database: where they stand, which are missing, which are nearest.
    #[must_use]
    pub fn embeddings(&self) -> VectorReader<'_> {
        VectorReader { store: self }
    }

    /// Walks over all rows of a table or a source, in bounded memory.
    #[must_use]
    pub fn walks(&self) -> RowWalks<'_> {
        RowWalks { store: self }
    }

    /// A row with what hangs on it: chains, canvas events, feedback, memories, accesses.
    #[must_use]
    pub fn contexts(&self) -> ContextReader<'_> {
        ContextReader { store: self }
    }

    /// Our own tables: the trail, holds, erasures, and jobs.
    #[must_use]
    pub fn records(&self) -> RecordReader<'_> {
        RecordReader { store: self }
    }

    /// Returns the reader for what `status` reports about the database.
    #[must_use]
    pub fn report(&self) -> DatabaseReport<'_> {
        DatabaseReport { store: self }
    }

    /// The structure of a database: its migrations, and layouts tried on it.
    #[must_use]
    pub fn schema(&self) -> SchemaDoor<'_> {
        SchemaDoor { store: self }
    }

    /// Tables as they stand, with or without a layout.
    #[must_use]
    pub fn raw(&self) -> RawTables<'_> {
        RawTables { store: self }
    }

    /// Returns the reader for the shape of tables: their columns, keys, references, and what a row holds beside its
    /// canonical values.
    #[must_use]
    pub fn shapes(&self) -> ShapeReader<'_> {
        ShapeReader { store: self }
    }

    /// The database as a plan would leave it.
    #[must_use]
    pub fn ahead(&self) -> ForesightReader<'_> {
        ForesightReader { store: self }
    }

    /// Canonical values made into stored ones.
    #[must_use]
    pub fn encoder(&self) -> RowEncoder<'_> {
        RowEncoder { store: self }
    }
}
