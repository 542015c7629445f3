//! Very many rows, ids, numbers and vectors, in as few bytes as will do.

pub(crate) mod column;
pub(crate) mod ids;
pub(crate) mod preselect;
pub(crate) mod rows;
pub(crate) mod vectors;
