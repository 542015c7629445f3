//! What every layer stands on: files that people name, read within limits; private files, and what becomes of half of one;
//! databases named without passwords; the words that name a server.

pub mod input_file;
pub mod location;
mod open_files;
pub mod private_file;
pub mod server_words;
pub mod unfinished;
