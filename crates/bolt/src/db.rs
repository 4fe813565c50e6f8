//! An open file: its lock, its map, the current state, who reads it and who writes it.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use crate::{
    disk::{Disk, LockedFile, Map},
    error::{Error, OpenError},
    freelist::{FreeList, Span},
    meta::Meta,
    open,
    spill::Out,
    tx_read::{ReadTx, View},
    tx_write::WriteTx,
};

/// The settings for opening a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Opens the file without write access, under a shared lock. [`Db::begin_write`] then fails.
    pub read_only: bool,
    /// Page size of a new file in bytes. `None` takes the memory page size of the machine. Ignored
    /// for an existing file.
    pub page_size: Option<usize>,
    /// How long to wait for another process to release the lock on the file. `None` waits without
    /// limit, zero does not wait.
    pub lock_timeout: Option<Duration>,
    /// Address space in bytes to reserve for the map, so that the file can grow to this size
    /// without a new map.
    pub mmap_bytes: u64,
    /// Omits every fsync. A crash of the machine may then lose commits or corrupt the file.
    pub no_sync: bool,
    /// Locks the file's pages in memory (`mlock`).
    pub mlock: bool,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// Unix permissions of a new file, before the umask.
    pub mode: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            read_only: false,
            page_size: None,
            lock_timeout: None,
            mmap_bytes: 10 << 30,
            no_sync: false,
            mlock: false,
            create: true,
            mode: 0o600,
        }
    }
}

/// Figures about the last committed state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Size of a page in bytes.
    pub page_size: u64,
    /// Pages that the state spans, including free pages. The file may be longer.
    pub pages: u64,
    /// Pages that the next commit may overwrite. Always 0 in a file opened read-only.
    pub free_pages: u64,
    /// Freed pages that an open read transaction still needs.
    pub pending_pages: u64,
    /// Read transactions that are open; clones of one count once.
    pub open_readers: u64,
    /// Id of the transaction that committed the state.
    pub txid: u64,
}

/// An open database file. Clones share it. The file is closed and unlocked when the last clone and
/// the last transaction are dropped.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub disk: Arc<dyn Disk>,
    path: PathBuf,
    pub options: Options,
    shared: Mutex<Shared>,
    /// Taken out by the writer while it works.
    writer: Mutex<Option<Box<Writer>>>,
    writer_back: Condvar,
}

/// What readers need, locked only for moments.
struct Shared {
    meta: Meta,
    map: Arc<Map>,
    readers: BTreeMap<u64, usize>,
    free_pages: u64,
    pending_pages: u64,
}

/// What only the one writer needs.
pub(crate) struct Writer {
    pub out: Out,
    pub file_len: u64,
    /// Pages of a free list stored by another program: the state that names it must stay whole until the first commit.
    pub stored_freelist: Option<Span>,
    pub poisoned: Option<String>,
}

impl Db {
    /// Opens `path`, creating the file if `options` allow it, and takes the lock on it that bbolt
    /// takes.
    pub fn open(path: &Path, options: Options) -> Result<Db, OpenError> {
        let fail = |op| move |source| OpenError::Io { path: path.into(), op, source };
        let file = OpenOptions::new()
            .read(true)
            .write(!options.read_only)
            .create(options.create && !options.read_only)
            .mode(options.mode)
            .open(path)
            .map_err(fail("open"))?;
        open::lock(&file, path, &options)?;
        let db = Db::open_disk(Arc::new(LockedFile(file)), path, options)?;
        // The process that created the file may have died before it synced the name.
        if !db.inner.options.read_only && !db.inner.options.no_sync {
            open::sync_dir_of(path).map_err(fail("sync the directory of"))?;
        }
        Ok(db)
    }

    /// Opens a file given as a [`Disk`]. `path` appears in messages only. The caller is responsible
    /// for locking.
    pub fn open_disk(disk: Arc<dyn Disk>, path: &Path, options: Options) -> Result<Db, OpenError> {
        let fail = |op| move |source| OpenError::Io { path: path.into(), op, source };
        let file_len = disk.len().map_err(fail("get the length of"))?;
        let page_size = options.page_size.unwrap_or_else(rustix::param::page_size);
        let may_create = options.create && !options.read_only;
        if may_create && open::is_unwritten(&*disk, file_len, page_size).map_err(fail("read"))? {
            open::initialise(&*disk, page_size, options.no_sync, path)?;
        }
        let file_len = disk.len().map_err(fail("get the length of"))?;
        let (meta, meta_page) = open::current_meta(&*disk, file_len, path)?;
        if meta.bytes() > file_len {
            return Err(OpenError::Truncated { path: path.into(), expected: meta.bytes(), found: file_len });
        }
        let map = open::reserve(&*disk, &options, meta.bytes().max(file_len)).map_err(fail("map"))?;
        if options.mlock {
            map.lock_memory(file_len as usize).map_err(fail("lock in memory"))?;
        }
        let writer =
            if options.read_only { None } else { Some(Box::new(open::first_writer(&map, &meta, file_len, path)?)) };
        if writer.is_some() && !options.no_sync {
            open::make_durable(&*disk, &meta, meta_page).map_err(fail("sync the current state of"))?;
        }
        let free_pages = writer.as_ref().map_or(0, |writer| writer.out.free.free_pages());
        let shared = Shared { meta, map: Arc::new(map), readers: BTreeMap::new(), free_pages, pending_pages: 0 };
        let inner = Inner {
            disk,
            path: path.into(),
            options,
            shared: Mutex::new(shared),
            writer: Mutex::new(writer),
            writer_back: Condvar::new(),
        };
        Ok(Db { inner: Arc::new(inner) })
    }

