//! Judging recall: how good rankings are on judged queries, and what recall does to a memory as a whole.

pub mod file;
pub mod latency;
pub mod ranked;
pub mod report;
pub mod spread;
