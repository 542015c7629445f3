//! Encrypted files of any length, written and read in chunks: a changed, moved or missing chunk is an error. Also
//! scratch files whose key is lost when the process ends.

use std::io::{self, Read, Write};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::change::suppress::{Key, hmac};
use crate::memory::packed::space::ScratchSpace;
use crate::store::scratch::scratch;

/// Bytes per chunk before encryption.
const CHUNK: usize = 256 << 10;

/// First bytes of a file.
const BEGIN: &[u8; 8] = b"MNSEAL2\n";

/// The cipher for the files, with a key derived for it.
fn cipher(key: &Key) -> io::Result<LessSafeKey> {
    let own = hex::decode(hmac(key, "what is kept of sessions")).map_err(io::Error::other)?;
    let unbound =
        UnboundKey::new(&CHACHA20_POLY1305, &own).map_err(|_| io::Error::other("the key has no length of one"))?;
    Ok(LessSafeKey::new(unbound))
}

/// Additional data that binds a chunk to its number, and marks the last one.
fn place(number: u64, is_last: bool) -> Aad<[u8; 9]> {
    let mut place = [0; 9];
    place[..8].copy_from_slice(&number.to_le_bytes());
    place[8] = u8::from(is_last);
    Aad::from(place)
}

/// Encrypts the data written to it. [`SealedWriter::finish`] writes the end, without which the file cannot be read.
pub(super) struct SealedWriter<W> {
    out: W,
    cipher: LessSafeKey,
    chunk: Vec<u8>,
    number: u64,
}

impl<W: Write> SealedWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(mut out: W, key: &Key) -> io::Result<Self> {
        out.write_all(BEGIN)?;
        Ok(SealedWriter { out, cipher: cipher(key)?, chunk: Vec::with_capacity(CHUNK), number: 0 })
    }

    fn put(&mut self, is_last: bool) -> io::Result<()> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let place = place(self.number, is_last);
        let sealed = self.cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), place, &mut self.chunk);
        sealed.map_err(|_| io::Error::other("it could not be encrypted"))?;
        self.out.write_all(&(self.chunk.len() as u32).to_le_bytes())?;
        self.out.write_all(&nonce)?;
        self.out.write_all(&self.chunk)?;
        self.chunk.clear();
        self.number += 1;
        Ok(())
    }

    /// Writes the last chunk, and returns the underlying writer.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.put(true)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for SealedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..count]);
        if self.chunk.len() == CHUNK {
            self.put(false)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn not_ours() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it was changed, or was not written by this program")
}

/// Reads a file written by a [`SealedWriter`].
pub(super) struct SealedReader<R> {
    file: R,
    cipher: LessSafeKey,
    chunk: Vec<u8>,
    at: usize,
    number: u64,
    is_over: bool,
    /// A chunk could not be read; reading stops.
    is_broken: bool,
}

impl<R: Read> SealedReader<R> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// The file cannot be read, or was not sealed with this key.
    pub fn begin(mut file: R, key: &Key) -> io::Result<Self> {
        let mut begin = Vec::new();
        file.by_ref().take(BEGIN.len() as u64).read_to_end(&mut begin)?;
        if begin != BEGIN {
            return Err(not_ours());
        }
        let cipher = cipher(key)?;
        Ok(SealedReader { file, cipher, chunk: Vec::new(), at: 0, number: 0, is_over: false, is_broken: false })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let (mut length, mut nonce) = ([0; 4], [0; NONCE_LEN]);
        self.file.read_exact(&mut length)?;
        self.file.read_exact(&mut nonce)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > CHUNK + CHACHA20_POLY1305.tag_len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.chunk.resize(length, 0);
        self.file.read_exact(&mut self.chunk)?;
        // The last chunk is never full.
        self.is_over = length < CHUNK + CHACHA20_POLY1305.tag_len();
        let (nonce, place) = (Nonce::assume_unique_for_key(nonce), place(self.number, self.is_over));
        let length = self.cipher.open_in_place(nonce, place, &mut self.chunk).map_err(|_| not_ours())?.len();
        self.chunk.truncate(length);
        self.at = 0;
        self.number += 1;
        if self.is_over && self.file.read(&mut [0])? > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is data after its end"));
        }
        Ok(())
    }
}

