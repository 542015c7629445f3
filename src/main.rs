//! The program's entry: hands the command line to the library, which maps errors to exit codes.

use std::process::ExitCode;

/// Memory is taken and given back by the hundred thousand small pieces wherever rows are read: the system's allocator takes
/// twice as long for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    mnemoscope::cli::main()
}
