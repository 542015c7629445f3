//! Free space of a disk.

use std::path::Path;

/// Bytes that we may still write on the disk that holds a path; none when the system does not say.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(path).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}