impl<R: Read> Read for SealedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            if self.is_over {
                return Ok(0);
            }
            let next = if self.is_broken { Err(io::ErrorKind::InvalidData.into()) } else { self.next_chunk() };
            if let Err(error) = next {
                (self.is_broken, self.is_over, self.at) = (true, false, 0);
                self.chunk.clear();
                return Err(error);
            }
        }
        let count = into.len().min(self.chunk.len() - self.at);
        into[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Bytes of a scratch file encrypted together.
const PAGE: usize = 4 << 10;

/// Scratch file for data that names the person. Each byte is written only once.
#[derive(Debug)]
struct SealedSpace {
    file: Box<dyn ScratchSpace>,
    cipher: LessSafeKey,
}

impl SealedSpace {
    /// Encrypts or decrypts bytes at a place, by the key stream of their page.
    fn turn(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let (mut page, mut from) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (some, left) = rest.split_at_mut(rest.len().min(PAGE - from));
            let mut met = [0; PAGE];
            met[from..from + some.len()].copy_from_slice(some);
            let mut nonce = [0; NONCE_LEN];
            nonce[..8].copy_from_slice(&page.to_le_bytes());
            let nonce = Nonce::assume_unique_for_key(nonce);
            let sealed = self.cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut met[..from + some.len()]);
            sealed.map(drop).map_err(|_| io::Error::other("it could not be encrypted"))?;
            some.copy_from_slice(&met[from..from + some.len()]);
            (page, from, rest) = (page + 1, 0, left);
        }
        Ok(())
    }
}

impl ScratchSpace for SealedSpace {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut hidden = bytes.to_vec();
        self.turn(&mut hidden, at)?;
        self.file.write(&hidden, at)
    }

    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read(into, at)?;
        self.turn(into, at)
    }
}

/// Creates a scratch file that is unreadable once the process has ended, whatever is left of it on disk.
///
/// # Errors
/// The temporary folder cannot be written.
pub(super) fn sealed_scratch() -> io::Result<Box<dyn ScratchSpace>> {
    Ok(Box::new(SealedSpace { file: scratch()?, cipher: cipher(&rand::random())? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::space::tests::space as memory_space;

    fn key() -> Key {
        [7; 32]
    }

    fn sealed(bytes: &[u8]) -> Vec<u8> {
        let mut writer = SealedWriter::begin(Vec::new(), &key()).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn opened(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        SealedReader::begin(bytes, &key())?.read_to_end(&mut read).map(|_| read)
    }

    #[test]
    fn files_of_any_length_come_back_and_none_in_part() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let file = sealed(&bytes);
            assert_eq!(opened(&file).unwrap(), bytes, "{length}");
            for cut in [file.len() - 1, BEGIN.len(), BEGIN.len() + (file.len() - BEGIN.len()) / 2] {
                assert!(opened(&file[..cut]).is_err(), "{length} cut at {cut}");
            }
            let mut reader = SealedReader::begin(&file[..file.len() - 1], &key()).unwrap();
            let mut some = Vec::new();
            assert!(reader.read_to_end(&mut some).is_err() && reader.read_to_end(&mut some).is_err());
            assert!(some.len() <= length / CHUNK * CHUNK, "nothing of a chunk that is not whole");
            assert!(opened(&[&file[..], b"more"].concat()).is_err());
            let mut changed = file.clone();
            *changed.last_mut().unwrap() ^= 1;
            assert!(opened(&changed).is_err());
        }
        let file = sealed(&vec![1; 2 * CHUNK]);
        let chunk = 4 + NONCE_LEN + CHUNK + CHACHA20_POLY1305.tag_len();
        let (begin, rest) = file.split_at(BEGIN.len());
        let swapped = [begin, &rest[chunk..2 * chunk], &rest[..chunk], &rest[2 * chunk..]].concat();
        assert!(opened(&swapped).is_err() && opened(b"short").is_err());
    }

    #[test]
    fn a_scratch_file_holds_nothing_that_can_be_read() {
        let space = SealedSpace { file: memory_space().unwrap(), cipher: cipher(&key()).unwrap() };
        let bytes: Vec<u8> = "user-ana ".bytes().cycle().take(3 * PAGE).collect();
        let mut at = 0;
        for part in [&bytes[..5], &bytes[5..PAGE], &bytes[PAGE..PAGE + 7], &bytes[PAGE + 7..]] {
            space.write(part, at).unwrap();
            at += part.len() as u64;
        }
        for range in [0..bytes.len(), 0..4, PAGE - 3..PAGE + 9, 2 * PAGE..3 * PAGE] {
            let mut read = vec![0; range.len()];
            space.read(&mut read, range.start as u64).unwrap();
            assert_eq!(read, bytes[range]);
        }
        let mut stored = vec![0; bytes.len()];
        space.file.read(&mut stored, 0).unwrap();
        assert!(!stored.windows(8).any(|some| some == b"user-ana"));
    }
}