    /// Starts a read transaction on the last committed state. Never waits for the writer.
    pub fn begin_read(&self) -> ReadTx {
        let (map, meta) = {
            let mut shared = self.inner.shared.lock();
            let txid = shared.meta.txid;
            *shared.readers.entry(txid).or_insert(0) += 1;
            (shared.map.clone(), shared.meta)
        };
        ReadTx::new(View { db: self.inner.clone(), map, meta })
    }

    /// Starts the write transaction. Waits until the previous one has ended.
    pub fn begin_write(&self) -> Result<WriteTx, Error> {
        if self.inner.options.read_only {
            return Err(Error::ReadOnly);
        }
        let mut slot = self.inner.writer.lock();
        let mut writer = loop {
            match slot.take() {
                Some(writer) => break writer,
                None => self.inner.writer_back.wait(&mut slot),
            }
        };
        if let Some(why) = &writer.poisoned {
            let why = why.clone();
            *slot = Some(writer);
            self.inner.writer_back.notify_one();
            return Err(Error::Poisoned { why });
        }
        drop(slot);
        let mut shared = self.inner.shared.lock();
        writer.out.free.release(&shared.readers);
        (shared.free_pages, shared.pending_pages) = (writer.out.free.free_pages(), writer.out.free.held_pages());
        let (map, meta) = (shared.map.clone(), shared.meta);
        drop(shared);
        Ok(WriteTx::new(self.inner.clone(), writer, map, meta))
    }

    /// Size in bytes of the last committed state, including free pages. The file itself may be
    /// longer.
    pub fn size(&self) -> u64 {
        self.inner.shared.lock().meta.bytes()
    }

    /// Returns figures about the last committed state.
    pub fn stats(&self) -> Stats {
        let shared = self.inner.shared.lock();
        Stats {
            page_size: shared.meta.page_size as u64,
            pages: shared.meta.hwm,
            free_pages: shared.free_pages,
            pending_pages: shared.pending_pages,
            open_readers: shared.readers.values().map(|n| *n as u64).sum(),
            txid: shared.meta.txid,
        }
    }

    /// The path that the file was opened with.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Whether the file was opened with [`Options::read_only`].
    pub fn is_read_only(&self) -> bool {
        self.inner.options.read_only
    }

    /// Makes all earlier writes durable. Needed only after commits with [`Options::no_sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.disk.sync().map_err(|source| Error::Io { op: "sync the file", source })
    }

    /// Releases the mapped memory that reads have filled. The system keeps the pages cached, so the
    /// next reads stay cheap.
    pub fn release_memory(&self) {
        let shared = self.inner.shared.lock();
        shared.map.release(shared.meta.bytes() as usize);
    }
}

impl Inner {
    pub(crate) fn end_read(&self, txid: u64) {
        let mut shared = self.shared.lock();
        if let Some(n) = shared.readers.get_mut(&txid) {
            *n -= 1;
            if *n == 0 {
                shared.readers.remove(&txid);
            }
        }
    }

    pub(crate) fn oldest_reader(&self) -> Option<u64> {
        self.shared.lock().readers.keys().next().copied()
    }

    /// Makes a committed state the one that new transactions see.
    pub(crate) fn publish(&self, meta: Meta, map: Arc<Map>, free: &FreeList) {
        let mut shared = self.shared.lock();
        (shared.meta, shared.map) = (meta, map);
        (shared.free_pages, shared.pending_pages) = (free.free_pages(), free.held_pages());
    }

    pub(crate) fn give_back(&self, writer: Box<Writer>) {
        *self.writer.lock() = Some(writer);
        self.writer_back.notify_one();
    }

    /// A map of at least `bytes`, the old one if it reaches that far.
    pub(crate) fn map_for(&self, map: Arc<Map>, bytes: u64) -> io::Result<Arc<Map>> {
        if bytes <= map.reserve() as u64 {
            return Ok(map);
        }
        // Readers keep the old map for as long as they need it.
        Ok(Arc::new(open::reserve(&*self.disk, &self.options, bytes.saturating_mul(2))?))
    }
}
