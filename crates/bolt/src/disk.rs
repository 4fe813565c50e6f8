//! The few things asked of a file, as a trait, so that tests can put a crashing disk in its place.

use std::{
    fs::File,
    io::{self, IoSlice},
    os::{fd::AsFd, unix::fs::FileExt},
    ptr::NonNull,
};

use rustix::{
    fs::FlockOperation,
    mm::{Advice, MapFlags, ProtFlags},
};

/// A file that can be read, written at an offset, made durable and mapped. Tests implement it to
/// simulate crashes.
pub trait Disk: Send + Sync {
    /// Length of the file in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Fills `buf` from `offset` on. Fails if the file ends before that.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bufs` one after the other, starting at `offset`.
    fn write_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;
    /// Returns when all earlier writes, and the length of the file, will survive a power failure.
    fn sync(&self) -> io::Result<()>;
    /// Maps the first `reserve` bytes for reading. The file may be shorter and grow into the map
    /// later.
    fn map(&self, reserve: usize) -> io::Result<Map>;
}

impl Disk for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buf, offset)
    }

    fn write_all_at(&self, mut bufs: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        // The kernel takes at most this many slices in one call.
        const SLICES_MAX: usize = 1024;
        while !bufs.is_empty() {
            let n = bufs.len().min(SLICES_MAX);
            let written = match rustix::io::pwritev(self, &bufs[..n], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            };
            offset += written as u64;
            IoSlice::advance_slices(&mut bufs, written);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync also makes a changed length durable: data cannot be found without it.
        self.sync_data()
    }

    fn map(&self, reserve: usize) -> io::Result<Map> {
        Map::new(self, reserve)
    }
}

/// A locked file. Dropping it releases the lock.
///
/// Closing the file would not be enough: a child process that another thread is just starting holds a copy of every
/// descriptor until it executes its program, and with it the lock.
pub(crate) struct LockedFile(pub File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl Disk for LockedFile {
    fn len(&self) -> io::Result<u64> {
        Disk::len(&self.0)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Disk::set_len(&self.0, bytes)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        Disk::read_exact_at(&self.0, buf, offset)
    }

    fn write_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        Disk::write_all_at(&self.0, bufs, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn map(&self, reserve: usize) -> io::Result<Map> {
        self.0.map(reserve)
    }
}

/// Takes the lock that bbolt takes. `false` if another process holds it.
pub(crate) fn try_lock(file: &File, exclusive: bool) -> io::Result<bool> {
    let op = if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    match rustix::fs::flock(file, op) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// A shared, read-only memory map of the beginning of a file. Dropping it unmaps it.
pub struct Map {
    ptr: NonNull<u8>,
    reserve: usize,
}

// SAFETY: the map is read-only memory that stays in place until drop.
unsafe impl Send for Map {}
// SAFETY: as above; nothing in it is changed through `&Map`.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `reserve` bytes of `file`.
    pub fn new(file: impl AsFd, reserve: usize) -> io::Result<Map> {
        // SAFETY: a fresh map at an address chosen by the kernel touches no memory of ours.
        let ptr = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), reserve, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0)?
        };
        let ptr = NonNull::new(ptr.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Map { ptr, reserve })
    }

    /// Length of the map in bytes. Bytes beyond the end of the file must not be read.
    pub fn reserve(&self) -> usize {
        self.reserve
    }

    /// The first `len` bytes.
    ///
    /// # Safety
    /// The file must have at least `len` bytes as long as the slice lives, and the pages that are read through it
    /// must not be written meanwhile. Copy-on-write gives the second: a page is reused only when no transaction
    /// that reaches it is left.
    pub(crate) unsafe fn bytes(&self, len: usize) -> &[u8] {
        assert!(len <= self.reserve, "a view longer than its map");
        // SAFETY: within the map by the assertion, readable by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), len) }
    }

    /// Asks the system to read ahead, up to an amount that should not push everything else out of its cache.
    pub(crate) fn will_need(&self, len: usize) {
        const AHEAD_MAX: usize = 2 << 30;
        self.advise(len.min(AHEAD_MAX), Advice::WillNeed);
    }

    /// Lets go of the memory that reading has brought in; the system keeps the pages cached.
    pub(crate) fn release(&self, len: usize) {
        #[cfg(target_os = "linux")]
        self.advise(len, Advice::LinuxDontNeed);
        #[cfg(not(target_os = "linux"))]
        let _ = len;
    }

    fn advise(&self, len: usize, advice: Advice) {
        // SAFETY: a shared map of a file has no private contents that advice could drop; a refusal loses only speed.
        let _ = unsafe { rustix::mm::madvise(self.ptr.as_ptr().cast(), len.min(self.reserve), advice) };
    }

    /// Keeps the first `len` bytes in memory.
    pub(crate) fn lock_memory(&self, len: usize) -> io::Result<()> {
        // SAFETY: locking pages changes no contents; the range is inside the map.
        unsafe { rustix::mm::mlock(self.ptr.as_ptr().cast(), len.min(self.reserve)) }.map_err(Into::into)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `new` mapped, and no slice outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.ptr.as_ptr().cast(), self.reserve) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child process that another thread is starting holds copies of all descriptors for a moment.
    #[test]
    fn closing_a_file_releases_its_lock_although_a_copy_of_the_descriptor_is_open() {
        let dir = harness::tempdir();
        let path = dir.path().join("db");
        let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
        let file = open();
        assert!(try_lock(&file, true).unwrap());
        let copy = file.try_clone().unwrap();
        assert!(!try_lock(&open(), true).unwrap());
        drop(LockedFile(file));
        assert!(try_lock(&open(), true).unwrap());
        drop(copy);
    }
}
