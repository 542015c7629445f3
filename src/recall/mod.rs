//! Ranks, explains, judges, and learns recall. Pure over [`crate::memory`].

pub mod among;
pub mod answer;
pub mod context;
pub mod features;
pub mod inquiry;
pub mod judge;
pub mod keyword;
pub mod learn;
pub mod lever;
pub mod parents;
pub mod policy;
pub mod preselect;
pub mod rank;
pub mod score;
pub mod sequence;
pub mod shortlist;
pub mod understand;
pub mod what_if;
pub mod why;

pub use score::{Score, Term};
