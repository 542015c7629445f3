//! Judges recall: the quality of rankings on judged queries, and the effect of recall on a memory as a whole.

pub mod file;
pub mod latency;
pub mod ranked;
pub mod report;
pub mod spread;
