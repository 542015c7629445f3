//! `demo`: makes the demo database.

use std::path::{Path, PathBuf};

use super::Failure;
use super::args::Global;

/// Makes the demo database and gives its path.
pub async fn make(_path: Option<&Path>, _episodes: u64, _seed: u64, _global: &Global) -> Result<PathBuf, Failure> {
    Err(Failure::failed("the demo is not part of this build yet"))
}
