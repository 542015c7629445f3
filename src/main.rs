//! The program's entry: hands the command line to the library and turns errors into exit codes.
fn main() {}
