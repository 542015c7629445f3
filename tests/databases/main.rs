//! The product on real databases, through its public doors, on both engines.
#![allow(clippy::large_futures, reason = "a test holds few of them")]

mod asking;
mod change;
mod cleaning;
mod commands;
mod connecting;
mod contract;
mod copying;
mod damage;
mod demo;
mod editing;
mod faults;
mod findings;
mod fleet;
mod formats;
mod growth;
mod import;
mod jobs;
mod keeping;
mod layouts;
mod learn;
mod look;
mod migrate;
mod moment;
mod naming;
mod native_schema;
mod numbered;
mod options;
mod owners;
mod poolers;
mod postgres_server;
mod proof;
mod prune;
mod purge;
mod recall;
mod record;
mod rights;
mod standby;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod views;
mod what_if;
mod whole_memories;
