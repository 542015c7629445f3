//! Memory of agents: the entities with their canonical columns, and the rules for them. Pure: no database, file, clock
//! or terminal.

mod agreeing;
pub mod assign;
pub mod chain;
pub mod compare;
pub mod digest;
pub mod entity;
pub mod feedback;
pub mod filter;
pub mod findings;
pub mod first_of;
pub mod growth;
pub mod id_list;
pub mod invocation;
pub mod json;
pub mod kept;
pub mod mask;
pub mod mention;
pub mod name_words;
pub mod nearest;
pub(crate) mod packed;
pub mod prune;
pub mod query;
pub mod retention;
pub mod reward;
pub mod row;
pub mod same_row;
pub mod schema;
pub mod score;
pub mod search;
pub mod session_links;
pub mod sieve;
pub mod story;
pub mod text_check;
pub mod time;
pub mod utility;
pub mod vector;
pub mod veil;
pub mod vocabulary;
pub mod word_index;
pub mod workflow;
pub mod workings;

pub use agreeing::{agreeing, counted, thousands};
pub use entity::{Column, Entity, Personal, ValueKind};
pub use row::{Problem, Row};
