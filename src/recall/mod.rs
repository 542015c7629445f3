//! How memories are ranked, explained, judged and learned. Pure over [`crate::memory`].

pub mod features;
pub mod learn;
pub mod policy;
pub mod understand;
