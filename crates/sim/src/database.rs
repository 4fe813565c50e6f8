//! The database's disk: real files, since they are mapped, with a note of what is durable.

use std::{
    fs::File,
    io::{self, IoSlice, Read, Write},
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bolt::{Disk, Map};
use memdisk::{Power, SECTOR};
use random::Random;

use crate::machine::kept_percent;

/// Opens files of one member and can crash them all.
pub(crate) struct DatabaseDisks {
    power: Arc<Power>,
    open: Mutex<Vec<Arc<DatabaseDisk>>>,
}

impl DatabaseDisks {
    pub(crate) fn new(power: Arc<Power>) -> DatabaseDisks {
        DatabaseDisks { power, open: Mutex::default() }
    }

    /// The process has ended, and the system has written what it had cached.
    pub(crate) fn forget(&self) {
        lock(&self.open).clear();
    }

    /// The power was cut. Nobody has a file open or mapped any more.
    pub(crate) fn crash(&self, random: &mut Random) -> io::Result<()> {
        lock(&self.open).drain(..).try_for_each(|disk| disk.crash(random))
    }
}

impl storage::Disks for DatabaseDisks {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn Disk>> {
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut durable = Vec::new();
        file.read_to_end(&mut durable)?;
        let inner = Mutex::new(Inner { durable, pending: Vec::new() });
        let disk = Arc::new(DatabaseDisk { file, power: self.power.clone(), inner });
        lock(&self.open).push(disk.clone());
        Ok(disk)
    }
}

enum Op {
    Write { at: u64, bytes: Vec<u8> },
    SetLen(u64),
}

struct Inner {
    durable: Vec<u8>,
    /// Since the last sync.
    pending: Vec<Op>,
}

struct DatabaseDisk {
    file: File,
    power: Arc<Power>,
    inner: Mutex<Inner>,
}

impl DatabaseDisk {
    fn crash(&self, random: &mut Random) -> io::Result<()> {
        let odds = kept_percent(random);
        let mut inner = lock(&self.inner);
        for op in std::mem::take(&mut inner.pending) {
            carry_out(&mut inner.durable, &op, &mut || random.percent(odds));
        }
        self.file.set_len(0)?;
        FileExt::write_all_at(&self.file, &inner.durable, 0)?;
        (&self.file).flush()
    }
}

fn carry_out(image: &mut Vec<u8>, op: &Op, keep: &mut dyn FnMut() -> bool) {
    match op {
        Op::SetLen(len) => {
            if keep() {
                image.resize(*len as usize, 0);
            }
        }
        Op::Write { at, bytes } => {
            for (n, sector) in bytes.chunks(SECTOR).enumerate() {
                if keep() {
                    let from = *at as usize + n * SECTOR;
                    image.resize(image.len().max(from + sector.len()), 0);
                    image[from..from + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for DatabaseDisk {
    fn len(&self) -> io::Result<u64> {
        Disk::len(&self.file)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.power.operate()?;
        lock(&self.inner).pending.push(Op::SetLen(bytes));
        Disk::set_len(&self.file, bytes)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        Disk::read_exact_at(&self.file, buf, offset)
    }

    fn write_all_at(&self, bufs: &mut [IoSlice<'_>], at: u64) -> io::Result<()> {
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let powered = self.power.operate();
        // What was under way when the power went may be there in part.
        lock(&self.inner).pending.push(Op::Write { at, bytes });
        powered?;
        Disk::write_all_at(&self.file, bufs, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.power.operate()?;
        let mut inner = lock(&self.inner);
        for op in std::mem::take(&mut inner.pending) {
            carry_out(&mut inner.durable, &op, &mut || true);
        }
        Ok(())
    }

    fn map(&self, reserve: usize) -> io::Result<Map> {
        Map::new(&self.file, reserve)
    }
}
