//! A disk that remembers what was asked of it, for crashes and failures.

use std::{
    fs::File,
    io::{self, IoSlice, Write},
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use bolt::{Disk, Map};

#[derive(Clone)]
pub enum Op {
    Write { at: u64, bytes: Vec<u8> },
    SetLen(u64),
    Sync,
}

pub struct TestDisk {
    file: File,
    ops: Mutex<Vec<Op>>,
    /// Operations until the first failure; negative for never.
    left: AtomicI64,
}

impl TestDisk {
    pub fn new(image: &[u8]) -> TestDisk {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(image).expect("write");
        TestDisk { file, ops: Mutex::default(), left: AtomicI64::new(-1) }
    }

    /// Lets `n` more operations through, then fails every one.
    pub fn fail_after(&self, n: i64) {
        self.left.store(n, Ordering::SeqCst);
    }

    pub fn ops(&self) -> Vec<Op> {
        self.ops.lock().expect("lock").clone()
    }

    pub fn op_count(&self) -> usize {
        self.ops.lock().expect("lock").len()
    }

    fn op(&self, op: Op) -> io::Result<()> {
        if self.left.load(Ordering::SeqCst) == 0 {
            return Err(io::Error::other("injected failure"));
        }
        if self.left.load(Ordering::SeqCst) > 0 {
            self.left.fetch_sub(1, Ordering::SeqCst);
        }
        self.ops.lock().expect("lock").push(op);
        Ok(())
    }
}

impl Disk for TestDisk {
    fn len(&self) -> io::Result<u64> {
        Disk::len(&self.file)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.op(Op::SetLen(bytes))?;
        Disk::set_len(&self.file, bytes)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        Disk::read_exact_at(&self.file, buf, offset)
    }

    fn write_all_at(&self, bufs: &mut [IoSlice<'_>], at: u64) -> io::Result<()> {
        let bytes = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.op(Op::Write { at, bytes })?;
        Disk::write_all_at(&self.file, bufs, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.op(Op::Sync)
    }

    fn map(&self, reserve: usize) -> io::Result<Map> {
        Map::new(&self.file, reserve)
    }
}

/// The file after a power cut when `ops` had been asked for: all that was synced, and of the rest whatever sectors
/// `keep` lets through.
pub fn crash(ops: &[Op], keep: &mut dyn FnMut() -> bool) -> Vec<u8> {
    let synced = ops.iter().rposition(|op| matches!(op, Op::Sync)).map_or(0, |i| i + 1);
    let mut image = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        match op {
            Op::Sync => {}
            Op::SetLen(len) if i < synced || keep() => image.resize(*len as usize, 0),
            Op::SetLen(_) => {}
            Op::Write { at, bytes } => {
                for (n, sector) in bytes.chunks(512).enumerate().filter(|_| i < synced || keep()) {
                    let from = *at as usize + n * 512;
                    image.resize(image.len().max(from + sector.len()), 0);
                    image[from..from + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
    image
}
