//! A sorted file: records one behind the other, and in a second file where each begins.
//!
//! ```text
//! record   key length u32 | 1 if there is a value | value, N bytes | key
//! begins   u64 for each record
//! ```

use std::{
    cmp::Ordering,
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{self, AtomicU64},
};

use super::merge::Record;

const BUFFER_BYTES: usize = 64 << 10;
const RECORD_BYTES: usize = 256;
const BEGIN_BYTES: u64 = 8;

pub(super) struct Run<const N: usize> {
    records: File,
    begins: File,
    count: u64,
}

pub(super) struct RunWriter<const N: usize> {
    records: BufWriter<File>,
    begins: BufWriter<File>,
    count: u64,
    /// Where the next record begins.
    at: u64,
}

impl<const N: usize> RunWriter<N> {
    pub(super) fn create(beside: &Path) -> io::Result<Self> {
        let create = || Ok::<_, io::Error>(BufWriter::with_capacity(BUFFER_BYTES, create_unnamed(beside)?));
        Ok(RunWriter { records: create()?, begins: create()?, count: 0, at: 0 })
    }

    /// Keys come in order.
    pub(super) fn push(&mut self, key: &[u8], value: Option<[u8; N]>) -> io::Result<()> {
        let length = u32::try_from(key.len()).map_err(io::Error::other)?;
        self.begins.write_all(&self.at.to_le_bytes())?;
        self.records.write_all(&length.to_le_bytes())?;
        self.records.write_all(&[u8::from(value.is_some())])?;
        self.records.write_all(&value.unwrap_or([0; N]))?;
        self.records.write_all(key)?;
        self.at += head_bytes::<N>() as u64 + u64::from(length);
        self.count += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Run<N>> {
        let records = self.records.into_inner().map_err(io::IntoInnerError::into_error)?;
        let begins = self.begins.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Run { records, begins, count: self.count })
    }
}

impl<const N: usize> Run<N> {
    /// `Some(None)` for a key that was deleted here.
    pub(super) fn get(&self, key: &[u8]) -> io::Result<Option<Option<[u8; N]>>> {
        let at = self.position(key)?;
        if at == self.count {
            return Ok(None);
        }
        let (found, value) = self.record(at)?;
        Ok((found == key).then_some(value))
    }

    /// All records from the first on whose key is not before `from`.
    pub(super) fn walk(&self, from: &[u8]) -> io::Result<Walk<'_, N>> {
        let at = self.position(from)?;
        let begin = if at < self.count { self.begin(at)? } else { 0 };
        let rest = BufReader::with_capacity(BUFFER_BYTES, From { file: &self.records, at: begin });
        let mut walk = Walk { rest, left: self.count - at, head: None };
        walk.advance()?;
        Ok(walk)
    }

    /// How many keys are before this one.
    fn position(&self, key: &[u8]) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.record(middle)?.0[..].cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Ok(low)
    }

    fn begin(&self, i: u64) -> io::Result<u64> {
        let mut begin = [0; BEGIN_BYTES as usize];
        self.begins.read_exact_at(&mut begin, i * BEGIN_BYTES)?;
        Ok(u64::from_le_bytes(begin))
    }

    fn record(&self, i: u64) -> io::Result<Record<N>> {
        // One read does for most.
        read_record(&mut BufReader::with_capacity(RECORD_BYTES, From { file: &self.records, at: self.begin(i)? }))
    }
}

/// Records one after the other.
pub(super) struct Walk<'a, const N: usize> {
    rest: BufReader<From<'a>>,
    /// Records behind the head.
    left: u64,
    head: Option<Record<N>>,
}

impl<const N: usize> Walk<'_, N> {
    /// The next one.
    pub(super) fn head(&self) -> Option<&Record<N>> {
        self.head.as_ref()
    }

    /// Takes the next one.
    pub(super) fn advance(&mut self) -> io::Result<Option<Record<N>>> {
        let next = if self.left > 0 { Some(read_record(&mut self.rest)?) } else { None };
        self.left = self.left.saturating_sub(1);
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// A file from a place on, without a position that others would share.
struct From<'a> {
    file: &'a File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

const fn head_bytes<const N: usize>() -> usize {
    4 + 1 + N
}

fn read_record<const N: usize>(from: &mut impl Read) -> io::Result<Record<N>> {
    let (mut length, mut has_value, mut value) = ([0; 4], [0], [0; N]);
    from.read_exact(&mut length)?;
    from.read_exact(&mut has_value)?;
    from.read_exact(&mut value)?;
    let mut key = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut key)?;
    Ok((key, (has_value[0] == 1).then_some(value)))
}

/// A file that is gone when it is closed, also by a crash.
fn create_unnamed(beside: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, atomic::Ordering::Relaxed);
    let mut path = PathBuf::from(beside).into_os_string();
    path.push(format!(".scratch.{}.{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
