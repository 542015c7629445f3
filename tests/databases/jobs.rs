//! Jobs through the public door, on both engines: what a backfill changes and what it leaves, that it can be stopped,
//! resumed, fenced off and undone, and that killing it at any point changes nothing of the result.

mod as_written;
mod embeddings;
mod erased;
mod killed;
mod links;
mod others;
mod parents;
mod running;
mod world;
