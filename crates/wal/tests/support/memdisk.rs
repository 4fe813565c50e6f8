//! A disk in memory that can lose what was not synced, sector by sector, and fail at any operation.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use wal::{Disk, DiskFile, OpenMode};

const SECTOR: usize = 512;

#[derive(Debug, Clone, Default)]
struct Contents {
    now: Vec<u8>,
    /// As of the last sync.
    durable: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Arc<Mutex<Contents>>>,
    locks: BTreeSet<usize>,
    /// Writes and syncs until the one that fails; a failing write leaves `partial` of its bytes.
    fail_after: Option<(usize, usize)>,
    operations: usize,
}

#[derive(Debug, Clone, Default)]
pub struct MemDisk(Arc<Mutex<Inner>>);

impl MemDisk {
    pub fn new() -> Self {
        Self::default()
    }

    /// The operation after `count` more writes, syncs, renames and truncations fails, and all after it.
    pub fn fail_after(&self, count: usize, partial: usize) {
        let mut inner = self.lock();
        inner.operations = 0;
        inner.fail_after = Some((count, partial));
    }

    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// The disk after a power cut: of each unsynced sector, `keep` says whether it was written.
    pub fn after_crash(&self, mut keep: impl FnMut() -> bool) -> Self {
        let mut files = BTreeMap::new();
        for (path, contents) in &self.lock().files {
            let Contents { now, durable } = contents.lock().unwrap().clone();
            // Sizes are journaled by the file system; a sector of a longer file that was not written is zero.
            let mut after = now.clone();
            for start in (0..now.len()).step_by(SECTOR) {
                let end = (start + SECTOR).min(now.len());
                let old: Vec<u8> = (start..end).map(|at| durable.get(at).copied().unwrap_or(0)).collect();
                if old != now[start..end] && !keep() {
                    after[start..end].copy_from_slice(&old);
                }
            }
            let contents = Contents { now: after.clone(), durable: after };
            files.insert(path.clone(), Arc::new(Mutex::new(contents)));
        }
        Self(Arc::new(Mutex::new(Inner { files, ..Inner::default() })))
    }

    /// Another disk with the same files.
    pub fn fork(&self) -> Self {
        let files = self.lock().files.clone();
        let copy = |(path, contents): (PathBuf, Arc<Mutex<Contents>>)| {
            (path, Arc::new(Mutex::new(contents.lock().unwrap().clone())))
        };
        let files = files.into_iter().map(copy).collect();
        Self(Arc::new(Mutex::new(Inner { files, ..Inner::default() })))
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.lock().files.keys().cloned().collect()
    }

    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        self.lock().files[path].lock().unwrap().now.clone()
    }

    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let contents = Contents { now: bytes.clone(), durable: bytes };
        self.lock().files.insert(path.into(), Arc::new(Mutex::new(contents)));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Counts an operation; if it is to fail, how much of a write still happens.
    fn attempt(&self) -> Result<(), usize> {
        let mut inner = self.lock();
        inner.operations += 1;
        match inner.fail_after {
            Some((count, partial)) if inner.operations > count => Err(partial),
            _ => Ok(()),
        }
    }

    fn attempt_whole(&self) -> io::Result<()> {
        self.attempt().map_err(|_| injected())
    }
}

fn injected() -> io::Error {
    io::Error::other("injected")
}

impl Disk for MemDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let names = inner.files.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
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
            contents.lock().unwrap().now.clear();
        }
        Ok(Box::new(MemFile { disk: self.clone(), contents, locked: mode != OpenMode::Read }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.attempt_whole()?;
        let mut inner = self.lock();
        let moved: Vec<_> = inner.files.keys().filter(|path| path.starts_with(from)).cloned().collect();
        if moved.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for old in moved {
            let contents = inner.files.remove(&old).unwrap();
            let rest = old.strip_prefix(from).unwrap();
            let new = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            inner.files.insert(new, contents);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.lock().files.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.attempt_whole()
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
        Ok(self.contents.lock().unwrap().now.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let contents = self.contents.lock().unwrap();
        let from = contents.now.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(buf.len());
        buf[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let failed = self.disk.attempt().err();
        let buf = &buf[..failed.unwrap_or(buf.len()).min(buf.len())];
        let mut contents = self.contents.lock().unwrap();
        let end = offset as usize + buf.len();
        if contents.now.len() < end {
            contents.now.resize(end, 0);
        }
        contents.now[offset as usize..end].copy_from_slice(buf);
        if failed.is_some() { Err(injected()) } else { Ok(()) }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.disk.attempt_whole()?;
        self.contents.lock().unwrap().now.resize(size as usize, 0);
        Ok(())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut contents = self.contents.lock().unwrap();
        let size = (size as usize).max(contents.now.len());
        contents.now.resize(size, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.attempt_whole()?;
        let mut contents = self.contents.lock().unwrap();
        contents.durable = contents.now.clone();
        Ok(())
    }
}
