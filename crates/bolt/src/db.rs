//! An open file: its lock, its map, the current state, who reads it and who writes it.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use crate::{
    disk::{self, Disk, Map},
    error::{Error, OpenError},
    freelist::{FreeList, Span},
    meta::{Invalid, Meta, NO_FREELIST},
    page::{self, FLAG_FREELIST, FLAG_LEAF, Pages},
    scan,
    spill::Out,
    tx_read::{ReadTx, View},
    tx_write::WriteTx,
};

#[derive(Clone, Debug)]
pub struct Options {
    pub read_only: bool,
    /// Page size of a new file; the machine's memory page size if `None`. An existing file has its own.
    pub page_size: Option<usize>,
    /// How long to wait for another process to let go of the file: `None` for ever, zero not at all.
    pub lock_timeout: Option<Duration>,
    /// Address space set aside for the map, so that growth up to this size needs no new map.
    pub mmap_bytes: u64,
    /// Leaves out every fsync. A crash may then lose or tear the file.
    pub no_sync: bool,
    /// Keeps the file's pages in memory.
    pub mlock: bool,
    /// Makes a new file if there is none.
    pub create: bool,
    /// Permissions of a new file.
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

/// Numbers about the last committed state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub page_size: u64,
    /// Pages the file spans, free ones included.
    pub pages: u64,
    /// Pages that the next commit may write.
    pub free_pages: u64,
    /// Freed pages that wait for readers to end.
    pub pending_pages: u64,
    pub open_readers: u64,
    pub txid: u64,
}

/// An open file. Clones share it; it is closed and unlocked when the last of them and of its transactions is gone.
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
    /// Opens `path`, making a new file if `options` say so, and takes bbolt's lock on it.
    pub fn open(path: &Path, options: Options) -> Result<Db, OpenError> {
        let fail = |op| move |source| OpenError::Io { path: path.into(), op, source };
        let is_new = !path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(!options.read_only)
            .create(options.create && !options.read_only)
            .mode(options.mode)
            .open(path)
            .map_err(fail("open"))?;
        lock(&file, path, &options)?;
        let db = Db::open_disk(Arc::new(file), path, options)?;
        if is_new && let Some(dir) = path.parent().filter(|_| !db.inner.options.no_sync) {
            // The new name must survive a power cut too.
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(fail("sync the directory of"))?;
        }
        Ok(db)
    }

    /// Opens a file given as a [`Disk`]; `path` is for messages only, and locking is up to the caller.
    pub fn open_disk(disk: Arc<dyn Disk>, path: &Path, options: Options) -> Result<Db, OpenError> {
        let fail = |op| move |source| OpenError::Io { path: path.into(), op, source };
        let file_len = disk.len().map_err(fail("get the length of"))?;
        let page_size = options.page_size.unwrap_or_else(rustix::param::page_size);
        let may_create = options.create && !options.read_only;
        if may_create && is_unwritten(&*disk, file_len, page_size).map_err(fail("read"))? {
            initialise(&*disk, page_size, options.no_sync, path)?;
        }
        let file_len = disk.len().map_err(fail("get the length of"))?;
        let meta = current_meta(&*disk, file_len, path)?;
        if meta.bytes() > file_len {
            return Err(OpenError::Truncated { path: path.into(), expected: meta.bytes(), found: file_len });
        }
        let map = reserve(&*disk, &options, meta.bytes().max(file_len)).map_err(fail("map"))?;
        if options.mlock {
            map.lock_memory(file_len as usize).map_err(fail("lock in memory"))?;
        }
        let writer = match options.read_only {
            true => None,
            false => Some(Box::new(first_writer(&map, &meta, file_len, path)?)),
        };
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

    /// A view of the last committed state. Never waits for the writer.
    pub fn begin_read(&self) -> ReadTx {
        let (map, meta) = {
            let mut shared = self.inner.shared.lock();
            let txid = shared.meta.txid;
            *shared.readers.entry(txid).or_insert(0) += 1;
            (shared.map.clone(), shared.meta)
        };
        ReadTx::new(View { db: self.inner.clone(), map, meta })
    }

    /// The write transaction; waits until the one before has ended.
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

    /// Bytes the last committed state spans, free pages included.
    pub fn size(&self) -> u64 {
        self.inner.shared.lock().meta.bytes()
    }

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

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    pub fn is_read_only(&self) -> bool {
        self.inner.options.read_only
    }

    /// Makes everything written so far durable; needed only after commits with `no_sync`.
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.disk.sync().map_err(|source| Error::Io { op: "sync the file", source })
    }

    /// Lets go of the memory that reading has mapped in. The system still caches the pages, so this costs little.
    pub fn release_memory(&self) {
        let shared = self.inner.shared.lock();
        shared.map.release(shared.meta.bytes() as usize);
    }
}

