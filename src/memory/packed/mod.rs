//! Compact storage for very many rows, ids, numbers and vectors.

pub(crate) mod column;
pub(crate) mod digest_set;
pub(crate) mod id_table;
pub(crate) mod ids;
pub(crate) mod pages;
pub(crate) mod preselect;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod space;
pub(crate) mod vectors;
