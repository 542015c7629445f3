//! Jobs through the public door, on both engines: what a backfill changes and what it leaves, that it can be stopped,
//! resumed, fenced off and undone, and that killing it at any point changes nothing of the result.
#![allow(clippy::large_futures, reason = "a test holds few of them")]

mod support;

#[path = "jobs/as_written.rs"]
mod as_written;
#[path = "jobs/embeddings.rs"]
mod embeddings;
#[path = "jobs/erased.rs"]
mod erased;
#[path = "jobs/killed.rs"]
mod killed;
#[path = "jobs/links.rs"]
mod links;
#[path = "jobs/others.rs"]
mod others;
#[path = "jobs/parents.rs"]
mod parents;
#[path = "jobs/running.rs"]
mod running;
#[path = "jobs/world.rs"]
mod world;
