//! mnemoscope: inspect and administer the memory databases of AI agents.
//!
//! The map of the house, from the inside out; a module may use only what stands left of it on its line:
//!
//! ```text
//! memory <- recall          memory <- layout <- store <- lab <- change <- job          ground: below all that does IO
//! console sees memory, recall, the plain data of change and job, and ui
//! cli and shell see everything below them; nothing sees cli or shell
//! ```
//!
//! - [`ground`]: files that people name, read within limits; private files; databases named without passwords
//! - [`memory`]: what agents remember: types and pure rules
//! - [`recall`]: how memories are ranked, explained, judged and learned
//! - [`layout`]: where a database keeps them: layouts as data
//! - [`store`]: the only SQL: connecting, building queries, reading rows
//! - [`lab`]: the recall lab: reads from the store what the rules of recall look at, for console and commands
//! - [`change`]: the only door to writing: plan, apply, receipt, audit trail; a file per operation
//! - [`job`]: long changes in batches: lease, checkpoint, pace; a file per backfill
//! - [`ui`]: how things look: safe text, glyphs, themes, tables, charts; no domain words
//! - [`demo`]: a made-up memory database that tells a story; sees what cli sees
#![forbid(unsafe_code)]
// If standard output or error is closed, these macros would panic.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod change;
pub mod cli;
pub mod config;
pub mod console;
pub mod demo;
pub mod ground;
pub mod job;
pub mod lab;
pub mod layout;
pub mod memory;
pub mod recall;
pub mod shell;
pub mod store;
pub mod ui;
