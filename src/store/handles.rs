//! The handles of the store: each borrows the store and has the methods of one area.

use super::Store;

/// Defines the handles, and the method of the store that returns each.
macro_rules! doors {
    ($($(#[$doc:meta])+ $name:ident: $Door:ident;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, Copy)]
            pub struct $Door<'a> {
                pub(super) store: &'a Store,
            }
        )+

        impl Store {
            $(
                $(#[$doc])+
                pub fn $name(&self) -> $Door<'_> {
                    $Door { store: self }
                }
            )+
        }
    };
}

doors! {
    /// Reader for a proof of erasure: raw values, search structures, and bytes.
    proof: ProofReader;
    /// Vectors of a database: where they are stored, which are missing, which are nearest.
    embeddings: VectorReader;
    /// Walks over all rows of a table or a source, in bounded memory.
    walks: RowWalks;
    /// A row with what depends on it: chains, canvas events, feedback, memories, accesses.
    contexts: ContextReader;
    /// Our own tables: the trail, holds, erasures, and jobs.
    records: RecordReader;
    /// Reader for what `status` reports about a database.
    report: DatabaseReport;
    /// The structure of a database: its migrations, and layouts tried on it.
    schema: SchemaDoor;
    /// Raw tables, with or without a layout.
    raw: RawTables;
    /// Reader for the shape of tables: columns, keys, references, and stored values without a canonical column.
    shapes: ShapeReader;
    /// The database as a plan would leave it.
    ahead: ForesightReader;
    /// Converts canonical values to stored ones.
    encoder: RowEncoder;
}
