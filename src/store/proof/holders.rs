//! Processes that prevent an SQLite database from releasing old pages, as far as known: Linux lists file locks.

use std::collections::BTreeSet;
use std::path::Path;

/// Reader lock bytes in a `-shm` file, in SQLite's format.
const SHM_READERS: std::ops::RangeInclusive<u64> = 123..=127;
/// First lock byte of a database file.
const PENDING: u64 = 0x4000_0000;

/// Times that the list is read before it counts as empty.
const READS: usize = 3;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Name of the process; empty if the system does not report it.
    pub name: String,
}

/// Other processes that read or write the database now. Empty if there are none, or the system does not say.
pub fn of(main: &Path) -> Vec<Holder> {
    // The system returns the list page by page: a line may be missed while others lock and unlock.
    (0..READS).map(|_| listed(main)).find(|holders| !holders.is_empty()).unwrap_or_default()
}

fn listed(main: &Path) -> Vec<Holder> {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
    let shm = super::bytes::sqlite_files(main).into_iter().nth(2);
    let shm = shm.and_then(|path| inode(&path));
    let file = inode(main);
    let mut pids = BTreeSet::new();
    for lock in locks.lines().filter_map(parse) {
        let reads = Some(lock.inode) == shm && SHM_READERS.contains(&lock.start);
        let locks = Some(lock.inode) == file && lock.start >= PENDING;
        if reads || locks {
            pids.insert(lock.pid);
        }
    }
    pids.remove(&std::process::id());
    pids.into_iter().map(|pid| Holder { pid, name: name(pid) }).collect()
}

/// The holders as text, for the reason of a failure.
pub fn told(main: &Path) -> String {
    let named: Vec<String> =
        of(main)
            .iter()
            .map(|h| {
                if h.name.is_empty() { format!("process {}", h.pid) } else { format!("process {} ({})", h.pid, h.name) }
            })
            .collect();
    match named.len() {
        0 => "another connection, which the system does not identify".to_owned(),
        _ => named.join(", "),
    }
}

struct Lock {
    pid: u32,
    inode: u64,
    start: u64,
}

/// Parses a line such as `1: POSIX  ADVISORY  READ 4711 fe:01:123456 123 123`.
fn parse(line: &str) -> Option<Lock> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, _, pid, file, start, _] = words[..] else { return None };
    Some(Lock { pid: pid.parse().ok()?, inode: file.rsplit(':').next()?.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|about| about.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

fn name(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_lock_list_is_read() {
        let lock = parse("1: POSIX  ADVISORY  READ 4711 fe:01:123456 123 124").unwrap();
        assert_eq!((lock.pid, lock.inode, lock.start), (4711, 123_456, 123));
        assert!(parse("2: -> POSIX ADVISORY WRITE 4711 fe:01:123456 0 EOF").is_none());
        assert!(parse("").is_none());
    }
}
