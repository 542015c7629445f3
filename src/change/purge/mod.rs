//! Erases a person: who it is, what belongs to them, what names them elsewhere; a plan, deletion in batches, a physical
//! pass, verification and a receipt without contents.

mod disclose;
mod effects;
mod graph;
mod matcher;
mod plan;
mod recompute;
mod scan;
mod scrub;
pub mod subject;

pub use plan::{Options, PurgePlan, plan};
pub use scan::Mentions;
