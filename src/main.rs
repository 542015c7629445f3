//! The entry point: passes the command line to the library, which maps errors to exit codes. A child process that reads
//! raw bytes for its parent does only that.

use std::process::ExitCode;

use mnemoscope::{cli, shell, store::raw_file};

/// Memory is taken and given back by the hundred thousand small pieces wherever rows are read: the system's allocator takes
/// twice as long for that.
/// It does not ask for pages of 2 MB: they take 10 to 35 MB more in all and give no speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    shell::end_on_panic();
    if raw_file::is_asked_for(std::env::args_os().skip(1)) {
        return raw_file::serve();
    }
    cli::main()
}