impl Inner {
    pub fn end_read(&self, txid: u64) {
        let mut shared = self.shared.lock();
        if let Some(n) = shared.readers.get_mut(&txid) {
            *n -= 1;
            if *n == 0 {
                shared.readers.remove(&txid);
            }
        }
    }

    pub fn oldest_reader(&self) -> Option<u64> {
        self.shared.lock().readers.keys().next().copied()
    }

    /// Makes a committed state the one that new transactions see.
    pub fn publish(&self, meta: Meta, map: Arc<Map>, free: &FreeList) {
        let mut shared = self.shared.lock();
        (shared.meta, shared.map) = (meta, map);
        (shared.free_pages, shared.pending_pages) = (free.free_pages(), free.held_pages());
    }

    pub fn give_back(&self, writer: Box<Writer>) {
        *self.writer.lock() = Some(writer);
        self.writer_back.notify_one();
    }

    /// A map of at least `bytes`, the old one if it reaches that far.
    pub fn map_for(&self, map: Arc<Map>, bytes: u64) -> io::Result<Arc<Map>> {
        if bytes <= map.reserve() as u64 {
            return Ok(map);
        }
        // Readers keep the old map for as long as they need it.
        Ok(Arc::new(reserve(&*self.disk, &self.options, bytes.saturating_mul(2))?))
    }
}

fn lock(file: &File, path: &Path, options: &Options) -> Result<(), OpenError> {
    const POLL: Duration = Duration::from_millis(50);
    let start = Instant::now();
    loop {
        let op = "lock";
        let locked = disk::try_lock(file, !options.read_only);
        if locked.map_err(|source| OpenError::Io { path: path.into(), op, source })? {
            return Ok(());
        }
        let left = options.lock_timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        match left {
            Some(Duration::ZERO) => return Err(OpenError::Locked { path: path.into() }),
            left => std::thread::sleep(left.unwrap_or(POLL).min(POLL)),
        }
    }
}

/// A map with the wished reservation or, where address space is limited, one with room to double.
fn reserve(disk: &dyn Disk, options: &Options, bytes: u64) -> io::Result<Map> {
    let large = options.mmap_bytes.max(bytes).next_multiple_of(page::MAP_UNIT);
    let small = bytes.saturating_mul(2).max(64 << 20).next_multiple_of(page::MAP_UNIT);
    disk.map(large as usize).or_else(|e| if small < large { disk.map(small as usize) } else { Err(e) })
}

/// A new file, or one whose very first writing was cut off before its meta pages were there.
fn is_unwritten(disk: &dyn Disk, len: u64, page_size: usize) -> io::Result<bool> {
    if len > 4 * page_size as u64 {
        return Ok(false);
    }
    let mut head = vec![0; (2 * page_size).min(len as usize)];
    disk.read_exact_at(&mut head, 0)?;
    Ok(head.iter().all(|byte| *byte == 0))
}

