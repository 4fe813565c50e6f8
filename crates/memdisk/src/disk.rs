//! Files in memory, by path.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use wal::{Disk, DiskFile, OpenMode};

use crate::{Cut, Power, contents::Contents};

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Arc<Mutex<Contents>>>,
    locks: BTreeSet<usize>,
}

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemDisk {
    inner: Arc<Mutex<Inner>>,
    power: Arc<Power>,
    cut: Cut,
}

impl MemDisk {
    pub fn new(power: Arc<Power>, cut: Cut) -> MemDisk {
        MemDisk { inner: Arc::default(), power, cut }
    }

    pub fn power(&self) -> &Power {
        &self.power
    }

    /// The power was cut: of each sector that was not synced, `keep` says whether it is there. Nobody has a file open any
    /// more.
    pub fn crash(&self, mut keep: impl FnMut() -> bool) {
        for contents in self.lock().files.values() {
            lock(contents).crash(&mut keep);
        }
    }

    /// Another disk with the same files, on power of its own.
    pub fn fork(&self) -> MemDisk {
        let copy = |(path, contents): (&PathBuf, &Arc<Mutex<Contents>>)| {
            (path.clone(), Arc::new(Mutex::new(lock(contents).clone())))
        };
        let files = self.lock().files.iter().map(copy).collect();
        MemDisk {
            inner: Arc::new(Mutex::new(Inner { files, ..Inner::default() })),
            power: Arc::default(),
            cut: self.cut,
        }
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.lock().files.keys().cloned().collect()
    }

    /// `None` if there is no such file.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.lock().files.get(path).map(|contents| lock(contents).now.clone())
    }

    /// Puts a file there, synced.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        self.lock().files.insert(path.into(), Arc::new(Mutex::new(Contents::synced(bytes))));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for MemDisk {
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
            lock(&contents).resize(0, self.cut);
        }
        Ok(Box::new(MemFile { disk: self.clone(), contents, locked: mode != OpenMode::Read }))
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
struct MemFile {
    disk: MemDisk,
    contents: Arc<Mutex<Contents>>,
    locked: bool,
}

impl Drop for MemFile {
    fn drop(&mut self) {
        if self.locked {
            self.disk.lock().locks.remove(&(Arc::as_ptr(&self.contents) as usize));
        }
    }
}

impl DiskFile for MemFile {
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
        let offset = offset as usize;
        let whole = if powered.is_ok() { buf.len() } else { self.disk.power.torn(offset, buf.len()) };
        lock(&self.contents).write(&buf[..whole], offset, self.disk.cut);
        powered
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.disk.power.operate()?;
        lock(&self.contents).resize(size as usize, self.disk.cut);
        Ok(())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut contents = lock(&self.contents);
        let size = (size as usize).max(contents.now.len());
        contents.resize(size, self.disk.cut);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.power.operate()?;
        self.disk.power.spend_sync();
        lock(&self.contents).sync();
        Ok(())
    }
}
