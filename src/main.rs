//! The program's entry: hands the command line to the library, which maps errors to exit codes.

use std::process::ExitCode;

fn main() -> ExitCode {
    mnemoscope::cli::main()
}
