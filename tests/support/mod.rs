//! What several test files need: databases to try things on.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod fixtures;
pub mod postgres;
pub mod world;

use std::future::Future;

/// Runs a future to its end, from a plain test as well as from one that is itself inside a runtime.
pub fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
