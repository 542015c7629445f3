//! Erases a person: who it is, what belongs to them, what names them elsewhere; a plan, deletion in batches, a physical
//! pass, verification and a receipt without contents.

mod batches;
mod desk;
mod disclose;
mod effects;
mod export;
pub mod fleet;
mod graph;
pub(in crate::change) mod hanging;
mod keys;
mod matcher;
pub mod mention;
mod place;
mod plan;
mod preview;
mod prove;
mod rarity;
pub mod receipt;
mod recheck;
mod recompute;
mod remains;
mod run;
mod scan;
pub(in crate::change) mod scrub;
mod shown;
pub mod subject;
mod traces;
mod vec0;
mod vectors;
pub mod verdict;

pub use desk::{Desk, KeptSession, Progress};
pub(in crate::change) use effects::NewValue;
pub use export::{Sink, bundle};
pub use mention::{Mentions, NewDecisions};
pub use plan::{PurgeOptions, PurgePlan, plan, plan_any};
pub use preview::{begun, outcome, preview};
pub use receipt::{PurgeReceipt, PurgeRecheck};
pub use recheck::recheck;
pub use run::{KeptPlan, check_hold, ready, run, run_kept};
