//! The seam to the file system: what the log asks of a disk, and the real one.

use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::Path,
};

/// How to open a file. The modes that write take an exclusive lock without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Opens an existing file for reading, without a lock.
    Read,
    /// Opens and locks an existing file for reading and writing.
    Write,
    /// Creates the file with mode 0600 and locks it. An existing file is emptied once its lock is
    /// taken.
    Create,
}

/// The file system operations that the log needs. Tests implement it to inject faults.
pub trait Disk: fmt::Debug + Send + Sync {
    /// The names in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory and its missing parents with mode 0700.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Opens a file. Fails with [`io::ErrorKind::WouldBlock`] if another descriptor holds the lock.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file or a directory. Durable only after [`Disk::sync_dir`] of the parent
    /// directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable only after [`Disk::sync_dir`] of its directory.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable (fsync).
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Dropping it releases its lock.
pub trait DiskFile: fmt::Debug + Send {
    /// Length of the file in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Reads into `buf` from `offset` on. Returns the number of bytes, which is less than requested
    /// only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buf` from `offset` on, and extends the file if necessary.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Truncates the file, or extends it with zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Makes the file at least `size` bytes long, and reserves blocks where the file system
    /// supports it.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Makes contents and length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        if mode == OpenMode::Read {
            return Ok(Box::new(OsFile { file: File::open(path)?, is_locked: false }));
        }
        let create = mode == OpenMode::Create;
        let file =
            fs::OpenOptions::new().read(true).write(true).create(create).truncate(false).mode(0o600).open(path)?;
        try_lock(&file)?;
        let file = OsFile { file, is_locked: true };
        if create {
            file.set_size(0)?;
        }
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// A file of the operating system.
#[derive(Debug)]
struct OsFile {
    file: File,
    is_locked: bool,
}

impl Drop for OsFile {
    /// Releases the lock. Closing the file would not be enough: a child process that another thread is just starting
    /// holds a copy of every descriptor until it executes its program, and with it the lock.
    fn drop(&mut self) {
        if self.is_locked {
            // If this fails, closing the file releases the lock.
            let _ = unlock(&self.file);
        }
    }
}

impl DiskFile for OsFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match FileExt::read_at(&self.file, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(&self.file, buf, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        if size == 0 {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::{fs::FallocateFlags, io::Errno};
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, size) {
                // Some file systems cannot reserve, and signals interrupt long reservations: a longer file will do.
                Err(Errno::OPNOTSUPP | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
        if self.file.metadata()?.len() < size {
            self.file.set_len(size)?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The lock that real etcd takes, so that the two exclude each other on one directory: an open-file-description lock
/// on Linux, flock elsewhere.
#[cfg(target_os = "linux")]
fn try_lock(file: &File) -> io::Result<()> {
    match set_lock(file, libc::F_WRLCK) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Err(io::ErrorKind::WouldBlock.into())
        }
        answer => answer,
    }
}

#[cfg(target_os = "linux")]
fn unlock(file: &File) -> io::Result<()> {
    set_lock(file, libc::F_UNLCK)
}

/// Sets the lock of the whole file to F_WRLCK or F_UNLCK without waiting.
#[cfg(target_os = "linux")]
fn set_lock(file: &File, kind: libc::c_int) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open for the whole call and `lock` is a complete `struct flock` that the kernel reads.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn try_lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}

#[cfg(not(target_os = "linux"))]
fn unlock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child process that another thread is starting holds copies of all descriptors for a moment.
    #[test]
    fn closing_a_file_releases_its_lock_although_a_copy_of_the_descriptor_is_open() {
        let dir = harness::tempdir();
        let path = dir.path().join("0.wal");
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path).unwrap();
        try_lock(&file).unwrap();
        let copy = file.try_clone().unwrap();
        assert_eq!(OsDisk.open(&path, OpenMode::Write).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(OsFile { file, is_locked: true });
        OsDisk.open(&path, OpenMode::Write).unwrap();
        drop(copy);
    }
}
