//! How memories are ranked, explained, judged and learned. Pure over [`crate::memory`].

pub mod features;
pub mod judge;
pub mod learn;
pub mod policy;
pub mod score;
pub mod understand;

pub use score::{Score, Term};
