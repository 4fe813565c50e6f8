//! The log's disk: files in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use wal::{Disk, DiskFile, OpenMode};

use super::{Power, SECTOR};
use crate::random::Random;

#[derive(Debug, Clone, Default)]
struct Contents {
    now: Vec<u8>,
    /// As of the last sync.
    durable: Vec<u8>,
    /// Where they may differ.
    dirty: Option<(usize, usize)>,
}

impl Contents {
    fn touch(&mut self, from: usize, to: usize) {
        let (a, b) = self.dirty.unwrap_or((from, to));
        self.dirty = Some((a.min(from), b.max(to)));
    }

    fn resize(&mut self, size: usize) {
        let old = self.now.len();
        self.now.resize(size, 0);
        // Cutting a file frees its blocks, in the journal: what was there does not come back under later writes.
        self.durable.truncate(size);
        self.touch(old.min(size), old.max(size));
    }

    fn sync(&mut self) {
        let Some((from, to)) = self.dirty.take() else { return };
        self.durable.resize(self.now.len(), 0);
        let to = to.min(self.now.len());
        if from < to {
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
        }
    }

    /// Sizes are journaled by the file system; a sector of a longer file that was not written is zero.
    fn crash(&mut self, keep: &mut dyn FnMut() -> bool) {
        let Some((from, to)) = self.dirty else { return };
        let to = to.min(self.now.len());
        for start in (from / SECTOR * SECTOR..to).step_by(SECTOR) {
            let end = (start + SECTOR).min(self.now.len());
            let old: Vec<u8> = (start..end).map(|at| self.durable.get(at).copied().unwrap_or(0)).collect();
            if old != self.now[start..end] && !keep() {
                self.now[start..end].copy_from_slice(&old);
            }
        }
        self.sync();
    }
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Arc<Mutex<Contents>>>,
    locks: BTreeSet<usize>,
}

/// Files in memory, of one member.
#[derive(Debug, Clone)]
pub struct LogDisk {
    inner: Arc<Mutex<Inner>>,
    power: Arc<Power>,
}

impl LogDisk {
    pub fn new(power: Arc<Power>) -> LogDisk {
        LogDisk { inner: Arc::default(), power }
    }

    /// The power was cut: of what was not synced some sectors are there. Nobody has a file open any more.
    pub fn crash(&self, random: &mut Random) {
        let odds = random.pick(&[0, 0, 50, 90, 100]).copied().unwrap_or(0);
        for contents in self.lock().files.values() {
            lock(contents).crash(&mut || random.percent(odds));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for LogDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let names = inner.files.keys().filter(|path| path.parent() == Some(dir)).filter_map(|path| path.file_name());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut inner = self.lock();
        let contents = match (inner.files.get(path), mode) {
            (Some(contents), _) => contents.clone(),
            (None, OpenMode::Create) => Arc::default(),
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        inner.files.insert(path.into(), contents.clone());
        let id = Arc::as_ptr(&contents) as usize;
        if mode != OpenMode::Read && !inner.locks.insert(id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if mode == OpenMode::Create {
            // Spare files are made by a thread of their own: nothing may depend on when that happens.
            *lock(&contents) = Contents::default();
        }
        Ok(Box::new(LogFile { disk: self.clone(), contents, locked: mode != OpenMode::Read }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.power.operate()?;
        let mut inner = self.lock();
        let moved: Vec<_> = inner.files.keys().filter(|path| path.starts_with(from)).cloned().collect();
        if moved.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for old in moved {
            let Some(contents) = inner.files.remove(&old) else { continue };
            let rest = old.strip_prefix(from).unwrap_or(&old);
            let new = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            inner.files.insert(new, contents);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.lock().files.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.power.operate()
    }
}

#[derive(Debug)]
struct LogFile {
    disk: LogDisk,
    contents: Arc<Mutex<Contents>>,
    locked: bool,
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if self.locked {
            self.disk.lock().locks.remove(&(Arc::as_ptr(&self.contents) as usize));
        }
    }
}

impl DiskFile for LogFile {
    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.contents).now.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let contents = lock(&self.contents);
        let from = contents.now.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(buf.len());
        buf[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let powered = self.disk.power.operate();
        // The write under which the power goes is torn, between two sectors.
        let torn = ((offset as usize + buf.len() / 2) / SECTOR * SECTOR).saturating_sub(offset as usize);
        let buf = if powered.is_ok() { buf } else { &buf[..torn.min(buf.len())] };
        let mut contents = lock(&self.contents);
        let (from, end) = (offset as usize, offset as usize + buf.len());
        if contents.now.len() < end {
            contents.resize(end);
        }
        contents.now[from..end].copy_from_slice(buf);
        contents.touch(from, end);
        powered
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.disk.power.operate()?;
        lock(&self.contents).resize(size as usize);
        Ok(())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut contents = lock(&self.contents);
        let size = (size as usize).max(contents.now.len());
        contents.resize(size);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.power.operate()?;
        self.disk.power.spend_sync();
        lock(&self.contents).sync();
        Ok(())
    }
}
