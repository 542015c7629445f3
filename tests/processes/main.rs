//! The program itself, next to other processes: in a terminal, killed, attacked, and with agents that write meanwhile.
#![allow(clippy::large_futures, reason = "a test holds few of them")]

mod beside;
mod book;
mod fire;
mod hostile;
mod interrupted;
mod peak;
mod plants;
mod pty;
mod resuming;
#[path = "../support/mod.rs"]
mod support;
mod tampering;
