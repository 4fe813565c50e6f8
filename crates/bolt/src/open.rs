//! The steps of opening a file: lock, first contents, current meta page, map, free pages.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant},
};

use failpoint::failpoint;

use crate::{
    db::{Options, Writer},
    disk::{self, Disk, Map},
    error::OpenError,
    freelist::{FreeList, Span},
    meta::{Invalid, Meta, NO_FREELIST},
    page::{self, FLAG_FREELIST, FLAG_LEAF, PAGE_HEADER, Pages},
    scan,
    spill::{Image, Out},
};

pub(crate) fn lock(file: &File, path: &Path, options: &Options) -> Result<(), OpenError> {
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

/// Makes the name of a new file survive a power cut.
pub(crate) fn sync_dir_of(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

/// A map with the wished reservation or, where address space is limited, one with room to double.
pub(crate) fn reserve(disk: &dyn Disk, options: &Options, bytes: u64) -> io::Result<Map> {
    failpoint!("mapError", |text| return Err(io::Error::other(text)));
    let large = options.mmap_bytes.max(bytes).next_multiple_of(page::MAP_UNIT);
    let small = bytes.saturating_mul(2).max(64 << 20).next_multiple_of(page::MAP_UNIT);
    disk.map(large as usize).or_else(|e| if small < large { disk.map(small as usize) } else { Err(e) })
}

/// A new file, or one whose very first writing was cut off before its meta pages were there.
pub(crate) fn is_unwritten(disk: &dyn Disk, len: u64, page_size: usize) -> io::Result<bool> {
    if len > 4 * page_size as u64 {
        return Ok(false);
    }
    let mut head = vec![0; (2 * page_size).min(len as usize)];
    disk.read_exact_at(&mut head, 0)?;
    Ok(head.iter().all(|byte| *byte == 0))
}

/// Writes an empty database as bbolt does: two metas, an empty stored free list, an empty leaf.
pub(crate) fn initialise(disk: &dyn Disk, page_size: usize, no_sync: bool, path: &Path) -> Result<(), OpenError> {
    if !page_size.is_power_of_two() || !(crate::PAGE_SIZE_MIN..=crate::PAGE_SIZE_MAX).contains(&page_size) {
        return Err(OpenError::PageSize { found: page_size });
    }
    let write = || {
        let mut tree = vec![0; 2 * page_size];
        tree[..PAGE_HEADER].copy_from_slice(&page::header(2, FLAG_FREELIST, 0, 0));
        tree[page_size..][..PAGE_HEADER].copy_from_slice(&page::header(3, FLAG_LEAF, 0, 0));
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

/// The newest meta page that is whole, and its number.
pub(crate) fn current_meta(disk: &dyn Disk, len: u64, path: &Path) -> Result<(Meta, u64), OpenError> {
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
        return Ok(second.filter(|second| second.txid > first.txid).map_or((first, 0), |second| (second, 1)));
    }
    // Without the first one the page size is unknown: try them all.
    for shift in 10..=crate::PAGE_SIZE_MAX.trailing_zeros() {
        if let Ok(meta) = read_at(1 << shift)?
            && meta.page_size == 1 << shift
        {
            return Ok((meta, 1));
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

/// Makes the current state durable. The page cache may be the only place that has its meta page: the process that wrote
/// it died before its sync, or the sync failed. A commit reuses the pages of the state before, so a power failure
/// during the commit would otherwise leave neither state.
///
/// After a failed sync ext4 and XFS mark the page as clean, and a sync alone would skip it; the write makes it dirty.
/// All other pages of the state were synced before its meta page was written.
pub(crate) fn make_durable(disk: &dyn Disk, meta: &Meta, page: u64) -> io::Result<()> {
    disk.write_all_at(&mut [io::IoSlice::new(&meta.page(page))], page * meta.page_size as u64)?;
    disk.sync()
}

/// Finds the free pages of the current state.
pub(crate) fn first_writer(map: &Map, meta: &Meta, file_len: u64, path: &Path) -> Result<Writer, OpenError> {
    let len = meta.bytes() as usize;
    map.will_need(len);
    // SAFETY: the file has been found to be at least this long, and there is no writer yet.
    let pages = Pages { data: unsafe { map.bytes(len) }, page_size: meta.page_size as usize };
    let used = scan::used_pages(pages, meta.root, &|| map.release(len));
    let mut used = used.map_err(|source| OpenError::Walk { path: path.into(), source })?;
    let stored_freelist = stored_freelist(pages, meta, &mut used);
    map.release(len);
    let free = FreeList::from_used(&used, meta.hwm);
    let out = Out { free, hwm: meta.hwm, allocated: Vec::new(), image: Image::default() };
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
