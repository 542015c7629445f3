//! How memories are ranked, explained, judged and learned. Pure over [`crate::memory`].

pub mod features;
pub mod score;

pub use score::{Score, Term};
