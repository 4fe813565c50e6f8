//! A database file that remembers every operation, so that a test can make the file of any power cut, or fail from any
//! operation on.

use std::{
    fs::File,
    io::{self, IoSlice, Write},
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use bolt::{Disk, Map};
use random::Random;

use crate::{SyncFault, sync_fault::NextFault};

/// A change of the file.
#[derive(Debug, Clone)]
pub enum Op {
    Write {
        at: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    Sync,
    /// A sync that returned an error.
    FailedSync(SyncFault),
}

/// A temporary file that records its changes and fails from a chosen operation on.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    ops: Mutex<Vec<Op>>,
    /// Operations until the first failure; negative for never.
    left: AtomicI64,
    fault: NextFault,
}

impl FileDisk {
    pub fn new(image: &[u8]) -> FileDisk {
        FileDisk::restarted(image, Vec::new())
    }

    /// The file `base` as a new process finds it in the page cache after `ops` of processes that died.
    /// [`FileDisk::ops`] begins with `ops`, so that [`crash`] knows which of them were synced.
    pub fn restarted(base: &[u8], ops: Vec<Op>) -> FileDisk {
        let mut cached = base.to_vec();
        ops.iter().for_each(|op| apply(&mut cached, op, &mut |_| true));
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&cached).expect("write");
        FileDisk { file, ops: Mutex::new(ops), left: AtomicI64::new(-1), fault: NextFault::default() }
    }

    /// Lets `syncs` more syncs succeed, fails the one after them, and lets the later ones succeed.
    pub fn fail_sync_after(&self, syncs: u64, fault: SyncFault) {
        self.fault.set(syncs, fault);
    }

    /// Lets `n` more operations through, then fails every one.
    pub fn fail_after(&self, n: i64) {
        self.left.store(n, Ordering::Relaxed);
    }

    pub fn ops(&self) -> Vec<Op> {
        self.ops.lock().expect("lock").clone()
    }

    pub fn op_count(&self) -> usize {
        self.ops.lock().expect("lock").len()
    }

    pub fn image(&self) -> Vec<u8> {
        let mut image = vec![0; Disk::len(self).expect("len") as usize];
        Disk::read_exact_at(self, &mut image, 0).expect("read");
        image
    }

    fn op(&self, op: Op) -> io::Result<()> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(io::Error::other("injected failure"));
        }
        if self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.ops.lock().expect("lock").push(op);
        Ok(())
    }
}

impl Disk for FileDisk {
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
        let fault = self.fault.take();
        self.op(fault.map_or(Op::Sync, Op::FailedSync))?;
        fault.map_or(Ok(()), |_| Err(io::Error::other("injected failure of a sync")))
    }

    fn map(&self, reserve: usize) -> io::Result<Map> {
        Map::new(&self.file, reserve)
    }
}

/// Which of the operations since the last sync had reached the disk when the power was cut.
#[derive(Clone, Copy, Debug)]
pub enum Survives {
    Nothing,
    Everything,
    /// Operations up to a random one, the last of them only in part.
    Prefix,
    /// Any of the 512-byte sectors, in no order.
    Sectors,
    /// Any of the single bytes: worse than any real disk, yet a checksum must notice.
    Bytes,
}

/// Returns the file after a power cut at the end of `ops`.
pub fn crash(base: &[u8], ops: &[Op], survives: Survives, rng: &mut Random) -> Vec<u8> {
    let mut image = base.to_vec();
    let mut loose = Vec::new();
    for op in ops {
        match op {
            Op::Sync => loose.drain(..).for_each(|op| apply(&mut image, op, &mut |_| true)),
            Op::FailedSync(SyncFault::Keeps) => {}
            Op::FailedSync(fault) => loose.drain(..).for_each(|op| apply_without_lost(&mut image, op, *fault)),
            Op::Write { .. } | Op::SetLen(_) => loose.push(op),
        }
    }
    let cut = rng.below(loose.len() as u64 + 1) as usize;
    for (i, op) in loose.into_iter().enumerate() {
        match survives {
            Survives::Nothing => {}
            Survives::Everything => apply(&mut image, op, &mut |_| true),
            Survives::Prefix if i < cut => apply(&mut image, op, &mut |_| true),
            Survives::Prefix if i == cut => {
                let sectors = rng.below(40);
                apply(&mut image, op, &mut |at| at / 512 < sectors);
            }
            Survives::Prefix => {}
            Survives::Sectors => {
                let (mut bits, odds) = (Random::new(rng.next()), 1 + rng.below(4));
                let (mut sector, mut kept) = (u64::MAX, false);
                apply(&mut image, op, &mut |at| {
                    if at / 512 != sector {
                        (sector, kept) = (at / 512, bits.below(4) < odds);
                    }
                    kept
                });
            }
            Survives::Bytes => {
                let mut bits = Random::new(rng.next());
                apply(&mut image, op, &mut |_| bits.one_in(2));
            }
        }
    }
    image
}

/// Carries out an operation whose pages a failed sync dropped. Lengths are journaled by the file system.
fn apply_without_lost(image: &mut Vec<u8>, op: &Op, fault: SyncFault) {
    if let Op::Write { at, bytes } = op {
        let end = *at as usize + bytes.len();
        image.resize(image.len().max(end), 0);
        return apply(image, op, &mut |offset| !fault.loses((at + offset) as usize));
    }
    apply(image, op, &mut |_| true);
}

/// Carries out an operation on the bytes for which `keep` is true, by their offset in the operation.
fn apply(image: &mut Vec<u8>, op: &Op, keep: &mut dyn FnMut(u64) -> bool) {
    match op {
        Op::Sync | Op::FailedSync(_) => {}
        Op::SetLen(len) if keep(0) => image.resize(*len as usize, 0),
        Op::SetLen(_) => {}
        Op::Write { at, bytes } => {
            for (i, byte) in bytes.iter().enumerate() {
                if !keep(i as u64) {
                    continue;
                }
                let to = *at as usize + i;
                if image.len() <= to {
                    image.resize(to + 1, 0);
                }
                image[to] = *byte;
            }
        }
    }
}
