//! Space for bytes outside of memory, provided by code that may use files.

use std::fmt::Debug;
use std::io;

/// Bytes by their place, written and read again.
pub trait ScratchSpace: Debug + Send + Sync {
    /// Writes bytes from a place on.
    ///
    /// # Errors
    /// There is no room.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Reads as many bytes as are wanted, from a place on.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()>;
}

/// Makes an empty space; asked only where something does not fit in memory.
pub type MakeSpace = fn() -> io::Result<Box<dyn ScratchSpace>>;

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct BytesInMemory(Mutex<Vec<u8>>);

    impl ScratchSpace for BytesInMemory {
        fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let (mut held, at) = (self.0.lock().unwrap(), at as usize);
            let end = held.len().max(at + bytes.len());
            held.resize(end, 0);
            held[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            let (held, at) = (self.0.lock().unwrap(), at as usize);
            let found = held.get(at..at + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            into.copy_from_slice(found);
            Ok(())
        }
    }

    /// A space in memory.
    #[allow(clippy::unnecessary_wraps, reason = "other spaces may have no room")]
    pub fn space() -> io::Result<Box<dyn ScratchSpace>> {
        Ok(Box::<BytesInMemory>::default())
    }

    /// No space.
    pub fn no_space() -> io::Result<Box<dyn ScratchSpace>> {
        Err(io::ErrorKind::StorageFull.into())
    }
}
