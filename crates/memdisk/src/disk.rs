//! Files in memory, by path.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use wal::{Disk, DiskFile, OpenMode};

use crate::{Cut, Power, SyncFault, contents::Contents, sync_fault::NextFault};

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Arc<Mutex<Contents>>>,
    locks: BTreeSet<usize>,
    /// Renames, oldest first, whose directory was not synced since.
    renames: Vec<(PathBuf, PathBuf)>,
}

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemDisk {
    inner: Arc<Mutex<Inner>>,
    power: Arc<Power>,
    fault: Arc<NextFault>,
    cut: Cut,
}

impl MemDisk {
    pub fn new(power: Arc<Power>, cut: Cut) -> MemDisk {
        MemDisk { power, cut, ..MemDisk::default() }
    }

    pub fn power(&self) -> &Power {
        &self.power
    }

    /// Lets `syncs` more syncs of files succeed, fails the one after them, and lets the later ones succeed.
    pub fn fail_sync_after(&self, syncs: u64, fault: SyncFault) {
        self.fault.set(syncs, fault);
    }

    /// The power was cut: of each sector that was not synced, `keep` says whether it is there. Nobody has a file open any
    /// more.
    pub fn crash(&self, mut keep: impl FnMut() -> bool) {
        let mut inner = self.lock();
        for contents in inner.files.values() {
            lock(contents).crash(&mut keep);
        }
        // File systems journal renames in their order: the last ones are lost first.
        while let Some((from, to)) = inner.renames.pop() {
            if keep() {
                break;
            }
            inner.rename(&to, &from);
        }
        inner.renames.clear();
    }

    /// Another disk with the same files, on power of its own.
    pub fn fork(&self) -> MemDisk {
        let copy = |(path, contents): (&PathBuf, &Arc<Mutex<Contents>>)| {
            (path.clone(), Arc::new(Mutex::new(lock(contents).clone())))
        };
        let inner = self.lock();
        let (files, renames) = (inner.files.iter().map(copy).collect(), inner.renames.clone());
        let inner = Inner { files, renames, locks: BTreeSet::new() };
        MemDisk { inner: Arc::new(Mutex::new(inner)), cut: self.cut, ..MemDisk::default() }
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

impl Inner {
    /// Moves a file, or all files of a directory. Returns false if there is none.
    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let moved: Vec<_> = self.files.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for old in &moved {
            let Some(contents) = self.files.remove(old) else { continue };
            let rest = old.strip_prefix(from).unwrap_or(old);
            let new = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            self.files.insert(new, contents);
        }
        !moved.is_empty()
    }
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
        if !inner.rename(from, to) {
            return Err(io::ErrorKind::NotFound.into());
        }
        inner.renames.push((from.into(), to.into()));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.lock().files.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.power.operate()?;
        self.lock().renames.retain(|(_, to)| to.parent() != Some(dir));
        Ok(())
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
        if let Some(fault) = self.disk.fault.take() {
            lock(&self.contents).fail_sync(fault);
            return Err(io::Error::other("injected failure of a sync"));
        }
        lock(&self.contents).sync();
        Ok(())
    }
}
