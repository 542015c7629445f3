//! Foundation of every layer: files that ship inside the program; files that users name, read within limits; private files, files without a name, and the
//! removal of unfinished ones; databases named without passwords; URLs of files; the words that name a server, and the command that prints its
//! password.

pub mod assets;
pub mod database_url;
pub mod input_file;
pub mod location;
pub mod open_files;
pub mod password_command;
pub mod private_file;
pub mod scratch_file;
pub mod server_words;
pub mod unfinished;
