//! The seam to the file system: what the log asks of a disk, and the real one.

use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::Path,
};

/// How a file is opened. Modes that write take an exclusive lock, without waiting for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, for reading, no lock.
    Read,
    /// Existing file, for reading and writing, locked.
    Write,
    /// New file, or an old one emptied once its lock was gained; mode 0600.
    Create,
}

/// A file system as far as the log needs one. Tests put faults here.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory and its parents, mode 0700.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Fails with [`io::ErrorKind::WouldBlock`] if another descriptor holds the lock.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file; its lock ends when it is dropped.
pub trait DiskFile: fmt::Debug + Send {
    fn size(&self) -> io::Result<u64>;
    /// Bytes read; fewer than asked only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Makes the file at least `size` long, with blocks reserved where the file system can.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// fdatasync: contents and size.
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
            return Ok(Box::new(File::open(path)?));
        }
        let create = mode == OpenMode::Create;
        let file =
            fs::OpenOptions::new().read(true).write(true).create(create).truncate(false).mode(0o600).open(path)?;
        try_lock(&file)?;
        if create {
            file.set_len(0)?;
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

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match FileExt::read_at(self, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, buf, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        if size == 0 {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::{fs::FallocateFlags, io::Errno};
            match rustix::fs::fallocate(self, FallocateFlags::empty(), 0, size) {
                // Some file systems cannot reserve, and signals interrupt long reservations: a longer file will do.
                Err(Errno::OPNOTSUPP | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
        if self.metadata()?.len() < size {
            self.set_len(size)?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}

/// The lock that real etcd takes, so that the two exclude each other on one directory: an open-file-description lock
/// on Linux, flock elsewhere.
#[cfg(target_os = "linux")]
fn try_lock(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open for the whole call and `lock` is a complete `struct flock` that the kernel reads.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Err(io::ErrorKind::WouldBlock.into()),
        _ => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn try_lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}
