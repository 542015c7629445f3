//! How memories are ranked, explained, judged and learned. Pure over [`crate::memory`].

pub mod context;
pub mod features;
pub mod keyword;
pub mod parents;
pub mod policy;
pub mod rank;
pub mod score;
pub mod sequence;

pub use score::{Score, Term};
