//! The only place where SQL is spoken to a database.

pub mod bulk;