/// Writes an empty database as bbolt does: two metas, an empty stored free list, an empty leaf.
fn initialise(disk: &dyn Disk, page_size: usize, no_sync: bool, path: &Path) -> Result<(), OpenError> {
    if !page_size.is_power_of_two() || !(crate::PAGE_SIZE_MIN..=crate::PAGE_SIZE_MAX).contains(&page_size) {
        return Err(OpenError::PageSize { found: page_size });
    }
    let write = || {
        let mut tree = vec![0; 2 * page_size];
        page::write_header(&mut tree, 2, FLAG_FREELIST, 0, 0);
        page::write_header(&mut tree[page_size..], 3, FLAG_LEAF, 0, 0);
        let mut meta =
            Meta { page_size: page_size as u32, flags: 0, root: 3, sequence: 0, freelist: 2, hwm: 4, txid: 0 };
        let mut metas = meta.page(0);
        meta.txid = 1;
        metas.extend(meta.page(1));
        // Metas last, so that a meta page never speaks of pages that are not there.
        disk.write_all_at(&mut [io::IoSlice::new(&tree)], 2 * page_size as u64)?;
        if !no_sync {
            disk.sync()?;
        }
        disk.write_all_at(&mut [io::IoSlice::new(&metas)], 0)?;
        if no_sync { Ok(()) } else { disk.sync() }
    };
    write().map_err(|source| OpenError::Io { path: path.into(), op: "initialise", source })
}

/// The newest meta page that is whole.
fn current_meta(disk: &dyn Disk, len: u64, path: &Path) -> Result<Meta, OpenError> {
    let read_at = |at: u64| -> Result<Result<Meta, Invalid>, OpenError> {
        let mut buf = [0; 80];
        if at + buf.len() as u64 > len {
            return Ok(Err(Invalid::Short));
        }
        let read = disk.read_exact_at(&mut buf, at);
        read.map_err(|source| OpenError::Io { path: path.into(), op: "read a meta page of", source })?;
        Ok(Meta::read(&buf))
    };
    let first = read_at(0)?;
    if let Ok(first) = first {
        let second = read_at(first.page_size as u64)?.ok();
        return Ok(second.filter(|second| second.txid > first.txid).unwrap_or(first));
    }
    // Without the first one the page size is unknown: try them all.
    for shift in 10..=crate::PAGE_SIZE_MAX.trailing_zeros() {
        if let Ok(meta) = read_at(1 << shift)?
            && meta.page_size == 1 << shift
        {
            return Ok(meta);
        }
    }
    let path = path.to_path_buf();
    Err(match first {
        Err(Invalid::Short) => OpenError::NotBolt { path, why: "it is too short" },
        Err(Invalid::Version(found)) => OpenError::Version { path, found },
        Err(Invalid::Checksum | Invalid::PageSize) => OpenError::BothMetasDamaged { path },
        _ => OpenError::NotBolt { path, why: "it does not begin with a meta page" },
    })
}

/// Finds the free pages of the current state.
fn first_writer(map: &Map, meta: &Meta, file_len: u64, path: &Path) -> Result<Writer, OpenError> {
    let len = meta.bytes() as usize;
    map.will_need(len);
    // SAFETY: the file has been found to be at least this long, and there is no writer yet.
    let pages = Pages { data: unsafe { map.bytes(len) }, page_size: meta.page_size as usize };
    let used = scan::used_pages(pages, meta.root);
    let mut used = used.map_err(|source| OpenError::Walk { path: path.into(), source })?;
    let stored_freelist = stored_freelist(pages, meta, &mut used);
    map.release(len);
    let free = FreeList::from_used(&used, meta.hwm);
    let out = Out { free, hwm: meta.hwm, ..Out::default() };
    Ok(Writer { out, file_len, stored_freelist, poisoned: None })
}

/// The pages of a free list stored in the file, marked as used.
fn stored_freelist(pages: Pages<'_>, meta: &Meta, used: &mut [u64]) -> Option<Span> {
    if meta.freelist == NO_FREELIST {
        return None;
    }
    // A damaged list does no harm, because the trees say which pages are free.
    let page = pages.any_page(meta.freelist).ok().filter(|page| page.flags == FLAG_FREELIST)?;
    let span = Span { page: page.id, pages: page.span(pages.page_size) };
    let bits = (span.page..span.page + span.pages).map(|id| ((id / 64) as usize, 1 << (id % 64)));
    if bits.clone().any(|(word, bit)| used[word] & bit != 0) {
        return None;
    }
    bits.for_each(|(word, bit)| used[word] |= bit);
    Some(span)
}
